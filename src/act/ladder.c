#include "act/ladder.h"

#include "base/mutant.h"
#include "base/when.h"

#define HELD_LOOK_US WHEN_SECOND

static struct ladder_advice advise(enum ladder_move move, int64_t at_us, const char *reason)
{
    return (struct ladder_advice){move, at_us, reason};
}

static struct ladder_advice after_caller(const struct effect_view *view)
{
    if (!view->ambiguous || MUTANT(ATTENDED_FORGOTTEN))
        return advise(LADDER_WAIT, OUTBOX_NEVER, "its caller decides about another try");
    if (view->caller_us > 0)
        return advise(LADDER_WAIT, view->wall_us + view->caller_us, "its caller may come back");
    return advise(LADDER_GIVE_UP, 0, "its caller did not come back");
}

static struct ladder_advice after_pending(const struct effect_view *view)
{
    bool too_often = view->tries >= view->tries_max && !MUTANT(TRIES_UNCOUNTED),
         too_late = view->deadline_us != 0 && view->wall_us >= view->deadline_us;
    if (view->attended && !MUTANT(ATTENDED_RESEND))
        return after_caller(view);
    if (!too_often && !too_late && !view->stranded)
        return advise(LADDER_DELIVER, 0, "due");
    const char *reason = view->stranded ? "its time is over, and its destination is not in the policy"
                         : too_late     ? "its time is over"
                                        : "all its attempts are used up";
    return advise(view->ambiguous ? LADDER_GIVE_UP : LADDER_DEAD, 0, reason);
}

static struct ladder_advice after_unknown(const struct effect_view *view)
{
    int64_t ripe_us = view->quiet_us + view->settle_us;
    if (view->skipped && view->run_us < view->quiet_us) /* those behind it in its line must not overtake what may still arrive */
        return advise(LADDER_WAIT, view->wall_us + (view->quiet_us - view->run_us), "an attempt may still arrive");
    if (view->skipped)
        return advise(LADDER_CLOSE, 0, "nobody is asked, by its rules");
    if (!view->can_ask || view->probes >= view->probes_max)
        return advise(LADDER_PERSON, 0,
                      view->can_ask ? "the destination's answers prove nothing" : "the destination cannot be asked");
    if (view->run_us < ripe_us && !MUTANT(PROBE_EARLY))
        return advise(LADDER_WAIT, view->wall_us + (ripe_us - view->run_us), "an attempt may still arrive");
    return advise(LADDER_ASK, 0, "the destination knows");
}

struct ladder_advice ladder_next(const struct effect_view *view)
{
    switch (view->state) {
    case STATE_PENDING:
        return after_pending(view);
    case STATE_CLAIMED:
    case STATE_SENT:
        return advise(LADDER_WAIT, view->wall_us + HELD_LOOK_US, "someone is at it");
    case STATE_UNKNOWN:
        return after_unknown(view);
    case STATE_CONFIRMED:
    case STATE_REFUSED:
        return advise(LADDER_CLOSE, 0, "settled");
    case STATE_COUNT:
        break;
    }
    ASSERT(view->state < STATE_COUNT);
    return advise(LADDER_CLOSE, 0, "");
}

int64_t ladder_backoff_us(int64_t tries, int64_t first_us, int64_t max_us, int64_t asked_us, uint64_t chance)
{
    int64_t wait_us = first_us;
    for (int64_t i = 1; i < tries && wait_us < max_us; i++)
        wait_us *= 2;
    if (wait_us > max_us)
        wait_us = max_us;
    wait_us = wait_us / 2 + (int64_t)(chance % (uint64_t)(wait_us / 2 + 1));
    return wait_us > asked_us ? wait_us : asked_us;
}

struct ladder_verdict ladder_judge(enum outcome outcome, bool attended, bool ambiguous, bool replays_refusals)
{
    switch (outcome) {
    case OUTCOME_DONE:
        return (struct ladder_verdict){.op = OP_CONFIRM};
    case OUTCOME_REFUSED:
        /* A refusal speaks of this attempt. When an earlier one may have happened it is no dead letter: said to be final, the
         * ledger calls it UNKNOWN. */
        return (struct ladder_verdict){
            .op = OP_FAIL, .final = replays_refusals || (ambiguous && !attended && !MUTANT(DEAD_AMBIGUOUS)), .dead = !attended};
    case OUTCOME_RETRY:
        return (struct ladder_verdict){.op = OP_FAIL};
    case OUTCOME_UNKNOWN:
        break;
    }
    return (struct ladder_verdict){.op = OP_FAIL, .effect_unknown = !MUTANT(GUESS_NO_EFFECT)};
}
