#include "check.h"
#include "smtp/session.h"

static struct smtp_session session;
static struct smtp_limits limits;
static char heard[1 << 20];
static struct why why;

static bool find(struct bytes address, char *ret_source, void *user)
{
    (void)user;
    struct bytes name = mailbox_name(address);
    if (!bytes_starts(name, BYTES("src")))
        return false;
    snprintf(ret_source, SMTP_SOURCE_SIZE_MAX + 1, "%.*s", BYTES_ARG(name));
    return true;
}

static void date(char ret[40], void *user)
{
    (void)user;
    snprintf(ret, 40, "Mon, 16 Nov 2026 09:00:00 +0000");
}

static void start_with(struct smtp_session_config config)
{
    if (session.recipients != NULL)
        smtp_session_release(&session);
    if (limits.size_max == 0)
        limits = smtp_limits_default;
    config.host = "here.example";
    config.peer = "192.0.2.1";
    config.limits = &limits;
    config.find = find;
    config.date = date;
    smtp_session_release(&session); /* of the conversation before */
    CHECK_INT(smtp_session_init(&session, &config, &why), OK);
    buf_clear(&session.out);
}

static void start(bool lmtp)
{
    start_with((struct smtp_session_config){.lmtp = lmtp});
}

/* What is answered to `text`; the rest that was not taken must be `left` bytes. */
static const char *talk_bytes(struct bytes text, size_t left)
{
    buf_clear(&session.out);
    CHECK_INT(text.len - smtp_session_feed(&session, text), left);
    CHECK(session.out.len < sizeof heard);
    memcpy(heard, buf_bytes(&session.out).at, session.out.len);
    heard[session.out.len] = '\0';
    return heard;
}

static const char *talk(const char *text)
{
    return talk_bytes(bytes_of(text), 0);
}

static void check_starts(const char *text, const char *prefix)
{
    if (strncmp(text, prefix, strlen(prefix)) != 0)
        check_fail(__FILE__, __LINE__, "\"%s\" does not begin with \"%s\"", text, prefix);
}

static void answer(enum status status)
{
    CHECK_INT(session.state, SMTP_DELIVERING);
    for (size_t i = 0; i < session.target_count; i++) {
        session.targets[i].done = true;
        session.targets[i].status = status;
    }
    buf_clear(&session.out);
    smtp_session_delivered(&session);
    memcpy(heard, session.out.at, session.out.len);
    heard[session.out.len] = '\0';
}

static void open_data(bool lmtp)
{
    start(lmtp);
    talk(lmtp ? "LHLO c.example\r\n" : "EHLO c.example\r\n");
    check_starts(talk("MAIL FROM:<jane@example.com>\r\n"), "250 2.1.0");
    check_starts(talk("RCPT TO:<src1@x.example>\r\n"), "250 2.1.5");
    check_starts(talk("DATA\r\n"), "354 ");
}

TEST(a_mail_is_taken_with_its_trace_and_without_its_dots)
{
    open_data(false);
    CHECK(strcmp(talk("Subject: x\r\n\r\n..a\r\n.b\r\nc.\r\n.\r\n"), "") == 0);
    CHECK_TEXT(buf_bytes(&session.mail), "Return-Path: <jane@example.com>\r\nReceived: from c.example (192.0.2.1) by "
                                         "here.example with ESMTP; Mon, 16 Nov 2026 09:00:00 +0000\r\n"
                                         "Subject: x\r\n\r\n.a\r\nb\r\nc.\r\n");
    answer(OK);
    CHECK(strcmp(heard, "250 2.0.0 it is kept\r\n") == 0);
    CHECK_INT(session.state, SMTP_COMMAND);
    check_starts(talk("DATA\r\n"), "503 "); /* the next mail begins anew */
}

TEST(it_is_the_same_however_the_bytes_are_cut)
{
    static const char text[] = "EHLO c.example\r\nMAIL FROM:<a@b.example> SIZE=10 BODY=8BITMIME\r\nRCPT "
                               "TO:<src1@x.example>\r\nRCPT TO:<no@x.example>\r\nNOOP\r\n";
    static const char mail[] = "A: b\r\n\r\n.\xC3\xA9\r\n..\r\n.\r\n";
    struct buf whole, pieces;
    start(false);
    buf_init(&whole, 1 << 20);
    buf_init(&pieces, 1 << 20);
    buf_add_cstr(&whole, talk(text));
    talk("DATA\r\n");
    talk(mail);
    struct buf kept;
    buf_init(&kept, 1 << 20);
    buf_add(&kept, buf_bytes(&session.mail));
    start(false);
    for (size_t i = 0; text[i] != '\0'; i++)
        buf_add_cstr(&pieces, talk_bytes((struct bytes){text + i, 1}, 0));
    talk("DATA\r\n");
    for (size_t i = 0; mail[i] != '\0'; i++)
        talk_bytes((struct bytes){mail + i, 1}, 0);
    CHECK(bytes_eq(buf_bytes(&whole), buf_bytes(&pieces)));
    CHECK(bytes_eq(buf_bytes(&kept), buf_bytes(&session.mail)));
    CHECK_INT(session.state, SMTP_DELIVERING);
    buf_release(&whole);
    buf_release(&pieces);
    buf_release(&kept);
}

TEST(the_extensions_are_announced)
{
    start(false);
    const char *text = talk("EHLO c.example\r\n");
    static const char *const words[] = {"250-PIPELINING\r\n", "250-8BITMIME\r\n", "250-SMTPUTF8\r\n", "250 SIZE 26214400\r\n"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        CHECK(strstr(text, words[i]) != NULL);
    start(false);
    CHECK(strcmp(talk("HELO c.example\r\n"), "250 here.example\r\n") == 0);
    check_starts(talk("MAIL FROM:<a@b.example> SIZE=1\r\n"), "501 ");
}

TEST(lmtp_answers_for_each_recipient)
{
    start(true);
    check_starts(talk("EHLO c\r\n"), "500 ");
    check_starts(talk("MAIL FROM:<>\r\n"), "503 ");
    talk(
        "LHLO c\r\nMAIL FROM:<>\r\nRCPT TO:<src1@x.example>\r\nRCPT TO:<src2@x.example>\r\nRCPT TO:<src1@y.example>\r\nDATA\r\n");
    talk("A: b\r\n\r\nx\r\n.\r\n");
    CHECK_INT(session.target_count, 2);
    session.targets[0].done = session.targets[1].done = true;
    session.targets[0].status = OK;
    session.targets[1].status = RETRY;
    smtp_session_delivered(&session);
    CHECK(strstr(session.out.at,
                 "250 2.0.0 it is kept\r\n451 4.3.0 it could not be kept; try again later\r\n250 2.0.0 it is kept\r\n") != NULL);
}

TEST(smtp_answers_once_and_never_well_when_one_source_failed)
{
    static const struct {
        enum status first, second;
        const char *want;
    } rows[] = {{OK, OK, "250 "}, {OK, FULL, "451 "}, {UNKNOWN, OK, "451 "}, {INVALID, OK, "554 "}, {INVALID, BROKEN, "451 "}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        start(false);
        talk("EHLO c\r\nMAIL FROM:<>\r\nRCPT TO:<src1@x.example>\r\nRCPT TO:<src2@x.example>\r\nDATA\r\n");
        talk("x\r\n.\r\n");
        session.targets[0] = (struct smtp_target){.done = true, .status = rows[i].first};
        session.targets[1] = (struct smtp_target){.done = true, .status = rows[i].second};
        buf_clear(&session.out);
        smtp_session_delivered(&session);
        check_starts(session.out.at, rows[i].want);
        CHECK(strchr(session.out.at, '\n') == session.out.at + session.out.len - 1);
    }
}

TEST(nothing_is_relayed)
{
    start(false);
    talk("EHLO c\r\nMAIL FROM:<src1@x.example>\r\n");
    check_starts(talk("RCPT TO:<jane@elsewhere.example>\r\n"), "550 5.1.1");
    check_starts(talk("RCPT TO:<>\r\n"), "501 ");
    check_starts(talk("DATA\r\n"), "554 ");
    CHECK_INT(session.state, SMTP_COMMAND);
}

TEST(a_mail_ends_only_where_everybody_sees_it_end)
{
    static const char *const rows[] = {"x\n.\nMAIL FROM:<a@b.example>\r\n",
                                       "x\n.\r\n",
                                       "x\r\n.\nMAIL\r\n",
                                       "x\r.\r\n",
                                       "x\r\n.\rMAIL\r\n",
                                       "x\r\r\n.\r\n",
                                       "\n",
                                       "x\r\n\n.\r\n",
                                       "x\r\n.\r\r\n",
                                       ".\n"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        open_data(false);
        buf_clear(&session.out);
        smtp_session_feed(&session, bytes_of(rows[i]));
        if (session.state != SMTP_ENDED)
            check_fail(__FILE__, __LINE__, "row %zu goes on", i);
        check_starts(session.out.at, "521 5.5.2");
        CHECK_INT(session.mails, 0);
    }
}

TEST(a_command_ends_in_cr_lf)
{
    static const char *const rows[] = {"NOOP\n", "NO\rOP\r\n", "EHLO c\nMAIL FROM:<a@b.example>\r\n"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        start(false);
        buf_clear(&session.out);
        smtp_session_feed(&session, bytes_of(rows[i]));
        CHECK_INT(session.state, SMTP_ENDED);
        check_starts(session.out.at, "521 ");
    }
}

TEST(a_mail_that_comes_before_it_was_invited_is_refused)
{
    start(false);
    static const char text[] = "EHLO c\r\nMAIL FROM:<>\r\nRCPT TO:<src1@x.example>\r\nDATA\r\nA: b\r\n\r\nx\r\n.\r\n";
    buf_clear(&session.out);
    smtp_session_feed(&session, bytes_of(text));
    CHECK_INT(session.state, SMTP_ENDED);
    CHECK(strstr(session.out.at, "503 5.5.1 the mail came before") != NULL);
}

TEST(what_follows_a_mail_waits_until_it_is_delivered)
{
    open_data(false);
    talk_bytes(BYTES("x\r\n.\r\nNOOP\r\nQUIT\r\n"), strlen("NOOP\r\nQUIT\r\n"));
    answer(OK);
    check_starts(talk("NOOP\r\n"), "250 ");
    check_starts(talk("QUIT\r\n"), "221 ");
    CHECK_INT(session.state, SMTP_ENDED);
}

TEST(commands_have_an_order_and_a_form)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"MAIL FROM:<a@b.example>\r\n", "503 5.5.1 EHLO"},
        {"LHLO c\r\n", "500 "},
        {"EHLO\r\n", "501 "},
        {"EHLO a b\r\n", "501 "},
        {"EHLO c.example\r\n", "250-"},
        {"RCPT TO:<src1@x.example>\r\n", "503 "},
        {"MAIL a@b.example\r\n", "501 "},
        {"MAIL FROM:a@b.example\r\n", "501 "},
        {"MAIL FROM:<a@b.example>x\r\n", "501 "},
        {"MAIL FROM:<a@b.example> SIZE=x\r\n", "501 "},
        {"MAIL FROM:<a@b.example> SIZE=99999999\r\n", "552 "},
        {"MAIL FROM:<a@b.example> BODY=BINARYMIME\r\n", "501 "},
        {"MAIL FROM:<a@b.example> AUTH=<>\r\n", "555 "},
        {"MAIL FROM:<\xC3\xA9@b.example>\r\n", "553 "},
        {"mail from: <a@b.example>\r\n", "250 "},
        {"MAIL FROM:<a@b.example>\r\n", "503 "},
        {"RCPT TO:<src1@x.example> NOTIFY=NEVER\r\n", "555 "},
        {"DATA now\r\n", "501 "},
        {"STARTTLS\r\n", "502 "},
        {"\r\n", "500 "},
        {"NO\x01OP\r\n", "500 5.5.2"},
        {"NOOP \xFF\r\n", "500 5.5.2"},
    };
    limits = smtp_limits_default;
    limits.errors_max = 100;
    start(false);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_starts(talk(rows[i].text), rows[i].want);
    check_starts(talk("RSET\r\nMAIL FROM:<\xC3\xA9@b.example> SMTPUTF8\r\n"), "250 2.0.0 ok\r\n250 2.1.0");
}

TEST(everything_has_a_limit)
{
    limits = smtp_limits_default;
    limits.size_max = 1000;
    limits.line_size_max = 100;
    limits.recipients_max = 3;
    limits.mails_max = 2;
    char line[3000];
    memset(line, 'a', sizeof line);

    open_data(true);
    for (int i = 0; i < 20; i++)
        talk_bytes((struct bytes){"0123456789012345678901234567890123456789012345678901234567890\r\n", 63}, 0);
    check_starts(talk(".\r\n"), "552 5.3.4");
    CHECK_INT(session.state, SMTP_COMMAND);

    talk("MAIL FROM:<>\r\nRCPT TO:<src1@x.example>\r\nRCPT TO:<src2@x.example>\r\n");
    talk("RCPT TO:<src3@x.example>\r\n");
    check_starts(talk("RCPT TO:<src4@x.example>\r\n"), "452 4.5.3");
    talk("DATA\r\n");
    talk_bytes((struct bytes){line, 101}, 0);
    check_starts(talk("\r\n.\r\n"), "554 5.6.0");
    check_starts(talk("MAIL FROM:<>\r\n"), "421 ");
    CHECK_INT(session.state, SMTP_ENDED);

    open_data(false);
    for (int i = 0; i < 3 && session.state == SMTP_DATA; i++)
        smtp_session_feed(&session, (struct bytes){line, sizeof line});
    CHECK_INT(session.state, SMTP_ENDED);

    start(false);
    talk_bytes((struct bytes){line, SMTP_COMMAND_SIZE_MAX + 1}, 0);
    check_starts(talk("\r\n"), "500 5.5.2 the line is too long");
    check_starts(talk("NOOP\r\n"), "250 ");
    for (uint32_t i = 2; i < limits.errors_max; i++)
        check_starts(talk("WHAT\r\n"), "500 ");
    check_starts(talk("WHAT\r\n"), "500 5.5.1 this command is not known here\r\n421 4.7.0");
    CHECK_INT(session.state, SMTP_ENDED);
}

/* ---- TLS and login ---- */

static bool login(struct bytes password, void *user)
{
    (void)user;
    return bytes_is(password, "sml_token");
}

TEST(tls_is_offered_where_it_can_be_done_and_forgets_what_was_said_before)
{
    start(false);
    CHECK(strstr(talk("EHLO c.example\r\n"), "STARTTLS") == NULL);
    check_starts(talk("STARTTLS\r\n"), "502 ");
    start_with((struct smtp_session_config){.can_secure = true});
    check_starts(talk("STARTTLS\r\n"), "503 "); /* EHLO comes first */
    CHECK(strstr(talk("EHLO c.example\r\n"), "250-STARTTLS\r\n") != NULL);
    talk("MAIL FROM:<jane@example.com>\r\n");
    check_starts(talk("STARTTLS now\r\n"), "501 ");
    check_starts(talk("STARTTLS\r\n"), "220 ");
    CHECK_INT(session.state, SMTP_SECURE);
    smtp_session_secured(&session);
    check_starts(talk("MAIL FROM:<jane@example.com>\r\n"), "503 "); /* EHLO comes first, again */
    CHECK(strstr(talk("EHLO c.example\r\n"), "STARTTLS") == NULL);
    check_starts(talk("STARTTLS\r\n"), "503 ");
    check_starts(talk("RCPT TO:<src1@x.example>\r\n"), "503 "); /* the sender was said in clear text */
    talk("MAIL FROM:<jane@example.com>\r\nRCPT TO:<src1@x.example>\r\n");
    talk("DATA\r\n");
    CHECK(memmem(session.mail.at, session.mail.len, " with ESMTPS; ", 14) != NULL);
}

TEST(what_came_in_clear_text_behind_starttls_is_refused)
{
    start_with((struct smtp_session_config){.can_secure = true});
    talk("EHLO c.example\r\n");
    const char *said = talk_bytes(BYTES("STARTTLS\r\nMAIL FROM:<eve@example.com>\r\n"), 29);
    CHECK(strstr(said, "503 5.5.1 something came before TLS") != NULL);
    CHECK_INT(session.state, SMTP_ENDED);
}

TEST(a_login_is_offered_only_where_nobody_listens_in)
{
    static const struct {
        struct smtp_session_config config;
        bool offered;
        const char *answer;
    } rows[] = {{{.login = login}, false, "502 "},
                {{.login = login, .can_secure = true}, false, "538 "},
                {{.login = login, .secured = true}, true, "235 "},
                {{.login = login, .loopback = true}, true, "235 "},
                {{.secured = true, .loopback = true}, false, "502 "},
                {{.login = login, .secured = true, .lmtp = true}, false, "500 "}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        start_with(rows[i].config);
        const char *said = talk(rows[i].config.lmtp ? "LHLO c.example\r\n" : "EHLO c.example\r\n");
        CHECK((strstr(said, "250-AUTH PLAIN LOGIN\r\n") != NULL) == rows[i].offered);
        check_starts(talk("AUTH PLAIN AGphbmUAc21sX3Rva2Vu\r\n"), rows[i].answer); /* NUL jane NUL sml_token */
    }
}

TEST(a_login_takes_the_token_by_plain_and_by_login)
{
    start_with((struct smtp_session_config){.login = login, .secured = true, .login_required = true});
    talk("EHLO c.example\r\n");
    check_starts(talk("MAIL FROM:<jane@example.com>\r\n"), "530 5.7.0 log in first");
    check_starts(talk("AUTH PLAIN AGphbmUAd3Jvbmc=\r\n"), "535 "); /* wrong */
    check_starts(talk("AUTH PLAIN !!!\r\n"), "535 ");
    check_starts(talk("AUTH PLAIN c21sX3Rva2Vu\r\n"), "535 "); /* the token alone */
    check_starts(talk("AUTH CRAM-MD5\r\n"), "504 ");
    check_starts(talk("AUTH PLAIN\r\n"), "334 ");
    check_starts(talk("*\r\n"), "501 ");
    check_starts(talk("AUTH LOGIN\r\n"), "334 VXNlcm5hbWU6");
    check_starts(talk("amFuZQ==\r\n"), "334 UGFzc3dvcmQ6");
    check_starts(talk("d3Jvbmc=\r\n"), "535 ");
    check_starts(talk("MAIL FROM:<jane@example.com>\r\n"), "530 ");
    check_starts(talk("AUTH LOGIN amFuZQ==\r\n"), "334 UGFzc3dvcmQ6");
    check_starts(talk("c21sX3Rva2Vu\r\n"), "235 ");
    check_starts(talk("AUTH LOGIN\r\n"), "503 ");
    check_starts(talk("MAIL FROM:<jane@example.com>\r\n"), "250 ");
    talk("RCPT TO:<src1@x.example>\r\n");
    talk("DATA\r\n");
    CHECK(memmem(session.mail.at, session.mail.len, " with ESMTPSA; ", 15) != NULL);
}

TEST(nothing_of_a_password_stays_in_the_line)
{
    start_with((struct smtp_session_config){.login = login, .loopback = true});
    talk("EHLO c.example\r\n");
    check_starts(talk("AUTH PLAIN AGphbmUAc21sX3Rva2Vu\r\n"), "235 ");
    CHECK(memmem(session.line, sizeof session.line, "c21sX3Rva2Vu", 12) == NULL);
}
