#include "base/when.h"

#include "check.h"

static bool reads(const char *text, int64_t want_us)
{
    int64_t time_us = want_us + 1;
    return when_parse(bytes_of(text), &time_us) && time_us == want_us;
}

static bool writes(int64_t time_us, const char *want)
{
    char text[32];
    return when_format(time_us, text) == strlen(want) && strcmp(text, want) == 0;
}

TEST(when_format_is_utc_with_milliseconds)
{
    CHECK(writes(0, "1970-01-01T00:00:00.000Z"));
    CHECK(writes(INT64_C(1794784952123456), "2026-11-15T23:22:32.123Z"));
    CHECK(writes(-1, "1969-12-31T23:59:59.999Z"));
    CHECK(writes(INT64_C(951782400000000), "2000-02-29T00:00:00.000Z"));
    CHECK(writes(INT64_C(-62135596800000000), "0001-01-01T00:00:00.000Z"));
}

TEST(when_format_mail_is_as_mail_has_it)
{
    char text[40];
    when_format_mail(INT64_C(1794784952123456), text);
    CHECK_TEXT(bytes_of(text), "Sun, 15 Nov 2026 23:22:32 +0000");
    when_format_mail(-1, text);
    CHECK_TEXT(bytes_of(text), "Wed, 31 Dec 1969 23:59:59 +0000");
}

TEST(when_format_stays_within_four_digit_years)
{
    CHECK(writes(INT64_MAX, "9999-12-31T23:59:59.999Z"));
    CHECK(writes(INT64_MIN, "0000-01-01T00:00:00.000Z"));
}

TEST(when_every_day_of_ten_thousand_years_reads_back)
{
    for (int64_t day = -719528; day <= 2932896; day++) {
        char text[32];
        int64_t back = 0, time_us = day * WHEN_DAY + 3723 * WHEN_SECOND + 45 * WHEN_MS;
        CHECK_INT(when_format(time_us, text), 24);
        CHECK(when_parse(bytes_of(text), &back));
        CHECK_INT(back, time_us);
    }
}

TEST(when_parse_reads_rfc_3339_dates_and_epochs)
{
    CHECK(reads("1970-01-01", 0));
    CHECK(reads("1970-01-01T00:00:00Z", 0));
    CHECK(reads("1970-01-01t00:00:00z", 0));
    CHECK(reads("1970-01-01 01:00:00+01:00", 0));
    CHECK(reads("1969-12-31T18:30:00-05:30", 0));
    CHECK(reads("1970-01-01T00:00:00.5Z", 500000));
    CHECK(reads("1970-01-01T00:00:00.1234569Z", 123456));
    CHECK(reads("1990-12-31T23:59:60Z", INT64_C(662688000000000)));
    CHECK(reads("1990-12-31T15:59:60-08:00", INT64_C(662688000000000)));
    CHECK(reads("2024-02-29", INT64_C(1709164800000000)));
    CHECK(reads("1794784952", INT64_C(1794784952000000)));
    CHECK(reads("1794784952123", INT64_C(1794784952123000)));
}

TEST(when_parse_refuses_what_is_no_time)
{
    static const char *const bad[] = {"",
                                      "now",
                                      "2023-02-29",
                                      "1900-02-29",
                                      "2024-13-01",
                                      "2024-00-01",
                                      "2024-01-00",
                                      "2024-04-31",
                                      "2024-1-1",
                                      "24-01-01",
                                      "2024-01-01T",
                                      "2024-01-01T00:00",
                                      "2024-01-01T00:00:00",
                                      "2024-01-01T24:00:00Z",
                                      "2024-01-01T00:60:00Z",
                                      "2024-01-01T00:00:61Z",
                                      "2024-01-01T12:00:60Z",
                                      "2024-01-01T00:00:00.Z",
                                      "2024-01-01T00:00:00,5Z",
                                      "2024-01-01T00:00:00+0100",
                                      "2024-01-01T00:00:00+24:00",
                                      "2024-01-01T00:00:00+01:60",
                                      "2024-01-01T00:00:00Zx",
                                      "2024-01-01T00:00:00Z ",
                                      " 2024-01-01",
                                      "123456789",
                                      "12345678901",
                                      "-123456789",
                                      "99999999999999",
                                      NULL};
    for (size_t i = 0; bad[i] != NULL; i++) {
        int64_t time_us = 7;
        CHECK(!when_parse(bytes_of(bad[i]), &time_us));
        CHECK_INT(time_us, 7);
    }
}

static bool lasts(const char *text, int64_t want_us)
{
    int64_t duration_us = want_us + 1;
    return when_parse_duration(bytes_of(text), &duration_us) && duration_us == want_us;
}

TEST(when_durations_are_read_as_people_write_them)
{
    CHECK(lasts("90s", 90 * WHEN_SECOND));
    CHECK(lasts("15m", 15 * WHEN_MINUTE));
    CHECK(lasts("24h", WHEN_DAY));
    CHECK(lasts("30d", 30 * WHEN_DAY));
    CHECK(lasts("2w", 14 * WHEN_DAY));
    CHECK(lasts("500ms", 500 * WHEN_MS));
    CHECK(lasts("1h30m", 90 * WHEN_MINUTE));
    CHECK(lasts("1w1d1h1m1s1ms", 8 * WHEN_DAY + WHEN_HOUR + WHEN_MINUTE + WHEN_SECOND + WHEN_MS));
    CHECK(lasts("0s", 0));
}

TEST(when_durations_without_unit_with_sign_out_of_order_or_too_long_are_refused)
{
    static const char *const bad[] = {"",
                                      "5",
                                      "s",
                                      "-5s",
                                      "+5s",
                                      "5 s",
                                      "5S",
                                      "5M",
                                      "1.5h",
                                      "30m1h",
                                      "1h1h",
                                      "1h30",
                                      "1hour",
                                      "1y",
                                      "5us",
                                      "05s",
                                      " 5s",
                                      "5s ",
                                      "5sm",
                                      "99999999999999w",
                                      "9223372036854775807d",
                                      NULL};
    for (size_t i = 0; bad[i] != NULL; i++) {
        int64_t duration_us = 7;
        CHECK(!when_parse_duration(bytes_of(bad[i]), &duration_us));
        CHECK_INT(duration_us, 7);
    }
}

static bool writes_duration(int64_t duration_us, const char *want)
{
    char text[32];
    return when_format_duration(duration_us, text) == strlen(want) && strcmp(text, want) == 0;
}

TEST(when_durations_are_written_short_and_read_back)
{
    CHECK(writes_duration(30 * WHEN_DAY, "30d"));
    CHECK(writes_duration(90 * WHEN_MINUTE, "1h30m"));
    CHECK(writes_duration(250 * WHEN_MS, "250ms"));
    CHECK(writes_duration(0, "0s"));
    CHECK(writes_duration(-5, "0s"));
    for (int64_t duration_us = 1000; duration_us < INT64_MAX / 3; duration_us = duration_us * 3 / 1000 * 1000) {
        char text[32];
        size_t len = when_format_duration(duration_us, text);
        CHECK(lasts(text, duration_us));
        CHECK(len < 32);
    }
    char text[32];
    CHECK(when_format_duration(INT64_MAX, text) < 32);
}

static bool roughly(int64_t duration_us, const char *want)
{
    char text[32];
    return when_format_rough(duration_us, text) == strlen(want) && strcmp(text, want) == 0;
}

TEST(when_rough_durations_use_one_unit)
{
    CHECK(roughly(12 * WHEN_SECOND, "12 s"));
    CHECK(roughly(40 * WHEN_MINUTE, "40 min"));
    CHECK(roughly(3 * WHEN_HOUR + 5, "3 h"));
    CHECK(roughly(47 * WHEN_HOUR, "47 h"));
    CHECK(roughly(9 * WHEN_DAY, "9 days"));
    CHECK(roughly(-1, "0 s"));
    CHECK(roughly(INT64_MAX, "106751991 days"));
}

TEST(dates_of_http_and_mail_are_read)
{
    static const char *const bad[] = {"",
                                      "Sun, 06 Nov 1994 08:49:37",
                                      "Sun, 06 Nov 1994 08:49:37 UTC",
                                      "Sun, 31 Feb 1994 08:49:37 GMT",
                                      "Sun, 06 Nov 1994 24:49:37 GMT",
                                      "Sunday, 06-Nov-94 08:49:37 GMT",
                                      "Sun, 06 Nov 1994 08:49:37 GMT ",
                                      "Sun, 00 Nov 1994 08:49:37 GMT"};
    int64_t time_us = 0;
    CHECK(when_parse_http(BYTES("Sun, 06 Nov 1994 08:49:37 GMT"), &time_us));
    CHECK_INT(time_us, 784111777 * WHEN_SECOND);
    CHECK(when_parse_http(BYTES("Fri, 24 May 2019 17:18:27 +0000"), &time_us));
    CHECK_INT(time_us, 1558718307 * WHEN_SECOND);
    CHECK(when_parse_http(BYTES("Fri, 24 May 2019 19:18:27 +0200"), &time_us));
    CHECK_INT(time_us, 1558718307 * WHEN_SECOND);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!when_parse_http(bytes_of(bad[i]), &time_us));
    CHECK_INT(time_us, 1558718307 * WHEN_SECOND);
}
