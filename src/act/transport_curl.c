/* transport_curl: HTTP with libcurl, many calls in one thread, and what HTTP and mail have in common. */
#include <stdio.h>
#include <stdlib.h>

#include "act/transport_own.h"
#include "base/id.h"
#include "base/log.h"
#include "base/version.h"
#include "base/when.h"
#include "destination/header.h"

#define CONNECT_TIMEOUT_MAX_US (10 * WHEN_SECOND)
#define CONNECTIONS_KEPT 512L
#define COMMANDS_POLLED_MAX 128

static bool is_mail(const struct flight *flight)
{
    return flight->call->destination->kind == DESTINATION_SMTP;
}

/* ---- endings ---- */

static void give_back_easy(struct flight *flight)
{
    struct real_transport *transport = flight->transport;
    if (flight->easy == NULL)
        return;
    curl_multi_remove_handle(transport->multi, flight->easy);
    curl_easy_reset(flight->easy);
    if (transport->idle_count < sizeof transport->idle / sizeof *transport->idle)
        transport->idle[transport->idle_count++] = flight->easy;
    else
        curl_easy_cleanup(flight->easy);
}

void flight_end(struct flight *flight, enum transport_end end)
{
    struct transport_call *call = flight->call;
    give_back_easy(flight);
    curl_slist_free_all(flight->header_list);
    curl_slist_free_all(flight->recipients);
    call->end = end;
    call->reply = (struct effect_reply){flight->status, flight->headers, flight->header_count, buf_bytes(&call->body)};
    *flight->before = flight->next;
    if (flight->next != NULL)
        flight->next->before = flight->before;
    free(flight);
    call->done(call);
}

static void refuse(struct transport_call *call)
{
    call->end = TRANSPORT_NOT_SENT;
    call->done(call);
}

/* ---- what comes in ---- */

static void take_header(struct flight *flight, struct bytes line)
{
    struct bytes value = line, name = bytes_cut(&value, ':');
    if (name.len == 0 || name.len == line.len || header_is_framing(name) || flight->header_count == FLIGHT_HEADERS_MAX)
        return;
    struct pair pair = {arena_dup(flight->call->arena, name), arena_dup(flight->call->arena, bytes_trim(value))};
    if (pair.name.at != NULL && pair.value.at != NULL)
        flight->headers[flight->header_count++] = pair;
}

static void on_header(void *user, struct bytes line)
{
    struct flight *flight = user;
    struct transport_call *call = flight->call;
    while (line.len > 0 && (line.at[line.len - 1] == '\n' || line.at[line.len - 1] == '\r'))
        line.len--;
    if (bytes_starts(line, BYTES("HTTP/"))) { /* an interim answer may have come before */
        long status = 0;
        curl_easy_getinfo(flight->easy, CURLINFO_RESPONSE_CODE, &status);
        flight->status = (int)status;
        flight->header_count = 0;
    } else if (line.len > 0 && !flight->head_done) {
        take_header(flight, line);
    } else if (line.len == 0 && flight->status >= 200 && !flight->head_done) {
        flight->head_done = true;
        call->reply = (struct effect_reply){flight->status, flight->headers, flight->header_count, BYTES_NONE};
        if (call->on_head != NULL)
            call->on_head(call);
    }
}

static size_t on_body(char *at, size_t size, size_t count, void *user)
{
    struct flight *flight = user;
    struct transport_call *call = flight->call;
    struct bytes piece = {at, size * count};
    if (!call->passing)
        buf_add(&call->body, piece);
    if (call->body.failed) {
        flight->too_large = true;
        return 0;
    }
    if (call->on_body != NULL)
        call->on_body(call, piece);
    return piece.len;
}

/* ---- what goes out ---- */

/* Connected, and nothing has left yet: the last moment to think better of it. */
static bool may_begin(void *user)
{
    struct flight *flight = user;
    struct env *env = flight->transport->env;
    flight->too_late = flight->call->begin_before_us != 0 && env->boot_us(env) >= flight->call->begin_before_us;
    return !flight->too_late;
}

static int on_progress(void *user, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
    struct flight *flight = user;
    (void)down_all, (void)down, (void)up_all, (void)up;
    return flight->call->unwanted(flight->call) ? 1 : 0;
}

static bool add_header(struct flight *flight, const char *text)
{
    struct curl_slist *list = curl_slist_append(flight->header_list, text);
    if (list == NULL)
        return false;
    flight->header_list = list;
    return true;
}

/* "name: value"; libcurl wants "name;" for an empty one. */
static bool add_pair(struct flight *flight, const struct pair *pair)
{
    struct arena *arena = flight->call->arena;
    struct bytes text = pair->value.len > 0 ? arena_printf(arena, "%.*s: %.*s", BYTES_ARG(pair->name), BYTES_ARG(pair->value))
                                            : arena_printf(arena, "%.*s;", BYTES_ARG(pair->name));
    return text.at != NULL && add_header(flight, text.at);
}

static bool is_among(const struct pair *pairs, size_t count, struct bytes name)
{
    for (size_t i = 0; i < count; i++)
        if (bytes_eq_nocase(pairs[i].name, name))
            return true;
    return false;
}

/* Exactly what was stored, and what proves who we are; nothing that the library would add by itself. */
static bool add_headers(struct flight *flight, const struct pair *auth, size_t auth_count)
{
    static const char *const unwanted[] = {"Expect", "Content-Type", "Accept"};
    const struct effect_request *request = flight->call->request;
    bool ok = true;
    for (size_t i = 0; i < request->header_count; i++)
        if (!is_among(auth, auth_count, request->headers[i].name))
            ok = ok && add_pair(flight, &request->headers[i]);
    for (size_t i = 0; i < auth_count; i++)
        ok = ok && add_pair(flight, &auth[i]);
    for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++) {
        struct bytes text = arena_printf(flight->call->arena, "%s:", unwanted[i]);
        if (header_find(request->headers, request->header_count, bytes_of(unwanted[i])).at == NULL)
            ok = ok && text.at != NULL && add_header(flight, text.at);
    }
    if (header_find(request->headers, request->header_count, BYTES("User-Agent")).at == NULL)
        ok = ok && add_header(flight, "User-Agent: semel/" SEMEL_VERSION);
    return ok;
}

static enum status with_secret(struct flight *flight, enum status (*use)(struct flight *, struct bytes secret, struct why *),
                               struct why *why)
{
    const struct destination *destination = flight->call->destination;
    struct secret_text text = {0};
    if (destination->secret.kind != SECRET_NONE)
        TRY(secret_resolve(flight->transport->secrets, flight->call->space, destination->secret.text, &text, why));
    enum status status = use(flight, (struct bytes){text.at, text.len}, why);
    secret_text_free(&text);
    return status;
}

enum status flight_set_common(struct flight *flight, struct bytes url, struct why *why)
{
    static const struct guard_ports every_port = {1, UINT16_MAX};
    const struct transport_call *call = flight->call;
    const struct destination *destination = call->destination;
    int64_t connect_us = call->timeout_us < CONNECT_TIMEOUT_MAX_US ? call->timeout_us : CONNECT_TIMEOUT_MAX_US;
    flight->rules = (struct guard_rules){
        .allow_private = destination->allow_private,
        .ports = destination->allow_private ? &every_port : NULL,
        .port_count = destination->allow_private ? 1 : 0,
        .tls_unverified = !destination->tls_verify,
        .tls_optional = destination->kind == DESTINATION_SMTP && destination->smtp_tls == SMTP_TLS_NONE,
        .connect_timeout_us = connect_us,
        .user_timeout_us = connect_us,
    };
    TRY(guard_apply(&flight->guard, flight->easy, &flight->rules, url, why));
    flight->guard.on_header = on_header;
    flight->guard.may_begin = may_begin;
    flight->guard.user = flight;
    curl_easy_setopt(flight->easy, CURLOPT_PRIVATE, flight);
    curl_easy_setopt(flight->easy, CURLOPT_ERRORBUFFER, flight->error);
    curl_easy_setopt(flight->easy, CURLOPT_TIMEOUT_MS, (long)(call->timeout_us / WHEN_MS));
    if (call->unwanted != NULL) {
        curl_easy_setopt(flight->easy, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(flight->easy, CURLOPT_XFERINFOFUNCTION, on_progress);
        curl_easy_setopt(flight->easy, CURLOPT_XFERINFODATA, flight);
    }
    /* A kept connection may turn out to be dead, and then nobody knows whether the request arrived: only where that is harmless. */
    curl_easy_setopt(flight->easy, CURLOPT_FRESH_CONNECT, call->repeatable ? 0L : 1L);
    curl_easy_setopt(flight->easy, CURLOPT_FORBID_REUSE, call->repeatable ? 0L : 1L);
    return OK;
}

static enum status set_http(struct flight *flight, struct bytes secret, struct why *why)
{
    const struct effect_request *request = flight->call->request;
    struct arena *arena = flight->call->arena;
    struct pair auth[DESTINATION_AUTH_HEADERS_MAX];
    size_t auth_count = 0;
    struct bytes url, method = arena_dup(arena, request->method);
    struct env *env = flight->transport->env;
    struct signing signing = {request, id_text("eff", flight->call->effect, arena), env->wall_us(env)};
    TRY(destination_authorize(flight->call->destination, secret, &signing, arena, auth, &auth_count, why));
    TRY(destination_url(flight->call->destination, secret, request->path, arena, &url, why));
    TRY(flight_set_common(flight, url, why));
    if (method.at == NULL || !add_headers(flight, auth, auth_count))
        return why_set(why, FULL, "no memory for a call");
    bool sends = request->body.len > 0 || bytes_is(method, "POST") || bytes_is(method, "PUT") || bytes_is(method, "PATCH");
    if (sends) {
        curl_easy_setopt(flight->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
        curl_easy_setopt(flight->easy, CURLOPT_POSTFIELDS, request->body.at != NULL ? request->body.at : "");
    }
    if (bytes_is(method, "HEAD"))
        curl_easy_setopt(flight->easy, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(flight->easy, CURLOPT_CUSTOMREQUEST, method.at);
    curl_easy_setopt(flight->easy, CURLOPT_HTTPHEADER, flight->header_list);
    curl_easy_setopt(flight->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(flight->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(flight->easy, CURLOPT_WRITEDATA, flight);
    return OK;
}

static enum status prepare(struct flight *flight, struct why *why)
{
    struct real_transport *transport = flight->transport;
    flight->headers = arena_zalloc(flight->call->arena, FLIGHT_HEADERS_MAX, sizeof *flight->headers);
    flight->easy = transport->idle_count > 0 ? transport->idle[--transport->idle_count] : curl_easy_init();
    if (flight->easy == NULL || flight->headers == NULL)
        return why_set(why, FULL, "no memory for a call");
    return with_secret(flight, is_mail(flight) ? mail_set : set_http, why);
}

static enum status launch(struct flight *flight, struct why *why)
{
    if (is_mail(flight))
        return mail_start(flight, why);
    if (curl_multi_add_handle(flight->transport->multi, flight->easy) != CURLM_OK)
        return why_set(why, FULL, "libcurl does not take another call");
    return OK;
}

static void real_start(struct transport *base, struct transport_call *call)
{
    struct real_transport *transport = (struct real_transport *)base;
    struct flight *flight = calloc(1, sizeof *flight);
    if (flight == NULL) {
        (void)why_set(&call->why, FULL, "no memory for a call");
        refuse(call);
        return;
    }
    *flight = (struct flight){.transport = transport,
                              .call = call,
                              .next = transport->flights,
                              .before = &transport->flights,
                              .pidfd = -1,
                              .output = -1};
    if (flight->next != NULL)
        flight->next->before = &flight->next;
    transport->flights = flight;
    if (call->destination->kind == DESTINATION_COMMAND) {
        command_start(flight);
        return;
    }
    if (prepare(flight, &call->why) != OK || launch(flight, &call->why) != OK)
        flight_end(flight, TRANSPORT_NOT_SENT);
}

/* ---- what became of it ---- */

static void explain(struct flight *flight, CURLcode code)
{
    const char *text = flight->error[0] != '\0' ? flight->error : curl_easy_strerror(code);
    if (atomic_load(&flight->cancelled))
        (void)why_set(&flight->call->why, RETRY, "semel stopped");
    else if (flight->too_late)
        (void)why_set(&flight->call->why, RETRY, "it was too late to begin");
    else if (flight->guard.refused)
        flight->call->why = flight->guard.why;
    else
        (void)why_set(&flight->call->why, RETRY, "%s", text);
}

/* A mail is accepted with the answer to its last line. Before that line has left, nothing is; a refusal is an answer at any point. */
static enum transport_end end_of_mail(struct flight *flight, CURLcode code)
{
    long status = 0;
    curl_easy_getinfo(flight->easy, CURLINFO_RESPONSE_CODE, &status);
    flight->status = (int)status;
    if (code == CURLE_OK || status >= 400)
        return TRANSPORT_ANSWERED;
    return flight->upload_done ? TRANSPORT_LOST : TRANSPORT_NOT_SENT;
}

enum transport_end flight_judge(struct flight *flight, CURLcode code)
{
    if (code != CURLE_OK)
        explain(flight, code);
    if (guard_sent_nothing(&flight->guard))
        return TRANSPORT_NOT_SENT;
    if (is_mail(flight))
        return end_of_mail(flight, code);
    if (!flight->head_done)
        return TRANSPORT_LOST;
    return code == CURLE_OK ? TRANSPORT_ANSWERED : TRANSPORT_CUT;
}

static void take_ended(struct real_transport *transport)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(transport->multi, &left)) != NULL) {
        struct flight *flight = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&flight);
        flight_end(flight, flight_judge(flight, message->data.result));
    }
}

/* ---- the table of functions ---- */

static void real_run(struct transport *base, int64_t wait_us)
{
    struct real_transport *transport = (struct real_transport *)base;
    struct curl_waitfd fds[COMMANDS_POLLED_MAX];
    int running;
    curl_multi_perform(transport->multi, &running);
    take_ended(transport);
    int64_t deadline_us = INT64_MAX, left_us;
    size_t count = command_fds(transport, fds, COMMANDS_POLLED_MAX, &deadline_us);
    left_us = deadline_us == INT64_MAX ? wait_us : deadline_us - transport->env->boot_us(transport->env);
    wait_us = left_us < 0 ? 0 : left_us < wait_us ? left_us : wait_us;
    curl_multi_poll(transport->multi, fds, (unsigned)count, (int)((wait_us + 999) / 1000), NULL);
    curl_multi_perform(transport->multi, &running);
    take_ended(transport);
    mail_take_ended(transport);
    command_check(transport);
}

static void real_wake(struct transport *base)
{
    curl_multi_wakeup(((struct real_transport *)base)->multi);
}

static bool has_begun(const struct flight *flight)
{
    return flight->call->destination->kind == DESTINATION_COMMAND ? flight->pid > 0 : !guard_sent_nothing(&flight->guard);
}

static void real_abandon(struct transport *base)
{
    struct real_transport *transport = (struct real_transport *)base;
    mail_cancel(transport);
    while (transport->flights != NULL) {
        struct flight *flight = transport->flights;
        (void)why_set(&flight->call->why, RETRY, "semel stopped");
        if (flight->pid > 0)
            command_kill(flight);
        flight_end(flight, flight->head_done ? TRANSPORT_CUT : has_begun(flight) ? TRANSPORT_LOST : TRANSPORT_NOT_SENT);
    }
}

static void real_close(struct transport *base)
{
    struct real_transport *transport = (struct real_transport *)base;
    real_abandon(base);
    while (transport->idle_count > 0)
        curl_easy_cleanup(transport->idle[--transport->idle_count]);
    curl_multi_cleanup(transport->multi);
    pthread_mutex_destroy(&transport->lock);
    free(transport);
}

enum status transport_open(struct env *env, struct secrets *secrets, struct transport **ret_transport, struct why *why)
{
    struct real_transport *transport = calloc(1, sizeof *transport);
    ASSERT(transport != NULL);
    *transport = (struct real_transport){.transport = {real_start, real_run, real_wake, real_abandon, real_close},
                                         .env = env,
                                         .secrets = secrets,
                                         .multi = curl_multi_init()};
    if (transport->multi == NULL) {
        free(transport);
        return why_set(why, FULL, "libcurl could not be started");
    }
    pthread_mutex_init(&transport->lock, NULL);
    curl_multi_setopt(transport->multi, CURLMOPT_MAXCONNECTS, CONNECTIONS_KEPT);
    *ret_transport = &transport->transport;
    return OK;
}
