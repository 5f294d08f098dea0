/*
 * transport: carries one call to a destination and says what became of it. The real one speaks HTTP and SMTP with libcurl and
 * runs commands (transport_curl.c, transport_command.c); a simulation has its own.
 *
 * The four endings are the whole point:
 *   NOT_SENT  nothing has left: no address, no connection, TLS refused, blocked by the guard, no secret, too late to begin.
 *             Certainly no effect.
 *   LOST      something has left, and no answer came. It may have happened.
 *   CUT       the status came, the rest did not, or was larger than allowed.
 *   ANSWERED  the whole answer is there.
 *
 * The transport never repeats a call by itself, unless `repeatable` says that the destination would recognise it.
 */
#ifndef SEMEL_ACT_TRANSPORT_H
#define SEMEL_ACT_TRANSPORT_H

#include "destination/destination.h"

enum transport_end { TRANSPORT_NOT_SENT, TRANSPORT_LOST, TRANSPORT_CUT, TRANSPORT_ANSWERED };

struct transport_call {
    const struct destination *destination;
    const struct effect_request *request;
    struct bytes space;      /* whose secrets are used */
    int64_t effect;          /* what it is called where a call is signed; 0 for a call that is no effect */
    struct arena *arena;     /* for the answer's head, and for what is made to send it */
    int64_t timeout_us;      /* for all of it */
    int64_t begin_before_us; /* boot clock: not sent when this has passed; 0 for no limit */
    bool repeatable;
    bool passing; /* the body goes to `on_body` only, and is not gathered: it may be a stream without an end */
    /* Asked now and then: true breaks it off. May be NULL. */
    bool (*unwanted)(struct transport_call *call);
    /* Called as the answer comes in; may be NULL. The head once, with status and headers; then the body in pieces. */
    void (*on_head)(struct transport_call *call);
    void (*on_body)(struct transport_call *call, struct bytes piece);
    void (*done)(struct transport_call *call); /* once; the call is the caller's again */
    void *user;

    enum transport_end end;
    struct effect_reply reply; /* CUT and ANSWERED; the body is in `body` and belongs to the call */
    struct buf body;           /* the caller releases it */
    struct why why;            /* the others */
    void *own;                 /* the transport's */
};

struct transport {
    /* Begins; `done` may be called before it returns. */
    void (*start)(struct transport *transport, struct transport_call *call);
    /* Carries on with what is under way for at most `wait_us`, or until woken. */
    void (*run)(struct transport *transport, int64_t wait_us);
    void (*wake)(struct transport *transport); /* from any thread */
    /* Ends every call that is under way as it stands: LOST, or NOT_SENT. */
    void (*abandon)(struct transport *transport);
    void (*close)(struct transport *transport);
};

/* The real one. `secrets` outlives it. */
struct secrets;
struct env;
CHECKED enum status transport_open(struct env *env, struct secrets *secrets, struct transport **ret_transport, struct why *why);

#endif
