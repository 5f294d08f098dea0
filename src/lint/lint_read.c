#include "lint/lint_read.h"

#include "base/id.h"

#define REUSES_MAX LINT_FIELDS_MAX

struct reading {
    struct arena *arena;
    struct lint_sample *samples; /* newest first, as they are read */
    size_t count;
    struct lint_reuse *reuses;
    size_t reuse_count;
    int64_t reused;
};

static enum status take_sample(void *ctx, const void *at, struct why *why)
{
    struct reading *reading = ctx;
    const struct r_lint_sample *row = at;
    struct arena *arena = reading->arena;
    reading->samples[reading->count++] = (struct lint_sample){
        arena_dup(arena, row->key), row->fields.at != NULL ? arena_dup(arena, row->fields) : BYTES_NONE, row->created};
    return arena->failed ? why_set(why, FULL, "no memory for the sample") : OK;
}

static void count_reuse(struct reading *reading, struct bytes field, int64_t count)
{
    size_t i = 0;
    while (i < reading->reuse_count && !bytes_eq(reading->reuses[i].field, field))
        i++;
    if (i == REUSES_MAX)
        return;
    if (i == reading->reuse_count)
        reading->reuses[reading->reuse_count++] = (struct lint_reuse){field, 0};
    reading->reuses[i].count += count;
}

static enum status take_reused(void *ctx, const void *at, struct why *why)
{
    struct reading *reading = ctx;
    const struct r_lint_reused *row = at;
    struct json detail;
    reading->reused += row->count;
    struct bytes text = arena_dup(reading->arena, row->detail.at != NULL ? row->detail : BYTES("{}"));
    if (text.at == NULL)
        return why_set(why, FULL, "no memory for the sample");
    TRY(json_parse(text, NULL, reading->arena, &detail, why));
    const struct json *differs = json_get(&detail, BYTES("differs"));
    for (uint32_t i = 0; differs != NULL && differs->type == JSON_ARRAY && i < differs->count; i++)
        if (differs->items[i].type == JSON_STRING)
            count_reuse(reading, differs->items[i].text, row->count);
    return OK;
}

/* Oldest first, as the rules want them. */
static void turn_around(struct reading *reading)
{
    for (size_t i = 0; i < reading->count / 2; i++) {
        struct lint_sample sample = reading->samples[i];
        reading->samples[i] = reading->samples[reading->count - 1 - i];
        reading->samples[reading->count - 1 - i] = sample;
    }
}

enum status lint_read(struct store *store, struct bytes space, struct bytes workflow, int64_t since_us, struct arena *arena,
                      struct lint_traffic *ret, struct why *why)
{
    struct q_lint_sample sample = {space, workflow, id_floor(since_us), LINT_SAMPLES_MAX};
    struct q_lint_reused reused = {space, workflow, id_floor(since_us), LINT_SAMPLES_MAX};
    struct reading reading = {.arena = arena,
                              .samples = arena_zalloc(arena, LINT_SAMPLES_MAX, sizeof(struct lint_sample)),
                              .reuses = arena_zalloc(arena, REUSES_MAX, sizeof(struct lint_reuse))};
    if (arena->failed)
        return why_set(why, FULL, "no memory for the sample");
    TRY(store_run(store, &LINT_SAMPLE, &sample, 1, take_sample, &reading, NULL, why));
    TRY(store_run(store, &LINT_REUSED, &reused, 1, take_reused, &reading, NULL, why));
    turn_around(&reading);
    *ret = (struct lint_traffic){.workflow = workflow,
                                 .samples = reading.samples,
                                 .sample_count = reading.count,
                                 .reuses = reading.reuses,
                                 .reuse_count = reading.reuse_count,
                                 .reused = reading.reused};
    return OK;
}
