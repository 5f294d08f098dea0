#include "destination/fixture_test.h"

#include "base/when.h"

#define FIRST_SENT_US (1700000000 * WHEN_SECOND) /* 2023-11-14T22:13:20Z */

static const char json_type[] = "application/json", form_type[] = "application/x-www-form-urlencoded";

struct question {
    struct house house;
    struct pair header;
    struct effect_request request, sent;
    const struct call_rules *rules;
};

/* Prepares the call as the outbox does. */
static void ask(struct question *question, const char *settings, const char *method, const char *path, const char *type,
                const char *body)
{
    question->header = (struct pair){BYTES("Content-Type"), bytes_of(type)};
    question->request = (struct effect_request){.method = bytes_of(method),
                                                .path = bytes_of(path),
                                                .body = bytes_of(body),
                                                .headers = &question->header,
                                                .header_count = 1};
    house_open(&question->house, settings);
    question->rules = house_call(&question->house, method, path);
    CHECK_INT(destination_prepare(question->house.destination, question->rules, TEST_KEY, &question->request,
                                  &question->house.arena, &question->sent, NULL),
              OK);
}

static const struct {
    const char *settings, *path, *type, *body;
    const char *want; /* NULL: it cannot be asked */
} questions[] = {
    {"provider: slack", "/api/chat.postMessage", json_type, "{\"channel\":\"C1\",\"text\":\"hi\"}",
     "/api/conversations.history?channel=C1&oldest=1699999700&limit=200&include_all_metadata=true"},
    {"provider: slack", "/api/chat.postMessage", form_type, "channel=C%2F1&text=hi",
     "/api/conversations.history?channel=C%2F1&oldest=1699999700&limit=200&include_all_metadata=true"},
    {"provider: slack", "/api/chat.postMessage", json_type, "{\"channel\":\"C1\",\"thread_ts\":\"1.2\"}",
     "/api/conversations.replies?channel=C1&ts=1.2&oldest=1699999700&limit=200&include_all_metadata=true"},
    {"provider: slack", "/api/chat.postMessage", json_type, "{\"text\":\"hi\"}", NULL},
    {"provider: slack", "/api/chat.postMessage", "text/plain", "hi", NULL},
    {"provider: slack", "/api/reactions.add", json_type, "{}", NULL},
    {"provider: stripe", "/v1/payment_intents", form_type, "amount=5",
     "/v1/payment_intents?limit=100&created%5Bgte%5D=1699999700"},
    {"provider: stripe", "/v1/subscriptions", form_type, "a=5",
     "/v1/subscriptions?limit=100&status=all&created%5Bgte%5D=1699999700"},
    {"provider: stripe", "/v1/payment_intents/pi/confirm", form_type, "", NULL},
    {"provider: postmark", "/email", json_type, "{\"To\":\"a+b@c.d\"}",
     "/messages/outbound?count=500&offset=0&recipient=a%2Bb%40c.d&fromdate=2023-11-13"},
    {"provider: postmark", "/email", json_type, "{\"To\":\"Ann <a@c.d>\"}",
     "/messages/outbound?count=500&offset=0&recipient=a%40c.d&fromdate=2023-11-13"},
    {"provider: postmark", "/email", json_type, "{\"To\":\"a@c.d, b@c.d\"}", NULL},
    {"provider: postmark", "/email", json_type, "{\"To\":\"Ann <a@c.d>, b@c.d\"}", NULL},
    {"provider: postmark", "/email", json_type, "{\"To\":\"\"}", NULL},
    {"provider: postmark", "/email", json_type, "{\"To\":\"undisclosed\"}", NULL},
    {"provider: postmark", "/email", json_type, "{\"To\":\"a@b@c.d\"}", NULL},
    {"provider: postmark", "/email", json_type, "{}", NULL},
    {"provider: twilio", "/2010-04-01/Accounts/AC1/Messages.json", form_type, "To=%2B15550001&Body=hi",
     "/2010-04-01/Accounts/AC1/Messages.json?PageSize=1000&To=%2B15550001"},
    {"provider: twilio", "/2010-04-01/Accounts/AC1/Messages.json", form_type, "Body=hi", NULL},
    {"provider: discord", "/api/v10/channels/77/messages", json_type, "{}", "/api/v10/channels/77/messages?limit=100"},
    {"provider: resend", "/emails", json_type, "{}", NULL},
    {"provider: http, url: 'https://e.com', calls: [{name: c, markers: [{in: header, name: X-Ref}], probes: [{method: GET, path: "
     "'/by/{key}', proves: [absent]}]}]",
     "/a", "text/plain", "hi", "/by/" TEST_KEY},
    {"provider: http, url: 'https://e.com', calls: [{name: c, probes: [{method: GET, path: '/by/{key}', proves: [absent]}]}]",
     "/a", json_type, "{}", NULL},
};

TEST(each_question_is_asked_as_its_recipe_says)
{
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        struct question question;
        struct effect_request got = {0};
        struct why why;
        ask(&question, questions[i].settings, "POST", questions[i].path, questions[i].type, questions[i].body);
        enum status status = destination_probe(question.house.destination, question.rules, TEST_KEY, &question.sent,
                                               FIRST_SENT_US, &question.house.arena, &got, &why);
        const struct probe_recipe *recipe =
            destination_probe_recipe(question.house.destination, question.rules, TEST_KEY, &question.sent);
        CHECK_INT(status, questions[i].want != NULL ? OK : NOTHING);
        CHECK_INT(recipe != NULL, questions[i].want != NULL);
        if (questions[i].want != NULL) {
            CHECK_TEXT(got.method, "GET");
            CHECK_TEXT(got.path, questions[i].want);
        }
        house_close(&question.house);
    }
}

TEST(a_call_that_was_sent_without_the_marker_cannot_be_asked_about)
{
    struct question question;
    struct effect_request got;
    ask(&question, "provider: slack", "POST", "/api/chat.postMessage", json_type, "{\"channel\":\"C1\"}");
    CHECK_INT(destination_probe(question.house.destination, question.rules, TEST_KEY, &question.request, FIRST_SENT_US,
                                &question.house.arena, &got, NULL),
              NOTHING);
    CHECK_INT(destination_probe(question.house.destination, question.rules, "sml-00000000000000000000000000000000",
                                &question.sent, FIRST_SENT_US, &question.house.arena, &got, NULL),
              NOTHING);
    house_close(&question.house);
}

#define MESSAGE(key) "{\"ts\":\"1700000001.0001\",\"text\":\"hi\",\"metadata\":{\"event_payload\":{\"semel_key\":\"" key "\"}}}"

static const struct {
    const char *settings, *path, *type, *body;
    int status;
    const char *reply;
    enum probe_answer answer;
    const char *evidence; /* NULL: none */
} readings[] = {
#define SLACK "provider: slack", "/api/chat.postMessage", json_type, "{\"channel\":\"C1\"}"
    {SLACK, 200, "{\"ok\":true,\"messages\":[" MESSAGE("x") "," MESSAGE(TEST_KEY) "],\"has_more\":true}", PROBE_FOUND,
     "[{\"ts\":\"1700000001.0001\",\"text\":\"hi\"}]"},
    {SLACK, 200, "{\"ok\":true,\"messages\":[" MESSAGE("x") "],\"has_more\":false}", PROBE_ABSENT, NULL},
    {SLACK, 200, "{\"ok\":true,\"messages\":[]}", PROBE_ABSENT, NULL},
    {SLACK, 200, "{\"ok\":true,\"messages\":[" MESSAGE("x") "],\"has_more\":true}", PROBE_UNSURE, NULL},
    {SLACK, 200, "{\"ok\":false,\"error\":\"channel_not_found\"}", PROBE_UNSURE, NULL},
    {SLACK, 200, "{\"ok\":true}", PROBE_UNSURE, NULL},
    {SLACK, 200, "{\"ok\":true,\"messages\":{}}", PROBE_UNSURE, NULL},
    {SLACK, 200, "{\"messages\":[]}", PROBE_UNSURE, NULL},
    {SLACK, 200, "not JSON", PROBE_UNSURE, NULL},
    {SLACK, 200, "", PROBE_UNSURE, NULL},
    {SLACK, 500, "{\"ok\":true,\"messages\":[]}", PROBE_UNSURE, NULL},
    {SLACK, 404, "{\"ok\":true,\"messages\":[]}", PROBE_UNSURE, NULL},
#undef SLACK
#define STRIPE "provider: stripe", "/v1/charges", form_type, "amount=5"
    {STRIPE, 200,
     "{\"data\":[{\"id\":\"ch_1\",\"created\":1700000001,\"metadata\":{\"semel_key\":\"" TEST_KEY "\"}}],\"has_more\":false}",
     PROBE_FOUND, "[{\"id\":\"ch_1\",\"created\":1700000001}]"},
    {STRIPE, 200, "{\"data\":[{\"id\":\"ch_1\",\"created\":1700000001,\"metadata\":{}}],\"has_more\":false}", PROBE_ABSENT, NULL},
    /* long before the first send: some earlier life of the key */
    {STRIPE, 200, "{\"data\":[{\"id\":\"ch_1\",\"created\":1600000001,\"metadata\":{\"semel_key\":\"" TEST_KEY "\"}}]}",
     PROBE_ABSENT, NULL},
#undef STRIPE
#define POSTMARK "provider: postmark", "/email", json_type, "{\"To\":\"a@b.c\"}"
    {POSTMARK, 200, "{\"TotalCount\":0,\"Messages\":[]}", PROBE_ABSENT, NULL},
    {POSTMARK, 200, "{\"TotalCount\":1,\"Messages\":[{\"MessageID\":\"m\",\"ReceivedAt\":\"2023-11-14T22:13:21Z\"}]}",
     PROBE_UNSURE, "[{\"MessageID\":\"m\",\"ReceivedAt\":\"2023-11-14T22:13:21Z\"}]"},
    {POSTMARK, 200, "{\"TotalCount\":1,\"Messages\":[{\"MessageID\":\"m\",\"ReceivedAt\":\"2023-11-14T20:00:00Z\"}]}",
     PROBE_ABSENT, NULL},
    {POSTMARK, 200, "{\"TotalCount\":600,\"Messages\":[{\"MessageID\":\"m\",\"ReceivedAt\":\"2023-11-14T20:00:00Z\"}]}",
     PROBE_UNSURE, NULL},
    {POSTMARK, 200, "{\"Messages\":[]}", PROBE_UNSURE, NULL},
#undef POSTMARK
#define TWILIO "provider: twilio", "/2010-04-01/Accounts/AC1/Messages.json", form_type, "To=%2B1&Body=hi"
    {TWILIO, 200, "{\"messages\":[],\"next_page_uri\":null}", PROBE_ABSENT, NULL},
    {TWILIO, 200, "{\"messages\":[],\"next_page_uri\":\"/2010\"}", PROBE_UNSURE, NULL},
    {TWILIO, 200,
     "{\"messages\":[{\"sid\":\"SM1\",\"date_created\":\"Tue, 14 Nov 2023 22:13:25 +0000\"}],\"next_page_uri\":null}",
     PROBE_UNSURE, "[{\"sid\":\"SM1\",\"date_created\":\"Tue, 14 Nov 2023 22:13:25 +0000\"}]"},
    {TWILIO, 200,
     "{\"messages\":[{\"sid\":\"SM1\",\"date_created\":\"Mon, 13 Nov 2023 22:13:25 +0000\"}],\"next_page_uri\":null}",
     PROBE_ABSENT, NULL},
    {TWILIO, 200, "{\"messages\":[{\"sid\":\"SM1\",\"date_created\":\"who knows\"}],\"next_page_uri\":null}", PROBE_UNSURE,
     "[{\"sid\":\"SM1\",\"date_created\":\"who knows\"}]"},
#undef TWILIO
#define DISCORD "provider: discord", "/api/v10/channels/7/messages", json_type, "{}"
    {DISCORD, 200, "[{\"id\":\"9\",\"nonce\":\"1qfwz75gyfg66x1jzp7m31v20\",\"timestamp\":\"2023-11-14T22:13:21+00:00\"}]",
     PROBE_FOUND, "[{\"id\":\"9\",\"timestamp\":\"2023-11-14T22:13:21+00:00\"}]"},
    {DISCORD, 200, "[{\"id\":\"9\"}]", PROBE_UNSURE, NULL}, /* the nonce may not be shown: absence proves nothing */
    {DISCORD, 200, "{}", PROBE_UNSURE, NULL},
#undef DISCORD
#define OWN                                                                                                               \
    "provider: http, url: 'https://e.com', calls: [{name: c, key: {in: header, name: Ref}, probes: [{method: GET, path: " \
    "'/by/{key}', match: {ref: '{key}'}, absent_status: 404, show: [id], proves: [found, absent]}]}]",                    \
        "/a", json_type, "{}"
    {OWN, 404, "", PROBE_ABSENT, NULL},
    {OWN, 200, "{\"id\":3,\"ref\":\"" TEST_KEY "\"}", PROBE_FOUND, "[{\"id\":3}]"},
    {OWN, 200, "{\"id\":3,\"ref\":\"other\"}", PROBE_ABSENT, NULL},
    {OWN, 403, "{\"id\":3,\"ref\":\"" TEST_KEY "\"}", PROBE_UNSURE, NULL},
#undef OWN
};

TEST(each_answer_to_a_question_proves_what_its_row_says)
{
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        struct question question;
        struct effect_reply reply = {readings[i].status, NULL, 0, bytes_of(readings[i].reply)};
        struct bytes evidence;
        ask(&question, readings[i].settings, "POST", readings[i].path, readings[i].type, readings[i].body);
        enum probe_answer got = destination_probe_read(question.house.destination, question.rules, TEST_KEY, &question.sent,
                                                       FIRST_SENT_US, &reply, &question.house.arena, &evidence);
        if (got != readings[i].answer)
            check_fail(__FILE__, __LINE__, "%s: %d %s is %s, want %s", readings[i].settings, readings[i].status,
                       readings[i].reply, probe_answer_names[got], probe_answer_names[readings[i].answer]);
        CHECK_TEXT(evidence, readings[i].evidence);
        house_close(&question.house);
    }
}

TEST(without_memory_an_answer_proves_nothing)
{
    struct question question;
    struct effect_reply reply = {200, NULL, 0, BYTES("{\"ok\":true,\"messages\":[]}")};
    struct bytes evidence;
    ask(&question, "provider: slack", "POST", "/api/chat.postMessage", json_type, "{\"channel\":\"C1\"}");
    for (size_t size = 0; size < 8192; size += 64) {
        struct arena small;
        arena_init(&small, size);
        enum probe_answer got = destination_probe_read(question.house.destination, question.rules, TEST_KEY, &question.sent,
                                                       FIRST_SENT_US, &reply, &small, &evidence);
        CHECK(small.failed ? got == PROBE_UNSURE : got == PROBE_ABSENT);
        arena_release(&small);
    }
    house_close(&question.house);
}
