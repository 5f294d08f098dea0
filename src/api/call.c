#include <stdarg.h>
#include <stdio.h>

#include "api/api.h"
#include "base/percent.h"

#define OUT_SIZE_MAX (64u << 20)
#define LLM_BODY_SIZE_MAX ((size_t)16 << 20) /* pictures are sent to models */

/* ---- answering ---- */

void call_header(struct call *call, const char *name, struct bytes value)
{
    ASSERT(call->header_count < sizeof call->headers / sizeof *call->headers);
    call->headers[call->header_count++] = (struct http_header){bytes_of(name), value};
}

void call_headerf(struct call *call, const char *name, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ASSERT(len >= 0 && (size_t)len < sizeof text);
    struct bytes value = arena_dup(call->request->arena, (struct bytes){text, (size_t)len});
    if (value.at != NULL)
        call_header(call, name, value);
}

void call_reply_as(struct call *call, int status, const char *content_type, struct bytes body)
{
    struct http_reply reply = {
        .status = status,
        .content_type = content_type,
        .headers = call->headers,
        .header_count = call->header_count,
        .body = body,
        .close = atomic_load(&call->api->stopping),
    };
    atomic_fetch_add(&call->api->replies[status / 100 < 6 ? status / 100 : 5], 1);
    struct buf out = call->out; /* the call lives in the request's arena, which ends with the reply */
    http_reply(call->request, &reply);
    buf_release(&out);
}

void call_reply(struct call *call, int status)
{
    if (call->out.failed) {
        problem(call, "too_large", "The answer would be too large.");
        return;
    }
    call_reply_as(call, status, "application/json", buf_bytes(&call->out));
}

/* ---- to the engine and back ---- */

static void back_on_loop(void *arg)
{
    struct call *call = arg;
    call->finish(call);
}

static void command_done(struct engine_command *command)
{
    struct call *call = command->user;
    http_server_post(call->api->server, back_on_loop, call);
}

void call_submit(struct call *call, void (*finish)(struct call *call))
{
    call->finish = finish;
    call->command.user = call;
    call->command.done = command_done;
    call->command.arena = call->request->arena;
    call->command.gone = &call->request->gone;
    engine_queue(call->api->engine, &call->command);
}

static void read_done(struct engine_read *read)
{
    struct call *call = read->user;
    http_server_post(call->api->server, back_on_loop, call);
}

void call_submit_read(struct call *call, enum status (*read)(struct store *, struct engine_read *, struct why *),
                      void (*finish)(struct call *call))
{
    call->finish = finish;
    call->read = (struct engine_read){.read = read, .done = read_done, .user = call};
    engine_submit_read(call->api->engine, &call->read);
}

/* ---- what was asked ---- */

bool call_body(struct call *call, const struct json_field *fields, size_t count, void *ret)
{
    struct json json;
    struct why why;
    struct bytes body = call->request->body.len > 0 ? call->request->body : BYTES("{}"), field = BYTES_NONE;
    enum status status = json_parse(body, NULL, call->request->arena, &json, &why);
    if (status != OK) {
        problem(call, status == FULL ? "too_large" : "malformed", "The body is not valid JSON: %s", why.text);
        return false;
    }
    if (json.type != JSON_OBJECT) {
        problem(call, "malformed", "The body has to be a JSON object, not %s.", json_type_name(json.type));
        return false;
    }
    if (json_read(&json, fields, count, ret, &field, &why) != OK) {
        problem_field(call, field, "%s", why.text);
        return false;
    }
    return true;
}

static bool decode(struct call *call, struct bytes in, bool plus, struct bytes *ret)
{
    char *text = arena_alloc(call->request->arena, in.len + 1);
    size_t len;
    if (text == NULL || !percent_decode(in, plus, text, &len))
        return false;
    *ret = (struct bytes){text, len};
    return true;
}

struct bytes call_query(struct call *call, const char *name)
{
    struct bytes rest = call->request->head.query;
    while (rest.len > 0) {
        struct bytes pair = bytes_cut(&rest, '&'), value = BYTES_NONE;
        struct bytes key = bytes_cut(&pair, '=');
        if (bytes_is(key, name) && decode(call, pair, true, &value))
            return value;
    }
    return BYTES_NONE;
}

static size_t name_count(const char *const *names)
{
    size_t count = 0;
    while (names[count] != NULL)
        count++;
    return count;
}

bool call_query_known(struct call *call, const char *const *names)
{
    struct bytes rest = call->request->head.query;
    while (rest.len > 0) {
        struct bytes pair = bytes_cut(&rest, '&'), value;
        struct bytes key = bytes_cut(&pair, '=');
        bool known = key.len == 0;
        for (size_t i = 0; names[i] != NULL; i++)
            known = known || bytes_is(key, names[i]);
        if (!known) {
            const char *near = nearest_name(key, names, name_count(names));
            problem_field(call, key, "There is no query parameter \"%.*s\"%s%s%s", BYTES_ARG(key),
                          near != NULL ? "; did you mean \"" : ".", near != NULL ? near : "", near != NULL ? "\"?" : "");
            return false;
        }
        if (!decode(call, pair, true, &value)) {
            problem_field(call, key, "The query parameter \"%.*s\" is not valid percent-encoded UTF-8.", BYTES_ARG(key));
            return false;
        }
    }
    return true;
}

bool call_page(struct call *call, const char *prefix, int64_t *ret_limit, int64_t *ret_after)
{
    struct bytes limit = call_query(call, "limit"), after = call_query(call, "after");
    int64_t n = API_LIST_DEFAULT, id = 0;
    if (limit.at != NULL && (!bytes_to_i64(limit, &n) || n < 1 || n > API_LIST_MAX)) {
        problem_field(call, BYTES("limit"), "limit has to be a number from 1 to %d.", API_LIST_MAX);
        return false;
    }
    if (after.at != NULL && after.len > 0 && !id_parse(prefix, after, &id)) {
        problem_field(call, BYTES("after"), "after has to be the page.next of an earlier answer, such as %s_….", prefix);
        return false;
    }
    *ret_limit = n;
    *ret_after = id;
    return true;
}

bool call_param_id(struct call *call, size_t param, const char *prefix, int64_t *ret_id)
{
    if (id_parse(prefix, call->params[param], ret_id))
        return true;
    problem(call, "not_found", "\"%.*s\" is not the id of anything here; ids look like %s_0123456789abc.",
            (int)(call->params[param].len < 80 ? call->params[param].len : 80), call->params[param].at, prefix);
    return false;
}

void call_write_id(struct json_out *out, const char *name, const char *prefix, int64_t id)
{
    char text[32];
    json_name(out, name);
    if (id == 0)
        json_null(out);
    else
        json_text(out, (struct bytes){text, id_format(prefix, id, text)});
}

enum status call_write_rows(struct json_out *out, const char *name, struct store *store, const struct query *query,
                            const void *params, store_row_fn *take, void *ctx, struct why *why)
{
    json_name(out, name);
    json_open(out, '[');
    TRY(store_run(store, query, params, 1, take, ctx, NULL, why));
    json_close(out, ']');
    return OK;
}

void call_write_effect(struct json_out *out, const struct ledger_answer *answer)
{
    call_write_id(out, "effect", "eff", answer->intent);
    call_write_id(out, "intent", "int", answer->intent);
    json_name(out, "state");
    json_cstr(out, intent_state_names[answer->state]);
}

static enum status write_body(void *ctx, const void *row, struct why *why)
{
    (void)why;
    json_raw(ctx, ((const struct r_body_get *)row)->bytes);
    return OK;
}

enum status call_write_result(struct call *call, struct store *store, int64_t body, struct json_out *out, struct why *why)
{
    struct q_body_get get = {body};
    json_name(out, "result");
    size_t before = call->out.len;
    if (body != 0)
        TRY(store_run(store, &BODY_GET, &get, 1, write_body, out, NULL, why));
    if (call->out.len == before)
        json_null(out);
    return OK;
}

void call_open_list(struct json_out *out)
{
    json_open(out, '{');
    json_name(out, "data");
    json_open(out, '[');
}

void call_close_list(struct json_out *out, const char *prefix, int64_t next, int64_t limit)
{
    json_close(out, ']');
    json_name(out, "page");
    json_open(out, '{');
    call_write_id(out, "next", prefix, next);
    json_name(out, "limit");
    json_i64(out, limit);
    json_close(out, '}');
    json_close(out, '}');
}

void call_reply_read(struct call *call, const char *nothing)
{
    if (call->read.status == NOTHING)
        problem(call, "not_found", "%s", nothing);
    else if (call->read.status != OK)
        problem_storage(call, call->read.status, &call->read.why);
    else
        call_reply(call, 200);
}

/* ---- finding the route ---- */

/* Most routes differ from a path in their first letters; this is cheaper than taking both apart. */
static bool begins_alike(const char *pattern, struct bytes path)
{
    for (size_t i = 0; i < path.len && pattern[i] != '\0' && pattern[i] != '{' && pattern[i] != '*'; i++)
        if (pattern[i] != path.at[i])
            return false;
    return true;
}

static bool match(struct call *call, const char *pattern, struct bytes path)
{
    struct bytes wanted = bytes_of(pattern);
    size_t params = 0;
    bool tail = wanted.len > 0 && wanted.at[wanted.len - 1] == '*';
    if (path.len > 1 && path.at[path.len - 1] == '/' && !tail) /* /v1/intents/ is not /v1/intents */
        return false;
    for (;;) {
        struct bytes part = bytes_cut(&wanted, '/'), got = bytes_cut(&path, '/');
        bool placeholder = part.len > 0 && part.at[0] == '{';
        if (placeholder) {
            if (got.len == 0 || !decode(call, got, false, &call->params[params++]))
                return false;
        } else if (!bytes_eq(part, got)) {
            return false;
        }
        if (bytes_is(wanted, "*")) /* the rest, whatever it is */
            return true;
        if (wanted.len == 0 || path.len == 0)
            return wanted.len == 0 && path.len == 0;
    }
}

static const struct route *find_route(struct call *call, struct buf *allow)
{
    enum http_method method = call->request->head.method == HTTP_HEAD ? HTTP_GET : call->request->head.method;
    static const char *const names[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", ""};
    struct bytes path = call->request->head.path;
    for (size_t i = 0; i < api_route_count; i++) {
        const struct route *route = &api_routes[i];
        if (!begins_alike(route->path, path) || !match(call, route->path, path))
            continue;
        if (route->method == method || route->method == HTTP_ANY)
            return route;
        buf_add_cstr(allow, allow->len > 0 ? ", " : "");
        buf_add_cstr(allow, route->method == HTTP_GET ? "GET, HEAD" : names[route->method]);
    }
    return NULL;
}

/* ---- who is asking ---- */

/* Without tokens, a page in the user's browser must not be able to ask: neither from a foreign origin, nor under a foreign name that points here. */
static bool is_local(const struct http_request *request)
{
    struct bytes host = http_header(&request->head, "host"), origin = http_header(&request->head, "origin");
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    struct bytes bare = host;
    const char *colon = host.len > 0 && host.at[0] != '[' ? memchr(host.at, ':', host.len) : NULL;
    const char *bracket = host.len > 0 && host.at[0] == '[' ? memchr(host.at, ']', host.len) : NULL;
    if (colon != NULL)
        bare.len = (size_t)(colon - host.at);
    else if (bracket != NULL)
        bare.len = (size_t)(bracket + 1 - host.at);
    bool known = request->head.minor == 0 && host.at == NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        known = known || bytes_eq_nocase(bare, bytes_of(names[i]));
    if (!known)
        return false;
    if (origin.at == NULL)
        return true;
    struct bytes after = bytes_starts(origin, BYTES("http://"))    ? bytes_from(origin, 7)
                         : bytes_starts(origin, BYTES("https://")) ? bytes_from(origin, 8)
                                                                   : BYTES_NONE;
    return after.at != NULL && bytes_eq(after, host);
}

static bool authorize_open(struct call *call)
{
    if (!is_local(call->request)) {
        problem(call, "forbidden",
                "semel up answers only programs on this computer that call it 127.0.0.1 or localhost, not web pages.");
        return false;
    }
    call->space = BYTES("main");
    call->actor = BYTES("local");
    call->scopes = SCOPE_ALL;
    return true;
}

/* The text of the token; BYTES_NONE for none. On the way to a destination, Authorization may be meant for that one. */
static struct bytes token_text(const struct http_head *head)
{
    struct bytes header = http_header(head, "authorization"), own = http_header(head, "semel-token"),
                 key = http_header(head, "x-api-key");
    if (own.at != NULL)
        return own;
    if (header.len > 7 && bytes_eq_nocase((struct bytes){header.at, 7}, BYTES("Bearer ")))
        return bytes_trim(bytes_from(header, 7));
    return bytes_starts(key, BYTES("sml_")) ? key : BYTES_NONE; /* where a client knows no other place */
}

/* NULL when it is none that is known. */
static const struct row_token *find_token(const struct api *api, struct bytes text)
{
    struct env *env = engine_env(api->engine);
    return text.at != NULL ? access_check(api->access, engine_pepper(api->engine), text, env->wall_us(env)) : NULL;
}

static bool authorize_token(struct call *call)
{
    struct bytes text = token_text(&call->request->head);
    const struct row_token *token = find_token(call->api, text);
    if (token == NULL) {
        problem(call, "unauthorized",
                text.at != NULL ? "The token is not known here, has expired or was revoked." : "This needs a token.");
        return false;
    }
    /* The snapshot may be replaced while the engine works for this call. */
    call->space = arena_dup(call->request->arena, token->space);
    call->actor = arena_printf(call->request->arena, "token:%.*s", BYTES_ARG(token->name));
    call->scopes = (token->scopes & SCOPE_ADMIN) != 0 ? SCOPE_ALL : (int)(token->scopes & SCOPE_ALL);
    call->stopped = (token->scopes & TOKEN_STOPPED) != 0;
    if (call->space.at != NULL && call->actor.at != NULL)
        return true;
    problem(call, "too_large", "The request needs too much memory.");
    return false;
}

static bool authorize(struct call *call)
{
    int scope = call->route->scope & ~ROUTE_FINISHES;
    if (scope == 0)
        return true;
    if (!(call->api->open ? authorize_open(call) : authorize_token(call)))
        return false;
    if (call->stopped && scope == SCOPE_CLAIM && (call->route->scope & ROUTE_FINISHES) == 0) {
        problem(call, "agent_stopped", "An operator stopped this agent. What it has begun it may finish; it begins nothing new.");
        return false;
    }
    if ((call->scopes & scope) == scope)
        return true;
    const char *missing = scope_names[__builtin_ctz((unsigned)scope)];
    problem(call, "forbidden", "This needs a token with the scope \"%s\".", missing);
    return false;
}

/* ---- the door ---- */

size_t api_body_size(const struct http_head *head, void *user)
{
    const struct api *api = user;
    struct bytes in = BYTES("/in/");
    if (bytes_starts(head->path, in)) {
        const struct source *source = policy_source(api->policy, bytes_from(head->path, in.len));
        return source != NULL ? (size_t)source->body_max : 0;
    }
    bool known = api->open || find_token(api, token_text(head)) != NULL;
    return known && bytes_starts(head->path, BYTES("/llm/")) ? LLM_BODY_SIZE_MAX : 0;
}

static void refuse_route(struct call *call, struct buf *allow)
{
    if (allow->len == 0) {
        problem(call, "not_found", "There is nothing at this path.");
        return;
    }
    call_headerf(call, "Allow", "%.*s", BYTES_ARG(buf_bytes(allow)));
    problem(call, "method_not_allowed", "This path takes %.*s.", BYTES_ARG(buf_bytes(allow)));
}

void api_handle(struct http_request *request, void *user)
{
    struct api *api = user;
    struct call *call = arena_zalloc(request->arena, 1, sizeof *call);
    ASSERT(call != NULL);
    call->api = api;
    call->request = request;
    buf_init(&call->out, OUT_SIZE_MAX);
    snprintf(call->request_id, sizeof call->request_id, "req_%llx_%llx", (unsigned long long)(api->started_us / 1000),
             (unsigned long long)request->number);
    call_header(call, "X-Request-Id", bytes_of(call->request_id));
    struct buf allow;
    buf_init(&allow, 256);
    call->route = find_route(call, &allow);
    if (call->route == NULL)
        refuse_route(call, &allow);
    else if (authorize(call))
        call->route->handle(call);
    buf_release(&allow);
}

void api_refuse(int status, const char *why, struct buf *out, void *user)
{
    struct api *api = user;
    atomic_fetch_add(&api->replies[status / 100 < 6 ? status / 100 : 5], 1);
    problem_bare(status, why, out);
}
