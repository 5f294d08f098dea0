#include "engine/engine_own.h"

#define ROWS_PER_BATCH 512 /* so that nobody's answer waits for the counting */
#define ARENA_MAX (64u << 20)

void suppressions_init(struct suppressions *suppressions)
{
    *suppressions = (struct suppressions){0};
    arena_init(&suppressions->arena, ARENA_MAX);
}

static size_t slot_of(int64_t intent, enum ledger_verdict verdict)
{
    uint64_t mixed = ((uint64_t)intent * 16 + (uint64_t)verdict) * 0x9E3779B97F4A7C15u;
    return (size_t)(mixed >> 40) % (SUPPRESSED_MAX * 2);
}

static bool is_same(const struct suppressed *one, const struct ledger_command *command, const struct ledger_answer *answer)
{
    return one->intent == answer->intent && one->verdict == answer->would && one->other == answer->other &&
           bytes_eq(one->actor, command->actor) && bytes_eq(one->space, command->space) && one->intent != 0;
}

/* What a person needs to see about it: the fields that differ, or the key that was forgotten. */
static struct bytes detail_of(struct arena *arena, const struct ledger_command *command, const struct ledger_answer *answer)
{
    if (answer->would != VERDICT_KEY_REUSED && answer->would != VERDICT_EXPIRED)
        return BYTES_NONE;
    struct buf buf;
    buf_init(&buf, 16 << 10);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    if (answer->would == VERDICT_EXPIRED) {
        json_name(&out, "workflow");
        json_text(&out, command->workflow);
        json_name(&out, "key");
        json_text(&out, command->key);
    } else {
        json_name(&out, "differs");
        json_open(&out, '[');
        for (size_t i = 0; i < answer->differs_count; i++)
            json_text(&out, answer->differs[i]);
        json_close(&out, ']');
    }
    json_close(&out, '}');
    struct bytes detail = buf.failed ? BYTES_NONE : arena_dup(arena, buf_bytes(&buf));
    buf_release(&buf);
    return detail;
}

/* Finds it among those that are not yet written, or a free place. */
static struct suppressed *find(struct suppressions *suppressions, const struct ledger_command *command,
                               const struct ledger_answer *answer, uint16_t **ret_slot)
{
    size_t slot = slot_of(answer->intent, answer->would);
    for (; suppressions->slots[slot] != 0; slot = (slot + 1) % (SUPPRESSED_MAX * 2)) {
        size_t index = suppressions->slots[slot] - 1u;
        if (!is_same(&suppressions->at[index], command, answer))
            continue;
        if (index >= suppressions->writing)
            return &suppressions->at[index];
        break; /* its count is on its way: a new one takes its place */
    }
    *ret_slot = &suppressions->slots[slot];
    return NULL;
}

void suppressions_note(struct suppressions *suppressions, const struct ledger_command *command,
                       const struct ledger_answer *answer, int64_t boot_us)
{
    uint16_t *slot = NULL;
    struct suppressed *one = find(suppressions, command, answer, &slot);
    if (one != NULL) {
        one->count++;
        return;
    }
    ASSERT(suppressions->count < SUPPRESSED_MAX);
    one = &suppressions->at[suppressions->count++];
    *one = (struct suppressed){
        .intent = answer->intent,
        .verdict = answer->would,
        .policy = command->policy,
        .count = 1,
        .fence = answer->fence,
        .other = answer->other,
        .space = arena_dup(&suppressions->arena, command->space),
        .actor = arena_dup(&suppressions->arena, command->actor),
        .reason = answer->shadow  ? BYTES("shadow")
                  : answer->other ? BYTES("another_question")
                                  : BYTES_NONE,
        .detail = detail_of(&suppressions->arena, command, answer),
    };
    *slot = (uint16_t)suppressions->count;
    if (suppressions->oldest_us == 0)
        suppressions->oldest_us = boot_us;
}

/* A batch adds at most ENGINE_BATCH_MAX of them, and one may fail to be written. */
static bool is_nearly_full(const struct suppressions *suppressions)
{
    return suppressions->count >= SUPPRESSED_MAX - 2 * ENGINE_BATCH_MAX;
}

bool suppressions_are_due(const struct suppressions *suppressions, int64_t boot_us)
{
    return is_nearly_full(suppressions) || (suppressions->count > 0 && boot_us - suppressions->oldest_us >= SUPPRESSED_FLUSH_US);
}

static void write_one(const struct suppressed *one, struct row_decision *row)
{
    row->space = one->space.at != NULL ? one->space : BYTES("main");
    row->kind = bytes_of(ledger_verdict_names[one->verdict]);
    row->intent = one->intent;
    row->fence = one->fence;
    row->state = -1;
    row->count = one->count;
    row->policy = one->policy;
    row->actor = one->actor.at != NULL ? one->actor : BYTES("");
    row->reason = one->reason;
    row->detail = one->detail;
}

void suppressions_write(struct suppressions *suppressions, struct audit_batch *audit)
{
    size_t until = suppressions->written + ROWS_PER_BATCH;
    if (until > suppressions->count || is_nearly_full(suppressions))
        until = suppressions->count;
    suppressions->writing = suppressions->written;
    for (; suppressions->writing < until; suppressions->writing++) {
        struct row_decision *row = audit_add(audit);
        if (row == NULL)
            return;
        write_one(&suppressions->at[suppressions->writing], row);
    }
}

void suppressions_written(struct suppressions *suppressions)
{
    suppressions->written = suppressions->writing;
    if (suppressions->written < suppressions->count || suppressions->count == 0)
        return;
    memset(suppressions->slots, 0, sizeof suppressions->slots);
    arena_clear(&suppressions->arena);
    suppressions->count = suppressions->written = suppressions->writing = 0;
    suppressions->oldest_us = 0;
}
