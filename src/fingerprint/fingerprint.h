/*
 * fingerprint: what makes two requests the same thing. Pure: no clock, no I/O; the same on every machine.
 *
 * A key is text that a person can read. It is given, or made from the input by a template:
 *
 *     followup:{lead_id}:{template}:{day}
 *
 * Placeholders:
 *   {name} {a.b.0.c}   a field of the input, by dotted path. {input.day} reaches a field whose name is a reserved word.
 *   {hash} {hash:path} the first 32 hex digits of SHA-256 over the canonical form of the whole input, or of one field
 *   {day} {week} {month} {quarter} {year} {hour} {window:15m} {billing:15}
 *                      time parts, in the workflow's zone, taken from the event's own time: the input field that `time` names.
 *                      Without `time`, {day} {week} … are fields like any other.
 *   {today}            the day on the server's clock at the moment of the call; the only placeholder that asks the clock
 *   {{ and }}          a literal brace
 *
 * Formats: day 2026-11-15, week 2026-W46 (ISO), month 2026-11, quarter 2026-Q4, year 2026, hour 2026-11-15T09,
 * window = start of the window in UTC 2026-11-15T09:15Z (windows are counted from 1970), billing:N = first day of the period that
 * begins on day N of the month (the last day of a shorter month), 2026-10-31. A window that is not whole minutes shows its
 * seconds too. The event's time is RFC 3339 text, epoch seconds or milliseconds, or a plain date, which means that day in the
 * workflow's zone.
 *
 * Values: a string is brought to Unicode NFC, white space is trimmed and runs of it become one space; a number takes its
 * canonical form (1.0 and 1e0 are 1); true and false as such. A missing field, null, an array, an object or a value that is empty
 * after trimming is an error: a key with a hole in it would be too broad. In a value, '%', control characters and the character
 * that follows the placeholder in the template are written as %XX, so that no two lists of values make one key; two placeholders
 * therefore need a literal between them, and that literal does not begin with '%'. Time parts and hashes have a fixed length
 * and are written as they are.
 *
 * The fingerprint of an input says whether a second claim with the same key means the same thing: SHA-256 over the canonical
 * form, and one short hash per top-level field, so that a mismatch can name the fields without storing their contents.
 * FINGERPRINT_VERSION is stored with it; records of another version are not compared.
 */
#ifndef SEMEL_FINGERPRINT_FINGERPRINT_H
#define SEMEL_FINGERPRINT_FINGERPRINT_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/json.h"

#define FINGERPRINT_VERSION 1
#define KEY_SIZE_MAX 2048
#define FINGERPRINT_FIELDS_MAX 64

struct key_template; /* compiled, immutable, in the arena it was compiled with; usable by one thread at a time */

struct key_options {
    const char *zone;       /* IANA name; NULL is UTC */
    struct bytes time_path; /* where the input holds the event's time; BYTES_NONE for none */
};

/* INVALID with a sentence that names the placeholder and the fix, and its position in the template. */
CHECKED enum status key_template_compile(struct bytes text, const struct key_options *options, struct arena *arena,
                                         struct key_template **ret_template, struct why *why);
void key_template_free(struct key_template *template); /* gives back what the zone library holds */

/* The key for `input`. `now_us` is used by {today} only. The result is in the arena. INVALID names the field; at most
 * KEY_SIZE_MAX. */
CHECKED enum status key_template_fill(const struct key_template *template, const struct json *input, int64_t now_us,
                                      struct arena *arena, struct bytes *ret_key, struct bytes *ret_field, struct why *why);

/* True for a zone name that exists. */
bool zone_exists(const char *zone);

/* The existing name that was probably meant ("Paris", "europe/paris" → "Europe/Paris"); false when none is near. */
#define ZONE_NAME_MAX 64
bool zone_nearest(struct bytes given, char ret_name[ZONE_NAME_MAX + 1]);

/* A given key: valid UTF-8, 1 to KEY_SIZE_MAX bytes, no U+0000. Otherwise byte for byte as sent. */
CHECKED enum status key_check(struct bytes key, struct why *why);

/* Which fields a fingerprint covers. */
struct fingerprint_options {
    struct bytes pepper;        /* mixed in, so that short values cannot be guessed from a stored hash; may be empty */
    const struct bytes *ignore; /* top-level fields left out (trace ids, timestamps) */
    size_t ignore_count;
};

struct fingerprint {
    struct hash whole;   /* over the canonical input without the ignored fields; all zero when there was no input */
    struct bytes fields; /* JSON object {"name":"16 hex digits",…} in canonical order, in the arena; BYTES_NONE when there was no
                   object, it has more than FINGERPRINT_FIELDS_MAX members, or their names are longer than 16 KiB together */
};

/* `input` may be NULL (no input was sent). */
CHECKED enum status fingerprint_make(const struct json *input, const struct fingerprint_options *options, struct arena *arena,
                                     struct fingerprint *ret, struct why *why);

/* The names of the top-level fields in which two `fields` texts differ (added, removed or changed), in canonical order;
 * {"(input)"} when either has no field hashes. Result in the arena. */
CHECKED enum status fingerprint_differs(struct bytes before, struct bytes after, struct arena *arena, struct bytes **ret_names,
                                        size_t *ret_count, struct why *why);

/* The key that goes to the destination: a pure function of (space, workflow, key), never of the attempt. 32 hex digits + prefix
 * "sml-". */
#define DOWNSTREAM_KEY_SIZE 36
void downstream_key(struct bytes space, struct bytes workflow, struct bytes key, char ret[DOWNSTREAM_KEY_SIZE + 1]);

#endif
