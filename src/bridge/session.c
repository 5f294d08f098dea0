/* session: one process of a command, from its start to its end, and what is written to it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/when.h"
#include "bridge/bridge_own.h"
#include "mcp/rewrite.h"
#include "secret/seal.h"
#include "secret/secret.h"

#define STREAM_AFTER_US \
    (5 * WHEN_SECOND) /* a request that takes so long is answered as a stream: its head tells the client that it is worked on */
#define ENVIRONMENT_MAX ((size_t)1 << 20)

/* ---- a place for one ---- */

static struct session *idlest(const struct command *command)
{
    struct session *found = NULL;
    for (struct session *session = command->sessions; session != NULL; session = session->next) {
        bool used = session->exchanges != NULL || (session->listener != NULL && exchange_hears(session->listener));
        if (!used && (found == NULL || session->used_us < found->used_us))
            found = session;
    }
    return found;
}

static bool make_room(struct bridge *bridge, struct command *command)
{
    while ((int64_t)command->session_count >= command->processes_max || bridge->session_count >= SESSIONS_MAX) {
        struct session *session = idlest(command);
        if (session == NULL)
            return false;
        session_end(session, "others need its place");
    }
    return true;
}

struct session *session_new(struct bridge *bridge, struct command *command, struct bytes actor, bool with_id)
{
    uint8_t random[SESSION_ID_SIZE / 2];
    if (!make_room(bridge, command))
        return NULL;
    struct session *session = calloc(1, sizeof *session);
    char *copy = malloc(actor.len + 1);
    ASSERT(session != NULL);
    ASSERT(copy != NULL);
    memcpy(copy, actor.at, actor.len);
    copy[actor.len] = '\0';
    *session = (struct session){.bridge = bridge,
                                .command = command,
                                .actor = copy,
                                .process = {.in = -1, .out = -1},
                                .used_us = bridge_now_us(bridge),
                                .next = command->sessions};
    if (with_id) {
        bridge->env->random(bridge->env, random, sizeof random);
        bytes_to_hex((struct bytes){(const char *)random, sizeof random}, session->id);
    }
    buf_init(&session->out, OUT_MAX);
    buf_init(&session->early, OUT_MAX);
    buf_init(&session->initialize, MCP_LINE_MAX);
    buf_init(&session->initialized, MCP_LINE_MAX);
    buf_init(&session->waiting, WAITING_MAX);
    command->sessions = session;
    command->session_count++;
    bridge->session_count++;
    return session;
}

static void session_free(struct session *session)
{
    struct session **at = &session->command->sessions;
    while (*at != session)
        at = &(*at)->next;
    *at = session->next;
    session->command->session_count--;
    session->bridge->session_count--;
    session_forget_asked(session);
    lines_release(&session->lines);
    buf_release(&session->out);
    buf_release(&session->early);
    buf_release(&session->initialize);
    buf_release(&session->initialized);
    buf_release(&session->waiting);
    free(session->actor);
    free(session);
}

/* ---- starting ---- */

/* Of ours only what programs need to run at all: other secrets of the house are not theirs. */
static bool is_inherited(const char *variable)
{
    static const char *const names[] = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM"};
    struct bytes rest = bytes_of(variable), name = bytes_cut(&rest, '=');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bytes_is(name, names[i]))
            return true;
    return bytes_starts(name, BYTES("LC_"));
}

static enum status add_variable(const struct session *session, const struct pair *pair, struct arena *arena, char **ret,
                                struct why *why)
{
    const struct command *command = session->command;
    struct secret_text secret = {0};
    struct bytes value = pair->value;
    if (mcp_is_secret(value)) {
        TRY(secret_resolve(session->bridge->secrets, command->space, value, &secret, why));
        value = (struct bytes){secret.at, secret.len};
    }
    struct bytes text = memchr(value.at, '\0', value.len) == NULL
                            ? arena_printf(arena, "%.*s=%.*s", BYTES_ARG(pair->name), BYTES_ARG(value))
                            : BYTES_NONE;
    if (secret.at != NULL)
        secret_text_free(&secret);
    if (text.at == NULL)
        return why_set(why, INVALID, "the value of %.*s in env is too long, or has U+0000", BYTES_ARG(pair->name));
    *ret = (char *)text.at;
    return OK;
}

/* What the policy gives stands in front: the first one of a name counts for most programs, so ours of that name are left out. */
static enum status make_environment(const struct session *session, struct arena *arena, char ***ret, struct why *why)
{
    const struct command *command = session->command;
    size_t ours = 0, n = 0;
    while (environ[ours] != NULL)
        ours++;
    char **list = arena_zalloc(arena, ours + command->env_count + 1, sizeof *list);
    if (list == NULL)
        return why_set(why, FULL, "no memory for an environment");
    for (size_t i = 0; i < command->env_count; i++)
        TRY(add_variable(session, &command->env[i], arena, &list[n++], why));
    for (size_t i = 0; i < ours; i++) {
        struct bytes rest = bytes_of(environ[i]), name = bytes_cut(&rest, '=');
        bool given = false;
        for (size_t k = 0; k < command->env_count; k++)
            given = given || bytes_eq(command->env[k].name, name);
        if (!given && is_inherited(environ[i]))
            list[n++] = environ[i];
    }
    *ret = list;
    return OK;
}

static enum status spawn(struct session *session, struct why *why)
{
    struct process_order order = {.argv = session->command->argv, .directory = session->command->directory, .own_group = true};
    char **environment = NULL;
    struct arena arena;
    arena_init(&arena, ENVIRONMENT_MAX);
    arena.wipe = true;
    enum status status = make_environment(session, &arena, &environment, why);
    order.environment = environment;
    if (status == OK)
        status = process_start(&order, &session->process, NULL, why);
    arena_release(&arena);
    return status;
}

static void shake_hands(struct session *session)
{
    char id[64];
    snprintf(id, sizeof id, "\"semel-restart-%lld\"", (long long)session->generation);
    mcp_put_id(buf_bytes(&session->initialize), bytes_of(id), &session->out);
    buf_add_char(&session->out, '\n');
}

enum status session_run(struct session *session, struct why *why)
{
    struct bridge *bridge = session->bridge;
    int64_t now_us = bridge_now_us(bridge);
    if (session->runs)
        return OK;
    if (session->generation > 0 && (!session->has_spoken || !restarts_allow(&session->restarts, now_us)))
        return why_set(why, RETRY, "the MCP server ended too often and is not started again for now");
    TRY(spawn(session, why));
    session->runs = true;
    session->generation++;
    session->started_us = now_us;
    session->written = 0;
    session->out_at = 0;
    buf_clear(&session->out);
    buf_clear(&session->early);
    fcntl(session->process.in, F_SETFL, O_NONBLOCK);
    fcntl(session->process.out, F_SETFL, O_NONBLOCK);
    lines_release(&session->lines);
    lines_init(&session->lines, session->process.out, MCP_LINE_MAX);
    session->ready = session->generation == 1 || session->initialize.len == 0;
    if (!session->ready)
        shake_hands(session);
    LOG(LOG_INFO, "an MCP server was started", LOG_TEXT("server", session->command->name), LOG_INT("pid", session->process.pid),
        LOG_INT("start", session->generation));
    return OK;
}

/* ---- lines to the process ---- */

static void add_line(struct session *session, struct bytes line)
{
    struct buf *to = session->ready ? &session->out : &session->early;
    buf_add(to, line);
    buf_add_char(to, '\n');
}

void session_tell(struct session *session, struct bytes line)
{
    add_line(session, line);
    session_write(session);
}

void session_ask(struct session *session, struct exchange *exchange, struct bytes line)
{
    exchange->early = !session->ready;
    exchange->begins_at =
        exchange->early ? (int64_t)session->early.len : session->written + (int64_t)(session->out.len - session->out_at);
    exchange->next = session->exchanges;
    session->exchanges = exchange;
    session->used_us = bridge_now_us(session->bridge);
    session_tell(session, line);
}

void session_cancel(struct session *session, const struct exchange *exchange)
{
    struct buf line;
    buf_init(&line, 1024);
    struct json_out out = json_out_to(&line);
    json_open(&out, '{');
    json_text_member(&out, "jsonrpc", BYTES("2.0"));
    json_text_member(&out, "method", BYTES("notifications/cancelled"));
    json_name(&out, "params");
    json_open(&out, '{');
    json_i64_member(&out, "requestId", exchange->number);
    json_text_member(&out, "reason", BYTES("the client does not wait for it any more"));
    json_close(&out, '}');
    json_close(&out, '}');
    if (session->runs)
        session_tell(session, buf_bytes(&line));
    buf_release(&line);
}

/* ---- the end of a process ---- */

/* Of what was written to it anything may have happened; of the rest nothing did. */
static void lose(struct session *session, const char *sentence)
{
    while (session->exchanges != NULL) {
        struct exchange *exchange = session->exchanges;
        bool begun = !exchange->early && session->written > exchange->begins_at;
        session->exchanges = exchange->next;
        exchange_end(exchange, begun ? TRANSPORT_LOST : TRANSPORT_NOT_SENT, sentence);
    }
}

static void stop_process(struct session *session, const char *sentence)
{
    if (session->runs) {
        process_close(&session->process);
        bridge_end_process(session->bridge, session->process.pid);
        session->runs = session->ready = false;
    }
    lose(session, sentence);
    session_forget_asked(session);
}

void session_end(struct session *session, const char *sentence)
{
    LOG(LOG_INFO, "an MCP server is ended", LOG_TEXT("server", session->command->name), LOG_INT("pid", session->process.pid),
        LOG_CSTR("why", sentence));
    stop_process(session, sentence);
    if (session->listener != NULL)
        exchange_end(session->listener, TRANSPORT_ANSWERED, "");
    session_free(session);
}

/* A session whose first process never said a word, or whose handshake was not answered, is nothing to come back to. */
static void died(struct session *session, const char *sentence)
{
    if (!session->runs)
        return;
    bool known = session->has_spoken && !session->over;
    for (const struct exchange *exchange = session->exchanges; exchange != NULL; exchange = exchange->next)
        known = known && !exchange->initialize;
    LOG(LOG_WARN, "an MCP server ended by itself", LOG_TEXT("server", session->command->name),
        LOG_INT("pid", session->process.pid));
    stop_process(session, sentence);
    session->over = !known;
}

void session_write(struct session *session)
{
    if (session->out.failed || session->early.failed) {
        died(session, "the MCP server does not read what it is sent");
        return;
    }
    while (session->runs && session->out_at < session->out.len) {
        ssize_t wrote = write(session->process.in, session->out.at + session->out_at, session->out.len - session->out_at);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            break; /* it is full; or it is closed, which its other end will tell */
        session->out_at += (size_t)wrote;
        session->written += wrote;
    }
    if (session->out_at == session->out.len) {
        buf_clear(&session->out);
        session->out_at = 0;
    }
}

void session_read(struct session *session)
{
    struct bytes line;
    enum status status = lines_fill(&session->lines);
    while (session->runs && lines_take(&session->lines, &line)) {
        session->has_spoken = true;
        session_take(session, line);
    }
    if (session->runs && (status != OK || session->lines.ended))
        died(session, "the MCP server ended before it answered");
}

/* ---- now and then ---- */

static struct exchange *take_first_ended(struct session *session, int64_t now_us, const char **ret_sentence)
{
    for (struct exchange **at = &session->exchanges; *at != NULL; at = &(*at)->next) {
        struct exchange *exchange = *at;
        struct transport_call *call = exchange->call->call;
        bool late = now_us - exchange->since_us >= call->timeout_us;
        bool left = !late && call->unwanted != NULL && call->unwanted(call);
        if (!late && !left) {
            if (now_us - exchange->since_us >= STREAM_AFTER_US && exchange_hears(exchange) && !exchange->initialize)
                exchange_listen(exchange);
            continue;
        }
        *at = exchange->next;
        /* Up to 2025-11-25 a connection that closes cancels nothing; since then it is how a client cancels. */
        if (late || exchange->modern || exchange->call->cancels)
            session_cancel(session, exchange);
        *ret_sentence = late ? "the MCP server did not answer in time" : "the client has left";
        return exchange;
    }
    return NULL;
}

static void end_what_is_over(struct session *session, int64_t now_us)
{
    struct exchange *exchange;
    const char *sentence = "";
    while ((exchange = take_first_ended(session, now_us, &sentence)) != NULL) {
        bool begun = !exchange->early && session->written > exchange->begins_at;
        exchange_end(exchange, begun ? TRANSPORT_LOST : TRANSPORT_NOT_SENT, sentence);
    }
    if (session->listener == NULL)
        return;
    struct transport_call *call = session->listener->call->call;
    if (!exchange_hears(session->listener) || (call->unwanted != NULL && call->unwanted(call))) {
        exchange_end(session->listener, TRANSPORT_ANSWERED, "");
        session->listener = NULL;
    }
}

bool session_check(struct session *session)
{
    int64_t now_us = bridge_now_us(session->bridge);
    end_what_is_over(session, now_us);
    if (session->runs && !session->ready && now_us - session->started_us > PROCESS_START_PATIENCE_US)
        died(session, "the MCP server did not answer the handshake");
    if (session->exchanges != NULL || session->listener != NULL)
        session->used_us = now_us;
    bool over = session->over || session->command->over;
    if (session->exchanges == NULL && (over || now_us - session->used_us > session->command->idle_us)) {
        session_end(session, over ? "its session is over" : "nobody has used it for a while");
        return false;
    }
    return true;
}
