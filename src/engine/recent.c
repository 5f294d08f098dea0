/*
 * recent: the claims that this node gave out lately, as it wrote them. On PostgreSQL a batch may be decided on them without
 * asking; the same transaction then makes sure that they are still so (intent_hold). Nothing is ever answered from here alone.
 */
#include <stdlib.h>

#include "engine/engine_own.h"

#define SETS 2048
#define WAYS 4
#define MEMORY_MAX 2048 /* of the texts of one; larger ones are not kept */

struct recent_intent {
    struct row_intent row; /* id 0: empty */
    uint64_t age;
    char *memory; /* its texts */
    size_t room;
};

struct recent {
    struct recent_intent at[SETS][WAYS];
    uint16_t by_hash[SETS * WAYS * 2]; /* place + 1 of the last one with this hash; to be checked */
    uint64_t age;
};

struct recent *recent_new(void)
{
    struct recent *recent = calloc(1, sizeof *recent);
    ASSERT(recent != NULL);
    return recent;
}

void recent_free(struct recent *recent)
{
    for (size_t i = 0; recent != NULL && i < (size_t)SETS * WAYS; i++)
        free(recent->at[i / WAYS][i % WAYS].memory);
    free(recent);
}

void recent_clear(struct recent *recent)
{
    for (size_t i = 0; recent != NULL && i < (size_t)SETS * WAYS; i++)
        recent->at[i / WAYS][i % WAYS].row.id = 0;
}

static struct recent_intent *set_of(struct recent *recent, int64_t id)
{
    return recent->at[((uint64_t)id * 0x9E3779B97F4A7C15u) >> 53];
}

_Static_assert(SETS == 1 << (64 - 53), "the upper bits of the product are the set");

static uint16_t *hash_place(struct recent *recent, const uint8_t *h)
{
    uint64_t n;
    memcpy(&n, h, sizeof n);
    return &recent->by_hash[n % (sizeof recent->by_hash / sizeof *recent->by_hash)];
}

static struct recent_intent *find(struct recent *recent, int64_t id)
{
    struct recent_intent *set = set_of(recent, id);
    for (size_t i = 0; i < WAYS; i++)
        if (set[i].row.id == id)
            return &set[i];
    return NULL;
}

const struct row_intent *recent_by_id(struct recent *recent, int64_t id)
{
    const struct recent_intent *found = id != 0 ? find(recent, id) : NULL;
    return found != NULL ? &found->row : NULL;
}

const struct row_intent *recent_by_hash(struct recent *recent, const uint8_t *h)
{
    uint16_t place = *hash_place(recent, h);
    if (place == 0)
        return NULL;
    const struct row_intent *row = &recent->at[(place - 1) / WAYS][(place - 1) % WAYS].row;
    return row->id != 0 && memcmp(row->h.at, h, KEY_HASH_SIZE) == 0 ? row : NULL;
}

void recent_forget(struct recent *recent, int64_t id)
{
    struct recent_intent *found = id != 0 ? find(recent, id) : NULL;
    if (found != NULL)
        found->row.id = 0;
}

/* The one with this id, else an empty place, else the oldest. */
static struct recent_intent *place_for(struct recent *recent, int64_t id)
{
    struct recent_intent *set = set_of(recent, id), *best = find(recent, id);
    for (size_t i = 0; i < WAYS && best == NULL; i++)
        if (set[i].row.id == 0)
            best = &set[i];
    for (size_t i = 0; i < WAYS && best == NULL; i++)
        if (set[i].age <= set[0].age && set[i].age <= set[1].age && set[i].age <= set[2].age && set[i].age <= set[3].age)
            best = &set[i];
    return best;
}

static size_t texts_size(const struct row_intent *row)
{
    size_t size = 0;
    for (size_t i = 0; i < INTENT_ADD.param_count; i++)
        if (INTENT_ADD.params[i].type != COLUMN_INT)
            size += ((const struct bytes *)((const char *)row + INTENT_ADD.params[i].offset))->len;
    return size;
}

static void copy_texts(struct recent_intent *to)
{
    size_t used = 0;
    for (size_t i = 0; i < INTENT_ADD.param_count; i++) {
        struct bytes *bytes = (struct bytes *)((char *)&to->row + INTENT_ADD.params[i].offset);
        if (INTENT_ADD.params[i].type == COLUMN_INT || bytes->at == NULL)
            continue;
        memcpy(to->memory + used, bytes->at, bytes->len);
        bytes->at = to->memory + used;
        used += bytes->len;
    }
}

void recent_keep(struct recent *recent, const struct row_intent *row)
{
    size_t size = texts_size(row);
    struct recent_intent *to = place_for(recent, row->id);
    to->row.id = 0;
    if (size > MEMORY_MAX)
        return;
    if (size > to->room) {
        free(to->memory);
        to->room = 0;
        to->memory = malloc(size);
        if (to->memory == NULL)
            return;
        to->room = size;
    }
    to->row = *row;
    to->age = ++recent->age;
    copy_texts(to);
    *hash_place(recent, (const uint8_t *)to->row.h.at) = (uint16_t)(to - recent->at[0] + 1);
}
