#include "base/json.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

enum { SMALL_COUNT = 16, NUMBER_LOCAL_SIZE = 64, DOUBLE_SAFE_DIGITS = 308 };

static enum status write_value(const struct json *json, struct arena *scratch, struct json_out *out, struct why *why);

/* ---- numbers ---- */

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    ASSERT(c_locale != (locale_t)0);
}

static enum status read_double(struct bytes text, struct arena *scratch, double *ret_number, struct why *why)
{
    char local[NUMBER_LOCAL_SIZE];
    const char *cstr = local;
    pthread_once(&c_locale_once, make_c_locale);
    if (text.len < sizeof local) {
        memcpy(local, text.at, text.len);
        local[text.len] = '\0';
    } else {
        cstr = arena_dup(scratch, text).at;
    }
    if (cstr == NULL)
        return why_set(why, FULL, "a number of %zu characters needs more memory than one request may use", text.len);
    double number = strtod_l(cstr, NULL, c_locale);
    if (!isfinite(number))
        return why_set(why, INVALID, "a number is too large; the greatest has 309 digits");
    *ret_number = number;
    return OK;
}

static bool is_integer_text(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] == '.' || text.at[i] == 'e' || text.at[i] == 'E')
            return false;
    return true;
}

/* Integers are canonical as they are written: the reader lets no leading zero or plus pass. Only -0 has a twin. */
static enum status write_number(struct bytes text, struct arena *scratch, struct json_out *out, struct why *why)
{
    double number = 0;
    bool integer = is_integer_text(text);
    if (!integer || text.len > DOUBLE_SAFE_DIGITS)
        TRY(read_double(text, scratch, &number, why));
    if (integer) {
        json_raw(out, bytes_is(text, "-0") ? BYTES("0") : text);
        return OK;
    }
    char formatted[32];
    size_t len = json_number_format(number, formatted);
    json_raw(out, (struct bytes){formatted, len});
    return OK;
}

/* ---- objects ---- */

/* UTF-16 puts U+E000…U+FFFF behind the characters that need two units; in UTF-8 those begin with EE and EF, the others with
 * F0…F4. Two valid texts differ first in a leading byte, where this rank decides, or inside characters of the same length, where
 * any order of code points agrees. */
static int rank(char c)
{
    unsigned char byte = (unsigned char)c;
    return byte == 0xEE || byte == 0xEF ? byte + 0x10 : byte;
}

static int compare_utf16(struct bytes a, struct bytes b)
{
    size_t both = a.len < b.len ? a.len : b.len;
    for (size_t i = 0; i < both; i++)
        if (a.at[i] != b.at[i])
            return rank(a.at[i]) - rank(b.at[i]);
    return (a.len > b.len) - (a.len < b.len);
}

static int order_members(const void *a, const void *b)
{
    const struct json_member *left = *(const struct json_member *const *)a, *right = *(const struct json_member *const *)b;
    return compare_utf16(left->name, right->name);
}

static void sort_few(const struct json_member **members, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const struct json_member *member = members[i];
        size_t to = i;
        for (; to > 0 && compare_utf16(members[to - 1]->name, member->name) > 0; to--)
            members[to] = members[to - 1];
        members[to] = member;
    }
}

static enum status write_object(const struct json *json, struct arena *scratch, struct json_out *out, struct why *why)
{
    const struct json_member **sorted = arena_alloc(scratch, json->count * sizeof *sorted);
    if (sorted == NULL)
        return why_set(why, FULL, "the canonical form needs more memory than one request may use");
    for (uint32_t i = 0; i < json->count; i++)
        sorted[i] = &json->members[i];
    if (json->count <= SMALL_COUNT)
        sort_few(sorted, json->count);
    else
        qsort(sorted, json->count, sizeof *sorted, order_members);
    json_open(out, '{');
    for (uint32_t i = 0; i < json->count; i++) {
        json_name_bytes(out, sorted[i]->name);
        TRY(write_value(&sorted[i]->value, scratch, out, why));
    }
    json_close(out, '}');
    return OK;
}

static enum status write_array(const struct json *json, struct arena *scratch, struct json_out *out, struct why *why)
{
    json_open(out, '[');
    for (uint32_t i = 0; i < json->count; i++)
        TRY(write_value(&json->items[i], scratch, out, why));
    json_close(out, ']');
    return OK;
}

static enum status write_value(const struct json *json, struct arena *scratch, struct json_out *out, struct why *why)
{
    switch (json->type) {
    case JSON_NULL:
        json_null(out);
        return OK;
    case JSON_FALSE:
    case JSON_TRUE:
        json_bool(out, json->type == JSON_TRUE);
        return OK;
    case JSON_NUMBER:
        return write_number(json->text, scratch, out, why);
    case JSON_STRING:
        json_text(out, json->text);
        return OK;
    case JSON_ARRAY:
        return write_array(json, scratch, out, why);
    case JSON_OBJECT:
        return write_object(json, scratch, out, why);
    }
    return why_set(why, BROKEN, "a JSON value has no type");
}

enum status json_canonical(const struct json *json, struct arena *scratch, struct buf *out, struct why *why)
{
    struct json_out writer = json_out_to(out);
    TRY(write_value(json, scratch, &writer, why));
    if (out->failed)
        return why_set(why, FULL, "the canonical form is longer than the limit of %zu bytes", out->size_max);
    return OK;
}
