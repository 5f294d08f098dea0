/*
 * session: one SMTP or LMTP conversation, from bytes to mails (RFC 5321, 2033). Pure: no socket, no clock; whoever owns the connection
 * feeds it what came and sends what stands in `out`.
 *
 *   HELLO ──► COMMAND ──► DATA ──► DELIVERING ──► COMMAND
 *     ▲ greeted    │ 354     │ CRLF.CRLF   │ every mailbox has its answer
 *     │            ├─────────┴─────────────┴──► ENDED
 *     └── SECURE ◄─┘ STARTTLS: the owner begins TLS, then smtp_session_secured()
 *
 * STARTTLS is offered where the owner can do it. A login (AUTH PLAIN, LOGIN; a token is the password) is offered only where nobody
 * can listen in: under TLS, or from this computer. What is known of the client is forgotten when TLS begins, and what came
 * in clear text behind STARTTLS is refused (CVE-2011-0411).
 *
 * Promises: 250 for a mail only when it was delivered, for LMTP one answer per recipient; a line ends in CRLF and nothing else, a mail
 * in CRLF.CRLF and nothing else, so that no two servers see two different mails (CVE-2023-51764); what comes behind DATA before it
 * was invited is refused; nothing is relayed: a recipient that no source listens to is 550; lines, recipients, sizes, errors and
 * mails are limited; a mail that is too large is read to its end and refused.
 */
#ifndef SEMEL_SMTP_SESSION_H
#define SEMEL_SMTP_SESSION_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "mail/mailbox.h"

struct smtp_limits {
    size_t size_max;               /* 25 MiB of one mail; announced as SIZE */
    size_t line_size_max;          /* 16 KiB of one line of a mail; RFC 5321 asks for 1000, but programs write longer ones */
    uint32_t recipients_max;       /* 100 of one mail */
    uint32_t errors_max;           /* 20 in one conversation */
    uint32_t mails_max;            /* 1000 in one conversation */
    uint32_t connections_max;      /* 128 */
    uint32_t connections_per_peer; /* 16, loopback excepted */
    int64_t command_timeout_us;    /* 5 min for a whole command */
    int64_t data_timeout_us;       /* 10 min for a whole mail … */
    int64_t block_timeout_us;      /* … and 3 min without a byte of it */
};

extern const struct smtp_limits smtp_limits_default;

enum {
    SMTP_COMMAND_SIZE_MAX = 1024,
    SMTP_SOURCES_MAX = 16,
    SMTP_SOURCE_SIZE_MAX = 64,
    SMTP_HELLO_SIZE_MAX = 255,
    SMTP_TRACE_SIZE_MAX = 1024
};

enum smtp_state { SMTP_HELLO, SMTP_COMMAND, SMTP_DATA, SMTP_DELIVERING, SMTP_SECURE, SMTP_ENDED };

/* Which answer of a login is waited for. */
enum smtp_login { LOGIN_NONE, LOGIN_PLAIN, LOGIN_USER, LOGIN_PASSWORD };

/* A source that the mail is for, and what became of it. */
struct smtp_target {
    char source[SMTP_SOURCE_SIZE_MAX + 1];
    bool done;
    enum status status;
    struct why why;
};

struct smtp_session_config {
    bool lmtp;
    const char *host; /* our name */
    const char *peer; /* the client's address, for the trace */
    const struct smtp_limits *limits;
    bool can_secure;     /* STARTTLS is possible */
    bool secured;        /* the conversation is under TLS from its beginning */
    bool loopback;       /* the client is on this computer */
    bool login_required; /* before MAIL */
    /* Whether `password` is that of somebody who may send; NULL: there are no logins. */
    bool (*login)(struct bytes password, void *user);
    /* The source that listens to `address`, in `ret_source` of SMTP_SOURCE_SIZE_MAX + 1; false when there is none. */
    bool (*find)(struct bytes address, char *ret_source, void *user);
    /* "Mon, 16 Nov 2026 09:00:00 +0000" */
    void (*date)(char ret[40], void *user);
    void *user;
};

struct smtp_session {
    struct smtp_session_config config;
    enum smtp_state state;
    struct buf out; /* what is to be sent; the owner drops what it sent */

    char line[SMTP_COMMAND_SIZE_MAX]; /* the command so far */
    size_t line_len;
    bool line_too_long, line_cr;

    char hello[SMTP_HELLO_SIZE_MAX + 1];
    bool extended; /* EHLO or LHLO, not HELO */
    bool secured, logged_in;
    enum smtp_login login;
    uint32_t errors, mails;

    bool has_sender, utf8;
    char sender[MAILBOX_SIZE_MAX + 1];
    struct smtp_target targets[SMTP_SOURCES_MAX];
    size_t target_count;
    uint8_t *recipients; /* which target each is for */
    uint32_t recipient_count;

    int data_state; /* enum data_state */
    size_t data_line, data_size;
    bool data_too_large, data_too_long;
    struct buf mail; /* as it is handed on: trace, then what was sent */
};

/* Greets in `out`. FULL without memory. */
CHECKED enum status smtp_session_init(struct smtp_session *session, const struct smtp_session_config *config, struct why *why);
void smtp_session_release(struct smtp_session *session);

/* Takes what it can; returns how much that was. Less than all only in SMTP_DELIVERING, when the rest comes later, and in SMTP_ENDED.
 * In SMTP_SECURE there is no rest. */
size_t smtp_session_feed(struct smtp_session *session, struct bytes in);

/* In SMTP_SECURE, when `out` was sent and TLS is agreed on: the conversation begins anew. */
void smtp_session_secured(struct smtp_session *session);

/* In SMTP_DELIVERING, when every target is done: answers, and goes on. */
void smtp_session_delivered(struct smtp_session *session);

/* Ends it from outside with a last answer: "421 4.4.2 …". */
void smtp_session_end(struct smtp_session *session, const char *answer);

#endif
