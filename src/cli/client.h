/*
 * client: calls the daemon over HTTP (libcurl, one connection, one call at a time). The address is --url; the token is
 * SEMEL_TOKEN, or the one in --data DIR/admin.token. Failures are printed here and become exit codes.
 */
#ifndef SEMEL_CLI_CLIENT_H
#define SEMEL_CLI_CLIENT_H

#include <stdatomic.h>

#include "cli/cli.h"

#define CLIENT_REPLY_MAX ((size_t)64 << 20)

struct client_request {
    const char *method;
    struct bytes path;          /* ends in a NUL; with its query */
    struct bytes body;          /* BYTES_NONE for none */
    const char *content_type;   /* NULL is JSON */
    const struct pair *headers; /* in place of the client's own, its token included; NULL for those */
    size_t header_count;
    int64_t wait_us;         /* how long the daemon may take on purpose */
    int64_t timeout_us;      /* how long it may take besides; 0 is 30 s */
    const atomic_bool *stop; /* give up when it becomes true; may be NULL */
};

struct client_reply {
    long status;
    struct bytes body; /* in the arena */
    struct json json;
    bool is_json;
};

/* Sends and prints nothing. OK: something answered, with any status. RETRY: nothing listens there, so nothing was sent. UNKNOWN:
 * no answer came, and the call may have been carried out. INVALID: the address, the token or the certificate is wrong. `ret_code`
 * is the exit code. */
CHECKED enum status client_try(struct cli *cli, const struct client_request *request, struct client_reply *ret_reply,
                               int *ret_code, struct why *why);

/* Sends and gets an answer of any status. Returns the exit code, 0 when something answered. */
int client_send(struct cli *cli, const struct client_request *request, struct client_reply *ret_reply);

/* As client_send, and a status other than 2xx, or an answer that is no JSON object, is printed as an error. */
int client_call(struct cli *cli, const struct client_request *request, struct client_reply *ret_reply);

/* Prints what a reply that is no success says; with --json also the object itself. Returns the exit code. */
int client_problem(struct cli *cli, const struct client_reply *reply);

/* What such a reply says, as one sentence or two. */
void client_sentence(struct cli *cli, const struct client_reply *reply, struct buf *out);

/* The exit code for a problem. `code` may be absent. */
enum cli_exit client_exit(long status, struct bytes code);

/* Appends one part of a path, or `name=value` to its query (nothing when `value` is NULL), with %XX where needed. */
void client_path_add(struct buf *path, struct bytes part);
void client_query_add(struct buf *path, const char *name, const char *value);

/* COLLECTION/ARGUMENT and then `verb`, of the command's first argument; BYTES_NONE when it is too long. */
struct bytes client_path(struct cli *cli, const char *collection, const char *verb);

/* Those of the options `--NAME` that were given, as members of an object. */
void client_write_options(struct cli *cli, struct json_out *out, const char *const *names, size_t count);

/* GET of the path in `path`, which is released. */
int client_get(struct cli *cli, struct buf *path, struct client_reply *ret_reply);

/* GET of a list with those of the options `--FILTER` that were given; prints it with `print`, or as JSON, or says `none`. */
int client_list(struct cli *cli, const char *path, const char *const *filters, size_t count,
                void (*print)(struct cli *cli, const struct json *data), const char *none);

void client_free(struct client *client);

#endif
