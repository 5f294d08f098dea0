#include "secret/secret.h"

#include <stdlib.h>

#include "secret/secret_own.h"

#define ROWS_ARENA_MAX ((size_t)512 << 20)

/* ---- names ---- */

bool secret_is_name(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-'))
            return false;
    }
    return name.len >= 1 && name.len <= SECRET_NAME_MAX && name.at[0] != '.' && name.at[0] != '-';
}

/* ---- opening and closing ---- */

enum status secrets_read_keys(struct secrets *secrets, struct why *why)
{
    struct master_keys *keys = NULL;
    if (secrets->key_path == NULL)
        return why_set(why, INVALID,
                       "secrets in PostgreSQL need a master key, the same on all nodes: start semel with --master-key FILE");
    enum status status = key_file_read(secrets->key_path, &keys, why);
    if (status == NOTHING)
        return why_set(why, NOTHING, "the master key %s is missing", secrets->key_path);
    if (status != OK)
        return status;
    master_keys_free(secrets->keys);
    secrets->keys = keys;
    return OK;
}

enum status secrets_open(const struct secrets_config *config, struct secrets **ret_secrets, struct why *why)
{
    struct secrets *secrets = calloc(1, sizeof *secrets);
    ASSERT(secrets != NULL);
    secrets->env = config->env;
    secrets->own_key = config->own_key;
    secrets->key_path = config->key_path != NULL ? strdup(config->key_path) : NULL;
    pthread_mutex_init(&secrets->lock, NULL);
    enum status status = secrets->key_path != NULL ? secrets_read_keys(secrets, why) : OK;
    if (status == NOTHING)
        status = secrets->own_key ? OK : INVALID;
    if (status == OK)
        *ret_secrets = secrets;
    else
        secrets_close(secrets);
    return status;
}

static void rows_free(struct secret_rows *rows)
{
    if (rows == NULL)
        return;
    arena_release(&rows->arena);
    free(rows->at);
    free(rows);
}

void secrets_close(struct secrets *secrets)
{
    if (secrets == NULL)
        return;
    master_keys_free(secrets->keys);
    rows_free(secrets->rows);
    pthread_mutex_destroy(&secrets->lock);
    free(secrets->key_path);
    free(secrets);
}

/* ---- the rows in memory ---- */

static enum status take_stamp(void *ctx, const void *row, struct why *why)
{
    (void)why;
    *(struct r_secret_stamp *)ctx = *(const struct r_secret_stamp *)row;
    return OK;
}

static enum status take_row(void *ctx, const void *row, struct why *why)
{
    struct secret_rows *rows = ctx;
    if (rows->count == rows->cap) {
        size_t cap = rows->cap == 0 ? 64 : rows->cap * 2;
        struct row_secret *at = cap <= 2 * SECRETS_MAX ? realloc(rows->at, cap * sizeof *at) : NULL;
        if (at == NULL)
            return why_set(why, FULL, "there is no memory for so many secrets");
        rows->at = at;
        rows->cap = cap;
    }
    struct row_secret *taken = &rows->at[rows->count++];
    *taken = *(const struct row_secret *)row;
    struct bytes *texts[] = {&taken->space, &taken->name, &taken->master, &taken->wrapped, &taken->sealed};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = arena_dup(&rows->arena, *texts[i]);
    return rows->arena.failed ? why_set(why, FULL, "there is no memory for so many secrets") : OK;
}

/* Nobody needs the keys behind the first one any more. Under the lock, with rows that were just read. */
static void retire_keys(struct secrets *secrets)
{
    struct master_keys *keys = secrets->keys;
    for (size_t i = 0; i < secrets->rows->count; i++)
        if (!bytes_is(secrets->rows->at[i].master, keys->at[0].id))
            return;
    memset(&keys->at[1], 0, (MASTER_KEYS_MAX - 1) * sizeof keys->at[0]);
    keys->count = 1;
    secrets->retire = false;
}

static bool is_current(struct secrets *secrets, const struct r_secret_stamp *stamp)
{
    pthread_mutex_lock(&secrets->lock);
    bool same =
        secrets->rows != NULL && secrets->rows->stamp.rows == stamp->rows && secrets->rows->stamp.changes == stamp->changes;
    pthread_mutex_unlock(&secrets->lock);
    return same;
}

enum status secrets_refresh(struct secrets *secrets, struct store *store, struct why *why)
{
    struct r_secret_stamp stamp = {0, 0};
    TRY(store_run(store, &SECRET_STAMP, NULL, 0, take_stamp, &stamp, NULL, why));
    if (is_current(secrets, &stamp))
        return OK;
    struct secret_rows *rows = calloc(1, sizeof *rows);
    ASSERT(rows != NULL);
    arena_init(&rows->arena, ROWS_ARENA_MAX);
    rows->stamp = stamp; /* from before the list: what changes in between is read again */
    enum status status = store_run(store, &SECRET_LIST, NULL, 0, take_row, rows, NULL, why);
    if (status != OK) {
        rows_free(rows);
        return status;
    }
    pthread_mutex_lock(&secrets->lock);
    struct secret_rows *old = secrets->rows;
    bool newer = old == NULL || old->stamp.changes < stamp.changes;
    if (newer)
        secrets->rows = rows;
    if (secrets->retire)
        retire_keys(secrets);
    pthread_mutex_unlock(&secrets->lock);
    rows_free(newer ? old : rows);
    return OK;
}

void secrets_each(struct secrets *secrets, struct bytes space, void (*each)(void *ctx, const struct row_secret *row), void *ctx)
{
    pthread_mutex_lock(&secrets->lock);
    for (size_t i = 0; secrets->rows != NULL && i < secrets->rows->count; i++)
        if (bytes_eq(secrets->rows->at[i].space, space))
            each(ctx, &secrets->rows->at[i]);
    pthread_mutex_unlock(&secrets->lock);
}

size_t secrets_without_key(struct secrets *secrets)
{
    size_t count = 0;
    pthread_mutex_lock(&secrets->lock);
    for (size_t i = 0; secrets->rows != NULL && i < secrets->rows->count; i++)
        count += master_keys_find(secrets->keys, secrets->rows->at[i].master) == NULL;
    pthread_mutex_unlock(&secrets->lock);
    return count;
}
