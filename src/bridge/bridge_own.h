/* bridge_own: what the files of the bridge share. All of it belongs to the bridge's thread, but what is under the lock. */
#ifndef SEMEL_BRIDGE_BRIDGE_OWN_H
#define SEMEL_BRIDGE_BRIDGE_OWN_H

#include <pthread.h>

#include "base/hash.h"
#include "bridge/bridge.h"
#include "bridge/lines.h"
#include "bridge/process.h"
#include "env/env.h"

#define SESSION_ID_SIZE 32
#define SESSIONS_MAX 512              /* of all servers */
#define ASKED_MAX 256                 /* requests of one process that its client has not answered */
#define WAITING_MAX ((size_t)1 << 20) /* what a process says while nobody listens */
#define OUT_MAX ((size_t)64 << 20)    /* what one process has not read yet */

/* A request of a client, until it is answered. Also a stream that listens: then it has no number. */
struct exchange {
    struct bridge_call *call;
    int64_t number;         /* its id at the process */
    struct bytes id, token; /* as the client wrote them, in the call's memory; BYTES_NONE for none */
    bool initialize, modern, subscribes;
    bool takes_events, streaming;
    bool early;        /* its line waits for the handshake */
    int64_t begins_at; /* of what goes to the process, where its line begins */
    int64_t since_us;
    struct exchange *next;
};

/* A request of the process, by the number that its client knows. */
struct asked {
    int64_t number;
    char *id; /* as the process wrote it */
    size_t id_len;
};

/* One process, and whoever it works for. */
struct session {
    struct bridge *bridge;
    struct command *command;
    char id[SESSION_ID_SIZE + 1]; /* "" for a token's calls without sessions */
    char *actor;
    struct process process;
    bool runs;             /* there is a process */
    bool ready;            /* lines may be sent */
    bool has_spoken, over; /* over: nobody may use it any more; it ends with its last exchange */
    int64_t generation, started_us, used_us;
    struct restarts restarts;
    struct lines lines;
    struct buf out, early;
    size_t out_at;
    int64_t written;
    struct buf initialize, initialized; /* the client's own lines */
    struct exchange *exchanges;         /* the newest first */
    struct exchange *listener;
    struct buf waiting; /* lines for a listener */
    struct asked asked[ASKED_MAX];
    size_t asked_count;
    struct session *next;
};

/* A command as the policy names it, for one space. */
struct command {
    struct arena arena;
    struct bytes name, space;
    struct hash hash; /* of what is run */
    char **argv;
    struct pair *env;
    size_t env_count;
    const char *directory;
    int64_t processes_max, idle_us;
    bool over; /* the policy does not name it any more */
    struct session *sessions;
    size_t session_count;
    struct command *next;
};

/* A process that was told to end. */
struct ending {
    pid_t pid;
    int64_t since_us;
    int step;
    struct ending *next;
};

struct bridge {
    struct env *env;
    struct secrets *secrets;
    pthread_t thread;
    int wake; /* an eventfd */
    struct command *commands;
    size_t session_count;
    struct ending *endings;
    int64_t numbers; /* given to requests and questions so far */

    pthread_mutex_t lock;
    struct bridge_call *queued, **queued_end;
    struct policy *policy; /* a newer one; NULL for none */
    bool stop;
};

int64_t bridge_now_us(const struct bridge *bridge);

/* ---- exchange.c: what goes back to a client ---- */

struct exchange *exchange_new(struct bridge_call *call, int64_t now_us);

/* A whole answer of our own to a message (NULL for none): a status of HTTP and one JSON-RPC error (`code` 0: no body). */
void call_refuse(struct bridge_call *call, const struct mcp_message *message, int status, int code, const char *sentence);
void call_end(struct bridge_call *call, enum transport_end end, const struct why *why);

/* True when someone would hear it. */
bool exchange_hears(const struct exchange *exchange);
void exchange_listen(struct exchange *exchange);
void exchange_say(struct exchange *exchange, struct bytes message);

/* The exchange is gone afterwards. `session` is the id that its client gets to know; "" for none. */
void exchange_answer(struct exchange *exchange, struct bytes message, const char *session);
void exchange_end(struct exchange *exchange, enum transport_end end, const char *sentence);

/* ---- session.c: one process ---- */

/* NULL when there are too many, none of which could be ended. */
struct session *session_new(struct bridge *bridge, struct command *command, struct bytes actor, bool with_id);

/* Its process runs, or is started. */
CHECKED enum status session_run(struct session *session, struct why *why);

/* Lines to the process: a request of a client; anything else. */
void session_ask(struct session *session, struct exchange *exchange, struct bytes line);
void session_tell(struct session *session, struct bytes line);

/* The client does not wait for it any more. */
void session_cancel(struct session *session, const struct exchange *exchange);

/* What poll() found. */
void session_read(struct session *session);
void session_write(struct session *session);

/* Time-outs, clients that left, handshakes that fail, idleness. False when the session is gone. */
bool session_check(struct session *session);

/* Ends its process and everything that waits for it. The session is gone. */
void session_end(struct session *session, const char *sentence);

/* ---- listen.c: what a process says ---- */

void session_take(struct session *session, struct bytes line);

/* What waited for a listener. */
void session_give_waiting(struct session *session);

/* The process's own id for the question that a client answers; BYTES_NONE when it did not ask, or not any more. Until the next call. */
struct bytes session_answered(struct session *session, struct bytes id, struct arena *arena);
void session_forget_asked(struct session *session);

/* ---- request.c: what comes from a client ---- */

void bridge_take(struct bridge *bridge, struct bridge_call *call);

/* ---- bridge.c ---- */

struct command *bridge_command(struct bridge *bridge, const struct bridge_call *call);
void bridge_end_process(struct bridge *bridge, pid_t pid);

#endif
