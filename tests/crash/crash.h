/*
 * crash: the real ledger, engine and store on a simulated disk, cut off at every single operation. One run is one scenario (a few
 * commands), one way to go wrong (a model) and one point at which it does; after it the data is opened again and everything that
 * was ever answered has to hold. See README.md for how to read a failure and how to add a scenario or a model.
 *
 *   main.c       the command line; walks through scenarios, models, seeds and points
 *   scenarios.c  what is done
 *   world.c      the process's life: open, command, crash, recover, repeat; what the clients were told
 *   judge.c      what has to hold after each of them
 *   faults.c     what goes wrong with the disk (tests/disk.h)
 *   memory.c     allocations that fail
 */
#ifndef SEMEL_TESTS_CRASH_CRASH_H
#define SEMEL_TESTS_CRASH_CRASH_H

#include <setjmp.h>

#include "base/when.h"
#include "disk.h"
#include "engine/engine.h"

/* ---- ways to go wrong ---- */

#define MODELS(X)                                                                        \
    X(PROCESS, "process", 3, "the process dies; the page cache lives on")                \
    X(ALL, "all", 1, "power loss; everything that was written is on the disk")           \
    X(NONE, "none", 1, "power loss; nothing that was not synced is on the disk")         \
    X(MIX, "mix", 2, "power loss; each write is there or not")                           \
    X(TORN, "torn", 3, "power loss; each write is there, not there or torn by sectors")  \
    X(RECOVERY, "recovery", 3, "a crash, and another one inside the recovery")           \
    X(FSYNC, "fsync", 4, "fsync fails and drops what it should write; later power loss") \
    X(FULL_DISK, "full", 3, "a write finds the disk full")                               \
    X(WRITE_ERROR, "write-error", 3, "a write, a truncation or a deletion fails")        \
    X(READ_ERROR, "read-error", 2, "a read fails")                                       \
    X(SHORT_READ, "short-read", 2, "a read of the log finds less than was written")      \
    X(MEMORY_SQLITE, "memory-sqlite", 2, "SQLite gets no memory")                        \
    X(MEMORY_OWN, "memory-own", 2, "semel gets no memory")
#define MODEL_ENUM(name, text, seeds, meaning) MODEL_##name,
enum model { MODELS(MODEL_ENUM) MODEL_COUNT };

/* One run. */
struct plan {
    enum model model;
    uint64_t seed;
    uint64_t at;    /* the operation, fault or allocation that goes wrong, from 1 */
    uint64_t again; /* MODEL_RECOVERY: the operation of the recovery that is cut off too */
};

/* ---- faults.c ---- */

enum fault { FAULT_NONE, FAULT_WRITES_FULL, FAULT_CHANGES_FAIL, FAULT_READS_FAIL, FAULT_READS_SHORT, FAULT_SYNCS_FAIL };

struct faults {
    bool dead;        /* the process is no more: nothing it does has any effect */
    bool calm;        /* nothing is counted and nothing goes wrong */
    uint64_t changes; /* points seen at which a crash makes a difference */
    uint64_t die_at;  /* die at this one; 0 never */
    bool die_halfway; /* a write that is cut off has left its beginning in the page cache */
    enum fault fault;
    uint64_t at, seen;
    bool stays; /* from there on, until faults_heal() */
    bool fired;
    uint64_t random;
};

extern struct faults faults;

void faults_setup(void);
void faults_heal(void);
void faults_crash(enum disk_loss loss); /* … and the next process lives */

/* ---- memory.c ---- */

enum memory_user { MEMORY_NOBODY, MEMORY_SQLITE, MEMORY_OWN };

struct memory {
    bool calm;
    enum memory_user user;  /* whose allocations are counted */
    uint64_t fail_at, seen; /* 0 never */
    bool stays;             /* the ones behind it fail too, until memory_heal() */
    bool fired;
    int64_t live_sqlite, live_own; /* blocks */
};

extern struct memory memory;

void memory_setup(void);
void memory_heal(void);
/* For the test's own things: never counted, never failing. */
void *steady_realloc(void *at, size_t size);
void steady_free(void *at);

/* Where a failed assertion goes instead of ending the program, when set. */
extern jmp_buf *assertion_jump;
extern char assertion_text[160];

/* ---- world.c ---- */

#define KEYS_MAX 24
#define CALLS_MAX 24
#define LEASE_US (60 * WHEN_SECOND)
#define KEEP_US (200 * WHEN_SECOND)

struct point {
    int64_t fence;
    enum intent_state state;
};

/* One key, and what the outside was told about it. */
struct key {
    char text[16];
    bool known; /* some client was told that it exists */
    int64_t intent;
    struct point told;
    struct point maybe[4];         /* where it may be instead: commands on their way, timers */
    int maybe_count, maybe_before; /* … and those that do not depend on the commands of this moment */
    struct bytes result;           /* when confirmed */
    bool may_be_forgotten;
};

/* A command of a scenario. */
struct call {
    enum ledger_op op;
    const char *key;
    struct bytes result;
    bool two_phase, final, other_contents, unknown;
    int64_t wait_us;
    enum ledger_verdict want;
    enum intent_state then; /* the state of the intent after it */
    bool is_write;
    /* the world's own */
    struct world *world;
    struct engine_command command;
    bool answered, tried;
    bool waits; /* the engine has it */
};

struct scenario {
    const char *name;
    void (*run)(struct world *world);
    void (*prepare)(struct world *world); /* calm: what was there before */
    bool from_nothing;
    int checkpoint_pages;
    bool recovery; /* also cut off inside the recovery, at every operation of it */
    bool every_allocation;
};

struct world {
    struct env env; /* first */
    int64_t wall_us, boot_us;
    uint64_t random;
    const struct scenario *scenario;
    struct plan plan;
    struct engine *engine;
    struct arena answers; /* of the commands */
    struct arena notes;   /* of the test */
    struct key keys[KEYS_MAX];
    int key_count;
    int64_t policy_told, policy_maybe; /* versions */
    bool went_wrong;                   /* the planned thing has happened */
    bool wrong_again;                  /* MODEL_RECOVERY: and the second one */
    bool aborted;                      /* by an assertion */
    int steps_after;                   /* since then */
    int crashes;
    char violation[400];
};

extern const struct scenario scenarios[];
extern const size_t scenario_count;

/* One run; false when something did not hold (`world->violation`). */
bool world_run(struct world *world, const struct scenario *scenario, const struct plan *plan);
void world_make_template(void);
void world_violated(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* for scenarios */
void world_say(struct world *world, struct call *calls,
               size_t count); /* one batch; repeated until every command has its answer */
void world_pass(struct world *world, int64_t us, const char *key, enum intent_state then); /* time goes by; timers run */
void world_stop_and_start(struct world *world);                                            /* in good order */
void world_kill(struct world *world, enum disk_loss loss); /* calm: an earlier crash, as part of the story */

struct key *world_key(struct world *world, const char *text);

/* ---- judge.c ---- */
void judge(struct world *world);
/* The intent as stored; false when there is none. */
bool judge_load(struct world *world, const struct key *key, struct intent *ret_intent);
void judge_key(struct world *world, const struct key *key);

/* Calm: nothing is counted and nothing fails. Returns how it was before. */
static inline bool world_calm(bool calm)
{
    bool before = faults.calm;
    faults.calm = memory.calm = calm;
    return before;
}

#endif
