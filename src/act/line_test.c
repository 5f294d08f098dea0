/* Lines over several nodes: ids grow as effects were accepted, so that whoever looks for the first of a line finds it. */
#include "act/outbox.h"
#include "base/when.h"
#include "check.h"
#include "engine/engine_own.h"
#include "house.h"

static enum status also_accepted(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct effect_order order = {
        .row = {.space = BYTES("main"), .destination = command->ledger.place, .line = command->ledger.line},
        .record = BYTES("{}\n")};
    return outbox_write(store, ledger, command->answer.intent, &order, why);
}

static void note_done(struct engine_command *command)
{
    *(bool *)command->user = true;
}

static int64_t submit(struct engine *node, struct house *house, const char *key, const char *line)
{
    struct engine_command command = house_claim(key);
    bool done = false;
    command.ledger.op = OP_SUBMIT;
    command.ledger.place = BYTES("crm");
    command.ledger.line = line != NULL ? bytes_of(line) : BYTES_NONE;
    ledger_key_hash(engine_pepper(node), command.ledger.space, command.ledger.workflow, command.ledger.key, command.ledger.h);
    command.also = also_accepted;
    command.arena = &house->arena;
    command.user = &done;
    command.done = note_done;
    engine_step(node, &command);
    CHECK(done);
    CHECK_INT(command.status, OK);
    CHECK_INT(command.answer.verdict, VERDICT_PROCEED);
    return command.answer.intent;
}

TEST(what_is_accepted_later_comes_later_in_its_line_whatever_the_nodes_clocks_say)
{
    struct house house;
    struct why why = {""};
    house_open(&house, HOUSE_POSTGRES);
    struct engine_config config = {.env = &house.env, .postgres_url = house.postgres_url};
    struct engine *other = NULL;
    CHECK_INT(engine_open(&config, &other, &why), OK);
    other->ids.last = id_floor(engine_now(other).wall_us + WHEN_HOUR); /* that node is ahead */
    int64_t first = submit(other, &house, "first", "lead_1");
    int64_t second = submit(house.engine, &house, "second", "lead_1");
    int64_t third = submit(other, &house, "third", "lead_1");
    int64_t fourth = submit(house.engine, &house, "fourth", "lead_1");
    CHECK(first < second && second < third && third < fourth);
    engine_close(other);
    house_close(&house);
}
