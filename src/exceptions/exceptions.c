#include "exceptions/exceptions.h"

#include "base/mutant.h"

const char *const exception_kind_names[] = {"unknown_outcome", "dead_letter",        "refused", "likely_duplicate", "loop",
                                            "cannot_forward",  "ambiguous_identity", NULL};
const char *const exception_state_names[] = {"open", "resolved", NULL};

/* ---- decisions about cards ---- */

static void write_card(struct json_out *out, const struct row_exception *card)
{
    char id[32];
    json_name(out, "exception");
    json_text(out, (struct bytes){id, id_format("exc", card->id, id)});
    json_name(out, "kind");
    json_cstr(out, exception_kind_names[card->kind]);
    if (card->event != 0) {
        json_name(out, "event");
        json_text(out, (struct bytes){id, id_format("evt", card->event, id)});
    }
    if (card->edge != 0) {
        json_name(out, "edge");
        json_text(out, (struct bytes){id, id_format("edg", card->edge, id)});
    }
    json_name(out, "owner");
    json_text(out, card->owner);
    json_name(out, "due");
    json_i64(out, card->due);
    if (card->state == EXCEPTION_OPEN)
        return;
    json_name(out, "resolution");
    json_text(out, card->resolution);
    json_name(out, "note");
    json_text(out, card->note);
}

/* A card is no move of its intent: its decisions have no state. */
static void record(struct ledger *ledger, const struct row_exception *card, const char *kind, struct bytes actor)
{
    struct buf buf;
    buf_init(&buf, 16 << 10);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    write_card(&out, card);
    json_close(&out, '}');
    struct row_decision *row = audit_add(ledger->audit);
    struct bytes detail = buf.failed ? BYTES_NONE : arena_dup(ledger->arena, buf_bytes(&buf));
    buf_release(&buf);
    if (row == NULL || detail.at == NULL) {
        ledger->audit->failed = true;
        return;
    }
    row->space = card->space;
    row->kind = bytes_of(kind);
    row->intent = card->intent;
    row->state = -1;
    row->actor = actor;
    row->reason = card->reason;
    row->detail = detail;
}

/* ---- opening and closing ---- */

struct found {
    struct arena *arena;
    struct row_exception card;
    bool any;
};

static enum status take_card(void *ctx, const void *row, struct why *why)
{
    struct found *found = ctx;
    const struct row_exception *got = row;
    if (got->kind < 0 || got->kind >= EXCEPTION_KIND_COUNT)
        return why_set(why, BROKEN, "exception %lld is damaged", (long long)got->id);
    found->card = *got;
    struct bytes *texts[] = {&found->card.space, &found->card.owner, &found->card.reason};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = texts[i]->at != NULL ? arena_dup(found->arena, *texts[i]) : BYTES_NONE;
    found->any = true;
    return found->arena->failed ? why_set(why, FULL, "no memory for an exception") : OK;
}

static enum status find_open(struct store *store, struct arena *arena, const struct q_exception_open_of *find, struct found *ret,
                             struct why *why)
{
    *ret = (struct found){.arena = arena};
    return store_run(store, &EXCEPTION_OPEN_OF, find, 1, take_card, ret, NULL, why);
}

enum status exception_raise(struct store *store, struct ledger *ledger, const struct exception_order *order, struct why *why)
{
    struct row_exception card = {
        .id = id_next(ledger->ids, ledger->now.wall_us),
        .space = order->space,
        .kind = order->kind,
        .intent = order->intent,
        .event = order->event,
        .edge = order->edge,
        .owner = order->owner,
        .due = ledger->now.wall_us + order->due_us,
        .state = EXCEPTION_OPEN,
        .reason = order->reason,
        .created = ledger->now.wall_us,
    };
    int64_t added = 0;
    TRY(store_run(store, &EXCEPTION_ADD, &card, 1, NULL, NULL, &added, why));
    if (added == 0)
        return OK;
    struct found found;
    /* The owner may be another one than asked for. */
    struct q_exception_open_of find = {order->intent, order->event, order->edge, order->kind};
    TRY(find_open(store, ledger->arena, &find, &found, why));
    if (found.any)
        record(ledger, &found.card, "raise", BYTES("semel"));
    return OK;
}

static enum status close_open(struct store *store, struct ledger *ledger, struct found *found, struct bytes resolution,
                              struct bytes actor, struct bytes note, struct why *why)
{
    if (!found->any)
        return OK;
    struct q_exception_resolve resolve = {found->card.id, ledger->now.wall_us, resolution, actor, note};
    TRY(store_run(store, &EXCEPTION_RESOLVE, &resolve, 1, NULL, NULL, NULL, why));
    found->card.state = EXCEPTION_RESOLVED;
    found->card.resolution = resolution;
    found->card.note = note;
    record(ledger, &found->card, "resolve", actor);
    return OK;
}

enum status exception_close(struct store *store, struct ledger *ledger, int64_t intent, enum exception_kind kind,
                            struct bytes resolution, struct bytes actor, struct bytes note, struct why *why)
{
    struct found found;
    struct q_exception_open_of find = {intent, 0, 0, kind};
    TRY(find_open(store, ledger->arena, &find, &found, why));
    return close_open(store, ledger, &found, resolution, actor, note, why);
}

enum status exception_close_event(struct store *store, struct ledger *ledger, int64_t event, enum exception_kind kind,
                                  struct bytes resolution, struct bytes actor, struct bytes note, struct why *why)
{
    struct found found;
    struct q_exception_open_of find = {0, event, 0, kind};
    TRY(find_open(store, ledger->arena, &find, &found, why));
    return close_open(store, ledger, &found, resolution, actor, note, why);
}

enum status exception_close_edge(struct store *store, struct ledger *ledger, int64_t edge, struct bytes resolution,
                                 struct bytes actor, struct bytes note, struct why *why)
{
    struct found found;
    struct q_exception_open_of find = {0, 0, edge, EXCEPTION_AMBIGUOUS_IDENTITY};
    TRY(find_open(store, ledger->arena, &find, &found, why));
    return close_open(store, ledger, &found, resolution, actor, note, why);
}

enum status exception_assign(struct store *store, struct ledger *ledger, struct bytes space, int64_t id, struct bytes owner,
                             int64_t due_us, struct bytes actor, struct why *why)
{
    struct found found = {.arena = ledger->arena};
    struct q_exception_get get = {space, id};
    TRY(store_run(store, &EXCEPTION_GET, &get, 1, take_card, &found, NULL, why));
    if (!found.any || found.card.state != EXCEPTION_OPEN)
        return why_set(why, NOTHING, "there is no such open exception");
    found.card.owner = owner.at != NULL ? owner : found.card.owner;
    found.card.due = due_us != 0 ? due_us : found.card.due;
    struct q_exception_assign assign = {id, found.card.owner, found.card.due};
    TRY(store_run(store, &EXCEPTION_ASSIGN, &assign, 1, NULL, NULL, NULL, why));
    record(ledger, &found.card, "assign", actor);
    return OK;
}

/* ---- following the ledger ---- */

/* UNKNOWN and somebody has to say what happened. Skipped ones are settled. */
static bool asks_someone(const struct intent *intent)
{
    return intent->exists && intent->row.state == STATE_UNKNOWN && intent->row.settled == 0;
}

static const struct row_decision *last_move(const struct ledger *ledger, int64_t intent)
{
    for (size_t i = ledger->audit->count; i-- > 0;)
        if (ledger->audit->rows[i].intent == intent && ledger->audit->rows[i].state >= 0)
            return &ledger->audit->rows[i];
    return NULL;
}

static enum status open_card(struct store *store, struct ledger *ledger, const struct intent *intent, const struct people *people,
                             struct why *why)
{
    const struct row_decision *move = last_move(ledger, intent->row.id);
    struct exception_order order = {
        .kind = EXCEPTION_UNKNOWN_OUTCOME,
        .space = intent->row.space,
        .owner = bytes_of(people->owner),
        .reason = move != NULL ? move->reason : BYTES_NONE,
        .intent = intent->row.id,
        .due_us = people->due_us,
    };
    return exception_raise(store, ledger, &order, why);
}

/* What became of it is the word for the resolution. */
static enum status close_card(struct store *store, struct ledger *ledger, const struct intent *intent, struct why *why)
{
    static const char *const words[STATE_COUNT] = {
        [STATE_PENDING] = "retry",      [STATE_CLAIMED] = "retry",   [STATE_SENT] = "retry",
        [STATE_CONFIRMED] = "happened", [STATE_REFUSED] = "did_not", [STATE_UNKNOWN] = "skip"};
    const struct row_decision *move = last_move(ledger, intent->row.id);
    struct bytes actor = move != NULL ? move->actor : BYTES("semel");
    return exception_close(store, ledger, intent->row.id, EXCEPTION_UNKNOWN_OUTCOME, bytes_of(words[intent->row.state]), actor,
                           BYTES_NONE, why);
}

enum status exceptions_follow(struct store *store, struct ledger *ledger, struct intent *const *intents, size_t count,
                              const struct people *people, struct why *why)
{
    for (size_t i = 0; i < count; i++) {
        const struct intent *intent = intents[i];
        if (!intent->dirty && !intent->fresh)
            continue;
        bool was = intent->state_before == STATE_UNKNOWN, is = asks_someone(intent);
        if (is && !was && !MUTANT(NO_OWNER))
            TRY(open_card(store, ledger, intent, people, why));
        if (was && !is)
            TRY(close_card(store, ledger, intent, why));
    }
    return OK;
}
