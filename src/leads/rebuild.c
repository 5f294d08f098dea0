#include "leads/rebuild.h"

#include "audit/columns.h"

static struct bytes text_of(const struct json *json, const char *name, struct arena *arena)
{
    const struct json *value = json_get(json, bytes_of(name));
    return value != NULL && value->type == JSON_STRING ? arena_dup(arena, value->text) : BYTES_NONE;
}

/* Room for one more; what is there moves. */
static void *grow(struct arena *arena, void *rows, size_t count, size_t *cap, size_t size)
{
    if (count < *cap)
        return rows;
    size_t more = *cap == 0 ? 64 : *cap * 2;
    char *moved = arena_zalloc(arena, more, size);
    if (moved == NULL)
        return NULL;
    if (count > 0)
        memcpy(moved, rows, count * size);
    *cap = more;
    return moved;
}

static struct bytes unhex(struct bytes hex, struct arena *arena)
{
    char *at = arena_alloc(arena, hex.len / 2 + 1);
    if (at == NULL || hex.len % 2 != 0)
        return BYTES_NONE;
    for (size_t i = 0; i < hex.len / 2; i++) {
        int high = bytes_hex_digit(hex.at[2 * i]), low = bytes_hex_digit(hex.at[2 * i + 1]);
        if (high < 0 || low < 0)
            return BYTES_NONE;
        at[i] = (char)(high << 4 | low);
    }
    return (struct bytes){at, hex.len / 2};
}

static enum status fold_record(struct lead_book *book, const struct row_decision *decision, const struct json *detail,
                               struct why *why)
{
    struct arena *arena = book->arena;
    size_t cap = book->record_cap;
    int64_t id;
    if (!id_parse("rec", text_of(detail, "record", arena), &id))
        return OK;
    book->records = grow(arena, book->records, book->record_count, &book->record_cap, sizeof *book->records);
    book->contents = grow(arena, book->contents, book->record_count, &cap, sizeof *book->contents);
    if (book->records == NULL || book->contents == NULL)
        return why_set(why, FULL, "no memory for a row of the audit");
    struct row_lead_record *record = &book->records[book->record_count];
    *record = (struct row_lead_record){
        .id = id,
        .space = arena_dup(arena, decision->space),
        .source = text_of(detail, "source", arena),
        .external = text_of(detail, "external", arena),
        .h = unhex(text_of(detail, "h", arena), arena),
        .created = decision->at,
        .lead = id,
    };
    (void)id_parse("evt", text_of(detail, "event", arena), &record->event);
    book->contents[book->record_count++] = text_of(detail, "content_sha256", arena);
    return record->h.at != NULL ? OK : why_set(why, BROKEN, "a record in the audit has no hash");
}

static enum status fold_edge(struct lead_book *book, const struct json *json, struct why *why)
{
    book->edges = grow(book->arena, book->edges, book->edge_count, &book->edge_cap, sizeof *book->edges);
    if (book->edges == NULL)
        return why_set(why, FULL, "no memory for a row of the audit");
    struct row_lead_edge *edge = &book->edges[book->edge_count++];
    *edge = (struct row_lead_edge){0};
    for (size_t i = 0; i < LEAD_EDGE_ADD.param_count; i++) {
        const struct query_column *column = &LEAD_EDGE_ADD.params[i];
        const struct json *value = json_get(json, bytes_of(column->name));
        if (value == NULL)
            return why_set(why, BROKEN, "an edge in the audit has no %s", column->name);
        TRY(column_read(edge, column, value, book->arena, why));
    }
    return OK;
}

static void fold_undone(struct lead_book *book, const struct row_decision *decision, const struct json *json)
{
    int64_t id;
    if (!id_parse("edg", text_of(json, "edge", book->arena), &id))
        return;
    for (size_t i = 0; i < book->edge_count; i++) {
        if (book->edges[i].id != id)
            continue;
        book->edges[i].undone = decision->at;
        book->edges[i].undone_by = text_of(json, "by", book->arena);
        book->edges[i].undone_note = text_of(json, "note", book->arena);
    }
}

enum status lead_fold(struct lead_book *book, const struct row_decision *decision, struct why *why)
{
    struct json detail;
    if (!bytes_starts(decision->kind, BYTES("lead_")))
        return OK;
    TRY(json_parse(decision->detail, NULL, book->arena, &detail, why));
    const struct json *edges = json_get(&detail, BYTES("edges")), *undone = json_get(&detail, BYTES("undone"));
    if (edges == NULL || edges->type != JSON_ARRAY || undone == NULL || undone->type != JSON_ARRAY)
        return why_set(why, BROKEN, "a decision about a lead has no edges");
    TRY(fold_record(book, decision, &detail, why));
    for (uint32_t i = 0; i < edges->count; i++)
        TRY(fold_edge(book, &edges->items[i], why));
    for (uint32_t i = 0; i < undone->count; i++)
        fold_undone(book, decision, &undone->items[i]);
    return book->arena->failed ? why_set(why, FULL, "no memory for a row of the audit") : OK;
}

static struct row_lead_record *record_of(struct lead_book *book, int64_t id)
{
    for (size_t i = 0; i < book->record_count; i++)
        if (book->records[i].id == id)
            return &book->records[i];
    return NULL;
}

void lead_book_settle(struct lead_book *book)
{
    for (size_t i = 0; i < book->record_count; i++)
        book->records[i].lead = book->records[i].id;
    for (size_t i = 0; i < book->edge_count; i++) {
        const struct row_lead_edge *edge = &book->edges[i];
        const struct row_lead_record *a = record_of(book, edge->a), *b = record_of(book, edge->b);
        if (edge->kind != LEAD_EDGE_SAME || edge->undone != 0 || a == NULL || b == NULL || a->lead == b->lead)
            continue;
        int64_t into = a->lead < b->lead ? a->lead : b->lead, from = a->lead < b->lead ? b->lead : a->lead;
        for (size_t k = 0; k < book->record_count; k++)
            if (book->records[k].lead == from)
                book->records[k].lead = into;
    }
}
