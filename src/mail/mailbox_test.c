#include "check.h"
#include "mail/mailbox.h"

TEST(a_path_is_read_strictly)
{
    static const struct {
        const char *text, *address, *behind;
        bool utf8;
    } rows[] = {
        {"<jane@example.com>", "jane@example.com", "", false},
        {"<jane@example.com> SIZE=1", "jane@example.com", " SIZE=1", false},
        {"<>", "", "", false},
        {"<@relay.example,@b.example:jane@example.com>", "jane@example.com", "", false},
        {"<\"a > b\"@example.com>", "\"a > b\"@example.com", "", false},
        {"<jane+tag@[127.0.0.1]>", "jane+tag@[127.0.0.1]", "", false},
        {"<postmaster>", "postmaster", "", false},
        {"<jürgen@müller.example>", "jürgen@müller.example", "", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bytes rest = bytes_of(rows[i].text), address = BYTES_NONE;
        if (!mailbox_path_take(&rest, rows[i].utf8, &address))
            check_fail(__FILE__, __LINE__, "%s is refused", rows[i].text);
        CHECK_TEXT(address, rows[i].address);
        CHECK_TEXT(rest, rows[i].behind);
    }
}

TEST(what_is_no_path_is_refused_and_nothing_moves)
{
    static const char *const rows[] = {"",
                                       "jane@example.com",
                                       "<jane@example.com",
                                       "<jane>",
                                       "<@example.com>",
                                       "<jane@>",
                                       "<a b@example.com>",
                                       "< >",
                                       "<a@b@c>",
                                       "<.a@example.com>",
                                       "<a.@x.example>",
                                       "<a..b@x.example>",
                                       "<a@-x.example>",
                                       "<a@x..example>",
                                       "<a@x.>",
                                       "<\"a@x.example>",
                                       "<@relay:>",
                                       "<@relay>",
                                       "<jürgen@x.example>",
                                       "<a@[x y]>"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bytes rest = bytes_of(rows[i]), address = BYTES("as before");
        if (mailbox_path_take(&rest, false, &address))
            check_fail(__FILE__, __LINE__, "%s is taken", rows[i]);
        CHECK_TEXT(rest, rows[i]);
        CHECK_TEXT(address, "as before");
    }
}

TEST(addresses_have_a_longest)
{
    char text[600] = "<";
    memset(text + 1, 'a', 65);
    snprintf(text + 66, sizeof text - 66, "@x.example>");
    struct bytes rest = bytes_of(text), address;
    CHECK(!mailbox_path_take(&rest, false, &address));
    rest = bytes_of(text + 1); /* one 'a' fewer */
    text[1] = '<';
    CHECK(mailbox_path_take(&rest, false, &address));
    snprintf(text, sizeof text, "<a@%0250d.example>", 1);
    rest = bytes_of(text);
    CHECK(!mailbox_path_take(&rest, false, &address));
}

TEST(patterns_say_who_listens)
{
    static const struct {
        const char *pattern, *address;
        bool matches;
    } rows[] = {
        {"leads@example.com", "Leads@Example.COM", true},
        {"leads@example.com", "leads+web@example.com", true},
        {"leads+web@example.com", "leads+web@example.com", true},
        {"leads+web@example.com", "leads@example.com", false},
        {"leads@example.com", "leads@example.org", false},
        {"leads@example.com", "lead@example.com", false},
        {"*@in.example.com", "anything@in.example.com", true},
        {"*@in.example.com", "a@example.com", false},
        {"*@in.example.com", "a@x.in.example.com", false},
        {"leads@*", "leads@anywhere.example", true},
        {"leads@*", "sales@anywhere.example", false},
        {"leads@example.com", "leads", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK(mailbox_pattern_is_valid(bytes_of(rows[i].pattern)));
        if (mailbox_pattern_matches(bytes_of(rows[i].pattern), bytes_of(rows[i].address)) != rows[i].matches)
            check_fail(__FILE__, __LINE__, "%s and %s", rows[i].pattern, rows[i].address);
    }
    static const char *const wrong[] = {
        "", "*", "leads", "*@*", "@example.com", "a b@example.com", "leads@", "*x@example.com.", "leads@ex ample.com"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (mailbox_pattern_is_valid(bytes_of(wrong[i])))
            check_fail(__FILE__, __LINE__, "\"%s\" is taken", wrong[i]);
    CHECK_TEXT(mailbox_name(BYTES("mail+x@example.com")), "mail");
}
