#include <stdio.h>

#include "sim.h"

struct call {
    struct holder *holder;
    struct key *key;
    uint64_t life, number;
    char downstream[64];
    bool refuse;
    void (*done)(struct sim *, struct holder *, enum call_outcome, const char *);
    enum call_outcome outcome;
    char result[64];
};

static void reply_arrives(struct sim *sim, void *arg)
{
    struct call *call = arg;
    if (call->holder->life != call->life || call->holder->call != call->number)
        return;
    call->holder->call++; /* the first answer counts */
    call->done(sim, call->holder, call->outcome, call->result);
}

/* A provider with keys remembers what it did under each, for its window. */
static const char *remembered(struct sim *sim, struct key *key, const char *downstream)
{
    for (int i = 0; i < key->remembered_count; i++)
        if (strcmp(key->remembered[i].downstream, downstream) == 0 && sim->now_us - key->remembered[i].at_us < WINDOW_US)
            return key->remembered[i].result;
    return NULL;
}

static void remember(struct sim *sim, struct key *key, const char *downstream, const char *result)
{
    if (key->remembered_count == (int)(sizeof key->remembered / sizeof *key->remembered))
        return;
    snprintf(key->remembered[key->remembered_count].downstream, 64, "%s", downstream);
    snprintf(key->remembered[key->remembered_count].result, 64, "%s", result);
    key->remembered[key->remembered_count++].at_us = sim->now_us;
}

static void take_effect(struct sim *sim, struct call *call)
{
    struct key *key = call->key;
    const char *before = key->kind == PROVIDER_IDEMPOTENT ? remembered(sim, key, call->downstream) : NULL;
    if (before != NULL) {
        mark(MARK_DEDUPLICATED);
        snprintf(call->result, sizeof call->result, "%s", before);
        return;
    }
    key->effects++;
    if (key->first_effect_us == 0)
        key->first_effect_us = sim->now_us;
    snprintf(call->result, sizeof call->result, "{\"key\":\"%s\",\"effect\":%d}", key->text, key->effects);
    sim_say(sim, "effect %d of %s at the provider (holder %d)", key->effects, key->text, call->holder->number);
    if (key->kind == PROVIDER_IDEMPOTENT)
        remember(sim, key, call->downstream, call->result);
    judge_effect(sim, key);
}

static void request_arrives(struct sim *sim, void *arg)
{
    struct call *call = arg;
    if (call->refuse) {
        call->outcome = CALL_REFUSED;
        sim_say(sim, "the provider says no to %s", call->key->text);
    } else {
        call->outcome = CALL_DONE;
        take_effect(sim, call);
    }
    if (sim_chance(sim, sim->mix.provider_lost)) {
        sim_say(sim, "the provider's answer is lost");
        return;
    }
    sim_at(sim, sim_below(sim, 5 * WHEN_MS), reply_arrives, call);
}

static int64_t delay(struct sim *sim)
{
    return sim_chance(sim, sim->mix.provider_slow) ? sim_below(sim, NET_DELAY_MAX_US) : sim_below(sim, 3 * WHEN_MS);
}

void provider_call(struct sim *sim, struct holder *holder,
                   void (*done)(struct sim *, struct holder *, enum call_outcome, const char *))
{
    struct call *call = arena_zalloc(&sim->arena, 1, sizeof *call);
    *call = (struct call){.holder = holder, .key = holder->key, .life = holder->life, .number = ++holder->call, .done = done};
    call->refuse = sim_chance(sim, sim->mix.provider_says_no);
    snprintf(call->downstream, sizeof call->downstream, "%s", holder->downstream);
    judge_send(sim, holder);
    if (sim_chance(sim, sim->mix.provider_lost)) {
        sim_say(sim, "the request to the provider is lost");
        return;
    }
    sim_at(sim, delay(sim), request_arrives, call);
    if (holder->key->kind != PROVIDER_IDEMPOTENT || !sim_chance(sim, sim->mix.provider_doubles))
        return;
    struct call *twin = arena_alloc(&sim->arena, sizeof *twin);
    *twin = *call;
    sim_at(sim, delay(sim), request_arrives, twin);
}
