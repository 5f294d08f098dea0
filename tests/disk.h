/*
 * disk: SQLite's file layer in memory, for worlds in which everything can go wrong. A file has what the process sees (the page cache), what is on the
 * disk, and between the two the writes that are not yet synced. A file that was deleted may be there again after a power loss, until its directory is
 * synced: SQLite's unix layer does that at the first sync of a log or journal that it may have made, so this one does too. The same goes for the name of
 * a new file. What goes wrong, and when, is the world's to say: it is asked before every operation. There is one disk in a program.
 */
#ifndef SEMEL_TESTS_DISK_H
#define SEMEL_TESTS_DISK_H

#include "store/store.h"

enum disk_point {
    DISK_OPENS,
    DISK_READS,
    DISK_WRITES,
    DISK_TRUNCATES,
    DISK_DELETES,
    DISK_SYNCS,      /* nothing of it is durable yet */
    DISK_SYNCS_NAME, /* … its contents are, its directory is not */
    DISK_SYNCED,     /* everything is, but perhaps nobody gets to know */
};

struct disk_step {
    enum disk_point point;
    const char *file;
    size_t amount; /* bytes that are there to be read, or to be written; the world may make it less */
    bool grows;    /* the file, by a write */
    bool unsynced; /* there is something to sync */
    bool drops;    /* set by the world: what was not synced is lost, and yet looks clean, as Linux does it */
};

struct disk_world {
    uint64_t (*draw)(uint64_t limit);       /* below it */
    int (*meets)(struct disk_step *step);   /* what SQLite is told: SQLITE_OK, or what went wrong */
    void *(*resize)(void *at, size_t size); /* memory; never fails */
    void (*release)(void *at);
};

/* What a crash leaves of what was written and not synced. */
enum disk_loss {
    LOSE_PROCESS,  /* the page cache lives on */
    LOSE_NOTHING,  /* all of it is there */
    LOSE_UNSYNCED, /* nothing of it */
    LOSE_SOME,     /* each write is there or not */
    LOSE_SECTORS,  /* … or torn at its sectors */
    LOSE_ANYHOW,   /* nothing, everything or sectors: each file draws */
};

struct disk_lost {
    uint64_t writes, torn;
};

void disk_setup(const struct disk_world *world);
void disk_empty(void);
void disk_keep_as_template(void); /* the database as it is now */
void disk_load_template(void);
struct disk_lost disk_crash(enum disk_loss loss);
CHECKED enum status disk_open(int checkpoint_pages, struct store **ret_store, struct why *why);
bool disk_is_main(const char *file);

#endif
