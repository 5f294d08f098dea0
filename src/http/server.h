/*
 * server: HTTP/1.1 on libuv. One loop thread owns every connection, its arena and its requests; nothing of them is touched by
 * another thread. The handler is called on the loop with a complete request (head and whole body) and answers now or later:
 * exactly one http_reply() per request, on the loop thread. Another thread hands work back with http_server_post().
 * The loop thread is whoever has the loop's lock: another one may stand in while it does something long between two turns.
 *
 * Promises: a handler runs only on a complete body; pipelined requests are answered in order, one at a time; after a framing
 * error the connection is closed; head, body and idle time-outs are absolute; memory per connection is bounded; at the limit of
 * connections the oldest idle one is dropped; shutdown answers what was accepted, then closes; a request's memory is zeroed when
 * it was answered. A client that goes away while its request is worked on does not cancel it: `gone` is set, the reply is
 * dropped.
 */
#ifndef SEMEL_HTTP_SERVER_H
#define SEMEL_HTTP_SERVER_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"
#include "http/parse.h"

struct http_server;
struct http_conn;

struct http_limits {
    size_t body_size_max;          /* 1 MiB; more is 413 from Content-Length, before the body is read */
    int64_t head_timeout_us;       /* 10 s for a whole head, from its first byte */
    int64_t body_timeout_us;       /* 30 s for a whole body */
    int64_t body_rate_after_us;    /* after 5 s … */
    uint64_t body_rate_min;        /* … at least 1 KiB/s */
    int64_t idle_timeout_us;       /* 30 s between requests */
    uint32_t connections_max;      /* 4096 */
    uint32_t connections_per_peer; /* 64, loopback excepted */
};

extern const struct http_limits http_limits_default;

struct http_request {
    struct http_head head;
    struct bytes body;
    struct arena *arena; /* lives until the reply is written */
    struct http_conn *conn;
    atomic_bool gone; /* the client left; whoever waits for it may stop */
    bool peer_loopback;
    char peer[64];      /* address without port, for rate limits and audit */
    uint64_t number;    /* of this request in this process: request ids are made from it */
    int64_t started_us; /* loop time */
    void *user;         /* the handler's own */
};

struct http_reply {
    int status;
    const char *content_type; /* NULL for no body */
    const struct http_header *headers;
    size_t header_count;
    struct bytes body; /* copied or written before http_reply() returns */
    bool close;        /* close the connection behind it */
};

struct http_server_config {
    const char *listen;             /* "127.0.0.1:7363", "[::1]:0", "unix:/path" */
    const char *tls_cert, *tls_key; /* PEM files, both or none; TLS 1.2+ */
    struct http_limits limits;
    void (*handle)(struct http_request *request, void *user);
    /* Answers a request that never became one (framing error, time-out, too large): writes the body for `status` into `out`. */
    void (*refuse)(int status, const char *why, struct buf *out, void *user);
    /* May be NULL: how large a body may be when that is more than limits.body_size_max, by its head; 0: it is not. */
    size_t (*body_size)(const struct http_head *head, void *user);
    /* May be NULL: called between two turns of the loop. It may take long if another thread then calls http_server_stand_in(). */
    void (*between)(void *user);
    void *user;
};

struct http_counts {
    _Atomic uint64_t accepted, refused, requests, replies, bytes_in, bytes_out;
    _Atomic int64_t open;
};

/* Binds and listens (so that the port is known) but does not run yet. INVALID for a bad address, bad certificate; RETRY when in use. */
CHECKED enum status http_server_open(const struct http_server_config *config, struct http_server **ret_server, struct why *why);

/* "127.0.0.1:41873": the address that was bound. */
const char *http_server_address(const struct http_server *server);
bool http_server_is_tls(const struct http_server *server);

const struct http_counts *http_server_counts(const struct http_server *server);

/* For other listeners that live on the same thread. Their handles are closed before http_server_close(). */
struct uv_loop_s *http_server_loop(struct http_server *server);

/* Runs the loop on the calling thread until http_server_stop(). */
void http_server_run(struct http_server *server);

/* From another thread: runs the loop there while its own thread is busy in `between`. Returns when that is back, or at once when
 * it is not away. */
void http_server_stand_in(struct http_server *server);

/* From any thread or signal watcher: stop accepting, let running requests finish (at most `grace_us`), then http_server_run returns. */
void http_server_stop(struct http_server *server, int64_t grace_us);

/* From any thread: calls `fn(arg)` on the loop soon, in order. Cheap when many are posted at once. */
void http_server_post(struct http_server *server, void (*fn)(void *arg), void *arg);

/* On the loop thread: `fn` every `every_us`, until the server stops. */
void http_server_every(struct http_server *server, int64_t every_us, void (*fn)(void *arg), void *arg);

/* On the loop thread, once per request. HEAD, 204 and 304 get no body. The request and its arena are gone afterwards. */
void http_reply(struct http_request *request, const struct http_reply *reply);

/* The same in pieces, for an answer that is not yet whole: begin once, any number of pieces, end once. `reply->body` is not
 * looked at. Not `whole`: the connection is broken off, so that the client notices that the rest is missing. */
void http_reply_begin(struct http_request *request, const struct http_reply *reply);
void http_reply_piece(struct http_request *request, struct bytes piece);
void http_reply_end(struct http_request *request, bool whole);

/* Behind http_server_run, when no other thread posts any more. What was posted but not yet called is called here. */
void http_server_close(struct http_server *server);

#endif
