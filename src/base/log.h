/*
 * log: one line per fact, logfmt or JSON, to stderr. Fields are typed, so that personal data cannot slip through:
 * LOG_PERSONAL prints a short hash. Payloads, keys and tokens are never logged.
 */
#ifndef SEMEL_BASE_LOG_H
#define SEMEL_BASE_LOG_H

#include "base/bytes.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF };
enum log_format { LOG_LOGFMT, LOG_JSON };

struct log_field {
    const char *name;
    enum { LOG_FIELD_TEXT, LOG_FIELD_INT, LOG_FIELD_PERSONAL } kind;
    struct bytes text;
    int64_t number;
};

#define LOG_TEXT(n, b) ((struct log_field){(n), LOG_FIELD_TEXT, (b), 0})
#define LOG_CSTR(n, s) ((struct log_field){(n), LOG_FIELD_TEXT, bytes_of(s), 0})
#define LOG_INT(n, i) ((struct log_field){(n), LOG_FIELD_INT, BYTES_NONE, (i)})
#define LOG_PERSONAL(n, b) ((struct log_field){(n), LOG_FIELD_PERSONAL, (b), 0})

/* Before threads start. `clock_us` is asked for the time of each line. */
void log_setup(enum log_level level, enum log_format format, int64_t (*clock_us)(void));

bool log_on(enum log_level level);
void log_line(enum log_level level, const char *message, const struct log_field *fields, size_t count);

#define LOG(level, message, ...)                                                                     \
    do {                                                                                             \
        if (log_on(level)) {                                                                         \
            const struct log_field log_fields_[] = {LOG_CSTR("", ""), ##__VA_ARGS__};                \
            log_line(level, message, log_fields_ + 1, sizeof log_fields_ / sizeof *log_fields_ - 1); \
        }                                                                                            \
    } while (0)

#endif
