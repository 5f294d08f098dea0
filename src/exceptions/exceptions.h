/*
 * exceptions: what a person must decide. A card has a kind, a subject (an intent, an event, or an edge between two leads), a named
 * owner, a due time, and is open until it is resolved.
 *
 *   unknown_outcome  nobody can tell whether it happened: happened | did_not | retry
 *   dead_letter      it did not happen, and trying again by itself will not help: retry | drop
 *   refused          the destination refused it, and that is final for its key; someone should know: drop
 *   likely_duplicate an event looks like an earlier one, but not surely: release | suppress
 *   loop             the same thing comes again and again, or a conversation answers itself: release | suppress
 *   cannot_forward   an event is to go on, but what forwards it cannot be made by the policy as it is: retry | drop
 *   ambiguous_identity  two leads may be one person: same | different
 *
 * Promises: an intent that becomes UNKNOWN has a card in the same transaction, and the card is closed in the transaction in which
 * the intent leaves that state, whoever did it: a person, a probe, a late confirm. (An intent whose rules say `on_unknown: skip`
 * asks for nobody.) Opening and closing are decisions in the audit. Doing nothing about a card has no effect.
 *
 * Owns the table `exception`. Runs inside the engine's batch, on the writer thread.
 */
#ifndef SEMEL_EXCEPTIONS_EXCEPTIONS_H
#define SEMEL_EXCEPTIONS_EXCEPTIONS_H

#include "ledger/ledger.h"

#define OWNER_SIZE_MAX 128
#define EXCEPTION_NOTE_MAX 2000

enum exception_kind {
    EXCEPTION_UNKNOWN_OUTCOME,
    EXCEPTION_DEAD_LETTER,
    EXCEPTION_REFUSED,
    EXCEPTION_LIKELY_DUPLICATE,
    EXCEPTION_LOOP,
    EXCEPTION_CANNOT_FORWARD,
    EXCEPTION_AMBIGUOUS_IDENTITY,
    EXCEPTION_KIND_COUNT
};
enum exception_state { EXCEPTION_OPEN, EXCEPTION_RESOLVED };

extern const char *const exception_kind_names[];  /* "unknown_outcome", …, NULL */
extern const char *const exception_state_names[]; /* "open", "resolved", NULL */

/* Who is asked when nobody else was named, and how long they may take. */
struct people {
    char owner[OWNER_SIZE_MAX + 1];
    int64_t due_us;
};

#define PEOPLE_DEFAULT ((struct people){"operator", INT64_C(8) * 3600 * 1000000})

struct exception_order {
    enum exception_kind kind;
    struct bytes space, owner, reason;
    int64_t intent, event, edge; /* what it is about: one of them, the others are 0 */
    int64_t due_us;              /* from now */
};

/* Opens a card. There is at most one open card of a kind about a thing: a second one changes nothing. */
CHECKED enum status exception_raise(struct store *store, struct ledger *ledger, const struct exception_order *order,
                                    struct why *why);

/* Closes the open card of that kind about the intent, event or edge, if there is one. `resolution` is one word, `note` (may be absent) is
 * the person's. */
CHECKED enum status exception_close(struct store *store, struct ledger *ledger, int64_t intent, enum exception_kind kind,
                                    struct bytes resolution, struct bytes actor, struct bytes note, struct why *why);
CHECKED enum status exception_close_event(struct store *store, struct ledger *ledger, int64_t event, enum exception_kind kind,
                                          struct bytes resolution, struct bytes actor, struct bytes note, struct why *why);
CHECKED enum status exception_close_edge(struct store *store, struct ledger *ledger, int64_t edge, struct bytes resolution,
                                         struct bytes actor, struct bytes note, struct why *why);

/* Gives an open card another owner, another due time (wall; 0 keeps it), or both. NOTHING when there is no such card. */
CHECKED enum status exception_assign(struct store *store, struct ledger *ledger, struct bytes space, int64_t id,
                                     struct bytes owner, int64_t due_us, struct bytes actor, struct why *why);

/* Opens and closes cards for the intents of a batch that became or ceased to be UNKNOWN. Before the batch's audit rows are sealed. */
CHECKED enum status exceptions_follow(struct store *store, struct ledger *ledger, struct intent *const *intents, size_t count,
                                      const struct people *people, struct why *why);

/* ---- the log is the truth: see rebuild.c ---- */

/* The card that a decision speaks of; 0 when it speaks of none. */
int64_t exception_named(const struct row_decision *decision, struct arena *arena);

/* Folds one decision into the card with `card->id`, which has nothing else before the first; decisions about others change nothing. */
CHECKED enum status exception_fold(struct row_exception *card, const struct row_decision *decision, struct arena *arena,
                                   struct why *why);

#endif
