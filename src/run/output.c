#include "run/output.h"

#include <stdlib.h>

#include "base/when.h"

enum { TEXT_SLACK = 8 }; /* text may be this much longer than base64: a short line with a line break should stay readable */

void output_init(struct output *output, size_t kept_max)
{
    *output = (struct output){.kept_max = kept_max};
}

void output_release(struct output *output)
{
    for (size_t i = 0; i < output->count; i++)
        buf_release(&output->pieces[i].bytes);
    free(output->pieces);
    *output = (struct output){0};
}

/* ---- recording ---- */

static struct output_piece *new_piece(struct output *output, int fd)
{
    if (output->count == output->cap) {
        size_t cap = output->cap == 0 ? 16 : output->cap * 2;
        struct output_piece *pieces = realloc(output->pieces, cap * sizeof *pieces);
        if (pieces == NULL)
            return NULL;
        output->pieces = pieces;
        output->cap = cap;
    }
    struct output_piece *piece = &output->pieces[output->count++];
    piece->fd = fd;
    buf_init(&piece->bytes, OUTPUT_PIECE_MAX);
    output->last[fd] = output->count;
    return piece;
}

/* The piece that the next bytes of `fd` go to: the last one, if it is of the same stream; of many small ones, the last of the
 * stream. */
static struct output_piece *piece_for(struct output *output, int fd)
{
    size_t last = output->last[fd];
    bool follows = last == output->count || output->count >= OUTPUT_PIECES_MAX;
    if (last > 0 && follows && output->pieces[last - 1].bytes.len < OUTPUT_PIECE_MAX)
        return &output->pieces[last - 1];
    return new_piece(output, fd);
}

/* The longest beginning of `bytes` that has at most `max` bytes and does not end inside a character. */
static size_t cut(struct bytes bytes, size_t max)
{
    if (bytes.len <= max)
        return bytes.len;
    size_t len = max;
    for (int back = 0; back < 3 && len > 0 && ((unsigned char)bytes.at[len] & 0xC0) == 0x80; back++)
        len--;
    return len > 0 && ((unsigned char)bytes.at[len] & 0xC0) != 0x80 ? len : max;
}

void output_add(struct output *output, int fd, struct bytes bytes)
{
    bool full = output_is_truncated(output); /* once something is missing, nothing that came later is kept */
    output->total += bytes.len;
    if (full)
        return;
    bytes.len = cut(bytes, output->kept_max - output->kept);
    while (bytes.len > 0) {
        struct output_piece *piece = piece_for(output, fd);
        if (piece == NULL)
            return;
        size_t len = cut(bytes, OUTPUT_PIECE_MAX - piece->bytes.len);
        buf_add(&piece->bytes, (struct bytes){bytes.at, len});
        if (piece->bytes.failed)
            return;
        output->kept += len;
        bytes = bytes_from(bytes, len);
    }
}

/* ---- base64, RFC 4648 with padding ---- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void base64_add(struct buf *out, struct bytes bytes)
{
    const unsigned char *at = (const unsigned char *)bytes.at;
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        uint32_t group = (uint32_t)at[i] << 16 | (left > 1 ? (uint32_t)at[i + 1] << 8 : 0) | (left > 2 ? at[i + 2] : 0);
        const char four[] = {digits[group >> 18], digits[group >> 12 & 63], left > 1 ? digits[group >> 6 & 63] : '=',
                             left > 2 ? digits[group & 63] : '='};
        buf_add(out, (struct bytes){four, sizeof four});
    }
}

static bool base64_digit(char c, uint32_t *ret)
{
    const char *found = c != '\0' ? strchr(digits, c) : NULL;
    *ret = found != NULL ? (uint32_t)(found - digits) : 0;
    return found != NULL;
}

static bool base64_read(struct bytes text, struct arena *arena, struct bytes *ret)
{
    size_t padding = 0, len = 0;
    while (padding < 2 && padding < text.len && text.at[text.len - 1 - padding] == '=')
        padding++;
    char *bytes = text.len % 4 == 0 ? arena_alloc(arena, text.len / 4 * 3 + 1) : NULL;
    if (bytes == NULL)
        return false;
    for (size_t i = 0; i < text.len; i += 4) {
        uint32_t group = 0, value = 0;
        for (size_t k = 0; k < 4; k++) {
            if (i + k < text.len - padding && !base64_digit(text.at[i + k], &value))
                return false;
            group = group << 6 | (i + k < text.len - padding ? value : 0);
        }
        const char three[] = {(char)(group >> 16), (char)(group >> 8), (char)group};
        memcpy(bytes + len, three, 3);
        len += 3;
    }
    *ret = (struct bytes){bytes, len - padding};
    return true;
}

/* ---- writing ---- */

static size_t escaped_len(struct bytes text)
{
    size_t len = text.len;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t')
            len += 1;
        else if (c < 0x20 || c == 0x7F)
            len += 5;
    }
    return len;
}

static void write_piece(struct json_out *out, const struct output_piece *piece)
{
    struct bytes bytes = buf_bytes(&piece->bytes);
    json_open(out, '{');
    json_name(out, "fd");
    json_i64(out, piece->fd);
    if (bytes_is_utf8(bytes) && escaped_len(bytes) <= bytes.len / 3 * 4 + TEXT_SLACK) {
        json_name(out, "text");
        json_text(out, bytes);
    } else {
        struct buf text;
        buf_init(&text, 2 * OUTPUT_PIECE_MAX);
        base64_add(&text, bytes);
        json_name(out, "base64");
        json_text(out, buf_bytes(&text));
        buf_release(&text);
    }
    json_close(out, '}');
}

void ending_write(const struct ending *ending, const struct output *output, struct buf *buf)
{
    struct json_out out = json_out_to(buf);
    json_open(&out, '{');
    json_name(&out, "exit");
    json_i64(&out, ending->exit);
    json_name(&out, "signal");
    json_text(&out, ending->signal);
    json_name(&out, "output");
    json_open(&out, '[');
    for (size_t i = 0; output != NULL && i < output->count; i++)
        write_piece(&out, &output->pieces[i]);
    json_close(&out, ']');
    json_name(&out, "bytes");
    json_i64(&out, (int64_t)(output != NULL ? output->total : ending->bytes));
    json_name(&out, "truncated");
    json_bool(&out, output != NULL ? output_is_truncated(output) : ending->bytes > 0);
    json_name(&out, "started");
    json_time(&out, ending->started_us);
    json_name(&out, "ended");
    json_time(&out, ending->ended_us);
    json_name(&out, "command");
    json_text(&out, ending->command);
    json_close(&out, '}');
}

/* ---- reading ---- */

static int64_t time_of(const struct json *result, struct bytes name)
{
    const struct json *value = json_get(result, name);
    int64_t time_us = 0;
    return value != NULL && value->type == JSON_STRING && when_parse(value->text, &time_us) ? time_us : 0;
}

static struct bytes text_of(const struct json *result, struct bytes name)
{
    const struct json *value = json_get(result, name);
    return value != NULL && value->type == JSON_STRING ? value->text : BYTES_NONE;
}

bool ending_read(const struct json *result, struct ending *ret_ending)
{
    const struct json *code = json_get(result, BYTES("exit")), *output = json_get(result, BYTES("output"));
    const struct json *truncated = json_get(result, BYTES("truncated")), *bytes = json_get(result, BYTES("bytes"));
    int64_t number = 0, total = 0;
    if (code == NULL || !json_to_i64(code, &number) || number < 0 || number > 255 || output == NULL || output->type != JSON_ARRAY)
        return false;
    if (bytes != NULL && (!json_to_i64(bytes, &total) || total < 0))
        return false;
    *ret_ending = (struct ending){
        .exit = (int)number,
        .signal = text_of(result, BYTES("signal")),
        .command = text_of(result, BYTES("command")),
        .started_us = time_of(result, BYTES("started")),
        .ended_us = time_of(result, BYTES("ended")),
        .bytes = (uint64_t)total,
        .truncated = truncated != NULL && truncated->type == JSON_TRUE,
        .output = output,
    };
    return true;
}

bool ending_piece(const struct json *piece, struct arena *arena, int *ret_fd, struct bytes *ret_bytes)
{
    const struct json *fd = json_get(piece, BYTES("fd"));
    struct bytes text = text_of(piece, BYTES("text")), base64 = text_of(piece, BYTES("base64"));
    int64_t number = 0;
    if (fd == NULL || !json_to_i64(fd, &number) || (number != 1 && number != 2) || (text.at == NULL) == (base64.at == NULL))
        return false;
    if (base64.at != NULL && !base64_read(base64, arena, &text))
        return false;
    *ret_fd = (int)number;
    *ret_bytes = text;
    return true;
}

bool size_parse(struct bytes text, uint64_t *ret_size)
{
    static const struct {
        const char *unit;
        unsigned shift;
    } units[] = {{"KiB", 10}, {"MiB", 20}, {"K", 10}, {"k", 10}, {"M", 20}, {"B", 0}, {"", 0}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t unit_len = strlen(units[i].unit);
        uint64_t number;
        if (text.len <= unit_len || memcmp(text.at + text.len - unit_len, units[i].unit, unit_len) != 0)
            continue;
        if (!bytes_to_u64((struct bytes){text.at, text.len - unit_len}, &number) || number > UINT32_MAX)
            return false;
        *ret_size = number << units[i].shift;
        return true;
    }
    return false;
}
