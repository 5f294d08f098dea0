/*
 * Policies. A refused document names places that exist; an accepted one keeps every setting within the bounds of the table, means
 * the same when it is read again, and means the same with a comment behind it.
 */
#include "fuzz.h"

#include "policy/policy.h"

enum { SIZE_MAX_INPUT = 16 * 1024 };

static void check_problems(struct bytes text, const struct yaml_problems *problems)
{
    size_t lines = 1, line = 1, column = 1;
    for (size_t i = 0; i < text.len; i++)
        lines += text.at[i] == '\n' || text.at[i] == '\r' ||
                 (unsigned char)text.at[i] >= 0x80; /* U+0085, U+2028 and U+2029 end lines too */
    ASSERT(problems->count >= 1);
    ASSERT(problems->count <= YAML_PROBLEMS_MAX);
    for (size_t i = 0; i < problems->count; i++) {
        const struct yaml_problem *problem = &problems->at[i];
        ASSERT(problem->line >= line);
        ASSERT(problem->line <= lines + 1);
        ASSERT(problem->column >= (problem->line == line ? column : 1));
        ASSERT(memchr(problem->text, '\0', sizeof problem->text) != NULL);
        ASSERT(problem->text[0] != '\0');
        ASSERT(bytes_is_utf8(bytes_of(problem->text)));
        line = problem->line;
        column = problem->column;
    }
}

static void check_bounds(const char *name, int64_t value)
{
    for (size_t i = 0; i < policy_setting_count; i++) {
        const struct setting *setting = &policy_settings[i];
        if (strcmp(setting->name, name) != 0)
            continue;
        ASSERT(value >= setting->min);
        ASSERT(value <= setting->max);
        return;
    }
    assert_failed("the table has this setting", name, 0);
}

static void check_rules(const struct workflow_rules *rules)
{
    check_bounds("lease", rules->lease_us);
    check_bounds("keep", rules->keep_us);
    check_bounds("tombstone", rules->tombstone_us);
    check_bounds("attempts", rules->attempts_max);
    if (rules->capability == CAPABILITY_IDEMPOTENT)
        check_bounds("window", rules->window_us);
    ASSERT(rules->capability <= CAPABILITY_QUERY);
    ASSERT(rules->on_unknown <= ON_UNKNOWN_SKIP);
    ASSERT(rules->mode <= MODE_SHADOW);
    ASSERT((rules->key_text.at != NULL) == (rules->key != NULL));
    ASSERT(rules->ignore_count <= SETTING_LIST_MAX);
}

static void check_same_rules(const struct workflow_rules *a, const struct workflow_rules *b)
{
    ASSERT(bytes_eq(a->name, b->name));
    ASSERT(bytes_eq(a->key_text, b->key_text));
    ASSERT((a->key == NULL) == (b->key == NULL));
    ASSERT(a->ignore_count == b->ignore_count);
    for (size_t i = 0; i < a->ignore_count; i++)
        ASSERT(bytes_eq(a->ignore[i], b->ignore[i]));
    ASSERT(a->lease_us == b->lease_us);
    ASSERT(a->keep_us == b->keep_us);
    ASSERT(a->tombstone_us == b->tombstone_us);
    ASSERT(a->window_us == b->window_us);
    ASSERT(a->capability == b->capability);
    ASSERT(a->on_unknown == b->on_unknown);
    ASSERT(a->two_phase == b->two_phase);
    ASSERT(a->attempts_max == b->attempts_max);
    ASSERT(a->mode == b->mode);
}

static void check_same_destination(const struct destination *a, const struct destination *b)
{
    ASSERT(bytes_eq(a->name, b->name));
    ASSERT(bytes_eq(a->provider, b->provider));
    ASSERT(bytes_eq(a->url, b->url));
    ASSERT(bytes_eq(a->secret.text, b->secret.text));
    ASSERT(bytes_eq(a->key_text, b->key_text));
    ASSERT(a->kind == b->kind);
    ASSERT(a->call_count == b->call_count);
    for (size_t i = 0; i < a->call_count; i++) {
        ASSERT(bytes_eq(a->calls[i].name, b->calls[i].name));
        ASSERT(a->calls[i].capability == b->calls[i].capability);
        ASSERT(a->calls[i].window_us == b->calls[i].window_us);
        ASSERT(a->calls[i].reads == b->calls[i].reads);
    }
}

static void check_destination(const struct policy *policy, size_t i)
{
    const struct destination *destination = &policy->destinations[i];
    ASSERT(policy_destination(policy, destination->name) == destination);
    ASSERT(i == 0 || bytes_cmp(policy->destinations[i - 1].name, destination->name) < 0);
    ASSERT(destination->call_count > 0);
    ASSERT(destination->kind != DESTINATION_HTTP || destination->url.len > 0);
    ASSERT(destination->kind != DESTINATION_COMMAND || destination->argv_count > 0);
    ASSERT((destination->key_text.at != NULL) == (destination->key != NULL));
    for (size_t c = 0; c < destination->call_count; c++) {
        const struct call_rules *rules = &destination->calls[c];
        ASSERT(rules->capability != CAPABILITY_IDEMPOTENT || (rules->key.place != CARRIER_NOWHERE && rules->window_us > 0));
        ASSERT(rules->capability != CAPABILITY_QUERY || rules->probe_count > 0);
    }
}

static void check_same(const struct policy *a, const struct policy *b)
{
    check_same_rules(&a->defaults, &b->defaults);
    ASSERT(a->workflow_count == b->workflow_count);
    for (size_t i = 0; i < a->workflow_count; i++)
        check_same_rules(&a->workflows[i], &b->workflows[i]);
    ASSERT(a->destination_count == b->destination_count);
    for (size_t i = 0; i < a->destination_count; i++)
        check_same_destination(&a->destinations[i], &b->destinations[i]);
    ASSERT(bytes_eq(a->owner, b->owner));
    ASSERT(a->due_us == b->due_us);
}

static void check_policy(const struct policy *policy, struct bytes text)
{
    struct hash hash = hash_sha256(text);
    ASSERT(bytes_eq(policy->text, text));
    ASSERT(bytes_eq(hash_bytes(&policy->hash), hash_bytes(&hash)));
    check_rules(&policy->defaults);
    ASSERT(policy_workflow(policy, BYTES("")) == &policy->defaults);
    for (size_t i = 0; i < policy->destination_count; i++)
        check_destination(policy, i);
    for (size_t i = 0; i < policy->workflow_count; i++) {
        const struct workflow_rules *rules = &policy->workflows[i];
        check_rules(rules);
        ASSERT(rules->name.len >= 1);
        ASSERT(rules->name.len <= POLICY_NAME_MAX);
        ASSERT(policy_workflow(policy, rules->name) == rules);
        ASSERT(i == 0 || bytes_cmp(policy->workflows[i - 1].name, rules->name) < 0);
    }
}

static void check_again(const struct policy *policy, struct bytes text)
{
    struct policy *again = NULL;
    static struct yaml_problems problems;
    ASSERT(policy_parse(text, &again, &problems) == OK);
    ASSERT(problems.count == 0);
    check_same(policy, again);
    policy_free(again);
}

static void check_with_comment(const struct policy *policy)
{
    static const char comment[] = "\n# nothing more\n";
    /* At the end of a block text the line break would belong to the text. */
    if (memchr(policy->text.at, '|', policy->text.len) != NULL || memchr(policy->text.at, '>', policy->text.len) != NULL)
        return;
    char *text = malloc(policy->text.len + sizeof comment);
    ASSERT(text != NULL);
    memcpy(text, policy->text.at, policy->text.len);
    memcpy(text + policy->text.len, comment, sizeof comment);
    check_again(policy, (struct bytes){text, policy->text.len + sizeof comment - 1});
    free(text);
}

FUZZ_TARGET(policy)(const uint8_t *data, size_t size)
{
    struct bytes text = fuzz_bytes(data, size < SIZE_MAX_INPUT ? size : SIZE_MAX_INPUT);
    static struct yaml_problems problems;
    struct policy *policy = NULL;
    hash_setup();
    enum status status = policy_parse(text, &policy, &problems);
    ASSERT(status == OK || status == INVALID);
    ASSERT((status == OK) == (policy != NULL));
    if (status == INVALID) {
        check_problems(text, &problems);
        return 0;
    }
    ASSERT(problems.count == 0);
    check_policy(policy, text);
    check_again(policy, text);
    check_with_comment(policy);
    policy_free(policy);
    return 0;
}
