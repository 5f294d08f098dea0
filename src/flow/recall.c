/* recall: what a pass remembers, by the database. */
#include "flow/flow_own.h"

static enum status find_marks(struct pass *pass)
{
    TRY(marks_find(&pass->marks, pass->store, INT64_MAX, pass->why));
    return marks_know(&pass->marks, pass->store, pass->why);
}

static enum status find_threads(struct pass *pass)
{
    return threads_load(&pass->places, pass->store, pass->why);
}

static enum status is_answered(struct pass *pass, const struct row_thread *thread, bool *ret_answered)
{
    return thread_is_answered(pass->store, pass->ledger, pass->pepper, thread, ret_answered, pass->why);
}

/* ---- quiet sources ---- */

static enum status take_quiet(void *ctx, const void *row, struct why *why)
{
    struct quiet *quiet = ctx;
    (void)why;
    quiet->row = *(const struct row_source *)row;
    quiet->row.space = quiet->row.name = quiet->row.actor = quiet->row.note = BYTES_NONE;
    return OK;
}

static enum status take_count(void *ctx, const void *row, struct why *why)
{
    (void)why;
    *(int64_t *)ctx = ((const struct r_source_accepted *)row)->count;
    return OK;
}

/* What a person said about its source; each source is looked up once. */
static enum status find_quiet(struct pass *pass, const struct item *item, struct quiet **ret)
{
    const struct row_event *row = &item->known.row;
    for (*ret = pass->quiet; *ret != NULL; *ret = (*ret)->next)
        if (bytes_eq((*ret)->source, row->source) && bytes_eq((*ret)->space, row->space))
            return OK;
    struct quiet *quiet = arena_zalloc(pass->arena, 1, sizeof *quiet);
    if (quiet == NULL)
        return pass_no_memory(pass);
    *quiet = (struct quiet){.space = row->space, .source = row->source, .next = pass->quiet};
    struct q_source_get get = {row->space, row->source};
    TRY(store_run(pass->store, &SOURCE_GET, &get, 1, take_quiet, quiet, NULL, pass->why));
    if (quiet->row.limited_until > pass->ledger->now.wall_us) {
        int64_t since = id_floor(pass->ledger->now.wall_us - quiet->row.every_us);
        struct q_source_accepted accepted = {row->space, row->source, since};
        TRY(store_run(pass->store, &SOURCE_ACCEPTED, &accepted, 1, take_count, &quiet->accepted, NULL, pass->why));
    }
    pass->quiet = *ret = quiet;
    return OK;
}

/* ---- cards ---- */

static enum status raise_card(struct pass *pass, const struct item *item, enum exception_kind kind, int64_t event,
                              const char *reason)
{
    struct people people = engine_people(pass->flow->engine);
    const struct source *source = item->source;
    struct exception_order order = {
        .kind = kind,
        .space = item->known.row.space,
        .owner = source != NULL && source->owner.len > 0 ? source->owner : bytes_of(people.owner),
        .reason = bytes_of(reason),
        .event = event,
        .due_us = source != NULL && source->due_us > 0 ? source->due_us : people.due_us,
    };
    /* The card's texts are written before the policy can go. */
    return exception_raise(pass->store, pass->ledger, &order, pass->why);
}

const struct recall recall_stored = {find_marks, find_threads, find_quiet, is_answered, raise_card};
