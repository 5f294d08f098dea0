#include "base/when.h"
#include "check.h"
#include "mcp/answer.h"
#include "mcp/key.h"
#include "mcp/rewrite.h"
#include "mcp/route.h"
#include "mcp/sse.h"
#include "mcp/turn.h"

/* ---- messages ---- */

TEST(an_mcp_message_is_looked_at_and_not_rewritten)
{
    static const struct {
        const char *text;
        enum mcp_kind kind;
        const char *id, *method, *params;
        bool doubtful;
    } rows[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"x\"}}", MCP_REQUEST, "7", "tools/call",
         "{\"name\":\"x\"}", false},
        {" {\"id\" : \"a}\\\"b\" , \"method\":\"ping\" }\r\n", MCP_REQUEST, "\"a}\\\"b\"", "ping", NULL, false},
        {"{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":[1,{}]}}", MCP_NOTIFICATION, NULL,
         "notifications/cancelled", "{\"requestId\":[1,{}]}", false},
        {"{\"id\":1,\"result\":{\"a\":\"]}\"}}", MCP_RESPONSE, "1", NULL, NULL, false},
        {"{\"id\":1,\"error\":{\"code\":-1}}", MCP_RESPONSE, "1", NULL, NULL, false},
        {"{\"id\":1,\"result\":\"\\ud800\"}", MCP_RESPONSE, "1", NULL, NULL, false},
        {"[{\"id\":1}]", MCP_BATCH, NULL, NULL, NULL, false},
        {"hello", MCP_OTHER, NULL, NULL, NULL, false},
        {"", MCP_OTHER, NULL, NULL, NULL, false},
        {"{}", MCP_OTHER, NULL, NULL, NULL, false},
        /* a tool call could hide in each of these */
        {"{\"id\":1,\"method\":\"ping\",\"method\":\"tools/call\"}", MCP_REQUEST, "1", "ping", NULL, true},
        {"{\"id\":1,\"method\":\"tools\\/call\"}", MCP_OTHER, "1", "\"tools\\/call\"", NULL, true},
        {"{\"id\":1,\"\\u006dethod\":\"tools/call\"}", MCP_OTHER, "1", NULL, NULL, true},
        {"{\"id\":1,\"method\":\"tools/call\"", MCP_OTHER, NULL, NULL, NULL, true},
        {"{\"id\":1,\"method\":\"ping\"}{\"method\":\"tools/call\"}", MCP_OTHER, NULL, NULL, NULL, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mcp_message message;
        mcp_message_read(bytes_of(rows[i].text), &message);
        if (message.kind != rows[i].kind || message.doubtful != rows[i].doubtful || !bytes_eq(message.id, bytes_of(rows[i].id)) ||
            !bytes_eq(message.method, bytes_of(rows[i].method)) || !bytes_eq(message.params, bytes_of(rows[i].params)))
            check_fail(__FILE__, __LINE__, "row %zu: %s", i, rows[i].text);
    }
}

/* ---- keys ---- */

struct keyed {
    struct arena arena;
    struct mcp_hints hints;
    struct mcp_server_rules rules;
};

static void keyed_init(struct keyed *keyed)
{
    struct why why;
    *keyed = (struct keyed){.rules = {.trust = true}};
    hash_setup();
    arena_init(&keyed->arena, 64 << 20);
    CHECK(mcp_rules_add_keys(&keyed->rules, BYTES("send=to,template; nest=a.b"), &keyed->arena, &why) == OK);
    CHECK(mcp_rules_add_repeats(&keyed->rules, BYTES("note"), &keyed->arena, &why) == OK);
}

static enum status key_of(struct keyed *keyed, const char *scope, const char *params, struct mcp_identity *ret,
                          struct bytes *ret_key)
{
    struct why why;
    struct mcp_call call;
    TRY(mcp_call_read(bytes_of(params), &keyed->arena, &call, &why));
    struct mcp_treatment treatment = mcp_treat(&keyed->rules, &keyed->hints, call.tool);
    TRY(mcp_identify(&call, &treatment, BYTES("srv"), &keyed->arena, ret, &why));
    *ret_key = mcp_key_text(ret, bytes_of(scope), call.tool, 1, &keyed->arena);
    return OK;
}

TEST(equal_tool_calls_have_one_key_and_others_have_another)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"{\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":\"x\"}}", "{\"arguments\":{\"b\":\"x\",\"a\":1.0},\"name\":\"t\"}", true},
        {"{\"name\":\"t\",\"arguments\":{\"a\":1}}", "{\"name\":\"t\",\"arguments\":{\"a\":2}}", false},
        {"{\"name\":\"t\",\"arguments\":{\"a\":1}}", "{\"name\":\"u\",\"arguments\":{\"a\":1}}", false},
        {"{\"name\":\"t\"}", "{\"name\":\"t\",\"arguments\":{}}", true},
        /* what is new for every attempt does not count */
        {"{\"name\":\"t\",\"_meta\":{\"progressToken\":1}}", "{\"name\":\"t\",\"_meta\":{\"progressToken\":2}}", true},
        {"{\"name\":\"t\"}", "{\"name\":\"t\",\"inputResponses\":{\"x\":1},\"requestState\":\"s\"}", true},
        {"{\"name\":\"t\",\"tool_call_id\":\"call_1\"}", "{\"name\":\"t\",\"tool_call_id\":\"call_2\"}", true},
        /* identity and payload */
        {"{\"name\":\"send\",\"arguments\":{\"to\":\"a\",\"template\":\"x\",\"body\":\"hi\"}}",
         "{\"name\":\"send\",\"arguments\":{\"to\":\"a\",\"template\":\"x\",\"body\":\"hello\"}}", true},
        {"{\"name\":\"send\",\"arguments\":{\"to\":\"a\",\"template\":\"x\"}}",
         "{\"name\":\"send\",\"arguments\":{\"to\":\"b\",\"template\":\"x\"}}", false},
        {"{\"name\":\"send\",\"arguments\":{\"body\":\"hi\"}}", "{\"name\":\"send\",\"arguments\":{\"body\":\"ho\"}}", false},
        {"{\"name\":\"nest\",\"arguments\":{\"a\":{\"b\":1,\"c\":1}}}",
         "{\"name\":\"nest\",\"arguments\":{\"a\":{\"b\":1,\"c\":2}}}", true},
        /* given keys, in their order */
        {"{\"name\":\"t\",\"idempotencyKey\":\"k\",\"_meta\":{\"dev.semel/key\":\"l\"}}",
         "{\"name\":\"t\",\"idempotencyKey\":\"k\"}", true},
        {"{\"name\":\"t\",\"_meta\":{\"dev.semel/key\":\"k\"},\"arguments\":{\"idempotency_key\":\"l\"}}",
         "{\"name\":\"t\",\"_meta\":{\"dev.semel/key\":\"k\"}}", true},
        {"{\"name\":\"t\",\"arguments\":{\"idempotency_key\":\"k\"}}", "{\"name\":\"t\",\"idempotencyKey\":\"k\"}", true},
        {"{\"name\":\"t\",\"idempotencyKey\":\"k\"}", "{\"name\":\"t\",\"idempotencyKey\":\"l\"}", false},
        {"{\"name\":\"t\",\"idempotencyKey\":\"k\"}", "{\"name\":\"t\"}", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct keyed keyed;
        struct mcp_identity a, b;
        struct bytes key_a, key_b, other;
        keyed_init(&keyed);
        CHECK(key_of(&keyed, "run-1", rows[i].a, &a, &key_a) == OK);
        CHECK(key_of(&keyed, "run-1", rows[i].b, &b, &key_b) == OK);
        CHECK(key_of(&keyed, "run-2", rows[i].b, &b, &other) == OK);
        if (bytes_eq(key_a, key_b) != rows[i].same)
            check_fail(__FILE__, __LINE__, "row %zu: %.*s and %.*s", i, BYTES_ARG(key_a), BYTES_ARG(key_b));
        if (bytes_eq(key_b, other) != (b.given.at != NULL)) /* a derived key belongs to its run, a given one does not */
            check_fail(__FILE__, __LINE__, "row %zu in two runs: %.*s and %.*s", i, BYTES_ARG(key_b), BYTES_ARG(other));
        arena_release(&keyed.arena);
    }
}

TEST(a_given_key_stands_for_its_arguments)
{
    struct keyed keyed;
    struct mcp_identity identity;
    struct bytes key;
    keyed_init(&keyed);
    CHECK(key_of(&keyed, "r", "{\"name\":\"t\",\"arguments\":{\"b\":1,\"a\":2,\"idempotency_key\":\"k\"}}", &identity, &key) ==
          OK);
    CHECK_TEXT(key, "given:t:k");
    CHECK_TEXT(identity.input, "{\"a\":2,\"b\":1}");
    CHECK(key_of(&keyed, "r", "{\"name\":\"t\",\"idempotencyKey\":\"\"}", &identity, &key) == INVALID);
    CHECK(key_of(&keyed, "r", "{\"arguments\":{}}", &identity, &key) == INVALID);
    CHECK(key_of(&keyed, "r", "{\"name\":\"t\",\"arguments\":[1]}", &identity, &key) == INVALID);
    CHECK(key_of(&keyed, "r", "{\"name\":\"t\",\"name\":\"u\"}", &identity, &key) == INVALID);
    arena_release(&keyed.arena);
}

/* ---- rules ---- */

TEST(what_the_operator_says_about_a_tool_wins_over_its_annotations)
{
    static const char list[] =
        "{\"tools\":[{\"name\":\"read\",\"annotations\":{\"readOnlyHint\":true}},{\"name\":\"put\",\"annotations\":{"
        "\"idempotentHint\":true,"
        "\"readOnlyHint\":false}},{\"name\":\"odd\",\"annotations\":{\"readOnlyHint\":\"yes\"}},{\"name\":\"plain\"}]}";
    struct keyed keyed;
    struct why why;
    keyed_init(&keyed);
    mcp_hints_learn(&keyed.hints, bytes_of(list));
    CHECK(mcp_treat(NULL, &keyed.hints, BYTES("read")).passes);
    CHECK(mcp_treat(&keyed.rules, &keyed.hints, BYTES("read")).passes);
    CHECK(mcp_treat(&keyed.rules, &keyed.hints, BYTES("put")).idempotent);
    CHECK(!mcp_treat(&keyed.rules, &keyed.hints, BYTES("put")).passes);
    CHECK(!mcp_treat(&keyed.rules, &keyed.hints, BYTES("odd")).passes);
    CHECK(!mcp_treat(&keyed.rules, &keyed.hints, BYTES("plain")).passes);
    CHECK(!mcp_treat(&keyed.rules, &keyed.hints, BYTES("unheard")).passes);
    CHECK(mcp_rules_add_readers(&keyed.rules, BYTES("plain, unheard"), &keyed.arena, &why) == OK);
    CHECK(mcp_treat(&keyed.rules, &keyed.hints, BYTES("plain")).passes);
    CHECK(mcp_treat(&keyed.rules, &keyed.hints, BYTES("unheard")).passes);
    keyed.rules.trust = false;
    CHECK(!mcp_treat(&keyed.rules, &keyed.hints, BYTES("read")).passes);
    CHECK(!mcp_treat(&keyed.rules, &keyed.hints, BYTES("put")).idempotent);
    /* A server that changes its mind is believed anew. */
    keyed.rules.trust = true;
    mcp_hints_learn(&keyed.hints, BYTES("{\"tools\":[{\"name\":\"read\"}]}"));
    CHECK(!mcp_treat(&keyed.rules, &keyed.hints, BYTES("read")).passes);
    CHECK(mcp_rules_add_keys(&keyed.rules, BYTES("send"), &keyed.arena, &why) == INVALID);
    CHECK(mcp_rules_add_keys(&keyed.rules, BYTES("=a"), &keyed.arena, &why) == INVALID);
    mcp_hints_free(&keyed.hints);
    arena_release(&keyed.arena);
}

/* ---- answers in a conversation ---- */

TEST(an_answer_is_named_by_its_call_before_its_arguments)
{
    static const struct mcp_answers both = {BYTES("reply"), BYTES("ticket"), BYTES("event"), BYTES("message.id")},
                                    thread = {BYTES("note"), BYTES("ticket"), BYTES_NONE, BYTES_NONE};
    static const struct {
        const struct mcp_answers *rule;
        const char *arguments, *meta; /* without the braces */
        const char *named;            /* thread|event|question|action|epoch; NULL: it is no answer */
        const char *wrong;            /* INVALID, and the sentence has this */
    } rows[] = {
        {NULL, "\"ticket\":\"t\"", "\"dev.semel/key\":\"k\"", NULL, NULL},
        {NULL, "", "", NULL, NULL},
        /* by the rule */
        {&thread, "\"ticket\":\"t 1\",\"event\":\"evt_1\"", "", "t 1|||note|-1", NULL},
        {&thread, "\"ticket\":7", "", "7|||note|-1", NULL},
        {&both, "\"event\":\"evt_1\"", "", "|evt_1||reply|-1", NULL},
        {&both, "\"ticket\":\"t\",\"event\":null,\"message\":{\"id\":\"m\"}", "", "t||m|reply|-1", NULL},
        /* by the call, which wins */
        {NULL, "", "\"dev.semel/thread\":\"t\",\"dev.semel/action\":\"reply\",\"dev.semel/question\":\"m\"", "t||m|reply|-1",
         NULL},
        {NULL, "", "\"dev.semel/event\":\"evt_2\",\"dev.semel/action\":\"reply\"", "|evt_2||reply|-1", NULL},
        {&both, "\"ticket\":\"t\",\"message\":{\"id\":\"m\"}", "\"dev.semel/event\":\"evt_2\"", "|evt_2||reply|-1", NULL},
        {&both, "\"event\":\"evt_1\"", "\"dev.semel/thread\":\"thr_2\",\"dev.semel/epoch\":3", "thr_2|||reply|3", NULL},
        {&thread, "\"ticket\":\"t\"", "\"dev.semel/epoch\":\"12\"", "t|||note|12", NULL},
        {&both, "\"ticket\":\"t\",\"message\":{\"id\":\"m\"}", "\"dev.semel/question\":\"n\"", "t||n|reply|-1", NULL},
        {&thread, "\"ticket\":\"t\"", "\"dev.semel/action\":\"reply\"", "t|||reply|-1", NULL},
        /* too little, or nonsense */
        {&thread, "", "", NULL, "Send the argument ticket, or _meta[\"dev.semel/thread\"]"},
        {&both, "\"ticket\":null", "", NULL, "ticket or event"},
        {&thread, "\"ticket\":\"\"", "", NULL, "ticket has to be a text"},
        {&thread, "\"ticket\":{\"id\":1}", "", NULL, "ticket has to be a text"},
        {&thread, "\"ticket\":7.0", "", NULL, "ticket has to be a text"},
        {&thread, "\"ticket\":\"a\\u0000b\"", "", NULL, "ticket has to be a text"},
        {NULL, "", "\"dev.semel/thread\":\"t\"", NULL, "dev.semel/action"},
        {NULL, "", "\"dev.semel/action\":\"reply\"", NULL, "in which conversation"},
        {NULL, "", "\"dev.semel/epoch\":1", NULL, "in which conversation"},
        {&thread, "\"ticket\":\"t\"", "\"dev.semel/thread\":[]", NULL, "dev.semel/thread"},
        {&thread, "\"ticket\":\"t\"", "\"dev.semel/epoch\":-1", NULL, "whole number"},
        {&thread, "\"ticket\":\"t\"", "\"dev.semel/epoch\":\"1x\"", NULL, "whole number"},
    };
    struct arena arena;
    arena_init(&arena, 16 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct why why = {""};
        struct mcp_call call;
        struct mcp_turn turn = {0};
        const struct mcp_treatment treatment = {.answers = rows[i].rule};
        struct bytes params =
            arena_printf(&arena, "{\"name\":\"t\",\"arguments\":{%s},\"_meta\":{%s}}", rows[i].arguments, rows[i].meta);
        CHECK(mcp_call_read(params, &arena, &call, &why) == OK);
        enum status status = mcp_turn_of(&call, &treatment, &arena, &turn, &why);
        struct bytes named = arena_printf(&arena, "%.*s|%.*s|%.*s|%.*s|%lld", BYTES_ARG(turn.thread), BYTES_ARG(turn.event),
                                          BYTES_ARG(turn.question), BYTES_ARG(turn.action), (long long)turn.epoch);
        if (status != (rows[i].wrong != NULL ? INVALID : OK) || turn.named != (rows[i].named != NULL) ||
            (rows[i].named != NULL && !bytes_is(named, rows[i].named)) ||
            (rows[i].wrong != NULL && strstr(why.text, rows[i].wrong) == NULL))
            check_fail(__FILE__, __LINE__, "row %zu: %.*s %s", i, BYTES_ARG(named), why.text);
    }
    arena_release(&arena);
}

TEST(a_tool_that_answers_does_not_pass_whatever_its_server_says)
{
    static const struct mcp_answers answers = {.action = BYTES("reply"), .thread = BYTES("ticket")};
    struct mcp_tool_rules tool = {.name = BYTES("read"), .read_only = MCP_UNSAID, .idempotent = MCP_UNSAID, .answers = &answers};
    const struct mcp_server_rules rules = {.trust = true, .tools = &tool, .tool_count = 1};
    struct mcp_hints hints = {0};
    mcp_hints_learn(&hints, BYTES("{\"tools\":[{\"name\":\"read\",\"annotations\":{\"readOnlyHint\":true}}]}"));
    CHECK(!mcp_treat(&rules, &hints, BYTES("read")).passes);
    tool.answers = NULL;
    CHECK(mcp_treat(&rules, &hints, BYTES("read")).passes);
    mcp_hints_free(&hints);
}

TEST(an_answer_that_no_tool_gave_is_told_as_text)
{
    static const struct {
        const char *kept, *result; /* NULL: nothing is written */
    } rows[] = {
        {"{\"text\":\"50 euros\"}", "{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"text\\\":\\\"50 euros\\\"}\"}],\"_meta\":"},
        {"\"50 euros\"", "{\"content\":[{\"type\":\"text\",\"text\":\"50 euros\"}],\"_meta\":"},
        {"{\"content\":\"50 euros\"}",
         "{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"content\\\":\\\"50 euros\\\"}\"}],\"_meta\":"},
        {"{\"content\":[],\"structuredContent\":{\"a\":1}}", "{\"content\":[],\"structuredContent\":{\"a\":1},\"_meta\":"},
        {"{\"dev.semel/not_kept\":\"too large\"}", NULL},
        {"null", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct arena arena;
        struct json kept;
        struct why why;
        struct buf out;
        arena_init(&arena, 1 << 20);
        buf_init(&out, 1 << 20);
        CHECK(json_parse(bytes_of(rows[i].kept), NULL, &arena, &kept, &why) == OK);
        bool written = mcp_write_turn_replay(&out, BYTES("1"), &kept, "int_1");
        struct mcp_message message;
        mcp_message_read(buf_bytes(&out), &message);
        if (written != (rows[i].result != NULL) || (written && !bytes_starts(message.result, bytes_of(rows[i].result))) ||
            (written && !bytes_starts(bytes_from(message.result, strlen(rows[i].result)), BYTES("{\"dev.semel/replayed\":true"))))
            check_fail(__FILE__, __LINE__, "row %zu: %.*s", i, BYTES_ARG(buf_bytes(&out)));
        buf_release(&out);
        arena_release(&arena);
    }
}

/* ---- answers ---- */

TEST(only_a_complete_result_is_kept)
{
    static const struct {
        const char *answer;
        enum mcp_outcome outcome;
        bool held, held_on_error;
    } rows[] = {
        {"{\"id\":1,\"result\":{\"content\":[]}}", MCP_DONE, false, false},
        {"{\"id\":1,\"result\":{\"content\":[],\"isError\":false,\"resultType\":\"complete\"}}", MCP_DONE, false, false},
        {"{\"id\":1,\"result\":{\"content\":[],\"isError\":true}}", MCP_FAILED, false, true},
        {"{\"id\":1,\"result\":{\"resultType\":\"input_required\"}}", MCP_WANTS_INPUT, false, false},
        {"{\"id\":1,\"error\":{\"code\":-32602,\"message\":\"no\"}}", MCP_NO_EFFECT, false, false},
        {"{\"id\":1,\"error\":{\"code\":-32601,\"message\":\"no\"}}", MCP_NO_EFFECT, false, false},
        {"{\"id\":1,\"error\":{\"code\":-32603,\"message\":\"no\"}}", MCP_UNSURE, true, true},
        {"{\"id\":1,\"error\":{\"code\":-32001,\"message\":\"no\"}}", MCP_UNSURE, true, true},
        {"{\"id\":1,\"error\":null}", MCP_UNSURE, true, true},
    };
    struct arena arena;
    arena_init(&arena, 16 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mcp_message message;
        struct bytes kept = BYTES_NONE;
        const struct mcp_treatment plain = {.on_error = MCP_ON_ERROR_RETRY}, hold = {.on_error = MCP_ON_ERROR_HOLD};
        mcp_message_read(bytes_of(rows[i].answer), &message);
        enum mcp_outcome outcome = mcp_judge(&message, &arena, &kept);
        if (outcome != rows[i].outcome || (kept.at != NULL) != (outcome == MCP_DONE) ||
            mcp_effect_unknown(outcome, &plain) != rows[i].held || mcp_effect_unknown(outcome, &hold) != rows[i].held_on_error)
            check_fail(__FILE__, __LINE__, "row %zu: %s", i, rows[i].answer);
    }
    arena_release(&arena);
}

TEST(a_replay_has_the_callers_id_and_says_that_it_is_one)
{
    struct arena arena;
    struct json kept;
    struct why why;
    struct buf out;
    arena_init(&arena, 1 << 20);
    buf_init(&out, 1 << 20);
    CHECK(json_parse(
              BYTES("{\"content\":[{\"type\":\"text\",\"text\":\"\\u00e9\"}],\"_meta\":{\"x\":1,\"dev.semel/replayed\":false}}"),
              NULL, &arena, &kept, &why) == OK);
    CHECK(mcp_write_replay(&out, BYTES("\"n-2\""), &kept, "int_1"));
    CHECK_TEXT(
        buf_bytes(&out),
        "{\"jsonrpc\":\"2.0\",\"id\":\"n-2\",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\\u00e9\"}],\"_meta\":{"
        "\"x\":1,\"dev.semel/replayed\":true,\"dev.semel/intent\":\"int_1\"}}}");
    struct mcp_message message = {.kind = MCP_RESPONSE, .result = BYTES("\"\\ud800\"")};
    struct bytes note = BYTES_NONE;
    CHECK_INT(mcp_judge(&message, &arena, &note), MCP_DONE);
    CHECK(json_parse(note, NULL, &arena, &kept, &why) == OK);
    buf_clear(&out);
    CHECK(!mcp_write_replay(&out, BYTES("1"), &kept, "int_1"));
    CHECK_INT(out.len, 0);
    buf_release(&out);
    arena_release(&arena);
}

/* ---- streams ---- */

TEST(an_event_stream_leaves_as_the_bytes_that_came_however_it_was_cut)
{
    static const char stream[] =
        ": hello\n\nid: 1\ndata: {\"a\":\ndata:1}\n\nevent: message\r\ndata: x\r\n\r\ndata: y\r\rdata: open";
    static const char *const datas[] = {"", "{\"a\":\n1}", "x", "y"};
    for (size_t cut = 1; cut < sizeof stream; cut++) {
        struct mcp_sse sse;
        struct buf all;
        size_t count = 0;
        mcp_sse_init(&sse, 1 << 20);
        buf_init(&all, 1 << 20);
        for (size_t at = 0; at < sizeof stream - 1; at += cut) {
            size_t len = sizeof stream - 1 - at < cut ? sizeof stream - 1 - at : cut;
            struct bytes event, data;
            CHECK(mcp_sse_feed(&sse, (struct bytes){stream + at, len}));
            while (mcp_sse_next(&sse, &event, &data)) {
                CHECK(count < 4);
                CHECK_TEXT(data, datas[count]);
                count++;
                buf_add(&all, event);
            }
        }
        CHECK_INT(count, 4);
        CHECK_TEXT(mcp_sse_rest(&sse), "data: open");
        buf_add(&all, mcp_sse_rest(&sse));
        CHECK_TEXT(buf_bytes(&all), stream);
        buf_release(&all);
        mcp_sse_release(&sse);
    }
    struct mcp_sse small;
    mcp_sse_init(&small, 8);
    CHECK(!mcp_sse_feed(&small, BYTES("data: too long")));
    mcp_sse_release(&small);
}

/* ---- headers ---- */

#define MODERN "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}"

TEST(the_headers_of_a_message_say_what_its_body_says)
{
    static const struct {
        const char *text, *version, *name; /* NULL: none */
    } rows[] = {
        {"{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"act\"," MODERN "}}", "2026-07-28", "act"},
        {"{\"id\":1,\"method\":\"prompts/get\",\"params\":{" MODERN ",\"name\":\"p q\"}}", "2026-07-28", "p q"},
        {"{\"id\":1,\"method\":\"resources/read\",\"params\":{\"uri\":\"a://b\"," MODERN "}}", "2026-07-28", "a://b"},
        {"{\"id\":1,\"method\":\"tools/list\",\"params\":{\"name\":\"act\"," MODERN "}}", "2026-07-28", NULL},
        {"{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\\nB: c\"," MODERN "}}", "2026-07-28",
         "=?base64?YQpCOiBj?="},
        {"{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\" a\"," MODERN "}}", "2026-07-28", "=?base64?IGE=?="},
        {"{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"=?base64?\"," MODERN "}}", "2026-07-28",
         "=?base64?PT9iYXNlNjQ/?="},
        {"{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"act\"}}", NULL, NULL},
        {"{\"id\":1,\"method\":\"tools/call\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2\\r\\n\"}}}",
         NULL, NULL},
        {"{\"id\":1,\"method\":\"tools/list\"}", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mcp_message message;
        struct mcp_route route;
        struct arena arena;
        arena_init(&arena, 1 << 20);
        mcp_message_read(bytes_of(rows[i].text), &message);
        mcp_route_read(&message, &arena, &route);
        CHECK_INT(route.modern, rows[i].version != NULL);
        CHECK_TEXT(route.version, rows[i].version != NULL ? rows[i].version : "");
        CHECK_TEXT(route.name, rows[i].name != NULL ? rows[i].name : "");
        arena_release(&arena);
    }
}

TEST(the_version_is_the_one_that_the_server_chose)
{
    struct arena arena;
    arena_init(&arena, 1 << 20);
    CHECK_TEXT(mcp_agreed_version(BYTES("{\"protocolVersion\":\"2025-06-18\"}"), &arena), "2025-06-18");
    CHECK_INT(mcp_agreed_version(BYTES("{\"protocolVersion\":\"a\\r\\nb\"}"), &arena).len, 0);
    CHECK_INT(mcp_agreed_version(BYTES("{}"), &arena).len, 0);
    CHECK_INT(mcp_agreed_version(BYTES_NONE, &arena).len, 0);
    arena_release(&arena);
}

/* ---- headers that repeat arguments ---- */

static struct bytes find_pair(const void *ctx, struct bytes name)
{
    const struct pair *pairs = ctx;
    for (; pairs->name.at != NULL; pairs++)
        if (bytes_eq_nocase(pairs->name, name))
            return pairs->value;
    return BYTES_NONE;
}

TEST(headers_that_repeat_arguments_are_made_and_checked)
{
    static const char list[] =
        "{\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"x-mcp-header\":\"top\",\"properties\":{\"r\":{\"x-mcp-header\":"
        "\"Region\"},"
        "\"in\":{\"properties\":{\"n\":{\"type\":\"integer\",\"x-mcp-header\":\"N\"}}},\"bad\":{\"x-mcp-header\":\"a b\"},"
        "\"l\":{\"items\":{\"x-mcp-header\":\"no\"}}}}},{\"name\":\"u\"}]}";
    static const struct {
        const char *arguments, *region, *n; /* the headers that are made */
        const char *said_region, *said_n;   /* … and those that come */
        bool fits;
    } rows[] = {
        {"{\"r\":\"eu\",\"in\":{\"n\":42}}", "eu", "42", "eu", "42", true},
        {"{\"r\":\"eu\",\"in\":{\"n\":42}}", "eu", "42", "eu", "42.0", true},
        {"{\"r\":\"eu\",\"in\":{\"n\":42}}", "eu", "42", "us", "42", false},
        {"{\"r\":\"eu\",\"in\":{\"n\":42}}", "eu", "42", "eu", "43", false},
        {"{\"r\":\"eu\",\"in\":{\"n\":42}}", "eu", "42", "eu", NULL, false},
        {"{\"r\":\"42\"}", "42", NULL, "42.0", NULL, false},
        {"{\"r\":\"\xc3\xa4\"}", "=?base64?w6Q=?=", NULL, "=?base64?w6Q=?=", NULL, true},
        {"{\"r\":\"\xc3\xa4\"}", "=?base64?w6Q=?=", NULL, "=?base64?w6?=", NULL, false},
        {"{\"r\":true,\"in\":{\"n\":1e0}}", "true", "1", "true", "1", true},
        {"{\"r\":null,\"in\":{\"n\":9007199254740993}}", NULL, NULL, "anything", NULL, true},
        {"{\"r\":[1]}", NULL, NULL, NULL, NULL, true},
        {"{}", NULL, NULL, NULL, NULL, true},
    };
    struct keyed keyed;
    keyed_init(&keyed);
    mcp_hints_learn(&keyed.hints, bytes_of(list));
    mcp_hints_learn(&keyed.hints, bytes_of(list)); /* again: it is not there twice */
    const struct mcp_params *params = mcp_hints_params(&keyed.hints, BYTES("t"));
    CHECK_INT(params->count, 2);
    CHECK_INT(mcp_hints_params(&keyed.hints, BYTES("u"))->count, 0);
    CHECK_INT(mcp_hints_params(&keyed.hints, BYTES("other"))->count, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct json arguments;
        struct why why;
        CHECK(json_parse(bytes_of(rows[i].arguments), NULL, &keyed.arena, &arguments, &why) == OK);
        struct pair pairs[3] = {0};
        size_t n = 0;
        if (rows[i].said_region != NULL)
            pairs[n++] = (struct pair){BYTES("mcp-param-region"), bytes_of(rows[i].said_region)};
        if (rows[i].said_n != NULL)
            pairs[n++] = (struct pair){BYTES("mcp-param-n"), bytes_of(rows[i].said_n)};
        struct bytes region = mcp_param_header(&params->at[0], &arguments, &keyed.arena);
        struct bytes number = mcp_param_header(&params->at[1], &arguments, &keyed.arena);
        bool fits = mcp_params_check(params, &arguments, find_pair, pairs, &keyed.arena, &why) == OK;
        if (fits != rows[i].fits || !bytes_eq(region, bytes_of(rows[i].region)) || !bytes_eq(number, bytes_of(rows[i].n)))
            check_fail(__FILE__, __LINE__, "row %zu: %s", i, rows[i].arguments);
    }
    mcp_hints_free(&keyed.hints);
    arena_release(&keyed.arena);
}

/* ---- other ids ---- */

TEST(a_message_with_another_id_is_otherwise_the_same)
{
    static const char text[] =
        "{ \"id\" : \"a\\u0041\", \"method\":\"x\",\"params\":{\"_meta\":{\"progressToken\": 7 ,\"id\":1}, \"id\":2 }}";
    struct arena arena;
    struct mcp_message message;
    struct buf out, again;
    arena_init(&arena, 1 << 20);
    buf_init(&out, 1024);
    buf_init(&again, 1024);
    mcp_message_read(bytes_of(text), &message);
    struct bytes token = mcp_part(message.params, "_meta", "progressToken", &arena);
    CHECK_TEXT(token, "7");
    CHECK(mcp_part(message.params, "_meta", "other", &arena).at == NULL);
    CHECK(mcp_part(message.params, "_meta", NULL, &arena).at == NULL); /* neither a text nor a number */
    CHECK(mcp_part(BYTES_NONE, "_meta", NULL, &arena).at == NULL);
    mcp_put(bytes_of(text), token, BYTES("12345"), &out);
    mcp_put_id(buf_bytes(&out), BYTES("99"), &again);
    CHECK_TEXT(buf_bytes(&again),
               "{ \"id\" : 99, \"method\":\"x\",\"params\":{\"_meta\":{\"progressToken\": 12345 ,\"id\":1}, \"id\":2 }}");
    buf_release(&out);
    buf_release(&again);
    arena_release(&arena);
}
