#include "cli/client.h"
#include "cli/commands.h"
#include "cli/print.h"

const struct cli_option keys_lint_options[] = {
    {"--workflow", "NAME", CLI_TEXT, "Only this workflow; otherwise all that had claims.", NULL, NULL, NULL, false},
    {"--since", "DURATION", CLI_TEXT, "How far back to look.", "7d", NULL, NULL, false},
    {0},
};

static bool is_problem(const struct json *finding)
{
    const struct json *problem = json_get(finding, BYTES("problem"));
    return problem != NULL && problem->type == JSON_TRUE;
}

static void print_names(struct cli *cli, const struct json *names, const char *heading)
{
    struct buf text;
    if (names == NULL || names->type != JSON_ARRAY || names->count == 0)
        return;
    buf_init(&text, 16 << 10);
    for (uint32_t i = 0; i < names->count; i++) {
        buf_add_cstr(&text, i > 0 ? "  " : "");
        print_clean(&text, names->items[i].type == JSON_STRING ? names->items[i].text : BYTES(""));
    }
    print_line("           %s %.*s", heading, BYTES_ARG(buf_bytes(&text)));
    buf_release(&text);
    (void)cli;
}

static void print_finding(struct cli *cli, const struct json *finding)
{
    print_line("  %-8s %.*s", is_problem(finding) ? "problem" : "notice", BYTES_ARG(print_field(cli, finding, "text")));
    print_names(cli, json_get(finding, BYTES("examples")), "such as");
    print_names(cli, json_get(finding, BYTES("fields")), "differ:");
    print_line("           %.*s", BYTES_ARG(print_field(cli, finding, "fix")));
}

static void print_proposal(struct cli *cli, const struct json *report)
{
    const struct json *proposal = json_get(report, BYTES("proposal"));
    if (proposal == NULL || proposal->type != JSON_OBJECT)
        return;
    print_line("  try      key: \"%.*s\"", BYTES_ARG(print_field(cli, proposal, "key")));
    print_names(cli, json_get(proposal, BYTES("ignore")), "ignore:");
    print_line("           on this traffic it would have caught %.*s duplicates, joined %.*s that came more than a day later,",
               BYTES_ARG(print_field(cli, proposal, "caught")), BYTES_ARG(print_field(cli, proposal, "later")));
    print_line("           and joined %.*s that are different things.", BYTES_ARG(print_field(cli, proposal, "wrong")));
}

/* True when it has a problem. */
static bool print_report(struct cli *cli, const struct json *report)
{
    const struct json *findings = json_get(report, BYTES("findings"));
    bool problem = false;
    uint32_t count = findings != NULL && findings->type == JSON_ARRAY ? findings->count : 0;
    print_line("%.*s: %.*s keys%s", BYTES_ARG(print_field(cli, report, "workflow")),
               BYTES_ARG(print_field(cli, report, "sampled")), count == 0 ? ", nothing to complain about" : "");
    for (uint32_t i = 0; i < count; i++) {
        problem = problem || is_problem(&findings->items[i]);
        print_finding(cli, &findings->items[i]);
    }
    print_proposal(cli, report);
    return problem;
}

static int lint_one(struct cli *cli, struct bytes workflow, bool *ret_problem)
{
    struct client_reply reply;
    struct buf path;
    buf_init(&path, 8 << 10);
    buf_add_cstr(&path, "/v1/workflows");
    client_path_add(&path, workflow);
    buf_add_cstr(&path, "/lint");
    client_query_add(&path, "since", cli_text(cli, "--since"));
    int code = client_get(cli, &path, &reply);
    if (code != CLI_OK)
        return code;
    if (!cli_on(cli, "--json")) {
        *ret_problem = print_report(cli, &reply.json) || *ret_problem;
        return CLI_OK;
    }
    const struct json *findings = json_get(&reply.json, BYTES("findings"));
    for (uint32_t i = 0; findings != NULL && findings->type == JSON_ARRAY && i < findings->count; i++)
        *ret_problem = *ret_problem || is_problem(&findings->items[i]);
    print_json(&reply.json);
    return CLI_OK;
}

static int lint_all(struct cli *cli, bool *ret_problem)
{
    struct client_reply reply;
    struct buf path;
    buf_init(&path, 8 << 10);
    buf_add_cstr(&path, "/v1/workflows");
    client_query_add(&path, "since", cli_text(cli, "--since"));
    int code = client_get(cli, &path, &reply);
    if (code != CLI_OK)
        return code;
    const struct json *data = json_get(&reply.json, BYTES("data"));
    if (data == NULL || data->type != JSON_ARRAY)
        return client_problem(cli, &reply);
    if (data->count == 0)
        cli_note("no claims in this time, so there are no keys to look at.");
    for (uint32_t i = 0; i < data->count && code == CLI_OK; i++) {
        const struct json *name = json_get(&data->items[i], BYTES("workflow"));
        if (name != NULL && name->type == JSON_STRING)
            code = lint_one(cli, name->text, ret_problem);
    }
    return code;
}

int keys_lint_run(struct cli *cli)
{
    const char *workflow = cli_text(cli, "--workflow");
    bool problem = false;
    int code = workflow != NULL ? lint_one(cli, bytes_of(workflow), &problem) : lint_all(cli, &problem);
    return code != CLI_OK ? code : problem ? CLI_DATA : CLI_OK;
}
