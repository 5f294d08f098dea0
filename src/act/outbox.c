#include "act/outbox.h"

#include "act/rebuild.h"
#include "audit/columns.h"
#include "base/mutant.h"

const char *const outbox_step_names[] = {"deliver", "ask", "person", "finished", NULL};
const char *const outbox_priority_names[] = {"high", "normal", "low", NULL};

/* ---- the log ---- */

/* {"taken":{"quiet":5}}: the statement's name without ours, and its parameters, but for those that are zero or absent. */
static void note(struct ledger *ledger, struct bytes space, int64_t intent, const struct query *query, const void *params)
{
    static const char zero[sizeof(struct row_outbox)];
    struct buf buf;
    if (MUTANT(OUTBOX_UNLOGGED) && query == &OUTBOX_TAKEN)
        return;
    buf_init(&buf, 64 << 10);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    json_name_bytes(&out, bytes_from(bytes_of(query->name), strlen("outbox_")));
    json_open(&out, '{');
    for (size_t i = 0; i < query->param_count; i++)
        if (outbox_is_logged(&query->params[i]) && !column_equal(&query->params[i], params, zero))
            column_write(&out, &query->params[i], params);
    json_close(&out, '}');
    json_close(&out, '}');
    if (buf.failed)
        ledger->audit->failed = true;
    else
        audit_note(ledger->audit, space, intent, buf_bytes(&buf));
    buf_release(&buf);
}

/* ---- birth and death ---- */

enum status outbox_write(struct store *store, struct ledger *ledger, int64_t intent, const struct effect_order *order,
                         struct why *why)
{
    struct row_outbox row = order->row;
    row.intent = intent;
    row.request = id_next(ledger->ids, ledger->now.wall_us);
    row.created = ledger->now.wall_us;
    if (row.due == 0)
        row.due = row.created;
    if (row.deadline != 0)
        row.deadline += row.due > row.created ? row.due : row.created;
    if (MUTANT(LINE_JUMP))
        row.line = BYTES_NONE;
    struct q_body_add body = {row.request, order->record};
    TRY(store_run(store, &BODY_ADD, &body, 1, NULL, NULL, NULL, why));
    TRY(store_run(store, &OUTBOX_ADD, &row, 1, NULL, NULL, NULL, why));
    note(ledger, row.space, row.intent, &OUTBOX_ADD, &row);
    if (MUTANT(OUTBOX_APART)) {
        TRY(store_commit(store, why));
        return store_begin(store, why);
    }
    return OK;
}

/* ---- changes ---- */

static enum status change(struct store *store, struct ledger *ledger, struct bytes space, const struct query *query,
                          const void *params, int64_t intent, struct why *why)
{
    TRY(store_run(store, query, params, 1, NULL, NULL, NULL, why));
    note(ledger, space, intent, query, params);
    return OK;
}

enum status outbox_taken(struct store *store, struct ledger *ledger, struct bytes space, const struct q_outbox_taken *taken,
                         struct why *why)
{
    return change(store, ledger, space, &OUTBOX_TAKEN, taken, taken->intent, why);
}

enum status outbox_ended(struct store *store, struct ledger *ledger, struct bytes space, const struct q_outbox_ended *ended,
                         struct why *why)
{
    return change(store, ledger, space, &OUTBOX_ENDED, ended, ended->intent, why);
}

enum status outbox_ask(struct store *store, struct ledger *ledger, struct bytes space, const struct q_outbox_ask *ask,
                       struct why *why)
{
    return change(store, ledger, space, &OUTBOX_ASK, ask, ask->intent, why);
}

enum status outbox_stand(struct store *store, struct ledger *ledger, const struct row_effect *effect,
                         const struct q_outbox_stand *stand, bool *ret_changed, struct why *why)
{
    int64_t changed = 0;
    bool moves = stand->step != effect->step || stand->probes != effect->probes;
    TRY(store_run(store, &OUTBOX_STAND, stand, 1, NULL, NULL, moves ? &changed : NULL, why));
    if (changed > 0)
        note(ledger, effect->space, stand->intent, &OUTBOX_STAND, stand);
    *ret_changed = changed > 0;
    return OK;
}

enum status outbox_again(struct store *store, struct ledger *ledger, const struct row_effect *effect, bool *ret_changed,
                         struct why *why)
{
    int64_t left_us = effect->deadline != 0 ? effect->deadline - effect->created : 0, changed = 0;
    struct q_outbox_again again = {effect->intent, STEP_DELIVER, ledger->now.wall_us,
                                   left_us != 0 ? ledger->now.wall_us + left_us : 0, ret_changed != NULL ? effect->due : -1};
    if (ret_changed == NULL)
        return change(store, ledger, effect->space, &OUTBOX_AGAIN, &again, effect->intent, why);
    TRY(store_run(store, &OUTBOX_AGAIN, &again, 1, NULL, NULL, &changed, why));
    if (changed > 0)
        note(ledger, effect->space, effect->intent, &OUTBOX_AGAIN, &again);
    *ret_changed = changed > 0;
    return OK;
}

enum status outbox_finish(struct store *store, struct ledger *ledger, const struct row_effect *effect, struct bytes note_text,
                          struct why *why)
{
    struct q_outbox_ended ended = {effect->intent, STEP_FINISHED, OUTBOX_NEVER, 0, effect->status, note_text};
    return outbox_ended(store, ledger, effect->space, &ended, why);
}

enum status outbox_forget(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    (void)ledger;
    struct q_outbox_forget_request request = {command->ledger.intent};
    struct q_outbox_forget row = {command->ledger.intent};
    TRY(store_run(store, &OUTBOX_FORGET_REQUEST, &request, 1, NULL, NULL, NULL, why));
    return MUTANT(FORGET_ROW) ? OK : store_run(store, &OUTBOX_FORGET, &row, 1, NULL, NULL, NULL, why);
}

struct bytes outbox_evidence(const struct effect_order *order, struct arena *arena)
{
    struct buf buf;
    buf_init(&buf, 16 << 10);
    struct json_out out = json_out_to(&buf);
    struct hash hash = hash_sha256(order->record);
    char hex[2 * HASH_SIZE];
    bytes_to_hex(hash_bytes(&hash), hex);
    json_open(&out, '{');
    json_name(&out, "destination");
    json_text(&out, order->row.destination);
    json_name(&out, "attended");
    json_bool(&out, order->row.attended != 0);
    json_name(&out, "priority");
    json_cstr(&out, outbox_priority_names[order->row.priority]);
    json_name(&out, "line");
    json_text(&out, order->row.line);
    json_name(&out, "request_sha256");
    json_text(&out, (struct bytes){hex, sizeof hex});
    json_close(&out, '}');
    struct bytes evidence = buf.failed ? BYTES_NONE : arena_dup(arena, buf_bytes(&buf));
    buf_release(&buf);
    return evidence;
}
