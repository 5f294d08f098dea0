#include <stdio.h>

#include "base/when.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "env/env.h"
#include "policy/policy.h"

const struct cli_option claim_options[] = {
    {"--workflow", "NAME", CLI_TEXT, "The workflow whose rules hold; not for answers.", NULL, NULL, NULL, false},
    {"--key", "KEY", CLI_TEXT, "What makes this thing different from all others.", NULL, NULL, NULL, false},
    {"--input", "JSON", CLI_TEXT, "What it is about; - for stdin. The key can be made from it.", NULL, NULL, NULL, false},
    {"--lease", "DURATION", CLI_DURATION, "How long the claim is yours.", NULL, NULL, NULL, false},
    {"--wait", "DURATION", CLI_DURATION, "How long to wait for another holder to finish.", NULL, NULL, NULL, false},
    {"--keep", "DURATION", CLI_DURATION, "How long the result is kept.", NULL, NULL, NULL, false},
    {"--run", "ID", CLI_TEXT, "The run that this is part of.", NULL, NULL, NULL, false},
    {"--thread", "ID", CLI_TEXT, "The thread that this is part of.", NULL, NULL, NULL, false},
    {"--action", "NAME", CLI_TEXT, "What will be done; with --thread or --event and no key: an answer.", NULL, NULL, NULL, false},
    {"--event", "ID", CLI_TEXT, "The event that is answered, evt_….", NULL, NULL, NULL, false},
    {"--epoch", "N", CLI_NUMBER, "The question that is answered, as Semel-Epoch says.", NULL, NULL, NULL, false},
    {"--question", "TEXT", CLI_TEXT, "The same for a conversation that semel did not see come in.", NULL, NULL, NULL, false},
    {"--on-unknown", "WHAT", CLI_CHOICE, "What follows when nobody can tell; the policy's when not given.", NULL, NULL,
     on_unknown_names, false},
    {"--two-phase", NULL, CLI_SWITCH, "Nothing has left until you say `semel sent`.", NULL, NULL, NULL, false},
    {0},
};

static void add_text(struct json_out *out, const struct cli *cli, const char *option, const char *name)
{
    const char *text = cli_text(cli, option);
    if (text == NULL)
        return;
    json_name(out, name);
    json_cstr(out, text);
}

static void add_ms(struct json_out *out, const struct cli *cli, const char *option, const char *name)
{
    if (!cli_on(cli, option))
        return;
    json_name(out, name);
    json_i64(out, cli_duration_us(cli, option, 0) / WHEN_MS);
}

static void write_body(const struct cli *cli, const struct json *input, struct buf *buf)
{
    static const char *const texts[][2] = {
        {"--workflow", "workflow"}, {"--key", "key"},           {"--keep", "keep"},
        {"--run", "run"},           {"--thread", "thread"},     {"--action", "action"},
        {"--event", "event"},       {"--question", "question"}, {"--on-unknown", "on_unknown"}};
    struct json_out out = json_out_to(buf);
    json_open(&out, '{');
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        add_text(&out, cli, texts[i][0], texts[i][1]);
    if (cli_on(cli, "--epoch")) {
        json_name(&out, "epoch");
        json_i64(&out, cli_number(cli, "--epoch", 0));
    }
    add_ms(&out, cli, "--lease", "lease_ms");
    add_ms(&out, cli, "--wait", "wait_ms");
    if (cli_on(cli, "--two-phase")) {
        json_name(&out, "two_phase");
        json_bool(&out, true);
    }
    if (input != NULL) {
        json_name(&out, "input");
        json_raw(&out, input->raw);
    }
    json_close(&out, '}');
}

static void print_proceed(struct cli *cli, const struct json *json)
{
    int64_t until_us = print_time_of(json, "lease_until");
    char until[32] = "?";
    if (until_us != 0)
        print_when(until_us, env_real_wall_us(), until);
    struct bytes would = print_field(cli, json_get(json, BYTES("shadow")), "would");
    print_line("proceed %.*s fence %.*s until %s (downstream key %.*s)%s%.*s", BYTES_ARG(print_field(cli, json, "intent")),
               BYTES_ARG(print_field(cli, json, "fence")), until, BYTES_ARG(print_field(cli, json, "downstream_key")),
               would.len > 0 ? " shadow: would have been " : "", BYTES_ARG(would));
}

/* The result is the output, so that a duplicate gives what the first one gave; how it came about goes to stderr. */
static void print_replay(const struct json *json)
{
    int64_t now_us = env_real_wall_us(), at_us = print_time_of(json, "confirmed_at");
    char at[32], ago[32];
    if (at_us != 0) {
        print_when(at_us, now_us, at);
        when_format_rough(now_us > at_us ? now_us - at_us : 0, ago);
        cli_note("already done at %s (%s ago), replaying its result.", at, ago);
    }
    const struct json *result = json_get(json, BYTES("result"));
    if (result != NULL)
        print_json(result);
    else
        puts("null");
}

/* Someone acts on "proceed", so nothing else may look like it. */
static int print_answer(struct cli *cli, const struct client_reply *reply)
{
    struct bytes answer = print_field(cli, &reply->json, "answer");
    bool proceed = bytes_is(answer, "proceed");
    if (!proceed && !bytes_is(answer, "replay"))
        return client_problem(cli, reply);
    if (cli_on(cli, "--json"))
        print_json(&reply->json);
    else if (proceed)
        print_proceed(cli, &reply->json);
    else
        print_replay(&reply->json);
    return CLI_OK;
}

static int send_claim(struct cli *cli, const struct json *input)
{
    struct buf body;
    struct client_reply reply;
    buf_init(&body, 2 * CLI_INPUT_MAX);
    write_body(cli, input, &body);
    if (body.failed) {
        buf_release(&body);
        return cli_fail(CLI_DATA, "the claim is too long.");
    }
    const struct client_request request = {
        .method = "POST", .path = BYTES("/v1/claims"), .body = buf_bytes(&body), .wait_us = cli_duration_us(cli, "--wait", 0)};
    int code = client_call(cli, &request, &reply);
    buf_release(&body);
    return code == CLI_OK ? print_answer(cli, &reply) : code;
}

int claim_run(struct cli *cli)
{
    struct json input;
    const char *text = cli_text(cli, "--input");
    bool answer = cli_on(cli, "--action") && (cli_on(cli, "--thread") || cli_on(cli, "--event")) && !cli_on(cli, "--key");
    if (!answer && !cli_on(cli, "--workflow"))
        return cli_fail(CLI_USAGE, "claim needs --workflow NAME, or --thread and --action for an answer. See: semel help claim");
    if (!answer && text == NULL && !cli_on(cli, "--key"))
        return cli_fail(CLI_USAGE, "claim needs --key KEY, or --input JSON to make the key from. See: semel help claim");
    if (text == NULL)
        return send_claim(cli, NULL);
    int code = cli_read_json(cli, "--input", text, &input);
    return code == CLI_OK ? send_claim(cli, &input) : code;
}
