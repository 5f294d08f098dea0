/*
 * forward: /to/{destination}/…, a call to the outside made once. The caller speaks to semel as it would speak to the provider;
 * semel finds the key, claims, forwards the call with the provider's own kind of key, and gives everyone who asks again the same
 * answer, byte for byte.
 *
 *   forward.c        the way of a call: claim, send, answer; replay
 *   forward_key.c    what a call is called: its key, and what it stands for
 *
 * The key, in this order: the header Semel-Key; the destination's key template, when the call has what it needs; the header
 * Idempotency-Key; within a run (header Semel-Run) the contents; within the destination's repeat_window the contents. Without any
 * of them a call that changes something is refused: two equal calls may both be meant. Calls that only read pass through.
 */
#ifndef SEMEL_API_FORWARD_H
#define SEMEL_API_FORWARD_H

#include "api/effects.h"

struct forward {
    struct call *call;
    struct policy *policy; /* in use until the call is answered */
    const struct destination *destination;
    const struct call_rules *rules;
    struct effect_request request; /* as the caller sent it, without what is semel's or secret */
    struct effect_request prepared,
        sent; /* with the provider's key; … and the caller's own authorization, which is never stored */
    struct pair authorization;
    struct effect_order order;
    struct act_call attended;
    struct arena pieces;      /* the delivery thread's: an answer on its way to the loop */
    struct effect_reply head; /* of a streamed answer */
    bool streaming, broken, async;
    bool repeated; /* shadow mode: it has got a key of its own */
};

/* A header that is semel's own, or belongs to one connection: it is not passed on. */
bool forward_is_own(struct bytes name);

/* Chooses the key and what it stands for into the claim; false when the problem was sent. */
bool forward_name(struct forward *forward, struct ledger_command *ret_claim);

#endif
