/*
 * order: from a request to what the ledger and the outbox are told about it, for whoever hands semel an effect.
 */
#ifndef SEMEL_ACT_ORDER_H
#define SEMEL_ACT_ORDER_H

#include "act/act.h"

/* Plants the key of `submit` (space, workflow and key are there) into the request and fills in its rules from the destination;
 * `ret` is ready to be written but for what the caller wants otherwise (due, priority, line). INVALID when the request cannot carry
 * the key. */
CHECKED enum status effect_order_make(const struct destination *destination, const struct effect_request *request,
                                      struct arena *arena, struct ledger_command *submit, struct effect_order *ret,
                                      struct why *why);

#endif
