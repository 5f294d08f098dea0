#include "engine/engine_own.h"

#define FLUSH_AFTER_US (200 * 1000)
#define ARENA_MAX (8u << 20)

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
    return one->intent == answer->intent && one->verdict == answer->would && bytes_eq(one->actor, command->actor) &&
           bytes_eq(one->space, command->space) && one->intent != 0;
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

void suppressions_note(struct suppressions *suppressions, const struct ledger_command *command, const struct ledger_answer *answer,
                       int64_t boot_us)
{
    size_t slot = slot_of(answer->intent, answer->would);
    for (; suppressions->slots[slot] != 0; slot = (slot + 1) % (SUPPRESSED_MAX * 2)) {
        struct suppressed *one = &suppressions->at[suppressions->slots[slot] - 1];
        if (is_same(one, command, answer)) {
            one->count++;
            return;
        }
    }
    if (suppressions->count == SUPPRESSED_MAX)
        return; /* the batch that comes next writes them; see suppressions_are_due */
    struct suppressed *one = &suppressions->at[suppressions->count++];
    *one = (struct suppressed){
        .intent = answer->intent,
        .verdict = answer->would,
        .policy = command->policy,
        .count = 1,
        .fence = answer->fence,
        .space = arena_dup(&suppressions->arena, command->space),
        .actor = arena_dup(&suppressions->arena, command->actor),
        .reason = answer->shadow ? BYTES("shadow") : BYTES_NONE,
        .detail = detail_of(&suppressions->arena, command, answer),
    };
    suppressions->slots[slot] = (uint16_t)suppressions->count;
    if (suppressions->oldest_us == 0)
        suppressions->oldest_us = boot_us;
}

bool suppressions_are_due(const struct suppressions *suppressions, int64_t boot_us)
{
    return suppressions->count >= SUPPRESSED_MAX - ENGINE_BATCH_MAX ||
           (suppressions->count > 0 && boot_us - suppressions->oldest_us >= FLUSH_AFTER_US);
}

void suppressions_write(const struct suppressions *suppressions, struct audit_batch *audit)
{
    for (size_t i = 0; i < suppressions->count; i++) {
        const struct suppressed *one = &suppressions->at[i];
        struct row_decision *row = audit_add(audit);
        if (row == NULL)
            return;
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
}

void suppressions_clear(struct suppressions *suppressions)
{
    if (suppressions->count == 0)
        return;
    memset(suppressions->slots, 0, sizeof suppressions->slots);
    arena_clear(&suppressions->arena);
    suppressions->count = 0;
    suppressions->oldest_us = 0;
}
