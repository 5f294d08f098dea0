#include "lint/lint.h"

#include <stdio.h>

#include "base/when.h"
#include "check.h"
#include "lint/lint_shape.h"

#define NOW_US INT64_C(1794784952000000) /* 2026-11-15T23:22:32Z */
#define MANY 12

/* ---- shapes ---- */

TEST(lint_sees_random_ids_and_only_those)
{
    static const struct {
        const char *key, *part;
    } rows[] = {
        {"send:3f2b8c1e-7a4d-4c9e-8f10-0123456789ab", "3f2b8c1e-7a4d-4c9e-8f10-0123456789ab"},
        {"send:3F2B8C1E-7A4D-4C9E-9F10-0123456789AB:x", "3F2B8C1E-7A4D-4C9E-9F10-0123456789AB"},
        {"send:3f2b8c1e-7a4d-1c9e-8f10-0123456789ab", NULL}, /* version 1: made from a clock and a machine */
        {"h:d41d8cd98f00b204e9800998ecf8427e", "d41d8cd98f00b204e9800998ecf8427e"},
        {"lead_8821:intro:2026-11-16", NULL},
        {"deadbeef", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bytes part = shape_random(bytes_of(rows[i].key));
        if (rows[i].part == NULL)
            CHECK(part.at == NULL);
        else
            CHECK_TEXT(part, rows[i].part);
    }
}

TEST(lint_sees_the_clock_and_not_a_window)
{
    static const struct {
        const char *key;
        bool clock;
    } rows[] = {
        {"send:1794784950", true},
        {"send:1794784950123", true},
        {"send:1794784950123456", true},
        {"send:2026-11-15T23:22:31Z", true},
        {"send:2026-11-16T00:22+01:00", true},
        {"send:20261115T232230", true},
        {"send:202611152322", true},
        {"send:2026-11-15", false},
        {"send:2026-11-15T23", false},
        {"order:1694784950", false},
        {"lead:8821", false},
        {"send:2026-11-10T23:22:31Z", false},
        {"send:2026-11-15T18:50:00Z", false},
        {"phone:+491701234567", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (shape_clock(bytes_of(rows[i].key), NOW_US) != rows[i].clock)
            check_fail(__FILE__, __LINE__, "%s", rows[i].key);
}

TEST(lint_takes_windows_and_spelling_out)
{
    struct arena arena;
    arena_init(&arena, 1 << 16);
    CHECK_TEXT(shape_without_windows(BYTES("digest:2026-11-15"), &arena), "digest:*");
    CHECK_TEXT(shape_without_windows(BYTES("digest:2026-11-15T09:x:2026-W46"), &arena), "digest:*:x:*");
    CHECK_TEXT(shape_without_windows(BYTES("order:20261115"), &arena), "order:*");
    CHECK_TEXT(shape_without_windows(BYTES("order:202611159"), &arena), "order:202611159");
    CHECK_TEXT(shape_folded(BYTES("  Lead  A\t1 "), &arena), "lead a 1");
    CHECK(shape_is_attempt(BYTES("Request_ID")) && !shape_is_attempt(BYTES("lead_uuid")));
    CHECK(shape_names_a_thing(BYTES("lead_id")) && !shape_names_a_thing(BYTES("request_id")) &&
          !shape_names_a_thing(BYTES("body")));
    arena_release(&arena);
}

/* ---- traffic ---- */

struct world {
    struct arena arena;
    struct lint_sample samples[LINT_SAMPLES_MAX];
    struct lint_traffic traffic;
    struct lint_report report;
};

static struct world *new_world(void)
{
    static struct world world;
    world = (struct world){.traffic = {.workflow = BYTES("mail"), .samples = world.samples}};
    arena_init(&world.arena, 64 << 20);
    return &world;
}

/* One field: a name and a small number for its value; the number stands for its hash. */
static struct bytes fields(struct world *world, int lead, int template, int request)
{
    return arena_printf(&world->arena, "{\"lead_id\":\"%016x\",\"request_id\":\"%016x\",\"template\":\"%016x\"}", lead, request,
                        template);
}

static void came(struct world *world, struct bytes key, struct bytes given, int64_t at_us)
{
    world->samples[world->traffic.sample_count++] = (struct lint_sample){key, given, at_us};
}

static const struct lint_finding *found(const struct world *world, enum lint_code code)
{
    for (size_t i = 0; i < world->report.finding_count; i++)
        if (world->report.findings[i].code == code)
            return &world->report.findings[i];
    return NULL;
}

static void look(struct world *world)
{
    struct why why = {""};
    CHECK_INT(lint_run(&world->traffic, &world->arena, &world->report, &why), OK);
}

static struct bytes uuid(struct world *world, int n)
{
    return arena_printf(&world->arena, "%08x-0000-4000-8000-%012x", n * 77, n);
}

TEST(lint_finds_random_keys_and_proposes_what_is_stable)
{
    struct world *world = new_world();
    for (int i = 0; i < MANY; i++) /* six leads, each twice, with a fresh id each time */
        came(world, uuid(world, i + 1), fields(world, i / 2 + 1, 7, 100 + i), NOW_US + i * WHEN_SECOND);
    look(world);
    const struct lint_finding *again = found(world, LINT_NEVER_REPEATS), *random = found(world, LINT_RANDOM);
    CHECK(again != NULL && again->problem && random != NULL && random->problem);
    CHECK_INT(again->count, MANY / 2);
    CHECK_INT(random->count, MANY);
    CHECK_TEXT(world->report.proposed, "mail:{lead_id}:{template}");
    CHECK_INT(world->report.caught, MANY / 2);
    CHECK_INT(world->report.wrong, 0);
    CHECK_INT(world->report.later, 0);
    CHECK_INT(world->report.ignored_count, 1);
    CHECK_TEXT(world->report.ignored[0], "request_id");
    arena_release(&world->arena);
}

TEST(lint_leaves_good_keys_alone)
{
    struct world *world = new_world();
    for (int i = 0; i < MANY; i++)
        came(world, arena_printf(&world->arena, "lead_%d:intro", i), fields(world, i + 1, 7, 0), NOW_US + i * WHEN_SECOND);
    for (int i = 0; i < MANY; i++) /* the same every hour, and the key says so */
        came(world, arena_printf(&world->arena, "digest:2026-11-15T%02d", i), BYTES("{\"report\":\"0000000000000001\"}"),
             NOW_US + i * WHEN_HOUR);
    look(world);
    CHECK_INT(world->report.finding_count, 0);
    CHECK(world->report.proposed.at == NULL);
    arena_release(&world->arena);
}

TEST(lint_random_ids_of_events_are_only_a_notice)
{
    struct world *world = new_world();
    for (int i = 0; i < MANY; i++)
        came(world, uuid(world, i + 1), fields(world, i + 1, 7, i), NOW_US + i * WHEN_SECOND);
    look(world);
    CHECK_INT(world->report.finding_count, 1);
    CHECK_INT(world->report.findings[0].code, LINT_RANDOM);
    CHECK(!world->report.findings[0].problem && world->report.proposed.at == NULL);
    arena_release(&world->arena);
}

TEST(lint_finds_the_clock_in_keys)
{
    struct world *world = new_world();
    for (int i = 0; i < MANY; i++)
        came(world, arena_printf(&world->arena, "mail:%lld", (long long)(NOW_US / WHEN_SECOND + i)),
             fields(world, i / 3 + 1, 7, i), NOW_US + i * WHEN_SECOND);
    look(world);
    CHECK(found(world, LINT_CLOCK) != NULL && found(world, LINT_CLOCK)->problem);
    CHECK_INT(found(world, LINT_NEVER_REPEATS)->count, MANY - 4);
    CHECK_INT(world->report.caught, MANY - 4);
    arena_release(&world->arena);
}

TEST(lint_names_the_fields_of_keys_that_are_too_broad)
{
    struct world *world = new_world();
    const struct lint_reuse reuses[] = {{BYTES("template"), 9}};
    for (int i = 0; i < MANY; i++)
        came(world, arena_printf(&world->arena, "lead_%d", i), fields(world, i + 1, i % 3 + 1, 0), NOW_US + i * WHEN_SECOND);
    world->traffic.reuses = reuses;
    world->traffic.reuse_count = 1;
    world->traffic.reused = 9;
    look(world);
    const struct lint_finding *broad = found(world, LINT_TOO_BROAD);
    CHECK(broad != NULL && broad->count == 9 && broad->field_count == 1);
    CHECK_TEXT(broad->fields[0], "template");
    CHECK_TEXT(world->report.proposed, "mail:{lead_id}:{template}");
    arena_release(&world->arena);
}

TEST(lint_finds_keys_that_differ_in_spelling_only)
{
    struct world *world = new_world();
    came(world, BYTES("Ada@example.com"), BYTES_NONE, NOW_US);
    came(world, BYTES("bob@example.com"), BYTES_NONE, NOW_US);
    came(world, BYTES(" ada@example.com"), BYTES_NONE, NOW_US);
    look(world);
    const struct lint_finding *near = found(world, LINT_NEAR_EQUAL);
    CHECK(near != NULL && near->problem && near->count == 1);
    CHECK(found(world, LINT_NO_INPUT) != NULL && !found(world, LINT_NO_INPUT)->problem);
    CHECK(world->report.proposed.at == NULL);
    arena_release(&world->arena);
}

TEST(lint_counts_what_comes_much_later_apart)
{
    struct world *world = new_world();
    for (int i = 0; i < MANY; i++)
        came(world, uuid(world, i + 1), fields(world, i % 6 + 1, 7, i), NOW_US + i / 6 * 9 * WHEN_DAY + i * WHEN_MINUTE);
    for (int i = 0; i < 3; i++)
        came(world, uuid(world, 100 + i), fields(world, i + 1, 7, 50 + i), NOW_US + 9 * WHEN_DAY + WHEN_HOUR + i * WHEN_MINUTE);
    look(world);
    CHECK_INT(found(world, LINT_NEVER_REPEATS)->count, 3);
    CHECK_INT(world->report.caught, 3);
    CHECK_INT(world->report.later, 6);
    arena_release(&world->arena);
}

/* A field of text that follows from the others is no part of a key; one that tells things apart is. */
TEST(lint_proposes_few_fields_and_joins_nothing_that_differs)
{
    struct world *world = new_world();
    for (int i = 0; i < 24; i++) {
        int lead = i % 4 + 1, step = i / 4 % 2 + 1; /* each of eight things three times */
        struct bytes given =
            arena_printf(&world->arena, "{\"body\":\"%016x\",\"lead_id\":\"%016x\",\"sent\":\"%016x\",\"step\":\"%016x\"}",
                         lead * 10 + step, lead, 1000 + i, step);
        came(world, uuid(world, i + 1), given, NOW_US + i * WHEN_SECOND);
    }
    look(world);
    CHECK_TEXT(world->report.proposed, "mail:{lead_id}:{step}");
    CHECK_INT(world->report.caught, 16);
    CHECK_INT(world->report.wrong, 0);
    CHECK_INT(world->report.ignored_count, 1); /* `sent` was new each time, while everything else was the same */
    CHECK_TEXT(world->report.ignored[0], "sent");
    arena_release(&world->arena);
}

TEST(lint_explains_every_finding)
{
    for (int i = 0; i < LINT_CODES; i++) {
        struct lint_finding finding = {.code = (enum lint_code)i, .count = 4711};
        struct buf text, fix;
        buf_init(&text, 1024);
        buf_init(&fix, 1024);
        lint_explain(&finding, &text, &fix);
        CHECK(!text.failed && fix.len > 10);
        buf_add_char(&text, '\0');
        CHECK(strstr(text.at, "4711") != NULL && strchr(text.at, '%') == NULL);
        buf_release(&fix);
        buf_release(&text);
    }
    CHECK(lint_code_names[LINT_CODES] == NULL);
}
