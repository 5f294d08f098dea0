#include "act/outbox.h"

#include "check.h"

static struct pair some_headers[] = {{BYTES("Content-Type"), BYTES("text/plain; charset=\"x\"")}, {BYTES("X-Empty"), BYTES("")}};

static const struct bytes bodies[] = {BYTES(""), BYTES("plain"), BYTES("two\nlines\r\n{\"a\":1}\n"),
                                      BYTES("\x00\xff\xfe\x80 bytes"), BYTES("é ☃ 𝄞 \x7f")};

TEST(a_request_reads_back_byte_for_byte)
{
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct arena arena;
        struct why why;
        struct bytes record;
        struct effect_request back, request = {BYTES("POST"), BYTES("/v1/x?a=\"b\""), bodies[i], some_headers, 2};
        arena_init(&arena, 1 << 20);
        CHECK_INT(request_record(&request, &arena, &record, &why), OK);
        CHECK_INT(request_read(record, &arena, &back, &why), OK);
        CHECK(bytes_eq(back.method, request.method) && bytes_eq(back.path, request.path) && bytes_eq(back.body, request.body));
        CHECK_INT(back.header_count, 2);
        for (size_t h = 0; h < 2; h++)
            CHECK(bytes_eq(back.headers[h].name, some_headers[h].name) && bytes_eq(back.headers[h].value, some_headers[h].value));
        arena_release(&arena);
    }
}

TEST(a_reply_reads_back_byte_for_byte_and_is_json)
{
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct arena arena;
        struct why why;
        struct bytes record;
        struct json json;
        bool partial = i % 2 == 0;
        struct effect_reply back, reply = {201, some_headers, 2, bodies[i]};
        arena_init(&arena, 1 << 20);
        struct reply_notes was, notes = {.partial = partial, .evidence = partial ? BYTES("{\"probe\":\"found\"}") : BYTES_NONE};
        CHECK_INT(reply_record(&reply, &notes, &arena, &record, &why), OK);
        CHECK_INT(json_parse(record, NULL, &arena, &json, &why), OK);
        CHECK_INT(reply_read(record, &arena, &back, &was, &why), OK);
        CHECK_INT(back.status, 201);
        CHECK_INT(was.partial, partial);
        CHECK(bytes_eq(was.evidence, notes.evidence) && !was.memo);
        CHECK(bytes_eq(back.body, reply.body));
        CHECK_INT(back.header_count, 2);
        arena_release(&arena);
    }
}

TEST(the_pieces_and_the_tokens_of_a_model_call_read_back)
{
    static const uint32_t pieces[] = {3, 1, 70000};
    struct arena arena;
    struct why why;
    struct bytes record;
    struct effect_reply back, reply = {200, some_headers, 2, BYTES("abcdef")};
    struct reply_notes was, notes = {.memo = true, .input = 12, .output = -1, .pieces = pieces, .piece_count = 3};
    arena_init(&arena, 1 << 20);
    CHECK_INT(reply_record(&reply, &notes, &arena, &record, &why), OK);
    CHECK_INT(reply_read(record, &arena, &back, &was, &why), OK);
    CHECK(was.memo && !was.partial);
    CHECK_INT(was.input, 12);
    CHECK_INT(was.output, -1);
    CHECK_INT(was.piece_count, 3);
    CHECK(memcmp(was.pieces, pieces, sizeof pieces) == 0);
    arena_release(&arena);
}

TEST(what_is_no_reply_is_not_read_as_one)
{
    static const char *const bad[] = {"null",
                                      "1",
                                      "{}",
                                      "{\"status\":200}",
                                      "{\"status\":\"200\",\"headers\":[]}",
                                      "{\"status\":200,\"headers\":[[\"a\"]],\"body\":\"\"}",
                                      "{\"status\":200,\"headers\":[],\"body_base64\":\"%\"}",
                                      "{\"status\":200,\"headers\":[],\"body\":\"\",\"memo\":{\"pieces\":[-1]}}",
                                      "{\"exit\":0}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct arena arena;
        struct effect_reply reply;
        struct why why;
        struct reply_notes notes;
        arena_init(&arena, 1 << 20);
        CHECK(reply_read(bytes_of(bad[i]), &arena, &reply, &notes, &why) != OK);
        arena_release(&arena);
    }
}
