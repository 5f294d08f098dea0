/*
 * The canonical form. Numbers: what is written reads back as the same double, has as few digits as possible, is the nearest of those, and is
 * canonical itself. Documents: members come in the order of UTF-16, and neither their order nor white space in the source matters.
 */
#include "fuzz.h"

#include <math.h>

#include "base/json.h"

/* ---- numbers ---- */

struct digits {
    char at[32];
    int count;
};

/* The significant digits of a number's text, without zeros around them. */
static struct digits digits_of(const char *text)
{
    struct digits digits = {.count = 0};
    for (; *text != '\0' && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9' && (digits.count > 0 || *text != '0'))
            digits.at[digits.count++] = *text;
    while (digits.count > 0 && digits.at[digits.count - 1] == '0')
        digits.count--;
    digits.at[digits.count] = '\0';
    return digits;
}

/* The nearest decimal of so many digits, moved by `step` in its last digit. */
static double near_decimal(double number, int digits, int step, char *ret, size_t size)
{
    char text[64];
    snprintf(text, sizeof text, "%.*e", digits - 1, fabs(number));
    unsigned long long mantissa = 0;
    const char *at = text;
    for (; *at != 'e'; at++)
        if (*at != '.')
            mantissa = mantissa * 10 + (unsigned long long)(*at - '0');
    long exponent = strtol(at + 1, NULL, 10) - (digits - 1);
    snprintf(ret, size, "%llue%ld", mantissa + (unsigned long long)step, exponent);
    return strtod(ret, NULL);
}

/* Doubles below a power of two lie closer together than above it, so the nearest decimal is not the only one to try. */
static void check_shortest(double number, const char *text)
{
    char decimal[64];
    struct digits digits = digits_of(text);
    ASSERT(digits.count >= 1);
    ASSERT(digits.count <= 17);
    for (int step = -1; step <= 1 && digits.count > 1; step++)
        ASSERT(near_decimal(number, digits.count - 1, step, decimal, sizeof decimal) != fabs(number));
    if (near_decimal(number, digits.count, 0, decimal, sizeof decimal) == fabs(number))
        ASSERT(strcmp(digits_of(decimal).at, digits.at) == 0);
}

static void check_form(struct bytes text, struct arena *arena)
{
    struct json json;
    struct why why;
    struct buf buf;
    buf_init(&buf, 64);
    ASSERT(json_parse(text, NULL, arena, &json, &why) == OK);
    ASSERT(json.type == JSON_NUMBER);
    ASSERT(json_canonical(&json, arena, &buf, &why) == OK);
    ASSERT(bytes_eq(buf_bytes(&buf), text));
    buf_release(&buf);
}

static void check_number(double number, struct arena *arena)
{
    char text[32];
    if (!isfinite(number))
        return;
    memset(text, 'x', sizeof text);
    size_t len = json_number_format(number, text);
    ASSERT(len < sizeof text);
    ASSERT(strlen(text) == len);
    ASSERT(strtod(text, NULL) == number);
    if (number != 0)
        check_shortest(number, text);
    else
        ASSERT(strcmp(text, "0") == 0);
    check_form((struct bytes){text, len}, arena);
}

/* Each number in turn, its neighbours, and a price made of the same bits. */
static void check_numbers(struct bytes rest, struct arena *arena)
{
    while (rest.len > 0) {
        uint64_t bits = fuzz_u64(&rest);
        double number;
        memcpy(&number, &bits, sizeof number);
        check_number(number, arena);
        check_number(nextafter(number, INFINITY), arena);
        check_number(nextafter(number, 0), arena);
        check_number((double)(bits >> 40) / 100, arena);
        check_number(ldexp(1, (int)(bits % 2098) - 1074), arena);
        arena_clear(arena);
    }
}

/* ---- documents ---- */

/* The UTF-16 units of one character of well-formed UTF-8. */
static size_t utf16(struct bytes *rest, uint32_t ret_units[2])
{
    uint32_t code = 0;
    size_t len = bytes_utf8_char(*rest, &code);
    ASSERT(len > 0);
    *rest = bytes_from(*rest, len);
    if (code < 0x10000) {
        ret_units[0] = code;
        return 1;
    }
    ret_units[0] = 0xD800 + ((code - 0x10000) >> 10);
    ret_units[1] = 0xDC00 + ((code - 0x10000) & 0x3FF);
    return 2;
}

static bool comes_before(struct bytes a, struct bytes b)
{
    while (a.len > 0 && b.len > 0) {
        uint32_t left[2] = {0}, right[2] = {0};
        utf16(&a, left);
        utf16(&b, right);
        if (left[0] != right[0])
            return left[0] < right[0];
        if (left[1] != right[1])
            return left[1] < right[1];
    }
    return a.len == 0 && b.len > 0;
}

static void check_order(const struct json *json)
{
    for (uint32_t i = 0; json->type == JSON_ARRAY && i < json->count; i++)
        check_order(&json->items[i]);
    for (uint32_t i = 0; json->type == JSON_OBJECT && i < json->count; i++) {
        ASSERT(i == 0 || comes_before(json->members[i - 1].name, json->members[i].name));
        check_order(&json->members[i].value);
    }
}

/* The same document, written with its members backwards and white space wherever it may stand. */
static void write_loosely(struct buf *buf, const struct json *json)
{
    bool object = json->type == JSON_OBJECT;
    if (!object && json->type != JSON_ARRAY) {
        buf_add(buf, json->raw);
        return;
    }
    buf_add_cstr(buf, object ? "{ \t" : "[\n");
    for (uint32_t i = 0; i < json->count; i++) {
        if (i > 0)
            buf_add_cstr(buf, " ,\r\n");
        if (object) {
            const struct json_member *member = &json->members[json->count - 1 - i];
            struct json_out out = json_out_to(buf);
            json_text(&out, member->name);
            buf_add_cstr(buf, " : ");
            write_loosely(buf, &member->value);
        } else {
            write_loosely(buf, &json->items[i]);
        }
    }
    buf_add_cstr(buf, object ? "\n}" : " ]");
}

static enum status canonical_of(struct bytes source, struct arena *arena, struct buf *ret, struct json *ret_json)
{
    struct why why;
    buf_clear(ret);
    enum status status = json_parse(source, NULL, arena, ret_json, &why);
    return status == OK ? json_canonical(ret_json, arena, ret, &why) : status;
}

static void check_document(struct bytes in, struct arena *arena)
{
    struct buf form, loose, again;
    struct json json, canonical;
    buf_init(&form, 8 * FUZZ_SIZE_MAX);
    buf_init(&loose, 16 * FUZZ_SIZE_MAX);
    buf_init(&again, 8 * FUZZ_SIZE_MAX);
    if (canonical_of(in, arena, &form, &json) == OK) {
        write_loosely(&loose, &json);
        ASSERT(canonical_of(buf_bytes(&loose), arena, &again, &json) == OK);
        ASSERT(bytes_eq(buf_bytes(&form), buf_bytes(&again)));
        ASSERT(canonical_of(buf_bytes(&form), arena, &again, &canonical) == OK);
        ASSERT(bytes_eq(buf_bytes(&form), buf_bytes(&again)));
        check_order(&canonical);
    }
    buf_release(&form);
    buf_release(&loose);
    buf_release(&again);
}

FUZZ_TARGET(canonical)(const uint8_t *data, size_t size)
{
    struct bytes in = fuzz_bytes(data, size < FUZZ_SIZE_MAX / 4 ? size : FUZZ_SIZE_MAX / 4);
    struct arena arena;
    arena_init(&arena, FUZZ_ARENA_MAX);
    check_document(in, &arena);
    arena_clear(&arena);
    if (in.len > 256)
        in.len = 256;
    check_numbers(in, &arena);
    arena_release(&arena);
    return 0;
}
