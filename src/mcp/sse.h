/*
 * sse: the events of a text/event-stream, as bytes. Pure. A stream comes in pieces and leaves as whole events, each with exactly the
 * bytes that it had, so that a proxy can pass them on, and hold one back.
 */
#ifndef SEMEL_MCP_SSE_H
#define SEMEL_MCP_SSE_H

#include "base/buf.h"

struct mcp_sse {
    struct buf in;   /* what has no end yet */
    struct buf data; /* of an event with several data lines */
    size_t taken;    /* of `in`: events that were given */
    size_t looked;   /* no end of an event before this */
};

void mcp_sse_init(struct mcp_sse *sse, size_t event_max);
void mcp_sse_release(struct mcp_sse *sse);

/* Adds a piece; what was given before is gone. False when an event is too long. */
bool mcp_sse_feed(struct mcp_sse *sse, struct bytes piece);

/* The next whole event, with the blank line that ends it, and its data. False when there is none yet. */
bool mcp_sse_next(struct mcp_sse *sse, struct bytes *ret_event, struct bytes *ret_data);

/* What is left without an end. */
struct bytes mcp_sse_rest(const struct mcp_sse *sse);

#endif
