/* world: one process's life on the simulated disk, and what its clients were told. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "crash.h"

#define TRIES_MAX 12
#define INTAKE_US (1100 * WHEN_MS) /* after a failure the engine looks so often whether the storage works again */

/* ---- what the process sees ---- */

static int64_t world_wall(struct env *env)
{
    return ((struct world *)env)->wall_us;
}

static int64_t world_boot(struct env *env)
{
    return ((struct world *)env)->boot_us;
}

static void world_random(struct env *env, void *ret_bytes, size_t size)
{
    struct world *world = (struct world *)env;
    for (size_t i = 0; i < size; i++) {
        world->random = world->random * 6364136223846793005u + 1442695040888963407u;
        ((uint8_t *)ret_bytes)[i] = (uint8_t)(world->random >> 56);
    }
}

static void advance(struct world *world, int64_t us)
{
    world->wall_us += us;
    world->boot_us += us;
}

static enum status open_store(void *user, int lane, struct store **ret_store, int *ret_lane, struct why *why)
{
    (void)lane;
    *ret_lane = 0;
    return disk_open(((struct world *)user)->scenario->checkpoint_pages, ret_store, why);
}

/* The real process ends here; this one does nothing any more that has an effect. */
static void on_failed_fsync(void)
{
    faults.dead = true;
}

/* ---- complaints ---- */

void world_violated(struct world *world, const char *format, ...)
{
    if (world->violation[0] != '\0')
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(world->violation, sizeof world->violation, format, args);
    va_end(args);
}

static bool fault_fired(void)
{
    return faults.fired || memory.fired;
}

static void heal(void)
{
    faults_heal();
    memory_heal();
}

/* ---- assertions: only where the code says that there is no going on without this memory ---- */

static bool is_allowed_assertion(const char *text)
{
    return strncmp(text, "engine != NULL ", 15) == 0;
}

static void asserted(struct world *world)
{
    if (!memory.fired || !is_allowed_assertion(assertion_text))
        world_violated(world, "an assertion failed: %s", assertion_text);
    world->aborted = true;
    world->engine = NULL; /* what it had is lost with the process */
    faults.dead = true;
}

static enum status guarded_open(struct world *world, struct why *why)
{
    struct engine_config config = {.env = &world->env, .open = open_store, .open_user = world};
    jmp_buf jump;
    assertion_jump = &jump;
    if (setjmp(jump) != 0) {
        assertion_jump = NULL;
        asserted(world);
        return BROKEN;
    }
    enum status status = engine_open(&config, &world->engine, why);
    assertion_jump = NULL;
    return status;
}

static void guarded_step(struct world *world, struct engine_command *commands)
{
    jmp_buf jump;
    assertion_jump = &jump;
    if (setjmp(jump) == 0)
        engine_step(world->engine, commands);
    else
        asserted(world);
    assertion_jump = NULL;
}

static void guarded_close(struct world *world)
{
    jmp_buf jump;
    assertion_jump = &jump;
    if (setjmp(jump) == 0)
        engine_close(world->engine);
    else
        asserted(world);
    assertion_jump = NULL;
    world->engine = NULL;
}

/* ---- dying and coming back ---- */

static enum disk_loss loss_of(const struct world *world)
{
    const struct plan *plan = &world->plan;
    switch (plan->model) {
    case MODEL_ALL:
        return LOSE_NOTHING;
    case MODEL_NONE:
        return LOSE_UNSYNCED;
    case MODEL_MIX:
        return LOSE_SOME;
    case MODEL_TORN:
        return LOSE_SECTORS;
    case MODEL_RECOVERY:
        return plan->seed == 0 ? LOSE_PROCESS : plan->seed == 1 ? LOSE_SECTORS : world->crashes <= 1 ? LOSE_SOME : LOSE_UNSYNCED;
    case MODEL_FSYNC:
        return plan->seed == 0 ? LOSE_UNSYNCED : LOSE_PROCESS;
    case MODEL_PROCESS:
    case MODEL_FULL_DISK:
    case MODEL_WRITE_ERROR:
    case MODEL_READ_ERROR:
    case MODEL_SHORT_READ:
    case MODEL_MEMORY_SQLITE:
    case MODEL_MEMORY_OWN:
    case MODEL_COUNT:
        break;
    }
    return LOSE_PROCESS;
}

static void lose(struct world *world, enum disk_loss loss)
{
    world->crashes++;
    faults_crash(loss);
    if (loss != LOSE_PROCESS)
        world->boot_us = 3 * WHEN_SECOND;
    faults.changes = 0;
    faults.die_at = world->plan.model == MODEL_RECOVERY && world->crashes == 1 ? world->plan.again : 0;
}

/* Opens the data; when that is cut off or fails for a reason we made, once more. */
static void open_again(struct world *world)
{
    for (int try = 0; try < TRIES_MAX; try++) {
        struct why why = {""};
        if (guarded_open(world, &why) == OK && !faults.dead) {
            if (world->crashes > 0)
                faults.die_at = 0;
            return;
        }
        if (world->engine != NULL)
            guarded_close(world);
        if (faults.dead) {
            world->wrong_again = world->crashes > 0;
            lose(world, loss_of(world));
        } else if (!fault_fired()) {
            world_violated(world, "it does not start: %s", why.text);
            return;
        }
        heal();
    }
    world_violated(world, "it never starts again");
}

static void come_back(struct world *world, enum disk_loss loss)
{
    faults.dead = true; /* closing frees the memory, and no more */
    if (world->engine != NULL)
        guarded_close(world);
    lose(world, loss);
    open_again(world);
    if (world->engine != NULL)
        judge(world);
}

/* The machine goes down between two commands. */
static void lose_power_quietly(struct world *world)
{
    bool calm = world_calm(true);
    come_back(world, LOSE_UNSYNCED);
    world_calm(calm);
}

static bool is_over(const struct world *world)
{
    return world->violation[0] != '\0' || world->engine == NULL;
}

/* After every step: true when the process died in it (and is back). */
static bool died(struct world *world)
{
    if (!faults.dead)
        return false;
    come_back(world, loss_of(world));
    heal();
    if (world->plan.model == MODEL_FSYNC && world->plan.seed == 1 && !is_over(world))
        lose_power_quietly(world);
    return true;
}

void world_kill(struct world *world, enum disk_loss loss)
{
    faults.dead = true;
    guarded_close(world);
    faults_crash(loss);
}

/* ---- keys ---- */

struct key *world_key(struct world *world, const char *text)
{
    for (int i = 0; i < world->key_count; i++)
        if (strcmp(world->keys[i].text, text) == 0)
            return &world->keys[i];
    ASSERT(world->key_count < KEYS_MAX);
    struct key *key = &world->keys[world->key_count++];
    *key = (struct key){.told = {0, STATE_PENDING}};
    snprintf(key->text, sizeof key->text, "%s", text);
    return key;
}

static void may_become(struct key *key, struct point point)
{
    for (int i = 0; i < key->maybe_count; i++)
        if (key->maybe[i].fence == point.fence && key->maybe[i].state == point.state)
            return;
    ASSERT(key->maybe_count < (int)(sizeof key->maybe / sizeof *key->maybe));
    key->maybe[key->maybe_count++] = point;
}

static void is_told(struct key *key, const struct call *call)
{
    const struct ledger_answer *answer = &call->command.answer;
    key->known = true;
    key->intent = answer->intent != 0 ? answer->intent : key->intent;
    if (answer->verdict != VERDICT_EXPIRED)
        key->told = (struct point){answer->fence, answer->state};
    key->maybe_count = 0;
    if (call->op == OP_CONFIRM && answer->verdict == VERDICT_DONE)
        key->result = call->result;
}

/* ---- answers ---- */

/* Its first try was done, and only the answer was lost. */
static bool is_own_claim(const struct call *call, const struct key *key)
{
    const struct ledger_answer *answer = &call->command.answer;
    return call->tried && call->op == OP_CLAIM && call->want == VERDICT_PROCEED && answer->verdict == VERDICT_IN_PROGRESS &&
           answer->fence == key->told.fence + 1;
}

/* A crash sets the ledger's clock back to the last decision: what was nearly over begins again, which is always safe. */
static bool is_too_early(const struct world *world, const struct call *call, const struct key *key)
{
    const struct ledger_answer *answer = &call->command.answer;
    bool same = answer->fence == key->told.fence && answer->state == key->told.state;
    return world->crashes > 0 && call->op == OP_CLAIM && same &&
           (answer->verdict == VERDICT_IN_PROGRESS || (answer->verdict == VERDICT_REPLAY && call->want == VERDICT_EXPIRED));
}

static void check_answer(struct world *world, const struct call *call, const struct key *key)
{
    const struct ledger_answer *answer = &call->command.answer;
    if (answer->verdict != call->want && !is_own_claim(call, key))
        world_violated(world, "%s %s was answered with %s instead of %s", ledger_op_names[call->op], key->text,
                       ledger_verdict_names[answer->verdict], ledger_verdict_names[call->want]);
    if (answer->verdict == VERDICT_PROCEED && answer->fence != key->told.fence + 1)
        world_violated(world, "%s was given out with fence %lld after %lld", key->text, (long long)answer->fence,
                       (long long)key->told.fence);
    if (key->known && key->intent != 0 && answer->intent != 0 && answer->intent != key->intent)
        world_violated(world, "%s has become another intent", key->text);
    if (answer->verdict == VERDICT_REPLAY && key->result.at != NULL && !bytes_eq(answer->result, key->result))
        world_violated(world, "%s is replayed with another result", key->text);
}

static void write_answered(struct world *world, struct call *call)
{
    if (call->command.status != OK && !(call->tried && call->command.status == CONFLICT))
        return;
    call->answered = true;
    world->policy_told = world->policy_maybe;
}

static void on_done(struct engine_command *command)
{
    struct call *call = command->user;
    struct world *world = call->world;
    call->waits = false;
    if (faults.dead) /* a dead process says nothing */
        return;
    if (call->is_write) {
        write_answered(world, call);
        return;
    }
    if (command->status != OK)
        return;
    struct key *key = world_key(world, call->key);
    if (call->want != VERDICT_IN_PROGRESS && is_too_early(world, call, key))
        return;
    check_answer(world, call, key);
    is_told(key, call);
    call->answered = true;
}

/* ---- commands ---- */

/* What the policy and token routes do: a row of their own and an audit row, in the batch's transaction. */
static enum status write_policy(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct world *world = ((struct call *)command->user)->world;
    struct row_policy row = {
        .version = world->policy_maybe,
        .hash = BYTES("0123456789abcdef0123456789abcdef"),
        .text = BYTES("version: 1\n"),
        .applied = ledger->now.wall_us,
        .actor = BYTES("test"),
    };
    TRY(store_run(store, &POLICY_ADD, &row, 1, NULL, NULL, NULL, why));
    struct row_decision *decision = audit_add(ledger->audit);
    if (decision == NULL)
        return why_set(why, FULL, "no memory for the audit");
    decision->space = BYTES("main");
    decision->kind = BYTES("policy");
    decision->state = -1;
    decision->actor = BYTES("test");
    return OK;
}

static void fill_command(struct world *world, struct call *call)
{
    const struct key *key = call->is_write ? NULL : world_key(world, call->key);
    call->world = world;
    call->command = (struct engine_command){.arena = &world->answers, .done = on_done, .user = call, .wait_us = call->wait_us};
    if (call->is_write) {
        call->command.write = write_policy;
        return;
    }
    struct ledger_command *ledger = &call->command.ledger;
    *ledger = (struct ledger_command){
        .op = call->op,
        .space = BYTES("main"),
        .actor = BYTES("test"),
        .workflow = BYTES("w"),
        .key = bytes_of(key->text),
        .lease_us = LEASE_US,
        .keep_us = KEEP_US,
        .tombstone_us = 400 * WHEN_DAY,
        .window_us = WHEN_DAY,
        .attempts_max = 10,
        .two_phase = call->two_phase,
        .intent = key->intent,
        .fence = key->told.fence,
        .result = call->result,
        .error = call->op == OP_FAIL ? BYTES("the destination said no") : BYTES_NONE,
        .effect_unknown = call->unknown,
        .final = call->final,
    };
    ledger->fingerprint.whole.at[0] = call->other_contents ? 2 : 1;
    ledger_key_hash(engine_pepper(world->engine), ledger->space, ledger->workflow, ledger->key, ledger->h);
}

/* Puts what is not yet answered on its way. */
static struct engine_command *submit(struct world *world, struct call *calls, size_t count)
{
    struct engine_command *first = NULL, **last = &first;
    arena_release(&world->answers); /* each request brings its own memory */
    for (size_t i = 0; i < count; i++)
        if (!calls[i].is_write)
            world_key(world, calls[i].key)->maybe_before = world_key(world, calls[i].key)->maybe_count;
    for (size_t i = 0; i < count; i++) {
        struct call *call = &calls[i];
        if (call->answered || call->waits)
            continue;
        fill_command(world, call);
        call->waits = true;
        *last = &call->command;
        last = &call->command.next;
        if (call->is_write) {
            world->policy_maybe = world->policy_told + 1;
            continue;
        }
        struct key *key = world_key(world, call->key);
        if (call->want == VERDICT_PROCEED || call->want == VERDICT_DONE)
            may_become(key, (struct point){key->told.fence + (call->op == OP_CLAIM), call->then});
    }
    return first;
}

/* A batch that failed has changed nothing, unless it says that it does not know. */
static void check_failed(struct world *world, struct call *calls, size_t count)
{
    bool calm = world_calm(true);
    for (size_t i = 0; i < count; i++) {
        struct call *call = &calls[i];
        bool early = call->command.status == OK;
        if (call->answered || call->waits || early || call->command.status == UNKNOWN)
            continue;
        if (!fault_fired())
            world_violated(world, "a command failed for no reason: %s", call->command.why.text);
        if (call->is_write)
            world->policy_maybe = world->policy_told;
        else
            world_key(world, call->key)->maybe_count = world_key(world, call->key)->maybe_before;
    }
    struct why why = {""};
    struct store *store = engine_store(world->engine);
    if (store_begin(store, &why) != OK) /* the next transaction sees nothing of it */
        world_violated(world, "no transaction can begin any more: %s", why.text);
    for (size_t i = 0; i < count; i++)
        if (!calls[i].is_write && !is_over(world))
            judge_key(world, world_key(world, calls[i].key));
    store_rollback(store);
    world_calm(calm);
}

static bool all_answered(const struct call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!calls[i].answered)
            return false;
    return true;
}

/* What is answered after a recovery holds, even when it was only read. */
static void after_step(struct world *world)
{
    bool lives_on = world->plan.model == MODEL_FSYNC || world->plan.model == MODEL_PROCESS;
    if (lives_on && world->plan.seed == 2 && world->crashes == 1)
        lose_power_quietly(world);
}

/* The storage failed and said so. Some clients find the process gone when they come back. */
static void after_failure(struct world *world, struct call *calls, size_t count)
{
    check_failed(world, calls, count);
    bool disk_failed = world->plan.model == MODEL_FULL_DISK || world->plan.model == MODEL_WRITE_ERROR;
    if (disk_failed && world->plan.seed == 2 && world->crashes == 0 && !is_over(world))
        come_back(world, LOSE_NOTHING);
    heal();
}

/* One try; true when the process lived through it. */
static bool say_once(struct world *world, struct call *calls, size_t count)
{
    guarded_step(world, submit(world, calls, count));
    int crashes = world->crashes;
    bool dead = died(world);
    if (!dead && !is_over(world) && !all_answered(calls, count))
        after_failure(world, calls, count);
    for (size_t i = 0; i < count; i++) {
        calls[i].tried = true;
        calls[i].waits = calls[i].waits && world->crashes == crashes;
    }
    return !dead;
}

void world_say(struct world *world, struct call *calls, size_t count)
{
    for (int try = 0; try < TRIES_MAX && !is_over(world); try++) {
        bool lived = say_once(world, calls, count);
        if (!is_over(world) && all_answered(calls, count)) {
            after_step(world);
            return;
        }
        if (lived) /* until the intake is open again, or what began anew is over */
            advance(world, world->crashes > 0 && !fault_fired() ? LEASE_US + WHEN_SECOND : INTAKE_US);
    }
    if (!is_over(world))
        world_violated(world, "a command is never answered: %s", calls[0].command.why.text);
    faults.dead = true;
    if (world->engine != NULL) /* it may still have a command of ours */
        guarded_close(world);
}

/* ---- time ---- */

static bool has_come_to(struct world *world, const struct key *key, enum intent_state then)
{
    bool calm = world_calm(true);
    struct intent intent = {0};
    bool exists = judge_load(world, key, &intent);
    world_calm(calm);
    return exists ? intent.row.state == (int64_t)then : then == STATE_COUNT;
}

/* STATE_COUNT: it is forgotten. */
void world_pass(struct world *world, int64_t us, const char *key_text, enum intent_state then)
{
    struct key *key = key_text != NULL && !is_over(world) ? world_key(world, key_text) : NULL;
    if (key != NULL && then != STATE_COUNT)
        may_become(key, (struct point){key->told.fence, then});
    else if (key != NULL)
        key->may_be_forgotten = true;
    for (int try = 0; try < TRIES_MAX && !is_over(world); try++) {
        advance(world, us);
        guarded_step(world, NULL);
        bool dead = died(world);
        heal();
        if (is_over(world) || (!dead && (key == NULL || has_come_to(world, key, then))))
            return;
    }
    if (!is_over(world))
        world_violated(world, "time passes, and %s does not become %s", key_text != NULL ? key_text : "it",
                       then == STATE_COUNT ? "forgotten" : intent_state_names[then]);
}

static void stop(struct world *world)
{
    guarded_close(world);
    if (faults.dead)
        lose(world, loss_of(world));
    heal();
}

void world_stop_and_start(struct world *world)
{
    if (is_over(world))
        return;
    stop(world);
    open_again(world);
    if (!is_over(world))
        judge(world);
}

/* ---- a run ---- */

static void arm(const struct plan *plan)
{
    static const enum fault of_model[MODEL_COUNT] = {
        [MODEL_FSYNC] = FAULT_SYNCS_FAIL,      [MODEL_FULL_DISK] = FAULT_WRITES_FULL,  [MODEL_WRITE_ERROR] = FAULT_CHANGES_FAIL,
        [MODEL_READ_ERROR] = FAULT_READS_FAIL, [MODEL_SHORT_READ] = FAULT_READS_SHORT,
    };
    bool dies = plan->model <= MODEL_RECOVERY;
    faults.changes = faults.seen = 0;
    faults.die_at = dies ? plan->at : 0;
    faults.die_halfway = plan->model == MODEL_PROCESS && plan->seed == 1;
    faults.fault = of_model[plan->model];
    faults.at = plan->at;
    faults.fired = false;
    faults.stays = faults.fault != FAULT_SYNCS_FAIL && plan->seed == 1;
    memory.user = plan->model == MODEL_MEMORY_SQLITE ? MEMORY_SQLITE
                  : plan->model == MODEL_MEMORY_OWN  ? MEMORY_OWN
                                                     : MEMORY_NOBODY;
    memory.seen = 0;
    memory.fail_at = plan->at;
    memory.fired = false;
    memory.stays = plan->seed == 1;
}

static void begin(struct world *world, const struct scenario *scenario, const struct plan *plan)
{
    *world = (struct world){
        .env = {world_wall, world_boot, world_random},
        .wall_us = INT64_C(1794787200000000),
        .boot_us = 5 * WHEN_SECOND,
        .random = 42,
        .scenario = scenario,
        .plan = *plan,
    };
    arena_init(&world->answers, 64 << 20);
    arena_init(&world->notes, 64 << 20);
    store_fsync_failed = on_failed_fsync;
    faults.dead = false;
    faults.random = 7919 * (plan->seed + 1) + plan->at;
    faults.die_at = 0;
    faults.fault = FAULT_NONE;
    faults.fired = memory.fired = false;
    if (scenario->from_nothing)
        disk_empty();
    else
        disk_load_template();
}

static void prepare(struct world *world)
{
    if (world->scenario->prepare == NULL)
        return;
    open_again(world);
    world->scenario->prepare(world);
    world->crashes = 0;
}

/* Whatever was answered has to survive the worst end, and then a good one. */
static void finish(struct world *world)
{
    world_calm(true);
    if (world->violation[0] == '\0')
        come_back(world, LOSE_UNSYNCED);
    if (world->engine != NULL)
        guarded_close(world);
    arena_release(&world->answers);
    arena_release(&world->notes);
}

bool world_run(struct world *world, const struct scenario *scenario, const struct plan *plan)
{
    world_calm(true);
    int64_t own = memory.live_own, sqlite = memory.live_sqlite;
    begin(world, scenario, plan);
    prepare(world);
    arm(plan);
    world_calm(false);
    open_again(world);
    if (!is_over(world))
        scenario->run(world);
    if (!is_over(world)) /* a stop in good order is part of every scenario */
        stop(world);
    world->went_wrong = world->crashes > 0 || fault_fired();
    finish(world);
    if (world->violation[0] == '\0' && !world->aborted && (memory.live_own != own || memory.live_sqlite != sqlite))
        world_violated(world, "a leak: %lld blocks of semel's, %lld of SQLite's", (long long)(memory.live_own - own),
                       (long long)(memory.live_sqlite - sqlite));
    return world->violation[0] == '\0';
}

void world_make_template(void)
{
    static struct world world;
    static const struct scenario nothing = {.name = "template", .from_nothing = true};
    world_calm(true);
    begin(&world, &nothing, &(struct plan){.model = MODEL_PROCESS});
    open_again(&world);
    if (world.engine == NULL) {
        fprintf(stderr, "crash: no template: %s\n", world.violation);
        exit(70);
    }
    guarded_close(&world);
    disk_keep_as_template();
    finish(&world);
}
