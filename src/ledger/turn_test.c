#include "base/when.h"
#include "check.h"
#include "engine/engine.h"
#include "house.h"

#define LEASE_OVER (HOUSE_LEASE_US + 100 * WHEN_MS)

/* An answer in a conversation; its key has the question in it. */
static struct engine_command answer(const char *key)
{
    struct engine_command command = house_claim(key);
    command.ledger.thread = BYTES("thr_1");
    command.ledger.action = BYTES("reply");
    command.ledger.in_turn = true;
    return command;
}

static void run(struct house *house, struct engine_command *command, enum ledger_verdict want)
{
    ledger_key_hash(engine_pepper(house->engine), command->ledger.space, command->ledger.workflow, command->ledger.key,
                    command->ledger.h);
    house_run(house, command);
    CHECK_INT(command->status, OK);
    CHECK_INT(command->answer.verdict, want);
}

static void waits_for(const struct engine_command *command, const struct engine_command *other)
{
    CHECK(command->answer.other);
    CHECK_INT(command->answer.intent, other->answer.intent);
}

static void say(struct house *house, enum ledger_op op, const struct engine_command *claimed, enum ledger_verdict want)
{
    struct engine_command command = house_say(op, claimed);
    command.ledger.effect_unknown = op == OP_FAIL;
    run(house, &command, want);
}

TEST_BOTH(an_answer_waits_for_the_open_answer_to_another_question)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = answer("thr_1:1:reply"), again = answer("thr_1:1:reply"), second = answer("thr_1:2:reply");
    run(&house, &first, VERDICT_PROCEED);
    run(&house, &second, VERDICT_IN_PROGRESS);
    waits_for(&second, &first);
    CHECK(second.answer.lease_left_us > 0);
    run(&house, &again, VERDICT_IN_PROGRESS);
    CHECK(!again.answer.other);
    say(&house, OP_CONFIRM, &first, VERDICT_DONE);
    run(&house, &second, VERDICT_PROCEED);
    CHECK(second.answer.intent != first.answer.intent);
    run(&house, &again, VERDICT_REPLAY); /* the first question keeps its answer */
    CHECK_INT(again.answer.intent, first.answer.intent);
    house_close(&house);
}

TEST_BOTH(turns_are_of_one_action_one_thread_one_workflow_and_one_space)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = answer("a"), others[5];
    run(&house, &first, VERDICT_PROCEED);
    for (int i = 0; i < 5; i++)
        others[i] = answer("b");
    others[0].ledger.action = BYTES("note");
    others[1].ledger.thread = BYTES("thr_2");
    others[2].ledger.workflow = BYTES("other");
    others[3].ledger.space = BYTES("elsewhere");
    others[4].ledger.in_turn = false;
    for (int i = 0; i < 5; i++) {
        char key[] = {'k', (char)('0' + i), '\0'};
        others[i].ledger.key = arena_dup(&house.arena, bytes_of(key));
        run(&house, &others[i], VERDICT_PROCEED);
    }
    house_close(&house);
}

TEST_BOTH(of_two_questions_in_one_batch_one_answer_begins)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = answer("thr_1:1:reply"), second = answer("thr_1:2:reply");
    ledger_key_hash(engine_pepper(house.engine), second.ledger.space, second.ledger.workflow, second.ledger.key, second.ledger.h);
    bool answered = false;
    void (*done)(struct engine_command *) = NULL;
    run(&house, &second, VERDICT_PROCEED); /* fills in what a command needs */
    done = second.done;
    say(&house, OP_RELEASE, &second, VERDICT_DONE);
    ledger_key_hash(engine_pepper(house.engine), first.ledger.space, first.ledger.workflow, first.ledger.key, first.ledger.h);
    first.arena = second.arena = &house.arena;
    first.user = second.user = &answered;
    first.done = second.done = done;
    first.next = &second;
    second.next = NULL;
    engine_step(house.engine, &first);
    CHECK_INT(first.answer.verdict, VERDICT_PROCEED);
    CHECK_INT(second.answer.verdict, VERDICT_IN_PROGRESS);
    waits_for(&second, &first);
    house_close(&house);
}

TEST_BOTH(an_answer_that_nobody_works_on_blocks_nothing)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = answer("thr_1:1:reply"), second = answer("thr_1:2:reply"), late = answer("thr_1:1:reply");
    first.ledger.two_phase = true;
    run(&house, &first, VERDICT_PROCEED);
    house_advance(&house, LEASE_OVER);
    engine_step(house.engine, NULL);
    CHECK_INT(house_intent(&house, first.answer.intent).state, STATE_PENDING);
    run(&house, &second, VERDICT_PROCEED);
    run(&house, &late, VERDICT_IN_PROGRESS); /* and waits now in its turn */
    waits_for(&late, &second);
    say(&house, OP_CONFIRM, &second, VERDICT_DONE);
    run(&house, &late, VERDICT_PROCEED);
    CHECK_INT(late.answer.intent, first.answer.intent);
    house_close(&house);
}

TEST_BOTH(an_unknown_answer_blocks_until_somebody_settles_it)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = answer("thr_1:1:reply"), second = answer("thr_1:2:reply");
    run(&house, &first, VERDICT_PROCEED);
    house_advance(&house, LEASE_OVER);
    engine_step(house.engine, NULL);
    run(&house, &second, VERDICT_OUTCOME_UNKNOWN);
    waits_for(&second, &first);
    say(&house, OP_CONFIRM, &first, VERDICT_DONE);
    run(&house, &second, VERDICT_PROCEED);
    house_close(&house);
}

TEST_BOTH(an_unknown_answer_that_is_to_be_skipped_blocks_nothing)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = answer("thr_1:1:reply"), second = answer("thr_1:2:reply");
    first.ledger.on_unknown = ON_UNKNOWN_SKIP;
    run(&house, &first, VERDICT_PROCEED);
    say(&house, OP_FAIL, &first, VERDICT_DONE);
    CHECK_INT(house_intent(&house, first.answer.intent).state, STATE_UNKNOWN);
    run(&house, &second, VERDICT_PROCEED);
    house_close(&house);
}

static void note_done(struct engine_command *command)
{
    *(bool *)command->user = true;
}

static enum status write_outbox(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct row_outbox row = {.intent = command->answer.intent,
                             .space = command->ledger.space,
                             .destination = BYTES("mail"),
                             .created = ledger->now.wall_us};
    return store_run(store, &OUTBOX_ADD, &row, 1, NULL, NULL, NULL, why);
}

TEST_BOTH(what_is_queued_is_open_until_it_is_settled)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = answer("thr_1:1:reply"), second = answer("thr_1:2:reply"), other = answer("thr_1:3:reply");
    first.ledger.op = second.ledger.op = OP_SUBMIT;
    first.also = second.also = write_outbox;
    run(&house, &first, VERDICT_PROCEED);
    CHECK_INT(first.answer.state, STATE_PENDING);
    run(&house, &second, VERDICT_IN_PROGRESS);
    waits_for(&second, &first);
    CHECK(second.answer.lease_left_us > 0);
    run(&house, &other, VERDICT_IN_PROGRESS);
    waits_for(&other, &first);
    struct engine_command take = house_say(OP_TAKE, &first);
    take.ledger.lease_us = HOUSE_LEASE_US;
    take.ledger.attempts_max = 10;
    run(&house, &take, VERDICT_PROCEED);
    run(&house, &second, VERDICT_IN_PROGRESS);
    say(&house, OP_CONFIRM, &take, VERDICT_DONE);
    run(&house, &second, VERDICT_PROCEED);
    house_close(&house);
}

/* Its call failed and will be tried again: in the batch that says so it is as open as before and after. */
TEST_BOTH(what_is_queued_stays_open_when_its_call_fails)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = answer("thr_1:1:reply"), second = answer("thr_1:2:reply");
    first.ledger.op = OP_SUBMIT;
    first.also = write_outbox;
    run(&house, &first, VERDICT_PROCEED);
    struct engine_command take = house_say(OP_TAKE, &first);
    take.ledger.lease_us = HOUSE_LEASE_US;
    take.ledger.attempts_max = 10;
    run(&house, &take, VERDICT_PROCEED);
    struct engine_command fail = house_say(OP_FAIL, &take);
    fail.arena = second.arena = &house.arena;
    fail.done = second.done = note_done;
    bool answered = false;
    fail.user = second.user = &answered;
    fail.next = &second;
    ledger_key_hash(engine_pepper(house.engine), second.ledger.space, second.ledger.workflow, second.ledger.key, second.ledger.h);
    engine_step(house.engine, &fail);
    CHECK_INT(fail.answer.verdict, VERDICT_DONE);
    CHECK_INT(fail.answer.state, STATE_PENDING);
    CHECK_INT(second.answer.verdict, VERDICT_IN_PROGRESS);
    waits_for(&second, &first);
    house_close(&house);
}

TEST_BOTH(shadow_mode_does_not_wait_and_says_that_it_would)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = answer("thr_1:1:reply"), second = answer("thr_1:2:reply");
    first.ledger.shadow = second.ledger.shadow = true;
    run(&house, &first, VERDICT_PROCEED);
    run(&house, &second, VERDICT_PROCEED);
    CHECK(second.answer.shadow);
    CHECK_INT(second.answer.would, VERDICT_IN_PROGRESS);
    CHECK_INT(second.answer.fence, 1);
    house_close(&house);
}

TEST_BOTH(one_that_waits_for_its_turn_begins_when_it_comes)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = answer("thr_1:1:reply"), second = answer("thr_1:2:reply");
    bool answered = false;
    run(&house, &first, VERDICT_PROCEED);
    ledger_key_hash(engine_pepper(house.engine), second.ledger.space, second.ledger.workflow, second.ledger.key, second.ledger.h);
    second.wait_us = 60 * WHEN_SECOND;
    second.arena = &house.arena;
    second.user = &answered;
    second.done = note_done;
    engine_step(house.engine, &second);
    CHECK(!answered);
    say(&house, OP_CONFIRM, &first, VERDICT_DONE);
    CHECK(answered);
    CHECK_INT(second.answer.verdict, VERDICT_PROCEED);
    house_close(&house);
}
