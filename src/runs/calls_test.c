#include "runs/calls.h"

#include "base/when.h"
#include "check.h"
#include "house.h"

static struct calls_order order_of(const char *run, const char *actor, int64_t per_run, int64_t per_hour)
{
    return (struct calls_order){
        .name = {BYTES("main"), BYTES("s"), bytes_of(actor), bytes_of(run)}, .per_run = per_run, .per_hour = per_hour};
}

static bool take(struct house *house, struct calls_order order, int64_t wall_us)
{
    struct store *store = engine_store(house->engine);
    struct why why;
    CHECK(store_begin(store, &why) == OK);
    CHECK(calls_take(store, &order, wall_us, &why) == OK);
    CHECK(store_commit(store, &why) == OK);
    return !order.refused;
}

static int64_t number(struct house *house, const struct hash *content, int64_t repeat_us, int64_t wall_us)
{
    struct store *store = engine_store(house->engine);
    struct calls_order order = order_of("r", "a", 0, 0);
    struct why why;
    order.content = content;
    order.repeat_us = repeat_us;
    CHECK(store_begin(store, &why) == OK);
    CHECK(calls_take(store, &order, wall_us, &why) == OK);
    CHECK(store_commit(store, &why) == OK);
    CHECK(!order.refused);
    return order.number;
}

static void answered(struct house *house, const struct hash *content, int64_t of, int64_t wall_us)
{
    struct store *store = engine_store(house->engine);
    struct calls_order order = order_of("r", "a", 0, 0);
    struct why why;
    CHECK(store_begin(store, &why) == OK);
    CHECK(calls_answered(store, &order.name, content, of, wall_us, &why) == OK);
    CHECK(store_commit(store, &why) == OK);
}

TEST_BOTH(a_budget_ends_and_begins_anew_with_its_time)
{
    struct house house;
    const int64_t t = 1000 * WHEN_DAY;
    house_open(&house, storage);
    for (int i = 0; i < 3; i++)
        CHECK(take(&house, order_of("r", "a", 0, 3), t + i));
    CHECK(!take(&house, order_of("other", "a", 0, 3), t + WHEN_HOUR - 1)); /* an hour is the token's, whichever run it is */
    CHECK(take(&house, order_of("r", "b", 0, 3), t));
    CHECK(take(&house, order_of("r", "a", 0, 3), t + WHEN_HOUR));
    for (int i = 0; i < 2; i++)
        CHECK(take(&house, order_of("r", "c", 2, 0), t));
    CHECK(!take(&house, order_of("r", "c", 2, 0), t + 29 * WHEN_DAY)); /* a run has no hours */
    CHECK(take(&house, order_of("other", "c", 2, 0), t));
    house_close(&house);
}

TEST_BOTH(what_one_budget_refuses_is_not_taken_from_the_other)
{
    struct house house;
    const int64_t t = 1000 * WHEN_DAY;
    house_open(&house, storage);
    CHECK(take(&house, order_of("r", "a", 1, 3), t));
    for (int i = 0; i < 5; i++)
        CHECK(!take(&house, order_of("r", "a", 1, 3), t));
    CHECK(take(&house, order_of("s", "a", 1, 3), t));
    CHECK(take(&house, order_of("u", "a", 1, 3), t));
    CHECK(!take(&house, order_of("v", "a", 1, 3), t));            /* now the hour is over … */
    CHECK(take(&house, order_of("v", "a", 1, 3), t + WHEN_HOUR)); /* … and the run had not paid for it */
    house_close(&house);
}

TEST_BOTH(an_equal_call_is_a_new_one_only_after_its_answer)
{
    struct house house;
    const int64_t t = 1000 * WHEN_DAY;
    house_open(&house, storage);
    struct hash content = hash_sha256(BYTES("a")), other = hash_sha256(BYTES("b"));
    CHECK_INT(number(&house, &content, 10, t), 1);
    CHECK_INT(number(&house, &content, 10, t + 100), 1); /* under way: the same */
    answered(&house, &content, 1, t + 100);
    CHECK_INT(number(&house, &content, 10, t + 105), 1); /* too soon */
    CHECK_INT(number(&house, &content, 10, t + 110), 2);
    CHECK_INT(number(&house, &content, 10, t + 200), 2);
    answered(&house, &content, 1, t + 300); /* a late answer to an earlier one says nothing about this one */
    CHECK_INT(number(&house, &content, 10, t + 400), 2);
    CHECK_INT(number(&house, &other, 10, t + 400), 1);
    house_close(&house);
}

TEST_BOTH(names_that_nobody_uses_are_forgotten)
{
    struct house house;
    const int64_t t = 1000 * WHEN_DAY;
    house_open(&house, storage);
    struct hash content = hash_sha256(BYTES("a"));
    CHECK(take(&house, order_of("r", "a", 1, 0), t));
    CHECK_INT(number(&house, &content, 0, t), 1);
    answered(&house, &content, 1, t + 1);
    CHECK_INT(number(&house, &content, 0, t + 2), 2);
    CHECK(!take(&house, order_of("r", "a", 1, 0), t + 29 * WHEN_DAY));
    CHECK(take(&house, order_of("r", "a", 1, 0), t + 60 * WHEN_DAY));
    CHECK_INT(number(&house, &content, 0, t + 61 * WHEN_DAY), 1); /* replays instead of repeating */
    house_close(&house);
}
