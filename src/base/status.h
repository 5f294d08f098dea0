/*
 * status: what should the caller do now? One word for the program, one sentence for the person.
 */
#ifndef SEMEL_BASE_STATUS_H
#define SEMEL_BASE_STATUS_H

enum status {
    OK,       /* done */
    NOTHING,  /* there is nothing there, or nothing to do; not an error */
    INVALID,  /* the caller's input is wrong; the sentence names the field and the fix */
    CONFLICT, /* someone else was first or holds it; asking again unchanged will not help now */
    RETRY,    /* did not happen; the same call may succeed later */
    UNKNOWN,  /* it may have happened: a lost COMMIT reply, a time-out after send */
    FULL,     /* a limit is reached: disk, memory, a queue */
    BROKEN,   /* a promise below us does not hold: corrupt data, a failed fsync, a bug */
};

const char *status_name(enum status status);

/* The human sentence that goes with a status. Always NUL-terminated, never contains personal data or payloads. */
struct why {
    char text[320];
};

#define CHECKED __attribute__((warn_unused_result))

/* Writes the sentence (`why` may be NULL) and returns `status`, so that a failure is one line. */
enum status why_set(struct why *why, enum status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "context: " in front of the sentence that is there; returns `status`. */
enum status why_add(struct why *why, enum status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Leaves the function with the status of `call` unless it is OK. */
#define TRY(call)                         \
    do {                                  \
        enum status try_status_ = (call); \
        if (try_status_ != OK)            \
            return try_status_;           \
    } while (0)

/* An assert that stays on in release: one condition, no side effects. A broken one stops the process. */
#define ASSERT(condition) ((condition) ? (void)0 : assert_failed(#condition, __FILE__, __LINE__))
_Noreturn void assert_failed(const char *condition, const char *file, int line);

#endif
