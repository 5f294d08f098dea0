/*
 * policy_yaml: YAML text as a small tree with positions. It refuses what makes a document mean something else than it shows
 * (anchors, aliases, tags, several documents) and what no policy needs (depth, size, control characters).
 */
#ifndef SEMEL_POLICY_POLICY_YAML_H
#define SEMEL_POLICY_POLICY_YAML_H

#include "policy/policy.h"

enum yaml_kind { YAML_TEXT, YAML_LIST, YAML_MAP, YAML_REFUSED };

struct yaml {
    enum yaml_kind kind;
    bool plain;          /* a text without quotes: only these can be numbers, true, false or nothing */
    size_t line, column; /* from 1 */
    struct bytes text;
    struct yaml *first, *last; /* items; in a map names and values alternate */
    struct yaml *next;         /* behind this one in the same list or map */
    size_t count;              /* items, or names */
};

/* `ret_root` becomes NULL for an empty document. INVALID when the text could not be read to its end; what was found is in
 * `problems`. */
CHECKED enum status yaml_read(struct bytes text, struct arena *arena, struct yaml **ret_root, struct policy_problems *problems);

/* True for a value that was left out: nothing, ~ or null. */
bool yaml_is_absent(const struct yaml *node);

/* Adds a problem, keeping the first POLICY_PROBLEMS_MAX in order of line and column. */
void problem_add(struct policy_problems *problems, size_t line, size_t column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* True when a problem there would not be kept, so that nobody needs to look for a suggestion. */
bool problem_would_drop(const struct policy_problems *problems, size_t line, size_t column);

/* At most 40 bytes of it, whole characters, for sentences. */
struct bytes problem_clip(struct bytes text);

#endif
