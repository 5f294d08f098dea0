#include "mcp/turn.h"

/* As with POST /v1/claims. */
#define THREAD_MAX 256
#define EVENT_MAX 64
#define QUESTION_MAX 256
#define CARRIER(name) "_meta[\"dev.semel/" name "\"]"

/* A text, or a whole number as text, as ids of tickets often are. */
static enum status take_text(const struct json *json, struct bytes name, size_t size_max, struct arena *arena, struct bytes *ret,
                             struct why *why)
{
    int64_t number;
    struct bytes text = BYTES_NONE, shown = yaml_clip(name);
    *ret = BYTES_NONE;
    if (json == NULL || json->type == JSON_NULL)
        return OK;
    if (json->type == JSON_STRING)
        text = json->text;
    else if (json->type == JSON_NUMBER && json_to_i64(json, &number))
        text = arena_printf(arena, "%lld", (long long)number);
    if (text.len == 0 || text.len > size_max || memchr(text.at, 0, text.len) != NULL)
        return why_set(why, INVALID, "%.*s has to be a text of 1 to %zu bytes without U+0000.", BYTES_ARG(shown), size_max);
    *ret = text;
    return OK;
}

/* A number, or its digits: the header Semel-Epoch is a text. */
static enum status take_epoch(const struct json *json, int64_t *ret, struct why *why)
{
    uint64_t digits = 0;
    *ret = MCP_EPOCH_UNSAID;
    if (json == NULL || json->type == JSON_NULL)
        return OK;
    bool fits = json->type == JSON_STRING ? bytes_to_u64(json->text, &digits) && digits <= INT64_MAX
                                          : json->type == JSON_NUMBER && json_to_i64(json, ret) && *ret >= 0;
    if (!fits)
        return why_set(why, INVALID, CARRIER("epoch") " has to be a whole number, as Semel-Epoch says.");
    if (json->type == JSON_STRING)
        *ret = (int64_t)digits;
    return OK;
}

static enum status read_carriers(const struct json *meta, struct arena *arena, struct mcp_turn *ret, struct why *why)
{
    const struct {
        const char *name, *shown;
        size_t size_max;
        struct bytes *text;
    } texts[] = {{"dev.semel/thread", CARRIER("thread"), THREAD_MAX, &ret->thread},
                 {"dev.semel/event", CARRIER("event"), EVENT_MAX, &ret->event},
                 {"dev.semel/question", CARRIER("question"), QUESTION_MAX, &ret->question},
                 {"dev.semel/action", CARRIER("action"), MCP_ACTION_MAX, &ret->action}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        TRY(take_text(json_get(meta, bytes_of(texts[i].name)), bytes_of(texts[i].shown), texts[i].size_max, arena, texts[i].text,
                      why));
    return take_epoch(json_get(meta, BYTES("dev.semel/epoch")), &ret->epoch, why);
}

static enum status read_argument(const struct json *arguments, struct bytes name, size_t size_max, struct arena *arena,
                                 struct bytes *ret, struct why *why)
{
    const struct json *value = name.at != NULL && arguments != NULL ? json_find(arguments, name) : NULL;
    return take_text(value, name, size_max, arena, ret, why);
}

/* What the call itself did not say. */
static enum status read_arguments(const struct mcp_call *call, const struct mcp_answers *rule, struct arena *arena,
                                  struct mcp_turn *turn, struct why *why)
{
    if (turn->thread.at == NULL && turn->event.at == NULL) {
        TRY(read_argument(call->arguments, rule->thread, THREAD_MAX, arena, &turn->thread, why));
        TRY(read_argument(call->arguments, rule->event, EVENT_MAX, arena, &turn->event, why));
        if (turn->question.at == NULL)
            TRY(read_argument(call->arguments, rule->question, QUESTION_MAX, arena, &turn->question, why));
    }
    if (turn->action.at == NULL)
        turn->action = rule->action;
    return OK;
}

static enum status no_place(const struct mcp_answers *rule, struct why *why)
{
    if (rule == NULL)
        return why_set(why, INVALID,
                       "This call is said to be an answer, but not in which conversation: send " CARRIER("thread") " or " CARRIER(
                           "event") " too.");
    struct bytes thread = yaml_clip(rule->thread), event = yaml_clip(rule->event);
    bool both = thread.len > 0 && event.len > 0;
    return why_set(why, INVALID,
                   "The tool was not called: it answers in a conversation, and the call does not say in which. Send the argument "
                   "%.*s%s%.*s, or " CARRIER("thread") " or " CARRIER("event") ".",
                   BYTES_ARG(thread), both ? " or " : "", BYTES_ARG(event));
}

enum status mcp_turn_of(const struct mcp_call *call, const struct mcp_treatment *treatment, struct arena *arena,
                        struct mcp_turn *ret, struct why *why)
{
    struct mcp_turn turn = {.epoch = MCP_EPOCH_UNSAID};
    TRY(read_carriers(call->meta, arena, &turn, why));
    bool said = turn.thread.at != NULL || turn.event.at != NULL || turn.question.at != NULL || turn.action.at != NULL ||
                turn.epoch != MCP_EPOCH_UNSAID;
    if (treatment->answers != NULL)
        TRY(read_arguments(call, treatment->answers, arena, &turn, why));
    turn.named = said || treatment->answers != NULL;
    if (turn.named && turn.thread.at == NULL && turn.event.at == NULL)
        return no_place(treatment->answers, why);
    if (turn.named && turn.action.at == NULL)
        return why_set(why, INVALID,
                       "This call is said to be an answer in a conversation, but not which one: send " CARRIER(
                           "action") " too, such as reply.");
    *ret = turn;
    return OK;
}
