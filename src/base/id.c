#include "base/id.h"

#include "base/status.h"

enum { COUNT_BITS = 12, TIME_SHIFT = 22, COUNT_MAX = (1 << COUNT_BITS) - 1 };

/* The sign bit of the 64 stays free, which is enough until the year 2089. */
#define TIME_MAX_MS ((INT64_C(1) << 41) - 1)

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

void id_init(struct id_source *source, uint32_t lane, int64_t floor)
{
    ASSERT(lane < ID_LANES);
    ASSERT(floor >= 0);
    *source = (struct id_source){lane, floor};
}

static int64_t time_of(int64_t wall_us, int64_t last)
{
    int64_t ms = wall_us / 1000 - ID_EPOCH_MS;
    if (ms > TIME_MAX_MS)
        ms = TIME_MAX_MS;
    return ms > last >> TIME_SHIFT ? ms : last >> TIME_SHIFT;
}

int64_t id_next(struct id_source *source, int64_t wall_us)
{
    int64_t ms = time_of(wall_us, source->last);
    int64_t first = ms << TIME_SHIFT | (int64_t)source->lane << COUNT_BITS;
    if (first > source->last) {
        source->last = first;
    } else if (source->last < (first | COUNT_MAX)) {
        source->last++;
    } else {
        /* This millisecond is used up: borrow the next one instead of waiting for it. */
        ASSERT(ms < TIME_MAX_MS);
        source->last = first + (INT64_C(1) << TIME_SHIFT);
    }
    return source->last;
}

int64_t id_floor(int64_t wall_us)
{
    int64_t ms = wall_us / 1000 - ID_EPOCH_MS;
    return ms < 0 ? 0 : (ms > TIME_MAX_MS ? TIME_MAX_MS : ms) << TIME_SHIFT;
}

int64_t id_time_us(int64_t id)
{
    return ((id >> TIME_SHIFT) + ID_EPOCH_MS) * 1000;
}

size_t id_format(const char *prefix, int64_t id, char *ret)
{
    size_t len = strlen(prefix);
    memcpy(ret, prefix, len);
    ret[len++] = '_';
    for (int digit = ID_DIGITS - 1; digit >= 0; digit--)
        ret[len++] = alphabet[(uint64_t)id >> (5 * digit) & 31];
    ret[len] = '\0';
    return len;
}

static bool parse_digits(struct bytes text, int64_t *ret_id)
{
    uint64_t id = 0;
    /* 13 digits hold 65 bits; an id has 63. */
    if (text.len != ID_DIGITS || text.at[0] > '7')
        return false;
    for (size_t i = 0; i < text.len; i++) {
        const char *found = text.at[i] != '\0' ? strchr(alphabet, text.at[i]) : NULL;
        if (found == NULL)
            return false;
        id = id << 5 | (uint64_t)(found - alphabet);
    }
    *ret_id = (int64_t)id;
    return true;
}

struct bytes id_text(const char *prefix, int64_t id, struct arena *arena)
{
    char text[32];
    return arena_dup(arena, (struct bytes){text, id_format(prefix, id, text)});
}

bool id_parse(const char *prefix, struct bytes text, int64_t *ret_id)
{
    struct bytes head = bytes_of(prefix);
    if (text.len != head.len + 1 + ID_DIGITS || !bytes_starts(text, head) || text.at[head.len] != '_')
        return false;
    return parse_digits(bytes_from(text, head.len + 1), ret_id);
}
