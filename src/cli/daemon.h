/*
 * daemon: what `up` and `serve` share: their options, and how they become app_options.
 */
#ifndef SEMEL_CLI_DAEMON_H
#define SEMEL_CLI_DAEMON_H

#include "app.h"
#include "cli/cli.h"

/* CLI_USAGE, printed, when options contradict each other. */
int daemon_read_options(struct cli *cli, struct app_options *ret_options);

#endif
