/*
 * answer: what a server's answer to a tool call says about its effect, and the answers that semel gives itself. Pure.
 *
 *   DONE         a result: kept, and given to everyone who asks again
 *   NO_EFFECT    the server says that it did not understand the call: the tool did not run
 *   FAILED       isError: the tool ran and says that it failed. Not kept. Whether it may run again is the rules' `on_error`
 *   WANTS_INPUT  the tool has not run to its end: it asks for more first. Not kept
 *   UNSURE       any other error: it may have happened
 */
#ifndef SEMEL_MCP_ANSWER_H
#define SEMEL_MCP_ANSWER_H

#include "mcp/rules.h"

#define MCP_RESULT_KEPT_MAX ((size_t)900 << 10) /* of a result; a larger one is given to its caller, and not kept */

enum mcp_outcome { MCP_DONE, MCP_NO_EFFECT, MCP_FAILED, MCP_WANTS_INPUT, MCP_UNSURE };

extern const char *const mcp_outcome_names[]; /* "done", …, NULL */

/* `ret_kept` becomes what a DONE call leaves in the ledger: the result, or a note that it could not be kept. In the arena or in
 * the message. */
enum mcp_outcome mcp_judge(const struct mcp_message *answer, struct arena *arena, struct bytes *ret_kept);

/* What the ledger is told of an outcome other than DONE: true when it may have happened. */
bool mcp_effect_unknown(enum mcp_outcome outcome, const struct mcp_treatment *treatment);

/* ---- semel's own answers; each is one message without a newline ---- */

/* Codes of JSON-RPC errors, in the range that servers may define. */
enum mcp_error {
    MCP_ERROR_PARSE = -32700,
    MCP_ERROR_REQUEST = -32600,
    MCP_ERROR_METHOD = -32601,
    MCP_ERROR_PARAMS = -32602,
    MCP_ERROR_SESSION = -32001,         /* there is no such session */
    MCP_ERROR_HEADERS = -32020,         /* a header is not what the body says */
    MCP_ERROR_OUTCOME_UNKNOWN = -32080, /* nobody can tell whether it happened: do not call again */
    MCP_ERROR_IN_PROGRESS = -32081,     /* the same call is still running elsewhere: call again later */
    MCP_ERROR_KEY_REUSED = -32082,      /* the key stands for other arguments */
    MCP_ERROR_REFUSED = -32083,         /* it did not happen and will not */
    MCP_ERROR_NOT_KEPT = -32084,        /* it was done; its result is not there any more */
    MCP_ERROR_UNAVAILABLE = -32085,     /* the ledger or the server cannot be reached: the tool was not called */
    MCP_ERROR_STOPPED = -32086,         /* an operator stopped this agent */
    MCP_ERROR_BUDGET = -32087,          /* the run or token has used up its calls */
};

/* The word that goes with a code, "outcome_unknown". */
const char *mcp_error_name(enum mcp_error code);

/* `id` as the caller wrote it, BYTES_NONE for null; `intent` may be NULL. */
void mcp_write_error(struct buf *out, struct bytes id, enum mcp_error code, const char *intent, const char *sentence);

/* A server's error, as it wrote it, under the id of the request that it meant. */
void mcp_write_refusal(struct buf *out, struct bytes id, struct bytes error);

/* The kept result under the caller's own id, marked _meta["dev.semel/replayed"]. False when what was kept is no result: then
 * nothing was written. */
bool mcp_write_replay(struct buf *out, struct bytes id, const struct json *kept, const char *intent);

/* The same for an answer in a conversation, which need not have been given by a tool: what is no tool's result is told as text. */
bool mcp_write_turn_replay(struct buf *out, struct bytes id, const struct json *kept, const char *intent);

#endif
