/* post: the transport of the delivery, and the destinations at its other end. A call that has left may arrive when whoever sent it is dead. */
#include <stdio.h>

#include "act/act_own.h"
#include "destination/header.h"
#include "sim.h"

/* One call on its way. The process may die; what has left goes on. */
struct flight {
    struct flight *next;
    struct sim *sim;
    struct transport_call *call; /* the process's: only while it lives and waits */
    uint64_t life;
    struct effect *effect;
    bool question;
    char key[64];
    int64_t fence;
    int64_t ended_us; /* when whoever sent it was done with it, or died */
    enum transport_end end;
    int status;
    const char *body;
};

/* ---- the process's end ---- */

static void finish(struct flight *flight, enum transport_end end, const char *why)
{
    struct sim *sim = flight->sim;
    struct transport_call *call = flight->call;
    flight->ended_us = sim->now_us;
    call->end = end;
    if (why != NULL)
        (void)why_set(&call->why, RETRY, "%s", why);
    call->done(call);
    effects_hand_over(sim);
}

/* False when nobody hears it; a thread that does not run hears it later. */
static bool is_heard(struct flight *flight, void (*later)(struct sim *, void *))
{
    struct sim *sim = flight->sim;
    if (flight->life != sim->life || flight->ended_us != 0)
        return false;
    if (sim->now_us >= sim->starved_until_us)
        return true;
    sim_at(sim, sim->starved_until_us - sim->now_us, later, flight);
    return false;
}

static void answer_comes(struct sim *sim, void *arg)
{
    struct flight *flight = arg;
    if (!is_heard(flight, answer_comes))
        return;
    struct transport_call *call = flight->call;
    sim_say(sim, "%s %s: %d%s", flight->question ? "question about" : "call of", flight->effect->key, flight->status,
            flight->end == TRANSPORT_CUT ? ", cut off" : "");
    call->reply.status = flight->status;
    buf_add(&call->body, bytes_of(flight->body));
    call->reply.body = buf_bytes(&call->body);
    finish(flight, flight->end, flight->end == TRANSPORT_CUT ? "the answer was cut off" : NULL);
}

static void no_answer(struct sim *sim, void *arg)
{
    struct flight *flight = arg;
    if (!is_heard(flight, no_answer))
        return;
    sim_say(sim, "no answer to %s %s", flight->question ? "the question about" : "the call of", flight->effect->key);
    finish(flight, TRANSPORT_LOST, "it gave no answer in time");
}

/* ---- the destination's end ---- */

static bool is_remembered(struct sim *sim, struct flight *flight)
{
    struct effect *effect = flight->effect;
    int64_t window_us = place_window_us(effect->kind);
    for (int i = 0; i < effect->remembered_count; i++)
        if (strcmp(effect->remembered[i].key, flight->key) == 0 && sim->now_us - effect->remembered[i].at_us < window_us)
            return true;
    if (window_us > 0 && effect->remembered_count < 4) {
        snprintf(effect->remembered[effect->remembered_count].key, 64, "%s", flight->key);
        effect->remembered[effect->remembered_count++].at_us = sim->now_us;
    }
    return false;
}

static void act_on(struct sim *sim, struct flight *flight)
{
    struct effect *effect = flight->effect;
    if (is_remembered(sim, flight)) {
        mark(MARK_DEDUPLICATED);
        return;
    }
    effect->happened++;
    if (effect->happened == 1)
        effect->first_us = sim->now_us;
    if (effect->accepted && effect->accepted_life != flight->life)
        mark(MARK_EFFECT_AFTER_CRASH);
    sim_say(sim, "%s happens for the %d. time%s", effect->key, effect->happened,
            flight->life != sim->life ? ", sent by the dead" : "");
    judge_happened(sim, effect);
    if (effect->event != NULL)
        judge_arrived(sim, effect);
    if (effect->event != NULL)
        talk_asked(sim, effect->event);
    if (effect->question != NULL)
        judge_replied(sim, effect->question);
}

/* What it has done is listed a while later. */
static void answer_question(struct sim *sim, struct flight *flight)
{
    const struct effect *effect = flight->effect;
    bool listed = effect->happened > 0 && sim->now_us - effect->first_us >= SETTLE_US;
    flight->status = sim_chance(sim, sim->mix.unsure) ? 503 : 200;
    flight->body = "{\"items\":[]}";
    if (listed)
        flight->body = arena_printf(&sim->arena, "{\"items\":[{\"key\":\"%s\"}]}%c", flight->key, '\0').at;
}

static void answer_call(struct sim *sim, struct flight *flight)
{
    static const int refusals[] = {400, 401, 409, 422, 429, 500};
    flight->body = "{}";
    if (sim_chance(sim, sim->mix.provider_says_no)) {
        flight->status = refusals[sim_below(sim, 6)];
        return;
    }
    act_on(sim, flight);
    flight->status = sim_chance(sim, sim->mix.fails_after) ? 502 : 201;
}

static void arrives(struct sim *sim, void *arg)
{
    struct flight *flight = arg;
    const struct destination *destination = policy_destination(effects_policy(), BYTES("hold"));
    if (flight->ended_us != 0 && sim->now_us > flight->ended_us + act_arrival_us(destination))
        return; /* nothing is on its way for so long */
    if (flight->life != sim->life)
        mark(MARK_ZOMBIE_CALL);
    if (flight->question)
        answer_question(sim, flight);
    else
        answer_call(sim, flight);
    flight->end = sim_chance(sim, sim->mix.cut) ? TRANSPORT_CUT : TRANSPORT_ANSWERED;
    if (!sim_chance(sim, sim->mix.provider_lost))
        sim_at(sim, sim_below(sim, 5 * WHEN_MS), answer_comes, flight);
}

/* ---- leaving ---- */

/* The last check, right before the first byte leaves. */
static void begins(struct sim *sim, void *arg)
{
    struct flight *flight = arg;
    if (!is_heard(flight, begins))
        return;
    int64_t before_us = flight->call->begin_before_us;
    if (before_us != 0 && sim->env.boot_us(&sim->env) >= before_us) {
        mark(MARK_TOO_LATE_TO_BEGIN);
        finish(flight, TRANSPORT_NOT_SENT, "it is too late to begin");
        return;
    }
    if (sim_chance(sim, sim->mix.not_sent)) {
        finish(flight, TRANSPORT_NOT_SENT, "there is no connection");
        return;
    }
    sim_say(sim, "%s %s leaves, fence %lld", flight->question ? "the question about" : "the call of", flight->effect->key,
            (long long)flight->fence);
    if (!flight->question)
        judge_begin(sim, flight->effect, flight->fence);
    sim_at(sim, CALL_US, no_answer, flight);
    if (sim_chance(sim, sim->mix.provider_lost))
        return;
    bool slow = sim_chance(sim, sim->mix.provider_slow);
    sim_at(sim, slow ? sim_below(sim, 2 * CALL_US) : sim_below(sim, 5 * WHEN_MS), arrives, flight);
}

static void post_start(struct transport *transport, struct transport_call *call)
{
    (void)transport;
    struct sim *sim = sim_current();
    const struct job *job = call->user;
    struct flight *flight = arena_zalloc(&sim->arena, 1, sizeof *flight);
    struct bytes key = header_find(call->request->headers, call->request->header_count, BYTES("Idempotency-Key")),
                 find = BYTES("/find?key=");
    *flight = (struct flight){.next = sim->flights, .sim = sim, .call = call, .life = sim->life, .fence = job->fence};
    sim->flights = flight;
    flight->question = bytes_is(call->request->method, "GET");
    for (int i = 0; i < sim->effect_count; i++)
        if (sim->effects[i].intent == job->effect.intent)
            flight->effect = &sim->effects[i];
    if (flight->question)
        key = bytes_from(call->request->path, find.len);
    snprintf(flight->key, sizeof flight->key, "%.*s", BYTES_ARG(key));
    if (flight->effect == NULL) {
        sim_violated(sim, "INV-12", "something is sent that nobody has asked for");
        return;
    }
    sim_at(sim, sim_chance(sim, sim->mix.provider_slow) ? sim_below(sim, CALL_US) : sim_below(sim, WHEN_MS), begins, flight);
}

/* ---- the transport ---- */

static void post_run(struct transport *transport, int64_t wait_us)
{
    (void)transport, (void)wait_us;
}

static void post_wake(struct transport *transport)
{
    (void)transport;
    effects_wake(sim_current());
}

static void post_nothing(struct transport *transport)
{
    (void)transport;
}

struct transport *post_transport(void)
{
    static struct transport transport = {post_start, post_run, post_wake, post_nothing, post_nothing};
    return &transport;
}

void post_crash(struct sim *sim)
{
    for (struct flight *flight = sim->flights; flight != NULL; flight = flight->next)
        if (flight->ended_us == 0)
            flight->ended_us = sim->now_us;
    sim->flights = NULL;
}
