#include "http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

/* ---- listening ---- */

bool listen_is_unix(const char *text)
{
    return strncmp(text, "unix:", 5) == 0;
}

bool listen_is_loopback(const char *text)
{
    struct in_addr v4;
    const char *colon = strrchr(text, ':');
    char host[64];
    if (listen_is_unix(text) || strncmp(text, "[::1]:", 6) == 0)
        return true;
    if (colon == NULL || (size_t)(colon - text) >= sizeof host)
        return false;
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = '\0';
    if (strcmp(host, "localhost") == 0)
        return true;
    return inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}

int conn_io_init(uv_loop_t *loop, bool is_unix, union conn_io *io)
{
    return is_unix ? uv_pipe_init(loop, &io->pipe, 0) : uv_tcp_init(loop, &io->tcp);
}

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

static void write_address(const union conn_io *io, char *ret_address)
{
    struct sockaddr_storage address = {0};
    int len = sizeof address;
    char host[64] = "";
    uv_tcp_getsockname(&io->tcp, (struct sockaddr *)&address, &len);
    uv_ip_name((struct sockaddr *)&address, host, sizeof host);
    unsigned port = ntohs(((struct sockaddr_in *)&address)->sin_port);
    snprintf(ret_address, LISTEN_ADDRESS_SIZE, address.ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host, port);
}

static enum status listen_tcp(union conn_io *io, const char *text, uv_connection_cb on_connection, char *ret_address,
                              struct why *why)
{
    struct sockaddr_storage address = {0};
    if (!parse_address(text, &address))
        return bad_address(text, why);
    int error = uv_tcp_bind(&io->tcp, (struct sockaddr *)&address, 0);
    if (error == 0)
        error = uv_listen(&io->stream, BACKLOG, on_connection);
    if (error != 0)
        return bind_failed(text, error, why);
    write_address(io, ret_address);
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
static enum status listen_unix(union conn_io *io, const char *text, uv_connection_cb on_connection, char *ret_address,
                               struct why *why)
{
    const char *path = text + strlen("unix:");
    if (path[0] == '\0')
        return bad_address(text, why);
    if (strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return why_set(why, INVALID, "%s is too long for a socket path", text);
    TRY(remove_stale(path, why));
    int error = uv_pipe_bind(&io->pipe, path);
    if (error == 0 && chmod(path, 0600) != 0)
        error = -errno;
    if (error == 0)
        error = uv_listen(&io->stream, BACKLOG, on_connection);
    if (error != 0)
        return bind_failed(text, error, why);
    snprintf(ret_address, LISTEN_ADDRESS_SIZE, "%s", text);
    return OK;
}

enum status listen_on(union conn_io *io, const char *text, uv_connection_cb on_connection, char *ret_address, struct why *why)
{
    if (listen_is_unix(text))
        return listen_unix(io, text, on_connection, ret_address, why);
    return listen_tcp(io, text, on_connection, ret_address, why);
}

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

bool listen_peer(const union conn_io *io, bool is_unix, struct sockaddr_storage *ret_address, char *ret_name, bool *ret_loopback)
{
    struct sockaddr_storage address = {0};
    int len = sizeof address;
    if (is_unix || uv_tcp_getpeername(&io->tcp, (struct sockaddr *)&address, &len) != 0) {
        snprintf(ret_name, LISTEN_PEER_SIZE, "%s", is_unix ? "unix" : "unknown");
        *ret_loopback = is_unix;
        return false;
    }
    unmap(&address);
    uv_ip_name((struct sockaddr *)&address, ret_name, LISTEN_PEER_SIZE);
    *ret_loopback = is_loopback(&address);
    *ret_address = address;
    return true;
}
