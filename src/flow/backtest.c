#include "flow/backtest.h"

#include <stdio.h>
#include <stdlib.h>

#include "flow/flow_own.h"

#define BOOK_SLOTS (1u << 19)
#define BOOK_LEFT_MIN ((size_t)16 << 20)  /* more than one step can note */
#define CLOCKS_APART_US (5 * WHEN_SECOND) /* ids are made by the clock of another node, or of the database */
#define PASS_SIZE_MAX ((size_t)256 << 20)

/* What the other policy would have remembered. */
struct noted_mark {
    uint8_t h[KEY_HASH_SIZE];
    int64_t event, at_us;
    struct noted_mark *next;
};

struct noted_thread {
    struct row_thread row;
    struct noted_thread *next;
};

struct noted_place {
    uint8_t h[KEY_HASH_SIZE];
    struct noted_thread *thread;
    struct noted_place *next;
};

struct backtest {
    struct policy *policy;
    struct bytes pepper, space;
    int64_t since_us, until_us, after, before;
    bool full;
    struct arena book, arena;
    struct noted_mark **marks;
    struct noted_place **places;
    struct noted_thread **threads; /* by id */
    struct id_source ids;
    struct quiet quiet; /* of the item under way */
    struct backtest_counts counts;
};

struct backtest_pass {
    struct pass pass; /* first: recall is given this one */
    struct backtest *backtest;
};

static struct backtest *backtest_of(struct pass *pass)
{
    return ((struct backtest_pass *)pass)->backtest;
}

static size_t slot_of(const uint8_t *h)
{
    uint32_t n;
    memcpy(&n, h, sizeof n);
    return n % BOOK_SLOTS;
}

static struct noted_thread **thread_of(const struct backtest *backtest, int64_t id)
{
    struct noted_thread **place = &backtest->threads[((uint64_t)id * 0x9E3779B97F4A7C15u >> 40) % BOOK_SLOTS];
    while (*place != NULL && (*place)->row.id != id)
        place = &(*place)->next;
    return place;
}

/* ---- remembering ---- */

/* The newest first, as many as the flow looks up. */
static bool recall_mark(struct pass *pass, struct mark *mark)
{
    int64_t count = 0;
    const struct noted_mark *noted = backtest_of(pass)->marks[slot_of(mark->h)];
    for (; noted != NULL && count < mark->most; noted = noted->next) {
        if (memcmp(noted->h, mark->h, KEY_HASH_SIZE) != 0)
            continue;
        if (!marks_add(&pass->marks, mark, noted->event, noted->at_us))
            return false;
        count++;
    }
    return true;
}

static enum status recall_marks(struct pass *pass)
{
    TRY(marks_find(&pass->marks, pass->store, backtest_of(pass)->since_us, pass->why));
    for (size_t i = 0; i < pass->marks.size; i++)
        if (pass->marks.slots[i] != NULL && !recall_mark(pass, pass->marks.slots[i]))
            return pass_no_memory(pass);
    return marks_know(&pass->marks, pass->store, pass->why);
}

static enum status recall_threads(struct pass *pass)
{
    for (size_t i = 0; i < pass->places.size; i++) {
        struct thread_place *place = pass->places.slots[i];
        const struct noted_place *noted = place != NULL ? backtest_of(pass)->places[slot_of(place->h)] : NULL;
        while (noted != NULL && memcmp(noted->h, place->h, KEY_HASH_SIZE) != 0)
            noted = noted->next;
        if (noted != NULL && !threads_found(&pass->places, place, &noted->thread->row))
            return pass_no_memory(pass);
    }
    return OK;
}

/* What a person had quieted then is not the policy's. */
static enum status recall_quiet(struct pass *pass, const struct item *item, struct quiet **ret)
{
    struct quiet *quiet = &backtest_of(pass)->quiet;
    *quiet = (struct quiet){.row = {.muted_until = item->known.row.verdict == EVENT_MUTED ? INT64_MAX : 0}};
    *ret = quiet;
    return OK;
}

/* Verdicts do not depend on answers. */
static enum status recall_answered(struct pass *pass, const struct row_thread *thread, bool *ret_answered)
{
    (void)pass;
    (void)thread;
    *ret_answered = false;
    return OK;
}

static enum status tell_nobody(struct pass *pass, const struct item *item, enum exception_kind kind, int64_t event,
                               const char *reason)
{
    (void)pass;
    (void)item;
    (void)kind;
    (void)event;
    (void)reason;
    return OK;
}

static const struct recall recall_book = {recall_marks, recall_threads, recall_quiet, recall_answered, tell_nobody};

/* ---- noting ---- */

/* As the table does: a mark of an event is noted once, however many copies lead to it. */
static void note_mark(struct backtest *backtest, const uint8_t *h, int64_t event, int64_t at_us)
{
    for (const struct noted_mark *old = backtest->marks[slot_of(h)]; old != NULL; old = old->next)
        if (old->event == event && memcmp(old->h, h, KEY_HASH_SIZE) == 0)
            return;
    struct noted_mark *noted = arena_zalloc(&backtest->book, 1, sizeof *noted);
    if (noted == NULL)
        return; /* the book has failed, and with it the step */
    memcpy(noted->h, h, KEY_HASH_SIZE);
    noted->event = event;
    noted->at_us = at_us;
    noted->next = backtest->marks[slot_of(h)];
    backtest->marks[slot_of(h)] = noted;
}

static struct noted_thread *note_thread(struct backtest *backtest, const struct row_thread *row)
{
    struct noted_thread **place = thread_of(backtest, row->id);
    if (*place == NULL)
        *place = arena_zalloc(&backtest->book, 1, sizeof **place);
    if (*place != NULL) {
        (*place)->row = *row;
        (*place)->row.space = backtest->space;
    }
    return *place;
}

static void note_place(struct backtest *backtest, const struct thread_place *place)
{
    struct noted_thread *thread = note_thread(backtest, &place->thread->row);
    struct noted_place *noted = arena_zalloc(&backtest->book, 1, sizeof *noted);
    if (noted == NULL || thread == NULL)
        return;
    memcpy(noted->h, place->h, KEY_HASH_SIZE);
    noted->thread = thread;
    noted->next = backtest->places[slot_of(place->h)];
    backtest->places[slot_of(place->h)] = noted;
}

static void note_pass(struct backtest *backtest, const struct pass *pass)
{
    for (size_t i = 0; i < pass->count; i++) {
        const struct item *item = &pass->items[i];
        int64_t event;
        for (size_t k = 0; k < item->mark_count; k++)
            if (item_leaves_mark(item, item->marks[k].kind, &event))
                note_mark(backtest, item->marks[k].mark->h, event, item->known.row.received);
    }
    for (const struct thread_open *thread = pass->places.threads; thread != NULL; thread = thread->next)
        note_thread(backtest, &thread->row);
    for (size_t i = 0; i < pass->places.size; i++)
        if (pass->places.slots[i] != NULL && pass->places.slots[i]->fresh)
            note_place(backtest, pass->places.slots[i]);
}

/* ---- counting ---- */

/* What a person let through was first decided otherwise, and may well be so again. What could not be forwarded was to go on, and
 * forwarding is not tried here. */
static bool is_otherwise(const struct row_event *was, enum event_verdict would)
{
    bool was_to_go_on = was->verdict == EVENT_HELD && bytes_is(was->reason, "cannot_forward");
    return was->verdict != (int64_t)would && was->verdict != EVENT_RELEASED && !(was_to_go_on && would == EVENT_ACCEPTED);
}

static void count_item(struct backtest_counts *counts, const struct item *item)
{
    const struct row_event *row = &item->known.row;
    counts->events++;
    counts->verdicts[row->verdict][item->verdict.verdict]++;
    if (!is_otherwise(row, item->verdict.verdict))
        return;
    counts->changed++;
    if (counts->example_count == BACKTEST_EXAMPLES_MAX)
        return;
    struct backtest_example *example = &counts->examples[counts->example_count++];
    *example = (struct backtest_example){.event = row->id,
                                         .first = item->verdict.first,
                                         .was = (enum event_verdict)row->verdict,
                                         .would = item->verdict.verdict,
                                         .score = item->verdict.score};
    snprintf(example->was_reason, sizeof example->was_reason, "%.*s", BYTES_ARG(row->reason));
    snprintf(example->would_reason, sizeof example->would_reason, "%s", item->verdict.reason);
    snprintf(example->source, sizeof example->source, "%.*s", BYTES_ARG(row->source));
}

/* ---- steps ---- */

static enum status take_row(void *ctx, const void *row, struct why *why)
{
    struct backtest_pass *at = ctx;
    const struct row_event *event = row;
    struct backtest *backtest = at->backtest;
    if (event->verdict <= 0 || event->verdict >= EVENT_VERDICT_COUNT)
        return why_set(why, BROKEN, "event %lld is damaged", (long long)event->id);
    TRY(pass_take(&at->pass, row, why));
    struct row_event *kept = &at->pass.items[at->pass.count - 1].known.row;
    kept->reason = event->reason.at != NULL ? arena_dup(&backtest->arena, event->reason) : BYTES("");
    backtest->after = event->id;
    return OK;
}

static enum status decide_all(struct backtest_pass *at)
{
    struct pass *pass = &at->pass;
    TRY(pass_collect(pass));
    for (size_t i = 0; i < pass->count; i++) {
        pass->ledger->now.wall_us = pass->items[i].known.row.received;
        TRY(pass_judge(pass, &pass->items[i]));
        count_item(&at->backtest->counts, &pass->items[i]);
    }
    note_pass(at->backtest, pass);
    return at->backtest->book.failed ? why_set(pass->why, FULL, "no memory for so many events") : OK;
}

enum status backtest_step(struct backtest *backtest, struct store *store, struct why *why)
{
    arena_clear(&backtest->arena);
    struct ledger ledger = {.arena = &backtest->arena, .ids = &backtest->ids};
    struct backtest_pass at = {.pass = {.recall = &recall_book,
                                        .store = store,
                                        .ledger = &ledger,
                                        .arena = &backtest->arena,
                                        .policy = backtest->policy,
                                        .pepper = backtest->pepper,
                                        .why = why},
                               .backtest = backtest};
    struct q_event_decided_after find = {backtest->space, backtest->after, backtest->before, FLOW_PASS_MAX};
    at.pass.items = arena_zalloc(&backtest->arena, FLOW_PASS_MAX, sizeof *at.pass.items);
    if (at.pass.items == NULL)
        return why_set(why, FULL, "no memory for a pass");
    backtest->full = backtest->book.used_total > BACKTEST_SIZE_MAX - BOOK_LEFT_MIN;
    if (!backtest->full)
        TRY(store_run(store, &EVENT_DECIDED_AFTER, &find, 1, take_row, &at, NULL, why));
    return at.pass.count > 0 ? decide_all(&at) : NOTHING;
}

enum status backtest_open(struct policy *policy, struct bytes pepper, struct bytes space, int64_t since_us, int64_t until_us,
                          struct backtest **ret_backtest, struct why *why)
{
    struct backtest *backtest = calloc(1, sizeof *backtest);
    if (backtest == NULL)
        return why_set(why, FULL, "no memory for a backtest");
    arena_init(&backtest->book, BACKTEST_SIZE_MAX);
    arena_init(&backtest->arena, PASS_SIZE_MAX);
    id_init(&backtest->ids, 0, 0);
    backtest->policy = policy;
    backtest->pepper = pepper;
    backtest->space = arena_dup(&backtest->book, space);
    backtest->since_us = since_us;
    backtest->until_us = until_us;
    backtest->after = id_floor(since_us);
    backtest->before = id_floor(until_us + CLOCKS_APART_US);
    backtest->marks = arena_zalloc(&backtest->book, BOOK_SLOTS, sizeof(struct noted_mark *));
    backtest->places = arena_zalloc(&backtest->book, BOOK_SLOTS, sizeof(struct noted_place *));
    backtest->threads = arena_zalloc(&backtest->book, BOOK_SLOTS, sizeof(struct noted_thread *));
    policy_use(policy);
    if (backtest->book.failed) {
        backtest_close(backtest);
        return why_set(why, FULL, "no memory for a backtest");
    }
    *ret_backtest = backtest;
    return OK;
}

void backtest_close(struct backtest *backtest)
{
    policy_free(backtest->policy);
    arena_release(&backtest->book);
    arena_release(&backtest->arena);
    free(backtest);
}

bool backtest_is_whole(const struct backtest *backtest)
{
    return !backtest->full;
}

int64_t backtest_at_us(const struct backtest *backtest)
{
    int64_t at_us = id_time_us(backtest->after);
    if (backtest->counts.events == 0)
        return backtest->since_us;
    return at_us < backtest->until_us ? at_us : backtest->until_us;
}

const struct backtest_counts *backtest_counts(const struct backtest *backtest)
{
    return &backtest->counts;
}
