#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/when.h"
#include "cli/print.h"
#include "env/env.h"
#include "run/beat.h"
#include "run/child.h"
#include "run/hold.h"
#include "run/run.h"
#include "run/spool.h"

#define SENT_US (10 * WHEN_SECOND)   /* how long to try to say that the command begins */
#define BEYOND_US (30 * WHEN_SECOND) /* how long after the lease to try to deliver the result */
#define PAUSE_MIN_US (100 * WHEN_MS)
#define PAUSE_MAX_US (3 * WHEN_SECOND)

/* ---- before ---- */

static void announce(const struct way_answer *claim)
{
    if (claim->may_have_happened)
        cli_note("an earlier run of %s may have happened; it is run again, as told (attempt %lld).", claim->intent,
                 (long long)claim->fence);
    if (claim->would.len > 0)
        cli_note("shadow mode: the command is run, although the answer would have been %.*s.", BYTES_ARG(claim->would));
}

static void set_environment(const struct run *run, const struct way_answer *claim)
{
    char attempt[32];
    snprintf(attempt, sizeof attempt, "%lld", (long long)(claim->fence > 0 ? claim->fence : 1));
    setenv("SEMEL_KEY", run->claim.key.at, 1);
    setenv("SEMEL_ATTEMPT", attempt, 1);
    setenv("SEMEL_INTENT", claim->intent, 1);
    setenv("SEMEL_DOWNSTREAM_KEY", claim->downstream, 1);
}

/* From here on it may have happened; the ledger has to know first. */
static int say_sent(struct run *run, const struct way_say *claim, struct child *child)
{
    struct env *env = env_real();
    int64_t lease_us = run->claim.lease_us, until_us = env->boot_us(env) + (lease_us / 2 < SENT_US ? lease_us / 2 : SENT_US);
    struct way_say say = *claim;
    struct why why = {""};
    enum ledger_verdict verdict = VERDICT_DONE;
    int code = CLI_OK;
    say.op = OP_SENT;
    for (;;) {
        enum status status = way_say(&run->way, &say, &verdict, &code, &why);
        if (status == OK && verdict == VERDICT_DONE)
            return CLI_OK;
        if (status == OK)
            return cli_fail(CLI_LATER, "the command was not run: the claim was lost before it began. %s", why.text);
        if (status == INVALID || env->boot_us(env) > until_us || child_sleep(child, PAUSE_MIN_US))
            break;
    }
    struct why unused = {""};
    say.op = OP_FAIL;
    say.error = BYTES("it could not be begun");
    (void)!way_say(&run->way, &say, &verdict, &(int){0}, &unused);
    return cli_fail((enum cli_exit)code, "the command was not run: %s", why.text);
}

/* ---- after ---- */

static void spool(struct run *run, const struct way_say *say, const char *reason)
{
    char path[4096];
    struct why why = {""};
    if (spool_keep(&run->way, say, path, &why) == OK)
        cli_note("the result is kept in %s until the next semel run or semel status delivers it: %s", path, reason);
    else
        cli_note("WARNING: the result could be neither delivered nor kept: %s; %s. Say it yourself: semel %s %s --fence %lld%s",
                 reason, why.text, ledger_op_names[say->op], say->intent, (long long)say->fence,
                 say->op != OP_FAIL    ? ""
                 : say->effect_unknown ? " --effect unknown"
                                       : " --effect none");
}

/* What to say, and the same without the output in case it is too long for whoever is in between. */
struct report {
    struct way_say say;
    struct bytes short_result; /* BYTES_NONE when there is none */
};

static bool shorten(struct report *report)
{
    if (report->say.op != OP_CONFIRM || report->short_result.at == NULL)
        return false;
    report->say.result = report->short_result;
    report->short_result = BYTES_NONE;
    return true;
}

/* Until the ledger has it, a file has it, or someone loses patience. */
static void deliver(struct run *run, struct child *child, struct report *report)
{
    struct env *env = env_real();
    int64_t until_us = env->boot_us(env) + run->claim.lease_us + BEYOND_US, pause_us = PAUSE_MIN_US;
    struct why why = {""};
    bool told = false;
    for (;;) {
        enum ledger_verdict verdict = VERDICT_DONE;
        int code = CLI_OK;
        enum status status = way_say(&run->way, &report->say, &verdict, &code, &why);
        if (status == OK && verdict != VERDICT_DONE)
            cli_note("WARNING: the command did run, but its result was not taken: %s", why.text);
        if (status == OK)
            return;
        if (status == INVALID && code == CLI_DATA && shorten(report))
            continue;
        int64_t left_us = until_us - env->boot_us(env);
        if (status == INVALID || left_us <= 0)
            break;
        if (!told)
            cli_note("the result cannot be delivered yet, trying for another %lld s: %s", (long long)(left_us / WHEN_SECOND),
                     why.text);
        told = true;
        if (child_sleep(child, pause_us))
            break;
        pause_us = pause_us * 2 < PAUSE_MAX_US ? pause_us * 2 : PAUSE_MAX_US;
    }
    spool(run, &report->say, why.text);
}

static void report_failure(struct run *run, struct child *child, const struct way_say *claim, bool effect_unknown,
                           const char *error)
{
    struct report report = {.say = *claim};
    report.say.op = OP_FAIL;
    report.say.effect_unknown = effect_unknown;
    report.say.error = bytes_of(error);
    deliver(run, child, &report);
}

static void report_result(struct run *run, struct child *child, const struct way_say *claim, struct ending *ending,
                          const struct output *output)
{
    struct report report = {.say = *claim};
    struct buf result, shorter;
    buf_init(&result, 2 << 20);
    buf_init(&shorter, 64 << 10);
    ending_write(ending, output, &result);
    ending->bytes = output->total;
    ending_write(ending, NULL, &shorter);
    ASSERT(!result.failed);
    report.say.op = OP_CONFIRM;
    report.say.result = buf_bytes(&result);
    report.short_result = output->count > 0 ? buf_bytes(&shorter) : BYTES_NONE;
    deliver(run, child, &report);
    buf_release(&result);
    buf_release(&shorter);
}

static void report_ending(struct run *run, struct child *child, const struct way_say *claim, struct ending *ending,
                          const struct output *output)
{
    char error[64];
    if (ending->exit == 0 || run->on_error == ON_ERROR_REMEMBER) {
        report_result(run, child, claim, ending, output);
        return;
    }
    if (ending->signal.at != NULL)
        snprintf(error, sizeof error, "the command was ended by SIG%.*s", BYTES_ARG(ending->signal));
    else
        snprintf(error, sizeof error, "the command ended with exit code %d", ending->exit);
    bool unknown = run->on_error == ON_ERROR_UNKNOWN;
    report_failure(run, child, claim, unknown, error);
    if (unknown)
        cli_note("%s, and nobody can tell what it did. Look, then say so: semel confirm %s --fence %lld, or semel fail %s "
                 "--fence %lld --effect none "
                 "--all-attempts",
                 error, claim->intent, (long long)claim->fence, claim->intent, (long long)claim->fence);
}

static int report_not_started(struct run *run, struct child *child, const struct way_say *claim, int failed)
{
    char error[256];
    snprintf(error, sizeof error, "%.100s could not be started: %s", run->argv[0], strerror(failed));
    report_failure(run, child, claim, false, error);
    return cli_fail(failed == ENOENT ? 127 : 126, "%s. Nothing was done; the next run tries again.", error);
}

/* ---- in between ---- */

static int run_child(struct run *run, struct child *child, const struct way_say *claim)
{
    struct ending ending = {.command = run->claim.action, .started_us = env_real_wall_us()};
    struct output output;
    struct beat beat;
    int failed = child_start(child, run->argv, run->capture);
    if (failed != 0)
        return report_not_started(run, child, claim, failed);
    output_init(&output, run->output_max);
    beat_start(&beat, &run->way, claim, run->claim.lease_us);
    child_wait(child, &output, &ending);
    beat_stop(&beat);
    report_ending(run, child, claim, &ending, &output);
    output_release(&output);
    return ending.exit;
}

int run_execute(struct run *run, const struct way_answer *claim)
{
    struct child child;
    struct why why = {""};
    struct way_say say = {.fence = claim->fence, .direct = claim->direct};
    memcpy(say.intent, claim->intent, sizeof say.intent);
    announce(claim);
    set_environment(run, claim);
    if (child_prepare(&child, &why) != OK)
        return cli_fail(CLI_INTERNAL, "the command was not run: %s.", why.text);
    int code = say_sent(run, &say, &child);
    if (code == CLI_OK)
        code = run_child(run, &child, &say);
    if (claim->hold >= 0)
        hold_drop(run->way.data, claim->intent, claim->fence, claim->hold);
    return code;
}
