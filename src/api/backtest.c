/* backtest: POST /v1/policy/backtest: what another policy would have decided. It takes as long as it takes, so whoever asks may be
 * answered after a slice of time with what was found so far, and comes again for the next one (…/{backtest}): the server keeps what
 * the other policy remembers in between, for a while. One at a time. */
#include "flow/backtest.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/api.h"
#include "base/when.h"

#define SINCE_DEFAULT_US (7 * WHEN_DAY)
#define SINCE_MAX_US (400 * WHEN_DAY)
#define SLICE_MAX_US (20 * WHEN_SECOND)
#define TAKEN_US (30 * WHEN_SECOND)     /* nobody came again for so long: another one may begin */
#define FORGOTTEN_US (60 * WHEN_SECOND) /* … and its memory is given back */

struct backtest_run {
    struct backtest *backtest;
    char id[20];
    int64_t since_us, until_us; /* wall */
    int64_t used_us;            /* boot clock, when the last slice ended */
    bool busy;                  /* a slice is under way */
};

struct slice_state {
    int64_t end_us; /* boot clock */
};

static void close_run(struct api *api)
{
    backtest_close(api->backtest->backtest);
    free(api->backtest);
    api->backtest = NULL;
}

/* True when nobody has come for it for so long. */
static bool is_left(const struct api *api, int64_t for_us)
{
    struct env *env = engine_env(api->engine);
    return !api->backtest->busy && env->boot_us(env) - api->backtest->used_us > for_us;
}

void backtest_tick(void *arg)
{
    struct api *api = arg;
    if (api->backtest != NULL && is_left(api, FORGOTTEN_US))
        close_run(api);
}

void backtest_end(struct api *api)
{
    if (api->backtest != NULL)
        close_run(api);
}

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

static void answer(struct call *call, bool done)
{
    const struct backtest_run *run = call->api->backtest;
    const struct backtest_counts *counts = backtest_counts(run->backtest);
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    json_time_member(&out, "since", run->since_us);
    json_time_member(&out, "until", run->until_us);
    json_time_member(&out, "at", done && backtest_is_whole(run->backtest) ? run->until_us : backtest_at_us(run->backtest));
    json_name(&out, "events");
    json_i64(&out, counts->events);
    json_name(&out, "whole");
    json_bool(&out, done && backtest_is_whole(run->backtest));
    json_name(&out, "next");
    json_cstr(&out, done ? NULL : run->id);
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

/* ---- steps, with others' reads in between ---- */

static enum status read_step(struct store *store, struct engine_read *read, struct why *why)
{
    const struct call *call = read->user;
    return backtest_step(call->api->backtest->backtest, store, why);
}

static void finish_step(struct call *call)
{
    struct api *api = call->api;
    const struct slice_state *state = call->state;
    struct env *env = engine_env(api->engine);
    enum status status = call->read.status;
    bool stopping = atomic_load(&api->stopping);
    bool late = env->boot_us(env) >= state->end_us || stopping || atomic_load(&call->request->gone);
    if (status == OK && !late) {
        call_submit_read(call, read_step, finish_step);
        return;
    }
    api->backtest->busy = false;
    api->backtest->used_us = env->boot_us(env);
    struct why why = call->read.why;
    if (status == OK || status == NOTHING)
        answer(call, status == NOTHING);
    if (status != OK || stopping)
        close_run(api);
    if (status == OK || status == NOTHING)
        call_reply(call, 200);
    else
        problem_storage(call, status, &why);
}

static void begin_slice(struct call *call, int64_t slice_us)
{
    struct env *env = engine_env(call->api->engine);
    struct slice_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    state->end_us = env->boot_us(env) + slice_us;
    call->state = state;
    call->api->backtest->busy = true;
    call_submit_read(call, read_step, finish_step);
}

/* ---- the question ---- */

static bool read_duration(struct call *call, const char *name, int64_t min_us, int64_t max_us, int64_t otherwise, int64_t *ret_us)
{
    struct bytes text = call_query(call, name);
    char min[32], max[32];
    *ret_us = otherwise;
    if (text.len == 0 || (when_parse_duration(text, ret_us) && *ret_us >= min_us && *ret_us <= max_us))
        return true;
    min[when_format_duration(min_us, min)] = max[when_format_duration(max_us, max)] = '\0';
    problem_field(call, bytes_of(name), "%s has to be a duration from %s to %s.", name, min, max);
    return false;
}

static bool read_slice(struct call *call, int64_t *ret_us)
{
    return read_duration(call, "slice", WHEN_MS, SLICE_MAX_US, SLICE_MAX_US, ret_us);
}

static bool open_run(struct call *call, struct policy *policy, int64_t back_us)
{
    struct env *env = engine_env(call->api->engine);
    int64_t now_us = env->wall_us(env);
    uint64_t number;
    struct why why = {"no memory for a backtest"};
    struct backtest_run *run = calloc(1, sizeof *run);
    if (run == NULL || backtest_open(policy, engine_pepper(call->api->engine), call->space, now_us - back_us, now_us,
                                     &run->backtest, &why) != OK) {
        free(run);
        problem(call, "too_large", "%s.", why.text);
        return false;
    }
    env->random(env, &number, sizeof number);
    snprintf(run->id, sizeof run->id, "bt_%016llx", (unsigned long long)number);
    run->since_us = now_us - back_us;
    run->until_us = now_us;
    call->api->backtest = run;
    return true;
}

void policy_backtest(struct call *call)
{
    static const char *const known[] = {"since", "slice", NULL};
    struct api *api = call->api;
    struct policy *policy;
    int64_t back_us, slice_us;
    if (!admin_keeps_house(call) || !call_query_known(call, known) || !read_slice(call, &slice_us) ||
        !read_duration(call, "since", WHEN_MINUTE, SINCE_MAX_US, SINCE_DEFAULT_US, &back_us))
        return;
    if (api->backtest != NULL && !is_left(api, TAKEN_US)) {
        problem(call, "busy", "Another backtest is under way.");
        return;
    }
    if (!policy_body(call, &policy))
        return;
    backtest_end(api);
    bool opened = open_run(call, policy, back_us);
    policy_free(policy);
    if (opened)
        begin_slice(call, slice_us);
}

void policy_backtest_next(struct call *call)
{
    static const char *const known[] = {"slice", NULL};
    const struct backtest_run *run = call->api->backtest;
    int64_t slice_us;
    if (!admin_keeps_house(call) || !call_query_known(call, known) || !read_slice(call, &slice_us))
        return;
    if (run == NULL || !bytes_is(call->params[0], run->id))
        problem(call, "not_found", "There is no such backtest on this node any more; begin anew.");
    else if (run->busy)
        problem(call, "busy", "Its last slice is still under way.");
    else
        begin_slice(call, slice_us);
}
