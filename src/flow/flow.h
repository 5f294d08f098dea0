/*
 * flow: START HERE. The way of an event through the house:
 *
 *     receive   bytes → verified, understood                       api/in.c, smtp/ → receive/
 *     stage     → rows, committed; only then acknowledged          stage/
 *     decide    → is it new?  marks of earlier events, likeness    fingerprint/message.c, decide/        (pure)
 *     thread    → which conversation, which question               threads/
 *     lead      → whose it is: a record of a person                match/ (pure), leads/
 *     act       → outbox: the user's webhook or agent gets it      act/
 *     audit     → every verdict is a decision                      audit/
 *
 * All that is decided about one event is one transaction, together with those before and behind it in the pass: a pass takes up to
 * FLOW_PASS_MAX waiting events in the order of their ids. Nothing in it talks to the outside. It can be done again at any time: an
 * event that was not committed is still waiting. On PostgreSQL one node passes at a time.
 *
 * A pass is a `write` of the engine; flow_wake() asks for one, from any thread.
 */
#ifndef SEMEL_FLOW_FLOW_H
#define SEMEL_FLOW_FLOW_H

#include "act/act.h"
#include "decide/decide.h"
#include "stage/stage.h"
#include "threads/threads.h"

#define FLOW_PASS_MAX 256
#define FLOW_WORKFLOW BYTES("inbox") /* of the intents that forward events; their key is the event's id */

struct flow;

#define FLOW_WAITING_MAX 10000
#define FLOW_SOURCES_MAX 256 /* that are counted by name; the others together */

/* What became of the events of one source since the start. */
struct flow_counts {
    char source[SETTING_NAME_MAX + 1];
    uint64_t verdicts[EVENT_VERDICT_COUNT];
    uint64_t refused; /* deliveries that were not taken in */
};

/* `act` may be NULL: then nobody is told that something is due. */
CHECKED enum status flow_open(struct engine *engine, struct act *act, struct flow **ret_flow, struct why *why);
void flow_close(struct flow *flow); /* after engine_close() */

/* Any thread: the rules from now on. Takes a use of the policy. */
void flow_set_policy(struct flow *flow, struct policy *policy, int64_t version);

/* Any thread: events may be waiting. */
void flow_wake(struct flow *flow);

/* Now and then, from any thread: looks for what another node or an earlier process left waiting, and for what can be forgotten. */
void flow_tick(struct flow *flow);

/* Before engine_close(): no further passes are begun. */
void flow_stop(struct flow *flow);

/* A pass as a command, for tests and simulations that do the engine's steps themselves. */
struct engine_command flow_pass(struct flow *flow);

/* Any thread: a delivery was refused at the door. */
void flow_refused(struct flow *flow, struct bytes source);

/* Any thread: how many events were not decided when it was last looked, every few seconds; at most FLOW_WAITING_MAX. `ret_failing`
 * says that the last pass could not be written. */
int64_t flow_waiting(const struct flow *flow, bool *ret_failing);

/* Any thread: the figures of each source. */
void flow_each_source(struct flow *flow, void (*take)(void *ctx, const struct flow_counts *counts), void *ctx);

/* The hash of a mark. `a`, `b` depend on the kind; BYTES_NONE where there is no second part. */
void flow_mark(struct bytes pepper, enum mark_kind kind, struct bytes space, struct bytes a, struct bytes b,
               uint8_t ret[KEY_HASH_SIZE]);

#endif
