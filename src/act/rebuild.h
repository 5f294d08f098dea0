/* rebuild: which columns of the outbox the log has. */
#ifndef SEMEL_ACT_REBUILD_H
#define SEMEL_ACT_REBUILD_H

#include "act/outbox.h"

/* Not those that follow from the decision itself, nor when to look. */
bool outbox_is_logged(const struct query_column *column);

#endif
