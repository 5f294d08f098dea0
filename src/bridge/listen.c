/* listen: what a process says, and to whom it goes. */
#include <stdlib.h>

#include "base/log.h"
#include "bridge/bridge_own.h"
#include "mcp/answer.h"
#include "mcp/rewrite.h"

#define ARENA_MAX ((size_t)64 << 20)
#define SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"

static bool is_modern(const struct session *session)
{
    return session->id[0] == '\0';
}

/* The exchange that has this number at the process. */
static struct exchange **find(struct session *session, struct bytes number)
{
    int64_t n;
    if (number.at == NULL || !bytes_to_i64(number, &n))
        return NULL;
    for (struct exchange **at = &session->exchanges; *at != NULL; at = &(*at)->next)
        if ((*at)->number == n)
            return at;
    return NULL;
}

/* ---- to whoever hears ---- */

/* Without a listener the newest request that can be told: a client reads all of its streams alike. */
static struct exchange *hearer(const struct session *session)
{
    if (session->listener != NULL && exchange_hears(session->listener))
        return session->listener;
    for (struct exchange *exchange = session->exchanges; exchange != NULL; exchange = exchange->next)
        if (exchange_hears(exchange) && !exchange->initialize)
            return exchange;
    return NULL;
}

/* False when nobody hears it and it cannot wait. */
static bool say(struct session *session, struct bytes message)
{
    struct exchange *exchange = hearer(session);
    if (exchange != NULL) {
        exchange_say(exchange, message);
        return true;
    }
    if (is_modern(session) || session->waiting.len + message.len + 1 > WAITING_MAX)
        return false;
    buf_add(&session->waiting, message);
    buf_add_char(&session->waiting, '\n');
    return true;
}

void session_give_waiting(struct session *session)
{
    struct bytes rest = buf_bytes(&session->waiting);
    while (rest.len > 0)
        exchange_say(session->listener, bytes_cut(&rest, '\n'));
    buf_clear(&session->waiting);
}

/* ---- questions of the process ---- */

void session_forget_asked(struct session *session)
{
    for (size_t i = 0; i < session->asked_count; i++)
        free(session->asked[i].id);
    session->asked_count = 0;
}

/* A client knows a question as "semel-7". */
static void asked_name(int64_t number, char ret[32])
{
    snprintf(ret, 32, "\"semel-%lld\"", (long long)number);
}

struct bytes session_answered(struct session *session, struct bytes id, struct arena *arena)
{
    char name[32];
    for (size_t i = 0; i < session->asked_count; i++) {
        struct asked *asked = &session->asked[i];
        asked_name(asked->number, name);
        if (!bytes_is(id, name))
            continue;
        struct bytes own = arena_dup(arena, (struct bytes){asked->id, asked->id_len});
        free(asked->id);
        *asked = session->asked[--session->asked_count];
        return own;
    }
    return BYTES_NONE;
}

static void refuse_question(struct session *session, const struct mcp_message *message, const char *sentence)
{
    struct buf out;
    buf_init(&out, message->id.len + 8192);
    mcp_write_error(&out, message->id, MCP_ERROR_METHOD, NULL, sentence);
    session_tell(session, buf_bytes(&out));
    buf_release(&out);
}

static void take_question(struct session *session, struct bytes line, const struct mcp_message *message)
{
    struct asked asked = {.number = ++session->bridge->numbers, .id_len = message->id.len};
    struct buf out;
    char name[32];
    if (is_modern(session)) {
        refuse_question(session, message, "since 2026-07-28 a server asks in its answer, not by a request");
        return;
    }
    asked.id = session->asked_count < ASKED_MAX ? malloc(message->id.len) : NULL;
    if (asked.id == NULL) {
        refuse_question(session, message, "too many questions are open");
        return;
    }
    memcpy(asked.id, message->id.at, message->id.len);
    asked_name(asked.number, name);
    buf_init(&out, line.len + sizeof name);
    mcp_put(line, message->id, bytes_of(name), &out);
    if (say(session, buf_bytes(&out))) {
        session->asked[session->asked_count++] = asked;
    } else {
        free(asked.id);
        refuse_question(session, message, "nobody listens who could answer");
    }
    buf_release(&out);
}

/* ---- notifications ---- */

/* Something about one request, by the number that the process knows: with the client's own word in its place. */
static bool say_about(struct session *session, struct bytes line, struct bytes number, bool progress)
{
    struct exchange **at = find(session, number);
    struct buf out;
    if (at == NULL || (progress && (*at)->token.at == NULL))
        return false;
    struct exchange *exchange = exchange_hears(*at) ? *at : progress ? session->listener : NULL;
    buf_init(&out, line.len + (*at)->id.len + (*at)->token.len);
    mcp_put(line, number, progress ? (*at)->token : (*at)->id, &out);
    if (exchange != NULL && exchange_hears(exchange))
        exchange_say(exchange, buf_bytes(&out));
    buf_release(&out);
    return true;
}

/* The process does not wait for the answer to its question any more. */
static bool say_withdrawn(struct session *session, struct bytes line, struct bytes id)
{
    char name[32];
    struct buf out;
    for (size_t i = 0; i < session->asked_count; i++) {
        if (!bytes_eq(id, (struct bytes){session->asked[i].id, session->asked[i].id_len}))
            continue;
        asked_name(session->asked[i].number, name);
        buf_init(&out, line.len + sizeof name);
        mcp_put(line, id, bytes_of(name), &out);
        (void)say(session, buf_bytes(&out));
        buf_release(&out);
        return true;
    }
    return false;
}

static void take_notification(struct session *session, struct bytes line, const struct mcp_message *message, struct arena *arena)
{
    bool progress = bytes_is(message->method, "notifications/progress");
    struct bytes about = progress ? mcp_part(message->params, "progressToken", NULL, arena)
                                  : mcp_part(message->params, "_meta", SUBSCRIPTION, arena);
    if (progress || about.at != NULL) {
        (void)say_about(session, line, about, progress); /* late, or about nothing: nobody waits for it */
        return;
    }
    if (bytes_is(message->method, "notifications/cancelled")) {
        (void)say_withdrawn(session, line, mcp_part(message->params, "requestId", NULL, arena));
        return;
    }
    (void)say(session, line);
}

/* ---- answers ---- */

static bool is_own_handshake(struct session *session, const struct mcp_message *message)
{
    char id[64];
    snprintf(id, sizeof id, "\"semel-restart-%lld\"", (long long)session->generation);
    if (session->ready || !bytes_is(message->id, id))
        return false;
    if (session->initialized.len > 0) {
        buf_add(&session->out, buf_bytes(&session->initialized));
        buf_add_char(&session->out, '\n');
    }
    int64_t base = session->written + (int64_t)(session->out.len - session->out_at);
    for (struct exchange *exchange = session->exchanges; exchange != NULL; exchange = exchange->next)
        if (exchange->early) {
            exchange->early = false;
            exchange->begins_at += base;
        }
    buf_add(&session->out, buf_bytes(&session->early));
    buf_clear(&session->early);
    session->ready = true;
    session_write(session);
    return true;
}

static void take_answer(struct session *session, struct bytes line, const struct mcp_message *message, struct arena *arena)
{
    struct exchange **at = find(session, message->id);
    if (at == NULL) {
        (void)is_own_handshake(session, message);
        return;
    }
    struct exchange *exchange = *at;
    struct buf first, second;
    *at = exchange->next;
    session->used_us = bridge_now_us(session->bridge);
    buf_init(&first, line.len + exchange->id.len);
    buf_init(&second, line.len + 2 * exchange->id.len);
    struct bytes stamp = exchange->subscribes ? mcp_part(message->result, "_meta", SUBSCRIPTION, arena) : BYTES_NONE;
    if (stamp.at != NULL)
        mcp_put(line, stamp, exchange->id, &first);
    else
        buf_add(&first, line);
    mcp_put_id(buf_bytes(&first), exchange->id, &second);
    if (exchange->initialize && message->result.at == NULL)
        session->over = true; /* it was refused: there is no session */
    exchange_answer(exchange, buf_bytes(&second), exchange->initialize && !session->over ? session->id : "");
    buf_release(&first);
    buf_release(&second);
}

void session_take(struct session *session, struct bytes text)
{
    struct bytes line = bytes_trim(text);
    struct mcp_message message;
    struct arena arena;
    arena_init(&arena, ARENA_MAX);
    mcp_message_read(line, &message);
    switch (message.kind) {
    case MCP_RESPONSE:
        take_answer(session, line, &message, &arena);
        break;
    case MCP_NOTIFICATION:
        take_notification(session, line, &message, &arena);
        break;
    case MCP_REQUEST:
        take_question(session, line, &message);
        break;
    case MCP_BATCH:
    case MCP_OTHER:
        if (line.len > 0)
            LOG(LOG_WARN, "an MCP server said what is no message", LOG_TEXT("server", session->command->name));
        break;
    }
    arena_release(&arena);
}
