/*
 * The state machine under any sequence of commands and clocks. One intent, three bytes per command. After each command: the audit rows alone
 * rebuild the intent; fences only grow, and an answered claim is the only thing that grows them; nothing changes with a stale fence;
 * a confirmed result stays what it is until it expires; nothing that was ever sent is given out again unless the rules say so.
 */
#include "fuzz.h"

#include "base/when.h"
#include "ledger/ledger.h"

enum { COMMANDS_MAX = 200 };

#define WORLD_MEMORY_MAX ((size_t)64 << 20)

struct world {
    struct arena arena;
    struct id_source ids;
    struct audit_batch audit;
    struct ledger ledger;
    struct intent intent;
    struct row_intent rebuilt;
    size_t folded;
};

static bool same_column(const struct query_column *column, const struct row_intent *a, const struct row_intent *b)
{
    const char *left = (const char *)a + column->offset, *right = (const char *)b + column->offset;
    if (column->type == COLUMN_INT)
        return *(const int64_t *)left == *(const int64_t *)right;
    return bytes_eq(*(const struct bytes *)left, *(const struct bytes *)right) &&
           (((const struct bytes *)left)->at == NULL) == (((const struct bytes *)right)->at == NULL);
}

static bool same_row(const struct row_intent *a, const struct row_intent *b)
{
    for (size_t i = 0; i < INTENT_ADD.param_count; i++)
        if (!same_column(&INTENT_ADD.params[i], a, b))
            return false;
    return true;
}

/* Three settings of a workflow, chosen by the bits of one byte. */
static void set_rules(struct ledger_command *command, uint8_t bits)
{
    command->lease_us = WHEN_MINUTE;
    command->keep_us = WHEN_HOUR;
    command->tombstone_us = bits & 0x20 ? WHEN_DAY : 0;
    command->window_us = WHEN_HOUR;
    command->attempts_max = 4;
    command->capability = (enum capability)((bits & 3) % 3);
    command->on_unknown = (enum on_unknown)((bits >> 2 & 3) % 3);
    command->two_phase = bits & 0x10;
    command->shadow = (bits & 0xC0) == 0xC0;
}

/* The field hashes of an input with as many and as long names as one request may have: they too must fit an audit row. */
static struct bytes large_fields(void)
{
    enum { NAMES = FINGERPRINT_FIELDS_MAX, NAME_SIZE = 1000 };
    static struct fingerprint made;
    static struct arena arena;
    static bool done;
    static char names[NAMES][NAME_SIZE];
    static struct json_member members[NAMES];
    const struct fingerprint_options options = {.pepper = BYTES("pepper")};
    struct json input = {.type = JSON_OBJECT, .count = NAMES, .members = members};
    struct why why;
    if (done)
        return made.fields;
    for (size_t i = 0; i < NAMES; i++) {
        memset(names[i], '"', NAME_SIZE);
        names[i][0] = (char)('0' + i);
        members[i] = (struct json_member){{names[i], NAME_SIZE}, {.type = JSON_NULL}};
    }
    arena_init(&arena, FUZZ_ARENA_MAX);
    ASSERT(fingerprint_make(&input, &options, &arena, &made, &why) == OK);
    done = true;
    return made.fields;
}

static struct ledger_command command_of(const struct world *world, struct bytes *rest)
{
    static const struct bytes results[] = {{"1", 1}, {"{\"id\":\"\xC3\xA9\"}", 11}, {"null", 4}};
    uint8_t op = fuzz_byte(rest), bits = fuzz_byte(rest);
    struct ledger_command command = {
        .op = (enum ledger_op)(op % (OP_EXPIRE + 1)),
        .space = BYTES("main"),
        .actor = BYTES("tester"),
        .workflow = BYTES("w"),
        .key = BYTES("k:\xC3\xA9\"\\\x01"),
        .run = op & 0x10 ? BYTES("run \xE2\x82\xAC") : BYTES_NONE,
        .thread = op & 0x20 ? BYTES("") : BYTES_NONE,
        .intent = world->intent.row.id,
        .fence = world->intent.row.fence - (op & 0x40 ? 1 : 0),
        .result = results[bits % 3],
        .error = bits & 0x10 ? BYTES("it\nbroke") : BYTES_NONE,
        .effect_unknown = bits & 1,
        .final = bits & 2,
        .fingerprint = {.fields = BYTES("{\"a\":\"0123456789abcdef\"}")},
    };
    command.fingerprint.whole.at[0] = op & 0x80 ? 1 : 2;
    if (op & 0x08)
        command.fingerprint.fields = large_fields();
    set_rules(&command, bits);
    return command;
}

/* What the engine does with a row between two batches. */
static void settle(struct world *world)
{
    struct intent *intent = &world->intent;
    if (intent->drop) {
        struct intent gone = {
            .buried = intent->buried, .buried_settled = intent->buried_settled, .buried_state = intent->buried_state};
        *intent = gone;
        world->rebuilt = (struct row_intent){0};
    }
    intent->fresh = intent->dirty = intent->drop = false;
}

static void fold_new_rows(struct world *world)
{
    struct why why;
    ASSERT(!world->audit.failed);
    for (; world->folded < world->audit.count; world->folded++) {
        const struct row_decision *row = &world->audit.rows[world->folded];
        ASSERT(bytes_is_utf8(row->detail));
        ASSERT(intent_fold(&world->rebuilt, row, &world->arena, &why) == OK);
    }
}

static void check_answer(const struct intent *before, const struct intent *after, const struct ledger_command *command,
                         const struct ledger_answer *answer)
{
    bool given = command->op == OP_CLAIM && answer->verdict == VERDICT_PROCEED && answer->fence != 0;
    ASSERT(after->row.fence == (before->exists ? before->row.fence : 0) + (given ? 1 : 0));
    ASSERT(!given || answer->fence == after->row.fence);
    ASSERT(!given || after->row.state == (command->two_phase ? STATE_CLAIMED : STATE_SENT));
    ASSERT(answer->verdict != VERDICT_REPLAY || before->row.state == STATE_CONFIRMED);
    ASSERT(!answer->again || answer->verdict == VERDICT_DONE);
    if (given && before->exists)
        ASSERT(before->row.state != STATE_CONFIRMED && before->row.state != STATE_REFUSED && before->row.state != STATE_UNKNOWN);
}

/* Settled is settled: neither the state nor the result moves, only the mark of shadow mode may be added. */
static void check_confirmed_stays(const struct intent *before, const struct intent *after)
{
    if (!before->exists || before->row.state != STATE_CONFIRMED || after->drop)
        return;
    struct row_intent row = after->row;
    row.shadow = before->row.shadow;
    ASSERT(same_row(&row, &before->row));
    ASSERT(bytes_eq(after->result, before->result));
}

/* Who does not hold it any more changes nothing, unless a lease ran out at the same time. */
static void check_stale(const struct world *world, const struct intent *before, const struct ledger_command *command)
{
    bool says = command->op >= OP_SENT && command->op <= OP_RELEASE;
    bool lapses = before->row.lease_until > 0 && before->row.lease_until <= world->ledger.now.run_us;
    if (says && before->exists && !lapses && command->fence != before->row.fence)
        ASSERT(same_row(&world->intent.row, &before->row));
}

/* What is settled now is kept as long as the rules say, by the clock that never jumps. */
static void check_kept(const struct world *world, const struct intent *before)
{
    const struct row_intent *row = &world->intent.row;
    int64_t run_us = world->ledger.now.run_us;
    if (world->intent.drop)
        ASSERT(before->row.expires > 0 && before->row.expires <= run_us);
    else if (row->expires != 0 && (!before->exists || row->expires != before->row.expires))
        ASSERT(row->expires == run_us + row->keep_us);
}

static void check_shape(const struct intent *intent)
{
    if (!intent->exists)
        return;
    const struct row_intent *row = &intent->row;
    bool held = row->state == STATE_CLAIMED || row->state == STATE_SENT;
    bool settled = row->state == STATE_CONFIRMED || row->state == STATE_REFUSED;
    ASSERT(row->state >= 0 && row->state < STATE_COUNT);
    ASSERT(held == (row->lease_until > 0));
    ASSERT(!settled || (row->settled != 0 && row->expires != 0));
    ASSERT(settled || row->state == STATE_UNKNOWN || row->expires == 0);
    ASSERT(row->state != STATE_SENT || row->first_sent != 0);
    ASSERT(row->result != 0 || row->state != STATE_CONFIRMED);
    ASSERT(row->result == 0 || row->state == STATE_CONFIRMED || row->state == STATE_REFUSED);
    ASSERT(row->attempts <= row->fence);
    ASSERT(row->attempts <= row->attempts_max);
}

/* It may have happened, and nothing on the other side would notice a repetition: only `retry` may give it out again. */
static void check_not_repeated(const struct intent *before, const struct intent *after, const struct ledger_command *command)
{
    bool given = command->op == OP_CLAIM && before->exists && after->row.fence > before->row.fence;
    if (!given || before->row.state != STATE_SENT)
        return;
    bool dedup = before->row.capability == CAPABILITY_IDEMPOTENT;
    bool allowed = before->row.capability == CAPABILITY_NONE && before->row.on_unknown == ON_UNKNOWN_RETRY;
    ASSERT(dedup || allowed);
    ASSERT(after->row.ambiguous != 0);
}

static void step(struct world *world, struct bytes *rest)
{
    static const int64_t steps_us[] = {0, 1, WHEN_SECOND, 59 * WHEN_SECOND, WHEN_MINUTE, 40 * WHEN_MINUTE, WHEN_HOUR, WHEN_DAY};
    uint8_t clock = fuzz_byte(rest);
    struct ledger_command *command = arena_zalloc(&world->arena, 1, sizeof *command);
    struct ledger_answer answer = {0};
    ASSERT(command != NULL);
    world->ledger.now.run_us += steps_us[clock & 7];
    world->ledger.now.wall_us += steps_us[clock & 7] + (clock & 8 ? -WHEN_DAY : 0) + (clock & 16 ? WHEN_DAY : 0);
    *command = command_of(world, rest);
    struct intent before = world->intent;
    ledger_apply(&world->ledger, &world->intent, command, &answer);
    fold_new_rows(world);
    check_confirmed_stays(&before, &world->intent);
    check_stale(world, &before, command);
    check_kept(world, &before);
    if (world->intent.exists) {
        ASSERT(same_row(&world->rebuilt, &world->intent.row));
        check_answer(&before, &world->intent, command, &answer);
        check_not_repeated(&before, &world->intent, command);
    }
    check_shape(&world->intent);
    settle(world);
}

FUZZ_TARGET(ledger)(const uint8_t *data, size_t size)
{
    struct bytes rest = fuzz_bytes(data, size);
    struct world world = {.folded = 0};
    hash_setup();
    arena_init(&world.arena, WORLD_MEMORY_MAX);
    id_init(&world.ids, 0, 0);
    audit_batch_init(&world.audit, &world.arena);
    world.ledger = (struct ledger){.now = {1000 * WHEN_DAY + 20000 * WHEN_DAY, WHEN_SECOND},
                                   .epoch = 1,
                                   .arena = &world.arena,
                                   .ids = &world.ids,
                                   .audit = &world.audit};
    for (int i = 0; i < COMMANDS_MAX && rest.len > 0; i++)
        step(&world, &rest);
    arena_release(&world.arena);
    return 0;
}
