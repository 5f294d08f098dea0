#include "cli/holder.h"

#include "cli/client.h"
#include "cli/print.h"

static int send_said(struct cli *cli, struct bytes path, const struct buf *body)
{
    struct client_reply reply;
    int code = client_call(cli, &(struct client_request){.method = "POST", .path = path, .body = buf_bytes(body)}, &reply);
    if (code != CLI_OK)
        return code;
    /* After `sent` someone acts on our exit code: only an answer that says how the intent stands is a success. */
    if (print_field(cli, &reply.json, "state").len == 0)
        return client_problem(cli, &reply);
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    else
        print_line("%.*s %.*s fence %.*s", BYTES_ARG(print_field(cli, &reply.json, "state")),
                   BYTES_ARG(print_field(cli, &reply.json, "intent")), BYTES_ARG(print_field(cli, &reply.json, "fence")));
    return CLI_OK;
}

int holder_say(struct cli *cli, const char *verb, holder_fields_fn *fields, const void *ctx)
{
    struct buf path, body;
    buf_init(&path, 4096);
    buf_init(&body, 2 * CLI_INPUT_MAX);
    buf_add_cstr(&path, "/v1/claims");
    client_path_add(&path, bytes_of(cli->arguments[0]));
    client_path_add(&path, bytes_of(verb));
    struct json_out out = json_out_to(&body);
    json_open(&out, '{');
    json_name(&out, "fence");
    json_i64(&out, cli_number(cli, "--fence", 0));
    if (fields != NULL)
        fields(cli, &out, ctx);
    json_close(&out, '}');
    struct bytes path_text = path.failed ? BYTES_NONE : arena_dup(&cli->arena, buf_bytes(&path));
    int code = body.failed || path_text.at == NULL ? cli_fail(CLI_DATA, "what you say is too long to be sent.")
                                                   : send_said(cli, path_text, &body);
    buf_release(&path);
    buf_release(&body);
    return code;
}
