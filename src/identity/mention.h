/*
 * mention: phone numbers in what people write, also those of their own country. Pure. Rather one too few than a number that is no
 * phone: digits count only with a '+', a leading 0, a word such as "Tel." in front, or in the shape of North America.
 */
#ifndef SEMEL_IDENTITY_MENTION_H
#define SEMEL_IDENTITY_MENTION_H

#include "identity/identity.h"

/* Adds those in `text` to `list`, which has `*count` of at most `max`; each once. Values are in the arena. National numbers of `region`
 * (two letters; BYTES_NONE for none) become international ones. */
void mention_phones(struct bytes text, struct bytes region, struct arena *arena, struct identity *list, size_t *count,
                    size_t max);

#endif
