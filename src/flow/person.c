#include "flow/person.h"

#include "base/mutant.h"
#include "flow/flow_own.h"

struct doing {
    struct person_order *order;
    struct store *store;
    struct ledger *ledger;
    struct arena *arena;
    const struct policy *policy;
    int64_t policy_version;
    struct item item; /* the event; its places and marks are not looked at */
    bool found;
    int64_t act; /* the id of the row that is written about it */
    int64_t was;
    int64_t replays;
    struct row_thread thread;
    bool has_thread;
    struct leads *leads; /* what is to be written of them; NULL for nothing */
    struct why *why;
};

/* ---- how it stands ---- */

static enum status take_event(void *ctx, const void *row, struct why *why)
{
    struct doing *doing = ctx;
    const struct row_event *got = row;
    struct row_event *kept = &doing->item.known.row;
    if (got->verdict < 0 || got->verdict >= EVENT_VERDICT_COUNT)
        return why_set(why, BROKEN, "event %lld is damaged", (long long)got->id);
    *kept = *got;
    struct bytes *texts[] = {&kept->space, &kept->source, &kept->content, &kept->reason, &kept->explanation};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = texts[i]->at != NULL ? arena_dup(doing->arena, *texts[i]) : BYTES_NONE;
    doing->found = true;
    return doing->arena->failed ? why_set(why, FULL, "no memory for an event") : OK;
}

static enum status count_replay(void *ctx, const void *row, struct why *why)
{
    (void)why;
    ((struct doing *)ctx)->replays += ((const struct row_event_act *)row)->act == EVENT_ACT_REPLAY;
    return OK;
}

static enum status take_thread(void *ctx, const void *row, struct why *why)
{
    struct doing *doing = ctx;
    doing->thread = *(const struct row_thread *)row;
    doing->thread.space = arena_dup(doing->arena, doing->thread.space);
    doing->has_thread = true;
    return doing->thread.space.at != NULL ? OK : why_set(why, FULL, "no memory for a thread");
}

static enum status load(struct doing *doing)
{
    struct person_order *order = doing->order;
    struct q_event_get get = {order->space, order->event};
    struct q_event_act_list acts = {order->event};
    TRY(store_run(doing->store, &EVENT_LOCK, NULL, 0, NULL, NULL, NULL, doing->why)); /* the flow decides in between, or after */
    TRY(store_run(doing->store, &EVENT_GET, &get, 1, take_event, doing, NULL, doing->why));
    if (!doing->found)
        return why_set(doing->why, NOTHING, "there is no such event");
    TRY(event_read(doing->item.known.row.content, doing->arena, &doing->item.known.incoming, doing->why));
    doing->item.source = policy_source(doing->policy, doing->item.known.row.source);
    doing->was = doing->item.known.row.verdict;
    return store_run(doing->store, &EVENT_ACT_LIST, &acts, 1, count_replay, doing, NULL, doing->why);
}

/* ---- what may be done ---- */

/* [act][verdict] */
static const enum person_end ends[EVENT_ACT_COUNT][EVENT_VERDICT_COUNT] = {
    [EVENT_ACT_RELEASE] = {[EVENT_WAITING] = PERSON_CANNOT, [EVENT_ACCEPTED] = PERSON_BEFORE, [EVENT_RELEASED] = PERSON_BEFORE},
    [EVENT_ACT_SUPPRESS] = {[EVENT_WAITING] = PERSON_CANNOT,
                            [EVENT_ACCEPTED] = PERSON_CANNOT,
                            [EVENT_SUPPRESSED] = PERSON_BEFORE,
                            [EVENT_MUTED] = PERSON_CANNOT,
                            [EVENT_IGNORED] = PERSON_CANNOT,
                            [EVENT_RELEASED] = PERSON_CANNOT},
    [EVENT_ACT_REPLAY] = {[EVENT_WAITING] = PERSON_CANNOT,
                          [EVENT_SUPPRESSED] = PERSON_CANNOT,
                          [EVENT_HELD] = PERSON_CANNOT,
                          [EVENT_MUTED] = PERSON_CANNOT,
                          [EVENT_IGNORED] = PERSON_CANNOT},
};

/* A loop is reported with the event whose copies come: that one went on long ago, and only the card is closed. */
static enum status close_cards(struct doing *doing)
{
    const struct person_order *order = doing->order;
    static const enum exception_kind kinds[] = {EXCEPTION_LIKELY_DUPLICATE, EXCEPTION_LOOP, EXCEPTION_CANNOT_FORWARD};
    if (order->act == EVENT_ACT_REPLAY || (order->end == PERSON_CANNOT && !order->by_card) || MUTANT(CARD_STAYS))
        return OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        TRY(exception_close_event(doing->store, doing->ledger, order->event, kinds[i], bytes_of(event_act_names[order->act]),
                                  order->actor, order->note, doing->why));
    return OK;
}

/* ---- what follows ---- */

/* A question that goes on is the open one of its conversation, or opens the next. Its place in time is now, not when it came: what
 * was done meanwhile was no answer to it. */
static enum status ask(struct doing *doing)
{
    struct row_event *row = &doing->item.known.row;
    struct q_thread_get get = {row->space, row->thread};
    if (row->thread == 0 || !item_is_question(&doing->item))
        return OK;
    TRY(store_run(doing->store, &THREAD_GET, &get, 1, take_thread, doing, NULL, doing->why));
    if (!doing->has_thread)
        return OK;
    bool answered = false;
    if (doing->thread.epoch > 0)
        TRY(thread_is_answered(doing->store, doing->ledger, engine_pepper(doing->order->flow->engine), &doing->thread, &answered,
                               doing->why));
    thread_ask(&doing->thread, answered, doing->act, doing->ledger->now.wall_us);
    row->epoch = doing->thread.epoch;
    return OK;
}

/* Whose it is: found out when it goes on for the first time. */
static enum status find_lead(struct doing *doing)
{
    struct item *item = &doing->item;
    struct leads_config config = {
        .store = doing->store,
        .ledger = doing->ledger,
        .arena = doing->arena,
        .pepper = engine_pepper(doing->order->flow->engine),
        .actor = BYTES("semel"),
        .policy = doing->policy_version,
        .people = engine_people(doing->order->flow->engine),
    };
    if (item->known.row.record != 0)
        return flow_lead_of(doing->store, item->known.row.record, &item->lead.lead, doing->why);
    TRY(flow_leads(&config, item, 1, &doing->leads, doing->why));
    if (doing->has_thread && item->known.row.record != 0)
        doing->thread.record = item->known.row.record;
    return OK;
}

static enum status prepare(struct doing *doing)
{
    const struct person_order *order = doing->order;
    struct item *item = &doing->item;
    struct forwarding forwarding = {.policy = doing->policy,
                                    .policy_version = doing->policy_version,
                                    .event = &item->known.row,
                                    .incoming = &item->known.incoming,
                                    .pepper = engine_pepper(order->flow->engine),
                                    .actor = order->actor,
                                    .replay = MUTANT(REPLAY_SAME) ? 0 : order->number,
                                    .lead = item->lead.lead};
    if (MUTANT(RELEASE_AGAIN) && order->act == EVENT_ACT_RELEASE)
        forwarding.replay = doing->act;
    TRY(forward_record(doing->store, &item->known.row, doing->arena, &forwarding.record, doing->why));
    enum status status = forward_make(&forwarding, doing->arena, &item->submit, &item->order, doing->why);
    item->forwards = status == OK;
    if (status == NOTHING && order->act == EVENT_ACT_REPLAY)
        return why_set(doing->why, INVALID, "source \"%.*s\" forwards nothing", BYTES_ARG(item->known.row.source));
    return status == NOTHING ? OK : status;
}

static enum status forward(struct doing *doing)
{
    const struct item *item = &doing->item;
    struct ledger *ledger = doing->ledger;
    uint8_t h[1][KEY_HASH_SIZE];
    bool created;
    if (!item->forwards)
        return OK;
    memcpy(h[0], item->submit.h, KEY_HASH_SIZE);
    TRY(ledger_line_up(ledger, doing->store, engine_pepper(doing->order->flow->engine),
                       &(const struct ledger_command *){&item->submit}, 1, doing->why));
    TRY(ledger->load(ledger, doing->store, (const uint8_t(*)[KEY_HASH_SIZE])h, 1, doing->why));
    return forward_submit(doing->store, ledger, item, doing->order->act == EVENT_ACT_REPLAY, &doing->order->intent, &created,
                          doing->why);
}

/* ---- writing ---- */

static struct bytes make_detail(struct doing *doing)
{
    const struct person_order *order = doing->order;
    const struct row_event *row = &doing->item.known.row;
    struct buf buf;
    buf_init(&buf, 16 << 10);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    json_text_member(&out, "event", id_text("evt", row->id, doing->arena));
    json_text_member(&out, "source", row->source);
    json_text_member(&out, "was", bytes_of(event_verdict_names[doing->was]));
    json_text_member(&out, "note", order->note);
    if (order->number > 0) {
        json_name(&out, "replay");
        json_i64(&out, order->number);
    }
    if (order->intent != 0)
        json_text_member(&out, "forwarded_by", id_text("int", order->intent, doing->arena));
    json_close(&out, '}');
    struct bytes detail = buf.failed ? BYTES_NONE : arena_dup(doing->arena, buf_bytes(&buf));
    buf_release(&buf);
    return detail;
}

static enum status record(struct doing *doing)
{
    static const char *const kinds[EVENT_ACT_COUNT] = {"released", "suppressed", "replayed"};
    const struct person_order *order = doing->order;
    struct row_event_act act = {doing->act,   order->event, order->act,   doing->was, doing->ledger->now.wall_us,
                                order->actor, order->note,  order->intent};
    struct bytes detail = make_detail(doing);
    struct row_decision *decision = audit_add(doing->ledger->audit);
    if (decision == NULL || detail.at == NULL)
        return why_set(doing->why, FULL, "no memory for a decision");
    decision->space = doing->item.known.row.space;
    decision->kind = bytes_of(kinds[order->act]);
    decision->state = -1;
    decision->policy = doing->policy_version;
    decision->actor = order->actor;
    decision->reason = BYTES("a_person_decided");
    decision->detail = detail;
    return store_run(doing->store, &EVENT_ACT_ADD, &act, 1, NULL, NULL, NULL, doing->why);
}

static enum status decide_anew(struct doing *doing)
{
    struct row_event *row = &doing->item.known.row;
    const struct source *source = doing->item.source;
    if (doing->order->act == EVENT_ACT_REPLAY)
        return OK;
    if (doing->order->intent != 0)
        row->intent = doing->order->intent;
    row->until = doing->ledger->now.wall_us + (source != NULL ? source->keep_us : 30 * WHEN_DAY);
    struct row_event_decided decided = decided_of(row);
    TRY(store_run(doing->store, &EVENT_DECIDE, &decided, 1, NULL, NULL, NULL, doing->why));
    return doing->has_thread ? store_run(doing->store, &THREAD_PUT, &doing->thread, 1, NULL, NULL, NULL, doing->why) : OK;
}

static enum status carry_out(struct doing *doing)
{
    struct person_order *order = doing->order;
    struct row_event *row = &doing->item.known.row;
    doing->act = id_next(doing->ledger->ids, doing->ledger->now.wall_us);
    order->number = order->act == EVENT_ACT_REPLAY ? doing->replays + 1 : 0;
    if (order->act == EVENT_ACT_RELEASE) {
        row->verdict = EVENT_RELEASED;
        TRY(ask(doing));
    } else if (order->act == EVENT_ACT_SUPPRESS) {
        row->verdict = EVENT_SUPPRESSED;
    }
    if (order->act != EVENT_ACT_SUPPRESS) {
        TRY(find_lead(doing));
        TRY(prepare(doing));
    }
    TRY(forward(doing)); /* from here on something is written */
    if (doing->leads != NULL)
        TRY(leads_save(doing->leads, doing->why));
    TRY(decide_anew(doing));
    return record(doing);
}

static enum status act(struct doing *doing)
{
    struct person_order *order = doing->order;
    TRY(load(doing));
    const struct row_event *row = &doing->item.known.row;
    order->end = ends[order->act][row->verdict];
    if (MUTANT(RELEASE_AGAIN) && order->act == EVENT_ACT_RELEASE && row->verdict == EVENT_RELEASED)
        order->end = PERSON_DONE;
    if (order->end == PERSON_DONE)
        TRY(carry_out(doing));
    order->verdict = (enum event_verdict)row->verdict;
    order->thread = row->thread;
    order->epoch = row->epoch;
    order->slot = flow_slot(order->flow, row->source);
    if (order->end != PERSON_DONE)
        order->intent = row->intent;
    return close_cards(doing);
}

enum status person_write(struct store *store, struct ledger *ledger, struct person_order *order, struct why *why)
{
    order->intent = order->number = 0; /* it may be the second try */
    struct doing doing = {.order = order, .store = store, .ledger = ledger, .arena = ledger->arena, .why = why};
    struct policy *policy = flow_policy(order->flow, &doing.policy_version);
    doing.policy = policy;
    enum status status = act(&doing);
    policy_free(policy);
    return status;
}

void person_done(const struct person_order *order)
{
    if (order->end != PERSON_DONE)
        return;
    if (order->act == EVENT_ACT_RELEASE)
        flow_count(order->flow, order->slot, EVENT_RELEASED);
    if (order->intent != 0 && order->flow->act != NULL)
        act_wake(order->flow->act);
}
