#include "fingerprint/fingerprint.h"

#include <stdlib.h>

#include "fingerprint/key_text.h"

enum { FIELD_HEX_SIZE = 16, FIELDS_SIZE_MAX = 16 * 1024 };

enum status key_check(struct bytes key, struct why *why)
{
    if (key.len == 0)
        return why_set(why, INVALID, "the key is empty");
    if (key.len > KEY_SIZE_MAX)
        return why_set(why, INVALID, "the key has %zu bytes; at most %d are allowed: send a hash of it", key.len, KEY_SIZE_MAX);
    if (memchr(key.at, '\0', key.len) != NULL)
        return why_set(why, INVALID, "the key holds a NUL character");
    if (!bytes_is_utf8(key))
        return why_set(why, INVALID, "the key is not UTF-8");
    return OK;
}

void downstream_key(struct bytes space, struct bytes workflow, struct bytes key, char ret[DOWNSTREAM_KEY_SIZE + 1])
{
    struct bytes parts[] = {BYTES("semel-downstream-1"), space, workflow, key};
    struct hash hash = hash_parts(parts, sizeof parts / sizeof *parts);
    memcpy(ret, "sml-", 4);
    bytes_to_hex((struct bytes){(const char *)hash.at, (DOWNSTREAM_KEY_SIZE - 4) / 2}, ret + 4);
    ret[DOWNSTREAM_KEY_SIZE] = '\0';
}

/* ---- making ---- */

static bool is_ignored(struct bytes name, const struct fingerprint_options *options)
{
    for (size_t i = 0; i < options->ignore_count; i++)
        if (bytes_eq(name, options->ignore[i]))
            return true;
    return false;
}

static enum status no_memory(struct why *why)
{
    return why_set(why, FULL, "no memory for a fingerprint");
}

/* A shallow copy of the object without the ignored fields. */
static enum status covered_part(const struct json *object, const struct fingerprint_options *options, struct arena *arena,
                                struct json *ret_covered, struct why *why)
{
    struct json covered = {.type = JSON_OBJECT};
    covered.members = arena_zalloc(arena, object->count > 0 ? object->count : 1, sizeof *covered.members);
    if (covered.members == NULL)
        return no_memory(why);
    for (uint32_t i = 0; i < object->count; i++)
        if (!is_ignored(object->members[i].name, options))
            covered.members[covered.count++] = object->members[i];
    *ret_covered = covered;
    return OK;
}

static enum status hash_value(struct bytes pepper, const struct json *value, struct arena *arena, struct hash *ret_hash,
                              struct why *why)
{
    struct bytes text;
    TRY(key_canonical(value, arena, &text, why));
    struct bytes parts[] = {pepper, text};
    *ret_hash = hash_parts(parts, 2);
    return OK;
}

/* `ret` becomes the same name with the field's short hash as a JSON string. */
static enum status hash_member(struct bytes pepper, const struct json_member *member, struct arena *arena,
                               struct json_member *ret, struct why *why)
{
    struct bytes text;
    TRY(key_canonical(&member->value, arena, &text, why));
    struct bytes parts[] = {pepper, member->name, text};
    struct hash hash = hash_parts(parts, 3);
    char *hex = arena_alloc(arena, FIELD_HEX_SIZE);
    if (hex == NULL)
        return no_memory(why);
    bytes_to_hex((struct bytes){(const char *)hash.at, FIELD_HEX_SIZE / 2}, hex);
    ret->name = member->name;
    ret->value = (struct json){.type = JSON_STRING, .text = {hex, FIELD_HEX_SIZE}};
    return OK;
}

static enum status hash_fields(struct bytes pepper, const struct json *object, struct arena *arena, struct bytes *ret_fields,
                               struct why *why)
{
    struct json_member members[FINGERPRINT_FIELDS_MAX];
    if (object->count > FINGERPRINT_FIELDS_MAX) {
        *ret_fields = BYTES_NONE;
        return OK;
    }
    for (uint32_t i = 0; i < object->count; i++)
        TRY(hash_member(pepper, &object->members[i], arena, &members[i], why));
    struct json hashes = {.type = JSON_OBJECT, .count = object->count, .members = members};
    TRY(key_canonical(&hashes, arena, ret_fields, why));
    if (ret_fields->len > FIELDS_SIZE_MAX)
        *ret_fields = BYTES_NONE;
    return OK;
}

static enum status make_of_object(const struct json *input, const struct fingerprint_options *options, struct arena *arena,
                                  struct fingerprint *ret, struct why *why)
{
    struct json covered;
    TRY(covered_part(input, options, arena, &covered, why));
    TRY(hash_value(options->pepper, &covered, arena, &ret->whole, why));
    return hash_fields(options->pepper, &covered, arena, &ret->fields, why);
}

enum status fingerprint_make(const struct json *input, const struct fingerprint_options *options, struct arena *arena,
                             struct fingerprint *ret, struct why *why)
{
    struct fingerprint made = {.fields = BYTES_NONE};
    if (input != NULL && input->type == JSON_OBJECT)
        TRY(make_of_object(input, options, arena, &made, why));
    else if (input != NULL)
        TRY(hash_value(options->pepper, input, arena, &made.whole, why));
    *ret = made;
    return OK;
}

/* ---- comparing ---- */

/* RFC 8785 sorts by UTF-16 code units: there the characters beyond U+FFFF come before U+E000–FFFF, unlike in UTF-8. */
static int rank_of(unsigned char byte)
{
    return byte == 0xEE || byte == 0xEF ? byte + 0x10 : byte;
}

static int name_order(struct bytes a, struct bytes b)
{
    size_t shorter = a.len < b.len ? a.len : b.len;
    for (size_t i = 0; i < shorter; i++)
        if (a.at[i] != b.at[i])
            return rank_of((unsigned char)a.at[i]) - rank_of((unsigned char)b.at[i]);
    return a.len == b.len ? 0 : a.len < b.len ? -1 : 1;
}

static enum status parse_fields(struct bytes fields, struct arena *arena, struct json *ret_json, struct why *why)
{
    struct why reason;
    /* A name may have been as long as the input it came from. */
    struct json_limits limits = {.depth_max = 2, .members_max = FINGERPRINT_FIELDS_MAX, .text_max = fields.len};
    enum status status = json_parse(fields, &limits, arena, ret_json, &reason);
    if (status == INVALID || (status == OK && ret_json->type != JSON_OBJECT))
        return why_set(why, BROKEN, "stored field hashes are damaged");
    return status == OK ? OK : why_set(why, status, "%s", reason.text);
}

/* Both are in canonical order: walk them side by side. */
static size_t list_differences(const struct json *before, const struct json *after, struct bytes *ret_names)
{
    size_t count = 0;
    uint32_t b = 0, a = 0;
    while (b < before->count || a < after->count) {
        int order = b == before->count ? 1 : a == after->count ? -1 : name_order(before->members[b].name, after->members[a].name);
        if (order < 0)
            ret_names[count++] = before->members[b++].name;
        else if (order > 0)
            ret_names[count++] = after->members[a++].name;
        else if (!bytes_eq(before->members[b++].value.raw, after->members[a++].value.raw))
            ret_names[count++] = before->members[b - 1].name;
    }
    return count;
}

enum status fingerprint_differs(struct bytes before, struct bytes after, struct arena *arena, struct bytes **ret_names,
                                size_t *ret_count, struct why *why)
{
    struct json old = {.type = JSON_OBJECT}, new = {.type = JSON_OBJECT};
    bool by_field = before.at != NULL && after.at != NULL;
    if (by_field) {
        TRY(parse_fields(before, arena, &old, why));
        TRY(parse_fields(after, arena, &new, why));
    }
    struct bytes *names = arena_zalloc(arena, (size_t)old.count + new.count + 1, sizeof *names);
    if (names == NULL)
        return no_memory(why);
    names[0] = BYTES("(input)");
    *ret_count = by_field ? list_differences(&old, &new, names) : 1;
    *ret_names = names;
    return OK;
}
