#include "act/order.h"

enum status effect_order_make(const struct destination *destination, const struct call_rules *rules,
                              const struct effect_request *request, struct arena *arena, struct ledger_command *command,
                              struct effect_request *ret_prepared, struct effect_order *ret, struct why *why)
{
    struct effect_request prepared;
    struct effect_order order = {0};
    char downstream[DOWNSTREAM_KEY_SIZE + 1];
    downstream_key(command->space, command->workflow, command->key, downstream);
    TRY(destination_prepare(destination, rules, downstream, request, arena, &prepared, why));
    TRY(request_record(&prepared, arena, &order.record, why));
    command->lease_us = act_lease_us(destination);
    command->window_us = rules->window_us;
    command->capability = rules->capability;
    command->on_unknown = destination->on_unknown;
    command->two_phase = false;        /* it counts as sent from the moment it is taken */
    command->attempts_max = INT32_MAX; /* the outbox counts its tries, or its caller does */
    order.row.space = command->space;
    order.row.destination = arena_dup(arena, destination->name);
    order.row.step = STEP_DELIVER;
    order.row.priority = PRIORITY_NORMAL;
    order.row.deadline = destination->deadline_us;
    order.row.line = command->line = destination->ordered ? BYTES("all") : BYTES_NONE;
    command->place = order.row.destination;
    order.row.owner = destination->owner.len > 0 ? arena_dup(arena, destination->owner) : BYTES_NONE;
    if (arena->failed)
        return why_set(why, FULL, "no memory for an effect");
    if (ret_prepared != NULL)
        *ret_prepared = prepared;
    *ret = order;
    return OK;
}
