/*
 * intake: the door. From a request that came in to what is staged of it, for every face that takes deliveries (HTTP, mail).
 *
 *     intake_read()            verify and understand; nothing is written
 *     intake_write()           inside the engine's `write`: delivery and events
 *     … COMMIT …               now the sender may be told
 *     flow_wake()              and the flow goes on
 */
#ifndef SEMEL_FLOW_INTAKE_H
#define SEMEL_FLOW_INTAKE_H

#include "flow/flow.h"
#include "secret/secret.h"

struct intake {
    const struct source *source; /* only during intake_read() */
    struct secrets *secrets;
    struct bytes space;
    struct receive_request request;
    struct arena *arena;

    struct receive_result result;
    struct stage_order order; /* RECEIVE_EVENTS with events */
};

/* Everything of it lives in the arena and in the request; the policy may go afterwards. FULL when the arena is too small. */
CHECKED enum status intake_read(struct intake *intake, struct why *why);

CHECKED enum status intake_write(struct store *store, struct ledger *ledger, struct intake *intake, struct why *why);

#endif
