#include "receive/source_read.h"

#include <stdio.h>

#include "base/json.h"
#include "base/when.h"
#include "mail/mailbox.h"
#include "receive/source_settings.h"

/* A source while it is read. */
struct work {
    const struct source_reading *reading;
    const struct yaml *name;
    struct source *source;
    struct preset preset;
    struct setting_value own[SOURCE_COUNT]; /* what the policy says */
    struct setting_value all[SOURCE_COUNT]; /* with what the table says */
};

static void refuse(struct work *work, const struct setting_value *at, const char *sentence)
{
    bool placed = at != NULL && at->line > 0;
    yaml_problem_add(work->reading->problems, placed ? at->line : work->name->line, placed ? at->column : work->name->column,
                     "%s", sentence);
}

/* ---- the preset ---- */

static const struct yaml *value_named(const struct yaml *map, const char *name)
{
    for (const struct yaml *at = map != NULL ? map->first : NULL; at != NULL; at = at->next->next)
        if (at->kind == YAML_TEXT && bytes_is(at->text, name))
            return at->next;
    return NULL;
}

static void refuse_preset(struct work *work, const struct yaml *at)
{
    const char *names[64];
    char list[200];
    size_t count = preset_count() < 64 ? preset_count() : 64, len = 0;
    for (size_t i = 0; i < count; i++) {
        struct bytes copy = arena_dup(work->reading->scratch, preset_name(i));
        names[i] = copy.at != NULL ? copy.at : "";
        if (len < sizeof list)
            len += (size_t)snprintf(list + len, sizeof list - len, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    const char *near = nearest_name(at->text, names, count);
    struct bytes shown = yaml_clip(at->text);
    if (near != NULL)
        yaml_problem_add(work->reading->problems, at->line, at->column, "there is no preset '%.*s'; did you mean '%s'?",
                         BYTES_ARG(shown), near);
    else
        yaml_problem_add(work->reading->problems, at->line, at->column,
                         "there is no preset '%.*s'; write preset: json or form, or one of %s", BYTES_ARG(shown), list);
}

/* NOTHING when there is no such preset, which is a problem then. */
static enum status find_preset(struct work *work, const struct yaml *settings)
{
    const struct yaml *given = value_named(settings, "preset"), *at = given != NULL ? given : work->name;
    struct yaml_problems problems = {0};
    struct source_reading reading = *work->reading;
    struct bytes text = at->kind == YAML_TEXT ? preset_text(at->text) : BYTES_NONE;
    if (text.at == NULL) {
        if (at->kind == YAML_TEXT)
            refuse_preset(work, at);
        else
            yaml_problem_add(work->reading->problems, at->line, at->column, "preset wants text such as typeform");
        return NOTHING;
    }
    reading.problems = &problems;
    enum status status = preset_read(&reading, text, &work->preset);
    ASSERT(status != INVALID); /* a test reads every file */
    TRY(status);
    work->source->preset = arena_dup(reading.arena, at->text);
    return work->source->preset.at != NULL ? OK : FULL;
}

/* ---- values ---- */

#define MAIL_BODY_DEFAULT (26 << 20) /* people attach things; what SMTP takes, with its trace */

static void take_values(struct work *work)
{
    struct source *source = work->source;
    const struct setting_value *at = work->all;
    source->title = at[SOURCE_TITLE].given ? at[SOURCE_TITLE].text : work->preset.title;
    source->reads = at[SOURCE_READS].given ? (enum source_reads)at[SOURCE_READS].number : work->preset.reads;
    source->region = at[SOURCE_REGION].text;
    source->url = at[SOURCE_URL].text;
    source->retry_us = work->preset.retry_us;
    source->window_us = 2 * source->retry_us > WHEN_DAY ? 2 * source->retry_us : WHEN_DAY;
    if (at[SOURCE_WINDOW].given)
        source->window_us = at[SOURCE_WINDOW].number;
    source->across_us = at[SOURCE_ACROSS].number;
    source->keep_us = at[SOURCE_KEEP].number;
    source->forward = at[SOURCE_FORWARD].text;
    source->path = at[SOURCE_PATH].given ? at[SOURCE_PATH].text : BYTES("/");
    source->as = (enum source_as)at[SOURCE_AS].number;
    source->shadow = at[SOURCE_MODE].number != 0;
    source->owner = at[SOURCE_OWNER].text;
    source->due_us = at[SOURCE_DUE].number;
    source->handshakes = work->preset.handshakes;
    source->handshake_count = work->preset.handshake_count;
    source->reply = work->preset.reply;
    source->reply_type = work->preset.reply_type;
    source->sample = work->preset.sample;
    bool good = parse_size(at[SOURCE_BODY_LIMIT].text, &source->body_max) &&
                parse_rate(at[SOURCE_LOOP].text, &source->loop_count, &source->loop_us);
    ASSERT(good);
    if (source->reads == READS_MAIL && !work->own[SOURCE_BODY_LIMIT].given)
        source->body_max = MAIL_BODY_DEFAULT;
    if (work->own[SOURCE_PATH].given && !at[SOURCE_FORWARD].given && !at[SOURCE_FORWARD].refused)
        refuse(work, &work->own[SOURCE_PATH], "path is where events are forwarded to; add forward: DESTINATION");
}

static void take_addresses(struct work *work)
{
    const struct setting_value *at = &work->all[SOURCE_ADDRESSES];
    for (size_t i = 0; i < at->list_count; i++)
        if (!mailbox_pattern_is_valid(at->list[i]))
            refuse(work, at, "an address is written name@example.com, *@example.com or name@*");
    work->source->addresses = at->list;
    work->source->address_count = at->list_count;
}

/* ---- secrets ---- */

static void add_secret(struct work *work, const struct setting_value *at, struct bytes text)
{
    struct source *source = work->source;
    struct why why;
    if (source->secret_count == SOURCE_SECRETS_MAX)
        refuse(work, at, "there are too many secrets; at most 7 are read");
    else if (secret_reference_parse(text, &source->secrets[source->secret_count], &why) != OK)
        refuse(work, at, why.text);
    else
        source->secret_count++;
}

static enum status take_secrets(struct work *work)
{
    const struct setting_value *one = &work->own[SOURCE_SECRET], *many = &work->own[SOURCE_SECRETS],
                               *token = &work->own[SOURCE_VERIFY_TOKEN];
    struct source *source = work->source;
    source->secrets = arena_zalloc(work->reading->arena, SOURCE_SECRETS_MAX, sizeof *source->secrets);
    if (source->secrets == NULL)
        return FULL;
    if (one->given && many->given)
        refuse(work, many, "secret and secrets say the same; keep one of them");
    if (one->given)
        add_secret(work, one, one->text);
    for (size_t i = 0; i < many->list_count; i++)
        add_secret(work, many, many->list[i]);
    source->signing_count = source->secret_count;
    source->token_index = -1;
    if (!token->given)
        return OK;
    bool asked = false;
    for (size_t i = 0; i < source->handshake_count; i++)
        asked |= source->handshakes[i].token.at != NULL;
    if (!asked)
        refuse(work, token, "this preset's handshake has no verify token; remove it");
    add_secret(work, token, token->text);
    if (source->secret_count > source->signing_count)
        source->token_index = (int64_t)source->signing_count;
    return OK;
}

/* ---- verification ---- */

static void add_rule(struct work *work, const struct verify_rule *rule)
{
    if (work->source->rule_count < SOURCE_RULES_MAX)
        work->source->rules[work->source->rule_count++] = *rule;
}

static void refuse_rule(struct work *work, const struct setting_value *at, struct bytes name)
{
    const char *names[SOURCE_RULES_MAX + 1];
    char list[160] = "";
    size_t count = 0, len = 0;
    for (; count < work->preset.rule_count; count++)
        names[count] = work->preset.rules[count].rule.name.at;
    names[count++] = "none";
    for (size_t i = 0; i < count && len < sizeof list; i++)
        len += (size_t)snprintf(list + len, sizeof list - len, "%s%s", i == 0 ? "" : i + 1 == count ? " or " : ", ", names[i]);
    struct bytes shown = yaml_clip(name);
    yaml_problem_add(work->reading->problems, at->line, at->column, "verify is %s here, not '%.*s'", list, BYTES_ARG(shown));
}

static void take_named_rules(struct work *work, const struct setting_value *names)
{
    for (size_t i = 0; i < names->list_count; i++) {
        size_t r = 0;
        while (r < work->preset.rule_count && !bytes_eq(work->preset.rules[r].rule.name, names->list[i]))
            r++;
        if (r < work->preset.rule_count)
            add_rule(work, &work->preset.rules[r].rule);
        else
            refuse_rule(work, names, names->list[i]);
    }
}

static enum status take_own_rule(struct work *work, const struct yaml *map)
{
    struct rule_reader reader = {work->reading, FACT_POLICY, NULL};
    struct preset_rule own;
    bool good;
    TRY(read_verify(&reader, map, &own, &good));
    if (good)
        add_rule(work, &own.rule);
    return OK;
}

static void check_secret(struct work *work)
{
    const struct source *source = work->source;
    bool given = work->own[SOURCE_SECRET].given || work->own[SOURCE_SECRETS].given,
         refused = work->own[SOURCE_SECRET].refused || work->own[SOURCE_SECRETS].refused;
    if (source->rule_count > 0 && !given && !refused)
        refuse(work, NULL, "how are its deliveries verified? add secret: env:NAME, or say verify: none");
    if (source->verify_none && given)
        refuse(work, &work->own[SOURCE_VERIFY], "verify: none needs no secret; remove one of the two");
}

static enum status take_rules(struct work *work)
{
    const struct setting_value *names = &work->own[SOURCE_VERIFY], *own = &work->own[SOURCE_SIGNATURE];
    struct source *source = work->source;
    bool none = names->list_count == 1 && bytes_is(names->list[0], "none");
    source->rules = arena_zalloc(work->reading->arena, SOURCE_RULES_MAX, sizeof *source->rules);
    if (source->rules == NULL)
        return FULL;
    if (names->given && own->given)
        refuse(work, names, "signature is a way of your own; remove verify, or signature");
    source->verify_none = none;
    if (own->group != NULL)
        TRY(take_own_rule(work, own->group));
    else if (names->given && !none)
        take_named_rules(work, names);
    for (size_t i = 0; !names->given && !names->refused && !own->given && !own->refused && i < work->preset.rule_count; i++)
        if (!work->preset.rules[i].optional)
            add_rule(work, &work->preset.rules[i].rule);
    if (source->rule_count == 0 && !none && !names->given && !names->refused && !own->given && !own->refused)
        refuse(work, NULL,
               "how are its deliveries verified? name a way such as verify: token, describe one under signature:, or say "
               "verify: none");
    check_secret(work);
    return OK;
}

/* ---- events ---- */

/* The policy's own come first. */
static enum status take_events(struct work *work)
{
    struct rule_reader reader = {work->reading, FACT_POLICY, NULL};
    struct source *source = work->source;
    struct event_map *own;
    size_t count;
    TRY(read_events(&reader, work->own[SOURCE_EVENTS].group, &own, &count));
    source->maps = arena_zalloc(work->reading->arena, count + work->preset.map_count + 1, sizeof *source->maps);
    if (source->maps == NULL)
        return FULL;
    for (size_t i = 0; i < count; i++)
        source->maps[source->map_count++] = own[i];
    source->own_map_count = count;
    for (size_t i = 0; i < work->preset.map_count; i++)
        source->maps[source->map_count++] = work->preset.maps[i];
    return OK;
}

/* ---- all of it ---- */

enum status source_read(const struct source_reading *reading, const struct yaml *name, const struct yaml *settings,
                        struct source *ret)
{
    struct work *work = arena_zalloc(reading->scratch, 1, sizeof *work);
    struct setting_value built_in[SOURCE_COUNT];
    *ret = (struct source){.line = name->line, .token_index = -1};
    if (work == NULL)
        return FULL;
    work->reading = reading;
    work->name = name;
    work->source = ret;
    ret->name = arena_dup(reading->arena, name->text);
    if (ret->name.at == NULL)
        return FULL;
    enum status status = find_preset(work, settings);
    if (status != OK)
        return status == NOTHING ? OK : status;
    TRY(settings_read(&source_table, settings, 1, reading->arena, work->own, reading->problems));
    TRY(settings_built_in(&source_table, reading->arena, built_in));
    memcpy(work->all, work->own, sizeof work->all);
    settings_over(SOURCE_COUNT, work->all, built_in);
    take_values(work);
    take_addresses(work);
    TRY(take_secrets(work));
    TRY(take_rules(work));
    return take_events(work);
}

bool source_warning(const struct source *source, struct why *ret)
{
    char window[32], retry[32];
    if (source->window_us >= 2 * source->retry_us)
        return false;
    window[when_format_duration(source->window_us, window)] = '\0';
    retry[when_format_duration(source->retry_us, retry)] = '\0';
    why_set(ret, OK,
            "source '%.*s': window %s is shorter than twice the %s for which %.*s tries again; a late repeat may pass for new",
            BYTES_ARG(source->name), window, retry, BYTES_ARG(source->title));
    return true;
}
