#include <stdio.h>

#include "base/json.h"
#include "base/when.h"
#include "destination/destination_settings.h"

/* A destination while it is read. */
struct reading {
    const struct destination_source *source;
    const struct yaml *name;
    struct destination *destination;
    struct provider provider;
    struct setting_value own[DEST_COUNT]; /* what the policy says */
    struct setting_value all[DEST_COUNT]; /* with what the provider and the table say */
};

static void refuse(struct reading *reading, const struct setting_value *at, const char *sentence)
{
    bool placed = at != NULL && at->line > 0;
    yaml_problem_add(reading->source->problems, placed ? at->line : reading->name->line,
                     placed ? at->column : reading->name->column, "%s", sentence);
}

/* ---- the provider ---- */

static const struct yaml *value_named(const struct yaml *map, const char *name)
{
    for (const struct yaml *at = map != NULL ? map->first : NULL; at != NULL; at = at->next->next)
        if (at->kind == YAML_TEXT && bytes_is(at->text, name))
            return at->next;
    return NULL;
}

/* "http, hubspot, …", for the sentence. */
static void list_providers(char *ret, size_t size)
{
    size_t len = 0;
    ret[0] = '\0';
    for (size_t i = 0; i < provider_count() && len < size; i++)
        len += (size_t)snprintf(ret + len, size - len, "%s%.*s", i > 0 ? ", " : "", BYTES_ARG(provider_name(i)));
}

static void refuse_provider(struct reading *reading, const struct yaml *at, struct bytes name)
{
    const char *names[64];
    char list[200];
    size_t count = provider_count() < 64 ? provider_count() : 64;
    for (size_t i = 0; i < count; i++) {
        struct bytes copy = arena_dup(reading->source->scratch, provider_name(i));
        names[i] = copy.at != NULL ? copy.at : "";
    }
    const char *near = nearest_name(name, names, count);
    struct bytes shown = yaml_clip(name);
    list_providers(list, sizeof list);
    if (near != NULL)
        yaml_problem_add(reading->source->problems, at->line, at->column, "there is no provider '%.*s'; did you mean '%s'?",
                         BYTES_ARG(shown), near);
    else
        yaml_problem_add(reading->source->problems, at->line, at->column,
                         "there is no provider '%.*s'; write provider: http, or one of %s", BYTES_ARG(shown), list);
}

/* NOTHING when there is no such provider, which is a problem then. */
static enum status find_provider(struct reading *reading, const struct yaml *settings)
{
    const struct yaml *given = value_named(settings, "provider"), *at = given != NULL ? given : reading->name;
    struct yaml_problems problems = {0};
    struct destination_source source = *reading->source;
    struct bytes text = at->kind == YAML_TEXT ? provider_text(at->text) : BYTES_NONE;
    if (text.at == NULL) {
        if (at->kind == YAML_TEXT)
            refuse_provider(reading, at, at->text);
        else
            yaml_problem_add(reading->source->problems, at->line, at->column, "provider wants text such as hubspot");
        return NOTHING;
    }
    source.problems = &problems;
    enum status status = provider_read(&source, text, &reading->provider);
    ASSERT(status != INVALID); /* a test reads every file */
    TRY(status);
    reading->destination->provider = arena_dup(source.arena, at->text);
    return reading->destination->provider.at != NULL ? OK : FULL;
}

/* ---- values ---- */

static void take_values(struct reading *reading)
{
    struct destination *destination = reading->destination;
    const struct setting_value *at = reading->all;
    destination->kind = reading->provider.kind;
    destination->title = at[DEST_TITLE].given ? at[DEST_TITLE].text : reading->provider.title;
    destination->timeout_us = at[DEST_TIMEOUT].number;
    destination->concurrency = at[DEST_CONCURRENCY].number;
    if (destination->kind == DESTINATION_SMTP && destination->concurrency > DESTINATION_MAILS_MAX)
        destination->concurrency = DESTINATION_MAILS_MAX;
    destination->attempts_max = at[DEST_ATTEMPTS].number;
    destination->backoff_first_us = at[DEST_BACKOFF].number;
    destination->backoff_max_us = at[DEST_BACKOFF_MAX].number;
    destination->deadline_us = at[DEST_DEADLINE].number;
    destination->on_unknown = (enum on_unknown)at[DEST_ON_UNKNOWN].number;
    destination->allow_private = at[DEST_ALLOW_PRIVATE].number != 0;
    destination->tls_verify = at[DEST_TLS_VERIFY].number != 0;
    destination->ordered = at[DEST_ORDERED].number != 0;
    destination->repeat_window_us = at[DEST_REPEAT_WINDOW].number;
    destination->keep_us = at[DEST_KEEP].number;
    destination->memo_us = at[DEST_MEMO].number;
    destination->ignore = at[DEST_IGNORE].list;
    destination->ignore_count = at[DEST_IGNORE].list_count;
    destination->owner = at[DEST_OWNER].text;
    destination->smtp_host = at[DEST_HOST].text;
    destination->smtp_port = at[DEST_PORT].number;
    destination->smtp_from = at[DEST_FROM].text;
    destination->smtp_tls = (enum smtp_tls)at[DEST_TLS].number;
    destination->argv = at[DEST_COMMAND].list;
    destination->argv_count = at[DEST_COMMAND].list_count;
    bool sized = parse_size(at[DEST_RESPONSE_MAX].text, &destination->response_max);
    ASSERT(sized);
    if (at[DEST_SECRET].given) {
        enum status status = secret_reference_parse(at[DEST_SECRET].text, &destination->secret, NULL);
        ASSERT(status == OK);
    }
}

static void take_rate(struct reading *reading)
{
    struct rate rate = reading->provider.rate;
    if (reading->own[DEST_RATE].given) {
        rate = (struct rate){0};
        (void)parse_rate(reading->own[DEST_RATE].text, &rate.calls, &rate.per_us);
        rate.burst = rate.calls;
    }
    if (reading->own[DEST_BURST].given) {
        if (rate.calls == 0 && !reading->own[DEST_RATE].refused)
            refuse(reading, &reading->own[DEST_BURST], "burst goes with a rate; add rate: 10/s, or remove it");
        rate.burst = reading->own[DEST_BURST].number;
    }
    reading->destination->rate = rate;
}

static void take_auth(struct reading *reading)
{
    const struct setting_value *own = reading->own;
    struct auth auth = reading->provider.auth;
    if (own[DEST_AUTH].given)
        auth = (struct auth){.kind = (enum auth_kind)own[DEST_AUTH].number};
    if (own[DEST_AUTH_HEADER].given) {
        auth.header = own[DEST_AUTH_HEADER].text;
        if (auth.kind != AUTH_HEADER && !own[DEST_AUTH].given && !own[DEST_AUTH].refused)
            auth = (struct auth){.kind = AUTH_HEADER, .header = auth.header};
    }
    if (own[DEST_AUTH_PREFIX].given)
        auth.prefix = own[DEST_AUTH_PREFIX].text;
    if (own[DEST_USER].given)
        auth.user = own[DEST_USER].text;
    if (auth.kind == AUTH_HEADER && auth.header.at == NULL && !own[DEST_AUTH_HEADER].refused)
        refuse(reading, &own[DEST_AUTH], "which header carries the secret? add auth_header: NAME");
    if (auth.kind == AUTH_NONE && reading->destination->kind == DESTINATION_HTTP && own[DEST_SECRET].given &&
        !own[DEST_AUTH].refused)
        refuse(reading, &own[DEST_SECRET], "how is the secret carried? add auth: bearer, basic, header, path or webhook");
    if (auth.kind == AUTH_WEBHOOK && !own[DEST_SECRET].given && !own[DEST_SECRET].refused)
        refuse(reading, &own[DEST_AUTH], "what is it signed with? add secret: env:NAME, file:/path or secret:NAME");
    reading->destination->auth = auth;
}

static void take_url(struct reading *reading)
{
    struct destination *destination = reading->destination;
    const struct setting_value *own = &reading->own[DEST_URL];
    destination->url = own->given ? own->text : reading->provider.url;
    while (destination->url.len > 0 && destination->url.at[destination->url.len - 1] == '/')
        destination->url.len--;
    if (destination->kind != DESTINATION_HTTP || own->refused)
        return;
    if (destination->url.len == 0)
        refuse(reading, NULL, "this destination needs its base URL; add url: https://…");
    else if (bytes_starts(destination->url, BYTES("http://")) && !destination->allow_private)
        refuse(reading, own,
               "http:// sends everything in the clear; write https://, or allow_private: true for a private address");
}

static void check_kind(struct reading *reading)
{
    const struct setting_value *own = reading->own;
    const struct destination *destination = reading->destination;
    if (destination->kind == DESTINATION_SMTP && destination->smtp_host.len == 0 && !own[DEST_HOST].refused)
        refuse(reading, NULL, "a mail server is needed; add host: smtp.example.com");
    if (destination->kind == DESTINATION_COMMAND && !own[DEST_COMMAND].refused &&
        (destination->argv_count == 0 || destination->argv[0].at[0] != '/'))
        refuse(reading, &own[DEST_COMMAND], "the program is wanted with its whole path; write command: [/usr/local/bin/backup]");
    for (size_t i = 0; i < destination->argv_count; i++)
        if (memchr(destination->argv[i].at, '\0', destination->argv[i].len) != NULL)
            refuse(reading, &own[DEST_COMMAND], "an argument cannot hold a NUL character");
    if (reading->all[DEST_BACKOFF_MAX].number < reading->all[DEST_BACKOFF].number)
        refuse(reading, own[DEST_BACKOFF_MAX].given ? &own[DEST_BACKOFF_MAX] : &own[DEST_BACKOFF],
               "backoff_max is shorter than backoff");
}

static enum status take_key_template(struct reading *reading)
{
    const struct setting_value *own = reading->own;
    struct key_options options = {reading->source->zone, own[DEST_TIME].text};
    struct destination *destination = reading->destination;
    struct why why;
    if (!own[DEST_KEY].given || own[DEST_TIME].refused)
        return OK;
    destination->key_text = own[DEST_KEY].text;
    enum status status = key_template_compile(own[DEST_KEY].text, &options, reading->source->arena, &destination->key, &why);
    if (status != INVALID)
        return status;
    refuse(reading, &own[DEST_KEY], why.text);
    return OK;
}

/* ---- prices ---- */

static enum status take_price(struct reading *reading, const struct yaml *name, struct price *ret)
{
    const struct destination_source *source = reading->source;
    struct setting_value values[PRICE_COUNT];
    if (name->kind != YAML_TEXT || name->text.len == 0 || name->next->kind != YAML_MAP) {
        yaml_problem_add(source->problems, name->line, name->column,
                         "a model and its prices are wanted here, such as my-model: {input: 2.50, output: 10}");
        return OK;
    }
    TRY(settings_read(&price_table, name->next, FACT_POLICY, source->arena, values, source->problems));
    ret->model = arena_dup(source->arena, name->text);
    if (values[PRICE_INPUT].given)
        (void)parse_price(values[PRICE_INPUT].text, &ret->input);
    if (values[PRICE_OUTPUT].given)
        (void)parse_price(values[PRICE_OUTPUT].text, &ret->output);
    return ret->model.at != NULL ? OK : FULL;
}

static enum status take_prices(struct reading *reading)
{
    const struct yaml *map = reading->all[DEST_PRICES].group;
    struct destination *destination = reading->destination;
    if (map == NULL)
        return OK;
    destination->prices = arena_zalloc(reading->source->arena, map->count + 1, sizeof *destination->prices);
    if (destination->prices == NULL)
        return FULL;
    for (const struct yaml *name = map->first; name != NULL; name = name->next->next)
        TRY(take_price(reading, name, &destination->prices[destination->price_count++]));
    return OK;
}

/* ---- calls ---- */

static const struct {
    int setting;
    enum carrier_place place;
} key_settings[] = {
    {DEST_KEY_HEADER, CARRIER_HEADER},
    {DEST_KEY_JSON, CARRIER_JSON},
    {DEST_KEY_FORM, CARRIER_FORM},
    {DEST_KEY_QUERY, CARRIER_QUERY},
};

/* The carrier that the policy names; CARRIER_NOWHERE when it names none. */
static struct carrier own_carrier(struct reading *reading)
{
    const struct setting_value *own = reading->own;
    struct carrier carrier = {0};
    for (size_t i = 0; i < sizeof key_settings / sizeof *key_settings; i++) {
        const struct setting_value *value = &own[key_settings[i].setting];
        if (!value->given)
            continue;
        if (carrier.place != CARRIER_NOWHERE)
            refuse(reading, value, "one place for the key is enough; keep one of key_header, key_json, key_form and key_query");
        carrier.place = key_settings[i].place;
        carrier.name = value->text;
    }
    carrier.codec = (struct key_codec){(enum codec_kind)own[DEST_KEY_CODEC].number, (size_t)own[DEST_KEY_SIZE].number,
                                       own[DEST_KEY_CHARS].text};
    bool described = own[DEST_KEY_CODEC].given || own[DEST_KEY_SIZE].given || own[DEST_KEY_CHARS].given;
    if (described && carrier.place == CARRIER_NOWHERE)
        refuse(reading, NULL, "key_codec, key_size and key_chars describe a key; say where it stands: key_header: NAME");
    if (own[DEST_KEY_SIZE].given && carrier.codec.kind <= CODEC_UUID && carrier.codec.size < DOWNSTREAM_KEY_SIZE)
        refuse(reading, &own[DEST_KEY_SIZE], "a key has 36 characters as it is; for a shorter one add key_codec: base32");
    return carrier;
}

/* What the policy says about the whole destination, put over one call of the provider. */
static void override_call(struct reading *reading, struct call_rules *rules, const struct carrier *key, int64_t window_us)
{
    const struct setting_value *capability = &reading->own[DEST_CAPABILITY];
    if (key->place != CARRIER_NOWHERE)
        rules->key = *key;
    if (window_us > 0 && rules->key.place != CARRIER_NOWHERE)
        rules->window_us = window_us;
    if (rules->key.place != CARRIER_NOWHERE && rules->window_us > 0)
        rules->capability = CAPABILITY_IDEMPOTENT;
    if (!capability->given)
        return;
    rules->capability = (enum capability)capability->number;
    if (rules->capability != CAPABILITY_IDEMPOTENT) {
        rules->key = (struct carrier){0};
        rules->window_us = 0;
    }
    if (rules->capability == CAPABILITY_NONE)
        rules->probe_count = 0;
}

static void check_call(struct reading *reading, const struct call_rules *rules)
{
    const struct setting_value *own = reading->own, *capability = &own[DEST_CAPABILITY];
    char sentence[240];
    const char *missing = NULL;
    if (rules->capability == CAPABILITY_IDEMPOTENT && rules->key.place == CARRIER_NOWHERE)
        missing = rules->kind == DESTINATION_HTTP
                      ? "takes no key that is known; say where it stands: key_header: Idempotency-Key"
                      : "takes no key; if repeating it changes nothing, say so under calls: with key: {in: natural} and a window";
    else if (rules->capability == CAPABILITY_IDEMPOTENT && rules->window_us == 0)
        missing = "remembers the key for a time that is not known; add window: 24h";
    else if (rules->capability == CAPABILITY_QUERY && rules->probe_count == 0)
        missing = "cannot be asked in a way that is known; describe it under calls: with probes:";
    if (missing == NULL)
        return;
    snprintf(sentence, sizeof sentence, "the call '%.*s' %s", BYTES_ARG(rules->name), missing);
    refuse(reading, capability, sentence);
}

static void override_calls(struct reading *reading, size_t first)
{
    const struct setting_value *own = reading->own;
    struct destination *destination = reading->destination;
    struct carrier key = own_carrier(reading);
    int64_t window_us = 0;
    bool used = false;
    if (own[DEST_WINDOW].given)
        (void)parse_window(own[DEST_WINDOW].text, &window_us);
    for (size_t i = first; i < destination->call_count; i++) {
        struct call_rules *rules = &destination->calls[i];
        if (own[DEST_ON_4XX].given)
            rules->replays_refusals = own[DEST_ON_4XX].number != 0;
        if (rules->reads)
            continue;
        override_call(reading, rules, &key, window_us);
        used |= window_us > 0 && rules->window_us == window_us;
        check_call(reading, rules);
    }
    if (own[DEST_WINDOW].given && !used && !own[DEST_CAPABILITY].refused)
        refuse(reading, &own[DEST_WINDOW],
               "window is for destinations that remember our key; say where it stands: key_header: NAME");
    if (key.place != CARRIER_NOWHERE && window_us == 0 && !own[DEST_WINDOW].refused && !own[DEST_CAPABILITY].given &&
        destination->calls[destination->call_count - 1].window_us == 0)
        refuse(reading, NULL, "how long does the destination remember the key? add window: 24h");
}

/* Behind all others: what only reads by HTTP's own rule, and everything else. */
static enum status add_last_calls(struct reading *reading)
{
    static struct bytes reading_methods[] = {{"GET", 3}, {"HEAD", 4}, {"OPTIONS", 7}};
    struct destination *destination = reading->destination;
    bool replays = reading->all[DEST_ON_4XX].number != 0;
    if (destination->kind == DESTINATION_HTTP)
        destination->calls[destination->call_count++] = (struct call_rules){.name = BYTES("reads"),
                                                                            .methods = reading_methods,
                                                                            .method_count = 3,
                                                                            .reads = true,
                                                                            .replays_refusals = replays,
                                                                            .kind = destination->kind};
    destination->calls[destination->call_count++] =
        (struct call_rules){.name = BYTES("other"), .replays_refusals = replays, .kind = destination->kind};
    return OK;
}

static enum status take_calls(struct reading *reading)
{
    struct destination *destination = reading->destination;
    struct call_source from = {.source = reading->source,
                               .place = FACT_POLICY,
                               .kind = destination->kind,
                               .replays_refusals = reading->all[DEST_ON_4XX].number != 0};
    const struct yaml *own = reading->own[DEST_CALLS].group;
    size_t own_max = own == NULL ? 0 : own->count < DESTINATION_CALLS_MAX ? own->count : DESTINATION_CALLS_MAX;
    destination->calls =
        arena_zalloc(reading->source->arena, own_max + reading->provider.call_count + 2, sizeof *destination->calls);
    if (destination->calls == NULL)
        return FULL;
    TRY(read_calls(&from, own, destination->calls, &destination->call_count));
    size_t first = destination->call_count;
    for (size_t i = 0; i < reading->provider.call_count; i++)
        destination->calls[destination->call_count++] = reading->provider.calls[i];
    TRY(add_last_calls(reading));
    override_calls(reading, first);
    return OK;
}

/* ---- all of it ---- */

enum status destination_read(const struct destination_source *source, const struct yaml *name, const struct yaml *settings,
                             struct destination *ret)
{
    struct reading *reading = arena_zalloc(source->scratch, 1, sizeof *reading);
    *ret = (struct destination){0};
    if (reading == NULL)
        return FULL;
    reading->source = source;
    reading->name = name;
    reading->destination = ret;
    ret->name = arena_dup(source->arena, name->text);
    if (ret->name.at == NULL)
        return FULL;
    enum status status = find_provider(reading, settings);
    if (status != OK)
        return status == NOTHING ? OK : status;
    TRY(settings_read(&destination_table, settings, 1U << reading->provider.kind, source->arena, reading->own, source->problems));
    struct setting_value built_in[DEST_COUNT];
    TRY(settings_built_in(&destination_table, source->arena, built_in));
    memcpy(reading->all, reading->own, sizeof reading->all);
    settings_over(DEST_COUNT, reading->all, reading->provider.settings);
    settings_over(DEST_COUNT, reading->all, built_in);
    take_values(reading);
    take_rate(reading);
    take_auth(reading);
    take_url(reading);
    check_kind(reading);
    TRY(take_prices(reading));
    TRY(take_key_template(reading));
    return take_calls(reading);
}
