/*
 * stage: what came in, before anything is decided about it. A delivery is kept as it came, with one row for each event in it; only
 * when they are committed is the sender told so. Everything later can be done again from here.
 *
 * Owns the tables `delivery` (the raw request), `event` (what it was understood as, and the verdict), `event_mark` (by what events
 * are recognised; see decide/decide.h), `event_act` (what a person did about one) and `source` (which sources are quiet now). The
 * flow (flow.c) decides events, in the order of their ids; nobody else sets a verdict but a person (flow/person.h).
 *
 * Promises: acknowledged ⇒ the raw bytes are durable. An event is decided in one transaction with all that follows from it. Raw
 * bytes and events are forgotten after the source's `keep`, never while somebody has to look at them; marks live longer, so that
 * a late copy is recognised although its original is gone.
 *
 * The functions run on the writer thread inside the engine's transaction, but for those that are pure.
 */
#ifndef SEMEL_STAGE_STAGE_H
#define SEMEL_STAGE_STAGE_H

#include "engine/engine.h"
#include "receive/receive.h"

#define STAGE_EVENTS_MAX 1000 /* of one delivery */

/* One delivery to be kept, for an engine_command's `write` (stage_write), as its `user`. */
struct stage_order {
    struct bytes space, source;
    struct bytes record; /* the request as it came; see act's request_record() */
    struct bytes *contents;
    size_t count;
    int64_t keep_us;
    int64_t delivery; /* what it became */
    int64_t *events;  /* room for `count` */
};

/* Writes delivery and events; see engine.h for `write`. */
CHECKED enum status stage_write(struct store *store, struct ledger *ledger, struct stage_order *order, struct why *why);

/* ---- what is stored of an event: pure ---- */

/* Before event_record(): an event without ids is recognised by its body. The body of a delivery's `only` event is the delivery's. */
CHECKED enum status event_seal(struct incoming *incoming, bool only, struct arena *arena, struct why *why);

/* JSON. */
CHECKED enum status event_record(const struct incoming *incoming, struct arena *arena, struct bytes *ret_content,
                                 struct why *why);
CHECKED enum status event_read(struct bytes content, struct arena *arena, struct incoming *ret, struct why *why);

/* ---- what a person did about an event ---- */

enum event_act { EVENT_ACT_RELEASE, EVENT_ACT_SUPPRESS, EVENT_ACT_REPLAY, EVENT_ACT_COUNT };

extern const char *const event_act_names[]; /* "release", "suppress", "replay", NULL */

/* ---- forgetting ---- */

/* A bounded piece of it: marks of the given slice (any number; they come round), and some of what is over. `ret_more` says that
 * there is more to do at once. */
CHECKED enum status stage_sweep(struct store *store, int slice, int64_t wall_us, struct arena *arena, bool *ret_more,
                                struct why *why);

#endif
