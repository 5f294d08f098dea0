#include "base/hash.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "check.h"

static bool hash_is(struct hash hash, const char *hex)
{
    char text[2 * HASH_SIZE];
    bytes_to_hex(hash_bytes(&hash), text);
    return bytes_is((struct bytes){text, sizeof text}, hex);
}

TEST(hash_sha256_gives_the_published_values)
{
    hash_setup();
    hash_setup();
    CHECK(hash_is(hash_sha256(BYTES("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
    CHECK(hash_is(hash_sha256(BYTES_NONE), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
    CHECK(hash_is(hash_sha256(BYTES("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
}

TEST(hash_parts_writes_each_length_before_its_part)
{
    hash_setup();
    const struct bytes parts[] = {BYTES("ab"), BYTES("c")}, moved[] = {BYTES("a"), BYTES("bc")};
    struct hash direct = hash_sha256(BYTES("\0\0\0\0\0\0\0\2ab\0\0\0\0\0\0\0\1c"));
    struct hash left = hash_parts(parts, 2), right = hash_parts(moved, 2);
    CHECK(hash_equal(hash_bytes(&left), hash_bytes(&direct)));
    CHECK(!hash_equal(hash_bytes(&left), hash_bytes(&right)));
}

TEST(hash_equal_compares_the_whole_length)
{
    CHECK(hash_equal(BYTES("abc"), BYTES("abc")));
    CHECK(!hash_equal(BYTES("abc"), BYTES("abd")));
    CHECK(!hash_equal(BYTES("abc"), BYTES("ab")));
    CHECK(hash_equal(BYTES_NONE, BYTES("")));
}

TEST(hash_crc32_gives_the_published_check_value)
{
    hash_setup();
    CHECK_INT(hash_crc32(BYTES("123456789")), 0xCBF43926);
    CHECK_INT(hash_crc32(BYTES("")), 0);
}

TEST(hash_hmac_gives_the_rfc_4231_values)
{
    hash_setup();
    CHECK(hash_is(hash_hmac_sha256(BYTES("Jefe"), BYTES("what do ya want for nothing?")),
                  "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"));
    char key[131];
    memset(key, 0xaa, sizeof key);
    CHECK(hash_is(
        hash_hmac_sha256((struct bytes){key, sizeof key}, BYTES("Test Using Larger Than Block-Size Key - Hash Key First")),
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"));
}

static struct bytes unhex(struct arena *arena, struct bytes hex)
{
    char *at = arena_zalloc(arena, hex.len / 2 + 1, 1);
    for (size_t i = 0; i < hex.len / 2; i++) {
        char digits[3] = {hex.at[2 * i], hex.at[2 * i + 1]};
        at[i] = (char)strtol(digits, NULL, 16);
    }
    return (struct bytes){at, hex.len / 2};
}

static void check_vector(struct arena *arena, const struct json *vector)
{
    struct hash hash =
        hash_hmac_sha256(unhex(arena, json_get(vector, BYTES("key"))->text), unhex(arena, json_get(vector, BYTES("msg"))->text));
    struct bytes tag = unhex(arena, json_get(vector, BYTES("tag"))->text);
    CHECK(tag.len <= HASH_SIZE);
    bool equal = hash_equal((struct bytes){(const char *)hash.at, tag.len}, tag);
    CHECK(equal == bytes_is(json_get(vector, BYTES("result"))->text, "valid"));
}

TEST(hash_hmac_agrees_with_wycheproof)
{
    char path[1024];
    if (check_data_dir() == NULL)
        SKIP("no shared test data");
    hash_setup();
    snprintf(path, sizeof path, "%s/protocol/wycheproof/hmac_sha256_test.json", check_data_dir());
    struct arena arena;
    arena_init(&arena, 1 << 24);
    struct json json;
    struct why why;
    struct bytes file = check_read_file(path);
    if (json_parse(file, NULL, &arena, &json, &why) != OK)
        check_fail(__FILE__, __LINE__, "%s", why.text);
    const struct json *groups = json_get(&json, BYTES("testGroups"));
    size_t count = 0;
    for (uint32_t group = 0; group < groups->count; group++) {
        const struct json *tests = json_get(&groups->items[group], BYTES("tests"));
        for (uint32_t i = 0; i < tests->count; i++, count++)
            check_vector(&arena, &tests->items[i]);
    }
    CHECK_INT(count, 174);
    arena_release(&arena);
    free((char *)file.at);
}

static void *hash_often(void *unused)
{
    for (int i = 0; i < 1000; i++)
        CHECK(hash_is(hash_sha256(BYTES("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    return unused;
}

TEST(hash_may_be_called_by_every_thread)
{
    pthread_t threads[8];
    hash_setup();
    for (int i = 0; i < 8; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, hash_often, NULL), 0);
    for (int i = 0; i < 8; i++)
        CHECK_INT(pthread_join(threads[i], NULL), 0);
}

TEST(a_uuid_of_version_5_is_the_published_one)
{
    static const uint8_t dns[16] = {0x6b, 0xa7, 0xb8, 0x10, 0x9d, 0xad, 0x11, 0xd1,
                                    0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8};
    char text[37];
    hash_setup();
    hash_uuid5(dns, BYTES("www.example.com"), text);
    CHECK_TEXT(bytes_of(text), "2ed6657d-e927-568b-95e1-2665a8aea6a2");
    hash_uuid5(dns, BYTES(""), text);
    CHECK_INT(text[14], '5');
}
