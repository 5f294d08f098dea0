/*
 * pace: how fast one destination may be called: so many at a time, so many per second, and not at all for a while when it keeps failing (the breaker).
 * Pure: the clock is given (boot time). One per destination, owned by the delivery thread; lost at a restart, which is harmless.
 *
 * The breaker opens after PACE_FAILURES_MAX failures in a row, for PACE_OPEN_FIRST_US, doubling up to PACE_OPEN_MAX_US; then one call is let through,
 * and its success closes it.
 */
#ifndef SEMEL_ACT_PACE_H
#define SEMEL_ACT_PACE_H

#include "destination/destination.h"

#define PACE_FAILURES_MAX 8
#define PACE_OPEN_FIRST_US INT64_C(1000000)
#define PACE_OPEN_MAX_US INT64_C(60000000)

struct pace {
    int64_t running;
    int64_t tokens_us; /* how much of the rate is saved up, in time */
    int64_t looked_us;
    int64_t failures; /* in a row */
    int64_t open_until_us, open_for_us;
};

/* How many calls may start now; when none, `ret_at_us` is when to ask again (INT64_MAX: when a running one ends). */
int64_t pace_free(struct pace *pace, const struct destination *destination, int64_t boot_us, int64_t *ret_at_us);

void pace_begin(struct pace *pace, const struct destination *destination);

/* `failed`: the destination did not answer, or said that it cannot now. */
void pace_end(struct pace *pace, bool failed, int64_t boot_us);

/* It was not called after all: that says nothing about the destination. */
void pace_cancel(struct pace *pace);

bool pace_is_open(const struct pace *pace, int64_t boot_us); /* the breaker, that is */

#endif
