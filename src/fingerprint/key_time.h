/*
 * key_time: the time parts of a key. An event's time is an instant, or a plain date, which is that day in the workflow's zone.
 */
#ifndef SEMEL_FINGERPRINT_KEY_TIME_H
#define SEMEL_FINGERPRINT_KEY_TIME_H

#include "fingerprint/key_parts.h"
#include "fingerprint/key_text.h"

struct key_time {
    int64_t utc_us;
    int64_t local_us; /* the wall clock in the zone, as if it were UTC */
};

/* From RFC 3339 text, a plain date, epoch seconds or milliseconds. INVALID with a sentence that begins with a verb. */
CHECKED enum status key_time_read(const struct json *value, const struct zone *zone, struct arena *arena,
                                  struct key_time *ret_time, struct why *why);

/* INVALID for an instant outside the years 1 to 9999. */
CHECKED enum status key_time_at(int64_t utc_us, const struct zone *zone, struct key_time *ret_time, struct why *why);

/* Writes a part of a kind that is made from a time. Its length depends on the part alone, so that it needs no escapes. */
void key_time_write(const struct key_part *part, struct key_time when, struct key_out *out);

#endif
