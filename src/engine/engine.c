#include "engine/engine.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mutant.h"
#include "base/when.h"
#include "engine/engine_own.h"

#define LAPSE_EVERY_US (100 * WHEN_MS)
#define LAPSE_EVERY_POSTGRES_US (500 * WHEN_MS)
#define EXPIRE_EVERY_US (10 * WHEN_SECOND)
#define INTAKE_EVERY_US (1 * WHEN_SECOND)
#define SWEEP_MAX 256
#define TOMBSTONES_PER_SWEEP 1000

/* ---- time ---- */

struct ledger_now engine_now(struct engine *engine)
{
    int64_t boot = engine->env->boot_us(engine->env);
    if (engine->postgres_url != NULL) {
        int64_t server = boot + atomic_load(&engine->clock_offset_us);
        return (struct ledger_now){server, server};
    }
    return (struct ledger_now){engine->env->wall_us(engine->env), engine->run_base_us + (boot - engine->boot_base_us)};
}

int64_t engine_to_wall(struct engine *engine, int64_t run_us)
{
    struct ledger_now now = engine_now(engine);
    return run_us == 0 ? 0 : now.wall_us + (run_us - now.run_us);
}

/* ---- people ---- */

void engine_set_people(struct engine *engine, const struct people *people)
{
    pthread_mutex_lock(&engine->intake_lock);
    engine->people = *people;
    pthread_mutex_unlock(&engine->intake_lock);
}

struct people engine_people(struct engine *engine)
{
    pthread_mutex_lock(&engine->intake_lock);
    struct people people = engine->people;
    pthread_mutex_unlock(&engine->intake_lock);
    return people;
}

/* ---- intake ---- */

void engine_set_intake(struct engine *engine, enum engine_intake intake, const struct why *why)
{
    pthread_mutex_lock(&engine->intake_lock);
    bool changed = atomic_load(&engine->intake) != (int)intake;
    if (why != NULL)
        engine->intake_why = *why;
    atomic_store(&engine->intake, (int)intake);
    pthread_mutex_unlock(&engine->intake_lock);
    if (changed && intake == INTAKE_OPEN)
        LOG(LOG_INFO, "intake is open again");
    else if (changed)
        LOG(LOG_WARN, intake == INTAKE_FINISHING ? "new claims are refused, accepted work is finished" : "intake is closed",
            LOG_CSTR("why", why != NULL ? why->text : ""));
    engine->intake_due_us = engine->env->boot_us(engine->env) + INTAKE_EVERY_US;
}

enum engine_intake engine_intake(struct engine *engine, struct why *ret_why)
{
    if (atomic_load(&engine->intake) == INTAKE_OPEN)
        return INTAKE_OPEN;
    pthread_mutex_lock(&engine->intake_lock);
    enum engine_intake intake = (enum engine_intake)atomic_load(&engine->intake);
    if (ret_why != NULL)
        *ret_why = engine->intake_why;
    pthread_mutex_unlock(&engine->intake_lock);
    return intake;
}

/* A small durable write: does the storage work again? */
static enum status probe_write(struct engine *engine, struct why *why)
{
    if (engine->store->lost)
        TRY(engine_connect(engine, -1, why));
    TRY(store_begin(engine->store, why));
    struct q_lane_put put = {engine->chain.lane, engine->chain.seq, engine->ids.last, engine->chain.run_us,
                             hash_bytes(&engine->chain.hash)};
    enum status status = store_run(engine->store, &LANE_PUT, &put, 1, NULL, NULL, NULL, why);
    if (status == OK)
        return store_commit(engine->store, why);
    store_rollback(engine->store);
    return status;
}

static void probe_intake(struct engine *engine, int64_t boot_us)
{
    if (atomic_load(&engine->intake) == INTAKE_OPEN || boot_us < engine->intake_due_us)
        return;
    engine->intake_due_us = boot_us + INTAKE_EVERY_US;
    if (engine->data_dir != NULL && engine->postgres_url == NULL && !store_reserve_refill(engine->data_dir))
        return; /* still full */
    struct why why;
    if (probe_write(engine, &why) == OK)
        engine_set_intake(engine, INTAKE_OPEN, NULL);
}

/* ---- timers ---- */

struct sweep {
    struct engine_command commands[SWEEP_MAX];
    struct engine_command *at[SWEEP_MAX];
    size_t count;
    enum ledger_op op;
    enum status (*also)(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why);
};

static void sweep_done(struct engine_command *command)
{
    (void)command;
}

static enum status sweep_take(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct sweep *sweep = ctx;
    const struct r_intent_lapsed *got = row;
    struct engine_command *command = &sweep->commands[sweep->count];
    *command = (struct engine_command){
        .ledger = {.op = sweep->op, .actor = BYTES("semel"), .intent = got->id},
        .also = sweep->also,
        .done = sweep_done,
    };
    sweep->at[sweep->count++] = command;
    return OK;
}

_Static_assert(sizeof(struct r_intent_lapsed) == sizeof(struct r_intent_expired), "both sweeps read one id");

/* Finds intents by `query`, runs `op` on each; true when there may be more. */
static bool sweep(struct engine *engine, const struct query *query, enum ledger_op op, _Atomic uint64_t *counter)
{
    static _Thread_local struct sweep found;
    static _Thread_local struct arena arena;
    arena_init(&arena, 1 << 20);
    found.count = 0;
    found.op = op;
    found.also = op == OP_EXPIRE ? engine->forget : NULL;
    struct why why;
    bool by_wall = MUTANT(EXPIRE_BY_WALL) && op == OP_EXPIRE;
    struct q_intent_lapsed find = {by_wall ? engine_now(engine).wall_us : engine_now(engine).run_us, SWEEP_MAX};
    if (engine->store->lost || store_run(engine->store, query, &find, 1, sweep_take, &found, NULL, &why) != OK ||
        found.count == 0)
        return false;
    for (size_t i = 0; i < found.count; i++)
        found.commands[i].arena = &arena;
    atomic_fetch_add(counter, found.count);
    batch_run(engine, found.at, found.count);
    arena_release(&arena);
    return found.count == SWEEP_MAX && atomic_load(&engine->intake) == INTAKE_OPEN;
}

static void sweep_lapsed(struct engine *engine, int64_t boot_us)
{
    if (boot_us < engine->lapse_due_us)
        return;
    epoch_refresh(engine);
    bool more = sweep(engine, &INTENT_LAPSED, OP_LAPSE, &engine->counts.lapsed);
    int64_t every = engine->postgres_url != NULL ? LAPSE_EVERY_POSTGRES_US : LAPSE_EVERY_US;
    engine->lapse_due_us = more ? 0 : boot_us + every;
}

static void sweep_expired(struct engine *engine, int64_t boot_us)
{
    if (boot_us < engine->expire_due_us)
        return;
    engine->may_have_tombstones = true; /* looked up again from now on; exact enough, and never wrong */
    bool more = sweep(engine, &INTENT_EXPIRED, OP_EXPIRE, &engine->counts.expired);
    engine->expire_due_us = more ? 0 : boot_us + EXPIRE_EVERY_US;
    struct why why;
    struct q_tombstone_drop drop = {engine_now(engine).run_us, TOMBSTONES_PER_SWEEP};
    if (more || engine->store->lost)
        return;
    if (store_run(engine->store, &TOMBSTONE_DROP, &drop, 1, NULL, NULL, NULL, &why) != OK)
        LOG(LOG_WARN, "old tombstones could not be removed", LOG_CSTR("why", why.text));
}

static void run_due_waiters(struct engine *engine, int64_t boot_us, bool all)
{
    struct engine_command *due = NULL;
    waiting_due(engine, boot_us, all, &due);
    batch_run_list(engine, due);
}

/* What another node has moved: those who wait for it here are decided at once. */
static void run_heard(struct engine *engine)
{
    int64_t intents[HEARD_MAX];
    bool all;
    size_t count = hear_take(engine->hear, intents, &all);
    struct engine_command *woken = NULL;
    for (size_t i = 0; i < count; i++)
        waiting_wake(engine, intents[i], &woken);
    if (all)
        waiting_wake_all(engine, &woken);
    batch_run_list(engine, woken);
}

void engine_call_others(struct engine *engine)
{
    hear_call_others(engine->hear);
}

void engine_on_call(struct engine *engine, void (*called)(void *arg), void *arg)
{
    hear_on_call(engine->hear, called, arg);
}

/* ---- the step ---- */

static bool is_refused(struct engine *engine, struct engine_command *command)
{
    enum engine_intake intake = (enum engine_intake)atomic_load(&engine->intake);
    bool finishing = command->write == NULL && command->ledger.op != OP_CLAIM && command->ledger.op != OP_SUBMIT;
    if (intake == INTAKE_OPEN || (intake == INTAKE_FINISHING && finishing))
        return false;
    engine_intake(engine, &command->why);
    command->status = intake == INTAKE_FINISHING ? FULL : RETRY;
    return true;
}

static void run_commands(struct engine *engine, struct engine_command *list)
{
    struct engine_command *commands[ENGINE_BATCH_MAX];
    while (list != NULL) {
        size_t count = 0;
        for (struct engine_command *next; list != NULL && count < ENGINE_BATCH_MAX; list = next) {
            next = list->next;
            if (is_refused(engine, list))
                list->done(list);
            else
                commands[count++] = list;
        }
        atomic_fetch_add(&engine->counts.commands, count);
        if (count > 0)
            batch_run(engine, commands, count);
    }
}

static int64_t next_wake(const struct engine *engine, int64_t boot_us)
{
    int64_t wake = engine->lapse_due_us < engine->expire_due_us ? engine->lapse_due_us : engine->expire_due_us;
    if (engine->parked_count > 0 && engine->parked_look_us < wake)
        wake = engine->parked_look_us;
    if (engine->suppressions.count > 0 && engine->suppressions.oldest_us + SUPPRESSED_FLUSH_US < wake)
        wake = engine->suppressions.oldest_us + SUPPRESSED_FLUSH_US;
    if (engine->intake != INTAKE_OPEN && engine->intake_due_us < wake)
        wake = engine->intake_due_us;
    return wake > boot_us ? wake : boot_us;
}

/* Only what nobody but the caller of these commands waits for: no timers, and no tidying but the note that it is due. */
int64_t engine_lead(struct engine *engine, struct engine_command *commands)
{
    run_commands(engine, commands);
    return store_untidy(engine->store) == STORE_TIDY_NOW ? 0 : next_wake(engine, 0);
}

/* Behind the answers, and better in a quiet moment. */
static void tidy(struct engine *engine, bool quiet)
{
    enum store_untidy untidy = store_untidy(engine->store);
    if (untidy == STORE_TIDY_NOW || (untidy == STORE_TIDY_WHEN_QUIET && quiet))
        store_tidy(engine->store);
}

int64_t engine_step(struct engine *engine, struct engine_command *commands)
{
    run_commands(engine, commands);
    if (engine->hear != NULL)
        run_heard(engine);
    int64_t boot = engine->env->boot_us(engine->env);
    probe_intake(engine, boot);
    if (atomic_load(&engine->intake) == INTAKE_OPEN) {
        sweep_lapsed(engine, boot);
        sweep_expired(engine, boot);
        if (suppressions_are_due(&engine->suppressions, boot))
            batch_run(engine, NULL, 0);
    }
    run_due_waiters(engine, engine->env->boot_us(engine->env), atomic_load(&engine->draining));
    tidy(engine, commands == NULL);
    return next_wake(engine, engine->env->boot_us(engine->env));
}

/* ---- threads ---- */

/* Whoever still waits gets the answer of this moment; what was counted is written. */
static void finish(struct engine *engine)
{
    run_due_waiters(engine, engine->env->boot_us(engine->env), true);
    if (engine->suppressions.count == 0 || atomic_load(&engine->intake) != INTAKE_OPEN)
        return;
    engine->suppressions.oldest_us = INT64_MIN / 2; /* due now */
    for (size_t left = 0; engine->suppressions.count > 0 && engine->suppressions.count - engine->suppressions.written != left;) {
        left = engine->suppressions.count - engine->suppressions.written;
        batch_run(engine, NULL, 0);
    }
}

void engine_drain(struct engine *engine)
{
    atomic_store(&engine->draining, true);
    pthread_mutex_lock(&engine->lock);
    pthread_cond_signal(&engine->wake);
    pthread_mutex_unlock(&engine->lock);
}

/* ---- opening ---- */

static enum status open_store(struct engine *engine, int lane, int *ret_lane, struct why *why)
{
    *ret_lane = 0;
    if (engine->open != NULL)
        return engine->open(engine->open_user, lane, &engine->store, ret_lane, why);
    if (engine->postgres_url == NULL)
        return store_open_sqlite(engine->data_dir, STORE_WRITE, &engine->store, why);
    return store_open_postgres(engine->postgres_url, STORE_WRITE, lane, &engine->store, ret_lane, why);
}

/* Is everything that this node has acknowledged in its lane still there? */
static enum status has_lost(struct engine *engine, const struct audit_chain *acknowledged, bool *ret_lost, struct why *why)
{
    struct audit_chain found;
    int64_t last_id;
    TRY(audit_chain_load(engine->store, acknowledged->lane, &found, &last_id, why));
    bool same = found.seq != acknowledged->seq || hash_equal(hash_bytes(&found.hash), hash_bytes(&acknowledged->hash));
    *ret_lost = acknowledged->seq > 0 && (found.seq < acknowledged->seq || !same);
    return OK;
}

enum status engine_connect(struct engine *engine, int lane, struct why *why)
{
    struct audit_chain acknowledged = engine->chain;
    store_close(engine->store);
    engine->store = NULL;
    int got_lane = 0;
    enum status status = open_store(engine, lane, &got_lane, why);
    if (status != OK) {
        engine->store = store_none();
        return status;
    }
    int64_t last_id = 0;
    TRY(audit_chain_load(engine->store, (uint32_t)got_lane, &engine->chain, &last_id, why));
    engine->chain.lane = (uint32_t)got_lane;
    id_init(&engine->ids, (uint32_t)got_lane, last_id);
    bool lost = false;
    recent_clear(engine->recent);
    TRY(has_lost(engine, &acknowledged, &lost, why));
    TRY(epoch_check(engine, lost, why));
    atomic_store(&engine->clock_offset_us, engine->store->clock_us - engine->env->boot_us(engine->env));
    return OK;
}

static enum status take_pepper(void *ctx, const void *row, struct why *why)
{
    struct engine *engine = ctx;
    const struct r_meta_get *got = row;
    if (got->value.len != ENGINE_PEPPER_SIZE)
        return why_set(why, BROKEN, "the stored pepper is damaged");
    memcpy(engine->pepper, got->value.at, ENGINE_PEPPER_SIZE);
    return OK;
}

/* Made once, at the birth of the data; the key hashes depend on it. On PostgreSQL the first of several nodes makes it. */
static enum status load_pepper(struct engine *engine, struct why *why)
{
    static const uint8_t none[ENGINE_PEPPER_SIZE];
    struct q_meta_get get = {BYTES("pepper")};
    TRY(store_begin(engine->store, why));
    enum status status = OK;
    if (engine->postgres_url != NULL)
        status = store_script(engine->store, "SELECT pg_advisory_xact_lock(1397050444)", why);
    if (status == OK)
        status = store_run(engine->store, &META_GET, &get, 1, take_pepper, engine, NULL, why);
    if (status == OK && memcmp(engine->pepper, none, sizeof none) == 0) {
        engine->env->random(engine->env, engine->pepper, sizeof engine->pepper);
        struct q_meta_put put = {BYTES("pepper"), engine_pepper(engine)};
        status = store_run(engine->store, &META_PUT, &put, 1, NULL, NULL, NULL, why);
    }
    if (status == OK)
        return store_commit(engine->store, why);
    store_rollback(engine->store);
    return status;
}

static enum status open_data(struct engine *engine, struct why *why)
{
    int lane;
    TRY(open_store(engine, -1, &lane, why));
    TRY(store_migrate(engine->store, why));
    TRY(load_pepper(engine, why));
    int64_t last_id = 0;
    TRY(audit_chain_load(engine->store, (uint32_t)lane, &engine->chain, &last_id, why));
    id_init(&engine->ids, (uint32_t)lane, last_id);
    engine->boot_base_us = engine->env->boot_us(engine->env);
    engine->run_base_us = engine->chain.run_us;
    atomic_store(&engine->clock_offset_us, engine->store->clock_us - engine->boot_base_us);
    engine->may_have_tombstones = true;
    TRY(epoch_check(engine, false, why));
    if (engine->postgres_url == NULL && engine->data_dir != NULL && !store_reserve_refill(engine->data_dir))
        LOG(LOG_WARN, "there is no room for the reserve of 4 MiB: the disk is nearly full");
    return OK;
}

static void setup_locks(struct engine *engine)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&engine->intake_lock, NULL);
    pthread_mutex_init(&engine->lock, NULL);
    pthread_cond_init(&engine->wake, &monotonic);
    pthread_mutex_init(&engine->read_lock, NULL);
    pthread_cond_init(&engine->read_wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

enum status engine_open(const struct engine_config *config, struct engine **ret_engine, struct why *why)
{
    struct engine *engine = calloc(1, sizeof *engine);
    ASSERT(engine != NULL);
    engine->env = config->env;
    engine->data_dir = config->data_dir != NULL ? strdup(config->data_dir) : NULL;
    engine->postgres_url = config->postgres_url != NULL ? strdup(config->postgres_url) : NULL;
    engine->open = config->open;
    engine->open_user = config->open_user;
    engine->forget = config->forget;
    engine->people = PEOPLE_DEFAULT;
    engine->recent = engine->postgres_url != NULL ? recent_new() : NULL;
    arena_init(&engine->arena, BATCH_ARENA_MAX);
    engine->arena.kept_max = BATCH_ARENA_KEPT;
    suppressions_init(&engine->suppressions);
    engine->queue_last = &engine->queue_first;
    engine->read_last = &engine->read_first;
    setup_locks(engine);
    enum status status = open_data(engine, why);
    if (status == OK && engine->postgres_url != NULL && engine->open == NULL)
        status = hear_new(engine, engine->postgres_url, &engine->hear, why);
    if (status != OK) {
        engine_close(engine);
        return status;
    }
    *ret_engine = engine;
    return OK;
}

/* ---- the reader ---- */

enum status engine_open_reader(struct engine *engine, struct store **ret_store, struct why *why)
{
    if (engine->postgres_url == NULL)
        return store_open_sqlite(engine->data_dir, STORE_READ, ret_store, why);
    return store_open_postgres(engine->postgres_url, STORE_READ, -1, ret_store, NULL, why);
}

static enum status open_read_store(struct engine *engine, struct why *why)
{
    if (engine->read_store != NULL && !engine->read_store->lost)
        return OK;
    store_close(engine->read_store);
    engine->read_store = NULL;
    return engine_open_reader(engine, &engine->read_store, why);
}

static void *reader_main(void *arg)
{
    struct engine *engine = arg;
    for (;;) {
        pthread_mutex_lock(&engine->read_lock);
        while (engine->read_first == NULL && !engine->read_stopping)
            pthread_cond_wait(&engine->read_wake, &engine->read_lock);
        struct engine_read *read = engine->read_first;
        if (read != NULL && (engine->read_first = read->next) == NULL)
            engine->read_last = &engine->read_first;
        pthread_mutex_unlock(&engine->read_lock);
        if (read == NULL)
            return NULL;
        read->status = open_read_store(engine, &read->why);
        if (read->status == OK)
            read->status = read->read(engine->read_store, read, &read->why);
        read->done(read);
    }
}

void engine_submit_read(struct engine *engine, struct engine_read *read)
{
    read->next = NULL;
    pthread_mutex_lock(&engine->read_lock);
    *engine->read_last = read;
    engine->read_last = &read->next;
    pthread_cond_signal(&engine->read_wake);
    pthread_mutex_unlock(&engine->read_lock);
}

/* ---- starting and closing ---- */

enum status engine_start(struct engine *engine, struct why *why)
{
    if (pthread_create(&engine->writer, NULL, lead_writer_main, engine) != 0 ||
        pthread_create(&engine->reader, NULL, reader_main, engine) != 0)
        return why_set(why, FULL, "no thread could be started");
    pthread_mutex_lock(&engine->lock); /* the writer reads what is beside it already */
    engine->started = true;
    pthread_mutex_unlock(&engine->lock);
    return engine->hear != NULL ? hear_start(engine->hear, why) : OK;
}

static void stop_threads(struct engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    engine->stopping = true;
    pthread_cond_signal(&engine->wake);
    pthread_mutex_unlock(&engine->lock);
    pthread_mutex_lock(&engine->read_lock);
    engine->read_stopping = true;
    pthread_cond_signal(&engine->read_wake);
    pthread_mutex_unlock(&engine->read_lock);
    pthread_join(engine->writer, NULL);
    pthread_join(engine->reader, NULL);
}

void engine_close(struct engine *engine)
{
    if (engine == NULL)
        return;
    hear_stop(engine->hear);
    if (engine->started)
        stop_threads(engine);
    if (engine->store != NULL)
        finish(engine);
    store_close(engine->read_store);
    store_close(engine->store);
    arena_release(&engine->arena);
    arena_release(&engine->suppressions.arena);
    recent_free(engine->recent);
    hear_free(engine->hear);
    free(engine->data_dir);
    free(engine->postgres_url);
    free(engine);
}

struct bytes engine_pepper(const struct engine *engine)
{
    return (struct bytes){(const char *)engine->pepper, sizeof engine->pepper};
}

const struct engine_counts *engine_counts(const struct engine *engine)
{
    return &engine->counts;
}

struct env *engine_env(const struct engine *engine)
{
    return engine->env;
}

bool engine_is_postgres(const struct engine *engine)
{
    return engine->postgres_url != NULL;
}

struct store *engine_store(struct engine *engine)
{
    return engine->store;
}
