#include "mcp/answer.h"

#define NOT_KEPT "dev.semel/not_kept"

const char *const mcp_outcome_names[] = {"done", "no_effect", "failed", "wants_input", "unsure", NULL};

/* ---- judging ---- */

/* The protocol's own refusals come before the tool runs. */
static enum mcp_outcome judge_error(struct bytes error, struct arena *arena)
{
    struct json json;
    struct why why;
    int64_t code = 0;
    if (json_parse(error, &mcp_json_limits, arena, &json, &why) != OK)
        return MCP_UNSURE;
    const struct json *number = json_get(&json, BYTES("code"));
    if (number == NULL || !json_to_i64(number, &code))
        return MCP_UNSURE;
    return code == -32700 || code == -32600 || code == -32601 || code == -32602 ? MCP_NO_EFFECT : MCP_UNSURE;
}

static struct bytes not_kept(struct arena *arena, const char *reason)
{
    struct buf buf;
    buf_init(&buf, 1024);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    json_name(&out, NOT_KEPT);
    json_cstr(&out, reason);
    json_close(&out, '}');
    struct bytes text = arena_dup(arena, buf_bytes(&buf));
    buf_release(&buf);
    return text.at != NULL ? text : BYTES("null");
}

enum mcp_outcome mcp_judge(const struct mcp_message *answer, struct arena *arena, struct bytes *ret_kept)
{
    struct json json;
    struct why why;
    if (answer->error.at != NULL || answer->result.at == NULL)
        return judge_error(answer->error.at != NULL ? answer->error : BYTES("{}"), arena);
    if (json_parse(answer->result, &mcp_json_limits, arena, &json, &why) != OK) {
        *ret_kept = not_kept(arena, "the result is not JSON that can be kept exactly");
        return MCP_DONE;
    }
    const struct json *failed = json_get(&json, BYTES("isError")), *type = json_get(&json, BYTES("resultType"));
    if (failed != NULL && failed->type == JSON_TRUE)
        return MCP_FAILED;
    if (type != NULL && !(type->type == JSON_STRING && bytes_is(type->text, "complete")))
        return MCP_WANTS_INPUT;
    *ret_kept = answer->result.len <= MCP_RESULT_KEPT_MAX ? answer->result : not_kept(arena, "the result is too large to keep");
    return MCP_DONE;
}

bool mcp_effect_unknown(enum mcp_outcome outcome, const struct mcp_treatment *treatment)
{
    switch (outcome) {
    case MCP_DONE:
    case MCP_NO_EFFECT:
    case MCP_WANTS_INPUT:
        return false;
    case MCP_FAILED:
        return treatment->on_error == MCP_ON_ERROR_HOLD && !treatment->idempotent;
    case MCP_UNSURE:
        break;
    }
    return true;
}

/* ---- writing ---- */

const char *mcp_error_name(enum mcp_error code)
{
    switch (code) {
    case MCP_ERROR_PARSE:
        return "malformed";
    case MCP_ERROR_REQUEST:
    case MCP_ERROR_METHOD:
    case MCP_ERROR_PARAMS:
        return "invalid";
    case MCP_ERROR_SESSION:
        return "not_found";
    case MCP_ERROR_HEADERS:
        return "header_mismatch";
    case MCP_ERROR_OUTCOME_UNKNOWN:
        return "outcome_unknown";
    case MCP_ERROR_IN_PROGRESS:
        return "in_progress";
    case MCP_ERROR_KEY_REUSED:
        return "key_reused";
    case MCP_ERROR_REFUSED:
        return "refused";
    case MCP_ERROR_NOT_KEPT:
        return "not_kept";
    case MCP_ERROR_UNAVAILABLE:
        return "unavailable";
    case MCP_ERROR_STOPPED:
        return "stopped";
    case MCP_ERROR_BUDGET:
        return "over_budget";
    }
    return "internal";
}

static void begin(struct json_out *out, struct bytes id)
{
    json_open(out, '{');
    json_name(out, "jsonrpc");
    json_cstr(out, "2.0");
    json_name(out, "id");
    json_raw(out, id.at != NULL ? id : BYTES("null"));
}

void mcp_write_error(struct buf *buf, struct bytes id, enum mcp_error code, const char *intent, const char *sentence)
{
    struct json_out out = json_out_to(buf);
    begin(&out, id);
    json_name(&out, "error");
    json_open(&out, '{');
    json_name(&out, "code");
    json_i64(&out, code);
    json_name(&out, "message");
    json_cstr(&out, sentence);
    json_name(&out, "data");
    json_open(&out, '{');
    json_name(&out, "code");
    json_cstr(&out, mcp_error_name(code));
    if (intent != NULL && intent[0] != '\0') {
        json_name(&out, "intent");
        json_cstr(&out, intent);
    }
    json_close(&out, '}');
    json_close(&out, '}');
    json_close(&out, '}');
}

void mcp_write_refusal(struct buf *buf, struct bytes id, struct bytes error)
{
    struct json_out out = json_out_to(buf);
    begin(&out, id);
    json_name(&out, "error");
    json_raw(&out, error);
    json_close(&out, '}');
}

static void write_meta(struct json_out *out, const struct json *meta, const char *intent)
{
    json_name(out, "_meta");
    json_open(out, '{');
    for (uint32_t i = 0; meta != NULL && meta->type == JSON_OBJECT && i < meta->count; i++) {
        if (bytes_starts(meta->members[i].name, BYTES("dev.semel/")))
            continue;
        json_name_bytes(out, meta->members[i].name);
        json_raw(out, meta->members[i].value.raw);
    }
    json_name(out, "dev.semel/replayed");
    json_bool(out, true);
    json_name(out, "dev.semel/intent");
    json_cstr(out, intent);
    json_close(out, '}');
}

bool mcp_write_replay(struct buf *buf, struct bytes id, const struct json *kept, const char *intent)
{
    struct json_out out = json_out_to(buf);
    if (kept->type != JSON_OBJECT || json_get(kept, BYTES(NOT_KEPT)) != NULL)
        return false;
    begin(&out, id);
    json_name(&out, "result");
    json_open(&out, '{');
    for (uint32_t i = 0; i < kept->count; i++) {
        if (bytes_is(kept->members[i].name, "_meta"))
            continue;
        json_name_bytes(&out, kept->members[i].name);
        json_raw(&out, kept->members[i].value.raw);
    }
    write_meta(&out, json_get(kept, BYTES("_meta")), intent);
    json_close(&out, '}');
    json_close(&out, '}');
    return true;
}

bool mcp_write_turn_replay(struct buf *buf, struct bytes id, const struct json *kept, const char *intent)
{
    const struct json *content = json_get(kept, BYTES("content"));
    bool by_tool = kept->type == JSON_OBJECT &&
                   ((content != NULL && content->type == JSON_ARRAY) || json_get(kept, BYTES(NOT_KEPT)) != NULL);
    if (by_tool || kept->type == JSON_NULL)
        return mcp_write_replay(buf, id, kept, intent);
    struct json_out out = json_out_to(buf);
    begin(&out, id);
    json_name(&out, "result");
    json_open(&out, '{');
    json_name(&out, "content");
    json_open(&out, '[');
    json_open(&out, '{');
    json_text_member(&out, "type", BYTES("text"));
    json_text_member(&out, "text", kept->type == JSON_STRING ? kept->text : kept->raw);
    json_close(&out, '}');
    json_close(&out, ']');
    write_meta(&out, NULL, intent);
    json_close(&out, '}');
    json_close(&out, '}');
    return true;
}
