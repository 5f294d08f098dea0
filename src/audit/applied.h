/*
 * applied: the versions of the policy that were applied. They are rows of the audit; whoever works on the data reads the latest.
 */
#ifndef SEMEL_AUDIT_APPLIED_H
#define SEMEL_AUDIT_APPLIED_H

#include "base/arena.h"
#include "queries.h"
#include "store/store.h"

/* The latest stored policy's text (in the arena) and version; NOTHING when there is none. */
CHECKED enum status policy_load(struct store *store, struct arena *arena, struct row_policy *ret_row, struct why *why);

#endif
