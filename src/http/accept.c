/* From the address in the settings to connections within the limits. */
#include "http/conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024, REFUSALS_MAX = 64 };

/* ---- peers ---- */

static bool is_loopback(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
    if (address->ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
    return true;
}

/* An IPv4 client of an IPv6 listener is an IPv4 client. */
static void unmap(struct sockaddr_storage *address)
{
    struct sockaddr_in6 six = *(struct sockaddr_in6 *)address;
    if (address->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
        return;
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = six.sin6_port};
    memcpy(&four.sin_addr, six.sin6_addr.s6_addr + 12, 4);
    memcpy(address, &four, sizeof four);
}

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
    int len = sizeof address;
    if (conn->server->is_unix || uv_tcp_getpeername(&conn->io.tcp, (struct sockaddr *)&address, &len) != 0) {
        snprintf(request->peer, sizeof request->peer, "%s", conn->server->is_unix ? "unix" : "unknown");
        request->peer_loopback = conn->server->is_unix;
        return;
    }
    unmap(&address);
    uv_ip_name((struct sockaddr *)&address, request->peer, sizeof request->peer);
    request->peer_loopback = is_loopback(&address);
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

static int init_io(struct http_server *server, union conn_io *io)
{
    return server->is_unix ? uv_pipe_init(&server->loop, &io->pipe, 0) : uv_tcp_init(&server->loop, &io->tcp);
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
    int failed = init_io(server, &conn->io);
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

/* ---- listening ---- */

static enum status bad_address(const char *text, struct why *why)
{
    return why_set(why, INVALID, "listen address \"%s\" is not HOST:PORT with a numeric host, [IPV6]:PORT or unix:/PATH", text);
}

/* "127.0.0.1:80", "localhost:80", "[::1]:80". */
static bool parse_address(const char *text, struct sockaddr_storage *ret_address)
{
    const char *colon = strrchr(text, ':');
    char host[64];
    uint64_t port;
    if (colon == NULL || !bytes_to_u64(bytes_of(colon + 1), &port) || port > 65535)
        return false;
    size_t len = (size_t)(colon - text);
    bool six = len >= 2 && text[0] == '[' && text[len - 1] == ']';
    if (six) {
        text++;
        len -= 2;
    }
    if (len == 0 || len >= sizeof host)
        return false;
    memcpy(host, text, len);
    host[len] = '\0';
    if (six)
        return uv_ip6_addr(host, (int)port, (struct sockaddr_in6 *)ret_address) == 0;
    return uv_ip4_addr(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, (int)port, (struct sockaddr_in *)ret_address) == 0;
}

static enum status bind_failed(const char *text, int error, struct why *why)
{
    if (error == UV_EADDRINUSE)
        return why_set(why, RETRY, "%s is in use by another program", text);
    if (error == UV_EADDRNOTAVAIL)
        return why_set(why, INVALID, "%s is not an address of this machine", text);
    if (error == UV_EACCES || error == UV_EPERM)
        return why_set(why, INVALID, "%s may not be used by this user (ports below 1024 need a privilege)", text);
    return why_set(why, INVALID, "cannot listen on %s: %s", text, uv_strerror(error));
}

static void write_address(struct http_server *server)
{
    struct sockaddr_storage address = {0};
    int len = sizeof address;
    char host[64] = "";
    uv_tcp_getsockname(&server->listener.tcp, (struct sockaddr *)&address, &len);
    uv_ip_name((struct sockaddr *)&address, host, sizeof host);
    unsigned port = ntohs(((struct sockaddr_in *)&address)->sin_port);
    snprintf(server->address, sizeof server->address, address.ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host, port);
}

static enum status listen_tcp(struct http_server *server, const char *text, struct why *why)
{
    struct sockaddr_storage address = {0};
    if (!parse_address(text, &address))
        return bad_address(text, why);
    int error = uv_tcp_bind(&server->listener.tcp, (struct sockaddr *)&address, 0);
    if (error == 0)
        error = uv_listen(&server->listener.stream, BACKLOG, on_connection);
    if (error != 0)
        return bind_failed(text, error, why);
    write_address(server);
    return OK;
}

/* A socket file that nobody answers on was left behind by a process that died. */
static enum status remove_stale(const char *path, struct why *why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat stat;
    if (lstat(path, &stat) != 0)
        return OK;
    if (!S_ISSOCK(stat.st_mode))
        return why_set(why, INVALID, "unix:%s exists and is not a socket", path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool answered = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0)
        close(fd);
    if (answered)
        return why_set(why, RETRY, "unix:%s is in use by another program", path);
    if (unlink(path) != 0)
        return why_set(why, INVALID, "unix:%s is stale and cannot be removed: %s", path, strerror(errno));
    return OK;
}

/* Between bind and listen nobody can connect, so the mode is right before the first client. */
static enum status listen_unix(struct http_server *server, const char *text, struct why *why)
{
    const char *path = text + strlen("unix:");
    if (path[0] == '\0')
        return bad_address(text, why);
    if (strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return why_set(why, INVALID, "%s is too long for a socket path", text);
    TRY(remove_stale(path, why));
    int error = uv_pipe_bind(&server->listener.pipe, path);
    if (error == 0 && chmod(path, 0600) != 0)
        error = -errno;
    if (error == 0)
        error = uv_listen(&server->listener.stream, BACKLOG, on_connection);
    if (error != 0)
        return bind_failed(text, error, why);
    snprintf(server->address, sizeof server->address, "%s", text);
    return OK;
}

enum status listener_open(struct http_server *server, struct why *why)
{
    const char *text = server->config.listen != NULL ? server->config.listen : "";
    server->is_unix = strncmp(text, "unix:", 5) == 0;
    int error = init_io(server, &server->listener);
    if (error != 0)
        return why_set(why, RETRY, "cannot make a socket: %s", uv_strerror(error));
    server->listener.handle.data = server;
    server->listener_open = true;
    return server->is_unix ? listen_unix(server, text, why) : listen_tcp(server, text, why);
}
