#include "base/when.h"

#include <stdio.h>

#include "base/status.h"

#define DAYS_PER_ERA 146097 /* 400 years, after which the calendar repeats */

struct date {
    int64_t year;
    int month, day;
};

/* ---- the calendar: years begin in March here, so that the leap day is the last one ---- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t days_of(struct date date)
{
    int64_t year = date.month <= 2 ? date.year - 1 : date.year;
    int64_t era = floor_div(year, 400);
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (date.month + (date.month > 2 ? -3 : 9)) + 2) / 5 + date.day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * DAYS_PER_ERA + day_of_era - 719468;
}

static struct date date_of(int64_t days)
{
    days += 719468;
    int64_t era = floor_div(days, DAYS_PER_ERA);
    int64_t day_of_era = days - era * DAYS_PER_ERA;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153;
    struct date date = {
        .year = year_of_era + era * 400 + (month >= 10),
        .month = (int)(month < 10 ? month + 3 : month - 9),
        .day = (int)(day_of_year - (153 * month + 2) / 5 + 1),
    };
    return date;
}

static int days_in_month(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (leap && month == 2);
}

/* ---- writing ---- */

static char *put(char *at, int64_t number, int width)
{
    for (int i = width - 1; i >= 0; i--) {
        at[i] = (char)('0' + number % 10);
        number /= 10;
    }
    return at + width;
}

static char *put_char(char *at, char c)
{
    *at = c;
    return at + 1;
}

/* The text has four digits for the year: what is outside of them is written as the first or last moment inside. */
static int64_t clamp_to_four_digits(int64_t time_us)
{
    int64_t first = days_of((struct date){0, 1, 1}) * WHEN_DAY;
    int64_t last = days_of((struct date){10000, 1, 1}) * WHEN_DAY - 1;
    return time_us < first ? first : time_us > last ? last : time_us;
}

size_t when_format(int64_t time_us, char ret[32])
{
    time_us = clamp_to_four_digits(time_us);
    int64_t days = floor_div(time_us, WHEN_DAY);
    int64_t ms = (time_us - days * WHEN_DAY) / WHEN_MS;
    struct date date = date_of(days);
    char *at = put(ret, date.year, 4);
    at = put(put_char(at, '-'), date.month, 2);
    at = put(put_char(at, '-'), date.day, 2);
    at = put(put_char(at, 'T'), ms / 3600000, 2);
    at = put(put_char(at, ':'), ms / 60000 % 60, 2);
    at = put(put_char(at, ':'), ms / 1000 % 60, 2);
    at = put(put_char(at, '.'), ms % 1000, 3);
    at = put_char(at, 'Z');
    *at = '\0';
    return (size_t)(at - ret);
}

size_t when_format_mail(int64_t time_us, char ret[40])
{
    static const char *const weekdays[] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"}; /* day 0 was a Thursday */
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_us = clamp_to_four_digits(time_us);
    int64_t days = floor_div(time_us, WHEN_DAY), seconds = (time_us - days * WHEN_DAY) / WHEN_SECOND;
    struct date date = date_of(days);
    return (size_t)snprintf(ret, 40, "%s, %02d %s %04d %02d:%02d:%02d +0000", weekdays[((days % 7) + 7) % 7], (int)date.day,
                            months[date.month - 1], (int)date.year, (int)(seconds / 3600), (int)(seconds / 60 % 60),
                            (int)(seconds % 60));
}

/* ---- reading ---- */

/* Takes exactly `width` digits off the front. */
static bool take_digits(struct bytes *rest, size_t width, int *ret_n)
{
    int n = 0;
    if (rest->len < width)
        return false;
    for (size_t i = 0; i < width; i++) {
        if (rest->at[i] < '0' || rest->at[i] > '9')
            return false;
        n = n * 10 + (rest->at[i] - '0');
    }
    *rest = bytes_from(*rest, width);
    *ret_n = n;
    return true;
}

static bool take_char(struct bytes *rest, char c)
{
    if (rest->len == 0 || rest->at[0] != c)
        return false;
    *rest = bytes_from(*rest, 1);
    return true;
}

static bool take_date(struct bytes *rest, int64_t *ret_days)
{
    int year, month, day;
    if (!take_digits(rest, 4, &year) || !take_char(rest, '-') || !take_digits(rest, 2, &month) || !take_char(rest, '-') ||
        !take_digits(rest, 2, &day))
        return false;
    if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
        return false;
    *ret_days = days_of((struct date){year, month, day});
    return true;
}

/* Digits behind the sixth are finer than a microsecond and dropped. */
static bool take_fraction(struct bytes *rest, int64_t *ret_us)
{
    int64_t us = 0, unit = WHEN_SECOND / 10;
    int digit;
    if (!take_digits(rest, 1, &digit))
        return false;
    do {
        us += digit * unit;
        unit /= 10;
    } while (take_digits(rest, 1, &digit));
    *ret_us = us;
    return true;
}

static bool take_zone(struct bytes *rest, int64_t *ret_us)
{
    if (take_char(rest, 'Z') || take_char(rest, 'z')) {
        *ret_us = 0;
        return true;
    }
    bool east = take_char(rest, '+');
    int hours, minutes;
    if (!east && !take_char(rest, '-'))
        return false;
    if (!take_digits(rest, 2, &hours) || !take_char(rest, ':') || !take_digits(rest, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    int64_t offset = hours * WHEN_HOUR + minutes * WHEN_MINUTE;
    *ret_us = east ? offset : -offset;
    return true;
}

/* The time of day and the zone behind a date that begins at `start_us`. */
static bool take_clock(struct bytes *rest, int64_t start_us, int64_t *ret_us)
{
    int hour, minute, second;
    int64_t fraction = 0, offset;
    if (!take_digits(rest, 2, &hour) || !take_char(rest, ':') || !take_digits(rest, 2, &minute) || !take_char(rest, ':') ||
        !take_digits(rest, 2, &second))
        return false;
    if (hour > 23 || minute > 59 || second > 60)
        return false;
    if (take_char(rest, '.') && !take_fraction(rest, &fraction))
        return false;
    if (!take_zone(rest, &offset))
        return false;
    int64_t time_us = start_us + hour * WHEN_HOUR + minute * WHEN_MINUTE + second * WHEN_SECOND - offset;
    /* A leap second exists only at the end of a UTC day; it becomes the first second of the next one. */
    if (second == 60 && time_us % WHEN_DAY != 0)
        return false;
    *ret_us = time_us + fraction;
    return true;
}

static bool parse_epoch(struct bytes text, int64_t *ret_us)
{
    uint64_t n = 0;
    if (!bytes_to_u64(text, &n))
        return false;
    *ret_us = (int64_t)n * (text.len == 10 ? WHEN_SECOND : WHEN_MS);
    return true;
}

bool when_parse(struct bytes text, int64_t *ret_us)
{
    int64_t days, time_us;
    if ((text.len == 10 || text.len == 13) && parse_epoch(text, ret_us))
        return true;
    if (!take_date(&text, &days))
        return false;
    if (text.len == 0) {
        *ret_us = days * WHEN_DAY;
        return true;
    }
    if (!take_char(&text, 'T') && !take_char(&text, 't') && !take_char(&text, ' '))
        return false;
    if (!take_clock(&text, days * WHEN_DAY, &time_us) || text.len > 0)
        return false;
    *ret_us = time_us;
    return true;
}

static bool take_month(struct bytes *rest, int *ret_month)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (int i = 0; i < 12; i++) {
        if (bytes_starts(*rest, (struct bytes){names + 3 * i, 3})) {
            *rest = bytes_from(*rest, 3);
            *ret_month = i + 1;
            return true;
        }
    }
    return false;
}

/* "GMT", or "+0000". */
static bool take_http_zone(struct bytes *rest, int64_t *ret_us)
{
    int hours, minutes;
    if (bytes_is(*rest, "GMT")) {
        *rest = bytes_from(*rest, 3);
        *ret_us = 0;
        return true;
    }
    bool east = take_char(rest, '+');
    if ((!east && !take_char(rest, '-')) || !take_digits(rest, 2, &hours) || !take_digits(rest, 2, &minutes) || hours > 23 ||
        minutes > 59)
        return false;
    int64_t offset = hours * WHEN_HOUR + minutes * WHEN_MINUTE;
    *ret_us = east ? offset : -offset;
    return true;
}

bool when_parse_http(struct bytes text, int64_t *ret_us)
{
    int day, month, year, hour, minute, second;
    int64_t offset;
    struct bytes name = bytes_cut(&text, ',');
    if (name.len != 3 || !take_char(&text, ' ') || !take_digits(&text, 2, &day) || !take_char(&text, ' ') ||
        !take_month(&text, &month) || !take_char(&text, ' ') || !take_digits(&text, 4, &year) || !take_char(&text, ' '))
        return false;
    if (!take_digits(&text, 2, &hour) || !take_char(&text, ':') || !take_digits(&text, 2, &minute) || !take_char(&text, ':') ||
        !take_digits(&text, 2, &second) || !take_char(&text, ' ') || !take_http_zone(&text, &offset) || text.len > 0)
        return false;
    if (day < 1 || day > days_in_month(year, month) || hour > 23 || minute > 59 || second > 60)
        return false;
    *ret_us = days_of((struct date){year, month, day}) * WHEN_DAY + hour * WHEN_HOUR + minute * WHEN_MINUTE +
              second * WHEN_SECOND - offset;
    return true;
}

/* ---- durations ---- */

struct unit {
    const char *name;
    int64_t us;
};

/* From great to small, which is also the order in which they may follow each other. */
static const struct unit units[] = {
    {"w", 7 * WHEN_DAY}, {"d", WHEN_DAY}, {"h", WHEN_HOUR}, {"m", WHEN_MINUTE}, {"s", WHEN_SECOND}, {"ms", WHEN_MS},
};
enum { UNIT_COUNT = sizeof units / sizeof *units };

static struct bytes take_run(struct bytes *rest, bool digits)
{
    size_t len = 0;
    while (len < rest->len && (rest->at[len] >= '0' && rest->at[len] <= '9') == digits)
        len++;
    struct bytes run = {rest->at, len};
    *rest = bytes_from(*rest, len);
    return run;
}

bool when_parse_duration(struct bytes text, int64_t *ret_us)
{
    int64_t total = 0;
    size_t next = 0;
    if (text.len == 0)
        return false;
    while (text.len > 0) {
        int64_t n, part;
        struct bytes number = take_run(&text, true), name = take_run(&text, false);
        while (next < UNIT_COUNT && !bytes_is(name, units[next].name))
            next++;
        if (next == UNIT_COUNT || !bytes_to_i64(number, &n))
            return false;
        if (__builtin_mul_overflow(n, units[next].us, &part) || __builtin_add_overflow(total, part, &total))
            return false;
        next++;
    }
    *ret_us = total;
    return true;
}

size_t when_format_duration(int64_t duration_us, char ret[32])
{
    size_t len = 0;
    /* Days are the greatest unit written: people say 30d, not 4w2d. */
    for (size_t i = 1; i < UNIT_COUNT; i++) {
        int64_t n = duration_us / units[i].us;
        if (n > 0)
            len += (size_t)snprintf(ret + len, 32 - len, "%lld%s", (long long)n, units[i].name);
        duration_us %= units[i].us;
    }
    return len > 0 ? len : (size_t)snprintf(ret, 32, "0s");
}

size_t when_format_rough(int64_t duration_us, char ret[32])
{
    static const struct {
        const char *name;
        int64_t unit_us, below_us;
    } steps[] = {{"s", WHEN_SECOND, WHEN_MINUTE},
                 {"min", WHEN_MINUTE, WHEN_HOUR},
                 {"h", WHEN_HOUR, 2 * WHEN_DAY},
                 {"days", WHEN_DAY, INT64_MAX}};
    size_t i = 0;
    if (duration_us < 0)
        duration_us = 0;
    while (i < sizeof steps / sizeof *steps - 1 && duration_us >= steps[i].below_us)
        i++;
    return (size_t)snprintf(ret, 32, "%lld %s", (long long)(duration_us / steps[i].unit_us), steps[i].name);
}
