#include "mail/mailbox.h"

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_atext(char c, bool utf8)
{
    return is_alnum(c) || (utf8 && (unsigned char)c >= 0x80) || (c != '\0' && strchr("!#$%&'*+-/=?^_`{|}~", c) != NULL);
}

/* The length of the local part that `text` begins with, 0 for none: dotted atoms, or a quoted string. */
static size_t local_size(struct bytes text, bool utf8)
{
    size_t i = 0;
    if (text.len > 0 && text.at[0] == '"') {
        for (i = 1; i < text.len && text.at[i] != '"'; i++) {
            i += text.at[i] == '\\';
            if (i >= text.len || (unsigned char)text.at[i] < ' ' || text.at[i] == 0x7F ||
                (!utf8 && (unsigned char)text.at[i] >= 0x80))
                return 0;
        }
        return i < text.len && i > 1 ? i + 1 : 0;
    }
    for (; i < text.len && (is_atext(text.at[i], utf8) || text.at[i] == '.'); i++)
        if (text.at[i] == '.' && (i == 0 || text.at[i - 1] == '.'))
            return 0;
    return i > 0 && text.at[i - 1] != '.' ? i : 0;
}

/* "[127.0.0.1]", "[IPv6:::1]". */
static bool is_literal(struct bytes domain)
{
    if (domain.len < 3 || domain.at[0] != '[' || domain.at[domain.len - 1] != ']')
        return false;
    for (size_t i = 1; i + 1 < domain.len; i++)
        if (!is_alnum(domain.at[i]) && strchr(".:", domain.at[i]) == NULL)
            return false;
    return true;
}

static bool is_domain(struct bytes domain, bool utf8)
{
    if (is_literal(domain))
        return true;
    for (size_t i = 0; i < domain.len; i++) {
        char c = domain.at[i];
        bool edge = i == 0 || i + 1 == domain.len || domain.at[i - 1] == '.' || domain.at[i + 1] == '.';
        if (!is_alnum(c) && !(utf8 && (unsigned char)c >= 0x80) && (edge || (c != '-' && c != '.')))
            return false;
    }
    return domain.len > 0;
}

bool mailbox_is_valid(struct bytes address, bool utf8)
{
    size_t local = local_size(address, utf8);
    if (local == 0 || local > MAILBOX_LOCAL_SIZE_MAX || address.len > MAILBOX_SIZE_MAX || !bytes_is_utf8(address))
        return false;
    if (local == address.len)
        return bytes_eq_nocase(address, BYTES("postmaster"));
    return address.at[local] == '@' && is_domain(bytes_from(address, local + 1), utf8);
}

/* The '>' that ends the path: one in a quoted local part does not. */
static size_t path_end(struct bytes text)
{
    bool quoted = false;
    for (size_t i = 0; i < text.len; i++) {
        if (quoted && text.at[i] == '\\')
            i++;
        else if (text.at[i] == '"')
            quoted = !quoted;
        else if (text.at[i] == '>' && !quoted)
            return i;
    }
    return text.len;
}

bool mailbox_path_take(struct bytes *rest, bool utf8, struct bytes *ret_address)
{
    if (rest->len < 2 || rest->at[0] != '<')
        return false;
    struct bytes inner = bytes_from(*rest, 1);
    size_t end = path_end(inner);
    if (end == inner.len)
        return false;
    struct bytes behind = bytes_from(inner, end + 1), address = {inner.at, end};
    if (address.len > 0 && address.at[0] == '@') { /* "@relay,@other:jane@example.com" */
        const char *colon = memchr(address.at, ':', address.len);
        if (colon == NULL)
            return false;
        address = bytes_from(address, (size_t)(colon - address.at) + 1);
        if (address.len == 0)
            return false;
    }
    if (address.len > 0 && !mailbox_is_valid(address, utf8))
        return false;
    *rest = behind;
    *ret_address = address;
    return true;
}

/* ---- patterns ---- */

static struct bytes domain_of(struct bytes address)
{
    const char *at = address.at != NULL ? memrchr(address.at, '@', address.len) : NULL;
    return at != NULL ? bytes_from(address, (size_t)(at - address.at) + 1) : BYTES("");
}

static struct bytes local_of(struct bytes address)
{
    const char *at = address.at != NULL ? memrchr(address.at, '@', address.len) : NULL;
    return (struct bytes){address.at, at != NULL ? (size_t)(at - address.at) : address.len};
}

struct bytes mailbox_name(struct bytes address)
{
    struct bytes rest = local_of(address);
    return bytes_cut(&rest, '+');
}

bool mailbox_pattern_is_valid(struct bytes pattern)
{
    struct bytes local = local_of(pattern), domain = domain_of(pattern);
    if (local.len == pattern.len || (bytes_is(local, "*") && bytes_is(domain, "*")))
        return false;
    return (bytes_is(local, "*") || (local_size(local, true) == local.len && local.len <= MAILBOX_LOCAL_SIZE_MAX)) &&
           local.len > 0 && (bytes_is(domain, "*") || is_domain(domain, true)) && pattern.len <= MAILBOX_SIZE_MAX &&
           bytes_is_utf8(pattern);
}

bool mailbox_pattern_matches(struct bytes pattern, struct bytes address)
{
    struct bytes local = local_of(pattern), domain = domain_of(pattern);
    if (!bytes_is(domain, "*") && !bytes_eq_nocase(domain, domain_of(address)))
        return false;
    return bytes_is(local, "*") || bytes_eq_nocase(local, local_of(address)) || bytes_eq_nocase(local, mailbox_name(address));
}
