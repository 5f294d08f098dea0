#include "fingerprint/message.h"

#include "check.h"

static struct arena arena;

static void setup(void)
{
    hash_setup();
    arena_init(&arena, 16 << 20);
}

static struct message read_text(const char *text)
{
    struct message message;
    struct why why;
    CHECK_INT(message_read(bytes_of(text), &arena, &message, &why), OK);
    return message;
}

static bool is_equal(const char *a, const char *b)
{
    struct message x = read_text(a), y = read_text(b);
    return memcmp(x.hash.at, y.hash.at, HASH_SIZE) == 0;
}

TEST(form_never_makes_a_new_message)
{
    setup();
    CHECK(is_equal("Hello,  I need a quote\nfor 3 rooms!", " hello i need a QUOTE, for 3 rooms"));
    CHECK(is_equal("Straße", "STRASSE"));
    CHECK(is_equal("Ｈｅｌｌｏ", "hello"));
    CHECK(is_equal("caf\xc3\xa9", "cafe\xcc\x81"));
    CHECK(!is_equal("a quote for 3 rooms", "a quote for 4 rooms"));
    CHECK(!is_equal("it costs $5", "it costs €5"));
    CHECK(!is_equal("ab c", "a bc"));
    CHECK(!is_equal("👍", "👎"));
}

TEST(scripts_without_spaces_have_words)
{
    setup();
    CHECK_INT(read_text("予約したいです").word_count, 7);
    CHECK_INT(read_text("hello world").word_count, 2);
    CHECK_INT(read_text("").word_count, 0);
    CHECK_INT(read_text("  ...  ").word_count, 0);
    CHECK_INT(read_text("\xff\xfe broken").word_count, 1);
}

TEST(short_is_short)
{
    setup();
    static const char *const little[] = {"Hi", "yes please", "thanks a lot!", "ok 👍", ""};
    static const char *const enough[] = {"Do you have time on Friday?", "internationalisation of applications"};
    for (size_t i = 0; i < sizeof little / sizeof *little; i++) {
        struct message message = read_text(little[i]);
        CHECK(message_is_short(&message));
    }
    for (size_t i = 0; i < sizeof enough / sizeof *enough; i++) {
        struct message message = read_text(enough[i]);
        CHECK(!message_is_short(&message));
    }
}

static void likeness_of(const char *a, const char *b, int same_min, int same_max, int contained_min, int contained_max)
{
    struct message x = read_text(a), y = read_text(b);
    struct likeness ab = message_compare(&x, &y), ba = message_compare(&y, &x);
    CHECK_INT(ab.same, ba.same);
    CHECK_INT(ab.contained, ba.contained);
    CHECK(ab.same >= same_min && ab.same <= same_max);
    CHECK(ab.contained >= contained_min && ab.contained <= contained_max);
}

TEST(a_notification_contains_the_form)
{
    setup();
    const char *form = "I would like to know what a weekly coaching session costs and when you could begin.";
    likeness_of(form, form, 1000, 1000, 1000, 1000);
    likeness_of(
        form,
        "You have a new submission. Name: Jon. Message: I would like to know what a weekly coaching session costs and when you "
        "could begin. Reply to this mail to answer.",
        300, 700, 1000, 1000);
    likeness_of(form, "Can I cancel my appointment tomorrow please?", 0, 50, 0, 50);
    likeness_of("yes", "yes", 1000, 1000, 1000, 1000);
    likeness_of("yes", "", 0, 0, 0, 0);
}

TEST(what_differs_is_named)
{
    setup();
    struct message a = read_text("a quote for three rooms please"), b = read_text("a quote for four rooms");
    struct bytes only = message_only_in(&a, &b, 10, &arena);
    CHECK_TEXT(only, "three please");
    CHECK_TEXT(message_only_in(&a, &b, 1, &arena), "three");
    CHECK_INT(message_only_in(&b, &b, 10, &arena).len, 0);
}
