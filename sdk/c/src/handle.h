/*
 * handle: what is behind the opaque handles of semel.h. A ledger is reached in one of two ways, behind one small table: `remote`
 * (a daemon, over HTTP) and `embedded` (the engine inside this process). semel.c is everything that both have in common: what is
 * asked is checked, calls are repeated, leases are counted.
 */
#ifndef SEMEL_SDK_HANDLE_H
#define SEMEL_SDK_HANDLE_H

#include <pthread.h>

#include "direct/direct.h"
#include "env/env.h"
#include "semel.h"

#define ARENA_MAX ((size_t)128 << 20)

struct remote;

/* What a claim asks for, checked. */
struct asked {
    struct claim_naming naming;
    struct bytes input, nonce;
    int64_t lease_us, wait_us;
    enum semel_on_unknown on_unknown;
};

/* What it was answered; texts are in the arena of the call. */
struct answer {
    char intent[32], downstream[SEMEL_DOWNSTREAM_SIZE];
    int64_t fence, lease_us;
    bool may_have_happened;
    struct bytes would, result;
};

/* What a holder says. */
struct say {
    enum ledger_op op;
    const char *intent;
    int64_t fence;
    struct bytes result, error;
    bool effect_unknown, final;
    int64_t lease_us; /* extend; 0 as before */
};

/* semel.c: the same for the ledger, without its intent. */
struct ledger_command say_command(const struct say *say);

/* SEMEL_UNREACHABLE from either means: it may have been done, and the same call may be made again. */
struct semel_way {
    enum semel_status (*claim)(struct semel *semel, const struct asked *asked, struct arena *arena, struct answer *ret,
                               struct why *why);
    enum semel_status (*say)(struct semel *semel, const struct say *say, struct arena *arena, int64_t *ret_lease_us,
                             struct why *why);
    void (*close)(struct semel *semel);
};

struct semel {
    const struct semel_way *way;
    int64_t patience_us;
    struct arena arena; /* of what was found when it was opened */
    struct remote *remote;
    struct direct direct;
    pthread_mutex_t naming; /* the policy's templates serve one thread at a time */
};

struct semel_claim {
    struct semel *semel;
    struct arena arena;
    struct answer answer;
    pthread_mutex_t lock; /* what follows is shared with the heartbeat */
    pthread_cond_t wake;
    struct why why;
    int64_t lease_us, deadline_us; /* boot clock: not ours any more after this */
    bool held, acting, beating, stop;
    pthread_t beat;
};

enum semel_status remote_open(struct semel *semel, const char *where, const char *token, struct why *why);
enum semel_status embedded_open(struct semel *semel, const char *dir, struct why *why);

enum semel_status status_of_verdict(enum ledger_verdict verdict);

/* beat.c */
void beat_end(struct semel_claim *claim);

/* semel.c: one word of the holder, repeated while there is patience. */
enum semel_status claim_say(struct semel_claim *claim, struct say *say, int64_t patience_us);

int64_t boot_us(void);

/* Before anything else, by every way in. */
void library_setup(void);

/* Copies a sentence for the caller. */
void problem_set(struct semel_problem *problem, struct bytes field, const char *text);

#endif
