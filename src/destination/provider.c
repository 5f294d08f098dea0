/* Provider files: facts with their evidence, and the calls that they make up. */
#include <stdio.h>

#include "base/json.h"
#include "destination/destination_settings.h"
#include "embedded.h"

/* The keys that semel makes have this many characters. */
enum { KEY_CHARACTERS = DOWNSTREAM_KEY_SIZE, PAIRS_MAX = SETTING_PAIRS_MAX };

static void refuse(const struct call_source *from, const struct yaml *at, const char *sentence)
{
    yaml_problem_add(from->source->problems, at->line, at->column, "%s", sentence);
}

static void refuse_value(const struct call_source *from, const struct setting_value *at, const char *sentence)
{
    yaml_problem_add(from->source->problems, at->line, at->column, "%s", sentence);
}

/* ---- facts ---- */

static enum status read_fact(const struct call_source *from, const struct setting_table *table, const char *what,
                             const struct yaml *map, struct setting_value *ret_values, bool *ret_verified)
{
    struct fact_reader reader = {from->place, from->source->arena, from->source->problems,
                                 from->provider != NULL ? &from->provider->facts : NULL};
    return fact_read(&reader, table, what, map, ret_values, ret_verified);
}

static bool want(const struct call_source *from, const struct yaml *map, const struct setting_value *value, const char *sentence)
{
    if (!value->given && !value->refused)
        refuse(from, map, sentence);
    return value->given;
}

/* ---- small mappings of names and texts ---- */

static enum status read_pairs(const struct call_source *from, const struct setting_value *value, struct pair **ret_pairs,
                              size_t *ret_count)
{
    return settings_pairs(value, from->source->arena, from->source->problems, ret_pairs, ret_count);
}

/* A constant as JSON: true, false, null and numbers when they stand without quotes, else a string. */
static enum status constant_json(struct arena *arena, const struct yaml *node, struct bytes *ret)
{
    struct buf buf;
    struct json json;
    struct why why;
    if (node->plain && json_parse(node->text, NULL, arena, &json, &why) == OK && json.type != JSON_OBJECT &&
        json.type != JSON_ARRAY) {
        *ret = arena_dup(arena, node->text);
        return ret->at != NULL ? OK : FULL;
    }
    buf_init(&buf, 16 << 10);
    struct json_out out = json_out_to(&buf);
    json_text(&out, node->text);
    *ret = buf.failed ? BYTES_NONE : arena_dup(arena, buf_bytes(&buf));
    buf_release(&buf);
    return ret->at != NULL ? OK : FULL;
}

static enum status add_extras(const struct call_source *from, const struct setting_value *value, bool always,
                              struct carrier *carrier)
{
    for (const struct yaml *name = value->group != NULL ? value->group->first : NULL; name != NULL; name = name->next->next) {
        if (name->kind != YAML_TEXT || name->text.len == 0 || name->next->kind != YAML_TEXT ||
            carrier->extra_count == PAIRS_MAX) {
            refuse(from, name, "a path and its constant are wanted here, such as enforce_nonce: true, at most 16");
            continue;
        }
        struct carrier_extra *extra = &carrier->extras[carrier->extra_count++];
        extra->always = always;
        extra->path = arena_dup(from->source->arena, name->text);
        if (extra->path.at == NULL)
            return FULL;
        TRY(constant_json(from->source->arena, name->next, &extra->json));
    }
    return OK;
}

/* ---- keys and markers ---- */

static void check_codec(const struct call_source *from, const struct yaml *map, const struct setting_value *values)
{
    static const size_t sizes[] = {[CODEC_PLAIN] = KEY_CHARACTERS, [CODEC_UUID] = 36};
    const struct setting_value *codec = &values[CARRIER_CODEC], *size = &values[CARRIER_SIZE];
    if (codec->refused || !size->given)
        return;
    enum codec_kind kind = codec->given ? (enum codec_kind)codec->number : CODEC_PLAIN;
    if (kind <= CODEC_UUID && (size_t)size->number < sizes[kind])
        yaml_problem_add(from->source->problems, size->line, size->column,
                         "a key has 36 characters as it is; for a shorter one add codec: base32");
    if (kind == CODEC_MESSAGE_ID)
        refuse(from, map, "a message id has no size; remove it");
}

static enum status fill_carrier(const struct call_source *from, const struct setting_value *values, struct carrier *ret)
{
    *ret = (struct carrier){
        .place = (enum carrier_place)values[CARRIER_IN].number,
        .name = values[CARRIER_NAME].text,
        .codec = {(enum codec_kind)values[CARRIER_CODEC].number, (size_t)values[CARRIER_SIZE].number, values[CARRIER_CHARS].text},
        .extras = arena_zalloc(from->source->arena, PAIRS_MAX, sizeof *ret->extras),
    };
    if (ret->extras == NULL)
        return FULL;
    TRY(add_extras(from, &values[CARRIER_WITH], true, ret));
    return add_extras(from, &values[CARRIER_UNLESS_GIVEN], false, ret);
}

/* What is not verified is checked, but stays CARRIER_NOWHERE. */
static enum status read_carrier(const struct call_source *from, const char *what, const struct yaml *map, struct carrier *ret)
{
    struct setting_value values[CARRIER_COUNT];
    struct carrier carrier;
    bool verified;
    *ret = (struct carrier){0};
    TRY(read_fact(from, &carrier_table, what, map, values, &verified));
    if (!want(from, map, &values[CARRIER_IN], "this wants a place, such as in: header"))
        return OK;
    bool planted = values[CARRIER_IN].number != CARRIER_NOWHERE && values[CARRIER_IN].number != CARRIER_NATURAL;
    if (planted && !want(from, map, &values[CARRIER_NAME], "this wants a name, such as name: Idempotency-Key"))
        return OK;
    if (!planted && values[CARRIER_NAME].given)
        refuse_value(from, &values[CARRIER_NAME], "nothing is planted there; remove the name");
    check_codec(from, map, values);
    TRY(fill_carrier(from, values, &carrier));
    if (verified)
        *ret = carrier;
    return OK;
}

static enum status read_markers(const struct call_source *from, const struct yaml *list, struct call_rules *rules)
{
    size_t count = list != NULL ? list->count : 0;
    if (count > PAIRS_MAX) {
        refuse(from, list, "at most 16 markers are read");
        return OK;
    }
    rules->markers = arena_zalloc(from->source->arena, count + 1, sizeof *rules->markers);
    if (rules->markers == NULL)
        return FULL;
    for (const struct yaml *item = count > 0 ? list->first : NULL; item != NULL; item = item->next) {
        struct carrier carrier;
        if (item->kind != YAML_MAP) {
            refuse(from, item, "a marker is settings such as {in: json, name: metadata.semel_key}");
            continue;
        }
        TRY(read_carrier(from, "marker", item, &carrier));
        if (carrier.place != CARRIER_NOWHERE && carrier.place != CARRIER_NATURAL)
            rules->markers[rules->marker_count++] = carrier;
    }
    return OK;
}

/* ---- outcomes ---- */

static enum status read_outcome(const struct call_source *from, const struct yaml *map, struct call_rules *rules)
{
    struct setting_value values[RULE_COUNT];
    bool verified;
    TRY(read_fact(from, &outcome_table, "outcome", map, values, &verified));
    if (!want(from, map, &values[RULE_STATUS], "a rule wants a status, such as status: 5xx") ||
        !want(from, map, &values[RULE_OUTCOME], "a rule wants an outcome: done, refused, retry or unknown"))
        return OK;
    if (values[RULE_HEADER_IS].given && !values[RULE_HEADER].given && !values[RULE_HEADER].refused)
        refuse_value(from, &values[RULE_HEADER_IS], "which header? add header: NAME");
    if (values[RULE_VALUES].given && !values[RULE_FIELD].given && !values[RULE_FIELD].refused)
        refuse_value(from, &values[RULE_VALUES], "of which field? add field: PATH");
    struct outcome_rule rule = {
        .header = values[RULE_HEADER].text,
        .header_value = values[RULE_HEADER_IS].text,
        .field = values[RULE_FIELD].text,
        .values = values[RULE_VALUES].list,
        .value_count = values[RULE_VALUES].list_count,
        .outcome = (enum outcome)values[RULE_OUTCOME].number,
        .because = values[RULE_BECAUSE].text,
    };
    bool good = parse_status_range(values[RULE_STATUS].text, &rule.status_min, &rule.status_max);
    ASSERT(good);
    /* "unknown" promises nothing, so that nobody needs to have verified it. */
    if (verified || rule.outcome == OUTCOME_UNKNOWN)
        rules->outcomes[rules->outcome_count++] = rule;
    return OK;
}

static enum status read_outcomes(const struct call_source *from, const struct yaml *list, struct call_rules *rules)
{
    size_t count = list != NULL ? list->count : 0;
    if (count > 64) {
        refuse(from, list, "at most 64 outcomes are read");
        return OK;
    }
    rules->outcomes = arena_zalloc(from->source->arena, count + 1, sizeof *rules->outcomes);
    if (rules->outcomes == NULL)
        return FULL;
    for (const struct yaml *item = count > 0 ? list->first : NULL; item != NULL; item = item->next) {
        if (item->kind == YAML_MAP)
            TRY(read_outcome(from, item, rules));
        else
            refuse(from, item, "an outcome is settings such as {status: 503, outcome: retry}");
    }
    return OK;
}

/* ---- probes ---- */

static bool is_placeholder(struct bytes name)
{
    static const char *const fixed[] = {"key", "since_s", "since_day"};
    uint64_t n;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (bytes_is(name, fixed[i]))
            return true;
    if (bytes_starts(name, BYTES("path.")))
        return bytes_to_u64(bytes_from(name, 5), &n) && n >= 1 && n <= 32;
    struct bytes option = bytes_from(name, 5), path = bytes_cut(&option, ':');
    return bytes_starts(name, BYTES("sent.")) && path.len > 0 && (option.len == 0 || bytes_is(option, "address"));
}

/* "/a/{path.1}?x={key}": every brace is a placeholder that exists. */
static bool is_template(struct bytes text)
{
    while (text.len > 0) {
        struct bytes before = bytes_cut(&text, '{');
        if (memchr(before.at, '}', before.len) != NULL)
            return false;
        if (text.at == before.at + before.len)
            return true;
        const char *close = text.len > 0 ? memchr(text.at, '}', text.len) : NULL;
        if (close == NULL || !is_placeholder((struct bytes){text.at, (size_t)(close - text.at)}))
            return false;
        text = bytes_from(text, (size_t)(close - text.at) + 1);
    }
    return true;
}

static bool is_marked(const struct probe_recipe *recipe)
{
    for (size_t i = 0; i < recipe->match_count; i++)
        if (bytes_is(recipe->match[i].value, "{key}"))
            return true;
    return false;
}

static void read_proves(const struct call_source *from, const struct setting_value *proves, struct probe_recipe *recipe)
{
    for (size_t i = 0; i < proves->list_count; i++) {
        if (bytes_is(proves->list[i], "found"))
            recipe->found_is_sure = true;
        else if (bytes_is(proves->list[i], "absent"))
            recipe->absent_is_sure = true;
        else
            refuse_value(from, proves, "a probe proves found, absent or both");
    }
    if (recipe->found_is_sure && !is_marked(recipe))
        refuse_value(from, proves, "what merely looks alike is not ours: to prove found, match a path with \"{key}\"");
}

static void check_templates(const struct call_source *from, const struct yaml *map, const struct probe_recipe *recipe)
{
    static const char sentence[] =
        "placeholders are {key}, {since_s}, {since_day}, {path.1}, {sent.field} and {sent.field:address}; check the braces";
    bool good = is_template(recipe->path);
    for (size_t i = 0; i < recipe->match_count; i++)
        good = good && is_template(recipe->match[i].value);
    if (!good)
        refuse(from, map, sentence);
    else if (recipe->path.at[0] != '/')
        refuse(from, map, "the path of a probe begins with '/'");
}

static enum status read_probe(const struct call_source *from, const struct yaml *map, struct call_rules *rules)
{
    struct setting_value values[PROBE_COUNT];
    bool verified;
    TRY(read_fact(from, &probe_table, "probe", map, values, &verified));
    if (!want(from, map, &values[PROBE_METHOD], "a probe wants a method, such as method: GET") ||
        !want(from, map, &values[PROBE_PATH], "a probe wants a path, such as path: /messages") ||
        !want(from, map, &values[PROBE_PROVES], "what does it prove? add proves: [found, absent]"))
        return OK;
    struct probe_recipe recipe = {
        .method = values[PROBE_METHOD].text,
        .path = values[PROBE_PATH].text,
        .items = values[PROBE_ITEMS].text,
        .total = values[PROBE_TOTAL].text,
        .more = values[PROBE_MORE].text,
        .time = values[PROBE_TIME].text,
        .show = values[PROBE_SHOW].list,
        .show_count = values[PROBE_SHOW].list_count,
        .absent_status = values[PROBE_ABSENT_STATUS].number,
        .settle_us = values[PROBE_SETTLE].given ? values[PROBE_SETTLE].number : INT64_C(60000000),
        .tries = values[PROBE_TRIES].given ? values[PROBE_TRIES].number : 3,
    };
    TRY(read_pairs(from, &values[PROBE_REQUIRES], &recipe.requires, &recipe.require_count));
    TRY(read_pairs(from, &values[PROBE_MATCH], &recipe.match, &recipe.match_count));
    read_proves(from, &values[PROBE_PROVES], &recipe);
    check_templates(from, map, &recipe);
    if (verified)
        rules->probes[rules->probe_count++] = recipe;
    return OK;
}

static enum status read_probes(const struct call_source *from, const struct yaml *list, struct call_rules *rules)
{
    size_t count = list != NULL ? list->count : 0;
    if (count > 8) {
        refuse(from, list, "at most 8 probes are read");
        return OK;
    }
    rules->probes = arena_zalloc(from->source->arena, count + 1, sizeof *rules->probes);
    if (rules->probes == NULL)
        return FULL;
    for (const struct yaml *item = count > 0 ? list->first : NULL; item != NULL; item = item->next) {
        if (item->kind == YAML_MAP)
            TRY(read_probe(from, item, rules));
        else
            refuse(from, item, "a probe is settings such as {method: GET, path: /messages, proves: [found]}");
    }
    return OK;
}

/* ---- calls ---- */

static enum status read_window(const struct call_source *from, const struct setting_value *values, int64_t *ret_us)
{
    struct setting_value fact[VALUE_COUNT];
    bool verified;
    *ret_us = 0;
    if (values[CALL_WINDOW].given)
        (void)parse_window(values[CALL_WINDOW].text, ret_us);
    if (!values[CALL_WINDOW_FACT].given || values[CALL_WINDOW_FACT].group == NULL)
        return OK;
    TRY(read_fact(from, &window_table, "window", values[CALL_WINDOW_FACT].group, fact, &verified));
    if (want(from, values[CALL_WINDOW_FACT].group, &fact[VALUE_IS], "this wants a value, such as is: 24h") && verified)
        (void)parse_window(fact[VALUE_IS].text, ret_us);
    return OK;
}

/* ---- model calls ---- */

static enum status read_memo_end(const struct call_source *from, const struct yaml *map, struct memo_rules *memo)
{
    struct setting_value values[MEMO_END_COUNT];
    TRY(settings_read(&memo_end_table, map, from->place, from->source->arena, values, from->source->problems));
    if (values[MEMO_END_DATA].given == values[MEMO_END_FIELD].given)
        refuse(from, map, "what ends a stream is an event's data or a field of it; write {data: \"[DONE]\"} or {field: type}");
    if (values[MEMO_END_VALUES].given && !values[MEMO_END_FIELD].given)
        refuse_value(from, &values[MEMO_END_VALUES], "of which field? add field: PATH");
    memo->ends[memo->end_count++] = (struct memo_end){values[MEMO_END_DATA].text, values[MEMO_END_FIELD].text,
                                                      values[MEMO_END_VALUES].list, values[MEMO_END_VALUES].list_count};
    return OK;
}

static enum status read_memo_ends(const struct call_source *from, const struct yaml *list, struct memo_rules *memo)
{
    size_t count = list != NULL ? list->count : 0;
    if (count > PAIRS_MAX) {
        refuse(from, list, "at most 16 ends are read");
        return OK;
    }
    memo->ends = arena_zalloc(from->source->arena, count + 1, sizeof *memo->ends);
    if (memo->ends == NULL)
        return FULL;
    for (const struct yaml *item = count > 0 ? list->first : NULL; item != NULL; item = item->next) {
        if (item->kind == YAML_MAP)
            TRY(read_memo_end(from, item, memo));
        else
            refuse(from, item, "an end is settings such as {data: \"[DONE]\"}");
    }
    return OK;
}

/* What is not verified is checked, and the call is then no model call. */
static enum status read_memo(const struct call_source *from, const struct yaml *map, struct call_rules *rules)
{
    struct setting_value values[MEMO_COUNT];
    struct memo_rules *memo = arena_zalloc(from->source->arena, 1, sizeof *memo);
    bool verified;
    if (memo == NULL)
        return FULL;
    TRY(read_fact(from, &memo_table, "memo", map, values, &verified));
    if (from->kind != DESTINATION_HTTP || rules->reads)
        refuse(from, map, "memo is for calls over HTTP that do not merely read");
    memo->model = values[MEMO_MODEL].text;
    memo->input = values[MEMO_INPUT].list;
    memo->input_count = values[MEMO_INPUT].list_count;
    memo->output = values[MEMO_OUTPUT].list;
    memo->output_count = values[MEMO_OUTPUT].list_count;
    memo->vary = values[MEMO_VARY].list;
    memo->vary_count = values[MEMO_VARY].list_count;
    TRY(read_memo_ends(from, values[MEMO_ENDS].group, memo));
    if (verified)
        rules->memo = memo;
    return OK;
}

/* ---- calls ---- */

/* What may be relied on: the key together with how long it is remembered, or else the question afterwards. */
static void derive_capability(struct call_rules *rules)
{
    rules->capability = CAPABILITY_NONE;
    if (rules->key.place != CARRIER_NOWHERE && rules->window_us > 0)
        rules->capability = CAPABILITY_IDEMPOTENT;
    else if (rules->probe_count > 0)
        rules->capability = CAPABILITY_QUERY;
    if (rules->capability != CAPABILITY_IDEMPOTENT)
        rules->window_us = 0;
}

static void check_paths(const struct call_source *from, const struct setting_value *paths)
{
    for (size_t i = 0; i < paths->list_count; i++) {
        struct bytes path = paths->list[i];
        const char *deep = memmem(path.at, path.len, "**", 2);
        if (path.at[0] != '/' || memchr(path.at, '?', path.len) != NULL || (deep != NULL && deep + 2 != path.at + path.len))
            refuse_value(from, paths, "a path begins with '/', has no query, and '**' only at its end");
    }
}

static enum status read_call_facts(const struct call_source *from, const struct setting_value *values, struct call_rules *rules)
{
    if (values[CALL_KEY].group != NULL)
        TRY(read_carrier(from, "key", values[CALL_KEY].group, &rules->key));
    TRY(read_window(from, values, &rules->window_us));
    TRY(read_outcomes(from, values[CALL_OUTCOMES].group, rules));
    TRY(read_markers(from, values[CALL_MARKERS].group, rules));
    TRY(read_probes(from, values[CALL_PROBES].group, rules));
    derive_capability(rules);
    if (values[CALL_MEMO].given && values[CALL_MEMO].group == NULL)
        refuse_value(from, &values[CALL_MEMO], "memo wants settings such as {ends: [{data: \"[DONE]\"}]}");
    return values[CALL_MEMO].group != NULL ? read_memo(from, values[CALL_MEMO].group, rules) : OK;
}

static enum status read_call(const struct call_source *from, const struct yaml *map, struct call_rules *ret)
{
    struct setting_value values[CALL_COUNT];
    bool verified;
    TRY(read_fact(from, &call_table, "call", map, values, &verified));
    (void)want(from, map, &values[CALL_NAME], "a call wants a name, such as name: send");
    check_paths(from, &values[CALL_PATHS]);
    *ret = (struct call_rules){
        .name = values[CALL_NAME].text,
        .methods = values[CALL_METHODS].list,
        .method_count = values[CALL_METHODS].list_count,
        .paths = values[CALL_PATHS].list,
        .path_count = values[CALL_PATHS].list_count,
        .reads = verified && values[CALL_READS].number != 0,
        .replays_refusals = values[CALL_ON_4XX].given ? values[CALL_ON_4XX].number != 0 : from->replays_refusals,
        .kind = from->kind,
    };
    return read_call_facts(from, values, ret);
}

enum status read_calls(const struct call_source *from, const struct yaml *list, struct call_rules *calls, size_t *count)
{
    for (const struct yaml *item = list != NULL ? list->first : NULL; item != NULL; item = item->next) {
        if (item->kind != YAML_MAP) {
            refuse(from, item, "a call is settings such as {name: send, methods: [POST], paths: [/send]}");
            continue;
        }
        if (*count >= DESTINATION_CALLS_MAX) {
            refuse(from, item, "there are too many calls; at most 64 are read");
            return OK;
        }
        TRY(read_call(from, item, &calls[(*count)++]));
    }
    return OK;
}

/* ---- the file ---- */

static enum status read_url(const struct call_source *from, const struct yaml *map, struct provider *provider)
{
    struct setting_value values[VALUE_COUNT];
    bool verified;
    if (map == NULL)
        return OK;
    TRY(read_fact(from, &url_table, "url", map, values, &verified));
    if (want(from, map, &values[VALUE_IS], "this wants a value, such as is: https://example.com") && verified)
        provider->url = values[VALUE_IS].text;
    return OK;
}

/* A wrong way to show the secret ends in 401, so that this fact is used as it is. */
static enum status read_auth(const struct call_source *from, const struct yaml *map, struct provider *provider)
{
    struct setting_value values[AUTH_COUNT];
    bool verified;
    if (map == NULL)
        return OK;
    TRY(read_fact(from, &auth_table, "auth", map, values, &verified));
    if (!want(from, map, &values[AUTH_IS], "this wants a value, such as is: bearer"))
        return OK;
    provider->auth = (struct auth){(enum auth_kind)values[AUTH_IS].number, values[AUTH_HEADER_NAME].text,
                                   values[AUTH_PREFIX].text, values[AUTH_USER].text};
    if (provider->auth.kind == AUTH_HEADER)
        (void)want(from, map, &values[AUTH_HEADER_NAME], "which header? add header: NAME");
    return OK;
}

/* A wrong rate only makes us slower, so that this fact is used as it is. */
static enum status read_rate(const struct call_source *from, const struct yaml *map, struct provider *provider)
{
    struct setting_value values[VALUE_COUNT] = {{0}};
    bool verified;
    if (map == NULL)
        return OK;
    TRY(read_fact(from, &rate_table, "rate", map, values, &verified));
    if (want(from, map, &values[VALUE_IS], "this wants a value, such as is: 10/s"))
        (void)parse_rate(values[VALUE_IS].text, &provider->rate.calls, &provider->rate.per_us);
    provider->rate.burst = values[VALUE_BURST].given ? values[VALUE_BURST].number : provider->rate.calls;
    return OK;
}

static enum status read_file(const struct destination_source *source, const struct yaml *root, struct provider *ret)
{
    struct setting_value values[FILE_COUNT];
    struct call_source from = {.source = source, .place = FACT_FILE, .provider = ret};
    TRY(settings_read(&file_table, root, FACT_FILE, source->arena, values, source->problems));
    if (want(&from, root, &values[FILE_TITLE], "a provider wants a title"))
        ret->title = values[FILE_TITLE].text;
    (void)want(&from, root, &values[FILE_ABOUT], "a provider wants about: one sentence");
    (void)want(&from, root, &values[FILE_KIND], "a provider wants a kind: http, smtp or command");
    ret->about = values[FILE_ABOUT].text;
    ret->kind = from.kind = (enum destination_kind)values[FILE_KIND].number;
    ret->settings = arena_zalloc(source->arena, DEST_COUNT, sizeof *ret->settings);
    const struct yaml *calls = values[FILE_CALLS].group;
    ret->calls = arena_zalloc(source->arena, calls != NULL ? calls->count + 1 : 1, sizeof *ret->calls);
    if (ret->settings == NULL || ret->calls == NULL)
        return FULL;
    TRY(settings_read(&destination_table, values[FILE_SETTINGS].group, 1U << ret->kind, source->arena, ret->settings,
                      source->problems));
    from.replays_refusals = ret->settings[DEST_ON_4XX].number != 0;
    TRY(read_url(&from, values[FILE_URL].group, ret));
    TRY(read_auth(&from, values[FILE_AUTH].group, ret));
    TRY(read_rate(&from, values[FILE_RATE].group, ret));
    return read_calls(&from, calls, ret->calls, &ret->call_count);
}

enum status provider_read(const struct destination_source *source, struct bytes text, struct provider *ret)
{
    struct yaml *root = NULL;
    TRY(yaml_read(text, source->scratch, &root, source->problems));
    if (root == NULL || root->kind != YAML_MAP) {
        yaml_problem_add(source->problems, 1, 1, "a provider is settings such as 'title: Stripe'");
        return INVALID;
    }
    *ret = (struct provider){0};
    TRY(read_file(source, root, ret));
    return source->problems->count == 0 ? OK : INVALID;
}

/* ---- those that are part of the program ---- */

size_t provider_count(void)
{
    return EMBEDDED_PROVIDERS_COUNT;
}

struct bytes provider_name(size_t index)
{
    ASSERT(index < EMBEDDED_PROVIDERS_COUNT);
    struct bytes rest = bytes_of(embedded_providers[index].name);
    return bytes_cut(&rest, '.');
}

struct bytes provider_text(struct bytes name)
{
    for (size_t i = 0; i < EMBEDDED_PROVIDERS_COUNT; i++)
        if (bytes_eq(provider_name(i), name))
            return embedded_providers[i].data;
    return BYTES_NONE;
}
