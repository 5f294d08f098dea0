#include "mcp/message.h"

const struct json_limits mcp_json_limits = {.depth_max = 128, .members_max = 1000000, .text_max = MCP_LINE_MAX};

/* ---- looking ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static size_t skip_space(struct bytes text, size_t at)
{
    while (at < text.len && is_space(text.at[at]))
        at++;
    return at;
}

/* Behind the string that begins at `at`, or 0 when it does not end. */
static size_t skip_string(struct bytes text, size_t at)
{
    for (at++; at < text.len; at++) {
        if (text.at[at] == '\\')
            at++;
        else if (text.at[at] == '"')
            return at + 1;
    }
    return 0;
}

/* Behind the value that begins at `at`, or 0. Whether it is valid JSON inside is not looked at. */
static size_t skip_value(struct bytes text, size_t at)
{
    size_t depth = 0, start = at;
    while (at < text.len) {
        char c = text.at[at];
        if (c == '"') {
            at = skip_string(text, at);
            if (at == 0)
                return 0;
        } else if (c == '{' || c == '[') {
            depth++;
            at++;
        } else if (depth > 0 && (c == '}' || c == ']')) {
            depth--;
            at++;
        } else if (depth == 0 && (c == ',' || c == '}' || c == ']' || is_space(c))) {
            return at > start ? at : 0;
        } else {
            at++;
            continue;
        }
        if (depth == 0 && c != '{' && c != '[')
            return at;
    }
    return 0;
}

static struct bytes *part_of(struct mcp_message *message, struct bytes name)
{
    const struct {
        const char *name;
        struct bytes *part;
    } parts[] = {{"id", &message->id},
                 {"method", &message->method},
                 {"params", &message->params},
                 {"result", &message->result},
                 {"error", &message->error}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (bytes_is(name, parts[i].name))
            return parts[i].part;
    return NULL;
}

static void take_member(struct mcp_message *message, struct bytes name, struct bytes value)
{
    struct bytes *part = part_of(message, name);
    if (memchr(name.at, '\\', name.len) != NULL || (part != NULL && part->at != NULL))
        message->doubtful = true;
    if (part != NULL && part->at == NULL)
        *part = value;
}

/* One member from `at` on; returns where it ends, or 0. */
static size_t read_member(struct bytes text, size_t at, struct mcp_message *message)
{
    size_t name = at, end = at < text.len && text.at[at] == '"' ? skip_string(text, at) : 0;
    if (end == 0)
        return 0;
    at = skip_space(text, end);
    if (at >= text.len || text.at[at] != ':')
        return 0;
    size_t value = skip_space(text, at + 1);
    at = skip_value(text, value);
    if (at == 0)
        return 0;
    take_member(message, (struct bytes){text.at + name + 1, end - name - 2}, (struct bytes){text.at + value, at - value});
    return skip_space(text, at);
}

static bool read_members(struct bytes text, struct mcp_message *message)
{
    size_t at = skip_space(text, 1);
    if (at < text.len && text.at[at] == '}')
        return at + 1 == text.len;
    for (;;) {
        at = read_member(text, at, message);
        if (at == 0 || at >= text.len)
            return false;
        if (text.at[at] == '}')
            return at + 1 == text.len;
        if (text.at[at] != ',')
            return false;
        at = skip_space(text, at + 1);
    }
}

static void classify(struct mcp_message *message)
{
    struct bytes *method = &message->method;
    if (method->at != NULL && (method->at[0] != '"' || memchr(method->at, '\\', method->len) != NULL)) {
        message->doubtful = true;
        return;
    }
    if (method->at != NULL)
        *method = (struct bytes){method->at + 1, method->len - 2};
    if (method->at != NULL)
        message->kind = message->id.at != NULL ? MCP_REQUEST : MCP_NOTIFICATION;
    else if (message->id.at != NULL && (message->result.at != NULL || message->error.at != NULL))
        message->kind = MCP_RESPONSE;
}

void mcp_message_read(struct bytes text, struct mcp_message *ret)
{
    *ret = (struct mcp_message){.kind = MCP_OTHER};
    text = bytes_from(text, skip_space(text, 0));
    while (text.len > 0 && is_space(text.at[text.len - 1]))
        text.len--;
    if (text.len > 0 && text.at[0] == '[')
        ret->kind = MCP_BATCH;
    if (text.len == 0 || text.at[0] != '{')
        return;
    if (!read_members(text, ret)) {
        *ret = (struct mcp_message){.kind = MCP_OTHER, .doubtful = true};
        return;
    }
    classify(ret);
}

/* ---- a call of a tool ---- */

static struct bytes text_of(const struct json *json)
{
    return json != NULL && json->type == JSON_STRING ? json->text : BYTES_NONE;
}

enum status mcp_call_read(struct bytes params, struct arena *arena, struct mcp_call *ret, struct why *why)
{
    struct json *json = arena_zalloc(arena, 1, sizeof *json);
    if (json == NULL)
        return why_set(why, FULL, "the call needs too much memory");
    TRY(json_parse(params.at != NULL ? params : BYTES("{}"), &mcp_json_limits, arena, json, why));
    const struct json *name = json_get(json, BYTES("name")), *arguments = json_get(json, BYTES("arguments"));
    const struct json *meta = json_get(json, BYTES("_meta"));
    struct mcp_call call = {
        .tool = text_of(name), .arguments = arguments, .meta = meta, .key = text_of(json_get(json, BYTES("idempotencyKey")))};
    if (call.tool.len == 0 || call.tool.len > MCP_TOOL_NAME_MAX)
        return why_set(why, INVALID, "params.name has to be the name of a tool, 1 to %d bytes", MCP_TOOL_NAME_MAX);
    if (arguments != NULL && arguments->type != JSON_OBJECT)
        return why_set(why, INVALID, "params.arguments has to be an object, not %s", json_type_name(arguments->type));
    if (call.key.at == NULL)
        call.key = text_of(json_get(meta, BYTES("dev.semel/key")));
    call.run = text_of(json_get(meta, BYTES("dev.semel/run")));
    call.continues = json_get(json, BYTES("inputResponses")) != NULL || json_get(json, BYTES("requestState")) != NULL;
    *ret = call;
    return OK;
}
