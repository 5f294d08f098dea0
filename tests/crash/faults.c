/* faults: what goes wrong with the disk in a run, as its plan says. */
#include <sqlite3.h>

#include "crash.h"

struct faults faults;

static uint64_t draw(uint64_t limit)
{
    uint64_t z = (faults.random += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (z ^ (z >> 31)) % limit;
}

static bool dies(void)
{
    if (faults.dead)
        return true;
    if (faults.calm || ++faults.changes != faults.die_at)
        return false;
    faults.dead = true;
    return true;
}

static bool fails(enum fault fault)
{
    if (faults.calm || faults.fault != fault)
        return false;
    faults.seen++;
    bool hit = faults.seen == faults.at || (faults.stays && faults.fired);
    faults.fired = faults.fired || hit;
    return hit;
}

void faults_heal(void)
{
    if (faults.fired)
        faults.stays = false;
}

void faults_crash(enum disk_loss loss)
{
    disk_crash(loss);
    faults.dead = false;
}

/* SQLite takes a short read of the main file for its end; the system's layer never reports one elsewhere, so it would prove nothing. */
static int reads(struct disk_step *step)
{
    if (faults.dead || fails(FAULT_READS_FAIL))
        return SQLITE_IOERR_READ;
    if (!disk_is_main(step->file) && fails(FAULT_READS_SHORT))
        step->amount /= 2;
    return SQLITE_OK;
}

static int writes(struct disk_step *step)
{
    bool was_dead = faults.dead;
    if (dies()) {
        step->amount = !was_dead && faults.die_halfway ? (size_t)draw(step->amount + 1) : 0;
        return SQLITE_IOERR_WRITE;
    }
    bool full = fails(FAULT_WRITES_FULL);
    if (!full && !fails(FAULT_CHANGES_FAIL))
        return SQLITE_OK;
    step->amount = (size_t)draw(step->amount);
    return full ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int syncs(struct disk_step *step)
{
    if (dies())
        return SQLITE_IOERR_FSYNC;
    step->drops = step->unsynced && fails(FAULT_SYNCS_FAIL);
    return step->drops ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int meets(struct disk_step *step)
{
    switch (step->point) {
    case DISK_OPENS:
        return faults.dead ? SQLITE_CANTOPEN : SQLITE_OK;
    case DISK_READS:
        return reads(step);
    case DISK_WRITES:
        return writes(step);
    case DISK_TRUNCATES:
        return dies() || fails(FAULT_CHANGES_FAIL) ? SQLITE_IOERR_TRUNCATE : SQLITE_OK;
    case DISK_DELETES:
        return dies() || fails(FAULT_CHANGES_FAIL) ? SQLITE_IOERR_DELETE : SQLITE_OK;
    case DISK_SYNCS:
        return syncs(step);
    case DISK_SYNCS_NAME:
    case DISK_SYNCED:
        return dies() ? SQLITE_IOERR_FSYNC : SQLITE_OK;
    }
    return SQLITE_OK;
}

void faults_setup(void)
{
    static const struct disk_world world = {draw, meets, steady_realloc, steady_free};
    disk_setup(&world);
}
