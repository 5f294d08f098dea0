#include "match/match.h"

#include "check.h"

static struct match_phone phone_of(const char *text, const char *region, struct arena *arena)
{
    struct match_phone phone;
    struct why why;
    CHECK_INT(match_phone_make(bytes_of(text), bytes_of(region), arena, &phone, &why), OK);
    return phone;
}

TEST(a_number_is_read_by_its_region)
{
    static const struct {
        const char *text, *region, *e164, *extension;
    } rows[] = {
        {"(650) 253-0000", "US", "+16502530000", NULL},
        {"650-253-0000 ext. 123", "us", "+16502530000", "123"},
        {"+33 (0) 6 12 34 56 78", "FR", "+33612345678", NULL},
        {"06 12 34 56 78", "France", "+33612345678", NULL},
        {"0033612345678", NULL, "+33612345678", NULL},
        {"0033612345678", "US", "+33612345678", NULL},
        {"33612345678", "US", "+33612345678", NULL},
        {"447400123456", "GB", "+447400123456", NULL},
        {"447400123456", NULL, "+447400123456", NULL},
        {"whatsapp:447400123456", NULL, "+447400123456", NULL},
        {"TEL:+1-201-555-0123", NULL, "+12015550123", NULL},
        {"06 1234 5678", "IT", "+390612345678", NULL},
        {"\xd9\xa0\xd9\xa2\xd9\xa0\xd9\xa7\xd9\xa0\xd9\xa3\xd9\xa1\xd9\xa3\xd9\xa0\xd9\xa0\xd9\xa0", "GB", "+442070313000", NULL},
        {"06 12 34 56 78", NULL, NULL, NULL},
        {"06 12 34 56 78", "XX", NULL, NULL},
        {"n/a", "US", NULL, NULL},
        {"", "US", NULL, NULL},
        {"+", "US", NULL, NULL},
        {"jo@acme.io", "US", NULL, NULL},
    };
    struct arena arena;
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct match_phone phone = phone_of(rows[i].text, rows[i].region, &arena);
        CHECK_TEXT(phone.e164, rows[i].e164);
        CHECK_TEXT(phone.extension, rows[i].extension);
    }
    arena_release(&arena);
}

TEST(spellings_of_one_line_have_one_key)
{
    static const struct {
        const char *a, *b, *region;
        bool same;
    } rows[] = {
        {"551187654321", "+55 11 98765-4321", "BR", true},      {"+55 11 8765-4321", "+55 11 98765-4321", NULL, true},
        {"+55 11 3456-7890", "+55 11 93456-7890", NULL, false}, /* a landline never got the digit */
        {"5215512345678", "+52 55 1234 5678", "MX", true},      {"5491123456789", "011 2345-6789", "AR", true},
        {"011 15-2345-6789", "+54 9 11 2345 6789", "AR", true}, {"+229 95123456", "+229 01 95123456", NULL, true},
        {"+44 7400 123456", "+49 7400 123456", NULL, false},    {"+14155550132", "+14155550133", NULL, false},
    };
    struct arena arena;
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct match_phone a = phone_of(rows[i].a, rows[i].region, &arena), b = phone_of(rows[i].b, rows[i].region, &arena);
        CHECK(a.key.at != NULL);
        CHECK(b.key.at != NULL);
        if (bytes_eq(a.key, b.key) != rows[i].same)
            check_fail(__FILE__, __LINE__, "%s and %s: \"%.*s\" and \"%.*s\"", rows[i].a, rows[i].b, BYTES_ARG(a.key),
                       BYTES_ARG(b.key));
    }
    arena_release(&arena);
}

TEST(a_placeholder_number_is_no_key)
{
    static const char *const rows[] = {"0000000000", "+1 555 555 5555",   "1234567890", "123456789", "9999999999",
                                       "9876543210", "+33 1 11 11 11 11", "-",          "x",         "12"};
    struct arena arena;
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct match_phone phone = phone_of(rows[i], "US", &arena);
        if (phone.key.at != NULL || (phone.national.at != NULL && !phone.junk))
            check_fail(__FILE__, __LINE__, "%s has the key %.*s", rows[i], BYTES_ARG(phone.key));
    }
    arena_release(&arena);
}

TEST(a_number_of_an_unknown_country_keeps_its_digits)
{
    struct arena arena;
    arena_init(&arena, 1 << 20);
    struct match_phone phone = phone_of("(312) 586-9043", NULL, &arena);
    CHECK(phone.e164.at == NULL);
    CHECK(phone.key.at == NULL);
    CHECK_TEXT(phone.national, "3125869043");
    CHECK_TEXT(phone_of("06.12.24.32.91", NULL, &arena).national, "612243291");
    CHECK_TEXT(phone_of("06 12 24 32 91", "FR", &arena).national, "612243291");
    arena_release(&arena);
}

TEST(kinds_of_lines_are_told_apart)
{
    struct arena arena;
    arena_init(&arena, 1 << 20);
    CHECK_INT(phone_of("+33612345678", NULL, &arena).kind, MATCH_PHONE_MOBILE);
    CHECK_INT(phone_of("+33142685300", NULL, &arena).kind, MATCH_PHONE_FIXED);
    CHECK_INT(phone_of("+16502530000", NULL, &arena).kind, MATCH_PHONE_EITHER);
    CHECK_INT(phone_of("+18003569377", NULL, &arena).kind, MATCH_PHONE_TOLL_FREE);
    CHECK_TEXT(bytes_of(phone_of("+33612345678", NULL, &arena).region), "FR");
    arena_release(&arena);
}

TEST(a_country_is_named_in_several_ways)
{
    static const struct {
        const char *text, *want;
    } rows[] = {{"gb", "GB"},
                {"UK", "GB"},
                {"GBR", "GB"},
                {"united kingdom", "GB"},
                {"Germany", "DE"},
                {" fr ", "FR"},
                {"United States", "US"},
                {"XX", ""},
                {"", ""},
                {"Atlantis", ""},
                {"e", ""}};
    char region[3];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_INT(match_region(bytes_of(rows[i].text), region), rows[i].want[0] != '\0');
        CHECK_TEXT(bytes_of(region), rows[i].want);
    }
}
