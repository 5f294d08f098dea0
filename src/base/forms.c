#include "base/forms.h"

#include "base/reference.h"
#include "base/when.h"

/* Takes the number off the front. */
static bool take_number(struct bytes *rest, int64_t max, int64_t *ret_n)
{
    size_t len = 0;
    uint64_t n;
    while (len < rest->len && rest->at[len] >= '0' && rest->at[len] <= '9')
        len++;
    if (len == 0 || !bytes_to_u64((struct bytes){rest->at, len}, &n) || n > (uint64_t)max)
        return false;
    *rest = bytes_from(*rest, len);
    *ret_n = (int64_t)n;
    return true;
}

bool parse_status_range(struct bytes text, int *ret_min, int *ret_max)
{
    int64_t min, max;
    if (text.len == 3 && text.at[0] >= '1' && text.at[0] <= '9' && text.at[1] == 'x' && text.at[2] == 'x') {
        *ret_min = (text.at[0] - '0') * 100;
        *ret_max = *ret_min + 99;
        return true;
    }
    if (!take_number(&text, 999, &min))
        return false;
    max = min;
    if (text.len > 0 && text.at[0] == '-') {
        text = bytes_from(text, 1);
        if (!take_number(&text, 999, &max))
            return false;
    }
    if (text.len > 0 || max < min)
        return false;
    *ret_min = (int)min;
    *ret_max = (int)max;
    return true;
}

bool parse_rate(struct bytes text, int64_t *ret_calls, int64_t *ret_per_us)
{
    int64_t calls, per_us;
    if (!take_number(&text, 1000000, &calls) || calls == 0 || text.len < 2 || text.at[0] != '/')
        return false;
    text = bytes_from(text, 1);
    if (bytes_is(text, "s"))
        per_us = WHEN_SECOND;
    else if (bytes_is(text, "m"))
        per_us = WHEN_MINUTE;
    else if (bytes_is(text, "h"))
        per_us = WHEN_HOUR;
    else if (!when_parse_duration(text, &per_us) || per_us < WHEN_MS || per_us > WHEN_DAY)
        return false;
    *ret_calls = calls;
    *ret_per_us = per_us;
    return true;
}

bool parse_size(struct bytes text, int64_t *ret_bytes)
{
    int64_t n;
    if (!take_number(&text, SIZE_FORM_MAX, &n))
        return false;
    if (bytes_is(text, "KiB"))
        n *= 1024;
    else if (bytes_is(text, "MiB"))
        n *= 1024 * 1024;
    else if (text.len > 0)
        return false;
    if (n < 1024 || n > SIZE_FORM_MAX)
        return false;
    *ret_bytes = n;
    return true;
}

static bool is_status_range(struct bytes text)
{
    int min, max;
    return parse_status_range(text, &min, &max);
}

static void explain_status_range(struct bytes text, struct why *ret)
{
    struct bytes shown = yaml_clip(text);
    why_set(ret, INVALID, "a status is a number, a class or a range, such as 404, 5xx or 500-504, not '%.*s'", BYTES_ARG(shown));
}

static bool is_rate(struct bytes text)
{
    int64_t calls, per_us;
    return parse_rate(text, &calls, &per_us);
}

static void explain_rate(struct bytes text, struct why *ret)
{
    struct bytes shown = yaml_clip(text);
    why_set(ret, INVALID, "rate is calls per time, such as 10/s, 100/10s or 60/m, not '%.*s'", BYTES_ARG(shown));
}

static bool is_size(struct bytes text)
{
    int64_t bytes;
    return parse_size(text, &bytes);
}

static void explain_size(struct bytes text, struct why *ret)
{
    struct bytes shown = yaml_clip(text);
    why_set(ret, INVALID, "a size is 1KiB to 64MiB, such as 256KiB, not '%.*s'", BYTES_ARG(shown));
}

static bool is_host_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_' ||
           c == '[' || c == ']' || c == ':';
}

bool is_host(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_host_char(text.at[i]))
            return false;
    return text.len >= 1 && text.len <= 255;
}

/* http:// or https://, a host, perhaps a port and a path; no user, query or fragment. */
static bool is_url(struct bytes text)
{
    struct bytes rest;
    if (bytes_starts(text, BYTES("https://")))
        rest = bytes_from(text, 8);
    else if (bytes_starts(text, BYTES("http://")))
        rest = bytes_from(text, 7);
    else
        return false;
    struct bytes path = rest, host = bytes_cut(&path, '/');
    if (!is_host(host))
        return false;
    for (size_t i = 0; i < path.len; i++)
        if ((unsigned char)path.at[i] <= 0x20 || (unsigned char)path.at[i] >= 0x7F || strchr("?#@\\", path.at[i]) != NULL)
            return false;
    return host.at[0] != ':' && text.len <= 1024 && memmem(path.at, path.len, "..", 2) == NULL;
}

static void explain_url(struct bytes text, struct why *ret)
{
    (void)text; /* it may hold a password */
    why_set(ret, INVALID, "url wants a base URL such as https://example.com/api: without user, query, fragment or spaces");
}

static bool is_secret(struct bytes text)
{
    struct secret_reference reference;
    return secret_reference_parse(text, &reference, NULL) == OK;
}

static void explain_secret(struct bytes text, struct why *ret)
{
    struct secret_reference reference;
    enum status status = secret_reference_parse(text, &reference, ret);
    ASSERT(status == INVALID);
}

static bool is_token(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!letter && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
            return false;
    }
    return text.len >= 1 && text.len <= 128;
}

static void explain_token(struct bytes text, struct why *ret)
{
    struct bytes shown = yaml_clip(text);
    why_set(ret, INVALID, "the name of a header is letters, digits and '-', such as Idempotency-Key, not '%.*s'",
            BYTES_ARG(shown));
}

/* One printable line. */
static bool is_line(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] < 0x20 || text.at[i] == 0x7F)
            return false;
    return text.len >= 1 && text.len <= 512;
}

static void explain_line(struct bytes text, struct why *ret)
{
    (void)text;
    why_set(ret, INVALID, "this wants one line of at most 512 printable characters");
}

const struct setting_form status_form = {"a status", "status", is_status_range, explain_status_range},
                          rate_form = {"a rate", "rate", is_rate, explain_rate},
                          size_form = {"a size", "size", is_size, explain_size}, url_form = {"a URL", "URL", is_url, explain_url},
                          secret_form = {"a reference", "env:, file: or secret:", is_secret, explain_secret},
                          header_form = {"a header name", "header", is_token, explain_token},
                          line_form = {"a line of text", "text", is_line, explain_line};
