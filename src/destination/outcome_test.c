#include "destination/fixture_test.h"

#include "base/when.h"

static const struct {
    const char *settings, *method, *path;
    int status;
    const char *header, *value, *body; /* header NULL: none */
    enum outcome outcome;
} answers[] = {
#define H "provider: http, url: 'https://e.com'", "POST", "/a"
    {H, 200, NULL, NULL, "", OUTCOME_DONE},
    {H, 201, NULL, NULL, "", OUTCOME_DONE},
    {H, 204, NULL, NULL, "", OUTCOME_DONE},
    {H, 299, NULL, NULL, "", OUTCOME_DONE},
    {H, 301, NULL, NULL, "", OUTCOME_REFUSED},
    {H, 307, NULL, NULL, "", OUTCOME_REFUSED},
    {H, 400, NULL, NULL, "", OUTCOME_REFUSED},
    {H, 401, NULL, NULL, "", OUTCOME_RETRY},
    {H, 402, NULL, NULL, "", OUTCOME_REFUSED},
    {H, 403, NULL, NULL, "", OUTCOME_RETRY},
    {H, 404, NULL, NULL, "", OUTCOME_REFUSED},
    {H, 405, NULL, NULL, "", OUTCOME_REFUSED},
    {H, 408, NULL, NULL, "", OUTCOME_RETRY},
    {H, 409, NULL, NULL, "", OUTCOME_RETRY},
    {H, 410, NULL, NULL, "", OUTCOME_REFUSED},
    {H, 413, NULL, NULL, "", OUTCOME_REFUSED},
    {H, 415, NULL, NULL, "", OUTCOME_REFUSED},
    {H, 418, NULL, NULL, "", OUTCOME_REFUSED},
    {H, 422, NULL, NULL, "", OUTCOME_REFUSED},
    {H, 425, NULL, NULL, "", OUTCOME_RETRY},
    {H, 429, NULL, NULL, "", OUTCOME_RETRY},
    {H, 499, NULL, NULL, "", OUTCOME_REFUSED},
    {H, 500, NULL, NULL, "", OUTCOME_UNKNOWN},
    {H, 502, NULL, NULL, "", OUTCOME_UNKNOWN},
    {H, 503, NULL, NULL, "", OUTCOME_UNKNOWN},
    {H, 504, NULL, NULL, "", OUTCOME_UNKNOWN},
    {H, 599, NULL, NULL, "", OUTCOME_UNKNOWN},
    {H, 100, NULL, NULL, "", OUTCOME_UNKNOWN},
    {H, 0, NULL, NULL, "", OUTCOME_UNKNOWN},
    {H, 600, NULL, NULL, "", OUTCOME_UNKNOWN},
    {H, -1, NULL, NULL, "", OUTCOME_UNKNOWN},
#undef H
#define STRIPE "provider: stripe", "POST", "/v1/charges"
    {STRIPE, 200, NULL, NULL, "{}", OUTCOME_DONE},
    {STRIPE, 402, NULL, NULL, "{}", OUTCOME_REFUSED},
    {STRIPE, 409, NULL, NULL, "{}", OUTCOME_RETRY},
    {STRIPE, 409, "stripe-should-retry", "false", "{}", OUTCOME_REFUSED},
    {STRIPE, 400, "Stripe-Should-Retry", "true", "{}", OUTCOME_RETRY},
    {STRIPE, 400, "Stripe-Should-Retry", "maybe", "{}", OUTCOME_REFUSED},
    {STRIPE, 500, "Stripe-Should-Retry", "true", "{}", OUTCOME_UNKNOWN},
    {STRIPE, 500, "Stripe-Should-Retry", "false", "{}", OUTCOME_UNKNOWN},
#undef STRIPE
#define SLACK "provider: slack", "POST", "/api/chat.postMessage"
    {SLACK, 200, NULL, NULL, "{\"ok\":true,\"ts\":\"1.2\"}", OUTCOME_DONE},
    {SLACK, 200, NULL, NULL, "{\"ok\":false,\"error\":\"channel_not_found\"}", OUTCOME_REFUSED},
    {SLACK, 200, NULL, NULL, "{\"ok\":false,\"error\":\"ratelimited\"}", OUTCOME_RETRY},
    {SLACK, 200, NULL, NULL, "{\"ok\":false,\"error\":\"invalid_auth\"}", OUTCOME_RETRY},
    {SLACK, 200, NULL, NULL, "{\"ok\":false,\"error\":\"internal_error\"}", OUTCOME_UNKNOWN},
    {SLACK, 200, NULL, NULL, "{\"ok\":\"false\"}", OUTCOME_REFUSED},
    {SLACK, 200, NULL, NULL, "<html>", OUTCOME_UNKNOWN},
    {SLACK, 200, NULL, NULL, "{\"ok\":tr", OUTCOME_UNKNOWN},
    {SLACK, 200, NULL, NULL, "", OUTCOME_UNKNOWN},
    {SLACK, 429, NULL, NULL, "", OUTCOME_RETRY},
    {SLACK, 500, NULL, NULL, "{\"ok\":true}", OUTCOME_UNKNOWN},
#undef SLACK
#define SEND "provider: hubspot", "POST", "/marketing/v4/email/single-send"
    {SEND, 200, NULL, NULL, "{\"sendResult\":\"SENT\"}", OUTCOME_DONE},
    {SEND, 200, NULL, NULL, "{\"sendResult\":\"IDEMPOTENT_IGNORE\"}", OUTCOME_DONE},
    {SEND, 200, NULL, NULL, "{\"sendResult\":\"IDEMPOTENT_FAIL\"}", OUTCOME_UNKNOWN},
    {SEND, 200, NULL, NULL, "{\"sendResult\":\"THROTTLED\"}", OUTCOME_RETRY},
    {SEND, 200, NULL, NULL, "{\"sendResult\":\"INVALID_TO_ADDRESS\"}", OUTCOME_REFUSED},
    {SEND, 200, NULL, NULL, "{\"status\":\"PENDING\"}", OUTCOME_DONE},
#undef SEND
    {"provider: hubspot", "POST", "/crm/v3/objects/contacts", 409, NULL, NULL, "{}", OUTCOME_REFUSED},
    {"provider: hubspot", "POST", "/crm/v3/objects/contacts/batch/upsert", 207, NULL, NULL, "{}", OUTCOME_UNKNOWN},
    {"provider: hubspot", "POST", "/crm/v3/objects/contacts/batch/upsert", 409, NULL, NULL, "{}", OUTCOME_RETRY},
    {"provider: resend", "POST", "/emails", 409, NULL, NULL, "{\"name\":\"invalid_idempotent_request\"}", OUTCOME_UNKNOWN},
    {"provider: resend", "POST", "/emails", 409, NULL, NULL, "{\"name\":\"concurrent_idempotent_requests\"}", OUTCOME_RETRY},
    {"provider: salesforce, url: 'https://s.com'", "PATCH", "/services/data/v61.0/sobjects/Lead/E__c/1", 300, NULL, NULL, "[]",
     OUTCOME_REFUSED},
    {"provider: salesforce, url: 'https://s.com'", "PATCH", "/services/data/v61.0/composite/sobjects/Lead/E__c", 200, NULL, NULL,
     "[{\"success\":true},{\"success\":false}]", OUTCOME_UNKNOWN},
    {"provider: salesforce, url: 'https://s.com'", "PATCH", "/services/data/v61.0/composite/sobjects/Lead/E__c", 200, NULL, NULL,
     "[{\"success\":true}]", OUTCOME_DONE},
    {"provider: pipedrive, url: 'https://p.com'", "POST", "/v1/deals", 403, NULL, NULL,
     "{\"code\":\"feature_capping_deals_limit\"}", OUTCOME_REFUSED},
    {"provider: pipedrive, url: 'https://p.com'", "POST", "/v1/deals", 403, NULL, NULL, "{}", OUTCOME_RETRY},
    {"provider: slack_webhook", "POST", "/", 403, NULL, NULL, "action_prohibited", OUTCOME_REFUSED},
    {"provider: slack_webhook", "POST", "/", 410, NULL, NULL, "channel_is_archived", OUTCOME_REFUSED},
    /* mail and commands */
    {"provider: smtp, host: m.e", "SEND", "/", 250, NULL, NULL, "", OUTCOME_DONE},
    {"provider: smtp, host: m.e", "SEND", "/", 421, NULL, NULL, "", OUTCOME_RETRY},
    {"provider: smtp, host: m.e", "SEND", "/", 450, NULL, NULL, "", OUTCOME_RETRY},
    {"provider: smtp, host: m.e", "SEND", "/", 550, NULL, NULL, "", OUTCOME_REFUSED},
    {"provider: smtp, host: m.e", "SEND", "/", 354, NULL, NULL, "", OUTCOME_UNKNOWN},
    {"provider: smtp, host: m.e", "SEND", "/", 0, NULL, NULL, "", OUTCOME_UNKNOWN},
    {"provider: command, command: [/x]", "RUN", "/", 0, NULL, NULL, "", OUTCOME_DONE},
    {"provider: command, command: [/x]", "RUN", "/", 1, NULL, NULL, "", OUTCOME_UNKNOWN},
    {"provider: command, command: [/x]", "RUN", "/", 75, NULL, NULL, "", OUTCOME_RETRY},
    {"provider: command, command: [/x]", "RUN", "/", 126, NULL, NULL, "", OUTCOME_REFUSED},
    {"provider: command, command: [/x]", "RUN", "/", 127, NULL, NULL, "", OUTCOME_REFUSED},
    {"provider: command, command: [/x]", "RUN", "/", 137, NULL, NULL, "", OUTCOME_UNKNOWN},
    {"provider: command, command: [/x]", "RUN", "/", 200, NULL, NULL, "", OUTCOME_UNKNOWN},
    /* the policy's own rules */
    {"provider: http, url: 'https://e.com', calls: [{name: c, outcomes: [{status: 503, outcome: retry}]}]", "POST", "/", 503,
     NULL, NULL, "", OUTCOME_RETRY},
    {"provider: http, url: 'https://e.com', calls: [{name: c, outcomes: [{status: 500-502, outcome: refused}]}]", "POST", "/",
     502, NULL, NULL, "", OUTCOME_REFUSED},
    {"provider: http, url: 'https://e.com', calls: [{name: c, outcomes: [{status: 2xx, field: e, outcome: refused}]}]", "POST",
     "/", 200, NULL, NULL, "{\"e\":null}", OUTCOME_REFUSED},
    {"provider: http, url: 'https://e.com', calls: [{name: c, outcomes: [{status: 2xx, field: 'r[0].s', values: ['7'], outcome: "
     "retry}]}]",
     "POST", "/", 200, NULL, NULL, "{\"r\":[{\"s\":7}]}", OUTCOME_RETRY},
};

TEST(each_answer_says_what_its_row_says)
{
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct house house;
        struct pair header = {bytes_of(answers[i].header), bytes_of(answers[i].value)};
        struct effect_reply reply = {answers[i].status, &header, answers[i].header != NULL, bytes_of(answers[i].body)};
        struct bytes because = BYTES_NONE;
        house_open(&house, answers[i].settings);
        enum outcome got = destination_outcome(house_call(&house, answers[i].method, answers[i].path), &reply, &because);
        if (got != answers[i].outcome || because.len == 0)
            check_fail(__FILE__, __LINE__, "%s: %d %s is %s (%.*s), want %s", answers[i].settings, answers[i].status,
                       answers[i].body, outcome_names[got], BYTES_ARG(because), outcome_names[answers[i].outcome]);
        CHECK_INT(destination_outcome(house_call(&house, answers[i].method, answers[i].path), &reply, NULL), answers[i].outcome);
        house_close(&house);
    }
}

static const struct {
    const char *name, *value;
    int64_t wait_us;
} waits[] = {
    {"Retry-After", "5", 5 * WHEN_SECOND},
    {"retry-after", " 0 ", 0},
    {"Retry-After", "1.5", 1500 * WHEN_MS},
    {"Retry-After", "99999999", DESTINATION_RETRY_AFTER_MAX_US},
    {"Retry-After", "99999999999999999999999", -1},
    {"Retry-After", "-5", -1},
    {"Retry-After", "soon", -1},
    {"Retry-After", "", -1},
    {"Retry-After", "Sun, 06 Nov 1994 08:49:47 GMT", 10 * WHEN_SECOND},
    {"Retry-After", "Sun, 06 Nov 1994 08:49:00 GMT", 0},
    {"Retry-After", "Sun, 06 Nov 2094 08:49:00 GMT", DESTINATION_RETRY_AFTER_MAX_US},
    {"retry-after-ms", "250", 250 * WHEN_MS},
    {"Retry-After-Ms", "x", -1},
    {"X-Other", "5", -1},
};

TEST(how_long_to_wait_is_read_and_bounded)
{
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        struct pair header = {bytes_of(waits[i].name), bytes_of(waits[i].value)};
        struct effect_reply reply = {429, &header, 1, BYTES_NONE};
        if (destination_retry_after_us(&reply, 784111777 * WHEN_SECOND) != waits[i].wait_us)
            check_fail(__FILE__, __LINE__, "%s: %s", waits[i].name, waits[i].value);
    }
    CHECK_INT(destination_retry_after_us(&(struct effect_reply){0}, 0), -1);
    struct pair both[] = {{BYTES("Retry-After"), BYTES("9")}, {BYTES("retry-after-ms"), BYTES("100")}};
    CHECK_INT(destination_retry_after_us(&(struct effect_reply){429, both, 2, BYTES_NONE}, 0), 100 * WHEN_MS);
}
