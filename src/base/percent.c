#include "base/percent.h"

bool percent_decode(struct bytes in, bool plus, char *ret, size_t *ret_len)
{
    size_t len = 0;
    for (size_t i = 0; i < in.len; i++) {
        char c = in.at[i];
        if (c == '%') {
            int high = in.len - i > 2 ? bytes_hex_digit(in.at[i + 1]) : -1;
            int low = in.len - i > 2 ? bytes_hex_digit(in.at[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        if (c == '\0')
            return false;
        ret[len++] = c;
    }
    if (!bytes_is_utf8((struct bytes){ret, len}))
        return false;
    *ret_len = len;
    return true;
}

struct bytes percent_encode(struct bytes text, struct arena *arena)
{
    static const char digits[] = "0123456789ABCDEF";
    char *out = arena_alloc(arena, 3 * text.len + 1);
    size_t len = 0;
    if (out == NULL)
        return BYTES_NONE;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                     c == '_' || c == '~';
        if (plain) {
            out[len++] = (char)c;
            continue;
        }
        out[len++] = '%';
        out[len++] = digits[c >> 4];
        out[len++] = digits[c & 15];
    }
    out[len] = '\0';
    return (struct bytes){out, len};
}
