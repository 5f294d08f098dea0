#include "smtp/session.h"

#include "base/base64.h"

const struct smtp_limits smtp_limits_default = {
    .size_max = (size_t)25 << 20,
    .line_size_max = 16 << 10,
    .recipients_max = 100,
    .errors_max = 20,
    .mails_max = 1000,
    .connections_max = 128,
    .connections_per_peer = 16,
    .command_timeout_us = INT64_C(300) * 1000 * 1000,
    .data_timeout_us = INT64_C(600) * 1000 * 1000,
    .block_timeout_us = INT64_C(180) * 1000 * 1000,
};

enum { OUT_SIZE_MAX = 256 * 1024, MAIL_KEPT_MAX = 256 * 1024 };

/* Where in a line of a mail the next byte stands. */
enum data_state { AT_START, IN_LINE, AFTER_CR, AFTER_DOT, AFTER_DOT_CR };

/* ---- answers ---- */

static void say(struct smtp_session *session, const char *answer)
{
    buf_add_cstr(&session->out, answer);
    buf_add_cstr(&session->out, "\r\n");
}

/* The last one; what the client still sends is not looked at. */
static void end(struct smtp_session *session, const char *answer)
{
    say(session, answer);
    session->state = SMTP_ENDED;
}

void smtp_session_end(struct smtp_session *session, const char *answer)
{
    if (session->state != SMTP_ENDED)
        end(session, answer);
}

/* A client that errs too often is a program that guesses. */
static void refuse(struct smtp_session *session, const char *answer)
{
    say(session, answer);
    if (++session->errors >= session->config.limits->errors_max)
        end(session, "421 4.7.0 too many errors");
}

/* ---- life ---- */

static void forget_mail(struct smtp_session *session)
{
    session->has_sender = session->utf8 = false;
    session->target_count = session->recipient_count = 0;
    session->data_too_large = session->data_too_long = false;
    session->data_size = session->data_line = 0;
    if (session->mail.cap > MAIL_KEPT_MAX)
        buf_release(&session->mail);
    buf_clear(&session->mail);
}

enum status smtp_session_init(struct smtp_session *session, const struct smtp_session_config *config, struct why *why)
{
    uint8_t *recipients = calloc(config->limits->recipients_max, sizeof *recipients);
    if (recipients == NULL)
        return why_set(why, FULL, "there is no memory for another connection");
    memset(session, 0, sizeof *session);
    session->config = *config;
    session->secured = config->secured;
    session->recipients = recipients;
    buf_init(&session->out, OUT_SIZE_MAX);
    buf_init(&session->mail, config->limits->size_max + SMTP_TRACE_SIZE_MAX);
    session->mail.wipe = true; /* people's words */
    buf_printf(&session->out, "220 %s %s semel\r\n", config->host, config->lmtp ? "LMTP" : "ESMTP");
    return OK;
}

void smtp_session_release(struct smtp_session *session)
{
    buf_release(&session->out);
    buf_release(&session->mail);
    free(session->recipients);
}

/* ---- greeting ---- */

static bool is_hello(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && (c == '\0' || strchr("-._:[]", c) == NULL))
            return false;
    }
    return name.len > 0 && name.len <= SMTP_HELLO_SIZE_MAX;
}

static bool offers_tls(const struct smtp_session *session)
{
    return session->config.can_secure && !session->config.lmtp && !session->secured;
}

/* Nobody can listen in. */
static bool offers_login(const struct smtp_session *session)
{
    return session->config.login != NULL && !session->config.lmtp && (session->secured || session->config.loopback);
}

static void on_hello(struct smtp_session *session, struct bytes rest, bool extended)
{
    const struct smtp_session_config *config = &session->config;
    struct bytes name = bytes_trim(rest);
    if (!is_hello(name)) {
        refuse(session, "501 5.5.4 say your host name");
        return;
    }
    forget_mail(session);
    memcpy(session->hello, name.at, name.len);
    session->hello[name.len] = '\0';
    session->extended = extended;
    session->state = SMTP_COMMAND;
    if (!extended) {
        buf_printf(&session->out, "250 %s\r\n", config->host);
        return;
    }
    buf_printf(&session->out,
               "250-%s\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250-ENHANCEDSTATUSCODES\r\n%s%s250 SIZE %zu\r\n",
               config->host, offers_tls(session) ? "250-STARTTLS\r\n" : "",
               offers_login(session) ? "250-AUTH PLAIN LOGIN\r\n" : "", config->limits->size_max);
}

static void on_ehlo(struct smtp_session *session, struct bytes rest)
{
    on_hello(session, rest, true);
}

static void on_helo(struct smtp_session *session, struct bytes rest)
{
    on_hello(session, rest, false);
}

/* ---- MAIL and RCPT ---- */

/* "SIZE=123", "BODY=8BITMIME", "SMTPUTF8"; true when it is understood. */
static bool take_parameter(struct smtp_session *session, struct bytes parameter, const char **ret_answer)
{
    struct bytes value = parameter, name = bytes_cut(&value, '=');
    uint64_t size;
    bool has_value = name.len < parameter.len;
    *ret_answer = "501 5.5.4 the parameter has a wrong value";
    if (bytes_eq_nocase(name, BYTES("SIZE"))) {
        if (!has_value || !bytes_to_u64(value, &size))
            return false;
        *ret_answer = "552 5.3.4 the mail is larger than SIZE allows";
        return size <= session->config.limits->size_max;
    }
    if (bytes_eq_nocase(name, BYTES("BODY")))
        return has_value && (bytes_eq_nocase(value, BYTES("7BIT")) || bytes_eq_nocase(value, BYTES("8BITMIME")));
    if (bytes_eq_nocase(name, BYTES("SMTPUTF8")) && !has_value) {
        session->utf8 = true;
        return true;
    }
    *ret_answer = "555 5.5.4 the parameter is not known here";
    return false;
}

/* Parameters stand behind the path, but decide how it is read. */
static bool take_parameters(struct smtp_session *session, struct bytes rest, const char **ret_answer)
{
    while (rest.len > 0) {
        struct bytes parameter = bytes_cut(&rest, ' ');
        if (parameter.len > 0 && (!session->extended || !take_parameter(session, parameter, ret_answer)))
            return false;
    }
    return true;
}

/* "FROM:<…>", also with a space behind the colon, as some programs write it. */
static bool take_word(struct bytes *rest, const char *word)
{
    size_t len = strlen(word);
    if (rest->len < len || !bytes_eq_nocase((struct bytes){rest->at, len}, bytes_of(word)))
        return false;
    *rest = bytes_from(*rest, len);
    while (rest->len > 0 && rest->at[0] == ' ')
        *rest = bytes_from(*rest, 1);
    return true;
}

static void on_mail(struct smtp_session *session, struct bytes rest)
{
    struct bytes address;
    const char *answer = "501 5.5.4 parameters need EHLO";
    if (session->config.login_required && !session->logged_in) {
        refuse(session, offers_login(session) ? "530 5.7.0 log in first" : "530 5.7.0 begin TLS first, then log in");
        return;
    }
    if (session->has_sender) {
        refuse(session, "503 5.5.1 one mail at a time: RSET first");
        return;
    }
    if (session->mails >= session->config.limits->mails_max) {
        end(session, "421 4.7.0 enough mails for one connection; come again");
        return;
    }
    if (!take_word(&rest, "FROM:") || !mailbox_path_take(&rest, true, &address) || (rest.len > 0 && rest.at[0] != ' ')) {
        refuse(session, "501 5.1.7 write MAIL FROM:<address>");
        return;
    }
    bool understood = take_parameters(session, rest, &answer);
    if (understood && !session->utf8 && address.len > 0 && !mailbox_is_valid(address, false)) {
        understood = false;
        answer = "553 5.6.7 this address needs SMTPUTF8";
    }
    if (!understood) {
        session->utf8 = false;
        refuse(session, answer);
        return;
    }
    if (address.len > 0)
        memcpy(session->sender, address.at, address.len);
    session->sender[address.len] = '\0';
    session->has_sender = true;
    say(session, "250 2.1.0 ok");
}

/* The target of this source, made when it is new; NULL when there are too many. */
static struct smtp_target *target_of(struct smtp_session *session, const char *source)
{
    for (size_t i = 0; i < session->target_count; i++)
        if (strcmp(session->targets[i].source, source) == 0)
            return &session->targets[i];
    if (session->target_count == SMTP_SOURCES_MAX)
        return NULL;
    struct smtp_target *target = &session->targets[session->target_count++];
    *target = (struct smtp_target){.status = RETRY};
    snprintf(target->source, sizeof target->source, "%s", source);
    return target;
}

static void on_rcpt(struct smtp_session *session, struct bytes rest)
{
    char source[SMTP_SOURCE_SIZE_MAX + 1];
    struct bytes address;
    struct smtp_target *target;
    if (!session->has_sender)
        refuse(session, "503 5.5.1 MAIL comes first");
    else if (!take_word(&rest, "TO:") || !mailbox_path_take(&rest, session->utf8, &address) || address.len == 0)
        refuse(session, "501 5.1.3 write RCPT TO:<address>");
    else if (bytes_trim(rest).len > 0)
        refuse(session, "555 5.5.4 RCPT has no parameters here");
    else if (session->recipient_count >= session->config.limits->recipients_max)
        refuse(session, "452 4.5.3 too many recipients");
    else if (!session->config.find(address, source, session->config.user))
        refuse(session, "550 5.1.1 no source listens to this address");
    else if ((target = target_of(session, source)) == NULL)
        refuse(session, "452 4.5.3 too many sources in one mail");
    else {
        session->recipients[session->recipient_count++] = (uint8_t)(target - session->targets);
        say(session, "250 2.1.5 ok");
    }
}

/* ---- DATA ---- */

/* RFC 3848. */
static const char *transmission_name(const struct smtp_session *session)
{
    static const char *const names[2][2] = {{"ESMTP", "ESMTPA"}, {"ESMTPS", "ESMTPSA"}};
    if (session->config.lmtp)
        return "LMTP";
    return session->extended ? names[session->secured][session->logged_in] : "SMTP";
}

/* RFC 5321, 4.4: who is told when it cannot be answered, and how it came here. */
static void write_trace(struct smtp_session *session)
{
    const struct smtp_session_config *config = &session->config;
    char date[40];
    config->date(date, config->user);
    buf_printf(&session->mail, "Return-Path: <%s>\r\nReceived: from %s (%s) by %s with %s%s; %s\r\n", session->sender,
               session->hello, config->peer, config->host, session->utf8 ? "UTF8" : "", transmission_name(session), date);
}

static void on_data(struct smtp_session *session, struct bytes rest)
{
    if (rest.len > 0)
        refuse(session, "501 5.5.4 DATA has no parameters");
    else if (!session->has_sender)
        refuse(session, "503 5.5.1 MAIL comes first");
    else if (session->recipient_count == 0)
        refuse(session, "554 5.5.1 nobody would get it");
    else {
        write_trace(session);
        session->data_state = AT_START;
        session->state = SMTP_DATA;
        say(session, "354 send it, and end with a line of one dot");
    }
}

/* What is over a limit is counted and dropped, so that the client can be told. */
static void keep(struct smtp_session *session, struct bytes bytes)
{
    const struct smtp_limits *limits = session->config.limits;
    session->data_size += bytes.len;
    session->data_too_large = session->data_too_large || session->data_size > limits->size_max;
    session->data_too_long = session->data_too_long || session->data_line > limits->line_size_max;
    if (!session->data_too_large && !session->data_too_long)
        buf_add(&session->mail, bytes);
    else if (session->data_size > 4 * limits->size_max + limits->line_size_max)
        end(session, "552 5.3.4 the mail is larger than SIZE allows");
}

static void answer_all(struct smtp_session *session, const char *answer)
{
    uint32_t count = session->config.lmtp ? session->recipient_count : 1;
    for (uint32_t i = 0; i < count; i++)
        say(session, answer);
    forget_mail(session);
    session->state = SMTP_COMMAND;
}

static void end_data(struct smtp_session *session)
{
    session->mails++;
    if (session->data_too_large)
        answer_all(session, "552 5.3.4 the mail is larger than SIZE allows");
    else if (session->data_too_long)
        answer_all(session, "554 5.6.0 the mail has a line that is too long");
    else if (session->mail.failed)
        answer_all(session, "451 4.3.0 there is no memory for the mail");
    else
        session->state = SMTP_DELIVERING;
}

/* Servers that take a bare line feed for a line end see other mails in it than those that do not. */
static void end_bare(struct smtp_session *session)
{
    end(session, "521 5.5.2 a line ends in CR LF; neither stands alone");
}

/* The run of plain bytes in front of the next CR or LF. */
static size_t plain_size(struct bytes in)
{
    size_t len = 0;
    while (len < in.len && in.at[len] != '\r' && in.at[len] != '\n')
        len++;
    return len;
}

static size_t feed_line(struct smtp_session *session, struct bytes in)
{
    size_t len = plain_size(in);
    session->data_line += len;
    keep(session, (struct bytes){in.at, len});
    session->data_state = IN_LINE;
    if (len == in.len || session->state != SMTP_DATA)
        return len;
    if (in.at[len] == '\n')
        end_bare(session);
    session->data_state = AFTER_CR;
    return len + 1;
}

static size_t feed_data(struct smtp_session *session, struct bytes in)
{
    char c = in.at[0];
    switch ((enum data_state)session->data_state) {
    case AT_START:
        session->data_line = 0;
        if (c != '.')
            return feed_line(session, in);
        session->data_state = AFTER_DOT;
        return 1;
    case IN_LINE:
        return feed_line(session, in);
    case AFTER_CR:
        if (c != '\n')
            end_bare(session);
        else
            keep(session, BYTES("\r\n"));
        session->data_state = AT_START;
        return 1;
    case AFTER_DOT:
        if (c != '\r')
            return feed_line(session, in);
        session->data_state = AFTER_DOT_CR;
        return 1;
    case AFTER_DOT_CR:
        if (c == '\n')
            end_data(session);
        else
            end_bare(session);
        return 1;
    }
    return 1;
}

/* ---- after delivery ---- */

static void say_target(struct smtp_session *session, const struct smtp_target *target)
{
    switch (target->status) {
    case OK:
        say(session, "250 2.0.0 it is kept");
        return;
    case INVALID:
    case NOTHING:
        buf_printf(&session->out, "554 5.6.0 %s\r\n",
                   target->why.text[0] != '\0' ? target->why.text : "the mail is not accepted");
        return;
    case CONFLICT:
    case RETRY:
    case UNKNOWN:
    case FULL:
    case BROKEN:
        break;
    }
    say(session, "451 4.3.0 it could not be kept; try again later");
}

/* SMTP has one answer for all: the worst that can be repeated first, for what was kept already is recognised when it comes again. */
static const struct smtp_target *answer_for_all(const struct smtp_session *session)
{
    const struct smtp_target *worst = &session->targets[0];
    for (size_t i = 0; i < session->target_count; i++) {
        const struct smtp_target *target = &session->targets[i];
        bool refused = target->status == INVALID || target->status == NOTHING;
        if (target->status != OK && !refused)
            return target;
        if (refused)
            worst = target;
    }
    return worst;
}

void smtp_session_delivered(struct smtp_session *session)
{
    ASSERT(session->state == SMTP_DELIVERING);
    for (size_t i = 0; i < session->target_count; i++)
        ASSERT(session->targets[i].done);
    if (!session->config.lmtp)
        say_target(session, answer_for_all(session));
    for (uint32_t i = 0; session->config.lmtp && i < session->recipient_count; i++)
        say_target(session, &session->targets[session->recipients[i]]);
    forget_mail(session);
    session->state = SMTP_COMMAND;
}

/* ---- TLS and login ---- */

static void on_starttls(struct smtp_session *session, struct bytes rest)
{
    if (rest.len > 0)
        refuse(session, "501 5.5.4 STARTTLS has no parameters");
    else if (!offers_tls(session))
        refuse(session, session->secured ? "503 5.5.1 it is under TLS already" : "502 5.5.1 there is no TLS here");
    else {
        say(session, "220 2.0.0 go ahead");
        session->state = SMTP_SECURE;
    }
}

void smtp_session_secured(struct smtp_session *session)
{
    ASSERT(session->state == SMTP_SECURE);
    forget_mail(session);
    session->hello[0] = '\0';
    session->extended = session->logged_in = false;
    session->secured = true;
    session->state = SMTP_HELLO;
}

/* The password of "authzid NUL user NUL password", or of a plain text. */
static bool check_login(struct smtp_session *session, struct bytes base64, bool parts)
{
    struct arena arena;
    arena_init(&arena, 8 << 10);
    arena.wipe = true;
    struct bytes text = base64_decode(base64, &arena);
    bool holds = text.at != NULL;
    for (int i = 0; holds && parts && i < 2; i++) {
        const char *end = memchr(text.at, '\0', text.len);
        holds = end != NULL;
        text = holds ? bytes_from(text, (size_t)(end - text.at) + 1) : text;
    }
    holds = holds && memchr(text.at, '\0', text.len) == NULL && session->config.login(text, session->config.user);
    arena_release(&arena);
    return holds;
}

static void end_login(struct smtp_session *session, struct bytes base64, bool parts)
{
    session->login = LOGIN_NONE;
    session->logged_in = check_login(session, base64, parts);
    if (session->logged_in)
        say(session, "235 2.7.0 welcome");
    else
        refuse(session, "535 5.7.8 the password has to be a token with the scope claim");
}

static void ask(struct smtp_session *session, enum smtp_login login, const char *question)
{
    session->login = login;
    say(session, question);
}

/* A line of a login that is under way. */
static void go_on_login(struct smtp_session *session, struct bytes line)
{
    enum smtp_login login = session->login;
    session->login = LOGIN_NONE;
    if (bytes_is(line, "*"))
        refuse(session, "501 5.7.0 as you like");
    else if (login == LOGIN_USER)
        ask(session, LOGIN_PASSWORD, "334 UGFzc3dvcmQ6"); /* "Password:" */
    else
        end_login(session, line, login == LOGIN_PLAIN);
}

static void on_auth(struct smtp_session *session, struct bytes rest)
{
    struct bytes first = rest, mechanism = bytes_cut(&first, ' ');
    first = bytes_trim(first);
    bool plain = bytes_eq_nocase(mechanism, BYTES("PLAIN")), login = bytes_eq_nocase(mechanism, BYTES("LOGIN"));
    if (!offers_login(session))
        refuse(session, offers_tls(session) ? "538 5.7.11 begin TLS first" : "502 5.5.1 there are no logins here");
    else if (session->logged_in || session->has_sender)
        refuse(session, "503 5.5.1 log in once, before a mail");
    else if (!plain && !login)
        refuse(session, "504 5.5.4 PLAIN or LOGIN");
    else if (plain && first.len > 0)
        end_login(session, first, true);
    else if (plain)
        ask(session, LOGIN_PLAIN, "334 ");
    else if (first.len > 0)
        ask(session, LOGIN_PASSWORD, "334 UGFzc3dvcmQ6");
    else
        ask(session, LOGIN_USER, "334 VXNlcm5hbWU6"); /* "Username:" */
}

/* ---- commands ---- */

static void on_rset(struct smtp_session *session, struct bytes rest)
{
    (void)rest;
    forget_mail(session);
    say(session, "250 2.0.0 ok");
}

static void on_noop(struct smtp_session *session, struct bytes rest)
{
    (void)rest;
    say(session, "250 2.0.0 ok");
}

static void on_quit(struct smtp_session *session, struct bytes rest)
{
    (void)rest;
    end(session, "221 2.0.0 bye");
}

static void on_vrfy(struct smtp_session *session, struct bytes rest)
{
    (void)rest;
    refuse(session, "252 2.5.0 send the mail and see");
}

enum { FOR_SMTP = 1, FOR_LMTP = 2, FOR_BOTH = 3, GREETED = 4 };

static const struct {
    const char *verb;
    unsigned where; /* GREETED: only behind the greeting */
    void (*run)(struct smtp_session *session, struct bytes rest);
} commands[] = {
    {"EHLO", FOR_SMTP, on_ehlo},           {"HELO", FOR_SMTP, on_helo},           {"LHLO", FOR_LMTP, on_ehlo},
    {"MAIL", FOR_BOTH | GREETED, on_mail}, {"RCPT", FOR_BOTH | GREETED, on_rcpt}, {"DATA", FOR_BOTH | GREETED, on_data},
    {"RSET", FOR_BOTH, on_rset},           {"NOOP", FOR_BOTH, on_noop},           {"QUIT", FOR_BOTH, on_quit},
    {"VRFY", FOR_BOTH, on_vrfy},           {"AUTH", FOR_SMTP | GREETED, on_auth}, {"STARTTLS", FOR_SMTP | GREETED, on_starttls},
};

static void run_command(struct smtp_session *session, struct bytes line)
{
    struct bytes rest = line, verb = bytes_cut(&rest, ' ');
    unsigned kind = session->config.lmtp ? FOR_LMTP : FOR_SMTP;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (!bytes_eq_nocase(verb, bytes_of(commands[i].verb)) || (commands[i].where & kind) == 0)
            continue;
        if ((commands[i].where & GREETED) != 0 && session->state == SMTP_HELLO)
            refuse(session, session->config.lmtp ? "503 5.5.1 LHLO comes first" : "503 5.5.1 EHLO comes first");
        else
            commands[i].run(session, bytes_trim(rest));
        return;
    }
    refuse(session, "500 5.5.1 this command is not known here");
}

static bool is_clean(struct bytes line)
{
    for (size_t i = 0; i < line.len; i++)
        if ((unsigned char)line.at[i] < ' ' || line.at[i] == 0x7F)
            return false;
    return bytes_is_utf8(line);
}

static void end_line(struct smtp_session *session)
{
    struct bytes line = {session->line, session->line_len};
    session->line_len = 0;
    session->line_cr = false;
    if (session->line_too_long)
        refuse(session, "500 5.5.2 the line is too long");
    else if (!is_clean(line))
        refuse(session, "500 5.5.2 the line has characters that commands do not have");
    else if (session->login != LOGIN_NONE)
        go_on_login(session, line);
    else
        run_command(session, line);
    if (session->config.login != NULL)
        explicit_bzero(session->line, sizeof session->line); /* it may have held a password */
    session->line_too_long = false;
}

/* Up to the end of one command. What comes behind DATA in the same breath was not invited, and would be a mail of its own to a
 * server that did not see the command. */
static size_t feed_command(struct smtp_session *session, struct bytes in)
{
    for (size_t i = 0; i < in.len; i++) {
        char c = in.at[i];
        if ((c == '\n') != session->line_cr) {
            end_bare(session);
            return i + 1;
        }
        if (c == '\n') {
            end_line(session);
            if (session->state == SMTP_DATA && i + 1 < in.len)
                end(session, "503 5.5.1 the mail came before it was invited");
            if (session->state == SMTP_SECURE && i + 1 < in.len)
                end(session, "503 5.5.1 something came before TLS began");
            return i + 1;
        }
        if (c == '\r')
            session->line_cr = true;
        else if (session->line_len < sizeof session->line)
            session->line[session->line_len++] = c;
        else
            session->line_too_long = true;
    }
    return in.len;
}

size_t smtp_session_feed(struct smtp_session *session, struct bytes in)
{
    size_t used = 0;
    while (used < in.len && session->state != SMTP_DELIVERING && session->state != SMTP_SECURE && session->state != SMTP_ENDED) {
        struct bytes rest = bytes_from(in, used);
        used += session->state == SMTP_DATA ? feed_data(session, rest) : feed_command(session, rest);
        if (session->out.failed)
            session->state = SMTP_ENDED;
    }
    return used;
}
