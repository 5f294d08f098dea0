/*
 * when: time as text. Time is int64_t microseconds since 1970 UTC everywhere; nothing here reads a clock.
 */
#ifndef SEMEL_BASE_WHEN_H
#define SEMEL_BASE_WHEN_H

#include "base/bytes.h"

#define WHEN_MS INT64_C(1000)
#define WHEN_SECOND INT64_C(1000000)
#define WHEN_MINUTE (60 * WHEN_SECOND)
#define WHEN_HOUR (60 * WHEN_MINUTE)
#define WHEN_DAY (24 * WHEN_HOUR)

/* "2026-11-15T23:22:32.123Z" (milliseconds); `ret` has room for 32. Returns the length. */
size_t when_format(int64_t time_us, char ret[32]);

/* "Sun, 15 Nov 2026 23:22:32 +0000", as mail has it (RFC 5322). `ret` has room for 40. Returns the length. */
size_t when_format_mail(int64_t time_us, char ret[40]);

/* RFC 3339 with zone or 'Z', or a plain date, or epoch seconds / milliseconds as digits (10 or 13 of them). */
bool when_parse(struct bytes text, int64_t *ret_us);

/* A date of HTTP or of mail: "Sun, 06 Nov 1994 08:49:37 GMT", "Fri, 24 May 2019 17:18:27 +0000". */
bool when_parse_http(struct bytes text, int64_t *ret_us);

/* A duration as people write it: "90s", "15m", "24h", "30d", "2w", "500ms", "1h30m". No bare numbers, no sign. */
bool when_parse_duration(struct bytes text, int64_t *ret_us);

/* The shortest such text: "30d", "1h30m", "250ms". `ret` has room for 32. */
size_t when_format_duration(int64_t duration_us, char ret[32]);

/* How long ago, for people: "12 s", "40 min", "3 h", "9 days". */
size_t when_format_rough(int64_t duration_us, char ret[32]);

#endif
