#include "api/forward.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/when.h"

#define WAIT_DEFAULT_US (10 * WHEN_SECOND)
#define REPLAY_ARENA_MAX (512u << 20)

/* ---- the request ---- */

static bool is_own(struct bytes name)
{
    static const char *const names[] = {
        "host",        "content-length", "transfer-encoding", "connection",       "expect",        "te",
        "upgrade",     "trailer",        "keep-alive",        "proxy-connection", "authorization", "prefer",
        "semel-token", "semel-key",      "semel-run",         "semel-workflow",   "semel-thread",  "semel-action"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bytes_eq_nocase(name, bytes_of(names[i])))
            return true;
    return false;
}

/* "/to/NAME/v1/x?y" → "/v1/x?y", exactly as it was sent; empty for "/to/NAME". */
static struct bytes path_of(const struct http_head *head)
{
    size_t at = 0;
    for (int slashes = 0; at < head->path.len; at++)
        if (head->path.at[at] == '/' && ++slashes == 3)
            return bytes_from(head->target, at);
    return BYTES_NONE;
}

static bool make_request(struct forward *forward)
{
    struct call *call = forward->call;
    const struct http_head *head = &call->request->head;
    struct effect_request *request = &forward->request;
    request->method = head->method_text;
    request->path = path_of(head);
    request->body = call->request->body;
    request->headers = arena_zalloc(call->request->arena, head->header_count + 1, sizeof *request->headers);
    if (request->headers == NULL) {
        problem(call, "too_large", "The request needs too much memory.");
        return false;
    }
    for (size_t i = 0; i < head->header_count; i++) {
        struct pair pair = {head->headers[i].name, head->headers[i].value};
        if (bytes_eq_nocase(pair.name, BYTES("authorization")) && !bytes_starts(pair.value, BYTES("Bearer sml_")))
            forward->authorization = pair;
        if (is_own(pair.name))
            continue;
        if (!bytes_is_utf8(pair.value)) {
            problem_field(call, pair.name, "The header is not UTF-8, so it cannot be kept exactly.");
            return false;
        }
        request->headers[request->header_count++] = pair;
    }
    return true;
}

/* The caller's own authorization goes along unless the destination has a secret here; it is never stored. */
static bool add_authorization(struct forward *forward, const struct effect_request *from, struct effect_request *ret)
{
    *ret = *from;
    if (forward->authorization.name.at == NULL || forward->destination->secret.kind != SECRET_NONE)
        return true;
    ret->headers = arena_zalloc(forward->call->request->arena, from->header_count + 1, sizeof *ret->headers);
    if (ret->headers == NULL) {
        problem(forward->call, "too_large", "The request needs too much memory.");
        return false;
    }
    memcpy(ret->headers, from->headers, from->header_count * sizeof *ret->headers);
    ret->headers[ret->header_count++] = forward->authorization;
    return true;
}

/* ---- the answer ---- */

/* Gives back what the call holds; every answer goes through here. */
static void release(struct forward *forward)
{
    policy_free(forward->policy);
    forward->policy = NULL;
}

static bool is_dropped(struct bytes name)
{
    return bytes_eq_nocase(name, BYTES("date")) || bytes_eq_nocase(name, BYTES("x-request-id")) ||
           bytes_eq_nocase(name, BYTES("content-length"));
}

/* The destination's headers, then semel's own. */
static struct http_header *make_headers(struct call *call, const struct effect_reply *reply, bool replayed, size_t *ret_count)
{
    const struct ledger_answer *answer = &call->command.answer;
    struct arena *arena = call->request->arena;
    struct http_header *headers = arena_zalloc(arena, reply->header_count + 8, sizeof *headers);
    size_t n = 0;
    for (size_t i = 0; headers != NULL && i < reply->header_count; i++)
        if (!is_dropped(reply->headers[i].name))
            headers[n++] =
                (struct http_header){arena_dup(arena, reply->headers[i].name), arena_dup(arena, reply->headers[i].value)};
    if (headers == NULL || arena->failed)
        return NULL;
    headers[n++] = (struct http_header){BYTES("X-Request-Id"), bytes_of(call->request_id)};
    char id[32];
    if (answer->intent != 0)
        headers[n++] = (struct http_header){BYTES("Semel-Intent"),
                                            arena_dup(arena, (struct bytes){id, id_format("int", answer->intent, id)})};
    if (replayed) {
        char expires[32];
        size_t len = when_format(answer->expires_us, expires);
        headers[n++] = (struct http_header){BYTES("Idempotent-Replayed"), BYTES("true")};
        headers[n++] = (struct http_header){BYTES("Idempotency-Expires"), arena_dup(arena, (struct bytes){expires, len})};
    }
    *ret_count = n;
    return headers;
}

static void give(struct forward *forward, const struct effect_reply *reply, bool replayed)
{
    struct call *call = forward->call;
    size_t count = 0;
    struct http_header *headers = make_headers(call, reply, replayed, &count);
    release(forward);
    if (headers == NULL || reply->status < 200 || reply->status > 599) {
        problem(call, "internal", "The destination's answer cannot be passed on.");
        return;
    }
    struct http_reply answer = {.status = reply->status, .headers = headers, .header_count = count, .body = reply->body};
    atomic_fetch_add(&call->api->replies[reply->status / 100 < 6 ? reply->status / 100 : 5], 1);
    struct buf out = call->out;
    http_reply(call->request, &answer);
    buf_release(&out);
}

/* ---- replay ---- */

static void write_intent(struct call *call, struct json_out *out)
{
    call_write_id(out, "intent", "int", call->command.answer.intent);
}

static void replay(struct forward *forward)
{
    struct call *call = forward->call;
    const struct ledger_answer *answer = &call->command.answer;
    struct arena arena;
    struct effect_reply reply;
    struct why why;
    bool partial = false;
    arena_init(&arena, REPLAY_ARENA_MAX);
    bool whole = answer->result.at != NULL && reply_read(answer->result, &arena, &reply, &partial, &why) == OK && !partial;
    if (whole) {
        give(forward, &reply, true);
    } else if (answer->verdict == VERDICT_REPLAY) {
        /* It was settled by a person or by asking, or the answer was never seen whole. Whatever we made up here would be taken
         * for the destination's own words. */
        release(forward);
        problem_with(call, "cut_off", write_intent, "It happened, but the destination's answer was never seen whole.");
    } else {
        release(forward);
        claims_answer(call);
    }
    arena_release(&arena);
}

/* ---- sending ---- */

struct piece {
    struct forward *forward;
    struct bytes bytes; /* behind the struct */
};

static void begin_on_loop(void *arg)
{
    struct forward *forward = arg;
    struct call *call = forward->call;
    size_t count = 0;
    struct http_header *headers = make_headers(call, &forward->head, false, &count);
    struct http_reply reply = {.status = forward->head.status, .headers = headers, .header_count = headers != NULL ? count : 0};
    atomic_fetch_add(&call->api->replies[reply.status / 100 < 6 ? reply.status / 100 : 5], 1);
    http_reply_begin(call->request, &reply);
}

static void piece_on_loop(void *arg)
{
    struct piece *piece = arg;
    http_reply_piece(piece->forward->call->request, piece->bytes);
    free(piece);
}

static struct bytes reply_header(const struct effect_reply *reply, const char *name)
{
    for (size_t i = 0; i < reply->header_count; i++)
        if (bytes_eq_nocase(reply->headers[i].name, bytes_of(name)))
            return reply->headers[i].value;
    return BYTES_NONE;
}

static struct pair *keep_headers(const struct effect_reply *reply, struct arena *arena)
{
    struct pair *headers = arena_zalloc(arena, reply->header_count + 1, sizeof *headers);
    for (size_t i = 0; headers != NULL && i < reply->header_count; i++)
        headers[i] = (struct pair){arena_dup(arena, reply->headers[i].name), arena_dup(arena, reply->headers[i].value)};
    return headers;
}

/* An answer that comes in events is passed on as it comes; its end waits until it is kept. Any other one is given when it is
 * whole and kept. */
static void on_head(struct act_call *attended)
{
    struct forward *forward = attended->user;
    bool events = bytes_starts(reply_header(&attended->reply, "content-type"), BYTES("text/event-stream"));
    forward->head = (struct effect_reply){.status = attended->reply.status, .header_count = attended->reply.header_count};
    forward->head.headers = keep_headers(&attended->reply, &forward->pieces);
    forward->streaming = events && forward->head.status >= 200 && forward->head.status < 300 && !forward->pieces.failed;
    if (forward->streaming)
        http_server_post(forward->call->api->server, begin_on_loop, forward);
}

static void on_body(struct act_call *attended, struct bytes bytes)
{
    struct forward *forward = attended->user;
    if (!forward->streaming || forward->broken)
        return;
    struct piece *piece = malloc(sizeof *piece + bytes.len);
    if (piece == NULL) {
        forward->broken = true;
        return;
    }
    *piece = (struct piece){forward, {(const char *)(piece + 1), bytes.len}};
    memcpy(piece + 1, bytes.at, bytes.len);
    http_server_post(forward->call->api->server, piece_on_loop, piece);
}

static void write_sent(struct call *call, struct json_out *out)
{
    const struct act_call *attended = &((struct forward *)call->state)->attended;
    if (attended->intent != 0)
        call_write_id(out, "intent", "int", attended->intent);
    json_name(out, "destination_status");
    json_i64(out, attended->end == TRANSPORT_ANSWERED || attended->end == TRANSPORT_CUT ? attended->reply.status : 0);
}

/* What the caller may do next is said by the status: the destination's own where repeating is harmless, 409 where nobody can
 * tell. */
static void answer_sent(struct call *call)
{
    struct forward *forward = call->state;
    const struct act_call *attended = &forward->attended;
    bool answered = attended->end == TRANSPORT_ANSWERED || (attended->end == TRANSPORT_CUT && attended->outcome != OUTCOME_DONE);
    struct bytes because = attended->because.at != NULL ? attended->because : BYTES("it gave no reason");
    if (attended->intent != 0 && attended->status != OK) {
        release(forward);
        problem_storage(call, attended->status, &attended->why);
    } else if (attended->intent != 0 && attended->state == STATE_UNKNOWN) {
        release(forward);
        problem_with(call, "outcome_unknown", write_sent, "It was sent, and may have happened: %.*s.", BYTES_ARG(because));
    } else if (answered) {
        give(forward, &attended->reply, false);
    } else if (attended->end == TRANSPORT_CUT) {
        release(forward);
        problem_with(call, "cut_off", write_sent, "It happened, but the answer was cut off: %.*s.",
                     BYTES_ARG(bytes_of(attended->why.text)));
    } else {
        release(forward);
        problem_with(call, attended->end == TRANSPORT_LOST ? "no_answer" : "unreachable", write_sent, "%s.", attended->why.text);
    }
}

/* The rest of a streamed answer; when it did not come, or could not be kept, the client must notice. */
static void end_stream(struct forward *forward)
{
    struct call *call = forward->call;
    const struct act_call *attended = &forward->attended;
    bool whole = attended->end == TRANSPORT_ANSWERED && attended->status == OK && !forward->broken;
    release(forward);
    struct buf out = call->out;
    http_reply_end(call->request, whole);
    buf_release(&out);
}

static void answer_not_begun(struct call *call)
{
    struct forward *forward = call->state;
    struct arena pieces = forward->pieces;
    release(forward);
    problem_with(call, "unreachable", write_sent, "It was not sent: %s.", forward->attended.why.text);
    arena_release(&pieces);
}

/* The claim counts as sent. Without a word it would be unknown when its lease ends, and somebody's to find out. */
static void say_not_begun(struct forward *forward)
{
    struct call *call = forward->call;
    call->command = (struct engine_command){.ledger = {.op = OP_FAIL,
                                                       .space = call->space,
                                                       .actor = call->actor,
                                                       .policy = call->api->policy_version,
                                                       .intent = forward->attended.intent,
                                                       .fence = forward->attended.fence,
                                                       .error = bytes_of(forward->attended.why.text)}};
    call_submit(call, answer_not_begun);
}

static void sent_on_loop(void *arg)
{
    struct forward *forward = arg;
    if (forward->attended.untold) {
        say_not_begun(forward);
        return;
    }
    struct arena pieces = forward->pieces; /* the call's memory ends with its answer */
    if (forward->streaming)
        end_stream(forward);
    else
        answer_sent(forward->call);
    arena_release(&pieces);
}

/* On the delivery thread, whose memory ends with this call. */
static void on_sent(struct act_call *attended)
{
    struct forward *forward = attended->user;
    struct arena *arena = &forward->pieces;
    attended->reply.headers = keep_headers(&attended->reply, arena);
    attended->reply.body =
        attended->reply.body.at != NULL && !forward->streaming ? arena_dup(arena, attended->reply.body) : BYTES_NONE;
    attended->because = attended->because.at != NULL ? arena_dup(arena, attended->because) : BYTES_NONE;
    if (arena->failed && attended->status == OK)
        attended->status = why_set(&attended->why, UNKNOWN, "it is recorded, but there is not enough memory for the answer");
    http_server_post(forward->call->api->server, sent_on_loop, forward);
}

static void send_now(struct forward *forward, int64_t intent, int64_t fence)
{
    struct call *call = forward->call;
    struct env *env = engine_env(call->api->engine);
    arena_init(&forward->pieces, REPLAY_ARENA_MAX);
    forward->attended.policy = forward->policy;
    forward->attended.destination = forward->destination;
    forward->attended.rules = forward->rules;
    forward->attended.request = &forward->sent;
    forward->attended.space = call->space;
    forward->attended.actor = call->actor;
    forward->attended.intent = intent;
    forward->attended.fence = fence;
    forward->attended.lease_us = act_lease_us(forward->destination);
    if (intent == 0)
        forward->attended.claimed_us = env->boot_us(env);
    forward->attended.on_head = on_head;
    forward->attended.on_body = on_body;
    forward->attended.done = on_sent;
    forward->attended.user = forward;
    call->state = forward;
    act_attend(call->api->act, &forward->attended);
}

/* ---- claiming ---- */

static void answer_claim(struct call *call)
{
    struct forward *forward = call->state;
    const struct ledger_answer *answer = &call->command.answer;
    if (call->command.status != OK) {
        release(forward);
        problem_storage(call, call->command.status, &call->command.why);
    } else if (answer->verdict == VERDICT_PROCEED) {
        /* In shadow mode a duplicate goes ahead too, but what comes of it is nobody's result. */
        send_now(forward, answer->fence != 0 ? answer->intent : 0, answer->fence);
    } else if (answer->verdict == VERDICT_REPLAY || answer->verdict == VERDICT_REFUSED) {
        replay(forward);
    } else {
        release(forward);
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
        release(forward);
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
        release(forward);
        problem_storage(call, call->command.status, &call->command.why);
    } else if (answer->shadow) {
        submit_as_another(forward);
    } else if (answer->verdict == VERDICT_REPLAY || answer->verdict == VERDICT_REFUSED) {
        replay(forward);
    } else if (answer->verdict == VERDICT_PROCEED || answer->verdict == VERDICT_IN_PROGRESS) {
        release(forward);
        act_wake(call->api->act);
        struct json_out out = json_out_to(&call->out);
        json_open(&out, '{');
        call_write_id(&out, "effect", "eff", answer->intent);
        call_write_id(&out, "intent", "int", answer->intent);
        json_name(&out, "state");
        json_cstr(&out, intent_state_names[answer->state]);
        json_close(&out, '}');
        call_header(call, "Preference-Applied", BYTES("respond-async"));
        call_reply(call, 202);
    } else {
        release(forward);
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
    if (forward->authorization.name.at != NULL && forward->destination->secret.kind == SECRET_NONE) {
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
    struct ledger_command *claim = &call->command.ledger;
    struct row_outbox *row = &forward->order.row;
    char downstream[DOWNSTREAM_KEY_SIZE + 1];
    struct why why;
    downstream_key(claim->space, claim->workflow, claim->key, downstream);
    if (destination_prepare(destination, forward->rules, downstream, &forward->request, call->request->arena, &forward->prepared,
                            &why) != OK ||
        request_record(&forward->prepared, call->request->arena, &forward->order.record, &why) != OK) {
        problem(call, "invalid", "%s", why.text);
        return false;
    }
    claim->lease_us = act_lease_us(destination);
    claim->window_us = forward->rules->window_us;
    claim->capability = forward->rules->capability;
    claim->on_unknown = destination->on_unknown;
    claim->two_phase = false;        /* it counts as sent from the moment it is taken */
    claim->attempts_max = INT32_MAX; /* its caller decides how often */
    *row = (struct row_outbox){
        .space = call->space,
        .destination = destination->name,
        .step = STEP_DELIVER,
        .attended = !forward->async,
        .priority = PRIORITY_NORMAL,
        .deadline = forward->async ? destination->deadline_us : 0,
        .owner = destination->owner.len > 0 ? destination->owner : BYTES_NONE,
    };
    claim->evidence = outbox_evidence(&forward->order, call->request->arena);
    return add_authorization(forward, &forward->prepared, &forward->sent);
}

/* False when a problem was sent instead. */
static bool begin(struct forward *forward)
{
    if (!make_request(forward))
        return false;
    forward->rules = destination_call(forward->destination, forward->request.method, forward->request.path);
    if (forward->rules->reads) {
        if (!add_authorization(forward, &forward->request, &forward->sent))
            return false;
        send_now(forward, 0, 0);
        return true;
    }
    if (!forward_name(forward, &forward->call->command.ledger) || !prepare(forward))
        return false;
    if (forward->async)
        return accept(forward);
    claim(forward);
    return true;
}

void forward_call(struct call *call)
{
    struct forward *forward = arena_zalloc(call->request->arena, 1, sizeof *forward);
    ASSERT(forward != NULL);
    forward->call = call;
    call->state = forward;
    forward->destination = policy_destination(call->api->policy, call->params[0]);
    if (forward->destination == NULL || forward->destination->kind != DESTINATION_HTTP) {
        problem(call, "not_found", "There is no HTTP destination \"%.*s\" in the policy.",
                (int)(call->params[0].len < 64 ? call->params[0].len : 64), call->params[0].at);
        return;
    }
    if (path_of(&call->request->head).len == 0) {
        problem(call, "not_found", "The path at the destination begins behind its name: /to/%.*s/ …", BYTES_ARG(call->params[0]));
        return;
    }
    struct policy *policy = forward->policy = call->api->policy;
    policy_use(policy);
    forward->async = prefers_async(call);
    if (!begin(forward))
        policy_free(policy); /* the problem was sent, and the memory of the call is gone with it */
}
