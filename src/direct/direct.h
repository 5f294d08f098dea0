/*
 * direct: the ledger of a data directory (SQLite) without a daemon. The engine runs inside this process: for one command or a
 * few, each a step of its own (`semel run`), or with its threads for as long as the process likes (libsemel). The directory has
 * one user at a time. The same rules hold as behind the API: the stored policy, spaces, tokens.
 */
#ifndef SEMEL_DIRECT_DIRECT_H
#define SEMEL_DIRECT_DIRECT_H

#include "engine/engine.h"
#include "ledger/naming.h"

struct direct {
    struct engine *engine;
    struct policy *policy;
    int64_t policy_version;
    struct bytes space, actor;
    bool started;
};

/* True when the directory holds a ledger of its own, or, with `create`, may get one. That of a daemon on PostgreSQL does not. */
bool direct_is_ledger(const char *dir, bool create);

/* CONFLICT: someone else uses it now. INVALID: it cannot be used. NOTHING: the token (NULL for none) is not allowed to claim
 * there. What is found lives in `arena`, for as long as it is open. A new directory is made readable for its owner only. */
CHECKED enum status direct_open(const char *dir, const char *token, struct arena *arena, struct direct *ret_direct,
                                struct why *why);

/* From now on the engine's own threads do the work, time passes by itself, and any thread may apply commands. */
CHECKED enum status direct_start(struct direct *direct, struct why *why);
void direct_close(struct direct *direct);

/* Names the intent as the API does: see ledger/naming.h. One thread at a time. */
CHECKED enum status direct_name(const struct direct *direct, const struct claim_naming *naming, struct arena *arena,
                                struct ledger_command *ret, struct bytes *ret_field, struct why *why);

/* Applies one command; it is durable when this returns OK. The answer is in `arena`. A claim waits for its holder up to `wait_us`,
 * when it was started. */
CHECKED enum status direct_apply(struct direct *direct, const struct ledger_command *command, int64_t wait_us,
                                 struct arena *arena, struct ledger_answer *ret_answer, struct why *why);

/* Writes something in a transaction of its own, as a `write` of the engine; `user` is the command's. Before direct_start(). */
CHECKED enum status direct_write(struct direct *direct,
                                 enum status (*write)(struct store *, struct ledger *, struct engine_command *, struct why *),
                                 void *user, struct arena *arena, struct why *why);

#endif
