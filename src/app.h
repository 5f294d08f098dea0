/*
 * app: the daemon. Opens the data, starts the engine and the HTTP face, stops them in order on SIGTERM or SIGINT.
 */
#ifndef SEMEL_APP_H
#define SEMEL_APP_H

#include "base/bytes.h"
#include "base/log.h"

#include "base/version.h"

struct app_options {
    const char *data_dir, *listen, *policy_file, *postgres_url, *tls_cert, *tls_key;
    const char *lmtp, *smtp, *smtps; /* where mail is taken; NULL: nowhere */
    bool smtp_login;                 /* SMTP only after a login */
    const char *master_key;          /* a file; NULL: the service manager's credential, else our own in the data directory */
    enum log_level log_level;
    enum log_format log_format;
    bool open; /* `up`: loopback only, no tokens asked for */
};

/* Runs until told to stop; returns the exit code. */
int app_run(const struct app_options *options);

#endif
