#include "audit/columns.h"
#include "ledger/ledger.h"

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
        struct bytes name = changes.members[m].name;
        if (bytes_eq(name, AUDIT_RESULT_HASH) || bytes_eq(name, AUDIT_OUTBOX) || bytes_is(name, "evidence"))
            continue; /* what was seen, or changed elsewhere */
        const struct query_column *column = column_find(INTENT_ADD.params, INTENT_ADD.param_count, name);
        if (column == NULL)
            return why_set(why, BROKEN, "the audit names an unknown column");
        TRY(column_read(intent, column, &changes.members[m].value, arena, why));
    }
    return OK;
}
