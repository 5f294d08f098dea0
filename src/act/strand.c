/* strand: effects whose destination was taken out of the policy. They wait until it is there again; when their time is over, a
 * person gets them like others. */
#include "act/act_own.h"
#include "base/log.h"
#include "base/when.h"

#define STRAND_EVERY_US (5 * WHEN_SECOND)
#define STRAND_PATIENCE_US WHEN_DAY /* of those without a deadline: a caller's, which cannot come back here */
#define STRAND_JOBS_MAX 256
#define STRAND_ARENA_MAX (1u << 20)

/* ---- which and how many ---- */

struct names {
    struct arena *arena;
    const struct policy *policy;
    struct bytes at[PLACES_MAX];
    size_t count;
};

static enum status take_name(void *ctx, const void *row, struct why *why)
{
    struct names *names = ctx;
    struct bytes name = ((const struct r_outbox_places *)row)->destination;
    if (names->count == PLACES_MAX || policy_destination(names->policy, name) != NULL)
        return OK;
    struct bytes copy = arena_dup(names->arena, name);
    if (copy.at == NULL)
        return why_set(why, FULL, "no memory for the names of destinations");
    names->at[names->count++] = copy;
    return OK;
}

static enum status take_count(void *ctx, const void *row, struct why *why)
{
    (void)why;
    *(int64_t *)ctx = ((const struct r_outbox_count *)row)->effects;
    return OK;
}

enum status outbox_stranded(struct store *store, const struct policy *policy, struct arena *arena,
                            void (*each)(void *ctx, struct bytes destination, int64_t effects), void *ctx, struct why *why)
{
    struct names names = {.arena = arena, .policy = policy};
    TRY(store_run(store, &OUTBOX_PLACES, NULL, 0, take_name, &names, NULL, why));
    for (size_t i = 0; i < names.count; i++) {
        int64_t effects = 0;
        struct q_outbox_count count = {names.at[i]};
        TRY(store_run(store, &OUTBOX_COUNT, &count, 1, take_count, &effects, NULL, why));
        each(ctx, names.at[i], effects);
    }
    return OK;
}

/* ---- those whose time is over ---- */

struct overdue {
    struct act *act;
    struct place *place;
    struct job *jobs[STRAND_JOBS_MAX];
    size_t count;
};

static enum status take_overdue(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct overdue *overdue = ctx;
    const struct row_effect *effect = row;
    struct job *job = job_is_known(overdue->act, effect->intent) ? NULL : job_of(overdue->act, overdue->place, effect);
    if (job != NULL)
        overdue->jobs[overdue->count++] = job;
    return OK;
}

static void advance(struct job *job)
{
    const struct row_effect *effect = &job->effect;
    struct ledger_now now = engine_now(job->act->engine);
    struct effect_view view = {
        .state = (enum intent_state)effect->state,
        .attended = effect->attended != 0,
        .ambiguous = effect->ambiguous != 0,
        .stranded = true,
        .skipped = effect->state == STATE_UNKNOWN && effect->settled != 0,
        .quiet_us = effect->quiet,
        .wall_us = now.wall_us,
        .run_us = now.run_us,
    };
    struct ladder_advice advice = ladder_next(&view);
    if (advice.move == LADDER_GIVE_UP)
        job_give_up(job);
    else
        job_stand(job, &advice);
}

static enum status look_at(struct act *act, struct place *place, struct why *why)
{
    struct overdue overdue = {.act = act, .place = place};
    struct q_outbox_overdue ask = {bytes_of(place->name), engine_now(act->engine).wall_us, STRAND_PATIENCE_US, STRAND_JOBS_MAX};
    enum status status = store_run(act->reader, &OUTBOX_OVERDUE, &ask, 1, take_overdue, &overdue, NULL, why);
    for (size_t i = 0; i < overdue.count; i++) {
        if (status == OK)
            advance(overdue.jobs[i]);
        else
            job_drop(overdue.jobs[i]);
    }
    return status;
}

/* ---- the look ---- */

static void note_place(void *ctx, struct bytes destination, int64_t effects)
{
    struct place *place = act_place(ctx, destination);
    if (place == NULL || effects == 0)
        return;
    atomic_store(&place->stranded, effects);
    if (!place->strand_said)
        LOG(LOG_WARN, "effects wait for a destination that is not in the policy", LOG_TEXT("destination", destination),
            LOG_INT("effects", effects));
    place->strand_said = true;
}

static enum status look(struct act *act, struct arena *arena, struct why *why)
{
    for (size_t i = 0; i < act->place_count; i++)
        atomic_store(&act->places[i]->stranded, 0);
    TRY(outbox_stranded(act->reader, act->policy, arena, note_place, act, why));
    for (size_t i = 0; i < act->place_count; i++)
        if (act->places[i]->destination == NULL && atomic_load(&act->places[i]->stranded) > 0)
            TRY(look_at(act, act->places[i], why));
    return OK;
}

void act_strand(struct act *act, int64_t boot_us)
{
    struct arena arena;
    struct why why;
    if (boot_us < act->strand_us || act->reader == NULL || act->reader->lost)
        return;
    act->strand_us = boot_us + STRAND_EVERY_US;
    arena_init(&arena, STRAND_ARENA_MAX);
    if (look(act, &arena, &why) != OK)
        LOG(LOG_WARN, "the outbox cannot be read", LOG_CSTR("why", why.text));
    arena_release(&arena);
}
