/*
 * forward: /to/{destination}/…, a call to the outside made once. The caller speaks to semel as it would speak to the provider;
 * semel finds the key, claims, forwards the call with the provider's own kind of key, and gives everyone who asks again the same
 * answer, byte for byte.
 *
 *   forward.c        the way of a call: claim, send, answer; replay
 *   forward_send.c   the request that is passed on, the answer that is given back; also for llm.c
 *   forward_key.c    what a call is called: its key, and what it stands for
 *
 * The key, in this order: the header Semel-Key; the destination's key template, when the call has what it needs; the header
 * Idempotency-Key; within a run (header Semel-Run) the contents; within the destination's repeat_window the contents. Without any
 * of them a call that changes something is refused: two equal calls may both be meant. Calls that only read pass through.
 */
#ifndef SEMEL_API_FORWARD_H
#define SEMEL_API_FORWARD_H

#include "api/effects.h"

#define FORWARD_CREDENTIALS_MAX 2

struct forward {
    struct call *call;
    struct policy *policy; /* in use until the call is answered */
    const struct destination *destination;
    const struct call_rules *rules;
    struct effect_request request; /* as the caller sent it, without what is semel's or secret */
    struct effect_request prepared,
        sent; /* with the provider's key; … and the caller's own authorization, which is never stored */
    struct pair credentials[FORWARD_CREDENTIALS_MAX]; /* the caller's own */
    size_t credential_count;
    struct effect_order order;
    struct act_call attended;
    struct arena pieces;      /* the delivery thread's: an answer on its way to the loop */
    struct effect_reply head; /* of a streamed answer */
    bool streaming, broken, async;
    bool repeated; /* shadow mode: it has got a key of its own */
    bool plain;    /* a model call: its answer is read, so that it must not be compressed */
    bool replayed; /* the answer is one that was given before, with … */
    struct reply_notes notes;
    bool begun;                                                  /* on the loop: the stream's head was passed on */
    bool whole;                                                  /* all of the stream was */
    void (*passed)(struct forward *forward, struct bytes piece); /* may be NULL: a piece of the stream was passed on */
    void (*over)(struct forward *forward); /* may be NULL: called once, before what the call holds is given back */
};

/* A call that begins: takes a use of the policy, which forward_release() gives back. */
void forward_open(struct forward *forward, struct call *call, struct policy *policy, const struct destination *destination);

/* "/to/NAME/v1/x?y" → "/v1/x?y", exactly as it was sent; empty for "/to/NAME". */
struct bytes forward_path(const struct http_head *head);

/* The caller's request, without what is semel's own and without credentials. These, and forward_authorize(), forward_pass() and
 * forward_once(), are false when a problem was sent instead; then the caller gives back the policy. */
bool forward_read(struct forward *forward);

/* The caller's own credentials go along unless the destination has a secret here; they are never stored. */
bool forward_brings_credential(const struct forward *forward);
bool forward_authorize(struct forward *forward, const struct effect_request *from);

/* Passed on as it is. */
bool forward_pass(struct forward *forward);

/* Made once: claimed, sent, remembered. */
bool forward_once(struct forward *forward);

/* Makes the call; its answer, or what became of it, is the reply. Intent 0: nobody is told. */
void forward_send(struct forward *forward, int64_t intent, int64_t fence);

/* The answer that the claim brought; false when there is no whole one, and nothing was sent. */
bool forward_replay(struct forward *forward);

/* Begins the reply with the head of another call's stream; then http_reply_piece() and http_reply_end(). */
void forward_follow(struct forward *forward, const struct forward *leader);

/* Gives back what the call holds; every answer goes through here. */
void forward_release(struct forward *forward);

/* A header that is semel's own, or belongs to one connection: it is not passed on. */
bool forward_is_own(struct bytes name);

/* Chooses the key and what it stands for into the claim; false when the problem was sent. */
bool forward_name(struct forward *forward, struct ledger_command *ret_claim);

#endif
