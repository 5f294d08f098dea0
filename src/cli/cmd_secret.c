#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "secret/secret.h"

/* ---- the value: in locked memory, and on no screen ---- */

static int read_value(struct secret_text *text)
{
    size_t len = 0;
    ssize_t got = 0;
    while (len < text->len && (got = read(STDIN_FILENO, text->at + len, text->len - len)) > 0) {
        len += (size_t)got;
        if (isatty(STDIN_FILENO) && text->at[len - 1] == '\n')
            break;
    }
    if (got < 0 && errno == EINTR)
        return cli_fail(CLI_DATA, "nothing was stored.");
    if (got < 0)
        return cli_fail(CLI_DATA, "stdin cannot be read: %s.", strerror(errno));
    if (len > 0 && len < text->len && text->at[len - 1] == '\n')
        len--;
    if (len > SECRET_VALUE_MAX)
        return cli_fail(CLI_DATA, "the secret is longer than %zu bytes.", SECRET_VALUE_MAX);
    text->len = len;
    if (len == 0)
        return cli_fail(CLI_DATA, "the secret is empty. Give it on stdin, or on a terminal when asked.");
    if (!bytes_is_utf8((struct bytes){text->at, len}) || memchr(text->at, '\0', len) != NULL)
        return cli_fail(CLI_DATA, "the secret is not text in UTF-8. Encode it, such as with base64, if its user expects that.");
    return CLI_OK;
}

/* Ctrl-C ends the question; the terminal must be put right first. */
static void on_interrupt(int signal_number)
{
    (void)signal_number;
}

static int ask_value(const char *name, struct secret_text *text)
{
    struct termios shown, hidden;
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &shown) != 0)
        return read_value(text);
    hidden = shown;
    hidden.c_lflag &= ~(tcflag_t)ECHO;
    hidden.c_lflag |= ECHONL;
    sigaction(SIGINT, &(struct sigaction){.sa_handler = on_interrupt}, NULL);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden); /* before the question: what is typed behind it must count */
    fprintf(stderr, "Value of %s (not shown): ", name);
    int code = read_value(text);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
    return code;
}

/* ---- calls ---- */

static int path_of(struct cli *cli, struct bytes *ret_path)
{
    struct bytes name = bytes_of(cli->arguments[0]);
    if (!secret_is_name(name))
        return cli_fail(CLI_USAGE,
                        "the name of a secret is 1 to %d letters, digits, '_', '.' or '-', not beginning with the last two.",
                        SECRET_NAME_MAX);
    *ret_path = arena_printf(&cli->arena, "/v1/secrets/%s", name.at);
    return ret_path->at != NULL ? CLI_OK : cli_fail(CLI_INTERNAL, "there is not enough memory.");
}

static int send_value(struct cli *cli, struct bytes path, const struct secret_text *text, struct client_reply *ret_reply)
{
    struct buf body;
    buf_init(&body, 8 * SECRET_VALUE_MAX);
    body.wipe = true;
    struct json_out out = json_out_to(&body);
    json_open(&out, '{');
    json_name(&out, "value");
    json_text(&out, (struct bytes){text->at, text->len});
    json_close(&out, '}');
    ASSERT(!body.failed);
    int code = client_call(cli, &(struct client_request){.method = "PUT", .path = path, .body = buf_bytes(&body)}, ret_reply);
    buf_release(&body);
    return code;
}

int secret_set_run(struct cli *cli)
{
    struct bytes path;
    struct client_reply reply;
    struct secret_text text;
    int code = path_of(cli, &path);
    if (code != CLI_OK)
        return code;
    seal_setup();
    if (!secret_text_make(SECRET_VALUE_MAX + 2, &text))
        return cli_fail(CLI_INTERNAL, "there is not enough memory.");
    code = ask_value(cli->arguments[0], &text);
    if (code == CLI_OK)
        code = send_value(cli, path, &text, &reply);
    secret_text_free(&text);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    else
        print_line("set %s, version %.*s", cli->arguments[0], BYTES_ARG(print_field(cli, &reply.json, "version")));
    return CLI_OK;
}

static void print_secrets(struct cli *cli, const struct json *data)
{
    static const char *const headings[] = {"NAME", "VERSION", "CREATED", "UPDATED", "MASTER KEY"};
    struct table table;
    table_init(&table, &cli->arena, headings, sizeof headings / sizeof *headings);
    for (uint32_t i = 0; i < data->count; i++) {
        const struct json *secret = &data->items[i];
        const struct bytes cells[] = {print_field(cli, secret, "name"), print_field(cli, secret, "version"),
                                      print_field(cli, secret, "created_at"), print_field(cli, secret, "updated_at"),
                                      print_field(cli, secret, "master_key")};
        table_add(&table, cells, COLOUR_NONE);
    }
    table_print(&table);
}

int secret_ls_run(struct cli *cli)
{
    return client_list(cli, "/v1/secrets", NULL, 0, print_secrets, "no secrets. Store one: semel secret set NAME");
}

int secret_rm_run(struct cli *cli)
{
    struct bytes path;
    struct client_reply reply;
    int code = path_of(cli, &path);
    if (code == CLI_OK)
        code = client_call(cli, &(struct client_request){.method = "DELETE", .path = path}, &reply);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    else
        print_line("removed %s", cli->arguments[0]);
    return CLI_OK;
}

int secret_rewrap_run(struct cli *cli)
{
    struct client_reply reply;
    struct client_request request = {
        .method = "POST", .path = BYTES("/v1/secrets/rewrap"), .body = BYTES("{}"), .wait_us = 60 * 1000000};
    int code = client_call(cli, &request, &reply);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    else
        print_line("%.*s secrets are now sealed for the master key %.*s", BYTES_ARG(print_field(cli, &reply.json, "rewrapped")),
                   BYTES_ARG(print_field(cli, &reply.json, "master_key")));
    return CLI_OK;
}
