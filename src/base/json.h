/*
 * json: a strict reader, a writer and the canonical form.
 *
 * The reader accepts exactly RFC 8259 in UTF-8 and refuses what makes two programs disagree about one text: duplicate
 * names, invalid UTF-8, lone surrogates, a byte order mark, NaN, trailing commas, anything behind the value. Numbers
 * are kept as their text, so that integers stay exact. Everything it returns lives in the arena or in the source text.
 *
 * The canonical form is RFC 8785 with one difference, on purpose: an integer written without fraction and exponent whose
 * magnitude passes 2^53 keeps its digits. RFC 8785 would round it, and two different ids would become one.
 */
#ifndef SEMEL_BASE_JSON_H
#define SEMEL_BASE_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"

enum json_type { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_member;

struct json {
    enum json_type type;
    uint32_t count;   /* items or members */
    struct bytes raw; /* the value's exact text in the source, without surrounding white space */
    union {
        struct bytes text;           /* string: decoded; number: as written */
        struct json *items;          /* array */
        struct json_member *members; /* object, in source order */
    };
};

struct json_member {
    struct bytes name; /* decoded */
    struct json value;
};

struct json_limits {
    uint32_t depth_max;   /* default 64 */
    uint32_t members_max; /* items and members of the whole document, default 10,000 */
    size_t text_max;      /* decoded bytes of one name or string, default 64 KiB */
};

extern const struct json_limits json_limits_default;

/* INVALID with a sentence that says what and at which byte ("line 3, column 7: …"); FULL when the arena is too small.
 * `limits` may be NULL for the defaults. */
CHECKED enum status json_parse(struct bytes source, const struct json_limits *limits, struct arena *arena, struct json *ret_json,
                               struct why *why);

const char *json_type_name(enum json_type type); /* "an object", "a string", … for sentences */

/* The member's value, or NULL. Also NULL when `json` is no object. */
const struct json *json_get(const struct json *json, struct bytes name);

/* By a dotted path such as `form_response.token` or `entry.0.id`; NULL when any step is missing. */
const struct json *json_find(const struct json *json, struct bytes path);

/* The member's text, empty when it is no string; its integer, 0 when it is none. */
struct bytes json_get_text(const struct json *json, const char *name);

/* A value as text: a string decoded, a number as written, true, false; BYTES_NONE for null, lists, objects and NULL. */
struct bytes json_scalar(const struct json *json);
int64_t json_get_i64(const struct json *json, const char *name);

/* True when the number is an integer that fits (1, -0, 10; not 1.5, not 1e2). */
bool json_to_i64(const struct json *json, int64_t *ret_n);

/* Appends the canonical form of `json` (RFC 8785, with the difference above). INVALID for a number beyond a double,
 * FULL when `out` is too small. `scratch` is for sorting. */
CHECKED enum status json_canonical(const struct json *json, struct arena *scratch, struct buf *out, struct why *why);

/* The shortest ECMAScript form of a finite double; `ret` has room for 32; returns the length. Locale-free. */
size_t json_number_format(double number, char ret[32]);

/* ---- field tables: an object into a struct ---- */

enum json_field_kind {
    JSON_FIELD_TEXT,  /* struct bytes: a string; min and max are its length in bytes */
    JSON_FIELD_INT,   /* int64_t: an integer within min and max */
    JSON_FIELD_BOOL,  /* bool */
    JSON_FIELD_ENUM,  /* int: the index in `names` of the string */
    JSON_FIELD_VALUE, /* const struct json *: anything, as parsed */
};

struct json_field {
    const char *name;
    enum json_field_kind kind;
    size_t offset; /* in the struct */
    bool required;
    int64_t min, max;         /* for TEXT and INT; both 0: no bounds */
    const char *const *names; /* for ENUM, NULL-terminated */
};

/* Fills `ret` (which holds the defaults) from the object: an unknown member, a missing required one, a wrong type or a value
 * out of range is INVALID; the sentence names the field and says what to send, with "did you mean" for a near name.
 * `ret_field` (may be NULL) gets the offending field's name, in the arena or static. null counts as absent. */
CHECKED enum status json_read(const struct json *json, const struct json_field *fields, size_t count, void *ret,
                              struct bytes *ret_field, struct why *why);

/* The nearest of `count` names to `given` (edit distance at most 2 and under half its length), or NULL. */
const char *nearest_name(struct bytes given, const char *const *names, size_t count);

/* ---- the writer: compact, field order as written, sticky failure through the buf ---- */

struct json_out {
    struct buf *buf;
    bool comma; /* the next value needs one before it */
};

static inline struct json_out json_out_to(struct buf *buf)
{
    return (struct json_out){buf, false};
}
void json_open(struct json_out *out, char bracket);  /* '{' or '[' */
void json_close(struct json_out *out, char bracket); /* '}' or ']' */
void json_name(struct json_out *out, const char *name);
void json_name_bytes(struct json_out *out, struct bytes name);
void json_text(struct json_out *out, struct bytes text); /* BYTES_NONE writes null; invalid UTF-8 becomes U+FFFD */
void json_cstr(struct json_out *out, const char *text);  /* NULL writes null */
void json_i64(struct json_out *out, int64_t n);
void json_bool(struct json_out *out, bool b);
void json_null(struct json_out *out);
void json_raw(struct json_out *out, struct bytes raw); /* a complete JSON value, verbatim */
void json_time(struct json_out *out, int64_t time_us); /* RFC 3339 UTC with microseconds trimmed to ms; 0 writes null */

/* A member with its name. */
void json_text_member(struct json_out *out, const char *name, struct bytes text);
void json_i64_member(struct json_out *out, const char *name, int64_t n);
void json_raw_member(struct json_out *out, const char *name, struct bytes json); /* JSON as it is; null for BYTES_NONE */
void json_time_member(struct json_out *out, const char *name, int64_t time_us);

#endif
