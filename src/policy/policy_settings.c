#include "policy/policy_settings.h"

#include <stdio.h>

#include "base/when.h"

const char *const policy_mode_names[] = {"enforce", "shadow", NULL};
const char *const capability_names[] = {"none", "idempotent", "query", NULL};
const char *const on_unknown_names[] = {"hold", "retry", "skip", NULL};

const struct policy_setting policy_settings[] = {
    [SETTING_VERSION] = {"version", POLICY_INTEGER, POLICY_TOP, "1", 1, 1, NULL, "1", "The version of this format."},
    [SETTING_ZONE] = {"zone", POLICY_ZONE, POLICY_TOP | POLICY_WORKFLOW, "UTC", 0, 0, NULL, "Europe/Paris",
                      "The time zone in which {day}, {week} and the other time parts of a key are counted."},
    [SETTING_MODE] = {"mode", POLICY_CHOICE, POLICY_TOP | POLICY_WORKFLOW, "enforce", 0, 0, policy_mode_names, "shadow",
                      "enforce acts on decisions; shadow decides and logs, but lets everything through."},
    [SETTING_DEFAULTS] = {"defaults", POLICY_GROUP, POLICY_TOP, NULL, 0, 0, NULL, "{lease: 60s}",
                          "Settings for every workflow that does not give its own."},
    [SETTING_WORKFLOWS] = {"workflows", POLICY_GROUP, POLICY_TOP, NULL, 0, 0, NULL, "{followup: {lease: 60s}}",
                           "The workflows by name, each with its own settings."},
    [SETTING_KEY] = {"key", POLICY_TEXT, POLICY_WORKFLOW, NULL, 0, 0, NULL, "\"followup:{lead_id}:{day}\"",
                     "The template that makes the key from the input; without it callers give the key."},
    [SETTING_TIME] = {"time", POLICY_TEXT, POLICY_WORKFLOW, NULL, 0, 0, NULL, "sent_at",
                      "The input field that holds the event's own time, for the time parts of the key."},
    [SETTING_IGNORE] = {"ignore", POLICY_LIST, POLICY_WORKFLOW, NULL, 0, 0, NULL, "[trace_id]",
                        "Top-level input fields that may differ between attempts."},
    [SETTING_LEASE] = {"lease", POLICY_DURATION, POLICY_WORKFLOW, "60s", WHEN_SECOND, 24 * WHEN_HOUR, NULL, "60s",
                       "How long a claim is held before another caller may take it over."},
    [SETTING_KEEP] = {"keep", POLICY_DURATION, POLICY_WORKFLOW, "30d", WHEN_MINUTE, 400 * WHEN_DAY, NULL, "30d",
                      "How long a result is kept after it is final."},
    [SETTING_TOMBSTONE] = {"tombstone", POLICY_DURATION, POLICY_WORKFLOW, "400d", 0, 1000 * WHEN_DAY, NULL, "400d",
                           "How long a late duplicate is still recognised after that; 0d forgets at once."},
    [SETTING_CAPABILITY] = {"capability", POLICY_CHOICE, POLICY_WORKFLOW, "none", 0, 0, capability_names, "idempotent",
                            "What the destination can do: nothing, take our key, or be asked afterwards."},
    [SETTING_WINDOW] = {"window", POLICY_DURATION, POLICY_WORKFLOW, "24h", WHEN_MINUTE, 400 * WHEN_DAY, NULL, "24h",
                        "How long an idempotent destination remembers our key."},
    [SETTING_ON_UNKNOWN] = {"on_unknown", POLICY_CHOICE, POLICY_WORKFLOW, "hold", 0, 0, on_unknown_names, "hold",
                            "What to do when nobody can tell whether it happened: hold for a person, retry or skip."},
    [SETTING_TWO_PHASE] = {"two_phase", POLICY_SWITCH, POLICY_WORKFLOW, "false", 0, 0, NULL, "true",
                           "true: a claim counts as not yet sent until its holder says so."},
    [SETTING_ATTEMPTS] =
        {"attempts", POLICY_INTEGER, POLICY_WORKFLOW, "10", 1, 1000, NULL, "10",
         "How many claims an intent gets; then it is refused, or unknown if one of them may have had an effect."},
};

const size_t policy_setting_count = SETTING_COUNT;
_Static_assert(sizeof policy_settings / sizeof *policy_settings == SETTING_COUNT, "one row per setting");

/* What one value is read with. */
struct reading {
    const struct policy_setting *setting;
    const struct yaml *node;
    struct arena *arena;
    struct policy_problems *problems;
    bool no_memory;
};

/* ---- sentences ---- */

static const char *const kind_wants[] = {
    [POLICY_TEXT] = "text",
    [POLICY_ZONE] = "a time zone",
    [POLICY_DURATION] = "a duration",
    [POLICY_INTEGER] = "a whole number",
    [POLICY_SWITCH] = "a truth value",
    [POLICY_CHOICE] = "one word",
    [POLICY_LIST] = "a list of names",
    [POLICY_GROUP] = "settings",
};

/* "lease wants a duration such as 60s", then `rest`, then `shown` in quotes unless it is BYTES_NONE. */
static bool refuse(struct reading *reading, const char *rest, struct bytes shown)
{
    const char *quote = shown.at != NULL ? "'" : "";
    shown = problem_clip(shown.at != NULL ? shown : BYTES(""));
    problem_add(reading->problems, reading->node->line, reading->node->column, "%s wants %s such as %s, %s%s%.*s%s",
                reading->setting->name, kind_wants[reading->setting->kind], reading->setting->example, rest, quote,
                BYTES_ARG(shown), quote);
    return false;
}

static bool refuse_kind(struct reading *reading)
{
    switch (reading->node->kind) {
    case YAML_LIST:
        return refuse(reading, "not a list", BYTES_NONE);
    case YAML_MAP:
        if (reading->setting->kind == POLICY_TEXT)
            return refuse(reading, "not a mapping; text that begins with { needs quotes", BYTES_NONE);
        return refuse(reading, "not a mapping", BYTES_NONE);
    case YAML_TEXT:
        return refuse(reading, "not the text ", reading->node->text);
    case YAML_REFUSED:
        break; /* it has its own problem already */
    }
    return false;
}

/* ---- values by kind ---- */

static bool read_text(struct reading *reading, struct setting_value *ret)
{
    if (reading->node->text.len == 0)
        return refuse(reading, "not an empty text", BYTES_NONE);
    ret->text = arena_dup(reading->arena, reading->node->text);
    reading->no_memory |= ret->text.at == NULL;
    return true;
}

static bool refuse_zone(struct reading *reading)
{
    const struct yaml *node = reading->node;
    struct bytes shown = problem_clip(node->text);
    char near[ZONE_NAME_MAX + 1];
    if (problem_would_drop(reading->problems, node->line, node->column))
        return false;
    if (zone_nearest(node->text, near))
        problem_add(reading->problems, node->line, node->column, "there is no time zone '%.*s'; did you mean '%s'?",
                    BYTES_ARG(shown), near);
    else
        problem_add(reading->problems, node->line, node->column,
                    "there is no time zone '%.*s'; write an IANA name such as Europe/Paris", BYTES_ARG(shown));
    return false;
}

static bool read_zone(struct reading *reading, struct setting_value *ret)
{
    const char *end = memchr(reading->node->text.at, '\0', reading->node->text.len);
    if (end != NULL || !zone_exists(reading->node->text.at))
        return refuse_zone(reading);
    return read_text(reading, ret);
}

static bool refuse_range(struct reading *reading, const char *min, const char *max)
{
    struct bytes shown = problem_clip(reading->node->text);
    bool one = reading->setting->min == reading->setting->max;
    problem_add(reading->problems, reading->node->line, reading->node->column, "%s is %s%s%s, not '%.*s'", reading->setting->name,
                min, one ? "" : " to ", one ? "" : max, BYTES_ARG(shown));
    return false;
}

static bool is_all_digits(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
    return text.len > 0;
}

static bool read_duration(struct reading *reading, struct setting_value *ret)
{
    struct bytes text = reading->node->text;
    int64_t duration_us;
    if (is_all_digits(text))
        return refuse(reading, "with a unit (s, m, h, d), not ", text);
    if (!when_parse_duration(text, &duration_us))
        return refuse(reading, "not ", text);
    if (duration_us < reading->setting->min || duration_us > reading->setting->max) {
        char min[32] = "0d", max[32];
        if (reading->setting->min > 0)
            min[when_format_duration(reading->setting->min, min)] = '\0';
        max[when_format_duration(reading->setting->max, max)] = '\0';
        return refuse_range(reading, min, max);
    }
    ret->number = duration_us;
    return true;
}

static bool read_integer(struct reading *reading, struct setting_value *ret)
{
    const struct policy_setting *setting = reading->setting;
    int64_t n;
    if (!reading->node->plain || !bytes_to_i64(reading->node->text, &n))
        return refuse(reading, reading->node->plain ? "not " : "without quotes, not ", reading->node->text);
    if (n < setting->min || n > setting->max) {
        char min[32], max[32];
        snprintf(min, sizeof min, "%lld", (long long)setting->min);
        snprintf(max, sizeof max, "%lld", (long long)setting->max);
        return refuse_range(reading, min, max);
    }
    ret->number = n;
    return true;
}

static bool read_switch(struct reading *reading, struct setting_value *ret)
{
    struct bytes shown = problem_clip(reading->node->text);
    bool yes = bytes_is(reading->node->text, "true"), no = bytes_is(reading->node->text, "false");
    if (!reading->node->plain || (!yes && !no)) {
        problem_add(reading->problems, reading->node->line, reading->node->column, "%s is true or false%s, not '%.*s'",
                    reading->setting->name, reading->node->plain ? "" : " without quotes", BYTES_ARG(shown));
        return false;
    }
    ret->number = yes;
    return true;
}

static size_t count_names(const char *const *names)
{
    size_t count = 0;
    while (names[count] != NULL)
        count++;
    return count;
}

static bool refuse_choice(struct reading *reading, const char *const *names, size_t count)
{
    char choices[80] = "";
    size_t len = 0;
    for (size_t i = 0; i < count && len < sizeof choices; i++)
        len += (size_t)snprintf(choices + len, sizeof choices - len, "%s%s",
                                i == 0           ? ""
                                : i + 1 == count ? " or "
                                                 : ", ",
                                names[i]);
    struct bytes shown = problem_clip(reading->node->text);
    const char *near = nearest_name(reading->node->text, names, count);
    problem_add(reading->problems, reading->node->line, reading->node->column, "%s is %s, not '%.*s'%s%s%s",
                reading->setting->name, choices, BYTES_ARG(shown), near != NULL ? "; did you mean '" : "",
                near != NULL ? near : "", near != NULL ? "'?" : "");
    return false;
}

static bool read_choice(struct reading *reading, struct setting_value *ret)
{
    const char *const *names = reading->setting->names;
    size_t count = count_names(names);
    for (size_t i = 0; i < count; i++) {
        if (bytes_is(reading->node->text, names[i])) {
            ret->number = (int64_t)i;
            return true;
        }
    }
    return refuse_choice(reading, names, count);
}

static bool list_has(const struct setting_value *list, struct bytes name)
{
    for (size_t i = 0; i < list->list_count; i++)
        if (bytes_eq(list->list[i], name))
            return true;
    return false;
}

static bool read_item(struct reading *reading, const struct yaml *item, struct setting_value *list)
{
    const char *name = reading->setting->name;
    struct bytes shown = problem_clip(item->text);
    if (item->kind != YAML_TEXT || yaml_is_absent(item) || item->text.len == 0)
        problem_add(reading->problems, item->line, item->column, "each item of %s is the name of a field, such as trace_id",
                    name);
    else if (list_has(list, item->text))
        problem_add(reading->problems, item->line, item->column, "%s names '%.*s' twice", name, BYTES_ARG(shown));
    else if ((list->list[list->list_count] = arena_dup(reading->arena, item->text)).at == NULL)
        reading->no_memory = true;
    else
        list->list_count++;
    return !reading->no_memory;
}

static bool read_list(struct reading *reading, struct setting_value *ret)
{
    const struct yaml *node = reading->node;
    if (node->count > POLICY_LIST_MAX) {
        problem_add(reading->problems, node->line, node->column, "%s has %zu names; at most %d are read", reading->setting->name,
                    node->count, POLICY_LIST_MAX);
        return false;
    }
    ret->list = arena_zalloc(reading->arena, node->count + 1, sizeof *ret->list);
    reading->no_memory |= ret->list == NULL;
    for (const struct yaml *item = node->first; item != NULL && !reading->no_memory; item = item->next)
        read_item(reading, item, ret);
    return true;
}

static bool read_group(struct reading *reading, struct setting_value *ret)
{
    ret->group = reading->node;
    return true;
}

static const struct kind_reader {
    enum yaml_kind from;
    bool (*read)(struct reading *reading, struct setting_value *ret);
} kind_readers[] = {
    [POLICY_TEXT] = {YAML_TEXT, read_text},         [POLICY_ZONE] = {YAML_TEXT, read_zone},
    [POLICY_DURATION] = {YAML_TEXT, read_duration}, [POLICY_INTEGER] = {YAML_TEXT, read_integer},
    [POLICY_SWITCH] = {YAML_TEXT, read_switch},     [POLICY_CHOICE] = {YAML_TEXT, read_choice},
    [POLICY_LIST] = {YAML_LIST, read_list},         [POLICY_GROUP] = {YAML_MAP, read_group},
};

/* An empty group is what remains when everything in it is commented out. */
static bool read_absent(struct reading *reading, struct setting_value *ret)
{
    if (reading->setting->kind == POLICY_GROUP) {
        ret->group = NULL;
        return true;
    }
    problem_add(reading->problems, reading->node->line, reading->node->column,
                "%s has no value; write %s such as %s, or leave the line out", reading->setting->name,
                kind_wants[reading->setting->kind], reading->setting->example);
    return false;
}

static bool read_value(struct reading *reading, struct setting_value *ret)
{
    const struct kind_reader *reader = &kind_readers[reading->setting->kind];
    struct setting_value value = {.given = true, .line = reading->node->line, .column = reading->node->column};
    bool good;
    if (yaml_is_absent(reading->node))
        good = read_absent(reading, &value);
    else if (reading->node->kind != reader->from)
        good = refuse_kind(reading);
    else
        good = reader->read(reading, &value);
    *ret = good ? value : (struct setting_value){.refused = true};
    return good;
}

/* ---- mappings ---- */

static size_t find_setting(struct bytes name)
{
    size_t i = 0;
    while (i < SETTING_COUNT && !bytes_is(name, policy_settings[i].name))
        i++;
    return i;
}

static const char *nearest_setting(struct bytes name, enum policy_place place)
{
    const char *names[SETTING_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if ((policy_settings[i].places & place) != 0)
            names[count++] = policy_settings[i].name;
    return nearest_name(name, names, count);
}

static void refuse_name(const struct yaml *name, enum policy_place place, struct policy_problems *problems)
{
    struct bytes shown = problem_clip(name->text);
    if (name->kind == YAML_REFUSED || problem_would_drop(problems, name->line, name->column))
        return;
    if (name->kind != YAML_TEXT) {
        problem_add(problems, name->line, name->column, "the name of a setting is wanted here, not a list or a mapping");
        return;
    }
    size_t elsewhere = find_setting(name->text);
    const char *near = nearest_setting(name->text, place);
    if (elsewhere < SETTING_COUNT)
        problem_add(problems, name->line, name->column, "'%.*s' belongs %s", BYTES_ARG(shown),
                    place == POLICY_TOP ? "under defaults or a workflow, not at the top"
                                        : "at the top of the document, not under a workflow");
    else if (near != NULL)
        problem_add(problems, name->line, name->column, "unknown setting '%.*s'; did you mean '%s'?", BYTES_ARG(shown), near);
    else
        problem_add(problems, name->line, name->column, "unknown setting '%.*s'", BYTES_ARG(shown));
}

/* Row of the setting that `name` means at this place and that was not seen before, else SETTING_COUNT and a problem. */
static size_t accept_name(const struct yaml *name, enum policy_place place, size_t seen_line[SETTING_COUNT],
                          struct policy_problems *problems)
{
    size_t i = name->kind == YAML_TEXT ? find_setting(name->text) : SETTING_COUNT;
    if (i == SETTING_COUNT || (policy_settings[i].places & place) == 0) {
        refuse_name(name, place, problems);
        return SETTING_COUNT;
    }
    if (seen_line[i] != 0) {
        problem_add(problems, name->line, name->column, "'%s' is given twice, first on line %zu; keep one",
                    policy_settings[i].name, seen_line[i]);
        return SETTING_COUNT;
    }
    seen_line[i] = name->line;
    return i;
}

enum status settings_read(const struct yaml *map, enum policy_place place, struct arena *arena, struct settings *ret_settings,
                          struct policy_problems *problems)
{
    struct settings settings = {0};
    size_t seen_line[SETTING_COUNT] = {0};
    for (const struct yaml *name = map != NULL ? map->first : NULL; name != NULL; name = name->next->next) {
        size_t i = accept_name(name, place, seen_line, problems);
        if (i == SETTING_COUNT)
            continue;
        struct reading reading = {&policy_settings[i], name->next, arena, problems, false};
        read_value(&reading, &settings.at[i]);
        if (reading.no_memory)
            return FULL;
    }
    *ret_settings = settings;
    return OK;
}

enum status settings_built_in(struct arena *arena, struct settings *ret_settings)
{
    struct policy_problems problems = {0};
    struct settings settings = {0};
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        if (policy_settings[i].default_text == NULL)
            continue;
        struct yaml node = {.kind = YAML_TEXT, .plain = true, .text = bytes_of(policy_settings[i].default_text)};
        struct reading reading = {&policy_settings[i], &node, arena, &problems, false};
        bool good = read_value(&reading, &settings.at[i]);
        ASSERT(good);
        if (reading.no_memory)
            return FULL;
    }
    *ret_settings = settings;
    return OK;
}

struct settings settings_over(const struct settings *own, const struct settings *base)
{
    struct settings merged = *own;
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        if (merged.at[i].given)
            continue;
        merged.at[i] = base->at[i];
        merged.at[i].refused |= own->at[i].refused;
    }
    return merged;
}
