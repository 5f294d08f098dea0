/* Times and durations as text and back; the calendar is compared with the C library's. */
#include "fuzz.h"

#include <time.h>

#include "base/when.h"

#define FIRST_US (INT64_C(-62167219200) * WHEN_SECOND) /* 0000-01-01 */
#define LAST_US (INT64_C(253402300800) * WHEN_SECOND)  /* 10000-01-01, the first that has no text */

static int64_t floor_to(int64_t n, int64_t unit)
{
    int64_t rest = n % unit;
    return n - (rest < 0 ? rest + unit : rest);
}

static bool has_text(int64_t time_us)
{
    return time_us >= FIRST_US && time_us < LAST_US;
}

static void check_calendar(int64_t time_us, const char *text)
{
    int64_t ms = floor_to(time_us, WHEN_MS) / WHEN_MS, second = floor_to(ms, 1000) / 1000;
    time_t seconds = (time_t)second;
    struct tm tm;
    char wanted[64], fraction[24];
    ASSERT(gmtime_r(&seconds, &tm) != NULL);
    snprintf(fraction, sizeof fraction, ".%03dZ", (int)(ms - second * 1000));
    int len = snprintf(wanted, sizeof wanted, "%04d-%02d-%02dT%02d:%02d:%02d%s", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
                       tm.tm_hour, tm.tm_min, tm.tm_sec, fraction);
    ASSERT(len == 24);
    ASSERT(strcmp(wanted, text) == 0);
}

static void check_time(int64_t time_us)
{
    char text[32];
    int64_t again = 0;
    size_t len = when_format(time_us, text);
    ASSERT(len == strlen(text));
    ASSERT(when_parse((struct bytes){text, len}, &again));
    if (!has_text(time_us))
        return;
    ASSERT(again == floor_to(time_us, WHEN_MS));
    check_calendar(time_us, text);
}

/* Durations are whole milliseconds, so none is lost on the way. */
static void check_duration(int64_t duration_us)
{
    char text[32], rough[32];
    int64_t again = -1;
    size_t len = when_format_duration(duration_us, text);
    ASSERT(len == strlen(text));
    ASSERT(when_parse_duration((struct bytes){text, len}, &again));
    ASSERT(again == duration_us - duration_us % WHEN_MS);
    ASSERT(when_format_rough(duration_us, rough) == strlen(rough));
}

FUZZ_TARGET(when)(const uint8_t *data, size_t size)
{
    struct bytes in = fuzz_bytes(data, size), rest = in;
    int64_t time_us = INT64_MIN, duration_us = -1;
    if (when_parse(in, &time_us))
        check_time(time_us);
    else
        ASSERT(time_us == INT64_MIN);
    if (when_parse_duration(in, &duration_us)) {
        ASSERT(duration_us >= 0);
        ASSERT(duration_us % WHEN_MS == 0);
        check_duration(duration_us);
    }
    int64_t number = (int64_t)fuzz_u64(&rest);
    check_time(number);
    check_time(number % LAST_US);
    check_duration((int64_t)((uint64_t)number >> 1));
    return 0;
}
