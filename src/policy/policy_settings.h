/*
 * policy_settings: the settings of one mapping, read by the table. Index i of `at` is row i of policy_settings.
 */
#ifndef SEMEL_POLICY_POLICY_SETTINGS_H
#define SEMEL_POLICY_POLICY_SETTINGS_H

#include "policy/policy_yaml.h"

enum setting {
    SETTING_VERSION,
    SETTING_ZONE,
    SETTING_MODE,
    SETTING_DEFAULTS,
    SETTING_WORKFLOWS,
    SETTING_KEY,
    SETTING_TIME,
    SETTING_IGNORE,
    SETTING_LEASE,
    SETTING_KEEP,
    SETTING_TOMBSTONE,
    SETTING_CAPABILITY,
    SETTING_WINDOW,
    SETTING_ON_UNKNOWN,
    SETTING_TWO_PHASE,
    SETTING_ATTEMPTS,
    SETTING_COUNT,
};

struct setting_value {
    bool given;
    bool refused;        /* it was written, with a problem: checks that depend on it would only repeat that */
    size_t line, column; /* of the value; 0 for a built-in default */
    int64_t number;      /* durations, integers, switches; for a choice the index in its names */
    struct bytes text;   /* ends in a NUL */
    struct bytes *list;
    size_t list_count;
    const struct yaml *group; /* NULL for one that was left empty */
};

struct settings {
    struct setting_value at[SETTING_COUNT];
};

/* What the table says. */
CHECKED enum status settings_built_in(struct arena *arena, struct settings *ret_settings);

/* The settings that the mapping `map` (NULL for none) gives at `place`. Problems go to `problems`; a setting
 * that has one is not given but refused. FULL when memory runs out. */
CHECKED enum status settings_read(const struct yaml *map, enum policy_place place, struct arena *arena,
                                  struct settings *ret_settings, struct policy_problems *problems);

/* `own`, with what it does not give taken from `base`. */
struct settings settings_over(const struct settings *own, const struct settings *base);

#endif
