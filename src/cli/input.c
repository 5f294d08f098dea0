/*
 * Input of commands: files, stdin, JSON. What is wrong is said here, before anything is sent.
 */
#include <errno.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/print.h"

/* The daemon has its own, smaller limits and explains them; these only keep this process in bounds. */
static const struct json_limits input_limits = {.depth_max = 128, .members_max = 2000000, .text_max = CLI_INPUT_MAX};

static int read_stream(struct cli *cli, FILE *file, const char *label, size_t size_max, struct bytes *ret_text)
{
    struct buf buf;
    buf_init(&buf, size_max + 1);
    char piece[16384];
    size_t got;
    while (!buf.failed && (got = fread(piece, 1, sizeof piece, file)) > 0)
        buf_add(&buf, (struct bytes){piece, got});
    int code = CLI_OK;
    struct bytes text = BYTES_NONE;
    if (ferror(file))
        code = cli_fail(CLI_DATA, "%s cannot be read: %s.", label, strerror(errno));
    else if (buf.failed || buf.len > size_max)
        code = cli_fail(CLI_DATA, "%s is too long. The most is %zu bytes.", label, size_max);
    else if ((text = arena_dup(&cli->arena, buf_bytes(&buf))).at == NULL)
        code = cli_fail(CLI_INTERNAL, "there is not enough memory to read %s.", label);
    buf_release(&buf);
    if (code == CLI_OK)
        *ret_text = text;
    return code;
}

int cli_read_file(struct cli *cli, const char *path, size_t size_max, struct bytes *ret_text)
{
    if (strcmp(path, "-") == 0)
        return read_stream(cli, stdin, "stdin", size_max, ret_text);
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return cli_fail(CLI_DATA, "%s cannot be read: %s.", path, strerror(errno));
    int code = read_stream(cli, file, path, size_max, ret_text);
    fclose(file);
    return code;
}

int cli_parse_json(struct cli *cli, const char *what, struct bytes text, struct json *ret_json)
{
    struct why why;
    enum status status = json_parse(text, &input_limits, &cli->arena, ret_json, &why);
    if (status == OK)
        return CLI_OK;
    return cli_fail(status == INVALID ? CLI_DATA : CLI_INTERNAL, "%s is not JSON: %s.", what, why.text);
}

int cli_read_json(struct cli *cli, const char *what, const char *text, struct json *ret_json)
{
    struct bytes source = bytes_of(text);
    if (strcmp(text, "-") == 0) {
        int code = cli_read_file(cli, "-", CLI_INPUT_MAX, &source);
        if (code != CLI_OK)
            return code;
    }
    return cli_parse_json(cli, what, source, ret_json);
}
