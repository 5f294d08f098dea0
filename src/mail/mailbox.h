/*
 * mailbox: addresses as SMTP has them, and which of them a source listens to. Pure.
 */
#ifndef SEMEL_MAIL_MAILBOX_H
#define SEMEL_MAIL_MAILBOX_H

#include "base/bytes.h"

enum { MAILBOX_SIZE_MAX = 254, MAILBOX_LOCAL_SIZE_MAX = 64 };

/* Takes "<jane@example.com>" off the front of `*rest`, without a source route (RFC 5321 lets us drop it). `<>` gives an empty
 * address. `utf8`: the sender announced SMTPUTF8. False, and nothing moved, when it is none. */
bool mailbox_path_take(struct bytes *rest, bool utf8, struct bytes *ret_address);

/* "jane@example.com", or "postmaster" alone, as a mailbox of RFC 5321. */
bool mailbox_is_valid(struct bytes address, bool utf8);

/* A pattern is an address, "*@example.com" for everybody there, or "leads@*" for one name everywhere. Case does not matter; the
 * local part of an address counts without its "+tag" unless the pattern has one. */
bool mailbox_pattern_is_valid(struct bytes pattern);
bool mailbox_pattern_matches(struct bytes pattern, struct bytes address);

/* The name in front of '@' without its "+tag". */
struct bytes mailbox_name(struct bytes address);

#endif
