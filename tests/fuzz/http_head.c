/*
 * Request heads. Where the bytes are cut changes nothing, neither the answer nor the refusal; an accepted head written out again
 * is read the same; and a careless reader, who takes bare LF and spaces around names, finds the same one framing in it.
 */
#include "fuzz.h"

#include <ctype.h>
#include <strings.h>

#include "base/buf.h"
#include "http/parse.h"

enum { BYTEWISE_MAX = 768, CUTS = 24, SIZE_MAX_INPUT = 20 * 1024 };

struct read {
    enum status status;
    size_t size;
    int code;
    struct why why;
    struct http_head head;
};

static void read_from(struct bytes in, size_t *scanned, struct read *ret)
{
    ret->size = 0;
    ret->code = 0;
    ret->why.text[0] = '\0';
    ret->status = http_parse_head(in, scanned, &ret->head, &ret->size, &ret->code, &ret->why);
    ASSERT(ret->status == OK || ret->status == NOTHING || ret->status == INVALID);
    ASSERT(ret->status == OK ? ret->size > 0 && ret->size <= in.len : ret->size == 0);
    ASSERT((ret->status == INVALID) == (ret->code >= 400 && ret->code < 600));
    ASSERT((ret->status == INVALID) == (ret->why.text[0] != '\0'));
}

static void check_same_head(const struct http_head *a, const struct http_head *b)
{
    ASSERT(a->method == b->method);
    ASSERT(bytes_eq(a->method_text, b->method_text));
    ASSERT(bytes_eq(a->target, b->target));
    ASSERT(bytes_eq(a->path, b->path));
    ASSERT(bytes_eq(a->query, b->query));
    ASSERT((a->query.at == NULL) == (b->query.at == NULL));
    ASSERT(a->minor == b->minor);
    ASSERT(a->keep_alive == b->keep_alive);
    ASSERT(a->chunked == b->chunked);
    ASSERT(a->has_length == b->has_length);
    ASSERT(a->length == b->length);
    ASSERT(a->expect_continue == b->expect_continue);
    ASSERT(a->header_count == b->header_count);
    for (size_t i = 0; i < a->header_count; i++) {
        ASSERT(bytes_eq(a->headers[i].name, b->headers[i].name));
        ASSERT(bytes_eq(a->headers[i].value, b->headers[i].value));
    }
}

static void check_same(const struct read *a, const struct read *b)
{
    ASSERT(a->status == b->status);
    ASSERT(a->size == b->size);
    ASSERT(a->code == b->code);
    ASSERT(strcmp(a->why.text, b->why.text) == 0);
    if (a->status == OK)
        check_same_head(&a->head, &b->head);
}

/* The next place to cut; every byte when there are few. */
static size_t next_cut(size_t at, size_t len, uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    size_t step = len <= BYTEWISE_MAX ? 1 : 1 + (*seed >> 8) % (2 * len / CUTS);
    return at + step < len ? at + step : len;
}

/* The bytes come in pieces, as from a slow sender; a second reader starts anew at each piece. */
static void check_cuts(struct bytes in, const struct read *whole)
{
    static struct read slow, anew;
    uint32_t seed = (uint32_t)in.len;
    size_t scanned = 0;
    for (size_t at = 0; at < in.len;) {
        at = next_cut(at, in.len, &seed);
        size_t from_start = 0;
        struct bytes piece = fuzz_exact((struct bytes){in.at, at});
        read_from(piece, &scanned, &slow);
        read_from(piece, &from_start, &anew);
        check_same(&slow, &anew);
        bool answered = slow.status != NOTHING;
        if (answered)
            check_same(&slow, whole);
        free((char *)piece.at);
        if (answered)
            return;
    }
    ASSERT(in.len == 0 || whole->status == NOTHING);
}

static void check_written_again(const struct http_head *head)
{
    static struct read again;
    struct buf buf;
    size_t scanned = 0;
    buf_init(&buf, HTTP_HEAD_SIZE_MAX);
    buf_add(&buf, head->method_text);
    buf_add_char(&buf, ' ');
    buf_add(&buf, head->path);
    if (head->query.at != NULL) {
        buf_add_char(&buf, '?');
        buf_add(&buf, head->query);
    }
    buf_printf(&buf, " HTTP/1.%d\r\n", head->minor);
    for (size_t i = 0; i < head->header_count; i++) {
        buf_add(&buf, head->headers[i].name);
        buf_add_char(&buf, ':');
        buf_add(&buf, head->headers[i].value);
        buf_add_cstr(&buf, "\r\n");
    }
    buf_add_cstr(&buf, "\r\n");
    ASSERT(!buf.failed);
    read_from(buf_bytes(&buf), &scanned, &again);
    ASSERT(again.status == OK);
    ASSERT(again.size == buf.len);
    check_same_head(&again.head, head);
    buf_release(&buf);
}

struct careless {
    size_t hosts, lengths, encodings;
    struct bytes length, encoding;
};

static struct bytes strip(struct bytes text)
{
    while (text.len > 0 && isspace((unsigned char)text.at[text.len - 1]))
        text.len--;
    while (text.len > 0 && isspace((unsigned char)text.at[0]))
        text = bytes_from(text, 1);
    return text;
}

static bool is_named(struct bytes name, const char *wanted)
{
    return name.len == strlen(wanted) && strncasecmp(name.at, wanted, name.len) == 0;
}

static struct careless read_carelessly(struct bytes head)
{
    struct careless found = {0};
    while (head.len > 0) {
        struct bytes line = bytes_cut(&head, '\n');
        struct bytes name = strip(bytes_cut(&line, ':'));
        found.hosts += is_named(name, "host");
        if (is_named(name, "content-length")) {
            found.lengths++;
            found.length = strip(line);
        } else if (is_named(name, "transfer-encoding")) {
            found.encodings++;
            found.encoding = strip(line);
        }
    }
    return found;
}

static void check_framing(struct bytes text, const struct http_head *head)
{
    struct careless found = read_carelessly(text);
    ASSERT(found.hosts == 1 || (found.hosts == 0 && head->minor == 0));
    ASSERT(found.lengths + found.encodings <= 1);
    ASSERT(head->has_length == (found.lengths == 1));
    ASSERT(head->chunked == (found.encodings == 1));
    ASSERT(!(head->chunked && head->minor == 0));
    if (head->has_length) {
        char digits[32] = {0}, again[32];
        ASSERT(found.length.len < sizeof digits);
        memcpy(digits, found.length.at, found.length.len);
        snprintf(again, sizeof again, "%llu", (unsigned long long)head->length);
        ASSERT(strcmp(digits, again) == 0);
    }
    ASSERT(!head->chunked || is_named(found.encoding, "chunked"));
}

static void check_bytes(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        ASSERT(c >= ' ' || c == '\t' || c == '\r' || c == '\n');
        ASSERT(c != 0x7f);
        ASSERT(c != '\n' || (i > 0 && text.at[i - 1] == '\r'));
        ASSERT(c != '\r' || (i + 1 < text.len && text.at[i + 1] == '\n'));
    }
}

FUZZ_TARGET(http_head)(const uint8_t *data, size_t size)
{
    static struct read whole;
    struct bytes in = fuzz_bytes(data, size < SIZE_MAX_INPUT ? size : SIZE_MAX_INPUT);
    size_t scanned = 0;
    read_from(in, &scanned, &whole);
    check_cuts(in, &whole);
    if (whole.status != OK)
        return 0;
    struct bytes text = {in.at, whole.size};
    ASSERT(whole.head.header_count <= HTTP_HEADERS_MAX);
    check_bytes(text);
    check_framing(text, &whole.head);
    check_written_again(&whole.head);
    return 0;
}
