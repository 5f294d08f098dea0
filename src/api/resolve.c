/* resolve: what a person says about an intent that nobody can tell about, or that will not happen by itself. */
#include "api/effects.h"
#include "base/when.h"

const char *const resolution_names[] = {"happened", "did_not", "retry", "drop", NULL};

struct resolve_state {
    struct resolve_order order;
    struct bytes space;
    struct row_intent intent;
    struct row_effect effect;
    bool found, is_effect;
    int64_t wait_us; /* too early: until when */
};

/* ---- how it stands ---- */

static enum status take_intent(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct resolve_state *state = ctx;
    state->intent = *(const struct row_intent *)row; /* only its numbers are used */
    state->found = true;
    return OK;
}

static enum status take_effect(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct resolve_state *state = ctx;
    state->effect = *(const struct row_effect *)row; /* here too, and its space */
    state->effect.space = state->space;
    state->is_effect = true;
    return OK;
}

static enum status read_subject(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct resolve_state *state = call->state;
    struct q_intent_get intent = {call->space, state->order.intent};
    struct q_effect_get effect = {call->space, state->order.intent};
    TRY(store_run(store, &INTENT_GET, &intent, 1, take_intent, state, NULL, why));
    return store_run(store, &EFFECT_GET, &effect, 1, take_effect, state, NULL, why);
}

/* ---- what is written with it ---- */

static enum status close_cards(struct store *store, struct ledger *ledger, const struct call *call, struct why *why)
{
    const struct resolve_state *state = call->state;
    struct bytes word = bytes_of(resolution_names[state->order.resolution]);
    for (int kind = 0; kind < EXCEPTION_KIND_COUNT; kind++)
        TRY(exception_close(store, ledger, state->order.intent, (enum exception_kind)kind, word, call->actor, state->order.note,
                            why));
    return OK;
}

static enum status write_finished(struct store *store, struct ledger *ledger, const struct resolve_state *state, struct why *why)
{
    return outbox_finish(store, ledger, &state->effect, state->order.cancel ? BYTES("cancelled") : BYTES("a person decided"),
                         why);
}

static enum status also_resolved(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    const struct call *call = command->user;
    const struct resolve_state *state = call->state;
    TRY(close_cards(store, ledger, call, why));
    if (!state->is_effect)
        return OK;
    if (command->answer.state == STATE_PENDING)
        return outbox_again(store, ledger, &state->effect, NULL, why);
    return write_finished(store, ledger, state, why);
}

static struct bytes make_evidence(struct call *call)
{
    const struct resolve_state *state = call->state;
    struct buf buf;
    buf_init(&buf, 16 << 10);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    json_name(&out, "resolution");
    json_cstr(&out, resolution_names[state->order.resolution]);
    json_name(&out, "by");
    json_text(&out, call->actor);
    json_name(&out, "note");
    json_text(&out, state->order.note);
    json_close(&out, '}');
    struct bytes evidence = buf.failed ? BYTES_NONE : arena_dup(call->request->arena, buf_bytes(&buf));
    buf_release(&buf);
    return evidence;
}

/* A dead letter again, now; or put away. The ledger need not move for it. */
static enum status write_decision(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    const struct call *call = command->user;
    const struct resolve_state *state = call->state;
    TRY(close_cards(store, ledger, call, why));
    struct row_decision *row = audit_add(ledger->audit);
    if (row == NULL)
        return why_set(why, FULL, "no memory for a decision");
    row->space = call->space;
    row->kind = bytes_of(resolution_names[state->order.resolution]);
    row->intent = state->order.intent;
    row->state = -1;
    row->policy = call->api->policy_version;
    row->actor = call->actor;
    row->detail = command->ledger.evidence;
    if (state->order.resolution == RESOLVE_RETRY)
        return outbox_again(store, ledger, &state->effect, NULL, why);
    return state->is_effect ? write_finished(store, ledger, state, why) : OK;
}

/* ---- the answers ---- */

static void answer_resolved(struct call *call)
{
    const struct resolve_state *state = call->state;
    bool moved = call->command.write == NULL;
    const struct ledger_answer *answer = &call->command.answer;
    if (call->command.status != OK) {
        problem_storage(call, call->command.status, &call->command.why);
        return;
    }
    if (moved && answer->verdict != VERDICT_DONE) {
        problem(call, "not_open", "It has just changed: look at it again, then decide.");
        return;
    }
    if (state->is_effect)
        act_wake(call->api->act);
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    call_write_id(&out, "intent", "int", state->order.intent);
    call_write_id(&out, "effect", "eff", state->is_effect ? state->order.intent : 0);
    json_name(&out, "state");
    json_cstr(&out, intent_state_names[moved ? answer->state : (enum intent_state)state->intent.state]);
    json_name(&out, "resolution");
    json_cstr(&out, state->order.cancel ? "cancelled" : resolution_names[state->order.resolution]);
    json_close(&out, '}');
    call_reply(call, 200);
}

static void write_subject(struct call *call, struct json_out *out)
{
    const struct resolve_state *state = call->state;
    call_write_id(out, "intent", "int", state->order.intent);
    json_name(out, "state");
    json_cstr(out, intent_state_names[state->intent.state]);
}

static void write_wait(struct call *call, struct json_out *out)
{
    const struct resolve_state *state = call->state;
    json_name(out, "retry_after_ms");
    json_i64(out, state->wait_us / WHEN_MS + 1);
}

/* ---- deciding ---- */

static void say(struct call *call, enum ledger_op op, bool final)
{
    struct resolve_state *state = call->state;
    struct bytes evidence = make_evidence(call);
    call->command = (struct engine_command){
        .ledger = {.op = op,
                   .space = call->space,
                   .actor = call->actor,
                   .policy = call->api->policy_version,
                   .intent = state->order.intent,
                   .fence = state->intent.fence,
                   .final = final,
                   .all_attempts = !state->order.cancel,
                   .evidence = evidence,
                   .error = state->order.cancel ? BYTES("cancelled before it was sent")
                                                : BYTES("a person said that it did not happen"),
                   .result = state->order.result.at != NULL ? state->order.result : evidence},
        .also = also_resolved,
    };
    call_submit(call, answer_resolved);
}

static void put_away(struct call *call)
{
    call->command = (struct engine_command){.write = write_decision, .ledger = {.evidence = make_evidence(call)}};
    call_submit(call, answer_resolved);
}

/* Nothing of an earlier attempt may still be on its way when it is sent again. */
static bool is_too_early(struct call *call)
{
    struct resolve_state *state = call->state;
    state->wait_us = state->is_effect ? state->effect.quiet - engine_now(call->api->engine).run_us : 0;
    if (state->wait_us <= 0)
        return false;
    int64_t after_ms = state->wait_us / WHEN_MS + 1;
    call_headerf(call, "Retry-After", "%lld", (long long)((after_ms + 999) / 1000));
    problem_with(call, "too_early", write_wait, "The last attempt may still arrive for %lld ms.", (long long)after_ms);
    return true;
}

static void resolve_unknown(struct call *call)
{
    const struct resolve_state *state = call->state;
    switch (state->order.resolution) {
    case RESOLVE_HAPPENED:
        say(call, OP_CONFIRM, false);
        return;
    case RESOLVE_DID_NOT:
    case RESOLVE_DROP:
        say(call, OP_FAIL, true);
        return;
    case RESOLVE_RETRY:
        if (!is_too_early(call))
            say(call, OP_FAIL, false);
        return;
    case RESOLUTION_COUNT:
        break;
    }
    ASSERT(state->order.resolution < RESOLUTION_COUNT);
}

static void resolve_pending(struct call *call)
{
    const struct resolve_state *state = call->state;
    bool ambiguous = state->intent.ambiguous != 0;
    if (state->order.cancel && ambiguous)
        problem_with(call, "already_sent", write_subject,
                     "An attempt may have happened; it cannot be cancelled. Resolve it when it is unknown.");
    else if (state->order.resolution == RESOLVE_RETRY && state->is_effect)
        put_away(call);
    else if (state->order.resolution == RESOLVE_HAPPENED && ambiguous)
        say(call, OP_CONFIRM, false);
    else if (state->order.resolution == RESOLVE_DID_NOT || state->order.resolution == RESOLVE_DROP)
        say(call, OP_FAIL, true);
    else
        problem_with(call, "not_open", write_subject, "It is pending: nothing of it has been sent that could have happened.");
}

static void decide(struct call *call)
{
    const struct resolve_state *state = call->state;
    if (call->read.status != OK) {
        problem_storage(call, call->read.status, &call->read.why);
        return;
    }
    if (!state->found) {
        problem(call, "not_found", "There is no such intent.");
        return;
    }
    enum intent_state now = (enum intent_state)state->intent.state;
    if (now == STATE_PENDING)
        resolve_pending(call);
    else if (now == STATE_UNKNOWN && !state->order.cancel)
        resolve_unknown(call);
    else if (now == STATE_REFUSED && state->order.resolution == RESOLVE_DROP && !state->order.cancel)
        put_away(call);
    else if (now == STATE_REFUSED)
        problem_with(call, "refused", write_subject, "It had no effect, and that is final for this key.");
    else
        problem_with(call, state->order.cancel ? "already_sent" : "not_open", write_subject, "It is %s.",
                     intent_state_names[now]);
}

void resolve_intent(struct call *call, const struct resolve_order *order)
{
    struct resolve_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    state->order = *order;
    state->space = call->space;
    call->state = state;
    call_submit_read(call, read_subject, decide);
}
