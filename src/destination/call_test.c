#include "destination/fixture_test.h"

#include "base/when.h"

static const struct {
    const char *settings, *method, *path, *call;
    enum capability capability;
    int64_t window_us;
    bool reads;
} calls[] = {
    {"provider: stripe", "POST", "/v1/payment_intents", "create", CAPABILITY_IDEMPOTENT, 24 * WHEN_HOUR, false},
    {"provider: stripe", "POST", "/v1/payment_intents?expand=x", "create", CAPABILITY_IDEMPOTENT, 24 * WHEN_HOUR, false},
    {"provider: stripe", "POST", "/v1/payment_intents/pi_1/confirm", "v1", CAPABILITY_IDEMPOTENT, 24 * WHEN_HOUR, false},
    {"provider: stripe", "POST", "/v1/subscriptions", "subscribe", CAPABILITY_IDEMPOTENT, 24 * WHEN_HOUR, false},
    {"provider: stripe", "GET", "/v1/payment_intents", "reads", CAPABILITY_NONE, 0, true},
    {"provider: stripe", "DELETE", "/v1/customers/cus_1", "other", CAPABILITY_NONE, 0, false},
    {"provider: stripe", "POST", "/v2/core/accounts", "v2", CAPABILITY_NONE, 0, false}, /* its window is not verified */
    {"provider: resend", "POST", "/emails", "send", CAPABILITY_IDEMPOTENT, 24 * WHEN_HOUR, false},
    {"provider: resend", "POST", "/emails/batch", "send", CAPABILITY_IDEMPOTENT, 24 * WHEN_HOUR, false},
    {"provider: resend", "POST", "/domains", "other", CAPABILITY_NONE, 0, false},
    {"provider: postmark", "POST", "/email", "send", CAPABILITY_QUERY, 0, false},
    {"provider: postmark", "POST", "/email/batch", "other", CAPABILITY_NONE, 0, false},
    {"provider: sendgrid", "POST", "/v3/mail/send", "send", CAPABILITY_NONE, 0, false},
    {"provider: mailgun", "POST", "/v3/mg.example.com/messages", "send", CAPABILITY_NONE, 0, false},
    {"provider: brevo", "POST", "/v3/smtp/email", "send", CAPABILITY_IDEMPOTENT, 15 * WHEN_MINUTE, false},
    {"provider: hubspot", "POST", "/crm/v3/objects/contacts/batch/upsert", "upsert", CAPABILITY_IDEMPOTENT, 400 * WHEN_DAY,
     false},
    {"provider: hubspot", "PATCH", "/crm/v3/objects/contacts/1", "update", CAPABILITY_NONE, 0, false},
    {"provider: hubspot", "POST", "/crm/v3/objects/contacts", "create", CAPABILITY_NONE, 0, false},
    {"provider: hubspot", "POST", "/crm/v3/objects/contacts/search", "search", CAPABILITY_NONE, 0, true},
    {"provider: hubspot", "POST", "/marketing/v4/email/single-send", "single-send", CAPABILITY_IDEMPOTENT, 24 * WHEN_HOUR, false},
    {"provider: salesforce, url: 'https://a.my.salesforce.com'", "PATCH", "/services/data/v61.0/sobjects/Lead/Ext__c/7", "upsert",
     CAPABILITY_IDEMPOTENT, 400 * WHEN_DAY, false},
    {"provider: salesforce, url: 'https://a.my.salesforce.com'", "POST", "/services/data/v61.0/sobjects/Lead", "create",
     CAPABILITY_NONE, 0, false},
    {"provider: pipedrive, url: 'https://a.pipedrive.com'", "PUT", "/v1/deals/1", "update", CAPABILITY_NONE, 0, false},
    {"provider: pipedrive, url: 'https://a.pipedrive.com'", "POST", "/v1/deals", "write", CAPABILITY_NONE, 0, false},
    {"provider: slack", "POST", "/api/chat.postMessage", "post", CAPABILITY_QUERY, 0, false},
    {"provider: slack", "GET", "/api/chat.postMessage?channel=C1&text=hi", "post", CAPABILITY_QUERY, 0, false},
    {"provider: slack", "POST", "/api/chat.update", "update", CAPABILITY_IDEMPOTENT, 400 * WHEN_DAY, false},
    {"provider: slack", "POST", "/api/conversations.history", "look", CAPABILITY_NONE, 0, true},
    {"provider: slack", "GET", "/api/reactions.add?name=x", "other-methods", CAPABILITY_NONE, 0, false},
    {"provider: slack_webhook", "POST", "/", "post", CAPABILITY_NONE, 0, false},
    {"provider: twilio", "POST", "/2010-04-01/Accounts/AC1/Messages.json", "message", CAPABILITY_QUERY, 0, false},
    {"provider: whatsapp", "POST", "/v23.0/123/messages", "send", CAPABILITY_NONE, 0, false},
    {"provider: discord", "POST", "/api/v10/channels/1/messages", "message", CAPABILITY_IDEMPOTENT, 2 * WHEN_MINUTE, false},
    {"provider: openai", "POST", "/v1/responses", "responses", CAPABILITY_NONE, 0, false},
    {"provider: anthropic", "POST", "/v1/messages", "messages", CAPABILITY_NONE, 0, false},
    {"provider: anthropic", "POST", "/v1/messages/count_tokens", "count", CAPABILITY_NONE, 0, true},
    {"provider: gemini", "POST", "/v1beta/models/m-1:streamGenerateContent?alt=sse", "generate", CAPABILITY_NONE, 0, false},
    {"provider: gemini", "POST", "/v1beta/models/m-1:tuneIt", "other", CAPABILITY_NONE, 0, false},
    {"provider: openai-compatible, url: 'https://e.com/v1'", "POST", "/chat/completions", "chat", CAPABILITY_NONE, 0, false},
    {"provider: telnyx", "POST", "/v2/messages", "write", CAPABILITY_IDEMPOTENT, 24 * WHEN_HOUR, false},
    {"provider: nylas", "POST", "/v3/grants/g/messages/send", "send", CAPABILITY_IDEMPOTENT, WHEN_HOUR, false},
    {"provider: http, url: 'https://e.com'", "POST", "/a", "other", CAPABILITY_NONE, 0, false},
    {"provider: http, url: 'https://e.com'", "HEAD", "/a", "reads", CAPABILITY_NONE, 0, true},
    {"provider: http, url: 'https://e.com'", "get", "/a", "other", CAPABILITY_NONE, 0, false},
    {"provider: smtp, host: mx.e.com", "SEND", "/", "mail", CAPABILITY_NONE, 0, false},
    {"provider: command, command: [/bin/true]", "RUN", "/", "run", CAPABILITY_NONE, 0, false},
    /* What the policy says comes first, and counts. */
    {"provider: http, url: 'https://e.com', capability: idempotent, key_header: K, window: 2h", "POST", "/a", "other",
     CAPABILITY_IDEMPOTENT, 2 * WHEN_HOUR, false},
    {"provider: http, url: 'https://e.com', key_header: K, window: 2h", "POST", "/a", "other", CAPABILITY_IDEMPOTENT,
     2 * WHEN_HOUR, false},
    {"provider: stripe, window: 12h", "POST", "/v1/charges", "create", CAPABILITY_IDEMPOTENT, 12 * WHEN_HOUR, false},
    {"provider: stripe, window: 12h", "POST", "/v2/x", "v2", CAPABILITY_IDEMPOTENT, 12 * WHEN_HOUR, false},
    {"provider: stripe, capability: none", "POST", "/v1/charges", "create", CAPABILITY_NONE, 0, false},
    {"provider: slack, capability: none", "POST", "/api/chat.postMessage", "post", CAPABILITY_NONE, 0, false},
    {"provider: stripe, calls: [{name: mine, methods: [POST], paths: [/v1/charges]}]", "POST", "/v1/charges", "mine",
     CAPABILITY_NONE, 0, false},
    {"provider: http, url: 'https://e.com', calls: [{name: q, paths: [/q], reads: true}]", "POST", "/q", "q", CAPABILITY_NONE, 0,
     true},
    {"provider: http, url: 'https://e.com', calls: [{name: u, key: {in: natural}, window: always}]", "PUT", "/q", "u",
     CAPABILITY_IDEMPOTENT, 400 * WHEN_DAY, false},
};

TEST(each_call_of_each_provider_has_the_rules_that_are_verified)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct house house;
        house_open(&house, calls[i].settings);
        const struct call_rules *rules = house_call(&house, calls[i].method, calls[i].path);
        if (!bytes_is(rules->name, calls[i].call) || rules->capability != calls[i].capability ||
            rules->window_us != calls[i].window_us || rules->reads != calls[i].reads)
            check_fail(__FILE__, __LINE__, "%s: %s %s is %.*s, %s, %lld, reads %d", calls[i].settings, calls[i].method,
                       calls[i].path, BYTES_ARG(rules->name), capability_names[rules->capability], (long long)rules->window_us,
                       rules->reads);
        house_close(&house);
    }
}

static const struct {
    const char *pattern, *path;
    bool fits;
} paths[] = {
    {"/a", "/a", true},
    {"/a", "/a/", false},
    {"/a", "/ab", false},
    {"/a/*", "/a/b", true},
    {"/a/*", "/a/b/c", false},
    {"/a/*", "/a", false},
    {"/a/*/c", "/a/b/c", true},
    {"/a/*/c", "/a/b/d/c", false},
    {"/a/**", "/a/b/c", true},
    {"/a/**", "/a/", true},
    {"/a/**", "/b/a/c", false},
    {"/*/b/**", "/a/b/x/y", true},
    {"/*.list", "/users.list", true},
    {"/*.list", "/a/users.list", false},
    {"/*.list", "/users.lists", false},
    {"/*a*b", "/xaxxb", true},
    {"/*a*b", "/xaxxbc", false},
    {"/**", "/anything/at/all", true},
    /* What two programs may read differently fits no pattern. */
    {"/**", "/a//b", false},
    {"/**", "/a/../b", false},
    {"/**", "/a/%2e%2e/b", false},
    {"/**", "/a%2Fb", false},
    {"/a/*", "/a/;x", false},
    {"/**", "/a\\b", false},
    {"/**", "/a b", false},
    {"/**", "/%2g", true},
};

TEST(a_pattern_fits_the_paths_it_should_and_no_doubtful_one)
{
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct house house;
        char settings[300];
        snprintf(settings, sizeof settings,
                 "provider: http, url: 'https://e.com', calls: [{name: p, paths: ['%s'], reads: true}]", paths[i].pattern);
        house_open(&house, settings);
        if (house_call(&house, "POST", paths[i].path)->reads != paths[i].fits)
            check_fail(__FILE__, __LINE__, "%s on %s", paths[i].pattern, paths[i].path);
        house_close(&house);
    }
}

TEST(a_refusal_is_remembered_for_money_and_released_for_mail_unless_the_policy_says_otherwise)
{
    static const struct {
        const char *settings, *path;
        bool replays;
    } rows[] = {
        {"provider: stripe", "/v1/charges", true},
        {"provider: stripe", "/v1/x", true},
        {"provider: stripe, on_4xx: release", "/v1/charges", false},
        {"provider: resend", "/emails", false},
        {"provider: resend, on_4xx: replay", "/emails", true},
        {"provider: hubspot", "/crm/v3/objects/contacts", false},
        {"provider: http, url: 'https://e.com'", "/", false},
        {"provider: http, url: 'https://e.com', calls: [{name: pay, paths: [/pay], on_4xx: replay}]", "/pay", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct house house;
        house_open(&house, rows[i].settings);
        CHECK_INT(house_call(&house, "POST", rows[i].path)->replays_refusals, rows[i].replays);
        house_close(&house);
    }
}
