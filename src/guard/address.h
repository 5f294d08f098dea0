/*
 * address: is this address out there, or in here? One table of the ranges that are not public (IANA's special-purpose registries,
 * and the addresses under which clouds hand out credentials); pure.
 */
#ifndef SEMEL_GUARD_ADDRESS_H
#define SEMEL_GUARD_ADDRESS_H

#include <sys/socket.h>

#include "base/bytes.h"

#define GUARD_ADDRESS_TEXT_MAX 48

enum guard_class {
    GUARD_PUBLIC,  /* anyone's */
    GUARD_PRIVATE, /* this computer or its network: only where the operator allows it */
    GUARD_NEVER,   /* nothing that a destination can be: cloud metadata, link-local, multicast, tunnels, reserved */
};

struct guard_address {
    bool v6;
    uint8_t at[16]; /* the first four for IPv4 */
};

/* Exactly the usual form: four decimal numbers without leading zeros, or IPv6 without a zone. */
bool guard_address_parse(struct bytes text, struct guard_address *ret_address);

/* False for what is neither IPv4 nor IPv6. */
bool guard_address_from(const struct sockaddr *from, size_t size, struct guard_address *ret_address, uint16_t *ret_port);

void guard_address_format(const struct guard_address *address, char ret_text[GUARD_ADDRESS_TEXT_MAX]);

bool guard_address_eq(const struct guard_address *a, const struct guard_address *b);

/* `ret_what` (may be NULL) says it for a sentence: "a private address". */
enum guard_class guard_address_class(const struct guard_address *address, const char **ret_what);

#endif
