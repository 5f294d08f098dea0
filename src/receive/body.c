/* The body as JSON, whatever it was: JSON, a form or plain text. */
#include <stdlib.h>

#include "base/percent.h"
#include "receive/receive_own.h"

enum { PARAMS_MAX = 1000, PART_HEAD_MAX = 8192 };

static const struct json_limits body_limits = {64, 200000, SOURCE_BODY_MAX};

/* ---- forms ---- */

static struct bytes decode(struct bytes text, struct arena *arena)
{
    char *at = arena_alloc(arena, text.len + 1);
    size_t len;
    return at != NULL && percent_decode(text, true, at, &len) ? (struct bytes){at, len} : BYTES_NONE;
}

static size_t count_params(struct bytes text)
{
    size_t count = 1;
    for (size_t i = 0; i < text.len; i++)
        count += text.at[i] == '&';
    return count;
}

enum status params_read(struct bytes text, struct arena *arena, struct pair **ret, size_t *ret_count, struct why *why)
{
    size_t count = 0, max = count_params(text);
    if (max > PARAMS_MAX)
        return why_set(why, INVALID, "there are more than %d parameters", PARAMS_MAX);
    struct pair *pairs = arena_zalloc(arena, max, sizeof *pairs);
    if (pairs == NULL)
        return why_set(why, FULL, "there is no memory for the parameters");
    while (text.len > 0) {
        struct bytes value = bytes_cut(&text, '&'), name = bytes_cut(&value, '=');
        if (name.len == 0 && value.len == 0)
            continue;
        pairs[count].name = decode(name, arena);
        pairs[count].value = decode(value, arena);
        if (arena->failed)
            return why_set(why, FULL, "there is no memory for the parameters");
        if (pairs[count].name.at == NULL || pairs[count].value.at == NULL)
            return why_set(why, INVALID, "a parameter is badly escaped or not UTF-8");
        count++;
    }
    *ret = pairs;
    *ret_count = count;
    return OK;
}

/* The value of a parameter of a header: boundary=x, name="y". */
static struct bytes parameter(struct bytes header, const char *name)
{
    while (header.len > 0) {
        struct bytes value = bytes_trim(bytes_cut(&header, ';')), key = bytes_trim(bytes_cut(&value, '='));
        value = bytes_trim(value);
        if (value.len >= 2 && value.at[0] == '"' && value.at[value.len - 1] == '"')
            value = (struct bytes){value.at + 1, value.len - 2};
        if (bytes_eq_nocase(key, bytes_of(name)))
            return value;
    }
    return BYTES_NONE;
}

static struct bytes cut_line(struct bytes *rest)
{
    struct bytes line = bytes_cut(rest, '\n');
    if (line.len > 0 && line.at[line.len - 1] == '\r')
        line.len--;
    return line;
}

/* The name of a part, and for a file its name; moves `part` behind its head. */
static struct bytes part_name(struct bytes *part, struct bytes *ret_file)
{
    struct bytes name = BYTES_NONE, head = *part;
    *ret_file = BYTES_NONE;
    for (struct bytes line = cut_line(part); line.len > 0; line = cut_line(part)) {
        struct bytes value = line, field = bytes_cut(&value, ':');
        if ((size_t)(part->at - head.at) > PART_HEAD_MAX)
            return BYTES_NONE;
        if (!bytes_eq_nocase(bytes_trim(field), BYTES("content-disposition")))
            continue;
        name = parameter(value, "name");
        *ret_file = parameter(value, "filename");
    }
    return name;
}

static enum status add_part(struct bytes part, struct scope *scope, struct why *why)
{
    struct bytes file, name = part_name(&part, &file);
    if (name.at == NULL)
        return OK;
    if (scope->form_count == PARAMS_MAX)
        return why_set(why, INVALID, "there are more than %d fields", PARAMS_MAX);
    struct bytes value = file.at != NULL ? file : part; /* of a file, its name says enough */
    if (!bytes_is_utf8(name) || !bytes_is_utf8(value))
        return why_set(why, INVALID, "a field of the form is not UTF-8");
    scope->form[scope->form_count++] = (struct pair){name, value};
    return OK;
}

static enum status multipart_read(struct bytes type, struct scope *scope, struct why *why)
{
    struct bytes boundary = parameter(type, "boundary"), rest = scope->request->body;
    if (boundary.len == 0 || boundary.len > 70)
        return why_set(why, INVALID, "the form has no boundary");
    struct bytes mark = arena_printf(scope->arena, "\r\n--%.*s", BYTES_ARG(boundary));
    scope->form = arena_zalloc(scope->arena, PARAMS_MAX, sizeof *scope->form);
    if (mark.at == NULL || scope->form == NULL)
        return why_set(why, FULL, "there is no memory for the form");
    if (!bytes_starts(rest, bytes_from(mark, 2)))
        return why_set(why, INVALID, "the form does not begin with its boundary");
    rest = bytes_from(rest, mark.len - 2);
    while (!bytes_starts(rest, BYTES("--"))) {
        (void)cut_line(&rest);
        const char *end = rest.len > 0 ? memmem(rest.at, rest.len, mark.at, mark.len) : NULL;
        if (end == NULL)
            return why_set(why, INVALID, "the form ends before its last boundary");
        TRY(add_part((struct bytes){rest.at, (size_t)(end - rest.at)}, scope, why));
        rest = bytes_from(rest, (size_t)(end - rest.at) + mark.len);
    }
    return OK;
}

static int pairs_by_name(const void *a, const void *b)
{
    const struct pair *x = *(const struct pair *const *)a, *y = *(const struct pair *const *)b;
    int order = bytes_cmp(x->name, y->name);
    return order != 0 ? order : (x > y) - (x < y);
}

/* Fields of one name become a list. */
static enum status form_as_json(struct scope *scope, struct json *ret, struct why *why)
{
    size_t count = scope->form_count;
    const struct pair **sorted = arena_zalloc(scope->arena, count + 1, sizeof *sorted);
    struct json_member *members = arena_zalloc(scope->arena, count + 1, sizeof *members);
    struct json *values = arena_zalloc(scope->arena, count + 1, sizeof *values);
    if (sorted == NULL || members == NULL || values == NULL)
        return why_set(why, FULL, "there is no memory for the form");
    for (size_t i = 0; i < count; i++)
        sorted[i] = &scope->form[i];
    if (count > 0)
        qsort(sorted, count, sizeof *sorted, pairs_by_name);
    *ret = (struct json){.type = JSON_OBJECT, .members = members};
    for (size_t i = 0, n = 0; i < count; i = n) {
        for (n = i; n < count && bytes_eq(sorted[n]->name, sorted[i]->name); n++)
            values[n] = (struct json){.type = JSON_STRING, .text = sorted[n]->value};
        struct json list = {.type = JSON_ARRAY, .count = (uint32_t)(n - i), .items = &values[i]};
        members[ret->count++] = (struct json_member){sorted[i]->name, n - i > 1 ? list : values[i]};
    }
    return OK;
}

/* ---- any body ---- */

enum body_kind { BODY_JSON, BODY_FORM, BODY_MULTIPART, BODY_MAIL, BODY_TEXT, BODY_OTHER };

static bool ends(struct bytes text, struct bytes end)
{
    return text.len >= end.len && bytes_eq_nocase(bytes_from(text, text.len - end.len), end);
}

static enum body_kind kind_of(struct bytes type)
{
    static const struct {
        struct bytes media;
        enum body_kind kind;
    } kinds[] = {
        {{"application/json", 16}, BODY_JSON},
        {{"application/x-www-form-urlencoded", 33}, BODY_FORM},
        {{"multipart/form-data", 19}, BODY_MULTIPART},
        {{"message/rfc822", 14}, BODY_MAIL},
        {{"text/plain", 10}, BODY_TEXT},
    };
    struct bytes media = bytes_trim(bytes_cut(&type, ';'));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (bytes_eq_nocase(media, kinds[i].media))
            return kinds[i].kind;
    return ends(media, BYTES("+json")) ? BODY_JSON : BODY_OTHER;
}

static struct bytes content_type(const struct scope *scope)
{
    struct bytes type = scope_header(scope, BYTES("content-type"), NULL);
    return type.at != NULL ? type : BYTES("");
}

bool body_is_mail(enum source_reads reads, const struct scope *scope)
{
    return reads == READS_MAIL || (reads == READS_AUTO && kind_of(content_type(scope)) == BODY_MAIL);
}

static enum body_kind wanted_kind(enum source_reads reads, enum body_kind kind)
{
    if (reads == READS_JSON)
        return BODY_JSON;
    if (reads == READS_FORM)
        return kind == BODY_MULTIPART ? BODY_MULTIPART : BODY_FORM;
    return kind;
}

static enum status text_as_json(struct scope *scope, struct json *ret, struct why *why)
{
    static const struct bytes name = {"text", 4};
    struct json_member *member = arena_zalloc(scope->arena, 1, sizeof *member);
    if (member == NULL)
        return why_set(why, FULL, "there is no memory for the text");
    if (!bytes_is_utf8(scope->request->body))
        return why_set(why, INVALID, "the text is not UTF-8");
    *member = (struct json_member){name, {.type = JSON_STRING, .text = scope->request->body}};
    *ret = (struct json){.type = JSON_OBJECT, .count = 1, .members = member};
    return OK;
}

static enum status read_kind(enum body_kind kind, struct scope *scope, struct json *ret, struct why *why)
{
    if (kind == BODY_OTHER && scope->request->body.len == 0) { /* all of it is in the headers */
        *ret = (struct json){.type = JSON_OBJECT};
        return OK;
    }
    switch (kind) {
    case BODY_JSON:
        return json_parse(scope->request->body, &body_limits, scope->arena, ret, why);
    case BODY_FORM:
        TRY(params_read(scope->request->body, scope->arena, &scope->form, &scope->form_count, why));
        scope->is_form = true;
        return form_as_json(scope, ret, why);
    case BODY_MULTIPART:
        TRY(multipart_read(content_type(scope), scope, why));
        return form_as_json(scope, ret, why);
    case BODY_TEXT:
        return text_as_json(scope, ret, why);
    case BODY_MAIL:
    case BODY_OTHER:
        break;
    }
    return why_set(why, INVALID, "the Content-Type says nothing that is read here; send application/json or a form");
}

enum status body_read(enum source_reads reads, struct scope *scope, struct why *why)
{
    if (scope->body != NULL)
        return OK;
    struct json *json = arena_zalloc(scope->arena, 1, sizeof *json);
    if (json == NULL)
        return why_set(why, FULL, "there is no memory for the body");
    TRY(read_kind(wanted_kind(reads, kind_of(content_type(scope))), scope, json, why));
    scope->body = scope->item = json;
    return OK;
}
