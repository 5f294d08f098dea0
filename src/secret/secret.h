/*
 * secret: what semel needs to prove itself to others (tokens, passwords, signing keys), at rest and in use. Write-only: what was put in can be
 * used, replaced and removed, but no route and no command gives it back.
 *
 * The table `secret` holds one row per space and name: the version, the sealed value, its data key wrapped by a master key, and that key's id
 * (seal.h). The master key is a file (key_file.h): the operator's, or `master.key` in the data directory, which semel makes at the first use. On PostgreSQL
 * it has to be given, the same to all nodes.
 *
 * `struct secrets` is what a node knows: the master keys and the rows, still sealed. A value is opened for each use, straight into locked memory, and
 * lives no longer than its user wants: there is no cache of plain text. Any thread may call; changes are taken over by secrets_refresh(), which the
 * HTTP loop has called after each change and, where there are other nodes, every second.
 *
 * A reference is how rules name a secret: `env:NAME`, `file:/path`, `secret:NAME`.
 */
#ifndef SEMEL_SECRET_SECRET_H
#define SEMEL_SECRET_SECRET_H

#include "queries.h"
#include "secret/key_file.h"

#define SECRET_NAME_MAX 64
#define SECRET_VALUE_MAX ((size_t)16 << 10)
#define SECRETS_MAX 10000 /* of all spaces, removed ones included */

struct secrets;

struct secrets_config {
    struct env *env;
    const char *key_path; /* NULL: no master key was given, and secrets cannot be stored */
    bool own_key;         /* the file is semel's own: made when it is missing, replaced by a rewrap */
};

/* INVALID when the key file cannot be used. One that is missing is an error only when it is the operator's. */
CHECKED enum status secrets_open(const struct secrets_config *config, struct secrets **ret_secrets, struct why *why);
void secrets_close(struct secrets *secrets);

/* Reads the rows anew when they have changed. Any thread, with its own store. */
CHECKED enum status secrets_refresh(struct secrets *secrets, struct store *store, struct why *why);

/* 1 to SECRET_NAME_MAX letters, digits, '.', '_', '-'; the first is a letter, a digit or '_'. */
bool secret_is_name(struct bytes name);

/* True when `reference` is well-formed; whether there is such a secret is another question. */
bool secret_is_reference(struct bytes reference);

/* The value behind a reference; the caller frees it with secret_text_free(). One newline at the end of a file is not part of it. Any thread.
 * INVALID: no such reference, secret, variable or file, or no key for it. BROKEN: the row does not open. The sentence never holds the value. */
CHECKED enum status secret_resolve(struct secrets *secrets, struct bytes space, struct bytes reference,
                                   struct secret_text *ret_text, struct why *why);

/* What is known of each secret of a space, by name; the rows are valid only during the call. */
void secrets_each(struct secrets *secrets, struct bytes space, void (*each)(void *ctx, const struct row_secret *row), void *ctx);

/* How many rows need a master key that this node does not have. */
size_t secrets_without_key(struct secrets *secrets);

/* ---- changes: inside a `write` of the engine, whose transaction they are part of. The caller adds the audit row ---- */

struct secret_change {
    struct secrets *secrets;
    struct store *store;
    struct arena *arena;
    int64_t now_us;
};

/* Seals `value` as the next version. INVALID when the master key is missing or not right; CONFLICT when there are SECRETS_MAX. */
CHECKED enum status secret_put(const struct secret_change *change, struct bytes space, struct bytes name, struct bytes value,
                               int64_t *ret_version, struct why *why);

/* NOTHING when there is none. */
CHECKED enum status secret_remove(const struct secret_change *change, struct bytes space, struct bytes name, int64_t *ret_version,
                                  struct why *why);

/*
 * Wraps data keys anew with the master key in front, SECRET_REWRAP_MAX at a time; call it, each time in a transaction of its own
 * that commits, until it says NOTHING. Where the file is semel's own, the first call puts a new key in front of the old one, and
 * the last one, when no row needs the old one any more, takes it out: at any crash the file holds every key that a row needs, and
 * a later rewrap goes on where this one stopped. An operator's file is read anew; it has to hold the old keys behind the new one.
 */
#define SECRET_REWRAP_MAX 256
CHECKED enum status secret_rewrap(const struct secret_change *change, bool first, char ret_master[MASTER_KEY_ID_SIZE + 1],
                                  int64_t *ret_count, struct why *why);

#endif
