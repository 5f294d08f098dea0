#include "stage/marks.h"

enum status marks_init(struct marks *marks, struct arena *arena, size_t most, struct why *why)
{
    *marks = (struct marks){.arena = arena, .size = most * 2 + 3};
    marks->slots = arena_zalloc(arena, marks->size, sizeof *marks->slots);
    marks->known = arena_zalloc(arena, marks->size, sizeof *marks->known);
    return marks->slots != NULL && marks->known != NULL ? OK : why_set(why, FULL, "no memory for a pass");
}

static struct mark **slot_of(const struct marks *marks, const uint8_t *h)
{
    uint64_t n;
    memcpy(&n, h, sizeof n);
    size_t slot = (size_t)(n % marks->size);
    while (marks->slots[slot] != NULL && memcmp(marks->slots[slot]->h, h, KEY_HASH_SIZE) != 0)
        slot = (slot + 1) % marks->size;
    return &marks->slots[slot];
}

struct mark *marks_at(struct marks *marks, const uint8_t h[KEY_HASH_SIZE], int64_t most)
{
    struct mark **slot = slot_of(marks, h);
    if (*slot != NULL)
        return *slot;
    if (marks->count + 1 >= marks->size)
        return NULL;
    struct mark *mark = arena_zalloc(marks->arena, 1, sizeof *mark);
    if (mark == NULL)
        return NULL;
    memcpy(mark->h, h, KEY_HASH_SIZE);
    mark->most = most;
    *slot = mark;
    marks->count++;
    return mark;
}

static struct known **known_of(const struct marks *marks, int64_t id)
{
    struct known **place = &marks->known[((uint64_t)id * 0x9E3779B97F4A7C15u) % marks->size];
    while (*place != NULL && (*place)->row.id != id)
        place = &(*place)->next;
    return place;
}

/* An event of which only the id is known so far. */
static struct known *add_known(struct marks *marks, int64_t id)
{
    struct known **place = known_of(marks, id);
    if (*place != NULL)
        return *place;
    struct known *known = arena_zalloc(marks->arena, 1, sizeof *known);
    if (known == NULL)
        return NULL;
    known->row.id = id;
    known->gone = true;
    *place = known;
    return known;
}

static bool add_sighting(struct marks *marks, struct mark *mark, struct known *known, int64_t at_us)
{
    struct sighting *sighting = arena_zalloc(marks->arena, 1, sizeof *sighting);
    if (sighting == NULL || known == NULL)
        return false;
    *sighting = (struct sighting){known, at_us, mark->first};
    mark->first = sighting;
    return true;
}

void marks_see(struct marks *marks, struct mark *mark, struct known *known)
{
    struct known **place = known_of(marks, known->row.id);
    if (*place == NULL)
        *place = known;
    add_sighting(marks, mark, known, known->row.received); /* without memory the arena has failed, and with it the pass */
}

/* ---- loading ---- */

bool marks_add(struct marks *marks, struct mark *mark, int64_t event, int64_t at_us)
{
    return add_sighting(marks, mark, add_known(marks, event), at_us);
}

static enum status take_sighting(void *ctx, const void *row, struct why *why)
{
    struct marks *marks = ctx;
    const struct r_event_mark_get *got = row;
    if (got->h.len != KEY_HASH_SIZE)
        return why_set(why, BROKEN, "a mark of an event is damaged");
    struct mark *mark = *slot_of(marks, (const uint8_t *)got->h.at);
    return mark != NULL && marks_add(marks, mark, got->event, got->at) ? OK : why_set(why, FULL, "no memory for a pass");
}

static enum status take_known(void *ctx, const void *row, struct why *why)
{
    struct marks *marks = ctx;
    const struct row_event *got = row;
    struct known *known = *known_of(marks, got->id);
    if (known == NULL || !known->gone)
        return OK;
    known->row = *got;
    known->row.space = arena_dup(marks->arena, got->space);
    known->row.source = arena_dup(marks->arena, got->source);
    known->row.content = arena_dup(marks->arena, got->content);
    known->row.reason = known->row.explanation = BYTES_NONE;
    known->gone = false;
    return marks->arena->failed ? why_set(why, FULL, "no memory for a pass") : OK;
}

enum status known_read(struct known *known, struct arena *arena, struct why *why)
{
    if (known->read)
        return OK;
    TRY(event_read(known->row.content, arena, &known->incoming, why));
    TRY(message_read(known->incoming.text, arena, &known->text, why));
    known->read = true;
    return OK;
}

enum status marks_know(struct marks *marks, struct store *store, struct why *why)
{
    size_t count = 0, n = 0;
    for (size_t i = 0; i < marks->size; i++)
        for (const struct known *known = marks->known[i]; known != NULL; known = known->next)
            count++;
    struct q_event_by_id *ids = arena_zalloc(marks->arena, count + 1, sizeof *ids);
    if (ids == NULL)
        return why_set(why, FULL, "no memory for a pass");
    for (size_t i = 0; i < marks->size; i++)
        for (const struct known *known = marks->known[i]; known != NULL; known = known->next)
            ids[n++].id = known->row.id;
    return store_run(store, &EVENT_BY_ID, ids, count, take_known, marks, NULL, why);
}

enum status marks_find(struct marks *marks, struct store *store, int64_t before_us, struct why *why)
{
    struct q_event_mark_get *gets = arena_zalloc(marks->arena, marks->count + 1, sizeof *gets);
    size_t count = 0;
    if (gets == NULL)
        return why_set(why, FULL, "no memory for a pass");
    for (size_t i = 0; i < marks->size; i++)
        if (marks->slots[i] != NULL)
            gets[count++] =
                (struct q_event_mark_get){{(const char *)marks->slots[i]->h, KEY_HASH_SIZE}, marks->slots[i]->most, before_us};
    return store_run(store, &EVENT_MARK_GET, gets, count, take_sighting, marks, NULL, why);
}

/* ---- copies ---- */

enum status marks_save_copies(struct marks *marks, struct store *store, struct why *why)
{
    struct q_event_copied *copied = arena_zalloc(marks->arena, marks->count + 1, sizeof *copied);
    size_t count = 0;
    if (copied == NULL)
        return why_set(why, FULL, "no memory for a pass");
    for (size_t i = 0; i < marks->size; i++)
        for (const struct known *known = marks->known[i]; known != NULL; known = known->next)
            if (known->copied && !known->gone && count < marks->count)
                copied[count++] =
                    (struct q_event_copied){known->row.id, known->row.copies, known->row.burst, known->row.burst_at};
    return store_run(store, &EVENT_COPIED, copied, count, NULL, NULL, NULL, why);
}
