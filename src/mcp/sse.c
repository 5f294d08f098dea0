#include "mcp/sse.h"

void mcp_sse_init(struct mcp_sse *sse, size_t event_max)
{
    *sse = (struct mcp_sse){0};
    buf_init(&sse->in, event_max);
    buf_init(&sse->data, event_max);
}

void mcp_sse_release(struct mcp_sse *sse)
{
    buf_release(&sse->in);
    buf_release(&sse->data);
}

bool mcp_sse_feed(struct mcp_sse *sse, struct bytes piece)
{
    buf_drop(&sse->in, sse->taken);
    sse->looked -= sse->taken;
    sse->taken = 0;
    buf_add(&sse->in, piece);
    return !sse->in.failed;
}

/* The line that begins at `at`, without its end; `ret_next` is where the next one begins. False when its end is not there. A CR at
 * the end of the text may be half of CR LF: it is waited for. */
static bool line_at(struct bytes text, size_t at, struct bytes *ret_line, size_t *ret_next)
{
    for (size_t i = at; i < text.len; i++) {
        if (text.at[i] != '\n' && text.at[i] != '\r')
            continue;
        if (text.at[i] == '\r' && i + 1 == text.len)
            return false;
        *ret_line = (struct bytes){text.at + at, i - at};
        *ret_next = text.at[i] == '\r' && text.at[i + 1] == '\n' ? i + 2 : i + 1;
        return true;
    }
    return false;
}

static void add_data(struct mcp_sse *sse, struct bytes line, size_t *count)
{
    if (!bytes_starts(line, BYTES("data")) || (line.len > 4 && line.at[4] != ':'))
        return;
    struct bytes value = bytes_from(line, 5);
    if (value.len > 0 && value.at[0] == ' ')
        value = bytes_from(value, 1);
    if ((*count)++ > 0)
        buf_add_char(&sse->data, '\n');
    buf_add(&sse->data, value);
}

bool mcp_sse_next(struct mcp_sse *sse, struct bytes *ret_event, struct bytes *ret_data)
{
    struct bytes text = buf_bytes(&sse->in), line;
    size_t at = sse->looked, next;
    while (line_at(text, at, &line, &next)) {
        at = next;
        sse->looked = at;
        if (line.len > 0)
            continue;
        size_t count = 0, from = sse->taken;
        buf_clear(&sse->data);
        for (size_t i = from; i < at && line_at(text, i, &line, &next); i = next)
            add_data(sse, line, &count);
        *ret_event = (struct bytes){text.at + from, at - from};
        *ret_data = buf_bytes(&sse->data);
        sse->taken = at;
        return true;
    }
    return false;
}

struct bytes mcp_sse_rest(const struct mcp_sse *sse)
{
    return bytes_from(buf_bytes(&sse->in), sse->taken);
}
