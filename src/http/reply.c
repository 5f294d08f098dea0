#include "http/conn.h"

#include <time.h>

enum { TLS_PIECE_SIZE = 16 * 1024 };

/* ---- sending ---- */

struct write {
    uv_write_t request;
    struct http_conn *conn;
    char bytes[];
};

static void on_written(uv_write_t *request, int status)
{
    struct write *write = request->data;
    struct http_conn *conn = write->conn;
    free(write);
    conn->writes_pending--;
    if (conn->state == CONN_CLOSED)
        return;
    if (status < 0) {
        conn_close(conn);
        return;
    }
    if (conn->state != CONN_WRITING || conn->writes_pending > 0)
        return;
    if (conn->finish || conn->server->stopping)
        conn_finish(conn);
    else
        conn_move(conn, CONN_IDLE, loop_now_us(conn->server) + conn->server->config.limits.idle_timeout_us);
    conn_advance(conn);
}

/* What the socket did not take at once is copied, so that the caller's bytes are free again. */
static void send_later(struct http_conn *conn, struct bytes raw)
{
    struct write *write = malloc(sizeof *write + raw.len);
    if (write == NULL) {
        conn_close(conn);
        return;
    }
    write->conn = conn;
    write->request.data = write;
    memcpy(write->bytes, raw.at, raw.len);
    uv_buf_t buf = uv_buf_init(write->bytes, (unsigned)raw.len);
    if (uv_write(&write->request, &conn->io.stream, &buf, 1, on_written) != 0) {
        free(write);
        conn_close(conn);
        return;
    }
    conn->writes_pending++;
}

static void send_raw(struct http_conn *conn, struct bytes raw)
{
    if (conn->state == CONN_CLOSED || raw.len == 0)
        return;
    count_add(&conn->server->counts.bytes_out, raw.len);
    if (conn->writes_pending == 0) {
        uv_buf_t buf = uv_buf_init((char *)raw.at, (unsigned)raw.len);
        int written = uv_try_write(&conn->io.stream, &buf, 1);
        if (written < 0 && written != UV_EAGAIN) {
            conn_close(conn);
            return;
        }
        raw = bytes_from(raw, written > 0 ? (size_t)written : 0);
    }
    if (raw.len > 0)
        send_later(conn, raw);
}

void conn_send_cipher(struct http_conn *conn)
{
    struct bytes cipher = tls_conn_leaving(conn->tls);
    if (cipher.len == 0)
        return;
    send_raw(conn, cipher);
    tls_conn_left(conn->tls);
}

/* Piece by piece, so that a large reply does not leave a large buffer inside the TLS connection. */
void conn_send(struct http_conn *conn, struct bytes plain)
{
    if (conn->tls == NULL) {
        send_raw(conn, plain);
        return;
    }
    while (plain.len > 0 && conn->state != CONN_CLOSED) {
        struct bytes piece = {plain.at, plain.len < TLS_PIECE_SIZE ? plain.len : TLS_PIECE_SIZE};
        if (!tls_conn_write(conn->tls, piece)) {
            conn_close(conn);
            return;
        }
        conn_send_cipher(conn);
        plain = bytes_from(plain, piece.len);
    }
}

/* ---- the text of a reply ---- */

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {303, "See Other"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {428, "Precondition Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "";
}

/* Made once a second, and without strftime, whose names depend on the locale. */
static const char *date_line(struct http_server *server)
{
    static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int64_t now_s = loop_now_us(server) / 1000000;
    if (server->date[0] != '\0' && server->date_s == now_s)
        return server->date;
    struct timespec wall;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &wall);
    if (gmtime_r(&wall.tv_sec, &tm) == NULL)
        return "";
    server->date_s = now_s;
    snprintf(server->date, sizeof server->date, "Date: %.3s, %02d %.3s %04d %02d:%02d:%02d GMT\r\n", days + 3 * tm.tm_wday,
             tm.tm_mday, months + 3 * tm.tm_mon, tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
    return server->date;
}

static bool has_no_body(int status)
{
    return status == 204 || status == 304;
}

static void add_header(struct buf *out, struct bytes name, struct bytes value)
{
    buf_add(out, name);
    buf_add(out, BYTES(": "));
    buf_add(out, value);
    buf_add(out, BYTES("\r\n"));
}

static void add_connection(struct buf *out, const struct http_head *head, bool close)
{
    if (close)
        buf_add(out, BYTES("Connection: close\r\n"));
    else if (head->minor == 0)
        buf_add(out, BYTES("Connection: keep-alive\r\n"));
}

static void add_status(struct http_server *server, const struct http_reply *reply)
{
    struct buf *out = &server->out;
    buf_clear(out);
    buf_add(out, BYTES("HTTP/1.1 "));
    buf_add_u64(out, (uint64_t)reply->status);
    buf_add_char(out, ' ');
    buf_add_cstr(out, reason_of(reply->status));
    buf_add(out, BYTES("\r\n"));
    buf_add_cstr(out, date_line(server));
    if (reply->content_type != NULL && !has_no_body(reply->status))
        add_header(out, BYTES("Content-Type"), bytes_of(reply->content_type));
}

/* A reply to `head`, or to nothing that was understood when that is NULL (then it closes). */
static void assemble(struct http_server *server, const struct http_head *head, const struct http_reply *reply, bool close)
{
    struct buf *out = &server->out;
    add_status(server, reply);
    if (!has_no_body(reply->status)) {
        buf_add(out, BYTES("Content-Length: "));
        buf_add_u64(out, reply->body.len);
        buf_add(out, BYTES("\r\n"));
    }
    for (size_t i = 0; i < reply->header_count; i++)
        add_header(out, reply->headers[i].name, reply->headers[i].value);
    add_connection(out, head, close);
    buf_add(out, BYTES("\r\n"));
    if (!has_no_body(reply->status) && (head == NULL || head->method != HTTP_HEAD))
        buf_add(out, reply->body);
}

static bool has_line_break(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] < ' ' && text.at[i] != '\t')
            return true;
    return false;
}

/* A header that carries a line break, however it got there, would be a second header or a second reply. */
static bool is_safe(const struct http_reply *reply)
{
    for (size_t i = 0; i < reply->header_count; i++)
        if (has_line_break(reply->headers[i].name) || has_line_break(reply->headers[i].value))
            return false;
    return reply->content_type == NULL || !has_line_break(bytes_of(reply->content_type));
}

static void release_large(struct buf *out)
{
    if (out->cap > REPLY_SIZE_KEPT)
        buf_release(out);
}

static void send_refusal(struct http_conn *conn, const struct http_head *head, int status, const char *why)
{
    struct http_server *server = conn->server;
    struct buf body;
    buf_init(&body, SCRATCH_SIZE);
    if (server->config.refuse != NULL)
        server->config.refuse(status, why, &body, server->config.user);
    struct http_reply reply = {.status = status, .body = buf_bytes(&body)};
    if (body.failed)
        reply.body = (struct bytes){"", 0};
    if (reply.body.len > 0)
        reply.content_type = "application/problem+json";
    assemble(server, head, &reply, true);
    buf_release(&body);
    if (server->out.failed)
        conn_close(conn);
    else
        conn_send(conn, buf_bytes(&server->out));
}

void conn_refuse(struct http_conn *conn, int status, const char *why)
{
    if (conn->state == CONN_CLOSED)
        return;
    count_add(&conn->server->counts.refused, 1);
    if (conn->state == CONN_HANDSHAKE) {
        conn_close(conn);
        return;
    }
    send_refusal(conn, NULL, status, why);
    conn_finish(conn);
    conn_advance(conn);
}

static void send_reply(struct http_conn *conn, const struct http_reply *reply)
{
    struct http_server *server = conn->server;
    const struct http_head *head = &conn->request.head;
    conn->finish = reply->close || !head->keep_alive || server->stopping;
    if (is_safe(reply)) {
        assemble(server, head, reply, conn->finish);
        if (!server->out.failed) {
            conn_send(conn, buf_bytes(&server->out));
            release_large(&server->out);
            return;
        }
        release_large(&server->out);
    }
    conn->finish = true;
    send_refusal(conn, head, 500, "the reply could not be written down");
}

void http_reply(struct http_request *request, const struct http_reply *reply)
{
    struct http_conn *conn = request->conn;
    ASSERT(conn->running);
    count_add(&conn->server->counts.replies, 1);
    if (conn->state != CONN_CLOSED)
        send_reply(conn, reply);
    conn_request_done(conn);
}

/* ---- in pieces ---- */

void http_reply_begin(struct http_request *request, const struct http_reply *reply)
{
    struct http_conn *conn = request->conn;
    struct http_server *server = conn->server;
    struct buf *out = &server->out;
    ASSERT(conn->running);
    count_add(&server->counts.replies, 1);
    if (conn->state == CONN_CLOSED)
        return;
    conn->chunked = request->head.minor > 0; /* HTTP/1.0 reads until the connection ends */
    conn->finish = !conn->chunked || reply->close || !request->head.keep_alive || server->stopping;
    add_status(server, reply);
    if (conn->chunked)
        add_header(out, BYTES("Transfer-Encoding"), BYTES("chunked"));
    for (size_t i = 0; i < reply->header_count; i++)
        add_header(out, reply->headers[i].name, reply->headers[i].value);
    add_connection(out, &request->head, conn->finish);
    buf_add(out, BYTES("\r\n"));
    if (is_safe(reply) && !out->failed)
        conn_send(conn, buf_bytes(out));
    else
        conn_close(conn);
}

void http_reply_piece(struct http_request *request, struct bytes piece)
{
    struct http_conn *conn = request->conn;
    ASSERT(conn->running);
    if (conn->state == CONN_CLOSED || piece.len == 0 || request->head.method == HTTP_HEAD)
        return;
    if (!conn->chunked) {
        conn_send(conn, piece);
        return;
    }
    struct buf *out = &conn->server->out;
    buf_clear(out);
    buf_printf(out, "%zx\r\n", piece.len);
    buf_add(out, piece);
    buf_add(out, BYTES("\r\n"));
    if (out->failed)
        conn_close(conn);
    else
        conn_send(conn, buf_bytes(out));
    release_large(out);
}

void http_reply_end(struct http_request *request, bool whole)
{
    struct http_conn *conn = request->conn;
    ASSERT(conn->running);
    if (conn->state != CONN_CLOSED && !whole)
        conn_close(conn);
    if (conn->state != CONN_CLOSED && conn->chunked && request->head.method != HTTP_HEAD)
        conn_send(conn, BYTES("0\r\n\r\n"));
    conn_request_done(conn);
}
