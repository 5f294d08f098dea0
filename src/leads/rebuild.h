/*
 * rebuild: leads from the decision log. The log and the records' immutable contents are the truth; `lead`, `lead_key`, `lead_edge`,
 * `lead_count` and the column `lead_record.lead` follow from them.
 */
#ifndef SEMEL_LEADS_REBUILD_H
#define SEMEL_LEADS_REBUILD_H

#include "leads/leads.h"

/* What the decisions say so far. Zeroed at first but for the arena. */
struct lead_book {
    struct arena *arena;
    struct row_lead_record *records; /* without `content` and `packed`; `lead` after lead_book_settle() */
    struct bytes *contents;          /* beside each: the SHA-256 of its content, in hex */
    size_t record_count, record_cap;
    struct row_lead_edge *edges;
    size_t edge_count, edge_cap;
};

/* Folds one decision in; decisions about other things change nothing. */
CHECKED enum status lead_fold(struct lead_book *book, const struct row_decision *decision, struct why *why);

/* Which lead each record belongs to: those that `same` edges in force connect have the id of the oldest. */
void lead_book_settle(struct lead_book *book);

/* A lead from its records with their contents, oldest first: the newest name and company that were given. */
CHECKED enum status lead_row(const struct row_lead_record *records, size_t count, struct arena *arena, struct row_lead *ret,
                             struct why *why);

#endif
