/* edges: what was decided about two records, in memory. */
#include "leads/leads_own.h"

struct edge_node *edge_add(struct leads *leads, const struct row_lead_edge *row)
{
    struct arena *arena = leads->config.arena;
    for (struct edge_node *edge = leads->edges; edge != NULL; edge = edge->next)
        if (edge->row.id == row->id)
            return edge;
    struct edge_node *edge = arena_zalloc(arena, 1, sizeof *edge);
    if (edge == NULL)
        return NULL;
    *edge = (struct edge_node){.row = *row, .told = true, .told_back = row->undone != 0, .next = leads->edges};
    struct bytes *texts[] = {&edge->row.space, &edge->row.rule, &edge->row.weights,   &edge->row.explanation,
                             &edge->row.actor, &edge->row.note, &edge->row.undone_by, &edge->row.undone_note};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = arena_dup(arena, *texts[i]);
    leads->edges = edge;
    return arena->failed ? NULL : edge;
}

struct edge_node *edge_new(struct leads *leads, enum lead_edge_kind kind, const struct record_node *a,
                           const struct record_node *b, const char *rule)
{
    struct ledger *ledger = leads->config.ledger;
    struct row_lead_edge row = {
        .id = id_next(ledger->ids, ledger->now.wall_us),
        .space = a->row.space,
        .kind = kind,
        .a = a->row.id,
        .b = b->row.id,
        .rule = bytes_of(rule),
        .actor = leads->config.actor,
        .created = ledger->now.wall_us,
    };
    struct edge_node *edge = edge_add(leads, &row);
    if (edge != NULL) {
        edge->fresh = true;
        edge->told = false;
    }
    return edge;
}

void edge_take_back(struct leads *leads, struct edge_node *edge, struct bytes actor, struct bytes note)
{
    edge->row.undone = leads->config.ledger->now.wall_us;
    edge->row.undone_by = actor;
    edge->row.undone_note = note;
    edge->taken_back = true;
    edge->told_back = false;
}

static bool is_between(const struct leads *leads, const struct edge_node *edge, const struct lead_node *a,
                       const struct lead_node *b)
{
    const struct record_node *from = record_at(leads, edge->row.a), *to = record_at(leads, edge->row.b);
    return from != NULL && to != NULL && ((from->lead == a && to->lead == b) || (from->lead == b && to->lead == a));
}

struct apart leads_apart(const struct leads *leads, const struct lead_node *a, const struct lead_node *b)
{
    struct apart apart = {NULL, NULL, NULL};
    for (struct edge_node *edge = leads->edges; edge != NULL; edge = edge->next) {
        bool holds = edge->row.undone == 0;
        if (!is_between(leads, edge, a, b))
            continue;
        if (edge->row.kind == LEAD_EDGE_DIFFERENT && holds)
            apart.different = edge;
        if (edge->row.kind == LEAD_EDGE_ASKED && holds)
            apart.asked = edge;
        if (edge->row.kind == LEAD_EDGE_SAME && !holds)
            apart.parted = edge;
    }
    return apart;
}

/* A question about two that are one now is answered. */
static void close_questions(struct leads *leads, const struct lead_node *lead, struct bytes note)
{
    for (struct edge_node *edge = leads->edges; edge != NULL; edge = edge->next) {
        if (edge->row.kind != LEAD_EDGE_ASKED || edge->row.undone != 0 || !is_between(leads, edge, lead, lead))
            continue;
        edge_take_back(leads, edge, leads->config.actor, note);
        edge->answer = BYTES("same");
    }
}

void leads_join(struct leads *leads, struct record_node *a, struct record_node *b, struct bytes note)
{
    struct lead_node *into = a->lead->id < b->lead->id ? a->lead : b->lead, *from = into == a->lead ? b->lead : a->lead;
    ASSERT(into != from);
    for (struct record_node *record = from->first; record != NULL;) {
        struct record_node *next = record->sibling;
        lead_take(into, record);
        record = next;
    }
    from->first = NULL;
    from->count = 0;
    from->into = into;
    into->changed = true;
    close_questions(leads, into, note);
}
