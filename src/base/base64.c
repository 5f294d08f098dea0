#include "base/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

struct bytes base64_encode(struct bytes bytes, struct arena *arena)
{
    size_t len = (bytes.len + 2) / 3 * 4;
    char *at = arena_alloc(arena, len + 1);
    if (at == NULL)
        return BYTES_NONE;
    for (size_t i = 0, o = 0; i < bytes.len; i += 3, o += 4) {
        size_t left = bytes.len - i;
        const unsigned char *in = (const unsigned char *)bytes.at + i;
        uint32_t n = (uint32_t)in[0] << 16 | (left > 1 ? (uint32_t)in[1] << 8 : 0) | (left > 2 ? in[2] : 0);
        at[o] = digits[n >> 18];
        at[o + 1] = digits[n >> 12 & 63];
        at[o + 2] = left > 1 ? digits[n >> 6 & 63] : '=';
        at[o + 3] = left > 2 ? digits[n & 63] : '=';
    }
    at[len] = '\0';
    return (struct bytes){at, len};
}

static int value_of(char c)
{
    const char *at = c != '\0' ? strchr(digits, c) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

/* Four characters into 24 bits; the padding counts as zeros. False when one is no digit or a bit is left over. */
static bool decode_four(const char *in, size_t padding, uint32_t *ret)
{
    uint32_t n = 0;
    for (size_t i = 0; i < 4; i++) {
        int value = i >= 4 - padding ? 0 : value_of(in[i]);
        if (value < 0)
            return false;
        n = n << 6 | (uint32_t)value;
    }
    *ret = n;
    return (padding == 0) || (padding == 1 && (n & 0xff) == 0) || (padding == 2 && (n & 0xffff) == 0);
}

struct bytes base64_decode(struct bytes text, struct arena *arena)
{
    if (text.len % 4 != 0)
        return BYTES_NONE;
    size_t padding = text.len > 0 && text.at[text.len - 1] == '=' ? (text.at[text.len - 2] == '=' ? 2 : 1) : 0;
    size_t len = text.len / 4 * 3 - padding;
    char *at = arena_alloc(arena, len + 4);
    if (at == NULL)
        return BYTES_NONE;
    for (size_t i = 0, o = 0; i < text.len; i += 4, o += 3) {
        uint32_t n;
        if (!decode_four(text.at + i, i + 4 == text.len ? padding : 0, &n))
            return BYTES_NONE;
        at[o] = (char)(n >> 16);
        at[o + 1] = (char)(n >> 8);
        at[o + 2] = (char)n;
    }
    at[len] = '\0';
    return (struct bytes){at, len};
}
