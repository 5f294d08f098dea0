/*
 * address: mailboxes in SMTP commands, and which of them a source listens to. Pure.
 */
#ifndef SEMEL_SMTP_ADDRESS_H
#define SEMEL_SMTP_ADDRESS_H

#include "base/bytes.h"

enum { SMTP_ADDRESS_SIZE_MAX = 254, SMTP_LOCAL_SIZE_MAX = 64 };

/* Takes "<jane@example.com>" off the front of `*rest`, without a source route (RFC 5321 lets us drop it). `<>` gives an empty
 * address. `utf8`: the sender announced SMTPUTF8. False, and nothing moved, when it is none. */
bool smtp_path_take(struct bytes *rest, bool utf8, struct bytes *ret_address);

/* "jane@example.com", or "postmaster" alone, as a mailbox of RFC 5321. */
bool smtp_address_is_valid(struct bytes address, bool utf8);

/* A pattern is an address, "*@example.com" for everybody there, or "leads@*" for one name everywhere. Case does not matter; the
 * local part of an address counts without its "+tag" unless the pattern has one. */
bool smtp_pattern_is_valid(struct bytes pattern);
bool smtp_pattern_matches(struct bytes pattern, struct bytes address);

/* The name in front of '@' without its "+tag". */
struct bytes smtp_address_name(struct bytes address);

#endif
