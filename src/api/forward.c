#include "api/forward.h"

#include "base/when.h"

#define WAIT_DEFAULT_US (10 * WHEN_SECOND)

/* ---- claiming ---- */

static void write_intent(struct call *call, struct json_out *out)
{
    call_write_id(out, "intent", "int", call->command.answer.intent);
}

static void replay(struct forward *forward)
{
    struct call *call = forward->call;
    bool happened = call->command.answer.verdict == VERDICT_REPLAY;
    if (forward_replay(forward))
        return;
    forward_release(forward);
    /* It was settled by a person or by asking, or the answer was never seen whole. Whatever we made up here would be taken for
     * the destination's own words. */
    if (happened)
        problem_with(call, "cut_off", write_intent, "It happened, but the destination's answer was never seen whole.");
    else
        claims_answer(call);
}

static void answer_claim(struct call *call)
{
    struct forward *forward = call->state;
    const struct ledger_answer *answer = &call->command.answer;
    if (call->command.status != OK) {
        forward_release(forward);
        problem_storage(call, call->command.status, &call->command.why);
    } else if (answer->verdict == VERDICT_PROCEED) {
        /* In shadow mode a duplicate goes ahead too, but what comes of it is nobody's result. */
        forward_send(forward, answer->fence != 0 ? answer->intent : 0, answer->fence);
    } else if (answer->verdict == VERDICT_REPLAY || answer->verdict == VERDICT_REFUSED) {
        replay(forward);
    } else {
        forward_release(forward);
        claims_answer(call);
    }
}

static enum status also_claimed(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    const struct call *call = command->user;
    struct forward *forward = call->state;
    struct env *env = engine_env(call->api->engine);
    forward->attended.claimed_us = env->boot_us(env); /* it may have waited for another caller before */
    return act_write_claimed(store, ledger, command, &forward->order, forward->destination, why);
}

static void claim(struct forward *forward)
{
    struct call *call = forward->call;
    struct ledger_command *claim = &call->command.ledger;
    int64_t wait_ms = claims_preferred_wait_ms(call);
    claim->op = OP_CLAIM;
    call->command.also = also_claimed;
    call->command.wait_us = wait_ms > 0 ? wait_ms * WHEN_MS : WAIT_DEFAULT_US;
    call_submit(call, answer_claim);
}

/* ---- later ---- */

static void submit(struct call *call);

/* Shadow mode: it would have been suppressed, and goes ahead under a key of its own. */
static void submit_as_another(struct forward *forward)
{
    struct call *call = forward->call;
    struct ledger_command *submitted = &call->command.ledger;
    submitted->key = arena_printf(call->request->arena, "%.*s~%s", BYTES_ARG(submitted->key), call->request_id);
    if (submitted->key.at == NULL || forward->repeated) {
        forward_release(forward);
        problem(call, "too_large", "The request needs too much memory.");
        return;
    }
    forward->repeated = true;
    ledger_key_hash(engine_pepper(call->api->engine), submitted->space, submitted->workflow, submitted->key, submitted->h);
    submit(call);
}

static void answer_accepted(struct call *call)
{
    struct forward *forward = call->state;
    const struct ledger_answer *answer = &call->command.answer;
    if (call->command.status != OK) {
        forward_release(forward);
        problem_storage(call, call->command.status, &call->command.why);
    } else if (answer->shadow) {
        submit_as_another(forward);
    } else if (answer->verdict == VERDICT_REPLAY || answer->verdict == VERDICT_REFUSED) {
        replay(forward);
    } else if (answer->verdict == VERDICT_PROCEED || answer->verdict == VERDICT_IN_PROGRESS) {
        forward_release(forward);
        act_wake(call->api->act);
        struct json_out out = json_out_to(&call->out);
        json_open(&out, '{');
        call_write_effect(&out, answer);
        json_close(&out, '}');
        call_header(call, "Preference-Applied", BYTES("respond-async"));
        call_reply(call, 202);
    } else {
        forward_release(forward);
        claims_answer(call);
    }
}

static enum status also_accepted(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    const struct call *call = command->user;
    return outbox_write(store, ledger, command->answer.intent, &((struct forward *)call->state)->order, why);
}

static void submit(struct call *call)
{
    call->command.ledger.op = OP_SUBMIT;
    call->command.also = also_accepted;
    call_submit(call, answer_accepted);
}

static bool accept(struct forward *forward)
{
    struct call *call = forward->call;
    if (forward_brings_credential(forward)) {
        problem_field(call, BYTES("Authorization"),
                      "What is sent later needs its authorization here: give the destination a secret in the policy; semel does "
                      "not store yours.");
        return false;
    }
    submit(call);
    return true;
}

/* ---- the door ---- */

static bool prefers_async(struct call *call)
{
    struct bytes rest = http_header(&call->request->head, "prefer");
    while (rest.len > 0)
        if (bytes_eq_nocase(bytes_trim(bytes_cut(&rest, ',')), BYTES("respond-async")))
            return true;
    return false;
}

static bool prepare(struct forward *forward)
{
    struct call *call = forward->call;
    const struct destination *destination = forward->destination;
    struct row_outbox *row = &forward->order.row;
    struct why why;
    if (effect_order_make(destination, forward->rules, &forward->request, call->request->arena, &call->command.ledger,
                          &forward->prepared, &forward->order, &why) != OK) {
        problem(call, "invalid", "%s", why.text);
        return false;
    }
    row->attended = !forward->async;
    row->deadline = forward->async ? destination->deadline_us : 0;
    row->line = call->command.ledger.line = BYTES_NONE;
    call->command.ledger.evidence = outbox_evidence(&forward->order, call->request->arena);
    return forward_authorize(forward, &forward->prepared);
}

bool forward_once(struct forward *forward)
{
    forward->async = prefers_async(forward->call);
    if (!forward_name(forward, &forward->call->command.ledger) || !prepare(forward))
        return false;
    if (forward->async)
        return accept(forward);
    claim(forward);
    return true;
}

bool forward_pass(struct forward *forward)
{
    if (!forward_authorize(forward, &forward->request))
        return false;
    forward_send(forward, 0, 0);
    return true;
}

static bool begin(struct forward *forward)
{
    if (!forward_read(forward))
        return false;
    forward->rules = destination_call(forward->destination, forward->request.method, forward->request.path);
    return forward->rules->reads ? forward_pass(forward) : forward_once(forward);
}

void forward_open(struct forward *forward, struct call *call, struct policy *policy, const struct destination *destination)
{
    forward->call = call;
    forward->policy = policy;
    forward->destination = destination;
    call->state = forward;
    policy_use(policy);
}

void forward_call(struct call *call)
{
    struct forward *forward = arena_zalloc(call->request->arena, 1, sizeof *forward);
    struct policy *policy = call->api->policy;
    const struct destination *destination = policy_destination(policy, call->params[0]);
    ASSERT(forward != NULL);
    if (destination == NULL || destination->kind != DESTINATION_HTTP) {
        problem(call, "not_found", "There is no HTTP destination \"%.*s\" in the policy.",
                (int)(call->params[0].len < 64 ? call->params[0].len : 64), call->params[0].at);
        return;
    }
    if (forward_path(&call->request->head).len == 0) {
        problem(call, "not_found", "The path at the destination begins behind its name: /to/%.*s/ …", BYTES_ARG(call->params[0]));
        return;
    }
    forward_open(forward, call, policy, destination);
    if (!begin(forward))
        policy_free(policy); /* the problem was sent, and the memory of the call is gone with it */
}
