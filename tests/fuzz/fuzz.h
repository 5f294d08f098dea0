/*
 * fuzz: what every fuzz target shares. A target is one file with one FUZZ_TARGET(name)(data, size); it checks promises with
 * ASSERT, which stops the process, so that libFuzzer and the replayer both see a broken promise as a crash.
 *
 * Built by libFuzzer the entry point is called LLVMFuzzerTestOneInput; built with -DFUZZ_REPLAY it is called fuzz_<name>, so that
 * one plain program (replay.c) can hold all of them.
 */
#ifndef SEMEL_TESTS_FUZZ_FUZZ_H
#define SEMEL_TESTS_FUZZ_FUZZ_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/status.h"

/* Every target, in alphabetical order. */
#define FUZZ_TARGETS(X) \
    X(canonical)        \
    X(destination)      \
    X(fingerprint)      \
    X(http_chunks)      \
    X(http_head)        \
    X(id)               \
    X(json)             \
    X(key_template)     \
    X(ledger)           \
    X(mail)             \
    X(match)            \
    X(mcp)              \
    X(percent)          \
    X(policy)           \
    X(rebuild)          \
    X(receive)          \
    X(smtp)             \
    X(token)            \
    X(url)              \
    X(when)

#ifdef FUZZ_REPLAY
#define FUZZ_DECLARE(name) int fuzz_##name(const uint8_t *data, size_t size);
FUZZ_TARGETS(FUZZ_DECLARE)
#define FUZZ_TARGET(name) int fuzz_##name
#else
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
#define FUZZ_TARGET(name) int LLVMFuzzerTestOneInput
#endif

/* More than this explores nothing new and only costs time. */
#define FUZZ_SIZE_MAX ((size_t)64 << 10)
#define FUZZ_ARENA_MAX ((size_t)16 << 20)

static inline struct bytes fuzz_bytes(const uint8_t *data, size_t size)
{
    return (struct bytes){data != NULL ? (const char *)data : "", size};
}

/* Takes one byte off the front; 0 when there is none left. */
static inline uint8_t fuzz_byte(struct bytes *rest)
{
    if (rest->len == 0)
        return 0;
    uint8_t byte = (uint8_t)rest->at[0];
    *rest = bytes_from(*rest, 1);
    return byte;
}

/* Takes eight bytes off the front, big-endian; what is missing counts as 0. */
static inline uint64_t fuzz_u64(struct bytes *rest)
{
    uint64_t n = 0;
    for (int i = 0; i < 8; i++)
        n = n << 8 | fuzz_byte(rest);
    return n;
}

/* A copy of exactly its size on the heap, so that the address sanitizer sees one byte too many. The caller frees `.at`. */
static inline struct bytes fuzz_exact(struct bytes from)
{
    char *at = malloc(from.len > 0 ? from.len : 1);
    ASSERT(at != NULL);
    if (from.len > 0)
        memcpy(at, from.at, from.len);
    return (struct bytes){at, from.len};
}

#endif
