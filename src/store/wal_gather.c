#include "store/wal_gather.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mutant.h"
#include "base/status.h"

#define GATHER_SIZE (64 << 10) /* one write; the unix layer takes less than 128 KiB at once */
#define ZERO_AHEAD (256 << 10)
#define LAYERS_MAX 4

struct gather {
    sqlite3_file base; /* first: SQLite sees this */
    char *buffer;      /* what was written and not yet handed down … */
    size_t len;
    sqlite3_int64 at;   /* … and where it belongs */
    sqlite3_int64 size; /* of the file below */
    sqlite3_file *inner;
};

static struct gather *of(sqlite3_file *file)
{
    return (struct gather *)file;
}

static int write_down(struct gather *gather, const char *data, size_t len, sqlite3_int64 at)
{
    int code = gather->inner->pMethods->xWrite(gather->inner, data, (int)len, at);
    if (code == SQLITE_OK && at + (sqlite3_int64)len > gather->size)
        gather->size = at + (sqlite3_int64)len;
    return code;
}

/* Space that the next commits will overwrite. When it cannot be had, the log simply grows with them. */
static void zero_ahead(struct gather *gather)
{
    static const char zeros[GATHER_SIZE];
    sqlite3_int64 until = gather->size + ZERO_AHEAD;
    while (gather->size < until)
        if (write_down(gather, zeros, sizeof zeros, gather->size) != SQLITE_OK)
            return;
}

/* After a failure the gathered bytes are dropped: SQLite rolls the transaction back and must not see them appear later. */
static int flush(struct gather *gather)
{
    if (gather->len == 0)
        return SQLITE_OK;
    bool grows = gather->at + (sqlite3_int64)gather->len > gather->size;
    int code = write_down(gather, gather->buffer, gather->len, gather->at);
    gather->len = 0;
    if (code == SQLITE_OK && grows)
        zero_ahead(gather);
    return code;
}

static int gather_write(sqlite3_file *file, const void *data, int len, sqlite3_int64 at)
{
    struct gather *gather = of(file);
    sqlite3_int64 end = gather->at + (sqlite3_int64)gather->len;
    bool inside = gather->len > 0 && at >= gather->at && at + len <= end;
    bool behind = gather->len > 0 && at == end && gather->len + (size_t)len <= GATHER_SIZE;
    if (!inside && !behind) {
        int code = flush(gather);
        if (code != SQLITE_OK)
            return code;
        if ((size_t)len > GATHER_SIZE)
            return write_down(gather, data, (size_t)len, at);
        gather->at = at;
    }
    memcpy(gather->buffer + (at - gather->at), data, (size_t)len);
    if (!inside)
        gather->len += (size_t)len;
    return SQLITE_OK;
}

static int gather_read(sqlite3_file *file, void *ret, int len, sqlite3_int64 at)
{
    struct gather *gather = of(file);
    int code = flush(gather);
    return code == SQLITE_OK ? gather->inner->pMethods->xRead(gather->inner, ret, len, at) : code;
}

static int gather_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct gather *gather = of(file);
    int code = flush(gather);
    if (code == SQLITE_OK)
        code = gather->inner->pMethods->xTruncate(gather->inner, size);
    if (code == SQLITE_OK)
        gather->size = size;
    return code;
}

static int gather_sync(sqlite3_file *file, int flags)
{
    struct gather *gather = of(file);
    int code = MUTANT(SYNC_BEFORE_WRITE) ? SQLITE_OK : flush(gather);
    return code == SQLITE_OK ? gather->inner->pMethods->xSync(gather->inner, flags) : code;
}

static int gather_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    struct gather *gather = of(file);
    int code = flush(gather);
    return code == SQLITE_OK ? gather->inner->pMethods->xFileSize(gather->inner, ret_size) : code;
}

static int gather_close(sqlite3_file *file)
{
    struct gather *gather = of(file);
    int flushed = flush(gather), closed = gather->inner->pMethods->xClose(gather->inner);
    free(gather->buffer);
    return flushed != SQLITE_OK ? flushed : closed;
}

static int gather_lock(sqlite3_file *file, int level)
{
    return of(file)->inner->pMethods->xLock(of(file)->inner, level);
}

static int gather_unlock(sqlite3_file *file, int level)
{
    return of(file)->inner->pMethods->xUnlock(of(file)->inner, level);
}

static int gather_check_lock(sqlite3_file *file, int *ret)
{
    return of(file)->inner->pMethods->xCheckReservedLock(of(file)->inner, ret);
}

static int gather_control(sqlite3_file *file, int op, void *arg)
{
    return of(file)->inner->pMethods->xFileControl(of(file)->inner, op, arg);
}

static int gather_sector(sqlite3_file *file)
{
    return of(file)->inner->pMethods->xSectorSize(of(file)->inner);
}

static int gather_traits(sqlite3_file *file)
{
    return of(file)->inner->pMethods->xDeviceCharacteristics(of(file)->inner);
}

static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = gather_close,
    .xRead = gather_read,
    .xWrite = gather_write,
    .xTruncate = gather_truncate,
    .xSync = gather_sync,
    .xFileSize = gather_size,
    .xLock = gather_lock,
    .xUnlock = gather_unlock,
    .xCheckReservedLock = gather_check_lock,
    .xFileControl = gather_control,
    .xSectorSize = gather_sector,
    .xDeviceCharacteristics = gather_traits,
};

/* ---- the layer ---- */

static sqlite3_vfs *below(sqlite3_vfs *vfs)
{
    return vfs->pAppData;
}

/* Every other file goes straight to the layer below, whose file object then lies where SQLite expects it. */
static int layer_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
    if ((flags & SQLITE_OPEN_WAL) == 0)
        return below(vfs)->xOpen(below(vfs), name, file, flags, ret_flags);
    struct gather *gather = of(file);
    memset(gather, 0, sizeof *gather);
    gather->inner = (sqlite3_file *)(gather + 1);
    int code = below(vfs)->xOpen(below(vfs), name, gather->inner, flags, ret_flags);
    if (code != SQLITE_OK)
        return code;
    gather->buffer = malloc(GATHER_SIZE);
    if (gather->buffer == NULL) {
        gather->inner->pMethods->xClose(gather->inner);
        return SQLITE_NOMEM;
    }
    code = gather->inner->pMethods->xFileSize(gather->inner, &gather->size);
    gather->base.pMethods = &methods;
    return code;
}

static int layer_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    return below(vfs)->xDelete(below(vfs), name, sync);
}

static int layer_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
    return below(vfs)->xAccess(below(vfs), name, flags, ret);
}

static int layer_full_path(sqlite3_vfs *vfs, const char *name, int size, char *ret)
{
    return below(vfs)->xFullPathname(below(vfs), name, size, ret);
}

static int layer_random(sqlite3_vfs *vfs, int size, char *ret)
{
    return below(vfs)->xRandomness(below(vfs), size, ret);
}

static int layer_sleep(sqlite3_vfs *vfs, int us)
{
    return below(vfs)->xSleep(below(vfs), us);
}

static int layer_time(sqlite3_vfs *vfs, double *ret)
{
    return below(vfs)->xCurrentTime(below(vfs), ret);
}

static int layer_error(sqlite3_vfs *vfs, int size, char *ret)
{
    return below(vfs)->xGetLastError(below(vfs), size, ret);
}

static void fill(sqlite3_vfs *layer, sqlite3_vfs *base, char *name)
{
    *layer = (sqlite3_vfs){
        .iVersion = 1,
        .szOsFile = (int)sizeof(struct gather) + base->szOsFile,
        .mxPathname = base->mxPathname,
        .zName = name,
        .pAppData = base,
        .xOpen = layer_open,
        .xDelete = layer_delete,
        .xAccess = layer_access,
        .xFullPathname = layer_full_path,
        .xRandomness = layer_random,
        .xSleep = layer_sleep,
        .xCurrentTime = layer_time,
        .xGetLastError = layer_error,
    };
}

const char *wal_gather_over(const char *base)
{
    static sqlite3_vfs layers[LAYERS_MAX];
    static char names[LAYERS_MAX][64];
    sqlite3_vfs *vfs = sqlite3_vfs_find(base);
    ASSERT(vfs != NULL);
    for (int i = 0; i < LAYERS_MAX; i++) {
        if (layers[i].pAppData == vfs)
            return names[i];
        if (layers[i].pAppData != NULL)
            continue;
        snprintf(names[i], sizeof names[i], "%.48s-gather", vfs->zName);
        fill(&layers[i], vfs, names[i]);
        int code = sqlite3_vfs_register(&layers[i], 0);
        ASSERT(code == SQLITE_OK);
        return names[i];
    }
    assert_failed("there are at most four file layers", __FILE__, __LINE__);
}
