#include "run/way.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/log.h"
#include "base/when.h"
#include "cli/client.h"
#include "cli/print.h"
#include "direct/direct.h"
#include "env/env.h"
#include "run/hold.h"
#include "runs/calls.h"

#define PATIENCE_US (15 * WHEN_SECOND) /* others use the data for moments; a daemon that starts needs a few seconds */
#define HTTP_TIMEOUT_US (10 * WHEN_SECOND)
#define HTTP_WAIT_MAX_US (60 * WHEN_SECOND)
#define LINGER_US (1 * WHEN_SECOND)
#define LOOK_EVERY_US (50 * WHEN_MS)
#define ASK_EVERY_US (250 * WHEN_MS)
#define CLAIM_TRIES 3
#define NONCE_SIZE 16

static void sleep_for(int64_t us)
{
    const struct timespec time = {us / WHEN_SECOND, us % WHEN_SECOND * 1000};
    nanosleep(&time, NULL);
}

/* So that those who wait for the same thing do not come back together. */
static void sleep_about(int64_t us)
{
    uint16_t random;
    env_real()->random(env_real(), &random, sizeof random);
    sleep_for(us / 2 + us * random / UINT16_MAX);
}

static bool is_stopped(const struct way *way)
{
    return way->stop != NULL && atomic_load(way->stop);
}

void way_init(struct way *way, struct cli *cli)
{
    const char *given = cli_text(cli, "--data"), *url = cli_text(cli, "--url"), *db = getenv("SEMEL_DB");
    bool default_url = strcmp(url, "http://127.0.0.1:7363") == 0;
    *way = (struct way){.cli = cli};
    if (db != NULL && *db != '\0')
        return;
    if (given != NULL && direct_is_ledger(given, true))
        way->data = given;
    else if (given == NULL && default_url && direct_is_ledger("./semel-data", false))
        way->data = "./semel-data";
}

/* ---- over HTTP ---- */

static bool find_verdict(struct bytes name, enum ledger_verdict *ret)
{
    for (size_t i = 0; ledger_verdict_names[i] != NULL; i++)
        if (bytes_is(name, ledger_verdict_names[i])) {
            *ret = (enum ledger_verdict)i;
            return true;
        }
    return false;
}

static void take_text(const struct json *json, const char *name, char *ret, size_t size)
{
    const struct json *value = json_get(json, bytes_of(name));
    if (value != NULL && value->type == JSON_STRING)
        snprintf(ret, size, "%.*s", BYTES_ARG(value->text));
}

static void take_answer(struct cli *cli, const struct json *json, struct way_answer *ret)
{
    const struct json *fence = json_get(json, BYTES("fence")), *result = json_get(json, BYTES("result"));
    const struct json *again = json_get(json, BYTES("may_have_happened"));
    take_text(json, "intent", ret->intent, sizeof ret->intent);
    ret->other = json_get(json, BYTES("waits_for")) != NULL;
    if (ret->other)
        take_text(json, "waits_for", ret->intent, sizeof ret->intent);
    take_text(json, "downstream_key", ret->downstream, sizeof ret->downstream);
    if (fence != NULL && !json_to_i64(fence, &ret->fence))
        ret->fence = 0;
    if (result != NULL)
        ret->result = *result;
    ret->may_have_happened = again != NULL && again->type == JSON_TRUE;
    ret->would = print_field(cli, json_get(json, BYTES("shadow")), "would");
    ret->error = print_field(cli, json, "error");
    ret->settled_us = print_time_of(json, "confirmed_at");
    if (ret->settled_us == 0)
        ret->settled_us = print_time_of(json, "settled_at");
}

/* A reply that is no verdict: can the same call succeed later? */
static enum status take_problem(struct cli *cli, const struct client_reply *reply, int *ret_code, struct why *why)
{
    struct buf text;
    struct bytes code = reply->is_json ? print_field(cli, &reply->json, "code") : BYTES_NONE;
    buf_init(&text, 64 << 10);
    client_sentence(cli, reply, &text);
    why_set(why, OK, "%.*s", BYTES_ARG(buf_bytes(&text)));
    buf_release(&text);
    *ret_code = client_exit(reply->status, code);
    if (bytes_is(code, "storage_unknown") || reply->status >= 500)
        return bytes_is(code, "storage") || bytes_is(code, "disk_full") || bytes_is(code, "busy") ? RETRY : UNKNOWN;
    return reply->status == 408 || reply->status == 429 ? RETRY : INVALID;
}

static enum status call(struct way *way, struct bytes path, const struct buf *body, int64_t wait_us,
                        struct client_reply *ret_reply, int *ret_code, struct why *why)
{
    if (body->failed || path.at == NULL) {
        *ret_code = CLI_DATA;
        return why_set(why, INVALID, "what is to be said is too long.");
    }
    const struct client_request request = {.method = "POST",
                                           .path = path,
                                           .body = buf_bytes(body),
                                           .wait_us = wait_us,
                                           .timeout_us = HTTP_TIMEOUT_US,
                                           .stop = way->stop};
    return client_try(way->cli, &request, ret_reply, ret_code, why);
}

static void write_answer(const struct answer_naming *answer, struct json_out *out)
{
    json_text_member(out, "event", answer->event);
    json_text_member(out, "question", answer->question);
    if (answer->epoch == EPOCH_UNSAID)
        return;
    json_name(out, "epoch");
    json_i64(out, answer->epoch);
}

static void write_claim(const struct way_claim *claim, struct bytes nonce, int64_t wait_us, struct buf *body)
{
    const struct {
        const char *name;
        struct bytes text;
    } texts[] = {{"workflow", claim->workflow}, {"key", claim->key}, {"action", claim->action}, {"thread", claim->thread},
                 {"keep", claim->keep},         {"run", claim->run}, {"nonce", nonce}};
    struct json_out out = json_out_to(body);
    json_open(&out, '{');
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_name(&out, texts[i].name);
        json_text(&out, texts[i].text);
    }
    if (claim->answer != NULL)
        write_answer(claim->answer, &out);
    if (claim->input.at != NULL) {
        json_name(&out, "input");
        json_raw(&out, claim->input);
    }
    json_name(&out, "lease_ms");
    json_i64(&out, claim->lease_us / WHEN_MS);
    json_name(&out, "wait_ms");
    json_i64(&out, wait_us / WHEN_MS);
    json_name(&out, "two_phase");
    json_bool(&out, true);
    json_name(&out, "on_unknown");
    json_cstr(&out, claim->on_unknown >= 0 ? on_unknown_names[claim->on_unknown] : NULL);
    json_close(&out, '}');
}

static enum status http_claim(struct way *way, const struct way_claim *claim, struct bytes nonce, int64_t wait_us,
                              struct way_answer *ret, int *ret_code, struct why *why)
{
    struct buf body;
    struct client_reply reply;
    struct way_answer answer = {.hold = -1};
    buf_init(&body, 1 << 20);
    write_claim(claim, nonce, wait_us, &body);
    enum status status = call(way, BYTES("/v1/claims"), &body, wait_us, &reply, ret_code, why);
    buf_release(&body);
    if (status != OK)
        return status;
    bool done = reply.status == 201 || reply.status == 200;
    struct bytes name = reply.is_json ? print_field(way->cli, &reply.json, done ? "answer" : "code") : BYTES("");
    if (!find_verdict(name, &answer.verdict) || (answer.verdict <= VERDICT_REPLAY) != done || answer.verdict > VERDICT_EXPIRED)
        return take_problem(way->cli, &reply, ret_code, why);
    take_answer(way->cli, &reply.json, &answer);
    *ret = answer;
    return OK;
}

static struct ledger_command command_of(const struct way_say *say)
{
    return (struct ledger_command){
        .op = say->op,
        .fence = say->fence,
        .result = say->result,
        .error = say->error,
        .effect_unknown = say->effect_unknown,
        .lease_us = say->lease_us,
    };
}

static enum status http_say(struct way *way, const struct way_say *say, enum ledger_verdict *ret_verdict, int *ret_code,
                            struct why *why)
{
    struct buf body;
    struct client_reply reply;
    struct ledger_command command = command_of(say);
    buf_init(&body, 2 << 20);
    struct json_out out = json_out_to(&body);
    ledger_write_say(&command, &out);
    struct bytes path = arena_printf(&way->cli->arena, "/v1/claims/%s/%s", say->intent, ledger_op_names[say->op]);
    enum status status = call(way, path, &body, 0, &reply, ret_code, why);
    buf_release(&body);
    if (status != OK)
        return status;
    if (reply.status == 200 && reply.is_json && json_get(&reply.json, BYTES("state")) != NULL) {
        *ret_verdict = VERDICT_DONE;
        return OK;
    }
    struct bytes code = reply.is_json ? print_field(way->cli, &reply.json, "code") : BYTES("");
    status = take_problem(way->cli, &reply, ret_code, why);
    return find_verdict(code, ret_verdict) ? OK : status;
}

/* ---- on the data itself ---- */

static void take_direct(const struct ledger_answer *from, struct way_answer *ret)
{
    *ret = (struct way_answer){
        .verdict = from->verdict,
        .other = from->other,
        .fence = from->fence,
        .may_have_happened = from->may_have_happened,
        .would = from->shadow ? bytes_of(ledger_verdict_names[from->would]) : BYTES(""),
        .error = from->error,
        .settled_us = from->settled_us,
        .direct = true,
        .hold = -1,
    };
    id_format("int", from->intent, ret->intent);
    memcpy(ret->downstream, from->downstream, sizeof ret->downstream);
}

/* The run that held it is gone without a word: what its lease would say in the end is said now. */
static enum status bury_holder(struct way *way, struct direct *direct, const struct ledger_answer *held, struct why *why)
{
    char intent[32];
    struct ledger_answer answer;
    id_format("int", held->intent, intent);
    const struct ledger_command command = {
        .op = held->state == STATE_SENT ? OP_FAIL : OP_RELEASE,
        .intent = held->intent,
        .fence = held->fence,
        .effect_unknown = true,
        .error = BYTES("the process that ran it is gone"),
    };
    TRY(direct_apply(direct, &command, 0, &way->cli->arena, &answer, why));
    hold_drop(way->data, intent, held->fence, -1);
    return OK;
}

static enum status apply_claim(struct way *way, struct direct *direct, const struct ledger_command *claim, bool linger,
                               struct ledger_answer *ret, struct why *why)
{
    char intent[32];
    TRY(direct_apply(direct, claim, 0, &way->cli->arena, ret, why));
    if (ret->verdict != VERDICT_IN_PROGRESS)
        return OK;
    id_format("int", ret->intent, intent);
    enum hold_state hold = hold_look(way->data, intent, ret->fence);
    if (hold == HOLD_DEAD)
        TRY(bury_holder(way, direct, ret, why));
    else if (hold == HOLD_NONE && linger)
        sleep_for(LINGER_US); /* the ledger's clock only goes while someone has it open */
    else
        return OK;
    return direct_apply(direct, claim, 0, &way->cli->arena, ret, why);
}

static enum status take_result(struct way *way, struct bytes text, struct json *ret, struct why *why)
{
    const struct json_limits limits = {.depth_max = 128, .members_max = 2000000, .text_max = CLIENT_REPLY_MAX};
    return json_parse(text.at != NULL ? text : BYTES("null"), &limits, &way->cli->arena, ret, why);
}

static const char *token(void)
{
    const char *text = getenv("SEMEL_TOKEN");
    return text != NULL && *text != '\0' ? text : NULL;
}

static enum status open_direct(struct way *way, struct direct *ret_direct, struct why *why)
{
    /* Several threads have ways of their own, and the log and the mask of files are the process's. */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    log_setup(LOG_WARN, LOG_LOGFMT, env_real_wall_us);
    mode_t mask = umask(077);
    enum status status = direct_open(way->data, token(), &way->cli->arena, ret_direct, why);
    umask(mask);
    pthread_mutex_unlock(&lock);
    return status;
}

/* As the API does: which key it has, and what stands behind it. `ret_misnamed`: what was sent is to blame. */
static enum status name_direct(struct way *way, const struct direct *direct, const struct way_claim *claim,
                               struct ledger_command *ret, bool *ret_misnamed, struct why *why)
{
    struct json *input = arena_zalloc(&way->cli->arena, 1, sizeof *input);
    struct bytes field;
    struct claim_naming naming = {
        .workflow = claim->workflow, .key = claim->key, .action = claim->action, .thread = claim->thread, .run = claim->run};
    *ret = (struct ledger_command){.op = OP_CLAIM};
    if (input == NULL)
        return why_set(why, FULL, "there is not enough memory");
    if (claim->input.at != NULL) {
        TRY(take_result(way, claim->input, input, why));
        naming.input = input;
    }
    if (claim->answer != NULL) {
        enum status status =
            answer_name(engine_store(direct->engine), direct->space, claim->answer, &way->cli->arena, &naming, &field, why);
        *ret_misnamed = status == NOTHING || status == INVALID;
        TRY(status);
    }
    TRY(direct_name(direct, &naming, &way->cli->arena, ret, &field, why));
    ret->in_turn = claim->answer != NULL;
    return OK;
}

static enum status direct_claim(struct way *way, const struct way_claim *claim, bool linger, struct way_answer *ret,
                                bool *ret_misnamed, struct why *why)
{
    struct direct direct;
    struct ledger_answer answer;
    struct ledger_command command;
    TRY(open_direct(way, &direct, why));
    enum status status = name_direct(way, &direct, claim, &command, ret_misnamed, why);
    command.lease_us = claim->lease_us;
    command.two_phase = true;
    if (claim->keep.at != NULL)
        command.keep_us = claim->keep_us;
    if (claim->on_unknown >= 0)
        command.on_unknown = (enum on_unknown)claim->on_unknown;
    if (status == OK)
        status = apply_claim(way, &direct, &command, linger, &answer, why);
    struct way_answer taken;
    if (status == OK)
        take_direct(&answer, &taken);
    if (status == OK && answer.verdict == VERDICT_REPLAY)
        status = take_result(way, answer.result, &taken.result, why);
    if (status == OK && answer.verdict == VERDICT_PROCEED) /* while nobody else can look */
        taken.hold = hold_take(way->data, taken.intent, taken.fence);
    direct_close(&direct);
    if (status == OK)
        *ret = taken;
    return status;
}

static enum status direct_say(struct way *way, const struct way_say *say, enum ledger_verdict *ret_verdict, struct why *why)
{
    struct direct direct;
    struct ledger_answer answer;
    struct ledger_command command = command_of(say);
    if (!id_parse("int", bytes_of(say->intent), &command.intent))
        return why_set(why, INVALID, "%s is not the id of an intent", say->intent);
    TRY(open_direct(way, &direct, why));
    enum status status = direct_apply(&direct, &command, 0, &way->cli->arena, &answer, why);
    direct_close(&direct);
    if (status != OK)
        return status;
    if (answer.verdict == VERDICT_NOT_FOUND && !say->direct)
        return why_set(why, RETRY, "%s does not know the claim, and the daemon does not answer", way->data);
    *ret_verdict = answer.verdict;
    why_set(why, OK, "the intent is %s, at fence %lld", intent_state_names[answer.state], (long long)answer.fence);
    return OK;
}

/* ---- whichever is open ---- */

/* A failure on the data, as the caller of a way sees it. CONFLICT stays: someone else is in it. */
static enum status direct_status(enum status status, const char *data, int *ret_code, struct why *why)
{
    if (status != OK && status != CONFLICT)
        why_add(why, status, "no daemon answers, and %s cannot be used", data);
    switch (status) {
    case OK:
        return OK;
    case CONFLICT:
        *ret_code = CLI_UNREACHABLE;
        return CONFLICT;
    case NOTHING:
        *ret_code = CLI_FORBIDDEN;
        return INVALID;
    case INVALID:
        *ret_code = CLI_CONFIG;
        return INVALID;
    case RETRY:
    case FULL:
        *ret_code = CLI_LATER;
        return RETRY;
    case UNKNOWN:
    case BROKEN:
        break;
    }
    *ret_code = CLI_INTERNAL;
    return status == UNKNOWN ? UNKNOWN : RETRY;
}

/* One attempt at a call: `http`, and when nothing listens there, `direct`. */
struct attempt {
    enum status (*http)(struct way *way, void *ctx, int *ret_code, struct why *why);
    enum status (*direct)(struct way *way, void *ctx, struct why *why);
    void *ctx;
};

static enum status find_way(struct way *way, const struct attempt *attempt, int *ret_code, struct why *why)
{
    struct env *env = env_real();
    int64_t until_us = env->boot_us(env) + PATIENCE_US;
    for (;;) {
        enum status status = attempt->http(way, attempt->ctx, ret_code, why);
        bool listens = status != RETRY || *ret_code != CLI_UNREACHABLE;
        if (listens || way->data == NULL)
            return status;
        status = direct_status(attempt->direct(way, attempt->ctx, why), way->data, ret_code, why);
        if (status != CONFLICT)
            return status;
        if (env->boot_us(env) > until_us || is_stopped(way))
            return why_add(why, RETRY, "nothing answers at %s", cli_text(way->cli, "--url"));
        sleep_about(LOOK_EVERY_US);
    }
}

struct claim_attempt {
    const struct way_claim *claim;
    int64_t wait_us;
    struct way_answer *ret_answer;
    char nonce[2 * NONCE_SIZE];
    bool misnamed; /* on the data: there is no such conversation, or too little was said */
    struct why misnamed_why;
};

/* A claim whose answer was lost is sent again with the same nonce, and gets that answer. */
static enum status try_http_claim(struct way *way, void *ctx, int *ret_code, struct why *why)
{
    struct claim_attempt *attempt = ctx;
    struct bytes nonce = {attempt->nonce, sizeof attempt->nonce};
    for (int tries = 1;; tries++) {
        enum status status = http_claim(way, attempt->claim, nonce, attempt->wait_us, attempt->ret_answer, ret_code, why);
        if (status != UNKNOWN || tries == CLAIM_TRIES || is_stopped(way))
            return status;
        sleep_about(ASK_EVERY_US);
    }
}

static enum status try_direct_claim(struct way *way, void *ctx, struct why *why)
{
    struct claim_attempt *attempt = ctx;
    enum status status = direct_claim(way, attempt->claim, attempt->wait_us > 0, attempt->ret_answer, &attempt->misnamed, why);
    if (attempt->misnamed)
        attempt->misnamed_why = *why;
    return status;
}

enum status way_claim(struct way *way, const struct way_claim *claim, int64_t wait_us, struct way_answer *ret_answer,
                      int *ret_code, struct why *why)
{
    struct claim_attempt attempt = {
        .claim = claim, .wait_us = wait_us < HTTP_WAIT_MAX_US ? wait_us : HTTP_WAIT_MAX_US, .ret_answer = ret_answer};
    char random[NONCE_SIZE];
    env_real()->random(env_real(), random, sizeof random);
    bytes_to_hex((struct bytes){random, sizeof random}, attempt.nonce);
    enum status status = find_way(way, &(struct attempt){try_http_claim, try_direct_claim, &attempt}, ret_code, why);
    if (!attempt.misnamed)
        return status;
    *why = attempt.misnamed_why;
    *ret_code = CLI_DATA;
    return INVALID;
}

struct say_attempt {
    const struct way_say *say;
    enum ledger_verdict *ret_verdict;
};

/* A daemon that does not know a claim made on the data serves other data. */
static enum status try_http_say(struct way *way, void *ctx, int *ret_code, struct why *why)
{
    struct say_attempt *attempt = ctx;
    enum ledger_verdict verdict = VERDICT_DONE;
    enum status status = http_say(way, attempt->say, &verdict, ret_code, why);
    if (status == OK && verdict == VERDICT_NOT_FOUND && attempt->say->direct && way->data != NULL) {
        *ret_code = CLI_UNREACHABLE;
        return RETRY;
    }
    if (status == OK)
        *attempt->ret_verdict = verdict;
    return status;
}

static enum status try_direct_say(struct way *way, void *ctx, struct why *why)
{
    struct say_attempt *attempt = ctx;
    return direct_say(way, attempt->say, attempt->ret_verdict, why);
}

enum status way_say(struct way *way, const struct way_say *say, enum ledger_verdict *ret_verdict, int *ret_code, struct why *why)
{
    struct say_attempt attempt = {say, ret_verdict};
    return find_way(way, &(struct attempt){try_http_say, try_direct_say, &attempt}, ret_code, why);
}

/* ---- the policy ---- */

static enum status try_http_policy(struct way *way, void *ctx, int *ret_code, struct why *why)
{
    struct policy **ret_policy = ctx;
    struct client_reply reply;
    const struct client_request request = {
        .method = "GET", .path = BYTES("/v1/policy"), .timeout_us = HTTP_TIMEOUT_US, .stop = way->stop};
    TRY(client_try(way->cli, &request, &reply, ret_code, why));
    if (reply.status == 403)
        return why_set(why, NOTHING, "the token may not read the policy: it needs the scope \"read\"");
    if (reply.status != 200 || !reply.is_json)
        return take_problem(way->cli, &reply, ret_code, why);
    struct yaml_problems *problems = calloc(1, sizeof *problems);
    ASSERT(problems != NULL);
    const struct json *text = json_get(&reply.json, BYTES("text"));
    enum status status = policy_parse(text != NULL && text->type == JSON_STRING ? text->text : BYTES(""), ret_policy, problems);
    if (status != OK)
        status = why_set(why, INVALID, "the daemon's policy is not understood here: %s", problems->at[0].text);
    free(problems);
    return status;
}

static enum status try_direct_policy(struct way *way, void *ctx, struct why *why)
{
    struct policy **ret_policy = ctx;
    struct direct direct;
    TRY(open_direct(way, &direct, why));
    *ret_policy = direct.policy;
    policy_use(direct.policy);
    direct_close(&direct);
    return OK;
}

enum status way_policy(struct way *way, struct policy **ret_policy, int *ret_code, struct why *why)
{
    return find_way(way, &(struct attempt){try_http_policy, try_direct_policy, ret_policy}, ret_code, why);
}

/* ---- tool calls ---- */

static void write_calls(const struct way_calls *calls, bool answered, struct buf *body)
{
    char hex[2 * HASH_SIZE];
    struct json_out out = json_out_to(body);
    json_open(&out, '{');
    json_text_member(&out, "server", calls->server);
    json_text_member(&out, "run", calls->run);
    if (calls->content != NULL) {
        bytes_to_hex(hash_bytes(calls->content), hex);
        json_text_member(&out, "content", (struct bytes){hex, sizeof hex});
    }
    if (answered) {
        json_i64_member(&out, "number", calls->number);
    } else {
        if (calls->per_run > 0)
            json_i64_member(&out, "calls_max", calls->per_run);
        if (calls->content != NULL)
            json_i64_member(&out, "repeat_ms", calls->repeat_us / WHEN_MS);
    }
    json_close(&out, '}');
}

static enum status post_calls(struct way *way, const struct way_calls *calls, bool answered, struct client_reply *ret_reply,
                              int *ret_code, struct why *why)
{
    struct buf body;
    buf_init(&body, 1 << 16);
    write_calls(calls, answered, &body);
    struct bytes path = answered ? BYTES("/v1/tool-calls/answered") : BYTES("/v1/tool-calls");
    enum status status = call(way, path, &body, 0, ret_reply, ret_code, why);
    buf_release(&body);
    if (status == OK && ret_reply->status != 200)
        status = take_problem(way->cli, ret_reply, ret_code, why);
    return status;
}

static enum status try_http_count(struct way *way, void *ctx, int *ret_code, struct why *why)
{
    struct way_calls *calls = ctx;
    struct client_reply reply;
    TRY(post_calls(way, calls, false, &reply, ret_code, why));
    const struct json *within = reply.is_json ? json_get(&reply.json, BYTES("within")) : NULL;
    calls->refused = within == NULL || within->type != JSON_TRUE;
    calls->number = reply.is_json ? json_get_i64(&reply.json, "number") : 1;
    return OK;
}

static enum status try_http_answered(struct way *way, void *ctx, int *ret_code, struct why *why)
{
    struct client_reply reply;
    return post_calls(way, ctx, true, &reply, ret_code, why);
}

struct direct_calls {
    struct calls_order order;
    const struct way_calls *calls;
};

static enum status write_count(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    return calls_take(store, &((struct direct_calls *)command->user)->order, ledger->now.wall_us, why);
}

static enum status write_answered(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    const struct direct_calls *direct = command->user;
    return calls_answered(store, &direct->order.name, direct->calls->content, direct->calls->number, ledger->now.wall_us, why);
}

static enum status direct_calls(struct way *way, const struct way_calls *calls, bool answered, struct direct_calls *ret,
                                struct why *why)
{
    struct direct direct;
    TRY(open_direct(way, &direct, why));
    *ret = (struct direct_calls){.order = {.name = {direct.space, calls->server, direct.actor, calls->run},
                                           .per_run = calls->per_run,
                                           .content = calls->content,
                                           .repeat_us = calls->repeat_us},
                                 .calls = calls};
    enum status status = direct_write(&direct, answered ? write_answered : write_count, ret, &way->cli->arena, why);
    direct_close(&direct);
    return status;
}

static enum status try_direct_count(struct way *way, void *ctx, struct why *why)
{
    struct way_calls *calls = ctx;
    struct direct_calls done;
    TRY(direct_calls(way, calls, false, &done, why));
    calls->refused = done.order.refused;
    calls->number = done.order.number;
    return OK;
}

static enum status try_direct_answered(struct way *way, void *ctx, struct why *why)
{
    struct direct_calls done;
    return direct_calls(way, ctx, true, &done, why);
}

enum status way_count(struct way *way, struct way_calls *calls, int *ret_code, struct why *why)
{
    return find_way(way, &(struct attempt){try_http_count, try_direct_count, calls}, ret_code, why);
}

enum status way_answered(struct way *way, const struct way_calls *calls, int *ret_code, struct why *why)
{
    return find_way(way, &(struct attempt){try_http_answered, try_direct_answered, (void *)calls}, ret_code, why);
}

/* ---- waiting ---- */

void way_wait(struct way *way, const struct way_answer *answer, int64_t wait_us)
{
    struct env *env = env_real();
    int64_t until_us = env->boot_us(env) + wait_us;
    bool alive = answer->direct && hold_look(way->data, answer->intent, answer->fence) == HOLD_ALIVE;
    if (!alive) {
        sleep_about(wait_us < ASK_EVERY_US ? wait_us : ASK_EVERY_US);
        return;
    }
    while (env->boot_us(env) < until_us && hold_look(way->data, answer->intent, answer->fence) == HOLD_ALIVE)
        sleep_about(LOOK_EVERY_US);
}
