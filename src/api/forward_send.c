/* forward_send: the request as it is passed on, and the answer as it is given back; for every face that calls a destination. */
#include <stdlib.h>

#include "api/forward.h"
#include "base/when.h"
#include "destination/header.h"

#define REPLAY_ARENA_MAX (512u << 20)

/* ---- the request ---- */

bool forward_is_own(struct bytes name)
{
    static const char *const names[] = {"authorization",  "prefer",       "semel-token",  "semel-key",       "semel-run",
                                        "semel-workflow", "semel-thread", "semel-action", "semel-occurrence"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bytes_eq_nocase(name, bytes_of(names[i])))
            return true;
    return header_is_request_framing(name);
}

struct bytes forward_path(const struct http_head *head)
{
    size_t at = 0;
    for (int slashes = 0; at < head->path.len; at++)
        if (head->path.at[at] == '/' && ++slashes == 3)
            return bytes_from(head->target, at);
    return BYTES_NONE;
}

/* What proves to the destination who calls: Authorization, or the header that this destination takes instead. */
static bool is_credential(const struct forward *forward, struct bytes name)
{
    const struct auth *auth = &forward->destination->auth;
    return bytes_eq_nocase(name, BYTES("authorization")) ||
           (auth->kind == AUTH_HEADER && auth->header.at != NULL && bytes_eq_nocase(name, auth->header));
}

static bool is_own_token(struct bytes value)
{
    return bytes_starts(value, BYTES("Bearer sml_")) || bytes_starts(value, BYTES("sml_"));
}

static bool is_encoding(struct bytes name)
{
    return bytes_eq_nocase(name, BYTES("accept-encoding"));
}

bool forward_read(struct forward *forward)
{
    struct call *call = forward->call;
    const struct http_head *head = &call->request->head;
    struct effect_request *request = &forward->request;
    request->method = head->method_text;
    request->path = forward_path(head);
    request->body = call->request->body;
    request->headers = arena_zalloc(call->request->arena, head->header_count + 1, sizeof *request->headers);
    if (request->headers == NULL) {
        problem(call, "too_large", "The request needs too much memory.");
        return false;
    }
    for (size_t i = 0; i < head->header_count; i++) {
        struct pair pair = {head->headers[i].name, head->headers[i].value};
        if (is_credential(forward, pair.name) && !is_own_token(pair.value) && forward->credential_count < FORWARD_CREDENTIALS_MAX)
            forward->credentials[forward->credential_count++] = pair;
        if (forward_is_own(pair.name) || is_credential(forward, pair.name) || (forward->plain && is_encoding(pair.name)))
            continue;
        if (!bytes_is_utf8(pair.value)) {
            problem_field(call, pair.name, "The header is not UTF-8, so it cannot be kept exactly.");
            return false;
        }
        request->headers[request->header_count++] = pair;
    }
    return true;
}

bool forward_brings_credential(const struct forward *forward)
{
    return forward->credential_count > 0 && forward->destination->secret.kind == SECRET_NONE;
}

bool forward_authorize(struct forward *forward, const struct effect_request *from)
{
    struct effect_request *ret = &forward->sent;
    *ret = *from;
    if (!forward_brings_credential(forward))
        return true;
    ret->headers =
        arena_zalloc(forward->call->request->arena, from->header_count + forward->credential_count, sizeof *ret->headers);
    if (ret->headers == NULL) {
        problem(forward->call, "too_large", "The request needs too much memory.");
        return false;
    }
    memcpy(ret->headers, from->headers, from->header_count * sizeof *ret->headers);
    for (size_t i = 0; i < forward->credential_count; i++)
        ret->headers[ret->header_count++] = forward->credentials[i];
    return true;
}

/* ---- the answer ---- */

void forward_release(struct forward *forward)
{
    if (forward->over != NULL)
        forward->over(forward);
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
    if (replayed)
        headers[n++] = (struct http_header){BYTES("Idempotent-Replayed"), BYTES("true")};
    if (replayed && answer->expires_us != 0) {
        char expires[32];
        size_t len = when_format(answer->expires_us, expires);
        headers[n++] = (struct http_header){BYTES("Idempotency-Expires"), arena_dup(arena, (struct bytes){expires, len})};
    }
    *ret_count = n;
    return headers;
}

/* As it came first: in the same pieces. */
static void give_pieces(struct call *call, const struct http_reply *answer, const struct effect_reply *reply,
                        const struct reply_notes *notes)
{
    struct bytes rest = reply->body;
    struct buf out = call->out;
    http_reply_begin(call->request, answer);
    for (size_t i = 0; i < notes->piece_count && rest.len > 0; i++) {
        size_t len = notes->pieces[i] < rest.len ? notes->pieces[i] : rest.len;
        http_reply_piece(call->request, (struct bytes){rest.at, len});
        rest = bytes_from(rest, len);
    }
    http_reply_piece(call->request, rest);
    http_reply_end(call->request, true);
    buf_release(&out);
}

/* `notes` NULL: it is new. */
static void give(struct forward *forward, const struct effect_reply *reply, const struct reply_notes *notes)
{
    struct call *call = forward->call;
    size_t count = 0;
    struct http_header *headers = make_headers(call, reply, notes != NULL, &count);
    forward_release(forward);
    if (headers == NULL || reply->status < 200 || reply->status > 599) {
        problem(call, "internal", "The destination's answer cannot be passed on.");
        return;
    }
    struct http_reply answer = {.status = reply->status, .headers = headers, .header_count = count, .body = reply->body};
    atomic_fetch_add(&call->api->replies[reply->status / 100 < 6 ? reply->status / 100 : 5], 1);
    if (notes != NULL && notes->piece_count > 0) {
        give_pieces(call, &answer, reply, notes);
        return;
    }
    struct buf out = call->out;
    http_reply(call->request, &answer);
    buf_release(&out);
}

/* ---- replay ---- */

bool forward_replay(struct forward *forward)
{
    const struct ledger_answer *answer = &forward->call->command.answer;
    struct arena arena;
    struct effect_reply reply;
    struct why why;
    arena_init(&arena, REPLAY_ARENA_MAX);
    bool whole = answer->result.at != NULL && reply_read(answer->result, &arena, &reply, &forward->notes, &why) == OK &&
                 !forward->notes.partial;
    forward->replayed = whole;
    if (whole)
        give(forward, &reply, &forward->notes);
    arena_release(&arena);
    return whole;
}

/* ---- sending ---- */

struct piece {
    struct forward *forward;
    struct bytes bytes; /* behind the struct */
};

static void begin_stream(struct call *call, const struct effect_reply *head, bool replayed)
{
    size_t count = 0;
    struct http_header *headers = make_headers(call, head, replayed, &count);
    struct http_reply reply = {.status = head->status, .headers = headers, .header_count = headers != NULL ? count : 0};
    atomic_fetch_add(&call->api->replies[reply.status / 100 < 6 ? reply.status / 100 : 5], 1);
    http_reply_begin(call->request, &reply);
}

static void begin_on_loop(void *arg)
{
    struct forward *forward = arg;
    forward->begun = true;
    begin_stream(forward->call, &forward->head, false);
}

void forward_follow(struct forward *forward, const struct forward *leader)
{
    forward->call->command.answer = (struct ledger_answer){.intent = leader->attended.intent};
    begin_stream(forward->call, &leader->head, true);
}

static void piece_on_loop(void *arg)
{
    struct piece *piece = arg;
    struct forward *forward = piece->forward;
    http_reply_piece(forward->call->request, piece->bytes);
    if (forward->passed != NULL)
        forward->passed(forward, piece->bytes);
    free(piece);
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
    bool events = bytes_starts(header_find(attended->reply.headers, attended->reply.header_count, BYTES("content-type")),
                               BYTES("text/event-stream"));
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
    bool cut = attended->end == TRANSPORT_CUT && (attended->outcome == OUTCOME_DONE || attended->memo);
    bool answered = attended->end == TRANSPORT_ANSWERED || (attended->end == TRANSPORT_CUT && !cut);
    struct bytes because = attended->because.at != NULL ? attended->because : BYTES("it gave no reason");
    if (attended->intent != 0 && attended->status != OK) {
        forward_release(forward);
        problem_storage(call, attended->status, &attended->why);
    } else if (attended->intent != 0 && attended->state == STATE_UNKNOWN) {
        forward_release(forward);
        problem_with(call, "outcome_unknown", write_sent, "It was sent, and may have happened: %.*s.", BYTES_ARG(because));
    } else if (answered) {
        give(forward, &attended->reply, NULL);
    } else if (cut && !attended->memo) {
        forward_release(forward);
        problem_with(call, "cut_off", write_sent, "It happened, but the answer was cut off: %.*s.",
                     BYTES_ARG(bytes_of(attended->why.text)));
    } else {
        forward_release(forward);
        problem_with(call,
                     attended->end == TRANSPORT_NOT_SENT ? "unreachable"
                     : attended->memo                    ? "model_call_lost"
                                                         : "no_answer",
                     write_sent, "%s.", attended->why.text);
    }
}

/* The rest of a streamed answer; when it did not come, or could not be kept, the client must notice. */
static void end_stream(struct forward *forward)
{
    struct call *call = forward->call;
    const struct act_call *attended = &forward->attended;
    bool whole = attended->end == TRANSPORT_ANSWERED && attended->status == OK && !forward->broken;
    forward->whole = whole;
    forward_release(forward);
    struct buf out = call->out;
    http_reply_end(call->request, whole);
    buf_release(&out);
}

static void answer_not_begun(struct call *call)
{
    struct forward *forward = call->state;
    struct arena pieces = forward->pieces;
    forward_release(forward);
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

void forward_send(struct forward *forward, int64_t intent, int64_t fence)
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
    forward->attended.memo = forward->plain;
    if (intent == 0)
        forward->attended.claimed_us = env->boot_us(env);
    forward->attended.on_head = on_head;
    forward->attended.on_body = on_body;
    forward->attended.done = on_sent;
    forward->attended.user = forward;
    call->state = forward;
    act_attend(call->api->act, &forward->attended);
}
