#include "flow/flow_own.h"

#include "base/mutant.h"

#define SENDERS_MOST 8 /* earlier events of one person that are compared */

bool item_speaks(const struct item *item)
{
    const struct incoming *incoming = &item->known.incoming;
    return (bytes_is(incoming->kind, "message") || bytes_is(incoming->kind, "lead")) && item->known.text.word_count > 0;
}

bool item_has_id(const struct incoming *incoming)
{
    return incoming->delivery.at != NULL || incoming->key.at != NULL;
}

bool item_is_question(const struct item *item)
{
    const struct incoming *incoming = &item->known.incoming;
    return (bytes_is(incoming->kind, "message") || bytes_is(incoming->kind, "lead")) && !incoming->automatic;
}

/* ---- marks ---- */

void flow_mark(struct bytes pepper, enum mark_kind kind, struct bytes space, struct bytes a, struct bytes b,
               uint8_t ret[KEY_HASH_SIZE])
{
    static const char *const words[MARK_KIND_COUNT] = {"delivery", "key", "payload", "content", "sender"};
    struct bytes parts[] = {pepper, BYTES("event"), bytes_of(words[kind]), space, a, b};
    struct hash hash = hash_parts(parts, sizeof parts / sizeof *parts);
    memcpy(ret, hash.at, KEY_HASH_SIZE);
}

static void add_mark(struct pass *pass, struct item *item, enum mark_kind kind, struct bytes a, struct bytes b)
{
    uint8_t h[KEY_HASH_SIZE];
    flow_mark(pass->pepper, kind, item->known.row.space, a, b, h);
    struct mark *mark = marks_at(&pass->marks, h, kind == MARK_SENDER ? SENDERS_MOST : 2);
    if (mark != NULL)
        item->marks[item->mark_count++] = (struct item_mark){kind, mark};
    else
        pass->arena->failed = true;
}

static void collect_marks(struct pass *pass, struct item *item)
{
    const struct incoming *incoming = &item->known.incoming;
    if (incoming->delivery.at != NULL)
        add_mark(pass, item, MARK_DELIVERY, item->known.row.source, incoming->delivery);
    if (incoming->key.at != NULL)
        add_mark(pass, item, MARK_KEY, incoming->key, BYTES_NONE);
    if (!item_has_id(incoming))
        add_mark(pass, item, MARK_PAYLOAD, item->known.row.source, incoming->payload);
    for (size_t i = 0; i < incoming->identity_count && item_speaks(item); i++) {
        const struct identity *identity = &incoming->identities[i];
        if (identity->sender)
            add_mark(pass, item, MARK_CONTENT, identity->value, hash_bytes(&item->known.text.hash));
        add_mark(pass, item, MARK_SENDER, identity->value, BYTES_NONE);
    }
}

static void add_place(struct pass *pass, struct item *item, const char *word, struct bytes a, struct bytes b)
{
    struct bytes parts[] = {pass->pepper, BYTES("thread"), bytes_of(word), item->known.row.space, a, b};
    struct hash hash = hash_parts(parts, sizeof parts / sizeof *parts);
    struct thread_place *place = threads_at(&pass->places, hash.at);
    if (place != NULL)
        item->places[item->place_count++] = place;
    else
        pass->arena->failed = true;
}

static bool is_mail(const struct incoming *incoming)
{
    return bytes_starts(incoming->key, BYTES("mail:"));
}

/* A mail has a topic; a chat or a form goes on for ever. */
static struct bytes topic_of(struct pass *pass, const struct incoming *incoming)
{
    struct message subject;
    if (!is_mail(incoming) || message_read(incoming->subject, pass->arena, &subject, pass->why) != OK)
        return BYTES_NONE;
    return arena_dup(pass->arena, hash_bytes(&subject.hash));
}

static void collect_places(struct pass *pass, struct item *item)
{
    const struct incoming *incoming = &item->known.incoming;
    if (!bytes_is(incoming->kind, "message") && !bytes_is(incoming->kind, "lead"))
        return;
    if (incoming->thread.at != NULL)
        add_place(pass, item, "channel", incoming->thread, BYTES_NONE);
    for (size_t i = 0; i < incoming->reference_count; i++)
        add_place(pass, item, "message", incoming->references[i], BYTES_NONE);
    if (incoming->key.at != NULL)
        add_place(pass, item, "message", incoming->key, BYTES_NONE);
    struct bytes topic = topic_of(pass, incoming);
    for (size_t i = 0; i < incoming->identity_count; i++)
        if (incoming->identities[i].sender && !MUTANT(THREAD_SPLIT))
            add_place(pass, item, "person", incoming->identities[i].value, topic);
}

enum status pass_collect(struct pass *pass)
{
    size_t marks = 0, places = 0;
    for (size_t i = 0; i < pass->count; i++) {
        const struct incoming *incoming = &pass->items[i].known.incoming;
        marks += 3 + 2 * incoming->identity_count;
        places += 2 + incoming->reference_count + incoming->identity_count;
    }
    TRY(marks_init(&pass->marks, pass->arena, marks, pass->why));
    TRY(threads_init(&pass->places, pass->arena, places, pass->why));
    for (size_t i = 0; i < pass->count; i++) {
        struct item *item = &pass->items[i];
        const struct incoming *incoming = &item->known.incoming;
        item->marks = arena_zalloc(pass->arena, 3 + 2 * incoming->identity_count, sizeof *item->marks);
        item->places = arena_zalloc(pass->arena, 2 + incoming->reference_count + incoming->identity_count, sizeof *item->places);
        if (item->marks == NULL || item->places == NULL)
            return pass_no_memory(pass);
        collect_marks(pass, item);
        collect_places(pass, item);
    }
    if (pass->arena->failed)
        return pass_no_memory(pass);
    TRY(pass->recall->marks(pass));
    return pass->recall->threads(pass);
}
