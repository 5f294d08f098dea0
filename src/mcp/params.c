#include "mcp/params.h"

#include "mcp/message.h"
#include "mcp/route.h"

#define NUMBER_SAFE_MAX ((int64_t)1 << 53) /* clients send no header for a larger integer */

/* ---- the schema ---- */

static bool is_token(struct bytes text)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!plain && (c == '\0' || strchr(others, c) == NULL))
            return false;
    }
    return text.len > 0;
}

static void take(const struct json *schema, const struct mcp_param *here, struct arena *arena, struct mcp_params *ret)
{
    struct bytes name = json_get_text(schema, "x-mcp-header");
    struct mcp_param param = *here;
    if (!is_token(name) || here->depth == 0 || ret->count == MCP_PARAMS_MAX)
        return;
    param.header = arena_dup(arena, name);
    for (size_t i = 0; i < param.depth; i++)
        param.path[i] = arena_dup(arena, param.path[i]);
    if (!arena->failed)
        ret->at[ret->count++] = param;
}

static void walk(const struct json *schema, struct mcp_param *here, struct arena *arena, struct mcp_params *ret)
{
    const struct json *properties = json_get(schema, BYTES("properties"));
    take(schema, here, arena, ret);
    if (properties == NULL || properties->type != JSON_OBJECT || here->depth == MCP_PARAM_DEPTH_MAX)
        return;
    for (uint32_t i = 0; i < properties->count; i++) {
        here->path[here->depth++] = properties->members[i].name;
        walk(&properties->members[i].value, here, arena, ret);
        here->depth--;
    }
}

void mcp_params_read(const struct json *schema, struct arena *arena, struct mcp_params *ret)
{
    struct mcp_param at_top = {0}, found[MCP_PARAMS_MAX];
    struct mcp_params params = {.at = found};
    *ret = (struct mcp_params){0};
    walk(schema, &at_top, arena, &params);
    struct mcp_param *kept = params.count > 0 ? arena_zalloc(arena, params.count, sizeof *kept) : NULL;
    if (kept == NULL)
        return;
    memcpy(kept, found, params.count * sizeof *kept);
    *ret = (struct mcp_params){kept, params.count};
}

/* ---- values ---- */

static const struct json *find_value(const struct mcp_param *param, const struct json *arguments)
{
    for (size_t i = 0; i < param->depth && arguments != NULL; i++)
        arguments = json_get(arguments, param->path[i]);
    return arguments;
}

/* A number in its shortest form; BYTES_NONE for what is no number, or one that clients do not send. */
static struct bytes number_text(const struct json *number, struct arena *arena)
{
    struct buf out;
    struct why why;
    int64_t n;
    struct bytes text = BYTES_NONE;
    if (json_to_i64(number, &n) && (n >= NUMBER_SAFE_MAX || n <= -NUMBER_SAFE_MAX))
        return BYTES_NONE;
    buf_init(&out, 64);
    if (json_canonical(number, arena, &out, &why) == OK)
        text = arena_dup(arena, buf_bytes(&out));
    buf_release(&out);
    return text;
}

/* The value as text; BYTES_NONE when no header goes with it. */
static struct bytes value_text(const struct json *value, struct arena *arena)
{
    return value != NULL && value->type == JSON_NUMBER ? number_text(value, arena) : json_scalar(value);
}

struct bytes mcp_param_header(const struct mcp_param *param, const struct json *arguments, struct arena *arena)
{
    struct bytes text = value_text(find_value(param, arguments), arena);
    return text.at != NULL ? mcp_as_header(text, arena) : BYTES_NONE;
}

/* 42.0 says what 42 says. */
static bool says(const struct json *value, struct bytes wanted, struct bytes said, struct arena *arena)
{
    struct json number;
    struct why why;
    if (bytes_eq(wanted, said))
        return true;
    if (value->type != JSON_NUMBER || json_parse(said, NULL, arena, &number, &why) != OK || number.type != JSON_NUMBER)
        return false;
    return bytes_eq(wanted, number_text(&number, arena));
}

enum status mcp_params_check(const struct mcp_params *params, const struct json *arguments,
                             struct bytes (*find)(const void *ctx, struct bytes name), const void *ctx, struct arena *arena,
                             struct why *why)
{
    for (size_t i = 0; i < params->count; i++) {
        const struct mcp_param *param = &params->at[i];
        const struct json *value = find_value(param, arguments);
        struct bytes wanted = value_text(value, arena);
        struct bytes name = arena_printf(arena, MCP_PARAM_PREFIX "%.*s", BYTES_ARG(param->header));
        struct bytes said = wanted.at != NULL && name.at != NULL ? find(ctx, name) : BYTES_NONE;
        if (wanted.at == NULL || (wanted.len == 0 && said.at == NULL)) /* not everyone sends a header without a value */
            continue;
        if (said.at == NULL)
            return why_set(why, INVALID, "The header %.*s is missing: the arguments have a value for it.", BYTES_ARG(name));
        said = mcp_from_header(said, arena);
        if (said.at == NULL || !says(value, wanted, said, arena))
            return why_set(why, INVALID, "The header %.*s is not what the arguments say.", BYTES_ARG(name));
    }
    return OK;
}
