/*
 * way: how a run talks to the ledger. First over HTTP, as every other command; when nothing listens there, directly on the data
 * directory, if there is one that nobody uses at this moment. Each call finds its way anew, so that a daemon may start or stop
 * between any two of them.
 *
 * Nothing is printed here. A way belongs to one thread.
 */
#ifndef SEMEL_RUN_WAY_H
#define SEMEL_RUN_WAY_H

#include <stdatomic.h>

#include "cli/cli.h"
#include "ledger/ledger.h"
#include "policy/policy.h"
#include "threads/answer.h"

struct way {
    struct cli *cli;         /* its arena and client are this way's own */
    const char *data;        /* the directory; NULL for none */
    const atomic_bool *stop; /* give up when it becomes true; may be NULL */
};

struct way_claim {
    struct bytes workflow, key, action;
    const struct answer_naming *answer; /* an answer in a conversation: without workflow and key; NULL for none */
    struct bytes thread;                /* … of it, unless the event says so */
    struct bytes run;                   /* BYTES_NONE for none */
    struct bytes input;                 /* JSON text: what a later claim with this key must bring again; BYTES_NONE for none */
    struct bytes keep;                  /* as written, BYTES_NONE for the policy's */
    int64_t keep_us, lease_us;
    int on_unknown; /* of enum on_unknown; -1 for the policy's */
};

struct way_answer {
    enum ledger_verdict verdict;
    char intent[32];
    bool other; /* IN_PROGRESS, OUTCOME_UNKNOWN: `intent` is another one, whose turn it is */
    int64_t fence;
    char downstream[DOWNSTREAM_KEY_SIZE + 1];
    bool may_have_happened; /* PROCEED: an earlier attempt may have had its effect */
    struct bytes would;     /* shadow mode: the verdict that was passed over; else empty */
    struct bytes error;     /* REFUSED: why */
    struct json result;     /* REPLAY */
    int64_t settled_us;
    bool direct; /* it was answered on the data itself */
    int hold;    /* PROCEED on the data itself: see hold.h; else -1 */
};

/* What the holder says. */
struct way_say {
    enum ledger_op op;
    char intent[32];
    int64_t fence;
    bool direct;         /* the claim was made on the data itself */
    struct bytes result; /* confirm */
    struct bytes error;  /* fail */
    bool effect_unknown; /* fail */
    int64_t lease_us;    /* extend */
};

/* The data directory is --data, or ./semel-data when that holds a ledger and no address was given. */
void way_init(struct way *way, struct cli *cli);

/* OK: `ret_answer` holds. Otherwise `ret_code` is the exit code and `why` the sentence.
 * RETRY: no way is open, or not now; nothing was done. UNKNOWN: it may have been done. INVALID: it will not be better next time;
 * with CLI_DATA what was sent is to blame.
 */
CHECKED enum status way_claim(struct way *way, const struct way_claim *claim, int64_t wait_us, struct way_answer *ret_answer,
                              int *ret_code, struct why *why);

/* As way_claim; the verdict is VERDICT_DONE or why it was not taken. */
CHECKED enum status way_say(struct way *way, const struct way_say *say, enum ledger_verdict *ret_verdict, int *ret_code,
                            struct why *why);

/* The policy that holds there. NOTHING: this token may claim, but not read it. Otherwise as way_claim. The caller frees it. */
CHECKED enum status way_policy(struct way *way, struct policy **ret_policy, int *ret_code, struct why *why);

/* A tool call of an agent, before it is made: see runs/calls.h. Space and actor are filled in there. As way_claim. */
struct way_calls {
    struct bytes server, run;
    int64_t per_run;            /* 0: no limit */
    const struct hash *content; /* NULL: equal calls are never meant anew */
    int64_t repeat_us;

    bool refused; /* the answers */
    int64_t number;
};
CHECKED enum status way_count(struct way *way, struct way_calls *calls, int *ret_code, struct why *why);

/* Its answer, by its number, reaches the caller. */
CHECKED enum status way_answered(struct way *way, const struct way_calls *calls, int *ret_code, struct why *why);

/* After IN_PROGRESS: until it is worth asking again, at most `wait_us`. */
void way_wait(struct way *way, const struct way_answer *answer, int64_t wait_us);

#endif
