/* talk: agents. Each is asked by an event that was forwarded to it; often two are asked at once. They answer by thread and action, as
 * claims or by handing the answer to the daemon, and die, as everybody does. Some do something else in the conversation first, under
 * a key of their own. */
#include <stdio.h>

#include "act/order.h"
#include "sim.h"
#include "threads/answer.h"

#define HEARD_MAX_US (300 * WHEN_MS) /* an agent that has heard nothing says it again */
#define TRIES_OF_AGENT 5
#define ACTION BYTES("reply")

struct agent {
    int64_t event;
    bool by_event; /* it names the event; else only the conversation */
    struct talk *talk;
    struct claim_naming naming;
    int64_t intent, fence;
    int64_t deadline_us; /* on a clock that goes on while the world is idle */
    int tries;
    uint64_t asked;
};

/* One thing that an agent says to the daemon. */
struct saying {
    struct agent *agent;
    uint64_t asked;
    struct effect_order order;
    struct engine_command command;
};

static int64_t clock_us(const struct sim *sim)
{
    return sim->now_us + sim->idle_us;
}

/* ---- questions ---- */

struct talk *talk_of(struct sim *sim, int64_t thread, int64_t epoch)
{
    for (int i = 0; i < sim->talk_count; i++)
        if (sim->talks[i].thread == thread && sim->talks[i].epoch == epoch)
            return &sim->talks[i];
    ASSERT(sim->talk_count < TALKS_MAX);
    struct talk *talk = &sim->talks[sim->talk_count++];
    *talk = (struct talk){.thread = thread, .epoch = epoch};
    return talk;
}

/* "thr_…:3:reply" */
struct talk *talk_by_key(struct sim *sim, struct bytes key)
{
    struct bytes rest = key, id = bytes_cut(&rest, ':'), number = bytes_cut(&rest, ':');
    int64_t thread = 0, epoch = 0;
    if (!id_parse("thr", id, &thread) || !bytes_to_i64(number, &epoch))
        return NULL;
    return talk_of(sim, thread, epoch);
}

/* ---- saying ---- */

static void agent_begins(struct sim *sim, void *arg);
static void agent_hears(struct sim *sim, void *arg);

/* What is not known to have been heard is said again; from the beginning when it was the claim. */
static void not_heard(struct sim *sim, void *arg)
{
    struct saying *saying = arg;
    struct agent *agent = saying->agent;
    if (agent->asked != saying->asked || ++agent->tries > TRIES_OF_AGENT)
        return;
    agent->asked++;
    if (saying->command.ledger.op != OP_CONFIRM) {
        agent_begins(sim, agent);
        return;
    }
    struct saying *again = arena_zalloc(&sim->arena, 1, sizeof *again);
    *again = (struct saying){.agent = agent, .asked = agent->asked, .command = saying->command};
    again->command.user = again;
    sim_post(sim, &again->command, saying->command.done);
    sim_at(sim, HEARD_MAX_US, not_heard, again);
}

static void processed(struct engine_command *command)
{
    struct sim *sim = sim_current();
    if (sim->dead)
        return;
    if (command->ledger.op == OP_SUBMIT && command->status == OK && command->answer.verdict == VERDICT_PROCEED) {
        mark(MARK_ANSWER_QUEUED);
        act_wake(sim->act);
    }
    if (!sim_chance(sim, sim->mix.reply_lost))
        sim_at(sim, sim_below(sim, 10 * WHEN_MS), agent_hears, command->user);
}

static void say(struct sim *sim, struct saying *saying)
{
    saying->asked = ++saying->agent->asked;
    saying->command.user = saying;
    sim_post(sim, &saying->command, processed);
    sim_at(sim, HEARD_MAX_US, not_heard, saying);
}

static void say_word(struct sim *sim, struct agent *agent, enum ledger_op op)
{
    struct saying *saying = arena_zalloc(&sim->arena, 1, sizeof *saying);
    saying->agent = agent;
    saying->command.ledger = (struct ledger_command){.op = op,
                                                     .space = BYTES("main"),
                                                     .actor = BYTES("agent"),
                                                     .intent = agent->intent,
                                                     .fence = agent->fence,
                                                     .result = BYTES("{\"sent\":true}"),
                                                     .lease_us = LEASE_US};
    say(sim, saying);
}

/* ---- beginning ---- */

static enum status also_queued(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    const struct saying *saying = command->user;
    if (command->answer.verdict != VERDICT_PROCEED && command->answer.verdict != VERDICT_OUTCOME_UNKNOWN)
        return OK;
    return outbox_write(store, ledger, command->answer.intent, &saying->order, why);
}

static void queue_answer(struct sim *sim, struct saying *saying)
{
    const struct destination *destination = policy_destination(inbox_policy(sim->rules), BYTES("keyed"));
    struct effect_request request = {.method = BYTES("POST"), .path = BYTES("/reply"), .body = BYTES("{}")};
    struct why why;
    enum status status = effect_order_make(destination, destination_call(destination, request.method, request.path), &request,
                                           &sim->arena, &saying->command.ledger, NULL, &saying->order, &why);
    ASSERT(status == OK);
    saying->command.ledger.evidence = outbox_evidence(&saying->order, &sim->arena);
    saying->command.also = also_queued;
}

static void claim(struct sim *sim, struct agent *agent)
{
    struct saying *saying = arena_zalloc(&sim->arena, 1, sizeof *saying);
    saying->agent = agent;
    saying->command.ledger = (struct ledger_command){.op = sim->queues ? OP_SUBMIT : OP_CLAIM,
                                                     .space = BYTES("main"),
                                                     .actor = BYTES("agent"),
                                                     .workflow = agent->naming.workflow,
                                                     .key = agent->naming.key,
                                                     .thread = agent->naming.thread,
                                                     .action = agent->naming.action,
                                                     .in_turn = true,
                                                     .lease_us = LEASE_US,
                                                     .keep_us = 400 * WHEN_DAY,
                                                     .tombstone_us = 400 * WHEN_DAY,
                                                     .attempts_max = 100,
                                                     .on_unknown = ON_UNKNOWN_HOLD,
                                                     .two_phase = true};
    if (sim->queues)
        queue_answer(sim, saying);
    agent->deadline_us = clock_us(sim) + LEASE_US * 8 / 10;
    say(sim, saying);
}

/* Which question it is, as the faces find out: by a look before the claim. */
static void agent_begins(struct sim *sim, void *arg)
{
    struct agent *agent = arg;
    const struct seen *event = judge_seen(sim, agent->event);
    if (sim->engine == NULL || event == NULL || event->thread == 0)
        return;
    struct answer_naming answer = {.epoch = EPOCH_UNSAID};
    agent->naming = (struct claim_naming){.action = ACTION};
    if (agent->by_event)
        answer.event = id_text("evt", agent->event, &sim->arena);
    else
        agent->naming.thread = id_text("thr", event->thread, &sim->arena);
    struct bytes field;
    struct why why;
    if (answer_name(engine_store(sim->engine), BYTES("main"), &answer, &sim->arena, &agent->naming, &field, &why) != OK)
        return; /* it is no question, or forgotten */
    agent->talk = talk_by_key(sim, agent->naming.key);
    ASSERT(agent->talk != NULL);
    claim(sim, agent);
}

static void deed_done(struct engine_command *command)
{
    (void)command;
}

/* Under a key of its own, and never finished: it is begun, and that counts. */
static void do_something(struct sim *sim, const struct seen *event)
{
    if (sim->deed_count == TALKS_MAX || event->thread == 0)
        return;
    struct deed_of_agent *deed = &sim->deeds[sim->deed_count];
    *deed = (struct deed_of_agent){.thread = event->thread};
    snprintf(deed->key, sizeof deed->key, "deed-%d", sim->deed_count++);
    struct engine_command *command = arena_zalloc(&sim->arena, 1, sizeof *command);
    command->ledger = (struct ledger_command){.op = OP_CLAIM,
                                              .space = BYTES("main"),
                                              .actor = BYTES("agent"),
                                              .workflow = BYTES("deeds"),
                                              .key = bytes_of(deed->key),
                                              .thread = id_text("thr", event->thread, &sim->arena),
                                              .action = BYTES("note"),
                                              .lease_us = LEASE_US,
                                              .keep_us = 400 * WHEN_DAY,
                                              .tombstone_us = 400 * WHEN_DAY,
                                              .attempts_max = 100,
                                              .on_unknown = ON_UNKNOWN_HOLD,
                                              .two_phase = true};
    sim_post(sim, command, deed_done);
}

void talk_asked(struct sim *sim, const struct seen *event)
{
    if (sim_below(sim, 6) == 0)
        do_something(sim, event);
    int64_t agents = 1 + sim_below(sim, 2);
    if (agents > 1)
        mark(MARK_ANSWER_TWICE_ASKED);
    for (; agents > 0; agents--) {
        struct agent *agent = arena_zalloc(&sim->arena, 1, sizeof *agent);
        *agent = (struct agent){.event = event->id, .by_event = sim_below(sim, 3) > 0};
        sim_at(sim, sim_below(sim, 100 * WHEN_MS) + (sim_below(sim, 3) == 0 ? sim_below(sim, WHEN_SECOND) : 0), agent_begins,
               agent);
    }
}

/* ---- answering ---- */

static void reply(struct sim *sim, struct agent *agent)
{
    if (clock_us(sim) > agent->deadline_us)
        return;
    sim_say(sim, "an agent answers %.*s", BYTES_ARG(agent->naming.key));
    judge_replied(sim, agent->talk);
    if (!sim_chance(sim, sim->mix.holder_dies))
        say_word(sim, agent, OP_CONFIRM);
}

static void agent_hears(struct sim *sim, void *arg)
{
    struct saying *saying = arg;
    struct agent *agent = saying->agent;
    const struct ledger_answer *answer = &saying->command.answer;
    if (agent->asked != saying->asked || sim_chance(sim, sim->mix.holder_dies))
        return;
    if (saying->command.status != OK)
        return; /* it says it again when it has waited */
    agent->asked++;
    if (saying->command.ledger.op == OP_SENT && answer->verdict == VERDICT_DONE)
        reply(sim, agent);
    if (saying->command.ledger.op != OP_CLAIM)
        return;
    if (answer->verdict == VERDICT_PROCEED) {
        agent->intent = answer->intent;
        agent->fence = answer->fence;
        say_word(sim, agent, OP_SENT);
    } else if (answer->verdict == VERDICT_IN_PROGRESS && ++agent->tries <= TRIES_OF_AGENT) {
        sim_at(sim, LEASE_US + sim_below(sim, LEASE_US), agent_begins, agent);
    }
}

/* ---- who knows what happened ---- */

static void operator_done(struct engine_command *command)
{
    (void)command;
}

static void settle(struct sim *sim, const struct talk *talk, const struct row_intent *row)
{
    struct engine_command *command = arena_zalloc(&sim->arena, 1, sizeof *command);
    *command = (struct engine_command){.ledger = {.op = talk->replies > 0 ? OP_CONFIRM : OP_FAIL,
                                                  .space = BYTES("main"),
                                                  .actor = BYTES("operator"),
                                                  .intent = row->id,
                                                  .fence = row->fence,
                                                  .result = BYTES("{\"sent\":true}"),
                                                  .error = BYTES("it did not happen"),
                                                  .all_attempts = true}};
    sim_post(sim, command, operator_done);
}

/* Answers that agents have claimed; those that were handed over have a person of their own. */
void talk_operator(struct sim *sim, void *none)
{
    for (int i = 0; i < sim->talk_count && sim->engine != NULL && !sim->queues; i++) {
        const struct talk *talk = &sim->talks[i];
        struct bytes key = thread_key(talk->thread, talk->epoch, ACTION, &sim->arena);
        struct stored stored = judge_load(sim, ANSWERS_WORKFLOW, key.at);
        if (stored.has_intent && stored.intent.state == STATE_UNKNOWN)
            settle(sim, talk, &stored.intent);
    }
    sim_at(sim, WHEN_SECOND, talk_operator, none);
}
