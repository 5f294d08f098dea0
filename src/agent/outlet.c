/* outlet: what the server says, to the client or to the flight that waits for it. */
#include <stdlib.h>

#include "agent/proxy.h"
#include "agent/remote.h"
#include "bridge/lines.h"
#include "cli/print.h"

/* True when a flight waits for it: then it gets a copy. */
static bool give_to_flight(struct proxy *proxy, struct bytes line, const struct mcp_message *message)
{
    bool taken = false;
    pthread_mutex_lock(&proxy->lock);
    for (struct flight *flight = proxy->flights; flight != NULL && !taken; flight = flight->next) {
        if (!flight->at_server || flight->answered || flight->generation != proxy->server.generation ||
            !bytes_eq(flight->message.id, message->id))
            continue;
        buf_add(&flight->answer, line);
        flight->answered = taken = true;
        pthread_cond_broadcast(&proxy->changed);
    }
    pthread_mutex_unlock(&proxy->lock);
    return taken;
}

/* Forgets the request that this answers; says what it was. */
static struct passing take_passing(struct proxy *proxy, struct bytes id)
{
    struct passing found = {0};
    pthread_mutex_lock(&proxy->lock);
    for (size_t i = 0; i < proxy->passing_count; i++) {
        struct passing *passing = &proxy->passing[i];
        if (!bytes_eq((struct bytes){passing->id, passing->id_len}, id))
            continue;
        found = *passing;
        free(passing->id);
        *passing = proxy->passing[--proxy->passing_count];
        break;
    }
    pthread_mutex_unlock(&proxy->lock);
    return found;
}

void outlet_forget(struct proxy *proxy, struct bytes id)
{
    (void)take_passing(proxy, id);
}

/* The answer to our own handshake with a new server: the client does not see it. */
static bool is_own_handshake(struct proxy *proxy, const struct mcp_message *message)
{
    char id[64];
    snprintf(id, sizeof id, "\"semel-restart-%lld\"", (long long)proxy->server.generation);
    if (!bytes_is(message->id, id))
        return false;
    pthread_mutex_lock(&proxy->server.write_lock);
    if (proxy->server.initialized.len > 0)
        (void)lines_write(proxy->server.process.in, buf_bytes(&proxy->server.initialized));
    pthread_mutex_unlock(&proxy->server.write_lock);
    pthread_mutex_lock(&proxy->lock);
    proxy->server.ready = true;
    pthread_cond_broadcast(&proxy->changed);
    pthread_mutex_unlock(&proxy->lock);
    return true;
}

static void take_answer(struct proxy *proxy, struct bytes line, const struct mcp_message *message)
{
    if (give_to_flight(proxy, line, message) || (proxy->server.generation > 1 && is_own_handshake(proxy, message)))
        return;
    struct passing passing = take_passing(proxy, message->id);
    if (passing.lists_tools && message->result.at != NULL) {
        pthread_mutex_lock(&proxy->lock);
        mcp_hints_learn(&proxy->hints, message->result);
        pthread_mutex_unlock(&proxy->lock);
    }
    proxy_tell(proxy, line);
}

void outlet_take(struct proxy *proxy, struct bytes line)
{
    struct mcp_message message;
    mcp_message_read(line, &message);
    if (message.kind == MCP_RESPONSE)
        take_answer(proxy, line, &message);
    else
        proxy_tell(proxy, line);
}

static void read_server(struct proxy *proxy)
{
    struct lines lines;
    struct bytes line;
    enum status status;
    lines_init(&lines, proxy->server.process.out, MCP_LINE_MAX);
    while ((status = lines_next(&lines, -1, &line)) == OK) {
        proxy->server.has_spoken = true;
        outlet_take(proxy, line);
    }
    if (status == FULL)
        cli_note("the MCP server sent a line of more than %zu bytes; nothing more is read from it.", MCP_LINE_MAX);
    lines_release(&lines);
}

void *outlet_main(void *arg)
{
    struct proxy *proxy = arg;
    if (proxy->server.remote != NULL) {
        remote_listen(proxy->server.remote);
        return NULL;
    }
    do
        read_server(proxy);
    while (server_replace(proxy));
    return NULL;
}
