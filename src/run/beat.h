/*
 * beat: keeps a claim while its command runs, from a thread of its own: the lease begins anew every third of it. When the claim
 * is lost, it says so.
 */
#ifndef SEMEL_RUN_BEAT_H
#define SEMEL_RUN_BEAT_H

#include <pthread.h>

#include "run/way.h"

struct beat {
    struct cli cli; /* a copy with an arena and a connection of its own: one thread each */
    struct way way;
    struct way_say say;
    int64_t every_us;
    atomic_bool stop;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
};

/* Without a thread the claim is kept for its lease only, and that is said. */
void beat_start(struct beat *beat, const struct way *way, const struct way_say *claim, int64_t lease_us);
void beat_stop(struct beat *beat);

#endif
