#include "identity/identity.h"

#include "check.h"

TEST(an_address_has_one_spelling)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"jo@acme.io", "jo@acme.io"},
        {" Jo.Smith+Ads@ACME.io\n", "jo.smith+ads@acme.io"},
        {"Jo Smith <JO@acme.io>", "jo@acme.io"},
        {"\"a@b.c\" <jo@acme.io>", "jo@acme.io"},
        {"mailto:jo@acme.io", "jo@acme.io"},
        {"jo@b\xc3\xbc"
         "cher.example",
         "jo@xn--bcher-kva.example"},
        {"jo@acme.io.", "jo@acme.io"},
        {"jo", NULL},
        {"@acme.io", NULL},
        {"jo@", NULL},
        {"jo@a@b.c", NULL},
        {"jo smith@acme.io", NULL},
        {"jo@ac me.io", NULL},
        {"jo@-", NULL},
        {"jo@..", NULL},
        {"", NULL},
        {"<>", NULL},
    };
    struct arena arena;
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bytes got = identity_email(bytes_of(rows[i].text), &arena);
        if (rows[i].want == NULL && got.at != NULL)
            check_fail(__FILE__, __LINE__, "\"%s\" became \"%.*s\"", rows[i].text, BYTES_ARG(got));
        if (rows[i].want != NULL)
            CHECK_TEXT(got, rows[i].want);
    }
    arena_release(&arena);
}

TEST(a_number_is_its_digits)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"+33 6 12 34 56 78", "33612345678"},
        {"0033 (6) 12-34.56/78", "33612345678"},
        {"whatsapp:+15551234567", "15551234567"},
        {"15551234567", "15551234567"},
        {"0612345678", "0612345678"},
        {"AMAZON", NULL},
        {"+1555x", NULL},
        {"1234", NULL},
        {"", NULL},
        {"+", NULL},
        {"123456789012345678901", NULL},
        {"1+555", NULL},
    };
    struct arena arena;
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bytes got = identity_phone(bytes_of(rows[i].text), &arena);
        if (rows[i].want == NULL && got.at != NULL)
            check_fail(__FILE__, __LINE__, "\"%s\" became \"%.*s\"", rows[i].text, BYTES_ARG(got));
        if (rows[i].want != NULL)
            CHECK_TEXT(got, rows[i].want);
    }
    arena_release(&arena);
}

TEST(a_national_number_is_read_by_the_region_and_others_stay_what_they_are)
{
    static const struct {
        const char *text, *region, *want;
    } rows[] = {
        {"06 12 34 56 78", "FR", "33612345678"},
        {"(415) 555-2671", "US", "14155552671"},
        {"tel:06.12.34.56.78", "FR", "33612345678"},
        {"33612345678", "FR", "33612345678"},
        {"+5215512345678", "MX", "5215512345678"}, /* as it was stored before there were regions */
        {"005215512345678", "MX", "5215512345678"},
        {"whatsapp:+551187654321", "BR", "551187654321"},
        {"0612345678", NULL, "0612345678"},
        {"0612", "FR", NULL},
        {"0000000000", "FR", "00000000"},
        {"AMAZON", "FR", NULL},
        {"", "FR", NULL},
    };
    struct arena arena;
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_TEXT(identity_phone_of(bytes_of(rows[i].text), bytes_of(rows[i].region), &arena), rows[i].want);
    arena_release(&arena);
}

TEST(a_text_mentions_addresses_and_numbers_once_each)
{
    struct arena arena;
    struct identity got[4];
    arena_init(&arena, 1 << 20);
    size_t count = identity_mentions(
        BYTES("Write to Jo@Acme.io, jo@acme.io or call +33 6 12 34 56 78 (not 12345678, not 2026-11-15). me@work"), &arena, got,
        4);
    CHECK_INT(count, 2);
    CHECK_TEXT(got[0].value, "jo@acme.io");
    CHECK_INT(got[0].kind, IDENTITY_EMAIL);
    CHECK_TEXT(got[1].value, "33612345678");
    CHECK_INT(got[1].kind, IDENTITY_PHONE);
    CHECK(!got[0].sender);
    CHECK_INT(identity_mentions(BYTES("a@b.co c@d.co e@f.co"), &arena, got, 2), 2);
    arena_release(&arena);
}
