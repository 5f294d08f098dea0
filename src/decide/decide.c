#include "decide/decide.h"

#include "base/mutant.h"
#include "base/when.h"

/* How long a short text is the same one: a double click, or the same few words by two channels. */
#define SHORT_US (10 * WHEN_MINUTE)

/* Thousandths of likeness. */
enum { SAME_CERTAIN = 950, SAME_LIKELY = 800, QUOTED_CERTAIN = 900, QUOTED_LIKELY = 600 };

const char *const event_verdict_names[] = {"waiting", "accepted", "suppressed", "held", "muted", "ignored", "released", NULL};

static const struct {
    const char *reason, *sentence;
} sentences[] = {
    {"new", "Nothing like it came before."},
    {"same_delivery", "The sender gave the same delivery id to an earlier event of this source."},
    {"same_key", "An earlier event has the same business key."},
    {"same_payload", "An earlier event of this source had the same body, within its window."},
    {"same_content", "The same person said the same in this source, within its window."},
    {"same_content_elsewhere", "The same person said the same by another channel."},
    {"relayed", "It tells of a message that came by another channel before."},
    {"nearly_same", "The same person said nearly the same before."},
    {"maybe_same", "It looks like a message that came before, but not surely."},
    {"maybe_short", "The same few words came from the same person by another channel moments ago."},
    {"automatic", "A machine wrote it; it must not be answered."},
    {"unreadable", "What is stored of it cannot be read."},
    {"muted", "Its source is muted."},
    {"limited", "Its source has sent more than it may for now."},
    {"loop", "There were too many messages in this conversation in a short time."},
    {"cannot_forward", "It is to go on, but what forwards it cannot be made."},
    {"released", "A person let it through."},
};

const char *decide_sentence(struct bytes reason)
{
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
        if (bytes_is(reason, sentences[i].reason))
            return sentences[i].sentence;
    return NULL;
}

static struct decide_verdict verdict_of(enum event_verdict verdict, const char *reason, int score,
                                        const struct candidate *candidate)
{
    return (struct decide_verdict){verdict, reason, score, candidate != NULL ? candidate->event : 0, candidate};
}

static bool is_within(const struct decide_event *event, const struct candidate *candidate, int64_t window_us)
{
    return event->at_us - candidate->at_us <= window_us || MUTANT(WINDOW_ENDLESS);
}

static bool is_elsewhere(const struct decide_event *event, const struct candidate *candidate)
{
    return !bytes_eq(event->source, candidate->source);
}

/* The same words from the same person. */
static struct decide_verdict judge_content(const struct decide_event *event, const struct candidate *candidate)
{
    bool little = message_is_short(event->text);
    if (is_elsewhere(event, candidate)) {
        if (!is_within(event, candidate, event->across_us))
            return verdict_of(EVENT_ACCEPTED, "new", 0, NULL);
        if (!little)
            return verdict_of(EVENT_SUPPRESSED, "same_content_elsewhere", 1000, candidate);
        bool at_once = is_within(event, candidate, SHORT_US);
        return at_once ? verdict_of(EVENT_HELD, "maybe_short", 700, candidate) : verdict_of(EVENT_ACCEPTED, "new", 0, NULL);
    }
    bool two_ids = event->has_id && candidate->has_id;
    int64_t window_us = little && event->window_us > SHORT_US ? SHORT_US : event->window_us;
    if (!is_within(event, candidate, window_us) || (two_ids && (little || event->machine)))
        return verdict_of(EVENT_ACCEPTED, "new", 0, NULL);
    return verdict_of(EVENT_SUPPRESSED, "same_content", 1000, candidate);
}

/* Other words from, or about, the same person. */
static struct decide_verdict judge_likeness(const struct decide_event *event, const struct candidate *candidate)
{
    struct decide_verdict none = verdict_of(EVENT_ACCEPTED, "new", 0, NULL);
    bool elsewhere = is_elsewhere(event, candidate);
    int64_t window_us = elsewhere ? event->across_us : event->window_us;
    if (candidate->text == NULL || !is_within(event, candidate, window_us))
        return none;
    if (message_is_short(event->text) || message_is_short(candidate->text))
        return none;
    struct likeness likeness = message_compare(event->text, candidate->text);
    if (elsewhere && candidate->relayed) {
        if (likeness.contained >= QUOTED_CERTAIN)
            return verdict_of(EVENT_SUPPRESSED, "relayed", likeness.contained, candidate);
        return likeness.contained >= QUOTED_LIKELY ? verdict_of(EVENT_HELD, "maybe_same", likeness.contained, candidate) : none;
    }
    if (!elsewhere && event->has_id && candidate->has_id)
        return none; /* the person wrote twice: two messages, however alike */
    if (likeness.same >= SAME_CERTAIN)
        return verdict_of(EVENT_SUPPRESSED, "nearly_same", likeness.same, candidate);
    return likeness.same >= SAME_LIKELY ? verdict_of(EVENT_HELD, "maybe_same", likeness.same, candidate) : none;
}

static struct decide_verdict judge(const struct decide_event *event, const struct candidate *candidate)
{
    switch (candidate->kind) {
    case MARK_DELIVERY:
        return verdict_of(EVENT_SUPPRESSED, "same_delivery", 1000, candidate);
    case MARK_KEY:
        return verdict_of(EVENT_SUPPRESSED, "same_key", 1000, candidate);
    case MARK_PAYLOAD:
        if (is_within(event, candidate, event->window_us))
            return verdict_of(EVENT_SUPPRESSED, "same_payload", 1000, candidate);
        break;
    case MARK_CONTENT:
        if (event->speaks)
            return judge_content(event, candidate);
        break;
    case MARK_SENDER:
        if (event->speaks)
            return judge_likeness(event, candidate);
        break;
    case MARK_KIND_COUNT:
        break;
    }
    return verdict_of(EVENT_ACCEPTED, "new", 0, NULL);
}

/* Suppressed before held; then the stronger kind of mark; then the higher score; then the earlier event. */
static bool is_stronger(const struct decide_verdict *a, const struct decide_verdict *b)
{
    if (b->candidate == NULL || a->candidate == NULL)
        return a->candidate != NULL;
    if (a->verdict != b->verdict)
        return a->verdict == EVENT_SUPPRESSED;
    if (a->candidate->kind != b->candidate->kind)
        return a->candidate->kind < b->candidate->kind;
    return a->score != b->score ? a->score > b->score : a->first < b->first;
}

struct decide_verdict decide_event(const struct decide_event *event, const struct candidate *candidates, size_t count)
{
    struct decide_verdict best = verdict_of(EVENT_ACCEPTED, "new", 0, NULL);
    for (size_t i = 0; i < count; i++) {
        struct decide_verdict verdict = judge(event, &candidates[i]);
        if (is_stronger(&verdict, &best))
            best = verdict;
    }
    if (best.verdict == EVENT_SUPPRESSED)
        return best;
    if (event->muted)
        return verdict_of(EVENT_MUTED, "muted", 0, NULL);
    if (event->limited)
        return verdict_of(EVENT_MUTED, "limited", 0, NULL);
    if (event->automatic && !MUTANT(ROBOT_HEARD))
        return verdict_of(EVENT_IGNORED, "automatic", 0, NULL);
    return best;
}
