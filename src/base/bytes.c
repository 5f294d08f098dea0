#include "base/bytes.h"

int bytes_cmp(struct bytes a, struct bytes b)
{
    size_t both = a.len < b.len ? a.len : b.len;
    int order = both > 0 ? memcmp(a.at, b.at, both) : 0;
    if (order != 0)
        return order;
    return (a.len > b.len) - (a.len < b.len);
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool bytes_eq_nocase(struct bytes a, struct bytes b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.at[i]) != lower(b.at[i]))
            return false;
    return true;
}

bool bytes_holds_nocase(struct bytes a, struct bytes part)
{
    for (size_t at = 0; at + part.len <= a.len; at++)
        if (bytes_eq_nocase((struct bytes){a.at + at, part.len}, part))
            return true;
    return false;
}

struct bytes bytes_cut(struct bytes *rest, char sep)
{
    struct bytes all = *rest;
    const char *found = all.len > 0 ? memchr(all.at, sep, all.len) : NULL;
    if (found == NULL) {
        *rest = bytes_from(all, all.len);
        return all;
    }
    struct bytes head = {all.at, (size_t)(found - all.at)};
    *rest = bytes_from(all, head.len + 1);
    return head;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct bytes bytes_trim(struct bytes a)
{
    while (a.len > 0 && is_blank(a.at[a.len - 1]))
        a.len--;
    while (a.len > 0 && is_blank(a.at[0])) {
        a.at++;
        a.len--;
    }
    return a;
}

bool bytes_to_u64(struct bytes a, uint64_t *ret_n)
{
    uint64_t n = 0;
    if (a.len == 0 || (a.len > 1 && a.at[0] == '0'))
        return false;
    for (size_t i = 0; i < a.len; i++) {
        unsigned digit = (unsigned)(unsigned char)a.at[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(n, 10U, &n) || __builtin_add_overflow(n, digit, &n))
            return false;
    }
    *ret_n = n;
    return true;
}

bool bytes_to_i64(struct bytes a, int64_t *ret_n)
{
    bool negative = a.len > 0 && a.at[0] == '-';
    uint64_t limit = (uint64_t)INT64_MAX + negative, n;
    if (!bytes_to_u64(negative ? bytes_from(a, 1) : a, &n) || n > limit)
        return false;
    /* INT64_MIN has no positive twin: negate one less, then step down. */
    *ret_n = !negative ? (int64_t)n : n == 0 ? 0 : -(int64_t)(n - 1) - 1;
    return true;
}

static bool is_tail(unsigned char c)
{
    return (c & 0xC0) == 0x80;
}

size_t bytes_utf8_char(struct bytes a, uint32_t *ret_code)
{
    const unsigned char *at = (const unsigned char *)a.at;
    if (a.len == 0)
        return 0;
    if (at[0] < 0x80) {
        *ret_code = at[0];
        return 1;
    }
    if (at[0] < 0xE0) {
        if (at[0] < 0xC2 || a.len < 2 || !is_tail(at[1]))
            return 0;
        *ret_code = (at[0] & 0x1FU) << 6 | (at[1] & 0x3FU);
        return 2;
    }
    if (at[0] < 0xF0) {
        if (a.len < 3 || !is_tail(at[1]) || !is_tail(at[2]))
            return 0;
        uint32_t code = (at[0] & 0x0FU) << 12 | (at[1] & 0x3FU) << 6 | (at[2] & 0x3FU);
        if (code < 0x800 || (code >= 0xD800 && code <= 0xDFFF))
            return 0;
        *ret_code = code;
        return 3;
    }
    if (at[0] > 0xF4 || a.len < 4 || !is_tail(at[1]) || !is_tail(at[2]) || !is_tail(at[3]))
        return 0;
    uint32_t code = (at[0] & 0x07U) << 18 | (at[1] & 0x3FU) << 12 | (at[2] & 0x3FU) << 6 | (at[3] & 0x3FU);
    if (code < 0x10000 || code > 0x10FFFF)
        return 0;
    *ret_code = code;
    return 4;
}

bool bytes_is_utf8(struct bytes a)
{
    while (a.len > 0) {
        uint32_t code;
        size_t len = bytes_utf8_char(a, &code);
        if (len == 0)
            return false;
        a = bytes_from(a, len);
    }
    return true;
}

int bytes_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void bytes_to_hex(struct bytes a, char *ret_hex)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < a.len; i++) {
        unsigned char c = (unsigned char)a.at[i];
        ret_hex[2 * i] = digits[c >> 4];
        ret_hex[2 * i + 1] = digits[c & 15];
    }
}
