#include "match/match_own.h"

#include "check.h"

static struct match_name name_of(const char *text, struct arena *arena)
{
    struct match_name name;
    struct why why;
    CHECK_INT(match_name_make(bytes_of(text), BYTES_NONE, BYTES_NONE, arena, &name, &why), OK);
    return name;
}

TEST(a_name_is_read_as_people_write_it)
{
    static const struct {
        const char *text, *given, *middle, *family, *suffix;
    } rows[] = {
        {"Jane Roe", "jane", NULL, "roe", NULL},
        {"  DR.  JANE   ROE ", "jane", NULL, "roe", NULL},
        {"Roe, Jane", "jane", NULL, "roe", NULL},
        {"Roe, Jane A.", "jane", "a", "roe", NULL},
        {"David Dobbins Jr.", "david", NULL, "dobbins", "jr"},
        {"David Dobbins, Jr.", "david", NULL, "dobbins", "jr"},
        {"Dobbins, David Jr", "david", NULL, "dobbins", "jr"},
        {"Henry Ford II", "henry", NULL, "ford", "2"},
        {"Jane Roe, PhD", "jane", NULL, "roe", NULL},
        {"Jane Roe, M.D.", "jane", NULL, "roe", NULL},
        {"Jane Roe Ph.D.", "jane", NULL, "roe", NULL},
        {"Juan de la Cruz", "juan", NULL, "de la cruz", NULL},
        {"Ludwig van Beethoven", "ludwig", NULL, "van beethoven", NULL},
        {"Jean-Pierre Dupont", "jeanpierre", NULL, "dupont", NULL},
        {"Mary Smith-Jones", "mary", NULL, "smith jones", NULL},
        {"Conan O\xe2\x80\x99"
         "Brien",
         "conan", NULL, "obrien", NULL},
        {"\xd0\x9c\xd0\xb0\xd1\x80\xd0\xb8\xd1\x8f \xd0\x98\xd0\xb2\xd0\xb0\xd0\xbd\xd0\xbe\xd0\xb2\xd0\xb0", "maria", NULL,
         "ivanova", NULL},
        {"\xc5\x81ukasz Wa\xc5\x82\xc4\x99sa", "lukasz", NULL, "walesa", NULL},
        {"\xe7\x8e\x8b\xe4\xbc\x9f", "wang", NULL, "wei", NULL},
        {"Jane", "jane", NULL, NULL, NULL},
        {"Mr Smith", "smith", NULL, NULL, NULL},
        {"Al Roe", "al", NULL, "roe", NULL},
        {"R. Smith", "r", NULL, "smith", NULL},
        {"jane@acme.io", NULL, NULL, NULL, NULL},
        {"n/a", "n", NULL, "a", NULL},
        {"Unknown", NULL, NULL, NULL, NULL},
        {"12345", NULL, NULL, NULL, NULL},
        {",", NULL, NULL, NULL, NULL},
        {"", NULL, NULL, NULL, NULL},
        {"\xff\xfe", NULL, NULL, NULL, NULL},
    };
    struct arena arena;
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct match_name name = name_of(rows[i].text, &arena);
        CHECK_TEXT(name.given, rows[i].given);
        CHECK_TEXT(name.middle, rows[i].middle);
        CHECK_TEXT(name.family, rows[i].family);
        CHECK_TEXT(name.suffix, rows[i].suffix);
    }
    arena_release(&arena);
}

TEST(an_umlaut_is_written_in_two_ways)
{
    struct arena arena;
    arena_init(&arena, 1 << 20);
    struct match_name name = name_of("J\xc3\xbcrgen M\xc3\xbcller", &arena),
                      apart = name_of("Ju\xcc\x88rgen Mu\xcc\x88ller", &arena);
    CHECK_TEXT(name.given, "jurgen");
    CHECK_TEXT(name.given_too, "juergen");
    CHECK_TEXT(name.family_too, "mueller");
    CHECK_TEXT(apart.given_too, "juergen");
    CHECK(name_of("Jane Roe", &arena).given_too.at == NULL);
    arena_release(&arena);
}

TEST(two_names_agree_as_far_as_they_do)
{
    static const struct {
        const char *a, *b;
        enum given_level given;
        enum family_level family;
        bool swapped;
    } rows[] = {
        {"Jane Roe", "jane ROE", GIVEN_SAME, FAMILY_SAME, false},
        {"Bob Smith", "Robert Smith", GIVEN_NICKNAME, FAMILY_SAME, false},
        {"Bob Smith", "Rob Smith", GIVEN_NICKNAME, FAMILY_SAME, false},
        {"Sean Smith", "Ian Smith", GIVEN_CONFLICT, FAMILY_SAME, false},
        {"Luis Garski", "Louis Garsky", GIVEN_NICKNAME, FAMILY_TYPO, false},
        {"R. Smith", "Robert Smith", GIVEN_INITIAL, FAMILY_SAME, false},
        {"M. Dupont", "Jean Dupont", GIVEN_UNKNOWN, FAMILY_SAME, false},
        {"Roburt Harrison", "Robert Harrison", GIVEN_TYPO, FAMILY_SAME, false},
        {"Patrick Smith", "Patricia Smith", GIVEN_CONFLICT, FAMILY_SAME, false},
        {"Maria Lopez", "Mariana Lopez", GIVEN_CONFLICT, FAMILY_SAME, false},
        {"Raj Kapoor", "Rajesh Kapoor", GIVEN_SHORT, FAMILY_SAME, false},
        {"Shaw Daniella", "Daniella Shaw", GIVEN_SAME, FAMILY_SAME, true},
        {"Jane", "Jane Roe", GIVEN_SAME, FAMILY_UNKNOWN, false},
        {"Roe", "Jane Roe", GIVEN_UNKNOWN, FAMILY_SAME, true},
        {"Jane R.", "Jane Roe", GIVEN_SAME, FAMILY_INITIAL, false},
        {"Ana Garcia Lopez", "Ana Garcia", GIVEN_SAME, FAMILY_PART, false},
        {"Mary Smith-Jones", "Mary Jones", GIVEN_SAME, FAMILY_PART, false},
        {"Juan de la Cruz", "Juan Delacruz", GIVEN_SAME, FAMILY_SAME, false},
        {"J\xc3\xbcrgen M\xc3\xbcller", "Juergen Mueller", GIVEN_SAME, FAMILY_SAME, false},
        {"J\xc3\xbcrgen M\xc3\xbcller", "Jurgen Muller", GIVEN_SAME, FAMILY_SAME, false},
        {"Jane Roe", "Tom Hart", GIVEN_CONFLICT, FAMILY_CONFLICT, false},
    };
    struct arena arena;
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct match_name a = name_of(rows[i].a, &arena), b = name_of(rows[i].b, &arena);
        struct name_match there = name_compare(&a, &b, false), back = name_compare(&b, &a, false);
        if (there.given != rows[i].given || there.family != rows[i].family || there.swapped != rows[i].swapped)
            check_fail(__FILE__, __LINE__, "%s, %s: given %d, family %d, swapped %d", rows[i].a, rows[i].b, there.given,
                       there.family, there.swapped);
        CHECK_INT(back.given, there.given);
        CHECK_INT(back.family, there.family);
    }
    arena_release(&arena);
}

TEST(a_rare_name_says_more_than_a_common_one)
{
    struct arena arena;
    arena_init(&arena, 1 << 20);
    struct match_name common = name_of("John Smith", &arena), rare = name_of("Zbigniew Krawczykowski", &arena);
    CHECK(name_compare(&rare, &rare, false).total_mb > name_compare(&common, &common, false).total_mb);
    /* Who shares a mailbox shares the family name. */
    CHECK(name_compare(&common, &common, true).total_mb < name_compare(&common, &common, false).total_mb);
    /* A form of many names says less than a form of one. */
    struct match_name al = name_of("Al Roe", &arena), albert = name_of("Albert Roe", &arena);
    struct match_name doug = name_of("Doug Roe", &arena), douglas = name_of("Douglas Roe", &arena);
    CHECK(name_compare(&al, &albert, false).given_mb < name_compare(&doug, &douglas, false).given_mb);
    arena_release(&arena);
}

TEST(similarity_is_as_published)
{
    static const struct {
        const char *a, *b;
        int jaro_winkler, edits;
    } rows[] = {
        {"martha", "marhta", 961, 1}, {"dwayne", "duane", 840, 2}, {"dixon", "dicksonx", 813, 4}, {"abc", "abc", 1000, 0},
        {"abc", "xyz", 0, 3},         {"", "abc", 0, 3},           {"ca", "abc", 0, 3},           {"jane", "jnae", 925, 1},
    };
    static const struct {
        const char *text, *sound;
    } sounds[] = {{"robert", "r163"},     {"rupert", "r163"},  {"ashcraft", "a261"},
                  {"tymczak", "t522"},    {"pfister", "p236"}, {"honeyman", "h555"},
                  {"de la cruz", "d426"}, {"lee", "l000"},     {"", ""}};
    char sound[5];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_INT(similar_jaro_winkler(bytes_of(rows[i].a), bytes_of(rows[i].b)), rows[i].jaro_winkler);
        CHECK_INT(similar_edits(bytes_of(rows[i].a), bytes_of(rows[i].b)), rows[i].edits);
        CHECK_INT(similar_edits(bytes_of(rows[i].b), bytes_of(rows[i].a)), rows[i].edits);
    }
    for (size_t i = 0; i < sizeof sounds / sizeof *sounds; i++) {
        similar_sound(bytes_of(sounds[i].text), sound);
        CHECK_TEXT(bytes_of(sound), sounds[i].sound);
    }
}

TEST(the_logarithm_is_exact_to_the_thousandth)
{
    static const struct {
        uint64_t n;
        int32_t mb;
    } rows[] = {{1, 0}, {2, 1000}, {3, 1584}, {10, 3321}, {1000, 9965}, {1024, 10000}, {1000000, 19931}, {UINT64_MAX, 63999}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_INT(similar_log2_mb(rows[i].n), rows[i].mb);
}

TEST(a_company_is_its_name_without_the_legal_form)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"Acme, Inc.", "ACME", true},
        {"Acme GmbH", "acme ltd.", true},
        {"Acme S.A.R.L.", "Acme", true},
        {"The Acme Company", "Acme Co", true},
        {"North Foods", "Foods North LLC", false},
        {"North Foods", "NorthFoods", true},
        {"Acme", "Apex", false},
        {"Caf\xc3\xa9 Noir", "Cafe Noir SAS", true},
    };
    struct arena arena;
    struct why why;
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct match_company a, b;
        CHECK_INT(match_company_make(bytes_of(rows[i].a), &arena, &a, &why), OK);
        CHECK_INT(match_company_make(bytes_of(rows[i].b), &arena, &b, &why), OK);
        if (bytes_eq(a.key, b.key) != rows[i].same)
            check_fail(__FILE__, __LINE__, "%s is %.*s, %s is %.*s", rows[i].a, BYTES_ARG(a.key), rows[i].b, BYTES_ARG(b.key));
    }
    struct match_company none;
    CHECK_INT(match_company_make(BYTES("n/a"), &arena, &none, &why), OK);
    CHECK(none.key.at == NULL);
    arena_release(&arena);
}
