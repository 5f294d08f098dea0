/* gateway_answer: the request to the server, and what comes back. */
#include <stdarg.h>
#include <stdlib.h>

#include "agent/gateway.h"
#include "base/when.h"

#define STREAM_US (24 * WHEN_HOUR) /* a stream that the client listens to */
#define ARENA_MAX ((size_t)64 << 20)

/* ---- semel's own words ---- */

void passage_release(struct passage *passage)
{
    policy_free(passage->policy);
    passage->policy = NULL;
}

void passage_reply(struct passage *passage, int status, struct buf *out)
{
    struct call *call = passage->call;
    char intent[32];
    if (passage->intent != 0) {
        id_format("int", passage->intent, intent);
        call_headerf(call, "Semel-Intent", "%s", intent);
    }
    passage_release(passage);
    call_reply_as(call, status, "application/json", buf_bytes(out));
    buf_release(out);
}

void passage_error(struct passage *passage, int status, enum mcp_error code, const char *format, ...)
{
    char sentence[1024], intent[32] = "";
    struct buf out;
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    if (passage->intent != 0)
        id_format("int", passage->intent, intent);
    buf_init(&out, passage->message.id.len + 8192);
    bool answers = passage->message.kind == MCP_REQUEST;
    mcp_write_error(&out, answers ? passage->message.id : BYTES_NONE, code, intent, sentence);
    passage_reply(passage, status, &out);
}

/* ---- the server's words ---- */

static bool is_dropped(struct bytes name)
{
    return bytes_eq_nocase(name, BYTES("date")) || bytes_eq_nocase(name, BYTES("x-request-id")) ||
           bytes_eq_nocase(name, BYTES("content-length"));
}

/* NULL when there is no memory. */
static struct http_header *make_headers(struct passage *passage, size_t *ret_count)
{
    struct call *call = passage->call;
    struct http_header *headers = arena_zalloc(call->request->arena, passage->head.header_count + 2, sizeof *headers);
    size_t n = 0;
    char intent[32];
    for (size_t i = 0; headers != NULL && i < passage->head.header_count; i++)
        if (!is_dropped(passage->head.headers[i].name))
            headers[n++] = (struct http_header){passage->head.headers[i].name, passage->head.headers[i].value};
    if (headers == NULL)
        return NULL;
    headers[n++] = (struct http_header){BYTES("X-Request-Id"), bytes_of(call->request_id)};
    if (passage->intent != 0) {
        struct bytes id = arena_dup(call->request->arena, (struct bytes){intent, id_format("int", passage->intent, intent)});
        headers[n++] = (struct http_header){BYTES("Semel-Intent"), id};
    }
    *ret_count = n;
    return headers;
}

static void count_reply(struct api *api, int status)
{
    atomic_fetch_add(&api->replies[status / 100 < 6 ? status / 100 : 5], 1);
}

void passage_drop(struct passage *passage)
{
    mcp_sse_release(&passage->sse);
    buf_release(&passage->body);
    buf_release(&passage->answer);
    buf_release(&passage->data);
    buf_release(&passage->transport.body);
    arena_release(&passage->arena);
}

/* On the loop, behind the head of a stream. */
static void begin_on_loop(void *arg)
{
    struct passage *passage = arg;
    size_t count = 0;
    struct http_header *headers = make_headers(passage, &count);
    const struct http_reply reply = {
        .status = passage->head.status, .headers = headers, .header_count = headers != NULL ? count : 0};
    count_reply(passage->call->api, reply.status);
    http_reply_begin(passage->call->request, &reply);
}

struct piece {
    struct passage *passage;
    struct bytes bytes; /* behind the struct */
};

static void piece_on_loop(void *arg)
{
    struct piece *piece = arg;
    http_reply_piece(piece->passage->call->request, piece->bytes);
    free(piece);
}

static void pass_piece(struct passage *passage, struct bytes bytes)
{
    struct piece *piece = bytes.len > 0 && !passage->broken ? malloc(sizeof *piece + bytes.len) : NULL;
    if (piece == NULL) {
        passage->broken = passage->broken || bytes.len > 0;
        return;
    }
    *piece = (struct piece){passage, {(const char *)(piece + 1), bytes.len}};
    memcpy(piece + 1, bytes.at, bytes.len);
    http_server_post(passage->call->api->server, piece_on_loop, piece);
}

/* ---- on the upstream thread ---- */

static struct bytes reply_header(const struct effect_reply *reply, const char *name)
{
    for (size_t i = 0; i < reply->header_count; i++)
        if (bytes_eq_nocase(reply->headers[i].name, bytes_of(name)))
            return reply->headers[i].value;
    return BYTES_NONE;
}

static void on_head(struct transport_call *call)
{
    struct passage *passage = call->user;
    bool events = bytes_starts(reply_header(&call->reply, "content-type"), BYTES("text/event-stream"));
    passage->head = call->reply; /* in the passage's arena */
    passage->streaming = events && call->reply.status >= 200 && call->reply.status < 300;
    passage->begun = passage->streaming;
    if (passage->streaming)
        http_server_post(passage->call->api->server, begin_on_loop, passage);
}

static bool answers(const struct passage *passage, struct bytes data)
{
    struct mcp_message message;
    mcp_message_read(data, &message);
    return message.kind == MCP_RESPONSE && bytes_eq(message.id, passage->message.id);
}

/* Events pass; the one that answers a tool call waits until the ledger has it. */
static void on_event(struct passage *passage, struct bytes event, struct bytes data)
{
    bool wanted = (passage->held || passage->lists_tools) && passage->data.len == 0 && answers(passage, data);
    if (wanted)
        buf_add(&passage->data, data);
    if (wanted && passage->held)
        buf_add(&passage->answer, event);
    else
        pass_piece(passage, event);
}

static void on_body(struct transport_call *call, struct bytes piece)
{
    struct passage *passage = call->user;
    struct bytes event, data;
    if (!passage->streaming) {
        buf_add(&passage->body, piece);
    } else if (!passage->held && !passage->lists_tools) {
        pass_piece(passage, piece);
    } else if (!mcp_sse_feed(&passage->sse, piece)) {
        passage->broken = true;
    } else {
        while (mcp_sse_next(&passage->sse, &event, &data))
            on_event(passage, event, data);
    }
}

static bool is_unwanted(struct transport_call *call)
{
    struct passage *passage = call->user;
    bool gone = atomic_load(&passage->call->request->gone);
    if (passage->held)
        return passage->treatment.attached && (gone || atomic_load(&passage->cancelled));
    return gone || atomic_load(&passage->call->api->stopping);
}

/* ---- the end ---- */

static void learn(struct passage *passage)
{
    struct mcp_message message;
    mcp_message_read(passage->streaming ? buf_bytes(&passage->data) : buf_bytes(&passage->body), &message);
    if (message.kind == MCP_RESPONSE && message.result.at != NULL)
        mcp_hints_learn(&passage->server->hints, message.result);
}

/* The whole of an answer that passes. */
static void give_passing(struct passage *passage)
{
    bool whole = passage->transport.end == TRANSPORT_ANSWERED && !passage->broken && !passage->body.failed;
    if (passage->lists_tools && whole)
        learn(passage);
    if (passage->begun || passage->transport.end == TRANSPORT_ANSWERED) {
        passage_give(passage);
        return;
    }
    struct call *call = passage->call;
    struct why why = passage->transport.why;
    bool sent = passage->transport.end != TRANSPORT_NOT_SENT;
    passage_drop(passage);
    passage_release(passage);
    problem(call, sent ? "no_answer" : "unreachable", "%s.", why.text);
}

void passage_give(struct passage *passage)
{
    struct call *call = passage->call;
    bool whole = passage->transport.end == TRANSPORT_ANSWERED && !passage->broken && !passage->body.failed;
    size_t count = 0;
    if (passage->begun) {
        http_reply_piece(call->request, buf_bytes(&passage->answer));
        if (whole)
            http_reply_piece(call->request, mcp_sse_rest(&passage->sse));
    }
    struct http_header *headers = passage->begun ? NULL : make_headers(passage, &count);
    const struct http_reply reply = {
        .status = passage->head.status, .headers = headers, .header_count = count, .body = buf_bytes(&passage->body)};
    struct passage kept = *passage; /* its memory ends with the answer */
    struct buf out = call->out;
    passage_release(passage);
    if (kept.begun) {
        http_reply_end(call->request, whole || kept.answer.len > 0);
    } else if (!whole || headers == NULL) {
        problem(call, "cut_off", "The server's answer was cut off, or is too large.");
        passage_drop(&kept);
        return;
    } else {
        count_reply(call->api, reply.status);
        http_reply(call->request, &reply);
    }
    buf_release(&out);
    passage_drop(&kept);
}

static void forget_held(struct passage *passage)
{
    struct passage **at = &passage->gateway->held;
    while (*at != NULL && *at != passage)
        at = &(*at)->next;
    if (*at != NULL)
        *at = passage->next;
}

static void done_on_loop(void *arg)
{
    struct passage *passage = arg;
    if (!passage->held) {
        give_passing(passage);
        return;
    }
    forget_held(passage);
    passage_settle(passage);
}

static void on_done(struct transport_call *call)
{
    struct passage *passage = call->user;
    http_server_post(passage->call->api->server, done_on_loop, passage);
}

void passage_send(struct passage *passage)
{
    struct call *call = passage->call;
    bool listens = call->request->head.method == HTTP_GET;
    size_t most = passage->destination != NULL ? (size_t)passage->destination->response_max : MCP_LINE_MAX;
    arena_init(&passage->arena, ARENA_MAX);
    mcp_sse_init(&passage->sse, MCP_LINE_MAX);
    buf_init(&passage->body, most < MCP_LINE_MAX ? MCP_LINE_MAX : most);
    buf_init(&passage->answer, MCP_LINE_MAX);
    buf_init(&passage->data, MCP_LINE_MAX);
    passage->transport = (struct transport_call){
        .destination = passage->destination,
        .request = &passage->request,
        .space = call->space,
        .arena = &passage->arena,
        .timeout_us = listens ? STREAM_US : passage->rules->timeout_us,
        .passing = true,
        .unwanted = is_unwanted,
        .on_head = on_head,
        .on_body = on_body,
        .done = on_done,
        .user = passage,
    };
    buf_init(&passage->transport.body, 0);
    if (passage->held) {
        passage->next = passage->gateway->held;
        passage->gateway->held = passage;
    }
    if (passage->rules->command == NULL) {
        upstream_send(passage->gateway->upstream, &passage->transport);
        return;
    }
    passage->bridged = (struct bridge_call){.call = &passage->transport,
                                            .rules = passage->rules,
                                            .actor = call->actor,
                                            .gone = &call->request->gone,
                                            .cancels = passage->treatment.attached};
    bridge_send(passage->gateway->bridge, &passage->bridged);
}
