/*
 * marks: by what events are recognised, in memory during one pass of the flow. The marks of all its events are collected, looked up in
 * one go together with the events that have them, and grow as the pass decides: later events of a pass see the earlier ones.
 */
#ifndef SEMEL_STAGE_MARKS_H
#define SEMEL_STAGE_MARKS_H

#include "fingerprint/message.h"
#include "stage/stage.h"

/* An event that others may repeat. */
struct known {
    struct row_event row;
    struct incoming incoming; /* these two when `read`: see known_read() */
    struct message text;
    bool read;
    bool gone;   /* only its marks are left */
    bool copied; /* row.copies, burst, burst_at are to be written */
    struct known *next;
};

struct sighting {
    struct known *known;
    int64_t at_us;
    struct sighting *next;
};

struct mark {
    uint8_t h[KEY_HASH_SIZE];
    int64_t most; /* how many sightings are looked up */
    struct sighting *first;
};

struct marks {
    struct arena *arena;
    struct mark **slots;
    struct known **known; /* by id, chained */
    size_t size, count;
};

/* For at most `most` marks. */
CHECKED enum status marks_init(struct marks *marks, struct arena *arena, size_t most, struct why *why);

/* The mark of that hash, new or there. NULL when there is no memory or no room. */
struct mark *marks_at(struct marks *marks, const uint8_t h[KEY_HASH_SIZE], int64_t most);

/* Who had them before `before_us`, by the database. */
CHECKED enum status marks_find(struct marks *marks, struct store *store, int64_t before_us, struct why *why);

/* An event of that id has it; what the event is, marks_know() finds out. False without memory. */
bool marks_add(struct marks *marks, struct mark *mark, int64_t event, int64_t at_us);

/* What is stored of the events that have them. */
CHECKED enum status marks_know(struct marks *marks, struct store *store, struct why *why);

/* Reads what it says, once. Not of one that is gone. */
CHECKED enum status known_read(struct known *known, struct arena *arena, struct why *why);

/* From now on the event has this mark. */
void marks_see(struct marks *marks, struct mark *mark, struct known *known);

/* What was counted of copies. */
CHECKED enum status marks_save_copies(struct marks *marks, struct store *store, struct why *why);

#endif
