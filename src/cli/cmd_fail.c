#include "cli/commands.h"
#include "cli/holder.h"

static const char *const effects[] = {"none", "unknown", NULL};

const struct cli_option fail_options[] = {
    HOLDER_FENCE,
    {"--effect", "EFFECT", CLI_CHOICE, "Whether anything may have happened.", NULL, NULL, effects, true},
    {"--final", NULL, CLI_SWITCH, "Do not try again.", NULL, NULL, NULL, false},
    {"--all-attempts", NULL, CLI_SWITCH, "With --effect none: said of every attempt, to settle what is unknown.", NULL, NULL,
     NULL, false},
    {"--error", "TEXT", CLI_TEXT, "What went wrong, for people.", NULL, NULL, NULL, false},
    {0},
};

static void write_fields(const struct cli *cli, struct json_out *out, const void *ctx)
{
    (void)ctx;
    json_name(out, "effect");
    json_cstr(out, cli_text(cli, "--effect"));
    if (cli_on(cli, "--final")) {
        json_name(out, "final");
        json_bool(out, true);
    }
    if (cli_on(cli, "--all-attempts")) {
        json_name(out, "all_attempts");
        json_bool(out, true);
    }
    if (cli_on(cli, "--error")) {
        json_name(out, "error");
        json_cstr(out, cli_text(cli, "--error"));
    }
}

int fail_run(struct cli *cli)
{
    return holder_say(cli, "fail", write_fields, NULL);
}
