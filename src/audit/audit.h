/*
 * audit: the decision log. Append-only; every transition of every intent writes its row here in the same transaction, with the columns that
 * it changed, so that the log alone rebuilds the state (ledger/rebuild.c, act/rebuild.c, exceptions/rebuild.c, leads/rebuild.c). It is the truth, the other tables are its projection.
 *
 * Rows form a hash chain per lane. A lane is one writer: SQLite has lane 0, each PostgreSQL connection that writes has its own, so that nodes
 * do not wait for each other. hash = SHA-256(previous hash, numbers, texts), each part preceded by its length; the tail of the chain is kept in `lane`.
 * Changing, removing or reordering a row breaks every hash behind it; cutting the end off disagrees with `lane`. The row that confirms an intent has
 * the hash of its result, so that the chain covers the result too.
 *
 * Duplicates that were answered without a transition (replays, refusals) are counted and written in bundles: one row per intent, kind and actor
 * with a count, at the latest a moment later. A crash may lose the counts of that moment, never a transition.
 */
#ifndef SEMEL_AUDIT_AUDIT_H
#define SEMEL_AUDIT_AUDIT_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/id.h"
#include "queries.h"

/* The tail of one lane's chain. */
struct audit_chain {
    uint32_t lane;
    int64_t seq;
    struct hash hash;
    int64_t run_us; /* the run clock when the last row was written */
};

/* The rows of one transaction, before they have their place in the chain. */
struct audit_batch {
    struct arena *arena;
    struct row_decision *rows;
    struct bytes *notes; /* beside each row; see audit_note() */
    size_t count, cap;
    bool failed; /* no memory: the transaction must not be committed */
};

void audit_batch_init(struct audit_batch *batch, struct arena *arena);

/* A new row to be filled in, zeroed but for `count` = 1; NULL when there is no memory (and `failed` is set). Valid until the next add. */
struct row_decision *audit_add(struct audit_batch *batch);

/* What the outbox changed with the last decision about this intent, as JSON: it joins the list `outbox` in that row's detail. Where
 * nothing was decided about the intent in this transaction, a row of its own is added. */
void audit_note(struct audit_batch *batch, struct bytes space, int64_t intent, struct bytes json);

/* Gives each row its id, sequence number, times and hash; `chain` moves to the new tail. */
void audit_seal(struct audit_batch *batch, struct audit_chain *chain, struct id_source *ids, int64_t wall_us, int64_t run_us);

/* Writes sealed rows and the tail. */
CHECKED enum status audit_save(struct store *store, const struct audit_batch *batch, const struct audit_chain *chain,
                               const struct id_source *ids, struct why *why);

/* Reads a lane's tail; a new lane has seq 0 and a zero hash. `ret_last_id` is the greatest id it gave out. */
CHECKED enum status audit_chain_load(struct store *store, uint32_t lane, struct audit_chain *ret_chain, int64_t *ret_last_id,
                                     struct why *why);

/* The member of a confirming row's detail that is no column of the intent: the SHA-256 of the result, in hex. */
#define AUDIT_RESULT_HASH BYTES("result_sha256")

/* The member of any row's detail that says what changed in the outbox: a list, see act/outbox.h. */
#define AUDIT_OUTBOX BYTES("outbox")

struct audit_verified {
    int64_t lanes, rows;
    int64_t bad_id; /* the first row that does not fit, 0 when all do */
    char bad[160];  /* what is wrong with it */
};

/* Walks every chain, and compares the results with what the rows say of them. OK also when a row is bad (`ret->bad_id`, `ret->bad`); an error only when it could not be read. */
CHECKED enum status audit_verify(struct store *store, struct audit_verified *ret, struct why *why);

#endif
