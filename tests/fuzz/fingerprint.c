/*
 * Fingerprints of two JSON inputs on two lines: they are equal exactly when the canonical forms are; the fields that are named as different
 * are exactly those that are; an ignored field changes nothing. Field hashes read from storage may be damaged: that is said, not believed.
 */
#include "fuzz.h"

#include "fingerprint/fingerprint.h"
#include "fingerprint/key_text.h"

static const struct bytes pepper = {"pepper", 6};

static bool same_value(const struct json *a, const struct json *b, struct arena *arena)
{
    struct bytes left, right;
    struct why why;
    if (a == NULL || b == NULL)
        return a == b;
    ASSERT(key_canonical(a, arena, &left, &why) == OK);
    ASSERT(key_canonical(b, arena, &right, &why) == OK);
    return bytes_eq(left, right);
}

static bool is_among(struct bytes name, const struct bytes *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes_eq(name, names[i]))
            return true;
    return false;
}

/* Every member of `a` is named exactly when `b` has it not or otherwise. */
static void check_named(const struct json *a, const struct json *b, const struct bytes *names, size_t count, struct arena *arena)
{
    for (uint32_t i = 0; i < a->count; i++) {
        const struct json_member *member = &a->members[i];
        bool same = same_value(&member->value, json_get(b, member->name), arena);
        ASSERT(is_among(member->name, names, count) == !same);
    }
}

static void check_differs(const struct json inputs[2], const struct fingerprint made[2], struct arena *arena)
{
    struct bytes *names = NULL;
    size_t count = 0;
    struct why why;
    ASSERT(fingerprint_differs(made[0].fields, made[1].fields, arena, &names, &count, &why) == OK);
    if (made[0].fields.at == NULL || made[1].fields.at == NULL) {
        ASSERT(count == 1);
        ASSERT(bytes_is(names[0], "(input)"));
        return;
    }
    check_named(&inputs[0], &inputs[1], names, count, arena);
    check_named(&inputs[1], &inputs[0], names, count, arena);
    ASSERT((count == 0) == bytes_eq(hash_bytes(&made[0].whole), hash_bytes(&made[1].whole)));
}

static void check_ignored(const struct json *input, struct arena *arena)
{
    struct json without = *input;
    struct fingerprint left, right;
    struct why why;
    if (input->type != JSON_OBJECT || input->count == 0)
        return;
    const struct fingerprint_options all = {.pepper = pepper};
    const struct fingerprint_options some = {
        .pepper = pepper, .ignore = &input->members[input->count - 1].name, .ignore_count = 1};
    without.count--;
    ASSERT(fingerprint_make(input, &some, arena, &left, &why) == OK);
    ASSERT(fingerprint_make(&without, &all, arena, &right, &why) == OK);
    ASSERT(bytes_eq(hash_bytes(&left.whole), hash_bytes(&right.whole)));
    ASSERT(bytes_eq(left.fields, right.fields));
}

static bool read_input(struct bytes text, struct arena *arena, struct json *ret_input, struct fingerprint *ret)
{
    const struct fingerprint_options options = {.pepper = pepper};
    struct why why;
    return json_parse(text, NULL, arena, ret_input, &why) == OK && fingerprint_make(ret_input, &options, arena, ret, &why) == OK;
}

static void check_damaged(struct bytes before, struct bytes after, struct arena *arena)
{
    struct bytes *names = NULL;
    size_t count = 0;
    struct why why = {""};
    enum status status = fingerprint_differs(before, after, arena, &names, &count, &why);
    ASSERT(status == OK || status == BROKEN);
    ASSERT((status == OK) == (names != NULL));
    for (size_t i = 0; i < count; i++)
        ASSERT(bytes_is_utf8(names[i]));
}

FUZZ_TARGET(fingerprint)(const uint8_t *data, size_t size)
{
    struct bytes rest = fuzz_bytes(data, size < FUZZ_SIZE_MAX / 4 ? size : FUZZ_SIZE_MAX / 4);
    struct bytes lines[2] = {bytes_cut(&rest, '\n'), rest};
    struct json inputs[2];
    struct fingerprint made[2];
    struct arena arena;
    hash_setup();
    arena_init(&arena, FUZZ_ARENA_MAX);
    check_damaged(lines[0], lines[1], &arena);
    if (read_input(lines[0], &arena, &inputs[0], &made[0]) && read_input(lines[1], &arena, &inputs[1], &made[1])) {
        bool same = bytes_eq(hash_bytes(&made[0].whole), hash_bytes(&made[1].whole));
        ASSERT(same == same_value(&inputs[0], &inputs[1], &arena));
        check_differs(inputs, made, &arena);
        check_ignored(&inputs[0], &arena);
    }
    arena_release(&arena);
    return 0;
}
