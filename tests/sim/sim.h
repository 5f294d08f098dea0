/*
 * sim: a whole world in one thread. The real ledger, engine and store run on a clock, a disk, a network and providers that the
 * simulator owns; one seed makes one history, bit for bit the same every time. See README.md for how to add an actor, a provider
 * or an invariant.
 *
 *   world.c     time, randomness, the queue of events; the daemon's life: start, crash, restart
 *   memory.c    the store in memory: fast; a crash loses what was not committed
 *   disk.c      SQLite on a simulated disk: torn writes, lost writes, failed fsync, full disk, crash at any operation
 *   holders.c   clients that claim, act, confirm, retry, pause, die; the operator who resolves what is unknown
 *   provider.c  the outside: counts effects; deduplicates or not; loses and delays
 *   effects.c   in a share of the histories: clients that hand effects to the daemon, and the daemon's delivery (src/act)
 *   post.c      the transport of that delivery: calls that are lost, late, cut, repeated by the dead
 *   person.c    who decides about the exceptions of effects
 *   inbox.c     in another share: senders whose deliveries come in (src/flow), again and again; the flow's life; long idle times
 *   desk.c      who releases, suppresses and replays what came in, and mutes sources
 *   talk.c      agents that are asked by what is forwarded, and answer
 *   judge.c     the invariants
 *   judge_effects.c  those of effects
 *   judge_inbox.c    those of what comes in: each event as it is found in the store, against what was sent
 *   judge_story.c    those of what comes in that need the whole log: one decision each, questions and answers in turn
 *   judge_rebuild.c  that the log alone rebuilds what is not the ledger's
 *   main.c      the command line, marks, mutants
 */
#ifndef SEMEL_TESTS_SIM_SIM_H
#define SEMEL_TESTS_SIM_SIM_H

#include "act/act.h"
#include "base/when.h"
#include "engine/engine.h"
#include "flow/flow.h"

#define KEYS_MAX 3
#define HOLDERS_MAX 4
#define EVENTS_MAX 4096
#define CALLS_MAX 256

#define LEASE_US (200 * WHEN_MS)
#define NET_DELAY_MAX_US (60 * WHEN_MS)
#define PAUSE_MAX_US (40 * WHEN_MS)
#define LATE_MAX_US (NET_DELAY_MAX_US + PAUSE_MAX_US) /* B: from the holder's last check to the last possible arrival */
#define QUARANTINE_US (LEASE_US + LATE_MAX_US)
#define WINDOW_US (3 * WHEN_SECOND)
#define KEEP_US (1500 * WHEN_MS)
#define ATTEMPTS_MAX 6
#define FAULTS_END_US (5 * WHEN_SECOND)
#define END_US (9 * WHEN_SECOND)

/* Histories with effects last longer: the delivery counts in seconds. */
#define EFFECTS_MAX 6
#define EFFECTS_ROOM 160 /* with those that forward events and queue answers */
#define EFFECTS_FAULTS_END_US (8 * WHEN_SECOND)
#define EFFECTS_PERSON_END_US (15 * WHEN_SECOND)
#define EFFECTS_END_US (40 * WHEN_SECOND)
#define CALL_US (300 * WHEN_MS) /* of one attempt of the delivery; as long again something of it may still arrive */
#define SETTLE_US (200 * WHEN_MS)
#define TRIES_MAX 4
#define STARVED_MAX_US (4 * WHEN_SECOND) /* how long the delivery thread may not run */

/* In a history of the inbox the busy seconds are as those of effects, and between them the world is idle for minutes and days. */
#define LETTERS_MAX 9
#define WRITERS_MAX 2
#define SENDS_MAX 9 /* of one letter */
#define SEEN_MAX 96
#define TALKS_MAX 64
#define LOOP_COUNT 4 /* as the policy text of inbox.c */
#define LOOP_US (10 * WHEN_MINUTE)
#define WORDS_WINDOW_US (24 * WHEN_HOUR)
#define FEW_WORDS_US (10 * WHEN_MINUTE) /* how long a short text is compared */

/* What a run has to have seen at least once; otherwise it proved nothing. */
#define MARKS_LEDGER(X)    \
    X(PROCEED)             \
    X(REPLAY)              \
    X(IN_PROGRESS)         \
    X(WAITED)              \
    X(UNKNOWN)             \
    X(KEY_REUSED)          \
    X(FENCED)              \
    X(REFUSED)             \
    X(TAKEOVER)            \
    X(LAPSE_BEFORE_SENT)   \
    X(LAPSE_AFTER_SENT)    \
    X(DEDUPLICATED)        \
    X(ANNOUNCED_DUPLICATE) \
    X(LATE_CONFIRM)        \
    X(RESOLVED_HAPPENED)   \
    X(RESOLVED_DID_NOT)    \
    X(CRASH)               \
    X(CRASH_IN_COMMIT)     \
    X(CRASH_LOST_REPLY)    \
    X(CRASH_AT_BOOT)       \
    X(CLOCK_JUMP)          \
    X(OUTAGE)              \
    X(ZOMBIE)              \
    X(EXPIRED)             \
    X(HORIZON)             \
    X(STORAGE_FULL)        \
    X(CONFIRM_AGAIN)       \
    X(EXTENDED)            \
    X(CLAIM_AGAIN)         \
    X(RELEASED)            \
    X(EXCEPTION)
#define MARKS_EFFECTS(X)  \
    X(DELIVERED)          \
    X(PROBE_FOUND)        \
    X(PROBE_ABSENT)       \
    X(PROBE_UNSURE)       \
    X(DEAD_LETTER)        \
    X(GIVEN_UP)           \
    X(CALLER_GONE)        \
    X(STRANDED)           \
    X(EFFECT_AFTER_CRASH) \
    X(ZOMBIE_CALL)        \
    X(ATTENDED)           \
    X(LINE_WAITED)        \
    X(TOO_LATE_TO_BEGIN)  \
    X(EFFECT_SKIPPED)     \
    X(EFFECT_FORGOTTEN)   \
    X(PERSON_DECIDED)
#define MARKS_INBOX(X)      \
    X(EVENT_ACCEPTED)       \
    X(EVENT_SAME_DELIVERY)  \
    X(EVENT_SAME_KEY)       \
    X(EVENT_SAME_PAYLOAD)   \
    X(EVENT_ELSEWHERE)      \
    X(EVENT_WINDOW_OVER)    \
    X(EVENT_COPY_OF_COPY)   \
    X(EVENT_WEEK_LATE)      \
    X(EVENT_UNHEARD)        \
    X(EVENT_LIKELY)         \
    X(EVENT_LOOP)           \
    X(EVENT_COPIES_LOOP)    \
    X(EVENT_MUTED)          \
    X(EVENT_IGNORED)        \
    X(EVENT_CANNOT_FORWARD) \
    X(EVENT_SHADOW)         \
    X(EVENT_KEPT_ONLY)      \
    X(EVENT_RELEASED)       \
    X(EVENT_PERSON_SAYS_NO) \
    X(EVENT_REPLAYED)       \
    X(EVENT_FORGOTTEN)      \
    X(EVENT_FORWARDED)      \
    X(EVENT_AFTER_CRASH)    \
    X(QUESTION_JOINS)       \
    X(QUESTION_NEXT)        \
    X(ANSWERED)             \
    X(ANSWER_QUEUED)        \
    X(ANSWER_TWICE_ASKED)   \
    X(ANSWER_OWN_KEY)
#define MARKS(X) MARKS_LEDGER(X) MARKS_EFFECTS(X) MARKS_INBOX(X)
#define MARKS_SQLITE(X) X(TORN) X(FSYNC_FAILED) X(LOST_WRITES)
#define MARK_ENUM(name) MARK_##name,
enum mark { MARKS(MARK_ENUM) MARK_SHARED_COUNT, MARK_LAST = MARK_SHARED_COUNT - 1, MARKS_SQLITE(MARK_ENUM) MARK_COUNT };
extern uint64_t marks[MARK_COUNT];
static inline void mark(enum mark which)
{
    marks[which]++;
}

enum tier { TIER_MEMORY, TIER_SQLITE };
enum provider_kind { PROVIDER_IDEMPOTENT, PROVIDER_AT_MOST_ONCE, PROVIDER_AT_LEAST_ONCE, PROVIDER_KINDS };

/* What a destination of effects can do. */
enum place_kind {
    PLACE_KEYED, /* takes our key and remembers it for long */
    PLACE_BRIEF, /* … for less than three leases */
    PLACE_ASKED, /* can be asked afterwards */
    PLACE_HOLD,  /* neither; the rules say: hold */
    PLACE_AGAIN, /* … repeat */
    PLACE_SKIP,  /* … ask nobody */
    PLACE_KINDS
};

/* By which source something comes. */
enum channel {
    CHANNEL_CHAT, /* gives each message an id */
    CHANNEL_FORM, /* gives ids, and the business key when there is one */
    CHANNEL_MAIL, /* the business key when there is one; else nothing but the text */
    CHANNEL_BARE, /* facts without any id */
    CHANNEL_KEPT, /* gives ids; its events are kept for an hour, and forwarded to nobody */
    CHANNELS
};

enum letter_kind {
    LETTER_LONG,  /* words that nobody else says */
    LETTER_SHORT, /* the few words that everybody says */
    LETTER_LIKE,  /* nearly what the letter before it says */
    LETTER_FACT,  /* nobody says it */
    LETTER_KINDS
};

struct sim;
struct flight;
struct memory;

struct event {
    int64_t at_us;
    uint64_t seq;
    void (*run)(struct sim *sim, void *arg);
    void *arg;
};

/* How nasty this history is; drawn from the seed. Chances are in a thousand. */
struct mix {
    int request_lost, reply_lost, crash_per_step, crash_in_store, crash_at_boot, holder_dies, holder_pauses, provider_lost,
        provider_slow, provider_says_no, provider_doubles, jump, outage, full, fsync_fails, other_contents, wait, one_phase,
        extend, release, machine_reboots, comes_back;
    /* of effects */
    int not_sent, cut, fails_after, starved, unsure;
};

/* One key and all that is known about it from outside. */
struct key {
    char text[16];
    enum provider_kind kind;
    int effects; /* that happened at the provider */
    int64_t first_effect_us;
    bool announced;       /* the audit said that a duplicate may follow */
    bool confirmed_seen;  /* some client was told that it is confirmed */
    int64_t confirmed_us; /* when */
    char result[64];      /* with this */
    int contents;         /* which contents were positively answered: -1 none yet */
    int64_t fence_given;  /* the last one that the daemon gave out */
    int64_t intent;
    bool accepted;        /* a client was told that it is known */
    int64_t last_send_us; /* when something last could have left for the provider */
    int64_t settled_us;   /* true time at which the daemon settled it, when known */
    bool unknown_seen;
    int64_t fence_unknown; /* as the answer said */
    struct {
        char downstream[64];
        int64_t at_us;
        char result[64];
    } remembered[8]; /* the provider's own memory of keys */
    int remembered_count;
};

struct holder {
    int number;
    struct key *key;
    int contents;
    uint64_t life;  /* grows when it dies: replies to an earlier life are ignored */
    uint64_t asked; /* the request it waits for */
    uint64_t call;  /* the call to the provider it waits for */
    bool busy;
    int64_t intent, fence;
    char downstream[64];
    char result[64];
    int64_t deadline_us; /* own monotonic: no sending after this */
    bool two_phase;
    struct bytes nonce; /* of this go at the key; absent with one phase */
    bool comes_back;    /* it died and starts again with the same key and nonce, as if it had written them down */
    int tries;
};

/* One effect and all that is known about it from outside. */
struct effect {
    int number;
    char workflow[16], key[48];
    enum place_kind kind;
    struct seen *event;    /* what it forwards */
    struct talk *question; /* what it answers */
    int64_t replay;        /* the number of another time, on purpose */
    bool attended;         /* its caller waits and decides about another try */
    bool in_line;
    int64_t keep_us, deadline_us;
    int contents; /* which were positively answered: -1 none yet */
    int64_t intent;
    bool accepted;          /* a client was told that it is known */
    bool confirmed_seen;    /* … that it happened */
    uint64_t accepted_life; /* in which life of the daemon that was */
    bool waits;             /* another one of its line was open when it was accepted */
    bool released;          /* a person said: again; from then on nobody attends to it */
    uint64_t fences_given;  /* bits: those that a caller was given */
    int happened;           /* at the destination */
    int64_t first_us;       /* when */
    int calls;              /* begun since a person last said: again */
    struct {
        char key[64];
        int64_t at_us;
    } remembered[4]; /* by the destination */
    int remembered_count;
};

/* Something that is said once, however often and by whatever channels it comes. */
struct letter {
    int number, writer;
    enum letter_kind kind;
    bool keyed;     /* it has a business key */
    bool automatic; /* a program wrote it: it is no question */
    enum channel channel;
    int sends;
};

/* An event as it was found in the store. It may be gone since. */
struct seen {
    int64_t id, delivery, received, decided, decided_first, first, thread, epoch, until, policy;
    const struct letter *letter;
    enum channel channel;
    enum event_verdict verdict, was; /* now, and as the flow decided */
    char reason[24];
    bool shadow, gone;
    bool asked_release, asked_suppress; /* by the person, whether it was heard or not */
    int asked_replay;
    int decisions; /* of the flow, in the log */
};

/* A question, that is an epoch of a conversation, and what was said to it. */
struct talk {
    int64_t thread, epoch;
    int replies; /* by agents that claimed; those of effects count as theirs */
    bool begun;  /* in the log so far */
};

/* What an agent did in a conversation under a key of its own: it counts as an answer to what was asked before. */
struct deed_of_agent {
    char key[48];
    int64_t thread, intent;
};

struct sim {
    struct env env; /* first */
    uint64_t seed, random;
    enum tier tier;
    struct mix mix;
    int64_t now_us; /* true time */
    int64_t wall_skew_us, boot_origin_us;
    int64_t idle_us; /* in which nothing happened; no part of now_us */
    struct event events[EVENTS_MAX];
    size_t event_count;
    uint64_t event_seq;

    struct engine *engine;        /* NULL while it is down */
    bool dead;                    /* the process died in the middle of something */
    bool fsync_failed;            /* since the last start */
    uint64_t step_plan;           /* the step that is planned; others are void */
    struct engine_command *inbox; /* arrived, not yet stepped */
    bool step_planned;
    struct memory *memory;
    int checkpoint_pages; /* of the simulated disk */
    int store_countdown;  /* operations until the process dies; 0 never */
    bool quiet;           /* no more faults */

    struct key keys[KEYS_MAX];
    int key_count;
    struct holder holders[HOLDERS_MAX];
    int holder_count;

    bool has_effects;
    bool bare; /* the policy has no destinations now */
    int64_t end_us;
    bool went_back; /* the wall clock did: what is due by it is due later */
    struct effect effects[EFFECTS_ROOM];
    int effect_count;
    struct act *act;          /* lives and dies with the engine */
    uint64_t life, act_plan;  /* of the daemon; the turn of the delivery that is planned */
    int64_t starved_until_us; /* the delivery thread does not run */
    struct flight *flights;   /* of this life */

    bool has_inbox;
    int rules, door;   /* which of the policies of inbox.c is in force; and where deliveries come in */
    struct flow *flow; /* lives and dies with the engine */
    bool queues;       /* its agents hand their answers to the daemon */
    struct letter letters[LETTERS_MAX];
    int letter_count, writer_count;
    struct seen seen[SEEN_MAX]; /* by id */
    int seen_count;
    struct talk talks[TALKS_MAX];
    int talk_count;
    struct deed_of_agent deeds[TALKS_MAX];
    int deed_count;
    int64_t threads[WRITERS_MAX]; /* the conversation of each */
    int64_t acknowledged[SEEN_MAX];
    int acknowledged_count;
    uint64_t looked; /* commits when the events were last looked at */

    struct arena arena; /* everything of this history */
    bool trace;
    char violation[512];
    uint64_t steps, commands;
};

/* ---- world.c ---- */
uint64_t sim_random(struct sim *sim);
int64_t sim_below(struct sim *sim, int64_t limit);
bool sim_chance(struct sim *sim, int in_a_thousand); /* false once it is quiet */
void sim_at(struct sim *sim, int64_t after_us, void (*run)(struct sim *, void *), void *arg);
void sim_say(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_violated(struct sim *sim, const char *invariant, const char *format, ...) __attribute__((format(printf, 3, 4)));
void sim_send(struct sim *sim, struct engine_command *command); /* towards the daemon; may get lost */
void sim_post(struct sim *sim, struct engine_command *command,
              void (*done)(struct engine_command *));             /* … with an answer of its own */
void sim_arrive(struct sim *sim, struct engine_command *command); /* it is there */
struct sim *sim_current(void);
void sim_crash(struct sim *sim, const char *how);
bool sim_run(struct sim *sim, uint64_t seed, enum tier tier, bool trace); /* false when an invariant was violated */
/* Called by the stores at every operation: true when the process dies here. */
bool sim_dies_here(struct sim *sim);

/* ---- memory.c ---- */
struct memory *memory_new(struct sim *sim);
enum status memory_open(struct memory *memory, struct store **ret_store, struct why *why);

/* ---- disk.c ---- */
void sim_disk_start(struct sim *sim);
void sim_disk_lose_power(void);

/* ---- holders.c ---- */
void holder_start(struct sim *sim, void *holder);
void holder_answered(struct sim *sim, struct engine_command *command);
void operator_looks(struct sim *sim, void *none);

/* ---- provider.c ---- */
enum call_outcome { CALL_DONE, CALL_REFUSED, CALL_SILENT };
/* The holder sends; `done` is told later, or never. */
void provider_call(struct sim *sim, struct holder *holder,
                   void (*done)(struct sim *, struct holder *, enum call_outcome, const char *result));

/* ---- effects.c ---- */
void effects_draw(struct sim *sim);
void effects_boot(struct sim *sim);
void effects_crash(struct sim *sim);
void effects_wake(struct sim *sim);            /* the delivery has something to do */
void effects_hand_over(struct sim *sim);       /* what the delivery gave to the engine reaches its queue */
int64_t place_window_us(enum place_kind kind); /* 0: it takes no keys */
struct policy *effects_policy(void);
void effects_shorten(struct policy *policy); /* its times are set so that they fit into a history */

/* ---- post.c ---- */
struct transport *post_transport(void);
void post_crash(struct sim *sim);

/* ---- person.c ---- */
void person_looks(struct sim *sim, void *none);

/* ---- inbox.c ---- */
extern const char *const channel_names[];
void inbox_draw(struct sim *sim);
void inbox_boot(struct sim *sim);
void inbox_crash(struct sim *sim);
struct policy *inbox_policy(int rules);
bool rules_forward(int64_t rules, enum channel channel); /* of that version of the policy */

/* ---- desk.c ---- */
void desk_looks(struct sim *sim, void *none);

/* ---- talk.c ---- */
void talk_asked(struct sim *sim, const struct seen *event);
struct talk *talk_of(struct sim *sim, int64_t thread, int64_t epoch);
struct talk *talk_by_key(struct sim *sim, struct bytes key);
void talk_operator(struct sim *sim, void *none);

/* ---- judge_inbox.c ---- */
void judge_inbox(struct sim *sim);                                /* after every commit, and at the start */
struct seen *judge_seen(struct sim *sim, int64_t id);             /* NULL: nobody has seen it */
void judge_arrived(struct sim *sim, const struct effect *effect); /* at whom it was forwarded to */
void judge_replied(struct sim *sim, struct talk *talk);
void judge_acknowledged(struct sim *sim, int64_t event); /* its sender was told so */
void judge_inbox_end(struct sim *sim);

/* ---- judge_story.c ---- */
void judge_story(struct sim *sim);

/* ---- judge_effects.c ---- */
bool judge_effect_load(struct sim *sim, struct effect *effect, struct row_intent *ret_intent, struct row_effect *ret_row,
                       bool *ret_has_row);
void judge_effect_answer(struct sim *sim, struct effect *effect, const struct engine_command *command);
void judge_begin(struct sim *sim, struct effect *effect, int64_t fence);
void judge_happened(struct sim *sim, struct effect *effect);
void judge_effect_mark(const struct row_decision *row);
void judge_effects_boot(struct sim *sim);
void judge_effects_end(struct sim *sim);

/* ---- judge_rebuild.c ---- */
void judge_rebuilt_rows(struct sim *sim, const char *name, int64_t intent);
void judge_rebuilt_cards(struct sim *sim); /* those about events */

/* ---- judge.c ---- */
struct stored {
    struct sim *sim;
    struct row_intent intent;
    bool has_intent, buried;
};
struct stored judge_load(struct sim *sim, struct bytes workflow, const char *key);
void judge_read(struct sim *sim, const struct query *query, const void *params, store_row_fn *take, void *ctx);
bool judge_is_owned(struct sim *sim, int64_t intent, enum exception_kind kind);
/* INV-5; `contents` is what was positively answered before, -1 for nothing. */
void judge_contents(struct sim *sim, const char *name, const struct engine_command *command, int *contents);
/* INV-3, INV-4: what is stored against how often it happened and what a client was told. */
void judge_settled(struct sim *sim, const char *name, const struct row_intent *row, int happened, bool confirmed_seen);
int judge_announcements(struct sim *sim, int64_t intent);
void judge_rebuilt(struct sim *sim, const char *name, const struct row_intent *stored);
/* `asked_us`: when the client sent the question. An answer may be older than what another client has seen meanwhile. */
void judge_answer(struct sim *sim, struct holder *holder, const struct engine_command *command, int64_t asked_us);
void judge_send(struct sim *sim, struct holder *holder);
void judge_processed(struct sim *sim, const struct engine_command *command); /* also when the reply is lost */
void judge_effect(struct sim *sim, struct key *key);
void judge_boot(struct sim *sim);
void judge_end(struct sim *sim);

#endif
