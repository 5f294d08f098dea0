/* batch: what batch.c and gather.c share: one batch. */
#ifndef SEMEL_ENGINE_BATCH_H
#define SEMEL_ENGINE_BATCH_H

#include "engine/engine_own.h"

struct batch {
    struct engine *engine;
    struct engine_command **commands;
    size_t count;
    struct ledger ledger;
    struct audit_batch audit;
    size_t intent_cap;                           /* room for so many in ledger.intents */
    struct intent **by_hash, **by_id, **by_body; /* open addressing */
    size_t table_size;
    struct intent absent; /* stands for an id that does not exist */
    bool tentative;       /* a plain look on PostgreSQL: only what cannot change is answered */
    struct why why;
};

/* What the batch is about: keys and ids. */
struct wanted {
    struct q_intent_look *hashes;
    struct q_intent_look_id *ids;
    size_t hash_count, id_count;
};

/* gather.c: an empty table, with room for what the commands are about. */
CHECKED enum status batch_begin(struct batch *batch);

/* The place of an intent, empty when it is not there. */
struct intent **batch_find_hash(const struct batch *batch, const uint8_t *h);
struct intent **batch_find_id(const struct batch *batch, int64_t id);

/* A claim and a submission name their intent by its key, everything else by its id. */
bool batch_is_by_key(const struct engine_command *command);

/* It waits for others of its conversation. */
bool batch_goes_in_turn(const struct engine_command *command);

/* It is submitted to a line. */
bool batch_lines_up(const struct engine_command *command);

/* Keys and ids, each once; the keys get their places. */
CHECKED enum status batch_list(struct batch *batch, struct wanted *wanted);

/* A store_row_fn: takes a row into its place. */
CHECKED enum status batch_take(void *ctx, const void *row, struct why *why);

/* A plain look: on SQLite that is enough, on PostgreSQL it answers what cannot change. */
CHECKED enum status batch_look(struct batch *batch);

/* PostgreSQL: looks, and holds what was found against other nodes until the transaction ends. */
CHECKED enum status batch_lock(struct batch *batch);

/* The results of settled intents, to be replayed or compared. */
CHECKED enum status batch_load_bodies(struct batch *batch);

#endif
