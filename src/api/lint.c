#include "lint/lint_read.h"

#include <stdio.h>

#include "api/api.h"
#include "base/when.h"

#define SINCE_DEFAULT (7 * WHEN_DAY)
#define SINCE_MAX (400 * WHEN_DAY)
#define NEWEST_MAX 20000 /* intents that are looked at to find the workflows */

struct lint_state {
    struct call *call;
    struct json_out out;
    int64_t since_us;
};

/* `since` is a duration: that long ago. False when the problem was sent. */
static bool read_since(struct call *call, int64_t *ret_since_us)
{
    struct env *env = engine_env(call->api->engine);
    struct bytes text = call_query(call, "since");
    int64_t since_us = SINCE_DEFAULT;
    if (text.at != NULL && (!when_parse_duration(text, &since_us) || since_us <= 0 || since_us > SINCE_MAX)) {
        problem_field(call, BYTES("since"), "since has to be a duration up to 400d, such as \"7d\".");
        return false;
    }
    *ret_since_us = env->wall_us(env) - since_us;
    return true;
}

static struct lint_state *new_state(struct call *call)
{
    struct lint_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    state->call = call;
    state->out = json_out_to(&call->out);
    call->state = state;
    return state;
}

static void finish(struct call *call)
{
    if (call->read.status != OK)
        problem_storage(call, call->read.status, &call->read.why);
    else
        call_reply(call, 200);
}

/* ---- which workflows there are ---- */

static enum status write_workflow(void *ctx, const void *at, struct why *why)
{
    (void)why;
    struct lint_state *state = ctx;
    const struct r_lint_workflows *row = at;
    json_open(&state->out, '{');
    json_name(&state->out, "workflow");
    json_text(&state->out, row->workflow);
    json_name(&state->out, "intents");
    json_i64(&state->out, row->intents);
    json_close(&state->out, '}');
    return OK;
}

static enum status read_workflows(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct lint_state *state = call->state;
    struct q_lint_workflows query = {call->space, id_floor(state->since_us), NEWEST_MAX};
    json_open(&state->out, '{');
    json_name(&state->out, "since");
    json_time(&state->out, state->since_us);
    json_name(&state->out, "data");
    json_open(&state->out, '[');
    TRY(store_run(store, &LINT_WORKFLOWS, &query, 1, write_workflow, state, NULL, why));
    json_close(&state->out, ']');
    json_close(&state->out, '}');
    return OK;
}

void workflows_list(struct call *call)
{
    static const char *const known[] = {"since", NULL};
    struct lint_state *state = new_state(call);
    if (call_query_known(call, known) && read_since(call, &state->since_us))
        call_submit_read(call, read_workflows, finish);
}

/* ---- one of them ---- */

static void write_names(struct json_out *out, const char *name, const struct bytes *names, size_t count)
{
    json_name(out, name);
    json_open(out, '[');
    for (size_t i = 0; i < count; i++)
        json_text(out, names[i]);
    json_close(out, ']');
}

static void write_finding(struct json_out *out, const struct lint_finding *finding)
{
    struct buf text, fix;
    buf_init(&text, 1024);
    buf_init(&fix, 1024);
    lint_explain(finding, &text, &fix);
    json_open(out, '{');
    json_name(out, "code");
    json_cstr(out, lint_code_names[finding->code]);
    json_name(out, "problem");
    json_bool(out, finding->problem);
    json_name(out, "count");
    json_i64(out, finding->count);
    json_name(out, "of");
    json_i64(out, finding->of);
    write_names(out, "examples", finding->examples,
                (size_t)(finding->examples[0].at != NULL) + (finding->examples[1].at != NULL));
    write_names(out, "fields", finding->fields, finding->field_count);
    json_name(out, "text");
    json_text(out, buf_bytes(&text));
    json_name(out, "fix");
    json_text(out, buf_bytes(&fix));
    json_close(out, '}');
    buf_release(&fix);
    buf_release(&text);
}

static void write_proposal(struct json_out *out, const struct lint_report *report)
{
    json_name(out, "proposal");
    if (report->proposed.at == NULL) {
        json_null(out);
        return;
    }
    json_open(out, '{');
    json_name(out, "key");
    json_text(out, report->proposed);
    write_names(out, "ignore", report->ignored, report->ignored_count);
    json_name(out, "caught");
    json_i64(out, report->caught);
    json_name(out, "later");
    json_i64(out, report->later);
    json_name(out, "wrong");
    json_i64(out, report->wrong);
    json_close(out, '}');
}

static void write_report(struct lint_state *state, const struct lint_report *report)
{
    struct json_out *out = &state->out;
    json_open(out, '{');
    json_name(out, "workflow");
    json_text(out, state->call->params[0]);
    json_name(out, "since");
    json_time(out, state->since_us);
    json_name(out, "sampled");
    json_i64(out, (int64_t)report->sampled);
    json_name(out, "with_input");
    json_i64(out, (int64_t)report->with_input);
    json_name(out, "complete");
    json_bool(out, report->sampled < LINT_SAMPLES_MAX);
    json_name(out, "findings");
    json_open(out, '[');
    for (size_t i = 0; i < report->finding_count; i++)
        write_finding(out, &report->findings[i]);
    json_close(out, ']');
    write_proposal(out, report);
    json_close(out, '}');
}

static enum status read_lint(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct lint_state *state = call->state;
    struct arena scratch;
    struct lint_traffic traffic;
    struct lint_report report;
    TRY(lint_read(store, call->space, call->params[0], state->since_us, call->request->arena, &traffic, why));
    arena_init(&scratch, (size_t)256 << 20);
    enum status status = lint_run(&traffic, &scratch, &report, why);
    if (status == OK)
        write_report(state, &report);
    arena_release(&scratch);
    return status;
}

void workflows_lint(struct call *call)
{
    static const char *const known[] = {"since", NULL};
    struct lint_state *state = new_state(call);
    if (call_query_known(call, known) && read_since(call, &state->since_us))
        call_submit_read(call, read_lint, finish);
}
