#include "cli/commands.h"
#include "cli/daemon.h"

int serve_run(struct cli *cli)
{
    struct app_options options;
    int code = daemon_read_options(cli, &options);
    return code == CLI_OK ? app_run(&options) : code;
}
