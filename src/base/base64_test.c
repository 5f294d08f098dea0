#include "base/base64.h"

#include "check.h"

TEST(rfc_4648_vectors_both_ways)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"},
                                           {"\xff\xfe\xfd", "//79"}};
    struct arena arena;
    arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        CHECK_TEXT(base64_encode(bytes_of(pairs[i][0]), &arena), pairs[i][1]);
        CHECK_TEXT(base64_decode(bytes_of(pairs[i][1]), &arena), pairs[i][0]);
    }
    arena_release(&arena);
}

TEST(what_is_not_exact_is_refused)
{
    static const char *const bad[] = {
        "Z", "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "Zm 9", "Zm9v\n", "=m9v", "Zm=v", "Z===", "Zm9-"};
    struct arena arena;
    arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(base64_decode(bytes_of(bad[i]), &arena).at == NULL);
    arena_release(&arena);
}
