/*
 * access: who may do what. A token is `sml_<id>_<secret>`: 12 characters that name it, and 43 of base 62 (256 random bits) followed by 6 of a
 * checksum, so that a mistyped one is told apart from a revoked one. Only a peppered SHA-256 of the secret is stored; it has full entropy, so no
 * slow hash is needed. A list of tokens is an immutable snapshot; the HTTP loop owns the current one.
 */
#ifndef SEMEL_ACCESS_ACCESS_H
#define SEMEL_ACCESS_ACCESS_H

#include "base/arena.h"
#include "base/hash.h"
#include "env/env.h"
#include "queries.h"

#define TOKEN_ID_SIZE 12
#define TOKEN_TEXT_SIZE (4 + TOKEN_ID_SIZE + 1 + 43 + 6)

enum scope {
    SCOPE_CLAIM = 1,   /* claim, and say what became of it */
    SCOPE_READ = 2,    /* look at intents and decisions */
    SCOPE_ADMIN = 4,   /* everything, also policy and tokens */
    SCOPE_RESOLVE = 8, /* decide about exceptions: a person's, not a program's */
};
#define TOKEN_STOPPED \
    16 /* beside the scopes: an operator stopped the agent that has it. It may read and finish, and begin nothing */
#define SCOPE_ALL (SCOPE_CLAIM | SCOPE_READ | SCOPE_ADMIN | SCOPE_RESOLVE)

extern const char *const scope_names[]; /* by bit number: "claim", "read", "admin", "resolve", NULL */

struct access {
    struct arena arena;       /* owns the rows */
    struct row_token *tokens; /* by id */
    size_t count;
};

/* A new token; `ret_row` refers to `ret_text` for its id and to `ret_hash`. */
void token_make(struct env *env, struct bytes pepper, char ret_text[TOKEN_TEXT_SIZE + 1], struct hash *ret_hash,
                struct bytes *ret_id);

/* The token with this text if it is genuine, not revoked and not expired, else NULL. Takes the same time for any secret. */
const struct row_token *access_check(const struct access *access, struct bytes pepper, struct bytes text, int64_t wall_us);

/* All tokens as they are stored now. */
CHECKED enum status access_load(struct store *store, struct access **ret_access, struct why *why);
void access_free(struct access *access);

#endif
