#include "flow/flow_own.h"

#include "act/order.h"
#include "base/mutant.h"

/* ---- headers ---- */

static bool is_passed_on(struct bytes name)
{
    static const char *const kept_back[] = {
        "host",          "content-length", "transfer-encoding",   "connection", "expect",         "te", "upgrade", "keep-alive",
        "authorization", "cookie",         "proxy-authorization", "trailer",    "accept-encoding"};
    for (size_t i = 0; i < sizeof kept_back / sizeof *kept_back; i++)
        if (bytes_eq_nocase(name, bytes_of(kept_back[i])))
            return false;
    return !(name.len > 6 && bytes_eq_nocase((struct bytes){name.at, 6}, BYTES("semel-")));
}

static void add_header(struct effect_request *request, const char *name, struct bytes value)
{
    if (value.at != NULL && request->header_count < DESTINATION_HEADERS_MAX)
        request->headers[request->header_count++] = (struct pair){bytes_of(name), value};
}

static struct bytes verdict_word(const struct forwarding *forwarding)
{
    return forwarding->replay > 0 ? BYTES("replayed") : bytes_of(event_verdict_names[forwarding->event->verdict]);
}

/* What semel says about the event. */
static void add_headers(struct effect_request *request, const struct forwarding *forwarding, struct arena *arena)
{
    const struct row_event *event = forwarding->event;
    add_header(request, "Semel-Event-Id", id_text("evt", event->id, arena));
    add_header(request, "Semel-Source", event->source);
    add_header(request, "Semel-Verdict", verdict_word(forwarding));
    if (event->shadow != 0)
        add_header(request, "Semel-Mode", BYTES("shadow"));
    if (forwarding->replay > 0)
        add_header(request, "Semel-Replay", arena_printf(arena, "%lld", (long long)forwarding->replay));
    if (forwarding->lead != 0)
        add_header(request, "Semel-Lead-Id", id_text("lead", forwarding->lead, arena));
    if (event->thread == 0)
        return;
    add_header(request, "Semel-Thread", id_text("thr", event->thread, arena));
    if (event->epoch > 0)
        add_header(request, "Semel-Epoch", arena_printf(arena, "%lld", (long long)event->epoch));
}

/* `as: event`: what was understood, in one form for every source. */
static struct bytes event_body(const struct forwarding *forwarding, struct arena *arena)
{
    const struct row_event *event = forwarding->event;
    struct buf buf;
    buf_init(&buf, 8 << 20);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    json_text_member(&out, "event", id_text("evt", event->id, arena));
    json_text_member(&out, "source", event->source);
    json_text_member(&out, "verdict", verdict_word(forwarding));
    json_text_member(&out, "lead", forwarding->lead != 0 ? id_text("lead", forwarding->lead, arena) : BYTES_NONE);
    json_text_member(&out, "thread", event->thread != 0 ? id_text("thr", event->thread, arena) : BYTES_NONE);
    json_name(&out, "epoch");
    json_i64(&out, event->epoch);
    json_name(&out, "received_at");
    json_time(&out, event->received);
    json_name(&out, "content");
    json_raw(&out, event->content);
    json_close(&out, '}');
    struct bytes body = buf.failed ? BYTES_NONE : arena_dup(arena, buf_bytes(&buf));
    buf_release(&buf);
    return body;
}

/* `as: original`: as it came, so that what read it before still can. */
static enum status original_request(const struct incoming *incoming, struct bytes record, struct arena *arena,
                                    struct effect_request *request, struct why *why)
{
    struct effect_request came;
    TRY(request_read(record, arena, &came, why));
    request->body = incoming->piece.at != NULL ? incoming->piece : came.body;
    for (size_t i = 0; i < came.header_count && request->header_count < DESTINATION_HEADERS_MAX; i++)
        if (is_passed_on(came.headers[i].name))
            request->headers[request->header_count++] = came.headers[i];
    return OK;
}

static enum status make_request(const struct source *source, const struct forwarding *forwarding, struct arena *arena,
                                struct effect_request *ret, struct why *why)
{
    struct effect_request request = {.method = BYTES("POST"), .path = source->path.len > 0 ? source->path : BYTES("/")};
    request.headers = arena_zalloc(arena, DESTINATION_HEADERS_MAX, sizeof *request.headers);
    if (request.headers == NULL)
        return why_set(why, FULL, "no memory for an effect");
    add_headers(&request, forwarding, arena);
    if (source->as == SOURCE_AS_EVENT) {
        request.body = event_body(forwarding, arena);
        add_header(&request, "Content-Type", BYTES("application/json"));
        if (request.body.at == NULL)
            return why_set(why, FULL, "no memory for an effect");
    } else {
        TRY(original_request(forwarding->incoming, forwarding->record, arena, &request, why));
    }
    *ret = request;
    return OK;
}

/* The ledger makes it happen once for each key. */
static struct bytes make_key(const struct forwarding *forwarding, struct arena *arena)
{
    struct bytes event = id_text("evt", forwarding->event->id, arena);
    if (forwarding->replay == 0 || event.at == NULL)
        return event;
    return arena_printf(arena, "%.*s~replay-%lld", BYTES_ARG(event), (long long)forwarding->replay);
}

enum status forward_make(const struct forwarding *forwarding, struct arena *arena, struct ledger_command *ret_submit,
                         struct effect_order *ret_order, struct why *why)
{
    const struct row_event *event = forwarding->event;
    const struct source *source = policy_source(forwarding->policy, event->source);
    if (source == NULL)
        return why_set(why, INVALID, "the policy has no source \"%.*s\" any more", BYTES_ARG(event->source));
    if (source->forward.len == 0)
        return NOTHING;
    const struct destination *destination = policy_destination(forwarding->policy, source->forward);
    if (destination == NULL)
        return why_set(why, INVALID, "the policy has no destination \"%.*s\"", BYTES_ARG(source->forward));
    struct ledger_command submit = {
        .op = OP_SUBMIT,
        .space = event->space,
        .actor = forwarding->actor,
        .policy = forwarding->policy_version,
        .workflow = FLOW_WORKFLOW,
        .key = make_key(forwarding, arena),
    };
    struct effect_request request;
    struct effect_order order;
    TRY(make_request(source, forwarding, arena, &request, why));
    ledger_claim_rules(&submit, policy_workflow(forwarding->policy, FLOW_WORKFLOW));
    submit.shadow = false;
    const struct call_rules *call = destination_call(destination, request.method, request.path);
    TRY(effect_order_make(destination, call, &request, arena, &submit, NULL, &order, why));
    ledger_key_hash(forwarding->pepper, submit.space, submit.workflow, submit.key, submit.h);
    submit.evidence = outbox_evidence(&order, arena);
    *ret_submit = submit;
    *ret_order = order;
    return OK;
}

/* ---- into ledger and outbox ---- */

enum status forward_submit(struct store *store, struct ledger *ledger, const struct item *item, bool replay, int64_t *ret_intent,
                           bool *ret_new, struct why *why)
{
    const struct row_event *row = &item->known.row;
    struct intent *intent = ledger->find(ledger, item->submit.h);
    struct ledger_answer answer = {0};
    bool existed = intent->exists;
    ledger_apply(ledger, intent, &item->submit, &answer);
    bool created = !existed && intent->exists; /* also as unknown, where data may be lost: its request is kept with it */
    if (!created && (replay || row->intent == 0))
        return why_set(why, INVALID, "the ledger has the key %.*s in workflow %.*s already: %s", BYTES_ARG(item->submit.key),
                       BYTES_ARG(item->submit.workflow), ledger_verdict_names[answer.verdict]);
    if (created)
        TRY(outbox_write(store, ledger, answer.intent, &item->order, why));
    *ret_intent = created ? answer.intent : row->intent;
    *ret_new = created;
    return OK;
}

/* ---- the raw delivery ---- */

struct record {
    struct arena *arena;
    struct bytes bytes;
};

static enum status take_record(void *ctx, const void *row, struct why *why)
{
    struct record *record = ctx;
    record->bytes = arena_dup(record->arena, ((const struct row_delivery *)row)->record);
    return record->bytes.at != NULL ? OK : why_set(why, FULL, "no memory for a delivery");
}

enum status forward_record(struct store *store, const struct row_event *event, struct arena *arena, struct bytes *ret_record,
                           struct why *why)
{
    struct q_delivery_get get = {event->space, event->delivery};
    struct record record = {.arena = arena};
    TRY(store_run(store, &DELIVERY_GET, &get, 1, take_record, &record, NULL, why));
    *ret_record = record.bytes;
    return OK;
}

/* ---- in a pass ---- */

/* A sentence that was cut off may end within a character. */
static struct bytes whole_text(struct bytes text)
{
    for (int i = 0; i < 4 && text.len > 0 && !bytes_is_utf8(text); i++)
        text.len--;
    return bytes_is_utf8(text) ? text : BYTES("the request cannot be made");
}

/* Nothing is lost: a person mends the policy and lets it go on, or puts it away. */
static enum status hold(struct pass *pass, struct item *item, const struct why *why)
{
    item->forwards = false;
    item->obstacle = arena_dup(pass->arena, whole_text(bytes_of(why->text)));
    if (item->obstacle.at == NULL)
        return pass_no_memory(pass);
    item->verdict.verdict = EVENT_HELD;
    item->verdict.reason = "cannot_forward";
    pass_note(pass, item);
    return pass->recall->card(pass, item, EXCEPTION_CANNOT_FORWARD, item->known.row.id, item->obstacle.at);
}

/* Accepted ones go on; in shadow mode all of them do. Where the source is gone nobody knows whether it forwards. */
enum status pass_prepare(struct pass *pass, struct item *item)
{
    struct row_event *row = &item->known.row;
    bool goes = item->verdict.verdict == EVENT_ACCEPTED || row->shadow != 0;
    goes = goes || (MUTANT(HELD_GOES_ON) && item->verdict.verdict == EVENT_HELD);
    if (!goes || (item->source != NULL && item->source->forward.len == 0))
        return OK;
    struct forwarding forwarding = {pass->policy, pass->policy_version, row, &item->known.incoming, BYTES_NONE,
                                    pass->pepper, BYTES("semel"),       0,   item->lead.lead};
    TRY(forward_record(pass->store, row, pass->arena, &forwarding.record, pass->why));
    struct why why;
    enum status status = forward_make(&forwarding, pass->arena, &item->submit, &item->order, &why);
    if (pass->arena->failed)
        return pass_no_memory(pass);
    item->forwards = status == OK;
    return item->forwards ? OK : hold(pass, item, &why);
}

static enum status forward_one(struct pass *pass, struct item *item)
{
    struct why why;
    bool created = false;
    enum status status = forward_submit(pass->store, pass->ledger, item, false, &item->known.row.intent, &created, &why);
    if (status == INVALID)
        return hold(pass, item, &why);
    pass->flow->forwarded += created;
    if (status != OK)
        *pass->why = why;
    return status;
}

enum status pass_forward(struct pass *pass)
{
    uint8_t(*hashes)[KEY_HASH_SIZE] = arena_zalloc(pass->arena, pass->count + 1, KEY_HASH_SIZE);
    size_t count = 0;
    if (hashes == NULL)
        return pass_no_memory(pass);
    const struct ledger_command **submits = arena_zalloc(pass->arena, pass->count + 1, sizeof *submits);
    if (submits == NULL)
        return pass_no_memory(pass);
    for (size_t i = 0; i < pass->count; i++)
        if (pass->items[i].forwards) {
            submits[count] = &pass->items[i].submit;
            memcpy(hashes[count++], pass->items[i].submit.h, KEY_HASH_SIZE);
        }
    TRY(ledger_line_up(pass->ledger, pass->store, pass->pepper, submits, count, pass->why));
    TRY(pass->ledger->load(pass->ledger, pass->store, (const uint8_t(*)[KEY_HASH_SIZE])hashes, count, pass->why));
    for (size_t i = 0; i < pass->count; i++)
        if (pass->items[i].forwards)
            TRY(forward_one(pass, &pass->items[i]));
    return OK;
}
