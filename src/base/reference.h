/*
 * reference: how rules name a secret, never the secret: env:NAME, file:/path or secret:NAME.
 */
#ifndef SEMEL_BASE_REFERENCE_H
#define SEMEL_BASE_REFERENCE_H

#include "base/bytes.h"
#include "base/status.h"

enum secret_kind { SECRET_NONE, SECRET_ENV, SECRET_FILE, SECRET_STORED };

/* Where the secret is, never the secret. */
struct secret_reference {
    enum secret_kind kind;
    struct bytes text; /* "env:STRIPE_KEY", as written */
    struct bytes name; /* "STRIPE_KEY"; a path for SECRET_FILE */
};

/* "env:NAME", "file:/path" or "secret:NAME"; INVALID for anything else, with advice that does not repeat the text. */
CHECKED enum status secret_reference_parse(struct bytes text, struct secret_reference *ret, struct why *why);

#endif
