/*
 * route: what a message says in the headers of a request over HTTP. Pure.
 *
 * Since 2026-07-28 each request carries its protocol version in `_meta`, and headers repeat what the body says (Mcp-Method, Mcp-Name).
 * Before that the version was agreed on once, in the answer to `initialize`.
 */
#ifndef SEMEL_MCP_ROUTE_H
#define SEMEL_MCP_ROUTE_H

#include "mcp/message.h"

struct mcp_route {
    bool modern;          /* the message carries its version: */
    struct bytes version; /* BYTES_NONE when it is not modern */
    struct bytes name;    /* of the tool or prompt, or the resource's address, as a header holds it; BYTES_NONE for none */
};

/* What cannot be read has no route, and the server says what is wrong with it. In the arena. */
void mcp_route_read(const struct mcp_message *message, struct arena *arena, struct mcp_route *ret);

/* The version that the server chose in its answer to `initialize`; BYTES_NONE when it says none that a header can hold. */
struct bytes mcp_agreed_version(struct bytes result, struct arena *arena);

/* A text as such a header holds it, coded where it has to be, and back. BYTES_NONE for an empty one; for what is coded, but not right. */
struct bytes mcp_as_header(struct bytes text, struct arena *arena);
struct bytes mcp_from_header(struct bytes value, struct arena *arena);

/* True when a header can hold it as it is: visible ASCII, spaces only inside. */
bool mcp_is_plain(struct bytes text);

#endif
