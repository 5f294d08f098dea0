#include "mcp/rules.h"

#include <stdlib.h>

#include "base/reference.h"
#include "base/when.h"

#define HINTS_ARENA_MAX ((size_t)256 << 20)
#define HINT_PARAMS_MAX ((size_t)1 << 16)

/* ---- the settings ---- */

enum mcp_row {
    ROW_DESTINATION,
    ROW_PATH,
    ROW_COMMAND,
    ROW_ENV,
    ROW_CWD,
    ROW_PROCESSES,
    ROW_IDLE,
    ROW_WORKFLOW,
    ROW_ANNOTATIONS,
    ROW_TIMEOUT,
    ROW_WINDOW,
    ROW_CALLS_PER_RUN,
    ROW_CALLS_PER_HOUR,
    ROW_TOOLS,
    ROW_READ_ONLY,
    ROW_IDEMPOTENT,
    ROW_KEY,
    ROW_ON_ERROR,
    ROW_REPEAT,
    ROW_DETACH,
    ROW_ANSWERS,
    ROW_ACTION,
    ROW_THREAD,
    ROW_EVENT,
    ROW_QUESTION,
    ROW_COUNT,
};

static const char *const annotations_names[] = {"trust", "ignore", NULL};
static const char *const on_error_names[] = {"retry", "hold", NULL};

static bool is_path(struct bytes text)
{
    return text.len > 0 && text.at[0] == '/';
}

static void explain_path(struct bytes text, struct why *ret)
{
    (void)text;
    why_set(ret, INVALID, "path begins with '/', such as /mcp");
}

static const struct setting_form path_form = {"a path", "path", is_path, explain_path};

#define ROW(row_name, row_kind, row_places, row_default, row_example, row_help, ...)                                             \
    {                                                                                                                            \
        .name = (row_name), .kind = (row_kind), .places = (row_places), .default_text = (row_default), .example = (row_example), \
        .help = (row_help), ##__VA_ARGS__                                                                                        \
    }

const struct setting mcp_settings[] = {
    [ROW_DESTINATION] = ROW("destination", SETTING_TEXT, MCP_SERVER, NULL, "mail-mcp",
                            "The HTTP destination of this policy that is the server behind /mcp/NAME."),
    [ROW_PATH] =
        ROW("path", SETTING_FORM, MCP_SERVER, "/mcp", "/mcp", "The server's path at that destination.", .form = &path_form),
    [ROW_COMMAND] = ROW("command", SETTING_LIST, MCP_SERVER, NULL, "[npx, -y, \"@acme/mail-mcp\"]",
                        "The program that is the server behind /mcp/NAME, on its stdin and stdout, instead of a destination.",
                        .item = "a word of the command", .repeats = true),
    [ROW_ENV] = ROW("env", SETTING_GROUP, MCP_SERVER, NULL, "{MAIL_TOKEN: secret:mail}",
                    "What is added to the command's environment: texts, or env:NAME, file:/path, secret:NAME."),
    [ROW_CWD] =
        ROW("cwd", SETTING_FORM, MCP_SERVER, NULL, "/srv/mail", "The directory that the command runs in.", .form = &path_form),
    [ROW_PROCESSES] = ROW("processes", SETTING_INTEGER, MCP_SERVER, "16", "16",
                          "How many processes of the command may run: each session has one, and each token without sessions.",
                          .min = 1, .max = 256),
    [ROW_IDLE] = ROW("idle", SETTING_DURATION, MCP_SERVER, "30m", "30m",
                     "A process that nobody has used for so long is ended, and its session with it.", .min = WHEN_SECOND,
                     .max = 30 * WHEN_DAY),
    [ROW_WORKFLOW] = ROW("workflow", SETTING_TEXT, MCP_SERVER, NULL, "mcp.mail",
                         "The workflow whose rules hold for its tool calls; without it mcp.NAME."),
    [ROW_ANNOTATIONS] =
        ROW("annotations", SETTING_CHOICE, MCP_SERVER, "trust", "ignore",
            "Whether what the server says about its tools counts (readOnlyHint, idempotentHint).", .names = annotations_names),
    [ROW_TIMEOUT] = ROW("timeout", SETTING_DURATION, MCP_SERVER, "5m", "5m",
                        "How long the server behind /mcp/NAME may take for one call.", .min = WHEN_SECOND, .max = 12 * WHEN_HOUR),
    [ROW_WINDOW] = ROW("window", SETTING_DURATION, MCP_SERVER, "10m", "10m",
                       "For calls outside of a run or session: how long an equal call is the same one after it was done.",
                       .min = WHEN_SECOND, .max = 400 * WHEN_DAY),
    [ROW_CALLS_PER_RUN] = ROW("calls_per_run", SETTING_INTEGER, MCP_SERVER, NULL, "200",
                              "How many tool calls one run or session may make.", .min = 1, .max = 1000000000),
    [ROW_CALLS_PER_HOUR] = ROW("calls_per_hour", SETTING_INTEGER, MCP_SERVER, NULL, "1000",
                               "How many tool calls one token may make in an hour.", .min = 1, .max = 1000000000),
    [ROW_TOOLS] =
        ROW("tools", SETTING_GROUP, MCP_SERVER, NULL, "{search: {read_only: true}}", "What is known about its tools, by name."),
    [ROW_READ_ONLY] = ROW("read_only", SETTING_SWITCH, MCP_TOOL, NULL, "true",
                          "true: it only reads, so its calls pass; false: they go through the ledger, whatever the server says."),
    [ROW_IDEMPOTENT] = ROW("idempotent", SETTING_SWITCH, MCP_TOOL, NULL, "true",
                           "true: it may be called again when nobody can tell whether the first call happened."),
    [ROW_KEY] = ROW("key", SETTING_LIST, MCP_TOOL, NULL, "[to, template]",
                    "The arguments that say what is changed; a call that differs only in others is the same call.",
                    .item = "the name of an argument, such as to"),
    [ROW_ON_ERROR] = ROW("on_error", SETTING_CHOICE, MCP_TOOL, "retry", "hold",
                         "When the tool answers isError: it may be called again, or a person decides.", .names = on_error_names),
    [ROW_REPEAT] = ROW("repeat", SETTING_DURATION, MCP_TOOL, NULL, "0s",
                       "An equal call is meant anew so long after the last one was answered; without it never.", .min = 0,
                       .max = 400 * WHEN_DAY),
    [ROW_DETACH] = ROW("detach", SETTING_SWITCH, MCP_TOOL, "true", "false",
                       "false: at /mcp/NAME a client that goes away cancels the call, instead of having it finished."),
    [ROW_ANSWERS] = ROW("answers", SETTING_GROUP, MCP_TOOL, NULL, "{action: reply, thread: ticket, question: message}",
                        "Its calls are answers in a conversation: each question gets one, whoever gives it."),
    [ROW_ACTION] = ROW("action", SETTING_TEXT, MCP_ANSWER, NULL, "reply", "Which answer it is; tools with one action share it."),
    [ROW_THREAD] = ROW("thread", SETTING_TEXT, MCP_ANSWER, NULL, "ticket", "The argument that says the conversation."),
    [ROW_EVENT] = ROW("event", SETTING_TEXT, MCP_ANSWER, NULL, "event", "The argument that says the event that is answered."),
    [ROW_QUESTION] = ROW("question", SETTING_TEXT, MCP_ANSWER, NULL, "message_id",
                         "The argument that says which question it is, in a conversation that semel did not see come in."),
};

const size_t mcp_setting_count = ROW_COUNT;
_Static_assert(sizeof mcp_settings / sizeof *mcp_settings == ROW_COUNT, "one row per setting");

static const char *belongs(const struct setting *row, unsigned place)
{
    (void)place;
    return row->places == MCP_SERVER ? "under a server" : row->places == MCP_TOOL ? "under a tool" : "under answers of a tool";
}

const char *const mcp_place_names[] = {[MCP_SERVER] = "server", [MCP_TOOL] = "tool", [MCP_ANSWER] = "answers"};

static const struct setting_table mcp_table = {mcp_settings, ROW_COUNT, belongs};

/* ---- reading ---- */

static int tools_by_name(const void *a, const void *b)
{
    return bytes_cmp(((const struct mcp_tool_rules *)a)->name, ((const struct mcp_tool_rules *)b)->name);
}

static struct mcp_tool_rules tool_unsaid(struct bytes name)
{
    return (struct mcp_tool_rules){.name = name, .read_only = MCP_UNSAID, .idempotent = MCP_UNSAID, .repeat_us = -1};
}

static enum mcp_unless unless_of(const struct setting_value *value)
{
    return !value->given ? MCP_UNSAID : value->number != 0 ? MCP_YES : MCP_NO;
}

/* `tool` are the settings beside it. A policy with problems is not used. */
static enum status read_answers(const struct setting_value *tool, struct arena *arena, struct yaml_problems *problems,
                                const struct mcp_answers **ret)
{
    static const enum mcp_row others[] = {ROW_KEY, ROW_REPEAT};
    const struct setting_value *group = &tool[ROW_ANSWERS];
    struct setting_value at[ROW_COUNT];
    if (!group->given)
        return OK;
    TRY(settings_read(&mcp_table, group->group, MCP_ANSWER, arena, at, problems));
    bool placed = at[ROW_THREAD].text.len > 0 || at[ROW_EVENT].text.len > 0;
    bool refused = at[ROW_ACTION].refused || at[ROW_THREAD].refused || at[ROW_EVENT].refused;
    if (!refused && (at[ROW_ACTION].text.len == 0 || at[ROW_ACTION].text.len > MCP_ACTION_MAX || !placed))
        yaml_problem_add(problems, group->line, group->column,
                         "answers wants an action of 1 to %d bytes, and thread or event, such as {action: reply, thread: ticket}",
                         MCP_ACTION_MAX);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (tool[others[i]].given)
            yaml_problem_add(problems, tool[others[i]].line, tool[others[i]].column,
                             "a tool with answers is named by its conversation; leave '%s' out", mcp_settings[others[i]].name);
    if (tool[ROW_READ_ONLY].given && tool[ROW_READ_ONLY].number != 0)
        yaml_problem_add(problems, tool[ROW_READ_ONLY].line, tool[ROW_READ_ONLY].column,
                         "a tool that answers does not only read; leave one of the two out");
    struct mcp_answers *answers = arena_zalloc(arena, 1, sizeof *answers);
    if (answers == NULL)
        return FULL;
    *answers = (struct mcp_answers){at[ROW_ACTION].text, at[ROW_THREAD].text, at[ROW_EVENT].text, at[ROW_QUESTION].text};
    *ret = answers;
    return OK;
}

static enum status read_tool(const struct yaml *name, struct arena *arena, struct yaml_problems *problems,
                             struct mcp_tool_rules *ret)
{
    struct setting_value at[ROW_COUNT];
    const struct yaml *settings = name->next;
    struct bytes shown = yaml_clip(name->text);
    if (settings->kind != YAML_MAP && !yaml_is_absent(settings))
        yaml_problem_add(problems, settings->line, settings->column, "tool '%.*s' wants settings such as {read_only: true}",
                         BYTES_ARG(shown));
    TRY(settings_read(&mcp_table, settings->kind == YAML_MAP ? settings : NULL, MCP_TOOL, arena, at, problems));
    *ret = tool_unsaid(arena_dup(arena, name->text));
    ret->read_only = unless_of(&at[ROW_READ_ONLY]);
    ret->idempotent = unless_of(&at[ROW_IDEMPOTENT]);
    ret->on_error = at[ROW_ON_ERROR].given ? (enum mcp_on_error)at[ROW_ON_ERROR].number : MCP_ON_ERROR_RETRY;
    ret->attached = at[ROW_DETACH].given && at[ROW_DETACH].number == 0;
    ret->repeat_us = at[ROW_REPEAT].given ? at[ROW_REPEAT].number : -1;
    ret->key = at[ROW_KEY].list;
    ret->key_count = at[ROW_KEY].list_count;
    TRY(read_answers(at, arena, problems, &ret->answers));
    return ret->name.at != NULL ? OK : FULL;
}

static enum status read_tools(const struct yaml *group, struct arena *arena, struct yaml_problems *problems,
                              struct mcp_server_rules *ret)
{
    if (group == NULL)
        return OK;
    if (group->count > MCP_TOOLS_MAX) {
        yaml_problem_add(problems, group->line, group->column, "there are %zu tools; at most %d are read", group->count,
                         MCP_TOOLS_MAX);
        return OK;
    }
    ret->tools = arena_zalloc(arena, group->count + 1, sizeof *ret->tools);
    if (ret->tools == NULL)
        return FULL;
    for (const struct yaml *name = group->first; name != NULL; name = name->next->next) {
        if (name->kind != YAML_TEXT || name->text.len == 0 || name->text.len > MCP_TOOL_NAME_MAX) {
            yaml_problem_add(problems, name->line, name->column, "the name of a tool is a text of 1 to %d bytes",
                             MCP_TOOL_NAME_MAX);
            continue;
        }
        if (mcp_tool_find(ret, name->text) != NULL)
            yaml_problem_add(problems, name->line, name->column, "this tool is given twice; keep one");
        TRY(read_tool(name, arena, problems, &ret->tools[ret->tool_count++]));
        qsort(ret->tools, ret->tool_count, sizeof *ret->tools, tools_by_name);
    }
    return OK;
}

/* What only a command has, and what it needs. */
static void check_command(const struct setting_value *at, struct yaml_problems *problems)
{
    static const enum mcp_row parts[] = {ROW_ENV, ROW_CWD, ROW_PROCESSES, ROW_IDLE};
    const struct setting_value *command = &at[ROW_COMMAND];
    if (command->given && at[ROW_DESTINATION].given)
        yaml_problem_add(problems, command->line, command->column,
                         "a server is either a destination or a command; leave one out");
    if (command->given && (command->list_count == 0 || command->list[0].len == 0))
        yaml_problem_add(problems, command->line, command->column,
                         "command wants a program and its arguments, such as [npx, -y, x]");
    for (size_t i = 0; i < command->list_count; i++)
        if (memchr(command->list[i].at, '\0', command->list[i].len) != NULL)
            yaml_problem_add(problems, command->line, command->column, "a word of a command has no U+0000");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!command->given && !command->refused && at[parts[i]].given)
            yaml_problem_add(problems, at[parts[i]].line, at[parts[i]].column, "'%s' goes with a command",
                             mcp_settings[parts[i]].name);
}

static bool is_variable(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.at[i] == '=' || name.at[i] == '\0')
            return false;
    return name.len > 0;
}

bool mcp_is_secret(struct bytes value)
{
    return bytes_starts(value, BYTES("env:")) || bytes_starts(value, BYTES("file:")) || bytes_starts(value, BYTES("secret:"));
}

static enum status read_command(const struct setting_value *at, struct arena *arena, struct yaml_problems *problems,
                                const struct mcp_command **ret)
{
    if (!at[ROW_COMMAND].given)
        return OK;
    struct mcp_command *command = arena_zalloc(arena, 1, sizeof *command);
    if (command == NULL)
        return FULL;
    command->argv = at[ROW_COMMAND].list;
    command->argc = at[ROW_COMMAND].list_count;
    command->cwd = at[ROW_CWD].text;
    command->processes_max = at[ROW_PROCESSES].number;
    command->idle_us = at[ROW_IDLE].number;
    TRY(settings_pairs(&at[ROW_ENV], arena, problems, &command->env, &command->env_count));
    for (size_t i = 0; i < command->env_count; i++) {
        struct bytes value = command->env[i].value;
        struct secret_reference reference;
        struct why why;
        bool fits = mcp_is_secret(value) ? secret_reference_parse(value, &reference, &why) == OK
                                         : memchr(value.at, '\0', value.len) == NULL;
        if (!is_variable(command->env[i].name) || !fits)
            yaml_problem_add(
                problems, at[ROW_ENV].line, at[ROW_ENV].column,
                "env wants names and texts, or env:NAME, file:/path, secret:NAME, such as {MAIL_TOKEN: secret:mail}");
    }
    *ret = command;
    return OK;
}

enum status mcp_server_read(const struct yaml *name, const struct yaml *settings, struct arena *arena,
                            struct yaml_problems *problems, struct mcp_server_rules *ret)
{
    struct setting_value at[ROW_COUNT], built_in[ROW_COUNT];
    TRY(settings_read(&mcp_table, settings, MCP_SERVER, arena, at, problems));
    TRY(settings_built_in(&mcp_table, arena, built_in));
    check_command(at, problems);
    settings_over(ROW_COUNT, at, built_in);
    *ret = (struct mcp_server_rules){
        .name = arena_dup(arena, name->text),
        .workflow = at[ROW_WORKFLOW].text,
        .destination = at[ROW_DESTINATION].text,
        .path = at[ROW_PATH].text,
        .trust = at[ROW_ANNOTATIONS].number == 0,
        .timeout_us = at[ROW_TIMEOUT].number,
        .window_us = at[ROW_WINDOW].number,
        .calls_per_run = at[ROW_CALLS_PER_RUN].number,
        .calls_per_hour = at[ROW_CALLS_PER_HOUR].number,
    };
    if (ret->workflow.at == NULL)
        ret->workflow = arena_printf(arena, "mcp.%.*s", BYTES_ARG(name->text));
    if (ret->name.at == NULL || ret->workflow.at == NULL)
        return FULL;
    TRY(read_command(at, arena, problems, &ret->command));
    return read_tools(at[ROW_TOOLS].group, arena, problems, ret);
}

/* ---- the command line's part ---- */

/* The rules of that tool, made when there are none. NULL when memory runs out. */
static struct mcp_tool_rules *tool_for(struct mcp_server_rules *rules, struct bytes name, struct arena *arena)
{
    for (size_t i = 0; i < rules->tool_count; i++)
        if (bytes_eq(rules->tools[i].name, name))
            return &rules->tools[i];
    struct mcp_tool_rules *tools = arena_zalloc(arena, rules->tool_count + 1, sizeof *tools);
    if (tools == NULL)
        return NULL;
    if (rules->tool_count > 0)
        memcpy(tools, rules->tools, rules->tool_count * sizeof *tools);
    tools[rules->tool_count] = tool_unsaid(name);
    rules->tools = tools;
    rules->tool_count++;
    qsort(tools, rules->tool_count, sizeof *tools, tools_by_name);
    return (struct mcp_tool_rules *)mcp_tool_find(rules, name);
}

static size_t count_of(struct bytes text, char sep)
{
    size_t count = 1;
    for (size_t i = 0; i < text.len; i++)
        count += text.at[i] == sep;
    return count;
}

enum status mcp_rules_add_keys(struct mcp_server_rules *rules, struct bytes text, struct arena *arena, struct why *why)
{
    while (text.len > 0) {
        struct bytes fields = bytes_cut(&text, ';'), tool = bytes_trim(bytes_cut(&fields, '='));
        size_t most = count_of(fields, ','), count = 0;
        struct mcp_tool_rules *found = tool.len > 0 ? tool_for(rules, tool, arena) : NULL;
        struct bytes *key = arena_zalloc(arena, most, sizeof *key);
        for (size_t i = 0; key != NULL && i < most; i++) {
            struct bytes field = bytes_trim(bytes_cut(&fields, ','));
            if (field.len > 0)
                key[count++] = field;
        }
        if (arena->failed)
            return why_set(why, FULL, "there is not enough memory");
        if (found == NULL || count == 0)
            return why_set(why, INVALID, "write it like send_mail=to,template; several tools have ';' between them");
        found->key = key;
        found->key_count = count;
    }
    return OK;
}

static enum status add_tools(struct mcp_server_rules *rules, struct bytes text, struct arena *arena, bool readers,
                             struct why *why)
{
    while (text.len > 0) {
        struct bytes tool = bytes_trim(bytes_cut(&text, ','));
        struct mcp_tool_rules *found = tool.len > 0 ? tool_for(rules, tool, arena) : NULL;
        if (found == NULL)
            return why_set(why, arena->failed ? FULL : INVALID, "write the names of tools with ',' between them");
        if (readers)
            found->read_only = MCP_YES;
        else
            found->repeat_us = 0;
    }
    return OK;
}

enum status mcp_rules_add_readers(struct mcp_server_rules *rules, struct bytes text, struct arena *arena, struct why *why)
{
    return add_tools(rules, text, arena, true, why);
}

enum status mcp_rules_add_repeats(struct mcp_server_rules *rules, struct bytes text, struct arena *arena, struct why *why)
{
    return add_tools(rules, text, arena, false, why);
}

/* ---- hints ---- */

static struct mcp_hint *hint_find(const struct mcp_hints *hints, struct bytes name)
{
    for (size_t i = 0; i < hints->count; i++)
        if (bytes_eq(hints->at[i].name, name))
            return &hints->at[i];
    return NULL;
}

/* NULL when there are too many, or there is no memory: such a tool is then treated as one without hints. */
static struct mcp_hint *hint_add(struct mcp_hints *hints, struct bytes name)
{
    if (hints->count == hints->cap) {
        size_t cap = hints->cap == 0 ? 64 : 2 * hints->cap;
        struct mcp_hint *more = cap <= MCP_TOOLS_MAX ? realloc(hints->at, cap * sizeof *more) : NULL;
        if (more == NULL)
            return NULL;
        hints->at = more;
        hints->cap = cap;
    }
    char *copy = malloc(name.len + 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, name.at, name.len);
    hints->at[hints->count] = (struct mcp_hint){.name = {copy, name.len}};
    arena_init(&hints->at[hints->count].arena, HINT_PARAMS_MAX);
    return &hints->at[hints->count++];
}

static bool hint_is(const struct json *tool, const char *name)
{
    const struct json *value = json_get(json_get(tool, BYTES("annotations")), bytes_of(name));
    return value != NULL && value->type == JSON_TRUE;
}

static void learn_tool(struct mcp_hints *hints, const struct json *tool)
{
    const struct json *name = json_get(tool, BYTES("name"));
    if (name == NULL || name->type != JSON_STRING || name->text.len == 0 || name->text.len > MCP_TOOL_NAME_MAX)
        return;
    struct mcp_hint *hint = hint_find(hints, name->text);
    if (hint == NULL)
        hint = hint_add(hints, name->text);
    if (hint == NULL)
        return;
    hint->read_only = hint_is(tool, "readOnlyHint");
    hint->idempotent = !hint->read_only && hint_is(tool, "idempotentHint");
    arena_clear(&hint->arena);
    mcp_params_read(json_get(tool, BYTES("inputSchema")), &hint->arena, &hint->params);
}

void mcp_hints_learn(struct mcp_hints *hints, struct bytes result)
{
    struct arena arena;
    struct json json;
    struct why why;
    arena_init(&arena, HINTS_ARENA_MAX);
    if (json_parse(result, &mcp_json_limits, &arena, &json, &why) == OK) {
        const struct json *tools = json_get(&json, BYTES("tools"));
        for (uint32_t i = 0; tools != NULL && tools->type == JSON_ARRAY && i < tools->count; i++)
            learn_tool(hints, &tools->items[i]);
    }
    arena_release(&arena);
}

void mcp_hints_free(struct mcp_hints *hints)
{
    for (size_t i = 0; i < hints->count; i++) {
        free((char *)hints->at[i].name.at);
        arena_release(&hints->at[i].arena);
    }
    free(hints->at);
    *hints = (struct mcp_hints){0};
}

const struct mcp_params *mcp_hints_params(const struct mcp_hints *hints, struct bytes tool)
{
    static const struct mcp_params none = {0};
    const struct mcp_hint *hint = hint_find(hints, tool);
    return hint != NULL ? &hint->params : &none;
}

/* ---- deciding ---- */

static int name_against_tool(const void *name, const void *tool)
{
    return bytes_cmp(*(const struct bytes *)name, ((const struct mcp_tool_rules *)tool)->name);
}

const struct mcp_tool_rules *mcp_tool_find(const struct mcp_server_rules *rules, struct bytes tool)
{
    if (rules == NULL || rules->tool_count == 0)
        return NULL;
    return bsearch(&tool, rules->tools, rules->tool_count, sizeof *rules->tools, name_against_tool);
}

struct mcp_treatment mcp_treat(const struct mcp_server_rules *rules, const struct mcp_hints *hints, struct bytes tool)
{
    const struct mcp_tool_rules *said = mcp_tool_find(rules, tool);
    const struct mcp_hint *hint = rules == NULL || rules->trust ? hint_find(hints, tool) : NULL;
    struct mcp_treatment treatment = {
        .passes = hint != NULL && hint->read_only, .idempotent = hint != NULL && hint->idempotent, .repeat_us = -1};
    if (said == NULL)
        return treatment;
    if (said->read_only != MCP_UNSAID)
        treatment.passes = said->read_only == MCP_YES;
    else if (said->answers != NULL)
        treatment.passes = false;
    if (said->idempotent != MCP_UNSAID)
        treatment.idempotent = said->idempotent == MCP_YES;
    treatment.attached = said->attached;
    treatment.on_error = said->on_error;
    treatment.repeat_us = said->repeat_us;
    treatment.key = said->key;
    treatment.key_count = said->key_count;
    treatment.answers = said->answers;
    return treatment;
}
