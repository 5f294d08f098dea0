#include "act/ladder.h"

#include "base/when.h"
#include "check.h"

static const struct effect_view fresh = {.state = STATE_PENDING,
                                         .tries_max = 5,
                                         .probes_max = 3,
                                         .quiet_us = 50 * WHEN_SECOND,
                                         .settle_us = 10 * WHEN_SECOND,
                                         .wall_us = 1000 * WHEN_SECOND,
                                         .run_us = 100 * WHEN_SECOND};

TEST(what_is_due_is_delivered_until_its_attempts_or_its_time_are_over)
{
    struct effect_view view = fresh;
    CHECK_INT(ladder_next(&view).move, LADDER_DELIVER);
    view.tries = 4;
    CHECK_INT(ladder_next(&view).move, LADDER_DELIVER);
    view.tries = 5;
    CHECK_INT(ladder_next(&view).move, LADDER_DEAD);
    view = fresh;
    view.deadline_us = view.wall_us + 1;
    CHECK_INT(ladder_next(&view).move, LADDER_DELIVER);
    view.deadline_us = view.wall_us;
    CHECK_INT(ladder_next(&view).move, LADDER_DEAD);
}

TEST(giving_up_after_an_attempt_that_may_have_happened_is_not_a_dead_letter)
{
    struct effect_view view = fresh;
    view.ambiguous = true;
    view.tries = 5;
    CHECK_INT(ladder_next(&view).move, LADDER_GIVE_UP);
}

TEST(what_is_stranded_when_its_time_is_over_is_a_persons)
{
    struct effect_view view = fresh;
    view.stranded = true;
    CHECK_INT(ladder_next(&view).move, LADDER_DEAD);
    view.ambiguous = true;
    CHECK_INT(ladder_next(&view).move, LADDER_GIVE_UP);
    view.attended = true;
    CHECK_INT(ladder_next(&view).move, LADDER_GIVE_UP);
    view.ambiguous = false;
    CHECK_INT(ladder_next(&view).move, LADDER_WAIT);
    view.state = STATE_UNKNOWN;
    CHECK_INT(ladder_next(&view).move, LADDER_PERSON);
}

TEST(what_a_caller_attends_to_is_never_sent_by_itself)
{
    struct effect_view view = fresh;
    view.attended = true;
    CHECK_INT(ladder_next(&view).move, LADDER_WAIT);
    CHECK_INT(ladder_next(&view).at_us, OUTBOX_NEVER);
    view.tries = 9;
    CHECK_INT(ladder_next(&view).move, LADDER_WAIT);
}

TEST(a_caller_may_come_back_to_what_may_have_happened_as_long_as_that_is_harmless)
{
    struct effect_view view = fresh;
    view.attended = true;
    view.ambiguous = true;
    view.caller_us = 1;
    view.tries = 9;
    CHECK_INT(ladder_next(&view).move, LADDER_WAIT);
    CHECK_INT(ladder_next(&view).at_us, view.wall_us + 1);
    view.caller_us = 0;
    CHECK_INT(ladder_next(&view).move, LADDER_GIVE_UP);
    view.ambiguous = false;
    CHECK_INT(ladder_next(&view).move, LADDER_WAIT);
    CHECK_INT(ladder_next(&view).at_us, OUTBOX_NEVER);
}

TEST(the_destination_is_asked_only_when_nothing_can_still_arrive)
{
    struct effect_view view = fresh;
    view.state = STATE_UNKNOWN;
    view.can_ask = true;
    view.run_us = view.quiet_us + view.settle_us - 1;
    CHECK_INT(ladder_next(&view).move, LADDER_WAIT);
    CHECK_INT(ladder_next(&view).at_us, view.wall_us + 1);
    view.run_us++;
    CHECK_INT(ladder_next(&view).move, LADDER_ASK);
    view.probes = 3;
    CHECK_INT(ladder_next(&view).move, LADDER_PERSON);
    view.probes = 0;
    view.can_ask = false;
    CHECK_INT(ladder_next(&view).move, LADDER_PERSON);
    view.skipped = true;
    view.run_us = view.quiet_us - 1;
    CHECK_INT(ladder_next(&view).move, LADDER_WAIT);
    view.run_us = view.quiet_us;
    CHECK_INT(ladder_next(&view).move, LADDER_CLOSE);
}

TEST(settled_and_held_ones_are_left_alone)
{
    struct effect_view view = fresh;
    view.state = STATE_CONFIRMED;
    CHECK_INT(ladder_next(&view).move, LADDER_CLOSE);
    view.state = STATE_REFUSED;
    CHECK_INT(ladder_next(&view).move, LADDER_CLOSE);
    view.state = STATE_SENT;
    CHECK_INT(ladder_next(&view).move, LADDER_WAIT);
    CHECK(ladder_next(&view).at_us > view.wall_us);
}

TEST(the_back_off_doubles_within_its_bounds_and_honours_what_was_asked)
{
    for (uint64_t chance = 0; chance < 5000; chance += 37) {
        int64_t first = ladder_backoff_us(1, 1000, 60000, -1, chance), third = ladder_backoff_us(3, 1000, 60000, -1, chance);
        CHECK(first >= 500 && first <= 1000);
        CHECK(third >= 2000 && third <= 4000);
        CHECK(ladder_backoff_us(60, 1000, 60000, -1, chance) <= 60000);
        CHECK_INT(ladder_backoff_us(1, 1000, 60000, 123456, chance), 123456);
    }
    CHECK_INT(ladder_backoff_us(1, 0, 0, -1, 7), 0);
}

TEST(an_outcome_becomes_what_the_ledger_is_told)
{
    static const struct {
        enum outcome outcome;
        bool attended, ambiguous, replays;
        struct ladder_verdict want;
    } table[] = {
        {OUTCOME_DONE, false, false, false, {.op = OP_CONFIRM}},
        {OUTCOME_DONE, true, false, true, {.op = OP_CONFIRM}},
        {OUTCOME_REFUSED, false, false, false, {.op = OP_FAIL, .dead = true}},
        {OUTCOME_REFUSED, false, false, true, {.op = OP_FAIL, .final = true, .dead = true}},
        {OUTCOME_REFUSED, true, false, true, {.op = OP_FAIL, .final = true}},
        {OUTCOME_REFUSED, true, false, false, {.op = OP_FAIL}},
        {OUTCOME_REFUSED, false, true, false, {.op = OP_FAIL, .final = true, .dead = true}},
        {OUTCOME_REFUSED, true, true, false, {.op = OP_FAIL}},
        {OUTCOME_RETRY, false, true, false, {.op = OP_FAIL}},
        {OUTCOME_RETRY, false, false, true, {.op = OP_FAIL}},
        {OUTCOME_UNKNOWN, false, false, true, {.op = OP_FAIL, .effect_unknown = true}},
        {OUTCOME_UNKNOWN, true, false, false, {.op = OP_FAIL, .effect_unknown = true}},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ladder_verdict got = ladder_judge(table[i].outcome, table[i].attended, table[i].ambiguous, table[i].replays);
        CHECK_INT(got.op, table[i].want.op);
        CHECK_INT(got.final, table[i].want.final);
        CHECK_INT(got.effect_unknown, table[i].want.effect_unknown);
        CHECK_INT(got.dead, table[i].want.dead);
    }
}
