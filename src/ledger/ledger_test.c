#include "ledger/ledger.h"

#include "base/when.h"
#include "check.h"
#include "house.h"

#define LEASE_OVER (HOUSE_LEASE_US + 100 * WHEN_MS)

static void claim(struct house *house, struct engine_command *command, enum ledger_verdict want)
{
    house_run(house, command);
    CHECK_INT(command->status, OK);
    CHECK_INT(command->answer.verdict, want);
}

static struct engine_command say(struct house *house, enum ledger_op op, const struct engine_command *claimed,
                                 enum ledger_verdict want)
{
    struct engine_command command = house_say(op, claimed);
    house_run(house, &command);
    CHECK_INT(command.status, OK);
    CHECK_INT(command.answer.verdict, want);
    return command;
}

static struct engine_command fail(struct house *house, const struct engine_command *claimed, bool unknown, bool final)
{
    struct engine_command command = house_say(OP_FAIL, claimed);
    command.ledger.effect_unknown = unknown;
    command.ledger.final = final;
    command.ledger.error = BYTES("boom");
    house_run(house, &command);
    CHECK_INT(command.answer.verdict, VERDICT_DONE);
    return command;
}

static struct fingerprint fingerprint_of(struct house *house, const char *text)
{
    struct json json;
    struct why why;
    struct fingerprint fingerprint;
    struct fingerprint_options options = {.pepper = engine_pepper(house->engine)};
    CHECK(json_parse(bytes_of(text), NULL, &house->arena, &json, &why) == OK);
    CHECK(fingerprint_make(&json, &options, &house->arena, &fingerprint, &why) == OK);
    return fingerprint;
}

TEST_BOTH(the_second_claim_gets_the_first_ones_result_byte_for_byte)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = house_claim("k"), second = house_claim("k");
    claim(&house, &first, VERDICT_PROCEED);
    CHECK_INT(first.answer.fence, 1);
    CHECK_INT(first.answer.state, STATE_SENT);
    claim(&house, &second, VERDICT_IN_PROGRESS);
    CHECK(second.answer.lease_left_us > 0);
    struct engine_command confirm = house_say(OP_CONFIRM, &first);
    confirm.ledger.result = BYTES("{ \"b\" : 1.0,\n\"a\":[9007199254740993] }");
    house_run(&house, &confirm);
    CHECK_INT(confirm.answer.verdict, VERDICT_DONE);
    claim(&house, &second, VERDICT_REPLAY);
    CHECK_TEXT(second.answer.result, "{ \"b\" : 1.0,\n\"a\":[9007199254740993] }");
    house_reopen(&house);
    claim(&house, &second, VERDICT_REPLAY);
    CHECK_TEXT(second.answer.result, "{ \"b\" : 1.0,\n\"a\":[9007199254740993] }");
    house_close(&house);
}

TEST_BOTH(a_lapse_before_sent_goes_to_the_next_with_a_higher_fence)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = house_claim("k"), second = house_claim("k");
    first.ledger.two_phase = second.ledger.two_phase = true;
    claim(&house, &first, VERDICT_PROCEED);
    CHECK_INT(first.answer.state, STATE_CLAIMED);
    house_advance(&house, LEASE_OVER);
    claim(&house, &second, VERDICT_PROCEED);
    CHECK_INT(second.answer.fence, 2);
    say(&house, OP_SENT, &first, VERDICT_FENCED);
    say(&house, OP_CONFIRM, &first, VERDICT_FENCED);
    say(&house, OP_EXTEND, &first, VERDICT_FENCED);
    say(&house, OP_RELEASE, &first, VERDICT_FENCED);
    say(&house, OP_CONFIRM, &second, VERDICT_DONE);
    house_close(&house);
}

static struct engine_command nonce_claim(const char *key, const char *nonce)
{
    struct engine_command command = house_claim(key);
    command.ledger.two_phase = true;
    command.ledger.nonce = bytes_of(nonce);
    return command;
}

TEST_BOTH(a_claim_sent_again_with_its_nonce_is_given_the_same_fence)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = nonce_claim("k", "mine"), again = nonce_claim("k", "mine"), other = nonce_claim("k", "theirs"),
                          none = house_claim("k");
    first.ledger.lease_us = again.ledger.lease_us =
        WHEN_HOUR; /* it does not end before the last look, however slow the machine is */
    claim(&house, &first, VERDICT_PROCEED);
    CHECK(!first.answer.again);
    CHECK(first.answer.two_phase);
    CHECK_INT(first.answer.lease_left_us, WHEN_HOUR);
    house_advance(&house, HOUSE_LEASE_US / 2);
    claim(&house, &again, VERDICT_PROCEED);
    CHECK(again.answer.again);
    CHECK_INT(again.answer.fence, first.answer.fence);
    CHECK_INT(again.answer.intent, first.answer.intent);
    CHECK(strcmp(again.answer.downstream, first.answer.downstream) == 0);
    CHECK(again.answer.lease_left_us <= WHEN_HOUR - HOUSE_LEASE_US / 2); /* the lease is not made longer */
    claim(&house, &other, VERDICT_IN_PROGRESS);
    claim(&house, &none, VERDICT_IN_PROGRESS);
    house_reopen(&house);
    claim(&house, &again, VERDICT_PROCEED);
    CHECK_INT(again.answer.fence, first.answer.fence);
    struct engine_command contents = nonce_claim("k", "mine");
    contents.ledger.fingerprint = fingerprint_of(&house, "{\"a\":1}");
    claim(&house, &contents, VERDICT_KEY_REUSED);
    CHECK_INT(house_intent(&house, first.answer.intent).attempts, 1);
    house_close(&house);
}

TEST_BOTH(a_nonce_is_over_with_the_next_move)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command sent = nonce_claim("sent", "mine"), extended = nonce_claim("extended", "mine"),
                          lapsed = nonce_claim("lapsed", "mine"), released = nonce_claim("released", "mine");
    struct engine_command *claims[] = {&sent, &extended, &lapsed, &released};
    extended.ledger.lease_us = released.ledger.lease_us = WHEN_HOUR;
    for (size_t i = 0; i < 4; i++)
        claim(&house, claims[i], VERDICT_PROCEED);
    say(&house, OP_SENT, &sent, VERDICT_DONE);
    say(&house, OP_EXTEND, &extended, VERDICT_DONE);
    say(&house, OP_RELEASE, &released, VERDICT_DONE);
    claim(&house, &sent, VERDICT_IN_PROGRESS);
    claim(&house, &extended, VERDICT_IN_PROGRESS);
    claim(&house, &released, VERDICT_PROCEED);
    CHECK_INT(released.answer.fence, 2);
    house_advance(&house, LEASE_OVER);
    claim(&house, &lapsed, VERDICT_PROCEED);
    CHECK_INT(lapsed.answer.fence, 2);
    claim(&house, &sent, VERDICT_OUTCOME_UNKNOWN);
    house_close(&house);
}

TEST_BOTH(a_lapse_after_sent_is_unknown_and_nobody_else_proceeds)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = house_claim("k"), second = house_claim("k");
    first.ledger.two_phase = true;
    claim(&house, &first, VERDICT_PROCEED);
    say(&house, OP_SENT, &first, VERDICT_DONE);
    house_advance(&house, LEASE_OVER);
    for (int i = 0; i < 3; i++)
        claim(&house, &second, VERDICT_OUTCOME_UNKNOWN);
    house_reopen(&house);
    claim(&house, &second, VERDICT_OUTCOME_UNKNOWN);
    CHECK_INT(house_intent(&house, first.answer.intent).expires, 0);
    say(&house, OP_CONFIRM, &first, VERDICT_DONE); /* the holder comes back, still with the current fence */
    claim(&house, &second, VERDICT_REPLAY);
    house_close(&house);
}

TEST_BOTH(a_claim_without_two_phases_counts_as_sent)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = house_claim("k"), second = house_claim("k");
    claim(&house, &first, VERDICT_PROCEED);
    house_advance(&house, LEASE_OVER);
    claim(&house, &second, VERDICT_OUTCOME_UNKNOWN);
    fail(&house, &first, false, false); /* someone found out that it did not happen */
    claim(&house, &second, VERDICT_PROCEED);
    CHECK_INT(second.answer.fence, 2);
    house_close(&house);
}

TEST_BOTH(on_unknown_retry_gives_it_out_again_and_says_so_in_the_audit)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = house_claim("k"), second = house_claim("k");
    first.ledger.on_unknown = second.ledger.on_unknown = ON_UNKNOWN_RETRY;
    claim(&house, &first, VERDICT_PROCEED);
    house_advance(&house, LEASE_OVER);
    claim(&house, &second, VERDICT_PROCEED);
    CHECK_INT(second.answer.fence, 2);
    CHECK_INT(house_intent(&house, first.answer.intent).ambiguous, AMBIGUOUS_EARLIER);
    house_close(&house);
}

TEST_BOTH(on_unknown_skip_stays_unknown_but_expires)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = house_claim("k"), second = house_claim("k");
    first.ledger.on_unknown = ON_UNKNOWN_SKIP;
    claim(&house, &first, VERDICT_PROCEED);
    house_advance(&house, LEASE_OVER);
    claim(&house, &second, VERDICT_OUTCOME_UNKNOWN);
    CHECK(house_intent(&house, first.answer.intent).expires > 0);
    house_close(&house);
}

/* The destination forgets our key after its window: at two thirds of it a retry is no longer safe. */
TEST(a_deduplicating_destination_is_retried_only_within_two_thirds_of_its_window)
{
    struct house house;
    house_open(&house, HOUSE_SQLITE);
    struct engine_command command = house_claim("k");
    command.ledger.capability = CAPABILITY_IDEMPOTENT;
    command.ledger.window_us = 3 * WHEN_HOUR;
    claim(&house, &command, VERDICT_PROCEED);
    house_advance(&house, WHEN_HOUR);
    claim(&house, &command, VERDICT_PROCEED);
    CHECK_INT(command.answer.fence, 2);
    house_advance(&house, WHEN_HOUR - WHEN_SECOND);
    claim(&house, &command, VERDICT_PROCEED);
    house_advance(&house, 2 * WHEN_SECOND); /* two hours and a second after the first send */
    claim(&house, &command, VERDICT_OUTCOME_UNKNOWN);
    house_close(&house);
}

TEST(heartbeats_do_not_carry_a_repetition_past_the_destinations_window)
{
    struct house house;
    house_open(&house, HOUSE_SQLITE);
    struct engine_command command = house_claim("k");
    command.ledger.capability = CAPABILITY_IDEMPOTENT;
    command.ledger.window_us = 3 * WHEN_HOUR;
    claim(&house, &command, VERDICT_PROCEED);
    house_advance(&house, LEASE_OVER);
    command.ledger.lease_us = 24 * WHEN_HOUR; /* is cut to a third of the window */
    claim(&house, &command, VERDICT_PROCEED);
    CHECK_INT(house_intent(&house, command.answer.intent).lease_us, WHEN_HOUR);
    house_advance(&house, 59 * WHEN_MINUTE);
    say(&house, OP_EXTEND, &command, VERDICT_DONE);
    house_advance(&house, 59 * WHEN_MINUTE);
    say(&house, OP_EXTEND, &command, VERDICT_DONE);
    house_advance(&house, 10 * WHEN_MINUTE); /* 2 h 8 min after the first send */
    say(&house, OP_EXTEND, &command, VERDICT_FENCED);
    house_advance(&house, WHEN_HOUR);
    claim(&house, &command, VERDICT_OUTCOME_UNKNOWN);
    house_close(&house);
}

TEST(new_rules_do_not_allow_a_repetition_that_the_old_ones_made_harmless)
{
    struct house house;
    house_open(&house, HOUSE_SQLITE);
    struct engine_command first = house_claim("k"), second = house_claim("k");
    first.ledger.capability = CAPABILITY_IDEMPOTENT;
    claim(&house, &first, VERDICT_PROCEED);
    house_advance(&house, LEASE_OVER);
    claim(&house, &second, VERDICT_OUTCOME_UNKNOWN); /* meanwhile the policy says: the destination remembers nothing */
    house_close(&house);
}

TEST(the_retry_horizon_counts_by_the_longer_of_two_clocks)
{
    struct house house;
    house_open(&house, HOUSE_SQLITE);
    struct engine_command command = house_claim("k");
    command.ledger.capability = CAPABILITY_IDEMPOTENT;
    command.ledger.window_us = 3 * WHEN_HOUR;
    claim(&house, &command, VERDICT_PROCEED);
    house_advance(&house, LEASE_OVER);
    house.wall_us += 2 * WHEN_HOUR; /* the wall clock jumps; perhaps it is right */
    claim(&house, &command, VERDICT_OUTCOME_UNKNOWN);
    house_close(&house);
}

TEST(a_jump_of_the_wall_clock_ends_no_lease)
{
    struct house house;
    house_open(&house, HOUSE_SQLITE);
    struct engine_command first = house_claim("k"), second = house_claim("k");
    claim(&house, &first, VERDICT_PROCEED);
    house.wall_us += 10 * 365 * WHEN_DAY;
    claim(&house, &second, VERDICT_IN_PROGRESS);
    house.wall_us -= 20 * 365 * WHEN_DAY;
    claim(&house, &second, VERDICT_IN_PROGRESS);
    house_close(&house);
}

TEST(a_jump_of_the_wall_clock_forgets_no_key)
{
    struct house house;
    house_open(&house, HOUSE_SQLITE);
    struct engine_command first = house_claim("k");
    claim(&house, &first, VERDICT_PROCEED);
    say(&house, OP_CONFIRM, &first, VERDICT_DONE);
    house.wall_us += 3650 * WHEN_DAY;
    house.boot_us += 11 * WHEN_SECOND; /* the sweep for expired intents runs */
    engine_step(house.engine, NULL);
    claim(&house, &first, VERDICT_REPLAY);
    house_close(&house);
}

TEST(leases_pause_while_the_daemon_is_down)
{
    struct house house;
    house_open(&house, HOUSE_SQLITE);
    struct engine_command first = house_claim("k"), second = house_claim("k");
    claim(&house, &first, VERDICT_PROCEED);
    house_reopen(&house);
    claim(&house, &second, VERDICT_IN_PROGRESS);
    house_close(&house);
}

TEST_BOTH(the_same_key_with_other_contents_is_refused_and_names_the_fields)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = house_claim("k"), second = house_claim("k");
    first.ledger.fingerprint = fingerprint_of(&house, "{\"to\":\"a\",\"subject\":\"hi\",\"n\":1}");
    second.ledger.fingerprint = fingerprint_of(&house, "{\"to\":\"a\",\"subject\":\"ho\",\"extra\":null}");
    claim(&house, &first, VERDICT_PROCEED);
    claim(&house, &second, VERDICT_KEY_REUSED);
    CHECK_INT(second.answer.differs_count, 3);
    CHECK_TEXT(second.answer.differs[0], "extra");
    CHECK_TEXT(second.answer.differs[1], "n");
    CHECK_TEXT(second.answer.differs[2], "subject");
    say(&house, OP_CONFIRM, &first, VERDICT_DONE);
    claim(&house, &second, VERDICT_KEY_REUSED);
    second.ledger.fingerprint = fingerprint_of(&house, "{\"n\":1.0,\"subject\":\"hi\",\"to\":\"a\"}");
    claim(&house, &second, VERDICT_REPLAY);
    house_close(&house);
}

TEST_BOTH(confirm_is_idempotent_and_the_first_result_stays)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = house_claim("k");
    claim(&house, &first, VERDICT_PROCEED);
    CHECK(!say(&house, OP_CONFIRM, &first, VERDICT_DONE).answer.again);
    CHECK(say(&house, OP_CONFIRM, &first, VERDICT_DONE).answer.again);
    struct engine_command other = house_say(OP_CONFIRM, &first);
    other.ledger.result = BYTES("{\"ok\":false}");
    house_run(&house, &other);
    CHECK_INT(other.answer.verdict, VERDICT_DIFFERS);
    claim(&house, &first, VERDICT_REPLAY);
    CHECK_TEXT(first.answer.result, "{\"ok\":true}");
    house_close(&house);
}

TEST_BOTH(fail_without_effect_frees_it_and_final_refuses_it_for_good)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command command = house_claim("k");
    claim(&house, &command, VERDICT_PROCEED);
    CHECK_INT(fail(&house, &command, false, false).answer.state, STATE_PENDING);
    claim(&house, &command, VERDICT_PROCEED);
    CHECK_INT(command.answer.fence, 2);
    CHECK_INT(fail(&house, &command, false, true).answer.state, STATE_REFUSED);
    CHECK(fail(&house, &command, false, true).answer.again);
    claim(&house, &command, VERDICT_REFUSED);
    CHECK_TEXT(command.answer.error, "boom");
    house_close(&house);
}

TEST_BOTH(fail_with_unknown_effect_is_held)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command command = house_claim("k");
    claim(&house, &command, VERDICT_PROCEED);
    CHECK_INT(fail(&house, &command, true, false).answer.state, STATE_UNKNOWN);
    CHECK(fail(&house, &command, true, true).answer.again);
    claim(&house, &command, VERDICT_OUTCOME_UNKNOWN);
    house_close(&house);
}

TEST_BOTH(a_final_failure_does_not_deny_an_earlier_attempt_that_may_have_happened)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command command = house_claim("k");
    command.ledger.on_unknown = ON_UNKNOWN_RETRY;
    claim(&house, &command, VERDICT_PROCEED);
    house_advance(&house, LEASE_OVER);
    claim(&house, &command, VERDICT_PROCEED);
    CHECK_INT(fail(&house, &command, false, true).answer.state, STATE_UNKNOWN);
    /* The same said again, because its answer was lost, settles nothing either. */
    CHECK_INT(fail(&house, &command, false, true).answer.state, STATE_UNKNOWN);
    CHECK_INT(fail(&house, &command, false, false).answer.state, STATE_UNKNOWN);
    struct engine_command person = house_say(OP_FAIL, &command);
    person.ledger.all_attempts = true; /* someone has looked: none of them happened */
    house_run(&house, &person);
    CHECK_INT(person.answer.state, STATE_PENDING);
    house_close(&house);
}

TEST_BOTH(what_was_sent_cannot_be_released)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command command = house_claim("k"), other = house_claim("other");
    command.ledger.two_phase = true;
    claim(&house, &command, VERDICT_PROCEED);
    say(&house, OP_SENT, &command, VERDICT_DONE);
    CHECK(say(&house, OP_SENT, &command, VERDICT_DONE).answer.again);
    say(&house, OP_RELEASE, &command, VERDICT_ALREADY_SENT);
    claim(&house, &other, VERDICT_PROCEED); /* one phase: the holder may still say that it did nothing */
    CHECK_INT(say(&house, OP_RELEASE, &other, VERDICT_DONE).answer.state, STATE_PENDING);
    claim(&house, &other, VERDICT_PROCEED);
    CHECK_INT(other.answer.fence, 2);
    house_close(&house);
}

TEST_BOTH(extend_keeps_the_lease_and_a_lapsed_one_cannot_be_extended)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command command = house_claim("k"), other = house_claim("k");
    claim(&house, &command, VERDICT_PROCEED);
    for (int i = 0; i < 3; i++) {
        house_advance(&house, HOUSE_LEASE_US / 2);
        struct engine_command extend = house_say(OP_EXTEND, &command);
        extend.ledger.lease_us = HOUSE_LEASE_US + WHEN_MS;
        house_run(&house, &extend);
        CHECK_INT(extend.answer.verdict, VERDICT_DONE);
    }
    claim(&house, &other, VERDICT_IN_PROGRESS);
    house_advance(&house, LEASE_OVER);
    say(&house, OP_EXTEND, &command, VERDICT_FENCED);
    claim(&house, &other, VERDICT_OUTCOME_UNKNOWN);
    house_close(&house);
}

TEST_BOTH(attempts_are_bounded)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command command = house_claim("k");
    command.ledger.attempts_max = 3;
    for (int i = 0; i < 3; i++) {
        claim(&house, &command, VERDICT_PROCEED);
        fail(&house, &command, false, false);
    }
    claim(&house, &command, VERDICT_REFUSED);
    house_close(&house);
}

TEST(settled_intents_expire_to_a_tombstone_and_open_ones_never)
{
    struct house house;
    house_open(&house, HOUSE_SQLITE);
    struct engine_command done = house_claim("done"), held = house_claim("held"), open = house_claim("open");
    done.ledger.keep_us = held.ledger.keep_us = open.ledger.keep_us = WHEN_MINUTE;
    claim(&house, &done, VERDICT_PROCEED);
    claim(&house, &held, VERDICT_PROCEED);
    open.ledger.lease_us = 1000 * WHEN_DAY;
    claim(&house, &open, VERDICT_PROCEED);
    say(&house, OP_CONFIRM, &done, VERDICT_DONE);
    house_advance(&house, 2 * WHEN_MINUTE);
    engine_step(house.engine, NULL);
    claim(&house, &done, VERDICT_EXPIRED);
    CHECK_INT(done.answer.state, STATE_CONFIRMED);
    claim(&house, &held, VERDICT_OUTCOME_UNKNOWN);
    claim(&house, &open, VERDICT_IN_PROGRESS);
    house_advance(&house, 399 * WHEN_DAY);
    engine_step(house.engine, NULL);
    claim(&house, &done, VERDICT_EXPIRED);
    claim(&house, &held, VERDICT_OUTCOME_UNKNOWN);
    house_advance(&house, 2 * WHEN_DAY);
    engine_step(house.engine, NULL);
    claim(&house, &done, VERDICT_PROCEED); /* forgotten at last */
    house_close(&house);
}

TEST_BOTH(shadow_lets_everything_through_and_says_what_would_have_happened)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = house_claim("k"), second = house_claim("k");
    first.ledger.shadow = second.ledger.shadow = true;
    claim(&house, &first, VERDICT_PROCEED);
    CHECK(!first.answer.shadow);
    claim(&house, &second, VERDICT_PROCEED);
    CHECK(second.answer.shadow);
    CHECK_INT(second.answer.would, VERDICT_IN_PROGRESS);
    struct engine_command early = say(&house, OP_CONFIRM, &second, VERDICT_DONE);
    CHECK_INT(early.answer.would, VERDICT_FENCED);
    CHECK_INT(house_intent(&house, first.answer.intent).state, STATE_SENT); /* the duplicate settles nothing */
    CHECK_INT(say(&house, OP_CONFIRM, &first, VERDICT_DONE).answer.would, VERDICT_DONE);
    claim(&house, &second, VERDICT_PROCEED);
    CHECK_INT(second.answer.would, VERDICT_REPLAY);
    house_close(&house);
}

TEST_BOTH(a_workflow_can_be_put_into_shadow_while_a_claim_is_held)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command first = house_claim("k"), second = house_claim("k");
    claim(&house, &first, VERDICT_PROCEED);
    second.ledger.shadow = true;
    claim(&house, &second, VERDICT_PROCEED);
    CHECK_INT(second.answer.fence, 0);
    say(&house, OP_CONFIRM, &second, VERDICT_DONE);
    CHECK_INT(house_intent(&house, first.answer.intent).state, STATE_SENT);
    say(&house, OP_CONFIRM, &first, VERDICT_DONE);
    house_close(&house);
}

TEST_BOTH(spaces_do_not_see_each_other)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command ours = house_claim("k"), theirs = house_claim("k");
    theirs.ledger.space = BYTES("other");
    claim(&house, &ours, VERDICT_PROCEED);
    claim(&house, &theirs, VERDICT_PROCEED);
    struct engine_command meddle = house_say(OP_CONFIRM, &ours);
    meddle.ledger.space = BYTES("other");
    house_run(&house, &meddle);
    CHECK_INT(meddle.answer.verdict, VERDICT_NOT_FOUND);
    house_close(&house);
}

/* ---- after a fail-over that may have lost something ---- */

static void put_meta(struct house *house, const char *name, const char *value)
{
    struct q_meta_put put = {bytes_of(name), bytes_of(value)};
    struct why why;
    struct store *store = engine_store(house->engine);
    CHECK(store_begin(store, &why) == OK);
    CHECK(store_run(store, &META_PUT, &put, 1, NULL, NULL, NULL, &why) == OK);
    CHECK(store_commit(store, &why) == OK);
}

static void refresh(struct house *house)
{
    house->boot_us += WHEN_SECOND;
    engine_step(house->engine, NULL);
}

TEST_BOTH(in_quarantine_nothing_is_given_out_that_may_have_been_done_before)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command pending = house_claim("pending"), claimed = house_claim("claimed"), done = house_claim("done");
    struct engine_command fresh = house_claim("fresh"), safe = house_claim("safe");
    claim(&house, &pending, VERDICT_PROCEED);
    fail(&house, &pending, false, false);
    claimed.ledger.two_phase = true;
    claim(&house, &claimed, VERDICT_PROCEED);
    claim(&house, &done, VERDICT_PROCEED);
    say(&house, OP_CONFIRM, &done, VERDICT_DONE);
    struct engine_command sent = house_claim("sent"), given_back = house_claim("back"), failed = house_claim("failed");
    struct engine_command confirmed = house_claim("confirmed"), *const held[] = {&sent, &given_back, &failed, &confirmed};
    for (int i = 0; i < 4; i++) {
        held[i]->ledger.two_phase = true;
        held[i]->ledger.lease_us = 1000 * WHEN_SECOND;
        claim(&house, held[i], VERDICT_PROCEED);
    }
    put_meta(&house, "epoch", "2");
    put_meta(&house, "quarantine", "a test");
    house_advance(&house, LEASE_OVER);
    refresh(&house);
    claim(&house, &pending, VERDICT_OUTCOME_UNKNOWN);
    claim(&house, &claimed, VERDICT_OUTCOME_UNKNOWN); /* that it was not sent may just have been forgotten */
    claim(&house, &done, VERDICT_REPLAY);
    say(&house, OP_SENT, &sent, VERDICT_FENCED); /* another may have had it since, done it, and been forgotten */
    CHECK_INT(say(&house, OP_RELEASE, &given_back, VERDICT_DONE).answer.state, STATE_UNKNOWN);
    CHECK_INT(fail(&house, &failed, false, false).answer.state, STATE_UNKNOWN);
    CHECK_INT(say(&house, OP_CONFIRM, &confirmed, VERDICT_DONE).answer.state, STATE_CONFIRMED);
    claim(&house, &fresh, VERDICT_OUTCOME_UNKNOWN);
    claim(&house, &fresh, VERDICT_OUTCOME_UNKNOWN);
    safe.ledger.capability = CAPABILITY_IDEMPOTENT;
    claim(&house, &safe, VERDICT_PROCEED);
    struct engine_command person = house_say(OP_FAIL, &fresh);
    person.ledger.all_attempts = true;
    house_run(&house, &person);
    CHECK_INT(person.answer.state, STATE_PENDING);
    claim(&house, &fresh, VERDICT_PROCEED); /* settled since the loss */
    put_meta(&house, "quarantine", "");
    refresh(&house);
    struct engine_command next = house_claim("next");
    claim(&house, &next, VERDICT_PROCEED);
    house_close(&house);
}

/* ---- the log is the truth ---- */

struct rebuilt {
    struct row_intent intents[64];
    size_t count;
    struct arena *arena;
    int64_t last_id;
};

static enum status fold(void *ctx, const void *at, struct why *why)
{
    struct rebuilt *rebuilt = ctx;
    const struct row_decision *row = at;
    bool transition = false;
    for (size_t i = 0; ledger_op_names[i] != NULL; i++)
        transition = transition || bytes_is(row->kind, ledger_op_names[i]);
    if (!transition || row->intent == 0)
        return OK;
    struct row_intent *intent = NULL;
    for (size_t i = 0; i < rebuilt->count && intent == NULL; i++)
        if (rebuilt->intents[i].id == row->intent)
            intent = &rebuilt->intents[i];
    if (intent == NULL)
        intent = &rebuilt->intents[rebuilt->count++];
    struct row_decision copy = *row;
    copy.detail = arena_dup(rebuilt->arena, row->detail);
    return intent_fold(intent, &copy, rebuilt->arena, why);
}

static void check_same_row(const struct row_intent *got, const struct row_intent *want)
{
    for (size_t i = 0; i < INTENT_ADD.param_count; i++) {
        const struct query_column *column = &INTENT_ADD.params[i];
        const char *a = (const char *)got + column->offset, *b = (const char *)want + column->offset;
        bool same = column->type == COLUMN_INT ? *(const int64_t *)a == *(const int64_t *)b
                                               : bytes_eq(*(const struct bytes *)a, *(const struct bytes *)b);
        if (!same)
            check_fail(__FILE__, __LINE__, "column %s differs", column->name);
    }
}

TEST_BOTH(the_audit_alone_rebuilds_every_intent)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command commands[8];
    for (int i = 0; i < 8; i++) {
        char key[2] = {(char)('a' + i), '\0'};
        commands[i] = house_claim(arena_dup(&house.arena, bytes_of(key)).at);
        commands[i].ledger.two_phase = i % 2 == 0;
        commands[i].ledger.on_unknown = i % 3 == 0 ? ON_UNKNOWN_RETRY : ON_UNKNOWN_HOLD;
        commands[i].ledger.fingerprint = fingerprint_of(&house, i % 2 == 0 ? "{\"a\":\"x\"}" : "[1]");
        commands[i].ledger.run = i % 2 == 0 ? BYTES("run-1") : BYTES_NONE;
        commands[i].ledger.nonce = i % 2 == 0 ? BYTES("nonce") : BYTES_NONE;
        claim(&house, &commands[i], VERDICT_PROCEED);
    }
    say(&house, OP_SENT, &commands[0], VERDICT_DONE);
    say(&house, OP_CONFIRM, &commands[1], VERDICT_DONE);
    fail(&house, &commands[2], false, true);
    fail(&house, &commands[3], true, false);
    say(&house, OP_RELEASE, &commands[4], VERDICT_DONE);
    house_advance(&house, LEASE_OVER);
    for (int i = 0; i < 8; i++)
        house_run(&house, &commands[i]);
    struct rebuilt *rebuilt = arena_zalloc(&house.arena, 1, sizeof *rebuilt);
    rebuilt->arena = &house.arena;
    struct q_decision_list_intent all = {BYTES("main"), 0, 0, 1000};
    struct why why;
    for (int i = 0; i < 8; i++) {
        all.intent = commands[i].answer.intent;
        CHECK(store_run(engine_store(house.engine), &DECISION_LIST_INTENT, &all, 1, fold, rebuilt, NULL, &why) == OK);
    }
    CHECK_INT(rebuilt->count, 8);
    for (int i = 0; i < 8; i++) {
        struct row_intent stored = house_intent(&house, rebuilt->intents[i].id);
        check_same_row(&rebuilt->intents[i], &stored);
    }
    house_close(&house);
}
