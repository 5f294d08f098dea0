/*
 * naming: how a caller names an intent: by a key, or by an input from which the workflow's template makes one. Pure. Every face
 * that takes claims comes through here, so that the same words mean the same intent everywhere. And how its holder speaks of it.
 */
#ifndef SEMEL_LEDGER_NAMING_H
#define SEMEL_LEDGER_NAMING_H

#include "ledger/ledger.h"

struct claim_naming {
    struct bytes workflow, key, keep, thread, action, run;
    const struct json *input; /* also what a later caller must bring again */
};

struct naming_rules {
    const struct workflow_rules *workflow;
    struct bytes space, pepper;
    int64_t now_us; /* wall, for {today} */
};

/* Fills in the space, the key, what it stands for, and the workflow's rules. NOTHING: there is no key, and nothing to make it from.
 * INVALID: `ret_field` is to blame. */
CHECKED enum status ledger_name(const struct claim_naming *naming, const struct naming_rules *rules, struct arena *arena,
                                struct ledger_command *ret, struct bytes *ret_field, struct why *why);

/* What a holder says, as the body of POST /v1/claims/{intent}/{op}; for every face that says it over HTTP. */
void ledger_write_say(const struct ledger_command *say, struct json_out *out);

#endif
