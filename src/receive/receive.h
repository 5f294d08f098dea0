/*
 * receive: what comes in, from raw bytes to events. Pure: no I/O, no clock, no table, no secret kept.
 *
 *     receive_read(source, secrets, request) → result
 *         handshake?  → answer it                                  RECEIVE_HANDSHAKE
 *         signature   → on the raw bytes, before anything is read   RECEIVE_REFUSED
 *         body        → JSON, form or mail                          RECEIVE_UNREADABLE
 *         split       → one piece per event
 *         extract     → struct incoming                             RECEIVE_EVENTS
 *
 * What a sender signs, how its body is cut and where things stand in it is data: a file of sources/, laid under a row of the policy's
 * `sources:` (source.h). docs/reference/sources.md has the format. receive_sample() and receive_sign() make a delivery by the same
 * data, for `semel trigger` and the tests.
 *
 * Everything returned lives in the arena that was given, in the request, in the source, or is static. Every thread may call these.
 */
#ifndef SEMEL_RECEIVE_RECEIVE_H
#define SEMEL_RECEIVE_RECEIVE_H

#include "identity/incoming.h"
#include "receive/source.h"

#define RECEIVE_EVENTS_MAX 1000   /* of one delivery */
#define RECEIVE_SIGNATURES_MAX 16 /* that are looked at in one header */

struct receive_request {
    struct bytes method;
    struct bytes url; /* as the sender wrote it: scheme, host, path, query */
    struct bytes body;
    struct pair *headers;
    size_t header_count;
    int64_t now_us; /* wall */
};

enum receive_end {
    RECEIVE_EVENTS,
    RECEIVE_HANDSHAKE,
    RECEIVE_REFUSED,    /* the signature; 401 */
    RECEIVE_UNREADABLE, /* the body; 400 */
};

extern const char *const receive_end_names[]; /* "events", "handshake", "refused", "unreadable", NULL */

struct receive_result {
    enum receive_end end;
    int status;                     /* to answer with: 200, or the handshake's, 401, 400 */
    struct bytes reply, reply_type; /* the handshake's answer, or the source's own acknowledgement (Twilio wants empty TwiML);
                                       BYTES_NONE: the sender reads no answer, write what you like */
    struct pair *reply_headers;     /* of a handshake */
    size_t reply_header_count;
    struct incoming *events;
    size_t count;         /* 0 with RECEIVE_EVENTS: verified, nothing in it that concerns anybody (e.g. a ping) */
    struct bytes because; /* one sentence; for REFUSED also which step failed: "timestamp is 412 s old, 300 s are allowed" */
    struct bytes rule;    /* the rule of `verify` that held: "v3"; "none" where nothing is verified */
};

/* `secrets`: the values of source->secrets, in the same order; BYTES_NONE for one that cannot be had. Never kept, never in
 * `because`. FULL when the arena is too small; a bad delivery is OK with its end. */
CHECKED enum status receive_read(const struct source *source, const struct bytes *secrets, const struct receive_request *request,
                                 struct arena *arena, struct receive_result *ret, struct why *why);

/* ---- making one, for `semel trigger` and tests ---- */

struct sample_values {
    struct bytes id;                /* of the delivery and of what happened */
    struct bytes text, name, email; /* phone numbers are given with '+' */
    struct bytes phone;
    int64_t time_us;   /* wall; when it happened */
    int64_t signed_us; /* when it is signed; 0: then too */
};

/* The preset's sample as a request to `url`, not yet signed. INVALID when the preset has none. */
CHECKED enum status receive_sample(const struct source *source, const struct sample_values *values, struct bytes url,
                                   struct arena *arena, struct receive_request *ret, struct why *why);

/* Signs `request` by the source's first rule: adds headers, fills `$signature$` in body and URL. `secret` is the shared secret; for
 * public-key schemes the private key (Ed25519: base64 of the seed, perhaps behind a prefix; ECDSA: PEM or base64 of PKCS #8). */
CHECKED enum status receive_sign(const struct source *source, struct bytes secret, struct arena *arena,
                                 struct receive_request *request, struct why *why);

#endif
