#include "stage/stage.h"

#define CONTENT_MAX ((size_t)4 << 20)
#define SWEEP_SLICES 256
#define SWEEP_MOST 200

const char *const event_act_names[] = {"release", "suppress", "replay", NULL};

/* ---- writing ---- */

static void fill_event(struct row_event *row, const struct stage_order *order, size_t part, struct ledger *ledger)
{
    int64_t now = ledger->now.wall_us;
    *row = (struct row_event){
        .id = id_next(ledger->ids, now),
        .space = order->space,
        .source = order->source,
        .delivery = order->delivery,
        .part = (int64_t)part,
        .received = now,
        .content = order->contents[part],
    };
    order->events[part] = row->id;
}

enum status stage_write(struct store *store, struct ledger *ledger, struct stage_order *order, struct why *why)
{
    int64_t now = ledger->now.wall_us;
    struct row_event *rows = arena_zalloc(ledger->arena, order->count + 1, sizeof *rows);
    if (rows == NULL)
        return why_set(why, FULL, "no memory for a delivery");
    order->delivery = id_next(ledger->ids, now);
    struct row_delivery delivery = {order->delivery, order->space, order->source, now, now + order->keep_us, order->record};
    for (size_t i = 0; i < order->count; i++)
        fill_event(&rows[i], order, i, ledger);
    TRY(store_run(store, &DELIVERY_ADD, &delivery, 1, NULL, NULL, NULL, why));
    return store_run(store, &EVENT_ADD, rows, order->count, NULL, NULL, NULL, why);
}

/* ---- contents ---- */

/* The hash of a body: of its canonical form when it is JSON, so that white space and the order of members make no difference. */
static enum status hash_body(struct bytes body, struct arena *arena, struct hash *ret, struct why *why)
{
    static const struct json_limits limits = {.depth_max = 64, .members_max = 200000, .text_max = CONTENT_MAX};
    struct json json;
    struct why not_json;
    struct buf canonical;
    enum status status = json_parse(body, &limits, arena, &json, &not_json);
    if (status == FULL)
        return why_set(why, FULL, "no memory for an event");
    buf_init(&canonical, 2 * body.len + 64);
    if (status == OK && json_canonical(&json, arena, &canonical, &not_json) == OK)
        *ret = hash_sha256(buf_bytes(&canonical));
    else
        *ret = hash_sha256(body);
    buf_release(&canonical);
    return OK;
}

enum status event_seal(struct incoming *incoming, bool only, struct arena *arena, struct why *why)
{
    if (incoming->delivery.at == NULL && incoming->key.at == NULL) {
        struct hash hash;
        char hex[2 * HASH_SIZE];
        TRY(hash_body(incoming->piece, arena, &hash, why));
        bytes_to_hex(hash_bytes(&hash), hex);
        incoming->payload = arena_dup(arena, (struct bytes){hex, sizeof hex});
        if (incoming->payload.at == NULL)
            return why_set(why, FULL, "no memory for an event");
    }
    if (only)
        incoming->piece = BYTES_NONE;
    return OK;
}

static void write_text(struct json_out *out, const char *name, struct bytes text)
{
    if (text.at == NULL)
        return;
    json_name(out, name);
    json_text(out, text);
}

static void write_identities(struct json_out *out, const struct incoming *incoming)
{
    json_name(out, "identities");
    json_open(out, '[');
    for (size_t i = 0; i < incoming->identity_count; i++) {
        const struct identity *identity = &incoming->identities[i];
        json_open(out, '{');
        json_name(out, "kind");
        json_cstr(out, identity_kind_names[identity->kind]);
        json_name(out, "value");
        json_text(out, identity->value);
        write_text(out, "given", identity->given);
        json_name(out, "sender");
        json_bool(out, identity->sender);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void write_references(struct json_out *out, const struct incoming *incoming)
{
    if (incoming->reference_count == 0)
        return;
    json_name(out, "references");
    json_open(out, '[');
    for (size_t i = 0; i < incoming->reference_count; i++)
        json_text(out, incoming->references[i]);
    json_close(out, ']');
}

enum status event_record(const struct incoming *incoming, struct arena *arena, struct bytes *ret_content, struct why *why)
{
    struct buf buf;
    buf_init(&buf, CONTENT_MAX);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    write_text(&out, "kind", incoming->kind);
    write_text(&out, "delivery", incoming->delivery);
    write_text(&out, "key", incoming->key);
    write_text(&out, "name", incoming->name);
    write_text(&out, "company", incoming->company);
    write_text(&out, "country", incoming->country);
    write_text(&out, "subject", incoming->subject);
    write_text(&out, "text", incoming->text);
    write_text(&out, "thread", incoming->thread);
    write_text(&out, "payload", incoming->payload);
    write_text(&out, "piece", incoming->piece);
    write_references(&out, incoming);
    write_identities(&out, incoming);
    json_name(&out, "at");
    json_i64(&out, incoming->at_us);
    json_name(&out, "automatic");
    json_bool(&out, incoming->automatic);
    json_name(&out, "relayed");
    json_bool(&out, incoming->relayed);
    json_close(&out, '}');
    struct bytes content = buf.failed ? BYTES_NONE : arena_dup(arena, buf_bytes(&buf));
    buf_release(&buf);
    if (content.at == NULL)
        return why_set(why, FULL, "an event is larger than can be kept");
    *ret_content = content;
    return OK;
}

struct content_fields {
    struct incoming incoming;
    const struct json *references, *identities;
};

static const struct json_field content_fields[] = {
    {"kind", JSON_FIELD_TEXT, offsetof(struct content_fields, incoming.kind), true, 0, 0, NULL},
    {"delivery", JSON_FIELD_TEXT, offsetof(struct content_fields, incoming.delivery), false, 0, 0, NULL},
    {"key", JSON_FIELD_TEXT, offsetof(struct content_fields, incoming.key), false, 0, 0, NULL},
    {"name", JSON_FIELD_TEXT, offsetof(struct content_fields, incoming.name), false, 0, 0, NULL},
    {"company", JSON_FIELD_TEXT, offsetof(struct content_fields, incoming.company), false, 0, 0, NULL},
    {"country", JSON_FIELD_TEXT, offsetof(struct content_fields, incoming.country), false, 0, 0, NULL},
    {"subject", JSON_FIELD_TEXT, offsetof(struct content_fields, incoming.subject), false, 0, 0, NULL},
    {"text", JSON_FIELD_TEXT, offsetof(struct content_fields, incoming.text), false, 0, 0, NULL},
    {"thread", JSON_FIELD_TEXT, offsetof(struct content_fields, incoming.thread), false, 0, 0, NULL},
    {"payload", JSON_FIELD_TEXT, offsetof(struct content_fields, incoming.payload), false, 0, 0, NULL},
    {"piece", JSON_FIELD_TEXT, offsetof(struct content_fields, incoming.piece), false, 0, 0, NULL},
    {"references", JSON_FIELD_VALUE, offsetof(struct content_fields, references), false, 0, 0, NULL},
    {"identities", JSON_FIELD_VALUE, offsetof(struct content_fields, identities), true, 0, 0, NULL},
    {"at", JSON_FIELD_INT, offsetof(struct content_fields, incoming.at_us), false, 0, 0, NULL},
    {"automatic", JSON_FIELD_BOOL, offsetof(struct content_fields, incoming.automatic), false, 0, 0, NULL},
    {"relayed", JSON_FIELD_BOOL, offsetof(struct content_fields, incoming.relayed), false, 0, 0, NULL},
};

struct identity_fields {
    struct identity identity;
    int kind;
};

static const struct json_field identity_fields[] = {
    {"kind", JSON_FIELD_ENUM, offsetof(struct identity_fields, kind), true, 0, 0, identity_kind_names},
    {"value", JSON_FIELD_TEXT, offsetof(struct identity_fields, identity.value), true, 0, 0, NULL},
    {"given", JSON_FIELD_TEXT, offsetof(struct identity_fields, identity.given), false, 0, 0, NULL},
    {"sender", JSON_FIELD_BOOL, offsetof(struct identity_fields, identity.sender), true, 0, 0, NULL},
};

static enum status read_references(const struct json *json, struct arena *arena, struct incoming *incoming, struct why *why)
{
    if (json == NULL || json->type != JSON_ARRAY)
        return OK;
    incoming->references = arena_zalloc(arena, json->count + 1, sizeof *incoming->references);
    if (incoming->references == NULL)
        return why_set(why, FULL, "no memory for an event");
    for (uint32_t i = 0; i < json->count; i++)
        if (json->items[i].type == JSON_STRING)
            incoming->references[incoming->reference_count++] = json->items[i].text;
    return OK;
}

static enum status read_identities(const struct json *json, struct arena *arena, struct incoming *incoming, struct why *why)
{
    if (json->type != JSON_ARRAY)
        return why_set(why, BROKEN, "an event's identities are damaged");
    incoming->identities = arena_zalloc(arena, json->count + 1, sizeof *incoming->identities);
    if (incoming->identities == NULL)
        return why_set(why, FULL, "no memory for an event");
    for (uint32_t i = 0; i < json->count; i++) {
        struct identity_fields got = {0};
        TRY(json_read(&json->items[i], identity_fields, sizeof identity_fields / sizeof *identity_fields, &got, NULL, why));
        got.identity.kind = (enum identity_kind)got.kind;
        incoming->identities[incoming->identity_count++] = got.identity;
    }
    return OK;
}

enum status event_read(struct bytes content, struct arena *arena, struct incoming *ret, struct why *why)
{
    static const struct json_limits limits = {.depth_max = 8, .members_max = 100000, .text_max = CONTENT_MAX};
    struct content_fields got = {0};
    struct json json;
    TRY(json_parse(content, &limits, arena, &json, why));
    TRY(json_read(&json, content_fields, sizeof content_fields / sizeof *content_fields, &got, NULL, why));
    TRY(read_references(got.references, arena, &got.incoming, why));
    TRY(read_identities(got.identities, arena, &got.incoming, why));
    *ret = got.incoming;
    return OK;
}

/* ---- forgetting ---- */

struct dropped {
    struct q_event_drop *at;
    size_t count;
};

_Static_assert(sizeof(struct q_event_drop) == sizeof(struct q_delivery_drop), "both drop an id");
_Static_assert(sizeof(struct q_event_drop) == sizeof(struct q_event_act_drop), "both drop an id");

static enum status take_dropped(void *ctx, const void *row, struct why *why)
{
    struct dropped *dropped = ctx;
    (void)why;
    dropped->at[dropped->count++].id = ((const struct r_event_sweep *)row)->id;
    return OK;
}

/* The next ones whose time is over. */
static enum status sweep_rows(struct store *store, const struct query *find, const struct query *drop, int64_t wall_us,
                              struct arena *arena, bool *ret_more, struct why *why)
{
    struct q_event_sweep sweep = {wall_us, SWEEP_MOST};
    struct dropped dropped = {.at = arena_zalloc(arena, SWEEP_MOST, sizeof *dropped.at)};
    if (dropped.at == NULL)
        return why_set(why, FULL, "no memory for a sweep");
    TRY(store_run(store, find, &sweep, 1, take_dropped, &dropped, NULL, why));
    *ret_more = *ret_more || dropped.count == SWEEP_MOST;
    if (drop == &EVENT_DROP)
        TRY(store_run(store, &EVENT_ACT_DROP, dropped.at, dropped.count, NULL, NULL, NULL, why));
    return store_run(store, drop, dropped.at, dropped.count, NULL, NULL, NULL, why);
}

/* One of SWEEP_SLICES slices of their hashes. The last one ends behind the greatest hash. */
static enum status sweep_marks(struct store *store, int slice, int64_t wall_us, struct why *why)
{
    char low[1] = {(char)slice}, high[KEY_HASH_SIZE + 1];
    memset(high, 0xFF, sizeof high);
    bool last = slice == SWEEP_SLICES - 1;
    if (!last)
        high[0] = (char)(slice + 1);
    struct q_event_mark_sweep sweep = {{low, 1}, {high, last ? sizeof high : 1}, wall_us};
    return store_run(store, &EVENT_MARK_SWEEP, &sweep, 1, NULL, NULL, NULL, why);
}

enum status stage_sweep(struct store *store, int slice, int64_t wall_us, struct arena *arena, bool *ret_more, struct why *why)
{
    *ret_more = false;
    TRY(sweep_marks(store, slice % SWEEP_SLICES, wall_us, why));
    TRY(sweep_rows(store, &EVENT_SWEEP, &EVENT_DROP, wall_us, arena, ret_more, why));
    return sweep_rows(store, &DELIVERY_SWEEP, &DELIVERY_DROP, wall_us, arena, ret_more, why);
}
