/* beat: keeps a claim while its holder works, from a thread of its own: the lease begins anew every third of it. */
#include <time.h>

#include "base/when.h"
#include "handle.h"

/* True when it was told to stop. The lock is held. */
static bool pause_for(struct semel_claim *claim, int64_t us)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nanoseconds = until.tv_nsec + us % WHEN_SECOND * 1000;
    until.tv_sec += us / WHEN_SECOND + nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    while (!claim->stop && pthread_cond_timedwait(&claim->wake, &claim->lock, &until) == 0)
        continue;
    return claim->stop;
}

static void *beat_main(void *arg)
{
    struct semel_claim *claim = arg;
    pthread_mutex_lock(&claim->lock);
    while (!pause_for(claim, claim->lease_us / 3)) {
        int64_t patience_us = claim->lease_us / 6;
        pthread_mutex_unlock(&claim->lock);
        enum semel_status status = claim_say(claim, &(struct say){.op = OP_EXTEND}, patience_us);
        pthread_mutex_lock(&claim->lock);
        if (status == SEMEL_FENCED || status == SEMEL_NOT_FOUND) { /* someone else has it: do not wait for the lease to say so */
            claim->deadline_us = 0;
            break;
        }
    }
    pthread_mutex_unlock(&claim->lock);
    return NULL;
}

enum semel_status semel_keep_alive(struct semel_claim *claim)
{
    if (!claim->held || claim->lease_us <= 0)
        return SEMEL_FENCED;
    if (claim->beating)
        return SEMEL_OK;
    claim->stop = false;
    claim->beating = pthread_create(&claim->beat, NULL, beat_main, claim) == 0;
    return claim->beating ? SEMEL_OK : SEMEL_NO_MEMORY;
}

void beat_end(struct semel_claim *claim)
{
    if (!claim->beating)
        return;
    pthread_mutex_lock(&claim->lock);
    claim->stop = true;
    pthread_cond_signal(&claim->wake);
    pthread_mutex_unlock(&claim->lock);
    pthread_join(claim->beat, NULL);
    claim->beating = false;
}
