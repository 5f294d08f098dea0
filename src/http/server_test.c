#include "http/fixture_test.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

TEST(http_server_keeps_a_connection_alive)
{
    start(config_default());
    int fd = dial();
    for (int i = 0; i < 50; i++) {
        say(fd, HEAD("POST /x") "Content-Length: 5\r\n\r\nhello");
        const char *text = hear_until(fd, "hello");
        CHECK(contains(text, "HTTP/1.1 200 OK\r\n"));
        CHECK(contains(text, "\r\nContent-Length: 5\r\n"));
        CHECK(contains(text, "\r\nContent-Type: text/plain\r\n"));
        CHECK(contains(text, "\r\nX-Test: yes\r\n"));
        CHECK(contains(text, "\r\nDate: "));
        CHECK(strstr(text, "Connection:") == NULL);
    }
    CHECK_INT(http_server_counts(server)->accepted, 1);
    CHECK_INT(http_server_counts(server)->requests, 50);
    close(fd);
    stop(SECOND_US);
}

TEST(http_server_closes_when_asked_and_speaks_http_1_0)
{
    start(config_default());
    CHECK(contains(ask(HEAD("GET /a") "Connection: close\r\n\r\n"), "Connection: close\r\n"));
    CHECK(contains(ask(HEAD("GET /close") "\r\n"), "\r\n\r\nbye"));
    CHECK(contains(ask("GET /b HTTP/1.0\r\n\r\n"), "\r\n\r\n/b"));
    int fd = dial();
    say(fd, "GET /c HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    CHECK(contains(hear_until(fd, "/c"), "Connection: keep-alive\r\n"));
    say(fd, "GET /d HTTP/1.0\r\n\r\n");
    CHECK(contains(hear_all(fd), "Connection: close\r\n"));
    close(fd);
    stop(SECOND_US);
}

TEST(http_server_answers_pipelined_requests_in_order)
{
    start(config_default());
    struct buf text;
    buf_init(&text, 1 << 20);
    for (int i = 0; i < 100; i++) {
        if (i % 3 == 0)
            buf_printf(&text, HEAD("POST /x") "Transfer-Encoding: chunked\r\n\r\n4\r\n<%02d>\r\n0\r\n\r\n", i);
        else
            buf_printf(&text, HEAD("POST /x") "Content-Length: 4\r\n\r\n<%02d>", i);
    }
    int fd = dial();
    say_bytes(fd, buf_bytes(&text));
    const char *at = hear_until(fd, "<99>");
    for (int i = 0; i < 100; i++) {
        char want[16];
        snprintf(want, sizeof want, "<%02d>", i);
        const char *found = strchr(at, '<');
        CHECK(found != NULL && strncmp(found, want, 4) == 0);
        at = found + 4;
    }
    close(fd);
    buf_release(&text);
    stop(SECOND_US);
}

TEST(http_server_answers_pipelined_requests_one_after_the_other_when_answers_come_late)
{
    start(config_default());
    int fd = dial();
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_add(&text, BYTES(HEAD("GET /late") "\r\n"));
    for (int i = 0; i < 1000; i++)
        buf_add(&text, BYTES(HEAD("GET /next") "X: 0123456789\r\n\r\n"));
    buf_add(&text, BYTES(HEAD("GET /last") "\r\n"));
    say_bytes(fd, buf_bytes(&text));
    release = true;
    CHECK(contains(hear_until(fd, "/last"), "\r\n\r\nlate"));
    CHECK(contains(answer, "/next"));
    CHECK_INT(http_server_counts(server)->requests, 1002);
    close(fd);
    buf_release(&text);
    stop(SECOND_US);
}

static void check_every_cut(const char *text, const char *last)
{
    for (size_t cut = 1; cut < strlen(text); cut++) {
        int fd = dial();
        say_bytes(fd, (struct bytes){text, cut});
        usleep(200);
        say(fd, text + cut);
        hear_until(fd, last);
        close(fd);
    }
}

TEST(http_server_does_not_care_how_a_request_is_cut)
{
    start(config_default());
    check_every_cut(HEAD("POST /x") "Content-Length: 5\r\n\r\nhello", "hello");
    check_every_cut(HEAD("POST /x") "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", "hello");
    stop(SECOND_US);
}

TEST(http_server_reads_bodies_up_to_the_limit)
{
    start(config_default());
    static char body[BODY_MAX + 1];
    memset(body, 'b', BODY_MAX - 1);
    body[BODY_MAX - 1] = '!';
    int fd = dial();
    for (int i = 0; i < 3; i++) {
        say(fd, HEAD("POST /x") "Content-Length: 65536\r\n\r\n");
        for (size_t at = 0; at < BODY_MAX; at += 4096)
            say_bytes(fd, (struct bytes){body + at, 4096});
        CHECK_INT(strlen(hear_until(fd, "b!")) > BODY_MAX, true);
        say(fd, HEAD("POST /x") "Transfer-Encoding: chunked\r\n\r\n");
        for (size_t at = 0; at < BODY_MAX; at += 4096) {
            say(fd, "1000\r\n");
            say_bytes(fd, (struct bytes){body + at, 4096});
            say(fd, "\r\n");
        }
        say(fd, "0\r\n\r\n");
        CHECK_INT(strlen(hear_until(fd, "b!")) > BODY_MAX, true);
    }
    close(fd);
    stop(SECOND_US);
}

TEST(http_server_refuses_a_large_body_before_it_is_sent)
{
    start(config_default());
    const char *text = ask(HEAD("POST /x") "Content-Length: 65537\r\nExpect: 100-continue\r\n\r\n");
    CHECK(contains(text, "HTTP/1.1 413 Content Too Large\r\n"));
    CHECK(contains(text, "Content-Type: application/problem+json\r\n"));
    CHECK(contains(text, "Connection: close\r\n"));
    CHECK(contains(text, "{\"status\":413"));
    CHECK(contains(ask(HEAD("POST /x") "Transfer-Encoding: chunked\r\n\r\n10001\r\n"), " 413 "));
    CHECK_INT(http_server_counts(server)->requests, 0);
    CHECK_INT(http_server_counts(server)->refused, 2);
    stop(SECOND_US);
}

TEST(http_server_lets_a_client_read_the_refusal_while_it_is_still_sending)
{
    start(config_default());
    int fd = dial();
    static char more[512 * 1024];
    say(fd, HEAD("POST /x") "Content-Length: 524288\r\n\r\n");
    say_bytes(fd, (struct bytes){more, sizeof more});
    shutdown(fd, SHUT_WR);
    CHECK(contains(hear_all(fd), " 413 "));
    close(fd);
    stop(SECOND_US);
}

TEST(http_server_sends_100_continue_only_when_the_body_will_be_read)
{
    start(config_default());
    int fd = dial();
    say(fd, HEAD("POST /x") "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    CHECK(contains(hear_until(fd, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n"));
    say(fd, "ok");
    CHECK(contains(hear_until(fd, "ok"), "HTTP/1.1 200 "));
    close(fd);
    CHECK(contains(ask(HEAD("POST /x") "Expect: tea\r\n\r\n"), "HTTP/1.1 417 "));
    stop(SECOND_US);
}

TEST(http_server_sends_no_body_for_head_and_204)
{
    start(config_default());
    const char *text = ask(HEAD("HEAD /abc") "Connection: close\r\n\r\n");
    CHECK(contains(text, "Content-Length: 4\r\n"));
    CHECK(strcmp(text + strlen(text) - 4, "\r\n\r\n") == 0);
    text = ask(HEAD("GET /204") "Connection: close\r\n\r\n");
    CHECK(contains(text, "HTTP/1.1 204 No Content\r\n"));
    CHECK(strstr(text, "Content-") == NULL);
    CHECK(strstr(text, "not sent") == NULL);
    stop(SECOND_US);
}

TEST(http_server_never_sends_a_header_with_a_line_break)
{
    start(config_default());
    const char *text = ask(HEAD("GET /split") "\r\n");
    CHECK(contains(text, "HTTP/1.1 500 "));
    CHECK(strstr(text, "Set-Cookie") == NULL);
    stop(SECOND_US);
}

TEST(http_server_closes_after_a_framing_error)
{
    start(config_default());
    const char *text = ask(HEAD("POST /x") "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
                                           "0\r\n\r\n" HEAD("GET /smuggled") "\r\n");
    CHECK(contains(text, "HTTP/1.1 400 Bad Request\r\n"));
    CHECK(strstr(text, "/smuggled") == NULL);
    text = ask(HEAD("GET /first") "\r\nGET / HTTP/1.1\r\n\r\n" HEAD("GET /smuggled") "\r\n");
    CHECK(contains(text, "/first"));
    CHECK(contains(text, " 400 "));
    CHECK(strstr(text, "/smuggled") == NULL);
    CHECK(contains(ask(HEAD("POST /x") "Transfer-Encoding: chunked\r\n\r\n2\r\nabc"), " 400 "));
    CHECK(contains(ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), " 505 "));
    CHECK_INT(http_server_counts(server)->requests, 1);
    stop(SECOND_US);
}

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * SECOND_US + now.tv_nsec / 1000;
}

/* Sends a byte every 50 ms until the server closes; the answer. */
static const char *drip(const char *first, const char *endless)
{
    int fd = dial();
    int64_t start_us = now_us();
    say(fd, first);
    while (now_us() - start_us < 150 * (int64_t)SECOND_US) {
        usleep(50000);
        if (recv(fd, answer, 1, MSG_DONTWAIT | MSG_PEEK) >= 0 || send(fd, endless, 1, MSG_NOSIGNAL) < 0)
            break;
    }
    hear_all(fd);
    close(fd);
    CHECK(now_us() - start_us < 100 * (int64_t)SECOND_US);
    return answer;
}

TEST(http_server_ends_a_slow_head_at_an_absolute_deadline)
{
    struct http_server_config config = config_default();
    config.limits.head_timeout_us = SECOND_US / 2;
    start(config);
    CHECK(contains(drip(HEAD("GET /x") "X: ", "a"), " 408 "));
    CHECK_INT(http_server_counts(server)->requests, 0);
    stop(SECOND_US);
}

TEST(http_server_ends_a_slow_body_at_an_absolute_deadline)
{
    struct http_server_config config = config_default();
    config.limits.body_timeout_us = SECOND_US / 2;
    start(config);
    CHECK(contains(drip(HEAD("POST /x") "Content-Length: 60000\r\n\r\n", "a"), " 408 "));
    CHECK(contains(drip(HEAD("POST /x") "Transfer-Encoding: chunked\r\n\r\nf000\r\n", "a"), " 408 "));
    CHECK_INT(http_server_counts(server)->requests, 0);
    stop(SECOND_US);
}

TEST(http_server_ends_a_body_below_the_least_rate)
{
    struct http_server_config config = config_default();
    config.limits.body_rate_after_us = SECOND_US / 2;
    start(config);
    CHECK(contains(drip(HEAD("POST /x") "Content-Length: 60000\r\n\r\n", "a"), " 408 "));
    stop(SECOND_US);
}

TEST(http_server_closes_idle_connections)
{
    struct http_server_config config = config_default();
    config.limits.idle_timeout_us = SECOND_US / 2;
    start(config);
    int quiet = dial(), used = dial();
    say(used, HEAD("GET /x") "\r\n");
    hear_until(used, "/x");
    CHECK_TEXT(bytes_of(hear_all(quiet)), "");
    CHECK_TEXT(bytes_of(hear_all(used)), "");
    stop(SECOND_US);
}

TEST(http_server_closes_a_client_that_does_not_read)
{
    struct http_server_config config = config_default();
    config.limits.body_timeout_us = SECOND_US / 2;
    start(config);
    int fd = dial();
    for (int i = 0; i < 20; i++)
        say(fd, HEAD("GET /large") "\r\n");
    for (int i = 0; i < 400 && http_server_counts(server)->open > 0; i++)
        usleep(50000);
    CHECK_INT(http_server_counts(server)->open, 0);
    close(fd);
    stop(SECOND_US);
}

static size_t body_size(const struct http_head *head, void *user)
{
    (void)user;
    return bytes_is(head->path, "/big") ? 100000 : 10;
}

/* 65 KiB is over the limit of all, and within that of /big. */
TEST(http_server_lets_some_requests_be_larger)
{
    struct http_server_config config = config_default();
    config.body_size = body_size;
    start(config);
    char *body = malloc(100001);
    memset(body, 'b', 100000);
    body[99999] = 'e';
    body[100000] = '\0';
    int fd = dial();
    say(fd, HEAD("POST /big") "Content-Length: 100000\r\n\r\n");
    say(fd, body);
    CHECK_INT(strspn(strstr(hear_until(fd, "be"), "\r\n\r\n") + 4, "b"), 99999);
    say(fd, HEAD("POST /big") "Transfer-Encoding: chunked\r\n\r\n186a0\r\n");
    say(fd, body);
    say(fd, "\r\n0\r\n\r\n" HEAD("POST /x") "Content-Length: 65536\r\n\r\n");
    say_bytes(fd, (struct bytes){body, 65536});
    say(fd, HEAD("POST /x") "Content-Length: 65537\r\n\r\n");
    const char *text = hear_all(fd);
    CHECK(contains(text, "Content-Length: 100000\r\n"));
    CHECK(contains(text, "Content-Length: 65536\r\n"));
    CHECK(contains(text, " 413 "));
    CHECK(contains(ask(HEAD("POST /big") "Content-Length: 100001\r\n\r\n"), " 413 "));
    free(body);
    stop(SECOND_US);
}

TEST(http_server_writes_large_replies_whole_and_in_order)
{
    start(config_default());
    int fd = dial();
    say(fd, HEAD("GET /large") "\r\n" HEAD("GET /end") "\r\n");
    usleep(100000);
    const char *text = hear_until(fd, "/end");
    CHECK(contains(text, "Content-Length: 4194304\r\n"));
    const char *body = strstr(text, "\r\n\r\n") + 4;
    CHECK_INT(strspn(body, "x"), 4 << 20);
    CHECK(strncmp(body + (4 << 20), "HTTP/1.1 200", 12) == 0);
    close(fd);
    stop(SECOND_US);
}

TEST(http_server_runs_nothing_when_the_client_leaves_in_the_middle_of_a_request)
{
    start(config_default());
    static const char *const cut[] = {"", "GET /x", HEAD("GET /x"), HEAD("POST /x") "Content-Length: 5\r\n\r\nhell",
                                      HEAD("POST /x") "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"};
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        int fd = dial();
        say(fd, cut[i]);
        shutdown(fd, SHUT_WR);
        CHECK_TEXT(bytes_of(hear_all(fd)), "");
        close(fd);
    }
    CHECK_INT(http_server_counts(server)->requests, 0);
    stop(SECOND_US);
}

TEST(http_server_answers_a_client_that_shut_its_sending_side)
{
    start(config_default());
    int fd = dial();
    say(fd, HEAD("GET /late") "\r\n" HEAD("GET /second") "\r\n");
    shutdown(fd, SHUT_WR);
    usleep(50000);
    release = true;
    CHECK(contains(hear_all(fd), "\r\n\r\nlate"));
    CHECK(contains(answer, "/second"));
    close(fd);
    stop(SECOND_US);
}

static void reset(int fd)
{
    struct linger linger = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(fd);
}

TEST(http_server_tells_the_handler_that_the_client_is_gone_and_drops_the_reply)
{
    start(config_default());
    int fd = dial();
    say(fd, HEAD("GET /late") "\r\n");
    while (http_server_counts(server)->requests == 0)
        usleep(1000);
    reset(fd);
    for (int i = 0; i < 60000 && !saw_gone; i++)
        usleep(1000);
    CHECK(saw_gone);
    release = true;
    for (int i = 0; i < 60000 && http_server_counts(server)->replies == 0; i++)
        usleep(1000);
    CHECK_INT(http_server_counts(server)->replies, 1);
    CHECK(contains(ask(HEAD("GET /x") "Connection: close\r\n\r\n"), "/x"));
    stop(SECOND_US);
}

static int posted[1000], posted_count;

static void note(void *arg)
{
    posted[posted_count++] = *(int *)arg;
}

TEST(http_server_calls_what_was_posted_in_order)
{
    start(config_default());
    static int numbers[1000];
    for (int i = 0; i < 1000; i++) {
        numbers[i] = i;
        http_server_post(server, note, &numbers[i]);
    }
    stop(SECOND_US);
    CHECK_INT(posted_count, 1000);
    for (int i = 0; i < 1000; i++)
        CHECK_INT(posted[i], i);
}

static _Atomic int ticks;

static void tick(void *arg)
{
    (void)arg;
    ticks++;
}

static void count(void *arg)
{
    ++*(int *)arg;
}

static void *count_many(void *arg)
{
    for (int i = 0; i < 10000; i++)
        http_server_post(server, count, arg);
    return NULL;
}

TEST(http_server_takes_posts_of_many_threads)
{
    start(config_default());
    static int total;
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, count_many, &total), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    stop(SECOND_US);
    CHECK_INT(total, 40000);
}

TEST(http_server_calls_regular_work)
{
    struct http_server_config config = config_default();
    CHECK_INT(http_server_open(&config, &server, &why), OK);
    http_server_every(server, 5000, tick, NULL);
    CHECK_INT(pthread_create(&loop_thread, NULL, run, server), 0);
    for (int i = 0; i < 60000 && ticks < 3; i++)
        usleep(1000);
    CHECK(ticks >= 3);
    stop(SECOND_US);
}

TEST(http_server_stops_gracefully_with_an_answer_for_what_runs)
{
    start(config_default());
    int idle = dial(), busy = dial();
    say(idle, HEAD("GET /x") "\r\n");
    hear_until(idle, "/x");
    say(busy, HEAD("GET /late") "\r\n" HEAD("GET /too-late") "\r\n");
    while (http_server_counts(server)->requests < 2)
        usleep(1000);
    http_server_stop(server, 20 * (int64_t)SECOND_US);
    CHECK_TEXT(bytes_of(hear_all(idle)), "");
    release = true;
    const char *text = hear_all(busy);
    CHECK(contains(text, "Connection: close\r\n"));
    CHECK(contains(text, "\r\n\r\nlate"));
    CHECK(strstr(text, "/too-late") == NULL);
    close(busy);
    close(idle);
    stop(20 * (int64_t)SECOND_US);
}

TEST(http_server_stops_after_the_grace_even_when_a_handler_does_not)
{
    start(config_default());
    int fd = dial();
    say(fd, HEAD("GET /late") "\r\n");
    while (http_server_counts(server)->requests == 0)
        usleep(1000);
    http_server_stop(server, SECOND_US / 10);
    pthread_join(loop_thread, NULL);
    CHECK_TEXT(bytes_of(hear_all(fd)), "");
    release = true;
    while (!late_is_over)
        usleep(1000);
    http_server_close(server);
    close(fd);
}

TEST(http_server_can_be_stopped_before_it_runs)
{
    struct http_server_config config = config_default();
    CHECK_INT(http_server_open(&config, &server, &why), OK);
    http_server_stop(server, 0);
    http_server_run(server);
    http_server_close(server);
    CHECK_INT(http_server_open(&config, &server, &why), OK);
    http_server_close(server);
}

TEST(http_server_drops_the_oldest_idle_connection_at_the_limit)
{
    struct http_server_config config = config_default();
    config.limits.connections_max = 3;
    start(config);
    int fds[4];
    for (int i = 0; i < 4; i++) {
        fds[i] = dial();
        say(fds[i], HEAD("GET /x") "\r\n");
        hear_until(fds[i], "/x");
    }
    CHECK_TEXT(bytes_of(hear_all(fds[0])), "");
    say(fds[1], HEAD("GET /still") "\r\n");
    hear_until(fds[1], "/still");
    CHECK_INT(http_server_counts(server)->open, 3);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    stop(SECOND_US);
}

TEST(http_server_refuses_at_the_limit_when_everyone_is_busy)
{
    struct http_server_config config = config_default();
    config.limits.connections_max = 2;
    start(config);
    int fds[2];
    for (int i = 0; i < 2; i++) {
        fds[i] = dial();
        say(fds[i], "GET ");
    }
    for (int i = 0; i < 60000 && http_server_counts(server)->bytes_in < 8; i++)
        usleep(1000);
    CHECK(contains(ask(HEAD("GET /x") "\r\n"), "HTTP/1.1 503 "));
    say(fds[0], "/x HTTP/1.1\r\nHost: a\r\n\r\n");
    hear_until(fds[0], "/x");
    close(fds[0]);
    close(fds[1]);
    stop(SECOND_US);
}

/* An address of this machine that is not loopback. */
static bool find_own_address(struct sockaddr_in *ret_address)
{
    struct ifaddrs *all = NULL;
    bool found = false;
    if (getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *one = all; one != NULL && !found; one = one->ifa_next) {
        if (one->ifa_addr == NULL || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & (IFF_LOOPBACK | IFF_UP)) != IFF_UP)
            continue;
        memcpy(ret_address, one->ifa_addr, sizeof *ret_address);
        found = true;
    }
    freeifaddrs(all);
    return found;
}

TEST(http_server_limits_the_connections_of_one_peer_but_not_of_loopback)
{
    struct http_server_config config = config_default();
    struct sockaddr_in own;
    if (!find_own_address(&own))
        SKIP("this machine has only a loopback address");
    config.listen = "0.0.0.0:0";
    config.limits.connections_per_peer = 2;
    start(config);
    int fds[3], near[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = dial_address(own);
        say(fds[i], HEAD("GET /x") "\r\n");
        near[i] = dial();
        say(near[i], HEAD("GET /x") "\r\n");
        hear_until(near[i], "/x");
    }
    hear_until(fds[0], "/x");
    hear_until(fds[1], "/x");
    CHECK(contains(hear_all(fds[2]), "HTTP/1.1 503 "));
    close(fds[0]);
    for (int i = 0; i < 60000 && http_server_counts(server)->open > 4; i++)
        usleep(1000);
    fds[0] = dial_address(own);
    say(fds[0], HEAD("GET /again") "\r\n");
    hear_until(fds[0], "/again");
    for (int i = 0; i < 3; i++) {
        close(fds[i]);
        close(near[i]);
    }
    stop(SECOND_US);
}

TEST(http_server_says_which_address_it_has_and_why_it_cannot_have_one)
{
    static const char *const bad[] = {
        "",           "127.0.0.1",     "127.0.0.1:",    "127.0.0.1:65536", "127.0.0.1:x", "example.org:80",
        "::1:0",      "[127.0.0.1]:0", "203.0.113.7:0", "unix:",           "[::1]",       ":80",
        "1.2.3.4.5:0"};
    struct http_server_config config = config_default();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct http_server *none;
        config.listen = bad[i];
        CHECK_INT(http_server_open(&config, &none, &why), INVALID);
        CHECK(why.text[0] != '\0');
    }
    start(config_default());
    struct http_server *second;
    config.listen = http_server_address(server);
    CHECK(strncmp(config.listen, "127.0.0.1:", 10) == 0);
    CHECK_INT(http_server_open(&config, &second, &why), RETRY);
    CHECK(contains(why.text, "in use"));
    CHECK(contains(ask(HEAD("GET /peer") "Connection: close\r\n\r\n"), "\r\n\r\n127.0.0.1"));
    stop(SECOND_US);
    config.listen = "[::1]:0";
    enum status status = http_server_open(&config, &server, &why);
    if (status != OK)
        SKIP("this machine has no IPv6 loopback");
    CHECK(strncmp(http_server_address(server), "[::1]:", 6) == 0);
    http_server_close(server);
}

static int dial_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_INT(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

TEST(http_server_listens_on_a_unix_socket_of_its_own)
{
    struct http_server_config config = config_default();
    struct sockaddr_un stale = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_INT(bind(fd, (struct sockaddr *)&stale, sizeof stale), 0);
    close(fd);
    config.listen = "unix:socket";
    start(config);
    struct stat stat;
    CHECK_INT(lstat("socket", &stat), 0);
    CHECK_INT(stat.st_mode & 0777, 0600);
    fd = dial_unix("socket");
    say(fd, HEAD("GET /peer") "Connection: close\r\n\r\n");
    CHECK(contains(hear_all(fd), "\r\n\r\nunix"));
    close(fd);
    struct http_server *second;
    CHECK_INT(http_server_open(&config, &second, &why), RETRY);
    stop(SECOND_US);
    CHECK_INT(lstat("socket", &stat), -1);
    FILE *file = fopen("file", "w");
    fclose(file);
    config.listen = "unix:file";
    CHECK_INT(http_server_open(&config, &second, &why), INVALID);
    CHECK_INT(access("file", F_OK), 0);
}
