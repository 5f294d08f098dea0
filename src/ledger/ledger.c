#include "ledger/ledger.h"

#include "audit/columns.h"
#include "base/mutant.h"

const char *const intent_state_names[] = {"pending", "claimed", "sent", "confirmed", "refused", "unknown", NULL};
const char *const ledger_op_names[] = {"claim", "sent",   "confirm", "fail", "extend", "release",
                                       "lapse", "expire", "submit",  "take", NULL};
const char *const ledger_verdict_names[] = {"proceed",      "replay",    "in_progress", "outcome_unknown", "key_reused",
                                            "refused",      "expired",   "done",        "fenced",          "differs",
                                            "already_sent", "not_found", NULL};

#define BIT(state) (1u << (state))
#define QUEUED_LOOK_US INT64_C(1000000) /* nobody knows when what is queued will be settled */

/* Which moves exist. A move to the same state is a longer lease, or a free intent that turns out to be ambiguous. */
static const unsigned allowed_moves[STATE_COUNT] = {
    [STATE_PENDING] = BIT(STATE_PENDING) | BIT(STATE_CLAIMED) | BIT(STATE_SENT) | BIT(STATE_CONFIRMED) | BIT(STATE_REFUSED) |
                      BIT(STATE_UNKNOWN),
    [STATE_CLAIMED] = BIT(STATE_CLAIMED) | BIT(STATE_SENT) | BIT(STATE_CONFIRMED) | BIT(STATE_REFUSED) | BIT(STATE_PENDING) |
                      BIT(STATE_UNKNOWN),
    [STATE_SENT] = BIT(STATE_SENT) | BIT(STATE_CONFIRMED) | BIT(STATE_REFUSED) | BIT(STATE_PENDING) | BIT(STATE_UNKNOWN),
    [STATE_UNKNOWN] = BIT(STATE_CONFIRMED) | BIT(STATE_REFUSED) | BIT(STATE_PENDING),
    [STATE_CONFIRMED] = 0,
    [STATE_REFUSED] = 0,
};

void ledger_key_hash(struct bytes pepper, struct bytes space, struct bytes workflow, struct bytes key,
                     uint8_t ret_h[KEY_HASH_SIZE])
{
    const struct bytes parts[] = {pepper, BYTES("semel-key-1"), space, workflow, key};
    struct hash hash = hash_parts(parts, sizeof parts / sizeof *parts);
    memcpy(ret_h, hash.at, KEY_HASH_SIZE);
}

/* The number of a lock; what kinds of locks there are never meets. */
static int64_t lock_number(struct bytes pepper, struct bytes kind, struct bytes a, struct bytes b)
{
    const struct bytes parts[] = {pepper, kind, a, b};
    struct hash hash = hash_parts(parts, sizeof parts / sizeof *parts);
    int64_t number;
    memcpy(&number, hash.at, sizeof number);
    return number;
}

int64_t ledger_turn(struct bytes pepper, struct bytes space, struct bytes thread)
{
    return lock_number(pepper, BYTES("semel-turn-1"), space, thread);
}

int64_t ledger_line(struct bytes pepper, struct bytes place, struct bytes line)
{
    return lock_number(pepper, BYTES("semel-line-1"), place, line);
}

void ledger_nonce_hash(struct bytes pepper, struct bytes nonce, uint8_t ret_hash[NONCE_HASH_SIZE])
{
    const struct bytes parts[] = {pepper, BYTES("semel-nonce-1"), nonce};
    struct hash hash = hash_parts(parts, sizeof parts / sizeof *parts);
    memcpy(ret_hash, hash.at, NONCE_HASH_SIZE);
}

static bool is_held(int64_t state)
{
    return state == STATE_CLAIMED || state == STATE_SENT;
}

bool ledger_is_settled(const struct intent *intent)
{
    return intent->exists && (intent->row.state == STATE_CONFIRMED || intent->row.state == STATE_REFUSED);
}

bool ledger_is_open(const struct intent *intent)
{
    bool unsure = intent->row.state == STATE_UNKNOWN && intent->row.settled == 0;
    bool queued = intent->row.state == STATE_PENDING && intent->queued;
    return intent->exists && (is_held(intent->row.state) || unsure || queued);
}

/* ---- the audit row ---- */

/* The result's bytes are in a table of their own; this way the chain covers them. */
static void write_result_hash(struct json_out *out, struct bytes result)
{
    struct hash hash = hash_sha256(result);
    char hex[2 * HASH_SIZE];
    bytes_to_hex(hash_bytes(&hash), hex);
    json_name_bytes(out, AUDIT_RESULT_HASH);
    json_text(out, (struct bytes){hex, sizeof hex});
}

/* The columns that changed since the last row, by name, with their new values; not those that follow from the row itself. */
static struct bytes changes_of(struct intent *intent, const struct row_decision *row, struct bytes evidence, struct arena *arena)
{
    struct row_intent expected = intent->before;
    intent_follow(&expected, row);
    expected.decision = intent->row.decision; /* is known only when the row has its place in the chain */
    struct buf buf;
    buf_init(&buf, 1 << 20);      /* more than every column at its limit, escaped */
    (void)buf_reserve(&buf, 512); /* and what most need, at once */
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    for (size_t i = 0; i < INTENT_ADD.param_count; i++) {
        const struct query_column *column = &INTENT_ADD.params[i];
        if (!column_equal(column, &expected, &intent->row))
            column_write(&out, column, &intent->row);
    }
    if (intent->row.result != intent->before.result && intent->row.result != 0)
        write_result_hash(&out, intent->result);
    if (evidence.at != NULL) {
        json_name(&out, "evidence");
        json_raw(&out, evidence);
    }
    json_close(&out, '}');
    struct bytes detail = buf.failed ? BYTES_NONE : arena_dup(arena, buf_bytes(&buf));
    buf_release(&buf);
    intent->before = intent->row;
    return detail;
}

static void record(struct ledger *ledger, struct intent *intent, const struct ledger_command *command, const char *reason)
{
    struct row_decision *row = audit_add(ledger->audit);
    if (row == NULL)
        return;
    row->space = intent->row.space;
    row->kind = bytes_of(ledger_op_names[command->op]);
    row->at = ledger->now.wall_us;
    row->run = ledger->now.run_us;
    row->intent = intent->row.id;
    row->fence = intent->row.fence;
    row->state = intent->row.state;
    row->policy = command->policy;
    row->body = intent->row.result;
    row->actor = command->actor;
    row->reason = bytes_of(reason);
    row->detail = changes_of(intent, row, command->evidence, ledger->arena);
    if (row->detail.at == NULL)
        ledger->audit->failed = true;
}

/* ---- moving ---- */

static void set_settled(struct ledger *ledger, struct intent *intent)
{
    intent->row.settled = ledger->now.wall_us;
    intent->row.expires = (MUTANT(EXPIRE_BY_WALL) ? ledger->now.wall_us : ledger->now.run_us) + intent->row.keep_us;
}

/* The only place that changes a state; it also writes the audit row. */
static void intent_move(struct ledger *ledger, struct intent *intent, enum intent_state to, const struct ledger_command *command,
                        const char *reason)
{
    if (!intent->fresh)
        ASSERT((allowed_moves[intent->row.state] & BIT(to)) != 0);
    intent->row.state = to;
    if (!is_held(to))
        intent->row.lease_until = 0;
    if (command->op != OP_CLAIM && !MUTANT(OLD_NONCE))
        intent->row.nonce = BYTES_NONE; /* whoever moved it has had the answer to its claim, or lost it */
    if (to == STATE_CONFIRMED || to == STATE_REFUSED)
        set_settled(ledger, intent);
    else if (to != STATE_UNKNOWN)
        intent->row.settled = intent->row.expires = 0;
    intent->row.epoch = ledger->epoch;
    if (MUTANT(PURGE_ACTIVE))
        intent->row.expires = ledger->now.run_us + intent->row.keep_us;
    intent->dirty = true;
    if (!(MUTANT(SKIP_AUDIT) && command->op == OP_LAPSE))
        record(ledger, intent, command, reason);
}

static void set_sent(struct ledger *ledger, struct intent *intent)
{
    if (intent->row.first_sent != 0)
        return;
    intent->row.first_sent = ledger->now.wall_us;
    intent->row.first_sent_run = ledger->now.run_us;
}

/* This attempt had no effect. What earlier ones may have had stays open, unless it is said of them too. */
static void had_no_effect(struct intent *intent, bool all_attempts)
{
    intent->row.ambiguous &= all_attempts ? 0 : AMBIGUOUS_EARLIER;
    if (intent->row.ambiguous == 0)
        intent->row.first_sent = intent->row.first_sent_run = 0;
}

/* How long ago it may first have left, by whichever clock says longer: this decides whether the destination may have forgotten our key. */
static int64_t age_at_most(const struct ledger *ledger, const struct intent *intent)
{
    int64_t wall = ledger->now.wall_us - intent->row.first_sent, run = ledger->now.run_us - intent->row.first_sent_run;
    return wall > run ? wall : run;
}

/* The destination deduplicates on our key, and surely still remembers it: stop at two thirds of its window. */
static bool retry_is_deduplicated(const struct ledger *ledger, const struct intent *intent)
{
    return intent->row.capability == CAPABILITY_IDEMPOTENT &&
           (MUTANT(NO_WINDOW) || age_at_most(ledger, intent) < intent->row.window_us / 3 * 2);
}

/* It may have happened. Who may act again is decided here and nowhere else. */
static void move_ambiguous(struct ledger *ledger, struct intent *intent, const struct ledger_command *command)
{
    bool lapse = command->op != OP_FAIL;
    intent->row.ambiguous |= AMBIGUOUS_NOW;
    if (retry_is_deduplicated(ledger, intent)) {
        intent_move(ledger, intent, STATE_PENDING, command, lapse ? "lapsed_after_sent_deduplicated" : "unknown_deduplicated");
        return;
    }
    bool no_help = intent->row.capability == CAPABILITY_NONE;
    if (no_help && (intent->row.on_unknown == ON_UNKNOWN_RETRY || MUTANT(RETRY_AMBIGUOUS))) {
        intent_move(ledger, intent, STATE_PENDING, command, lapse ? "lapsed_after_sent_may_repeat" : "unknown_may_repeat");
        return;
    }
    if (no_help && intent->row.on_unknown == ON_UNKNOWN_SKIP)
        set_settled(ledger, intent);
    intent_move(ledger, intent, STATE_UNKNOWN, command, lapse ? "lapsed_after_sent" : "holder_cannot_tell");
}

/* The database may have forgotten that this was sent, or done: nobody can tell from what is left. */
static bool may_be_lost(const struct ledger *ledger, const struct intent *intent, enum capability capability)
{
    return ledger->quarantine && capability != CAPABILITY_IDEMPOTENT && (!intent->exists || intent->row.epoch < ledger->epoch);
}

static void hold_as_lost(struct ledger *ledger, struct intent *intent, const struct ledger_command *command)
{
    intent->row.ambiguous |= AMBIGUOUS_EARLIER;
    intent_move(ledger, intent, STATE_UNKNOWN, command, "may_be_lost_by_failover");
}

/* A lease that ran out takes effect before anything else is decided, whoever notices it first. */
static void lapse_if_due(struct ledger *ledger, struct intent *intent, const struct ledger_command *command)
{
    if (!intent->exists || !is_held(intent->row.state) || intent->row.lease_until > ledger->now.run_us)
        return;
    struct ledger_command lapse = *command;
    lapse.op = OP_LAPSE;
    lapse.actor = BYTES("semel");
    lapse.evidence = BYTES_NONE;
    if (may_be_lost(ledger, intent, (enum capability)intent->row.capability))
        hold_as_lost(ledger, intent, &lapse);
    else if (intent->row.state == STATE_CLAIMED || MUTANT(NO_SENT))
        intent_move(ledger, intent, STATE_PENDING, &lapse, "lapsed_before_sent");
    else
        move_ambiguous(ledger, intent, &lapse);
}

/* ---- answers ---- */

static int64_t to_wall(const struct ledger *ledger, int64_t run_us)
{
    return run_us == 0 ? 0 : ledger->now.wall_us + (run_us - ledger->now.run_us);
}

static void answer(struct ledger *ledger, const struct intent *intent, enum ledger_verdict verdict, struct ledger_answer *ret)
{
    *ret = (struct ledger_answer){
        .verdict = verdict,
        .would = verdict,
        .intent = intent->row.id,
        .fence = intent->row.fence,
        .state = (enum intent_state)intent->row.state,
        .two_phase = intent->row.two_phase != 0,
        .lease_until_us = to_wall(ledger, intent->row.lease_until),
        .settled_us = intent->row.settled,
        .expires_us = to_wall(ledger, intent->row.expires),
        .result = intent->result,
        .error = intent->row.error,
        .key = intent->row.key,
        .workflow = intent->row.workflow,
    };
    if (verdict == VERDICT_PROCEED)
        downstream_key(intent->row.space, intent->row.workflow, intent->row.key, ret->downstream);
    ret->may_have_happened = verdict == VERDICT_PROCEED && intent->row.ambiguous != 0;
    if (verdict == VERDICT_PROCEED && MUTANT(NEW_KEY))
        ret->downstream[4] = (char)('g' + intent->row.fence % 16);
    if (is_held(intent->row.state))
        ret->lease_left_us = intent->row.lease_until - ledger->now.run_us;
}

/* In shadow mode what would have been refused goes ahead, and the answer says what would have happened. Its fence is 0, which
 * holds nothing: whatever this caller says later is taken without touching the claim of the true holder. */
static void let_through(enum ledger_verdict instead, struct ledger_answer *ret)
{
    ret->would = ret->verdict;
    ret->verdict = instead;
    ret->shadow = true;
    ret->fence = 0;
}

/* ---- claim ---- */

void ledger_claim_rules(struct ledger_command *claim, const struct workflow_rules *rules)
{
    claim->lease_us = rules->lease_us;
    claim->keep_us = rules->keep_us;
    claim->tombstone_us = rules->tombstone_us;
    claim->window_us = rules->window_us;
    claim->attempts_max = rules->attempts_max;
    claim->capability = rules->capability;
    claim->on_unknown = rules->on_unknown;
    claim->two_phase = rules->two_phase;
    claim->shadow = rules->mode == MODE_SHADOW;
}

static void take_rules(struct intent *intent, const struct ledger_command *command)
{
    struct row_intent *row = &intent->row;
    row->lease_us = command->lease_us;
    row->window_us = command->window_us;
    row->attempts_max = command->attempts_max;
    row->capability = command->capability;
    row->on_unknown = command->on_unknown;
    row->two_phase = command->two_phase;
    if (command->op == OP_TAKE)
        return; /* the rest was said by whoever submitted it */
    row->keep_us = command->keep_us;
    row->tombstone_us = command->tombstone_us;
    row->shadow = command->shadow;
    row->run = command->run;
    row->thread = command->thread;
    row->action = command->action;
}

/* A repetition that relies on the destination's memory must be over before that may end: it is given out within two thirds of the
 * window, so its lease may take the last third. */
static int64_t lease_allowed(const struct row_intent *row, int64_t lease_us)
{
    bool limited = row->capability == CAPABILITY_IDEMPOTENT && lease_us > row->window_us / 3 && !MUTANT(NO_WINDOW);
    return limited ? row->window_us / 3 : lease_us;
}

static void give_claim(struct ledger *ledger, struct intent *intent, const struct ledger_command *command, const char *reason)
{
    take_rules(intent, command);
    intent->row.lease_us = lease_allowed(&intent->row, command->lease_us);
    intent->row.ambiguous = intent->row.ambiguous != 0 ? AMBIGUOUS_EARLIER : 0;
    intent->row.nonce = command->nonce;
    intent->row.fence++;
    intent->row.attempts++;
    intent->row.lease_until = ledger->now.run_us + intent->row.lease_us;
    if (!command->two_phase)
        set_sent(ledger, intent);
    intent_move(ledger, intent, command->two_phase ? STATE_CLAIMED : STATE_SENT, command, reason);
}

/* Absent when there was no input. */
static struct bytes fingerprint_bytes(const struct fingerprint *fingerprint)
{
    static const struct hash none;
    bool absent = memcmp(fingerprint->whole.at, none.at, HASH_SIZE) == 0;
    return absent ? BYTES_NONE : hash_bytes(&fingerprint->whole);
}

static void create(struct ledger *ledger, struct intent *intent, const struct ledger_command *command)
{
    memcpy(intent->h, command->h, KEY_HASH_SIZE);
    intent->row = (struct row_intent){
        .id = id_next(ledger->ids, ledger->now.wall_us),
        .h = {(const char *)intent->h, KEY_HASH_SIZE},
        .space = command->space,
        .workflow = command->workflow,
        .key = command->key,
        .fingerprint = fingerprint_bytes(&command->fingerprint),
        .fingerprint_version = FINGERPRINT_VERSION,
        .fields = command->fingerprint.fields,
        .created = ledger->now.wall_us,
    };
    intent->before = (struct row_intent){0};
    bool lost = may_be_lost(ledger, intent, command->capability) && !command->shadow;
    intent->exists = intent->fresh = true;
    intent->buried = false;
    if (!lost && command->op == OP_CLAIM) {
        give_claim(ledger, intent, command, "first");
        return;
    }
    take_rules(intent, command);
    if (!lost) {
        intent->queued = true;
        intent_move(ledger, intent, STATE_PENDING, command, "accepted");
        return;
    }
    intent->row.fence = 1;
    set_sent(ledger, intent);
    hold_as_lost(ledger, intent, command);
}

static bool same_contents(const struct intent *intent, const struct ledger_command *command)
{
    return MUTANT(NO_FINGERPRINT) || intent->row.fingerprint_version != FINGERPRINT_VERSION ||
           bytes_eq(intent->row.fingerprint, fingerprint_bytes(&command->fingerprint));
}

static void answer_reused(struct ledger *ledger, const struct intent *intent, const struct ledger_command *command,
                          struct ledger_answer *ret)
{
    answer(ledger, intent, VERDICT_KEY_REUSED, ret);
    struct why why;
    if (fingerprint_differs(intent->row.fields, command->fingerprint.fields, ledger->arena, &ret->differs, &ret->differs_count,
                            &why) != OK)
        ledger->audit->failed = true;
}

/* What may have happened is given out again only under rules that allow it, those of the first send and those of today. */
static bool may_repeat(const struct ledger *ledger, const struct intent *intent, const struct ledger_command *command)
{
    if (command->capability == CAPABILITY_NONE && (command->on_unknown == ON_UNKNOWN_RETRY || MUTANT(RETRY_AMBIGUOUS)))
        return true;
    return command->capability == CAPABILITY_IDEMPOTENT && command->window_us >= intent->row.window_us &&
           retry_is_deduplicated(ledger, intent);
}

/* Nobody holds it. Before it is given out again: are there attempts left, and is a repetition still harmless? */
static void claim_pending(struct ledger *ledger, struct intent *intent, const struct ledger_command *command,
                          struct ledger_answer *ret)
{
    struct row_intent *row = &intent->row;
    if (may_be_lost(ledger, intent, command->capability)) {
        hold_as_lost(ledger, intent, command);
        answer(ledger, intent, VERDICT_OUTCOME_UNKNOWN, ret);
        return;
    }
    bool repeats = row->ambiguous != 0 && !may_repeat(ledger, intent, command);
    bool exhausted = command->give_up || row->attempts >= command->attempts_max;
    if (!repeats && !exhausted) {
        give_claim(ledger, intent, command, row->ambiguous != 0 ? "again_may_have_happened" : "again");
        answer(ledger, intent, VERDICT_PROCEED, ret);
        return;
    }
    if (row->ambiguous != 0) {
        bool horizon = repeats && row->capability == CAPABILITY_IDEMPOTENT && command->capability == CAPABILITY_IDEMPOTENT;
        intent_move(ledger, intent, STATE_UNKNOWN, command,
                    horizon   ? "destination_may_have_forgotten_the_key"
                    : repeats ? "rules_allow_no_repetition"
                              : "attempts_exhausted");
        answer(ledger, intent, VERDICT_OUTCOME_UNKNOWN, ret);
        return;
    }
    row->error = BYTES("all attempts are used up and none had an effect");
    intent_move(ledger, intent, STATE_REFUSED, command, "attempts_exhausted");
    answer(ledger, intent, VERDICT_REFUSED, ret);
}

/* The open one whose turn it is, the earliest of them; NULL when this one may begin. The batch has loaded all of them. */
static const struct intent *open_other(const struct ledger *ledger, const struct intent *intent,
                                       const struct ledger_command *command)
{
    const struct intent *found = NULL;
    for (size_t i = 0; command->in_turn && !MUTANT(OUT_OF_TURN) && i < ledger->intent_count; i++) {
        const struct intent *other = ledger->intents[i];
        const struct row_intent *row = &other->row;
        bool same = other != intent && bytes_eq(row->thread, command->thread) && bytes_eq(row->action, command->action) &&
                    bytes_eq(row->workflow, command->workflow) && bytes_eq(row->space, command->space);
        if (same && ledger_is_open(other) && (found == NULL || row->id < found->row.id))
            found = other;
    }
    return found;
}

/* Or of this one itself: semel has it in its queue. */
static void answer_other(struct ledger *ledger, const struct intent *intent, const struct intent *other,
                         struct ledger_answer *ret)
{
    answer(ledger, other, other->row.state == STATE_UNKNOWN ? VERDICT_OUTCOME_UNKNOWN : VERDICT_IN_PROGRESS, ret);
    ret->other = other != intent;
    if (!is_held(other->row.state))
        ret->lease_left_us = QUEUED_LOOK_US;
}

/* The holder itself asks again, because the answer to its claim was lost. After a loss of data it may not be the last holder. */
static bool is_asked_again(const struct ledger *ledger, const struct intent *intent, const struct ledger_command *command)
{
    if (command->op != OP_CLAIM || command->nonce.at == NULL || intent->row.nonce.at == NULL ||
        may_be_lost(ledger, intent, (enum capability)intent->row.capability))
        return false;
    bool before_sent = intent->row.state == STATE_CLAIMED || MUTANT(OLD_NONCE);
    return before_sent && (bytes_eq(command->nonce, intent->row.nonce) || MUTANT(ANY_NONCE));
}

static void claim_existing(struct ledger *ledger, struct intent *intent, const struct ledger_command *command,
                           struct ledger_answer *ret)
{
    const struct intent *other = NULL;
    bool again;
    switch ((enum intent_state)intent->row.state) {
    case STATE_PENDING:
        if (command->op == OP_CLAIM && !command->shadow)
            other = ledger_is_open(intent) && command->in_turn ? intent : open_other(ledger, intent, command);
        if (command->op == OP_SUBMIT)
            answer(ledger, intent, VERDICT_IN_PROGRESS, ret);
        else if (other != NULL)
            answer_other(ledger, intent, other, ret);
        else
            claim_pending(ledger, intent, command, ret);
        return;
    case STATE_CLAIMED:
    case STATE_SENT:
        again = is_asked_again(ledger, intent, command);
        answer(ledger, intent, again ? VERDICT_PROCEED : VERDICT_IN_PROGRESS, ret);
        ret->again = again;
        return;
    case STATE_CONFIRMED:
        answer(ledger, intent, VERDICT_REPLAY, ret);
        return;
    case STATE_REFUSED:
        answer(ledger, intent, VERDICT_REFUSED, ret);
        return;
    case STATE_UNKNOWN:
        answer(ledger, intent, VERDICT_OUTCOME_UNKNOWN, ret);
        return;
    case STATE_COUNT:
        break;
    }
    ASSERT(intent->row.state < STATE_COUNT);
}

/* Nobody has asked for it before; or, in shadow mode, so long ago that only a tombstone is left. */
static void claim_new(struct ledger *ledger, struct intent *intent, const struct ledger_command *command,
                      struct ledger_answer *ret)
{
    bool buried = intent->buried;
    const struct intent *other = open_other(ledger, intent, command);
    if (other != NULL && !command->shadow) {
        answer_other(ledger, intent, other, ret);
        return;
    }
    create(ledger, intent, command);
    answer(ledger, intent, intent->row.state == STATE_UNKNOWN ? VERDICT_OUTCOME_UNKNOWN : VERDICT_PROCEED, ret);
    if (buried || (other != NULL && command->op == OP_CLAIM)) {
        ret->would = buried ? VERDICT_EXPIRED : VERDICT_IN_PROGRESS;
        ret->shadow = true;
    }
}

static void claim(struct ledger *ledger, struct intent *intent, const struct ledger_command *command, struct ledger_answer *ret)
{
    bool buried = intent->buried && !intent->exists;
    if (buried && !command->shadow) {
        answer(ledger, intent, VERDICT_EXPIRED, ret);
        ret->settled_us = intent->buried_settled;
        ret->state = (enum intent_state)intent->buried_state;
        ret->key = command->key;
        ret->workflow = command->workflow;
        return;
    }
    if (!intent->exists) {
        claim_new(ledger, intent, command, ret);
        return;
    }
    if (same_contents(intent, command))
        claim_existing(ledger, intent, command, ret);
    else
        answer_reused(ledger, intent, command, ret);
    if (!command->shadow || ret->verdict == VERDICT_PROCEED)
        return;
    if (command->op == OP_SUBMIT) { /* whoever submits in shadow mode gives the repetition a key of its own */
        ret->shadow = true;
        return;
    }
    if (!intent->row.shadow) { /* it was claimed before the workflow was put into shadow mode */
        intent->row.shadow = 1;
        intent->dirty = true;
        record(ledger, intent, command, "shadow");
    }
    let_through(VERDICT_PROCEED, ret);
    ret->two_phase = command->two_phase;
    ret->lease_left_us = command->lease_us;
    ret->lease_until_us = ledger->now.wall_us + command->lease_us;
    downstream_key(intent->row.space, intent->row.workflow, intent->row.key, ret->downstream);
}

/* It is not any more what the one who takes it has looked at: its attempts and its time were counted without the one who had it
 * since, or there is nothing to give up. */
static bool is_stale(const struct intent *intent, const struct ledger_command *command)
{
    bool given = command->fence != intent->row.fence, proved = command->give_up && intent->row.ambiguous == 0;
    return intent->row.state == STATE_PENDING && (given || proved);
}

/* Whoever carries out what was submitted. */
static void take(struct ledger *ledger, struct intent *intent, const struct ledger_command *command, struct ledger_answer *ret)
{
    if (!intent->exists || !bytes_eq(intent->row.space, command->space))
        *ret = (struct ledger_answer){.verdict = VERDICT_NOT_FOUND, .would = VERDICT_NOT_FOUND};
    else if (is_stale(intent, command))
        answer(ledger, intent, VERDICT_IN_PROGRESS, ret);
    else
        claim_existing(ledger, intent, command, ret);
}

/* ---- what a holder says ---- */

static void say_sent(struct ledger *ledger, struct intent *intent, const struct ledger_command *command,
                     struct ledger_answer *ret)
{
    int64_t state = intent->row.state;
    if (state != STATE_CLAIMED && state != STATE_SENT) {
        answer(ledger, intent, VERDICT_FENCED, ret);
        return;
    }
    bool again = state == STATE_SENT && intent->row.two_phase;
    if (!again) {
        intent->row.two_phase = 1; /* from here on the holder has said so itself */
        set_sent(ledger, intent);
        intent_move(ledger, intent, STATE_SENT, command, "before_the_act");
    }
    answer(ledger, intent, VERDICT_DONE, ret);
    ret->again = again;
}

static void keep_result(struct ledger *ledger, struct intent *intent, const struct ledger_command *command)
{
    if (command->result.at == NULL)
        return;
    intent->result = command->result;
    intent->result_new = intent->row.result = id_next(ledger->ids, ledger->now.wall_us);
}

static void say_confirm(struct ledger *ledger, struct intent *intent, const struct ledger_command *command,
                        struct ledger_answer *ret)
{
    if (intent->row.state == STATE_CONFIRMED && MUTANT(LOSE_RESULT)) {
        intent->result = command->result;
        intent->result_new = intent->row.result = id_next(ledger->ids, ledger->now.wall_us);
        intent->dirty = true;
    }
    if (intent->row.state == STATE_CONFIRMED) {
        bool same = bytes_eq(intent->result, command->result);
        answer(ledger, intent, same ? VERDICT_DONE : VERDICT_DIFFERS, ret);
        ret->again = same;
        return;
    }
    if (intent->row.state == STATE_REFUSED) {
        answer(ledger, intent, VERDICT_FENCED, ret);
        return;
    }
    const char *reason = intent->row.state == STATE_SENT      ? "holder_confirmed"
                         : intent->row.state == STATE_UNKNOWN ? "late_confirm_settles_unknown"
                         : intent->row.state == STATE_PENDING ? "late_confirm_before_anyone_else"
                                                              : "confirmed_without_sent";
    set_sent(ledger, intent);
    keep_result(ledger, intent, command);
    intent->row.error = BYTES_NONE;
    intent_move(ledger, intent, STATE_CONFIRMED, command, reason);
    answer(ledger, intent, VERDICT_DONE, ret);
}

static void fail_without_effect(struct ledger *ledger, struct intent *intent, const struct ledger_command *command)
{
    had_no_effect(intent, command->all_attempts);
    if (!command->final)
        intent_move(ledger, intent, STATE_PENDING, command, "no_effect");
    else if (intent->row.ambiguous != 0)
        intent_move(ledger, intent, STATE_UNKNOWN, command, "final_but_an_earlier_attempt_may_have_happened");
    else {
        keep_result(ledger, intent, command); /* what the refusal said, for whoever asks again */
        intent_move(ledger, intent, STATE_REFUSED, command, "no_effect_final");
    }
}

static void say_fail(struct ledger *ledger, struct intent *intent, const struct ledger_command *command,
                     struct ledger_answer *ret)
{
    int64_t state = intent->row.state;
    if (state == STATE_CONFIRMED) {
        answer(ledger, intent, VERDICT_FENCED, ret);
        return;
    }
    bool earlier = state == STATE_UNKNOWN && (intent->row.ambiguous & AMBIGUOUS_EARLIER) != 0 && !command->all_attempts;
    bool said = command->effect_unknown ? state == STATE_UNKNOWN || (state == STATE_PENDING && intent->row.ambiguous != 0)
                                        : earlier || (state == STATE_PENDING && !command->final);
    if (state == STATE_REFUSED || said) { /* a repetition, or nothing that would settle it: harmless */
        answer(ledger, intent, VERDICT_DONE, ret);
        ret->again = true;
        return;
    }
    intent->row.error = command->error;
    if (!command->effect_unknown)
        fail_without_effect(ledger, intent, command);
    else
        move_ambiguous(ledger, intent, command);
    answer(ledger, intent, VERDICT_DONE, ret);
}

static void say_extend(struct ledger *ledger, struct intent *intent, const struct ledger_command *command,
                       struct ledger_answer *ret)
{
    /* A repetition is not carried past the destination's memory by heartbeats: its lease ends, and then it is unknown. */
    bool too_late =
        intent->row.ambiguous != 0 && intent->row.capability == CAPABILITY_IDEMPOTENT && !retry_is_deduplicated(ledger, intent);
    if (!is_held(intent->row.state) || too_late) {
        answer(ledger, intent, VERDICT_FENCED, ret);
        return;
    }
    intent->row.lease_us = lease_allowed(&intent->row, command->lease_us > 0 ? command->lease_us : intent->row.lease_us);
    intent->row.lease_until = ledger->now.run_us + intent->row.lease_us;
    intent_move(ledger, intent, (enum intent_state)intent->row.state, command, "heartbeat");
    answer(ledger, intent, VERDICT_DONE, ret);
}

static void say_release(struct ledger *ledger, struct intent *intent, const struct ledger_command *command,
                        struct ledger_answer *ret)
{
    int64_t state = intent->row.state;
    if (state == STATE_PENDING) {
        answer(ledger, intent, VERDICT_DONE, ret);
        ret->again = true;
        return;
    }
    if (!is_held(state)) {
        answer(ledger, intent, VERDICT_FENCED, ret);
        return;
    }
    if (state == STATE_SENT && intent->row.two_phase) {
        answer(ledger, intent, VERDICT_ALREADY_SENT, ret);
        return;
    }
    had_no_effect(intent, false);
    intent_move(ledger, intent, STATE_PENDING, command, "released");
    answer(ledger, intent, VERDICT_DONE, ret);
}

/* After a loss this holder may not be the last one: what it says can settle that it happened, but free nothing and begin nothing. */
static void lost_holder_says(struct ledger *ledger, struct intent *intent, const struct ledger_command *command,
                             struct ledger_answer *ret)
{
    bool begins = command->op == OP_SENT || command->op == OP_EXTEND;
    bool settled = intent->row.state == STATE_CONFIRMED || intent->row.state == STATE_REFUSED;
    bool held = intent->row.state == STATE_UNKNOWN;
    if (!settled && !held)
        hold_as_lost(ledger, intent, command);
    answer(ledger, intent, begins || settled ? VERDICT_FENCED : VERDICT_DONE, ret);
    ret->again = held;
}

static void holder_says(struct ledger *ledger, struct intent *intent, const struct ledger_command *command,
                        struct ledger_answer *ret)
{
    static void (*const says[])(struct ledger *, struct intent *, const struct ledger_command *, struct ledger_answer *) = {
        [OP_SENT] = say_sent,     [OP_CONFIRM] = say_confirm, [OP_FAIL] = say_fail,
        [OP_EXTEND] = say_extend, [OP_RELEASE] = say_release,
    };
    if (!intent->exists || !bytes_eq(intent->row.space, command->space)) {
        *ret = (struct ledger_answer){.verdict = VERDICT_NOT_FOUND, .would = VERDICT_NOT_FOUND};
        return;
    }
    bool lost = may_be_lost(ledger, intent, (enum capability)intent->row.capability) && command->op != OP_CONFIRM &&
                !command->all_attempts;
    if (command->fence != intent->row.fence && !MUTANT(NO_FENCE))
        answer(ledger, intent, VERDICT_FENCED, ret);
    else if (lost)
        lost_holder_says(ledger, intent, command, ret);
    else
        says[command->op](ledger, intent, command, ret);
    if (intent->row.shadow && ret->verdict != VERDICT_DONE)
        let_through(VERDICT_DONE, ret);
}

/* ---- what time says ---- */

static void expire(struct ledger *ledger, struct intent *intent, const struct ledger_command *command, struct ledger_answer *ret)
{
    bool due = intent->exists && intent->row.expires > 0 &&
               intent->row.expires <= (MUTANT(EXPIRE_BY_WALL) ? ledger->now.wall_us : ledger->now.run_us);
    *ret = (struct ledger_answer){.verdict = due ? VERDICT_DONE : VERDICT_NOT_FOUND};
    if (!due)
        return;
    ASSERT(MUTANT(PURGE_ACTIVE) || (!is_held(intent->row.state) && intent->row.state != STATE_PENDING));
    intent->drop = true;
    intent->exists = false;
    intent->buried = intent->row.tombstone_us > 0;
    intent->buried_settled = intent->row.settled;
    intent->buried_state = intent->row.state;
    record(ledger, intent, command, "kept_long_enough");
}

void ledger_apply(struct ledger *ledger, struct intent *intent, const struct ledger_command *command,
                  struct ledger_answer *ret_answer)
{
    lapse_if_due(ledger, intent, command);
    if (command->op == OP_CLAIM || command->op == OP_SUBMIT)
        claim(ledger, intent, command, ret_answer);
    else if (command->op == OP_TAKE)
        take(ledger, intent, command, ret_answer);
    else if (command->op == OP_EXPIRE)
        expire(ledger, intent, command, ret_answer);
    else if (command->op == OP_LAPSE)
        answer(ledger, intent, VERDICT_DONE, ret_answer);
    else
        holder_says(ledger, intent, command, ret_answer);
}
