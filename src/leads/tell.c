/* tell: decisions about leads, for the audit. */
#include "leads/leads_own.h"

#include "audit/columns.h"

#define CANDIDATES_TOLD 8
#define DETAIL_MAX ((size_t)256 << 10)

static void write_id(struct json_out *out, const char *name, const char *prefix, int64_t id)
{
    char text[32];
    json_name(out, name);
    if (id != 0)
        json_text(out, (struct bytes){text, id_format(prefix, id, text)});
    else
        json_null(out);
}

/* Where the person stands in the system that told of it: its id there, or else the event. */
static void write_source_id(struct json_out *out, const struct row_lead_record *row)
{
    if (row->external.at != NULL)
        json_text_member(out, "source_id", row->external);
    else
        write_id(out, "source_id", "evt", row->event);
}

/* The contents are in the record; the hash says that they are the same. */
static void write_record(struct json_out *out, const struct row_lead_record *row)
{
    char hex[2 * HASH_SIZE];
    struct hash hash = hash_sha256(row->content);
    write_id(out, "record", "rec", row->id);
    json_text_member(out, "source", row->source);
    write_source_id(out, row);
    json_text_member(out, "external", row->external);
    write_id(out, "event", "evt", row->event);
    bytes_to_hex(row->h, hex);
    json_text_member(out, "h", (struct bytes){hex, 2 * row->h.len});
    bytes_to_hex(hash_bytes(&hash), hex);
    json_text_member(out, "content_sha256", (struct bytes){hex, sizeof hex});
}

static void write_candidates(struct json_out *out, const struct lead_told *told)
{
    json_name(out, "candidates");
    json_open(out, '[');
    for (size_t i = 0; i < told->candidate_count && i < CANDIDATES_TOLD; i++) {
        const struct match_result *result = &told->candidates[i].result;
        json_open(out, '{');
        write_id(out, "lead", "lead", told->candidates[i].lead);
        json_text_member(out, "zone", bytes_of(match_zone_names[result->zone]));
        json_i64_member(out, "score", result->score_mb);
        json_text_member(out, "rule", bytes_of(result->rule));
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void write_answer(struct json_out *out, const struct leads *leads, const struct lead_told *told)
{
    const struct lead_answer *answer = told->answer;
    write_record(out, &told->record->row);
    json_i64_member(out, "matching_score", answer->score_mb);
    json_text_member(out, "decision", bytes_of(lead_found_names[answer->found]));
    json_text_member(out, "weights", (struct bytes){leads->weights, sizeof leads->weights});
    json_name(out, "shadow");
    json_bool(out, answer->shadow);
    write_candidates(out, told);
}

/* Every column, so that the log alone rebuilds it. */
static void write_edges(struct json_out *out, struct leads *leads)
{
    json_name(out, "edges");
    json_open(out, '[');
    for (struct edge_node *edge = leads->edges; edge != NULL; edge = edge->next) {
        if (edge->told)
            continue;
        json_open(out, '{');
        for (size_t i = 0; i < LEAD_EDGE_ADD.param_count; i++)
            column_write(out, &LEAD_EDGE_ADD.params[i], &edge->row);
        json_close(out, '}');
        edge->told = true;
    }
    json_close(out, ']');
}

static void write_taken_back(struct json_out *out, struct leads *leads)
{
    json_name(out, "undone");
    json_open(out, '[');
    for (struct edge_node *edge = leads->edges; edge != NULL; edge = edge->next) {
        if (edge->told_back || !edge->taken_back)
            continue;
        json_open(out, '{');
        write_id(out, "edge", "edg", edge->row.id);
        json_text_member(out, "by", edge->row.undone_by);
        json_text_member(out, "note", edge->row.undone_note);
        json_close(out, '}');
        edge->told_back = true;
    }
    json_close(out, ']');
}

static void write_detail(struct json_out *out, struct leads *leads, const struct lead_told *told)
{
    json_open(out, '{');
    write_id(out, "lead", "lead", told->lead);
    write_id(out, "system_of_record_id", "lead", told->lead);
    if (told->other != 0)
        write_id(out, "other", "lead", told->other);
    if (told->record != NULL)
        write_answer(out, leads, told);
    if (told->note.at != NULL)
        json_text_member(out, "note", told->note);
    write_edges(out, leads);
    write_taken_back(out, leads);
    json_close(out, '}');
}

enum status leads_tell(struct leads *leads, const struct lead_told *told, struct why *why)
{
    struct audit_batch *audit = leads->config.ledger->audit;
    struct buf buf;
    buf_init(&buf, DETAIL_MAX);
    struct json_out out = json_out_to(&buf);
    write_detail(&out, leads, told);
    struct bytes detail = buf.failed ? BYTES_NONE : arena_dup(leads->config.arena, buf_bytes(&buf));
    buf_release(&buf);
    struct row_decision *row = detail.at != NULL ? audit_add(audit) : NULL;
    if (row == NULL)
        return leads_no_memory(why);
    row->space = told->space;
    row->kind = bytes_of(told->kind);
    row->state = -1;
    row->policy = leads->config.policy;
    row->actor = told->actor;
    row->reason = bytes_of(told->rule);
    row->detail = detail;
    return OK;
}
