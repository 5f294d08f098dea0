#include "identity/identity.h"

#include <unicode/uidna.h>

#include "match/match.h"

enum { PHONE_DIGITS_MIN = 5, PHONE_DIGITS_MAX = 20, MENTION_DIGITS_MIN = 8, HOST_MAX = 253, LOCAL_MAX = 64 };

const char *const identity_kind_names[] = {"email", "phone", "other", NULL};

static bool is_white(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct bytes trim(struct bytes text)
{
    while (text.len > 0 && is_white(text.at[0]))
        text = bytes_from(text, 1);
    while (text.len > 0 && is_white(text.at[text.len - 1]))
        text.len--;
    return text;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* ---- e-mail ---- */

static bool is_local(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] <= 0x20 || text.at[i] == 0x7F || strchr("<>()[],;:\\\"@", text.at[i]) != NULL)
            return false;
    return text.len >= 1 && text.len <= LOCAL_MAX && bytes_is_utf8(text);
}

static bool is_ascii_host(struct bytes host)
{
    for (size_t i = 0; i < host.len; i++) {
        char c = host.at[i];
        if (!is_digit(c) && !(c >= 'a' && c <= 'z') && c != '.' && c != '-' && c != '_')
            return false;
    }
    return host.len >= 1 && host.at[0] != '.' && memmem(host.at, host.len, "..", 2) == NULL;
}

/* The host in lower-case ASCII, in `ret` with room for HOST_MAX; 0 when it is none. */
static size_t ascii_host(struct bytes host, char *ret)
{
    UErrorCode code = U_ZERO_ERROR;
    UIDNAInfo info = UIDNA_INFO_INITIALIZER;
    if (host.len > 0 && host.at[host.len - 1] == '.')
        host.len--;
    if (host.len == 0 || host.len > HOST_MAX)
        return 0;
    UIDNA *idna = uidna_openUTS46(UIDNA_NONTRANSITIONAL_TO_ASCII, &code);
    int32_t len = U_SUCCESS(code) ? uidna_nameToASCII_UTF8(idna, host.at, (int32_t)host.len, ret, HOST_MAX, &info, &code) : 0;
    uidna_close(idna);
    if (U_FAILURE(code) || info.errors != 0 || len <= 0 || len > HOST_MAX)
        return 0;
    for (int32_t i = 0; i < len; i++)
        ret[i] = lower(ret[i]);
    return is_ascii_host((struct bytes){ret, (size_t)len}) ? (size_t)len : 0;
}

struct bytes identity_email(struct bytes text, struct arena *arena)
{
    char host[HOST_MAX + 1];
    const char *open = text.len > 0 ? memrchr(text.at, '<', text.len) : NULL;
    const char *close = open != NULL ? memchr(open, '>', text.len - (size_t)(open - text.at)) : NULL;
    if (close != NULL)
        text = (struct bytes){open + 1, (size_t)(close - open) - 1};
    text = trim(text);
    if (text.len > 7 && bytes_eq_nocase((struct bytes){text.at, 7}, BYTES("mailto:")))
        text = bytes_from(text, 7);
    struct bytes domain = text, local = bytes_cut(&domain, '@');
    size_t host_len = is_local(local) && memchr(domain.at, '@', domain.len) == NULL ? ascii_host(domain, host) : 0;
    if (host_len == 0)
        return BYTES_NONE;
    char *at = arena_alloc(arena, local.len + 1 + host_len + 1);
    if (at == NULL)
        return BYTES_NONE;
    for (size_t i = 0; i < local.len; i++)
        at[i] = lower(local.at[i]);
    at[local.len] = '@';
    memcpy(at + local.len + 1, host, host_len);
    at[local.len + 1 + host_len] = '\0';
    return (struct bytes){at, local.len + 1 + host_len};
}

/* ---- phone ---- */

static struct bytes without_scheme(struct bytes text)
{
    static const struct bytes schemes[] = {{"whatsapp:", 9}, {"sms:", 4}, {"tel:", 4}};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (text.len > schemes[i].len && bytes_eq_nocase((struct bytes){text.at, schemes[i].len}, schemes[i]))
            return bytes_from(text, schemes[i].len);
    return text;
}

struct bytes identity_phone(struct bytes text, struct arena *arena)
{
    char digits[PHONE_DIGITS_MAX + 3];
    size_t len = 0;
    text = without_scheme(trim(text));
    for (size_t i = 0; i < text.len; i++) {
        if (is_digit(text.at[i])) {
            if (len == sizeof digits - 1)
                return BYTES_NONE;
            digits[len++] = text.at[i];
        } else if (text.at[i] == '\0' || (strchr(" -./()", text.at[i]) == NULL && !(text.at[i] == '+' && len == 0))) {
            return BYTES_NONE; /* a name, a short code with letters, two numbers */
        }
    }
    struct bytes number = {digits, len};
    if (bytes_starts(number, BYTES("00")))
        number = bytes_from(number, 2);
    return number.len >= PHONE_DIGITS_MIN && number.len <= PHONE_DIGITS_MAX ? arena_dup(arena, number) : BYTES_NONE;
}

static bool is_international(struct bytes text)
{
    return bytes_starts(text, BYTES("+")) || bytes_starts(text, BYTES("00"));
}

/* A valid number of the region in its international form; a number of anywhere else is what it is. */
struct bytes identity_phone_of(struct bytes text, struct bytes region, struct arena *arena)
{
    struct match_phone phone;
    struct why why;
    struct bytes digits = identity_phone(text, arena);
    if (region.len == 0 || is_international(without_scheme(trim(text))) ||
        match_phone_make(text, region, arena, &phone, &why) != OK)
        return digits;
    return phone.valid && phone.e164.len > 1 ? bytes_from(phone.e164, 1) : digits;
}

/* ---- what a text mentions ---- */

void identity_add(struct identity *all, size_t *count, size_t max, struct identity one)
{
    for (size_t i = 0; i < *count; i++) {
        if (all[i].kind != one.kind || !bytes_eq(all[i].value, one.value))
            continue;
        all[i].sender |= one.sender;
        return;
    }
    if (one.value.len > 0 && one.value.len <= IDENTITY_SIZE_MAX && *count < max)
        all[(*count)++] = one;
}

static bool is_address_char(char c)
{
    return !is_white(c) && (unsigned char)c > 0x20 && strchr("<>()[],;:\\\"'|", c) == NULL;
}

/* The address around the '@' at `at`. */
static struct bytes address_around(struct bytes text, size_t at)
{
    size_t start = at, end = at + 1;
    while (start > 0 && is_address_char(text.at[start - 1]) && text.at[start - 1] != '@' && at - start < LOCAL_MAX)
        start--;
    while (end < text.len && is_address_char(text.at[end]) && text.at[end] != '@' && end - at < HOST_MAX)
        end++;
    while (end > at + 1 && strchr(".!?", text.at[end - 1]) != NULL)
        end--;
    return (struct bytes){text.at + start, end - start};
}

/* A number that says by '+' or "00" that it is an international one; returns its end. */
static size_t number_end(struct bytes text, size_t at)
{
    size_t end = at, digits = 0, last = at;
    bool marked = text.at[at] == '+' || (text.at[at] == '0' && at + 1 < text.len && text.at[at + 1] == '0');
    if (!marked || (at > 0 && (is_digit(text.at[at - 1]) || text.at[at - 1] == '+')))
        return at;
    for (end = at + 1; end < text.len && digits <= PHONE_DIGITS_MAX && (is_digit(text.at[end]) || strchr(" -./()", text.at[end]));
         end++) {
        if (text.at[end] == '\0')
            break;
        if (is_digit(text.at[end])) {
            digits++;
            last = end + 1;
        }
    }
    return digits >= MENTION_DIGITS_MIN ? last : at;
}

size_t identity_mentions(struct bytes text, struct arena *arena, struct identity *ret, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len && count < max; i++) {
        struct identity one = {.value = BYTES_NONE};
        if (text.at[i] == '@') {
            one = (struct identity){.kind = IDENTITY_EMAIL, .value = identity_email(address_around(text, i), arena)};
            if (one.value.at != NULL && memchr(one.value.at, '.', one.value.len) == NULL)
                one.value = BYTES_NONE; /* "me@work" is no address */
        } else if (text.at[i] == '+' || text.at[i] == '0') {
            size_t end = number_end(text, i);
            if (end == i)
                continue;
            one = (struct identity){.kind = IDENTITY_PHONE, .value = identity_phone((struct bytes){text.at + i, end - i}, arena)};
            i = end - 1;
        }
        if (one.value.at != NULL)
            identity_add(ret, &count, max, one);
    }
    return count;
}
