/*
 * holder: what the holder of a claim says about it. One call, POST /v1/claims/{intent}/{verb}, with the fence and the verb's own
 * fields.
 */
#ifndef SEMEL_CLI_HOLDER_H
#define SEMEL_CLI_HOLDER_H

#include "cli/cli.h"

/* The option that all of them need. */
#define HOLDER_FENCE                                                                              \
    {                                                                                             \
        "--fence", "N", CLI_NUMBER, "The fence that the claim was given.", NULL, NULL, NULL, true \
    }

/* Writes the members that only this verb has; may be NULL. */
typedef void holder_fields_fn(const struct cli *cli, struct json_out *out, const void *ctx);

int holder_say(struct cli *cli, const char *verb, holder_fields_fn *fields, const void *ctx);

#endif
