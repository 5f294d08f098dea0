#include "destination/fixture_test.h"

static const struct {
    const char *settings, *secret, *name, *value; /* name NULL: no header */
} headers[] = {
    {"provider: stripe", "sk_1", "Authorization", "Bearer sk_1"},
    {"provider: stripe", "", NULL, NULL},
    {"provider: postmark", "t", "X-Postmark-Server-Token", "t"},
    {"provider: mailgun", "key-1", "Authorization", "Basic YXBpOmtleS0x"},
    {"provider: twilio, user: AC1", "tok", "Authorization", "Basic QUMxOnRvaw=="},
    {"provider: twilio", "AC1:tok", "Authorization", "Basic QUMxOnRvaw=="},
    {"provider: brevo", "b", "api-key", "b"},
    {"provider: discord", "t", "Authorization", "Bot t"},
    {"provider: anthropic", "a", "x-api-key", "a"},
    {"provider: slack_webhook", "services/T/B/x", NULL, NULL},
    {"provider: http, url: 'https://e.com'", "s", "Authorization", "Bearer s"},
    {"provider: http, url: 'https://e.com', auth: none", "s", NULL, NULL},
    {"provider: http, url: 'https://e.com', auth: basic", "s", "Authorization", "Basic czo="},
    {"provider: http, url: 'https://e.com', auth: header, auth_header: X-Key, auth_prefix: 'Token '", "s", "X-Key", "Token s"},
    {"provider: http, url: 'https://e.com', auth_header: X-Key", "s", "X-Key", "s"},
};

static const struct effect_request request = {.method = {"POST", 4}, .path = {"/", 1}};
static const struct signing signing = {.request = &request, .id = {"eff_1", 5}, .now_us = 1700000000 * INT64_C(1000000)};

TEST(each_way_to_carry_a_secret_makes_its_header)
{
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        struct house house;
        struct pair got[DESTINATION_AUTH_HEADERS_MAX];
        size_t count = 99;
        house_open(&house, headers[i].settings);
        CHECK_INT(
            destination_authorize(house.destination, bytes_of(headers[i].secret), &signing, &house.arena, got, &count, NULL), OK);
        CHECK_INT(count, headers[i].name != NULL);
        if (headers[i].name != NULL) {
            CHECK_TEXT(got[0].name, headers[i].name);
            CHECK_TEXT(got[0].value, headers[i].value);
        }
        house_close(&house);
    }
}

/* Key, id, time and body of the vector that both public libraries agree on; ours is made over the stored request. */
TEST(a_webhook_is_signed_over_its_id_the_time_and_the_body)
{
    struct house house;
    struct pair got[DESTINATION_AUTH_HEADERS_MAX], event = {BYTES("Semel-Event-Id"), BYTES("msg_1")};
    struct effect_request sent = {.method = BYTES("POST"),
                                  .path = BYTES("/"),
                                  .body = BYTES("{\"type\":\"lead.created\",\"data\":{\"email\":\"a@b.c\"}}"),
                                  .headers = &event,
                                  .header_count = 1};
    struct signing over = {.request = &sent, .id = BYTES("eff_1"), .now_us = 1700000000 * INT64_C(1000000) + 999999};
    struct bytes secret = BYTES("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
    size_t count = 0;
    struct why why;
    house_open(&house, "provider: http, url: 'https://e.com', auth: webhook, secret: env:S");
    CHECK_INT(destination_authorize(house.destination, secret, &over, &house.arena, got, &count, &why), OK);
    CHECK_INT(count, 3);
    CHECK_TEXT(got[0].value, "msg_1");
    CHECK_TEXT(got[1].value, "1700000000");
    CHECK_TEXT(got[2].value, "v1,yrJUOKU2DDU6ZGzAZVMjIfcC2Z57XkLAT7aOkjhuGkQ=");
    sent.header_count = 0;
    CHECK_INT(destination_authorize(house.destination, BYTES("plain whsec_MDEy"), &over, &house.arena, got, &count, &why), OK);
    CHECK_TEXT(got[0].value, "eff_1");
    CHECK(memchr(got[2].value.at, ' ', got[2].value.len) != NULL);
    CHECK_INT(destination_authorize(house.destination, BYTES("whsec_not base64"), &over, &house.arena, got, &count, &why),
              INVALID);
    CHECK(strstr(why.text, "not") == NULL);
    house_close(&house);
}

TEST(a_secret_with_a_line_break_makes_no_header_and_is_not_repeated)
{
    struct house house;
    struct pair got[DESTINATION_AUTH_HEADERS_MAX];
    size_t count;
    struct why why;
    house_open(&house, "provider: stripe");
    CHECK_INT(destination_authorize(house.destination, BYTES("sk_live\r\nX: y"), &signing, &house.arena, got, &count, &why),
              INVALID);
    CHECK(strstr(why.text, "sk_live") == NULL);
    house_close(&house);
}

static const struct {
    const char *settings, *secret, *path, *want; /* NULL: refused */
} urls[] = {
    {"provider: stripe", "s", "/v1/charges?a=b", "https://api.stripe.com/v1/charges?a=b"},
    {"provider: http, url: 'https://e.com/api/'", "", "/x", "https://e.com/api/x"},
    {"provider: http, url: 'https://e.com/api'", "", "x", NULL},
    {"provider: http, url: 'https://e.com/api'", "", "/../admin", NULL},
    {"provider: http, url: 'https://e.com/api'", "", "/a b", NULL},
    {"provider: http, url: 'https://e.com/api'", "", "/a\r\nHost: x", NULL},
    {"provider: http, url: 'https://e.com/api'", "", "/a#b", NULL},
    {"provider: slack_webhook", "services/T/B/x", "/", "https://hooks.slack.com/services/T/B/x"},
    {"provider: slack_webhook", "https://hooks.slack.com/services/T/B/x", "/", "https://hooks.slack.com/services/T/B/x"},
    {"provider: slack_webhook", "https://evil.example/services/T/B/x", "/", NULL},
    {"provider: slack_webhook", "", "/", NULL},
    {"provider: slack_webhook", "../x", "/", NULL},
};

TEST(the_url_stays_below_its_base)
{
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        struct house house;
        struct bytes got = BYTES_NONE;
        struct why why;
        house_open(&house, urls[i].settings);
        enum status status =
            destination_url(house.destination, bytes_of(urls[i].secret), bytes_of(urls[i].path), &house.arena, &got, &why);
        CHECK_INT(status, urls[i].want != NULL ? OK : INVALID);
        if (urls[i].want != NULL)
            CHECK_TEXT(got, urls[i].want);
        else
            CHECK(got.at == NULL && strstr(why.text, "evil") == NULL);
        house_close(&house);
    }
}

TEST(mail_logs_in_with_user_and_password)
{
    struct house house;
    struct bytes user, password;
    struct why why;
    house_open(&house, "provider: smtp, host: mx.e.com, user: u");
    CHECK_INT(destination_login(house.destination, BYTES("p:q"), &house.arena, &user, &password, &why), OK);
    CHECK_TEXT(user, "u");
    CHECK_TEXT(password, "p:q");
    CHECK_INT(destination_login(house.destination, BYTES_NONE, &house.arena, &user, &password, &why), OK);
    CHECK(user.at == NULL && password.at == NULL);
    house_close(&house);
    house_open(&house, "provider: smtp, host: mx.e.com");
    CHECK_INT(destination_login(house.destination, BYTES("u:p:q"), &house.arena, &user, &password, &why), OK);
    CHECK_TEXT(user, "u");
    CHECK_TEXT(password, "p:q");
    CHECK_INT(destination_login(house.destination, BYTES("hunter2"), &house.arena, &user, &password, &why), INVALID);
    CHECK(strstr(why.text, "hunter2") == NULL);
    house_close(&house);
}

TEST(a_secret_is_a_reference)
{
    static const struct {
        const char *text;
        int kind; /* -1: refused */
        const char *name;
    } rows[] = {
        {"env:STRIPE_KEY", SECRET_ENV, "STRIPE_KEY"},
        {"file:/run/crm.key", SECRET_FILE, "/run/crm.key"},
        {"secret:stripe", SECRET_STORED, "stripe"},
        {"env:", -1, NULL},
        {"env:1A", -1, NULL},
        {"env:A B", -1, NULL},
        {"file:crm.key", -1, NULL},
        {"file:", -1, NULL},
        {"secret:a/b", -1, NULL},
        {"sk_live_abc", -1, NULL},
        {"ENV:A", -1, NULL},
        {"", -1, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct secret_reference got = {0};
        struct why why;
        enum status status = secret_reference_parse(bytes_of(rows[i].text), &got, &why);
        CHECK_INT(status, rows[i].kind >= 0 ? OK : INVALID);
        if (status == OK) {
            CHECK_INT(got.kind, rows[i].kind);
            CHECK_TEXT(got.name, rows[i].name);
            CHECK_TEXT(got.text, rows[i].text);
        } else {
            CHECK(strstr(why.text, "sk_live_abc") == NULL);
        }
    }
}
