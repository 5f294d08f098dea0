#include "http/parse.h"

#include "base/percent.h"
#include "check.h"

#define LINE "GET / HTTP/1.1\r\n"
#define HOST "Host: a\r\n"
#define POST "POST /x HTTP/1.1\r\nHost: a\r\n"
#define END "\r\n"

struct refused {
    int code;
    struct bytes text;
};

#define R(code, text)                \
    {                                \
        (code),                      \
        {                            \
            (text), sizeof(text) - 1 \
        }                            \
    }

static const struct refused refused[] = {
    /* line ends */
    R(400, "GET / HTTP/1.1\nHost: a\n\n"),
    R(400, "GET / HTTP/1.1\nHost: a\r\n\r\n"),
    R(400, "GET / HTTP/1.1\r\nHost: a\n\r\n"),
    R(400, LINE HOST "\n"),
    R(400, LINE "Host: a\r\nX: y\n\r\n"),
    R(400, LINE "Host: a\rX: y\r\n\r\n"),
    R(400, "GET / HTTP/1.1\rHost: a\r\r"
           "\r\n\r\n"),
    R(400, LINE HOST "X: a\r\r\n\r\n"),
    R(400, "\n" LINE HOST END),
    R(400, "\r\n\r\n" LINE HOST END),
    R(400, "\r" LINE HOST END),
    R(400, "\r\r\n" LINE HOST END),
    /* the request line */
    R(400, "GET /\r\n\r\n"),
    R(400, "GET\r\n\r\n"),
    R(400, "GET  / HTTP/1.1\r\n" HOST END),
    R(400, "GET /  HTTP/1.1\r\n" HOST END),
    R(400, "GET / HTTP/1.1 \r\n" HOST END),
    R(400, " GET / HTTP/1.1\r\n" HOST END),
    R(400, "GET\t/ HTTP/1.1\r\n" HOST END),
    R(400, "GET /\tHTTP/1.1\r\n" HOST END),
    R(400, "G@T / HTTP/1.1\r\n" HOST END),
    R(400, "G\0T / HTTP/1.1\r\n" HOST END),
    R(400, "GETGETGETGETGETGETGETGETGETGETGETGET / HTTP/1.1\r\n" HOST END),
    R(400, "GET / http/1.1\r\n" HOST END),
    R(400, "GET / HTTP/1.1x\r\n" HOST END),
    R(400, "GET / HTTP/11\r\n" HOST END),
    R(400, "GET / HTTP/1.10\r\n" HOST END),
    R(400, "GET / HTTP/ 1.1\r\n" HOST END),
    R(400, "GET / HTTPS/1.1\r\n" HOST END),
    R(505, "GET / HTTP/1.2\r\n" HOST END),
    R(505, "GET / HTTP/2.0\r\n" HOST END),
    R(505, "GET / HTTP/0.9\r\n" HOST END),
    R(505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    R(400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    /* the target */
    R(400, "GET http://a/ HTTP/1.1\r\n" HOST END),
    R(400, "GET a HTTP/1.1\r\n" HOST END),
    R(400, "CONNECT a:443 HTTP/1.1\r\n" HOST END),
    R(400, "OPTIONS * HTTP/1.1\r\n" HOST END),
    R(400, "GET ?a HTTP/1.1\r\n" HOST END),
    R(400, "GET /a#b HTTP/1.1\r\n" HOST END),
    R(400, "GET /?a#b HTTP/1.1\r\n" HOST END),
    R(400, "GET /\x01 HTTP/1.1\r\n" HOST END),
    R(400, "GET /\x7f HTTP/1.1\r\n" HOST END),
    R(400, "GET /\xc3\xa9 HTTP/1.1\r\n" HOST END),
    R(400, "GET /?\xc3\xa9 HTTP/1.1\r\n" HOST END),
    R(400, "GET /\0 HTTP/1.1\r\n" HOST END),
    R(400, "GET /a\\b HTTP/1.1\r\n" HOST END),
    R(400, "GET /<a> HTTP/1.1\r\n" HOST END),
    R(400, "GET /a?\"b\" HTTP/1.1\r\n" HOST END),
    R(400, "GET /a{b} HTTP/1.1\r\n" HOST END),
    /* header fields */
    R(400, LINE HOST "X : y\r\n\r\n"),
    R(400, LINE HOST "X\t: y\r\n\r\n"),
    R(400, LINE HOST " X: y\r\n\r\n"),
    R(400, LINE " Host: a\r\n\r\n"),
    R(400, LINE HOST "X: a\r\n b\r\n\r\n"),
    R(400, LINE HOST "X: a\r\n\tb\r\n\r\n"),
    R(400, LINE HOST ": y\r\n\r\n"),
    R(400, LINE HOST "X\r\n\r\n"),
    R(400, LINE HOST "X y: z\r\n\r\n"),
    R(400, LINE HOST "X(y): z\r\n\r\n"),
    R(400, LINE HOST "X\xe9: z\r\n\r\n"),
    R(400, LINE HOST "X\0Y: z\r\n\r\n"),
    R(400, LINE HOST "X: a\0b\r\n\r\n"),
    R(400, LINE HOST "X: a\x01"
                     "b\r\n\r\n"),
    R(400, LINE HOST "X: a\x0b"
                     "b\r\n\r\n"),
    R(400, LINE HOST "X: a\x7f"
                     "b\r\n\r\n"),
    R(400, LINE HOST "X: a\x1b[31m\r\n\r\n"),
    /* Host */
    R(400, LINE END),
    R(400, LINE "X: y\r\n\r\n"),
    R(400, LINE HOST HOST END),
    R(400, LINE "Host: a\r\nHOST: b\r\n\r\n"),
    R(400, LINE "Host:\r\n\r\n"),
    R(400, LINE "Host: a b\r\n\r\n"),
    R(400, LINE "Host: a,b\r\n\r\n"),
    R(400, LINE "Host: a/b\r\n\r\n"),
    R(400, LINE "Host: u@a\r\n\r\n"),
    R(400, LINE "Host: a:x\r\n\r\n"),
    R(400, LINE "Host: a:123456\r\n\r\n"),
    R(400, LINE "Host: :80\r\n\r\n"),
    R(400, LINE "Host: [::1\r\n\r\n"),
    R(400, LINE "Host: []\r\n\r\n"),
    R(400, LINE "Host: [::1]x\r\n\r\n"),
    R(400, LINE "Host: [fe80::1%eth0]\r\n\r\n"),
    R(400, LINE "Host: \xc3\xa9.example\r\n\r\n"),
    R(400, "GET / HTTP/1.0\r\n" HOST HOST END),
    /* Content-Length */
    R(400, POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"),
    R(400, POST "Content-Length: 5\r\ncontent-length: 6\r\n\r\n"),
    R(400, POST "Content-Length: 5, 5\r\n\r\n"),
    R(400, POST "Content-Length: +5\r\n\r\n"),
    R(400, POST "Content-Length: -5\r\n\r\n"),
    R(400, POST "Content-Length: 5 5\r\n\r\n"),
    R(400, POST "Content-Length: 0x5\r\n\r\n"),
    R(400, POST "Content-Length: 5a\r\n\r\n"),
    R(400, POST "Content-Length: 05\r\n\r\n"),
    R(400, POST "Content-Length: 5.0\r\n\r\n"),
    R(400, POST "Content-Length:\r\n\r\n"),
    R(400, POST "Content-Length: 18446744073709551616\r\n\r\n"),
    R(400, POST "Content-Length: 99999999999999999999999999\r\n\r\n"),
    /* Transfer-Encoding */
    R(400, POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"),
    R(400, POST "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n"),
    R(400, POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
    R(400, POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"),
    R(400, POST "Transfer-Encoding : chunked\r\n\r\n"),
    R(400, POST "X: y\r\n Transfer-Encoding: chunked\r\n\r\n"),
    R(501, POST "Transfer-Encoding: gzip, chunked\r\n\r\n"),
    R(501, POST "Transfer-Encoding: chunked, chunked\r\n\r\n"),
    R(501, POST "Transfer-Encoding: chunked, identity\r\n\r\n"),
    R(501, POST "Transfer-Encoding: identity\r\n\r\n"),
    R(501, POST "Transfer-Encoding: xchunked\r\n\r\n"),
    R(501, POST "Transfer-Encoding: \"chunked\"\r\n\r\n"),
    R(501, POST "Transfer-Encoding: chunked;q=1\r\n\r\n"),
    R(501, POST "Transfer-Encoding:\r\n\r\n"),
    R(400, POST "Transfer-Encoding: \x0b"
                "chunked\r\n\r\n"),
    R(400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
    /* Expect, Connection */
    R(417, POST "Expect: something\r\n\r\n"),
    R(417, POST "Expect: 100-continue, x\r\n\r\n"),
    R(417, POST "Expect:\r\n\r\n"),
    R(400, LINE HOST "Connection: cl ose\r\n\r\n"),
};

static struct http_head head;

/* The answer to `text` when the first `first` bytes come alone and the others one by one (or all at once). */
static enum status parse(struct bytes text, size_t first, bool one_by_one, size_t *ret_size, int *ret_code)
{
    size_t scanned = 0, len = first;
    struct why why;
    for (;;) {
        /* A copy of exactly this size lets the sanitizer see any byte read behind it. */
        static char *copy;
        free(copy);
        copy = malloc(len > 0 ? len : 1);
        memcpy(copy, text.at, len);
        enum status status = http_parse_head((struct bytes){copy, len}, &scanned, &head, ret_size, ret_code, &why);
        if (status != NOTHING || len == text.len)
            return status;
        len = one_by_one ? len + 1 : text.len;
    }
}

TEST(http_parse_refuses_every_doubtful_head_the_same_way_however_it_is_cut)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct bytes text = refused[i].text;
        for (size_t first = 0; first <= text.len; first++) {
            size_t size = 0;
            int code = 0;
            enum status status = parse(text, first, first == 0, &size, &code);
            if (status != INVALID || code != refused[i].code)
                check_fail(__FILE__, __LINE__, "case %zu cut at %zu: %s %d, want %d: %.*s", i, first, status_name(status), code,
                           refused[i].code, BYTES_ARG(text));
        }
    }
}

struct accepted {
    struct bytes text;
    const char *path, *query;
    enum http_method method;
    bool keep_alive, chunked, expect;
    int64_t length; /* -1: none */
};

#define A(text, ...)                            \
    {                                           \
        {(text), sizeof(text) - 1}, __VA_ARGS__ \
    }

static const struct accepted accepted[] = {
    A(LINE HOST END, "/", NULL, HTTP_GET, true, false, false, -1),
    A("\r\n" LINE HOST END, "/", NULL, HTTP_GET, true, false, false, -1),
    A("HEAD /a/b HTTP/1.1\r\n" HOST END, "/a/b", NULL, HTTP_HEAD, true, false, false, -1),
    A("PUT /a?b=c&d HTTP/1.1\r\n" HOST END, "/a", "b=c&d", HTTP_PUT, true, false, false, -1),
    A("PATCH /a? HTTP/1.1\r\n" HOST END, "/a", "", HTTP_PATCH, true, false, false, -1),
    A("DELETE /a?b?c HTTP/1.1\r\n" HOST END, "/a", "b?c", HTTP_DELETE, true, false, false, -1),
    A("OPTIONS / HTTP/1.1\r\n" HOST END, "/", NULL, HTTP_OPTIONS, true, false, false, -1),
    A("PURGE / HTTP/1.1\r\n" HOST END, "/", NULL, HTTP_OTHER, true, false, false, -1),
    A("get / HTTP/1.1\r\n" HOST END, "/", NULL, HTTP_OTHER, true, false, false, -1),
    A("GET //a/../%2e%00?%0a HTTP/1.1\r\n" HOST END, "//a/../%2e%00", "%0a", HTTP_GET, true, false, false, -1),
    A("GET /a|[b]?{c}^`|[] HTTP/1.1\r\n" HOST END, "/a|[b]", "{c}^`|[]", HTTP_GET, true, false, false, -1),
    A("GET / HTTP/1.0\r\n\r\n", "/", NULL, HTTP_GET, false, false, false, -1),
    A("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "/", NULL, HTTP_GET, true, false, false, -1),
    A(LINE HOST "Connection: close\r\n\r\n", "/", NULL, HTTP_GET, false, false, false, -1),
    A(LINE HOST "Connection: x, CLOSE ,\r\n\r\n", "/", NULL, HTTP_GET, false, false, false, -1),
    A(LINE HOST "Connection: keep-alive\r\nConnection: close\r\n\r\n", "/", NULL, HTTP_GET, false, false, false, -1),
    A(LINE HOST "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n", "/", NULL, HTTP_GET, true, false, false, -1),
    A(LINE "host:a.example:80\r\n\r\n", "/", NULL, HTTP_GET, true, false, false, -1),
    A(LINE "Host: [2001:db8::1]:8080\r\n\r\n", "/", NULL, HTTP_GET, true, false, false, -1),
    A(LINE "Host: my_host:\r\n\r\n", "/", NULL, HTTP_GET, true, false, false, -1),
    A(POST "Content-Length: 0\r\n\r\n", "/x", NULL, HTTP_POST, true, false, false, 0),
    A(POST "CONTENT-LENGTH:\t 12 \t\r\n\r\n", "/x", NULL, HTTP_POST, true, false, false, 12),
    A(POST "Content-Length: 9223372036854775807\r\n\r\n", "/x", NULL, HTTP_POST, true, false, false, INT64_MAX),
    A(POST "Transfer-Encoding: chunked\r\n\r\n", "/x", NULL, HTTP_POST, true, true, false, -1),
    A(POST "transfer-encoding: Chunked\r\n\r\n", "/x", NULL, HTTP_POST, true, true, false, -1),
    A(POST "Content-Length: 1\r\nExpect: 100-Continue\r\n\r\n", "/x", NULL, HTTP_POST, true, false, true, 1),
    A("POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n", "/", NULL, HTTP_POST, false, false, false, 1),
    A(LINE HOST "X-Empty:\r\n!#$%&'*+-.^_`|~: \xc3\xa9\t\"(x)\\\"\r\n\r\n", "/", NULL, HTTP_GET, true, false, false, -1),
};

static void check_accepted(const struct accepted *want)
{
    CHECK_TEXT(head.path, want->path);
    CHECK_INT(head.query.at != NULL, want->query != NULL);
    if (want->query != NULL)
        CHECK_TEXT(head.query, want->query);
    CHECK_INT(head.method, want->method);
    CHECK_INT(head.keep_alive, want->keep_alive);
    CHECK_INT(head.chunked, want->chunked);
    CHECK_INT(head.expect_continue, want->expect);
    CHECK_INT(head.has_length, want->length >= 0);
    CHECK_INT(head.length, want->length >= 0 ? want->length : 0);
}

TEST(http_parse_reads_a_good_head_the_same_way_however_it_is_cut)
{
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        struct bytes text = accepted[i].text;
        for (size_t first = 0; first <= text.len; first++) {
            size_t size = 0;
            int code = 0;
            enum status status = parse(text, first, first == 0, &size, &code);
            if (status != OK)
                check_fail(__FILE__, __LINE__, "case %zu cut at %zu: %s %d", i, first, status_name(status), code);
            CHECK_INT(size, text.len);
            check_accepted(&accepted[i]);
        }
    }
}

TEST(http_parse_finds_headers_by_name_without_case_and_stops_behind_the_head)
{
    size_t size = 0;
    int code = 0;
    static const char text[] = POST "X-One:  a b \t\r\nx-one: 2\r\nContent-Length: 3\r\n\r\n";
    static const char more[] = POST "X-One:  a b \t\r\nx-one: 2\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n";
    CHECK_INT(parse(BYTES(more), sizeof more - 1, false, &size, &code), OK);
    CHECK_INT(size, sizeof text - 1);
    CHECK_TEXT(http_header(&head, "X-ONE"), "a b");
    CHECK_INT(http_header_count(&head, "x-One"), 2);
    CHECK_INT(http_header_count(&head, "x-On"), 0);
    CHECK(http_header(&head, "x-none").at == NULL);
    CHECK_TEXT(head.method_text, "POST");
    CHECK_TEXT(head.target, "/x");
}

/* A request line of `line` bytes and one header that fills the head up to `total` bytes. */
static struct bytes make_head(size_t line, size_t total)
{
    char *text = malloc(total + 1);
    memset(text, 'a', total);
    memcpy(text, "GET /", 5);
    memcpy(text + line - 9, " HTTP/1.1\r\nHost: a\r\n", 20);
    memcpy(text + line + 11, "X: ", 3);
    memcpy(text + total - 4, "\r\n\r\n", 4);
    return (struct bytes){text, total};
}

static void check_size(size_t line, size_t total, enum status want_status, int want_code)
{
    struct bytes text = make_head(line, total);
    size_t cuts[] = {0, line - 1, line + 1, line + 2, 8191, 8192, 8193, 8194, 8195, total - 1, total};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        size_t size = 0;
        int code = 0;
        if (cuts[i] > total)
            continue;
        CHECK_INT(parse(text, cuts[i], i == 0, &size, &code), want_status);
        CHECK_INT(code, want_code);
    }
    free((char *)text.at);
}

TEST(http_parse_limits_the_request_line_and_the_head)
{
    check_size(8192, 8300, OK, 0);
    check_size(8193, 8300, INVALID, 414);
    check_size(12000, 12100, INVALID, 414);
    check_size(20, HTTP_HEAD_SIZE_MAX, OK, 0);
    check_size(20, HTTP_HEAD_SIZE_MAX + 1, INVALID, 431);
    check_size(20, 40000, INVALID, 431);
}

TEST(http_parse_refuses_a_head_that_never_ends)
{
    char *text = malloc(HTTP_HEAD_SIZE_MAX);
    size_t size = 0;
    int code = 0;
    memset(text, 'a', HTTP_HEAD_SIZE_MAX);
    CHECK_INT(parse((struct bytes){text, HTTP_HEAD_SIZE_MAX}, 0, true, &size, &code), INVALID);
    CHECK_INT(code, 414);
    memcpy(text, LINE "X: ", sizeof LINE + 2);
    CHECK_INT(parse((struct bytes){text, HTTP_HEAD_SIZE_MAX - 1}, 0, true, &size, &code), NOTHING);
    CHECK_INT(parse((struct bytes){text, HTTP_HEAD_SIZE_MAX}, 0, true, &size, &code), INVALID);
    CHECK_INT(code, 431);
    free(text);
}

TEST(http_parse_takes_a_hundred_headers_and_not_one_more)
{
    for (size_t count = 99; count <= 101; count++) {
        char text[2048] = LINE HOST;
        size_t len = strlen(text), size = 0;
        int code = 0;
        for (size_t i = 1; i < count; i++)
            len += (size_t)snprintf(text + len, sizeof text - len, "X%zu: y\r\n", i);
        len += (size_t)snprintf(text + len, sizeof text - len, "\r\n");
        enum status status = parse((struct bytes){text, len}, len, false, &size, &code);
        CHECK_INT(status, count <= HTTP_HEADERS_MAX ? OK : INVALID);
        CHECK_INT(code, count <= HTTP_HEADERS_MAX ? 0 : 431);
    }
}

/* ---- chunks ---- */

struct chunked {
    struct bytes text;
    enum status status;
    const char *body; /* when OK */
};

#define C(text, ...)                            \
    {                                           \
        {(text), sizeof(text) - 1}, __VA_ARGS__ \
    }
#define DIGITS16 "0000000000000000"

static const struct chunked chunked[] = {
    C("0\r\n\r\n", OK, ""),
    C("5\r\nhello\r\n0\r\n\r\n", OK, "hello"),
    C("1\r\na\r\n2\r\nbc\r\n0003\r\ndef\r\n000\r\n\r\n", OK, "abcdef"),
    C("a\r\n0123456789\r\nB\r\n0123456789a\r\n0\r\n\r\n", OK, "01234567890123456789a"),
    C("2\r\n\r\n\r\n0\r\n\r\n", OK, "\r\n"),
    C("1\r\na\r\n0\r\nX-Sum: 1\r\nY:\r\n\r\n", OK, "a"),
    C("000000000000000a\r\n0123456789\r\n" DIGITS16 "\r\n\r\n", OK, "0123456789"),
    C("5\r\nhel", NOTHING, NULL),
    C("5\r\nhello\r\n0\r\n", NOTHING, NULL),
    C("\r\n", INVALID, NULL),
    C("g\r\n", INVALID, NULL),
    C(" 5\r\nhello\r\n", INVALID, NULL),
    C("5 \r\nhello\r\n", INVALID, NULL),
    C("+5\r\nhello\r\n", INVALID, NULL),
    C("-1\r\nhello\r\n", INVALID, NULL),
    C("0x5\r\nhello\r\n", INVALID, NULL),
    C("5;a=b\r\nhello\r\n", INVALID, NULL),
    C("5;\r\nhello\r\n", INVALID, NULL),
    C("5\nhello\r\n", INVALID, NULL),
    C("5\rhello\r\n", INVALID, NULL),
    C("5\r\rhello\r\n", INVALID, NULL),
    C("5\r\nhello\n0\r\n\r\n", INVALID, NULL),
    C("5\r\nhello0\r\n\r\n", INVALID, NULL),
    C("5\r\nhellohello\r\n", INVALID, NULL),
    C("4\r\nhello\r\n", INVALID, NULL),
    C("0" DIGITS16 "\r\n", INVALID, NULL),
    C("1" DIGITS16 "\r\n", INVALID, NULL),
    C("ffffffffffffffff\r\n", FULL, NULL),
    C("21\r\n", FULL, NULL),
    C("20\r\n0123456789abcdef0123456789abcdef\r\n1\r\n", FULL, NULL),
    C("0\r\n\n", INVALID, NULL),
    C("0\r\nX\r\n\r\n", INVALID, NULL),
    C("0\r\nX : y\r\n\r\n", INVALID, NULL),
    C("0\r\n X: y\r\n\r\n", INVALID, NULL),
    C("0\r\n: y\r\n\r\n", INVALID, NULL),
    C("0\r\nX: y\n\r\n", INVALID, NULL),
    C("0\r\nX: y\r\r\n", INVALID, NULL),
    C("0\r\nX: \0\r\n\r\n", INVALID, NULL),
    C("0\r\n\0: y\r\n\r\n", INVALID, NULL),
    C("0\r\nGET / HTTP/1.1\r\n\r\n", INVALID, NULL),
};

enum { BODY_MAX = 32 };

/* Feeds `first` bytes, then the others in pieces of `piece`, decoding in place as the server does. */
static enum status decode(struct bytes text, size_t first, size_t piece, char *body, size_t *ret_len, size_t *ret_used)
{
    struct http_chunks chunks = {0};
    size_t at = 0, len = 0;
    enum status status = NOTHING;
    while (status == NOTHING && at < text.len) {
        size_t size = at == 0 && first > 0 ? first : piece, consumed = 0, produced = 0;
        if (size > text.len - at)
            size = text.len - at;
        char *copy = malloc(size);
        memcpy(copy, text.at + at, size);
        struct why why;
        status = http_parse_chunks(&chunks, (struct bytes){copy, size}, copy, BODY_MAX - len, &consumed, &produced, &why);
        memcpy(body + len, copy, produced);
        CHECK(status != NOTHING || consumed == size);
        len += produced;
        at += consumed;
        free(copy);
    }
    *ret_len = len;
    *ret_used = at;
    return status;
}

static void check_chunked(const struct chunked *want, size_t first, size_t piece)
{
    char body[BODY_MAX];
    size_t len = 0, used = 0;
    enum status status = decode(want->text, first, piece, body, &len, &used);
    if (status != want->status)
        check_fail(__FILE__, __LINE__, "%s, want %s, cut at %zu: %.*s", status_name(status), status_name(want->status), first,
                   BYTES_ARG(want->text));
    if (want->status != OK)
        return;
    CHECK_TEXT(((struct bytes){body, len}), want->body);
    CHECK_INT(used, want->text.len);
}

TEST(http_parse_decodes_chunks_the_same_way_however_they_are_cut)
{
    for (size_t i = 0; i < sizeof chunked / sizeof *chunked; i++) {
        for (size_t first = 1; first <= chunked[i].text.len; first++)
            check_chunked(&chunked[i], first, chunked[i].text.len);
        check_chunked(&chunked[i], 0, 1);
        check_chunked(&chunked[i], 0, 3);
    }
}

TEST(http_parse_stops_behind_the_last_chunk)
{
    char body[BODY_MAX];
    size_t len = 0, used = 0;
    CHECK_INT(decode(BYTES("1\r\na\r\n0\r\n\r\nGET /"), 0, 100, body, &len, &used), OK);
    CHECK_INT(used, 11);
    CHECK_INT(len, 1);
}

TEST(http_parse_bounds_the_trailer)
{
    char text[8192] = "0\r\nX: ", body[BODY_MAX];
    size_t len = 0, used = 0;
    memset(text + 6, 'a', sizeof text - 6);
    CHECK_INT(decode((struct bytes){text, 4000}, 0, 4000, body, &len, &used), NOTHING);
    CHECK_INT(decode((struct bytes){text, sizeof text}, 0, 100, body, &len, &used), INVALID);
}

/* ---- percent-encoding ---- */

static const struct {
    const char *in;
    bool plus;
    const char *out; /* NULL: refused */
} escapes[] = {
    {"", false, ""},         {"abc", false, "abc"},         {"a%20b", false, "a b"}, {"a+b", false, "a+b"}, {"a+b", true, "a b"},
    {"%2B", true, "+"},      {"%C3%a9", false, "\xc3\xa9"}, {"%2f%2F", false, "//"}, {"%", false, NULL},    {"%2", false, NULL},
    {"a%2g", false, NULL},   {"%%20", false, NULL},         {"%00", false, NULL},    {"%ff", false, NULL},  {"%c3", false, NULL},
    {"%c0%80", false, NULL}, {"%ed%a0%80", false, NULL},    {"% 2", false, NULL},    {"%+1", true, NULL},   {"%25", false, "%"},
};

TEST(http_percent_decode_is_strict)
{
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
        char out[32];
        size_t len = 0;
        bool done = percent_decode(bytes_of(escapes[i].in), escapes[i].plus, out, &len);
        CHECK_INT(done, escapes[i].out != NULL);
        if (done)
            CHECK_TEXT(((struct bytes){out, len}), escapes[i].out);
    }
}
