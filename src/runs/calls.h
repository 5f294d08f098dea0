/*
 * calls: how many tool calls the agents of a run or token have made, and which of several equal calls is meant. Owns the tables `tool_budget` and `tool_repeat`.
 *
 * They are in the database, so that they hold when a daemon or a `semel mcp` starts anew, and between several of them on one ledger. A call is counted
 * before it is made, in a transaction of its own: after a crash in between it is counted and not made, never made and not counted.
 *
 * Of equal calls that are meant each time: while one is under way, or its answer did not reach the caller, another is a repetition of it; after its answer
 * and `repeat_us` more, a new one.
 *
 * Names that nobody has used for a month (for repeats: a month and `repeat_us`) are forgotten. All of it runs on the writer thread inside the engine's transaction.
 */
#ifndef SEMEL_RUNS_CALLS_H
#define SEMEL_RUNS_CALLS_H

#include "base/hash.h"
#include "store/store.h"

/* Whose call it is. */
struct calls_name {
    struct bytes space, server, actor;
    struct bytes run; /* or session */
};

struct calls_order {
    struct calls_name name;
    int64_t per_run, per_hour;  /* how many calls there may be; 0: no limit */
    const struct hash *content; /* of a call whose equal calls may be meant anew; NULL: they are not */
    int64_t repeat_us;

    bool refused;   /* there is none left: nothing was counted */
    int64_t number; /* of equal calls, from 1 */
};

/* True when there is something to count. */
bool calls_are_counted(const struct calls_order *order);

CHECKED enum status calls_take(struct store *store, struct calls_order *order, int64_t wall_us, struct why *why);

/* The answer to that one reached its caller. */
CHECKED enum status calls_answered(struct store *store, const struct calls_name *name, const struct hash *content, int64_t number,
                                   int64_t wall_us, struct why *why);

#endif
