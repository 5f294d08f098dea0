/*
 * key: what a call of a tool is called in the ledger. Pure.
 *
 * The key, in this order:
 *   1. given: params.idempotencyKey, params._meta["dev.semel/key"], or the argument `idempotency_key`. The same key with other
 *      arguments is refused.
 *   2. derived: the run or session, the tool, and the canonical form of its identity arguments (all of them unless the rules name
 *      some), with a number where the rules let equal calls repeat (see runs/calls.h).
 * Never: the JSON-RPC id or a model's tool_call_id, which are new for every attempt; inputResponses and requestState, which
 * continue a call and do not make another.
 */
#ifndef SEMEL_MCP_KEY_H
#define SEMEL_MCP_KEY_H

#include "base/hash.h"
#include "mcp/rules.h"

#define MCP_GIVEN_KEY_MAX 512

struct mcp_identity {
    struct bytes given;  /* the key that the caller gave; BYTES_NONE for a derived one */
    struct hash content; /* of server, tool and identity arguments */
    struct bytes input;  /* given: what a later caller with this key must bring again, as JSON text; else BYTES_NONE */
};

/* Everything lives in the arena or in the call. INVALID says what is wrong with a given key. */
CHECKED enum status mcp_identify(const struct mcp_call *call, const struct mcp_treatment *treatment, struct bytes server,
                                 struct arena *arena, struct mcp_identity *ret, struct why *why);

/* The text. `scope` is the run or session; `occurrence` counts from 1. BYTES_NONE when memory runs out. */
struct bytes mcp_key_text(const struct mcp_identity *identity, struct bytes scope, struct bytes tool, int64_t occurrence,
                          struct arena *arena);

#endif
