#include "policy/policy.h"

#include <stdlib.h>

#include "base/when.h"
#include "check.h"

static struct policy *parse(const char *text)
{
    struct policy *policy = NULL;
    struct yaml_problems problems;
    hash_setup();
    if (policy_parse(bytes_of(text), &policy, &problems) != OK)
        check_fail(__FILE__, __LINE__, "%s\n%zu:%zu: %s", text, problems.at[0].line, problems.at[0].column, problems.at[0].text);
    return policy;
}

/* ---- good documents ---- */

static const char whole_example[] = "version: 1\n"
                                    "zone: Europe/Paris            # default UTC\n"
                                    "mode: enforce\n"
                                    "defaults:\n"
                                    "  lease: 90s\n"
                                    "workflows:\n"
                                    "  followup:\n"
                                    "    key: \"followup:{lead_id}:{template}:{day}\"\n"
                                    "    time: sent_at\n"
                                    "    zone: America/New_York\n"
                                    "    ignore: [trace_id]\n"
                                    "    lease: 60s\n"
                                    "    keep: 7d\n"
                                    "    tombstone: 0d\n"
                                    "    capability: idempotent\n"
                                    "    window: 48h\n"
                                    "    on_unknown: retry\n"
                                    "    two_phase: true\n"
                                    "    attempts: 3\n"
                                    "    mode: shadow\n"
                                    "  Invoice.v2_x-1:\n";

TEST(every_setting_of_a_workflow_is_read)
{
    struct policy *policy = parse(whole_example);
    const struct workflow_rules *rules = policy_workflow(policy, BYTES("followup"));
    CHECK_TEXT(rules->name, "followup");
    CHECK_TEXT(rules->key_text, "followup:{lead_id}:{template}:{day}");
    CHECK(rules->key != NULL);
    CHECK_INT(rules->ignore_count, 1);
    CHECK_TEXT(rules->ignore[0], "trace_id");
    CHECK_INT(rules->lease_us, 60 * WHEN_SECOND);
    CHECK_INT(rules->keep_us, 7 * WHEN_DAY);
    CHECK_INT(rules->tombstone_us, 0);
    CHECK_INT(rules->capability, CAPABILITY_IDEMPOTENT);
    CHECK_INT(rules->window_us, 48 * WHEN_HOUR);
    CHECK_INT(rules->on_unknown, ON_UNKNOWN_RETRY);
    CHECK(rules->two_phase);
    CHECK_INT(rules->attempts_max, 3);
    CHECK_INT(rules->mode, MODE_SHADOW);
    const struct workflow_rules *other = policy_workflow(policy, BYTES("Invoice.v2_x-1"));
    CHECK_TEXT(other->name, "Invoice.v2_x-1");
    CHECK_INT(other->lease_us, 90 * WHEN_SECOND);
    policy_free(policy);
}

static void check_built_in(const char *text)
{
    struct policy *policy = parse(text);
    const struct workflow_rules *rules = policy_workflow(policy, BYTES("anything"));
    CHECK(rules == &policy->defaults);
    CHECK_TEXT(rules->name, "");
    CHECK(rules->key_text.at == NULL && rules->key == NULL && rules->ignore_count == 0);
    CHECK_INT(rules->lease_us, 60 * WHEN_SECOND);
    CHECK_INT(rules->keep_us, 30 * WHEN_DAY);
    CHECK_INT(rules->tombstone_us, 400 * WHEN_DAY);
    CHECK_INT(rules->capability, CAPABILITY_NONE);
    CHECK_INT(rules->window_us, 0);
    CHECK_INT(rules->on_unknown, ON_UNKNOWN_HOLD);
    CHECK(!rules->two_phase);
    CHECK_INT(rules->attempts_max, 10);
    CHECK_INT(rules->mode, MODE_ENFORCE);
    policy_free(policy);
}

TEST(an_empty_document_means_the_defaults)
{
    check_built_in("");
    check_built_in("# nothing yet\n");
    check_built_in("---\n");
    check_built_in("{}\n");
    check_built_in("\xEF\xBB\xBFversion: 1\r\n");
    check_built_in("version: 1\ndefaults:\nworkflows:\n");
    check_built_in("version: 1\ndefaults: {}\nworkflows: {}\n");
}

TEST(no_text_at_all_means_the_defaults)
{
    struct policy *policy;
    struct yaml_problems problems;
    hash_setup();
    CHECK_INT(policy_parse(BYTES_NONE, &policy, &problems), OK);
    CHECK_INT(policy->text.len, 0);
    policy_free(policy);
}

TEST(defaults_reach_workflows_wherever_they_stand_in_the_document)
{
    struct policy *policy =
        parse("workflows:\n  a: {lease: 5s}\n  b:\ndefaults: {lease: 7s, mode: enforce, ignore: [x, y]}\nmode: shadow\n");
    CHECK_INT(policy_workflow(policy, BYTES("a"))->lease_us, 5 * WHEN_SECOND);
    CHECK_INT(policy_workflow(policy, BYTES("b"))->lease_us, 7 * WHEN_SECOND);
    CHECK_INT(policy_workflow(policy, BYTES("a"))->ignore_count, 2);
    CHECK_INT(policy_workflow(policy, BYTES("a"))->mode, MODE_ENFORCE);
    policy_free(policy);
}

TEST(the_nearest_mode_and_an_empty_list_win)
{
    struct policy *policy = parse("mode: shadow\ndefaults: {ignore: [x]}\nworkflows: {a: {mode: enforce, ignore: []}, b: }\n");
    CHECK_INT(policy_workflow(policy, BYTES("a"))->mode, MODE_ENFORCE);
    CHECK_INT(policy_workflow(policy, BYTES("b"))->mode, MODE_SHADOW);
    CHECK_INT(policy_workflow(policy, BYTES("unnamed"))->mode, MODE_SHADOW);
    CHECK_INT(policy_workflow(policy, BYTES("a"))->ignore_count, 0);
    CHECK_INT(policy_workflow(policy, BYTES("b"))->ignore_count, 1);
    policy_free(policy);
}

static struct bytes fill(const struct workflow_rules *rules, const char *input_text, struct arena *arena)
{
    struct json input;
    struct bytes key;
    struct why why;
    CHECK_INT(json_parse(bytes_of(input_text), NULL, arena, &input, &why), OK);
    if (key_template_fill(rules->key, &input, 0, arena, &key, NULL, &why) != OK)
        check_fail(__FILE__, __LINE__, "%s", why.text);
    return key;
}

TEST(an_inherited_key_is_filled_in_the_workflows_own_zone)
{
    static const char input[] = "{\"id\":1,\"at\":\"2026-11-15T23:30:00Z\",\"day\":\"Mon\"}";
    struct policy *policy = parse("zone: Europe/Paris\ndefaults: {key: '{id}:{day}', time: at}\n"
                                  "workflows: {a: , b: {zone: America/New_York}, c: {lease: 1s}}\n");
    struct arena arena;
    arena_init(&arena, 1 << 20);
    CHECK_TEXT(fill(policy_workflow(policy, BYTES("a")), input, &arena), "1:2026-11-16");
    CHECK_TEXT(fill(policy_workflow(policy, BYTES("b")), input, &arena), "1:2026-11-15");
    CHECK_TEXT(fill(policy_workflow(policy, BYTES("other")), input, &arena), "1:2026-11-16");
    CHECK(policy_workflow(policy, BYTES("c"))->key == policy->defaults.key);
    policy_free(policy);
    policy = parse("workflows: {a: {key: '{id}:{day}'}}\n");
    CHECK_TEXT(fill(policy_workflow(policy, BYTES("a")), input, &arena), "1:Mon");
    policy_free(policy);
    arena_release(&arena);
}

TEST(an_idempotent_destination_without_a_window_gets_one_day)
{
    struct policy *policy = parse("defaults: {capability: idempotent, window: 2h}\nworkflows: {a: , b: {capability: query}}\n");
    CHECK_INT(policy_workflow(policy, BYTES("a"))->window_us, 2 * WHEN_HOUR);
    CHECK_INT(policy_workflow(policy, BYTES("b"))->window_us, 0);
    policy_free(policy);
    policy = parse("defaults: {capability: idempotent}\n");
    CHECK_INT(policy->defaults.window_us, 24 * WHEN_HOUR);
    policy_free(policy);
}

TEST(the_document_and_its_hash_are_kept_as_given)
{
    struct policy *policy = parse(whole_example);
    struct hash hash = hash_sha256(bytes_of(whole_example));
    CHECK_TEXT(policy->text, whole_example);
    CHECK(hash_equal(hash_bytes(&policy->hash), hash_bytes(&hash)));
    policy_free(policy);
}

TEST(ten_thousand_workflows_are_found_by_name)
{
    struct buf text;
    buf_init(&text, POLICY_SIZE_MAX);
    buf_add_cstr(&text, "defaults: {key: '{a}'}\nworkflows:\n");
    for (int i = 0; i < POLICY_WORKFLOWS_MAX; i++)
        buf_printf(&text, " w%d: {attempts: %d}\n", i * 7919 % POLICY_WORKFLOWS_MAX, i % 9 + 1);
    buf_add_char(&text, '\0');
    CHECK(!text.failed);
    struct policy *policy = parse(text.at);
    CHECK_INT(policy->workflow_count, POLICY_WORKFLOWS_MAX);
    for (int i = 0; i < POLICY_WORKFLOWS_MAX; i++) {
        char name[32];
        snprintf(name, sizeof name, "w%d", i * 7919 % POLICY_WORKFLOWS_MAX);
        const struct workflow_rules *rules = policy_workflow(policy, bytes_of(name));
        CHECK_TEXT(rules->name, name);
        CHECK_INT(rules->attempts_max, i % 9 + 1);
    }
    CHECK(policy_workflow(policy, BYTES("w10000")) == &policy->defaults);
    CHECK(policy_workflow(policy, BYTES("")) == &policy->defaults);
    policy_free(policy);
    buf_release(&text);
}

/* ---- bad documents ---- */

static const struct {
    const char *text;
    size_t line, column; /* column 0: anywhere */
    const char *fragment;
} bad_documents[] = {
    {"leese: 5s\n", 1, 1, "unknown setting 'leese'"},
    {"defaults:\n  leese: 5s\n", 2, 3, "unknown setting 'leese'; did you mean 'lease'?"},
    {"workflows:\n  a:\n    capabilty: none\n", 3, 5, "unknown setting 'capabilty'; did you mean 'capability'?"},
    {"workflow:\n  a:\n", 1, 1, "unknown setting 'workflow'; did you mean 'workflows'?"},
    {"lease: 5s\n", 1, 1, "'lease' belongs under defaults or a workflow, not at the top"},
    {"defaults:\n  version: 1\n", 2, 3, "'version' belongs at the top of the document"},
    {"version: 2\n", 1, 10, "version is 1, not '2'"},
    {"version: one\n", 1, 10, "version wants a whole number such as 1, not 'one'"},
    {"version: '1'\n", 1, 10, "without quotes"},
    {"defaults:\n  lease: 5s\n  keep: 1d\n  lease: 6s\n", 4, 3, "'lease' is given twice, first on line 2"},
    {"zone: UTC\nzone: UTC\n", 2, 1, "'zone' is given twice, first on line 1"},
    {"workflows:\n  a:\n  b:\n  a:\n", 4, 3, "workflow 'a' is given twice, first on line 2"},
    {"defaults:\n  lease: [60s]\n", 2, 10, "lease wants a duration such as 60s, not a list"},
    {"defaults:\n  lease: {s: 60}\n", 2, 10, "lease wants a duration such as 60s, not a mapping"},
    {"defaults:\n  lease: 60\n", 2, 10, "lease wants a duration such as 60s, with a unit (s, m, h, d), not '60'"},
    {"defaults:\n  lease: 60 sec\n", 2, 10, "lease wants a duration such as 60s, not '60 sec'"},
    {"defaults:\n  lease: -5s\n", 2, 10, "lease wants a duration such as 60s, not '-5s'"},
    {"defaults:\n  lease: ''\n", 2, 10, "lease wants a duration such as 60s, not ''"},
    {"defaults:\n  lease: 25h\n", 2, 10, "lease is 1s to 1d, not '25h'"},
    {"defaults:\n  lease: 500ms\n", 2, 10, "lease is 1s to 1d, not '500ms'"},
    {"defaults:\n  keep: 401d\n", 2, 9, "keep is 1m to 400d, not '401d'"},
    {"defaults:\n  tombstone: 1001d\n", 2, 14, "tombstone is 0d to 1000d, not '1001d'"},
    {"defaults:\n  lease:\n", 2, 0, "lease has no value; write a duration such as 60s"},
    {"defaults:\n  lease: ~\n", 2, 10, "lease has no value"},
    {"defaults:\n  attempts: 0\n", 2, 13, "attempts is 1 to 1000, not '0'"},
    {"defaults:\n  attempts: 0x10\n", 2, 13, "attempts wants a whole number such as 10, not '0x10'"},
    {"defaults:\n  attempts: 99999999999999999999\n", 2, 13, "attempts wants a whole number"},
    {"defaults:\n  two_phase: yes\n", 2, 14, "two_phase is true or false, not 'yes'"},
    {"defaults:\n  two_phase: \"true\"\n", 2, 14, "two_phase is true or false without quotes"},
    {"defaults:\n  two_phase: [true]\n", 2, 14, "two_phase wants a truth value such as true, not a list"},
    {"mode: shaddow\n", 1, 7, "mode is enforce or shadow, not 'shaddow'; did you mean 'shadow'?"},
    {"defaults:\n  capability: stripe\n", 2, 15, "capability is none, idempotent or query, not 'stripe'"},
    {"defaults:\n  on_unknown: Hold\n", 2, 15, "on_unknown is hold, retry or skip, not 'Hold'; did you mean 'hold'?"},
    {"zone: Europe/Pari\n", 1, 7, "there is no time zone 'Europe/Pari'; did you mean 'Europe/Paris'?"},
    {"workflows:\n  a: {zone: new york}\n", 2, 13, "did you mean 'America/New_York'?"},
    {"zone: Nowhere/Land\n", 1, 7, "write an IANA name such as Europe/Paris"},
    {"zone: \"UTC\\0\"\n", 1, 7, "there is no time zone"},
    {"defaults:\n  ignore: trace_id\n", 2, 11, "ignore wants a list of names such as [trace_id], not the text 'trace_id'"},
    {"defaults:\n  ignore: [a, b, a]\n", 2, 18, "ignore names 'a' twice"},
    {"defaults:\n  ignore: [a, [b]]\n", 2, 15, "each item of ignore is the name of a field"},
    {"defaults:\n  ignore: [a, ~]\n", 2, 15, "each item of ignore is the name of a field"},
    {"workflows:\n  a:\n    key: \"{lead_id}{day}\"\n", 3, 10,
     "{day} at character 10 of the key: it follows another placeholder directly"},
    {"workflows:\n  a:\n    key: nightly\n", 3, 10, "this key never changes"},
    {"workflows:\n  a:\n    key: 'x:{uuid}'\n", 3, 10, "{uuid} at character 3 of the key: a key made at call time never repeats"},
    {"workflows:\n  a:\n    time: at\n    key: '{billing:40}'\n", 4, 10, "from 1 to 31"},
    {"workflows:\n  a:\n    key: '{window:15m}'\n", 3, 10, "'time:'"},
    {"workflows:\n  a:\n    key: {lead_id}\n", 3, 10,
     "key wants text such as \"followup:{lead_id}:{day}\", not a mapping; text that begins with {"},
    {"workflows:\n  a:\n    key: {lead_id}:{day}\n", 3, 0, "a key that begins with '{' needs quotes"},
    {"workflows:\n  a:\n    key: ''\n", 3, 10, "key wants text such as"},
    {"defaults: {key: '{window}'}\nworkflows:\n  a:\n    time: at\n", 4, 11,
     "{window} at character 1 of the key: write {window:15m}"},
    {"workflows:\n  a:\n    window: 24h\n", 3, 13, "add capability: idempotent"},
    {"defaults: {window: 24h}\n", 1, 20, "add capability: idempotent"},
    {"workflows:\n  'a b':\n    lease: 5s\n", 2, 3, "letters, digits, '.', '_' or '-', not 'a b'"},
    {"workflows:\n  '':\n", 2, 3, "the name of a workflow is 1 to 64"},
    {"workflows:\n  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:\n", 2, 3,
     "the name of a workflow is 1 to 64"},
    {"workflows:\n  a: 60s\n", 2, 6, "workflow 'a' wants settings such as lease: 60s, not text"},
    {"workflows:\n  a: [x]\n", 2, 6, "workflow 'a' wants settings such as lease: 60s, not a list"},
    {"workflows: [a]\n", 1, 12, "workflows wants settings such as {followup: {lease: 60s}}, not a list"},
    {"defaults: 60s\n", 1, 11, "defaults wants settings such as {lease: 60s}, not the text '60s'"},
    {"? [a, b]\n: c\n", 1, 3, "the name of a setting is wanted here"},
    {"workflows:\n  ? {a: b}\n  : c\n", 2, 5, "the name of a workflow"},
    {"- version: 1\n", 1, 1, "a policy is settings such as 'version: 1', not a list"},
    {"hello\n", 1, 1, "not text"},
    {"defaults: &base\n  lease: 5s\n", 1, 0, "anchors (&name) are not allowed"},
    {"workflows: {a: *nobody}\n", 1, 16, "aliases (*name) are not allowed"},
    {"*a : 1\n", 1, 1, "aliases (*name) are not allowed"},
    {"zone: !!str UTC\n", 1, 7, "tags (!name) are not allowed"},
    {"defaults: !map {lease: 5s}\n", 1, 11, "tags (!name) are not allowed"},
    {"version: 1\n---\nversion: 1\n", 2, 1, "a second document begins here"},
    {"defaults:\n\tlease: 5s\n", 2, 1, "a tab in the indentation; YAML wants spaces"},
    {"defaults:\n  lease: 5s\n keep: 1d\n", 3, 0, "this is not YAML"},
    {"zone: \"UTC\nmode: shadow\n", 3, 0, "this is not YAML"},
    {"zone: \"\\q\"\n", 1, 0, "this is not YAML"},
    {"defaults: {lease: 5s\n", 2, 0, "this is not YAML"},
    {"zone: UTC\nmode: \x01\n", 2, 7, "control characters are not allowed"},
    {"zone: UTC\nmode: é\xff\n", 2, 8, "not UTF-8"},
    {"a: [[[[[[[[[[[[1]]]]]]]]]]]]\n", 1, 11, "nested more than 8 deep"},
    {"<<: {lease: 5s}\n", 1, 1, "unknown setting '<<'"},
    {"\xFF\xFEz\x00o\x00", 1, 1, "not UTF-8"},
};

enum { BAD_COUNT = sizeof bad_documents / sizeof *bad_documents };

static void check_bad(size_t i)
{
    struct policy *policy = NULL;
    struct yaml_problems problems;
    CHECK_INT(policy_parse(bytes_of(bad_documents[i].text), &policy, &problems), INVALID);
    CHECK(policy == NULL);
    CHECK(problems.count >= 1);
    const struct yaml_problem *first = &problems.at[0];
    bool good = strstr(first->text, bad_documents[i].fragment) != NULL && first->line == bad_documents[i].line &&
                (bad_documents[i].column == 0 || first->column == bad_documents[i].column);
    if (!good || problems.count > 1)
        check_fail(__FILE__, __LINE__, "%s%zu problems, %zu:%zu: %s; want %zu:%zu %s", bad_documents[i].text, problems.count,
                   first->line, first->column, first->text, bad_documents[i].line, bad_documents[i].column,
                   bad_documents[i].fragment);
}

TEST(a_bad_document_is_refused_once_with_its_place_and_the_fix)
{
    hash_setup();
    for (size_t i = 0; i < BAD_COUNT; i++)
        check_bad(i);
}

TEST(all_problems_are_told_at_once_in_order_of_line)
{
    struct policy *policy;
    struct yaml_problems problems;
    hash_setup();
    CHECK_INT(policy_parse(BYTES("workflows:\n  b: {lease: 1}\n  a: {leese: 5s, keep: x}\ndefaults:\n  mode: off\nzone: X\n"),
                           &policy, &problems),
              INVALID);
    CHECK_INT(problems.count, 5);
    static const size_t lines[] = {2, 3, 3, 5, 6};
    for (size_t i = 0; i < 5; i++)
        CHECK_INT(problems.at[i].line, lines[i]);
    CHECK(problems.at[1].column < problems.at[2].column);
}

TEST(of_very_many_problems_the_first_twenty_by_line_are_told)
{
    struct buf text;
    struct policy *policy;
    struct yaml_problems problems;
    hash_setup();
    buf_init(&text, POLICY_SIZE_MAX);
    buf_add_cstr(&text, "workflows:\n");
    for (int i = 0; i < 5000; i++)
        buf_printf(&text, "  w%d: {zone: Europe/Pari%d}\n", 9999 - i, i);
    CHECK_INT(policy_parse(buf_bytes(&text), &policy, &problems), INVALID);
    CHECK_INT(problems.count, YAML_PROBLEMS_MAX);
    for (size_t i = 0; i < YAML_PROBLEMS_MAX; i++)
        CHECK_INT(problems.at[i].line, i + 2);
    buf_release(&text);
}

static void check_refused(struct bytes text, const char *fragment)
{
    struct policy *policy;
    struct yaml_problems problems;
    CHECK_INT(policy_parse(text, &policy, &problems), INVALID);
    if (strstr(problems.at[0].text, fragment) == NULL)
        check_fail(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", problems.at[0].text, fragment);
}

TEST(documents_beyond_the_limits_are_refused)
{
    struct buf text;
    hash_setup();
    check_refused(BYTES("zone: UTC\nmo\0de: shadow\n"), "a NUL character");
    buf_init(&text, 2 * POLICY_SIZE_MAX);
    while (text.len <= POLICY_SIZE_MAX)
        buf_add_cstr(&text, "# a comment\n");
    check_refused(buf_bytes(&text), "at most 262144 are read");
    buf_clear(&text);
    buf_add_cstr(&text, "workflows:\n");
    for (int i = 0; i <= POLICY_WORKFLOWS_MAX; i++)
        buf_printf(&text, " w%d:\n", i);
    check_refused(buf_bytes(&text), "at most 10000 are read");
    buf_clear(&text);
    buf_add_cstr(&text, "defaults: {ignore: [");
    for (int i = 0; i < 65; i++)
        buf_printf(&text, "f%d,", i);
    buf_add_cstr(&text, "]}\n");
    check_refused(buf_bytes(&text), "ignore has 65 names; at most 64 are read");
    buf_release(&text);
}

static void check_flood(const char *piece)
{
    struct buf text;
    struct policy *policy = NULL;
    struct yaml_problems problems;
    buf_init(&text, POLICY_SIZE_MAX);
    while (text.len + strlen(piece) <= POLICY_SIZE_MAX)
        buf_add_cstr(&text, piece);
    enum status status = policy_parse(buf_bytes(&text), &policy, &problems);
    CHECK(status == INVALID || status == OK);
    CHECK(status == OK || problems.count > 0);
    if (status == OK)
        policy_free(policy);
    buf_release(&text);
}

TEST(floods_of_one_character_end_in_an_answer)
{
    static const char *const pieces[] = {"[", "{", "- ",    "? ",  "a: ", "&a ", "*a ", "!!",    "'",       "\"",   "\n", "\t",
                                         "#", "%", "---\n", "|\n", "{a,", "[a,", ": ",  "a:\n ", "a: {}\n", "[]: ", "\\", "@"};
    hash_setup();
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        check_flood(pieces[i]);
}

static void check_clean(struct bytes text)
{
    struct policy *policy;
    struct yaml_problems problems;
    enum status status = policy_parse(text, &policy, &problems);
    if (status == OK) {
        policy_free(policy);
        return;
    }
    CHECK_INT(status, INVALID);
    CHECK(problems.count > 0 && problems.count <= YAML_PROBLEMS_MAX);
    for (size_t i = 0; i < problems.count; i++) {
        CHECK(problems.at[i].line >= 1 && problems.at[i].column >= 1);
        CHECK(bytes_is_utf8(bytes_of(problems.at[i].text)));
    }
}

TEST(every_cut_and_every_changed_byte_of_a_document_ends_in_an_answer)
{
    static const char bytes[] = "\0\t\n\"'{}[]:#&*!%-? \x80\xff~0";
    char text[sizeof whole_example];
    size_t len = sizeof whole_example - 1;
    hash_setup();
    for (size_t i = 0; i <= len; i++)
        check_clean((struct bytes){whole_example, i});
    for (size_t i = 0; i < len; i++) {
        for (size_t b = 0; b < sizeof bytes - 1; b++) {
            memcpy(text, whole_example, sizeof text);
            text[i] = bytes[b];
            check_clean((struct bytes){text, len});
        }
    }
}

TEST(a_problem_shows_no_control_characters)
{
    struct policy *policy;
    struct yaml_problems problems;
    hash_setup();
    CHECK_INT(policy_parse(BYTES("mode: \"\\e[31mred\\x9b\"\n"), &policy, &problems), INVALID);
    CHECK(strstr(problems.at[0].text, "'?[31mred?\?'") != NULL);
}

TEST(every_row_of_the_settings_table_is_complete)
{
    hash_setup();
    CHECK_INT(policy_setting_count, 21);
    for (size_t i = 0; i < policy_setting_count; i++) {
        const struct setting *setting = &policy_settings[i];
        CHECK(setting->name != NULL && setting->help != NULL && setting->example != NULL && setting->places != 0);
        CHECK(setting->help[strlen(setting->help) - 1] == '.');
        char text[256];
        bool window = strcmp(setting->name, "window") == 0, timed = strcmp(setting->name, "key") == 0;
        snprintf(text, sizeof text, "%s%s: %s%s%s\n", (setting->places & POLICY_TOP) != 0 ? "" : "defaults: {", setting->name,
                 setting->example,
                 window  ? ", capability: idempotent"
                 : timed ? ", time: at"
                         : "",
                 (setting->places & POLICY_TOP) != 0 ? "" : "}");
        policy_free(parse(text));
    }
}

TEST(mcp_servers_are_read_with_their_tools_and_checked)
{
    static const char text[] = "destinations: {m: {provider: http, url: \"https://mcp.example.com\"}}\n"
                               "mcp:\n"
                               "  mail:\n"
                               "    destination: m\n"
                               "    annotations: ignore\n"
                               "    calls_per_run: 5\n"
                               "    tools:\n"
                               "      send mail: {key: [to, template], on_error: hold}\n"
                               "      look: {read_only: true, repeat: 5s}\n"
                               "      answer: {answers: {action: reply, thread: ticket, question: message.id}}\n"
                               "  files: {workflow: w}\n";
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"mcp: {a: {destination: nowhere}}", "no HTTP destination"},
        {"mcp: {a: {key: [x]}}", "under a tool"},
        {"destinations: {m: {provider: http, url: \"https://mcp.example.com\"}}\nmcp: {a: {destination: m, command: [x]}}",
         "either a destination or a command"},
        {"mcp: {a: {command: []}}", "command"},
        {"mcp: {a: {env: {A: b}}}", "'env' goes with a command"},
        {"mcp: {a: {cwd: /, idle: 5m}}", "'cwd' goes with a command"},
        {"mcp: {a: {command: [x], cwd: here}}", "begins with '/'"},
        {"mcp: {a: {command: [x], env: {A: \"secret:../x\"}}}", "env wants names"},
        {"mcp: {a: {command: [x], processes: 0}}", "processes"},
        {"mcp: {a: {tools: {t: {window: 5m}}}}", "under a server"},
        {"mcp: {a: {tools: {t: 5}}}", "wants settings"},
        {"mcp: {a: {tools: {t: {}, t: {}}}}", "twice"},
        {"mcp: {a: {path: mcp}}", "begins with '/'"},
        {"mcp: {a: {anotations: ignore}}", "annotations"},
        {"mcp: {a: {tools: {t: {answers: {thread: x}}}}}", "wants an action"},
        {"mcp: {a: {tools: {t: {answers: {action: reply, question: x}}}}}", "thread or event"},
        {"mcp: {a: {tools: {t: {answers: {action: reply, thread: x, key: [x]}}}}}", "under a tool"},
        {"mcp: {a: {tools: {t: {thread: x}}}}", "under answers of a tool"},
        {"mcp: {a: {tools: {t: {answers: {action: reply, thread: x}, key: [x]}}}}", "leave 'key' out"},
        {"mcp: {a: {tools: {t: {answers: {action: reply, thread: x}, repeat: 0s}}}}", "leave 'repeat' out"},
        {"mcp: {a: {tools: {t: {answers: {action: reply, thread: x}, read_only: true}}}}", "does not only read"},
    };
    struct yaml_problems problems;
    struct policy *policy;
    hash_setup();
    CHECK(policy_parse(bytes_of(text), &policy, &problems) == OK);
    const struct mcp_server_rules *mail = policy_mcp(policy, BYTES("mail")), *files = policy_mcp(policy, BYTES("files"));
    CHECK(policy_mcp(policy, BYTES("other")) == NULL);
    CHECK_TEXT(mail->workflow, "mcp.mail");
    CHECK_TEXT(mail->path, "/mcp");
    CHECK_TEXT(files->workflow, "w");
    CHECK(!mail->trust && files->trust);
    CHECK_INT(mail->calls_per_run, 5);
    CHECK_INT(files->window_us, 600 * 1000000LL);
    const struct mcp_tool_rules *send = mcp_tool_find(mail, BYTES("send mail")), *look = mcp_tool_find(mail, BYTES("look"));
    CHECK(send->key_count == 2 && send->on_error == MCP_ON_ERROR_HOLD && send->repeat_us == -1);
    CHECK(look->read_only == MCP_YES && look->repeat_us == 5 * 1000000LL && look->answers == NULL);
    const struct mcp_answers *answers = mcp_tool_find(mail, BYTES("answer"))->answers;
    CHECK(answers != NULL && answers->event.at == NULL);
    CHECK_TEXT(answers->action, "reply");
    CHECK_TEXT(answers->thread, "ticket");
    CHECK_TEXT(answers->question, "message.id");
    policy_free(policy);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        enum status status = policy_parse(bytes_of(bad[i].text), &policy, &problems);
        if (status != INVALID || strstr(problems.at[0].text, bad[i].says) == NULL)
            check_fail(__FILE__, __LINE__, "%s: %s", bad[i].text, status == OK ? "was taken" : problems.at[0].text);
    }
}

/* ---- sources ---- */

TEST(sources_are_found_by_name_and_forward_to_destinations_of_the_policy)
{
    struct policy *policy;
    static struct yaml_problems problems;
    hash_setup();
    CHECK_INT(policy_parse(BYTES("destinations:\n  agent: {provider: http, url: \"https://a.example\"}\n"
                                 "sources:\n  wa: {preset: whatsapp, secret: env:A, forward: agent}\n  form: {verify: none}\n"),
                           &policy, &problems),
              OK);
    CHECK_INT(policy->source_count, 2);
    CHECK_TEXT(policy_source(policy, BYTES("wa"))->preset, "whatsapp");
    CHECK_TEXT(policy_source(policy, BYTES("wa"))->forward, "agent");
    CHECK(policy_source(policy, BYTES("form"))->verify_none);
    CHECK(policy_source(policy, BYTES("nobody")) == NULL);
    CHECK(policy_source(policy, BYTES("")) == NULL);
    policy_free(policy);
    CHECK_INT(policy_parse(BYTES("destinations:\n  agent: {provider: http, url: \"https://a.example\"}\n"
                                 "sources:\n  form: {verify: none, forward: agnt}\n  form: {verify: none}\n"),
                           &policy, &problems),
              INVALID);
    CHECK(strstr(problems.at[0].text, "did you mean 'agent'") != NULL);
    CHECK(strstr(problems.at[1].text, "is given twice") != NULL);
}
