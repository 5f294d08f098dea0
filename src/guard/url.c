#include "guard/url.h"

#define PORT_MAX 65535

const char *const guard_scheme_names[] = {
    [GUARD_HTTP] = "http", [GUARD_HTTPS] = "https", [GUARD_SMTP] = "smtp", [GUARD_SMTPS] = "smtps", NULL};
static const uint16_t scheme_ports[] = {[GUARD_HTTP] = 80, [GUARD_HTTPS] = 443, [GUARD_SMTP] = 587, [GUARD_SMTPS] = 465};

static enum status bad(struct why *why, const char *sentence)
{
    return why_set(why, INVALID, "%s", sentence);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* ---- characters ---- */

static enum status check_characters(struct bytes text, struct why *why)
{
    if (text.len > GUARD_URL_MAX)
        return why_set(why, INVALID, "the URL is longer than %d bytes", GUARD_URL_MAX);
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c <= ' ' || c == 0x7f)
            return bad(why, "the URL contains a space or a control character; write it as %20 and so on");
        if (c > 0x7f)
            return bad(why, "the URL contains a character outside ASCII; write hosts as xn--… and the rest with %XX");
        if (c == '\\')
            return bad(why, "the URL contains a backslash; write a slash");
        if (c == '#')
            return bad(why, "the URL has a fragment (#…), which is never sent; leave it out");
        if (strchr("\"<>^`{|}", c) != NULL)
            return why_set(why, INVALID, "the URL contains '%c'; write it as %%%02X", c, c);
        if (c == '%' && (text.len - i < 3 || !is_hex(text.at[i + 1]) || !is_hex(text.at[i + 2])))
            return bad(why, "the URL has a % without two hexadecimal digits behind it");
    }
    return OK;
}

/* ---- the parts ---- */

static enum status read_scheme(struct bytes *rest, enum guard_scheme *ret_scheme, struct why *why)
{
    for (int i = 0; guard_scheme_names[i] != NULL; i++) {
        struct bytes name = bytes_of(guard_scheme_names[i]), start = {rest->at, name.len};
        if (rest->len >= name.len + 3 && bytes_eq_nocase(start, name) && memcmp(rest->at + name.len, "://", 3) == 0) {
            *ret_scheme = (enum guard_scheme)i;
            *rest = bytes_from(*rest, name.len + 3);
            return OK;
        }
    }
    return bad(why, "the URL has to begin with http://, https://, smtp:// or smtps://");
}

static enum status read_port(struct bytes text, uint16_t *ret_port, struct why *why)
{
    uint64_t port = 0;
    if (text.len > 5 || !bytes_to_u64(text, &port) || port < 1 || port > PORT_MAX)
        return bad(why, "the port of the URL is not a number from 1 to 65535");
    *ret_port = (uint16_t)port;
    return OK;
}

static enum status check_label(struct bytes label, struct why *why)
{
    if (label.len == 0)
        return bad(why, "the host of the URL has an empty part: two dots, or one at the start or the end");
    if (label.len > 63)
        return bad(why, "the host of the URL has a part of more than 63 characters");
    for (size_t i = 0; i < label.len; i++)
        if (!is_letter(label.at[i]) && !is_digit(label.at[i]) && label.at[i] != '-' && label.at[i] != '_')
            return bad(why, "the host of the URL is not a name of letters, digits and '-', nor an address");
    if (label.at[0] == '-' || label.at[label.len - 1] == '-')
        return bad(why, "a part of the URL's host begins or ends with '-'");
    return OK;
}

/* Resolvers take "127.1", "0x7f.1" and "2130706433" for addresses: whatever ends in something like a number is one. */
static bool looks_like_number(struct bytes label)
{
    bool digits = true;
    for (size_t i = 0; i < label.len; i++)
        digits = digits && is_digit(label.at[i]);
    return digits || (label.len >= 2 && label.at[0] == '0' && (label.at[1] == 'x' || label.at[1] == 'X'));
}

static enum status read_name(struct bytes host, struct guard_url *url, struct why *why)
{
    struct bytes rest = host, label;
    if (host.len == 0)
        return bad(why, "the URL has no host");
    if (host.len > GUARD_HOST_MAX)
        return why_set(why, INVALID, "the host of the URL is longer than %d characters", GUARD_HOST_MAX);
    if (host.at[host.len - 1] == '.')
        return bad(why, "the host of the URL ends in a dot; leave it out");
    do {
        label = bytes_cut(&rest, '.');
        TRY(check_label(label, why));
    } while (rest.len > 0);
    if (looks_like_number(label)) {
        url->literal = true;
        if (!guard_address_parse(host, &url->address))
            return bad(why, "the host of the URL is an address in an odd form; write four decimal numbers, such as 192.0.2.1");
    }
    url->host = host;
    return OK;
}

static enum status read_v6(struct bytes host, struct guard_url *url, struct why *why)
{
    if (memchr(host.at, ':', host.len) == NULL || !guard_address_parse(host, &url->address))
        return bad(why, "between the brackets of the URL is no IPv6 address (a zone such as %eth0 is refused too)");
    url->literal = true;
    url->host = host;
    return OK;
}

static enum status read_authority(struct bytes authority, struct guard_url *url, struct why *why)
{
    if (memchr(authority.at, '@', authority.len) != NULL)
        return bad(why, "the URL contains credentials (an '@'); give them as a secret instead");
    struct bytes port = BYTES_NONE, host = authority;
    if (authority.len > 0 && authority.at[0] == '[') {
        const char *end = memchr(authority.at, ']', authority.len);
        if (end == NULL)
            return bad(why, "the URL has a '[' without a ']'");
        host = (struct bytes){authority.at + 1, (size_t)(end - authority.at - 1)};
        port = bytes_from(authority, host.len + 2);
        if (port.len > 0 && port.at[0] != ':')
            return bad(why, "behind the ']' of the URL is something else than a port");
        TRY(read_v6(host, url, why));
    } else {
        const char *colon = memchr(authority.at, ':', authority.len);
        if (colon != NULL) {
            host.len = (size_t)(colon - authority.at);
            port = bytes_from(authority, host.len);
        }
        TRY(read_name(host, url, why));
    }
    return port.len > 0 ? read_port(bytes_from(port, 1), &url->port, why) : OK;
}

enum status guard_url_parse(struct bytes text, struct guard_url *ret_url, struct why *why)
{
    struct guard_url url = {0};
    struct bytes rest = text;
    TRY(check_characters(text, why));
    TRY(read_scheme(&rest, &url.scheme, why));
    url.port = scheme_ports[url.scheme];
    size_t len = 0;
    while (len < rest.len && rest.at[len] != '/' && rest.at[len] != '?')
        len++;
    TRY(read_authority((struct bytes){rest.at, len}, &url, why));
    url.target = bytes_from(rest, len);
    if (url.scheme >= GUARD_SMTP && url.target.len > 0 && !bytes_is(url.target, "/"))
        return bad(why, "the URL of a mail server has no path");
    *ret_url = url;
    return OK;
}
