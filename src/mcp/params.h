/*
 * params: arguments of a tool that headers repeat (Mcp-Param-…, since 2026-07-28). Pure. Which ones, the tool's input schema says: `x-mcp-header` at a property
 * that is reached by `properties` alone.
 */
#ifndef SEMEL_MCP_PARAMS_H
#define SEMEL_MCP_PARAMS_H

#include "base/arena.h"
#include "base/json.h"

#define MCP_PARAMS_MAX 32 /* of one tool; others are not looked at */
#define MCP_PARAM_DEPTH_MAX 8
#define MCP_PARAM_PREFIX "Mcp-Param-"

struct mcp_param {
    struct bytes header; /* behind the prefix */
    struct bytes path[MCP_PARAM_DEPTH_MAX];
    size_t depth;
};

struct mcp_params {
    struct mcp_param *at;
    size_t count;
};

/* In the arena. */
void mcp_params_read(const struct json *schema, struct arena *arena, struct mcp_params *ret);

/* What the header of this parameter holds for these arguments (NULL for none), coded where it has to be; BYTES_NONE: there is no header then. */
struct bytes mcp_param_header(const struct mcp_param *param, const struct json *arguments, struct arena *arena);

/* INVALID when a header is missing or says something else than the arguments. `find` gives the value of a header, BYTES_NONE for none. */
CHECKED enum status mcp_params_check(const struct mcp_params *params, const struct json *arguments,
                                     struct bytes (*find)(const void *ctx, struct bytes name), const void *ctx,
                                     struct arena *arena, struct why *why);

#endif
