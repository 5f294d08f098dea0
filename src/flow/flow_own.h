/* flow_own: what the files of flow/ share: one pass. */
#ifndef SEMEL_FLOW_FLOW_OWN_H
#define SEMEL_FLOW_FLOW_OWN_H

#include <pthread.h>

#include "base/when.h"
#include "flow/flow.h"
#include "stage/marks.h"

struct flow {
    struct engine *engine;
    struct act *act;
    struct engine_command command;
    struct arena arena; /* of the command's answer; unused but asked for */
    struct flow_counts counts;
    pthread_mutex_t lock; /* for what is below */
    struct policy *policy;
    int64_t policy_version;
    bool busy, again, stopped;
    int64_t tick_due_us; /* boot clock */
    /* of the pass under way */
    bool more;
    size_t forwarded;
    uint64_t decided[EVENT_VERDICT_COUNT];
    int64_t sweep_due_us;
    int slice;
};

struct item_mark {
    enum mark_kind kind;
    struct mark *mark;
};

/* One event on its way. */
struct item {
    struct known known; /* its row, its contents, its text */
    const struct source *source;
    struct item_mark *marks;
    size_t mark_count;
    struct thread_place **places; /* where its thread may be found, in the order of trust */
    size_t place_count;
    struct decide_verdict verdict;
    struct thread_open *thread;
    const struct known *copy_of; /* it repeats this one, and belongs to its question, whatever was asked since; may be NULL */
    struct ledger_command submit;
    struct effect_order order;
    bool forwards;
};

struct quiet {
    struct bytes space, source;
    struct row_source row;
    int64_t accepted; /* in the time that its limit looks at */
    struct quiet *next;
};

struct pass {
    struct flow *flow;
    struct store *store;
    struct ledger *ledger;
    struct arena *arena;
    const struct policy *policy;
    int64_t policy_version;
    struct bytes pepper;
    struct item *items;
    size_t count;
    struct marks marks;
    struct thread_places places;
    struct quiet *quiet;
    struct why *why;
};

/* FULL, with its sentence. */
enum status pass_no_memory(struct pass *pass);

/* Someone said something: then what was said counts. */
bool item_speaks(const struct item *item);

/* Its channel gave it an id, or what happened has one. */
bool item_has_id(const struct incoming *incoming);

/* Somebody should answer it. */
bool item_is_question(const struct item *item);

/* collect.c: the marks of all items, with whoever has them so far, and their places in conversations. */
CHECKED enum status pass_collect(struct pass *pass);

/* judge.c: what is to be done about one of them, seeing those before it. */
CHECKED enum status pass_judge(struct pass *pass, struct item *item);

/* forward.c: makes ready what forwards it; later, all of them go into ledger and outbox. */
CHECKED enum status pass_prepare(struct pass *pass, struct item *item);
CHECKED enum status pass_forward(struct pass *pass);

/* write.c: what is known of it after the decision; then the rows and decisions of all of them. */
void pass_note(struct pass *pass, struct item *item);
CHECKED enum status pass_write(struct pass *pass);

#endif
