/* Ids as text and back, their order, and that a source only ever counts up, whatever the clock says. */
#include "fuzz.h"

#include "base/id.h"

static void check_text(struct bytes text)
{
    int64_t id = -1;
    char again[sizeof "int_" + ID_DIGITS];
    if (!id_parse("int", text, &id)) {
        ASSERT(id == -1);
        return;
    }
    ASSERT(id >= 0);
    ASSERT(id_format("int", id, again) == text.len);
    ASSERT(bytes_eq((struct bytes){again, text.len}, text));
}

static void check_number(int64_t id)
{
    int64_t again = -1;
    char text[sizeof "int_" + ID_DIGITS];
    size_t len = id_format("int", id, text);
    ASSERT(len == strlen(text));
    ASSERT(id_parse("int", (struct bytes){text, len}, &again));
    ASSERT(again == id);
    ASSERT(!id_parse("dec", (struct bytes){text, len}, &again));
}

static void check_order(int64_t a, int64_t b)
{
    char left[sizeof "i_" + ID_DIGITS], right[sizeof "i_" + ID_DIGITS];
    id_format("i", a, left);
    id_format("i", b, right);
    int order = strcmp(left, right);
    ASSERT((order < 0) == (a < b));
    ASSERT((order > 0) == (a > b));
}

/* Wall clocks up to 2089, where the format ends. */
static void check_source(struct bytes rest)
{
    const int64_t end_us = (ID_EPOCH_MS + (INT64_C(1) << 41) - 2) * 1000;
    struct id_source source;
    uint32_t lane = (uint32_t)(fuzz_u64(&rest) % ID_LANES);
    int64_t last = (int64_t)(fuzz_u64(&rest) >> 2);
    id_init(&source, lane, last);
    while (rest.len > 0) {
        int64_t wall_us = (int64_t)fuzz_u64(&rest);
        int64_t id = id_next(&source, wall_us > end_us ? end_us : wall_us);
        ASSERT(id > last);
        ASSERT((uint32_t)(id >> 12) % ID_LANES == lane);
        ASSERT(wall_us > end_us || id_time_us(id) / 1000 >= wall_us / 1000);
        last = id;
    }
}

FUZZ_TARGET(id)(const uint8_t *data, size_t size)
{
    struct bytes in = fuzz_bytes(data, size), rest = in;
    check_text(in);
    int64_t a = (int64_t)(fuzz_u64(&rest) >> 1), b = (int64_t)(fuzz_u64(&rest) >> 1);
    check_number(a);
    check_number(b);
    check_order(a, b);
    check_source(in);
    return 0;
}
