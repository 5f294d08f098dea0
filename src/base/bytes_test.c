#include "base/bytes.h"

#include "check.h"

TEST(bytes_compare_as_memcmp_and_shorter_first)
{
    CHECK(bytes_cmp(BYTES("a"), BYTES("b")) < 0);
    CHECK(bytes_cmp(BYTES("ab"), BYTES("a")) > 0);
    CHECK(bytes_cmp(BYTES(""), BYTES("a")) < 0);
    CHECK(bytes_cmp(BYTES("\xff"), BYTES("a")) > 0);
    CHECK_INT(bytes_cmp(BYTES_NONE, BYTES("")), 0);
}

TEST(bytes_nocase_folds_ascii_and_nothing_else)
{
    CHECK(bytes_eq_nocase(BYTES("Content-TYPE"), BYTES("content-type")));
    CHECK(!bytes_eq_nocase(BYTES("\xc3\x84"), BYTES("\xc3\xa4")));
    CHECK(!bytes_eq_nocase(BYTES("@"), BYTES("`")));
    CHECK(!bytes_eq_nocase(BYTES("ab"), BYTES("abc")));
}

TEST(bytes_cut_gives_each_part_once_and_then_nothing)
{
    struct bytes rest = BYTES("a,,b");
    CHECK_TEXT(bytes_cut(&rest, ','), "a");
    CHECK_TEXT(bytes_cut(&rest, ','), "");
    CHECK_TEXT(bytes_cut(&rest, ','), "b");
    CHECK_INT(rest.len, 0);
    CHECK_TEXT(bytes_cut(&rest, ','), "");
    struct bytes none = BYTES_NONE;
    CHECK(bytes_cut(&none, ',').at == NULL);
}

TEST(bytes_trim_takes_spaces_and_tabs_from_both_ends_only)
{
    CHECK_TEXT(bytes_trim(BYTES(" \t a b\t ")), "a b");
    CHECK_TEXT(bytes_trim(BYTES(" \t ")), "");
    CHECK_TEXT(bytes_trim(BYTES("\na")), "\na");
}

TEST(bytes_absent_input_stays_absent)
{
    CHECK(bytes_from(BYTES_NONE, 3).at == NULL);
    CHECK(bytes_trim(BYTES_NONE).at == NULL);
    CHECK(bytes_starts(BYTES_NONE, BYTES("")));
    CHECK(!bytes_starts(BYTES_NONE, BYTES("a")));
}

static bool reads_u64(const char *text, uint64_t want)
{
    uint64_t n = want + 1;
    return bytes_to_u64(bytes_of(text), &n) && n == want;
}

static bool reads_i64(const char *text, int64_t want)
{
    int64_t n = want == 0;
    return bytes_to_i64(bytes_of(text), &n) && n == want;
}

TEST(bytes_to_number_reads_the_whole_range)
{
    CHECK(reads_u64("0", 0));
    CHECK(reads_u64("18446744073709551615", UINT64_MAX));
    CHECK(reads_i64("-0", 0));
    CHECK(reads_i64("9223372036854775807", INT64_MAX));
    CHECK(reads_i64("-9223372036854775808", INT64_MIN));
}

TEST(bytes_to_number_refuses_everything_else_and_leaves_the_result_alone)
{
    static const char *const bad[] = {
        "", "-", "+1", "01", "00", " 1", "1 ", "1.0", "1e2", "--1", "-01", "18446744073709551616", "0x1", "1_0", "/", ":", NULL};
    for (size_t i = 0; bad[i] != NULL; i++) {
        uint64_t u = 7;
        int64_t n = 7;
        CHECK(!bytes_to_u64(bytes_of(bad[i]), &u));
        CHECK(!bytes_to_i64(bytes_of(bad[i]), &n));
        CHECK_INT(u, 7);
        CHECK_INT(n, 7);
    }
    int64_t n = 7;
    CHECK(!bytes_to_i64(BYTES("9223372036854775808"), &n));
    CHECK(!bytes_to_i64(BYTES("-9223372036854775809"), &n));
    CHECK(!bytes_to_i64(BYTES("1\0"), &n));
    CHECK_INT(n, 7);
}

TEST(bytes_is_utf8_accepts_the_edges_of_every_length)
{
    CHECK(bytes_is_utf8(BYTES("")));
    CHECK(bytes_is_utf8(BYTES("a\0\x7f")));
    CHECK(bytes_is_utf8(BYTES("\xc2\x80\xdf\xbf")));
    CHECK(bytes_is_utf8(BYTES("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf")));
    CHECK(bytes_is_utf8(BYTES("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf")));
}

TEST(bytes_is_utf8_refuses_overlong_surrogate_truncated_and_too_great)
{
    static const char *const bad[] = {"\x80",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xc2",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xed\xbf\xbf",
                                      "\xe2\x82",
                                      "\xe2\x28\xa1",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xf0\x9f\x98",
                                      "\xff",
                                      NULL};
    for (size_t i = 0; bad[i] != NULL; i++)
        CHECK(!bytes_is_utf8(bytes_of(bad[i])));
}

TEST(bytes_utf8_char_round_trips_every_code_point)
{
    uint32_t valid = 0;
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        char text[4] = {(char)(0xF0 | code >> 18), (char)(0x80 | (code >> 12 & 63)), (char)(0x80 | (code >> 6 & 63)),
                        (char)(0x80 | (code & 63))};
        struct bytes encoded = {text, 4};
        if (code < 0x10000) {
            encoded = (struct bytes){text + 1, 3};
            text[1] = (char)(0xE0 | code >> 12);
        }
        if (code < 0x800) {
            encoded = (struct bytes){text + 2, 2};
            text[2] = (char)(0xC0 | code >> 6);
        }
        if (code < 0x80) {
            encoded = (struct bytes){text + 3, 1};
            text[3] = (char)code;
        }
        uint32_t decoded = 0;
        if (bytes_utf8_char(encoded, &decoded) == encoded.len && decoded == code)
            valid++;
    }
    CHECK_INT(valid, 0x110000 - 0x800);
}

TEST(bytes_to_hex_is_lower_case)
{
    char hex[6];
    bytes_to_hex(BYTES("\x00\xaf\x10"), hex);
    CHECK_TEXT(((struct bytes){hex, 6}), "00af10");
}
