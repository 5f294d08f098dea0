/* exchange: what goes back to a client: a whole answer, or a stream of events and its last one. */
#include <stdlib.h>

#include "bridge/bridge_own.h"
#include "mcp/answer.h"

static const struct why no_why = {""};

/* The head of an answer, in the call's memory. */
static void give_head(struct bridge_call *call, int status, const char *type, const char *session)
{
    struct effect_reply *reply = &call->call->reply;
    *reply = (struct effect_reply){.status = status, .headers = arena_zalloc(call->call->arena, 3, sizeof *reply->headers)};
    if (reply->headers == NULL)
        return;
    if (type != NULL)
        reply->headers[reply->header_count++] = (struct pair){BYTES("content-type"), bytes_of(type)};
    if (type != NULL && bytes_is(bytes_of(type), "text/event-stream"))
        reply->headers[reply->header_count++] = (struct pair){BYTES("cache-control"), BYTES("no-cache, no-transform")};
    struct bytes id = *session != '\0' ? arena_dup(call->call->arena, bytes_of(session)) : BYTES_NONE;
    if (id.at != NULL)
        reply->headers[reply->header_count++] = (struct pair){BYTES("mcp-session-id"), id};
    call->call->on_head(call->call);
}

void call_end(struct bridge_call *call, enum transport_end end, const struct why *why)
{
    call->call->why = *why;
    call->call->end = end;
    call->call->done(call->call);
}

void call_refuse(struct bridge_call *call, const struct mcp_message *message, int status, int code, const char *sentence)
{
    struct buf out;
    struct bytes id = message != NULL && message->kind == MCP_REQUEST ? message->id : BYTES_NONE;
    buf_init(&out, id.len + 8192);
    if (code != 0)
        mcp_write_error(&out, id, (enum mcp_error)code, NULL, sentence);
    give_head(call, status, code != 0 ? "application/json" : NULL, "");
    call->call->on_body(call->call, buf_bytes(&out));
    buf_release(&out);
    call_end(call, TRANSPORT_ANSWERED, &no_why);
}

static bool takes_events(const struct effect_request *request)
{
    for (size_t i = 0; i < request->header_count; i++) {
        struct bytes rest = request->headers[i].value;
        if (!bytes_eq_nocase(request->headers[i].name, BYTES("accept")))
            continue;
        while (rest.len > 0) {
            struct bytes type = bytes_cut(&rest, ',');
            if (bytes_eq_nocase(bytes_trim(bytes_cut(&type, ';')), BYTES("text/event-stream")))
                return true;
        }
    }
    return false;
}

struct exchange *exchange_new(struct bridge_call *call, int64_t now_us)
{
    struct exchange *exchange = calloc(1, sizeof *exchange);
    ASSERT(exchange != NULL);
    *exchange = (struct exchange){.call = call,
                                  .id = BYTES_NONE,
                                  .token = BYTES_NONE,
                                  .takes_events = takes_events(call->call->request),
                                  .since_us = now_us};
    return exchange;
}

bool exchange_hears(const struct exchange *exchange)
{
    return exchange->takes_events && !atomic_load(exchange->call->gone);
}

void exchange_listen(struct exchange *exchange)
{
    if (exchange->streaming)
        return;
    exchange->streaming = true;
    give_head(exchange->call, 200, "text/event-stream", "");
}

void exchange_say(struct exchange *exchange, struct bytes message)
{
    struct buf out;
    exchange_listen(exchange);
    buf_init(&out, message.len + 64);
    buf_add_cstr(&out, "event: message\ndata: ");
    buf_add(&out, message);
    buf_add_cstr(&out, "\n\n");
    exchange->call->call->on_body(exchange->call->call, buf_bytes(&out));
    buf_release(&out);
}

void exchange_answer(struct exchange *exchange, struct bytes message, const char *session)
{
    if (exchange->streaming) {
        exchange_say(exchange, message);
    } else {
        give_head(exchange->call, 200, "application/json", session);
        exchange->call->call->on_body(exchange->call->call, message);
    }
    call_end(exchange->call, TRANSPORT_ANSWERED, &no_why);
    free(exchange);
}

void exchange_end(struct exchange *exchange, enum transport_end end, const char *sentence)
{
    struct why why;
    (void)why_set(&why, RETRY, "%s", sentence);
    call_end(exchange->call, end, &why);
    free(exchange);
}
