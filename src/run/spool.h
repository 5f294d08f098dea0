/*
 * spool: what a run could not tell the ledger, because no daemon answered for too long: one file for each, in
 * $XDG_STATE_HOME/semel/spool or
 * ~/.local/state/semel/spool, readable by its owner only. The next `semel run` or `semel status` for the same address or data
 * delivers it; a result that comes late settles what became unknown meanwhile. A file is removed only when the ledger has
 * answered.
 */
#ifndef SEMEL_RUN_SPOOL_H
#define SEMEL_RUN_SPOOL_H

#include "run/way.h"

/* Durable when it returns OK; `ret_path` says where. */
CHECKED enum status spool_keep(const struct way *way, const struct way_say *say, char ret_path[4096], struct why *why);

/* Delivers what is there, as far as it can, and says so. */
void spool_deliver(struct way *way);

/* For tests: the text of a file, and back. `ret_say` refers to the text. */
void spool_write(const struct way *way, const struct way_say *say, struct buf *out);
bool spool_read(const struct way *way, struct bytes text, struct way_say *ret_say);

#endif
