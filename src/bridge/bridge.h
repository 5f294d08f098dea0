/*
 * bridge: MCP servers that are commands, as if they were reached over HTTP. A call comes as it would go to a server over HTTP (streamable HTTP, both eras)
 * and ends as one of act/transport.h does; behind it are processes that speak JSON-RPC on their stdin and stdout.
 *
 *     POST initialize ─► a process of its own, a new Mcp-Session-Id          up to 2025-11-25: `initialize` is said once to a process,
 *     POST with the session ─► its process                                   so each session has one
 *     GET, DELETE with the session ─► listens, ends it
 *     POST that carries its version in _meta ─► the process of that token    since 2026-07-28: no sessions
 *
 * Promises
 *  - Each request has a number of its own at the process, and is answered under the id that its client gave it; progress tokens likewise. What a server
 *    asks (sampling, elicitation) has an id of its own at the client, and the answer goes back to the process that asked.
 *  - A process answers to the token that began it, and to no other.
 *  - A process that dies leaves requests of which anything was written LOST, and the others NOT_SENT. The next request starts another one, with the
 *    handshake that it had; at most five times a minute.
 *  - Processes are bounded in number; idle ones, those of a command that the policy does not name any more, and all of them at the end are told to end
 *    (their stdin closes), then SIGTERM, then SIGKILL. Requests under way are finished first, except at the end.
 *
 * One thread owns the processes and makes the callbacks of the calls.
 */
#ifndef SEMEL_BRIDGE_BRIDGE_H
#define SEMEL_BRIDGE_BRIDGE_H

#include <stdatomic.h>

#include "act/transport.h"
#include "policy/policy.h"

struct bridge;

struct bridge_call {
    struct transport_call *call;          /* its destination is not looked at */
    const struct mcp_server_rules *rules; /* of a server with a command; there until `done`, as all of it */
    struct bytes actor;
    const atomic_bool *gone;  /* its client has left: nobody hears what is said on its stream */
    bool cancels;             /* the server is told when the call is unwanted */
    struct bridge_call *next; /* the bridge's own */
};

CHECKED enum status bridge_open(struct env *env, struct secrets *secrets, struct bridge **ret_bridge, struct why *why);

/* Any thread. */
void bridge_send(struct bridge *bridge, struct bridge_call *call);

/* The policy from now on. Any thread. */
void bridge_set_policy(struct bridge *bridge, struct policy *policy);

/* Breaks off what is under way; each call's `done` comes before this returns. */
void bridge_close(struct bridge *bridge);

#endif
