/* person: looks at the destination and decides about an exception, as src/api/resolve.c lets it. It may leave one alone for ever. */
#include "sim.h"

enum decision { DECIDE_HAPPENED, DECIDE_DID_NOT, DECIDE_AGAIN };

struct opinion {
    struct effect *effect;
    struct row_effect row; /* only its numbers are used */
    enum decision decision;
    struct engine_command command;
};

static enum status close_cards(struct store *store, struct ledger *ledger, int64_t intent, struct why *why)
{
    for (int kind = 0; kind < EXCEPTION_KIND_COUNT; kind++)
        TRY(exception_close(store, ledger, intent, (enum exception_kind)kind, BYTES("decided"), BYTES("dana"), BYTES_NONE, why));
    return OK;
}

static enum status also_decided(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    const struct opinion *opinion = command->user;
    TRY(close_cards(store, ledger, opinion->row.intent, why));
    if (command->answer.state == STATE_PENDING)
        return outbox_again(store, ledger, &opinion->row, NULL, why);
    return outbox_finish(store, ledger, &opinion->row, BYTES("a person decided"), why);
}

/* A dead letter again: the ledger need not move for it. */
static enum status write_letter(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    const struct opinion *opinion = command->user;
    TRY(close_cards(store, ledger, opinion->row.intent, why));
    struct row_decision *row = audit_add(ledger->audit);
    if (row == NULL)
        return why_set(why, FULL, "no memory for a decision");
    row->space = BYTES("main");
    row->kind = BYTES("retry");
    row->intent = opinion->row.intent;
    row->state = -1;
    row->actor = BYTES("dana");
    return outbox_again(store, ledger, &opinion->row, NULL, why);
}

static void decided(struct engine_command *command)
{
    struct sim *sim = sim_current();
    const struct opinion *opinion = command->user;
    bool done = command->status == OK && (command->write != NULL || command->answer.verdict == VERDICT_DONE);
    if (sim->dead || !done)
        return;
    mark(MARK_PERSON_DECIDED);
    if (sim->act != NULL)
        act_wake(sim->act);
    sim_say(sim, "the person's word about %s counts", opinion->effect->key);
}

static void decide(struct sim *sim, struct effect *effect, const struct row_effect *row)
{
    struct opinion *opinion = arena_zalloc(&sim->arena, 1, sizeof *opinion);
    bool again = sim_below(sim, 2) == 0;
    *opinion = (struct opinion){.effect = effect, .row = *row};
    opinion->row.space = BYTES("main");
    opinion->decision = effect->happened > 0 ? DECIDE_HAPPENED : again ? DECIDE_AGAIN : DECIDE_DID_NOT;
    sim_say(sim, "the person says that %s %s", effect->key,
            effect->happened > 0 ? "happened"
            : again              ? "is to be done again"
                                 : "did not happen");
    if (opinion->decision == DECIDE_AGAIN) { /* it may have been heard, even when the answer does not come */
        effect->calls = 0;
        effect->released = true;
    }
    opinion->command = (struct engine_command){
        .ledger = {.op = opinion->decision == DECIDE_HAPPENED ? OP_CONFIRM : OP_FAIL,
                   .space = BYTES("main"),
                   .actor = BYTES("dana"),
                   .intent = row->intent,
                   .fence = row->fence,
                   .final = opinion->decision == DECIDE_DID_NOT,
                   .all_attempts = true,
                   .error = BYTES("a person said that it did not happen"),
                   .result = BYTES("{\"resolution\":\"decided\"}")},
        .also = also_decided,
        .user = opinion,
    };
    if (row->state == STATE_PENDING && opinion->decision == DECIDE_AGAIN)
        opinion->command = (struct engine_command){.write = write_letter, .user = opinion};
    sim_post(sim, &opinion->command, decided);
}

/* The daemon takes "again" only when nothing can be on its way any more; whoever says "it did not happen" waits for that too. */
static void look_at(struct sim *sim, struct effect *effect)
{
    struct row_intent intent;
    struct row_effect row;
    bool has_row;
    if (!judge_effect_load(sim, effect, &intent, &row, &has_row) || !has_row || row.step != STEP_PERSON)
        return;
    bool open = row.state == STATE_UNKNOWN || row.state == STATE_PENDING;
    bool early = row.quiet > engine_now(sim->engine).run_us;
    if (open && !early && sim_below(sim, 3) == 0)
        decide(sim, effect, &row);
}

void person_looks(struct sim *sim, void *none)
{
    (void)none;
    for (int i = 0; i < sim->effect_count && sim->engine != NULL; i++)
        look_at(sim, &sim->effects[i]);
    if (sim->now_us < EFFECTS_PERSON_END_US)
        sim_at(sim, 300 * WHEN_MS + sim_below(sim, WHEN_SECOND), person_looks, NULL);
}
