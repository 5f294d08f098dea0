/*
 * help: everything in it comes from the tables.
 */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/print.h"

enum { NAME_COLUMN = 18, OPTION_COLUMN = 26, WIDTH_MAX = 100 };

const struct cli_option help_options[] = {
    {"--markdown", NULL, CLI_SWITCH, "Print the reference of all commands as Markdown.", NULL, NULL, NULL, false},
    {0},
};

static const struct {
    const char *name, *help;
} other_variables[] = {
    {"NO_COLOR", "When set, no colours."},
    {"SEMEL_TOKEN", "The token for calls to the daemon. It is never an option: other processes can read command lines."},
};

void help_usage(const struct cli_command *command, struct buf *out)
{
    const struct cli_option *option;
    buf_printf(out, "semel %s", command->name);
    for (size_t i = 0; i < cli_argument_count(command) && !cli_has_rest(command); i++)
        buf_printf(out, command->arguments[i].optional ? " [%s]" : " %s", command->arguments[i].name);
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
        const char *space = option->value != NULL ? " " : "", *value = option->value != NULL ? option->value : "";
        buf_printf(out, option->required ? " %s%s%s" : " [%s%s%s]", option->name, space, value);
    }
    if (cli_has_rest(command))
        buf_printf(out, " -- %s", command->arguments[0].name);
}

/* Breaks a usage line between its parts, never inside a bracket. */
static void write_wrapped(FILE *out, struct bytes text)
{
    size_t column = 0, start = 0, depth = 0;
    for (size_t i = 0; i <= text.len; i++) {
        depth += i < text.len && text.at[i] == '[';
        depth -= i < text.len && text.at[i] == ']';
        if (i < text.len && (text.at[i] != ' ' || depth > 0))
            continue;
        if (column > 0 && column + (i - start) + 1 > WIDTH_MAX)
            column = (size_t)fprintf(out, "\n        ") - 1;
        else if (column > 0)
            column += (size_t)fprintf(out, " ");
        column += (size_t)fprintf(out, "%.*s", (int)(i - start), text.at + start);
        start = i + 1;
    }
    fputc('\n', out);
}

static void write_names(FILE *out, const char *const *names)
{
    for (size_t i = 0; names[i] != NULL; i++)
        fprintf(out, "%s%s", i > 0 ? ", " : "", names[i]);
}

static void write_option_help(FILE *out, const struct cli_option *option)
{
    fputs(option->help, out);
    if (option->names != NULL) {
        fputs(option->kind == CLI_CHOICE ? " One of " : " Some of ", out);
        write_names(out, option->names);
        fputc('.', out);
    }
    if (option->default_text != NULL)
        fprintf(out, " Default: %s.", option->default_text);
    if (option->env != NULL)
        fprintf(out, " Or %s.", option->env);
    if (option->required)
        fputs(" Required.", out);
}

static void write_option(FILE *out, const struct cli_option *option)
{
    char name[64];
    const char *space = option->value != NULL ? " " : "", *value = option->value != NULL ? option->value : "";
    bool help = strcmp(option->name, "--help") == 0;
    snprintf(name, sizeof name, "%s%s%s%s", help ? "-h, " : "", option->name, space, value);
    fprintf(out, "  %-*s ", OPTION_COLUMN, name);
    write_option_help(out, option);
    fputc('\n', out);
}

void help_command(FILE *out, const struct cli_command *command)
{
    struct buf usage;
    buf_init(&usage, 4096);
    help_usage(command, &usage);
    fprintf(out, "%s\n\n", command->summary);
    write_wrapped(out, buf_bytes(&usage));
    buf_release(&usage);
    fputc('\n', out);
    for (size_t i = 0; i < cli_argument_count(command); i++)
        fprintf(out, "  %-*s %s\n", OPTION_COLUMN, command->arguments[i].name, command->arguments[i].help);
    const struct cli_option *option;
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++)
        write_option(out, option);
    if (command->note != NULL)
        fprintf(out, "\n%s\n", command->note);
}

static void write_summaries(FILE *out, struct bytes group)
{
    for (size_t i = 0; i < cli_command_count; i++)
        if (cli_in_group(&cli_commands[i], group))
            fprintf(out, "  %-*s %s\n", NAME_COLUMN, cli_commands[i].name, cli_commands[i].summary);
}

/* The order in which a newcomer meets them. Each command is in one chapter, by its first word. */
static const struct chapter {
    const char *title, *groups[12];
} chapters[] = {
    {"Begin", {"up", "serve", "status", "doctor", "help", "version", "completion"}},
    {"Do a thing once", {"run", "claim", "sent", "confirm", "fail", "extend", "release"}},
    {"Let semel deliver it", {"effects"}},
    {"What comes in", {"inbox", "sources", "threads", "leads", "receive", "trigger"}},
    {"What happened, and who has to look", {"why", "show", "intents", "exceptions", "audit"}},
    {"Agents", {"mcp", "mcp-server", "agents", "runs"}},
    {"Rules and keys", {"policy", "key", "keys"}},
    {"The daemon's own", {"token", "secret", "quarantine"}},
};

int help_chapters_with(const struct cli_command *command)
{
    int count = 0;
    for (size_t i = 0; i < sizeof chapters / sizeof *chapters; i++)
        for (const char *const *group = chapters[i].groups; *group != NULL; group++)
            count += cli_in_group(command, bytes_of(*group));
    return count;
}

static void write_chapters(FILE *out)
{
    for (size_t i = 0; i < sizeof chapters / sizeof *chapters; i++) {
        fprintf(out, "%s\n", chapters[i].title);
        for (const char *const *group = chapters[i].groups; *group != NULL; group++)
            write_summaries(out, bytes_of(*group));
        fputc('\n', out);
    }
}

void help_group(FILE *out, struct bytes group)
{
    write_summaries(out, group);
    fprintf(out, "\nMore about one of them: semel help %.*s COMMAND\n", BYTES_ARG(group));
}

/* ---- the variables: each option's, once, and those that are no option ---- */

struct variable {
    const char *name, *help;
};

static bool is_listed(const struct variable *variables, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(variables[i].name, name) == 0)
            return true;
    return false;
}

static size_t list_variables(struct variable *ret, size_t room)
{
    size_t count = 0;
    for (size_t i = 0; i < sizeof other_variables / sizeof *other_variables; i++)
        ret[count++] = (struct variable){other_variables[i].name, other_variables[i].help};
    for (size_t i = 0; i < cli_command_count; i++) {
        const struct cli_option *option;
        for (size_t k = 0; (option = cli_option_at(&cli_commands[i], k)) != NULL; k++)
            if (option->env != NULL && !is_listed(ret, count, option->env) && count < room)
                ret[count++] = (struct variable){option->env, option->help};
    }
    return count;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct variable *)a)->name, ((const struct variable *)b)->name);
}

static void write_variables(FILE *out, const char *format)
{
    struct variable variables[32];
    size_t count = list_variables(variables, 32);
    qsort(variables, count, sizeof *variables, by_name);
    for (size_t i = 0; i < count; i++)
        fprintf(out, format, variables[i].name, variables[i].help);
}

void help_all(FILE *out)
{
    fputs("semel makes agents and automations safe to repeat: each thing happens once.\n\n", out);
    write_chapters(out);
    fputs("Environment\n", out);
    write_variables(out, "  %-18s %s\n");
    fputs("\nExit codes\n", out);
    for (size_t i = 0; i < cli_exit_count; i++)
        fprintf(out, "  %-18d %s\n", cli_exits[i].code, cli_exits[i].help);
    fputs("\nMore about a command: semel help COMMAND. Start here: semel up\n", out);
}

/* ---- the reference page ---- */

static void write_markdown_command(FILE *out, const struct cli_command *command)
{
    struct buf usage;
    buf_init(&usage, 4096);
    help_usage(command, &usage);
    fprintf(out, "\n## semel %s\n\n%s\n\n```\n", command->name, command->summary);
    write_wrapped(out, buf_bytes(&usage));
    fputs("```\n\n", out);
    buf_release(&usage);
    for (size_t i = 0; i < cli_argument_count(command); i++)
        fprintf(out, "- `%s`: %s\n", command->arguments[i].name, command->arguments[i].help);
    const struct cli_option *option;
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
        fprintf(out, "- `%s%s%s`: ", option->name, option->value != NULL ? " " : "", option->value != NULL ? option->value : "");
        write_option_help(out, option);
        fputc('\n', out);
    }
    if (command->note != NULL)
        fprintf(out, "\n```\n%s\n```\n", command->note);
}

void help_markdown(FILE *out)
{
    fputs("# Commands\n\nMade from the program's own tables by `semel help --markdown`.\n", out);
    for (size_t i = 0; i < cli_command_count; i++)
        write_markdown_command(out, &cli_commands[i]);
    fputs("\n## Environment\n\n", out);
    write_variables(out, "- `%s`: %s\n");
    fputs("\n## Exit codes\n\n", out);
    for (size_t i = 0; i < cli_exit_count; i++)
        fprintf(out, "- `%d`: %s\n", cli_exits[i].code, cli_exits[i].help);
}

int help_run(struct cli *cli)
{
    if (cli_on(cli, "--markdown")) {
        help_markdown(stdout);
        return CLI_OK;
    }
    if (cli->argument_count == 0) {
        help_all(stdout);
        return CLI_OK;
    }
    struct bytes name = bytes_of(cli->arguments[0]);
    if (cli->argument_count == 2)
        name = arena_printf(&cli->arena, "%s %s", cli->arguments[0], cli->arguments[1]);
    const struct cli_command *command = cli_find(name);
    if (command != NULL) {
        help_command(stdout, command);
        return CLI_OK;
    }
    for (size_t i = 0; name.len > 0 && i < cli_command_count; i++)
        if (cli_in_group(&cli_commands[i], name)) {
            help_group(stdout, name);
            return CLI_OK;
        }
    /* The parser knows the nearest name. */
    struct cli unused;
    struct why why;
    char *const words[] = {(char *)cli->arguments[0], (char *)cli->arguments[1]};
    bool refused = cli_parse((int)cli->argument_count, words, &unused, &why) != OK;
    return cli_fail(CLI_USAGE, "%s", refused ? why.text : "there is no such command. See: semel help");
}
