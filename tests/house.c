#include "house.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/when.h"
#include "check.h"

static int64_t house_wall(struct env *env)
{
    return ((struct house *)env)->wall_us;
}

static int64_t house_boot(struct env *env)
{
    return ((struct house *)env)->boot_us;
}

static void house_random(struct env *env, void *ret_bytes, size_t size)
{
    struct house *house = (struct house *)env;
    for (size_t i = 0; i < size; i++) {
        house->seed = house->seed * 6364136223846793005u + 1442695040888963407u;
        ((uint8_t *)ret_bytes)[i] = (uint8_t)(house->seed >> 56);
    }
}

static enum status open_with_fault(void *user, int lane, struct store **ret_store, int *ret_lane, struct why *why)
{
    struct house *house = user;
    struct store *store = NULL;
    if (house->postgres_url != NULL)
        TRY(store_open_postgres(house->postgres_url, STORE_WRITE, lane, &store, ret_lane, why));
    else
        TRY(store_open_sqlite("data", STORE_WRITE, &store, why));
    *ret_store = store_wrap_fault(store, &house->fault);
    return OK;
}

static void open_engine(struct house *house)
{
    struct engine_config config = {
        .env = &house->env, .data_dir = "data", .postgres_url = house->postgres_url, .open = open_with_fault, .open_user = house};
    struct why why = {""};
    if (engine_open(&config, &house->engine, &why) != OK)
        check_fail(__FILE__, __LINE__, "engine_open: %s", why.text);
}

static void empty_database(const char *url)
{
    struct store *store = NULL;
    int lane;
    struct why why = {""};
    if (store_open_postgres(url, STORE_WRITE, -1, &store, &lane, &why) != OK)
        check_fail(__FILE__, __LINE__, "%s", why.text);
    CHECK(store_script(store, "DROP SCHEMA IF EXISTS semel CASCADE", &why) == OK);
    store_close(store);
}

void house_open(struct house *house, enum house_storage storage)
{
    *house = (struct house){
        .env = {house_wall, house_boot, house_random},
        .wall_us = INT64_C(1794787200000000),
        .boot_us = 5 * WHEN_SECOND,
        .seed = 42,
    };
    hash_setup();
    CHECK(system("rm -rf data") == 0);
    arena_init(&house->arena, 64 << 20);
    if (storage == HOUSE_POSTGRES) {
        house->postgres_url = getenv("SEMEL_TEST_POSTGRES");
        if (house->postgres_url == NULL)
            SKIP("SEMEL_TEST_POSTGRES is not set");
        empty_database(house->postgres_url);
    }
    open_engine(house);
}

void house_reopen(struct house *house)
{
    engine_close(house->engine);
    house->boot_us = 7 * WHEN_SECOND; /* the machine may have been restarted too */
    open_engine(house);
}

void house_close(struct house *house)
{
    engine_close(house->engine);
    arena_release(&house->arena);
}

void house_advance(struct house *house, int64_t us)
{
    house->wall_us += us;
    house->boot_us += us;
    if (house->postgres_url != NULL)
        usleep((useconds_t)us);
}

struct engine_command house_claim(const char *key)
{
    struct engine_command command = {
        .ledger = {.op = OP_CLAIM,
                   .space = BYTES("main"),
                   .actor = BYTES("test"),
                   .workflow = BYTES("mail"),
                   .key = bytes_of(key),
                   .lease_us = HOUSE_LEASE_US,
                   .keep_us = 30 * WHEN_DAY,
                   .tombstone_us = 400 * WHEN_DAY,
                   .window_us = WHEN_DAY,
                   .attempts_max = 10},
    };
    return command;
}

struct engine_command house_say(enum ledger_op op, const struct engine_command *claim)
{
    struct engine_command command = {
        .ledger = {.op = op,
                   .space = claim->ledger.space,
                   .actor = BYTES("test"),
                   .intent = claim->answer.intent,
                   .fence = claim->answer.fence,
                   .result = BYTES("{\"ok\":true}")},
    };
    return command;
}

static void done(struct engine_command *command)
{
    *(bool *)command->user = true;
}

void house_run(struct house *house, struct engine_command *command)
{
    bool answered = false;
    if (command->ledger.op == OP_CLAIM)
        ledger_key_hash(engine_pepper(house->engine), command->ledger.space, command->ledger.workflow, command->ledger.key,
                        command->ledger.h);
    command->arena = &house->arena;
    command->user = &answered;
    command->done = done;
    command->next = NULL;
    engine_step(house->engine, command);
    CHECK(answered);
}

struct found {
    struct intent intent;
    struct arena *arena;
};

static enum status take_intent(void *ctx, const void *row, struct why *why)
{
    struct found *found = ctx;
    return intent_take(&found->intent, row, found->arena, why);
}

struct row_intent house_intent(struct house *house, int64_t id)
{
    struct found found = {.arena = &house->arena};
    struct q_intent_get get = {BYTES("main"), id};
    struct why why;
    CHECK(store_run(engine_store(house->engine), &INTENT_GET, &get, 1, take_intent, &found, NULL, &why) == OK);
    CHECK(found.intent.exists);
    return found.intent.row;
}
