/* Two whole nodes with their threads on one PostgreSQL. Nothing here depends on how fast a word is: only on its coming. */
#include "engine/hear.h"

#include <pthread.h>
#include <unistd.h>

#include "base/when.h"
#include "check.h"
#include "engine/engine_own.h"
#include "house.h"

#define PATIENCE 3000 /* times 10 ms */

struct nodes {
    struct house house;
    struct engine *a, *b;
};

#define UNTIL(condition)                                             \
    do {                                                             \
        int check_left_ = PATIENCE;                                  \
        while (!(condition) && check_left_-- > 0)                    \
            usleep(10 * 1000);                                       \
        if (check_left_ < 0)                                         \
            check_fail(__FILE__, __LINE__, "never: %s", #condition); \
    } while (0)

static struct engine *start_node(const char *url)
{
    struct engine_config config = {.env = env_real(), .postgres_url = url};
    struct engine *engine = NULL;
    struct why why = {""};
    if (engine_open(&config, &engine, &why) != OK || engine_start(engine, &why) != OK)
        check_fail(__FILE__, __LINE__, "%s", why.text);
    return engine;
}

static void start(struct nodes *nodes)
{
    house_open(&nodes->house, HOUSE_POSTGRES);
    nodes->a = start_node(nodes->house.postgres_url);
    nodes->b = start_node(nodes->house.postgres_url);
    UNTIL(hear_is_on(nodes->a->hear) && hear_is_on(nodes->b->hear));
}

static void stop(struct nodes *nodes)
{
    engine_close(nodes->a);
    engine_close(nodes->b);
    house_close(&nodes->house);
}

/* ---- commands ---- */

static void note_done(struct engine_command *command)
{
    atomic_store((atomic_bool *)command->user, true);
}

static void begin(struct engine *node, struct engine_command *command, struct arena *arena, atomic_bool *done)
{
    struct ledger_command *ledger = &command->ledger;
    if (ledger->op == OP_CLAIM)
        ledger_key_hash(engine_pepper(node), ledger->space, ledger->workflow, ledger->key, ledger->h);
    atomic_store(done, false);
    command->arena = arena;
    command->user = done;
    command->done = note_done;
    engine_submit(node, command);
}

static void run(struct nodes *nodes, struct engine *node, struct engine_command *command, enum ledger_verdict want)
{
    atomic_bool done;
    begin(node, command, &nodes->house.arena, &done);
    UNTIL(atomic_load(&done));
    CHECK_INT(command->status, OK);
    CHECK_INT(command->answer.verdict, want);
}

static struct engine_command long_claim(const char *key)
{
    struct engine_command claim = house_claim(key);
    claim.ledger.lease_us = 5 * WHEN_MINUTE;
    claim.wait_us = 5 * WHEN_MINUTE;
    return claim;
}

/* A holds it, B waits for it; then A is done. */
static void hand_over(struct nodes *nodes, const char *key, bool heard)
{
    struct engine_command held = long_claim(key), waits = long_claim(key);
    struct arena arena;
    atomic_bool done;
    uint64_t asked = nodes->a->counts.asked, told = nodes->a->counts.told, got = nodes->b->counts.heard;
    arena_init(&arena, 1 << 20);
    run(nodes, nodes->a, &held, VERDICT_PROCEED);
    begin(nodes->b, &waits, &arena, &done);
    if (heard)
        UNTIL(nodes->a->counts.asked > asked);
    else
        UNTIL(nodes->b->counts.waiting > 0);
    struct engine_command confirm = house_say(OP_CONFIRM, &held);
    run(nodes, nodes->a, &confirm, VERDICT_DONE);
    UNTIL(atomic_load(&done));
    CHECK_INT(waits.answer.verdict, VERDICT_REPLAY);
    if (heard) {
        CHECK_INT(nodes->a->counts.told, told + 1);
        UNTIL(nodes->b->counts.heard > got);
    }
    arena_release(&arena);
}

/* ---- the tests ---- */

TEST(what_another_node_moves_is_told_to_those_who_wait_for_it)
{
    struct nodes nodes;
    start(&nodes);
    hand_over(&nodes, "k", true);
    hand_over(&nodes, "l", true);
    stop(&nodes);
}

TEST(what_nobody_waits_for_is_told_to_nobody)
{
    struct nodes nodes;
    start(&nodes);
    hand_over(&nodes, "k", true);
    struct engine_command claim = long_claim("other");
    run(&nodes, nodes.a, &claim, VERDICT_PROCEED);
    struct engine_command confirm = house_say(OP_CONFIRM, &claim);
    run(&nodes, nodes.a, &confirm, VERDICT_DONE);
    CHECK_INT(nodes.a->counts.told, 1);
    stop(&nodes);
}

static void cut_listeners(struct nodes *nodes)
{
    struct store *store = NULL;
    struct why why = {""};
    int lane;
    CHECK_INT(store_open_postgres(nodes->house.postgres_url, STORE_WRITE, -1, &store, &lane, &why), OK);
    CHECK_INT(store_script(store,
                           "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'semel listener'",
                           &why),
              OK);
    store_close(store);
}

TEST(without_a_listening_connection_who_waits_looks_by_itself_and_the_connection_comes_back)
{
    struct nodes nodes;
    start(&nodes);
    for (int i = 0; i < 3; i++) {
        char key[8];
        cut_listeners(&nodes);
        snprintf(key, sizeof key, "k%d", i);
        hand_over(&nodes, key, false);
    }
    UNTIL(hear_is_on(nodes.a->hear) && hear_is_on(nodes.b->hear));
    hand_over(&nodes, "again", true);
    stop(&nodes);
}

static void note_call(void *arg)
{
    atomic_store((atomic_bool *)arg, true);
}

TEST(a_node_with_its_hands_full_calls_the_others)
{
    struct nodes nodes;
    atomic_bool called_a = false, called_b = false;
    start(&nodes);
    engine_on_call(nodes.a, note_call, &called_a);
    engine_on_call(nodes.b, note_call, &called_b);
    engine_call_others(nodes.a);
    UNTIL(atomic_load(&called_b));
    CHECK(!atomic_load(&called_a));
    engine_on_call(nodes.b, NULL, NULL);
    stop(&nodes);
}

TEST(a_waiting_claim_of_more_intents_than_a_word_can_name_is_woken_too)
{
    enum { MANY = 700 };
    static struct engine_command held[MANY], waits[MANY], confirms[MANY];
    static atomic_bool done[MANY];
    static struct arena arenas[MANY];
    static char keys[MANY][8];
    struct nodes nodes;
    start(&nodes);
    for (int i = 0; i < MANY; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i);
        arena_init(&arenas[i], 1 << 20);
        held[i] = long_claim(keys[i]);
        waits[i] = long_claim(keys[i]);
        run(&nodes, nodes.a, &held[i], VERDICT_PROCEED);
        begin(nodes.b, &waits[i], &arenas[i], &done[i]);
    }
    UNTIL(nodes.b->counts.waiting == MANY && nodes.a->counts.asked > 0);
    static atomic_bool confirmed[MANY];
    for (int i = 0; i < MANY; i++) {
        confirms[i] = house_say(OP_CONFIRM, &held[i]);
        begin(nodes.a, &confirms[i], &nodes.house.arena, &confirmed[i]);
    }
    for (int i = 0; i < MANY; i++) {
        UNTIL(atomic_load(&done[i]));
        CHECK_INT(waits[i].answer.verdict, VERDICT_REPLAY);
        arena_release(&arenas[i]);
    }
    CHECK(nodes.a->counts.told > 0);
    stop(&nodes);
}
