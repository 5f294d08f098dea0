/*
 * outbox: effects, that is intents which semel itself carries out, with the request to be made. Owns the table `outbox`.
 *
 * A row says what to do next and when to look; what happened is the ledger's to say. So a row may be late or stale and nothing
 * goes wrong: whoever looks at it reads the intent's state with it, and acts only through the ledger.
 *
 *   DELIVER   to be sent as soon as it is due; or, if it is attended, by a caller who waits for it and decides about
 *             another try (/to/…)
 *   ASK       nobody knows whether it happened; the destination will be asked
 *   PERSON    a person has to decide; there is an exception
 *   FINISHED
 *
 * Steps are only ever changed together with a move of the ledger or by the one who looks at the row; see ladder.h for what
 * follows what. The functions for batches run on the writer thread inside the engine's transaction.
 */
#ifndef SEMEL_ACT_OUTBOX_H
#define SEMEL_ACT_OUTBOX_H

#include "destination/destination.h"
#include "engine/engine.h"

enum outbox_step { STEP_DELIVER, STEP_ASK, STEP_PERSON, STEP_FINISHED, STEP_COUNT };
enum outbox_priority { PRIORITY_HIGH, PRIORITY_NORMAL, PRIORITY_LOW, PRIORITY_COUNT };

extern const char *const outbox_step_names[];     /* "deliver", "ask", "person", "finished", NULL */
extern const char *const outbox_priority_names[]; /* "high", "normal", "low", NULL */

#define OUTBOX_NEVER INT64_MAX
#define OUTBOX_LINE_MAX 256
#define RECORD_SIZE_MAX (80u << 20)

/* A new effect: everything but the ids, which come with the intent. */
struct effect_order {
    struct row_outbox row; /* intent, request, created are filled in when it is written; deadline: 0 for none */
    struct bytes record;   /* the request's record */
};

/* With a SUBMIT or CLAIM: writes the row and the request of an intent that is new. */
CHECKED enum status outbox_write(struct store *store, struct ledger *ledger, int64_t intent, const struct effect_order *order,
                                 struct why *why);

/* The evidence for the audit row of the submission: what the outbox row was born with. */
struct bytes outbox_evidence(const struct effect_order *order, struct arena *arena);

/* ---- changes: they run the statement of the same name, and the log says what they changed ---- */

CHECKED enum status outbox_taken(struct store *store, struct ledger *ledger, struct bytes space,
                                 const struct q_outbox_taken *taken, struct why *why);
CHECKED enum status outbox_ended(struct store *store, struct ledger *ledger, struct bytes space,
                                 const struct q_outbox_ended *ended, struct why *why);
CHECKED enum status outbox_ask(struct store *store, struct ledger *ledger, struct bytes space, const struct q_outbox_ask *ask,
                               struct why *why);

/* `effect`: as it was looked at. When to look again is no history: if nothing else changes, the log does not say it. */
CHECKED enum status outbox_stand(struct store *store, struct ledger *ledger, const struct row_effect *effect,
                                 const struct q_outbox_stand *stand, bool *ret_changed, struct why *why);

/* A person, or many at once: it is to be sent again, now, with as much time as it had; or it is done with. */
/* `ret_changed` NULL: whatever has become of the row since it was looked at. */
CHECKED enum status outbox_again(struct store *store, struct ledger *ledger, const struct row_effect *effect, bool *ret_changed,
                                 struct why *why);
CHECKED enum status outbox_finish(struct store *store, struct ledger *ledger, const struct row_effect *effect, struct bytes note,
                                  struct why *why);

/* ---- stranded: open effects whose destination is not in the policy ---- */

/* Calls `each` for every such destination, with how many wait there. */
CHECKED enum status outbox_stranded(struct store *store, const struct policy *policy, struct arena *arena,
                                    void (*each)(void *ctx, struct bytes destination, int64_t effects), void *ctx,
                                    struct why *why);

/* ---- the log is the truth: see rebuild.c ---- */

/* What one of these statements does to a row. */
void outbox_apply(struct row_outbox *row, const struct query *query, const void *params);

/* Folds one decision about its intent into a row of the outbox, which is empty before the first. All of it is rebuilt but `due`. */
CHECKED enum status outbox_fold(struct row_outbox *row, const struct row_decision *decision, struct arena *arena,
                                struct why *why);

/* As `forget` of the engine: the row and the request go when their intent goes. */
CHECKED enum status outbox_forget(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why);

/* ---- what is stored of requests and replies ---- */

/* One line of JSON with method, path and headers, then the body's bytes. */
CHECKED enum status request_record(const struct effect_request *request, struct arena *arena, struct bytes *ret_record,
                                   struct why *why);
CHECKED enum status request_read(struct bytes record, struct arena *arena, struct effect_request *ret_request, struct why *why);

/* What is kept beside an answer. */
struct reply_notes {
    bool partial;           /* it was cut off, too large, or never seen */
    struct bytes evidence;  /* JSON, may be absent: why it counts as done then */
    bool memo;              /* it answers a model call, with … */
    int64_t input, output;  /* … so many tokens, -1 for not known, */
    const uint32_t *pieces; /* and it came in pieces of these lengths; the rest is one more */
    size_t piece_count;
};

/* JSON, so that it is also the intent's result: {"status":200,"headers":[["name","value"]],"body":"text"}, or "body_base64" when it is no UTF-8. */
CHECKED enum status reply_record(const struct effect_reply *reply, const struct reply_notes *notes, struct arena *arena,
                                 struct bytes *ret_record, struct why *why);
CHECKED enum status reply_read(struct bytes record, struct arena *arena, struct effect_reply *ret_reply,
                               struct reply_notes *ret_notes, struct why *why);

#endif
