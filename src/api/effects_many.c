/* effects_many: the same done to all effects of a filter, counted first if asked. What may have happened is never touched: that
 * is decided one by one.
 *
 * They are gone through from the newest to the oldest, so that what is made meanwhile is not among them: a page, one transaction,
 * the next page. A call does so many and says where to go on (`next`); one that is cut off has done whole pages, and those are
 * not found again, or it does no harm to do them again. */
#include <stdatomic.h>

#include "api/effects.h"

#define MANY_AT_ONCE 100 /* in one transaction: so long nobody else writes */
#define MANY_DEFAULT 1000
#define MANY_MAX 10000

enum { STEP_UNSAID = -1 };

/* Why one of them was left as it is. */
enum many_refusal {
    MANY_NOT_REFUSED = -1,
    MANY_MAY_HAVE_HAPPENED,
    MANY_IN_PROGRESS,
    MANY_SETTLED,
    MANY_CALLER_DECIDES,
    MANY_REFUSAL_COUNT
};
static const char *const refusal_names[] = {"may_have_happened", "in_progress", "settled", "caller_decides"};

struct many_counts {
    int64_t matched, done, refused[MANY_REFUSAL_COUNT];
};

struct many_state {
    struct bytes destination, after;
    int step;
    bool dry_run;
    int64_t limit;

    bool cancels; /* or it retries */
    int64_t seen; /* in this call */
    int64_t before;
    bool more;
    struct many_counts all, page;
    int64_t left; /* behind `before`, of those that would be matched */
    struct r_effect_walk effects[MANY_AT_ONCE];
    size_t count;
    struct engine_command commands[MANY_AT_ONCE]; /* cancel */
    _Atomic size_t under_way;
};

static const struct json_field many_fields[] = {
    {"destination", JSON_FIELD_TEXT, offsetof(struct many_state, destination), false, 1, DESTINATION_NAME_MAX, NULL},
    {"step", JSON_FIELD_ENUM, offsetof(struct many_state, step), false, 0, 0, outbox_step_names},
    {"dry_run", JSON_FIELD_BOOL, offsetof(struct many_state, dry_run), false, 0, 0, NULL},
    {"limit", JSON_FIELD_INT, offsetof(struct many_state, limit), false, 1, MANY_MAX, NULL},
    {"after", JSON_FIELD_TEXT, offsetof(struct many_state, after), false, 0, 32, NULL},
};

/* ---- what may be done ---- */

static enum many_refusal judge(const struct many_state *state, int64_t intent_state, int64_t ambiguous, int64_t attended)
{
    switch ((enum intent_state)intent_state) {
    case STATE_PENDING:
        /* A caller who waited was told that it failed. Sent again it would surprise the one who gave it up. */
        return ambiguous != 0                     ? MANY_MAY_HAVE_HAPPENED
               : attended != 0 && !state->cancels ? MANY_CALLER_DECIDES
                                                  : MANY_NOT_REFUSED;
    case STATE_CLAIMED:
    case STATE_SENT:
        return MANY_IN_PROGRESS;
    case STATE_UNKNOWN:
        return MANY_MAY_HAVE_HAPPENED;
    case STATE_CONFIRMED:
    case STATE_REFUSED:
    case STATE_COUNT:
        break;
    }
    return MANY_SETTLED;
}

static void count(struct many_counts *counts, enum many_refusal refusal, int64_t effects)
{
    if (refusal == MANY_NOT_REFUSED)
        counts->matched += effects;
    else
        counts->refused[refusal] += effects;
}

/* ---- looking ---- */

static enum status take_effect(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct many_state *state = ctx;
    state->effects[state->count++] = *(const struct r_effect_walk *)row;
    return OK;
}

static enum status find_page(struct store *store, struct call *call, struct why *why)
{
    struct many_state *state = call->state;
    int64_t left = state->limit - state->seen;
    struct q_effect_walk walk = {call->space, state->destination, state->step, state->before,
                                 left < MANY_AT_ONCE ? left : MANY_AT_ONCE};
    state->count = 0;
    state->page = (struct many_counts){0};
    return store_run(store, &EFFECT_WALK, &walk, 1, take_effect, state, NULL, why);
}

struct tallying {
    const struct many_state *state;
    struct many_counts counts;
};

static enum status take_tally(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct tallying *tallying = ctx;
    const struct r_effect_tally *got = row;
    count(&tallying->counts, judge(tallying->state, got->state, got->ambiguous, got->attended), got->effects);
    return OK;
}

/* Of a dry run all of them; after a real one those that are left. */
static enum status read_tally(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct many_state *state = call->state;
    struct tallying tallying = {.state = state};
    struct q_effect_tally tally = {call->space, state->destination, state->step, state->before};
    TRY(store_run(store, &EFFECT_TALLY, &tally, 1, take_tally, &tallying, NULL, why));
    if (state->dry_run)
        state->all = tallying.counts;
    state->left = tallying.counts.matched;
    for (int i = 0; i < MANY_REFUSAL_COUNT; i++)
        state->more |= !state->dry_run && tallying.counts.refused[i] > 0;
    state->more |= !state->dry_run && state->left > 0;
    return OK;
}

/* ---- answering ---- */

static void write_counts(struct call *call, struct json_out *out)
{
    const struct many_state *state = call->state;
    json_name(out, "matched");
    json_i64(out, state->all.matched);
    json_name(out, state->cancels ? "cancelled" : "retried");
    json_i64(out, state->all.done);
    json_name(out, "refused");
    json_open(out, '{');
    for (int i = 0; i < MANY_REFUSAL_COUNT; i++)
        if (state->all.refused[i] > 0) {
            json_name(out, refusal_names[i]);
            json_i64(out, state->all.refused[i]);
        }
    json_close(out, '}');
}

static void answer(struct call *call)
{
    const struct many_state *state = call->state;
    if (call->read.status != OK) {
        problem_storage(call, call->read.status, &call->read.why);
        return;
    }
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    json_name(&out, "dry_run");
    json_bool(&out, state->dry_run);
    write_counts(call, &out);
    json_name(&out, "left");
    json_i64(&out, state->left);
    json_name(&out, "more");
    json_bool(&out, state->more);
    call_write_id(&out, "next", "eff", state->more ? state->before : 0);
    json_close(&out, '}');
    call_reply(call, 200);
}

/* What was done before the storage failed is done: the client can go on from there. */
static void write_progress(struct call *call, struct json_out *out)
{
    const struct many_state *state = call->state;
    write_counts(call, out);
    call_write_id(out, "next", "eff", state->before == INT64_MAX ? 0 : state->before);
}

static void fail(struct call *call, enum status status, const struct why *why)
{
    problem_storage_with(call, status, why, write_progress);
}

/* ---- page by page ---- */

static void begin_page(struct call *call);

static void end_page(struct call *call)
{
    struct many_state *state = call->state;
    state->all.matched += state->page.matched;
    state->all.done += state->page.done;
    for (int i = 0; i < MANY_REFUSAL_COUNT; i++)
        state->all.refused[i] += state->page.refused[i];
    state->seen += (int64_t)state->count;
    if (state->count > 0)
        state->before = state->effects[state->count - 1].intent;
    if (state->count == MANY_AT_ONCE && state->seen < state->limit)
        begin_page(call);
    else
        call_submit_read(call, read_tally, answer);
}

/* ---- retry ---- */

static enum status record_retry(struct ledger *ledger, const struct call *call, int64_t intent, struct why *why)
{
    struct row_decision *row = audit_add(ledger->audit);
    if (row == NULL)
        return why_set(why, FULL, "no memory for a decision");
    row->space = call->space;
    row->kind = BYTES("retry");
    row->intent = intent;
    row->state = -1;
    row->policy = call->api->policy_version;
    row->actor = call->actor;
    return OK;
}

static enum status retry_one(struct store *store, struct ledger *ledger, const struct call *call,
                             const struct r_effect_walk *found, bool *ret_changed, struct why *why)
{
    struct row_effect effect = {
        .intent = found->intent, .space = call->space, .due = found->due, .deadline = found->deadline, .created = found->created};
    TRY(outbox_again(store, ledger, &effect, ret_changed, why));
    if (!*ret_changed)
        return OK;
    if (found->step == STEP_PERSON)
        TRY(exception_close(store, ledger, found->intent, EXCEPTION_DEAD_LETTER, BYTES("retry"), call->actor, BYTES_NONE, why));
    return record_retry(ledger, call, found->intent, why);
}

/* In one transaction with the look. On PostgreSQL another node may still take one in between: then its row has changed. */
static enum status write_page(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct call *call = command->user;
    struct many_state *state = call->state;
    TRY(find_page(store, call, why));
    for (size_t i = 0; i < state->count; i++) {
        const struct r_effect_walk *found = &state->effects[i];
        enum many_refusal refusal = judge(state, found->state, found->ambiguous, found->attended);
        bool changed = false;
        if (refusal == MANY_NOT_REFUSED)
            TRY(retry_one(store, ledger, call, found, &changed, why));
        count(&state->page, refusal == MANY_NOT_REFUSED && !changed ? MANY_IN_PROGRESS : refusal, 1);
        state->page.done += changed;
    }
    return OK;
}

static void page_written(struct call *call)
{
    if (call->command.status != OK) {
        fail(call, call->command.status, &call->command.why);
        return;
    }
    act_wake(call->api->act);
    end_page(call);
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

/* Somebody else may have taken one since the look: the ledger knows. A page that could not be written was not gone through. */
static void page_cancelled(void *arg)
{
    struct call *call = arg;
    struct many_state *state = call->state;
    for (size_t i = 0; i < (size_t)state->page.matched; i++)
        if (state->commands[i].status != OK) {
            fail(call, state->commands[i].status, &state->commands[i].why);
            return;
        }
    for (int64_t i = 0, matched = state->page.matched; i < matched; i++) {
        const struct ledger_answer *answer = &state->commands[i].answer;
        bool done = answer->verdict == VERDICT_DONE && answer->state == STATE_REFUSED;
        state->page.done += done;
        state->page.matched -= !done;
        state->page.refused[MANY_IN_PROGRESS] += !done;
    }
    end_page(call);
}

/* On the writer thread. */
static void one_cancelled(struct engine_command *command)
{
    struct call *call = command->user;
    struct many_state *state = call->state;
    if (atomic_fetch_sub(&state->under_way, 1) == 1)
        http_server_post(call->api->server, page_cancelled, call);
}

static struct engine_command cancel_of(struct call *call, const struct r_effect_walk *found)
{
    return (struct engine_command){
        .ledger = {.op = OP_FAIL,
                   .space = call->space,
                   .actor = call->actor,
                   .policy = call->api->policy_version,
                   .intent = found->intent,
                   .fence = found->fence,
                   .final = true,
                   .error = BYTES("cancelled before it was sent")},
        .also = also_cancelled,
        .arena = call->request->arena,
        .done = one_cancelled,
        .user = call,
    };
}

static void page_found(struct call *call)
{
    struct many_state *state = call->state;
    if (call->read.status != OK) {
        fail(call, call->read.status, &call->read.why);
        return;
    }
    for (size_t i = 0; i < state->count; i++) {
        const struct r_effect_walk *found = &state->effects[i];
        enum many_refusal refusal = judge(state, found->state, found->ambiguous, found->attended);
        if (refusal == MANY_NOT_REFUSED)
            state->commands[state->page.matched] = cancel_of(call, found);
        count(&state->page, refusal, 1);
    }
    size_t matched = (size_t)state->page.matched;
    state->under_way = matched;
    for (size_t i = 0; i < matched; i++)
        engine_submit(call->api->engine, &state->commands[i]);
    if (matched == 0)
        end_page(call);
}

static enum status read_page(struct store *store, struct engine_read *read, struct why *why)
{
    return find_page(store, read->user, why);
}

/* ---- both ---- */

static void begin_page(struct call *call)
{
    const struct many_state *state = call->state;
    if (state->cancels) {
        call_submit_read(call, read_page, page_found);
        return;
    }
    call->command = (struct engine_command){.write = write_page};
    call_submit(call, page_written);
}

static void begin(struct call *call, bool cancels)
{
    struct many_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    state->step = STEP_UNSAID;
    state->limit = MANY_DEFAULT;
    state->before = INT64_MAX;
    state->cancels = cancels;
    call->state = state;
    if (!call_body(call, many_fields, sizeof many_fields / sizeof *many_fields, state))
        return;
    if (state->after.len > 0 && !id_parse("eff", state->after, &state->before))
        problem_field(call, BYTES("after"), "after has to be the next of an earlier answer, such as eff_….");
    else if (state->dry_run)
        call_submit_read(call, read_tally, answer);
    else
        begin_page(call);
}

void effects_retry_many(struct call *call)
{
    begin(call, false);
}

void effects_cancel_many(struct call *call)
{
    begin(call, true);
}
