/* request: what comes from a client, and to which process it goes. */
#include <stdlib.h>

#include "bridge/bridge_own.h"
#include "destination/header.h"
#include "mcp/answer.h"
#include "mcp/rewrite.h"
#include "mcp/route.h"

/* The session that the caller names, if it is the caller's. `id` "" is that of a token without sessions. */
static struct session *find(const struct command *command, struct bytes id, struct bytes actor)
{
    for (struct session *session = command->sessions; session != NULL; session = session->next)
        if (!session->over && bytes_is(id, session->id) && bytes_is(actor, session->actor))
            return session;
    return NULL;
}

/* ---- requests ---- */

/* With a number of our own for its id and its progress token. False when it is too large. */
static bool rewrite(struct exchange *exchange, const struct mcp_message *message, struct bytes line, struct arena *arena,
                    struct buf *out)
{
    char number[24];
    struct buf first;
    snprintf(number, sizeof number, "%lld", (long long)exchange->number);
    exchange->id = message->id;
    exchange->token = mcp_part(message->params, "_meta", "progressToken", arena);
    buf_init(&first, line.len + sizeof number);
    if (exchange->token.at != NULL)
        mcp_put(line, exchange->token, bytes_of(number), &first);
    else
        buf_add(&first, line);
    mcp_put_id(buf_bytes(&first), bytes_of(number), out);
    bool fits = !first.failed && !out->failed;
    buf_release(&first);
    return fits;
}

/* A message stands on one line. White space outside of texts is all that a newline can be. */
static struct bytes one_line(struct bytes body, struct arena *arena)
{
    char *at = arena_alloc(arena, body.len + 1);
    if (at == NULL)
        return BYTES_NONE;
    for (size_t i = 0; i < body.len; i++)
        at[i] = body.at[i] == '\n' || body.at[i] == '\r' ? ' ' : body.at[i];
    return (struct bytes){at, body.len};
}

static void ask(struct session *session, struct bridge_call *call, const struct mcp_message *message, struct bytes line,
                bool modern)
{
    struct bridge *bridge = session->bridge;
    struct exchange *exchange = exchange_new(call, bridge_now_us(bridge));
    struct buf out;
    struct why why;
    exchange->number = ++bridge->numbers;
    exchange->modern = modern;
    exchange->initialize = bytes_is(message->method, "initialize");
    exchange->subscribes = bytes_is(message->method, "subscriptions/listen");
    buf_init(&out, MCP_LINE_MAX);
    if (!rewrite(exchange, message, line, call->call->arena, &out)) {
        exchange_end(exchange, TRANSPORT_NOT_SENT, "the request is too large");
    } else if (session_run(session, &why) != OK) {
        exchange_end(exchange, TRANSPORT_NOT_SENT, why.text);
        session->over = session->over || session->generation == 0;
    } else {
        if (exchange->initialize)
            buf_add(&session->initialize, line);
        session_ask(session, exchange, buf_bytes(&out));
    }
    buf_release(&out);
}

static void begin(struct bridge *bridge, struct command *command, struct bridge_call *call, const struct mcp_message *message,
                  struct bytes line)
{
    static const struct why full = {"as many processes of the MCP server run as may, and all are in use"};
    struct session *session = session_new(bridge, command, call->actor, true);
    if (session == NULL)
        call_end(call, TRANSPORT_NOT_SENT, &full);
    else
        ask(session, call, message, line, false);
}

/* ---- what is no request ---- */

/* A cancel names the request by the client's id. */
static bool cancel(struct session *session, const struct mcp_message *message, struct arena *arena)
{
    struct bytes id = mcp_part(message->params, "requestId", NULL, arena);
    for (const struct exchange *exchange = session->exchanges; exchange != NULL && id.at != NULL; exchange = exchange->next)
        if (bytes_eq(exchange->id, id)) {
            session_cancel(session, exchange);
            return true;
        }
    return false;
}

static void tell(struct session *session, struct bridge_call *call, const struct mcp_message *message, struct bytes line)
{
    struct arena *arena = call->call->arena;
    struct bytes own = message->kind == MCP_RESPONSE ? session_answered(session, message->id, arena) : BYTES_NONE;
    struct buf out;
    buf_init(&out, line.len + own.len);
    if (bytes_is(message->method, "notifications/initialized") && session->initialized.len == 0)
        buf_add(&session->initialized, line);
    if (own.at != NULL)
        mcp_put(line, message->id, own, &out);
    else if (message->kind == MCP_NOTIFICATION && !bytes_is(message->method, "notifications/cancelled"))
        buf_add(&out, line);
    else if (message->kind == MCP_NOTIFICATION)
        (void)cancel(session, message, arena); /* one that is not there any more has ended by itself */
    if (out.len > 0 && session->runs)
        session_tell(session, buf_bytes(&out));
    buf_release(&out);
    session->used_us = bridge_now_us(session->bridge);
    call_refuse(call, message, 202, 0, "");
}

/* ---- by the kind of request ---- */

static void take_message(struct session *session, struct bridge_call *call, const struct mcp_message *message, struct bytes line,
                         bool modern)
{
    if (message->kind == MCP_REQUEST)
        ask(session, call, message, line, modern);
    else
        tell(session, call, message, line);
}

static void post(struct bridge *bridge, struct bridge_call *call, struct command *command, struct bytes id)
{
    struct bytes line = one_line(bytes_trim(call->call->request->body), call->call->arena);
    struct mcp_message message;
    struct mcp_route route;
    struct session *session = NULL;
    if (line.at == NULL) {
        call_refuse(call, NULL, 413, MCP_ERROR_REQUEST, "The request is too large.");
        return;
    }
    mcp_message_read(line, &message);
    mcp_route_read(&message, call->call->arena, &route);
    if (message.kind == MCP_BATCH || message.kind == MCP_OTHER) {
        call_refuse(call, &message, 400, MCP_ERROR_REQUEST, "A server that is a command takes one message at a time.");
    } else if (id.at != NULL) {
        session = find(command, id, call->actor);
        if (session == NULL)
            call_refuse(call, &message, 404, MCP_ERROR_SESSION,
                        "There is no such session, or not any more. Begin anew with initialize.");
        else
            take_message(session, call, &message, line, false);
    } else if (bytes_is(message.method, "initialize") && message.kind == MCP_REQUEST) {
        begin(bridge, command, call, &message, line);
    } else if (!route.modern) {
        call_refuse(call, &message, 400, MCP_ERROR_REQUEST, "Mcp-Session-Id is missing: begin with initialize.");
    } else {
        session = find(command, BYTES(""), call->actor);
        if (session == NULL)
            session = session_new(bridge, command, call->actor, false);
        if (session == NULL)
            call_refuse(call, &message, 503, MCP_ERROR_UNAVAILABLE,
                        "As many processes of the MCP server run as may, and all are in use.");
        else
            take_message(session, call, &message, line, true);
    }
}

static void listen_to(struct bridge_call *call, struct session *session)
{
    struct exchange *exchange = exchange_new(call, bridge_now_us(session->bridge));
    if (!exchange->takes_events) {
        free(exchange);
        call_refuse(call, NULL, 406, MCP_ERROR_REQUEST, "A stream that listens is text/event-stream.");
        return;
    }
    if (session->listener != NULL && exchange_hears(session->listener)) {
        free(exchange);
        call_refuse(call, NULL, 409, MCP_ERROR_REQUEST, "The session is listened to already.");
        return;
    }
    if (session->listener != NULL)
        exchange_end(session->listener, TRANSPORT_ANSWERED, "");
    session->listener = exchange;
    session->used_us = bridge_now_us(session->bridge);
    exchange_listen(exchange);
    session_give_waiting(session);
}

void bridge_take(struct bridge *bridge, struct bridge_call *call)
{
    const struct effect_request *request = call->call->request;
    struct bytes method = request->method, id = header_find(request->headers, request->header_count, BYTES("mcp-session-id"));
    struct command *command = bridge_command(bridge, call);
    if (bytes_is(method, "POST")) {
        post(bridge, call, command, id);
        return;
    }
    struct session *session = id.at != NULL ? find(command, id, call->actor) : NULL;
    if (id.at == NULL) {
        call_refuse(call, NULL, 405, MCP_ERROR_REQUEST, "Only sessions are listened to, and ended.");
    } else if (session == NULL) {
        call_refuse(call, NULL, 404, MCP_ERROR_SESSION, "There is no such session, or not any more.");
    } else if (bytes_is(method, "GET")) {
        listen_to(call, session);
    } else {
        session->over = true; /* what is under way is finished first */
        call_refuse(call, NULL, 200, 0, "");
    }
}
