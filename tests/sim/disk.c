/* disk: what happens to the disk of a history. Everything that was written and not synced may be lost or torn when the machine loses power. */
#include "disk.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

static uint64_t draw(uint64_t limit)
{
    return (uint64_t)sim_below(sim_current(), (int64_t)limit);
}

static void *resize(void *at, size_t size)
{
    void *grown = realloc(at, size);
    ASSERT(grown != NULL);
    return grown;
}

static int dies(int code)
{
    return sim_dies_here(sim_current()) ? code : SQLITE_OK;
}

static int writes(struct sim *sim, struct disk_step *step)
{
    int code = dies(SQLITE_IOERR_WRITE);
    if (code == SQLITE_OK && step->grows && sim_chance(sim, sim->mix.full)) {
        mark(MARK_STORAGE_FULL);
        code = SQLITE_FULL;
    }
    if (code != SQLITE_OK)
        step->amount = 0;
    return code;
}

static int syncs(struct sim *sim, struct disk_step *step)
{
    if (sim_dies_here(sim)) {
        mark(MARK_CRASH_IN_COMMIT);
        return SQLITE_IOERR_FSYNC;
    }
    if (!step->unsynced || !sim_chance(sim, sim->mix.fsync_fails))
        return SQLITE_OK;
    mark(MARK_FSYNC_FAILED);
    sim->fsync_failed = step->drops = true;
    sim_say(sim, "fsync of %s fails", step->file);
    return SQLITE_IOERR_FSYNC;
}

static int meets(struct disk_step *step)
{
    struct sim *sim = sim_current();
    switch (step->point) {
    case DISK_OPENS:
        return sim->dead ? SQLITE_CANTOPEN : SQLITE_OK;
    case DISK_READS:
        return SQLITE_OK;
    case DISK_WRITES:
        return writes(sim, step);
    case DISK_TRUNCATES:
        return dies(SQLITE_IOERR_TRUNCATE);
    case DISK_DELETES:
        return dies(SQLITE_IOERR_DELETE);
    case DISK_SYNCS:
        return syncs(sim, step);
    case DISK_SYNCS_NAME:
        return dies(SQLITE_IOERR_FSYNC);
    case DISK_SYNCED:
        if (!sim_dies_here(sim))
            return SQLITE_OK;
        mark(MARK_CRASH_LOST_REPLY);
        return SQLITE_IOERR_FSYNC;
    }
    return SQLITE_OK;
}

/* A database with its schema already in it, so that most histories need not make it. */
static void make_template(struct sim *sim)
{
    struct store *store = NULL;
    struct why why = {""};
    struct mix mix = sim->mix;
    uint64_t random = sim->random;
    sim->mix = (struct mix){0};
    if (disk_open(sim->checkpoint_pages, &store, &why) != OK || store_migrate(store, &why) != OK) {
        fprintf(stderr, "sim: no template: %s\n", why.text);
        exit(70);
    }
    store_close(store);
    disk_keep_as_template();
    disk_empty();
    sim->mix = mix;
    sim->random = random; /* the first history of a process is like any other */
}

void sim_disk_start(struct sim *sim)
{
    static const struct disk_world world = {draw, meets, resize, free};
    static bool has_template;
    disk_setup(&world);
    disk_empty();
    sim->checkpoint_pages = 10 + (int)sim_below(sim, 60);
    if (!has_template)
        make_template(sim);
    has_template = true;
    sqlite3_test_control(SQLITE_TESTCTRL_PRNG_RESET);
    if (sim_below(sim, 16) != 0) /* now and then from nothing: the migration is part of the world too */
        disk_load_template();
}

void sim_disk_lose_power(void)
{
    struct disk_lost lost = disk_crash(LOSE_ANYHOW);
    if (lost.writes > 0)
        mark(MARK_LOST_WRITES);
    if (lost.torn > 0)
        mark(MARK_TORN);
}
