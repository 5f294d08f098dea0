/*
 * fixture: a server on a thread of its own and a plain blocking client, for the tests of this folder. Each test is a process, so
 * one server at a time is enough. The handler echoes the body or the target; some paths do more:
 * /late is answered by another thread once `release` is set, /large with 4 MiB, /204 without a body, /close with "bye",
 * /peer with the client's address, /split with a header that must never be sent.
 */
#ifndef SEMEL_HTTP_FIXTURE_TEST_H
#define SEMEL_HTTP_FIXTURE_TEST_H

#include <netinet/in.h>
#include <pthread.h>

#include "check.h"
#include "http/server.h"

enum { SECOND_US = 1000 * 1000, BODY_MAX = 64 * 1024, ANSWER_SIZE_MAX = 8 << 20 };

#define HEAD(line) line " HTTP/1.1\r\nHost: a\r\n"

extern struct http_server *server;
extern pthread_t loop_thread;
extern struct why why;
extern _Atomic bool release, saw_gone; /* go on, /late; the client of /late is gone */
extern _Atomic bool late_is_over;      /* the thread of /late needs the server no more */
extern char answer[ANSWER_SIZE_MAX];   /* what was heard last */

struct http_server_config config_default(void);
void start(struct http_server_config config);
void *run(void *arg);
void stop(int64_t grace_us);

int dial_address(struct sockaddr_in address);
int dial(void);
void say_bytes(int fd, struct bytes text);
void say(int fd, const char *text);
/* Everything until the server closes; how it closes (FIN or RST) does not matter. */
const char *hear_all(int fd);
/* All that comes until it ends in `last`. */
const char *hear_until(int fd, const char *last);
/* One request on a connection of its own, until the server closes. */
const char *ask(const char *text);
bool contains(const char *text, const char *part);

#endif
