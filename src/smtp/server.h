/*
 * server: listens for SMTP or LMTP on somebody's libuv loop and hands complete mails on. Everything here belongs to the thread of
 * that loop; another thread gives its answer through whatever brings it there (http_server_post()).
 *
 *     find(address) → the source that listens to it        at RCPT
 *     deliver(delivery) … smtp_delivered(delivery, status)  behind CRLF.CRLF, one for each source of the mail
 *
 * Promises: what session.h says of one conversation; 250 only behind smtp_delivered(OK); connections, idle time and memory are
 * limited; while a mail is delivered nothing more is read from its connection; a delivery whose client left is not called back, its
 * answer is dropped, and the client will send the mail again.
 */
#ifndef SEMEL_SMTP_SERVER_H
#define SEMEL_SMTP_SERVER_H

#include <stdatomic.h>
#include <uv.h>

#include "http/tls.h"
#include "smtp/session.h"

struct smtp_server;

/* One mail for one source; gone with smtp_delivered(). */
struct smtp_delivery {
    struct bytes source, raw;
    const char *peer; /* the client's address */
    void *user;       /* whoever delivers may keep something here */
};

struct smtp_server_config {
    uv_loop_t *loop;
    const char *listen; /* "127.0.0.1:2525", "unix:/path" */
    bool lmtp;
    struct tls *tls;                                  /* STARTTLS is offered; NULL: no TLS. Stays the caller's */
    bool tls_at_once;                                 /* TLS from the first byte on (SMTPS) */
    bool login_required;                              /* before a mail is taken */
    bool (*login)(struct bytes password, void *user); /* as in session.h; NULL: there are no logins */
    struct smtp_limits limits;
    bool (*find)(struct bytes address, char *ret_source, void *user); /* as in session.h */
    void (*deliver)(struct smtp_delivery *delivery, void *user);      /* answers now or later, exactly once */
    int64_t (*wall_us)(void);
    void *user;
};

struct smtp_counts {
    _Atomic uint64_t accepted, refused, mails, failed; /* connections; mails that were kept, that were not */
};

/* Binds and listens; accepts as soon as the loop runs. INVALID for a bad address; RETRY when it is in use. */
CHECKED enum status smtp_server_open(const struct smtp_server_config *config, struct smtp_server **ret_server, struct why *why);

/* What was bound. */
const char *smtp_server_address(const struct smtp_server *server);

const struct smtp_counts *smtp_server_counts(const struct smtp_server *server);

/* Once for each delivery. INVALID: never (554); whatever else is not OK: not now (451). `sentence` may be NULL. */
void smtp_delivered(struct smtp_delivery *delivery, enum status status, const char *sentence);

/* Says goodbye and closes everything; the loop must still run until that is done. */
void smtp_server_stop(struct smtp_server *server);

/* When the loop has run dry behind smtp_server_stop() and every delivery has its answer. */
void smtp_server_free(struct smtp_server *server);

#endif
