#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "receive/fixture_test.h"

/* ---- every preset: sample, sign, read ---- */

static const struct preset_row {
    const char *preset, *settings, *secret;
    const char *kind, *delivery, *key, *name, *text, *identity, *thread;
} presets[] = {
    {"typeform", "secret: env:S\n", "s", "lead", "01A1", "typeform:g8hcyeXS:A1", "Jo Smith", "Hi \"there\"", "jo@acme.io", NULL},
    {"hubspot", "secret: env:S\n", "s", "lead", NULL, NULL, NULL, NULL, NULL, NULL},
    {"meta-lead-ads", "secret: env:S\n", "s", "lead", NULL, NULL, "Jo Smith", "Hi \"there\"", "jo@acme.io", NULL},
    {"whatsapp", "secret: env:S\n", "s", "message", NULL, "wa:wamid.A1", "Jo Smith", "Hi \"there\"", "33612345678",
     "wa:248123456789:33612345678"},
    {"messenger", "secret: env:S\n", "s", "message", NULL, "fb:m_A1", NULL, "Hi \"there\"", "fb:9912345678:33612345678",
     "fb:9912345678:33612345678"},
    {"twilio", "secret: env:S\n", "s", "message", NULL, "sms:SMA1", NULL, "Hi \"there\"", "33612345678",
     "sms:+15551304520:+33612345678"},
    {"slack", "secret: env:S\n", "s", "message", "EvA1", NULL, NULL, "Hi \"there\"", "slack:T0123ABCD:U0456EFGH", NULL},
    {"stripe", "secret: env:S\n", "s", "event", "evt_A1", "stripe:evt_A1", "Jo Smith", NULL, "jo@acme.io", NULL},
    {"calendly", "secret: env:S\n", "s", "lead", NULL, NULL, "Jo Smith", "Hi \"there\"", "jo@acme.io", NULL},
    {"shopify", "secret: env:S\n", "s", "lead", NULL, "shopify:A1", "Jo Smith", "Hi \"there\"", "jo@acme.io", NULL},
    {"github", "secret: env:S\n", "s", "message", NULL, NULL, "octocat", "Hi \"there\"", "github:octocat",
     "github:octocat/hello-world:17"},
    {"mailgun", "secret: env:S\n", "s", "status", NULL, NULL, NULL, NULL, "jo@acme.io", NULL},
    {"postmark", "secret: env:S\n", "u:p", "status", NULL, NULL, NULL, NULL, "jo@acme.io", NULL},
    {"telegram", "secret: env:S\n", "s", "message", NULL, NULL, "Jo Smith", "Hi \"there\"", "telegram:11223344",
     "telegram:11223344"},
    {"standard-webhooks", "secret: env:S\n", "whsec_c2VjcmV0", "lead", "msg_A1", "webhook:msg_A1", "Jo Smith", "Hi \"there\"",
     "jo@acme.io", NULL},
    {"svix", "secret: env:S\n", "whsec_c2VjcmV0", "lead", "msg_A1", "svix:msg_A1", "Jo Smith", "Hi \"there\"", "jo@acme.io",
     NULL},
    {"resend", "secret: env:S\n", "whsec_c2VjcmV0", "status", "msg_A1", "resend:msg_A1", NULL, NULL, "jo@acme.io", NULL},
    {"openai", "secret: env:S\n", "whsec_c2VjcmV0", "event", "msg_A1", "openai:msg_A1", NULL, NULL, NULL, NULL},
    {"cloudevents", "secret: env:S\nverify: bearer\n", "s", "event", "/forms/contact A1", "ce:/forms/contact A1", NULL,
     "Hi \"there\"", "jo@acme.io", NULL},
    {"form", "secret: env:S\nverify: query\n", "s", "lead", NULL, NULL, "Jo Smith", "Hi \"there\"", "jo@acme.io", NULL},
    {"json", "secret: env:S\nverify: hmac\n", "s", "lead", NULL, NULL, "Jo Smith", "Hi \"there\"", "jo@acme.io", NULL},
    {"json", "secret: env:S\nverify: basic\n", "u:p", "lead", NULL, NULL, "Jo Smith", "Hi \"there\"", "jo@acme.io", NULL},
};

static void make_sample(struct desk *desk, const struct preset_row *row, const char *id)
{
    struct sample_values values = {.id = bytes_of(id),
                                   .text = BYTES("Hi \"there\""),
                                   .name = BYTES("Jo Smith"),
                                   .email = BYTES("Jo@Acme.IO"),
                                   .phone = BYTES("+33612345678"),
                                   .time_us = FIXTURE_NOW_US};
    desk_open(desk, row->preset, row->settings);
    desk->secrets[0] = bytes_of(row->secret);
    if (receive_sample(&desk->source, &values, BYTES("https://x.test/in/x"), &desk->arena, &desk->request, &desk->why) != OK ||
        receive_sign(&desk->source, desk->secrets[0], &desk->arena, &desk->request, &desk->why) != OK)
        check_fail(__FILE__, __LINE__, "%s: %s", row->preset, desk->why.text);
    if (desk_read(desk) != RECEIVE_EVENTS)
        check_fail(__FILE__, __LINE__, "%s: %.*s", row->preset, BYTES_ARG(desk->result.because));
}

static bool has_identity(const struct incoming *event, const char *value)
{
    for (size_t i = 0; i < event->identity_count; i++)
        if (bytes_is(event->identities[i].value, value))
            return true;
    return false;
}

static void check_text(const char *preset, const char *what, struct bytes got, const char *want)
{
    if (want != NULL && !bytes_is(got, want))
        check_fail(__FILE__, __LINE__, "%s: %s is \"%.*s\", want \"%s\"", preset, what, BYTES_ARG(got), want);
}

TEST(every_preset_reads_what_it_signs)
{
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        const struct preset_row *row = &presets[i];
        struct desk desk;
        make_sample(&desk, row, "A1");
        CHECK_INT(desk.result.count, 1);
        const struct incoming *event = &desk.result.events[0];
        check_text(row->preset, "kind", event->kind, row->kind);
        check_text(row->preset, "delivery", event->delivery, row->delivery);
        check_text(row->preset, "key", event->key, row->key);
        check_text(row->preset, "name", event->name, row->name);
        check_text(row->preset, "text", event->text, row->text);
        check_text(row->preset, "thread", event->thread, row->thread);
        if (row->identity != NULL && !has_identity(event, row->identity))
            check_fail(__FILE__, __LINE__, "%s: nobody is %s", row->preset, row->identity);
        CHECK(bytes_eq(event->piece, desk.request.body));
        CHECK(!event->automatic);
        desk_close(&desk);
    }
}

TEST(twice_the_same_has_the_same_ids_and_another_has_others)
{
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        const struct preset_row *row = &presets[i];
        struct desk first, again, other;
        make_sample(&first, row, "A1");
        make_sample(&again, row, "A1");
        make_sample(&other, row, "A2");
        const struct incoming *a = &first.result.events[0], *b = &again.result.events[0], *c = &other.result.events[0];
        CHECK(bytes_eq(a->delivery, b->delivery));
        CHECK(bytes_eq(a->key, b->key));
        CHECK(bytes_eq(first.request.body, again.request.body));
        if (a->delivery.at != NULL && bytes_eq(a->delivery, c->delivery))
            check_fail(__FILE__, __LINE__, "%s: two deliveries have the id %.*s", row->preset, BYTES_ARG(a->delivery));
        if (a->key.at != NULL && bytes_eq(a->key, c->key))
            check_fail(__FILE__, __LINE__, "%s: two things have the key %.*s", row->preset, BYTES_ARG(a->key));
        desk_close(&first);
        desk_close(&again);
        desk_close(&other);
    }
}

/* ---- bodies ---- */

/* Reads `body` without verification. */
static void read_plain(struct desk *desk, const char *preset, const char *type, const char *body)
{
    desk_open(desk, preset, "verify: none\n");
    desk_header(desk, "Content-Type", type);
    desk->request.body = bytes_of(body);
    if (desk_read(desk) != RECEIVE_EVENTS)
        check_fail(__FILE__, __LINE__, "%s: %.*s", preset, BYTES_ARG(desk->result.because));
}

#define WA(messages, statuses)                                                                                            \
    "{\"object\":\"whatsapp_business_account\",\"entry\":[{\"id\":\"1\",\"changes\":[{\"field\":\"messages\",\"value\":{" \
    "\"metadata\":{\"phone_number_id\":\"248\"},\"contacts\":[{\"profile\":{\"name\":\"Jo\"},\"wa_id\":\"111111\"},{"     \
    "\"profile\":{\"name\":\"Mia\"},\"wa_id\":\"222222\"}],\"messages\":[" messages "],\"statuses\":[" statuses "]}}]}]}"
#define WA_JO "{\"from\":\"111111\",\"id\":\"wamid.1\",\"timestamp\":\"1700000000\",\"type\":\"text\",\"text\":{\"body\":\"Hi\"}}"
#define WA_MIA \
    "{\"from\":\"222222\",\"id\":\"wamid.2\",\"timestamp\":\"1700000001\",\"type\":\"text\",\"text\":{\"body\":\"Yo\"}}"

TEST(a_batch_is_split_and_each_piece_is_a_delivery_of_its_own)
{
    struct desk desk, alone;
    read_plain(&desk, "whatsapp", "application/json", WA(WA_JO "," WA_MIA, "{\"id\":\"wamid.0\",\"status\":\"read\"}"));
    CHECK_INT(desk.result.count, 3);
    const struct incoming *jo = &desk.result.events[0], *mia = &desk.result.events[1], *status = &desk.result.events[2];
    CHECK_TEXT(jo->name, "Jo");
    CHECK_TEXT(mia->name, "Mia");
    CHECK_TEXT(mia->text, "Yo");
    CHECK_TEXT(mia->key, "wa:wamid.2");
    CHECK_TEXT(status->kind, "status");
    CHECK_TEXT(status->key, "wa:wamid.0:read");
    CHECK_INT(jo->at_us, FIXTURE_NOW_US);
    CHECK_TEXT(mia->piece, WA(WA_MIA, "{\"id\":\"wamid.0\",\"status\":\"read\"}"));
    read_plain(&alone, "whatsapp", "application/json", WA(WA_MIA, ""));
    CHECK_INT(alone.result.count, 1);
    CHECK(bytes_eq(alone.result.events[0].key, mia->key));
    CHECK(bytes_eq(alone.result.events[0].piece, alone.request.body));
    desk_close(&desk);
    desk_close(&alone);
}

TEST(arrays_within_arrays_are_cut_on_the_whole_way)
{
    struct desk desk;
    read_plain(&desk, "meta-lead-ads", "application/json",
               " {\"object\":\"page\", \"entry\" : [ "
               "{\"id\":\"1\",\"changes\":[{\"field\":\"leadgen\",\"value\":{\"leadgen_id\":\"a\"}} "
               ", {\"field\":\"leadgen\",\"value\":{\"leadgen_id\":\"b\"}}]}, {\"id\":\"2\",\"changes\":[{\"field\":\"leadgen\","
               "\"value\":{\"leadgen_id\":\"c\"}}]} ], \"z\":1}\n");
    CHECK_INT(desk.result.count, 3);
    CHECK_TEXT(desk.result.events[1].key, "meta:b");
    CHECK_TEXT(desk.result.events[1].piece,
               " {\"object\":\"page\", \"entry\" : "
               "[{\"id\":\"1\",\"changes\":[{\"field\":\"leadgen\",\"value\":{\"leadgen_id\":\"b\"}}]}], "
               "\"z\":1}\n");
    CHECK_TEXT(desk.result.events[2].piece,
               " {\"object\":\"page\", \"entry\" : [{\"id\":\"2\",\"changes\":[{\"field\":\"leadgen\","
               "\"value\":{\"leadgen_id\":\"c\"}}]}], \"z\":1}\n");
    for (size_t i = 0; i < desk.result.count; i++) {
        struct json json;
        CHECK_INT(json_parse(desk.result.events[i].piece, NULL, &desk.arena, &json, &desk.why), OK);
    }
    desk_close(&desk);
}

TEST(an_empty_batch_or_a_ping_concerns_nobody)
{
    struct desk desk;
    read_plain(&desk, "sendgrid", "application/json", "[]");
    CHECK_INT(desk.result.count, 0);
    desk_close(&desk);
    desk_open(&desk, "github", "verify: none\n");
    desk_header(&desk, "X-GitHub-Event", "ping");
    desk.request.body = BYTES("{\"zen\":\"x\"}");
    CHECK_INT(desk_read(&desk), RECEIVE_EVENTS);
    CHECK_INT(desk.result.count, 0);
    desk_close(&desk);
}

TEST(more_events_than_are_taken_are_refused_whole)
{
    struct desk desk;
    struct buf body;
    buf_init(&body, 1 << 20);
    for (int i = 0; i <= RECEIVE_EVENTS_MAX; i++)
        buf_printf(&body, "%s{\"sg_event_id\":\"%d\"}", i == 0 ? "[" : ",", i);
    buf_add_cstr(&body, "]");
    desk_open(&desk, "sendgrid", "verify: none\n");
    desk.request.body = buf_bytes(&body);
    CHECK_INT(desk_read(&desk), RECEIVE_UNREADABLE);
    CHECK_INT(desk.result.count, 0);
    buf_release(&body);
    desk_close(&desk);
}

TEST(what_cannot_be_read_is_400)
{
    static const char *const bodies[] = {"", "{", "{\"a\":1,\"a\":2}", "\xFF", "[1,]"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct desk desk;
        desk_open(&desk, "typeform", "verify: none\n");
        desk.request.body = bytes_of(bodies[i]);
        CHECK_INT(desk_read(&desk), RECEIVE_UNREADABLE);
        CHECK_INT(desk.result.status, 400);
        desk_close(&desk);
    }
}

TEST(a_reschedule_at_calendly_is_no_second_lead_and_no_duplicate)
{
    struct desk first, moved, gone;
    read_plain(&first, "calendly", "application/json",
               "{\"event\":\"invitee.created\",\"payload\":{\"uri\":\"i/1\",\"email\":\"a@b.co\",\"old_invitee\":null}}");
    read_plain(&gone, "calendly", "application/json",
               "{\"event\":\"invitee.canceled\",\"payload\":{\"uri\":\"i/1\",\"email\":\"a@b.co\",\"rescheduled\":true}}");
    read_plain(&moved, "calendly", "application/json",
               "{\"event\":\"invitee.created\",\"payload\":{\"uri\":\"i/2\",\"email\":\"a@b.co\",\"old_invitee\":\"i/1\"}}");
    CHECK_TEXT(first.result.events[0].kind, "lead");
    CHECK_TEXT(gone.result.events[0].kind, "event");
    CHECK_TEXT(moved.result.events[0].kind, "event");
    CHECK(!bytes_eq(first.result.events[0].key, moved.result.events[0].key));
    CHECK(!bytes_eq(first.result.events[0].key, gone.result.events[0].key));
    CHECK(bytes_eq(moved.result.events[0].references[0], first.result.events[0].key));
    desk_close(&first);
    desk_close(&moved);
    desk_close(&gone);
}

TEST(answers_are_the_text_as_it_was_typed)
{
    static const char *const fields =
        "\"definition\":{\"fields\":[{\"ref\":\"q1\",\"title\":\"Topic\"},{\"ref\":\"q2\",\"title\":\"More\"}]}";
    char body[2048];
    struct desk desk;
    snprintf(body, sizeof body,
             "{\"event_type\":\"form_response\",\"form_response\":{%s,\"answers\":[{\"type\":\"text\",\"text\":\"Price\","
             "\"field\":{\"ref\":\"q1\"}},"
             "{\"type\":\"choices\",\"choices\":{\"labels\":[\"A\",\"B\"]},\"field\":{\"ref\":\"q2\"}},{\"type\":\"email\","
             "\"email\":\"a@b.co\",\"field\":{\"ref\":\"q3\"}}]}}",
             fields);
    read_plain(&desk, "typeform", "application/json", body);
    CHECK_TEXT(desk.result.events[0].text, "Topic: Price\nMore: A, B");
    desk_close(&desk);
    snprintf(body, sizeof body,
             "{\"event_type\":\"form_response\",\"form_response\":{%s,\"answers\":[{\"type\":\"text\",\"text\":\"Price\","
             "\"field\":{\"ref\":\"q1\"}},"
             "{\"type\":\"text\",\"text\":\"How much is it?\",\"field\":{\"ref\":\"q2\",\"type\":\"long_text\"}}]}}",
             fields);
    read_plain(&desk, "typeform", "application/json", body);
    CHECK_TEXT(desk.result.events[0].text, "How much is it?");
    desk_close(&desk);
}

TEST(slack_bots_are_automatic_and_a_thread_is_its_first_message)
{
    struct desk desk;
    read_plain(&desk, "slack", "application/json",
               "{\"type\":\"event_callback\",\"team_id\":\"T1\",\"event_id\":\"E1\",\"event\":{\"type\":\"message\",\"channel\":"
               "\"C1\",\"ts\":"
               "\"1700000000.000100\",\"thread_ts\":\"1.1\",\"user\":\"U1\",\"text\":\"x\",\"bot_id\":\"B1\"}}");
    CHECK(desk.result.events[0].automatic);
    CHECK_TEXT(desk.result.events[0].thread, "slack:T1:C1:1.1");
    CHECK_TEXT(desk.result.events[0].key, "slack:T1:C1:1700000000.000100");
    CHECK_INT(desk.result.events[0].at_us, FIXTURE_NOW_US);
    CHECK_TEXT(desk.result.reply, "ok");
    desk_close(&desk);
}

TEST(a_form_is_read_in_both_encodings)
{
    struct desk desk;
    read_plain(&desk, "form", "application/x-www-form-urlencoded",
               "name=Jo&email=+JO%40acme.io&message=two%0D%0Alines&topic=a&topic=b");
    CHECK_TEXT(desk.result.events[0].text, "two\r\nlines");
    CHECK_TEXT(desk.result.events[0].subject, "a, b");
    CHECK(has_identity(&desk.result.events[0], "jo@acme.io"));
    CHECK(desk.result.reply.len > 0);
    desk_close(&desk);
    read_plain(&desk, "form", "multipart/form-data; boundary=\"b1\"",
               "--b1\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nJo\r\n--b1\r\nContent-Disposition: form-data; "
               "name=\"message\"\r\n\r\ntwo\r\n--lines\r\n--b1\r\nContent-Disposition: form-data; name=\"cv\"; "
               "filename=\"cv.pdf\"\r\nContent-Type: application/pdf\r\n\r\n%PDF\r\n--b1--\r\n");
    CHECK_TEXT(desk.result.events[0].name, "Jo");
    CHECK_TEXT(desk.result.events[0].text, "two\r\n--lines");
    desk_close(&desk);
    desk_open(&desk, "form", "verify: none\n");
    desk_header(&desk, "Content-Type", "multipart/form-data; boundary=b1");
    desk.request.body = BYTES("--b1\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nJo\r\n");
    CHECK_INT(desk_read(&desk), RECEIVE_UNREADABLE);
    desk_close(&desk);
}

TEST(cloudevents_come_structured_binary_and_batched)
{
    struct desk desk;
    read_plain(&desk, "cloudevents", "application/cloudevents-batch+json; charset=utf-8",
               "[{\"id\":\"1\",\"source\":\"/s\",\"data\":{\"text\":\"a\"}},{\"id\":\"2\",\"source\":\"/s\"}]");
    CHECK_INT(desk.result.count, 2);
    CHECK_TEXT(desk.result.events[1].delivery, "/s 2");
    desk_close(&desk);
    read_plain(&desk, "cloudevents", "application/cloudevents+json", "{\"id\":\"1\",\"source\":\"/s\"}");
    CHECK_TEXT(desk.result.events[0].delivery, "/s 1");
    desk_close(&desk);
    desk_open(&desk, "cloudevents", "verify: none\n");
    desk_header(&desk, "ce-id", "1");
    desk_header(&desk, "ce-source", "/s");
    CHECK_INT(desk_read(&desk), RECEIVE_EVENTS);
    CHECK_INT(desk.result.count, 1);
    CHECK_TEXT(desk.result.events[0].delivery, "/s 1");
    desk_close(&desk);
}

TEST(keys_of_different_values_differ)
{
    struct desk a, b;
    read_plain(
        &a, "slack", "application/json",
        "{\"type\":\"event_callback\",\"team_id\":\"T:1\",\"event\":{\"type\":\"message\",\"channel\":\"C\",\"ts\":\"1\"}}");
    read_plain(
        &b, "slack", "application/json",
        "{\"type\":\"event_callback\",\"team_id\":\"T\",\"event\":{\"type\":\"message\",\"channel\":\"1:C\",\"ts\":\"1\"}}");
    CHECK_TEXT(a.result.events[0].key, "slack:T%3A1:C:1");
    CHECK(!bytes_eq(a.result.events[0].key, b.result.events[0].key));
    desk_close(&b);
    read_plain(
        &b, "slack", "application/json",
        "{\"type\":\"event_callback\",\"team_id\":\"T%3A1\",\"event\":{\"type\":\"message\",\"channel\":\"C\",\"ts\":\"1\"}}");
    CHECK(!bytes_eq(a.result.events[0].key, b.result.events[0].key));
    desk_close(&a);
    desk_close(&b);
}

TEST(a_key_with_a_hole_is_no_key)
{
    struct desk a;
    read_plain(&a, "slack", "application/json",
               "{\"type\":\"event_callback\",\"team_id\":\"\",\"event\":{\"type\":\"message\",\"channel\":\"C\",\"ts\":\"1\"}}");
    CHECK(a.result.events[0].key.at == NULL);
    CHECK(a.result.events[0].delivery.at == NULL);
    desk_close(&a);
}

TEST(an_own_source_names_its_fields)
{
    struct desk desk;
    desk_open(&desk, "crm",
              "preset: json\nsecret: env:S\nsignature: {alg: hmac-sha256, encoding: base64, signs: \"{ts}.{body}\", signature: "
              "header.X-Sig, grammar: pairs, prefix: s, time: pair.t, tolerance: 1m}\nevents:\n  - {kind: message, split: "
              "\"rows[]\", when: "
              "{kind: note}, delivery: \"{no}\", key: \"crm:{no}\", text: \"{words}\", identities: [{email: \"{who.mail}\"}]}\n");
    desk.secrets[0] = BYTES("s");
    desk_header(&desk, "Content-Type", "application/json");
    desk.request.body = BYTES("{\"rows\":[{\"kind\":\"note\",\"no\":7,\"words\":\"call me +33 6 12 34 56 "
                              "78\",\"who\":{\"mail\":\"a@b.co\"}},{\"kind\":\"x\"}]}");
    struct pair headers[40] = {desk.headers[0]};
    desk.request.headers = headers;
    CHECK_INT(receive_sign(&desk.source, desk.secrets[0], &desk.arena, &desk.request, &desk.why), OK);
    CHECK_INT(desk_read(&desk), RECEIVE_EVENTS);
    CHECK_INT(desk.result.count, 1);
    CHECK_TEXT(desk.result.events[0].key, "crm:7");
    CHECK_TEXT(desk.result.events[0].delivery, "7");
    CHECK(has_identity(&desk.result.events[0], "a@b.co"));
    CHECK(has_identity(&desk.result.events[0], "33612345678"));
    CHECK(!desk.result.events[0].identities[1].sender);
    desk.source.verify_none = true;
    desk.request.body = BYTES("{\"email\":\"c@d.co\",\"message\":\"hi\"}");
    CHECK_INT(desk_read(&desk), RECEIVE_EVENTS);
    CHECK_INT(desk.result.count, 1);
    CHECK_TEXT(desk.result.events[0].kind, "lead");
    desk_close(&desk);
}

TEST(a_source_s_region_reads_its_national_numbers)
{
    struct desk desk;
    desk_open(&desk, "json", "verify: none\nregion: FR\n");
    desk_header(&desk, "Content-Type", "application/json");
    desk.request.body = BYTES("{\"email\":\"c@d.co\",\"phone\":\"06 12 34 56 78\",\"message\":\"hi\"}");
    CHECK_INT(desk_read(&desk), RECEIVE_EVENTS);
    CHECK(has_identity(&desk.result.events[0], "33612345678"));
    desk_close(&desk);
    CHECK(!desk_try(&desk, "json", "verify: none\nregion: fr\n"));
    CHECK_TEXT(bytes_of(desk.problems.at[0].text), "a country is written in two capital letters: FR, not 'fr'");
    desk_close(&desk);
    CHECK(!desk_try(&desk, "json", "verify: none\nregion: XX\n"));
    desk_close(&desk);
}

TEST(a_long_id_is_kept_as_its_hash)
{
    struct desk desk;
    struct buf body;
    buf_init(&body, 1 << 20);
    buf_add_cstr(&body, "[{\"sg_event_id\":\"");
    for (int i = 0; i < 3000; i++)
        buf_add_char(&body, 'x');
    buf_add_cstr(&body, "\"}]");
    desk_open(&desk, "sendgrid", "verify: none\n");
    desk.request.body = buf_bytes(&body);
    CHECK_INT(desk_read(&desk), RECEIVE_EVENTS);
    CHECK_INT(desk.result.events[0].delivery.len, 7 + 64);
    buf_release(&body);
    desk_close(&desk);
}

/* ---- handshakes ---- */

TEST(metas_handshake_is_answered_to_whoever_knows_the_token)
{
    static const struct {
        const char *url;
        enum receive_end end;
    } rows[] = {
        {"https://x.test/in/x?hub.mode=subscribe&hub.challenge=42&hub.verify_token=tok", RECEIVE_HANDSHAKE},
        {"https://x.test/in/x?hub.mode=subscribe&hub.challenge=42&hub.verify_token=tokk", RECEIVE_REFUSED},
        {"https://x.test/in/x?hub.mode=subscribe&hub.challenge=42", RECEIVE_REFUSED},
        {"https://x.test/in/x?hub.mode=subscribe&hub.verify_token=tok", RECEIVE_UNREADABLE},
        {"https://x.test/in/x?hub.mode=unsubscribe&hub.challenge=42&hub.verify_token=tok", RECEIVE_REFUSED},
        {"https://x.test/in/x", RECEIVE_REFUSED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct desk desk;
        desk_open(&desk, "whatsapp", "secret: env:S\nverify_token: env:T\n");
        desk.secrets[0] = BYTES("s");
        desk.secrets[1] = BYTES("tok");
        desk.request.method = BYTES("GET");
        desk.request.url = bytes_of(rows[i].url);
        CHECK_INT(desk_read(&desk), rows[i].end);
        if (rows[i].end == RECEIVE_HANDSHAKE)
            CHECK_TEXT(desk.result.reply, "42");
        desk.secrets[1] = BYTES("");
        CHECK(desk_read(&desk) != RECEIVE_HANDSHAKE);
        desk_close(&desk);
    }
}

TEST(slacks_handshake_is_answered_when_it_is_signed)
{
    struct desk desk;
    struct pair headers[40];
    desk_open(&desk, "slack", "secret: env:S\n");
    desk.secrets[0] = BYTES("s");
    desk.request.headers = headers;
    desk.request.body = BYTES("{\"type\":\"url_verification\",\"challenge\":\"3eZb\"}");
    CHECK_INT(desk_read(&desk), RECEIVE_REFUSED);
    CHECK_INT(receive_sign(&desk.source, desk.secrets[0], &desk.arena, &desk.request, &desk.why), OK);
    CHECK_INT(desk_read(&desk), RECEIVE_HANDSHAKE);
    CHECK_TEXT(desk.result.reply, "3eZb");
    CHECK_TEXT(desk.result.reply_type, "text/plain");
    desk_close(&desk);
}

TEST(cloudevents_ask_before_they_send)
{
    struct desk desk;
    desk_open(&desk, "cloudevents", "verify: none\n");
    desk.request.method = BYTES("OPTIONS");
    desk_header(&desk, "WebHook-Request-Origin", "events.example.com");
    CHECK_INT(desk_read(&desk), RECEIVE_HANDSHAKE);
    CHECK_INT(desk.result.reply_header_count, 2);
    CHECK_TEXT(desk.result.reply_headers[0].name, "WebHook-Allowed-Origin");
    CHECK_TEXT(desk.result.reply_headers[0].value, "events.example.com");
    desk_close(&desk);
}

TEST(too_little_memory_is_said_and_nothing_is_returned)
{
    for (size_t size = 1000; size < 20000; size += 1000) {
        struct desk desk;
        struct arena small;
        struct receive_result result = {.count = 77};
        desk_open(&desk, "whatsapp", "verify: none\n");
        desk.request.body = BYTES(WA(WA_JO "," WA_MIA, ""));
        arena_init(&small, size);
        enum status status = receive_read(&desk.source, desk.secrets, &desk.request, &small, &result, &desk.why);
        CHECK(status == FULL || (status == OK && result.count == 2));
        CHECK(status == OK || result.count == 77);
        arena_release(&small);
        desk_close(&desk);
    }
}
