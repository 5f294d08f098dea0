#include "direct/direct.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/access.h"
#include "audit/applied.h"

static bool has_file(const char *dir, const char *name)
{
    char path[4096];
    int len = snprintf(path, sizeof path, "%s/%s", dir, name);
    return len > 0 && (size_t)len < sizeof path && access(path, F_OK) == 0;
}

bool direct_is_ledger(const char *dir, bool create)
{
    if (has_file(dir, "semel.db"))
        return true;
    return create && !has_file(dir, "admin.token");
}

static enum status load_policy(struct direct *direct, struct arena *arena, struct why *why)
{
    struct row_policy row = {0};
    enum status status = policy_load(engine_store(direct->engine), arena, &row, why);
    if (status != OK && status != NOTHING)
        return status;
    struct yaml_problems *problems = calloc(1, sizeof *problems);
    ASSERT(problems != NULL);
    status = policy_parse(row.text.at != NULL ? row.text : BYTES(""), &direct->policy, problems);
    if (status != OK)
        status = why_set(why, INVALID, "the stored policy has problems: %s", problems->count > 0 ? problems->at[0].text : "?");
    free(problems);
    direct->policy_version = row.version;
    return status;
}

/* Whoever can write the files may claim; a token, if there is one, says in which space. */
static enum status check_token(struct direct *direct, const char *text, struct arena *arena, struct why *why)
{
    direct->space = BYTES("main");
    direct->actor = BYTES("local");
    if (text == NULL)
        return OK;
    struct access *tokens;
    TRY(access_load(engine_store(direct->engine), &tokens, why));
    const struct row_token *token = access_check(tokens, engine_pepper(direct->engine), bytes_of(text), env_real_wall_us());
    enum status status = OK;
    if (token == NULL || (token->scopes & (SCOPE_CLAIM | SCOPE_ADMIN)) == 0) {
        status = why_set(why, NOTHING, "the token is not known there, or not allowed to claim");
    } else {
        direct->space = arena_dup(arena, token->space);
        direct->actor = arena_printf(arena, "token:%.*s", BYTES_ARG(token->name));
        if (direct->space.at == NULL || direct->actor.at == NULL)
            status = why_set(why, FULL, "there is not enough memory");
    }
    access_free(tokens);
    return status;
}

enum status direct_open(const char *dir, const char *token, struct arena *arena, struct direct *ret_direct, struct why *why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct direct direct = {0};
    const struct engine_config config = {.env = env_real(), .data_dir = dir};
    pthread_once(&once, store_setup);
    TRY(engine_open(&config, &direct.engine, why));
    enum status status = load_policy(&direct, arena, why);
    if (status == OK)
        status = check_token(&direct, token, arena, why);
    if (status != OK)
        direct_close(&direct);
    else
        *ret_direct = direct;
    return status;
}

enum status direct_start(struct direct *direct, struct why *why)
{
    TRY(engine_start(direct->engine, why));
    direct->started = true;
    return OK;
}

void direct_close(struct direct *direct)
{
    engine_close(direct->engine);
    policy_free(direct->policy);
    *direct = (struct direct){0};
}

enum status direct_name(const struct direct *direct, const struct claim_naming *naming, struct arena *arena,
                        struct ledger_command *ret, struct bytes *ret_field, struct why *why)
{
    const struct naming_rules rules = {policy_workflow(direct->policy, naming->workflow), direct->space,
                                       engine_pepper(direct->engine), env_real_wall_us()};
    return ledger_name(naming, &rules, arena, ret, ret_field, why);
}

/* ---- one command ---- */

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
};

static void no_answer(struct engine_command *command)
{
    (void)command;
}

static void wake(struct engine_command *command)
{
    struct waiter *waiter = command->user;
    pthread_mutex_lock(&waiter->lock);
    waiter->done = true;
    pthread_cond_signal(&waiter->wake);
    pthread_mutex_unlock(&waiter->lock);
}

static void submit_and_wait(struct direct *direct, struct engine_command *command)
{
    struct waiter waiter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    command->done = wake;
    command->user = &waiter;
    engine_submit(direct->engine, command);
    pthread_mutex_lock(&waiter.lock);
    while (!waiter.done)
        pthread_cond_wait(&waiter.wake, &waiter.lock);
    pthread_mutex_unlock(&waiter.lock);
    pthread_cond_destroy(&waiter.wake);
    pthread_mutex_destroy(&waiter.lock);
}

enum status direct_apply(struct direct *direct, const struct ledger_command *command, int64_t wait_us, struct arena *arena,
                         struct ledger_answer *ret_answer, struct why *why)
{
    struct engine_command step = {.ledger = *command, .arena = arena, .done = no_answer};
    step.ledger.space = direct->space;
    step.ledger.actor = direct->actor;
    step.ledger.policy = direct->policy_version;
    step.wait_us = direct->started ? wait_us : 0;
    if (direct->started)
        submit_and_wait(direct, &step);
    else
        engine_step(direct->engine, &step);
    *why = step.why;
    if (step.status == OK)
        *ret_answer = step.answer;
    return step.status;
}

enum status direct_write(struct direct *direct,
                         enum status (*write)(struct store *, struct ledger *, struct engine_command *, struct why *), void *user,
                         struct arena *arena, struct why *why)
{
    struct engine_command step = {.write = write, .arena = arena, .done = no_answer, .user = user};
    ASSERT(!direct->started);
    engine_step(direct->engine, &step);
    *why = step.why;
    return step.status;
}
