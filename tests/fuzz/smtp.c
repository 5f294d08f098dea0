/* An SMTP or LMTP conversation: it goes the same way however its bytes are cut, answers in whole lines, and hands on only what ended as a mail ends. */
#include "fuzz.h"

#include "smtp/session.h"

static bool find(struct bytes address, char *ret_source, void *user)
{
    (void)user;
    snprintf(ret_source, SMTP_SOURCE_SIZE_MAX + 1, "s%zu", address.len % 3);
    return address.len % 5 != 0;
}

static bool login(struct bytes password, void *user)
{
    (void)user;
    return password.len % 3 == 1;
}

static void date(char ret[40], void *user)
{
    (void)user;
    snprintf(ret, 40, "Mon, 16 Nov 2026 09:00:00 +0000");
}

static void check_answers(struct bytes out)
{
    while (out.len > 0) {
        struct bytes line = bytes_cut(&out, '\n');
        ASSERT(line.len >= 5);
        ASSERT(line.at[line.len - 1] == '\r');
        ASSERT(line.at[0] >= '2' && line.at[0] <= '5');
        ASSERT(line.at[3] == ' ' || line.at[3] == '-');
    }
}

/* Line ends are CR LF and nothing else. */
static void check_mail(struct bytes mail)
{
    ASSERT(bytes_starts(mail, BYTES("Return-Path: <")));
    for (size_t i = 0; i < mail.len; i++) {
        ASSERT(mail.at[i] != '\n' || (i > 0 && mail.at[i - 1] == '\r'));
        ASSERT(mail.at[i] != '\r' || (i + 1 < mail.len && mail.at[i + 1] == '\n'));
    }
}

static void deliver(struct smtp_session *session, uint8_t way)
{
    static const enum status ends[] = {OK, INVALID, RETRY, UNKNOWN};
    ASSERT(session->target_count > 0);
    check_mail(buf_bytes(&session->mail));
    for (size_t i = 0; i < session->target_count; i++) {
        session->targets[i].done = true;
        session->targets[i].status = ends[(way + i) % 4];
    }
    smtp_session_delivered(session);
}

/* Everything in pieces of one byte, or of one line; what was answered. */
static void converse(struct bytes in, uint8_t way, bool lines, struct buf *out)
{
    struct smtp_limits limits = smtp_limits_default;
    limits.size_max = 600;
    limits.line_size_max = 200;
    limits.recipients_max = 4;
    limits.mails_max = 5;
    const struct smtp_session_config config = {.lmtp = way % 2 == 1,
                                               .host = "h",
                                               .peer = "p",
                                               .limits = &limits,
                                               .can_secure = way % 4 >= 2,
                                               .secured = way % 8 >= 4,
                                               .loopback = way % 16 >= 8,
                                               .login_required = way % 32 >= 16,
                                               .login = way % 64 >= 32 ? login : NULL,
                                               .find = find,
                                               .date = date};
    struct smtp_session session;
    ASSERT(smtp_session_init(&session, &config, NULL) == OK);
    while (in.len > 0 && session.state != SMTP_ENDED) {
        const char *end = lines ? memchr(in.at, '\n', in.len) : in.at;
        struct bytes piece = {in.at, end != NULL ? (size_t)(end - in.at) + 1 : in.len};
        size_t used = smtp_session_feed(&session, piece);
        ASSERT(used == piece.len || session.state == SMTP_DELIVERING || session.state == SMTP_ENDED);
        ASSERT(session.state != SMTP_DELIVERING || !config.login_required || session.logged_in);
        ASSERT(!session.logged_in || session.secured || config.loopback);
        in = bytes_from(in, used);
        if (session.state == SMTP_SECURE)
            smtp_session_secured(&session);
        if (session.state == SMTP_DELIVERING)
            deliver(&session, way);
    }
    ASSERT(!session.out.failed);
    check_answers(buf_bytes(&session.out));
    buf_add(out, buf_bytes(&session.out));
    smtp_session_release(&session);
}

FUZZ_TARGET(smtp)(const uint8_t *data, size_t size)
{
    struct bytes in = fuzz_exact(fuzz_bytes(data, size)), rest = in;
    uint8_t way = fuzz_byte(&rest);
    struct buf bytewise, linewise;
    buf_init(&bytewise, 1 << 20);
    buf_init(&linewise, 1 << 20);
    converse(rest, way, false, &bytewise);
    converse(rest, way, true, &linewise);
    ASSERT(bytes_eq(buf_bytes(&bytewise), buf_bytes(&linewise)));
    buf_release(&bytewise);
    buf_release(&linewise);
    free((char *)in.at);
    return 0;
}
