/*
 * guard: semel calls destinations that other people name, from inside a network that trusts it. The guard keeps such calls outside.
 *
 *   URL ──guard_url_parse: one reading──► host, port ──guard_check: what can be told at once──► libcurl
 *   libcurl resolves once ──► each address it is about to connect to ──guard_apply's callback──► socket, or none
 *
 * The address that is checked is the one that is connected to, so an answer of the DNS that changes between two questions changes nothing. The
 * connection that a request is about to use is checked once more just before it is sent, because libcurl may have kept it from an earlier call under
 * other rules. Each redirect, where they are followed at all, passes the same checks.
 *
 * No request leaves before the last check, so that guard_sent_nothing() can tell, whatever went wrong, whether the effect is surely none. And a request leaves
 * once: libcurl would send it again by itself, a POST too, when a kept connection breaks without an answer; the guard stops that.
 * A guard belongs to one transfer at a time and lives as long as the handle it was applied to.
 */
#ifndef SEMEL_GUARD_GUARD_H
#define SEMEL_GUARD_GUARD_H

#include <curl/curl.h>

#include "guard/url.h"

#define GUARD_HEADERS_MAX ((size_t)64 << 10)

struct guard_ports {
    uint16_t first, last;
};

/* One entry of the operator's list of hosts that may be called although they are not public: `mail.internal:25`, `10.0.0.5:8080`, `[fd00::5]:443`. */
struct guard_host {
    struct bytes host; /* not owned */
    bool literal;
    struct guard_address address;
    uint16_t port;
};

struct guard_rules {
    bool allow_private; /* this computer and private networks too; never metadata, link-local and the like */
    const struct guard_host
        *allowed; /* the operator's: a name reaches private addresses, an address is reached whatever it is; any port */
    size_t allowed_count;
    const struct guard_ports
        *ports; /* NULL for the default: for mail 25, 465, 587, 2525; for HTTP all but those of other services */
    size_t port_count;
    int redirects_max;          /* 0: a redirect is an answer like any other */
    bool tls_unverified;        /* any certificate will do */
    bool tls_optional;          /* smtp:// only: go on without TLS where the server has none */
    const char *ca_file;        /* NULL: the system's authorities */
    int64_t connect_timeout_us; /* 0: 10 s */
    int64_t user_timeout_us;    /* 0: 30 s. A connection on which nothing is acknowledged for so long is dead */
};

struct guard {
    const struct guard_rules *rules;
    CURL *curl;
    struct guard_url url; /* its parts point into `text` */
    char text[GUARD_URL_MAX + 1];
    bool refused;   /* the guard ended the transfer; `why` says why */
    bool sent;      /* a request was about to leave, and may have */
    long redirects; /* … behind so many of them */
    struct why why;
    size_t header_bytes;
    /* May be set after guard_apply(): the last word before a request leaves; each header line. */
    bool (*may_begin)(void *user);
    void (*on_header)(void *user, struct bytes line);
    void *user;
};

/* Reads `host:port`; INVALID with what is wrong. */
CHECKED enum status guard_host_parse(struct bytes text, struct guard_host *ret_host, struct why *why);

/* What can be told without asking the DNS: the port, names that are never public, addresses. For policies; guard_apply() does it too. */
CHECKED enum status guard_check(const struct guard_rules *rules, const struct guard_url *url, struct why *why);

/* Makes the handle safe to use with this URL: sets the URL, protocols, sockets, TLS, redirects, proxies, header limits. INVALID
 * when the URL is refused. What the caller sets later must not undo it. Rules and guard must outlive the transfer. */
CHECKED enum status guard_apply(struct guard *guard, CURL *curl, const struct guard_rules *rules, struct bytes url,
                                struct why *why);

/* After a transfer, however it ended: not one byte of a request has left this computer. For mail: nothing behind the greeting. */
bool guard_sent_nothing(const struct guard *guard);

#endif
