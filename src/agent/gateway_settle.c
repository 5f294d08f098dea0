/* gateway_settle: what became of a tool call, for the ledger and for its caller. */
#include "agent/gateway.h"

/* The message that answers the call; false when none came. */
static bool find_answer(const struct passage *passage, struct mcp_message *ret)
{
    struct bytes text = passage->streaming ? buf_bytes(&passage->data) : buf_bytes(&passage->body);
    bool whole = passage->streaming || (passage->transport.end == TRANSPORT_ANSWERED && !passage->body.failed);
    mcp_message_read(text, ret);
    /* A server that could not read the request answers without its id. */
    return whole && ret->kind == MCP_RESPONSE &&
           (bytes_eq(ret->id, passage->message.id) || (!passage->streaming && ret->error.at != NULL));
}

/* Without an answer: refused before anything ran, or nobody can tell. */
static enum mcp_outcome judge_silence(const struct passage *passage)
{
    enum transport_end end = passage->transport.end;
    bool refused = passage->head.status >= 400 && passage->head.status < 500 && passage->head.status != 408;
    if (end == TRANSPORT_NOT_SENT || ((end == TRANSPORT_ANSWERED || end == TRANSPORT_CUT) && refused))
        return MCP_NO_EFFECT;
    return MCP_UNSURE;
}

/* The stream has begun: an error of our own has to be an event of it. */
static void end_with_error(struct passage *passage, enum mcp_error code, const char *sentence)
{
    char intent[32];
    struct buf out;
    id_format("int", passage->intent, intent);
    buf_init(&out, passage->message.id.len + 8192);
    mcp_write_error(&out, passage->message.id, code, intent, sentence);
    buf_clear(&passage->answer);
    buf_add_cstr(&passage->answer, "event: message\ndata: ");
    buf_add(&passage->answer, buf_bytes(&out));
    buf_add_cstr(&passage->answer, "\n\n");
    buf_release(&out);
    passage_give(passage);
}

static void tell(struct passage *passage, enum mcp_error code, const char *sentence)
{
    if (passage->begun) {
        end_with_error(passage, code, sentence);
        return;
    }
    struct passage kept = *passage;
    passage_error(passage, 200, code, "%s", sentence);
    passage_drop(&kept);
}

/* The ledger has it, or could not take it. */
static void settled(struct call *call)
{
    struct passage *passage = call->state;
    struct mcp_message message;
    bool told = call->command.status == OK && call->command.answer.verdict == VERDICT_DONE;
    bool answered = find_answer(passage, &message);
    if (!told) {
        tell(passage, MCP_ERROR_OUTCOME_UNKNOWN,
             "The tool was called, but what became of it could not be recorded. Do not call it again; tell the user.");
    } else if (answered) {
        passage_give(passage);
    } else if (call->command.ledger.effect_unknown) {
        tell(passage, MCP_ERROR_OUTCOME_UNKNOWN,
             "The MCP server did not answer, and nobody can tell whether the tool ran. Do not call it again with these "
             "arguments: it could "
             "happen twice. Tell the user. A person settles it with `semel exceptions resolve`.");
    } else if (passage->transport.end == TRANSPORT_ANSWERED && !passage->body.failed) {
        passage_give(passage); /* a refusal of the server, as it said it: the session is gone, the token is wrong */
    } else {
        tell(passage, MCP_ERROR_UNAVAILABLE,
             "The MCP server cannot be reached. The tool was not called; the call may be made again.");
    }
}

static enum gateway_outcome counted(enum mcp_outcome outcome, bool effect_unknown)
{
    return outcome == MCP_DONE ? GATEWAY_DONE : effect_unknown ? GATEWAY_UNKNOWN : GATEWAY_FAILED;
}

void passage_settle(struct passage *passage)
{
    struct call *call = passage->call;
    struct mcp_message message;
    struct bytes kept = BYTES_NONE;
    enum mcp_outcome outcome =
        find_answer(passage, &message) ? mcp_judge(&message, &passage->arena, &kept) : judge_silence(passage);
    bool effect_unknown = mcp_effect_unknown(outcome, &passage->treatment);
    passage->server->counts[counted(outcome, effect_unknown)]++;
    call->command = (struct engine_command){.ledger = {.op = outcome == MCP_DONE ? OP_CONFIRM : OP_FAIL,
                                                       .space = call->space,
                                                       .actor = call->actor,
                                                       .policy = call->api->policy_version,
                                                       .intent = passage->intent,
                                                       .fence = passage->fence,
                                                       .result = kept,
                                                       .error = BYTES("the MCP server did not give a result"),
                                                       .effect_unknown = effect_unknown}};
    if (outcome == MCP_DONE)
        passage_will_answer(passage, &call->command);
    if (passage->gateway->closed) { /* semel has stopped: the lease will say that nobody can tell */
        tell(passage, MCP_ERROR_OUTCOME_UNKNOWN, "semel stopped while the tool was running. Ask again when it is back.");
        return;
    }
    call_submit(call, settled);
}
