#include "cli/commands.h"
#include "cli/daemon.h"
#include "cli/print.h"
#include "http/listen.h"

int up_run(struct cli *cli)
{
    struct app_options options;
    int code = daemon_read_options(cli, &options);
    if (code != CLI_OK)
        return code;
    if (!listen_is_loopback(options.listen))
        return cli_fail(
            CLI_USAGE,
            "up asks for no token, so it only listens on a loopback address such as 127.0.0.1:7363, not on %s. Use: semel serve",
            options.listen);
    if ((options.lmtp != NULL && !listen_is_loopback(options.lmtp)) ||
        (options.smtp != NULL && !listen_is_loopback(options.smtp)) ||
        (options.smtps != NULL && !listen_is_loopback(options.smtps)))
        return cli_fail(CLI_USAGE,
                        "up takes mail on a loopback address only, such as 127.0.0.1:2525 or unix:/PATH. Use: semel serve");
    if (options.smtp_login)
        return cli_fail(CLI_USAGE, "up has no tokens to log in with. Use: semel serve");
    options.open = true;
    return app_run(&options);
}
