/*
 * civil: dates of the proleptic Gregorian calendar, counted in days since 1970-01-01. Pure arithmetic, no zones.
 */
#ifndef SEMEL_FINGERPRINT_CIVIL_H
#define SEMEL_FINGERPRINT_CIVIL_H

#include <stdint.h>

struct civil {
    int year, month, day; /* month and day from 1 */
};

struct civil_week {
    int year, week; /* the ISO year may differ from the calendar year around New Year */
};

int64_t civil_to_days(struct civil date);
struct civil civil_from_days(int64_t days);
int civil_month_days(int year, int month);
struct civil_week civil_iso_week(int64_t days);

/* The first day of the period that begins on day `billing_day` of each month, or on the last day of a shorter month. */
struct civil civil_billing_start(struct civil date, int billing_day);

/* Division that rounds towards the past, also before 1970. */
int64_t civil_floor_div(int64_t n, int64_t divisor);

#endif
