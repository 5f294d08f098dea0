/*
 * batch: load, decide, save, answer. Many commands, one COMMIT.
 *
 *   SQLite      look → apply → BEGIN, write, COMMIT → answer. There is no other writer, so what was looked at stays true.
 *   PostgreSQL  look → answer what is settled or held; the rest: apply to what this node remembers → BEGIN, make sure that it
 *               is still so, write, COMMIT → answer: one round trip. When it is not so, or not remembered: BEGIN, lock, apply,
 *               write, COMMIT → answer. When another node was first, or the connection broke, the whole batch is decided anew.
 */
#include <unistd.h>

#include "base/log.h"
#include "base/mutant.h"
#include "engine/batch.h"

#define TRIES_MAX 20
#define GUESS_PAUSE 16 /* batches */

/* ---- deciding ---- */

static struct intent *intent_of(struct batch *batch, const struct engine_command *command)
{
    struct intent *intent =
        batch_is_by_key(command) ? *batch_find_hash(batch, command->ledger.h) : *batch_find_id(batch, command->ledger.intent);
    return intent != NULL ? intent : &batch->absent;
}

/* On a plain look only a claim on an intent that cannot change, or that is surely held, may be answered. */
static bool may_answer_now(const struct batch *batch, const struct engine_command *command)
{
    if (!batch->tentative)
        return true;
    if (command->write != NULL || command->ledger.op != OP_CLAIM)
        return false;
    const struct intent *intent = *batch_find_hash(batch, command->ledger.h);
    bool held = intent->exists && intent->row.lease_until > batch->ledger.now.run_us;
    bool changes = command->ledger.shadow && intent->exists && !intent->row.shadow;
    return !changes && (ledger_is_settled(intent) || held);
}

static enum status apply_all(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct engine_command *command = batch->commands[i];
        command->settled = false;
        if (!may_answer_now(batch, command))
            continue;
        command->status = OK;
        command->settled = true;
        size_t moves = batch->audit.count;
        if (command->write == NULL)
            ledger_apply(&batch->ledger, intent_of(batch, command), &command->ledger, &command->answer);
        command->moved = batch->audit.count > moves;
    }
    return batch->audit.failed ? why_set(&batch->why, FULL, "no memory for a batch") : OK;
}

/* Defined below with the answers. */
static void answer_settled(struct batch *batch, struct engine_command **woken);

/* ---- saving ---- */

static bool has_writes(const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (batch->commands[i]->write != NULL)
            return true;
    return batch->audit.count > 0 ||
           suppressions_are_due(&batch->engine->suppressions, batch->engine->env->boot_us(batch->engine->env));
}

/* What other faces write in the same transaction. One that refuses by its own rules (INVALID, CONFLICT) spoils only itself: it has written nothing. */
static enum status run_writes(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct engine_command *command = batch->commands[i];
        if (command->write == NULL)
            continue;
        command->status = command->write(batch->engine->store, &batch->ledger, command, &command->why);
        if (command->status != OK && command->status != INVALID && command->status != CONFLICT && command->status != NOTHING) {
            batch->why = command->why;
            return command->status;
        }
    }
    return OK;
}

/* What belongs to a move and is written with it. */
static enum status run_also(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct engine_command *command = batch->commands[i];
        if (command->also != NULL && command->settled && command->moved)
            TRY(command->also(batch->engine->store, &batch->ledger, command, &batch->why));
    }
    return OK;
}

/* Each intent remembers its last decision. Suppressed duplicates (state -1) are not among an intent's transitions. */
static void note_decisions(struct batch *batch)
{
    for (size_t i = 0; i < batch->ledger.intent_count; i++)
        if (batch->ledger.intents[i]->fresh)
            *batch_find_id(batch, batch->ledger.intents[i]->row.id) = batch->ledger.intents[i];
    for (size_t i = 0; i < batch->audit.count; i++) {
        const struct row_decision *decision = &batch->audit.rows[i];
        struct intent *intent = decision->intent != 0 && decision->state >= 0 ? *batch_find_id(batch, decision->intent) : NULL;
        if (intent != NULL)
            intent->row.decision = decision->id;
    }
}

/* Those on other nodes who wait for what moves here hear of it with the COMMIT. */
static enum status tell_others(struct batch *batch)
{
    struct engine *engine = batch->engine;
    struct q_notify_send send = {
        hear_moved(engine->hear, batch->ledger.intents, batch->ledger.intent_count, batch->ledger.arena)};
    if (send.message.at == NULL)
        return OK;
    atomic_fetch_add(&engine->counts.told, 1);
    return store_queue(engine->store, &NOTIFY_SEND, &send, 1, NULL, NULL, &batch->why);
}

static enum status write_all(struct batch *batch, struct audit_chain *chain)
{
    struct engine *engine = batch->engine;
    struct people people = engine_people(engine);
    TRY(run_writes(batch));
    TRY(run_also(batch));
    TRY(exceptions_follow(engine->store, &batch->ledger, batch->ledger.intents, batch->ledger.intent_count, &people,
                          &batch->why));
    if (batch->audit.failed)
        return why_set(&batch->why, FULL, "no memory for a batch");
    suppressions_write(&engine->suppressions, &batch->audit);
    audit_seal(&batch->audit, chain, &engine->ids, batch->ledger.now.wall_us, batch->ledger.now.run_us);
    note_decisions(batch);
    TRY(intents_save(engine->store, batch->ledger.intents, batch->ledger.intent_count, batch->ledger.arena,
                     batch->ledger.now.run_us, &batch->why));
    if (MUTANT(AUDIT_APART)) {
        TRY(store_commit(engine->store, &batch->why));
        TRY(store_begin(engine->store, &batch->why));
    }
    TRY(tell_others(batch));
    return audit_save(engine->store, &batch->audit, chain, &engine->ids, &batch->why);
}

/* The COMMIT may have happened. The lane's tail says whether it did (OK) or did not (NOTHING): nobody else writes this lane, and
 * on PostgreSQL we hold its lock again, so the old connection cannot commit any more. */
static enum status resolve_commit(struct batch *batch, const struct audit_chain *wanted)
{
    struct engine *engine = batch->engine;
    struct audit_chain found;
    int64_t last_id;
    if (engine->store->lost)
        TRY(engine_connect(engine, (int)wanted->lane, &batch->why));
    TRY(audit_chain_load(engine->store, wanted->lane, &found, &last_id, &batch->why));
    bool done = found.seq == wanted->seq && hash_equal(hash_bytes(&found.hash), hash_bytes(&wanted->hash));
    return done ? OK : NOTHING;
}

static enum status save(struct batch *batch)
{
    struct engine *engine = batch->engine;
    struct audit_chain chain = engine->chain;
    if (MUTANT(ACK_EARLY))
        answer_settled(batch, &(struct engine_command *){NULL});
    enum status status = write_all(batch, &chain);
    if (status != OK) {
        store_rollback(engine->store);
        return status;
    }
    status = store_commit(engine->store, &batch->why);
    if (MUTANT(IGNORE_FULL) && status == FULL)
        status = OK;
    if (status == UNKNOWN) {
        enum status found = resolve_commit(batch, &chain);
        status = found == OK ? OK : found == NOTHING ? RETRY : UNKNOWN;
    }
    if (status != OK)
        return status;
    engine->chain = chain;
    suppressions_written(&engine->suppressions);
    atomic_fetch_add(&engine->counts.commits, 1);
    return OK;
}

static enum status load_and_apply(struct batch *batch, enum status (*load_intents)(struct batch *))
{
    TRY(batch_begin(batch));
    TRY(load_intents(batch));
    TRY(batch_load_bodies(batch));
    return apply_all(batch);
}

/* One transaction around it all: reading one by one would cost a lock each. */
static enum status attempt_sqlite(struct batch *batch)
{
    TRY(store_begin(batch->engine->store, &batch->why));
    enum status status = load_and_apply(batch, batch_look);
    if (status == OK && has_writes(batch))
        return save(batch);
    store_rollback(batch->engine->store);
    return status;
}

static enum status attempt_postgres(struct batch *batch)
{
    struct engine *engine = batch->engine;
    TRY(store_begin(engine->store, &batch->why));
    enum status status = load_and_apply(batch, batch_lock);
    if (status == OK && has_writes(batch))
        return save(batch);
    store_rollback(engine->store);
    return status;
}

/* What this node remembers of the intents; other keys are taken for new ones. NOTHING when an id is not remembered. */
static enum status guess_intents(struct batch *batch)
{
    struct recent *recent = batch->engine->recent;
    struct wanted wanted = {0};
    TRY(batch_list(batch, &wanted));
    for (size_t i = 0; i < wanted.id_count; i++) {
        const struct row_intent *row = recent_by_id(recent, wanted.ids[i].id);
        if (row == NULL)
            return NOTHING;
        TRY(batch_take(batch, row, &batch->why));
    }
    for (size_t i = 0; i < wanted.hash_count; i++) {
        const struct row_intent *row = recent_by_hash(recent, (const uint8_t *)wanted.hashes[i].h.at);
        if (row != NULL)
            TRY(batch_take(batch, row, &batch->why));
    }
    return OK;
}

/* Whatever was guessed has to be so when it is written: intents are as they were, new keys are not buried. That they are not
 * there is what their index says. NOTHING when a key was looked at and not written: nobody would check it. */
static enum status hold_guessed(struct batch *batch, struct q_intent_hold *holds, struct q_tombstone_none *nones)
{
    struct store *store = batch->engine->store;
    size_t held = 0, fresh = 0;
    for (size_t i = 0; i < batch->ledger.intent_count; i++) {
        const struct intent *intent = batch->ledger.intents[i];
        if (intent->row.id == 0)
            return NOTHING;
        if (intent->fresh)
            nones[fresh++].h = (struct bytes){(const char *)intent->h, KEY_HASH_SIZE};
        else
            holds[held++] = (struct q_intent_hold){intent->row.id, intent->row.decision};
    }
    TRY(store_begin(store, &batch->why));
    TRY(store_queue(store, &INTENT_HOLD, holds, held, NULL, NULL, &batch->why));
    return store_queue(store, &TOMBSTONE_NONE, nones, fresh, NULL, NULL, &batch->why);
}

/* Decides first and asks afterwards, in the transaction that writes it: one round trip. NOTHING when there is nothing to write. */
static enum status attempt_guess(struct batch *batch)
{
    struct engine *engine = batch->engine;
    TRY(batch_begin(batch));
    TRY(guess_intents(batch));
    TRY(apply_all(batch));
    if (!has_writes(batch))
        return NOTHING;
    struct q_intent_hold *holds = arena_zalloc(&engine->arena, batch->ledger.intent_count + 1, sizeof *holds);
    struct q_tombstone_none *nones = arena_zalloc(&engine->arena, batch->ledger.intent_count + 1, sizeof *nones);
    if (holds == NULL || nones == NULL)
        return why_set(&batch->why, FULL, "no memory for a batch");
    enum status status = hold_guessed(batch, holds, nones);
    if (status == OK)
        return save(batch);
    store_rollback(engine->store);
    return status;
}

/* A command that reads and writes for itself could meet the failure of a guess, so it is not guessed beside it. Whose turn it is,
 * and who is last in a line, cannot be guessed: other nodes begin answers and take effects in too. */
static bool may_guess(struct batch *batch)
{
    struct engine *engine = batch->engine;
    for (size_t i = 0; i < batch->count; i++)
        if (batch->commands[i]->write != NULL || batch_goes_in_turn(batch->commands[i]) || batch_lines_up(batch->commands[i]))
            return false;
    if (engine->guess_pause == 0)
        return true;
    engine->guess_pause--;
    return false;
}

/* After the COMMIT: claims that are still held are remembered. */
static void remember(struct batch *batch)
{
    struct recent *recent = batch->engine->recent;
    for (size_t i = 0; i < batch->ledger.intent_count; i++) {
        const struct row_intent *row = &batch->ledger.intents[i]->row;
        if (row->id != 0 && row->result == 0 && (row->state == STATE_CLAIMED || row->state == STATE_SENT))
            recent_keep(recent, row);
        else
            recent_forget(recent, row->id);
    }
}

static void forget_all(struct batch *batch)
{
    for (size_t i = 0; i < batch->ledger.intent_count; i++)
        recent_forget(batch->engine->recent, batch->ledger.intents[i]->row.id);
}

/* Lock-free answers first: replays and waiters cost PostgreSQL a plain read. */
static enum status look_postgres(struct batch *batch)
{
    batch->tentative = true;
    enum status status = load_and_apply(batch, batch_look);
    batch->tentative = false;
    ASSERT(batch->audit.count == 0);
    return status;
}

static enum status recover(struct batch *batch, enum status status, int try)
{
    struct engine *engine = batch->engine;
    if (!engine->store->lost) {
        if (status == CONFLICT || status == RETRY)
            return OK;
        return status;
    }
    struct why why;
    if (engine_connect(engine, -1, &why) == OK)
        return OK;
    if (try > TRIES_MAX / 2)
        return status;
    usleep(100 * 1000);
    return OK;
}

/* On a guess first, then on what is there. A guess that was wrong is not repeated for a while. */
static enum status attempt(struct batch *batch, bool guess)
{
    struct engine *engine = batch->engine;
    enum status status = guess ? attempt_guess(batch) : NOTHING;
    if (status == CONFLICT) {
        forget_all(batch);
        engine->guess_pause = GUESS_PAUSE;
    }
    if (status == NOTHING)
        status = attempt_postgres(batch);
    if (status == OK)
        remember(batch);
    return status;
}

/* Decides anew after a conflict with another node or a lost connection, a bounded number of times. What is UNKNOWN is never tried again. */
static enum status try_postgres(struct batch *batch)
{
    enum status status = RETRY;
    bool guess = may_guess(batch);
    for (int try = 0; try < TRIES_MAX; try++) {
        status = batch->engine->store->lost ? RETRY : attempt(batch, guess && try == 0);
        if (status == OK || status == UNKNOWN)
            return status;
        atomic_fetch_add(&batch->engine->counts.retries, 1);
        enum status recovered = recover(batch, status, try);
        if (recovered != OK)
            return recovered;
    }
    return status;
}

/* ---- answering ---- */

/* Answers point into the batch's memory; what the caller needs is copied into its own. */
static bool keep_answer(struct engine_command *command)
{
    struct ledger_answer *answer = &command->answer;
    struct bytes *texts[] = {&answer->result, &answer->error, &answer->key, &answer->workflow};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        bool needed = texts[i] != &answer->result || answer->verdict == VERDICT_REPLAY || answer->verdict == VERDICT_REFUSED;
        *texts[i] = needed && texts[i]->at != NULL ? arena_dup(command->arena, *texts[i]) : BYTES_NONE;
    }
    if (answer->differs_count == 0)
        return !command->arena->failed;
    struct bytes *differs = arena_zalloc(command->arena, answer->differs_count, sizeof *differs);
    for (size_t i = 0; differs != NULL && i < answer->differs_count; i++)
        differs[i] = arena_dup(command->arena, answer->differs[i]);
    answer->differs = differs;
    return differs != NULL && !command->arena->failed;
}

static bool has_to_wait(struct engine *engine, struct engine_command *command)
{
    bool held = command->answer.verdict == VERDICT_IN_PROGRESS && (command->ledger.op == OP_CLAIM || command->answer.other);
    if (!held || command->wait_us <= 0 || atomic_load(&engine->draining))
        return false;
    if (command->gone != NULL && atomic_load(command->gone))
        return false;
    int64_t now = engine->env->boot_us(engine->env);
    if (command->waited_until_us == 0)
        command->waited_until_us = now + command->wait_us;
    return now < command->waited_until_us;
}

static bool is_suppressed(const struct engine_command *command)
{
    enum ledger_verdict would = command->answer.would;
    return command->write == NULL && command->ledger.op != OP_TAKE && would != VERDICT_PROCEED && would != VERDICT_DONE &&
           would != VERDICT_NOT_FOUND;
}

/* The audit tells of it although nothing moved. */
static bool is_noted(const struct engine_command *command)
{
    return is_suppressed(command) || (command->ledger.op == OP_CLAIM && command->answer.again);
}

/* In the same batch, behind this claim, the holder may have let go: then there is nothing to wait for. */
static void park(struct batch *batch, struct engine_command *command, struct engine_command **woken)
{
    const struct intent *intent =
        command->answer.other ? *batch_find_id(batch, command->answer.intent) : intent_of(batch, command);
    bool held = intent->row.state == STATE_CLAIMED || intent->row.state == STATE_SENT;
    bool queued = intent->row.state == STATE_PENDING && ledger_is_open(intent);
    if (held || queued) {
        waiting_park(batch->engine, command);
        return;
    }
    command->next = *woken;
    *woken = command;
}

/* False when it has to wait instead. */
static bool ready_answer(struct batch *batch, struct engine_command *command, struct engine_command **woken)
{
    struct engine *engine = batch->engine;
    if (command->status == OK && command->write == NULL) {
        if (has_to_wait(engine, command)) {
            park(batch, command, woken);
            return false;
        }
        atomic_fetch_add(&engine->counts.verdicts[command->answer.verdict], 1);
        if (is_suppressed(command))
            atomic_fetch_add(&engine->counts.suppressed, 1);
        if (is_noted(command))
            suppressions_note(&engine->suppressions, &command->ledger, &command->answer, engine->env->boot_us(engine->env));
        if (!keep_answer(command))
            command->status = why_set(&command->why, UNKNOWN, "it is recorded, but there is not enough memory for the answer");
    }
    return true;
}

/* All answers are made before the first is given: one may be made of what another command brought, which is gone with it. */
static void answer_settled(struct batch *batch, struct engine_command **woken)
{
    size_t left = 0;
    for (size_t i = 0; i < batch->count; i++)
        if (batch->commands[i]->settled && !ready_answer(batch, batch->commands[i], woken))
            batch->commands[i] = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->commands[i] == NULL)
            continue;
        if (batch->commands[i]->settled)
            batch->commands[i]->done(batch->commands[i]);
        else
            batch->commands[left++] = batch->commands[i];
    }
    batch->count = left;
}

static void fail_all(struct batch *batch, enum status status)
{
    atomic_fetch_add(&batch->engine->counts.failures, 1);
    for (size_t i = 0; i < batch->count; i++) {
        batch->commands[i]->status = status;
        batch->commands[i]->why = batch->why;
        batch->commands[i]->done(batch->commands[i]);
    }
}

/* Wakes those who waited for an intent that moved; they are decided in a batch of their own. */
static void wake_waiters(struct batch *batch, struct engine_command **ret_woken)
{
    for (size_t i = 0; i < batch->ledger.intent_count; i++)
        if (batch->ledger.intents[i]->dirty || batch->ledger.intents[i]->fresh)
            waiting_wake(batch->engine, batch->ledger.intents[i]->row.id, ret_woken);
}

static void note_failure(struct engine *engine, enum status status, const struct why *why)
{
    LOG(LOG_ERROR, "a batch could not be written", LOG_CSTR("status", status_name(status)), LOG_CSTR("why", why->text));
    if (status == FULL && engine->postgres_url == NULL) {
        if (engine->data_dir != NULL)
            store_reserve_release(engine->data_dir);
        engine_set_intake(engine, INTAKE_FINISHING, why);
    } else {
        engine_set_intake(engine, INTAKE_CLOSED, why);
    }
}

static enum status decide(struct batch *batch, struct engine_command **woken)
{
    struct engine *engine = batch->engine;
    if (engine->postgres_url == NULL)
        return attempt_sqlite(batch);
    size_t asked = batch->count;
    if (engine->look_helps && !engine->store->lost && look_postgres(batch) == OK) {
        answer_settled(batch, woken);
        engine->look_helps = batch->count < asked;
    }
    bool flush = suppressions_are_due(&engine->suppressions, engine->env->boot_us(engine->env));
    return batch->count > 0 || flush ? try_postgres(batch) : OK;
}

void batch_run_list(struct engine *engine, struct engine_command *list)
{
    while (list != NULL) {
        struct engine_command *commands[ENGINE_BATCH_MAX];
        size_t count = 0;
        for (; list != NULL && count < ENGINE_BATCH_MAX; list = list->next)
            commands[count++] = list;
        batch_run(engine, commands, count);
    }
}

/* A batch that does not fit into memory is no failure of the storage: its commands are decided one by one, so that a huge one spoils only itself. */
static void run_alone(struct batch *batch)
{
    struct engine *engine = batch->engine;
    if (batch->count == 1) {
        (void)why_set(&batch->why, RETRY, "there is not enough memory for this request");
        fail_all(batch, RETRY);
        return;
    }
    for (size_t i = 0; i < batch->count; i++)
        batch_run(engine, &batch->commands[i], 1);
}

void batch_run(struct engine *engine, struct engine_command **commands, size_t count)
{
    struct batch batch = {.engine = engine, .commands = commands, .count = count};
    atomic_fetch_add(&engine->counts.batches, 1);
    struct engine_command *woken = NULL;
    enum status status = decide(&batch, &woken);
    if (status != OK) {
        bool memory = (engine->arena.failed || batch.audit.failed) && batch.count > 0;
        if (memory) {
            run_alone(&batch);
        } else {
            note_failure(engine, status, &batch.why);
            fail_all(&batch, status);
        }
        batch_run_list(engine, woken);
        return;
    }
    if (atomic_load(&engine->intake) != INTAKE_OPEN && batch.audit.count > 0 && engine->postgres_url != NULL)
        engine_set_intake(engine, INTAKE_OPEN, NULL);
    for (size_t i = 0; i < batch.count; i++)
        if (is_suppressed(batch.commands[i]))
            engine->look_helps = true;
    wake_waiters(&batch, &woken);
    answer_settled(&batch, &woken);
    batch_run_list(engine, woken);
}
