/*
 * policy_settings: the rows of the table. Index i of `at` is row i of policy_settings.
 */
#ifndef SEMEL_POLICY_POLICY_SETTINGS_H
#define SEMEL_POLICY_POLICY_SETTINGS_H

#include "policy/policy.h"

enum policy_row {
    SETTING_VERSION,
    SETTING_ZONE,
    SETTING_MODE,
    SETTING_DEFAULTS,
    SETTING_WORKFLOWS,
    SETTING_DESTINATIONS,
    SETTING_MCP,
    SETTING_SOURCES,
    SETTING_OWNER,
    SETTING_DUE,
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

struct settings {
    struct setting_value at[SETTING_COUNT];
};

extern const struct setting_table policy_table;

#endif
