#include "api/leads.h"
#include "identity/identity.h"

#define SHOWN_MOST 200 /* events and answers of one conversation */

/* ---- naming an answer ---- */

static enum status read_answer(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct answer_order *order = call->state;
    return answer_name(store, call->space, &order->answer, call->request->arena, order->naming, &order->field, why);
}

static void go_on(struct call *call)
{
    struct answer_order *order = call->state;
    call->state = order->state;
    if (call->read.status == NOTHING)
        problem(call, "not_found", "%s", call->read.why.text);
    else if (call->read.status == INVALID)
        problem_field(call, order->field, "%s", call->read.why.text);
    else if (call->read.status != OK)
        problem_storage(call, call->read.status, &call->read.why);
    else
        order->then(call);
}

void answers_name(struct call *call, struct answer_order *order, void (*then)(struct call *call))
{
    struct why why;
    const struct claim_naming *naming = order->naming;
    bool extra = order->answer.event.at != NULL || order->answer.question.at != NULL || order->answer.epoch != EPOCH_UNSAID;
    /* A workflow whose policy makes the keys keeps them; there thread and action are only noted. */
    if (!extra && naming->workflow.at != NULL && policy_workflow(call->api->policy, naming->workflow)->key != NULL) {
        then(call);
        return;
    }
    if (answer_check(order->naming, &order->answer, &order->field, &why) != OK) {
        problem_field(call, order->field, "%s", why.text);
        return;
    }
    order->named = answer_is_named(order->naming, &order->answer);
    if (!order->named) {
        then(call);
        return;
    }
    order->then = then;
    order->state = call->state;
    call->state = order;
    call_submit_read(call, read_answer, go_on);
}

/* ---- one ---- */

struct threads_state {
    struct call *call;
    int64_t id, limit, after, count, last_id, record;
    bool by_person;
    uint8_t person[KEY_HASH_SIZE];
    struct bytes name; /* "thr_…" */
    struct json_out out;
};

static void write_thread(struct json_out *out, const struct row_thread *thread)
{
    call_write_id(out, "thread", "thr", thread->id);
    json_name(out, "epoch");
    json_i64(out, thread->epoch);
    call_write_id(out, "question", "evt", thread->question);
    json_time_member(out, "created_at", thread->created);
    json_time_member(out, "updated_at", thread->updated);
}

static enum status take_one(void *ctx, const void *row, struct why *why)
{
    struct threads_state *state = ctx;
    (void)why;
    state->count++;
    state->record = ((const struct row_thread *)row)->record;
    write_thread(&state->out, row);
    return OK;
}

static enum status write_event(void *ctx, const void *row, struct why *why)
{
    struct threads_state *state = ctx;
    const struct r_thread_events *event = row;
    struct json_out *out = &state->out;
    (void)why;
    json_open(out, '{');
    call_write_id(out, "event", "evt", event->id);
    json_text_member(out, "source", event->source);
    json_time_member(out, "received_at", event->received);
    json_name(out, "verdict");
    json_cstr(out, event_verdict_names[event->verdict]);
    json_text_member(out, "reason", event->reason);
    json_name(out, "epoch");
    json_i64(out, event->epoch);
    call_write_id(out, "first", "evt", event->first);
    json_close(out, '}');
    return OK;
}

/* The epoch in an answer's key; absent for what was done under a key of its own. */
static void write_epoch(struct json_out *out, const struct r_thread_answers *answer, struct bytes thread)
{
    struct bytes rest = answer->key, name = bytes_cut(&rest, ':'), number = bytes_cut(&rest, ':');
    uint64_t epoch;
    bool named = bytes_eq(answer->workflow, ANSWERS_WORKFLOW) && bytes_eq(name, thread) && bytes_to_u64(number, &epoch);
    json_name(out, "epoch");
    if (named)
        json_i64(out, (int64_t)epoch);
    else
        json_null(out);
}

static enum status write_answer(void *ctx, const void *row, struct why *why)
{
    struct threads_state *state = ctx;
    const struct r_thread_answers *answer = row;
    struct json_out *out = &state->out;
    (void)why;
    json_open(out, '{');
    json_text_member(out, "action", answer->action);
    write_epoch(out, answer, state->name);
    call_write_id(out, "intent", "int", answer->id);
    json_name(out, "state");
    json_cstr(out, intent_state_names[answer->state]);
    json_text_member(out, "workflow", answer->workflow);
    json_text_member(out, "key", answer->key);
    json_time_member(out, "created_at", answer->created);
    json_time_member(out, "settled_at", answer->settled);
    json_close(out, '}');
    return OK;
}

static enum status read_one(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct threads_state *state = call->state;
    struct q_thread_show get = {call->space, state->id};
    struct q_thread_events events = {call->space, state->id, SHOWN_MOST};
    struct q_thread_answers answers = {call->space, state->name, SHOWN_MOST};
    json_open(&state->out, '{');
    TRY(store_run(store, &THREAD_SHOW, &get, 1, take_one, state, NULL, why));
    if (state->count == 0)
        return NOTHING;
    TRY(lead_write_id(&state->out, store, state->record, why));
    json_name(&state->out, "events");
    json_open(&state->out, '[');
    TRY(store_run(store, &THREAD_EVENTS, &events, 1, write_event, state, NULL, why));
    json_close(&state->out, ']');
    json_name(&state->out, "answers");
    json_open(&state->out, '[');
    TRY(store_run(store, &THREAD_ANSWERS, &answers, 1, write_answer, state, NULL, why));
    json_close(&state->out, ']');
    json_close(&state->out, '}');
    return OK;
}

static void finish_read(struct call *call)
{
    if (call->read.status == NOTHING)
        problem(call, "not_found", "There is no such conversation.");
    else if (call->read.status != OK)
        problem_storage(call, call->read.status, &call->read.why);
    else
        call_reply(call, 200);
}

static struct threads_state *new_state(struct call *call)
{
    struct threads_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    state->call = call;
    state->out = json_out_to(&call->out);
    call->state = state;
    return state;
}

void threads_show(struct call *call)
{
    struct threads_state *state = new_state(call);
    if (!call_param_id(call, 0, "thr", &state->id))
        return;
    state->name = id_text("thr", state->id, call->request->arena);
    call_submit_read(call, read_one, finish_read);
}

/* ---- many ---- */

static enum status take_row(void *ctx, const void *row, struct why *why)
{
    struct threads_state *state = ctx;
    (void)why;
    if (state->count++ == state->limit)
        return OK; /* one more than asked for: there is a next page */
    json_open(&state->out, '{');
    write_thread(&state->out, row);
    json_close(&state->out, '}');
    state->last_id = ((const struct row_thread *)row)->id;
    return OK;
}

static enum status read_list(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct threads_state *state = call->state;
    struct json_out *out = &state->out;
    int64_t before = state->after > 0 ? state->after : INT64_MAX, most = state->limit + 1;
    struct q_thread_list all = {call->space, before, most};
    struct q_thread_list_person person = {call->space, {(const char *)state->person, KEY_HASH_SIZE}, before, most};
    json_open(out, '{');
    json_name(out, "data");
    json_open(out, '[');
    if (state->by_person)
        TRY(store_run(store, &THREAD_LIST_PERSON, &person, 1, take_row, state, NULL, why));
    else
        TRY(store_run(store, &THREAD_LIST, &all, 1, take_row, state, NULL, why));
    json_close(out, ']');
    json_name(out, "page");
    json_open(out, '{');
    call_write_id(out, "next", "thr", state->count > state->limit ? state->last_id : 0);
    json_name(out, "limit");
    json_i64(out, state->limit);
    json_close(out, '}');
    json_close(out, '}');
    return OK;
}

/* As the sources spell it: an address, a number, or else what it is. */
static struct bytes normalise(struct bytes text, struct arena *arena)
{
    struct bytes email = identity_email(text, arena), phone = email.at == NULL ? identity_phone(text, arena) : BYTES_NONE;
    return email.at != NULL ? email : phone.at != NULL ? phone : text;
}

void threads_list(struct call *call)
{
    static const char *const known[] = {"identity", "limit", "after", NULL};
    struct threads_state *state = new_state(call);
    if (!call_query_known(call, known) || !call_page(call, "thr", &state->limit, &state->after))
        return;
    struct bytes identity = call_query(call, "identity");
    state->by_person = identity.at != NULL && identity.len > 0;
    if (state->by_person)
        thread_person(engine_pepper(call->api->engine), call->space, normalise(identity, call->request->arena), state->person);
    call_submit_read(call, read_list, finish_read);
}
