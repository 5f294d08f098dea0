/*
 * arena: memory that dies together. One bounded arena per request or worker step, passed explicitly;
 * nothing taken from it is freed on its own. Over its maximum it returns NULL and stays failed until cleared.
 */
#ifndef SEMEL_BASE_ARENA_H
#define SEMEL_BASE_ARENA_H

#include "base/bytes.h"

struct arena_block;

struct arena {
    struct arena_block *first;
    struct arena_block *current;
    size_t used_total; /* bytes handed out since the last clear */
    size_t size_max;   /* the most it may hand out */
    size_t kept_max;   /* blocks of so much together survive a clear; the first always does */
    bool failed;
    bool wipe; /* set after arena_init: what is forgotten is zeroed, because it may hold secrets */
};

void arena_init(struct arena *arena, size_t size_max);

/* 16-byte aligned, not zeroed. NULL when the maximum is reached or the system has no memory. */
void *arena_alloc(struct arena *arena, size_t size);

/* As arena_alloc for `count` things of `size`; NULL on overflow; zeroed. */
void *arena_zalloc(struct arena *arena, size_t count, size_t size);

/* A copy that ends in a NUL behind `len` (so `.at` is also a C string). `.at == NULL` on failure;
 * absent stays absent. */
struct bytes arena_dup(struct arena *arena, struct bytes from);

/* printf into the arena; `.at == NULL` on failure. */
struct bytes arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Forgets everything, keeps the first block and what `kept_max` allows for the next use. */
void arena_clear(struct arena *arena);

/* Gives all memory back. */
void arena_release(struct arena *arena);

#endif
