#include "engine/engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/when.h"
#include "check.h"
#include "house.h"

#define MANY 200

static void count_done(struct engine_command *command)
{
    ++*(int *)command->user;
}

static void prepare(struct house *house, struct engine_command *command, int *answered)
{
    if (command->ledger.op == OP_CLAIM)
        ledger_key_hash(engine_pepper(house->engine), command->ledger.space, command->ledger.workflow, command->ledger.key,
                        command->ledger.h);
    command->arena = &house->arena;
    command->user = answered;
    command->done = count_done;
    command->next = NULL;
}

static struct engine_command *chain(struct engine_command *commands, size_t count)
{
    for (size_t i = 0; i + 1 < count; i++)
        commands[i].next = &commands[i + 1];
    commands[count - 1].next = NULL;
    return commands;
}

static uint64_t commits(const struct house *house)
{
    return engine_counts(house->engine)->commits;
}

TEST_BOTH(many_commands_share_one_commit)
{
    struct house house;
    house_open(&house, storage);
    static struct engine_command commands[MANY];
    static char keys[MANY][8];
    int answered = 0;
    for (int i = 0; i < MANY; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i / 2); /* each key twice */
        commands[i] = house_claim(keys[i]);
        prepare(&house, &commands[i], &answered);
    }
    uint64_t before = commits(&house);
    engine_step(house.engine, chain(commands, MANY));
    CHECK_INT(answered, MANY);
    CHECK_INT(commits(&house) - before, 1);
    for (int i = 0; i < MANY; i++)
        CHECK_INT(commands[i].answer.verdict, i % 2 == 0 ? VERDICT_PROCEED : VERDICT_IN_PROGRESS);
    house_close(&house);
}

static void forget_result(struct engine_command *command)
{
    memset((char *)(uintptr_t)command->ledger.result.at, '#', command->ledger.result.len);
    count_done(command);
}

TEST_BOTH(an_answer_outlives_the_command_that_it_was_made_of)
{
    struct house house;
    house_open(&house, storage);
    char result[] = "{\"a\":1}";
    struct engine_command first = house_claim("k"), both[2];
    int answered = 0;
    house_run(&house, &first);
    both[0] = house_say(OP_CONFIRM, &first);
    both[0].ledger.result = bytes_of(result);
    both[1] = house_claim("k");
    prepare(&house, &both[0], &answered);
    prepare(&house, &both[1], &answered);
    both[0].done = forget_result; /* whoever confirmed is answered first, and its memory is used for something else */
    engine_step(house.engine, chain(both, 2));
    CHECK_INT(answered, 2);
    CHECK_INT(both[1].answer.verdict, VERDICT_REPLAY);
    CHECK_TEXT(both[1].answer.result, "{\"a\":1}");
    house_close(&house);
}

TEST_BOTH(replays_cost_no_commit)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command command = house_claim("k");
    house_run(&house, &command);
    struct engine_command confirm = house_say(OP_CONFIRM, &command);
    house_run(&house, &confirm);
    uint64_t before = commits(&house);
    for (int i = 0; i < 10; i++)
        house_run(&house, &command);
    CHECK_INT(command.answer.verdict, VERDICT_REPLAY);
    CHECK_INT(commits(&house), before);
    house.boot_us += 2 * WHEN_SECOND; /* their count is written a moment later */
    engine_step(house.engine, NULL);
    CHECK_INT(commits(&house), before + 1);
    house_close(&house);
}

static enum status sum_replays(void *ctx, const void *row, struct why *why)
{
    (void)why;
    const struct row_decision *decision = row;
    if (bytes_is(decision->kind, "replay"))
        *(int64_t *)ctx += decision->count;
    return OK;
}

TEST_BOTH(every_suppressed_duplicate_is_counted_in_the_audit)
{
    struct house house;
    house_open(&house, storage);
    struct engine_command command = house_claim("k");
    house_run(&house, &command);
    struct engine_command confirm = house_say(OP_CONFIRM, &command);
    house_run(&house, &confirm);
    for (int i = 0; i < 37; i++)
        house_run(&house, &command);
    house_reopen(&house); /* a clean stop writes what is left */
    engine_step(house.engine, NULL);
    int64_t count = 0;
    struct q_decision_list_intent list = {BYTES("main"), command.answer.intent, 0, 1000};
    struct why why;
    CHECK(store_run(engine_store(house.engine), &DECISION_LIST_INTENT, &list, 1, sum_replays, &count, NULL, &why) == OK);
    CHECK_INT(count, 37);
    house_close(&house);
}

TEST_BOTH(a_waiting_claim_gets_the_result_as_soon_as_it_is_there)
{
    struct house house;
    house_open(&house, storage);
    int answered = 0;
    struct engine_command holder = house_claim("k"), waiter = house_claim("k");
    holder.ledger.lease_us = waiter.ledger.lease_us = 60 * WHEN_SECOND;
    house_run(&house, &holder);
    waiter.wait_us = 30 * WHEN_SECOND;
    prepare(&house, &waiter, &answered);
    engine_step(house.engine, &waiter);
    CHECK_INT(answered, 0);
    struct engine_command confirm = house_say(OP_CONFIRM, &holder);
    house_run(&house, &confirm);
    CHECK_INT(answered, 1);
    CHECK_INT(waiter.answer.verdict, VERDICT_REPLAY);
    CHECK_TEXT(waiter.answer.result, "{\"ok\":true}");
    house_close(&house);
}

TEST_BOTH(a_waiting_claim_takes_over_what_is_released)
{
    struct house house;
    house_open(&house, storage);
    int answered = 0;
    struct engine_command holder = house_claim("k"), waiters[3];
    holder.ledger.lease_us = 60 * WHEN_SECOND;
    house_run(&house, &holder);
    for (int i = 0; i < 3; i++) {
        waiters[i] = house_claim("k");
        waiters[i].wait_us = 30 * WHEN_SECOND;
        waiters[i].ledger.lease_us = 60 * WHEN_SECOND;
        prepare(&house, &waiters[i], &answered);
    }
    engine_step(house.engine, chain(waiters, 3));
    struct engine_command release = house_say(OP_RELEASE, &holder);
    house_run(&house, &release);
    CHECK_INT(answered, 1); /* exactly one proceeds, the others wait on */
    house.boot_us += 31 * WHEN_SECOND;
    engine_step(house.engine, NULL);
    CHECK_INT(answered, 3);
    int proceeds = 0;
    for (int i = 0; i < 3; i++)
        proceeds += waiters[i].answer.verdict == VERDICT_PROCEED;
    CHECK_INT(proceeds, 1);
    house_close(&house);
}

/* The claim is decided first, then the confirm, in one batch: the waiter must not sleep on something that is already settled. */
TEST_BOTH(a_claim_does_not_wait_for_a_holder_that_confirms_in_the_same_batch)
{
    struct house house;
    house_open(&house, storage);
    int answered = 0;
    struct engine_command holder = house_claim("k"), batch[2];
    holder.ledger.lease_us = 60 * WHEN_SECOND;
    house_run(&house, &holder);
    batch[0] = house_claim("k");
    batch[0].wait_us = 30 * WHEN_SECOND;
    batch[1] = house_say(OP_CONFIRM, &holder);
    prepare(&house, &batch[0], &answered);
    prepare(&house, &batch[1], &answered);
    engine_step(house.engine, chain(batch, 2));
    if (house.postgres_url != NULL && answered < 2) { /* the plain look came first there; it looks again soon */
        house.boot_us += 30 * WHEN_MS;
        engine_step(house.engine, NULL);
    }
    CHECK_INT(answered, 2);
    CHECK_INT(batch[0].answer.verdict, VERDICT_REPLAY);
    house_close(&house);
}

TEST_BOTH(nobody_waits_longer_than_asked_or_once_gone)
{
    struct house house;
    house_open(&house, storage);
    int answered = 0;
    atomic_bool gone = false;
    struct engine_command holder = house_claim("k"), waiter = house_claim("k"), left = house_claim("k");
    holder.ledger.lease_us = 600 * WHEN_SECOND;
    house_run(&house, &holder);
    waiter.wait_us = left.wait_us = 2 * WHEN_SECOND;
    left.gone = &gone;
    prepare(&house, &waiter, &answered);
    prepare(&house, &left, &answered);
    engine_step(house.engine, &waiter);
    engine_step(house.engine, &left);
    CHECK_INT(answered, 0);
    gone = true;
    house.boot_us += 3 * WHEN_SECOND;
    engine_step(house.engine, NULL);
    CHECK_INT(answered, 2);
    CHECK_INT(waiter.answer.verdict, VERDICT_IN_PROGRESS);
    house_close(&house);
}

/* ---- another node on the same PostgreSQL ---- */

static struct engine *open_node(struct house *house)
{
    struct engine_config config = {.env = &house->env, .postgres_url = house->postgres_url};
    struct engine *engine = NULL;
    struct why why = {""};
    if (engine_open(&config, &engine, &why) != OK)
        check_fail(__FILE__, __LINE__, "%s", why.text);
    return engine;
}

static void run_on(struct engine *node, struct house *house, struct engine_command *command)
{
    int answered = 0;
    prepare(house, command, &answered);
    engine_step(node, command);
    CHECK_INT(answered, 1);
}

static void check_chain(struct house *house)
{
    struct audit_verified verified;
    struct why why;
    CHECK(audit_verify(engine_store(house->engine), &verified, &why) == OK);
    CHECK_INT(verified.bad_id, 0);
}

/* A node decides on what it remembers of its own claims; what another node has done since must not be lost by that. */
TEST(what_another_node_has_confirmed_meanwhile_is_not_overwritten)
{
    struct house house;
    house_open(&house, HOUSE_POSTGRES);
    struct engine *other = open_node(&house);
    struct engine_command claim = house_claim("k"), first, second;
    claim.ledger.lease_us = WHEN_HOUR;
    house_run(&house, &claim);
    first = second = house_say(OP_CONFIRM, &claim);
    first.ledger.result = BYTES("{\"by\":\"other\"}");
    run_on(other, &house, &first);
    CHECK_INT(first.answer.verdict, VERDICT_DONE);
    house_run(&house, &second);
    CHECK_INT(second.status, OK);
    CHECK_INT(second.answer.verdict, VERDICT_DIFFERS);
    struct engine_command again = house_claim("k");
    house_run(&house, &again);
    CHECK_INT(again.answer.verdict, VERDICT_REPLAY);
    CHECK_TEXT(again.answer.result, "{\"by\":\"other\"}");
    check_chain(&house);
    engine_close(other);
    house_close(&house);
}

/* It was given back and claimed anew elsewhere: the old holder is fenced. */
TEST(a_claim_that_another_node_has_given_on_is_fenced)
{
    struct house house;
    house_open(&house, HOUSE_POSTGRES);
    struct engine *other = open_node(&house);
    struct engine_command claim = house_claim("k"), release, taken = house_claim("k"), late;
    claim.ledger.lease_us = taken.ledger.lease_us = WHEN_HOUR;
    claim.ledger.two_phase = taken.ledger.two_phase = true;
    house_run(&house, &claim);
    release = house_say(OP_RELEASE, &claim);
    run_on(other, &house, &release);
    run_on(other, &house, &taken);
    CHECK_INT(taken.answer.fence, 2);
    late = house_say(OP_SENT, &claim);
    house_run(&house, &late);
    CHECK_INT(late.answer.verdict, VERDICT_FENCED);
    CHECK_INT(house_intent(&house, claim.answer.intent).state, STATE_CLAIMED);
    check_chain(&house);
    engine_close(other);
    house_close(&house);
}

TEST(a_key_that_another_node_has_claimed_or_buried_is_not_new)
{
    struct house house;
    house_open(&house, HOUSE_POSTGRES);
    struct engine *other = open_node(&house);
    struct engine_command held = house_claim("held"), held_too = house_claim("held"), old = house_claim("old"),
                          late = house_claim("old");
    held.ledger.lease_us = WHEN_HOUR;
    old.ledger.keep_us = 1000;
    run_on(other, &house, &held);
    run_on(other, &house, &old);
    struct engine_command confirm = house_say(OP_CONFIRM, &old);
    run_on(other, &house, &confirm);
    house_advance(&house, 11 * WHEN_SECOND / 1000);
    house.boot_us += 11 * WHEN_SECOND; /* the next sweep */
    engine_step(other, NULL);
    house.boot_us -= 11 * WHEN_SECOND;
    for (int i = 0; i < 2; i++) { /* first taken for new; then, after that was wrong, looked at */
        house_run(&house, &late);
        CHECK_INT(late.answer.verdict, VERDICT_EXPIRED);
    }
    house_run(&house, &held_too);
    CHECK_INT(held_too.answer.verdict, VERDICT_IN_PROGRESS);
    check_chain(&house);
    engine_close(other);
    house_close(&house);
}

/* In one batch, some guessed right and one wrong: it is decided anew as a whole, and each is done once. */
TEST(a_batch_with_one_wrong_guess_is_decided_anew_as_a_whole)
{
    struct house house;
    house_open(&house, HOUSE_POSTGRES);
    struct engine *other = open_node(&house);
    struct engine_command taken = house_claim("b");
    static struct engine_command commands[3];
    const char *keys[] = {"a", "b", "c"};
    int answered = 0;
    taken.ledger.lease_us = WHEN_HOUR;
    run_on(other, &house, &taken);
    for (int i = 0; i < 3; i++) {
        commands[i] = house_claim(keys[i]);
        prepare(&house, &commands[i], &answered);
    }
    engine_step(house.engine, chain(commands, 3));
    CHECK_INT(answered, 3);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(commands[i].answer.verdict, i == 1 ? VERDICT_IN_PROGRESS : VERDICT_PROCEED);
        CHECK_INT(commands[i].answer.fence, 1);
    }
    check_chain(&house);
    engine_close(other);
    house_close(&house);
}

/* ---- when the storage fails ---- */

TEST_BOTH(a_commit_whose_reply_was_lost_is_found_to_have_happened)
{
    struct house house;
    house_open(&house, storage);
    house.fault = (struct store_fault){.countdown = 1, .status = UNKNOWN, .after = true, .commit_only = true};
    struct engine_command command = house_claim("k");
    house_run(&house, &command);
    CHECK_INT(command.status, OK);
    CHECK_INT(command.answer.verdict, VERDICT_PROCEED);
    CHECK_INT(command.answer.fence, 1);
    house_run(&house, &command);
    CHECK_INT(command.answer.verdict, VERDICT_IN_PROGRESS);
    house_close(&house);
}

TEST_BOTH(a_commit_that_did_not_happen_acknowledges_nothing)
{
    struct house house;
    house_open(&house, storage);
    house.fault = (struct store_fault){.countdown = 1, .status = UNKNOWN, .commit_only = true};
    struct engine_command command = house_claim("k");
    house_run(&house, &command);
    if (storage == HOUSE_POSTGRES) { /* there the batch is decided anew */
        CHECK_INT(command.status, OK);
        CHECK_INT(command.answer.fence, 1);
    } else {
        CHECK_INT(command.status, RETRY);
        house.boot_us += 2 * WHEN_SECOND;
        engine_step(house.engine, NULL);
        house_run(&house, &command);
        CHECK_INT(command.answer.verdict, VERDICT_PROCEED);
        CHECK_INT(command.answer.fence, 1);
    }
    struct audit_verified verified;
    struct why why;
    CHECK(audit_verify(engine_store(house.engine), &verified, &why) == OK);
    CHECK_INT(verified.bad_id, 0);
    house_close(&house);
}

TEST(a_full_disk_refuses_claims_and_finishes_what_was_accepted)
{
    struct house house;
    house_open(&house, HOUSE_SQLITE);
    struct engine_command held = house_claim("held"), refused = house_claim("new");
    held.ledger.lease_us = WHEN_HOUR;
    house_run(&house, &held);
    house.fault = (struct store_fault){.countdown = 1, .status = FULL, .commit_only = true};
    house_run(&house, &refused);
    CHECK_INT(refused.status, FULL);
    CHECK(access("data/reserve", F_OK) != 0); /* released */
    CHECK_INT(engine_intake(house.engine, NULL), INTAKE_FINISHING);
    house_run(&house, &refused);
    CHECK_INT(refused.status, FULL);
    struct engine_command confirm = house_say(OP_CONFIRM, &held);
    house_run(&house, &confirm);
    CHECK_INT(confirm.status, OK);
    house.boot_us += 2 * WHEN_SECOND;
    engine_step(house.engine, NULL); /* there is room again */
    CHECK_INT(engine_intake(house.engine, NULL), INTAKE_OPEN);
    house_run(&house, &refused);
    CHECK_INT(refused.answer.verdict, VERDICT_PROCEED);
    house_close(&house);
}

/* SQLite's method: fail the 1st, 2nd, 3rd … operation until a run sees no fault; nothing half done is ever visible. */
TEST_BOTH(a_failure_at_any_storage_operation_leaves_nothing_half_done)
{
    static const enum status kinds[] = {RETRY, BROKEN, FULL};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (int64_t n = 1;; n++) {
            struct house house;
            house_open(&house, storage);
            struct engine_command command = house_claim("k"), confirm;
            command.ledger.lease_us = WHEN_HOUR;
            house.fault = (struct store_fault){.countdown = n, .status = kinds[k]};
            house_run(&house, &command);
            if (command.status == OK) {
                confirm = house_say(OP_CONFIRM, &command);
                house_run(&house, &confirm);
            }
            bool struck = house.fault.countdown == 0;
            house.fault = (struct store_fault){0};
            house.boot_us += 2 * WHEN_SECOND;
            engine_step(house.engine, NULL);
            struct engine_command again = house_claim("k");
            house_run(&house, &again);
            CHECK_INT(again.status, OK);
            if (command.status != OK)
                CHECK_INT(again.answer.verdict, VERDICT_PROCEED);
            else
                CHECK_INT(again.answer.verdict, confirm.status == OK ? VERDICT_REPLAY : VERDICT_IN_PROGRESS);
            CHECK_INT(again.answer.fence, 1);
            struct audit_verified verified;
            struct why why;
            CHECK(audit_verify(engine_store(house.engine), &verified, &why) == OK);
            CHECK_INT(verified.bad_id, 0);
            house_close(&house);
            if (!struck)
                break;
        }
    }
}

/* A promoted standby that lacks the newest decisions: this node remembers that it had acknowledged them. */
TEST(decisions_that_the_database_has_lost_are_noticed_and_begin_a_new_epoch)
{
    struct house house;
    house_open(&house, HOUSE_POSTGRES);
    struct engine_command first = house_claim("a"), second = house_claim("b"), third = house_claim("c");
    int64_t epoch, since_us;
    struct why why;
    house_run(&house, &first);
    CHECK(!engine_quarantine(house.engine, &epoch, &since_us, &why));
    CHECK_INT(epoch, 1);
    house_run(&house, &second);
    struct store *store = engine_store(house.engine);
    CHECK(store_begin(store, &why) == OK);
    CHECK(store_script(store, "DELETE FROM decision WHERE seq > 1; UPDATE lane SET seq = 1", &why) == OK);
    CHECK(store_commit(store, &why) == OK);
    store->lost = true; /* the connection breaks and is made anew */
    house_run(&house, &third);
    CHECK_INT(third.status, OK);
    CHECK_INT(third.answer.verdict, VERDICT_OUTCOME_UNKNOWN);
    CHECK(engine_quarantine(house.engine, &epoch, &since_us, &why));
    CHECK_INT(epoch, 2);
    house_close(&house);
}

/* ---- threads ---- */

struct storm {
    struct house *house;
    _Atomic int proceeded[50];
    _Atomic int replayed;
};

struct wait {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
};

static void wake(struct engine_command *command)
{
    struct wait *wait = command->user;
    pthread_mutex_lock(&wait->lock);
    wait->done = true;
    pthread_cond_signal(&wait->wake);
    pthread_mutex_unlock(&wait->lock);
}

static void submit_and_wait(struct engine *engine, struct engine_command *command)
{
    struct wait wait = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    command->user = &wait;
    command->done = wake;
    engine_submit(engine, command);
    pthread_mutex_lock(&wait.lock);
    while (!wait.done)
        pthread_cond_wait(&wait.wake, &wait.lock);
    pthread_mutex_unlock(&wait.lock);
}

static void *storm_client(void *arg)
{
    struct storm *storm = arg;
    struct arena arena;
    arena_init(&arena, 8 << 20);
    for (int i = 0; i < 50; i++) {
        char key[16];
        snprintf(key, sizeof key, "s%d", i);
        struct engine_command command = house_claim(key);
        command.ledger.lease_us = 60 * WHEN_SECOND;
        command.wait_us = 60 * WHEN_SECOND;
        command.arena = &arena;
        ledger_key_hash(engine_pepper(storm->house->engine), command.ledger.space, command.ledger.workflow, command.ledger.key,
                        command.ledger.h);
        submit_and_wait(storm->house->engine, &command);
        CHECK_INT(command.status, OK);
        if (command.answer.verdict == VERDICT_REPLAY) {
            storm->replayed++;
            continue;
        }
        CHECK_INT(command.answer.verdict, VERDICT_PROCEED);
        storm->proceeded[i]++;
        struct engine_command confirm = house_say(OP_CONFIRM, &command);
        confirm.arena = &arena;
        submit_and_wait(storm->house->engine, &confirm);
        CHECK_INT(confirm.answer.verdict, VERDICT_DONE);
    }
    arena_release(&arena);
    return NULL;
}

TEST_BOTH(in_a_storm_each_key_proceeds_once_and_the_others_get_its_result)
{
    struct house house;
    house_open(&house, storage);
    house.env = *env_real(); /* real time for real threads */
    house_reopen(&house);
    struct why why;
    CHECK(engine_start(house.engine, &why) == OK);
    struct storm storm = {.house = &house};
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        CHECK(pthread_create(&threads[i], NULL, storm_client, &storm) == 0);
    for (int i = 0; i < 16; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 50; i++)
        CHECK_INT(storm.proceeded[i], 1);
    CHECK_INT(storm.replayed, 15 * 50);
    house_close(&house);
}

/* ---- who does the work ---- */

struct lone {
    struct wait wait;
    pthread_t caller, thread; /* the latter is where `done` was called */
    atomic_bool stood_in;
};

static void note_thread(struct engine_command *command)
{
    struct lone *lone = command->user;
    pthread_mutex_lock(&lone->wait.lock);
    lone->thread = pthread_self();
    lone->wait.done = true;
    pthread_cond_signal(&lone->wait.wake);
    pthread_mutex_unlock(&lone->wait.lock);
}

/* Brings it as the HTTP loop does; true when it was done on this thread. */
static bool is_led(struct house *house, struct lone *lone, struct engine_command *command)
{
    lone->caller = pthread_self();
    lone->wait.done = false;
    command->user = lone;
    command->done = note_thread;
    command->arena = &house->arena;
    engine_queue(house->engine, command);
    engine_turn(house->engine);
    pthread_mutex_lock(&lone->wait.lock);
    while (!lone->wait.done)
        pthread_cond_wait(&lone->wait.wake, &lone->wait.lock);
    pthread_mutex_unlock(&lone->wait.lock);
    return pthread_equal(lone->thread, lone->caller);
}

static struct lone new_lone(void)
{
    return (struct lone){.wait = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false}};
}

/* Sometimes the writer is at work with its timers; mostly it is not. Whoever does it, each is answered once. */
TEST_BOTH(lone_commands_are_done_by_the_thread_that_brings_them)
{
    struct house house;
    house_open(&house, storage);
    house.env = *env_real();
    house_reopen(&house);
    struct why why;
    struct lone lone = new_lone();
    CHECK(engine_start(house.engine, &why) == OK);
    int led = 0;
    for (int i = 0; i < 100; i++) {
        char key[16];
        snprintf(key, sizeof key, "l%d", i);
        struct engine_command command = house_claim(key);
        command.ledger.lease_us = 60 * WHEN_SECOND;
        ledger_key_hash(engine_pepper(house.engine), command.ledger.space, command.ledger.workflow, command.ledger.key,
                        command.ledger.h);
        led += is_led(&house, &lone, &command);
        CHECK_INT(command.answer.verdict, VERDICT_PROCEED);
        struct engine_command confirm = house_say(OP_CONFIRM, &command);
        led += is_led(&house, &lone, &confirm);
        CHECK_INT(confirm.answer.verdict, VERDICT_DONE);
    }
    CHECK(storage == HOUSE_POSTGRES ? led == 0 : led > 0);
    house_close(&house);
}

/* On the leading thread it ends only when somebody stands in for that thread, as when a disk hangs. */
static enum status hang(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    (void)store, (void)ledger;
    struct lone *lone = command->user;
    if (!pthread_equal(lone->caller, pthread_self()))
        return why_set(why, NOTHING, "the writer does it");
    for (int i = 0; i < 10000 && !atomic_load(&lone->stood_in); i++)
        usleep(1000);
    return why_set(why, NOTHING, "it took long");
}

static void stand_in(void *arg)
{
    atomic_store(&((struct lone *)arg)->stood_in, true);
}

TEST(somebody_stands_in_for_the_thread_that_leads_for_long)
{
    struct house house;
    house_open(&house, HOUSE_SQLITE);
    house.env = *env_real();
    house_reopen(&house);
    struct why why;
    struct lone lone = new_lone();
    engine_stand_in(house.engine, stand_in, &lone);
    CHECK(engine_start(house.engine, &why) == OK);
    bool led = false;
    for (int i = 0; i < 1000 && !led; i++) {
        struct engine_command command = {.write = hang};
        led = is_led(&house, &lone, &command);
        CHECK_INT(command.status, NOTHING);
    }
    CHECK(led);
    CHECK(atomic_load(&lone.stood_in));
    house_close(&house);
}
