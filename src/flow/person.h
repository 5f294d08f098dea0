/*
 * person: what a person does about an event, whatever the flow decided. Each is one transaction, is written down with name and note,
 * and can be asked for again without harm:
 *
 *   release   a suppressed, held, muted or ignored event goes on after all, once: the ledger knows its key
 *   suppress  a held event is a repetition indeed; a loop is known of; what cannot be forwarded is put away
 *   replay    an event that went on goes on again, on purpose, under a key of its own
 *
 * The card that asked about the event is closed with it.
 */
#ifndef SEMEL_FLOW_PERSON_H
#define SEMEL_FLOW_PERSON_H

#include "flow/flow.h"

enum person_end {
    PERSON_DONE,
    PERSON_BEFORE, /* so it was already: nothing changed */
    PERSON_CANNOT, /* not with this verdict: nothing changed */
};

struct person_order {
    struct flow *flow;
    enum event_act act;
    struct bytes space, actor, note;
    int64_t event;
    bool by_card; /* it is said about a card, which is closed in any case */

    enum person_end end;
    enum event_verdict verdict; /* now */
    int64_t thread, epoch;
    int64_t intent; /* what forwards it; 0 when nothing does */
    int64_t number; /* of the replay */
    size_t slot;    /* the flow's own */
};

/* How many intents one order may load: engine_command.intents_max. */
#define PERSON_INTENTS 1

/* In an engine_command's `write`. NOTHING when there is no such event. INVALID when it cannot be forwarded by today's policy: then
 * nothing is written. */
CHECKED enum status person_write(struct store *store, struct ledger *ledger, struct person_order *order, struct why *why);

/* When that is committed: figures, and the delivery is told. */
void person_done(const struct person_order *order);

#endif
