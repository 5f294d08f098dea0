/* What an event says, by the map of its kind. */
#include <stdio.h>

#include "base/hash.h"
#include "base/when.h"
#include "receive/receive_own.h"

/* ---- texts ---- */

/* An id that is too long is kept as its hash: it stays comparable. */
static struct bytes short_id(struct scope *scope, struct bytes id)
{
    char hex[2 * HASH_SIZE];
    if (id.len <= INCOMING_ID_MAX)
        return id;
    struct hash hash = hash_sha256(id);
    bytes_to_hex(hash_bytes(&hash), hex);
    struct bytes made = arena_printf(scope->arena, "sha256:%.*s", (int)sizeof hex, hex);
    scope->no_memory |= made.at == NULL;
    return made;
}

/* Whole characters only. */
static struct bytes clip(struct bytes text)
{
    if (text.len <= INCOMING_TEXT_MAX)
        return text;
    text.len = INCOMING_TEXT_MAX;
    while (text.len > 0 && ((unsigned char)text.at[text.len] & 0xC0) == 0x80)
        text.len--;
    return text;
}

/* ---- answers ---- */

/* "path=value|value" of the answer that scope->item is. */
static bool meets(struct scope *scope, struct bytes condition)
{
    struct bytes wanted = condition, path = bytes_cut(&wanted, '=');
    return scope_holds(scope, path, wanted);
}

struct lines {
    struct buf *out;
    size_t count;
    struct bytes only; /* the first answer, as it was given */
};

static void add_answer(struct scope *scope, const struct answers_rule *rule, struct lines *lines)
{
    struct bytes value = scope_fill(scope, &rule->value, false), question = scope_fill(scope, &rule->question, false);
    if (value.at == NULL)
        return;
    if (lines->count++ == 0)
        lines->only = value;
    else
        buf_add_char(lines->out, '\n');
    if (question.at != NULL) {
        buf_add(lines->out, question);
        buf_add_cstr(lines->out, ": ");
    }
    buf_add(lines->out, value);
}

static void add_answers(struct scope *scope, const struct answers_rule *rule, const struct json *list, bool preferred,
                        struct lines *lines)
{
    for (uint32_t i = 0; i < list->count; i++) {
        struct scope one = *scope;
        one.item = &list->items[i];
        if (preferred && !meets(&one, rule->prefer))
            continue;
        if (rule->skip.at == NULL || !meets(&one, rule->skip))
            add_answer(&one, rule, lines);
        scope->no_memory |= one.no_memory;
    }
}

/* One answer is the text; several are lines of "question: answer". */
static struct bytes answers_text(struct scope *scope, const struct answers_rule *rule)
{
    const struct json *list = rule->of.at != NULL ? scope_find(scope, rule->of) : NULL;
    if (list == NULL || list->type != JSON_ARRAY)
        return BYTES_NONE;
    struct buf out;
    buf_init(&out, 4 * INCOMING_TEXT_MAX);
    struct lines lines = {&out, 0, BYTES_NONE};
    if (rule->prefer.at != NULL)
        add_answers(scope, rule, list, true, &lines);
    if (lines.count == 0)
        add_answers(scope, rule, list, false, &lines);
    struct bytes text = lines.only;
    if (lines.count > 1)
        text = arena_dup(scope->arena, buf_bytes(&out));
    scope->no_memory |= lines.count > 1 && text.at == NULL;
    buf_release(&out);
    return text;
}

/* ---- who ---- */

static struct bytes normal(enum identity_kind kind, struct bytes text, const struct scope *scope)
{
    switch (kind) {
    case IDENTITY_EMAIL:
        return identity_email(text, scope->arena);
    case IDENTITY_PHONE:
        return identity_phone_of(text, scope->region, scope->arena);
    case IDENTITY_OTHER:
        break;
    }
    return text;
}

static enum status find_identities(const struct event_map *map, struct scope *scope, struct incoming *ret)
{
    struct identity mentioned[INCOMING_IDENTITIES_MAX];
    ret->identities = arena_zalloc(scope->arena, INCOMING_IDENTITIES_MAX, sizeof *ret->identities);
    if (ret->identities == NULL)
        return FULL;
    for (size_t i = 0; i < map->identity_count; i++) {
        const struct identity_rule *rule = &map->identities[i];
        struct bytes text = scope_fill(scope, &rule->value, false);
        struct identity one = {.kind = (enum identity_kind)rule->kind, .sender = !rule->mentioned};
        if (text.at != NULL)
            one.value = normal(one.kind, text, scope);
        if (one.kind == IDENTITY_PHONE && text.len <= IDENTITY_SIZE_MAX)
            one.given = text;
        identity_add(ret->identities, &ret->identity_count, INCOMING_IDENTITIES_MAX, one);
    }
    size_t count = ret->text.at != NULL ? identity_mentions(ret->text, scope->arena, mentioned, INCOMING_IDENTITIES_MAX) : 0;
    for (size_t i = 0; i < count; i++)
        identity_add(ret->identities, &ret->identity_count, INCOMING_IDENTITIES_MAX, mentioned[i]);
    return scope->arena->failed ? FULL : OK;
}

/* ---- when ---- */

/* As when_parse, and seconds with a fraction: "1700000000.000100". */
static int64_t parse_time(struct bytes text)
{
    int64_t at_us;
    if (text.at == NULL)
        return 0;
    if (when_parse(text, &at_us))
        return at_us;
    struct bytes whole = bytes_cut(&text, '.');
    return when_parse(whole, &at_us) ? at_us : 0;
}

/* ---- all of it ---- */

static enum status find_references(const struct event_map *map, struct scope *scope, struct incoming *ret)
{
    ret->references = arena_zalloc(scope->arena, map->references.count + 1, sizeof *ret->references);
    if (ret->references == NULL)
        return FULL;
    for (size_t i = 0; i < map->references.count && ret->reference_count < INCOMING_REFERENCES_MAX; i++) {
        struct texts one = {&map->references.at[i], 1};
        struct bytes reference = scope_fill(scope, &one, true);
        if (reference.at != NULL)
            ret->references[ret->reference_count++] = short_id(scope, reference);
    }
    return OK;
}

enum status extract_event(const struct event_map *map, struct scope *scope, struct incoming *ret)
{
    *ret = (struct incoming){
        .kind = map->kind,
        .delivery = short_id(scope, scope_fill(scope, &map->delivery, true)),
        .key = short_id(scope, scope_fill(scope, &map->key, true)),
        .name = clip(scope_fill(scope, &map->name, false)),
        .company = clip(scope_fill(scope, &map->company, false)),
        .country = clip(scope_fill(scope, &map->country, false)),
        .subject = clip(scope_fill(scope, &map->subject, false)),
        .text = clip(scope_fill(scope, &map->text, false)),
        .thread = short_id(scope, scope_fill(scope, &map->thread, true)),
        .at_us = parse_time(scope_fill(scope, &map->time, false)),
        .automatic = scope_any(scope, map->automatic, map->automatic_count),
    };
    if (ret->text.at == NULL)
        ret->text = clip(answers_text(scope, &map->answers));
    TRY(find_references(map, scope, ret));
    TRY(find_identities(map, scope, ret));
    return scope->no_memory ? FULL : OK;
}
