#include "api/llm.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/when.h"
#include "destination/destination_read.h"
#include "destination/header.h"

#define OCCURRENCE_MAX 1000000
#define KEY_PARTS_MAX (16 + SETTING_LIST_MAX)
#define BODY_ARENA_MAX (256u << 20)

static const struct json_limits body_limits = {128, 2000000, DESTINATION_BODY_MAX};

/* ---- figures ---- */

static struct llm_figures *figures_of(struct llm *llm, struct bytes provider)
{
    for (size_t i = 0; i < llm->figure_count; i++)
        if (bytes_is(provider, llm->figures[i].provider))
            return &llm->figures[i];
    if (llm->figure_count == LLM_PROVIDERS_MAX - 1)
        provider = BYTES("other");
    else if (llm->figure_count == LLM_PROVIDERS_MAX)
        return &llm->figures[LLM_PROVIDERS_MAX - 1];
    ASSERT(provider.len <= DESTINATION_NAME_MAX);
    struct llm_figures *figures = &llm->figures[llm->figure_count++];
    memcpy(figures->provider, provider.at, provider.len);
    return figures;
}

static int64_t counted(int64_t tokens)
{
    return tokens > 0 ? tokens : 0;
}

/* What the call came to, for its run. */
static void count_in_run(struct llm_call *own, bool whole, int64_t input, int64_t output)
{
    struct api *api = own->forward.call->api;
    int64_t now_us = engine_now(api->engine).wall_us, cost = 0;
    bool replayed = own->forward.replayed;
    struct row_run row = {
        .space = own->forward.call->space,
        .run = own->run,
        .provider = own->forward.destination->name,
        .model = own->model,
        .executed = !replayed && whole,
        .replayed = replayed,
        .failed = !replayed && !whole,
        .first = now_us,
        .last = now_us,
        .expires = now_us + own->keep_us,
    };
    if (whole || replayed) {
        bool priced = destination_cost(own->forward.destination, own->model, input, output, &cost);
        *(replayed ? &row.saved_input : &row.input) = counted(input);
        *(replayed ? &row.saved_output : &row.output) = counted(output);
        *(replayed ? &row.saved : &row.spent) = cost;
        row.priced = priced && (input >= 0 || output >= 0);
    }
    runs_count(api, &row);
}

/* The call is about to be answered. */
static void over(struct forward *forward)
{
    struct llm_call *own = (struct llm_call *)forward;
    struct llm *llm = forward->call->api->llm;
    struct env *env = engine_env(forward->call->api->engine);
    const struct memo_answer *tokens = &forward->attended.tokens;
    bool whole = own->sent && forward->attended.outcome == OUTCOME_DONE && tokens->whole;
    int64_t input = forward->replayed ? forward->notes.input : tokens->input,
            output = forward->replayed ? forward->notes.output : tokens->output;
    llm_keep_end(own);
    llm_follow_end(own);
    if (own->flight != NULL)
        llm_flight_leave(own->flight, whole || forward->replayed, env->boot_us(env));
    if (!own->sent && !forward->replayed)
        return; /* someone else is still at it, or the ledger cannot */
    struct llm_figures *figures = figures_of(llm, forward->destination->name);
    *(forward->replayed ? &figures->hits : whole ? &figures->misses : &figures->failures) += 1;
    if (forward->replayed)
        figures->saved_tokens += (uint64_t)(counted(input) + counted(output));
    if (own->run.at != NULL)
        count_in_run(own, whole, input, output);
}

/* ---- which call it is ---- */

/* Takes the member at the dotted path out of the tree. */
static void leave_out(struct json *json, struct bytes path)
{
    struct bytes rest = path, name = bytes_cut(&rest, '.');
    for (uint32_t i = 0; json->type == JSON_OBJECT && i < json->count; i++) {
        if (!bytes_eq(json->members[i].name, name))
            continue;
        if (rest.len > 0) {
            leave_out(&json->members[i].value, rest);
            return;
        }
        memmove(&json->members[i], &json->members[i + 1], (json->count - i - 1) * sizeof *json->members);
        json->count--;
        return;
    }
}

/* A name that can be shown; others are none. */
static struct bytes take_model(struct llm_call *own, const struct json *body)
{
    struct bytes model = memo_model(own->forward.rules->memo, &own->forward.request, body);
    bool good = model.at != NULL && model.len <= RUN_MODEL_MAX && bytes_is_utf8(model);
    for (size_t i = 0; good && i < model.len; i++)
        good = (unsigned char)model.at[i] >= 0x20 && model.at[i] != 0x7f;
    return good ? arena_dup(own->forward.call->request->arena, model) : BYTES("");
}

/* The hash of the body: of its canonical form without what may differ; of its bytes when it is no JSON. */
static struct hash read_body(struct llm_call *own)
{
    const struct destination *destination = own->forward.destination;
    struct bytes body = own->forward.request.body;
    struct arena arena;
    struct json json;
    struct why why;
    struct buf canonical;
    arena_init(&arena, BODY_ARENA_MAX);
    buf_init(&canonical, DESTINATION_BODY_MAX);
    bool parsed = body.len > 0 && json_parse(body, &body_limits, &arena, &json, &why) == OK;
    own->model = take_model(own, parsed ? &json : NULL);
    for (size_t i = 0; parsed && i < destination->ignore_count; i++)
        leave_out(&json, destination->ignore[i]);
    bool good = parsed && json_canonical(&json, &arena, &canonical, &why) == OK && !canonical.failed;
    struct hash hash = hash_sha256(good ? buf_bytes(&canonical) : body);
    buf_release(&canonical);
    arena_release(&arena);
    return hash;
}

/* The second sample that somebody wants on purpose. */
static bool read_occurrence(struct call *call, struct bytes *ret)
{
    uint64_t n;
    *ret = http_header(&call->request->head, "semel-occurrence");
    if (ret->at == NULL)
        *ret = BYTES("1");
    if (bytes_to_u64(*ret, &n) && n >= 1 && n <= OCCURRENCE_MAX)
        return true;
    problem_field(call, BYTES("Semel-Occurrence"), "Semel-Occurrence has to be a number from 1 to %d.", OCCURRENCE_MAX);
    return false;
}

static bool read_run(struct llm_call *own)
{
    struct call *call = own->forward.call;
    own->run = http_header(&call->request->head, "semel-run");
    if (own->run.at == NULL || (own->run.len >= 1 && own->run.len <= RUN_NAME_MAX && bytes_is_utf8(own->run)))
        return true;
    problem_field(call, BYTES("Semel-Run"), "Semel-Run has to be 1 to %d bytes of UTF-8.", RUN_NAME_MAX);
    return false;
}

static void hash_call(struct llm_call *own, struct bytes scope, struct bytes occurrence)
{
    const struct forward *forward = &own->forward;
    const struct memo_rules *memo = forward->rules->memo;
    struct hash body = read_body(own);
    struct bytes parts[KEY_PARTS_MAX] = {BYTES("semel-llm-1"),
                                         engine_pepper(forward->call->api->engine),
                                         forward->call->space,
                                         forward->destination->name,
                                         forward->request.path,
                                         hash_bytes(&body),
                                         occurrence,
                                         scope,
                                         own->run.at != NULL ? own->run : BYTES("")};
    size_t count = 9;
    for (size_t i = 0; i < memo->vary_count; i++)
        parts[count++] = header_find(own->forward.request.headers, own->forward.request.header_count, memo->vary[i]);
    for (size_t i = 0; forward_brings_credential(forward) && i < forward->credential_count; i++)
        parts[count++] = forward->credentials[i].value;
    own->hash = hash_parts(parts, count);
}
_Static_assert(9 + SETTING_LIST_MAX + FORWARD_CREDENTIALS_MAX <= KEY_PARTS_MAX, "every part has its place");

static bool is_retry(const struct llm_call *own)
{
    uint64_t n;
    return bytes_to_u64(
               header_find(own->forward.request.headers, own->forward.request.header_count, BYTES("x-stainless-retry-count")),
               &n) &&
           n > 0;
}

/* "openai:0123…", and outside of runs and windows the leader of those that are the same. */
static struct bytes make_key(const struct llm_call *own, const char *leader)
{
    char hex[32];
    bytes_to_hex((struct bytes){(const char *)own->hash.at, sizeof hex / 2}, hex);
    return arena_printf(own->forward.call->request->arena, "%.*s:%.*s%s%s", BYTES_ARG(own->forward.destination->name),
                        (int)sizeof hex, hex, leader != NULL ? "~" : "", leader != NULL ? leader : "");
}

static bool name_claim(struct llm_call *own, struct bytes key, struct ledger_command *claim)
{
    struct claim_naming naming = {.workflow = LLM_WORKFLOW, .key = key, .run = own->run};
    if (own->model.len > 0)
        naming.action = own->model;
    if (key.at == NULL || own->model.at == NULL) {
        problem(own->forward.call, "too_large", "The request needs too much memory.");
        return false;
    }
    if (!claims_name(own->forward.call, &naming, claim))
        return false;
    claim->op = OP_CLAIM;
    claim->lease_us = LLM_LEASE_US;
    claim->keep_us = own->keep_us;
    claim->tombstone_us = 0; /* afterwards it is new */
    /* Repeating it changes nothing: it is never held for a person, and not even a lost database makes it doubtful. */
    claim->capability = CAPABILITY_IDEMPOTENT;
    claim->window_us = 400 * WHEN_DAY;
    claim->on_unknown = ON_UNKNOWN_RETRY;
    claim->two_phase = false;
    claim->attempts_max = INT32_MAX; /* its callers decide how often */
    return true;
}

/* ---- the way of a call ---- */

/* Nobody is told of it, and nobody gets its answer but this caller. */
static void send_apart(struct llm_call *own)
{
    own->sent = true;
    forward_send(&own->forward, 0, 0);
}

static void answer_claim(struct call *call)
{
    struct llm_call *own = call->state;
    const struct ledger_answer *answer = &call->command.answer;
    if (call->command.status != OK) {
        forward_release(&own->forward);
        problem_storage(call, call->command.status, &call->command.why);
    } else if (answer->verdict == VERDICT_PROCEED && answer->fence != 0) {
        own->sent = true;
        own->forward.passed = llm_follow_piece;
        llm_keep(call->api, own);
        forward_send(&own->forward, answer->intent, answer->fence);
    } else if (answer->verdict == VERDICT_IN_PROGRESS) {
        forward_release(&own->forward);
        claims_answer(call);
    } else if (answer->verdict != VERDICT_REPLAY || !forward_replay(&own->forward)) {
        send_apart(own); /* shadow mode, or what is remembered is no whole answer */
    }
}

static void claim(struct llm_call *own)
{
    struct call *call = own->forward.call;
    int64_t wait_ms = claims_preferred_wait_ms(call);
    call->command.wait_us = wait_ms > 0 ? wait_ms * WHEN_MS : own->forward.destination->timeout_us + LLM_LEASE_US;
    call_submit(call, answer_claim);
}

/* False when a problem was sent instead. */
static bool remember(struct llm_call *own)
{
    struct call *call = own->forward.call;
    struct llm *llm = call->api->llm;
    struct env *env = engine_env(call->api->engine);
    const struct destination *destination = own->forward.destination;
    struct bytes occurrence;
    if (!read_run(own) || !read_occurrence(call, &occurrence))
        return false;
    bool window = own->run.at == NULL && destination->memo_us > 0, alone = own->run.at == NULL && !window;
    own->keep_us = window ? destination->memo_us : alone ? LLM_RETRY_US : destination->keep_us;
    hash_call(own, window ? BYTES("window") : alone ? BYTES("alone") : BYTES("run"), occurrence);
    struct llm_flight *flight = alone ? llm_flight_find(llm, &own->hash, is_retry(own), env->boot_us(env)) : NULL;
    struct bytes key = make_key(own, !alone ? NULL : flight != NULL ? flight->leader : call->request_id);
    if (!name_claim(own, key, &call->command.ledger) || !forward_authorize(&own->forward, &own->forward.request))
        return false;
    own->forward.over = over;
    if (!call->command.ledger.shadow && llm_follow(llm, own))
        return true;
    if (alone)
        own->flight = llm_flight_join(llm, flight, &own->hash, call->request_id, env->boot_us(env));
    claim(own);
    return true;
}

static bool begin(struct llm_call *own, bool in_policy)
{
    struct forward *forward = &own->forward;
    struct call *call = forward->call;
    const struct http_head *head = &call->request->head;
    forward->rules = destination_call(forward->destination, head->method_text, forward_path(head));
    forward->plain = forward->rules->memo != NULL;
    if (!forward_read(forward))
        return false;
    if (forward->rules->memo != NULL)
        return remember(own);
    figures_of(call->api->llm, forward->destination->name)->passed++;
    if (forward->rules->reads)
        return forward_pass(forward);
    if (in_policy)
        return forward_once(forward);
    problem(call, "not_found",
            "This is no model call that is known. For what else changes something at %.*s, make it a destination of the policy.",
            BYTES_ARG(forward->destination->title));
    return false;
}

void llm_forward(struct call *call)
{
    struct llm_call *own = arena_zalloc(call->request->arena, 1, sizeof *own);
    struct bytes name = call->params[0];
    struct policy *policy = call->api->policy;
    const struct destination *destination = policy_destination(policy, name);
    bool in_policy = destination != NULL;
    ASSERT(own != NULL);
    if (destination == NULL) {
        policy = call->api->llm->built_in;
        destination = policy_destination(policy, name);
    }
    if (destination == NULL || destination->kind != DESTINATION_HTTP) {
        problem(call, "not_found", "There is no provider \"%.*s\": neither in the policy, nor one that works without.",
                (int)(name.len < 64 ? name.len : 64), name.at);
        return;
    }
    if (forward_path(&call->request->head).len == 0) {
        problem(call, "not_found", "The path at the provider begins behind its name: /llm/%.*s/ …", BYTES_ARG(name));
        return;
    }
    forward_open(&own->forward, call, policy, destination);
    if (!begin(own, in_policy))
        policy_free(policy); /* the problem was sent, and the memory of the call is gone with it */
}

/* ---- providers that work without a policy ---- */

static bool has_memo(struct bytes provider)
{
    char text[128];
    struct yaml_problems problems;
    struct policy *policy = NULL;
    bool found = false;
    int len = snprintf(text, sizeof text, "destinations: {%.*s: {}}", BYTES_ARG(provider));
    if (len >= (int)sizeof text || policy_parse((struct bytes){text, (size_t)len}, &policy, &problems) != OK)
        return false; /* it needs to be told something, such as a URL */
    for (size_t i = 0; i < policy->destinations[0].call_count; i++)
        found |= policy->destinations[0].calls[i].memo != NULL;
    policy_free(policy);
    return found;
}

static enum status read_built_in(struct policy **ret, struct why *why)
{
    struct buf text;
    struct yaml_problems problems;
    buf_init(&text, 16 << 10);
    buf_add_cstr(&text, "destinations: {");
    for (size_t i = 0; i < provider_count(); i++)
        if (has_memo(provider_name(i)))
            buf_printf(&text, "%.*s: {}, ", BYTES_ARG(provider_name(i)));
    buf_add_cstr(&text, "}");
    enum status status = text.failed ? FULL : policy_parse(buf_bytes(&text), ret, &problems);
    buf_release(&text);
    return status == OK ? OK : why_set(why, BROKEN, "the providers that are part of semel cannot be read");
}

enum status llm_open(struct llm **ret, struct why *why)
{
    struct llm *llm = calloc(1, sizeof *llm);
    if (llm == NULL)
        return why_set(why, FULL, "no memory for model calls");
    enum status status = read_built_in(&llm->built_in, why);
    if (status != OK) {
        free(llm);
        return status;
    }
    *ret = llm;
    return OK;
}

void llm_close(struct llm *llm)
{
    if (llm == NULL)
        return;
    policy_free(llm->built_in);
    free(llm);
}

void llm_each(const struct llm *llm, void (*each)(void *ctx, const struct llm_figures *figures), void *ctx)
{
    for (size_t i = 0; i < llm->figure_count; i++)
        each(ctx, &llm->figures[i]);
}
