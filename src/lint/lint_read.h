/* lint_read: what really came in under the keys of a workflow, from the database. */
#ifndef SEMEL_LINT_LINT_READ_H
#define SEMEL_LINT_LINT_READ_H

#include "lint/lint.h"
#include "queries.h"

/* The newest LINT_SAMPLES_MAX intents since then (wall), and what was refused under their keys. Everything is in the arena. */
CHECKED enum status lint_read(struct store *store, struct bytes space, struct bytes workflow, int64_t since_us,
                              struct arena *arena, struct lint_traffic *ret, struct why *why);

#endif
