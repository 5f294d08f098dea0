#include "destination/destination_settings.h"

#include "base/when.h"

const char *const on_4xx_names[] = {"release", "replay", NULL};
static const char *const carrier_place_names[] = {"nowhere", "header", "json", "form", "query", "natural", NULL};

/* ---- forms ---- */

bool parse_window(struct bytes text, int64_t *ret_us)
{
    int64_t window_us = WINDOW_ALWAYS_US;
    if (!bytes_is(text, "always") &&
        (!when_parse_duration(text, &window_us) || window_us < WHEN_MINUTE || window_us > WINDOW_ALWAYS_US))
        return false;
    *ret_us = window_us;
    return true;
}

bool parse_price(struct bytes text, int64_t *ret_micro)
{
    struct bytes decimals = text, units = bytes_cut(&decimals, '.');
    bool pointed = units.len < text.len;
    int64_t micro = 0, unit = 100000;
    uint64_t whole;
    if (!bytes_to_u64(units, &whole) || whole > 1000000 || (pointed && decimals.len == 0) || decimals.len > 6)
        return false;
    for (size_t i = 0; pointed && i < decimals.len; i++, unit /= 10) {
        if (decimals.at[i] < '0' || decimals.at[i] > '9')
            return false;
        micro += (decimals.at[i] - '0') * unit;
    }
    *ret_micro = (int64_t)whole * 1000000 + micro;
    return true;
}

static bool is_window(struct bytes text)
{
    int64_t window_us;
    return parse_window(text, &window_us);
}

static void explain_window(struct bytes text, struct why *ret)
{
    struct bytes shown = yaml_clip(text);
    why_set(ret, INVALID, "window is 1m to 400d, such as 24h, or 'always' for an upsert, not '%.*s'", BYTES_ARG(shown));
}

static bool is_price(struct bytes text)
{
    int64_t micro;
    return parse_price(text, &micro);
}

static void explain_price(struct bytes text, struct why *ret)
{
    struct bytes shown = yaml_clip(text);
    why_set(ret, INVALID, "a price is a number with at most six decimals, for a million tokens, such as 2.50, not '%.*s'",
            BYTES_ARG(shown));
}

static void explain_host(struct bytes text, struct why *ret)
{
    struct bytes shown = yaml_clip(text);
    why_set(ret, INVALID, "host wants a name or an address such as smtp.example.com, without scheme and path, not '%.*s'",
            BYTES_ARG(shown));
}

static const struct setting_form window_form = {"a duration or always", "duration", is_window, explain_window},
                                 price_form = {"a price", "price", is_price, explain_price},
                                 host_form = {"a host", "host", is_host, explain_host};

/* ---- tables of facts ---- */

enum { BOTH = FACT_FILE | FACT_POLICY };

#define ROW(row_name, row_kind, row_example, row_help, ...)                                                                 \
    {                                                                                                                       \
        .name = (row_name), .kind = (row_kind), .places = BOTH, .example = (row_example), .help = (row_help), ##__VA_ARGS__ \
    }

static const struct setting url_rows[] = {
    FACT_HEAD,
    [VALUE_IS] = ROW("is", SETTING_FORM, "https://example.com", "The base URL.", .form = &url_form),
};

static const struct setting rate_rows[] = {
    FACT_HEAD,
    [VALUE_IS] = ROW("is", SETTING_FORM, "10/s", "Calls per time.", .form = &rate_form),
    [VALUE_BURST] = ROW("burst", SETTING_INTEGER, "10", "Calls at once.", .min = 1, .max = 1000000),
};

static const struct setting window_rows[] = {
    FACT_HEAD,
    [VALUE_IS] = ROW("is", SETTING_FORM, "24h", "How long the key is remembered.", .form = &window_form),
};

static const struct setting auth_rows[] = {
    FACT_HEAD,
    [AUTH_IS] = ROW("is", SETTING_CHOICE, "bearer", "How the secret is carried.", .names = auth_kind_names),
    [AUTH_HEADER_NAME] = ROW("header", SETTING_FORM, "api-key", "The header that carries it.", .form = &header_form),
    [AUTH_PREFIX] = ROW("prefix", SETTING_FORM, "\"Bot \"", "What stands before it.", .form = &line_form),
    [AUTH_USER] = ROW("user", SETTING_FORM, "api", "The user that goes with it.", .form = &line_form),
};

static const struct setting carrier_rows[] = {
    FACT_HEAD,
    [CARRIER_IN] = ROW("in", SETTING_CHOICE, "header", "Where it stands.", .names = carrier_place_names),
    [CARRIER_NAME] = ROW("name", SETTING_FORM, "Idempotency-Key", "The header, parameter or dotted path.", .form = &line_form),
    [CARRIER_CODEC] = ROW("codec", SETTING_CHOICE, "uuid", "How the key is written.", .names = codec_kind_names),
    [CARRIER_SIZE] = ROW("size", SETTING_INTEGER, "64", "The longest that is taken.", .min = 16, .max = 1024),
    [CARRIER_CHARS] = ROW("chars", SETTING_FORM, "\"A-Za-z0-9_-\"", "The characters that are taken.", .form = &line_form),
    [CARRIER_WITH] = ROW("with", SETTING_GROUP, "{enforce_nonce: true}", "Members that must stand beside it."),
    [CARRIER_UNLESS_GIVEN] =
        ROW("unless_given", SETTING_GROUP, "{metadata.event_type: semel}", "Members that stand beside it unless given."),
};

static const struct setting outcome_rows[] = {
    FACT_HEAD,
    [RULE_STATUS] = ROW("status", SETTING_FORM, "5xx", "The status, class or range.", .form = &status_form),
    [RULE_HEADER] = ROW("header", SETTING_FORM, "Stripe-Should-Retry", "A header that must be there.", .form = &header_form),
    [RULE_HEADER_IS] = ROW("header_is", SETTING_TEXT, "\"true\"", "What that header must say."),
    [RULE_FIELD] = ROW("field", SETTING_TEXT, "error", "A field of the JSON body that must be there."),
    [RULE_VALUES] =
        ROW("values", SETTING_LIST, "[ratelimited]", "What that field may say.", .item = "a value, such as ratelimited"),
    [RULE_OUTCOME] = ROW("outcome", SETTING_CHOICE, "retry", "What it says about the effect.", .names = outcome_names),
    [RULE_BECAUSE] = ROW("because", SETTING_FORM, "\"it is busy\"", "Why, for people.", .form = &line_form),
};

static const struct setting probe_rows[] = {
    FACT_HEAD,
    [PROBE_METHOD] = ROW("method", SETTING_FORM, "GET", "The method.", .form = &header_form),
    [PROBE_PATH] = ROW("path", SETTING_FORM, "\"/messages?tag={key}\"", "The path, a template.", .form = &line_form),
    [PROBE_REQUIRES] = ROW("requires", SETTING_GROUP, "{ok: true}", "What the answer must say to prove anything."),
    [PROBE_ITEMS] = ROW("items", SETTING_TEXT, "messages", "Where the answer lists candidates."),
    [PROBE_MATCH] = ROW("match", SETTING_GROUP, "{metadata.semel_key: \"{key}\"}", "What a candidate must say to be ours."),
    [PROBE_TOTAL] = ROW("total", SETTING_TEXT, "TotalCount", "Where the answer says how many there are."),
    [PROBE_MORE] = ROW("more", SETTING_TEXT, "has_more", "Where the answer says that there are more."),
    [PROBE_TIME] = ROW("time", SETTING_TEXT, "created_at", "Where a candidate says when it was made."),
    [PROBE_SHOW] = ROW("show", SETTING_LIST, "[id]", "What a person is shown of it.", .item = "a path, such as id"),
    [PROBE_ABSENT_STATUS] =
        ROW("absent_status", SETTING_INTEGER, "404", "A status that says it is not there.", .min = 400, .max = 599),
    [PROBE_PROVES] = ROW("proves", SETTING_LIST, "[found, absent]", "What its answers prove.", .item = "found or absent"),
    [PROBE_SETTLE] = ROW("settle", SETTING_DURATION, "60s", "How long to wait before asking.", .max = 7 * WHEN_DAY),
    [PROBE_TRIES] = ROW("tries", SETTING_INTEGER, "3", "How often to ask.", .min = 1, .max = 100),
};

static const struct setting memo_end_rows[] = {
    [MEMO_END_DATA] = ROW("data", SETTING_FORM, "\"[DONE]\"", "The data of the event that ends it.", .form = &line_form),
    [MEMO_END_FIELD] = ROW("field", SETTING_TEXT, "type", "A field that such an event has."),
    [MEMO_END_VALUES] =
        ROW("values", SETTING_LIST, "[message_stop]", "What that field may say.", .item = "a value, such as message_stop"),
};

static const struct setting memo_rows[] = {
    FACT_HEAD,
    [MEMO_ENDS] = ROW("ends", SETTING_GROUPS, "[{data: \"[DONE]\"}]", "What ends a stream of events whole."),
    [MEMO_MODEL] = ROW("model", SETTING_TEXT, "model", "Where the request names the model; else in its path."),
    [MEMO_INPUT] =
        ROW("input", SETTING_LIST, "[usage.prompt_tokens]", "Where an answer counts the tokens that went in.", .item = "a path"),
    [MEMO_OUTPUT] =
        ROW("output", SETTING_LIST, "[usage.completion_tokens]", "Where it counts those that came out.", .item = "a path"),
    [MEMO_VARY] = ROW("vary", SETTING_LIST, "[OpenAI-Project]", "Headers that change the answer.", .item = "a header"),
};

static const struct setting price_rows[] = {
    [PRICE_INPUT] = ROW("input", SETTING_FORM, "2.50", "For a million tokens that go in.", .form = &price_form),
    [PRICE_OUTPUT] = ROW("output", SETTING_FORM, "10", "For a million tokens that come out.", .form = &price_form),
};

static const struct setting call_rows[] = {
    FACT_HEAD,
    [CALL_NAME] = ROW("name", SETTING_FORM, "send", "What it is called.", .form = &header_form),
    [CALL_METHODS] = ROW("methods", SETTING_LIST, "[POST]", "Its methods.", .item = "a method, such as POST"),
    [CALL_PATHS] = ROW("paths", SETTING_LIST, "[/v1/**]", "Its paths.", .item = "a path that begins with '/', such as /v1/**"),
    [CALL_READS] = ROW("reads", SETTING_SWITCH, "true", "true: it changes nothing."),
    [CALL_KEY] = ROW("key", SETTING_GROUP, "{in: header, name: Idempotency-Key}", "Where the destination takes our key."),
    [CALL_WINDOW] = {.name = "window",
                     .kind = SETTING_FORM,
                     .places = FACT_POLICY,
                     .example = "24h",
                     .help = "How long it remembers the key.",
                     .form = &window_form},
    [CALL_WINDOW_FACT] = {.name = "window",
                          .kind = SETTING_GROUP,
                          .places = FACT_FILE,
                          .example = "{is: 24h, evidence: D, verified: true}",
                          .help = "How long it remembers the key."},
    [CALL_OUTCOMES] = ROW("outcomes", SETTING_GROUPS, "[{status: 503, outcome: retry}]", "What its answers mean."),
    [CALL_MARKERS] = ROW("markers", SETTING_GROUPS, "[{in: json, name: metadata.semel_key}]", "Where a probe can find our key."),
    [CALL_PROBES] = ROW("probes", SETTING_GROUPS, "[{method: GET, path: /messages}]", "How to ask whether it happened."),
    [CALL_ON_4XX] = ROW("on_4xx", SETTING_CHOICE, "replay", "Whether a refusal is remembered.", .names = on_4xx_names),
    [CALL_MEMO] = ROW("memo", SETTING_GROUP, "{ends: [{data: \"[DONE]\"}]}", "It is a model call: /llm/… remembers its answer."),
};

static const struct setting file_rows[] = {
    [FILE_TITLE] = ROW("title", SETTING_FORM, "Stripe", "The name that people know.", .form = &line_form),
    [FILE_ABOUT] = ROW("about", SETTING_TEXT, "\"Payments.\"", "One sentence."),
    [FILE_KIND] = ROW("kind", SETTING_CHOICE, "http", "What is spoken to it.", .names = destination_kind_names),
    [FILE_URL] = ROW("url", SETTING_GROUP, "{is: https://example.com, evidence: D, verified: true}", "Its base URL."),
    [FILE_AUTH] = ROW("auth", SETTING_GROUP, "{is: bearer, evidence: D, verified: true}", "How it takes the secret."),
    [FILE_RATE] = ROW("rate", SETTING_GROUP, "{is: 10/s, evidence: D, verified: true}", "How many calls it takes."),
    [FILE_SETTINGS] = ROW("settings", SETTING_GROUP, "{timeout: 30s}", "Settings that fit it; the policy may change them."),
    [FILE_CALLS] =
        ROW("calls", SETTING_GROUPS, "[{name: send, methods: [POST]}]", "Its kinds of calls; the first that fits counts."),
};

#define TABLE(rows)                                 \
    {                                               \
        (rows), sizeof(rows) / sizeof *(rows), NULL \
    }

const struct setting_table url_table = TABLE(url_rows), rate_table = TABLE(rate_rows), window_table = TABLE(window_rows),
                           auth_table = TABLE(auth_rows), carrier_table = TABLE(carrier_rows),
                           outcome_table = TABLE(outcome_rows), probe_table = TABLE(probe_rows), memo_table = TABLE(memo_rows),
                           memo_end_table = TABLE(memo_end_rows), price_table = TABLE(price_rows), call_table = TABLE(call_rows),
                           file_table = TABLE(file_rows);

/* ---- the settings of a destination ---- */

enum {
    HTTP = 1 << DESTINATION_HTTP,
    SMTP = 1 << DESTINATION_SMTP,
    COMMAND = 1 << DESTINATION_COMMAND,
    ANY = HTTP | SMTP | COMMAND
};

#define SET(row_name, row_kind, row_places, row_default, row_example, row_help, ...)                                             \
    {                                                                                                                            \
        .name = (row_name), .kind = (row_kind), .places = (row_places), .default_text = (row_default), .example = (row_example), \
        .help = (row_help), ##__VA_ARGS__                                                                                        \
    }

const struct setting destination_settings[] = {
    [DEST_PROVIDER] = SET("provider", SETTING_TEXT, ANY, NULL, "hubspot",
                          "The provider file it begins with; without it, the one of the destination's own name."),
    [DEST_TITLE] = SET("title", SETTING_FORM, ANY, NULL, "\"Our CRM\"", "The name that people are shown.", .form = &line_form),
    [DEST_URL] = SET("url", SETTING_FORM, HTTP, NULL, "https://example.com/api", "The base URL; paths are put behind it.",
                     .form = &url_form),
    [DEST_SECRET] =
        SET("secret", SETTING_FORM, HTTP | SMTP, NULL, "env:CRM_KEY",
            "Where the secret is: env:NAME, file:/path or secret:NAME; never the secret itself.", .form = &secret_form),
    [DEST_AUTH] = SET("auth", SETTING_CHOICE, HTTP, NULL, "bearer", "How the secret is carried.", .names = auth_kind_names),
    [DEST_AUTH_HEADER] = SET("auth_header", SETTING_FORM, HTTP, NULL, "api-key", "The header that carries it, for auth: header.",
                             .form = &header_form),
    [DEST_AUTH_PREFIX] = SET("auth_prefix", SETTING_FORM, HTTP, NULL, "\"Token \"",
                             "What stands before the secret in that header.", .form = &line_form),
    [DEST_USER] =
        SET("user", SETTING_FORM, HTTP | SMTP, NULL, "mailer", "The user that goes with the secret.", .form = &line_form),
    [DEST_TIMEOUT] = SET("timeout", SETTING_DURATION, ANY, "30s", "30s", "How long one attempt may take.", .min = WHEN_SECOND,
                         .max = 10 * WHEN_MINUTE),
    [DEST_CONCURRENCY] = SET("concurrency", SETTING_INTEGER, ANY, "8", "4",
                             "How many calls may be under way at the same time; of mails at most 32.", .min = 1, .max = 1000),
    [DEST_RATE] = SET("rate", SETTING_FORM, ANY, NULL, "10/s", "How many calls per time; without it there is no limit.",
                      .form = &rate_form),
    [DEST_BURST] = SET("burst", SETTING_INTEGER, ANY, NULL, "10", "How many of them may come at once.", .min = 1, .max = 1000000),
    [DEST_ATTEMPTS] = SET("attempts", SETTING_INTEGER, ANY, "12", "12", "How often a call is tried before a person gets it.",
                          .min = 1, .max = 1000),
    [DEST_BACKOFF] = SET("backoff", SETTING_DURATION, ANY, "5s", "5s",
                         "How long to wait after the first failure; then it doubles.", .min = 10 * WHEN_MS, .max = WHEN_HOUR),
    [DEST_BACKOFF_MAX] =
        SET("backoff_max", SETTING_DURATION, ANY, "1h", "1h", "The longest such wait.", .min = 10 * WHEN_MS, .max = WHEN_DAY),
    [DEST_DEADLINE] =
        SET("deadline", SETTING_DURATION, ANY, "24h", "24h", "No attempt begins later than this after the effect was due.",
            .min = WHEN_SECOND, .max = 30 * WHEN_DAY),
    [DEST_ON_UNKNOWN] =
        SET("on_unknown", SETTING_CHOICE, ANY, "hold", "hold",
            "What to do when nobody can tell whether it happened: hold for a person, retry or skip.", .names = on_unknown_names),
    [DEST_ON_4XX] = SET("on_4xx", SETTING_CHOICE, ANY, "release", "replay",
                        "A refusal is remembered for its key (replay: for money), or the key may be used again (release).",
                        .names = on_4xx_names),
    [DEST_RESPONSE_MAX] =
        SET("response_max", SETTING_FORM, ANY, "1MiB", "256KiB", "How much of an answer is read and kept.", .form = &size_form),
    [DEST_ALLOW_PRIVATE] = SET("allow_private", SETTING_SWITCH, HTTP | SMTP, "false", "true",
                               "true: it may be on this machine or in a private network."),
    [DEST_TLS_VERIFY] = SET("tls_verify", SETTING_SWITCH, HTTP | SMTP, "true", "false", "false: its certificate is not checked."),
    [DEST_ORDERED] = SET("ordered", SETTING_SWITCH, ANY, "false", "true", "true: calls of one group go one after the other."),
    [DEST_KEY] = SET("key", SETTING_TEXT, ANY, NULL, "\"{to}:{template}\"",
                     "The template that makes the key from the body of a call that brings none."),
    [DEST_TIME] =
        SET("time", SETTING_TEXT, ANY, NULL, "sent_at", "The field that holds the event's own time, for that template."),
    [DEST_REPEAT_WINDOW] =
        SET("repeat_window", SETTING_DURATION, ANY, "0s", "60s",
            "Equal calls without a key within this time are the same call; 0s: they are not.", .min = 0, .max = 30 * WHEN_DAY),
    [DEST_KEEP] = SET("keep", SETTING_DURATION, ANY, "30d", "30d", "How long a result is kept after it is final.",
                      .min = WHEN_MINUTE, .max = 400 * WHEN_DAY),
    [DEST_MEMO] = SET("memo", SETTING_DURATION, HTTP, "0s", "10m",
                      "Equal model calls outside a run are the same call for so long; 0s: only retries are.", .min = 0,
                      .max = 30 * WHEN_DAY),
    [DEST_IGNORE] =
        SET("ignore", SETTING_LIST, HTTP, NULL, "[user, metadata.trace_id]",
            "Fields of a model call that may differ between equal ones.", .item = "a path, such as metadata.trace_id"),
    [DEST_PRICES] = SET("prices", SETTING_GROUP, HTTP, NULL, "{my-model: {input: 2.50, output: 10}}",
                        "What a million tokens of a model cost, in your currency; without it no money is counted."),
    [DEST_OWNER] = SET("owner", SETTING_FORM, ANY, NULL, "dana", "Who gets its exceptions.", .form = &line_form),
    [DEST_CAPABILITY] = SET("capability", SETTING_CHOICE, ANY, NULL, "idempotent",
                            "What it can do: nothing, take our key, or be asked afterwards.", .names = capability_names),
    [DEST_KEY_HEADER] =
        SET("key_header", SETTING_FORM, HTTP, NULL, "Idempotency-Key", "The header that takes our key.", .form = &header_form),
    [DEST_KEY_JSON] = SET("key_json", SETTING_FORM, HTTP, NULL, "message.sendId", "The path in a JSON body that takes our key.",
                          .form = &line_form),
    [DEST_KEY_FORM] = SET("key_form", SETTING_FORM, HTTP, NULL, "idempotency_key", "The field of a form that takes our key.",
                          .form = &line_form),
    [DEST_KEY_QUERY] =
        SET("key_query", SETTING_FORM, HTTP, NULL, "request_id", "The query parameter that takes our key.", .form = &line_form),
    [DEST_KEY_CODEC] = SET("key_codec", SETTING_CHOICE, HTTP, NULL, "uuid", "How the key is written.", .names = codec_kind_names),
    [DEST_KEY_SIZE] = SET("key_size", SETTING_INTEGER, HTTP, NULL, "64", "The longest key it takes.", .min = 16, .max = 1024),
    [DEST_KEY_CHARS] = SET("key_chars", SETTING_FORM, HTTP, NULL, "\"A-Za-z0-9_-\"",
                           "The characters it takes in a key; others become '_'.", .form = &line_form),
    [DEST_WINDOW] = SET("window", SETTING_FORM, HTTP, NULL, "24h", "How long it remembers our key.", .form = &window_form),
    [DEST_CALLS] = SET("calls", SETTING_GROUPS, ANY, NULL, "[{name: send, methods: [POST], paths: [/send]}]",
                       "Kinds of calls with rules of their own; they come before those of the provider."),
    [DEST_HOST] = SET("host", SETTING_FORM, SMTP, NULL, "smtp.example.com", "The mail server.", .form = &host_form),
    [DEST_PORT] = SET("port", SETTING_INTEGER, SMTP, "587", "2525", "Its port.", .min = 1, .max = 65535),
    [DEST_FROM] = SET("from", SETTING_FORM, SMTP, NULL, "a@b.c", "The sender of mails that name none.", .form = &line_form),
    [DEST_TLS] =
        SET("tls", SETTING_CHOICE, SMTP, "starttls", "implicit", "How the connection is encrypted.", .names = smtp_tls_names),
    [DEST_COMMAND] = SET("command", SETTING_LIST, COMMAND, NULL, "[/usr/local/bin/backup, --now]",
                         "The program and its arguments; the body is its input.", .item = "an argument", .repeats = true),
};

const size_t destination_setting_count = DEST_COUNT;
_Static_assert(sizeof destination_settings / sizeof *destination_settings == DEST_COUNT, "one row per setting");
_Static_assert((int)DEST_COUNT <= (int)SETTING_ROWS_MAX, "the reader has room for this many");

static const char *belongs(const struct setting *row, unsigned place)
{
    (void)place;
    if (row->places == SMTP)
        return "to a destination of kind smtp";
    if (row->places == COMMAND)
        return "to a destination of kind command";
    return row->places == HTTP ? "to a destination of kind http" : "to a destination that is no command";
}

const struct setting_table destination_table = {destination_settings, DEST_COUNT, belongs};
