/* server: the MCP server as a child process, its replacement, and its end. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/lines.h"
#include "agent/proxy.h"
#include "agent/remote.h"
#include "base/when.h"
#include "cli/print.h"
#include "env/env.h"

#define RESTARTS_MAX 5 /* within RESTARTS_US */
#define RESTARTS_US (60 * WHEN_SECOND)
#define START_PATIENCE_US (30 * WHEN_SECOND) /* for the handshake of a new server */
#define END_PATIENCE_US (3 * WHEN_SECOND)
#define LOOK_EVERY_US 20000

/* ---- starting ---- */

static int spawn(char *const *argv, int in, int out, pid_t *ret_pid)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    sigset_t none, defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
    posix_spawn_file_actions_adddup2(&actions, in, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    int failed = posix_spawnp(ret_pid, argv[0], &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return failed;
}

static void close_pair(const int pair[2])
{
    close(pair[0]);
    close(pair[1]);
}

/* With the write lock or before the threads: the descriptors change. */
static enum status spawn_server(struct proxy *proxy, struct why *why)
{
    struct server *server = &proxy->server;
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0)
        return why_set(why, FULL, "no pipe could be made: %s", strerror(errno));
    if (pipe2(from, O_CLOEXEC) != 0) {
        close_pair(to);
        return why_set(why, FULL, "no pipe could be made: %s", strerror(errno));
    }
    int failed = spawn(proxy->argv, to[0], from[1], &server->pid);
    close(to[0]);
    close(from[1]);
    if (failed != 0) {
        close(to[1]);
        close(from[0]);
        server->exit_code = failed == ENOENT ? 127 : 126;
        return why_set(why, INVALID, "%s could not be started: %s", proxy->argv[0], strerror(failed));
    }
    server->in = to[1];
    server->out = from[0];
    return OK;
}

enum status server_start(struct proxy *proxy, struct why *why)
{
    struct server *server = &proxy->server;
    server->in = server->out = -1;
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
    int64_t until_us = env->boot_us(env) + START_PATIENCE_US;
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
    if (server->in >= 0 && (generation == 0 || generation == server->generation))
        wrote = lines_write(server->in, line);
    pthread_mutex_unlock(&server->write_lock);
    if (ret_begun != NULL)
        *ret_begun = wrote > 0;
    return wrote == line.len + 1;
}

/* ---- the next one ---- */

static int reap(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

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
    int64_t now_us = env_real()->boot_us(env_real());
    if (now_us - server->restarts_since_us > RESTARTS_US) {
        server->restarts_since_us = now_us;
        server->restarts = 0;
    }
    return server->has_spoken && !proxy->leaving && ++server->restarts <= RESTARTS_MAX;
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
    struct bytes line = buf_bytes(&server->initialize);
    struct mcp_message message;
    mcp_message_read(line, &message);
    size_t before = (size_t)(message.id.at - line.at);
    buf_add(out, (struct bytes){line.at, before});
    buf_printf(out, "\"semel-restart-%lld\"", (long long)number);
    buf_add(out, bytes_from(line, before + message.id.len));
}

/* outlet.c does the rest with the answer. */
static void shake_hands(struct proxy *proxy)
{
    struct server *server = &proxy->server;
    struct buf again;
    buf_init(&again, MCP_LINE_MAX + 256);
    server_handshake(server, server->generation, &again);
    pthread_mutex_lock(&server->write_lock);
    (void)lines_write(server->in, buf_bytes(&again));
    pthread_mutex_unlock(&server->write_lock);
    buf_release(&again);
}

bool server_replace(struct proxy *proxy)
{
    struct server *server = &proxy->server;
    struct why why = {""};
    settle_lost(proxy);
    pthread_mutex_lock(&server->write_lock);
    if (server->in >= 0)
        close(server->in);
    close(server->out);
    server->in = server->out = -1;
    server->exit_code = reap(server->pid);
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
    if (proxy->server.in >= 0)
        close(proxy->server.in);
    proxy->server.in = -1;
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
    for (size_t i = 0; i < 2 && !ends_within(proxy, END_PATIENCE_US); i++)
        kill(proxy->server.pid, signals[i]);
}
