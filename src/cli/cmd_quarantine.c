#include "cli/client.h"
#include "cli/commands.h"
#include "cli/print.h"

const struct cli_option quarantine_lift_options[] = {
    {"--reason", "TEXT", CLI_TEXT, "Why it is safe; kept in the decision log.", NULL, NULL, NULL, true},
    {0},
};

int quarantine_lift_run(struct cli *cli)
{
    struct client_reply reply;
    struct buf body;
    buf_init(&body, 64 << 10);
    struct json_out out = json_out_to(&body);
    json_open(&out, '{');
    json_name(&out, "reason");
    json_cstr(&out, cli_text(cli, "--reason"));
    json_close(&out, '}');
    if (body.failed) {
        buf_release(&body);
        return cli_fail(CLI_DATA, "--reason is too long.");
    }
    struct client_request request = {.method = "POST", .path = BYTES("/v1/quarantine/lift"), .body = buf_bytes(&body)};
    int code = client_call(cli, &request, &reply);
    buf_release(&body);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    else
        print_line("the quarantine is lifted");
    return CLI_OK;
}
