/* memory_leads: the tables of src/leads. */
#include "memory_own.h"

static void keep(struct running *running, const struct query *query, void *row)
{
    memory_keep(running->memory, query->params, query->param_count, row);
}

/* ---- records ---- */

static struct row_lead_record *find_record(struct tables *tables, int64_t id)
{
    for (size_t i = 0; i < tables->lead_record_count; i++)
        if (tables->lead_records[i].id == id)
            return &tables->lead_records[i];
    return NULL;
}

static enum status run_record_add(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    struct row_lead_record row = *(const struct row_lead_record *)params;
    ASSERT(tables->lead_record_count < SEEN_MAX);
    keep(running, &LEAD_RECORD_ADD, &row);
    tables->lead_records[tables->lead_record_count++] = row;
    return OK;
}

static enum status run_record_by_h(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    for (size_t i = 0; i < tables->lead_record_count; i++)
        if (bytes_eq(tables->lead_records[i].h, ((const struct q_lead_record_by_h *)params)->h))
            TRY(memory_give(running, &tables->lead_records[i]));
    return OK;
}

static enum status run_records(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    for (size_t i = 0; i < tables->lead_record_count; i++)
        if (tables->lead_records[i].lead == ((const struct q_lead_records *)params)->lead)
            TRY(memory_give(running, &tables->lead_records[i]));
    return OK;
}

static enum status run_record_move(struct running *running, const void *params)
{
    const struct q_lead_record_move *move = params;
    struct row_lead_record *record = find_record(&running->memory->now, move->id);
    ASSERT(record != NULL);
    record->lead = move->lead;
    return OK;
}

static enum status run_lead_of(struct running *running, const void *params)
{
    const struct row_lead_record *record = find_record(&running->memory->now, ((const struct q_lead_of *)params)->record);
    if (record == NULL)
        return OK;
    struct r_lead_of row = {record->id, record->lead};
    return memory_give(running, &row);
}

/* ---- keys ---- */

static enum status run_key_add(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    ASSERT(tables->lead_key_count < LEAD_KEYS_MAX);
    tables->lead_keys[tables->lead_key_count++] = *(const struct q_lead_key_add *)params;
    return OK;
}

/* The newest first. */
static enum status run_key_find(struct running *running, const void *params)
{
    const struct q_lead_key_find *find = params;
    struct tables *tables = &running->memory->now;
    int64_t given = 0;
    for (size_t i = tables->lead_key_count; i-- > 0 && given < find->most;) {
        const struct q_lead_key_add *key = &tables->lead_keys[i];
        if (key->k != find->k)
            continue;
        struct r_lead_key_find row = {key->k, key->record, find_record(tables, key->record)->lead};
        TRY(memory_give(running, &row));
        given++;
    }
    return OK;
}

/* ---- leads ---- */

static enum status run_lead_put(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    struct row_lead row = *(const struct row_lead *)params;
    size_t at = 0;
    keep(running, &LEAD_PUT, &row);
    while (at < tables->lead_count && tables->leads[at].id != row.id)
        at++;
    ASSERT(at < SEEN_MAX);
    tables->leads[at] = row;
    tables->lead_count += at == tables->lead_count;
    return OK;
}

static enum status run_lead_drop(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    for (size_t i = 0; i < tables->lead_count; i++)
        if (tables->leads[i].id == ((const struct q_lead_drop *)params)->id)
            tables->leads[i--] = tables->leads[--tables->lead_count];
    return OK;
}

static enum status run_count_get(struct running *running, const void *params)
{
    struct r_lead_count_get row = {(int64_t)running->memory->now.lead_count};
    (void)params;
    return memory_give(running, &row);
}

static enum status run_nothing(struct running *running, const void *params)
{
    (void)running, (void)params;
    return OK;
}

/* ---- edges ---- */

static enum status run_edge_add(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    struct row_lead_edge row = *(const struct row_lead_edge *)params;
    ASSERT(tables->lead_edge_count < SEEN_MAX);
    keep(running, &LEAD_EDGE_ADD, &row);
    tables->lead_edges[tables->lead_edge_count++] = row;
    return OK;
}

static enum status run_edge_undo(struct running *running, const void *params)
{
    struct q_lead_edge_undo undo = *(const struct q_lead_edge_undo *)params;
    struct tables *tables = &running->memory->now;
    keep(running, &LEAD_EDGE_UNDO, &undo);
    for (size_t i = 0; i < tables->lead_edge_count; i++) {
        struct row_lead_edge *edge = &tables->lead_edges[i];
        if (edge->id != undo.id)
            continue;
        edge->undone = undo.undone;
        edge->undone_by = undo.undone_by;
        edge->undone_note = undo.undone_note;
    }
    return OK;
}

static enum status run_edge_apart(struct running *running, const void *params)
{
    int64_t record = ((const struct q_lead_edge_apart *)params)->record;
    struct tables *tables = &running->memory->now;
    for (size_t i = 0; i < tables->lead_edge_count; i++) {
        const struct row_lead_edge *edge = &tables->lead_edges[i];
        if ((edge->a == record || edge->b == record) && (edge->kind > 0 || edge->undone > 0))
            TRY(memory_give(running, edge));
    }
    return OK;
}

const struct memory_query memory_leads[] = {
    {&LEAD_RECORD_ADD, run_record_add},
    {&LEAD_RECORD_BY_H, run_record_by_h},
    {&LEAD_RECORDS, run_records},
    {&LEAD_RECORD_MOVE, run_record_move},
    {&LEAD_OF, run_lead_of},
    {&LEAD_KEY_ADD, run_key_add},
    {&LEAD_KEY_FIND, run_key_find},
    {&LEAD_PUT, run_lead_put},
    {&LEAD_DROP, run_lead_drop},
    {&LEAD_COUNT_GET, run_count_get},
    {&LEAD_COUNT_ADD, run_nothing},
    {&LEAD_EDGE_ADD, run_edge_add},
    {&LEAD_EDGE_UNDO, run_edge_undo},
    {&LEAD_EDGE_APART, run_edge_apart},
    {NULL, NULL},
};
