#include "flow/flow_own.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mutant.h"

#define SWEEP_EVERY_US (5 * WHEN_SECOND)
#define FAILED_AGAIN_US (1 * WHEN_SECOND)
#define TICK_EVERY_US (60 * WHEN_SECOND)       /* each one is a commit: a quiet house stays quiet */
#define TICK_SHARED_EVERY_US (5 * WHEN_SECOND) /* with other nodes, one of which may have stopped */

enum status pass_no_memory(struct pass *pass)
{
    return why_set(pass->why, FULL, "no memory for a pass");
}

/* ---- loading ---- */

enum status pass_take(void *ctx, const void *row, struct why *why)
{
    struct pass *pass = ctx;
    const struct row_event *got = row;
    struct item *item = &pass->items[pass->count++];
    struct row_event *kept = &item->known.row;
    *kept = *got;
    kept->space = arena_dup(pass->arena, got->space);
    kept->source = arena_dup(pass->arena, got->source);
    kept->content = arena_dup(pass->arena, got->content);
    if (pass->arena->failed)
        return why_set(why, FULL, "no memory for a pass");
    item->source = policy_source(pass->policy, kept->source);
    enum status status = known_read(&item->known, pass->arena, why);
    if (status != INVALID && status != BROKEN)
        return status;
    /* One row that cannot be read must not keep the others waiting. It is kept. */
    LOG(LOG_ERROR, "an event cannot be read", LOG_TEXT("source", kept->source), LOG_CSTR("why", why->text));
    item->known = (struct known){.row = *kept, .incoming = {.kind = BYTES("event")}, .read = true};
    item->unreadable = true;
    return OK;
}

static enum status load_items(struct pass *pass)
{
    struct q_event_undecided waiting = {pass->flow->most};
    pass->items = arena_zalloc(pass->arena, FLOW_PASS_MAX, sizeof *pass->items);
    if (pass->items == NULL)
        return pass_no_memory(pass);
    TRY(store_run(pass->store, &EVENT_LOCK, NULL, 0, NULL, NULL, NULL, pass->why));
    return store_run(pass->store, &EVENT_UNDECIDED, &waiting, 1, pass_take, pass, NULL, pass->why);
}

static enum status run_pass(struct pass *pass)
{
    TRY(load_items(pass));
    pass->flow->more = (int64_t)pass->count == pass->flow->most;
    if (pass->count == 0)
        return OK;
    TRY(pass_collect(pass));
    for (size_t i = 0; i < pass->count; i++) {
        TRY(pass_judge(pass, &pass->items[i]));
        pass_note(pass, &pass->items[i]);
    }
    TRY(pass_leads(pass));
    for (size_t i = 0; i < pass->count; i++)
        TRY(pass_prepare(pass, &pass->items[i]));
    return pass_write(pass);
}

static enum status take_waiting(void *ctx, const void *row, struct why *why)
{
    (void)why;
    atomic_store(&((struct flow *)ctx)->waiting, ((const struct r_event_waiting_count *)row)->count);
    return OK;
}

/* Now and then, what is over is forgotten, and what waits is counted. */
static enum status sweep(struct flow *flow, struct pass *pass)
{
    struct env *env = engine_env(flow->engine);
    if (env->boot_us(env) < flow->sweep_due_us)
        return OK;
    bool more;
    TRY(stage_sweep(pass->store, flow->slice++, pass->ledger->now.wall_us, pass->arena, &more, pass->why));
    flow->sweep_due_us = more ? 0 : env->boot_us(env) + SWEEP_EVERY_US;
    flow->more = flow->more || more;
    struct q_event_waiting_count count = {FLOW_WAITING_MAX};
    return store_run(pass->store, &EVENT_WAITING_COUNT, &count, 1, take_waiting, flow, NULL, pass->why);
}

struct policy *flow_policy(struct flow *flow, int64_t *ret_version)
{
    pthread_mutex_lock(&flow->lock);
    struct policy *policy = flow->policy;
    *ret_version = flow->policy_version;
    policy_use(policy);
    pthread_mutex_unlock(&flow->lock);
    return policy;
}

static enum status flow_write(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct flow *flow = command->user;
    int64_t version;
    struct policy *policy = flow_policy(flow, &version);
    flow->more = false;
    flow->forwarded = flow->decided_count = 0;
    struct pass pass = {.recall = &recall_stored,
                        .flow = flow,
                        .store = store,
                        .ledger = ledger,
                        .arena = ledger->arena,
                        .policy = policy,
                        .policy_version = version,
                        .pepper = engine_pepper(flow->engine),
                        .why = why};
    enum status status = run_pass(&pass);
    if (status == OK)
        status = sweep(flow, &pass);
    policy_free(policy);
    return status;
}

/* ---- passes one after the other ---- */

static void pass_done(struct engine_command *command);

struct engine_command flow_pass(struct flow *flow)
{
    return (struct engine_command){
        .write = flow_write, .intents_max = FLOW_PASS_MAX, .arena = &flow->arena, .done = pass_done, .user = flow};
}

static void submit(struct flow *flow)
{
    flow->command = flow_pass(flow);
    engine_submit(flow->engine, &flow->command);
}

/* After a failure fewer at a time, and soon again; afterwards more and more. Under the lock. True: there is more to do at once. */
static bool plan_next(struct flow *flow, bool good)
{
    struct env *env = engine_env(flow->engine);
    if (good) {
        flow->most = flow->most * 2 < FLOW_PASS_MAX ? flow->most * 2 : FLOW_PASS_MAX;
        return flow->more || flow->again;
    }
    bool smaller = flow->most > 1;
    flow->most = flow->most > 4 ? flow->most / 4 : 1;
    flow->tick_due_us = env->boot_us(env) + FAILED_AGAIN_US;
    return smaller;
}

static void pass_done(struct engine_command *command)
{
    struct flow *flow = command->user;
    bool good = command->status == OK, again;
    for (size_t i = 0; good && i < flow->decided_count; i++)
        flow_count(flow, flow->decided[i].slot, flow->decided[i].verdict);
    atomic_store(&flow->failing, !good);
    if (!good)
        LOG(LOG_ERROR, "events could not be decided and are still waiting", LOG_CSTR("why", command->why.text));
    if (good && flow->forwarded > 0 && flow->act != NULL)
        act_wake(flow->act);
    pthread_mutex_lock(&flow->lock);
    again = plan_next(flow, good) && !flow->stopped;
    flow->again = false;
    flow->busy = again;
    pthread_mutex_unlock(&flow->lock);
    if (again)
        submit(flow);
}

void flow_wake(struct flow *flow)
{
    pthread_mutex_lock(&flow->lock);
    bool begin = !flow->busy && !flow->stopped;
    flow->again = flow->busy;
    flow->busy = flow->busy || begin;
    pthread_mutex_unlock(&flow->lock);
    if (begin)
        submit(flow);
}

void flow_tick(struct flow *flow)
{
    struct env *env = engine_env(flow->engine);
    int64_t now = env->boot_us(env);
    pthread_mutex_lock(&flow->lock);
    bool due = now >= flow->tick_due_us && !MUTANT(PASS_ASLEEP);
    if (due)
        flow->tick_due_us = now + (engine_is_postgres(flow->engine) ? TICK_SHARED_EVERY_US : TICK_EVERY_US);
    pthread_mutex_unlock(&flow->lock);
    if (due)
        flow_wake(flow);
}

void flow_stop(struct flow *flow)
{
    if (flow == NULL)
        return;
    pthread_mutex_lock(&flow->lock);
    flow->stopped = true;
    pthread_mutex_unlock(&flow->lock);
}

void flow_set_policy(struct flow *flow, struct policy *policy, int64_t version)
{
    policy_use(policy);
    pthread_mutex_lock(&flow->lock);
    struct policy *old = flow->policy;
    flow->policy = policy;
    flow->policy_version = version;
    pthread_mutex_unlock(&flow->lock);
    if (old != NULL)
        policy_free(old);
}

/* ---- figures ---- */

size_t flow_slot(struct flow *flow, struct bytes source)
{
    pthread_mutex_lock(&flow->lock);
    size_t slot = 0;
    while (slot < flow->source_count && !bytes_is(source, flow->counts[slot].source))
        slot++;
    if (slot == flow->source_count) {
        bool named = slot < FLOW_SOURCES_MAX && source.len <= SETTING_NAME_MAX && policy_source(flow->policy, source) != NULL;
        slot = named ? flow->source_count++ : FLOW_SOURCES_MAX;
        if (named)
            memcpy(flow->counts[slot].source, source.at, source.len);
    }
    pthread_mutex_unlock(&flow->lock);
    return slot;
}

void flow_count(struct flow *flow, size_t slot, int64_t verdict)
{
    pthread_mutex_lock(&flow->lock);
    flow->counts[slot].verdicts[verdict]++;
    pthread_mutex_unlock(&flow->lock);
}

void flow_refused(struct flow *flow, struct bytes source)
{
    size_t slot = flow_slot(flow, source);
    pthread_mutex_lock(&flow->lock);
    flow->counts[slot].refused++;
    pthread_mutex_unlock(&flow->lock);
}

int64_t flow_waiting(const struct flow *flow, bool *ret_failing)
{
    *ret_failing = atomic_load(&flow->failing);
    return atomic_load(&flow->waiting);
}

void flow_each_source(struct flow *flow, void (*take)(void *ctx, const struct flow_counts *counts), void *ctx)
{
    pthread_mutex_lock(&flow->lock);
    for (size_t i = 0; i < flow->source_count; i++)
        take(ctx, &flow->counts[i]);
    take(ctx, &flow->counts[FLOW_SOURCES_MAX]);
    pthread_mutex_unlock(&flow->lock);
}

enum status flow_open(struct engine *engine, struct act *act, struct flow **ret_flow, struct why *why)
{
    struct flow *flow = calloc(1, sizeof *flow);
    if (flow == NULL)
        return why_set(why, FULL, "no memory for the flow");
    flow->engine = engine;
    flow->act = act;
    flow->most = FLOW_PASS_MAX;
    memcpy(flow->counts[FLOW_SOURCES_MAX].source, "other", sizeof "other");
    arena_init(&flow->arena, 1 << 10);
    pthread_mutex_init(&flow->lock, NULL);
    *ret_flow = flow;
    return OK;
}

void flow_close(struct flow *flow)
{
    if (flow == NULL)
        return;
    if (flow->policy != NULL)
        policy_free(flow->policy);
    pthread_mutex_destroy(&flow->lock);
    arena_release(&flow->arena);
    free(flow);
}
