#include "fingerprint/fingerprint.h"

#include <stdlib.h>

#include "check.h"

static struct arena arena;

static void setup(void)
{
    hash_setup();
    arena_init(&arena, (size_t)64 << 20);
}

static struct json parse(const char *text)
{
    struct json_limits limits = {64, 100000, 1 << 20};
    struct json json;
    struct why why;
    if (json_parse(bytes_of(text), &limits, &arena, &json, &why) != OK)
        check_fail(__FILE__, __LINE__, "%s: %s", text, why.text);
    return json;
}

static struct fingerprint make(const struct json *input, const struct fingerprint_options *options)
{
    struct fingerprint print;
    struct why why;
    if (fingerprint_make(input, options, &arena, &print, &why) != OK)
        check_fail(__FILE__, __LINE__, "%s", why.text);
    return print;
}

static struct fingerprint make_text(const char *text)
{
    struct json input = parse(text);
    struct fingerprint_options options = {0};
    return make(&input, &options);
}

static struct bytes hex_of(struct hash hash)
{
    char hex[2 * HASH_SIZE];
    bytes_to_hex(hash_bytes(&hash), hex);
    return arena_dup(&arena, (struct bytes){hex, sizeof hex});
}

static struct bytes canonical(const struct json *value)
{
    struct buf buf;
    struct why why;
    buf_init(&buf, 1 << 20);
    CHECK_INT(json_canonical(value, &arena, &buf, &why), OK);
    struct bytes text = arena_dup(&arena, buf_bytes(&buf));
    buf_release(&buf);
    return text;
}

/* ---- the shared cases ---- */

static struct json read_cases(void)
{
    const char *source = getenv("SEMEL_SOURCE_DIR");
    char path[1024];
    if (source == NULL)
        SKIP("SEMEL_SOURCE_DIR is not set");
    setup();
    snprintf(path, sizeof path, "%s/sdk/conformance/fingerprints.json", source);
    return parse(check_read_file(path).at);
}

static struct bytes text_of(const struct json *object, const char *name)
{
    const struct json *value = json_get(object, bytes_of(name));
    return value != NULL ? value->text : BYTES_NONE;
}

static void check_print(const struct json *one)
{
    const struct json *ignore = json_get(one, BYTES("ignore")), *fields = json_get(one, BYTES("fields"));
    struct bytes ignored[8];
    struct fingerprint_options options = {text_of(one, "pepper"), ignored, ignore != NULL ? ignore->count : 0};
    for (size_t i = 0; i < options.ignore_count; i++)
        ignored[i] = ignore->items[i].text;
    const struct json *input = json_get(one, BYTES("input"));
    struct fingerprint print = make(input, &options);
    CHECK(bytes_eq(hex_of(print.whole), text_of(one, "whole")));
    CHECK(bytes_eq(hex_of(hash_sha256(text_of(one, "canonical"))), text_of(one, "sha256")));
    if (options.ignore_count == 0)
        CHECK(bytes_eq(canonical(input), text_of(one, "canonical")));
    if (fields != NULL)
        CHECK(bytes_eq(print.fields, canonical(fields)));
    else
        CHECK(print.fields.at == NULL);
}

TEST(fingerprints_agree_with_the_shared_conformance_cases)
{
    struct json file = read_cases();
    const struct json *cases = json_get(&file, BYTES("fingerprints"));
    CHECK(cases->count >= 20);
    for (uint32_t i = 0; i < cases->count; i++)
        check_print(&cases->items[i]);
}

TEST(downstream_keys_agree_with_the_shared_conformance_cases)
{
    struct json file = read_cases();
    const struct json *cases = json_get(&file, BYTES("downstream"));
    CHECK(cases->count >= 8);
    for (uint32_t i = 0; i < cases->count; i++) {
        const struct json *one = &cases->items[i];
        char key[DOWNSTREAM_KEY_SIZE + 1];
        downstream_key(text_of(one, "space"), text_of(one, "workflow"), text_of(one, "key"), key);
        CHECK_INT(strlen(key), DOWNSTREAM_KEY_SIZE);
        CHECK_TEXT(text_of(one, "downstream"), key);
    }
}

/* ---- promises ---- */

TEST(no_input_has_a_zero_fingerprint)
{
    static const struct hash zero;
    struct fingerprint_options options = {0};
    setup();
    struct fingerprint print = make(NULL, &options);
    CHECK(hash_equal(hash_bytes(&print.whole), hash_bytes(&zero)));
    CHECK(print.fields.at == NULL);
    struct fingerprint null = make_text("null");
    CHECK(!hash_equal(hash_bytes(&null.whole), hash_bytes(&zero)));
}

TEST(order_and_white_space_do_not_change_a_fingerprint)
{
    setup();
    struct fingerprint a = make_text("{\"a\":1,\"b\":[1.0,\"x\"]}"),
                       b = make_text(" { \"b\" : [ 1 , \"\\u0078\" ] , \"a\" : 1e0 } ");
    CHECK(hash_equal(hash_bytes(&a.whole), hash_bytes(&b.whole)));
    CHECK(bytes_eq(a.fields, b.fields));
}

TEST(a_pepper_changes_every_hash)
{
    setup();
    struct json input = parse("{\"a\":1}");
    struct fingerprint_options plain = {0}, peppered = {.pepper = BYTES("p")};
    struct fingerprint a = make(&input, &plain), b = make(&input, &peppered);
    CHECK(!hash_equal(hash_bytes(&a.whole), hash_bytes(&b.whole)));
    CHECK(!bytes_eq(a.fields, b.fields));
}

TEST(a_fingerprint_without_memory_is_full_and_leaves_the_result_alone)
{
    struct fingerprint_options options = {0};
    struct why why;
    setup();
    struct json input = parse("{\"a\":1,\"b\":{\"c\":[1,2,3]}}");
    for (size_t size = 0; size < 128; size += 16) {
        struct arena tight;
        struct fingerprint print = {.fields = BYTES("untouched")};
        arena_init(&tight, size);
        CHECK_INT(fingerprint_make(&input, &options, &tight, &print, &why), FULL);
        CHECK_TEXT(print.fields, "untouched");
        arena_release(&tight);
    }
}

TEST(a_number_beyond_a_double_is_invalid)
{
    struct fingerprint_options options = {0};
    struct fingerprint print;
    struct why why;
    setup();
    struct json input = parse("{\"a\":1e999}");
    CHECK_INT(fingerprint_make(&input, &options, &arena, &print, &why), INVALID);
}

static void check_differs(const char *before, const char *after, const char *want)
{
    struct bytes a = before != NULL ? make_text(before).fields : BYTES_NONE,
                 b = after != NULL ? make_text(after).fields : BYTES_NONE;
    struct bytes *names;
    size_t count;
    struct why why;
    struct buf got;
    CHECK_INT(fingerprint_differs(a, b, &arena, &names, &count, &why), OK);
    buf_init(&got, 4096);
    for (size_t i = 0; i < count; i++)
        buf_printf(&got, "%s%.*s", i > 0 ? "," : "", BYTES_ARG(names[i]));
    CHECK_TEXT(buf_bytes(&got), want);
    buf_release(&got);
}

TEST(a_difference_names_the_fields_in_canonical_order)
{
    setup();
    check_differs("{\"a\":1}", "{\"a\":1}", "");
    check_differs("{\"a\":1,\"b\":2}", "{\"b\":3,\"a\":1}", "b");
    check_differs("{\"a\":1,\"c\":2}", "{\"b\":1,\"c\":3}", "a,b,c");
    check_differs("{}", "{\"z\":1,\"a\":1}", "a,z");
    check_differs("{\"z\":1,\"a\":1}", "{}", "a,z");
    check_differs("{\"\\ue000\":1,\"\\ud83d\\ude00\":1,\"x\":1}", "{\"\\ue000\":2,\"\\ud83d\\ude00\":2,\"x\":1}", "😀,\ue000");
    check_differs("{\"\\ue000\":1,\"x\":1}", "{\"\\ue000\":1,\"\\ud83d\\ude00\":2,\"x\":1}", "😀");
    check_differs("{\"a\\\"b\":1}", "{\"a\\\"b\":2}", "a\"b");
}

TEST(a_difference_without_field_hashes_is_the_input)
{
    setup();
    check_differs(NULL, "{\"a\":1}", "(input)");
    check_differs("{\"a\":1}", NULL, "(input)");
    check_differs("[1]", "[2]", "(input)");
}

TEST(damaged_field_hashes_are_broken)
{
    struct bytes *names;
    size_t count;
    struct why why;
    setup();
    CHECK_INT(fingerprint_differs(BYTES("{"), BYTES("{}"), &arena, &names, &count, &why), BROKEN);
    CHECK_INT(fingerprint_differs(BYTES("{}"), BYTES("[]"), &arena, &names, &count, &why), BROKEN);
}

TEST(a_given_key_is_utf8_of_1_to_2048_bytes_without_nul)
{
    char longest[KEY_SIZE_MAX + 1];
    struct why why;
    memset(longest, 'k', sizeof longest);
    CHECK_INT(key_check(BYTES("k"), &why), OK);
    CHECK_INT(key_check(BYTES(" Zoë\t"), &why), OK);
    CHECK_INT(key_check((struct bytes){longest, KEY_SIZE_MAX}, &why), OK);
    CHECK_INT(key_check((struct bytes){longest, KEY_SIZE_MAX + 1}, &why), INVALID);
    CHECK_INT(key_check(BYTES(""), &why), INVALID);
    CHECK_INT(key_check(BYTES_NONE, &why), INVALID);
    CHECK_INT(key_check(BYTES("a\0b"), &why), INVALID);
    CHECK_INT(key_check(BYTES("a\xff"), &why), INVALID);
}
