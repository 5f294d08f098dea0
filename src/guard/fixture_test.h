/*
 * fixture: a resolver and servers for the tests of this folder. The resolver takes the place of the C library's for one host, `dns.example.com`, so that
 * libcurl really asks it; everything else goes to the real one. Two servers listen on one port: 127.0.0.2 stands for the world (tests put it on the operator's
 * list), 127.0.0.1 for what must never be reached. /redirect leads to `redirect_to`, /drop closes without an answer, /large has too many headers,
 * /keep leaves the connection open; everything else is 204 and a closed connection.
 */
#ifndef SEMEL_GUARD_FIXTURE_TEST_H
#define SEMEL_GUARD_FIXTURE_TEST_H

#include <openssl/ssl.h>
#include <stdatomic.h>

#include "check.h"
#include "guard/guard.h"

#define DNS_ANSWERS_MAX 4

/* What the resolver answers: question number n gets answers[n % answer_count]; with `all` each gets the whole list. */
extern const char *dns_answers[DNS_ANSWERS_MAX];
extern size_t dns_answer_count;
extern bool dns_all;
extern atomic_int dns_questions;

extern uint16_t net_port;
extern atomic_int world_connections, victim_connections, world_requests, drop_requests;
extern const char *redirect_to;
extern SSL_CTX *net_tls; /* set before net_start(): the servers speak TLS */

void net_start(void);
void net_stop(void);

/* The operator's list with the world on it. */
const struct guard_rules *world_rules(void);

/* One transfer of the path at dns.example.com, or of a whole URL; what guard_apply() says when it refuses is in guard->why too. */
CURLcode net_get(CURL *curl, struct guard *guard, const struct guard_rules *rules, const char *scheme, const char *path);

#endif
