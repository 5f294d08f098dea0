/*
 * completion: scripts for bash, zsh and fish, made from the tables. Every text in them comes from this program; summaries are
 * quoted for the shell they go to.
 */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/print.h"

const char *const completion_shells[] = {"bash", "zsh", "fish", NULL};

/* The first words, each once; calls `each` with the word, its summary and whether it is the first of a group. */
typedef void word_fn(struct buf *out, struct bytes word, const struct cli_command *command, bool group);

static void each_first_word(struct buf *out, word_fn *each)
{
    struct bytes last = BYTES_NONE;
    for (size_t i = 0; i < cli_command_count; i++) {
        struct bytes rest = bytes_of(cli_commands[i].name), word = bytes_cut(&rest, ' ');
        if (last.at == NULL || !bytes_eq(word, last))
            each(out, word, &cli_commands[i], rest.len > 0);
        last = word;
    }
}

static void add_names(struct buf *out, const char *const *names)
{
    for (size_t i = 0; names[i] != NULL; i++)
        buf_printf(out, "%s%s", i > 0 ? " " : "", names[i]);
}

/* ---- bash ---- */

static void bash_word(struct buf *out, struct bytes word, const struct cli_command *command, bool group)
{
    (void)command;
    (void)group;
    buf_printf(out, "%.*s ", BYTES_ARG(word));
}

static void bash_group(struct buf *out, struct bytes word, const struct cli_command *command, bool group)
{
    (void)command;
    if (!group)
        return;
    buf_printf(out, "            %.*s) words='", BYTES_ARG(word));
    for (size_t i = 0; i < cli_command_count; i++)
        if (cli_in_group(&cli_commands[i], word))
            buf_printf(out, "%s ", cli_commands[i].name + word.len + 1);
    buf_add_cstr(out, "' ;;\n");
}

/* What may follow an option that takes a value. */
static void bash_values(struct buf *out, const struct cli_command *command)
{
    const struct cli_option *option;
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
        if (option->kind == CLI_SWITCH)
            continue;
        buf_printf(out, "        '%s %s') ", command->name, option->name);
        if (option->names != NULL) {
            buf_add_cstr(out, "words='");
            add_names(out, option->names);
            buf_add_cstr(out, "'");
        } else {
            buf_add_cstr(out, option->kind == CLI_FILE ? "files=-f" : option->kind == CLI_DIR ? "files=-d" : ":");
        }
        buf_add_cstr(out, " ;;\n");
    }
}

static void bash_command(struct buf *out, const struct cli_command *command)
{
    const struct cli_option *option;
    const struct cli_argument *argument = &command->arguments[0];
    buf_printf(out, "        '%s') words='", command->name);
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++)
        buf_printf(out, "%s ", option->name);
    if (argument->name != NULL && argument->names != NULL)
        add_names(out, argument->names);
    bool files = argument->name != NULL && argument->kind == CLI_FILE;
    if (cli_has_rest(command)) /* behind `--` stands any command with its files */
        buf_add_cstr(out, "--'; case \" ${COMP_WORDS[*]:0:COMP_CWORD} \" in *' -- '*) words=''; files='-c -f' ;; esac ;;\n");
    else
        buf_add_cstr(out, files ? "'; files=-f ;;\n" : "' ;;\n");
}

static void write_bash(struct buf *out)
{
    buf_add_cstr(out, "# bash completion for semel\n"
                      "_semel() {\n"
                      "    local cur=${COMP_WORDS[COMP_CWORD]} prev='' command='' words='' files=''\n"
                      "    [ \"$COMP_CWORD\" -gt 0 ] && prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                      "    COMPREPLY=()\n"
                      "    if [ \"$COMP_CWORD\" -le 1 ]; then\n"
                      "        words='");
    each_first_word(out, bash_word);
    buf_add_cstr(out, "'\n"
                      "    else\n"
                      "        command=${COMP_WORDS[1]}\n"
                      "        case $command in\n");
    each_first_word(out, bash_group);
    buf_add_cstr(out, "        esac\n"
                      "        if [ -n \"$words\" ] && [ \"$COMP_CWORD\" -gt 2 ]; then\n"
                      "            command=\"$command ${COMP_WORDS[2]}\"\n"
                      "            words=''\n"
                      "        fi\n"
                      "    fi\n"
                      "    if [ -z \"$words\" ]; then\n"
                      "        case \"$command $prev\" in\n");
    for (size_t i = 0; i < cli_command_count; i++)
        bash_values(out, &cli_commands[i]);
    buf_add_cstr(out, "        *) case $command in\n");
    for (size_t i = 0; i < cli_command_count; i++)
        bash_command(out, &cli_commands[i]);
    buf_add_cstr(out, "        esac ;;\n"
                      "        esac\n"
                      "    fi\n"
                      "    while IFS= read -r line; do\n"
                      "        [ -n \"$line\" ] && COMPREPLY+=(\"$line\")\n"
                      "    done < <(compgen ${files:+$files} -W \"$words\" -- \"$cur\")\n"
                      "}\n"
                      "complete -F _semel semel\n");
}

/* ---- zsh: its own completion system, with the same decisions ---- */

/* Inside single quotes; ':' separates a name from its description. */
static void add_zsh_text(struct buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            buf_add_cstr(out, "'\\''");
        else if (*text == ':' || *text == '[' || *text == ']' || *text == '\\')
            buf_printf(out, "\\%c", *text);
        else
            buf_add_char(out, *text);
    }
}

static void zsh_word(struct buf *out, struct bytes word, const struct cli_command *command, bool group)
{
    buf_printf(out, "            '%.*s:", BYTES_ARG(word));
    add_zsh_text(out, group ? "several commands" : command->summary);
    buf_add_cstr(out, "'\n");
}

static void zsh_group(struct buf *out, struct bytes word, const struct cli_command *command, bool group)
{
    (void)command;
    if (!group)
        return;
    buf_printf(out, "    %.*s)\n        if (( CURRENT == 3 )); then\n            names=(\n", BYTES_ARG(word));
    for (size_t i = 0; i < cli_command_count; i++)
        if (cli_in_group(&cli_commands[i], word)) {
            buf_printf(out, "                '%s:", cli_commands[i].name + word.len + 1);
            add_zsh_text(out, cli_commands[i].summary);
            buf_add_cstr(out, "'\n");
        }
    buf_add_cstr(out, "            )\n            _describe command names\n            return\n        fi\n"
                      "        command=\"$command $words[3]\"\n        skip=2 ;;\n");
}

static void add_zsh_action(struct buf *out, enum cli_kind kind, const char *const *names)
{
    if (names != NULL && kind == CLI_CHOICE) {
        buf_add_char(out, '(');
        add_names(out, names);
        buf_add_char(out, ')');
    } else if (names != NULL) {
        buf_add_cstr(out, "_sequence compadd - ");
        add_names(out, names);
    } else {
        buf_add_cstr(out, kind == CLI_FILE ? "_files" : kind == CLI_DIR ? "_files -/" : " ");
    }
}

static void zsh_command(struct buf *out, const struct cli_command *command)
{
    const struct cli_option *option;
    buf_printf(out, "    '%s') _arguments", command->name);
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
        buf_printf(out, " \\\n        '%s%s[", option->name, option->value != NULL ? "=" : "");
        add_zsh_text(out, option->help);
        buf_add_char(out, ']');
        if (option->value != NULL) {
            buf_printf(out, ":%s:", option->value);
            add_zsh_action(out, option->kind, option->names);
        }
        buf_add_char(out, '\'');
    }
    if (cli_has_rest(command))
        buf_add_cstr(out, " \\\n        '*::command:_normal'");
    for (size_t i = 0; i < cli_argument_count(command) && !cli_has_rest(command); i++) {
        buf_printf(out, " \\\n        '%s%s:", command->arguments[i].optional ? "::" : ":", command->arguments[i].name);
        add_zsh_action(out, command->arguments[i].kind, command->arguments[i].names);
        buf_add_char(out, '\'');
    }
    buf_add_cstr(out, " ;;\n");
}

static void write_zsh(struct buf *out)
{
    buf_add_cstr(out, "#compdef semel\n"
                      "_semel() {\n"
                      "    local command=$words[2] skip=1\n"
                      "    local -a names\n"
                      "    if (( CURRENT == 2 )); then\n"
                      "        names=(\n");
    each_first_word(out, zsh_word);
    buf_add_cstr(out, "        )\n"
                      "        _describe command names\n"
                      "        return\n"
                      "    fi\n"
                      "    case $command in\n");
    each_first_word(out, zsh_group);
    buf_add_cstr(out, "    esac\n"
                      "    shift $skip words\n"
                      "    (( CURRENT -= skip ))\n"
                      "    case $command in\n");
    for (size_t i = 0; i < cli_command_count; i++)
        zsh_command(out, &cli_commands[i]);
    buf_add_cstr(out, "    esac\n"
                      "}\n"
                      "if [ \"$funcstack[1]\" = _semel ]; then _semel \"$@\"; else compdef _semel semel; fi\n");
}

/* ---- fish: one line per word and option ---- */

static void add_fish_text(struct buf *out, const char *text)
{
    buf_add_char(out, '\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\')
            buf_add_char(out, '\\');
        buf_add_char(out, *text);
    }
    buf_add_char(out, '\'');
}

static void fish_word(struct buf *out, struct bytes word, const struct cli_command *command, bool group)
{
    buf_printf(out, "complete -c semel -n __semel_first -a %.*s -d ", BYTES_ARG(word));
    add_fish_text(out, group ? "several commands" : command->summary);
    buf_add_char(out, '\n');
    if (!group)
        return;
    for (size_t i = 0; i < cli_command_count; i++)
        if (cli_in_group(&cli_commands[i], word)) {
            buf_printf(out, "complete -c semel -n '__semel_at %.*s' -a %s -d ", BYTES_ARG(word),
                       cli_commands[i].name + word.len + 1);
            add_fish_text(out, cli_commands[i].summary);
            buf_add_char(out, '\n');
        }
}

static void fish_values(struct buf *out, enum cli_kind kind, const char *const *names)
{
    if (names != NULL) {
        buf_add_cstr(out, " -a '");
        add_names(out, names);
        buf_add_char(out, '\'');
    } else if (kind == CLI_FILE) {
        buf_add_cstr(out, " -F");
    } else if (kind == CLI_DIR) {
        buf_add_cstr(out, " -a '(__fish_complete_directories)'");
    }
}

static void fish_command(struct buf *out, const struct cli_command *command)
{
    const struct cli_option *option;
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
        buf_printf(out, "complete -c semel -n '__semel_in %s' -l %s", command->name, option->name + 2);
        if (option->value != NULL)
            buf_add_cstr(out, option->kind == CLI_FILE ? " -r" : " -x");
        fish_values(out, option->kind, option->names);
        buf_add_cstr(out, " -d ");
        add_fish_text(out, option->help);
        buf_add_char(out, '\n');
    }
    const struct cli_argument *argument = &command->arguments[0];
    if (cli_has_rest(command)) {
        buf_printf(out, "complete -c semel -n '__semel_in %s' -F\n", command->name);
    } else if (argument->name != NULL && (argument->names != NULL || argument->kind == CLI_FILE)) {
        buf_printf(out, "complete -c semel -n '__semel_in %s'", command->name);
        fish_values(out, argument->kind, argument->names);
        buf_add_char(out, '\n');
    }
}

static void write_fish(struct buf *out)
{
    buf_add_cstr(out, "# fish completion for semel\n"
                      "function __semel_first\n"
                      "    test (count (commandline -opc)) -eq 1\n"
                      "end\n"
                      "function __semel_in\n"
                      "    set -l words (commandline -opc)\n"
                      "    test (count $words) -gt (count $argv); or return 1\n"
                      "    test \"$words[2..\"(math 1 + (count $argv))\"]\" = \"$argv\"\n"
                      "end\n"
                      "function __semel_at\n"
                      "    set -l words (commandline -opc)\n"
                      "    test (count $words) -eq 2; and test $words[2] = $argv[1]\n"
                      "end\n"
                      "complete -c semel -f\n");
    each_first_word(out, fish_word);
    for (size_t i = 0; i < cli_command_count; i++)
        fish_command(out, &cli_commands[i]);
}

void completion_write(const char *shell, struct buf *out)
{
    if (strcmp(shell, "bash") == 0)
        write_bash(out);
    else if (strcmp(shell, "zsh") == 0)
        write_zsh(out);
    else
        write_fish(out);
}

int completion_run(struct cli *cli)
{
    struct buf script;
    buf_init(&script, 1 << 20);
    completion_write(cli->arguments[0], &script);
    ASSERT(!script.failed);
    fwrite(buf_bytes(&script).at, 1, script.len, stdout);
    buf_release(&script);
    return CLI_OK;
}
