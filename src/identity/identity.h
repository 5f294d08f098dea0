/*
 * identity: who somebody is on a channel, in one spelling. Pure.
 */
#ifndef SEMEL_IDENTITY_IDENTITY_H
#define SEMEL_IDENTITY_IDENTITY_H

#include "base/arena.h"

enum identity_kind { IDENTITY_EMAIL, IDENTITY_PHONE, IDENTITY_OTHER };

extern const char *const identity_kind_names[]; /* "email", "phone", "other", NULL */

struct identity {
    enum identity_kind kind;
    bool sender;        /* false: only mentioned in the text */
    struct bytes value; /* normalised */
    struct bytes given; /* a phone number as it was given: whether it had a '+' matters; BYTES_NONE for others */
};

#define IDENTITY_SIZE_MAX 320

/* "Jon <Jon@Acme.IO>" → "jon@acme.io": the address alone, lower case, the domain in its ASCII form (IDNA). BYTES_NONE when it is no
 * address, or the arena is full. */
struct bytes identity_email(struct bytes text, struct arena *arena);

/* "+33 (6) 12-34" → "33612…": digits only, without '+' or "00" in front and without "whatsapp:", "sms:" or "tel:". BYTES_NONE when it
 * is no number of 5 to 20 digits. */
struct bytes identity_phone(struct bytes text, struct arena *arena);

/* The same for a number that may be a national one of `region` (two letters; BYTES_NONE: there are none): "06 12 34 56 78" in FR →
 * "33612345678". What says by '+' or "00" that it is international is read as above. */
struct bytes identity_phone_of(struct bytes text, struct bytes region, struct arena *arena);

/* Addresses and international numbers that `text` mentions, at most `max` of them; returns how many. */
size_t identity_mentions(struct bytes text, struct arena *arena, struct identity *ret, size_t max);

/* Adds one unless it is there already (then `sender` is kept when either has it) or there are `max`. */
void identity_add(struct identity *all, size_t *count, size_t max, struct identity one);

#endif
