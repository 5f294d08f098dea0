#include "destination/fixture_test.h"

static const struct {
    struct key_codec codec;
    const char *want;
} vectors[] = {
    {{CODEC_PLAIN, 0, {NULL, 0}}, TEST_KEY},
    {{CODEC_PLAIN, 36, {NULL, 0}}, TEST_KEY},
    {{CODEC_PLAIN, 0, {"a-z0-9", 6}}, "sml_0123456789abcdef0123456789abcdef"},
    {{CODEC_PLAIN, 0, {"a-z0-9-", 7}}, TEST_KEY},
    {{CODEC_PLAIN, 0, {"A-Za-z0-9_:-", 12}}, TEST_KEY},
    {{CODEC_UUID, 0, {NULL, 0}}, TEST_UUID},
    {{CODEC_HEX, 0, {NULL, 0}}, "0ddfcf9cb0f3e0637432fd8f41876205c05ee5dd0a77afee937ecc35137fcd81"},
    {{CODEC_HEX, 40, {NULL, 0}}, "0ddfcf9cb0f3e0637432fd8f41876205c05ee5dd"},
    {{CODEC_BASE32, 0, {NULL, 0}}, "1qfwz75gyfg66x1jzp7m31v20q05xsex19vtzvmkfv63a4vzsp0g"},
    {{CODEC_BASE32, 25, {NULL, 0}}, "1qfwz75gyfg66x1jzp7m31v20"},
    {{CODEC_BASE32, 16, {NULL, 0}}, "1qfwz75gyfg66x1j"},
    {{CODEC_MESSAGE_ID, 0, {NULL, 0}}, "<" TEST_KEY "@example.com>"},
};

TEST(each_codec_writes_the_key_as_its_vector_says)
{
    struct arena arena;
    struct bytes got;
    hash_setup();
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        CHECK_INT(key_encode(&vectors[i].codec, BYTES(TEST_KEY), BYTES("example.com"), &arena, &got, NULL), OK);
        CHECK_TEXT(got, vectors[i].want);
        struct bytes again;
        CHECK_INT(key_encode(&vectors[i].codec, BYTES(TEST_KEY), BYTES("example.com"), &arena, &again, NULL), OK);
        CHECK(bytes_eq(got, again));
    }
    arena_release(&arena);
}

TEST(another_key_is_another_text_in_every_codec)
{
    struct arena arena;
    hash_setup();
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        struct bytes got;
        CHECK_INT(key_encode(&vectors[i].codec, BYTES("sml-0123456789abcdef0123456789abcdee"), BYTES("example.com"), &arena, &got,
                             NULL),
                  OK);
        CHECK(!bytes_is(got, vectors[i].want));
    }
    arena_release(&arena);
}

TEST(a_key_is_never_cut_where_cutting_makes_two_keys_one)
{
    struct arena arena;
    struct bytes got = BYTES_NONE;
    struct why why;
    hash_setup();
    arena_init(&arena, 1 << 20);
    struct key_codec plain = {CODEC_PLAIN, 20, {NULL, 0}}, uuid = {CODEC_UUID, 35, {NULL, 0}};
    CHECK_INT(key_encode(&plain, BYTES(TEST_KEY), BYTES_NONE, &arena, &got, &why), INVALID);
    CHECK(strstr(why.text, "base32") != NULL);
    CHECK_INT(key_encode(&uuid, BYTES(TEST_KEY), BYTES_NONE, &arena, &got, &why), INVALID);
    CHECK(got.at == NULL);
    arena_release(&arena);
}

TEST(a_message_id_has_a_domain_even_without_a_sender)
{
    struct arena arena;
    struct bytes got;
    hash_setup();
    arena_init(&arena, 1 << 20);
    CHECK_INT(key_encode(&(struct key_codec){.kind = CODEC_MESSAGE_ID}, BYTES(TEST_KEY), BYTES(""), &arena, &got, NULL), OK);
    CHECK_TEXT(got, "<" TEST_KEY "@semel.invalid>");
    arena_release(&arena);
}
