/* effects_read: effects as they stand, one and many; and what is done to one or many of them. */
#include "api/effects.h"

struct effects_state {
    struct call *call;
    struct policy *policy; /* a use of it, until the answer */
    struct bytes destination;
    int64_t state, step; /* -1 for any */
    int64_t id, limit, after;
    struct json_out out;
    bool with_result;
    int64_t count, last_id, result;
};

static void write_time(struct json_out *out, const char *name, int64_t time_us)
{
    json_name(out, name);
    json_time(out, time_us == OUTBOX_NEVER ? 0 : time_us);
}

/* Something is to be done about it, and there is nobody to do it to. */
static bool is_stranded(const struct policy *policy, const struct row_effect *row)
{
    return row->step < STEP_PERSON && policy_destination(policy, row->destination) == NULL;
}

static void write_fields(struct json_out *out, const struct row_effect *row, const struct policy *policy)
{
    call_write_id(out, "effect", "eff", row->intent);
    call_write_id(out, "intent", "int", row->intent);
    json_text_member(out, "destination", row->destination);
    json_name(out, "stranded");
    json_bool(out, is_stranded(policy, row));
    json_text_member(out, "workflow", row->workflow);
    json_text_member(out, "key", row->key);
    json_name(out, "state");
    json_cstr(out, intent_state_names[row->state]);
    json_name(out, "step");
    json_cstr(out, outbox_step_names[row->step]);
    json_name(out, "attended");
    json_bool(out, row->attended != 0);
    json_name(out, "priority");
    json_cstr(out, outbox_priority_names[row->priority]);
    json_text_member(out, "group", row->line);
    json_text_member(out, "owner", row->owner);
    json_i64_member(out, "tries", row->tries);
    json_i64_member(out, "probes", row->probes);
    json_i64_member(out, "status", row->status);
    json_text_member(out, "note", row->note);
    json_text_member(out, "error", row->error);
    write_time(out, "due_at", row->step < STEP_PERSON ? row->due : 0);
    write_time(out, "deadline_at", row->deadline);
    write_time(out, "created_at", row->created);
    write_time(out, "first_sent_at", row->first_sent);
    write_time(out, "settled_at", row->settled);
}

static enum status write_effect(void *ctx, const void *at, struct why *why)
{
    struct effects_state *state = ctx;
    const struct row_effect *row = at;
    if (row->state < 0 || row->state >= STATE_COUNT || row->step < 0 || row->step >= STEP_COUNT || row->priority < 0 ||
        row->priority >= PRIORITY_COUNT)
        return why_set(why, BROKEN, "effect %lld is damaged", (long long)row->intent);
    if (state->count++ == state->limit)
        return OK; /* one more than asked for: there is a next page */
    json_open(&state->out, '{');
    write_fields(&state->out, row, state->policy);
    if (!state->with_result)
        json_close(&state->out, '}');
    state->last_id = row->intent;
    state->result = row->result;
    return OK;
}

static struct effects_state *new_state(struct call *call)
{
    struct effects_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    state->call = call;
    state->state = state->step = -1;
    state->out = json_out_to(&call->out);
    call->state = state;
    return state;
}

static void finish_read(struct call *call)
{
    policy_free(((struct effects_state *)call->state)->policy);
    call_reply_read(call, "There is no such effect.");
}

static void begin_read(struct call *call, enum status (*read)(struct store *, struct engine_read *, struct why *))
{
    struct effects_state *state = call->state;
    state->policy = call->api->policy;
    policy_use(state->policy);
    call_submit_read(call, read, finish_read);
}

/* ---- one ---- */

static enum status read_one(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct effects_state *state = call->state;
    struct q_effect_get get = {call->space, state->id};
    TRY(store_run(store, &EFFECT_GET, &get, 1, write_effect, state, NULL, why));
    if (state->count == 0)
        return NOTHING;
    TRY(call_write_result(call, store, state->result, &state->out, why));
    json_close(&state->out, '}');
    return OK;
}

void effects_show(struct call *call)
{
    struct effects_state *state = new_state(call);
    state->with_result = true;
    state->limit = 1;
    if (call_param_id(call, 0, "eff", &state->id))
        begin_read(call, read_one);
}

/* ---- many ---- */

static enum status read_list(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct effects_state *state = call->state;
    struct json_out *out = &state->out;
    struct q_effect_list list = {
        call->space,     state->destination, state->state, state->step, state->after > 0 ? state->after : INT64_MAX,
        state->limit + 1};
    call_open_list(out);
    TRY(store_run(store, &EFFECT_LIST, &list, 1, write_effect, state, NULL, why));
    call_close_list(out, "eff", state->count > state->limit ? state->last_id : 0, state->limit);
    return OK;
}

static bool read_word(struct call *call, const char *name, const char *const *names, int64_t *ret)
{
    struct bytes text = call_query(call, name);
    if (text.at == NULL || text.len == 0)
        return true;
    for (int64_t i = 0; names[i] != NULL; i++) {
        if (bytes_is(text, names[i])) {
            *ret = i;
            return true;
        }
    }
    problem_field(call, bytes_of(name), "There is no %s \"%.*s\".", name, (int)(text.len < 40 ? text.len : 40), text.at);
    return false;
}

void effects_list(struct call *call)
{
    static const char *const known[] = {"destination", "state", "step", "limit", "after", NULL};
    struct effects_state *state = new_state(call);
    if (!call_query_known(call, known) || !call_page(call, "eff", &state->limit, &state->after) ||
        !read_word(call, "state", intent_state_names, &state->state) || !read_word(call, "step", outbox_step_names, &state->step))
        return;
    state->destination = call_query(call, "destination");
    if (state->destination.len == 0)
        state->destination = BYTES_NONE;
    begin_read(call, read_list);
}

/* ---- what is done to one ---- */

static const struct json_field note_field = {
    "note", JSON_FIELD_TEXT, offsetof(struct resolve_order, note), false, 0, EXCEPTION_NOTE_MAX, NULL};

static void act_on(struct call *call, enum resolution resolution, bool cancel)
{
    struct resolve_order order = {.resolution = resolution, .cancel = cancel};
    if (call_param_id(call, 0, "eff", &order.intent) && call_body(call, &note_field, 1, &order))
        resolve_intent(call, &order);
}

void effects_cancel(struct call *call)
{
    act_on(call, RESOLVE_DROP, true);
}

void effects_retry(struct call *call)
{
    act_on(call, RESOLVE_RETRY, false);
}

struct resolve_body {
    int outcome;
    struct bytes note;
    const struct json *result;
};

void effects_resolve(struct call *call)
{
    static const struct json_field fields[] = {
        {"outcome", JSON_FIELD_ENUM, offsetof(struct resolve_body, outcome), true, 0, 0, resolution_names},
        {"note", JSON_FIELD_TEXT, offsetof(struct resolve_body, note), false, 0, EXCEPTION_NOTE_MAX, NULL},
        {"result", JSON_FIELD_VALUE, offsetof(struct resolve_body, result), false, 0, 0, NULL},
    };
    struct resolve_body body = {0};
    struct resolve_order order = {0};
    if (!call_param_id(call, 0, "eff", &order.intent) || !call_body(call, fields, sizeof fields / sizeof *fields, &body))
        return;
    order.resolution = (enum resolution)body.outcome;
    order.note = body.note;
    order.result = body.result != NULL ? body.result->raw : BYTES_NONE;
    resolve_intent(call, &order);
}
