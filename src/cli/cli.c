#include "cli/cli.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/commands.h"
#include "cli/print.h"

#define INTENT_ARGUMENT                                            \
    {                                                              \
        "INTENT", CLI_TEXT, "The intent's id, int_….", NULL, false \
    }
#define SECRET_ARGUMENT                                                               \
    {                                                                                 \
        "NAME", CLI_TEXT, "Its name: letters, digits, '.', '_' and '-'.", NULL, false \
    }
#define EFFECT_ARGUMENT                                                      \
    {                                                                        \
        "EFFECT", CLI_TEXT, "The effect's id, from effects ls.", NULL, false \
    }
#define MANY_ARGUMENT                                                       \
    {                                                                       \
        "EFFECT", CLI_TEXT, "The effect's id, from effects ls.", NULL, true \
    }
#define EXCEPTION_ARGUMENT                                                            \
    {                                                                                 \
        "EXCEPTION", CLI_TEXT, "The exception's id, from exceptions ls.", NULL, false \
    }
#define EVENT_ARGUMENT                                                   \
    {                                                                    \
        "EVENT", CLI_TEXT, "The event's id, from inbox ls.", NULL, false \
    }
#define LEAD_ARGUMENT                                                  \
    {                                                                  \
        "LEAD", CLI_TEXT, "The lead's id, from leads ls.", NULL, false \
    }
#define SOURCE_ARGUMENT                                                     \
    {                                                                       \
        "SOURCE", CLI_TEXT, "The source's name in the policy.", NULL, false \
    }
#define ALL_SHARED (CLI_CALLS_DAEMON | CLI_PRINTS_JSON)

/* clang-format off */
const struct cli_command cli_commands[] = {
    {"agents start", "Let an agent that was stopped go on.", {{"AGENT", CLI_TEXT, "The name or id of its token.", NULL, false}}, NULL, ALL_SHARED, NULL,
     agents_start_run},
    {"agents stop", "Stop an agent at once: its token begins nothing new. It may finish what it began.",
     {{"AGENT", CLI_TEXT, "The name or id of its token.", NULL, false}}, NULL, ALL_SHARED,
     "Tool calls at /mcp, claims, effects and /to are refused from the next request on, and the model is told so. It is in the decision log.\n\n"
     "  semel agents stop support-bot", agents_stop_run},
    {"audit verify", "Check that no row of the decision log and no result was changed or removed.", {{0}}, audit_verify_options, CLI_PRINTS_JSON,
     "Reads the data itself, so it also works while the daemon is stopped. Exit 65 when a row does not fit.", audit_verify_run},
    {"claim", "Ask to do a thing once: go ahead, here is the result, or wait.", {{0}}, claim_options, ALL_SHARED,
     "Give --key, or --input when the workflow's policy makes the key from it. Only when the answer is \"proceed\" do the work, then say\n"
     "what became of it with confirm or fail. A thing that was done before prints its result and exits 0. An answer in a conversation is\n"
     "named by --thread (or --event) and --action: each question gets one.\n\n"
     "  semel claim --workflow followup --key lead_8821:2026-11-16\n"
     "  semel claim --thread thr_0c8zq4x7m2k1h --action reply", claim_run},
    {"completion", "Print the completion script for a shell.",
     {{"SHELL", CLI_CHOICE, "bash, zsh or fish.", completion_shells, false}}, NULL, 0,
     "  semel completion bash > ~/.local/share/bash-completion/completions/semel\n"
     "  semel completion zsh > \"${fpath[1]}/_semel\"\n"
     "  semel completion fish > ~/.config/fish/completions/semel.fish", completion_run},
    {"confirm", "Say that it happened, and keep the result for duplicates.", {INTENT_ARGUMENT}, confirm_options, ALL_SHARED,
     "  semel confirm int_0c8zq4x7m2k1h --fence 1 --result '{\"message\":\"msg_1\"}'", confirm_run},
    {"doctor", "Say what is wrong and what to do, in plain sentences. Exit 1 when there are problems.", {{0}}, doctor_options,
     CLI_CALLS_URL | CLI_PRINTS_JSON,
     "The daemon looks at its database, disk, clock, policy, secrets, deliveries and keys; with --data DIR the files there are looked at too.\n"
     "Warnings are allowed but unwise: they do not change the exit code. Needs the scope admin.", doctor_run},
    {"effects add", "Hand semel something to deliver once.", {{0}}, effects_add_options, ALL_SHARED,
     "The same key again is the same effect: nothing is sent twice.\n\n"
     "  semel effects add --destination crm --key lead_8821:welcome --payload '{\"to\":\"a@b.c\"}'", effects_add_run},
    {"effects cancel", "Take back an effect that was not sent yet, or all of them.", {MANY_ARGUMENT}, effects_many_options, ALL_SHARED,
     "  semel effects cancel eff_0c8zq4x7m2k1h\n"
     "  semel effects cancel --all --destination crm --dry-run", effects_cancel_run},
    {"effects ls", "List effects, newest first.", {{0}}, effects_ls_options, ALL_SHARED, NULL, effects_ls_run},
    {"effects resolve", "Say what became of an effect that nobody can tell about.", {EFFECT_ARGUMENT}, effects_resolve_options, ALL_SHARED,
     "Look at the destination first. What you say is final and on record.\n\n"
     "  semel effects resolve eff_0c8zq4x7m2k1h --happened --note 'ch_123 is in the dashboard'", effects_resolve_run},
    {"effects retry", "Send an effect now, with all its attempts, or all of them.", {MANY_ARGUMENT}, effects_many_options, ALL_SHARED,
     "For effects that wait or were given up. For one that may have happened it means: it did not, send it again. With --all those are\n"
     "left out, and so is what a caller of /to decides about.\n\n"
     "  semel effects retry --all --destination crm --step person", effects_retry_run},
    {"effects show", "Show one effect.", {EFFECT_ARGUMENT}, NULL, ALL_SHARED, NULL, effects_show_run},
    {"exceptions assign", "Give an exception to someone else, or more time.", {EXCEPTION_ARGUMENT}, exceptions_assign_options, ALL_SHARED, NULL,
     exceptions_assign_run},
    {"exceptions ls", "List what is waiting for a person.", {{0}}, exceptions_ls_options, ALL_SHARED, NULL, exceptions_ls_run},
    {"exceptions resolve", "Decide about an exception.", {EXCEPTION_ARGUMENT}, exceptions_resolve_options, ALL_SHARED,
     "  semel exceptions resolve exc_0c8zq4x7m2k1h --choice did_not --note 'not in their log'", exceptions_resolve_run},
    {"exceptions show", "Show one exception, and what follows from each choice.", {EXCEPTION_ARGUMENT}, NULL, ALL_SHARED, NULL, exceptions_show_run},
    {"extend", "Keep a claim for longer while the work goes on.", {INTENT_ARGUMENT}, extend_options, ALL_SHARED, NULL, extend_run},
    {"fail", "Say that it failed, and whether it may have had an effect.", {INTENT_ARGUMENT}, fail_options, ALL_SHARED,
     "--effect none: surely nothing happened, another attempt may follow. --effect unknown: it may have happened, nobody can tell;\n"
     "the workflow's policy decides what follows.", fail_run},
    {"help", "Show the commands, or all about one of them.",
     {{"COMMAND", CLI_TEXT, "A command, or the first word of several.", NULL, true},
      {"SUBCOMMAND", CLI_TEXT, "Its second word.", NULL, true}}, help_options, 0, NULL, help_run},
    {"inbox limit", "Let only so many events of a source go on for a while.", {SOURCE_ARGUMENT}, inbox_limit_options, ALL_SHARED,
     "The others are muted: kept, not forwarded, and can be released.\n\n"
     "  semel inbox limit website --most 10 --every 1m --for 2h --note 'someone tests the form'", inbox_limit_run},
    {"inbox ls", "List what came in, newest first.", {{0}}, inbox_ls_options, ALL_SHARED, NULL, inbox_ls_run},
    {"inbox mute", "Keep the events of a source back for a while.", {SOURCE_ARGUMENT}, inbox_mute_options, ALL_SHARED,
     "They are taken in and kept, not forwarded, and can be released.\n\n"
     "  semel inbox mute website --for 2h --note 'their plugin sends everything again'", inbox_mute_run},
    {"inbox release", "Let an event through that was suppressed, held, muted or ignored.", {EVENT_ARGUMENT}, inbox_note_options, ALL_SHARED,
     "Once: a second release changes nothing.", inbox_release_run},
    {"inbox replay", "Forward an event again on purpose.", {{"EVENT", CLI_TEXT, "The event's id; or give --source.", NULL, true}},
     inbox_replay_options, ALL_SHARED,
     "For one that went on and got lost behind semel. Each replay has a key of its own: it does happen again.\n\n"
     "  semel inbox replay --source website --since 2026-11-16T09:00:00Z --dry-run", inbox_replay_run},
    {"inbox show", "Show one event.", {EVENT_ARGUMENT}, inbox_show_options, ALL_SHARED, NULL, inbox_show_run},
    {"inbox suppress", "Say that a held event is a copy indeed.", {EVENT_ARGUMENT}, inbox_note_options, ALL_SHARED, NULL, inbox_suppress_run},
    {"inbox unmute", "Hear a source again that was muted or limited.", {SOURCE_ARGUMENT}, inbox_note_options, ALL_SHARED, NULL, inbox_unmute_run},
    {"inbox why", "Tell the story of an event in plain words.", {EVENT_ARGUMENT}, NULL, ALL_SHARED, NULL, inbox_why_run},
    {"intents", "List intents, newest first.", {{0}}, intents_options, ALL_SHARED, NULL, intents_run},
    {"key", "Show the key that a template makes from an input. Asks no daemon.",
     {{"TEMPLATE", CLI_TEXT, "Such as followup:{lead_id}:{day}.", NULL, false}}, key_options_table, CLI_PRINTS_JSON,
     "Without --input it explains the parts of the template.\n\n"
     "  semel key 'followup:{lead_id}:{day}' --time sent_at --zone Europe/Paris --input '{\"lead_id\":8821,\"sent_at\":\"2026-11-16T09:00:00Z\"}'",
     key_run},
    {"keys lint", "Look at the keys of the last days, and say whether duplicates would be recognised.", {{0}}, keys_lint_options, ALL_SHARED,
     "Names what is wrong, proposes a template and says what it would have done on the same traffic. Exit 65 when there is a problem.\n\n"
     "  semel keys lint --workflow followup --since 30d", keys_lint_run},
    {"leads add", "Say what a source knows of a person. The same again changes nothing.", {{0}}, leads_add_options, ALL_SHARED,
     "  semel leads add --source crm --external-id 4711 --name 'Jon Smith' --email jon@acme.io --phone '+33 6 12 34 56 78'", leads_add_run},
    {"leads find", "Ask who somebody is. Changes nothing.", {{0}}, leads_find_options, ALL_SHARED,
     "  semel leads find --name 'John Smith' --phone '+33 6 12 34 56 78'", leads_find_run},
    {"leads ls", "List leads, newest first.", {{0}}, leads_ls_options, ALL_SHARED, NULL, leads_ls_run},
    {"leads merge", "Make two leads one. It can be undone at any time.",
     {LEAD_ARGUMENT, {"OTHER", CLI_TEXT, "The other lead's id.", NULL, false}}, leads_merge_options, ALL_SHARED, NULL, leads_merge_run},
    {"leads show", "Show one lead: what is known of it, by whom, and what it said.", {LEAD_ARGUMENT}, NULL, ALL_SHARED, NULL, leads_show_run},
    {"leads undo", "Take back that two records are the same, or that they are different.",
     {{"EDGE", CLI_TEXT, "The decision's id, edg_…, from leads why.", NULL, false}}, leads_undo_options, ALL_SHARED,
     "The leads are then as they would be had it never been decided, whatever was merged since.", leads_undo_run},
    {"leads why", "Tell how a lead came about: its records, and why they are one person.", {LEAD_ARGUMENT}, NULL, ALL_SHARED, NULL, leads_why_run},
    {"mcp", "Make each tool call of an MCP server once: put it in front of the server's command, or of its URL.",
     {{"CMD [ARG...]", CLI_REST, "The server's command and its arguments, unless --upstream says where it is.", NULL, true}}, mcp_options, CLI_CALLS_URL,
     "Speaks MCP on stdin and stdout. Tools that only read pass; any other call goes through the ledger, and an equal one of the same run gets\n"
     "its result. Works with a daemon or, like semel run, on the data itself. The exit code is the server's.\n\n"
     "  semel mcp -- npx -y @modelcontextprotocol/server-filesystem /srv/files\n"
     "  semel mcp --run \"$TICKET\" --server mail --key-fields 'send_mail=to,template' -- ./mail-server\n"
     "  semel mcp --upstream https://mail.example.com/mcp --header Authorization=env:MAIL_AUTH", mcp_run},
    {"mcp-server", "Give an agent semel's own tools: check, claim, confirm, fail, explain, list exceptions, find and add leads.", {{0}}, NULL, CLI_CALLS_DAEMON,
     "Speaks MCP on stdin and stdout and asks the daemon, with the rights of SEMEL_TOKEN. In an agent's settings:\n\n"
     "  { \"mcpServers\": { \"semel\": { \"command\": \"semel\", \"args\": [\"mcp-server\"] } } }", mcp_server_run},
    {"policy apply", "Check a policy file and make it the daemon's policy.",
     {{"FILE", CLI_FILE, "The policy, or - for stdin.", NULL, false}}, NULL, ALL_SHARED, NULL, policy_apply_run},
    {"policy backtest", "Decide what came in lately again by another policy, without acting.",
     {{"FILE", CLI_FILE, "The policy, or - for stdin.", NULL, false}}, policy_backtest_options, ALL_SHARED,
     "Nothing is written, forwarded or changed. It goes on in slices, so that the daemon serves others meanwhile, and says how far it is.",
     policy_backtest_run},
    {"policy check", "Check a policy file. Asks no daemon.",
     {{"FILE", CLI_FILE, "The policy, or - for stdin.", NULL, false}}, NULL, CLI_PRINTS_JSON,
     "Problems are printed as FILE:LINE:COLUMN: PROBLEM; exit 78.", policy_check_run},
    {"policy settings", "List every setting that a policy may have.", {{0}}, NULL, CLI_PRINTS_JSON, NULL, policy_settings_run},
    {"policy show", "Print the daemon's policy.", {{0}}, NULL, ALL_SHARED, NULL, policy_show_run},
    {"quarantine lift", "Go on after a fail-over that may have lost decisions.", {{0}}, quarantine_lift_options, ALL_SHARED,
     "Look first at what is held: semel intents --state unknown", quarantine_lift_run},
    {"receive mail", "Hand e-mails over to a source, each once.", {{"-", CLI_TEXT, "One mail from stdin, which is also the default.", NULL, true}},
     receive_mail_options, ALL_SHARED,
     "Repeating it does no harm: a mail is recognised. Mails that are not taken are named, and the exit code is 65 when they are refused.\n"
     "From stdin, whatever is no fault of the mail is exit 75, so that a mail server keeps it and tries again.\n\n"
     "  |\"/usr/bin/semel receive mail --source leads\"           in a .forward file\n"
     "  semel receive mail --source leads --mbox ~/old-leads.mbox", receive_mail_run},
    {"release", "Give a claim back untouched: nothing was done.", {INTENT_ARGUMENT}, release_options, ALL_SHARED, NULL, release_run},
    {"run", "Run a command once for its key; a duplicate gets its output and exit code.",
     {{"CMD [ARG...]", CLI_REST, "The command and its arguments.", NULL, false}}, run_options, CLI_CALLS_URL,
     "Exit: the command's own code (128 + n when signal n ended it), or one of semel's: 64, 65, 69, 75, 76, 77, 78; 126 and 127 when it\n"
     "could not be started. It finds SEMEL_KEY, SEMEL_ATTEMPT, SEMEL_INTENT and SEMEL_DOWNSTREAM_KEY in its environment.\n\n"
     "  semel run --key 'digest:{day}' -- ./send-digest.sh\n"
     "  semel run --key \"import:$(date +%F)\" --on-running skip --keep 7d -- ./import.sh --all", run_run},
    {"runs ls", "List the runs with model calls, newest first: how many were made and how many came from memory.", {{0}}, runs_ls_options, ALL_SHARED, NULL,
     runs_ls_run},
    {"runs show", "Show the model calls of a run, by provider and model.", {{"RUN", CLI_TEXT, "The run's name, as in Semel-Run.", NULL, false}}, NULL, ALL_SHARED,
     NULL, runs_show_run},
    {"secret ls", "List the secrets: names, versions and times, never values.", {{0}}, NULL, ALL_SHARED, NULL, secret_ls_run},
    {"secret rewrap", "Change the master key that secrets are sealed with, while the daemon runs.", {{0}}, NULL, ALL_SHARED,
     "Where the key is the daemon's own (DIR/master.key), it makes a new one and forgets the old one. Where it was given with --master-key,\n"
     "put the new key in front of the old one in that file first, on all nodes; take the old one out afterwards. It can be repeated safely.", secret_rewrap_run},
    {"secret rm", "Remove a secret.", {SECRET_ARGUMENT}, NULL, ALL_SHARED, NULL, secret_rm_run},
    {"secret set", "Store a secret, or replace it. It cannot be read back.", {SECRET_ARGUMENT}, NULL, ALL_SHARED,
     "The value comes from stdin, without the newline at its end; on a terminal it is asked for and not shown.\n\n"
     "  pass show mail/smtp | semel secret set smtp-password", secret_set_run},
    {"sent", "Say, just before acting, that from now on it may have happened.", {INTENT_ARGUMENT}, sent_options, ALL_SHARED,
     "For claims made with --two-phase. When it succeeds, act at once; when it does not, do not act.", sent_run},
    {"serve", "Run the daemon for a server: every call needs a token.", {{0}}, daemon_options, 0,
     "The first start writes an admin token to DIR/admin.token. Use it to make others: semel token create --data DIR …", serve_run},
    {"show", "Show one intent.", {{"INTENT", CLI_TEXT, "The intent's id, or its key when --workflow is given.", NULL, false}},
     show_options, ALL_SHARED, NULL, show_run},
    {"sources ls", "List the sources of the policy, and what came from them.", {{0}}, NULL, ALL_SHARED, NULL, sources_ls_run},
    {"status", "Say whether the daemon is ready. Exit 75 when it is not.", {{0}}, NULL, ALL_SHARED, NULL, status_run},
    {"threads ls", "List conversations, newest first.", {{0}}, threads_ls_options, ALL_SHARED, NULL, threads_ls_run},
    {"threads show", "Tell the story of a conversation: what was asked, and what was done about it.",
     {{"THREAD", CLI_TEXT, "The conversation's id, thr_….", NULL, false}}, NULL, ALL_SHARED, NULL, threads_show_run},
    {"token create", "Make a token. Its text is printed once.", {{0}}, token_create_options, ALL_SHARED,
     "  export SEMEL_TOKEN=$(semel token create --data ./semel-data --name worker --scopes claim)", token_create_run},
    {"token ls", "List the tokens, without their texts.", {{0}}, NULL, ALL_SHARED, NULL, token_ls_run},
    {"token revoke", "Make a token useless from now on.", {{"ID", CLI_TEXT, "The token's id, from token ls.", NULL, false}}, NULL,
     ALL_SHARED, NULL, token_revoke_run},
    {"trigger", "Send a realistic, signed delivery to a source, as its sender would.",
     {{"SOURCE", CLI_TEXT, "A source of the policy, or a preset such as whatsapp.", NULL, false}}, trigger_options, ALL_SHARED,
     "The policy is the daemon's, or --policy FILE; its env: and file: secrets are read here. A secret that only the daemon knows, or the private\n"
     "key of a public-key scheme, is given with --secret.\n\n"
     "  semel trigger whatsapp --again-after 40m --text 'Is it still available?'\n"
     "  semel trigger typeform --twice --from 'Jo Smith <jo@example.com>'\n"
     "  semel trigger stripe --tamper", trigger_run},
    {"up", "Run the daemon for this computer only, without tokens.", {{0}}, daemon_options, 0,
     "For trying things out. It listens on a loopback address only; use serve to be reached from elsewhere.", up_run},
    {"version", "Print the version.", {{0}}, NULL, CLI_PRINTS_JSON, NULL, version_run},
    {"why", "Tell the story of an intent, an event or a conversation in plain words.",
     {{"ID", CLI_TEXT, "The id of an intent, an event or a conversation; or an intent's key when --workflow is given.", NULL, false}}, why_options, ALL_SHARED, NULL, why_run},
};

const struct cli_exit_row cli_exits[] = {
    {CLI_OK, "done, or done before and replayed"},
    {CLI_PROBLEMS, "semel doctor found problems"},
    {CLI_USAGE, "the command line is wrong"},
    {CLI_DATA, "the input or the key is wrong, or the claim is no longer yours"},
    {CLI_UNREACHABLE, "nothing answers"},
    {CLI_INTERNAL, "a fault of semel or of this machine"},
    {CLI_FSYNC, "the daemon stopped at once because the disk failed to make data durable"},
    {CLI_LATER, "in progress, or not ready: try later"},
    {CLI_UNKNOWN, "nobody can tell whether it happened"},
    {CLI_FORBIDDEN, "the token is missing, wrong or not allowed to do this"},
    {CLI_CONFIG, "the policy or a setting is wrong"},
};
/* clang-format on */

const size_t cli_command_count = sizeof cli_commands / sizeof *cli_commands;
const size_t cli_exit_count = sizeof cli_exits / sizeof *cli_exits;

static const struct {
    unsigned shared; /* 0: every command */
    struct cli_option option;
} shared_options[] = {
    {CLI_CALLS_DAEMON | CLI_CALLS_URL,
     {"--url", "URL", CLI_TEXT, "Where the daemon is; unix:/PATH for a socket.", "http://127.0.0.1:7363", "SEMEL_URL", NULL,
      false}},
    {CLI_CALLS_DAEMON,
     {"--data", "DIR", CLI_DIR, "When SEMEL_TOKEN is not set: use the token in DIR/admin.token.", NULL, NULL, NULL, false}},
    {CLI_PRINTS_JSON, {"--json", NULL, CLI_SWITCH, "Print one JSON object per line.", NULL, NULL, NULL, false}},
    {0, {"--help", NULL, CLI_SWITCH, "Show this.", NULL, NULL, NULL, false}},
};

const struct cli_option *cli_option_at(const struct cli_command *command, size_t i)
{
    for (const struct cli_option *own = command->options; own != NULL && own->name != NULL; own++)
        if (i-- == 0)
            return own;
    for (size_t k = 0; k < sizeof shared_options / sizeof *shared_options; k++)
        if ((shared_options[k].shared == 0 || (command->shared & shared_options[k].shared) != 0) && i-- == 0)
            return &shared_options[k].option;
    return NULL;
}

size_t cli_argument_count(const struct cli_command *command)
{
    size_t count = 0;
    while (count < CLI_ARGUMENTS_MAX && command->arguments[count].name != NULL)
        count++;
    return count;
}

bool cli_has_rest(const struct cli_command *command)
{
    return command->arguments[0].name != NULL && command->arguments[0].kind == CLI_REST;
}

bool cli_in_group(const struct cli_command *command, struct bytes group)
{
    struct bytes name = bytes_of(command->name);
    return bytes_starts(name, group) && (name.len == group.len || name.at[group.len] == ' ');
}

const struct cli_command *cli_find(struct bytes name)
{
    for (size_t i = 0; i < cli_command_count; i++)
        if (bytes_is(name, cli_commands[i].name))
            return &cli_commands[i];
    return NULL;
}

/* The forms that people try before they read anything. */
static bool run_without_command(int argc, char **argv, int *ret_code)
{
    if (argc < 2) {
        help_all(stderr);
        *ret_code = CLI_USAGE;
        return true;
    }
    struct bytes first = bytes_of(argv[1]);
    if (bytes_is(first, "--help") || bytes_is(first, "-h"))
        help_all(stdout);
    else if (bytes_is(first, "--version"))
        version_run(NULL);
    else
        return false;
    *ret_code = CLI_OK;
    return true;
}

static int run(int argc, char **argv)
{
    int code = CLI_OK;
    if (run_without_command(argc, argv, &code))
        return code;
    struct cli cli;
    struct why why;
    if (cli_parse(argc - 1, argv + 1, &cli, &why) != OK)
        return cli_fail(CLI_USAGE, "%s", why.text);
    arena_init(&cli.arena, (size_t)512 << 20);
    if (cli.help)
        help_command(stdout, cli.command);
    else
        code = cli.command->run(&cli);
    client_free(cli.client);
    arena_release(&cli.arena);
    return code;
}

int cli_main(int argc, char **argv)
{
    int code = run(argc, argv);
    /* A result that did not reach its reader was not delivered, whatever the daemon said. */
    if (fflush(stdout) != 0 || ferror(stdout))
        return cli_fail(CLI_INTERNAL, "the output could not be written. Check the disk or the pipe behind it.");
    return code;
}
