#include <stdio.h>

#include "sim.h"

#define ASK_TIMEOUT_US (400 * WHEN_MS)
#define CLAIM_TIMEOUT_US (80 * WHEN_MS) /* of one that can be sent again while its lease lasts */
#define CALL_TIMEOUT_US (90 * WHEN_MS)
#define SAY_TRIES_MAX 6
#define CLAIM_TRIES_MAX 2
#define REST_MAX_US (250 * WHEN_MS)

struct asked {
    struct holder *holder;
    uint64_t life, number;
    int64_t asked_us;
    struct engine_command command;
};

static void rest(struct sim *sim, struct holder *holder)
{
    holder->busy = false;
    sim_at(sim, 1 + sim_below(sim, REST_MAX_US), holder_start, holder);
}

/* Everything it knew is gone; it starts again after a while, as a supervisor would do it. */
static void die(struct sim *sim, struct holder *holder)
{
    sim_say(sim, "holder %d dies", holder->number);
    holder->life++;
    holder->asked++;
    holder->comes_back = sim_chance(sim, sim->mix.comes_back);
    rest(sim, holder);
}

static void next_after_timeout(struct sim *sim, struct holder *holder, const struct engine_command *command);

static void timed_out(struct sim *sim, void *arg)
{
    struct asked *asked = arg;
    if (asked->holder->life == asked->life && asked->holder->asked == asked->number)
        next_after_timeout(sim, asked->holder, &asked->command);
}

static void ask(struct sim *sim, struct holder *holder, const struct engine_command *command)
{
    struct asked *asked = arena_zalloc(&sim->arena, 1, sizeof *asked);
    *asked = (struct asked){holder, holder->life, ++holder->asked, sim->now_us, *command};
    asked->command.user = asked;
    sim_send(sim, &asked->command);
    bool again = command->ledger.op == OP_CLAIM && command->ledger.nonce.at != NULL;
    sim_at(sim, (again ? CLAIM_TIMEOUT_US : ASK_TIMEOUT_US) + command->wait_us, timed_out, asked);
}

/* ---- claim ---- */

static struct fingerprint contents_of(int contents)
{
    struct fingerprint fingerprint = {.fields = contents == 0 ? BYTES("{\"a\":\"0000000000000000\"}")
                                                              : BYTES("{\"a\":\"1111111111111111\"}")};
    fingerprint.whole.at[0] = (uint8_t)(contents + 1);
    return fingerprint;
}

static struct engine_command claim_of(struct sim *sim, struct holder *holder)
{
    const struct key *key = holder->key;
    return (struct engine_command){
        .ledger = {.op = OP_CLAIM,
                   .space = BYTES("main"),
                   .actor = BYTES("sim"),
                   .workflow = BYTES("w"),
                   .key = bytes_of(key->text),
                   .lease_us = LEASE_US,
                   .keep_us = KEEP_US,
                   .tombstone_us = 400 * WHEN_DAY,
                   .window_us = WINDOW_US,
                   .attempts_max = ATTEMPTS_MAX,
                   .capability = key->kind == PROVIDER_IDEMPOTENT ? CAPABILITY_IDEMPOTENT : CAPABILITY_NONE,
                   .on_unknown = key->kind == PROVIDER_AT_LEAST_ONCE ? ON_UNKNOWN_RETRY : ON_UNKNOWN_HOLD,
                   .two_phase = holder->two_phase,
                   .nonce = holder->nonce,
                   .fingerprint = contents_of(holder->contents)},
        .wait_us = sim_chance(sim, sim->mix.wait) ? sim_below(sim, 400 * WHEN_MS) : 0,
    };
}

/* What to do next, and as a go of its own: nobody else has its nonce. */
static void choose(struct sim *sim, struct holder *holder)
{
    holder->key = &sim->keys[sim_below(sim, sim->key_count)];
    holder->contents = sim_chance(sim, sim->mix.other_contents) ? 1 : 0;
    holder->two_phase = !sim_chance(sim, sim->mix.one_phase);
    holder->nonce = BYTES_NONE;
    if (holder->two_phase)
        holder->nonce = arena_printf(&sim->arena, "%d.%llu", holder->number, (unsigned long long)holder->asked);
}

void holder_start(struct sim *sim, void *arg)
{
    struct holder *holder = arg;
    if (holder->busy || sim->now_us > END_US)
        return;
    holder->busy = true;
    holder->tries = 0;
    if (!holder->comes_back)
        choose(sim, holder);
    holder->comes_back = false;
    holder->deadline_us = sim->now_us + LEASE_US * 8 / 10; /* counted from before the claim was sent */
    struct engine_command command = claim_of(sim, holder);
    if (command.wait_us > 0)
        holder->deadline_us = 0; /* not known before the answer says when the lease began: see proceed() */
    ask(sim, holder, &command);
}

/* ---- saying ---- */

static struct engine_command say_of(const struct holder *holder, enum ledger_op op)
{
    return (struct engine_command){
        .ledger = {.op = op,
                   .space = BYTES("main"),
                   .actor = BYTES("sim"),
                   .intent = holder->intent,
                   .fence = holder->fence,
                   .result = bytes_of(holder->result),
                   .error = BYTES("no"),
                   .lease_us = LEASE_US},
    };
}

static void say(struct sim *sim, struct holder *holder, enum ledger_op op)
{
    struct engine_command command = say_of(holder, op);
    ask(sim, holder, &command);
}

static void say_fail(struct sim *sim, struct holder *holder, bool unknown)
{
    struct engine_command command = say_of(holder, OP_FAIL);
    command.ledger.effect_unknown = unknown;
    command.ledger.final = !unknown && sim_below(sim, 4) == 0;
    ask(sim, holder, &command);
}

/* ---- acting ---- */

struct patience {
    struct holder *holder;
    uint64_t life, asked;
};

static void called(struct sim *sim, struct holder *holder, enum call_outcome outcome, const char *result)
{
    if (sim_chance(sim, sim->mix.holder_dies)) {
        die(sim, holder);
        return;
    }
    holder->asked++; /* the time-out of the call is over */
    holder->tries = 0;
    if (outcome == CALL_REFUSED) {
        say_fail(sim, holder, false);
        return;
    }
    snprintf(holder->result, sizeof holder->result, "%s", result);
    say(sim, holder, OP_CONFIRM);
}

static void no_answer(struct sim *sim, void *arg)
{
    struct patience *patience = arg;
    struct holder *holder = patience->holder;
    if (holder->life != patience->life || holder->asked != patience->asked)
        return;
    holder->life++; /* an answer that still comes is not heard any more */
    if (sim_below(sim, 2))
        say_fail(sim, holder, true);
    else
        rest(sim, holder); /* it just stops */
}

static void send_now(struct sim *sim, void *arg)
{
    struct patience *patience = arg;
    struct holder *holder = patience->holder;
    if (holder->life != patience->life)
        return;
    struct patience *wait = arena_zalloc(&sim->arena, 1, sizeof *wait);
    *wait = (struct patience){holder, holder->life, ++holder->asked};
    provider_call(sim, holder, called);
    sim_at(sim, CALL_TIMEOUT_US, no_answer, wait);
}

/* The last check, right before the first byte leaves; a pause may still come behind it. */
static void act(struct sim *sim, struct holder *holder)
{
    if (sim_chance(sim, sim->mix.holder_dies)) {
        die(sim, holder);
        return;
    }
    if (sim->now_us > holder->deadline_us) {
        sim_say(sim, "holder %d is too late for %s and does not act", holder->number, holder->key->text);
        rest(sim, holder);
        return;
    }
    struct patience *patience = arena_zalloc(&sim->arena, 1, sizeof *patience);
    *patience = (struct patience){holder, holder->life, 0};
    int64_t pause = 0;
    if (sim_chance(sim, sim->mix.holder_pauses)) {
        mark(MARK_ZOMBIE);
        pause = sim_below(sim, PAUSE_MAX_US);
    }
    holder->key->last_send_us = sim->now_us + pause + NET_DELAY_MAX_US;
    sim_at(sim, pause, send_now, patience);
}

static void proceed(struct sim *sim, struct holder *holder, const struct engine_command *command)
{
    holder->intent = command->answer.intent;
    holder->fence = command->answer.fence;
    snprintf(holder->downstream, sizeof holder->downstream, "%s", command->answer.downstream);
    if (holder->deadline_us == 0) {
        /* It waited, so it cannot tell when the lease began: it asks for a fresh one, and counts from before that. */
        holder->deadline_us = sim->now_us + LEASE_US * 8 / 10;
        say(sim, holder, OP_EXTEND);
        return;
    }
    if (sim_chance(sim, sim->mix.holder_pauses)) { /* it was stopped for so long that its own check will find it too late */
        mark(MARK_ZOMBIE);
        holder->deadline_us -= LEASE_US;
    }
    if (sim_chance(sim, sim->mix.release)) {
        say(sim, holder, OP_RELEASE);
        return;
    }
    if (sim_chance(sim, sim->mix.extend)) {
        holder->deadline_us = sim->now_us + LEASE_US * 8 / 10;
        say(sim, holder, OP_EXTEND);
        return;
    }
    if (holder->two_phase)
        say(sim, holder, OP_SENT);
    else
        act(sim, holder);
}

/* ---- answers ---- */

static void after_claim(struct sim *sim, struct holder *holder, const struct engine_command *command)
{
    if (command->answer.verdict == VERDICT_PROCEED)
        proceed(sim, holder, command);
    else
        rest(sim, holder);
}

static void after_say(struct sim *sim, struct holder *holder, const struct engine_command *command)
{
    if (command->answer.verdict != VERDICT_DONE) {
        rest(sim, holder);
        return;
    }
    if (command->ledger.op == OP_EXTEND) {
        if (holder->two_phase)
            say(sim, holder, OP_SENT);
        else
            act(sim, holder);
    } else if (command->ledger.op == OP_SENT) {
        act(sim, holder);
    } else {
        rest(sim, holder);
    }
}

/* No answer: a step before the act is given up. A claim with a nonce is sent again, and what happened is told again and again. */
static void next_after_timeout(struct sim *sim, struct holder *holder, const struct engine_command *command)
{
    bool report = command->ledger.op == OP_CONFIRM || command->ledger.op == OP_FAIL;
    bool claim = command->ledger.op == OP_CLAIM && command->ledger.nonce.at != NULL;
    if ((!report && !claim) || ++holder->tries > (claim ? CLAIM_TRIES_MAX : SAY_TRIES_MAX)) {
        rest(sim, holder);
        return;
    }
    struct engine_command again = *command;
    again.waited_until_us = 0;
    if (claim) /* it is not known when the lease began: see proceed() */
        holder->deadline_us = 0;
    ask(sim, holder, &again);
}

void holder_answered(struct sim *sim, struct engine_command *command)
{
    struct asked *asked = command->user;
    struct holder *holder = asked->holder;
    if (holder->number < 0) /* the operator, who looks again by itself */
        return;
    judge_answer(sim, holder, command, asked->asked_us);
    if (holder->life != asked->life || holder->asked != asked->number)
        return;
    holder->asked++;
    if (sim_chance(sim, sim->mix.holder_dies)) {
        die(sim, holder);
        return;
    }
    if (command->status != OK) {
        next_after_timeout(sim, holder, command);
        return;
    }
    if (command->ledger.op == OP_CLAIM)
        after_claim(sim, holder, command);
    else
        after_say(sim, holder, command);
}

/* ---- the operator ---- */

/* A person looks at the provider and says what is true, but only when nothing can be on its way any more. */
static void resolve(struct sim *sim, struct key *key)
{
    struct engine_command *command = arena_zalloc(&sim->arena, 1, sizeof *command);
    struct asked *asked = arena_zalloc(&sim->arena, 1, sizeof *asked);
    struct holder *person = arena_zalloc(&sim->arena, 1, sizeof *person);
    person->number = -1;
    person->key = key;
    *asked = (struct asked){.holder = person};
    *command = (struct engine_command){
        .ledger = {.op = key->effects > 0 ? OP_CONFIRM : OP_FAIL,
                   .space = BYTES("main"),
                   .actor = BYTES("operator"),
                   .intent = key->intent,
                   .fence = key->fence_unknown,
                   .error = BYTES("it did not happen"),
                   .all_attempts = true},
        .user = asked,
    };
    struct bytes result = arena_printf(&sim->arena, "{\"key\":\"%s\",\"effect\":%d}", key->text, key->effects);
    command->ledger.result = result;
    mark(key->effects > 0 ? MARK_RESOLVED_HAPPENED : MARK_RESOLVED_DID_NOT);
    sim_say(sim, "the operator says that %s %s", key->text, key->effects > 0 ? "happened" : "did not happen");
    sim_send(sim, command);
}

void operator_looks(struct sim *sim, void *none)
{
    (void)none;
    for (int i = 0; i < sim->key_count; i++) {
        struct key *key = &sim->keys[i];
        if (key->unknown_seen && sim->now_us > key->last_send_us + QUARANTINE_US) {
            key->unknown_seen = false;
            resolve(sim, key);
        }
    }
    sim_at(sim, QUARANTINE_US, operator_looks, NULL);
}
