/* set: the leads that one transaction knows of: what is asked, what is stored, by value, id and contents. */
#include "leads/leads_own.h"

enum status leads_no_memory(struct why *why)
{
    return why_set(why, FULL, "no memory for leads");
}

enum status leads_open(const struct leads_config *config, struct leads **ret_leads, struct why *why)
{
    struct leads *leads = arena_zalloc(config->arena, 1, sizeof *leads);
    if (leads == NULL)
        return leads_no_memory(why);
    struct hash weights = match_rules_hash();
    leads->config = *config;
    leads->last_query = &leads->queries;
    bytes_to_hex(hash_bytes(&weights), leads->weights);
    *ret_leads = leads;
    return OK;
}

/* ---- by id, by value, by contents ---- */

static size_t slot_of(int64_t n)
{
    return (size_t)((uint64_t)n * 0x9E3779B97F4A7C15u >> 40) % LEAD_SLOTS;
}

static size_t slot_of_h(const uint8_t *h)
{
    uint32_t n;
    memcpy(&n, h, sizeof n);
    return n % LEAD_SLOTS;
}

struct record_node *record_at(const struct leads *leads, int64_t id)
{
    struct record_node *record = leads->records[slot_of(id)];
    while (record != NULL && record->row.id != id)
        record = record->next;
    return record;
}

struct record_node *record_by_h(const struct leads *leads, const uint8_t *h)
{
    struct record_node *record = leads->by_h[slot_of_h(h)];
    while (record != NULL && memcmp(record->row.h.at, h, KEY_HASH_SIZE) != 0)
        record = record->next_h;
    return record;
}

struct lead_node *lead_at(const struct leads *leads, int64_t id)
{
    struct lead_node *lead = leads->leads[slot_of(id)];
    while (lead != NULL && lead->id != id)
        lead = lead->next;
    while (lead != NULL && lead->into != NULL)
        lead = lead->into;
    return lead;
}

struct lead_node *lead_new(struct leads *leads, struct bytes space, int64_t id)
{
    struct lead_node *lead = arena_zalloc(leads->config.arena, 1, sizeof *lead);
    if (lead == NULL)
        return NULL;
    *lead = (struct lead_node){.id = id, .space = space, .next = leads->leads[slot_of(id)], .next_all = leads->all};
    leads->leads[slot_of(id)] = leads->all = lead;
    return lead;
}

/* A lead that is stored, and whose records are loaded when it is wanted. */
static struct lead_node *lead_stored(struct leads *leads, struct bytes space, int64_t id)
{
    struct lead_node *lead = lead_at(leads, id);
    if (lead != NULL)
        return lead;
    lead = lead_new(leads, space, id);
    if (lead != NULL)
        lead->stored = true;
    return lead;
}

static struct key_node *key_at(struct leads *leads, int64_t k)
{
    struct key_node *key = leads->keys[slot_of(k)];
    while (key != NULL && key->k != k)
        key = key->next;
    if (key != NULL)
        return key;
    key = arena_zalloc(leads->config.arena, 1, sizeof *key);
    if (key == NULL)
        return NULL;
    *key = (struct key_node){.k = k, .next = leads->keys[slot_of(k)], .next_all = leads->all_keys};
    leads->keys[slot_of(k)] = leads->all_keys = key;
    return key;
}

void lead_take(struct lead_node *lead, struct record_node *record)
{
    struct record_node **at = &lead->first;
    while (*at != NULL && (*at)->row.id < record->row.id)
        at = &(*at)->sibling;
    record->sibling = *at;
    record->lead = lead;
    *at = record;
    lead->count++;
    lead->person = NULL;
}

static bool keep_texts(struct leads *leads, struct row_lead_record *row)
{
    struct arena *arena = leads->config.arena;
    struct bytes *texts[] = {&row->space, &row->source, &row->external, &row->h, &row->content, &row->packed};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = arena_dup(arena, *texts[i]);
    return !arena->failed;
}

struct record_node *record_add(struct leads *leads, const struct row_lead_record *row, bool fresh)
{
    struct record_node *record = record_at(leads, row->id);
    if (record != NULL)
        return record;
    record = arena_zalloc(leads->config.arena, 1, sizeof *record);
    if (record == NULL)
        return NULL;
    record->row = *row;
    record->fresh = fresh;
    if (!keep_texts(leads, &record->row))
        return NULL;
    struct lead_node *lead =
        fresh ? lead_new(leads, record->row.space, row->id) : lead_stored(leads, record->row.space, row->lead);
    if (lead == NULL)
        return NULL;
    const uint8_t *h = (const uint8_t *)record->row.h.at;
    record->next = leads->records[slot_of(row->id)];
    record->next_h = leads->by_h[slot_of_h(h)];
    leads->records[slot_of(row->id)] = record;
    leads->by_h[slot_of_h(h)] = record;
    lead_take(lead, record);
    lead->loaded = lead->loaded || fresh;
    return record;
}

int64_t leads_lead_of(const struct leads *leads, int64_t record)
{
    const struct record_node *node = record_at(leads, record);
    return node != NULL ? node->lead->id : 0;
}

/* ---- persons ---- */

/* As match/ packed it; by other rules of spelling, from the contents. */
enum status record_person(struct leads *leads, struct record_node *record, struct why *why)
{
    struct arena *arena = leads->config.arena;
    struct lead_given given;
    if (record->person != NULL)
        return OK;
    struct match_person *person = arena_zalloc(arena, 1, sizeof *person);
    if (person == NULL)
        return leads_no_memory(why);
    if (match_unpack(record->row.packed, person, why) != OK) {
        TRY(lead_content_read(record->row.content, arena, &given, why));
        given.source = record->row.source;
        given.external = record->row.external;
        TRY(lead_person(&given, arena, person, why));
    }
    record->person = person;
    return OK;
}

enum status lead_person_of(struct leads *leads, struct lead_node *lead, struct why *why)
{
    if (lead->person != NULL)
        return OK;
    for (struct record_node *record = lead->first; record != NULL; record = record->sibling)
        TRY(record_person(leads, record, why));
    if (lead->count == 1) {
        lead->person = lead->first->person;
        return OK;
    }
    struct match_person *person = arena_zalloc(leads->config.arena, 1, sizeof *person);
    if (person == NULL)
        return leads_no_memory(why);
    for (const struct record_node *record = lead->first; record != NULL; record = record->sibling)
        match_person_add(person, record->person);
    lead->person = person;
    return OK;
}

/* ---- how many there are ---- */

static enum status take_count(void *ctx, const void *row, struct why *why)
{
    (void)why;
    *(int64_t *)ctx = ((const struct r_lead_count_get *)row)->leads;
    return OK;
}

enum status leads_space(struct leads *leads, struct bytes space, struct space_node **ret, struct why *why)
{
    struct space_node *node = leads->spaces;
    while (node != NULL && !bytes_eq(node->space, space))
        node = node->next;
    if (node == NULL) {
        struct q_lead_count_get get = {space};
        node = arena_zalloc(leads->config.arena, 1, sizeof *node);
        if (node == NULL)
            return leads_no_memory(why);
        *node = (struct space_node){.space = arena_dup(leads->config.arena, space), .next = leads->spaces};
        TRY(store_run(leads->config.store, &LEAD_COUNT_GET, &get, 1, take_count, &node->leads, NULL, why));
        leads->spaces = node;
    }
    *ret = node;
    return OK;
}

/* ---- loading ---- */

static enum status take_record(void *ctx, const void *at, struct why *why)
{
    const struct row_lead_record *row = at;
    if (row->h.len != KEY_HASH_SIZE)
        return why_set(why, BROKEN, "record %lld is damaged", (long long)row->id);
    return record_add(ctx, row, false) != NULL ? OK : leads_no_memory(why);
}

static enum status take_edge(void *ctx, const void *at, struct why *why)
{
    const struct row_lead_edge *row = at;
    if (row->kind < 0 || row->kind >= LEAD_EDGE_KIND_COUNT)
        return why_set(why, BROKEN, "edge %lld is damaged", (long long)row->id);
    return edge_add(ctx, row) != NULL ? OK : leads_no_memory(why);
}

static enum status load_edges(struct leads *leads, const struct lead_node *until, bool all_edges, struct why *why)
{
    size_t count = 0;
    for (const struct lead_node *lead = leads->all; lead != until; lead = lead->next_all)
        count += lead->wanted ? lead->count : 0;
    struct q_lead_edge_apart *gets = arena_zalloc(leads->config.arena, count + 1, sizeof *gets);
    if (gets == NULL)
        return leads_no_memory(why);
    count = 0;
    for (const struct lead_node *lead = leads->all; lead != until; lead = lead->next_all)
        for (const struct record_node *record = lead->first; record != NULL && lead->wanted; record = record->sibling)
            gets[count++].record = record->row.id;
    _Static_assert(sizeof(struct q_lead_edge_apart) == sizeof(struct q_lead_edge_of), "both are a record");
    return store_run(leads->config.store, all_edges ? &LEAD_EDGE_OF : &LEAD_EDGE_APART, gets, count, take_edge, leads, NULL, why);
}

enum status leads_load(struct leads *leads, bool all_edges, struct why *why)
{
    size_t count = 0;
    for (const struct lead_node *lead = leads->all; lead != NULL; lead = lead->next_all)
        count += lead->wanted && !lead->loaded;
    struct q_lead_records *gets = arena_zalloc(leads->config.arena, count + 1, sizeof *gets);
    if (gets == NULL)
        return leads_no_memory(why);
    count = 0;
    for (struct lead_node *lead = leads->all; lead != NULL; lead = lead->next_all)
        if (lead->wanted && !lead->loaded) {
            gets[count++] = (struct q_lead_records){lead->id, LEAD_RECORDS_MAX + 1};
            lead->loaded = true;
        }
    TRY(store_run(leads->config.store, &LEAD_RECORDS, gets, count, take_record, leads, NULL, why));
    return load_edges(leads, NULL, all_edges, why);
}

enum status leads_load_record(struct leads *leads, struct bytes space, int64_t id, struct record_node **ret, struct why *why)
{
    struct q_lead_record_get get = {space, id};
    TRY(store_run(leads->config.store, &LEAD_RECORD_GET, &get, 1, take_record, leads, NULL, why));
    struct record_node *record = record_at(leads, id);
    if (record == NULL)
        return why_set(why, NOTHING, "there is no such lead");
    record->lead->wanted = true;
    TRY(leads_load(leads, true, why));
    *ret = record;
    return OK;
}

/* ---- what is asked ---- */

static struct bytes cut(struct bytes text)
{
    if (text.len <= LEAD_TEXT_MAX)
        return text;
    text.len = LEAD_TEXT_MAX;
    while (text.len > 0 && ((unsigned char)text.at[text.len] & 0xC0) == 0x80)
        text.len--;
    return text;
}

struct lead_query *leads_ask(struct leads *leads, const struct lead_given *given)
{
    struct arena *arena = leads->config.arena;
    struct why why;
    struct lead_query *query = arena_zalloc(arena, 1, sizeof *query);
    if (query == NULL)
        return NULL;
    query->given = *given;
    query->given.name = cut(given->name);
    query->given.company = cut(given->company);
    query->given.country = cut(given->country);
    if (lead_content(&query->given, arena, &query->content, &why) != OK)
        return NULL;
    lead_hash(leads->config.pepper, &query->given, query->content, query->h);
    *leads->last_query = query;
    leads->last_query = &query->next;
    return query;
}

/* Who said exactly this before needs no comparison. */
static enum status look_for_records(struct leads *leads, struct why *why)
{
    size_t count = 0;
    for (const struct lead_query *query = leads->queries; query != NULL; query = query->next)
        count++;
    struct q_lead_record_by_h *gets = arena_zalloc(leads->config.arena, count + 1, sizeof *gets);
    if (gets == NULL)
        return leads_no_memory(why);
    count = 0;
    for (const struct lead_query *query = leads->queries; query != NULL; query = query->next)
        if (!query->looked)
            gets[count++].h = (struct bytes){(const char *)query->h, KEY_HASH_SIZE};
    return store_run(leads->config.store, &LEAD_RECORD_BY_H, gets, count, take_record, leads, NULL, why);
}

static enum status make_keys(struct leads *leads, struct lead_query *query, struct why *why)
{
    struct arena *arena = leads->config.arena;
    query->person = arena_zalloc(arena, 1, sizeof *query->person);
    if (query->person == NULL)
        return leads_no_memory(why);
    TRY(lead_person(&query->given, arena, query->person, why));
    TRY(lead_keys(leads->config.pepper, query->given.space, query->person, arena, query->keys, &query->key_count, why));
    for (size_t i = 0; i < query->key_count; i++) {
        query->at[i] = key_at(leads, (int64_t)query->keys[i].hash);
        if (query->at[i] == NULL)
            return leads_no_memory(why);
    }
    return OK;
}

static enum status take_key(void *ctx, const void *at, struct why *why)
{
    struct leads *leads = ctx;
    const struct r_lead_key_find *row = at;
    struct key_node *key = key_at(leads, row->k);
    struct key_row *kept = arena_zalloc(leads->config.arena, 1, sizeof *kept);
    if (key == NULL || kept == NULL)
        return leads_no_memory(why);
    *kept = (struct key_row){row->record, row->lead, key->first};
    key->first = kept;
    key->row_count++;
    return OK;
}

static enum status look_for_keys(struct leads *leads, struct why *why)
{
    size_t count = 0;
    for (const struct key_node *key = leads->all_keys; key != NULL; key = key->next_all)
        count += !key->looked;
    struct q_lead_key_find *gets = arena_zalloc(leads->config.arena, count + 1, sizeof *gets);
    if (gets == NULL)
        return leads_no_memory(why);
    count = 0;
    for (struct key_node *key = leads->all_keys; key != NULL; key = key->next_all)
        if (!key->looked) {
            gets[count++] = (struct q_lead_key_find){key->k, LEAD_KEY_ROWS_MAX + 1};
            key->looked = true;
        }
    return store_run(leads->config.store, &LEAD_KEY_FIND, gets, count, take_key, leads, NULL, why);
}

uint32_t key_holders(const struct leads *leads, const struct key_node *key)
{
    int64_t seen[LEAD_HOLDERS_MAX + 1];
    uint32_t count = 0;
    if (key->row_count > LEAD_KEY_ROWS_MAX)
        return LEAD_HOLDERS_MAX + 1;
    for (const struct key_row *row = key->first; row != NULL && count <= LEAD_HOLDERS_MAX; row = row->next) {
        const struct lead_node *lead = key_row_lead(leads, row);
        int64_t id = lead != NULL ? lead->id : row->lead;
        uint32_t i = 0;
        while (i < count && seen[i] != id)
            i++;
        if (i == count)
            seen[count++] = id;
    }
    return count;
}

struct lead_node *key_row_lead(const struct leads *leads, const struct key_row *row)
{
    const struct record_node *record = record_at(leads, row->record);
    return record != NULL ? record->lead : lead_at(leads, row->lead);
}

bool key_note(struct leads *leads, struct key_node *key, const struct record_node *record)
{
    struct key_row *row = arena_zalloc(leads->config.arena, 1, sizeof *row);
    if (row == NULL)
        return false;
    *row = (struct key_row){record->row.id, record->row.id, key->first};
    key->first = row;
    key->row_count++;
    return true;
}

/* The leads that are compared, those with the strongest values first. */
static enum status want_leads(struct leads *leads, const struct lead_query *query, struct why *why)
{
    size_t wanted = 0;
    for (size_t i = 0; i < query->key_count; i++) {
        if (key_holders(leads, query->at[i]) > LEAD_HOLDERS_MAX)
            continue;
        for (const struct key_row *row = query->at[i]->first; row != NULL && wanted < LEAD_CANDIDATES_MAX; row = row->next) {
            struct lead_node *lead = lead_stored(leads, query->given.space, row->lead);
            if (lead == NULL)
                return leads_no_memory(why);
            wanted += !lead->wanted;
            lead->wanted = true;
        }
    }
    return OK;
}

enum status leads_look(struct leads *leads, struct why *why)
{
    TRY(look_for_records(leads, why));
    for (struct lead_query *query = leads->queries; query != NULL; query = query->next)
        if (!query->looked && record_by_h(leads, query->h) == NULL)
            TRY(make_keys(leads, query, why));
    TRY(look_for_keys(leads, why));
    for (struct lead_query *query = leads->queries; query != NULL; query = query->next) {
        if (!query->looked)
            TRY(want_leads(leads, query, why));
        query->looked = true;
    }
    return leads_load(leads, false, why);
}
