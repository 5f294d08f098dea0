#include "store/listener.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "store/postgres_own.h"

struct listener {
    char *url;
    PGconn *conn; /* NULL when there is none */
    int wake_fd;
};

enum status listener_new(const char *url, struct listener **ret_listener, struct why *why)
{
    struct listener *listener = calloc(1, sizeof *listener);
    char *copy = strdup(url);
    int wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (listener == NULL || copy == NULL || wake_fd < 0) {
        free(listener);
        free(copy);
        if (wake_fd >= 0)
            close(wake_fd);
        return why_set(why, FULL, "no memory to listen to other nodes");
    }
    *listener = (struct listener){.url = copy, .wake_fd = wake_fd};
    *ret_listener = listener;
    return OK;
}

static void disconnect(struct listener *listener)
{
    PQfinish(listener->conn);
    listener->conn = NULL;
}

void listener_free(struct listener *listener)
{
    if (listener == NULL)
        return;
    disconnect(listener);
    close(listener->wake_fd);
    free(listener->url);
    free(listener);
}

static enum status lost(struct listener *listener, struct why *why)
{
    disconnect(listener);
    return why_set(why, RETRY, "the connection that listens to other nodes is lost");
}

/* The end of a connection is told by its status. */
static void hear_notice(void *arg, const char *message)
{
    (void)arg, (void)message;
}

/* What is said here changes nothing that must last: its COMMIT need not wait for the disk. */
enum status listener_connect(struct listener *listener, struct why *why)
{
    disconnect(listener);
    listener->conn = postgres_connect(listener->url);
    if (PQstatus(listener->conn) != CONNECTION_OK) {
        enum status status = postgres_unreachable(listener->conn, why);
        disconnect(listener);
        return status;
    }
    PQsetNoticeProcessor(listener->conn, hear_notice, NULL);
    PGresult *result =
        PQexec(listener->conn, "SET synchronous_commit = off; SET application_name = 'semel listener'; LISTEN semel");
    bool done = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    return done ? OK : lost(listener, why);
}

bool listener_is_connected(const struct listener *listener)
{
    return listener->conn != NULL;
}

static size_t take_messages(struct listener *listener, void (*heard)(void *ctx, struct bytes message), void *ctx)
{
    size_t count = 0;
    for (PGnotify *note; (note = PQnotifies(listener->conn)) != NULL; PQfreemem(note)) {
        if (note->be_pid == PQbackendPID(listener->conn))
            continue; /* said here */
        heard(ctx, bytes_of(note->extra));
        count++;
    }
    return count;
}

enum status listener_wait(struct listener *listener, int64_t wait_us, void (*heard)(void *ctx, struct bytes message), void *ctx,
                          struct why *why)
{
    /* Some may have come with the answer to something else. */
    if (listener->conn != NULL && take_messages(listener, heard, ctx) > 0)
        return OK;
    struct pollfd fds[] = {{.fd = listener->wake_fd, .events = POLLIN},
                           {.fd = listener->conn != NULL ? PQsocket(listener->conn) : -1, .events = POLLIN}};
    (void)poll(fds, 2, (int)((wait_us + 999) / 1000));
    if (fds[0].revents != 0) {
        uint64_t times;
        ssize_t got = read(listener->wake_fd, &times, sizeof times);
        ASSERT(got == sizeof times || got < 0);
    }
    if (listener->conn == NULL || fds[1].revents == 0)
        return OK;
    if (PQconsumeInput(listener->conn) != 1 || PQstatus(listener->conn) != CONNECTION_OK)
        return lost(listener, why);
    take_messages(listener, heard, ctx);
    return OK;
}

enum status listener_say(struct listener *listener, struct bytes message, struct why *why)
{
    ASSERT(message.len <= LISTENER_MESSAGE_MAX);
    if (listener->conn == NULL)
        return why_set(why, RETRY, "nobody can be told: there is no connection");
    char text[LISTENER_MESSAGE_MAX + 1];
    memcpy(text, message.at, message.len);
    text[message.len] = '\0';
    PGresult *result =
        PQexecParams(listener->conn, "SELECT pg_notify('semel', $1)", 1, NULL, (const char *[]){text}, NULL, NULL, 0);
    bool done = PQresultStatus(result) == PGRES_TUPLES_OK;
    PQclear(result);
    return done ? OK : lost(listener, why);
}

void listener_wake(struct listener *listener)
{
    uint64_t once = 1;
    ssize_t wrote = write(listener->wake_fd, &once, sizeof once);
    ASSERT(wrote == sizeof once || wrote < 0); /* full: it was woken often enough */
}
