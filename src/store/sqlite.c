#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mutant.h"
#include "store/store.h"
#include "store/wal_gather.h"

#define CHECK_PAGES_MAX 8192 /* 32 MiB; checking a larger database would keep its users waiting */
#define CHECKPOINT_PAGES 16000
#define RESERVE_SIZE (4 << 20)
#define ROW_SIZE_MAX 1024
#define EXIT_FSYNC_FAILED 74

struct sqlite_store {
    struct store store;
    sqlite3 *db;
    sqlite3_stmt *statements[STORE_QUERIES_MAX];
    sqlite3_stmt *begin, *commit, *rollback;
    int lock_fd;
    int log_pages, log_tidied; /* of the write-ahead log: how long it is, how long it was when it was last copied */
    int log_pages_max;
};

static struct sqlite_store *of(struct store *store)
{
    return (struct sqlite_store *)store;
}

static enum status status_of(int code)
{
    switch (code & 0xff) {
    case SQLITE_FULL:
        return FULL;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_INTERRUPT:
    case SQLITE_NOMEM:
        return RETRY;
    case SQLITE_CONSTRAINT:
        return CONFLICT;
    default:
        return BROKEN;
    }
}

/* After a failed fsync the kernel may have dropped the pages and marked them clean: what a later read shows need not be on disk.
 * The only honest thing is to stop; the next start writes the log anew (boot step 0). */
static void stop_on_failed_fsync(int extended)
{
    if (extended != SQLITE_IOERR_FSYNC && extended != SQLITE_IOERR_DIR_FSYNC)
        return;
    store_fsync_failed();
}

static void stop_process(void)
{
    LOG(LOG_ERROR, "fsync failed: stopping at once, nothing of this batch was acknowledged");
    _exit(EXIT_FSYNC_FAILED);
}

void (*store_fsync_failed)(void) = stop_process;

static enum status fail(struct sqlite_store *sqlite, const char *doing, struct why *why)
{
    int code = sqlite3_extended_errcode(sqlite->db);
    stop_on_failed_fsync(code);
    if ((code & 0xff) == SQLITE_FULL)
        return why_set(why, FULL, "the disk is full");
    return why_set(why, status_of(code), "SQLite, %s: %s (code %d)", doing, sqlite3_errmsg(sqlite->db), code);
}

static enum status execute(struct sqlite_store *sqlite, const char *sql, struct why *why)
{
    if (sqlite3_exec(sqlite->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return fail(sqlite, sql, why);
    return OK;
}

/* BEGIN, COMMIT and ROLLBACK are prepared when the database is opened: they come with every batch, and rolling back must not need memory. */
static enum status prepare_controls(struct sqlite_store *sqlite, struct why *why)
{
    const struct {
        sqlite3_stmt **statement;
        const char *sql;
    } controls[] = {{&sqlite->begin, "BEGIN"}, {&sqlite->commit, "COMMIT"}, {&sqlite->rollback, "ROLLBACK"}};
    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++)
        if (sqlite3_prepare_v3(sqlite->db, controls[i].sql, -1, SQLITE_PREPARE_PERSISTENT, controls[i].statement, NULL) !=
            SQLITE_OK)
            return fail(sqlite, controls[i].sql, why);
    return OK;
}

static enum status control(struct sqlite_store *sqlite, sqlite3_stmt *statement, struct why *why)
{
    int code = sqlite3_step(statement);
    enum status status = code == SQLITE_DONE ? OK : fail(sqlite, sqlite3_sql(statement), why);
    sqlite3_reset(statement);
    return status;
}

static void sqlite_rollback(struct store *store)
{
    struct why why;
    if (!sqlite3_get_autocommit(of(store)->db) && control(of(store), of(store)->rollback, &why) != OK)
        LOG(LOG_ERROR, "a transaction could not be rolled back", LOG_CSTR("why", why.text));
}

/* There is one writer, so the lock for writing can wait for the first write: a batch that only reads never takes it. */
static enum status sqlite_begin(struct store *store, struct why *why)
{
    sqlite_rollback(store); /* should an earlier one have failed to end */
    return control(of(store), of(store)->begin, why);
}

static enum status sqlite_commit(struct store *store, struct why *why)
{
    return control(of(store), of(store)->commit, why);
}

static enum status sqlite_script(struct store *store, const char *text, struct why *why)
{
    if (sqlite3_exec(of(store)->db, text, NULL, NULL, NULL) != SQLITE_OK)
        return fail(of(store), "script", why);
    return OK;
}

static int bind_one(sqlite3_stmt *statement, int position, const struct query_column *column, const char *row)
{
    if (column->type == COLUMN_INT)
        return sqlite3_bind_int64(statement, position, *(const int64_t *)(row + column->offset));
    const struct bytes *bytes = (const struct bytes *)(row + column->offset);
    if (bytes->at == NULL)
        return sqlite3_bind_null(statement, position);
    if (column->type == COLUMN_TEXT)
        return sqlite3_bind_text64(statement, position, bytes->at, bytes->len, SQLITE_STATIC, SQLITE_UTF8);
    return sqlite3_bind_blob64(statement, position, bytes->at, bytes->len, SQLITE_STATIC);
}

static void read_one(sqlite3_stmt *statement, int position, const struct query_column *column, char *row)
{
    if (column->type == COLUMN_INT) {
        *(int64_t *)(row + column->offset) = sqlite3_column_int64(statement, position);
        return;
    }
    struct bytes *bytes = (struct bytes *)(row + column->offset);
    if (sqlite3_column_type(statement, position) == SQLITE_NULL) {
        *bytes = BYTES_NONE;
        return;
    }
    const void *at = column->type == COLUMN_TEXT ? (const void *)sqlite3_column_text(statement, position)
                                                 : sqlite3_column_blob(statement, position);
    *bytes = (struct bytes){at != NULL ? at : "", (size_t)sqlite3_column_bytes(statement, position)};
}

static enum status prepared(struct sqlite_store *sqlite, const struct query *query, sqlite3_stmt **ret_statement, struct why *why)
{
    sqlite3_stmt **slot = &sqlite->statements[query->number];
    if (*slot == NULL &&
        sqlite3_prepare_v3(sqlite->db, query->text[STORE_SQLITE], -1, SQLITE_PREPARE_PERSISTENT, slot, NULL) != SQLITE_OK)
        return fail(sqlite, query->name, why);
    *ret_statement = *slot;
    return OK;
}

static enum status step_rows(struct sqlite_store *sqlite, const struct query *query, sqlite3_stmt *statement,
                             store_row_fn *on_row, void *ctx, struct why *why)
{
    _Alignas(16) char row[ROW_SIZE_MAX];
    for (;;) {
        int code = sqlite3_step(statement);
        if (code == SQLITE_DONE)
            return OK;
        if (code != SQLITE_ROW)
            return fail(sqlite, query->name, why);
        if (on_row == NULL)
            continue;
        for (size_t i = 0; i < query->column_count; i++)
            read_one(statement, (int)i, &query->columns[i], row);
        TRY(on_row(ctx, row, why));
    }
}

static enum status run_one(struct sqlite_store *sqlite, const struct query *query, sqlite3_stmt *statement, const char *row,
                           store_row_fn *on_row, void *ctx, struct why *why)
{
    for (size_t i = 0; i < query->param_count; i++)
        if (bind_one(statement, (int)i + 1, &query->params[i], row) != SQLITE_OK)
            return fail(sqlite, query->name, why);
    enum status status = step_rows(sqlite, query, statement, on_row, ctx, why);
    sqlite3_reset(statement);
    return status;
}

static enum status sqlite_run(struct store *store, const struct query *query, const void *params, size_t count,
                              store_row_fn *on_row, void *ctx, int64_t *ret_changed, struct why *why)
{
    struct sqlite_store *sqlite = of(store);
    ASSERT(query->row_size <= ROW_SIZE_MAX);
    sqlite3_stmt *statement = NULL;
    TRY(prepared(sqlite, query, &statement, why));
    int64_t before = sqlite3_total_changes64(sqlite->db);
    const char *rows = params != NULL ? params : ""; /* a query without parameters has none to point to */
    for (size_t i = 0; i < count; i++)
        TRY(run_one(sqlite, query, statement, rows + i * query->param_size, on_row, ctx, why));
    *ret_changed = sqlite3_total_changes64(sqlite->db) - before;
    return OK;
}

static void sqlite_close(struct store *store)
{
    struct sqlite_store *sqlite = of(store);
    for (size_t i = 0; i < STORE_QUERIES_MAX; i++)
        sqlite3_finalize(sqlite->statements[i]);
    sqlite3_finalize(sqlite->begin);
    sqlite3_finalize(sqlite->commit);
    sqlite3_finalize(sqlite->rollback);
    sqlite3_close(sqlite->db);
    if (sqlite->lock_fd >= 0)
        close(sqlite->lock_fd);
    free(sqlite);
}

/* ---- the length of the log ---- */

static int on_log(void *ctx, sqlite3 *db, const char *name, int pages)
{
    (void)db, (void)name;
    struct sqlite_store *sqlite = ctx;
    if (pages < sqlite->log_pages) /* it begins anew: everything was copied */
        sqlite->log_tidied = 0;
    sqlite->log_pages = pages;
    return SQLITE_OK;
}

static enum store_untidy sqlite_untidy(struct store *store)
{
    int pages = of(store)->log_pages - of(store)->log_tidied, most = of(store)->log_pages_max;
    return pages >= most ? STORE_TIDY_NOW : pages >= most / 4 ? STORE_TIDY_WHEN_QUIET : STORE_TIDY;
}

/* Nothing is lost when it fails, or when a reader keeps the end of the log from being copied: that stays in the log, and the next
 * time copies it. */
static void sqlite_tidy(struct store *store)
{
    struct sqlite_store *sqlite = of(store);
    if (sqlite3_wal_checkpoint_v2(sqlite->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) != SQLITE_OK) {
        stop_on_failed_fsync(sqlite3_extended_errcode(sqlite->db));
        LOG(LOG_WARN, "the write-ahead log could not be copied into the database", LOG_CSTR("why", sqlite3_errmsg(sqlite->db)));
    }
    sqlite->log_tidied = sqlite->log_pages;
}

static const struct store_ops sqlite_ops = {
    sqlite_begin, sqlite_commit, sqlite_rollback, sqlite_run, sqlite_script, sqlite_close, NULL, NULL,
};

static const struct store_keeping sqlite_keeping = {sqlite_untidy, sqlite_tidy};

/* ---- opening ---- */

/* SQLite need not count its memory under one lock for all threads. */
void store_setup(void)
{
    sqlite3_config(SQLITE_CONFIG_MULTITHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_initialize();
}

static enum status take_lock(const char *dir, int *ret_fd, struct why *why)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/lock", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return why_set(why, INVALID, "the data directory %s cannot be used: %s", dir, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        char pid[32] = "?";
        ssize_t got = read(fd, pid, sizeof pid - 1);
        pid[got > 0 ? got : 1] = '\0';
        pid[strcspn(pid, "\n")] = '\0';
        close(fd);
        return why_set(why, CONFLICT, "another semel (process %s) is using %s: stop it, or choose another --data directory", pid,
                       dir);
    }
    char pid[32];
    int len = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, pid, (size_t)len, 0) != len)
        LOG(LOG_WARN, "the process number could not be written to the lock file", LOG_CSTR("error", strerror(errno)));
    *ret_fd = fd;
    return OK;
}

/* Boot step 0. If the last process died of a failed fsync, the page cache may show log pages that the disk does not have. Writing them
 * again makes them dirty, and this fsync tells the truth. It goes through SQLite's own file layer, so that a simulated disk sees it too. */
static enum status rewrite_pages(sqlite3_file *file, struct why *why)
{
    static _Thread_local char block[1 << 16];
    sqlite3_int64 size = 0;
    int code = file->pMethods->xFileSize(file, &size);
    for (sqlite3_int64 at = 0; code == SQLITE_OK && at < size; at += (sqlite3_int64)sizeof block) {
        int len = size - at < (sqlite3_int64)sizeof block ? (int)(size - at) : (int)sizeof block;
        code = file->pMethods->xRead(file, block, len, at);
        if (code == SQLITE_OK)
            code = file->pMethods->xWrite(file, block, len, at);
    }
    if (code == SQLITE_OK)
        code = file->pMethods->xSync(file, SQLITE_SYNC_FULL);
    if (code == SQLITE_OK)
        return OK;
    return why_set(why, code == SQLITE_FULL ? FULL : BROKEN, "the write-ahead log cannot be made durable again (code %d)", code);
}

static enum status rewrite_wal(sqlite3_vfs *vfs, const char *path, bool *ret_unclean, struct why *why)
{
    int exists = 0, flags = 0;
    if (vfs->xAccess(vfs, path, SQLITE_ACCESS_EXISTS, &exists) != SQLITE_OK || !exists)
        return OK;
    sqlite3_file *file = calloc(1, (size_t)vfs->szOsFile);
    if (file == NULL)
        return why_set(why, FULL, "no memory to open the write-ahead log");
    enum status status = OK;
    int code = vfs->xOpen(vfs, path, file, SQLITE_OPEN_WAL | SQLITE_OPEN_READWRITE, &flags);
    if (code != SQLITE_OK)
        status = why_set(why, BROKEN, "the write-ahead log cannot be opened (code %d)", code);
    else
        status = rewrite_pages(file, why);
    if (file->pMethods != NULL)
        file->pMethods->xClose(file);
    free(file);
    *ret_unclean = true;
    return status;
}

static int on_check(void *ctx, int columns, char **values, char **names)
{
    (void)columns, (void)names;
    if (values[0] != NULL && strcmp(values[0], "ok") == 0)
        return 0;
    (void)why_set(ctx, BROKEN, "the database is damaged: %s", values[0] != NULL ? values[0] : "?");
    return 1;
}

static int on_pages(void *ctx, int columns, char **values, char **names)
{
    (void)columns, (void)names;
    int64_t *pages = ctx;
    return values[0] != NULL && bytes_to_i64(bytes_of(values[0]), pages) ? 0 : 1;
}

static enum status check_small(struct sqlite_store *sqlite, struct why *why)
{
    int64_t pages = 0;
    if (sqlite3_exec(sqlite->db, "PRAGMA page_count", on_pages, &pages, NULL) != SQLITE_OK)
        return fail(sqlite, "page_count", why);
    if (pages > CHECK_PAGES_MAX)
        return OK;
    struct why damage = {""};
    if (sqlite3_exec(sqlite->db, "PRAGMA quick_check(1)", on_check, &damage, NULL) == SQLITE_OK)
        return OK;
    return damage.text[0] != '\0' ? why_set(why, BROKEN, "%s", damage.text) : fail(sqlite, "quick_check", why);
}

static enum status configure(struct sqlite_store *sqlite, enum store_access access, const struct store_sqlite_file *file,
                             struct why *why)
{
    sqlite3_extended_result_codes(sqlite->db, 1);
    sqlite3_busy_timeout(sqlite->db, 5000);
    if (file->exclusive) /* before anything is read */
        TRY(execute(sqlite, "PRAGMA locking_mode=EXCLUSIVE", why));
    TRY(execute(sqlite, "PRAGMA trusted_schema=OFF", why));
    TRY(execute(sqlite, access == STORE_WRITE ? "PRAGMA cache_size=-16384" : "PRAGMA cache_size=-8192", why));
    if (access == STORE_READ)
        return execute(sqlite, "PRAGMA query_only=ON", why);
    TRY(execute(sqlite, "PRAGMA journal_mode=WAL", why));
    TRY(execute(sqlite,
                MUTANT(SYNC_NORMAL) ? "PRAGMA synchronous=NORMAL"
                : MUTANT(SYNC_OFF)  ? "PRAGMA synchronous=OFF"
                                    : "PRAGMA synchronous=FULL",
                why));
    sqlite->log_pages_max = file->checkpoint_pages > 0 ? file->checkpoint_pages : CHECKPOINT_PAGES;
    sqlite3_wal_hook(sqlite->db, on_log, sqlite); /* instead of a checkpoint inside a COMMIT, for which answers would wait */
    TRY(execute(sqlite, "PRAGMA journal_size_limit=67108864", why));
    return execute(sqlite, "PRAGMA secure_delete=OFF", why);
}

static enum status open_database(struct sqlite_store *sqlite, const struct store_sqlite_file *file, enum store_access access,
                                 struct why *why)
{
    char wal[4096];
    snprintf(wal, sizeof wal, "%s-wal", file->path);
    sqlite3_vfs *vfs = sqlite3_vfs_find(file->vfs);
    ASSERT(vfs != NULL);
    bool unclean = false;
    if (access == STORE_WRITE && !MUTANT(NO_REWRITE))
        TRY(rewrite_wal(vfs, wal, &unclean, why));
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE | (access == STORE_WRITE ? SQLITE_OPEN_CREATE : 0);
    const char *layer = access == STORE_WRITE ? wal_gather_over(file->vfs) : file->vfs;
    if (sqlite3_open_v2(file->path, &sqlite->db, flags, layer) != SQLITE_OK)
        return sqlite->db != NULL ? fail(sqlite, "open", why) : why_set(why, FULL, "no memory to open the database");
    TRY(configure(sqlite, access, file, why));
    TRY(prepare_controls(sqlite, why));
    return unclean ? check_small(sqlite, why) : OK;
}

enum status store_open_sqlite_file(const struct store_sqlite_file *file, enum store_access access, struct store **ret_store,
                                   struct why *why)
{
    struct sqlite_store *sqlite = calloc(1, sizeof *sqlite);
    if (sqlite == NULL)
        return why_set(why, FULL, "no memory to open the database");
    sqlite->store = (struct store){.ops = &sqlite_ops, .keeping = &sqlite_keeping, .kind = STORE_SQLITE};
    sqlite->lock_fd = -1;
    enum status status = open_database(sqlite, file, access, why);
    if (status != OK) {
        sqlite_close(&sqlite->store);
        return status;
    }
    *ret_store = &sqlite->store;
    return OK;
}

enum status store_open_sqlite(const char *dir, enum store_access access, struct store **ret_store, struct why *why)
{
    char path[4000], full[4096];
    int lock_fd = -1;
    if (access == STORE_WRITE && mkdir(dir, 0700) != 0 && errno != EEXIST)
        return why_set(why, INVALID, "the data directory %s cannot be made: %s", dir, strerror(errno));
    if (realpath(dir, full) == NULL || snprintf(path, sizeof path, "%s/semel.db", full) >= (int)sizeof path)
        return why_set(why, INVALID, "the data directory %s cannot be used: %s", dir, strerror(errno));
    if (access == STORE_WRITE)
        TRY(take_lock(dir, &lock_fd, why));
    struct store_sqlite_file file = {.path = path};
    enum status status = store_open_sqlite_file(&file, access, ret_store, why);
    if (status == OK)
        of(*ret_store)->lock_fd = lock_fd;
    else if (lock_fd >= 0)
        close(lock_fd);
    return status;
}

/* ---- the reserve ---- */

static void reserve_path(const char *dir, char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%s/reserve", dir);
}

void store_reserve_release(const char *dir)
{
    char path[4096];
    reserve_path(dir, path, sizeof path);
    if (unlink(path) != 0 && errno != ENOENT)
        LOG(LOG_WARN, "the reserve could not be released", LOG_CSTR("error", strerror(errno)));
}

bool store_reserve_refill(const char *dir)
{
    char path[4096];
    reserve_path(dir, path, sizeof path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    int failed = posix_fallocate(fd, 0, RESERVE_SIZE);
    close(fd);
    if (failed != 0)
        unlink(path);
    return failed == 0;
}
