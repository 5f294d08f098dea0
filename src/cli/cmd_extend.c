#include "base/when.h"
#include "cli/commands.h"
#include "cli/holder.h"

const struct cli_option extend_options[] = {
    HOLDER_FENCE,
    {"--lease", "DURATION", CLI_DURATION, "How long from now; the workflow's lease when not given.", NULL, NULL, NULL, false},
    {0},
};

static void write_fields(const struct cli *cli, struct json_out *out, const void *ctx)
{
    (void)ctx;
    if (!cli_on(cli, "--lease"))
        return;
    json_name(out, "lease_ms");
    json_i64(out, cli_duration_us(cli, "--lease", 0) / WHEN_MS);
}

int extend_run(struct cli *cli)
{
    return holder_say(cli, "extend", write_fields, NULL);
}
