/* Changes of secrets. They run on the engine's writer, in the transaction of its batch. */
#include "secret/secret_own.h"

/* ---- reading inside the transaction ---- */

struct take {
    struct arena *arena;
    struct row_secret *rows;
    size_t count;
};

static enum status take_row(void *ctx, const void *row, struct why *why)
{
    struct take *take = ctx;
    struct row_secret *taken = &take->rows[take->count++];
    *taken = *(const struct row_secret *)row;
    struct bytes *texts[] = {&taken->space, &taken->name, &taken->master, &taken->wrapped, &taken->sealed};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = arena_dup(take->arena, *texts[i]);
    return take->arena->failed ? why_set(why, FULL, "there is no memory for the secret") : OK;
}

static enum status take_stamp(void *ctx, const void *row, struct why *why)
{
    (void)why;
    *(struct r_secret_stamp *)ctx = *(const struct r_secret_stamp *)row;
    return OK;
}

/* All zero when there is no such row. */
static enum status get_row(const struct secret_change *change, struct bytes space, struct bytes name, struct row_secret *ret_row,
                           struct why *why)
{
    struct row_secret row = {0};
    struct take take = {change->arena, &row, 0};
    const struct q_secret_get get = {space, name};
    TRY(store_run(change->store, &SECRET_LOCK, NULL, 0, NULL, NULL, NULL, why));
    TRY(store_run(change->store, &SECRET_GET, &get, 1, take_row, &take, NULL, why));
    *ret_row = row;
    return OK;
}

static enum status find_foreign(const struct secret_change *change, const char *master, size_t most, struct take *ret_take,
                                struct why *why)
{
    struct take take = {change->arena, arena_zalloc(change->arena, most, sizeof *take.rows), 0};
    if (take.rows == NULL)
        return why_set(why, FULL, "there is no memory for the secrets");
    const struct q_secret_foreign find = {bytes_of(master), (int64_t)most};
    TRY(store_run(change->store, &SECRET_FOREIGN, &find, 1, take_row, &take, NULL, why));
    *ret_take = take;
    return OK;
}

/* ---- master keys: all of it under the lock ---- */

/* With a new key in front. Nothing changes in memory before the file holds it. */
static enum status add_key(struct secrets *secrets, struct why *why)
{
    struct master_keys *keys = master_keys_new();
    if (keys == NULL)
        return why_set(why, INVALID, "there is no memory for the master key");
    if (secrets->keys != NULL)
        *keys = *secrets->keys;
    enum status status = OK;
    if (!master_keys_add(keys, secrets->env))
        status = why_set(why, INVALID, "%s holds %d master keys already", secrets->key_path, MASTER_KEYS_MAX);
    if (status == OK)
        status = key_file_write(secrets->key_path, keys, why);
    if (status != OK) {
        master_keys_free(keys);
        return status;
    }
    master_keys_free(secrets->keys);
    secrets->keys = keys;
    return OK;
}

/* The file may be missing because this is the first use, or because it was lost: then a new key would hide that. */
static enum status first_key(const struct secret_change *change, struct why *why)
{
    struct secrets *secrets = change->secrets;
    struct take found;
    enum status status = secrets_read_keys(secrets, why);
    if (status != NOTHING)
        return status;
    if (!secrets->own_key)
        return why_set(why, INVALID, "the master key %s is missing. Put it back", secrets->key_path);
    TRY(find_foreign(change, "", 1, &found, why));
    if (found.count > 0)
        return why_set(
            why, INVALID,
            "the master key %s is missing, and secrets were sealed with it (key %.*s). Put it back, or remove them first",
            secrets->key_path, BYTES_ARG(found.rows[0].master));
    return add_key(secrets, why);
}

static enum status seal_row(const struct secret_change *change, struct bytes value, struct row_secret *row, struct why *why)
{
    struct secrets *secrets = change->secrets;
    const struct secret_label label = {row->space, row->name, row->version};
    if (secrets->keys == NULL)
        TRY(first_key(change, why));
    const struct master_key *master = &secrets->keys->at[0];
    TRY(seal_make(secrets->env, master, &label, value, change->arena, &row->wrapped, &row->sealed, why));
    row->master = arena_dup(change->arena, bytes_of(master->id));
    return row->master.at != NULL ? OK : why_set(why, FULL, "there is no memory for the secret");
}

/* ---- changes ---- */

static enum status check_room(const struct secret_change *change, struct why *why)
{
    struct r_secret_stamp stamp = {0, 0};
    TRY(store_run(change->store, &SECRET_STAMP, NULL, 0, take_stamp, &stamp, NULL, why));
    return stamp.rows < SECRETS_MAX
               ? OK
               : why_set(why, CONFLICT, "there are %d secrets already; names that were removed count too", SECRETS_MAX);
}

enum status secret_put(const struct secret_change *change, struct bytes space, struct bytes name, struct bytes value,
                       int64_t *ret_version, struct why *why)
{
    struct row_secret old;
    TRY(get_row(change, space, name, &old, why));
    if (old.version == 0)
        TRY(check_room(change, why));
    struct row_secret row = {
        .space = space,
        .name = name,
        .version = old.version + 1,
        .changes = old.changes + 1,
        .created = old.version == 0 || old.removed != 0 ? change->now_us : old.created,
        .updated = change->now_us,
    };
    pthread_mutex_lock(&change->secrets->lock);
    enum status status = seal_row(change, value, &row, why);
    pthread_mutex_unlock(&change->secrets->lock);
    if (status != OK)
        return status;
    TRY(store_run(change->store, &SECRET_PUT, &row, 1, NULL, NULL, NULL, why));
    *ret_version = row.version;
    return OK;
}

enum status secret_remove(const struct secret_change *change, struct bytes space, struct bytes name, int64_t *ret_version,
                          struct why *why)
{
    struct row_secret row;
    TRY(get_row(change, space, name, &row, why));
    if (row.version == 0 || row.removed != 0)
        return NOTHING;
    row.version++;
    row.changes++;
    row.master = row.wrapped = row.sealed = BYTES("");
    row.updated = row.removed = change->now_us;
    TRY(store_run(change->store, &SECRET_PUT, &row, 1, NULL, NULL, NULL, why));
    *ret_version = row.version;
    return OK;
}

/* ---- another master key ---- */

/* A file of our own that holds several keys belongs to a rewrap that was not finished: go on with it. */
static enum status begin_rewrap(const struct secret_change *change, struct why *why)
{
    struct secrets *secrets = change->secrets;
    if (secrets->keys == NULL)
        return first_key(change, why);
    if (!secrets->own_key)
        return secrets_read_keys(secrets, why);
    return secrets->keys->count == 1 ? add_key(secrets, why) : OK;
}

static enum status end_rewrap(struct secrets *secrets, struct why *why)
{
    if (!secrets->own_key || secrets->keys->count == 1)
        return NOTHING;
    struct master_keys *keys = master_keys_new();
    if (keys == NULL)
        return why_set(why, INVALID, "there is no memory for the master key");
    keys->count = 1;
    keys->at[0] = secrets->keys->at[0];
    enum status status = key_file_write(secrets->key_path, keys, why);
    master_keys_free(keys);
    secrets->retire = status == OK;
    return status == OK ? NOTHING : status;
}

static enum status wrap_anew(const struct secret_change *change, const struct row_secret *row, struct q_secret_rewrap *ret_put,
                             struct why *why)
{
    const struct master_keys *keys = change->secrets->keys;
    const struct master_key *from = master_keys_find(keys, row->master), *to = &keys->at[0];
    const struct secret_label label = {row->space, row->name, row->version};
    if (from == NULL)
        return why_set(why, INVALID, "the secret \"%.*s\" is sealed for the master key %.*s, which is not in %s",
                       BYTES_ARG(row->name), BYTES_ARG(row->master), change->secrets->key_path);
    *ret_put = (struct q_secret_rewrap){row->space, row->name, row->changes + 1, bytes_of(to->id), BYTES_NONE};
    enum status status = seal_rewrap(change->secrets->env, from, to, &label, row->wrapped, change->arena, &ret_put->wrapped, why);
    return status == BROKEN ? INVALID : status; /* one damaged row is not a damaged storage */
}

/* All or nothing: INVALID must not leave half of it in the transaction. */
static enum status rewrap_rows(const struct secret_change *change, const struct take *found, struct why *why)
{
    struct q_secret_rewrap *puts = arena_zalloc(change->arena, found->count, sizeof *puts);
    if (puts == NULL)
        return why_set(why, FULL, "there is no memory for the secrets");
    for (size_t i = 0; i < found->count; i++)
        TRY(wrap_anew(change, &found->rows[i], &puts[i], why));
    return store_run(change->store, &SECRET_REWRAP, puts, found->count, NULL, NULL, NULL, why);
}

static enum status rewrap_some(const struct secret_change *change, bool first, int64_t *ret_count, struct why *why)
{
    struct take found;
    if (first)
        TRY(begin_rewrap(change, why));
    TRY(find_foreign(change, change->secrets->keys->at[0].id, SECRET_REWRAP_MAX, &found, why));
    if (found.count == 0)
        return end_rewrap(change->secrets, why);
    TRY(rewrap_rows(change, &found, why));
    *ret_count = (int64_t)found.count;
    return OK;
}

enum status secret_rewrap(const struct secret_change *change, bool first, char ret_master[MASTER_KEY_ID_SIZE + 1],
                          int64_t *ret_count, struct why *why)
{
    TRY(store_run(change->store, &SECRET_LOCK, NULL, 0, NULL, NULL, NULL, why));
    pthread_mutex_lock(&change->secrets->lock);
    enum status status = rewrap_some(change, first, ret_count, why);
    if (status == OK || status == NOTHING)
        memcpy(ret_master, change->secrets->keys->at[0].id, MASTER_KEY_ID_SIZE + 1);
    pthread_mutex_unlock(&change->secrets->lock);
    return status;
}
