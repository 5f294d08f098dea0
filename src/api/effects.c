#include "api/effects.h"
#include "base/when.h"

#define DELAY_MS_MAX (400LL * 86400000)

/* ---- the body ---- */

struct effect_body {
    struct bytes destination, workflow, key, at, group, keep, run, thread, action;
    const struct json *input;
    struct effect_contents contents;
    int64_t delay_ms, deadline_ms;
    int priority;
    struct answer_order answer;
};

static const struct json_field effect_fields[] = {
    {"destination", JSON_FIELD_TEXT, offsetof(struct effect_body, destination), true, 1, DESTINATION_NAME_MAX, NULL},
    {"workflow", JSON_FIELD_TEXT, offsetof(struct effect_body, workflow), false, 1, 128, NULL},
    {"key", JSON_FIELD_TEXT, offsetof(struct effect_body, key), false, 1, KEY_SIZE_MAX, NULL},
    {"input", JSON_FIELD_VALUE, offsetof(struct effect_body, input), false, 0, 0, NULL},
    {"request", JSON_FIELD_VALUE, offsetof(struct effect_body, contents.request), false, 0, 0, NULL},
    {"payload", JSON_FIELD_VALUE, offsetof(struct effect_body, contents.payload), false, 0, 0, NULL},
    {"mail", JSON_FIELD_VALUE, offsetof(struct effect_body, contents.mail), false, 0, 0, NULL},
    {"delay_ms", JSON_FIELD_INT, offsetof(struct effect_body, delay_ms), false, 0, DELAY_MS_MAX, NULL},
    {"at", JSON_FIELD_TEXT, offsetof(struct effect_body, at), false, 1, 64, NULL},
    {"deadline_ms", JSON_FIELD_INT, offsetof(struct effect_body, deadline_ms), false, 1, DELAY_MS_MAX, NULL},
    {"priority", JSON_FIELD_ENUM, offsetof(struct effect_body, priority), false, 0, 0, outbox_priority_names},
    {"group", JSON_FIELD_TEXT, offsetof(struct effect_body, group), false, 1, OUTBOX_LINE_MAX, NULL},
    {"keep", JSON_FIELD_TEXT, offsetof(struct effect_body, keep), false, 2, 16, NULL},
    {"run", JSON_FIELD_TEXT, offsetof(struct effect_body, run), false, 1, 256, NULL},
    {"thread", JSON_FIELD_TEXT, offsetof(struct effect_body, thread), false, 1, 256, NULL},
    {"action", JSON_FIELD_TEXT, offsetof(struct effect_body, action), false, 1, 128, NULL},
    {"event", JSON_FIELD_TEXT, offsetof(struct effect_body, answer.answer.event), false, 1, 64, NULL},
    {"epoch", JSON_FIELD_INT, offsetof(struct effect_body, answer.answer.epoch), false, 0, INT64_MAX, NULL},
    {"question", JSON_FIELD_TEXT, offsetof(struct effect_body, answer.answer.question), false, 1, 256, NULL},
};

struct effect_state {
    struct effect_body body;
    struct claim_naming naming;
    const struct destination *destination;
    struct effect_order order;
    struct bytes key;
    int repeats; /* shadow mode: how often the key was changed */
};

/* ---- when ---- */

static bool choose_due(struct call *call, const struct effect_body *body, int64_t *ret_due_us)
{
    struct env *env = engine_env(call->api->engine);
    *ret_due_us = body->delay_ms > 0 ? env->wall_us(env) + body->delay_ms * WHEN_MS : 0;
    if (body->at.at == NULL)
        return true;
    if (body->delay_ms > 0 || !when_parse(body->at, ret_due_us)) {
        problem_field(call, BYTES("at"), "at has to be a time such as 2026-11-16T09:00:00Z, and goes without delay_ms.");
        return false;
    }
    return true;
}

/* ---- the answer ---- */

static void answer_effect(struct call *call, int status)
{
    const struct ledger_answer *answer = &call->command.answer;
    const struct effect_state *state = call->state;
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    call_write_effect(&out, answer);
    json_name(&out, "destination");
    json_text(&out, state->order.row.destination);
    json_name(&out, "workflow");
    json_text(&out, call->command.ledger.workflow);
    json_name(&out, "key");
    json_text(&out, call->command.ledger.key);
    if (answer->verdict == VERDICT_REPLAY) {
        json_name(&out, "settled_at");
        json_time(&out, answer->settled_us);
        json_name(&out, "result");
        json_raw(&out, answer->result);
    }
    if (state->repeats > 0) {
        json_name(&out, "shadow");
        json_open(&out, '{');
        json_name(&out, "would");
        json_cstr(&out, "be suppressed");
        json_close(&out, '}');
    }
    json_close(&out, '}');
    if (status == 200)
        call_header(call, "Idempotent-Replayed", BYTES("true"));
    call_reply(call, status);
}

static void submit(struct call *call);

/* Shadow mode: it would have been suppressed, and goes ahead under a key of its own. */
static void submit_as_another(struct call *call)
{
    struct effect_state *state = call->state;
    state->repeats++;
    call->command.ledger.key =
        arena_printf(call->request->arena, "%.*s~%s-%d", BYTES_ARG(state->key), call->request_id, state->repeats);
    if (call->command.ledger.key.at == NULL || state->repeats > 3)
        problem(call, "too_large", "The request needs too much memory.");
    else
        submit(call);
}

static void answer_submit(struct call *call)
{
    const struct ledger_answer *answer = &call->command.answer;
    if (call->command.status != OK) {
        problem_storage(call, call->command.status, &call->command.why);
        return;
    }
    if (answer->shadow) {
        submit_as_another(call);
        return;
    }
    if (answer->verdict == VERDICT_PROCEED) {
        act_wake(call->api->act);
        answer_effect(call, 202);
    } else if ((answer->verdict == VERDICT_IN_PROGRESS && !answer->other) || answer->verdict == VERDICT_REPLAY) {
        answer_effect(call, 200);
    } else {
        claims_answer(call);
    }
}

static enum status also_submitted(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    const struct call *call = command->user;
    const struct effect_state *state = call->state;
    if (command->answer.verdict != VERDICT_PROCEED && command->answer.verdict != VERDICT_OUTCOME_UNKNOWN)
        return OK;
    return outbox_write(store, ledger, command->answer.intent, &state->order, why);
}

static void submit(struct call *call)
{
    struct ledger_command *submit = &call->command.ledger;
    ledger_key_hash(engine_pepper(call->api->engine), submit->space, submit->workflow, submit->key, submit->h);
    call->command.also = also_submitted;
    call_submit(call, answer_submit);
}

/* ---- create ---- */

static bool fill_order(struct call *call, struct effect_state *state, const struct effect_request *request)
{
    const struct destination *destination = state->destination;
    const struct call_rules *rules = destination_call(destination, request->method, request->path);
    struct why why;
    if (rules->reads) {
        problem_field(call, BYTES("request"),
                      "%.*s only reads: it has no effect that could be done once. Call it through /to/%.*s instead.",
                      BYTES_ARG(request->method), BYTES_ARG(destination->name));
        return false;
    }
    if (effect_order_make(destination, rules, request, call->request->arena, &call->command.ledger, NULL, &state->order, &why) ==
        OK)
        return true;
    problem_field(call, BYTES("request"), "%s", why.text);
    return false;
}

/* What the caller wants otherwise than the destination's settings say. */
static void fill_row(struct effect_state *state, struct ledger_command *submitted, int64_t due_us)
{
    const struct effect_body *body = &state->body;
    struct row_outbox *row = &state->order.row;
    row->priority = body->priority;
    row->due = due_us;
    if (body->deadline_ms > 0)
        row->deadline = body->deadline_ms * WHEN_MS;
    if (body->group.at != NULL)
        row->line = submitted->line = body->group;
}

/* An answer is one answer however it is worded, so what it says is not compared; whoever wants that gives an input. */
static const struct json *choose_input(const struct effect_state *state)
{
    const struct effect_contents *given = &state->body.contents;
    if (state->body.input != NULL || state->body.answer.named)
        return state->body.input;
    return given->request != NULL ? given->request : given->payload != NULL ? given->payload : given->mail;
}

static void create_named(struct call *call)
{
    struct effect_state *state = call->state;
    struct effect_body *body = &state->body;
    struct ledger_command *submitted = &call->command.ledger;
    struct effect_request request = {0};
    int64_t due_us;
    state->destination = policy_destination(call->api->policy, body->destination);
    if (state->destination == NULL) {
        problem_field(call, BYTES("destination"), "There is no destination \"%.*s\" in the policy; add it under destinations:.",
                      BYTES_ARG(body->destination));
        return;
    }
    state->naming.input = choose_input(state);
    if (state->naming.workflow.at == NULL)
        state->naming.workflow = body->destination;
    if (!effect_request_make(call, &body->contents, state->destination, &request) || !choose_due(call, body, &due_us) ||
        !claims_name(call, &state->naming, submitted))
        return;
    submitted->op = OP_SUBMIT;
    submitted->in_turn = body->answer.named;
    call->command.wait_us = claims_preferred_wait_ms(call) * WHEN_MS; /* for its turn */
    state->key = submitted->key;
    if (!fill_order(call, state, &request))
        return;
    fill_row(state, submitted, due_us);
    submitted->evidence = outbox_evidence(&state->order, call->request->arena);
    submit(call);
}

void effects_create(struct call *call)
{
    struct effect_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    struct effect_body *body = &state->body;
    body->priority = PRIORITY_NORMAL;
    body->answer = (struct answer_order){.answer.epoch = EPOCH_UNSAID, .naming = &state->naming};
    call->state = state;
    if (!call_body(call, effect_fields, sizeof effect_fields / sizeof *effect_fields, body))
        return;
    state->naming = (struct claim_naming){.workflow = body->workflow,
                                          .key = body->key,
                                          .keep = body->keep,
                                          .run = body->run,
                                          .thread = body->thread,
                                          .action = body->action};
    answers_name(call, &body->answer, create_named);
}
