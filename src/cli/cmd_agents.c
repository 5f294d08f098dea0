#include "cli/client.h"
#include "cli/commands.h"
#include "cli/print.h"

static int switch_agent(struct cli *cli, const char *what, const char *said)
{
    struct client_reply reply;
    struct buf path;
    buf_init(&path, 4096);
    buf_add_cstr(&path, "/v1/agents");
    client_path_add(&path, bytes_of(cli->arguments[0]));
    client_path_add(&path, bytes_of(what));
    struct bytes text = path.failed ? BYTES_NONE : arena_dup(&cli->arena, buf_bytes(&path));
    buf_release(&path);
    if (text.at == NULL)
        return cli_fail(CLI_USAGE, "that is no token's name or id. See: semel token ls");
    int code = client_call(cli, &(struct client_request){.method = "POST", .path = text}, &reply);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    else
        print_line("%s %s", said, cli->arguments[0]);
    return CLI_OK;
}

int agents_start_run(struct cli *cli)
{
    return switch_agent(cli, "start", "started");
}

int agents_stop_run(struct cli *cli)
{
    return switch_agent(cli, "stop", "stopped");
}
