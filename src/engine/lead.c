/*
 * lead: who runs the writer's step. Under load the writer thread does: it takes the whole queue, and the next one fills meanwhile. When there is little to do,
 * waking it and being woken costs more than the work; then the thread that gathered the commands does them itself between two of its turns: it leads.
 * Never both at once: `stepping` and `leading` pass the writer's belongings from one to the other, under the lock.
 *
 * A disk that hangs must not hang the thread that answers everybody. While there are leads the writer thread watches, and when one lasts too long it stands in
 * for the leader (`stand_in`, the HTTP loop) until that is back. After a slow lead the writer does the work for a while. Timers are always the writer's.
 */
#include "engine/engine_own.h"

#include "base/when.h"

#define LEAD_MAX 2 /* more commands than this, now or on average, are worth the writer's wake-up */
#define LOAD_ONE 16
#define LEAD_PATIENCE_US (10 * WHEN_MS) /* so long the loop may be held up before somebody stands in */
#define LEAD_SLOW_US (3 * WHEN_MS)      /* a disk like this is the writer's … */
#define LEAD_PAUSE_US (250 * WHEN_MS)   /* … for so long */
#define WATCH_US (1 * WHEN_SECOND)      /* the watch ends so long after the last lead */

/* ---- the queue ---- */

static bool is_quiet(const struct engine *engine)
{
    return engine->queue_count <= LEAD_MAX && engine->load <= LEAD_MAX * LOAD_ONE && engine->postgres_url == NULL;
}

/* Signalled behind the lock, so that the woken thread does not run into it. */
static void add(struct engine *engine, struct engine_command *command, bool gathered)
{
    command->next = NULL;
    command->waited_until_us = command->announced_us = 0;
    pthread_mutex_lock(&engine->lock);
    *engine->queue_last = command;
    engine->queue_last = &command->next;
    engine->queue_count++;
    bool wake = !engine->stepping && !engine->leading && !(gathered && is_quiet(engine));
    pthread_mutex_unlock(&engine->lock);
    if (wake)
        pthread_cond_signal(&engine->wake);
}

void engine_submit(struct engine *engine, struct engine_command *command)
{
    add(engine, command, false);
}

/* When there is much to do the writer begins at once, and works while the rest is gathered. */
void engine_queue(struct engine *engine, struct engine_command *command)
{
    add(engine, command, true);
}

static struct engine_command *take_queue(struct engine *engine)
{
    struct engine_command *list = engine->queue_first;
    if (list != NULL)
        engine->load += (LOAD_ONE * (int64_t)engine->queue_count - engine->load) / 8;
    engine->queue_first = NULL;
    engine->queue_last = &engine->queue_first;
    engine->queue_count = 0;
    return list;
}

/* ---- the writer thread ---- */

static void wait_until(struct engine *engine, int64_t now_us, int64_t until_us)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t until = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 + (until_us - now_us);
    pthread_cond_timedwait(&engine->wake, &engine->lock, &(struct timespec){until / 1000000, (until % 1000000) * 1000});
}

/* Until something is to be done, or it is time to look after the leader. */
static void rest(struct engine *engine, int64_t now_us)
{
    if (engine->leads != engine->leads_seen) {
        engine->leads_seen = engine->leads;
        engine->watch_until_us = now_us + WATCH_US;
    }
    engine->watching = engine->leading || now_us < engine->watch_until_us;
    int64_t until = engine->leading ? INT64_MAX : engine->wake_us;
    if (engine->watching && until > now_us + LEAD_PATIENCE_US)
        until = now_us + LEAD_PATIENCE_US;
    if (until > now_us)
        wait_until(engine, now_us, until);
}

/* While another leads, the writer's belongings are not looked at. */
static bool has_work(const struct engine *engine, int64_t now_us)
{
    if (engine->leading)
        return false;
    return engine->queue_first != NULL || engine->stopping || engine->has_heard || engine->wake_us <= now_us ||
           (atomic_load(&engine->draining) && engine->parked_count > 0);
}

static struct engine_command *begin_step(struct engine *engine, bool *ret_stop)
{
    pthread_mutex_lock(&engine->lock);
    engine->stepping = false;
    bool stood_in = false;
    for (int64_t now; now = engine->env->boot_us(engine->env), !has_work(engine, now);) {
        bool hangs = engine->leading && now - engine->lead_since_us >= LEAD_PATIENCE_US;
        if (hangs && engine->stand_in != NULL && !stood_in) {
            pthread_mutex_unlock(&engine->lock);
            engine->stand_in(engine->stand_in_arg);
            pthread_mutex_lock(&engine->lock);
            stood_in = true;
        } else {
            rest(engine, now);
            stood_in = false;
        }
    }
    engine->stepping = true;
    engine->has_heard = false;
    struct engine_command *list = take_queue(engine);
    *ret_stop = engine->stopping;
    pthread_mutex_unlock(&engine->lock);
    return list;
}

void *lead_writer_main(void *arg)
{
    struct engine *engine = arg;
    bool stop = false;
    while (!stop) {
        struct engine_command *list = begin_step(engine, &stop);
        int64_t wake_us = engine_step(engine, list);
        pthread_mutex_lock(&engine->lock);
        engine->wake_us = wake_us;
        pthread_mutex_unlock(&engine->lock);
    }
    return NULL;
}

/* ---- the leader ---- */

static bool may_lead(const struct engine *engine, int64_t now_us)
{
    return is_quiet(engine) && engine->started && !engine->stopping && now_us < engine->wake_us &&
           now_us >= engine->lead_again_us;
}

static void end_lead(struct engine *engine, int64_t wake_us)
{
    pthread_mutex_lock(&engine->lock);
    int64_t now = engine->env->boot_us(engine->env);
    if (now - engine->lead_since_us >= LEAD_SLOW_US)
        engine->lead_again_us = now + LEAD_PAUSE_US;
    bool sooner = wake_us < engine->wake_us;
    if (sooner)
        engine->wake_us = wake_us;
    bool wake = sooner || engine->queue_first != NULL || engine->wake_us <= now;
    engine->leading = false;
    pthread_mutex_unlock(&engine->lock);
    if (wake)
        pthread_cond_signal(&engine->wake);
}

void engine_turn(struct engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    bool lead = false, wake = false;
    int64_t now = 0;
    if (engine->queue_first != NULL && !engine->stepping) { /* who steps looks at the queue again before it rests */
        now = engine->env->boot_us(engine->env);
        lead = may_lead(engine, now);
        wake = !lead || !engine->watching;
    }
    struct engine_command *list = NULL;
    if (lead) {
        list = take_queue(engine);
        engine->leading = true;
        engine->lead_since_us = now;
        engine->leads++;
    }
    pthread_mutex_unlock(&engine->lock);
    if (wake)
        pthread_cond_signal(&engine->wake);
    if (lead)
        end_lead(engine, engine_lead(engine, list));
}

void engine_stand_in(struct engine *engine, void (*stand_in)(void *arg), void *arg)
{
    engine->stand_in = stand_in;
    engine->stand_in_arg = arg;
}
