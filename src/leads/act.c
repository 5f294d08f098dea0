/* act: what a person decides about leads. */
#include "leads/leads_own.h"

#define BY_A_PERSON "a_person_decided"

static enum status tell(struct leads *leads, const struct lead_act *act, const char *kind, struct why *why)
{
    struct lead_told told = {.kind = kind,
                             .space = act->space,
                             .actor = act->actor,
                             .note = act->note,
                             .rule = BY_A_PERSON,
                             .lead = act->lead,
                             .other = act->other};
    return leads_tell(leads, &told, why);
}

static enum status connect(struct leads *leads, struct lead_act *act, struct record_node *a, struct record_node *b,
                           struct why *why)
{
    struct apart apart = leads_apart(leads, a->lead, b->lead);
    int64_t other = a->lead->id > b->lead->id ? a->lead->id : b->lead->id;
    act->end = a->lead == b->lead                                   ? LEAD_ACT_BEFORE
               : apart.different != NULL                            ? LEAD_ACT_APART
               : a->lead->count + b->lead->count > LEAD_RECORDS_MAX ? LEAD_ACT_FULL
                                                                    : LEAD_ACT_DONE;
    act->lead = a->lead->id;
    if (act->end == LEAD_ACT_APART)
        act->edge = apart.different->row.id;
    if (act->end != LEAD_ACT_DONE)
        return OK;
    struct edge_node *edge = edge_new(leads, LEAD_EDGE_SAME, a, b, BY_A_PERSON);
    if (edge == NULL)
        return leads_no_memory(why);
    edge->row.actor = act->actor;
    edge->row.note = act->note;
    if (apart.asked != NULL) {
        edge->row.score = apart.asked->row.score;
        edge->row.weights = apart.asked->row.weights;
        edge->row.explanation = apart.asked->row.explanation;
    }
    leads_join(leads, a, b, act->note);
    act->edge = edge->row.id;
    act->lead = a->lead->id;
    act->other = other;
    return tell(leads, act, "lead_merged", why);
}

enum status leads_merge(struct leads *leads, struct lead_act *act, struct why *why)
{
    struct record_node *a = NULL, *b = NULL;
    TRY(leads_load_record(leads, act->space, act->lead, &a, why));
    TRY(leads_load_record(leads, act->space, act->other, &b, why));
    return connect(leads, act, a, b, why);
}

/* ---- one edge ---- */

struct found_edge {
    struct leads *leads;
    struct edge_node *edge;
};

static enum status take_edge(void *ctx, const void *row, struct why *why)
{
    struct found_edge *found = ctx;
    found->edge = edge_add(found->leads, row);
    return found->edge != NULL ? OK : leads_no_memory(why);
}

static enum status load_edge(struct leads *leads, const struct lead_act *act, struct edge_node **ret, struct record_node **ret_a,
                             struct record_node **ret_b, struct why *why)
{
    struct q_lead_edge_get get = {act->space, act->edge};
    struct found_edge found = {.leads = leads};
    TRY(store_run(leads->config.store, &LEAD_EDGE_GET, &get, 1, take_edge, &found, NULL, why));
    if (found.edge == NULL)
        return why_set(why, NOTHING, "there is no such edge");
    TRY(leads_load_record(leads, act->space, found.edge->row.a, ret_a, why));
    TRY(leads_load_record(leads, act->space, found.edge->row.b, ret_b, why));
    *ret = found.edge;
    return OK;
}

static enum status set_apart(struct leads *leads, struct lead_act *act, struct record_node *a, struct record_node *b,
                             struct why *why)
{
    struct edge_node *edge = edge_new(leads, LEAD_EDGE_DIFFERENT, a, b, BY_A_PERSON);
    if (edge == NULL)
        return leads_no_memory(why);
    edge->row.actor = act->actor;
    edge->row.note = act->note;
    act->edge = edge->row.id;
    return OK;
}

/* ---- taking apart ---- */

/* Whoever is connected with what is marked is marked too. */
static bool spread(const struct leads *leads, struct record_node **marked, size_t *count)
{
    for (const struct edge_node *edge = leads->edges; edge != NULL; edge = edge->next) {
        struct record_node *a = record_at(leads, edge->row.a), *b = record_at(leads, edge->row.b);
        bool has_a = false, has_b = false;
        if (edge->row.kind != LEAD_EDGE_SAME || edge->row.undone != 0 || a == NULL || b == NULL)
            continue;
        for (size_t i = 0; i < *count; i++) {
            has_a = has_a || marked[i] == a;
            has_b = has_b || marked[i] == b;
        }
        if (has_a == has_b)
            continue;
        marked[(*count)++] = has_a ? b : a;
        return true;
    }
    return false;
}

/* The records that hang together with `from` leave their lead for one of their own. */
static enum status part(struct leads *leads, struct record_node *from, struct why *why)
{
    struct lead_node *lead = from->lead;
    struct record_node **marked = arena_zalloc(leads->config.arena, lead->count + 1, sizeof(struct record_node *));
    struct record_node *all = lead->first;
    size_t count = 0;
    if (marked == NULL)
        return leads_no_memory(why);
    marked[count++] = from;
    while (spread(leads, marked, &count)) {
    }
    if (count == lead->count)
        return OK;
    int64_t oldest = INT64_MAX, oldest_left = INT64_MAX;
    for (const struct record_node *record = all; record != NULL; record = record->sibling) {
        bool goes = false;
        for (size_t i = 0; i < count; i++)
            goes = goes || marked[i] == record;
        int64_t *least = goes ? &oldest : &oldest_left;
        *least = record->row.id < *least ? record->row.id : *least;
    }
    bool goes_has_oldest = oldest < oldest_left;
    struct lead_node *other = lead_new(leads, lead->space, goes_has_oldest ? oldest_left : oldest);
    if (other == NULL)
        return leads_no_memory(why);
    lead->first = NULL;
    lead->count = 0;
    while (all != NULL) {
        struct record_node *next = all->sibling;
        bool goes = false;
        for (size_t i = 0; i < count; i++)
            goes = goes || marked[i] == all;
        lead_take(goes == goes_has_oldest ? lead : other, all);
        all = next;
    }
    other->loaded = lead->changed = other->changed = true;
    return OK;
}

enum status leads_undo(struct leads *leads, struct lead_act *act, struct why *why)
{
    struct edge_node *edge = NULL;
    struct record_node *a = NULL, *b = NULL;
    TRY(load_edge(leads, act, &edge, &a, &b, why));
    act->end = edge->row.undone != 0 || edge->row.kind == LEAD_EDGE_ASKED ? LEAD_ACT_BEFORE : LEAD_ACT_DONE;
    if (act->end == LEAD_ACT_DONE) {
        edge_take_back(leads, edge, act->actor, act->note);
        if (edge->row.kind == LEAD_EDGE_SAME)
            TRY(part(leads, a, why));
    }
    act->lead = a->lead->id;
    act->other = b->lead->id;
    if (act->end != LEAD_ACT_DONE)
        return OK;
    if (act->different && edge->row.kind == LEAD_EDGE_SAME)
        TRY(set_apart(leads, act, a, b, why));
    return tell(leads, act, "lead_undone", why);
}

/* ---- answering ---- */

enum status leads_answer(struct leads *leads, struct lead_act *act, bool same, struct why *why)
{
    struct edge_node *edge = NULL;
    struct record_node *a = NULL, *b = NULL;
    TRY(load_edge(leads, act, &edge, &a, &b, why));
    act->lead = a->lead->id;
    act->other = b->lead->id;
    act->end = LEAD_ACT_BEFORE;
    if (edge->row.kind != LEAD_EDGE_ASKED || edge->row.undone != 0 || a->lead == b->lead)
        return OK;
    if (same)
        return connect(leads, act, a, b, why);
    edge_take_back(leads, edge, act->actor, act->note);
    edge->answer = BYTES("different");
    TRY(set_apart(leads, act, a, b, why));
    act->end = LEAD_ACT_DONE;
    return tell(leads, act, "lead_different", why);
}
