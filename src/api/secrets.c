/* Secrets: they can be set, listed by name and removed, but nothing here gives a value back. A value is only ever in the
 * request's own memory, which the connection zeroes when the request is answered (http/conn.c). */
#include "api/api.h"
#include "base/log.h"

struct secrets_state {
    struct call *call;
    struct bytes name, value, actor, space;
    int64_t version, updated_us;
    void (*answer)(struct call *call);
    bool first; /* of the calls of a rewrap */
    int64_t count, total;
    char master[MASTER_KEY_ID_SIZE + 1];
};

static struct secret_change change_of(struct store *store, struct ledger *ledger, const struct secrets_state *state)
{
    return (struct secret_change){state->call->api->secrets, store, ledger->arena, ledger->now.wall_us};
}

static struct bytes detail_of(struct ledger *ledger, struct bytes name, int64_t version)
{
    return arena_printf(ledger->arena, "{\"secret\":\"%.*s\",\"version\":%lld}", BYTES_ARG(name), (long long)version);
}

/* ---- to the engine and back ---- */

static enum status read_secrets(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    return secrets_refresh(call->api->secrets, store, why);
}

/* The change is made; it holds for this node's next delivery. A look that fails is repeated: it must not hide that. */
static void reload_done(struct call *call)
{
    struct secrets_state *state = call->state;
    if (call->read.status != OK)
        LOG(LOG_WARN, "secrets could not be read again", LOG_CSTR("why", call->read.why.text));
    state->answer(call);
}

static void secrets_on_loop(void *arg)
{
    struct call *call = arg;
    switch (call->command.status) {
    case OK:
        call_submit_read(call, read_secrets, reload_done);
        return;
    case NOTHING:
        problem(call, "not_found", "There is no such secret.");
        return;
    case INVALID:
        problem(call, "master_key", "%s.", call->command.why.text);
        return;
    case CONFLICT:
        problem(call, "too_large", "%s.", call->command.why.text);
        return;
    case RETRY:
    case UNKNOWN:
    case FULL:
    case BROKEN:
        break;
    }
    problem_storage(call, call->command.status, &call->command.why);
}

static void secrets_done(struct engine_command *command)
{
    struct secrets_state *state = command->user;
    http_server_post(state->call->api->server, secrets_on_loop, state->call);
}

static struct secrets_state *state_of(struct call *call)
{
    struct secrets_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    state->call = call;
    state->actor = call->actor;
    state->space = call->space;
    state->name = call->params[0];
    return state;
}

static void submit(struct secrets_state *state,
                   enum status (*write)(struct store *, struct ledger *, struct engine_command *, struct why *),
                   void (*done)(struct engine_command *))
{
    struct call *call = state->call;
    call->state = state;
    call->command = (struct engine_command){.write = write, .user = state, .arena = call->request->arena, .done = done};
    engine_submit(call->api->engine, &call->command);
}

static bool has_name(struct call *call)
{
    if (secret_is_name(call->params[0]))
        return true;
    problem_field(call, BYTES("name"),
                  "The name of a secret is 1 to %d letters, digits, '_', '.' or '-', not beginning with the last two.",
                  SECRET_NAME_MAX);
    return false;
}

/* ---- set ---- */

static enum status put_write(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct secrets_state *state = command->user;
    struct secret_change change = change_of(store, ledger, state);
    TRY(secret_put(&change, state->space, state->name, state->value, &state->version, why));
    state->updated_us = ledger->now.wall_us;
    return admin_record(ledger, state->space, state->actor, "secret_set", detail_of(ledger, state->name, state->version));
}

static void answer_put(struct call *call)
{
    const struct secrets_state *state = call->state;
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    json_name(&out, "name");
    json_text(&out, state->name);
    json_name(&out, "version");
    json_i64(&out, state->version);
    json_name(&out, "updated_at");
    json_time(&out, state->updated_us);
    json_close(&out, '}');
    call_reply(call, 200);
}

static const struct json_field put_fields[] = {
    {"value", JSON_FIELD_TEXT, offsetof(struct secrets_state, value), true, 1, SECRET_VALUE_MAX, NULL},
};

void secrets_put(struct call *call)
{
    struct secrets_state *state = state_of(call);
    if (!has_name(call) || !call_body(call, put_fields, sizeof put_fields / sizeof *put_fields, state))
        return;
    if (memchr(state->value.at, 0, state->value.len) != NULL) {
        problem_field(call, BYTES("value"), "value must not contain U+0000.");
        return;
    }
    state->answer = answer_put;
    submit(state, put_write, secrets_done);
}

/* ---- remove ---- */

static enum status remove_write(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct secrets_state *state = command->user;
    struct secret_change change = change_of(store, ledger, state);
    TRY(secret_remove(&change, state->space, state->name, &state->version, why));
    return admin_record(ledger, state->space, state->actor, "secret_remove", detail_of(ledger, state->name, state->version));
}

static void answer_removed(struct call *call)
{
    const struct secrets_state *state = call->state;
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    json_name(&out, "name");
    json_text(&out, state->name);
    json_name(&out, "removed");
    json_bool(&out, true);
    json_close(&out, '}');
    call_reply(call, 200);
}

void secrets_remove(struct call *call)
{
    struct secrets_state *state = state_of(call);
    if (!has_name(call))
        return;
    state->answer = answer_removed;
    submit(state, remove_write, secrets_done);
}

/* ---- list ---- */

struct listing {
    struct json_out out;
    int64_t count;
};

static void write_secret(void *ctx, const struct row_secret *row)
{
    struct listing *listing = ctx;
    struct json_out *out = &listing->out;
    listing->count++;
    json_open(out, '{');
    json_name(out, "name");
    json_text(out, row->name);
    json_name(out, "version");
    json_i64(out, row->version);
    json_name(out, "created_at");
    json_time(out, row->created);
    json_name(out, "updated_at");
    json_time(out, row->updated);
    json_name(out, "master_key");
    json_text(out, row->master);
    json_close(out, '}');
}

void secrets_list(struct call *call)
{
    struct listing listing = {json_out_to(&call->out), 0};
    call_open_list(&listing.out);
    secrets_each(call->api->secrets, call->space, write_secret, &listing);
    call_close_list(&listing.out, "", 0, listing.count); /* all of them */
    call_reply(call, 200);
}

/* ---- another master key ---- */

static enum status rewrap_write(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct secrets_state *state = command->user;
    struct secret_change change = change_of(store, ledger, state);
    TRY(secret_rewrap(&change, state->first, state->master, &state->count, why));
    struct bytes detail =
        arena_printf(ledger->arena, "{\"master_key\":\"%s\",\"secrets\":%lld}", state->master, (long long)state->count);
    return admin_record(ledger, state->space, state->actor, "secret_rewrap", detail);
}

static void answer_rewrapped(struct call *call)
{
    const struct secrets_state *state = call->state;
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    json_name(&out, "master_key");
    json_cstr(&out, state->master);
    json_name(&out, "rewrapped");
    json_i64(&out, state->total);
    json_close(&out, '}');
    call_reply(call, 200);
}

static void rewrap_done(struct engine_command *command);

static void rewrap_on_loop(void *arg)
{
    struct call *call = arg;
    struct secrets_state *state = call->state;
    if (call->command.status == NOTHING) { /* no row is left to do */
        call->command.status = OK;
        secrets_on_loop(call);
    } else if (call->command.status == OK) {
        state->total += state->count;
        state->first = false;
        submit(state, rewrap_write, rewrap_done);
    } else {
        secrets_on_loop(call);
    }
}

static void rewrap_done(struct engine_command *command)
{
    struct secrets_state *state = command->user;
    http_server_post(state->call->api->server, rewrap_on_loop, state->call);
}

void secrets_rewrap(struct call *call)
{
    if (!admin_keeps_house(call))
        return;
    struct secrets_state *state = state_of(call);
    state->first = true;
    state->answer = answer_rewrapped;
    submit(state, rewrap_write, rewrap_done);
}
