/* desk: who looks at what came in and decides otherwise, as src/api/events_act.c and src/api/sources.c let them. */
#include "flow/person.h"
#include "sim.h"

#define MUTED_US WHEN_HOUR

/* ---- about an event ---- */

struct deed {
    struct person_order order;
    struct engine_command command;
};

static enum status write_deed(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct deed *deed = command->user;
    deed->order.flow = sim_current()->flow; /* the process that it reaches may be another one */
    return person_write(store, ledger, &deed->order, why);
}

static void deed_done(struct engine_command *command)
{
    struct sim *sim = sim_current();
    const struct deed *deed = command->user;
    if (sim->dead || command->status != OK)
        return;
    person_done(&deed->order);
    sim_say(sim, "the person's %s of event %lld: %s", event_act_names[deed->order.act], (long long)deed->order.event,
            deed->order.end == PERSON_DONE ? "done" : "nothing changed");
}

static void do_about(struct sim *sim, struct seen *event, enum event_act act)
{
    struct deed *deed = arena_zalloc(&sim->arena, 1, sizeof *deed);
    deed->order = (struct person_order){.act = act,
                                        .space = BYTES("main"),
                                        .actor = BYTES("dana"),
                                        .note = BYTES("so it is"),
                                        .event = event->id,
                                        .by_card = sim_below(sim, 2) == 0};
    deed->command = (struct engine_command){.write = write_deed, .intents_max = PERSON_INTENTS, .user = deed};
    event->asked_release |= act == EVENT_ACT_RELEASE; /* it may be heard, even when the answer does not come */
    event->asked_suppress |= act == EVENT_ACT_SUPPRESS;
    event->asked_replay += act == EVENT_ACT_REPLAY;
    sim_say(sim, "the person says %s about event %lld", event_act_names[act], (long long)event->id);
    sim_post(sim, &deed->command, deed_done);
}

/* Sometimes what cannot be done, and sometimes twice. */
static void look_at(struct sim *sim, struct seen *event)
{
    bool open = event->verdict == EVENT_HELD, again = sim_below(sim, 3) == 0;
    if (sim_below(sim, open ? 3 : 14) != 0)
        return;
    enum event_act act = sim_below(sim, 2) == 0 ? EVENT_ACT_RELEASE : EVENT_ACT_SUPPRESS;
    bool went_on = event->verdict == EVENT_ACCEPTED || event->verdict == EVENT_RELEASED;
    if (went_on && event->asked_replay < 2 && sim_below(sim, 2) == 0)
        act = EVENT_ACT_REPLAY;
    do_about(sim, event, act);
    if (again && act != EVENT_ACT_REPLAY)
        do_about(sim, event, act);
}

/* ---- about a source ---- */

struct muting {
    struct row_source row;
    struct engine_command command;
    bool on;
};

static enum status write_muting(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct muting *muting = command->user;
    struct row_decision *row = audit_add(ledger->audit);
    if (row == NULL)
        return why_set(why, FULL, "no memory for a decision");
    muting->row.muted_until = muting->on ? ledger->now.wall_us + MUTED_US : 0;
    muting->row.changed = ledger->now.wall_us;
    row->space = BYTES("main");
    row->kind = muting->on ? BYTES("source_mute") : BYTES("source_unmute");
    row->state = -1;
    row->actor = BYTES("dana");
    row->detail = arena_printf(ledger->arena, "{\"source\":\"%.*s\",\"muted_until\":%lld}", BYTES_ARG(muting->row.name),
                               (long long)muting->row.muted_until);
    return store_run(store, &SOURCE_PUT, &muting->row, 1, NULL, NULL, NULL, why);
}

static void muting_done(struct engine_command *command)
{
    (void)command;
}

static void mute(struct sim *sim, enum channel channel, bool on)
{
    struct muting *muting = arena_zalloc(&sim->arena, 1, sizeof *muting);
    muting->on = on;
    muting->row = (struct row_source){
        .space = BYTES("main"), .name = bytes_of(channel_names[channel]), .actor = BYTES("dana"), .note = BYTES_NONE};
    muting->command = (struct engine_command){.write = write_muting, .user = muting};
    sim_say(sim, "the person %s %s", on ? "mutes" : "listens again to", channel_names[channel]);
    sim_post(sim, &muting->command, muting_done);
}

void desk_looks(struct sim *sim, void *none)
{
    (void)none;
    for (int i = 0; i < sim->seen_count && sim->flow != NULL; i++)
        if (!sim->seen[i].gone)
            look_at(sim, &sim->seen[i]);
    if (sim->flow != NULL && sim_below(sim, 16) == 0)
        mute(sim, (enum channel)sim_below(sim, CHANNELS), sim_below(sim, 3) > 0);
    if (sim->now_us < EFFECTS_FAULTS_END_US)
        sim_at(sim, 200 * WHEN_MS + sim_below(sim, WHEN_SECOND), desk_looks, NULL);
}
