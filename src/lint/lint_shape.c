#include "lint/lint_shape.h"

#include <stdio.h>

#include "base/when.h"

#define NEAR_US WHEN_HOUR
#define HEX_RUN_MIN 32

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static bool is_hex(char c)
{
    return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'f');
}

static bool is_word(char c)
{
    return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z');
}

/* In `pattern`: 9 is a digit, h a hex digit, v one of 8, 9, a, b; anything else is itself. The length, or 0. */
static size_t match(struct bytes text, const char *pattern)
{
    size_t len = strlen(pattern);
    if (text.len < len)
        return 0;
    for (size_t i = 0; i < len; i++) {
        char c = text.at[i], p = pattern[i];
        bool fits = p == '9'   ? is_digit(c)
                    : p == 'h' ? is_hex(c)
                    : p == 'v' ? lower(c) == 'a' || lower(c) == 'b' || c == '8' || c == '9'
                               : c == p;
        if (!fits)
            return 0;
    }
    return len;
}

static struct bytes from(struct bytes text, size_t i)
{
    return (struct bytes){text.at + i, text.len - i};
}

static size_t run_of(struct bytes text, bool (*is)(char))
{
    size_t len = 0;
    while (len < text.len && is(text.at[len]))
        len++;
    return len;
}

/* ---- random ---- */

struct bytes shape_random(struct bytes key)
{
    for (size_t i = 0; i < key.len; i++) {
        struct bytes rest = from(key, i);
        size_t uuid = match(rest, "hhhhhhhh-hhhh-4hhh-vhhh-hhhhhhhhhhhh"), hex = run_of(rest, is_hex);
        if (uuid > 0)
            return (struct bytes){rest.at, uuid};
        if (hex >= HEX_RUN_MIN && (i == 0 || !is_word(key.at[i - 1])))
            return (struct bytes){rest.at, hex};
    }
    return BYTES_NONE;
}

/* ---- time ---- */

static bool is_near(int64_t time_us, int64_t at_us)
{
    return time_us > at_us - NEAR_US && time_us < at_us + NEAR_US;
}

/* Digits as epoch seconds, milliseconds or microseconds, by their number. */
static bool is_epoch_near(struct bytes digits, int64_t at_us)
{
    uint64_t number;
    int64_t unit_us = digits.len == 10 ? WHEN_SECOND : digits.len == 13 ? WHEN_MS : digits.len == 16 ? 1 : 0;
    return unit_us != 0 && bytes_to_u64(digits, &number) && is_near((int64_t)number * unit_us, at_us);
}

static int64_t number_at(struct bytes text, size_t i, size_t len)
{
    int64_t number = 0;
    for (size_t k = i; k < i + len; k++)
        number = number * 10 + (text.at[k] - '0');
    return number;
}

/* A date with a time to the minute, in whatever zone: the hour may be off by half a day, the minutes of the hour are not. */
static bool is_moment_near(struct bytes text, int64_t at_us)
{
    static const struct {
        const char *pattern;
        size_t month, day, hour, minute;
    } forms[] = {{"9999-99-99T99:99", 5, 8, 11, 14},
                 {"9999-99-99 99:99", 5, 8, 11, 14},
                 {"99999999T9999", 4, 6, 9, 11},
                 {"999999999999", 4, 6, 8, 10}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (match(text, forms[i].pattern) == 0)
            continue;
        char written[80];
        snprintf(written, sizeof written, "%04d-%02d-%02dT%02d:%02d:00Z", (int)number_at(text, 0, 4),
                 (int)number_at(text, forms[i].month, 2), (int)number_at(text, forms[i].day, 2),
                 (int)number_at(text, forms[i].hour, 2), (int)number_at(text, forms[i].minute, 2));
        int64_t time_us;
        if (!when_parse(bytes_of(written), &time_us))
            continue;
        int64_t apart_us = (time_us - at_us) % WHEN_HOUR, off_us = apart_us < 0 ? apart_us + WHEN_HOUR : apart_us;
        bool day = time_us > at_us - 15 * WHEN_HOUR && time_us < at_us + 15 * WHEN_HOUR;
        if (day && (off_us < 5 * WHEN_MINUTE || off_us > 55 * WHEN_MINUTE))
            return true;
    }
    return false;
}

bool shape_clock(struct bytes key, int64_t at_us)
{
    for (size_t i = 0; i < key.len; i++) {
        bool begins = is_digit(key.at[i]) && (i == 0 || !is_digit(key.at[i - 1]));
        struct bytes rest = from(key, i);
        if (begins && (is_epoch_near((struct bytes){rest.at, run_of(rest, is_digit)}, at_us) || is_moment_near(rest, at_us)))
            return true;
    }
    return false;
}

struct bytes shape_without_windows(struct bytes key, struct arena *arena)
{
    static const char *const windows[] = {"9999-99-99T99", "9999-99-99", "9999-W99", "9999-Q9", "9999-99", "99999999"};
    char *text = arena_alloc(arena, key.len + 1);
    size_t len = 0;
    for (size_t i = 0; text != NULL && i < key.len;) {
        size_t window = 0;
        for (size_t k = 0; k < sizeof windows / sizeof *windows && window == 0 && (i == 0 || !is_digit(key.at[i - 1])); k++)
            window = match(from(key, i), windows[k]);
        bool ends = window > 0 && (i + window == key.len || !is_word(key.at[i + window]));
        text[len++] = ends ? '*' : key.at[i];
        i += ends ? window : 1;
    }
    return text != NULL ? (struct bytes){text, len} : BYTES_NONE;
}

struct bytes shape_folded(struct bytes key, struct arena *arena)
{
    char *text = arena_alloc(arena, key.len + 1);
    size_t len = 0;
    for (size_t i = 0; text != NULL && i < key.len; i++) {
        bool space = key.at[i] == ' ' || key.at[i] == '\t' || key.at[i] == '\n';
        if (space && (len == 0 || text[len - 1] == ' '))
            continue;
        text[len++] = space ? ' ' : lower(key.at[i]);
    }
    while (text != NULL && len > 0 && text[len - 1] == ' ')
        len--;
    return text != NULL ? (struct bytes){text, len} : BYTES_NONE;
}

/* ---- names of fields ---- */

static bool ends_with(struct bytes text, const char *end)
{
    size_t len = strlen(end);
    return text.len >= len && bytes_eq_nocase((struct bytes){text.at + text.len - len, len}, bytes_of(end));
}

static bool has_any_end(struct bytes text, const char *const *ends)
{
    for (; *ends != NULL; ends++)
        if (ends_with(text, *ends))
            return true;
    return false;
}

bool shape_is_attempt(struct bytes field)
{
    static const char *const names[] = {
        "attempt", "attempt_id", "attempts",     "call_id",    "callId",    "execution_id", "executionId", "job_id",
        "nonce",   "now",        "random",       "request_id", "requestId", "retries",      "retry",       "retry_count",
        "span_id", "timestamp",  "tool_call_id", "trace_id",   "traceId",   "uuid",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bytes_eq_nocase(field, bytes_of(names[i])))
            return true;
    return false;
}

bool shape_names_a_thing(struct bytes field)
{
    static const char *const ends[] = {"id",      "email",   "phone",    "number",    "sku", "key",
                                       "lead",    "order",   "invoice",  "user",      "to",  "ticket",
                                       "contact", "account", "customer", "recipient", NULL};
    return has_any_end(field, ends) && !shape_is_attempt(field);
}
