/* story_event: what became of something that came in, in plain words. */
#include "base/when.h"
#include "cli/print.h"
#include "cli/story.h"

enum { QUOTED_MAX = 160 };

/* The whole date: a story may span days. */
static void begin_line(const struct json *object, const char *name, struct buf *out)
{
    char at[32] = "?";
    if (print_time_of(object, name) != 0)
        print_when(print_time_of(object, name), 0, at);
    buf_printf(out, "%s  ", at);
}

static void quote(struct bytes text, struct buf *out)
{
    size_t len = text.len < QUOTED_MAX ? text.len : QUOTED_MAX;
    while (len < text.len && len > 0 && ((unsigned char)text.at[len] & 0xC0) == 0x80)
        len--;
    buf_add_char(out, '"');
    print_clean(out, (struct bytes){text.at, len});
    buf_add_cstr(out, len < text.len ? "…\"" : "\"");
}

static void tell_arrival(const struct json *event, struct buf *out)
{
    struct bytes from = json_get_text(event, "from");
    print_clean(out, json_get_text(event, "event"));
    buf_add_cstr(out, "  ");
    print_clean(out, json_get_text(event, "source"));
    buf_add_cstr(out, "  ");
    print_clean(out, from);
    buf_add_char(out, '\n');
    begin_line(event, "received_at", out);
    buf_add_cstr(out, "it came in");
    if (json_get_text(event, "text").len > 0) {
        buf_add_cstr(out, ": ");
        quote(json_get_text(event, "text"), out);
    }
    buf_add_char(out, '\n');
}

static void tell_difference(const struct json *event, struct buf *out)
{
    const struct json *explanation = json_get(event, BYTES("explanation"));
    if (explanation == NULL || explanation->type != JSON_OBJECT || json_get(explanation, BYTES("why")) != NULL)
        return;
    struct bytes here = json_get_text(explanation, "only_here"), there = json_get_text(explanation, "only_there");
    if (here.len == 0 && there.len == 0) {
        buf_add_cstr(out, "    The words are the same.\n");
        return;
    }
    buf_add_cstr(out, "    Only here: ");
    quote(here, out);
    buf_add_cstr(out, ". Only there: ");
    quote(there, out);
    buf_add_cstr(out, ".\n");
}

static void tell_first(const struct json *event, struct buf *out)
{
    const struct json *first = json_get(event, BYTES("first_event"));
    if (json_get_text(event, "first").len == 0)
        return;
    buf_add_cstr(out, "    The earlier one is ");
    print_clean(out, json_get_text(event, "first"));
    if (first != NULL && first->type == JSON_OBJECT) {
        char ago[32];
        when_format_rough(print_time_of(event, "received_at") - print_time_of(first, "received_at"), ago);
        buf_printf(out, ", which came %s before by ", ago);
        print_clean(out, json_get_text(first, "source"));
        buf_add_cstr(out, ": ");
        quote(json_get_text(first, "text"), out);
    }
    buf_add_cstr(out, ".\n");
    tell_difference(event, out);
}

/* A person may have decided otherwise since: then the first of these acts says what the flow had decided. */
static struct bytes decided_as(const struct json *event)
{
    const struct json *acts = json_get(event, BYTES("acts"));
    struct bytes was =
        acts != NULL && acts->type == JSON_ARRAY && acts->count > 0 ? json_get_text(&acts->items[0], "was") : BYTES("");
    return was.len > 0 ? was : json_get_text(event, "verdict");
}

static void tell_obstacle(const struct json *event, struct buf *out)
{
    const struct json *explanation = json_get(event, BYTES("explanation"));
    if (explanation == NULL || explanation->type != JSON_OBJECT || json_get(explanation, BYTES("why")) == NULL)
        return;
    buf_add_cstr(out, "    What is in the way: ");
    print_clean(out, json_get_text(explanation, "why"));
    buf_add_cstr(out, ".\n");
}

static void tell_decision(const struct json *event, struct buf *out)
{
    if (print_time_of(event, "decided_at") == 0)
        return;
    begin_line(event, "decided_at", out);
    print_clean(out, decided_as(event));
    buf_add_cstr(out, ": ");
    struct bytes because = json_get_text(event, "because");
    print_clean(out, because.len > 0 ? because : json_get_text(event, "reason"));
    if (json_get_text(event, "first").len > 0)
        buf_printf(out, " (%lld of 1000 sure)", (long long)json_get_i64(event, "score"));
    if (bytes_is(json_get_text(event, "mode"), "shadow"))
        buf_add_cstr(out, " In shadow mode it went on all the same.");
    buf_add_char(out, '\n');
    tell_obstacle(event, out);
    tell_first(event, out);
}

static void tell_lead(const struct json *event, struct buf *out)
{
    const struct json *lead = json_get(event, BYTES("lead"));
    if (lead == NULL || lead->type != JSON_OBJECT)
        return;
    struct bytes found = json_get_text(lead, "found");
    bool asked = bytes_is(found, "review");
    buf_add_cstr(out, asked || bytes_is(found, "new") ? "It is from the new lead " : "It is from ");
    print_clean(out, json_get_text(lead, "lead"));
    buf_add_cstr(out, ": ");
    print_clean(out, json_get_text(lead, "because"));
    buf_add_cstr(out, asked ? "; a person is asked who it is.\n" : ".\n");
}

static void tell_acts(const struct json *event, struct buf *out)
{
    static const char *const words[][2] = {
        {"release", "released"}, {"suppress", "suppressed"}, {"replay", "forwarded again on purpose"}};
    const struct json *acts = json_get(event, BYTES("acts"));
    for (uint32_t i = 0; acts != NULL && acts->type == JSON_ARRAY && i < acts->count; i++) {
        const struct json *act = &acts->items[i];
        begin_line(act, "at", out);
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            if (bytes_is(json_get_text(act, "act"), words[k][0]))
                buf_add_cstr(out, words[k][1]);
        buf_add_cstr(out, " by ");
        print_clean(out, json_get_text(act, "actor"));
        if (json_get_text(act, "note").len > 0) {
            buf_add_cstr(out, ": ");
            print_clean(out, json_get_text(act, "note"));
        }
        buf_add_char(out, '\n');
    }
}

static void tell_forward(const struct json *event, struct buf *out)
{
    const struct json *forward = json_get(event, BYTES("forward"));
    if (forward == NULL || forward->type != JSON_OBJECT)
        return;
    buf_add_cstr(out, "It was handed to ");
    print_clean(out, json_get_text(forward, "destination"));
    buf_add_cstr(out, " as ");
    print_clean(out, json_get_text(forward, "effect"));
    buf_add_cstr(out, ", which is ");
    print_clean(out, json_get_text(forward, "state"));
    buf_add_cstr(out, ".\n");
}

/* What a person may do about it now, with the event behind each. */
static void tell_next(const struct json *event, struct buf *out)
{
    struct bytes verdict = json_get_text(event, "verdict");
    bool went_on = bytes_is(verdict, "accepted") || bytes_is(verdict, "released"), held = bytes_is(verdict, "held");
    bool obstacle = held && bytes_is(json_get_text(event, "reason"), "cannot_forward");
    if (bytes_is(verdict, "waiting")) {
        buf_add_cstr(out, "It is not decided yet.\n");
        return;
    }
    if (went_on)
        return;
    buf_add_cstr(out, obstacle ? "It waits for a person. When the policy is mended: semel inbox release "
                      : held   ? "A person has to decide. To let it through: semel inbox release "
                               : "It did not go on. To let it through after all: semel inbox release ");
    print_clean(out, json_get_text(event, "event"));
    if (held) {
        buf_add_cstr(out, obstacle ? "; to put it away: semel inbox suppress " : "; if it is a copy: semel inbox suppress ");
        print_clean(out, json_get_text(event, "event"));
    }
    buf_add_char(out, '\n');
}

void story_event(const struct json *event, struct buf *out)
{
    tell_arrival(event, out);
    tell_decision(event, out);
    tell_acts(event, out);
    int64_t copies = json_get_i64(event, "copies");
    if (copies > 0)
        buf_printf(out, "It came again %lld time%s, and %s not passed on.\n", (long long)copies, copies == 1 ? "" : "s",
                   copies == 1 ? "that was" : "those were");
    tell_lead(event, out);
    tell_forward(event, out);
    tell_next(event, out);
}
