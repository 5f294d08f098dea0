#include "base/json.h"

#include "check.h"

struct claim {
    struct bytes key;
    int64_t lease_ms;
    bool wait;
    int mode;
    const struct json *payload;
    int64_t any;
};

static const char *const modes[] = {"ask", "retry", "skip", NULL};

static const struct json_field fields[] = {
    {"key", JSON_FIELD_TEXT, offsetof(struct claim, key), true, 1, 8, NULL},
    {"lease_ms", JSON_FIELD_INT, offsetof(struct claim, lease_ms), false, 100, 5000, NULL},
    {"wait", JSON_FIELD_BOOL, offsetof(struct claim, wait), false, 0, 0, NULL},
    {"mode", JSON_FIELD_ENUM, offsetof(struct claim, mode), false, 0, 0, modes},
    {"payload", JSON_FIELD_VALUE, offsetof(struct claim, payload), false, 0, 0, NULL},
    {"any", JSON_FIELD_INT, offsetof(struct claim, any), false, 0, 0, NULL},
};

static struct arena arena;
static struct bytes wrong_field;

static enum status read_claim(const char *source, struct claim *ret, struct why *why)
{
    struct json *json;
    arena_release(&arena);
    arena_init(&arena, 1 << 16);
    json = arena_zalloc(&arena, 1, sizeof *json);
    CHECK_INT(json_parse(bytes_of(source), NULL, &arena, json, why), OK);
    return json_read(json, fields, sizeof fields / sizeof *fields, ret, &wrong_field, why);
}

TEST(json_read_fills_every_kind_of_field)
{
    struct claim claim = {.lease_ms = 1};
    struct why why;
    CHECK_INT(
        read_claim("{\"key\":\"k\",\"lease_ms\":5000,\"wait\":true,\"mode\":\"skip\",\"payload\":[1],\"any\":-9}", &claim, &why),
        OK);
    CHECK_TEXT(claim.key, "k");
    CHECK_INT(claim.lease_ms, 5000);
    CHECK(claim.wait);
    CHECK_INT(claim.mode, 2);
    CHECK_TEXT(claim.payload->raw, "[1]");
    CHECK_INT(claim.any, -9);
}

TEST(json_read_keeps_defaults_for_absent_and_null_fields)
{
    struct claim claim = {.lease_ms = 777, .mode = 1, .wait = true};
    CHECK_INT(read_claim("{\"key\":\"k\",\"lease_ms\":null,\"wait\":null,\"payload\":null}", &claim, NULL), OK);
    CHECK_INT(claim.lease_ms, 777);
    CHECK_INT(claim.mode, 1);
    CHECK(claim.wait);
    CHECK(claim.payload == NULL);
}

TEST(json_read_refusals_name_the_field_and_say_what_to_send)
{
    static const struct {
        const char *source, *field, *why;
    } cases[] = {
        {"{}", "key", "\"key\" is missing; send a string of 1 to 8 bytes"},
        {"{\"key\":null}", "key", "\"key\" is missing; send a string of 1 to 8 bytes"},
        {"{\"key\":5}", "key", "\"key\" is a number; send a string of 1 to 8 bytes"},
        {"{\"key\":\"\"}", "key", "\"key\" does not take this value; send a string of 1 to 8 bytes"},
        {"{\"key\":\"123456789\"}", "key", "\"key\" does not take this value; send a string of 1 to 8 bytes"},
        {"{\"key\":\"k\",\"lease_ms\":99}", "lease_ms",
         "\"lease_ms\" does not take this value; send an integer from 100 to 5000"},
        {"{\"key\":\"k\",\"lease_ms\":1e3}", "lease_ms",
         "\"lease_ms\" does not take this value; send an integer from 100 to 5000"},
        {"{\"key\":\"k\",\"any\":\"1\"}", "any", "\"any\" is a string; send an integer"},
        {"{\"key\":\"k\",\"wait\":\"yes\"}", "wait", "\"wait\" is a string; send true or false"},
        {"{\"key\":\"k\",\"mode\":\"rerty\"}", "mode",
         "\"mode\" does not know this value, did you mean \"retry\"? Send one of \"ask\", \"retry\", \"skip\""},
        {"{\"key\":\"k\",\"mode\":\"x\"}", "mode", "\"mode\" does not take this value; send one of \"ask\", \"retry\", \"skip\""},
        {"{\"key\":\"k\",\"mode\":1}", "mode", "\"mode\" is a number; send one of \"ask\", \"retry\", \"skip\""},
        {"{\"key\":\"k\",\"lease_sm\":1}", "lease_sm", "\"lease_sm\" is not known here; did you mean \"lease_ms\"?"},
        {"{\"key\":\"k\",\"other\":1}", "other", "\"other\" is not known here; remove it"},
        {"{\"key\":\"k\",\"other\":null}", "other", "\"other\" is not known here; remove it"},
        {"{\"key\":\"k\",\"\\u0001\":1}", "\x01", "there is a member whose name is not known here; remove it"},
        {"[]", "", "this is an array; send an object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct claim claim = {.lease_ms = 777};
        struct why why;
        CHECK_INT(read_claim(cases[i].source, &claim, &why), INVALID);
        CHECK_TEXT(bytes_of(why.text), cases[i].why);
        CHECK_TEXT(wrong_field, cases[i].field);
        CHECK(claim.key.at == NULL && claim.lease_ms == 777);
    }
}

TEST(json_read_does_not_need_anyone_to_listen)
{
    struct json json;
    struct claim claim;
    arena_init(&arena, 1 << 16);
    CHECK_INT(json_parse(BYTES("{}"), NULL, &arena, &json, NULL), OK);
    CHECK_INT(json_read(&json, fields, sizeof fields / sizeof *fields, &claim, NULL, NULL), INVALID);
}

TEST(nearest_name_finds_slips_and_nothing_far)
{
    static const char *const names[] = {"scope", "lease_ms", "fingerprint", "ttl"};
    CHECK_TEXT(bytes_of(nearest_name(BYTES("scop"), names, 4)), "scope");
    CHECK_TEXT(bytes_of(nearest_name(BYTES("socpe"), names, 4)), "scope");
    CHECK_TEXT(bytes_of(nearest_name(BYTES("fingreprnt"), names, 4)), "fingerprint");
    CHECK_TEXT(bytes_of(nearest_name(BYTES("leasems"), names, 4)), "lease_ms");
    CHECK_TEXT(bytes_of(nearest_name(BYTES("tttl"), names, 4)), "ttl");
    CHECK(nearest_name(BYTES("tt"), names, 4) == NULL);
    CHECK(nearest_name(BYTES("lease"), names, 4) == NULL);
    CHECK(nearest_name(BYTES(""), names, 4) == NULL);
    char longer[100];
    memset(longer, 'x', sizeof longer);
    CHECK(nearest_name((struct bytes){longer, sizeof longer}, names, 4) == NULL);
}
