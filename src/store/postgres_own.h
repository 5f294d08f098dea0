/* postgres_own: what the files about PostgreSQL share. */
#ifndef SEMEL_STORE_POSTGRES_OWN_H
#define SEMEL_STORE_POSTGRES_OWN_H

#include <libpq-fe.h>

#include "base/status.h"

/* Tries to connect; what came of it is in the connection. NULL when there is no memory. */
PGconn *postgres_connect(const char *url);

/* RETRY: the server cannot be reached, and why. */
enum status postgres_unreachable(const PGconn *conn, struct why *why);

#endif
