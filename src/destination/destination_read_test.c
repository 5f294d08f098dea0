#include "destination/fixture_test.h"

#include "base/buf.h"
#include "base/when.h"
#include "destination/destination_read.h"

TEST(every_setting_of_a_destination_is_read)
{
    struct house house;
    house_open(&house,
               "provider: hubspot, title: 'Our CRM', url: 'http://127.0.0.1:9000/', secret: file:/run/crm.key, timeout: 5s, "
               "concurrency: 4, rate: 10/s, burst: 3, attempts: 7, backoff: 1s, backoff_max: 2m, deadline: 2h, "
               "on_unknown: skip, response_max: 64KiB, allow_private: true, tls_verify: false, ordered: true, "
               "key: '{id}:{day}', time: at, repeat_window: 60s, keep: 2d, owner: dana");
    const struct destination *d = house.destination;
    CHECK_TEXT(d->name, "x");
    CHECK_TEXT(d->title, "Our CRM");
    CHECK_TEXT(d->provider, "hubspot");
    CHECK_INT(d->kind, DESTINATION_HTTP);
    CHECK_TEXT(d->url, "http://127.0.0.1:9000");
    CHECK_INT(d->auth.kind, AUTH_BEARER);
    CHECK_INT(d->secret.kind, SECRET_FILE);
    CHECK_TEXT(d->secret.name, "/run/crm.key");
    CHECK_INT(d->timeout_us, 5 * WHEN_SECOND);
    CHECK_INT(d->concurrency, 4);
    CHECK_INT(d->rate.calls, 10);
    CHECK_INT(d->rate.per_us, WHEN_SECOND);
    CHECK_INT(d->rate.burst, 3);
    CHECK_INT(d->attempts_max, 7);
    CHECK_INT(d->backoff_first_us, WHEN_SECOND);
    CHECK_INT(d->backoff_max_us, 2 * WHEN_MINUTE);
    CHECK_INT(d->deadline_us, 2 * WHEN_HOUR);
    CHECK_INT(d->on_unknown, ON_UNKNOWN_SKIP);
    CHECK_INT(d->response_max, 64 * 1024);
    CHECK(d->allow_private && !d->tls_verify && d->ordered);
    CHECK_TEXT(d->key_text, "{id}:{day}");
    CHECK(d->key != NULL);
    CHECK_INT(d->repeat_window_us, 60 * WHEN_SECOND);
    CHECK_INT(d->keep_us, 2 * WHEN_DAY);
    CHECK_TEXT(d->owner, "dana");
    house_close(&house);
}

TEST(a_destination_has_careful_defaults)
{
    struct house house;
    house_open(&house, "provider: stripe");
    const struct destination *d = house.destination;
    CHECK_TEXT(d->title, "Stripe");
    CHECK_TEXT(d->url, "https://api.stripe.com");
    CHECK_INT(d->secret.kind, SECRET_NONE);
    CHECK_INT(d->timeout_us, 60 * WHEN_SECOND); /* the provider file says so */
    CHECK_INT(d->concurrency, 8);
    CHECK_INT(d->attempts_max, 12);
    CHECK_INT(d->deadline_us, WHEN_DAY);
    CHECK_INT(d->on_unknown, ON_UNKNOWN_HOLD);
    CHECK_INT(d->response_max, 1 << 20);
    CHECK(!d->allow_private && d->tls_verify && !d->ordered);
    CHECK_INT(d->repeat_window_us, 0);
    CHECK(d->key == NULL && d->key_text.at == NULL && d->owner.at == NULL);
    house_close(&house);
    house_open(&house, "provider: hubspot");
    CHECK_INT(house.destination->rate.calls, 100);
    CHECK_INT(house.destination->rate.per_us, 10 * WHEN_SECOND);
    house_close(&house);
    house_open(&house, "provider: smtp, host: 127.0.0.1, from: a@b.c");
    CHECK_INT(house.destination->kind, DESTINATION_SMTP);
    CHECK_INT(house.destination->smtp_port, 587);
    CHECK_INT(house.destination->smtp_tls, SMTP_TLS_STARTTLS);
    house_close(&house);
    house_open(&house, "provider: smtp, host: 127.0.0.1, from: a@b.c, concurrency: 1000");
    CHECK_INT(house.destination->concurrency, DESTINATION_MAILS_MAX);
    house_close(&house);
    house_open(&house, "provider: command, command: [/usr/local/bin/backup, --now, --now, '']");
    CHECK_INT(house.destination->argv_count, 4);
    CHECK_TEXT(house.destination->argv[1], "--now");
    house_close(&house);
}

TEST(destinations_are_found_by_name_and_begin_with_the_provider_of_their_name)
{
    struct policy *policy;
    struct yaml_problems problems;
    hash_setup();
    CHECK_INT(
        policy_parse(
            BYTES("owner: dana\ndue: 4h\ndestinations:\n  stripe: {secret: env:STRIPE_KEY}\n  resend:\n  a: {provider: http, "
                  "url: 'https://e.com'}\n"),
            &policy, &problems),
        OK);
    CHECK_INT(policy->destination_count, 3);
    CHECK_TEXT(policy_destination(policy, BYTES("stripe"))->provider, "stripe");
    CHECK_TEXT(policy_destination(policy, BYTES("stripe"))->secret.name, "STRIPE_KEY");
    CHECK_TEXT(policy_destination(policy, BYTES("resend"))->title, "Resend");
    CHECK_TEXT(policy_destination(policy, BYTES("a"))->name, "a");
    CHECK(policy_destination(policy, BYTES("b")) == NULL);
    CHECK(policy_destination(policy, BYTES("")) == NULL);
    CHECK_TEXT(policy->owner, "dana");
    CHECK_INT(policy->due_us, 4 * WHEN_HOUR);
    policy_free(policy);
    CHECK_INT(policy_parse(BYTES(""), &policy, &problems), OK);
    CHECK(policy_destination(policy, BYTES("stripe")) == NULL);
    CHECK(policy->owner.at == NULL);
    CHECK_INT(policy->due_us, 8 * WHEN_HOUR);
    policy_free(policy);
}

#define D "destinations:\n  x: "
#define E "destinations:\n  x: {provider: http, url: 'https://e.com', "

static const struct {
    const char *text;
    size_t line, column; /* column 0: anywhere */
    const char *fragment;
} bad_documents[] = {
    {"destinations: [x]\n", 1, 15, "destinations wants settings"},
    {D "http\n", 2, 6, "destination 'x' wants settings such as provider: http, not text"},
    {"destinations:\n  'a b': {provider: stripe}\n", 2, 3, "the name of a destination is 1 to 64"},
    {"destinations:\n  stripe:\n  resend:\n  stripe:\n", 4, 3, "destination 'stripe' is given twice, first on line 2"},
    {D "\n", 2, 3, "there is no provider 'x'; write provider: http, or one of anthropic"},
    {"destinations:\n  strype: {}\n", 2, 3, "there is no provider 'strype'; did you mean 'stripe'?"},
    {D "{provider: hubspott}\n", 2, 17, "did you mean 'hubspot'?"},
    {D "{provider: [http]}\n", 2, 17, "provider wants text such as hubspot"},
    {D "{provider: stripe, secrets: env:A}\n", 2, 25, "unknown setting 'secrets'; did you mean 'secret'?"},
    {D "{provider: stripe, host: a}\n", 2, 25, "'host' belongs to a destination of kind smtp"},
    {D "{provider: smtp, host: a, url: 'https://e.com'}\n", 2, 32, "'url' belongs to a destination of kind http"},
    {D "{provider: command, command: [/x], secret: env:A}\n", 2, 41, "'secret' belongs to a destination that is no command"},
    {D "{provider: http}\n", 2, 3, "needs its base URL"},
    {D "{provider: pipedrive}\n", 2, 3, "needs its base URL"},
    {D "{provider: salesforce}\n", 2, 3, "needs its base URL"},
    {D "{provider: http, url: 'http://e.com'}\n", 2, 28, "http:// sends everything in the clear"},
    {D "{provider: http, url: e.com}\n", 2, 28, "url wants a base URL"},
    {D "{provider: http, url: 'https://u:secretpass@e.com'}\n", 2, 28, "url wants a base URL"},
    {D "{provider: smtp}\n", 2, 3, "add host"},
    {D "{provider: smtp, host: 'smtp://a'}\n", 2, 0, "host wants a name or an address"},
    {D "{provider: command, command: [/x], capability: idempotent}\n", 2, 0, "under calls: with key: {in: natural}"},
    {D "{provider: command}\n", 2, 3, "with its whole path"},
    {D "{provider: command, command: [backup]}\n", 2, 35, "with its whole path"},
    {D "{provider: command, command: backup}\n", 2, 35, "command wants a list"},
    {E "rate: 10}\n", 2, 0, "rate is calls per time"},
    {E "rate: 10/fortnight}\n", 2, 0, "rate is calls per time"},
    {E "burst: 3}\n", 2, 0, "burst goes with a rate"},
    {E "timeout: 30}\n", 2, 0, "timeout wants a duration such as 30s, with a unit"},
    {E "response_max: 1GiB}\n", 2, 0, "a size is 1KiB to 64MiB"},
    {E "backoff: 1h, backoff_max: 1m}\n", 2, 0, "backoff_max is shorter than backoff"},
    {E "capability: idempotent}\n", 2, 0, "the call 'other' takes no key that is known; say where it stands: key_header"},
    {E "capability: idempotent, key_header: K}\n", 2, 0,
     "the call 'other' remembers the key for a time that is not known; add window"},
    {E "key_header: K}\n", 2, 0, "how long does the destination remember the key? add window: 24h"},
    {E "window: 24h}\n", 2, 0, "window is for destinations that remember our key"},
    {E "capability: query}\n", 2, 0, "the call 'other' cannot be asked in a way that is known"},
    {E "capability: stripe}\n", 2, 0, "capability is none, idempotent or query"},
    {E "key_header: A, key_json: b, window: 1h}\n", 2, 0, "one place for the key is enough"},
    {E "key_codec: uuid}\n", 2, 0, "say where it stands: key_header: NAME"},
    {E "key_header: 'a b', window: 1h}\n", 2, 0, "the name of a header is"},
    {E "key_header: A, window: 1h, key_size: 20}\n", 2, 0, "add key_codec: base32"},
    {E "key: '{a}{b}'}\n", 2, 0, "it follows another placeholder directly"},
    {E "auth: header}\n", 2, 0, "add auth_header"},
    {E "auth: none, secret: env:A}\n", 2, 0, "how is the secret carried?"},
    {E "auth: webhook}\n", 2, 0, "what is it signed with?"},
    {E "calls: [{name: c, key: {in: header, name: K}, window: {is: 24h}}]}\n", 2, 0,
     "window wants a duration or always such as 24h"},
    {E "calls: [{name: c, evidence: D}]}\n", 2, 0, "unknown setting 'evidence'"},
    {E "calls: [{methods: [POST]}]}\n", 2, 0, "a call wants a name"},
    {D "{provider: hubspot, capability: idempotent}\n", 2, 0, "the call 'create' takes no key"},
    {"due: 8\n", 1, 6, "due wants a duration such as 8h"},
    {"due: 1s\n", 1, 6, "due is 1m to 90d"},
    {"owner: ''\n", 1, 8, "owner wants text"},
};

TEST(a_bad_destination_is_refused_with_its_place_and_the_fix)
{
    hash_setup();
    for (size_t i = 0; i < sizeof bad_documents / sizeof *bad_documents; i++) {
        struct policy *policy = NULL;
        struct yaml_problems problems;
        CHECK_INT(policy_parse(bytes_of(bad_documents[i].text), &policy, &problems), INVALID);
        CHECK(policy == NULL && problems.count >= 1);
        bool found = false;
        for (size_t p = 0; p < problems.count; p++)
            found |= strstr(problems.at[p].text, bad_documents[i].fragment) != NULL &&
                     problems.at[p].line == bad_documents[i].line &&
                     (bad_documents[i].column == 0 || problems.at[p].column == bad_documents[i].column);
        if (!found || strstr(problems.at[0].text, "secretpass") != NULL)
            check_fail(__FILE__, __LINE__, "%s%zu problems, %zu:%zu: %s; want %zu:%zu %s", bad_documents[i].text, problems.count,
                       problems.at[0].line, problems.at[0].column, problems.at[0].text, bad_documents[i].line,
                       bad_documents[i].column, bad_documents[i].fragment);
    }
}

TEST(a_literal_secret_is_refused_with_advice_and_not_repeated)
{
    static const char *const literals[] = {"sk_live_51Habc",   "Bearer sk_live_51Habc", "env sk_live_51Habc",
                                           "'sk_live_51Habc'", "file:sk_live_51Habc",   "secret:sk live_51Habc"};
    hash_setup();
    for (size_t i = 0; i < sizeof literals / sizeof *literals; i++) {
        struct policy *policy;
        struct yaml_problems problems;
        char text[200];
        snprintf(text, sizeof text, "destinations:\n  stripe:\n    secret: %s\n", literals[i]);
        CHECK_INT(policy_parse(bytes_of(text), &policy, &problems), INVALID);
        CHECK_INT(problems.count, 1);
        CHECK_INT(problems.at[0].line, 3);
        CHECK_INT(problems.at[0].column, 13);
        CHECK(strstr(problems.at[0].text, "51Habc") == NULL);
        CHECK(strstr(problems.at[0].text,
                     i < 4 ? "a policy never holds a secret itself; write where it is: env:NAME" : "such as") != NULL);
    }
}

TEST(every_row_of_the_destination_table_is_complete)
{
    static const struct {
        const char *name, *with;
    } needs[] = {
        {"burst", "rate: 10/s, "},
        {"capability", "key_header: K, window: 1h, "},
        {"key_header", "window: 1h, "},
        {"key_json", "window: 1h, "},
        {"key_form", "window: 1h, "},
        {"key_query", "window: 1h, "},
        {"key_codec", "key_header: K, window: 1h, "},
        {"key_size", "key_header: K, window: 1h, "},
        {"key_chars", "key_header: K, window: 1h, "},
        {"window", "key_header: K, "},
        {"auth_prefix", "auth_header: X, "},
    };
    static const char *const bases[] = {"provider: http, ", "provider: smtp, ", "provider: command, "};
    for (size_t i = 0; i < destination_setting_count; i++) {
        const struct setting *setting = &destination_settings[i];
        CHECK(setting->name != NULL && setting->help != NULL && setting->example != NULL && setting->places != 0);
        CHECK(setting->help[strlen(setting->help) - 1] == '.');
        if (strcmp(setting->name, "provider") == 0)
            continue;
        int kind = (setting->places & 1) != 0 ? 0 : (setting->places & 2) != 0 ? 1 : 2;
        char text[600];
        const char *with = "";
        for (size_t n = 0; n < sizeof needs / sizeof *needs; n++)
            with = strcmp(needs[n].name, setting->name) == 0 ? needs[n].with : with;
        const char *address = kind == 0 && strcmp(setting->name, "url") != 0    ? "url: 'https://e.com', "
                              : kind == 1 && strcmp(setting->name, "host") != 0 ? "host: mx.e.com, "
                                                                                : "";
        snprintf(text, sizeof text, "%s%s%s%s: %s", bases[kind], address, with, setting->name, setting->example);
        struct house house;
        house_open(&house, text);
        house_close(&house);
    }
}

TEST(many_destinations_are_read_and_more_are_refused)
{
    struct policy *policy;
    struct yaml_problems problems;
    struct buf text;
    hash_setup();
    buf_init(&text, YAML_SIZE_MAX);
    buf_add_cstr(&text, "destinations:\n");
    for (int i = 0; i < POLICY_DESTINATIONS_MAX; i++)
        buf_printf(&text, " d%d: {provider: slack}\n", i);
    CHECK_INT(policy_parse(buf_bytes(&text), &policy, &problems), OK);
    CHECK_INT(policy->destination_count, POLICY_DESTINATIONS_MAX);
    for (int i = 0; i < POLICY_DESTINATIONS_MAX; i++) {
        char name[32];
        snprintf(name, sizeof name, "d%d", i);
        CHECK_TEXT(policy_destination(policy, bytes_of(name))->name, name);
    }
    policy_free(policy);
    buf_add_cstr(&text, " more: {provider: slack}\n");
    CHECK_INT(policy_parse(buf_bytes(&text), &policy, &problems), INVALID);
    CHECK(strstr(problems.at[0].text, "at most 1000 are read") != NULL);
    buf_release(&text);
}
