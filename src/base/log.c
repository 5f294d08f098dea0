#include "base/log.h"

#include <unistd.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/when.h"

enum { LINE_MAX_SIZE = 16 * 1024, VALUE_MAX_SIZE = 1024 };

static const char *const level_names[] = {"debug", "info", "warn", "error"};

static enum log_level log_level_min = LOG_INFO;
static enum log_format log_format = LOG_LOGFMT;
static int64_t (*log_clock_us)(void);

void log_setup(enum log_level level, enum log_format format, int64_t (*clock_us)(void))
{
    log_level_min = level;
    log_format = format;
    log_clock_us = clock_us;
}

bool log_on(enum log_level level)
{
    return level >= log_level_min;
}

/* A long value is cut, so that one field cannot crowd out the others. */
static struct bytes shortened(struct bytes text)
{
    if (text.len <= VALUE_MAX_SIZE)
        return text;
    text.len = VALUE_MAX_SIZE;
    while (text.len > 0 && ((unsigned char)text.at[text.len] & 0xC0) == 0x80)
        text.len--;
    return text;
}

static bool needs_quotes(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c <= ' ' || c >= 0x7F || c == '"' || c == '=' || c == '\\')
            return true;
    }
    return text.len == 0;
}

static void add_logfmt_name(struct json_out *out, const char *name)
{
    if (out->buf->len > 0)
        buf_add_char(out->buf, ' ');
    buf_add_cstr(out->buf, name);
    buf_add_char(out->buf, '=');
    out->comma = false;
}

static void add_name(struct json_out *out, const char *name)
{
    if (log_format == LOG_JSON)
        json_name(out, name);
    else
        add_logfmt_name(out, name);
}

/* In logfmt an absent value is nothing behind the '=', an empty one is "". */
static void add_text(struct json_out *out, struct bytes text)
{
    text = shortened(text);
    if (log_format == LOG_JSON || (text.at != NULL && needs_quotes(text)))
        json_text(out, text);
    else
        buf_add(out->buf, text);
}

static void add_personal(struct json_out *out, struct bytes text)
{
    char shown[11] = "h:";
    if (text.at == NULL) {
        add_text(out, text);
        return;
    }
    struct hash hash = hash_sha256(text);
    bytes_to_hex((struct bytes){(const char *)hash.at, 4}, shown + 2);
    add_text(out, (struct bytes){shown, 10});
}

static void add_field(struct json_out *out, const struct log_field *field)
{
    add_name(out, field->name);
    switch (field->kind) {
    case LOG_FIELD_TEXT:
        add_text(out, field->text);
        break;
    case LOG_FIELD_INT:
        json_i64(out, field->number);
        break;
    case LOG_FIELD_PERSONAL:
        add_personal(out, field->text);
        break;
    }
}

static void add_head(struct json_out *out, enum log_level level, const char *message)
{
    if (log_clock_us != NULL) {
        char stamp[32];
        size_t len = when_format(log_clock_us(), stamp);
        add_name(out, "ts");
        add_text(out, (struct bytes){stamp, len});
    }
    add_name(out, "level");
    add_text(out, bytes_of(level_names[level]));
    add_name(out, "msg");
    add_text(out, bytes_of(message));
}

/* Fields that no longer fit are left out whole, so that the line stays well-formed. */
static void add_fields(struct json_out *out, const struct log_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct json_out before = *out;
        size_t len = out->buf->len;
        add_field(out, &fields[i]);
        if (!out->buf->failed)
            continue;
        *out = before;
        out->buf->len = len;
        out->buf->failed = false;
        return;
    }
}

void log_line(enum log_level level, const char *message, const struct log_field *fields, size_t count)
{
    if (!log_on(level))
        return;
    struct buf line;
    buf_init(&line, LINE_MAX_SIZE);
    struct json_out out = json_out_to(&line);
    if (log_format == LOG_JSON)
        json_open(&out, '{');
    add_head(&out, level, message);
    add_fields(&out, fields, count);
    line.size_max += 2; /* the bracket and the line end always fit */
    if (log_format == LOG_JSON)
        json_close(&out, '}');
    buf_add_char(&line, '\n');
    /* One write, so that lines of several threads and processes do not mix; nobody could be told of its failure. */
    if (!line.failed && write(STDERR_FILENO, line.at, line.len) < 0)
        line.failed = true;
    buf_release(&line);
}
