#include <stdlib.h>

#include "ledger/ledger.h"

/* Copies every text and byte column into the arena, so that the row outlives the statement it came from. */
static bool copy_columns(struct row_intent *row, struct arena *arena)
{
    for (size_t i = 0; i < INTENT_ADD.param_count; i++) {
        const struct query_column *column = &INTENT_ADD.params[i];
        if (column->type == COLUMN_INT)
            continue;
        struct bytes *bytes = (struct bytes *)((char *)row + column->offset);
        if (bytes->at == NULL)
            continue;
        *bytes = arena_dup(arena, *bytes);
        if (bytes->at == NULL)
            return false;
    }
    return true;
}

enum status intent_take(struct intent *intent, const struct row_intent *row, struct arena *arena, struct why *why)
{
    if (row->h.len != KEY_HASH_SIZE || row->state < 0 || row->state >= STATE_COUNT)
        return why_set(why, BROKEN, "intent %lld is damaged", (long long)row->id);
    intent->row = *row;
    if (!copy_columns(&intent->row, arena))
        return why_set(why, FULL, "no memory to load an intent");
    memcpy(intent->h, row->h.at, KEY_HASH_SIZE);
    intent->before = intent->row;
    intent->state_before = row->state;
    intent->exists = true;
    intent->fresh = intent->dirty = intent->drop = false;
    return OK;
}

static struct row_intent_change change_of(const struct row_intent *row)
{
    return (struct row_intent_change){
        .id = row->id,
        .state = row->state,
        .fence = row->fence,
        .attempts = row->attempts,
        .attempts_max = row->attempts_max,
        .lease_us = row->lease_us,
        .lease_until = row->lease_until,
        .two_phase = row->two_phase,
        .shadow = row->shadow,
        .capability = row->capability,
        .on_unknown = row->on_unknown,
        .window_us = row->window_us,
        .keep_us = row->keep_us,
        .tombstone_us = row->tombstone_us,
        .run = row->run,
        .thread = row->thread,
        .action = row->action,
        .nonce = row->nonce,
        .result = row->result,
        .error = row->error,
        .first_sent = row->first_sent,
        .first_sent_run = row->first_sent_run,
        .ambiguous = row->ambiguous,
        .epoch = row->epoch,
        .decision = row->decision,
        .settled = row->settled,
        .expires = row->expires,
    };
}

static int by_hash(const void *a, const void *b)
{
    return bytes_cmp(((const struct row_intent *)a)->h, ((const struct row_intent *)b)->h);
}

static enum status save_fresh(struct store *store, struct intent *const *intents, size_t count, struct arena *arena,
                              struct why *why)
{
    struct row_intent *rows = arena_zalloc(arena, count, sizeof *rows);
    if (rows == NULL)
        return why_set(why, FULL, "no memory to save intents");
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (intents[i]->fresh)
            rows[n++] = intents[i]->row;
    /* In the order of the unique key, so that two nodes that insert the same keys wait for each other in one direction only. */
    if (store->kind == STORE_POSTGRES)
        qsort(rows, n, sizeof *rows, by_hash);
    return store_run(store, &INTENT_ADD, rows, n, NULL, NULL, NULL, why);
}

static enum status save_changed(struct store *store, struct intent *const *intents, size_t count, struct arena *arena,
                                struct why *why)
{
    struct row_intent_change *rows = arena_zalloc(arena, count, sizeof *rows);
    if (rows == NULL)
        return why_set(why, FULL, "no memory to save intents");
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (intents[i]->dirty && !intents[i]->fresh && !intents[i]->drop)
            rows[n++] = change_of(&intents[i]->row);
    return store_run(store, &INTENT_CHANGE, rows, n, NULL, NULL, NULL, why);
}

static enum status save_bodies(struct store *store, struct intent *const *intents, size_t count, struct arena *arena,
                               struct why *why)
{
    struct q_body_add *rows = arena_zalloc(arena, count, sizeof *rows);
    if (rows == NULL)
        return why_set(why, FULL, "no memory to save results");
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (intents[i]->result_new != 0)
            rows[n++] = (struct q_body_add){intents[i]->result_new, intents[i]->result};
    return store_run(store, &BODY_ADD, rows, n, NULL, NULL, NULL, why);
}

static enum status save_dropped(struct store *store, struct intent *const *intents, size_t count, struct arena *arena,
                                int64_t run_us, struct why *why)
{
    struct q_intent_drop *drops = arena_zalloc(arena, count, sizeof *drops);
    struct q_body_drop *bodies = arena_zalloc(arena, count, sizeof *bodies);
    struct q_tombstone_add *stones = arena_zalloc(arena, count, sizeof *stones);
    if (drops == NULL || bodies == NULL || stones == NULL)
        return why_set(why, FULL, "no memory to expire intents");
    size_t dropped = 0, emptied = 0, buried = 0;
    for (size_t i = 0; i < count; i++) {
        const struct row_intent *row = &intents[i]->row;
        if (!intents[i]->drop)
            continue;
        drops[dropped++].id = row->id;
        if (row->result != 0)
            bodies[emptied++].id = row->result;
        if (intents[i]->buried)
            stones[buried++] = (struct q_tombstone_add){row->h, row->state, row->settled, run_us + row->tombstone_us};
    }
    TRY(store_run(store, &TOMBSTONE_ADD, stones, buried, NULL, NULL, NULL, why));
    TRY(store_run(store, &BODY_DROP, bodies, emptied, NULL, NULL, NULL, why));
    return store_run(store, &INTENT_DROP, drops, dropped, NULL, NULL, NULL, why);
}

enum status intents_save(struct store *store, struct intent *const *intents, size_t count, struct arena *arena, int64_t run_us,
                         struct why *why)
{
    TRY(save_fresh(store, intents, count, arena, why));
    TRY(save_changed(store, intents, count, arena, why));
    TRY(save_bodies(store, intents, count, arena, why));
    bool any_dropped = false;
    for (size_t i = 0; i < count && !any_dropped; i++)
        any_dropped = intents[i]->drop;
    return any_dropped ? save_dropped(store, intents, count, arena, run_us, why) : OK;
}

/* ---- lines ---- */

enum status ledger_stay_behind(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct id_source *ids = ctx;
    int64_t last = ((const struct r_outbox_line_last *)row)->intent;
    ids->last = ids->last < last ? last : ids->last;
    return OK;
}

enum status ledger_line_up(struct ledger *ledger, struct store *store, struct bytes pepper,
                           const struct ledger_command *const *submits, size_t count, struct why *why)
{
    struct q_turn_lock *locks = arena_zalloc(ledger->arena, count + 1, sizeof *locks);
    struct q_outbox_line_last *lines = arena_zalloc(ledger->arena, count + 1, sizeof *lines);
    size_t n = 0;
    if (locks == NULL || lines == NULL)
        return why_set(why, FULL, "no memory for a batch");
    for (size_t i = 0; i < count && store->kind == STORE_POSTGRES; i++) {
        const struct ledger_command *submit = submits[i];
        if (submit->line.at == NULL)
            continue;
        locks[n].n = ledger_line(pepper, submit->place, submit->line);
        lines[n++] = (struct q_outbox_line_last){submit->place, submit->line};
    }
    if (n == 0)
        return OK;
    TRY(store_run(store, &TURN_LOCK, locks, n, NULL, NULL, NULL, why));
    return store_run(store, &OUTBOX_LINE_LAST, lines, n, ledger_stay_behind, ledger->ids, NULL, why);
}
