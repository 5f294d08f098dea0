/*
 * url: the address of a destination, read strictly. What two programs could read differently is refused, with a sentence that says what to write;
 * so there is nothing to hide behind. Pure; parts point into the text.
 *
 *   scheme "://" host [":" port] [path] ["?" query]        printable ASCII only
 *
 * Refused: credentials, fragments, backslashes, percent signs in the host, names in other scripts (write the xn-- form), addresses in any form but
 * the usual one (no 127.1, 0x7f000001, 0177.0.0.1, 2130706433), a zone behind an IPv6 address, a dot at the end of the host, an empty or odd port.
 */
#ifndef SEMEL_GUARD_URL_H
#define SEMEL_GUARD_URL_H

#include "base/status.h"
#include "guard/address.h"

#define GUARD_URL_MAX 2048
#define GUARD_HOST_MAX 253

enum guard_scheme { GUARD_HTTP, GUARD_HTTPS, GUARD_SMTP, GUARD_SMTPS };

struct guard_url {
    enum guard_scheme scheme;
    struct bytes host; /* without the brackets of IPv6; any case */
    bool literal;      /* the host is an address: */
    struct guard_address address;
    uint16_t port;       /* the scheme's when none was written */
    struct bytes target; /* path and query as written; may be empty */
};

extern const char *const guard_scheme_names[]; /* "http", "https", "smtp", "smtps", NULL */

/* INVALID with what is wrong. */
CHECKED enum status guard_url_parse(struct bytes text, struct guard_url *ret_url, struct why *why);

#endif
