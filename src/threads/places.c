#include "threads/threads.h"

enum status threads_init(struct thread_places *places, struct arena *arena, size_t most, struct why *why)
{
    *places = (struct thread_places){.arena = arena, .size = most * 2 + 3};
    places->slots = arena_zalloc(arena, places->size, sizeof *places->slots);
    return places->slots != NULL ? OK : why_set(why, FULL, "no memory for a pass");
}

static struct thread_place **slot_of(const struct thread_places *places, const uint8_t *h)
{
    uint64_t n;
    memcpy(&n, h, sizeof n);
    size_t slot = (size_t)(n % places->size);
    while (places->slots[slot] != NULL && memcmp(places->slots[slot]->h, h, KEY_HASH_SIZE) != 0)
        slot = (slot + 1) % places->size;
    return &places->slots[slot];
}

struct thread_place *threads_at(struct thread_places *places, const uint8_t h[KEY_HASH_SIZE])
{
    struct thread_place **slot = slot_of(places, h);
    if (*slot != NULL)
        return *slot;
    struct thread_place *place = places->count + 1 < places->size ? arena_zalloc(places->arena, 1, sizeof *place) : NULL;
    if (place == NULL)
        return NULL;
    memcpy(place->h, h, KEY_HASH_SIZE);
    *slot = place;
    places->count++;
    return place;
}

static struct thread_open *open_thread(struct thread_places *places, const struct row_thread *row)
{
    for (struct thread_open *thread = places->threads; thread != NULL; thread = thread->next)
        if (thread->row.id == row->id)
            return thread;
    struct thread_open *thread = arena_zalloc(places->arena, 1, sizeof *thread);
    if (thread == NULL)
        return NULL;
    thread->row = *row;
    thread->row.space = arena_dup(places->arena, row->space);
    thread->next = places->threads;
    places->threads = thread;
    return thread;
}

bool threads_found(struct thread_places *places, struct thread_place *place, const struct row_thread *row)
{
    place->thread = open_thread(places, row);
    return place->thread != NULL;
}

static enum status take_place(void *ctx, const void *row, struct why *why)
{
    struct thread_places *places = ctx;
    const struct r_thread_by_mark *got = row;
    if (got->h.len != KEY_HASH_SIZE)
        return why_set(why, BROKEN, "a mark of a thread is damaged");
    struct row_thread thread = {got->id,      got->space, got->epoch,    got->question, got->created,
                                got->updated, got->burst, got->burst_at, got->record};
    struct thread_place *place = *slot_of(places, (const uint8_t *)got->h.at);
    ASSERT(place != NULL);
    return threads_found(places, place, &thread) ? OK : why_set(why, FULL, "no memory for a pass");
}

enum status threads_load(struct thread_places *places, struct store *store, struct why *why)
{
    struct q_thread_by_mark *gets = arena_zalloc(places->arena, places->count + 1, sizeof *gets);
    size_t count = 0;
    if (gets == NULL)
        return why_set(why, FULL, "no memory for a pass");
    for (size_t i = 0; i < places->size; i++)
        if (places->slots[i] != NULL)
            gets[count++].h = (struct bytes){(const char *)places->slots[i]->h, KEY_HASH_SIZE};
    return store_run(store, &THREAD_BY_MARK, gets, count, take_place, places, NULL, why);
}

struct thread_open *threads_new(struct thread_places *places, struct ledger *ledger, struct bytes space)
{
    int64_t now = ledger->now.wall_us;
    struct row_thread row = {.id = id_next(ledger->ids, now), .space = space, .created = now, .updated = now};
    struct thread_open *thread = open_thread(places, &row);
    if (thread != NULL)
        thread->changed = true;
    return thread;
}

void threads_mark(struct thread_place *place, struct thread_open *thread)
{
    if (place->thread != NULL)
        return;
    place->thread = thread;
    place->fresh = true;
}

enum status threads_save(struct thread_places *places, struct store *store, struct why *why)
{
    size_t thread_count = 0, mark_count = 0;
    for (const struct thread_open *thread = places->threads; thread != NULL; thread = thread->next)
        thread_count++;
    struct row_thread *rows = arena_zalloc(places->arena, thread_count + 1, sizeof *rows);
    struct q_thread_mark_add *marks = arena_zalloc(places->arena, places->count + 1, sizeof *marks);
    if (rows == NULL || marks == NULL)
        return why_set(why, FULL, "no memory for a pass");
    thread_count = 0;
    for (const struct thread_open *thread = places->threads; thread != NULL; thread = thread->next)
        if (thread->changed)
            rows[thread_count++] = thread->row;
    for (size_t i = 0; i < places->size; i++)
        if (places->slots[i] != NULL && places->slots[i]->fresh)
            marks[mark_count++] =
                (struct q_thread_mark_add){{(const char *)places->slots[i]->h, KEY_HASH_SIZE}, places->slots[i]->thread->row.id};
    TRY(store_run(store, &THREAD_PUT, rows, thread_count, NULL, NULL, NULL, why));
    return store_run(store, &THREAD_MARK_ADD, marks, mark_count, NULL, NULL, NULL, why);
}
