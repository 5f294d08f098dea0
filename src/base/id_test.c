#include "base/id.h"

#include "check.h"

#define NOW_US INT64_C(1794784952123456)

TEST(id_only_grows_also_when_the_clock_goes_back)
{
    struct id_source source;
    id_init(&source, 5, 0);
    int64_t last = 0;
    for (int64_t i = 0; i < 20000; i++) {
        int64_t id = id_next(&source, i % 3 == 0 ? NOW_US - i * 1000000 : NOW_US + i);
        CHECK(id > last);
        CHECK_INT(id >> 12 & 1023, 5);
        last = id;
    }
}

TEST(id_begins_above_the_floor)
{
    struct id_source source, again;
    id_init(&source, 1023, 0);
    int64_t floor = id_next(&source, NOW_US + 3600000000);
    id_init(&again, 1023, floor);
    CHECK(id_next(&again, NOW_US) > floor);
    CHECK(id_next(&again, INT64_MIN) > floor);
}

TEST(id_of_different_lanes_never_meet)
{
    struct id_source left, right;
    id_init(&left, 1, 0);
    id_init(&right, 2, 0);
    for (int i = 0; i < 9000; i++) {
        int64_t a = id_next(&left, NOW_US), b = id_next(&right, NOW_US);
        CHECK((a >> 12 & 1023) == 1 && (b >> 12 & 1023) == 2);
    }
}

TEST(id_holds_its_time)
{
    struct id_source source;
    id_init(&source, 0, 0);
    CHECK_INT(id_time_us(id_next(&source, NOW_US)), NOW_US / 1000 * 1000);
}

TEST(id_floor_parts_the_ids_of_before_and_after)
{
    struct id_source source;
    id_init(&source, 1023, 0);
    int64_t before = id_next(&source, NOW_US - 1000000), after = id_next(&source, NOW_US);
    CHECK(before < id_floor(NOW_US) && id_floor(NOW_US) <= after);
    CHECK_INT(id_floor(0), 0);
}

TEST(id_text_sorts_as_the_number_and_reads_back)
{
    static const int64_t ids[] = {0, 1, 31, 32, 4095, INT64_C(1) << 22, INT64_C(0x7654321076543210), INT64_MAX};
    char before[40] = "", text[40];
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        int64_t back = -1;
        CHECK_INT(id_format("int", ids[i], text), 17);
        CHECK_INT(strlen(text), 17);
        CHECK(strcmp(before, text) < 0);
        CHECK(id_parse("int", bytes_of(text), &back));
        CHECK_INT(back, ids[i]);
        memcpy(before, text, sizeof text);
    }
    CHECK_TEXT(bytes_of(text), "int_7zzzzzzzzzzzz");
}

TEST(id_parse_takes_the_exact_form_only)
{
    static const char *const bad[] = {"",
                                      "int",
                                      "int_",
                                      "int_000000000000",
                                      "int_00000000000000",
                                      "evt_0000000000000",
                                      "int-0000000000000",
                                      "int_000000000000A",
                                      "int_000000000000i",
                                      "int_000000000000l",
                                      "int_000000000000o",
                                      "int_000000000000u",
                                      "int_8000000000000",
                                      "int_zzzzzzzzzzzzz",
                                      " int_0000000000000",
                                      NULL};
    for (size_t i = 0; bad[i] != NULL; i++) {
        int64_t id = 7;
        CHECK(!id_parse("int", bytes_of(bad[i]), &id));
        CHECK_INT(id, 7);
    }
    int64_t id = 7;
    CHECK(!id_parse("int", BYTES("int_000000000000\0"), &id));
}
