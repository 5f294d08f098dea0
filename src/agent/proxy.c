#include "agent/proxy.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/when.h"
#include "bridge/lines.h"
#include "cli/print.h"
#include "env/env.h"

/* ---- to the client ---- */

/* A client that is gone does not matter: what it asked for is kept where it can ask again. */
void proxy_tell(struct proxy *proxy, struct bytes line)
{
    pthread_mutex_lock(&proxy->out_lock);
    (void)lines_write(STDOUT_FILENO, line);
    pthread_mutex_unlock(&proxy->out_lock);
}

void proxy_tell_error(struct proxy *proxy, struct bytes id, enum mcp_error code, const char *intent, const char *format, ...)
{
    char sentence[1024];
    struct buf out;
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    buf_init(&out, id.len + 8192);
    mcp_write_error(&out, id, code, intent, sentence);
    if (!out.failed)
        proxy_tell(proxy, buf_bytes(&out));
    buf_release(&out);
}

/* ---- waiting ---- */

void proxy_wait_until(struct proxy *proxy, int64_t boot_us)
{
    struct env *env = env_real();
    int64_t us = boot_us - env->boot_us(env);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    us = us < 0 ? 0 : us;
    int64_t nanoseconds = until.tv_nsec + us % WHEN_SECOND * 1000;
    until.tv_sec += us / WHEN_SECOND + nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    pthread_cond_timedwait(&proxy->changed, &proxy->lock, &until);
}

/* ---- what passes ---- */

static bool remember(struct proxy *proxy, const struct mcp_message *message)
{
    struct passing passing = {
        .id = malloc(message->id.len), .id_len = message->id.len, .lists_tools = bytes_is(message->method, "tools/list")};
    pthread_mutex_lock(&proxy->lock);
    bool room = server_wait_ready(proxy) != 0 && proxy->passing_count < PASSING_MAX && passing.id != NULL;
    if (room) {
        memcpy(passing.id, message->id.at, message->id.len);
        proxy->passing[proxy->passing_count++] = passing;
    }
    pthread_mutex_unlock(&proxy->lock);
    if (!room)
        free(passing.id);
    return room;
}

bool proxy_pass_request(struct proxy *proxy, struct bytes line, const struct mcp_message *message)
{
    if (bytes_is(message->method, "initialize") && proxy->server.generation == 1) {
        buf_clear(&proxy->server.initialize);
        buf_add(&proxy->server.initialize, line);
    }
    if (!remember(proxy, message)) {
        proxy_tell_error(proxy, message->id, MCP_ERROR_UNAVAILABLE, NULL,
                         "The MCP server is not there, or has too many open requests.");
        return false;
    }
    return server_send(proxy, line, 0, NULL);
}

/* The client does not wait for a call any more. The call itself goes on: half of it may have happened. */
static bool abandon(struct proxy *proxy, struct bytes params)
{
    struct arena arena;
    struct json json;
    struct why why;
    bool found = false;
    arena_init(&arena, 1 << 20);
    const struct json *id =
        params.at != NULL && json_parse(params, NULL, &arena, &json, &why) == OK ? json_get(&json, BYTES("requestId")) : NULL;
    pthread_mutex_lock(&proxy->lock);
    for (struct flight *flight = proxy->flights; id != NULL && flight != NULL; flight = flight->next)
        if (!flight->abandoned && bytes_eq(flight->message.id, id->raw)) {
            flight->abandoned = found = true;
            pthread_cond_broadcast(&proxy->changed);
        }
    pthread_mutex_unlock(&proxy->lock);
    arena_release(&arena);
    return found;
}

static void take_notification(struct proxy *proxy, struct bytes line, const struct mcp_message *message)
{
    if (bytes_is(message->method, "tools/call")) {
        cli_note("a tool call without an id was not passed on: nobody could be told what became of it.");
        return;
    }
    if (bytes_is(message->method, "notifications/cancelled") && abandon(proxy, message->params))
        return;
    if (bytes_is(message->method, "notifications/initialized") && proxy->server.generation == 1) {
        buf_clear(&proxy->server.initialized);
        buf_add(&proxy->server.initialized, line);
    }
    (void)server_send(proxy, line, 0, NULL);
}

/* ---- what does not ---- */

/* A batch passes when it can be read and calls no tool. */
static bool is_harmless_batch(struct bytes line)
{
    struct arena arena;
    struct json json;
    struct why why;
    arena_init(&arena, (size_t)256 << 20);
    bool harmless = json_parse(line, &mcp_json_limits, &arena, &json, &why) == OK && json.type == JSON_ARRAY;
    for (uint32_t i = 0; harmless && i < json.count; i++) {
        const struct json *method = json_get(&json.items[i], BYTES("method"));
        harmless = json.items[i].type == JSON_OBJECT &&
                   (method == NULL || (method->type == JSON_STRING && !bytes_is(method->text, "tools/call")));
    }
    arena_release(&arena);
    return harmless;
}

static void take_line(struct proxy *proxy, struct bytes line)
{
    struct mcp_message message;
    mcp_message_read(line, &message);
    if (message.doubtful || (message.kind == MCP_OTHER && bytes_trim(line).len > 0 && !bytes_is(line, "\r"))) {
        proxy_tell_error(proxy, BYTES_NONE, MCP_ERROR_PARSE, NULL,
                         "semel cannot read this line as one JSON-RPC message without doubt; it was not passed on.");
    } else if (message.kind == MCP_BATCH && !is_harmless_batch(line)) {
        proxy_tell_error(proxy, BYTES_NONE, MCP_ERROR_REQUEST, NULL,
                         "semel takes tool calls one by one, not in a batch; it was not passed on.");
    } else if (message.kind == MCP_REQUEST && bytes_is(message.method, "tools/call")) {
        flight_begin(proxy, line, &message);
    } else if (message.kind == MCP_REQUEST) {
        (void)proxy_pass_request(proxy, line, &message);
    } else if (message.kind == MCP_NOTIFICATION) {
        take_notification(proxy, line, &message);
    } else {
        (void)server_send(proxy, line, 0, NULL);
    }
}

/* ---- the whole of it ---- */

static void set_leaving(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->leaving = true;
    pthread_cond_broadcast(&proxy->changed);
    pthread_mutex_unlock(&proxy->lock);
}

static sigset_t stop_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    return signals;
}

static void *signal_main(void *arg)
{
    struct proxy *proxy = arg;
    sigset_t signals = stop_signals();
    int number;
    sigwait(&signals, &number);
    atomic_store(&proxy->stop, true);
    set_leaving(proxy);
    (void)!write(proxy->wake, &(uint64_t){1}, sizeof(uint64_t));
    return NULL;
}

static void init_locks(struct proxy *proxy)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&proxy->lock, NULL);
    pthread_mutex_init(&proxy->out_lock, NULL);
    pthread_cond_init(&proxy->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    proxy->queued_end = &proxy->queued;
}

/* Until the client closes its end, someone asks us to stop, or there is no server any more. */
static void take_in(struct proxy *proxy)
{
    struct lines lines;
    struct bytes line;
    enum status status;
    lines_init(&lines, STDIN_FILENO, MCP_LINE_MAX);
    while ((status = lines_next(&lines, proxy->wake, &line)) == OK)
        take_line(proxy, line);
    if (status == FULL)
        cli_note("the client sent a line of more than %zu bytes; nothing more is read from it.", MCP_LINE_MAX);
    lines_release(&lines);
}

int proxy_run(struct proxy *proxy)
{
    struct why why = {""};
    sigset_t signals = stop_signals();
    pthread_t outlet, signal_thread;
    init_locks(proxy);
    signal(SIGPIPE, SIG_IGN);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    proxy->wake = eventfd(0, EFD_CLOEXEC);
    if (proxy->wake < 0)
        return cli_fail(CLI_INTERNAL, "no descriptor could be made: %s.", strerror(errno));
    if (server_start(proxy, &why) != OK)
        return cli_fail((enum cli_exit)(proxy->server.exit_code != 0 ? proxy->server.exit_code : CLI_INTERNAL), "%s.", why.text);
    if (pthread_create(&outlet, NULL, outlet_main, proxy) != 0 || pthread_create(&signal_thread, NULL, signal_main, proxy) != 0)
        return cli_fail(CLI_INTERNAL, "no thread could be started.");
    take_in(proxy);
    set_leaving(proxy);
    flights_finish(proxy);
    server_close_input(proxy);
    server_end(proxy);
    pthread_join(outlet, NULL);
    pthread_kill(signal_thread, SIGTERM); /* which it waits for */
    pthread_join(signal_thread, NULL);
    return proxy->server.exit_code;
}
