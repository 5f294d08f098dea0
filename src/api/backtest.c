/* backtest: POST /v1/policy/backtest: what another policy would have decided. */
#include "flow/backtest.h"
#include "api/api.h"
#include "base/when.h"

#define SINCE_DEFAULT_US (7 * WHEN_DAY)
#define SINCE_MAX_US (400 * WHEN_DAY)
#define TIME_MAX_US (20 * WHEN_SECOND)

struct backtest_state {
    struct backtest *backtest;
    int64_t since_us, end_us; /* wall; boot clock */
};

/* ---- the answer ---- */

static void write_example(struct json_out *out, const struct backtest_example *example)
{
    struct bytes would = bytes_of(example->would_reason);
    json_open(out, '{');
    call_write_id(out, "event", "evt", example->event);
    json_name(out, "source");
    json_cstr(out, example->source);
    json_name(out, "was");
    json_cstr(out, event_verdict_names[example->was]);
    json_name(out, "was_reason");
    json_cstr(out, example->was_reason);
    json_name(out, "would");
    json_cstr(out, event_verdict_names[example->would]);
    json_name(out, "would_reason");
    json_text(out, would);
    json_name(out, "because");
    json_cstr(out, decide_sentence(would));
    json_name(out, "score");
    json_i64(out, example->score);
    call_write_id(out, "first", "evt", example->first);
    json_close(out, '}');
}

static void write_matrix(struct json_out *out, const struct backtest_counts *counts)
{
    json_name(out, "verdicts");
    json_open(out, '[');
    for (int was = 0; was < EVENT_VERDICT_COUNT; was++)
        for (int would = 0; would < EVENT_VERDICT_COUNT; would++) {
            if (counts->verdicts[was][would] == 0)
                continue;
            json_open(out, '{');
            json_name(out, "was");
            json_cstr(out, event_verdict_names[was]);
            json_name(out, "would");
            json_cstr(out, event_verdict_names[would]);
            json_name(out, "count");
            json_i64(out, counts->verdicts[was][would]);
            json_close(out, '}');
        }
    json_close(out, ']');
}

static void answer(struct call *call, bool whole)
{
    const struct backtest_state *state = call->state;
    const struct backtest_counts *counts = backtest_counts(state->backtest);
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    json_name(&out, "since");
    json_time(&out, state->since_us);
    json_name(&out, "events");
    json_i64(&out, counts->events);
    json_name(&out, "whole");
    json_bool(&out, whole && counts->events < BACKTEST_EVENTS_MAX);
    json_name(&out, "changed");
    json_i64(&out, counts->changed);
    write_matrix(&out, counts);
    json_name(&out, "examples");
    json_open(&out, '[');
    for (size_t i = 0; i < counts->example_count; i++)
        write_example(&out, &counts->examples[i]);
    json_close(&out, ']');
    json_close(&out, '}');
}

static void end(struct call *call)
{
    struct backtest_state *state = call->state;
    backtest_close(state->backtest);
    call->api->backtesting = false;
}

/* ---- steps, with others' reads in between ---- */

static enum status read_step(struct store *store, struct engine_read *read, struct why *why)
{
    const struct backtest_state *state = ((struct call *)read->user)->state;
    return backtest_step(state->backtest, store, why);
}

static void finish_step(struct call *call)
{
    const struct backtest_state *state = call->state;
    struct env *env = engine_env(call->api->engine);
    enum status status = call->read.status;
    bool late = env->boot_us(env) >= state->end_us || atomic_load(&call->api->stopping) || atomic_load(&call->request->gone);
    if (status == OK && !late) {
        call_submit_read(call, read_step, finish_step);
        return;
    }
    if (status == OK || status == NOTHING) {
        answer(call, status == NOTHING);
        end(call);
        call_reply(call, 200);
        return;
    }
    struct why why = call->read.why;
    end(call);
    problem_storage(call, status, &why);
}

/* ---- the question ---- */

static bool read_since(struct call *call, int64_t now_us, int64_t *ret_since_us)
{
    struct bytes text = call_query(call, "since");
    int64_t back_us = SINCE_DEFAULT_US;
    if (text.len > 0 && (!when_parse_duration(text, &back_us) || back_us < WHEN_MINUTE || back_us > SINCE_MAX_US)) {
        problem_field(call, BYTES("since"), "since has to be a duration from 1m to 400d, such as 7d.");
        return false;
    }
    *ret_since_us = now_us - back_us;
    return true;
}

void policy_backtest(struct call *call)
{
    static const char *const known[] = {"since", NULL};
    struct env *env = engine_env(call->api->engine);
    struct backtest_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    struct policy *policy;
    struct why why;
    ASSERT(state != NULL);
    call->state = state;
    if (!admin_keeps_house(call) || !call_query_known(call, known) || !read_since(call, env->wall_us(env), &state->since_us))
        return;
    if (call->api->backtesting) {
        problem(call, "busy", "Another backtest is under way.");
        return;
    }
    if (!policy_body(call, &policy))
        return;
    enum status status =
        backtest_open(policy, engine_pepper(call->api->engine), call->space, state->since_us, &state->backtest, &why);
    policy_free(policy);
    if (status != OK) {
        problem(call, "too_large", "%s.", why.text);
        return;
    }
    state->end_us = env->boot_us(env) + TIME_MAX_US;
    call->api->backtesting = true;
    call_submit_read(call, read_step, finish_step);
}
