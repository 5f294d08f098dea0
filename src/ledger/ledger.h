/*
 * ledger: does a thing once. An intent is named by (space, workflow, key); the ledger gives it one holder at a time, one result,
 * and an honest `unknown`.
 *
 *                claim                     sent                    confirm
 *   (none) ─────────────────► CLAIMED ─────────────────► SENT ─────────────────► CONFIRMED
 *                ▲               │ release, lapse          │
 *                │               ▼                         │ fail(effect none)      ┌──► REFUSED (final)
 *             PENDING ◄──────────┴─────────────────────────┼────────────────────────┤
 *                ▲                                         │ lapse, fail(unknown)   └──► PENDING
 *                └──── the destination deduplicates, ──────┤
 *                      or on_unknown: retry                └──► UNKNOWN ── confirm / fail(none) with the same fence ──►
 *                                                                          CONFIRMED / PENDING / REFUSED
 *
 *   PENDING   nobody works on it           CONFIRMED  it happened; the result is kept
 *   CLAIMED   held; nothing has left       REFUSED    it did not and will not happen
 *   SENT      anything may have happened   UNKNOWN    nobody can tell; a person has to say
 *
 * Rules:
 *  - SENT is durable before the holder acts. A claim without `two_phase` counts as sent from the start.
 *  - The fence grows by one with each claim; every later call carries it, and one that is not the current fence changes nothing.
 *  - A lease that ran out before SENT is safely given to the next; one that ran out after it is ambiguous and never given on
 *    silently.
 *  - The same claim sent again with the same nonce, because its answer was lost, is given the same fence again while it is
 *    CLAIMED and nothing has moved since, not even by an `extend`. What is SENT may have happened and is not given out again.
 *  - The same key with other contents is refused and names the fields.
 *  - CONFIRMED, REFUSED and skipped UNKNOWN expire after `keep` to a tombstone; nothing else ever does.
 *  - In quarantine a key that is absent, or was last touched before the loss, is not given out unless its destination
 *    deduplicates: it is UNKNOWN.
 *  - What is submitted waits as PENDING until someone takes it; submitting the same key again changes nothing.
 *  - Whoever takes it, or gives it up, says which fence was seen. When somebody has had it since, or it is proved that nothing
 *    happened, a decision on what was seen changes nothing: a caller who comes back gets it, or it is UNKNOWN, never both.
 *  - Intents that go in turn (answers in a conversation): none begins while another one of the same workflow, thread and action is
 *    open: held, queued, or UNKNOWN and not skipped. A free one that nobody works on is not open: it would block for ever.
 *  - Each move is one row in the audit, with the columns it changed, in the same transaction.
 *
 * This file is pure: it works on intents that were loaded and says what to write. It is called by the engine's batch
 * (engine/batch.c), one thread, which loads before and saves after; nothing else writes the tables `intent`, `body` and
 * `tombstone`.
 */
#ifndef SEMEL_LEDGER_LEDGER_H
#define SEMEL_LEDGER_LEDGER_H

#include "audit/audit.h"
#include "base/json.h"
#include "fingerprint/fingerprint.h"
#include "policy/policy.h"
#include "queries.h"

#define KEY_HASH_SIZE 16
#define NONCE_HASH_SIZE 16

enum intent_state { STATE_PENDING, STATE_CLAIMED, STATE_SENT, STATE_CONFIRMED, STATE_REFUSED, STATE_UNKNOWN, STATE_COUNT };

extern const char *const intent_state_names[]; /* "pending", …, NULL */

/* Which attempts may have had an effect: bits of intent.ambiguous. A holder can only speak for its own. */
enum { AMBIGUOUS_EARLIER = 1, AMBIGUOUS_NOW = 2 };

/* The run clock decides leases and expiry, the wall clock is for people; see env/env.h. */
struct ledger_now {
    int64_t wall_us, run_us;
};

/* An intent in memory during one batch. */
struct intent {
    struct row_intent row;
    struct row_intent before; /* as of the last audit row: the next one says what changed since */
    uint8_t h[KEY_HASH_SIZE];
    bool exists; /* it is in the table, or will be after this batch */
    bool fresh;  /* to be inserted */
    bool dirty;  /* to be updated */
    bool drop;   /* to be deleted, leaving a tombstone */
    bool queued; /* while PENDING: semel itself carries it out; known of those that are looked at because of others' turn */
    int64_t state_before; /* at the beginning of the batch; -1 when there was none */
    bool buried;          /* only a tombstone is left of it */
    int64_t buried_settled;
    int64_t buried_state;
    struct bytes result; /* the result's bytes, when loaded or just confirmed */
    int64_t result_new;  /* the body id to be inserted with `result`, 0 for none */
    struct intent *next; /* in the batch's table */
};

/* SUBMIT accepts an intent that semel itself will carry out; TAKE is the claim of whoever carries it out, by id. */
enum ledger_op { OP_CLAIM, OP_SENT, OP_CONFIRM, OP_FAIL, OP_EXTEND, OP_RELEASE, OP_LAPSE, OP_EXPIRE, OP_SUBMIT, OP_TAKE };

extern const char *const ledger_op_names[];

struct ledger_command {
    enum ledger_op op;
    struct bytes space, actor;
    int64_t policy;        /* the version of the rules that were applied */
    struct bytes evidence; /* JSON for the audit row: what was seen that led to this; may be absent */

    /* claim, submit; take: the rules of the moment */
    struct bytes workflow, key, run, thread, action;
    uint8_t h[KEY_HASH_SIZE];
    struct fingerprint fingerprint;
    int64_t lease_us, keep_us, tombstone_us, window_us, attempts_max;
    enum capability capability;
    enum on_unknown on_unknown;
    bool two_phase, shadow;
    bool give_up;             /* take: only to be declared UNKNOWN */
    bool in_turn;             /* claim, submit: waits for the other open ones of this workflow, thread and action */
    struct bytes nonce;       /* claim: ledger_nonce_hash() of what names this attempt of its caller; may be absent */
    struct bytes place, line; /* submit: behind the others of this line at this place, over all nodes; absent without one */

    /* the others */
    int64_t intent, fence;
    struct bytes result; /* confirm, final fail: JSON, verbatim */
    struct bytes error;  /* fail */
    bool effect_unknown, final;
    bool all_attempts; /* fail without effect: it is said of every attempt, not only of this one */
};

enum ledger_verdict {
    VERDICT_PROCEED,         /* claim: it is yours */
    VERDICT_REPLAY,          /* claim: it was done; here is the result */
    VERDICT_IN_PROGRESS,     /* claim: someone holds it */
    VERDICT_OUTCOME_UNKNOWN, /* claim: nobody can tell whether it happened */
    VERDICT_KEY_REUSED,      /* claim: the key was used for something else */
    VERDICT_REFUSED,         /* claim: it was refused for good */
    VERDICT_EXPIRED,         /* claim: it was settled long ago; only that is remembered */
    VERDICT_DONE,            /* the others: so it is */
    VERDICT_FENCED,          /* the others: you do not hold it any more */
    VERDICT_DIFFERS,         /* confirm: it was confirmed with another result */
    VERDICT_ALREADY_SENT,    /* release: it was sent; only confirm or fail can follow */
    VERDICT_NOT_FOUND,       /* the others: no such intent in this space */
};

extern const char *const ledger_verdict_names[]; /* also the `kind` of the audit row of a suppressed duplicate */

struct ledger_answer {
    enum ledger_verdict verdict;
    bool shadow;               /* shadow mode let it through … */
    enum ledger_verdict would; /* … although this would have been the answer */
    bool again;                /* the call was a repetition and changed nothing */
    bool other;                /* IN_PROGRESS, OUTCOME_UNKNOWN: `intent` is another one, whose turn it is */
    bool two_phase;            /* PROCEED: `sent` has to be said before the act */
    bool may_have_happened;    /* PROCEED: an earlier attempt may have had its effect, and the rules accept a repetition */
    int64_t intent, fence;
    enum intent_state state;
    int64_t lease_until_us; /* wall */
    int64_t lease_left_us;  /* held: until the lease ends; `other`, queued: until it is worth a look */
    int64_t settled_us;     /* wall; when it was confirmed or refused */
    int64_t expires_us;     /* wall, roughly; 0 for never */
    struct bytes result, error, key, workflow;
    char downstream[DOWNSTREAM_KEY_SIZE + 1]; /* PROCEED: the key for the destination, the same for every attempt */
    struct bytes *differs;                    /* KEY_REUSED: names of fields */
    size_t differs_count;
};

/* What a batch hands to each step. */
struct ledger {
    struct ledger_now now;
    int64_t epoch;   /* grows when the database may have forgotten what it acknowledged */
    bool quarantine; /* … and what may be forgotten is held until a person lifts this */
    struct arena *arena;
    struct id_source *ids;
    struct audit_batch *audit;
    struct intent **intents; /* all that the batch has loaded or made */
    size_t intent_count;
    /* Inside the engine: loads more intents by their keys into the batch, and finds one that is loaded. */
    enum status (*load)(struct ledger *ledger, struct store *store, const uint8_t (*h)[KEY_HASH_SIZE], size_t count,
                        struct why *why);
    struct intent *(*find)(const struct ledger *ledger, const uint8_t *h);
};

/* The identity of an intent, 16 bytes of SHA-256 over the length-prefixed parts, peppered per installation. */
void ledger_key_hash(struct bytes pepper, struct bytes space, struct bytes workflow, struct bytes key,
                     uint8_t ret_h[KEY_HASH_SIZE]);

/* By which turns in a conversation are taken one after the other: the parameter of TURN_LOCK. */
int64_t ledger_turn(struct bytes pepper, struct bytes space, struct bytes thread);

/* By which those that are submitted to a line are accepted one after the other: the parameter of TURN_LOCK. */
int64_t ledger_line(struct bytes pepper, struct bytes place, struct bytes line);

/* PostgreSQL, before they are decided: those that are submitted to a line come one after the other over all nodes, and their ids are
 * behind those of all that wait there. So ids grow as they were accepted, whatever the nodes' clocks say. */
CHECKED enum status ledger_line_up(struct ledger *ledger, struct store *store, struct bytes pepper,
                                   const struct ledger_command *const *submits, size_t count, struct why *why);

/* A store_row_fn for OUTBOX_LINE_LAST; `ctx` is the source of ids. */
CHECKED enum status ledger_stay_behind(void *ctx, const void *row, struct why *why);

/* What is kept of a caller's nonce: whoever reads the ledger cannot use it. */
void ledger_nonce_hash(struct bytes pepper, struct bytes nonce, uint8_t ret_hash[NONCE_HASH_SIZE]);

/* What a workflow's rules say about a claim: everything that the caller may then say otherwise. */
void ledger_claim_rules(struct ledger_command *claim, const struct workflow_rules *rules);

/* Decides one command on its intent, which is changed in memory; transitions are added to the audit batch. Never fails: when
 * memory ends, audit->failed is set and the batch must not be committed. */
void ledger_apply(struct ledger *ledger, struct intent *intent, const struct ledger_command *command,
                  struct ledger_answer *ret_answer);

/* True when another one that goes in turn has to wait for this one. */
bool ledger_is_open(const struct intent *intent);

/* True when answering the claim from a plain read is safe: a settled intent cannot change any more. */
bool ledger_is_settled(const struct intent *intent);

/* ---- loading and saving: see ledger_store.c ---- */

/* Takes a row into memory; copies what it points to into the arena. */
CHECKED enum status intent_take(struct intent *intent, const struct row_intent *row, struct arena *arena, struct why *why);

/* Writes fresh, changed and dropped intents and new bodies. CONFLICT when another node inserted one of them first. */
CHECKED enum status intents_save(struct store *store, struct intent *const *intents, size_t count, struct arena *arena,
                                 int64_t run_us, struct why *why);

/* What an audit row says of its intent without its detail: the detail has only what is otherwise. */
void intent_follow(struct row_intent *intent, const struct row_decision *decision);

/* Folds one audit row into an intent: the log alone rebuilds the ledger. */
CHECKED enum status intent_fold(struct row_intent *intent, const struct row_decision *decision, struct arena *arena,
                                struct why *why);

#endif
