/* judge: what has to hold whenever the data has been opened again, and at the end. */
#include <stdio.h>

#include "crash.h"

/* ---- questions of the test's own; their numbers lie behind those of the product's queries ---- */

struct text_row {
    struct bytes text;
};
struct count_row {
    int64_t count;
};

static const struct query_column text_column[] = {{"text", COLUMN_TEXT, offsetof(struct text_row, text)}};
static const struct query_column count_column[] = {{"count", COLUMN_INT, offsetof(struct count_row, count)}};

#define ASK_TEXT(slot, sql)                                                                                                \
    {                                                                                                                      \
        .name = #slot, .text = {sql, sql}, .columns = text_column, .column_count = 1, .row_size = sizeof(struct text_row), \
        .number = STORE_QUERIES_MAX - (slot)                                                                               \
    }
#define ASK_COUNT(slot, sql)                                                                                                 \
    {                                                                                                                        \
        .name = #slot, .text = {sql, sql}, .columns = count_column, .column_count = 1, .row_size = sizeof(struct count_row), \
        .number = STORE_QUERIES_MAX - (slot)                                                                                 \
    }

static const struct query integrity = ASK_TEXT(1, "PRAGMA integrity_check");

/* Each of these counts things that are half done. */
static const struct {
    struct query query;
    const char *what;
} halves[] = {
    {ASK_COUNT(2, "SELECT count(*) FROM body WHERE id NOT IN (SELECT result FROM intent)"), "a result belongs to no intent"},
    {ASK_COUNT(3, "SELECT count(*) FROM intent WHERE result <> 0 AND result NOT IN (SELECT id FROM body)"),
     "an intent has lost its result"},
    {ASK_COUNT(
         4,
         "SELECT count(*) FROM decision d WHERE d.kind = 'claim' AND NOT EXISTS (SELECT 1 FROM intent i WHERE i.id = d.intent) "
         "AND NOT EXISTS (SELECT 1 FROM decision e WHERE e.intent = d.intent AND e.kind = 'expire')"),
     "the audit knows an intent that does not exist"},
    {ASK_COUNT(
         5,
         "SELECT count(*) FROM intent i WHERE NOT EXISTS (SELECT 1 FROM decision d WHERE d.intent = i.id AND d.kind = 'claim')"),
     "an intent is not in the audit"},
    {ASK_COUNT(6, "SELECT (SELECT count(*) FROM policy) <> (SELECT count(*) FROM decision WHERE kind = 'policy')"),
     "a policy and its audit row are not both there"},
    {ASK_COUNT(
         7, "SELECT count(*) FROM decision e WHERE e.kind = 'expire' AND EXISTS (SELECT 1 FROM intent i WHERE i.id = e.intent)"),
     "an intent was forgotten and is still there"},
};

static void ask(struct world *world, const struct query *query, const void *params, size_t count, store_row_fn *on_row, void *ctx)
{
    struct why why = {""};
    if (store_run(engine_store(world->engine), query, params, count, on_row, ctx, NULL, &why) != OK)
        world_violated(world, "%s cannot be read: %s", query->name, why.text);
}

static enum status take_integrity(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct bytes text = ((const struct text_row *)row)->text;
    if (!bytes_is(text, "ok"))
        world_violated(ctx, "integrity_check: %.*s", BYTES_ARG(text));
    return OK;
}

static enum status take_count(void *ctx, const void *row, struct why *why)
{
    (void)why;
    *(int64_t *)ctx = ((const struct count_row *)row)->count;
    return OK;
}

static void check_halves(struct world *world)
{
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
        int64_t count = 0;
        ask(world, &halves[i].query, NULL, 0, take_count, &count);
        if (count != 0)
            world_violated(world, "half done: %s", halves[i].what);
    }
}

static void check_chain(struct world *world)
{
    struct audit_verified verified = {0};
    struct why why = {""};
    if (audit_verify(engine_store(world->engine), &verified, &why) != OK)
        world_violated(world, "the audit cannot be read: %s", why.text);
    else if (verified.bad_id != 0)
        world_violated(world, "the audit chain is broken: %s", verified.bad);
}

/* ---- each intent is what its audit says ---- */

struct story {
    struct world *world;
    struct row_intent rebuilt;
};

static bool is_transition(struct bytes kind)
{
    for (size_t i = 0; ledger_op_names[i] != NULL; i++)
        if (bytes_is(kind, ledger_op_names[i]))
            return true;
    return false;
}

static enum status fold(void *ctx, const void *row, struct why *why)
{
    struct story *story = ctx;
    struct row_decision copy = *(const struct row_decision *)row;
    if (!is_transition(copy.kind))
        return OK;
    copy.detail = arena_dup(&story->world->notes, copy.detail);
    return intent_fold(&story->rebuilt, &copy, &story->world->notes, why);
}

static void compare(struct world *world, const struct row_intent *stored, const struct row_intent *rebuilt)
{
    for (size_t i = 0; i < INTENT_ADD.param_count; i++) {
        const struct query_column *column = &INTENT_ADD.params[i];
        const char *a = (const char *)stored + column->offset, *b = (const char *)rebuilt + column->offset;
        bool same = column->type == COLUMN_INT ? *(const int64_t *)a == *(const int64_t *)b
                                               : bytes_eq(*(const struct bytes *)a, *(const struct bytes *)b);
        if (!same)
            world_violated(world, "half done: the audit of %.*s says another %s than its row", BYTES_ARG(stored->key),
                           column->name);
    }
}

struct rows {
    struct world *world;
    struct row_intent at[KEYS_MAX];
    size_t count;
};

static enum status take_row(void *ctx, const void *row, struct why *why)
{
    struct rows *rows = ctx;
    struct intent intent = {0};
    if (rows->count == KEYS_MAX)
        return why_set(why, BROKEN, "there are more intents than keys");
    TRY(intent_take(&intent, row, &rows->world->notes, why));
    rows->at[rows->count++] = intent.row;
    return OK;
}

static void check_stories(struct world *world)
{
    struct rows rows = {.world = world};
    struct q_intent_list all = {BYTES("main"), INT64_MAX, KEYS_MAX + 1};
    ask(world, &INTENT_LIST, &all, 1, take_row, &rows);
    for (size_t i = 0; i < rows.count; i++) {
        struct story story = {.world = world};
        struct q_decision_list_intent list = {BYTES("main"), rows.at[i].id, 0, 1000};
        ask(world, &DECISION_LIST_INTENT, &list, 1, fold, &story);
        compare(world, &rows.at[i], &story.rebuilt);
    }
}

/* ---- each key is where its clients were told it is, or where a command on its way would have put it ---- */

static enum status take_intent(void *ctx, const void *row, struct why *why)
{
    struct rows *rows = ctx;
    struct intent intent = {0};
    TRY(intent_take(&intent, row, &rows->world->notes, why));
    rows->at[0] = intent.row;
    rows->count = 1;
    return OK;
}

static enum status take_tombstone(void *ctx, const void *row, struct why *why)
{
    (void)row, (void)why;
    *(bool *)ctx = true;
    return OK;
}

static enum status take_body(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct story *story = ctx;
    story->rebuilt.error = arena_dup(&story->world->notes, ((const struct r_body_get *)row)->bytes);
    return OK;
}

static struct q_intent_look hash_of(struct world *world, const struct key *key, uint8_t ret_h[KEY_HASH_SIZE])
{
    ledger_key_hash(engine_pepper(world->engine), BYTES("main"), BYTES("w"), bytes_of(key->text), ret_h);
    return (struct q_intent_look){{(const char *)ret_h, KEY_HASH_SIZE}};
}

bool judge_load(struct world *world, const struct key *key, struct intent *ret_intent)
{
    struct rows rows = {.world = world};
    uint8_t h[KEY_HASH_SIZE];
    struct q_intent_look look = hash_of(world, key, h);
    ask(world, &INTENT_LOOK, &look, 1, take_intent, &rows);
    if (rows.count == 1)
        ret_intent->row = rows.at[0];
    return rows.count == 1;
}

static bool has_tombstone(struct world *world, const struct key *key)
{
    uint8_t h[KEY_HASH_SIZE];
    struct q_tombstone_get get = {hash_of(world, key, h).h};
    bool found = false;
    ask(world, &TOMBSTONE_GET, &get, 1, take_tombstone, &found);
    return found;
}

static bool is_at(const struct row_intent *row, const struct point *point)
{
    return row->fence == point->fence && row->state == (int64_t)point->state;
}

static void check_place(struct world *world, const struct key *key, const struct row_intent *row)
{
    bool allowed = key->known && is_at(row, &key->told);
    for (int i = 0; i < key->maybe_count; i++)
        allowed = allowed || is_at(row, &key->maybe[i]);
    if (!allowed)
        world_violated(world, "%s is %s with fence %lld, but %s %s with fence %lld", key->text, intent_state_names[row->state],
                       (long long)row->fence, key->known ? "the client was told" : "nobody was told anything, not even",
                       intent_state_names[key->told.state], (long long)key->told.fence);
    if (key->known && key->intent != 0 && row->id != key->intent)
        world_violated(world, "%s has become another intent", key->text);
}

static void check_result(struct world *world, const struct key *key, const struct row_intent *row)
{
    if (row->state != STATE_CONFIRMED || key->result.at == NULL)
        return;
    struct story story = {.world = world};
    struct q_body_get get = {row->result};
    ask(world, &BODY_GET, &get, 1, take_body, &story);
    if (!bytes_eq(story.rebuilt.error, key->result))
        world_violated(world, "the result of %s is not the one that was confirmed", key->text);
}

void judge_key(struct world *world, const struct key *key)
{
    struct intent intent = {0};
    if (judge_load(world, key, &intent)) {
        check_place(world, key, &intent.row);
        check_result(world, key, &intent.row);
    } else if (key->known && !(key->may_be_forgotten && has_tombstone(world, key))) {
        world_violated(world, "%s is gone, but a client was told that it is %s", key->text, intent_state_names[key->told.state]);
    }
}

static enum status take_policy(void *ctx, const void *row, struct why *why)
{
    (void)why;
    *(int64_t *)ctx = ((const struct row_policy *)row)->version;
    return OK;
}

static void check_policy(struct world *world)
{
    int64_t version = 0;
    ask(world, &POLICY_LATEST, NULL, 0, take_policy, &version);
    if (version != world->policy_told && version != world->policy_maybe)
        world_violated(world, "the policy has version %lld, but the client was told %lld", (long long)version,
                       (long long)world->policy_told);
}

void judge(struct world *world)
{
    bool calm = world_calm(true);
    arena_clear(&world->notes);
    ask(world, &integrity, NULL, 0, take_integrity, world);
    check_chain(world);
    check_halves(world);
    check_stories(world);
    for (int i = 0; i < world->key_count; i++)
        judge_key(world, &world->keys[i]);
    check_policy(world);
    world_calm(calm);
}
