/*
 * gateway: /mcp/{server}, an MCP server behind semel (streamable HTTP, protocol eras up to 2025-11-25 and 2026-07-28). The policy's
 * section `mcp:` says where the server is, or which command it is (bridge/), and what its tools are. As with `semel mcp`, a tool call that may change something goes
 * through the ledger and everything else passes, streams included.
 *
 *     POST tools/call ─► claim ─► upstream ─► events pass; the answer waits ─► confirm ─► the answer
 *                          └─► replay, or an error of JSON-RPC
 *     other POST, GET, DELETE ─► upstream ─► as it comes
 *
 * Promises
 *  - The claim counts as sent before a byte goes to the server; the answer to a tool call is durable before the client has it.
 *  - A client that leaves does not end a tool call: it is finished and stored, and whoever asks again gets its result; unless the
 *    tool's rules say `detach: false`: then it is cancelled, and nobody can tell what became of it.
 *
 * Which calls are equal: the same server, tool and identity arguments within the run (header Semel-Run, _meta["dev.semel/run"]), else
 * within the session (Mcp-Session-Id), else by the same token within the server's `window`.
 *
 * Everything here but the callbacks of upstream calls runs on the HTTP loop.
 */
#ifndef SEMEL_AGENT_GATEWAY_H
#define SEMEL_AGENT_GATEWAY_H

#include "agent/upstream.h"
#include "api/api.h"
#include "bridge/bridge.h"
#include "mcp/answer.h"
#include "mcp/key.h"
#include "mcp/sse.h"
#include "mcp/turn.h"
#include "runs/calls.h"

enum gateway_outcome {
    GATEWAY_PASSED,
    GATEWAY_DONE,
    GATEWAY_REPLAYED,
    GATEWAY_FAILED,
    GATEWAY_UNKNOWN,
    GATEWAY_REFUSED,
    GATEWAY_OUTCOMES
};

/* What is known of one server, by its name in the policy; kept when the policy changes. */
struct gateway_server {
    char name[SETTING_NAME_MAX + 1];
    struct mcp_hints hints;
    uint64_t counts[GATEWAY_OUTCOMES];
    struct gateway_server *next;
};

struct gateway {
    struct upstream *upstream;
    struct bridge *bridge; /* to servers that are commands; made by the first call to one */
    bool closed;
    struct gateway_server *servers;
    struct passage *held; /* tool calls under way */
};

/* One request on its way. */
struct passage {
    struct call *call;
    struct gateway *gateway;
    struct gateway_server *server;
    struct policy *policy; /* in use until the call is answered */
    const struct mcp_server_rules *rules;
    const struct destination *destination; /* NULL for a server that is a command */
    struct mcp_message message;            /* a POST's */
    bool held;                             /* a tool call that goes through the ledger */
    bool lists_tools;
    struct mcp_call tool;
    struct mcp_treatment treatment;
    struct mcp_identity identity;
    struct mcp_turn turn; /* when it is an answer in a conversation, that names it */
    struct claim_naming naming;
    struct ledger_answer replay;
    struct bytes scope, session;
    bool by_window;
    struct calls_order calls; /* what is counted, and its number among equal calls */
    int64_t intent, fence;
    atomic_bool cancelled; /* its client does not wait for it, and the rules say that it is not finished then */
    struct passage *next;

    /* the upstream thread's, until `done` */
    struct effect_request request;
    struct transport_call transport;
    struct bridge_call bridged;
    struct arena arena;
    struct effect_reply head;
    bool streaming, begun, broken;
    struct mcp_sse sse;
    struct buf body;   /* an answer that is no stream */
    struct buf answer; /* the event that answers the tool call, as it came */
    struct buf data;   /* … and its message */
};

/* ---- gateway_answer.c: what goes back ---- */

/* Sends the request to the server and its answer to the client. */
void passage_send(struct passage *passage);

/* One message of JSON-RPC as the whole answer. `out` is released. The passage is gone afterwards, as with the others. */
void passage_reply(struct passage *passage, int status, struct buf *out);
void passage_error(struct passage *passage, int status, enum mcp_error code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The move that `command` makes is the answer: an equal call after it may be meant anew, where the rules let it repeat. */
void passage_will_answer(struct passage *passage, struct engine_command *command);

/* Gives back the policy; before every answer. */
void passage_release(struct passage *passage);

/* Gives back what came from the server. The passage itself ends with its answer, so this wants a copy of it. */
void passage_drop(struct passage *copy);

/* ---- gateway_settle.c: what became of a tool call ---- */

/* The server has answered, or will not. On the loop. */
void passage_settle(struct passage *passage);

/* The answer that was held back, when the ledger has it. */
void passage_give(struct passage *passage);

/* Before the engine closes: breaks off what is under way. And behind the HTTP server, which answers it: gives the memory back. */
void gateway_close(struct api *api);
void gateway_free(struct api *api);

#endif
