/* effects: clients that hand effects to the daemon, and the daemon's delivery: created at the start, gone with the process. */
#include <stdio.h>
#include <stdlib.h>

#include "act/act_own.h"
#include "engine/engine_own.h"
#include "sim.h"

#define WINDOW_KEYED_US (12 * WHEN_SECOND)
#define WINDOW_BRIEF_US (4500 * WHEN_MS) /* a third of it is shorter than the lease of a call */
#define ANSWER_MAX_US (1200 * WHEN_MS)   /* a client asks again when it has heard nothing */
#define TURN_DELAY_US (200)
#define CALLER_US (6 * WHEN_SECOND) /* how long one who may repeat a call may come back */

/* ---- the rules ---- */

#define PLACE "provider: http, url: 'https://example.com'"
static const char policy_text[] =
    "version: 1\n"
    "destinations:\n"
    "  keyed: {" PLACE ", capability: idempotent, key_header: Idempotency-Key, window: 1m, owner: dana}\n"
    "  brief: {" PLACE ", capability: idempotent, key_header: Idempotency-Key, window: 1m}\n"
    "  asked: {" PLACE
    ", calls: [{name: do, methods: [POST], markers: [{in: header, name: Idempotency-Key}], probes: [{method: GET,"
    " path: '/find?key={key}', items: items, match: {key: '{key}'}, proves: [found, absent], settle: 1s, tries: 2}]}]}\n"
    "  hold: {" PLACE ", on_unknown: hold, on_4xx: replay}\n"
    "  again: {" PLACE ", on_unknown: retry}\n"
    "  skip: {" PLACE ", on_unknown: skip}\n";
static const char *const place_names[PLACE_KINDS] = {"keyed", "brief", "asked", "hold", "again", "skip"};

int64_t place_window_us(enum place_kind kind)
{
    return kind == PLACE_KEYED ? WINDOW_KEYED_US : kind == PLACE_BRIEF ? WINDOW_BRIEF_US : 0;
}

/* The document's shortest times are too long for a history; they are set by hand. */
static void shorten(struct destination *destination)
{
    bool brief = bytes_is(destination->name, "brief");
    destination->timeout_us = CALL_US;
    destination->concurrency = 2;
    destination->attempts_max = TRIES_MAX;
    destination->deadline_us = CALLER_US;
    destination->backoff_first_us = 100 * WHEN_MS;
    destination->backoff_max_us = 500 * WHEN_MS;
    for (size_t i = 0; i < destination->call_count; i++) {
        struct call_rules *rules = &destination->calls[i];
        if (rules->window_us > 0)
            rules->window_us = brief ? WINDOW_BRIEF_US : WINDOW_KEYED_US;
        for (size_t p = 0; p < rules->probe_count; p++)
            rules->probes[p].settle_us = SETTLE_US;
    }
}

void effects_shorten(struct policy *policy)
{
    for (size_t i = 0; i < policy->destination_count; i++)
        shorten(&policy->destinations[i]);
}

struct policy *effects_policy(void)
{
    static struct policy *policy;
    static struct yaml_problems problems;
    if (policy != NULL)
        return policy;
    enum status status = policy_parse(bytes_of(policy_text), &policy, &problems);
    ASSERT(status == OK);
    effects_shorten(policy);
    return policy;
}

/* One without any destination: those who wait for one are stranded. */
static struct policy *bare_policy(void)
{
    static struct policy *policy;
    static struct yaml_problems problems;
    enum status status = policy != NULL ? OK : policy_parse(BYTES("version: 1\n"), &policy, &problems);
    ASSERT(status == OK);
    return policy;
}

static void apply_policy(struct sim *sim)
{
    if (sim->act != NULL)
        act_set_policy(sim->act, sim->bare ? bare_policy() : effects_policy(), sim->bare ? 2 : 1);
}

static void takes_out(struct sim *sim, void *bare)
{
    sim->bare = bare != NULL;
    sim_say(sim, "the policy has %s", sim->bare ? "no destinations any more" : "its destinations again");
    apply_policy(sim);
}

static const struct destination *destination_of(const struct effect *effect)
{
    return policy_destination(effects_policy(), bytes_of(place_names[effect->kind]));
}

/* ---- the delivery ---- */

struct proxy {
    struct store store;
    struct sim *sim;
};

/* The simulated disk has one connection: the delivery reads with the writer's, between its steps. */
static enum status proxy_run(struct store *store, const struct query *query, const void *params, size_t count,
                             store_row_fn *on_row, void *ctx, int64_t *ret_changed, struct why *why)
{
    return store_run(engine_store(((struct proxy *)store)->sim->engine), query, params, count, on_row, ctx, ret_changed, why);
}

static void proxy_close(struct store *store)
{
    (void)store;
}

static enum status open_reader(void *user, struct store **ret_store, struct why *why)
{
    static const struct store_ops ops = {.run = proxy_run, .close = proxy_close};
    static struct proxy proxy;
    (void)why;
    proxy = (struct proxy){.store = {.ops = &ops, .kind = STORE_SQLITE}, .sim = user};
    *ret_store = &proxy.store;
    return OK;
}

void effects_hand_over(struct sim *sim)
{
    struct engine *engine = sim->engine;
    struct engine_command *list = engine->queue_first;
    engine->queue_first = NULL;
    engine->queue_last = &engine->queue_first;
    engine->queue_count = 0;
    for (struct engine_command *next; list != NULL; list = next) {
        next = list->next;
        sim_arrive(sim, list);
    }
}

static void plan_turn(struct sim *sim, int64_t after_us);

static void turn(struct sim *sim, void *plan)
{
    if ((uint64_t)(uintptr_t)plan != sim->act_plan || sim->act == NULL)
        return;
    if (sim_chance(sim, sim->mix.starved) && sim->now_us >= sim->starved_until_us)
        sim->starved_until_us = sim->now_us + sim_below(sim, STARVED_MAX_US);
    if (sim->now_us < sim->starved_until_us) {
        plan_turn(sim, sim->starved_until_us - sim->now_us);
        return;
    }
    if (sim_chance(sim, sim->mix.crash_per_step)) {
        sim_crash(sim, "before a turn of the delivery");
        return;
    }
    sim->steps++;
    uint64_t planned = sim->act_plan;
    int64_t after = act_step(sim->act) - sim->env.boot_us(&sim->env);
    effects_hand_over(sim);
    if (sim->act_plan == planned)
        plan_turn(sim, after > TURN_DELAY_US ? after : TURN_DELAY_US);
}

static void plan_turn(struct sim *sim, int64_t after_us)
{
    sim_at(sim, after_us > WHEN_SECOND ? WHEN_SECOND : after_us, turn, (void *)(uintptr_t)++sim->act_plan);
}

void effects_wake(struct sim *sim)
{
    if (sim->act != NULL)
        plan_turn(sim, TURN_DELAY_US);
}

void effects_boot(struct sim *sim)
{
    if (!sim->has_effects && !sim->has_inbox)
        return;
    struct act_config config = {
        .engine = sim->engine, .transport = post_transport(), .open_reader = open_reader, .open_user = sim};
    struct why why = {""};
    enum status status = act_open(&config, &sim->act, &why);
    ASSERT(status == OK);
    apply_policy(sim);
}

/* The memory of a process that is gone: nothing is said, nobody is told. */
void effects_crash(struct sim *sim)
{
    struct act *act = sim->act;
    sim->life++;
    sim->act_plan++;
    sim->starved_until_us = 0;
    sim->act = NULL;
    post_crash(sim);
    if (act == NULL)
        return;
    for (size_t i = 0; i < JOB_BUCKETS; i++)
        while (act->buckets[i] != NULL)
            job_drop(act->buckets[i]);
    ASSERT(act->job_count == 0);
    if (act->policy != NULL)
        policy_free(act->policy);
    if (act->policy_next != NULL)
        policy_free(act->policy_next);
    for (size_t i = 0; i < act->place_count; i++)
        free(act->places[i]);
    free(act);
}

/* ---- clients ---- */

/* One request of one client; what it needs lives as long as the history. */
struct request {
    struct effect *effect;
    uint64_t life;
    struct effect_request prepared;
    struct effect_order order;
    struct engine_command command;
    struct act_call call;
    bool answered;
};

static void client_asks(struct sim *sim, void *arg);

static struct fingerprint contents_of(int contents)
{
    struct fingerprint fingerprint = {.fields = contents == 0 ? BYTES("{\"a\":\"0000000000000000\"}")
                                                              : BYTES("{\"a\":\"1111111111111111\"}")};
    fingerprint.whole.at[0] = (uint8_t)(contents + 1);
    return fingerprint;
}

/* As src/api/effects.c. */
static enum status also_submitted(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    const struct request *request = command->user;
    if (command->answer.verdict != VERDICT_PROCEED && command->answer.verdict != VERDICT_OUTCOME_UNKNOWN)
        return OK;
    return outbox_write(store, ledger, command->answer.intent, &request->order, why);
}

/* As src/api/forward.c. */
static enum status also_claimed(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct request *request = command->user;
    struct sim *sim = sim_current();
    request->call.claimed_us = sim->env.boot_us(&sim->env);
    return act_write_claimed(store, ledger, command, &request->order, destination_of(request->effect), why);
}

static void asks_again(struct sim *sim, void *arg)
{
    struct request *request = arg;
    if (!request->answered && sim->now_us < EFFECTS_FAULTS_END_US)
        client_asks(sim, request->effect);
}

static void client_hears(struct sim *sim, void *arg)
{
    struct request *request = arg;
    request->answered = request->command.status == OK;
    judge_effect_answer(sim, request->effect, &request->command);
}

static void attended_done(struct act_call *call)
{
    struct request *request = call->user;
    mark(MARK_ATTENDED);
    if (call->status == OK && call->state == STATE_CONFIRMED && !sim_current()->dead)
        request->effect->confirmed_seen = true; /* the caller is told */
}

static void attend(struct sim *sim, void *arg)
{
    struct request *request = arg;
    const struct destination *destination = destination_of(request->effect);
    if (request->life != sim->life || sim->act == NULL)
        return;
    request->call.policy = effects_policy();
    request->call.destination = destination;
    request->call.rules = destination_call(destination, request->prepared.method, request->prepared.path);
    request->call.request = &request->prepared;
    request->call.space = BYTES("main");
    request->call.actor = BYTES("sim");
    request->call.intent = request->command.answer.intent;
    request->call.fence = request->command.answer.fence;
    request->call.lease_us = act_lease_us(destination);
    request->call.done = attended_done;
    request->call.user = request;
    act_attend(sim->act, &request->call);
}

static void processed(struct engine_command *command)
{
    struct sim *sim = sim_current();
    struct request *request = command->user;
    struct effect *effect = request->effect;
    if (sim->dead)
        return;
    if (command->status == OK && command->answer.verdict == VERDICT_PROCEED) {
        effect->intent = command->answer.intent;
        if (command->ledger.op == OP_CLAIM) {
            effect->fences_given |= UINT64_C(1) << (command->answer.fence & 63);
            request->life = sim->life;
            sim_at(sim, sim_below(sim, WHEN_MS), attend, request);
        } else {
            act_wake(sim->act);
        }
    }
    if (!sim_chance(sim, sim->mix.reply_lost))
        sim_at(sim, sim_below(sim, 10 * WHEN_MS), client_hears, request);
}

static void prepare(struct sim *sim, struct request *request, struct bytes workflow)
{
    const struct effect *effect = request->effect;
    const struct destination *destination = destination_of(effect);
    struct effect_request plain = {
        .method = BYTES("POST"), .path = arena_printf(&sim->arena, "/do/%d", effect->number), .body = BYTES("{\"a\":1}")};
    char downstream[DOWNSTREAM_KEY_SIZE + 1];
    struct why why;
    downstream_key(BYTES("main"), workflow, bytes_of(effect->key), downstream);
    enum status status = destination_prepare(destination, destination_call(destination, plain.method, plain.path), downstream,
                                             &plain, &sim->arena, &request->prepared, &why);
    ASSERT(status == OK);
    status = request_record(&request->prepared, &sim->arena, &request->order.record, &why);
    ASSERT(status == OK);
    request->order.row = (struct row_outbox){
        .space = BYTES("main"),
        .destination = destination->name,
        .step = STEP_DELIVER,
        .attended = effect->attended,
        .priority = PRIORITY_NORMAL,
        .deadline = effect->attended ? 0 : effect->deadline_us,
        .line = effect->in_line ? BYTES("line") : BYTES_NONE,
        .owner = destination->owner.len > 0 ? destination->owner : BYTES_NONE,
    };
}

static void client_asks(struct sim *sim, void *arg)
{
    struct effect *effect = arg;
    struct request *request = arena_zalloc(&sim->arena, 1, sizeof *request);
    const struct destination *destination = destination_of(effect);
    const struct call_rules *rules = destination_call(destination, BYTES("POST"), BYTES("/do/1"));
    request->effect = effect;
    prepare(sim, request, BYTES("e"));
    request->command = (struct engine_command){
        .ledger = {.op = effect->attended ? OP_CLAIM : OP_SUBMIT,
                   .space = BYTES("main"),
                   .actor = BYTES("sim"),
                   .workflow = BYTES("e"),
                   .key = bytes_of(effect->key),
                   .lease_us = act_lease_us(destination),
                   .keep_us = effect->keep_us,
                   .tombstone_us = 400 * WHEN_DAY,
                   .window_us = rules->window_us,
                   .attempts_max = INT32_MAX,
                   .capability = rules->capability,
                   .on_unknown = destination->on_unknown,
                   .fingerprint = contents_of(sim_chance(sim, sim->mix.other_contents) ? 1 : 0),
                   .evidence = outbox_evidence(&request->order, &sim->arena)},
        .also = effect->attended ? also_claimed : also_submitted,
        .wait_us = effect->attended && sim_chance(sim, sim->mix.wait) ? sim_below(sim, 400 * WHEN_MS) : 0,
        .user = request,
    };
    sim_post(sim, &request->command, processed);
    sim_at(sim, ANSWER_MAX_US + sim_below(sim, ANSWER_MAX_US), asks_again, request);
}

/* ---- the beginning ---- */

/* Few destinations in a history, so that effects meet at them. */
void effects_draw(struct sim *sim)
{
    static const int64_t keeps[] = {2 * WHEN_SECOND, WHEN_HOUR};
    enum place_kind kinds[2] = {(enum place_kind)sim_below(sim, PLACE_KINDS), (enum place_kind)sim_below(sim, PLACE_KINDS)};
    bool lines = sim_below(sim, 2) == 0;
    sim->effect_count = 1 + (int)sim_below(sim, EFFECTS_MAX);
    for (int i = 0; i < sim->effect_count; i++) {
        struct effect *effect = &sim->effects[i];
        effect->number = i;
        effect->contents = -1;
        effect->kind = kinds[sim_below(sim, 2)];
        effect->attended = sim_below(sim, 4) == 0;
        effect->in_line = lines && !effect->attended && sim_below(sim, 3) > 0;
        effect->keep_us = keeps[sim_below(sim, 2)];
        effect->deadline_us = sim_below(sim, 3) == 0 ? 3 * WHEN_SECOND : WHEN_HOUR;
        snprintf(effect->workflow, sizeof effect->workflow, "e");
        snprintf(effect->key, sizeof effect->key, "effect-%d", i);
        for (int64_t n = 1 + sim_below(sim, 3); n > 0; n--)
            sim_at(sim, sim_below(sim, 6 * WHEN_SECOND), client_asks, effect);
    }
    if (sim_below(sim, 4) == 0) {
        int64_t from_us = sim_below(sim, 6 * WHEN_SECOND);
        sim_at(sim, from_us, takes_out, sim);
        sim_at(sim, from_us + sim_below(sim, 8 * WHEN_SECOND), takes_out, NULL);
    }
    sim_at(sim, WHEN_SECOND, person_looks, NULL);
}
