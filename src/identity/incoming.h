/*
 * incoming: one event as it was understood, whichever way it came: what receive/ and mail/ make of bytes, and everything behind them
 * decides on.
 */
#ifndef SEMEL_IDENTITY_INCOMING_H
#define SEMEL_IDENTITY_INCOMING_H

#include "identity/identity.h"

#define INCOMING_ID_MAX 1024         /* bytes of a delivery id, key or thread; a longer one is kept as its hash */
#define INCOMING_IDENTITIES_MAX 16   /* of one event */
#define INCOMING_REFERENCES_MAX 32   /* of one event */
#define INCOMING_TEXT_MAX (64 << 10) /* bytes of a text; the rest is cut off */

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

#endif
