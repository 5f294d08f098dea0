/* secret_own: what the files of secret/ share. */
#ifndef SEMEL_SECRET_SECRET_OWN_H
#define SEMEL_SECRET_SECRET_OWN_H

#include <pthread.h>

#include "secret/secret.h"

/* The rows as they were at one moment. */
struct secret_rows {
    struct arena arena;
    struct row_secret *at; /* by space and name */
    size_t count, cap;
    struct r_secret_stamp stamp;
};

struct secrets {
    struct env *env;
    char *key_path;
    bool own_key;
    pthread_mutex_t lock;     /* of what follows */
    struct master_keys *keys; /* NULL when there are none yet */
    struct secret_rows *rows;
    bool retire; /* a rewrap is done: only the key in front is needed once no row in memory needs another */
};

/* Reads the key file anew, under the lock. What is in memory stays when that fails. */
CHECKED enum status secrets_read_keys(struct secrets *secrets, struct why *why);

#endif
