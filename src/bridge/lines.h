/*
 * lines: messages of a pipe, one per line. Reads whole lines of bounded length; writes whole lines.
 */
#ifndef SEMEL_BRIDGE_LINES_H
#define SEMEL_BRIDGE_LINES_H

#include "base/buf.h"
#include "base/status.h"

struct lines {
    int fd;
    struct buf buf;
    size_t start; /* of the line that was given last */
    size_t seen;  /* no newline before this */
    bool ended;
};

void lines_init(struct lines *lines, int fd, size_t line_max);
void lines_release(struct lines *lines);

/* The next line without its newline, in memory until the next call. NOTHING: the other end is closed, and nothing is left. FULL: a
 * line is too long. RETRY: `wake_fd` (-1 for none) became readable first. A last line without a newline is given too. */
CHECKED enum status lines_next(struct lines *lines, int wake_fd, struct bytes *ret_line);

/* The same in steps, for a descriptor that is known to have something, or does not block: reads once, FULL when a line is too long; the
 * next whole line, in memory until the next read. */
CHECKED enum status lines_fill(struct lines *lines);
bool lines_take(struct lines *lines, struct bytes *ret_line);

/* The line and a newline. The number of bytes that left: line.len + 1 when all went well. */
size_t lines_write(int fd, struct bytes line);

#endif
