/* look: finds the effects that are due, reads their requests, and does what the ladder says. */
#include "act/act_own.h"
#include "base/log.h"
#include "base/when.h"

#define LOOK_EVERY_US (200 * WHEN_MS)
#define LOOK_SOON_US (2 * WHEN_MS)
#define LOOK_JOBS_MAX 512
#define LOOK_AHEAD 256 /* of one destination */
#define REOPEN_EVERY_US WHEN_SECOND

struct looking {
    struct act *act;
    struct job *jobs[LOOK_JOBS_MAX];
    size_t count;
    bool full; /* there is more than could be taken */
};

/* ---- the rows ---- */

static bool copy_texts(struct row_effect *row, struct arena *arena)
{
    struct bytes *texts[] = {&row->space, &row->destination, &row->line, &row->owner,
                             &row->note,  &row->workflow,    &row->key,  &row->error};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i]->at != NULL)
            *texts[i] = arena_dup(arena, *texts[i]);
    return !arena->failed;
}

struct job *job_of(struct act *act, struct place *place, const struct row_effect *effect)
{
    struct job *job = job_new(act, place);
    if (job == NULL)
        return NULL;
    job->effect = *effect;
    policy_use(act->policy);
    job->policy = act->policy;
    job->policy_version = act->policy_version;
    job->destination = place->destination;
    if (!copy_texts(&job->effect, &job->arena)) {
        job_drop(job);
        return NULL;
    }
    job_note(job);
    return job;
}

static enum status take_due(void *ctx, const void *row, struct why *why)
{
    struct looking *looking = ctx;
    const struct row_effect *got = row;
    struct act *act = looking->act;
    if (job_is_known(act, got->intent))
        return OK;
    struct place *place = act_place(act, got->destination);
    if (got->priority < 0 || got->priority >= PRIORITY_COUNT)
        return why_set(why, BROKEN, "effect %lld is damaged", (long long)got->intent);
    if (place == NULL || place->destination == NULL || looking->count == LOOK_JOBS_MAX ||
        place->ready_count[got->priority] >= READY_MAX) {
        looking->full = true;
        return OK;
    }
    struct job *job = job_of(act, place, got);
    if (job == NULL) {
        looking->full = true;
        return OK;
    }
    looking->full |= ++place->looked_up[got->priority] >= LOOK_AHEAD;
    looking->jobs[looking->count++] = job;
    return OK;
}

static enum status take_record(void *ctx, const void *row, struct why *why)
{
    struct looking *looking = ctx;
    const struct r_body_get *got = row;
    for (size_t i = 0; i < looking->count; i++) {
        struct job *job = looking->jobs[i];
        if (job->effect.request != got->id)
            continue;
        struct bytes record = arena_dup(&job->arena, got->bytes);
        if (record.at == NULL)
            return why_set(why, FULL, "no memory for a request");
        TRY(request_read(record, &job->arena, &job->request, why));
        job->rules = destination_call(job->destination, job->request.method, job->request.path);
        return OK;
    }
    return OK;
}

static enum status read_records(struct looking *looking, struct why *why)
{
    struct q_body_get gets[LOOK_JOBS_MAX];
    for (size_t i = 0; i < looking->count; i++)
        gets[i].id = looking->jobs[i]->effect.request;
    return store_run(looking->act->reader, &BODY_GET, gets, looking->count, take_record, looking, NULL, why);
}

/* ---- the ladder ---- */

static bool can_ask(struct job *job)
{
    struct why why;
    job->recipe = destination_probe_recipe(job->destination, job->rules, job->downstream, &job->request);
    return job->recipe != NULL && destination_probe(job->destination, job->rules, job->downstream, &job->request,
                                                    job->effect.first_sent, &job->arena, &job->question, &why) == OK;
}

/* How long a caller may still come back after a call that may have happened: as long as the ledger would give it out again
 * (see retry_is_deduplicated() there). Where a repetition is harmless for ever, or accepted, for as long as effects are tried. */
static int64_t caller_left_us(const struct job *job, struct ledger_now now)
{
    const struct row_effect *effect = &job->effect;
    int64_t wall_us = now.wall_us - effect->first_sent, run_us = now.run_us - effect->first_sent_run;
    bool ends = effect->capability == CAPABILITY_IDEMPOTENT && effect->window_us < WINDOW_ALWAYS_US;
    return (ends ? effect->window_us / 3 * 2 : job->destination->deadline_us) - (wall_us > run_us ? wall_us : run_us);
}

static struct effect_view view_of(struct job *job)
{
    const struct row_effect *effect = &job->effect;
    struct ledger_now now = engine_now(job->act->engine);
    bool askable = effect->state == STATE_UNKNOWN && can_ask(job);
    return (struct effect_view){
        .state = (enum intent_state)effect->state,
        .attended = effect->attended != 0,
        .caller_us = caller_left_us(job, now),
        .ambiguous = effect->ambiguous != 0,
        .skipped = effect->state == STATE_UNKNOWN && effect->settled != 0,
        .can_ask = askable,
        .tries = effect->tries,
        .tries_max = job->destination->attempts_max,
        .probes = effect->probes,
        .probes_max = job->recipe != NULL ? job->recipe->tries : 0,
        .deadline_us = effect->deadline,
        .quiet_us = effect->quiet,
        .settle_us = job->recipe != NULL ? job->recipe->settle_us : 0,
        .wall_us = now.wall_us,
        .run_us = now.run_us,
    };
}

static void advance(struct job *job)
{
    downstream_key(job->effect.space, job->effect.workflow, job->effect.key, job->downstream);
    struct effect_view view = view_of(job);
    struct ladder_advice advice = ladder_next(&view);
    job->asking = advice.move == LADDER_ASK;
    if (advice.move == LADDER_GIVE_UP)
        job_give_up(job);
    else if (job->asking || advice.move == LADDER_DELIVER)
        act_ready(job->place, job);
    else
        job_stand(job, &advice);
}

/* ---- the look ---- */

static bool reader_is_open(struct act *act, int64_t boot_us)
{
    if (act->reader != NULL && !act->reader->lost)
        return true;
    if (boot_us < act->reader_due_us)
        return false;
    act->reader_due_us = boot_us + REOPEN_EVERY_US;
    store_close(act->reader);
    act->reader = NULL;
    struct why why;
    enum status status = act->open_reader != NULL ? act->open_reader(act->open_user, &act->reader, &why)
                                                  : engine_open_reader(act->engine, &act->reader, &why);
    if (status == OK)
        return true;
    LOG(LOG_WARN, "the outbox cannot be read", LOG_CSTR("why", why.text));
    act->reader = NULL;
    return false;
}

/* One question per destination and priority. What is known already is still due in the table, so it is asked for on top. */
static size_t ask_for(struct act *act, struct q_outbox_due *asks, size_t most, bool *ret_later)
{
    size_t n = 0;
    int64_t now = engine_now(act->engine).wall_us;
    for (size_t i = 0; i < act->place_count; i++) {
        struct place *place = act->places[i];
        if (place->destination == NULL)
            continue;
        for (int64_t priority = 0; priority < PRIORITY_COUNT && n < most; priority++) {
            int64_t known = (int64_t)place->ready_count[priority] + place->pace.running;
            place->looked_up[priority] = 0;
            if (place->ready_count[priority] > LOOK_AHEAD / 2)
                *ret_later = true;
            else
                asks[n++] = (struct q_outbox_due){bytes_of(place->name), priority, now, known + LOOK_AHEAD};
        }
    }
    return n;
}

void act_look(struct act *act, int64_t boot_us)
{
    static _Thread_local struct q_outbox_due asks[PLACES_MAX * PRIORITY_COUNT];
    struct looking looking = {.act = act};
    struct why why;
    if (boot_us < act->look_us)
        return;
    act->look_us = boot_us + LOOK_EVERY_US;
    if (!reader_is_open(act, boot_us))
        return;
    size_t count = ask_for(act, asks, sizeof asks / sizeof *asks, &looking.full);
    enum status status = store_run(act->reader, &OUTBOX_DUE, asks, count, take_due, &looking, NULL, &why);
    if (status == OK)
        status = read_records(&looking, &why);
    if (status != OK)
        LOG(LOG_WARN, "the outbox cannot be read", LOG_CSTR("why", why.text));
    for (size_t i = 0; i < looking.count; i++) {
        if (status == OK && looking.jobs[i]->rules != NULL)
            advance(looking.jobs[i]);
        else
            job_drop(looking.jobs[i]);
    }
    if (looking.full && status == OK)
        act->look_us = boot_us + LOOK_SOON_US;
}
