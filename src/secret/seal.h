/*
 * seal: one secret as it lies in the database. Pure but for the randomness it is handed.
 *
 *   value ──XChaCha20-Poly1305 with a data key of its own──► sealed
 *   data key ──XChaCha20-Poly1305 with the master key──────► wrapped
 *
 * Both carry where they belong (space, name, version, and for `wrapped` the master key's id) as associated data, each part behind its length:
 * a row that was changed, moved or taken from an older version does not open. A new master key wraps the data key anew; `sealed` stays as it is.
 * Plain text is only ever in memory of `struct secret_text`: locked, not in core dumps, between guard pages, zeroed when freed. A few wiped
 * blocks are kept for the next text of their length.
 */
#ifndef SEMEL_SECRET_SEAL_H
#define SEMEL_SECRET_SEAL_H

#include "base/arena.h"
#include "base/status.h"
#include "env/env.h"

#define MASTER_KEY_SIZE 32
#define MASTER_KEY_ID_SIZE 16

struct master_key {
    uint8_t key[MASTER_KEY_SIZE];
    char id[MASTER_KEY_ID_SIZE + 1]; /* made from the key; tells nothing about it */
};

/* What a secret is sealed for. */
struct secret_label {
    struct bytes space, name;
    int64_t version;
};

/* Plain text, NUL behind it. `at == NULL` for none. */
struct secret_text {
    char *at;
    size_t len;
};

/* Once, before anything else here and before threads start. Stops the process when libsodium does not work. */
void seal_setup(void);

/* Room for `len` bytes; false when there is no memory. */
bool secret_text_make(size_t len, struct secret_text *ret_text);
void secret_text_free(struct secret_text *text);

/* Fills in the id of a key. */
void master_key_name(struct master_key *key);

/* A new data key, the value sealed with it, the data key wrapped; both in the arena. FULL when it has no room. */
CHECKED enum status seal_make(struct env *env, const struct master_key *master, const struct secret_label *label,
                              struct bytes value, struct arena *arena, struct bytes *ret_wrapped, struct bytes *ret_sealed,
                              struct why *why);

/* BROKEN when it was not sealed for this label with this key, or not one bit is as it was. */
CHECKED enum status seal_open(const struct master_key *master, const struct secret_label *label, struct bytes wrapped,
                              struct bytes sealed, struct secret_text *ret_text, struct why *why);

/* The same data key under another master key. */
CHECKED enum status seal_rewrap(struct env *env, const struct master_key *from, const struct master_key *to,
                                const struct secret_label *label, struct bytes wrapped, struct arena *arena,
                                struct bytes *ret_wrapped, struct why *why);

#endif
