#include "policy/policy.h"

#include <stdlib.h>

#include "destination/destination_read.h"
#include "policy/policy_settings.h"
#include "receive/source_read.h"

/* Enough for POLICY_WORKFLOWS_MAX workflows that all inherit the longest template. */
#define POLICY_MEMORY_MAX ((size_t)128 << 20)

/* A node for every two bytes of text, at worst. */
#define YAML_MEMORY_MAX ((size_t)64 << 20)

/* Settings under a name that the user made up. */
struct named {
    struct bytes name;
    const struct yaml *at, *settings;
};

/* What is named so, in sentences. */
struct named_kind {
    const char *word, *plural, *example;
    size_t count_max;
};

static const struct named_kind workflow_kind = {"workflow", "workflows", "lease: 60s", POLICY_WORKFLOWS_MAX};
static const struct named_kind source_kind = {"source", "sources", "preset: typeform", POLICY_SOURCES_MAX};
static const struct named_kind destination_kind = {"destination", "destinations", "provider: http", POLICY_DESTINATIONS_MAX};

static const struct named_kind mcp_kind = {"MCP server", "MCP servers", "destination: mail-mcp", MCP_SERVERS_MAX};

struct parsing {
    struct policy *policy;
    struct arena scratch; /* the tree; gone when parsing ends */
    struct yaml_problems *problems;
    struct settings defaults;
};

/* ---- rules ---- */

static bool same_text(struct bytes a, struct bytes b)
{
    return (a.at == NULL) == (b.at == NULL) && bytes_eq(a, b);
}

/* True when a workflow's key means the same as that of the defaults, which then serves both. */
static bool shares_key(const struct settings *settings, const struct settings *defaults)
{
    return same_text(settings->at[SETTING_KEY].text, defaults->at[SETTING_KEY].text) &&
           same_text(settings->at[SETTING_TIME].text, defaults->at[SETTING_TIME].text) &&
           same_text(settings->at[SETTING_ZONE].text, defaults->at[SETTING_ZONE].text);
}

/* Where to show a problem of the key: at what this workflow wrote itself, the template before time and zone. */
static const struct setting_value *key_origin(const struct settings *own, const struct settings *settings)
{
    static const enum policy_row order[] = {SETTING_KEY, SETTING_TIME, SETTING_ZONE};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (own->at[order[i]].given)
            return &own->at[order[i]];
    return &settings->at[SETTING_KEY];
}

static enum status compile_key(struct parsing *parsing, const struct settings *own, const struct settings *settings,
                               struct workflow_rules *rules)
{
    const struct setting_value *at = settings->at;
    if (rules->key_text.at == NULL || at[SETTING_KEY].refused || at[SETTING_TIME].refused || at[SETTING_ZONE].refused)
        return OK;
    struct key_options options = {at[SETTING_ZONE].text.at, at[SETTING_TIME].text};
    struct why why;
    enum status status = key_template_compile(rules->key_text, &options, &parsing->policy->arena, &rules->key, &why);
    if (status != INVALID)
        return status;
    const struct setting_value *origin = key_origin(own, settings);
    yaml_problem_add(parsing->problems, origin->line, origin->column, "%s", why.text);
    return OK;
}

static void check_window(struct parsing *parsing, const struct settings *own, const struct settings *settings)
{
    const struct setting_value *window = &own->at[SETTING_WINDOW], *capability = &settings->at[SETTING_CAPABILITY];
    if (window->given && !capability->refused && capability->number != CAPABILITY_IDEMPOTENT)
        yaml_problem_add(parsing->problems, window->line, window->column,
                         "window is for destinations that remember our key; add capability: idempotent, or remove it");
}

static struct workflow_rules rules_of(const struct settings *settings, struct bytes name)
{
    const struct setting_value *at = settings->at;
    struct workflow_rules rules = {
        .name = name,
        .key_text = at[SETTING_KEY].text,
        .ignore = at[SETTING_IGNORE].list,
        .ignore_count = at[SETTING_IGNORE].list_count,
        .lease_us = at[SETTING_LEASE].number,
        .keep_us = at[SETTING_KEEP].number,
        .tombstone_us = at[SETTING_TOMBSTONE].number,
        .capability = (enum capability)at[SETTING_CAPABILITY].number,
        .on_unknown = (enum on_unknown)at[SETTING_ON_UNKNOWN].number,
        .two_phase = at[SETTING_TWO_PHASE].number != 0,
        .attempts_max = at[SETTING_ATTEMPTS].number,
        .mode = (enum policy_mode)at[SETTING_MODE].number,
    };
    if (rules.capability == CAPABILITY_IDEMPOTENT)
        rules.window_us = at[SETTING_WINDOW].number;
    return rules;
}

/* ---- the document ---- */

static enum status read_defaults(struct parsing *parsing, const struct settings *top)
{
    struct settings own, built_in;
    struct policy *policy = parsing->policy;
    TRY(settings_built_in(&policy_table, &policy->arena, built_in.at));
    TRY(settings_read(&policy_table, top->at[SETTING_DEFAULTS].group, POLICY_WORKFLOW, &policy->arena, own.at,
                      parsing->problems));
    parsing->defaults = own;
    settings_over(SETTING_COUNT, parsing->defaults.at, top->at);
    settings_over(SETTING_COUNT, parsing->defaults.at, built_in.at);
    policy->defaults = rules_of(&parsing->defaults, BYTES(""));
    check_window(parsing, &own, &parsing->defaults);
    return compile_key(parsing, &own, &parsing->defaults, &policy->defaults);
}

static enum status read_workflow(struct parsing *parsing, const struct named *workflow, struct workflow_rules *ret_rules)
{
    struct policy *policy = parsing->policy;
    struct settings own, settings;
    struct bytes name = arena_dup(&policy->arena, workflow->name);
    if (name.at == NULL)
        return FULL;
    TRY(settings_read(&policy_table, workflow->settings, POLICY_WORKFLOW, &policy->arena, own.at, parsing->problems));
    settings = own;
    settings_over(SETTING_COUNT, settings.at, parsing->defaults.at);
    *ret_rules = rules_of(&settings, name);
    check_window(parsing, &own, &settings);
    if (shares_key(&settings, &parsing->defaults)) {
        ret_rules->key = policy->defaults.key;
        return OK;
    }
    return compile_key(parsing, &own, &settings, ret_rules);
}

/* NULL for one that is left empty; `ret_good` is false when it has a problem. */
static const struct yaml *named_settings(struct parsing *parsing, const struct named_kind *kind, const struct yaml *name,
                                         bool *ret_good)
{
    const struct yaml *settings = name->next;
    struct bytes shown = yaml_clip(name->text);
    *ret_good = false;
    if (name->kind != YAML_TEXT || !settings_is_name(name->text)) {
        if (name->kind != YAML_REFUSED)
            yaml_problem_add(parsing->problems, name->line, name->column,
                             "the name of a %s is 1 to %d letters, digits, '.', '_' or '-', not '%.*s'", kind->word,
                             SETTING_NAME_MAX, BYTES_ARG(shown));
        return NULL;
    }
    *ret_good = settings->kind == YAML_MAP || yaml_is_absent(settings);
    if (!*ret_good && settings->kind != YAML_REFUSED)
        yaml_problem_add(parsing->problems, settings->line, settings->column, "%s '%.*s' wants settings such as %s, not %s",
                         kind->word, BYTES_ARG(shown), kind->example, settings->kind == YAML_LIST ? "a list" : "text");
    return settings->kind == YAML_MAP ? settings : NULL;
}

static int by_place(const void *a, const void *b)
{
    const struct yaml *x = ((const struct named *)a)->at, *y = ((const struct named *)b)->at;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return x->column < y->column ? -1 : x->column > y->column;
}

static int by_name_and_place(const void *a, const void *b)
{
    int order = bytes_cmp(((const struct named *)a)->name, ((const struct named *)b)->name);
    return order != 0 ? order : by_place(a, b);
}

static int rules_by_name(const void *a, const void *b)
{
    return bytes_cmp(((const struct workflow_rules *)a)->name, ((const struct workflow_rules *)b)->name);
}

static int destinations_by_name(const void *a, const void *b)
{
    return bytes_cmp(((const struct destination *)a)->name, ((const struct destination *)b)->name);
}

static int sources_by_name(const void *a, const void *b)
{
    return bytes_cmp(((const struct source *)a)->name, ((const struct source *)b)->name);
}

/* Takes out those that are named again and leaves the rest in the order of the document; returns how many remain. */
static size_t drop_repeated(struct parsing *parsing, const struct named_kind *kind, struct named *all, size_t count)
{
    size_t kept = 0;
    if (count > 0)
        qsort(all, count, sizeof *all, by_name_and_place);
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && bytes_eq(all[kept - 1].name, all[i].name))
            yaml_problem_add(parsing->problems, all[i].at->line, all[i].at->column,
                             "%s '%.*s' is given twice, first on line %zu; keep one", kind->word, BYTES_ARG(all[i].name),
                             all[kept - 1].at->line);
        else
            all[kept++] = all[i];
    }
    if (kept > 0)
        qsort(all, kept, sizeof *all, by_place);
    return kept;
}

/* None when `group` is NULL or has too many, which is a problem. */
static enum status list_named(struct parsing *parsing, const struct named_kind *kind, const struct yaml *group,
                              struct named **ret_all, size_t *ret_count)
{
    size_t count = 0, group_count = group != NULL ? group->count : 0;
    if (group_count > kind->count_max) {
        yaml_problem_add(parsing->problems, group->line, group->column, "there are %zu %s; at most %zu are read", group_count,
                         kind->plural, kind->count_max);
        group_count = 0;
    }
    struct named *all = arena_zalloc(&parsing->scratch, group_count + 1, sizeof *all);
    if (all == NULL)
        return FULL;
    for (const struct yaml *name = group_count > 0 ? group->first : NULL; name != NULL; name = name->next->next) {
        bool good;
        const struct yaml *settings = named_settings(parsing, kind, name, &good);
        if (good)
            all[count++] = (struct named){name->text, name, settings};
    }
    *ret_count = drop_repeated(parsing, kind, all, count);
    *ret_all = all;
    return OK;
}

static enum status read_workflows(struct parsing *parsing, const struct yaml *group)
{
    struct policy *policy = parsing->policy;
    struct named *workflows;
    size_t count;
    TRY(list_named(parsing, &workflow_kind, group, &workflows, &count));
    policy->workflows = arena_zalloc(&policy->arena, count + 1, sizeof *policy->workflows);
    if (policy->workflows == NULL)
        return FULL;
    for (; policy->workflow_count < count; policy->workflow_count++)
        TRY(read_workflow(parsing, &workflows[policy->workflow_count], &policy->workflows[policy->workflow_count]));
    if (count > 0)
        qsort(policy->workflows, count, sizeof *policy->workflows, rules_by_name);
    return OK;
}

static enum status read_destinations(struct parsing *parsing, const struct settings *top)
{
    struct policy *policy = parsing->policy;
    struct named *all;
    size_t count;
    TRY(list_named(parsing, &destination_kind, top->at[SETTING_DESTINATIONS].group, &all, &count));
    policy->destinations = arena_zalloc(&policy->arena, count + 1, sizeof *policy->destinations);
    if (policy->destinations == NULL)
        return FULL;
    struct destination_source source = {.arena = &policy->arena,
                                        .scratch = &parsing->scratch,
                                        .problems = parsing->problems,
                                        .zone = parsing->defaults.at[SETTING_ZONE].text.at};
    for (; policy->destination_count < count; policy->destination_count++) {
        const struct named *named = &all[policy->destination_count];
        TRY(destination_read(&source, named->at, named->settings, &policy->destinations[policy->destination_count]));
    }
    if (count > 0)
        qsort(policy->destinations, count, sizeof *policy->destinations, destinations_by_name);
    return OK;
}

/* What is forwarded goes to a destination of this policy. */
static void check_forward(struct parsing *parsing, const struct named *named, const struct source *source)
{
    const char *names[64];
    size_t count = 0;
    if (source->forward.at == NULL || policy_destination(parsing->policy, source->forward) != NULL)
        return;
    for (; count < parsing->policy->destination_count && count < sizeof names / sizeof *names; count++)
        names[count] = parsing->policy->destinations[count].name.at;
    const char *near = nearest_name(source->forward, names, count);
    struct bytes shown = yaml_clip(source->forward);
    yaml_problem_add(parsing->problems, named->at->line, named->at->column,
                     "source '%.*s' forwards to '%.*s', which is no destination here%s%s%s", BYTES_ARG(yaml_clip(named->name)),
                     BYTES_ARG(shown), near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                     near != NULL ? "'?" : "");
}

static enum status read_sources(struct parsing *parsing, const struct settings *top)
{
    struct policy *policy = parsing->policy;
    struct named *all;
    size_t count;
    TRY(list_named(parsing, &source_kind, top->at[SETTING_SOURCES].group, &all, &count));
    policy->sources = arena_zalloc(&policy->arena, count + 1, sizeof *policy->sources);
    if (policy->sources == NULL)
        return FULL;
    struct source_reading reading = {&policy->arena, &parsing->scratch, parsing->problems};
    for (; policy->source_count < count; policy->source_count++) {
        const struct named *named = &all[policy->source_count];
        TRY(source_read(&reading, named->at, named->settings, &policy->sources[policy->source_count]));
        check_forward(parsing, named, &policy->sources[policy->source_count]);
    }
    if (count > 0)
        qsort(policy->sources, count, sizeof *policy->sources, sources_by_name);
    return OK;
}

static int servers_by_name(const void *a, const void *b)
{
    return bytes_cmp(((const struct mcp_server_rules *)a)->name, ((const struct mcp_server_rules *)b)->name);
}

/* A server that is named here has to be one that can be called. */
static void check_server(struct parsing *parsing, const struct named *named, const struct mcp_server_rules *server)
{
    if (server->destination.at == NULL)
        return;
    const struct destination *destination = policy_destination(parsing->policy, server->destination);
    if (destination == NULL || destination->kind != DESTINATION_HTTP)
        yaml_problem_add(parsing->problems, named->at->line, named->at->column,
                         "MCP server '%.*s' names the destination '%.*s', which is no HTTP destination of this policy",
                         BYTES_ARG(server->name), BYTES_ARG(yaml_clip(server->destination)));
}

static enum status read_servers(struct parsing *parsing, const struct yaml *group)
{
    struct policy *policy = parsing->policy;
    struct named *all;
    size_t count;
    TRY(list_named(parsing, &mcp_kind, group, &all, &count));
    policy->mcp = arena_zalloc(&policy->arena, count + 1, sizeof *policy->mcp);
    if (policy->mcp == NULL)
        return FULL;
    for (; policy->mcp_count < count; policy->mcp_count++) {
        const struct named *named = &all[policy->mcp_count];
        struct mcp_server_rules *server = &policy->mcp[policy->mcp_count];
        TRY(mcp_server_read(named->at, named->settings, &policy->arena, parsing->problems, server));
        check_server(parsing, named, server);
    }
    if (count > 0)
        qsort(policy->mcp, count, sizeof *policy->mcp, servers_by_name);
    return OK;
}

static enum status read_document(struct parsing *parsing)
{
    struct policy *policy = parsing->policy;
    struct yaml *root = NULL;
    struct settings top;
    TRY(yaml_read(policy->text, &parsing->scratch, &root, parsing->problems));
    if (root != NULL && root->kind != YAML_MAP && !yaml_is_absent(root)) {
        yaml_problem_add(parsing->problems, root->line, root->column, "a policy is settings such as 'version: 1', not %s",
                         root->kind == YAML_LIST ? "a list" : "text");
        return INVALID;
    }
    const struct yaml *map = root != NULL && root->kind == YAML_MAP ? root : NULL;
    TRY(settings_read(&policy_table, map, POLICY_TOP, &policy->arena, top.at, parsing->problems));
    TRY(read_defaults(parsing, &top));
    TRY(read_workflows(parsing, top.at[SETTING_WORKFLOWS].group));
    TRY(read_destinations(parsing, &top));
    TRY(read_sources(parsing, &top));
    TRY(read_servers(parsing, top.at[SETTING_MCP].group));
    policy->owner = parsing->defaults.at[SETTING_OWNER].text;
    policy->due_us = parsing->defaults.at[SETTING_DUE].number;
    return parsing->problems->count == 0 ? OK : INVALID;
}

static enum status parse_into(struct policy *policy, struct bytes text, struct yaml_problems *problems)
{
    struct parsing parsing = {.policy = policy, .problems = problems};
    /* A text over the limit is refused by the reader, which looks at no more than its length; then nobody needs a copy. */
    bool readable = text.len <= POLICY_SIZE_MAX;
    policy->text = readable ? arena_dup(&policy->arena, text) : text;
    if (policy->text.at == NULL)
        return FULL;
    if (readable)
        policy->hash = hash_sha256(text);
    arena_init(&parsing.scratch, YAML_MEMORY_MAX);
    enum status status = read_document(&parsing);
    arena_release(&parsing.scratch);
    return status;
}

enum status policy_parse(struct bytes text, struct policy **ret_policy, struct yaml_problems *problems)
{
    struct policy *policy = calloc(1, sizeof *policy);
    problems->count = 0;
    if (policy == NULL)
        return FULL;
    atomic_init(&policy->uses, 1);
    arena_init(&policy->arena, POLICY_MEMORY_MAX);
    enum status status = parse_into(policy, text.at != NULL ? text : BYTES(""), problems);
    if (status != OK) {
        policy_free(policy);
        return status;
    }
    *ret_policy = policy;
    return OK;
}

void policy_use(struct policy *policy)
{
    atomic_fetch_add(&policy->uses, 1);
}

void policy_free(struct policy *policy)
{
    if (policy == NULL || atomic_fetch_sub(&policy->uses, 1) > 1)
        return;
    for (size_t i = 0; i < policy->workflow_count; i++)
        if (policy->workflows[i].key != policy->defaults.key)
            key_template_free(policy->workflows[i].key);
    key_template_free(policy->defaults.key);
    for (size_t i = 0; i < policy->destination_count; i++)
        key_template_free(policy->destinations[i].key);
    arena_release(&policy->arena);
    free(policy);
}

static int name_against_rules(const void *name, const void *rules)
{
    return bytes_cmp(*(const struct bytes *)name, ((const struct workflow_rules *)rules)->name);
}

const struct workflow_rules *policy_workflow(const struct policy *policy, struct bytes name)
{
    if (policy->workflow_count == 0 || name.len == 0)
        return &policy->defaults;
    const struct workflow_rules *rules =
        bsearch(&name, policy->workflows, policy->workflow_count, sizeof *policy->workflows, name_against_rules);
    return rules != NULL ? rules : &policy->defaults;
}

static int name_against_destination(const void *name, const void *destination)
{
    return bytes_cmp(*(const struct bytes *)name, ((const struct destination *)destination)->name);
}

const struct destination *policy_destination(const struct policy *policy, struct bytes name)
{
    if (policy->destination_count == 0 || name.len == 0)
        return NULL;
    return bsearch(&name, policy->destinations, policy->destination_count, sizeof *policy->destinations,
                   name_against_destination);
}

static int name_against_source(const void *name, const void *source)
{
    return bytes_cmp(*(const struct bytes *)name, ((const struct source *)source)->name);
}

const struct source *policy_source(const struct policy *policy, struct bytes name)
{
    if (policy->source_count == 0 || name.len == 0)
        return NULL;
    return bsearch(&name, policy->sources, policy->source_count, sizeof *policy->sources, name_against_source);
}

static int name_against_server(const void *name, const void *server)
{
    return bytes_cmp(*(const struct bytes *)name, ((const struct mcp_server_rules *)server)->name);
}

const struct mcp_server_rules *policy_mcp(const struct policy *policy, struct bytes name)
{
    if (policy->mcp_count == 0 || name.len == 0)
        return NULL;
    return bsearch(&name, policy->mcp, policy->mcp_count, sizeof *policy->mcp, name_against_server);
}
