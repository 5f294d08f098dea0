/* judge_effects: the invariants of what the daemon itself delivers. */
#include "sim.h"

/* ---- reading ---- */

struct found {
    struct row_intent intent;
    struct row_effect row;
    bool has_intent, has_row, buried;
    int64_t open;
};

static enum status take_row(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct found *found = ctx;
    found->row = *(const struct row_effect *)row; /* only its numbers are used */
    found->has_row = true;
    return OK;
}

static enum status take_has(void *ctx, const void *row, struct why *why)
{
    (void)row, (void)why;
    ((struct found *)ctx)->has_row = true;
    return OK;
}

static enum status take_depth(void *ctx, const void *row, struct why *why)
{
    (void)why;
    ((struct found *)ctx)->open += ((const struct r_outbox_depth *)row)->open;
    return OK;
}

static struct found load(struct sim *sim, struct effect *effect)
{
    struct stored stored = judge_load(sim, bytes_of(effect->workflow), effect->key);
    struct found found = {.intent = stored.intent, .has_intent = stored.has_intent, .buried = stored.buried};
    if (!found.has_intent)
        return found;
    effect->intent = found.intent.id;
    struct q_effect_get get = {BYTES("main"), found.intent.id};
    judge_read(sim, &EFFECT_GET, &get, take_row, &found);
    return found;
}

bool judge_effect_load(struct sim *sim, struct effect *effect, struct row_intent *ret_intent, struct row_effect *ret_row,
                       bool *ret_has_row)
{
    struct found found = load(sim, effect);
    *ret_intent = found.intent;
    *ret_row = found.row;
    *ret_has_row = found.has_row;
    return found.has_intent;
}

/* Is there one before it in its line whose step is among these? */
static struct effect *before_in_line(struct sim *sim, const struct effect *effect, int64_t step_min, int64_t step_max)
{
    for (int i = 0; i < sim->effect_count && effect->in_line; i++) {
        struct effect *other = &sim->effects[i];
        bool before = other != effect && other->in_line && other->kind == effect->kind && other->intent != 0 &&
                      other->intent < effect->intent;
        struct found found = before ? load(sim, other) : (struct found){0};
        if (found.has_row && found.row.step >= step_min && found.row.step <= step_max)
            return other;
    }
    return NULL;
}

/* ---- what clients are told ---- */

static void note_accepted(struct sim *sim, struct effect *effect, int64_t intent)
{
    effect->intent = intent;
    if (effect->accepted)
        return;
    effect->accepted = true;
    effect->accepted_life = sim->life;
    effect->waits = sim->engine != NULL && before_in_line(sim, effect, STEP_DELIVER, STEP_PERSON) != NULL;
}

void judge_effect_answer(struct sim *sim, struct effect *effect, const struct engine_command *command)
{
    sim_say(sim, "%s %s -> %s", ledger_op_names[command->ledger.op], effect->key,
            command->status == OK ? ledger_verdict_names[command->answer.verdict] : command->why.text);
    if (command->status != OK)
        return;
    switch (command->answer.verdict) {
    case VERDICT_REPLAY:
        if (effect->happened == 0)
            sim_violated(sim, "INV-3", "%s is confirmed, but nothing happened", effect->key);
        effect->confirmed_seen = true;
        judge_contents(sim, effect->key, command, &effect->contents);
        note_accepted(sim, effect, command->answer.intent);
        break;
    case VERDICT_PROCEED:
    case VERDICT_IN_PROGRESS:
        judge_contents(sim, effect->key, command, &effect->contents);
        note_accepted(sim, effect, command->answer.intent);
        break;
    case VERDICT_OUTCOME_UNKNOWN:
        note_accepted(sim, effect, command->answer.intent);
        break;
    case VERDICT_KEY_REUSED:
        if (effect->contents == command->ledger.fingerprint.whole.at[0] - 1)
            sim_violated(sim, "INV-5", "%s was refused to the contents it was first used for", effect->key);
        break;
    case VERDICT_REFUSED:
        if (effect->happened > 0)
            sim_violated(sim, "INV-3", "%s is refused, but it happened", effect->key);
        break;
    case VERDICT_EXPIRED:
        mark(MARK_EFFECT_FORGOTTEN);
        break;
    case VERDICT_DONE:
    case VERDICT_FENCED:
    case VERDICT_DIFFERS:
    case VERDICT_ALREADY_SENT:
    case VERDICT_NOT_FOUND:
        sim_violated(sim, "INV-9", "%s was answered with %s", effect->key, ledger_verdict_names[command->answer.verdict]);
    }
}

/* ---- what leaves and what happens ---- */

/* INV-16: whoever asks again must be remembered. */
static void check_window(struct sim *sim, const struct effect *effect)
{
    int64_t window_us = place_window_us(effect->kind);
    if (window_us > 0 && effect->happened > 0 && sim->now_us - effect->first_us >= window_us)
        sim_violated(sim, "INV-16", "%s is sent again %lld ms after it happened", effect->key,
                     (long long)((sim->now_us - effect->first_us) / 1000));
}

/* INV-14: those that came before it in its line are done with. */
static void check_line(struct sim *sim, const struct effect *effect)
{
    const struct effect *other = before_in_line(sim, effect, STEP_DELIVER, STEP_PERSON);
    if (other != NULL)
        sim_violated(sim, "INV-14", "%s leaves before %s of its line is finished", effect->key, other->key);
}

/* INV-12: nothing leaves without a durable SENT of the same fence that is still held. */
void judge_begin(struct sim *sim, struct effect *effect, int64_t fence)
{
    struct found found = load(sim, effect);
    if (!found.has_intent || found.intent.fence != fence || found.intent.state != STATE_SENT)
        sim_violated(sim, "INV-12", "%s leaves with fence %lld while it is %s with fence %lld", effect->key, (long long)fence,
                     found.has_intent ? intent_state_names[found.intent.state] : "absent", (long long)found.intent.fence);
    mark(MARK_DELIVERED);
    if (effect->waits)
        mark(MARK_LINE_WAITED);
    if (++effect->calls > TRIES_MAX && (!effect->attended || effect->released))
        sim_violated(sim, "INV-17", "%s is sent for the %d. time", effect->key, effect->calls);
    if (effect->attended && !effect->released && (effect->fences_given >> (fence & 63) & 1) == 0)
        sim_violated(sim, "INV-17", "%s is sent again, and its caller did not ask for it", effect->key);
    check_window(sim, effect);
    check_line(sim, effect);
}

void judge_happened(struct sim *sim, struct effect *effect)
{
    if (effect->happened > 1 && effect->kind != PLACE_AGAIN)
        sim_violated(sim, "INV-1", "%s happened %d times", effect->key, effect->happened);
    for (int i = 0; i < sim->effect_count && effect->in_line && effect->happened == 1; i++) {
        const struct effect *other = &sim->effects[i];
        if (other->in_line && other->kind == effect->kind && other->intent > effect->intent && other->happened > 0)
            sim_violated(sim, "INV-14", "%s happens after %s, which came later", effect->key, other->key);
    }
}

void judge_effect_mark(const struct row_decision *row)
{
    static const struct {
        const char *text;
        enum mark mark;
    } marks_of[] = {{"\"probe\":\"found\"", MARK_PROBE_FOUND},
                    {"\"probe\":\"absent\"", MARK_PROBE_ABSENT},
                    {"\"probe\":\"unsure\"", MARK_PROBE_UNSURE}};
    for (size_t i = 0; i < sizeof marks_of / sizeof *marks_of; i++)
        if (row->detail.at != NULL && memmem(row->detail.at, row->detail.len, marks_of[i].text, strlen(marks_of[i].text)) != NULL)
            mark(marks_of[i].mark);
    if (bytes_is(row->kind, "take") && bytes_is(row->reason, "attempts_exhausted") && row->state == STATE_UNKNOWN)
        mark(MARK_GIVEN_UP);
    if (bytes_is(row->kind, "raise") && bytes_is(row->reason, "its time is over, and its destination is not in the policy"))
        mark(MARK_STRANDED);
    struct sim *sim = sim_current();
    for (int i = 0; i < sim->effect_count && bytes_is(row->kind, "take") && row->state == STATE_UNKNOWN; i++)
        if (sim->effects[i].intent == row->intent && sim->effects[i].attended && !sim->effects[i].released)
            mark(MARK_CALLER_GONE);
}

/* ---- what is stored ---- */

/* INV-21, and what a card says is so. */
static void check_cards(struct sim *sim, struct effect *effect, const struct found *found)
{
    bool unknown = judge_is_owned(sim, found->intent.id, EXCEPTION_UNKNOWN_OUTCOME);
    bool dead =
        judge_is_owned(sim, found->intent.id, EXCEPTION_DEAD_LETTER) || judge_is_owned(sim, found->intent.id, EXCEPTION_REFUSED);
    if (found->intent.state == STATE_UNKNOWN && found->intent.settled == 0 && !unknown)
        sim_violated(sim, "INV-21", "%s is unknown, and nobody's", effect->key);
    if (found->row.step == STEP_PERSON && !unknown && !dead)
        sim_violated(sim, "INV-21", "%s waits for a person, and nobody knows", effect->key);
    if (dead && found->row.step != STEP_PERSON)
        sim_violated(sim, "INV-21", "%s is %s, and still a dead letter", effect->key, outbox_step_names[found->row.step]);
    if (dead)
        mark(MARK_DEAD_LETTER);
    if (dead && effect->happened > 0)
        sim_violated(sim, "INV-3", "%s is a dead letter, but it happened", effect->key);
}

static void check_stored(struct sim *sim, struct effect *effect, const struct found *found)
{
    const struct row_intent *row = &found->intent;
    judge_settled(sim, effect->key, row, effect->happened, effect->confirmed_seen);
    if (found->row.tries > TRIES_MAX && !effect->attended)
        sim_violated(sim, "INV-17", "%s was tried %lld times", effect->key, (long long)found->row.tries);
    if (row->state == STATE_UNKNOWN && row->settled != 0)
        mark(MARK_EFFECT_SKIPPED);
    check_cards(sim, effect, found);
}

/* INV-13: the row and its intent, both or neither. */
static void check_pairs(struct sim *sim)
{
    struct found all = {0};
    struct q_outbox_depth depth = {0};
    int64_t open = 0;
    for (int i = 0; i < sim->effect_count; i++) {
        struct effect *effect = &sim->effects[i];
        struct found found = load(sim, effect);
        struct q_outbox_has has = {effect->intent};
        if (found.has_intent && !found.has_row)
            sim_violated(sim, "INV-13", "%s has an intent, but no row in the outbox", effect->key);
        found.has_row = false;
        if (!found.has_intent && effect->intent != 0)
            judge_read(sim, &OUTBOX_HAS, &has, take_has, &found);
        if (!found.has_intent && found.has_row)
            sim_violated(sim, "INV-13", "%s has a row in the outbox, but no intent", effect->key);
        open += found.has_intent && found.row.step < STEP_FINISHED;
        if (found.has_intent)
            check_stored(sim, effect, &found);
    }
    judge_read(sim, &OUTBOX_DEPTH, &depth, take_depth, &all);
    if (all.open != open)
        sim_violated(sim, "INV-13", "the outbox has %lld open rows, the ledger %lld", (long long)all.open, (long long)open);
}

void judge_effects_boot(struct sim *sim)
{
    if (sim->has_effects || sim->has_inbox)
        check_pairs(sim);
}

/* ---- the end ---- */

/* INV-7: everything that was accepted has come to something, or is in the hands of someone. */
static void check_ended(struct sim *sim, struct effect *effect, const struct found *found)
{
    bool held = found->intent.state == STATE_CLAIMED || found->intent.state == STATE_SENT;
    bool callers = found->row.attended != 0 && found->intent.state == STATE_PENDING && found->intent.ambiguous == 0;
    bool open = found->row.step < STEP_PERSON && !callers;
    if (sim->went_back) /* what is due by the wall clock is due when that comes round again */
        return;
    if (held || (open && before_in_line(sim, effect, STEP_PERSON, STEP_PERSON) == NULL))
        sim_violated(sim, "INV-7", "%s is still %s, its step is %s", effect->key, intent_state_names[found->intent.state],
                     outbox_step_names[found->row.step]);
}

void judge_effects_end(struct sim *sim)
{
    if (!sim->has_effects && !sim->has_inbox)
        return;
    check_pairs(sim);
    for (int i = 0; i < sim->effect_count; i++) {
        struct effect *effect = &sim->effects[i];
        struct found found = load(sim, effect);
        if (!found.has_intent && !found.buried && (effect->accepted || effect->happened > 0))
            sim_violated(sim, "INV-6", "%s is not known any more", effect->key);
        if (!found.has_intent)
            continue;
        check_ended(sim, effect, &found);
        judge_rebuilt(sim, effect->key, &found.intent);
        judge_rebuilt_rows(sim, effect->key, found.intent.id);
        if (effect->happened > 1 && judge_announcements(sim, found.intent.id) < effect->happened - 1)
            sim_violated(sim, "INV-1b", "%s happened %d times, and that was not announced", effect->key, effect->happened);
    }
}
