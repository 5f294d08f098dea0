#include "http/fixture_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- a server on a thread of its own ---- */

struct http_server *server;
pthread_t loop_thread;
struct why why;

static void reply_text(struct http_request *request, int status, struct bytes body)
{
    static const struct http_header header = {{"X-Test", 6}, {"yes", 3}};
    http_reply(request, &(struct http_reply){status, "text/plain", &header, 1, body, false});
}

static void reply_later(void *arg)
{
    reply_text(arg, 200, BYTES("late"));
}

_Atomic bool release, saw_gone, late_is_over;

/* Waits until the test lets it go on (or the client is gone), then answers through the loop. */
static void *work(void *arg)
{
    struct http_request *request = arg;
    while (!release && !request->gone)
        usleep(1000);
    saw_gone = request->gone;
    while (!release)
        usleep(1000);
    http_server_post(server, reply_later, request);
    late_is_over = true;
    return NULL;
}

static void handle_late(struct http_request *request)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, request) != 0)
        abort();
    pthread_detach(thread);
}

static void handle_large(struct http_request *request)
{
    size_t size = 4 << 20;
    char *body = arena_alloc(request->arena, size);
    memset(body, 'x', size);
    reply_text(request, 200, (struct bytes){body, size});
}

static void handle(struct http_request *request, void *user)
{
    (void)user;
    struct bytes path = request->head.path;
    static const struct http_header split = {{"X", 1}, {"a\r\nSet-Cookie: b", 16}};
    if (bytes_is(path, "/late"))
        handle_late(request);
    else if (bytes_is(path, "/large"))
        handle_large(request);
    else if (bytes_is(path, "/204"))
        reply_text(request, 204, BYTES("not sent"));
    else if (bytes_is(path, "/split"))
        http_reply(request, &(struct http_reply){200, NULL, &split, 1, BYTES(""), false});
    else if (bytes_is(path, "/close"))
        http_reply(request, &(struct http_reply){200, NULL, NULL, 0, BYTES("bye"), true});
    else if (bytes_is(path, "/peer"))
        reply_text(request, request->peer_loopback ? 200 : 500, bytes_of(request->peer));
    else if (request->body.len > 0)
        reply_text(request, 200, request->body);
    else
        reply_text(request, 200, request->head.target);
}

static void refuse(int status, const char *sentence, struct buf *out, void *user)
{
    (void)user;
    buf_printf(out, "{\"status\":%d,\"detail\":\"%s\"}", status, sentence);
}

struct http_server_config config_default(void)
{
    struct http_server_config config = {
        .listen = "127.0.0.1:0", .limits = http_limits_default, .handle = handle, .refuse = refuse};
    config.limits.body_size_max = BODY_MAX;
    return config;
}

void *run(void *arg)
{
    http_server_run(arg);
    return NULL;
}

void start(struct http_server_config config)
{
    enum status status = http_server_open(&config, &server, &why);
    if (status != OK)
        check_fail(__FILE__, __LINE__, "%s: %s", status_name(status), why.text);
    CHECK_INT(pthread_create(&loop_thread, NULL, run, server), 0);
}

void stop(int64_t grace_us)
{
    http_server_stop(server, grace_us);
    pthread_join(loop_thread, NULL);
    CHECK_INT(http_server_counts(server)->open, 0);
    http_server_close(server);
}

/* ---- a client ---- */

int dial_address(struct sockaddr_in address)
{
    uint64_t port = 0;
    CHECK(bytes_to_u64(bytes_of(strrchr(http_server_address(server), ':') + 1), &port));
    address.sin_port = htons((uint16_t)port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct timeval wait = {20, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    CHECK_INT(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

int dial(void)
{
    return dial_address((struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)});
}

void say_bytes(int fd, struct bytes text)
{
    while (text.len > 0) {
        ssize_t sent = send(fd, text.at, text.len, MSG_NOSIGNAL);
        CHECK(sent > 0);
        text = bytes_from(text, (size_t)sent);
    }
}

void say(int fd, const char *text)
{
    say_bytes(fd, bytes_of(text));
}

char answer[ANSWER_SIZE_MAX];

static ssize_t read_some(int fd, size_t at)
{
    ssize_t got = recv(fd, answer + at, sizeof answer - 1 - at, 0);
    if (got < 0 && errno == EAGAIN)
        check_fail(__FILE__, __LINE__, "the server neither answered nor closed in 20 s");
    return got;
}

const char *hear_all(int fd)
{
    size_t len = 0;
    ssize_t got;
    while ((got = read_some(fd, len)) > 0)
        len += (size_t)got;
    answer[len] = '\0';
    return answer;
}

const char *hear_until(int fd, const char *last)
{
    size_t len = 0;
    answer[0] = '\0';
    while (len < strlen(last) || memcmp(answer + len - strlen(last), last, strlen(last)) != 0) {
        ssize_t got = read_some(fd, len);
        if (got <= 0)
            check_fail(__FILE__, __LINE__, "closed before \"%s\": %.300s", last, answer);
        len += (size_t)got;
        answer[len] = '\0';
    }
    return answer;
}

bool contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fprintf(stderr, "    no \"%s\" in \"%.400s\"\n", part, text);
    return strstr(text, part) != NULL;
}

const char *ask(const char *text)
{
    int fd = dial();
    say(fd, text);
    hear_all(fd);
    close(fd);
    return answer;
}
