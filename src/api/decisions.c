#include "api/api.h"

struct decisions_state {
    struct json_out out;
    int64_t intent, limit, after, count, last_id;
};

static enum status write_decision(void *ctx, const void *at, struct why *why)
{
    (void)why;
    struct decisions_state *state = ctx;
    const struct row_decision *row = at;
    struct json_out *out = &state->out;
    if (state->count++ == state->limit)
        return OK;
    char hash[2 * HASH_SIZE];
    bytes_to_hex(row->hash.len == HASH_SIZE ? row->hash : BYTES(""), hash);
    json_open(out, '{');
    call_write_id(out, "decision", "dec", row->id);
    json_name(out, "at");
    json_time(out, row->at);
    json_name(out, "kind");
    json_text(out, row->kind);
    call_write_id(out, "intent", "int", row->intent);
    json_name(out, "fence");
    json_i64(out, row->fence);
    json_name(out, "state");
    json_cstr(out, row->state >= 0 && row->state < STATE_COUNT && row->intent != 0 ? intent_state_names[row->state] : NULL);
    json_name(out, "count");
    json_i64(out, row->count);
    json_name(out, "actor");
    json_text(out, row->actor);
    json_name(out, "reason");
    json_text(out, row->reason);
    json_name(out, "policy");
    json_i64(out, row->policy);
    json_raw_member(out, "changes", row->detail);
    json_name(out, "lane");
    json_i64(out, row->lane);
    json_name(out, "seq");
    json_i64(out, row->seq);
    json_name(out, "hash");
    json_text(out, (struct bytes){hash, row->hash.len == HASH_SIZE ? sizeof hash : 0});
    json_close(out, '}');
    state->last_id = row->id;
    return OK;
}

static enum status read_decisions(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct decisions_state *state = call->state;
    struct json_out *out = &state->out;
    call_open_list(out);
    if (state->intent != 0) {
        struct q_decision_list_intent query = {call->space, state->intent, state->after, state->limit + 1};
        TRY(store_run(store, &DECISION_LIST_INTENT, &query, 1, write_decision, state, NULL, why));
    } else {
        struct q_decision_list query = {call->space, state->after > 0 ? state->after : INT64_MAX, state->limit + 1};
        TRY(store_run(store, &DECISION_LIST, &query, 1, write_decision, state, NULL, why));
    }
    call_close_list(out, "dec", state->count > state->limit ? state->last_id : 0, state->limit);
    return OK;
}

static void finish(struct call *call)
{
    if (call->read.status != OK)
        problem_storage(call, call->read.status, &call->read.why);
    else
        call_reply(call, 200);
}

/* With `intent` its story, oldest first; without, the newest of the space first. */
void decisions_list(struct call *call)
{
    static const char *const known[] = {"intent", "limit", "after", NULL};
    struct decisions_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    state->out = json_out_to(&call->out);
    if (!call_query_known(call, known) || !call_page(call, "dec", &state->limit, &state->after))
        return;
    struct bytes intent = call_query(call, "intent");
    if (intent.at != NULL && intent.len > 0 && !id_parse("int", intent, &state->intent)) {
        problem_field(call, BYTES("intent"), "intent has to be an id such as int_0123456789abc.");
        return;
    }
    call->state = state;
    call_submit_read(call, read_decisions, finish);
}
