/*
 * upstream: calls to MCP servers over HTTP, many at a time, on a thread of its own. The callbacks of a call come on that thread.
 */
#ifndef SEMEL_AGENT_UPSTREAM_H
#define SEMEL_AGENT_UPSTREAM_H

#include "act/transport.h"

struct upstream;

CHECKED enum status upstream_open(struct env *env, struct secrets *secrets, struct upstream **ret_upstream, struct why *why);

/* Any thread. */
void upstream_send(struct upstream *upstream, struct transport_call *call);

/* Breaks off what is under way; each call's `done` comes before this returns. */
void upstream_close(struct upstream *upstream);

#endif
