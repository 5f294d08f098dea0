/*
 * parse: strict HTTP/1.1 framing (RFC 9112), pure. A gateway that decides by what a message says must never disagree with the
 * program in front of it about where the message ends, so everything doubtful is an error and the connection is closed:
 * exactly one framing (Content-Length or chunked, never both, never two), CRLF only, no obs-fold, no space before ':',
 * no NUL or other control bytes, exactly one valid Host, HTTP/1.1 or 1.0 only, origin-form targets only.
 * Nothing is copied: names and values point into the caller's bytes.
 */
#ifndef SEMEL_HTTP_PARSE_H
#define SEMEL_HTTP_PARSE_H

#include "base/bytes.h"
#include "base/status.h"

#define HTTP_HEADERS_MAX 100
#define HTTP_HEAD_SIZE_MAX (16 * 1024)

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_PATCH,
    HTTP_DELETE,
    HTTP_OPTIONS,
    HTTP_OTHER,
    HTTP_ANY /* of routes only */
};

struct http_header {
    struct bytes name, value; /* as sent; value without surrounding white space */
};

struct http_head {
    enum http_method method;
    struct bytes method_text;
    struct bytes target; /* as sent */
    struct bytes path;   /* before '?' */
    struct bytes query;  /* behind '?', without it; BYTES_NONE when there is none */
    int minor;           /* HTTP/1.minor */
    struct http_header headers[HTTP_HEADERS_MAX];
    size_t header_count;
    bool keep_alive;
    bool chunked;
    bool has_length;
    uint64_t length; /* when has_length */
    bool expect_continue;
};

/* OK: a whole head; `ret_size` is its length with the empty line. NOTHING: more bytes are needed.
 * INVALID: refuse with `ret_code` (400, 414, 431, 501, 505 …) and close. `scanned` (in/out, starts at 0) remembers how far the
 * search for the end of the head came, so that a slow sender costs linear work. `ret_head` is working space: it means nothing
 * unless OK. What is refused, and how, does not depend on how the bytes were cut into pieces. */
CHECKED enum status http_parse_head(struct bytes in, size_t *scanned, struct http_head *ret_head, size_t *ret_size, int *ret_code,
                                    struct why *why);

/* Incremental decoding of a chunked body in place. */
struct http_chunks {
    int state;
    uint64_t left;    /* of the current chunk */
    size_t line_size; /* of the current size line or trailer */
    size_t trailer_size;
};

/* Decodes from `in`, appending payload to `out` (a caller's buffer with `out_max` room left); says how much was consumed and
 * produced. OK: the last chunk and the trailer are read. NOTHING: more needed. INVALID: bad framing (400). FULL: over out_max (413). */
CHECKED enum status http_parse_chunks(struct http_chunks *chunks, struct bytes in, char *out, size_t out_max,
                                      size_t *ret_consumed, size_t *ret_produced, struct why *why);

/* First header of that name (case-insensitive), or BYTES_NONE. */
struct bytes http_header(const struct http_head *head, const char *name);

/* How many headers have that name. */
size_t http_header_count(const struct http_head *head, const char *name);

#endif
