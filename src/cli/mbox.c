#include "cli/mbox.h"

#include <errno.h>
#include <stdlib.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The time of day tells it from a sentence that begins with "From ". */
bool mbox_is_from(struct bytes line)
{
    if (!bytes_starts(line, BYTES("From ")))
        return false;
    for (size_t i = 5; i + 5 <= line.len; i++)
        if (is_digit(line.at[i]) && is_digit(line.at[i + 1]) && line.at[i + 2] == ':' && is_digit(line.at[i + 3]) &&
            is_digit(line.at[i + 4]))
            return true;
    return false;
}

/* ">From ", ">>From ", … */
static bool is_quoted_from(struct bytes line)
{
    size_t quotes = 0;
    while (quotes < line.len && line.at[quotes] == '>')
        quotes++;
    return quotes > 0 && bytes_starts(bytes_from(line, quotes), BYTES("From "));
}

static bool is_empty(struct bytes line)
{
    return line.len == 0 || line.at[0] == '\n' || (line.at[0] == '\r' && line.len <= 2);
}

void mbox_init(struct mbox *mbox, FILE *file)
{
    *mbox = (struct mbox){.file = file};
}

void mbox_release(struct mbox *mbox)
{
    free(mbox->line);
}

static bool next_line(struct mbox *mbox, struct bytes *ret_line)
{
    ssize_t len = getline(&mbox->line, &mbox->cap, mbox->file);
    if (len < 0)
        return false;
    *ret_line = (struct bytes){mbox->line, (size_t)len};
    return true;
}

/* To the first mail; empty lines in front of it are forgiven. */
static enum status begin(struct mbox *mbox, struct why *why)
{
    struct bytes line;
    while (next_line(mbox, &line)) {
        if (mbox_is_from(line)) {
            mbox->begun = true;
            return OK;
        }
        if (!is_empty(line))
            return why_set(why, INVALID, "it is no mbox: it does not begin with a line \"From SENDER DATE\"");
    }
    return OK;
}

enum status mbox_next(struct mbox *mbox, struct buf *out, struct why *why)
{
    struct bytes line;
    bool empty = false; /* the line before: held back, for it may only stand between two mails */
    if (mbox->number == 0 && !mbox->begun)
        TRY(begin(mbox, why));
    if (!mbox->begun)
        return ferror(mbox->file) ? why_set(why, RETRY, "it cannot be read on: %s", strerror(errno)) : NOTHING;
    mbox->begun = false;
    mbox->number++;
    buf_clear(out);
    while (next_line(mbox, &line)) {
        if (empty && mbox_is_from(line)) {
            mbox->begun = true;
            break;
        }
        if (empty)
            buf_add_char(out, '\n');
        empty = is_empty(line);
        if (!empty)
            buf_add(out, is_quoted_from(line) ? bytes_from(line, 1) : line);
    }
    if (ferror(mbox->file))
        return why_set(why, RETRY, "it cannot be read on: %s", strerror(errno));
    return out->failed ? why_set(why, FULL, "it is larger than %zu MiB", out->size_max >> 20) : OK;
}
