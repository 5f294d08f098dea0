#include "http/conn.h"

/* ---- lists and states ---- */

static struct conn_list *list_of(struct http_server *server, enum conn_state state)
{
    switch (state) {
    case CONN_IDLE:
        return &server->idle;
    case CONN_LINGER:
        return &server->linger;
    case CONN_CLOSED:
        return &server->closing;
    case CONN_HANDSHAKE:
    case CONN_HEAD:
    case CONN_BODY:
    case CONN_RUNNING:
    case CONN_WRITING:
        break;
    }
    return &server->busy;
}

void conn_move(struct http_conn *conn, enum conn_state state, int64_t deadline_us)
{
    struct conn_list *from = list_of(conn->server, conn->state), *to = list_of(conn->server, state);
    conn->state = state;
    conn->deadline_us = deadline_us;
    if (conn->listed && from == to)
        return;
    if (conn->listed)
        TAILQ_REMOVE(from, conn, link);
    TAILQ_INSERT_TAIL(to, conn, link);
    conn->listed = true;
}

static int64_t after(const struct http_conn *conn, int64_t timeout_us)
{
    return loop_now_us(conn->server) + timeout_us;
}

/* ---- life ---- */

struct http_conn *conn_new(struct http_server *server)
{
    struct http_conn *conn = calloc(1, sizeof *conn);
    if (conn == NULL)
        return NULL;
    if (server->tls != NULL && (conn->tls = tls_conn_new(server->tls)) == NULL) {
        free(conn);
        return NULL;
    }
    conn->server = server;
    buf_init(&conn->in, HTTP_HEAD_SIZE_MAX + server->config.limits.body_size_max + READ_SLACK);
    arena_init(&conn->arena, ARENA_SIZE_MAX);
    conn->in.wipe = conn->arena.wipe = true; /* requests carry tokens and secrets */
    conn->request.arena = &conn->arena;
    conn->request.conn = conn;
    atomic_init(&conn->request.gone, false);
    return conn;
}

void conn_free(struct http_conn *conn)
{
    TAILQ_REMOVE(list_of(conn->server, conn->state), conn, link);
    tls_conn_free(conn->tls);
    buf_release(&conn->in);
    arena_release(&conn->arena);
    free(conn);
}

static void on_closed(uv_handle_t *handle)
{
    struct http_conn *conn = handle->data;
    conn->handle_closed = true;
    if (!conn->running)
        conn_free(conn);
}

void conn_close(struct http_conn *conn)
{
    if (conn->state == CONN_CLOSED)
        return;
    conn_move(conn, CONN_CLOSED, INT64_MAX);
    conn->reading = false;
    if (conn->running)
        atomic_store(&conn->request.gone, true);
    peer_forget(conn);
    conn->server->open_count--;
    atomic_fetch_sub_explicit(&conn->server->counts.open, 1, memory_order_relaxed);
    uv_close(&conn->io.handle, on_closed);
    server_conn_closed(conn->server);
}

static void on_shutdown(uv_shutdown_t *shutdown, int status)
{
    (void)shutdown, (void)status;
}

void conn_finish(struct http_conn *conn)
{
    if (conn->state == CONN_CLOSED || conn->state == CONN_LINGER)
        return;
    conn->finish = true;
    if (conn->tls != NULL && conn->writes_pending == 0) {
        tls_conn_finish(conn->tls);
        conn_send_cipher(conn);
    }
    if (conn->state == CONN_CLOSED)
        return;
    if (conn->writes_pending > 0) {
        conn->write_mark = uv_stream_get_write_queue_size(&conn->io.stream);
        conn_move(conn, CONN_WRITING, after(conn, conn->server->config.limits.body_timeout_us));
    } else if (conn->eof || uv_shutdown(&conn->shutdown, &conn->io.stream, on_shutdown) != 0) {
        conn_close(conn);
    } else {
        conn_move(conn, CONN_LINGER, after(conn, LINGER_US));
    }
}

/* ---- the buffer ---- */

static struct bytes unread(const struct http_conn *conn)
{
    return bytes_from(buf_bytes(&conn->in), conn->start);
}

static size_t room_left(const struct http_conn *conn)
{
    return conn->in.cap - conn->in.len;
}

/* Room for the next read. While a handler runs, the buffer must not move: it gets what is left. */
static size_t make_room(struct http_conn *conn)
{
    if (conn->state == CONN_RUNNING || room_left(conn) >= READ_SIZE_LEAST)
        return room_left(conn);
    conn->moved = true;
    buf_drop(&conn->in, conn->start);
    conn->start = 0;
    if (room_left(conn) >= READ_SIZE_LEAST)
        return room_left(conn);
    size_t more = conn->in.cap < READ_SIZE_FIRST ? READ_SIZE_FIRST : conn->in.cap;
    size_t most = conn->in.size_max - conn->in.len;
    (void)buf_reserve(&conn->in, more < most ? more : most);
    conn->in.failed = false;
    return room_left(conn);
}

/* Forgets the answered request, which is zeroed; memory that a large body needed is given back. */
static void drop_request(struct http_conn *conn)
{
    explicit_bzero(conn->in.at + conn->start, conn->whole_size);
    conn->start += conn->whole_size;
    conn->scanned = conn->whole_size = 0;
    size_t left = conn->in.len - conn->start;
    if (left == 0)
        conn->start = conn->in.len = 0;
    if (conn->in.cap <= 2 * READ_SIZE_FIRST || left > READ_SIZE_FIRST)
        return;
    struct buf small;
    buf_init(&small, HTTP_HEAD_SIZE_MAX + conn->server->config.limits.body_size_max + READ_SLACK);
    small.wipe = true;
    if (!buf_reserve(&small, READ_SIZE_FIRST))
        return;
    buf_add(&small, unread(conn));
    buf_release(&conn->in);
    conn->in = small;
    conn->start = 0;
}

static void received(struct http_conn *conn, size_t count)
{
    conn->in.len += count;
    conn->body_seen += count;
}

/* ---- from bytes to requests ---- */

/* The peer sends no more and what is there is no whole request: nothing runs, nobody is answered. */
static bool wait_for_more(struct http_conn *conn)
{
    if (conn->eof)
        conn_close(conn);
    return false;
}

/* Some requests may be larger than others; whoever was allowed that once keeps the right to the room, not the room. */
static void set_body_max(struct http_conn *conn)
{
    const struct http_server_config *config = &conn->server->config;
    size_t most = config->limits.body_size_max;
    size_t more = config->body_size != NULL ? config->body_size(&conn->request.head, config->user) : 0;
    conn->body_max = more > most ? more : most;
    size_t in_max = HTTP_HEAD_SIZE_MAX + conn->body_max + READ_SLACK, arena_max = ARENA_SIZE_MAX + 3 * (conn->body_max - most);
    if (conn->in.size_max < in_max)
        conn->in.size_max = in_max;
    if (conn->arena.size_max < arena_max)
        conn->arena.size_max = arena_max;
}

static void begin_body(struct http_conn *conn, size_t head_size)
{
    const struct http_limits *limits = &conn->server->config.limits;
    const struct http_head *head = &conn->request.head;
    set_body_max(conn);
    if (head->has_length && head->length > conn->body_max) {
        conn_refuse(conn, 413, "the body is larger than allowed");
        return;
    }
    conn->head_size = head_size;
    conn->body_size = 0;
    conn->chunks = (struct http_chunks){0};
    conn->moved = false;
    conn->body_seen = unread(conn).len - head_size;
    conn->body_start_us = loop_now_us(conn->server);
    conn_move(conn, CONN_BODY, after(conn, limits->body_timeout_us));
    if (head->expect_continue && conn->body_seen == 0 && (head->chunked || head->length > 0))
        conn_send(conn, BYTES("HTTP/1.1 100 Continue\r\n\r\n"));
}

static bool step_head(struct http_conn *conn)
{
    struct bytes in = unread(conn);
    struct why why = {0};
    size_t size = 0;
    int code = 0;
    if (in.len == 0) {
        if (conn->eof)
            conn_finish(conn);
        return false;
    }
    if (conn->state == CONN_IDLE)
        conn_move(conn, CONN_HEAD, after(conn, conn->server->config.limits.head_timeout_us));
    switch (http_parse_head(in, &conn->scanned, &conn->request.head, &size, &code, &why)) {
    case OK:
        begin_body(conn, size);
        return true;
    case NOTHING:
        return wait_for_more(conn);
    case INVALID:
    case CONFLICT:
    case RETRY:
    case UNKNOWN:
    case FULL:
    case BROKEN:
        break;
    }
    conn_refuse(conn, code, why.text);
    return false;
}

/* The head points into the buffer; when that moved while the body came in, it is parsed again. */
static void find_head_again(struct http_conn *conn)
{
    size_t scanned = 0, size = 0;
    int code = 0;
    struct bytes head = {unread(conn).at, conn->head_size};
    enum status status = http_parse_head(head, &scanned, &conn->request.head, &size, &code, NULL);
    ASSERT(status == OK);
}

static bool run(struct http_conn *conn, size_t body_size, size_t whole_size)
{
    struct http_server *server = conn->server;
    struct http_request *request = &conn->request;
    if (conn->moved)
        find_head_again(conn);
    conn->whole_size = whole_size;
    conn->running = true;
    request->body = (struct bytes){unread(conn).at + conn->head_size, body_size};
    request->number = ++server->request_number;
    request->started_us = (int64_t)(uv_hrtime() / 1000);
    request->user = NULL;
    atomic_store_explicit(&request->gone, conn->eof, memory_order_relaxed);
    conn_move(conn, CONN_RUNNING, INT64_MAX);
    count_add(&server->counts.requests, 1);
    server->config.handle(request, server->config.user);
    return true;
}

/* Decodes in place: payload is moved down over the framing, so the buffer never holds both. */
static bool step_chunks(struct http_conn *conn)
{
    size_t decoded = conn->head_size + conn->body_size, consumed = 0, produced = 0;
    struct bytes in = bytes_from(unread(conn), decoded);
    size_t room = conn->body_max - conn->body_size;
    struct why why = {0};
    char *out = conn->in.at + conn->start + decoded;
    enum status status = http_parse_chunks(&conn->chunks, in, out, room, &consumed, &produced, &why);
    if (status != OK && status != NOTHING) {
        conn_refuse(conn, status == FULL ? 413 : 400, why.text);
        return false;
    }
    conn->body_size += produced;
    if (status == OK)
        return run(conn, conn->body_size, decoded + consumed);
    size_t kept = conn->start + decoded + produced;
    explicit_bzero(conn->in.at + kept, conn->in.len - kept); /* what was moved down must not stay here too */
    conn->in.len = kept;
    return wait_for_more(conn);
}

static bool step_body(struct http_conn *conn)
{
    const struct http_head *head = &conn->request.head;
    if (head->chunked)
        return step_chunks(conn);
    if (unread(conn).len - conn->head_size < head->length)
        return wait_for_more(conn);
    return run(conn, (size_t)head->length, conn->head_size + (size_t)head->length);
}

static bool step(struct http_conn *conn)
{
    switch (conn->state) {
    case CONN_IDLE:
    case CONN_HEAD:
        return step_head(conn);
    case CONN_BODY:
        return step_body(conn);
    case CONN_HANDSHAKE:
    case CONN_RUNNING:
    case CONN_WRITING:
    case CONN_LINGER:
    case CONN_CLOSED:
        break;
    }
    return false;
}

/* ---- TLS ---- */

static void peer_finished(struct http_conn *conn)
{
    conn->eof = true;
    if (conn->running)
        atomic_store(&conn->request.gone, true);
}

static bool pull_handshake(struct http_conn *conn)
{
    enum status status = tls_conn_handshake(conn->tls);
    conn_send_cipher(conn);
    if (status == OK && conn->state != CONN_CLOSED) {
        conn_move(conn, CONN_IDLE, after(conn, conn->server->config.limits.idle_timeout_us));
        return true;
    }
    if (status != NOTHING || conn->eof)
        conn_close(conn);
    return false;
}

/* Takes decrypted bytes into the buffer; false when nothing changed. */
static bool pull_plain(struct http_conn *conn)
{
    size_t room = make_room(conn), len = 0;
    if (room == 0)
        return false;
    enum status status = tls_conn_read(conn->tls, conn->in.at + conn->in.len, room, &len);
    conn_send_cipher(conn);
    if (status == NOTHING || conn->state == CONN_CLOSED || (status == OK && len == 0 && conn->eof))
        return false;
    if (status != OK)
        conn_close(conn);
    else if (len == 0)
        peer_finished(conn);
    else
        received(conn, len);
    return true;
}

static bool pull(struct http_conn *conn)
{
    switch (conn->state) {
    case CONN_HANDSHAKE:
        return pull_handshake(conn);
    case CONN_IDLE:
    case CONN_HEAD:
    case CONN_BODY:
    case CONN_RUNNING:
        return pull_plain(conn);
    case CONN_WRITING:
    case CONN_LINGER:
    case CONN_CLOSED:
        break;
    }
    return false;
}

/* ---- reading ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    (void)suggested;
    struct http_conn *conn = handle->data;
    if (conn->tls != NULL || conn->state == CONN_LINGER) {
        *ret_buf = uv_buf_init(conn->server->scratch, conn->state == CONN_LINGER ? SCRATCH_SIZE : CIPHER_READ_SIZE);
        return;
    }
    size_t room = make_room(conn);
    *ret_buf = uv_buf_init(room > 0 ? conn->in.at + conn->in.len : NULL, (unsigned)room);
}

static void on_data(struct http_conn *conn, struct bytes data)
{
    count_add(&conn->server->counts.bytes_in, data.len);
    if (conn->state == CONN_LINGER) {
        conn->lingered += data.len;
        if (conn->lingered > LINGER_BYTES_MAX)
            conn_close(conn);
        return;
    }
    if (conn->tls == NULL)
        received(conn, data.len);
    else if (!tls_conn_feed(conn->tls, data))
        conn_close(conn);
    conn_advance(conn);
}

/* The end of the client's bytes is not yet its departure: it may have shut only its sending side and wait for the answer. */
static void on_end(struct http_conn *conn)
{
    conn->reading = false;
    peer_finished(conn);
    if (conn->state == CONN_LINGER || conn->state == CONN_HANDSHAKE)
        conn_close(conn);
    else
        conn_advance(conn);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct http_conn *conn = stream->data;
    if (count > 0)
        on_data(conn, (struct bytes){buf->base, (size_t)count});
    else if (count == UV_EOF)
        on_end(conn);
    else if (count < 0)
        conn_close(conn);
}

static bool wants_read(const struct http_conn *conn)
{
    switch (conn->state) {
    case CONN_HANDSHAKE:
    case CONN_IDLE:
    case CONN_HEAD:
    case CONN_BODY:
    case CONN_LINGER:
        return !conn->eof;
    case CONN_RUNNING:
        return !conn->eof && room_left(conn) > 0;
    case CONN_WRITING:
    case CONN_CLOSED:
        break;
    }
    return false;
}

static void settle_reading(struct http_conn *conn)
{
    bool wanted = wants_read(conn);
    if (wanted == conn->reading || conn->state == CONN_CLOSED)
        return;
    conn->reading = wanted;
    if (!wanted)
        uv_read_stop(&conn->io.stream);
    else if (uv_read_start(&conn->io.stream, on_alloc, on_read) != 0)
        conn_close(conn);
}

void conn_advance(struct http_conn *conn)
{
    if (conn->advancing)
        return;
    conn->advancing = true;
    do {
        while (step(conn))
            continue;
    } while (conn->tls != NULL && pull(conn));
    conn->advancing = false;
    settle_reading(conn);
}

void conn_request_done(struct http_conn *conn)
{
    conn->running = false;
    if (conn->state == CONN_CLOSED) {
        if (conn->handle_closed)
            conn_free(conn);
        return;
    }
    arena_clear(&conn->arena);
    drop_request(conn);
    if (conn->finish) {
        conn_finish(conn);
    } else if (conn->writes_pending > 0) {
        conn->write_mark = uv_stream_get_write_queue_size(&conn->io.stream);
        conn_move(conn, CONN_WRITING, after(conn, conn->server->config.limits.body_timeout_us));
    } else {
        conn_move(conn, CONN_IDLE, after(conn, conn->server->config.limits.idle_timeout_us));
    }
    conn_advance(conn);
}

/* ---- time ---- */

static bool body_is_too_slow(const struct http_conn *conn, int64_t now_us)
{
    const struct http_limits *limits = &conn->server->config.limits;
    int64_t elapsed_us = now_us - conn->body_start_us;
    return elapsed_us > limits->body_rate_after_us && conn->body_seen < limits->body_rate_min * (uint64_t)elapsed_us / 1000000;
}

/* A reader may be slow, but in each time window it must take as much as a sender would have to send. */
static void check_writing(struct http_conn *conn, int64_t now_us)
{
    const struct http_limits *limits = &conn->server->config.limits;
    if (now_us < conn->deadline_us)
        return;
    size_t queued = uv_stream_get_write_queue_size(&conn->io.stream);
    size_t taken = conn->write_mark > queued ? conn->write_mark - queued : 0;
    if (taken < limits->body_rate_min * (uint64_t)limits->body_timeout_us / 1000000 || taken == 0) {
        conn_close(conn);
        return;
    }
    conn->write_mark = queued;
    conn->deadline_us = now_us + limits->body_timeout_us;
}

void conn_check_time(struct http_conn *conn, int64_t now_us)
{
    bool late = now_us >= conn->deadline_us;
    switch (conn->state) {
    case CONN_HANDSHAKE:
    case CONN_IDLE:
    case CONN_LINGER:
        if (late)
            conn_close(conn);
        break;
    case CONN_HEAD:
        if (late)
            conn_refuse(conn, 408, "the request head did not arrive in time");
        break;
    case CONN_BODY:
        if (late || body_is_too_slow(conn, now_us))
            conn_refuse(conn, 408, "the request body did not arrive in time");
        break;
    case CONN_WRITING:
        check_writing(conn, now_us);
        break;
    case CONN_RUNNING:
    case CONN_CLOSED:
        break;
    }
}
