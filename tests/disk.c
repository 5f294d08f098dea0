#include "disk.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#define FILES_MAX 6
#define SECTOR 512
#define PATH "/semel.db"

struct pending {
    int64_t at;
    size_t len;
    bool truncate, unlink;
    struct pending *next;
    char data[];
};

struct image {
    char *at;
    size_t len, cap;
};

struct file {
    char name[64];
    struct image cache, platter;
    struct pending *first, **last;
    bool named; /* its name is on the disk: the directory was synced since it was made */
};

struct handle {
    sqlite3_file base;
    struct file *file;
    bool with_name; /* the next sync is one of its directory too */
};

static const struct disk_world *world;
static struct file files[FILES_MAX];
static struct image template;

/* ---- images ---- */

static void image_resize(struct image *image, size_t len)
{
    if (len > image->cap) {
        size_t cap = image->cap < 1 << 16 ? 1 << 16 : image->cap;
        while (cap < len)
            cap *= 2;
        image->at = world->resize(image->at, cap);
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

/* ---- what is not yet synced ---- */

static void forget_pending(struct file *file)
{
    while (file->first != NULL) {
        struct pending *next = file->first->next;
        world->release(file->first);
        file->first = next;
    }
    file->last = &file->first;
}

static void add_pending(struct file *file, int64_t at, const char *data, size_t len, bool truncate)
{
    struct pending *pending = world->resize(NULL, sizeof *pending + len);
    *pending = (struct pending){.at = at, .len = len, .truncate = truncate};
    if (len > 0)
        memcpy(pending->data, data, len);
    *file->last = pending;
    file->last = &pending->next;
}

static void forget_until(struct file *file, const struct pending *last)
{
    for (bool done = false; !done;) {
        struct pending *gone = file->first;
        file->first = gone->next;
        done = gone == last;
        world->release(gone);
    }
    if (file->first == NULL)
        file->last = &file->first;
}

/* What was made has its name, what was deleted stays deleted. */
static void sync_directory(void)
{
    for (int i = 0; i < FILES_MAX && files[i].name[0] != '\0'; i++) {
        struct file *file = &files[i];
        struct pending *last = NULL;
        for (struct pending *pending = file->first; pending != NULL; pending = pending->next)
            last = pending->unlink ? pending : last;
        if (last != NULL) {
            forget_until(file, last);
            file->platter.len = 0;
        }
        file->named = file->cache.len > 0;
    }
}

static void apply(struct file *file, const struct pending *pending)
{
    if (pending->truncate)
        image_resize(&file->platter, (size_t)pending->at);
    else
        image_write(&file->platter, pending->at, pending->data, pending->len);
}

static void apply_torn(struct file *file, const struct pending *pending)
{
    for (size_t at = 0; at < pending->len; at += SECTOR) {
        size_t len = pending->len - at < SECTOR ? pending->len - at : SECTOR;
        if (world->draw(2) != 0)
            image_write(&file->platter, pending->at + (int64_t)at, pending->data + at, len);
    }
}

static void settle(struct file *file, const struct pending *pending, enum disk_loss loss, struct disk_lost *lost)
{
    uint64_t fate = loss == LOSE_NOTHING ? 1 : loss == LOSE_UNSYNCED ? 0 : world->draw(loss == LOSE_SOME ? 2 : 3);
    bool torn = fate == 2 && !pending->truncate;
    if (fate == 1)
        apply(file, pending);
    else if (torn)
        apply_torn(file, pending);
    lost->writes += fate != 1 && !torn;
    lost->torn += torn;
}

static void lose(struct file *file, enum disk_loss loss, struct disk_lost *lost)
{
    static const enum disk_loss any[] = {LOSE_NOTHING, LOSE_UNSYNCED, LOSE_SECTORS};
    if (loss == LOSE_ANYHOW)
        loss = any[world->draw(3)];
    for (struct pending *pending = file->first; pending != NULL; pending = pending->next)
        settle(file, pending, loss, lost);
    forget_pending(file);
    if (!file->named && (loss == LOSE_UNSYNCED || (loss != LOSE_NOTHING && world->draw(2) != 0)))
        file->platter.len = 0;
    file->named = file->platter.len > 0;
    image_copy(&file->cache, &file->platter);
}

struct disk_lost disk_crash(enum disk_loss loss)
{
    struct disk_lost lost = {0};
    for (int i = 0; i < FILES_MAX && loss != LOSE_PROCESS; i++)
        if (files[i].name[0] != '\0')
            lose(&files[i], loss, &lost);
    return lost;
}

/* ---- files ---- */

static struct file *file_of(sqlite3_file *base)
{
    return ((struct handle *)base)->file;
}

static int file_close(sqlite3_file *base)
{
    (void)base;
    return SQLITE_OK;
}

static int meets(struct file *file, enum disk_point point)
{
    return world->meets(&(struct disk_step){.point = point, .file = file->name});
}

static int file_read(sqlite3_file *base, void *ret, int len, sqlite3_int64 at)
{
    const struct image *image = &file_of(base)->cache;
    size_t there = (size_t)at < image->len ? image->len - (size_t)at : 0;
    struct disk_step step = {DISK_READS, .file = file_of(base)->name, .amount = there < (size_t)len ? there : (size_t)len};
    int code = world->meets(&step);
    if (code != SQLITE_OK)
        return code;
    if (step.amount > 0)
        memcpy(ret, image->at + at, step.amount);
    if (step.amount == (size_t)len)
        return SQLITE_OK;
    memset((char *)ret + step.amount, 0, (size_t)len - step.amount);
    return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *base, const void *data, int len, sqlite3_int64 at)
{
    struct file *file = file_of(base);
    bool grows = (size_t)at + (size_t)len > file->cache.len;
    struct disk_step step = {DISK_WRITES, .file = file->name, .amount = (size_t)len, .grows = grows};
    int code = world->meets(&step);
    if (step.amount > 0) {
        image_write(&file->cache, at, data, step.amount);
        add_pending(file, at, data, step.amount, false);
    }
    return code;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    int code = meets(file_of(base), DISK_TRUNCATES);
    if (code != SQLITE_OK)
        return code;
    image_resize(&file_of(base)->cache, (size_t)size);
    add_pending(file_of(base), size, NULL, 0, true);
    return SQLITE_OK;
}

static int sync_contents(struct file *file)
{
    struct disk_step step = {DISK_SYNCS, .file = file->name, .unsynced = file->first != NULL};
    int code = world->meets(&step);
    for (struct pending *pending = file->first; pending != NULL && code == SQLITE_OK; pending = pending->next)
        apply(file, pending);
    if (code == SQLITE_OK || step.drops)
        forget_pending(file);
    return code;
}

static int file_sync(sqlite3_file *base, int flags)
{
    (void)flags;
    struct handle *handle = (struct handle *)base;
    int code = sync_contents(handle->file);
    if (code == SQLITE_OK && handle->with_name)
        code = meets(handle->file, DISK_SYNCS_NAME);
    if (code != SQLITE_OK)
        return code;
    if (handle->with_name)
        sync_directory();
    handle->with_name = false;
    return meets(handle->file, DISK_SYNCED);
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

/* ---- the file system ---- */

static struct file *find_file(const char *name)
{
    for (int i = 0; i < FILES_MAX; i++) {
        if (files[i].name[0] == '\0') {
            snprintf(files[i].name, sizeof files[i].name, "%s", name);
            files[i].last = &files[i].first;
        }
        if (strcmp(files[i].name, name) == 0)
            return &files[i];
    }
    ASSERT(name == NULL); /* there are too many files */
    return NULL;
}

static int vfs_open(sqlite3_vfs *self, const char *name, sqlite3_file *base, int flags, int *ret_flags)
{
    (void)self;
    struct handle *handle = (struct handle *)base;
    handle->base.pMethods = NULL;
    handle->file = find_file(name != NULL ? name : "/temporary");
    int code = meets(handle->file, DISK_OPENS);
    if (code != SQLITE_OK)
        return code;
    handle->with_name = (flags & SQLITE_OPEN_CREATE) != 0 && (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)) != 0;
    handle->base.pMethods = &methods;
    if (ret_flags != NULL)
        *ret_flags = flags;
    return SQLITE_OK;
}

/* An empty file and one that is not there are the same to SQLite. */
static int vfs_delete(sqlite3_vfs *self, const char *name, int sync)
{
    (void)self;
    struct file *file = find_file(name);
    int code = meets(file, DISK_DELETES);
    if (code != SQLITE_OK)
        return code;
    image_resize(&file->cache, 0);
    add_pending(file, 0, NULL, 0, true);
    for (struct pending *pending = file->first; pending != NULL; pending = pending->next)
        pending->unlink = pending->next == NULL;
    if (sync)
        sync_directory();
    return SQLITE_OK;
}

static int vfs_access(sqlite3_vfs *self, const char *name, int flags, int *ret)
{
    (void)self, (void)flags;
    *ret = find_file(name)->cache.len > 0;
    return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *self, const char *name, int size, char *ret)
{
    (void)self;
    snprintf(ret, (size_t)size, "%s", name);
    return SQLITE_OK;
}

static int vfs_random(sqlite3_vfs *self, int size, char *ret)
{
    (void)self;
    for (int i = 0; i < size; i++)
        ret[i] = (char)world->draw(256);
    return size;
}

static int vfs_sleep(sqlite3_vfs *self, int us)
{
    (void)self;
    return us;
}

static int vfs_time(sqlite3_vfs *self, double *ret)
{
    (void)self;
    *ret = 2461000.5;
    return SQLITE_OK;
}

static int vfs_error(sqlite3_vfs *self, int size, char *ret)
{
    (void)self, (void)size, (void)ret;
    return 0;
}

static sqlite3_vfs vfs = {
    .iVersion = 1,
    .szOsFile = sizeof(struct handle),
    .mxPathname = 64,
    .zName = "memory",
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

void disk_setup(const struct disk_world *new_world)
{
    world = new_world;
    if (sqlite3_vfs_find(vfs.zName) == NULL)
        sqlite3_vfs_register(&vfs, 0);
}

void disk_empty(void)
{
    for (int i = 0; i < FILES_MAX && files[i].name[0] != '\0'; i++) {
        forget_pending(&files[i]);
        files[i].cache.len = files[i].platter.len = 0;
        files[i].named = false;
    }
}

void disk_keep_as_template(void)
{
    image_copy(&template, &find_file(PATH)->cache);
}

void disk_load_template(void)
{
    disk_empty();
    image_copy(&find_file(PATH)->cache, &template);
    image_copy(&find_file(PATH)->platter, &template);
    find_file(PATH)->named = true;
}

enum status disk_open(int checkpoint_pages, struct store **ret_store, struct why *why)
{
    struct store_sqlite_file file = {.path = PATH, .vfs = vfs.zName, .exclusive = true, .checkpoint_pages = checkpoint_pages};
    return store_open_sqlite_file(&file, STORE_WRITE, ret_store, why);
}

bool disk_is_main(const char *file)
{
    return strcmp(file, PATH) == 0;
}
