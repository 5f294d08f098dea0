#include "base/arena.h"

#include "check.h"

TEST(arena_memory_is_aligned_and_does_not_overlap)
{
    struct arena arena;
    arena_init(&arena, 1 << 22);
    unsigned char *taken[500];
    for (size_t i = 0; i < 500; i++) {
        taken[i] = arena_alloc(&arena, i * 7);
        CHECK(taken[i] != NULL);
        CHECK_INT((uintptr_t)taken[i] % 16, 0);
        memset(taken[i], (int)(i & 255), i * 7);
    }
    for (size_t i = 0; i < 500; i++)
        for (size_t at = 0; at < i * 7; at++)
            CHECK(taken[i][at] == (i & 255));
    arena_release(&arena);
}

TEST(arena_hands_out_no_more_than_its_maximum_and_stays_failed)
{
    struct arena arena;
    arena_init(&arena, 100 * 1024);
    size_t count = 0;
    while (arena_alloc(&arena, 1024) != NULL)
        count++;
    CHECK_INT(count, 100);
    CHECK(arena.failed);
    arena_clear(&arena);
    CHECK(arena_alloc(&arena, 100 * 1024) != NULL);
    CHECK(arena_alloc(&arena, 1) == NULL);
    arena_clear(&arena);
    CHECK(arena_alloc(&arena, 100 * 1024 + 1) == NULL);
    CHECK(arena_alloc(&arena, 1) == NULL);
    arena_release(&arena);
}

TEST(arena_refuses_sizes_that_overflow)
{
    struct arena arena;
    arena_init(&arena, SIZE_MAX);
    CHECK(arena_alloc(&arena, SIZE_MAX) == NULL);
    arena_clear(&arena);
    CHECK(arena_zalloc(&arena, SIZE_MAX / 2, 3) == NULL);
    CHECK(arena.failed);
    arena_release(&arena);
}

TEST(arena_zalloc_is_zeroed_also_after_clear)
{
    struct arena arena;
    arena_init(&arena, 1 << 16);
    void *dirty = arena_alloc(&arena, 512);
    memset(dirty, 0xAA, 512);
    arena_clear(&arena);
    const unsigned char *clean = arena_zalloc(&arena, 8, 64);
    CHECK(clean == dirty);
    for (size_t i = 0; i < 512; i++)
        CHECK_INT(clean[i], 0);
    arena_release(&arena);
}

TEST(arena_texts_end_in_a_nul_and_absent_stays_absent)
{
    struct arena arena;
    arena_init(&arena, 1 << 16);
    struct bytes copy = arena_dup(&arena, (struct bytes){"abcdef", 3});
    CHECK_TEXT(copy, "abc");
    CHECK_INT(strlen(copy.at), 3);
    CHECK_TEXT(arena_dup(&arena, BYTES("")), "");
    CHECK(arena_dup(&arena, BYTES_NONE).at == NULL);
    CHECK_TEXT(arena_printf(&arena, "%s-%d", "a", 5), "a-5");
    CHECK(!arena.failed);
    CHECK(arena_printf(&arena, "%70000d", 1).at == NULL);
    CHECK(arena.failed);
    arena_release(&arena);
}

TEST(an_arena_that_wipes_leaves_nothing_behind)
{
    struct arena arena;
    static const char zeros[8];
    arena_init(&arena, 1000);
    arena.wipe = true;
    struct bytes text = arena_dup(&arena, BYTES("secret"));
    arena_clear(&arena);
    CHECK(memcmp(text.at, zeros, 6) == 0); /* the first block is kept */
    arena_release(&arena);
    CHECK(arena.wipe);
}
