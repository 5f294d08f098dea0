/* engine_own: what the files of engine/ share. */
#ifndef SEMEL_ENGINE_ENGINE_OWN_H
#define SEMEL_ENGINE_ENGINE_OWN_H

#include <pthread.h>

#include "engine/engine.h"
#include "engine/hear.h"

#define PARKED_BUCKETS 1024
#define SUPPRESSED_MAX 16384
#define SUPPRESSED_FLUSH_US INT64_C(1000000) /* their counts are written at the latest so much later */
#define BATCH_ARENA_MAX (512u << 20)
#define BATCH_ARENA_KEPT (2u << 20)

/* A duplicate that was answered without a transition, counted until it is written. */
struct suppressed {
    int64_t intent;
    enum ledger_verdict verdict;
    int64_t policy, count, fence;
    bool other; /* it was about another intent, which has to wait for this one */
    struct bytes space, actor, reason, detail;
};

struct suppressions {
    struct arena arena;
    struct suppressed at[SUPPRESSED_MAX];
    uint16_t slots[SUPPRESSED_MAX * 2]; /* open addressing, index + 1 */
    size_t count, written, writing;     /* those before `written` are in the audit, those before `writing` are in this batch */
    int64_t oldest_us;                  /* boot clock of the first one; 0 when empty */
};

struct engine {
    struct env *env;
    char *data_dir, *postgres_url;
    enum status (*open)(void *user, int lane, struct store **ret_store, int *ret_lane, struct why *why);
    void *open_user;
    enum status (*forget)(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why);
    struct store *store;
    struct store *read_store;

    /* the writer's own */
    struct arena arena; /* of the batch */
    struct id_source ids;
    struct audit_chain chain, chain_after;
    int64_t epoch, quarantine_since_us; /* these and the two below under intake_lock for other threads */
    bool quarantine;
    struct why quarantine_why;
    struct people people;
    uint8_t pepper[ENGINE_PEPPER_SIZE];
    int64_t run_base_us, boot_base_us; /* SQLite: run = run_base + (boot - boot_base) */
    bool may_have_tombstones;
    struct recent *recent; /* PostgreSQL only */
    struct hear *hear;     /* PostgreSQL, when there are threads */
    int guess_pause;       /* so many batches are not decided on `recent`: another node was first lately */
    bool look_helps;       /* PostgreSQL: lately claims met settled or held intents, so a plain look comes first */
    struct engine_command *parked[PARKED_BUCKETS];
    size_t parked_count;
    int64_t parked_look_us; /* when to look through them again */
    struct suppressions suppressions;
    int64_t lapse_due_us, expire_due_us, intake_due_us;

    /* shared */
    _Atomic int64_t clock_offset_us; /* PostgreSQL: server clock minus boot clock */
    _Atomic int intake;
    pthread_mutex_t intake_lock;
    struct why intake_why;
    struct engine_counts counts;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct engine_command *queue_first, **queue_last;
    size_t queue_count;
    int64_t load; /* how many there were in it lately when it was taken, on average, times LOAD_ONE */
    bool stopping, started;
    bool has_heard;         /* other nodes have moved what is waited for here */
    bool stepping, leading; /* whose the writer's own is now; see lead.c, also for those below */
    bool watching;
    uint64_t leads, leads_seen;
    int64_t wake_us, lead_since_us, lead_again_us, watch_until_us; /* boot clock */
    void (*stand_in)(void *arg);
    void *stand_in_arg;
    atomic_bool draining;
    pthread_t writer;

    pthread_mutex_t read_lock;
    pthread_cond_t read_wake;
    struct engine_read *read_first, **read_last;
    bool read_stopping;
    pthread_t reader;
};

/* engine.c */
void engine_set_intake(struct engine *engine, enum engine_intake intake, const struct why *why);
CHECKED enum status engine_connect(struct engine *engine, int lane, struct why *why);
/* A step without timers; says when the writer is due, as engine_step(). */
int64_t engine_lead(struct engine *engine, struct engine_command *commands);

/* lead.c */
void *lead_writer_main(void *engine);

/* epoch.c */
CHECKED enum status epoch_check(struct engine *engine, bool own_loss, struct why *why);
void epoch_refresh(struct engine *engine);
void epoch_take(struct engine *engine, int64_t epoch, const char *quarantine, int64_t since_us);

/* batch.c: decides and writes these commands; every one is answered, or handed to `park` to wait. */
void batch_run(struct engine *engine, struct engine_command **commands, size_t count);
void batch_run_list(struct engine *engine, struct engine_command *list); /* as many batches as it needs */

/* waiting.c */
void waiting_park(struct engine *engine, struct engine_command *command);
/* Takes out those whose intent is `intent`; appends them to *list. */
void waiting_wake(struct engine *engine, int64_t intent, struct engine_command **list);
void waiting_wake_all(struct engine *engine, struct engine_command **list);
/* Takes out those that are due to look again. */
void waiting_due(struct engine *engine, int64_t boot_us, bool all, struct engine_command **list);

/* recent.c */
struct recent *recent_new(void);
void recent_free(struct recent *recent);
void recent_clear(struct recent *recent);
const struct row_intent *recent_by_id(struct recent *recent, int64_t id);
const struct row_intent *recent_by_hash(struct recent *recent, const uint8_t *h);
void recent_keep(struct recent *recent, const struct row_intent *row);
void recent_forget(struct recent *recent, int64_t id);

/* suppress.c */
void suppressions_init(struct suppressions *suppressions);
void suppressions_note(struct suppressions *suppressions, const struct ledger_command *command,
                       const struct ledger_answer *answer, int64_t boot_us);
bool suppressions_are_due(const struct suppressions *suppressions, int64_t boot_us);
/* Adds some of them to a batch; suppressions_written() once that is committed. */
void suppressions_write(struct suppressions *suppressions, struct audit_batch *audit);
void suppressions_written(struct suppressions *suppressions);

#endif
