/* events: what came in, one and many. */
#include "api/events.h"
#include "api/leads.h"

#include "base/base64.h"

#define BRIEF_TEXT_MAX 280
#define SEARCHED_MAX 5000 /* events that are looked at for `q` in one call */
#define COPIES_SHOWN 50
#define SCRATCH_SIZE_MAX ((size_t)64 << 20)

/* ---- writing one ---- */

/* Not in the middle of a character. */
static struct bytes cut_text(struct bytes text, size_t most)
{
    if (text.len <= most)
        return text;
    while (most > 0 && ((unsigned char)text.at[most] & 0xC0) == 0x80)
        most--;
    return (struct bytes){text.at, most};
}

static struct bytes sender_of(const struct incoming *incoming)
{
    for (size_t i = 0; i < incoming->identity_count; i++)
        if (incoming->identities[i].sender)
            return incoming->identities[i].value;
    return BYTES_NONE;
}

static void write_came(struct json_out *out, const struct row_event *row, const struct incoming *incoming, bool brief)
{
    call_write_id(out, "event", "evt", row->id);
    json_text_member(out, "source", row->source);
    json_text_member(out, "kind", incoming->kind);
    json_text_member(out, "from", sender_of(incoming));
    json_text_member(out, "name", incoming->name);
    json_text_member(out, "subject", incoming->subject);
    json_text_member(out, "text", brief ? cut_text(incoming->text, BRIEF_TEXT_MAX) : incoming->text);
    json_time_member(out, "received_at", row->received);
    json_time_member(out, "occurred_at", incoming->at_us);
}

static void write_verdict(struct json_out *out, const struct row_event *row)
{
    json_text_member(out, "verdict", bytes_of(event_verdict_names[row->verdict]));
    json_name(out, "mode");
    json_cstr(out, policy_mode_names[row->shadow != 0 ? MODE_SHADOW : MODE_ENFORCE]);
    json_text_member(out, "reason", row->reason);
    json_text_member(out, "because", row->reason.at != NULL ? bytes_of(decide_sentence(row->reason)) : BYTES_NONE);
    json_i64_member(out, "score", row->score);
    call_write_id(out, "first", "evt", row->first);
    call_write_id(out, "record", "rec", row->record);
    call_write_id(out, "thread", "thr", row->thread);
    json_i64_member(out, "epoch", row->epoch);
    json_i64_member(out, "copies", row->copies);
    call_write_id(out, "intent", "int", row->intent);
    json_i64_member(out, "policy", row->policy);
    json_time_member(out, "decided_at", row->decided);
}

static void write_content(struct json_out *out, const struct incoming *incoming)
{
    json_text_member(out, "delivery", incoming->delivery);
    json_text_member(out, "key", incoming->key);
    json_text_member(out, "conversation", incoming->thread);
    json_name(out, "automatic");
    json_bool(out, incoming->automatic);
    json_name(out, "identities");
    json_open(out, '[');
    for (size_t i = 0; i < incoming->identity_count; i++) {
        json_open(out, '{');
        json_text_member(out, "kind", bytes_of(identity_kind_names[incoming->identities[i].kind]));
        json_text_member(out, "value", incoming->identities[i].value);
        json_name(out, "sender");
        json_bool(out, incoming->identities[i].sender);
        json_close(out, '}');
    }
    json_close(out, ']');
    json_name(out, "references");
    json_open(out, '[');
    for (size_t i = 0; i < incoming->reference_count; i++)
        json_text(out, incoming->references[i]);
    json_close(out, ']');
}

static enum status read_event(const struct row_event *row, struct arena *scratch, struct incoming *ret, struct why *why)
{
    arena_clear(scratch);
    if (row->verdict < 0 || row->verdict >= EVENT_VERDICT_COUNT)
        return why_set(why, BROKEN, "event %lld is damaged", (long long)row->id);
    return event_read(row->content, scratch, ret, why);
}

static void write_known(struct json_out *out, const struct row_event *row, const struct incoming *incoming, bool brief)
{
    write_came(out, row, incoming, brief);
    write_verdict(out, row);
    if (brief)
        return;
    json_raw_member(out, "explanation", row->explanation);
    json_name(out, "content");
    json_open(out, '{');
    write_content(out, incoming);
    json_close(out, '}');
}

enum status event_write(struct json_out *out, const struct row_event *row, bool brief, struct arena *scratch, struct why *why)
{
    struct incoming incoming;
    TRY(read_event(row, scratch, &incoming, why));
    json_open(out, '{');
    write_known(out, row, &incoming, brief);
    json_close(out, '}');
    return OK;
}

struct one {
    struct json_out *out;
    struct arena scratch;
    int64_t verdict, first;
    bool found;
};

static enum status take_one(void *ctx, const void *row, struct why *why)
{
    struct one *one = ctx;
    const struct row_event *event = row;
    one->found = true;
    one->verdict = event->verdict;
    one->first = event->first;
    return event_write(one->out, event, false, &one->scratch, why);
}

enum status event_write_as(struct json_out *out, const char *name, struct store *store, struct bytes space, int64_t event,
                           int64_t *ret_verdict, int64_t *ret_first, struct why *why)
{
    struct one one = {.out = out};
    struct q_event_get get = {space, event};
    json_name(out, name);
    arena_init(&one.scratch, SCRATCH_SIZE_MAX);
    enum status status = event != 0 ? store_run(store, &EVENT_GET, &get, 1, take_one, &one, NULL, why) : OK;
    arena_release(&one.scratch);
    if (status == OK && !one.found)
        json_null(out);
    if (one.found && ret_verdict != NULL)
        *ret_verdict = one.verdict;
    if (one.found && ret_first != NULL)
        *ret_first = one.first;
    return status;
}

/* ---- one, with all that belongs to it ---- */

struct events_state {
    struct call *call;
    struct bytes source, q;
    int64_t verdict, thread; /* -1, 0 for any */
    int64_t id, limit, after;
    struct json_out out;
    struct arena scratch;
    struct row_event event; /* only its numbers are used later */
    int64_t count, seen, last_id;
    bool raw, found;
};

static enum status take_event(void *ctx, const void *row, struct why *why)
{
    struct events_state *state = ctx;
    struct incoming incoming;
    state->event = *(const struct row_event *)row;
    state->found = true;
    TRY(read_event(&state->event, &state->scratch, &incoming, why));
    json_open(&state->out, '{');
    write_known(&state->out, &state->event, &incoming, false);
    return OK;
}

static enum status take_copy(void *ctx, const void *row, struct why *why)
{
    struct events_state *state = ctx;
    return event_write(&state->out, row, true, &state->scratch, why);
}

static enum status take_act(void *ctx, const void *row, struct why *why)
{
    struct json_out *out = &((struct events_state *)ctx)->out;
    const struct row_event_act *act = row;
    if (act->act < 0 || act->act >= EVENT_ACT_COUNT || act->was < 0 || act->was >= EVENT_VERDICT_COUNT)
        return why_set(why, BROKEN, "what was done about event %lld is damaged", (long long)act->event);
    json_open(out, '{');
    json_text_member(out, "act", bytes_of(event_act_names[act->act]));
    json_text_member(out, "was", bytes_of(event_verdict_names[act->was]));
    json_time_member(out, "at", act->at);
    json_text_member(out, "actor", act->actor);
    json_text_member(out, "note", act->note);
    call_write_id(out, "intent", "int", act->intent);
    json_close(out, '}');
    return OK;
}

static enum status take_forward(void *ctx, const void *at, struct why *why)
{
    struct events_state *state = ctx;
    const struct row_effect *row = at;
    struct json_out *out = &state->out;
    if (row->state < 0 || row->state >= STATE_COUNT || row->step < 0 || row->step >= STEP_COUNT)
        return why_set(why, BROKEN, "effect %lld is damaged", (long long)row->intent);
    json_open(out, '{');
    call_write_id(out, "effect", "eff", row->intent);
    call_write_id(out, "intent", "int", row->intent);
    json_text_member(out, "destination", row->destination);
    json_text_member(out, "state", bytes_of(intent_state_names[row->state]));
    json_text_member(out, "step", bytes_of(outbox_step_names[row->step]));
    json_i64_member(out, "tries", row->tries);
    json_i64_member(out, "status", row->status);
    json_text_member(out, "note", row->note);
    json_time_member(out, "settled_at", row->settled);
    json_close(out, '}');
    state->count++;
    return OK;
}

static enum status write_raw(struct events_state *state, const struct row_delivery *delivery, struct why *why)
{
    struct json_out *out = &state->out;
    struct effect_request request;
    arena_clear(&state->scratch);
    TRY(request_read(delivery->record, &state->scratch, &request, why));
    json_open(out, '{');
    json_text_member(out, "method", request.method);
    json_text_member(out, "url", request.path);
    json_name(out, "headers");
    json_open(out, '[');
    for (size_t i = 0; i < request.header_count; i++) {
        json_open(out, '[');
        json_text(out, request.headers[i].name);
        json_text(out, request.headers[i].value);
        json_close(out, ']');
    }
    json_close(out, ']');
    if (bytes_is_utf8(request.body))
        json_text_member(out, "body", request.body.at != NULL ? request.body : BYTES(""));
    else
        json_text_member(out, "body_base64", base64_encode(request.body, &state->scratch));
    json_close(out, '}');
    state->count++;
    return OK;
}

static enum status take_delivery(void *ctx, const void *row, struct why *why)
{
    return write_raw(ctx, row, why);
}

/* A member that is null when the query has no row. */
static enum status write_found(struct events_state *state, const char *name, struct store *store, const struct query *query,
                               const void *params, store_row_fn *take, struct why *why)
{
    json_name(&state->out, name);
    state->count = 0;
    TRY(store_run(store, query, params, 1, take, state, NULL, why));
    if (state->count == 0)
        json_null(&state->out);
    return OK;
}

static enum status write_all(struct store *store, struct events_state *state, struct why *why)
{
    struct bytes space = state->call->space;
    struct q_event_get get = {space, state->id};
    struct q_event_copies copies = {space, state->id, COPIES_SHOWN};
    struct q_event_act_list acts = {state->id};
    TRY(store_run(store, &EVENT_GET, &get, 1, take_event, state, NULL, why));
    if (!state->found)
        return NOTHING;
    struct q_effect_get forward = {space, state->event.intent};
    struct q_delivery_get delivery = {space, state->event.delivery};
    TRY(lead_write_of_event(&state->out, store, space, state->id, state->event.record, why));
    TRY(event_write_as(&state->out, "first_event", store, space, state->event.first, NULL, NULL, why));
    TRY(call_write_rows(&state->out, "copied_by", store, &EVENT_COPIES, &copies, take_copy, state, why));
    TRY(write_found(state, "forward", store, &EFFECT_GET, &forward, take_forward, why));
    TRY(call_write_rows(&state->out, "acts", store, &EVENT_ACT_LIST, &acts, take_act, state, why));
    if (state->raw)
        TRY(write_found(state, "raw", store, &DELIVERY_GET, &delivery, take_delivery, why));
    json_close(&state->out, '}');
    return OK;
}

static enum status read_one(struct store *store, struct engine_read *read, struct why *why)
{
    struct events_state *state = ((struct call *)read->user)->state;
    arena_init(&state->scratch, SCRATCH_SIZE_MAX);
    enum status status = write_all(store, state, why);
    arena_release(&state->scratch);
    return status;
}

static void finish_read(struct call *call)
{
    if (call->read.status == NOTHING)
        problem(call, "not_found", "There is no such event, or it is forgotten.");
    else if (call->read.status != OK)
        problem_storage(call, call->read.status, &call->read.why);
    else
        call_reply(call, 200);
}

static struct events_state *new_state(struct call *call)
{
    struct events_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    state->call = call;
    state->verdict = -1;
    state->out = json_out_to(&call->out);
    call->state = state;
    return state;
}

void events_show(struct call *call)
{
    static const char *const known[] = {"raw", NULL};
    struct events_state *state = new_state(call);
    if (!call_query_known(call, known) || !call_param_id(call, 0, "evt", &state->id))
        return;
    struct bytes raw = call_query(call, "raw");
    state->raw = bytes_is(raw, "1") || bytes_is(raw, "true");
    if (state->raw && (call->scopes & SCOPE_ADMIN) == 0) {
        problem(call, "forbidden", "The request as it came is shown to tokens with the scope \"admin\" alone.");
        return;
    }
    call_submit_read(call, read_one, finish_read);
}

/* ---- many ---- */

static bool is_wanted(const struct events_state *state, const struct incoming *incoming)
{
    const struct bytes texts[] = {incoming->text, incoming->subject, incoming->name, incoming->key, incoming->delivery};
    bool wanted = state->q.len == 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && !wanted; i++)
        wanted = bytes_holds_nocase(texts[i], state->q);
    for (size_t i = 0; i < incoming->identity_count && !wanted; i++)
        wanted = bytes_holds_nocase(incoming->identities[i].value, state->q);
    return wanted;
}

/* One more than asked for says that there is a next page. With `q` the page ends where the look-up ends. */
static enum status take_listed(void *ctx, const void *row, struct why *why)
{
    struct events_state *state = ctx;
    const struct row_event *event = row;
    struct incoming incoming;
    state->seen++;
    if (state->count >= state->limit) {
        state->count++;
        return OK;
    }
    TRY(read_event(event, &state->scratch, &incoming, why));
    state->last_id = event->id;
    if (!is_wanted(state, &incoming))
        return OK;
    state->count++;
    json_open(&state->out, '{');
    write_known(&state->out, event, &incoming, true);
    json_close(&state->out, '}');
    return OK;
}

static enum status read_page(struct store *store, struct events_state *state, int64_t most, struct why *why)
{
    struct bytes space = state->call->space;
    int64_t before = state->after > 0 ? state->after : INT64_MAX;
    if (state->thread != 0) {
        struct q_event_list_thread list = {space, state->thread, state->source, state->verdict, before, most};
        return store_run(store, &EVENT_LIST_THREAD, &list, 1, take_listed, state, NULL, why);
    }
    if (state->verdict == EVENT_HELD) {
        struct q_event_list_held list = {space, state->source, before, most};
        return store_run(store, &EVENT_LIST_HELD, &list, 1, take_listed, state, NULL, why);
    }
    if (state->source.at != NULL) {
        struct q_event_list_source list = {space, state->source, state->verdict, before, most};
        return store_run(store, &EVENT_LIST_SOURCE, &list, 1, take_listed, state, NULL, why);
    }
    struct q_event_list list = {space, state->verdict, before, most};
    return store_run(store, &EVENT_LIST, &list, 1, take_listed, state, NULL, why);
}

static enum status read_list(struct store *store, struct engine_read *read, struct why *why)
{
    struct events_state *state = ((struct call *)read->user)->state;
    struct json_out *out = &state->out;
    int64_t most = state->q.len > 0 ? SEARCHED_MAX : state->limit + 1;
    arena_init(&state->scratch, SCRATCH_SIZE_MAX);
    json_open(out, '{');
    json_name(out, "data");
    json_open(out, '[');
    enum status status = read_page(store, state, most, why);
    arena_release(&state->scratch);
    bool more = state->count > state->limit || (state->q.len > 0 && state->seen == most);
    json_close(out, ']');
    json_name(out, "page");
    json_open(out, '{');
    call_write_id(out, "next", "evt", more ? state->last_id : 0);
    json_i64_member(out, "limit", state->limit);
    json_close(out, '}');
    json_close(out, '}');
    return status;
}

static bool read_filters(struct call *call, struct events_state *state)
{
    struct bytes verdict = call_query(call, "verdict"), thread = call_query(call, "thread");
    for (int64_t i = 0; verdict.len > 0 && event_verdict_names[i] != NULL; i++)
        if (bytes_is(verdict, event_verdict_names[i]))
            state->verdict = i;
    if (verdict.len > 0 && state->verdict < 0) {
        problem_field(call, BYTES("verdict"),
                      "verdict has to be one of waiting, accepted, suppressed, held, muted, ignored, released.");
        return false;
    }
    if (thread.len > 0 && !id_parse("thr", thread, &state->thread)) {
        problem_field(call, BYTES("thread"), "thread has to be an id such as thr_0123456789abc.");
        return false;
    }
    state->source = call_query(call, "source");
    if (state->source.len == 0)
        state->source = BYTES_NONE;
    state->q = call_query(call, "q");
    return true;
}

void events_list(struct call *call)
{
    static const char *const known[] = {"source", "verdict", "thread", "q", "limit", "after", NULL};
    struct events_state *state = new_state(call);
    if (call_query_known(call, known) && call_page(call, "evt", &state->limit, &state->after) && read_filters(call, state))
        call_submit_read(call, read_list, finish_read);
}
