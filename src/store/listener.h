/*
 * listener: a connection of its own on which the nodes of one PostgreSQL database tell each other that something has changed. What
 * is said is a hint: it is lost with the connection, so whoever needs it also looks by itself now and then. A node says it with
 * NOTIFY_SEND in the transaction of a change, so that nobody hears of it before it is there; or here, when there is no change.
 * SQLite has one process and nobody to tell.
 *
 * One thread owns a listener, but for listener_wake().
 */
#ifndef SEMEL_STORE_LISTENER_H
#define SEMEL_STORE_LISTENER_H

#include "base/bytes.h"
#include "base/status.h"

#define LISTENER_MESSAGE_MAX 7900 /* PostgreSQL takes less than 8000 bytes */

struct listener;

/* Not connected yet. */
CHECKED enum status listener_new(const char *url, struct listener **ret_listener, struct why *why);
void listener_free(struct listener *listener); /* NULL is fine */

/* RETRY when the server cannot be reached. After a connection was lost: again. */
CHECKED enum status listener_connect(struct listener *listener, struct why *why);
bool listener_is_connected(const struct listener *listener);

/* Waits for so long at most, less when something is heard or listener_wake() was called; `heard` gets each message that others have
 * said, those of this node's writer among them. RETRY: the connection is lost. */
CHECKED enum status listener_wait(struct listener *listener, int64_t wait_us, void (*heard)(void *ctx, struct bytes message),
                                  void *ctx, struct why *why);

/* To all others. Not durable, and it waits for no disk. */
CHECKED enum status listener_say(struct listener *listener, struct bytes message, struct why *why);

void listener_wake(struct listener *listener); /* any thread */

#endif
