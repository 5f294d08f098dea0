/*
 * transport_command: runs a program as a destination. The request's body is its standard input, those of its headers that begin
 * with SEMEL_ are added to its environment (whoever may ask for an effect shall not choose the program's PATH), what it writes
 * (both streams) is the answer's body, its exit code the status. It runs in a process group of its own, which is killed at the
 * time-out.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "act/transport_own.h"

/* ---- starting ---- */

static char **make_environment(const struct effect_request *request, struct arena *arena)
{
    size_t count = 0;
    while (environ[count] != NULL)
        count++;
    char **list = arena_zalloc(arena, count + request->header_count + 1, sizeof *list);
    if (list == NULL)
        return NULL;
    size_t n = 0;
    for (size_t i = 0; i < request->header_count; i++) {
        const struct pair *header = &request->headers[i];
        if (!bytes_starts(header->name, BYTES("SEMEL_")))
            continue;
        struct bytes text = arena_printf(arena, "%.*s=%.*s", BYTES_ARG(header->name), BYTES_ARG(header->value));
        if (text.at == NULL)
            return NULL;
        list[n++] = (char *)text.at;
    }
    memcpy(list + n, environ, count * sizeof *list);
    return list;
}

static char **make_arguments(const struct destination *destination, struct arena *arena)
{
    char **list = arena_zalloc(arena, destination->argv_count + 1, sizeof *list);
    for (size_t i = 0; list != NULL && i < destination->argv_count; i++)
        list[i] = (char *)destination->argv[i].at;
    return list;
}

/* The input in a file that only we have, so that nobody waits for a pipe to be read. */
static int open_input(struct bytes body)
{
    int fd = memfd_create("semel-input", MFD_CLOEXEC);
    for (size_t at = 0; fd >= 0 && at < body.len;) {
        ssize_t n = write(fd, body.at + at, body.len - at);
        if (n <= 0) {
            close(fd);
            return -1;
        }
        at += (size_t)n;
    }
    if (fd >= 0)
        (void)lseek(fd, 0, SEEK_SET);
    return fd;
}

static int spawn(struct flight *flight, int input, int output, char **arguments, char **environment)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    posix_spawn_file_actions_adddup2(&actions, output, 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    int error = posix_spawnp(&flight->pid, arguments[0], &actions, &attributes, arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

static enum status start(struct flight *flight, struct why *why)
{
    struct transport_call *call = flight->call;
    char **arguments = make_arguments(call->destination, call->arena),
         **environment = make_environment(call->request, call->arena);
    int pipes[2] = {-1, -1}, input = open_input(call->request->body);
    if (arguments == NULL || environment == NULL || input < 0 || pipe2(pipes, O_CLOEXEC) != 0) {
        if (input >= 0)
            close(input);
        return why_set(why, FULL, "no memory or no file handles for a command");
    }
    fcntl(pipes[0], F_SETFL, O_NONBLOCK);
    int error = spawn(flight, input, pipes[1], arguments, environment);
    close(input);
    close(pipes[1]);
    if (error != 0) {
        flight->pid = 0;
        close(pipes[0]);
        return why_set(why, INVALID, "%s cannot be run: %s", arguments[0], strerror(error));
    }
    flight->output = pipes[0];
    flight->pidfd = (int)syscall(SYS_pidfd_open, flight->pid, 0);
    flight->deadline_us = flight->transport->env->boot_us(flight->transport->env) + call->timeout_us;
    return OK;
}

void command_start(struct flight *flight)
{
    if (start(flight, &flight->call->why) == OK)
        flight->transport->command_count++;
    else
        flight_end(flight, TRANSPORT_NOT_SENT);
}

/* ---- ending ---- */

void command_kill(struct flight *flight)
{
    kill(-flight->pid, SIGKILL);
    while (waitpid(flight->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    close(flight->output);
    if (flight->pidfd >= 0)
        close(flight->pidfd);
    flight->transport->command_count--;
}

static void read_output(struct flight *flight)
{
    char piece[16384];
    ssize_t n;
    while ((n = read(flight->output, piece, sizeof piece)) > 0) {
        buf_add(&flight->call->body, (struct bytes){piece, (size_t)n});
        if (flight->call->body.failed && !flight->too_large) { /* the rest is read, so that the program can go on, and dropped */
            flight->too_large = true;
            flight->call->body.failed = false;
        }
    }
}

static bool has_exited(struct flight *flight)
{
    int status;
    if (waitpid(flight->pid, &status, WNOHANG) != flight->pid)
        return false;
    flight->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
}

static void finish(struct flight *flight)
{
    read_output(flight);
    close(flight->output);
    if (flight->pidfd >= 0)
        close(flight->pidfd);
    flight->transport->command_count--;
    flight_end(flight, flight->too_large ? TRANSPORT_CUT : TRANSPORT_ANSWERED);
}

void command_check(struct real_transport *transport)
{
    if (transport->command_count == 0)
        return;
    int64_t now_us = transport->env->boot_us(transport->env);
    for (struct flight *flight = transport->flights, *next; flight != NULL; flight = next) {
        next = flight->next;
        if (flight->pid == 0)
            continue;
        read_output(flight);
        if (has_exited(flight)) {
            finish(flight);
        } else if (now_us >= flight->deadline_us) {
            command_kill(flight);
            (void)why_set(&flight->call->why, RETRY, "the command did not end in time and was killed");
            flight_end(flight, TRANSPORT_LOST);
        }
    }
}

size_t command_fds(const struct real_transport *transport, struct curl_waitfd *ret_fds, size_t most, int64_t *ret_deadline_us)
{
    size_t count = 0;
    if (transport->command_count == 0)
        return 0;
    for (const struct flight *flight = transport->flights; flight != NULL; flight = flight->next) {
        if (flight->pid == 0)
            continue;
        if (flight->deadline_us < *ret_deadline_us)
            *ret_deadline_us = flight->deadline_us;
        if (count + 2 > most)
            continue;
        ret_fds[count++] = (struct curl_waitfd){.fd = flight->output, .events = CURL_WAIT_POLLIN};
        if (flight->pidfd >= 0)
            ret_fds[count++] = (struct curl_waitfd){.fd = flight->pidfd, .events = CURL_WAIT_POLLIN};
    }
    return count;
}
