/*
 * key_advice: a template in words, and what is probably wrong with it. Pure.
 */
#ifndef SEMEL_CLI_KEY_ADVICE_H
#define SEMEL_CLI_KEY_ADVICE_H

#include "base/buf.h"
#include "fingerprint/key_parts.h"

/* "a field of the input: lead_id" */
void key_explain(const struct key_part *part, struct buf *out);

/* Advice number `i` about the template, as a sentence that says what to do; false behind the last. */
bool key_advise(const struct key_template *template, size_t i, struct buf *out);

#endif
