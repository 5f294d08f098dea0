/*
 * Chunked bodies. However the bytes are cut, the answer is the same, and never longer than the room for it; the payload is what a
 * second, simple reader finds; what was encoded is decoded; and decoding in place, over its own input, gives the same bytes.
 */
#include "fuzz.h"

#include "base/buf.h"
#include "http/parse.h"

enum { SIZE_MAX_INPUT = 8192, OUT_MAX = 4096 };

struct decoded {
    enum status status;
    size_t consumed, len;
    char *at;
};

/* Gives `step` bytes at a time (0: all at once) until there is an answer. */
static struct decoded decode(struct bytes in, size_t step, size_t out_max)
{
    struct http_chunks chunks = {0};
    struct decoded decoded = {.status = NOTHING, .at = malloc(out_max > 0 ? out_max : 1)};
    struct why why;
    ASSERT(decoded.at != NULL);
    while (decoded.status == NOTHING && decoded.consumed < in.len) {
        struct bytes piece = bytes_from(in, decoded.consumed);
        size_t consumed = 0, produced = 0;
        if (step > 0 && piece.len > step)
            piece.len = step;
        struct bytes exact = fuzz_exact(piece);
        decoded.status =
            http_parse_chunks(&chunks, exact, decoded.at + decoded.len, out_max - decoded.len, &consumed, &produced, &why);
        free((char *)exact.at);
        ASSERT(consumed <= piece.len);
        ASSERT(produced <= consumed);
        ASSERT(produced <= out_max - decoded.len);
        ASSERT(decoded.status != NOTHING || consumed == piece.len);
        decoded.consumed += consumed;
        decoded.len += produced;
    }
    return decoded;
}

static void check_same(const struct decoded *a, const struct decoded *b)
{
    ASSERT(a->status == b->status);
    if (a->status != OK && a->status != NOTHING)
        return;
    ASSERT(a->consumed == b->consumed);
    ASSERT(a->len == b->len);
    ASSERT(a->len == 0 || memcmp(a->at, b->at, a->len) == 0);
}

static void check_cut(struct bytes in, size_t step, const struct decoded *whole)
{
    struct decoded cut = decode(in, step, OUT_MAX);
    check_same(&cut, whole);
    free(cut.at);
}

/* A body fits room of exactly its size, and no less. */
static void check_room(struct bytes in, const struct decoded *whole)
{
    struct decoded exact = decode(in, 0, whole->len);
    check_same(&exact, whole);
    free(exact.at);
    if (whole->len == 0)
        return;
    struct decoded tight = decode(in, 3, whole->len - 1);
    ASSERT(tight.status == FULL);
    free(tight.at);
}

/* An accepted body again, read the simple way: size lines, data, an empty line in the end. */
static void check_simply(struct bytes in, const struct decoded *whole)
{
    size_t at = 0, len = 0, size;
    do {
        char line[24] = {0};
        size_t line_len = 0;
        while (in.at[at] != '\r' && line_len < sizeof line - 1)
            line[line_len++] = in.at[at++];
        ASSERT(line_len > 0);
        ASSERT(strspn(line, "0123456789abcdefABCDEF") == line_len);
        size = (size_t)strtoull(line, NULL, 16);
        ASSERT(memcmp(in.at + at, "\r\n", 2) == 0);
        at += 2;
        ASSERT(size <= whole->consumed - at);
        ASSERT(size == 0 || memcmp(in.at + at, whole->at + len, size) == 0);
        at += size;
        len += size;
        ASSERT(size == 0 || memcmp(in.at + at, "\r\n", 2) == 0);
        at += size > 0 ? 2 : 0;
    } while (size > 0);
    ASSERT(len == whole->len);
    ASSERT(whole->consumed >= at + 2);
    ASSERT(memcmp(in.at + whole->consumed - 2, "\r\n", 2) == 0);
    ASSERT(memchr(in.at + at, '\0', whole->consumed - at) == NULL);
}

static void check_in_place(struct bytes in, const struct decoded *whole)
{
    struct http_chunks chunks = {0};
    struct why why;
    size_t consumed = 0, produced = 0;
    char *at = (char *)fuzz_exact(in).at;
    enum status status = http_parse_chunks(&chunks, (struct bytes){at, in.len}, at, OUT_MAX, &consumed, &produced, &why);
    struct decoded decoded = {status, consumed, produced, at};
    if (in.len > 0)
        check_same(&decoded, whole);
    free(at);
}

/* The input as payload, in chunks whose sizes it names itself. */
static void check_encoded(struct bytes payload)
{
    struct buf buf;
    buf_init(&buf, 16 * SIZE_MAX_INPUT);
    for (struct bytes rest = payload; rest.len > 0;) {
        size_t size = (size_t)(unsigned char)rest.at[0] % 19 + 1;
        size = size < rest.len ? size : rest.len;
        buf_printf(&buf, rest.len % 2 == 0 ? "%zx\r\n" : "%04zX\r\n", size);
        buf_add(&buf, (struct bytes){rest.at, size});
        buf_add_cstr(&buf, "\r\n");
        rest = bytes_from(rest, size);
    }
    buf_add_cstr(&buf, "0\r\nX-A: b\r\n\r\nGET /");
    struct decoded decoded = decode(buf_bytes(&buf), 7, payload.len);
    ASSERT(decoded.status == OK);
    ASSERT(decoded.consumed == buf.len - 5);
    ASSERT(bytes_eq((struct bytes){decoded.at, decoded.len}, payload));
    free(decoded.at);
    buf_release(&buf);
}

FUZZ_TARGET(http_chunks)(const uint8_t *data, size_t size)
{
    struct bytes in = fuzz_bytes(data, size < SIZE_MAX_INPUT ? size : SIZE_MAX_INPUT);
    struct decoded whole = decode(in, 0, OUT_MAX);
    if (whole.status == OK) {
        check_simply(in, &whole);
        check_room(in, &whole);
    }
    check_cut(in, 1, &whole);
    check_cut(in, 2 + (in.len > 0 ? (size_t)(unsigned char)in.at[in.len - 1] % 29 : 0), &whole);
    check_in_place(in, &whole);
    check_encoded(in);
    free(whole.at);
    return 0;
}
