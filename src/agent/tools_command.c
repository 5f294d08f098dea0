/* tools_command: `semel mcp-server`, the conversation. */
#include <errno.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/tools.h"
#include "base/version.h"
#include "bridge/lines.h"
#include "cli/print.h"
#include "embedded.h"
#include "mcp/answer.h"

#define OUT_MAX ((size_t)64 << 20)

static const char *const versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}; /* newest first */

static void begin(struct json_out *out, struct bytes id)
{
    json_open(out, '{');
    json_name(out, "jsonrpc");
    json_cstr(out, "2.0");
    json_name(out, "id");
    json_raw(out, id);
    json_name(out, "result");
}

/* The client's version when it is known here, else the newest: then the client decides. */
static const char *choose_version(struct bytes params, struct arena *arena)
{
    struct json json;
    struct why why;
    const struct json *wanted = params.at != NULL && json_parse(params, &mcp_json_limits, arena, &json, &why) == OK
                                    ? json_get(&json, BYTES("protocolVersion"))
                                    : NULL;
    for (size_t i = 0; wanted != NULL && i < sizeof versions / sizeof *versions; i++)
        if (wanted->type == JSON_STRING && bytes_is(wanted->text, versions[i]))
            return versions[i];
    return versions[0];
}

static void write_initialize(struct json_out *out, const char *version)
{
    json_open(out, '{');
    json_name(out, "protocolVersion");
    json_cstr(out, version);
    json_name(out, "capabilities");
    json_open(out, '{');
    json_name(out, "tools");
    json_open(out, '{');
    json_close(out, '}');
    json_close(out, '}');
    json_name(out, "serverInfo");
    json_open(out, '{');
    json_name(out, "name");
    json_cstr(out, "semel");
    json_name(out, "version");
    json_cstr(out, SEMEL_VERSION);
    json_close(out, '}');
    json_name(out, "instructions");
    json_cstr(out, "Before an action that must not happen twice, call semel_claim and act only when it answers \"proceed\"; then "
                   "semel_confirm or "
                   "semel_fail. When it answers \"outcome_unknown\", do not act: tell the user.");
    json_close(out, '}');
}

/* tools.json laid out for people; a line of the protocol has no newlines. */
static void write_list(struct cli *cli, struct json_out *out)
{
    struct json json;
    struct why why;
    enum status status = json_parse(embedded_mcp_tools[0].data, &mcp_json_limits, &cli->arena, &json, &why);
    ASSERT(status == OK);
    status = json_canonical(&json, &cli->arena, out->buf, &why);
    ASSERT(status == OK);
    out->comma = true;
}

static void write_result(struct json_out *out, bool done, struct bytes text)
{
    json_open(out, '{');
    json_name(out, "content");
    json_open(out, '[');
    json_open(out, '{');
    json_name(out, "type");
    json_cstr(out, "text");
    json_name(out, "text");
    json_text(out, text);
    json_close(out, '}');
    json_close(out, ']');
    if (done) {
        json_name(out, "structuredContent");
        json_raw(out, text);
    }
    json_name(out, "isError");
    json_bool(out, !done);
    json_close(out, '}');
}

static void call_tool(struct cli *cli, const struct mcp_message *message, struct buf *buf)
{
    static const struct json none = {.type = JSON_OBJECT, .raw = BYTES("{}")};
    struct mcp_call call;
    struct why why;
    struct buf text;
    bool known = false;
    if (mcp_call_read(message->params, &cli->arena, &call, &why) != OK) {
        mcp_write_error(buf, message->id, MCP_ERROR_PARAMS, NULL, why.text);
        return;
    }
    buf_init(&text, OUT_MAX);
    bool done = tools_call(cli, call.tool, call.arguments != NULL ? call.arguments : &none, &text, &known);
    if (!known) {
        mcp_write_error(buf, message->id, MCP_ERROR_PARAMS, NULL, "There is no such tool; tools/list says which there are.");
    } else {
        struct json_out out = json_out_to(buf);
        begin(&out, message->id);
        write_result(&out, done, buf_bytes(&text));
        json_close(&out, '}');
    }
    buf_release(&text);
}

static void answer(struct cli *cli, const struct mcp_message *message, struct buf *buf)
{
    struct json_out out = json_out_to(buf);
    bool opens = bytes_is(message->method, "initialize"), lists = bytes_is(message->method, "tools/list");
    if (bytes_is(message->method, "tools/call")) {
        call_tool(cli, message, buf);
        return;
    }
    if (!opens && !lists && !bytes_is(message->method, "ping")) {
        mcp_write_error(buf, message->id, MCP_ERROR_METHOD, NULL, "semel mcp-server has tools, and nothing else.");
        return;
    }
    begin(&out, message->id);
    if (opens) {
        write_initialize(&out, choose_version(message->params, &cli->arena));
    } else if (lists) {
        write_list(cli, &out);
    } else {
        json_open(&out, '{');
        json_close(&out, '}');
    }
    json_close(&out, '}');
}

int mcp_server_run(struct cli *cli)
{
    struct lines lines;
    struct bytes line;
    struct buf out;
    enum status status;
    lines_init(&lines, STDIN_FILENO, MCP_LINE_MAX);
    buf_init(&out, OUT_MAX);
    while ((status = lines_next(&lines, -1, &line)) == OK) {
        struct mcp_message message;
        mcp_message_read(line, &message);
        if (message.kind == MCP_REQUEST && !message.doubtful)
            answer(cli, &message, &out);
        else if (message.kind != MCP_NOTIFICATION && message.kind != MCP_RESPONSE && bytes_trim(line).len > 0)
            mcp_write_error(&out, BYTES_NONE, MCP_ERROR_PARSE, NULL, "This line is not one JSON-RPC message.");
        if (out.len > 0 && !out.failed && lines_write(STDOUT_FILENO, buf_bytes(&out)) != out.len + 1)
            break;
        buf_clear(&out);
        arena_clear(&cli->arena);
    }
    buf_release(&out);
    lines_release(&lines);
    return status == FULL ? cli_fail(CLI_DATA, "a line is longer than %zu bytes.", MCP_LINE_MAX) : CLI_OK;
}
