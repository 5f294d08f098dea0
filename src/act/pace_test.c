#include "act/pace.h"

#include "check.h"

TEST(no_more_calls_at_a_time_than_allowed)
{
    struct destination destination = {.concurrency = 2};
    struct pace pace = {0};
    int64_t at_us;
    CHECK_INT(pace_free(&pace, &destination, 1000, &at_us), 2);
    pace_begin(&pace, &destination);
    pace_begin(&pace, &destination);
    CHECK_INT(pace_free(&pace, &destination, 1000, &at_us), 0);
    CHECK_INT(at_us, INT64_MAX);
    pace_end(&pace, false, 1000);
    CHECK_INT(pace_free(&pace, &destination, 1000, &at_us), 1);
}

TEST(a_rate_is_kept_over_any_stretch)
{
    struct destination destination = {.concurrency = 100, .rate = {.calls = 10, .per_us = 1000000, .burst = 3}};
    struct pace pace = {0};
    int64_t at_us, started = 0;
    for (int64_t now = 1; now <= 10000000; now += 1000) {
        while (pace_free(&pace, &destination, now, &at_us) > 0) {
            pace_begin(&pace, &destination);
            pace_end(&pace, false, now);
            started++;
        }
        CHECK(at_us > now);
    }
    CHECK(started >= 100 && started <= 103);
}

TEST(a_destination_that_keeps_failing_is_left_alone_and_tried_with_one_call)
{
    struct destination destination = {.concurrency = 50};
    struct pace pace = {0};
    int64_t at_us, now = 1;
    for (int i = 0; i < PACE_FAILURES_MAX; i++) {
        CHECK(pace_free(&pace, &destination, now, &at_us) > 0);
        pace_begin(&pace, &destination);
        pace_end(&pace, true, now);
    }
    CHECK(pace_is_open(&pace, now));
    CHECK_INT(pace_free(&pace, &destination, now, &at_us), 0);
    CHECK_INT(at_us, now + PACE_OPEN_FIRST_US);
    now = at_us;
    CHECK_INT(pace_free(&pace, &destination, now, &at_us), 1);
    pace_begin(&pace, &destination);
    CHECK_INT(pace_free(&pace, &destination, now, &at_us), 0);
    pace_end(&pace, true, now);
    CHECK_INT(pace_free(&pace, &destination, now, &at_us), 0);
    CHECK_INT(at_us, now + 2 * PACE_OPEN_FIRST_US);
    now = at_us;
    CHECK_INT(pace_free(&pace, &destination, now, &at_us), 1);
    pace_begin(&pace, &destination);
    pace_end(&pace, false, now);
    CHECK_INT(pace_free(&pace, &destination, now, &at_us), 50);
}

TEST(the_breaker_never_stays_open_longer_than_its_limit)
{
    struct destination destination = {.concurrency = 1};
    struct pace pace = {0};
    int64_t now = 1;
    for (int i = 0; i < 200; i++) {
        pace_begin(&pace, &destination);
        pace_end(&pace, true, now);
        CHECK(pace.open_until_us <= now + PACE_OPEN_MAX_US);
        now = pace.open_until_us > now ? pace.open_until_us : now;
    }
}
