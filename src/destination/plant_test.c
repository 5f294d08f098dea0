#include "destination/fixture_test.h"
#include "destination/header.h"

enum { HEADERS = 4 };

static struct effect_request request_of(const char *method, const char *path, const char *type, const char *body,
                                        struct pair *headers)
{
    headers[0] = (struct pair){BYTES("Content-Type"), bytes_of(type)};
    return (struct effect_request){.method = bytes_of(method),
                                   .path = bytes_of(path),
                                   .body = bytes_of(body),
                                   .headers = headers,
                                   .header_count = type != NULL ? 1 : 0};
}

static const char json_type[] = "application/json", form_type[] = "application/x-www-form-urlencoded; charset=utf-8";

#define HTTP "provider: http, url: 'https://e.com', capability: idempotent, window: 1h, "
#define CALL "provider: http, url: 'https://e.com', calls: [{name: c, "
#define BASE25 "1qfwz75gyfg66x1jzp7m31v20"

/* Where the key is put: the body and the path as they are sent. */
static const struct {
    const char *settings, *path, *type, *body, *want_body, *want_path;
} plants[] = {
    /* JSON: an insertion at the end of its object, the caller's bytes stay */
    {HTTP "key_json: k", "/a", json_type, "{}", "{\"k\":\"" TEST_KEY "\"}", "/a"},
    {HTTP "key_json: k", "/a", json_type, " { \"b\" : 1.0 , \"a\":[ ] }\n",
     " { \"b\" : 1.0 , \"a\":[ ] ,\"k\":\"" TEST_KEY "\"}\n", "/a"},
    {HTTP "key_json: k", "/a", json_type, "{\"k\":\"mine\",\"z\":1}", "{\"k\":\"" TEST_KEY "\",\"z\":1}", "/a"},
    {HTTP "key_json: k", "/a", json_type, "{\"\\u006b\": {\"x\":1} }", "{\"\\u006b\": \"" TEST_KEY "\" }", "/a"},
    {HTTP "key_json: m.n.k", "/a", json_type, "{}", "{\"m\":{\"n\":{\"k\":\"" TEST_KEY "\"}}}", "/a"},
    {HTTP "key_json: m.n.k", "/a", json_type, "{\"m\":{\"n\":{}}}", "{\"m\":{\"n\":{\"k\":\"" TEST_KEY "\"}}}", "/a"},
    {HTTP "key_json: m.k", "/a", json_type, "{\"m\":{\"a\":1}, \"b\":2}", "{\"m\":{\"a\":1,\"k\":\"" TEST_KEY "\"}, \"b\":2}",
     "/a"},
    {HTTP "key_json: k", "/a", NULL, "{\"a\":1e5}", "{\"a\":1e5,\"k\":\"" TEST_KEY "\"}", "/a"},
    {HTTP "key_json: k", "/a", "application/vnd.api+json", "{}", "{\"k\":\"" TEST_KEY "\"}", "/a"},
    {HTTP "key_json: k, key_codec: uuid", "/a", json_type, "{}", "{\"k\":\"" TEST_UUID "\"}", "/a"},
    /* forms */
    {HTTP "key_form: k", "/a", form_type, "", "k=" TEST_KEY, "/a"},
    {HTTP "key_form: k", "/a", form_type, "a=1&b=%20+", "a=1&b=%20+&k=" TEST_KEY, "/a"},
    {HTTP "key_form: k", "/a", form_type, "k=mine&a=1&k=other", "k=" TEST_KEY "&a=1", "/a"},
    {HTTP "key_form: k", "/a", form_type, "a=1&%6B", "a=1&k=" TEST_KEY, "/a"},
    {HTTP "key_form: 'm[k]'", "/a", form_type, "a=1", "a=1&m%5Bk%5D=" TEST_KEY, "/a"},
    /* queries */
    {HTTP "key_query: k", "/a", json_type, "{}", "{}", "/a?k=" TEST_KEY},
    {HTTP "key_query: k", "/a?b=1", json_type, "{}", "{}", "/a?b=1&k=" TEST_KEY},
    {HTTP "key_query: k", "/a?k=x&b=1", json_type, "{}", "{}", "/a?k=" TEST_KEY "&b=1"},
    /* nothing */
    {"provider: http, url: 'https://e.com'", "/a", json_type, "[1]", "[1]", "/a"},
    {CALL "key: {in: natural}, window: always}]", "/a", json_type, "[1]", "[1]", "/a"},
    {CALL "reads: true, key: {in: json, name: k}, window: 1h}]", "/a", json_type, "[1]", "[1]", "/a"},
    /* constants beside it */
    {"provider: discord", "/api/v10/channels/1/messages", json_type, "{\"content\":\"hi\"}",
     "{\"content\":\"hi\",\"nonce\":\"" BASE25 "\",\"enforce_nonce\":true}", "/api/v10/channels/1/messages"},
    {"provider: discord", "/api/v10/channels/1/messages", json_type, "{\"enforce_nonce\":false,\"nonce\":7}",
     "{\"enforce_nonce\":true,\"nonce\":\"" BASE25 "\"}", "/api/v10/channels/1/messages"},
    {CALL "key: {in: json, name: k, with: {a: 1, b: 'x', c: null}}, window: 1h}]", "/a", json_type, "{}",
     "{\"k\":\"" TEST_KEY "\",\"a\":1,\"b\":\"x\",\"c\":null}", "/a"},
    /* providers */
    {"provider: brevo", "/v3/smtp/email", json_type, "{\"headers\":{\"X\":\"y\"}}",
     "{\"headers\":{\"X\":\"y\",\"idempotencyKey\":\"" TEST_UUID "\"}}", "/v3/smtp/email"},
    {"provider: hubspot", "/marketing/v4/email/single-send", json_type, "{\"message\":{\"to\":\"a@b.c\"}}",
     "{\"message\":{\"to\":\"a@b.c\",\"sendId\":\"" TEST_KEY "\"}}", "/marketing/v4/email/single-send"},
    {"provider: postmark", "/email", json_type, "{\"To\":\"a@b.c\"}",
     "{\"To\":\"a@b.c\",\"Metadata\":{\"semel_key\":\"" TEST_KEY "\"}}", "/email"},
    {"provider: sendgrid", "/v3/mail/send", json_type, "{}", "{\"custom_args\":{\"semel_key\":\"" TEST_KEY "\"}}",
     "/v3/mail/send"},
    {"provider: whatsapp", "/v23.0/1/messages", json_type, "{}", "{\"biz_opaque_callback_data\":\"" TEST_KEY "\"}",
     "/v23.0/1/messages"},
    {"provider: slack", "/api/chat.postMessage", json_type, "{\"channel\":\"C1\"}",
     "{\"channel\":\"C1\",\"metadata\":{\"event_payload\":{\"semel_key\":\"" TEST_KEY "\"},\"event_type\":\"semel\"}}",
     "/api/chat.postMessage"},
    {"provider: slack", "/api/chat.postMessage", json_type,
     "{\"metadata\":{\"event_type\":\"mine\",\"event_payload\":{\"a\":1}}}",
     "{\"metadata\":{\"event_type\":\"mine\",\"event_payload\":{\"a\":1,\"semel_key\":\"" TEST_KEY "\"}}}",
     "/api/chat.postMessage"},
    {"provider: slack", "/api/chat.postMessage", form_type, "channel=C1",
     "channel=C1&metadata=%7B%22event_payload%22%3A%7B%22semel_key%22%3A%22" TEST_KEY
     "%22%7D%2C%22event_type%22%3A%22semel%22%7D",
     "/api/chat.postMessage"},
    {"provider: stripe", "/v1/charges", form_type, "amount=5", "amount=5&metadata%5Bsemel_key%5D=" TEST_KEY, "/v1/charges"},
    {"provider: stripe", "/v1/charges/ch_1/capture", form_type, "amount=5", "amount=5", "/v1/charges/ch_1/capture"},
    /* a marker that does not go in is left out */
    {"provider: postmark", "/email", json_type, "[{\"To\":\"a@b.c\"}]", "[{\"To\":\"a@b.c\"}]", "/email"},
    {"provider: mailgun", "/v3/d/messages", form_type, "to=a", "to=a", "/v3/d/messages"}, /* nobody has verified it */
};

TEST(each_place_takes_the_key_and_the_rest_of_the_request_stays_byte_for_byte)
{
    for (size_t i = 0; i < sizeof plants / sizeof *plants; i++) {
        struct house house;
        struct pair headers[HEADERS];
        struct effect_request sent, again;
        struct why why = {""};
        struct effect_request request = request_of("POST", plants[i].path, plants[i].type, plants[i].body, headers);
        house_open(&house, plants[i].settings);
        const struct call_rules *rules = house_call(&house, "POST", plants[i].path);
        if (destination_prepare(house.destination, rules, TEST_KEY, &request, &house.arena, &sent, &why) != OK)
            check_fail(__FILE__, __LINE__, "%s: %s", plants[i].settings, why.text);
        CHECK_TEXT(sent.body, plants[i].want_body);
        CHECK_TEXT(sent.path, plants[i].want_path);
        CHECK_INT(destination_prepare(house.destination, rules, TEST_KEY, &sent, &house.arena, &again, &why), OK);
        CHECK_TEXT(again.body, plants[i].want_body);
        CHECK_TEXT(again.path, plants[i].want_path);
        house_close(&house);
    }
}

static const struct {
    const char *settings, *type, *body;
} refused[] = {
    {HTTP "key_json: k", json_type, ""},
    {HTTP "key_json: k", json_type, "[]"},
    {HTTP "key_json: k", json_type, "{\"a\":"},
    {HTTP "key_json: k", json_type, "{\"k\":1,\"k\":2}"},
    {HTTP "key_json: k", "multipart/form-data; boundary=x", "--x--"},
    {HTTP "key_json: k", form_type, "a=1"},
    {HTTP "key_json: a.k", json_type, "{\"a\":1}"},
    {HTTP "key_form: k", json_type, "{}"},
    {HTTP "key_form: m.k", form_type, "m=7"},
};

TEST(where_the_key_cannot_stand_the_call_is_not_made)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct house house;
        struct pair headers[HEADERS];
        struct effect_request sent = {0}, request = request_of("POST", "/a", refused[i].type, refused[i].body, headers);
        struct why why;
        house_open(&house, refused[i].settings);
        CHECK_INT(destination_prepare(house.destination, house_call(&house, "POST", "/a"), TEST_KEY, &request, &house.arena,
                                      &sent, &why),
                  INVALID);
        CHECK(sent.method.at == NULL);
        house_close(&house);
    }
}

TEST(a_header_takes_the_key_in_place_of_the_callers)
{
    static const struct {
        const char *settings, *method, *path, *header, *want;
    } rows[] = {
        {"provider: stripe", "POST", "/v1/charges", "Idempotency-Key", TEST_KEY},
        {"provider: resend", "POST", "/emails", "Idempotency-Key", TEST_KEY},
        {"provider: telnyx", "POST", "/v2/messages", "Idempotency-Key", TEST_KEY},
        {"provider: nylas", "POST", "/v3/grants/g/messages/send", "Idempotency-Key", TEST_KEY},
        {HTTP "key_header: Request-Id, key_codec: uuid", "POST", "/a", "Request-Id", TEST_UUID},
        {"provider: smtp, host: mx.e.com, from: 'A <a@b.c>'", "SEND", "/", "Message-ID", "<" TEST_KEY "@b.c>"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct house house;
        struct pair headers[HEADERS] = {{{"X-Other", 7}, {"1", 1}}, {{"idempotency-key", 15}, {"stripe-node-retry-1", 19}}};
        struct effect_request sent,
            request = {.method = bytes_of(rows[i].method), .path = bytes_of(rows[i].path), .headers = headers, .header_count = 2};
        house_open(&house, rows[i].settings);
        CHECK_INT(destination_prepare(house.destination, house_call(&house, rows[i].method, rows[i].path), TEST_KEY, &request,
                                      &house.arena, &sent, NULL),
                  OK);
        CHECK_TEXT(header_find(sent.headers, sent.header_count, bytes_of(rows[i].header)), rows[i].want);
        CHECK_TEXT(header_find(sent.headers, sent.header_count, BYTES("X-Other")), "1");
        house_close(&house);
    }
}

TEST(a_body_too_large_or_without_memory_is_refused_untouched)
{
    struct house house;
    struct pair headers[HEADERS];
    struct arena small;
    struct effect_request sent = {0},
                          request = request_of("POST", "/a", json_type, "{\"a\":\"bbbbbbbbbbbbbbbbbbbbbbbb\"}", headers);
    struct why why;
    house_open(&house, HTTP "key_json: k");
    arena_init(&small, 64);
    CHECK_INT(destination_prepare(house.destination, house_call(&house, "POST", "/a"), TEST_KEY, &request, &small, &sent, &why),
              FULL);
    CHECK(sent.method.at == NULL);
    arena_release(&small);
    request.body.len = (size_t)DESTINATION_BODY_MAX + 1;
    CHECK_INT(
        destination_prepare(house.destination, house_call(&house, "POST", "/a"), TEST_KEY, &request, &house.arena, &sent, &why),
        INVALID);
    house_close(&house);
}
