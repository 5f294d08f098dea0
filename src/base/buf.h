/*
 * buf: a growing buffer that states its maximum at birth and fails sticky: after the first append that did not fit,
 * `failed` is set and every later append does nothing, so that callers check once at the end.
 */
#ifndef SEMEL_BASE_BUF_H
#define SEMEL_BASE_BUF_H

#include "base/bytes.h"

struct buf {
    char *at;
    size_t len;
    size_t cap;
    size_t size_max;
    bool failed;
    bool wipe; /* set after buf_init: what is dropped or given back is zeroed first, because it may hold secrets */
};

void buf_init(struct buf *buf, size_t size_max);

/* Makes room for `more` bytes behind `len`; false (and sticky) when that passes the maximum. */
bool buf_reserve(struct buf *buf, size_t more);

void buf_add(struct buf *buf, struct bytes bytes);
void buf_add_char(struct buf *buf, char c);
void buf_add_cstr(struct buf *buf, const char *cstr);
void buf_add_u64(struct buf *buf, uint64_t n);
void buf_add_i64(struct buf *buf, int64_t n);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Drops the first `count` bytes (they were consumed). */
void buf_drop(struct buf *buf, size_t count);

static inline struct bytes buf_bytes(const struct buf *buf)
{
    return (struct bytes){buf->at != NULL ? buf->at : "", buf->len};
}

void buf_clear(struct buf *buf);   /* empties it, keeps the memory, forgets the failure */
void buf_release(struct buf *buf); /* gives the memory back */

#endif
