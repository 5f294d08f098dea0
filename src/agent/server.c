/* server: the MCP server as a child process, its replacement, and its end. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/proxy.h"
#include "agent/remote.h"
#include "base/when.h"
#include "bridge/lines.h"
#include "cli/print.h"
#include "env/env.h"
#include "mcp/rewrite.h"

#define LOOK_EVERY_US 20000

/* ---- starting ---- */

/* With the write lock or before the threads: the descriptors change. */
static enum status spawn_server(struct proxy *proxy, struct why *why)
{
    const struct process_order order = {.argv = proxy->argv, .environment = environ};
    return process_start(&order, &proxy->server.process, &proxy->server.exit_code, why);
}

enum status server_start(struct proxy *proxy, struct why *why)
{
    struct server *server = &proxy->server;
    server->process = (struct process){.in = -1, .out = -1};
    pthread_mutex_init(&server->write_lock, NULL);
    buf_init(&server->initialize, MCP_LINE_MAX);
    buf_init(&server->initialized, MCP_LINE_MAX);
    if (proxy->argv != NULL)
        TRY(spawn_server(proxy, why));
    else
        TRY(remote_open(proxy, &server->remote, why));
    server->generation = 1;
    server->ready = true;
    return OK;
}

/* ---- sending ---- */

int64_t server_wait_ready(struct proxy *proxy)
{
    struct env *env = env_real();
    int64_t until_us = env->boot_us(env) + PROCESS_START_PATIENCE_US;
    while (!proxy->server.ready && !proxy->server.given_up && !proxy->leaving && env->boot_us(env) < until_us)
        proxy_wait_until(proxy, until_us);
    return proxy->server.ready ? proxy->server.generation : 0;
}

bool server_send(struct proxy *proxy, struct bytes line, int64_t generation, bool *ret_begun)
{
    struct server *server = &proxy->server;
    size_t wrote = 0;
    pthread_mutex_lock(&proxy->lock);
    int64_t there = server_wait_ready(proxy);
    pthread_mutex_unlock(&proxy->lock);
    if (there == 0)
        return false;
    if (server->remote != NULL) {
        remote_send(server->remote, line);
        if (ret_begun != NULL)
            *ret_begun = true;
        return true;
    }
    pthread_mutex_lock(&server->write_lock);
    if (server->process.in >= 0 && (generation == 0 || generation == server->generation))
        wrote = lines_write(server->process.in, line);
    pthread_mutex_unlock(&server->write_lock);
    if (ret_begun != NULL)
        *ret_begun = wrote > 0;
    return wrote == line.len + 1;
}

/* ---- the next one ---- */

/* The calls that it had are lost, and those that only passed are answered. */
static void settle_lost(struct proxy *proxy)
{
    struct passing *passing = proxy->passing;
    pthread_mutex_lock(&proxy->lock);
    proxy->server.ready = false;
    for (struct flight *flight = proxy->flights; flight != NULL; flight = flight->next)
        if (flight->at_server && flight->generation == proxy->server.generation && !flight->answered)
            flight->lost = true;
    size_t count = proxy->passing_count;
    proxy->passing_count = 0;
    pthread_cond_broadcast(&proxy->changed);
    pthread_mutex_unlock(&proxy->lock);
    /* The intake waits for a server before it adds to this list again, so it is ours for now. */
    for (size_t i = 0; i < count; i++) {
        if (!passing[i].handshake && !proxy->leaving)
            proxy_tell_error(
                proxy, (struct bytes){passing[i].id, passing[i].id_len}, MCP_ERROR_UNAVAILABLE, NULL,
                "The MCP server ended before it answered. This request changes nothing that semel knows of and may be "
                "sent again.");
        free(passing[i].id);
    }
}

static bool may_restart(struct proxy *proxy)
{
    struct server *server = &proxy->server;
    return server->has_spoken && !proxy->leaving && restarts_allow(&server->restarts, env_real()->boot_us(env_real()));
}

static void give_up(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->server.given_up = true;
    pthread_cond_broadcast(&proxy->changed);
    pthread_mutex_unlock(&proxy->lock);
    (void)!write(proxy->wake, &(uint64_t){1}, sizeof(uint64_t));
}

void server_handshake(const struct server *server, int64_t number, struct buf *out)
{
    char id[64];
    snprintf(id, sizeof id, "\"semel-restart-%lld\"", (long long)number);
    mcp_put_id(buf_bytes(&server->initialize), bytes_of(id), out);
}

/* outlet.c does the rest with the answer. */
static void shake_hands(struct proxy *proxy)
{
    struct server *server = &proxy->server;
    struct buf again;
    buf_init(&again, MCP_LINE_MAX + 256);
    server_handshake(server, server->generation, &again);
    pthread_mutex_lock(&server->write_lock);
    (void)lines_write(server->process.in, buf_bytes(&again));
    pthread_mutex_unlock(&server->write_lock);
    buf_release(&again);
}

bool server_replace(struct proxy *proxy)
{
    struct server *server = &proxy->server;
    struct why why = {""};
    settle_lost(proxy);
    pthread_mutex_lock(&server->write_lock);
    process_close(&server->process);
    server->exit_code = process_reap(server->process.pid);
    bool again = may_restart(proxy);
    if (again)
        cli_note("the MCP server ended with code %d; it is started again.", server->exit_code);
    again = again && spawn_server(proxy, &why) == OK;
    server->generation++;
    pthread_mutex_unlock(&server->write_lock);
    if (!again) {
        if (!proxy->leaving && server->has_spoken)
            cli_note("the MCP server is not started again. %s", why.text);
        give_up(proxy);
        return false;
    }
    if (server->initialize.len > 0) {
        shake_hands(proxy);
        return true;
    }
    pthread_mutex_lock(&proxy->lock);
    server->ready = true;
    pthread_cond_broadcast(&proxy->changed);
    pthread_mutex_unlock(&proxy->lock);
    return true;
}

/* ---- the end ---- */

void server_close_input(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->server.write_lock);
    process_close_input(&proxy->server.process);
    pthread_mutex_unlock(&proxy->server.write_lock);
}

static bool has_ended(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    bool ended = proxy->server.given_up;
    pthread_mutex_unlock(&proxy->lock);
    return ended;
}

/* True when it has ended within that time. */
static bool ends_within(struct proxy *proxy, int64_t us)
{
    struct env *env = env_real();
    int64_t until_us = env->boot_us(env) + us;
    while (!has_ended(proxy) && env->boot_us(env) < until_us)
        usleep(LOOK_EVERY_US);
    return has_ended(proxy);
}

void server_end(struct proxy *proxy)
{
    static const int signals[] = {SIGTERM, SIGKILL};
    if (proxy->server.remote != NULL) {
        remote_end(proxy->server.remote);
        return;
    }
    /* A server may still work for a client that only closed its end; not for one that is gone. */
    while (!proxy->stop && getppid() == proxy->front)
        if (ends_within(proxy, LOOK_EVERY_US))
            return;
    for (size_t i = 0; i < 2 && !ends_within(proxy, PROCESS_END_PATIENCE_US); i++)
        kill(proxy->server.process.pid, signals[i]);
}
