#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mutant.h"
#include "disk.h"
#include "sim.h"

#define RESTART_MAX_US (300 * WHEN_MS)
#define OUTAGE_US (3 * WHEN_SECOND)
#define STEP_DELAY_US (1 * WHEN_MS)

uint64_t marks[MARK_COUNT];

/* ---- randomness ---- */

uint64_t sim_random(struct sim *sim)
{
    uint64_t z = (sim->random += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

int64_t sim_below(struct sim *sim, int64_t limit)
{
    return limit <= 0 ? 0 : (int64_t)(sim_random(sim) % (uint64_t)limit);
}

bool sim_chance(struct sim *sim, int in_a_thousand)
{
    bool hit = sim_below(sim, 1000) < in_a_thousand;
    return hit && !sim->quiet;
}

/* ---- saying ---- */

void sim_say(struct sim *sim, const char *format, ...)
{
    if (!sim->trace)
        return;
    va_list args;
    printf("%9.3f ms  ", (double)sim->now_us / 1000);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

void sim_violated(struct sim *sim, const char *invariant, const char *format, ...)
{
    if (sim->violation[0] != '\0')
        return;
    char what[400];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(sim->violation, sizeof sim->violation, "%s at %.3f ms: %s", invariant, (double)sim->now_us / 1000, what);
    sim_say(sim, "VIOLATION %s", sim->violation);
}

/* ---- the queue of events: a heap by (time, order of entry) ---- */

static bool before(const struct event *a, const struct event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->seq < b->seq;
}

static void swap(struct event *a, struct event *b)
{
    struct event kept = *a;
    *a = *b;
    *b = kept;
}

void sim_at(struct sim *sim, int64_t after_us, void (*run)(struct sim *, void *), void *arg)
{
    ASSERT(sim->event_count < EVENTS_MAX);
    size_t at = sim->event_count++;
    sim->events[at] = (struct event){sim->now_us + after_us, ++sim->event_seq, run, arg};
    while (at > 0 && before(&sim->events[at], &sim->events[(at - 1) / 2])) {
        swap(&sim->events[at], &sim->events[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static struct event next_event(struct sim *sim)
{
    struct event first = sim->events[0];
    sim->events[0] = sim->events[--sim->event_count];
    for (size_t at = 0;;) {
        size_t child = 2 * at + 1;
        if (child >= sim->event_count)
            return first;
        if (child + 1 < sim->event_count && before(&sim->events[child + 1], &sim->events[child]))
            child++;
        if (!before(&sim->events[child], &sim->events[at]))
            return first;
        swap(&sim->events[child], &sim->events[at]);
        at = child;
    }
}

/* ---- the world that the daemon sees ---- */

static int64_t world_wall(struct env *env)
{
    struct sim *sim = (struct sim *)env;
    return INT64_C(1794787200000000) + sim->now_us + sim->idle_us + sim->wall_skew_us;
}

static int64_t world_boot(struct env *env)
{
    struct sim *sim = (struct sim *)env;
    return WHEN_SECOND + sim->now_us + sim->idle_us - sim->boot_origin_us;
}

static void world_random(struct env *env, void *ret_bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)ret_bytes)[i] = (uint8_t)sim_random((struct sim *)env);
}

/* ---- the daemon's life ---- */

static void restart(struct sim *sim, void *none);

bool sim_dies_here(struct sim *sim)
{
    if (sim->dead)
        return true;
    if (sim->store_countdown == 0 || --sim->store_countdown > 0)
        return false;
    sim->dead = true;
    return true;
}

static void fsync_failed(void);
static struct sim *current;

/* The process sees that fsync failed and ends itself. */
static void fsync_failed(void)
{
    current->dead = true;
}

static enum status open_store(void *user, int lane, struct store **ret_store, int *ret_lane, struct why *why)
{
    struct sim *sim = user;
    (void)lane;
    *ret_lane = 0;
    return sim->tier == TIER_MEMORY ? memory_open(sim->memory, ret_store, why) : disk_open(sim->checkpoint_pages, ret_store, why);
}

/* What the dead process had in its memory is gone; nobody gets an answer any more. */
void sim_crash(struct sim *sim, const char *how)
{
    mark(MARK_CRASH);
    sim_say(sim, "the daemon dies: %s", how);
    sim->dead = true;
    sim->step_plan++;
    sim->inbox = NULL;
    sim->step_planned = false;
    flow_stop(sim->flow);
    engine_close(sim->engine);
    sim->engine = NULL;
    inbox_crash(sim);
    effects_crash(sim);
    bool machine = sim_chance(sim, sim->mix.machine_reboots);
    if (machine && sim->tier == TIER_SQLITE)
        sim_disk_lose_power();
    if (machine)
        sim->boot_origin_us = sim->now_us + sim->idle_us;
    int64_t down = sim_below(sim, RESTART_MAX_US);
    if (sim_chance(sim, sim->mix.outage)) {
        mark(MARK_OUTAGE);
        down += OUTAGE_US;
    }
    sim_at(sim, down, restart, NULL);
}

static void plan_step(struct sim *sim, int64_t after_us);

static void restart(struct sim *sim, void *none)
{
    (void)none;
    struct engine_config config = {.env = &sim->env, .open = open_store, .open_user = sim, .forget = outbox_forget};
    struct why why = {""};
    sim->dead = sim->fsync_failed = false;
    bool doomed = sim_chance(sim, sim->mix.crash_at_boot);
    sim->store_countdown = doomed ? 1 + (int)sim_below(sim, 40) : 0;
    enum status status = engine_open(&config, &sim->engine, &why);
    if (status != OK) {
        sim->engine = NULL;
        bool died = sim->dead;
        sim_say(sim, "the start %s: %s", died ? "was cut off" : "failed", why.text);
        if (died)
            mark(MARK_CRASH_AT_BOOT);
        else if (status != FULL && !sim->fsync_failed) /* refusing with the reason is right when the disk itself says no */
            sim_violated(sim, "INV-9", "the daemon does not start: %s", why.text);
        sim->dead = true;
        sim_at(sim, sim_below(sim, RESTART_MAX_US), restart, NULL);
        return;
    }
    sim->store_countdown = 0;
    sim_say(sim, "the daemon is up");
    judge_boot(sim);
    effects_boot(sim);
    inbox_boot(sim);
    plan_step(sim, 0);
}

static void step(struct sim *sim, void *plan)
{
    if ((uint64_t)(uintptr_t)plan != sim->step_plan || sim->engine == NULL)
        return;
    sim->step_planned = false;
    if (sim_chance(sim, sim->mix.crash_per_step)) {
        sim_crash(sim, "between two steps");
        return;
    }
    if (sim_chance(sim, sim->mix.crash_in_store))
        sim->store_countdown = 1 + (int)sim_below(sim, 30);
    struct engine_command *commands = sim->inbox;
    sim->inbox = NULL;
    sim->steps++;
    int64_t wake = engine_step(sim->engine, commands);
    sim->store_countdown = 0;
    if (sim->dead) {
        sim_crash(sim, "inside a storage operation");
        return;
    }
    if (sim->has_inbox) {
        effects_hand_over(sim); /* the flow's next pass */
        judge_inbox(sim);
    }
    int64_t after = wake - world_boot(&sim->env);
    plan_step(sim, after > STEP_DELAY_US ? after : STEP_DELAY_US);
}

/* There is one next step; a newer plan replaces the older. */
static void plan_step(struct sim *sim, int64_t after_us)
{
    sim_at(sim, after_us, step, (void *)(uintptr_t)++sim->step_plan);
}

/* ---- between clients and the daemon ---- */

static void replied(struct sim *sim, void *arg)
{
    holder_answered(sim, arg);
}

static void answered(struct engine_command *command)
{
    struct sim *sim = current;
    if (sim->dead) /* a dead process sends nothing */
        return;
    judge_processed(sim, command);
    if (sim_chance(sim, sim->mix.reply_lost)) {
        sim_say(sim, "a reply is lost");
        return;
    }
    struct engine_command *copy = arena_alloc(&sim->arena, sizeof *copy);
    *copy = *command;
    copy->answer.result = arena_dup(&sim->arena, command->answer.result);
    sim_at(sim, sim_below(sim, 10 * WHEN_MS), replied, copy);
}

struct sim *sim_current(void)
{
    return current;
}

void sim_arrive(struct sim *sim, struct engine_command *command)
{
    command->next = sim->inbox;
    sim->inbox = command;
    sim->commands++;
    if (!sim->step_planned) {
        sim->step_planned = true;
        plan_step(sim, STEP_DELAY_US);
    }
}

static void arrived(struct sim *sim, void *arg)
{
    if (sim->engine != NULL) /* otherwise: connection refused */
        sim_arrive(sim, arg);
}

void sim_post(struct sim *sim, struct engine_command *command, void (*done)(struct engine_command *))
{
    command->done = done;
    command->arena = &sim->arena;
    if (sim->engine != NULL && (command->ledger.op == OP_CLAIM || command->ledger.op == OP_SUBMIT))
        ledger_key_hash(engine_pepper(sim->engine), command->ledger.space, command->ledger.workflow, command->ledger.key,
                        command->ledger.h);
    if (sim_chance(sim, sim->mix.request_lost) || sim->engine == NULL)
        return;
    sim_at(sim, sim_below(sim, 10 * WHEN_MS), arrived, command);
}

void sim_send(struct sim *sim, struct engine_command *command)
{
    sim_post(sim, command, answered);
}

/* ---- clocks ---- */

static void jump(struct sim *sim, void *none)
{
    (void)none;
    static const int64_t sizes[] = {WHEN_HOUR, 30 * WHEN_DAY, 3650 * WHEN_DAY};
    if (sim->quiet)
        return;
    int64_t size = sizes[sim_below(sim, 3)];
    /* Set back while the daemon is down, the wall clock leaves no clock that knows how long the destination has remembered a key:
     * the documented limit of the retry horizon. So it goes back only in histories in which nothing dies. */
    bool dies = sim->mix.crash_per_step + sim->mix.crash_in_store + sim->mix.fsync_fails > 0;
    bool ahead = dies || sim_below(sim, 2);
    sim->wall_skew_us += ahead ? size : -size;
    sim->went_back |= !ahead;
    mark(MARK_CLOCK_JUMP);
    sim_say(sim, "the wall clock jumps");
    sim_at(sim, 1 + sim_below(sim, 2 * WHEN_SECOND), jump, NULL);
}

static void faults_end(struct sim *sim, void *none)
{
    (void)none;
    sim->quiet = true;
    sim_say(sim, "no more faults");
}

/* ---- a history ---- */

/* Each fault is on in some histories and off in others: a mix of everything would hide what two of them do together. */
static int maybe(struct sim *sim, int in_a_thousand)
{
    return sim_below(sim, 2) ? in_a_thousand : 0;
}

static void draw_mix(struct sim *sim)
{
    sim->mix = (struct mix){
        .request_lost = maybe(sim, 60),
        .reply_lost = maybe(sim, 80),
        .crash_per_step = maybe(sim, 10),
        .crash_in_store = maybe(sim, 40),
        .crash_at_boot = maybe(sim, 200),
        .holder_dies = maybe(sim, 80),
        .holder_pauses = maybe(sim, 150),
        .provider_lost = maybe(sim, 100),
        .provider_slow = maybe(sim, 300),
        .provider_says_no = maybe(sim, 100),
        .provider_doubles = maybe(sim, 100),
        .other_contents = maybe(sim, 100),
        .wait = maybe(sim, 500),
        .one_phase = maybe(sim, 400),
        .extend = maybe(sim, 200),
        .release = maybe(sim, 60),
        .comes_back = maybe(sim, 500),
        .machine_reboots = maybe(sim, 500),
        .full = maybe(sim, 8),
        .fsync_fails = maybe(sim, 4),
    };
    /* A wall clock that jumps back over a long outage leaves no honest clock for the destination's window: one or the other. */
    if (sim_below(sim, 2))
        sim->mix.outage = maybe(sim, 300);
    else
        sim->mix.jump = maybe(sim, 1000);
    if (!sim->has_effects && !sim->has_inbox)
        return;
    sim->mix.not_sent = maybe(sim, 100);
    sim->mix.cut = maybe(sim, 100);
    sim->mix.fails_after = maybe(sim, 150);
    sim->mix.starved = maybe(sim, 30);
    sim->mix.unsure = maybe(sim, 400);
}

static void draw_holders(struct sim *sim)
{
    sim->key_count = 1 + (int)sim_below(sim, KEYS_MAX);
    for (int i = 0; i < sim->key_count; i++) {
        struct key *key = &sim->keys[i];
        snprintf(key->text, sizeof key->text, "key-%d", i);
        key->kind = (enum provider_kind)sim_below(sim, PROVIDER_KINDS);
        key->contents = -1;
    }
    sim->holder_count = 2 + (int)sim_below(sim, HOLDERS_MAX - 1);
    for (int i = 0; i < sim->holder_count; i++) {
        sim->holders[i].number = i;
        sim_at(sim, sim_below(sim, 50 * WHEN_MS), holder_start, &sim->holders[i]);
    }
    sim_at(sim, QUARANTINE_US, operator_looks, NULL);
    if (sim->mix.jump > 0)
        sim_at(sim, sim_below(sim, WHEN_SECOND), jump, NULL);
}

static void draw_actors(struct sim *sim)
{
    bool lasts = sim->has_effects || sim->has_inbox;
    if (!sim->has_inbox)
        draw_holders(sim);
    sim_at(sim, lasts ? EFFECTS_FAULTS_END_US : FAULTS_END_US, faults_end, NULL);
    if (sim->has_effects)
        effects_draw(sim);
    if (sim->has_inbox)
        inbox_draw(sim);
}

/* By the seed and not by chance: the other histories are what they would be without them. In eighths. */
static int share_of(uint64_t seed)
{
    return (int)((seed * 0x9E3779B97F4A7C15u) >> 61);
}

static void open_world(struct sim *sim, uint64_t seed, enum tier tier, bool trace)
{
    memset(sim, 0, sizeof *sim);
    sim->env = (struct env){world_wall, world_boot, world_random};
    sim->seed = sim->random = seed;
    sim->tier = tier;
    sim->trace = trace;
    sim->has_effects = share_of(seed) < 2;
    sim->has_inbox = share_of(seed) == 2 || share_of(seed) == 3;
    sim->end_us = sim->has_effects || sim->has_inbox ? EFFECTS_END_US : END_US;
    arena_init(&sim->arena, 64 << 20);
    current = sim;
    store_fsync_failed = fsync_failed;
    draw_mix(sim);
    if (tier == TIER_MEMORY)
        sim->memory = memory_new(sim);
    else
        sim_disk_start(sim);
}

static void close_world(struct sim *sim)
{
    sim->dead = true; /* whatever is still answered reaches nobody */
    flow_stop(sim->flow);
    engine_close(sim->engine);
    inbox_crash(sim);
    effects_crash(sim);
    if (sim->tier == TIER_SQLITE)
        disk_empty();
    arena_release(&sim->arena);
}

bool sim_run(struct sim *sim, uint64_t seed, enum tier tier, bool trace)
{
    open_world(sim, seed, tier, trace);
    draw_actors(sim);
    restart(sim, NULL);
    while (sim->event_count > 0 && sim->violation[0] == '\0') {
        struct event event = next_event(sim);
        if (event.at_us > sim->end_us)
            break;
        sim->now_us = event.at_us;
        event.run(sim, event.arg);
    }
    sim->now_us = sim->end_us;
    if (sim->violation[0] == '\0')
        judge_end(sim);
    close_world(sim);
    return sim->violation[0] == '\0';
}
