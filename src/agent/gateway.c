#include "agent/gateway.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/forward.h"
#include "base/when.h"
#include "mcp/route.h"

#define WAIT_MAX_US (300 * WHEN_SECOND) /* for an equal call that is under way */
#define LEASE_MORE_US (60 * WHEN_SECOND)
#define SCOPE_MAX 256

/* ---- servers ---- */

static const char *const gateway_outcome_names[GATEWAY_OUTCOMES] = {"passed", "done", "replayed", "failed", "unknown", "refused"};

static struct gateway_server *server_of(struct gateway *gateway, struct bytes name)
{
    for (struct gateway_server *server = gateway->servers; server != NULL; server = server->next)
        if (bytes_is(name, server->name))
            return server;
    struct gateway_server *server = calloc(1, sizeof *server);
    ASSERT(server != NULL);
    snprintf(server->name, sizeof server->name, "%.*s", BYTES_ARG(name));
    server->next = gateway->servers;
    gateway->servers = server;
    return server;
}

static struct gateway *gateway_of(struct call *call)
{
    struct api *api = call->api;
    struct why why;
    if (api->gateway != NULL)
        return api->gateway;
    struct gateway *gateway = calloc(1, sizeof *gateway);
    ASSERT(gateway != NULL);
    if (upstream_open(engine_env(api->engine), api->secrets, &gateway->upstream, &why) != OK) {
        free(gateway);
        problem(call, "internal", "%s.", why.text);
        return NULL;
    }
    api->gateway = gateway;
    return gateway;
}

/* False when the problem was sent. */
static bool has_bridge(struct call *call, struct gateway *gateway)
{
    struct api *api = call->api;
    struct why why;
    if (gateway->bridge != NULL || bridge_open(engine_env(api->engine), api->secrets, &gateway->bridge, &why) == OK)
        return true;
    problem(call, "internal", "%s.", why.text);
    return false;
}

void gateway_close(struct api *api)
{
    if (api->gateway == NULL)
        return;
    api->gateway->closed = true;
    upstream_close(api->gateway->upstream); /* what it broke off is answered when the server closes */
    bridge_close(api->gateway->bridge);
    api->gateway->upstream = NULL;
    api->gateway->bridge = NULL;
}

void gateway_set_policy(struct gateway *gateway, struct policy *policy)
{
    if (gateway != NULL && gateway->bridge != NULL)
        bridge_set_policy(gateway->bridge, policy);
}

void gateway_free(struct api *api)
{
    struct gateway *gateway = api->gateway;
    while (gateway != NULL && gateway->servers != NULL) {
        struct gateway_server *server = gateway->servers;
        gateway->servers = server->next;
        mcp_hints_free(&server->hints);
        free(server);
    }
    free(gateway);
    api->gateway = NULL;
}

void gateway_metrics(const struct gateway *gateway, struct buf *out)
{
    if (gateway == NULL)
        return;
    buf_add_cstr(
        out, "# HELP semel_mcp_calls_total Tool calls at /mcp, by what became of them.\n# TYPE semel_mcp_calls_total counter\n");
    for (const struct gateway_server *server = gateway->servers; server != NULL; server = server->next)
        for (int i = 0; i < GATEWAY_OUTCOMES; i++)
            buf_printf(out, "semel_mcp_calls_total{server=\"%s\",outcome=\"%s\"} %llu\n", server->name, gateway_outcome_names[i],
                       (unsigned long long)server->counts[i]);
}

/* ---- the request ---- */

static bool is_dropped(struct bytes name)
{
    /* What comes back is looked at, so it must not be packed. */
    return forward_is_own(name) || bytes_eq_nocase(name, BYTES("accept-encoding"));
}

static bool make_request(struct passage *passage)
{
    struct call *call = passage->call;
    const struct http_head *head = &call->request->head;
    struct effect_request *request = &passage->request;
    request->method = head->method_text;
    request->path = passage->rules->path;
    request->body = call->request->body;
    request->headers = arena_zalloc(call->request->arena, head->header_count + 1, sizeof *request->headers);
    for (size_t i = 0; request->headers != NULL && i < head->header_count; i++) {
        struct pair pair = {head->headers[i].name, head->headers[i].value};
        bool authorizes = bytes_eq_nocase(pair.name, BYTES("authorization"));
        bool theirs = authorizes && !bytes_starts(pair.value, BYTES("Bearer sml_")) && passage->destination != NULL &&
                      passage->destination->secret.kind == SECRET_NONE;
        if (theirs || !is_dropped(pair.name))
            request->headers[request->header_count++] = pair;
    }
    return request->headers != NULL;
}

/* ---- which calls are equal ---- */

static bool choose_scope(struct passage *passage)
{
    struct call *call = passage->call;
    struct bytes run = http_header(&call->request->head, "semel-run");
    if (run.at == NULL)
        run = passage->tool.run;
    if (run.at == NULL && passage->session.at != NULL)
        run = arena_printf(call->request->arena, "session-%.*s", BYTES_ARG(passage->session));
    passage->by_window = run.at == NULL;
    passage->scope = run.at != NULL ? run : arena_printf(call->request->arena, "same-%.*s", BYTES_ARG(call->actor));
    return passage->scope.len > 0 && passage->scope.len <= SCOPE_MAX && bytes_is_utf8(passage->scope);
}

/* ---- counting ---- */

static enum status write_counted(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct passage *passage = ((struct call *)command->user)->state;
    return calls_take(store, &passage->calls, ledger->now.wall_us, why);
}

static enum status write_answered(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    const struct call *call = command->user;
    const struct passage *passage = call->state;
    if (atomic_load(&call->request->gone)) /* a client that left will ask for this one again */
        return OK;
    return calls_answered(store, &passage->calls.name, passage->calls.content, passage->calls.number, ledger->now.wall_us, why);
}

void passage_will_answer(struct passage *passage, struct engine_command *command)
{
    if (passage->calls.content != NULL)
        command->also = write_answered;
}

/* ---- claiming ---- */

static void give_replay(struct passage *passage)
{
    const struct ledger_answer *answer = &passage->replay;
    bool (*write)(struct buf *, struct bytes, const struct json *, const char *) =
        passage->turn.named ? mcp_write_turn_replay : mcp_write_replay;
    struct json kept;
    struct why why;
    struct buf out;
    char intent[32];
    id_format("int", answer->intent, intent);
    buf_init(&out, 2 * MCP_LINE_MAX);
    passage->server->counts[GATEWAY_REPLAYED]++;
    if (answer->result.at != NULL &&
        json_parse(answer->result, &mcp_json_limits, passage->call->request->arena, &kept, &why) == OK &&
        write(&out, passage->message.id, &kept, intent) && !out.failed) {
        passage_reply(passage, 200, &out);
        return;
    }
    buf_release(&out);
    passage_error(passage, 200, MCP_ERROR_NOT_KEPT,
                  "This call was made before and it happened, but its result is not kept. Do not call it again; look at what it "
                  "did instead.");
}

/* What could not be written down is replayed once more, which is the safe side. */
static void replay_counted(struct call *call)
{
    give_replay(call->state);
}

static void tell_replay(struct passage *passage)
{
    struct call *call = passage->call;
    passage->replay = call->command.answer;
    if (passage->calls.content == NULL) {
        give_replay(passage);
        return;
    }
    call->command = (struct engine_command){.write = write_answered};
    call_submit(call, replay_counted);
}

static void tell_verdict(struct passage *passage)
{
    const struct ledger_answer *answer = &passage->call->command.answer;
    passage->server->counts[answer->verdict == VERDICT_OUTCOME_UNKNOWN ? GATEWAY_UNKNOWN : GATEWAY_REFUSED]++;
    switch (answer->verdict) {
    case VERDICT_OUTCOME_UNKNOWN:
        if (answer->other) {
            passage_error(passage, 200, MCP_ERROR_OUTCOME_UNKNOWN, "%s", MCP_OTHER_UNKNOWN);
            return;
        }
        passage_error(
            passage, 200, MCP_ERROR_OUTCOME_UNKNOWN,
            "An earlier call with these arguments stopped in the middle, and nobody can tell whether it happened. Do not call it "
            "again: it could happen twice. Tell the user. A person settles it with `semel exceptions resolve`.");
        return;
    case VERDICT_KEY_REUSED:
        passage_error(passage, 200, MCP_ERROR_KEY_REUSED,
                      "The idempotency key was used before with other arguments. Use a new key for a new call.");
        return;
    case VERDICT_REFUSED:
        passage_error(passage, 200, MCP_ERROR_REFUSED, "This call was given up and will not be made: %.*s",
                      BYTES_ARG(answer->error.at != NULL ? answer->error : BYTES("no reason was given")));
        return;
    case VERDICT_EXPIRED:
        passage_error(passage, 200, MCP_ERROR_NOT_KEPT,
                      "This call was settled long ago, and its result is not kept any more. Do not call it again.");
        return;
    case VERDICT_IN_PROGRESS:
    case VERDICT_PROCEED:
    case VERDICT_REPLAY:
    case VERDICT_DONE:
    case VERDICT_FENCED:
    case VERDICT_DIFFERS:
    case VERDICT_ALREADY_SENT:
    case VERDICT_NOT_FOUND:
        break;
    }
    passage_error(passage, 200, MCP_ERROR_IN_PROGRESS, "%s",
                  answer->other ? MCP_OTHER_IN_PROGRESS
                                : "The same call is still running. Wait, then call it again: it will give that call's result.");
}

static void claimed(struct call *call)
{
    struct passage *passage = call->state;
    const struct ledger_answer *answer = &call->command.answer;
    passage->intent = answer->intent;
    if (call->command.status != OK) {
        passage->intent = 0;
        passage->server->counts[GATEWAY_REFUSED]++;
        passage_error(passage, 200, MCP_ERROR_UNAVAILABLE,
                      "The tool was not called, because semel's ledger cannot be used now: %s", call->command.why.text);
    } else if (answer->verdict == VERDICT_PROCEED) {
        passage->fence = answer->fence;
        passage->held = answer->fence != 0; /* shadow mode: a duplicate that is let through is nobody's result */
        passage_send(passage);
    } else if (answer->verdict == VERDICT_REPLAY) {
        tell_replay(passage);
    } else {
        tell_verdict(passage);
    }
}

/* False when the problem was sent. */
static bool name_by_arguments(struct passage *passage)
{
    struct call *call = passage->call;
    struct json *input = arena_zalloc(call->request->arena, 1, sizeof *input);
    struct why why;
    ASSERT(input != NULL);
    passage->naming = (struct claim_naming){
        .workflow = passage->rules->workflow,
        .key = mcp_key_text(&passage->identity, passage->scope, passage->tool.tool, passage->calls.number, call->request->arena),
        .run = passage->by_window ? BYTES_NONE : passage->scope,
        .action = passage->tool.tool.len <= MCP_ACTION_MAX ? passage->tool.tool : BYTES_NONE};
    if (passage->identity.input.at == NULL)
        return true;
    if (json_parse(passage->identity.input, &mcp_json_limits, call->request->arena, input, &why) != OK) {
        passage_release(passage);
        problem(call, "too_large", "%s.", why.text);
        return false;
    }
    passage->naming.input = input;
    return true;
}

/* How long an equal call that is under way is waited for: as the caller prefers, else as long as a call may take. */
static int64_t wait_of(const struct passage *passage)
{
    int64_t wait_us = claims_preferred_wait_ms(passage->call) * WHEN_MS;
    if (wait_us > 0)
        return wait_us;
    return passage->rules->timeout_us < WAIT_MAX_US ? passage->rules->timeout_us : WAIT_MAX_US;
}

static void submit(struct passage *passage)
{
    struct call *call = passage->call;
    struct ledger_command *claim = &call->command.ledger;
    struct policy *policy = passage->policy;
    bool in_turn = passage->turn.named;
    if (!claims_name(call, &passage->naming, claim)) {
        policy_free(policy); /* the problem was sent, and the memory of the call is gone with it */
        return;
    }
    claim->op = OP_CLAIM;
    claim->in_turn = in_turn;
    claim->two_phase = false; /* it counts as sent from the moment it is taken */
    claim->attempts_max = INT32_MAX;
    claim->lease_us = passage->rules->timeout_us + LEASE_MORE_US;
    if (passage->treatment.idempotent && !in_turn) /* equal calls may be made again; answers say things anew */
        claim->on_unknown = ON_UNKNOWN_RETRY;
    if (passage->by_window && passage->identity.given.at == NULL && !in_turn) {
        claim->keep_us = passage->rules->window_us;
        claim->tombstone_us = 0;
    }
    call->command.wait_us = wait_of(passage);
    call_submit(call, claimed);
}

/* ---- an answer in a conversation ---- */

static enum status read_turn(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct passage *passage = call->state;
    const struct mcp_turn *turn = &passage->turn;
    const struct answer_naming answer = {turn->event, turn->question,
                                         turn->epoch == MCP_EPOCH_UNSAID ? EPOCH_UNSAID : turn->epoch};
    struct bytes field;
    passage->naming = (struct claim_naming){
        .thread = turn->thread, .action = turn->action, .run = passage->by_window ? BYTES_NONE : passage->scope};
    return answer_name(store, call->space, &answer, call->request->arena, &passage->naming, &field, why);
}

static void turn_read(struct call *call)
{
    struct passage *passage = call->state;
    if (call->read.status == OK) {
        submit(passage);
        return;
    }
    passage->server->counts[GATEWAY_REFUSED]++;
    if (call->read.status == NOTHING || call->read.status == INVALID)
        passage_error(passage, 200, MCP_ERROR_PARAMS,
                      "The tool was not called: what is answered was not said, or is not there. %s", call->read.why.text);
    else
        passage_error(passage, 200, MCP_ERROR_UNAVAILABLE,
                      "The tool was not called, because semel's ledger cannot be used now: %s", call->read.why.text);
}

static void proceed(struct passage *passage)
{
    if (passage->treatment.passes) {
        passage->server->counts[GATEWAY_PASSED]++;
        passage_send(passage);
    } else if (passage->turn.named) {
        call_submit_read(passage->call, read_turn, turn_read);
    } else if (name_by_arguments(passage)) {
        submit(passage);
    }
}

static void counted(struct call *call)
{
    struct passage *passage = call->state;
    if (call->command.status == OK && !passage->calls.refused) {
        call->command = (struct engine_command){0};
        proceed(passage);
        return;
    }
    passage->server->counts[GATEWAY_REFUSED]++;
    if (call->command.status != OK)
        passage_error(passage, 200, MCP_ERROR_UNAVAILABLE,
                      "The tool was not called, because semel's ledger cannot be used now: %s", call->command.why.text);
    else
        passage_error(passage, 200, MCP_ERROR_BUDGET,
                      "This run or token has used up its tool calls (calls_per_run, calls_per_hour in the policy). Stop, and "
                      "tell the user.");
}

static void count(struct passage *passage)
{
    struct call *call = passage->call;
    const struct mcp_server_rules *rules = passage->rules;
    bool repeats = !passage->treatment.passes && passage->treatment.repeat_us >= 0;
    passage->calls = (struct calls_order){.name = {call->space, rules->name, call->actor, passage->scope},
                                          .per_run = rules->calls_per_run,
                                          .per_hour = rules->calls_per_hour,
                                          .content = repeats ? &passage->identity.content : NULL,
                                          .repeat_us = passage->treatment.repeat_us,
                                          .number = 1};
    if (!calls_are_counted(&passage->calls)) {
        proceed(passage);
        return;
    }
    call->command = (struct engine_command){.write = write_counted};
    call_submit(call, counted);
}

/* ---- messages ---- */

/* What a proxy routes by must be what the server reads. */
static bool headers_match(const struct passage *passage)
{
    const struct http_head *head = &passage->call->request->head;
    struct bytes method = http_header(head, "mcp-method"), name = http_header(head, "mcp-name");
    return (method.at == NULL || bytes_eq(method, passage->message.method)) &&
           (name.at == NULL || bytes_eq(mcp_from_header(name, passage->call->request->arena), passage->tool.tool));
}

static struct bytes find_header(const void *head, struct bytes name)
{
    return http_header(head, name.at);
}

/* Only callers of 2026-07-28 send these headers; which ones, the server's list of tools has said. */
static enum status check_params(struct passage *passage, struct why *why)
{
    struct arena *arena = passage->call->request->arena;
    struct mcp_route route;
    mcp_route_read(&passage->message, arena, &route);
    if (!route.modern)
        return OK;
    return mcp_params_check(mcp_hints_params(&passage->server->hints, passage->tool.tool), passage->tool.arguments, find_header,
                            &passage->call->request->head, arena, why);
}

static void take_call(struct passage *passage)
{
    struct arena *arena = passage->call->request->arena;
    struct why why;
    if (mcp_call_read(passage->message.params, arena, &passage->tool, &why) != OK) {
        passage_error(passage, 400, MCP_ERROR_PARAMS, "%s", why.text);
        return;
    }
    if (!headers_match(passage)) {
        passage_error(passage, 400, MCP_ERROR_HEADERS, "Mcp-Method or Mcp-Name is not what the body says.");
        return;
    }
    if (check_params(passage, &why) != OK) {
        passage_error(passage, 400, MCP_ERROR_HEADERS, "%s", why.text);
        return;
    }
    if (bytes_is(passage->message.id, "null") || !choose_scope(passage)) {
        passage_error(passage, 400, MCP_ERROR_REQUEST, "The id is null, or the run is not a text of 1 to %d bytes.", SCOPE_MAX);
        return;
    }
    passage->treatment = mcp_treat(passage->rules, &passage->server->hints, passage->tool.tool);
    if (passage->treatment.passes) {
        count(passage);
    } else if (mcp_turn_of(&passage->tool, &passage->treatment, arena, &passage->turn, &why) != OK) {
        passage->server->counts[GATEWAY_REFUSED]++;
        passage_error(passage, 200, MCP_ERROR_PARAMS, "%s", why.text);
    } else if (mcp_identify(&passage->tool, &passage->treatment, passage->rules->name, arena, &passage->identity, &why) != OK) {
        passage_error(passage, 400, MCP_ERROR_PARAMS, "%s", why.text);
    } else {
        count(passage);
    }
}

/* The client does not wait for that call any more. The call goes on. */
static bool abandon(struct passage *passage)
{
    struct json json;
    struct why why;
    const struct json *id = passage->message.params.at != NULL &&
                                    json_parse(passage->message.params, NULL, passage->call->request->arena, &json, &why) == OK
                                ? json_get(&json, BYTES("requestId"))
                                : NULL;
    bool found = false;
    for (struct passage *held = passage->gateway->held; id != NULL && held != NULL; held = held->next) {
        if (held->server != passage->server || !bytes_eq(held->call->space, passage->call->space) ||
            !bytes_eq(held->session, passage->session) || !bytes_eq(held->message.id, id->raw))
            continue;
        if (held->treatment.attached)
            atomic_store(&held->cancelled, true); /* and the server is told */
        else
            found = true;
    }
    return found;
}

static bool is_harmless_batch(const struct passage *passage)
{
    struct json json;
    struct why why;
    bool harmless = json_parse(passage->request.body, &mcp_json_limits, passage->call->request->arena, &json, &why) == OK;
    for (uint32_t i = 0; harmless && i < json.count; i++) {
        const struct json *method = json_get(&json.items[i], BYTES("method"));
        harmless = json.items[i].type == JSON_OBJECT &&
                   (method == NULL || (method->type == JSON_STRING && !bytes_is(method->text, "tools/call")));
    }
    return harmless;
}

static void take_message(struct passage *passage)
{
    const struct mcp_message *message = &passage->message;
    bool calls = bytes_is(message->method, "tools/call");
    if (message->doubtful || message->kind == MCP_OTHER) {
        passage_error(passage, 400, MCP_ERROR_PARSE, "semel cannot read the body as one JSON-RPC message without doubt.");
    } else if ((message->kind == MCP_BATCH && !is_harmless_batch(passage)) || (calls && message->kind == MCP_NOTIFICATION)) {
        passage_error(passage, 400, MCP_ERROR_REQUEST, "semel takes tool calls one by one, each with an id.");
    } else if (message->kind == MCP_REQUEST && calls) {
        take_call(passage);
    } else if (message->kind == MCP_NOTIFICATION && bytes_is(message->method, "notifications/cancelled") && abandon(passage)) {
        struct call *call = passage->call;
        passage_release(passage);
        call_reply_as(call, 202, NULL, BYTES(""));
    } else {
        passage->lists_tools = message->kind == MCP_REQUEST && bytes_is(message->method, "tools/list");
        passage_send(passage);
    }
}

/* ---- the door ---- */

void mcp_gateway(struct call *call)
{
    const struct mcp_server_rules *rules = policy_mcp(call->api->policy, call->params[0]);
    enum http_method method = call->request->head.method;
    if (rules == NULL || (rules->destination.at == NULL && rules->command == NULL)) {
        problem(call, "not_found", "There is no MCP server \"%.*s\" with a destination or a command in the policy.",
                (int)(call->params[0].len < 64 ? call->params[0].len : 64), call->params[0].at);
        return;
    }
    if (call->stopped && method != HTTP_POST) {
        problem(call, "agent_stopped", "An operator stopped this agent.");
        return;
    }
    struct gateway *gateway = gateway_of(call);
    if (gateway == NULL || (rules->command != NULL && !has_bridge(call, gateway)))
        return;
    struct passage *passage = arena_zalloc(call->request->arena, 1, sizeof *passage);
    ASSERT(passage != NULL);
    *passage =
        (struct passage){.call = call,
                         .gateway = gateway,
                         .server = server_of(gateway, rules->name),
                         .policy = call->api->policy,
                         .rules = rules,
                         .destination = rules->command == NULL ? policy_destination(call->api->policy, rules->destination) : NULL,
                         .session = http_header(&call->request->head, "mcp-session-id")};
    call->state = passage;
    policy_use(passage->policy);
    if (!make_request(passage)) {
        passage_release(passage);
        problem(call, "too_large", "The request needs too much memory.");
        return;
    }
    if (method != HTTP_POST) {
        passage_send(passage);
        return;
    }
    mcp_message_read(call->request->body, &passage->message);
    if (call->stopped)
        passage_error(
            passage, 200, MCP_ERROR_STOPPED,
            "An operator stopped this agent. Nothing was done. Stop, and tell the user: it goes on after `semel agents start`.");
    else
        take_message(passage);
}
