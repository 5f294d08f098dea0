/* runs: counts of model calls by run, gathered here and written every second; GET /v1/runs. */
#include "runs/runs.h"

#include <stdlib.h>

#include "api/api.h"
#include "base/log.h"

#define CURSOR_MAX (RUN_NAME_MAX + 32)

/* ---- writing ---- */

struct flush {
    struct engine_command command;
    struct arena arena;
    struct api *api;
    struct tally *tally;
};

static enum status write_flush(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    const struct flush *flush = command->user;
    return runs_write(store, flush->tally, ledger->now.wall_us, why);
}

/* What could not be written is counted again, as far as there is room. */
static void count_again(struct api *api, const struct tally *tally)
{
    for (size_t i = 0; i < tally->count; i++)
        runs_count(api, &tally->at[i]);
}

static void end_flush(void *arg)
{
    struct flush *flush = arg;
    if (flush->command.status != OK)
        count_again(flush->api, flush->tally);
    tally_free(flush->tally);
    arena_release(&flush->arena);
    free(flush);
}

static void flushed(struct engine_command *command)
{
    struct flush *flush = command->user;
    http_server_post(flush->api->server, end_flush, flush);
}

void runs_flush(struct api *api)
{
    struct flush *flush = api->tally != NULL && api->tally->count > 0 ? calloc(1, sizeof *flush) : NULL;
    if (flush == NULL)
        return;
    flush->api = api;
    flush->tally = api->tally;
    api->tally = NULL;
    arena_init(&flush->arena, 1 << 20);
    flush->command = (struct engine_command){.write = write_flush, .arena = &flush->arena, .done = flushed, .user = flush};
    engine_submit(api->engine, &flush->command);
}

void runs_count(struct api *api, const struct row_run *row)
{
    if (api->tally != NULL && tally_add(api->tally, row))
        return;
    runs_flush(api);
    if (api->tally == NULL)
        api->tally = tally_new();
    if (api->tally == NULL || !tally_add(api->tally, row))
        LOG(LOG_WARN, "a model call is not counted", LOG_TEXT("run", row->run));
}

/* ---- reading ---- */

struct runs_state {
    struct call *call;
    struct tally *tally; /* what is not yet written */
    struct bytes run;
    int64_t limit, before, count;
    struct bytes before_run;
    struct json_out out;
    char next[CURSOR_MAX];
    struct r_run_list sum;
};

static void write_counts(struct json_out *out, const struct r_run_list *row)
{
    json_name(out, "executed");
    json_i64(out, row->executed);
    json_name(out, "replayed");
    json_i64(out, row->replayed);
    json_name(out, "failed");
    json_i64(out, row->failed);
}

static void write_amounts(struct json_out *out, const char *name, int64_t input, int64_t output, bool priced, int64_t money)
{
    char text[32];
    json_name(out, name);
    json_open(out, '{');
    json_name(out, "input_tokens");
    json_i64(out, input);
    json_name(out, "output_tokens");
    json_i64(out, output);
    json_name(out, "money");
    if (priced)
        json_raw(out, (struct bytes){text, runs_money(money, text)});
    else
        json_null(out);
    json_close(out, '}');
}

static void write_sums(struct json_out *out, const struct r_run_list *row)
{
    write_counts(out, row);
    write_amounts(out, "spent", row->input, row->output, row->priced > 0, row->spent);
    write_amounts(out, "saved", row->saved_input, row->saved_output, row->priced > 0, row->saved);
    json_name(out, "first_at");
    json_time(out, row->first);
    json_name(out, "last_at");
    json_time(out, row->last);
}

static enum status write_run(void *ctx, const void *at, struct why *why)
{
    struct runs_state *state = ctx;
    const struct r_run_list *row = at;
    struct json_out *out = &state->out;
    if (state->count++ == state->limit)
        return OK; /* one more than asked for: there is a next page */
    json_open(out, '{');
    json_name(out, "run");
    json_text(out, row->run);
    write_sums(out, row);
    json_close(out, '}');
    if (row->run.len > RUN_NAME_MAX)
        return why_set(why, BROKEN, "the name of a run is too long");
    struct buf next;
    buf_init(&next, sizeof state->next - 1);
    buf_printf(&next, "%lld:%.*s", (long long)row->first, BYTES_ARG(row->run));
    memcpy(state->next, buf_bytes(&next).at, next.len);
    state->next[next.len] = '\0';
    buf_release(&next);
    return OK;
}

static enum status read_list(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct runs_state *state = call->state;
    struct json_out *out = &state->out;
    struct q_run_list query = {call->space, state->before, state->before_run, state->limit + 1};
    json_open(out, '{');
    json_name(out, "data");
    json_open(out, '[');
    TRY(store_run(store, &RUN_LIST, &query, 1, write_run, state, NULL, why));
    json_close(out, ']');
    json_name(out, "page");
    json_open(out, '{');
    json_name(out, "next");
    json_cstr(out, state->count > state->limit ? state->next : NULL);
    json_name(out, "limit");
    json_i64(out, state->limit);
    json_close(out, '}');
    json_close(out, '}');
    return OK;
}

static struct r_run_list as_sum(const struct row_run *row)
{
    return (struct r_run_list){.run = row->run,
                               .executed = row->executed,
                               .replayed = row->replayed,
                               .failed = row->failed,
                               .input = row->input,
                               .output = row->output,
                               .saved_input = row->saved_input,
                               .saved_output = row->saved_output,
                               .priced = row->priced,
                               .spent = row->spent,
                               .saved = row->saved,
                               .first = row->first,
                               .last = row->last};
}

static void add_up(struct r_run_list *sum, const struct r_run_list *one)
{
    sum->executed += one->executed;
    sum->replayed += one->replayed;
    sum->failed += one->failed;
    sum->input += one->input;
    sum->output += one->output;
    sum->saved_input += one->saved_input;
    sum->saved_output += one->saved_output;
    sum->priced += one->priced;
    sum->spent += one->spent;
    sum->saved += one->saved;
    sum->first = sum->first == 0 || one->first < sum->first ? one->first : sum->first;
    sum->last = one->last > sum->last ? one->last : sum->last;
}

static enum status write_part(void *ctx, const void *at, struct why *why)
{
    (void)why;
    struct runs_state *state = ctx;
    const struct row_run *row = at;
    struct r_run_list one = as_sum(row);
    struct json_out *out = &state->out;
    state->count++;
    add_up(&state->sum, &one);
    json_open(out, '{');
    json_name(out, "provider");
    json_text(out, row->provider);
    json_name(out, "model");
    json_text(out, row->model);
    write_sums(out, &one);
    json_close(out, '}');
    return OK;
}

static enum status read_one(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct runs_state *state = call->state;
    struct q_run_get query = {call->space, state->run};
    json_open(&state->out, '{');
    json_name(&state->out, "run");
    json_text(&state->out, state->run);
    json_name(&state->out, "models");
    json_open(&state->out, '[');
    TRY(store_run(store, &RUN_GET, &query, 1, write_part, state, NULL, why));
    json_close(&state->out, ']');
    write_sums(&state->out, &state->sum);
    json_close(&state->out, '}');
    return state->count > 0 ? OK : NOTHING;
}

static void finish_read(struct call *call)
{
    if (call->read.status == NOTHING)
        problem(call, "not_found", "No model call of this run is remembered.");
    else if (call->read.status != OK)
        problem_storage(call, call->read.status, &call->read.why);
    else
        call_reply(call, 200);
}

/* What this node has counted is written first, so that the answer has it. */
static enum status write_first(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    const struct call *call = command->user;
    return runs_write(store, ((const struct runs_state *)call->state)->tally, ledger->now.wall_us, why);
}

static void then_read(struct call *call)
{
    struct runs_state *state = call->state;
    if (call->command.status != OK)
        count_again(call->api, state->tally);
    tally_free(state->tally);
    call_submit_read(call, state->run.at != NULL ? read_one : read_list, finish_read);
}

static void begin(struct runs_state *state)
{
    struct call *call = state->call;
    state->tally = call->api->tally;
    call->api->tally = NULL;
    if (state->tally == NULL) {
        call_submit_read(call, state->run.at != NULL ? read_one : read_list, finish_read);
        return;
    }
    call->command = (struct engine_command){.write = write_first};
    call_submit(call, then_read);
}

static struct runs_state *new_state(struct call *call)
{
    struct runs_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    state->call = call;
    state->out = json_out_to(&call->out);
    state->before = INT64_MAX;
    state->before_run = BYTES("");
    call->state = state;
    return state;
}

void runs_show(struct call *call)
{
    struct runs_state *state = new_state(call);
    state->run = call->params[0];
    begin(state);
}

/* `limit`, and `after`: what page.next was. False when the problem was sent. */
static bool read_page(struct call *call, struct runs_state *state)
{
    struct bytes after = call_query(call, "after"), limit = call_query(call, "limit");
    state->limit = API_LIST_DEFAULT;
    if (limit.at != NULL && (!bytes_to_i64(limit, &state->limit) || state->limit < 1 || state->limit > API_LIST_MAX)) {
        problem_field(call, BYTES("limit"), "limit has to be a number from 1 to %d.", API_LIST_MAX);
        return false;
    }
    if (after.len == 0)
        return true;
    state->before_run = after;
    if (bytes_to_i64(bytes_cut(&state->before_run, ':'), &state->before))
        return true;
    problem_field(call, BYTES("after"), "after has to be the page.next of an earlier answer.");
    return false;
}

void runs_list(struct call *call)
{
    static const char *const known[] = {"limit", "after", NULL};
    struct runs_state *state = new_state(call);
    if (call_query_known(call, known) && read_page(call, state))
        begin(state);
}
