/*
 * story: decisions in plain words. Pure: tables of sentences by kind, reason and state.
 */
#ifndef SEMEL_CLI_STORY_H
#define SEMEL_CLI_STORY_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/json.h"

/* One decision as a sentence without its time: "claimed for the first time (fence 1, by worker)". */
void story_tell(const struct json *decision, struct buf *out);

/* What the next claim would be told, and what a person can do. `until` is the lease's end as people read it, "" for none;
 * `lapsed` says that it has passed. */
void story_next(const struct json *intent, const char *until, bool lapsed, struct buf *out);

/* The story of an event, as GET /v1/events/{event} tells it: several lines, times in the local zone. */
void story_event(const struct json *event, struct buf *out);

#endif
