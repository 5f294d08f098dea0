/*
 * check: the unit test runner. A test is TEST(a_promise_in_words) { … } in an x_test.c beside the code; it runs in a process and a
 * fresh working directory of its own, so that a crash is one failed test. `unit [PATTERN…]` runs those whose name contains a pattern.
 */
#ifndef SEMEL_TESTS_CHECK_H
#define SEMEL_TESTS_CHECK_H

#include "base/bytes.h"

struct check_test {
    const char *name, *file;
    void (*run)(void);
    struct check_test *next;
};

void check_register(struct check_test *test);
_Noreturn void check_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
_Noreturn void check_skip(const char *reason);

/* The folder of shared public test suites, or NULL where it is absent (then SKIP). From SEMEL_TEST_DATA. */
const char *check_data_dir(void);

/* Reads a whole file (malloc'ed, NUL behind it); fails the test when it cannot. */
struct bytes check_read_file(const char *path);

#define TEST(test_name)                                                                   \
    static void test_name(void);                                                          \
    static struct check_test check_##test_name = {#test_name, __FILE__, test_name, NULL}; \
    __attribute__((constructor)) static void check_add_##test_name(void)                  \
    {                                                                                     \
        check_register(&check_##test_name);                                               \
    }                                                                                     \
    static void test_name(void)

#define CHECK(condition)                                      \
    do {                                                      \
        if (!(condition))                                     \
            check_fail(__FILE__, __LINE__, "%s", #condition); \
    } while (0)

#define CHECK_INT(got, want)                                                                                    \
    do {                                                                                                        \
        long long check_got_ = (long long)(got), check_want_ = (long long)(want);                               \
        if (check_got_ != check_want_)                                                                          \
            check_fail(__FILE__, __LINE__, "%s is %lld, want %lld (%s)", #got, check_got_, check_want_, #want); \
    } while (0)

#define CHECK_TEXT(got, want)                                                                            \
    do {                                                                                                 \
        struct bytes check_got_ = (got), check_want_ = bytes_of(want);                                   \
        if (!bytes_eq(check_got_, check_want_))                                                          \
            check_fail(__FILE__, __LINE__, "%s is \"%.*s\", want \"%.*s\"", #got, BYTES_ARG(check_got_), \
                       BYTES_ARG(check_want_));                                                          \
    } while (0)

#define SKIP(reason) check_skip(reason)

#endif
