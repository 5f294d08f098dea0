/*
 * bytes: a pointer and a length. Input is referred to, not copied; nothing here owns memory.
 */
#ifndef SEMEL_BASE_BYTES_H
#define SEMEL_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* `at == NULL` means "absent" (SQL NULL, a field that was not sent); `len == 0` with `at` means empty. */
struct bytes {
    const char *at;
    size_t len;
};

/* A header, a parameter, a field. */
struct pair {
    struct bytes name, value;
};

#define BYTES(literal) ((struct bytes){(literal), sizeof(literal) - 1})
#define BYTES_NONE ((struct bytes){NULL, 0})
/* For printf("%.*s", BYTES_ARG(b)). */
#define BYTES_ARG(b) (int)(b).len, (b).at

static inline struct bytes bytes_of(const char *cstr)
{
    return (struct bytes){cstr, cstr != NULL ? strlen(cstr) : 0};
}

static inline bool bytes_eq(struct bytes a, struct bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static inline bool bytes_is(struct bytes a, const char *cstr)
{
    return bytes_eq(a, bytes_of(cstr));
}

/* memcmp order, shorter first. */
int bytes_cmp(struct bytes a, struct bytes b);

/* ASCII only: for header names, schemes, units. */
bool bytes_eq_nocase(struct bytes a, struct bytes b);

/* True when `part` stands somewhere in `a`; ASCII letters in either case. */
bool bytes_holds_nocase(struct bytes a, struct bytes part);

static inline bool bytes_starts(struct bytes a, struct bytes prefix)
{
    return a.len >= prefix.len && (prefix.len == 0 || memcmp(a.at, prefix.at, prefix.len) == 0);
}

static inline struct bytes bytes_from(struct bytes a, size_t start)
{
    if (a.at == NULL)
        return a;
    return start >= a.len ? (struct bytes){a.at + a.len, 0} : (struct bytes){a.at + start, a.len - start};
}

/* Splits `*rest` at the first `sep`: returns what is before it and moves `*rest` behind it. */
struct bytes bytes_cut(struct bytes *rest, char sep);

/* Without leading and trailing spaces and tabs. */
struct bytes bytes_trim(struct bytes a);

/* Strict: the whole of `a` is a decimal number without sign, leading zeros allowed only for "0" itself. */
bool bytes_to_u64(struct bytes a, uint64_t *ret_n);

/* Strict decimal with an optional '-'. */
bool bytes_to_i64(struct bytes a, int64_t *ret_n);

/* The length of the well-formed UTF-8 character that `a` begins with, or 0 when there is none. */
size_t bytes_utf8_char(struct bytes a, uint32_t *ret_code);

/* True when `a` is well-formed UTF-8 (no surrogates, no overlong forms, at most U+10FFFF). */
bool bytes_is_utf8(struct bytes a);

/* 0 to 15, or -1 when `c` is no hex digit. */
int bytes_hex_digit(char c);

void bytes_to_hex(struct bytes a, char *ret_hex); /* writes 2 * len characters, no NUL */

#endif
