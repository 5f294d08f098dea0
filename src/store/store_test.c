#include "store/store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "house.h"
#include "queries.h"

/* One suite, run on both databases. */
static struct store *open_store(enum house_storage storage)
{
    struct store *store = NULL;
    struct why why = {""};
    int lane;
    hash_setup();
    if (storage == HOUSE_SQLITE) {
        if (store_open_sqlite("data", STORE_WRITE, &store, &why) != OK)
            check_fail(__FILE__, __LINE__, "%s", why.text);
    } else {
        const char *url = getenv("SEMEL_TEST_POSTGRES");
        if (url == NULL)
            SKIP("SEMEL_TEST_POSTGRES is not set");
        if (store_open_postgres(url, STORE_WRITE, -1, &store, &lane, &why) != OK)
            check_fail(__FILE__, __LINE__, "%s", why.text);
        CHECK(store_script(store, "DROP SCHEMA IF EXISTS semel CASCADE", &why) == OK);
    }
    if (store_migrate(store, &why) != OK)
        check_fail(__FILE__, __LINE__, "%s", why.text);
    return store;
}

struct bodies {
    int64_t ids[8];
    char bytes[8][64];
    size_t lens[8], count;
};

static enum status take_body(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct bodies *bodies = ctx;
    const struct r_body_get *got = row;
    size_t n = bodies->count++;
    bodies->ids[n] = got->id;
    bodies->lens[n] = got->bytes.len;
    memcpy(bodies->bytes[n], got->bytes.at, got->bytes.len);
    return OK;
}

static struct bodies get_bodies(struct store *store, const int64_t *ids, size_t count)
{
    struct bodies bodies = {0};
    struct q_body_get gets[8];
    struct why why;
    for (size_t i = 0; i < count; i++)
        gets[i].id = ids[i];
    CHECK(store_run(store, &BODY_GET, gets, count, take_body, &bodies, NULL, &why) == OK);
    return bodies;
}

TEST_BOTH(bytes_and_numbers_survive_exactly)
{
    struct store *store = open_store(storage);
    struct why why;
    const struct q_body_add adds[] = {
        {1, BYTES("")}, {INT64_MAX, BYTES("\0\1\377 \xc3\xa9")}, {INT64_C(-9223372036854775807), BYTES("x")}};
    CHECK(store_begin(store, &why) == OK);
    int64_t changed = 0;
    CHECK(store_run(store, &BODY_ADD, adds, 3, NULL, NULL, &changed, &why) == OK);
    CHECK_INT(changed, 3);
    CHECK(store_commit(store, &why) == OK);
    for (size_t i = 0; i < 3; i++) {
        struct bodies got = get_bodies(store, &adds[i].id, 1);
        CHECK_INT(got.count, 1);
        CHECK_INT(got.ids[0], adds[i].id);
        CHECK(bytes_eq((struct bytes){got.bytes[0], got.lens[0]}, adds[i].bytes));
    }
    store_close(store);
}

TEST_BOTH(what_is_rolled_back_was_never_there)
{
    struct store *store = open_store(storage);
    struct why why;
    const struct q_body_add add = {7, BYTES("x")};
    CHECK(store_begin(store, &why) == OK);
    CHECK(store_run(store, &BODY_ADD, &add, 1, NULL, NULL, NULL, &why) == OK);
    store_rollback(store);
    CHECK_INT(get_bodies(store, &add.id, 1).count, 0);
    store_close(store);
}

TEST_BOTH(a_broken_rule_is_a_conflict_and_the_connection_stays_usable)
{
    struct store *store = open_store(storage);
    struct why why;
    const struct q_body_add add = {7, BYTES("x")};
    CHECK(store_begin(store, &why) == OK);
    int64_t changed;
    CHECK(store_run(store, &BODY_ADD, &add, 1, NULL, NULL, NULL, &why) == OK);
    CHECK_INT(store_run(store, &BODY_ADD, &add, 1, NULL, NULL, &changed, &why), CONFLICT);
    store_rollback(store);
    CHECK(store_begin(store, &why) == OK);
    CHECK(store_run(store, &BODY_ADD, &add, 1, NULL, NULL, NULL, &why) == OK);
    CHECK(store_commit(store, &why) == OK);
    CHECK_INT(get_bodies(store, &add.id, 1).count, 1);
    store_close(store);
}

static enum status take_token(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct row_token *ret = ctx;
    const struct row_token *got = row;
    CHECK_TEXT(got->name, "n\xc3\xa4me");
    ret->scopes = got->scopes;
    ret->revoked = got->revoked;
    return OK;
}

TEST_BOTH(texts_updates_and_counts_agree)
{
    struct store *store = open_store(storage);
    struct why why;
    const struct row_token token = {BYTES("abc"), BYTES("main"), BYTES("n\xc3\xa4me"), 5, BYTES("\0\1"), 1, 2, 0};
    const struct q_token_revoke revoke = {BYTES("abc"), 99};
    struct row_token got = {0};
    int64_t changed = 0;
    CHECK(store_begin(store, &why) == OK);
    CHECK(store_run(store, &TOKEN_ADD, &token, 1, NULL, NULL, &changed, &why) == OK);
    CHECK_INT(changed, 1);
    CHECK(store_run(store, &TOKEN_REVOKE, &revoke, 1, NULL, NULL, &changed, &why) == OK);
    CHECK_INT(changed, 1);
    CHECK(store_run(store, &TOKEN_REVOKE, &revoke, 1, NULL, NULL, &changed, &why) == OK);
    CHECK_INT(changed, 0);
    CHECK(store_commit(store, &why) == OK);
    CHECK(store_run(store, &TOKEN_LIST, NULL, 0, take_token, &got, NULL, &why) == OK);
    CHECK_INT(got.scopes, 5);
    CHECK_INT(got.revoked, 99);
    store_close(store);
}

TEST_BOTH(migrating_again_changes_nothing_and_newer_data_is_refused)
{
    struct store *store = open_store(storage);
    struct why why;
    CHECK(store_migrate(store, &why) == OK);
    const struct q_meta_put put = {BYTES("schema"), BYTES("9999")};
    CHECK(store_begin(store, &why) == OK);
    CHECK(store_run(store, &META_PUT, &put, 1, NULL, NULL, NULL, &why) == OK);
    CHECK(store_commit(store, &why) == OK);
    CHECK_INT(store_migrate(store, &why), BROKEN);
    CHECK(strstr(why.text, "newer semel") != NULL);
    store_close(store);
}

/* Every query is understood by the database, also those that no other test happens to run. */
TEST_BOTH(every_query_can_be_prepared)
{
    struct store *store = open_store(storage);
    struct why why;
    static const struct query *const all[] = {&INTENT_LOOK,
                                              &INTENT_LOOK_ID,
                                              &INTENT_LOCK,
                                              &INTENT_LAPSED,
                                              &INTENT_EXPIRED,
                                              &INTENT_GET,
                                              &INTENT_BY_KEY,
                                              &INTENT_LIST,
                                              &INTENT_LIST_WORKFLOW,
                                              &INTENT_LIST_OPEN,
                                              &INTENT_LIST_CONFIRMED,
                                              &INTENT_LIST_WORKFLOW_STATE,
                                              &BODY_GET,
                                              &BODY_DROP,
                                              &TOMBSTONE_GET,
                                              &TOMBSTONE_DROP,
                                              &INTENT_DROP,
                                              &LANE_GET,
                                              &LANE_LIST,
                                              &DECISION_LIST,
                                              &DECISION_LIST_INTENT,
                                              &DECISION_CHAIN,
                                              &POLICY_LATEST,
                                              &TOKEN_LIST,
                                              &META_GET};
    _Alignas(16) static char zeros[4096];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        enum status status = store_run(store, all[i], all[i]->param_count > 0 ? zeros : NULL, 1, NULL, NULL, NULL, &why);
        if (status != OK)
            check_fail(__FILE__, __LINE__, "%s: %s", all[i]->name, why.text);
    }
    store_close(store);
}

/* ---- SQLite only ---- */

TEST(a_second_process_on_the_same_data_is_refused_and_names_the_first)
{
    struct store *store = open_store(HOUSE_SQLITE), *second = NULL;
    struct why why;
    char pid[32];
    snprintf(pid, sizeof pid, "process %d", (int)getpid());
    CHECK_INT(store_open_sqlite("data", STORE_WRITE, &second, &why), CONFLICT);
    CHECK(strstr(why.text, pid) != NULL);
    CHECK(store_open_sqlite("data", STORE_READ, &second, &why) == OK); /* readers are welcome */
    store_close(second);
    store_close(store);
    CHECK(store_open_sqlite("data", STORE_WRITE, &second, &why) == OK);
    store_close(second);
}

static void write_and_die(void)
{
    struct store *store = open_store(HOUSE_SQLITE);
    struct why why;
    const struct q_body_add add = {1, BYTES("kept")};
    CHECK(store_begin(store, &why) == OK);
    CHECK(store_run(store, &BODY_ADD, &add, 1, NULL, NULL, NULL, &why) == OK);
    CHECK(store_commit(store, &why) == OK);
    _exit(0); /* without closing: the log stays behind */
}

TEST(a_commit_survives_a_process_that_ends_without_closing)
{
    pid_t pid = fork();
    if (pid == 0)
        write_and_die();
    int state;
    waitpid(pid, &state, 0);
    struct stat info;
    CHECK(stat("data/semel.db-wal", &info) == 0 && info.st_size > 0);
    struct store *store = open_store(HOUSE_SQLITE);
    const int64_t id = 1;
    CHECK_INT(get_bodies(store, &id, 1).count, 1);
    store_close(store);
}

TEST(damaged_data_is_found_after_an_unclean_stop)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct store *store = open_store(HOUSE_SQLITE);
        store_close(store);
        write_and_die();
    }
    int state;
    waitpid(pid, &state, 0);
    int fd = open("data/semel.db", O_RDWR);
    CHECK(fd >= 0);
    static char garbage[4096 * 20]; /* every page but the first */
    memset(garbage, 0xa5, sizeof garbage);
    CHECK(pwrite(fd, garbage, sizeof garbage, 4096) == (ssize_t)sizeof garbage);
    close(fd);
    struct store *store = NULL;
    struct why why;
    CHECK_INT(store_open_sqlite("data", STORE_WRITE, &store, &why), BROKEN);
}

TEST(the_reserve_is_made_and_released)
{
    struct store *store = open_store(HOUSE_SQLITE);
    struct stat info;
    CHECK(store_reserve_refill("data"));
    CHECK(stat("data/reserve", &info) == 0);
    CHECK_INT(info.st_size, 4 << 20);
    store_reserve_release("data");
    CHECK(stat("data/reserve", &info) != 0);
    store_close(store);
}
