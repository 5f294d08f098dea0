/*
 * zone: how far a place's wall clock is from UTC at an instant. An opened zone is used by one thread at a time.
 */
#ifndef SEMEL_FINGERPRINT_ZONE_H
#define SEMEL_FINGERPRINT_ZONE_H

#include "base/bytes.h"
#include "base/status.h"

struct zone {
    void *calendar; /* the zone library's object; NULL for UTC, which asks nobody */
};

/* INVALID for a name that does not exist. NULL is UTC. */
CHECKED enum status zone_open(const char *name, struct zone *ret_zone, struct why *why);
void zone_close(struct zone *zone);

/* What to add to UTC to get the wall clock. */
CHECKED enum status zone_offset(const struct zone *zone, int64_t utc_us, int64_t *ret_offset_us, struct why *why);

#endif
