#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST_SIZE = 256 };

void buf_init(struct buf *buf, size_t size_max)
{
    *buf = (struct buf){.size_max = size_max};
}

/* realloc() would leave a copy behind. */
static char *grow_wiping(struct buf *buf, size_t size)
{
    char *at = malloc(size);
    if (at == NULL || buf->at == NULL)
        return at;
    memcpy(at, buf->at, buf->len);
    explicit_bzero(buf->at, buf->cap);
    free(buf->at);
    return at;
}

bool buf_reserve(struct buf *buf, size_t more)
{
    if (buf->failed || more > buf->size_max - buf->len) {
        buf->failed = true;
        return false;
    }
    if (more <= buf->cap - buf->len)
        return true;
    size_t need = buf->len + more;
    size_t cap = buf->cap > buf->size_max / 2 ? buf->size_max : buf->cap * 2;
    if (cap < FIRST_SIZE)
        cap = FIRST_SIZE < buf->size_max ? FIRST_SIZE : buf->size_max;
    if (cap < need)
        cap = need;
    /* One byte more than `cap`: vsnprintf ends in a NUL that is not part of the text. */
    char *at = cap == SIZE_MAX ? NULL : buf->wipe ? grow_wiping(buf, cap + 1) : realloc(buf->at, cap + 1);
    if (at == NULL) {
        buf->failed = true;
        return false;
    }
    buf->at = at;
    buf->cap = cap;
    return true;
}

void buf_add(struct buf *buf, struct bytes bytes)
{
    if (!buf_reserve(buf, bytes.len) || bytes.len == 0)
        return;
    memcpy(buf->at + buf->len, bytes.at, bytes.len);
    buf->len += bytes.len;
}

void buf_add_char(struct buf *buf, char c)
{
    bool has_room = buf->len < buf->cap && !buf->failed;
    if (has_room || buf_reserve(buf, 1))
        buf->at[buf->len++] = c;
}

void buf_add_cstr(struct buf *buf, const char *cstr)
{
    buf_add(buf, bytes_of(cstr));
}

/* The sign and the digits go in together or not at all. */
static void add_number(struct buf *buf, bool negative, uint64_t n)
{
    char text[21];
    size_t start = sizeof text;
    do {
        text[--start] = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    if (negative)
        text[--start] = '-';
    buf_add(buf, (struct bytes){text + start, sizeof text - start});
}

void buf_add_u64(struct buf *buf, uint64_t n)
{
    add_number(buf, false, n);
}

void buf_add_i64(struct buf *buf, int64_t n)
{
    add_number(buf, n < 0, n < 0 ? -(uint64_t)n : (uint64_t)n);
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0)
        buf->failed = true;
    if (len < 0 || !buf_reserve(buf, (size_t)len) || len == 0)
        return;
    va_start(args, format);
    vsnprintf(buf->at + buf->len, (size_t)len + 1, format, args);
    va_end(args);
    buf->len += (size_t)len;
}

void buf_drop(struct buf *buf, size_t count)
{
    size_t left = count < buf->len ? buf->len - count : 0;
    if (left > 0)
        memmove(buf->at, buf->at + count, left);
    if (buf->wipe && buf->at != NULL)
        explicit_bzero(buf->at + left, buf->len - left);
    buf->len = left;
}

void buf_clear(struct buf *buf)
{
    buf_drop(buf, buf->len);
    buf->failed = false;
}

void buf_release(struct buf *buf)
{
    bool wipe = buf->wipe;
    if (wipe && buf->at != NULL)
        explicit_bzero(buf->at, buf->cap);
    free(buf->at);
    buf_init(buf, buf->size_max);
    buf->wipe = wipe;
}
