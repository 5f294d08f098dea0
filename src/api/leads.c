/* leads: who somebody is: one, many, and how it was found. */
#include "api/leads.h"

#include <stdlib.h>

#define RECORDS_SHOWN 200
#define THREADS_SHOWN 50
#define CARDS_SHOWN 20
#define CANDIDATES_SHOWN 10
#define SEARCHED_MAX 5000 /* leads that are looked at for `q` in one call */
#define SCRATCH_SIZE_MAX ((size_t)64 << 20)

struct leads_state {
    struct call *call;
    int64_t id, limit, after, count, seen, last_id;
    struct bytes q;
    struct row_lead lead; /* only its numbers are used later */
    bool found;
    struct json_out out;
    struct arena scratch;
    struct row_lead_record *records;
    size_t record_count;
    struct row_lead_edge *edges;
    size_t edge_count;
    struct lead_given given;
};

static struct leads_state *new_state(struct call *call)
{
    struct leads_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    state->call = call;
    state->out = json_out_to(&call->out);
    call->state = state;
    return state;
}

static enum status full(struct why *why)
{
    return why_set(why, FULL, "no memory for a lead");
}

/* ---- reading ---- */

static void write_lead(struct json_out *out, const struct row_lead *lead)
{
    call_write_id(out, "lead", "lead", lead->id);
    json_text_member(out, "name", lead->name);
    json_text_member(out, "company", lead->company);
    json_i64_member(out, "records", lead->records);
    json_time_member(out, "created_at", lead->created);
    json_time_member(out, "updated_at", lead->updated);
}

static enum status take_lead(void *ctx, const void *row, struct why *why)
{
    struct leads_state *state = ctx;
    (void)why;
    state->lead = *(const struct row_lead *)row;
    state->lead.name = arena_dup(&state->scratch, state->lead.name);
    state->lead.company = arena_dup(&state->scratch, state->lead.company);
    state->found = true;
    return OK;
}

static enum status take_record(void *ctx, const void *row, struct why *why)
{
    struct leads_state *state = ctx;
    if (state->record_count == RECORDS_SHOWN)
        return OK;
    struct row_lead_record *record = &state->records[state->record_count++];
    *record = *(const struct row_lead_record *)row;
    record->source = arena_dup(&state->scratch, record->source);
    record->external = arena_dup(&state->scratch, record->external);
    record->content = arena_dup(&state->scratch, record->content);
    return state->scratch.failed ? full(why) : OK;
}

#define EDGES_SHOWN 400

static enum status take_edge(void *ctx, const void *row, struct why *why)
{
    struct leads_state *state = ctx;
    const struct row_lead_edge *got = row;
    if (got->kind < 0 || got->kind >= LEAD_EDGE_KIND_COUNT)
        return why_set(why, BROKEN, "edge %lld is damaged", (long long)got->id);
    for (size_t i = 0; i < state->edge_count; i++)
        if (state->edges[i].id == got->id)
            return OK; /* both its ends are here */
    if (state->edge_count == EDGES_SHOWN)
        return OK;
    struct row_lead_edge *edge = &state->edges[state->edge_count++];
    *edge = *got;
    struct bytes *texts[] = {&edge->rule, &edge->explanation, &edge->weights,    &edge->actor,
                             &edge->note, &edge->undone_by,   &edge->undone_note};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = arena_dup(&state->scratch, *texts[i]);
    return state->scratch.failed ? full(why) : OK;
}

/* The lead that the id names, with its records and what was decided about them. */
static enum status read_lead(struct store *store, struct leads_state *state, struct why *why)
{
    struct q_lead_get get = {state->call->space, state->id};
    TRY(store_run(store, &LEAD_GET, &get, 1, take_lead, state, NULL, why));
    if (!state->found)
        return NOTHING;
    struct q_lead_records records = {state->lead.id, RECORDS_SHOWN};
    struct q_lead_edge_of *of = arena_zalloc(&state->scratch, RECORDS_SHOWN, sizeof *of);
    state->records = arena_zalloc(&state->scratch, RECORDS_SHOWN, sizeof *state->records);
    state->edges = arena_zalloc(&state->scratch, EDGES_SHOWN, sizeof *state->edges);
    if (state->scratch.failed)
        return full(why);
    TRY(store_run(store, &LEAD_RECORDS, &records, 1, take_record, state, NULL, why));
    for (size_t i = 0; i < state->record_count; i++)
        of[i].record = state->records[i].id;
    return store_run(store, &LEAD_EDGE_OF, of, state->record_count, take_edge, state, NULL, why);
}

static enum status write_records(struct leads_state *state, struct why *why)
{
    json_name(&state->out, "versions");
    json_open(&state->out, '[');
    for (size_t i = 0; i < state->record_count; i++)
        TRY(lead_write_record(&state->out, &state->records[i], &state->scratch, why));
    json_close(&state->out, ']');
    return OK;
}

static void write_edges(struct leads_state *state)
{
    json_name(&state->out, "history");
    json_open(&state->out, '[');
    for (size_t i = 0; i < state->edge_count; i++)
        lead_write_edge(&state->out, &state->edges[i]);
    json_close(&state->out, ']');
}

/* ---- identities ---- */

struct listed {
    const char *kind;
    struct bytes value;
};

static void list_identity(struct listed *all, size_t *count, size_t most, const char *kind, struct bytes value)
{
    for (size_t i = 0; i < *count; i++)
        if (bytes_eq(all[i].value, value))
            return;
    if (value.len > 0 && *count < most)
        all[(*count)++] = (struct listed){kind, value};
}

#define IDENTITIES_SHOWN 100

/* Each in one spelling, and once. */
static enum status write_identities(struct leads_state *state, struct why *why)
{
    struct listed *all = arena_zalloc(&state->scratch, IDENTITIES_SHOWN, sizeof *all);
    struct match_person *person = arena_zalloc(&state->scratch, 1, sizeof *person);
    size_t count = 0;
    if (all == NULL || person == NULL)
        return full(why);
    for (size_t i = 0; i < state->record_count; i++) {
        struct lead_given given;
        TRY(lead_content_read(state->records[i].content, &state->scratch, &given, why));
        TRY(lead_person(&given, &state->scratch, person, why));
        for (size_t k = 0; k < person->email_count; k++)
            list_identity(all, &count, IDENTITIES_SHOWN, "email",
                          person->emails[k].exact.len > 0 ? person->emails[k].exact : person->emails[k].raw);
        for (size_t k = 0; k < person->phone_count; k++)
            list_identity(all, &count, IDENTITIES_SHOWN, "phone",
                          person->phones[k].e164.len > 0 ? person->phones[k].e164 : person->phones[k].raw);
        for (size_t k = 0; k < given.id_count; k++)
            list_identity(all, &count, IDENTITIES_SHOWN, "other", given.ids[k]);
    }
    json_name(&state->out, "identities");
    json_open(&state->out, '[');
    for (size_t i = 0; i < count; i++) {
        json_open(&state->out, '{');
        json_text_member(&state->out, "kind", bytes_of(all[i].kind));
        json_text_member(&state->out, "value", all[i].value);
        json_close(&state->out, '}');
    }
    json_close(&state->out, ']');
    return OK;
}

/* ---- one ---- */

static enum status take_thread(void *ctx, const void *row, struct why *why)
{
    struct json_out *out = &((struct leads_state *)ctx)->out;
    const struct row_thread *thread = row;
    (void)why;
    json_open(out, '{');
    call_write_id(out, "thread", "thr", thread->id);
    json_i64_member(out, "epoch", thread->epoch);
    json_time_member(out, "updated_at", thread->updated);
    json_close(out, '}');
    return OK;
}

static enum status take_event(void *ctx, const void *row, struct why *why)
{
    struct json_out *out = &((struct leads_state *)ctx)->out;
    const struct r_lead_events *event = row;
    if (event->verdict < 0 || event->verdict >= EVENT_VERDICT_COUNT)
        return why_set(why, BROKEN, "event %lld is damaged", (long long)event->id);
    json_open(out, '{');
    call_write_id(out, "event", "evt", event->id);
    json_text_member(out, "source", event->source);
    json_text_member(out, "verdict", bytes_of(event_verdict_names[event->verdict]));
    call_write_id(out, "thread", "thr", event->thread);
    call_write_id(out, "record", "rec", event->record);
    json_time_member(out, "received_at", event->received);
    json_close(out, '}');
    return OK;
}

static enum status take_card(void *ctx, const void *row, struct why *why)
{
    struct json_out *out = &((struct leads_state *)ctx)->out;
    const struct r_lead_cards *card = row;
    (void)why;
    json_open(out, '{');
    call_write_id(out, "exception", "exc", card->id);
    call_write_id(out, "edge", "edg", card->edge);
    json_time_member(out, "due_at", card->due);
    json_close(out, '}');
    return OK;
}

static enum status write_all(struct store *store, struct leads_state *state, struct why *why)
{
    struct bytes space = state->call->space;
    TRY(read_lead(store, state, why));
    struct q_lead_threads threads = {space, state->lead.id, THREADS_SHOWN};
    struct q_lead_events events = {space, state->lead.id, THREADS_SHOWN};
    struct q_lead_cards cards = {state->lead.id, CARDS_SHOWN};
    json_open(&state->out, '{');
    write_lead(&state->out, &state->lead);
    TRY(write_identities(state, why));
    TRY(write_records(state, why));
    write_edges(state);
    TRY(call_write_rows(&state->out, "threads", store, &LEAD_THREADS, &threads, take_thread, state, why));
    TRY(call_write_rows(&state->out, "events", store, &LEAD_EVENTS, &events, take_event, state, why));
    TRY(call_write_rows(&state->out, "exceptions", store, &LEAD_CARDS, &cards, take_card, state, why));
    json_close(&state->out, '}');
    return OK;
}

static enum status read_one(struct store *store, struct engine_read *read, struct why *why)
{
    struct leads_state *state = ((struct call *)read->user)->state;
    arena_init(&state->scratch, SCRATCH_SIZE_MAX);
    enum status status = write_all(store, state, why);
    arena_release(&state->scratch);
    return status;
}

static void finish_read(struct call *call)
{
    call_reply_read(call, "There is no such lead.");
}

void leads_show(struct call *call)
{
    struct leads_state *state = new_state(call);
    if (call_param_id(call, 0, "lead", &state->id))
        call_submit_read(call, read_one, finish_read);
}

/* ---- how it was found ---- */

/* A record stands before what was decided about it; both in the order in which they came. */
static enum status write_steps(struct leads_state *state, struct why *why)
{
    size_t r = 0, e = 0;
    json_name(&state->out, "steps");
    json_open(&state->out, '[');
    while (r < state->record_count || e < state->edge_count) {
        bool record = r < state->record_count && (e == state->edge_count || state->records[r].id < state->edges[e].id);
        json_open(&state->out, '{');
        json_time_member(&state->out, "at", record ? state->records[r].created : state->edges[e].created);
        json_name(&state->out, record ? "record" : "edge");
        if (record)
            TRY(lead_write_record(&state->out, &state->records[r++], &state->scratch, why));
        else
            lead_write_edge(&state->out, &state->edges[e++]);
        json_close(&state->out, '}');
    }
    json_close(&state->out, ']');
    return OK;
}

static int by_id(const void *a, const void *b)
{
    const struct row_lead_edge *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static enum status tell_lead(struct store *store, struct leads_state *state, struct why *why)
{
    TRY(read_lead(store, state, why));
    qsort(state->edges, state->edge_count, sizeof *state->edges, by_id);
    json_open(&state->out, '{');
    write_lead(&state->out, &state->lead);
    TRY(write_steps(state, why));
    json_close(&state->out, '}');
    return OK;
}

static enum status read_why(struct store *store, struct engine_read *read, struct why *why)
{
    struct leads_state *state = ((struct call *)read->user)->state;
    arena_init(&state->scratch, SCRATCH_SIZE_MAX);
    enum status status = tell_lead(store, state, why);
    arena_release(&state->scratch);
    return status;
}

void leads_why(struct call *call)
{
    struct leads_state *state = new_state(call);
    if (call_param_id(call, 0, "lead", &state->id))
        call_submit_read(call, read_why, finish_read);
}

/* ---- many ---- */

/* One more than asked for says that there is a next page. With `q` the page ends where the look-up ends. */
static enum status take_listed(void *ctx, const void *row, struct why *why)
{
    struct leads_state *state = ctx;
    const struct row_lead *lead = row;
    (void)why;
    state->seen++;
    if (state->count >= state->limit) {
        state->count++;
        return OK;
    }
    state->last_id = lead->id;
    if (state->q.len > 0 && !bytes_holds_nocase(lead->name, state->q) && !bytes_holds_nocase(lead->company, state->q))
        return OK;
    state->count++;
    json_open(&state->out, '{');
    write_lead(&state->out, lead);
    json_close(&state->out, '}');
    return OK;
}

static enum status read_list(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct leads_state *state = call->state;
    int64_t most = state->q.len > 0 ? SEARCHED_MAX : state->limit + 1;
    struct q_lead_list list = {call->space, state->after > 0 ? state->after : INT64_MAX, most};
    call_open_list(&state->out);
    TRY(store_run(store, &LEAD_LIST, &list, 1, take_listed, state, NULL, why));
    bool more = state->count > state->limit || (state->q.len > 0 && state->seen == most);
    call_close_list(&state->out, "lead", more ? state->last_id : 0, state->limit);
    return OK;
}

void leads_list(struct call *call)
{
    static const char *const known[] = {"q", "limit", "after", NULL};
    struct leads_state *state = new_state(call);
    if (!call_query_known(call, known) || !call_page(call, "lead", &state->limit, &state->after))
        return;
    state->q = call_query(call, "q");
    call_submit_read(call, read_list, finish_read);
}

/* ---- who is this? ---- */

static enum status write_candidate(struct leads_state *state, struct store *store, const struct lead_candidate *candidate,
                                   struct why *why)
{
    struct json_out *out = &state->out;
    struct q_lead_get get = {state->call->space, candidate->lead};
    struct bytes explanation;
    TRY(store_run(store, &LEAD_GET, &get, 1, take_lead, state, NULL, why));
    TRY(lead_explain(&candidate->result, &state->scratch, &explanation, why));
    json_open(out, '{');
    call_write_id(out, "lead", "lead", candidate->lead);
    json_text_member(out, "name", state->lead.name);
    json_text_member(out, "company", state->lead.company);
    json_text_member(out, "zone", bytes_of(match_zone_names[candidate->result.zone]));
    json_i64_member(out, "score", candidate->result.score_mb);
    json_text_member(out, "rule", bytes_of(candidate->result.rule));
    json_text_member(out, "because", bytes_of(lead_because(bytes_of(candidate->result.rule))));
    json_name(out, "explanation");
    json_raw(out, explanation);
    json_close(out, '}');
    return OK;
}

static enum status find(struct store *store, struct leads_state *state, struct why *why)
{
    struct leads_config config = {.store = store, .arena = &state->scratch, .pepper = engine_pepper(state->call->api->engine)};
    struct lead_candidate *candidates = arena_zalloc(&state->scratch, CANDIDATES_SHOWN, sizeof *candidates);
    struct leads *leads;
    size_t count;
    int64_t known;
    TRY(leads_open(&config, &leads, why));
    struct lead_query *query = leads_ask(leads, &state->given);
    if (query == NULL || candidates == NULL)
        return full(why);
    TRY(leads_look(leads, why));
    TRY(leads_compare(leads, query, candidates, CANDIDATES_SHOWN, &count, &known, why));
    bool same = count > 0 && candidates[0].result.zone == MATCH_SAME;
    json_open(&state->out, '{');
    json_text_member(&state->out, "found",
                     bytes_of(known != 0 ? lead_found_names[LEAD_KNOWN]
                                         : match_zone_names[count > 0 ? candidates[0].result.zone : MATCH_NEW]));
    call_write_id(&state->out, "lead", "lead", known != 0 ? known : same ? candidates[0].lead : 0);
    json_name(&state->out, "candidates");
    json_open(&state->out, '[');
    for (size_t i = 0; i < count; i++)
        TRY(write_candidate(state, store, &candidates[i], why));
    json_close(&state->out, ']');
    json_close(&state->out, '}');
    return OK;
}

static enum status read_find(struct store *store, struct engine_read *read, struct why *why)
{
    struct leads_state *state = ((struct call *)read->user)->state;
    arena_init(&state->scratch, SCRATCH_SIZE_MAX);
    enum status status = find(store, state, why);
    arena_release(&state->scratch);
    return status;
}

void leads_find(struct call *call)
{
    struct leads_state *state = new_state(call);
    if (lead_body(call, false, &state->given))
        call_submit_read(call, read_find, finish_read);
}
