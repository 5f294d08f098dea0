#include "mcp/rewrite.h"

void mcp_put(struct bytes text, struct bytes part, struct bytes by, struct buf *out)
{
    size_t before = (size_t)(part.at - text.at);
    ASSERT(before + part.len <= text.len);
    buf_add(out, (struct bytes){text.at, before});
    buf_add(out, by);
    buf_add(out, bytes_from(text, before + part.len));
}

void mcp_put_id(struct bytes text, struct bytes id, struct buf *out)
{
    struct mcp_message message;
    mcp_message_read(text, &message);
    mcp_put(text, message.id, id, out);
}

struct bytes mcp_part(struct bytes part, const char *name, const char *inner, struct arena *arena)
{
    struct json json;
    struct why why;
    if (part.at == NULL || json_parse(part, &mcp_json_limits, arena, &json, &why) != OK)
        return BYTES_NONE;
    const struct json *value = json_get(&json, bytes_of(name));
    if (inner != NULL)
        value = json_get(value, bytes_of(inner));
    return value != NULL && (value->type == JSON_STRING || value->type == JSON_NUMBER) ? value->raw : BYTES_NONE;
}
