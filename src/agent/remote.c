#include "agent/remote.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/forms.h"
#include "base/when.h"
#include "cli/print.h"
#include "destination/header.h"
#include "env/env.h"
#include "guard/guard.h"
#include "secret/seal.h"
#include "secret/secret.h"

#define TAKEN_US (30 * WHEN_SECOND) /* for a notification, a handshake */
#define END_US (5 * WHEN_SECOND)    /* for the end of the session */
#define LOOK_EVERY_US (20 * WHEN_MS)

/* ---- opening ---- */

/* The address is guarded as that of a destination: here what can be told at once, and at each connection. */
static enum status read_url(struct proxy *proxy, struct remote *remote, struct why *why)
{
    static const struct guard_ports every_port = {1, UINT16_MAX};
    bool allow_private = cli_on(proxy->cli, "--allow-private");
    const struct guard_rules rules = {
        .allow_private = allow_private, .ports = allow_private ? &every_port : NULL, .port_count = allow_private ? 1 : 0};
    struct guard_url url;
    struct bytes text = proxy->upstream;
    TRY(guard_url_parse(text, &url, why));
    if (url.scheme != GUARD_HTTP && url.scheme != GUARD_HTTPS)
        return why_set(why, INVALID, "--upstream is a URL that begins with http:// or https://");
    if (guard_check(&rules, &url, why) != OK && !allow_private)
        return why_set(why, INVALID, "%s. Give --allow-private for a server on this computer or in its network", why->text);
    TRY(guard_check(&rules, &url, why));
    remote->path = url.target.len > 0 ? url.target : BYTES("/");
    remote->destination = (struct destination){.name = proxy->name,
                                               .kind = DESTINATION_HTTP,
                                               .url = {text.at, text.len - url.target.len},
                                               .auth = {.kind = AUTH_NONE},
                                               .allow_private = allow_private,
                                               .tls_verify = true};
    return OK;
}

/* NAME=REFERENCE: the value itself would be seen by everyone who lists processes. */
static enum status read_header(struct proxy *proxy, struct remote *remote, struct secrets *secrets, struct bytes text,
                               struct why *why)
{
    struct arena *arena = &proxy->cli->arena;
    struct bytes name = arena_dup(arena, bytes_trim(bytes_cut(&text, '='))), reference = arena_dup(arena, bytes_trim(text));
    struct secret_text value = {0};
    if (name.at == NULL || reference.at == NULL)
        return why_set(why, FULL, "no memory for the headers");
    if (!header_form.fits(name) || !secret_is_reference(reference) || bytes_starts(reference, BYTES("secret:")))
        return why_set(why, INVALID, "--header is NAME=env:VARIABLE or NAME=file:/path, with commas between several");
    if (header_is_framing(name) || (name.len > 4 && bytes_eq_nocase((struct bytes){name.at, 4}, BYTES("mcp-"))))
        return why_set(why, INVALID, "the header %.*s is semel's to make", BYTES_ARG(name));
    if (remote->header_count == REMOTE_HEADERS_MAX)
        return why_set(why, INVALID, "--header names more than %d headers", REMOTE_HEADERS_MAX);
    TRY(secret_resolve(secrets, BYTES(""), reference, &value, why));
    struct bytes kept = arena_dup(arena, (struct bytes){value.at, value.len});
    secret_text_free(&value);
    if (kept.at == NULL || !mcp_is_plain(kept))
        return why_set(why, INVALID, "the value of the header %.*s is empty, or no header can hold it", BYTES_ARG(name));
    remote->headers[remote->header_count++] = (struct pair){name, kept};
    return OK;
}

enum status remote_open(struct proxy *proxy, struct remote **ret_remote, struct why *why)
{
    struct remote *remote = calloc(1, sizeof *remote);
    struct secrets *secrets = NULL;
    struct env *env = env_real();
    const char *headers = cli_text(proxy->cli, "--header");
    ASSERT(remote != NULL);
    seal_setup(); /* the memory that secrets are read into */
    remote->proxy = proxy;
    enum status status = read_url(proxy, remote, why);
    if (status == OK)
        status = secrets_open(&(struct secrets_config){.env = env}, &secrets, why);
    struct bytes rest = headers != NULL ? bytes_of(headers) : BYTES_NONE;
    while (status == OK && rest.len > 0)
        status = read_header(proxy, remote, secrets, bytes_cut(&rest, ','), why);
    if (status == INVALID)
        proxy->server.exit_code = CLI_USAGE;
    if (status == OK)
        status = upstream_open(env, secrets, &remote->upstream, why);
    if (status != OK) {
        secrets_close(secrets);
        free(remote);
        return status;
    }
    *ret_remote = remote;
    return OK;
}

/* ---- what the client sends ---- */

/* Since 2026-07-28 a request over HTTP is cancelled by closing its connection. True when that was done. */
static bool hang_up(struct remote *remote, const struct mcp_message *message)
{
    struct arena arena;
    struct json params;
    struct why why;
    bool found = false;
    if (!bytes_is(message->method, "notifications/cancelled") || message->params.at == NULL)
        return false;
    arena_init(&arena, MCP_LINE_MAX);
    const struct json *id =
        json_parse(message->params, &mcp_json_limits, &arena, &params, &why) == OK ? json_get(&params, BYTES("requestId")) : NULL;
    pthread_mutex_lock(&remote->proxy->lock);
    for (struct post *post = remote->posts; id != NULL && post != NULL; post = post->next)
        if (post->route.modern && bytes_eq(post->message.id, id->raw)) {
            atomic_store(&post->unwanted, true);
            found = true;
        }
    pthread_mutex_unlock(&remote->proxy->lock);
    arena_release(&arena);
    return found;
}

void remote_send(struct remote *remote, struct bytes line)
{
    struct mcp_message message;
    mcp_message_read(line, &message);
    if (bytes_trim(line).len == 0 || hang_up(remote, &message))
        return;
    if (message.kind == MCP_REQUEST || message.kind == MCP_BATCH) {
        (void)post_begin(remote, POST_PASSES, line, false);
        return;
    }
    int status = post_wait(post_begin(remote, POST_PASSES, line, true), TAKEN_US);
    if (status < 200 || status > 299)
        cli_note("the MCP server did not take a message without an answer (status %d).", status);
}

/* ---- listening ---- */

/* The server has forgotten the session. When it cannot be begun anew now, the next request finds that out again. */
static void renew(struct remote *remote)
{
    struct proxy *proxy = remote->proxy;
    struct server *server = &proxy->server;
    struct buf line;
    buf_init(&line, MCP_LINE_MAX + 256);
    cli_note("the MCP server has forgotten the session; it is begun anew.");
    server_handshake(server, ++remote->renewals, &line);
    int status = post_wait(post_begin(remote, POST_OWN, buf_bytes(&line), true), TAKEN_US);
    if (status >= 200 && status < 300 && server->initialized.len > 0)
        (void)post_wait(post_begin(remote, POST_OWN, buf_bytes(&server->initialized), true), TAKEN_US);
    buf_release(&line);
    pthread_mutex_lock(&proxy->lock);
    remote->forgotten = false;
    server->ready = true;
    pthread_cond_broadcast(&proxy->changed);
    pthread_mutex_unlock(&proxy->lock);
}

void remote_listen(struct remote *remote)
{
    struct proxy *proxy = remote->proxy;
    struct env *env = env_real();
    pthread_mutex_lock(&proxy->lock);
    while (!remote->ending) {
        int64_t at_us = remote->listen_at_us;
        bool forgotten = remote->forgotten, listens = at_us != 0 && env->boot_us(env) >= at_us;
        if (!forgotten && !listens) {
            proxy_wait_until(proxy, at_us != 0 ? at_us : env->boot_us(env) + WHEN_HOUR);
            continue;
        }
        remote->listen_at_us = 0;
        pthread_mutex_unlock(&proxy->lock);
        if (forgotten)
            renew(remote);
        else
            (void)post_begin(remote, POST_LISTEN, BYTES_NONE, false);
        pthread_mutex_lock(&proxy->lock);
    }
    pthread_mutex_unlock(&proxy->lock);
}

/* ---- the end ---- */

/* A subscription has no end of its own. */
static bool has_answers_open(struct remote *remote)
{
    bool open = false;
    pthread_mutex_lock(&remote->proxy->lock);
    for (const struct post *post = remote->posts; post != NULL && !open; post = post->next)
        open = post->kind == POST_PASSES && !bytes_is(post->message.method, "subscriptions/listen");
    pthread_mutex_unlock(&remote->proxy->lock);
    return open;
}

void remote_end(struct remote *remote)
{
    struct proxy *proxy = remote->proxy;
    struct env *env = env_real();
    int64_t until_us = env->boot_us(env) + proxy->linger_us;
    /* A client that only closed its end still reads; one that is gone does not. */
    while (!proxy->stop && getppid() == proxy->front && env->boot_us(env) < until_us && has_answers_open(remote))
        usleep(LOOK_EVERY_US);
    pthread_mutex_lock(&proxy->lock);
    remote->ending = true;
    bool session = remote->session[0] != '\0';
    pthread_cond_broadcast(&proxy->changed);
    pthread_mutex_unlock(&proxy->lock);
    if (session)
        (void)post_wait(post_begin(remote, POST_END, BYTES_NONE, true), END_US);
}
