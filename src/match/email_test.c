#include "match/match.h"

#include "check.h"

static struct match_email email_of(const char *text, struct arena *arena)
{
    struct match_email email;
    struct why why;
    CHECK_INT(match_email_make(bytes_of(text), arena, &email, &why), OK);
    return email;
}

TEST(an_address_has_what_is_mailed_and_what_is_compared)
{
    static const struct {
        const char *text, *send_to, *key, *weak;
        enum match_email_class class;
    } rows[] = {
        {"Jo.Roe+ads@GoogleMail.com", "Jo.Roe+ads@googlemail.com", "joroe@gmail.com", "joroe@gmail.com", MATCH_EMAIL_PERSONAL},
        {"Jo Roe <jo.roe@acme.io>", "jo.roe@acme.io", "jo.roe@acme.io", "jo.roe@acme.io", MATCH_EMAIL_PERSONAL},
        {"jo+a@acme.io", "jo+a@acme.io", "jo+a@acme.io", "jo@acme.io", MATCH_EMAIL_PERSONAL},
        {"jo.roe+x@outlook.com", "jo.roe+x@outlook.com", "jo.roe@outlook.com", "jo.roe@outlook.com", MATCH_EMAIL_PERSONAL},
        {"jo-shop@yahoo.fr", "jo-shop@yahoo.fr", "jo@yahoo.fr", "jo@yahoo.fr", MATCH_EMAIL_PERSONAL},
        {"jo@ya.ru", "jo@ya.ru", "jo@yandex.ru", "jo@yandex.ru", MATCH_EMAIL_PERSONAL},
        {"jo@me.com", "jo@me.com", "jo@me.com", "jo@icloud.com", MATCH_EMAIL_PERSONAL},
        {"jo.roe@pm.me", "jo.roe@pm.me", "jo.roe@pm.me", "joroe@proton.me", MATCH_EMAIL_PERSONAL},
        {"jo@b\xc3\xbc"
         "cher.example.de",
         "jo@xn--bcher-kva.example.de", "jo@xn--bcher-kva.example.de", "jo@xn--bcher-kva.example.de", MATCH_EMAIL_PERSONAL},
        {"\"jo roe\"@acme.io", "\"jo roe\"@acme.io", "\"jo roe\"@acme.io", "\"jo roe\"@acme.io", MATCH_EMAIL_PERSONAL},
        {"SALES@acme.io", "SALES@acme.io", "sales@acme.io", "sales@acme.io", MATCH_EMAIL_ROLE},
        {"noreply-7@acme.io", NULL, NULL, NULL, MATCH_EMAIL_NO_REPLY},
        {"me@example.com", "me@example.com", NULL, NULL, MATCH_EMAIL_PLACEHOLDER},
        {"noemail@gmail.com", "noemail@gmail.com", NULL, NULL, MATCH_EMAIL_PLACEHOLDER},
        {"test@acme.io", "test@acme.io", "test@acme.io", "test@acme.io", MATCH_EMAIL_PERSONAL},
        {"jo@a@b.io", NULL, NULL, NULL, MATCH_EMAIL_INVALID},
        {"jo..roe@acme.io", NULL, NULL, NULL, MATCH_EMAIL_INVALID},
        {".jo@acme.io", NULL, NULL, NULL, MATCH_EMAIL_INVALID},
        {"jo..roe@docomo.ne.jp", "jo..roe@docomo.ne.jp", "jo..roe@docomo.ne.jp", "jo..roe@docomo.ne.jp", MATCH_EMAIL_PERSONAL},
        {"jo@acme", NULL, NULL, NULL, MATCH_EMAIL_INVALID},
        {"jo@127.0.0.1", NULL, NULL, NULL, MATCH_EMAIL_INVALID},
        {"jo@-acme.io", NULL, NULL, NULL, MATCH_EMAIL_INVALID},
        {"j\xe2\x80\x8bo@acme.io", NULL, NULL, NULL, MATCH_EMAIL_INVALID},
        {"jo\xff@acme.io", NULL, NULL, NULL, MATCH_EMAIL_INVALID},
        {"@acme.io", NULL, NULL, NULL, MATCH_EMAIL_INVALID},
        {"@", NULL, NULL, NULL, MATCH_EMAIL_INVALID},
        {"<>", NULL, NULL, NULL, MATCH_EMAIL_INVALID},
        {"", NULL, NULL, NULL, MATCH_EMAIL_INVALID},
    };
    struct arena arena;
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct match_email email = email_of(rows[i].text, &arena);
        CHECK_TEXT(email.send_to, rows[i].send_to);
        CHECK_TEXT(email.key, rows[i].key);
        CHECK_TEXT(email.weak, rows[i].weak);
        CHECK_TEXT(bytes_of(match_email_class_names[email.class]), match_email_class_names[rows[i].class]);
        CHECK_TEXT(email.raw, rows[i].text);
    }
    arena_release(&arena);
}

TEST(a_slip_in_the_domain_is_a_suggestion_and_never_mailed)
{
    struct arena arena;
    arena_init(&arena, 1 << 20);
    struct match_email slip = email_of("jo.roe@gmial.com", &arena);
    CHECK_TEXT(slip.send_to, "jo.roe@gmial.com");
    CHECK_TEXT(slip.suggest, "jo.roe@gmail.com");
    CHECK_TEXT(slip.weak, "joroe@gmail.com");
    CHECK_TEXT(slip.key, "jo.roe@gmial.com");
    CHECK(slip.company.at == NULL);
    CHECK_TEXT(email_of("jo.roe@acme,com", &arena).suggest, "jo.roe@acme.com");
    CHECK(email_of("jo.roe@ymail.com", &arena).suggest.at == NULL);
    CHECK(email_of("jo.roe@mail.com", &arena).suggest.at == NULL);
    arena_release(&arena);
}

TEST(only_a_company_has_a_company_s_domain)
{
    static const struct {
        const char *text, *company;
    } rows[] = {
        {"jo@mail.acme.co.uk", "acme.co.uk"},
        {"info@acme.io", "acme.io"},
        {"jo@alpha.github.io", "alpha.github.io"}, /* tenants of one host are not one company */
        {"jo@gmail.com", NULL},
        {"jo@yahoo.co.uk", NULL},
        {"jo@gmx.de", NULL},
        {"jo@mailinator.com", NULL},
        {"test@test.com", NULL},
    };
    struct arena arena;
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_TEXT(email_of(rows[i].text, &arena).company, rows[i].company);
    CHECK(email_of("jo@mailinator.com", &arena).disposable);
    CHECK(email_of("jo@web.de", &arena).free_mail);
    CHECK_TEXT(match_domain(BYTES("https://jo@www.Acme.co.uk:443/x?y"), &arena), "acme.co.uk");
    CHECK(match_domain(BYTES("co.uk"), &arena).at == NULL);
    CHECK(match_domain(BYTES("localhost"), &arena).at == NULL);
    arena_release(&arena);
}

TEST(a_full_arena_is_said_not_an_empty_address)
{
    struct arena arena;
    struct match_email email = {.class = MATCH_EMAIL_ROLE};
    struct why why;
    arena_init(&arena, 64);
    CHECK_INT(match_email_make(BYTES("some.body@a-long-domain-of-a-company.example.org"), &arena, &email, &why), FULL);
    CHECK_INT(email.class, MATCH_EMAIL_ROLE);
    arena_release(&arena);
}
