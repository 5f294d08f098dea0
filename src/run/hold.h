/*
 * hold: who works on an intent of a data directory without a daemon. While no daemon runs, the ledger's clock stands still and
 * leases do not run out; so a run that claimed directly keeps DIR/holds/INTENT.FENCE locked for as long as it lives. A file that
 * is there and not locked belongs to a run that is gone. This only says who is alive: what may be done is decided by the ledger
 * alone.
 */
#ifndef SEMEL_RUN_HOLD_H
#define SEMEL_RUN_HOLD_H

#include "base/status.h"
#include <stdint.h>

enum hold_state {
    HOLD_NONE,  /* it was not claimed in this way, or is over */
    HOLD_ALIVE, /* its run goes on */
    HOLD_DEAD,  /* its run is gone without a word */
};

/* Returns a descriptor that holds it until hold_drop(), or -1 when it cannot be made (then others wait for the lease). */
int hold_take(const char *dir, const char *intent, int64_t fence);
void hold_drop(const char *dir, const char *intent, int64_t fence, int fd);

enum hold_state hold_look(const char *dir, const char *intent, int64_t fence);

#endif
