#include "api/effects.h"
#include "api/events.h"
#include "api/leads.h"
#include "base/when.h"

struct cards_state {
    struct row_exception card;
    int64_t verdict; /* of the event that it is about */
    bool whole;      /* with that event */
    bool found;
    int64_t id, limit, count, after, after_due, last_id, last_due;
    bool all;
    struct json_out out;
    /* resolve */
    int choice;
    struct bytes note;
    const struct json *result;
    /* assign */
    struct bytes owner, due;
    int64_t due_us;
};

/* ---- writing one ---- */

/* What can be said of an intent comes first, in the order of enum resolution. */
enum choice_name { CHOICE_RELEASE = RESOLUTION_COUNT, CHOICE_SUPPRESS, CHOICE_SAME, CHOICE_DIFFERENT };

static const char *const choice_names[] = {"happened", "did_not", "retry",     "drop", "release",
                                           "suppress", "same",    "different", NULL};

/* What can be chosen, and what follows from it. */
static const struct choice {
    enum exception_kind kind;
    int choice;
    const char *follows;
} choices[] = {
    {EXCEPTION_UNKNOWN_OUTCOME, RESOLVE_HAPPENED, "It counts as done; everyone who asks again gets that answer."},
    {EXCEPTION_UNKNOWN_OUTCOME, RESOLVE_DID_NOT, "It counts as not done, for good: this key will not be used again."},
    {EXCEPTION_UNKNOWN_OUTCOME, RESOLVE_RETRY, "It is done again. If it did happen, it happens twice."},
    {EXCEPTION_DEAD_LETTER, RESOLVE_RETRY, "It is sent again, with all its attempts."},
    {EXCEPTION_DEAD_LETTER, RESOLVE_DROP, "It is put away: it did not happen and will not."},
    {EXCEPTION_REFUSED, RESOLVE_DROP, "It is put away: it did not happen and will not under this key."},
    {EXCEPTION_LIKELY_DUPLICATE, CHOICE_RELEASE,
     "It goes on as a message of its own, once. If it was a copy, it is answered twice."},
    {EXCEPTION_LIKELY_DUPLICATE, CHOICE_SUPPRESS, "It counts as a copy and does not go on. If it was none, it is not answered."},
    {EXCEPTION_LOOP, CHOICE_RELEASE, "It goes on, once. If it is part of a loop, the loop goes on too."},
    {EXCEPTION_LOOP, CHOICE_SUPPRESS, "It does not go on. What comes later is looked at as before."},
    {EXCEPTION_CANNOT_FORWARD, RESOLVE_RETRY,
     "It is forwarded by the policy as it is now, once. If that still cannot be done, you are told why and it stays here."},
    {EXCEPTION_CANNOT_FORWARD, RESOLVE_DROP, "It is put away and does not go on; what repeats it does not either."},
    {EXCEPTION_AMBIGUOUS_IDENTITY, CHOICE_SAME, "They become one lead. It can be undone at any later time."},
    {EXCEPTION_AMBIGUOUS_IDENTITY, CHOICE_DIFFERENT, "They stay two leads, and nobody is asked about them again."},
};

/* A loop of copies is reported with the event that they repeat. That one has gone on; there is nothing to release. */
static bool is_choice(const struct choice *choice, const struct row_exception *card, int64_t verdict)
{
    bool gone_on = card->event != 0 && (verdict == EVENT_ACCEPTED || verdict == EVENT_RELEASED);
    return choice->kind == (enum exception_kind)card->kind && !(gone_on && choice->choice == CHOICE_RELEASE);
}

static void write_choices(struct json_out *out, const struct row_exception *card, int64_t verdict)
{
    json_name(out, "choices");
    json_open(out, '[');
    for (size_t i = 0; i < sizeof choices / sizeof *choices && card->state == EXCEPTION_OPEN; i++) {
        if (!is_choice(&choices[i], card, verdict))
            continue;
        json_open(out, '{');
        json_name(out, "choice");
        json_cstr(out, choice_names[choices[i].choice]);
        json_name(out, "follows");
        json_cstr(out, choices[i].follows);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void write_card(struct json_out *out, const struct row_exception *card)
{
    json_open(out, '{');
    call_write_id(out, "exception", "exc", card->id);
    json_name(out, "kind");
    json_cstr(out, exception_kind_names[card->kind]);
    json_name(out, "state");
    json_cstr(out, exception_state_names[card->state]);
    call_write_id(out, "intent", "int", card->intent);
    call_write_id(out, "event", "evt", card->event);
    call_write_id(out, "edge", "edg", card->edge);
    json_name(out, "owner");
    json_text(out, card->owner);
    json_name(out, "due_at");
    json_time(out, card->due);
    json_name(out, "reason");
    json_text(out, card->reason);
    json_name(out, "created_at");
    json_time(out, card->created);
    json_name(out, "resolved_at");
    json_time(out, card->resolved);
    json_name(out, "resolution");
    json_text(out, card->resolution);
    json_name(out, "resolved_by");
    json_text(out, card->actor);
    json_name(out, "note");
    json_text(out, card->note);
}

static enum status take_card(void *ctx, const void *at, struct why *why)
{
    struct cards_state *state = ctx;
    const struct row_exception *card = at;
    if (card->kind < 0 || card->kind >= EXCEPTION_KIND_COUNT || card->state < 0 || card->state > EXCEPTION_RESOLVED)
        return why_set(why, BROKEN, "exception %lld is damaged", (long long)card->id);
    if (state->count++ == state->limit)
        return OK;
    write_card(&state->out, card);
    if (!state->whole) {
        write_choices(&state->out, card, EVENT_WAITING);
        json_close(&state->out, '}');
    }
    state->last_id = card->id;
    state->last_due = card->due;
    state->card = *card; /* only its numbers are used later */
    state->found = true;
    return OK;
}

static struct cards_state *new_state(struct call *call)
{
    struct cards_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    state->out = json_out_to(&call->out);
    state->limit = 1;
    call->state = state;
    return state;
}

static void finish_read(struct call *call)
{
    call_reply_read(call, "There is no such exception.");
}

/* ---- one ---- */

/* With the event that it is about and the one that it looks like, side by side. */
static enum status read_one(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct cards_state *state = call->state;
    struct q_exception_get get = {call->space, state->id};
    int64_t first = 0;
    state->whole = true;
    TRY(store_run(store, &EXCEPTION_GET, &get, 1, take_card, state, NULL, why));
    if (!state->found)
        return NOTHING;
    TRY(event_write_as(&state->out, "about", store, call->space, state->card.event, &state->verdict, &first, why));
    TRY(lead_write_question(&state->out, store, call->space, state->card.edge, why));
    TRY(event_write_as(&state->out, "like", store, call->space, first, NULL, NULL, why));
    write_choices(&state->out, &state->card, state->verdict);
    json_close(&state->out, '}');
    return OK;
}

void exceptions_show(struct call *call)
{
    struct cards_state *state = new_state(call);
    if (call_param_id(call, 0, "exc", &state->id))
        call_submit_read(call, read_one, finish_read);
}

/* ---- many ---- */

/* Where a list of open ones goes on: behind the card that `after` names, in the order of due times. */
static enum status find_place(struct store *store, struct call *call, struct why *why)
{
    struct cards_state *state = call->state;
    struct cards_state found = {.limit = 1, .out = state->out};
    struct q_exception_get get = {call->space, state->after};
    size_t len = call->out.len;
    if (state->after == 0)
        return OK;
    TRY(store_run(store, &EXCEPTION_GET, &get, 1, take_card, &found, NULL, why));
    call->out.len = len; /* it was only looked at */
    state->after_due = found.found ? found.card.due : INT64_MAX;
    return OK;
}

static enum status read_page(struct store *store, struct call *call, struct why *why)
{
    struct cards_state *state = call->state;
    if (state->all) {
        struct q_exception_list list = {call->space, state->after > 0 ? state->after : INT64_MAX, state->limit + 1};
        return store_run(store, &EXCEPTION_LIST, &list, 1, take_card, state, NULL, why);
    }
    struct q_exception_list_open list = {call->space, state->after > 0 ? state->after_due : INT64_MIN, state->after,
                                         state->limit + 1};
    return store_run(store, &EXCEPTION_LIST_OPEN, &list, 1, take_card, state, NULL, why);
}

static enum status read_list(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct cards_state *state = call->state;
    struct json_out *out = &state->out;
    TRY(find_place(store, call, why));
    call_open_list(out);
    TRY(read_page(store, call, why));
    call_close_list(out, "exc", state->count > state->limit ? state->last_id : 0, state->limit);
    return OK;
}

void exceptions_list(struct call *call)
{
    static const char *const known[] = {"state", "limit", "after", NULL};
    struct cards_state *state = new_state(call);
    if (!call_query_known(call, known) || !call_page(call, "exc", &state->limit, &state->after))
        return;
    struct bytes which = call_query(call, "state");
    state->all = bytes_is(which, "all");
    if (which.len > 0 && !state->all && !bytes_is(which, "open")) {
        problem_field(call, BYTES("state"), "state has to be open or all.");
        return;
    }
    call_submit_read(call, read_list, finish_read);
}

/* ---- resolving ---- */

static bool may_choose(const struct cards_state *state)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (is_choice(&choices[i], &state->card, state->verdict) && choices[i].choice == state->choice)
            return true;
    return false;
}

static void finish_found(struct call *call)
{
    struct cards_state *state = call->state;
    buf_clear(&call->out);
    if (call->read.status != OK) {
        finish_read(call);
        return;
    }
    if (state->card.state != EXCEPTION_OPEN) {
        problem(call, "not_open", "The exception was resolved before.");
        return;
    }
    if (!may_choose(state)) {
        problem_field(call, BYTES("choice"), "\"%s\" is not a choice for %s; see its choices.", choice_names[state->choice],
                      exception_kind_names[state->card.kind]);
        return;
    }
    if (state->card.edge != 0) {
        lead_answer_card(call, state->card.edge, state->choice == CHOICE_SAME, state->note);
        return;
    }
    if (state->card.event != 0) {
        bool goes_on = state->choice == CHOICE_RELEASE || state->choice == RESOLVE_RETRY;
        event_act_on(call, state->card.event, goes_on ? EVENT_ACT_RELEASE : EVENT_ACT_SUPPRESS, state->note, true);
        return;
    }
    struct resolve_order order = {.intent = state->card.intent,
                                  .resolution = (enum resolution)state->choice,
                                  .note = state->note,
                                  .result = state->result != NULL ? state->result->raw : BYTES_NONE};
    resolve_intent(call, &order);
}

void exceptions_resolve(struct call *call)
{
    static const struct json_field fields[] = {
        {"choice", JSON_FIELD_ENUM, offsetof(struct cards_state, choice), true, 0, 0, choice_names},
        {"note", JSON_FIELD_TEXT, offsetof(struct cards_state, note), false, 0, EXCEPTION_NOTE_MAX, NULL},
        {"result", JSON_FIELD_VALUE, offsetof(struct cards_state, result), false, 0, 0, NULL},
    };
    struct cards_state *state = new_state(call);
    if (call_param_id(call, 0, "exc", &state->id) && call_body(call, fields, sizeof fields / sizeof *fields, state))
        call_submit_read(call, read_one, finish_found);
}

/* ---- assigning ---- */

static enum status write_assign(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct call *call = command->user;
    struct cards_state *state = call->state;
    return exception_assign(store, ledger, call->space, state->id, state->owner, state->due_us, call->actor, why);
}

static void finish_assign(struct call *call)
{
    struct cards_state *state = call->state;
    if (call->command.status == NOTHING)
        problem(call, "not_found", "There is no open exception of this id.");
    else if (call->command.status != OK)
        problem_storage(call, call->command.status, &call->command.why);
    else
        call_submit_read(call, read_one, finish_read);
    (void)state;
}

void exceptions_assign(struct call *call)
{
    static const struct json_field fields[] = {
        {"owner", JSON_FIELD_TEXT, offsetof(struct cards_state, owner), false, 1, OWNER_SIZE_MAX, NULL},
        {"due", JSON_FIELD_TEXT, offsetof(struct cards_state, due), false, 1, 64, NULL},
    };
    struct cards_state *state = new_state(call);
    if (!call_param_id(call, 0, "exc", &state->id) || !call_body(call, fields, sizeof fields / sizeof *fields, state))
        return;
    if (state->owner.at == NULL && state->due.at == NULL) {
        problem_field(call, BYTES("owner"), "Give a new owner, a new due time, or both.");
        return;
    }
    if (state->due.at != NULL && !when_parse(state->due, &state->due_us)) {
        problem_field(call, BYTES("due"), "due has to be a time such as 2026-11-16T17:00:00Z.");
        return;
    }
    call->command.write = write_assign;
    call_submit(call, finish_assign);
}
