/*
 * settings: a YAML mapping read by a table. One row per setting feeds the parser, the defaults, the documentation and the tests.
 * Strict: an unknown, repeated, mistyped or out-of-range setting is a problem with line, column and a suggestion.
 */
#ifndef SEMEL_BASE_SETTINGS_H
#define SEMEL_BASE_SETTINGS_H

#include "base/yaml.h"

#define SETTING_ROWS_MAX 64
#define SETTING_LIST_MAX 64

enum setting_kind {
    SETTING_TEXT,     /* any text that is not empty */
    SETTING_FORM,     /* text of a special form, such as a time zone */
    SETTING_DURATION, /* min and max in microseconds */
    SETTING_INTEGER,
    SETTING_SWITCH, /* true or false */
    SETTING_CHOICE, /* one of `names` */
    SETTING_LIST,   /* a list of texts */
    SETTING_TEXTS,  /* a text, which is a list of one, or a list of texts */
    SETTING_GROUP,  /* a mapping */
    SETTING_GROUPS, /* a list of mappings */
};

struct setting_form {
    const char *wants;                                   /* "a time zone", for sentences */
    const char *shown;                                   /* "time zone", for tables */
    bool (*fits)(struct bytes text);                     /* the text ends in a NUL */
    void (*explain)(struct bytes text, struct why *ret); /* why it does not fit, and what to write */
};

struct setting {
    const char *name;
    enum setting_kind kind;
    unsigned places;          /* bits: where the setting may stand */
    const char *default_text; /* as one would write it; NULL when there is none */
    int64_t min, max;         /* for durations and integers */
    const char *const *names; /* for choices, NULL-terminated */
    const char *example;
    const char *help; /* one sentence */
    const struct setting_form *form;
    const char *item; /* for lists: what each item is; NULL: "a text" */
    bool repeats;     /* for lists: an item may come twice, or be empty */
};

struct setting_value {
    bool given;
    bool refused;        /* it was written, with a problem: checks that depend on it would only repeat that */
    size_t line, column; /* of the value; 0 for a built-in default */
    int64_t number;      /* durations, integers, switches; for a choice the index in its names */
    struct bytes text;   /* ends in a NUL */
    struct bytes *list;
    size_t list_count;
    const struct yaml *group; /* a mapping, or for SETTING_GROUPS the list; NULL for one that was left empty */
};

struct setting_table {
    const struct setting *rows;
    size_t count;
    /* Says of a known setting that stands at the wrong place where it belongs: "'x' belongs …". */
    const char *(*belongs)(const struct setting *row, unsigned place);
};

/* The settings that the mapping `map` (NULL for none) gives at `place`, index i for row i. Problems go to `problems`; a setting
 * that has one is not given but refused. FULL when memory runs out. */
CHECKED enum status settings_read(const struct setting_table *table, const struct yaml *map, unsigned place, struct arena *arena,
                                  struct setting_value *ret_values, struct yaml_problems *problems);

/* What the table says. */
CHECKED enum status settings_built_in(const struct setting_table *table, struct arena *arena, struct setting_value *ret_values);

/* What `values` does not give is taken from `base`. */
void settings_over(size_t count, struct setting_value *values, const struct setting_value *base);

/* A small mapping of names (paths, headers) and texts, in order. A problem leaves none, or leaves out the pair. */
#define SETTING_PAIRS_MAX 16
CHECKED enum status settings_pairs(const struct setting_value *value, struct arena *arena, struct yaml_problems *problems,
                                   struct pair **ret_pairs, size_t *ret_count);

/* A name of settings that users make up: 1 to 64 letters, digits, '.', '_', '-'. */
#define SETTING_NAME_MAX 64
bool settings_is_name(struct bytes name);

#endif
