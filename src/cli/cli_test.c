#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/daemon.h"
#include "cli/key_advice.h"
#include "cli/print.h"
#include "cli/story.h"
#include "http/listen.h"

enum { WORDS_MAX = 16 };

/* Parses words given as one text, with one space between them; "_" is an empty word. */
static enum status parse(const char *line, struct cli *ret, struct why *why)
{
    static char text[256], *words[WORDS_MAX + 1]; /* what was parsed refers to them */
    int count = 0;
    memset(words, 0, sizeof words);
    CHECK((size_t)snprintf(text, sizeof text, "%s", line) < sizeof text);
    for (char *at = text; at != NULL && *at != '\0'; count++) {
        CHECK(count < WORDS_MAX);
        char *space = strchr(at, ' ');
        if (space != NULL)
            *space = '\0';
        words[count] = strcmp(at, "_") == 0 ? at + 1 : at;
        at = space != NULL ? space + 1 : NULL;
    }
    return cli_parse(count, words, ret, why);
}

static void forget_environment(void)
{
    for (size_t i = 0; i < cli_command_count; i++) {
        const struct cli_option *option;
        for (size_t k = 0; (option = cli_option_at(&cli_commands[i], k)) != NULL; k++)
            if (option->env != NULL)
                unsetenv(option->env);
    }
}

TEST(the_command_table_is_sorted_and_complete)
{
    for (size_t i = 0; i < cli_command_count; i++) {
        const struct cli_command *command = &cli_commands[i];
        size_t options = 0;
        if (i > 0)
            CHECK(strcmp(cli_commands[i - 1].name, command->name) < 0);
        CHECK(command->summary != NULL && command->summary[strlen(command->summary) - 1] == '.');
        CHECK(command->run != NULL);
        CHECK(cli_find(bytes_of(command->name)) == command);
        while (cli_option_at(command, options) != NULL)
            options++;
        CHECK(options > 0 && options <= CLI_OPTIONS_MAX);
    }
}

TEST(every_option_is_well_formed_and_unique_in_its_command)
{
    for (size_t i = 0; i < cli_command_count; i++) {
        const struct cli_option *option, *other;
        for (size_t k = 0; (option = cli_option_at(&cli_commands[i], k)) != NULL; k++) {
            CHECK(strncmp(option->name, "--", 2) == 0);
            CHECK((option->kind == CLI_SWITCH) == (option->value == NULL));
            CHECK((option->kind == CLI_CHOICE || option->kind == CLI_CHOICES) == (option->names != NULL));
            CHECK(option->help != NULL && option->help[strlen(option->help) - 1] == '.');
            for (size_t m = 0; m < k; m++) {
                other = cli_option_at(&cli_commands[i], m);
                CHECK(strcmp(other->name, option->name) != 0);
            }
        }
    }
}

TEST(command_lines_that_are_right_are_taken)
{
    static const struct {
        const char *line, *option, *value, *argument;
    } rows[] = {
        {"claim --workflow w --key k", "--workflow", "w", NULL},
        {"claim --workflow=w --key=k", "--key", "k", NULL},
        {"claim --workflow w --key a=b", "--key", "a=b", NULL},
        {"claim --workflow w --key=a=b", "--key", "a=b", NULL},
        {"claim --workflow w --key --help=", "--key", "--help=", NULL},
        {"claim --workflow w --key _", "--key", "", NULL},
        {"claim --workflow w --key=", "--key", "", NULL},
        {"claim --workflow w --key k --lease 1h30m", "--lease", "1h30m", NULL},
        {"claim --workflow w --key k --two-phase", "--two-phase", "", NULL},
        {"claim --workflow w --key k", "--url", "http://127.0.0.1:7363", NULL},
        {"confirm int_1 --fence 7", "--fence", "7", "int_1"},
        {"confirm --fence 7 int_1", "--fence", "7", "int_1"},
        {"confirm --fence 7 -- --int_1", "--fence", "7", "--int_1"},
        {"policy check -", "--json", NULL, "-"},
        {"policy check -- --help", "--json", NULL, "--help"},
        {"token create --name n --scopes claim,read", "--scopes", "claim,read", NULL},
        {"up --log-level warn", "--log-level", "warn", NULL},
        {"up", "--log-format", "logfmt", NULL},
        {"run --key k -- cmd --url x", "--url", "http://127.0.0.1:7363", NULL},
        {"run --key k --on-crash retry -- --help", "--on-crash", "retry", NULL},
    };
    forget_environment();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cli cli;
        struct why why = {""};
        if (parse(rows[i].line, &cli, &why) != OK)
            check_fail(__FILE__, __LINE__, "\"%s\" is refused: %s", rows[i].line, why.text);
        CHECK(!cli.help);
        const char *value = cli_text(&cli, rows[i].option);
        CHECK((value == NULL) == (rows[i].value == NULL));
        if (value != NULL)
            CHECK_TEXT(bytes_of(value), rows[i].value);
        CHECK_INT(cli.argument_count, rows[i].argument != NULL);
        if (rows[i].argument != NULL)
            CHECK_TEXT(bytes_of(cli.arguments[0]), rows[i].argument);
    }
}

TEST(command_lines_that_are_wrong_are_refused_with_a_way_out)
{
    static const struct {
        const char *line, *sentence;
    } rows[] = {
        {"clam", "there is no command clam. Did you mean claim?"},
        {"frobnicate", "there is no command frobnicate. See: semel help"},
        {"polcy check x", "there is no command polcy. Did you mean policy?"},
        {"policy chek x", "there is no command policy chek. Did you mean policy check?"},
        {"policy frobnicate", "there is no command policy frobnicate. See: semel help policy"},
        {"policy", "policy needs a second word. See: semel help policy"},
        {"claim --worklow w", "claim has no option --worklow. Did you mean --workflow?"},
        {"claim --zzzzzzzz", "claim has no option --zzzzzzzz. See: semel help claim"},
        {"claim -k", "claim has no option -k. See: semel help claim"},
        {"token create", "token create needs --name NAME. See: semel help token create"},
        {"claim --workflow", "--workflow needs a value: --workflow NAME."},
        {"claim --workflow a --workflow b", "--workflow was given twice. Give it once."},
        {"claim --workflow w --two-phase=yes", "--two-phase takes no value. Write just --two-phase."},
        {"claim --workflow w --lease 5", "--lease is not a duration. Write it like 500ms, 90s, 15m, 24h or 30d."},
        {"claim --workflow w extra", "claim does not take \"extra\". See: semel help claim"},
        {"sent int_1 --fence 0", "--fence is not a whole number from 1."},
        {"sent int_1 --fence -1", "--fence is not a whole number from 1."},
        {"sent int_1 --fence 99999999999999999999", "--fence is not a whole number from 1."},
        {"sent --fence 1", "sent needs INTENT. See: semel help sent"},
        {"fail int_1 --fence 1 --effect non", "--effect cannot be \"non\". Did you mean none?"},
        {"fail int_1 --fence 1 --effect maybe", "--effect cannot be \"maybe\". It is one of none, unknown."},
        {"token create --name n --scopes claim,raed", "--scopes cannot be \"raed\". Did you mean read?"},
        {"token create --name n --scopes _", "--scopes cannot be \"\". It is one of claim, read, admin, resolve."},
        {"completion tcsh", "SHELL cannot be \"tcsh\". It is one of bash, zsh, fish."},
        {"up --data _", "--data is empty. Give a path."},
        {"run --key k", "run needs a command: semel run … -- CMD [ARG...]"},
        {"run --key k --", "run needs a command: semel run … -- CMD [ARG...]"},
        {"run --key k ls -- cmd", "\"ls\" is no option. Put -- before the command: semel run … -- ls"},
        {"run -- cmd", "run needs --key KEY. See: semel help run"},
    };
    forget_environment();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cli cli = {.argument_count = 99};
        struct why why = {""};
        if (parse(rows[i].line, &cli, &why) == OK)
            check_fail(__FILE__, __LINE__, "\"%s\" is taken", rows[i].line);
        CHECK_TEXT(bytes_of(why.text), rows[i].sentence);
        CHECK_INT(cli.argument_count, 99);
    }
}

TEST(help_is_given_whatever_else_is_wrong_but_a_value_is_no_question)
{
    struct cli cli;
    struct why why;
    forget_environment();
    CHECK(parse("claim --help", &cli, &why) == OK && cli.help);
    CHECK(parse("claim --nonsense -h", &cli, &why) == OK && cli.help);
    CHECK(parse("policy check --help", &cli, &why) == OK && cli.help);
    CHECK(parse("policy --help", &cli, &why) == OK && !cli.help);
    CHECK_TEXT(bytes_of(cli.command->name), "help");
    CHECK_TEXT(bytes_of(cli.arguments[0]), "policy");
    CHECK(parse("claim --workflow w --key --help", &cli, &why) == OK && !cli.help);
    CHECK_TEXT(bytes_of(cli_text(&cli, "--key")), "--help");
}

TEST(what_stands_behind_the_dashes_is_another_command)
{
    struct cli cli;
    struct why why;
    forget_environment();
    CHECK(parse("run --key k -- cmd --key x -- -h", &cli, &why) == OK && !cli.help);
    CHECK_TEXT(bytes_of(cli_text(&cli, "--key")), "k");
    CHECK_INT(cli.rest_count, 5);
    CHECK_TEXT(bytes_of(cli.rest[0]), "cmd");
    CHECK_TEXT(bytes_of(cli.rest[3]), "--");
    CHECK_TEXT(bytes_of(cli.rest[4]), "-h");
    CHECK(parse("run --help -- cmd", &cli, &why) == OK && cli.help);
}

TEST(the_command_line_wins_over_the_environment_and_that_over_the_default)
{
    struct cli cli;
    struct why why;
    forget_environment();
    CHECK(parse("up", &cli, &why) == OK);
    CHECK_TEXT(bytes_of(cli_text(&cli, "--data")), "./semel-data");
    setenv("SEMEL_DATA", "/from/env", 1);
    CHECK(parse("up", &cli, &why) == OK);
    CHECK_TEXT(bytes_of(cli_text(&cli, "--data")), "/from/env");
    CHECK(parse("up --data /from/line", &cli, &why) == OK);
    CHECK_TEXT(bytes_of(cli_text(&cli, "--data")), "/from/line");
    setenv("SEMEL_DATA", "", 1);
    CHECK(parse("up", &cli, &why) == OK);
    CHECK_TEXT(bytes_of(cli_text(&cli, "--data")), "./semel-data");
    setenv("SEMEL_LOG_LEVEL", "loud", 1);
    CHECK(parse("up", &cli, &why) == INVALID);
    CHECK_TEXT(bytes_of(why.text), "SEMEL_LOG_LEVEL cannot be \"loud\". It is one of debug, info, warn, error.");
}

TEST(values_are_read_as_what_they_are)
{
    struct cli cli;
    struct why why;
    forget_environment();
    CHECK(parse("claim --workflow w --key k --lease 90s", &cli, &why) == OK);
    CHECK_INT(cli_duration_us(&cli, "--lease", 1), 90000000);
    CHECK_INT(cli_duration_us(&cli, "--wait", 5), 5);
    CHECK(parse("intents --limit 7", &cli, &why) == OK);
    CHECK_INT(cli_number(&cli, "--limit", 0), 7);
    CHECK(parse("up --log-level error", &cli, &why) == OK);
    CHECK_INT(cli_choice(&cli, "--log-level"), LOG_ERROR);
    CHECK(parse("up --log-format json", &cli, &why) == OK);
    CHECK_INT(cli_choice(&cli, "--log-format"), LOG_JSON);
}

/* ---- help and completion ---- */

static char *help_of(const struct cli_command *command)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    CHECK(out != NULL);
    if (command != NULL)
        help_command(out, command);
    else
        help_all(out);
    fclose(out);
    return text;
}

TEST(the_help_of_every_command_lists_every_option)
{
    for (size_t i = 0; i < cli_command_count; i++) {
        char *text = help_of(&cli_commands[i]);
        const struct cli_option *option;
        for (size_t k = 0; (option = cli_option_at(&cli_commands[i], k)) != NULL; k++) {
            CHECK(strstr(text, option->name) != NULL);
            CHECK(strstr(text, option->help) != NULL);
            for (size_t m = 0; option->names != NULL && option->names[m] != NULL; m++)
                CHECK(strstr(text, option->names[m]) != NULL);
        }
        for (size_t k = 0; k < cli_argument_count(&cli_commands[i]); k++)
            CHECK(strstr(text, cli_commands[i].arguments[k].help) != NULL);
        free(text);
    }
}

TEST(the_help_lists_every_command_variable_and_exit_code)
{
    char *text = help_of(NULL);
    for (size_t i = 0; i < cli_command_count; i++) {
        const struct cli_option *option;
        CHECK(strstr(text, cli_commands[i].name) != NULL);
        CHECK(help_chapters_with(&cli_commands[i]) == 1);
        for (size_t k = 0; (option = cli_option_at(&cli_commands[i], k)) != NULL; k++)
            CHECK(option->env == NULL || strstr(text, option->env) != NULL);
    }
    for (size_t i = 0; i < cli_exit_count; i++)
        CHECK(strstr(text, cli_exits[i].help) != NULL);
    CHECK(strstr(text, "SEMEL_TOKEN") != NULL && strstr(text, "NO_COLOR") != NULL);
    free(text);
}

TEST(completion_knows_every_command_option_and_choice)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};
    for (size_t s = 0; s < 3; s++) {
        struct buf script;
        buf_init(&script, 1 << 20);
        completion_write(shells[s], &script);
        buf_add_char(&script, '\0');
        CHECK(!script.failed);
        for (size_t i = 0; i < cli_command_count; i++) {
            const struct cli_option *option;
            CHECK(strstr(script.at, cli_commands[i].name) != NULL);
            for (size_t k = 0; (option = cli_option_at(&cli_commands[i], k)) != NULL; k++) {
                CHECK(strstr(script.at, option->name + 2) != NULL);
                for (size_t m = 0; option->names != NULL && option->names[m] != NULL; m++)
                    CHECK(strstr(script.at, option->names[m]) != NULL);
            }
        }
        buf_release(&script);
    }
}

static void write_script(const char *shell, const char *path)
{
    struct buf script;
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    buf_init(&script, 1 << 20);
    completion_write(shell, &script);
    CHECK_INT(fwrite(script.at, 1, script.len, file), script.len);
    CHECK_INT(fclose(file), 0);
    buf_release(&script);
}

TEST(completion_scripts_are_accepted_by_their_shells)
{
    static const char *const checks[][3] = {
        {"bash", "command -v bash >/dev/null", "bash -n script.bash"},
        {"zsh", "command -v zsh >/dev/null", "zsh -n script.zsh"},
        {"fish", "command -v fish >/dev/null", "fish -n script.fish"},
    };
    int checked = 0;
    for (size_t i = 0; i < 3; i++) {
        char path[32];
        snprintf(path, sizeof path, "script.%s", checks[i][0]);
        write_script(checks[i][0], path);
        if (system(checks[i][1]) != 0)
            continue;
        CHECK_INT(system(checks[i][2]), 0);
        checked++;
    }
    if (checked == 0)
        SKIP("no shell to check with");
}

/* Runs the bash script as bash would when TAB is pressed behind the last of the words. */
static void check_bash(const char *words, const char *want)
{
    char command[1024], got[4096];
    snprintf(command, sizeof command,
             "bash -c '. ./script.bash; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _semel; echo \"${COMPREPLY[*]}\"'",
             words);
    FILE *pipe = popen(command, "r");
    CHECK(pipe != NULL);
    size_t len = fread(got, 1, sizeof got - 1, pipe);
    got[len] = '\0';
    CHECK_INT(pclose(pipe), 0);
    if (strcmp(got, want) != 0)
        check_fail(__FILE__, __LINE__, "\"%s\" completes to \"%s\", want \"%s\"", words, got, want);
}

TEST(bash_completes_commands_groups_options_and_choices)
{
    if (system("command -v bash >/dev/null") != 0)
        SKIP("there is no bash");
    write_script("bash", "script.bash");
    check_bash("semel comp", "completion\n");
    check_bash("semel token \"\"", "create ls revoke\n");
    check_bash("semel policy ap", "apply\n");
    check_bash("semel claim --work", "--workflow\n");
    check_bash("semel fail int_1 --effect \"\"", "none unknown\n");
    check_bash("semel completion f", "fish\n");
    check_bash("semel up --log-format j", "json\n");
    check_bash("semel policy check script.b", "script.bash\n");
    check_bash("semel claim --key \"\"", "\n");
    check_bash("semel run --on-er", "--on-error\n");
    check_bash("semel run --key k -- script.b", "script.bash\n");
}

/* ---- exit codes, paths, words ---- */

TEST(each_problem_has_the_exit_code_that_says_what_to_do)
{
    static const struct {
        long status;
        const char *code;
        int exit;
    } rows[] = {
        {409, "in_progress", 75},
        {409, "outcome_unknown", 76},
        {409, "fenced", 65},
        {409, "refused", 65},
        {410, "expired", 65},
        {422, "key_reused", 65},
        {422, "policy_invalid", 78},
        {400, "invalid", 65},
        {401, "unauthorized", 77},
        {403, "forbidden", 77},
        {404, "not_found", 65},
        {429, "", 75},
        {503, "storage", 75},
        {503, "storage_unknown", 75},
        {500, "", 70},
        {502, "", 75},
        {302, "", 69},
        {200, "", 69},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_INT(client_exit(rows[i].status, bytes_of(rows[i].code)), rows[i].exit);
}

TEST(paths_and_queries_are_escaped)
{
    struct buf path;
    buf_init(&path, 256);
    buf_add_cstr(&path, "/v1");
    client_path_add(&path, BYTES("a/../b ?#\n\xC3\xBC"));
    client_path_add(&path, BYTES(".."));
    client_query_add(&path, "none", NULL);
    client_query_add(&path, "key", "a&b=c+%");
    client_query_add(&path, "empty", "");
    CHECK_TEXT(buf_bytes(&path), "/v1/a%2F..%2Fb%20%3F%23%0A%C3%BC/%2E%2E?key=a%26b%3Dc%2B%25&empty=");
    buf_release(&path);
}

TEST(text_from_elsewhere_cannot_command_the_terminal)
{
    struct buf out;
    buf_init(&out, 256);
    print_clean(&out, BYTES("a\033[31mb\r\n\tc\x7F\xC2\x9B"
                            "1m\xE2\x80\xAEz\xFFü"));
    CHECK_TEXT(buf_bytes(&out), "a?[31mb???c??1m?z?ü");
    buf_release(&out);
}

TEST(up_listens_on_this_computer_only)
{
    static const char *const near[] = {"127.0.0.1:7363", "127.8.9.1:0", "[::1]:7363", "localhost:7363", "unix:/run/semel.sock"};
    static const char *const far[] = {
        "0.0.0.0:7363",         "[::]:7363",     "10.0.0.1:1",       "128.0.0.1:1",        ":7363",   "7363", "",
        "127.0.0.1.evil.com:1", "[::1].evil:80", "localhost.evil:1", "[::ffff:8.8.8.8]:1", "127.1:80"};
    for (size_t i = 0; i < sizeof near / sizeof *near; i++)
        CHECK(listen_is_loopback(near[i]));
    for (size_t i = 0; i < sizeof far / sizeof *far; i++)
        if (listen_is_loopback(far[i]))
            check_fail(__FILE__, __LINE__, "%s counts as loopback", far[i]);
}

static struct json parse_json(struct arena *arena, const char *text)
{
    struct json json;
    struct why why;
    if (json_parse(bytes_of(text), NULL, arena, &json, &why) != OK)
        check_fail(__FILE__, __LINE__, "%s", why.text);
    return json;
}

TEST(a_story_tells_each_decision_in_words)
{
    static const char *const rows[][2] = {
        {"{\"kind\":\"claim\",\"reason\":\"first\",\"fence\":1,\"count\":1,\"actor\":\"ci\"}",
         "claimed for the first time (fence 1, by ci)"},
        {"{\"kind\":\"replay\",\"reason\":\"\",\"fence\":1,\"count\":3}", "3 duplicates were given the result (fence 1)"},
        {"{\"kind\":\"replay\",\"fence\":1,\"count\":1}", "a duplicate was given the result (fence 1)"},
        {"{\"kind\":\"replay\",\"reason\":\"shadow\",\"fence\":2,\"count\":4}",
         "shadow mode let 4 through that would have been given the result (fence 2)"},
        {"{\"kind\":\"fail\",\"reason\":\"no_effect\",\"fence\":1,\"changes\":{\"error\":\"550\\u001b[2J\"}}",
         "failed without effect: another attempt may follow: 550?[2J (fence 1)"},
        {"{\"kind\":\"new_kind\",\"reason\":\"some_reason\",\"fence\":1}", "new_kind: some reason (fence 1)"},
        {"{}", " (fence 0)"},
    };
    struct arena arena;
    struct buf out;
    arena_init(&arena, 1 << 20);
    buf_init(&out, 4096);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct json decision = parse_json(&arena, rows[i][0]);
        buf_clear(&out);
        story_tell(&decision, &out);
        CHECK_TEXT(buf_bytes(&out), rows[i][1]);
    }
    buf_release(&out);
    arena_release(&arena);
}

TEST(a_story_ends_with_what_the_next_claim_is_told)
{
    static const struct {
        const char *intent;
        bool lapsed;
        const char *part;
    } rows[] = {
        {"{\"state\":\"pending\",\"fence\":2}", false, "goes ahead with fence 3"},
        {"{\"state\":\"sent\"}", false, "Someone holds it until 12:00:03."},
        {"{\"state\":\"claimed\"}", true, "before anything was sent, so the next claim goes ahead"},
        {"{\"state\":\"sent\",\"capability\":\"none\",\"on_unknown\":\"hold\"}", true, "told that the outcome is unknown"},
        {"{\"state\":\"sent\",\"capability\":\"none\",\"on_unknown\":\"retry\"}", true, "accepts a repetition"},
        {"{\"state\":\"sent\",\"capability\":\"query\",\"on_unknown\":\"retry\"}", true, "told that the outcome is unknown"},
        {"{\"state\":\"sent\",\"capability\":\"idempotent\",\"on_unknown\":\"hold\"}", true, "the destination knows our key"},
        {"{\"state\":\"confirmed\"}", false, "given the result"},
        {"{\"state\":\"refused\"}", false, "The next claim is refused"},
        {"{\"state\":\"unknown\",\"intent\":\"int_1\",\"fence\":4}", false, "semel confirm int_1 --fence 4"},
        {"{\"state\":\"confirmed\",\"mode\":\"shadow\"}", false, "Shadow mode lets"},
        {"{\"state\":\"melted\"}", false, "does not know"},
    };
    struct arena arena;
    struct buf out;
    arena_init(&arena, 1 << 20);
    buf_init(&out, 4096);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct json intent = parse_json(&arena, rows[i].intent);
        buf_clear(&out);
        story_next(&intent, "12:00:03", rows[i].lapsed, &out);
        buf_add_char(&out, '\0');
        if (strstr(out.at, rows[i].part) == NULL)
            check_fail(__FILE__, __LINE__, "%s: \"%s\"", rows[i].intent, out.at);
    }
    buf_release(&out);
    arena_release(&arena);
}

TEST(templates_that_would_not_recognise_duplicates_are_warned_about)
{
    static const struct {
        const char *template;
        size_t warnings;
    } rows[] = {
        {"followup:{lead_id}:{day}", 0},
        {"x:{trace_id}", 1},
        {"x:{meta.Request_Id}", 1},
        {"x:{lead_id}:{today}", 1},
        {"digest:{day}", 1},
        {"digest:{today}", 2},
        {"x:{hash}", 1},
        {"x:{hash:lead}", 0},
        {"x:{attempt}:{trace_id}", 2},
        {"x:{attempts_total}", 0},
    };
    struct arena arena;
    struct buf advice;
    arena_init(&arena, 1 << 20);
    buf_init(&advice, 4096);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct key_template *template;
        struct why why;
        size_t count = 0;
        const struct key_options options = {.zone = "UTC", .time_path = BYTES("at")};
        if (key_template_compile(bytes_of(rows[i].template), &options, &arena, &template, &why) != OK)
            check_fail(__FILE__, __LINE__, "%s: %s", rows[i].template, why.text);
        while (key_advise(template, count, &advice))
            count++;
        if (count != rows[i].warnings)
            check_fail(__FILE__, __LINE__, "%s has %zu warnings, want %zu", rows[i].template, count, rows[i].warnings);
        key_template_free(template);
    }
    buf_release(&advice);
    arena_release(&arena);
}

/* ---- input ---- */

TEST(files_are_read_whole_and_within_their_limit)
{
    struct cli cli = {0};
    struct bytes text = BYTES("untouched");
    FILE *file = fopen("f", "w");
    CHECK(file != NULL);
    CHECK(fputs("12345", file) >= 0 && fclose(file) == 0);
    arena_init(&cli.arena, 1 << 20);
    CHECK_INT(cli_read_file(&cli, "f", 4, &text), CLI_DATA);
    CHECK_INT(cli_read_file(&cli, "missing", 4, &text), CLI_DATA);
    CHECK_TEXT(text, "untouched");
    CHECK_INT(cli_read_file(&cli, "f", 5, &text), CLI_OK);
    CHECK_TEXT(text, "12345");
    arena_release(&cli.arena);
}

TEST(what_is_not_json_is_refused_before_anything_is_sent)
{
    struct cli cli = {0};
    struct json json;
    arena_init(&cli.arena, 1 << 20);
    CHECK_INT(cli_read_json(&cli, "--input", "{\"a\":1,}", &json), CLI_DATA);
    CHECK_INT(cli_read_json(&cli, "--input", "{\"a\":1,\"a\":2}", &json), CLI_DATA);
    CHECK_INT(cli_read_json(&cli, "--input", "", &json), CLI_DATA);
    CHECK_INT(cli_read_json(&cli, "--input", " {\"a\": [1, 2]} ", &json), CLI_OK);
    CHECK_TEXT(json.raw, "{\"a\": [1, 2]}");
    arena_release(&cli.arena);
}
