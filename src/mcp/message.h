/*
 * message: one JSON-RPC message of the Model Context Protocol, as bytes. Pure.
 *
 * A proxy passes on what it does not understand, byte for byte; so a message is not parsed into a tree and written again, but
 * looked at: where its id, method, params, result and error stand in the text. Only the params of a tool call are read as JSON.
 *
 * A message that two programs could read differently (a name twice, a name or method written with escapes) is `doubtful`: from a
 * client it must be refused, because a tool call could hide in it.
 */
#ifndef SEMEL_MCP_MESSAGE_H
#define SEMEL_MCP_MESSAGE_H

#include "base/arena.h"
#include "base/json.h"

#define MCP_LINE_MAX ((size_t)16 << 20) /* of one message */
#define MCP_TOOL_NAME_MAX 256

enum mcp_kind {
    MCP_REQUEST,
    MCP_NOTIFICATION, /* a method without an id */
    MCP_RESPONSE,
    MCP_BATCH, /* a list of messages, as 2025-03-26 allowed */
    MCP_OTHER, /* no message at all */
};

/* All of it refers to the text; absent parts are BYTES_NONE. */
struct mcp_message {
    enum mcp_kind kind;
    struct bytes id;                    /* as written: 7, "a-7" */
    struct bytes method;                /* without its quotes */
    struct bytes params, result, error; /* JSON, as written */
    bool doubtful;
};

void mcp_message_read(struct bytes text, struct mcp_message *ret);

/* The params of tools/call. */
struct mcp_call {
    struct bytes tool;
    const struct json *arguments; /* NULL when there are none */
    const struct json *meta;      /* params._meta; NULL without */
    struct bytes key;             /* params.idempotencyKey, else _meta["dev.semel/key"]; BYTES_NONE without */
    struct bytes run;             /* _meta["dev.semel/run"]; BYTES_NONE without */
    bool continues;               /* it answers what an earlier answer asked for: inputResponses, requestState */
};

/* INVALID says what is wrong. */
CHECKED enum status mcp_call_read(struct bytes params, struct arena *arena, struct mcp_call *ret, struct why *why);

/* The limits within which messages are read as JSON. */
extern const struct json_limits mcp_json_limits;

#endif
