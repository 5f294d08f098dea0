/* flight: one tool call through the ledger, on a worker's thread. */
#include <stdlib.h>
#include <unistd.h>

#include "agent/proxy.h"
#include "base/when.h"
#include "cli/client.h"
#include "cli/print.h"
#include "env/env.h"
#include "run/hold.h"
#include "run/spool.h"

#define ARENA_MAX ((size_t)256 << 20)
#define SAY_US (10 * WHEN_SECOND) /* how long a word to the ledger is tried before it is spooled */
#define PAUSE_US (200 * WHEN_MS)

struct worker {
    struct proxy *proxy;
    struct cli cli; /* a copy with an arena and a connection of its own */
    struct way way;
};

/* ---- waiting ---- */

static int64_t now_us(void)
{
    return env_real()->boot_us(env_real());
}

/* ---- the list ---- */

static void unlink_flight(struct proxy *proxy, struct flight *flight)
{
    struct flight **at = &proxy->flights;
    while (*at != flight)
        at = &(*at)->next;
    *at = flight->next;
    proxy->flight_count--;
    pthread_cond_broadcast(&proxy->changed);
}

/* With the lock, or before anyone else knows it. */
static void flight_free(struct flight *flight)
{
    if (flight->same != NULL && --flight->same->uses == 0)
        free(flight->same);
    buf_release(&flight->line);
    buf_release(&flight->answer);
    arena_release(&flight->arena);
    free(flight);
}

/* ---- answering ---- */

static bool is_abandoned(struct proxy *proxy, struct flight *flight)
{
    pthread_mutex_lock(&proxy->lock);
    bool abandoned = flight->abandoned;
    pthread_mutex_unlock(&proxy->lock);
    return abandoned;
}

/* `settles`: an equal call after this one may be meant anew, where the rules let it repeat. */
static void answer(struct worker *worker, struct flight *flight, struct bytes line, bool settles)
{
    struct why why = {""};
    int code = CLI_OK;
    if (is_abandoned(worker->proxy, flight))
        return;
    if (settles && flight->calls.content != NULL && /* before the client can send the next one */
        way_answered(&worker->way, &flight->calls, &code, &why) != OK)
        cli_note("an equal call will be given this result once more, because the ledger cannot be used now: %s", why.text);
    pthread_mutex_lock(&worker->proxy->lock);
    flight->told = true; /* also before that */
    pthread_mutex_unlock(&worker->proxy->lock);
    proxy_tell(worker->proxy, line);
}

/* A person's way to settle it, and the model's advice not to. */
static void tell_unknown(struct proxy *proxy, struct flight *flight, const char *intent, const char *what)
{
    if (!is_abandoned(proxy, flight))
        proxy_tell_error(
            proxy, flight->message.id, MCP_ERROR_OUTCOME_UNKNOWN, intent,
            "%s Nobody can tell whether %.*s happened. Do not call it again with these arguments: it could happen twice. "
            "Tell the user. A person settles it: `semel why %s`, then `semel exceptions ls` and `semel exceptions "
            "resolve`; after that the same call gives the result or runs.",
            what, (int)(flight->call.tool.len < 64 ? flight->call.tool.len : 64), flight->call.tool.at, intent);
}

static void tell_replay(struct worker *worker, struct flight *flight, const struct way_answer *claim)
{
    struct proxy *proxy = worker->proxy;
    struct buf out;
    buf_init(&out, 2 * MCP_LINE_MAX);
    bool written = flight->turn.named ? mcp_write_turn_replay(&out, flight->message.id, &claim->result, claim->intent)
                                      : mcp_write_replay(&out, flight->message.id, &claim->result, claim->intent);
    if (written && !out.failed)
        answer(worker, flight, buf_bytes(&out), true);
    else if (!is_abandoned(proxy, flight))
        proxy_tell_error(
            proxy, flight->message.id, MCP_ERROR_NOT_KEPT, claim->intent,
            "This call was made before and it happened, but its result is not kept. Do not call it again; look at what it did "
            "instead.");
    buf_release(&out);
}

static void tell_settled(struct proxy *proxy, struct flight *flight, const struct way_answer *claim)
{
    if (is_abandoned(proxy, flight))
        return;
    if (claim->verdict == VERDICT_KEY_REUSED)
        proxy_tell_error(proxy, flight->message.id, MCP_ERROR_KEY_REUSED, claim->intent,
                         "The idempotency key was used before with other arguments. Use a new key for a new call.");
    else if (claim->verdict == VERDICT_REFUSED)
        proxy_tell_error(proxy, flight->message.id, MCP_ERROR_REFUSED, claim->intent,
                         "This call was given up and will not be made: %.*s", BYTES_ARG(claim->error));
    else if (claim->verdict == VERDICT_EXPIRED)
        proxy_tell_error(proxy, flight->message.id, MCP_ERROR_NOT_KEPT, claim->intent,
                         "This call was settled long ago, and its result is not kept any more. Do not call it again.");
    else if (claim->other)
        proxy_tell_error(proxy, flight->message.id, MCP_ERROR_IN_PROGRESS, claim->intent, "%s", MCP_OTHER_IN_PROGRESS);
    else
        proxy_tell_error(proxy, flight->message.id, MCP_ERROR_IN_PROGRESS, claim->intent,
                         "The same call is still running elsewhere. Wait, then call it again: it will give that call's result.");
}

/* ---- what the ledger is told ---- */

/* Until it is durable in the ledger or in the spool. False when neither could be done, which is said. */
static bool say(struct worker *worker, const struct way_say *what, enum ledger_verdict *ret_verdict)
{
    int64_t until_us = now_us() + SAY_US;
    struct why why = {""};
    char path[4096];
    for (;;) {
        int code = CLI_OK;
        enum status status = way_say(&worker->way, what, ret_verdict, &code, &why);
        if (status == OK && *ret_verdict != VERDICT_DONE)
            cli_note("WARNING: the tool was called, but what became of it was not taken: %s", why.text);
        if (status == OK)
            return true;
        if (status == INVALID || now_us() > until_us)
            break;
        usleep((useconds_t)PAUSE_US);
    }
    *ret_verdict = VERDICT_DONE;
    struct why spool_why = {""};
    if (spool_keep(&worker->way, what, path, &spool_why) == OK) {
        cli_note("what became of %s is kept in %s until the next semel run or semel status delivers it: %s", what->intent, path,
                 why.text);
        return true;
    }
    cli_note("WARNING: what became of %s could be neither delivered nor kept: %s; %s", what->intent, why.text, spool_why.text);
    return false;
}

static void say_failed(struct worker *worker, const struct way_say *claim, bool effect_unknown, struct bytes error)
{
    enum ledger_verdict verdict = VERDICT_DONE;
    struct way_say fail = *claim;
    fail.op = OP_FAIL;
    fail.effect_unknown = effect_unknown;
    fail.error = error;
    (void)say(worker, &fail, &verdict);
}

/* ---- the server's part ---- */

/* Sends the line and waits, keeping the claim. Returns true with the answer in the flight. */
static bool call_server(struct worker *worker, struct flight *flight, const struct way_say *claim, bool *ret_begun)
{
    struct proxy *proxy = worker->proxy;
    struct way_say beat = *claim;
    beat.op = OP_EXTEND;
    beat.lease_us = proxy->lease_us;
    *ret_begun = false;
    pthread_mutex_lock(&proxy->lock);
    flight->generation = server_wait_ready(proxy);
    flight->at_server = flight->generation != 0;
    pthread_mutex_unlock(&proxy->lock);
    if (!flight->at_server || !server_send(proxy, buf_bytes(&flight->line), flight->generation, ret_begun))
        return false;
    int64_t beat_us = now_us() + proxy->lease_us / 3, end_us = INT64_MAX;
    pthread_mutex_lock(&proxy->lock);
    while (!flight->answered && !flight->lost && now_us() < end_us) {
        if (proxy->leaving && end_us == INT64_MAX)
            end_us = now_us() + proxy->linger_us;
        if (now_us() >= beat_us) {
            struct why why;
            enum ledger_verdict verdict = VERDICT_DONE;
            pthread_mutex_unlock(&proxy->lock);
            if (way_say(&worker->way, &beat, &verdict, &(int){0}, &why) == OK && verdict != VERDICT_DONE)
                cli_note("WARNING: the claim on %s is lost while its tool runs: %s", beat.intent, why.text);
            arena_clear(&worker->cli.arena);
            beat_us = now_us() + proxy->lease_us / 3;
            pthread_mutex_lock(&proxy->lock);
            continue;
        }
        proxy_wait_until(proxy, beat_us < end_us ? beat_us : end_us);
    }
    bool answered = flight->answered;
    *ret_begun = !flight->untouched;
    pthread_mutex_unlock(&proxy->lock);
    return answered;
}

static void settle_answer(struct worker *worker, struct flight *flight, const struct way_say *claim)
{
    struct mcp_message message;
    struct bytes kept = BYTES_NONE, line = buf_bytes(&flight->answer);
    enum ledger_verdict verdict = VERDICT_DONE;
    mcp_message_read(line, &message);
    enum mcp_outcome outcome = flight->answer.failed ? MCP_UNSURE : mcp_judge(&message, &flight->arena, &kept);
    if (outcome == MCP_DONE) {
        struct way_say confirm = *claim;
        confirm.op = OP_CONFIRM;
        confirm.result = kept;
        (void)say(worker, &confirm, &verdict);
    } else {
        struct bytes error = arena_printf(&flight->arena, "the MCP server answered: %s", mcp_outcome_names[outcome]);
        say_failed(worker, claim, mcp_effect_unknown(outcome, &flight->treatment), error);
    }
    answer(worker, flight, line, outcome == MCP_DONE);
}

static void carry_out(struct worker *worker, struct flight *flight, const struct way_answer *answered)
{
    struct proxy *proxy = worker->proxy;
    struct way_say claim = {.op = OP_SENT, .fence = answered->fence, .direct = answered->direct};
    int hold = answered->hold;
    struct why why = {""};
    enum ledger_verdict verdict = VERDICT_DONE;
    bool begun = false;
    memcpy(claim.intent, answered->intent, sizeof claim.intent);
    arena_clear(&worker->cli.arena);
    if (way_say(&worker->way, &claim, &verdict, &(int){0}, &why) != OK || verdict != VERDICT_DONE) {
        say_failed(worker, &claim, false, BYTES("it could not be begun"));
        proxy_tell_error(proxy, flight->message.id, MCP_ERROR_UNAVAILABLE, claim.intent, "The tool was not called: %s", why.text);
    } else if (call_server(worker, flight, &claim, &begun)) {
        settle_answer(worker, flight, &claim);
    } else if (!begun) {
        say_failed(worker, &claim, false, BYTES("the MCP server is not there"));
        proxy_tell_error(proxy, flight->message.id, MCP_ERROR_UNAVAILABLE, claim.intent,
                         "The tool was not called: %s. Nothing happened; the call may be made again.",
                         flight->untouched ? flight->why.text : "its MCP server is not there");
    } else {
        say_failed(worker, &claim, true, BYTES("the MCP server ended, or was left, before it answered"));
        tell_unknown(proxy, flight, claim.intent, "The MCP server ended, or was lost, while it worked on this call.");
    }
    if (answered->direct)
        hold_drop(proxy->data, claim.intent, claim.fence, hold);
}

/* Shadow mode, or told to call whatever happens: as if semel were not there. */
static void pass(struct proxy *proxy, struct flight *flight)
{
    (void)proxy_pass_request(proxy, buf_bytes(&flight->line), &flight->message);
}

/* ---- claiming ---- */

/* An answer in a conversation is named by that, any other call by its arguments. */
static struct way_claim name(const struct proxy *proxy, struct flight *flight, struct answer_naming *answer)
{
    const struct mcp_turn *turn = &flight->turn;
    struct way_claim order = {.run = proxy->run, .lease_us = proxy->lease_us, .on_unknown = -1};
    if (turn->named) {
        *answer =
            (struct answer_naming){turn->event, turn->question, turn->epoch == MCP_EPOCH_UNSAID ? EPOCH_UNSAID : turn->epoch};
        order.answer = answer;
        order.thread = turn->thread;
        order.action = turn->action;
        return order; /* also when the tool may be called again: that holds for equal calls, and answers say things anew */
    }
    if (flight->treatment.idempotent)
        order.on_unknown = ON_UNKNOWN_RETRY;
    order.workflow = proxy->workflow;
    order.key = mcp_key_text(&flight->identity, proxy->run, flight->call.tool, flight->calls.number, &flight->arena);
    order.action = flight->call.tool.len <= MCP_ACTION_MAX ? flight->call.tool : BYTES_NONE;
    order.input = flight->identity.input;
    return order;
}

static bool claim(struct worker *worker, struct flight *flight, struct way_answer *ret)
{
    struct proxy *proxy = worker->proxy;
    int64_t until_us = now_us() + proxy->wait_us;
    struct answer_naming answer;
    const struct way_claim order = name(proxy, flight, &answer);
    for (int64_t wait_us = 0;;) {
        struct why why = {""};
        int code = CLI_OK;
        enum status status = way_claim(&worker->way, &order, wait_us, ret, &code, &why);
        int64_t left_us = until_us - now_us();
        bool waits = status == OK && ret->verdict == VERDICT_IN_PROGRESS && left_us > 0 && !is_abandoned(proxy, flight);
        if (status != OK && proxy->call_if_unreachable && code == CLI_UNREACHABLE) {
            cli_note("nothing answers: a tool is called without semel. Nothing remembers that it was.");
            pass(proxy, flight);
            return false;
        }
        if (status == INVALID && code == CLI_DATA && flight->turn.named) {
            proxy_tell_error(proxy, flight->message.id, MCP_ERROR_PARAMS, NULL,
                             "The tool was not called: what is answered was not said, or is not there. %s", why.text);
            return false;
        }
        if (status != OK) {
            proxy_tell_error(proxy, flight->message.id, MCP_ERROR_UNAVAILABLE, NULL,
                             "The tool was not called, because semel's ledger cannot be used now: %s", why.text);
            return false;
        }
        if (!waits)
            return true;
        way_wait(&worker->way, ret, left_us);
        wait_us = left_us;
        arena_clear(&worker->cli.arena);
    }
}

/* ---- counting ---- */

static bool is_counted(const struct way_calls *calls)
{
    return calls->per_run > 0 || calls->content != NULL;
}

/* The number that an equal call got, or true: this one has to ask for it. */
static bool asks_number(struct proxy *proxy, struct flight *flight)
{
    struct same *same = flight->same;
    if (same == NULL)
        return false;
    pthread_mutex_lock(&proxy->lock);
    bool first = !same->asked;
    same->asked = true;
    while (!first && !same->known)
        pthread_cond_wait(&proxy->changed, &proxy->lock);
    flight->calls.number = same->number;
    bool asks = first || same->number == 0;
    pthread_mutex_unlock(&proxy->lock);
    return asks;
}

static void share_number(struct proxy *proxy, struct flight *flight, bool counted)
{
    pthread_mutex_lock(&proxy->lock);
    flight->same->number = counted ? flight->calls.number : 0;
    flight->same->known = true;
    pthread_cond_broadcast(&proxy->changed);
    pthread_mutex_unlock(&proxy->lock);
}

static enum status ask_ledger(struct worker *worker, struct flight *flight, int *ret_code, struct why *why)
{
    bool asks = asks_number(worker->proxy, flight);
    struct way_calls calls = flight->calls;
    if (!asks)
        calls.content = NULL;
    if (!is_counted(&calls))
        return OK;
    enum status status = way_count(&worker->way, &calls, ret_code, why);
    flight->calls.refused = status == OK && calls.refused;
    if (asks) {
        flight->calls.number = status == OK && !calls.refused ? calls.number : 1;
        share_number(worker->proxy, flight, status == OK && !calls.refused);
    }
    arena_clear(&worker->cli.arena);
    return status;
}

/* False when it was answered. */
static bool count(struct worker *worker, struct flight *flight)
{
    struct proxy *proxy = worker->proxy;
    struct why why = {""};
    int code = CLI_OK;
    enum status status = ask_ledger(worker, flight, &code, &why);
    if (status != OK && !(proxy->call_if_unreachable && code == CLI_UNREACHABLE))
        proxy_tell_error(proxy, flight->message.id, MCP_ERROR_UNAVAILABLE, NULL,
                         "The tool was not called, because semel's ledger cannot be used now: %s", why.text);
    else if (flight->calls.refused)
        proxy_tell_error(proxy, flight->message.id, MCP_ERROR_BUDGET, NULL,
                         "This run has used up its tool calls (calls_per_run in the policy). Stop, and tell the user.");
    else
        return true;
    return false;
}

static void fly(struct worker *worker, struct flight *flight)
{
    struct proxy *proxy = worker->proxy;
    struct way_answer claimed = {.hold = -1};
    if (!count(worker, flight))
        return;
    if (flight->treatment.passes) {
        pass(proxy, flight);
        return;
    }
    if (!claim(worker, flight, &claimed))
        return;
    switch (claimed.verdict) {
    case VERDICT_PROCEED:
        if (claimed.fence == 0) /* shadow mode: a duplicate that is let through is nobody's result */
            pass(proxy, flight);
        else
            carry_out(worker, flight, &claimed);
        return;
    case VERDICT_REPLAY:
        tell_replay(worker, flight, &claimed);
        return;
    case VERDICT_OUTCOME_UNKNOWN:
        if (!claimed.other)
            tell_unknown(proxy, flight, claimed.intent, "An earlier call with these arguments stopped in the middle.");
        else if (!is_abandoned(proxy, flight))
            proxy_tell_error(proxy, flight->message.id, MCP_ERROR_OUTCOME_UNKNOWN, claimed.intent, "%s", MCP_OTHER_UNKNOWN);
        return;
    case VERDICT_IN_PROGRESS:
    case VERDICT_KEY_REUSED:
    case VERDICT_REFUSED:
    case VERDICT_EXPIRED:
    case VERDICT_DONE:
    case VERDICT_FENCED:
    case VERDICT_DIFFERS:
    case VERDICT_ALREADY_SENT:
    case VERDICT_NOT_FOUND:
        break;
    }
    tell_settled(proxy, flight, &claimed);
}

/* ---- workers ---- */

static void *worker_main(void *arg)
{
    struct proxy *proxy = arg;
    struct worker *worker = calloc(1, sizeof *worker);
    ASSERT(worker != NULL);
    worker->proxy = proxy;
    worker->cli = *proxy->cli;
    worker->cli.client = NULL;
    arena_init(&worker->cli.arena, ARENA_MAX);
    worker->way = (struct way){.cli = &worker->cli, .data = proxy->data};
    pthread_mutex_lock(&proxy->lock);
    for (;;) {
        struct flight *flight = proxy->queued;
        if (flight == NULL) {
            proxy->idle++;
            pthread_cond_wait(&proxy->changed, &proxy->lock);
            proxy->idle--;
            continue;
        }
        proxy->queued = flight->next_queued;
        if (proxy->queued == NULL)
            proxy->queued_end = &proxy->queued;
        pthread_mutex_unlock(&proxy->lock);
        fly(worker, flight);
        arena_clear(&worker->cli.arena);
        pthread_mutex_lock(&proxy->lock);
        unlink_flight(proxy, flight);
        flight_free(flight);
    }
    return NULL;
}

/* With the lock. A worker for each call that waits, up to the limit; the others wait their turn. */
static void wake_worker(struct proxy *proxy)
{
    pthread_t thread;
    size_t waiting = 0;
    for (struct flight *flight = proxy->queued; flight != NULL; flight = flight->next_queued)
        waiting++;
    if (waiting > proxy->idle && proxy->workers < WORKERS_MAX && pthread_create(&thread, NULL, worker_main, proxy) == 0) {
        pthread_detach(thread);
        proxy->workers++;
    }
    pthread_cond_broadcast(&proxy->changed);
}

/* ---- the beginning ---- */

static struct flight *flight_new(struct bytes line)
{
    struct flight *flight = calloc(1, sizeof *flight);
    ASSERT(flight != NULL);
    buf_init(&flight->line, MCP_LINE_MAX);
    buf_init(&flight->answer, MCP_LINE_MAX);
    arena_init(&flight->arena, ARENA_MAX);
    buf_add(&flight->line, line);
    mcp_message_read(buf_bytes(&flight->line), &flight->message);
    return flight;
}

static bool id_in_use(const struct proxy *proxy, struct bytes id)
{
    for (const struct flight *flight = proxy->flights; flight != NULL; flight = flight->next)
        if (bytes_eq(flight->message.id, id))
            return true;
    return false;
}

/* With the lock. NULL when it may fly, else why not. */
static const char *admit(struct proxy *proxy, const struct flight *flight, enum mcp_error *ret_code)
{
    *ret_code = MCP_ERROR_REQUEST;
    if (bytes_is(flight->message.id, "null") || id_in_use(proxy, flight->message.id))
        return "The id of this request is null, or that of a tool call which is still under way.";
    *ret_code = MCP_ERROR_UNAVAILABLE;
    if (proxy->flight_count >= FLIGHTS_MAX)
        return "Too many tool calls are under way. The tool was not called; try again later.";
    return NULL;
}

static struct same *same_of(const struct proxy *proxy, const struct flight *flight)
{
    struct same *same = NULL;
    for (const struct flight *other = proxy->flights; other != NULL && same == NULL; other = other->next)
        if (other->same != NULL && !other->told &&
            hash_equal(hash_bytes(&other->identity.content), hash_bytes(&flight->identity.content)))
            same = other->same;
    if (same == NULL)
        same = calloc(1, sizeof *same);
    ASSERT(same != NULL);
    same->uses++;
    return same;
}

static void launch(struct proxy *proxy, struct flight *flight)
{
    if (flight->calls.content != NULL)
        flight->same = same_of(proxy, flight);
    flight->next = proxy->flights;
    proxy->flights = flight;
    proxy->flight_count++;
    *proxy->queued_end = flight;
    proxy->queued_end = &flight->next_queued;
    wake_worker(proxy);
}

void flight_begin(struct proxy *proxy, struct bytes line, const struct mcp_message *message)
{
    struct flight *flight = flight_new(line);
    struct why why = {""};
    enum mcp_error code = MCP_ERROR_PARAMS;
    const char *refused = NULL;
    bool passes = false;
    if (mcp_call_read(flight->message.params, &flight->arena, &flight->call, &why) != OK)
        refused = why.text;
    pthread_mutex_lock(&proxy->lock);
    if (refused == NULL)
        refused = admit(proxy, flight, &code);
    if (refused == NULL) {
        flight->treatment = mcp_treat(&proxy->rules, &proxy->hints, flight->call.tool);
        bool repeats = !flight->treatment.passes && flight->treatment.repeat_us >= 0;
        flight->calls = (struct way_calls){.server = proxy->name,
                                           .run = proxy->run,
                                           .per_run = proxy->rules.calls_per_run,
                                           .content = repeats ? &flight->identity.content : NULL,
                                           .repeat_us = flight->treatment.repeat_us,
                                           .number = 1};
        passes = flight->treatment.passes && !is_counted(&flight->calls);
        if (!flight->treatment.passes &&
            (mcp_turn_of(&flight->call, &flight->treatment, &flight->arena, &flight->turn, &why) != OK ||
             mcp_identify(&flight->call, &flight->treatment, proxy->name, &flight->arena, &flight->identity, &why) != OK)) {
            code = MCP_ERROR_PARAMS;
            refused = why.text;
        }
    }
    bool flies = refused == NULL && !passes;
    if (flies)
        launch(proxy, flight);
    pthread_mutex_unlock(&proxy->lock);
    if (refused != NULL)
        proxy_tell_error(proxy, message->id, code, NULL, "%s", refused);
    else if (passes)
        (void)proxy_pass_request(proxy, line, message);
    if (!flies)
        flight_free(flight);
}

void flights_finish(struct proxy *proxy)
{
    int64_t until_us = now_us() + proxy->linger_us + SAY_US + 5 * WHEN_SECOND;
    pthread_mutex_lock(&proxy->lock);
    while (proxy->flight_count > 0 && now_us() < until_us)
        proxy_wait_until(proxy, until_us);
    pthread_mutex_unlock(&proxy->lock);
}
