/*
 * store: SQLite and PostgreSQL behind one small table of functions, at the level of statements. Domain logic exists once, above.
 *
 * A query is a named text from a `.sql` file beside the code that uses it; the build turns each into a `struct query` and a struct for
 * its parameters and its rows (see tools/queries.py), so that a missing column is a compile error. Parameters are an array of such structs:
 * SQLite runs the statement once per struct, PostgreSQL takes all of them as arrays in one round trip where the text is written for it.
 *
 * Promises: COMMIT returned OK ⇒ durable (SQLite: WAL and synchronous=FULL; PostgreSQL: synchronous_commit=on). UNKNOWN ⇒ the COMMIT may have
 * happened. A failed fsync stops the process: what the kernel still holds cannot be trusted. A connection belongs to one thread at a time.
 *
 * Inside a transaction a database may queue statements that nobody needs the answer of (PostgreSQL does, to save round trips): later statements
 * see what they did, and when one fails, the next statement that has rows, store_flush() or store_commit() says so. Nothing is committed then.
 */
#ifndef SEMEL_STORE_STORE_H
#define SEMEL_STORE_STORE_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/status.h"

enum store_kind { STORE_SQLITE, STORE_POSTGRES, STORE_KINDS };

struct query_column {
    const char *name;
    enum { COLUMN_INT, COLUMN_TEXT, COLUMN_BYTES } type; /* int64_t, struct bytes, struct bytes */
    size_t offset;
};

struct query {
    const char *name;
    const char *text[STORE_KINDS];
    bool arrays[STORE_KINDS]; /* the text takes every parameter as an array of all rows */
    const struct query_column *params;
    size_t param_count, param_size;
    const struct query_column *columns;
    size_t column_count, row_size;
    size_t number; /* unique: the index of its prepared statement */
};

#define STORE_QUERIES_MAX 192

/* Called for each result row; the bytes in it are valid only during the call. */
typedef enum status store_row_fn(void *ctx, const void *row, struct why *why);

struct store;

enum store_untidy { STORE_TIDY, STORE_TIDY_WHEN_QUIET, STORE_TIDY_NOW };

struct store_ops {
    enum status (*begin)(struct store *store, struct why *why);
    enum status (*commit)(struct store *store, struct why *why);
    void (*rollback)(struct store *store);
    enum status (*run)(struct store *store, const struct query *query, const void *params, size_t count, store_row_fn *on_row,
                       void *ctx, int64_t *ret_changed, struct why *why);
    /* Runs a text of several statements: migrations. Inside a transaction. */
    enum status (*script)(struct store *store, const char *text, struct why *why);
    void (*close)(struct store *store);
    /* NULL where every statement is run at once. */
    enum status (*queue)(struct store *store, const struct query *query, const void *params, size_t count, store_row_fn *on_row,
                         void *ctx, struct why *why);
    enum status (*flush)(struct store *store, struct why *why);
};

/* See store_untidy() and store_tidy(). */
struct store_keeping {
    enum store_untidy (*untidy)(struct store *store);
    void (*tidy)(struct store *store);
};

struct store {
    const struct store_ops *ops;
    const struct store_keeping *keeping; /* NULL where the database keeps its own house */
    enum store_kind kind;
    bool in_transaction;
    int64_t clock_us; /* PostgreSQL: the server's clock, read with the first answer of each transaction; 0 where there is none */
    bool lost;        /* the connection is gone; close it and open another */
};

enum store_access { STORE_WRITE, STORE_READ };

/* The one writer of a SQLite data directory: takes the lock file, does boot step 0, opens, checks after an unclean stop.
 * CONFLICT when another process has it. `dir` is made when missing. */
CHECKED enum status store_open_sqlite(const char *dir, enum store_access access, struct store **ret_store, struct why *why);

/* What happens when fsync fails: the process ends at once. A simulation ends its world instead. */
extern void (*store_fsync_failed)(void);

/* Once, before the first store is opened and before threads start. */
void store_setup(void);

/* One database file on a file layer of SQLite's. */
struct store_sqlite_file {
    const char *path;
    const char *vfs;      /* NULL for the system's */
    bool exclusive;       /* nobody else will ever open it: needs no shared memory, which a simulated disk does not have */
    int checkpoint_pages; /* 0 for the default */
};
CHECKED enum status store_open_sqlite_file(const struct store_sqlite_file *file, enum store_access access,
                                           struct store **ret_store, struct why *why);

/* A connection; `lane` is taken with an advisory lock for as long as it lives (-1 for any free one, `ret_lane` says which);
 * STORE_READ takes none. RETRY when the server cannot be reached. */
CHECKED enum status store_open_postgres(const char *url, enum store_access access, int lane, struct store **ret_store,
                                        int *ret_lane, struct why *why);

/* A stand-in for a connection that could not be made: every call is RETRY, `lost` is set. */
struct store *store_none(void);

CHECKED enum status store_begin(struct store *store, struct why *why);
CHECKED enum status store_commit(struct store *store, struct why *why);
void store_rollback(struct store *store);

/* Runs `query` for `count` parameter structs (NULL and 0 for a query without parameters: it runs once). `on_row`, `ret_changed` may be NULL. */
CHECKED enum status store_run(struct store *store, const struct query *query, const void *params, size_t count,
                              store_row_fn *on_row, void *ctx, int64_t *ret_changed, struct why *why);

/* Runs it now or, together with what follows, at the latest in store_flush(): until then `ctx` has to live. `params` may go at once. */
CHECKED enum status store_queue(struct store *store, const struct query *query, const void *params, size_t count,
                                store_row_fn *on_row, void *ctx, struct why *why);
CHECKED enum status store_flush(struct store *store, struct why *why);

CHECKED enum status store_script(struct store *store, const char *text, struct why *why);
void store_close(struct store *store);

/* House-keeping that no answer has to wait for, outside a transaction. SQLite: the write-ahead log has grown long and wants to be
 * copied into the database. */
enum store_untidy store_untidy(struct store *store);
void store_tidy(struct store *store);

/* Brings the schema to this program's version, each step in one transaction with its number. BROKEN when the data is newer. */
CHECKED enum status store_migrate(struct store *store, struct why *why);

/* The schema version this program has. */
int store_schema_version(void);

/* Disk space kept back so that work already accepted can be finished when the disk is full. */
void store_reserve_release(const char *dir);
bool store_reserve_refill(const char *dir);

/* Wraps a store so that tests can make the n-th operation fail. */
struct store_fault {
    int64_t countdown;  /* the operation that fails: 1 is the next; 0 never */
    enum status status; /* with which status */
    bool after;         /* the operation is done first, then reported as failed (a lost reply) */
    bool commit_only;   /* count only commits */
    int64_t operations; /* how many were seen */
};
struct store *store_wrap_fault(struct store *inner, struct store_fault *fault);

#endif
