/*
 * percent: the escapes of URLs and forms, %XX.
 */
#ifndef SEMEL_BASE_PERCENT_H
#define SEMEL_BASE_PERCENT_H

#include "base/arena.h"

/* Percent-decodes into `ret` (room for in.len). False on a bad escape or when the result is not UTF-8 or contains NUL.
 * `plus` also turns '+' into a space (query strings). */
bool percent_decode(struct bytes in, bool plus, char *ret, size_t *ret_len);

/* `text` with everything but letters, digits and -._~ as %XX. */
struct bytes percent_encode(struct bytes text, struct arena *arena);

#endif
