/*
 * Filling a compiled template. The caller learns which field was missing or unusable, never what was in it.
 */
#include "fingerprint/key_parts.h"
#include "fingerprint/key_text.h"
#include "fingerprint/key_time.h"

struct filling {
    const struct key_template *template;
    const struct json *input;
    int64_t now_us;
    struct arena *arena;
    struct why *why;
    struct key_out out;
    struct key_time event;
    struct bytes field; /* the one being read */
};

static enum status refuse_field(struct filling *fill, enum status status, const struct why *reason)
{
    struct bytes name = key_clip(fill->field);
    if (status != INVALID)
        return why_set(fill->why, status, "%s", reason->text);
    return why_set(fill->why, INVALID, "the key cannot be made: field '%.*s' %s", BYTES_ARG(name), reason->text);
}

static enum status find_field(struct filling *fill, struct bytes path, const struct json **ret_value)
{
    fill->field = path;
    const struct json *value = fill->input != NULL ? json_find(fill->input, path) : NULL;
    if (value == NULL) {
        struct why reason = {"is missing from the input"};
        return refuse_field(fill, INVALID, &reason);
    }
    *ret_value = value;
    return OK;
}

static enum status fill_field(struct filling *fill, const struct key_part *part)
{
    const struct json *value = NULL;
    struct bytes text;
    struct why reason;
    TRY(find_field(fill, part->text, &value));
    enum status status = key_value_text(value, fill->arena, &text, &reason);
    if (status != OK)
        return refuse_field(fill, status, &reason);
    key_out_value(&fill->out, text, part->follow);
    return OK;
}

/* What would hash to the same value for everybody leaves a hole in the key as much as an empty text. */
static bool is_hollow(const struct json *value)
{
    switch (value->type) {
    case JSON_NULL:
        return true;
    case JSON_ARRAY:
    case JSON_OBJECT:
        return value->count == 0;
    case JSON_STRING:
        return key_is_blank(value->text);
    case JSON_NUMBER:
    case JSON_TRUE:
    case JSON_FALSE:
        return false;
    }
    return true;
}

static enum status fill_hash(struct filling *fill, const struct key_part *part)
{
    enum { DIGITS = 32 };
    const struct json *value = fill->input;
    struct bytes text;
    struct why reason = {"is empty; a key with a hole in it would be too broad"};
    fill->field = BYTES("(input)");
    if (part->text.len > 0)
        TRY(find_field(fill, part->text, &value));
    if (value == NULL)
        return why_set(fill->why, INVALID, "the key cannot be made: %.*s needs an input", BYTES_ARG(part->source));
    if (is_hollow(value))
        return refuse_field(fill, INVALID, &reason);
    enum status status = key_canonical(value, fill->arena, &text, &reason);
    if (status != OK)
        return refuse_field(fill, status, &reason);
    struct hash hash = hash_sha256(text);
    char hex[2 * HASH_SIZE];
    bytes_to_hex(hash_bytes(&hash), hex);
    key_out_literal(&fill->out, (struct bytes){hex, DIGITS});
    return OK;
}

static enum status fill_today(struct filling *fill, const struct key_part *part)
{
    struct key_time now;
    struct why reason;
    enum status status = key_time_at(fill->now_us, &fill->template->zone, &now, &reason);
    if (status != OK)
        return why_set(fill->why, status, "the key cannot be made: the server's clock %s", reason.text);
    key_time_write(part, now, &fill->out);
    return OK;
}

static enum status fill_part(struct filling *fill, const struct key_part *part)
{
    switch (part->kind) {
    case PART_LITERAL:
        key_out_literal(&fill->out, part->text);
        return OK;
    case PART_FIELD:
        return fill_field(fill, part);
    case PART_HASH:
        return fill_hash(fill, part);
    case PART_TODAY:
        return fill_today(fill, part);
    case PART_DAY:
    case PART_WEEK:
    case PART_MONTH:
    case PART_QUARTER:
    case PART_YEAR:
    case PART_HOUR:
    case PART_WINDOW:
    case PART_BILLING:
        key_time_write(part, fill->event, &fill->out);
        return OK;
    }
    return why_set(fill->why, BROKEN, "a key part of no known kind");
}

static enum status read_event_time(struct filling *fill)
{
    const struct json *value = NULL;
    struct why reason;
    if (fill->template->time_path.at == NULL)
        return OK;
    TRY(find_field(fill, fill->template->time_path, &value));
    enum status status = key_time_read(value, &fill->template->zone, fill->arena, &fill->event, &reason);
    return status == OK ? OK : refuse_field(fill, status, &reason);
}

static enum status fill_parts(struct filling *fill)
{
    TRY(read_event_time(fill));
    for (size_t i = 0; i < fill->template->part_count; i++) {
        TRY(fill_part(fill, &fill->template->parts[i]));
        if (fill->out.full)
            return why_set(fill->why, INVALID, "the key is longer than %d bytes; use {hash:…} for the long field", KEY_SIZE_MAX);
    }
    return OK;
}

enum status key_template_fill(const struct key_template *template, const struct json *input, int64_t now_us, struct arena *arena,
                              struct bytes *ret_key, struct bytes *ret_field, struct why *why)
{
    struct filling fill = {.template = template, .input = input, .now_us = now_us, .arena = arena, .why = why};
    enum status status = fill_parts(&fill);
    if (status == INVALID && ret_field != NULL)
        *ret_field = fill.field;
    if (status != OK)
        return status;
    struct bytes key = arena_dup(arena, (struct bytes){fill.out.at, fill.out.len});
    if (key.at == NULL)
        return why_set(why, FULL, "no memory for a key");
    *ret_key = key;
    return OK;
}
