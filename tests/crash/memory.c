/*
 * memory: allocations that fail. SQLite's go through the table it offers for that; semel's own through the linker's --wrap.
 * Blocks are counted, so that whoever forgets one after a failure is found without a sanitizer too.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "crash.h"

struct memory memory;
jmp_buf *assertion_jump;
char assertion_text[160];

static sqlite3_mem_methods below;

static bool is_denied(enum memory_user user)
{
    if (memory.calm || memory.user != user)
        return false;
    memory.seen++;
    bool hit = memory.seen == memory.fail_at || (memory.stays && memory.fired);
    memory.fired = memory.fired || hit;
    return hit;
}

void memory_heal(void)
{
    if (memory.fired)
        memory.stays = false;
}

/* ---- SQLite's ---- */

static void *sqlite_malloc(int size)
{
    void *at = is_denied(MEMORY_SQLITE) ? NULL : below.xMalloc(size);
    memory.live_sqlite += at != NULL;
    return at;
}

static void sqlite_free(void *at)
{
    memory.live_sqlite -= at != NULL;
    below.xFree(at);
}

static void *sqlite_realloc(void *at, int size)
{
    return is_denied(MEMORY_SQLITE) ? NULL : below.xRealloc(at, size);
}

void memory_setup(void)
{
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &below);
    sqlite3_mem_methods counted = below;
    counted.xMalloc = sqlite_malloc;
    counted.xFree = sqlite_free;
    counted.xRealloc = sqlite_realloc;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &counted);
    sqlite3_initialize();
}

/* ---- semel's own ---- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *at, size_t size);
void __real_free(void *at);
_Noreturn void __real_assert_failed(const char *condition, const char *file, int line);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *at, size_t size);
void __wrap_free(void *at);
_Noreturn void __wrap_assert_failed(const char *condition, const char *file, int line);

void *__wrap_malloc(size_t size)
{
    void *at = is_denied(MEMORY_OWN) ? NULL : __real_malloc(size);
    memory.live_own += at != NULL;
    return at;
}

void *__wrap_calloc(size_t count, size_t size)
{
    void *at = is_denied(MEMORY_OWN) ? NULL : __real_calloc(count, size);
    memory.live_own += at != NULL;
    return at;
}

void *__wrap_realloc(void *at, size_t size)
{
    void *grown = is_denied(MEMORY_OWN) ? NULL : __real_realloc(at, size);
    memory.live_own += at == NULL && grown != NULL;
    return grown;
}

void __wrap_free(void *at)
{
    memory.live_own -= at != NULL;
    __real_free(at);
}

void *steady_realloc(void *at, size_t size)
{
    void *grown = __real_realloc(at, size);
    if (grown == NULL)
        abort();
    return grown;
}

void steady_free(void *at)
{
    __real_free(at);
}

void __wrap_assert_failed(const char *condition, const char *file, int line)
{
    if (assertion_jump == NULL)
        __real_assert_failed(condition, file, line);
    snprintf(assertion_text, sizeof assertion_text, "%s (%s:%d)", condition, file, line);
    longjmp(*assertion_jump, 1);
}
