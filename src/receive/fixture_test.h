/* A source of a policy text, and deliveries to it, for the tests of this folder. */
#ifndef SEMEL_RECEIVE_FIXTURE_TEST_H
#define SEMEL_RECEIVE_FIXTURE_TEST_H

#include "base/hash.h"
#include "base/when.h"
#include "check.h"
#include "receive/receive.h"
#include "receive/source_read.h"

#define FIXTURE_NOW_US (INT64_C(1700000000) * WHEN_SECOND)

struct desk {
    struct arena arena, scratch;
    struct yaml_problems problems;
    struct source source;
    struct receive_request request;
    struct pair headers[16];
    struct receive_result result;
    struct bytes secrets[SOURCE_SECRETS_MAX];
    struct why why;
};

/* Reads `settings` as the settings of source `name`; false when there are problems. */
static inline bool desk_try(struct desk *desk, const char *name, const char *settings)
{
    struct yaml *root = NULL;
    struct yaml node = {.kind = YAML_TEXT, .plain = true, .line = 1, .column = 1, .text = bytes_of(name)};
    *desk = (struct desk){0};
    hash_setup();
    arena_init(&desk->arena, 64 << 20);
    arena_init(&desk->scratch, 16 << 20);
    struct source_reading reading = {&desk->arena, &desk->scratch, &desk->problems};
    CHECK_INT(yaml_read(bytes_of(settings), &desk->scratch, &root, &desk->problems), OK);
    CHECK_INT(source_read(&reading, &node, root, &desk->source), OK);
    desk->request = (struct receive_request){
        .method = BYTES("POST"), .url = BYTES("https://x.test/in/x"), .headers = desk->headers, .now_us = FIXTURE_NOW_US};
    return desk->problems.count == 0;
}

static inline void desk_open(struct desk *desk, const char *name, const char *settings)
{
    if (!desk_try(desk, name, settings))
        check_fail(__FILE__, __LINE__, "%s: %zu:%zu: %s", name, desk->problems.at[0].line, desk->problems.at[0].column,
                   desk->problems.at[0].text);
}

static inline void desk_close(struct desk *desk)
{
    arena_release(&desk->arena);
    arena_release(&desk->scratch);
}

static inline void desk_header(struct desk *desk, const char *name, const char *value)
{
    size_t i = 0;
    while (i < desk->request.header_count && !bytes_is(desk->headers[i].name, name))
        i++;
    desk->headers[i] = (struct pair){bytes_of(name), bytes_of(value)};
    desk->request.header_count += i == desk->request.header_count;
}

static inline enum receive_end desk_read(struct desk *desk)
{
    desk->result = (struct receive_result){0};
    CHECK_INT(receive_read(&desk->source, desk->secrets, &desk->request, &desk->arena, &desk->result, &desk->why), OK);
    return desk->result.end;
}

static inline bool desk_because(const struct desk *desk, const char *part)
{
    return memmem(desk->result.because.at, desk->result.because.len, part, strlen(part)) != NULL;
}

#endif
