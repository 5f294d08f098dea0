/* lint_shape: what a key looks like, without knowing what it means. */
#ifndef SEMEL_LINT_LINT_SHAPE_H
#define SEMEL_LINT_LINT_SHAPE_H

#include "base/arena.h"

/* The first UUIDv4 or run of 32 hex digits or more; BYTES_NONE without. */
struct bytes shape_random(struct bytes key);

/* True when the key holds a time of day within an hour of `at_us`: epoch seconds, milliseconds or microseconds, or a date with a time to
 * the minute. A date alone, or with an hour, is a window and no clock. */
bool shape_clock(struct bytes key, int64_t at_us);

/* The key with every date, week, month or hour replaced by '*', so that keys of different windows are equal. In the arena. */
struct bytes shape_without_windows(struct bytes key, struct arena *arena);

/* The key in lower case, white space trimmed and collapsed. In the arena. */
struct bytes shape_folded(struct bytes key, struct arena *arena);

/* A field that is new with each attempt, by its name. */
bool shape_is_attempt(struct bytes field);

/* A field that names a thing: an id, an address, a number. */
bool shape_names_a_thing(struct bytes field);

#endif
