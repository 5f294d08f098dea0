#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/json.h"
#include "receive/fixture_test.h"

#define BODY "{\"type\":\"lead.created\",\"data\":{\"email\":\"a@b.c\"}}"
#define WHSEC "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=" /* 0123456789abcdef0123456789abcdef */

/* What vendors' own libraries signed. */
static const struct vector {
    const char *preset, *settings, *secret, *url, *type, *body;
    const char *headers[3][2];
} vectors[] = {
    {"standard-webhooks",
     "secret: env:S\n",
     WHSEC,
     "https://x.test/in/x",
     "application/json",
     BODY,
     {{"webhook-id", "msg_1"},
      {"webhook-timestamp", "1700000000"},
      {"webhook-signature", "v1,yrJUOKU2DDU6ZGzAZVMjIfcC2Z57XkLAT7aOkjhuGkQ="}}},
    {"svix",
     "secret: env:S\n",
     WHSEC,
     "https://x.test/in/x",
     "application/json",
     BODY,
     {{"svix-id", "msg_1"},
      {"svix-timestamp", "1700000000"},
      {"svix-signature", "v1,yrJUOKU2DDU6ZGzAZVMjIfcC2Z57XkLAT7aOkjhuGkQ="}}},
    {"stripe",
     "secret: env:S\n",
     "whsec_test",
     "https://x.test/in/x",
     "application/json",
     BODY,
     {{"Stripe-Signature", "t=1700000000,v1=d9ba3d5edae94cdc529e90e6412af0e5ddb1f9570e318ee8c3f280b233d9674b"}}},
    {"github",
     "secret: env:S\n",
     "s3cret",
     "https://x.test/in/x",
     "application/json",
     BODY,
     {{"X-Hub-Signature-256", "sha256=a18c826c3163383a27223d07a79388d39a7fdc7d9ee1394011a0055e000a98c9"},
      {"X-GitHub-Delivery", "d1"},
      {"X-GitHub-Event", "push"}}},
    {"slack",
     "secret: env:S\n",
     "slacksecret",
     "https://x.test/in/x",
     "application/json",
     BODY,
     {{"X-Slack-Signature", "v0=c923efffac83b5f0be1b982007c7b148fd065ff10899a86f97b294cf62a89c97"},
      {"X-Slack-Request-Timestamp", "1700000000"}}},
    {"twilio",
     "secret: env:S\n",
     "token",
     "https://x.test/sms",
     "application/x-www-form-urlencoded",
     "From=%2B15550001&Body=hi&MessageSid=SM1",
     {{"X-Twilio-Signature", "rN8cvRo1wCgKQSZb4JIG7b0LNbI="}}},
    {"hubspot",
     "secret: env:S\n",
     "hs_secret",
     "https://x.test/in/hubspot",
     "application/json",
     "{\"a\":1}",
     {{"X-HubSpot-Signature-v3", "DF4J8UxBkX2cbico7p8nDYVuvXp6eDapJ3ZrOdVojVI="},
      {"X-HubSpot-Request-Timestamp", "1700000000000"}}},
    {"typeform",
     "secret: env:S\n",
     "tf_secret",
     "https://x.test/in/x",
     "application/json",
     BODY,
     {{"Typeform-Signature", "sha256=1Gnyu2Wf0UtSrFsHqufKvTb10lk3vnjPTOjZ3vXnbow="}}},
    {"whatsapp",
     "secret: env:S\n",
     "app_secret",
     "https://x.test/in/x",
     "application/json",
     BODY,
     {{"X-Hub-Signature-256", "sha256=f76b12d65cd2ab34a46fa30db9242e622f39e7d872c17c8b99ae11f0a7f2de75"}}},
    {"calendly",
     "secret: env:S\n",
     "cal_key",
     "https://x.test/in/x",
     "application/json",
     BODY,
     {{"Calendly-Webhook-Signature", "t=1700000000,v1=edc676a6d6632f7fa7a58368241cd013bee95138ecf7c5296a61c0c9f85ac4e1"}}},
};

static void open_vector(struct desk *desk, const struct vector *vector)
{
    desk_open(desk, vector->preset, vector->settings);
    desk->secrets[0] = bytes_of(vector->secret);
    desk->request.url = bytes_of(vector->url);
    desk->request.body = bytes_of(vector->body);
    desk_header(desk, "Content-Type", vector->type);
    for (size_t i = 0; i < 3 && vector->headers[i][0] != NULL; i++)
        desk_header(desk, vector->headers[i][0], vector->headers[i][1]);
}

TEST(signatures_of_the_vendors_own_libraries_hold)
{
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        struct desk desk;
        open_vector(&desk, &vectors[i]);
        if (desk_read(&desk) != RECEIVE_EVENTS)
            check_fail(__FILE__, __LINE__, "%s: %.*s", vectors[i].preset, BYTES_ARG(desk.result.because));
        CHECK(desk.result.rule.len > 0);
        desk_close(&desk);
    }
}

static bool is_refused(struct desk *desk)
{
    return desk_read(desk) == RECEIVE_REFUSED && desk->result.status == 401 && desk->result.count == 0 &&
           desk->result.because.len > 0;
}

/* Every bit of `at`, one at a time; restores it. */
static void flip_each(struct desk *desk, struct bytes *place, const char *preset)
{
    char *copy = malloc(place->len + 1);
    struct bytes saved = *place;
    CHECK(copy != NULL);
    for (size_t bit = 0; bit < 8 * saved.len; bit++) {
        memcpy(copy, saved.at, saved.len);
        copy[bit / 8] = (char)(copy[bit / 8] ^ (1 << bit % 8));
        *place = (struct bytes){copy, saved.len};
        bool escape = (bit >= 8 && saved.at[bit / 8 - 1] == '%') || (bit >= 16 && saved.at[bit / 8 - 2] == '%');
        if (escape && bit % 8 == 5) /* %2b is %2B */
            continue;
        if (desk_read(desk) == RECEIVE_EVENTS)
            check_fail(__FILE__, __LINE__, "%s: bit %zu of \"%.*s\" may be flipped", preset, bit, BYTES_ARG(saved));
    }
    *place = saved;
    free(copy);
}

/* The case of hex digits says nothing, and a base64 text has one way to be written. */
static void flip_header(struct desk *desk, struct bytes *place, const char *preset)
{
    char *copy = malloc(place->len + 1);
    struct bytes saved = *place;
    CHECK(copy != NULL);
    for (size_t i = 0; i < saved.len; i++) {
        memcpy(copy, saved.at, saved.len);
        copy[i] = (char)(copy[i] ^ 1);
        *place = (struct bytes){copy, saved.len};
        if (desk_read(desk) == RECEIVE_EVENTS)
            check_fail(__FILE__, __LINE__, "%s: byte %zu of \"%.*s\" may be changed", preset, i, BYTES_ARG(saved));
    }
    for (size_t len = 0; len < saved.len; len++) {
        *place = (struct bytes){saved.at, len};
        if (desk_read(desk) == RECEIVE_EVENTS)
            check_fail(__FILE__, __LINE__, "%s: \"%.*s\" may be cut to %zu", preset, BYTES_ARG(saved), len);
    }
    *place = saved;
    free(copy);
}

TEST(one_changed_bit_anywhere_is_refused)
{
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        struct desk desk;
        open_vector(&desk, &vectors[i]);
        flip_each(&desk, &desk.request.body, vectors[i].preset);
        for (size_t h = 1; h < desk.request.header_count; h++)
            if (!bytes_is(desk.headers[h].name, "X-GitHub-Delivery") && !bytes_is(desk.headers[h].name, "X-GitHub-Event"))
                flip_header(&desk, &desk.headers[h].value, vectors[i].preset);
        flip_each(&desk, &desk.secrets[0], vectors[i].preset);
        CHECK_INT(desk_read(&desk), RECEIVE_EVENTS);
        desk_close(&desk);
    }
}

TEST(without_secret_or_signature_nothing_is_taken)
{
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        struct desk desk;
        open_vector(&desk, &vectors[i]);
        desk.secrets[0] = BYTES("");
        CHECK(is_refused(&desk));
        desk.secrets[0] = BYTES_NONE;
        CHECK(is_refused(&desk));
        CHECK(desk_because(&desk, "no secret can be used"));
        desk.secrets[0] = bytes_of(vectors[i].secret);
        size_t count = desk.request.header_count;
        desk.request.header_count = 1;
        CHECK(is_refused(&desk));
        CHECK(desk_because(&desk, "is missing"));
        desk.request.header_count = count;
        for (size_t h = 1; h < count; h++) {
            struct bytes saved = desk.headers[h].value;
            desk.headers[h].value = BYTES("");
            if (memmem(desk.headers[h].name.at, desk.headers[h].name.len, "ignature", 8) != NULL)
                CHECK(is_refused(&desk));
            desk.headers[h].value = saved;
        }
        CHECK_INT(desk_read(&desk), RECEIVE_EVENTS);
        desk_close(&desk);
    }
}

TEST(a_timestamp_may_be_five_minutes_away_both_ways)
{
    static const char *const timed[] = {"standard-webhooks", "stripe", "slack", "hubspot"};
    for (size_t t = 0; t < sizeof timed / sizeof *timed; t++)
        for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
            struct desk desk;
            if (strcmp(vectors[i].preset, timed[t]) != 0)
                continue;
            open_vector(&desk, &vectors[i]);
            desk.request.now_us = FIXTURE_NOW_US + 300 * WHEN_SECOND;
            CHECK_INT(desk_read(&desk), RECEIVE_EVENTS);
            desk.request.now_us = FIXTURE_NOW_US - 300 * WHEN_SECOND;
            CHECK_INT(desk_read(&desk), RECEIVE_EVENTS);
            desk.request.now_us = FIXTURE_NOW_US + 412 * WHEN_SECOND;
            CHECK(is_refused(&desk));
            CHECK(desk_because(&desk, "timestamp is 412 s old, 300 s are allowed"));
            desk.request.now_us = FIXTURE_NOW_US - 301 * WHEN_SECOND;
            CHECK(is_refused(&desk));
            CHECK(desk_because(&desk, "301 s in the future"));
            desk_close(&desk);
        }
}

TEST(a_secret_that_is_only_its_prefix_is_none)
{
    static const char *const empty[] = {"whsec_", "whsec_=", "whsec_*", "whsec"};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        struct desk desk;
        open_vector(&desk, &vectors[0]);
        desk.secrets[0] = bytes_of(empty[i]);
        CHECK(is_refused(&desk));
        CHECK(desk_because(&desk, "no secret can be used"));
        desk_close(&desk);
    }
}

TEST(during_a_rotation_either_secret_is_good)
{
    struct desk desk;
    open_vector(&desk, &vectors[2]);
    struct source saved = desk.source;
    desk.source.signing_count = 2;
    desk.secrets[1] = desk.secrets[0];
    desk.secrets[0] = BYTES("whsec_new");
    CHECK_INT(desk_read(&desk), RECEIVE_EVENTS);
    desk.source.signing_count = 1;
    CHECK(is_refused(&desk));
    desk.source = saved;
    desk_close(&desk);
}

/* A list in which one signature has another length or version must not pass by comparing a beginning. */
TEST(in_a_list_of_signatures_one_must_be_whole)
{
    static const struct {
        const char *header;
        bool good;
    } rows[] = {
        {"v1,yrJUOKU2DDU6ZGzAZVMjIfcC2Z57XkLAT7aOkjhuGkQ=", true},
        {"v1,AAAA v1,yrJUOKU2DDU6ZGzAZVMjIfcC2Z57XkLAT7aOkjhuGkQ=", true},
        {"v1a,AAAA v1,yrJUOKU2DDU6ZGzAZVMjIfcC2Z57XkLAT7aOkjhuGkQ=", true},
        {"v1,yrJUOKU2DDU6ZGzAZVMjIfcC2Z57XkLAT7aOkjhuGkQ= v1,", true},
        {"v1,yrJU", false},
        {"v1, v1,yrJU", false},
        {"v1,", false},
        {"v1, ", false},
        {"v1", false},
        {",", false},
        {"v2,yrJUOKU2DDU6ZGzAZVMjIfcC2Z57XkLAT7aOkjhuGkQ=", false},
        {"v1a,yrJUOKU2DDU6ZGzAZVMjIfcC2Z57XkLAT7aOkjhuGkQ=", false},
        {"yrJUOKU2DDU6ZGzAZVMjIfcC2Z57XkLAT7aOkjhuGkQ=", false},
        {"v1,yrJUOKU2DDU6ZGzAZVMjIfcC2Z57XkLAT7aOkjhuGkQ", false},
        {"v1,yrJUOKU2DDU6ZGzAZVMjIfcC2Z57XkLAT7aOkjhuGkQ=AAAA", false},
        {"v1,yrJUOKU2DDU6ZGzAZVMjIfcC2Z57XkLAT7aOkjhuGkR=", false},
        {"v1,yrJUOKU2DDU6ZGzAZVMjIfcC2Z57XkLAT7aOkjhuGkQ=,x", false},
        {"v1 yrJUOKU2DDU6ZGzAZVMjIfcC2Z57XkLAT7aOkjhuGkQ=", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct desk desk;
        open_vector(&desk, &vectors[0]);
        desk_header(&desk, "webhook-signature", rows[i].header);
        if ((desk_read(&desk) == RECEIVE_EVENTS) != rows[i].good)
            check_fail(__FILE__, __LINE__, "%s: %.*s", rows[i].header, BYTES_ARG(desk.result.because));
        desk_close(&desk);
    }
}

TEST(pairs_may_hold_several_signatures_but_one_time)
{
    static const char good[] = "v1=d9ba3d5edae94cdc529e90e6412af0e5ddb1f9570e318ee8c3f280b233d9674b";
    static const struct {
        const char *format;
        bool good;
    } rows[] = {
        {"t=1700000000,v1=00,%s", true},
        {"t=1700000000,v0=00,%s", true},
        {"%s,t=1700000000", true},
        {"t=1700000000, %s", true},
        {"t=1700000000,t=1,%s", false},
        {"t=1,t=1700000000,%s", false},
        {"t=,%s", false},
        {"%s", false},
        {"t=1700000000,v0=d9ba,x%s", false},
        {"t=01700000000,%s", false},
        {"t=-1700000000,%s", false},
        {"t=17000000000000000000,%s", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct desk desk;
        char header[256];
        open_vector(&desk, &vectors[2]);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(header, sizeof header, rows[i].format, good);
#pragma GCC diagnostic pop
        desk_header(&desk, "Stripe-Signature", header);
        if ((desk_read(&desk) == RECEIVE_EVENTS) != rows[i].good)
            check_fail(__FILE__, __LINE__, "%s: %.*s", header, BYTES_ARG(desk.result.because));
        desk_close(&desk);
    }
}

TEST(a_signature_header_that_is_there_twice_is_refused)
{
    struct desk desk;
    open_vector(&desk, &vectors[3]);
    desk.headers[desk.request.header_count++] = (struct pair){BYTES("x-hub-signature-256"), BYTES("sha256=00")};
    CHECK(is_refused(&desk));
    CHECK(desk_because(&desk, "twice"));
    desk_close(&desk);
}

/* ---- URLs ---- */

TEST(twilio_signs_the_url_with_or_without_its_port)
{
    static const struct {
        const char *url;
        bool good;
    } rows[] = {
        {"https://x.test/sms", true},      {"https://x.test:443/sms", true}, {"https://x.test:8443/sms", true},
        {"https://x.test/sms?a=1", false}, {"http://x.test/sms", false},     {"https://y.test/sms", false},
        {"https://x.test/sms/", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct desk desk;
        open_vector(&desk, &vectors[5]);
        desk.request.url = bytes_of(rows[i].url);
        if ((desk_read(&desk) == RECEIVE_EVENTS) != rows[i].good)
            check_fail(__FILE__, __LINE__, "%s: %.*s", rows[i].url, BYTES_ARG(desk.result.because));
        desk_close(&desk);
    }
}

TEST(a_field_that_comes_twice_is_signed_once_for_each_value)
{
    struct desk desk;
    open_vector(&desk, &vectors[5]);
    desk.request.body = BYTES("a=2&a=1&MessageSid=SM1&a=1&Body=hi");
    desk_header(&desk, "X-Twilio-Signature", "XMvGgmNjFQuLpYtlLA4J/rsclo8=");
    CHECK_INT(desk_read(&desk), RECEIVE_EVENTS);
    desk_close(&desk);
}

TEST(behind_a_proxy_the_public_url_is_what_was_signed)
{
    struct desk desk;
    open_vector(&desk, &vectors[5]);
    desk.request.url = BYTES("http://127.0.0.1:7363/sms");
    CHECK(is_refused(&desk));
    desk.source.url = BYTES("https://x.test/");
    CHECK_INT(desk_read(&desk), RECEIVE_EVENTS);
    desk_close(&desk);
}

static void sign_desk(struct desk *desk)
{
    struct receive_request request = desk->request;
    request.headers = arena_zalloc(&desk->arena, 40, sizeof *request.headers);
    memcpy(request.headers, desk->headers, desk->request.header_count * sizeof *request.headers);
    if (receive_sign(&desk->source, desk->secrets[0], &desk->arena, &request, &desk->why) != OK)
        check_fail(__FILE__, __LINE__, "%s", desk->why.text);
    desk->request = request;
}

TEST(a_json_body_of_twilio_is_covered_by_its_hash_or_not_at_all)
{
    static const char body[] = "{\"EventType\":\"x\",\"MessageSid\":\"SM1\",\"Body\":\"hi\"}";
    struct hash hash = {{0}};
    char url[160], hex[65] = "";
    struct desk desk;
    desk_open(&desk, "twilio", "secret: env:S\n");
    desk.secrets[0] = BYTES("token");
    desk_header(&desk, "Content-Type", "application/json");
    desk.request.body = BYTES(body);
    desk.request.url = BYTES("https://x.test/events");
    struct receive_request plain = desk.request;
    sign_desk(&desk);
    CHECK(is_refused(&desk));
    CHECK(desk_because(&desk, "not covered"));
    desk.request = plain;
    hash = hash_sha256(BYTES(body));
    bytes_to_hex(hash_bytes(&hash), hex);
    snprintf(url, sizeof url, "https://x.test/events?bodySHA256=%s", hex);
    desk.request.url = bytes_of(url);
    sign_desk(&desk);
    CHECK_INT(desk_read(&desk), RECEIVE_EVENTS);
    desk.request.body = BYTES("{\"EventType\":\"x\",\"MessageSid\":\"SM2\",\"Body\":\"hi\"}");
    CHECK(is_refused(&desk));
    CHECK(desk_because(&desk, "does not have the hash"));
    desk_close(&desk);
}

/* ---- other schemes ---- */

TEST(old_versions_of_hubspot_count_only_when_the_policy_asks)
{
    struct desk old, plain;
    desk_open(&old, "hubspot", "secret: env:S\nverify: v2\n");
    old.secrets[0] = BYTES("hs_secret");
    old.request.body = BYTES("[]");
    sign_desk(&old);
    CHECK_INT(desk_read(&old), RECEIVE_EVENTS);
    CHECK_TEXT(old.result.rule, "v2");
    desk_open(&plain, "hubspot", "secret: env:S\n");
    plain.secrets[0] = old.secrets[0];
    plain.request = old.request;
    CHECK(is_refused(&plain));
    desk_close(&plain);
    desk_open(&plain, "hubspot", "secret: env:S\nverify: [v3, v2]\n");
    plain.secrets[0] = old.secrets[0];
    plain.request = old.request;
    CHECK_INT(desk_read(&plain), RECEIVE_EVENTS);
    desk_close(&plain);
    desk_close(&old);
}

TEST(tokens_and_logins_are_compared_whole)
{
    static const struct {
        const char *settings, *secret, *header, *value, *url;
        bool good;
    } rows[] = {
        {"verify: token\nsecret: env:S\n", "t0ken", "X-Token", "t0ken", "https://x.test/in/x", true},
        {"verify: token\nsecret: env:S\n", "t0ken", "X-Token", "t0ke", "https://x.test/in/x", false},
        {"verify: token\nsecret: env:S\n", "t0ken", "X-Token", "t0kenn", "https://x.test/in/x", false},
        {"verify: token\nsecret: env:S\n", "", "X-Token", "", "https://x.test/in/x", false},
        {"verify: bearer\nsecret: env:S\n", "t0ken", "Authorization", "Bearer t0ken", "https://x.test/in/x", true},
        {"verify: bearer\nsecret: env:S\n", "t0ken", "Authorization", "t0ken", "https://x.test/in/x", false},
        {"verify: query\nsecret: env:S\n", "t0 ken", "X", "y", "https://x.test/in/x?token=t0+ken", true},
        {"verify: query\nsecret: env:S\n", "t0ken", "X", "y", "https://x.test/in/x?token=", false},
        {"verify: query\nsecret: env:S\n", "t0ken", "X", "y", "https://x.test/in/x", false},
        {"verify: basic\nsecret: env:S\n", "u:p", "Authorization", "Basic dTpw", "https://x.test/in/x", true},
        {"verify: basic\nsecret: env:S\n", "u:p", "Authorization", "Basic dTpx", "https://x.test/in/x", false},
        {"verify: basic\nsecret: env:S\n", "u:p", "Authorization", "Basic dTpw=", "https://x.test/in/x", false},
        {"verify: none\n", "", "X", "y", "https://x.test/in/x", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct desk desk;
        desk_open(&desk, "json", rows[i].settings);
        desk.secrets[0] = bytes_of(rows[i].secret);
        desk.request.url = bytes_of(rows[i].url);
        desk.request.body = BYTES("{}");
        desk_header(&desk, "Content-Type", "application/json");
        desk_header(&desk, rows[i].header, rows[i].value);
        if ((desk_read(&desk) == RECEIVE_EVENTS) != rows[i].good)
            check_fail(__FILE__, __LINE__, "row %zu: %.*s", i, BYTES_ARG(desk.result.because));
        CHECK(desk.secrets[0].len == 0 || !desk_because(&desk, rows[i].secret));
        desk_close(&desk);
    }
}

/* A key pair: private PKCS #8 and public key in base64, in the desk's arena. */
static void make_keys(struct desk *desk, EVP_PKEY *key, struct bytes *ret_private, struct bytes *ret_public)
{
    unsigned char *der = NULL;
    int len = i2d_PrivateKey(key, &der);
    CHECK(len > 0);
    *ret_private = base64_encode((struct bytes){(char *)der, (size_t)len}, &desk->arena);
    OPENSSL_free(der);
    der = NULL;
    len = i2d_PUBKEY(key, &der);
    CHECK(len > 0);
    *ret_public = base64_encode((struct bytes){(char *)der, (size_t)len}, &desk->arena);
    OPENSSL_free(der);
}

static void check_public(const char *preset, const char *settings, EVP_PKEY *key, const char *body)
{
    struct desk desk;
    struct bytes private, public;
    desk_open(&desk, preset, settings);
    make_keys(&desk, key, &private, &public);
    desk.request.body = bytes_of(body);
    desk_header(&desk, "Content-Type", "application/json");
    desk_header(&desk, "webhook-id", "msg_1");
    desk.secrets[0] = private;
    sign_desk(&desk);
    desk.secrets[0] = public;
    if (desk_read(&desk) != RECEIVE_EVENTS)
        check_fail(__FILE__, __LINE__, "%s: %.*s", preset, BYTES_ARG(desk.result.because));
    flip_each(&desk, &desk.request.body, preset);
    desk.secrets[0] = private;
    CHECK(is_refused(&desk));
    struct bytes der = base64_decode(public, &desk.arena);
    char longer[512] = {0};
    memcpy(longer, der.at, der.len);
    desk.secrets[0] = base64_encode((struct bytes){longer, der.len + 1}, &desk.arena);
    CHECK(is_refused(&desk));
    desk_close(&desk);
    EVP_PKEY_free(key);
}

TEST(public_key_signatures_hold_and_break)
{
    check_public("sendgrid", "secret: env:S\n", EVP_EC_gen("P-256"), "[]");
    check_public("standard-webhooks", "secret: env:S\nverify: v1a\n", EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), "{\"a\":1}");
}

TEST(a_key_of_another_curve_is_no_key)
{
    struct desk desk;
    struct bytes private, public;
    EVP_PKEY *key = EVP_EC_gen("P-384");
    desk_open(&desk, "sendgrid", "secret: env:S\n");
    make_keys(&desk, key, &private, &public);
    desk.request.body = BYTES("[]");
    CHECK_INT(receive_sign(&desk.source, private, &desk.arena, &desk.request, &desk.why), INVALID);
    EVP_PKEY_free(key);
    desk_close(&desk);
}

TEST(where_the_body_is_not_signed_only_the_nonce_tells_deliveries_apart)
{
    struct desk desk;
    desk_open(&desk, "mailgun", "secret: env:S\n");
    desk.secrets[0] = BYTES("mg_key");
    desk.request.body = BYTES("{\"signature\":{\"timestamp\":\"1700000000\",\"token\":\"tok1\",\"signature\":\"$signature$\"},"
                              "\"event-data\":{\"id\":\"e1\",\"recipient\":\"a@b.c\"}}");
    desk_header(&desk, "Content-Type", "application/json");
    sign_desk(&desk);
    CHECK_INT(desk_read(&desk), RECEIVE_EVENTS);
    CHECK_INT(desk.result.count, 1);
    CHECK_TEXT(desk.result.events[0].delivery, "nonce:tok1");
    CHECK(desk.result.events[0].key.at == NULL);
    /* Another event under the same signature is the same delivery. */
    char *forged = strndup(desk.request.body.at, desk.request.body.len);
    char *id = strstr(forged, "\"e1\"");
    id[2] = '2';
    desk.request.body = bytes_of(forged);
    CHECK_INT(desk_read(&desk), RECEIVE_EVENTS);
    CHECK_TEXT(desk.result.events[0].delivery, "nonce:tok1");
    char *token = strstr(forged, "tok1");
    token[3] = '2';
    CHECK(is_refused(&desk));
    free(forged);
    desk_close(&desk);
}

/* ---- public suites, where they are present ---- */

static struct bytes member(const struct json *row, const char *name)
{
    const struct json *value = json_find(row, bytes_of(name));
    return value != NULL && value->type == JSON_STRING ? value->text : value != NULL ? value->raw : BYTES_NONE;
}

/* The suite's file; skips the test where it is absent. */
static void read_suite(const char *name, struct arena *arena, struct json *ret)
{
    static const struct json_limits limits = {64, 1000000, 1 << 20};
    char path[512];
    struct why why;
    if (check_data_dir() == NULL)
        SKIP("no test data");
    snprintf(path, sizeof path, "%s/protocol/%s", check_data_dir(), name);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        SKIP("no such suite");
    fclose(file);
    arena_init(arena, 64 << 20);
    struct bytes text = check_read_file(path);
    CHECK_INT(json_parse(arena_dup(arena, text), &limits, arena, ret, &why), OK);
    free((char *)text.at);
}

static struct bytes from_hex(struct bytes hex, char *ret)
{
    for (size_t i = 0; i < hex.len; i += 2)
        ret[i / 2] = (char)strtol((char[]){hex.at[i], hex.at[i + 1], 0}, NULL, 16);
    return (struct bytes){ret, hex.len / 2};
}

static void check_hmac_row(const struct json *row, const char *settings)
{
    struct desk desk;
    char key[4096], message[4096], header[200];
    desk_open(&desk, "json", settings);
    desk.secrets[0] = from_hex(member(row, "key"), key);
    desk.request.body = from_hex(member(row, "msg"), message);
    snprintf(header, sizeof header, "%.*s", BYTES_ARG(member(row, "tag")));
    desk_header(&desk, "X-Sig", header);
    bool held = desk_read(&desk) != RECEIVE_REFUSED; /* the body is no JSON, but that comes behind the signature */
    CHECK_INT(held, bytes_is(member(row, "result"), "valid") && desk.secrets[0].len > 0);
    desk_close(&desk);
}

static size_t check_hmac(const char *suite, const char *tag_size, const char *settings)
{
    struct json root;
    struct arena arena;
    size_t count = 0;
    read_suite(suite, &arena, &root);
    const struct json *groups = json_get(&root, BYTES("testGroups"));
    for (uint32_t g = 0; g < groups->count; g++) {
        const struct json *tests = json_get(&groups->items[g], BYTES("tests"));
        for (uint32_t t = 0; bytes_is(member(&groups->items[g], "tagSize"), tag_size) && t < tests->count; t++, count++)
            check_hmac_row(&tests->items[t], settings);
    }
    arena_release(&arena);
    return count;
}

TEST(hmac_vectors_of_wycheproof_hold)
{
    CHECK(check_hmac("wycheproof/hmac_sha256_test.json", "256",
                     "secret: env:S\nsignature: {alg: hmac-sha256, signs: \"{body}\", signature: header.X-Sig}\n") > 50);
    CHECK(check_hmac("wycheproof/hmac_sha1_test.json", "160",
                     "secret: env:S\nsignature: {alg: hmac-sha1, signs: \"{body}\", signature: header.X-Sig}\n") > 50);
}

static void check_ed25519_row(struct bytes key, const struct json *row)
{
    struct desk desk;
    char raw_key[64], message[8192], signature[512];
    struct bytes sig = member(row, "sig");
    desk_open(&desk, "json",
              "secret: env:S\nsignature: {alg: ed25519, key: public, signs: \"{body}\", signature: header.X-Sig}\n");
    desk.secrets[0] = base64_encode(from_hex(key, raw_key), &desk.arena);
    desk.request.body = from_hex(member(row, "msg"), message);
    CHECK(sig.len < sizeof signature);
    snprintf(signature, sizeof signature, "%.*s", BYTES_ARG(sig));
    desk_header(&desk, "X-Sig", signature);
    bool held = desk_read(&desk) != RECEIVE_REFUSED;
    if (held != bytes_is(member(row, "result"), "valid"))
        check_fail(__FILE__, __LINE__, "test %.*s: %.*s", BYTES_ARG(member(row, "tcId")), BYTES_ARG(desk.result.because));
    desk_close(&desk);
}

TEST(ed25519_vectors_of_wycheproof_hold)
{
    struct json root;
    struct arena arena;
    size_t count = 0;
    read_suite("wycheproof/ed25519_test.json", &arena, &root);
    const struct json *groups = json_get(&root, BYTES("testGroups"));
    for (uint32_t g = 0; g < groups->count; g++) {
        const struct json *tests = json_get(&groups->items[g], BYTES("tests"));
        for (uint32_t t = 0; t < tests->count; t++, count++)
            check_ed25519_row(member(&groups->items[g], "publicKey.pk"), &tests->items[t]);
    }
    CHECK(count > 100);
    arena_release(&arena);
}

TEST(vectors_of_standard_webhooks_hold)
{
    struct json root;
    struct arena arena;
    read_suite("own/standard_webhooks_vectors.json", &arena, &root);
    for (uint32_t i = 0; i < root.count; i++) {
        const struct json *row = &root.items[i];
        struct desk desk;
        int64_t now_s = 0;
        desk_open(&desk, "standard-webhooks", "secret: env:S\n");
        desk.secrets[0] = member(row, "secret");
        desk.request.body = base64_decode(member(row, "body_b64"), &desk.arena);
        CHECK(json_to_i64(json_get(row, BYTES("now")), &now_s));
        desk.request.now_us = now_s * WHEN_SECOND;
        desk.headers[0] = (struct pair){BYTES("webhook-id"), member(row, "msg_id")};
        desk.headers[1] = (struct pair){BYTES("webhook-timestamp"), member(row, "timestamp")};
        desk.headers[2] = (struct pair){BYTES("webhook-signature"), member(row, "signature")};
        desk.request.header_count = 3;
        enum receive_end end = desk_read(&desk);
        if ((end != RECEIVE_REFUSED) != bytes_is(member(row, "want"), "ok"))
            check_fail(__FILE__, __LINE__, "%.*s: %.*s", BYTES_ARG(member(row, "id")), BYTES_ARG(desk.result.because));
        desk_close(&desk);
    }
    CHECK(root.count > 5);
    arena_release(&arena);
}
