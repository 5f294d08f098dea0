#include "match/match.h"

#include "check.h"

struct who {
    const char *name, *email, *phone, *company, *region;
};

static struct match_person person_of(struct who who, struct arena *arena)
{
    struct bytes email = bytes_of(who.email), phone = bytes_of(who.phone);
    const struct match_input input = {.name = bytes_of(who.name),
                                      .emails = &email,
                                      .email_count = who.email != NULL,
                                      .phones = &phone,
                                      .phone_count = who.phone != NULL,
                                      .company = bytes_of(who.company),
                                      .region = bytes_of(who.region)};
    struct match_person person;
    struct why why;
    CHECK_INT(match_person_make(&input, arena, &person, &why), OK);
    return person;
}

static const struct match_world world = {.leads = 100000};
static const uint8_t secret[MATCH_SECRET_SIZE] = "one tenant's own";

TEST(every_rule_of_the_cascade_is_reached)
{
    static const struct {
        struct who a, b;
        uint32_t holders;
        enum match_zone zone;
        const char *rule;
    } rows[] = {
        {{"Jane Roe", "jane@acme.io", 0, 0, 0}, {"jane roe", "Jane@Acme.io", 0, 0, 0}, 1, MATCH_SAME, "identifier_and_name"},
        {{"J. Roe", "jroe@acme.io", 0, 0, 0}, {"Jane Roe", "jroe@acme.io", 0, 0, 0}, 1, MATCH_SAME, "identifier_and_name"},
        {{"J. Roe", "jroe@gmail.com", 0, 0, 0}, {"Jane Roe", "jroe@gmail.com", 0, 0, 0}, 1, MATCH_REVIEW, "score"},
        {{"Jane Roe", 0, "+33612345678", 0, 0}, {"Jane Roe", 0, "06 12 34 56 78", 0, "FR"}, 1, MATCH_SAME, "identifier_and_name"},
        {{"J. Roe", 0, "+33612345678", 0, 0}, {"Jane Roe", 0, "+33612345678", 0, 0}, 1, MATCH_REVIEW, "score"},
        {{"Jane Roe", 0, "+33612345678", 0, 0}, {"Jane Roe", 0, "+33612345678", 0, 0}, 3, MATCH_SAME, "identifier_and_name"},
        {{"Jenny Roe", 0, "+33612345678", 0, 0}, {"Jennifer Roe", 0, "+33612345678", 0, 0}, 3, MATCH_REVIEW, "score"},
        {{"Jane Roe", 0, "+33612345678", 0, 0}, {"Jane Roe", 0, "+33612345678", 0, 0}, 40, MATCH_NEW, "name_alone"},
        {{0, "jane@acme.io", 0, 0, 0}, {"Jane Roe", "jane@acme.io", 0, 0, 0}, 1, MATCH_SAME, "same_mailbox"},
        {{0, "jane@acme.io", 0, 0, 0}, {0, "jane@acme.io", 0, 0, 0}, 1, MATCH_SAME, "same_mailbox"},
        {{0, "jane@acme.io", 0, 0, 0}, {"Jane Roe", "jane@acme.io", 0, 0, 0}, 2, MATCH_REVIEW, "one_kind"},
        {{0, 0, "+33612345678", 0, 0}, {0, 0, "+33612345678", 0, 0}, 1, MATCH_SAME, "same_line"},
        {{0, 0, "+33612345678", 0, 0}, {"Jane Roe", 0, "+33612345678", 0, 0}, 1, MATCH_REVIEW, "one_kind"},
        {{"Jane", "jane@gmail.com", 0, 0, 0}, {"Jane Roe", "jane@gmail.com", 0, 0, 0}, 1, MATCH_SAME, "score"},
        {{"Al Roe Jr", 0, "+33612345678", 0, 0}, {"Al Roe Sr", 0, "+33612345678", 0, 0}, 1, MATCH_NEW, "suffix_conflict"},
        {{"Al Roe Jr", "al@acme.io", 0, 0, 0}, {"Al Roe Sr", "al@acme.io", 0, 0, 0}, 1, MATCH_NEW, "suffix_conflict"},
        {{"Al Roe Jr", 0, "+33612345678", 0, 0}, {"Al Roe", 0, "+33612345678", 0, 0}, 1, MATCH_REVIEW, "suffix_unknown"},
        {{"Al Roe Jr", 0, "+33612345678", 0, 0}, {"Al Roe II", 0, "+33612345678", 0, 0}, 1, MATCH_SAME, "identifier_and_name"},
        {{"Tom Hart", "jane@acme.io", 0, 0, 0}, {"Jane Roe", "jane@acme.io", 0, 0, 0}, 1, MATCH_REVIEW, "mailbox_of_another"},
        {{"Tom Hart", "jane@acme.io", 0, 0, 0}, {"Jane Roe", "jane@acme.io", 0, 0, 0}, 2, MATCH_NEW, "too_little"},
        {{"Jane Hart", 0, "+33612345678", 0, 0}, {"Jane Roe", 0, "+33612345678", 0, 0}, 1, MATCH_REVIEW, "names_conflict"},
        {{"Jane Roe", "jane+a@acme.io", 0, 0, 0}, {"Jane Roe", "jane+b@acme.io", 0, 0, 0}, 1, MATCH_REVIEW, "weak_identifier"},
        {{"Jane Roe", "jane@acme.io", 0, 0, 0}, {"Jane Roe", "jroe@acme.io", 0, 0, 0}, 1, MATCH_REVIEW, "no_identifier"},
        {{"Jane Roe", "info@acme.io", 0, 0, 0}, {"Tom Hart", "info@acme.io", 0, 0, 0}, 1, MATCH_NEW, "too_little"},
        {{"Jane Roe", "test@test.com", 0, 0, 0}, {"Tom Hart", "test@test.com", 0, 0, 0}, 1, MATCH_NEW, "too_little"},
        {{"Jane Roe", 0, "+18003569377", 0, 0}, {"Jane Roe", 0, "+18003569377", 0, 0}, 1, MATCH_NEW, "name_alone"},
        {{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, 1, MATCH_NEW, "too_little"},
    };
    struct arena arena;
    arena_init(&arena, 1 << 22);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct match_person a = person_of(rows[i].a, &arena), b = person_of(rows[i].b, &arena);
        struct match_result result;
        for (size_t j = 0; j < a.email_count; j++)
            a.emails[j].holders = rows[i].holders;
        for (size_t j = 0; j < a.phone_count; j++)
            a.phones[j].holders = rows[i].holders;
        match_compare(&a, &b, &world, &result);
        if (result.zone != rows[i].zone || strcmp(result.rule, rows[i].rule) != 0)
            check_fail(__FILE__, __LINE__, "row %zu: %s by %s (%lld), want %s by %s", i, match_zone_names[result.zone],
                       result.rule, (long long)result.score_mb, match_zone_names[rows[i].zone], rows[i].rule);
        CHECK(match_rule_sentence(result.rule)[0] != '\0');
    }
    arena_release(&arena);
}

TEST(the_lines_sum_up_to_the_score_and_are_sentences)
{
    struct arena arena;
    arena_init(&arena, 1 << 22);
    struct match_person a = person_of((struct who){"Jane A. Roe Jr", "jane@acme.io", "+33612345678", "Acme", "FR"}, &arena);
    struct match_person b = person_of((struct who){"Roe Jane B.", "jane+x@acme.io", "+33612345679", "Apex", "US"}, &arena);
    struct match_result result;
    int64_t sum = 0;
    a.emails[0].holders = 3;
    match_compare(&a, &b, &world, &result);
    CHECK(result.line_count >= 8);
    for (size_t i = 0; i < result.line_count; i++) {
        sum += result.lines[i].weight_mb;
        struct bytes sentence = match_line_sentence(&result.lines[i], &arena);
        CHECK(memchr(sentence.at, ' ', sentence.len) != NULL); /* not the bare word of the level */
        if (strcmp(result.lines[i].field, "email") == 0)
            CHECK_TEXT(sentence, "perhaps the same mailbox; used by 3 leads");
    }
    CHECK_INT(sum, result.score_mb);
    arena_release(&arena);
}

TEST(an_id_of_another_system_decides)
{
    struct arena arena;
    struct why why;
    arena_init(&arena, 1 << 22);
    const struct match_id ids[] = {{BYTES("hubspot"), BYTES("7"), false, 0}, {BYTES("cookie"), BYTES("abc"), true, 0}};
    const struct match_id others[] = {{BYTES("pipedrive"), BYTES("7"), false, 0}, {BYTES("hubspot"), BYTES("8"), false, 0}};
    const struct match_input first = {.name = BYTES("Jane Roe"), .ids = ids, .id_count = 2};
    const struct match_input second = {.name = BYTES("J. R."), .ids = ids, .id_count = 1};
    const struct match_input third = {.name = BYTES("Jane Roe"), .ids = others, .id_count = 2};
    const struct match_input fourth = {.name = BYTES("Jane Roe"), .ids = ids + 1, .id_count = 1};
    struct match_person a, b, c, d;
    struct match_result result;
    CHECK_INT(match_person_make(&first, &arena, &a, &why), OK);
    CHECK_INT(match_person_make(&second, &arena, &b, &why), OK);
    CHECK_INT(match_person_make(&third, &arena, &c, &why), OK);
    CHECK_INT(match_person_make(&fourth, &arena, &d, &why), OK);
    match_compare(&b, &a, &world, &result);
    CHECK_INT(result.zone, MATCH_SAME);
    CHECK_TEXT(bytes_of(result.rule), "same_id");
    match_compare(&c, &a, &world, &result); /* another system's 7, and another number in the same */
    CHECK_INT(result.zone, MATCH_NEW);
    match_compare(&d, &a, &world, &result); /* a browser is evidence, not identity */
    CHECK_INT(result.zone, MATCH_REVIEW);
    arena_release(&arena);
}

TEST(a_whole_lead_is_compared_not_its_last_record)
{
    struct arena arena;
    struct match_person lead = {.email_count = 0};
    struct match_result result;
    arena_init(&arena, 1 << 22);
    struct match_person first = person_of((struct who){"Jane Roe", "jane@gmail.com", NULL, NULL, NULL}, &arena);
    struct match_person second = person_of((struct who){"J. Roe", "jroe@acme.io", "+33612345678", "Acme", "FR"}, &arena);
    struct match_person third = person_of((struct who){"J. Roe", "test@test.com", "0000000000", "n/a", "FR"}, &arena);
    match_person_add(&lead, &first);
    match_person_add(&lead, &second);
    match_person_add(&lead, &third);
    match_person_add(&lead, &second);
    CHECK_INT(lead.email_count, 2); /* placeholders are nobody's */
    CHECK_INT(lead.phone_count, 1);
    CHECK_INT(lead.name_count, 2);
    CHECK_INT(lead.region_count, 1);
    struct match_person again = person_of((struct who){"Jane Roe", NULL, "0033612345678", NULL, NULL}, &arena);
    match_compare(&again, &lead, &world, &result);
    CHECK_INT(result.zone, MATCH_SAME);
    /* The lead's initial fits John; its full name does not. */
    struct match_person other = person_of((struct who){"John Roe", NULL, "0033612345678", NULL, NULL}, &arena);
    match_compare(&other, &lead, &world, &result);
    CHECK(result.zone != MATCH_SAME);
    CHECK_TEXT(bytes_of(result.lines[2].level), "conflict");
    arena_release(&arena);
}

TEST(a_packed_person_compares_to_the_bit)
{
    struct arena arena;
    struct match_person back;
    struct match_result before, after;
    struct bytes packed[2];
    struct why why;
    arena_init(&arena, 1 << 22);
    struct match_person a =
        person_of((struct who){"J\xc3\xbcrgen M\xc3\xbcller Jr", "j.m@gmail.com", "0151 23456789", "M GmbH", "DE"}, &arena);
    struct match_person b =
        person_of((struct who){"Juergen Mueller", "jm+x@googlemail.com", "+49 151 23456780", "M AG", "DE"}, &arena);
    a.emails[0].holders = 3;
    match_compare(&a, &b, &world, &before);
    CHECK_INT(match_pack(&a, &arena, &packed[0], &why), OK);
    CHECK_INT(match_pack(&b, &arena, &packed[1], &why), OK);
    CHECK_INT(match_explain(packed[0], packed[1], &world, &arena, &after, &why), OK);
    CHECK_INT(after.score_mb, before.score_mb);
    CHECK_INT(after.zone, before.zone);
    CHECK(strcmp(after.rule, before.rule) == 0);
    CHECK_INT(after.line_count, before.line_count);
    for (size_t i = 0; i < before.line_count; i++) {
        CHECK_INT(after.lines[i].weight_mb, before.lines[i].weight_mb);
        CHECK(bytes_eq(after.lines[i].ours, before.lines[i].ours));
        CHECK(bytes_eq(after.lines[i].theirs, before.lines[i].theirs));
    }
    for (size_t len = 0; len < packed[0].len; len++)
        CHECK_INT(match_unpack((struct bytes){packed[0].at, len}, &back, &why), BROKEN);
    CHECK_INT(match_unpack(BYTES("\x02"), &back, &why), INVALID);
    arena_release(&arena);
}

static bool has_key(const struct match_key *keys, size_t count, const struct match_key *key)
{
    for (size_t i = 0; i < count; i++)
        if (keys[i].hash == key->hash)
            return true;
    return false;
}

TEST(what_may_be_one_person_shares_a_key)
{
    static const struct {
        struct who a, b;
        const char *kind; /* the strongest shared one; NULL: none */
    } rows[] = {
        {{"Jane Roe", "jane.roe@gmail.com", 0, 0, 0}, {"X", "janeroe+a@googlemail.com", 0, 0, 0}, "email"},
        {{"Jane Roe", "jane.roe@gmail.com", 0, 0, 0}, {"X", "janeroe@gmial.com", 0, 0, 0}, "email_weak"},
        {{"X", 0, "551187654321", 0, "BR"}, {"Y", 0, "+55 11 98765-4321", 0, 0}, "phone"},
        {{"X", 0, "312-456-4242", 0, 0}, {"Y", 0, "+1 312 456 4242", 0, 0}, "national"},
        {{"Jane Roe", 0, 0, 0, 0}, {"ROE Jane", 0, 0, 0, 0}, "name"},
        {{"J\xc3\xbcrgen M\xc3\xbcller", 0, 0, 0, 0}, {"Juergen Mueller", 0, 0, 0, 0}, "name"},
        {{"Jane Meyer", "jane@acme.io", 0, 0, 0}, {"J. Meier", "jm@acme.io", 0, 0, 0}, "name_domain"},
        {{"Jane Roe", "jane.roe@acme.io", 0, 0, 0}, {"Zoe Poe", "janeroe@apex.io", 0, 0, 0}, "local"},
        {{"Jane Roe", "info@acme.io", 0, 0, 0}, {"Tom Hart", "info@acme.io", 0, 0, 0}, NULL},
        {{"Jane Roe", "test@test.com", "0000000000", 0, 0}, {"Tom Hart", "test@test.com", "0000000000", 0, 0}, NULL},
    };
    struct arena arena;
    struct why why;
    arena_init(&arena, 1 << 22);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct match_person a = person_of(rows[i].a, &arena), b = person_of(rows[i].b, &arena);
        struct match_key ours[MATCH_KEYS_MAX], theirs[MATCH_KEYS_MAX];
        size_t our_count, their_count, at = 0;
        CHECK_INT(match_keys(&a, secret, &arena, ours, &our_count, &why), OK);
        CHECK_INT(match_keys(&b, secret, &arena, theirs, &their_count, &why), OK);
        while (at < our_count && !has_key(theirs, their_count, &ours[at]))
            at++;
        CHECK_TEXT(bytes_of(at < our_count ? match_key_kind_names[ours[at].kind] : ""), rows[i].kind != NULL ? rows[i].kind : "");
    }
    arena_release(&arena);
}

TEST(keys_are_bounded_keyed_and_counted_back)
{
    static const uint8_t other[MATCH_SECRET_SIZE] = "another tenant's";
    struct match_key keys[MATCH_KEYS_MAX], elsewhere[MATCH_KEYS_MAX];
    struct bytes emails[MATCH_EMAILS_MAX];
    struct match_person person;
    struct arena arena;
    size_t count, other_count;
    struct why why;
    arena_init(&arena, 1 << 22);
    for (size_t i = 0; i < MATCH_EMAILS_MAX; i++)
        emails[i] = arena_printf(&arena, "jane%zu@acme.io", i);
    const struct match_input input = {.name = BYTES("Jane Roe"), .emails = emails, .email_count = MATCH_EMAILS_MAX};
    CHECK_INT(match_person_make(&input, &arena, &person, &why), OK);
    CHECK_INT(match_keys(&person, secret, &arena, keys, &count, &why), OK);
    CHECK_INT(match_keys(&person, other, &arena, elsewhere, &other_count, &why), OK);
    CHECK_INT(count, MATCH_KEYS_MAX);
    CHECK(!has_key(elsewhere, other_count, &keys[0]));
    match_person_holders(&person, &keys[2], 5);
    CHECK_INT(person.emails[2].holders, 5);
    CHECK_INT(person.emails[1].holders, 0);
    arena_release(&arena);
}

TEST(the_best_candidate_is_chosen_and_bridges_are_counted)
{
    const struct match_result results[] = {{.zone = MATCH_REVIEW, .score_mb = 9000},
                                           {.zone = MATCH_SAME, .score_mb = 11000},
                                           {.zone = MATCH_SAME, .score_mb = 12000},
                                           {.zone = MATCH_NEW, .score_mb = 20000}};
    struct match_choice choice;
    struct arena arena;
    match_choose(results, 4, &choice);
    CHECK_INT(choice.zone, MATCH_SAME);
    CHECK_INT(choice.best, 2);
    CHECK_INT(choice.same_count, 2);
    CHECK_INT(choice.review_count, 1);
    match_choose(results, 0, &choice);
    CHECK_INT(choice.zone, MATCH_NEW);
    arena_init(&arena, 1 << 20);
    struct match_person a = person_of((struct who){"Jane Roe", 0, 0, 0, 0}, &arena),
                        b = person_of((struct who){"J. Roe", 0, 0, 0, 0}, &arena);
    struct match_person c = person_of((struct who){"John Roe", 0, 0, 0, 0}, &arena);
    CHECK(match_may_bridge(&a, &b));
    CHECK(!match_may_bridge(&a, &c));
    arena_release(&arena);
}

TEST(doubt_halves_with_every_bit)
{
    CHECK_INT(match_doubt_ppm(0), 500000);
    CHECK_INT(match_doubt_ppm(10000), 975);
    CHECK_INT(match_doubt_ppm(11000), 488);
    CHECK_INT(match_doubt_ppm(-10000), 999024);
    CHECK_INT(match_doubt_ppm(30000), 0);
    CHECK_INT(match_doubt_ppm(-30000), 1000000);
}

TEST(the_rules_have_a_name_that_changes_with_them)
{
    hash_setup();
    struct hash one = match_rules_hash(), two = match_rules_hash(), none = {{0}};
    CHECK(hash_equal(hash_bytes(&one), hash_bytes(&two)));
    CHECK(!hash_equal(hash_bytes(&one), hash_bytes(&none)));
}
