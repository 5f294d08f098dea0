#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "receive/fixture_test.h"

TEST(every_preset_is_right_and_every_fact_has_its_evidence)
{
    static struct preset preset;
    CHECK(preset_count() >= 23);
    for (size_t i = 0; i < preset_count(); i++) {
        struct desk desk = {0};
        hash_setup();
        arena_init(&desk.arena, 16 << 20);
        arena_init(&desk.scratch, 16 << 20);
        struct source_reading reading = {&desk.arena, &desk.scratch, &desk.problems};
        if (preset_read(&reading, preset_text(preset_name(i)), &preset) != OK)
            check_fail(__FILE__, __LINE__, "%.*s.yaml:%zu:%zu: %s", BYTES_ARG(preset_name(i)), desk.problems.at[0].line,
                       desk.problems.at[0].column, desk.problems.at[0].text);
        CHECK(preset.title.len > 0);
        CHECK(preset.about.at[preset.about.len - 1] == '.');
        CHECK(preset.facts.count > 0);
        CHECK(preset.facts.count < FACTS_MAX);
        CHECK(preset.sample.body.len > 0);
        CHECK(preset.rule_count > 0);
        CHECK(preset.map_count > 0 || preset.reads == READS_MAIL);
        for (size_t f = 0; f < preset.facts.count; f++)
            CHECK(preset.facts.at[f].evidence != 'M' || !preset.facts.at[f].verified);
        for (size_t r = 0; r < preset.rule_count; r++)
            CHECK(preset.rules[r].rule.covers_body || preset.rules[r].rule.nonce.at != NULL);
        desk_close(&desk);
    }
    CHECK(preset_text(BYTES("nobody")).at == NULL);
}

static bool preset_fails(const char *text, const char *part)
{
    static struct preset preset;
    struct desk desk = {0};
    bool found = false;
    arena_init(&desk.arena, 16 << 20);
    arena_init(&desk.scratch, 16 << 20);
    struct source_reading reading = {&desk.arena, &desk.scratch, &desk.problems};
    enum status status = preset_read(&reading, bytes_of(text), &preset);
    for (size_t i = 0; i < desk.problems.count; i++)
        found |= strstr(desk.problems.at[i].text, part) != NULL;
    desk_close(&desk);
    return status == INVALID && found;
}

#define HEAD "title: X\nabout: A sender.\nreads: json\n"

TEST(what_a_preset_must_not_say_is_refused)
{
    static const struct {
        const char *text, *part;
    } rows[] = {
        {HEAD "verify: [{name: a, alg: hmac-sha256, signs: \"{body}\", signature: header.X}]\n", "needs its evidence"},
        {HEAD "verify: [{name: a, alg: hmac-sha256, signs: \"{body}\", signature: header.X, evidence: M, verified: true}]\n",
         "from memory only"},
        {HEAD "verify: [{name: a, alg: hmac-sha256, signs: \"{ts}\", time: header.T, signature: header.X, evidence: D, verified: "
              "true}]\n",
         "the body is not signed"},
        {HEAD "verify: [{name: a, alg: sha256, signs: \"{body}\", signature: header.X, evidence: D, verified: true}]\n",
         "proves nothing"},
        {HEAD "verify: [{name: a, alg: hmac-sha256, signs: \"{ts}{body}\", signature: header.X, evidence: D, verified: true}]\n",
         "where does {ts} stand"},
        {HEAD "verify: [{name: a, alg: hmac-sha256, signs: \"{nobody}\", signature: header.X, evidence: D, verified: true}]\n",
         "signs is made of"},
        {HEAD "verify: [{name: a, alg: hmac-sha256, signs: \"{body}\", signature: X-Sig, evidence: D, verified: true}]\n",
         "a place is header.NAME"},
        {HEAD "verify: [{name: a, alg: md5, signs: \"{body}\", signature: header.X, evidence: D, verified: true}]\n", "alg is "},
        {HEAD
         "verify: [{name: a, alg: hmac-sha256, grammar: prefix, signs: \"{body}\", signature: header.X, evidence: D, verified: "
         "true}]\n",
         "wants a prefix"},
        {HEAD "events: [{kind: lead, split: \"a\", evidence: D, verified: true}]\n", "split is the way"},
        {HEAD "events: [{kind: lead, text: \"{a\", evidence: D, verified: true}]\n", "each '{' wants"},
        {HEAD "events: [{kind: lead, identities: [{email: \"{a}\", phone: \"{b}\"}], evidence: D, verified: true}]\n",
         "one of email, phone or other"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!preset_fails(rows[i].text, rows[i].part))
            check_fail(__FILE__, __LINE__, "row %zu: \"%s\" was not told", i, rows[i].part);
}

TEST(ids_that_nobody_has_verified_are_not_compared)
{
    static struct preset preset;
    struct desk desk = {0};
    arena_init(&desk.arena, 16 << 20);
    arena_init(&desk.scratch, 16 << 20);
    struct source_reading reading = {&desk.arena, &desk.scratch, &desk.problems};
    CHECK_INT(preset_read(&reading,
                          BYTES(HEAD "verify: [{name: a, alg: equal, signature: header.X, evidence: M, verified: false}]\n"
                                     "events: [{kind: lead, evidence: D, verified: true, delivery: {is: \"{id}\", evidence: D, "
                                     "verified: true}, key: {is: \"x:{id}\", evidence: M, verified: false}}]\n"),
                          &preset),
              OK);
    CHECK_INT(preset.maps[0].delivery.count, 1);
    CHECK_INT(preset.maps[0].key.count, 0);
    CHECK(preset.rules[0].optional);
    desk_close(&desk);
}

/* ---- the policy's row ---- */

TEST(a_source_lies_over_its_preset)
{
    struct desk desk;
    desk_open(&desk, "typeform", "secret: env:TF\n");
    CHECK_TEXT(desk.source.preset, "typeform");
    CHECK_TEXT(desk.source.title, "Typeform");
    CHECK_INT(desk.source.rule_count, 1);
    CHECK_INT(desk.source.secret_count, 1);
    CHECK_TEXT(desk.source.secrets[0].name, "TF");
    CHECK_INT(desk.source.window_us, 2 * WHEN_DAY);
    CHECK_INT(desk.source.across_us, WHEN_DAY);
    CHECK_INT(desk.source.keep_us, 30 * WHEN_DAY);
    CHECK_INT(desk.source.loop_count, 20);
    CHECK_INT(desk.source.loop_us, 10 * WHEN_MINUTE);
    CHECK_INT(desk.source.body_max, 1 << 20);
    CHECK_INT(desk.source.token_index, -1);
    desk_close(&desk);
    desk_open(&desk, "wa", "preset: whatsapp\nsecrets: [env:NEW, env:OLD]\nverify_token: env:T\nwindow: 1h\nmode: shadow\n");
    CHECK_INT(desk.source.signing_count, 2);
    CHECK_INT(desk.source.secret_count, 3);
    CHECK_INT(desk.source.token_index, 2);
    CHECK(desk.source.shadow);
    struct why why;
    CHECK(source_warning(&desk.source, &why));
    CHECK(strstr(why.text, "shorter than twice the 7d") != NULL || strstr(why.text, "shorter than twice the 1w") != NULL);
    desk_close(&desk);
    desk_open(&desk, "twilio", "secret: env:T\n");
    CHECK_INT(desk.source.window_us, WHEN_DAY);
    CHECK(!source_warning(&desk.source, &why));
    desk_close(&desk);
    desk_open(&desk, "hubspot", "secret: env:T\nverify: [v3, v2, v1]\n");
    CHECK_INT(desk.source.rule_count, 3);
    desk_close(&desk);
    desk_open(&desk, "hubspot", "secret: env:T\n");
    CHECK_INT(desk.source.rule_count, 1);
    desk_close(&desk);
}

TEST(a_source_that_is_not_right_is_refused_with_advice)
{
    static const struct {
        const char *name, *settings, *part;
    } rows[] = {
        {"typefrom", "secret: env:A\n", "did you mean 'typeform'"},
        {"contact", "secret: env:A\n", "write preset: json or form"},
        {"form", "title: Contact\n", "how are its deliveries verified?"},
        {"typeform", "title: Contact\n", "add secret: env:NAME"},
        {"json", "secret: env:A\n", "how are its deliveries verified?"},
        {"json", "verify: tokn\nsecret: env:A\n", "verify is hmac, bearer, token, query, basic or none here"},
        {"json", "verify: none\nsecret: env:A\n", "needs no secret"},
        {"typeform", "secret: s3cret\n", "a policy never holds a secret itself"},
        {"typeform", "secrets: [s3cret]\n", "a policy never holds a secret itself"},
        {"typeform", "secret: env:A\nsecrets: [env:B]\n", "keep one of them"},
        {"typeform", "secret: env:A\nverify_token: env:B\n", "no verify token"},
        {"typeform", "secret: env:A\nwindw: 1h\n", "did you mean 'window'"},
        {"typeform", "secret: env:A\npath: /x\n", "add forward: DESTINATION"},
        {"typeform", "secret: env:A\nloop: many\n", "rate is calls per time"},
        {"json", "secret: env:A\nsignature: {alg: hmac-sha256, signature: header.X}\n", "what is signed?"},
        {"json", "secret: env:A\nsignature: {alg: hmac-sha256, signature: header.X, signs: \"{ts}\", time: header.T}\n",
         "the body is not signed"},
        {"json", "secret: env:A\nverify: hmac\nsignature: {alg: equal, signature: header.X}\n", "remove verify, or signature"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct desk desk;
        bool found = false;
        CHECK(!desk_try(&desk, rows[i].name, rows[i].settings));
        for (size_t p = 0; p < desk.problems.count; p++)
            found |= strstr(desk.problems.at[p].text, rows[i].part) != NULL;
        if (!found)
            check_fail(__FILE__, __LINE__, "row %zu: %s", i, desk.problems.at[0].text);
        CHECK(strstr(desk.problems.at[0].text, "s3cret") == NULL);
        desk_close(&desk);
    }
}

/* ---- documentation ---- */

/* "sha256", or "token or basic, when the policy names it". */
static void write_rules(struct buf *out, const struct preset *preset)
{
    for (int optional = 0; optional < 2; optional++) {
        size_t count = 0;
        for (size_t i = 0; i < preset->rule_count; i++)
            if (preset->rules[i].optional == (optional != 0))
                buf_printf(out, "%s`%.*s`",
                           count++ > 0     ? ", "
                           : optional != 0 ? "by name: "
                                           : "",
                           BYTES_ARG(preset->rules[i].rule.name));
        if (optional == 0 && count > 0 && count < preset->rule_count)
            buf_add_cstr(out, "; ");
    }
}

/* One line of the table of presets. */
static void write_preset(struct buf *out, struct bytes name, const struct preset *preset)
{
    char retry[32] = "–";
    size_t doubts = 0;
    if (preset->retry_us > 0)
        retry[when_format_duration(preset->retry_us, retry)] = '\0';
    buf_printf(out, "| `%.*s` | %.*s | %s | ", BYTES_ARG(name), BYTES_ARG(preset->about), source_reads_names[preset->reads]);
    write_rules(out, preset);
    buf_printf(out, " | %s | %zu | ", retry, preset->facts.count);
    for (size_t i = 0; i < preset->facts.count; i++)
        if (!preset->facts.at[i].verified)
            buf_printf(out, "%s%s", doubts++ > 0 ? ", " : "", preset->facts.at[i].what);
    buf_add_cstr(out, doubts > 0 ? " |\n" : "– |\n");
}

TEST(the_table_of_the_documentation_says_what_the_presets_say)
{
    static struct preset preset;
    struct bytes root = bytes_of(getenv("SEMEL_SOURCE_DIR"));
    char path[1024];
    struct buf want;
    if (root.len == 0)
        SKIP("SEMEL_SOURCE_DIR is not set");
    snprintf(path, sizeof path, "%.*s/docs/reference/sources.md", BYTES_ARG(root));
    struct bytes text = check_read_file(path);
    buf_init(&want, 1 << 20);
    for (size_t i = 0; i < preset_count(); i++) {
        struct desk desk = {0};
        arena_init(&desk.arena, 16 << 20);
        arena_init(&desk.scratch, 16 << 20);
        struct source_reading reading = {&desk.arena, &desk.scratch, &desk.problems};
        CHECK_INT(preset_read(&reading, preset_text(preset_name(i)), &preset), OK);
        write_preset(&want, preset_name(i), &preset);
        desk_close(&desk);
    }
    struct bytes rows = buf_bytes(&want);
    if (memmem(text.at, text.len, rows.at, rows.len) == NULL)
        check_fail(__FILE__, __LINE__, "docs/reference/sources.md wants these rows:\n%.*s", BYTES_ARG(rows));
    buf_release(&want);
    free((char *)text.at);
}
