#include "base/json.h"

#include <stdio.h>

enum { NAME_SHOWN_MAX = 64, NEAR_LENGTH_MAX = 64, NEAR_DISTANCE_MAX = 2 };

/* ---- sentences ---- */

struct phrase {
    char text[200];
};

static void add_phrase(struct phrase *phrase, const char *first, const char *second)
{
    size_t len = strlen(phrase->text);
    snprintf(phrase->text + len, sizeof phrase->text - len, "%s%s", first, second);
}

static void describe_names(const char *const *names, struct phrase *ret)
{
    add_phrase(ret, "one of", "");
    for (size_t i = 0; names[i] != NULL; i++) {
        add_phrase(ret, i == 0 ? " \"" : ", \"", names[i]);
        add_phrase(ret, "\"", "");
    }
}

static bool has_bounds(const struct json_field *field)
{
    return field->min != 0 || field->max != 0;
}

/* What the field takes, as the object of "send …". */
static struct phrase describe(const struct json_field *field)
{
    struct phrase phrase = {""};
    long long min = field->min, max = field->max;
    switch (field->kind) {
    case JSON_FIELD_TEXT:
        add_phrase(&phrase, "a string", "");
        if (has_bounds(field))
            snprintf(phrase.text, sizeof phrase.text, "a string of %lld to %lld bytes", min, max);
        break;
    case JSON_FIELD_INT:
        add_phrase(&phrase, "an integer", "");
        if (has_bounds(field))
            snprintf(phrase.text, sizeof phrase.text, "an integer from %lld to %lld", min, max);
        break;
    case JSON_FIELD_BOOL:
        add_phrase(&phrase, "true or false", "");
        break;
    case JSON_FIELD_ENUM:
        describe_names(field->names, &phrase);
        break;
    case JSON_FIELD_VALUE:
        add_phrase(&phrase, "a JSON value", "");
        break;
    }
    return phrase;
}

/* A name from outside is repeated only when it looks like one. */
static bool is_showable(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.at[i] < ' ' || name.at[i] > '~' || name.at[i] == '"')
            return false;
    return name.len <= NAME_SHOWN_MAX;
}

/* ---- one field ---- */

static int find_name(const struct json_field *field, struct bytes text)
{
    for (int i = 0; field->names[i] != NULL; i++)
        if (bytes_is(text, field->names[i]))
            return i;
    return -1;
}

static bool in_bounds(const struct json_field *field, int64_t n)
{
    return !has_bounds(field) || (n >= field->min && n <= field->max);
}

static bool fits(const struct json_field *field, const struct json *value)
{
    int64_t n;
    switch (field->kind) {
    case JSON_FIELD_TEXT:
        return value->type == JSON_STRING && in_bounds(field, (int64_t)value->text.len);
    case JSON_FIELD_INT:
        return json_to_i64(value, &n) && in_bounds(field, n);
    case JSON_FIELD_BOOL:
        return value->type == JSON_TRUE || value->type == JSON_FALSE;
    case JSON_FIELD_ENUM:
        return value->type == JSON_STRING && find_name(field, value->text) >= 0;
    case JSON_FIELD_VALUE:
        return true;
    }
    return false;
}

static bool has_right_type(const struct json_field *field, const struct json *value)
{
    bool wants_text = field->kind == JSON_FIELD_TEXT || field->kind == JSON_FIELD_ENUM;
    return (wants_text && value->type == JSON_STRING) || (field->kind == JSON_FIELD_INT && value->type == JSON_NUMBER);
}

/* The value itself is not repeated: it may be personal. */
static enum status refuse(const struct json_field *field, const struct json *value, struct why *why)
{
    struct phrase wanted = describe(field);
    if (!has_right_type(field, value))
        return why_set(why, INVALID, "\"%s\" is %s; send %s", field->name, json_type_name(value->type), wanted.text);
    size_t count = 0;
    while (field->kind == JSON_FIELD_ENUM && field->names[count] != NULL)
        count++;
    const char *near = count > 0 ? nearest_name(value->text, field->names, count) : NULL;
    if (near != NULL)
        return why_set(why, INVALID, "\"%s\" does not know this value, did you mean \"%s\"? Send %s", field->name, near,
                       wanted.text);
    return why_set(why, INVALID, "\"%s\" does not take this value; send %s", field->name, wanted.text);
}

static void store(const struct json_field *field, const struct json *value, void *ret)
{
    char *at = (char *)ret + field->offset;
    int64_t n = 0;
    int index;
    bool yes = value->type == JSON_TRUE;
    switch (field->kind) {
    case JSON_FIELD_TEXT:
        memcpy(at, &value->text, sizeof value->text);
        break;
    case JSON_FIELD_INT:
        (void)json_to_i64(value, &n);
        memcpy(at, &n, sizeof n);
        break;
    case JSON_FIELD_BOOL:
        memcpy(at, &yes, sizeof yes);
        break;
    case JSON_FIELD_ENUM:
        index = find_name(field, value->text);
        memcpy(at, &index, sizeof index);
        break;
    case JSON_FIELD_VALUE:
        memcpy(at, &value, sizeof value);
        break;
    }
}

/* ---- the object ---- */

static const struct json_field *find_field(const struct json_field *fields, size_t count, struct bytes name)
{
    for (size_t i = 0; i < count; i++)
        if (bytes_is(name, fields[i].name))
            return &fields[i];
    return NULL;
}

/* Edit distance with adjacent swaps, row by row; names are short. */
static size_t distance(struct bytes a, struct bytes b)
{
    size_t rows[3][NEAR_LENGTH_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= b.len; j++)
        last[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        now[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t best = last[j - 1] + (a.at[i - 1] != b.at[j - 1]);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a.at[i - 1] == b.at[j - 2] && a.at[i - 2] == b.at[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
        size_t *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[b.len];
}

/* Keeps the nearer of two names. */
static void consider(struct bytes given, const char *name, size_t *best, const char **nearest)
{
    struct bytes candidate = bytes_of(name);
    if (given.len > NEAR_LENGTH_MAX || candidate.len > NEAR_LENGTH_MAX)
        return;
    size_t found = distance(given, candidate);
    if (found < *best && found * 2 < given.len) {
        *best = found;
        *nearest = name;
    }
}

const char *nearest_name(struct bytes given, const char *const *names, size_t count)
{
    const char *nearest = NULL;
    size_t best = NEAR_DISTANCE_MAX + 1;
    for (size_t i = 0; i < count; i++)
        consider(given, names[i], &best, &nearest);
    return nearest;
}

static enum status refuse_unknown(struct bytes name, const struct json_field *fields, size_t count, struct why *why)
{
    const char *nearest = NULL;
    size_t best = NEAR_DISTANCE_MAX + 1;
    for (size_t i = 0; i < count; i++)
        consider(name, fields[i].name, &best, &nearest);
    if (!is_showable(name))
        return why_set(why, INVALID, "there is a member whose name is not known here; remove it");
    if (nearest != NULL)
        return why_set(why, INVALID, "\"%.*s\" is not known here; did you mean \"%s\"?", BYTES_ARG(name), nearest);
    return why_set(why, INVALID, "\"%.*s\" is not known here; remove it", BYTES_ARG(name));
}

static void tell_field(struct bytes *ret_field, struct bytes name)
{
    if (ret_field != NULL)
        *ret_field = name;
}

static enum status check_members(const struct json *json, const struct json_field *fields, size_t count, struct bytes *ret_field,
                                 struct why *why)
{
    for (uint32_t i = 0; i < json->count; i++) {
        const struct json_member *member = &json->members[i];
        const struct json_field *field = find_field(fields, count, member->name);
        if (field != NULL && (member->value.type == JSON_NULL || fits(field, &member->value)))
            continue;
        tell_field(ret_field, member->name);
        return field != NULL ? refuse(field, &member->value, why) : refuse_unknown(member->name, fields, count, why);
    }
    return OK;
}

static enum status check_required(const struct json *json, const struct json_field *fields, size_t count, struct bytes *ret_field,
                                  struct why *why)
{
    for (size_t i = 0; i < count; i++) {
        const struct json *value = fields[i].required ? json_get(json, bytes_of(fields[i].name)) : NULL;
        if (!fields[i].required || (value != NULL && value->type != JSON_NULL))
            continue;
        tell_field(ret_field, bytes_of(fields[i].name));
        return why_set(why, INVALID, "\"%s\" is missing; send %s", fields[i].name, describe(&fields[i]).text);
    }
    return OK;
}

enum status json_read(const struct json *json, const struct json_field *fields, size_t count, void *ret, struct bytes *ret_field,
                      struct why *why)
{
    if (json->type != JSON_OBJECT) {
        tell_field(ret_field, BYTES(""));
        return why_set(why, INVALID, "this is %s; send an object", json_type_name(json->type));
    }
    TRY(check_members(json, fields, count, ret_field, why));
    TRY(check_required(json, fields, count, ret_field, why));
    /* Everything is checked before anything is stored: on failure `ret` keeps its defaults. */
    for (uint32_t i = 0; i < json->count; i++) {
        const struct json *value = &json->members[i].value;
        if (value->type != JSON_NULL)
            store(find_field(fields, count, json->members[i].name), value, ret);
    }
    return OK;
}
