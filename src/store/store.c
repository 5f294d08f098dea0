#include "store/store.h"

#include "embedded.h"
#include "queries.h"

enum status store_begin(struct store *store, struct why *why)
{
    ASSERT(!store->in_transaction);
    TRY(store->ops->begin(store, why));
    store->in_transaction = true;
    return OK;
}

enum status store_commit(struct store *store, struct why *why)
{
    ASSERT(store->in_transaction);
    enum status status = store->ops->commit(store, why);
    if (status != OK)
        store->ops->rollback(store);
    store->in_transaction = false;
    return status;
}

void store_rollback(struct store *store)
{
    if (store->in_transaction)
        store->ops->rollback(store);
    store->in_transaction = false;
}

static enum status run_now(struct store *store, const struct query *query, const void *params, size_t count, store_row_fn *on_row,
                           void *ctx, int64_t *ret_changed, struct why *why)
{
    int64_t changed = 0;
    TRY(store->ops->run(store, query, params, query->param_count == 0 ? 1 : count, on_row, ctx, &changed, why));
    if (ret_changed != NULL)
        *ret_changed = changed;
    return OK;
}

enum status store_queue(struct store *store, const struct query *query, const void *params, size_t count, store_row_fn *on_row,
                        void *ctx, struct why *why)
{
    if (query->param_count > 0 && count == 0)
        return OK;
    ASSERT((query->param_count == 0) == (params == NULL));
    if (store->ops->queue == NULL)
        return run_now(store, query, params, count, on_row, ctx, NULL, why);
    return store->ops->queue(store, query, params, query->param_count == 0 ? 1 : count, on_row, ctx, why);
}

enum status store_flush(struct store *store, struct why *why)
{
    return store->ops->flush != NULL ? store->ops->flush(store, why) : OK;
}

enum status store_run(struct store *store, const struct query *query, const void *params, size_t count, store_row_fn *on_row,
                      void *ctx, int64_t *ret_changed, struct why *why)
{
    if (on_row == NULL && ret_changed == NULL && store->in_transaction)
        return store_queue(store, query, params, count, NULL, NULL, why);
    if (query->param_count > 0 && count == 0)
        return OK;
    ASSERT((query->param_count == 0) == (params == NULL));
    return run_now(store, query, params, count, on_row, ctx, ret_changed, why);
}

enum status store_script(struct store *store, const char *text, struct why *why)
{
    return store->ops->script(store, text, why);
}

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    store_rollback(store);
    store->ops->close(store);
}

enum store_untidy store_untidy(struct store *store)
{
    return store->keeping != NULL ? store->keeping->untidy(store) : STORE_TIDY;
}

void store_tidy(struct store *store)
{
    ASSERT(!store->in_transaction);
    if (store->keeping != NULL)
        store->keeping->tidy(store);
}

/* ---- no connection ---- */

static enum status none_act(struct store *store, struct why *why)
{
    (void)store;
    return why_set(why, RETRY, "there is no connection to the database");
}

static void none_drop(struct store *store)
{
    (void)store;
}

static enum status none_run(struct store *store, const struct query *query, const void *params, size_t count,
                            store_row_fn *on_row, void *ctx, int64_t *ret_changed, struct why *why)
{
    (void)query, (void)params, (void)count, (void)on_row, (void)ctx, (void)ret_changed;
    return none_act(store, why);
}

static enum status none_script(struct store *store, const char *text, struct why *why)
{
    (void)text;
    return none_act(store, why);
}

struct store *store_none(void)
{
    static const struct store_ops ops = {none_act, none_act, none_drop, none_run, none_script, none_drop, NULL, none_act};
    static struct store none = {.ops = &ops, .kind = STORE_POSTGRES, .lost = true};
    return &none;
}

/* ---- migrations ---- */

static const struct embedded *migrations(enum store_kind kind, size_t *ret_count)
{
    *ret_count = kind == STORE_SQLITE ? EMBEDDED_MIGRATIONS_SQLITE_COUNT : EMBEDDED_MIGRATIONS_POSTGRES_COUNT;
    return kind == STORE_SQLITE ? embedded_migrations_sqlite : embedded_migrations_postgres;
}

_Static_assert(EMBEDDED_MIGRATIONS_SQLITE_COUNT == EMBEDDED_MIGRATIONS_POSTGRES_COUNT, "both databases have the same migrations");

int store_schema_version(void)
{
    return EMBEDDED_MIGRATIONS_SQLITE_COUNT - 1; /* number 0 is the table of versions itself */
}

static enum status read_version(void *ctx, const void *row, struct why *why)
{
    const struct r_schema_version_get *got = row;
    if (!bytes_to_i64(got->value, ctx))
        return why_set(why, BROKEN, "the stored schema version is not a number");
    return OK;
}

static enum status migrate_in_transaction(struct store *store, struct why *why)
{
    size_t count;
    const struct embedded *steps = migrations(store->kind, &count);
    TRY(store_script(store, steps[0].data.at, why));
    int64_t version = 0;
    TRY(store_run(store, &SCHEMA_VERSION_GET, NULL, 0, read_version, &version, NULL, why));
    if (version >= (int64_t)count)
        return why_set(why, BROKEN, "the data has schema version %lld, but this semel knows only %d: use a newer semel",
                       (long long)version, store_schema_version());
    for (size_t i = (size_t)version + 1; i < count; i++) {
        if (store_script(store, steps[i].data.at, why) != OK)
            return why_add(why, BROKEN, "migration %s", steps[i].name);
    }
    char text[16];
    int len = snprintf(text, sizeof text, "%zu", count - 1);
    struct q_meta_put put = {BYTES("schema"), {text, (size_t)len}};
    return (size_t)version + 1 < count ? store_run(store, &META_PUT, &put, 1, NULL, NULL, NULL, why) : OK;
}

enum status store_migrate(struct store *store, struct why *why)
{
    TRY(store_begin(store, why));
    enum status status = OK;
    if (store->kind == STORE_POSTGRES) /* several nodes may start at once */
        status = store_script(store, "SELECT pg_advisory_xact_lock(1397050444)", why);
    if (status == OK)
        status = migrate_in_transaction(store, why);
    if (status != OK) {
        store_rollback(store);
        return status;
    }
    return store_commit(store, why);
}
