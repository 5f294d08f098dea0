#include "flow/flow_own.h"

#include "base/mutant.h"

#define CANDIDATES_MAX 128

/* ---- deciding ---- */

static const struct identity *first_sender(const struct incoming *incoming)
{
    for (size_t i = 0; i < incoming->identity_count; i++)
        if (incoming->identities[i].sender)
            return &incoming->identities[i];
    return NULL;
}

static bool knows(const struct incoming *incoming, const struct identity *identity)
{
    for (size_t i = 0; i < incoming->identity_count; i++)
        if (bytes_eq(incoming->identities[i].value, identity->value))
            return true;
    return false;
}

/* One of the two says so itself, or was sent by somebody whom the other does not know: a machine tells of a person. */
static bool is_relayed(const struct incoming *a, const struct incoming *b)
{
    const struct identity *from_a = first_sender(a), *from_b = first_sender(b);
    return a->relayed || b->relayed || (from_a != NULL && !knows(b, from_a)) || (from_b != NULL && !knows(a, from_b));
}

/* Two messages that one channel gave two ids are not compared word by word: the person wrote twice. */
static bool is_another(const struct item *item, enum mark_kind kind, const struct known *known)
{
    return kind == MARK_SENDER && !known->gone && item_has_id(&item->known.incoming) &&
           bytes_eq(known->row.source, item->known.row.source);
}

static enum status list_candidates(struct pass *pass, const struct item *item, struct candidate *candidates, size_t *ret_count)
{
    size_t count = 0;
    for (size_t i = 0; i < item->mark_count; i++) {
        enum mark_kind kind = item->marks[i].kind;
        const struct sighting *sighting = item->marks[i].mark->first;
        for (; sighting != NULL && count < CANDIDATES_MAX; sighting = sighting->next) {
            struct known *known = sighting->known;
            if (is_another(item, kind, known))
                continue;
            if (!known->gone && !known->read) {
                enum status status = known_read(known, pass->arena, pass->why);
                if (status == FULL)
                    return status;
                known->gone = status != OK; /* it cannot be read: only its marks count */
            }
            candidates[count++] = (struct candidate){
                .kind = kind,
                .event = known->row.id,
                .at_us = sighting->at_us,
                .source = known->gone ? item->known.row.source : known->row.source,
                .has_id = known->gone || item_has_id(&known->incoming),
                .relayed = !known->gone && is_relayed(&item->known.incoming, &known->incoming),
                .text = known->gone ? NULL : &known->text,
            };
        }
    }
    *ret_count = count;
    return OK;
}

/* The part in front of the @ says that a program writes, so equal texts are no sign of an equal message. */
bool incoming_is_machine(const struct incoming *incoming)
{
    static const char *const names[] = {"noreply",       "no-reply", "no_reply", "donotreply", "do-not-reply", "notification",
                                        "notifications", "notify",   "mailer",   "alerts",     "forms",        "robot"};
    const struct identity *sender = first_sender(incoming);
    if (sender == NULL || sender->kind != IDENTITY_EMAIL)
        return false;
    struct bytes rest = sender->value, name = bytes_cut(&rest, '@');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bytes_starts(name, bytes_of(names[i])))
            return true;
    return false;
}

static struct decide_event question_of(struct pass *pass, const struct item *item, const struct quiet *quiet)
{
    const struct incoming *incoming = &item->known.incoming;
    return (struct decide_event){
        .source = item->known.row.source,
        .at_us = item->known.row.received,
        .speaks = item_speaks(item),
        .has_id = item_has_id(incoming),
        .machine = incoming_is_machine(incoming),
        .automatic = incoming->automatic,
        .muted = quiet->row.muted_until > pass->ledger->now.wall_us && !MUTANT(MUTE_UNHEARD),
        .limited = quiet->row.limited_until > pass->ledger->now.wall_us && quiet->accepted >= quiet->row.most,
        .text = &item->known.text,
        .window_us = item->source != NULL ? item->source->window_us : WHEN_DAY,
        .across_us = item->source != NULL ? item->source->across_us : WHEN_DAY,
    };
}

/* Copies of one event that come thick and fast are a loop somewhere: a person should know, once per burst. */
static bool count_copy(struct pass *pass, const struct item *item, struct known *first)
{
    int64_t now = pass->ledger->now.wall_us;
    int64_t most = item->source != NULL ? item->source->loop_count : INT64_MAX;
    int64_t every_us = item->source != NULL ? item->source->loop_us : 0;
    first->row.copies++;
    first->copied = true;
    if (first->row.burst == 0 || now - first->row.burst_at > every_us || now < first->row.burst_at) {
        first->row.burst = 0;
        first->row.burst_at = now;
    }
    first->row.burst++;
    return first->row.burst == most;
}

/* The thread that the message belongs to, or a new one; NULL for what belongs to none. */
static struct thread_open *find_thread(struct pass *pass, struct item *item)
{
    for (size_t i = 0; i < item->place_count; i++)
        if (item->places[i]->thread != NULL)
            return item->places[i]->thread;
    return item->place_count > 0 ? threads_new(&pass->places, pass->ledger, item->known.row.space) : NULL;
}

/* Its place in the conversation. A conversation that runs away is held. */
static enum status converse(struct pass *pass, struct item *item)
{
    int64_t now = pass->ledger->now.wall_us;
    struct thread_open *thread = find_thread(pass, item);
    if (thread == NULL)
        return pass->arena->failed ? pass_no_memory(pass) : OK;
    item->thread = thread;
    thread->changed = true;
    for (size_t i = 0; i < item->place_count; i++)
        threads_mark(item->places[i], thread);
    bool asks = item->verdict.verdict == EVENT_ACCEPTED || (MUTANT(HELD_ASKS) && item->verdict.verdict == EVENT_HELD);
    if (!asks || !item_is_question(item))
        return OK;
    if (item->source != NULL && thread_is_loop(&thread->row, now, item->source->loop_count, item->source->loop_us)) {
        item->verdict = (struct decide_verdict){.verdict = EVENT_HELD, .reason = "loop"};
        return OK;
    }
    bool answered = false;
    if (thread->row.epoch > 0)
        TRY(pass->recall->answered(pass, &thread->row, &answered));
    thread_ask(&thread->row, answered, item->known.row.id, now);
    return OK;
}

/* A copy is no question: it belongs to that of its original. By what it brings, the conversation is recognised from now on. */
static void converse_copy(struct pass *pass, struct item *item, const struct known *first)
{
    item->copy_of = first;
    for (struct thread_open *thread = pass->places.threads; thread != NULL; thread = thread->next)
        for (size_t i = 0; thread->row.id == first->row.thread && i < item->place_count; i++)
            threads_mark(item->places[i], thread);
}

static struct known *known_first(const struct item *item)
{
    for (size_t i = 0; i < item->mark_count; i++)
        for (struct sighting *sighting = item->marks[i].mark->first; sighting != NULL; sighting = sighting->next)
            if (sighting->known->row.id == item->verdict.first)
                return sighting->known;
    return NULL;
}

/* From now on it is recognised. A copy's ids lead to the original, so that its own copies are recognised too. */
static void see(struct pass *pass, struct item *item, struct known *first)
{
    bool copy = item->verdict.verdict == EVENT_SUPPRESSED && first != NULL;
    for (size_t i = 0; i < item->mark_count; i++)
        if (!copy || item->marks[i].kind == MARK_DELIVERY || item->marks[i].kind == MARK_KEY)
            marks_see(&pass->marks, item->marks[i].mark, copy && !MUTANT(COPY_OF_COPY) ? first : &item->known);
}

enum status pass_judge(struct pass *pass, struct item *item)
{
    size_t count = 0;
    struct candidate candidates[CANDIDATES_MAX];
    struct quiet *quiet;
    TRY(pass->recall->quiet(pass, item, &quiet));
    struct decide_event event = question_of(pass, item, quiet);
    TRY(list_candidates(pass, item, candidates, &count));
    item->verdict = item->unreadable ? (struct decide_verdict){.verdict = EVENT_IGNORED, .reason = "unreadable"}
                                     : decide_event(&event, candidates, count);
    item->likened = item->verdict.candidate != NULL ? item->verdict.candidate->text : NULL;
    item->verdict.candidate = NULL; /* the list of them ends here */
    struct known *first = item->verdict.first != 0 ? known_first(item) : NULL;
    if (item->verdict.verdict == EVENT_SUPPRESSED && first != NULL && count_copy(pass, item, first))
        TRY(pass->recall->card(pass, item, EXCEPTION_LOOP, first->row.id, "loop"));
    if (item->verdict.verdict == EVENT_SUPPRESSED && first != NULL && !first->gone && first->row.thread != 0)
        converse_copy(pass, item, first);
    else
        TRY(converse(pass, item));
    if (item->verdict.verdict == EVENT_HELD && !MUTANT(HELD_UNTOLD)) {
        bool loop = strcmp(item->verdict.reason, "loop") == 0;
        TRY(pass->recall->card(pass, item, loop ? EXCEPTION_LOOP : EXCEPTION_LIKELY_DUPLICATE, item->known.row.id,
                               item->verdict.reason));
    }
    quiet->accepted += item->verdict.verdict == EVENT_ACCEPTED;
    see(pass, item, first);
    return pass->arena->failed ? pass_no_memory(pass) : OK;
}
