#include <arpa/inet.h>
#include <endian.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/id.h"
#include "base/log.h"
#include "store/store.h"

#define PARAMS_MAX 40
#define ROW_SIZE_MAX 1024
#define ARRAY_SIZE_MAX (256u << 20)
#define LANE_LOCK_CLASS 1397050700

enum { OID_INT8 = 20, OID_TEXT = 25, OID_BYTEA = 17 };

struct postgres_store {
    struct store store;
    PGconn *conn;
    bool prepared[STORE_QUERIES_MAX];
    struct buf values[PARAMS_MAX]; /* one per parameter, reused */
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
        {"40", RETRY},    /* serialization failure, deadlock */
        {"55P03", RETRY}, /* lock_timeout */
        {"57", RETRY},    /* the server is going down, or cancelled us */
        {"08", RETRY},    /* connection */
        {"25006", RETRY}, /* a standby: reconnect until the primary answers */
        {"55000", RETRY}, /* a standby that is being promoted */
        {"53100", FULL},  {"53", RETRY}, {"23", CONFLICT},
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

/* Takes the result. */
static enum status fail(struct postgres_store *postgres, PGresult *result, const char *doing, struct why *why)
{
    if (PQstatus(postgres->conn) == CONNECTION_BAD) {
        PQclear(result);
        return lost(postgres, why);
    }
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    enum status status = status_of(state != NULL ? state : "");
    if (state != NULL && (starts(state, "57P") || starts(state, "25006")))
        postgres->store.lost = true;
    status = why_set(why, status, "PostgreSQL, %s: %s (%s)", doing, message != NULL ? message : PQerrorMessage(postgres->conn),
                     state != NULL ? state : "no code");
    PQclear(result);
    return status;
}

static enum status execute(struct postgres_store *postgres, const char *sql, struct why *why)
{
    PGresult *result = PQexec(postgres->conn, sql);
    ExecStatusType code = PQresultStatus(result);
    if (code != PGRES_COMMAND_OK && code != PGRES_TUPLES_OK)
        return fail(postgres, result, "statement", why);
    PQclear(result);
    return OK;
}

/* ---- transactions ---- */

static enum status postgres_begin(struct store *store, struct why *why)
{
    struct postgres_store *postgres = of(store);
    PGresult *result = PQexec(postgres->conn, "BEGIN; SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        return fail(postgres, result, "begin", why);
    bool parsed = bytes_to_i64(bytes_of(PQgetvalue(result, 0, 0)), &store->clock_us);
    PQclear(result);
    ASSERT(parsed);
    return OK;
}

/* When the connection breaks here nobody can tell whether the COMMIT was done: UNKNOWN. */
static enum status postgres_commit(struct store *store, struct why *why)
{
    struct postgres_store *postgres = of(store);
    PGresult *result = PQexec(postgres->conn, "COMMIT");
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        enum status status = fail(postgres, result, "commit", why);
        return store->lost ? why_set(why, UNKNOWN, "the connection to PostgreSQL was lost during COMMIT") : status;
    }
    bool committed = strcmp(PQcmdStatus(result), "COMMIT") == 0;
    PQclear(result);
    return committed ? OK : why_set(why, RETRY, "PostgreSQL rolled the transaction back");
}

static void postgres_rollback(struct store *store)
{
    struct postgres_store *postgres = of(store);
    if (!store->lost && PQtransactionStatus(postgres->conn) != PQTRANS_IDLE)
        PQclear(PQexec(postgres->conn, "ROLLBACK"));
}

static enum status postgres_script(struct store *store, const char *text, struct why *why)
{
    return execute(of(store), text, why);
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

static enum status prepare(struct postgres_store *postgres, const struct query *query, struct why *why)
{
    if (postgres->prepared[query->number])
        return OK;
    PGresult *result = PQprepare(postgres->conn, query->name, query->text[STORE_POSTGRES], (int)query->param_count, NULL);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        return fail(postgres, result, query->name, why);
    PQclear(result);
    postgres->prepared[query->number] = true;
    return OK;
}

static enum status send_params(struct postgres_store *postgres, const struct query *query, const char *rows, size_t count,
                               PGresult **ret_result, struct why *why)
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
    }
    *ret_result = PQexecPrepared(postgres->conn, query->name, (int)query->param_count, values, lengths, formats, 1);
    return OK;
}

static enum status run_once(struct postgres_store *postgres, const struct query *query, const char *rows, size_t count,
                            store_row_fn *on_row, void *ctx, int64_t *changed, struct why *why)
{
    PGresult *result = NULL;
    TRY(send_params(postgres, query, rows, count, &result, why));
    ExecStatusType code = PQresultStatus(result);
    if (code != PGRES_COMMAND_OK && code != PGRES_TUPLES_OK)
        return fail(postgres, result, query->name, why);
    enum status status = give_rows(result, query, on_row, ctx, why);
    int64_t n = 0;
    if (code == PGRES_COMMAND_OK && bytes_to_i64(bytes_of(PQcmdTuples(result)), &n))
        *changed += n;
    PQclear(result);
    return status;
}

static enum status postgres_run(struct store *store, const struct query *query, const void *params, size_t count,
                                store_row_fn *on_row, void *ctx, int64_t *ret_changed, struct why *why)
{
    struct postgres_store *postgres = of(store);
    ASSERT(query->param_count <= PARAMS_MAX);
    ASSERT(query->row_size <= ROW_SIZE_MAX);
    TRY(prepare(postgres, query, why));
    int64_t changed = 0;
    size_t step = query->arrays[STORE_POSTGRES] ? count : 1;
    for (size_t i = 0; i < count; i += step)
        TRY(run_once(postgres, query, (const char *)params + i * query->param_size, step, on_row, ctx, &changed, why));
    *ret_changed = changed;
    return OK;
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
    postgres_begin, postgres_commit, postgres_rollback, postgres_run, postgres_script, postgres_close,
};

static enum status connect_to(struct postgres_store *postgres, const char *url, struct why *why)
{
    const char *names[] = {
        "connect_timeout", "keepalives_idle", "tcp_user_timeout", "application_name", "client_encoding", "dbname", NULL};
    const char *values[] = {"5", "10", "15000", "semel", "UTF8", url, NULL};
    postgres->conn = PQconnectdbParams(names, values, 1);
    if (PQstatus(postgres->conn) == CONNECTION_OK)
        return OK;
    char message[200];
    snprintf(message, sizeof message, "%s", PQerrorMessage(postgres->conn));
    message[strcspn(message, "\n")] = '\0';
    return why_set(why, RETRY, "PostgreSQL cannot be reached: %s", message);
}

/* Durable commits, our own schema, and plans that never scan: every statement of the writer has an index. */
static enum status configure(struct postgres_store *postgres, enum store_access access, struct why *why)
{
    TRY(execute(
        postgres,
        "SET search_path = semel; SET synchronous_commit = on; SET lock_timeout = '10s'; SET client_min_messages = warning",
        why));
    if (access == STORE_READ)
        return execute(postgres, "SET default_transaction_read_only = on; SET statement_timeout = '10s'", why);
    return execute(
        postgres,
        "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; SET idle_in_transaction_session_timeout = '60s'",
        why);
}

static enum status try_lane(struct postgres_store *postgres, int lane, bool *ret_taken, struct why *why)
{
    char sql[96];
    snprintf(sql, sizeof sql, "SELECT pg_try_advisory_lock(%d, %d)", LANE_LOCK_CLASS, lane);
    PGresult *result = PQexec(postgres->conn, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        return fail(postgres, result, "lane lock", why);
    *ret_taken = PQgetvalue(result, 0, 0)[0] == 't';
    PQclear(result);
    return OK;
}

/* A lane is one writer's hash chain; its lock lives as long as the connection, so whoever has it knows that no earlier writer of
 * this lane can still commit. A new writer begins its search at a place of its own, so that a writer which lost its connection
 * finds its lane free. */
static enum status take_lane(struct postgres_store *postgres, int wanted, int *ret_lane, struct why *why)
{
    int first = wanted >= 0 ? wanted : PQbackendPID(postgres->conn) % ID_LANES, tries = wanted >= 0 ? 1 : ID_LANES;
    for (int i = 0; i < tries; i++) {
        int lane = (first + i) % ID_LANES;
        bool taken = false;
        TRY(try_lane(postgres, lane, &taken, why));
        if (taken) {
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
    for (size_t i = 0; i < PARAMS_MAX; i++)
        buf_init(&postgres->values[i], ARRAY_SIZE_MAX);
    enum status status = connect_to(postgres, url, why);
    if (status == OK)
        status = configure(postgres, access, why);
    if (status == OK && access == STORE_WRITE)
        status = take_lane(postgres, lane, ret_lane, why);
    if (status != OK) {
        postgres_close(&postgres->store);
        return status;
    }
    *ret_store = &postgres->store;
    return OK;
}
