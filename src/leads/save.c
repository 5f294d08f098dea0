/* save: the rows of what was decided in one transaction. */
#include "leads/leads_own.h"

#include "leads/rebuild.h"

static enum status save_records(struct leads *leads, struct why *why)
{
    size_t records = 0, keys = 0;
    for (size_t slot = 0; slot < LEAD_SLOTS; slot++)
        for (const struct record_node *record = leads->records[slot]; record != NULL; record = record->next) {
            records++;
            keys += record->fresh ? record->key_count : 0;
        }
    struct row_lead_record *adds = arena_zalloc(leads->config.arena, records + 1, sizeof *adds);
    struct q_lead_record_move *moves = arena_zalloc(leads->config.arena, records + 1, sizeof *moves);
    struct q_lead_key_add *finds = arena_zalloc(leads->config.arena, keys + 1, sizeof *finds);
    if (adds == NULL || moves == NULL || finds == NULL)
        return leads_no_memory(why);
    size_t added = 0, moved = 0, found = 0;
    for (size_t slot = 0; slot < LEAD_SLOTS; slot++)
        for (struct record_node *record = leads->records[slot]; record != NULL; record = record->next) {
            if (!record->fresh && record->row.lead != record->lead->id)
                moves[moved++] = (struct q_lead_record_move){record->row.id, record->lead->id};
            record->row.lead = record->lead->id;
            if (!record->fresh)
                continue;
            adds[added++] = record->row;
            for (size_t i = 0; i < record->key_count; i++)
                finds[found++] = (struct q_lead_key_add){(int64_t)record->keys[i].hash, record->row.id};
            record->fresh = false;
        }
    TRY(store_run(leads->config.store, &LEAD_RECORD_ADD, adds, added, NULL, NULL, NULL, why));
    TRY(store_run(leads->config.store, &LEAD_RECORD_MOVE, moves, moved, NULL, NULL, NULL, why));
    return store_run(leads->config.store, &LEAD_KEY_ADD, finds, found, NULL, NULL, NULL, why);
}

enum status lead_row(const struct row_lead_record *records, size_t count, struct arena *arena, struct row_lead *ret,
                     struct why *why)
{
    struct row_lead row = {
        .id = records[0].id, .space = records[0].space, .records = (int64_t)count, .created = records[0].created};
    for (size_t i = 0; i < count; i++) {
        struct lead_given given;
        TRY(lead_content_read(records[i].content, arena, &given, why));
        if (given.name.len > 0)
            row.name = given.name;
        if (given.company.len > 0)
            row.company = given.company;
        if (records[i].created > row.updated)
            row.updated = records[i].created;
    }
    *ret = row;
    return OK;
}

static enum status fill_lead(struct leads *leads, const struct lead_node *lead, struct row_lead *ret, struct why *why)
{
    struct row_lead_record *rows = arena_zalloc(leads->config.arena, lead->count + 1, sizeof *rows);
    size_t count = 0;
    if (rows == NULL)
        return leads_no_memory(why);
    for (const struct record_node *record = lead->first; record != NULL; record = record->sibling)
        rows[count++] = record->row;
    return lead_row(rows, count, leads->config.arena, ret, why);
}

static enum status save_leads(struct leads *leads, struct why *why)
{
    size_t count = 0, put = 0, dropped = 0;
    for (const struct lead_node *lead = leads->all; lead != NULL; lead = lead->next_all)
        count++;
    struct row_lead *puts = arena_zalloc(leads->config.arena, count + 1, sizeof *puts);
    struct q_lead_drop *drops = arena_zalloc(leads->config.arena, count + 1, sizeof *drops);
    if (puts == NULL || drops == NULL)
        return leads_no_memory(why);
    for (struct lead_node *lead = leads->all; lead != NULL; lead = lead->next_all) {
        struct space_node *space;
        TRY(leads_space(leads, lead->space, &space, why));
        bool there = lead->into == NULL;
        space->more += (there && lead->changed && !lead->stored) - (!there && lead->stored);
        if (!there && lead->stored)
            drops[dropped++].id = lead->id;
        if (there && lead->changed) {
            TRY(fill_lead(leads, lead, &puts[put++], why));
            lead->stored = true;
            lead->changed = false;
        }
    }
    TRY(store_run(leads->config.store, &LEAD_PUT, puts, put, NULL, NULL, NULL, why));
    return store_run(leads->config.store, &LEAD_DROP, drops, dropped, NULL, NULL, NULL, why);
}

static enum status save_counts(struct leads *leads, struct why *why)
{
    for (struct space_node *space = leads->spaces; space != NULL; space = space->next) {
        struct q_lead_count_add add = {space->space, space->more};
        if (space->more != 0)
            TRY(store_run(leads->config.store, &LEAD_COUNT_ADD, &add, 1, NULL, NULL, NULL, why));
    }
    return OK;
}

static enum status save_edges(struct leads *leads, struct why *why)
{
    size_t count = 0, added = 0, undone = 0;
    for (const struct edge_node *edge = leads->edges; edge != NULL; edge = edge->next)
        count++;
    struct row_lead_edge *adds = arena_zalloc(leads->config.arena, count + 1, sizeof *adds);
    struct q_lead_edge_undo *undos = arena_zalloc(leads->config.arena, count + 1, sizeof *undos);
    if (adds == NULL || undos == NULL)
        return leads_no_memory(why);
    for (const struct edge_node *edge = leads->edges; edge != NULL; edge = edge->next) {
        ASSERT(edge->told && (edge->told_back || !edge->taken_back));
        if (edge->fresh)
            adds[added++] = edge->row;
        else if (edge->taken_back)
            undos[undone++] =
                (struct q_lead_edge_undo){edge->row.id, edge->row.undone, edge->row.undone_by, edge->row.undone_note};
    }
    TRY(store_run(leads->config.store, &LEAD_EDGE_ADD, adds, added, NULL, NULL, NULL, why));
    return store_run(leads->config.store, &LEAD_EDGE_UNDO, undos, undone, NULL, NULL, NULL, why);
}

/* A question has a card; its answer closes it. */
static enum status save_cards(struct leads *leads, struct why *why)
{
    struct store *store = leads->config.store;
    struct ledger *ledger = leads->config.ledger;
    for (const struct edge_node *edge = leads->edges; edge != NULL; edge = edge->next) {
        struct exception_order order = {
            .kind = EXCEPTION_AMBIGUOUS_IDENTITY,
            .space = edge->row.space,
            .owner = bytes_of(edge->people.owner),
            .reason = edge->row.rule,
            .edge = edge->row.id,
            .due_us = edge->people.due_us > 0 ? edge->people.due_us : LEAD_DUE_US,
        };
        if (edge->row.kind != LEAD_EDGE_ASKED)
            continue;
        if (edge->fresh && !edge->taken_back)
            TRY(exception_raise(store, ledger, &order, why));
        if (!edge->fresh && edge->taken_back)
            TRY(exception_close_edge(store, ledger, edge->row.id, edge->answer, edge->row.undone_by, edge->row.undone_note, why));
    }
    return OK;
}

enum status leads_save(struct leads *leads, struct why *why)
{
    TRY(save_records(leads, why));
    TRY(save_leads(leads, why));
    TRY(save_counts(leads, why));
    TRY(save_edges(leads, why));
    return save_cards(leads, why);
}
