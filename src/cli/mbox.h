/*
 * mbox: mails out of a file that holds many. One begins at a line "From SENDER DATE", at the start of the file or behind an empty line;
 * in its text such lines have a '>' in front, which is taken off (mboxrd; what mboxo wrote comes out the same).
 */
#ifndef SEMEL_CLI_MBOX_H
#define SEMEL_CLI_MBOX_H

#include <stdio.h>

#include "base/buf.h"
#include "base/status.h"

struct mbox {
    FILE *file;
    char *line; /* the last one that was read; it may be the beginning of the next mail */
    size_t cap;
    bool begun;    /* `line` is the "From " line of the next mail */
    size_t number; /* of the last mail, from one */
};

void mbox_init(struct mbox *mbox, FILE *file);
void mbox_release(struct mbox *mbox);

/* The next mail, without its "From " line. NOTHING behind the last; INVALID when the file is no mbox; FULL when the mail does not fit
 * `out`: the one behind it can still be read; RETRY when the file cannot be read on. */
CHECKED enum status mbox_next(struct mbox *mbox, struct buf *out, struct why *why);

/* "From jane@example.com Mon Nov 16 10:00:00 2026" */
bool mbox_is_from(struct bytes line);

#endif
