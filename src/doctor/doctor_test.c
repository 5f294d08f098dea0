#include "doctor/doctor.h"

#include <stdlib.h>

#include "base/when.h"
#include "check.h"
#include "house.h"

#define NOW_US (INT64_C(1800000000) * WHEN_SECOND)

/* ---- reading a report ---- */

static const struct doctor_finding *find_words(const struct doctor *doctor, const char *check, enum doctor_grade grade,
                                               const char *words)
{
    for (size_t i = 0; i < doctor->count; i++) {
        const struct doctor_finding *finding = &doctor->findings[i];
        if (strcmp(finding->check, check) == 0 && finding->grade == grade &&
            memmem(finding->text.at, finding->text.len, words, strlen(words)) != NULL)
            return finding;
    }
    return NULL;
}

static const struct doctor_finding *find(const struct doctor *doctor, const char *check, enum doctor_grade grade)
{
    return find_words(doctor, check, grade, "");
}

static void expect(const struct doctor *doctor, const char *check, enum doctor_grade grade, const char *words)
{
    const struct doctor_finding *finding = find_words(doctor, check, grade, words);
    if (finding == NULL)
        check_fail(__FILE__, __LINE__, "no %s of %s says \"%s\"", doctor_grade_names[grade], check, words);
    CHECK(grade != DOCTOR_PROBLEM || finding->fix.len > 0);
}

/* Everything that was looked at is well. */
static void expect_well(const struct doctor *doctor)
{
    for (size_t i = 0; i < doctor->count; i++)
        if (doctor->findings[i].grade != DOCTOR_OK)
            check_fail(__FILE__, __LINE__, "%s: %.*s", doctor->findings[i].check, BYTES_ARG(doctor->findings[i].text));
    CHECK(doctor->count > 0);
}

struct desk {
    struct arena arena;
    struct doctor doctor;
};

static struct desk *desk_open(void)
{
    struct desk *desk = calloc(1, sizeof *desk);
    arena_init(&desk->arena, 16 << 20);
    doctor_init(&desk->doctor, &desk->arena);
    return desk;
}

static void desk_close(struct desk *desk)
{
    arena_release(&desk->arena);
    free(desk);
}

/* ---- facts ---- */

static const struct doctor_facts well = {
    .wall_us = NOW_US, .place = PLACE_DISK, .free_bytes = INT64_C(9) << 30, .total_bytes = INT64_C(10) << 30, .loopback = true};

TEST(facts_that_are_well_are_said_to_be_so)
{
    struct desk *desk = desk_open();
    doctor_look_at_facts(&desk->doctor, &well);
    doctor_look_at_access(&desk->doctor, &well, NULL);
    expect_well(&desk->doctor);
    CHECK(find(&desk->doctor, "database", DOCTOR_OK) != NULL && find(&desk->doctor, "durability", DOCTOR_OK) != NULL);
    CHECK(find(&desk->doctor, "disk", DOCTOR_OK) != NULL && find(&desk->doctor, "access", DOCTOR_OK) != NULL);
    desk_close(desk);
}

TEST(each_fact_that_is_not_well_is_found)
{
    struct doctor_facts unwritten = well, memory = well, network = well, unordered = well, eaten = well, low = well, full = well,
                        blind = well, old = well, quarantine = well, failing = well, unseen = well;
    unwritten.written = RETRY;
    why_set(&unwritten.written_why, RETRY, "the disk is full");
    memory.place = PLACE_MEMORY;
    network.place = PLACE_NETWORK;
    unseen.place = PLACE_NOT_KNOWN;
    unordered.unordered = eaten.no_fsync = quarantine.quarantine = failing.events_failing = true;
    low.free_bytes = INT64_C(900) << 20;
    full.free_bytes = INT64_C(100) << 20;
    blind.free_bytes = -1;
    old.wall_us = 86400 * WHEN_SECOND;
    const struct {
        const struct doctor_facts *facts;
        const char *check;
        enum doctor_grade grade;
        const char *words;
    } rows[] = {{&unwritten, "database", DOCTOR_PROBLEM, "the disk is full"},
                {&memory, "durability", DOCTOR_PROBLEM, "in memory"},
                {&network, "durability", DOCTOR_WARNING, "network"},
                {&unseen, "durability", DOCTOR_WARNING, "looked at"},
                {&unordered, "durability", DOCTOR_PROBLEM, "barriers"},
                {&eaten, "durability", DOCTOR_PROBLEM, "fsync"},
                {&low, "disk", DOCTOR_WARNING, "900 MiB"},
                {&full, "disk", DOCTOR_PROBLEM, "100 MiB"},
                {&blind, "disk", DOCTOR_WARNING, "could not"},
                {&old, "clock", DOCTOR_PROBLEM, "1970-01-02"},
                {&quarantine, "quarantine", DOCTOR_PROBLEM, "quarantine"},
                {&failing, "events", DOCTOR_PROBLEM, "decide"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct desk *desk = desk_open();
        doctor_look_at_facts(&desk->doctor, rows[i].facts);
        expect(&desk->doctor, rows[i].check, rows[i].grade, rows[i].words);
        CHECK_INT(doctor_count(&desk->doctor, DOCTOR_PROBLEM) + doctor_count(&desk->doctor, DOCTOR_WARNING), 1);
        desk_close(desk);
    }
}

TEST(tokens_that_never_end_matter_where_others_can_come)
{
    struct row_token rows[] = {{.name = BYTES("old"), .revoked = 1}, {.name = BYTES("bot")}, {.name = BYTES("ci"), .expires = 5}};
    struct access access = {.tokens = rows, .count = 3};
    struct doctor_facts facts = well;
    struct desk *desk = desk_open();
    doctor_look_at_access(&desk->doctor, &facts, &access);
    expect_well(&desk->doctor);
    facts.loopback = false;
    facts.tls = true;
    doctor_look_at_access(&desk->doctor, &facts, &access);
    expect(&desk->doctor, "access", DOCTOR_WARNING, "1 token never expires, such as \"bot\"");
    rows[1].expires = 7;
    doctor_init(&desk->doctor, &desk->arena);
    doctor_look_at_access(&desk->doctor, &facts, &access);
    expect_well(&desk->doctor);
    facts.tls = false;
    doctor_look_at_access(&desk->doctor, &facts, &access);
    expect(&desk->doctor, "access", DOCTOR_WARNING, "clear text");
    desk_close(desk);
}

TEST(what_does_not_fit_is_counted)
{
    struct desk *desk = desk_open();
    for (int i = 0; i < DOCTOR_FINDINGS_MAX + 3; i++)
        doctor_say(&desk->doctor, DOCTOR_WARNING, "policy", NULL, "number %d", i);
    CHECK_INT(desk->doctor.count, DOCTOR_FINDINGS_MAX);
    CHECK_INT(desk->doctor.left_off, 3);
    desk_close(desk);
}

/* ---- policy ---- */

static struct policy *policy_of(const char *text)
{
    struct yaml_problems *problems = calloc(1, sizeof *problems);
    struct policy *policy = NULL;
    if (policy_parse(bytes_of(text), &policy, problems) != OK)
        check_fail(__FILE__, __LINE__, "%zu: %s", problems->at[0].line, problems->at[0].text);
    free(problems);
    return policy;
}

static struct desk *look_at_policy(const char *text)
{
    struct desk *desk = desk_open();
    struct secrets_config config = {.env = env_real()};
    struct secrets *secrets;
    struct why why = {""};
    hash_setup();
    seal_setup();
    struct policy *policy = policy_of(text);
    CHECK_INT(secrets_open(&config, &secrets, &why), OK);
    doctor_look_at_policy(&desk->doctor, policy, secrets);
    secrets_close(secrets);
    policy_free(policy);
    return desk;
}

TEST(a_policy_that_is_well_is_said_to_be_so)
{
    setenv("SEMEL_DOCTOR_TEST", "whsec_x", 1);
    struct desk *desk =
        look_at_policy("owner: dana\n"
                       "destinations:\n  agent: {provider: http, url: \"https://a.example\", secret: env:SEMEL_DOCTOR_TEST}\n"
                       "sources:\n  form: {preset: json, verify: hmac, secret: env:SEMEL_DOCTOR_TEST, forward: agent}\n"
                       "  mail: {verify: none, addresses: [a@b.c]}\n");
    expect_well(&desk->doctor);
    desk_close(desk);
}

TEST(each_setting_that_is_unwise_is_found)
{
    static const struct {
        const char *text, *check;
        enum doctor_grade grade;
        const char *words;
    } rows[] = {
        {"zone: UTC\n", "policy", DOCTOR_WARNING, "no owner"},
        {"owner: dana\nmode: shadow\n", "policy", DOCTOR_WARNING, "shadow"},
        {"owner: d\nsources:\n  f: {preset: json, verify: none}\n", "sources", DOCTOR_WARNING, "/in/f"},
        {"owner: d\nsources:\n  f: {preset: json, verify: none, addresses: [a@b.c], mode: shadow}\n", "sources", DOCTOR_WARNING,
         "only watched"},
        {"owner: d\nsources:\n  f: {preset: typeform, secret: env:SEMEL_DOCTOR_TEST, window: 1h}\n", "sources", DOCTOR_WARNING,
         "shorter than twice"},
        {"owner: d\nsources:\n  f: {preset: json, verify: hmac, secret: env:SEMEL_DOCTOR_NONE}\n", "sources", DOCTOR_PROBLEM,
         "SEMEL_DOCTOR_NONE"},
        {"owner: d\ndestinations:\n  d: {provider: http, url: \"https://a.example\", secret: env:SEMEL_DOCTOR_NONE}\n",
         "destinations", DOCTOR_PROBLEM, "SEMEL_DOCTOR_NONE"},
        {"owner: d\ndestinations:\n  d: {provider: http, url: \"https://a.example\", tls_verify: false}\n", "destinations",
         DOCTOR_WARNING, "not checked"},
        {"owner: d\ndestinations:\n  d: {provider: http, url: \"https://a.example\", capability: idempotent, key_header: K, "
         "window: 3h, deadline: 6h}\n",
         "destinations", DOCTOR_WARNING, "for 6h, but remembers our key for 3h only: 2h"},
    };
    setenv("SEMEL_DOCTOR_TEST", "whsec_x", 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct desk *desk = look_at_policy(rows[i].text);
        expect(&desk->doctor, rows[i].check, rows[i].grade, rows[i].words);
        CHECK_INT(doctor_count(&desk->doctor, DOCTOR_PROBLEM) + doctor_count(&desk->doctor, DOCTOR_WARNING), 1);
        desk_close(desk);
    }
}

/* ---- data ---- */

static void run_query(struct house *house, const struct query *query, const void *params)
{
    struct why why = {""};
    if (store_run(engine_store(house->engine), query, params, 1, NULL, NULL, NULL, &why) != OK)
        check_fail(__FILE__, __LINE__, "%s", why.text);
}

static struct desk *look_at_data(struct house *house, const char *rules)
{
    struct desk *desk = desk_open();
    struct why why = {""};
    struct doctor_facts facts = well;
    struct policy *policy = policy_of(rules);
    facts.postgres = engine_is_postgres(house->engine);
    facts.wall_us = engine_now(house->engine).wall_us;
    CHECK_INT(doctor_look_at_data(&desk->doctor, &facts, policy, engine_store(house->engine), &why), OK);
    policy_free(policy);
    return desk;
}

TEST_BOTH(data_that_is_well_is_said_to_be_so)
{
    struct house house;
    house_open(&house, storage);
    struct desk *desk = look_at_data(&house, "owner: dana\n");
    if (find(&desk->doctor, "durability", DOCTOR_PROBLEM) == NULL && find(&desk->doctor, "durability", DOCTOR_WARNING) == NULL)
        expect_well(&desk->doctor); /* a server for tests may be told not to wait for its disk */
    CHECK(find(&desk->doctor, "schema", DOCTOR_OK) != NULL && find(&desk->doctor, "keys", DOCTOR_OK) != NULL);
    CHECK(find(&desk->doctor, "events", DOCTOR_OK) != NULL && find(&desk->doctor, "unknown", DOCTOR_OK) != NULL);
    desk_close(desk);
    house_close(&house);
}

static enum status take_id(void *ctx, const void *row, struct why *why)
{
    (void)why;
    *(int64_t *)ctx = ((const struct row_exception *)row)->id;
    return OK;
}

static int64_t card_of(struct house *house, int64_t intent)
{
    struct q_exception_open_of open = {intent, 0, 0, EXCEPTION_UNKNOWN_OUTCOME};
    struct why why = {""};
    int64_t id = 0;
    CHECK_INT(store_run(engine_store(house->engine), &EXCEPTION_OPEN_OF, &open, 1, take_id, &id, NULL, &why), OK);
    return id;
}

TEST_BOTH(an_unknown_outcome_without_an_owner_and_a_late_card_are_found)
{
    struct house house;
    house_open(&house, storage);
    int64_t now = engine_now(house.engine).wall_us;
    struct engine_command claim = house_claim("k");
    house_run(&house, &claim);
    struct engine_command fail = house_say(OP_FAIL, &claim);
    fail.ledger.effect_unknown = true;
    house_run(&house, &fail);
    struct desk *desk = look_at_data(&house, "owner: dana\n");
    CHECK(find(&desk->doctor, "unknown", DOCTOR_OK) != NULL && find(&desk->doctor, "exceptions", DOCTOR_OK) != NULL);
    desk_close(desk);

    struct row_exception late = {
        .id = 7, .space = BYTES("main"), .kind = EXCEPTION_LOOP, .owner = BYTES("dana"), .due = now - 1, .event = 5};
    struct q_exception_resolve resolve = {card_of(&house, claim.answer.intent), now, BYTES("lost"), BYTES("x"), BYTES_NONE};
    run_query(&house, &EXCEPTION_ADD, &late);
    run_query(&house, &EXCEPTION_RESOLVE, &resolve);
    desk = look_at_data(&house, "owner: dana\n");
    expect(&desk->doctor, "exceptions", DOCTOR_PROBLEM, "1 exception is overdue, of 1");
    expect(&desk->doctor, "unknown", DOCTOR_PROBLEM, "1 outcome is unknown");
    desk_close(desk);
    house_close(&house);
}

TEST_BOTH(another_schema_and_quiet_noisy_and_undecided_events_are_found)
{
    struct house house;
    house_open(&house, storage);
    int64_t now = engine_now(house.engine).wall_us;
    struct row_source quiet = {
        .space = BYTES("main"), .name = BYTES("form"), .muted_until = now + WHEN_HOUR, .actor = BYTES("dana"), .note = BYTES("")};
    struct row_event event = {
        .space = BYTES("main"), .source = BYTES("chat"), .content = BYTES("{}"), .received = now - WHEN_HOUR};
    run_query(&house, &META_PUT, &(struct q_meta_put){BYTES("schema"), BYTES("99")});
    run_query(&house, &SOURCE_PUT, &quiet);
    for (int i = 0; i < 101; i++) {
        event.id = id_floor(now - WHEN_HOUR) + i;
        event.part = i;
        event.verdict = i < 100 ? EVENT_SUPPRESSED : EVENT_WAITING;
        run_query(&house, &EVENT_ADD, &event);
    }
    struct desk *desk = look_at_data(
        &house, "owner: dana\nsources:\n  chat: {preset: json, verify: none}\n  form: {preset: json, verify: none}\n");
    expect(&desk->doctor, "schema", DOCTOR_PROBLEM, "schema 99");
    expect(&desk->doctor, "events", DOCTOR_PROBLEM, "1 event is not decided yet");
    CHECK_INT(doctor_count(&desk->doctor, DOCTOR_WARNING), 2);
    expect(&desk->doctor, "events", DOCTOR_WARNING, "'form' is muted by dana");
    expect(&desk->doctor, "events", DOCTOR_WARNING, "'chat' is noisy: 100");
    desk_close(desk);
    house_close(&house);
}

TEST_BOTH(stranded_and_late_effects_and_bad_keys_are_found)
{
    struct house house;
    house_open(&house, storage);
    int64_t now = engine_now(house.engine).wall_us;
    struct row_outbox row = {.intent = 77,
                             .space = BYTES("main"),
                             .destination = BYTES("gone"),
                             .request = 1,
                             .due = now - WHEN_HOUR,
                             .created = now - WHEN_HOUR};
    run_query(&house, &OUTBOX_ADD, &row);
    struct engine_command first = house_claim("Ada@example.com"), second = house_claim("ada@example.com ");
    house_run(&house, &first);
    house_run(&house, &second);
    struct desk *desk = look_at_data(&house, "owner: dana\n");
    expect(&desk->doctor, "effects", DOCTOR_PROBLEM, "1 effect waits for destination 'gone'");
    expect(&desk->doctor, "effects", DOCTOR_WARNING, "since 1 h; 1 are open");
    CHECK(find(&desk->doctor, "keys", DOCTOR_PROBLEM) != NULL);
    desk_close(desk);
    house_close(&house);
}

TEST(a_clock_that_was_set_back_is_found)
{
    struct house house;
    house_open(&house, HOUSE_SQLITE);
    struct engine_command claim = house_claim("k");
    house_run(&house, &claim);
    house.wall_us -= 3 * WHEN_HOUR;
    struct desk *desk = look_at_data(&house, "owner: dana\n");
    expect(&desk->doctor, "clock", DOCTOR_WARNING, "3 h ahead");
    desk_close(desk);
    house_close(&house);
}
