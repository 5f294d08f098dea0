/* mcp_command: the options of `semel mcp`, and the two processes that it runs as. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/proxy.h"
#include "base/when.h"
#include "cli/print.h"
#include "env/env.h"
#include "run/spool.h"

#define RUN_MAX 256

static const char *const if_unreachable_names[] = {"fail", "call", NULL};

const struct cli_option mcp_options[] = {
    {"--upstream", "URL", CLI_TEXT, "The server is reached here, over streamable HTTP; there is no command then.", NULL, NULL,
     NULL, false},
    {"--header", "HEADERS", CLI_TEXT,
     "Headers for --upstream, with commas between: NAME=env:VARIABLE or NAME=file:/path, never the value.", NULL, NULL, NULL,
     false},
    {"--allow-private", NULL, CLI_SWITCH, "--upstream may be on this computer or in its private networks.", NULL, NULL, NULL,
     false},
    {"--run", "RUN", CLI_TEXT,
     "Which run the calls belong to: equal calls of one run are made once. Without it, each start is its own.", NULL, "SEMEL_RUN",
     NULL, false},
    {"--server", "NAME", CLI_TEXT, "The server's name: its rules are those of mcp: NAME in the policy.", NULL, NULL, NULL, false},
    {"--workflow", "NAME", CLI_TEXT, "The workflow whose rules hold; without it mcp.NAME.", NULL, NULL, NULL, false},
    {"--key-fields", "RULES", CLI_TEXT, "Which arguments make a call what it is, such as send_mail=to,template;move=source.",
     NULL, NULL, NULL, false},
    {"--read-only", "TOOLS", CLI_TEXT, "Tools that only read, with commas between; their calls pass.", NULL, NULL, NULL, false},
    {"--repeat", "TOOLS", CLI_TEXT, "Tools whose equal calls are meant each time, once the one before was answered.", NULL, NULL,
     NULL, false},
    {"--wait", "DURATION", CLI_DURATION, "How long a call waits for an equal one that runs elsewhere, or for its turn to answer.",
     "10m", NULL, NULL, false},
    {"--lease", "DURATION", CLI_DURATION, "How soon it is noticed that this process is gone.", "60s", NULL, NULL, false},
    {"--linger", "DURATION", CLI_DURATION, "How long calls are finished after the client has left.", "10m", NULL, NULL, false},
    {"--if-unreachable", "WHAT", CLI_CHOICE, "When neither a daemon nor the data can be reached.", "fail", NULL,
     if_unreachable_names, false},
    {"--data", "DIR", CLI_DIR, "Work on this data when no daemon answers. Without --url, ./semel-data is used if it is there.",
     NULL, "SEMEL_DATA", NULL, false},
    {0},
};

/* ---- names ---- */

/* "node-index.js-1f3a…": from the command or URL, for those who give no name. The hash keeps two of them apart. */
static struct bytes name_of(struct cli *cli)
{
    const char *upstream = cli_text(cli, "--upstream");
    int count = upstream != NULL ? 1 : cli->rest_count;
    struct buf all, shown;
    char hex[16];
    buf_init(&all, 1 << 20);
    buf_init(&shown, 40);
    for (int i = 0; i < count; i++) {
        struct bytes word = bytes_of(upstream != NULL ? upstream : cli->rest[i]);
        buf_add(&all, (struct bytes){word.at, word.len + 1}); /* with its NUL */
        const char *slash = strrchr(word.at, '/');
        for (const char *c = slash != NULL ? slash + 1 : word.at; i < 2 && *c != '\0' && shown.len < 40; c++)
            if (settings_is_name((struct bytes){c, 1}))
                buf_add_char(&shown, *c);
        if (i < 2 && shown.len < 40)
            buf_add_char(&shown, '-');
    }
    struct hash hash = hash_sha256(buf_bytes(&all));
    bytes_to_hex((struct bytes){(const char *)hash.at, sizeof hex / 2}, hex);
    struct bytes name = arena_printf(&cli->arena, "%.*s%.*s", BYTES_ARG(buf_bytes(&shown)), (int)sizeof hex, hex);
    buf_release(&all);
    buf_release(&shown);
    return name;
}

static struct bytes session_of(struct cli *cli)
{
    uint8_t random[12];
    char hex[2 * sizeof random];
    env_real()->random(env_real(), random, sizeof random);
    bytes_to_hex((struct bytes){(const char *)random, sizeof random}, hex);
    return arena_printf(&cli->arena, "session-%.*s", (int)sizeof hex, hex);
}

static int check_names(const struct cli *cli)
{
    const char *run = cli_text(cli, "--run"), *server = cli_text(cli, "--server"), *workflow = cli_text(cli, "--workflow");
    int64_t lease_us = cli_duration_us(cli, "--lease", 0);
    if (run != NULL && (*run == '\0' || strlen(run) > RUN_MAX || !bytes_is_utf8(bytes_of(run))))
        return cli_fail(CLI_USAGE, "--run is a text of 1 to %d bytes.", RUN_MAX);
    if (server != NULL && !settings_is_name(bytes_of(server)))
        return cli_fail(CLI_USAGE, "--server is a name of letters, digits, '.', '_' and '-'.");
    if (workflow != NULL && (*workflow == '\0' || strlen(workflow) > 128))
        return cli_fail(CLI_USAGE, "--workflow is a name of 1 to 128 bytes.");
    return lease_us >= WHEN_SECOND && lease_us <= WHEN_DAY ? CLI_OK : cli_fail(CLI_USAGE, "--lease is from 1s to 24h.");
}

static int check_server(const struct cli *cli)
{
    bool upstream = cli_on(cli, "--upstream");
    if (upstream == (cli->rest_count > 0))
        return cli_fail(CLI_USAGE, "mcp needs either a command behind -- or --upstream URL.");
    if (!upstream && (cli_on(cli, "--header") || cli_on(cli, "--allow-private")))
        return cli_fail(CLI_USAGE, "--header and --allow-private go with --upstream.");
    return CLI_OK;
}

/* ---- rules ---- */

/* The operator's rules for this server, if it has a name and there are any. */
static int load_rules(struct proxy *proxy, struct way *way)
{
    struct why why = {""};
    int code = CLI_OK;
    const char *server = cli_text(proxy->cli, "--server");
    if (server == NULL)
        return CLI_OK;
    enum status status = way_policy(way, &proxy->policy, &code, &why);
    if (status == NOTHING)
        cli_note("%s. The rules of mcp: %s are not known here; only those of the command line count.", why.text, server);
    else if (status != OK && !proxy->call_if_unreachable)
        return cli_fail((enum cli_exit)code, "the policy cannot be read: %s", why.text);
    const struct mcp_server_rules *rules = status == OK ? policy_mcp(proxy->policy, bytes_of(server)) : NULL;
    if (rules != NULL) {
        proxy->rules = *rules;
        proxy->workflow = rules->workflow;
    }
    return CLI_OK;
}

static int add_rules(struct proxy *proxy)
{
    static const struct {
        const char *option;
        enum status (*add)(struct mcp_server_rules *, struct bytes, struct arena *, struct why *);
    } rows[] = {
        {"--key-fields", mcp_rules_add_keys}, {"--read-only", mcp_rules_add_readers}, {"--repeat", mcp_rules_add_repeats}};
    struct why why;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *text = cli_text(proxy->cli, rows[i].option);
        if (text != NULL && rows[i].add(&proxy->rules, bytes_of(text), &proxy->cli->arena, &why) != OK)
            return cli_fail(CLI_USAGE, "%s: %s.", rows[i].option, why.text);
    }
    return CLI_OK;
}

static int read_options(struct cli *cli, struct proxy *proxy)
{
    struct way way;
    const char *run = cli_text(cli, "--run"), *server = cli_text(cli, "--server"), *workflow = cli_text(cli, "--workflow");
    int code = check_server(cli);
    if (code == CLI_OK)
        code = check_names(cli);
    if (code != CLI_OK)
        return code;
    way_init(&way, cli);
    proxy->cli = cli;
    proxy->argv = cli_on(cli, "--upstream") ? NULL : cli->rest;
    proxy->upstream = proxy->argv == NULL ? bytes_of(cli_text(cli, "--upstream")) : BYTES_NONE;
    proxy->data = way.data;
    proxy->rules.trust = true;
    proxy->lease_us = cli_duration_us(cli, "--lease", 0);
    proxy->wait_us = cli_duration_us(cli, "--wait", 0);
    proxy->linger_us = cli_duration_us(cli, "--linger", 0);
    proxy->call_if_unreachable = cli_choice(cli, "--if-unreachable") == 1;
    proxy->name = server != NULL ? bytes_of(server) : name_of(cli);
    proxy->workflow = arena_printf(&cli->arena, "mcp.%.*s", BYTES_ARG(proxy->name));
    proxy->run = run != NULL ? bytes_of(run) : session_of(cli);
    spool_deliver(&way);
    code = load_rules(proxy, &way);
    if (workflow != NULL)
        proxy->workflow = bytes_of(workflow);
    return code == CLI_OK ? add_rules(proxy) : code;
}

/* ---- two processes ---- */

/* What the client started: it passes signals on and ends as the other one does. Killing it does not kill the calls. */
static int wait_for(pid_t back)
{
    sigset_t signals;
    int status = 0, number;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGCHLD);
    for (;;) {
        if (waitpid(back, &status, WNOHANG) == back)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (sigwait(&signals, &number) == 0 && number != SIGCHLD)
            kill(back, number);
    }
}

int mcp_run(struct cli *cli)
{
    struct proxy *proxy = calloc(1, sizeof *proxy);
    sigset_t signals;
    ASSERT(proxy != NULL);
    hash_setup();
    int code = read_options(cli, proxy);
    if (code != CLI_OK)
        goto out;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGCHLD);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    proxy->front = getpid();
    fflush(NULL);
    pid_t back = fork();
    if (back > 0) {
        close(STDIN_FILENO); /* the other end must see it close when the client, and only the client, is done */
        code = wait_for(back);
    } else if (back == 0) {
        setsid();
        _exit(proxy_run(proxy));
    } else {
        code = cli_fail(CLI_INTERNAL, "no process could be started: %s.", strerror(errno));
    }
out:
    policy_free(proxy->policy);
    free(proxy);
    return code;
}
