/*
 * rules: what is done with a call of a tool. Pure.
 *
 * A tool that only reads passes. Any other one goes through the ledger: once for its key. What a tool is, is said by its
 * annotations in the server's own tools/list (hints, not proof), and over them by the operator in the policy:
 *
 *     mcp:
 *       mail:
 *         destination: mail-mcp         # the server for /mcp/mail: an HTTP destination of this policy; or
 *         command: [npx, -y, "@acme/mail-mcp"]   # … a command, with env and cwd, up to `processes` of it, ended when they are `idle`
 *         annotations: trust            # or ignore: what the server says about its tools
 *         timeout: 5m
 *         window: 10m                   # calls outside of a run or session: equal ones are the same for so long
 *         calls_per_run: 200
 *         calls_per_hour: 1000
 *         tools:
 *           search: {read_only: true}
 *           send_mail: {key: [to, template], on_error: hold}
 *           append_line: {repeat: 0s}   # equal calls are meant each time, once the one before was answered
 *           upsert_contact: {idempotent: true}
 *           render: {detach: false}     # a call whose client goes away is cancelled, not finished
 *           send_reply: {answers: {action: reply, thread: ticket}}   # an answer in a conversation: see turn.h
 */
#ifndef SEMEL_MCP_RULES_H
#define SEMEL_MCP_RULES_H

#include "base/settings.h"
#include "mcp/message.h"
#include "mcp/params.h"

#define MCP_SERVERS_MAX 256
#define MCP_TOOLS_MAX 4096 /* of one server */
#define MCP_ACTION_MAX 128

enum mcp_on_error { MCP_ON_ERROR_RETRY, MCP_ON_ERROR_HOLD };
enum mcp_unless { MCP_UNSAID = -1, MCP_NO, MCP_YES };

/* A tool whose calls are answers in a conversation. */
struct mcp_answers {
    struct bytes action;
    struct bytes thread, event, question; /* names of the tool's arguments; BYTES_NONE for none. One of the first two is there */
};

/* What the operator says about one tool. */
struct mcp_tool_rules {
    struct bytes name;
    enum mcp_unless read_only, idempotent;
    enum mcp_on_error on_error;
    bool attached;     /* a client that goes away cancels the call */
    int64_t repeat_us; /* an equal call is a new one so long after the last was answered; -1: never */
    struct bytes *key; /* the arguments that say what is changed; none: all of them */
    size_t key_count;
    const struct mcp_answers *answers; /* NULL: its calls are no answers */
};

/* A server that is a command. */
struct mcp_command {
    struct bytes *argv; /* each ends in a NUL */
    size_t argc;
    struct pair *env; /* values may be references of secret/secret.h */
    size_t env_count;
    struct bytes cwd; /* BYTES_NONE: the daemon's */
    int64_t processes_max, idle_us;
};

struct mcp_server_rules {
    struct bytes name, workflow;
    struct bytes destination, path;    /* where the server is, for /mcp/NAME; BYTES_NONE: not over HTTP */
    const struct mcp_command *command; /* … or which it is; NULL: none. With neither there is no /mcp/NAME */
    bool trust;
    int64_t timeout_us;                               /* of a call to the server behind /mcp/NAME */
    int64_t window_us, calls_per_run, calls_per_hour; /* 0: no limit */
    struct mcp_tool_rules *tools;                     /* by name */
    size_t tool_count;
};

/* What holds for one call. */
struct mcp_treatment {
    bool passes; /* it only reads: no ledger */
    bool idempotent, attached;
    enum mcp_on_error on_error;
    int64_t repeat_us;
    const struct bytes *key;
    size_t key_count;
    const struct mcp_answers *answers; /* NULL: it is no answer, unless the call says so */
};

/* ---- what a server says about its tools ---- */

struct mcp_hint {
    struct bytes name;
    bool read_only, idempotent;
    struct mcp_params params;
    struct arena arena; /* of params */
};

/* Learned from tools/list; owns its memory. One thread at a time. */
struct mcp_hints {
    struct mcp_hint *at;
    size_t count, cap;
};

/* The result of tools/list, as JSON text. What is no list of tools is not looked at. */
void mcp_hints_learn(struct mcp_hints *hints, struct bytes result);
void mcp_hints_free(struct mcp_hints *hints);

/* The arguments that headers repeat. Until the next mcp_hints_learn(). */
const struct mcp_params *mcp_hints_params(const struct mcp_hints *hints, struct bytes tool);

/* ---- deciding ---- */

/* `rules` may be NULL: then the hints alone count. */
struct mcp_treatment mcp_treat(const struct mcp_server_rules *rules, const struct mcp_hints *hints, struct bytes tool);

const struct mcp_tool_rules *mcp_tool_find(const struct mcp_server_rules *rules, struct bytes tool);

/* ---- reading them ---- */

enum mcp_place { MCP_SERVER = 1, MCP_TOOL = 2, MCP_ANSWER = 4 };
extern const char *const mcp_place_names[]; /* by the place */
extern const struct setting mcp_settings[];
extern const size_t mcp_setting_count;

/* True when a value of a command's environment is meant as a reference. */
bool mcp_is_secret(struct bytes value);

/* One server of the policy: the node of its name and its settings (NULL for none). FULL when memory runs out. */
CHECKED enum status mcp_server_read(const struct yaml *name, const struct yaml *settings, struct arena *arena,
                                    struct yaml_problems *problems, struct mcp_server_rules *ret);

/* "send_mail=to,template;move_file=source": adds to what is known of these tools. INVALID says what is wrong. */
CHECKED enum status mcp_rules_add_keys(struct mcp_server_rules *rules, struct bytes text, struct arena *arena, struct why *why);

/* "search,fetch": these only read. */
CHECKED enum status mcp_rules_add_readers(struct mcp_server_rules *rules, struct bytes text, struct arena *arena,
                                          struct why *why);

/* "append_line,note": equal calls of these are meant each time. */
CHECKED enum status mcp_rules_add_repeats(struct mcp_server_rules *rules, struct bytes text, struct arena *arena,
                                          struct why *why);

#endif
