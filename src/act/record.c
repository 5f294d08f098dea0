#include "act/outbox.h"
#include "base/base64.h"

static const struct json_limits record_limits = {8, 100000, RECORD_SIZE_MAX};

static void write_headers(struct json_out *out, const struct pair *headers, size_t count)
{
    json_name(out, "headers");
    json_open(out, '[');
    for (size_t i = 0; i < count; i++) {
        json_open(out, '[');
        json_text(out, headers[i].name);
        json_text(out, headers[i].value);
        json_close(out, ']');
    }
    json_close(out, ']');
}

static enum status read_headers(const struct json *json, struct arena *arena, struct pair **ret_headers, size_t *ret_count,
                                struct why *why)
{
    const struct json *headers = json_get(json, BYTES("headers"));
    if (headers == NULL || headers->type != JSON_ARRAY)
        return why_set(why, BROKEN, "a record has no headers");
    struct pair *pairs = arena_zalloc(arena, headers->count + 1, sizeof *pairs);
    if (pairs == NULL)
        return why_set(why, FULL, "no memory for a record");
    for (uint32_t i = 0; i < headers->count; i++) {
        const struct json *pair = &headers->items[i];
        if (pair->type != JSON_ARRAY || pair->count != 2 || pair->items[0].type != JSON_STRING ||
            pair->items[1].type != JSON_STRING)
            return why_set(why, BROKEN, "a record's header is damaged");
        pairs[i] = (struct pair){pair->items[0].text, pair->items[1].text};
    }
    *ret_headers = pairs;
    *ret_count = headers->count;
    return OK;
}

static enum status finish(struct buf *buf, struct arena *arena, struct bytes *ret_record, struct why *why)
{
    struct bytes record = buf->failed ? BYTES_NONE : arena_dup(arena, buf_bytes(buf));
    buf_release(buf);
    if (record.at == NULL)
        return why_set(why, FULL, "the request or its answer is too large to be kept");
    *ret_record = record;
    return OK;
}

/* ---- requests ---- */

enum status request_record(const struct effect_request *request, struct arena *arena, struct bytes *ret_record, struct why *why)
{
    struct buf buf;
    buf_init(&buf, RECORD_SIZE_MAX);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    json_name(&out, "method");
    json_text(&out, request->method);
    json_name(&out, "path");
    json_text(&out, request->path);
    write_headers(&out, request->headers, request->header_count);
    json_close(&out, '}');
    buf_add_char(&buf, '\n');
    buf_add(&buf, request->body);
    return finish(&buf, arena, ret_record, why);
}

enum status request_read(struct bytes record, struct arena *arena, struct effect_request *ret_request, struct why *why)
{
    struct bytes rest = record, head = bytes_cut(&rest, '\n');
    struct json json;
    TRY(json_parse(head, &record_limits, arena, &json, why));
    const struct json *method = json_get(&json, BYTES("method")), *path = json_get(&json, BYTES("path"));
    if (method == NULL || method->type != JSON_STRING || path == NULL || path->type != JSON_STRING)
        return why_set(why, BROKEN, "the record of a request is damaged");
    struct effect_request request = {.method = method->text, .path = path->text, .body = rest};
    TRY(read_headers(&json, arena, &request.headers, &request.header_count, why));
    *ret_request = request;
    return OK;
}

/* ---- replies ---- */

static void write_tokens(struct json_out *out, const char *name, int64_t count)
{
    if (count < 0)
        return;
    json_name(out, name);
    json_i64(out, count);
}

static void write_memo(struct json_out *out, const struct reply_notes *notes)
{
    json_name(out, "memo");
    json_open(out, '{');
    write_tokens(out, "input_tokens", notes->input);
    write_tokens(out, "output_tokens", notes->output);
    json_name(out, "pieces");
    json_open(out, '[');
    for (size_t i = 0; i < notes->piece_count; i++)
        json_i64(out, notes->pieces[i]);
    json_close(out, ']');
    json_close(out, '}');
}

static int64_t read_tokens(const struct json *memo, struct bytes name)
{
    int64_t count;
    const struct json *found = json_get(memo, name);
    return found != NULL && json_to_i64(found, &count) && count >= 0 ? count : -1;
}

static enum status read_memo(const struct json *memo, struct arena *arena, struct reply_notes *notes, struct why *why)
{
    const struct json *list = json_get(memo, BYTES("pieces"));
    uint32_t count = list != NULL && list->type == JSON_ARRAY ? list->count : 0;
    uint32_t *pieces = arena_zalloc(arena, count + 1, sizeof *pieces);
    if (pieces == NULL)
        return why_set(why, FULL, "no memory for a record");
    for (uint32_t i = 0; i < count; i++) {
        int64_t len;
        if (!json_to_i64(&list->items[i], &len) || len < 0 || len > UINT32_MAX)
            return why_set(why, BROKEN, "the pieces of an answer are damaged");
        pieces[i] = (uint32_t)len;
    }
    notes->memo = true;
    notes->input = read_tokens(memo, BYTES("input_tokens"));
    notes->output = read_tokens(memo, BYTES("output_tokens"));
    notes->pieces = pieces;
    notes->piece_count = count;
    return OK;
}

enum status reply_record(const struct effect_reply *reply, const struct reply_notes *notes, struct arena *arena,
                         struct bytes *ret_record, struct why *why)
{
    struct buf buf;
    buf_init(&buf, RECORD_SIZE_MAX);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    json_name(&out, "status");
    json_i64(&out, reply->status);
    write_headers(&out, reply->headers, reply->header_count);
    if (bytes_is_utf8(reply->body)) {
        json_name(&out, "body");
        json_text(&out, reply->body.at != NULL ? reply->body : BYTES(""));
    } else {
        struct bytes text = base64_encode(reply->body, arena);
        buf.failed |= text.at == NULL;
        json_name(&out, "body_base64");
        json_text(&out, text);
    }
    if (notes->partial) {
        json_name(&out, "partial");
        json_bool(&out, true);
    }
    if (notes->evidence.at != NULL) {
        json_name(&out, "evidence");
        json_raw(&out, notes->evidence);
    }
    if (notes->memo)
        write_memo(&out, notes);
    json_close(&out, '}');
    return finish(&buf, arena, ret_record, why);
}

enum status reply_read(struct bytes record, struct arena *arena, struct effect_reply *ret_reply, struct reply_notes *ret_notes,
                       struct why *why)
{
    struct json json;
    struct reply_notes notes = {.input = -1, .output = -1};
    int64_t status = 0;
    TRY(json_parse(record, &record_limits, arena, &json, why));
    const struct json *number = json_get(&json, BYTES("status")), *body = json_get(&json, BYTES("body")),
                      *base64 = json_get(&json, BYTES("body_base64")), *partial = json_get(&json, BYTES("partial")),
                      *evidence = json_get(&json, BYTES("evidence")), *memo = json_get(&json, BYTES("memo"));
    if (number == NULL || !json_to_i64(number, &status) || status < 0 || status > 999)
        return why_set(why, INVALID, "the result is no answer of a destination");
    struct effect_reply reply = {.status = (int)status, .body = BYTES("")};
    TRY(read_headers(&json, arena, &reply.headers, &reply.header_count, why));
    if (body != NULL && body->type == JSON_STRING)
        reply.body = body->text;
    else if (base64 != NULL && base64->type == JSON_STRING)
        reply.body = base64_decode(base64->text, arena);
    if (reply.body.at == NULL)
        return why_set(why, BROKEN, "the record of an answer is damaged");
    if (memo != NULL)
        TRY(read_memo(memo, arena, &notes, why));
    notes.partial = partial != NULL && partial->type == JSON_TRUE;
    notes.evidence = evidence != NULL ? evidence->raw : BYTES_NONE;
    *ret_reply = reply;
    *ret_notes = notes;
    return OK;
}
