/*
 * semel: does a thing once, from C and everything that can call C. Ask before you act: one caller goes ahead, the others get that
 * caller's result, and when nobody can tell whether it happened, semel says so instead of guessing.
 *
 *     struct semel *semel;
 *     struct semel_claim *claim;
 *     if (semel_open(NULL, NULL, &semel, NULL) != SEMEL_OK)
 *         …
 *     switch (semel_claim(semel, &(struct semel_intent){.workflow = "mail", .key = "lead_8821:intro"}, &claim)) {
 *     case SEMEL_PROCEED:                                     // it is yours: act, then say what became of it
 *         send_the_mail(semel_downstream_key(claim));
 *         semel_confirm(claim, "{\"message_id\":\"m-1\"}");
 *         break;
 *     case SEMEL_REPLAY:                                      // it was done before: semel_result(claim, NULL)
 *         break;
 *     default:                                                // do not act: semel_why(claim) says why
 *         break;
 *     }
 *     semel_claim_free(claim);
 *     semel_close(semel);
 *
 * Threads: a `struct semel` may be used by any number of threads at once. A `struct semel_claim` belongs to one thread at a time
 * (its heartbeat is the library's own thread and needs no care). semel_close() comes after every other call on the handle, and
 * after its claims were freed. Handles do not survive fork(): open anew in the child.
 *
 * Memory: what a function returns as `const char *` belongs to the handle it was asked of and lives as long. Texts given are
 * copied, and are UTF-8 that ends in a NUL. NULL means: not given.
 *
 * The process: with a daemon nothing is done to it. With a ledger inside this process ("file:"), three things belong to the bargain:
 * SQLite is set up as this library needs it when nobody has used it before, a disk that fails to sync ends the process at once with
 * exit code 74 (nothing may be answered after that), and a broken promise inside the library aborts it.
 */
#ifndef SEMEL_H
#define SEMEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SEMEL_EXPORT __attribute__((visibility("default")))

struct semel;       /* a ledger: a daemon's, or one inside this process */
struct semel_claim; /* what one claim was answered, and, while it is held, the right to act */

enum semel_status {
    SEMEL_OK,              /* said, and taken */
    SEMEL_PROCEED,         /* claim: it is yours. Act, then confirm or fail */
    SEMEL_REPLAY,          /* claim: it was done before; semel_result() is what it gave */
    SEMEL_IN_PROGRESS,     /* claim: someone else holds it. Ask again later */
    SEMEL_OUTCOME_UNKNOWN, /* claim: it may have happened, and nobody can tell. Do not act */
    SEMEL_KEY_REUSED,      /* claim: the key was used for something else */
    SEMEL_REFUSED,         /* claim: it did not happen and will not */
    SEMEL_EXPIRED,         /* claim: it was settled so long ago that only this is remembered */
    SEMEL_FENCED,          /* you do not hold it any more; nothing was changed. Do not act */
    SEMEL_DIFFERS,         /* confirm: it was confirmed with another result, which stays */
    SEMEL_ALREADY_SENT,    /* release: it was sent, so only confirm or fail can follow */
    SEMEL_NOT_FOUND,       /* no such intent there */
    SEMEL_UNREACHABLE,     /* no answer in time. The same call may be made again, and is safe to repeat */
    SEMEL_BUSY,            /* open: another process has this directory */
    SEMEL_INVALID,         /* the call is wrong and will not be better next time */
    SEMEL_NO_MEMORY,
};

SEMEL_EXPORT const char *semel_status_name(enum semel_status status); /* "proceed", "in_progress", … */

/* What is wrong, for calls without a claim. Both texts are empty when there is nothing to say. */
struct semel_problem {
    char field[128]; /* which part of the input is to blame */
    char text[320];
};

/* ---- the ledger ---- */

/* `where` is "http://HOST:PORT", "https://HOST", "unix:/PATH" (a daemon), or "file:DIR": a ledger inside this process, kept in DIR
 * (SQLite), which one process has at a time. NULL is SEMEL_URL, or http://127.0.0.1:7363. `token` NULL is SEMEL_TOKEN, if set; "file:"
 * needs none. No daemon is called yet. `ret_problem` may be NULL. */
SEMEL_EXPORT enum semel_status semel_open(const char *where, const char *token, struct semel **ret_semel,
                                          struct semel_problem *ret_problem);
SEMEL_EXPORT void semel_close(struct semel *semel);

/* How long a call is repeated while a daemon does not answer: 10000 unless told. Before other threads use the handle. */
SEMEL_EXPORT void semel_set_patience(struct semel *semel, int64_t patience_ms);

/* ---- to do a thing once ---- */

enum semel_on_unknown { SEMEL_AS_POLICY, SEMEL_HOLD, SEMEL_RETRY, SEMEL_SKIP };

/* What is to be done once. Only `workflow` is always needed, and `key` unless the policy makes it from the input. */
struct semel_intent {
    const char *workflow, *key;
    const char *input; /* JSON; whoever claims the same key again has to bring the same */
    const char *run, *thread, *action, *keep;
    int64_t lease_ms;                 /* how long it is yours without a word; 0 is the policy's */
    int64_t wait_ms;                  /* how long to wait while someone else holds it */
    enum semel_on_unknown on_unknown; /* what follows when the holder stops after it may have acted */
    bool two_phase;                   /* say semel_sent() yourself, right before you act; otherwise it is said by the claim */
};

/* Always gives a claim (NULL only without memory), whatever the answer is; free it with semel_claim_free(). */
SEMEL_EXPORT enum semel_status semel_claim(struct semel *semel, const struct semel_intent *intent,
                                           struct semel_claim **ret_claim);

/* What is still held is given up: released when nothing was sent, else unknown. Say confirm or fail before. NULL is allowed. */
SEMEL_EXPORT void semel_claim_free(struct semel_claim *claim);

/* From now on it may have happened. Act only when this returned SEMEL_OK. */
SEMEL_EXPORT enum semel_status semel_sent(struct semel_claim *claim);

/* It happened. `result` is JSON (NULL: null); everyone who asks again is given it byte for byte. */
SEMEL_EXPORT enum semel_status semel_confirm(struct semel_claim *claim, const char *result);

enum semel_effect {
    SEMEL_EFFECT_UNKNOWN, /* it may have happened: a time-out, a broken connection */
    SEMEL_EFFECT_NONE,    /* it surely did not; the next claim may try again */
    SEMEL_EFFECT_NEVER,   /* it surely did not, and never shall */
};

SEMEL_EXPORT enum semel_status semel_fail(struct semel_claim *claim, enum semel_effect effect, const char *error);

/* The lease begins anew; 0 is its length as before. */
SEMEL_EXPORT enum semel_status semel_extend(struct semel_claim *claim, int64_t lease_ms);

/* Given back untouched; only before semel_sent(). */
SEMEL_EXPORT enum semel_status semel_release(struct semel_claim *claim);

/* Extends the lease from a thread of the library's own every third of it, until the claim is settled or freed. */
SEMEL_EXPORT enum semel_status semel_keep_alive(struct semel_claim *claim);

/* True when the lease is over, or may be: do not act any more. By this machine's own clock, from before the claim was asked for. */
SEMEL_EXPORT bool semel_is_lost(struct semel_claim *claim);
SEMEL_EXPORT int64_t semel_lease_left_ms(struct semel_claim *claim);

/* ---- what the claim was answered ---- */

SEMEL_EXPORT const char *semel_intent_id(const struct semel_claim *claim); /* "int_…", "" when there is none */
SEMEL_EXPORT int64_t semel_fence(const struct semel_claim *claim);
SEMEL_EXPORT const char *
semel_downstream_key(const struct semel_claim *claim); /* PROCEED: a key for the destination, the same for every attempt */
SEMEL_EXPORT bool
semel_may_have_happened(const struct semel_claim *claim);              /* PROCEED: an earlier attempt may have had its effect */
SEMEL_EXPORT const char *semel_would(const struct semel_claim *claim); /* shadow mode: the answer that was passed over; else "" */
SEMEL_EXPORT const char *semel_result(const struct semel_claim *claim,
                                      size_t *ret_len);              /* REPLAY: JSON; NULL without. ret_len may be NULL */
SEMEL_EXPORT const char *semel_why(const struct semel_claim *claim); /* of the last call on it that was no success; else "" */

/* ---- keys, as the server makes them ---- */

struct semel_key_template {
    const char *text; /* "followup:{lead_id}:{template}:{day}" */
    const char *zone; /* IANA; NULL is UTC */
    const char *time; /* the path of the event's own time in the input */
    int64_t now_us;   /* for {today}: microseconds since 1970; 0 is the clock */
};

/* The key for an input (JSON). SEMEL_INVALID: the template is wrong (problem.field is "(template)") or the input is. */
SEMEL_EXPORT enum semel_status semel_key(const struct semel_key_template *key_template, const char *input, char *ret_key,
                                         size_t size, struct semel_problem *ret_problem);

/* The canonical form (RFC 8785) of a JSON text. */
SEMEL_EXPORT enum semel_status semel_canonical(const char *json, char *ret_text, size_t size, struct semel_problem *ret_problem);

/* The key that goes to the destination, as semel_downstream_key(): "sml-" and 32 digits. */
#define SEMEL_DOWNSTREAM_SIZE 37
SEMEL_EXPORT void semel_make_downstream_key(const char *space, const char *workflow, const char *key,
                                            char ret_key[SEMEL_DOWNSTREAM_SIZE]);

SEMEL_EXPORT const char *semel_version(void);

#ifdef __cplusplus
}
#endif

#endif
