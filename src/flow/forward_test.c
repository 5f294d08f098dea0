/* What is to go on and cannot be forwarded. */
#include "audit/columns.h"
#include "flow/fixture_test.h"
#include "flow/person.h"

/* The key goes into a form, and what comes is JSON. */
#define PICKY "{provider: http, url: \"https://agent.example\", capability: idempotent, window: 24h, key_form: id}"
#define MENDED "{provider: http, url: \"https://agent.example\", capability: idempotent, window: 24h, key_header: Id}"
#define OTHER_RULES(agent, name, mode)                     \
    "destinations:\n  agent: " agent "\nsources:\n  " name \
    ": {preset: json, verify: none, forward: agent, owner: dana, mode: " mode "}\n"

static void set_rules(struct world *world, const char *text)
{
    struct yaml_problems *problems = calloc(1, sizeof *problems);
    struct policy *policy;
    if (policy_parse(bytes_of(text), &policy, problems) != OK)
        check_fail(__FILE__, __LINE__, "%zu: %s", problems->at[0].line, problems->at[0].text);
    flow_set_policy(world->flow, policy, 7);
    policy_free(policy);
    free(problems);
}

static enum status write_person(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    return person_write(store, ledger, command->user, why);
}

/* What a person does about it; the status is that of the transaction. */
static enum status person(struct world *world, int64_t event, enum event_act act, struct person_order *ret)
{
    *ret = (struct person_order){.flow = world->flow, .act = act, .space = BYTES("main"), .actor = BYTES("dana"), .event = event};
    struct engine_command command = {
        .write = write_person, .intents_max = PERSON_INTENTS, .user = ret, .arena = &world->house.arena, .done = nothing};
    engine_step(world->house.engine, &command);
    return command.status;
}

static void expect_held(struct world *world, int64_t event)
{
    expect(world, event, EVENT_HELD, "cannot_forward", 0);
    struct row_event row = look(world, event);
    CHECK_INT(row.intent, 0);
    CHECK_INT(row.until, 0);
    CHECK_INT(row.shadow, 0);
    CHECK_INT(forwards(world), 0);
    CHECK_INT(open_cards(world), 1);
}

struct cards {
    struct arena *arena;
    struct row_exception stored, folded;
    struct row_decision decisions[64]; /* newest first */
    size_t count;
};

static void keep_row(const struct query_column *columns, size_t count, void *row, struct arena *arena)
{
    for (size_t i = 0; i < count; i++) {
        struct bytes *text = (struct bytes *)((char *)row + columns[i].offset);
        if (columns[i].type != COLUMN_INT && text->at != NULL)
            *text = arena_dup(arena, *text);
    }
}

static enum status take_stored(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct cards *cards = ctx;
    cards->stored = *(const struct row_exception *)row;
    keep_row(EXCEPTION_LIST.columns, EXCEPTION_LIST.column_count, &cards->stored, cards->arena);
    return OK;
}

static enum status take_decision(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct cards *cards = ctx;
    CHECK(cards->count < sizeof cards->decisions / sizeof *cards->decisions);
    struct row_decision *kept = &cards->decisions[cards->count++];
    *kept = *(const struct row_decision *)row;
    keep_row(DECISION_LIST.columns, DECISION_LIST.column_count, kept, cards->arena);
    return OK;
}

/* The latest card, as the table has it; the log alone tells the same. */
static struct row_exception look_card(struct world *world)
{
    struct why why;
    struct cards cards = {.arena = &world->house.arena};
    struct q_exception_list list = {BYTES("main"), INT64_MAX, 1};
    struct q_decision_list decisions = {BYTES("main"), INT64_MAX, 64};
    struct store *store = engine_store(world->house.engine);
    CHECK_INT(store_run(store, &EXCEPTION_LIST, &list, 1, take_stored, &cards, NULL, &why), OK);
    CHECK_INT(store_run(store, &DECISION_LIST, &decisions, 1, take_decision, &cards, NULL, &why), OK);
    cards.folded.id = cards.stored.id;
    while (cards.count > 0)
        CHECK_INT(exception_fold(&cards.folded, &cards.decisions[--cards.count], cards.arena, &why), OK);
    for (size_t i = 0; i < EXCEPTION_ADD.param_count; i++)
        if (!column_equal(&EXCEPTION_ADD.params[i], &cards.stored, &cards.folded))
            check_fail(__FILE__, __LINE__, "the log says another %s than the card", EXCEPTION_ADD.params[i].name);
    return cards.stored;
}

TEST_BOTH(what_cannot_be_forwarded_is_held_and_goes_on_once_when_the_policy_is_mended)
{
    struct world world;
    struct person_order order;
    world_open(&world, storage);
    set_rules(&world, OTHER_RULES(PICKY, "form", "enforce"));
    int64_t a = stage(&world, "form", "d1", "jon@acme.io", QUESTION);
    int64_t copy = stage(&world, "form", "d1", "jon@acme.io", QUESTION);
    pass(&world);
    expect_held(&world, a);
    expect(&world, copy, EVENT_SUPPRESSED, "same_delivery", a);
    struct row_exception card = look_card(&world);
    CHECK_INT(card.kind, EXCEPTION_CANNOT_FORWARD);
    CHECK_INT(card.event, a);
    CHECK_INT(card.state, EXCEPTION_OPEN);
    CHECK_TEXT(card.owner, "dana");
    CHECK(memmem(card.reason.at, card.reason.len, "form body", 9) != NULL);

    CHECK_INT(person(&world, a, EVENT_ACT_RELEASE, &order), INVALID); /* it still cannot be: nothing changes */
    expect_held(&world, a);

    set_rules(&world, OTHER_RULES(MENDED, "form", "enforce"));
    CHECK_INT(person(&world, a, EVENT_ACT_RELEASE, &order), OK);
    CHECK_INT(order.end, PERSON_DONE);
    CHECK_INT(look(&world, a).verdict, EVENT_RELEASED);
    CHECK_INT(look(&world, a).intent, order.intent);
    CHECK(order.intent != 0);
    CHECK_INT(forwards(&world), 1);
    CHECK_INT(open_cards(&world), 0);
    card = look_card(&world);
    CHECK_TEXT(card.resolution, "release");
    CHECK_INT(person(&world, a, EVENT_ACT_RELEASE, &order), OK);
    CHECK_INT(order.end, PERSON_BEFORE);
    CHECK_INT(forwards(&world), 1);
    world_close(&world);
}

TEST_BOTH(what_cannot_be_forwarded_can_be_put_away)
{
    struct world world;
    struct person_order order;
    world_open(&world, storage);
    set_rules(&world, OTHER_RULES(PICKY, "form", "enforce"));
    int64_t a = stage(&world, "form", "d1", "jon@acme.io", QUESTION);
    pass(&world);
    CHECK_INT(person(&world, a, EVENT_ACT_SUPPRESS, &order), OK);
    CHECK_INT(look(&world, a).verdict, EVENT_SUPPRESSED);
    CHECK(look(&world, a).until > 0);
    CHECK_INT(open_cards(&world), 0);
    CHECK_INT(forwards(&world), 0);
    CHECK_TEXT(look_card(&world).resolution, "suppress");
    world_close(&world);
}

TEST_BOTH(in_shadow_mode_too_what_cannot_be_forwarded_is_held)
{
    struct world world;
    world_open(&world, storage);
    set_rules(&world, OTHER_RULES(PICKY, "form", "shadow"));
    int64_t a = stage(&world, "form", "d1", "jon@acme.io", QUESTION);
    pass(&world);
    expect_held(&world, a);
    world_close(&world);
}

TEST_BOTH(an_event_whose_source_left_the_policy_is_held)
{
    struct world world;
    world_open(&world, storage);
    int64_t a = stage(&world, "form", "d1", "jon@acme.io", QUESTION);
    set_rules(&world, OTHER_RULES(MENDED, "another", "enforce"));
    pass(&world);
    expect_held(&world, a);
    world_close(&world);
}

TEST_BOTH(an_event_whose_key_somebody_else_took_is_held)
{
    struct world world;
    struct person_order order;
    world_open(&world, storage);
    int64_t a = stage(&world, "form", "d1", "jon@acme.io", QUESTION);
    struct engine_command claim = house_claim("");
    claim.ledger.workflow = FLOW_WORKFLOW;
    claim.ledger.key = id_text("evt", a, &world.house.arena);
    house_run(&world.house, &claim);
    pass(&world);
    expect_held(&world, a);
    CHECK_INT(person(&world, a, EVENT_ACT_RELEASE, &order), INVALID);
    expect_held(&world, a);
    world_close(&world);
}

TEST(an_event_too_large_to_be_forwarded_keeps_nobody_waiting)
{
    enum { LARGE = DESTINATION_BODY_MAX + 100 };
    struct world world;
    world_open(&world, HOUSE_SQLITE);
    char *record = large_record(LARGE);
    int64_t large = stage_kept(&world, "form", (struct bytes){record, LARGE},
                               BYTES("{\"kind\":\"event\",\"delivery\":\"d1\",\"identities\":[]}"));
    pass(&world);
    expect_held(&world, large);
    int64_t next = stage(&world, "form", "d2", "jon@acme.io", QUESTION);
    pass(&world);
    expect(&world, next, EVENT_ACCEPTED, "new", 0);
    CHECK_INT(forwards(&world), 1);
    free(record);
    world_close(&world);
}

/* ---- quarantine ---- */

static void put_meta(struct world *world, const char *name, const char *value)
{
    struct q_meta_put put = {bytes_of(name), bytes_of(value)};
    struct why why;
    struct store *store = engine_store(world->house.engine);
    CHECK_INT(store_begin(store, &why), OK);
    CHECK_INT(store_run(store, &META_PUT, &put, 1, NULL, NULL, NULL, &why), OK);
    CHECK_INT(store_commit(store, &why), OK);
}

/* What may have been forwarded before data was lost is unknown; what a person decides about it needs the request. */
TEST_BOTH(in_quarantine_a_forward_is_unknown_and_keeps_its_request)
{
    struct world world;
    world_open(&world, storage);
    put_meta(&world, "epoch", "2");
    put_meta(&world, "quarantine", "a test");
    later(&world, WHEN_SECOND);
    engine_step(world.house.engine, NULL);
    int64_t a = stage(&world, "form", "d1", "jon@acme.io", QUESTION);
    pass(&world);
    expect(&world, a, EVENT_ACCEPTED, "new", 0);
    CHECK_INT(house_intent(&world.house, look(&world, a).intent).state, STATE_UNKNOWN);
    CHECK_INT(forwards(&world), 1);
    CHECK_INT(open_cards(&world), 1);
    CHECK_INT(look_card(&world).kind, EXCEPTION_UNKNOWN_OUTCOME);
    world_close(&world);
}
