/* gather: what a batch is about. The table of intents in memory, and how they come into it. */
#include "engine/batch.h"

#define OPEN_MOST 8 /* rows of INTENT_OPEN */

/* ---- the table of intents ---- */

static size_t hash_slot(const struct batch *batch, const uint8_t *h)
{
    uint64_t n;
    memcpy(&n, h, sizeof n);
    return (size_t)(n % batch->table_size);
}

static size_t id_slot(const struct batch *batch, int64_t id)
{
    return (size_t)(((uint64_t)id * 0x9E3779B97F4A7C15u) % batch->table_size);
}

struct intent **batch_find_hash(const struct batch *batch, const uint8_t *h)
{
    size_t slot = hash_slot(batch, h);
    while (batch->by_hash[slot] != NULL && memcmp(batch->by_hash[slot]->h, h, KEY_HASH_SIZE) != 0)
        slot = (slot + 1) % batch->table_size;
    return &batch->by_hash[slot];
}

struct intent **batch_find_id(const struct batch *batch, int64_t id)
{
    size_t slot = id_slot(batch, id);
    while (batch->by_id[slot] != NULL && batch->by_id[slot]->row.id != id)
        slot = (slot + 1) % batch->table_size;
    return &batch->by_id[slot];
}

static struct intent *add_intent(struct batch *batch, const uint8_t *h)
{
    struct intent **slot = batch_find_hash(batch, h);
    if (*slot != NULL)
        return *slot;
    struct intent *intent = arena_zalloc(batch->ledger.arena, 1, sizeof *intent);
    if (intent == NULL || batch->ledger.intent_count == batch->intent_cap)
        return NULL;
    memcpy(intent->h, h, KEY_HASH_SIZE);
    intent->state_before = -1;
    *slot = intent;
    batch->ledger.intents[batch->ledger.intent_count++] = intent;
    return intent;
}

/* Commands are about one intent each, and those that go in turn about some others; a `write` says about how many. */
static size_t intents_wanted(const struct batch *batch)
{
    size_t wanted = 1;
    for (size_t i = 0; i < batch->count; i++) {
        const struct engine_command *command = batch->commands[i];
        wanted += command->write != NULL ? command->intents_max : command->ledger.in_turn ? 1 + OPEN_MOST : 1;
    }
    return wanted;
}

/* Defined below with the loading. */
static enum status load_more(struct ledger *ledger, struct store *store, const uint8_t (*h)[KEY_HASH_SIZE], size_t count,
                             struct why *why);
static struct intent *find_loaded(const struct ledger *ledger, const uint8_t *h);

enum status batch_begin(struct batch *batch)
{
    struct engine *engine = batch->engine;
    arena_clear(&engine->arena);
    batch->ledger = (struct ledger){.now = engine_now(engine),
                                    .epoch = engine->epoch,
                                    .quarantine = engine->quarantine,
                                    .arena = &engine->arena,
                                    .ids = &engine->ids,
                                    .audit = &batch->audit,
                                    .load = load_more,
                                    .find = find_loaded};
    audit_batch_init(&batch->audit, &engine->arena);
    batch->intent_cap = intents_wanted(batch);
    batch->table_size = batch->intent_cap * 4 + 3;
    batch->ledger.intents = arena_zalloc(&engine->arena, batch->intent_cap, sizeof(struct intent *));
    batch->by_hash = arena_zalloc(&engine->arena, batch->table_size, sizeof(struct intent *));
    batch->by_id = arena_zalloc(&engine->arena, batch->table_size, sizeof(struct intent *));
    batch->by_body = arena_zalloc(&engine->arena, batch->table_size, sizeof(struct intent *));
    batch->absent = (struct intent){0};
    if (batch->ledger.intents == NULL || batch->by_hash == NULL || batch->by_id == NULL || batch->by_body == NULL)
        return why_set(&batch->why, FULL, "no memory for a batch");
    return OK;
}

/* ---- loading ---- */

enum status batch_take(void *ctx, const void *row, struct why *why)
{
    struct batch *batch = ctx;
    const struct row_intent *got = row;
    if (got->h.len != KEY_HASH_SIZE)
        return why_set(why, BROKEN, "an intent's key hash is damaged");
    struct intent *intent = add_intent(batch, (const uint8_t *)got->h.at);
    if (intent == NULL)
        return why_set(why, FULL, "no memory for a batch");
    if (intent->exists)
        return OK;
    TRY(intent_take(intent, got, batch->ledger.arena, why));
    *batch_find_id(batch, got->id) = intent;
    /* Another node's clock may be ahead of ours: what we decide about this intent still comes behind what was decided before. */
    if (batch->engine->ids.last < got->decision)
        batch->engine->ids.last = got->decision;
    return OK;
}

static enum status take_tombstone(void *ctx, const void *row, struct why *why)
{
    struct batch *batch = ctx;
    const struct r_tombstone_get *got = row;
    if (got->h.len != KEY_HASH_SIZE)
        return why_set(why, BROKEN, "a tombstone is damaged");
    struct intent *intent = *batch_find_hash(batch, (const uint8_t *)got->h.at);
    if (intent != NULL && !intent->exists) {
        intent->buried = true;
        intent->buried_state = got->state;
        intent->buried_settled = got->settled;
    }
    return OK;
}

/* A claim and a submission name their intent by its key, everything else by its id. */
bool batch_is_by_key(const struct engine_command *command)
{
    return command->ledger.op == OP_CLAIM || command->ledger.op == OP_SUBMIT;
}

enum status batch_list(struct batch *batch, struct wanted *wanted)
{
    wanted->hashes = arena_zalloc(batch->ledger.arena, batch->count + 1, sizeof *wanted->hashes);
    wanted->ids = arena_zalloc(batch->ledger.arena, batch->count + 1, sizeof *wanted->ids);
    if (wanted->hashes == NULL || wanted->ids == NULL)
        return why_set(&batch->why, FULL, "no memory for a batch");
    for (size_t i = 0; i < batch->count; i++) {
        const struct engine_command *command = batch->commands[i];
        if (command->write != NULL)
            continue;
        if (!batch_is_by_key(command)) {
            wanted->ids[wanted->id_count++].id = command->ledger.intent;
            continue;
        }
        size_t before = batch->ledger.intent_count;
        if (add_intent(batch, command->ledger.h) == NULL)
            return why_set(&batch->why, FULL, "no memory for a batch");
        if (batch->ledger.intent_count > before)
            wanted->hashes[wanted->hash_count++].h = (struct bytes){(const char *)command->ledger.h, KEY_HASH_SIZE};
    }
    return OK;
}

static enum status load_tombstones(struct batch *batch)
{
    if (!batch->engine->may_have_tombstones)
        return OK;
    struct q_tombstone_get *gets = arena_zalloc(batch->ledger.arena, batch->ledger.intent_count + 1, sizeof *gets);
    if (gets == NULL)
        return why_set(&batch->why, FULL, "no memory for a batch");
    size_t n = 0;
    for (size_t i = 0; i < batch->ledger.intent_count; i++)
        if (!batch->ledger.intents[i]->exists)
            gets[n++].h = (struct bytes){(const char *)batch->ledger.intents[i]->h, KEY_HASH_SIZE};
    return store_run(batch->engine->store, &TOMBSTONE_GET, gets, n, take_tombstone, batch, NULL, &batch->why);
}

/* ---- for those that go in turn ---- */

bool batch_goes_in_turn(const struct engine_command *command)
{
    return command->write == NULL && batch_is_by_key(command) && command->ledger.in_turn;
}

static enum status take_open(void *ctx, const void *row, struct why *why)
{
    struct batch *batch = ctx;
    const struct row_intent *got = row;
    TRY(batch_take(ctx, row, why));
    struct intent *intent = *batch_find_hash(batch, (const uint8_t *)got->h.at);
    intent->queued = got->state == STATE_PENDING;
    return OK;
}

static enum status take_queued(void *ctx, const void *row, struct why *why)
{
    struct batch *batch = ctx;
    (void)why;
    (*batch_find_id(batch, ((const struct r_intent_queued *)row)->id))->queued = true;
    return OK;
}

/* A held one may become pending in this very batch. */
static enum status load_queued(struct batch *batch)
{
    struct q_intent_queued *finds = arena_zalloc(batch->ledger.arena, batch->ledger.intent_count + 1, sizeof *finds);
    size_t n = 0;
    if (finds == NULL)
        return why_set(&batch->why, FULL, "no memory for a batch");
    for (size_t i = 0; i < batch->ledger.intent_count; i++) {
        const struct intent *intent = batch->ledger.intents[i];
        if (ledger_is_open(intent) && intent->row.state != STATE_PENDING && intent->row.action.at != NULL)
            finds[n++].id = intent->row.id;
    }
    return store_run(batch->engine->store, &INTENT_QUEUED, finds, n, take_queued, batch, NULL, &batch->why);
}

/* The others that those of the batch have to wait for. They are only looked at: what a batch changes was named by its commands. */
static enum status load_open(struct batch *batch)
{
    struct q_intent_open *finds = arena_zalloc(batch->ledger.arena, batch->count + 1, sizeof *finds);
    size_t n = 0;
    if (finds == NULL)
        return why_set(&batch->why, FULL, "no memory for a batch");
    for (size_t i = 0; i < batch->count; i++) {
        const struct ledger_command *command = &batch->commands[i]->ledger;
        if (batch_goes_in_turn(batch->commands[i]))
            finds[n++] = (struct q_intent_open){command->space, command->workflow, command->thread, command->action};
    }
    TRY(store_run(batch->engine->store, &INTENT_OPEN, finds, n, take_open, batch, NULL, &batch->why));
    return n > 0 ? load_queued(batch) : OK;
}

bool batch_lines_up(const struct engine_command *command)
{
    return command->write == NULL && command->ledger.op == OP_SUBMIT && command->ledger.line.at != NULL;
}

/* PostgreSQL: before anything is looked at, so that what another node has begun in these conversations and lines is seen. All
 * locks at once and in one order: two nodes never wait for each other. */
static enum status take_turns(struct batch *batch)
{
    struct engine *engine = batch->engine;
    struct q_turn_lock *locks = arena_zalloc(batch->ledger.arena, 2 * batch->count + 1, sizeof *locks);
    struct q_outbox_line_last *lines = arena_zalloc(batch->ledger.arena, batch->count + 1, sizeof *lines);
    size_t n = 0, line_count = 0;
    if (locks == NULL || lines == NULL)
        return why_set(&batch->why, FULL, "no memory for a batch");
    for (size_t i = 0; i < batch->count; i++) {
        const struct ledger_command *command = &batch->commands[i]->ledger;
        if (batch_goes_in_turn(batch->commands[i]))
            locks[n++].n = ledger_turn(engine_pepper(engine), command->space, command->thread);
        if (!batch_lines_up(batch->commands[i]))
            continue;
        locks[n++].n = ledger_line(engine_pepper(engine), command->place, command->line);
        lines[line_count++] = (struct q_outbox_line_last){command->place, command->line};
    }
    TRY(store_queue(engine->store, &TURN_LOCK, locks, n, NULL, NULL, &batch->why));
    return store_queue(engine->store, &OUTBOX_LINE_LAST, lines, line_count, ledger_stay_behind, &engine->ids, &batch->why);
}

/* A plain look: on SQLite that is enough, on PostgreSQL it answers what cannot change. */
enum status batch_look(struct batch *batch)
{
    struct wanted wanted = {0};
    TRY(batch_list(batch, &wanted));
    TRY(store_run(batch->engine->store, &INTENT_LOOK, wanted.hashes, wanted.hash_count, batch_take, batch, NULL, &batch->why));
    if (batch->tentative)
        return OK;
    TRY(store_run(batch->engine->store, &INTENT_LOOK_ID, wanted.ids, wanted.id_count, batch_take, batch, NULL, &batch->why));
    TRY(load_tombstones(batch));
    return load_open(batch);
}

_Static_assert(sizeof(struct q_tombstone_get) == sizeof(struct q_intent_look), "both look for a key hash");

/* In one round trip with the BEGIN. The tombstones come behind the locks: whoever held an intent may have buried it meanwhile. */
enum status batch_lock(struct batch *batch)
{
    struct engine *engine = batch->engine;
    struct wanted wanted = {0};
    TRY(batch_list(batch, &wanted));
    size_t count = wanted.hash_count > wanted.id_count ? wanted.hash_count : wanted.id_count;
    struct q_intent_lock *locks = arena_zalloc(batch->ledger.arena, count + 1, sizeof *locks);
    if (locks == NULL)
        return why_set(&batch->why, FULL, "no memory for a batch");
    for (size_t i = 0; i < count; i++) {
        locks[i].h = i < wanted.hash_count ? wanted.hashes[i].h : BYTES_NONE;
        locks[i].id = i < wanted.id_count ? wanted.ids[i].id : 0;
    }
    TRY(take_turns(batch));
    TRY(store_queue(engine->store, &INTENT_LOCK, locks, count, batch_take, batch, &batch->why));
    TRY(store_queue(engine->store, &TOMBSTONE_GET, wanted.hashes, wanted.hash_count, take_tombstone, batch, &batch->why));
    TRY(store_flush(engine->store, &batch->why));
    atomic_store(&engine->clock_offset_us, engine->store->clock_us - engine->env->boot_us(engine->env));
    batch->ledger.now = engine_now(engine);
    return load_open(batch);
}

/* ---- for a `write` that is about intents ---- */

static struct batch *batch_of(const struct ledger *ledger)
{
    return (struct batch *)((char *)ledger - offsetof(struct batch, ledger));
}

static enum status load_more(struct ledger *ledger, struct store *store, const uint8_t (*h)[KEY_HASH_SIZE], size_t count,
                             struct why *why)
{
    struct batch *batch = batch_of(ledger);
    struct q_intent_lock *locks = arena_zalloc(ledger->arena, count + 1, sizeof *locks);
    struct q_tombstone_get *gets = arena_zalloc(ledger->arena, count + 1, sizeof *gets);
    if (locks == NULL || gets == NULL)
        return why_set(why, FULL, "no memory for a batch");
    size_t fresh = 0;
    for (size_t i = 0; i < count; i++) {
        size_t before = ledger->intent_count;
        if (add_intent(batch, h[i]) == NULL)
            return why_set(why, FULL, "no memory for a batch");
        if (ledger->intent_count == before)
            continue;
        locks[fresh].h = gets[fresh].h = (struct bytes){(const char *)h[i], KEY_HASH_SIZE};
        fresh++;
    }
    TRY(store_run(store, &INTENT_LOCK, locks, fresh, batch_take, batch, NULL, why));
    return store_run(store, &TOMBSTONE_GET, gets, fresh, take_tombstone, batch, NULL, why);
}

static struct intent *find_loaded(const struct ledger *ledger, const uint8_t *h)
{
    return *batch_find_hash(batch_of(ledger), h);
}

static struct intent **find_body(const struct batch *batch, int64_t body)
{
    size_t slot = id_slot(batch, body);
    while (batch->by_body[slot] != NULL && batch->by_body[slot]->row.result != body)
        slot = (slot + 1) % batch->table_size;
    return &batch->by_body[slot];
}

static enum status take_body(void *ctx, const void *row, struct why *why)
{
    struct batch *batch = ctx;
    const struct r_body_get *got = row;
    struct intent *intent = *find_body(batch, got->id);
    ASSERT(intent != NULL);
    intent->result = arena_dup(batch->ledger.arena, got->bytes);
    return intent->result.at != NULL ? OK : why_set(why, FULL, "no memory for a result");
}

/* The results of settled intents, to be replayed or compared. */
enum status batch_load_bodies(struct batch *batch)
{
    struct q_body_get *gets = arena_zalloc(batch->ledger.arena, batch->ledger.intent_count + 1, sizeof *gets);
    if (gets == NULL)
        return why_set(&batch->why, FULL, "no memory for a batch");
    size_t n = 0;
    for (size_t i = 0; i < batch->ledger.intent_count; i++) {
        struct intent *intent = batch->ledger.intents[i];
        if (!intent->exists || intent->row.result == 0)
            continue;
        gets[n++].id = intent->row.result;
        *find_body(batch, intent->row.result) = intent;
    }
    return store_run(batch->engine->store, &BODY_GET, gets, n, take_body, batch, NULL, &batch->why);
}
