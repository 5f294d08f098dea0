/*
 * conn: what the files of the server share. Everything here belongs to the loop thread, but `posts` (under its lock),
 * `stop_grace_us` and the counts.
 *
 *   HANDSHAKE ──► IDLE ──► HEAD ──► BODY ──► RUNNING ──► WRITING ──► LINGER ──► CLOSED
 *                  ▲ first  whole   whole     http_reply    │  all     │ client left, or enough waited
 *                  │  byte   head    body                   │ written  │
 *                  └──────────── keep-alive ────────────────┘
 *
 * HANDSHAKE only with TLS. RUNNING goes straight to IDLE when the reply could be written at once. A refusal goes from any state
 * to WRITING or LINGER. LINGER: our side is shut, what still comes is thrown away, so that the client gets to read the last
 * answer. CLOSED is reached from every state at once when the connection breaks; a request that is still worked on keeps the
 * memory.
 */
#ifndef SEMEL_HTTP_CONN_H
#define SEMEL_HTTP_CONN_H

#include <sys/queue.h>
#include <uv.h>

#include "http/listen.h"
#include "http/server.h"
#include "http/tls.h"

enum {
    READ_SIZE_FIRST = 8 * 1024, /* of a connection's buffer; it returns to this after a large body */
    READ_SIZE_LEAST = 2 * 1024, /* less room than this is not worth a read */
    READ_SLACK = 16 * 1024,     /* over head and body: chunk framing and the start of the next request */
    SCRATCH_SIZE = 64 * 1024,
    CIPHER_READ_SIZE = 16 * 1024, /* OpenSSL keeps a buffer of this size for each connection */
    REPLY_SIZE_MAX = 64 * 1024 * 1024,
    REPLY_SIZE_KEPT = 256 * 1024,
    ARENA_SIZE_MAX = 96 * 1024 * 1024, /* also for a stored answer, to be given again */
    LINGER_BYTES_MAX = 1024 * 1024,
    LINGER_US = 2 * 1000 * 1000,
    SWEEP_EVERY_MS = 250,
};

enum conn_state { CONN_HANDSHAKE, CONN_IDLE, CONN_HEAD, CONN_BODY, CONN_RUNNING, CONN_WRITING, CONN_LINGER, CONN_CLOSED };

struct http_conn {
    union conn_io io;
    struct http_server *server;
    struct tls_conn *tls; /* NULL without TLS */
    enum conn_state state;
    bool listed;         /* in one of the server's lists */
    bool reading;        /* uv_read_start is in force */
    bool eof;            /* the peer will send no more */
    bool advancing;      /* conn_advance() is on the stack */
    bool running;        /* a handler owes a reply */
    bool moved;          /* the buffer moved since the head was parsed */
    bool finish;         /* close when everything is written */
    bool chunked;        /* the reply goes out in pieces: as chunks, or up to the end of the connection */
    bool handle_closed;  /* libuv has let go */
    int64_t deadline_us; /* of the present state */

    struct buf in;      /* what was read … */
    size_t start;       /* … and where the present request starts in it */
    size_t scanned;     /* by http_parse_head */
    size_t head_size;   /* from BODY on */
    size_t body_size;   /* decoded, when chunked */
    size_t body_max;    /* from BODY on: what this request may have */
    size_t whole_size;  /* from RUNNING on */
    uint64_t body_seen; /* bytes of the body as sent */
    int64_t body_start_us;
    struct http_chunks chunks;

    size_t writes_pending;
    size_t write_mark; /* bytes that were queued at the start of the present time window */
    uv_shutdown_t shutdown;
    size_t lingered;

    bool peer_counted;
    uint8_t peer_key[16];
    struct http_conn *peer_next; /* in the same bucket */

    struct arena arena;
    TAILQ_ENTRY(http_conn) link;
    struct http_request request; /* last: large, and mostly untouched */
};

TAILQ_HEAD(conn_list, http_conn);

struct post {
    void (*fn)(void *arg);
    void *arg;
};

struct posts {
    struct post *at;
    size_t len, cap;
};

struct http_every {
    uv_timer_t timer;
    void (*fn)(void *arg);
    void *arg;
    struct http_every *next;
};

struct http_server {
    uv_loop_t loop;
    uv_async_t wake;
    uv_timer_t sweep;
    union conn_io listener;
    bool listener_open;
    bool is_unix;
    struct http_server_config config;
    char address[LISTEN_ADDRESS_SIZE];
    struct tls *tls;

    /* Each list is ordered by the time of entry; idle and lingering connections have one time-out each, so theirs is also the
     * order of deadlines. */
    struct conn_list idle, busy, linger, closing;
    size_t open_count;
    struct http_conn **peers; /* buckets */
    size_t peer_bucket_count; /* a power of two */

    struct buf out; /* the reply that is being assembled */
    char *scratch;  /* bytes that are looked at once: ciphertext, what lingers */
    char date[48];  /* "Date: …\r\n" of second date_s */
    int64_t date_s;
    uint64_t request_number;
    int64_t swept_us;

    uv_mutex_t lock;     /* whoever has it is the loop thread */
    uv_thread_t thread;  /* of http_server_run() … */
    atomic_bool between; /* … which is busy between two turns */
    bool ended;
    bool stopping;
    int64_t stop_deadline_us;
    _Atomic int64_t stop_grace_us; /* -1: no request to stop */
    uv_mutex_t posts_lock;
    struct posts posts, posts_taken;
    bool posts_woken; /* the loop knows of them */
    struct http_every *every;
    struct http_counts counts;
};

/* The loop thread is the only writer, so no locked instruction is needed. */
static inline void count_add(_Atomic uint64_t *count, uint64_t more)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + more, memory_order_relaxed);
}

static inline int64_t loop_now_us(const struct http_server *server)
{
    return (int64_t)uv_now(&server->loop) * 1000;
}

/* accept.c */
CHECKED enum status listener_open(struct http_server *server, struct why *why);
void peer_forget(struct http_conn *conn);

/* conn.c */
struct http_conn *conn_new(struct http_server *server);
void conn_move(struct http_conn *conn, enum conn_state state, int64_t deadline_us);
/* Does all that can be done with the bytes that are there. */
void conn_advance(struct http_conn *conn);
/* The reply is on its way: forgets the request and goes on. */
void conn_request_done(struct http_conn *conn);
/* Closes politely: what is pending is written, then our side is shut and the client's last bytes are drained. */
void conn_finish(struct http_conn *conn);
/* Closes now. */
void conn_close(struct http_conn *conn);
void conn_free(struct http_conn *conn);
/* Ends what ran out of time. */
void conn_check_time(struct http_conn *conn, int64_t now_us);

/* reply.c */
void conn_send(struct http_conn *conn, struct bytes plain);
void conn_send_cipher(struct http_conn *conn);
/* Answers what never became a request, then closes. */
void conn_refuse(struct http_conn *conn, int status, const char *why);

/* server.c */
/* A connection was closed: a stopping server may be done. */
void server_conn_closed(struct http_server *server);

#endif
