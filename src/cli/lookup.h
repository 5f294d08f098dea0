/*
 * lookup: which intent a command means: by id, or by key when --workflow is given.
 */
#ifndef SEMEL_CLI_LOOKUP_H
#define SEMEL_CLI_LOOKUP_H

#include "cli/cli.h"

#define LOOKUP_WORKFLOW                                                                                    \
    {                                                                                                      \
        "--workflow", "NAME", CLI_TEXT, "The argument is a key of this workflow.", NULL, NULL, NULL, false \
    }

/* Prints and returns the exit code when there is none. */
int lookup_intent(struct cli *cli, struct json *ret_intent);

#endif
