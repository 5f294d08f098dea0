/* flow_own: what the files of flow/ share: one pass. */
#ifndef SEMEL_FLOW_FLOW_OWN_H
#define SEMEL_FLOW_FLOW_OWN_H

#include <pthread.h>

#include "base/when.h"
#include "flow/flow.h"
#include "leads/leads.h"
#include "stage/marks.h"

struct flow {
    struct engine *engine;
    struct act *act;
    struct engine_command command;
    struct arena arena; /* of the command's answer; unused but asked for */
    _Atomic int64_t waiting;
    atomic_bool failing;
    pthread_mutex_t lock;                            /* for what is below */
    struct flow_counts counts[FLOW_SOURCES_MAX + 1]; /* the last one: sources that are not counted by name */
    size_t source_count;
    struct policy *policy;
    int64_t policy_version;
    bool busy, again, stopped;
    int64_t tick_due_us; /* boot clock */
    int64_t most; /* events of the next pass: fewer after one that failed, since large ones together may not fit into memory */
    /* of the pass under way */
    bool more;
    size_t forwarded;
    struct flow_decided {
        size_t slot; /* of `counts` */
        int64_t verdict;
    } decided[FLOW_PASS_MAX];
    size_t decided_count;
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
    const struct message *likened; /* what it was compared with; NULL when it was not, or that is forgotten */
    const struct known *copy_of;   /* it repeats this one, and belongs to its question, whatever was asked since; may be NULL */
    struct lead_answer lead;       /* whose it is; lead.lead 0: nobody's */
    struct ledger_command submit;
    struct effect_order order;
    bool forwards;
    bool unreadable;
    struct bytes obstacle; /* why it cannot be forwarded */
};

struct quiet {
    struct bytes space, source;
    struct row_source row;
    int64_t accepted; /* in the time that its limit looks at */
    struct quiet *next;
};

struct pass;

/* What a pass knows of what was before it, and whom it tells. That of the flow is the database (recall.c); that of a backtest is in
 * memory and tells nobody. */
struct recall {
    enum status (*marks)(struct pass *pass);   /* who has the marks that were collected */
    enum status (*threads)(struct pass *pass); /* where the places lead */
    enum status (*quiet)(struct pass *pass, const struct item *item, struct quiet **ret);
    enum status (*answered)(struct pass *pass, const struct row_thread *thread, bool *ret_answered);
    enum status (*card)(struct pass *pass, const struct item *item, enum exception_kind kind, int64_t event, const char *reason);
};

extern const struct recall recall_stored;

struct pass {
    const struct recall *recall;
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

/* The rules of the moment, with a use of them that policy_free() gives back. */
struct policy *flow_policy(struct flow *flow, int64_t *ret_version);

/* Where the events of that source are counted; and one more of them. */
size_t flow_slot(struct flow *flow, struct bytes source);
void flow_count(struct flow *flow, size_t slot, int64_t verdict);

/* FULL, with its sentence. */
enum status pass_no_memory(struct pass *pass);

/* Someone said something: then what was said counts. */
bool item_speaks(const struct item *item);

/* Its channel gave it an id, or what happened has one. */
bool item_has_id(const struct incoming *incoming);

/* The sender's address says that a program writes. */
bool incoming_is_machine(const struct incoming *incoming);

/* Somebody should answer it. */
bool item_is_question(const struct item *item);

/* flow.c: a row of `event` becomes the next item; a store_row_fn for a pass with room for it. */
enum status pass_take(void *pass, const void *row, struct why *why);

/* write.c: false when an event of that verdict is not recognised by this mark later on; else by which event it is. */
bool item_leaves_mark(const struct item *item, enum mark_kind kind, int64_t *ret_event);

/* collect.c: the marks of all items, with whoever has them so far, and their places in conversations. */
CHECKED enum status pass_collect(struct pass *pass);

/* judge.c: what is to be done about one of them, seeing those before it. */
CHECKED enum status pass_judge(struct pass *pass, struct item *item);

/* lead.c: whose they are: records, leads, and who is asked; each item gets its `lead` and the record in its row. Nothing is written
 * before leads_save(); `ret` is NULL when they are nobody's. */
CHECKED enum status flow_leads(const struct leads_config *config, struct item *items, size_t count, struct leads **ret,
                               struct why *why);
CHECKED enum status pass_leads(struct pass *pass);

/* The lead that a record belongs to now; 0 when there is none. */
CHECKED enum status flow_lead_of(struct store *store, int64_t record, int64_t *ret_lead, struct why *why);

/* forward.c: what forwards an event: the submission and its outbox row, from the event and the raw delivery. Another time on
 * purpose (`replay` from 1 up) it has a key of its own. NOTHING when its source forwards nothing. INVALID when there is no such
 * source or destination any more, or the request cannot be made. */
struct forwarding {
    const struct policy *policy;
    int64_t policy_version;
    const struct row_event *event;
    const struct incoming *incoming;
    struct bytes record, pepper, actor;
    int64_t replay;
    int64_t lead; /* whose it is; 0: nobody's */
};

CHECKED enum status forward_make(const struct forwarding *forwarding, struct arena *arena, struct ledger_command *ret_submit,
                                 struct effect_order *ret_order, struct why *why);

/* The raw delivery of an event; BYTES_NONE when it is gone. */
CHECKED enum status forward_record(struct store *store, const struct row_event *event, struct arena *arena,
                                   struct bytes *ret_record, struct why *why);

/* Hands what was made ready to ledger and outbox; its key is loaded. INVALID, and nothing is written, when the ledger has that key
 * from somebody else. An event that went on before keeps what forwarded it. */
CHECKED enum status forward_submit(struct store *store, struct ledger *ledger, const struct item *item, bool replay,
                                   int64_t *ret_intent, bool *ret_new, struct why *why);

/* Makes ready what forwards an item; later, all of them go into ledger and outbox. What cannot be forwarded is held. */
CHECKED enum status pass_prepare(struct pass *pass, struct item *item);
CHECKED enum status pass_forward(struct pass *pass);

/* write.c: the columns that a decision changes. */
struct row_event_decided decided_of(const struct row_event *row);

/* What is known of it after the decision; then the rows and decisions of all of them. */
void pass_note(struct pass *pass, struct item *item);
CHECKED enum status pass_write(struct pass *pass);

#endif
