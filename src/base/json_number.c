/*
 * Doubles as ECMAScript writes them: the fewest digits that read back as the same double and, among those, the nearest.
 * Numbers that people write (integers, prices) take an arithmetic path; the rest is tried with printf and strtod. Neither
 * sees a decimal point of the other, so the locale does not matter.
 */
#include "base/json.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DIGITS_MAX = 17, DIGITS_SAFE = 15 /* every decimal of so few digits survives the way through a double */ };

/* 0.d1d2d3… times ten to the power of `point`. */
struct decimal {
    char digits[24];
    int count, point;
};

static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static void drop_zeros(struct decimal *decimal)
{
    while (decimal->count > 1 && decimal->digits[decimal->count - 1] == '0')
        decimal->count--;
}

/* `n` divided by ten to the power of `scale`. */
static void set_decimal(uint64_t n, int scale, struct decimal *ret)
{
    char reversed[24];
    int count = 0;
    for (; n > 0; n /= 10)
        reversed[count++] = (char)('0' + n % 10);
    for (int i = 0; i < count; i++)
        ret->digits[i] = reversed[count - 1 - i];
    ret->count = count;
    ret->point = count - scale;
    drop_zeros(ret);
}

/*
 * Finds the one decimal of at most 15 digits that is this double, if there is one. The scaled number is below 2^50, so its error
 * is below 1/4 and the nearest integer is the right one; the division back is of two exact numbers and therefore rounded as a
 * reader would.
 */
static bool try_short(double number, struct decimal *ret)
{
    if (number < 1e-7 || number >= 1e15)
        return false;
    int scale = DIGITS_SAFE;
    if (number >= 1)
        while (number >= powers[DIGITS_SAFE - scale])
            scale--;
    else
        while (number * powers[scale - DIGITS_SAFE] < 0.1)
            scale++;
    double scaled = nearbyint(number * powers[scale]);
    if (scaled >= 1e15 || scaled / powers[scale] != number)
        return false;
    set_decimal((uint64_t)scaled, scale, ret);
    return true;
}

static bool try_integer(double number, struct decimal *ret)
{
    if (number > 0x1p53 || number != (double)(uint64_t)number)
        return false;
    set_decimal((uint64_t)number, 0, ret);
    return true;
}

/* The nearest decimal of `count` digits. Only digits and the exponent are taken from printf's text. */
static void round_to(double number, int count, struct decimal *ret)
{
    char text[40];
    snprintf(text, sizeof text, "%.*e", count - 1, number);
    const char *at = text;
    ret->count = 0;
    for (; *at != 'e'; at++)
        if (*at >= '0' && *at <= '9')
            ret->digits[ret->count++] = *at;
    ret->point = (int)strtol(at + 1, NULL, 10) + 1;
}

static bool reads_back(const struct decimal *decimal, double number)
{
    char text[48];
    snprintf(text, sizeof text, "%.*se%d", decimal->count, decimal->digits, decimal->point - decimal->count);
    return strtod(text, NULL) == number;
}

/* The next decimal of the same length. */
static void step_up(struct decimal *decimal)
{
    int i = decimal->count - 1;
    while (i >= 0 && decimal->digits[i] == '9')
        decimal->digits[i--] = '0';
    if (i >= 0) {
        decimal->digits[i]++;
        return;
    }
    decimal->digits[0] = '1';
    decimal->point++;
}

static bool try_digits(double number, int count, bool uneven, struct decimal *ret)
{
    round_to(number, count, ret);
    if (reads_back(ret, number))
        return true;
    if (!uneven)
        return false;
    step_up(ret);
    return reads_back(ret, number);
}

static void find_shortest(double number, struct decimal *ret)
{
    int exponent;
    /* Below a power of two doubles lie twice as close as above it: the nearest decimal, below, may already belong to the
     * neighbour while the next one, above and farther away, does not. */
    bool uneven = frexp(number, &exponent) == 0.5;
    int count = number < DBL_MIN ? 1 : DIGITS_SAFE;
    while (!try_digits(number, count, uneven && count < DIGITS_MAX, ret) && count < DIGITS_MAX)
        count++;
    drop_zeros(ret);
}

/* ---- the layout ECMAScript prescribes ---- */

struct cursor {
    char *at;
};

static void put(struct cursor *to, const char *from, int count)
{
    if (count > 0) {
        memcpy(to->at, from, (size_t)count);
        to->at += count;
    }
}

static void put_zeros(struct cursor *to, int count)
{
    static const char zeros[] = "000000000000000000000000";
    put(to, zeros, count);
}

static void put_exponent(struct cursor *to, int exponent)
{
    char text[8];
    put(to, text, snprintf(text, sizeof text, "e%c%d", exponent < 0 ? '-' : '+', abs(exponent)));
}

static void lay_out(const struct decimal *decimal, struct cursor *to)
{
    int count = decimal->count, point = decimal->point;
    if (count <= point && point <= 21) {
        put(to, decimal->digits, count);
        put_zeros(to, point - count);
    } else if (point > 0 && point <= 21) {
        put(to, decimal->digits, point);
        put(to, ".", 1);
        put(to, decimal->digits + point, count - point);
    } else if (point > -6 && point <= 0) {
        put(to, "0.", 2);
        put_zeros(to, -point);
        put(to, decimal->digits, count);
    } else {
        put(to, decimal->digits, 1);
        put(to, ".", count > 1);
        put(to, decimal->digits + 1, count - 1);
        put_exponent(to, point - 1);
    }
}

size_t json_number_format(double number, char ret[32])
{
    struct cursor to = {ret};
    struct decimal decimal;
    ASSERT(isfinite(number));
    if (number < 0)
        put(&to, "-", 1);
    number = fabs(number);
    if (number == 0)
        put(&to, "0", 1);
    else {
        if (!try_integer(number, &decimal) && !try_short(number, &decimal))
            find_shortest(number, &decimal);
        lay_out(&decimal, &to);
    }
    *to.at = '\0';
    return (size_t)(to.at - ret);
}
