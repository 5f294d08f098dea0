/*
 * The reader goes over the text once. What belongs to the arrays and objects that are still open waits on one stack of members;
 * a closing bracket moves its part of the stack into the arena. Strings without escapes stay where they are in the source.
 */
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json_plain.h"

enum { STACK_FIRST = 64, PAIRWISE_MAX = 16 };

const struct json_limits json_limits_default = {.depth_max = 64, .members_max = 10000, .text_max = 64 * 1024};

struct reader {
    const char *at, *end, *start;
    struct json_limits limits;
    struct arena *arena;
    struct why *why;
    uint32_t depth, members;
    struct json_member *stack;
    size_t stack_len, stack_cap;
    struct json_member stack_first[STACK_FIRST];
};

static enum status read_value(struct reader *r, size_t slot);

/* ---- failures ---- */

/* Failing is rare: kept out of the way of the code that reads. */
#define RARE __attribute__((cold, noinline))

/* The place is only worked out when it is needed, by counting from the start. */
RARE static enum status fail(const struct reader *r, const char *at, const char *what)
{
    size_t line = 1, column = 1;
    for (const char *c = r->start; c < at; c++) {
        column = *c == '\n' ? 1 : column + 1;
        line += *c == '\n';
    }
    return why_set(r->why, INVALID, "line %zu, column %zu: %s", line, column, what);
}

RARE static enum status fail_limit(const struct reader *r, const char *at, const char *what, size_t limit)
{
    char sentence[160];
    snprintf(sentence, sizeof sentence, "%s than the limit of %zu", what, limit);
    return fail(r, at, sentence);
}

RARE static enum status fail_memory(const struct reader *r)
{
    return why_set(r->why, FULL, "the JSON text needs more memory than one request may use");
}

/* ---- characters ---- */

RARE static void skip_more_space(struct reader *r)
{
    const char *at = r->at, *end = r->end;
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    r->at = at;
}

/* What programs send has no white space between the tokens. */
static inline void skip_space(struct reader *r)
{
    if (r->at < r->end && (unsigned char)*r->at <= ' ')
        skip_more_space(r);
}

static bool next_is(const struct reader *r, char c)
{
    return r->at < r->end && *r->at == c;
}

static bool is_digit(const char *at, const char *end)
{
    return at < end && *at >= '0' && *at <= '9';
}

/* ---- strings ---- */

/* Moves to the next quote or backslash over text that may stand in a string as it is. */
static enum status skip_text(struct reader *r)
{
    for (;;) {
        r->at = json_skip_plain(r->at, r->end);
        if (r->at == r->end)
            return fail(r, r->at, "the text ends inside a string");
        unsigned char c = (unsigned char)*r->at;
        if (c == '"' || c == '\\')
            return OK;
        if (c < 0x20)
            return fail(r, r->at, "a control character in a string must be escaped");
        uint32_t code;
        size_t len = bytes_utf8_char((struct bytes){r->at, (size_t)(r->end - r->at)}, &code);
        if (len == 0)
            return fail(r, r->at, "this is not valid UTF-8");
        r->at += len;
    }
}

/* Reads "\uXXXX" at `r->at`. */
static bool read_unit(struct reader *r, uint32_t *ret_unit)
{
    uint32_t unit = 0;
    if (r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u')
        return false;
    for (int i = 2; i < 6; i++) {
        int value = bytes_hex_digit(r->at[i]);
        if (value < 0)
            return false;
        unit = unit << 4 | (uint32_t)value;
    }
    r->at += 6;
    *ret_unit = unit;
    return true;
}

static enum status read_code(struct reader *r, uint32_t *ret_code)
{
    const char *start = r->at;
    uint32_t high, low;
    if (!read_unit(r, &high))
        return fail(r, start, "four hexadecimal digits are expected behind \\u");
    if (high < 0xD800 || high > 0xDFFF) {
        *ret_code = high;
        return OK;
    }
    if (high > 0xDBFF || !read_unit(r, &low) || low < 0xDC00 || low > 0xDFFF)
        return fail(r, start, "this surrogate has no partner");
    *ret_code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    return OK;
}

static size_t put_utf8(uint32_t code, char ret[4])
{
    if (code < 0x80) {
        ret[0] = (char)code;
        return 1;
    }
    size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = len - 1; i > 0; i--) {
        ret[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    ret[0] = (char)(lead[len] | code);
    return len;
}

static enum status read_escape(struct reader *r, char ret[4], size_t *ret_len)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char c = r->end - r->at >= 2 ? r->at[1] : '\0';
    if (c == 'u') {
        uint32_t code = 0;
        TRY(read_code(r, &code));
        *ret_len = put_utf8(code, ret);
        return OK;
    }
    const char *found = c != '\0' ? strchr(names, c) : NULL;
    if (found == NULL)
        return fail(r, r->at, "this escape does not exist in JSON");
    ret[0] = values[found - names];
    *ret_len = 1;
    r->at += 2;
    return OK;
}

static enum status append(const struct reader *r, char *to, size_t cap, size_t *len, struct bytes piece)
{
    /* Decoded text is never longer than its source, so what does not fit has passed the limit. */
    if (piece.len > cap - *len)
        return fail_limit(r, r->at, "this string is longer", r->limits.text_max);
    memcpy(to + *len, piece.at, piece.len);
    *len += piece.len;
    return OK;
}

static size_t distance_to_quote(const struct reader *r)
{
    const char *at = r->at;
    while (at < r->end && *at != '"')
        at += *at == '\\' && r->end - at >= 2 ? 2 : 1;
    return (size_t)(at - r->at);
}

/* `r->at` is at the first backslash of the string whose text begins at `start`. */
static enum status decode_string(struct reader *r, const char *start, struct bytes *ret_text)
{
    size_t cap = (size_t)(r->at - start) + distance_to_quote(r), len = 0;
    if (cap > r->limits.text_max)
        cap = r->limits.text_max;
    char *text = arena_alloc(r->arena, cap);
    if (text == NULL)
        return fail_memory(r);
    for (;;) {
        TRY(append(r, text, cap, &len, (struct bytes){start, (size_t)(r->at - start)}));
        if (*r->at == '"')
            break;
        char decoded[4];
        size_t decoded_len = 0;
        TRY(read_escape(r, decoded, &decoded_len));
        TRY(append(r, text, cap, &len, (struct bytes){decoded, decoded_len}));
        start = r->at;
        TRY(skip_text(r));
    }
    r->at++;
    *ret_text = (struct bytes){text, len};
    return OK;
}

/* A string that is not all plain ASCII, is too long or is broken; `r->at` is at the first byte that is not plain. */
__attribute__((noinline)) static enum status read_hard_string(struct reader *r, const char *start, struct bytes *ret_text)
{
    TRY(skip_text(r));
    if (*r->at == '\\')
        return decode_string(r, start, ret_text);
    size_t len = (size_t)(r->at - start);
    if (len > r->limits.text_max)
        return fail_limit(r, start, "this string is longer", r->limits.text_max);
    r->at++;
    *ret_text = (struct bytes){start, len};
    return OK;
}

static inline enum status read_string(struct reader *r, struct bytes *ret_text)
{
    const char *start = r->at + 1, *stop = json_skip_plain(start, r->end);
    size_t len = (size_t)(stop - start);
    r->at = stop;
    if (!next_is(r, '"') || len > r->limits.text_max)
        return read_hard_string(r, start, ret_text);
    r->at++;
    *ret_text = (struct bytes){start, len};
    return OK;
}

/* ---- numbers and words ---- */

static const char *skip_digits(const char *at, const char *end)
{
    while (is_digit(at, end))
        at++;
    return at;
}

static enum status read_number(struct reader *r, struct json *ret)
{
    const char *start = r->at, *at = start + (*start == '-'), *end = r->end;
    if (!is_digit(at, end))
        return fail(r, at, "a digit is expected here");
    at = *at == '0' ? at + 1 : skip_digits(at, end);
    if (is_digit(at, end))
        return fail(r, at, "a number does not begin with 0");
    if (at < end && *at == '.') {
        at++;
        if (!is_digit(at, end))
            return fail(r, at, "a digit is expected behind the point");
        at = skip_digits(at, end);
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-'))
            at++;
        if (!is_digit(at, end))
            return fail(r, at, "a digit is expected in the exponent");
        at = skip_digits(at, end);
    }
    r->at = at;
    ret->type = JSON_NUMBER;
    ret->count = 0;
    ret->text = (struct bytes){start, (size_t)(at - start)};
    return OK;
}

static enum status read_word(struct reader *r, struct bytes word, enum json_type type, struct json *ret)
{
    struct bytes rest = {r->at, (size_t)(r->end - r->at)};
    if (!bytes_starts(rest, word))
        return fail(r, r->at, "a JSON value is expected here");
    r->at += word.len;
    ret->type = type;
    ret->count = 0;
    ret->text = BYTES_NONE;
    return OK;
}

/* ---- arrays and objects ---- */

RARE static enum status grow_stack(struct reader *r)
{
    size_t cap = r->stack_cap * 2;
    bool first = r->stack == r->stack_first;
    struct json_member *stack = realloc(first ? NULL : r->stack, cap * sizeof *stack);
    if (stack == NULL)
        return fail_memory(r);
    if (first)
        memcpy(stack, r->stack_first, sizeof r->stack_first);
    r->stack = stack;
    r->stack_cap = cap;
    return OK;
}

/* The place of the next item. It is kept as a number: what is inside the item may move the stack. */
static inline enum status take_slot(struct reader *r, size_t *ret_slot)
{
    if (r->members == r->limits.members_max)
        return fail_limit(r, r->at, "more items and members", r->limits.members_max);
    if (r->stack_len == r->stack_cap)
        TRY(grow_stack(r));
    r->members++;
    *ret_slot = r->stack_len++;
    return OK;
}

static enum status enter(struct reader *r)
{
    if (r->depth == r->limits.depth_max)
        return fail_limit(r, r->at, "arrays and objects are nested deeper", r->limits.depth_max);
    r->depth++;
    r->at++;
    skip_space(r);
    return OK;
}

/* Behind an item: moves over ',' or the closing bracket; `ret_more` says which it was. */
static inline enum status read_separator(struct reader *r, char close, bool *ret_more)
{
    skip_space(r);
    *ret_more = next_is(r, ',');
    if (!*ret_more && !next_is(r, close))
        return fail(r, r->at, close == '}' ? "',' or '}' is expected here" : "',' or ']' is expected here");
    r->at++;
    if (*ret_more)
        skip_space(r);
    return OK;
}

static enum status finish_array(struct reader *r, size_t slot, size_t base)
{
    size_t count = r->stack_len - base;
    struct json *items = arena_alloc(r->arena, count * sizeof *items);
    if (items == NULL)
        return fail_memory(r);
    for (size_t i = 0; i < count; i++)
        items[i] = r->stack[base + i].value;
    r->stack_len = base;
    r->depth--;
    struct json *array = &r->stack[slot].value;
    array->type = JSON_ARRAY;
    array->count = (uint32_t)count;
    array->items = items;
    return OK;
}

static enum status read_array(struct reader *r, size_t slot)
{
    size_t base = r->stack_len, item = 0;
    TRY(enter(r));
    bool more = !next_is(r, ']');
    r->at += !more;
    while (more) {
        TRY(take_slot(r, &item));
        TRY(read_value(r, item));
        TRY(read_separator(r, ']', &more));
    }
    return finish_array(r, slot, base);
}

static int order_names(const void *a, const void *b)
{
    const struct json_member *left = *(const struct json_member *const *)a, *right = *(const struct json_member *const *)b;
    int order = bytes_cmp(left->name, right->name);
    return order != 0 ? order : (left > right) - (left < right);
}

/* Sorting costs the same whatever names are sent; a hash table could be flooded. */
static enum status sort_for_duplicate(struct reader *r, const struct json_member *members, size_t count,
                                      const struct json_member **ret_duplicate)
{
    const struct json_member **sorted = arena_alloc(r->arena, count * sizeof *sorted);
    if (sorted == NULL)
        return fail_memory(r);
    for (size_t i = 0; i < count; i++)
        sorted[i] = &members[i];
    qsort(sorted, count, sizeof *sorted, order_names);
    for (size_t i = 1; i < count; i++)
        if (bytes_eq(sorted[i - 1]->name, sorted[i]->name))
            *ret_duplicate = sorted[i];
    return OK;
}

/* Most names differ in length or in their first byte, which spares the call. */
static bool is_same_name(struct bytes a, struct bytes b)
{
    return a.len == b.len && (a.len == 0 || (a.at[0] == b.at[0] && memcmp(a.at, b.at, a.len) == 0));
}

static const struct json_member *pairwise_duplicate(const struct json_member *members, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t before = 0; before < i; before++)
            if (is_same_name(members[before].name, members[i].name))
                return &members[i];
    return NULL;
}

static enum status check_duplicates(struct reader *r, const struct json_member *members, size_t count)
{
    const struct json_member *duplicate = NULL;
    if (count <= PAIRWISE_MAX)
        duplicate = pairwise_duplicate(members, count);
    else
        TRY(sort_for_duplicate(r, members, count, &duplicate));
    if (duplicate != NULL)
        return fail(r, duplicate->value.raw.at, "the name of this value is already used in the same object");
    return OK;
}

static enum status finish_object(struct reader *r, size_t slot, size_t base)
{
    size_t count = r->stack_len - base;
    TRY(check_duplicates(r, r->stack + base, count));
    struct json_member *members = arena_alloc(r->arena, count * sizeof *members);
    if (members == NULL)
        return fail_memory(r);
    memcpy(members, r->stack + base, count * sizeof *members);
    r->stack_len = base;
    r->depth--;
    struct json *object = &r->stack[slot].value;
    object->type = JSON_OBJECT;
    object->count = (uint32_t)count;
    object->members = members;
    return OK;
}

static enum status read_member(struct reader *r, size_t slot)
{
    if (!next_is(r, '"'))
        return fail(r, r->at, "a name in double quotes is expected here");
    TRY(read_string(r, &r->stack[slot].name));
    skip_space(r);
    if (!next_is(r, ':'))
        return fail(r, r->at, "':' is expected here");
    r->at++;
    skip_space(r);
    return read_value(r, slot);
}

static enum status read_object(struct reader *r, size_t slot)
{
    size_t base = r->stack_len, member = 0;
    TRY(enter(r));
    bool more = !next_is(r, '}');
    r->at += !more;
    while (more) {
        TRY(take_slot(r, &member));
        TRY(read_member(r, member));
        TRY(read_separator(r, '}', &more));
    }
    return finish_object(r, slot, base);
}

/* ---- values ---- */

static enum status read_any(struct reader *r, size_t slot)
{
    struct json *ret = &r->stack[slot].value;
    if (r->at == r->end)
        return fail(r, r->at, "the text ends where a JSON value is expected");
    switch (*r->at) {
    case '"':
        ret->type = JSON_STRING;
        ret->count = 0;
        return read_string(r, &ret->text);
    case '{':
        return read_object(r, slot);
    case '[':
        return read_array(r, slot);
    case 't':
        return read_word(r, BYTES("true"), JSON_TRUE, ret);
    case 'f':
        return read_word(r, BYTES("false"), JSON_FALSE, ret);
    case 'n':
        return read_word(r, BYTES("null"), JSON_NULL, ret);
    }
    if (*r->at == '-' || is_digit(r->at, r->end))
        return read_number(r, ret);
    return fail(r, r->at, "a JSON value is expected here");
}

static enum status read_value(struct reader *r, size_t slot)
{
    const char *start = r->at;
    TRY(read_any(r, slot));
    r->stack[slot].value.raw = (struct bytes){start, (size_t)(r->at - start)};
    return OK;
}

/* The document itself lies in the first slot and counts as nobody's item. */
static enum status read_document(struct reader *r)
{
    if (bytes_starts((struct bytes){r->at, (size_t)(r->end - r->at)}, BYTES("\xEF\xBB\xBF")))
        return fail(r, r->at, "the text begins with a byte order mark; send it without");
    skip_space(r);
    TRY(read_value(r, 0));
    skip_space(r);
    if (r->at < r->end)
        return fail(r, r->at, "nothing may follow the JSON value");
    return OK;
}

enum status json_parse(struct bytes source, const struct json_limits *limits, struct arena *arena, struct json *ret_json,
                       struct why *why)
{
    struct reader r;
    if (source.len == 0)
        source = BYTES("");
    r.at = r.start = source.at;
    r.end = source.at + source.len;
    r.limits = limits != NULL ? *limits : json_limits_default;
    r.arena = arena;
    r.why = why;
    r.depth = r.members = 0;
    r.stack = r.stack_first;
    r.stack_len = 1;
    r.stack_cap = STACK_FIRST;
    enum status status = read_document(&r);
    if (status == OK)
        *ret_json = r.stack[0].value;
    if (r.stack != r.stack_first)
        free(r.stack);
    return status;
}

/* ---- looking things up ---- */

const char *json_type_name(enum json_type type)
{
    switch (type) {
    case JSON_NULL:
        return "null";
    case JSON_FALSE:
        return "false";
    case JSON_TRUE:
        return "true";
    case JSON_NUMBER:
        return "a number";
    case JSON_STRING:
        return "a string";
    case JSON_ARRAY:
        return "an array";
    case JSON_OBJECT:
        return "an object";
    }
    return "?";
}

const struct json *json_get(const struct json *json, struct bytes name)
{
    if (json == NULL || json->type != JSON_OBJECT)
        return NULL;
    for (uint32_t i = 0; i < json->count; i++)
        if (bytes_eq(json->members[i].name, name))
            return &json->members[i].value;
    return NULL;
}

static const struct json *find_step(const struct json *json, struct bytes step)
{
    uint64_t index;
    if (json->type != JSON_ARRAY)
        return json_get(json, step);
    return bytes_to_u64(step, &index) && index < json->count ? &json->items[index] : NULL;
}

const struct json *json_find(const struct json *json, struct bytes path)
{
    if (path.len == 0)
        return NULL;
    /* A point at the end leaves one more step, the empty name. */
    for (bool last = false; json != NULL && !last;) {
        last = path.len == 0 || memchr(path.at, '.', path.len) == NULL;
        json = find_step(json, bytes_cut(&path, '.'));
    }
    return json;
}

bool json_to_i64(const struct json *json, int64_t *ret_n)
{
    return json != NULL && json->type == JSON_NUMBER && bytes_to_i64(json->text, ret_n);
}

struct bytes json_get_text(const struct json *json, const char *name)
{
    const struct json *value = json_get(json, bytes_of(name));
    return value != NULL && value->type == JSON_STRING ? value->text : BYTES("");
}

struct bytes json_scalar(const struct json *json)
{
    if (json == NULL)
        return BYTES_NONE;
    switch (json->type) {
    case JSON_STRING:
    case JSON_NUMBER:
        return json->text;
    case JSON_TRUE:
        return BYTES("true");
    case JSON_FALSE:
        return BYTES("false");
    case JSON_NULL:
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    return BYTES_NONE;
}

int64_t json_get_i64(const struct json *json, const char *name)
{
    const struct json *value = json_get(json, bytes_of(name));
    int64_t n = 0;
    return value != NULL && json_to_i64(value, &n) ? n : 0;
}
