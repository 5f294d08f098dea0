#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"
#include "http/listen.h"
#include "smtp/server.h"

/* A server on a thread of its own, and a plain blocking client. "src1" is kept, "srcbad" never, "srcfull" not now, "srclate" when
 * the test says so. */

static uv_loop_t loop;
static uv_async_t wake;
static struct smtp_server *server;
static pthread_t thread;
static struct why why;
static _Atomic bool stop_now, answer_late;
static struct smtp_delivery *_Atomic late;
static uv_timer_t *late_timer; /* answers after the end */
static char kept[1 << 20];
static char heard[1 << 16];

static bool find(struct bytes address, char *ret_source, void *user)
{
    (void)user;
    if (!bytes_starts(address, BYTES("src")))
        return false;
    snprintf(ret_source, SMTP_SOURCE_SIZE_MAX + 1, "%.*s", BYTES_ARG(mailbox_name(address)));
    return true;
}

static void deliver(struct smtp_delivery *delivery, void *user)
{
    (void)user;
    if (bytes_is(delivery->source, "srcbad")) {
        smtp_delivered(delivery, INVALID, "it has no header");
    } else if (bytes_is(delivery->source, "srcfull")) {
        smtp_delivered(delivery, FULL, "the disk is full");
    } else if (bytes_is(delivery->source, "srclate")) {
        late = delivery;
    } else {
        snprintf(kept, sizeof kept, "%.*s", BYTES_ARG(delivery->raw));
        smtp_delivered(delivery, OK, NULL);
    }
}

static int64_t wall_us(void)
{
    return INT64_C(1794819600) * 1000000;
}

static void on_late(uv_timer_t *timer)
{
    smtp_delivered(late, OK, NULL);
    uv_close((uv_handle_t *)timer, NULL);
}

static void on_wake(uv_async_t *async)
{
    (void)async;
    if (late_timer != NULL) {
        uv_timer_init(&loop, late_timer);
        uv_timer_start(late_timer, on_late, 100, 0);
    }
    if (atomic_exchange(&answer_late, false) && late != NULL)
        smtp_delivered(late, OK, NULL);
    if (stop_now)
        smtp_server_stop(server);
    if (stop_now)
        uv_close((uv_handle_t *)&wake, NULL);
}

static void *run(void *arg)
{
    (void)arg;
    uv_run(&loop, UV_RUN_DEFAULT);
    return NULL;
}

static struct smtp_server_config config_default(void)
{
    uv_loop_init(&loop);
    return (struct smtp_server_config){.loop = &loop,
                                       .listen = "127.0.0.1:0",
                                       .limits = smtp_limits_default,
                                       .find = find,
                                       .deliver = deliver,
                                       .wall_us = wall_us};
}

static void start(struct smtp_server_config config)
{
    uv_async_init(&loop, &wake, on_wake);
    if (smtp_server_open(&config, &server, &why) != OK)
        check_fail(__FILE__, __LINE__, "%s", why.text);
    CHECK(pthread_create(&thread, NULL, run, NULL) == 0);
}

static void finish(void)
{
    stop_now = true;
    uv_async_send(&wake);
    pthread_join(thread, NULL);
    smtp_server_free(server);
    CHECK_INT(uv_loop_close(&loop), 0);
}

static int dial(void)
{
    const char *text = smtp_server_address(server);
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    bool is_unix = listen_is_unix(text);
    uint64_t port = 0;
    if (is_unix)
        snprintf(path.sun_path, sizeof path.sun_path, "%s", text + 5);
    else
        CHECK(bytes_to_u64(bytes_of(strrchr(text, ':') + 1), &port));
    address.sin_port = htons((uint16_t)port);
    int fd = socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM, 0);
    int failed =
        is_unix ? connect(fd, (struct sockaddr *)&path, sizeof path) : connect(fd, (struct sockaddr *)&address, sizeof address);
    CHECK_INT(failed, 0);
    return fd;
}

static void say(int fd, const char *text)
{
    size_t len = strlen(text);
    CHECK_INT(send(fd, text, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* Until `count` lines came, or the server closed. */
static const char *hear(int fd, int count)
{
    size_t len = 0;
    ssize_t got = 1;
    int lines = 0;
    while (lines < count && len + 1 < sizeof heard && (got = recv(fd, heard + len, 1, 0)) == 1)
        lines += heard[len++] == '\n';
    heard[len] = '\0';
    return heard;
}

static const char *ask(int fd, const char *text, int lines)
{
    say(fd, text);
    return hear(fd, lines);
}

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

TEST(a_mail_is_handed_on_and_then_acknowledged)
{
    start(config_default());
    int fd = dial();
    CHECK(begins(hear(fd, 1), "220 "));
    CHECK(strstr(ask(fd, "EHLO c.example\r\nMAIL FROM:<jane@example.com>\r\nRCPT TO:<src1@x.example>\r\nDATA\r\n", 9),
                 "\r\n354 ") != NULL);
    CHECK(begins(ask(fd, "Subject: x\r\n\r\nhello\r\n.\r\nQUIT\r\n", 1), "250 2.0.0"));
    CHECK(begins(hear(fd, 1), "221 "));
    CHECK(strstr(kept, "Return-Path: <jane@example.com>\r\nReceived: from c.example (127.0.0.1) by ") == kept);
    CHECK(strstr(kept, "; Mon, 16 Nov 2026 09:00:00 +0000\r\nSubject: x\r\n\r\nhello\r\n") != NULL);
    CHECK(begins(hear(fd, 1), "")); /* closed */
    CHECK_INT(smtp_server_counts(server)->mails, 1);
    finish();
}

TEST(lmtp_on_a_socket_file_answers_for_each_recipient)
{
    struct smtp_server_config config = config_default();
    config.listen = "unix:./lmtp.sock";
    config.lmtp = true;
    start(config);
    int fd = dial();
    hear(fd, 1);
    ask(fd,
        "LHLO c\r\nMAIL FROM:<>\r\nRCPT TO:<src1@x.example>\r\nRCPT TO:<srcbad@x.example>\r\nRCPT TO:<srcfull@x.example>\r\nRCPT "
        "TO:<other@x.example>\r\nDATA\r\n",
        12);
    CHECK(begins(ask(fd, "A: b\r\n\r\nx\r\n.\r\n", 1), "250 "));
    CHECK(begins(hear(fd, 1), "554 5.6.0 it has no header"));
    CHECK(begins(hear(fd, 1), "451 "));
    CHECK(strstr(kept, "(unix)") != NULL);
    CHECK_INT(smtp_server_counts(server)->failed, 1);
    close(fd);
    finish();
}

TEST(it_is_acknowledged_only_when_it_is_kept)
{
    start(config_default());
    int fd = dial();
    hear(fd, 1);
    ask(fd, "EHLO c\r\nMAIL FROM:<>\r\nRCPT TO:<srclate@x.example>\r\nDATA\r\n", 9);
    say(fd, "A: b\r\n\r\nx\r\n.\r\nNOOP\r\n");
    struct timeval timeout = {.tv_usec = 300000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    CHECK(begins(hear(fd, 1), "") && heard[0] == '\0'); /* nothing yet */
    timeout = (struct timeval){.tv_sec = 20};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    answer_late = true;
    uv_async_send(&wake);
    CHECK(begins(hear(fd, 1), "250 2.0.0 it is kept"));
    CHECK(begins(hear(fd, 1), "250 2.0.0 ok"));
    close(fd);
    finish();
}

TEST(a_client_that_leaves_takes_nothing_with_it)
{
    start(config_default());
    int fd = dial();
    hear(fd, 1);
    ask(fd, "EHLO c\r\nMAIL FROM:<>\r\nRCPT TO:<srclate@x.example>\r\nDATA\r\n", 9);
    say(fd, "A: b\r\n\r\nx\r\n.\r\n");
    struct linger hard = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
    for (int i = 0; i < 5; i++) { /* the delivery is still answered, to nobody */
        int other = dial();
        CHECK(begins(hear(other, 1), "220 "));
        close(other);
    }
    answer_late = true;
    uv_async_send(&wake);
    finish();
}

TEST(what_waits_behind_a_mail_is_not_lost_however_much_it_is)
{
    enum { COUNT = 20000 };
    start(config_default());
    int fd = dial();
    hear(fd, 1);
    ask(fd, "EHLO c\r\nMAIL FROM:<>\r\nRCPT TO:<srclate@x.example>\r\nDATA\r\n", 9);
    say(fd, "A: b\r\n\r\nx\r\n.\r\n");
    while (late == NULL)
        usleep(1000);
    for (int i = 0; i < COUNT; i++)
        say(fd, "NOOP\r\n");
    answer_late = true;
    uv_async_send(&wake);
    CHECK(begins(hear(fd, 1), "250 2.0.0 it is kept"));
    for (int i = 0; i < COUNT; i++)
        if (!begins(hear(fd, 1), "250 2.0.0 ok"))
            check_fail(__FILE__, __LINE__, "answer %d is \"%s\"", i, heard);
    close(fd);
    finish();
}

TEST(a_delivery_outlives_its_connection)
{
    uv_timer_t timer;
    start(config_default());
    int fd = dial();
    hear(fd, 1);
    ask(fd, "EHLO c\r\nMAIL FROM:<>\r\nRCPT TO:<srclate@x.example>\r\nDATA\r\n", 9);
    say(fd, "A: b\r\n\r\nx\r\n.\r\n");
    while (late == NULL)
        usleep(1000);
    late_timer = &timer;
    stop_now = true;
    uv_async_send(&wake); /* stops, and answers when everything is closed */
    pthread_join(thread, NULL);
    CHECK_INT(smtp_server_counts(server)->mails, 1);
    smtp_server_free(server);
    CHECK_INT(uv_loop_close(&loop), 0);
    CHECK(hear(fd, 1)[0] == '\0'); /* nobody was told: the client sends it again */
}

TEST(half_a_mail_is_no_mail)
{
    start(config_default());
    int fd = dial();
    hear(fd, 1);
    ask(fd, "EHLO c\r\nMAIL FROM:<>\r\nRCPT TO:<src1@x.example>\r\nDATA\r\n", 9);
    say(fd, "A: b\r\n\r\nx\r\n.");
    shutdown(fd, SHUT_WR);
    CHECK(begins(hear(fd, 1), "") && heard[0] == '\0');
    CHECK_INT(smtp_server_counts(server)->mails, 0);
    CHECK(kept[0] == '\0');
    finish();
}

TEST(connections_are_limited)
{
    struct smtp_server_config config = config_default();
    config.limits.connections_max = 2;
    start(config);
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = dial();
        CHECK(begins(hear(fds[i], 1), i < 2 ? "220 " : "421 4.7.0"));
    }
    CHECK_INT(smtp_server_counts(server)->refused, 1);
    finish();
}

TEST(who_says_nothing_is_sent_away)
{
    struct smtp_server_config config = config_default();
    config.limits.command_timeout_us = 300 * 1000;
    start(config);
    int fd = dial();
    hear(fd, 1);
    say(fd, "NOO"); /* half a command is nothing */
    CHECK(begins(hear(fd, 1), "421 4.4.2"));
    finish();
}

TEST(who_drips_a_mail_is_sent_away)
{
    struct smtp_server_config config = config_default();
    config.limits.data_timeout_us = 600 * 1000;
    start(config);
    int fd = dial();
    hear(fd, 1);
    ask(fd, "EHLO c\r\nMAIL FROM:<>\r\nRCPT TO:<src1@x.example>\r\nDATA\r\n", 9);
    for (int i = 0; i < 40 && send(fd, "x\r\n", 3, MSG_NOSIGNAL) == 3; i++)
        usleep(50000);
    CHECK(begins(hear(fd, 1), "421 4.4.2") || errno == ECONNRESET);
    CHECK_INT(smtp_server_counts(server)->mails, 0);
    finish();
}

TEST(a_large_mail_comes_whole)
{
    start(config_default());
    int fd = dial();
    hear(fd, 1);
    ask(fd, "EHLO c\r\nMAIL FROM:<>\r\nRCPT TO:<src1@x.example>\r\nDATA\r\n", 9);
    for (int i = 0; i < 10000; i++)
        say(fd, "0123456789012345678901234567890123456789\r\n..\r\n");
    CHECK(begins(ask(fd, ".\r\n", 1), "250 "));
    CHECK_INT(strlen(strstr(kept, "0123")), 10000 * 45);
    close(fd);
    finish();
}

TEST(stopping_says_goodbye)
{
    start(config_default());
    int fd = dial();
    hear(fd, 1);
    finish();
    CHECK(begins(hear(fd, 1), "421 4.3.2"));
}

TEST(an_address_that_cannot_be_had_is_said)
{
    struct smtp_server_config config = config_default();
    struct smtp_server *none = NULL;
    config.listen = "nonsense";
    CHECK_INT(smtp_server_open(&config, &none, &why), INVALID);
    config.listen = "203.0.113.9:25";
    CHECK_INT(smtp_server_open(&config, &none, &why), INVALID);
    CHECK(none == NULL);
    CHECK_INT(uv_loop_close(&loop), 0);
}
