#include "api/api.h"
#include "base/when.h"

struct intents_state {
    struct call *call;
    struct bytes workflow, key;
    int64_t state; /* -1 for any */
    int64_t id, limit, after;
    uint8_t h[KEY_HASH_SIZE];
    struct json_out out;
    bool with_result;
    int64_t count, last_id, result;
    struct bytes result_bytes;
};

static void write_time_unless_zero(struct json_out *out, const char *name, int64_t time_us)
{
    json_name(out, name);
    json_time(out, time_us);
}

static void write_rules(struct json_out *out, const struct row_intent *row)
{
    json_name(out, "mode");
    json_cstr(out, policy_mode_names[row->shadow ? MODE_SHADOW : MODE_ENFORCE]);
    json_name(out, "two_phase");
    json_bool(out, row->two_phase != 0);
    json_name(out, "capability");
    json_cstr(out, capability_names[row->capability]);
    json_name(out, "on_unknown");
    json_cstr(out, on_unknown_names[row->on_unknown]);
}

static void write_times(struct intents_state *state, struct json_out *out, const struct row_intent *row)
{
    struct engine *engine = state->call->api->engine;
    write_time_unless_zero(out, "lease_until", engine_to_wall(engine, row->lease_until));
    write_time_unless_zero(out, "created_at", row->created);
    write_time_unless_zero(out, "first_sent_at", row->first_sent);
    write_time_unless_zero(out, "settled_at", row->settled);
    write_time_unless_zero(out, "expires_at", engine_to_wall(engine, row->expires));
}

static enum status write_intent(void *ctx, const void *at, struct why *why)
{
    (void)why;
    struct intents_state *state = ctx;
    const struct row_intent *row = at;
    struct json_out *out = &state->out;
    char key[DOWNSTREAM_KEY_SIZE + 1];
    downstream_key(row->space, row->workflow, row->key, key);
    if (state->count++ == state->limit)
        return OK; /* one more than asked for: there is a next page */
    json_open(out, '{');
    call_write_id(out, "intent", "int", row->id);
    json_text_member(out, "workflow", row->workflow);
    json_text_member(out, "key", row->key);
    json_name(out, "state");
    json_cstr(out, intent_state_names[row->state]);
    json_name(out, "fence");
    json_i64(out, row->fence);
    json_name(out, "attempts");
    json_i64(out, row->attempts);
    write_rules(out, row);
    json_text_member(out, "run", row->run);
    json_text_member(out, "thread", row->thread);
    json_text_member(out, "action", row->action);
    write_times(state, out, row);
    json_text_member(out, "error", row->error);
    json_name(out, "downstream_key");
    json_cstr(out, key);
    if (!state->with_result)
        json_close(out, '}');
    state->last_id = row->id;
    state->result = row->result;
    return OK;
}

static void finish_read(struct call *call)
{
    call_reply_read(call, "There is no such intent.");
}

/* ---- one ---- */

static enum status read_one(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct intents_state *state = call->state;
    struct q_intent_get get = {call->space, state->id};
    TRY(store_run(store, &INTENT_GET, &get, 1, write_intent, state, NULL, why));
    if (state->count == 0)
        return NOTHING;
    TRY(call_write_result(call, store, state->result, &state->out, why));
    json_close(&state->out, '}');
    return OK;
}

static struct intents_state *new_state(struct call *call)
{
    struct intents_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    state->call = call;
    state->state = -1;
    state->out = json_out_to(&call->out);
    call->state = state;
    return state;
}

void intents_show(struct call *call)
{
    struct intents_state *state = new_state(call);
    state->with_result = true;
    state->limit = 1;
    if (call_param_id(call, 0, "int", &state->id))
        call_submit_read(call, read_one, finish_read);
}

/* ---- many ---- */

static enum status read_page(struct store *store, struct intents_state *state, struct why *why)
{
    struct bytes space = state->call->space;
    int64_t before = state->after > 0 ? state->after : INT64_MAX, most = state->limit + 1;
    if (state->key.at != NULL) {
        struct q_intent_by_key query = {{(const char *)state->h, KEY_HASH_SIZE}};
        return store_run(store, &INTENT_BY_KEY, &query, 1, write_intent, state, NULL, why);
    }
    if (state->workflow.at != NULL && state->state >= 0) {
        struct q_intent_list_workflow_state query = {space, state->workflow, state->state, before, most};
        return store_run(store, &INTENT_LIST_WORKFLOW_STATE, &query, 1, write_intent, state, NULL, why);
    }
    if (state->workflow.at != NULL) {
        struct q_intent_list_workflow query = {space, state->workflow, before, most};
        return store_run(store, &INTENT_LIST_WORKFLOW, &query, 1, write_intent, state, NULL, why);
    }
    if (state->state == STATE_CONFIRMED) {
        struct q_intent_list_confirmed query = {space, before, most};
        return store_run(store, &INTENT_LIST_CONFIRMED, &query, 1, write_intent, state, NULL, why);
    }
    if (state->state >= 0) {
        struct q_intent_list_open query = {space, state->state, before, most};
        return store_run(store, &INTENT_LIST_OPEN, &query, 1, write_intent, state, NULL, why);
    }
    struct q_intent_list query = {space, before, most};
    return store_run(store, &INTENT_LIST, &query, 1, write_intent, state, NULL, why);
}

static enum status read_list(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct intents_state *state = call->state;
    struct json_out *out = &state->out;
    call_open_list(out);
    TRY(read_page(store, state, why));
    call_close_list(out, "int", state->count > state->limit ? state->last_id : 0, state->limit);
    return OK;
}

static bool read_state(struct call *call, int64_t *ret_state)
{
    struct bytes text = call_query(call, "state");
    if (text.at == NULL || text.len == 0)
        return true;
    for (int64_t i = 0; intent_state_names[i] != NULL; i++) {
        if (bytes_is(text, intent_state_names[i])) {
            *ret_state = i;
            return true;
        }
    }
    problem_field(call, BYTES("state"), "state has to be one of pending, claimed, sent, confirmed, refused, unknown.");
    return false;
}

void intents_list(struct call *call)
{
    static const char *const known[] = {"workflow", "state", "key", "limit", "after", NULL};
    struct intents_state *state = new_state(call);
    if (!call_query_known(call, known) || !call_page(call, "int", &state->limit, &state->after) ||
        !read_state(call, &state->state))
        return;
    state->workflow = call_query(call, "workflow");
    state->key = call_query(call, "key");
    if (state->workflow.len == 0)
        state->workflow = BYTES_NONE;
    if (state->key.at != NULL && state->workflow.at == NULL) {
        problem_field(call, BYTES("key"), "key goes together with workflow: a key is unique within its workflow.");
        return;
    }
    if (state->key.at != NULL)
        ledger_key_hash(engine_pepper(call->api->engine), call->space, state->workflow, state->key, state->h);
    call_submit_read(call, read_list, finish_read);
}
