/*
 * hear: what the nodes on one PostgreSQL database tell each other, so that nobody has to look every few milliseconds.
 *
 *   H   I have just begun to listen; h: so have I, before you
 *   W…  claims wait here for these intents
 *   M…  these have moved; M*: too many to name
 *   O   effects are due, and I have my hands full
 *
 * Whoever waits says so, and only what somebody waits for is told: then in the transaction of the move, once for a batch. A NOTIFY
 * keeps the COMMITs of all nodes apart, so there is none in a batch that nobody waits for. W, H and O go by the connection that
 * listens, where no COMMIT waits for a disk. Each of them is a hint. While the connection is lost, and before the first word of
 * another node, waiting claims look by themselves as often as ever (waiting.c).
 *
 * The thread of hear owns the connection; the writer asks hear_wants() and takes what was heard; other functions as marked.
 */
#ifndef SEMEL_ENGINE_HEAR_H
#define SEMEL_ENGINE_HEAR_H

#include "engine/engine.h"

struct hear;

CHECKED enum status hear_new(struct engine *engine, const char *url, struct hear **ret_hear, struct why *why);
CHECKED enum status hear_start(struct hear *hear, struct why *why);
void hear_stop(struct hear *hear); /* NULL is fine, and so it is below */
void hear_free(struct hear *hear);

/* Any thread: others are heard, so that looking is only for what is lost. */
bool hear_is_on(struct hear *hear);

/* The writer: a claim waits here for this intent. */
void hear_wait_for(struct hear *hear, int64_t intent);

/* The writer: what to say with this batch about those of its intents that others wait for; BYTES_NONE for nothing. */
struct bytes hear_moved(struct hear *hear, struct intent *const *intents, size_t count, struct arena *arena);

/* The writer: takes what others have moved; returns how many, `ret_all` when it is not known which. */
#define HEARD_MAX 512
size_t hear_take(struct hear *hear, int64_t ret_intents[HEARD_MAX], bool *ret_all);

/* Any thread: effects are due that this node cannot begin; and who is told when another says so. */
void hear_call_others(struct hear *hear);
void hear_on_call(struct hear *hear, void (*called)(void *arg), void *arg);

#endif
