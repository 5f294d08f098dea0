/*
 * base64: RFC 4648 with padding. Decoding is strict: no white space, no missing padding, no bits left over.
 */
#ifndef SEMEL_BASE_BASE64_H
#define SEMEL_BASE_BASE64_H

#include "base/arena.h"

/* Both `.at == NULL` when the arena is full; base64_decode also when `text` is not exact. */
struct bytes base64_encode(struct bytes bytes, struct arena *arena);
struct bytes base64_decode(struct bytes text, struct arena *arena);

#endif
