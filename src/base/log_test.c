#include "base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/json.h"
#include "check.h"

static int64_t fixed_clock(void)
{
    return INT64_C(1794784952123456);
}

/* The last lines read; kept here so that each test need not free them. */
static struct bytes line;

/* Runs in a process of its own, so stderr may be turned into a file for good once the lines are written. */
static struct bytes logged(enum log_format format, const struct log_field *fields, size_t count)
{
    hash_setup();
    log_setup(LOG_INFO, format, fixed_clock);
    int saved = dup(STDERR_FILENO), file = open("log", O_CREAT | O_TRUNC | O_WRONLY, 0600);
    CHECK(saved >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    log_line(LOG_WARN, "it happened", fields, count);
    LOG(LOG_DEBUG, "this is not on", LOG_INT("n", 1));
    CHECK(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    close(file);
    return line = check_read_file("log");
}

TEST(log_writes_logfmt_and_quotes_what_needs_it)
{
    const struct log_field fields[] = {
        LOG_CSTR("plain", "a-b/c:d"), LOG_CSTR("spaced", "a b"),    LOG_CSTR("quote", "a\"b\\"),    LOG_CSTR("equal", "a=b"),
        LOG_CSTR("empty", ""),        LOG_TEXT("none", BYTES_NONE), LOG_CSTR("line", "a\nts=fake"), LOG_INT("n", -5),
    };
    CHECK_TEXT(logged(LOG_LOGFMT, fields, 8),
               "ts=2026-11-15T23:22:32.123Z level=warn msg=\"it happened\" plain=a-b/c:d spaced=\"a b\" quote=\"a\\\"b\\\\\" "
               "equal=\"a=b\" empty=\"\" none= line=\"a\\nts=fake\" n=-5\n");
}

TEST(log_writes_json_one_object_a_line)
{
    const struct log_field fields[] = {LOG_CSTR("text", "a\"\n\x01\xff"), LOG_INT("n", INT64_MIN), LOG_TEXT("none", BYTES_NONE)};
    CHECK_TEXT(logged(LOG_JSON, fields, 3),
               "{\"ts\":\"2026-11-15T23:22:32.123Z\",\"level\":\"warn\",\"msg\":\"it happened\","
               "\"text\":\"a\\\"\\n\\u0001\xef\xbf\xbd\",\"n\":-9223372036854775808,\"none\":null}\n");
}

TEST(log_prints_a_short_hash_for_personal_data)
{
    const struct log_field fields[] = {LOG_PERSONAL("who", BYTES("abc")), LOG_PERSONAL("nobody", BYTES_NONE)};
    CHECK_TEXT(logged(LOG_LOGFMT, fields, 2),
               "ts=2026-11-15T23:22:32.123Z level=warn msg=\"it happened\" who=h:ba7816bf nobody=\n");
}

TEST(log_line_stays_whole_json_however_much_is_logged)
{
    enum { COUNT = 40 };
    static char hostile[5000];
    struct log_field fields[COUNT];
    memset(hostile, 1, sizeof hostile);
    for (size_t i = 0; i < COUNT; i++)
        fields[i] = LOG_TEXT("f", ((struct bytes){hostile, i * 100}));
    logged(LOG_JSON, fields, COUNT);
    CHECK(line.len > 8000 && line.len <= 16 * 1024 + 2);
    CHECK(line.at[line.len - 2] == '}' && line.at[line.len - 1] == '\n');
    CHECK(memchr(line.at, '\n', line.len) == line.at + line.len - 1);
}

TEST(log_lines_below_the_level_are_off)
{
    log_setup(LOG_ERROR, LOG_LOGFMT, fixed_clock);
    CHECK(!log_on(LOG_WARN));
    CHECK(log_on(LOG_ERROR));
}
