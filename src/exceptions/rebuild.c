/* rebuild: cards from the decision log. */
#include "exceptions/exceptions.h"

static bool is_about_a_card(const struct row_decision *decision)
{
    return bytes_is(decision->kind, "raise") || bytes_is(decision->kind, "assign") || bytes_is(decision->kind, "resolve");
}

static struct bytes text_of(const struct json *detail, const char *name)
{
    const struct json *value = json_get(detail, bytes_of(name));
    return value != NULL && value->type == JSON_STRING ? value->text : BYTES_NONE;
}

static int64_t read_detail(const struct row_decision *decision, struct arena *arena, struct json *ret_detail)
{
    struct why why;
    int64_t id = 0;
    if (!is_about_a_card(decision) || json_parse(decision->detail, NULL, arena, ret_detail, &why) != OK ||
        ret_detail->type != JSON_OBJECT || !id_parse("exc", text_of(ret_detail, "exception"), &id))
        return 0;
    return id;
}

int64_t exception_named(const struct row_decision *decision, struct arena *arena)
{
    struct json detail;
    return read_detail(decision, arena, &detail);
}

static struct bytes keep(struct arena *arena, struct bytes text)
{
    return text.at != NULL ? arena_dup(arena, text) : BYTES_NONE;
}

static void fold_raised(struct row_exception *card, const struct row_decision *decision, const struct json *detail,
                        struct arena *arena)
{
    struct bytes kind = text_of(detail, "kind");
    (void)id_parse("evt", text_of(detail, "event"), &card->event); /* only where it is about one */
    (void)id_parse("edg", text_of(detail, "edge"), &card->edge);
    card->space = keep(arena, decision->space);
    card->intent = decision->intent;
    card->reason = keep(arena, decision->reason);
    card->created = decision->at;
    card->state = EXCEPTION_OPEN;
    for (int i = 0; i < EXCEPTION_KIND_COUNT; i++)
        if (bytes_is(kind, exception_kind_names[i]))
            card->kind = i;
}

static void fold_resolved(struct row_exception *card, const struct row_decision *decision, const struct json *detail,
                          struct arena *arena)
{
    card->state = EXCEPTION_RESOLVED;
    card->resolved = decision->at;
    card->resolution = keep(arena, text_of(detail, "resolution"));
    card->note = keep(arena, text_of(detail, "note"));
    card->actor = keep(arena, decision->actor);
}

enum status exception_fold(struct row_exception *card, const struct row_decision *decision, struct arena *arena, struct why *why)
{
    struct json detail;
    if (read_detail(decision, arena, &detail) != card->id)
        return OK;
    const struct json *due = json_get(&detail, BYTES("due"));
    if (due == NULL || !json_to_i64(due, &card->due))
        return why_set(why, BROKEN, "an exception in the audit has no due time");
    card->owner = keep(arena, text_of(&detail, "owner"));
    if (bytes_is(decision->kind, "raise"))
        fold_raised(card, decision, &detail, arena);
    else if (bytes_is(decision->kind, "resolve"))
        fold_resolved(card, decision, &detail, arena);
    return arena->failed ? why_set(why, FULL, "no memory for a row of the audit") : OK;
}
