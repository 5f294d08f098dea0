#include <stdlib.h>

#include "act/act_own.h"
#include "base/log.h"
#include "base/when.h"

#define STOP_GRACE_US (5 * WHEN_SECOND)
#define STEP_WAIT_MAX_US WHEN_SECOND

/* ---- places ---- */

struct place *act_place(struct act *act, struct bytes name)
{
    for (size_t i = 0; i < act->place_count; i++)
        if (bytes_is(name, act->places[i]->name))
            return act->places[i];
    if (act->place_count == PLACES_MAX || name.len > DESTINATION_NAME_MAX)
        return NULL;
    struct place *place = calloc(1, sizeof *place);
    if (place == NULL)
        return NULL;
    memcpy(place->name, name.at, name.len);
    pthread_mutex_lock(&act->lock);
    act->places[act->place_count++] = place;
    pthread_mutex_unlock(&act->lock);
    return place;
}

void act_ready(struct place *place, struct job *job)
{
    struct job **at = &place->ready;
    while (*at != NULL && (*at)->effect.priority <= job->effect.priority)
        at = &(*at)->next;
    job->stage = JOB_READY;
    job->next = *at;
    *at = job;
    place->ready_count[job->effect.priority]++;
}

static struct job *pop_ready(struct place *place)
{
    struct job *job = place->ready;
    place->ready = job->next;
    place->ready_count[job->effect.priority]--;
    return job;
}

static void begin(struct job *job)
{
    if (job->asking)
        job_ask(job);
    else if (job->caller != NULL)
        job_call(job);
    else
        job_take(job);
}

/* As many as each destination may have now. Returns when the next may start. */
static int64_t start_ready(struct act *act, int64_t boot_us)
{
    int64_t wake_us = INT64_MAX;
    for (size_t i = 0; i < act->place_count; i++) {
        struct place *place = act->places[i];
        while (place->ready != NULL) {
            int64_t at_us;
            const struct destination *destination = place->ready->destination;
            if (pace_free(&place->pace, destination, boot_us, &at_us) == 0) {
                wake_us = at_us < wake_us ? at_us : wake_us;
                if (place->pace.running >= destination->concurrency)
                    engine_call_others(act->engine); /* they may have a call free */
                break;
            }
            pace_begin(&place->pace, destination);
            begin(pop_ready(place));
        }
        atomic_store(&place->running, place->pace.running);
        atomic_store(&place->breaker_open, pace_is_open(&place->pace, boot_us));
    }
    return wake_us;
}

/* ---- the policy ---- */

void act_set_policy(struct act *act, struct policy *policy, int64_t version)
{
    policy_use(policy);
    pthread_mutex_lock(&act->lock);
    struct policy *old = act->policy_next;
    act->policy_next = policy;
    act->policy_next_version = version;
    pthread_mutex_unlock(&act->lock);
    if (old != NULL)
        policy_free(old);
    act->transport->wake(act->transport);
}

static void take_policy(struct act *act)
{
    pthread_mutex_lock(&act->lock);
    struct policy *policy = act->policy_next;
    act->policy_next = NULL;
    act->policy_version = policy != NULL ? act->policy_next_version : act->policy_version;
    pthread_mutex_unlock(&act->lock);
    if (policy == NULL)
        return;
    if (act->policy != NULL)
        policy_free(act->policy);
    act->policy = policy;
    for (size_t i = 0; i < act->place_count; i++)
        act->places[i]->destination = policy_destination(policy, bytes_of(act->places[i]->name));
    for (size_t i = 0; i < policy->destination_count; i++) {
        struct place *place = act_place(act, policy->destinations[i].name);
        if (place != NULL) {
            place->destination = &policy->destinations[i];
            place->strand_said = false;
        } else
            LOG(LOG_WARN, "too many destinations", LOG_TEXT("destination", policy->destinations[i].name));
    }
    act->look_us = act->strand_us = 0;
}

/* ---- calls that someone waits for ---- */

static bool is_stopping(struct act *act)
{
    pthread_mutex_lock(&act->lock);
    bool stopping = act->stopping;
    pthread_mutex_unlock(&act->lock);
    return stopping;
}

void act_attend(struct act *act, struct act_call *call)
{
    call->next = NULL;
    pthread_mutex_lock(&act->lock);
    *act->calls_last = call;
    act->calls_last = &call->next;
    pthread_mutex_unlock(&act->lock);
    act->transport->wake(act->transport);
}

static void refuse(struct act_call *call, const char *text)
{
    call->end = TRANSPORT_NOT_SENT;
    call->outcome = OUTCOME_RETRY;
    call->status = why_set(&call->why, RETRY, "%s", text);
    call->untold = call->intent != 0;
    call->state = STATE_SENT;
    call->done(call);
}

static void take_call(struct act *act, struct act_call *call)
{
    struct place *place = act_place(act, call->destination->name);
    struct job *job = place != NULL && !is_stopping(act) ? job_new(act, place) : NULL;
    if (job == NULL) {
        refuse(call, "too many calls are under way");
        return;
    }
    /* The ledger may have to be told when the caller is long gone. */
    job->actor = arena_dup(&job->arena, call->actor);
    struct bytes space = arena_dup(&job->arena, call->space);
    policy_use(call->policy);
    job->policy = call->policy;
    job->destination = call->destination;
    job->rules = call->rules;
    job->request = *call->request;
    job->effect = (struct row_effect){
        .intent = call->intent, .space = space, .attended = 1, .priority = PRIORITY_HIGH, .tries = 1}; /* someone waits for it */
    job->fence = call->fence;
    job->lease_us = call->lease_us;
    job->begun_us = call->claimed_us;
    job->caller = call;
    job->memo = call->memo;
    if (call->intent != 0)
        job_note(job);
    act_ready(place, job);
}

/* ---- the step ---- */

void act_wake(struct act *act)
{
    pthread_mutex_lock(&act->lock);
    bool wanted = act->wanted;
    act->wanted = true;
    pthread_mutex_unlock(&act->lock);
    if (!wanted)
        act->transport->wake(act->transport);
}

/* What other threads left for this one. */
static void take_mail(struct act *act)
{
    pthread_mutex_lock(&act->lock);
    struct job *back = act->back_first;
    struct act_call *calls = act->calls_first;
    act->back_first = NULL;
    act->back_last = &act->back_first;
    act->calls_first = NULL;
    act->calls_last = &act->calls_first;
    if (act->wanted)
        act->look_us = 0;
    act->wanted = false;
    pthread_mutex_unlock(&act->lock);
    for (struct job *next; back != NULL; back = next) {
        next = back->next;
        job_back(back);
    }
    for (struct act_call *next; calls != NULL; calls = next) {
        next = calls->next;
        take_call(act, calls);
    }
}

static int64_t say_again(struct act *act, int64_t boot_us)
{
    struct job *waiting = act->waiting;
    int64_t wake_us = INT64_MAX;
    act->waiting = NULL;
    for (struct job *next; waiting != NULL; waiting = next) {
        next = waiting->next;
        if (waiting->say_again_us <= boot_us) {
            job_say_again(waiting);
            continue;
        }
        wake_us = waiting->say_again_us < wake_us ? waiting->say_again_us : wake_us;
        waiting->next = act->waiting;
        act->waiting = waiting;
    }
    return wake_us;
}

int64_t act_step(struct act *act)
{
    int64_t boot_us = act->env->boot_us(act->env);
    take_policy(act);
    take_mail(act);
    int64_t wake_us = say_again(act, boot_us);
    if (!is_stopping(act) && act->policy != NULL) {
        act_look(act, boot_us);
        act_strand(act, boot_us);
        int64_t start_us = start_ready(act, boot_us);
        wake_us = start_us < wake_us ? start_us : wake_us;
        wake_us = act->look_us < wake_us ? act->look_us : wake_us;
    }
    return wake_us;
}

/* ---- the thread ---- */

static void *delivery_main(void *arg)
{
    struct act *act = arg;
    while (!is_stopping(act)) {
        int64_t wake_us = act_step(act), wait_us = wake_us - act->env->boot_us(act->env);
        wait_us = wait_us < 0 ? 0 : wait_us > STEP_WAIT_MAX_US ? STEP_WAIT_MAX_US : wait_us;
        act->transport->run(act->transport, wait_us);
    }
    return NULL;
}

/* Another node has its hands full. */
static void called(void *arg)
{
    act_wake(arg);
}

enum status act_open(const struct act_config *config, struct act **ret_act, struct why *why)
{
    struct act *act = calloc(1, sizeof *act);
    if (act == NULL)
        return why_set(why, FULL, "no memory for the delivery");
    act->engine = config->engine;
    act->env = engine_env(config->engine);
    act->transport = config->transport;
    act->open_reader = config->open_reader;
    act->open_user = config->open_user;
    act->back_last = &act->back_first;
    act->calls_last = &act->calls_first;
    pthread_mutex_init(&act->lock, NULL);
    engine_on_call(act->engine, called, act);
    *ret_act = act;
    return OK;
}

enum status act_start(struct act *act, struct why *why)
{
    if (pthread_create(&act->thread, NULL, delivery_main, act) != 0)
        return why_set(why, FULL, "no thread could be started");
    act->started = true;
    return OK;
}

/* ---- closing ---- */

/* Those that were not begun go back to where they were: into their rows. */
static void drop_ready(struct act *act)
{
    for (size_t i = 0; i < act->place_count; i++)
        while (act->places[i]->ready != NULL) {
            struct job *job = pop_ready(act->places[i]);
            if (job->caller != NULL)
                refuse(job->caller, "semel is stopping");
            job_drop(job);
        }
}

static bool has_running(const struct act *act)
{
    for (size_t i = 0; i < act->place_count; i++)
        if (act->places[i]->pace.running > 0)
            return true;
    return false;
}

/* Telling the ledger needs the writer, which may be slow, but not for ever. */
static void finish(struct act *act)
{
    int64_t end_us = act->env->boot_us(act->env) + STOP_GRACE_US;
    drop_ready(act);
    while (has_running(act) && act->env->boot_us(act->env) < end_us) {
        act_step(act);
        act->transport->run(act->transport, 20 * WHEN_MS);
    }
    act->transport->abandon(act->transport);
    for (end_us += STOP_GRACE_US; act->job_count > 0 && act->env->boot_us(act->env) < end_us;) {
        act_step(act);
        struct timespec moment = {0, 5 * 1000 * 1000};
        nanosleep(&moment, NULL);
    }
}

void act_close(struct act *act)
{
    if (act == NULL)
        return;
    engine_on_call(act->engine, NULL, NULL);
    pthread_mutex_lock(&act->lock);
    act->stopping = true;
    pthread_mutex_unlock(&act->lock);
    if (act->started) {
        act->transport->wake(act->transport);
        pthread_join(act->thread, NULL);
        finish(act);
    } else {
        drop_ready(act);
    }
    act->transport->close(act->transport);
    if (act->policy != NULL)
        policy_free(act->policy);
    if (act->policy_next != NULL)
        policy_free(act->policy_next);
    store_close(act->reader);
    for (size_t i = 0; i < act->place_count; i++)
        free(act->places[i]);
    free(act);
}

/* ---- figures ---- */

void act_each(struct act *act, void (*each)(void *ctx, const struct act_figures *figures), void *ctx)
{
    pthread_mutex_lock(&act->lock);
    size_t count = act->place_count;
    pthread_mutex_unlock(&act->lock);
    for (size_t i = 0; i < count; i++) {
        struct place *place = act->places[i];
        struct act_figures figures = {.destination = bytes_of(place->name), .running = atomic_load(&place->running)};
        for (size_t o = 0; o <= OUTCOME_UNKNOWN; o++)
            figures.outcomes[o] = atomic_load(&place->outcomes[o]);
        figures.probes = atomic_load(&place->probes);
        figures.stranded = atomic_load(&place->stranded);
        figures.breaker_open = atomic_load(&place->breaker_open);
        each(ctx, &figures);
    }
}
