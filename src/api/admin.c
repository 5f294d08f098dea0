#include <stdio.h>

#include "api/api.h"
#include "base/when.h"

/* ---- what all of these need ---- */

enum status admin_record(struct ledger *ledger, struct bytes space, struct bytes actor, const char *kind, struct bytes detail)
{
    struct row_decision *row = audit_add(ledger->audit);
    if (row == NULL)
        return FULL;
    row->space = space;
    row->kind = bytes_of(kind);
    row->actor = actor;
    row->detail = detail;
    return OK;
}

bool admin_keeps_house(struct call *call)
{
    if (bytes_is(call->space, "main"))
        return true;
    problem(call, "forbidden", "Only an admin of the space \"main\" can do this.");
    return false;
}

/* ---- policy ---- */

void api_take_policy(struct api *api, struct policy *policy, int64_t version)
{
    struct people people = PEOPLE_DEFAULT;
    if (policy->owner.len > 0)
        snprintf(people.owner, sizeof people.owner, "%.*s", BYTES_ARG(policy->owner));
    if (policy->due_us > 0)
        people.due_us = policy->due_us;
    engine_set_people(api->engine, &people);
    act_set_policy(api->act, policy, version);
    flow_set_policy(api->flow, policy, version);
    gateway_set_policy(api->gateway, policy);
    if (api->policy != NULL && api->policy != policy)
        policy_free(api->policy);
    api->policy = policy;
    api->policy_version = version;
}

static void add_stranded(void *ctx, struct bytes destination, int64_t effects)
{
    (void)destination;
    *(int64_t *)ctx += effects;
}

enum status policy_write(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct policy_order *order = command->user;
    struct row_policy latest = {0};
    enum status status = policy_load(store, ledger->arena, &latest, why);
    if (status != OK && status != NOTHING)
        return status;
    order->stranded = 0;
    if (order->policy != NULL)
        TRY(outbox_stranded(store, order->policy, ledger->arena, add_stranded, &order->stranded, why));
    order->version = latest.version;
    order->changed = status == NOTHING || !bytes_eq(latest.hash, hash_bytes(&order->hash));
    if (!order->changed)
        return OK;
    order->version++;
    struct row_policy row = {order->version, hash_bytes(&order->hash), order->text, ledger->now.wall_us, order->actor};
    TRY(store_run(store, &POLICY_ADD, &row, 1, NULL, NULL, NULL, why));
    return admin_record(ledger, BYTES("main"), order->actor, "policy",
                        arena_printf(ledger->arena, "{\"version\":%lld}", (long long)order->version));
}

static enum status read_policy(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct row_policy *row = call->state;
    return policy_load(store, call->request->arena, row, why);
}

static void write_hash(struct json_out *out, const char *name, struct bytes hash)
{
    char hex[2 * HASH_SIZE];
    json_name(out, name);
    if (hash.len != HASH_SIZE) {
        json_null(out);
        return;
    }
    bytes_to_hex(hash, hex);
    json_text(out, (struct bytes){hex, sizeof hex});
}

static void finish_policy_show(struct call *call)
{
    const struct row_policy *row = call->state;
    if (call->read.status != OK && call->read.status != NOTHING) {
        problem_storage(call, call->read.status, &call->read.why);
        return;
    }
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    json_name(&out, "version");
    json_i64(&out, row->version);
    write_hash(&out, "hash", row->hash);
    json_name(&out, "applied_at");
    json_time(&out, row->applied);
    json_name(&out, "actor");
    json_text(&out, row->actor);
    json_name(&out, "text");
    json_text(&out, row->text.at != NULL ? row->text : BYTES(""));
    json_close(&out, '}');
    call_reply(call, 200);
}

void policy_show(struct call *call)
{
    call->state = arena_zalloc(call->request->arena, 1, sizeof(struct row_policy));
    ASSERT(call->state != NULL);
    call_submit_read(call, read_policy, finish_policy_show);
}

static void write_problems(struct call *call, struct json_out *out)
{
    const struct yaml_problems *problems = call->state;
    json_name(out, "problems");
    json_open(out, '[');
    for (size_t i = 0; i < problems->count; i++) {
        json_open(out, '{');
        json_name(out, "line");
        json_i64(out, (int64_t)problems->at[i].line);
        json_name(out, "column");
        json_i64(out, (int64_t)problems->at[i].column);
        json_name(out, "text");
        json_cstr(out, problems->at[i].text);
        json_close(out, '}');
    }
    json_close(out, ']');
}

struct policy_put_state {
    struct call *call;
    struct policy_order order;
    struct policy *policy;
};

static void policy_put_done(struct engine_command *command);

static void finish_policy_put(struct call *call)
{
    struct policy_put_state *state = call->state;
    if (call->command.status != OK) {
        policy_free(state->policy);
        problem_storage(call, call->command.status, &call->command.why);
        return;
    }
    api_take_policy(call->api, state->policy, state->order.version);
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    json_name(&out, "version");
    json_i64(&out, state->order.version);
    write_hash(&out, "hash", hash_bytes(&state->order.hash));
    json_name(&out, "changed");
    json_bool(&out, state->order.changed);
    json_name(&out, "stranded");
    json_i64(&out, state->order.stranded);
    json_close(&out, '}');
    call_reply(call, 200);
}

static void policy_put_on_loop(void *arg)
{
    finish_policy_put(arg);
}

static void policy_put_done(struct engine_command *command)
{
    struct policy_order *order = command->user;
    struct policy_put_state *state = (struct policy_put_state *)((char *)order - offsetof(struct policy_put_state, order));
    http_server_post(state->call->api->server, policy_put_on_loop, state->call);
}

bool policy_body(struct call *call, struct policy **ret_policy)
{
    struct yaml_problems *problems = arena_zalloc(call->request->arena, 1, sizeof *problems);
    ASSERT(problems != NULL);
    enum status status = policy_parse(call->request->body, ret_policy, problems);
    if (status == OK)
        return true;
    if (problems->count == 0) {
        problem_storage(call, RETRY, &(struct why){"there is no memory for the policy"});
        return false;
    }
    call->state = problems;
    problem_with(call, "policy_invalid", write_problems, "There %s %zu problem%s; the first is in line %zu: %s",
                 problems->count == 1 ? "is" : "are", problems->count, problems->count == 1 ? "" : "s", problems->at[0].line,
                 problems->at[0].text);
    return false;
}

void policy_put(struct call *call)
{
    struct policy_put_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    if (!admin_keeps_house(call) || !policy_body(call, &state->policy))
        return;
    state->call = call;
    state->order = (struct policy_order){
        .text = call->request->body, .actor = call->actor, .hash = state->policy->hash, .policy = state->policy};
    call->state = state;
    call->command = (struct engine_command){
        .write = policy_write, .user = &state->order, .arena = call->request->arena, .done = policy_put_done};
    engine_submit(call->api->engine, &call->command);
}

/* ---- quarantine ---- */

struct lift_state {
    struct call *call;
    struct bytes reason, actor;
};

static const struct json_field lift_fields[] = {
    {"reason", JSON_FIELD_TEXT, offsetof(struct lift_state, reason), true, 1, 1024, NULL},
};

static enum status lift_write(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct lift_state *state = command->user;
    TRY(quarantine_lift(store, why));
    TRY(admin_record(ledger, BYTES("main"), state->actor, "quarantine_lift", BYTES_NONE));
    ledger->audit->rows[ledger->audit->count - 1].reason = state->reason;
    return OK;
}

static void lift_on_loop(void *arg)
{
    struct call *call = arg;
    if (call->command.status == NOTHING) {
        problem(call, "not_found", "There is no quarantine to lift.");
        return;
    }
    if (call->command.status != OK) {
        problem_storage(call, call->command.status, &call->command.why);
        return;
    }
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    json_name(&out, "lifted");
    json_bool(&out, true);
    json_close(&out, '}');
    call_reply(call, 200);
}

static void lift_done(struct engine_command *command)
{
    struct lift_state *state = command->user;
    http_server_post(state->call->api->server, lift_on_loop, state->call);
}

void quarantine_lift_post(struct call *call)
{
    struct lift_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    if (!admin_keeps_house(call) || !call_body(call, lift_fields, sizeof lift_fields / sizeof *lift_fields, state))
        return;
    if (memchr(state->reason.at, 0, state->reason.len) != NULL) {
        problem_field(call, BYTES("reason"), "reason must not contain U+0000.");
        return;
    }
    state->call = call;
    state->actor = call->actor;
    call->command = (struct engine_command){.write = lift_write, .user = state, .arena = call->request->arena, .done = lift_done};
    engine_submit(call->api->engine, &call->command);
}

/* ---- tokens ---- */

enum status token_write(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct token_order *order = command->user;
    order->created_us = ledger->now.wall_us;
    struct row_token row = {
        .id = order->id,
        .space = order->space,
        .name = order->name,
        .scopes = order->scopes,
        .hash = hash_bytes(&order->hash),
        .created = order->created_us,
        .expires = order->expires_us,
    };
    TRY(store_run(store, &TOKEN_ADD, &row, 1, NULL, NULL, NULL, why));
    return admin_record(ledger, order->space, order->actor, "token_create",
                        arena_printf(ledger->arena, "{\"token\":\"%.*s\"}", BYTES_ARG(order->id)));
}

static void write_scopes(struct json_out *out, int64_t scopes)
{
    json_name(out, "scopes");
    json_open(out, '[');
    for (int i = 0; scope_names[i] != NULL; i++)
        if ((scopes & (1 << i)) != 0)
            json_cstr(out, scope_names[i]);
    json_close(out, ']');
}

struct tokens_state {
    struct call *call;
    struct token_order order;
    struct bytes revoke;
    struct bytes agent; /* to be stopped or started */
    bool stop;
    struct access *access;
    bool created;
};

static void reload_done(struct call *call);

static enum status read_access(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct tokens_state *state = call->state;
    return access_load(store, &state->access, why);
}

static void tokens_done(struct engine_command *command);

static void answer_created(struct call *call, const struct token_order *order)
{
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    json_name(&out, "token");
    json_cstr(&out, order->text);
    json_name(&out, "id");
    json_text(&out, order->id);
    json_name(&out, "name");
    json_text(&out, order->name);
    json_name(&out, "space");
    json_text(&out, order->space);
    write_scopes(&out, order->scopes);
    json_name(&out, "created_at");
    json_time(&out, order->created_us);
    json_name(&out, "expires_at");
    json_time(&out, order->expires_us);
    json_close(&out, '}');
    call_reply(call, 201);
}

static void answer_revoked(struct call *call, struct bytes id)
{
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    json_name(&out, "id");
    json_text(&out, id);
    json_name(&out, "revoked");
    json_bool(&out, true);
    json_close(&out, '}');
    call_reply(call, 200);
}

static void answer_agent(struct call *call, struct bytes agent, bool stopped)
{
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    json_name(&out, "agent");
    json_text(&out, agent);
    json_name(&out, "stopped");
    json_bool(&out, stopped);
    json_close(&out, '}');
    call_reply(call, 200);
}

/* The change holds for this node's next request; other nodes look every second. */
static void reload_done(struct call *call)
{
    struct tokens_state *state = call->state;
    if (call->read.status != OK) {
        problem_storage(call, call->read.status, &call->read.why);
        return;
    }
    access_free(call->api->access);
    call->api->access = state->access;
    if (state->created)
        answer_created(call, &state->order);
    else if (state->agent.at != NULL)
        answer_agent(call, state->agent, state->stop);
    else
        answer_revoked(call, state->revoke);
}

static void tokens_on_loop(void *arg)
{
    struct call *call = arg;
    if (call->command.status == NOTHING)
        problem(call, "not_found", "There is no such token, or it is revoked already.");
    else if (call->command.status != OK)
        problem_storage(call, call->command.status, &call->command.why);
    else
        call_submit_read(call, read_access, reload_done);
}

static void tokens_done(struct engine_command *command)
{
    struct token_order *order = command->user;
    struct tokens_state *state = (struct tokens_state *)((char *)order - offsetof(struct tokens_state, order));
    http_server_post(state->call->api->server, tokens_on_loop, state->call);
}

static void submit_tokens(struct call *call, struct tokens_state *state,
                          enum status (*write)(struct store *, struct ledger *, struct engine_command *, struct why *))
{
    state->call = call;
    call->state = state;
    call->command =
        (struct engine_command){.write = write, .user = &state->order, .arena = call->request->arena, .done = tokens_done};
    engine_submit(call->api->engine, &call->command);
}

struct token_body {
    struct bytes name, expires, space;
    const struct json *scopes;
};

static const struct json_field token_fields[] = {
    {"name", JSON_FIELD_TEXT, offsetof(struct token_body, name), true, 1, 64, NULL},
    {"scopes", JSON_FIELD_VALUE, offsetof(struct token_body, scopes), true, 0, 0, NULL},
    {"expires", JSON_FIELD_TEXT, offsetof(struct token_body, expires), false, 2, 16, NULL},
    {"space", JSON_FIELD_TEXT, offsetof(struct token_body, space), false, 1, 64, NULL},
};

static bool read_scopes(struct call *call, const struct json *list, int64_t *ret_scopes)
{
    int64_t scopes = 0;
    bool bad = list->type != JSON_ARRAY || list->count == 0;
    for (uint32_t n = 0; !bad && n < list->count; n++) {
        int bit = 0;
        while (scope_names[bit] != NULL &&
               (list->items[n].type != JSON_STRING || !bytes_is(list->items[n].text, scope_names[bit])))
            bit++;
        bad = scope_names[bit] == NULL;
        scopes |= 1 << bit;
    }
    if (bad) {
        problem_field(call, BYTES("scopes"), "scopes has to be a list of one or more of \"claim\", \"read\", \"admin\".");
        return false;
    }
    *ret_scopes = scopes;
    return true;
}

static bool read_expires(struct call *call, struct bytes text, int64_t now_us, int64_t *ret_expires_us)
{
    int64_t duration;
    if (text.at == NULL) {
        *ret_expires_us = now_us + 365 * WHEN_DAY;
        return true;
    }
    if (!when_parse_duration(text, &duration) || duration < WHEN_MINUTE || duration > 366 * WHEN_DAY) {
        problem_field(call, BYTES("expires"), "expires has to be a duration from 1m to 366d, such as \"90d\".");
        return false;
    }
    *ret_expires_us = now_us + duration;
    return true;
}

static bool is_name(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] < 0x20 || text.at[i] == 0x7f)
            return false;
    return true;
}

void tokens_create(struct call *call)
{
    struct token_body body = {.space = call->space};
    struct tokens_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    struct env *env = engine_env(call->api->engine);
    if (!call_body(call, token_fields, sizeof token_fields / sizeof *token_fields, &body) ||
        !read_scopes(call, body.scopes, &state->order.scopes) ||
        !read_expires(call, body.expires, env->wall_us(env), &state->order.expires_us))
        return;
    if (!is_name(body.name) || !is_name(body.space)) {
        problem_field(call, is_name(body.name) ? BYTES("space") : BYTES("name"),
                      "name and space must not contain control characters.");
        return;
    }
    if (!bytes_eq(body.space, call->space) && !admin_keeps_house(call))
        return;
    state->order.space = body.space;
    state->order.name = body.name;
    state->order.actor = call->actor;
    token_make(env, engine_pepper(call->api->engine), state->order.text, &state->order.hash, &state->order.id);
    state->created = true;
    submit_tokens(call, state, token_write);
}

static enum status revoke_write(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct token_order *order = command->user;
    struct tokens_state *state = (struct tokens_state *)((char *)order - offsetof(struct tokens_state, order));
    struct q_token_revoke revoke = {state->revoke, ledger->now.wall_us};
    int64_t changed = 0;
    TRY(store_run(store, &TOKEN_REVOKE, &revoke, 1, NULL, NULL, &changed, why));
    if (changed == 0)
        return NOTHING;
    return admin_record(ledger, order->space, order->actor, "token_revoke",
                        arena_printf(ledger->arena, "{\"token\":\"%.*s\"}", BYTES_ARG(state->revoke)));
}

static bool is_token_id(struct bytes id)
{
    bool good = id.len == TOKEN_ID_SIZE;
    for (size_t i = 0; good && i < id.len; i++)
        good =
            (id.at[i] >= '0' && id.at[i] <= '9') || (id.at[i] >= 'A' && id.at[i] <= 'Z') || (id.at[i] >= 'a' && id.at[i] <= 'z');
    return good;
}

static bool sees_token(const struct call *call, const struct row_token *token)
{
    return bytes_is(call->space, "main") || bytes_eq(call->space, token->space);
}

void tokens_revoke(struct call *call)
{
    struct tokens_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    if (!is_token_id(call->params[0])) {
        problem(call, "not_found", "There is no such token.");
        return;
    }
    bool seen = false;
    for (size_t i = 0; i < call->api->access->count; i++) {
        const struct row_token *token = &call->api->access->tokens[i];
        seen = seen || (bytes_eq(token->id, call->params[0]) && sees_token(call, token));
    }
    if (!seen) {
        problem(call, "not_found", "There is no such token.");
        return;
    }
    state->revoke = call->params[0];
    state->order.space = call->space;
    state->order.actor = call->actor;
    submit_tokens(call, state, revoke_write);
}

/* ---- agents: the kill switch ---- */

static enum status agent_write(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct token_order *order = command->user;
    struct tokens_state *state = (struct tokens_state *)((char *)order - offsetof(struct tokens_state, order));
    struct q_token_stop stop = {TOKEN_STOPPED, state->agent, order->space};
    struct q_token_start start = {~(int64_t)TOKEN_STOPPED, state->agent, order->space};
    struct buf detail;
    int64_t changed = 0;
    TRY(state->stop ? store_run(store, &TOKEN_STOP, &stop, 1, NULL, NULL, &changed, why)
                    : store_run(store, &TOKEN_START, &start, 1, NULL, NULL, &changed, why));
    if (changed == 0)
        return NOTHING;
    buf_init(&detail, 4096);
    struct json_out out = json_out_to(&detail);
    json_open(&out, '{');
    json_name(&out, "agent");
    json_text(&out, state->agent);
    json_close(&out, '}');
    struct bytes text = arena_dup(ledger->arena, buf_bytes(&detail));
    buf_release(&detail);
    return admin_record(ledger, order->space, order->actor, state->stop ? "agent_stop" : "agent_start", text);
}

static void switch_agent(struct call *call, bool stop)
{
    struct tokens_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    if (call->params[0].len > 128) {
        problem(call, "not_found", "There is no such token, or it is revoked already.");
        return;
    }
    state->agent = call->params[0];
    state->stop = stop;
    state->order.space = call->space;
    state->order.actor = call->actor;
    submit_tokens(call, state, agent_write);
}

void agents_stop(struct call *call)
{
    switch_agent(call, true);
}

void agents_start(struct call *call)
{
    switch_agent(call, false);
}

static void write_token(struct json_out *out, const struct row_token *token)
{
    json_open(out, '{');
    json_name(out, "id");
    json_text(out, token->id);
    json_name(out, "name");
    json_text(out, token->name);
    json_name(out, "space");
    json_text(out, token->space);
    write_scopes(out, token->scopes);
    json_name(out, "stopped");
    json_bool(out, (token->scopes & TOKEN_STOPPED) != 0);
    json_name(out, "created_at");
    json_time(out, token->created);
    json_name(out, "expires_at");
    json_time(out, token->expires);
    json_name(out, "revoked_at");
    json_time(out, token->revoked);
    json_close(out, '}');
}

void tokens_list(struct call *call)
{
    struct json_out out = json_out_to(&call->out);
    call_open_list(&out);
    for (size_t i = 0; i < call->api->access->count; i++)
        if (sees_token(call, &call->api->access->tokens[i]))
            write_token(&out, &call->api->access->tokens[i]);
    call_close_list(&out, "", 0, (int64_t)call->api->access->count); /* all of them */
    call_reply(call, 200);
}

/* ---- other nodes ---- */

struct refresh {
    struct api *api;
    struct engine_read read;
    struct arena arena;
    struct row_policy policy;
    struct access *access;
};

static enum status read_refresh(struct store *store, struct engine_read *read, struct why *why)
{
    struct refresh *refresh = read->user;
    enum status status = policy_load(store, &refresh->arena, &refresh->policy, why);
    if (status != OK && status != NOTHING)
        return status;
    TRY(secrets_refresh(refresh->api->secrets, store, why));
    return access_load(store, &refresh->access, why);
}

static void take_refresh(void *arg)
{
    struct refresh *refresh = arg;
    struct api *api = refresh->api;
    if (refresh->read.status == OK) {
        access_free(api->access);
        api->access = refresh->access;
        struct yaml_problems problems;
        struct policy *policy = NULL;
        if (refresh->policy.version > api->policy_version && policy_parse(refresh->policy.text, &policy, &problems) == OK) {
            api_take_policy(api, policy, refresh->policy.version);
        }
    }
    api->refreshing = false;
    arena_release(&refresh->arena);
    free(refresh);
}

static void refresh_done(struct engine_read *read)
{
    struct refresh *refresh = read->user;
    http_server_post(refresh->api->server, take_refresh, refresh);
}

void api_refresh(void *arg)
{
    struct api *api = arg;
    flow_tick(api->flow);
    if (!engine_is_postgres(api->engine) || api->refreshing || atomic_load(&api->stopping))
        return;
    struct refresh *refresh = calloc(1, sizeof *refresh);
    if (refresh == NULL)
        return;
    refresh->api = api;
    arena_init(&refresh->arena, 1 << 20);
    refresh->read = (struct engine_read){.read = read_refresh, .done = refresh_done, .user = refresh};
    api->refreshing = true;
    engine_submit_read(api->engine, &refresh->read);
}
