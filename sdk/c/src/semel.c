#include "handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/version.h"
#include "base/when.h"

#define PATIENCE_US (10 * WHEN_SECOND)
#define DELAY_MIN_US (50 * WHEN_MS)
#define DELAY_MAX_US (2 * WHEN_SECOND)
#define WAIT_SLICE_US \
    (20 * WHEN_SECOND) /* a longer wait is asked for in slices, so that no proxy on the way finds it too quiet */
#define ASK_EVERY_US (100 * WHEN_MS)
#define LEASE_MIN_US (10 * WHEN_MS)
#define ERROR_SIZE_MAX 4096
#define NONCE_SIZE 16

static const char *const status_names[] = {
    "ok",     "proceed", "replay",       "in_progress", "outcome_unknown", "key_reused", "refused", "expired",
    "fenced", "differs", "already_sent", "not_found",   "unreachable",     "busy",       "invalid", "no_memory",
};

const char *semel_status_name(enum semel_status status)
{
    return (size_t)status < sizeof status_names / sizeof *status_names ? status_names[status] : "?";
}

const char *semel_version(void)
{
    return SEMEL_VERSION;
}

enum semel_status status_of_verdict(enum ledger_verdict verdict)
{
    static const enum semel_status statuses[] = {
        [VERDICT_PROCEED] = SEMEL_PROCEED,
        [VERDICT_REPLAY] = SEMEL_REPLAY,
        [VERDICT_IN_PROGRESS] = SEMEL_IN_PROGRESS,
        [VERDICT_OUTCOME_UNKNOWN] = SEMEL_OUTCOME_UNKNOWN,
        [VERDICT_KEY_REUSED] = SEMEL_KEY_REUSED,
        [VERDICT_REFUSED] = SEMEL_REFUSED,
        [VERDICT_EXPIRED] = SEMEL_EXPIRED,
        [VERDICT_DONE] = SEMEL_OK,
        [VERDICT_FENCED] = SEMEL_FENCED,
        [VERDICT_DIFFERS] = SEMEL_DIFFERS,
        [VERDICT_ALREADY_SENT] = SEMEL_ALREADY_SENT,
        [VERDICT_NOT_FOUND] = SEMEL_NOT_FOUND,
    };
    return statuses[verdict];
}

int64_t boot_us(void)
{
    return env_real()->boot_us(env_real());
}

void problem_set(struct semel_problem *problem, struct bytes field, const char *text)
{
    if (problem == NULL)
        return;
    snprintf(problem->field, sizeof problem->field, "%.*s", BYTES_ARG(field));
    snprintf(problem->text, sizeof problem->text, "%s", text);
}

/* ---- the ledger ---- */

/* A library does not write into its program's stderr. */
static void setup(void)
{
    log_setup(LOG_OFF, LOG_LOGFMT, env_real_wall_us);
    hash_setup();
}

void library_setup(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, setup);
}

static enum semel_status open_way(struct semel *semel, const char *where, const char *token, struct why *why)
{
    const char *url = getenv("SEMEL_URL"), *given = getenv("SEMEL_TOKEN");
    if (where == NULL)
        where = url != NULL && *url != '\0' ? url : "http://127.0.0.1:7363";
    if (token == NULL && given != NULL && *given != '\0')
        token = given;
    if (bytes_starts(bytes_of(where), BYTES("file:")))
        return embedded_open(semel, where + strlen("file:"), why);
    return remote_open(semel, where, token, why);
}

enum semel_status semel_open(const char *where, const char *token, struct semel **ret_semel, struct semel_problem *ret_problem)
{
    struct why why = {""};
    problem_set(ret_problem, BYTES(""), "");
    library_setup();
    struct semel *semel = calloc(1, sizeof *semel);
    if (semel == NULL)
        return SEMEL_NO_MEMORY;
    semel->patience_us = PATIENCE_US;
    arena_init(&semel->arena, ARENA_MAX);
    pthread_mutex_init(&semel->naming, NULL);
    enum semel_status status = open_way(semel, where, token, &why);
    if (status == SEMEL_OK) {
        *ret_semel = semel;
        return SEMEL_OK;
    }
    problem_set(ret_problem, BYTES(""), why.text);
    semel_close(semel);
    return status;
}

void semel_close(struct semel *semel)
{
    if (semel == NULL)
        return;
    if (semel->way != NULL)
        semel->way->close(semel);
    pthread_mutex_destroy(&semel->naming);
    arena_release(&semel->arena);
    free(semel);
}

void semel_set_patience(struct semel *semel, int64_t patience_ms)
{
    semel->patience_us = patience_ms < 0 ? 0 : patience_ms > WHEN_DAY / WHEN_MS ? WHEN_DAY : patience_ms * WHEN_MS;
}

static void sleep_for(int64_t us)
{
    const struct timespec time = {us / WHEN_SECOND, us % WHEN_SECOND * 1000};
    nanosleep(&time, NULL);
}

/* Every call is safe to repeat, and is repeated while there is patience: true when it is worth another try. */
static bool try_again(enum semel_status status, int64_t until_us, int64_t *delay_us)
{
    if (status != SEMEL_UNREACHABLE || boot_us() + *delay_us >= until_us)
        return false;
    sleep_for(*delay_us);
    *delay_us = *delay_us * 2 < DELAY_MAX_US ? *delay_us * 2 : DELAY_MAX_US;
    return true;
}

/* ---- what is asked ---- */

static enum status check_text(const char *name, const char *text, size_t min, size_t max, struct bytes *ret, struct why *why)
{
    if (text == NULL)
        return OK;
    struct bytes bytes = bytes_of(text);
    if (bytes.len < min || bytes.len > max)
        return why_set(why, INVALID, "%s has to have %zu to %zu bytes.", name, min, max);
    if (!bytes_is_utf8(bytes))
        return why_set(why, INVALID, "%s is not UTF-8.", name);
    *ret = bytes;
    return OK;
}

static enum status check_times(const struct semel_intent *intent, struct asked *ret, struct why *why)
{
    ret->lease_us = intent->lease_ms * WHEN_MS;
    ret->wait_us = intent->wait_ms * WHEN_MS;
    if (intent->lease_ms != 0 && (intent->lease_ms < LEASE_MIN_US / WHEN_MS || intent->lease_ms > WHEN_DAY / WHEN_MS))
        return why_set(why, INVALID, "lease_ms has to be 10 to 86400000, or 0 for the policy's.");
    if (intent->wait_ms < 0 || intent->wait_ms > WHEN_DAY / WHEN_MS)
        return why_set(why, INVALID, "wait_ms has to be 0 to 86400000.");
    return OK;
}

static enum status check_asked(const struct semel_intent *intent, struct arena *arena, struct asked *ret, struct why *why)
{
    struct claim_naming *naming = &ret->naming;
    if (intent->workflow == NULL)
        return why_set(why, INVALID, "workflow is missing.");
    TRY(check_text("workflow", intent->workflow, 1, 128, &naming->workflow, why));
    TRY(check_text("key", intent->key, 1, KEY_SIZE_MAX, &naming->key, why));
    TRY(check_text("run", intent->run, 1, 256, &naming->run, why));
    TRY(check_text("thread", intent->thread, 1, 256, &naming->thread, why));
    TRY(check_text("action", intent->action, 1, 128, &naming->action, why));
    TRY(check_text("keep", intent->keep, 2, 16, &naming->keep, why));
    TRY(check_times(intent, ret, why));
    ret->on_unknown = intent->on_unknown;
    if (intent->input == NULL)
        return OK;
    struct json *input = arena_zalloc(arena, 1, sizeof *input);
    if (input == NULL)
        return why_set(why, FULL, "there is not enough memory.");
    ret->input = bytes_of(intent->input);
    enum status status = json_parse(ret->input, NULL, arena, input, why);
    naming->input = input;
    return status == OK ? OK : why_add(why, status, "the input is not JSON");
}

/* A random name of this attempt: the claim that is sent again because its answer was lost gets that answer. */
static struct bytes make_nonce(struct arena *arena)
{
    char random[NONCE_SIZE], *hex = arena_alloc(arena, 2 * NONCE_SIZE);
    if (hex == NULL)
        return BYTES_NONE;
    env_real()->random(env_real(), random, sizeof random);
    bytes_to_hex((struct bytes){random, sizeof random}, hex);
    return (struct bytes){hex, 2 * NONCE_SIZE};
}

/* ---- claim ---- */

static struct semel_claim *new_claim(struct semel *semel)
{
    struct semel_claim *claim = calloc(1, sizeof *claim);
    if (claim == NULL)
        return NULL;
    pthread_condattr_t monotonic;
    claim->semel = semel;
    arena_init(&claim->arena, ARENA_MAX);
    pthread_mutex_init(&claim->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&claim->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return claim;
}

static enum semel_status ask_patiently(struct semel_claim *claim, const struct asked *asked)
{
    int64_t until_us = boot_us() + asked->wait_us + claim->semel->patience_us, delay_us = DELAY_MIN_US;
    enum semel_status status;
    do
        status = claim->semel->way->claim(claim->semel, asked, &claim->arena, &claim->answer, &claim->why);
    while (try_again(status, until_us, &delay_us));
    return status;
}

/* Until it is settled or ours, at most `wait_us`. */
static enum semel_status ask(struct semel_claim *claim, struct asked *asked)
{
    int64_t until_us = boot_us() + asked->wait_us;
    for (;;) {
        int64_t since_us = boot_us(), left_us = until_us - since_us;
        asked->wait_us = left_us < 0 ? 0 : left_us < WAIT_SLICE_US ? left_us : WAIT_SLICE_US;
        enum semel_status status = ask_patiently(claim, asked);
        claim->lease_us = claim->answer.lease_us;
        claim->deadline_us = since_us + claim->lease_us;
        left_us = until_us - boot_us();
        if (status != SEMEL_IN_PROGRESS || left_us <= 0)
            return status;
        if (boot_us() - since_us < asked->wait_us / 2) /* it did not want to keep us waiting */
            sleep_for(left_us < ASK_EVERY_US ? left_us : ASK_EVERY_US);
    }
}

struct ledger_command say_command(const struct say *say)
{
    return (struct ledger_command){
        .op = say->op,
        .fence = say->fence,
        .result = say->result,
        .error = say->error,
        .effect_unknown = say->effect_unknown,
        .final = say->final,
        .lease_us = say->lease_us,
    };
}

enum semel_status claim_say(struct semel_claim *claim, struct say *say, int64_t patience_us)
{
    struct arena arena;
    struct why why = {""};
    int64_t until_us = boot_us() + patience_us, delay_us = DELAY_MIN_US, lease_us = 0;
    int64_t since_us;
    enum semel_status status;
    arena_init(&arena, ARENA_MAX);
    say->intent = claim->answer.intent;
    say->fence = claim->answer.fence;
    do {
        since_us = boot_us();
        arena_clear(&arena);
        status = claim->semel->way->say(claim->semel, say, &arena, &lease_us, &why);
    } while (try_again(status, until_us, &delay_us));
    arena_release(&arena);
    pthread_mutex_lock(&claim->lock);
    claim->why = why;
    if (status == SEMEL_OK && say->op == OP_EXTEND && claim->held) {
        claim->lease_us = lease_us;
        claim->deadline_us = since_us + lease_us;
    }
    pthread_mutex_unlock(&claim->lock);
    return status;
}

/* Says it as the holder does; SEMEL_FENCED without asking when nothing is held. */
static enum semel_status holder_says(struct semel_claim *claim, struct say *say)
{
    pthread_mutex_lock(&claim->lock);
    bool held = claim->held;
    if (!held)
        why_set(&claim->why, OK, "this claim is not held, or was settled before.");
    pthread_mutex_unlock(&claim->lock);
    return held ? claim_say(claim, say, claim->semel->patience_us) : SEMEL_FENCED;
}

enum semel_status semel_sent(struct semel_claim *claim)
{
    enum semel_status status = holder_says(claim, &(struct say){.op = OP_SENT});
    if (status != SEMEL_OK)
        return status;
    if (semel_is_lost(claim)) {
        why_set(&claim->why, OK, "the lease was over before the act; nothing was done.");
        return SEMEL_FENCED;
    }
    claim->acting = true;
    return SEMEL_OK;
}

/* It is ours. When the answer took so long that the lease may be half over, it begins anew, counted from before that was asked. */
static enum semel_status begin(struct semel_claim *claim, bool two_phase)
{
    claim->held = true;
    if (claim->deadline_us - boot_us() < claim->lease_us / 2) {
        enum semel_status status = semel_extend(claim, 0);
        if (status != SEMEL_OK)
            return status;
    }
    enum semel_status status = two_phase ? SEMEL_OK : semel_sent(claim);
    return status == SEMEL_OK ? SEMEL_PROCEED : status;
}

enum semel_status semel_claim(struct semel *semel, const struct semel_intent *intent, struct semel_claim **ret_claim)
{
    struct asked asked = {0};
    struct semel_claim *claim = new_claim(semel);
    *ret_claim = claim;
    if (claim == NULL)
        return SEMEL_NO_MEMORY;
    enum status checked = check_asked(intent, &claim->arena, &asked, &claim->why);
    asked.nonce = make_nonce(&claim->arena);
    if (checked == FULL || asked.nonce.at == NULL)
        return SEMEL_NO_MEMORY;
    if (checked != OK)
        return SEMEL_INVALID;
    enum semel_status status = ask(claim, &asked);
    return status == SEMEL_PROCEED ? begin(claim, intent->two_phase) : status;
}

/* ---- the end of it ---- */

/* Settles it: the heartbeat ends first, so that it cannot be taken for a word of a holder that is done. */
static enum semel_status settle(struct semel_claim *claim, struct say *say)
{
    beat_end(claim);
    enum semel_status status = holder_says(claim, say);
    if (status == SEMEL_OK || status == SEMEL_DIFFERS || status == SEMEL_NOT_FOUND)
        claim->held = false;
    return status;
}

enum semel_status semel_confirm(struct semel_claim *claim, const char *result)
{
    struct json json;
    struct arena arena;
    struct bytes text = result != NULL ? bytes_of(result) : BYTES("null");
    arena_init(&arena, ARENA_MAX);
    enum status status = json_parse(text, NULL, &arena, &json, &claim->why);
    struct bytes raw = status == OK ? json.raw : BYTES_NONE;
    arena_release(&arena);
    if (status != OK) {
        why_add(&claim->why, status, "the result is not JSON");
        return SEMEL_INVALID;
    }
    return settle(claim, &(struct say){.op = OP_CONFIRM, .result = raw});
}

/* As much of it as is taken: what went wrong is not made worse by how it is told. */
static struct bytes error_text(const char *error)
{
    struct bytes text = bytes_of(error != NULL ? error : "");
    if (text.len > ERROR_SIZE_MAX)
        text.len = ERROR_SIZE_MAX;
    while (text.len > 0 && !bytes_is_utf8(text))
        text.len--;
    return text;
}

enum semel_status semel_fail(struct semel_claim *claim, enum semel_effect effect, const char *error)
{
    return settle(claim, &(struct say){.op = OP_FAIL,
                                       .effect_unknown = effect == SEMEL_EFFECT_UNKNOWN,
                                       .final = effect == SEMEL_EFFECT_NEVER,
                                       .error = error_text(error)});
}

enum semel_status semel_release(struct semel_claim *claim)
{
    return settle(claim, &(struct say){.op = OP_RELEASE});
}

enum semel_status semel_extend(struct semel_claim *claim, int64_t lease_ms)
{
    if (lease_ms != 0 && (lease_ms < LEASE_MIN_US / WHEN_MS || lease_ms > WHEN_DAY / WHEN_MS))
        return SEMEL_INVALID;
    return holder_says(claim, &(struct say){.op = OP_EXTEND, .lease_us = lease_ms * WHEN_MS});
}

void semel_claim_free(struct semel_claim *claim)
{
    if (claim == NULL)
        return;
    beat_end(claim);
    if (claim->held)
        (void)semel_fail(claim, claim->acting ? SEMEL_EFFECT_UNKNOWN : SEMEL_EFFECT_NONE, "the claim was dropped");
    pthread_cond_destroy(&claim->wake);
    pthread_mutex_destroy(&claim->lock);
    arena_release(&claim->arena);
    free(claim);
}

/* ---- what it was answered ---- */

int64_t semel_lease_left_ms(struct semel_claim *claim)
{
    pthread_mutex_lock(&claim->lock);
    int64_t left_us = claim->held ? claim->deadline_us - boot_us() : 0;
    pthread_mutex_unlock(&claim->lock);
    return left_us > 0 ? left_us / WHEN_MS : 0;
}

bool semel_is_lost(struct semel_claim *claim)
{
    return semel_lease_left_ms(claim) == 0;
}

const char *semel_intent_id(const struct semel_claim *claim)
{
    return claim->answer.intent;
}

int64_t semel_fence(const struct semel_claim *claim)
{
    return claim->answer.fence;
}

const char *semel_downstream_key(const struct semel_claim *claim)
{
    return claim->answer.downstream;
}

bool semel_may_have_happened(const struct semel_claim *claim)
{
    return claim->answer.may_have_happened;
}

const char *semel_would(const struct semel_claim *claim)
{
    return claim->answer.would.at != NULL ? claim->answer.would.at : "";
}

const char *semel_result(const struct semel_claim *claim, size_t *ret_len)
{
    if (ret_len != NULL)
        *ret_len = claim->answer.result.len;
    return claim->answer.result.at;
}

const char *semel_why(const struct semel_claim *claim)
{
    return claim->why.text;
}
