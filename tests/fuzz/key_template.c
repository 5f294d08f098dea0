/*
 * Key templates. The input is lines: the template, the path of the time, the zone, and two JSON inputs. Two inputs give the same
 * key exactly when every placeholder stands for the same value in both: a key never joins two things, and never splits one.
 */
#include "fuzz.h"

#include "fingerprint/key_parts.h"
#include "fingerprint/key_text.h"

enum { NOW_US = 0 };

struct filled {
    enum status status;
    struct bytes key;
};

static struct filled fill(const struct key_template *template, const struct json *input, struct arena *arena)
{
    struct why why = {""};
    struct bytes field = BYTES_NONE;
    struct filled filled = {.key = BYTES_NONE};
    filled.status = key_template_fill(template, input, NOW_US, arena, &filled.key, &field, &why);
    ASSERT(filled.status == OK || filled.status == INVALID);
    ASSERT((filled.status == OK) == (filled.key.at != NULL));
    if (filled.status == INVALID) {
        ASSERT(why.text[0] != '\0');
        return filled;
    }
    /* A key made here is one that callers could send. */
    ASSERT(key_check(filled.key, &why) == OK);
    return filled;
}

/* What one placeholder alone makes of an input. */
static struct filled fill_alone(const struct key_part *part, const struct key_options *options, const struct json *input,
                                struct arena *arena)
{
    struct key_template *alone;
    struct why why;
    ASSERT(key_template_compile(part->source, options, arena, &alone, &why) == OK);
    ASSERT(alone->part_count == 1);
    struct filled filled = fill(alone, input, arena);
    key_template_free(alone);
    return filled;
}

/* Undoes the escapes; every '%' in a value begins one. */
static struct bytes unescape(struct bytes key, struct arena *arena)
{
    char *at = arena_alloc(arena, key.len + 1);
    size_t len = 0;
    ASSERT(at != NULL);
    for (size_t i = 0; i < key.len; i++) {
        if (key.at[i] != '%') {
            at[len++] = key.at[i];
            continue;
        }
        ASSERT(i + 2 < key.len);
        char hex[3] = {key.at[i + 1], key.at[i + 2], '\0'};
        ASSERT(strspn(hex, "0123456789ABCDEF") == 2);
        at[len++] = (char)strtoul(hex, NULL, 16);
        i += 2;
    }
    return (struct bytes){at, len};
}

/* The key of a field alone is its text, escaped and nothing more. */
static void check_field(const struct key_part *part, const struct json *input, struct bytes key, struct arena *arena)
{
    struct bytes text;
    struct why why;
    const struct json *value = json_find(input, part->text);
    ASSERT(value != NULL);
    ASSERT(key_value_text(value, arena, &text, &why) == OK);
    ASSERT(bytes_eq(unescape(key, arena), text));
}

static void check_pair(const struct key_template *template, const struct key_options *options, const struct json inputs[2],
                       struct arena *arena)
{
    struct filled a = fill(template, &inputs[0], arena), b = fill(template, &inputs[1], arena);
    if (a.status != OK || b.status != OK)
        return;
    bool same = true;
    for (size_t i = 0; i < template->part_count; i++) {
        const struct key_part *part = &template->parts[i];
        if (part->kind == PART_LITERAL)
            continue;
        struct filled left = fill_alone(part, options, &inputs[0], arena), right = fill_alone(part, options, &inputs[1], arena);
        ASSERT(left.status == OK);
        ASSERT(right.status == OK);
        same = same && bytes_eq(left.key, right.key);
        if (part->kind == PART_FIELD)
            check_field(part, &inputs[0], left.key, arena);
    }
    ASSERT(bytes_eq(a.key, b.key) == same);
}

static const char *zone_of(struct bytes line, char *room, size_t size)
{
    if (line.len == 0 || line.len >= size || memchr(line.at, '\0', line.len) != NULL)
        return NULL;
    memcpy(room, line.at, line.len);
    room[line.len] = '\0';
    return room;
}

FUZZ_TARGET(key_template)(const uint8_t *data, size_t size)
{
    struct bytes rest = fuzz_bytes(data, size < FUZZ_SIZE_MAX ? size : FUZZ_SIZE_MAX);
    struct bytes text = bytes_cut(&rest, '\n');
    struct bytes time_path = bytes_cut(&rest, '\n');
    struct bytes zone_line = bytes_cut(&rest, '\n');
    struct bytes lines[2] = {bytes_cut(&rest, '\n'), rest};
    char zone[ZONE_NAME_MAX + 1];
    struct key_options options = {zone_of(zone_line, zone, sizeof zone), time_path.len > 0 ? time_path : BYTES_NONE};
    struct key_template *template = NULL;
    struct json inputs[2];
    struct why why = {""};
    struct arena arena;
    hash_setup();
    arena_init(&arena, FUZZ_ARENA_MAX);
    enum status status = key_template_compile(text, &options, &arena, &template, &why);
    ASSERT(status == OK || status == INVALID);
    ASSERT((status == OK) == (template != NULL));
    ASSERT((status == OK) == (why.text[0] == '\0'));
    if (status == OK) {
        fill(template, NULL, &arena);
        if (json_parse(lines[0], NULL, &arena, &inputs[0], &why) == OK &&
            json_parse(lines[1], NULL, &arena, &inputs[1], &why) == OK)
            check_pair(template, &options, inputs, &arena);
    }
    key_template_free(template);
    arena_release(&arena);
    return 0;
}
