#include "bridge/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/when.h"

#define RESTARTS_MAX 5 /* within RESTARTS_US */
#define RESTARTS_US (60 * WHEN_SECOND)

static int spawn(const struct process_order *order, int in, int out, pid_t *ret_pid)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    sigset_t none, defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (order->own_group ? POSIX_SPAWN_SETPGROUP : 0)));
    posix_spawn_file_actions_adddup2(&actions, in, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    if (order->directory != NULL)
        posix_spawn_file_actions_addchdir_np(&actions, order->directory);
    int failed = posix_spawnp(ret_pid, order->argv[0], &actions, &attributes, order->argv, order->environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return failed;
}

static void close_pair(const int pair[2])
{
    close(pair[0]);
    close(pair[1]);
}

enum status process_start(const struct process_order *order, struct process *ret_process, int *ret_code, struct why *why)
{
    struct process process;
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0)
        return why_set(why, FULL, "no pipe could be made: %s", strerror(errno));
    if (pipe2(from, O_CLOEXEC) != 0) {
        close_pair(to);
        return why_set(why, FULL, "no pipe could be made: %s", strerror(errno));
    }
    int failed = spawn(order, to[0], from[1], &process.pid);
    close(to[0]);
    close(from[1]);
    if (failed != 0) {
        close(to[1]);
        close(from[0]);
        if (ret_code != NULL)
            *ret_code = failed == ENOENT ? 127 : 126;
        return why_set(why, INVALID, "%s could not be started: %s", order->argv[0], strerror(failed));
    }
    process.in = to[1];
    process.out = from[0];
    *ret_process = process;
    return OK;
}

void process_close_input(struct process *process)
{
    if (process->in >= 0)
        close(process->in);
    process->in = -1;
}

void process_close(struct process *process)
{
    process_close_input(process);
    if (process->out >= 0)
        close(process->out);
    process->out = -1;
}

int process_reap(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool restarts_allow(struct restarts *restarts, int64_t now_us)
{
    if (now_us - restarts->since_us > RESTARTS_US)
        *restarts = (struct restarts){.since_us = now_us};
    return ++restarts->count <= RESTARTS_MAX;
}
