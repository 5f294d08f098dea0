/* remote: a daemon, over HTTP or a unix socket (libcurl). Each call takes a connection out of the pool, so threads do not wait for each other. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/when.h"
#include "handle.h"

#define POOL_MAX 16
#define CONNECT_TIMEOUT_MS 3000L
#define ANSWER_TIMEOUT_MS 10000L
#define REPLY_MAX ((size_t)64 << 20)
#define BODY_MAX ((size_t)8 << 20)
#define TOKEN_SIZE_MAX 256

struct remote {
    pthread_mutex_t lock;
    CURL *idle[POOL_MAX];
    size_t idle_count;
    char base[1024];
    char *socket; /* of unix:/PATH */
    struct curl_slist *headers;
};

struct reply {
    long status;
    struct buf body;
    struct json json;
    bool is_object;
};

/* ---- connections ---- */

static size_t on_body(char *at, size_t size, size_t count, void *ctx)
{
    struct buf *body = ctx;
    buf_add(body, (struct bytes){at, size * count});
    return body->failed ? 0 : size * count;
}

static bool is_loopback(const char *base)
{
    static const char *const hosts[] = {"http://127.", "http://localhost", "http://[::1]"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        if (strncmp(base, hosts[i], strlen(hosts[i])) == 0)
            return true;
    return false;
}

static CURL *new_connection(const struct remote *remote)
{
    CURL *curl = curl_easy_init();
    if (curl == NULL)
        return NULL;
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "libsemel");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, remote->headers);
    if (remote->socket != NULL)
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, remote->socket);
    if (is_loopback(remote->base)) /* a proxy for the outside world does not know this computer's own daemon */
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
    return curl;
}

static CURL *take_connection(struct remote *remote)
{
    pthread_mutex_lock(&remote->lock);
    CURL *curl = remote->idle_count > 0 ? remote->idle[--remote->idle_count] : NULL;
    pthread_mutex_unlock(&remote->lock);
    return curl != NULL ? curl : new_connection(remote);
}

static void give_back(struct remote *remote, CURL *curl)
{
    pthread_mutex_lock(&remote->lock);
    bool kept = remote->idle_count < POOL_MAX;
    if (kept)
        remote->idle[remote->idle_count++] = curl;
    pthread_mutex_unlock(&remote->lock);
    if (!kept)
        curl_easy_cleanup(curl);
}

/* ---- one call ---- */

/* SEMEL_OK: something answered, with whatever status. */
static enum semel_status call(struct remote *remote, const char *path, const struct buf *body, int64_t wait_us,
                              struct arena *arena, struct reply *ret, struct why *why)
{
    char url[sizeof remote->base + 128];
    struct why unused;
    CURL *curl = body->failed ? NULL : take_connection(remote);
    if (curl == NULL) {
        why_set(why, FULL, "what is to be said is too long, or there is not enough memory.");
        return SEMEL_INVALID;
    }
    snprintf(url, sizeof url, "%s%s", remote->base, path);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, ANSWER_TIMEOUT_MS + (long)(wait_us / WHEN_MS));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body->at);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->len);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &ret->body);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &ret->status);
    give_back(remote, curl);
    if (code != CURLE_OK) {
        why_set(why, UNKNOWN, "%s does not answer: %s", remote->base, curl_easy_strerror(code));
        return code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ? SEMEL_INVALID : SEMEL_UNREACHABLE;
    }
    const struct json_limits limits = {.depth_max = 128, .members_max = 2000000, .text_max = REPLY_MAX};
    struct bytes text = arena_dup(arena, buf_bytes(&ret->body));
    ret->is_object =
        text.at != NULL && json_parse(text, &limits, arena, &ret->json, &unused) == OK && ret->json.type == JSON_OBJECT;
    return SEMEL_OK;
}

/* What an answer that is no success says, and what is to be done about it. */
static enum semel_status problem_of(const struct reply *reply, struct why *why)
{
    if (!reply->is_object || reply->status < 400) {
        why_set(why, UNKNOWN, "something that is not semel answered with status %ld.", reply->status);
        return SEMEL_UNREACHABLE;
    }
    struct bytes code = json_get_text(&reply->json, "code"), title = json_get_text(&reply->json, "title"),
                 detail = json_get_text(&reply->json, "detail");
    why_set(why, OK, "%.*s: %.*s", BYTES_ARG(title), BYTES_ARG(detail));
    for (size_t i = VERDICT_IN_PROGRESS; ledger_verdict_names[i] != NULL; i++)
        if (bytes_is(code, ledger_verdict_names[i]))
            return status_of_verdict((enum ledger_verdict)i);
    return reply->status >= 500 || reply->status == 408 || reply->status == 429 ? SEMEL_UNREACHABLE : SEMEL_INVALID;
}

/* ---- claim ---- */

static void write_text(struct json_out *out, const char *name, struct bytes text)
{
    if (text.at == NULL)
        return;
    json_name(out, name);
    json_text(out, text);
}

static void write_claim(const struct asked *asked, struct buf *body)
{
    static const char *const on_unknown[] = {NULL, "hold", "retry", "skip"};
    const struct claim_naming *naming = &asked->naming;
    struct json_out out = json_out_to(body);
    json_open(&out, '{');
    write_text(&out, "workflow", naming->workflow);
    write_text(&out, "key", naming->key);
    write_text(&out, "run", naming->run);
    write_text(&out, "thread", naming->thread);
    write_text(&out, "action", naming->action);
    write_text(&out, "keep", naming->keep);
    write_text(&out, "nonce", asked->nonce);
    if (naming->input != NULL) {
        json_name(&out, "input");
        json_raw(&out, naming->input->raw);
    }
    if (asked->lease_us > 0) {
        json_name(&out, "lease_ms");
        json_i64(&out, asked->lease_us / WHEN_MS);
    }
    if (asked->on_unknown > SEMEL_AS_POLICY && asked->on_unknown <= SEMEL_SKIP)
        write_text(&out, "on_unknown", bytes_of(on_unknown[asked->on_unknown]));
    json_name(&out, "wait_ms");
    json_i64(&out, asked->wait_us / WHEN_MS);
    json_name(&out, "two_phase");
    json_bool(&out, true);
    json_close(&out, '}');
}

static void copy_text(const struct json *object, const char *name, char *ret, size_t size)
{
    snprintf(ret, size, "%.*s", BYTES_ARG(json_get_text(object, name)));
}

static void take_answer(const struct json *json, struct arena *arena, struct answer *ret)
{
    const struct json *shadow = json_get(json, BYTES("shadow")), *result = json_get(json, BYTES("result")),
                      *again = json_get(json, BYTES("may_have_happened"));
    *ret = (struct answer){
        .fence = json_get_i64(json, "fence"),
        .lease_us = json_get_i64(json, "lease_ms") * WHEN_MS,
        .may_have_happened = again != NULL && again->type == JSON_TRUE,
        .would = shadow != NULL ? arena_dup(arena, json_get_text(shadow, "would")) : BYTES_NONE,
        .result = result != NULL ? arena_dup(arena, result->raw) : BYTES_NONE,
    };
    copy_text(json, "intent", ret->intent, sizeof ret->intent);
    copy_text(json, "downstream_key", ret->downstream, sizeof ret->downstream);
}

static enum semel_status remote_claim(struct semel *semel, const struct asked *asked, struct arena *arena, struct answer *ret,
                                      struct why *why)
{
    struct buf body;
    struct reply reply = {0};
    buf_init(&body, BODY_MAX);
    buf_init(&reply.body, REPLY_MAX);
    write_claim(asked, &body);
    enum semel_status status = call(semel->remote, "/v1/claims", &body, asked->wait_us, arena, &reply, why);
    if (status == SEMEL_OK && reply.is_object) {
        take_answer(&reply.json, arena, ret);
        bool proceed = reply.status == 201 && bytes_is(json_get_text(&reply.json, "answer"), "proceed");
        bool replay = reply.status == 200 && bytes_is(json_get_text(&reply.json, "answer"), "replay");
        status = proceed ? SEMEL_PROCEED : replay ? SEMEL_REPLAY : problem_of(&reply, why);
    } else if (status == SEMEL_OK) {
        status = problem_of(&reply, why);
    }
    buf_release(&reply.body);
    buf_release(&body);
    return arena->failed ? SEMEL_NO_MEMORY : status;
}

/* ---- what a holder says ---- */

static enum semel_status remote_say(struct semel *semel, const struct say *say, struct arena *arena, int64_t *ret_lease_us,
                                    struct why *why)
{
    char path[96];
    struct buf body;
    struct reply reply = {0};
    buf_init(&body, BODY_MAX);
    buf_init(&reply.body, REPLY_MAX);
    struct ledger_command command = say_command(say);
    struct json_out out = json_out_to(&body);
    ledger_write_say(&command, &out);
    snprintf(path, sizeof path, "/v1/claims/%s/%s", say->intent, ledger_op_names[say->op]);
    enum semel_status status = call(semel->remote, path, &body, 0, arena, &reply, why);
    bool done = status == SEMEL_OK && reply.status == 200 && reply.is_object && json_get(&reply.json, BYTES("state")) != NULL;
    if (done)
        *ret_lease_us = json_get_i64(&reply.json, "lease_ms") * WHEN_MS;
    else if (status == SEMEL_OK)
        status = problem_of(&reply, why);
    buf_release(&reply.body);
    buf_release(&body);
    return status;
}

/* ---- opening ---- */

static void remote_close(struct semel *semel)
{
    struct remote *remote = semel->remote;
    for (size_t i = 0; i < remote->idle_count; i++)
        curl_easy_cleanup(remote->idle[i]);
    curl_slist_free_all(remote->headers);
    free(remote->socket);
    pthread_mutex_destroy(&remote->lock);
    free(remote);
}

static enum status set_address(struct remote *remote, const char *where, struct why *why)
{
    struct bytes base = bytes_of(where);
    if (bytes_starts(base, BYTES("unix:/"))) {
        remote->socket = strdup(where + strlen("unix:"));
        base = BYTES("http://localhost");
    } else if (!bytes_starts(base, BYTES("http://")) && !bytes_starts(base, BYTES("https://"))) {
        return why_set(why, INVALID, "\"%s\" is not http://HOST:PORT, https://HOST, unix:/PATH or file:DIR.", where);
    }
    while (base.len > 0 && base.at[base.len - 1] == '/')
        base.len--;
    if (base.len >= sizeof remote->base)
        return why_set(why, INVALID, "the address is too long.");
    snprintf(remote->base, sizeof remote->base, "%.*s", BYTES_ARG(base));
    return OK;
}

static enum status set_headers(struct remote *remote, const char *token, struct why *why)
{
    char header[TOKEN_SIZE_MAX + 32];
    struct bytes text = bytes_of(token != NULL ? token : "");
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] <= ' ' || text.at[i] == 0x7F || text.len > TOKEN_SIZE_MAX)
            return why_set(why, INVALID, "the token is not one: it begins with sml_ and has no spaces.");
    remote->headers = curl_slist_append(NULL, "Content-Type: application/json");
    snprintf(header, sizeof header, "Authorization: Bearer %s", text.at);
    if (text.len > 0 && remote->headers != NULL)
        curl_slist_append(remote->headers, header);
    explicit_bzero(header, sizeof header);
    return OK;
}

static void start_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

enum semel_status remote_open(struct semel *semel, const char *where, const char *token, struct why *why)
{
    static const struct semel_way way = {remote_claim, remote_say, remote_close};
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_curl);
    struct remote *remote = calloc(1, sizeof *remote);
    if (remote == NULL)
        return SEMEL_NO_MEMORY;
    pthread_mutex_init(&remote->lock, NULL);
    semel->remote = remote;
    semel->way = &way;
    return set_address(remote, where, why) == OK && set_headers(remote, token, why) == OK ? SEMEL_OK : SEMEL_INVALID;
}
