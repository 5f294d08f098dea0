/* tool_calls: what `semel mcp` counts where it does not write itself: budgets of runs, and which of several equal calls is meant. */
#include "api/api.h"
#include "base/when.h"
#include "runs/calls.h"

#define CONTENT_HEX (2 * HASH_SIZE)
#define REPEAT_MS_MAX (400 * WHEN_DAY / WHEN_MS)

struct tool_call_body {
    struct bytes server, run, content;
    int64_t calls_max, repeat_ms, number;
    struct hash hash;
    struct calls_order order;
};

static const struct json_field server_field = {"server", JSON_FIELD_TEXT, offsetof(struct tool_call_body, server), true, 1, 128,
                                               NULL};
static const struct json_field run_field = {"run", JSON_FIELD_TEXT, offsetof(struct tool_call_body, run), true, 1, 256, NULL};

static struct tool_call_body *new_body(struct call *call)
{
    struct tool_call_body *body = arena_zalloc(call->request->arena, 1, sizeof *body);
    ASSERT(body != NULL);
    body->content = BYTES_NONE;
    call->state = body;
    return body;
}

/* False when the problem was sent. */
static bool read_content(struct call *call, struct tool_call_body *body)
{
    body->order.name = (struct calls_name){call->space, body->server, call->actor, body->run};
    if (body->content.at == NULL)
        return true;
    for (size_t i = 0; i < CONTENT_HEX && body->content.len == CONTENT_HEX; i += 2) {
        int high = bytes_hex_digit(body->content.at[i]), low = bytes_hex_digit(body->content.at[i + 1]);
        if (high < 0 || low < 0)
            break;
        body->hash.at[i / 2] = (uint8_t)(high << 4 | low);
        if (i == CONTENT_HEX - 2) {
            body->order.content = &body->hash;
            return true;
        }
    }
    problem_field(call, BYTES("content"), "\"content\" is a hash: %d hexadecimal digits.", CONTENT_HEX);
    return false;
}

static enum status write_count(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct tool_call_body *body = ((struct call *)command->user)->state;
    return calls_take(store, &body->order, ledger->now.wall_us, why);
}

static void answer_count(struct call *call)
{
    const struct tool_call_body *body = call->state;
    struct json_out out = json_out_to(&call->out);
    if (call->command.status != OK) {
        problem_storage(call, call->command.status, &call->command.why);
        return;
    }
    json_open(&out, '{');
    json_name(&out, "within");
    json_bool(&out, !body->order.refused);
    json_i64_member(&out, "number", body->order.number);
    json_close(&out, '}');
    call_reply(call, 200);
}

void tool_calls_count(struct call *call)
{
    static const struct json_field fields[] = {
        server_field,
        run_field,
        {"content", JSON_FIELD_TEXT, offsetof(struct tool_call_body, content), false, CONTENT_HEX, CONTENT_HEX, NULL},
        {"calls_max", JSON_FIELD_INT, offsetof(struct tool_call_body, calls_max), false, 1, INT64_MAX, NULL},
        {"repeat_ms", JSON_FIELD_INT, offsetof(struct tool_call_body, repeat_ms), false, 0, REPEAT_MS_MAX, NULL},
    };
    struct tool_call_body *body = new_body(call);
    if (!call_body(call, fields, sizeof fields / sizeof *fields, body) || !read_content(call, body))
        return;
    body->order.per_run = body->calls_max;
    body->order.repeat_us = body->repeat_ms * WHEN_MS;
    call->command.write = write_count;
    call_submit(call, answer_count);
}

static enum status write_answered(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    const struct tool_call_body *body = ((struct call *)command->user)->state;
    return calls_answered(store, &body->order.name, &body->hash, body->number, ledger->now.wall_us, why);
}

static void answer_answered(struct call *call)
{
    struct json_out out = json_out_to(&call->out);
    if (call->command.status != OK) {
        problem_storage(call, call->command.status, &call->command.why);
        return;
    }
    json_open(&out, '{');
    json_close(&out, '}');
    call_reply(call, 200);
}

void tool_calls_answered(struct call *call)
{
    static const struct json_field fields[] = {
        server_field,
        run_field,
        {"content", JSON_FIELD_TEXT, offsetof(struct tool_call_body, content), true, CONTENT_HEX, CONTENT_HEX, NULL},
        {"number", JSON_FIELD_INT, offsetof(struct tool_call_body, number), true, 1, INT64_MAX, NULL},
    };
    struct tool_call_body *body = new_body(call);
    if (!call_body(call, fields, sizeof fields / sizeof *fields, body) || !read_content(call, body))
        return;
    call->command.write = write_answered;
    call_submit(call, answer_answered);
}
