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

enum status reply_record(const struct effect_reply *reply, bool partial, struct bytes evidence, struct arena *arena,
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
    if (partial) {
        json_name(&out, "partial");
        json_bool(&out, true);
    }
    if (evidence.at != NULL) {
        json_name(&out, "evidence");
        json_raw(&out, evidence);
    }
    json_close(&out, '}');
    return finish(&buf, arena, ret_record, why);
}

enum status reply_read(struct bytes record, struct arena *arena, struct effect_reply *ret_reply, bool *ret_partial,
                       struct why *why)
{
    struct json json;
    int64_t status = 0;
    TRY(json_parse(record, &record_limits, arena, &json, why));
    const struct json *number = json_get(&json, BYTES("status")), *body = json_get(&json, BYTES("body")),
                      *base64 = json_get(&json, BYTES("body_base64")), *partial = json_get(&json, BYTES("partial"));
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
    *ret_reply = reply;
    *ret_partial = partial != NULL && partial->type == JSON_TRUE;
    return OK;
}
