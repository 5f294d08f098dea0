/* events_act: what a person does about events: release, suppress, replay. */
#include "api/events.h"
#include "base/when.h"

struct act_state {
    struct person_order order;
    bool card;
};

/* ---- one ---- */

static void write_standing(struct json_out *out, const struct person_order *order)
{
    call_write_id(out, "event", "evt", order->event);
    json_name(out, "verdict");
    json_cstr(out, event_verdict_names[order->verdict]);
    json_name(out, "changed");
    json_bool(out, order->end == PERSON_DONE);
    call_write_id(out, "thread", "thr", order->thread);
    json_name(out, "epoch");
    json_i64(out, order->epoch);
    call_write_id(out, "intent", "int", order->intent);
    call_write_id(out, "effect", "eff", order->intent);
    if (order->act != EVENT_ACT_REPLAY)
        return;
    json_name(out, "replay");
    json_i64(out, order->number);
}

static void answer_cannot(struct call *call, const struct person_order *order)
{
    const char *now = event_verdict_names[order->verdict];
    if (order->verdict == EVENT_WAITING)
        problem(call, "too_early", "The event is not decided yet.");
    else if (order->act == EVENT_ACT_REPLAY)
        problem(call, "not_open", "It is %s and did not go on: release it instead.", now);
    else
        problem(call, "not_open", "It is %s, not held: there is nothing to suppress.", now);
}

static void finish_act(struct call *call)
{
    const struct act_state *state = call->state;
    const struct person_order *order = &state->order;
    enum status status = call->command.status;
    if (status == NOTHING) {
        problem(call, "not_found", "There is no such event, or it is forgotten.");
        return;
    }
    if (status == INVALID) {
        problem(call, "not_open", "It cannot be forwarded: %s.", call->command.why.text);
        return;
    }
    if (status != OK) {
        problem_storage(call, status, &call->command.why);
        return;
    }
    person_done(order);
    if (order->end == PERSON_CANNOT && !state->card) {
        answer_cannot(call, order);
        return;
    }
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    write_standing(&out, order);
    json_close(&out, '}');
    call_reply(call, 200);
}

static enum status write_act(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct act_state *state = ((struct call *)command->user)->state;
    return person_write(store, ledger, &state->order, why);
}

void event_act_on(struct call *call, int64_t event, enum event_act act, struct bytes note, bool card)
{
    struct act_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    state->card = card;
    state->order = (struct person_order){.flow = call->api->flow,
                                         .act = act,
                                         .space = call->space,
                                         .actor = call->actor,
                                         .note = note,
                                         .event = event,
                                         .by_card = card};
    call->state = state;
    call->command = (struct engine_command){.write = write_act, .intents_max = PERSON_INTENTS};
    call_submit(call, finish_act);
}

struct note_body {
    struct bytes note;
};

static void act_by_path(struct call *call, enum event_act act)
{
    static const struct json_field field = {
        "note", JSON_FIELD_TEXT, offsetof(struct note_body, note), false, 0, EXCEPTION_NOTE_MAX, NULL};
    struct note_body body = {0};
    int64_t event;
    if (call_param_id(call, 0, "evt", &event) && call_body(call, &field, 1, &body))
        event_act_on(call, event, act, body.note, false);
}

void events_release(struct call *call)
{
    act_by_path(call, EVENT_ACT_RELEASE);
}

void events_suppress(struct call *call)
{
    act_by_path(call, EVENT_ACT_SUPPRESS);
}

void events_replay(struct call *call)
{
    act_by_path(call, EVENT_ACT_REPLAY);
}

/* ---- many ---- */

#define MANY_MAX 1000
#define MANY_AT_ONCE 20 /* in one transaction: their bodies are in memory together */

struct many_state {
    struct bytes source, since, until, note;
    bool dry_run;
    int64_t after, before; /* ids */
    int64_t events[MANY_MAX];
    size_t count, at, done, failed;
    bool more;
    struct person_order orders[MANY_AT_ONCE];
    size_t order_count;
    struct why why; /* the first that could not be forwarded */
};

static const struct json_field many_fields[] = {
    {"source", JSON_FIELD_TEXT, offsetof(struct many_state, source), true, 1, SETTING_NAME_MAX, NULL},
    {"since", JSON_FIELD_TEXT, offsetof(struct many_state, since), true, 1, 64, NULL},
    {"until", JSON_FIELD_TEXT, offsetof(struct many_state, until), false, 1, 64, NULL},
    {"note", JSON_FIELD_TEXT, offsetof(struct many_state, note), false, 0, EXCEPTION_NOTE_MAX, NULL},
    {"dry_run", JSON_FIELD_BOOL, offsetof(struct many_state, dry_run), false, 0, 0, NULL},
};

static bool read_moment(struct call *call, const char *name, struct bytes text, int64_t otherwise, int64_t *ret_id)
{
    int64_t us = 0;
    if (text.at == NULL) {
        *ret_id = otherwise;
        return true;
    }
    if (!when_parse(text, &us)) {
        problem_field(call, bytes_of(name), "%s has to be a time such as 2026-11-16T17:00:00Z.", name);
        return false;
    }
    *ret_id = id_floor(us);
    return true;
}

static enum status take_id(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct many_state *state = ctx;
    if (state->count == MANY_MAX)
        state->more = true;
    else
        state->events[state->count++] = ((const struct r_event_gone_on *)row)->id;
    return OK;
}

static enum status read_many(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct many_state *state = call->state;
    struct q_event_gone_on find = {call->space, state->source, state->after, state->before, MANY_MAX + 1};
    return store_run(store, &EVENT_GONE_ON, &find, 1, take_id, state, NULL, why);
}

static void answer_many(struct call *call)
{
    const struct many_state *state = call->state;
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    json_name(&out, "dry_run");
    json_bool(&out, state->dry_run);
    json_name(&out, "matched");
    json_i64(&out, (int64_t)state->count);
    json_name(&out, "replayed");
    json_i64(&out, (int64_t)state->done);
    json_name(&out, "failed");
    json_i64(&out, (int64_t)state->failed);
    json_name(&out, "reason");
    json_cstr(&out, state->failed > 0 ? state->why.text : NULL);
    json_name(&out, "more");
    json_bool(&out, state->more);
    json_close(&out, '}');
    call_reply(call, 200);
}

/* One that cannot be forwarded any more does not keep the others. */
static enum status write_some(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct many_state *state = ((struct call *)command->user)->state;
    for (size_t i = 0; i < state->order_count; i++) {
        enum status status = person_write(store, ledger, &state->orders[i], why);
        if (status == INVALID || status == NOTHING) {
            state->orders[i].end = PERSON_CANNOT;
            state->why = *why;
        } else if (status != OK) {
            return status;
        }
    }
    return OK;
}

static void replay_some(struct call *call);

static void finish_some(struct call *call)
{
    struct many_state *state = call->state;
    if (call->command.status != OK) {
        problem(call, "storage", "%zu of %zu were replayed, then: %s.", state->done, state->count, call->command.why.text);
        return;
    }
    for (size_t i = 0; i < state->order_count; i++) {
        bool done = state->orders[i].end == PERSON_DONE;
        state->done += done;
        state->failed += !done;
        person_done(&state->orders[i]);
    }
    state->at += state->order_count;
    replay_some(call);
}

static void replay_some(struct call *call)
{
    struct many_state *state = call->state;
    if (state->at == state->count) {
        answer_many(call);
        return;
    }
    size_t left = state->count - state->at;
    state->order_count = left < MANY_AT_ONCE ? left : MANY_AT_ONCE;
    for (size_t i = 0; i < state->order_count; i++)
        state->orders[i] = (struct person_order){.flow = call->api->flow,
                                                 .act = EVENT_ACT_REPLAY,
                                                 .space = call->space,
                                                 .actor = call->actor,
                                                 .note = state->note,
                                                 .event = state->events[state->at + i]};
    call->command = (struct engine_command){.write = write_some, .intents_max = MANY_AT_ONCE * PERSON_INTENTS};
    call_submit(call, finish_some);
}

static void many_found(struct call *call)
{
    const struct many_state *state = call->state;
    if (call->read.status != OK)
        problem_storage(call, call->read.status, &call->read.why);
    else if (state->dry_run)
        answer_many(call);
    else
        replay_some(call);
}

void events_replay_many(struct call *call)
{
    struct many_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    call->state = state;
    if (!call_body(call, many_fields, sizeof many_fields / sizeof *many_fields, state) ||
        !read_moment(call, "since", state->since, 0, &state->after) ||
        !read_moment(call, "until", state->until, INT64_MAX, &state->before))
        return;
    if (state->after >= state->before) {
        problem_field(call, BYTES("until"), "until has to be later than since.");
        return;
    }
    call_submit_read(call, read_many, many_found);
}
