#include "cli/story.h"

#include "cli/print.h"

/* clang-format off */
static const struct {
    const char *kind, *reason, *sentence; /* reason NULL: any */
} moves[] = {
    {"claim", "first", "claimed for the first time"},
    {"claim", "again", "claimed again"},
    {"claim", "again_may_have_happened", "claimed again, although an earlier attempt may have happened"},
    {"claim", "may_be_lost_by_failover", "held: the database failed over and may have forgotten that it was done"},
    {"lapse", "may_be_lost_by_failover", "held: the database failed over and may have forgotten that it was sent"},
    {"claim", "rules_allow_no_repetition", "not given out again: it may have happened, and the policy allows no repetition"},
    {"claim", "destination_may_have_forgotten_the_key", "not given out again: it may have happened, and the destination may have forgotten our key"},
    {"claim", "attempts_exhausted", "not given out again: all attempts are used up"},
    {"sent", "before_the_act", "about to act: from here on it may have happened"},
    {"confirm", "holder_confirmed", "confirmed: it happened"},
    {"confirm", "late_confirm_settles_unknown", "confirmed late: it did happen, and the doubt is settled"},
    {"confirm", "late_confirm_before_anyone_else", "confirmed late, before anyone else had begun: it happened"},
    {"confirm", "confirmed_without_sent", "confirmed without having been sent first: it happened"},
    {"fail", "no_effect", "failed without effect: another attempt may follow"},
    {"fail", "no_effect_final", "failed without effect, for good"},
    {"fail", "final_but_an_earlier_attempt_may_have_happened", "failed for good, but an earlier attempt may have happened"},
    {"fail", "holder_cannot_tell", "failed, and the holder cannot tell whether it happened"},
    {"fail", "unknown_deduplicated", "failed, it may have happened; the destination recognises our key, so another attempt is safe"},
    {"fail", "unknown_may_repeat", "failed, it may have happened; the policy accepts a repetition"},
    {"extend", "heartbeat", "still at work: the lease was made longer"},
    {"release", "released", "given back untouched"},
    {"lapse", "lapsed_before_sent", "the lease ran out before anything was sent: free for the next"},
    {"lapse", "lapsed_after_sent", "the lease ran out after it was sent: nobody can tell whether it happened"},
    {"lapse", "lapsed_after_sent_deduplicated", "the lease ran out after it was sent; the destination recognises our key, so another attempt is safe"},
    {"lapse", "lapsed_after_sent_may_repeat", "the lease ran out after it was sent; the policy accepts a repetition"},
    {"submit", "accepted", "accepted, to be delivered"},
    {"submit", "may_be_lost_by_failover", "held: the database failed over and may have forgotten that it was done"},
    {"take", "again", "taken to be sent: from here on it may have happened"},
    {"take", "again_may_have_happened", "taken to be sent again, although an earlier attempt may have happened"},
    {"take", "may_be_lost_by_failover", "held: the database failed over and may have forgotten that it was sent"},
    {"take", "rules_allow_no_repetition", "not sent again: it may have happened, and the policy allows no repetition"},
    {"take", "destination_may_have_forgotten_the_key", "not sent again: it may have happened, and the destination may have forgotten our key"},
    {"take", "attempts_exhausted", "not sent again: all attempts are used up"},
    {"raise", NULL, "a person was asked"},
    {"resolve", NULL, "what a person was asked is settled"},
    {"assign", NULL, "the question was given to someone else"},
    {"probe", NULL, "the destination was asked, and its answer proves nothing"},
    {"retry", NULL, "a person said that it is to be sent again"},
    {"drop", NULL, "a person put it away"},
    {"outbox", NULL, "its place in the outbox was changed"},
    {"expire", "kept_long_enough", "kept long enough: the result was dropped, only the fact is remembered"},
};

/* Duplicates: one row stands for `count` of them. */
static const struct {
    const char *kind, *one, *many, *would;
} duplicates[] = {
    {"proceed", "the same claim was sent again and given the same answer", "times the same claim was sent again and given the same answer", "would have been given the same answer"},
    {"replay", "a duplicate was given the result", "duplicates were given the result", "would have been given the result"},
    {"in_progress", "a duplicate was told that it is in progress", "duplicates were told that it is in progress", "would have been told to wait"},
    {"outcome_unknown", "a duplicate was told that the outcome is unknown", "duplicates were told that the outcome is unknown", "would have been stopped: outcome unknown"},
    {"key_reused", "a claim with other contents under this key was refused", "claims with other contents under this key were refused", "would have been refused: other contents under this key"},
    {"refused", "a duplicate was refused", "duplicates were refused", "would have been refused"},
    {"expired", "a late duplicate was refused", "late duplicates were refused", "would have been refused as too late"},
    {"fenced", "a former holder was turned away", "calls of former holders were turned away", "would have been turned away"},
    {"differs", "a second confirmation with another result was refused", "confirmations with another result were refused", "would have been refused: another result"},
    {"already_sent", "a release was refused: it was already sent", "releases were refused: it was already sent", "would have been refused: already sent"},
};
/* clang-format on */

static bool tell_move(struct bytes kind, struct bytes reason, struct buf *out)
{
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        if (bytes_is(kind, moves[i].kind) && (moves[i].reason == NULL || bytes_is(reason, moves[i].reason))) {
            buf_add_cstr(out, moves[i].sentence);
            return true;
        }
    return false;
}

static bool tell_duplicate(struct bytes kind, struct bytes reason, int64_t count, struct buf *out)
{
    for (size_t i = 0; i < sizeof duplicates / sizeof *duplicates; i++) {
        if (!bytes_is(kind, duplicates[i].kind))
            continue;
        if (bytes_is(reason, "shadow"))
            buf_printf(out, "shadow mode let %lld through that %s", (long long)count, duplicates[i].would);
        else if (bytes_is(reason, "another_question"))
            buf_add_cstr(out, "an answer to another question of the conversation was told to wait for this one");
        else if (count > 1)
            buf_printf(out, "%lld %s", (long long)count, duplicates[i].many);
        else
            buf_add_cstr(out, duplicates[i].one);
        return true;
    }
    return false;
}

/* A kind or a reason that this program does not know yet is still told. */
static void tell_plainly(struct bytes kind, struct bytes reason, struct buf *out)
{
    print_clean(out, kind);
    if (reason.len == 0)
        return;
    buf_add_cstr(out, ": ");
    size_t start = out->len;
    print_clean(out, reason);
    for (size_t i = start; i < out->len; i++)
        if (out->at[i] == '_')
            out->at[i] = ' ';
}

void story_tell(const struct json *decision, struct buf *out)
{
    struct bytes kind = json_get_text(decision, "kind"), reason = json_get_text(decision, "reason"),
                 actor = json_get_text(decision, "actor");
    int64_t fence = json_get_i64(decision, "fence"), count = json_get_i64(decision, "count");
    if (!tell_move(kind, reason, out) && !tell_duplicate(kind, reason, count > 0 ? count : 1, out))
        tell_plainly(kind, reason, out);
    const struct json *error = json_find(decision, BYTES("changes.error"));
    if (error != NULL && error->type == JSON_STRING && error->text.len > 0) {
        buf_add_cstr(out, ": ");
        print_clean(out, error->text);
    }
    buf_printf(out, " (fence %lld", (long long)fence);
    if (actor.len > 0) {
        buf_add_cstr(out, ", by ");
        print_clean(out, actor);
    }
    buf_add_char(out, ')');
}

/* ---- the next claim ---- */

enum ambiguity { REPEAT_RECOGNISED, REPEAT_ACCEPTED, REPEAT_NEVER };

/* What follows from a lease that ran out after sending, as far as the intent's own rules say. */
static enum ambiguity ambiguity_of(const struct json *intent)
{
    struct bytes capability = json_get_text(intent, "capability");
    if (bytes_is(capability, "idempotent"))
        return REPEAT_RECOGNISED;
    return bytes_is(capability, "none") && bytes_is(json_get_text(intent, "on_unknown"), "retry") ? REPEAT_ACCEPTED
                                                                                                  : REPEAT_NEVER;
}

static void next_lapsed_sent(const struct json *intent, struct buf *out)
{
    static const char *const sentences[] = {
        [REPEAT_RECOGNISED] =
            "The lease has run out. It may have happened; the destination knows our key, so the next claim goes ahead.",
        [REPEAT_ACCEPTED] =
            "The lease has run out. It may have happened; the policy accepts a repetition, so the next claim goes ahead.",
        [REPEAT_NEVER] = "The lease has run out. It may have happened, so the next claim is told that the outcome is unknown.",
    };
    buf_add_cstr(out, sentences[ambiguity_of(intent)]);
}

static void next_held(const struct json *intent, const char *until, bool lapsed, struct buf *out)
{
    if (!lapsed)
        buf_printf(out, "Someone holds it until %s. The next claim is told that it is in progress, and by when to ask again.",
                   until);
    else if (bytes_is(json_get_text(intent, "state"), "claimed"))
        buf_add_cstr(out, "The lease has run out before anything was sent, so the next claim goes ahead.");
    else
        next_lapsed_sent(intent, out);
}

static void next_unknown(const struct json *intent, struct buf *out)
{
    struct bytes id = json_get_text(intent, "intent");
    long long fence = (long long)json_get_i64(intent, "fence");
    if (bytes_is(json_get_text(intent, "on_unknown"), "skip")) {
        buf_add_cstr(
            out,
            "Nobody can tell whether it happened, and the policy does not repeat it. The next claim is told that the outcome is "
            "unknown. If you find out: ");
    } else {
        buf_add_cstr(out, "Nobody can tell whether it happened. The next claim is told so, until someone finds out and says: ");
    }
    buf_add_cstr(out, "semel confirm ");
    print_clean(out, id);
    buf_printf(out, " --fence %lld, or semel fail ", fence);
    print_clean(out, id);
    buf_printf(out, " --fence %lld --effect none", fence);
}

static void next_enforced(const struct json *intent, const char *until, bool lapsed, struct buf *out)
{
    struct bytes state = json_get_text(intent, "state");
    if (bytes_is(state, "pending"))
        buf_printf(out, "Nobody holds it. The next claim goes ahead with fence %lld, if attempts are left.",
                   (long long)json_get_i64(intent, "fence") + 1);
    else if (bytes_is(state, "claimed") || bytes_is(state, "sent"))
        next_held(intent, until, lapsed, out);
    else if (bytes_is(state, "confirmed"))
        buf_add_cstr(out, "It happened once. The next claim is given the result and does nothing.");
    else if (bytes_is(state, "refused"))
        buf_add_cstr(out, "It did not happen and will not. The next claim is refused; something new needs a new key.");
    else if (bytes_is(state, "unknown"))
        next_unknown(intent, out);
    else
        buf_add_cstr(out, "Its state is one that this program does not know. Use the daemon's own version of semel.");
}

void story_next(const struct json *intent, const char *until, bool lapsed, struct buf *out)
{
    if (bytes_is(json_get_text(intent, "mode"), "shadow"))
        buf_add_cstr(out, "Shadow mode lets the next claim go ahead in any case. Enforced, it would be: ");
    next_enforced(intent, until, lapsed, out);
}
