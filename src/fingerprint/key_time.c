#include "fingerprint/key_time.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/when.h"
#include "fingerprint/civil.h"

/* 0001-01-01 and 10000-01-01: outside them a year has no four digits. */
#define TIME_MIN_US (INT64_C(-62135596800) * WHEN_SECOND)
#define TIME_END_US (INT64_C(253402300800) * WHEN_SECOND)

/* Numbers below are seconds (until the year 5138), then milliseconds (from 1973 until 5138), then neither. */
#define SECONDS_END INT64_C(100000000000)
#define MILLISECONDS_END (SECONDS_END * 1000)

static bool in_range(int64_t time_us)
{
    return time_us >= TIME_MIN_US && time_us < TIME_END_US;
}

static enum status out_of_range(struct why *why)
{
    return why_set(why, INVALID, "is outside the years 1 to 9999");
}

enum status key_time_at(int64_t utc_us, const struct zone *zone, struct key_time *ret_time, struct why *why)
{
    int64_t offset_us;
    if (!in_range(utc_us))
        return out_of_range(why);
    TRY(zone_offset(zone, utc_us, &offset_us, why));
    if (!in_range(utc_us + offset_us))
        return out_of_range(why);
    *ret_time = (struct key_time){utc_us, utc_us + offset_us};
    return OK;
}

/* Midnight that day on the wall clock. Asked twice, because the offset at the first guess may be that of the other side of a
 * clock change; a midnight that the clocks jumped over keeps its day all the same. */
static enum status time_at_date(int64_t midnight_us, const struct zone *zone, struct key_time *ret_time, struct why *why)
{
    int64_t guess_us, offset_us;
    if (!in_range(midnight_us))
        return out_of_range(why);
    TRY(zone_offset(zone, midnight_us, &guess_us, why));
    TRY(zone_offset(zone, midnight_us - guess_us, &offset_us, why));
    *ret_time = (struct key_time){midnight_us - offset_us, midnight_us};
    return OK;
}

static bool is_plain_date(struct bytes text)
{
    return text.len == 10 && text.at[4] == '-' && text.at[7] == '-';
}

static enum status not_a_time(struct why *why)
{
    return why_set(why, INVALID, "is not a time: send 2026-11-15T09:30:00Z, 2026-11-15, or epoch seconds or milliseconds");
}

/* Whole seconds or milliseconds, fractions rounded towards the past, from a canonical number. */
static bool epoch_us(struct bytes text, int64_t *ret_us)
{
    bool negative = bytes_starts(text, BYTES("-"));
    struct bytes rest = negative ? bytes_from(text, 1) : text;
    struct bytes digits = bytes_cut(&rest, '.');
    bool fraction = digits.len + (negative ? 1 : 0) < text.len;
    uint64_t magnitude;
    if (!bytes_to_u64(digits, &magnitude) || magnitude >= (uint64_t)MILLISECONDS_END || memchr(text.at, 'e', text.len) != NULL)
        return false;
    int64_t n = negative ? -(int64_t)magnitude - (fraction ? 1 : 0) : (int64_t)magnitude;
    *ret_us = magnitude < (uint64_t)SECONDS_END ? n * WHEN_SECOND : n * WHEN_MS;
    return true;
}

static enum status read_number(const struct json *value, const struct zone *zone, struct arena *arena, struct key_time *ret_time,
                               struct why *why)
{
    struct bytes text;
    int64_t utc_us;
    enum status status = key_canonical(value, arena, &text, why);
    if (status == INVALID || (status == OK && !epoch_us(text, &utc_us)))
        return not_a_time(why);
    TRY(status);
    return key_time_at(utc_us, zone, ret_time, why);
}

enum status key_time_read(const struct json *value, const struct zone *zone, struct arena *arena, struct key_time *ret_time,
                          struct why *why)
{
    if (value->type == JSON_NUMBER)
        return read_number(value, zone, arena, ret_time, why);
    if (value->type != JSON_STRING)
        return not_a_time(why);
    int64_t time_us;
    struct bytes text = bytes_trim(value->text);
    if (!when_parse(text, &time_us))
        return not_a_time(why);
    return is_plain_date(text) ? time_at_date(time_us, zone, ret_time, why) : key_time_at(time_us, zone, ret_time, why);
}

/* ---- writing ---- */

static void out_format(struct key_out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void out_format(struct key_out *out, const char *format, ...)
{
    char text[64];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ASSERT(len > 0 && (size_t)len < sizeof text);
    key_out_literal(out, (struct bytes){text, (size_t)len});
}

static void out_date(struct key_out *out, struct civil date)
{
    out_format(out, "%04d-%02d-%02d", date.year, date.month, date.day);
}

/* Seconds are written only where the window can begin within a minute. */
static void out_window(struct key_out *out, int64_t utc_us, int64_t window_us)
{
    int64_t start_us = civil_floor_div(utc_us, window_us) * window_us;
    int64_t days = civil_floor_div(start_us, WHEN_DAY);
    int second = (int)((start_us - days * WHEN_DAY) / WHEN_SECOND);
    out_date(out, civil_from_days(days));
    out_format(out, "T%02d:%02d", second / 3600, second / 60 % 60);
    if (window_us % WHEN_MINUTE != 0)
        out_format(out, ":%02d", second % 60);
    key_out_literal(out, BYTES("Z"));
}

static void out_week(struct key_out *out, int64_t days)
{
    struct civil_week week = civil_iso_week(days);
    out_format(out, "%04d-W%02d", week.year, week.week);
}

void key_time_write(const struct key_part *part, struct key_time when, struct key_out *out)
{
    int64_t days = civil_floor_div(when.local_us, WHEN_DAY);
    struct civil date = civil_from_days(days);
    switch (part->kind) {
    case PART_DAY:
    case PART_TODAY:
        out_date(out, date);
        break;
    case PART_WEEK:
        out_week(out, days);
        break;
    case PART_MONTH:
        out_format(out, "%04d-%02d", date.year, date.month);
        break;
    case PART_QUARTER:
        out_format(out, "%04d-Q%d", date.year, (date.month + 2) / 3);
        break;
    case PART_YEAR:
        out_format(out, "%04d", date.year);
        break;
    case PART_HOUR:
        out_date(out, date);
        out_format(out, "T%02d", (int)((when.local_us - days * WHEN_DAY) / WHEN_HOUR));
        break;
    case PART_WINDOW:
        out_window(out, when.utc_us, part->number);
        break;
    case PART_BILLING:
        out_date(out, civil_billing_start(date, (int)part->number));
        break;
    case PART_LITERAL:
    case PART_FIELD:
    case PART_HASH:
        assert_failed("a part made from a time", __FILE__, __LINE__);
    }
}
