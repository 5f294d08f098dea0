#include <stdio.h>

#include "access/access.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/print.h"

const struct cli_option token_create_options[] = {
    {"--name", "NAME", CLI_TEXT, "Whose token it is; it appears in the decision log.", NULL, NULL, NULL, true},
    {"--scopes", "LIST", CLI_CHOICES, "What it may do, with commas between.", NULL, NULL, scope_names, true},
    {"--expires", "DURATION", CLI_DURATION, "How long it is valid; a year when not given.", NULL, NULL, NULL, false},
    {0},
};

static void write_body(const struct cli *cli, struct buf *buf)
{
    struct json_out out = json_out_to(buf);
    struct bytes scopes = bytes_of(cli_text(cli, "--scopes"));
    json_open(&out, '{');
    json_name(&out, "name");
    json_cstr(&out, cli_text(cli, "--name"));
    json_name(&out, "scopes");
    json_open(&out, '[');
    do
        json_text(&out, bytes_cut(&scopes, ','));
    while (scopes.len > 0);
    json_close(&out, ']');
    if (cli_on(cli, "--expires")) {
        json_name(&out, "expires");
        json_cstr(&out, cli_text(cli, "--expires"));
    }
    json_close(&out, '}');
}

int token_create_run(struct cli *cli)
{
    struct client_reply reply;
    struct buf body;
    buf_init(&body, 64 << 10);
    write_body(cli, &body);
    if (body.failed) {
        buf_release(&body);
        return cli_fail(CLI_DATA, "--name is too long.");
    }
    int code = client_call(cli, &(struct client_request){.method = "POST", .path = BYTES("/v1/tokens"), .body = buf_bytes(&body)},
                           &reply);
    buf_release(&body);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json")) {
        print_json(&reply.json);
        return CLI_OK;
    }
    /* The token alone is the output, so that a script can take it. */
    cli_note("this is the only time the token is shown; keep it now. Its id is %.*s.",
             BYTES_ARG(print_field(cli, &reply.json, "id")));
    print_line("%.*s", BYTES_ARG(print_field(cli, &reply.json, "token")));
    return CLI_OK;
}

static struct bytes scopes_of(struct cli *cli, const struct json *token)
{
    const struct json *scopes = json_get(token, BYTES("scopes"));
    struct buf buf;
    buf_init(&buf, 4096);
    for (uint32_t i = 0; scopes != NULL && scopes->type == JSON_ARRAY && i < scopes->count; i++) {
        if (i > 0)
            buf_add_char(&buf, ',');
        print_clean(&buf, scopes->items[i].type == JSON_STRING ? scopes->items[i].text : scopes->items[i].raw);
    }
    struct bytes text = arena_dup(&cli->arena, buf_bytes(&buf));
    buf_release(&buf);
    return text;
}

static void print_tokens(struct cli *cli, const struct json *data)
{
    static const char *const headings[] = {"ID", "NAME", "SCOPES", "CREATED", "EXPIRES", "REVOKED", "STOPPED"};
    struct table table;
    table_init(&table, &cli->arena, headings, sizeof headings / sizeof *headings);
    for (uint32_t i = 0; i < data->count; i++) {
        const struct json *token = &data->items[i];
        const struct json *stopped = json_get(token, BYTES("stopped"));
        struct bytes revoked = print_field(cli, token, "revoked_at");
        const struct bytes cells[] = {print_field(cli, token, "id"),
                                      print_field(cli, token, "name"),
                                      scopes_of(cli, token),
                                      print_field(cli, token, "created_at"),
                                      print_field(cli, token, "expires_at"),
                                      revoked,
                                      stopped != NULL && stopped->type == JSON_TRUE ? BYTES("yes") : BYTES("")};
        table_add(&table, cells, revoked.len > 0 ? COLOUR_DIM : COLOUR_NONE);
    }
    table_print(&table);
}

int token_ls_run(struct cli *cli)
{
    return client_list(cli, "/v1/tokens", NULL, 0, print_tokens, "no tokens. Make one: semel token create");
}

int token_revoke_run(struct cli *cli)
{
    struct client_reply reply;
    struct bytes text = client_path(cli, "/v1/tokens", "");
    if (text.at == NULL)
        return cli_fail(CLI_USAGE, "that is no token's id. See: semel token ls");
    int code = client_call(cli, &(struct client_request){.method = "DELETE", .path = text}, &reply);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    else
        print_line("revoked %s", cli->arguments[0]);
    return CLI_OK;
}
