#include "act/order.h"

enum status effect_order_make(const struct destination *destination, const struct effect_request *request, struct arena *arena,
                              struct ledger_command *submit, struct effect_order *ret, struct why *why)
{
    const struct call_rules *rules = destination_call(destination, request->method, request->path);
    struct effect_request prepared;
    struct effect_order order = {0};
    char downstream[DOWNSTREAM_KEY_SIZE + 1];
    downstream_key(submit->space, submit->workflow, submit->key, downstream);
    TRY(destination_prepare(destination, rules, downstream, request, arena, &prepared, why));
    TRY(request_record(&prepared, arena, &order.record, why));
    submit->lease_us = act_lease_us(destination);
    submit->window_us = rules->window_us;
    submit->capability = rules->capability;
    submit->on_unknown = destination->on_unknown;
    submit->two_phase = false;        /* it counts as sent from the moment it is taken */
    submit->attempts_max = INT32_MAX; /* the outbox counts its tries */
    order.row.space = submit->space;
    order.row.destination = arena_dup(arena, destination->name);
    order.row.step = STEP_DELIVER;
    order.row.priority = PRIORITY_NORMAL;
    order.row.deadline = destination->deadline_us;
    order.row.line = destination->ordered ? BYTES("all") : BYTES_NONE;
    order.row.owner = destination->owner.len > 0 ? arena_dup(arena, destination->owner) : BYTES_NONE;
    if (arena->failed)
        return why_set(why, FULL, "no memory for an effect");
    *ret = order;
    return OK;
}
