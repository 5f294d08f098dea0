/*
 * hash: SHA-256, HMAC-SHA-256 and, for UUIDs of version 5, SHA-1 (OpenSSL, fetched once), constant-time compare, CRC-32. Every
 * thread may call these.
 */
#ifndef SEMEL_BASE_HASH_H
#define SEMEL_BASE_HASH_H

#include "base/bytes.h"

#define HASH_SIZE 32

struct hash {
    uint8_t at[HASH_SIZE];
};

static inline struct bytes hash_bytes(const struct hash *hash)
{
    return (struct bytes){(const char *)hash->at, HASH_SIZE};
}

/* Once, before threads start. Aborts when OpenSSL has no SHA-256. */
void hash_setup(void);

struct hash hash_sha256(struct bytes data);

/* SHA-256 over the parts, each preceded by its length as 8 bytes big-endian, so that no two lists of parts collide. */
struct hash hash_parts(const struct bytes *parts, size_t count);

/* RFC 9562 version 5: a name-based UUID in its text form, 36 characters and a NUL. Not for secrets. */
void hash_uuid5(const uint8_t namespace[16], struct bytes name, char ret[37]);

struct hash hash_hmac_sha256(struct bytes key, struct bytes data);

/* Whole-length compare whose time does not depend on where they differ; false when the lengths differ. */
bool hash_equal(struct bytes a, struct bytes b);

uint32_t hash_crc32(struct bytes data);

#endif
