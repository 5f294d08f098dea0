/* memory_inbox: the tables of what comes in (src/stage, src/threads), and what is asked about answers. */
#include "memory_own.h"

static void keep(struct running *running, const struct query *query, void *row)
{
    memory_keep(running->memory, query->params, query->param_count, row);
}

/* ---- deliveries ---- */

static enum status run_delivery_add(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    struct row_delivery row = *(const struct row_delivery *)params;
    ASSERT(tables->delivery_count < SEEN_MAX);
    keep(running, &DELIVERY_ADD, &row);
    tables->deliveries[tables->delivery_count++] = row;
    return OK;
}

static enum status run_delivery_get(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    for (size_t i = 0; i < tables->delivery_count; i++)
        if (tables->deliveries[i].id == ((const struct q_delivery_get *)params)->id)
            TRY(memory_give(running, &tables->deliveries[i]));
    return OK;
}

static enum status run_delivery_sweep(struct running *running, const void *params)
{
    const struct q_delivery_sweep *sweep = params;
    struct tables *tables = &running->memory->now;
    for (size_t i = 0; i < tables->delivery_count; i++) {
        struct r_delivery_sweep row = {tables->deliveries[i].id};
        bool over = tables->deliveries[i].until < sweep->now;
        for (size_t j = 0; j < tables->event_count && over; j++)
            over = tables->events[j].delivery != row.id;
        if (over)
            TRY(memory_give(running, &row));
    }
    return OK;
}

static enum status run_delivery_drop(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    for (size_t i = 0; i < tables->delivery_count; i++)
        if (tables->deliveries[i].id == ((const struct q_delivery_drop *)params)->id)
            tables->deliveries[i--] = tables->deliveries[--tables->delivery_count];
    return OK;
}

/* ---- events, in the order of their ids ---- */

static struct row_event *find_event(struct tables *tables, int64_t id)
{
    for (size_t i = 0; i < tables->event_count; i++)
        if (tables->events[i].id == id)
            return &tables->events[i];
    return NULL;
}

static enum status run_event_add(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    struct row_event row = *(const struct row_event *)params;
    ASSERT(tables->event_count < SEEN_MAX);
    keep(running, &EVENT_ADD, &row);
    tables->events[tables->event_count++] = row;
    return OK;
}

static enum status run_event_undecided(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    int64_t left = ((const struct q_event_undecided *)params)->most;
    for (size_t i = 0; i < tables->event_count && left > 0; i++) {
        if (tables->events[i].verdict != 0)
            continue;
        TRY(memory_give(running, &tables->events[i]));
        left--;
    }
    return OK;
}

static enum status run_event_by_id(struct running *running, const void *params)
{
    const struct row_event *row = find_event(&running->memory->now, ((const struct q_event_by_id *)params)->id);
    return row != NULL ? memory_give(running, row) : OK;
}

static enum status run_event_get(struct running *running, const void *params)
{
    const struct row_event *row = find_event(&running->memory->now, ((const struct q_event_get *)params)->id);
    return row != NULL ? memory_give(running, row) : OK;
}

static enum status run_event_list(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    ASSERT(((const struct q_event_list *)params)->verdict < 0);
    for (size_t i = tables->event_count; i-- > 0;)
        TRY(memory_give(running, &tables->events[i]));
    return OK;
}

static enum status run_event_waiting_count(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    struct r_event_waiting_count row = {0};
    (void)params;
    for (size_t i = 0; i < tables->event_count; i++)
        row.count += tables->events[i].verdict == 0;
    return memory_give(running, &row);
}

/* Copies the columns by name, as the UPDATE does. */
static enum status run_event_decide(struct running *running, const void *params)
{
    struct row_event_decided decided = *(const struct row_event_decided *)params;
    struct row_event *row = find_event(&running->memory->now, decided.id);
    if (row == NULL)
        return OK;
    keep(running, &EVENT_DECIDE, &decided);
    for (size_t i = 0; i < EVENT_DECIDE.param_count; i++) {
        const struct query_column *from = &EVENT_DECIDE.params[i];
        for (size_t n = 0; n < EVENT_ADD.param_count; n++)
            if (strcmp(EVENT_ADD.params[n].name, from->name) == 0)
                memcpy((char *)row + EVENT_ADD.params[n].offset, (const char *)&decided + from->offset,
                       from->type == COLUMN_INT ? sizeof(int64_t) : sizeof(struct bytes));
    }
    return OK;
}

static enum status run_event_copied(struct running *running, const void *params)
{
    const struct q_event_copied *copied = params;
    struct row_event *row = find_event(&running->memory->now, copied->id);
    if (row == NULL)
        return OK;
    row->copies = copied->copies;
    row->burst = copied->burst;
    row->burst_at = copied->burst_at;
    return OK;
}

static enum status run_event_sweep(struct running *running, const void *params)
{
    const struct q_event_sweep *sweep = params;
    struct tables *tables = &running->memory->now;
    for (size_t i = 0; i < tables->event_count; i++) {
        struct r_event_sweep row = {tables->events[i].id};
        if (tables->events[i].until > 0 && tables->events[i].until < sweep->now)
            TRY(memory_give(running, &row));
    }
    return OK;
}

static enum status run_event_drop(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    struct row_event *row = find_event(tables, ((const struct q_event_drop *)params)->id);
    if (row == NULL)
        return OK;
    struct row_event *end = tables->events + --tables->event_count;
    memmove(row, row + 1, (size_t)(end - row) * sizeof *row);
    return OK;
}

/* ---- marks ---- */

static enum status run_event_mark_add(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    struct q_event_mark_add row = *(const struct q_event_mark_add *)params;
    for (size_t i = 0; i < tables->event_mark_count; i++)
        if (tables->event_marks[i].event == row.event && bytes_eq(tables->event_marks[i].h, row.h))
            return OK;
    ASSERT(tables->event_mark_count < EVENT_MARKS_MAX);
    keep(running, &EVENT_MARK_ADD, &row);
    tables->event_marks[tables->event_mark_count++] = row;
    return OK;
}

static enum status run_event_mark_get(struct running *running, const void *params)
{
    const struct q_event_mark_get *get = params;
    struct tables *tables = &running->memory->now;
    int64_t below = INT64_MAX;
    for (int64_t left = get->most; left > 0; left--) {
        const struct q_event_mark_add *next = NULL;
        for (size_t i = 0; i < tables->event_mark_count; i++) {
            const struct q_event_mark_add *mark = &tables->event_marks[i];
            if (mark->event < below && (next == NULL || mark->event > next->event) && mark->at < get->before &&
                bytes_eq(mark->h, get->h))
                next = mark;
        }
        if (next == NULL)
            return OK;
        struct r_event_mark_get row = {next->h, next->event, next->at};
        TRY(memory_give(running, &row));
        below = next->event;
    }
    return OK;
}

static enum status run_event_mark_sweep(struct running *running, const void *params)
{
    const struct q_event_mark_sweep *sweep = params;
    struct tables *tables = &running->memory->now;
    for (size_t i = 0; i < tables->event_mark_count; i++) {
        const struct q_event_mark_add *mark = &tables->event_marks[i];
        if (bytes_cmp(mark->h, sweep->low) >= 0 && bytes_cmp(mark->h, sweep->high) < 0 && mark->until < sweep->now)
            tables->event_marks[i--] = tables->event_marks[--tables->event_mark_count];
    }
    return OK;
}

/* ---- what a person did ---- */

static enum status run_event_act_add(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    struct row_event_act row = *(const struct row_event_act *)params;
    ASSERT(tables->act_count < 4 * SEEN_MAX);
    keep(running, &EVENT_ACT_ADD, &row);
    tables->acts[tables->act_count++] = row;
    return OK;
}

static enum status run_event_act_list(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    for (size_t i = 0; i < tables->act_count; i++)
        if (tables->acts[i].event == ((const struct q_event_act_list *)params)->event)
            TRY(memory_give(running, &tables->acts[i]));
    return OK;
}

static enum status run_event_act_drop(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    for (size_t i = 0; i < tables->act_count; i++)
        if (tables->acts[i].event == ((const struct q_event_act_drop *)params)->id)
            tables->acts[i--] = tables->acts[--tables->act_count];
    return OK;
}

static struct row_source *find_source(struct tables *tables, struct bytes name)
{
    for (size_t i = 0; i < tables->source_count; i++)
        if (bytes_eq(tables->sources[i].name, name))
            return &tables->sources[i];
    return NULL;
}

static enum status run_source_get(struct running *running, const void *params)
{
    const struct row_source *row = find_source(&running->memory->now, ((const struct q_source_get *)params)->name);
    return row != NULL ? memory_give(running, row) : OK;
}

static enum status run_source_put(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    struct row_source row = *(const struct row_source *)params, *found = find_source(tables, row.name);
    keep(running, &SOURCE_PUT, &row);
    if (found == NULL)
        found = &tables->sources[tables->source_count++];
    *found = row;
    return OK;
}

/* ---- conversations ---- */

static struct row_thread *find_thread(struct tables *tables, int64_t id)
{
    for (size_t i = 0; i < tables->thread_count; i++)
        if (tables->threads[i].id == id)
            return &tables->threads[i];
    return NULL;
}

static enum status run_thread_put(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    struct row_thread row = *(const struct row_thread *)params, *found = find_thread(tables, row.id);
    keep(running, &THREAD_PUT, &row);
    ASSERT(found != NULL || tables->thread_count < SEEN_MAX);
    if (found == NULL)
        found = &tables->threads[tables->thread_count++];
    *found = row;
    return OK;
}

static enum status run_thread_get(struct running *running, const void *params)
{
    const struct row_thread *row = find_thread(&running->memory->now, ((const struct q_thread_get *)params)->id);
    return row != NULL ? memory_give(running, row) : OK;
}

static const struct q_thread_mark_add *find_thread_mark(const struct tables *tables, struct bytes h)
{
    for (size_t i = 0; i < tables->thread_mark_count; i++)
        if (bytes_eq(tables->thread_marks[i].h, h))
            return &tables->thread_marks[i];
    return NULL;
}

static enum status run_thread_mark_add(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    struct q_thread_mark_add row = *(const struct q_thread_mark_add *)params;
    if (find_thread_mark(tables, row.h) != NULL)
        return OK;
    ASSERT(tables->thread_mark_count < SEEN_MAX);
    keep(running, &THREAD_MARK_ADD, &row);
    tables->thread_marks[tables->thread_mark_count++] = row;
    return OK;
}

static enum status run_thread_by_mark(struct running *running, const void *params)
{
    struct tables *tables = &running->memory->now;
    const struct q_thread_mark_add *mark = find_thread_mark(tables, ((const struct q_thread_by_mark *)params)->h);
    const struct row_thread *thread = mark != NULL ? find_thread(tables, mark->thread) : NULL;
    if (thread == NULL)
        return OK;
    struct r_thread_by_mark row = {mark->h,         thread->id,      thread->space, thread->epoch,    thread->question,
                                   thread->created, thread->updated, thread->burst, thread->burst_at, thread->record};
    return memory_give(running, &row);
}

static enum status run_thread_answered(struct running *running, const void *params)
{
    const struct q_thread_answered *find = params;
    struct tables *tables = &running->memory->now;
    for (size_t i = 0; i < tables->intent_count; i++) {
        const struct row_intent *intent = &tables->intents[i];
        bool here = intent->thread.at != NULL && bytes_eq(intent->thread, find->thread) && intent->action.at != NULL;
        bool other = intent->id > find->question && !bytes_eq(intent->workflow, find->answers);
        struct r_thread_answered row = {intent->id};
        if (here && (bytes_starts(intent->key, find->epoch) || other))
            return memory_give(running, &row);
    }
    return OK;
}

static enum status run_intent_open(struct running *running, const void *params)
{
    const struct q_intent_open *find = params;
    struct tables *tables = &running->memory->now;
    for (size_t i = 0; i < tables->intent_count; i++) {
        const struct row_intent *intent = &tables->intents[i];
        bool here = intent->thread.at != NULL && bytes_eq(intent->thread, find->thread) &&
                    bytes_eq(intent->action, find->action) && bytes_eq(intent->workflow, find->workflow);
        const struct row_outbox *row = memory_outbox(tables, intent->id);
        bool held = intent->state == STATE_CLAIMED || intent->state == STATE_SENT;
        bool unknown = intent->state == STATE_UNKNOWN && intent->settled == 0;
        bool queued = intent->state == STATE_PENDING && row != NULL && row->step < STEP_PERSON;
        if (here && (held || unknown || queued))
            TRY(memory_give(running, intent));
    }
    return OK;
}

static enum status run_intent_queued(struct running *running, const void *params)
{
    struct r_intent_queued row = {((const struct q_intent_queued *)params)->id};
    const struct row_outbox *found = memory_outbox(&running->memory->now, row.id);
    return found != NULL && found->step < STEP_FINISHED ? memory_give(running, &row) : OK;
}

static enum status run_nothing(struct running *running, const void *params)
{
    (void)running, (void)params;
    return OK;
}

const struct memory_query memory_inbox[] = {
    {&DELIVERY_ADD, run_delivery_add},
    {&DELIVERY_GET, run_delivery_get},
    {&DELIVERY_SWEEP, run_delivery_sweep},
    {&DELIVERY_DROP, run_delivery_drop},
    {&EVENT_ADD, run_event_add},
    {&EVENT_LOCK, run_nothing},
    {&EVENT_UNDECIDED, run_event_undecided},
    {&EVENT_BY_ID, run_event_by_id},
    {&EVENT_GET, run_event_get},
    {&EVENT_LIST, run_event_list},
    {&EVENT_WAITING_COUNT, run_event_waiting_count},
    {&EVENT_DECIDE, run_event_decide},
    {&EVENT_COPIED, run_event_copied},
    {&EVENT_SWEEP, run_event_sweep},
    {&EVENT_DROP, run_event_drop},
    {&EVENT_MARK_ADD, run_event_mark_add},
    {&EVENT_MARK_GET, run_event_mark_get},
    {&EVENT_MARK_SWEEP, run_event_mark_sweep},
    {&EVENT_ACT_ADD, run_event_act_add},
    {&EVENT_ACT_LIST, run_event_act_list},
    {&EVENT_ACT_DROP, run_event_act_drop},
    {&SOURCE_GET, run_source_get},
    {&SOURCE_PUT, run_source_put},
    {&THREAD_PUT, run_thread_put},
    {&THREAD_GET, run_thread_get},
    {&THREAD_MARK_ADD, run_thread_mark_add},
    {&THREAD_BY_MARK, run_thread_by_mark},
    {&THREAD_PERSON_ADD, run_nothing},
    {&THREAD_ANSWERED, run_thread_answered},
    {&TURN_LOCK, run_nothing},
    {&INTENT_OPEN, run_intent_open},
    {&INTENT_QUEUED, run_intent_queued},
    {NULL, NULL},
};
