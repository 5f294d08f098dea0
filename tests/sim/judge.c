/* judge: the invariants, checked on what clients were told, on what happened at the provider, and on what is stored. */
#include <stdio.h>

#include "sim.h"

static struct key *key_of_intent(struct sim *sim, int64_t intent)
{
    for (int i = 0; i < sim->key_count; i++)
        if (sim->keys[i].intent == intent)
            return &sim->keys[i];
    return NULL;
}

static struct key *key_of(struct sim *sim, const struct engine_command *command)
{
    if (command->ledger.op != OP_CLAIM)
        return key_of_intent(sim, command->ledger.intent);
    for (int i = 0; i < sim->key_count; i++)
        if (bytes_is(command->ledger.key, sim->keys[i].text))
            return &sim->keys[i];
    return NULL;
}

/* Everyone who gets a positive answer for a key meant the same thing. */
void judge_contents(struct sim *sim, const char *name, const struct engine_command *command, int *contents)
{
    int given = command->ledger.fingerprint.whole.at[0] - 1;
    if (*contents < 0)
        *contents = given;
    else if (*contents != given)
        sim_violated(sim, "INV-5", "%s was positively answered for two different contents", name);
}

/* INV-2, INV-3, INV-4: one result, which came from an effect, for ever. */
static void check_result(struct sim *sim, struct key *key, struct bytes result)
{
    if (key->effects == 0)
        sim_violated(sim, "INV-3", "%s is confirmed, but nothing happened", key->text);
    if (key->confirmed_seen && !bytes_is(result, key->result))
        sim_violated(sim, "INV-2", "%s has the result %.*s, but before it was %s", key->text, BYTES_ARG(result), key->result);
    if (!key->confirmed_seen)
        key->confirmed_us = sim->now_us;
    key->confirmed_seen = true;
    snprintf(key->result, sizeof key->result, "%.*s", BYTES_ARG(result));
}

static bool was_confirmed_before(const struct key *key, int64_t asked_us)
{
    return key->confirmed_seen && asked_us > key->confirmed_us;
}

static void judge_proceed(struct sim *sim, struct key *key, const struct engine_command *command, int64_t asked_us)
{
    const struct ledger_answer *answer = &command->answer;
    mark(MARK_PROCEED);
    if (answer->fence > 1)
        mark(MARK_TAKEOVER);
    judge_contents(sim, key->text, command, &key->contents);
    if (was_confirmed_before(key, asked_us))
        sim_violated(sim, "INV-4", "%s was given out again after it was confirmed", key->text);
    if (answer->again)
        mark(MARK_CLAIM_AGAIN);
    if (answer->fence > ATTEMPTS_MAX)
        sim_violated(sim, "INV-17", "%s was given out more than %d times", key->text, ATTEMPTS_MAX);
    key->intent = answer->intent;
}

static void judge_expired(struct sim *sim, struct key *key, const struct ledger_answer *answer)
{
    mark(MARK_EXPIRED);
    if (key->settled_us > 0 && sim->now_us - key->settled_us < KEEP_US)
        sim_violated(sim, "INV-15", "%s was forgotten after %lld ms", key->text,
                     (long long)((sim->now_us - key->settled_us) / 1000));
    if (answer->state != STATE_CONFIRMED && answer->state != STATE_REFUSED)
        sim_violated(sim, "INV-15", "%s was forgotten while it was %s", key->text, intent_state_names[answer->state]);
}

static void judge_claim(struct sim *sim, struct key *key, const struct engine_command *command, int64_t asked_us)
{
    key->accepted = true;
    switch (command->answer.verdict) {
    case VERDICT_PROCEED:
        judge_proceed(sim, key, command, asked_us);
        break;
    case VERDICT_REPLAY:
        mark(MARK_REPLAY);
        if (command->waited_until_us > 0)
            mark(MARK_WAITED);
        judge_contents(sim, key->text, command, &key->contents);
        check_result(sim, key, command->answer.result);
        break;
    case VERDICT_IN_PROGRESS:
        mark(MARK_IN_PROGRESS);
        judge_contents(sim, key->text, command, &key->contents);
        break;
    case VERDICT_OUTCOME_UNKNOWN:
        mark(MARK_UNKNOWN);
        key->unknown_seen = true;
        key->intent = command->answer.intent;
        key->fence_unknown = command->answer.fence;
        if (was_confirmed_before(key, asked_us))
            sim_violated(sim, "INV-4", "%s is unknown after it was confirmed", key->text);
        break;
    case VERDICT_KEY_REUSED:
        mark(MARK_KEY_REUSED);
        if (key->contents == command->ledger.fingerprint.whole.at[0] - 1)
            sim_violated(sim, "INV-5", "%s was refused to the contents it was first used for", key->text);
        break;
    case VERDICT_REFUSED:
        mark(MARK_REFUSED);
        if (key->effects > 0)
            sim_violated(sim, "INV-3", "%s is refused, but it happened", key->text);
        break;
    case VERDICT_EXPIRED:
        judge_expired(sim, key, &command->answer);
        break;
    case VERDICT_DONE:
    case VERDICT_FENCED:
    case VERDICT_DIFFERS:
    case VERDICT_ALREADY_SENT:
    case VERDICT_NOT_FOUND:
        sim_violated(sim, "INV-9", "a claim was answered with %s", ledger_verdict_names[command->answer.verdict]);
    }
}

static void judge_said(struct sim *sim, struct key *key, const struct engine_command *command)
{
    const struct ledger_answer *answer = &command->answer;
    if (answer->verdict == VERDICT_FENCED)
        mark(MARK_FENCED);
    if (answer->verdict == VERDICT_NOT_FOUND && key->settled_us == 0)
        sim_violated(sim, "INV-6", "the intent of %s has gone", key->text);
    if (answer->verdict != VERDICT_DONE)
        return;
    if (answer->again && command->ledger.op == OP_CONFIRM)
        mark(MARK_CONFIRM_AGAIN);
    if (command->ledger.op == OP_EXTEND)
        mark(MARK_EXTENDED);
    if (command->ledger.op == OP_RELEASE)
        mark(MARK_RELEASED);
    if (command->ledger.op == OP_CONFIRM)
        check_result(sim, key, command->ledger.result);
}

void judge_answer(struct sim *sim, struct holder *holder, const struct engine_command *command, int64_t asked_us)
{
    struct key *key = key_of(sim, command);
    if (key == NULL)
        return;
    sim_say(sim, "holder %d: %s %s fence %lld -> %s", holder->number, ledger_op_names[command->ledger.op], key->text,
            (long long)command->answer.fence,
            command->status == OK ? ledger_verdict_names[command->answer.verdict] : command->why.text);
    if (command->status != OK)
        return;
    if (command->ledger.op == OP_CLAIM)
        judge_claim(sim, key, command, asked_us);
    else
        judge_said(sim, key, command);
}

/* Replies overtake each other on their way; the order of fences is judged where they are given out. */
static void check_fence(struct sim *sim, struct key *key, const struct engine_command *command)
{
    int64_t fence = command->answer.fence;
    bool given = command->ledger.op == OP_CLAIM && command->answer.verdict == VERDICT_PROCEED;
    if (given && (command->answer.again ? fence < key->fence_given : fence <= key->fence_given))
        sim_violated(sim, "INV-11", "%s was given out with fence %lld after fence %lld", key->text, (long long)fence,
                     (long long)key->fence_given);
    if (given)
        key->fence_given = fence;
    else if (command->ledger.op != OP_CLAIM && command->answer.verdict == VERDICT_DONE &&
             command->ledger.fence < key->fence_given)
        sim_violated(sim, "INV-11", "%s with fence %lld was taken for %s after fence %lld was given out",
                     ledger_op_names[command->ledger.op], (long long)command->ledger.fence, key->text,
                     (long long)key->fence_given);
}

void judge_processed(struct sim *sim, const struct engine_command *command)
{
    struct key *key = command->status == OK ? key_of(sim, command) : NULL;
    if (key != NULL)
        check_fence(sim, key, command);
    bool settles = command->ledger.op == OP_CONFIRM || command->ledger.op == OP_FAIL;
    /* A repetition was settled earlier, nobody knows when: the reply may have died with the process. */
    if (key != NULL && settles && command->answer.verdict == VERDICT_DONE && !command->answer.again && key->settled_us == 0 &&
        (command->answer.state == STATE_CONFIRMED || command->answer.state == STATE_REFUSED))
        key->settled_us = sim->now_us;
}

void judge_effect(struct sim *sim, struct key *key)
{
    if (key->kind != PROVIDER_AT_LEAST_ONCE && key->effects > 1)
        sim_violated(sim, "INV-1", "%s happened %d times", key->text, key->effects);
}

/* ---- what is stored ---- */

struct story {
    struct sim *sim;
    struct row_intent rebuilt;
    int64_t fence;
    bool sent;         /* this fence was durably sent */
    int announcements; /* that a duplicate may follow */
    size_t transitions;
};

static bool reason_is(const struct row_decision *row, const char *reason)
{
    return bytes_is(row->reason, reason);
}

static void note_marks(const struct row_decision *row)
{
    if (reason_is(row, "lapsed_before_sent"))
        mark(MARK_LAPSE_BEFORE_SENT);
    if (bytes_starts(row->reason, BYTES("lapsed_after_sent")))
        mark(MARK_LAPSE_AFTER_SENT);
    if (reason_is(row, "destination_may_have_forgotten_the_key"))
        mark(MARK_HORIZON);
    if (bytes_starts(row->reason, BYTES("late_confirm")))
        mark(MARK_LATE_CONFIRM);
}

static enum status read_story(void *ctx, const void *at, struct why *why)
{
    struct story *story = ctx;
    const struct row_decision *row = at;
    bool transition = false;
    for (size_t i = 0; ledger_op_names[i] != NULL; i++)
        transition = transition || bytes_is(row->kind, ledger_op_names[i]);
    if (!transition)
        return OK;
    story->transitions++;
    if (row->fence == story->fence && row->state == STATE_SENT)
        story->sent = true;
    if (reason_is(row, "lapsed_after_sent_may_repeat") || reason_is(row, "unknown_may_repeat") ||
        reason_is(row, "lapsed_after_sent_deduplicated"))
        story->announcements++;
    struct row_decision copy = *row;
    copy.detail = arena_dup(&story->sim->arena, row->detail);
    return intent_fold(&story->rebuilt, &copy, &story->sim->arena, why);
}

static struct story story_of(struct sim *sim, int64_t intent, int64_t fence)
{
    struct story story = {.sim = sim, .fence = fence};
    struct q_decision_list_intent list = {BYTES("main"), intent, 0, 10000};
    struct why why = {""};
    if (store_run(engine_store(sim->engine), &DECISION_LIST_INTENT, &list, 1, read_story, &story, NULL, &why) != OK && !sim->dead)
        sim_violated(sim, "INV-8", "the audit cannot be read: %s", why.text);
    return story;
}

/* INV-12: nothing leaves without a durable SENT of the same fence. */
void judge_send(struct sim *sim, struct holder *holder)
{
    if (sim->engine == NULL)
        return;
    int countdown = sim->store_countdown;
    sim->store_countdown = 0;
    if (!story_of(sim, holder->intent, holder->fence).sent)
        sim_violated(sim, "INV-12", "holder %d acts on %s without a durable sent", holder->number, holder->key->text);
    sim->store_countdown = countdown;
}

static void check_chain(struct sim *sim)
{
    struct audit_verified verified;
    struct why why = {""};
    if (audit_verify(engine_store(sim->engine), &verified, &why) != OK) {
        if (!sim->dead)
            sim_violated(sim, "INV-8", "the audit cannot be read: %s", why.text);
    } else if (verified.bad_id != 0) {
        sim_violated(sim, "INV-8", "the audit chain is broken: %s", verified.bad);
    }
}

void judge_boot(struct sim *sim)
{
    if (sim_below(sim, 4) == 0)
        check_chain(sim);
    judge_inbox(sim);
    judge_effects_boot(sim);
}

void judge_read(struct sim *sim, const struct query *query, const void *params, store_row_fn *take, void *ctx)
{
    struct why why = {""};
    int countdown = sim->store_countdown;
    sim->store_countdown = 0;
    if (store_run(engine_store(sim->engine), query, params, 1, take, ctx, NULL, &why) != OK && !sim->dead)
        sim_violated(sim, "INV-9", "the data cannot be read: %s", why.text);
    sim->store_countdown = countdown;
}

static enum status take_intent(void *ctx, const void *row, struct why *why)
{
    struct stored *stored = ctx;
    struct intent copy = {0};
    TRY(intent_take(&copy, row, &stored->sim->arena, why));
    stored->intent = copy.row;
    stored->has_intent = true;
    return OK;
}

static enum status take_tombstone(void *ctx, const void *row, struct why *why)
{
    (void)why, (void)row;
    ((struct stored *)ctx)->buried = true;
    return OK;
}

struct stored judge_load(struct sim *sim, struct bytes workflow, const char *key)
{
    struct stored stored = {.sim = sim};
    uint8_t h[KEY_HASH_SIZE];
    ledger_key_hash(engine_pepper(sim->engine), BYTES("main"), workflow, bytes_of(key), h);
    struct q_intent_look look = {{(const char *)h, KEY_HASH_SIZE}};
    struct q_tombstone_get stone = {look.h};
    judge_read(sim, &INTENT_LOOK, &look, take_intent, &stored);
    judge_read(sim, &TOMBSTONE_GET, &stone, take_tombstone, &stored);
    return stored;
}

static void check_rebuilt(struct sim *sim, const char *name, const struct row_intent *stored, const struct row_intent *rebuilt)
{
    for (size_t i = 0; i < INTENT_ADD.param_count; i++) {
        const struct query_column *column = &INTENT_ADD.params[i];
        const char *a = (const char *)stored + column->offset, *b = (const char *)rebuilt + column->offset;
        bool same = column->type == COLUMN_INT ? *(const int64_t *)a == *(const int64_t *)b
                                               : bytes_eq(*(const struct bytes *)a, *(const struct bytes *)b);
        if (!same) {
            sim_violated(sim, "INV-8", "the audit of %s says another %s than its row", name, column->name);
            return;
        }
    }
}

void judge_rebuilt(struct sim *sim, const char *name, const struct row_intent *stored)
{
    struct story story = story_of(sim, stored->id, stored->fence);
    check_rebuilt(sim, name, stored, &story.rebuilt);
}

int judge_announcements(struct sim *sim, int64_t intent)
{
    return story_of(sim, intent, 0).announcements;
}

void judge_settled(struct sim *sim, const char *name, const struct row_intent *row, int happened, bool confirmed_seen)
{
    if (row->state == STATE_REFUSED && happened > 0)
        sim_violated(sim, "INV-3", "%s is refused, but it happened", name);
    if (row->state == STATE_CONFIRMED && happened == 0)
        sim_violated(sim, "INV-3", "%s is confirmed, but nothing happened", name);
    if (confirmed_seen && row->state != STATE_CONFIRMED)
        sim_violated(sim, "INV-4", "%s was confirmed and is now %s", name, intent_state_names[row->state]);
}

static void check_row(struct sim *sim, struct key *key, const struct row_intent *row)
{
    struct story story = story_of(sim, row->id, row->fence);
    check_rebuilt(sim, key->text, row, &story.rebuilt);
    judge_settled(sim, key->text, row, key->effects, key->confirmed_seen);
    if (row->attempts > ATTEMPTS_MAX)
        sim_violated(sim, "INV-17", "%s has %lld attempts", key->text, (long long)row->attempts);
    bool held = row->state == STATE_CLAIMED || row->state == STATE_SENT;
    int64_t overdue = engine_to_wall(sim->engine, row->lease_until);
    if (held && sim->env.wall_us(&sim->env) - overdue > WHEN_SECOND)
        sim_violated(sim, "INV-7", "%s is still held a second after its lease", key->text);
    if (key->kind == PROVIDER_AT_LEAST_ONCE && key->effects > 1) {
        mark(MARK_ANNOUNCED_DUPLICATE);
        if (story.announcements < key->effects - 1)
            sim_violated(sim, "INV-1b", "%s happened %d times, but only %d repetitions were announced", key->text, key->effects,
                         story.announcements);
    }
}

static enum status take_card(void *ctx, const void *row, struct why *why)
{
    (void)why;
    const struct row_exception *card = row;
    *(bool *)ctx = card->owner.len > 0 && card->due > 0;
    return OK;
}

bool judge_is_owned(struct sim *sim, int64_t intent, enum exception_kind kind)
{
    bool owned = false;
    struct q_exception_open_of find = {intent, 0, 0, kind};
    judge_read(sim, &EXCEPTION_OPEN_OF, &find, take_card, &owned);
    return owned;
}

/* INV-21: what nobody can tell is somebody's, until a time; what is settled is nobody's any more. */
static void check_owner(struct sim *sim, struct key *key, const struct row_intent *row)
{
    bool wanted = row->state == STATE_UNKNOWN && row->settled == 0;
    bool owned = judge_is_owned(sim, row->id, EXCEPTION_UNKNOWN_OUTCOME);
    if (wanted && !owned)
        sim_violated(sim, "INV-21", "%s is unknown, and nobody's", key->text);
    if (owned && !wanted)
        sim_violated(sim, "INV-21", "%s is %s, and still somebody's", key->text, intent_state_names[row->state]);
    if (owned)
        mark(MARK_EXCEPTION);
}

static enum status count_marks(void *ctx, const void *row, struct why *why)
{
    (void)ctx, (void)why;
    note_marks(row);
    judge_effect_mark(row);
    return OK;
}

void judge_end(struct sim *sim)
{
    if (sim->engine == NULL) {
        sim_violated(sim, "INV-7", "the daemon is not up at the end");
        return;
    }
    sim->store_countdown = 0;
    check_chain(sim);
    for (int i = 0; i < sim->key_count; i++) {
        struct key *key = &sim->keys[i];
        struct stored stored = judge_load(sim, BYTES("w"), key->text);
        if (!stored.has_intent && !stored.buried && (key->accepted || key->effects > 0))
            sim_violated(sim, "INV-6", "%s is not known any more", key->text);
        if (stored.has_intent) {
            check_row(sim, key, &stored.intent);
            check_owner(sim, key, &stored.intent);
            judge_rebuilt_rows(sim, key->text, stored.intent.id);
        }
    }
    judge_inbox_end(sim);
    judge_effects_end(sim);
    struct q_decision_chain all = {0, 0, 10000};
    struct why why;
    if (store_run(engine_store(sim->engine), &DECISION_CHAIN, &all, 1, count_marks, NULL, NULL, &why) != OK)
        sim_violated(sim, "INV-8", "the audit cannot be read: %s", why.text);
}
