/*
 * order: from a request to what the ledger and the outbox are told about it, for whoever hands semel an effect.
 */
#ifndef SEMEL_ACT_ORDER_H
#define SEMEL_ACT_ORDER_H

#include "act/act.h"

/* Plants the key of `command`, a claim or submission whose name is set, into the request, and fills in its rules. `ret_prepared` (may
 * be NULL) is the request as it will be sent; `ret` is ready to be written but for what the caller wants otherwise (due, priority,
 * line …), and needs nothing of the policy any more. INVALID when the request cannot carry the key. */
CHECKED enum status effect_order_make(const struct destination *destination, const struct call_rules *rules,
                                      const struct effect_request *request, struct arena *arena, struct ledger_command *command,
                                      struct effect_request *ret_prepared, struct effect_order *ret, struct why *why);

#endif
