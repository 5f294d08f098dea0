/*
 * mention: e-mail addresses and phone numbers in what people write. Pure. Rather one too few than a number that is no phone: digits
 * count only with a '+', a leading 0, a word such as "Tel." in front, or in the shape of North America.
 */
#ifndef SEMEL_RECEIVE_MENTION_H
#define SEMEL_RECEIVE_MENTION_H

#include "base/arena.h"
#include "receive/receive.h"

enum { MENTION_EMAIL_SIZE_MAX = 254 };

/* Adds those in `text` to `list`, which has `*count` of at most `max`; each once. Values are in the arena. */
void mention_emails(struct bytes text, struct arena *arena, struct identity *list, size_t *count, size_t max);
void mention_phones(struct bytes text, struct arena *arena, struct identity *list, size_t *count, size_t max);

/* Adds one unless the list has it, or is full. */
void mention_add(struct identity identity, struct identity *list, size_t *count, size_t max);

/* "Jane@Example.com" → "jane@example.com"; BYTES_NONE when it is no address. */
struct bytes mention_email(struct bytes text, struct arena *arena);

#endif
