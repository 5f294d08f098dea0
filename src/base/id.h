/*
 * id: 64-bit ids that sort by time. 42 bits of milliseconds since 2020-01-01, 10 bits of lane (which writer), 12 bits of count.
 * Text: a prefix and 13 characters of Crockford base 32, lower case: `int_0c8zq4x7m2k1h`. They sort as text too.
 * Ids are not secrets.
 */
#ifndef SEMEL_BASE_ID_H
#define SEMEL_BASE_ID_H

#include "base/arena.h"

#define ID_DIGITS 13
#define ID_LANES 1024
#define ID_EPOCH_MS INT64_C(1577836800000)

struct id_source {
    uint32_t lane;
    int64_t last; /* the last id given out; ids only grow, also when the clock goes back */
};

/* `floor` is the greatest id already stored for this lane (0 for none). */
void id_init(struct id_source *source, uint32_t lane, int64_t floor);

int64_t id_next(struct id_source *source, int64_t wall_us);

/* The smallest id that can be given out at that wall time. */
int64_t id_floor(int64_t wall_us);

/* The wall time inside an id. */
int64_t id_time_us(int64_t id);

/* Writes e.g. "int_0c8zq4x7m2k1h"; `prefix` without '_'. `ret` has room for strlen(prefix) + 15. Returns the length. */
size_t id_format(const char *prefix, int64_t id, char *ret);

/* The same in the arena; BYTES_NONE without memory. */
struct bytes id_text(const char *prefix, int64_t id, struct arena *arena);

/* Exact prefix and form, else false. */
bool id_parse(const char *prefix, struct bytes text, int64_t *ret_id);

#endif
