#include "base/buf.h"

#include "check.h"

TEST(buf_appends_everything_in_order)
{
    struct buf buf;
    buf_init(&buf, 1000);
    buf_add(&buf, BYTES("a"));
    buf_add_char(&buf, 'b');
    buf_add_cstr(&buf, "c");
    buf_add_u64(&buf, UINT64_MAX);
    buf_add_i64(&buf, INT64_MIN);
    buf_printf(&buf, "<%d%s>", 5, "x");
    buf_add(&buf, BYTES_NONE);
    CHECK_TEXT(buf_bytes(&buf), "abc18446744073709551615-9223372036854775808<5x>");
    CHECK(!buf.failed);
    buf_release(&buf);
    CHECK_INT(buf_bytes(&buf).len, 0);
}

TEST(buf_takes_exactly_its_maximum)
{
    for (size_t size_max = 0; size_max < 600; size_max++) {
        struct buf buf;
        buf_init(&buf, size_max);
        for (size_t i = 0; i < size_max; i++)
            buf_add_char(&buf, 'x');
        CHECK(!buf.failed);
        CHECK_INT(buf.len, size_max);
        buf_add_char(&buf, 'x');
        CHECK(buf.failed);
        CHECK_INT(buf.len, size_max);
        buf_release(&buf);
    }
}

TEST(buf_printf_may_end_exactly_at_the_maximum)
{
    struct buf buf;
    buf_init(&buf, 5);
    buf_printf(&buf, "%s", "12345");
    CHECK(!buf.failed);
    CHECK_TEXT(buf_bytes(&buf), "12345");
    buf_clear(&buf);
    buf_printf(&buf, "%s", "123456");
    CHECK(buf.failed);
    CHECK_INT(buf.len, 0);
    buf_release(&buf);
}

TEST(buf_failure_is_sticky_until_cleared)
{
    struct buf buf;
    buf_init(&buf, 4);
    buf_add_cstr(&buf, "12345");
    buf_add_cstr(&buf, "1");
    CHECK(buf.failed);
    CHECK_INT(buf.len, 0);
    CHECK(!buf_reserve(&buf, 0));
    buf_clear(&buf);
    buf_add_cstr(&buf, "1234");
    CHECK_TEXT(buf_bytes(&buf), "1234");
    CHECK(!buf_reserve(&buf, SIZE_MAX));
    buf_release(&buf);
}

TEST(buf_drop_keeps_what_is_behind)
{
    struct buf buf;
    buf_init(&buf, 100);
    buf_add_cstr(&buf, "consumed rest");
    buf_drop(&buf, 9);
    CHECK_TEXT(buf_bytes(&buf), "rest");
    buf_drop(&buf, 0);
    CHECK_TEXT(buf_bytes(&buf), "rest");
    buf_drop(&buf, 100);
    CHECK_INT(buf.len, 0);
    buf_release(&buf);
}

TEST(a_buffer_that_wipes_leaves_nothing_behind)
{
    struct buf buf;
    static const char zeros[16];
    buf_init(&buf, 1000);
    buf.wipe = true;
    buf_add_cstr(&buf, "first second");
    buf_drop(&buf, 6);
    CHECK_TEXT(buf_bytes(&buf), "second");
    CHECK(memcmp(buf.at + 6, zeros, 6) == 0);
    buf_printf(&buf, "%*d", 600, 1); /* it grows, and the old memory is zeroed before it is freed */
    CHECK_TEXT(((struct bytes){buf.at, 6}), "second");
    buf_clear(&buf);
    CHECK(memcmp(buf.at, zeros, 6) == 0);
    buf_release(&buf);
    CHECK(buf.wipe);
}
