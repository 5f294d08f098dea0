#include "cli/commands.h"
#include "cli/holder.h"

const struct cli_option sent_options[] = {HOLDER_FENCE, {0}};

int sent_run(struct cli *cli)
{
    return holder_say(cli, "sent", NULL, NULL);
}
