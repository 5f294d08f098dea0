#include "mcp/route.h"

#include "base/base64.h"

#define CODED "=?base64?"

bool mcp_is_plain(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] < 0x20 || (unsigned char)text.at[i] > 0x7E)
            return false;
    return text.len > 0 && text.at[0] != ' ' && text.at[text.len - 1] != ' ';
}

/* Text that a header cannot hold, or that looks as if it were coded, is coded. */
struct bytes mcp_as_header(struct bytes text, struct arena *arena)
{
    if (text.len == 0)
        return BYTES_NONE;
    if (mcp_is_plain(text) && !bytes_starts(text, BYTES(CODED)))
        return text;
    struct bytes coded = base64_encode(text, arena);
    return coded.at != NULL ? arena_printf(arena, CODED "%.*s?=", BYTES_ARG(coded)) : BYTES_NONE;
}

struct bytes mcp_from_header(struct bytes value, struct arena *arena)
{
    struct bytes end = BYTES("?=");
    if (!bytes_starts(value, BYTES(CODED)) || value.len < sizeof CODED - 1 + end.len ||
        !bytes_eq(bytes_from(value, value.len - end.len), end))
        return value;
    struct bytes text =
        base64_decode((struct bytes){value.at + sizeof CODED - 1, value.len - (sizeof CODED - 1) - end.len}, arena);
    return text.at != NULL && bytes_is_utf8(text) ? text : BYTES_NONE;
}

static struct bytes name_of(struct bytes method, const struct json *params)
{
    if (bytes_is(method, "tools/call") || bytes_is(method, "prompts/get"))
        return json_get_text(params, "name");
    return bytes_is(method, "resources/read") ? json_get_text(params, "uri") : BYTES_NONE;
}

void mcp_route_read(const struct mcp_message *message, struct arena *arena, struct mcp_route *ret)
{
    struct json *params = arena_zalloc(arena, 1, sizeof *params);
    struct why why;
    *ret = (struct mcp_route){0};
    if (params == NULL || message->params.at == NULL || json_parse(message->params, &mcp_json_limits, arena, params, &why) != OK)
        return;
    const struct json *meta = json_get(params, BYTES("_meta"));
    struct bytes version = json_get_text(meta, "io.modelcontextprotocol/protocolVersion");
    if (!mcp_is_plain(version))
        return;
    *ret = (struct mcp_route){.modern = true, .version = version, .name = mcp_as_header(name_of(message->method, params), arena)};
}

struct bytes mcp_agreed_version(struct bytes result, struct arena *arena)
{
    struct json *json = arena_zalloc(arena, 1, sizeof *json);
    struct why why;
    if (json == NULL || result.at == NULL || json_parse(result, &mcp_json_limits, arena, json, &why) != OK)
        return BYTES_NONE;
    struct bytes version = json_get_text(json, "protocolVersion");
    return mcp_is_plain(version) ? version : BYTES_NONE;
}
