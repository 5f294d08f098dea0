/*
 * memory: the ledger's tables as arrays, behind the same store interface. It knows the queries of the write path by name and does
 * what their SQL says; `sim --tier sqlite` and the unit tests run the SQL itself. Committed rows survive the process; a process
 * that dies inside a transaction loses it; one that dies in COMMIT has committed or not.
 */
#include <stdlib.h>

#include "memory_own.h"

struct memory_store {
    struct store store;
    struct memory *memory;
};

static struct memory *of(struct store *store)
{
    return ((struct memory_store *)store)->memory;
}

static enum status gone(struct why *why)
{
    return why_set(why, BROKEN, "the process is dead");
}

/* Only what is used: the arrays are large. */
static void copy_tables(struct tables *to, const struct tables *from)
{
#define COPY(rows, count) memcpy(to->rows, from->rows, from->count * sizeof *from->rows)
    COPY(intents, intent_count);
    COPY(tombstones, tombstone_count);
    COPY(exceptions, exception_count);
    COPY(outbox, outbox_count);
    COPY(deliveries, delivery_count);
    COPY(events, event_count);
    COPY(event_marks, event_mark_count);
    COPY(acts, act_count);
    COPY(sources, source_count);
    COPY(threads, thread_count);
    COPY(thread_marks, thread_mark_count);
    COPY(lead_records, lead_record_count);
    COPY(leads, lead_count);
    COPY(lead_edges, lead_edge_count);
    COPY(lead_keys, lead_key_count);
#undef COPY
    memcpy((char *)to + TABLES_SMALL, (const char *)from + TABLES_SMALL, sizeof *to - TABLES_SMALL);
}

static enum status memory_begin(struct store *store, struct why *why)
{
    if (sim_dies_here(of(store)->sim))
        return gone(why);
    copy_tables(&of(store)->now, &of(store)->committed);
    return OK;
}

static void memory_rollback(struct store *store)
{
    copy_tables(&of(store)->now, &of(store)->committed);
}

static enum status memory_commit(struct store *store, struct why *why)
{
    struct memory *memory = of(store);
    struct sim *sim = memory->sim;
    if (sim->dead)
        return gone(why);
    if (sim_chance(sim, sim->mix.full)) {
        mark(MARK_STORAGE_FULL);
        copy_tables(&memory->now, &memory->committed);
        return why_set(why, FULL, "the disk is full");
    }
    bool dies = sim_dies_here(sim);
    if (dies && sim_below(sim, 2)) {
        mark(MARK_CRASH_IN_COMMIT);
        return gone(why);
    }
    copy_tables(&memory->committed, &memory->now);
    if (dies) {
        mark(MARK_CRASH_LOST_REPLY);
        return gone(why);
    }
    return OK;
}

/* ---- rows are copied in, so that they outlive the caller's memory ---- */

void memory_keep(struct memory *memory, const struct query_column *columns, size_t count, void *row)
{
    for (size_t i = 0; i < count; i++) {
        struct bytes *bytes = (struct bytes *)((char *)row + columns[i].offset);
        if (columns[i].type != COLUMN_INT && bytes->at != NULL)
            *bytes = arena_dup(&memory->sim->arena, *bytes);
    }
}

struct row_intent *memory_intent(struct tables *tables, struct bytes h, int64_t id)
{
    for (size_t i = 0; i < tables->intent_count; i++) {
        struct row_intent *row = &tables->intents[i];
        if (row->id == id || (h.at != NULL && bytes_eq(row->h, h)))
            return row;
    }
    return NULL;
}

/* ---- the queries ---- */

enum status memory_give(struct running *running, const void *row)
{
    return running->on_row != NULL ? running->on_row(running->ctx, row, running->why) : OK;
}

static enum status run_intent_look(struct running *running, const void *params)
{
    const struct row_intent *row = memory_intent(&running->memory->now, ((const struct q_intent_look *)params)->h, 0);
    return row != NULL ? memory_give(running, row) : OK;
}

static enum status run_intent_look_id(struct running *running, const void *params)
{
    const struct row_intent *row =
        memory_intent(&running->memory->now, BYTES_NONE, ((const struct q_intent_look_id *)params)->id);
    return row != NULL ? memory_give(running, row) : OK;
}

static enum status run_intent_lock(struct running *running, const void *params)
{
    const struct q_intent_lock *lock = params;
    const struct row_intent *row = memory_intent(&running->memory->now, lock->h, lock->id);
    return row != NULL ? memory_give(running, row) : OK;
}

static enum status run_intent_get(struct running *running, const void *params)
{
    const struct q_intent_get *get = params;
    const struct row_intent *row = memory_intent(&running->memory->now, BYTES_NONE, get->id);
    return row != NULL && bytes_eq(row->space, get->space) ? memory_give(running, row) : OK;
}

static enum status run_intent_add(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    struct row_intent row = *(const struct row_intent *)params;
    if (memory_intent(tables, row.h, row.id) != NULL)
        return why_set(running->why, CONFLICT, "the key exists");
    ASSERT(tables->intent_count < ROWS_MAX);
    memory_keep(running->memory, INTENT_ADD.params, INTENT_ADD.param_count, &row);
    tables->intents[tables->intent_count++] = row;
    running->changed++;
    return OK;
}

/* Copies the columns of the change by name, as the UPDATE does. */
static enum status run_intent_change(struct running *running, const void *params)
{
    struct row_intent_change change = *(const struct row_intent_change *)params;
    struct row_intent *row = memory_intent(&running->memory->now, BYTES_NONE, change.id);
    if (row == NULL)
        return OK;
    memory_keep(running->memory, INTENT_CHANGE.params, INTENT_CHANGE.param_count, &change);
    for (size_t i = 0; i < INTENT_CHANGE.param_count; i++) {
        const struct query_column *from = &INTENT_CHANGE.params[i];
        for (size_t n = 0; n < INTENT_ADD.param_count; n++)
            if (strcmp(INTENT_ADD.params[n].name, from->name) == 0)
                memcpy((char *)row + INTENT_ADD.params[n].offset, (const char *)&change + from->offset,
                       from->type == COLUMN_INT ? sizeof(int64_t) : sizeof(struct bytes));
    }
    running->changed++;
    return OK;
}

static enum status run_intent_drop(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    struct row_intent *row = memory_intent(tables, BYTES_NONE, ((const struct q_intent_drop *)params)->id);
    if (row != NULL)
        *row = tables->intents[--tables->intent_count];
    return OK;
}

static enum status find_due(struct running *running, const void *params, bool lapsed)
{
    const struct q_intent_lapsed *find = params;
    struct tables *tables = &running->memory->now;
    for (size_t i = 0; i < tables->intent_count; i++) {
        int64_t at = lapsed ? tables->intents[i].lease_until : tables->intents[i].expires;
        struct r_intent_lapsed row = {tables->intents[i].id};
        if (at > 0 && at <= find->now)
            TRY(memory_give(running, &row));
    }
    return OK;
}

static enum status run_intent_lapsed(struct running *running, const void *params)
{
    return find_due(running, params, true);
}

static enum status run_intent_expired(struct running *running, const void *params)
{
    return find_due(running, params, false);
}

static enum status run_body_add(struct running *running, const void *params)
{
    struct memory *memory = running->memory;
    struct q_body_add row = *(const struct q_body_add *)params;
    ASSERT(memory->now.body_count < LOG_MAX);
    memory_keep(memory, BODY_ADD.params, BODY_ADD.param_count, &row);
    memory->bodies[memory->now.body_count++] = row;
    return OK;
}

static enum status run_body_get(struct running *running, const void *params)
{
    struct memory *memory = running->memory;
    for (size_t i = 0; i < memory->now.body_count; i++) {
        struct r_body_get row = {memory->bodies[i].id, memory->bodies[i].bytes};
        if (row.id == ((const struct q_body_get *)params)->id)
            return memory_give(running, &row);
    }
    return OK;
}

static enum status run_nothing(struct running *running, const void *params)
{
    (void)running, (void)params;
    return OK;
}

static enum status run_tombstone_get(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    for (size_t i = 0; i < tables->tombstone_count; i++) {
        const struct q_tombstone_add *stone = &tables->tombstones[i];
        struct r_tombstone_get row = {stone->h, stone->state, stone->settled};
        if (bytes_eq(stone->h, ((const struct q_tombstone_get *)params)->h))
            return memory_give(running, &row);
    }
    return OK;
}

static enum status run_tombstone_add(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    struct q_tombstone_add row = *(const struct q_tombstone_add *)params;
    ASSERT(tables->tombstone_count < ROWS_MAX);
    memory_keep(running->memory, TOMBSTONE_ADD.params, TOMBSTONE_ADD.param_count, &row);
    tables->tombstones[tables->tombstone_count++] = row;
    return OK;
}

static struct row_exception *find_open_card(struct tables *tables, int64_t intent, int64_t event, int64_t kind)
{
    for (size_t i = 0; i < tables->exception_count; i++) {
        struct row_exception *row = &tables->exceptions[i];
        if (row->intent == intent && row->event == event && row->kind == kind && row->state == EXCEPTION_OPEN)
            return row;
    }
    return NULL;
}

struct row_outbox *memory_outbox(struct tables *tables, int64_t intent)
{
    for (size_t i = 0; i < tables->outbox_count; i++)
        if (tables->outbox[i].intent == intent)
            return &tables->outbox[i];
    return NULL;
}

static enum status run_exception_add(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    struct row_exception row = *(const struct row_exception *)params;
    if (find_open_card(tables, row.intent, row.event, row.kind) != NULL)
        return OK;
    const struct row_outbox *effect = memory_outbox(tables, row.intent);
    if (effect != NULL && effect->owner.at != NULL)
        row.owner = effect->owner;
    ASSERT(tables->exception_count < CARDS_MAX);
    memory_keep(running->memory, EXCEPTION_ADD.params, EXCEPTION_ADD.param_count, &row);
    tables->exceptions[tables->exception_count++] = row;
    running->changed++;
    return OK;
}

static enum status run_exception_open_of(struct running *running, const void *params)
{
    const struct q_exception_open_of *find = params;
    const struct row_exception *row = find_open_card(&running->memory->now, find->intent, find->event, find->kind);
    return row != NULL ? memory_give(running, row) : OK;
}

static enum status run_exception_resolve(struct running *running, const void *params)
{
    struct q_exception_resolve resolve = *(const struct q_exception_resolve *)params;
    struct tables *tables = &running->memory->now;
    memory_keep(running->memory, EXCEPTION_RESOLVE.params, EXCEPTION_RESOLVE.param_count, &resolve);
    for (size_t i = 0; i < tables->exception_count; i++) {
        struct row_exception *card = &tables->exceptions[i];
        if (card->id != resolve.id || card->state != EXCEPTION_OPEN)
            continue;
        card->state = EXCEPTION_RESOLVED;
        card->resolved = resolve.resolved;
        card->resolution = resolve.resolution;
        card->actor = resolve.actor;
        card->note = resolve.note;
    }
    return OK;
}

static enum status run_exception_get(struct running *running, const void *params)
{
    const struct q_exception_get *get = params;
    const struct tables *tables = &running->memory->now;
    for (size_t i = 0; i < tables->exception_count; i++)
        if (tables->exceptions[i].id == get->id && bytes_eq(tables->exceptions[i].space, get->space))
            return memory_give(running, &tables->exceptions[i]);
    return OK;
}

static enum status run_meta_get(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    for (size_t i = 0; i < tables->meta_count; i++) {
        struct r_meta_get row = {tables->meta[i].value};
        if (bytes_eq(tables->meta[i].name, ((const struct q_meta_get *)params)->name))
            return memory_give(running, &row);
    }
    return OK;
}

static enum status run_schema_version(struct running *running, const void *params)
{
    (void)params;
    struct q_meta_get get = {BYTES("schema")};
    return run_meta_get(running, &get);
}

static enum status run_timeline(struct running *running, const void *params)
{
    (void)params;
    struct r_timeline_get row = {1, 1};
    return memory_give(running, &row);
}

static enum status run_meta_put(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    struct q_meta_put row = *(const struct q_meta_put *)params;
    memory_keep(running->memory, META_PUT.params, META_PUT.param_count, &row);
    for (size_t i = 0; i < tables->meta_count; i++) {
        if (bytes_eq(tables->meta[i].name, row.name)) {
            tables->meta[i] = row;
            return OK;
        }
    }
    tables->meta[tables->meta_count++] = row;
    return OK;
}

static enum status run_lane_get(struct running *running, const void *params)
{
    const struct q_lane_put *lane = &running->memory->now.lane;
    struct r_lane_get row = {lane->seq, lane->id, lane->run, lane->hash};
    bool found = running->memory->now.has_lane && lane->lane == ((const struct q_lane_get *)params)->lane;
    return found ? memory_give(running, &row) : OK;
}

static enum status run_lane_list(struct running *running, const void *params)
{
    (void)params;
    const struct q_lane_put *lane = &running->memory->now.lane;
    struct r_lane_list row = {lane->lane, lane->seq, lane->id, lane->run, lane->hash};
    return running->memory->now.has_lane ? memory_give(running, &row) : OK;
}

static enum status run_lane_put(struct running *running, const void *params)
{
    running->memory->now.lane = *(const struct q_lane_put *)params;
    running->memory->now.has_lane = true;
    memory_keep(running->memory, LANE_PUT.params, LANE_PUT.param_count, &running->memory->now.lane);
    return OK;
}

static enum status run_decision_add(struct running *running, const void *params)
{
    struct memory *memory = running->memory;
    struct row_decision row = *(const struct row_decision *)params;
    ASSERT(memory->now.decision_count < LOG_MAX);
    memory_keep(memory, DECISION_ADD.params, DECISION_ADD.param_count, &row);
    memory->decisions[memory->now.decision_count++] = row;
    return OK;
}

static enum status run_decision_list(struct running *running, const void *params)
{
    const struct q_decision_list_intent *list = params;
    struct memory *memory = running->memory;
    for (size_t i = 0; i < memory->now.decision_count; i++)
        if (memory->decisions[i].intent == list->intent && memory->decisions[i].id > list->after)
            TRY(memory_give(running, &memory->decisions[i]));
    return OK;
}

static enum status run_decision_chain(struct running *running, const void *params)
{
    const struct q_decision_chain *chain = params;
    struct memory *memory = running->memory;
    int64_t left = chain->most;
    for (size_t i = 0; i < memory->now.decision_count && left > 0; i++) {
        if (memory->decisions[i].id <= chain->after || memory->decisions[i].lane != chain->lane)
            continue;
        TRY(memory_give(running, &memory->decisions[i]));
        left--;
    }
    return OK;
}

/* ---- the outbox ---- */

static enum status run_outbox_add(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    struct row_outbox row = *(const struct row_outbox *)params;
    if (memory_outbox(tables, row.intent) != NULL)
        return why_set(running->why, CONFLICT, "the effect exists");
    ASSERT(tables->outbox_count < EFFECTS_ROOM);
    memory_keep(running->memory, OUTBOX_ADD.params, OUTBOX_ADD.param_count, &row);
    tables->outbox[tables->outbox_count++] = row;
    return OK;
}

static bool join(struct tables *tables, const struct row_outbox *row, struct row_effect *ret)
{
    const struct row_intent *intent = memory_intent(tables, BYTES_NONE, row->intent);
    if (intent == NULL)
        return false;
    *ret = (struct row_effect){
        .intent = row->intent,
        .space = row->space,
        .destination = row->destination,
        .step = row->step,
        .attended = row->attended,
        .priority = row->priority,
        .due = row->due,
        .deadline = row->deadline,
        .quiet = row->quiet,
        .tries = row->tries,
        .probes = row->probes,
        .line = row->line,
        .owner = row->owner,
        .request = row->request,
        .status = row->status,
        .note = row->note,
        .created = row->created,
        .workflow = intent->workflow,
        .key = intent->key,
        .state = intent->state,
        .fence = intent->fence,
        .attempts = intent->attempts,
        .ambiguous = intent->ambiguous,
        .capability = intent->capability,
        .window_us = intent->window_us,
        .first_sent = intent->first_sent,
        .first_sent_run = intent->first_sent_run,
        .settled = intent->settled,
        .result = intent->result,
        .error = intent->error,
    };
    return true;
}

/* Another one of its line that is not finished comes before it. */
static bool is_behind(const struct tables *tables, const struct row_outbox *row)
{
    for (size_t i = 0; row->line.at != NULL && i < tables->outbox_count; i++) {
        const struct row_outbox *other = &tables->outbox[i];
        if (other->line.at != NULL && bytes_eq(other->line, row->line) && bytes_eq(other->destination, row->destination) &&
            other->step < STEP_FINISHED && other->intent < row->intent)
            return true;
    }
    return false;
}

static enum status run_outbox_due(struct running *running, const void *params)
{
    const struct q_outbox_due *ask = params;
    struct tables *tables = &running->memory->now;
    const struct row_outbox *due[EFFECTS_ROOM];
    size_t count = 0;
    for (size_t i = 0; i < tables->outbox_count; i++) {
        const struct row_outbox *row = &tables->outbox[i];
        if (!bytes_eq(row->destination, ask->destination) || row->priority != ask->priority || row->step >= STEP_PERSON ||
            row->due > ask->now || is_behind(tables, row))
            continue;
        size_t at = count++;
        for (; at > 0 && due[at - 1]->due > row->due; at--)
            due[at] = due[at - 1];
        due[at] = row;
    }
    for (size_t i = 0; i < count && (int64_t)i < ask->most; i++) {
        struct row_effect row;
        if (join(tables, due[i], &row))
            TRY(memory_give(running, &row));
    }
    return OK;
}

static enum status run_outbox_places(struct running *running, const void *params)
{
    (void)params;
    struct tables *tables = &running->memory->now;
    for (size_t i = 0; i < tables->outbox_count; i++) {
        struct r_outbox_places row = {tables->outbox[i].destination};
        bool first = tables->outbox[i].step < STEP_PERSON;
        for (size_t j = 0; j < i && first; j++)
            first = tables->outbox[j].step >= STEP_PERSON || !bytes_eq(tables->outbox[j].destination, row.destination);
        if (first)
            TRY(memory_give(running, &row));
    }
    return OK;
}

static enum status run_outbox_count(struct running *running, const void *params)
{
    const struct q_outbox_count *count = params;
    struct tables *tables = &running->memory->now;
    struct r_outbox_count row = {0};
    for (size_t i = 0; i < tables->outbox_count; i++)
        row.effects += bytes_eq(tables->outbox[i].destination, count->destination) && tables->outbox[i].step < STEP_PERSON &&
                       tables->outbox[i].due < OUTBOX_NEVER;
    return memory_give(running, &row);
}

static enum status run_outbox_overdue(struct running *running, const void *params)
{
    const struct q_outbox_overdue *ask = params;
    struct tables *tables = &running->memory->now;
    for (size_t i = 0; i < tables->outbox_count; i++) {
        const struct row_outbox *row = &tables->outbox[i];
        struct row_effect effect;
        int64_t end_us = row->deadline != 0 ? row->deadline : row->created + ask->patience;
        if (!bytes_eq(row->destination, ask->destination) || row->step >= STEP_PERSON || end_us > ask->now ||
            !join(tables, row, &effect))
            continue;
        bool held = effect.state == STATE_CLAIMED || effect.state == STATE_SENT;
        bool callers = effect.attended != 0 && effect.state == STATE_PENDING && effect.ambiguous == 0;
        if (!held && !callers)
            TRY(memory_give(running, &effect));
    }
    return OK;
}

/* What the statements do to a row is said by act/rebuild.c, so that a row which the log rebuilds is compared with one that the SQL
 * has changed only on the other tier. */
static enum status change_outbox(struct running *running, const struct query *query, int64_t intent, const void *params)
{
    struct row_outbox *row = memory_outbox(&running->memory->now, intent);
    if (row == NULL)
        return OK;
    outbox_apply(row, query, params);
    running->changed++;
    return OK;
}

static enum status run_outbox_taken(struct running *running, const void *params)
{
    return change_outbox(running, &OUTBOX_TAKEN, ((const struct q_outbox_taken *)params)->intent, params);
}

static enum status run_outbox_ended(struct running *running, const void *params)
{
    struct q_outbox_ended ended = *(const struct q_outbox_ended *)params;
    memory_keep(running->memory, OUTBOX_ENDED.params, OUTBOX_ENDED.param_count, &ended);
    return change_outbox(running, &OUTBOX_ENDED, ended.intent, &ended);
}

static enum status run_outbox_stand(struct running *running, const void *params)
{
    const struct q_outbox_stand *stand = params;
    const struct row_outbox *row = memory_outbox(&running->memory->now, stand->intent);
    bool seen = row != NULL && row->due == stand->seen_due;
    return seen ? change_outbox(running, &OUTBOX_STAND, stand->intent, stand) : OK;
}

static enum status run_outbox_ask(struct running *running, const void *params)
{
    return change_outbox(running, &OUTBOX_ASK, ((const struct q_outbox_ask *)params)->intent, params);
}

static enum status run_outbox_again(struct running *running, const void *params)
{
    return change_outbox(running, &OUTBOX_AGAIN, ((const struct q_outbox_again *)params)->intent, params);
}

static enum status run_outbox_has(struct running *running, const void *params)
{
    struct r_outbox_has row = {((const struct q_outbox_has *)params)->intent};
    return memory_outbox(&running->memory->now, row.intent) != NULL ? memory_give(running, &row) : OK;
}

static enum status run_effect_get(struct running *running, const void *params)
{
    const struct q_effect_get *get = params;
    struct tables *tables = &running->memory->now;
    const struct row_outbox *found = memory_outbox(tables, get->intent);
    struct row_effect row;
    return found != NULL && bytes_eq(found->space, get->space) && join(tables, found, &row) ? memory_give(running, &row) : OK;
}

static enum status run_outbox_forget(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    struct row_outbox *row = memory_outbox(tables, ((const struct q_outbox_forget *)params)->intent);
    if (row != NULL)
        *row = tables->outbox[--tables->outbox_count];
    return OK;
}

/* Only the number of open rows is asked for: all of them as one destination. */
static enum status run_outbox_depth(struct running *running, const void *params)
{
    (void)params;
    struct tables *tables = &running->memory->now;
    struct r_outbox_depth row = {.destination = BYTES("all")};
    for (size_t i = 0; i < tables->outbox_count; i++)
        row.open += tables->outbox[i].step < STEP_FINISHED;
    return memory_give(running, &row);
}

static enum status run_effect_list(struct running *running, const void *params)
{
    const struct q_effect_list *list = params;
    struct tables *tables = &running->memory->now;
    ASSERT(list->destination.at == NULL && list->state < 0 && list->step < 0);
    for (size_t i = 0; i < tables->outbox_count; i++) {
        struct row_effect row;
        if (join(tables, &tables->outbox[i], &row))
            TRY(memory_give(running, &row));
    }
    return OK;
}

static const struct memory_query known[] = {
    {&INTENT_LOOK, run_intent_look},
    {&INTENT_LOOK_ID, run_intent_look_id},
    {&INTENT_LOCK, run_intent_lock},
    {&INTENT_ADD, run_intent_add},
    {&INTENT_CHANGE, run_intent_change},
    {&INTENT_LAPSED, run_intent_lapsed},
    {&INTENT_EXPIRED, run_intent_expired},
    {&INTENT_DROP, run_intent_drop},
    {&INTENT_GET, run_intent_get},
    {&BODY_ADD, run_body_add},
    {&BODY_GET, run_body_get},
    {&BODY_DROP, run_nothing},
    {&TOMBSTONE_GET, run_tombstone_get},
    {&TOMBSTONE_ADD, run_tombstone_add},
    {&TOMBSTONE_DROP, run_nothing},
    {&EXCEPTION_ADD, run_exception_add},
    {&EXCEPTION_OPEN_OF, run_exception_open_of},
    {&EXCEPTION_RESOLVE, run_exception_resolve},
    {&EXCEPTION_GET, run_exception_get},
    {&META_GET, run_meta_get},
    {&META_PUT, run_meta_put},
    {&SCHEMA_VERSION_GET, run_schema_version},
    {&TIMELINE_GET, run_timeline},
    {&LANE_GET, run_lane_get},
    {&LANE_LIST, run_lane_list},
    {&LANE_PUT, run_lane_put},
    {&DECISION_ADD, run_decision_add},
    {&DECISION_LIST_INTENT, run_decision_list},
    {&DECISION_CHAIN, run_decision_chain},
    {&OUTBOX_ADD, run_outbox_add},
    {&OUTBOX_DUE, run_outbox_due},
    {&OUTBOX_PLACES, run_outbox_places},
    {&OUTBOX_COUNT, run_outbox_count},
    {&OUTBOX_OVERDUE, run_outbox_overdue},
    {&OUTBOX_TAKEN, run_outbox_taken},
    {&OUTBOX_ENDED, run_outbox_ended},
    {&OUTBOX_STAND, run_outbox_stand},
    {&OUTBOX_ASK, run_outbox_ask},
    {&OUTBOX_AGAIN, run_outbox_again},
    {&OUTBOX_HAS, run_outbox_has},
    {&OUTBOX_DEPTH, run_outbox_depth},
    {&OUTBOX_FORGET_REQUEST, run_nothing},
    {&OUTBOX_FORGET, run_outbox_forget},
    {&EFFECT_GET, run_effect_get},
    {&EFFECT_LIST, run_effect_list},
};

static run_fn *find_run(const struct query *query)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].query == query)
            return known[i].run;
    for (const struct memory_query *row = memory_inbox; row->query != NULL; row++)
        if (row->query == query)
            return row->run;
    for (const struct memory_query *row = memory_leads; row->query != NULL; row++)
        if (row->query == query)
            return row->run;
    return NULL;
}

static enum status memory_run(struct store *store, const struct query *query, const void *params, size_t count,
                              store_row_fn *on_row, void *ctx, int64_t *ret_changed, struct why *why)
{
    struct memory *memory = of(store);
    if (sim_dies_here(memory->sim))
        return gone(why);
    run_fn *run = find_run(query);
    ASSERT(run != NULL);
    struct running running = {memory, on_row, ctx, 0, why};
    for (size_t i = 0; i < count; i++)
        TRY(run(&running, params != NULL ? (const char *)params + i * query->param_size : NULL));
    *ret_changed = running.changed;
    return OK;
}

static enum status memory_script(struct store *store, const char *text, struct why *why)
{
    (void)text;
    return sim_dies_here(of(store)->sim) ? gone(why) : OK;
}

static void memory_close(struct store *store)
{
    memory_rollback(store);
    free(store);
}

static const struct store_ops memory_ops = {
    memory_begin, memory_commit, memory_rollback, memory_run, memory_script, memory_close, NULL, NULL,
};

/* The arrays are large and mostly untouched: one block serves all histories. */
struct memory *memory_new(struct sim *sim)
{
    static struct memory memory;
    memory.sim = sim;
    memset((char *)&memory.now + TABLES_SMALL, 0, sizeof memory.now - TABLES_SMALL);
    copy_tables(&memory.committed, &memory.now);
    return &memory;
}

enum status memory_open(struct memory *memory, struct store **ret_store, struct why *why)
{
    if (sim_dies_here(memory->sim))
        return gone(why);
    copy_tables(&memory->now, &memory->committed);
    struct memory_store *store = calloc(1, sizeof *store);
    ASSERT(store != NULL);
    store->store = (struct store){.ops = &memory_ops, .kind = STORE_SQLITE};
    store->memory = memory;
    *ret_store = &store->store;
    return OK;
}
