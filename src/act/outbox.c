#include "act/outbox.h"

#include "base/mutant.h"

const char *const outbox_step_names[] = {"deliver", "ask", "person", "finished", NULL};
const char *const outbox_priority_names[] = {"high", "normal", "low", NULL};

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
    if (MUTANT(OUTBOX_APART)) {
        TRY(store_commit(store, why));
        return store_begin(store, why);
    }
    return OK;
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
