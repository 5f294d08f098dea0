/* Hosts: IDNA by libidn2, registrable domains by libpsl's built-in list. */
#include "match/match_own.h"

#include <idn2.h>
#include <libpsl.h>

enum { HOST_MAX = 253, LABEL_MAX = 63 };

static bool is_label(struct bytes label)
{
    for (size_t i = 0; i < label.len; i++) {
        char c = label.at[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-')
            return false;
    }
    return label.len >= 1 && label.len <= LABEL_MAX && label.at[0] != '-' && label.at[label.len - 1] != '-';
}

/* Lower-case labels, at least two, the last not a number. */
static bool is_host(struct bytes host)
{
    struct bytes rest = host, label = BYTES_NONE;
    size_t count = 0;
    if (host.len == 0 || host.len > HOST_MAX || host.at[host.len - 1] == '.')
        return false;
    for (; rest.len > 0; count++) {
        label = bytes_cut(&rest, '.');
        if (!is_label(label))
            return false;
    }
    return count >= 2 && !(label.at[0] >= '0' && label.at[0] <= '9');
}

static struct bytes by_idna(const char *host, struct arena *arena)
{
    uint8_t *ascii = NULL;
    struct bytes found = BYTES_NONE;
    if (idn2_lookup_u8((const uint8_t *)host, &ascii, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL) == IDN2_OK)
        found = arena_dup(arena, bytes_of((const char *)ascii));
    if (ascii != NULL)
        idn2_free(ascii);
    return found;
}

struct bytes domain_ascii(struct bytes host, struct arena *arena)
{
    bool plain = true;
    if (host.len == 0 || host.len > HOST_MAX || memchr(host.at, '\0', host.len) != NULL || !bytes_is_utf8(host))
        return BYTES_NONE;
    for (size_t i = 0; i < host.len; i++)
        plain &= (unsigned char)host.at[i] < 0x80;
    struct bytes low = fold_nfc(host, true, arena);
    if (low.at == NULL)
        return BYTES_NONE;
    if (!plain || memmem(low.at, low.len, "xn--", 4) != NULL)
        low = by_idna(low.at, arena);
    return low.at != NULL && is_host(low) ? low : BYTES_NONE;
}

struct bytes domain_registrable(struct bytes host)
{
    char text[HOST_MAX + 1];
    if (host.at == NULL || host.len == 0 || host.len > HOST_MAX)
        return BYTES_NONE;
    memcpy(text, host.at, host.len);
    text[host.len] = '\0';
    const char *found = psl_registrable_domain(psl_builtin(), text);
    return found != NULL ? bytes_from(host, (size_t)(found - text)) : BYTES_NONE;
}

bool domain_is_free_mail(struct bytes host)
{
    return rules_find(LIST_PROVIDERS, host) != NULL || rules_find(LIST_FREE_MAIL, host) != NULL;
}

/* The host inside "https://user@www.acme.io:443/path?x". */
static struct bytes host_of(struct bytes text)
{
    const char *scheme = text.len > 3 ? memmem(text.at, text.len, "://", 3) : NULL;
    if (scheme != NULL)
        text = bytes_from(text, (size_t)(scheme - text.at) + 3);
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '/' || text.at[i] == '?' || text.at[i] == '#') {
            text.len = i;
            break;
        }
    }
    const char *at = text.len > 0 ? memrchr(text.at, '@', text.len) : NULL;
    if (at != NULL)
        text = bytes_from(text, (size_t)(at - text.at) + 1);
    const char *port = text.len > 0 ? memchr(text.at, ':', text.len) : NULL;
    if (port != NULL)
        text.len = (size_t)(port - text.at);
    if (text.len > 0 && text.at[text.len - 1] == '.')
        text.len--;
    return text;
}

struct bytes match_domain(struct bytes text, struct arena *arena)
{
    struct bytes host = domain_ascii(host_of(fold_trim(text)), arena);
    return domain_registrable(host);
}
