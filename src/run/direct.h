/*
 * direct: the ledger of a data directory (SQLite) without a daemon. The engine runs inside this process, for one command or a
 * few, and is closed again at once: the directory has one user at a time. The same rules hold as behind the API: the stored
 * policy, spaces, tokens.
 */
#ifndef SEMEL_RUN_DIRECT_H
#define SEMEL_RUN_DIRECT_H

#include "engine/engine.h"

struct direct {
    struct engine *engine;
    struct policy *policy;
    int64_t policy_version;
    struct arena *arena;
    struct bytes space, actor;
};

/* True when the directory holds a ledger of its own, or, with `create`, may get one. That of a daemon on PostgreSQL does not. */
bool direct_is_ledger(const char *dir, bool create);

/* CONFLICT: someone else uses it now. INVALID: it cannot be used. NOTHING: the token (NULL for none) is not allowed to claim
 * there. What is found lives in `arena`. */
CHECKED enum status direct_open(const char *dir, const char *token, struct arena *arena, struct direct *ret_direct,
                                struct why *why);
void direct_close(struct direct *direct);

/* Fills in what the policy says about the workflow. */
void direct_claim_rules(const struct direct *direct, struct ledger_command *claim);

/* Applies one command; it is durable when this returns OK. */
CHECKED enum status direct_apply(struct direct *direct, const struct ledger_command *command, struct ledger_answer *ret_answer,
                                 struct why *why);

#endif
