#include "audit/results.h"

#include "base/json.h"

#define DETAIL_ARENA_MAX (16u << 20)

static enum status read_hash(struct bytes detail, struct arena *arena, char ret_hex[2 * HASH_SIZE], struct why *why)
{
    struct json changes;
    TRY(json_parse(detail, NULL, arena, &changes, why));
    const struct json *text = changes.type == JSON_OBJECT ? json_get(&changes, AUDIT_RESULT_HASH) : NULL;
    if (text == NULL)
        return NOTHING;
    if (text->type != JSON_STRING || text->text.len != 2 * HASH_SIZE)
        return why_set(why, BROKEN, "the hash of a result in the audit is none");
    memcpy(ret_hex, text->text.at, 2 * HASH_SIZE);
    return OK;
}

enum status results_note(struct results *results, const struct row_decision *row, struct why *why)
{
    if (row->body == 0 || row->detail.at == NULL)
        return OK;
    ASSERT(results->count < RESULTS_MAX);
    struct result_named *named = &results->at[results->count];
    *named = (struct result_named){.decision = row->id, .intent = row->intent, .body = row->body};
    struct arena arena;
    arena_init(&arena, DETAIL_ARENA_MAX);
    enum status status = read_hash(row->detail, &arena, named->hex, why);
    arena_release(&arena);
    if (status == OK)
        results->count++;
    return status == NOTHING ? OK : status;
}

/* Rows mostly come in the order in which they were asked for, so the search goes on behind the last one. */
static struct result_named *find(struct results *results, int64_t body)
{
    for (size_t i = 0; i < results->count; i++) {
        size_t at = (results->last + 1 + i) % results->count;
        if (results->at[at].body == body)
            return &results->at[results->last = at];
    }
    return NULL;
}

static enum status compare(void *ctx, const void *row, struct why *why)
{
    const struct r_body_get *got = row;
    struct result_named *named = find(ctx, got->id);
    if (named == NULL)
        return why_set(why, BROKEN, "the database answers with a result that was not asked for");
    struct hash hash = hash_sha256(got->bytes);
    char hex[2 * HASH_SIZE];
    bytes_to_hex(hash_bytes(&hash), hex);
    named->found = true;
    named->same = memcmp(hex, named->hex, sizeof hex) == 0;
    return OK;
}

static enum status note_exists(void *ctx, const void *row, struct why *why)
{
    (void)row, (void)why;
    *(bool *)ctx = true;
    return OK;
}

/* One that expired has left the table together with its result. */
static enum status is_missed(struct store *store, const struct result_named *named, bool *ret_missed, struct why *why)
{
    struct q_intent_look_id look = {named->intent};
    bool exists = false;
    TRY(store_run(store, &INTENT_LOOK_ID, &look, 1, note_exists, &exists, NULL, why));
    *ret_missed = exists;
    return OK;
}

static enum status check_all(struct store *store, struct results *results, int64_t *ret_bad, const char **ret_what,
                             struct why *why)
{
    struct q_body_get gets[RESULTS_MAX];
    for (size_t i = 0; i < results->count; i++)
        gets[i].id = results->at[i].body;
    results->last = results->count - 1;
    TRY(store_run(store, &BODY_GET, gets, results->count, compare, results, NULL, why));
    for (size_t i = 0; i < results->count; i++) {
        const struct result_named *named = &results->at[i];
        bool missed = false;
        if (!named->found)
            TRY(is_missed(store, named, &missed, why));
        if (missed || (named->found && !named->same)) {
            *ret_bad = named->decision;
            *ret_what = missed ? "the result that it names is missing" : "the result that it names was changed";
            return OK;
        }
    }
    return OK;
}

enum status results_check(struct store *store, struct results *results, int64_t *ret_bad, const char **ret_what, struct why *why)
{
    *ret_bad = 0;
    enum status status = results->count > 0 ? check_all(store, results, ret_bad, ret_what, why) : OK;
    results->count = 0;
    return status;
}
