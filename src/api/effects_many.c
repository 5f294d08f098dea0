/* effects_many: the same done to all effects of a filter, counted first if asked. What may have happened is never touched: that
 * is decided one by one. */
#include <stdatomic.h>

#include "api/effects.h"

#define MANY_MAX 1000

struct many_state {
    struct bytes destination;
    int step;
    bool dry_run;
    struct row_effect effects[MANY_MAX]; /* only their numbers are used */
    int64_t count;
    bool more;
    struct engine_command commands[MANY_MAX];
    _Atomic int64_t left, done, failed;
};

enum { STEP_UNSAID = -1 };

static const struct json_field many_fields[] = {
    {"destination", JSON_FIELD_TEXT, offsetof(struct many_state, destination), false, 1, DESTINATION_NAME_MAX, NULL},
    {"step", JSON_FIELD_ENUM, offsetof(struct many_state, step), false, 0, 0, outbox_step_names},
    {"dry_run", JSON_FIELD_BOOL, offsetof(struct many_state, dry_run), false, 0, 0, NULL},
};

static enum status take_effect(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct many_state *state = ctx;
    const struct row_effect *effect = row;
    if (effect->ambiguous != 0)
        return OK;
    if (state->count == MANY_MAX)
        state->more = true;
    else
        state->effects[state->count++] = *effect;
    return OK;
}

static enum status find(struct store *store, struct call *call, struct why *why)
{
    struct many_state *state = call->state;
    struct q_effect_list list = {call->space, state->destination, STATE_PENDING, state->step, INT64_MAX, MANY_MAX + 1};
    state->count = 0;
    return store_run(store, &EFFECT_LIST, &list, 1, take_effect, state, NULL, why);
}

static enum status read_many(struct store *store, struct engine_read *read, struct why *why)
{
    return find(store, read->user, why);
}

static void answer(struct call *call, const char *verb, int64_t done)
{
    const struct many_state *state = call->state;
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    json_name(&out, "dry_run");
    json_bool(&out, state->dry_run);
    json_name(&out, "matched");
    json_i64(&out, state->count);
    json_name(&out, verb);
    json_i64(&out, done);
    json_name(&out, "more");
    json_bool(&out, state->more);
    json_close(&out, '}');
    call_reply(call, 200);
}

static struct many_state *begin(struct call *call)
{
    struct many_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    state->step = STEP_UNSAID;
    call->state = state;
    return call_body(call, many_fields, sizeof many_fields / sizeof *many_fields, state) ? state : NULL;
}

static bool read_failed(struct call *call)
{
    if (call->read.status == OK)
        return false;
    problem_storage(call, call->read.status, &call->read.why);
    return true;
}

/* ---- retry ---- */

/* In one transaction with the look, so that nothing can change in between. */
static enum status write_again(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct call *call = command->user;
    struct many_state *state = call->state;
    TRY(find(store, call, why));
    for (int64_t i = 0; i < state->count; i++) {
        struct row_effect *effect = &state->effects[i];
        effect->space = call->space;
        TRY(outbox_again(store, ledger, effect, why));
        TRY(exception_close(store, ledger, effect->intent, EXCEPTION_DEAD_LETTER, BYTES("retry"), call->actor, BYTES_NONE, why));
    }
    return OK;
}

static void finish_retry(struct call *call)
{
    const struct many_state *state = call->state;
    if (call->command.status != OK) {
        problem_storage(call, call->command.status, &call->command.why);
        return;
    }
    act_wake(call->api->act);
    answer(call, "retried", state->count);
}

static void finish_count(struct call *call)
{
    if (!read_failed(call))
        answer(call, call->command.write != NULL ? "retried" : "cancelled", 0);
}

void effects_retry_many(struct call *call)
{
    struct many_state *state = begin(call);
    if (state == NULL)
        return;
    call->command.write = write_again;
    if (state->dry_run)
        call_submit_read(call, read_many, finish_count);
    else
        call_submit(call, finish_retry);
}

/* ---- cancel ---- */

static enum status also_cancelled(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    const struct call *call = command->user;
    struct row_effect effect = {.intent = command->ledger.intent, .space = call->space};
    TRY(exception_close(store, ledger, command->ledger.intent, EXCEPTION_DEAD_LETTER, BYTES("drop"), call->actor, BYTES_NONE,
                        why));
    return outbox_finish(store, ledger, &effect, BYTES("cancelled"), why);
}

static void finish_cancel(void *arg)
{
    struct call *call = arg;
    struct many_state *state = call->state;
    if (state->failed > 0 && state->done == 0)
        problem_storage(call, state->commands[0].status, &state->commands[0].why);
    else
        answer(call, "cancelled", state->done);
}

/* On the writer thread. */
static void one_cancelled(struct engine_command *command)
{
    struct call *call = command->user;
    struct many_state *state = call->state;
    if (command->status != OK)
        atomic_fetch_add(&state->failed, 1);
    else if (command->answer.verdict == VERDICT_DONE && command->answer.state == STATE_REFUSED)
        atomic_fetch_add(&state->done, 1);
    if (atomic_fetch_sub(&state->left, 1) == 1)
        http_server_post(call->api->server, finish_cancel, call);
}

static void cancel_found(struct call *call)
{
    struct many_state *state = call->state;
    if (read_failed(call))
        return;
    if (state->count == 0 || state->dry_run) {
        answer(call, "cancelled", 0);
        return;
    }
    state->left = state->count;
    for (int64_t i = 0; i < state->count; i++) {
        struct engine_command *command = &state->commands[i];
        *command = (struct engine_command){
            .ledger = {.op = OP_FAIL,
                       .space = call->space,
                       .actor = call->actor,
                       .policy = call->api->policy_version,
                       .intent = state->effects[i].intent,
                       .fence = state->effects[i].fence,
                       .final = true,
                       .error = BYTES("cancelled before it was sent")},
            .also = also_cancelled,
            .arena = call->request->arena,
            .done = one_cancelled,
            .user = call,
        };
    }
    for (int64_t i = 0, count = state->count; i < count; i++)
        engine_submit(call->api->engine, &state->commands[i]);
}

void effects_cancel_many(struct call *call)
{
    if (begin(call) != NULL)
        call_submit_read(call, read_many, cancel_found);
}
