/* rebuild: the outbox from the decision log. A rebuilt row is due at once: the ladder says anew when to look at it. */
#include "act/rebuild.h"

#include "audit/columns.h"

bool outbox_is_logged(const struct query_column *column)
{
    static const char *const others[] = {"intent", "space", "created", "due", "seen_due"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (bytes_is(bytes_of(column->name), others[i]))
            return false;
    return true;
}

void outbox_apply(struct row_outbox *row, const struct query *query, const void *params)
{
    if (query == &OUTBOX_ADD) {
        *row = *(const struct row_outbox *)params;
    } else if (query == &OUTBOX_TAKEN) {
        const struct q_outbox_taken *taken = params;
        row->step = STEP_DELIVER;
        row->due = taken->due;
        row->quiet = taken->quiet;
        row->tries++;
    } else if (query == &OUTBOX_ENDED) {
        const struct q_outbox_ended *ended = params;
        row->step = ended->step;
        row->due = ended->due;
        row->quiet = ended->quiet;
        row->status = ended->status;
        row->note = ended->note;
    } else if (query == &OUTBOX_STAND) {
        const struct q_outbox_stand *stand = params;
        row->step = stand->step;
        row->due = stand->due;
        row->probes = stand->probes;
    } else if (query == &OUTBOX_ASK) {
        const struct q_outbox_ask *ask = params;
        row->step = ask->step;
        row->due = ask->due;
        row->probes = 0;
    } else {
        ASSERT(query == &OUTBOX_AGAIN);
        const struct q_outbox_again *again = params;
        row->step = again->step;
        row->due = again->due;
        row->deadline = again->deadline;
        row->attended = row->tries = row->probes = 0;
    }
}

/* ---- reading the log ---- */

union change {
    struct row_outbox add;
    struct q_outbox_taken taken;
    struct q_outbox_ended ended;
    struct q_outbox_stand stand;
    struct q_outbox_ask ask;
    struct q_outbox_again again;
};

static const struct query *find_query(struct bytes name)
{
    static const struct query *const queries[] = {&OUTBOX_ADD,   &OUTBOX_TAKEN, &OUTBOX_ENDED,
                                                  &OUTBOX_STAND, &OUTBOX_ASK,   &OUTBOX_AGAIN};
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        if (bytes_is(name, queries[i]->name + strlen("outbox_")))
            return queries[i];
    return NULL;
}

static enum status fold_change(struct row_outbox *row, const struct row_decision *decision, const struct json *change,
                               struct arena *arena, struct why *why)
{
    bool named = change->type == JSON_OBJECT && change->count == 1 && change->members[0].value.type == JSON_OBJECT;
    const struct query *query = named ? find_query(change->members[0].name) : NULL;
    if (query == NULL)
        return why_set(why, BROKEN, "the audit names an unknown change of the outbox");
    const struct json *columns = &change->members[0].value;
    union change params = {0};
    for (uint32_t i = 0; i < columns->count; i++) {
        const struct query_column *column = column_find(query->params, query->param_count, columns->members[i].name);
        if (column == NULL)
            return why_set(why, BROKEN, "the audit names an unknown column of the outbox");
        TRY(column_read(&params, column, &columns->members[i].value, arena, why));
    }
    if (query == &OUTBOX_ADD) {
        params.add.intent = decision->intent;
        params.add.space = arena_dup(arena, decision->space);
        params.add.created = decision->at;
    }
    outbox_apply(row, query, &params);
    row->due = row->step < STEP_PERSON ? decision->at : OUTBOX_NEVER;
    return arena->failed ? why_set(why, FULL, "no memory for a row of the audit") : OK;
}

enum status outbox_fold(struct row_outbox *row, const struct row_decision *decision, struct arena *arena, struct why *why)
{
    struct json detail;
    if (decision->detail.at == NULL)
        return OK;
    TRY(json_parse(decision->detail, NULL, arena, &detail, why));
    const struct json *changes = detail.type == JSON_OBJECT ? json_get(&detail, AUDIT_OUTBOX) : NULL;
    if (changes == NULL)
        return OK;
    if (changes->type != JSON_ARRAY)
        return why_set(why, BROKEN, "the changes of the outbox in the audit are no list");
    for (uint32_t i = 0; i < changes->count; i++)
        TRY(fold_change(row, decision, &changes->items[i], arena, why));
    return OK;
}
