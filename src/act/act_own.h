/* act_own: what the files of act/ share. */
#ifndef SEMEL_ACT_ACT_OWN_H
#define SEMEL_ACT_ACT_OWN_H

#include <pthread.h>

#include "act/act.h"
#include "act/ladder.h"

#define JOBS_MAX 1024
#define JOB_BUCKETS 2048
#define JOB_ARENA_MAX (256u << 20)
#define READY_MAX 512 /* of one destination and priority: looked up ahead */
#define PLACES_MAX 1024
#define PIECES_MAX 50000 /* of an answer whose borders are kept; what comes behind is one piece */

enum job_stage {
    JOB_READY,  /* in its place's queue */
    JOB_TAKING, /* the ledger is asked for it */
    JOB_CALLING,
    JOB_SAYING, /* the ledger is told, or the row is set */
};

/* A destination's name with its pace and figures; outlives versions of the policy. */
struct place {
    char name[DESTINATION_NAME_MAX + 1];
    const struct destination *destination; /* of the current policy; NULL when that has none of this name */
    struct pace pace;
    struct job *ready; /* the urgent ones first, those of one priority as they came */
    size_t ready_count[PRIORITY_COUNT], looked_up[PRIORITY_COUNT];
    _Atomic uint64_t outcomes[OUTCOME_UNKNOWN + 1], probes; /* these for other threads */
    _Atomic int64_t running, stranded; /* stranded: effects that wait while the policy has no such destination */
    _Atomic bool breaker_open;
    bool strand_said; /* the log says that effects wait for it in vain */
};

/* One effect that is being dealt with. */
struct job {
    struct act *act;
    struct place *place;
    struct job *next, *bucket_next;
    enum job_stage stage;
    bool asking; /* the call is a question */
    bool memo;   /* a model call */
    struct memo_answer tokens;
    struct buf pieces; /* of a model call: how long each piece of the answer was, as uint32_t */
    struct arena arena;
    struct policy *policy;
    int64_t policy_version;
    const struct destination *destination;
    const struct call_rules *rules;
    const struct probe_recipe *recipe; /* how to ask about it; NULL when it cannot be asked */
    struct row_effect effect;
    struct bytes actor;
    struct effect_request request, question;
    char downstream[DOWNSTREAM_KEY_SIZE + 1];
    int64_t fence, begun_us, lease_us;
    struct transport_call call;
    struct engine_command command;
    int64_t say_again_us; /* the storage failed: tell it again then */

    /* what the batch writes beside the ledger's move */
    struct q_outbox_ended ended;
    struct q_outbox_stand stand;
    bool dead;
    struct bytes evidence;
    const char *reason;
    struct act_call *caller; /* who waits, or NULL */
};

struct act {
    struct engine *engine;
    struct env *env;
    struct transport *transport;
    enum status (*open_reader)(void *user, struct store **ret_store, struct why *why);
    void *open_user;
    struct store *reader;
    int64_t reader_due_us;

    struct policy *policy; /* in use; a newer one waits in `policy_next` */
    int64_t policy_version;
    struct place *places[PLACES_MAX];
    size_t place_count;
    struct job *buckets[JOB_BUCKETS];
    size_t job_count;
    struct job *waiting;        /* those that must tell the ledger again */
    int64_t look_us, strand_us; /* when to look next */

    pthread_mutex_t lock; /* for what is below */
    struct policy *policy_next;
    int64_t policy_next_version;
    struct job *back_first, **back_last; /* come back from the engine */
    struct act_call *calls_first, **calls_last;
    bool wanted, stopping, started;
    pthread_t thread;
};

/* look.c: what is due */
void act_look(struct act *act, int64_t boot_us);
struct job *job_of(struct act *act, struct place *place, const struct row_effect *effect); /* NULL when there is no room */

/* strand.c: what waits for a destination that is not in the policy */
void act_strand(struct act *act, int64_t boot_us);

/* job.c: one effect */
struct job *job_new(struct act *act, struct place *place);
void job_drop(struct job *job);
bool job_is_known(const struct act *act, int64_t intent);
void job_note(struct job *job); /* into the table of known ones */
void job_take(struct job *job);
void job_call(struct job *job);
void job_ask(struct job *job);
void job_give_up(struct job *job); /* taken only to be declared unknown, at once */
void job_stand(struct job *job, const struct ladder_advice *advice);
void job_back(struct job *job); /* the engine is done with its command */
void job_say_again(struct job *job);

/* act.c */
struct place *act_place(struct act *act, struct bytes name);
void act_ready(struct place *place, struct job *job);

#endif
