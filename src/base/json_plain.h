/*
 * json_plain: the inner loop of the reader and the writer. Eight bytes at a time over text that needs no attention.
 */
#ifndef SEMEL_BASE_JSON_PLAIN_H
#define SEMEL_BASE_JSON_PLAIN_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define JSON_PLAIN_HIGH UINT64_C(0x8080808080808080)

/* The high bit of each byte that is zero; bytes above the first zero may be marked wrongly. */
static inline uint64_t json_zero_bytes(uint64_t word)
{
    return (word - UINT64_C(0x0101010101010101)) & ~word & JSON_PLAIN_HIGH;
}

/* The first byte a string cannot simply contain: a quote, a backslash, a control character, a byte beyond ASCII; or `end`. */
static inline const char *json_skip_plain(const char *at, const char *end)
{
    while (end - at >= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        word = le64toh(word);
        uint64_t controls = (word - UINT64_C(0x2020202020202020)) & ~word & JSON_PLAIN_HIGH;
        uint64_t stop = (word & JSON_PLAIN_HIGH) | controls | json_zero_bytes(word ^ UINT64_C(0x2222222222222222)) |
                        json_zero_bytes(word ^ UINT64_C(0x5C5C5C5C5C5C5C5C));
        if (stop != 0)
            return at + __builtin_ctzll(stop) / 8;
        at += 8;
    }
    while (at < end && (unsigned char)*at >= 0x20 && (unsigned char)*at < 0x80 && *at != '"' && *at != '\\')
        at++;
    return at;
}

#endif
