/*
 * disk: SQLite's file layer on a simulated disk. Each file has what the process sees (the page cache) and what the disk has; a write is pending
 * until it is synced. When the machine loses power, each pending write is on the disk, not there, or torn at 512-byte sectors. When fsync fails,
 * the pending writes are dropped and yet look clean, as Linux does it. When only the process dies, the page cache lives on.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

#define FILES_MAX 6
#define SECTOR 512

struct pending {
    int64_t at;
    size_t len;
    bool truncate;
    struct pending *next;
    char data[];
};

struct image {
    char *at;
    size_t len, cap;
};

struct file {
    char name[64];
    bool exists;
    struct image cache, disk;
    struct pending *first, **last;
};

struct disk {
    struct sim *sim;
    struct file files[FILES_MAX];
    int checkpoint_pages;
};

struct handle {
    sqlite3_file base;
    struct file *file;
};

static struct disk *the_disk;

/* A database with its schema already in it, so that most histories need not make it. */
static struct image template;

/* ---- images ---- */

static void image_resize(struct image *image, size_t len)
{
    if (len > image->cap) {
        size_t cap = image->cap < 1 << 16 ? 1 << 16 : image->cap;
        while (cap < len)
            cap *= 2;
        image->at = realloc(image->at, cap);
        ASSERT(image->at != NULL);
        image->cap = cap;
    }
    if (len > image->len)
        memset(image->at + image->len, 0, len - image->len);
    image->len = len;
}

static void image_write(struct image *image, int64_t at, const char *data, size_t len)
{
    if ((size_t)at + len > image->len)
        image_resize(image, (size_t)at + len);
    memcpy(image->at + at, data, len);
}

static void image_copy(struct image *to, const struct image *from)
{
    image_resize(to, from->len);
    if (from->len > 0)
        memcpy(to->at, from->at, from->len);
}

/* ---- pending writes ---- */

static void forget_pending(struct file *file)
{
    while (file->first != NULL) {
        struct pending *next = file->first->next;
        free(file->first);
        file->first = next;
    }
    file->last = &file->first;
}

static void add_pending(struct file *file, int64_t at, const char *data, size_t len, bool truncate)
{
    struct pending *pending = malloc(sizeof *pending + len);
    ASSERT(pending != NULL);
    *pending = (struct pending){.at = at, .len = len, .truncate = truncate};
    if (len > 0)
        memcpy(pending->data, data, len);
    *file->last = pending;
    file->last = &pending->next;
}

static void apply(struct file *file, const struct pending *pending)
{
    if (pending->truncate)
        image_resize(&file->disk, (size_t)pending->at);
    else
        image_write(&file->disk, pending->at, pending->data, pending->len);
}

/* Some of its sectors made it. */
static void apply_torn(struct sim *sim, struct file *file, const struct pending *pending)
{
    mark(MARK_TORN);
    for (size_t at = 0; at < pending->len; at += SECTOR) {
        size_t len = pending->len - at < SECTOR ? pending->len - at : SECTOR;
        if (sim_below(sim, 2))
            image_write(&file->disk, pending->at + (int64_t)at, pending->data + at, len);
    }
}

static void lose_power(struct sim *sim, struct file *file)
{
    int64_t mode = sim_below(sim, 3); /* all of it, nothing of it, or a mixture */
    for (struct pending *pending = file->first; pending != NULL; pending = pending->next) {
        int64_t fate = mode == 2 ? sim_below(sim, 3) : mode;
        if (fate == 0)
            apply(file, pending);
        else if (fate == 2 && !pending->truncate)
            apply_torn(sim, file, pending);
        else
            mark(MARK_LOST_WRITES);
    }
    forget_pending(file);
    image_copy(&file->cache, &file->disk);
}

void disk_power_loss(struct disk *disk, bool machine)
{
    for (int i = 0; machine && i < FILES_MAX; i++)
        if (disk->files[i].exists)
            lose_power(disk->sim, &disk->files[i]);
}

/* ---- SQLite's file methods ---- */

static struct file *file_of(sqlite3_file *base)
{
    return ((struct handle *)base)->file;
}

static int dies(int code)
{
    return sim_dies_here(the_disk->sim) ? code : SQLITE_OK;
}

static int file_close(sqlite3_file *base)
{
    (void)base;
    return SQLITE_OK;
}

static int file_read(sqlite3_file *base, void *ret, int len, sqlite3_int64 at)
{
    const struct image *image = &file_of(base)->cache;
    size_t there = (size_t)at < image->len ? image->len - (size_t)at : 0, got = there < (size_t)len ? there : (size_t)len;
    if (got > 0)
        memcpy(ret, image->at + at, got);
    if (got == (size_t)len)
        return SQLITE_OK;
    memset((char *)ret + got, 0, (size_t)len - got);
    return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *base, const void *data, int len, sqlite3_int64 at)
{
    struct file *file = file_of(base);
    struct sim *sim = the_disk->sim;
    if (dies(SQLITE_IOERR_WRITE) != SQLITE_OK)
        return SQLITE_IOERR_WRITE;
    if ((size_t)at + (size_t)len > file->cache.len && sim_chance(sim, sim->mix.full)) {
        mark(MARK_STORAGE_FULL);
        return SQLITE_FULL;
    }
    image_write(&file->cache, at, data, (size_t)len);
    add_pending(file, at, data, (size_t)len, false);
    return SQLITE_OK;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    if (dies(SQLITE_IOERR_TRUNCATE) != SQLITE_OK)
        return SQLITE_IOERR_TRUNCATE;
    image_resize(&file_of(base)->cache, (size_t)size);
    add_pending(file_of(base), size, NULL, 0, true);
    return SQLITE_OK;
}

static int file_sync(sqlite3_file *base, int flags)
{
    (void)flags;
    struct file *file = file_of(base);
    struct sim *sim = the_disk->sim;
    if (dies(SQLITE_IOERR_FSYNC) != SQLITE_OK) {
        mark(MARK_CRASH_IN_COMMIT);
        return SQLITE_IOERR_FSYNC;
    }
    if (file->first != NULL && sim_chance(sim, sim->mix.fsync_fails)) {
        mark(MARK_FSYNC_FAILED);
        sim->fsync_failed = true;
        sim_say(sim, "fsync of %s fails", file->name);
        forget_pending(file); /* dropped, but the cache looks clean */
        return SQLITE_IOERR_FSYNC;
    }
    for (struct pending *pending = file->first; pending != NULL; pending = pending->next)
        apply(file, pending);
    forget_pending(file);
    if (dies(SQLITE_IOERR_FSYNC) != SQLITE_OK) { /* durable, but nobody gets to know */
        mark(MARK_CRASH_LOST_REPLY);
        return SQLITE_IOERR_FSYNC;
    }
    return SQLITE_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *ret_size)
{
    *ret_size = (sqlite3_int64)file_of(base)->cache.len;
    return SQLITE_OK;
}

static int file_lock(sqlite3_file *base, int level)
{
    (void)base, (void)level;
    return SQLITE_OK;
}

static int file_check_lock(sqlite3_file *base, int *ret)
{
    (void)base;
    *ret = 0;
    return SQLITE_OK;
}

static int file_control(sqlite3_file *base, int op, void *arg)
{
    (void)base, (void)op, (void)arg;
    return SQLITE_NOTFOUND;
}

static int file_sector(sqlite3_file *base)
{
    (void)base;
    return 4096;
}

static int file_traits(sqlite3_file *base)
{
    (void)base;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_lock,
    .xCheckReservedLock = file_check_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_traits,
};

/* ---- SQLite's file system ---- */

static struct file *find_file(const char *name, bool make)
{
    for (int i = 0; i < FILES_MAX; i++)
        if (strcmp(the_disk->files[i].name, name) == 0)
            return &the_disk->files[i];
    for (int i = 0; make && i < FILES_MAX; i++) {
        struct file *file = &the_disk->files[i];
        if (file->name[0] != '\0')
            continue;
        snprintf(file->name, sizeof file->name, "%s", name);
        file->last = &file->first;
        return file;
    }
    return NULL;
}

static int vfs_open(sqlite3_vfs *self, const char *name, sqlite3_file *base, int flags, int *ret_flags)
{
    (void)self;
    struct handle *handle = (struct handle *)base;
    handle->base.pMethods = NULL;
    if (the_disk->sim->dead)
        return SQLITE_CANTOPEN;
    struct file *file = find_file(name != NULL ? name : "/temporary", true);
    ASSERT(file != NULL);
    file->exists = true;
    handle->file = file;
    handle->base.pMethods = &methods;
    if (ret_flags != NULL)
        *ret_flags = flags;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    (void)vfs, (void)sync;
    if (dies(SQLITE_IOERR_DELETE) != SQLITE_OK)
        return SQLITE_IOERR_DELETE;
    struct file *file = find_file(name, false);
    if (file == NULL || !file->exists)
        return SQLITE_IOERR_DELETE_NOENT;
    forget_pending(file);
    file->exists = false;
    file->cache.len = file->disk.len = 0;
    return SQLITE_OK;
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
    (void)vfs, (void)flags;
    struct file *file = find_file(name, false);
    *ret = file != NULL && file->exists && file->cache.len > 0;
    return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *name, int size, char *ret)
{
    (void)vfs;
    snprintf(ret, (size_t)size, "%s", name);
    return SQLITE_OK;
}

static int vfs_random(sqlite3_vfs *vfs, int size, char *ret)
{
    (void)vfs;
    for (int i = 0; i < size; i++)
        ret[i] = (char)sim_random(the_disk->sim);
    return size;
}

static int vfs_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    return us;
}

static int vfs_time(sqlite3_vfs *vfs, double *ret)
{
    (void)vfs;
    *ret = 2461000.5;
    return SQLITE_OK;
}

static int vfs_error(sqlite3_vfs *vfs, int size, char *ret)
{
    (void)vfs, (void)size, (void)ret;
    return 0;
}

static sqlite3_vfs vfs = {
    .iVersion = 1,
    .szOsFile = sizeof(struct handle),
    .mxPathname = 64,
    .zName = "sim",
    .xOpen = vfs_open,
    .xDelete = vfs_delete,
    .xAccess = vfs_access,
    .xFullPathname = vfs_full_path,
    .xRandomness = vfs_random,
    .xSleep = vfs_sleep,
    .xCurrentTime = vfs_time,
    .xGetLastError = vfs_error,
};

/* ---- life ---- */

static struct disk shared;

static void make_template(struct sim *sim)
{
    struct store *store = NULL;
    struct why why = {""};
    struct mix mix = sim->mix;
    sim->mix = (struct mix){0};
    if (disk_open(&shared, &store, &why) != OK || store_migrate(store, &why) != OK) {
        fprintf(stderr, "sim: no template: %s\n", why.text);
        exit(70);
    }
    store_close(store);
    image_copy(&template, &find_file("/semel.db", false)->cache);
    sim->mix = mix;
}

static void empty(struct disk *disk)
{
    for (int i = 0; i < FILES_MAX; i++) {
        struct file *file = &disk->files[i];
        if (file->last != NULL)
            forget_pending(file);
        file->exists = false;
        file->cache.len = file->disk.len = 0;
    }
}

struct disk *disk_new(struct sim *sim)
{
    shared.sim = sim;
    the_disk = &shared;
    if (sqlite3_vfs_find("sim") == NULL)
        sqlite3_vfs_register(&vfs, 0);
    empty(&shared);
    if (template.len == 0) {
        uint64_t random = sim->random;
        make_template(sim);
        empty(&shared);
        sim->random = random; /* the first history of a process is like any other */
    }
    sqlite3_test_control(SQLITE_TESTCTRL_PRNG_RESET);
    shared.checkpoint_pages = 10 + (int)sim_below(sim, 60);
    if (sim_below(sim, 16) != 0) { /* now and then from nothing: the migration is part of the world too */
        struct file *file = find_file("/semel.db", true);
        file->exists = true;
        image_copy(&file->cache, &template);
        image_copy(&file->disk, &template);
    }
    return &shared;
}

void disk_free(struct disk *disk)
{
    empty(disk);
}

enum status disk_open(struct disk *disk, struct store **ret_store, struct why *why)
{
    struct store_sqlite_file file = {
        .path = "/semel.db", .vfs = "sim", .exclusive = true, .checkpoint_pages = disk->checkpoint_pages};
    return store_open_sqlite_file(&file, STORE_WRITE, ret_store, why);
}
