#include "bridge/bridge.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/when.h"
#include "bridge/bridge_own.h"

#define LOOK_EVERY_US (200 * WHEN_MS)
#define COMMAND_MAX ((size_t)1 << 20)
#define CLOSE_LOOK_US 10000

int64_t bridge_now_us(const struct bridge *bridge)
{
    return bridge->env->boot_us(bridge->env);
}

/* ---- commands ---- */

static struct hash hash_of(const struct mcp_command *rules)
{
    struct bytes parts[2 * SETTING_LIST_MAX + 2 * SETTING_PAIRS_MAX + 2];
    size_t n = 0;
    for (size_t i = 0; i < rules->argc; i++)
        parts[n++] = rules->argv[i];
    parts[n++] = BYTES("");
    for (size_t i = 0; i < rules->env_count; i++) {
        parts[n++] = rules->env[i].name;
        parts[n++] = rules->env[i].value;
    }
    parts[n++] = rules->cwd.at != NULL ? rules->cwd : BYTES("");
    return hash_parts(parts, n);
}

static bool is_same(const struct command *command, const struct mcp_server_rules *rules, const struct hash *hash)
{
    return bytes_eq(command->name, rules->name) && hash_equal(hash_bytes(&command->hash), hash_bytes(hash));
}

static struct command *command_new(const struct bridge_call *call, const struct hash *hash)
{
    const struct mcp_command *rules = call->rules->command;
    struct command *command = calloc(1, sizeof *command);
    ASSERT(command != NULL);
    struct arena *arena = &command->arena;
    arena_init(arena, COMMAND_MAX);
    command->hash = *hash;
    command->name = arena_dup(arena, call->rules->name);
    command->space = arena_dup(arena, call->call->space);
    command->directory = rules->cwd.at != NULL ? arena_dup(arena, rules->cwd).at : NULL;
    command->argv = arena_zalloc(arena, rules->argc + 1, sizeof *command->argv);
    command->env = arena_zalloc(arena, rules->env_count + 1, sizeof *command->env);
    for (size_t i = 0; command->argv != NULL && i < rules->argc; i++)
        command->argv[i] = (char *)arena_dup(arena, rules->argv[i]).at;
    for (; command->env != NULL && command->env_count < rules->env_count; command->env_count++) {
        const struct pair *pair = &rules->env[command->env_count];
        command->env[command->env_count] = (struct pair){arena_dup(arena, pair->name), arena_dup(arena, pair->value)};
    }
    ASSERT(!arena->failed); /* a policy has at most as much */
    return command;
}

struct command *bridge_command(struct bridge *bridge, const struct bridge_call *call)
{
    struct hash hash = hash_of(call->rules->command);
    struct command *command = bridge->commands;
    while (command != NULL && !(is_same(command, call->rules, &hash) && bytes_eq(command->space, call->call->space)))
        command = command->next;
    if (command == NULL) {
        command = command_new(call, &hash);
        command->next = bridge->commands;
        bridge->commands = command;
    }
    command->processes_max = call->rules->command->processes_max;
    command->idle_us = call->rules->command->idle_us;
    return command;
}

static void take_policy(struct bridge *bridge, struct policy *policy)
{
    for (struct command *command = bridge->commands; command != NULL; command = command->next) {
        const struct mcp_server_rules *rules = policy_mcp(policy, command->name);
        struct hash hash = rules != NULL && rules->command != NULL ? hash_of(rules->command) : (struct hash){0};
        command->over = rules == NULL || rules->command == NULL || !is_same(command, rules, &hash);
    }
    policy_free(policy);
}

static void check_sessions(struct bridge *bridge)
{
    for (struct command **at = &bridge->commands; *at != NULL;) {
        struct command *command = *at;
        for (struct session *session = command->sessions, *next; session != NULL; session = next) {
            next = session->next;
            (void)session_check(session);
        }
        if (command->over && command->sessions == NULL) {
            *at = command->next;
            arena_release(&command->arena);
            free(command);
        } else {
            at = &command->next;
        }
    }
}

/* ---- processes that were told to end ---- */

void bridge_end_process(struct bridge *bridge, pid_t pid)
{
    struct ending *ending = calloc(1, sizeof *ending);
    ASSERT(ending != NULL);
    *ending = (struct ending){.pid = pid, .since_us = bridge_now_us(bridge), .next = bridge->endings};
    bridge->endings = ending;
}

static void check_endings(struct bridge *bridge, int64_t patience_us)
{
    static const int signals[] = {SIGTERM, SIGKILL};
    for (struct ending **at = &bridge->endings; *at != NULL;) {
        struct ending *ending = *at;
        siginfo_t ended = {0};
        bool known = waitid(P_PID, (id_t)ending->pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0;
        if (!known ||
            ended.si_pid != 0) { /* what it started and left has nobody to serve; before it is reaped, its number is its own */
            kill(-ending->pid, SIGKILL);
            (void)process_reap(ending->pid);
            *at = ending->next;
            free(ending);
            continue;
        }
        if (ending->step < 2 && bridge_now_us(bridge) - ending->since_us >= (ending->step + 1) * patience_us)
            kill(-ending->pid, signals[ending->step++]);
        at = &ending->next;
    }
}

/* ---- the thread ---- */

static size_t list_fds(const struct bridge *bridge, struct pollfd *fds, struct session **owners)
{
    size_t n = 0;
    fds[n] = (struct pollfd){.fd = bridge->wake, .events = POLLIN};
    owners[n++] = NULL;
    for (const struct command *command = bridge->commands; command != NULL; command = command->next)
        for (struct session *session = command->sessions; session != NULL; session = session->next) {
            if (!session->runs)
                continue;
            fds[n] = (struct pollfd){.fd = session->process.out, .events = POLLIN};
            owners[n++] = session;
            fds[n] = (struct pollfd){.fd = session->out_at < session->out.len ? session->process.in : -1, .events = POLLOUT};
            owners[n++] = session;
        }
    return n;
}

static void look(struct bridge *bridge)
{
    static _Thread_local struct pollfd fds[2 * SESSIONS_MAX + 1];
    static _Thread_local struct session *owners[2 * SESSIONS_MAX + 1];
    uint64_t woken;
    size_t count = list_fds(bridge, fds, owners);
    if (poll(fds, count, (int)(LOOK_EVERY_US / WHEN_MS)) <= 0)
        return;
    if (fds[0].revents != 0)
        (void)!read(bridge->wake, &woken, sizeof woken);
    for (size_t i = 1; i < count; i += 2) { /* nothing here ends a session, so that they all are there */
        if (fds[i].revents != 0 && owners[i]->runs)
            session_read(owners[i]);
        if (fds[i + 1].revents != 0 && owners[i]->runs)
            session_write(owners[i]);
    }
}

/* False when the bridge stops. */
static bool take_queued(struct bridge *bridge)
{
    pthread_mutex_lock(&bridge->lock);
    struct bridge_call *calls = bridge->queued;
    struct policy *policy = bridge->policy;
    bool stop = bridge->stop;
    bridge->queued = NULL;
    bridge->queued_end = &bridge->queued;
    bridge->policy = NULL;
    pthread_mutex_unlock(&bridge->lock);
    if (policy != NULL)
        take_policy(bridge, policy);
    while (calls != NULL) {
        static const struct why stops = {"semel stops"};
        struct bridge_call *call = calls;
        calls = call->next;
        if (stop)
            call_end(call, TRANSPORT_NOT_SENT, &stops);
        else
            bridge_take(bridge, call);
    }
    return !stop;
}

static void end_all(struct bridge *bridge)
{
    for (struct command *command = bridge->commands; command != NULL; command = command->next) {
        command->over = true;
        while (command->sessions != NULL)
            session_end(command->sessions, "semel stops");
    }
    check_sessions(bridge);
    while (bridge->endings != NULL) {
        check_endings(bridge, PROCESS_END_PATIENCE_US / 3);
        usleep(CLOSE_LOOK_US);
    }
}

static void *bridge_main(void *arg)
{
    struct bridge *bridge = arg;
    while (take_queued(bridge)) {
        look(bridge);
        check_sessions(bridge);
        check_endings(bridge, PROCESS_END_PATIENCE_US);
    }
    end_all(bridge);
    return NULL;
}

/* ---- for others ---- */

enum status bridge_open(struct env *env, struct secrets *secrets, struct bridge **ret_bridge, struct why *why)
{
    struct bridge *bridge = calloc(1, sizeof *bridge);
    ASSERT(bridge != NULL);
    *bridge = (struct bridge){.env = env, .secrets = secrets, .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    bridge->queued_end = &bridge->queued;
    pthread_mutex_init(&bridge->lock, NULL);
    if (bridge->wake < 0 || pthread_create(&bridge->thread, NULL, bridge_main, bridge) != 0) {
        if (bridge->wake >= 0)
            close(bridge->wake);
        free(bridge);
        return why_set(why, FULL, "no thread could be started");
    }
    *ret_bridge = bridge;
    return OK;
}

static void wake(struct bridge *bridge)
{
    (void)!write(bridge->wake, &(uint64_t){1}, sizeof(uint64_t));
}

void bridge_send(struct bridge *bridge, struct bridge_call *call)
{
    pthread_mutex_lock(&bridge->lock);
    call->next = NULL;
    *bridge->queued_end = call;
    bridge->queued_end = &call->next;
    pthread_mutex_unlock(&bridge->lock);
    wake(bridge);
}

void bridge_set_policy(struct bridge *bridge, struct policy *policy)
{
    policy_use(policy);
    pthread_mutex_lock(&bridge->lock);
    struct policy *before = bridge->policy;
    bridge->policy = policy;
    pthread_mutex_unlock(&bridge->lock);
    policy_free(before);
    wake(bridge);
}

void bridge_close(struct bridge *bridge)
{
    if (bridge == NULL)
        return;
    pthread_mutex_lock(&bridge->lock);
    bridge->stop = true;
    pthread_mutex_unlock(&bridge->lock);
    wake(bridge);
    pthread_join(bridge->thread, NULL);
    policy_free(bridge->policy);
    close(bridge->wake);
    free(bridge);
}
