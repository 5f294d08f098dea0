#include "check.h"
#include "cli/mbox.h"

static struct mbox mbox;
static struct buf mail;
static struct why why;

static void open_text(const char *text, size_t size_max)
{
    FILE *file = tmpfile();
    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    rewind(file);
    mbox_release(&mbox);
    mbox_init(&mbox, file);
    buf_release(&mail);
    buf_init(&mail, size_max);
}

TEST(mails_are_cut_at_from_lines_and_unquoted)
{
    open_text("\nFrom a@x.example Mon Nov 16 10:00:00 2026\nSubject: 1\n\n>From me\n>>From you\n> From\nFrom here at 10:00 "
              "on\n\nFrom now "
              "on it is one mail\n\n"
              "From b Mon Nov 16 10:00 2026\nSubject: 2\n\n\n\nend\n\n\nFrom - Mon Nov 16 10:00:00 2026\nSubject: 3\n",
              1 << 20);
    CHECK_INT(mbox_next(&mbox, &mail, &why), OK);
    CHECK_TEXT(buf_bytes(&mail),
               "Subject: 1\n\nFrom me\n>From you\n> From\nFrom here at 10:00 on\n\nFrom now on it is one mail\n");
    CHECK_INT(mbox_next(&mbox, &mail, &why), OK);
    CHECK_TEXT(buf_bytes(&mail), "Subject: 2\n\n\n\nend\n\n");
    CHECK_INT(mbox_next(&mbox, &mail, &why), OK);
    CHECK_TEXT(buf_bytes(&mail), "Subject: 3\n");
    CHECK_INT(mbox.number, 3);
    CHECK_INT(mbox_next(&mbox, &mail, &why), NOTHING);
    CHECK_INT(mbox_next(&mbox, &mail, &why), NOTHING);
}

TEST(what_is_no_mbox_is_refused)
{
    open_text("Subject: a mail alone\n\nx\n", 1 << 20);
    CHECK_INT(mbox_next(&mbox, &mail, &why), INVALID);
    open_text("", 1 << 20);
    CHECK_INT(mbox_next(&mbox, &mail, &why), NOTHING);
}

TEST(a_mail_that_is_too_large_does_not_hide_the_next)
{
    open_text("From a 10:00\n0123456789\n\nFrom b 10:00\nok\n", 8);
    CHECK_INT(mbox_next(&mbox, &mail, &why), FULL);
    CHECK_INT(mbox_next(&mbox, &mail, &why), OK);
    CHECK_TEXT(buf_bytes(&mail), "ok\n");
}
