/*
 * listen: from an address in the settings to a listening socket of libuv, and who is at the other end of a connection. Shared by all
 * faces that listen. A socket file is only for its owner; one that was left behind by a process that died is replaced.
 */
#ifndef SEMEL_HTTP_LISTEN_H
#define SEMEL_HTTP_LISTEN_H

#include <uv.h>

#include "base/bytes.h"
#include "base/status.h"

enum { LISTEN_ADDRESS_SIZE = 128, LISTEN_PEER_SIZE = 64 };

union conn_io {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
};

/* "unix:/path" */
bool listen_is_unix(const char *text);

/* "127.0.0.1:7363", "[::1]:0", "unix:/path": only this computer can reach it. */
bool listen_is_loopback(const char *text);

/* libuv's error, 0 when it went well. */
int conn_io_init(uv_loop_t *loop, bool is_unix, union conn_io *io);

/* Binds and listens on `text`: "127.0.0.1:7363", "[::1]:0", "unix:/path". `io` is initialised; closing it stays with the caller.
 * `ret_address` has room for LISTEN_ADDRESS_SIZE: what was bound. INVALID for a bad address, RETRY when it is in use. */
CHECKED enum status listen_on(union conn_io *io, const char *text, uv_connection_cb on_connection, char *ret_address,
                              struct why *why);

/* Who is connected: its address without port in `ret_name` (LISTEN_PEER_SIZE), "unix" for a socket file. True when there is an
 * address, in `ret_address`. */
bool listen_peer(const union conn_io *io, bool is_unix, struct sockaddr_storage *ret_address, char *ret_name, bool *ret_loopback);

#endif
