#include "cli/commands.h"
#include "cli/holder.h"

const struct cli_option release_options[] = {HOLDER_FENCE, {0}};

int release_run(struct cli *cli)
{
    return holder_say(cli, "release", NULL, NULL);
}
