#include "policy/policy_settings.h"

#include "base/when.h"

const char *const policy_mode_names[] = {"enforce", "shadow", NULL};

/* ---- time zones ---- */

static bool is_zone(struct bytes text)
{
    return memchr(text.at, '\0', text.len) == NULL && zone_exists(text.at);
}

static void explain_zone(struct bytes text, struct why *ret)
{
    struct bytes shown = yaml_clip(text);
    char near[ZONE_NAME_MAX + 1];
    if (zone_nearest(text, near))
        why_set(ret, INVALID, "there is no time zone '%.*s'; did you mean '%s'?", BYTES_ARG(shown), near);
    else
        why_set(ret, INVALID, "there is no time zone '%.*s'; write an IANA name such as Europe/Paris", BYTES_ARG(shown));
}

static const struct setting_form zone_form = {"a time zone", "time zone", is_zone, explain_zone};

/* ---- the table ---- */

#define ROW(row_name, row_kind, row_places, row_default, row_min, row_max, row_names, row_example, row_help, ...)        \
    {                                                                                                                    \
        .name = (row_name), .kind = (row_kind), .places = (row_places), .default_text = (row_default), .min = (row_min), \
        .max = (row_max), .names = (row_names), .example = (row_example), .help = (row_help), ##__VA_ARGS__              \
    }

const struct setting policy_settings[] = {
    [SETTING_VERSION] = ROW("version", SETTING_INTEGER, POLICY_TOP, "1", 1, 1, NULL, "1", "The version of this format."),
    [SETTING_ZONE] =
        ROW("zone", SETTING_FORM, POLICY_TOP | POLICY_WORKFLOW, "UTC", 0, 0, NULL, "Europe/Paris",
            "The time zone in which {day}, {week} and the other time parts of a key are counted.", .form = &zone_form),
    [SETTING_MODE] = ROW("mode", SETTING_CHOICE, POLICY_TOP | POLICY_WORKFLOW, "enforce", 0, 0, policy_mode_names, "shadow",
                         "enforce acts on decisions; shadow decides and logs, but lets everything through."),
    [SETTING_DEFAULTS] = ROW("defaults", SETTING_GROUP, POLICY_TOP, NULL, 0, 0, NULL, "{lease: 60s}",
                             "Settings for every workflow that does not give its own."),
    [SETTING_WORKFLOWS] = ROW("workflows", SETTING_GROUP, POLICY_TOP, NULL, 0, 0, NULL, "{followup: {lease: 60s}}",
                              "The workflows by name, each with its own settings."),
    [SETTING_DESTINATIONS] = ROW("destinations", SETTING_GROUP, POLICY_TOP, NULL, 0, 0, NULL, "{crm: {provider: hubspot}}",
                                 "Where effects go, by name, each with settings of its own."),
    [SETTING_MCP] = ROW("mcp", SETTING_GROUP, POLICY_TOP, NULL, 0, 0, NULL, "{files: {annotations: ignore}}",
                        "The MCP servers of agents, by name, each with settings of its own."),
    [SETTING_SOURCES] = ROW("sources", SETTING_GROUP, POLICY_TOP, NULL, 0, 0, NULL, "{contact: {preset: form, verify: none}}",
                            "Where messages and leads come from, by name, each with settings of its own."),
    [SETTING_OWNER] =
        ROW("owner", SETTING_TEXT, POLICY_TOP, NULL, 0, 0, NULL, "dana", "Who gets the exceptions that nobody else owns."),
    [SETTING_DUE] = ROW("due", SETTING_DURATION, POLICY_TOP, "8h", WHEN_MINUTE, 90 * WHEN_DAY, NULL, "8h",
                        "How long an exception may stay open before it is overdue."),
    [SETTING_KEY] = ROW("key", SETTING_TEXT, POLICY_WORKFLOW, NULL, 0, 0, NULL, "\"followup:{lead_id}:{day}\"",
                        "The template that makes the key from the input; without it callers give the key."),
    [SETTING_TIME] = ROW("time", SETTING_TEXT, POLICY_WORKFLOW, NULL, 0, 0, NULL, "sent_at",
                         "The input field that holds the event's own time, for the time parts of the key."),
    [SETTING_IGNORE] =
        ROW("ignore", SETTING_LIST, POLICY_WORKFLOW, NULL, 0, 0, NULL, "[trace_id]",
            "Top-level input fields that may differ between attempts.", .item = "the name of a field, such as trace_id"),
    [SETTING_LEASE] = ROW("lease", SETTING_DURATION, POLICY_WORKFLOW, "60s", WHEN_SECOND, 24 * WHEN_HOUR, NULL, "60s",
                          "How long a claim is held before another caller may take it over."),
    [SETTING_KEEP] = ROW("keep", SETTING_DURATION, POLICY_WORKFLOW, "30d", WHEN_MINUTE, 400 * WHEN_DAY, NULL, "30d",
                         "How long a result is kept after it is final."),
    [SETTING_TOMBSTONE] = ROW("tombstone", SETTING_DURATION, POLICY_WORKFLOW, "400d", 0, 1000 * WHEN_DAY, NULL, "400d",
                              "How long a late duplicate is still recognised after that; 0d forgets at once."),
    [SETTING_CAPABILITY] = ROW("capability", SETTING_CHOICE, POLICY_WORKFLOW, "none", 0, 0, capability_names, "idempotent",
                               "What the destination can do: nothing, take our key, or be asked afterwards."),
    [SETTING_WINDOW] = ROW("window", SETTING_DURATION, POLICY_WORKFLOW, "24h", WHEN_MINUTE, 400 * WHEN_DAY, NULL, "24h",
                           "How long an idempotent destination remembers our key."),
    [SETTING_ON_UNKNOWN] = ROW("on_unknown", SETTING_CHOICE, POLICY_WORKFLOW, "hold", 0, 0, on_unknown_names, "hold",
                               "What to do when nobody can tell whether it happened: hold for a person, retry or skip."),
    [SETTING_TWO_PHASE] = ROW("two_phase", SETTING_SWITCH, POLICY_WORKFLOW, "false", 0, 0, NULL, "true",
                              "true: a claim counts as not yet sent until its holder says so."),
    [SETTING_ATTEMPTS] =
        ROW("attempts", SETTING_INTEGER, POLICY_WORKFLOW, "10", 1, 1000, NULL, "10",
            "How many claims an intent gets; then it is refused, or unknown if one of them may have had an effect."),
};

const size_t policy_setting_count = SETTING_COUNT;
_Static_assert(sizeof policy_settings / sizeof *policy_settings == SETTING_COUNT, "one row per setting");

static const char *belongs(const struct setting *row, unsigned place)
{
    (void)row;
    return place == POLICY_TOP ? "under defaults or a workflow, not at the top"
                               : "at the top of the document, not under a workflow";
}

const struct setting_table policy_table = {policy_settings, SETTING_COUNT, belongs};
