#include "cli/lookup.h"

#include "base/id.h"
#include "cli/client.h"
#include "cli/print.h"

static int by_id(struct cli *cli, struct json *ret_intent)
{
    int64_t id;
    struct buf path;
    struct client_reply reply;
    if (!id_parse("int", bytes_of(cli->arguments[0]), &id))
        return cli_fail(CLI_USAGE, "\"%.60s\" is not the id of an intent (int_…). For a key, add --workflow NAME.",
                        cli->arguments[0]);
    buf_init(&path, 1024);
    buf_add_cstr(&path, "/v1/intents");
    client_path_add(&path, bytes_of(cli->arguments[0]));
    int code = client_get(cli, &path, &reply);
    if (code == CLI_OK)
        *ret_intent = reply.json;
    return code;
}

static int by_key(struct cli *cli, const char *workflow, struct json *ret_intent)
{
    struct buf path;
    struct client_reply reply;
    buf_init(&path, 32 << 10);
    buf_add_cstr(&path, "/v1/intents");
    client_query_add(&path, "workflow", workflow);
    client_query_add(&path, "key", cli->arguments[0]);
    int code = client_get(cli, &path, &reply);
    if (code != CLI_OK)
        return code;
    const struct json *found = json_find(&reply.json, BYTES("data.0"));
    if (found == NULL)
        return cli_fail(CLI_DATA, "no intent of %s has the key \"%.200s\". List some with: semel intents --workflow %s", workflow,
                        cli->arguments[0], workflow);
    *ret_intent = *found;
    return CLI_OK;
}

int lookup_intent(struct cli *cli, struct json *ret_intent)
{
    const char *workflow = cli_text(cli, "--workflow");
    struct json intent;
    int code = workflow != NULL ? by_key(cli, workflow, &intent) : by_id(cli, &intent);
    if (code != CLI_OK)
        return code;
    if (print_field(cli, &intent, "intent").len == 0)
        return cli_fail(CLI_UNREACHABLE, "what %s answers is no intent. Is it semel?", cli_text(cli, "--url"));
    *ret_intent = intent;
    return CLI_OK;
}
