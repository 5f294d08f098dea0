#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/id.h"
#include "base/log.h"
#include "queries.h"
#include "store/postgres_own.h"
#include "store/store.h"

#define PARAMS_MAX 40
#define ROW_SIZE_MAX 1024
#define ARRAY_SIZE_MAX (256u << 20)
#define LANE_LOCK_CLASS 1397050700
#define PENDING_MAX 64
#define PENDING_BYTES_MAX (1u << 20) /* with more than this it is sent before anything is added */

enum { OID_INT8 = 20, OID_TEXT = 25, OID_BYTEA = 17 };

/* A statement that was handed to libpq and whose result was not read yet. */
struct pending {
    const struct query *query;
    bool prepares; /* it only prepares the query */
    store_row_fn *on_row;
    void *ctx;
    int64_t *changed;
};

struct postgres_store {
    struct store store;
    PGconn *conn; /* in pipeline mode, except inside execute() */
    enum store_access access;
    bool prepared[STORE_QUERIES_MAX];
    struct buf values[PARAMS_MAX]; /* one per parameter, reused */
    struct pending pending[PENDING_MAX];
    size_t pending_count, pending_bytes;
    bool scripted;               /* this transaction may have changed the schema */
    bool clock_due;              /* a transaction was begun and the server's clock not read since */
    bool committed;              /* the server has said COMMIT */
    const struct query *refused; /* the statement that the server itself refused in the last round trip */
};

static struct postgres_store *of(struct store *store)
{
    return (struct postgres_store *)store;
}

/* ---- errors ---- */

static bool starts(const char *state, const char *prefix)
{
    return strncmp(state, prefix, strlen(prefix)) == 0;
}

/* By SQLSTATE: what may succeed when tried again, what is full, what contradicts; everything else is a defect. */
static enum status status_of(const char *state)
{
    static const struct {
        const char *prefix;
        enum status status;
    } table[] = {
        {"40", RETRY},       /* serialization failure, deadlock */
        {"55P03", RETRY},    /* lock_timeout */
        {"57", RETRY},       /* the server is going down, or cancelled us */
        {"08", RETRY},       /* connection */
        {"25006", RETRY},    /* a standby: reconnect until the primary answers */
        {"55000", RETRY},    /* a standby that is being promoted */
        {"53100", FULL},     /* the server's disk */
        {"53", RETRY},       /* its memory, its connections */
        {"23", CONFLICT},    /* a unique key */
        {"22P02", CONFLICT}, /* what was expected is not so: intent_hold, tombstone_none */
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (starts(state, table[i].prefix))
            return table[i].status;
    return BROKEN;
}

static enum status lost(struct postgres_store *postgres, struct why *why)
{
    postgres->store.lost = true;
    return why_set(why, RETRY, "the connection to PostgreSQL is lost");
}

/* A statement that was prepared for a schema which has changed since, or that the server does not have: a new connection prepares it anew. */
static bool is_stale(const PGresult *result, const char *state)
{
    const char *function = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);
    return starts(state, "26000") ||
           (starts(state, "0A000") && function != NULL && strcmp(function, "RevalidateCachedQuery") == 0);
}

/* Takes the result. */
static enum status fail(struct postgres_store *postgres, PGresult *result, const char *doing, struct why *why)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (state == NULL || PQstatus(postgres->conn) == CONNECTION_BAD) {
        PQclear(result);
        return lost(postgres, why);
    }
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    bool stale = is_stale(result, state);
    if (stale || starts(state, "57P") || starts(state, "25006"))
        postgres->store.lost = true;
    enum status status = stale ? RETRY : status_of(state);
    status = why_set(why, status, "PostgreSQL, %s: %s (%s)", doing, message != NULL ? message : "no message", state);
    PQclear(result);
    return status;
}

/* One text, several statements perhaps, in a round trip of its own. Nothing may be pending. */
static enum status execute(struct postgres_store *postgres, const char *sql, struct why *why)
{
    ASSERT(postgres->pending_count == 0);
    if (PQexitPipelineMode(postgres->conn) != 1)
        return lost(postgres, why);
    PGresult *result = PQexec(postgres->conn, sql);
    ExecStatusType code = PQresultStatus(result);
    enum status status = OK;
    if (code != PGRES_COMMAND_OK && code != PGRES_TUPLES_OK)
        status = fail(postgres, result, "statement", why);
    else
        PQclear(result);
    return PQenterPipelineMode(postgres->conn) == 1 || status != OK ? status : lost(postgres, why);
}

/* ---- parameters ---- */

static void add_u32(struct buf *buf, uint32_t n)
{
    n = htonl(n);
    buf_add(buf, (struct bytes){(const char *)&n, sizeof n});
}

static void add_value(struct buf *buf, const struct query_column *column, const char *row)
{
    if (column->type != COLUMN_INT) {
        buf_add(buf, *(const struct bytes *)(row + column->offset));
        return;
    }
    uint64_t n = htobe64((uint64_t) * (const int64_t *)(row + column->offset));
    buf_add(buf, (struct bytes){(const char *)&n, sizeof n});
}

static bool is_null(const struct query_column *column, const char *row)
{
    return column->type != COLUMN_INT && ((const struct bytes *)(row + column->offset))->at == NULL;
}

static uint32_t value_size(const struct query_column *column, const char *row)
{
    return column->type == COLUMN_INT ? 8 : (uint32_t)((const struct bytes *)(row + column->offset))->len;
}

/* The binary form of a one-dimensional array: dimensions, has-nulls, element type, length, lower bound, then each element. */
static void add_array(struct buf *buf, const struct query_column *column, const char *rows, size_t stride, size_t count)
{
    static const uint32_t oids[] = {[COLUMN_INT] = OID_INT8, [COLUMN_TEXT] = OID_TEXT, [COLUMN_BYTES] = OID_BYTEA};
    add_u32(buf, 1);
    add_u32(buf, 1);
    add_u32(buf, oids[column->type]);
    add_u32(buf, (uint32_t)count);
    add_u32(buf, 1);
    for (size_t i = 0; i < count; i++) {
        const char *row = rows + i * stride;
        if (is_null(column, row)) {
            add_u32(buf, UINT32_MAX);
            continue;
        }
        add_u32(buf, value_size(column, row));
        add_value(buf, column, row);
    }
}

/* ---- results ---- */

static void read_one(const PGresult *result, int row_number, int position, const struct query_column *column, char *row)
{
    const char *value = PQgetvalue(result, row_number, position);
    size_t len = (size_t)PQgetlength(result, row_number, position);
    if (column->type == COLUMN_INT) {
        uint64_t n;
        ASSERT(len == sizeof n);
        memcpy(&n, value, sizeof n);
        *(int64_t *)(row + column->offset) = (int64_t)be64toh(n);
        return;
    }
    bool null = PQgetisnull(result, row_number, position);
    *(struct bytes *)(row + column->offset) = null ? BYTES_NONE : (struct bytes){value, len};
}

static enum status give_rows(const PGresult *result, const struct query *query, store_row_fn *on_row, void *ctx, struct why *why)
{
    _Alignas(16) char row[ROW_SIZE_MAX];
    if (on_row == NULL || query->column_count == 0)
        return OK;
    ASSERT(PQnfields(result) == (int)query->column_count);
    for (int n = 0; n < PQntuples(result); n++) {
        for (size_t i = 0; i < query->column_count; i++)
            read_one(result, n, (int)i, &query->columns[i], row);
        TRY(on_row(ctx, row, why));
    }
    return OK;
}

static enum status give_result(PGresult *result, const struct pending *pending, struct why *why)
{
    int64_t n = 0;
    if (pending->changed != NULL && bytes_to_i64(bytes_of(PQcmdTuples(result)), &n))
        *pending->changed += n;
    enum status status = give_rows(result, pending->query, pending->on_row, pending->ctx, why);
    PQclear(result);
    return status;
}

/* ---- the pipeline: statements are queued and go to the server together, with one answer to wait for ---- */

/* Reads what the server says to one statement. `status` is that of those before it: once one has failed, the server skips the
 * others, and once a caller has refused a row, no more are given. */
static enum status take_result(struct postgres_store *postgres, const struct pending *pending, enum status status,
                               struct why *why)
{
    PGresult *result = PQgetResult(postgres->conn);
    ExecStatusType code = PQresultStatus(result);
    bool done = code == PGRES_COMMAND_OK || code == PGRES_TUPLES_OK;
    if (pending->prepares)
        postgres->prepared[pending->query->number] = done;
    if (done && pending->query == &TRANSACTION_COMMIT && !pending->prepares)
        postgres->committed = strcmp(PQcmdStatus(result), "COMMIT") == 0;
    if (!done && code != PGRES_PIPELINE_ABORTED && status == OK) {
        if (PQresultErrorField(result, PG_DIAG_SQLSTATE) != NULL)
            postgres->refused = pending->query;
        status = fail(postgres, result, pending->query->name, why);
    } else if (done && status == OK && !pending->prepares) {
        status = give_result(result, pending, why);
    } else {
        PQclear(result);
    }
    if (postgres->store.lost)
        return status;
    PGresult *end = PQgetResult(postgres->conn); /* none: each statement has one result */
    PQclear(end);
    return end == NULL ? status : lost(postgres, why);
}

static enum status take_results(struct postgres_store *postgres, size_t count, struct why *why)
{
    enum status status = OK;
    for (size_t i = 0; i < count && !postgres->store.lost; i++)
        status = take_result(postgres, &postgres->pending[i], status, why);
    if (postgres->store.lost)
        return status;
    PGresult *sync = PQgetResult(postgres->conn);
    bool synced = PQresultStatus(sync) == PGRES_PIPELINE_SYNC;
    PQclear(sync);
    return synced ? status : lost(postgres, why);
}

/* Sends what is queued and reads all results. The first failure is the one that is told. */
static enum status flush(struct postgres_store *postgres, struct why *why)
{
    size_t count = postgres->pending_count;
    postgres->pending_count = postgres->pending_bytes = 0;
    postgres->refused = NULL;
    if (postgres->store.lost || (count > 0 && PQpipelineSync(postgres->conn) != 1))
        return lost(postgres, why);
    return count > 0 ? take_results(postgres, count, why) : OK;
}

static void note_pending(struct postgres_store *postgres, struct pending pending)
{
    ASSERT(postgres->pending_count < PENDING_MAX);
    postgres->pending[postgres->pending_count++] = pending;
}

static enum status prepare(struct postgres_store *postgres, const struct query *query, struct why *why)
{
    if (postgres->prepared[query->number])
        return OK;
    if (PQsendPrepare(postgres->conn, query->name, query->text[STORE_POSTGRES], (int)query->param_count, NULL) != 1)
        return lost(postgres, why);
    postgres->prepared[query->number] = true; /* until its result says otherwise */
    note_pending(postgres, (struct pending){.query = query, .prepares = true});
    return OK;
}

/* libpq copies the parameters and sends them when there is a packet full of them. When the server does not read since it waits
 * for us to read, libpq reads into its own memory: neither side waits for ever. */
static enum status send_params(struct postgres_store *postgres, const struct query *query, const char *rows, size_t count,
                               struct why *why)
{
    const char *values[PARAMS_MAX];
    int lengths[PARAMS_MAX], formats[PARAMS_MAX];
    for (size_t i = 0; i < query->param_count; i++) {
        struct buf *buf = &postgres->values[i];
        buf_clear(buf);
        if (query->arrays[STORE_POSTGRES])
            add_array(buf, &query->params[i], rows, query->param_size, count);
        else
            add_value(buf, &query->params[i], rows);
        if (buf->failed)
            return why_set(why, FULL, "the parameters of %s are too large", query->name);
        bool null = !query->arrays[STORE_POSTGRES] && is_null(&query->params[i], rows);
        values[i] = null ? NULL : buf_bytes(buf).at;
        lengths[i] = (int)buf->len;
        formats[i] = 1;
        postgres->pending_bytes += buf->len;
    }
    if (PQsendQueryPrepared(postgres->conn, query->name, (int)query->param_count, values, lengths, formats, 1) != 1)
        return lost(postgres, why);
    return OK;
}

/* Room for two statements, to prepare and to run, and for the clock behind them. */
static enum status make_room(struct postgres_store *postgres, struct why *why)
{
    if (postgres->store.lost)
        return lost(postgres, why);
    bool full = postgres->pending_count + 4 > PENDING_MAX || postgres->pending_bytes > PENDING_BYTES_MAX;
    return full ? flush(postgres, why) : OK;
}

static enum status add(struct postgres_store *postgres, const char *rows, size_t count, struct pending pending, struct why *why)
{
    TRY(make_room(postgres, why));
    TRY(prepare(postgres, pending.query, why));
    TRY(send_params(postgres, pending.query, rows, count, why));
    note_pending(postgres, pending);
    return OK;
}

/* Whoever was to get them may be gone before they come. */
static void forget_answers(struct postgres_store *postgres)
{
    for (size_t i = 0; i < postgres->pending_count; i++) {
        postgres->pending[i].on_row = NULL;
        postgres->pending[i].changed = NULL;
    }
}

/* When one cannot be added, its caller gives up without a flush: also what it has queued before is nobody's then. */
static enum status add_all(struct postgres_store *postgres, const char *rows, size_t count, struct pending pending,
                           struct why *why)
{
    const struct query *query = pending.query;
    ASSERT(query->param_count <= PARAMS_MAX);
    ASSERT(query->row_size <= ROW_SIZE_MAX);
    size_t step = query->arrays[STORE_POSTGRES] ? count : 1;
    rows = rows != NULL ? rows : ""; /* a query without parameters has none to point to */
    enum status status = OK;
    for (size_t i = 0; i < count && status == OK; i += step)
        status = add(postgres, rows == NULL ? NULL : rows + i * query->param_size, step, pending, why);
    if (status != OK)
        forget_answers(postgres);
    return status;
}

static enum status take_clock(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct postgres_store *postgres = ctx;
    postgres->store.clock_us = ((const struct r_clock_get *)row)->us;
    postgres->clock_due = false;
    return OK;
}

/* The clock comes last, so that waiting for a lock does not make it old. */
static enum status flush_with_clock(struct postgres_store *postgres, struct why *why)
{
    if (postgres->clock_due)
        TRY(add(postgres, NULL, 1, (struct pending){.query = &CLOCK_GET, .on_row = take_clock, .ctx = postgres}, why));
    return flush(postgres, why);
}

static enum status postgres_queue(struct store *store, const struct query *query, const void *params, size_t count,
                                  store_row_fn *on_row, void *ctx, struct why *why)
{
    return add_all(of(store), params, count, (struct pending){.query = query, .on_row = on_row, .ctx = ctx}, why);
}

static enum status postgres_flush(struct store *store, struct why *why)
{
    return flush_with_clock(of(store), why);
}

static enum status run_now(struct postgres_store *postgres, const char *rows, size_t count, const struct pending *pending,
                           struct why *why)
{
    TRY(add_all(postgres, rows, count, *pending, why));
    return flush_with_clock(postgres, why);
}

/* Defined below with the opening. */
static enum status connect_again(struct postgres_store *postgres, struct why *why);

static enum status postgres_run(struct store *store, const struct query *query, const void *params, size_t count,
                                store_row_fn *on_row, void *ctx, int64_t *ret_changed, struct why *why)
{
    struct postgres_store *postgres = of(store);
    int64_t changed = 0;
    struct pending pending = {.query = query, .on_row = on_row, .ctx = ctx, .changed = &changed};
    enum status status = run_now(postgres, params, count, &pending, why);
    /* Nothing depends on a reader's connection, and no row was given: after a fail-over it asks the new server. */
    if (status == RETRY && store->lost && postgres->access == STORE_READ) {
        TRY(connect_again(postgres, why));
        status = run_now(postgres, params, count, &pending, why);
    }
    if (status == OK)
        *ret_changed = changed;
    return status;
}

/* ---- transactions ---- */

static enum status postgres_begin(struct store *store, struct why *why)
{
    struct postgres_store *postgres = of(store);
    ASSERT(postgres->pending_count == 0);
    TRY(add(postgres, NULL, 1, (struct pending){.query = &TRANSACTION_BEGIN}, why));
    postgres->clock_due = true;
    postgres->scripted = false;
    return OK;
}

/* COMMIT goes with the writes. When the server has refused one of them, it has skipped the COMMIT. When the connection breaks
 * after the COMMIT may have been sent and before its answer, nobody can tell whether it was done: UNKNOWN. */
static enum status postgres_commit(struct store *store, struct why *why)
{
    struct postgres_store *postgres = of(store);
    postgres->clock_due = postgres->committed = false;
    TRY(make_room(postgres, why));
    postgres->refused = NULL;
    enum status status = add(postgres, NULL, 1, (struct pending){.query = &TRANSACTION_COMMIT}, why);
    if (status == OK)
        status = flush(postgres, why);
    if (postgres->committed)
        return OK;
    bool refused_before = postgres->refused != NULL && postgres->refused != &TRANSACTION_COMMIT;
    if (store->lost && !refused_before)
        return why_set(why, UNKNOWN, "the connection to PostgreSQL was lost during COMMIT");
    return status != OK ? status : why_set(why, RETRY, "PostgreSQL rolled the transaction back");
}

static enum status forget_prepared(struct postgres_store *postgres, struct why *why)
{
    TRY(execute(postgres, "DEALLOCATE ALL", why));
    memset(postgres->prepared, 0, sizeof postgres->prepared);
    return OK;
}

/* What is still queued may fail, and then the ROLLBACK behind it is skipped like everything else: a second one is not. */
static void end_transaction(struct postgres_store *postgres)
{
    for (int try = 0; try < 3 && !postgres->store.lost; try++) {
        if (postgres->pending_count == 0 && PQtransactionStatus(postgres->conn) == PQTRANS_IDLE)
            return;
        if (add(postgres, NULL, 1, (struct pending){.query = &TRANSACTION_ROLLBACK}, NULL) == OK)
            (void)flush(postgres, NULL);
    }
    (void)lost(postgres, NULL);
}

static void postgres_rollback(struct store *store)
{
    struct postgres_store *postgres = of(store);
    postgres->clock_due = false;
    forget_answers(postgres);
    end_transaction(postgres);
    if (postgres->scripted && !store->lost)
        (void)forget_prepared(postgres, NULL);
}

/* It may change the schema, so what was prepared before it is prepared anew; after a rollback once more. */
static enum status postgres_script(struct store *store, const char *text, struct why *why)
{
    struct postgres_store *postgres = of(store);
    TRY(flush_with_clock(postgres, why));
    postgres->scripted = true;
    TRY(execute(postgres, text, why));
    return forget_prepared(postgres, why);
}

/* ---- opening ---- */

static void postgres_close(struct store *store)
{
    struct postgres_store *postgres = of(store);
    PQfinish(postgres->conn);
    for (size_t i = 0; i < PARAMS_MAX; i++)
        buf_release(&postgres->values[i]);
    free(postgres);
}

static const struct store_ops postgres_ops = {
    postgres_begin,  postgres_commit, postgres_rollback, postgres_run,
    postgres_script, postgres_close,  postgres_queue,    postgres_flush,
};

enum status postgres_unreachable(const PGconn *conn, struct why *why)
{
    char message[200];
    snprintf(message, sizeof message, "%s", PQerrorMessage(conn));
    message[strcspn(message, "\n")] = '\0';
    return why_set(why, RETRY, "PostgreSQL cannot be reached: %s", message);
}

PGconn *postgres_connect(const char *url)
{
    const char *names[] = {"connect_timeout",  "keepalives_idle",  "keepalives_interval",
                           "keepalives_count", "tcp_user_timeout", "application_name",
                           "client_encoding",  "dbname",           NULL};
    const char *values[] = {"5", "10", "5", "3", "15000", "semel", "UTF8", url, NULL};
    return PQconnectdbParams(names, values, 1);
}

/* Of a new connection. */
static enum status enter(struct postgres_store *postgres, struct why *why)
{
    if (PQstatus(postgres->conn) == CONNECTION_OK && PQenterPipelineMode(postgres->conn) == 1)
        return OK;
    return postgres_unreachable(postgres->conn, why);
}

/* Durable commits, our own schema, and plans that never scan: every statement of the writer has an index. */
static enum status configure(struct postgres_store *postgres, struct why *why)
{
    TRY(execute(
        postgres,
        "SET search_path = semel; SET synchronous_commit = on; SET lock_timeout = '10s'; SET client_min_messages = warning",
        why));
    if (postgres->access == STORE_READ)
        return execute(postgres, "SET default_transaction_read_only = on; SET statement_timeout = '10s'", why);
    return execute(postgres,
                   "SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off; SET plan_cache_mode = "
                   "force_generic_plan; SET idle_in_transaction_session_timeout = '60s'",
                   why);
}

static enum status connect_again(struct postgres_store *postgres, struct why *why)
{
    postgres->pending_count = postgres->pending_bytes = 0;
    memset(postgres->prepared, 0, sizeof postgres->prepared);
    PQreset(postgres->conn);
    TRY(enter(postgres, why));
    postgres->store.lost = false;
    enum status status = configure(postgres, why);
    postgres->store.lost = status != OK;
    return status;
}

static enum status take_locked(void *ctx, const void *row, struct why *why)
{
    (void)why;
    *(int64_t *)ctx = ((const struct r_lane_lock *)row)->locked;
    return OK;
}

/* A lane is one writer's hash chain; its lock lives as long as the connection, so whoever has it knows that no earlier writer of this
 * lane can still commit. A new writer begins its search at a place of its own, so that a writer which lost its connection finds its lane free. */
static enum status take_lane(struct postgres_store *postgres, int wanted, int *ret_lane, struct why *why)
{
    int first = wanted >= 0 ? wanted : PQbackendPID(postgres->conn) % ID_LANES, tries = wanted >= 0 ? 1 : ID_LANES;
    for (int i = 0; i < tries; i++) {
        int lane = (first + i) % ID_LANES;
        int64_t taken = 0, changed;
        struct q_lane_lock lock = {LANE_LOCK_CLASS, lane};
        TRY(postgres_run(&postgres->store, &LANE_LOCK, &lock, 1, take_locked, &taken, &changed, why));
        if (taken != 0) {
            *ret_lane = lane;
            return OK;
        }
    }
    return why_set(why, RETRY, "no free writer lane in this database");
}

enum status store_open_postgres(const char *url, enum store_access access, int lane, struct store **ret_store, int *ret_lane,
                                struct why *why)
{
    struct postgres_store *postgres = calloc(1, sizeof *postgres);
    if (postgres == NULL)
        return why_set(why, FULL, "no memory to open the database");
    postgres->store = (struct store){.ops = &postgres_ops, .kind = STORE_POSTGRES};
    postgres->access = access;
    for (size_t i = 0; i < PARAMS_MAX; i++)
        buf_init(&postgres->values[i], ARRAY_SIZE_MAX);
    postgres->conn = postgres_connect(url);
    enum status status = enter(postgres, why);
    if (status == OK)
        status = configure(postgres, why);
    if (status == OK && access == STORE_WRITE)
        status = take_lane(postgres, lane, ret_lane, why);
    if (status != OK) {
        postgres_close(&postgres->store);
        return status;
    }
    *ret_store = &postgres->store;
    return OK;
}
