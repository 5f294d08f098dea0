#include "base/settings.h"

#include <stdio.h>

#include "base/json.h"
#include "base/when.h"

/* What one value is read with. */
struct reading {
    const struct setting *setting;
    const struct yaml *node;
    struct arena *arena;
    struct yaml_problems *problems;
    bool no_memory;
};

/* ---- sentences ---- */

static const char *const kind_wants[] = {
    [SETTING_TEXT] = "text",
    [SETTING_FORM] = NULL, /* its form says it */
    [SETTING_DURATION] = "a duration",
    [SETTING_INTEGER] = "a whole number",
    [SETTING_SWITCH] = "a truth value",
    [SETTING_CHOICE] = "one word",
    [SETTING_LIST] = "a list of names",
    [SETTING_TEXTS] = "text or a list of texts",
    [SETTING_GROUP] = "settings",
    [SETTING_GROUPS] = "a list of settings",
};

static const char *wants(const struct setting *setting)
{
    return setting->kind == SETTING_FORM ? setting->form->wants : kind_wants[setting->kind];
}

/* "lease wants a duration such as 60s", then `rest`, then `shown` in quotes unless it is BYTES_NONE. */
static bool refuse(struct reading *reading, const char *rest, struct bytes shown)
{
    const char *quote = shown.at != NULL ? "'" : "";
    shown = yaml_clip(shown.at != NULL ? shown : BYTES(""));
    yaml_problem_add(reading->problems, reading->node->line, reading->node->column, "%s wants %s such as %s, %s%s%.*s%s",
                     reading->setting->name, wants(reading->setting), reading->setting->example, rest, quote, BYTES_ARG(shown),
                     quote);
    return false;
}

static bool refuse_kind(struct reading *reading)
{
    switch (reading->node->kind) {
    case YAML_LIST:
        return refuse(reading, "not a list", BYTES_NONE);
    case YAML_MAP:
        if (reading->setting->kind == SETTING_TEXT)
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

static bool read_form(struct reading *reading, struct setting_value *ret)
{
    const struct yaml *node = reading->node;
    struct why why = {""};
    if (reading->setting->form->fits(node->text))
        return read_text(reading, ret);
    if (yaml_problem_would_drop(reading->problems, node->line, node->column))
        return false;
    reading->setting->form->explain(node->text, &why);
    yaml_problem_add(reading->problems, node->line, node->column, "%s", why.text);
    return false;
}

static bool refuse_range(struct reading *reading, const char *min, const char *max)
{
    struct bytes shown = yaml_clip(reading->node->text);
    bool one = reading->setting->min == reading->setting->max;
    yaml_problem_add(reading->problems, reading->node->line, reading->node->column, "%s is %s%s%s, not '%.*s'",
                     reading->setting->name, min, one ? "" : " to ", one ? "" : max, BYTES_ARG(shown));
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
    const struct setting *setting = reading->setting;
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
    struct bytes shown = yaml_clip(reading->node->text);
    bool yes = bytes_is(reading->node->text, "true"), no = bytes_is(reading->node->text, "false");
    if (!reading->node->plain || (!yes && !no)) {
        yaml_problem_add(reading->problems, reading->node->line, reading->node->column, "%s is true or false%s, not '%.*s'",
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
    struct bytes shown = yaml_clip(reading->node->text);
    const char *near = nearest_name(reading->node->text, names, count);
    yaml_problem_add(reading->problems, reading->node->line, reading->node->column, "%s is %s, not '%.*s'%s%s%s",
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
    const struct setting *setting = reading->setting;
    struct bytes shown = yaml_clip(item->text);
    if (item->kind != YAML_TEXT || yaml_is_absent(item) || (item->text.len == 0 && !setting->repeats))
        yaml_problem_add(reading->problems, item->line, item->column, "each item of %s is %s", setting->name,
                         setting->item != NULL ? setting->item : "a text");
    else if (!setting->repeats && list_has(list, item->text))
        yaml_problem_add(reading->problems, item->line, item->column, "%s names '%.*s' twice", setting->name, BYTES_ARG(shown));
    else if ((list->list[list->list_count] = arena_dup(reading->arena, item->text)).at == NULL)
        reading->no_memory = true;
    else
        list->list_count++;
    return !reading->no_memory;
}

static bool read_list(struct reading *reading, struct setting_value *ret)
{
    const struct yaml *node = reading->node;
    if (node->count > SETTING_LIST_MAX) {
        yaml_problem_add(reading->problems, node->line, node->column, "%s has %zu names; at most %d are read",
                         reading->setting->name, node->count, SETTING_LIST_MAX);
        return false;
    }
    ret->list = arena_zalloc(reading->arena, node->count + 1, sizeof *ret->list);
    reading->no_memory |= ret->list == NULL;
    for (const struct yaml *item = node->first; item != NULL && !reading->no_memory; item = item->next)
        read_item(reading, item, ret);
    return true;
}

static bool read_texts(struct reading *reading, struct setting_value *ret)
{
    if (reading->node->kind == YAML_LIST)
        return read_list(reading, ret);
    if (!read_text(reading, ret))
        return false;
    ret->list = arena_zalloc(reading->arena, 1, sizeof *ret->list);
    reading->no_memory |= ret->list == NULL;
    if (ret->list != NULL)
        ret->list[ret->list_count++] = ret->text;
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
    [SETTING_TEXT] = {YAML_TEXT, read_text},         [SETTING_FORM] = {YAML_TEXT, read_form},
    [SETTING_DURATION] = {YAML_TEXT, read_duration}, [SETTING_INTEGER] = {YAML_TEXT, read_integer},
    [SETTING_SWITCH] = {YAML_TEXT, read_switch},     [SETTING_CHOICE] = {YAML_TEXT, read_choice},
    [SETTING_LIST] = {YAML_LIST, read_list},         [SETTING_GROUP] = {YAML_MAP, read_group},
    [SETTING_GROUPS] = {YAML_LIST, read_group},      [SETTING_TEXTS] = {YAML_LIST, read_texts},
};

/* An empty group is what remains when everything in it is commented out. */
static bool read_absent(struct reading *reading, struct setting_value *ret)
{
    if (reading->setting->kind == SETTING_GROUP || reading->setting->kind == SETTING_GROUPS) {
        ret->group = NULL;
        return true;
    }
    yaml_problem_add(reading->problems, reading->node->line, reading->node->column,
                     "%s has no value; write %s such as %s, or leave the line out", reading->setting->name,
                     wants(reading->setting), reading->setting->example);
    return false;
}

static bool read_value(struct reading *reading, struct setting_value *ret)
{
    const struct kind_reader *reader = &kind_readers[reading->setting->kind];
    struct setting_value value = {.given = true, .line = reading->node->line, .column = reading->node->column};
    bool good;
    if (yaml_is_absent(reading->node))
        good = read_absent(reading, &value);
    else if (reading->node->kind != reader->from && !(reader->read == read_texts && reading->node->kind == YAML_TEXT))
        good = refuse_kind(reading);
    else
        good = reader->read(reading, &value);
    *ret = good ? value : (struct setting_value){.refused = true};
    return good;
}

/* ---- mappings ---- */

/* The row of this name at this place, or the row count. */
static size_t find_row(const struct setting_table *table, struct bytes name, unsigned places)
{
    size_t i = 0;
    while (i < table->count && !((table->rows[i].places & places) != 0 && bytes_is(name, table->rows[i].name)))
        i++;
    return i;
}

static const char *nearest_row(const struct setting_table *table, struct bytes name, unsigned place)
{
    const char *names[SETTING_ROWS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < table->count; i++)
        if ((table->rows[i].places & place) != 0)
            names[count++] = table->rows[i].name;
    return nearest_name(name, names, count);
}

static void refuse_name(const struct setting_table *table, const struct yaml *name, unsigned place,
                        struct yaml_problems *problems)
{
    struct bytes shown = yaml_clip(name->text);
    if (name->kind == YAML_REFUSED || yaml_problem_would_drop(problems, name->line, name->column))
        return;
    if (name->kind != YAML_TEXT) {
        yaml_problem_add(problems, name->line, name->column, "the name of a setting is wanted here, not a list or a mapping");
        return;
    }
    size_t elsewhere = table->belongs != NULL ? find_row(table, name->text, ~0U) : table->count;
    const char *near = nearest_row(table, name->text, place);
    if (elsewhere < table->count)
        yaml_problem_add(problems, name->line, name->column, "'%.*s' belongs %s", BYTES_ARG(shown),
                         table->belongs(&table->rows[elsewhere], place));
    else if (near != NULL)
        yaml_problem_add(problems, name->line, name->column, "unknown setting '%.*s'; did you mean '%s'?", BYTES_ARG(shown),
                         near);
    else
        yaml_problem_add(problems, name->line, name->column, "unknown setting '%.*s'", BYTES_ARG(shown));
}

/* The row that `name` means at this place and that was not seen before, else the row count and a problem. */
static size_t accept_name(const struct setting_table *table, const struct yaml *name, unsigned place,
                          size_t seen_line[SETTING_ROWS_MAX], struct yaml_problems *problems)
{
    size_t i = name->kind == YAML_TEXT ? find_row(table, name->text, place) : table->count;
    if (i == table->count) {
        refuse_name(table, name, place, problems);
        return table->count;
    }
    if (seen_line[i] != 0) {
        yaml_problem_add(problems, name->line, name->column, "'%s' is given twice, first on line %zu; keep one",
                         table->rows[i].name, seen_line[i]);
        return table->count;
    }
    seen_line[i] = name->line;
    return i;
}

enum status settings_read(const struct setting_table *table, const struct yaml *map, unsigned place, struct arena *arena,
                          struct setting_value *ret_values, struct yaml_problems *problems)
{
    struct setting_value values[SETTING_ROWS_MAX] = {{0}};
    size_t seen_line[SETTING_ROWS_MAX] = {0};
    ASSERT(table->count <= SETTING_ROWS_MAX);
    for (const struct yaml *name = map != NULL ? map->first : NULL; name != NULL; name = name->next->next) {
        size_t i = accept_name(table, name, place, seen_line, problems);
        if (i == table->count)
            continue;
        struct reading reading = {&table->rows[i], name->next, arena, problems, false};
        read_value(&reading, &values[i]);
        if (reading.no_memory)
            return FULL;
    }
    memcpy(ret_values, values, table->count * sizeof *values);
    return OK;
}

enum status settings_built_in(const struct setting_table *table, struct arena *arena, struct setting_value *ret_values)
{
    struct yaml_problems problems = {0};
    for (size_t i = 0; i < table->count; i++) {
        ret_values[i] = (struct setting_value){0};
        if (table->rows[i].default_text == NULL)
            continue;
        struct yaml node = {.kind = YAML_TEXT, .plain = true, .text = bytes_of(table->rows[i].default_text)};
        struct reading reading = {&table->rows[i], &node, arena, &problems, false};
        bool good = read_value(&reading, &ret_values[i]);
        ASSERT(good);
        if (reading.no_memory)
            return FULL;
    }
    return OK;
}

void settings_over(size_t count, struct setting_value *values, const struct setting_value *base)
{
    for (size_t i = 0; i < count; i++) {
        bool refused = values[i].refused;
        if (values[i].given)
            continue;
        values[i] = base[i];
        values[i].refused |= refused;
    }
}

enum status settings_pairs(const struct setting_value *value, struct arena *arena, struct yaml_problems *problems,
                           struct pair **ret_pairs, size_t *ret_count)
{
    const struct yaml *map = value->group;
    size_t count = 0;
    *ret_count = 0;
    *ret_pairs = NULL;
    if (map == NULL)
        return OK;
    if (map->count > SETTING_PAIRS_MAX) {
        yaml_problem_add(problems, map->line, map->column, "at most %d names are read here", SETTING_PAIRS_MAX);
        return OK;
    }
    struct pair *pairs = arena_zalloc(arena, map->count + 1, sizeof *pairs);
    if (pairs == NULL)
        return FULL;
    for (const struct yaml *name = map->first; name != NULL; name = name->next->next) {
        if (name->kind != YAML_TEXT || name->text.len == 0 || name->next->kind != YAML_TEXT) {
            yaml_problem_add(problems, name->line, name->column, "a path and a text are wanted here, such as ok: true");
            continue;
        }
        pairs[count].name = arena_dup(arena, name->text);
        pairs[count].value = arena_dup(arena, name->next->text);
        if (pairs[count].name.at == NULL || pairs[count].value.at == NULL)
            return FULL;
        count++;
    }
    *ret_pairs = pairs;
    *ret_count = count;
    return OK;
}

static bool is_name_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

bool settings_is_name(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!is_name_char(name.at[i]))
            return false;
    return name.len >= 1 && name.len <= SETTING_NAME_MAX;
}
