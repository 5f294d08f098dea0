#include "fingerprint/civil.h"

#include <stdbool.h>

enum { DAYS_PER_400_YEARS = 146097, DAYS_PER_100_YEARS = 36524, DAYS_PER_4_YEARS = 1461, DAYS_PER_YEAR = 365 };

/* Days from 0001-01-01 to 1970-01-01. */
#define DAYS_BEFORE_1970 INT64_C(719162)

static const int days_before_month[13] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};

int64_t civil_floor_div(int64_t n, int64_t divisor)
{
    int64_t quotient = n / divisor;
    return n % divisor < 0 ? quotient - 1 : quotient;
}

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

int civil_month_days(int year, int month)
{
    int days = days_before_month[month] - days_before_month[month - 1];
    return month == 2 && is_leap(year) ? days + 1 : days;
}

static int day_of_year(int year, int month, int day)
{
    int leap = month > 2 && is_leap(year) ? 1 : 0;
    return days_before_month[month - 1] + leap + day;
}

int64_t civil_to_days(struct civil date)
{
    int64_t past = (int64_t)date.year - 1;
    int64_t leaps = civil_floor_div(past, 4) - civil_floor_div(past, 100) + civil_floor_div(past, 400);
    return past * DAYS_PER_YEAR + leaps + day_of_year(date.year, date.month, date.day) - 1 - DAYS_BEFORE_1970;
}

/* The last day of a cycle of 4 or 400 years is the leap day of its last year; it belongs to no further year. */
static int64_t at_most_three(int64_t n)
{
    return n > 3 ? 3 : n;
}

struct civil civil_from_days(int64_t days)
{
    int64_t since = days + DAYS_BEFORE_1970;
    int64_t era = civil_floor_div(since, DAYS_PER_400_YEARS);
    int64_t rest = since - era * DAYS_PER_400_YEARS;
    int64_t centuries = at_most_three(rest / DAYS_PER_100_YEARS);
    rest -= centuries * DAYS_PER_100_YEARS;
    int64_t fours = rest / DAYS_PER_4_YEARS;
    rest -= fours * DAYS_PER_4_YEARS;
    int64_t years = at_most_three(rest / DAYS_PER_YEAR);
    rest -= years * DAYS_PER_YEAR;

    struct civil date = {.year = (int)(era * 400 + centuries * 100 + fours * 4 + years + 1), .month = 1};
    while (rest >= civil_month_days(date.year, date.month)) {
        rest -= civil_month_days(date.year, date.month);
        date.month++;
    }
    date.day = (int)rest + 1;
    return date;
}

/* A week belongs to the year that holds its Thursday. */
struct civil_week civil_iso_week(int64_t days)
{
    int64_t since_monday = days + 3 - civil_floor_div(days + 3, 7) * 7; /* 1970-01-01 was a Thursday */
    int64_t thursday = days - since_monday + 3;
    struct civil date = civil_from_days(thursday);
    int week = (day_of_year(date.year, date.month, date.day) - 1) / 7 + 1;
    return (struct civil_week){date.year, week};
}

static int day_within_month(int year, int month, int day)
{
    int last = civil_month_days(year, month);
    return day < last ? day : last;
}

struct civil civil_billing_start(struct civil date, int billing_day)
{
    int start = day_within_month(date.year, date.month, billing_day);
    if (date.day >= start)
        return (struct civil){date.year, date.month, start};
    int year = date.month == 1 ? date.year - 1 : date.year;
    int month = date.month == 1 ? 12 : date.month - 1;
    return (struct civil){year, month, day_within_month(year, month, billing_day)};
}
