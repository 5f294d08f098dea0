/* What only PostgreSQL does: statements go in a pipeline, connections break, the schema changes under prepared statements. */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "queries.h"
#include "store/store.h"

#define MIB (1 << 20)

static const char *database(void)
{
    const char *url = getenv("SEMEL_TEST_POSTGRES");
    if (url == NULL)
        SKIP("SEMEL_TEST_POSTGRES is not set");
    return url;
}

static struct store *open_at(const char *url, enum store_access access)
{
    struct store *store = NULL;
    struct why why = {""};
    int lane;
    if (store_open_postgres(url, access, -1, &store, &lane, &why) != OK)
        check_fail(__FILE__, __LINE__, "%s", why.text);
    return store;
}

static struct store *open_empty(void)
{
    struct store *store = open_at(database(), STORE_WRITE);
    struct why why = {""};
    CHECK(store_script(store, "DROP SCHEMA IF EXISTS semel CASCADE", &why) == OK);
    if (store_migrate(store, &why) != OK)
        check_fail(__FILE__, __LINE__, "%s", why.text);
    return store;
}

static void begin(struct store *store)
{
    struct why why;
    CHECK(store_begin(store, &why) == OK);
}

static enum status add(struct store *store, int64_t id)
{
    struct why why;
    const struct q_body_add row = {id, BYTES("x")};
    return store_run(store, &BODY_ADD, &row, 1, NULL, NULL, NULL, &why);
}

static enum status count_row(void *ctx, const void *row, struct why *why)
{
    (void)row, (void)why;
    ++*(int *)ctx;
    return OK;
}

static enum status count_body(struct store *store, int64_t id, int *ret_count)
{
    struct why why;
    const struct q_body_get get = {id};
    *ret_count = 0;
    return store_run(store, &BODY_GET, &get, 1, count_row, ret_count, NULL, &why);
}

static int bodies(struct store *store, int64_t id)
{
    int count;
    CHECK(count_body(store, id, &count) == OK);
    return count;
}

TEST(what_is_queued_is_seen_by_the_next_query_of_the_transaction)
{
    struct store *store = open_empty();
    begin(store);
    CHECK(add(store, 1) == OK);
    CHECK_INT(bodies(store, 1), 1);
    CHECK(add(store, 2) == OK);
    CHECK_INT(bodies(store, 2), 1);
    store_rollback(store);
    CHECK_INT(bodies(store, 1) + bodies(store, 2), 0);
    store_close(store);
}

TEST(a_queued_statement_that_fails_is_told_by_commit_and_nothing_is_written)
{
    struct store *store = open_empty();
    struct why why;
    begin(store);
    CHECK(add(store, 1) == OK);
    CHECK(add(store, 1) == OK); /* it is not known yet */
    CHECK(add(store, 2) == OK);
    CHECK_INT(store_commit(store, &why), CONFLICT);
    CHECK(strstr(why.text, "body_add") != NULL);
    CHECK(!store->lost);
    CHECK_INT(bodies(store, 1) + bodies(store, 2), 0);
    begin(store);
    CHECK(add(store, 2) == OK);
    CHECK(store_commit(store, &why) == OK);
    CHECK_INT(bodies(store, 2), 1);
    store_close(store);
}

TEST(a_queued_statement_that_fails_is_told_by_the_next_query)
{
    struct store *store = open_empty();
    struct why why;
    int count;
    begin(store);
    CHECK(add(store, 1) == OK && add(store, 1) == OK);
    CHECK_INT(count_body(store, 1, &count), CONFLICT);
    CHECK_INT(count, 0);
    CHECK(store_commit(store, &why) != OK); /* whoever goes on regardless does not get far */
    CHECK_INT(bodies(store, 1), 0);
    store_close(store);
}

/* What was queued when it was rolled back may have failed: the connection is clean again all the same. */
TEST(a_rollback_leaves_nothing_behind_whatever_was_queued)
{
    struct store *store = open_empty();
    struct why why;
    int count = 0;
    const struct q_body_get get = {1};
    for (int failing = 0; failing < 2; failing++) {
        begin(store);
        CHECK(add(store, 1) == OK);
        CHECK(store_queue(store, &BODY_GET, &get, 1, count_row, &count, &why) == OK);
        if (failing)
            CHECK(add(store, 1) == OK);
        store_rollback(store);
        CHECK_INT(count, 0); /* nobody waits for its rows any more */
        CHECK(!store->lost);
        CHECK_INT(bodies(store, 1), 0);
    }
    begin(store);
    CHECK(add(store, 1) == OK && store_commit(store, &why) == OK);
    store_close(store);
}

/* Outside of a transaction nobody rolls back. Whoever is told of a failure gives up, and its memory is gone when a later flush reads the answers. */
TEST(after_a_failure_no_answer_comes_to_whoever_queued_before_it)
{
    struct store_fault fault = {.status = FULL};
    struct store *store = store_wrap_fault(open_empty(), &fault);
    struct why why;
    const struct q_body_get get = {1};
    int count = 0;
    CHECK(add(store, 1) == OK);
    for (int flushes = 0; flushes < 2; flushes++) {
        count = 0;
        CHECK(store_queue(store, &BODY_GET, &get, 1, count_row, &count, &why) == OK);
        fault.countdown = 1;
        CHECK_INT(flushes ? store_flush(store, &why) : store_queue(store, &BODY_GET, &get, 1, count_row, &count, &why), FULL);
        int before = count;
        CHECK(store_flush(store, &why) == OK);
        CHECK_INT(count, before);
    }
    store_close(store);
}

TEST(the_clock_is_read_with_the_first_answer_of_a_transaction)
{
    struct store *store = open_empty();
    struct why why;
    begin(store);
    CHECK(store_flush(store, &why) == OK);
    int64_t first = store->clock_us;
    store_rollback(store);
    begin(store);
    CHECK_INT(bodies(store, 1), 0);
    CHECK(first > 0 && store->clock_us > first);
    store_rollback(store);
    store_close(store);
}

/* Much in both directions at once: the server stops reading until its rows are read, and we have not finished writing. */
TEST(a_huge_batch_does_not_wait_for_itself)
{
    struct store *store = open_empty();
    struct why why;
    int count = 0;
    static char text[MIB];
    memset(text, 'x', sizeof text);
    static struct q_body_add adds[48];
    struct q_body_get gets[16];
    for (size_t i = 0; i < 48; i++)
        adds[i] = (struct q_body_add){(int64_t)i + 1, {text, sizeof text}};
    for (size_t i = 0; i < 16; i++)
        gets[i].id = (int64_t)i + 1;
    alarm(60);
    begin(store);
    CHECK(store_run(store, &BODY_ADD, adds, 16, NULL, NULL, NULL, &why) == OK);
    for (int i = 0; i < 4; i++)
        CHECK(store_queue(store, &BODY_GET, gets, 16, count_row, &count, &why) == OK);
    CHECK(store_run(store, &BODY_ADD, adds + 16, 32, NULL, NULL, NULL, &why) == OK);
    for (int64_t id = 100; id < 400; id++) /* more statements than are ever pending */
        CHECK(add(store, id) == OK);
    CHECK(store_commit(store, &why) == OK);
    alarm(0);
    CHECK_INT(count, 64);
    CHECK_INT(bodies(store, 48) + bodies(store, 399), 2);
    store_close(store);
}

/* ---- connections that break ---- */

enum cut { CUT_BEFORE_COMMIT, CUT_BEHIND_COMMIT };

static int listen_somewhere(int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 1) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
    *ret_port = ntohs(address.sin_port);
    return listener;
}

/* Forwards one connection until it sees a COMMIT from the client: that is passed on or not, and its answer never is. */
static void forward_until_commit(int client, int server, enum cut cut)
{
    static char data[1 << 16];
    for (;;) {
        struct pollfd ready[] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
        poll(ready, 2, -1);
        for (int i = 0; i < 2; i++) {
            ssize_t got = ready[i].revents != 0 ? read(ready[i].fd, data, sizeof data) : 0;
            if (ready[i].revents != 0 && got <= 0)
                return;
            bool commit = i == 0 && got > 0 && memmem(data, (size_t)got, "transaction_commit", 18) != NULL;
            if (commit && cut == CUT_BEFORE_COMMIT)
                return;
            if (got > 0 && write(ready[1 - i].fd, data, (size_t)got) != got)
                return;
            if (commit) {
                (void)!read(server, data, sizeof data); /* it is done now */
                return;
            }
        }
    }
}

/* The database behind a proxy in a process of its own. */
static pid_t start_proxy(enum cut cut, char *ret_url, size_t size)
{
    const char *url = database(), *at = strchr(url, '@'), *colon = at != NULL ? strchr(at, ':') : NULL;
    int port, own_port, listener = listen_somewhere(&own_port), end = 0;
    if (colon == NULL || sscanf(colon + 1, "%d%n", &port, &end) != 1)
        SKIP("SEMEL_TEST_POSTGRES names no port");
    snprintf(ret_url, size, "%.*s@127.0.0.1:%d%s", (int)(at - url), url, own_port, colon + 1 + end);
    pid_t pid = fork();
    if (pid == 0) {
        struct sockaddr_in address = {
            .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
        int client = accept(listener, NULL, NULL), server = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(server, (struct sockaddr *)&address, sizeof address) == 0)
            forward_until_commit(client, server, cut);
        _exit(0);
    }
    close(listener);
    return pid;
}

static void check_lost_commit(enum cut cut, int bodies_after)
{
    struct store *direct = open_empty();
    char url[256];
    pid_t proxy = start_proxy(cut, url, sizeof url);
    struct store *store = open_at(url, STORE_WRITE);
    struct why why;
    begin(store);
    CHECK(add(store, 1) == OK);
    CHECK_INT(store_commit(store, &why), UNKNOWN);
    CHECK(store->lost);
    store_close(store);
    kill(proxy, SIGKILL);
    waitpid(proxy, NULL, 0);
    CHECK_INT(bodies(direct, 1), bodies_after);
    store_close(direct);
}

TEST(a_commit_that_was_done_and_whose_answer_is_lost_is_unknown)
{
    check_lost_commit(CUT_BEHIND_COMMIT, 1);
}

TEST(a_commit_that_never_arrived_is_unknown_too)
{
    check_lost_commit(CUT_BEFORE_COMMIT, 0);
}

static void break_others(struct store *store)
{
    struct why why;
    CHECK(store_script(store,
                       "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'semel' AND pid "
                       "<> pg_backend_pid() AND datname = current_database()",
                       &why) == OK);
}

TEST(a_connection_that_broke_before_a_query_is_lost_and_may_be_tried_again)
{
    struct store *direct = open_empty(), *store = open_at(database(), STORE_WRITE);
    int count;
    begin(store);
    CHECK(add(store, 1) == OK);
    CHECK_INT(bodies(store, 1), 1);
    break_others(direct);
    CHECK(add(store, 2) == OK); /* it is not known yet */
    CHECK_INT(count_body(store, 2, &count), RETRY);
    CHECK(store->lost);
    CHECK_INT(add(store, 3), RETRY);
    store_close(store);
    CHECK_INT(bodies(direct, 1), 0);
    store_close(direct);
}

TEST(a_reader_whose_connection_broke_asks_again_by_itself)
{
    struct store *store = open_empty(), *reader = open_at(database(), STORE_READ);
    struct why why;
    begin(store);
    CHECK(add(store, 1) == OK && store_commit(store, &why) == OK);
    CHECK_INT(bodies(reader, 1), 1);
    break_others(store);
    CHECK_INT(bodies(reader, 1), 1);
    CHECK(!reader->lost);
    CHECK(add(reader, 2) != OK); /* it is still a reader */
    store_close(reader);
    store_close(store);
}

/* ---- a schema that changes ---- */

#define VALUE_IS_TEXT "ALTER TABLE semel.meta ALTER value TYPE text USING encode(value, 'escape')"

static enum status read_meta(struct store *store)
{
    struct why why;
    int count = 0;
    const struct q_meta_get get = {BYTES("schema")};
    TRY(store_run(store, &META_GET, &get, 1, count_row, &count, NULL, &why));
    CHECK_INT(count, 1);
    return OK;
}

TEST(what_was_prepared_before_a_script_changed_the_schema_still_works)
{
    struct store *store = open_empty();
    struct why why;
    CHECK(read_meta(store) == OK);
    begin(store);
    CHECK(store_script(store, VALUE_IS_TEXT, &why) == OK);
    CHECK(read_meta(store) == OK);
    store_rollback(store);
    CHECK(read_meta(store) == OK);
    store_close(store);
}

TEST(what_another_node_has_changed_under_a_prepared_statement_is_tried_again_on_a_new_connection)
{
    struct store *store = open_empty(), *writer = open_at(database(), STORE_WRITE), *reader = open_at(database(), STORE_READ);
    struct why why;
    CHECK(read_meta(writer) == OK && read_meta(reader) == OK);
    CHECK(store_script(store, VALUE_IS_TEXT, &why) == OK);
    CHECK_INT(read_meta(writer), RETRY);
    CHECK(writer->lost);
    CHECK(read_meta(reader) == OK); /* a reader does it by itself */
    store_close(reader);
    store_close(writer);
    store_close(store);
}
