/*
 * yaml: YAML text as a small tree with positions. It refuses what makes a document mean something else than it shows
 * (anchors, aliases, tags, several documents) and what no settings need (depth, size, control characters).
 */
#ifndef SEMEL_BASE_YAML_H
#define SEMEL_BASE_YAML_H

#include "base/arena.h"
#include "base/status.h"

#define YAML_SIZE_MAX (256 * 1024)
#define YAML_PROBLEMS_MAX 20

struct yaml_problem {
    size_t line, column; /* from 1 */
    char text[240];      /* what is wrong and what to write instead */
};

struct yaml_problems {
    size_t count;
    struct yaml_problem at[YAML_PROBLEMS_MAX];
};

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
CHECKED enum status yaml_read(struct bytes text, struct arena *arena, struct yaml **ret_root, struct yaml_problems *problems);

/* True for a value that was left out: nothing, ~ or null. */
bool yaml_is_absent(const struct yaml *node);

/* Adds a problem, keeping the first YAML_PROBLEMS_MAX in order of line and column. */
void yaml_problem_add(struct yaml_problems *problems, size_t line, size_t column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* True when a problem there would not be kept, so that nobody needs to look for a suggestion. */
bool yaml_problem_would_drop(const struct yaml_problems *problems, size_t line, size_t column);

/* At most 40 bytes of it, whole characters, for sentences. */
struct bytes yaml_clip(struct bytes text);

#endif
