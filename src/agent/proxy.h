/*
 * proxy: `semel mcp -- cmd…` or `--upstream URL`, a stdio proxy between an agent and an MCP server. Each tool call that may change something is made
 * once for its key; everything else passes byte for byte.
 *
 *     client ──► intake ──────────── passes ───────────► server          intake  reads the client (proxy.c)
 *                  │ tools/call                            │             outlet  reads the server (outlet.c)
 *                  ▼                                       ▼             workers carry flights (flight.c): they wait for the
 *               flight: claim ─► sent ─► line ──────► server              ledger and the server, and keep the claim alive
 *     client ◄── flight: confirm ◄──── answer ◄─────── outlet
 *
 * Promises
 *  - `sent` is durable before the line of a tool call goes to the server; the result is durable before the client has it (or is
 *    in the spool when no ledger answers, and then that is said).
 *  - A client that leaves (it closes its end, cancels, is killed) does not end a call: it is finished and stored, and whoever
 *    asks again gets its result. The work is done in a process of its own session, so that killing what the client started does
 *    not kill the call.
 *  - A server that dies in the middle of a call leaves it unknown. It is started again, with the handshake it had.
 *
 * Threads: intake, outlet, up to WORKERS_MAX workers, and one for signals. `lock` guards what they share; nobody holds it while
 * writing to a pipe.
 */
#ifndef SEMEL_AGENT_PROXY_H
#define SEMEL_AGENT_PROXY_H

#include <pthread.h>
#include <sys/types.h>

#include "bridge/process.h"
#include "mcp/answer.h"
#include "mcp/key.h"
#include "mcp/turn.h"
#include "run/way.h"

#define WORKERS_MAX 64
#define FLIGHTS_MAX 1024
#define PASSING_MAX 4096

/* The number of equal calls that were sent before the first of them was answered: they are one call, so one of them asks the ledger. */
struct same {
    size_t uses;
    bool asked, known;
    int64_t number; /* 0: the ledger did not say */
};

/* One tool call on its way through the ledger. */
struct flight {
    struct buf line;            /* as the client sent it, without its newline */
    struct mcp_message message; /* refers to it */
    struct arena arena;
    struct mcp_call call;
    struct mcp_treatment treatment;
    struct mcp_identity identity;
    struct mcp_turn turn;   /* when it is an answer in a conversation, that names it */
    struct way_calls calls; /* what is counted, and its number among equal calls */

    /* under the proxy's lock */
    bool at_server;     /* its line is going there, or went */
    int64_t generation; /* of the server that has it */
    bool lost;          /* that server is gone, or its connection */
    bool untouched;     /* … and nothing of the call has reached it, or it refused it unread */
    struct why why;     /* … because */
    bool answered;
    struct buf answer;
    bool abandoned;    /* the client does not wait for it any more */
    bool told;         /* it has its answer */
    struct same *same; /* NULL where equal calls are never meant anew */
    struct flight *next, *next_queued;
};

/* A request that passes: its id is remembered so that it is answered when the server dies. */
struct passing {
    char *id;
    size_t id_len;
    bool lists_tools, handshake;
};

/* The server process, or what stands for it. A process may be replaced; each has a number. */
struct server {
    struct remote *remote; /* reached over HTTP: then there is no process. See remote.h */
    struct process process;
    _Atomic int64_t generation;
    bool ready;    /* lines may be sent */
    bool given_up; /* there will be no other one */
    bool has_spoken;
    struct restarts restarts;
    int exit_code;
    pthread_mutex_t write_lock;
    struct buf initialize, initialized; /* the client's own lines, for the next server */
};

struct proxy {
    struct cli *cli;
    char *const *argv;                /* NULL when … */
    struct bytes upstream;            /* … the server is reached at this URL */
    struct policy *policy;            /* holds the rules' texts; NULL for none */
    struct mcp_server_rules rules;    /* the operator's, with what the command line adds */
    struct bytes name, workflow, run; /* of the server; of the ledger; the run or session */
    int64_t lease_us, wait_us, linger_us;
    bool call_if_unreachable;
    const char *data; /* see run/way.h */

    pthread_mutex_t out_lock; /* of writing to the client */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* monotonic clock */
    struct server server;
    struct flight *flights; /* all of them */
    size_t flight_count;
    struct flight *queued, **queued_end;
    size_t workers, idle;
    struct mcp_hints hints;
    struct passing passing[PASSING_MAX];
    size_t passing_count;
    atomic_bool leaving; /* the client has left, or someone asked us to stop */
    atomic_bool stop;    /* someone asked us to */
    int wake;            /* an eventfd: there is nothing more to take in */
    pid_t front;         /* the process that the client started; ours is its child */
};

/* ---- proxy.c ---- */

/* Runs until client and server are done; returns the exit code. */
int proxy_run(struct proxy *proxy);

/* With the lock: until something changed, or that moment. */
void proxy_wait_until(struct proxy *proxy, int64_t boot_us);

/* One line to the client, whole. */
void proxy_tell(struct proxy *proxy, struct bytes line);
void proxy_tell_error(struct proxy *proxy, struct bytes id, enum mcp_error code, const char *intent, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* A request that goes to the server as it is; `lists_tools`: its answer is learned from. Returns false when there is no server. */
bool proxy_pass_request(struct proxy *proxy, struct bytes line, const struct mcp_message *message);

/* ---- server.c ---- */

CHECKED enum status server_start(struct proxy *proxy, struct why *why);

/* Any thread. Waits for a server that is being started. True when the whole line was written. `generation` (0: whichever is
 * there) is the server that it is meant for; `ret_begun` (may be NULL) says whether any of it left. */
bool server_send(struct proxy *proxy, struct bytes line, int64_t generation, bool *ret_begun);

/* The number of the server that takes lines now; 0 when there is none. Waits a while for one that is being started. With the lock. */
int64_t server_wait_ready(struct proxy *proxy);

/* Its end was read: reaps it and, while the client is there, starts another. True when there is one. Outlet only. */
bool server_replace(struct proxy *proxy);

/* The handshake that the client had with the first server, under an id of our own: "semel-restart-NUMBER". */
void server_handshake(const struct server *server, int64_t number, struct buf *out);

/* No more lines: the server may end. Then it is told to, and at last made to. */
void server_close_input(struct proxy *proxy);
void server_end(struct proxy *proxy);

/* ---- outlet.c ---- */

void *outlet_main(void *proxy);

/* One message of the server, without a newline. Outlet, or the upstream thread. */
void outlet_take(struct proxy *proxy, struct bytes line);

/* A request that passed and was cancelled will not be answered. */
void outlet_forget(struct proxy *proxy, struct bytes id);

/* ---- flight.c ---- */

/* Takes over the line. Answers it itself when it cannot be taken. Intake only. */
void flight_begin(struct proxy *proxy, struct bytes line, const struct mcp_message *message);

/* Until no call is under way, or `linger_us` have passed since it is called. */
void flights_finish(struct proxy *proxy);

#endif
