#include "flow/flow.h"

#include <stdio.h>
#include <stdlib.h>

#include "flow/fixture_test.h"
#include "flow/person.h"
#include "threads/answer.h"

/* ---- the promises ---- */

TEST_BOTH(a_delivery_that_comes_again_is_forwarded_once)
{
    struct world world;
    world_open(&world, storage);
    int64_t a = stage(&world, "form", "d1", "jon@acme.io", QUESTION);
    pass(&world);
    later(&world, 40 * WHEN_MINUTE);
    int64_t b = stage(&world, "form", "d1", "jon@acme.io", QUESTION);
    pass(&world);
    expect(&world, a, EVENT_ACCEPTED, "new", 0);
    expect(&world, b, EVENT_SUPPRESSED, "same_delivery", a);
    CHECK_INT(forwards(&world), 1);
    CHECK_INT(look(&world, a).copies, 1);
    CHECK(look(&world, a).intent != 0);
    CHECK_INT(look(&world, b).intent, 0);
    world_close(&world);
}

TEST_BOTH(copies_in_one_pass_see_each_other)
{
    struct world world;
    world_open(&world, storage);
    int64_t first = stage(&world, "form", "d1", "jon@acme.io", QUESTION);
    for (int i = 0; i < 20; i++)
        stage(&world, "form", i % 2 == 0 ? "d1" : "d2", "jon@acme.io", QUESTION);
    pass(&world);
    CHECK_INT(forwards(&world), 1);
    CHECK_INT(look(&world, first).copies, 20);
    world_close(&world);
}

TEST_BOTH(a_copys_own_copy_is_recognised)
{
    struct world world;
    world_open(&world, storage);
    int64_t a = stage(&world, "form", "d1", "jon@acme.io", QUESTION);
    int64_t b = stage(&world, "mail", "m1", "jon@acme.io", QUESTION); /* by another channel, with an id of its own */
    pass(&world);
    later(&world, 3 * WHEN_DAY); /* contents are forgotten, ids are not */
    int64_t c = stage(&world, "mail", "m1", "jon@acme.io", QUESTION);
    pass(&world);
    expect(&world, b, EVENT_SUPPRESSED, "same_content_elsewhere", a);
    expect(&world, c, EVENT_SUPPRESSED, "same_delivery", a);
    CHECK_INT(forwards(&world), 1);
    world_close(&world);
}

TEST_BOTH(the_same_words_of_two_people_are_two_messages)
{
    struct world world;
    world_open(&world, storage);
    int64_t a = stage(&world, "chat", "c1", "jon@acme.io", QUESTION), b = stage(&world, "chat", "c2", "ann@acme.io", QUESTION);
    pass(&world);
    expect(&world, a, EVENT_ACCEPTED, "new", 0);
    expect(&world, b, EVENT_ACCEPTED, "new", 0);
    CHECK_INT(forwards(&world), 2);
    CHECK(look(&world, a).thread != look(&world, b).thread);
    world_close(&world);
}

TEST(a_body_without_ids_is_recognised_within_the_window)
{
    struct world world;
    world_open(&world, HOUSE_SQLITE);
    int64_t a = stage(&world, "form", NULL, NULL, "x"), b = stage(&world, "form", NULL, NULL, "x");
    int64_t other = stage(&world, "mail", NULL, NULL, "x");
    pass(&world);
    later(&world, 2 * WHEN_DAY);
    int64_t later = stage(&world, "form", NULL, NULL, "x");
    pass(&world);
    expect(&world, a, EVENT_ACCEPTED, "new", 0);
    expect(&world, b, EVENT_SUPPRESSED, "same_payload", a);
    expect(&world, other, EVENT_ACCEPTED, "new", 0);
    expect(&world, later, EVENT_ACCEPTED, "new", 0);
    world_close(&world);
}

TEST_BOTH(what_is_likely_waits_for_a_person_and_is_not_forwarded)
{
    struct world world;
    world_open(&world, storage);
    int64_t a = stage(&world, "chat", "c1", "jon@acme.io", "Hi"), b = stage(&world, "mail", "m1", "jon@acme.io", "Hi");
    pass(&world);
    expect(&world, a, EVENT_ACCEPTED, "new", 0);
    expect(&world, b, EVENT_HELD, "maybe_short", a);
    CHECK_INT(open_cards(&world), 1);
    CHECK_INT(forwards(&world), 1);
    CHECK_INT(look(&world, b).until, 0);
    world_close(&world);
}

TEST_BOTH(shadow_mode_says_what_it_would_do_and_forwards_all)
{
    struct world world;
    world_open(&world, storage);
    stage(&world, "watched", "d1", "jon@acme.io", QUESTION);
    int64_t b = stage(&world, "watched", "d1", "jon@acme.io", QUESTION);
    pass(&world);
    CHECK_INT(look(&world, b).verdict, EVENT_SUPPRESSED);
    CHECK_INT(look(&world, b).shadow, 1);
    CHECK_INT(forwards(&world), 2);
    world_close(&world);
}

TEST_BOTH(a_burst_of_copies_tells_a_person_once)
{
    struct world world;
    world_open(&world, storage);
    for (int i = 0; i < 30; i++)
        stage(&world, "chat", "c1", "jon@acme.io", QUESTION);
    pass(&world);
    CHECK_INT(open_cards(&world), 1);
    CHECK_INT(forwards(&world), 1);
    world_close(&world);
}

TEST_BOTH(a_conversation_that_answers_itself_is_held)
{
    struct world world;
    world_open(&world, storage);
    int64_t last = 0;
    for (int i = 0; i < 7; i++) {
        char id[8], text[96];
        snprintf(id, sizeof id, "c%d", i);
        snprintf(text, sizeof text, "This is the automatic answer number %d to the one before it", i * 7919);
        last = stage(&world, "chat", id, "bot@acme.io", text);
    }
    pass(&world);
    expect(&world, last, EVENT_HELD, "loop", 0);
    CHECK_INT(forwards(&world), 5);
    world_close(&world);
}

/* ---- conversations ---- */

static void answer(struct world *world, int64_t thread)
{
    struct engine_command claim = house_claim("any key");
    claim.ledger.thread = id_text("thr", thread, &world->house.arena);
    claim.ledger.action = BYTES("reply");
    house_run(&world->house, &claim);
    CHECK_INT(claim.answer.verdict, VERDICT_PROCEED);
}

TEST_BOTH(a_new_question_opens_a_new_epoch_once_somebody_acted)
{
    struct world world;
    world_open(&world, storage);
    int64_t hi = stage(&world, "chat", "c1", "jon@acme.io", "Hi");
    pass(&world);
    int64_t more = stage(&world, "chat", "c2", "jon@acme.io", QUESTION);
    pass(&world);
    struct row_event first = look(&world, hi), second = look(&world, more);
    CHECK_INT(first.epoch, 1);
    CHECK_INT(second.epoch, 1);
    CHECK_INT(second.thread, first.thread);
    answer(&world, first.thread);
    int64_t next = stage(&world, "chat", "c3", "jon@acme.io", "And would you also take my brother along on Fridays?");
    pass(&world);
    CHECK_INT(look(&world, next).thread, first.thread);
    CHECK_INT(look(&world, next).epoch, 2);
    int64_t again = stage(&world, "chat", "c3", "jon@acme.io", "And would you also take my brother along on Fridays?");
    pass(&world);
    CHECK_INT(look(&world, again).verdict, EVENT_SUPPRESSED);
    CHECK_INT(look(&world, again).epoch, 2);
    again = stage(&world, "chat", "c1", "jon@acme.io", "Hi"); /* a late copy belongs to the question that it repeats */
    pass(&world);
    CHECK_INT(look(&world, again).epoch, 1);
    world_close(&world);
}

TEST_BOTH(an_answer_in_the_same_batch_counts)
{
    struct world world;
    world_open(&world, storage);
    int64_t hi = stage(&world, "chat", "c1", "jon@acme.io", "Hi");
    pass(&world);
    struct row_event first = look(&world, hi);
    int64_t more = stage(&world, "chat", "c2", "jon@acme.io", QUESTION);
    struct engine_command claim = house_claim("k"), flow = flow_pass(world.flow);
    claim.ledger.thread = id_text("thr", first.thread, &world.house.arena);
    claim.ledger.action = BYTES("reply");
    ledger_key_hash(engine_pepper(world.house.engine), claim.ledger.space, claim.ledger.workflow, claim.ledger.key,
                    claim.ledger.h);
    claim.arena = &world.house.arena;
    claim.done = nothing;
    claim.next = &flow;
    run_write(&world, &claim);
    CHECK_INT(look(&world, more).epoch, 2);
    world_close(&world);
}

static enum status write_release(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    return person_write(store, ledger, command->user, why);
}

/* In one batch: something is done, then two messages are let through. The first is a new question, the second joins it. */
TEST_BOTH(what_was_done_before_a_question_is_no_answer_to_it)
{
    struct world world;
    world_open(&world, storage);
    int64_t hi = stage(&world, "chat", "c1", "jon@acme.io", "Hi"), copies[2];
    for (int i = 0; i < 2; i++)
        copies[i] = stage(&world, "chat", "c1", "jon@acme.io", "Hi");
    pass(&world);
    struct engine_command claim = house_claim("k"), releases[2];
    struct person_order orders[2];
    claim.ledger.thread = id_text("thr", look(&world, hi).thread, &world.house.arena);
    claim.ledger.action = BYTES("note");
    ledger_key_hash(engine_pepper(world.house.engine), claim.ledger.space, claim.ledger.workflow, claim.ledger.key,
                    claim.ledger.h);
    claim.arena = &world.house.arena;
    claim.done = nothing;
    claim.next = &releases[0];
    for (int i = 0; i < 2; i++) {
        orders[i] = (struct person_order){
            .flow = world.flow, .act = EVENT_ACT_RELEASE, .space = BYTES("main"), .actor = BYTES("dana"), .event = copies[i]};
        releases[i] = (struct engine_command){.write = write_release,
                                              .intents_max = PERSON_INTENTS,
                                              .arena = &world.house.arena,
                                              .done = nothing,
                                              .user = &orders[i],
                                              .next = i == 0 ? &releases[1] : NULL};
    }
    run_write(&world, &claim);
    CHECK_INT(releases[0].status, OK);
    CHECK_INT(releases[1].status, OK);
    CHECK_INT(look(&world, hi).epoch, 1);
    CHECK_INT(look(&world, copies[0]).epoch, 2);
    CHECK_INT(look(&world, copies[1]).epoch, 2);
    world_close(&world);
}

static struct claim_naming name(struct world *world, int64_t event, struct answer_naming answer, enum status want)
{
    struct claim_naming naming = {.action = BYTES("reply")};
    struct bytes field;
    struct why why;
    answer.event = event != 0 ? id_text("evt", event, &world->house.arena) : BYTES_NONE;
    if (event == 0)
        naming.thread = answer.question, answer.question = BYTES_NONE;
    CHECK_INT(answer_name(engine_store(world->house.engine), BYTES("main"), &answer, &world->house.arena, &naming, &field, &why),
              want);
    return naming;
}

/* Queues an answer as /v1/effects does. */
static void queue(struct world *world, const struct claim_naming *naming)
{
    struct engine_command submit = house_claim("");
    submit.ledger.op = OP_SUBMIT;
    submit.ledger.workflow = naming->workflow;
    submit.ledger.key = naming->key;
    submit.ledger.thread = naming->thread;
    submit.ledger.action = naming->action;
    submit.ledger.in_turn = true;
    ledger_key_hash(engine_pepper(world->house.engine), submit.ledger.space, submit.ledger.workflow, submit.ledger.key,
                    submit.ledger.h);
    house_run(&world->house, &submit);
    CHECK_INT(submit.answer.verdict, VERDICT_PROCEED);
    CHECK_INT(submit.answer.state, STATE_PENDING);
}

TEST_BOTH(an_answer_is_named_by_the_question_that_it_answers)
{
    const struct answer_naming none = {.epoch = EPOCH_UNSAID};
    struct world world;
    world_open(&world, storage);
    int64_t hi = stage(&world, "chat", "c1", "jon@acme.io", "Hi");
    pass(&world);
    struct claim_naming first = name(&world, hi, none, OK);
    CHECK_TEXT(first.workflow, "answers");
    CHECK(bytes_eq(first.thread, id_text("thr", look(&world, hi).thread, &world.house.arena)));
    CHECK(bytes_eq(first.key, arena_printf(&world.house.arena, "%.*s:1:reply", BYTES_ARG(first.thread))));
    int64_t more = stage(&world, "chat", "c2", "jon@acme.io", QUESTION);
    pass(&world);
    CHECK_INT(look(&world, more).epoch, 1); /* nobody has begun: it joins */
    queue(&world, &first);
    int64_t next = stage(&world, "chat", "c3", "jon@acme.io", "And would you also take my brother along on Fridays?");
    pass(&world);
    CHECK_INT(look(&world, next).epoch, 2); /* queued is answered */
    CHECK(bytes_eq(name(&world, more, none, OK).key, first.key));
    CHECK(!bytes_eq(name(&world, next, none, OK).key, first.key));
    CHECK(bytes_eq(name(&world, 0, (struct answer_naming){.question = first.thread, .epoch = 1}, OK).key, first.key));
    CHECK(bytes_eq(name(&world, 0, (struct answer_naming){.question = first.thread, .epoch = EPOCH_UNSAID}, OK).key,
                   name(&world, next, none, OK).key));
    name(&world, 0, (struct answer_naming){.question = first.thread, .epoch = 3}, INVALID);
    name(&world, 0, (struct answer_naming){.question = BYTES("thr_0000000000001"), .epoch = 1}, NOTHING);
    name(&world, 0, (struct answer_naming){.question = BYTES("thr_x"), .epoch = 1}, NOTHING);
    name(&world, 12345, none, NOTHING);
    world_close(&world);
}

/* An action of an earlier question, taken late, does not make the open question an answered one. */
TEST_BOTH(a_late_answer_to_an_earlier_question_answers_only_that)
{
    const struct answer_naming none = {.epoch = EPOCH_UNSAID};
    struct world world;
    world_open(&world, storage);
    int64_t hi = stage(&world, "chat", "c1", "jon@acme.io", "Hi");
    pass(&world);
    struct claim_naming first = name(&world, hi, none, OK), late = first;
    queue(&world, &first);
    int64_t next = stage(&world, "chat", "c2", "jon@acme.io", QUESTION);
    pass(&world);
    late.action = BYTES("note");
    late.key = arena_printf(&world.house.arena, "%.*s:1:note", BYTES_ARG(first.thread));
    queue(&world, &late);
    int64_t more = stage(&world, "chat", "c3", "jon@acme.io", "And would you also take my brother along on Fridays?");
    pass(&world);
    CHECK_INT(look(&world, next).epoch, 2);
    CHECK_INT(look(&world, more).epoch, 2);
    world_close(&world);
}

TEST(the_key_of_a_conversation_of_the_users_own_has_its_parts_apart)
{
    static const struct {
        const char *thread, *question, *action, *key;
    } rows[] = {{"crm:8821", "msg-1", "reply", "crm:8821:msg-1:reply"},
                {"crm", "8821:msg-1", "reply", "crm:8821%3Amsg-1:reply"},
                {"t", "50%", "re:ply", "t:50%25:re%3Aply"},
                {"t", "Grüße", "reply", "t:Grüße:reply"}};
    struct arena arena;
    arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct claim_naming naming = {.thread = bytes_of(rows[i].thread), .action = bytes_of(rows[i].action)};
        struct answer_naming answer = {.question = bytes_of(rows[i].question), .epoch = EPOCH_UNSAID};
        struct bytes field;
        struct why why;
        CHECK_INT(answer_name(NULL, BYTES("main"), &answer, &arena, &naming, &field, &why), OK);
        CHECK_TEXT(naming.key, rows[i].key);
        naming = (struct claim_naming){.thread = BYTES("t"), .action = BYTES("reply")};
        answer = (struct answer_naming){.epoch = EPOCH_UNSAID};
        CHECK_INT(answer_name(NULL, BYTES("main"), &answer, &arena, &naming, &field, &why), INVALID);
        CHECK_TEXT(field, "question");
    }
    arena_release(&arena);
}

/* ---- storage ---- */

TEST_BOTH(an_event_that_cannot_be_read_keeps_nobody_waiting)
{
    struct world world;
    world_open(&world, storage);
    struct bytes content = BYTES("{\"kind\":");
    int64_t bad = 0;
    struct stage_order order = {.space = BYTES("main"),
                                .source = BYTES("form"),
                                .record = BYTES("{}\n"),
                                .contents = &content,
                                .count = 1,
                                .keep_us = WHEN_HOUR,
                                .events = &bad};
    struct engine_command command = {.write = write_order, .user = &order, .arena = &world.house.arena, .done = nothing};
    run_write(&world, &command);
    int64_t good = stage(&world, "form", "d1", "jon@acme.io", QUESTION);
    pass(&world);
    expect(&world, bad, EVENT_IGNORED, "unreadable", 0);
    expect(&world, good, EVENT_ACCEPTED, "new", 0);
    CHECK_INT(look(&world, bad).until, 0);
    CHECK_INT(forwards(&world), 1);
    world_close(&world);
}

/* A batch's memory is bounded: what does not fit together is decided in smaller passes. */
TEST(events_too_large_to_be_decided_together_are_decided_one_after_the_other)
{
    enum { EVENTS = 12, LARGE = 24 << 20 };
    struct world world;
    world_open(&world, HOUSE_SQLITE);
    char *record = large_record(LARGE);
    for (int i = 0; i < EVENTS; i++)
        stage_kept(&world, "form", (struct bytes){record, LARGE},
                   arena_printf(&world.house.arena, "{\"kind\":\"event\",\"delivery\":\"d%d\",\"identities\":[]}", i));
    int failed = 0;
    for (int i = 0; i < 40 && forwards(&world) < EVENTS; i++) {
        struct engine_command command = flow_pass(world.flow);
        engine_step(world.house.engine, &command);
        failed += command.status != OK;
    }
    CHECK(failed > 0);
    CHECK_INT(forwards(&world), EVENTS);
    free(record);
    world_close(&world);
}

TEST_BOTH(an_event_is_decided_again_when_the_commit_failed)
{
    struct world world;
    world_open(&world, storage);
    if (storage == HOUSE_POSTGRES)
        SKIP("a failed commit is tried again there");
    int64_t a = stage(&world, "form", "d1", "jon@acme.io", QUESTION);
    world.house.fault = (struct store_fault){.countdown = 1, .status = FULL, .commit_only = true};
    struct engine_command command = flow_pass(world.flow);
    engine_step(world.house.engine, &command);
    CHECK_INT(command.status, FULL);
    CHECK_INT(look(&world, a).verdict, EVENT_WAITING);
    CHECK_INT(forwards(&world), 0);
    later(&world, 2 * WHEN_SECOND);
    engine_step(world.house.engine, NULL);
    pass(&world);
    expect(&world, a, EVENT_ACCEPTED, "new", 0);
    CHECK_INT(forwards(&world), 1);
    world_close(&world);
}

TEST(what_is_over_is_forgotten_and_its_copy_still_recognised)
{
    struct world world;
    world_open(&world, HOUSE_SQLITE);
    int64_t a = stage(&world, "kept", "d1", "jon@acme.io", QUESTION);
    pass(&world);
    later(&world, 2 * WHEN_HOUR);
    pass(&world);
    CHECK_INT(look(&world, a).id, 0);
    int64_t b = stage(&world, "kept", "d1", "jon@acme.io", QUESTION);
    pass(&world);
    expect(&world, b, EVENT_SUPPRESSED, "same_delivery", a);
    world_close(&world);
}

TEST(what_is_stored_of_an_event_is_read_back)
{
    struct arena arena;
    struct why why;
    hash_setup();
    arena_init(&arena, 1 << 20);
    struct identity identities[] = {{.kind = IDENTITY_EMAIL, .sender = true, .value = BYTES("a@b.c")},
                                    {.kind = IDENTITY_PHONE, .value = BYTES("33612345678"), .given = BYTES("+33 6 12 34 56 78")}};
    struct bytes references[] = {BYTES("mail:x@y"), BYTES("mail:z@y")}, content;
    struct incoming in = {.kind = BYTES("lead"),
                          .key = BYTES("mail:1"),
                          .name = BYTES("Jön \"J\" Smith"),
                          .subject = BYTES("s"),
                          .text = BYTES("line\nline"),
                          .thread = BYTES("t"),
                          .references = references,
                          .reference_count = 2,
                          .identities = identities,
                          .identity_count = 2,
                          .at_us = 1234567,
                          .automatic = true,
                          .relayed = true,
                          .piece = BYTES("{}")},
                    out;
    CHECK_INT(event_record(&in, &arena, &content, &why), OK);
    CHECK_INT(event_read(content, &arena, &out, &why), OK);
    CHECK_TEXT(out.name, "Jön \"J\" Smith");
    CHECK_TEXT(out.text, "line\nline");
    CHECK_TEXT(out.references[1], "mail:z@y");
    CHECK_TEXT(out.identities[1].value, "33612345678");
    CHECK_INT(out.identities[1].kind, IDENTITY_PHONE);
    CHECK(out.identities[0].sender && !out.identities[1].sender);
    CHECK_INT(out.at_us, 1234567);
    CHECK(out.automatic && out.relayed && out.delivery.at == NULL);
    CHECK_TEXT(out.piece, "{}");
}

TEST(equal_bodies_have_equal_payloads)
{
    struct arena arena;
    struct why why;
    hash_setup();
    arena_init(&arena, 1 << 20);
    struct incoming a = {.piece = BYTES("{\"a\":1, \"b\":2}")}, b = {.piece = BYTES("{\"b\":2,\"a\":1.0}")},
                    c = {.piece = BYTES("a=1&b=2")}, with_id = {.piece = BYTES("x"), .delivery = BYTES("d")};
    CHECK_INT(event_seal(&a, true, &arena, &why), OK);
    CHECK_INT(event_seal(&b, false, &arena, &why), OK);
    CHECK_INT(event_seal(&c, true, &arena, &why), OK);
    CHECK_INT(event_seal(&with_id, true, &arena, &why), OK);
    CHECK(bytes_eq(a.payload, b.payload) && !bytes_eq(a.payload, c.payload));
    CHECK(with_id.payload.at == NULL && a.piece.at == NULL && b.piece.at != NULL);
}
