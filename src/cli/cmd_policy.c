#include <stdio.h>

#include "base/when.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "destination/destination_read.h"
#include "policy/policy.h"
#include "receive/source_read.h"

/* ---- check ---- */

static void write_problem(const struct yaml_problem *problem, const char *file, struct buf *buf)
{
    struct json_out out = json_out_to(buf);
    json_open(&out, '{');
    json_name(&out, "file");
    json_cstr(&out, file);
    json_name(&out, "line");
    json_i64(&out, (int64_t)problem->line);
    json_name(&out, "column");
    json_i64(&out, (int64_t)problem->column);
    json_name(&out, "text");
    json_cstr(&out, problem->text);
    json_close(&out, '}');
}

static void print_problem(struct cli *cli, const char *file, const struct yaml_problem *problem)
{
    if (!cli_on(cli, "--json")) {
        print_line("%s:%zu:%zu: %s", file, problem->line, problem->column, problem->text);
        return;
    }
    struct buf buf;
    buf_init(&buf, 64 << 10);
    write_problem(problem, file, &buf);
    print_json_buf(&buf);
    buf_release(&buf);
}

/* Reads and checks a policy file, printing its problems. */
static int check_file(struct cli *cli, struct policy **ret_policy, struct bytes *ret_text)
{
    const char *file = cli->arguments[0];
    struct yaml_problems problems = {0};
    int code = cli_read_file(cli, file, POLICY_SIZE_MAX, ret_text);
    if (code != CLI_OK)
        return code;
    enum status status = policy_parse(*ret_text, ret_policy, &problems);
    if (status == OK)
        return CLI_OK;
    if (status != INVALID)
        return cli_fail(CLI_INTERNAL, "there is not enough memory to read the policy.");
    for (size_t i = 0; i < problems.count; i++)
        print_problem(cli, file, &problems.at[i]);
    return cli_fail(CLI_CONFIG, "%s has %zu problem%s. Correct it and try again.", file, problems.count,
                    problems.count == 1 ? "" : "s");
}

/* What is allowed but unwise. */
static void print_warnings(const char *file, const struct policy *policy)
{
    struct why why;
    for (size_t i = 0; i < policy->source_count; i++)
        if (source_warning(&policy->sources[i], &why))
            cli_note("%s:%zu: warning: %s", file, policy->sources[i].line, why.text);
}

static void print_checked(const char *file, const struct policy *policy)
{
    char hex[2 * HASH_SIZE];
    struct buf buf;
    buf_init(&buf, 64 << 10);
    struct json_out out = json_out_to(&buf);
    bytes_to_hex(hash_bytes(&policy->hash), hex);
    json_open(&out, '{');
    json_name(&out, "file");
    json_cstr(&out, file);
    json_name(&out, "hash");
    json_text(&out, (struct bytes){hex, sizeof hex});
    json_name(&out, "workflows");
    json_i64(&out, (int64_t)policy->workflow_count);
    json_name(&out, "destinations");
    json_i64(&out, (int64_t)policy->destination_count);
    json_name(&out, "sources");
    json_i64(&out, (int64_t)policy->source_count);
    json_close(&out, '}');
    print_json_buf(&buf);
    buf_release(&buf);
}

int policy_check_run(struct cli *cli)
{
    struct policy *policy;
    struct bytes text;
    int code = check_file(cli, &policy, &text);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json"))
        print_checked(cli->arguments[0], policy);
    else
        print_line("%s is right: %zu workflow%s, %zu destination%s, %zu source%s", cli->arguments[0], policy->workflow_count,
                   policy->workflow_count == 1 ? "" : "s", policy->destination_count, policy->destination_count == 1 ? "" : "s",
                   policy->source_count, policy->source_count == 1 ? "" : "s");
    print_warnings(cli->arguments[0], policy);
    policy_free(policy);
    return CLI_OK;
}

/* ---- apply ---- */

/* A daemon of another version may find problems that this program does not know. */
static void print_remote_problems(const struct json *problems)
{
    for (uint32_t i = 0; problems != NULL && problems->type == JSON_ARRAY && i < problems->count; i++) {
        const struct json *line = json_get(&problems->items[i], BYTES("line")),
                          *text = json_get(&problems->items[i], BYTES("text"));
        if (line != NULL && text != NULL && text->type == JSON_STRING)
            print_line("line %.*s: %.*s", BYTES_ARG(line->raw), BYTES_ARG(text->text));
    }
}

static int send_policy(struct cli *cli, struct bytes text)
{
    struct client_reply reply;
    const struct client_request request = {
        .method = "PUT", .path = BYTES("/v1/policy"), .body = text, .content_type = "application/yaml"};
    int code = client_send(cli, &request, &reply);
    if (code != CLI_OK)
        return code;
    if (reply.status != 200 || !reply.is_json) {
        if (reply.is_json && !cli_on(cli, "--json"))
            print_remote_problems(json_get(&reply.json, BYTES("problems")));
        return client_problem(cli, &reply);
    }
    const struct json *changed = json_get(&reply.json, BYTES("changed"));
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    else
        print_line("policy %.*s %s", BYTES_ARG(print_field(cli, &reply.json, "version")),
                   changed != NULL && changed->type == JSON_FALSE ? "was already in force" : "is in force");
    struct bytes stranded = print_field(cli, &reply.json, "stranded");
    if (stranded.len > 0 && !bytes_is(stranded, "0"))
        cli_note("%.*s effects wait for a destination that this policy does not have: semel effects ls", BYTES_ARG(stranded));
    return CLI_OK;
}

int policy_apply_run(struct cli *cli)
{
    struct policy *policy;
    struct bytes text;
    int code = check_file(cli, &policy, &text);
    if (code != CLI_OK)
        return code;
    print_warnings(cli->arguments[0], policy);
    policy_free(policy);
    return send_policy(cli, text);
}

/* ---- backtest ---- */

const struct cli_option policy_backtest_options[] = {
    {"--since", "TIME", CLI_DURATION, "How far to look back.", "7d", NULL, NULL, false},
    {"--slice", "TIME", CLI_DURATION, "How long to work before it says how far it is, at most 20s.", "2s", NULL, NULL, false},
    {0},
};

static void print_examples(struct cli *cli, const struct json *examples)
{
    static const char *const headings[] = {"EVENT", "SOURCE", "WAS", "WOULD BE", "SCORE", "FIRST", "BECAUSE"};
    struct table table;
    table_init(&table, &cli->arena, headings, sizeof headings / sizeof *headings);
    for (uint32_t i = 0; i < examples->count; i++) {
        const struct json *one = &examples->items[i];
        const struct bytes cells[] = {print_field(cli, one, "event"),  print_field(cli, one, "source"),
                                      print_field(cli, one, "was"),    print_field(cli, one, "would"),
                                      print_field(cli, one, "score"),  print_field(cli, one, "first"),
                                      print_field(cli, one, "because")};
        table_add(&table, cells, COLOUR_NONE);
    }
    if (examples->count > 0)
        table_print(&table);
}

static void print_backtest(struct cli *cli, const struct json *json)
{
    const struct json *verdicts = json_get(json, BYTES("verdicts")), *examples = json_get(json, BYTES("examples"));
    print_line("%.*s events since %.*s, %.*s of them decided otherwise%s", BYTES_ARG(print_field(cli, json, "events")),
               BYTES_ARG(print_field(cli, json, "since")), BYTES_ARG(print_field(cli, json, "changed")),
               bytes_is(print_field(cli, json, "whole"), "true")
                   ? ""
                   : " (there are more, but no more of them can be remembered at once)");
    for (uint32_t i = 0; verdicts != NULL && verdicts->type == JSON_ARRAY && i < verdicts->count; i++) {
        const struct json *one = &verdicts->items[i];
        print_line("  %-10.*s -> %-10.*s %.*s", BYTES_ARG(print_field(cli, one, "was")),
                   BYTES_ARG(print_field(cli, one, "would")), BYTES_ARG(print_field(cli, one, "count")));
    }
    if (examples != NULL && examples->type == JSON_ARRAY)
        print_examples(cli, examples);
}

/* Events need not be spread evenly, so how far it is in time is only about how far it is. */
static void print_progress(struct cli *cli, const struct json *json)
{
    int64_t since_us = print_time_of(json, "since"), until_us = print_time_of(json, "until"), at_us = print_time_of(json, "at");
    int64_t percent = until_us > since_us ? (at_us - since_us) * 100 / (until_us - since_us) : 0;
    cli_note("%.*s events decided again, up to %.*s (about %lld%%), %.*s of them otherwise",
             BYTES_ARG(print_field(cli, json, "events")), BYTES_ARG(print_field(cli, json, "at")), (long long)percent,
             BYTES_ARG(print_field(cli, json, "changed")));
}

static int ask_slice(struct cli *cli, const char *path, const char *since, struct bytes text, struct client_reply *ret_reply)
{
    struct buf buf;
    buf_init(&buf, 1024);
    buf_add_cstr(&buf, path);
    client_query_add(&buf, "slice", cli_text(cli, "--slice"));
    client_query_add(&buf, "since", since);
    const struct client_request request = {.method = "POST",
                                           .path = arena_dup(&cli->arena, buf_bytes(&buf)),
                                           .body = text,
                                           .content_type = "application/yaml",
                                           .wait_us = cli_duration_us(cli, "--slice", 0)};
    buf_release(&buf);
    return client_call(cli, &request, ret_reply);
}

int policy_backtest_run(struct cli *cli)
{
    struct policy *policy;
    struct bytes text, next;
    struct client_reply reply;
    int code = check_file(cli, &policy, &text);
    if (code != CLI_OK)
        return code;
    policy_free(policy);
    code = ask_slice(cli, "/v1/policy/backtest", cli_text(cli, "--since"), text, &reply);
    while (code == CLI_OK && (next = print_field(cli, &reply.json, "next")).len > 0) {
        char path[64];
        print_progress(cli, &reply.json);
        snprintf(path, sizeof path, "/v1/policy/backtest/%.*s", BYTES_ARG(next));
        code = ask_slice(cli, path, NULL, BYTES_NONE, &reply);
    }
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    else
        print_backtest(cli, &reply.json);
    return CLI_OK;
}

/* ---- show ---- */

int policy_show_run(struct cli *cli)
{
    struct client_reply reply;
    int code = client_call(cli, &(struct client_request){.method = "GET", .path = BYTES("/v1/policy")}, &reply);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json")) {
        print_json(&reply.json);
        return CLI_OK;
    }
    /* The text itself is the output, so that it can be edited and applied; where it comes from goes to stderr. */
    const struct json *text = json_get(&reply.json, BYTES("text"));
    if (text == NULL || text->type != JSON_STRING || text->text.len == 0) {
        cli_note("no policy was applied yet: the defaults hold. See: semel policy settings");
        return CLI_OK;
    }
    cli_note("policy %.*s, applied %.*s by %.*s", BYTES_ARG(print_field(cli, &reply.json, "version")),
             BYTES_ARG(print_field(cli, &reply.json, "applied_at")), BYTES_ARG(print_field(cli, &reply.json, "actor")));
    fwrite(text->text.at, 1, text->text.len, stdout);
    return CLI_OK;
}

/* ---- settings ---- */

static const char *const kind_names[] = {
    [SETTING_TEXT] = "text",         [SETTING_FORM] = "text",
    [SETTING_DURATION] = "duration", [SETTING_INTEGER] = "number",
    [SETTING_SWITCH] = "true/false", [SETTING_CHOICE] = "choice",
    [SETTING_LIST] = "list",         [SETTING_TEXTS] = "text or list",
    [SETTING_GROUP] = "mapping",     [SETTING_GROUPS] = "list of mappings",
};

static const char *kind_name(const struct setting *setting)
{
    return setting->kind == SETTING_FORM ? setting->form->shown : kind_names[setting->kind];
}

static struct bytes setting_values(struct cli *cli, const struct setting *setting)
{
    struct buf buf;
    buf_init(&buf, 4096);
    if (setting->kind == SETTING_CHOICE) {
        for (size_t i = 0; setting->names[i] != NULL; i++)
            buf_printf(&buf, "%s%s", i > 0 ? " | " : "", setting->names[i]);
    } else if (setting->kind == SETTING_DURATION && setting->max > 0) {
        char min[32], max[32];
        when_format_duration(setting->min, min);
        when_format_duration(setting->max, max);
        buf_printf(&buf, "%s to %s", min, max);
    } else if (setting->kind == SETTING_INTEGER && setting->max > 0) {
        buf_printf(&buf, "%lld to %lld", (long long)setting->min, (long long)setting->max);
    } else {
        buf_add_cstr(&buf, kind_name(setting));
    }
    struct bytes text = arena_dup(&cli->arena, buf_bytes(&buf));
    buf_release(&buf);
    return text;
}

/* Which table a setting is of. */
enum setting_of { OF_POLICY, OF_DESTINATION, OF_MCP, OF_SOURCE };

static const char *place_name(unsigned places, enum setting_of of)
{
    if (of == OF_MCP)
        return mcp_place_names[places];
    if (of != OF_POLICY)
        return of == OF_DESTINATION ? "destination" : "source";
    if (places == POLICY_TOP)
        return "top";
    return places == POLICY_WORKFLOW ? "workflow" : "both";
}

static void print_setting_json(struct cli *cli, const struct setting *setting, enum setting_of of)
{
    struct buf buf;
    buf_init(&buf, 64 << 10);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    json_name(&out, "name");
    json_cstr(&out, setting->name);
    json_name(&out, "kind");
    json_cstr(&out, kind_name(setting));
    json_name(&out, "values");
    json_text(&out, setting_values(cli, setting));
    json_name(&out, "default");
    json_cstr(&out, setting->default_text);
    json_name(&out, "example");
    json_cstr(&out, setting->example);
    json_name(&out, "top");
    json_bool(&out, of == OF_POLICY && (setting->places & POLICY_TOP) != 0);
    json_name(&out, "workflow");
    json_bool(&out, of == OF_POLICY && (setting->places & POLICY_WORKFLOW) != 0);
    json_name(&out, "destination");
    json_bool(&out, of == OF_DESTINATION);
    json_name(&out, "mcp");
    json_cstr(&out, of == OF_MCP ? place_name(setting->places, of) : NULL);
    json_name(&out, "source");
    json_bool(&out, of == OF_SOURCE);
    json_name(&out, "help");
    json_cstr(&out, setting->help);
    json_close(&out, '}');
    print_json_buf(&buf);
    buf_release(&buf);
}

static void show_setting(struct cli *cli, const struct setting *setting, enum setting_of of, struct table *table)
{
    if (cli_on(cli, "--json")) {
        print_setting_json(cli, setting, of);
        return;
    }
    const struct bytes cells[] = {bytes_of(setting->name), bytes_of(place_name(setting->places, of)),
                                  setting_values(cli, setting),
                                  bytes_of(setting->default_text != NULL ? setting->default_text : "-"), bytes_of(setting->help)};
    table_add(table, cells, COLOUR_NONE);
}

int policy_settings_run(struct cli *cli)
{
    static const char *const headings[] = {"SETTING", "WHERE", "VALUES", "DEFAULT", "MEANING"};
    struct table table;
    table_init(&table, &cli->arena, headings, sizeof headings / sizeof *headings);
    for (size_t i = 0; i < policy_setting_count; i++)
        show_setting(cli, &policy_settings[i], OF_POLICY, &table);
    for (size_t i = 0; i < destination_setting_count; i++)
        show_setting(cli, &destination_settings[i], OF_DESTINATION, &table);
    for (size_t i = 0; i < mcp_setting_count; i++)
        show_setting(cli, &mcp_settings[i], OF_MCP, &table);
    for (size_t i = 0; i < source_setting_count; i++)
        show_setting(cli, &source_settings[i], OF_SOURCE, &table);
    if (!cli_on(cli, "--json"))
        table_print(&table);
    return CLI_OK;
}
