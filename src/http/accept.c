/* From a listening socket to connections within the limits. */
#include "http/conn.h"

#include <netinet/in.h>
#include <sys/socket.h>

enum { REFUSALS_MAX = 64 };

/* ---- peers ---- */

/* An IPv6 host usually has a whole /64, so that is what counts as one peer. */
static void set_peer_key(struct http_conn *conn, const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET)
        memcpy(conn->peer_key + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
    else
        memcpy(conn->peer_key, &((const struct sockaddr_in6 *)address)->sin6_addr, 8);
}

static void set_peer(struct http_conn *conn)
{
    struct http_request *request = &conn->request;
    struct sockaddr_storage address = {0};
    if (listen_peer(&conn->io, conn->server->is_unix, &address, request->peer, &request->peer_loopback))
        set_peer_key(conn, &address);
}

static struct http_conn **bucket_of(struct http_conn *conn)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < sizeof conn->peer_key; i++)
        hash = (hash ^ conn->peer_key[i]) * 1099511628211u;
    return &conn->server->peers[(hash ^ hash >> 32) & (conn->server->peer_bucket_count - 1)];
}

/* False when this peer has as many connections as one may have. */
static bool peer_remember(struct http_conn *conn)
{
    if (conn->request.peer_loopback)
        return true;
    struct http_conn **bucket = bucket_of(conn);
    uint32_t count = 0;
    for (const struct http_conn *other = *bucket; other != NULL; other = other->peer_next)
        count += memcmp(other->peer_key, conn->peer_key, sizeof conn->peer_key) == 0;
    if (count >= conn->server->config.limits.connections_per_peer)
        return false;
    conn->peer_next = *bucket;
    *bucket = conn;
    conn->peer_counted = true;
    return true;
}

void peer_forget(struct http_conn *conn)
{
    if (!conn->peer_counted)
        return;
    struct http_conn **at = bucket_of(conn);
    while (*at != conn)
        at = &(*at)->peer_next;
    *at = conn->peer_next;
    conn->peer_counted = false;
}

/* ---- accepting ---- */

/* Who has had its answer goes first, then who has been silent for longest. */
static bool make_place(struct http_server *server)
{
    if (server->open_count < server->config.limits.connections_max)
        return true;
    struct http_conn *victim = TAILQ_FIRST(&server->linger);
    if (victim == NULL)
        victim = TAILQ_FIRST(&server->idle);
    if (victim == NULL)
        return false;
    conn_close(victim);
    return true;
}

static void begin(struct http_conn *conn)
{
    const struct http_limits *limits = &conn->server->config.limits;
    int64_t now_us = loop_now_us(conn->server);
    if (conn->tls != NULL)
        conn_move(conn, CONN_HANDSHAKE, now_us + limits->head_timeout_us);
    else
        conn_move(conn, CONN_IDLE, now_us + limits->idle_timeout_us);
}

/* A few refused clients are told why; a flood of them is only closed. */
static void turn_away(struct http_conn *conn, const char *why)
{
    struct http_server *server = conn->server;
    if (server->open_count > server->config.limits.connections_max + REFUSALS_MAX) {
        count_add(&server->counts.refused, 1);
        conn_close(conn);
    } else {
        conn_refuse(conn, 503, why);
    }
}

/* libuv holds the accepted socket until it is taken, so being out of memory here could not be survived quietly. */
static void on_connection(uv_stream_t *listener, int status)
{
    struct http_server *server = listener->data;
    if (status < 0) {
        count_add(&server->counts.refused, 1);
        return;
    }
    bool place = make_place(server);
    struct http_conn *conn = conn_new(server);
    ASSERT(conn != NULL);
    int failed = conn_io_init(&server->loop, server->is_unix, &conn->io);
    ASSERT(failed == 0);
    conn->io.handle.data = conn;
    failed = uv_accept(listener, &conn->io.stream);
    begin(conn);
    server->open_count++;
    atomic_fetch_add_explicit(&server->counts.open, 1, memory_order_relaxed);
    count_add(&server->counts.accepted, 1);
    if (failed != 0) {
        conn_close(conn);
        return;
    }
    set_peer(conn);
    if (!server->is_unix)
        uv_tcp_nodelay(&conn->io.tcp, 1);
    if (!place)
        turn_away(conn, "the limit of connections is reached; try again later");
    else if (!peer_remember(conn))
        turn_away(conn, "this address has too many connections; try again later");
    else
        conn_advance(conn);
}

enum status listener_open(struct http_server *server, struct why *why)
{
    const char *text = server->config.listen != NULL ? server->config.listen : "";
    server->is_unix = listen_is_unix(text);
    int error = conn_io_init(&server->loop, server->is_unix, &server->listener);
    if (error != 0)
        return why_set(why, RETRY, "cannot make a socket: %s", uv_strerror(error));
    server->listener.handle.data = server;
    server->listener_open = true;
    return listen_on(&server->listener, text, on_connection, server->address, why);
}
