#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/when.h"
#include "cli/print.h"
#include "env/env.h"
#include "run/output.h"
#include "run/run.h"

static bool write_all(int fd, struct bytes bytes)
{
    while (bytes.len > 0) {
        ssize_t put = write(fd, bytes.at, bytes.len);
        if (put < 0 && errno != EINTR)
            return false;
        if (put > 0)
            bytes = bytes_from(bytes, (size_t)put);
    }
    return true;
}

static int write_output(struct run *run, const struct ending *ending)
{
    for (uint32_t i = 0; i < ending->output->count; i++) {
        int fd;
        struct bytes bytes;
        if (!ending_piece(&ending->output->items[i], &run->cli->arena, &fd, &bytes))
            return cli_fail(CLI_INTERNAL, "the stored output is damaged.");
        if (!write_all(fd, bytes))
            return cli_fail(CLI_INTERNAL, "the output could not be written: %s.", strerror(errno));
    }
    return CLI_OK;
}

/* "at 09:00:03 (12 s ago)" */
static void describe_time(int64_t at_us, char ret[96])
{
    int64_t now_us = env_real_wall_us();
    char at[32] = "?", ago[32] = "?";
    if (at_us != 0) {
        print_when(at_us, now_us, at);
        when_format_rough(now_us > at_us ? now_us - at_us : 0, ago);
    }
    snprintf(ret, 96, "at %s (%s ago)", at, ago);
}

/* It was not confirmed by a run: a person settled it, or another program. */
static int replay_foreign(const struct way_answer *done, const char *when)
{
    if (done->result.type == JSON_NULL) {
        cli_note("already done %s.", when);
        return CLI_OK;
    }
    cli_note("already done %s, and not by semel run; this is its result.", when);
    print_json(&done->result);
    return CLI_OK;
}

int run_replay(struct run *run, const struct way_answer *done)
{
    struct ending ending;
    char when[96];
    describe_time(done->settled_us, when);
    if (!ending_read(&done->result, &ending))
        return replay_foreign(done, when);
    bool output = run->replay_output && ending.output->count > 0;
    cli_note("already done %s%s, exit %d", when, output ? ", replaying its output" : "", ending.exit);
    if (ending.command.at != NULL && !bytes_eq(ending.command, run->claim.action))
        cli_note("WARNING: that was another command under the same key: %.*s", BYTES_ARG(ending.command));
    int code = output ? write_output(run, &ending) : CLI_OK;
    if (code == CLI_OK && ending.truncated && run->replay_output)
        cli_note("the output was longer than was kept: it had %llu bytes.", (unsigned long long)ending.bytes);
    return code == CLI_OK ? ending.exit : code;
}
