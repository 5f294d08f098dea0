#include "api/api.h"
#include "base/log.h"
#include "flow/intake.h"

/* ---- the request, as its sender wrote it ---- */

/* Behind a proxy only the policy knows what the sender called us; a header that anybody may send is not believed. */
static struct bytes sender_url(struct call *call, const struct source *source)
{
    const struct http_head *head = &call->request->head;
    struct bytes host = http_header(head, "host"), target = head->target;
    if (source->url.len > 0) {
        struct bytes base = source->url;
        while (base.len > 0 && base.at[base.len - 1] == '/')
            base.len--;
        return arena_printf(call->request->arena, "%.*s%.*s", BYTES_ARG(base), BYTES_ARG(target));
    }
    return arena_printf(call->request->arena, "%s://%.*s%.*s", http_server_is_tls(call->api->server) ? "https" : "http",
                        BYTES_ARG(host), BYTES_ARG(target));
}

static bool fill_request(struct call *call, const struct source *source, struct receive_request *request)
{
    const struct http_head *head = &call->request->head;
    struct env *env = engine_env(call->api->engine);
    request->method = head->method_text;
    request->url = sender_url(call, source);
    request->body = call->request->body;
    request->now_us = env->wall_us(env);
    request->headers = arena_zalloc(call->request->arena, head->header_count + 1, sizeof *request->headers);
    if (request->headers == NULL || request->url.at == NULL) {
        problem(call, "too_large", "The request needs too much memory.");
        return false;
    }
    for (size_t i = 0; i < head->header_count; i++)
        request->headers[request->header_count++] = (struct pair){head->headers[i].name, head->headers[i].value};
    return true;
}

/* ---- the answers ---- */

static void answer_source(struct call *call, const struct receive_result *result)
{
    struct bytes type = result->reply_type;
    const char *content_type = type.len > 0 ? arena_dup(call->request->arena, type).at : "text/plain; charset=utf-8";
    for (size_t i = 0; i < result->reply_header_count && i < 8; i++)
        call_header(call, arena_dup(call->request->arena, result->reply_headers[i].name).at, result->reply_headers[i].value);
    call_reply_as(call, result->status, content_type, result->reply);
}

static void answer_staged(struct call *call)
{
    const struct intake *intake = call->state;
    if (call->command.status != OK) {
        problem_storage(call, call->command.status, &call->command.why);
        return;
    }
    flow_wake(call->api->flow);
    if (intake->result.reply.at != NULL) {
        answer_source(call, &intake->result);
        return;
    }
    struct json_out out = json_out_to(&call->out);
    char id[32];
    json_open(&out, '{');
    json_name(&out, "events");
    json_open(&out, '[');
    for (size_t i = 0; i < intake->order.count; i++)
        json_text(&out, (struct bytes){id, id_format("evt", intake->order.events[i], id)});
    json_close(&out, ']');
    json_close(&out, '}');
    call_reply(call, 200);
}

static enum status write_staged(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    const struct call *call = command->user;
    return intake_write(store, ledger, call->state, why);
}

static void stage(struct call *call)
{
    call->command.write = write_staged;
    call_submit(call, answer_staged);
}

/* Verified, and nothing in it concerns anybody. */
static void answer_nothing(struct call *call, const struct receive_result *result)
{
    if (result->reply.at != NULL) {
        answer_source(call, result);
        return;
    }
    call_reply_as(call, 200, "application/json", BYTES("{\"events\":[]}"));
}

static void refuse(struct call *call, const struct intake *intake)
{
    LOG(LOG_WARN, "a delivery was refused", LOG_TEXT("source", intake->source->name), LOG_CSTR("peer", call->request->peer),
        LOG_TEXT("why", intake->result.because));
    flow_refused(call->api->flow, intake->source->name);
    if (intake->result.end == RECEIVE_REFUSED)
        problem(call, "signature", "%.*s", BYTES_ARG(intake->result.because));
    else
        problem(call, "invalid", "%.*s", BYTES_ARG(intake->result.because));
}

void in_receive(struct call *call)
{
    const struct source *source = policy_source(call->api->policy, call->params[0]);
    struct intake *intake = arena_zalloc(call->request->arena, 1, sizeof *intake);
    struct why why;
    ASSERT(intake != NULL);
    if (source == NULL) {
        problem(call, "not_found", "There is no source \"%.*s\" in the policy; add it under sources:.",
                (int)(call->params[0].len < 64 ? call->params[0].len : 64), call->params[0].at);
        return;
    }
    if (call->request->body.len > (size_t)source->body_max) {
        problem(call, "too_large", "This source takes at most %lld bytes.", (long long)source->body_max);
        return;
    }
    *intake =
        (struct intake){.source = source, .secrets = call->api->secrets, .space = BYTES("main"), .arena = call->request->arena};
    call->state = intake;
    if (!fill_request(call, source, &intake->request))
        return;
    if (intake_read(intake, &why) != OK) {
        problem(call, "too_large", "%s.", why.text);
        return;
    }
    const struct receive_result *result = &intake->result;
    if (result->end == RECEIVE_REFUSED || result->end == RECEIVE_UNREADABLE)
        refuse(call, intake);
    else if (result->end == RECEIVE_HANDSHAKE)
        answer_source(call, result);
    else if (result->count == 0)
        answer_nothing(call, result);
    else
        stage(call);
}
