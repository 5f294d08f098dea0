/*
 * run: `semel run --key K -- cmd`: does a command once. It claims the key, runs the command, and keeps its output and exit code
 * as the claim's result; a duplicate is given them and runs nothing.
 *
 *     claim (two phases) ─► sent ─► the command, with heartbeats ─► exit 0: confirm            ─► replayed to duplicates
 *                                                                   exit n: as --on-error says
 *                                                                   killed: the lease runs out ─► as --on-crash says
 *
 * `sent` is durable before the command starts. A result that cannot be delivered is spooled (spool.h), never dropped.
 */
#ifndef SEMEL_RUN_RUN_H
#define SEMEL_RUN_RUN_H

#include "run/way.h"

enum on_running { ON_RUNNING_WAIT, ON_RUNNING_SKIP, ON_RUNNING_FAIL };
enum on_error { ON_ERROR_RETRY, ON_ERROR_REMEMBER, ON_ERROR_UNKNOWN };

struct run {
    struct cli *cli;
    struct way way;
    struct way_claim claim;
    enum on_running on_running;
    enum on_error on_error;
    int64_t wait_us;
    size_t output_max;
    bool capture, replay_output, run_if_unreachable;
    char *const *argv;
};

/* The key that --key means at `now_us`: as it is, or with its time parts filled in when it has braces. Prints and returns the
 * exit code. */
int run_key(struct cli *cli, const char *text, const char *zone, int64_t now_us, struct bytes *ret_key);

/* The claim is ours: runs the command and says what became of it. Returns the exit code. */
int run_execute(struct run *run, const struct way_answer *claim);

/* It was done before: prints what it printed. Returns its exit code. */
int run_replay(struct run *run, const struct way_answer *done);

#endif
