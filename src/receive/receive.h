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

#include "receive/identity.h"
#include "receive/source.h"

#define RECEIVE_EVENTS_MAX 1000     /* of one delivery */
#define RECEIVE_SIGNATURES_MAX 16   /* that are looked at in one header */
#define RECEIVE_ID_MAX 1024         /* bytes of a delivery id, key or thread; a longer one is kept as its hash */
#define RECEIVE_IDENTITIES_MAX 16   /* of one event */
#define RECEIVE_REFERENCES_MAX 32   /* of one event */
#define RECEIVE_TEXT_MAX (64 << 10) /* bytes of a text; the rest is cut off */

/* One event, as it was understood. */
struct incoming {
    struct bytes kind; /* "message": someone wrote; "lead": someone gave their data; "status", "event": something happened. Only
                              the first two are ever questions */
    struct bytes delivery; /* the sender's id of this delivery or event; BYTES_NONE without. Compared within the source */
    struct bytes
        key; /* business key with its prefix, "wa:wamid.…", "mail:id@host": what happened, whoever tells of it; BYTES_NONE
                              without. Compared within the space */
    struct bytes name; /* the person's name as given */
    struct bytes company, country;
    struct bytes subject, text; /* what the person wrote; quoted text and signature taken off */
    struct bytes thread;        /* the channel's own id of the conversation, "slack:T1:C1:1.1"; BYTES_NONE without */
    struct bytes *references;   /* ids of earlier messages of it, as business keys ("mail:…") */
    size_t reference_count;
    struct identity *identities;
    size_t identity_count;
    int64_t at_us;  /* when it happened, as the sender says; 0 without */
    bool automatic; /* Auto-Submitted, bounce, list, out of office, a bot: must never be answered */
    bool relayed;   /* a machine sent it on behalf of the person: a form's notification */
    /* This event's part of the body: the body itself when it holds one event, else the same JSON with every array on the way cut
     * down to this one element. */
    struct bytes piece;
    struct bytes payload; /* stage's: a hash of the piece, for an event that has neither delivery id nor key */
};

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
