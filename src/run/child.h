/*
 * child: runs a command, passes on what it writes while it writes it, and what signals this process is sent.
 *
 * Without a controlling terminal (cron, systemd) the command has a process group of its own, and signals go to all of it. With
 * one it shares ours, so that Ctrl-C, Ctrl-Z and reading from the terminal work as ever: the terminal signals both, and only what
 * a process sent to us is passed on. From child_prepare() on, signals are blocked and read from a descriptor; the main thread
 * alone uses this.
 */
#ifndef SEMEL_RUN_CHILD_H
#define SEMEL_RUN_CHILD_H

#include <signal.h>
#include <sys/types.h>

#include "run/output.h"

struct child {
    pid_t pid;
    int signal_fd;
    sigset_t passed;   /* the signals that are passed on */
    sigset_t mask;     /* as it was before */
    bool default_pipe; /* SIGPIPE was not ignored before */
    bool own_group;
    int from[2]; /* the pipes of stdout and stderr; -1 for none */
};

/* Blocks the signals. OK, or FULL. */
CHECKED enum status child_prepare(struct child *child, struct why *why);

/* Starts it. Returns 0, or errno when it could not be started. With `capture` its stdout and stderr are pipes. */
int child_start(struct child *child, char *const *argv, bool capture);

/* Until it has ended. What it writes goes through, and into `output` when that is not NULL. Fills in how it ended. */
void child_wait(struct child *child, struct output *output, struct ending *ret_ending);

/* Sleeps for that long; true at once when a signal asks this process to stop. After the child has ended. */
bool child_sleep(struct child *child, int64_t sleep_us);

#endif
