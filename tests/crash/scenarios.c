/* scenarios: what is done while it goes wrong. Each is a few commands; world_say() repeats what got no answer, as a client would. */
#include <stdio.h>

#include "crash.h"

#define SAY(world, ...)                                             \
    do {                                                            \
        struct call calls_[] = {__VA_ARGS__};                       \
        world_say((world), calls_, sizeof calls_ / sizeof *calls_); \
    } while (0)

#define RESULT BYTES("{\"sent\":true,\"id\":\"m-1\"}")

#define CLAIM(k)                                                                \
    {                                                                           \
        .op = OP_CLAIM, .key = (k), .want = VERDICT_PROCEED, .then = STATE_SENT \
    }
#define CLAIM_FIRST(k)                                                                                \
    {                                                                                                 \
        .op = OP_CLAIM, .key = (k), .two_phase = true, .want = VERDICT_PROCEED, .then = STATE_CLAIMED \
    }
#define ASK(k, verdict)                               \
    {                                                 \
        .op = OP_CLAIM, .key = (k), .want = (verdict) \
    }
#define SENT(k)                                                             \
    {                                                                       \
        .op = OP_SENT, .key = (k), .want = VERDICT_DONE, .then = STATE_SENT \
    }
#define CONFIRM(k, bytes)                                                                              \
    {                                                                                                  \
        .op = OP_CONFIRM, .key = (k), .result = (bytes), .want = VERDICT_DONE, .then = STATE_CONFIRMED \
    }
#define FAIL_NONE(k)                                                           \
    {                                                                          \
        .op = OP_FAIL, .key = (k), .want = VERDICT_DONE, .then = STATE_PENDING \
    }
#define FAIL_FINAL(k)                                                                         \
    {                                                                                         \
        .op = OP_FAIL, .key = (k), .final = true, .want = VERDICT_DONE, .then = STATE_REFUSED \
    }
#define FAIL_UNKNOWN(k)                                                                         \
    {                                                                                           \
        .op = OP_FAIL, .key = (k), .unknown = true, .want = VERDICT_DONE, .then = STATE_UNKNOWN \
    }
#define EXTEND(k, state)                                                   \
    {                                                                      \
        .op = OP_EXTEND, .key = (k), .want = VERDICT_DONE, .then = (state) \
    }
#define RELEASE(k)                                                                \
    {                                                                             \
        .op = OP_RELEASE, .key = (k), .want = VERDICT_DONE, .then = STATE_PENDING \
    }
#define OTHER(k)                                                                       \
    {                                                                                  \
        .op = OP_CLAIM, .key = (k), .other_contents = true, .want = VERDICT_KEY_REUSED \
    }
#define WRITE            \
    {                    \
        .is_write = true \
    }

static void first_claim(struct world *world)
{
    SAY(world, CLAIM("a"));
    SAY(world, ASK("a", VERDICT_IN_PROGRESS));
}

static void one_phase(struct world *world)
{
    SAY(world, CLAIM("a"));
    SAY(world, CONFIRM("a", RESULT));
    SAY(world, ASK("a", VERDICT_REPLAY));
    SAY(world, CONFIRM("a", RESULT));
}

static void two_phase(struct world *world)
{
    SAY(world, CLAIM_FIRST("a"));
    SAY(world, SENT("a"));
    SAY(world, CONFIRM("a", RESULT));
    SAY(world, ASK("a", VERDICT_REPLAY));
}

static struct bytes large_result(void)
{
    static char text[100 << 10];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + (i * 7 + i / 4096) % 26);
    text[0] = text[sizeof text - 1] = '"';
    return (struct bytes){text, sizeof text};
}

static void a_large_result(struct world *world)
{
    SAY(world, CLAIM("a"));
    SAY(world, CONFIRM("a", large_result()));
    SAY(world, ASK("a", VERDICT_REPLAY));
}

/* Twenty commands of every kind and one COMMIT: all of it or nothing. */
static void a_batch(struct world *world)
{
    SAY(world, CLAIM("a"), CLAIM("b"), CLAIM_FIRST("c"), CLAIM_FIRST("d"), CLAIM("e"), CLAIM_FIRST("f"), CLAIM("g"));
    SAY(world, CONFIRM("g", RESULT));
    SAY(world, CONFIRM("a", RESULT), FAIL_NONE("b"), SENT("c"), RELEASE("d"), FAIL_FINAL("e"), EXTEND("f", STATE_CLAIMED),
        ASK("g", VERDICT_REPLAY), OTHER("g"), CLAIM("h"), ASK("h", VERDICT_IN_PROGRESS), CLAIM("i"), CLAIM("j"), CLAIM_FIRST("k"),
        CLAIM("l"), CLAIM("m"), CLAIM("n"), WRITE, CLAIM("o"), CONFIRM("g", RESULT), CLAIM("p"));
    SAY(world, ASK("a", VERDICT_REPLAY), ASK("e", VERDICT_REFUSED), CONFIRM("h", RESULT));
}

static void a_takeover(struct world *world)
{
    SAY(world, CLAIM_FIRST("a"));
    world_pass(world, LEASE_US + WHEN_SECOND, "a", STATE_PENDING);
    SAY(world, CLAIM_FIRST("a"));
    SAY(world, SENT("a"));
    SAY(world, CONFIRM("a", RESULT));
}

static void a_lapse_after_sent(struct world *world)
{
    SAY(world, CLAIM("a"));
    world_pass(world, LEASE_US + WHEN_SECOND, "a", STATE_UNKNOWN);
    SAY(world, ASK("a", VERDICT_OUTCOME_UNKNOWN));
    SAY(world, CONFIRM("a", RESULT));
}

static void a_failure_without_effect(struct world *world)
{
    SAY(world, CLAIM("a"));
    SAY(world, FAIL_NONE("a"));
    SAY(world, CLAIM("a"));
    SAY(world, CONFIRM("a", RESULT));
}

static void a_final_failure(struct world *world)
{
    SAY(world, CLAIM("a"));
    SAY(world, FAIL_FINAL("a"));
    SAY(world, ASK("a", VERDICT_REFUSED));
}

static void an_unknown_failure(struct world *world)
{
    SAY(world, CLAIM("a"));
    SAY(world, FAIL_UNKNOWN("a"));
    SAY(world, ASK("a", VERDICT_OUTCOME_UNKNOWN));
    SAY(world, CONFIRM("a", RESULT));
}

static void another_meaning(struct world *world)
{
    SAY(world, CLAIM("a"));
    SAY(world, OTHER("a"));
    SAY(world, CONFIRM("a", RESULT));
    SAY(world, OTHER("a"));
}

static void expiry(struct world *world)
{
    SAY(world, CLAIM("a"), CLAIM("b"));
    SAY(world, CONFIRM("a", RESULT), FAIL_FINAL("b"));
    if (world->key_count > 1)
        world_key(world, "b")->may_be_forgotten = true;
    world_pass(world, KEEP_US + 20 * WHEN_SECOND, "a", STATE_COUNT);
    SAY(world, ASK("a", VERDICT_EXPIRED));
}

/* Duplicates are counted and written a moment later. */
static void suppressed_duplicates(struct world *world)
{
    SAY(world, CLAIM("a"));
    SAY(world, ASK("a", VERDICT_IN_PROGRESS), OTHER("a"));
    SAY(world, CONFIRM("a", RESULT));
    SAY(world, ASK("a", VERDICT_REPLAY), ASK("a", VERDICT_REPLAY));
    world_pass(world, 2 * WHEN_SECOND, NULL, STATE_COUNT);
    SAY(world, ASK("a", VERDICT_REPLAY));
}

static void another_write(struct world *world)
{
    SAY(world, WRITE);
    SAY(world, WRITE, CLAIM("a"));
    SAY(world, CONFIRM("a", RESULT));
}

static void a_release(struct world *world)
{
    SAY(world, CLAIM_FIRST("a"));
    SAY(world, RELEASE("a"));
    SAY(world, CLAIM_FIRST("a"));
    SAY(world, SENT("a"));
    SAY(world, CONFIRM("a", RESULT));
}

static void an_extension(struct world *world)
{
    SAY(world, CLAIM_FIRST("a"));
    SAY(world, EXTEND("a", STATE_CLAIMED));
    SAY(world, SENT("a"));
    SAY(world, EXTEND("a", STATE_SENT));
    SAY(world, CONFIRM("a", RESULT));
}

/* One waits for the holder, and is answered with its result. */
static void someone_waits(struct world *world)
{
    SAY(world, CLAIM("a"));
    SAY(world, {.op = OP_CLAIM, .key = "a", .wait_us = WHEN_SECOND, .want = VERDICT_REPLAY}, CONFIRM("a", RESULT));
}

static void checkpoints(struct world *world)
{
    SAY(world, CLAIM("a"), CLAIM("b"), CLAIM_FIRST("c"));
    SAY(world, CONFIRM("a", large_result()));
    SAY(world, SENT("c"), FAIL_FINAL("b"));
    SAY(world, CONFIRM("c", RESULT));
    SAY(world, ASK("a", VERDICT_REPLAY));
}

static void a_stop_in_good_order(struct world *world)
{
    SAY(world, CLAIM_FIRST("a"));
    world_stop_and_start(world);
    SAY(world, SENT("a"));
    world_stop_and_start(world);
    SAY(world, CONFIRM("a", RESULT));
}

/* An earlier crash left a log behind. */
static void prepare_crash(struct world *world)
{
    SAY(world, CLAIM("a"), CLAIM_FIRST("b"), CLAIM("c"));
    SAY(world, CONFIRM("a", large_result()));
    SAY(world, SENT("b"));
    world_kill(world, LOSE_SECTORS);
}

static void recovery(struct world *world)
{
    SAY(world, CONFIRM("b", RESULT), FAIL_FINAL("c"));
    SAY(world, ASK("a", VERDICT_REPLAY));
}

/* An earlier crash, and a log whose middle is already checkpointed. */
static void prepare_checkpointed_crash(struct world *world)
{
    SAY(world, CLAIM("a"), CLAIM("b"));
    SAY(world, CONFIRM("a", large_result()));
    SAY(world, CONFIRM("b", RESULT));
    SAY(world, CLAIM("c"));
    world_kill(world, LOSE_PROCESS);
}

static void recovery_after_checkpoint(struct world *world)
{
    SAY(world, CONFIRM("c", RESULT));
    SAY(world, ASK("a", VERDICT_REPLAY), ASK("b", VERDICT_REPLAY));
}

const struct scenario scenarios[] = {
    {.name = "first-claim", .run = first_claim, .recovery = true, .every_allocation = true},
    {.name = "one-phase", .run = one_phase},
    {.name = "two-phase", .run = two_phase, .recovery = true},
    {.name = "large-result", .run = a_large_result},
    {.name = "batch", .run = a_batch},
    {.name = "takeover", .run = a_takeover},
    {.name = "lapse-after-sent", .run = a_lapse_after_sent},
    {.name = "fail-none", .run = a_failure_without_effect},
    {.name = "fail-final", .run = a_final_failure},
    {.name = "fail-unknown", .run = an_unknown_failure},
    {.name = "mismatch", .run = another_meaning},
    {.name = "expire", .run = expiry},
    {.name = "suppression", .run = suppressed_duplicates},
    {.name = "write", .run = another_write},
    {.name = "release", .run = a_release},
    {.name = "extend", .run = an_extension},
    {.name = "wait", .run = someone_waits},
    {.name = "migration", .run = first_claim, .from_nothing = true, .recovery = true},
    {.name = "checkpoint", .run = checkpoints, .checkpoint_pages = 4, .recovery = true},
    {.name = "stop", .run = a_stop_in_good_order},
    {.name = "recovery", .run = recovery, .prepare = prepare_crash, .recovery = true},
    {.name = "recovery-checkpoint",
     .run = recovery_after_checkpoint,
     .prepare = prepare_checkpointed_crash,
     .checkpoint_pages = 12,
     .recovery = true},
};
const size_t scenario_count = sizeof scenarios / sizeof *scenarios;
