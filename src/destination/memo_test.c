#include "destination/fixture_test.h"

#define EVENTS "text/event-stream; charset=utf-8"
#define JSON "application/json"

#define OPENAI "provider: openai", "/v1/chat/completions"
#define RESPONSES "provider: openai", "/v1/responses"
#define ANTHROPIC "provider: anthropic", "/v1/messages"
#define GEMINI "provider: gemini", "/v1beta/models/m:streamGenerateContent"

static const struct {
    const char *settings, *path, *type, *body;
    bool whole;
    int64_t input, output;
} answers[] = {
    /* JSON is whole when it is. */
    {OPENAI, JSON, "{\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}", true, 7, 3},
    {OPENAI, JSON, "{\"usage\":{\"prompt_tokens\":7,", false, -1, -1},
    {OPENAI, JSON, "", false, -1, -1},
    {OPENAI, JSON, "\"text\"", false, -1, -1},
    {OPENAI, JSON, "{\"usage\":{\"prompt_tokens\":\"7\",\"completion_tokens\":-1}}", true, -1, -1},
    {"provider: openai", "/v1/embeddings", JSON, "{\"data\":[],\"usage\":{\"prompt_tokens\":5}}", true, 5, -1},
    /* A stream is whole when its end was seen, and only then. */
    {OPENAI, EVENTS, "data: {\"a\":1}\n\ndata: [DONE]\n\n", true, -1, -1},
    {OPENAI, EVENTS, "data: {\"a\":1}\r\n\r\ndata: [DONE]\r\n\r\n", true, -1, -1},
    {OPENAI, EVENTS, "data:{\"a\":1}\n\ndata:[DONE]", true, -1, -1},
    {OPENAI, EVENTS, "data: {\"a\":1}\n\ndata: [DON", false, -1, -1},
    {OPENAI, EVENTS, "data: {\"a\":1}\n\n", false, -1, -1},
    {OPENAI, EVENTS, "", false, -1, -1},
    {OPENAI, EVENTS, ": [DONE]\n\nevent: [DONE]\n\n", false, -1, -1},
    {OPENAI, EVENTS, "data: {\"text\":\"data: [DONE]\"}\n\n", false, -1, -1},
    {OPENAI, EVENTS, "data: {\"a\":1}\ndata: [DONE]\n\n", false, -1, -1}, /* one event of two lines */
    {OPENAI, EVENTS,
     "data: {\"usage\":null}\n\ndata: {\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n", true, 7, 3},
    {RESPONSES, EVENTS,
     "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":4,"
     "\"output_tokens\":2}}}\n\n",
     true, 4, 2},
    {RESPONSES, EVENTS, "data: {\"type\":\"response.incomplete\"}\n\n", true, -1, -1},
    {RESPONSES, EVENTS, "data: {\"type\":\"response.failed\"}\n\n", false, -1, -1},
    {RESPONSES, EVENTS, "data: [DONE]\n\n", false, -1, -1},
    {ANTHROPIC, EVENTS,
     "event: message_start\ndata: "
     "{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n"
     "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":12}}\n\n"
     "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
     true, 9, 12},
    {ANTHROPIC, EVENTS, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n", false, -1, -1},
    {ANTHROPIC, EVENTS, "event: message_stop\n\n", false, -1, -1},
    {GEMINI, EVENTS, "data: {\"candidates\":[{\"content\":{}}]}\n\n", false, -1, -1},
    {GEMINI, EVENTS,
     "data: {\"candidates\":[{\"content\":{}}]}\n\ndata: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":"
     "{\"promptTokenCount\":6,\"candidatesTokenCount\":8}}\n\n",
     true, 6, 8},
    {GEMINI, EVENTS, "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n", true, -1, -1},
    {GEMINI, JSON, "[{\"candidates\":[]},\n{\"usageMetadata\":{\"promptTokenCount\":6,\"candidatesTokenCount\":8}}]", true, 6, 8},
    {GEMINI, JSON, "[{\"candidates\":[]},\n{\"usageMetadata\":{\"promptTokenCount\":6}}", false, -1, -1},
};

TEST(an_answer_is_whole_when_its_end_was_seen)
{
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct house house;
        struct memo_answer got;
        struct pair type = {BYTES("Content-Type"), bytes_of(answers[i].type)};
        struct effect_reply reply = {200, &type, 1, bytes_of(answers[i].body)};
        house_open(&house, answers[i].settings);
        const struct memo_rules *memo = house_call(&house, "POST", answers[i].path)->memo;
        CHECK(memo != NULL);
        memo_read(memo, &reply, &got);
        if (got.whole != answers[i].whole || got.input != answers[i].input || got.output != answers[i].output)
            check_fail(__FILE__, __LINE__, "%s: whole %d, tokens %lld and %lld", answers[i].body, got.whole, (long long)got.input,
                       (long long)got.output);
        house_close(&house);
    }
}

/* However long the beginning that arrived: less than the whole is not whole. */
TEST(no_beginning_of_a_stream_is_whole)
{
    static const char text[] = "event: message_start\r\ndata: {\"type\":\"message_start\"}\r\n\r\n"
                               "event: message_stop\r\ndata: {\"type\":\"message_stop\"}";
    struct house house;
    struct pair type = {BYTES("Content-Type"), BYTES(EVENTS)};
    house_open(&house, "provider: anthropic");
    const struct memo_rules *memo = house_call(&house, "POST", "/v1/messages")->memo;
    for (size_t len = 0; len < sizeof text; len++) {
        struct effect_reply reply = {200, &type, 1, {text, len}};
        struct memo_answer got;
        memo_read(memo, &reply, &got);
        CHECK_INT(got.whole, len == sizeof text - 1);
    }
    house_close(&house);
}

TEST(only_model_calls_have_a_memo)
{
    struct house house;
    house_open(&house, "provider: openai");
    CHECK(house_call(&house, "POST", "/v1/chat/completions")->memo != NULL);
    CHECK(house_call(&house, "POST", "/v1/files")->memo == NULL);
    CHECK(house_call(&house, "GET", "/v1/chat/completions")->memo == NULL);
    CHECK(house_call(&house, "POST", "/v1/chat/completions/x")->memo == NULL);
    house_close(&house);
}

static struct bytes model_of(struct house *house, const char *path, const char *body)
{
    struct json json;
    struct why why;
    struct effect_request request = {.method = BYTES("POST"), .path = bytes_of(path)};
    bool parsed = json_parse(bytes_of(body), NULL, &house->arena, &json, &why) == OK;
    return memo_model(house_call(house, "POST", path)->memo, &request, parsed ? &json : NULL);
}

TEST(the_model_is_in_the_body_or_in_the_path)
{
    struct house house;
    house_open(&house, "provider: openai");
    CHECK_TEXT(model_of(&house, "/v1/responses", "{\"model\":\"m-1\"}"), "m-1");
    CHECK(model_of(&house, "/v1/responses", "{\"model\":7}").at == NULL);
    CHECK(model_of(&house, "/v1/responses", "nothing").at == NULL);
    house_close(&house);
    house_open(&house, "provider: gemini");
    CHECK_TEXT(model_of(&house, "/v1beta/models/m-2:generateContent?key=x", "{}"), "m-2");
    house_close(&house);
}

TEST(money_is_counted_only_with_a_price)
{
    struct house house;
    int64_t cost = -7;
    house_open(&house, "provider: openai, prices: {m-1: {input: 2.50, output: 10}, m-2: {input: 0.000001}}");
    CHECK(destination_cost(house.destination, BYTES("m-1"), 1000000, 100000, &cost));
    CHECK_INT(cost, INT64_C(3500000000000));
    CHECK(destination_cost(house.destination, BYTES("m-2"), 1, 5, &cost));
    CHECK_INT(cost, 1);
    CHECK(destination_cost(house.destination, BYTES("m-1"), -1, -1, &cost));
    CHECK_INT(cost, 0);
    CHECK(!destination_cost(house.destination, BYTES("m-1-mini"), 1, 1, &cost));
    house_close(&house);
}
