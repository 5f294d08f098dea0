#include "run/direct.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/access.h"
#include "api/api.h"
#include "base/log.h"

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

static void setup_once(void)
{
    static bool done;
    if (!done)
        store_setup();
    done = true;
}

static enum status load_policy(struct direct *direct, struct why *why)
{
    struct row_policy row = {0};
    enum status status = policy_load(engine_store(direct->engine), direct->arena, &row, why);
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
static enum status check_token(struct direct *direct, const char *text, struct why *why)
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
        direct->space = arena_dup(direct->arena, token->space);
        direct->actor = arena_printf(direct->arena, "token:%.*s", BYTES_ARG(token->name));
        if (direct->space.at == NULL || direct->actor.at == NULL)
            status = why_set(why, FULL, "there is not enough memory");
    }
    access_free(tokens);
    return status;
}

enum status direct_open(const char *dir, const char *token, struct arena *arena, struct direct *ret_direct, struct why *why)
{
    struct direct direct = {.arena = arena};
    const struct engine_config config = {.env = env_real(), .data_dir = dir};
    log_setup(LOG_WARN, LOG_LOGFMT, env_real_wall_us);
    setup_once();
    mode_t mask = umask(077);
    enum status status = engine_open(&config, &direct.engine, why);
    umask(mask);
    if (status != OK)
        return status;
    status = load_policy(&direct, why);
    if (status == OK)
        status = check_token(&direct, token, why);
    if (status != OK)
        direct_close(&direct);
    else
        *ret_direct = direct;
    return status;
}

void direct_close(struct direct *direct)
{
    engine_close(direct->engine);
    policy_free(direct->policy);
    *direct = (struct direct){0};
}

void direct_claim_rules(const struct direct *direct, struct ledger_command *claim)
{
    ledger_claim_rules(claim, policy_workflow(direct->policy, claim->workflow));
    ledger_key_hash(engine_pepper(direct->engine), direct->space, claim->workflow, claim->key, claim->h);
}

static void no_answer(struct engine_command *command)
{
    (void)command;
}

enum status direct_apply(struct direct *direct, const struct ledger_command *command, struct ledger_answer *ret_answer,
                         struct why *why)
{
    struct engine_command step = {.ledger = *command, .arena = direct->arena, .done = no_answer};
    step.ledger.space = direct->space;
    step.ledger.actor = direct->actor;
    step.ledger.policy = direct->policy_version;
    engine_step(direct->engine, &step);
    *why = step.why;
    if (step.status == OK)
        *ret_answer = step.answer;
    return step.status;
}
