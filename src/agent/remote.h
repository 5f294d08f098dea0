/*
 * remote: the MCP server of `semel mcp --upstream URL`: an HTTP peer in the place of a process (streamable HTTP, both eras).
 *
 *     a line of the client ──► POST ──► JSON or events ──► outlet_take(), as if the server had written these lines
 *     up to 2025-11-25 also:  Mcp-Session-Id from `initialize` on, a GET for what the server says unasked, DELETE at the end
 *
 * Promises
 *  - A message is posted once. A request whose connection broke after something had left is lost, and its tool call unknown; one
 *    of which nothing left, or that was refused with a status of 4xx (not 408), did not happen.
 *  - Notifications and answers of the client arrive in their order, before what the client sends after them.
 *  - A session that the server has forgotten (404) is begun anew with the client's own handshake.
 *
 * Callbacks of posts come on the upstream thread; the outlet thread listens, and begins sessions anew.
 */
#ifndef SEMEL_AGENT_REMOTE_H
#define SEMEL_AGENT_REMOTE_H

#include "agent/proxy.h"
#include "agent/upstream.h"
#include "mcp/route.h"
#include "mcp/sse.h"

#define REMOTE_HEADERS_MAX 16 /* of the user */
#define REMOTE_SESSION_MAX 1024
#define REMOTE_VERSION_MAX 64

struct remote {
    struct proxy *proxy;
    struct upstream *upstream;
    struct destination destination;
    struct bytes path;
    struct pair headers[REMOTE_HEADERS_MAX];
    size_t header_count;

    /* under the proxy's lock */
    char session[REMOTE_SESSION_MAX + 1]; /* "" for none */
    char version[REMOTE_VERSION_MAX + 1]; /* that was agreed on; "" for none */
    struct post *posts;
    bool forgotten;       /* the server does not know the session any more */
    int64_t listen_at_us; /* boot clock: when to listen (again); 0: not now */
    int64_t renewals;
    bool ending;
};

enum post_kind {
    POST_PASSES, /* a message of the client */
    POST_OWN,    /* one of ours: the client does not see what comes back */
    POST_LISTEN, /* GET */
    POST_END,    /* DELETE */
};

/* One request over HTTP. */
struct post {
    struct remote *remote;
    enum post_kind kind;
    struct buf line;
    struct mcp_message message; /* refers to it */
    struct mcp_route route;
    bool with_session;
    struct effect_request request;
    struct transport_call call;
    struct arena arena;
    bool events, broken;
    struct mcp_sse sse;
    struct buf body;
    bool answered; /* its answer was given to whom it belongs */
    atomic_bool unwanted;
    bool awaited, done; /* under the proxy's lock: who waits for it frees it */
    struct post *next;
};

/* ---- remote.c ---- */

/* INVALID when the URL or a header cannot be used. */
CHECKED enum status remote_open(struct proxy *proxy, struct remote **ret_remote, struct why *why);

/* One message of the client. Waits until a notification or an answer was taken, not for the answer to a request: that comes to
 * outlet_take(), and what became of a tool call without one to its flight. */
void remote_send(struct remote *remote, struct bytes line);

/* Listens to what the server says unasked, and begins forgotten sessions anew, until remote_end(). */
void remote_listen(struct remote *remote);

/* Waits a while for answers that the client may still read, then ends the session. */
void remote_end(struct remote *remote);

/* ---- remote_post.c ---- */

/* Begins; it ends by itself and is freed, unless it is `awaited`. `line` is BYTES_NONE for GET and DELETE. */
struct post *post_begin(struct remote *remote, enum post_kind kind, struct bytes line, bool awaited);

/* For an awaited one: until it is done, or that time has passed. The HTTP status, 0 for none. The post is gone afterwards. */
int post_wait(struct post *post, int64_t patience_us);

#endif
