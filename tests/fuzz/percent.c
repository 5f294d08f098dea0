/* Percent decoding against a second reading of the rules, and back. */
#include "fuzz.h"

#include "base/percent.h"
#include "http/parse.h"

static int digit(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *found = c != '\0' ? strchr(digits, c) : NULL;
    return found != NULL ? (int)(found - digits) % 16 : -1;
}

/* By the letter: each '%' is followed by two hexadecimal digits. -1 when it is not, or when a NUL comes out. */
static long reference(struct bytes in, bool plus, char *ret)
{
    long len = 0;
    for (size_t i = 0; i < in.len; i++) {
        int byte = (unsigned char)in.at[i];
        if (byte == '%') {
            if (i + 2 >= in.len || digit(in.at[i + 1]) < 0 || digit(in.at[i + 2]) < 0)
                return -1;
            byte = digit(in.at[i + 1]) * 16 + digit(in.at[i + 2]);
            i += 2;
        } else if (byte == '+' && plus) {
            byte = ' ';
        }
        if (byte == 0)
            return -1;
        ret[len++] = (char)byte;
    }
    return len;
}

/* Every byte escaped decodes to what it was. */
static void check_way_back(struct bytes text, bool plus)
{
    static const char upper[] = "0123456789ABCDEF";
    char *escaped = malloc(3 * text.len + 1), *again = malloc(3 * text.len + 1);
    size_t len = 0;
    ASSERT(escaped != NULL);
    ASSERT(again != NULL);
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        escaped[3 * i] = '%';
        escaped[3 * i + 1] = upper[byte >> 4];
        escaped[3 * i + 2] = upper[byte & 15];
    }
    ASSERT(percent_decode((struct bytes){escaped, 3 * text.len}, plus, again, &len));
    ASSERT(bytes_eq((struct bytes){again, len}, text));
    free(escaped);
    free(again);
}

FUZZ_TARGET(percent)(const uint8_t *data, size_t size)
{
    struct bytes in = fuzz_bytes(data, size);
    bool plus = fuzz_byte(&in) & 1;
    size_t len = SIZE_MAX;
    char *wanted = malloc(in.len + 1);
    ASSERT(wanted != NULL);
    struct bytes exact = fuzz_exact(in);
    char *room = (char *)fuzz_exact(in).at;
    bool decoded = percent_decode(exact, plus, room, &len);
    long reference_len = reference(exact, plus, wanted);
    bool good = reference_len >= 0 && bytes_is_utf8((struct bytes){wanted, (size_t)reference_len});
    ASSERT(decoded == good);
    if (decoded) {
        ASSERT(bytes_eq((struct bytes){room, len}, (struct bytes){wanted, (size_t)reference_len}));
        check_way_back((struct bytes){room, len}, plus);
    } else {
        ASSERT(len == SIZE_MAX);
    }
    free(room);
    free((char *)exact.at);
    free(wanted);
    return 0;
}
