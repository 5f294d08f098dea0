#include "run/beat.h"

#include <time.h>

#include "base/when.h"
#include "cli/client.h"
#include "cli/print.h"
#include "env/env.h"

#define AGAIN_US (2 * WHEN_SECOND) /* after a failure */

/* True when it was told to stop. */
static bool pause_for(struct beat *beat, int64_t us)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nanoseconds = until.tv_nsec + us % WHEN_SECOND * 1000;
    until.tv_sec += us / WHEN_SECOND + nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    pthread_mutex_lock(&beat->lock);
    while (!atomic_load(&beat->stop) && pthread_cond_timedwait(&beat->wake, &beat->lock, &until) == 0)
        continue;
    pthread_mutex_unlock(&beat->lock);
    return atomic_load(&beat->stop);
}

/* The claim is lost: the child cannot be called back, so a person has to know. */
static void tell_lost(const struct beat *beat, const char *reason)
{
    cli_note("WARNING: the claim on %s is lost while the command runs, and someone else may run it too. The command goes on. %s",
             beat->say.intent, reason);
}

static void *beat_main(void *arg)
{
    struct beat *beat = arg;
    struct env *env = env_real();
    int64_t last_us = env->boot_us(env);
    int64_t pause_us = beat->every_us;
    bool told = false;
    while (!pause_for(beat, pause_us)) {
        struct why why = {""};
        enum ledger_verdict verdict = VERDICT_DONE;
        int code = CLI_OK;
        enum status status = way_say(&beat->way, &beat->say, &verdict, &code, &why);
        arena_clear(&beat->cli.arena);
        if (status == OK && verdict != VERDICT_DONE) {
            tell_lost(beat, why.text);
            break;
        }
        pause_us = status == OK || beat->every_us < AGAIN_US ? beat->every_us : AGAIN_US;
        if (status == OK)
            last_us = env->boot_us(env);
        else if (!told && !atomic_load(&beat->stop) && env->boot_us(env) - last_us > beat->say.lease_us) {
            cli_note("the claim on %s could not be kept for longer than its lease: %s", beat->say.intent, why.text);
            told = true;
        }
    }
    return NULL;
}

void beat_start(struct beat *beat, const struct way *way, const struct way_say *claim, int64_t lease_us)
{
    pthread_condattr_t monotonic;
    *beat = (struct beat){.cli = *way->cli, .say = *claim, .every_us = lease_us / 3};
    arena_init(&beat->cli.arena, (size_t)16 << 20);
    beat->cli.client = NULL;
    beat->way = (struct way){.cli = &beat->cli, .data = way->data, .stop = &beat->stop};
    beat->say.op = OP_EXTEND;
    beat->say.lease_us = lease_us;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&beat->lock, NULL);
    pthread_cond_init(&beat->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    beat->started = pthread_create(&beat->thread, NULL, beat_main, beat) == 0;
    if (!beat->started)
        cli_note("no thread could be started: the claim is kept for its lease only.");
}

void beat_stop(struct beat *beat)
{
    pthread_mutex_lock(&beat->lock);
    atomic_store(&beat->stop, true);
    pthread_cond_signal(&beat->wake);
    pthread_mutex_unlock(&beat->lock);
    if (beat->started)
        pthread_join(beat->thread, NULL);
    client_free(beat->cli.client);
    arena_release(&beat->cli.arena);
}
