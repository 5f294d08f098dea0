#include "check.h"
#include "identity/mention.h"

static struct arena arena;
static struct identity list[16];
static size_t count;

static void find_phones(const char *text)
{
    arena_init(&arena, 1 << 20);
    count = 0;
    mention_phones(bytes_of(text), BYTES_NONE, &arena, list, &count, 16);
}

TEST(phones_are_found_as_people_write_them)
{
    static const struct {
        const char *text, *value;
    } rows[] = {
        {"call +33 6 12 34 56 78 please", "33612345678"},
        {"+49 (0)30 1234567", "490301234567"},
        {"0033 6 12 34 56 78", "33612345678"},
        {"06 12 34 56 78", "0612345678"},
        {"Tel.: 030/1234567", "0301234567"},
        {"(415) 555-2671", "4155552671"},
        {"415-555-2671", "4155552671"},
        {"phone: 5552671", "5552671"},
        {"Tél. 01.42.68.53.00", "0142685300"},
        {"+1 (415) 555-2671", "14155552671"},
        {"Móvil 612345678", "612345678"},
        {"+447911123456", "447911123456"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        find_phones(rows[i].text);
        if (count != 1)
            check_fail(__FILE__, __LINE__, "%s: %zu phones", rows[i].text, count);
        CHECK_INT(list[0].kind, IDENTITY_PHONE);
        CHECK_TEXT(list[0].value, rows[i].value);
    }
}

TEST(other_numbers_are_no_phones)
{
    static const char *const rows[] = {"on 2026-11-16",
                                       "on 16.11.2026 at 10:00",
                                       "order 4155552671",
                                       "EUR 12.345.678",
                                       "10.0.0.1 and 192.168.100.200",
                                       "invoice 123456789",
                                       "ref #0123456789",
                                       "+1 for this",
                                       "1234567890123456789",
                                       "id0612345678",
                                       "IBAN DE89 3704 0044 0532 0130 00"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        find_phones(rows[i]);
        if (count != 0)
            check_fail(__FILE__, __LINE__, "%s: found %.*s", rows[i], BYTES_ARG(list[0].value));
    }
}

TEST(two_phones_stay_two_and_the_same_is_one)
{
    find_phones("+33612345678, +33612345679 or +33 6 12 34 56 78");
    CHECK_INT(count, 2);
    CHECK_TEXT(list[1].value, "33612345679");
}

TEST(a_national_number_in_a_text_is_read_by_the_region)
{
    count = 0;
    arena_init(&arena, 1 << 20);
    mention_phones(BYTES("Tel.: 06 12 34 56 78"), BYTES("FR"), &arena, list, &count, 16);
    CHECK_INT(count, 1);
    CHECK_TEXT(list[0].value, "33612345678");
    arena_release(&arena);
}
