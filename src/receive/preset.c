/* Preset files: facts with their evidence, and the rules that they make up. */
#include "embedded.h"
#include "receive/receive_own.h"
#include "receive/source_settings.h"

static void refuse(const struct rule_reader *reader, const struct yaml *at, const char *sentence)
{
    yaml_problem_add(reader->reading->problems, at->line, at->column, "%s", sentence);
}

static void refuse_value(const struct rule_reader *reader, const struct setting_value *at, const char *sentence)
{
    yaml_problem_add(reader->reading->problems, at->line, at->column, "%s", sentence);
}

static enum status read_fact(const struct rule_reader *reader, const struct setting_table *table, const char *what,
                             const struct yaml *map, struct setting_value *ret_values, bool *ret_verified)
{
    struct fact_reader facts = {reader->place, reader->reading->arena, reader->reading->problems, reader->facts};
    return fact_read(&facts, table, what, map, ret_values, ret_verified);
}

static bool want(const struct rule_reader *reader, const struct yaml *map, const struct setting_value *value,
                 const char *sentence)
{
    if (!value->given && !value->refused)
        refuse(reader, map, sentence);
    return value->given;
}

static enum status read_pairs(const struct rule_reader *reader, const struct setting_value *value, struct pair **ret_pairs,
                              size_t *ret_count)
{
    return settings_pairs(value, reader->reading->arena, reader->reading->problems, ret_pairs, ret_count);
}

/* ---- templates ---- */

static struct texts read_texts(const struct rule_reader *reader, const struct setting_value *value)
{
    for (size_t i = 0; i < value->list_count; i++)
        if (!template_is_good(value->list[i]))
            refuse_value(reader, value, "each '{' wants a path and its '}', such as {user.email}");
    if (value->list_count > SOURCE_TEXTS_MAX)
        refuse_value(reader, value, "at most 16 alternatives are read");
    return (struct texts){value->list, value->list_count};
}

/* An id is a fact of its own: what nobody has verified is not compared. */
static enum status read_id(const struct rule_reader *reader, const char *what, const struct setting_value *own,
                           const struct setting_value *fact, struct texts *ret)
{
    struct setting_value values[ID_COUNT];
    bool verified;
    *ret = read_texts(reader, own);
    if (fact->group == NULL)
        return OK;
    TRY(read_fact(reader, &id_table, what, fact->group, values, &verified));
    struct texts texts = read_texts(reader, &values[ID_IS]);
    if (want(reader, fact->group, &values[ID_IS], "this wants a template, such as is: \"{id}\"") && verified)
        *ret = texts;
    return OK;
}

/* ---- verification ---- */

static struct bytes or_empty(struct bytes text)
{
    return text.at != NULL ? text : BYTES("");
}

static bool sends_secret(enum verify_alg alg)
{
    return alg == VERIFY_EQUAL || alg == VERIFY_BASIC;
}

/* What must stand together. */
static bool check_verify(const struct rule_reader *reader, const struct yaml *map, const struct setting_value *values,
                         struct verify_rule *rule)
{
    bool plain = sends_secret(rule->alg), good = true;
    rule->covers_body = plain; /* nothing is signed: whoever knows the secret may say anything */
    if (!plain)
        good = want(reader, map, &values[VERIFY_ROW_SIGNS], "what is signed? add signs: \"{body}\"") &&
               signs_is_good(rule->signs, &rule->covers_body);
    if (good && !rule->covers_body && rule->nonce.at == NULL && !values[VERIFY_ROW_NONCE].refused) {
        refuse(reader, map, "the body is not signed: add nonce: PLACE of a signed value that is used once, or sign {body}");
        good = false;
    }
    if (rule->alg == VERIFY_SHA256 && memmem(rule->signs.at, rule->signs.len, "{secret}", 8) == NULL) {
        refuse(reader, map, "sha256 alone proves nothing: signs must hold {secret}, or use alg: hmac-sha256");
        good = false;
    }
    bool timed = memmem(rule->signs.at, rule->signs.len, "{ts}", 4) != NULL;
    if (timed && rule->time.at == NULL && !values[VERIFY_ROW_TIME].refused) {
        refuse(reader, map, "where does {ts} stand? add time: header.NAME");
        good = false;
    }
    if (values[VERIFY_ROW_TOLERANCE].given && rule->time.at == NULL)
        refuse_value(reader, &values[VERIFY_ROW_TOLERANCE], "tolerance goes with time: PLACE");
    if (rule->grammar != GRAMMAR_PLAIN)
        good &=
            want(reader, map, &values[VERIFY_ROW_PREFIX], "this grammar wants a prefix or a name, such as prefix: \"sha256=\"");
    return good;
}

static struct verify_rule fill_verify(const struct setting_value *values)
{
    struct verify_rule rule = {
        .name = values[VERIFY_ROW_NAME].given ? values[VERIFY_ROW_NAME].text : BYTES("own"),
        .alg = (enum verify_alg)values[VERIFY_ROW_ALG].number,
        .encoding = (enum verify_encoding)values[VERIFY_ROW_ENCODING].number,
        .key = (enum verify_key)values[VERIFY_ROW_KEY].number,
        .key_prefix = values[VERIFY_ROW_KEY_PREFIX].text,
        .signs = or_empty(values[VERIFY_ROW_SIGNS].text),
        .signature = values[VERIFY_ROW_SIGNATURE].text,
        .grammar = (enum verify_grammar)values[VERIFY_ROW_GRAMMAR].number,
        .prefix = or_empty(values[VERIFY_ROW_PREFIX].text),
        .time = values[VERIFY_ROW_TIME].text,
        .tolerance_us = values[VERIFY_ROW_TOLERANCE].number,
        .id = values[VERIFY_ROW_ID].text,
        .body_hash = values[VERIFY_ROW_BODY_HASH].text,
        .nonce = values[VERIFY_ROW_NONCE].text,
    };
    if (rule.alg == VERIFY_BASIC && rule.signature.at == NULL) {
        rule.signature = BYTES("header.Authorization");
        rule.grammar = GRAMMAR_PREFIX;
        rule.prefix = BYTES("Basic ");
    }
    if ((rule.alg == VERIFY_ECDSA || rule.alg == VERIFY_ED25519) && rule.key == VERIFY_KEY_RAW)
        rule.key = VERIFY_KEY_PUBLIC;
    return rule;
}

enum status read_verify(const struct rule_reader *reader, const struct yaml *map, struct preset_rule *ret, bool *ret_good)
{
    struct setting_value values[VERIFY_ROW_COUNT];
    bool verified;
    *ret_good = false;
    TRY(read_fact(reader, &verify_table, "verify", map, values, &verified));
    if (reader->place == FACT_FILE)
        (void)want(reader, map, &values[VERIFY_ROW_NAME], "a way to sign wants a name, such as name: v1");
    if (!want(reader, map, &values[VERIFY_ROW_ALG], "how is it signed? add alg: hmac-sha256"))
        return OK;
    struct verify_rule rule = fill_verify(values);
    if (rule.signature.at == NULL) {
        (void)want(reader, map, &values[VERIFY_ROW_SIGNATURE], "where is the signature? add signature: header.NAME");
        return OK;
    }
    if (rule.alg == VERIFY_BASIC && !values[VERIFY_ROW_SIGNATURE].given) {
        rule.covers_body = true;
        *ret_good = true;
    } else {
        *ret_good = check_verify(reader, map, values, &rule);
    }
    *ret = (struct preset_rule){rule, values[VERIFY_ROW_OPTIONAL].number != 0 || !verified};
    return OK;
}

static enum status read_rules(const struct rule_reader *reader, const struct yaml *list, struct preset *preset)
{
    for (const struct yaml *item = list != NULL ? list->first : NULL; item != NULL; item = item->next) {
        bool good;
        if (item->kind != YAML_MAP || preset->rule_count == SOURCE_RULES_MAX) {
            refuse(reader, item, "a way to sign is settings such as {name: v1, alg: hmac-sha256}, at most 8");
            continue;
        }
        TRY(read_verify(reader, item, &preset->rules[preset->rule_count], &good));
        preset->rule_count += good;
    }
    return OK;
}

/* ---- handshakes ---- */

/* A wrong handshake is only not answered, so that these facts are used as they are. */
static enum status read_handshake(const struct rule_reader *reader, const struct yaml *map, struct handshake_rule *ret)
{
    struct setting_value values[HANDSHAKE_COUNT];
    bool verified;
    TRY(read_fact(reader, &handshake_table, "handshake", map, values, &verified));
    (void)want(reader, map, &values[HANDSHAKE_METHOD], "a handshake wants a method, such as method: GET");
    *ret = (struct handshake_rule){.method = values[HANDSHAKE_METHOD].text,
                                   .token = values[HANDSHAKE_TOKEN].text,
                                   .is_signed = values[HANDSHAKE_SIGNED].number != 0,
                                   .answer = values[HANDSHAKE_ANSWER].text,
                                   .type = values[HANDSHAKE_TYPE].text};
    TRY(read_pairs(reader, &values[HANDSHAKE_WHEN], &ret->when, &ret->when_count));
    TRY(read_pairs(reader, &values[HANDSHAKE_HEADERS], &ret->headers, &ret->header_count));
    for (size_t i = 0; i < ret->header_count; i++)
        if (!template_is_good(ret->headers[i].value))
            refuse(reader, map, "each '{' wants a path and its '}', such as {header.X-Asked}");
    return OK;
}

static enum status read_handshakes(const struct rule_reader *reader, const struct yaml *list, struct preset *preset)
{
    preset->handshakes = arena_zalloc(reader->reading->arena, (list != NULL ? list->count : 0) + 1, sizeof *preset->handshakes);
    if (preset->handshakes == NULL)
        return FULL;
    for (const struct yaml *item = list != NULL ? list->first : NULL; item != NULL; item = item->next) {
        if (item->kind != YAML_MAP)
            refuse(reader, item, "a handshake is settings such as {method: GET, answer: \"{query.challenge}\"}");
        else
            TRY(read_handshake(reader, item, &preset->handshakes[preset->handshake_count++]));
    }
    return OK;
}

/* ---- events ---- */

static enum status read_who(const struct rule_reader *reader, const struct yaml *map, struct identity_rule *ret)
{
    struct setting_value values[WHO_COUNT];
    TRY(settings_read(&who_table, map, reader->place, reader->reading->arena, values, reader->reading->problems));
    *ret = (struct identity_rule){.mentioned = values[WHO_MENTIONED].number != 0};
    size_t given = 0;
    for (int kind = IDENTITY_EMAIL; kind <= IDENTITY_OTHER; kind++) {
        if (!values[kind].given)
            continue;
        given++;
        ret->kind = kind;
        ret->value = read_texts(reader, &values[kind]);
    }
    if (given != 1)
        refuse(reader, map, "an identity is one of email, phone or other, such as {email: \"{email}\"}");
    return OK;
}

static enum status read_identities(const struct rule_reader *reader, const struct yaml *list, struct event_map *map)
{
    size_t count = list != NULL ? list->count : 0;
    if (count > INCOMING_IDENTITIES_MAX) {
        refuse(reader, list, "at most 16 identities are read");
        count = 0;
    }
    map->identities = arena_zalloc(reader->reading->arena, count + 1, sizeof *map->identities);
    if (map->identities == NULL)
        return FULL;
    for (const struct yaml *item = count > 0 ? list->first : NULL; item != NULL; item = item->next) {
        if (item->kind != YAML_MAP)
            refuse(reader, item, "an identity is settings such as {email: \"{email}\"}");
        else
            TRY(read_who(reader, item, &map->identities[map->identity_count++]));
    }
    return OK;
}

static enum status read_answers(const struct rule_reader *reader, const struct yaml *map, struct answers_rule *ret)
{
    struct setting_value values[ANSWERS_COUNT];
    if (map == NULL)
        return OK;
    TRY(settings_read(&answers_table, map, reader->place, reader->reading->arena, values, reader->reading->problems));
    (void)want(reader, map, &values[ANSWERS_OF], "answers wants its list, such as of: answers");
    (void)want(reader, map, &values[ANSWERS_VALUE], "answers wants the answer of one, such as value: \"{text}\"");
    *ret = (struct answers_rule){.of = values[ANSWERS_OF].text,
                                 .question = read_texts(reader, &values[ANSWERS_QUESTION]),
                                 .value = read_texts(reader, &values[ANSWERS_VALUE]),
                                 .prefer = values[ANSWERS_PREFER].text,
                                 .skip = values[ANSWERS_SKIP].text};
    return OK;
}

static enum status read_event(const struct rule_reader *reader, const struct yaml *map, struct event_map *ret)
{
    static const struct bytes kinds[] = {{"message", 7}, {"lead", 4}, {"status", 6}, {"event", 5}};
    struct setting_value values[EVENT_COUNT];
    bool verified;
    TRY(read_fact(reader, &event_table, "event", map, values, &verified));
    (void)want(reader, map, &values[EVENT_KIND], "an event wants a kind: message, lead, status or event");
    *ret = (struct event_map){.kind = kinds[values[EVENT_KIND].number],
                              .split = or_empty(values[EVENT_SPLIT].text),
                              .name = read_texts(reader, &values[EVENT_NAME]),
                              .company = read_texts(reader, &values[EVENT_COMPANY]),
                              .country = read_texts(reader, &values[EVENT_COUNTRY]),
                              .subject = read_texts(reader, &values[EVENT_SUBJECT]),
                              .text = read_texts(reader, &values[EVENT_TEXT]),
                              .thread = read_texts(reader, &values[EVENT_THREAD]),
                              .time = read_texts(reader, &values[EVENT_TIME]),
                              .references = read_texts(reader, &values[EVENT_REFERENCES])};
    TRY(read_id(reader, "delivery", &values[EVENT_DELIVERY], &values[EVENT_DELIVERY_FACT], &ret->delivery));
    TRY(read_id(reader, "key", &values[EVENT_KEY], &values[EVENT_KEY_FACT], &ret->key));
    TRY(read_pairs(reader, &values[EVENT_WHEN], &ret->when, &ret->when_count));
    TRY(read_pairs(reader, &values[EVENT_AUTOMATIC], &ret->automatic, &ret->automatic_count));
    TRY(read_answers(reader, values[EVENT_ANSWERS].group, &ret->answers));
    return read_identities(reader, values[EVENT_IDENTITIES].group, ret);
}

enum status read_events(const struct rule_reader *reader, const struct yaml *list, struct event_map **ret, size_t *ret_count)
{
    size_t count = list != NULL ? list->count : 0;
    *ret_count = 0;
    if (count > SOURCE_MAPS_MAX) {
        refuse(reader, list, "at most 32 kinds of events are read");
        count = 0;
    }
    *ret = arena_zalloc(reader->reading->arena, count + 1, sizeof **ret);
    if (*ret == NULL)
        return FULL;
    for (const struct yaml *item = count > 0 ? list->first : NULL; item != NULL; item = item->next) {
        if (item->kind != YAML_MAP)
            refuse(reader, item, "an event is settings such as {kind: message, text: \"{text}\"}");
        else
            TRY(read_event(reader, item, &(*ret)[(*ret_count)++]));
    }
    return OK;
}

/* ---- the rest of the file ---- */

static enum status read_retry(const struct rule_reader *reader, const struct yaml *map, struct preset *preset)
{
    struct setting_value values[RETRY_COUNT];
    bool verified;
    if (map == NULL)
        return OK;
    TRY(read_fact(reader, &retry_table, "retry", map, values, &verified));
    /* A horizon from memory is used too: it only makes the window longer. */
    if (want(reader, map, &values[RETRY_IS], "how long does it try again? add is: 24h"))
        preset->retry_us = values[RETRY_IS].number;
    return OK;
}

static enum status read_reply(const struct rule_reader *reader, const struct yaml *map, struct preset *preset)
{
    struct setting_value values[REPLY_COUNT];
    bool verified;
    if (map == NULL)
        return OK;
    TRY(read_fact(reader, &reply_table, "reply", map, values, &verified));
    preset->reply = values[REPLY_BODY].text;
    preset->reply_type = values[REPLY_TYPE].text;
    return OK;
}

static enum status read_sample(const struct rule_reader *reader, const struct yaml *map, struct preset *preset)
{
    struct setting_value values[SAMPLE_COUNT];
    if (map == NULL)
        return OK;
    TRY(settings_read(&sample_table, map, reader->place, reader->reading->arena, values, reader->reading->problems));
    if (!want(reader, map, &values[SAMPLE_BODY], "a sample wants a body"))
        return OK;
    preset->sample = (struct source_sample){
        .method = values[SAMPLE_METHOD].given ? values[SAMPLE_METHOD].text : BYTES("POST"),
        .type = values[SAMPLE_TYPE].given ? values[SAMPLE_TYPE].text : BYTES("application/json"),
        .query = values[SAMPLE_QUERY].text,
        .body = values[SAMPLE_BODY].text,
    };
    return read_pairs(reader, &values[SAMPLE_HEADERS], &preset->sample.headers, &preset->sample.header_count);
}

static enum status read_file(const struct rule_reader *reader, const struct yaml *root, struct preset *preset)
{
    struct setting_value values[PRESET_COUNT];
    TRY(settings_read(&preset_table, root, FACT_FILE, reader->reading->arena, values, reader->reading->problems));
    (void)want(reader, root, &values[PRESET_TITLE], "a preset wants a title");
    (void)want(reader, root, &values[PRESET_ABOUT], "a preset wants about: one sentence");
    (void)want(reader, root, &values[PRESET_READS], "what are its bodies? add reads: json");
    preset->title = values[PRESET_TITLE].text;
    preset->about = values[PRESET_ABOUT].text;
    preset->reads = (enum source_reads)values[PRESET_READS].number;
    TRY(read_rules(reader, values[PRESET_VERIFY].group, preset));
    TRY(read_handshakes(reader, values[PRESET_HANDSHAKES].group, preset));
    TRY(read_events(reader, values[PRESET_EVENTS].group, &preset->maps, &preset->map_count));
    TRY(read_retry(reader, values[PRESET_RETRY].group, preset));
    TRY(read_reply(reader, values[PRESET_REPLY].group, preset));
    return read_sample(reader, values[PRESET_SAMPLE].group, preset);
}

enum status preset_read(const struct source_reading *reading, struct bytes text, struct preset *ret)
{
    struct yaml *root = NULL;
    struct rule_reader reader = {reading, FACT_FILE, &ret->facts};
    TRY(yaml_read(text, reading->scratch, &root, reading->problems));
    if (root == NULL || root->kind != YAML_MAP) {
        yaml_problem_add(reading->problems, 1, 1, "a preset is settings such as 'title: Stripe'");
        return INVALID;
    }
    *ret = (struct preset){0};
    TRY(read_file(&reader, root, ret));
    return reading->problems->count == 0 ? OK : INVALID;
}

/* ---- those that are part of the program ---- */

size_t preset_count(void)
{
    return EMBEDDED_SOURCES_COUNT;
}

struct bytes preset_name(size_t index)
{
    ASSERT(index < EMBEDDED_SOURCES_COUNT);
    struct bytes rest = bytes_of(embedded_sources[index].name);
    return (struct bytes){rest.at, rest.len - (sizeof ".yaml" - 1)};
}

struct bytes preset_text(struct bytes name)
{
    for (size_t i = 0; i < EMBEDDED_SOURCES_COUNT; i++)
        if (bytes_eq(preset_name(i), name))
            return embedded_sources[i].data;
    return BYTES_NONE;
}
