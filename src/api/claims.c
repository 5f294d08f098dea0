#include <stdio.h>

#include "api/api.h"
#include "base/when.h"

#define WAIT_MS_MAX 300000
#define LEASE_MS_MAX 86400000
#define RETRY_AFTER_MS 1000

/* ---- claim ---- */

struct claim_body {
    struct claim_naming naming;
    struct answer_order answer;
    int64_t lease_ms, wait_ms;
    int on_unknown;
    bool two_phase;
    struct bytes nonce;
};

enum { ON_UNKNOWN_UNSAID = -1 };

static const struct json_field claim_fields[] = {
    {"workflow", JSON_FIELD_TEXT, offsetof(struct claim_body, naming.workflow), false, 1, 128, NULL},
    {"key", JSON_FIELD_TEXT, offsetof(struct claim_body, naming.key), false, 1, KEY_SIZE_MAX, NULL},
    {"input", JSON_FIELD_VALUE, offsetof(struct claim_body, naming.input), false, 0, 0, NULL},
    {"lease_ms", JSON_FIELD_INT, offsetof(struct claim_body, lease_ms), false, 10, LEASE_MS_MAX, NULL},
    {"wait_ms", JSON_FIELD_INT, offsetof(struct claim_body, wait_ms), false, 0, WAIT_MS_MAX, NULL},
    {"keep", JSON_FIELD_TEXT, offsetof(struct claim_body, naming.keep), false, 2, 16, NULL},
    {"thread", JSON_FIELD_TEXT, offsetof(struct claim_body, naming.thread), false, 1, 256, NULL},
    {"action", JSON_FIELD_TEXT, offsetof(struct claim_body, naming.action), false, 1, 128, NULL},
    {"event", JSON_FIELD_TEXT, offsetof(struct claim_body, answer.answer.event), false, 1, 64, NULL},
    {"epoch", JSON_FIELD_INT, offsetof(struct claim_body, answer.answer.epoch), false, 0, INT64_MAX, NULL},
    {"question", JSON_FIELD_TEXT, offsetof(struct claim_body, answer.answer.question), false, 1, 256, NULL},
    {"run", JSON_FIELD_TEXT, offsetof(struct claim_body, naming.run), false, 1, 256, NULL},
    {"two_phase", JSON_FIELD_BOOL, offsetof(struct claim_body, two_phase), false, 0, 0, NULL},
    {"on_unknown", JSON_FIELD_ENUM, offsetof(struct claim_body, on_unknown), false, 0, 0, on_unknown_names},
    {"nonce", JSON_FIELD_TEXT, offsetof(struct claim_body, nonce), false, 8, 128, NULL},
};

/* RFC 7240: `Prefer: wait=10`, in seconds. */
int64_t claims_preferred_wait_ms(struct call *call)
{
    struct bytes rest = http_header(&call->request->head, "prefer");
    while (rest.len > 0) {
        struct bytes part = bytes_trim(bytes_cut(&rest, ',')), name = bytes_cut(&part, '=');
        uint64_t seconds;
        if (bytes_eq_nocase(name, BYTES("wait")) && bytes_to_u64(part, &seconds))
            return seconds > WAIT_MS_MAX / 1000 ? WAIT_MS_MAX : (int64_t)seconds * 1000;
    }
    return 0;
}

static void write_differs(struct call *call, struct json_out *out)
{
    json_name(out, "differs");
    json_open(out, '[');
    for (size_t i = 0; i < call->command.answer.differs_count; i++)
        json_text(out, call->command.answer.differs[i]);
    json_close(out, ']');
}

static void write_intent(struct call *call, struct json_out *out)
{
    call_write_id(out, "intent", "int", call->command.answer.intent);
}

static void write_reused(struct call *call, struct json_out *out)
{
    write_intent(call, out);
    write_differs(call, out);
}

static void write_refused(struct call *call, struct json_out *out)
{
    write_intent(call, out);
    json_name(out, "error");
    json_text(out, call->command.answer.error);
    json_name(out, "refused_at");
    json_time(out, call->command.answer.settled_us);
}

/* The intent, or the other one that it has to wait for. */
static void write_intent_or_other(struct call *call, struct json_out *out)
{
    call_write_id(out, call->command.answer.other ? "waits_for" : "intent", "int", call->command.answer.intent);
}

static void write_unknown(struct call *call, struct json_out *out)
{
    write_intent_or_other(call, out);
    if (call->command.answer.other)
        return; /* its fence is its own callers' */
    json_name(out, "fence");
    json_i64(out, call->command.answer.fence);
}

static void write_wait(struct call *call, struct json_out *out)
{
    write_intent_or_other(call, out);
    json_name(out, "retry_after_ms");
    json_i64(out, *(int64_t *)call->state);
}

static void write_expired(struct call *call, struct json_out *out)
{
    json_name(out, "state");
    json_cstr(out, intent_state_names[call->command.answer.state]);
    json_name(out, "settled_at");
    json_time(out, call->command.answer.settled_us);
}

static void write_shadow(const struct ledger_answer *answer, struct json_out *out)
{
    if (!answer->shadow)
        return;
    json_name(out, "shadow");
    json_open(out, '{');
    json_name(out, "would");
    json_cstr(out, ledger_verdict_names[answer->would]);
    json_close(out, '}');
}

static void answer_proceed(struct call *call)
{
    const struct ledger_answer *answer = &call->command.answer;
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    json_name(&out, "answer");
    json_cstr(&out, "proceed");
    write_intent(call, &out);
    json_name(&out, "fence");
    json_i64(&out, answer->fence);
    json_name(&out, "lease_until");
    json_time(&out, answer->lease_until_us);
    json_name(&out, "lease_ms");
    json_i64(&out, answer->lease_left_us / WHEN_MS);
    json_name(&out, "two_phase");
    json_bool(&out, answer->two_phase);
    json_name(&out, "downstream_key");
    json_cstr(&out, answer->downstream);
    if (answer->may_have_happened) {
        json_name(&out, "may_have_happened");
        json_bool(&out, true);
    }
    write_shadow(answer, &out);
    json_close(&out, '}');
    if (answer->again)
        call_header(call, "Idempotent-Replayed", BYTES("true"));
    call_reply(call, 201);
}

static void answer_replay(struct call *call)
{
    const struct ledger_answer *answer = &call->command.answer;
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    json_name(&out, "answer");
    json_cstr(&out, "replay");
    write_intent(call, &out);
    json_name(&out, "result");
    json_raw(&out, answer->result);
    json_name(&out, "confirmed_at");
    json_time(&out, answer->settled_us);
    json_close(&out, '}');
    char expires[32];
    size_t len = when_format(answer->expires_us, expires);
    call_header(call, "Idempotent-Replayed", BYTES("true"));
    call_headerf(call, "Idempotency-Expires", "%.*s", (int)len, expires);
    call_reply(call, 200);
}

static void answer_in_progress(struct call *call)
{
    int64_t left_ms = call->command.answer.lease_left_us / 1000 + 1;
    int64_t after_ms = left_ms < 1 ? 1 : left_ms > RETRY_AFTER_MS ? RETRY_AFTER_MS : left_ms;
    call_headerf(call, "Retry-After", "%lld", (long long)((after_ms + 999) / 1000));
    call_headerf(call, "retry-after-ms", "%lld", (long long)after_ms);
    call->state = &after_ms;
    if (call->command.answer.other)
        problem_with(call, "in_progress", write_wait, "The answer to another question of this conversation is not settled yet.");
    else if (call->command.answer.state == STATE_PENDING)
        problem_with(call, "in_progress", write_wait, "It is queued: semel will deliver it.");
    else
        problem_with(call, "in_progress", write_wait, "Another caller holds it; its lease ends in %lld ms at the latest.",
                     (long long)left_ms);
}

static void answer_unknown(struct call *call)
{
    if (call->command.answer.other)
        problem_with(
            call, "outcome_unknown", write_unknown,
            "Nobody can tell whether another question of this conversation was answered. Answers wait until a person has "
            "said so (semel exceptions resolve); with on_unknown: skip for the workflow answers they do not.");
    else
        problem_with(call, "outcome_unknown", write_unknown, "The last holder stopped after it may have acted.");
}

void claims_answer(struct call *call)
{
    const struct ledger_answer *answer = &call->command.answer;
    if (call->command.status != OK) {
        problem_storage(call, call->command.status, &call->command.why);
        return;
    }
    switch (answer->verdict) {
    case VERDICT_PROCEED:
        answer_proceed(call);
        return;
    case VERDICT_REPLAY:
        answer_replay(call);
        return;
    case VERDICT_IN_PROGRESS:
        answer_in_progress(call);
        return;
    case VERDICT_OUTCOME_UNKNOWN:
        answer_unknown(call);
        return;
    case VERDICT_KEY_REUSED:
        problem_with(call, "key_reused", write_reused, "It was claimed before with another input (%zu field%s differ%s).",
                     answer->differs_count, answer->differs_count == 1 ? "" : "s", answer->differs_count == 1 ? "s" : "");
        return;
    case VERDICT_REFUSED:
        problem_with(call, "refused", write_refused, "It had no effect, and that is final.");
        return;
    case VERDICT_EXPIRED:
        problem_with(call, "expired", write_expired, "Its result is not kept any more.");
        return;
    case VERDICT_DONE:
    case VERDICT_FENCED:
    case VERDICT_DIFFERS:
    case VERDICT_ALREADY_SENT:
    case VERDICT_NOT_FOUND:
        break;
    }
    ASSERT(answer->verdict <= VERDICT_EXPIRED);
}

bool claims_name(struct call *call, const struct claim_naming *naming, struct ledger_command *ret)
{
    struct env *env = engine_env(call->api->engine);
    const struct naming_rules rules = {policy_workflow(call->api->policy, naming->workflow), call->space,
                                       engine_pepper(call->api->engine), env->wall_us(env)};
    struct bytes field = BYTES_NONE;
    struct why why;
    enum status status = ledger_name(naming, &rules, call->request->arena, ret, &field, &why);
    if (status == NOTHING)
        problem(call, "key_required", "%s", why.text);
    else if (status != OK)
        problem_field(call, field, "%s", why.text);
    if (status != OK)
        return false;
    ret->actor = call->actor;
    ret->policy = call->api->policy_version;
    return true;
}

/* Without two phases the claim counts as sent, and what may have happened is given out to nobody again. */
static bool take_nonce(struct call *call, struct bytes nonce, struct ledger_command *claim)
{
    if (nonce.at == NULL)
        return true;
    if (!claim->two_phase) {
        problem_field(call, BYTES("nonce"),
                      "nonce goes together with two_phase: a claim without it counts as sent from the start.");
        return false;
    }
    char *hash = arena_alloc(call->request->arena, NONCE_HASH_SIZE);
    ASSERT(hash != NULL);
    ledger_nonce_hash(engine_pepper(call->api->engine), nonce, (uint8_t *)hash);
    claim->nonce = (struct bytes){hash, NONCE_HASH_SIZE};
    return true;
}

static void claim_named(struct call *call)
{
    const struct claim_body *body = call->state;
    struct ledger_command *claim = &call->command.ledger;
    if (body->naming.workflow.at == NULL) {
        problem_field(call, BYTES("workflow"), "\"workflow\" is missing; send a string of 1 to 128 characters.");
        return;
    }
    if (!claims_name(call, &body->naming, claim))
        return;
    claim->op = OP_CLAIM;
    claim->in_turn = body->answer.named;
    if (body->lease_ms >= 0)
        claim->lease_us = body->lease_ms * WHEN_MS;
    if (body->on_unknown != ON_UNKNOWN_UNSAID)
        claim->on_unknown = (enum on_unknown)body->on_unknown;
    claim->two_phase = claim->two_phase || body->two_phase;
    if (!take_nonce(call, body->nonce, claim))
        return;
    call->command.wait_us = (body->wait_ms >= 0 ? body->wait_ms : claims_preferred_wait_ms(call)) * WHEN_MS;
    call_submit(call, claims_answer);
}

void claims_create(struct call *call)
{
    struct claim_body *body = arena_zalloc(call->request->arena, 1, sizeof *body);
    ASSERT(body != NULL);
    body->lease_ms = body->wait_ms = -1;
    body->on_unknown = ON_UNKNOWN_UNSAID;
    body->answer = (struct answer_order){.answer.epoch = EPOCH_UNSAID, .naming = &body->naming};
    call->state = body;
    if (call_body(call, claim_fields, sizeof claim_fields / sizeof *claim_fields, body))
        answers_name(call, &body->answer, claim_named);
}

/* ---- what a holder says ---- */

struct say_body {
    int64_t fence, lease_ms;
    const struct json *result;
    int effect;
    bool final, all_attempts;
    struct bytes error;
};

enum { EFFECT_UNSAID = -1, EFFECT_NONE, EFFECT_UNKNOWN };
static const char *const effects[] = {"none", "unknown", NULL};

static const struct json_field fence_field = {"fence", JSON_FIELD_INT, offsetof(struct say_body, fence), true, 0, INT64_MAX,
                                              NULL};
static const struct json_field result_field = {"result", JSON_FIELD_VALUE, offsetof(struct say_body, result), false, 0, 0, NULL};
static const struct json_field lease_field = {
    "lease_ms", JSON_FIELD_INT, offsetof(struct say_body, lease_ms), false, 10, LEASE_MS_MAX, NULL};
static const struct json_field effect_field = {"effect", JSON_FIELD_ENUM, offsetof(struct say_body, effect), false, 0,
                                               0,        effects};
static const struct json_field final_field = {"final", JSON_FIELD_BOOL, offsetof(struct say_body, final), false, 0, 0, NULL};
static const struct json_field all_field = {
    "all_attempts", JSON_FIELD_BOOL, offsetof(struct say_body, all_attempts), false, 0, 0, NULL};
static const struct json_field error_field = {"error", JSON_FIELD_TEXT, offsetof(struct say_body, error), false, 0, 4096, NULL};

static void answer_done(struct call *call)
{
    const struct ledger_answer *answer = &call->command.answer;
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    write_intent(call, &out);
    json_name(&out, "state");
    json_cstr(&out, intent_state_names[answer->state]);
    json_name(&out, "fence");
    json_i64(&out, answer->fence);
    json_name(&out, "lease_until");
    json_time(&out, answer->lease_until_us);
    json_name(&out, "lease_ms");
    if (answer->lease_left_us > 0)
        json_i64(&out, answer->lease_left_us / WHEN_MS);
    else
        json_null(&out);
    json_name(&out, "settled_at");
    json_time(&out, answer->settled_us);
    write_shadow(answer, &out);
    json_close(&out, '}');
    if (answer->again)
        call_header(call, "Idempotent-Replayed", BYTES("true"));
    call_reply(call, 200);
}

static void write_state(struct call *call, struct json_out *out)
{
    write_intent(call, out);
    json_name(out, "state");
    json_cstr(out, intent_state_names[call->command.answer.state]);
    json_name(out, "fence");
    json_i64(out, call->command.answer.fence);
}

static void answer_say(struct call *call)
{
    const struct ledger_answer *answer = &call->command.answer;
    const char *op = ledger_op_names[call->command.ledger.op];
    if (call->command.status != OK)
        problem_storage(call, call->command.status, &call->command.why);
    else if (answer->verdict == VERDICT_DONE)
        answer_done(call);
    else if (answer->verdict == VERDICT_NOT_FOUND)
        problem(call, "not_found", "There is no such intent.");
    else if (answer->verdict == VERDICT_DIFFERS)
        problem_with(call, "differs", write_state, "It was confirmed before, with another result.");
    else if (answer->verdict == VERDICT_ALREADY_SENT)
        problem_with(call, "already_sent", write_state, "It was said to be sent.");
    else if (answer->fence != call->command.ledger.fence)
        problem_with(call, "fenced", write_state, "The fence of this claim is %lld, but the intent is at %lld: %s was not taken.",
                     (long long)call->command.ledger.fence, (long long)answer->fence, op);
    else
        problem_with(call, "fenced", write_state, "The intent is %s: %s was not taken.", intent_state_names[answer->state], op);
}

static void say(struct call *call, enum ledger_op op, const struct json_field *const *more, size_t more_count)
{
    struct json_field fields[5] = {fence_field};
    struct say_body body = {.effect = EFFECT_UNSAID};
    for (size_t i = 0; i < more_count; i++)
        fields[i + 1] = *more[i];
    struct ledger_command *command = &call->command.ledger;
    if (!call_param_id(call, 0, "int", &command->intent) || !call_body(call, fields, more_count + 1, &body))
        return;
    command->op = op;
    command->space = call->space;
    command->actor = call->actor;
    command->policy = call->api->policy_version;
    command->fence = body.fence;
    command->result = body.result != NULL ? body.result->raw : BYTES("null");
    command->error = body.error;
    command->effect_unknown = body.effect != EFFECT_NONE; /* unsaid is unknown */
    command->final = body.final;
    command->all_attempts = body.all_attempts;
    command->lease_us = body.lease_ms * WHEN_MS;
    if (memchr(body.error.at != NULL ? body.error.at : "", 0, body.error.len) != NULL) {
        problem_field(call, BYTES("error"), "error must not contain U+0000.");
        return;
    }
    call_submit(call, answer_say);
}

void claims_sent(struct call *call)
{
    say(call, OP_SENT, NULL, 0);
}

void claims_confirm(struct call *call)
{
    const struct json_field *const more[] = {&result_field};
    say(call, OP_CONFIRM, more, 1);
}

void claims_fail(struct call *call)
{
    const struct json_field *const more[] = {&effect_field, &final_field, &error_field, &all_field};
    say(call, OP_FAIL, more, 4);
}

void claims_extend(struct call *call)
{
    const struct json_field *const more[] = {&lease_field};
    say(call, OP_EXTEND, more, 1);
}

void claims_release(struct call *call)
{
    say(call, OP_RELEASE, NULL, 0);
}
