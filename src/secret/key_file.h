/*
 * key_file: the master keys in a file, one per line as base64 of 32 bytes; '#' begins a comment. The first one seals; the others still open what
 * was sealed with them, until everything is wrapped anew. The file is refused when anyone but its owner (or its group, reading) can get at it.
 */
#ifndef SEMEL_SECRET_KEY_FILE_H
#define SEMEL_SECRET_KEY_FILE_H

#include "secret/seal.h"

#define MASTER_KEYS_MAX 8

struct master_keys {
    size_t count;
    struct master_key at[MASTER_KEYS_MAX];
};

/* In memory of libsodium's; NULL when there is none. */
struct master_keys *master_keys_new(void);
void master_keys_free(struct master_keys *keys);

/* The key with this id, or NULL. `keys` may be NULL. */
const struct master_key *master_keys_find(const struct master_keys *keys, struct bytes id);

/* Puts a new random key in front; false when there are MASTER_KEYS_MAX. */
bool master_keys_add(struct master_keys *keys, struct env *env);

/* NOTHING when there is no such file; INVALID, with what to do about it, when it cannot be used. */
CHECKED enum status key_file_read(const char *path, struct master_keys **ret_keys, struct why *why);

/* Replaces the file in one step (mode 0400): after a crash it holds the old keys or the new ones. */
CHECKED enum status key_file_write(const char *path, const struct master_keys *keys, struct why *why);

#endif
