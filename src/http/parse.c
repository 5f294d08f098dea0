#include "http/parse.h"

enum { LINE_SIZE_MAX = 8 * 1024, METHOD_SIZE_MAX = 32 };

/* What a byte may be part of. */
enum { T = 1 /* token */, V = 2 /* field value */, P = 4 /* path */, Q = 8 /* query */, H = 16 /* host name */ };

/* RFC 3986 for paths and queries, widened by what browsers and curl leave unescaped ([ ] | in paths, also ^ ` { } in queries);
 * the backslash stays out, because some programs read it as a slash. */
static const uint8_t kinds[256] = {
    ['\t'] = V,
    [' '] = V,
    ['!'] = T | V | P | Q,
    ['"'] = V,
    ['#'] = T | V,
    ['$' ... '\''] = T | V | P | Q,
    ['(' ... ')'] = V | P | Q,
    ['*' ... '+'] = T | V | P | Q,
    [','] = V | P | Q,
    ['-' ... '.'] = T | V | P | Q | H,
    ['/'] = V | P | Q,
    ['0' ... '9'] = T | V | P | Q | H,
    [':' ... ';'] = V | P | Q,
    ['<'] = V,
    ['='] = V | P | Q,
    ['>'] = V,
    ['?'] = V | Q,
    ['@'] = V | P | Q,
    ['A' ... 'Z'] = T | V | P | Q | H,
    ['['] = V | P | Q,
    ['\\'] = V,
    [']'] = V | P | Q,
    ['^'] = T | V | Q,
    ['_'] = T | V | P | Q | H,
    ['`'] = T | V | Q,
    ['a' ... 'z'] = T | V | P | Q | H,
    ['{'] = V | Q,
    ['|'] = T | V | P | Q,
    ['}'] = V | Q,
    ['~'] = T | V | P | Q | H,
    [0x80 ... 0xff] = V,
};

/* What is known while one head is read; `code` and `sentence` are set by the first refusal. */
struct reading {
    struct http_head *head;
    int code;
    const char *sentence;
    size_t host_count, encoding_count;
    bool encoding_is_chunked, close, keep;
};

static bool refuse(struct reading *reading, int code, const char *sentence)
{
    reading->code = code;
    reading->sentence = sentence;
    return false;
}

static bool is_kind(char c, uint8_t kind)
{
    return (kinds[(unsigned char)c] & kind) != 0;
}

static bool all_are(struct bytes text, uint8_t kind)
{
    uint8_t common = kind;
    for (size_t i = 0; i < text.len; i++)
        common &= kinds[(unsigned char)text.at[i]];
    return common == kind;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- the request line ---- */

static enum http_method method_of(struct bytes text)
{
    static const char *const names[] = {
        [HTTP_GET] = "GET",     [HTTP_HEAD] = "HEAD",     [HTTP_POST] = "POST",       [HTTP_PUT] = "PUT",
        [HTTP_PATCH] = "PATCH", [HTTP_DELETE] = "DELETE", [HTTP_OPTIONS] = "OPTIONS",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bytes_is(text, names[i]))
            return (enum http_method)i;
    return HTTP_OTHER;
}

static bool read_version(struct reading *reading, struct bytes text)
{
    if (text.len != 8 || memcmp(text.at, "HTTP/", 5) != 0 || !is_digit(text.at[5]) || text.at[6] != '.' || !is_digit(text.at[7]))
        return refuse(reading, 400, "the request line does not end in an HTTP version");
    if (text.at[5] != '1' || text.at[7] > '1')
        return refuse(reading, 505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    reading->head->minor = text.at[7] - '0';
    return true;
}

static bool read_target(struct reading *reading, struct bytes target)
{
    struct http_head *head = reading->head;
    if (target.len == 0 || target.at[0] != '/')
        return refuse(reading, 400, "the request target must be a path that starts with '/'");
    head->target = head->path = target;
    head->query = BYTES_NONE;
    const char *mark = memchr(target.at, '?', target.len);
    if (mark != NULL) {
        head->path.len = (size_t)(mark - target.at);
        head->query = bytes_from(target, head->path.len + 1);
    }
    if (!all_are(head->path, P) || !all_are(head->query, Q))
        return refuse(reading, 400, "the request target contains a character that must be percent-encoded");
    return true;
}

/* The version is read before the target, so that an HTTP/2 client is told about the version. */
static bool read_request_line(struct reading *reading, struct bytes line)
{
    const char *space = memchr(line.at, ' ', line.len);
    if (space == NULL)
        return refuse(reading, 400, "the request line has no target");
    struct bytes method = {line.at, (size_t)(space - line.at)};
    if (method.len == 0 || method.len > METHOD_SIZE_MAX || !all_are(method, T))
        return refuse(reading, 400, "the request method is not a token");
    struct bytes rest = bytes_from(line, method.len + 1);
    space = memchr(rest.at, ' ', rest.len);
    if (space == NULL)
        return refuse(reading, 400, "the request line has no HTTP version");
    struct bytes target = {rest.at, (size_t)(space - rest.at)};
    reading->head->method = method_of(method);
    reading->head->method_text = method;
    return read_version(reading, bytes_from(rest, target.len + 1)) && read_target(reading, target);
}

/* ---- header fields ---- */

static bool is_port(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_digit(text.at[i]))
            return false;
    return text.len <= 5;
}

static bool is_host(struct bytes text)
{
    size_t end = 0;
    if (text.len > 0 && text.at[0] == '[') {
        for (end = 1; end < text.len && text.at[end] != ']'; end++)
            if (strchr("0123456789abcdefABCDEF:.", text.at[end]) == NULL)
                return false;
        if (end < 3 || end == text.len)
            return false;
        end++;
    } else {
        while (end < text.len && is_kind(text.at[end], H))
            end++;
    }
    if (end == 0 || end == text.len)
        return end > 0;
    return text.at[end] == ':' && is_port(bytes_from(text, end + 1));
}

static bool take_host(struct reading *reading, struct bytes value)
{
    if (reading->host_count++ > 0)
        return refuse(reading, 400, "there is more than one Host header");
    if (!is_host(value))
        return refuse(reading, 400, "the Host header is not a host and an optional port");
    return true;
}

static bool take_length(struct reading *reading, struct bytes value)
{
    struct http_head *head = reading->head;
    if (head->has_length)
        return refuse(reading, 400, "there is more than one Content-Length header");
    if (!bytes_to_u64(value, &head->length))
        return refuse(reading, 400, "the Content-Length header is not a plain decimal number");
    head->has_length = true;
    return true;
}

static bool take_encoding(struct reading *reading, struct bytes value)
{
    reading->encoding_count++;
    reading->encoding_is_chunked = bytes_eq_nocase(value, BYTES("chunked"));
    return true;
}

static bool take_connection(struct reading *reading, struct bytes value)
{
    while (value.len > 0) {
        struct bytes option = bytes_trim(bytes_cut(&value, ','));
        if (!all_are(option, T))
            return refuse(reading, 400, "the Connection header is not a list of tokens");
        reading->close |= bytes_eq_nocase(option, BYTES("close"));
        reading->keep |= bytes_eq_nocase(option, BYTES("keep-alive"));
    }
    return true;
}

static bool take_expect(struct reading *reading, struct bytes value)
{
    if (!bytes_eq_nocase(value, BYTES("100-continue")))
        return refuse(reading, 417, "only 100-continue can be expected");
    reading->head->expect_continue = true;
    return true;
}

/* The headers that decide about framing; all others are the handler's. */
static bool take_header(struct reading *reading, struct http_header header)
{
    static const struct {
        struct bytes name;
        bool (*take)(struct reading *reading, struct bytes value);
    } known[] = {
        {{"host", 4}, take_host},
        {{"expect", 6}, take_expect},
        {{"connection", 10}, take_connection},
        {{"content-length", 14}, take_length},
        {{"transfer-encoding", 17}, take_encoding},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (header.name.len == known[i].name.len && bytes_eq_nocase(header.name, known[i].name))
            return known[i].take(reading, header.value);
    return true;
}

static struct bytes without_white_space(struct bytes text)
{
    while (text.len > 0 && (text.at[text.len - 1] == ' ' || text.at[text.len - 1] == '\t'))
        text.len--;
    while (text.len > 0 && (text.at[0] == ' ' || text.at[0] == '\t'))
        text = bytes_from(text, 1);
    return text;
}

static bool read_header(struct reading *reading, struct bytes line)
{
    size_t end = 0;
    while (end < line.len && is_kind(line.at[end], T))
        end++;
    if (end == 0 && (line.at[0] == ' ' || line.at[0] == '\t'))
        return refuse(reading, 400, "a header is folded over two lines");
    if (end == 0 || end == line.len || line.at[end] != ':')
        return refuse(reading, 400, "a header is not a name, a colon and a value");
    struct http_header header = {{line.at, end}, bytes_from(line, end + 1)};
    if (!all_are(header.value, V))
        return refuse(reading, 400, "a header value contains a control character");
    header.value = without_white_space(header.value);
    struct http_head *head = reading->head;
    if (head->header_count == HTTP_HEADERS_MAX)
        return refuse(reading, 431, "there are more than 100 headers");
    head->headers[head->header_count++] = header;
    return take_header(reading, header);
}

/* Questions that can be answered only when every header was seen. */
static bool settle_head(struct reading *reading)
{
    struct http_head *head = reading->head;
    if (reading->host_count == 0 && head->minor == 1)
        return refuse(reading, 400, "the Host header is missing");
    if (reading->encoding_count > 0 && head->has_length)
        return refuse(reading, 400, "Content-Length and Transfer-Encoding contradict each other");
    if (reading->encoding_count > 0 && head->minor == 0)
        return refuse(reading, 400, "HTTP/1.0 has no Transfer-Encoding");
    if (reading->encoding_count > 1)
        return refuse(reading, 400, "there is more than one Transfer-Encoding header");
    if (reading->encoding_count > 0 && !reading->encoding_is_chunked)
        return refuse(reading, 501, "the only transfer encoding is chunked");
    head->chunked = reading->encoding_count > 0;
    head->keep_alive = !reading->close && (head->minor == 1 || reading->keep);
    head->expect_continue = head->expect_continue && head->minor == 1;
    return true;
}

static bool read_headers(struct reading *reading, struct bytes lines)
{
    while (lines.len > 2) {
        const char *end = memchr(lines.at, '\n', lines.len);
        size_t size = (size_t)(end - lines.at);
        if (!read_header(reading, (struct bytes){lines.at, size - 1}))
            return false;
        lines = bytes_from(lines, size + 1);
    }
    return settle_head(reading);
}

/* ---- the head as a whole ---- */

/* Reads the request line at the start of `in`; `*ret_size` is its size with CRLF. NOTHING while it is incomplete. */
static enum status read_first_line(struct reading *reading, struct bytes in, size_t *ret_size)
{
    size_t most = in.len < LINE_SIZE_MAX + 2 ? in.len : LINE_SIZE_MAX + 2;
    const char *end = memchr(in.at, '\n', most);
    if (end == NULL && most < LINE_SIZE_MAX + 2)
        return NOTHING;
    if (end == NULL) {
        refuse(reading, 414, "the request line is longer than 8 KiB");
        return INVALID;
    }
    if (end == in.at || end[-1] != '\r') {
        refuse(reading, 400, "a line ends in LF without CR");
        return INVALID;
    }
    size_t size = (size_t)(end - in.at) + 1;
    if (!read_request_line(reading, (struct bytes){in.at, size - 2}))
        return INVALID;
    *ret_size = size;
    return OK;
}

/* Searches for the empty line behind `*scanned`. A refusal must not depend on how the bytes were cut into packets, so what is
 * wrong is looked for in this order: the first line, line ends, size, header fields. */
static enum status find_end(struct reading *reading, struct bytes in, size_t *scanned, size_t *ret_size)
{
    struct bytes seen = {in.at, in.len < HTTP_HEAD_SIZE_MAX ? in.len : HTTP_HEAD_SIZE_MAX};
    size_t at = *scanned, line_size;
    bool bare = false;
    const char *end;
    while (!bare && (end = memchr(seen.at + at, '\n', seen.len - at)) != NULL) {
        at = (size_t)(end - seen.at) + 1;
        bare = at < 2 || end[-1] != '\r';
        if (!bare && at >= 4 && end[-2] == '\n') {
            *ret_size = at;
            return OK;
        }
    }
    if (*scanned == 0) {
        enum status status = read_first_line(reading, seen, &line_size);
        if (status != OK)
            return status;
    }
    *scanned = seen.len;
    if (!bare && seen.len < HTTP_HEAD_SIZE_MAX)
        return NOTHING;
    if (bare)
        refuse(reading, 400, "a line ends in LF without CR");
    else
        refuse(reading, 431, "the request head is larger than 16 KiB");
    return INVALID;
}

static enum status read_head(struct reading *reading, struct bytes in, size_t *scanned, size_t *ret_size)
{
    size_t size = 0, line_size = 0;
    if (!is_kind(in.at[0], T)) {
        refuse(reading, 400, "the request does not start with a method");
        return INVALID;
    }
    TRY(find_end(reading, in, scanned, &size));
    struct bytes whole = {in.at, size};
    TRY(read_first_line(reading, whole, &line_size));
    if (!read_headers(reading, bytes_from(whole, line_size)))
        return INVALID;
    *ret_size = size;
    return OK;
}

/* One empty line in front of a request is left over from some old clients and is skipped. */
static size_t skipped_size(struct bytes in)
{
    if (in.len >= 1 && in.at[0] == '\r')
        return in.len == 1 || in.at[1] == '\n' ? 2 : 0;
    return 0;
}

enum status http_parse_head(struct bytes in, size_t *scanned, struct http_head *ret_head, size_t *ret_size, int *ret_code,
                            struct why *why)
{
    size_t skipped = skipped_size(in), size = 0;
    if (in.len <= skipped)
        return NOTHING;
    ret_head->header_count = 0;
    ret_head->has_length = ret_head->expect_continue = false;
    ret_head->length = 0;
    struct reading reading = {.head = ret_head};
    enum status status = read_head(&reading, bytes_from(in, skipped), scanned, &size);
    if (status == OK)
        *ret_size = skipped + size;
    if (status != INVALID)
        return status;
    *ret_code = reading.code;
    return why_set(why, INVALID, "%s", reading.sentence);
}

struct bytes http_header(const struct http_head *head, const char *name)
{
    struct bytes wanted = bytes_of(name);
    for (size_t i = 0; i < head->header_count; i++)
        if (head->headers[i].name.len == wanted.len && bytes_eq_nocase(head->headers[i].name, wanted))
            return head->headers[i].value;
    return BYTES_NONE;
}

size_t http_header_count(const struct http_head *head, const char *name)
{
    struct bytes wanted = bytes_of(name);
    size_t count = 0;
    for (size_t i = 0; i < head->header_count; i++)
        count += head->headers[i].name.len == wanted.len && bytes_eq_nocase(head->headers[i].name, wanted);
    return count;
}
