/*
 * engine: the writer, the readers and the timers. Every change to the data goes through here.
 *
 * One writer thread owns the write connection. It takes the whole queue of commands, loads what they are about, decides each
 * (ledger/), writes everything with one COMMIT and one fsync, and only then answers them all: group commit without any delay,
 * because a batch forms while the one before it is being synced. One reader thread serves lists and look-ups from its own
 * connection. When there is little to do, the thread that brings the commands writes them itself, which spares two wake-ups
 * (lead.c). Threads are loops around step functions (engine_step), so that a simulator can run the same code in one thread.
 *
 * Promises: a command is answered once. Answered OK ⇒ durable. A batch that failed changed nothing, or its answer is UNKNOWN.
 * When the disk is full, claims are refused with that reason while work already accepted is finished from the reserve; intake
 * opens again by itself. A claim with `wait_us` is kept until its intent is settled or free, at most that long (single flight).
 */
#ifndef SEMEL_ENGINE_ENGINE_H
#define SEMEL_ENGINE_ENGINE_H

#include <stdatomic.h>

#include "env/env.h"
#include "exceptions/exceptions.h"
#include "ledger/ledger.h"
#include "store/store.h"

#define ENGINE_BATCH_MAX 1024
#define ENGINE_PEPPER_SIZE 32

struct engine;

/* Something to be written. The submitter owns it until engine_submit() and again when `done` is called, on the writer thread or
 * in engine_turn(). */
struct engine_command {
    struct ledger_command ledger;
    /* Instead of a ledger command: writes what it likes in the batch's transaction and adds its audit rows. Runs again if the batch is tried again. */
    enum status (*write)(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why);
    size_t intents_max; /* with `write`: how many intents it may load with ledger->load() and then move */
    /* With a ledger command: writes what belongs to its move, in the same transaction; only when the ledger moved. Sees `answer`.
     * Anything but OK undoes the batch. */
    enum status (*also)(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why);
    int64_t wait_us;         /* claims: how long to wait for the holder */
    const atomic_bool *gone; /* the client left: stop waiting; may be NULL */
    struct arena *arena;     /* answers are put here; untouched by others while the engine has the command */
    void (*done)(struct engine_command *command);
    void *user;

    enum status status; /* OK: `answer` holds. INVALID, CONFLICT: `write` said so. Others: the storage could not; `why` says it */
    struct why why;
    struct ledger_answer answer;

    /* the engine's own */
    struct engine_command *next;
    int64_t waited_until_us; /* boot clock; 0 before the first look */
    int64_t look_again_us, announced_us;
    bool settled, moved;
};

/* Something to be read, on the reader thread with its own connection. */
struct engine_read {
    enum status (*read)(struct store *store, struct engine_read *read, struct why *why);
    void (*done)(struct engine_read *read); /* on the reader thread */
    void *user;
    enum status status;
    struct why why;
    struct engine_read *next;
};

struct engine_config {
    struct env *env;
    const char *data_dir; /* SQLite when `postgres_url` is NULL */
    const char *postgres_url;
    /* Tests and simulations open the write store themselves; NULL for the data above. */
    enum status (*open)(void *user, int lane, struct store **ret_store, int *ret_lane, struct why *why);
    void *open_user;
    /* What else is forgotten with an intent that expires: as `also` of that move. May be NULL. */
    enum status (*forget)(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why);
};

enum engine_intake { INTAKE_OPEN, INTAKE_FINISHING, INTAKE_CLOSED };

struct engine_counts {
    _Atomic uint64_t verdicts[VERDICT_NOT_FOUND + 1];
    _Atomic uint64_t batches, commands, commits, retries, failures, lapsed, expired, suppressed;
    _Atomic uint64_t asked, told, heard; /* others wait for something; to and from them: that it has moved */
    _Atomic int64_t waiting, queued, unknown_seen;
};

/* Opens the data (making it when new), brings the schema up to date, loads the chain. Does not start threads. */
CHECKED enum status engine_open(const struct engine_config *config, struct engine **ret_engine, struct why *why);

/* Starts the writer and the reader thread. */
CHECKED enum status engine_start(struct engine *engine, struct why *why);

/* From now on nobody waits: waiting claims are answered with what is known. Before a stop. */
void engine_drain(struct engine *engine);

/* Finishes what was submitted, answers waiting claims, writes what is left, closes the data. */
void engine_close(struct engine *engine);

void engine_submit(struct engine *engine, struct engine_command *command);

/* As engine_submit(), for the one thread that gathers commands and calls engine_turn() before it waits for more. */
void engine_queue(struct engine *engine, struct engine_command *command);

/* Hands what was queued to the writer, or does it here when that is quicker: `done` is then called on this thread. See lead.c. */
void engine_turn(struct engine *engine);

/* Before engine_start(): called on the writer thread when engine_turn() takes long, to do that thread's other work until it is
 * back. Without it nobody does. */
void engine_stand_in(struct engine *engine, void (*stand_in)(void *arg), void *arg);
void engine_submit_read(struct engine *engine, struct engine_read *read);

/* One turn of the writer on these commands (may be NULL), with the timers that are due; says when to come again (boot clock). */
int64_t engine_step(struct engine *engine, struct engine_command *commands);

struct bytes engine_pepper(const struct engine *engine);
const struct engine_counts *engine_counts(const struct engine *engine);
struct env *engine_env(const struct engine *engine);
bool engine_is_postgres(const struct engine *engine);

/* The epoch begins at 1 and grows when the database may have forgotten what it acknowledged: it failed over to a standby that was not synchronous, or
 * this node misses decisions of its own. Then quarantine is in force (true) until a person lifts it. Any thread. */
bool engine_quarantine(struct engine *engine, int64_t *ret_epoch, int64_t *ret_since_us, struct why *ret_why);

/* Ends the quarantine, inside a `write` command; NOTHING when there is none. */
CHECKED enum status quarantine_lift(struct store *store, struct why *why);

/* How the intake stands; `ret_why` (may be NULL) gets the reason when it is not open. Any thread. */
enum engine_intake engine_intake(struct engine *engine, struct why *ret_why);

/* Wall time of `run_us` as seen now; for showing leases. Any thread. */
int64_t engine_to_wall(struct engine *engine, int64_t run_us);

/* Who gets an exception when nobody else was named, and how long it may stay open. Any thread; takes effect with the next batch.
 */
void engine_set_people(struct engine *engine, const struct people *people);
struct people engine_people(struct engine *engine);

/* The ledger's clocks as they stand now. Any thread. */
struct ledger_now engine_now(struct engine *engine);

/* On PostgreSQL, any thread: effects are due that this node cannot begin now; and who is told when another node says so. */
void engine_call_others(struct engine *engine);
void engine_on_call(struct engine *engine, void (*called)(void *arg), void *arg);

/* A read connection of one's own, for a thread that looks often; the caller closes it. */
CHECKED enum status engine_open_reader(struct engine *engine, struct store **ret_store, struct why *why);

/* The write store, for set-up before engine_start() and for tests. */
struct store *engine_store(struct engine *engine);

#endif
