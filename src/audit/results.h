/* results: are the results still the ones that the log names? The row that confirms an intent has the SHA-256 of the result in
 * its detail, so that the chain covers it; the bytes are in `body` until the intent expires. Part of audit_verify(). */
#ifndef SEMEL_AUDIT_RESULTS_H
#define SEMEL_AUDIT_RESULTS_H

#include "audit/audit.h"

#define RESULTS_MAX 1000

struct result_named {
    int64_t decision, intent, body;
    char hex[2 * HASH_SIZE];
    bool found, same;
};

/* What a page of decisions names; zeroed at first. */
struct results {
    struct result_named at[RESULTS_MAX];
    size_t count, last;
};

/* Notes the result that this row names, if it names one. BROKEN when its detail is none of ours. */
CHECKED enum status results_note(struct results *results, const struct row_decision *row, struct why *why);

/* Compares all that were noted, and forgets them. `ret_bad` is the first row whose result is gone or changed, `ret_what` says which; 0 when all are there. */
CHECKED enum status results_check(struct store *store, struct results *results, int64_t *ret_bad, const char **ret_what,
                                  struct why *why);

#endif
