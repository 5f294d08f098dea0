#include "act/transport.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/when.h"
#include "check.h"
#include "env/env.h"
#include "secret/secret.h"

/* ---- a server for one connection after the other ---- */

struct server {
    int listener;
    uint16_t port;
    bool speaks_mail;
    bool answers; /* the end of the mail */
    pthread_t thread;
    _Atomic int taken; /* mails and requests that were read to their end */
};

static void say(int fd, const char *text)
{
    ssize_t said = write(fd, text, strlen(text));
    (void)said;
}

static bool hear(int fd, const char *end)
{
    char heard[8192];
    size_t len = 0;
    ssize_t n;
    while (len < sizeof heard - 1 && (n = read(fd, heard + len, sizeof heard - 1 - len)) > 0) {
        len += (size_t)n;
        heard[len] = '\0';
        if (strstr(heard, end) != NULL)
            return true;
    }
    return false;
}

static void speak_mail(struct server *server, int fd)
{
    static const char *const dialogue[][2] = {{"220 here\r\n", "\r\n"},
                                              {"250 here\r\n", "\r\n"},
                                              {"250 Ok\r\n", "\r\n"},
                                              {"250 Ok\r\n", "\r\n"},
                                              {"354 Go on\r\n", "\r\n.\r\n"}};
    for (size_t i = 0; i < sizeof dialogue / sizeof *dialogue; i++) {
        say(fd, dialogue[i][0]);
        if (!hear(fd, dialogue[i][1]))
            return;
    }
    atomic_fetch_add(&server->taken, 1);
    if (server->answers) {
        say(fd, "250 Ok\r\n");
        if (hear(fd, "\r\n"))
            say(fd, "221 Bye\r\n");
    } else {
        (void)hear(fd, "never comes");
    }
}

static void *server_main(void *arg)
{
    struct server *server = arg;
    int fd;
    while ((fd = accept(server->listener, NULL, NULL)) >= 0) {
        if (server->speaks_mail) {
            speak_mail(server, fd);
        } else if (hear(fd, "\r\n\r\n")) {
            atomic_fetch_add(&server->taken, 1);
            say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
        }
        close(fd);
    }
    return NULL;
}

static void server_start(struct server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    signal(SIGPIPE, SIG_IGN);
    server->listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(server->listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(server->listener, 16) == 0);
    CHECK(getsockname(server->listener, (struct sockaddr *)&address, &size) == 0);
    server->port = ntohs(address.sin_port);
    CHECK(pthread_create(&server->thread, NULL, server_main, server) == 0);
}

static void server_stop(struct server *server)
{
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listener);
}

/* ---- calls ---- */

struct calling {
    struct transport *transport;
    struct secrets *secrets;
    struct arena arena;
    int ended;
};

static void open_transport(struct calling *calling)
{
    struct why why;
    struct secrets_config config = {.env = env_real()};
    *calling = (struct calling){0};
    arena_init(&calling->arena, 1 << 20);
    CHECK_INT(secrets_open(&config, &calling->secrets, &why), OK);
    CHECK_INT(transport_open(env_real(), calling->secrets, &calling->transport, &why), OK);
}

static void close_transport(struct calling *calling)
{
    calling->transport->close(calling->transport);
    secrets_close(calling->secrets);
    arena_release(&calling->arena);
}

static void on_done(struct transport_call *call)
{
    ((struct calling *)call->user)->ended++;
}

static void start(struct calling *calling, const struct destination *destination, const struct effect_request *request,
                  struct transport_call *ret_call)
{
    *ret_call = (struct transport_call){.destination = destination,
                                        .request = request,
                                        .space = BYTES("default"),
                                        .arena = &calling->arena,
                                        .timeout_us = 10 * WHEN_MINUTE,
                                        .done = on_done,
                                        .user = calling};
    buf_init(&ret_call->body, 1 << 16);
    calling->transport->start(calling->transport, ret_call);
}

static void run_until(struct calling *calling, int ended)
{
    while (calling->ended < ended)
        calling->transport->run(calling->transport, 50 * WHEN_MS);
}

static struct destination mail_at(const struct server *server)
{
    return (struct destination){.name = BYTES("mail"),
                                .kind = DESTINATION_SMTP,
                                .smtp_host = BYTES("127.0.0.1"),
                                .smtp_port = server->port,
                                .smtp_from = BYTES("a@x.io"),
                                .smtp_tls = SMTP_TLS_NONE,
                                .allow_private = true};
}

static struct effect_request a_mail(struct pair *header)
{
    *header = (struct pair){BYTES("To"), BYTES("b@y.io")};
    return (struct effect_request){.headers = header, .header_count = 1, .body = BYTES("Hi\n")};
}

/* ---- the tests ---- */

TEST(a_mail_that_is_accepted_is_answered)
{
    struct server server = {.speaks_mail = true, .answers = true};
    struct calling calling;
    struct transport_call calls[3];
    struct pair header;
    server_start(&server);
    open_transport(&calling);
    struct destination mail = mail_at(&server);
    struct effect_request request = a_mail(&header);
    for (size_t i = 0; i < 3; i++)
        start(&calling, &mail, &request, &calls[i]);
    run_until(&calling, 3);
    for (size_t i = 0; i < 3; i++) {
        CHECK_INT(calls[i].end, TRANSPORT_ANSWERED);
        CHECK_INT(calls[i].reply.status, 250);
        buf_release(&calls[i].body);
    }
    CHECK_INT(server.taken, 3);
    close_transport(&calling);
    server_stop(&server);
}

TEST(a_mail_server_that_never_answers_holds_up_nobody_else)
{
    struct server silent = {.speaks_mail = true}, web = {.port = 0};
    struct calling calling;
    struct transport_call mailed, called;
    struct pair header;
    char url[64];
    server_start(&silent);
    server_start(&web);
    open_transport(&calling);
    struct destination mail = mail_at(&silent);
    struct effect_request request = a_mail(&header);
    start(&calling, &mail, &request, &mailed);
    while (atomic_load(&silent.taken) == 0)
        calling.transport->run(calling.transport, 10 * WHEN_MS);

    snprintf(url, sizeof url, "http://127.0.0.1:%u", web.port);
    struct destination http = {.name = BYTES("web"), .kind = DESTINATION_HTTP, .url = bytes_of(url), .allow_private = true};
    struct effect_request get = {.method = BYTES("GET"), .path = BYTES("/")};
    for (int i = 1; i <= 3; i++) {
        start(&calling, &http, &get, &called);
        run_until(&calling, i);
        CHECK_INT(called.end, TRANSPORT_ANSWERED);
        buf_release(&called.body);
    }

    calling.transport->abandon(calling.transport); /* ten minutes before its time is over */
    CHECK_INT(calling.ended, 4);
    CHECK_INT(mailed.end, TRANSPORT_LOST);
    CHECK_TEXT(bytes_of(mailed.why.text), "semel stopped");
    buf_release(&mailed.body);
    close_transport(&calling);
    server_stop(&silent);
    server_stop(&web);
}

TEST(a_mail_that_was_not_begun_was_not_sent)
{
    struct server server = {.speaks_mail = true, .answers = true};
    struct calling calling;
    struct transport_call call;
    struct pair header;
    server_start(&server);
    open_transport(&calling);
    struct destination mail = mail_at(&server);
    struct effect_request request = a_mail(&header);
    server_stop(&server);
    start(&calling, &mail, &request, &call);
    run_until(&calling, 1);
    CHECK_INT(call.end, TRANSPORT_NOT_SENT);
    buf_release(&call.body);
    close_transport(&calling);
}
