/*
 * process: the process of an MCP server that speaks on its stdin and stdout: how it is started, how often it is replaced, how it is told to end.
 * Nothing here waits, but process_reap().
 */
#ifndef SEMEL_BRIDGE_PROCESS_H
#define SEMEL_BRIDGE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"

#define PROCESS_START_PATIENCE_US ((int64_t)30000000) /* for the handshake of a new process */
#define PROCESS_END_PATIENCE_US ((int64_t)3000000)    /* after its stdin was closed, and again after SIGTERM */

struct process_order {
    char *const *argv;
    char *const *environment;
    const char *directory; /* NULL: ours */
    bool own_group;        /* its children can be signalled with it */
};

struct process {
    pid_t pid;
    int in, out; /* its stdin and stdout; -1 for none */
};

/* INVALID when it cannot be run; `ret_code` (may be NULL) is then the exit code that a shell would give. FULL without descriptors. */
CHECKED enum status process_start(const struct process_order *order, struct process *ret_process, int *ret_code, struct why *why);

void process_close_input(struct process *process);

/* Both ends. */
void process_close(struct process *process);

/* Waits for its end; the exit code as a shell gives it. */
int process_reap(pid_t pid);

/* How often a process was replaced lately. */
struct restarts {
    int count;
    int64_t since_us;
};

/* Counts one more, and says whether it is still few enough: five in a minute. */
bool restarts_allow(struct restarts *restarts, int64_t now_us);

#endif
