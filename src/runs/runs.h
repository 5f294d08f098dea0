/*
 * runs: what the model calls of each run came to: calls made and calls answered from memory, tokens and money. Owns the table
 * `run`.
 *
 * Counts are gathered in a tally and written together, by whoever owns it; the numbers of up to a second are lost when the process
 * is killed. They are for people, and nothing rests on them. A run's row goes when its time is over.
 *
 * A tally belongs to one thread at a time. runs_write() runs on the writer thread inside the engine's transaction.
 */
#ifndef SEMEL_RUNS_RUNS_H
#define SEMEL_RUNS_RUNS_H

#include "base/arena.h"
#include "queries.h"
#include "store/store.h"

#define TALLY_MAX 256
#define RUN_NAME_MAX 256
#define RUN_MODEL_MAX 128

struct tally {
    struct arena arena;
    struct row_run at[TALLY_MAX];
    size_t count;
};

struct tally *tally_new(void); /* NULL when there is no memory */
void tally_free(struct tally *tally);

/* Adds to the row of the same space, run, provider and model. False when it is full: write it first. */
bool tally_add(struct tally *tally, const struct row_run *row);

/* All rows of the tally, and what has expired is forgotten. `wall_us` is now. */
CHECKED enum status runs_write(struct store *store, const struct tally *tally, int64_t wall_us, struct why *why);

/* "0.0125" from millionths of a millionth; at most six decimals, rounded. `ret` has room for 32. Returns the length. */
size_t runs_money(int64_t pico, char ret[32]);

#endif
