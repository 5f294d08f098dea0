/*
 * answer: how a caller names an answer in a conversation, and the key that follows: the conversation lock.
 *
 *     thread thr_…          key thr_…:3:reply               3 is the epoch: said by the caller, or that of the event it answers, or the
 *                                                          conversation's at this moment
 *     thread of the user's  key THREAD:QUESTION:ACTION      semel never saw it come in, so the caller says which question it is
 *
 * All answers are intents of one workflow, whoever asks, because two workflows would be two answers. They go in turn: see
 * ledger/ledger.h.
 *
 * The epoch is looked up before the claim, not in its transaction, and that is right: epochs only grow, and the look comes behind
 * everything that the caller can know. When a new question arrives between the look and the claim, the claim is an answer to the
 * earlier question, which was the last one when the caller asked; the newer one has its own epoch, is forwarded with it and gets its
 * own answer. A message that joins the open epoch meanwhile does so because nobody has begun to act yet, so it shares the answer.
 * That the flow does not let a message join while a claim is under way is what TURN_LOCK is for.
 */
#ifndef SEMEL_THREADS_ANSWER_H
#define SEMEL_THREADS_ANSWER_H

#include "ledger/naming.h"

#define ANSWERS_WORKFLOW BYTES("answers")

enum { EPOCH_UNSAID = -1 };

/* What a caller says beside thread and action. */
struct answer_naming {
    struct bytes event;    /* "evt_…": which it answers */
    struct bytes question; /* for a conversation of the user's own: which question, in any words that only this question has */
    int64_t epoch;         /* EPOCH_UNSAID when it was not said */
};

/* True when the intent is named by thread and action. */
bool answer_is_named(const struct claim_naming *naming, const struct answer_naming *answer);

/* What can be seen wrong with it without looking anything up. INVALID: `ret_field` is to blame. */
CHECKED enum status answer_check(const struct claim_naming *naming, const struct answer_naming *answer, struct bytes *ret_field,
                                 struct why *why);

/* Fills in workflow, thread and key of `naming`. NOTHING: there is no such conversation or event. INVALID: `ret_field` is to blame.
 * Reads by any connection. */
CHECKED enum status answer_name(struct store *store, struct bytes space, const struct answer_naming *answer, struct arena *arena,
                                struct claim_naming *naming, struct bytes *ret_field, struct why *why);

#endif
