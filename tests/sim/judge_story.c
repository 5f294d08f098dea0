/* judge_story: the log from its beginning to its end, told once more. Each event has one verdict in it. Questions and answers follow
 * each other: a message joins the open question until somebody has begun to answer it, and is the next one from then on. Who was
 * muted, and which conversation ran away, is known by it too. */
#include <stdio.h>

#include "sim.h"
#include "threads/answer.h"

struct told {
    struct sim *sim;
    int64_t intents[TALKS_MAX]; /* of the talks */
    bool deeds[TALKS_MAX];      /* those that have begun */
    struct conversation {
        int64_t epoch, question, burst, burst_at; /* the second: an id; what was begun later is an answer to it */
    } conversations[WRITERS_MAX];
    int64_t muted_until[CHANNELS];
};

/* ---- what a decision says ---- */

static struct bytes detail_of(const struct row_decision *row, const char *name)
{
    char member[32];
    int len = snprintf(member, sizeof member, "\"%s\":", name);
    const char *at = row->detail.at != NULL ? memmem(row->detail.at, row->detail.len, member, (size_t)len) : NULL;
    if (at == NULL)
        return BYTES_NONE;
    struct bytes rest = bytes_from(row->detail, (size_t)(at - row->detail.at) + (size_t)len);
    size_t end = 0;
    while (end < rest.len && rest.at[end] != ',' && rest.at[end] != '}')
        end++;
    rest.len = end;
    bool quoted = rest.len >= 2 && rest.at[0] == '"';
    return quoted ? (struct bytes){rest.at + 1, rest.len - 2} : rest;
}

static struct seen *event_of(struct told *told, const struct row_decision *row)
{
    int64_t id = 0;
    struct seen *event = id_parse("evt", detail_of(row, "event"), &id) ? judge_seen(told->sim, id) : NULL;
    if (event == NULL)
        sim_violated(told->sim, "INV-28", "the log has a verdict on an event that nobody has seen");
    return event;
}

/* ---- questions ---- */

static bool is_begun(struct told *told, int64_t thread, const struct conversation *talk)
{
    for (int i = 0; i < told->sim->deed_count; i++) {
        const struct deed_of_agent *deed = &told->sim->deeds[i];
        if (!told->deeds[i] || deed->thread != thread || deed->intent <= talk->question)
            continue;
        mark(MARK_ANSWER_OWN_KEY);
        return true;
    }
    for (int i = 0; i < told->sim->talk_count; i++)
        if (told->sim->talks[i].thread == thread && told->sim->talks[i].epoch == talk->epoch)
            return told->sim->talks[i].begun;
    return false;
}

/* INV-26: a question opens the next epoch when the last one is being answered, and only then. */
static void ask(struct told *told, const struct seen *event, int64_t question, int64_t epoch)
{
    struct conversation *talk = &told->conversations[event->letter->writer];
    bool next = talk->epoch == 0 || is_begun(told, event->thread, talk);
    mark(next ? MARK_QUESTION_NEXT : MARK_QUESTION_JOINS);
    talk->epoch += next;
    talk->question = next ? question : talk->question;
    if (epoch != talk->epoch)
        sim_violated(told->sim, "INV-26", "event %lld is question %lld of its conversation, and is said to be %lld",
                     (long long)event->id, (long long)talk->epoch, (long long)epoch);
}

/* INV-29: more than so many in so short a time are held, and fewer are not. */
static void count_burst(struct told *told, const struct seen *event)
{
    struct conversation *talk = &told->conversations[event->letter->writer];
    bool loop = strcmp(event->reason, "loop") == 0;
    if (event->policy == 2 && event->channel == CHANNEL_CHAT) /* a source that is not in the policy has no limit */
        return;
    if (talk->burst == 0 || event->decided_first - talk->burst_at > LOOP_US) {
        talk->burst = 0;
        talk->burst_at = event->decided_first;
    }
    if (loop != (++talk->burst > LOOP_COUNT))
        sim_violated(told->sim, "INV-29", "event %lld is the %lld. of a burst, and %s", (long long)event->id,
                     (long long)talk->burst, event_verdict_names[event->was]);
}

/* ---- verdicts ---- */

static void check_muted(struct told *told, const struct seen *event)
{
    bool muted = event->decided_first < told->muted_until[event->channel];
    bool quiet = event->was == EVENT_MUTED || event->was == EVENT_SUPPRESSED;
    if (muted && !quiet)
        sim_violated(told->sim, "INV-29", "event %lld is %s, and its source is muted", (long long)event->id,
                     event_verdict_names[event->was]);
    if (!muted && event->was == EVENT_MUTED)
        sim_violated(told->sim, "INV-29", "event %lld is muted, and its source is not", (long long)event->id);
}

/* INV-28: one verdict, and it is the one that is stored. */
static void tell_verdict(struct told *told, const struct row_decision *row)
{
    struct seen *event = event_of(told, row);
    int64_t epoch = 0, first = 0;
    if (event == NULL)
        return;
    (void)bytes_to_i64(detail_of(row, "epoch"), &epoch);
    (void)id_parse("evt", detail_of(row, "first"), &first);
    if (++event->decisions > 1)
        sim_violated(told->sim, "INV-25", "event %lld was decided %d times", (long long)event->id, event->decisions);
    if (!bytes_is(row->kind, event_verdict_names[event->was]) || !bytes_is(row->reason, event->reason) || first != event->first)
        sim_violated(told->sim, "INV-28", "event %lld is %s, and the log says %.*s", (long long)event->id,
                     event_verdict_names[event->was], BYTES_ARG(row->kind));
    check_muted(told, event);
    if (event->channel == CHANNEL_BARE || event->letter->automatic)
        return;
    bool loop = strcmp(event->reason, "loop") == 0, stuck = strcmp(event->reason, "cannot_forward") == 0;
    if (event->was == EVENT_ACCEPTED || loop || stuck)
        count_burst(told, event);
    if (event->was == EVENT_ACCEPTED || stuck) /* what cannot go on is a question nevertheless */
        ask(told, event, event->id, epoch);
}

static void tell_release(struct told *told, const struct row_decision *row)
{
    struct seen *event = event_of(told, row);
    if (event == NULL)
        return;
    if (event->verdict != EVENT_RELEASED)
        sim_violated(told->sim, "INV-28", "event %lld was released, and is %s", (long long)event->id,
                     event_verdict_names[event->verdict]);
    if (event->channel != CHANNEL_BARE && !event->letter->automatic)
        ask(told, event, row->id, event->epoch); /* it is asked when it is released */
}

/* INV-23: what was said to go on again does. */
static void tell_replay(struct told *told, const struct row_decision *row)
{
    const struct seen *event = event_of(told, row);
    int64_t number = 0;
    bool goes_on = false;
    (void)bytes_to_i64(detail_of(row, "replay"), &number);
    for (int i = 0; i < told->sim->effect_count; i++)
        goes_on |= told->sim->effects[i].event == event && told->sim->effects[i].replay == number;
    if (event != NULL && !goes_on)
        sim_violated(told->sim, "INV-23", "event %lld was to go on again, and did not", (long long)event->id);
}

static void tell_muting(struct told *told, const struct row_decision *row)
{
    enum channel channel = 0;
    while (!bytes_is(detail_of(row, "source"), channel_names[channel]))
        channel++;
    (void)bytes_to_i64(detail_of(row, "muted_until"), &told->muted_until[channel]);
}

static void tell_begin(struct told *told, const struct row_decision *row)
{
    bool begins = bytes_is(row->kind, ledger_op_names[OP_CLAIM]) || bytes_is(row->kind, ledger_op_names[OP_SUBMIT]);
    for (int i = 0; i < told->sim->talk_count && begins && row->state >= 0; i++)
        if (told->intents[i] == row->intent)
            told->sim->talks[i].begun = true;
    for (int i = 0; i < told->sim->deed_count && begins && row->state >= 0; i++)
        told->deeds[i] |= told->sim->deeds[i].intent == row->intent;
}

static enum status tell(void *ctx, const void *at, struct why *why)
{
    struct told *told = ctx;
    const struct row_decision *row = at;
    (void)why;
    bool person = bytes_is(row->reason, "a_person_decided"), verdict = false;
    for (int i = EVENT_ACCEPTED; i <= EVENT_IGNORED; i++)
        verdict |= bytes_is(row->kind, event_verdict_names[i]) && row->intent == 0 && !person;
    if (verdict)
        tell_verdict(told, row);
    else if (person && bytes_is(row->kind, "released"))
        tell_release(told, row);
    else if (person && bytes_is(row->kind, "replayed"))
        tell_replay(told, row);
    else if (bytes_starts(row->kind, BYTES("source_")))
        tell_muting(told, row);
    else if (row->intent != 0)
        tell_begin(told, row);
    return OK;
}

void judge_story(struct sim *sim)
{
    struct told told = {.sim = sim};
    for (int i = 0; i < sim->talk_count; i++) {
        struct bytes key = thread_key(sim->talks[i].thread, sim->talks[i].epoch, BYTES("reply"), &sim->arena);
        struct stored stored = judge_load(sim, ANSWERS_WORKFLOW, key.at);
        told.intents[i] = stored.has_intent ? stored.intent.id : -1;
    }
    for (int i = 0; i < sim->deed_count; i++) {
        struct stored stored = judge_load(sim, BYTES("deeds"), sim->deeds[i].key);
        sim->deeds[i].intent = stored.has_intent ? stored.intent.id : -1;
    }
    struct q_decision_chain all = {0, 0, 10000};
    judge_read(sim, &DECISION_CHAIN, &all, tell, &told);
    for (int i = 0; i < sim->seen_count; i++)
        if (sim->seen[i].verdict != EVENT_WAITING && sim->seen[i].decisions != 1)
            sim_violated(sim, "INV-28", "event %lld is %s, and the log does not say so", (long long)sim->seen[i].id,
                         event_verdict_names[sim->seen[i].verdict]);
}
