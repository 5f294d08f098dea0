/*
 * llm: /llm/{provider}/…, the memo for model calls. The caller speaks to semel as it would speak to the provider. A model call
 * changes nothing and costs money, so that equal ones are made once and everyone gets the same bytes, streams in the same pieces.
 *
 *   llm.c           the way of a call: which one it is, claim, send or replay, count
 *   llm_flights.c   calls outside a run: which of them are the same
 *   llm_follow.c    who asks while a stream is under way reads along
 *   llm_keep.c      leases of calls under way, and what nobody came back for
 *
 * It is the ledger that remembers: a model call is an intent of the workflow `llm` whose key is made of the request. Its lease is
 * short and kept alive while the call is under way, so that after a crash the next caller need not wait for long. Whatever is not a
 * whole answer is not remembered: the intent is free again, and nobody gets a card, since repeating it changes nothing.
 *
 * Which calls are the same, in this order:
 *   Semel-Run           equal ones of one run, for the destination's `keep`
 *   the policy's memo   equal ones within that time
 *   otherwise           those that are under way at the same time, and the client's own retries (x-stainless-retry-count above 0)
 *                       within a minute; on several nodes, those of one node
 * Equal: provider, path, body (canonical JSON without `ignore`), headers that the provider file names, credentials, occurrence.
 *
 * Everything here belongs to the loop thread.
 */
#ifndef SEMEL_API_LLM_H
#define SEMEL_API_LLM_H

#include "api/forward.h"
#include "runs/runs.h"

#define LLM_WORKFLOW BYTES("llm")
#define LLM_LEASE_US (30 * INT64_C(1000000))
#define LLM_RETRY_US (60 * INT64_C(1000000))
#define LLM_PROVIDERS_MAX 256
#define LLM_SETS 256
#define LLM_SET_SIZE 8
#define LLM_LEADER_SIZE 31

/* Equal calls outside a run that count as one: those that share a leader. */
struct llm_flight {
    struct hash hash; /* what they have in common */
    char leader[LLM_LEADER_SIZE + 1];
    int calls;          /* under way */
    bool settled;       /* a whole answer is there */
    int64_t touched_us; /* boot clock; 0: free */
};

struct llm_figures {
    char provider[DESTINATION_NAME_MAX + 1];
    uint64_t hits, misses, failures, passed, saved_tokens;
};

/* One model call. */
struct llm_call {
    struct forward forward; /* comes first */
    struct bytes model, run;
    int64_t keep_us;
    struct hash hash; /* of what makes it equal to others */
    struct llm_flight *flight;
    bool sent;
    struct llm_call *next, **before; /* of those whose lease is kept alive */
    int64_t beat_us;                 /* boot clock */
    struct buf so_far, pieces;       /* of its stream: what was passed on, and how long each piece was, as uint32_t */
    struct llm_call *followers, *next_follower;
};

struct llm {
    struct policy *built_in; /* the providers that work without a policy */
    struct llm_flight flights[LLM_SETS][LLM_SET_SIZE];
    struct llm_figures figures[LLM_PROVIDERS_MAX];
    size_t figure_count;
    struct llm_call *under_way;
    int64_t swept_us; /* boot clock */
    bool sweeping;
};

/* ---- llm_flights.c ---- */

/* The flight of equal calls that this one belongs to; NULL when it begins one. `retry`: the client says that it asks again. */
struct llm_flight *llm_flight_find(struct llm *llm, const struct hash *hash, bool retry, int64_t boot_us);

/* Joins it, or with NULL begins one; NULL when too many are under way, and then the call has nothing to do with others. */
struct llm_flight *llm_flight_join(struct llm *llm, struct llm_flight *flight, const struct hash *hash, const char *leader,
                                   int64_t boot_us);
void llm_flight_leave(struct llm_flight *flight, bool settled, int64_t boot_us);

/* ---- llm_follow.c ---- */

/* True when an equal call streams at this moment, and this one gets what is there and then what comes. */
bool llm_follow(struct llm *llm, struct llm_call *own);

/* A piece of the leader's stream; and its end: its followers are answered. */
void llm_follow_piece(struct forward *leader, struct bytes piece);
void llm_follow_end(struct llm_call *leader);

/* ---- llm_keep.c ---- */

void llm_keep(struct api *api, struct llm_call *own);
void llm_keep_end(struct llm_call *own);

#endif
