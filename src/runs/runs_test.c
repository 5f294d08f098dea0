#include "runs/runs.h"

#include <stdio.h>

#include "check.h"

TEST(equal_rows_are_added_up_and_others_are_not)
{
    struct tally *tally = tally_new();
    struct row_run row = {.space = BYTES("main"),
                          .run = BYTES("r"),
                          .provider = BYTES("p"),
                          .model = BYTES("m"),
                          .executed = 1,
                          .input = 5,
                          .output = 2,
                          .priced = 1,
                          .spent = 7,
                          .first = 10,
                          .last = 10,
                          .expires = 20};
    CHECK(tally_add(tally, &row));
    row.first = row.last = 12;
    row.executed = row.input = row.output = 0;
    row.replayed = 1;
    row.saved_input = 5;
    CHECK(tally_add(tally, &row));
    CHECK_INT(tally->count, 1);
    CHECK_INT(tally->at[0].executed, 1);
    CHECK_INT(tally->at[0].replayed, 1);
    CHECK_INT(tally->at[0].input, 5);
    CHECK_INT(tally->at[0].saved_input, 5);
    CHECK_INT(tally->at[0].spent, 14);
    CHECK_INT(tally->at[0].first, 10);
    CHECK_INT(tally->at[0].last, 12);
    struct bytes *names[] = {&row.space, &row.run, &row.provider, &row.model};
    for (size_t i = 0; i < 4; i++) {
        struct bytes was = *names[i];
        *names[i] = BYTES("other");
        CHECK(tally_add(tally, &row));
        CHECK_INT(tally->count, i + 2);
        *names[i] = was;
    }
    tally_free(tally);
}

TEST(a_full_tally_says_so_and_still_counts_what_it_knows)
{
    struct tally *tally = tally_new();
    char name[16];
    for (int i = 0; i <= TALLY_MAX; i++) {
        int len = snprintf(name, sizeof name, "r%d", i);
        struct row_run row = {.space = BYTES("main"), .run = {name, (size_t)len}, .provider = BYTES("p"), .model = BYTES("")};
        CHECK_INT(tally_add(tally, &row), i < TALLY_MAX);
    }
    struct row_run known = {.space = BYTES("main"), .run = BYTES("r0"), .provider = BYTES("p"), .model = BYTES("")};
    CHECK(tally_add(tally, &known));
    tally_free(tally);
}

TEST(money_is_shown_with_the_decimals_that_matter)
{
    static const struct {
        int64_t pico;
        const char *text;
    } sums[] = {{0, "0"},
                {INT64_C(12500000000), "0.0125"},
                {INT64_C(1000000000000), "1"},
                {INT64_C(10000000000000), "10"},
                {499999, "0"},
                {500000, "0.000001"},
                {INT64_C(1999999500000), "2"}};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        char text[32];
        size_t len = runs_money(sums[i].pico, text);
        CHECK_TEXT(((struct bytes){text, len}), sums[i].text);
    }
}
