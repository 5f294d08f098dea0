/*
 * house: a whole semel without HTTP, for unit tests: an engine on either database, stepped by hand in one thread, in a world
 * whose clock the test owns (on PostgreSQL leases follow the server's clock, so there a test really waits; keep times short).
 */
#ifndef SEMEL_TESTS_HOUSE_H
#define SEMEL_TESTS_HOUSE_H

#include "engine/engine.h"

struct house {
    struct env env; /* first: the env functions find the house by it */
    int64_t wall_us, boot_us;
    uint64_t seed;
    struct engine *engine;
    struct arena arena;
    const char *postgres_url;
    struct store_fault fault; /* every store is wrapped with it */
};

enum house_storage { HOUSE_SQLITE, HOUSE_POSTGRES };

/* Skips the test when there is no PostgreSQL to test with (SEMEL_TEST_POSTGRES, a URL whose database is emptied). */
void house_open(struct house *house, enum house_storage storage);
void house_reopen(struct house *house); /* as after a restart: same data */
void house_close(struct house *house);
void house_advance(struct house *house, int64_t us);

#define HOUSE_LEASE_US INT64_C(500000)

/* A claim with everything at its default and a lease of HOUSE_LEASE_US; change what you need, then house_run(). */
struct engine_command house_claim(const char *key);
struct engine_command house_say(enum ledger_op op, const struct engine_command *claim);
void house_run(struct house *house, struct engine_command *command);

/* The intent as stored. */
struct row_intent house_intent(struct house *house, int64_t id);

/* Runs `body` on both databases as two tests. */
#define TEST_BOTH(name)                          \
    static void name##_body(enum house_storage); \
    TEST(name##_on_sqlite)                       \
    {                                            \
        name##_body(HOUSE_SQLITE);               \
    }                                            \
    TEST(name##_on_postgres)                     \
    {                                            \
        name##_body(HOUSE_POSTGRES);             \
    }                                            \
    static void name##_body(enum house_storage storage)

#endif
