/*
 * act: the delivery of effects. Looks for what is due, takes it through the ledger, calls the destination, and tells the ledger what came of it.
 *
 *     look ──► ladder says DELIVER ──► take (SENT is durable) ──► call ──► confirm or fail ──► the row says when to look again
 *                            ASK ──► question ──► confirm, fail, or ask again later
 *                            others ──► the row is set accordingly, a person gets an exception
 *
 * Nothing here is needed for safety: a process that dies at any point leaves an intent that the ledger understands, and a row that is looked at again.
 *
 * One delivery thread owns all of it but the functions marked "any thread". It is a loop around act_step(), which a simulator calls by itself.
 */
#ifndef SEMEL_ACT_ACT_H
#define SEMEL_ACT_ACT_H

#include "act/outbox.h"
#include "act/pace.h"
#include "act/transport.h"
#include "policy/policy.h"

struct act;

struct act_config {
    struct engine *engine;
    struct transport *transport;                                                       /* closed by act_close() */
    enum status (*open_reader)(void *user, struct store **ret_store, struct why *why); /* NULL: the engine's */
    void *open_user;
};

CHECKED enum status act_open(const struct act_config *config, struct act **ret_act, struct why *why);

/* Starts the delivery thread. */
CHECKED enum status act_start(struct act *act, struct why *why);

/* One turn; says when to come again (boot clock). */
int64_t act_step(struct act *act);

/* Begins nothing new, lets running calls end for a few seconds, then ends them. Before engine_close(). */
void act_close(struct act *act);

/* Any thread: the rules from now on. Takes a use of the policy. */
void act_set_policy(struct act *act, struct policy *policy, int64_t version);

/* Any thread: something is due now. */
void act_wake(struct act *act);

/* ---- a call that someone waits for ---- */

/* For /to/… and /llm/…: the caller has claimed the intent itself (or the call only reads: intent 0). One attempt is made. The callbacks come on the delivery thread. */
struct act_call {
    struct policy *policy; /* a use of it, until done */
    const struct destination *destination;
    const struct call_rules *rules;
    const struct effect_request *request; /* as stored */
    struct bytes space, actor;
    int64_t intent, fence, lease_us, claimed_us; /* claimed_us: boot clock, before the claim was made */
    /* A model call: repeating it changes nothing, so that it may begin late and on a kept connection; an answer that is not whole
     * is not confirmed; the caller keeps the lease alive. */
    bool memo;
    void (*on_head)(struct act_call *call); /* may be NULL; `reply` has status and headers */
    void (*on_body)(struct act_call *call, struct bytes piece);
    void (*done)(struct act_call *call); /* what the ledger was told is durable, unless status says otherwise */
    void *user;

    enum transport_end end;
    enum outcome outcome;
    struct effect_reply reply; /* CUT, ANSWERED; valid until `done` returns */
    struct memo_answer tokens; /* of a model call that was answered */
    struct bytes because;
    enum intent_state state; /* after what the ledger was told */
    enum status status;      /* of telling it */
    bool untold;             /* it was not begun, and the ledger was not told so: the caller has to */
    struct why why;          /* NOT_SENT, LOST: what went wrong */
    struct act_call *next;
};

void act_attend(struct act *act, struct act_call *call); /* any thread */

/* ---- rules of thumb shared with the API ---- */

/* How long an attempt at this destination is held: a call that is given up after timeout_us is over long before the lease is. */
int64_t act_lease_us(const struct destination *destination);

/* How long after its end something of an attempt may still arrive. */
int64_t act_arrival_us(const struct destination *destination);

/* For the `also` of a claim by a caller who attends to it: writes the row if there is none. It is looked at again when the
 * attempt must be over, or now when the ledger says that nobody can tell. */
CHECKED enum status act_write_claimed(struct store *store, struct ledger *ledger, struct engine_command *command,
                                      const struct effect_order *order, const struct destination *destination, struct why *why);

/* ---- figures ---- */

struct act_figures {
    struct bytes destination;
    uint64_t outcomes[OUTCOME_UNKNOWN + 1], probes;
    int64_t running;
    int64_t stranded; /* effects that wait while the policy has no such destination */
    bool breaker_open;
};

/* Any thread. Calls `each` for every destination that was ever used. */
void act_each(struct act *act, void (*each)(void *ctx, const struct act_figures *figures), void *ctx);

#endif
