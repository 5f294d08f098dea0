/*
 * turn: a tool call that is an answer in a conversation. Pure.
 *
 * Each question gets one answer, whoever gives it and by whichever tool, so such a call is named by its conversation and action and
 * not by its arguments (see threads/answer.h, which makes the key). Where they come from:
 *   1. the call: _meta["dev.semel/thread"], "dev.semel/event", "dev.semel/epoch", "dev.semel/question", "dev.semel/action"
 *   2. the tool's rule `answers`, which says the action, and which arguments hold thread, event and question
 * A call that says thread or event says where it belongs altogether; then the arguments are not looked at.
 */
#ifndef SEMEL_MCP_TURN_H
#define SEMEL_MCP_TURN_H

#include "mcp/rules.h"

enum { MCP_EPOCH_UNSAID = -1 };

/* What is unsaid is BYTES_NONE. */
struct mcp_turn {
    bool named; /* the call is an answer: it has an action, and a thread or an event */
    struct bytes thread, event, question, action;
    int64_t epoch;
};

/* What a caller is told when the answer to an earlier question is not settled. */
#define MCP_OTHER_IN_PROGRESS \
    "The tool was not called: the answer to another question of this conversation is not settled yet. Wait, then call it again."
#define MCP_OTHER_UNKNOWN                                                                                                    \
    "The tool was not called: nobody can tell whether another question of this conversation was answered, and answers wait " \
    "until a person has said so with `semel exceptions resolve`. Tell the user."

/* INVALID says what the caller has to send. Everything lives in the arena, in the call or in the rules. */
CHECKED enum status mcp_turn_of(const struct mcp_call *call, const struct mcp_treatment *treatment, struct arena *arena,
                                struct mcp_turn *ret, struct why *why);

#endif
