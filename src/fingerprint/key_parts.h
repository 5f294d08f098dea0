/*
 * key_parts: a template after compilation. Shared by the files that make and fill it.
 */
#ifndef SEMEL_FINGERPRINT_KEY_PARTS_H
#define SEMEL_FINGERPRINT_KEY_PARTS_H

#include "fingerprint/fingerprint.h"
#include "fingerprint/zone.h"

enum key_part_kind {
    PART_LITERAL,
    PART_FIELD,
    PART_HASH,
    PART_TODAY,
    PART_DAY,
    PART_WEEK,
    PART_MONTH,
    PART_QUARTER,
    PART_YEAR,
    PART_HOUR,
    PART_WINDOW,
    PART_BILLING,
};

struct key_part {
    enum key_part_kind kind;
    struct bytes text;   /* the literal, or the path of a field; empty for the whole input */
    struct bytes source; /* the placeholder as written, with its braces */
    struct bytes follow; /* the character behind it in the template; empty at the end */
    int64_t number;      /* window: microseconds; billing: day of the month */
};

struct key_template {
    struct zone zone;
    struct bytes time_path; /* BYTES_NONE when no part is made from the event's time */
    struct key_part *parts;
    size_t part_count;
};

#endif
