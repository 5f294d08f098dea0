#include "run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/when.h"
#include "env/env.h"

#define LINGER_US \
    (3 * WHEN_SECOND)  /* a background process may hold the pipes open for ever; what it writes later is not waited for */
#define WRITE_MAX 4096 /* PIPE_BUF: a pipe that poll() calls writable takes as much without blocking */

static const int passed_signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};

/* ---- before ---- */

/* A pipe must not become descriptor 1 or 2 because ours were closed. */
static void open_standard(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0) {
            int opened = open("/dev/null", O_RDWR);
            ASSERT(opened == fd);
        }
}

static bool is_ignored(int signal_number)
{
    struct sigaction action;
    return sigaction(signal_number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

enum status child_prepare(struct child *child, struct why *why)
{
    *child = (struct child){.pid = -1, .signal_fd = -1, .from = {-1, -1}, .default_pipe = !is_ignored(SIGPIPE)};
    open_standard();
    sigemptyset(&child->passed);
    for (size_t i = 0; i < sizeof passed_signals / sizeof *passed_signals; i++)
        if (!is_ignored(passed_signals[i])) /* nohup: ignored for us and for the child */
            sigaddset(&child->passed, passed_signals[i]);
    sigset_t blocked = child->passed;
    sigaddset(&blocked, SIGCHLD);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &blocked, &child->mask);
    child->signal_fd = signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK);
    return child->signal_fd >= 0 ? OK : why_set(why, FULL, "no descriptor for signals: %s", strerror(errno));
}

/* ---- starting ---- */

static bool has_terminal(void)
{
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void set_attributes(const struct child *child, posix_spawnattr_t *attributes)
{
    sigset_t defaults;
    sigemptyset(&defaults);
    if (child->default_pipe)
        sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_setsigdefault(attributes, &defaults);
    posix_spawnattr_setsigmask(attributes, &child->mask);
    posix_spawnattr_setpgroup(attributes, 0);
    posix_spawnattr_setflags(
        attributes, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (child->own_group ? POSIX_SPAWN_SETPGROUP : 0)));
}

static int spawn(struct child *child, char *const *argv, const int *to)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
    set_attributes(child, &attributes);
    for (int i = 0; i < 2; i++)
        if (to[i] >= 0)
            posix_spawn_file_actions_adddup2(&actions, to[i], i + 1);
    int failed = posix_spawnp(&child->pid, argv[0], &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return failed;
}

static void close_all(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
}

int child_start(struct child *child, char *const *argv, bool capture)
{
    int to[2] = {-1, -1}, failed = 0;
    child->own_group = !has_terminal();
    for (int i = 0; capture && i < 2; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) {
            failed = errno;
            break;
        }
        child->from[i] = ends[0];
        to[i] = ends[1];
    }
    if (failed == 0)
        failed = spawn(child, argv, to);
    close_all(to, 2);
    if (failed != 0)
        close_all(child->from, 2);
    return failed;
}

/* ---- signals ---- */

static bool take_signal(struct child *child, struct signalfd_siginfo *ret)
{
    return read(child->signal_fd, ret, sizeof *ret) == (ssize_t)sizeof *ret;
}

static void pass_signals(struct child *child, bool ended)
{
    struct signalfd_siginfo got;
    while (take_signal(child, &got)) {
        bool by_terminal = got.ssi_code == SI_KERNEL && !child->own_group; /* the child had it too */
        if (got.ssi_signo == SIGCHLD || by_terminal || ended)
            continue;
        kill(child->own_group ? -child->pid : child->pid, (int)got.ssi_signo);
    }
}

bool child_sleep(struct child *child, int64_t sleep_us)
{
    struct env *env = env_real();
    int64_t until_us = env->boot_us(env) + sleep_us;
    for (int64_t left_us; (left_us = until_us - env->boot_us(env)) > 0;) {
        struct pollfd fd = {child->signal_fd, POLLIN, 0};
        struct signalfd_siginfo got;
        if (poll(&fd, 1, (int)(left_us / WHEN_MS + 1)) <= 0)
            continue;
        while (take_signal(child, &got))
            if (got.ssi_signo == SIGTERM || got.ssi_signo == SIGINT || got.ssi_signo == SIGHUP || got.ssi_signo == SIGQUIT)
                return true;
    }
    return false;
}

/* ---- passing on what it writes ---- */

struct stream {
    int *from; /* the child's end; -1 when it is closed */
    int to;    /* 1 or 2 */
    char bytes[1 << 16];
    size_t at, len; /* what is still to be written */
};

static void stream_close(struct stream *stream)
{
    if (*stream->from >= 0)
        close(*stream->from);
    *stream->from = -1;
}

static void stream_read(struct stream *stream, struct output *output)
{
    ssize_t got = read(*stream->from, stream->bytes, sizeof stream->bytes);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) {
        stream_close(stream);
        return;
    }
    stream->at = 0;
    stream->len = (size_t)got;
    if (output != NULL)
        output_add(output, stream->to, (struct bytes){stream->bytes, stream->len});
}

/* When nobody reads our output any more, the child is told in the way it expects: its pipe is closed too. */
static void stream_write(struct stream *stream)
{
    size_t left = stream->len - stream->at;
    ssize_t put = write(stream->to, stream->bytes + stream->at, left < WRITE_MAX ? left : WRITE_MAX);
    if (put >= 0) {
        stream->at += (size_t)put;
        return;
    }
    if (errno == EINTR || errno == EAGAIN)
        return;
    stream->at = stream->len;
    stream_close(stream);
}

static bool stream_has_bytes(const struct stream *stream)
{
    return stream->at < stream->len;
}

static void stream_move(struct stream *stream, struct output *output)
{
    if (stream_has_bytes(stream))
        stream_write(stream);
    else
        stream_read(stream, output);
}

/* Waits for the next thing and does it. False when the time is over. */
static bool pump(struct child *child, struct stream *streams, struct output *output, bool ended, int64_t timeout_us)
{
    struct pollfd fds[3] = {{child->signal_fd, POLLIN, 0}};
    for (int i = 0; i < 2; i++) {
        bool write = stream_has_bytes(&streams[i]);
        fds[i + 1] = (struct pollfd){write ? streams[i].to : *streams[i].from, write ? POLLOUT : POLLIN, 0};
    }
    int found = poll(fds, 3, timeout_us < 0 ? -1 : (int)(timeout_us / WHEN_MS + 1));
    if (found == 0)
        return false;
    for (int i = 0; found > 0 && i < 2; i++)
        if (fds[i + 1].fd >= 0 && fds[i + 1].revents != 0)
            stream_move(&streams[i], output);
    if (found > 0 && fds[0].revents != 0)
        pass_signals(child, ended);
    return true;
}

static bool is_done(const struct stream *streams)
{
    for (int i = 0; i < 2; i++)
        if (*streams[i].from >= 0 || stream_has_bytes(&streams[i]))
            return false;
    return true;
}

static void drain(struct child *child, struct stream *streams, struct output *output)
{
    struct env *env = env_real();
    int64_t until_us = env->boot_us(env) + LINGER_US;
    while (!is_done(streams)) {
        bool writing = stream_has_bytes(&streams[0]) || stream_has_bytes(&streams[1]);
        int64_t left_us = until_us - env->boot_us(env);
        if (left_us <= 0 && !writing)
            break;
        pump(child, streams, output, true, writing ? -1 : left_us);
    }
    stream_close(&streams[0]);
    stream_close(&streams[1]);
}

static void fill_ending(int status, struct ending *ret)
{
    ret->exit = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    ret->signal = WIFSIGNALED(status) ? bytes_of(sigabbrev_np(WTERMSIG(status))) : BYTES_NONE;
    ret->ended_us = env_real_wall_us();
}

void child_wait(struct child *child, struct output *output, struct ending *ret_ending)
{
    static struct stream streams[2];
    for (int i = 0; i < 2; i++)
        streams[i] = (struct stream){.from = &child->from[i], .to = i + 1};
    int status = 0;
    pid_t got;
    while ((got = waitpid(child->pid, &status, WNOHANG)) == 0 || (got < 0 && errno == EINTR))
        pump(child, streams, output, false, -1);
    ASSERT(got == child->pid);
    fill_ending(status, ret_ending);
    drain(child, streams, output);
}
