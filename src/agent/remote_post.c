/* remote_post: one request over HTTP to the server, and where the messages of its answer go. */
#include <stdlib.h>

#include "agent/remote.h"
#include "base/when.h"
#include "cli/print.h"
#include "destination/header.h"
#include "env/env.h"

#define OPEN_US (24 * WHEN_HOUR)    /* a request that waits for its answer; a stream */
#define SHORT_US (30 * WHEN_SECOND) /* a notification */
#define LISTEN_PAUSE_US WHEN_SECOND /* before it is listened again */
#define OWN_HEADERS_MAX 8
#define ARENA_MAX ((size_t)256 << 20)

static int64_t now_us(void)
{
    return env_real()->boot_us(env_real());
}

static void post_free(struct post *post)
{
    buf_release(&post->line);
    buf_release(&post->body);
    buf_release(&post->call.body);
    mcp_sse_release(&post->sse);
    arena_release(&post->arena);
    free(post);
}

static bool is_refusal(int status)
{
    return status >= 400 && status < 500 && status != 408;
}

/* ---- messages that came ---- */

/* What the answer to `initialize` settles, before the client can send the next message. */
static void agree(struct post *post, const struct mcp_message *answer)
{
    struct remote *remote = post->remote;
    struct bytes version = mcp_agreed_version(answer->result, &post->arena);
    if (!bytes_is(post->message.method, "initialize") || version.len == 0 || version.len > REMOTE_VERSION_MAX)
        return;
    pthread_mutex_lock(&remote->proxy->lock);
    memcpy(remote->version, version.at, version.len);
    remote->version[version.len] = '\0';
    pthread_mutex_unlock(&remote->proxy->lock);
}

/* A message is a line for the client: a newline in it stands between two words of JSON, or the message is broken anyway. */
static void take_message(struct post *post, struct bytes text)
{
    struct mcp_message message;
    struct buf line;
    buf_init(&line, MCP_LINE_MAX);
    buf_add(&line, bytes_trim(text));
    for (size_t i = 0; i < line.len; i++)
        if (line.at[i] == '\n' || line.at[i] == '\r')
            line.at[i] = ' ';
    mcp_message_read(buf_bytes(&line), &message);
    if (message.kind == MCP_RESPONSE && post->message.kind == MCP_REQUEST && bytes_eq(message.id, post->message.id)) {
        agree(post, &message);
        post->answered = true;
    }
    if (post->kind != POST_OWN && line.len > 0)
        outlet_take(post->remote->proxy, buf_bytes(&line));
    buf_release(&line);
}

static void on_head(struct transport_call *call)
{
    struct post *post = call->user;
    struct remote *remote = post->remote;
    const struct effect_reply *reply = &call->reply;
    struct bytes type = header_find(reply->headers, reply->header_count, BYTES("content-type"));
    struct bytes session = header_find(reply->headers, reply->header_count, BYTES("mcp-session-id"));
    bool good = reply->status >= 200 && reply->status < 300;
    post->events = good && type.len >= 17 && bytes_eq_nocase((struct bytes){type.at, 17}, BYTES("text/event-stream"));
    if (!good || !bytes_is(post->message.method, "initialize"))
        return;
    pthread_mutex_lock(&remote->proxy->lock);
    snprintf(remote->session, sizeof remote->session, "%.*s",
             (int)(session.len <= REMOTE_SESSION_MAX && mcp_is_plain(session) ? session.len : 0), session.at);
    remote->version[0] = '\0';
    pthread_mutex_unlock(&remote->proxy->lock);
}

static void on_body(struct transport_call *call, struct bytes piece)
{
    struct post *post = call->user;
    struct bytes event, data;
    if (!post->events) {
        buf_add(&post->body, piece);
    } else if (post->broken || !mcp_sse_feed(&post->sse, piece)) {
        post->broken = true;
    } else {
        while (mcp_sse_next(&post->sse, &event, &data))
            take_message(post, data);
    }
}

static bool is_unwanted(struct transport_call *call)
{
    struct post *post = call->user;
    return atomic_load(&post->unwanted) || post->broken;
}

/* ---- the end ---- */

/* Why a request has no answer, for its caller. */
static void explain(const struct post *post, struct why *ret)
{
    const struct transport_call *call = &post->call;
    if (call->end == TRANSPORT_ANSWERED || call->end == TRANSPORT_CUT)
        (void)why_set(ret, RETRY, "the MCP server answered with status %d, and not with a result", call->reply.status);
    else
        (void)why_set(ret, RETRY, "%s", call->why.text);
}

/* True when a tool call waited for it. */
static bool settle_flight(struct post *post, const struct why *why)
{
    struct proxy *proxy = post->remote->proxy;
    enum transport_end end = post->call.end;
    bool untouched = end == TRANSPORT_NOT_SENT || (end != TRANSPORT_LOST && is_refusal(post->call.reply.status));
    bool found = false;
    pthread_mutex_lock(&proxy->lock);
    for (struct flight *flight = proxy->flights; flight != NULL && !found; flight = flight->next) {
        if (!flight->at_server || flight->answered || flight->lost || !bytes_eq(flight->message.id, post->message.id))
            continue;
        flight->lost = found = true;
        flight->untouched = untouched;
        flight->why = *why;
        pthread_cond_broadcast(&proxy->changed);
    }
    pthread_mutex_unlock(&proxy->lock);
    return found;
}

/* A request without an answer. The server's own words are passed on where there are any, under the request's id. */
static void settle_silence(struct post *post)
{
    struct mcp_message said;
    struct why why = {""};
    struct buf out;
    explain(post, &why);
    if (settle_flight(post, &why))
        return;
    if (atomic_load(&post->unwanted)) {
        outlet_forget(post->remote->proxy, post->message.id);
        return;
    }
    mcp_message_read(buf_bytes(&post->body), &said);
    buf_init(&out, MCP_LINE_MAX);
    if (said.kind == MCP_RESPONSE && said.error.at != NULL && post->call.end == TRANSPORT_ANSWERED)
        mcp_write_refusal(&out, post->message.id, said.error);
    else
        mcp_write_error(&out, post->message.id, MCP_ERROR_UNAVAILABLE, NULL, why.text);
    if (!out.failed)
        take_message(post, buf_bytes(&out));
    buf_release(&out);
}

static void settle(struct post *post)
{
    bool whole = post->call.end == TRANSPORT_ANSWERED && !post->body.failed;
    struct mcp_message said;
    mcp_message_read(buf_bytes(&post->body), &said);
    bool theirs = post->message.kind == MCP_BATCH || (said.kind == MCP_RESPONSE && bytes_eq(said.id, post->message.id));
    if (!post->events && whole && theirs)
        take_message(post, buf_bytes(&post->body));
    if (post->message.kind == MCP_REQUEST && !post->answered && post->kind == POST_PASSES)
        settle_silence(post);
}

/* What follows from the end for the session. */
static void look_at_session(struct post *post)
{
    struct remote *remote = post->remote;
    struct proxy *proxy = remote->proxy;
    int status = post->call.end == TRANSPORT_NOT_SENT || post->call.end == TRANSPORT_LOST ? 0 : post->call.reply.status;
    struct bytes session = header_find(post->request.headers, post->request.header_count, BYTES("mcp-session-id"));
    pthread_mutex_lock(&proxy->lock);
    /* Only what the client posts tells: there are servers without GET that answer it with 404. */
    if (status == 404 && post->kind == POST_PASSES && post->with_session && bytes_is(session, remote->session) &&
        proxy->server.initialize.len > 0 && !remote->ending) {
        remote->forgotten = true;
        proxy->server.ready = false;
    }
    bool begun = bytes_is(post->message.method, "notifications/initialized") && status >= 200 && status < 300;
    if (begun)
        remote->listen_at_us = now_us();
    else if (post->kind == POST_LISTEN && post->events && bytes_is(session, remote->session))
        remote->listen_at_us = now_us() + LISTEN_PAUSE_US;
    pthread_cond_broadcast(&proxy->changed);
    pthread_mutex_unlock(&proxy->lock);
}

static void on_done(struct transport_call *call)
{
    struct post *post = call->user;
    struct proxy *proxy = post->remote->proxy;
    if (post->kind == POST_PASSES || post->kind == POST_OWN)
        settle(post);
    look_at_session(post);
    pthread_mutex_lock(&proxy->lock);
    struct post **at = &post->remote->posts;
    while (*at != post)
        at = &(*at)->next;
    *at = post->next;
    post->done = true;
    bool mine = !post->awaited;
    pthread_cond_broadcast(&proxy->changed);
    pthread_mutex_unlock(&proxy->lock);
    if (mine)
        post_free(post);
}

/* ---- the beginning ---- */

static void add_header(struct post *post, const char *name, struct bytes value)
{
    struct bytes kept = value.len > 0 ? arena_dup(&post->arena, value) : BYTES_NONE;
    if (kept.at != NULL)
        post->request.headers[post->request.header_count++] = (struct pair){bytes_of(name), kept};
}

/* The arguments that the server wants repeated, as far as its list of tools has said so. */
static void add_params(struct post *post)
{
    struct mcp_call call;
    struct why why;
    if (mcp_call_read(post->message.params, &post->arena, &call, &why) != OK)
        return;
    const struct mcp_params *params = mcp_hints_params(&post->remote->proxy->hints, call.tool);
    for (size_t i = 0; i < params->count; i++) {
        struct bytes name = arena_printf(&post->arena, MCP_PARAM_PREFIX "%.*s", BYTES_ARG(params->at[i].header));
        if (name.at != NULL)
            add_header(post, name.at, mcp_param_header(&params->at[i], call.arguments, &post->arena));
    }
}

/* With the lock: the session may change. */
static void add_headers(struct post *post)
{
    struct remote *remote = post->remote;
    bool body = post->kind == POST_PASSES || post->kind == POST_OWN, begins = bytes_is(post->message.method, "initialize");
    for (size_t i = 0; i < remote->header_count; i++)
        post->request.headers[post->request.header_count++] = remote->headers[i];
    add_header(post, "Accept", body ? BYTES("application/json, text/event-stream") : BYTES("text/event-stream"));
    if (body)
        add_header(post, "Content-Type", BYTES("application/json"));
    if (post->route.modern) {
        add_header(post, "MCP-Protocol-Version", post->route.version);
        add_header(post, "Mcp-Method", mcp_is_plain(post->message.method) ? post->message.method : BYTES_NONE);
        add_header(post, "Mcp-Name", post->route.name);
        if (bytes_is(post->message.method, "tools/call"))
            add_params(post);
    } else if (!begins) {
        post->with_session = remote->session[0] != '\0';
        add_header(post, "Mcp-Session-Id", bytes_of(remote->session));
        add_header(post, "MCP-Protocol-Version", bytes_of(remote->version));
    }
}

struct post *post_begin(struct remote *remote, enum post_kind kind, struct bytes line, bool awaited)
{
    struct post *post = calloc(1, sizeof *post);
    ASSERT(post != NULL);
    post->remote = remote;
    post->kind = kind;
    post->awaited = awaited;
    arena_init(&post->arena, ARENA_MAX);
    mcp_sse_init(&post->sse, MCP_LINE_MAX);
    buf_init(&post->line, MCP_LINE_MAX + 256);
    buf_init(&post->body, MCP_LINE_MAX);
    buf_add(&post->line, line);
    if (line.at != NULL)
        mcp_message_read(buf_bytes(&post->line), &post->message);
    mcp_route_read(&post->message, &post->arena, &post->route);
    post->request = (struct effect_request){.method = kind == POST_LISTEN ? BYTES("GET")
                                                      : kind == POST_END  ? BYTES("DELETE")
                                                                          : BYTES("POST"),
                                            .path = remote->path,
                                            .body = buf_bytes(&post->line)};
    post->request.headers =
        arena_zalloc(&post->arena, REMOTE_HEADERS_MAX + OWN_HEADERS_MAX + MCP_PARAMS_MAX, sizeof(struct pair));
    ASSERT(post->request.headers != NULL);
    bool waits = kind == POST_LISTEN || post->message.kind == MCP_REQUEST || post->message.kind == MCP_BATCH;
    post->call = (struct transport_call){.destination = &remote->destination,
                                         .request = &post->request,
                                         .space = BYTES(""),
                                         .arena = &post->arena,
                                         .timeout_us = waits ? OPEN_US : SHORT_US,
                                         .passing = true,
                                         .unwanted = is_unwanted,
                                         .on_head = on_head,
                                         .on_body = on_body,
                                         .done = on_done,
                                         .user = post};
    buf_init(&post->call.body, 0);
    pthread_mutex_lock(&remote->proxy->lock);
    add_headers(post);
    post->next = remote->posts;
    remote->posts = post;
    pthread_mutex_unlock(&remote->proxy->lock);
    upstream_send(remote->upstream, &post->call);
    return post;
}

int post_wait(struct post *post, int64_t patience_us)
{
    struct proxy *proxy = post->remote->proxy;
    int64_t until_us = now_us() + patience_us;
    int status = 0;
    pthread_mutex_lock(&proxy->lock);
    while (!post->done && now_us() < until_us)
        proxy_wait_until(proxy, until_us);
    bool done = post->done;
    if (done && (post->call.end == TRANSPORT_ANSWERED || post->call.end == TRANSPORT_CUT))
        status = post->call.reply.status;
    post->awaited = false; /* one that is still under way frees itself */
    pthread_mutex_unlock(&proxy->lock);
    if (done)
        post_free(post);
    return status;
}
