#include "base/buf.h"
#include "base/hash.h"
#include "base/when.h"
#include "check.h"
#include "mail/mail_own.h"

#define HEAD                                                                                                      \
    "From: Jane Doe <jane@example.com>\nTo: leads@shop.example\nSubject: Hello\nDate: Mon, 16 Nov 2026 10:00:00 " \
    "+0100\nMessage-ID: <m1@example.com>\n"
#define PLAIN "Content-Type: text/plain; charset=utf-8\n\n"

static struct arena arena;
static struct why why;

/* Lines end in CRLF on the way. */
static struct incoming get(const char *text)
{
    struct incoming in = {0};
    struct buf raw;
    hash_setup();
    buf_init(&raw, 1 << 20);
    for (; *text != '\0'; text++) {
        if (*text == '\n')
            buf_add_char(&raw, '\r');
        buf_add_char(&raw, *text);
    }
    arena_init(&arena, 8 << 20);
    enum status status = mail_read(buf_bytes(&raw), BYTES_NONE, &arena, &in, &why);
    if (status != OK)
        check_fail(__FILE__, __LINE__, "%s: %s", status_name(status), why.text);
    return in;
}

static void check_identity(const struct incoming *in, const char *value, bool sender)
{
    for (size_t i = 0; i < in->identity_count; i++)
        if (bytes_is(in->identities[i].value, value)) {
            if (in->identities[i].sender != sender)
                check_fail(__FILE__, __LINE__, "%s: sender is %d", value, !sender);
            return;
        }
    check_fail(__FILE__, __LINE__, "%s is missing", value);
}

/* ---- what is read ---- */

TEST(a_plain_mail_is_read)
{
    struct incoming in = get(HEAD PLAIN "Do you ship to Lyon?\nCall me: +33 6 12 34 56 78 or jd@other.example\n");
    CHECK_TEXT(in.kind, "message");
    CHECK_TEXT(in.key, "mail:m1@example.com");
    CHECK_TEXT(in.name, "Jane Doe");
    CHECK_TEXT(in.subject, "Hello");
    CHECK_TEXT(in.text, "Do you ship to Lyon?\nCall me: +33 6 12 34 56 78 or jd@other.example");
    CHECK(!in.automatic && in.delivery.at == NULL && in.thread.at == NULL);
    CHECK_INT(in.at_us, INT64_C(1794819600) * WHEN_SECOND);
    CHECK_INT(in.identity_count, 3);
    check_identity(&in, "jane@example.com", true);
    check_identity(&in, "jd@other.example", false);
    check_identity(&in, "33612345678", false);
}

TEST(only_the_domain_of_a_message_id_has_no_case)
{
    CHECK_TEXT(get("From: a@b.example\nMessage-Id:\n <AbC.1@Mail.EXAMPLE.com>\n\nx\n").key, "mail:AbC.1@mail.example.com");
    CHECK_TEXT(get("From: a@b.example\nMessage-ID: AbC@EXAMPLE.com\n\nx\n").key, "mail:AbC@example.com");
    CHECK_TEXT(get("From: a@b.example\nMessage-ID: <first@x>\nMessage-ID: <second@x>\n\nx\n").key, "mail:first@x");
}

TEST(a_mail_without_an_id_has_the_key_of_what_it_says)
{
    struct bytes a = get("From: Jane <a@b.example>\nDate: Mon, 16 Nov 2026 10:00:00 +0100\nSubject: Hi\n\nText  here\n").key;
    struct bytes again = get("Received: by x\nFrom: a@B.example\nDate: Mon, 16 Nov 2026 10:00:00 +0100\nSubject: Re: "
                             "Hi\nMessage-ID: < >\n\nText\nhere\n\n")
                             .key;
    struct bytes later = get("From: a@b.example\nDate: Mon, 16 Nov 2026 10:00:01 +0100\nSubject: Hi\n\nText here\n").key;
    struct bytes other = get("From: a@b.example\nDate: Mon, 16 Nov 2026 10:00:00 +0100\nSubject: Hi\n\nText there\n").key;
    CHECK(bytes_starts(a, BYTES("mail:sha256:")));
    CHECK_INT(a.len, strlen("mail:sha256:") + 64);
    CHECK(bytes_eq(a, again));
    CHECK(!bytes_eq(a, later));
    CHECK(!bytes_eq(a, other));
}

TEST(references_are_keys_with_what_is_answered_last)
{
    struct incoming in = get("From: a@b.example\nMessage-ID: <4@x>\nReferences: <1@X.example>\n <2@x> junk <3@x> <1@x.EXAMPLE> "
                             "<4@x>\nIn-Reply-To: <9@x> (Jane's)\n\nx\n");
    static const char *const want[] = {"mail:1@x.example", "mail:2@x", "mail:3@x", "mail:9@x"};
    CHECK_INT(in.reference_count, 4);
    for (size_t i = 0; i < 4; i++)
        CHECK_TEXT(in.references[i], want[i]);
}

TEST(of_many_references_the_nearest_are_kept)
{
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_add_cstr(&text, "From: a@b.example\nMessage-ID: <m@x>\nReferences:");
    for (int i = 0; i < 1000; i++)
        buf_printf(&text, "\n <%d@x>", i);
    buf_add_cstr(&text, "\n\nx\n");
    buf_add_char(&text, '\0');
    struct incoming in = get(text.at);
    CHECK_INT(in.reference_count, INCOMING_REFERENCES_MAX);
    CHECK_TEXT(in.references[INCOMING_REFERENCES_MAX - 1], "mail:999@x");
}

/* ---- people ---- */

TEST(the_person_behind_a_notification_is_in_reply_to)
{
    struct incoming in =
        get("From: Shop website <wordpress@shop.example>\nReply-To: Jane Doe <Jane@Example.com>\nTo: "
            "leads@shop.example\nSubject: New enquiry\n"
            "Message-ID: <w1@shop.example>\n" PLAIN "From: Jane Doe <jane@example.com>\nSubject: Prices\n\nMessage Body:\nWhat "
            "does it cost?\n\n-- \nThis e-mail was sent from a contact form on Shop\n");
    CHECK_TEXT(in.name, "Jane Doe");
    CHECK_TEXT(in.text, "From: Jane Doe <jane@example.com>\nSubject: Prices\n\nMessage Body:\nWhat does it cost?");
    check_identity(&in, "jane@example.com", true);
    check_identity(&in, "wordpress@shop.example", false);
    CHECK(in.relayed);
}

TEST(a_reply_to_that_says_nothing_new_changes_nothing)
{
    struct incoming in = get("From: Jane <jane@example.com>\nReply-To: jane@example.com\n\nx\n");
    check_identity(&in, "jane@example.com", true);
    CHECK_TEXT(in.name, "Jane");
    in = get("From: Jane <jane@example.com>\nTo: leads@shop.example\nReply-To: leads@shop.example\n\nx\n");
    CHECK_INT(in.identity_count, 1);
    check_identity(&in, "jane@example.com", true);
    CHECK(!in.relayed);
}

TEST(names_are_decoded)
{
    CHECK_TEXT(get("From: =?utf-8?Q?J=C3=BCrgen_M=C3=BCller?= <j@x.example>\n\nx\n").name, "Jürgen Müller");
    CHECK_TEXT(get("From: =?UTF-8?B?UmVuw6k=?= =?UTF-8?B?IER1cMOpw6k=?= <j@x.example>\n\nx\n").name, "René Dupéé");
    CHECK_TEXT(get("From: \"Doe, Jane\" <j@x.example>\n\nx\n").name, "Doe, Jane");
    CHECK_TEXT(
        get("From: =?iso-8859-1?B?UmVu6Q==?= <j@x.example>\nSubject: Re: =?UTF-8?B?w4k=?=\n =?UTF-8?B?dMOp?=\n\nx\n").subject,
        "Été");
}

TEST(a_mail_without_a_sender_has_nobody)
{
    CHECK_INT(get("From: undisclosed\nSubject: x\n\nhello\n").identity_count, 0);
    struct incoming in = get("Sender: bot@x.example\nSubject: x\n\nhello\n");
    check_identity(&in, "bot@x.example", true);
}

/* ---- subjects ---- */

TEST(reply_and_forward_words_are_taken_off_subjects)
{
    static const struct {
        const char *subject, *want;
        bool forwarded;
    } rows[] = {
        {"Re: Hello", "Hello", false},
        {"RE: AW: Re: Hello", "Hello", false},
        {"Fwd: Hello", "Hello", true},
        {"TR : Bonjour", "Bonjour", true},
        {"RE : Bonjour", "Bonjour", false},
        {"WG: Anfrage", "Anfrage", true},
        {"RV: Consulta", "Consulta", true},
        {"Re[2]: Hello", "Hello", false},
        {"Re(10): Hello", "Hello", false},
        {"Re: Fwd: Hello", "Hello", false},
        {"FW: RE: Hello", "Hello", true},
        {"Re:Hello", "Hello", false},
        {"Reminder: pay", "Reminder: pay", false},
        {"Trip: Lyon", "Trip: Lyon", false},
        {"Re", "Re", false},
        {"Re:", "", false},
        {"Re[x]: a", "Re[x]: a", false},
        {"回复：你好", "你好", false},
        {"Antwort: Hallo", "Hallo", false},
        {"", "", false},
        {"Regarding: it", "Regarding: it", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool forwarded;
        CHECK_TEXT(mail_strip_subject(bytes_of(rows[i].subject), &forwarded), rows[i].want);
        CHECK_INT(forwarded, rows[i].forwarded);
    }
}

/* ---- quotations, signatures ---- */

static const struct {
    const char *what, *text, *want;
} replies[] = {
    {"Gmail",
     "Yes, Tuesday works.\n\nOn Mon, Nov 16, 2026 at 10:00 AM Shop <leads@shop.example> wrote:\n\n> Does Tuesday suit you?\n> "
     "Best\n",
     "Yes, Tuesday works."},
    {"Gmail, wrapped", "Yes.\n\nOn Mon, Nov 16, 2026 at 10:00 AM A Very Long Shop Name <\nleads@shop.example> wrote:\n\n> Q?\n",
     "Yes."},
    {"Gmail, French", "Oui, mardi.\n\nLe lun. 16 nov. 2026 à 10:00, Shop <leads@shop.example> a écrit\u00a0:\n\n> Mardi ?\n",
     "Oui, mardi."},
    {"Gmail, German", "Ja, gern.\n\nAm Mo., 16. Nov. 2026 um 10:00 Uhr schrieb Shop <\nleads@shop.example>:\n\n> Dienstag?\n",
     "Ja, gern."},
    {"Gmail, Spanish", "Sí.\n\nEl lun, 16 nov 2026 a las 10:00, Shop (<leads@shop.example>) escribió:\n\n> ¿Martes?\n", "Sí."},
    {"Apple Mail",
     "Sure\n\nSent from my iPhone\n\n> On 16 Nov 2026, at 10:00, Shop <leads@shop.example> wrote:\n> \n> Tuesday?\n", "Sure"},
    {"Apple Mail, French",
     "Parfait\n\nEnvoyé de mon iPhone\n\n> Le 16 nov. 2026 à 10:00, Shop <leads@shop.example> a écrit :\n> \n> Mardi ?\n",
     "Parfait"},
    {"Apple Mail, German",
     "Passt\n\nVon meinem iPhone gesendet\n\n> Am 16.11.2026 um 10:00 schrieb Shop <leads@shop.example>:\n> Dienstag?\n",
     "Passt"},
    {"Apple Mail, Spanish",
     "Vale\n\nEnviado desde mi iPhone\n\n> El 16 nov 2026, a las 10:00, Shop <leads@shop.example> escribió:\n> ¿Martes?\n",
     "Vale"},
    {"Outlook",
     "Fine by me.\n\nGet Outlook for iOS\n________________________________\nFrom: Shop <leads@shop.example>\nSent: Monday, "
     "November 16, 2026 10:00 AM\nTo: Jane Doe\n"
     "Subject: Tuesday\n\nDoes Tuesday suit you?\n",
     "Fine by me."},
    {"Outlook, old", "OK\n\n-----Original Message-----\nFrom: Shop\nSent: Monday\n\nTuesday?\n", "OK"},
    {"Outlook, French",
     "D'accord.\n\nDe : Shop <leads@shop.example>\nEnvoyé : lundi 16 novembre 2026 10:00\nÀ : Jane Doe\nObjet : Mardi\n\nMardi "
     "?\n",
     "D'accord."},
    {"Outlook, German",
     "Einverstanden.\n\nVon: Shop <leads@shop.example>\nGesendet: Montag, 16. November 2026 10:00\nAn: Jane Doe\nBetreff: "
     "Dienstag\n\nDienstag?\n",
     "Einverstanden."},
    {"Outlook, Spanish",
     "De acuerdo.\n\nDe: Shop <leads@shop.example>\nEnviado el: lunes, 16 de noviembre de 2026 10:00\nPara: Jane Doe\nAsunto: "
     "Martes\n\n¿Martes?\n",
     "De acuerdo."},
    {"Outlook, old German", "Ok\n\n-----Ursprüngliche Nachricht-----\nVon: Shop\n\nDienstag?\n", "Ok"},
    {"Outlook, old French", "Ok\n\n-----Message d'origine-----\nDe : Shop\n\nMardi ?\n", "Ok"},
    {"Outlook, old Spanish", "Ok\n\n-----Mensaje original-----\nDe: Shop\n\n¿Martes?\n", "Ok"},
    {"bold block", "Fine.\n\n*From:* Shop\n*Sent:* Monday\n*To:* Jane\n*Subject:* x\n\nold\n", "Fine."},
    {"answers below each question", "On 16 Nov 2026, Shop wrote:\n> Tuesday?\nYes.\n> At ten?\nNo, eleven.\n\n-- \nJane\n",
     "Yes.\nNo, eleven."},
    {"signature", "Hello\n-- \nJane Doe\nCEO, +33 1 42 68 53 00\n", "Hello"},
    {"disclaimer",
     "Please call me.\n\nThis email and any attachments are confidential and intended solely for the addressee.\nDelete it "
     "otherwise.\n",
     "Please call me."},
    {"disclaimer, German",
     "Bitte rufen Sie an.\n\nDiese E-Mail enthält vertrauliche Informationen. Sind Sie nicht der richtige Empfänger, löschen Sie "
     "sie.\n",
     "Bitte rufen Sie an."},
    {"no disclaimer", "This message is about the red chair.\nDo you have it?\n",
     "This message is about the red chair.\nDo you have it?"},
    {"a person who writes On …", "On Tuesday at 10 we met and I wrote:\nhello.\nIs it so?\n\n> no\n",
     "On Tuesday at 10 we met and I wrote:\nhello.\nIs it so?"},
    {"nothing but a quotation", "> Does Tuesday suit you?\n", "> Does Tuesday suit you?"},
    {"nothing but a signature", "-- \nJane Doe\n", "-- \nJane Doe"},
    {"empty", "\n \n", ""},
};

TEST(what_programs_add_is_no_part_of_the_text)
{
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        struct buf mail;
        buf_init(&mail, 1 << 16);
        buf_printf(&mail, HEAD PLAIN "%s", replies[i].text);
        buf_add_char(&mail, '\0');
        struct bytes text = get(mail.at).text;
        if (!bytes_is(text, replies[i].want))
            check_fail(__FILE__, __LINE__, "%s: \"%.*s\"", replies[i].what, BYTES_ARG(text));
    }
}

TEST(what_is_forwarded_is_the_message)
{
    const char *gmail = HEAD PLAIN "Who takes this?\n\n---------- Forwarded message ---------\nFrom: Jane "
                                   "<jane@example.com>\nDate: Mon, Nov 16, 2026\nSubject: Chairs\nTo: <info@shop.example>\n\n"
                                   "Do you have red chairs?\n\n-- \nJane\n";
    struct incoming in = get(gmail);
    CHECK(memmem(in.text.at, in.text.len, "red chairs", 10) != NULL);
    CHECK(bytes_starts(in.text, BYTES("Who takes this?")));
    in = get("From: Bob <bob@shop.example>\nSubject: WG: Chairs\n" PLAIN
             "Bitte antworten.\n\nVon: Jane\nGesendet: Montag\nAn: info\nBetreff: Chairs\n\nRed chairs?\n");
    CHECK(memmem(in.text.at, in.text.len, "Red chairs?", 11) != NULL);
}

TEST(a_phone_in_the_signature_is_mentioned_and_one_in_quoted_text_is_not)
{
    struct incoming in = get(HEAD PLAIN "Hello\n-- \nJane Doe\nTel. +33 1 42 68 53 00\n\nOn 16 Nov 2026, Shop wrote:\n> call us "
                                        "at +49 30 1234567 or leads@shop.example\n");
    CHECK_TEXT(in.text, "Hello");
    CHECK_INT(in.identity_count, 2);
    check_identity(&in, "33142685300", false);
}

/* ---- parts and characters ---- */

#define ALTERNATIVE "MIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=\"b1\"\n\npreamble\n"

TEST(the_plain_alternative_is_read)
{
    CHECK_TEXT(
        get(HEAD ALTERNATIVE "--b1\n" PLAIN "plain words\n--b1\nContent-Type: text/html\n\n<p>html words</p>\n--b1--\nepilogue\n")
            .text,
        "plain words");
}

TEST(html_is_read_when_there_is_no_plain_text)
{
    CHECK_TEXT(
        get(HEAD ALTERNATIVE
            "--b1\n" PLAIN
            " \n--b1\nContent-Type: text/html; charset=utf-8\n\n<html><head><title>T</title><style>p{color:red}</style></head>"
            "<body><p>First&nbsp;line</p><p>2 &lt; 3 &amp; caf&eacute;<br>next</p></body></html>\n--b1--\n")
            .text,
        "First line\n\n2 < 3 & café\nnext");
}

TEST(quotations_in_html_are_left_out)
{
    CHECK_TEXT(get(HEAD "Content-Type: text/html\n\n<div dir=\"ltr\">Yes.</div><br><div class=\"gmail_quote "
                        "gmail_quote_container\"><div dir=\"ltr\" class=\"gmail_attr\">On Mon, Nov 16, "
                        "2026 Shop wrote:<br></div><blockquote class=\"gmail_quote\"><div>Tuesday?</div></blockquote></div>\n")
                   .text,
               "Yes.");
    CHECK_TEXT(get(HEAD "Content-Type: text/html\n\n<div>Fine.</div><hr><div id=\"divRplyFwdMsg\"><b>From:</b> "
                        "Shop<br><b>Sent:</b> Monday<br><b>To:</b> Jane<br><b>Subject:</b> x</div>"
                        "<div>Tuesday?</div>\n")
                   .text,
               "Fine.");
    CHECK_TEXT(get(HEAD "Content-Type: text/html\n\n<blockquote>only this</blockquote>\n").text, "only this");
}

TEST(broken_html_is_still_text)
{
    static const struct {
        const char *html, *want;
    } rows[] = {
        {"a < b and c > d & e &nothing; &#0; &#xD800; &#x110000;", "a < b and c > d & e &nothing; &#xD800; &#x110000;"},
        {"<a title='x > y'>link</a", "link"},
        {"<!-- <p>hidden</p> -->shown<!-- open", "shown"},
        {"<script>if (a</b) alert('</p>')</script>x<style>", "x"},
        {"<ul><li>one<li>two</ul>", "one\ntwo"},
        {"<table><tr><td>Name</td><td>Jane</td></tr><tr><td>Phone</td><td>+33</td></tr></table>", "Name Jane\nPhone +33"},
        {"<", "<"},
        {"<>x</>", "<>x</>"},
        {"<P\nCLASS=a>x<BR/>y", "x\ny"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena_init(&arena, 1 << 20);
        bool unused;
        CHECK_TEXT(mail_strip_subject(mail_html_text(bytes_of(rows[i].html), false, &arena), &unused), rows[i].want);
    }
}

TEST(transfer_encodings_and_charsets_are_undone)
{
    CHECK_TEXT(get(HEAD "Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\nCaf=E9 "
                        "=\nau lait =80\n")
                   .text,
               "Café au lait €");
    CHECK_TEXT(
        get(HEAD "Content-Type: text/plain; charset=\"utf-8\"\nContent-Transfer-Encoding: base64\n\nR3LDvMOfZSBhdXMgS8O2\nbG4=\n")
            .text,
        "Grüße aus Köln");
    CHECK_TEXT(get(HEAD "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nüñ\n").text, "üñ");
    CHECK_TEXT(get(HEAD "Content-Type: text/plain\n\nCaf\xE9\n").text, "Café");
    CHECK_TEXT(get(HEAD "Content-Type: text/plain; charset=no-such\n\nCaf\xE9\n").text, "Café");
    CHECK_TEXT(get(HEAD "Content-Type: text/plain; charset=koi8-r\n\n\xF0\xD2\xC9\xD7\xC5\xD4\n").text, "Привет");
    CHECK_TEXT(get(HEAD "Content-Type: text/plain; charset=iso-2022-jp\n\n\x1B$B$3$s\x1B(B\n").text, "こん");
    CHECK_TEXT(get(HEAD PLAIN "a\u00a0b\u200b\tc\x01\n").text, "a b c");
    CHECK_TEXT(get(HEAD "\nno type, UTF-8: é\n").text, "no type, UTF-8: é");
}

TEST(text_is_found_in_nested_parts_and_attachments_are_not_text)
{
    CHECK_TEXT(get(HEAD
                   "Content-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: multipart/related; "
                   "boundary=m\n\n--m\nContent-Type: multipart/alternative; boundary=i\n\n"
                   "--i\n" PLAIN "inner\n--i\nContent-Type: text/html\n\n<b>inner</b>\n--i--\n--m\nContent-Type: "
                   "image/png\nContent-Transfer-Encoding: base64\n\nAAAA\n--m--\n"
                   "--o\nContent-Type: text/plain\nContent-Disposition: attachment; "
                   "filename=a.txt\n\nattached\n--o\nContent-Type: message/rfc822\n\nFrom: x@y.example\n\nother mail\n--o--\n")
                   .text,
               "inner");
    CHECK_TEXT(get(HEAD "Content-Type: multipart/mixed; boundary=o\n\n--o\n" PLAIN
                        "before\n--o\nContent-Type: image/png\n\nx\n--o\n" PLAIN "after\n--o--\n")
                   .text,
               "before\nafter");
    CHECK_TEXT(get(HEAD "Content-Type: multipart/signed; boundary=o\n\n--o\n" PLAIN
                        "signed\n--o\nContent-Type: application/pgp-signature\n\nx\n--o--\n")
                   .text,
               "signed");
}

TEST(broken_mime_is_read_as_far_as_it_goes)
{
    CHECK_TEXT(get(HEAD "Content-Type: multipart/mixed; boundary=o\n\n--o\n" PLAIN "never closed\n").text, "never closed");
    CHECK_TEXT(get(HEAD "Content-Type: multipart/mixed\n\nno boundary\n").text, "");
    CHECK_TEXT(get(HEAD "Content-Type: text/plain; charset=\n\nx\n").text, "x");
    CHECK_TEXT(get(HEAD "Content-Type: ???\n\nx\n").key, "mail:m1@example.com");
    CHECK_TEXT(get(HEAD "Content-Transfer-Encoding: base64\n\n!!!!\n").key, "mail:m1@example.com");
    CHECK_TEXT(get("Subject: only a head").subject, "only a head");
    CHECK_INT(get("From: a@b.example\nDate: yesterday\n\nx\n").at_us, 0);
}

/* ---- what nobody wrote ---- */

TEST(automatic_mail_says_so_in_a_header)
{
    static const struct {
        const char *header;
        bool automatic;
    } rows[] = {
        {"Auto-Submitted: auto-replied\n", true},
        {"Auto-Submitted: auto-generated; owner-email=\"x@y\"\n", true},
        {"Auto-Submitted: no\n", false},
        {"auto-submitted: NO (person)\n", false},
        {"List-Id: News <news.example.com>\n", true},
        {"List-Unsubscribe: <mailto:u@x.example>\n", true},
        {"Precedence: bulk\n", true},
        {"Precedence: List\n", true},
        {"Precedence: first-class\n", false},
        {"Return-Path: <>\n", true},
        {"Return-Path: <jane@example.com>\n", false},
        {"X-Auto-Response-Suppress: All\n", true},
        {"Subject: Automatic reply: Hello\n", false},
        {"Subject: Out of office\nAuto-Submitted: auto-replied\n", true},
        {"X-Mailer: Bulk\n", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char mail[512];
        snprintf(mail, sizeof mail, "%sFrom: jane@example.com\n\nI am away.\n", rows[i].header);
        if (get(mail).automatic != rows[i].automatic)
            check_fail(__FILE__, __LINE__, "%s is taken for the opposite", rows[i].header);
    }
}

TEST(a_bounce_is_a_status_that_nobody_answers)
{
    struct incoming in = get("Return-Path: <>\nFrom: MAILER-DAEMON@mx.example (Mail Delivery System)\nTo: "
                             "leads@shop.example\nSubject: Undelivered Mail Returned to Sender\nMessage-ID: <b1@mx.example>\n"
                             "Content-Type: multipart/report; report-type=delivery-status; boundary=r\n\n--r\n\nYour mail could "
                             "not be delivered.\n--r\n"
                             "Content-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example\n\nFinal-Recipient: "
                             "rfc822; jane@example.com\nAction: failed\n\n--r\n"
                             "Content-Type: text/rfc822-headers\n\nSubject: old\n--r--\n");
    CHECK_TEXT(in.kind, "status");
    CHECK(in.automatic);
    CHECK_TEXT(in.text, "Your mail could not be delivered.");
}

/* ---- limits ---- */

static enum status read_filled(const char *head, const char *piece, size_t times)
{
    struct incoming in = {.at_us = 7};
    struct buf raw;
    buf_init(&raw, (size_t)MAIL_SIZE_MAX + 4096);
    buf_add_cstr(&raw, head);
    for (size_t i = 0; i < times; i++)
        buf_add_cstr(&raw, piece);
    CHECK(!raw.failed);
    arena_init(&arena, 8 << 20);
    enum status status = mail_read(buf_bytes(&raw), BYTES_NONE, &arena, &in, &why);
    CHECK(status == OK || in.at_us == 7); /* untouched on failure */
    buf_release(&raw);
    return status;
}

TEST(what_would_cost_too_much_is_refused_before_it_is_parsed)
{
    CHECK_INT(read_filled(HEAD "\n", "0123456789abcdef", MAIL_SIZE_MAX / 16), INVALID);
    CHECK_INT(read_filled(HEAD, "X-Filler: aaaaaaaaaaaaaaaaaaaaaaa\n", 10000), INVALID);
    CHECK_INT(read_filled(HEAD "\n", "a:\n", MAIL_HEADER_LINES_MAX + 1), INVALID);
    CHECK_INT(read_filled(HEAD "\n", "--\n", MAIL_BOUNDARY_LINES_MAX + 1), INVALID);
    CHECK_INT(read_filled(HEAD "\n", "Content-Type: multipart/mixed; boundary=a\n\n--a\n", MAIL_PARTS_MAX + 1), INVALID);
    CHECK_INT(read_filled("", "", 0), INVALID);
    CHECK_INT(read_filled("\nno head\n", "", 0), INVALID);
}

TEST(what_is_just_within_the_limits_is_read)
{
    CHECK_INT(read_filled(HEAD, "Content-Type: multipart/mixed; boundary=a\n\n--a\n", MAIL_PARTS_MAX), OK);
    CHECK_INT(read_filled(HEAD, "Content-Type: message/rfc822\n\n", MAIL_PARTS_MAX), OK);
    CHECK_INT(read_filled(HEAD "\n", "This message, On 1 Le 2\n", 100000), OK);
    CHECK_INT(read_filled(HEAD "\n", "From: x\n", 40000), OK);
    CHECK_INT(read_filled(HEAD "Content-Type: text/html\n\n", "<div class='", 300000), OK);
}

TEST(a_long_text_is_cut_between_two_characters)
{
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_add_cstr(&text, HEAD PLAIN "x");
    for (int i = 0; i < 100000; i++)
        buf_add_cstr(&text, "é");
    buf_add_char(&text, '\0');
    struct bytes cut = get(text.at).text;
    CHECK(cut.len <= INCOMING_TEXT_MAX && cut.len > INCOMING_TEXT_MAX - 4);
    CHECK(bytes_is_utf8(cut));
}

TEST(a_full_arena_is_said_and_not_half_a_mail)
{
    struct incoming in;
    enum status status = FULL;
    size_t size = 0;
    hash_setup();
    for (; status == FULL && size < 1 << 16; size += 16) {
        arena_init(&arena, size);
        status = mail_read(
            BYTES("From: a@b.example\nReferences: <1@x>\nDate: Mon, 16 Nov 2026 10:00:00 +0100\n" PLAIN "Call 06 12 34 56 78\n"),
            BYTES("FR"), &arena, &in, &why);
        arena_release(&arena);
    }
    CHECK_INT(status, OK);
    CHECK(size > 1000);
}
