/* columns: the columns of a row in the detail of a decision, by name. What is written here is read back when tables are rebuilt. */
#ifndef SEMEL_AUDIT_COLUMNS_H
#define SEMEL_AUDIT_COLUMNS_H

#include "base/json.h"
#include "queries.h"

/* A member with the column's name and value; bytes (at most HASH_SIZE of them) in hex. */
void column_write(struct json_out *out, const struct query_column *column, const void *row);

/* BROKEN when the value is not of the column's type. */
CHECKED enum status column_read(void *row, const struct query_column *column, const struct json *value, struct arena *arena,
                                struct why *why);

bool column_equal(const struct query_column *column, const void *a, const void *b);

/* NULL when there is none of this name. */
const struct query_column *column_find(const struct query_column *columns, size_t count, struct bytes name);

#endif
