#include "ledger/ledger.h"

/* Hex back to bytes, in the arena. */
static struct bytes unhex(struct bytes hex, struct arena *arena)
{
    char *at = arena_alloc(arena, hex.len / 2 + 1);
    if (at == NULL || hex.len % 2 != 0)
        return BYTES_NONE;
    for (size_t i = 0; i < hex.len; i++) {
        char c = hex.at[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return BYTES_NONE;
        at[i / 2] = (char)(i % 2 == 0 ? digit << 4 : at[i / 2] | digit);
    }
    return (struct bytes){at, hex.len / 2};
}

static enum status set_column(struct row_intent *intent, const struct query_column *column, const struct json *value,
                              struct arena *arena, struct why *why)
{
    char *at = (char *)intent + column->offset;
    if (column->type == COLUMN_INT) {
        if (!json_to_i64(value, (int64_t *)at))
            return why_set(why, BROKEN, "%s in the audit is not a number", column->name);
        return OK;
    }
    struct bytes bytes = BYTES_NONE;
    if (value->type == JSON_STRING)
        bytes = column->type == COLUMN_BYTES ? unhex(value->text, arena) : arena_dup(arena, value->text);
    if (arena->failed)
        return why_set(why, FULL, "no memory for a row of the audit");
    if (bytes.at == NULL && value->type != JSON_NULL)
        return why_set(why, BROKEN, "%s in the audit is not text", column->name);
    *(struct bytes *)at = bytes;
    return OK;
}

void intent_follow(struct row_intent *intent, const struct row_decision *decision)
{
    bool settled = decision->state == STATE_CONFIRMED || decision->state == STATE_REFUSED;
    bool sent = decision->state == STATE_SENT || decision->state == STATE_CONFIRMED;
    if (intent->id == 0) {
        intent->space = decision->space;
        intent->created = decision->at;
    }
    if (sent && intent->first_sent == 0) {
        intent->first_sent = decision->at;
        intent->first_sent_run = decision->run;
    }
    if (settled && intent->state != decision->state) {
        intent->settled = decision->at;
        intent->expires = (int64_t)((uint64_t)decision->run + (uint64_t)intent->keep_us);
    }
    if (decision->state != STATE_CLAIMED && decision->state != STATE_SENT)
        intent->lease_until = 0;
    if (!bytes_is(decision->kind, ledger_op_names[OP_CLAIM]))
        intent->nonce = BYTES_NONE;
    intent->id = decision->intent;
    intent->decision = decision->id;
    intent->state = decision->state;
    intent->fence = decision->fence;
    intent->result = decision->body;
}

enum status intent_fold(struct row_intent *intent, const struct row_decision *decision, struct arena *arena, struct why *why)
{
    struct json changes;
    TRY(json_parse(decision->detail, NULL, arena, &changes, why));
    if (changes.type != JSON_OBJECT)
        return why_set(why, BROKEN, "a detail in the audit is not an object");
    bool born = intent->id == 0;
    intent_follow(intent, decision);
    if (born)
        intent->space = arena_dup(arena, decision->space);
    if (arena->failed)
        return why_set(why, FULL, "no memory for a row of the audit");
    for (uint32_t m = 0; m < changes.count; m++) {
        if (bytes_eq(changes.members[m].name, AUDIT_RESULT_HASH) || bytes_is(changes.members[m].name, "evidence"))
            continue; /* what was seen, not what was changed */
        const struct query_column *column = NULL;
        for (size_t i = 0; i < INTENT_ADD.param_count && column == NULL; i++)
            if (bytes_is(changes.members[m].name, INTENT_ADD.params[i].name))
                column = &INTENT_ADD.params[i];
        if (column == NULL)
            return why_set(why, BROKEN, "the audit names an unknown column");
        TRY(set_column(intent, column, &changes.members[m].value, arena, why));
    }
    return OK;
}
