#include "cli/commands.h"
#include "cli/holder.h"
#include "cli/print.h"

const struct cli_option confirm_options[] = {
    HOLDER_FENCE,
    {"--result", "JSON", CLI_TEXT, "What duplicates are answered with; - for stdin.", NULL, NULL, NULL, false},
    {"--result-file", "FILE", CLI_FILE, "The same from a file; - for stdin.", NULL, NULL, NULL, false},
    {0},
};

static void write_fields(const struct cli *cli, struct json_out *out, const void *ctx)
{
    const struct json *result = ctx;
    (void)cli;
    if (result->raw.at == NULL)
        return;
    json_name(out, "result");
    json_raw(out, result->raw);
}

static int read_result(struct cli *cli, struct json *ret_result)
{
    const char *text = cli_text(cli, "--result"), *file = cli_text(cli, "--result-file");
    struct bytes source;
    if (text != NULL && file != NULL)
        return cli_fail(CLI_USAGE, "--result and --result-file say the same thing. Give one of them.");
    if (text != NULL)
        return cli_read_json(cli, "--result", text, ret_result);
    if (file == NULL)
        return CLI_OK;
    int code = cli_read_file(cli, file, CLI_INPUT_MAX, &source);
    return code == CLI_OK ? cli_parse_json(cli, file, source, ret_result) : code;
}

int confirm_run(struct cli *cli)
{
    struct json result = {0};
    int code = read_result(cli, &result);
    return code == CLI_OK ? holder_say(cli, "confirm", write_fields, &result) : code;
}
