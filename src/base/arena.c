#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALIGNMENT = 16, FIRST_BLOCK_SIZE = 16 * 1024, BLOCK_SIZE_MAX = 1024 * 1024 };

struct arena_block {
    struct arena_block *next;
    size_t size, used;
    alignas(ALIGNMENT) char at[];
};

void arena_init(struct arena *arena, size_t size_max)
{
    *arena = (struct arena){.size_max = size_max};
}

static size_t next_block_size(const struct arena *arena, size_t size)
{
    size_t wanted = FIRST_BLOCK_SIZE;
    if (arena->current != NULL)
        wanted = arena->current->size * 2;
    if (wanted > BLOCK_SIZE_MAX)
        wanted = BLOCK_SIZE_MAX;
    size_t left = arena->size_max - arena->used_total;
    if (wanted > left)
        wanted = left;
    return wanted > size ? wanted : size;
}

/* The new block becomes the current one; what was left in the old one stays unused. */
static struct arena_block *add_block(struct arena *arena, size_t size)
{
    size_t block_size = next_block_size(arena, size);
    struct arena_block *block = malloc(sizeof *block + block_size);
    if (block == NULL)
        return NULL;
    block->next = NULL;
    block->size = block_size;
    block->used = 0;
    if (arena->current != NULL)
        arena->current->next = block;
    else
        arena->first = block;
    arena->current = block;
    return block;
}

static void *fail(struct arena *arena)
{
    arena->failed = true;
    return NULL;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    size_t left = arena->size_max - arena->used_total;
    if (arena->failed || size > left)
        return fail(arena);
    /* An empty thing takes room too, so that it has an address of its own. */
    size = size == 0 ? ALIGNMENT : (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (size == 0 || size > left)
        return fail(arena);
    struct arena_block *block = arena->current;
    while (block != NULL && size > block->size - block->used && block->next != NULL)
        block = arena->current = block->next; /* kept from before, and empty */
    if (block == NULL || size > block->size - block->used)
        block = add_block(arena, size);
    if (block == NULL)
        return fail(arena);
    void *at = block->at + block->used;
    block->used += size;
    arena->used_total += size;
    return at;
}

void *arena_zalloc(struct arena *arena, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total))
        return fail(arena);
    void *at = arena_alloc(arena, total);
    return at != NULL ? memset(at, 0, total) : NULL;
}

struct bytes arena_dup(struct arena *arena, struct bytes from)
{
    if (from.at == NULL)
        return BYTES_NONE;
    char *at = from.len < SIZE_MAX ? arena_alloc(arena, from.len + 1) : fail(arena);
    if (at == NULL)
        return BYTES_NONE;
    memcpy(at, from.at, from.len);
    at[from.len] = '\0';
    return (struct bytes){at, from.len};
}

struct bytes arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *at = len >= 0 ? arena_alloc(arena, (size_t)len + 1) : fail(arena);
    if (at == NULL)
        return BYTES_NONE;
    va_start(args, format);
    vsnprintf(at, (size_t)len + 1, format, args);
    va_end(args);
    return (struct bytes){at, (size_t)len};
}

static void free_blocks(const struct arena *arena, struct arena_block *block)
{
    while (block != NULL) {
        struct arena_block *next = block->next;
        if (arena->wipe)
            explicit_bzero(block->at, block->used);
        free(block);
        block = next;
    }
}

void arena_clear(struct arena *arena)
{
    size_t kept = 0;
    for (struct arena_block *block = arena->first; block != NULL; block = block->next) {
        if (arena->wipe)
            explicit_bzero(block->at, block->used);
        block->used = 0;
        kept += block->size;
        if (block->next == NULL || kept + block->next->size <= arena->kept_max)
            continue;
        free_blocks(arena, block->next);
        block->next = NULL;
    }
    arena->current = arena->first;
    arena->used_total = 0;
    arena->failed = false;
}

void arena_release(struct arena *arena)
{
    struct arena old = *arena;
    free_blocks(arena, arena->first);
    arena_init(arena, old.size_max);
    arena->kept_max = old.kept_max;
    arena->wipe = old.wipe;
}
