#include "bridge/lines.h"

#include <errno.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#define READ_SIZE 65536

void lines_init(struct lines *lines, int fd, size_t line_max)
{
    *lines = (struct lines){.fd = fd};
    buf_init(&lines->buf, line_max + READ_SIZE);
}

void lines_release(struct lines *lines)
{
    buf_release(&lines->buf);
}

/* OK: there is more, or it has ended. RETRY: woken. */
static enum status read_more(struct lines *lines, int wake_fd)
{
    struct pollfd fds[2] = {{.fd = lines->fd, .events = POLLIN}, {.fd = wake_fd, .events = POLLIN}};
    while (poll(fds, wake_fd >= 0 ? 2 : 1, -1) < 0)
        if (errno != EINTR)
            return OK;
    if (wake_fd >= 0 && fds[1].revents != 0)
        return RETRY;
    return lines_fill(lines);
}

enum status lines_fill(struct lines *lines)
{
    buf_drop(&lines->buf, lines->start);
    lines->seen -= lines->start;
    lines->start = 0;
    if (!buf_reserve(&lines->buf, READ_SIZE))
        return FULL;
    ssize_t got = read(lines->fd, lines->buf.at + lines->buf.len, READ_SIZE);
    if (got > 0)
        lines->buf.len += (size_t)got;
    else if (got == 0 || (errno != EINTR && errno != EAGAIN))
        lines->ended = true;
    return OK;
}

bool lines_take(struct lines *lines, struct bytes *ret_line)
{
    const char *from = lines->buf.at + lines->seen;
    const char *newline = lines->seen < lines->buf.len ? memchr(from, '\n', lines->buf.len - lines->seen) : NULL;
    lines->seen = lines->buf.len;
    if (newline == NULL)
        return false;
    size_t end = (size_t)(newline - lines->buf.at);
    *ret_line = (struct bytes){lines->buf.at + lines->start, end - lines->start};
    lines->start = lines->seen = end + 1;
    return true;
}

enum status lines_next(struct lines *lines, int wake_fd, struct bytes *ret_line)
{
    for (;;) {
        if (lines_take(lines, ret_line))
            return OK;
        if (lines->ended) {
            *ret_line = (struct bytes){lines->buf.at + lines->start, lines->buf.len - lines->start};
            lines->start = lines->seen = lines->buf.len;
            return ret_line->len > 0 ? OK : NOTHING;
        }
        TRY(read_more(lines, wake_fd));
    }
}

size_t lines_write(int fd, struct bytes line)
{
    size_t done = 0, all = line.len + 1;
    while (done < all) {
        struct iovec parts[2] = {{(char *)line.at + done, done < line.len ? line.len - done : 0}, {(char *)"\n", 1}};
        ssize_t wrote = done < line.len ? writev(fd, parts, 2) : write(fd, "\n", 1);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            break;
        done += (size_t)wrote;
    }
    return done;
}
