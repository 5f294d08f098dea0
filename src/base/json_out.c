#include "base/json.h"
#include "base/json_plain.h"
#include "base/when.h"

/* Puts the comma before a value or a name where one is due; the next value will need one unless a name comes before it. */
static void begin(struct json_out *out)
{
    if (out->comma)
        buf_add_char(out->buf, ',');
    out->comma = true;
}

void json_open(struct json_out *out, char bracket)
{
    begin(out);
    buf_add_char(out->buf, bracket);
    out->comma = false;
}

void json_close(struct json_out *out, char bracket)
{
    buf_add_char(out->buf, bracket);
    out->comma = true;
}

/* `c` is a quote, a backslash or a control character. */
static void add_escape(struct buf *buf, unsigned char c)
{
    static const char letters[0x20] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    char letter = c >= 0x20 ? (char)c : letters[c];
    char text[6] = {'\\', letter != 0 ? letter : 'u', '0', '0'};
    bytes_to_hex((struct bytes){(const char *)&c, 1}, text + 4);
    buf_add(buf, (struct bytes){text, letter != 0 ? 2 : 6});
}

/* How many bytes at the front of `text` can be written as they are. */
static size_t plain_length(struct bytes text)
{
    const char *at = text.at, *end = text.at + text.len;
    for (;;) {
        at = json_skip_plain(at, end);
        uint32_t code;
        size_t len = at < end && (unsigned char)*at >= 0x80 ? bytes_utf8_char((struct bytes){at, (size_t)(end - at)}, &code) : 0;
        if (len == 0)
            return (size_t)(at - text.at);
        at += len;
    }
}

static void add_text(struct buf *buf, struct bytes text)
{
    while (text.len > 0) {
        size_t plain = plain_length(text);
        buf_add(buf, (struct bytes){text.at, plain});
        text = bytes_from(text, plain);
        if (text.len == 0)
            return;
        unsigned char c = (unsigned char)text.at[0];
        if (c < 0x80)
            add_escape(buf, c);
        else
            buf_add_cstr(buf, "\xEF\xBF\xBD");
        text = bytes_from(text, 1);
    }
}

static void add_quoted(struct buf *buf, struct bytes text)
{
    /* Escapes only make it longer, so what does not fit now never will. */
    if (!buf_reserve(buf, text.len + 2))
        return;
    buf_add_char(buf, '"');
    add_text(buf, text);
    buf_add_char(buf, '"');
}

void json_name(struct json_out *out, const char *name)
{
    json_name_bytes(out, bytes_of(name));
}

void json_name_bytes(struct json_out *out, struct bytes name)
{
    begin(out);
    add_quoted(out->buf, name);
    buf_add_char(out->buf, ':');
    out->comma = false;
}

void json_text(struct json_out *out, struct bytes text)
{
    if (text.at == NULL) {
        json_null(out);
        return;
    }
    begin(out);
    add_quoted(out->buf, text);
}

void json_cstr(struct json_out *out, const char *text)
{
    json_text(out, bytes_of(text));
}

void json_i64(struct json_out *out, int64_t n)
{
    begin(out);
    buf_add_i64(out->buf, n);
}

void json_bool(struct json_out *out, bool b)
{
    json_raw(out, b ? BYTES("true") : BYTES("false"));
}

void json_null(struct json_out *out)
{
    json_raw(out, BYTES("null"));
}

void json_raw(struct json_out *out, struct bytes raw)
{
    begin(out);
    buf_add(out->buf, raw.at != NULL ? raw : BYTES("null"));
}

void json_time(struct json_out *out, int64_t time_us)
{
    char text[32];
    if (time_us == 0) {
        json_null(out);
        return;
    }
    size_t len = when_format(time_us, text);
    json_text(out, (struct bytes){text, len});
}

void json_text_member(struct json_out *out, const char *name, struct bytes text)
{
    json_name(out, name);
    json_text(out, text);
}

void json_i64_member(struct json_out *out, const char *name, int64_t n)
{
    json_name(out, name);
    json_i64(out, n);
}

void json_raw_member(struct json_out *out, const char *name, struct bytes json)
{
    json_name(out, name);
    if (json.at != NULL)
        json_raw(out, json);
    else
        json_null(out);
}

void json_time_member(struct json_out *out, const char *name, int64_t time_us)
{
    json_name(out, name);
    json_time(out, time_us);
}
