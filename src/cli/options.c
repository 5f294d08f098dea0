/*
 * The parser: `--name value`, `--name=value`, `-h`, `--` ends the options. Everything is checked before a command runs, whether
 * it came from the command line or from the environment.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/when.h"
#include "cli/cli.h"

enum { NAMES_MAX = 64 };

static enum status refuse(struct why *why, const char *what, const char *nearest, const char *see)
{
    if (nearest != NULL)
        return why_set(why, INVALID, "%s. Did you mean %s?", what, nearest);
    return why_set(why, INVALID, "%s. See: semel help%s%s", what, *see != '\0' ? " " : "", see);
}

/* ---- which command ---- */

/* The words that may stand at this place: first words, or the second words of `group`. */
static size_t list_words(struct bytes group, char storage[][24], const char **ret_names)
{
    size_t count = 0;
    for (size_t i = 0; i < cli_command_count && count < NAMES_MAX; i++) {
        struct bytes rest = bytes_of(cli_commands[i].name);
        if (group.len > 0 && (!cli_in_group(&cli_commands[i], group) || rest.len == group.len))
            continue;
        struct bytes word = group.len > 0 ? bytes_from(rest, group.len + 1) : bytes_cut(&rest, ' ');
        if (count > 0 && bytes_is(word, ret_names[count - 1]))
            continue;
        snprintf(storage[count], sizeof storage[count], "%.*s", BYTES_ARG(word));
        ret_names[count] = storage[count];
        count++;
    }
    return count;
}

static enum status refuse_word(struct bytes group, const char *given, struct why *why)
{
    char storage[NAMES_MAX][24], what[128], nearest[64];
    const char *names[NAMES_MAX];
    size_t count = list_words(group, storage, names);
    const char *near = nearest_name(bytes_of(given), names, count);
    const char *space = group.len > 0 ? " " : "";
    snprintf(what, sizeof what, "there is no command %.*s%s%.40s", BYTES_ARG(group), space, given);
    snprintf(nearest, sizeof nearest, "%.*s%s%s", BYTES_ARG(group), space, near != NULL ? near : "");
    return refuse(why, what, near != NULL ? nearest : NULL, group.len > 0 ? group.at : "");
}

static bool is_group(const char *word)
{
    for (size_t i = 0; i < cli_command_count; i++)
        if (cli_in_group(&cli_commands[i], bytes_of(word)) && strcmp(cli_commands[i].name, word) != 0)
            return true;
    return false;
}

static bool asks_for_help(const char *text)
{
    return strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0;
}

/* Finds the command; `ret_used` says how many words it took. `semel policy --help` is `semel help policy`. */
static enum status find_command(int argc, char *const *argv, struct cli *ret, int *ret_used, struct why *why)
{
    ret->command = cli_find(bytes_of(argv[0]));
    *ret_used = 1;
    if (ret->command != NULL)
        return OK;
    if (!is_group(argv[0]))
        return refuse_word(BYTES(""), argv[0], why);
    if (argc < 2 || argv[1][0] == '-') {
        if (argc >= 2 && asks_for_help(argv[1])) {
            ret->command = cli_find(BYTES("help"));
            ret->arguments[0] = argv[0];
            ret->argument_count = 1;
            *ret_used = argc;
            return OK;
        }
        return why_set(why, INVALID, "%s needs a second word. See: semel help %s", argv[0], argv[0]);
    }
    char name[64];
    snprintf(name, sizeof name, "%s %s", argv[0], argv[1]);
    ret->command = cli_find(bytes_of(name));
    *ret_used = 2;
    return ret->command != NULL ? OK : refuse_word(bytes_of(argv[0]), argv[1], why);
}

/* ---- values ---- */

static enum status check_choice(const char *label, const char *const *names, struct bytes value, struct why *why)
{
    char all[160] = "";
    size_t count = 0, at = 0;
    for (; names[count] != NULL; count++) {
        if (bytes_is(value, names[count]))
            return OK;
        at += (size_t)snprintf(all + at, sizeof all - at, "%s%s", count > 0 ? ", " : "", names[count]);
        ASSERT(at < sizeof all);
    }
    const char *near = nearest_name(value, names, count);
    if (near != NULL)
        return why_set(why, INVALID, "%s cannot be \"%.*s\". Did you mean %s?", label, (int)(value.len < 40 ? value.len : 40),
                       value.at, near);
    return why_set(why, INVALID, "%s cannot be \"%.*s\". It is one of %s.", label, (int)(value.len < 40 ? value.len : 40),
                   value.at, all);
}

static enum status check_value(const char *label, enum cli_kind kind, const char *const *names, const char *text, struct why *why)
{
    struct bytes value = bytes_of(text);
    int64_t number;
    switch (kind) {
    case CLI_SWITCH:
    case CLI_TEXT:
    case CLI_REST:
        return OK;
    case CLI_FILE:
    case CLI_DIR:
        return value.len > 0 ? OK : why_set(why, INVALID, "%s is empty. Give a path.", label);
    case CLI_DURATION:
        if (when_parse_duration(value, &number))
            return OK;
        return why_set(why, INVALID, "%s is not a duration. Write it like 500ms, 90s, 15m, 24h or 30d.", label);
    case CLI_NUMBER:
        if (bytes_to_i64(value, &number) && number > 0)
            return OK;
        return why_set(why, INVALID, "%s is not a whole number from 1.", label);
    case CLI_CHOICE:
        return check_choice(label, names, value, why);
    case CLI_CHOICES:
        do
            TRY(check_choice(label, names, bytes_cut(&value, ','), why));
        while (value.len > 0);
        return OK;
    }
    return OK;
}

/* ---- options ---- */

static enum status refuse_option(const struct cli_command *command, struct bytes given, struct why *why)
{
    const char *names[CLI_OPTIONS_MAX];
    size_t count = 0;
    char what[128];
    for (const struct cli_option *option; (option = cli_option_at(command, count)) != NULL;)
        names[count++] = option->name;
    snprintf(what, sizeof what, "%s has no option %.*s", command->name, (int)(given.len < 40 ? given.len : 40), given.at);
    return refuse(why, what, nearest_name(given, names, count), command->name);
}

/* Takes the option at argv[*at], and its value from the same or the next word. */
static enum status take_option(int argc, char *const *argv, int *at, struct cli *ret, struct why *why)
{
    const char *equals = strchr(argv[*at], '=');
    struct bytes name = equals != NULL ? (struct bytes){argv[*at], (size_t)(equals - argv[*at])} : bytes_of(argv[*at]);
    const struct cli_option *option;
    size_t i = 0;
    while ((option = cli_option_at(ret->command, i)) != NULL && !bytes_is(name, option->name))
        i++;
    if (option == NULL)
        return refuse_option(ret->command, name, why);
    ASSERT(i < CLI_OPTIONS_MAX);
    if (ret->values[i] != NULL)
        return why_set(why, INVALID, "%s was given twice. Give it once.", option->name);
    if (option->kind == CLI_SWITCH) {
        ret->values[i] = "";
        return equals == NULL ? OK : why_set(why, INVALID, "%s takes no value. Write just %s.", option->name, option->name);
    }
    if (equals == NULL && *at + 1 >= argc)
        return why_set(why, INVALID, "%s needs a value: %s %s.", option->name, option->name, option->value);
    ret->values[i] = equals != NULL ? equals + 1 : argv[++*at];
    return check_value(option->name, option->kind, option->names, ret->values[i], why);
}

static enum status take_argument(const char *text, struct cli *ret, struct why *why)
{
    const struct cli_argument *argument = &ret->command->arguments[ret->argument_count];
    if (cli_has_rest(ret->command))
        return why_set(why, INVALID, "\"%.40s\" is no option. Put -- before the command: semel %s … -- %.40s", text,
                       ret->command->name, text);
    if (ret->argument_count >= cli_argument_count(ret->command))
        return why_set(why, INVALID, "%s does not take \"%.40s\". See: semel help %s", ret->command->name, text,
                       ret->command->name);
    ret->arguments[ret->argument_count++] = text;
    return check_value(argument->name, argument->kind, argument->names, text, why);
}

static enum status take_words(int argc, char *const *argv, struct cli *ret, struct why *why)
{
    bool options_ended = false;
    for (int i = 0; i < argc; i++) {
        if (!options_ended && cli_has_rest(ret->command) && strcmp(argv[i], "--") == 0) {
            ret->rest = argv + i + 1;
            ret->rest_count = argc - i - 1;
            return OK;
        }
        if (!options_ended && strcmp(argv[i], "--") == 0)
            options_ended = true;
        else if (!options_ended && argv[i][0] == '-' && argv[i][1] != '\0')
            TRY(take_option(argc, argv, &i, ret, why));
        else
            TRY(take_argument(argv[i], ret, why));
    }
    return OK;
}

/* What the command line left open: the environment, then the default. */
static enum status fill_option(const struct cli_option *option, const char **value, const struct cli_command *command,
                               struct why *why)
{
    const char *env = option->env != NULL ? getenv(option->env) : NULL;
    if (*value == NULL && env != NULL && *env != '\0') {
        *value = env;
        return check_value(option->env, option->kind, option->names, env, why);
    }
    if (*value == NULL)
        *value = option->default_text;
    if (*value == NULL && option->required)
        return why_set(why, INVALID, "%s needs %s %s. See: semel help %s", command->name, option->name, option->value,
                       command->name);
    return OK;
}

static enum status fill(struct cli *ret, struct why *why)
{
    const struct cli_command *command = ret->command;
    const struct cli_option *option;
    if (!cli_has_rest(command) && ret->argument_count < cli_argument_count(command) &&
        !command->arguments[ret->argument_count].optional)
        return why_set(why, INVALID, "%s needs %s. See: semel help %s", command->name,
                       command->arguments[ret->argument_count].name, command->name);
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++)
        TRY(fill_option(option, &ret->values[i], command, why));
    if (cli_has_rest(command) && ret->rest_count == 0 && !command->arguments[0].optional)
        return why_set(why, INVALID, "%s needs a command: semel %s … -- %s", command->name, command->name,
                       command->arguments[0].name);
    return OK;
}

/* Whoever asks for help gets it, whatever else is wrong with the line. A value of an option is not a question. */
static bool wants_help(const struct cli_command *command, int argc, char *const *argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (asks_for_help(argv[i]))
            return true;
        const struct cli_option *option;
        for (size_t k = 0; (option = cli_option_at(command, k)) != NULL; k++)
            if (option->kind != CLI_SWITCH && strcmp(option->name, argv[i]) == 0) {
                i++;
                break;
            }
    }
    return false;
}

enum status cli_parse(int argc, char *const *argv, struct cli *ret, struct why *why)
{
    struct cli cli = {0};
    int used = 0;
    if (argc < 1)
        return why_set(why, INVALID, "no command was given. See: semel help");
    TRY(find_command(argc, argv, &cli, &used, why));
    cli.help = wants_help(cli.command, argc - used, argv + used);
    if (!cli.help) {
        TRY(take_words(argc - used, argv + used, &cli, why));
        TRY(fill(&cli, why));
    }
    *ret = cli;
    return OK;
}

/* ---- reading what was parsed ---- */

static size_t number_of(const struct cli *cli, const char *name)
{
    const struct cli_option *option;
    size_t i = 0;
    while ((option = cli_option_at(cli->command, i)) != NULL && strcmp(option->name, name) != 0)
        i++;
    ASSERT(option != NULL);
    return i;
}

const char *cli_text(const struct cli *cli, const char *name)
{
    return cli->values[number_of(cli, name)];
}

bool cli_on(const struct cli *cli, const char *name)
{
    return cli_text(cli, name) != NULL;
}

int64_t cli_number(const struct cli *cli, const char *name, int64_t otherwise)
{
    int64_t number = otherwise;
    const char *text = cli_text(cli, name);
    return text != NULL && bytes_to_i64(bytes_of(text), &number) ? number : otherwise;
}

int64_t cli_duration_us(const struct cli *cli, const char *name, int64_t otherwise)
{
    int64_t duration_us = otherwise;
    const char *text = cli_text(cli, name);
    return text != NULL && when_parse_duration(bytes_of(text), &duration_us) ? duration_us : otherwise;
}

int cli_choice(const struct cli *cli, const char *name)
{
    size_t number = number_of(cli, name);
    const char *const *names = cli_option_at(cli->command, number)->names;
    int i = 0;
    ASSERT(cli->values[number] != NULL);
    while (names[i] != NULL && strcmp(names[i], cli->values[number]) != 0)
        i++;
    ASSERT(names[i] != NULL);
    return i;
}
