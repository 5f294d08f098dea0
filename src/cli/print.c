#include "cli/print.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/when.h"
#include "cli/story.h"

enum { LINE_MAX_SIZE = 1 << 20 };

static bool is_obeyed(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x202A && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069);
}

void print_clean(struct buf *out, struct bytes text)
{
    while (text.len > 0) {
        uint32_t code = 0;
        size_t len = bytes_utf8_char(text, &code);
        if (len == 0 || is_obeyed(code))
            buf_add_char(out, '?');
        else
            buf_add(out, (struct bytes){text.at, len});
        text = bytes_from(text, len > 0 ? len : 1);
    }
}

static void write_clean(FILE *file, const char *prefix, const char *format, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0)
        return;
    struct buf buf;
    buf_init(&buf, LINE_MAX_SIZE);
    buf_add_cstr(&buf, prefix);
    print_clean(&buf, bytes_of(text));
    buf_add_char(&buf, '\n');
    fwrite(buf_bytes(&buf).at, 1, buf.len, file);
    buf_release(&buf);
    free(text);
}

int cli_fail(enum cli_exit code, const char *format, ...)
{
    va_list args;
    fflush(stdout);
    va_start(args, format);
    write_clean(stderr, "semel: ", format, args);
    va_end(args);
    return (int)code;
}

void cli_note(const char *format, ...)
{
    va_list args;
    fflush(stdout);
    va_start(args, format);
    write_clean(stderr, "semel: ", format, args);
    va_end(args);
}

void print_line(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_clean(stdout, "", format, args);
    va_end(args);
}

/* Line breaks between the parts of a value are white space; inside strings they are always escaped. */
void print_json(const struct json *json)
{
    for (size_t i = 0; i < json->raw.len; i++)
        putchar(json->raw.at[i] == '\n' || json->raw.at[i] == '\r' ? ' ' : json->raw.at[i]);
    putchar('\n');
}

void print_json_buf(const struct buf *buf)
{
    ASSERT(!buf->failed);
    fwrite(buf_bytes(buf).at, 1, buf->len, stdout);
    putchar('\n');
}

bool print_is_colourful(void)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && (no_color == NULL || *no_color == '\0') && term != NULL && strcmp(term, "dumb") != 0;
}

enum print_colour print_state_colour(struct bytes state)
{
    if (bytes_is(state, "confirmed"))
        return COLOUR_GREEN;
    if (bytes_is(state, "claimed") || bytes_is(state, "sent"))
        return COLOUR_YELLOW;
    return bytes_is(state, "unknown") ? COLOUR_RED : COLOUR_NONE;
}

static bool local_time(int64_t time_us, struct tm *ret)
{
    int64_t seconds = time_us / WHEN_SECOND - (time_us % WHEN_SECOND < 0);
    time_t stamp = (time_t)seconds;
    return localtime_r(&stamp, ret) != NULL;
}

void print_when(int64_t time_us, int64_t now_us, char ret[32])
{
    struct tm at = {0}, now = {0};
    if (!local_time(time_us, &at) || !local_time(now_us, &now)) {
        when_format(time_us, ret);
        return;
    }
    bool today = at.tm_year == now.tm_year && at.tm_yday == now.tm_yday;
    if (strftime(ret, 32, today ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &at) == 0)
        when_format(time_us, ret);
}

struct bytes print_field(struct cli *cli, const struct json *object, const char *name)
{
    const struct json *value = json_get(object, bytes_of(name));
    if (value == NULL || value->type == JSON_NULL)
        return BYTES("");
    struct buf buf;
    buf_init(&buf, LINE_MAX_SIZE);
    print_clean(&buf, value->type == JSON_STRING ? value->text : value->raw);
    struct bytes text = arena_dup(&cli->arena, buf_bytes(&buf));
    buf_release(&buf);
    return text.at != NULL ? text : BYTES("");
}

int64_t print_time_of(const struct json *object, const char *name)
{
    const struct json *value = json_get(object, bytes_of(name));
    int64_t time_us = 0;
    return value != NULL && value->type == JSON_STRING && when_parse(value->text, &time_us) ? time_us : 0;
}

void print_next(const struct json *intent, int64_t now_us, struct buf *out)
{
    int64_t until_us = print_time_of(intent, "lease_until");
    char until[32] = "";
    if (until_us != 0)
        print_when(until_us, now_us, until);
    story_next(intent, until, until_us != 0 && until_us <= now_us, out);
}

/* ---- tables ---- */

struct table_row {
    struct table_row *next;
    enum print_colour colour;
    struct bytes cells[TABLE_COLUMNS_MAX];
};

static size_t width_of(struct bytes text)
{
    size_t width = 0;
    for (size_t i = 0; i < text.len; i++)
        width += ((unsigned char)text.at[i] & 0xC0) != 0x80;
    return width;
}

void table_add(struct table *table, const struct bytes *cells, enum print_colour colour)
{
    struct table_row *row = arena_zalloc(table->arena, 1, sizeof *row);
    ASSERT(row != NULL); /* a table with rows missing would be a wrong answer */
    row->colour = colour;
    for (size_t i = 0; i < table->column_count; i++) {
        row->cells[i] = cells[i];
        size_t width = width_of(cells[i]);
        if (width > table->widths[i])
            table->widths[i] = width;
    }
    *table->last = row;
    table->last = &row->next;
}

void table_init(struct table *table, struct arena *arena, const char *const *headings, size_t column_count)
{
    struct bytes cells[TABLE_COLUMNS_MAX];
    ASSERT(column_count <= TABLE_COLUMNS_MAX);
    *table = (struct table){.arena = arena, .column_count = column_count};
    table->last = &table->first;
    for (size_t i = 0; i < column_count; i++)
        cells[i] = bytes_of(headings[i]);
    table_add(table, cells, COLOUR_BOLD);
}

static const char *const colour_codes[] = {"", "\033[1m", "\033[2m", "\033[32m", "\033[33m", "\033[31m"};

static void print_row(const struct table *table, const struct table_row *row, bool colourful)
{
    bool coloured = colourful && row->colour != COLOUR_NONE;
    if (coloured)
        fputs(colour_codes[row->colour], stdout);
    for (size_t i = 0; i < table->column_count; i++) {
        fwrite(row->cells[i].at != NULL ? row->cells[i].at : "", 1, row->cells[i].len, stdout);
        if (i + 1 < table->column_count)
            printf("%*s", (int)(table->widths[i] - width_of(row->cells[i]) + 2), "");
    }
    fputs(coloured ? "\033[0m\n" : "\n", stdout);
}

void table_print(const struct table *table)
{
    bool colourful = print_is_colourful();
    for (const struct table_row *row = table->first; row != NULL; row = row->next)
        print_row(table, row, colourful);
}

void print_evidence(struct cli *cli, const struct json *explanation)
{
    for (uint32_t i = 0; explanation != NULL && explanation->type == JSON_ARRAY && i < explanation->count; i++) {
        const struct json *line = &explanation->items[i];
        int64_t weight = json_get_i64(line, "weight");
        struct bytes holders = print_field(cli, line, "holders");
        print_line("    %+6.1f  %.*s%s%.*s%s", (double)weight / 1000.0, BYTES_ARG(print_field(cli, line, "because")),
                   holders.len > 0 ? " (used by " : "", BYTES_ARG(holders), holders.len > 0 ? " leads)" : "");
    }
}
