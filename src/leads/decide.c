/* decide: who is this record? The lead that it joins, or a lead of its own and perhaps a question. */
#include "leads/leads_own.h"

#include <stdlib.h>

/* ---- candidates ---- */

static bool is_listed(const struct lead_candidate *list, size_t count, int64_t lead)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].lead == lead)
            return true;
    return false;
}

static enum status compare(struct leads *leads, struct lead_query *query, struct lead_node *lead, struct lead_candidate *ret,
                           struct why *why)
{
    struct space_node *space;
    TRY(leads_space(leads, query->given.space, &space, why));
    TRY(lead_person_of(leads, lead, why));
    struct match_world world = {.leads = (uint64_t)(space->leads + space->more)};
    ret->lead = lead->id;
    match_compare(query->person, lead->person, &world, &ret->result);
    return OK;
}

/* All leads that share a value with it which not too many have, compared. */
static enum status list_candidates(struct leads *leads, struct lead_query *query, struct lead_candidate *ret, size_t *ret_count,
                                   struct why *why)
{
    size_t count = 0;
    uint32_t holders[MATCH_KEYS_MAX];
    for (size_t i = 0; i < query->key_count; i++) {
        holders[i] = key_holders(leads, query->at[i]);
        match_person_holders(query->person, &query->keys[i], holders[i]);
    }
    for (size_t i = 0; i < query->key_count; i++) {
        const struct key_row *row = holders[i] <= LEAD_HOLDERS_MAX ? query->at[i]->first : NULL;
        for (; row != NULL && count < LEAD_CANDIDATES_MAX; row = row->next) {
            struct lead_node *lead = key_row_lead(leads, row);
            if (lead == NULL || !lead->loaded || is_listed(ret, count, lead->id))
                continue;
            TRY(compare(leads, query, lead, &ret[count], why));
            count++;
        }
    }
    *ret_count = count;
    return OK;
}

/* The best first: by zone, then score, then age. */
static int order(const void *a, const void *b)
{
    const struct lead_candidate *x = a, *y = b;
    if (x->result.zone != y->result.zone)
        return x->result.zone > y->result.zone ? -1 : 1;
    if (x->result.score_mb != y->result.score_mb)
        return x->result.score_mb > y->result.score_mb ? -1 : 1;
    return x->lead < y->lead ? -1 : x->lead > y->lead;
}

static enum status find_candidates(struct leads *leads, struct lead_query *query, size_t *ret_count, struct why *why)
{
    if (leads->candidates == NULL)
        leads->candidates = arena_zalloc(leads->config.arena, LEAD_CANDIDATES_MAX, sizeof *leads->candidates);
    if (leads->candidates == NULL)
        return leads_no_memory(why);
    TRY(list_candidates(leads, query, leads->candidates, ret_count, why));
    qsort(leads->candidates, *ret_count, sizeof *leads->candidates, order);
    return OK;
}

enum status leads_compare(struct leads *leads, struct lead_query *query, struct lead_candidate *ret, size_t most,
                          size_t *ret_count, int64_t *ret_known, struct why *why)
{
    const struct record_node *known = record_by_h(leads, query->h);
    size_t count = 0;
    *ret_known = known != NULL ? known->lead->id : 0;
    if (known == NULL)
        TRY(find_candidates(leads, query, &count, why));
    *ret_count = count < most ? count : most;
    if (*ret_count > 0)
        memcpy(ret, leads->candidates, *ret_count * sizeof *ret);
    return OK;
}

/* ---- the record ---- */

static enum status make_record(struct leads *leads, struct lead_query *query, struct record_node **ret, struct why *why)
{
    struct ledger *ledger = leads->config.ledger;
    struct arena *arena = leads->config.arena;
    struct space_node *space;
    struct row_lead_record row = {
        .id = id_next(ledger->ids, ledger->now.wall_us),
        .space = query->given.space,
        .source = query->given.source,
        .external = query->given.external.len > 0 ? query->given.external : BYTES_NONE,
        .event = query->given.event,
        .h = {(const char *)query->h, KEY_HASH_SIZE},
        .content = query->content,
        .created = ledger->now.wall_us,
    };
    TRY(match_pack(query->person, arena, &row.packed, why));
    TRY(leads_space(leads, query->given.space, &space, why));
    struct record_node *record = record_add(leads, &row, true);
    if (record == NULL)
        return leads_no_memory(why);
    record->person = query->person;
    record->keys = query->keys;
    record->key_count = query->key_count;
    record->lead->changed = true;
    for (size_t i = 0; i < query->key_count; i++)
        if (!key_note(leads, query->at[i], record))
            return leads_no_memory(why);
    *ret = record;
    return OK;
}

/* The record of that lead with which it has the strongest value in common: when the lead is taken apart, it stays with that one. */
static struct record_node *anchor_in(const struct leads *leads, const struct lead_query *query, const struct lead_node *lead)
{
    for (size_t i = 0; i < query->key_count; i++)
        for (const struct key_row *row = query->at[i]->first; row != NULL; row = row->next) {
            struct record_node *record = record_at(leads, row->record);
            if (record != NULL && record->lead == lead)
                return record;
        }
    return lead->first;
}

/* ---- what follows ---- */

static enum status add_edge(struct leads *leads, enum lead_edge_kind kind, const struct record_node *a,
                            const struct record_node *b, const char *rule, const struct match_result *result,
                            struct edge_node **ret, struct why *why)
{
    struct edge_node *edge = edge_new(leads, kind, a, b, rule);
    if (edge == NULL)
        return leads_no_memory(why);
    edge->row.score = result->score_mb;
    edge->row.weights = (struct bytes){leads->weights, sizeof leads->weights};
    TRY(lead_explain(result, leads->config.arena, &edge->row.explanation, why));
    *ret = edge;
    return OK;
}

#define JOINED_MAX 8 /* leads that one record makes one */

struct deciding {
    struct lead_query *query;
    struct record_node *record;
    const struct people *people;
    struct lead_answer *answer;
    const struct match_person *joined[JOINED_MAX]; /* the leads that it joined, as they were before */
    size_t joined_count;
};

/* A person is asked, once about each pair of leads. */
static enum status ask(struct leads *leads, struct deciding *deciding, struct lead_node *lead, const struct match_result *result,
                       struct why *why)
{
    struct record_node *record = deciding->record, *anchor = anchor_in(leads, deciding->query, lead);
    struct apart apart = leads_apart(leads, record->lead, lead);
    struct edge_node *edge = NULL;
    if (apart.different != NULL || apart.asked != NULL)
        return OK;
    TRY(add_edge(leads, LEAD_EDGE_ASKED, record, anchor, result->rule, result, &edge, why));
    edge->people = *deciding->people;
    deciding->answer->edge = edge->row.id;
    deciding->answer->other = lead->id;
    return OK;
}

static bool contradicts(const struct match_result *result)
{
    for (size_t i = 0; i < result->line_count; i++) {
        const struct match_line *line = &result->lines[i];
        if (strcmp(line->level, "conflict") == 0 || (strcmp(line->field, "born") == 0 && strcmp(line->level, "differs") == 0))
            return true;
    }
    return false;
}

/* May a rule make this one a part of what the record joined before? They are compared as they were without the record. */
static bool may_bridge(const struct leads *leads, const struct deciding *deciding, const struct lead_node *lead)
{
    const struct lead_node *joined = deciding->record->lead;
    struct apart apart = leads_apart(leads, joined, lead);
    if (joined->count + lead->count > LEAD_RECORDS_MAX || apart.different != NULL || apart.parted != NULL)
        return false;
    for (size_t i = 0; i < deciding->joined_count; i++) {
        struct match_result result;
        struct match_world world = {.leads = 0};
        match_compare(deciding->joined[i], lead->person, &world, &result);
        if (contradicts(&result))
            return false;
    }
    return deciding->joined_count < JOINED_MAX;
}

static enum status join(struct leads *leads, struct deciding *deciding, struct lead_node *lead, const struct match_result *result,
                        const char *rule, struct why *why)
{
    struct record_node *anchor = anchor_in(leads, deciding->query, lead);
    struct edge_node *edge = NULL;
    deciding->joined[deciding->joined_count++] = lead->person;
    TRY(add_edge(leads, LEAD_EDGE_SAME, deciding->record, anchor, rule, result, &edge, why));
    if (deciding->answer->edge == 0)
        deciding->answer->edge = edge->row.id;
    leads_join(leads, deciding->record, anchor, BYTES_NONE);
    return OK;
}

/* The best one that it is the same as; the others that it is the same as; and the best one of which nobody can tell. */
static enum status settle(struct leads *leads, struct deciding *deciding, const struct lead_candidate *candidates, size_t count,
                          struct why *why)
{
    for (size_t i = 0; i < count && candidates[i].result.zone != MATCH_NEW; i++) {
        const struct match_result *result = &candidates[i].result;
        struct lead_node *lead = lead_at(leads, candidates[i].lead);
        bool first = deciding->joined_count == 0;
        if (lead == deciding->record->lead)
            continue;
        if (result->zone == MATCH_SAME && (first ? lead->count < LEAD_RECORDS_MAX : may_bridge(leads, deciding, lead))) {
            TRY(join(leads, deciding, lead, result, first ? result->rule : "bridge", why));
            continue;
        }
        TRY(ask(leads, deciding, lead, result, why));
        if (deciding->answer->other != 0)
            break; /* one question about one record */
    }
    deciding->answer->found = deciding->joined_count > 0 ? LEAD_SAME : deciding->answer->other != 0 ? LEAD_REVIEW : LEAD_NEW;
    return OK;
}

static enum status tell(struct leads *leads, const struct deciding *deciding, size_t count, struct why *why)
{
    static const char *const kinds[] = {
        [LEAD_KNOWN] = "lead_known", [LEAD_SAME] = "lead_same", [LEAD_REVIEW] = "lead_review", [LEAD_NEW] = "lead_new"};
    struct lead_told told = {
        .kind = kinds[deciding->answer->found],
        .space = deciding->record->row.space,
        .actor = leads->config.actor,
        .rule = deciding->answer->rule,
        .record = deciding->record,
        .answer = deciding->answer,
        .candidates = leads->candidates,
        .candidate_count = count,
        .lead = deciding->answer->lead,
        .other = deciding->answer->other,
    };
    return leads_tell(leads, &told, why);
}

static enum status decide_new(struct leads *leads, struct deciding *deciding, bool shadow, struct why *why)
{
    static const enum lead_found ends[] = {[MATCH_NEW] = LEAD_NEW, [MATCH_REVIEW] = LEAD_REVIEW, [MATCH_SAME] = LEAD_SAME};
    struct lead_answer *answer = deciding->answer;
    size_t count;
    TRY(find_candidates(leads, deciding->query, &count, why));
    TRY(make_record(leads, deciding->query, &deciding->record, why));
    const struct lead_candidate *best = count > 0 ? &leads->candidates[0] : NULL;
    *answer = (struct lead_answer){.found = best != NULL ? ends[best->result.zone] : LEAD_NEW,
                                   .record = deciding->record->row.id,
                                   .score_mb = best != NULL ? best->result.score_mb : 0,
                                   .rule = best != NULL ? best->result.rule : "nobody_like_it",
                                   .shadow = shadow};
    if (shadow)
        answer->other = answer->found != LEAD_NEW ? best->lead : 0;
    else
        TRY(settle(leads, deciding, leads->candidates, count, why));
    answer->lead = deciding->record->lead->id;
    return tell(leads, deciding, count, why);
}

enum status leads_decide(struct leads *leads, struct lead_query *query, bool shadow, const struct people *people,
                         struct lead_answer *ret, struct why *why)
{
    const struct record_node *known = record_by_h(leads, query->h);
    struct deciding deciding = {.query = query, .people = people, .answer = ret};
    if (known == NULL)
        return decide_new(leads, &deciding, shadow, why);
    *ret = (struct lead_answer){
        .found = LEAD_KNOWN, .record = known->row.id, .lead = known->lead->id, .rule = "said_before", .shadow = shadow};
    return OK;
}
