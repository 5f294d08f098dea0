/* judge_inbox: the invariants of what comes in. After each commit the events are read as they are stored, and compared with what was
 * sent: which letter it was, by which channel, and when. What counts as a copy is said here once more, by letters instead of
 * marks. */
#include <stdio.h>

#include "sim.h"
#include "threads/answer.h"

struct seen *judge_seen(struct sim *sim, int64_t id)
{
    for (int i = 0; i < sim->seen_count; i++)
        if (sim->seen[i].id == id)
            return &sim->seen[i];
    return NULL;
}

/* ---- what is a copy ---- */

static bool gives_id(enum channel channel)
{
    return channel == CHANNEL_CHAT || channel == CHANNEL_FORM || channel == CHANNEL_KEPT;
}

static bool gives_key(const struct seen *event)
{
    return event->letter->keyed && (event->channel == CHANNEL_FORM || event->channel == CHANNEL_MAIL);
}

/* For as long as a history lasts. */
static bool has_same_id(const struct seen *a, const struct seen *b)
{
    return a->letter == b->letter && ((gives_id(a->channel) && a->channel == b->channel) || (gives_key(a) && gives_key(b)));
}

/* Copies are not compared with copies: the time counts from the one that was none. */
static bool is_recent(const struct seen *event, const struct seen *earlier, int64_t window_us)
{
    return earlier->was != EVENT_SUPPRESSED && event->received - earlier->received <= window_us;
}

static bool is_copy(const struct seen *event, const struct seen *earlier)
{
    bool words = event->letter == earlier->letter && event->letter->kind != LETTER_SHORT;
    return has_same_id(event, earlier) || (words && is_recent(event, earlier, WORDS_WINDOW_US));
}

/* Nearly the same words, or the same few ones by another channel: nobody can be sure. */
static bool is_alike(const struct seen *event, const struct seen *earlier)
{
    const struct letter *a = event->letter, *b = earlier->letter;
    if (a->kind == LETTER_SHORT && b->kind == LETTER_SHORT)
        return a->writer == b->writer && event->channel != earlier->channel && is_recent(event, earlier, FEW_WORDS_US);
    bool next = (a->kind == LETTER_LIKE && a->number == b->number + 1) || (b->kind == LETTER_LIKE && b->number == a->number + 1);
    return next && is_recent(event, earlier, WORDS_WINDOW_US);
}

static const struct seen *find_earlier(const struct sim *sim, const struct seen *event,
                                       bool (*is)(const struct seen *, const struct seen *))
{
    for (const struct seen *earlier = sim->seen; earlier < event; earlier++)
        if (is(event, earlier))
            return earlier;
    return NULL;
}

/* ---- the verdict ---- */

/* INV-24: every repetition names what it repeats, which came before it and is none itself. */
static void check_original(struct sim *sim, const struct seen *event)
{
    const struct seen *first = judge_seen(sim, event->first);
    if (first == NULL || first >= event) {
        sim_violated(sim, "INV-24", "event %lld repeats one that did not come before it", (long long)event->id);
        return;
    }
    if (first->was == EVENT_SUPPRESSED)
        sim_violated(sim, "INV-24", "event %lld repeats a repetition", (long long)event->id);
    if (first->letter != event->letter && !is_alike(event, first))
        sim_violated(sim, "INV-24", "event %lld is letter %d and is said to repeat letter %d", (long long)event->id,
                     event->letter->number, first->letter->number);
}

/* INV-23: a copy does not go on, and what nobody has said before is no copy. */
static void check_verdict(struct sim *sim, const struct seen *event)
{
    const struct seen *copied = find_earlier(sim, event, is_copy), *alike = find_earlier(sim, event, is_alike);
    bool likely = event->was == EVENT_HELD && strncmp(event->reason, "maybe_", 6) == 0;
    if (copied != NULL && event->was != EVENT_SUPPRESSED)
        sim_violated(sim, "INV-23", "event %lld is letter %d again, and %s (%s)", (long long)event->id, event->letter->number,
                     event_verdict_names[event->was], event->reason);
    if (copied == NULL && alike == NULL && (event->was == EVENT_SUPPRESSED || likely))
        sim_violated(sim, "INV-23", "event %lld is letter %d for the first time, and %s (%s)", (long long)event->id,
                     event->letter->number, event_verdict_names[event->was], event->reason);
    if (event->was == EVENT_SUPPRESSED || likely)
        check_original(sim, event);
    else if (event->first != 0)
        sim_violated(sim, "INV-24", "event %lld is %s, and repeats another one", (long long)event->id,
                     event_verdict_names[event->was]);
}

/* INV-29: what a program wrote is not answered, and what a person wrote is not ignored. */
static void check_automatic(struct sim *sim, const struct seen *event)
{
    bool automatic = event->letter->automatic && event->channel != CHANNEL_BARE;
    bool goes_on = event->was == EVENT_ACCEPTED || event->was == EVENT_HELD;
    if (automatic ? goes_on : event->was == EVENT_IGNORED)
        sim_violated(sim, "INV-29", "event %lld was written by a %s, and is %s", (long long)event->id,
                     automatic ? "program" : "person", event_verdict_names[event->was]);
}

/* INV-26: all that one person says is one conversation, and nobody else's. */
static void check_thread(struct sim *sim, const struct seen *event)
{
    bool speaks = event->channel != CHANNEL_BARE;
    int64_t *thread = &sim->threads[event->letter->writer];
    if (speaks && *thread == 0)
        *thread = event->thread;
    bool others = false;
    for (int i = 0; i < sim->writer_count; i++)
        others |= i != event->letter->writer && sim->threads[i] == event->thread;
    if (speaks ? event->thread == 0 || event->thread != *thread || others : event->thread != 0)
        sim_violated(sim, "INV-26", "event %lld is part of another conversation", (long long)event->id);
}

static void note_marks(struct sim *sim, const struct seen *event)
{
    static const struct {
        const char *reason;
        enum mark mark;
    } reasons[] = {{"same_delivery", MARK_EVENT_SAME_DELIVERY},
                   {"same_key", MARK_EVENT_SAME_KEY},
                   {"same_payload", MARK_EVENT_SAME_PAYLOAD},
                   {"same_content_elsewhere", MARK_EVENT_ELSEWHERE},
                   {"maybe_same", MARK_EVENT_LIKELY},
                   {"maybe_short", MARK_EVENT_LIKELY},
                   {"loop", MARK_EVENT_LOOP},
                   {"muted", MARK_EVENT_MUTED},
                   {"automatic", MARK_EVENT_IGNORED},
                   {"cannot_forward", MARK_EVENT_CANNOT_FORWARD},
                   {"new", MARK_EVENT_ACCEPTED}};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (strcmp(event->reason, reasons[i].reason) == 0)
            mark(reasons[i].mark);
    if (event->shadow)
        mark(MARK_EVENT_SHADOW);
    if (event->was == EVENT_ACCEPTED && !rules_forward(event->policy, event->channel))
        mark(MARK_EVENT_KEPT_ONLY);
    for (const struct seen *earlier = sim->seen; earlier < event; earlier++) {
        if (earlier->letter != event->letter)
            continue;
        if (event->was == EVENT_ACCEPTED)
            mark(MARK_EVENT_WINDOW_OVER);
        if (event->received - earlier->received >= 7 * WHEN_DAY && event->was == EVENT_SUPPRESSED)
            mark(MARK_EVENT_WEEK_LATE);
        const struct seen *first = judge_seen(sim, earlier->first);
        if (first != NULL && earlier->was == EVENT_SUPPRESSED && has_same_id(event, earlier) && !has_same_id(event, first))
            mark(MARK_EVENT_COPY_OF_COPY);
    }
}

/* ---- reading ---- */

struct look {
    struct sim *sim;
    struct seen rows[SEEN_MAX]; /* newest first */
    int count;
};

static enum status take_event(void *ctx, const void *at, struct why *why)
{
    static const char name[] = "\"name\":\"letter ";
    struct look *look = ctx;
    const struct row_event *row = at;
    const char *found = memmem(row->content.at, row->content.len, name, sizeof name - 1);
    if (found == NULL || look->count == SEEN_MAX)
        return why_set(why, BROKEN, "event %lld is no letter, or one too many", (long long)row->id);
    struct seen *seen = &look->rows[look->count++];
    *seen = (struct seen){.id = row->id,
                          .delivery = row->delivery,
                          .received = row->received,
                          .decided = row->decided,
                          .first = row->first,
                          .thread = row->thread,
                          .epoch = row->epoch,
                          .until = row->until,
                          .policy = row->policy,
                          .verdict = (enum event_verdict)row->verdict,
                          .shadow = row->shadow != 0,
                          .letter = &look->sim->letters[found[sizeof name - 1] - '0']};
    snprintf(seen->reason, sizeof seen->reason, "%.*s", BYTES_ARG(row->reason));
    while (!bytes_is(row->source, channel_names[seen->channel]))
        seen->channel++;
    return OK;
}

/* INV-25: decided once. Only a person changes it, as far as they were asked to. */
static void check_change(struct sim *sim, const struct seen *was, const struct seen *now)
{
    bool released = now->verdict == EVENT_RELEASED && was->asked_release && was->verdict != EVENT_ACCEPTED;
    bool suppressed = now->verdict == EVENT_SUPPRESSED && was->asked_suppress && was->verdict == EVENT_HELD;
    bool same = now->verdict == was->verdict && now->decided == was->decided && now->epoch == was->epoch;
    if ((!same && !released && !suppressed) || now->first != was->first || strcmp(now->reason, was->reason) != 0 ||
        now->thread != was->thread || now->received != was->received)
        sim_violated(sim, "INV-25", "event %lld was %s and is now %s, and nobody decided that", (long long)now->id,
                     event_verdict_names[was->verdict], event_verdict_names[now->verdict]);
    if (!same && released)
        mark(MARK_EVENT_RELEASED);
    if (!same && suppressed)
        mark(MARK_EVENT_PERSON_SAYS_NO);
}

static void note_event(struct sim *sim, const struct seen *now)
{
    struct seen *seen = judge_seen(sim, now->id);
    if (seen == NULL) {
        if (sim->seen_count > 0 && sim->seen[sim->seen_count - 1].id > now->id)
            sim_violated(sim, "INV-9", "event %lld came before one that was seen", (long long)now->id);
        ASSERT(sim->seen_count < SEEN_MAX);
        seen = &sim->seen[sim->seen_count++];
        *seen = *now;
        seen->verdict = EVENT_WAITING;
    }
    bool decides = seen->verdict == EVENT_WAITING && now->verdict != EVENT_WAITING;
    if (!decides && seen->verdict != EVENT_WAITING)
        check_change(sim, seen, now);
    struct seen was = *seen;
    *seen = *now;
    seen->was = decides ? now->verdict : was.was;
    seen->decided_first = decides ? now->decided : was.decided_first;
    seen->asked_release = was.asked_release;
    seen->asked_suppress = was.asked_suppress;
    seen->asked_replay = was.asked_replay;
    if (!decides)
        return;
    sim_say(sim, "event %lld, letter %d by %s, is %s: %s", (long long)seen->id, seen->letter->number,
            channel_names[seen->channel], event_verdict_names[seen->was], seen->reason);
    check_verdict(sim, seen);
    check_automatic(sim, seen);
    check_thread(sim, seen);
    note_marks(sim, seen);
}

/* INV-22: what waits for a decision or a person is there; the others until their time. */
static void check_gone(struct sim *sim, struct seen *event, const struct look *look)
{
    for (int i = 0; i < look->count; i++)
        if (look->rows[i].id == event->id)
            return;
    event->gone = true;
    mark(MARK_EVENT_FORGOTTEN);
    bool waits = event->verdict == EVENT_WAITING || event->verdict == EVENT_HELD;
    if (waits || event->until > sim->env.wall_us(&sim->env))
        sim_violated(sim, "INV-22", "event %lld is %s, and gone", (long long)event->id, event_verdict_names[event->verdict]);
}

/* ---- what is forwarded ---- */

static enum status take_effect(void *ctx, const void *at, struct why *why)
{
    (void)why;
    struct sim *sim = ctx;
    const struct row_effect *row = at;
    for (int i = 0; i < sim->effect_count; i++)
        if (sim->effects[i].intent == row->intent)
            return OK;
    ASSERT(sim->effect_count < EFFECTS_ROOM);
    struct effect *effect = &sim->effects[sim->effect_count];
    *effect = (struct effect){.number = sim->effect_count++,
                              .kind = PLACE_KEYED,
                              .intent = row->intent,
                              .contents = -1,
                              .accepted = true,
                              .accepted_life = sim->life};
    snprintf(effect->workflow, sizeof effect->workflow, "%.*s", BYTES_ARG(row->workflow));
    snprintf(effect->key, sizeof effect->key, "%.*s", BYTES_ARG(row->key));
    struct bytes rest = row->key, id = bytes_cut(&rest, '~');
    int64_t event = 0;
    if (bytes_eq(row->workflow, ANSWERS_WORKFLOW))
        effect->question = talk_by_key(sim, row->key);
    else if (id_parse("evt", id, &event))
        effect->event = judge_seen(sim, event);
    if (rest.len > sizeof "replay-" - 1)
        (void)bytes_to_i64(bytes_from(rest, sizeof "replay-" - 1), &effect->replay);
    if (effect->event == NULL && effect->question == NULL)
        sim_violated(sim, "INV-13", "%s is to be done, and nobody has asked for it", effect->key);
    return OK;
}

/* INV-23: what went on was accepted or released, or its source is only watched; another time only on purpose. */
static void check_forward(struct sim *sim, const struct effect *effect)
{
    const struct seen *event = effect->event;
    if (event == NULL)
        return;
    bool goes = event->verdict == EVENT_ACCEPTED || event->verdict == EVENT_RELEASED;
    if (effect->replay == 0 && !goes && !event->shadow)
        sim_violated(sim, "INV-23", "event %lld is %s, and goes on", (long long)event->id, event_verdict_names[event->verdict]);
    if (effect->replay > event->asked_replay)
        sim_violated(sim, "INV-23", "event %lld goes on for the %lld. time, and nobody said so", (long long)event->id,
                     (long long)effect->replay + 1);
    if (effect->replay > 0)
        mark(MARK_EVENT_REPLAYED);
}

/* INV-23, at the other end: what has one id arrives once, whatever is stored about it. */
void judge_arrived(struct sim *sim, const struct effect *effect)
{
    const struct seen *event = effect->event;
    mark(MARK_EVENT_FORWARDED);
    for (int i = 0; i < sim->effect_count && effect->replay == 0 && event->verdict == EVENT_ACCEPTED; i++) {
        const struct effect *other = &sim->effects[i];
        if (other != effect && other->event != NULL && other->replay == 0 && other->happened > 0 &&
            other->event->verdict == EVENT_ACCEPTED && has_same_id(event, other->event))
            sim_violated(sim, "INV-23", "letter %d arrives twice", event->letter->number);
    }
}

/* INV-27: one answer to a question. */
void judge_replied(struct sim *sim, struct talk *talk)
{
    mark(MARK_ANSWERED);
    if (++talk->replies > 1)
        sim_violated(sim, "INV-27", "question %lld of a conversation has %d answers", (long long)talk->epoch, talk->replies);
}

static enum status count_row(void *ctx, const void *row, struct why *why)
{
    (void)row, (void)why;
    ++*(int *)ctx;
    return OK;
}

/* INV-27: of the answers in a conversation one is open. */
static void check_turns(struct sim *sim)
{
    for (int i = 0; i < sim->writer_count; i++) {
        int open = 0;
        struct q_intent_open find = {BYTES("main"), ANSWERS_WORKFLOW, id_text("thr", sim->threads[i], &sim->arena),
                                     BYTES("reply")};
        if (sim->threads[i] != 0)
            judge_read(sim, &INTENT_OPEN, &find, count_row, &open);
        if (open > 1)
            sim_violated(sim, "INV-27", "%d answers in a conversation are open", open);
    }
}

/* ---- whose it is ---- */

static bool has_card(struct sim *sim, int64_t event, enum exception_kind kind)
{
    int count = 0;
    struct q_exception_open_of find = {0, event, 0, kind};
    judge_read(sim, &EXCEPTION_OPEN_OF, &find, count_row, &count);
    return count == 1;
}

/* INV-21: what is held is somebody's; what is not is nobody's any more. */
static void check_card(struct sim *sim, const struct seen *event)
{
    bool held = event->verdict == EVENT_HELD;
    enum exception_kind kind = strcmp(event->reason, "loop") == 0             ? EXCEPTION_LOOP
                               : strcmp(event->reason, "cannot_forward") == 0 ? EXCEPTION_CANNOT_FORWARD
                                                                              : EXCEPTION_LIKELY_DUPLICATE;
    if (held && !has_card(sim, event->id, kind))
        sim_violated(sim, "INV-21", "event %lld is held, and nobody's", (long long)event->id);
    if (!held && kind != EXCEPTION_LOOP && has_card(sim, event->id, kind))
        sim_violated(sim, "INV-21", "event %lld is %s, and still somebody's", (long long)event->id,
                     event_verdict_names[event->verdict]);
    if (event->verdict == EVENT_ACCEPTED && has_card(sim, event->id, EXCEPTION_LOOP))
        mark(MARK_EVENT_COPIES_LOOP);
}

/* ---- when it is judged ---- */

void judge_acknowledged(struct sim *sim, int64_t event)
{
    ASSERT(sim->acknowledged_count < SEEN_MAX);
    sim->acknowledged[sim->acknowledged_count++] = event;
}

/* INV-22: acknowledged is there. */
static void check_acknowledged(struct sim *sim)
{
    for (int i = 0; i < sim->acknowledged_count; i++)
        if (judge_seen(sim, sim->acknowledged[i]) == NULL)
            sim_violated(sim, "INV-22", "event %lld was acknowledged, and is not there", (long long)sim->acknowledged[i]);
}

void judge_inbox(struct sim *sim)
{
    static struct look look;
    if (!sim->has_inbox)
        return;
    uint64_t commits = atomic_load(&engine_counts(sim->engine)->commits);
    bool boot = sim->looked == UINT64_MAX;
    if (commits == sim->looked)
        return;
    sim->looked = commits;
    look = (struct look){.sim = sim};
    struct q_event_list events = {BYTES("main"), -1, INT64_MAX, SEEN_MAX + 1};
    struct q_effect_list effects = {BYTES("main"), BYTES_NONE, -1, -1, INT64_MAX, EFFECTS_ROOM};
    judge_read(sim, &EVENT_LIST, &events, take_event, &look);
    for (int i = look.count; i-- > 0 && sim->violation[0] == '\0';)
        note_event(sim, &look.rows[i]);
    for (int i = 0; i < sim->seen_count; i++) {
        if (!sim->seen[i].gone)
            check_gone(sim, &sim->seen[i], &look);
        if (boot && sim->seen[i].verdict == EVENT_WAITING)
            mark(MARK_EVENT_AFTER_CRASH);
        if (sim->seen[i].verdict == EVENT_HELD)
            check_card(sim, &sim->seen[i]);
    }
    judge_read(sim, &EFFECT_LIST, &effects, take_effect, sim);
    for (int i = 0; i < sim->effect_count; i++)
        check_forward(sim, &sim->effects[i]);
    check_turns(sim);
    check_acknowledged(sim);
}

/* ---- the end ---- */

/* INV-22, INV-23: decided, forwarded if it goes on, its raw bytes kept as long as itself. */
static void check_ended(struct sim *sim, const struct seen *event)
{
    bool forwarded = false;
    int kept = 0;
    for (int i = 0; i < sim->effect_count; i++)
        forwarded |= sim->effects[i].event == event && sim->effects[i].replay == 0;
    if (event->verdict == EVENT_WAITING)
        sim_violated(sim, "INV-22", "event %lld was never decided", (long long)event->id);
    if (event->was == EVENT_ACCEPTED && rules_forward(event->policy, event->channel) && !forwarded)
        sim_violated(sim, "INV-23", "event %lld is accepted, and does not go on", (long long)event->id);
    if (event->gone)
        return;
    check_card(sim, event);
    struct q_delivery_get get = {BYTES("main"), event->delivery};
    judge_read(sim, &DELIVERY_GET, &get, count_row, &kept);
    if (kept != 1)
        sim_violated(sim, "INV-22", "event %lld is kept, and what came is not", (long long)event->id);
}

/* Each talk that was claimed happened as the ledger says. */
static void check_answers(struct sim *sim)
{
    for (int i = 0; i < sim->talk_count; i++) {
        struct talk *talk = &sim->talks[i];
        struct bytes key = thread_key(talk->thread, talk->epoch, BYTES("reply"), &sim->arena);
        struct stored stored = judge_load(sim, ANSWERS_WORKFLOW, key.at);
        if (!stored.has_intent)
            continue;
        judge_settled(sim, key.at, &stored.intent, talk->replies, false);
        judge_rebuilt(sim, key.at, &stored.intent);
    }
}

void judge_inbox_end(struct sim *sim)
{
    if (!sim->has_inbox)
        return;
    sim->looked = UINT64_MAX;
    judge_inbox(sim);
    for (int i = 0; i < sim->seen_count; i++)
        check_ended(sim, &sim->seen[i]);
    check_answers(sim);
    judge_story(sim);
    judge_rebuilt_cards(sim);
}
