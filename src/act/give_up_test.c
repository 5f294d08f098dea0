/* A lost call whose caller does not come back is given up. Here the caller comes back at that very moment: in every order of the
 * two, either the caller gets the call or there is a card, and a decision on what was seen before does nothing to what is there. */
#include "act/act.h"

#include "base/when.h"
#include "check.h"
#include "house.h"

static struct engine_command call_of(const char *key)
{
    struct engine_command claim = house_claim(key);
    claim.ledger.capability = CAPABILITY_IDEMPOTENT;
    claim.ledger.lease_us = WHEN_HOUR; /* none ends by itself here, however slow the machine is */
    return claim;
}

static void run(struct house *house, struct engine_command *command, enum ledger_verdict want)
{
    house_run(house, command);
    CHECK_INT(command->status, OK);
    CHECK_INT(command->answer.verdict, want);
}

static void lose(struct house *house, const struct engine_command *call)
{
    struct engine_command lost = house_say(OP_FAIL, call);
    lost.ledger.effect_unknown = true;
    run(house, &lost, VERDICT_DONE);
    CHECK_INT(lost.answer.state, STATE_PENDING);
}

/* What the delivery has decided about `seen`. */
static struct engine_command give_up(const struct engine_command *seen)
{
    struct engine_command command = house_say(OP_TAKE, seen);
    command.ledger.give_up = true;
    command.ledger.capability = CAPABILITY_IDEMPOTENT;
    command.ledger.window_us = WHEN_DAY;
    return command;
}

static enum status count_card(void *ctx, const void *row, struct why *why)
{
    (void)row, (void)why;
    ++*(int *)ctx;
    return OK;
}

static void check_stands(struct house *house, const struct engine_command *call, enum intent_state state, int cards)
{
    int found = 0;
    struct why why;
    struct q_exception_open_of find = {call->answer.intent, 0, 0, EXCEPTION_UNKNOWN_OUTCOME};
    CHECK_INT(store_run(engine_store(house->engine), &EXCEPTION_OPEN_OF, &find, 1, count_card, &found, NULL, &why), OK);
    CHECK_INT(found, cards);
    CHECK_INT(house_intent(house, call->answer.intent).state, state);
}

TEST_BOTH(a_caller_who_comes_back_first_has_the_call_and_there_is_no_card)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = call_of("k"), back = call_of("k");
    run(&house, &first, VERDICT_PROCEED);
    lose(&house, &first);
    struct engine_command seen_first = give_up(&first);
    run(&house, &back, VERDICT_PROCEED);
    run(&house, &seen_first, VERDICT_IN_PROGRESS);
    check_stands(&house, &back, STATE_SENT, 0);
    lose(&house, &back);
    run(&house, &seen_first, VERDICT_IN_PROGRESS); /* it was decided without the one who came back */
    check_stands(&house, &back, STATE_PENDING, 0);
    struct engine_command seen_back = give_up(&back);
    run(&house, &seen_back, VERDICT_OUTCOME_UNKNOWN);
    check_stands(&house, &back, STATE_UNKNOWN, 1);
    house_close(&house);
}

TEST_BOTH(a_caller_who_comes_back_after_giving_up_does_not_get_the_call)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = call_of("k"), back = call_of("k");
    run(&house, &first, VERDICT_PROCEED);
    lose(&house, &first);
    struct engine_command given_up = give_up(&first);
    run(&house, &given_up, VERDICT_OUTCOME_UNKNOWN);
    run(&house, &back, VERDICT_OUTCOME_UNKNOWN);
    check_stands(&house, &first, STATE_UNKNOWN, 1);
    house_close(&house);
}

TEST_BOTH(what_is_proved_not_to_have_happened_is_not_given_up)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = call_of("k"), back = call_of("k");
    run(&house, &first, VERDICT_PROCEED);
    lose(&house, &first);
    struct engine_command seen = give_up(&first), again = give_up(&first);
    run(&house, &again, VERDICT_OUTCOME_UNKNOWN);
    struct engine_command absent = house_say(OP_FAIL, &first); /* another node asked the destination, or a person said so */
    absent.ledger.all_attempts = true;
    run(&house, &absent, VERDICT_DONE);
    run(&house, &seen, VERDICT_IN_PROGRESS);
    check_stands(&house, &first, STATE_PENDING, 0);
    run(&house, &back, VERDICT_PROCEED);
    house_close(&house);
}

TEST_BOTH(an_attempt_is_not_taken_by_one_who_has_looked_before_the_last)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = call_of("k"), back = call_of("k");
    run(&house, &first, VERDICT_PROCEED);
    struct engine_command none = house_say(OP_FAIL, &first), seen = house_say(OP_TAKE, &first);
    run(&house, &none, VERDICT_DONE);
    seen.ledger.lease_us = HOUSE_LEASE_US;
    seen.ledger.attempts_max = 2; /* one more, as it was looked at */
    run(&house, &back, VERDICT_PROCEED);
    struct engine_command none_either = house_say(OP_FAIL, &back);
    run(&house, &none_either, VERDICT_DONE);
    run(&house, &seen, VERDICT_IN_PROGRESS);
    check_stands(&house, &back, STATE_PENDING, 0); /* not refused for good with nobody told */
    house_close(&house);
}

/* ---- both in one batch ---- */

static void answered(struct engine_command *command)
{
    ++*(int *)command->user;
}

static void run_together(struct house *house, struct engine_command *one, struct engine_command *two)
{
    struct engine_command *both[] = {one, two};
    int count = 0;
    for (size_t i = 0; i < 2; i++) {
        struct ledger_command *ledger = &both[i]->ledger;
        if (ledger->op == OP_CLAIM)
            ledger_key_hash(engine_pepper(house->engine), ledger->space, ledger->workflow, ledger->key, ledger->h);
        both[i]->arena = &house->arena;
        both[i]->done = answered;
        both[i]->user = &count;
    }
    one->next = two;
    two->next = NULL;
    engine_step(house->engine, one);
    CHECK_INT(count, 2);
}

TEST_BOTH(in_one_batch_whoever_is_first_has_it)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command calls[] = {call_of("a"), call_of("b")}, backs[] = {call_of("a"), call_of("b")};
    for (size_t i = 0; i < 2; i++) {
        run(&house, &calls[i], VERDICT_PROCEED);
        lose(&house, &calls[i]);
    }
    struct engine_command given_up[] = {give_up(&calls[0]), give_up(&calls[1])};
    run_together(&house, &backs[0], &given_up[0]);
    CHECK_INT(backs[0].answer.verdict, VERDICT_PROCEED);
    CHECK_INT(given_up[0].answer.verdict, VERDICT_IN_PROGRESS);
    check_stands(&house, &calls[0], STATE_SENT, 0);
    run_together(&house, &given_up[1], &backs[1]);
    CHECK_INT(given_up[1].answer.verdict, VERDICT_OUTCOME_UNKNOWN);
    CHECK_INT(backs[1].answer.verdict, VERDICT_OUTCOME_UNKNOWN);
    check_stands(&house, &calls[1], STATE_UNKNOWN, 1);
    house_close(&house);
}
