/* llm_keep: a call's lease is short and kept alive while it is under way; what failed and was not asked for again is closed, so that it expires. */
#include <stdlib.h>

#include "api/llm.h"
#include "base/when.h"

#define SWEEP_EVERY_US (10 * WHEN_SECOND)
#define SWEEP_MAX 256
#define WORD_ARENA_MAX (1u << 20)

/* ---- something said to the ledger, whose answer nobody waits for ---- */

struct word {
    struct engine_command command;
    struct arena arena;
};

static void heard(struct engine_command *command)
{
    struct word *word = command->user;
    arena_release(&word->arena);
    free(word);
}

/* `said` refers to texts that are copied. */
static void say(struct api *api, const struct ledger_command *said)
{
    struct word *word = calloc(1, sizeof *word);
    if (word == NULL)
        return; /* it is said again, or somebody else notices */
    arena_init(&word->arena, WORD_ARENA_MAX);
    word->command = (struct engine_command){.ledger = *said, .arena = &word->arena, .done = heard, .user = word};
    word->command.ledger.space = arena_dup(&word->arena, said->space);
    word->command.ledger.actor = arena_dup(&word->arena, said->actor);
    word->command.ledger.policy = api->policy_version;
    if (word->arena.failed)
        heard(&word->command);
    else
        engine_submit(api->engine, &word->command);
}

/* ---- leases ---- */

void llm_keep(struct api *api, struct llm_call *own)
{
    struct env *env = engine_env(api->engine);
    own->beat_us = env->boot_us(env);
    own->next = api->llm->under_way;
    own->before = &api->llm->under_way;
    if (own->next != NULL)
        own->next->before = &own->next;
    api->llm->under_way = own;
}

void llm_keep_end(struct llm_call *own)
{
    if (own->before == NULL)
        return;
    *own->before = own->next;
    if (own->next != NULL)
        own->next->before = own->before;
    own->before = NULL;
}

static void beat(struct api *api, struct llm_call *own)
{
    const struct call *call = own->forward.call;
    struct ledger_command extend = {.op = OP_EXTEND,
                                    .space = call->space,
                                    .actor = call->actor,
                                    .intent = own->forward.attended.intent,
                                    .fence = own->forward.attended.fence,
                                    .lease_us = LLM_LEASE_US};
    say(api, &extend);
}

/* ---- what nobody came back for ---- */

struct sweep {
    struct api *api;
    struct engine_read read;
    struct arena arena;
    struct r_intent_idle found[SWEEP_MAX];
    size_t count;
};

static enum status take_idle(void *ctx, const void *row, struct why *why)
{
    struct sweep *sweep = ctx;
    struct r_intent_idle idle = *(const struct r_intent_idle *)row;
    idle.space = arena_dup(&sweep->arena, idle.space);
    if (idle.space.at == NULL || sweep->count == SWEEP_MAX)
        return why_set(why, FULL, "no memory for what is idle");
    sweep->found[sweep->count++] = idle;
    return OK;
}

static enum status read_idle(struct store *store, struct engine_read *read, struct why *why)
{
    struct sweep *sweep = read->user;
    int64_t now_us = engine_now(sweep->api->engine).wall_us - ID_EPOCH_MS * WHEN_MS;
    struct q_intent_idle idle = {LLM_WORKFLOW, now_us, SWEEP_MAX};
    return store_run(store, &INTENT_IDLE, &idle, 1, take_idle, sweep, NULL, why);
}

/* A later claim has another fence, so that this is said of the attempts before it only. */
static void close_idle(void *arg)
{
    struct sweep *sweep = arg;
    for (size_t i = 0; sweep->read.status == OK && i < sweep->count; i++) {
        struct ledger_command fail = {.op = OP_FAIL,
                                      .space = sweep->found[i].space,
                                      .actor = BYTES("semel"),
                                      .intent = sweep->found[i].id,
                                      .fence = sweep->found[i].fence,
                                      .final = true,
                                      .all_attempts = true,
                                      .error = BYTES("nobody asked for it again")};
        say(sweep->api, &fail);
    }
    sweep->api->llm->sweeping = false;
    arena_release(&sweep->arena);
    free(sweep);
}

static void swept(struct engine_read *read)
{
    struct sweep *sweep = read->user;
    http_server_post(sweep->api->server, close_idle, sweep);
}

static void begin_sweep(struct api *api)
{
    struct sweep *sweep = calloc(1, sizeof *sweep);
    if (sweep == NULL)
        return;
    sweep->api = api;
    arena_init(&sweep->arena, WORD_ARENA_MAX);
    sweep->read = (struct engine_read){.read = read_idle, .done = swept, .user = sweep};
    api->llm->sweeping = true;
    engine_submit_read(api->engine, &sweep->read);
}

void llm_tick(void *arg)
{
    struct api *api = arg;
    struct env *env = engine_env(api->engine);
    int64_t boot_us = env->boot_us(env);
    for (struct llm_call *own = api->llm->under_way; own != NULL; own = own->next)
        if (boot_us - own->beat_us >= LLM_LEASE_US / 3) {
            own->beat_us = boot_us;
            beat(api, own);
        }
    runs_flush(api);
    if (api->llm->sweeping || atomic_load(&api->stopping) || boot_us - api->llm->swept_us < SWEEP_EVERY_US)
        return;
    api->llm->swept_us = boot_us;
    begin_sweep(api);
}
