/*
 * output: what a command wrote, in the order in which it came, and the JSON that keeps it as the result of a claim:
 *
 *     {"exit":0,"signal":null,"output":[{"fd":1,"text":"sent 214
 * mails\n"},{"fd":2,"base64":"/w=="}],"bytes":16,"truncated":false,
 *      "started":"2026-11-16T09:00:00.000Z","ended":"2026-11-16T09:00:03.000Z","command":"./send-digest.sh"}
 *
 * Pure. A piece is text when its bytes are UTF-8 and that is not longer than base64; either way it comes back byte for byte. What
 * is over the limit is counted, not kept, and `truncated` says so. The sizes here fit the daemon's limits (a body of 1 MiB,
 * strings of 64 KiB, 10,000 members).
 */
#ifndef SEMEL_RUN_OUTPUT_H
#define SEMEL_RUN_OUTPUT_H

#include "base/json.h"

#define OUTPUT_KEPT_DEFAULT (512u << 10)
#define OUTPUT_KEPT_MAX (700u << 10) /* base64 makes it a third longer, and a body has at most 1 MiB */
#define OUTPUT_PIECE_MAX (48u << 10)
#define OUTPUT_PIECES_MAX 2000 /* when there are so many, later bytes are added to the last piece of their stream */

struct output_piece {
    int fd; /* 1 or 2 */
    struct buf bytes;
};

struct output {
    struct output_piece *pieces;
    size_t count, cap;
    size_t last[3];        /* by fd: the number of its last piece, counted from 1; 0 for none */
    size_t kept, kept_max; /* bytes */
    uint64_t total;        /* bytes, with those that were not kept */
};

void output_init(struct output *output, size_t kept_max);
void output_add(struct output *output, int fd, struct bytes bytes);
void output_release(struct output *output);

static inline bool output_is_truncated(const struct output *output)
{
    return output->total > output->kept;
}

/* How a command ended. */
struct ending {
    int exit;             /* its exit code; 128 + n when a signal ended it */
    struct bytes signal;  /* "TERM"; BYTES_NONE when it ended by itself */
    struct bytes command; /* its first word */
    int64_t started_us, ended_us;
    uint64_t bytes;            /* read only: how many there were */
    bool truncated;            /* read only */
    const struct json *output; /* read only: the pieces */
};

/* `output` may be NULL: nothing was recorded, or it did not fit. */
void ending_write(const struct ending *ending, const struct output *output, struct buf *out);

/* False when the result was not written by ending_write(). */
bool ending_read(const struct json *result, struct ending *ret_ending);

/* One piece of `ending.output`; its bytes are in the arena or in the source. False when it is damaged. */
bool ending_piece(const struct json *piece, struct arena *arena, int *ret_fd, struct bytes *ret_bytes);

/* "512K", "1M", "65536"; false when it is no size. */
bool size_parse(struct bytes text, uint64_t *ret_size);

#endif
