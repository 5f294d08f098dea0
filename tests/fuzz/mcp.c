/*
 * Messages of the Model Context Protocol: what the strict reader reads is seen the same by the look at its bytes, or is doubtful; so no
 * tool call can hide from a proxy. And the events of a stream leave as the bytes that came, however they were cut.
 */
#include "fuzz.h"

#include "mcp/message.h"
#include "mcp/sse.h"

static void check_part(const struct json *json, const char *name, struct bytes seen, bool quoted)
{
    const struct json *member = json_get(json, bytes_of(name));
    ASSERT((member != NULL) == (seen.at != NULL));
    if (member == NULL)
        return;
    if (quoted) {
        ASSERT(member->type == JSON_STRING);
        ASSERT(bytes_eq(member->text, seen));
    } else {
        ASSERT(bytes_eq(member->raw, seen));
    }
}

static void check_message(struct bytes in)
{
    struct arena arena;
    struct json json;
    struct why why;
    struct mcp_message message;
    arena_init(&arena, FUZZ_ARENA_MAX);
    mcp_message_read(in, &message);
    if (json_parse(in, NULL, &arena, &json, &why) == OK) {
        const struct json *method = json_get(&json, BYTES("method"));
        bool calls = method != NULL && method->type == JSON_STRING && bytes_is(method->text, "tools/call");
        if (calls && !message.doubtful)
            ASSERT(message.kind == MCP_REQUEST || message.kind == MCP_NOTIFICATION);
        ASSERT((json.type == JSON_ARRAY) == (message.kind == MCP_BATCH));
        if (json.type == JSON_OBJECT && !message.doubtful) {
            check_part(&json, "id", message.id, false);
            check_part(&json, "method", message.method, true);
            check_part(&json, "params", message.params, false);
            check_part(&json, "result", message.result, false);
            check_part(&json, "error", message.error, false);
        }
    }
    arena_release(&arena);
}

static void check_stream(struct bytes in, size_t cut)
{
    struct mcp_sse sse;
    struct buf all;
    struct bytes event, data;
    mcp_sse_init(&sse, FUZZ_SIZE_MAX);
    buf_init(&all, FUZZ_SIZE_MAX);
    for (struct bytes rest = in; rest.len > 0; rest = bytes_from(rest, cut)) {
        ASSERT(mcp_sse_feed(&sse, (struct bytes){rest.at, rest.len < cut ? rest.len : cut}));
        while (mcp_sse_next(&sse, &event, &data)) {
            ASSERT(data.len <= event.len);
            buf_add(&all, event);
        }
    }
    buf_add(&all, mcp_sse_rest(&sse));
    ASSERT(bytes_eq(buf_bytes(&all), in));
    buf_release(&all);
    mcp_sse_release(&sse);
}

FUZZ_TARGET(mcp)(const uint8_t *data, size_t size)
{
    struct bytes in = fuzz_exact(fuzz_bytes(data, size < FUZZ_SIZE_MAX ? size : FUZZ_SIZE_MAX)), rest = in;
    size_t cut = (size_t)fuzz_byte(&rest) + 1;
    check_message(in);
    check_message(rest);
    check_stream(rest, cut);
    free((char *)in.at);
    return 0;
}
