/* fixture: a house with a flow in it, for the tests of flow/: events are staged, passes are made by hand, and one looks at what came of it. */
#ifndef SEMEL_FLOW_FIXTURE_TEST_H
#define SEMEL_FLOW_FIXTURE_TEST_H

#include <stdio.h>
#include <stdlib.h>

#include "base/when.h"
#include "check.h"
#include "flow/flow.h"
#include "house.h"

#define QUESTION "What does a weekly coaching session cost, and when could we begin?"

static const char rules[] = "destinations:\n"
                            "  agent: {provider: http, url: \"https://agent.example\"}\n"
                            "sources:\n"
                            "  form: {preset: json, verify: none, forward: agent, path: /new}\n"
                            "  mail: {preset: json, verify: none, forward: agent}\n"
                            "  chat: {preset: json, verify: none, forward: agent, loop: 5/10m}\n"
                            "  watched: {preset: json, verify: none, forward: agent, mode: shadow}\n"
                            "  kept: {preset: json, verify: none, keep: 1h}\n"
                            "owner: dana\n";

struct world {
    struct house house;
    struct flow *flow;
    struct policy *policy;
};

static inline void world_open(struct world *world, enum house_storage storage)
{
    struct why why;
    struct yaml_problems *problems = calloc(1, sizeof *problems);
    house_open(&world->house, storage);
    CHECK_INT(flow_open(world->house.engine, NULL, &world->flow, &why), OK);
    if (policy_parse(bytes_of(rules), &world->policy, problems) != OK)
        check_fail(__FILE__, __LINE__, "%zu: %s", problems->at[0].line, problems->at[0].text);
    flow_set_policy(world->flow, world->policy, 7);
    free(problems);
}

static inline void world_close(struct world *world)
{
    house_close(&world->house);
    flow_close(world->flow);
    policy_free(world->policy);
}

/* ---- what comes in ---- */

static inline enum status write_order(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    return stage_write(store, ledger, command->user, why);
}

static inline void nothing(struct engine_command *command)
{
    (void)command;
}

static inline void run_write(struct world *world, struct engine_command *command)
{
    engine_step(world->house.engine, command);
    if (command->status != OK)
        check_fail(__FILE__, __LINE__, "%s: %s", status_name(command->status), command->why.text);
}

/* Stages one event as it is kept; returns its id. */
static inline int64_t stage_kept(struct world *world, const char *source, struct bytes record, struct bytes content)
{
    int64_t event = 0;
    struct stage_order order = {.space = BYTES("main"),
                                .source = bytes_of(source),
                                .record = record,
                                .contents = &content,
                                .count = 1,
                                .keep_us = WHEN_HOUR,
                                .events = &event};
    struct engine_command command = {.write = write_order, .user = &order, .arena = &world->house.arena, .done = nothing};
    run_write(world, &command);
    return event;
}

/* A request of so many bytes; the caller frees it. */
static inline char *large_record(size_t size)
{
    static const char head[] = "{\"method\":\"POST\",\"path\":\"/\",\"headers\":[]}\n";
    char *record = malloc(size);
    CHECK(record != NULL);
    memset(record, 'x', size);
    memcpy(record, head, sizeof head - 1);
    return record;
}

/* Stages one event with one identity (none for NULL); returns its id. */
static inline int64_t stage(struct world *world, const char *source, const char *delivery, const char *from, const char *text)
{
    struct arena *arena = &world->house.arena;
    struct identity identity = {.kind = IDENTITY_EMAIL, .sender = true, .value = bytes_of(from)};
    struct incoming incoming = {.kind = BYTES("message"),
                                .delivery = bytes_of(delivery),
                                .text = bytes_of(text),
                                .identities = &identity,
                                .identity_count = from != NULL,
                                .piece = arena_printf(arena, "{\"text\":\"%s\",\"from\":\"%s\"}", text, from)};
    struct bytes content, record;
    struct why why;
    struct pair header = {BYTES("Content-Type"), BYTES("application/json")};
    struct effect_request request = {
        .method = BYTES("POST"), .path = BYTES("/in/x"), .body = incoming.piece, .headers = &header, .header_count = 1};
    CHECK_INT(request_record(&request, arena, &record, &why), OK);
    CHECK_INT(event_seal(&incoming, true, arena, &why), OK);
    CHECK_INT(event_record(&incoming, arena, &content, &why), OK);
    return stage_kept(world, source, record, content);
}

static inline void pass(struct world *world)
{
    struct engine_command command = flow_pass(world->flow);
    run_write(world, &command);
}

static inline enum status take_event(void *ctx, const void *row, struct why *why)
{
    struct row_event *event = ctx;
    (void)why;
    static char reason[64];
    *event = *(const struct row_event *)row;
    snprintf(reason, sizeof reason, "%.*s", BYTES_ARG(event->reason));
    event->reason = bytes_of(reason);
    return OK;
}

static inline struct row_event look(struct world *world, int64_t id)
{
    struct row_event event = {0};
    struct q_event_get get = {BYTES("main"), id};
    struct why why;
    CHECK_INT(store_run(engine_store(world->house.engine), &EVENT_GET, &get, 1, take_event, &event, NULL, &why), OK);
    return event;
}

static inline void expect(struct world *world, int64_t id, enum event_verdict verdict, const char *reason, int64_t first)
{
    struct row_event event = look(world, id);
    if (event.verdict != (int64_t)verdict || !bytes_is(event.reason, reason))
        check_fail(__FILE__, __LINE__, "it is %s, %.*s; want %s, %s", event_verdict_names[event.verdict], BYTES_ARG(event.reason),
                   event_verdict_names[verdict], reason);
    CHECK_INT(event.first, first);
    CHECK_INT(event.policy, 7);
}

static inline enum status count_rows(void *ctx, const void *row, struct why *why)
{
    (void)row;
    (void)why;
    ++*(int *)ctx;
    return OK;
}

static inline int forwards(struct world *world)
{
    struct q_effect_list list = {BYTES("main"), BYTES("agent"), -1, -1, INT64_MAX, 1000};
    struct why why;
    int count = 0;
    CHECK_INT(store_run(engine_store(world->house.engine), &EFFECT_LIST, &list, 1, count_rows, &count, NULL, &why), OK);
    return count;
}

static inline int open_cards(struct world *world)
{
    struct q_exception_list_open list = {BYTES("main"), 0, 0, 1000};
    struct why why;
    int count = 0;
    CHECK_INT(store_run(engine_store(world->house.engine), &EXCEPTION_LIST_OPEN, &list, 1, count_rows, &count, NULL, &why), OK);
    return count;
}

/* On PostgreSQL the clock is the server's: what needs another time is tested on SQLite alone. */
static inline void later(struct world *world, int64_t us)
{
    world->house.wall_us += us;
    world->house.boot_us += us;
}

#endif
