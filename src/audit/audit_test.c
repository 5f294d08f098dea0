#include "audit/audit.h"

#include "base/when.h"
#include "check.h"
#include "house.h"

static struct audit_verified verify(struct house *house)
{
    struct audit_verified verified;
    struct why why;
    CHECK(audit_verify(engine_store(house->engine), &verified, &why) == OK);
    return verified;
}

static void fill(struct house *house)
{
    for (int i = 0; i < 5; i++) {
        char key[8];
        snprintf(key, sizeof key, "k%d", i);
        struct engine_command command = house_claim(key);
        house_run(house, &command);
        struct engine_command confirm = house_say(OP_CONFIRM, &command);
        house_run(house, &confirm);
    }
}

static void tamper(struct house *house, const char *sql)
{
    struct why why;
    struct store *store = engine_store(house->engine);
    CHECK(store_begin(store, &why) == OK);
    if (store_script(store, sql, &why) != OK)
        check_fail(__FILE__, __LINE__, "%s", why.text);
    CHECK(store_commit(store, &why) == OK);
}

TEST_BOTH(an_untouched_chain_verifies_also_after_a_restart)
{
    struct house house;
    house_open(&house, storage);
    fill(&house);
    house_reopen(&house);
    fill(&house);
    house_reopen(&house);
    struct audit_verified verified = verify(&house);
    CHECK_INT(verified.bad_id, 0);
    CHECK(verified.rows >= 15); /* ten transitions, and five duplicates that were suppressed */
    house_close(&house);
}

/* Each way of meddling is found, and the row is named. */
TEST_BOTH(a_changed_removed_or_cut_row_is_named)
{
    static const char *const ways[] = {
        "UPDATE decision SET actor = 'mallory' WHERE seq = 3",
        "UPDATE decision SET detail = replace(detail, 'k1', 'k9') WHERE seq = 3",
        "UPDATE decision SET fence = fence + 1 WHERE seq = 5",
        "UPDATE decision SET at = at + 1 WHERE seq = 1",
        "UPDATE body SET bytes = '{\"ok\":false}' WHERE id = (SELECT body FROM decision WHERE seq = 4)",
        "UPDATE body SET bytes = '' WHERE id = (SELECT body FROM decision WHERE seq = 10)",
        "DELETE FROM body WHERE id = (SELECT body FROM decision WHERE seq = 6)",
        "UPDATE decision SET detail = replace(detail, 'result_sha256', 'result_sha_256') WHERE seq = 4",
        "DELETE FROM decision WHERE seq = 4",
        "DELETE FROM decision WHERE seq = 10",
        "DELETE FROM decision WHERE seq >= 6",
        "DELETE FROM decision",
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct house house;
        house_open(&house, storage);
        fill(&house);
        CHECK_INT(verify(&house).bad_id, 0);
        tamper(&house, ways[i]);
        struct audit_verified verified = verify(&house);
        if (verified.bad_id == 0)
            check_fail(__FILE__, __LINE__, "not found: %s", ways[i]);
        CHECK(strstr(verified.bad, "dec_") != NULL);
        house_close(&house);
    }
}

/* With its time to be kept, an intent's result goes too; the row that named it stays, and that is no damage. */
TEST(a_result_that_expired_with_its_intent_is_not_missed)
{
    struct house house;
    house_open(&house, HOUSE_SQLITE);
    struct engine_command command = house_claim("k");
    command.ledger.keep_us = WHEN_MINUTE;
    house_run(&house, &command);
    struct engine_command confirm = house_say(OP_CONFIRM, &command);
    house_run(&house, &confirm);
    house_advance(&house, 2 * WHEN_MINUTE);
    engine_step(house.engine, NULL);
    house_run(&house, &command);
    CHECK_INT(command.answer.verdict, VERDICT_EXPIRED);
    CHECK_INT(verify(&house).bad_id, 0);
    house_close(&house);
}
