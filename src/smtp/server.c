#include "smtp/server.h"

#include <sys/queue.h>

#include "base/when.h"
#include "http/listen.h"

enum {
    READ_SIZE = 64 * 1024,
    PLAIN_SIZE = 16 * 1024, /* a record of TLS has no more */
    SWEEP_EVERY_MS = 250,
    HANDSHAKE_US = 30 * 1000 * 1000,
    LINGER_US = 2 * 1000 * 1000,
    LINGER_SIZE_MAX = 1024 * 1024,
    HOST_SIZE = 256
};

struct smtp_conn;

struct slot {
    struct smtp_delivery delivery; /* first: smtp_delivered() finds the slot by it */
    struct smtp_conn *conn;
};

struct smtp_conn {
    union conn_io io;
    struct smtp_server *server;
    struct smtp_session session;
    struct tls_conn *tls; /* NULL without TLS */
    bool handshaking;
    struct buf in; /* what came behind a mail that is being delivered */
    struct slot slots[SMTP_SOURCES_MAX];
    size_t deliveries; /* that owe an answer */
    size_t writes_pending, lingered;
    bool reading, eof, finishing, closed, handle_closed;
    bool loopback;
    char peer[LISTEN_PEER_SIZE];
    int64_t deadline_us, data_deadline_us;
    uv_shutdown_t shutdown;
    TAILQ_ENTRY(smtp_conn) link;
};

TAILQ_HEAD(conn_list, smtp_conn);

struct smtp_server {
    struct smtp_server_config config;
    union conn_io listener;
    uv_timer_t sweep;
    bool is_unix, stopping;
    char address[LISTEN_ADDRESS_SIZE];
    char host[HOST_SIZE];
    struct conn_list conns;
    uint32_t open_count;
    struct smtp_counts counts;
    char scratch[READ_SIZE];
};

static void conn_advance(struct smtp_conn *conn);
static void conn_close(struct smtp_conn *conn);

/* ---- life of a connection ---- */

static int64_t now_us(const struct smtp_conn *conn)
{
    return (int64_t)uv_now(conn->server->config.loop) * WHEN_MS;
}

static void conn_free(struct smtp_conn *conn)
{
    TAILQ_REMOVE(&conn->server->conns, conn, link);
    smtp_session_release(&conn->session);
    tls_conn_free(conn->tls);
    buf_release(&conn->in);
    free(conn);
}

/* A mail that is still delivered keeps its bytes. */
static void free_if_done(struct smtp_conn *conn)
{
    if (conn->handle_closed && conn->deliveries == 0)
        conn_free(conn);
}

static void on_closed(uv_handle_t *handle)
{
    struct smtp_conn *conn = handle->data;
    conn->handle_closed = true;
    free_if_done(conn);
}

static void conn_close(struct smtp_conn *conn)
{
    if (conn->closed)
        return;
    conn->closed = true;
    conn->server->open_count--;
    uv_close(&conn->io.handle, on_closed);
}

/* ---- writing ---- */

struct write {
    uv_write_t request;
    struct smtp_conn *conn;
    char bytes[];
};

static void on_written(uv_write_t *request, int status)
{
    struct write *write = request->data;
    struct smtp_conn *conn = write->conn;
    free(write);
    conn->writes_pending--;
    if (status < 0)
        conn_close(conn);
    if (!conn->closed)
        conn_advance(conn);
}

static void send_later(struct smtp_conn *conn, struct bytes text)
{
    struct write *write = malloc(sizeof *write + text.len);
    if (write == NULL) {
        conn_close(conn);
        return;
    }
    write->conn = conn;
    write->request.data = write;
    memcpy(write->bytes, text.at, text.len);
    uv_buf_t buf = uv_buf_init(write->bytes, (unsigned)text.len);
    if (uv_write(&write->request, &conn->io.stream, &buf, 1, on_written) != 0) {
        free(write);
        conn_close(conn);
        return;
    }
    conn->writes_pending++;
}

static void send_raw(struct smtp_conn *conn, struct bytes raw)
{
    if (raw.len == 0 || conn->closed)
        return;
    if (conn->writes_pending == 0) {
        uv_buf_t buf = uv_buf_init((char *)raw.at, (unsigned)raw.len);
        int written = uv_try_write(&conn->io.stream, &buf, 1);
        if (written < 0 && written != UV_EAGAIN)
            conn_close(conn);
        raw = bytes_from(raw, written > 0 ? (size_t)written : 0);
    }
    if (raw.len > 0 && !conn->closed)
        send_later(conn, raw);
}

static void send_cipher(struct smtp_conn *conn)
{
    send_raw(conn, tls_conn_leaving(conn->tls));
    tls_conn_left(conn->tls);
}

/* What is to be said waits until TLS is agreed on. */
static void flush(struct smtp_conn *conn)
{
    struct bytes text = buf_bytes(&conn->session.out);
    if (text.len == 0 || conn->closed || conn->handshaking)
        return;
    if (conn->tls == NULL)
        send_raw(conn, text);
    else if (tls_conn_write(conn->tls, text))
        send_cipher(conn);
    else
        conn_close(conn);
    buf_clear(&conn->session.out);
    conn->deadline_us = now_us(conn) + conn->server->config.limits.command_timeout_us;
}

/* ---- the end ---- */

static void on_shutdown(uv_shutdown_t *shutdown, int status)
{
    (void)shutdown, (void)status;
}

/* Our side is shut and the client's last bytes are drained, so that it gets to read the last answer. */
static void conn_finish(struct smtp_conn *conn)
{
    if (conn->finishing || conn->closed || conn->writes_pending > 0)
        return;
    if (conn->tls != NULL) {
        tls_conn_finish(conn->tls);
        send_cipher(conn);
        if (conn->closed || conn->writes_pending > 0)
            return;
    }
    conn->finishing = true;
    conn->deadline_us = now_us(conn) + LINGER_US;
    if (conn->eof || uv_shutdown(&conn->shutdown, &conn->io.stream, on_shutdown) != 0)
        conn_close(conn);
}

/* ---- delivering ---- */

static void delivered_all(struct smtp_conn *conn)
{
    struct smtp_counts *counts = &conn->server->counts;
    bool kept = true;
    for (size_t i = 0; i < conn->session.target_count; i++)
        kept = kept && conn->session.targets[i].status == OK;
    atomic_fetch_add_explicit(kept ? &counts->mails : &counts->failed, 1, memory_order_relaxed);
    if (conn->closed) {
        free_if_done(conn);
        return;
    }
    smtp_session_delivered(&conn->session);
    conn_advance(conn);
}

void smtp_delivered(struct smtp_delivery *delivery, enum status status, const char *sentence)
{
    struct slot *slot = (struct slot *)delivery;
    struct smtp_conn *conn = slot->conn;
    struct smtp_target *target = &conn->session.targets[slot - conn->slots];
    ASSERT(!target->done);
    target->done = true;
    target->status = status;
    if (sentence != NULL)
        snprintf(target->why.text, sizeof target->why.text, "%s", sentence);
    if (--conn->deliveries == 0)
        delivered_all(conn);
}

/* One more is counted while they are handed out, for they may be answered at once. */
static void deliver(struct smtp_conn *conn)
{
    struct smtp_session *session = &conn->session;
    const struct smtp_server_config *config = &conn->server->config;
    size_t count = session->target_count;
    conn->deliveries = count + 1;
    conn->deadline_us = INT64_MAX;
    for (size_t i = 0; i < count; i++) {
        struct slot *slot = &conn->slots[i];
        slot->conn = conn;
        slot->delivery = (struct smtp_delivery){
            .source = bytes_of(session->targets[i].source), .raw = buf_bytes(&session->mail), .peer = conn->peer};
        config->deliver(&slot->delivery, config->user);
    }
    if (--conn->deliveries == 0)
        delivered_all(conn);
}

/* ---- reading ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    (void)suggested;
    struct smtp_conn *conn = handle->data;
    *ret_buf = uv_buf_init(conn->server->scratch, READ_SIZE);
}

/* What the session does not take now waits; nothing is read meanwhile, so it is one read at most. */
static void feed(struct smtp_conn *conn, struct bytes in)
{
    enum smtp_state before = conn->session.state;
    size_t used = smtp_session_feed(&conn->session, in);
    buf_add(&conn->in, bytes_from(in, used));
    if (conn->session.state == SMTP_DATA) {
        int64_t now = now_us(conn);
        if (before != SMTP_DATA)
            conn->data_deadline_us = now + conn->server->config.limits.data_timeout_us;
        int64_t block_us = now + conn->server->config.limits.block_timeout_us;
        flush(conn);
        conn->deadline_us = block_us < conn->data_deadline_us ? block_us : conn->data_deadline_us;
    }
}

/* ---- TLS ---- */

/* From here on whatever comes is ciphertext. */
static void begin_tls(struct smtp_conn *conn)
{
    conn->tls = tls_conn_new(conn->server->config.tls);
    conn->handshaking = true;
    conn->deadline_us = now_us(conn) + HANDSHAKE_US;
    if (conn->tls == NULL)
        conn_close(conn);
}

/* True when it is agreed on. */
static bool shake_hands(struct smtp_conn *conn)
{
    enum status status = tls_conn_handshake(conn->tls);
    send_cipher(conn);
    if (status != OK) {
        if (status != NOTHING)
            conn_close(conn);
        return false;
    }
    conn->handshaking = false;
    conn->deadline_us = now_us(conn) + conn->server->config.limits.command_timeout_us;
    if (conn->session.state == SMTP_SECURE)
        smtp_session_secured(&conn->session);
    flush(conn);
    return !conn->closed;
}

/* Takes what TLS has decrypted; false when there is nothing. */
static bool pull(struct smtp_conn *conn)
{
    char plain[PLAIN_SIZE];
    size_t len = 0;
    if (conn->tls == NULL || conn->handshaking)
        return false;
    enum status status = tls_conn_read(conn->tls, plain, sizeof plain, &len);
    send_cipher(conn);
    if (status == NOTHING || conn->closed)
        return false;
    if (status != OK || len == 0) /* broken, or the client is finished: half a mail is no mail */
        conn_close(conn);
    else
        buf_add(&conn->in, (struct bytes){plain, len});
    explicit_bzero(plain, len);
    return !conn->closed;
}

static void on_data(struct smtp_conn *conn, struct bytes in)
{
    if (conn->finishing) {
        conn->lingered += in.len;
        if (conn->lingered > LINGER_SIZE_MAX)
            conn_close(conn);
        return;
    }
    if (conn->tls == NULL)
        feed(conn, in);
    else if (!tls_conn_feed(conn->tls, in))
        conn_close(conn);
    if (!conn->closed)
        conn_advance(conn);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct smtp_conn *conn = stream->data;
    if (count > 0)
        on_data(conn, (struct bytes){buf->base, (size_t)count});
    else if (count < 0) /* half a mail is no mail */
        conn_close(conn);
}

static void settle_reading(struct smtp_conn *conn)
{
    bool wanted = conn->writes_pending == 0 && conn->session.state != SMTP_DELIVERING;
    if (conn->closed || wanted == conn->reading)
        return;
    conn->reading = wanted;
    if (!wanted)
        uv_read_stop(&conn->io.stream);
    else if (uv_read_start(&conn->io.stream, on_alloc, on_read) != 0)
        conn_close(conn);
}

/* Feeds what waits. */
static void feed_waiting(struct smtp_conn *conn)
{
    struct buf waiting = conn->in;
    buf_init(&conn->in, READ_SIZE);
    conn->in.wipe = true;
    feed(conn, buf_bytes(&waiting));
    buf_release(&waiting);
    flush(conn);
}

/* Goes on with what waits, as far as it goes. A client that does not read its answers is not read either. */
static void conn_advance(struct smtp_conn *conn)
{
    flush(conn);
    while (!conn->closed && conn->deliveries == 0 && conn->writes_pending == 0) {
        enum smtp_state state = conn->session.state;
        if (conn->handshaking) {
            if (!shake_hands(conn))
                break;
        } else if (state == SMTP_DELIVERING) {
            settle_reading(conn);
            deliver(conn);
            return; /* delivered_all() goes on */
        } else if (state == SMTP_ENDED) {
            conn_finish(conn);
            break;
        } else if (state == SMTP_SECURE) {
            begin_tls(conn);
        } else if (conn->in.len > 0 || pull(conn)) {
            feed_waiting(conn);
        } else {
            break;
        }
    }
    if (!conn->closed)
        settle_reading(conn);
}

/* ---- accepting ---- */

static bool find(struct bytes address, char *ret_source, void *user)
{
    struct smtp_conn *conn = user;
    return conn->server->config.find(address, ret_source, conn->server->config.user);
}

static bool log_in(struct bytes password, void *user)
{
    struct smtp_conn *conn = user;
    return conn->server->config.login(password, conn->server->config.user);
}

static void write_date(char ret[40], void *user)
{
    struct smtp_conn *conn = user;
    when_format_mail(conn->server->config.wall_us(), ret);
}

static bool is_crowded(const struct smtp_conn *conn)
{
    const struct smtp_server *server = conn->server;
    const struct smtp_conn *other;
    uint32_t same = 0;
    TAILQ_FOREACH(other, &server->conns, link)
    same += !other->closed && strcmp(other->peer, conn->peer) == 0;
    return server->open_count > server->config.limits.connections_max ||
           (!conn->loopback && same > server->config.limits.connections_per_peer);
}

static enum status begin(struct smtp_conn *conn, struct why *why)
{
    struct smtp_server *server = conn->server;
    struct sockaddr_storage address;
    (void)listen_peer(&conn->io, server->is_unix, &address, conn->peer, &conn->loopback);
    bool secure = server->config.tls != NULL && server->config.tls_at_once;
    if (secure)
        begin_tls(conn);
    const struct smtp_session_config config = {.lmtp = server->config.lmtp,
                                               .can_secure = server->config.tls != NULL && !server->is_unix,
                                               .secured = secure,
                                               .loopback = server->is_unix || conn->loopback,
                                               .login_required = server->config.login_required,
                                               .login = server->config.login != NULL ? log_in : NULL,
                                               .host = server->host,
                                               .peer = conn->peer,
                                               .limits = &server->config.limits,
                                               .find = find,
                                               .date = write_date,
                                               .user = conn};
    return smtp_session_init(&conn->session, &config, why);
}

/* libuv holds the accepted socket until it is taken, so being out of memory here could not be survived quietly. */
static void on_connection(uv_stream_t *listener, int status)
{
    struct smtp_server *server = listener->data;
    struct why why;
    if (status < 0)
        return;
    struct smtp_conn *conn = calloc(1, sizeof *conn);
    ASSERT(conn != NULL);
    int failed = conn_io_init(server->config.loop, server->is_unix, &conn->io);
    ASSERT(failed == 0);
    conn->server = server;
    conn->io.handle.data = conn;
    buf_init(&conn->in, READ_SIZE);
    conn->in.wipe = true;
    failed = uv_accept(listener, &conn->io.stream);
    TAILQ_INSERT_TAIL(&server->conns, conn, link);
    server->open_count++;
    if (failed != 0 || begin(conn, &why) != OK) {
        conn_close(conn);
        return;
    }
    bool crowded = is_crowded(conn);
    atomic_fetch_add_explicit(crowded ? &server->counts.refused : &server->counts.accepted, 1, memory_order_relaxed);
    if (crowded) {
        buf_clear(&conn->session.out);
        smtp_session_end(&conn->session, "421 4.7.0 too many connections; try again later");
    }
    conn_advance(conn);
}

/* ---- time ---- */

static void on_sweep(uv_timer_t *timer)
{
    struct smtp_server *server = timer->data;
    struct smtp_conn *conn = TAILQ_FIRST(&server->conns), *next;
    for (; conn != NULL; conn = next) {
        next = TAILQ_NEXT(conn, link);
        if (conn->closed || conn->deadline_us > now_us(conn))
            continue;
        if (conn->finishing || conn->handshaking || conn->writes_pending > 0 || conn->session.state == SMTP_ENDED) {
            conn_close(conn);
        } else {
            smtp_session_end(&conn->session, "421 4.4.2 nothing came for too long");
            conn_advance(conn);
        }
    }
}

/* ---- life ---- */

static void on_freed(uv_handle_t *handle)
{
    (void)handle;
}

enum status smtp_server_open(const struct smtp_server_config *config, struct smtp_server **ret_server, struct why *why)
{
    struct smtp_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return why_set(why, FULL, "there is no memory for the server");
    size_t size = sizeof server->host;
    server->config = *config;
    server->is_unix = listen_is_unix(config->listen);
    TAILQ_INIT(&server->conns);
    if (uv_os_gethostname(server->host, &size) != 0 || server->host[0] == '\0')
        snprintf(server->host, sizeof server->host, "localhost");
    int failed = conn_io_init(config->loop, server->is_unix, &server->listener);
    ASSERT(failed == 0);
    server->listener.handle.data = server;
    uv_timer_init(config->loop, &server->sweep);
    server->sweep.data = server;
    enum status status = listen_on(&server->listener, config->listen, on_connection, server->address, why);
    if (status != OK) { /* the handles close with the loop */
        smtp_server_stop(server);
        uv_run(config->loop, UV_RUN_NOWAIT);
        smtp_server_free(server);
        return status;
    }
    uv_timer_start(&server->sweep, on_sweep, SWEEP_EVERY_MS, SWEEP_EVERY_MS);
    *ret_server = server;
    return OK;
}

const char *smtp_server_address(const struct smtp_server *server)
{
    return server->address;
}

const struct smtp_counts *smtp_server_counts(const struct smtp_server *server)
{
    return &server->counts;
}

void smtp_server_stop(struct smtp_server *server)
{
    struct smtp_conn *conn = TAILQ_FIRST(&server->conns), *next;
    if (server->stopping)
        return;
    server->stopping = true;
    uv_close(&server->listener.handle, on_freed);
    uv_close((uv_handle_t *)&server->sweep, on_freed);
    for (; conn != NULL; conn = next) {
        next = TAILQ_NEXT(conn, link);
        if (!conn->closed && conn->session.state != SMTP_DELIVERING) {
            smtp_session_end(&conn->session, "421 4.3.2 stopping; try again later");
            flush(conn);
        }
        conn_close(conn);
    }
}

void smtp_server_free(struct smtp_server *server)
{
    ASSERT(TAILQ_EMPTY(&server->conns));
    free(server);
}
