#include "run/run.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/when.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "env/env.h"
#include "fingerprint/key_parts.h"
#include "run/output.h"
#include "run/spool.h"

enum { ACTION_MAX = 128 };

static const char *const on_running_names[] = {"wait", "skip", "fail", NULL};
static const char *const on_error_names[] = {"retry", "remember", "unknown", NULL};
static const char *const on_crash_names[] = {[ON_UNKNOWN_HOLD] = "unknown", [ON_UNKNOWN_RETRY] = "retry", NULL};
static const char *const if_unreachable_names[] = {"fail", "run", NULL};

const struct cli_option run_options[] = {
    {"--key", "KEY", CLI_TEXT, "What makes this run different from all others; may have time parts such as {day}.", NULL, NULL,
     NULL, true},
    {"--workflow", "NAME", CLI_TEXT, "The workflow whose rules hold.", "run", NULL, NULL, false},
    {"--on-running", "WHAT", CLI_CHOICE, "When it is running elsewhere.", "wait", NULL, on_running_names, false},
    {"--wait", "DURATION", CLI_DURATION, "How long to wait for another run to end.", "10m", NULL, NULL, false},
    {"--on-crash", "WHAT", CLI_CHOICE,
     "When a run stopped in the middle; without it the workflow's policy decides, which is unknown by default.", NULL, NULL,
     on_crash_names, false},
    {"--on-error", "WHAT", CLI_CHOICE, "When the command exits with another code than 0.", "retry", NULL, on_error_names, false},
    {"--keep", "DURATION", CLI_DURATION, "How long the result is kept.", NULL, NULL, NULL, false},
    {"--lease", "DURATION", CLI_DURATION, "How soon a run that stopped is noticed.", "60s", NULL, NULL, false},
    {"--zone", "ZONE", CLI_TEXT, "The time zone of the key's days and weeks.", "UTC", NULL, NULL, false},
    {"--output-max", "SIZE", CLI_TEXT, "How much of the output is kept, at most 700K.", "512K", NULL, NULL, false},
    {"--no-capture", NULL, CLI_SWITCH, "Let the command write to the terminal itself; only its exit code is kept.", NULL, NULL,
     NULL, false},
    {"--no-replay-output", NULL, CLI_SWITCH, "When it was done before, do not print its output again.", NULL, NULL, NULL, false},
    {"--if-unreachable", "WHAT", CLI_CHOICE, "When neither a daemon nor the data can be reached.", "fail", NULL,
     if_unreachable_names, false},
    {"--data", "DIR", CLI_DIR, "Work on this data when no daemon answers. Without --url, ./semel-data is used if it is there.",
     NULL, "SEMEL_DATA", NULL, false},
    {0},
};

/* ---- the key ---- */

/* Only the clock is known here: a field has no input to come from. */
static int check_parts(const struct key_template *template)
{
    for (size_t i = 0; i < template->part_count; i++) {
        const struct key_part *part = &template->parts[i];
        if (part->kind == PART_FIELD || part->kind == PART_HASH)
            return cli_fail(CLI_USAGE,
                            "--key: %.*s has no input to come from. Use {day}, {week}, {month}, {hour} or {window:15m}, or write "
                            "{{ for a brace.",
                            BYTES_ARG(part->source));
    }
    return CLI_OK;
}

static int fill_key(struct cli *cli, const struct key_template *template, int64_t now_us, struct bytes *ret_key)
{
    char now[32];
    struct why why;
    struct json input;
    struct bytes field;
    when_format(now_us, now);
    struct bytes text = arena_printf(&cli->arena, "{\"now\":\"%s\"}", now);
    if (text.at == NULL || json_parse(text, NULL, &cli->arena, &input, &why) != OK)
        return cli_fail(CLI_INTERNAL, "there is not enough memory.");
    if (key_template_fill(template, &input, now_us, &cli->arena, ret_key, &field, &why) != OK)
        return cli_fail(CLI_USAGE, "--key: %s", why.text);
    return CLI_OK;
}

int run_key(struct cli *cli, const char *text, const char *zone, int64_t now_us, struct bytes *ret_key)
{
    struct why why;
    struct key_template *template;
    *ret_key = bytes_of(text);
    if (strpbrk(text, "{}") == NULL)
        return key_check(*ret_key, &why) == OK ? CLI_OK : cli_fail(CLI_USAGE, "--key: %s", why.text);
    if (!zone_exists(zone))
        return cli_fail(CLI_USAGE, "there is no time zone \"%.64s\". Write it like Europe/Paris.", zone);
    const struct key_options options = {.zone = zone, .time_path = BYTES("now")};
    if (key_template_compile(*ret_key, &options, &cli->arena, &template, &why) != OK)
        return cli_fail(CLI_USAGE, "--key: %s", why.text);
    int code = check_parts(template);
    if (code == CLI_OK)
        code = fill_key(cli, template, now_us, ret_key);
    key_template_free(template);
    return code;
}

/* ---- options ---- */

static int check_duration(const struct cli *cli, const char *name, int64_t min_us, int64_t max_us, const char *range)
{
    if (!cli_on(cli, name))
        return CLI_OK;
    int64_t us = cli_duration_us(cli, name, 0);
    return us >= min_us && us <= max_us ? CLI_OK : cli_fail(CLI_USAGE, "%s is from %s.", name, range);
}

static int check_workflow(struct bytes name)
{
    struct buf clean;
    buf_init(&clean, 4096);
    print_clean(&clean, name);
    bool right = name.len > 0 && name.len <= 128 && bytes_eq(buf_bytes(&clean), name);
    buf_release(&clean);
    return right ? CLI_OK : cli_fail(CLI_USAGE, "--workflow is a name of 1 to 128 bytes without control characters.");
}

static int check_options(const struct cli *cli, size_t *ret_output_max)
{
    uint64_t output_max = 0;
    int code = check_duration(cli, "--lease", 100 * WHEN_MS, WHEN_DAY, "100ms to 24h");
    if (code == CLI_OK)
        code = check_duration(cli, "--keep", WHEN_SECOND, 400 * WHEN_DAY, "1s to 400d");
    if (code == CLI_OK)
        code = check_workflow(bytes_of(cli_text(cli, "--workflow")));
    if (code != CLI_OK)
        return code;
    if (!size_parse(bytes_of(cli_text(cli, "--output-max")), &output_max) || output_max > OUTPUT_KEPT_MAX)
        return cli_fail(CLI_USAGE, "--output-max is a size up to 700K, such as 64K or 100000.");
    bool both = cli_choice(cli, "--on-error") == ON_ERROR_UNKNOWN && cli_on(cli, "--on-crash") &&
                cli_choice(cli, "--on-crash") == ON_UNKNOWN_RETRY;
    if (both)
        return cli_fail(CLI_USAGE, "--on-error unknown leaves it to a person, --on-crash retry does not. Choose one of them.");
    *ret_output_max = (size_t)output_max;
    return CLI_OK;
}

/* What the claim says about itself to people: the command's first word. */
static struct bytes action_of(struct cli *cli, const char *command)
{
    struct buf clean;
    size_t len = strlen(command) < ACTION_MAX ? strlen(command) : ACTION_MAX;
    while (len > 0 && ((unsigned char)command[len] & 0xC0) == 0x80)
        len--;
    buf_init(&clean, ACTION_MAX);
    print_clean(&clean, (struct bytes){command, len});
    struct bytes text = clean.len == 0 ? BYTES_NONE : arena_dup(&cli->arena, buf_bytes(&clean));
    buf_release(&clean);
    return text;
}

static int read_options(struct cli *cli, struct run *ret)
{
    size_t output_max = 0;
    struct bytes key;
    int code = check_options(cli, &output_max);
    if (code == CLI_OK)
        code = run_key(cli, cli_text(cli, "--key"), cli_text(cli, "--zone"), env_real_wall_us(), &key);
    if (code != CLI_OK)
        return code;
    *ret = (struct run){
        .cli = cli,
        .claim = {.workflow = bytes_of(cli_text(cli, "--workflow")),
                  .key = key,
                  .action = action_of(cli, cli->rest[0]),
                  .keep = bytes_of(cli_text(cli, "--keep")),
                  .keep_us = cli_duration_us(cli, "--keep", 0),
                  .lease_us = cli_duration_us(cli, "--lease", 60 * WHEN_SECOND),
                  .on_unknown = cli_on(cli, "--on-crash") ? cli_choice(cli, "--on-crash") : -1},
        .on_running = (enum on_running)cli_choice(cli, "--on-running"),
        .on_error = (enum on_error)cli_choice(cli, "--on-error"),
        .wait_us = cli_duration_us(cli, "--wait", 0),
        .output_max = output_max,
        .capture = !cli_on(cli, "--no-capture"),
        .replay_output = !cli_on(cli, "--no-replay-output"),
        .run_if_unreachable = cli_choice(cli, "--if-unreachable") == 1,
        .argv = cli->rest,
    };
    if (ret->on_error == ON_ERROR_UNKNOWN)
        ret->claim.on_unknown = ON_UNKNOWN_HOLD;
    return CLI_OK;
}

/* ---- claiming ---- */

static int not_run(struct run *run, const struct way_answer *answer)
{
    switch (run->on_running) {
    case ON_RUNNING_SKIP:
        cli_note("it is running elsewhere (%s), skipped.", answer->intent);
        return CLI_OK;
    case ON_RUNNING_FAIL:
        return cli_fail(CLI_LATER, "it is running elsewhere (%s). The command was not run.", answer->intent);
    case ON_RUNNING_WAIT:
        break;
    }
    return cli_fail(CLI_LATER, "it is still running elsewhere (%s) after %s. The command was not run.", answer->intent,
                    cli_text(run->cli, "--wait"));
}

/* Until there is an answer that stays. False when the run ends here, with `ret_code`. */
static bool claim(struct run *run, struct way_answer *ret_answer, int *ret_code)
{
    struct env *env = env_real();
    int64_t until_us = env->boot_us(env) + run->wait_us;
    bool waiting = false;
    for (;;) {
        struct why why = {""};
        int64_t left_us = run->on_running == ON_RUNNING_WAIT ? until_us - env->boot_us(env) : 0;
        enum status status = way_claim(&run->way, &run->claim, left_us > 0 && waiting ? left_us : 0, ret_answer, ret_code, &why);
        if (status == OK && ret_answer->verdict != VERDICT_IN_PROGRESS)
            return true;
        /* Once it was seen to be running, a daemon that restarts is waited for as well. */
        bool ends = left_us <= 0 || (status != OK && !waiting) || status == INVALID;
        if (ends && status == OK)
            *ret_code = not_run(run, ret_answer);
        else if (ends && !(run->run_if_unreachable && *ret_code == CLI_UNREACHABLE))
            cli_note("the command was not run: %s", why.text);
        if (ends)
            return false;
        if (!waiting)
            cli_note("it is running elsewhere (%s), waiting for it up to %s.", ret_answer->intent, cli_text(run->cli, "--wait"));
        waiting = true;
        way_wait(&run->way, ret_answer, left_us);
    }
}

/* ---- what the answer means ---- */

static int tell_unknown(const struct run *run, const struct way_answer *answer)
{
    long long fence = (long long)answer->fence;
    return cli_fail(CLI_UNKNOWN,
                    "nobody can tell whether %.*s happened: a run of it stopped in the middle. The command was not run. Look "
                    "what it did, then say so: semel "
                    "confirm %s --fence %lld when it is done, or semel fail %s --fence %lld --effect none --all-attempts when it "
                    "may run again.%s",
                    BYTES_ARG(run->claim.key), answer->intent, fence, answer->intent, fence,
                    answer->direct ? " (Both need a daemon: semel up)" : "");
}

static int tell_settled(const struct run *run, const struct way_answer *answer)
{
    char at[32] = "?";
    if (answer->settled_us != 0)
        print_when(answer->settled_us, env_real_wall_us(), at);
    if (answer->verdict == VERDICT_EXPIRED)
        return cli_fail(CLI_DATA,
                        "it was settled at %s, and its result is not kept any more. The command was not run. If it is meant "
                        "anew, give it a new key.",
                        at);
    if (answer->verdict == VERDICT_REFUSED)
        return cli_fail(CLI_DATA,
                        "it was refused for good: %.*s. The command was not run. If it is meant anew, give it a new key.",
                        BYTES_ARG(answer->error));
    return cli_fail(
        CLI_DATA,
        "the key %.*s was claimed for something else, with an input. The command was not run. Use another key or workflow.",
        BYTES_ARG(run->claim.key));
}

static int act_on(struct run *run, const struct way_answer *answer)
{
    switch (answer->verdict) {
    case VERDICT_PROCEED:
        return run_execute(run, answer);
    case VERDICT_REPLAY:
        return run_replay(run, answer);
    case VERDICT_OUTCOME_UNKNOWN:
        return tell_unknown(run, answer);
    case VERDICT_KEY_REUSED:
    case VERDICT_REFUSED:
    case VERDICT_EXPIRED:
        return tell_settled(run, answer);
    case VERDICT_IN_PROGRESS:
    case VERDICT_DONE:
    case VERDICT_FENCED:
    case VERDICT_DIFFERS:
    case VERDICT_ALREADY_SENT:
    case VERDICT_NOT_FOUND:
        break;
    }
    return cli_fail(CLI_INTERNAL, "the answer to the claim makes no sense. The command was not run.");
}

/* Told to run whatever happens: then as if semel were not there. */
static int run_alone(const struct run *run)
{
    cli_note("nothing answers: running the command without semel. Nothing remembers that it ran.");
    setenv("SEMEL_KEY", run->claim.key.at, 1);
    execvp(run->argv[0], run->argv);
    return cli_fail(errno == ENOENT ? 127 : 126, "%s could not be started: %s.", run->argv[0], strerror(errno));
}

int run_run(struct cli *cli)
{
    struct run run;
    struct way_answer answer = {0};
    int code = read_options(cli, &run);
    if (code != CLI_OK)
        return code;
    way_init(&run.way, cli);
    spool_deliver(&run.way);
    if (claim(&run, &answer, &code))
        return act_on(&run, &answer);
    return code == CLI_UNREACHABLE && run.run_if_unreachable ? run_alone(&run) : code;
}
