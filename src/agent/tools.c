#include "agent/tools.h"

#include "base/id.h"
#include "cli/client.h"
#include "cli/print.h"
#include "cli/story.h"
#include "env/env.h"
#include "ledger/ledger.h"

#define SENTENCE_MAX (64 << 10)
#define STORY_MAX 200

/* ---- asking the daemon ---- */

static struct bytes text_of(const struct json *arguments, const char *name)
{
    const struct json *value = json_get(arguments, bytes_of(name));
    return value != NULL && value->type == JSON_STRING ? value->text : BYTES_NONE;
}

static bool refuse(struct buf *out, const char *sentence)
{
    buf_clear(out);
    buf_add_cstr(out, sentence);
    return false;
}

/* False with the sentence when nothing useful answered. */
static bool ask(struct cli *cli, const struct client_request *request, struct client_reply *ret, struct buf *out)
{
    struct why why = {""};
    int code;
    if (client_try(cli, request, ret, &code, &why) != OK)
        return refuse(out, why.text);
    if (ret->is_json && ret->json.type == JSON_OBJECT)
        return true;
    return refuse(out, "What answers there is not semel.");
}

static bool refuse_reply(struct cli *cli, const struct client_reply *reply, struct buf *out)
{
    buf_clear(out);
    client_sentence(cli, reply, out);
    return false;
}

static bool get(struct cli *cli, struct buf *path, struct client_reply *ret, struct buf *out)
{
    struct bytes text = path->failed ? BYTES_NONE : arena_dup(&cli->arena, buf_bytes(path));
    buf_release(path);
    if (text.at == NULL)
        return refuse(out, "What is asked for is too long.");
    return ask(cli, &(struct client_request){.method = "GET", .path = text}, ret, out);
}

/* ---- one intent ---- */

/* `ret_intent` becomes NULL when there is none. False with a sentence when it cannot be looked up. */
static bool find_intent(struct cli *cli, const struct json *arguments, const struct json **ret_intent, struct buf *out)
{
    struct bytes id = text_of(arguments, "intent"), workflow = text_of(arguments, "workflow"), key = text_of(arguments, "key");
    struct client_reply *reply = arena_zalloc(&cli->arena, 1, sizeof *reply);
    struct buf path;
    int64_t number;
    bool by_id = id.at != NULL;
    if (reply == NULL || (by_id ? !id_parse("int", id, &number) : workflow.at == NULL || key.at == NULL))
        return refuse(out, "Give intent (int_…), or workflow and key.");
    buf_init(&path, 32 << 10);
    buf_add_cstr(&path, "/v1/intents");
    if (by_id)
        client_path_add(&path, id);
    else {
        client_query_add(&path, "workflow", arena_dup(&cli->arena, workflow).at);
        client_query_add(&path, "key", arena_dup(&cli->arena, key).at);
    }
    if (!get(cli, &path, reply, out))
        return false;
    if (by_id && reply->status == 404) {
        *ret_intent = NULL;
        return true;
    }
    if (reply->status != 200)
        return refuse_reply(cli, reply, out);
    *ret_intent = by_id ? &reply->json : json_find(&reply->json, BYTES("data.0"));
    return true;
}

static bool check(struct cli *cli, const struct json *arguments, struct buf *buf)
{
    const struct json *intent;
    if (!find_intent(cli, arguments, &intent, buf))
        return false;
    struct json_out out = json_out_to(buf);
    json_open(&out, '{');
    json_name(&out, "known");
    json_bool(&out, intent != NULL);
    if (intent != NULL) {
        json_name(&out, "state");
        json_text(&out, print_field(cli, intent, "state"));
        json_name(&out, "intent");
        json_raw(&out, intent->raw);
    }
    json_close(&out, '}');
    return true;
}

/* ---- claiming, and what became of it ---- */

static bool is_answer(struct bytes code)
{
    for (int i = VERDICT_IN_PROGRESS; i <= VERDICT_EXPIRED; i++)
        if (bytes_is(code, ledger_verdict_names[i]))
            return true;
    return false;
}

/* A refusal of the ledger is an answer too: its members, with the code under the name that proceed and replay have. */
static void write_refusal(const struct json *problem, struct bytes code, struct buf *buf)
{
    static const char *const left_out[] = {"type", "title", "status", "instance", "code", "request_id"};
    struct json_out out = json_out_to(buf);
    json_open(&out, '{');
    json_name(&out, "answer");
    json_text(&out, code);
    for (uint32_t i = 0; i < problem->count; i++) {
        bool shown = true;
        for (size_t k = 0; k < sizeof left_out / sizeof *left_out; k++)
            shown = shown && !bytes_is(problem->members[i].name, left_out[k]);
        if (!shown)
            continue;
        json_name_bytes(&out, problem->members[i].name);
        json_raw(&out, problem->members[i].value.raw);
    }
    json_close(&out, '}');
}

static bool claim(struct cli *cli, const struct json *arguments, struct buf *out)
{
    struct client_reply reply;
    const struct json *wait = json_get(arguments, BYTES("wait_ms"));
    int64_t wait_ms = 0;
    if (wait != NULL && !json_to_i64(wait, &wait_ms))
        wait_ms = 0;
    const struct client_request request = {
        .method = "POST", .path = BYTES("/v1/claims"), .body = arguments->raw, .wait_us = wait_ms > 0 ? wait_ms * 1000 : 0};
    if (!ask(cli, &request, &reply, out))
        return false;
    struct bytes code = print_field(cli, &reply.json, "code");
    if (reply.status == 200 || reply.status == 201)
        buf_add(out, reply.body);
    else if (is_answer(code))
        write_refusal(&reply.json, code, out);
    else
        return refuse_reply(cli, &reply, out);
    return true;
}

static bool say(struct cli *cli, const struct json *arguments, enum ledger_op op, struct buf *buf)
{
    struct bytes intent = text_of(arguments, "intent");
    struct client_reply reply;
    struct buf body;
    int64_t number;
    if (!id_parse("int", intent, &number))
        return refuse(buf, "intent has to be the id from the claim, int_….");
    buf_init(&body, 16u << 20);
    struct json_out out = json_out_to(&body);
    json_open(&out, '{');
    for (uint32_t i = 0; i < arguments->count; i++)
        if (!bytes_is(arguments->members[i].name, "intent")) {
            json_name_bytes(&out, arguments->members[i].name);
            json_raw(&out, arguments->members[i].value.raw);
        }
    json_close(&out, '}');
    struct bytes path = arena_printf(&cli->arena, "/v1/claims/%.*s/%s", BYTES_ARG(intent), ledger_op_names[op]);
    bool asked = path.at != NULL && !body.failed &&
                 ask(cli, &(struct client_request){.method = "POST", .path = path, .body = buf_bytes(&body)}, &reply, buf);
    buf_release(&body);
    if (!asked)
        return buf->len > 0 ? false : refuse(buf, "What is said is too long.");
    if (reply.status != 200)
        return refuse_reply(cli, &reply, buf);
    buf_add(buf, reply.body);
    return true;
}

/* ---- the story ---- */

static void write_story(struct json_out *out, const struct json *decisions)
{
    json_name(out, "story");
    json_open(out, '[');
    for (uint32_t i = 0; decisions != NULL && decisions->type == JSON_ARRAY && i < decisions->count; i++) {
        char at[32] = "?";
        struct buf sentence;
        int64_t at_us = print_time_of(&decisions->items[i], "at");
        buf_init(&sentence, SENTENCE_MAX);
        if (at_us != 0)
            print_when(at_us, 0, at);
        buf_printf(&sentence, "%s  ", at);
        story_tell(&decisions->items[i], &sentence);
        json_text(out, buf_bytes(&sentence));
        buf_release(&sentence);
    }
    json_close(out, ']');
}

static void write_next(struct json_out *out, const struct json *intent)
{
    struct buf sentence;
    buf_init(&sentence, SENTENCE_MAX);
    print_next(intent, env_real_wall_us(), &sentence);
    json_name(out, "next");
    json_text(out, buf_bytes(&sentence));
    buf_release(&sentence);
}

static bool explain(struct cli *cli, const struct json *arguments, struct buf *buf)
{
    const struct json *intent;
    struct client_reply reply;
    struct buf path;
    if (!find_intent(cli, arguments, &intent, buf))
        return false;
    struct json_out out = json_out_to(buf);
    if (intent == NULL) {
        json_open(&out, '{');
        json_name(&out, "known");
        json_bool(&out, false);
        json_close(&out, '}');
        return true;
    }
    buf_init(&path, 4096);
    buf_printf(&path, "/v1/decisions?limit=%d", STORY_MAX);
    buf_printf(&path, "&intent=%.*s", BYTES_ARG(print_field(cli, intent, "intent")));
    if (!get(cli, &path, &reply, buf))
        return false;
    if (reply.status != 200)
        return refuse_reply(cli, &reply, buf);
    json_open(&out, '{');
    json_name(&out, "known");
    json_bool(&out, true);
    json_name(&out, "intent");
    json_text(&out, print_field(cli, intent, "intent"));
    json_name(&out, "state");
    json_text(&out, print_field(cli, intent, "state"));
    write_story(&out, json_get(&reply.json, BYTES("data")));
    write_next(&out, intent);
    json_close(&out, '}');
    return true;
}

static bool list_exceptions(struct cli *cli, const struct json *arguments, struct buf *buf)
{
    const struct json *limit = json_get(arguments, BYTES("limit")), *data;
    struct client_reply reply;
    struct buf path;
    int64_t most = 50;
    if (limit != NULL && !json_to_i64(limit, &most))
        return refuse(buf, "limit has to be a number from 1 to 200.");
    buf_init(&path, 256);
    buf_printf(&path, "/v1/exceptions?state=open&limit=%lld", (long long)most);
    if (!get(cli, &path, &reply, buf))
        return false;
    data = json_get(&reply.json, BYTES("data"));
    if (reply.status != 200 || data == NULL)
        return refuse_reply(cli, &reply, buf);
    struct json_out out = json_out_to(buf);
    json_open(&out, '{');
    json_name(&out, "exceptions");
    json_raw(&out, data->raw);
    json_close(&out, '}');
    return true;
}

/* ---- leads ---- */

/* What the daemon answers is the tool's answer; refusals are sentences. */
static bool pass_on(struct cli *cli, const char *path, const struct json *arguments, struct buf *out)
{
    struct client_reply reply;
    if (!ask(cli, &(struct client_request){.method = "POST", .path = bytes_of(path), .body = arguments->raw}, &reply, out))
        return false;
    if (reply.status < 200 || reply.status > 299)
        return refuse_reply(cli, &reply, out);
    buf_add(out, reply.body);
    return true;
}

static bool find_lead(struct cli *cli, const struct json *arguments, struct buf *out)
{
    return pass_on(cli, "/v1/leads/find", arguments, out);
}

static bool upsert_lead(struct cli *cli, const struct json *arguments, struct buf *out)
{
    return pass_on(cli, "/v1/leads", arguments, out);
}

/* ---- the table ---- */

static bool confirm(struct cli *cli, const struct json *arguments, struct buf *out)
{
    return say(cli, arguments, OP_CONFIRM, out);
}

static bool fail(struct cli *cli, const struct json *arguments, struct buf *out)
{
    return say(cli, arguments, OP_FAIL, out);
}

static const struct {
    const char *name;
    bool (*run)(struct cli *cli, const struct json *arguments, struct buf *out);
} tools[] = {
    {"semel_check", check},
    {"semel_claim", claim},
    {"semel_confirm", confirm},
    {"semel_explain", explain},
    {"semel_fail", fail},
    {"semel_find_lead", find_lead},
    {"semel_list_exceptions", list_exceptions},
    {"semel_upsert_lead", upsert_lead},
};

bool tools_call(struct cli *cli, struct bytes tool, const struct json *arguments, struct buf *out, bool *ret_known)
{
    *ret_known = true;
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
        if (bytes_is(tool, tools[i].name))
            return tools[i].run(cli, arguments, out);
    *ret_known = false;
    return false;
}
