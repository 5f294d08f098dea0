/*
 * rewrite: one JSON-RPC message with another id or token in it, everything else byte for byte as it was. Pure.
 *
 * Several clients may use one id, so that a bridge gives each request a number of its own, and puts back what the client wrote when the answer comes.
 */
#ifndef SEMEL_MCP_REWRITE_H
#define SEMEL_MCP_REWRITE_H

#include "mcp/message.h"

/* The message with `id` in the place of its own, which it has. */
void mcp_put_id(struct bytes text, struct bytes id, struct buf *out);

/* `text` with `by` in the place of `part`, which lies in it. */
void mcp_put(struct bytes text, struct bytes part, struct bytes by, struct buf *out);

/* Where a value stands in a part of a message (its params or its result), by up to two names, the second may be NULL. As written;
 * BYTES_NONE when it is not there, or no text and no number. */
struct bytes mcp_part(struct bytes part, const char *name, const char *inner, struct arena *arena);

#endif
