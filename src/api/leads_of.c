/* leads_of: what other resources say of leads: whose an event is, which two a card asks about. */
#include "api/leads.h"

#define SCRATCH_SIZE_MAX ((size_t)4 << 20)

static void write_list(struct json_out *out, const char *name, const struct bytes *texts, size_t count)
{
    json_name(out, name);
    json_open(out, '[');
    for (size_t i = 0; i < count; i++)
        json_text(out, texts[i]);
    json_close(out, ']');
}

enum status lead_write_record(struct json_out *out, const struct row_lead_record *record, struct arena *scratch, struct why *why)
{
    struct lead_given given;
    TRY(lead_content_read(record->content, scratch, &given, why));
    json_open(out, '{');
    call_write_id(out, "record", "rec", record->id);
    json_text_member(out, "source", record->source);
    json_text_member(out, "external_id", record->external);
    call_write_id(out, "event", "evt", record->event);
    json_time_member(out, "created_at", record->created);
    json_text_member(out, "name", given.name);
    json_text_member(out, "company", given.company);
    json_text_member(out, "country", given.country);
    write_list(out, "emails", given.emails, given.email_count);
    write_list(out, "phones", given.phones, given.phone_count);
    write_list(out, "ids", given.ids, given.id_count);
    json_close(out, '}');
    return OK;
}

/* The sentence of a rule; what a person decided needs none of match/'s. */
const char *lead_because(struct bytes rule)
{
    static const struct {
        const char *rule, *sentence;
    } own[] = {
        {"a_person_decided", "a person decided it"},
        {"bridge", "one record is the same as both, and they do not contradict each other"},
        {"nobody_like_it", "there is nobody like it"},
        {"said_before", "this source said the same before"},
    };
    char text[64];
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (bytes_is(rule, own[i].rule))
            return own[i].sentence;
    if (rule.len >= sizeof text)
        return NULL;
    memcpy(text, rule.at, rule.len);
    text[rule.len] = '\0';
    return match_rule_sentence(text);
}

void lead_write_edge(struct json_out *out, const struct row_lead_edge *edge)
{
    json_open(out, '{');
    call_write_id(out, "edge", "edg", edge->id);
    json_text_member(out, "kind", bytes_of(lead_edge_kind_names[edge->kind]));
    call_write_id(out, "record", "rec", edge->a);
    call_write_id(out, "other", "rec", edge->b);
    json_text_member(out, "rule", edge->rule);
    json_text_member(out, "because", bytes_of(lead_because(edge->rule)));
    json_i64_member(out, "score", edge->score);
    json_text_member(out, "weights", edge->weights);
    json_raw_member(out, "explanation", edge->explanation);
    json_text_member(out, "actor", edge->actor);
    json_text_member(out, "note", edge->note);
    json_time_member(out, "created_at", edge->created);
    json_time_member(out, "undone_at", edge->undone);
    json_text_member(out, "undone_by", edge->undone_by);
    json_text_member(out, "undone_note", edge->undone_note);
    json_close(out, '}');
}

static enum status take_id(void *ctx, const void *row, struct why *why)
{
    (void)why;
    *(int64_t *)ctx = ((const struct r_lead_of *)row)->lead;
    return OK;
}

enum status lead_write_id(struct json_out *out, struct store *store, int64_t record, struct why *why)
{
    struct q_lead_of of = {record};
    int64_t lead = 0;
    if (record != 0)
        TRY(store_run(store, &LEAD_OF, &of, 1, take_id, &lead, NULL, why));
    call_write_id(out, "lead", "lead", lead);
    return OK;
}

/* ---- whose an event is ---- */

struct finding {
    struct json_out *out;
    struct arena scratch;
    struct row_lead_record record;
    struct row_lead_edge edge; /* the first that was made of the record when it came */
    bool has_record, has_edge;
};

static enum status keep_record(void *ctx, const void *row, struct why *why)
{
    struct finding *finding = ctx;
    finding->record = *(const struct row_lead_record *)row;
    struct bytes *texts[] = {&finding->record.source, &finding->record.external, &finding->record.content};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = arena_dup(&finding->scratch, *texts[i]);
    finding->has_record = true;
    return finding->scratch.failed ? why_set(why, FULL, "no memory for a lead") : OK;
}

static enum status keep_edge(void *ctx, const void *row, struct why *why)
{
    struct finding *finding = ctx;
    const struct row_lead_edge *edge = row;
    if (edge->kind < 0 || edge->kind >= LEAD_EDGE_KIND_COUNT)
        return why_set(why, BROKEN, "edge %lld is damaged", (long long)edge->id);
    bool earlier = !finding->has_edge || edge->id < finding->edge.id;
    if (edge->a != finding->record.id || edge->created != finding->record.created || !earlier)
        return OK;
    finding->edge = *edge;
    struct bytes *texts[] = {&finding->edge.rule, &finding->edge.explanation, &finding->edge.weights,    &finding->edge.actor,
                             &finding->edge.note, &finding->edge.undone_by,   &finding->edge.undone_note};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = arena_dup(&finding->scratch, *texts[i]);
    finding->has_edge = true;
    return finding->scratch.failed ? why_set(why, FULL, "no memory for a lead") : OK;
}

static enum lead_found found_by(const struct finding *finding, int64_t event)
{
    if (finding->record.event != event)
        return LEAD_KNOWN;
    return !finding->has_edge ? LEAD_NEW : finding->edge.kind == LEAD_EDGE_SAME ? LEAD_SAME : LEAD_REVIEW;
}

static void write_found(struct finding *finding, int64_t event)
{
    struct json_out *out = finding->out;
    enum lead_found found = found_by(finding, event);
    struct bytes rule = found == LEAD_KNOWN ? BYTES("said_before")
                        : finding->has_edge ? finding->edge.rule
                                            : BYTES("nobody_like_it");
    json_open(out, '{');
    call_write_id(out, "lead", "lead", finding->record.lead);
    call_write_id(out, "record", "rec", finding->record.id);
    json_text_member(out, "found", bytes_of(lead_found_names[found]));
    json_text_member(out, "rule", rule);
    json_text_member(out, "because", bytes_of(lead_because(rule)));
    json_name(out, "edge");
    if (finding->has_edge)
        lead_write_edge(out, &finding->edge);
    else
        json_null(out);
    json_close(out, '}');
}

static enum status find_lead(struct finding *finding, struct store *store, struct bytes space, int64_t record, struct why *why)
{
    struct q_lead_record_get get = {space, record};
    struct q_lead_edge_of of = {record};
    TRY(store_run(store, &LEAD_RECORD_GET, &get, 1, keep_record, finding, NULL, why));
    return finding->has_record ? store_run(store, &LEAD_EDGE_OF, &of, 1, keep_edge, finding, NULL, why) : OK;
}

enum status lead_write_of_event(struct json_out *out, struct store *store, struct bytes space, int64_t event, int64_t record,
                                struct why *why)
{
    struct finding finding = {.out = out};
    arena_init(&finding.scratch, SCRATCH_SIZE_MAX);
    enum status status = record != 0 ? find_lead(&finding, store, space, record, why) : OK;
    json_name(out, "lead");
    if (status == OK && finding.has_record)
        write_found(&finding, event);
    else
        json_null(out);
    arena_release(&finding.scratch);
    return status;
}

/* ---- whether two are one ---- */

static enum status take_question(void *ctx, const void *row, struct why *why)
{
    struct finding *finding = ctx;
    finding->record = (struct row_lead_record){.id = ((const struct row_lead_edge *)row)->a,
                                               .created = ((const struct row_lead_edge *)row)->created};
    return keep_edge(ctx, row, why);
}

static enum status write_side(struct finding *finding, struct store *store, struct bytes space, int64_t record, struct why *why)
{
    struct q_lead_record_get get = {space, record};
    struct json_out *out = finding->out;
    finding->has_record = false;
    TRY(store_run(store, &LEAD_RECORD_GET, &get, 1, keep_record, finding, NULL, why));
    if (!finding->has_record)
        return why_set(why, BROKEN, "record %lld is gone", (long long)record);
    json_open(out, '{');
    call_write_id(out, "lead", "lead", finding->record.lead);
    json_name(out, "says");
    TRY(lead_write_record(out, &finding->record, &finding->scratch, why));
    json_close(out, '}');
    return OK;
}

static enum status write_question(struct finding *finding, struct store *store, struct bytes space, int64_t edge, struct why *why)
{
    struct q_lead_edge_get get = {space, edge};
    struct json_out *out = finding->out;
    TRY(store_run(store, &LEAD_EDGE_GET, &get, 1, take_question, finding, NULL, why));
    if (!finding->has_edge)
        return why_set(why, BROKEN, "edge %lld is gone", (long long)edge);
    json_open(out, '{');
    json_name(out, "edge");
    lead_write_edge(out, &finding->edge);
    json_name(out, "sides");
    json_open(out, '[');
    TRY(write_side(finding, store, space, finding->edge.a, why));
    TRY(write_side(finding, store, space, finding->edge.b, why));
    json_close(out, ']');
    json_close(out, '}');
    return OK;
}

enum status lead_write_question(struct json_out *out, struct store *store, struct bytes space, int64_t edge, struct why *why)
{
    struct finding finding = {.out = out};
    enum status status = OK;
    json_name(out, "question");
    arena_init(&finding.scratch, SCRATCH_SIZE_MAX);
    if (edge != 0)
        status = write_question(&finding, store, space, edge, why);
    else
        json_null(out);
    arena_release(&finding.scratch);
    return status;
}
