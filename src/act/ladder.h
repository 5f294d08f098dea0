/*
 * ladder: what to do next about an effect. Pure: a view of it in, one piece of advice out; tested by table.
 *
 *   PENDING   nothing is open: deliver it, unless its attempts or its time are used up (then a person gets it, or, if an attempt
 *             may have happened, the ledger makes it UNKNOWN). What a caller attends to waits for that caller; if it may have
 *             happened, only as long as a repetition would be harmless, then the ledger makes it UNKNOWN
 *   UNKNOWN   ask the destination, once nothing of ours can still arrive there and its answer means something; a bounded
 *             number of times; then a person has it, with all that was seen
 *   settled   nothing
 *
 * A retry after "it may have happened" is never decided here: the ledger puts the intent back to PENDING only where the
 * destination deduplicates on our key and still remembers it (GUARANTEES: the retry horizon), or where the user's rules accept a
 * repetition.
 */
#ifndef SEMEL_ACT_LADDER_H
#define SEMEL_ACT_LADDER_H

#include "act/outbox.h"

struct effect_view {
    enum intent_state state;
    bool attended;     /* a caller decides about another try */
    int64_t caller_us; /* … and, if an attempt may have happened, for so long from now */
    bool ambiguous;    /* an attempt may have happened */
    bool stranded;     /* its destination is not in the policy, and its time is over */
    bool skipped;      /* UNKNOWN, and the rules say that nobody is asked */
    bool can_ask;      /* the destination can be asked about this request */
    int64_t tries, tries_max, probes, probes_max;
    int64_t deadline_us; /* wall; 0 for none */
    int64_t quiet_us;    /* run; until then an earlier attempt may still arrive */
    int64_t settle_us;   /* how long after that an answer means something */
    int64_t wall_us, run_us;
};

enum ladder_move {
    LADDER_DELIVER,
    LADDER_ASK,
    LADDER_WAIT,    /* look again at `at_us` (wall) */
    LADDER_GIVE_UP, /* PENDING, and one attempt may have happened: let the ledger call it UNKNOWN */
    LADDER_DEAD,    /* PENDING, and nothing has happened: a person decides whether it ever will */
    LADDER_PERSON,  /* UNKNOWN, and nobody else can be asked */
    LADDER_CLOSE,
};

struct ladder_advice {
    enum ladder_move move;
    int64_t at_us;
    const char *reason;
};

struct ladder_advice ladder_next(const struct effect_view *view);

/* How long to wait after the n-th try (from 1) failed: doubling from `first` up to `max`, half of it by chance; at least what the destination asked for
 * (`asked_us`, -1 when it did not). */
int64_t ladder_backoff_us(int64_t tries, int64_t first_us, int64_t max_us, int64_t asked_us, uint64_t chance);

/* What an attempt's outcome means for the ledger and the outbox. */
struct ladder_verdict {
    enum ledger_op op; /* OP_CONFIRM or OP_FAIL */
    bool effect_unknown, final;
    bool dead; /* nobody is waiting for it, and another try would be refused too: a person gets it */
};

/* `ambiguous`: an earlier attempt may have happened. */
struct ladder_verdict ladder_judge(enum outcome outcome, bool attended, bool ambiguous, bool replays_refusals);

#endif
