#include "flow/flow_own.h"

#include "base/mutant.h"

#define MARK_KEPT_US (90 * WHEN_DAY) /* ids are remembered at least so long */

static struct bytes explain_obstacle(struct pass *pass, const struct item *item)
{
    struct buf buf;
    buf_init(&buf, 16 << 10);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    json_text_member(&out, "why", item->obstacle);
    json_close(&out, '}');
    struct bytes explanation = buf.failed ? BYTES_NONE : arena_dup(pass->arena, buf_bytes(&buf));
    buf_release(&buf);
    return explanation;
}

static struct bytes explain(struct pass *pass, const struct item *item)
{
    struct buf buf;
    if (item->obstacle.at != NULL)
        return explain_obstacle(pass, item);
    if (item->likened == NULL || !item_speaks(item))
        return BYTES_NONE;
    struct likeness likeness = message_compare(&item->known.text, item->likened);
    buf_init(&buf, 64 << 10);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    json_name(&out, "same");
    json_i64(&out, likeness.same);
    json_name(&out, "contained");
    json_i64(&out, likeness.contained);
    json_text_member(&out, "only_here", message_only_in(&item->known.text, item->likened, 40, pass->arena));
    json_text_member(&out, "only_there", message_only_in(item->likened, &item->known.text, 40, pass->arena));
    json_close(&out, '}');
    struct bytes explanation = buf.failed ? BYTES_NONE : arena_dup(pass->arena, buf_bytes(&buf));
    buf_release(&buf);
    return explanation;
}

/* What is known of the event after the decision, before anything is written. */
void pass_note(struct pass *pass, struct item *item)
{
    struct row_event *row = &item->known.row;
    const struct source *source = item->source;
    int64_t now = pass->ledger->now.wall_us;
    bool shadow = source != NULL && source->shadow;
    row->verdict = item->verdict.verdict;
    row->shadow = shadow && row->verdict != EVENT_ACCEPTED && item->obstacle.at == NULL;
    row->reason = bytes_of(item->verdict.reason);
    row->score = item->verdict.score;
    row->first = item->verdict.first;
    row->explanation = explain(pass, item);
    row->thread = item->copy_of != NULL ? item->copy_of->row.thread : item->thread != NULL ? item->thread->row.id : 0;
    row->epoch = item->copy_of != NULL                            ? item->copy_of->row.epoch
                 : item->thread != NULL && item_is_question(item) ? item->thread->row.epoch
                                                                  : 0;
    row->policy = pass->policy_version;
    row->decided = now;
    bool held = row->verdict == EVENT_HELD && !MUTANT(HELD_FORGOTTEN);
    row->until = held || item->unreadable ? 0 : now + (source != NULL ? source->keep_us : 30 * WHEN_DAY);
}

/* Whose it is. What was found out about a new record is a decision of its own. */
static void write_lead(struct json_out *out, const struct item *item, struct arena *arena)
{
    if (item->lead.lead == 0)
        return;
    json_text_member(out, "lead", id_text("lead", item->lead.lead, arena));
    json_text_member(out, "record", id_text("rec", item->lead.record, arena));
    json_text_member(out, "found", bytes_of(lead_found_names[item->lead.found]));
}

static void write_decision(struct pass *pass, const struct item *item)
{
    const struct row_event *row = &item->known.row;
    struct buf buf;
    if (MUTANT(VERDICT_UNLOGGED) && row->verdict == EVENT_SUPPRESSED)
        return;
    buf_init(&buf, 16 << 10);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    json_text_member(&out, "event", id_text("evt", row->id, pass->arena));
    json_text_member(&out, "source", row->source);
    json_name(&out, "score");
    json_i64(&out, row->score);
    if (row->first != 0)
        json_text_member(&out, "first", id_text("evt", row->first, pass->arena));
    if (row->thread != 0)
        json_text_member(&out, "thread", id_text("thr", row->thread, pass->arena));
    json_name(&out, "epoch");
    json_i64(&out, row->epoch);
    write_lead(&out, item, pass->arena);
    json_name(&out, "shadow");
    json_bool(&out, row->shadow != 0);
    if (item->obstacle.at != NULL)
        json_text_member(&out, "why", item->obstacle);
    json_close(&out, '}');
    struct row_decision *decision = audit_add(pass->ledger->audit);
    struct bytes detail = buf.failed ? BYTES_NONE : arena_dup(pass->arena, buf_bytes(&buf));
    buf_release(&buf);
    if (decision == NULL || detail.at == NULL) {
        pass->ledger->audit->failed = true;
        return;
    }
    decision->space = row->space;
    decision->kind = bytes_of(event_verdict_names[row->verdict]);
    decision->state = -1;
    decision->policy = pass->policy_version;
    decision->actor = BYTES("semel");
    decision->reason = row->reason;
    decision->detail = detail;
}

struct row_event_decided decided_of(const struct row_event *row)
{
    return (struct row_event_decided){row->id,     row->verdict,     row->shadow, row->reason, row->score,
                                      row->first,  row->explanation, row->thread, row->epoch,  row->intent,
                                      row->policy, row->decided,     row->until,  row->record};
}

/* How long it stays recognisable by this mark: ids as long as their sender may repeat them, contents within their windows. */
static int64_t mark_until(const struct item *item, enum mark_kind kind)
{
    const struct source *source = item->source;
    int64_t at = item->known.row.received;
    if (source == NULL)
        return at + MARK_KEPT_US;
    int64_t windows = source->window_us > source->across_us ? source->window_us : source->across_us;
    if (kind != MARK_DELIVERY && kind != MARK_KEY)
        return at + windows;
    int64_t kept = source->keep_us > 2 * source->retry_us ? source->keep_us : 2 * source->retry_us;
    return at + (kept > MARK_KEPT_US ? kept : MARK_KEPT_US);
}

/* The ids of a copy lead to its original. */
bool item_leaves_mark(const struct item *item, enum mark_kind kind, int64_t *ret_event)
{
    bool copy = item->verdict.verdict == EVENT_SUPPRESSED;
    *ret_event = copy && !MUTANT(COPY_OF_COPY) ? item->verdict.first : item->known.row.id;
    return !copy || ((kind == MARK_DELIVERY || kind == MARK_KEY) && !MUTANT(COPY_UNMARKED));
}

static enum status save_marks(struct pass *pass)
{
    size_t count = 0, most = 0;
    for (size_t i = 0; i < pass->count; i++)
        most += pass->items[i].mark_count;
    struct q_event_mark_add *adds = arena_zalloc(pass->arena, most + 1, sizeof *adds);
    if (adds == NULL)
        return pass_no_memory(pass);
    for (size_t i = 0; i < pass->count; i++) {
        const struct item *item = &pass->items[i];
        for (size_t j = 0; j < item->mark_count; j++) {
            enum mark_kind kind = item->marks[j].kind;
            int64_t event;
            if (item_leaves_mark(item, kind, &event))
                adds[count++] = (struct q_event_mark_add){{(const char *)item->marks[j].mark->h, KEY_HASH_SIZE},
                                                          event,
                                                          item->known.row.received,
                                                          mark_until(item, kind)};
        }
    }
    count = MUTANT(UNMARKED) ? 0 : count;
    return store_run(pass->store, &EVENT_MARK_ADD, adds, count, NULL, NULL, NULL, pass->why);
}

/* Who takes part in which conversation, so that it can be found by them. */
static enum status save_people(struct pass *pass)
{
    size_t count = 0, most = 0;
    for (size_t i = 0; i < pass->count; i++)
        most += pass->items[i].known.incoming.identity_count;
    struct q_thread_person_add *adds = arena_zalloc(pass->arena, most + 1, sizeof *adds);
    uint8_t(*hashes)[KEY_HASH_SIZE] = arena_zalloc(pass->arena, most + 1, KEY_HASH_SIZE);
    if (adds == NULL || hashes == NULL)
        return pass_no_memory(pass);
    for (size_t i = 0; i < pass->count; i++) {
        const struct item *item = &pass->items[i];
        const struct incoming *incoming = &item->known.incoming;
        for (size_t j = 0; j < incoming->identity_count; j++) {
            if (item->thread == NULL || !incoming->identities[j].sender || item->verdict.verdict == EVENT_SUPPRESSED)
                continue;
            thread_person(pass->pepper, item->known.row.space, incoming->identities[j].value, hashes[count]);
            adds[count] = (struct q_thread_person_add){{(const char *)hashes[count], KEY_HASH_SIZE}, item->thread->row.id};
            count++;
        }
    }
    return store_run(pass->store, &THREAD_PERSON_ADD, adds, count, NULL, NULL, NULL, pass->why);
}

static enum status commit_apart(struct pass *pass)
{
    TRY(store_commit(pass->store, pass->why));
    return store_begin(pass->store, pass->why);
}

enum status pass_write(struct pass *pass)
{
    struct row_event_decided *decided = arena_zalloc(pass->arena, pass->count + 1, sizeof *decided);
    if (decided == NULL)
        return pass_no_memory(pass);
    TRY(pass_forward(pass));
    if (MUTANT(FORWARD_APART))
        TRY(commit_apart(pass));
    for (size_t i = 0; i < pass->count; i++) {
        decided[i] = decided_of(&pass->items[i].known.row);
        write_decision(pass, &pass->items[i]);
        pass->flow->decided[pass->flow->decided_count++] =
            (struct flow_decided){flow_slot(pass->flow, pass->items[i].known.row.source), pass->items[i].verdict.verdict};
    }
    TRY(store_run(pass->store, &EVENT_DECIDE, decided, pass->count, NULL, NULL, NULL, pass->why));
    if (MUTANT(VERDICT_APART))
        TRY(commit_apart(pass));
    TRY(save_marks(pass));
    TRY(save_people(pass));
    TRY(marks_save_copies(&pass->marks, pass->store, pass->why));
    return threads_save(&pass->places, pass->store, pass->why);
}
