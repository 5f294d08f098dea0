#include "receive/source_settings.h"

#include "base/when.h"
#include "match/match.h"
#include "receive/receive_own.h"

const char *const verify_alg_names[] = {"hmac-sha1", "hmac-sha256", "sha256", "ecdsa-p256", "ed25519", "equal", "basic", NULL};
const char *const source_as_names[] = {"original", "event", NULL};
const char *const source_reads_names[] = {"json", "form", "mail", "auto", NULL};
static const char *const encoding_names[] = {"hex", "base64", NULL};
static const char *const key_names[] = {"raw", "base64", "public", NULL};
static const char *const grammar_names[] = {"plain", "prefix", "pairs", "list", NULL};
static const char *const kind_names[] = {"message", "lead", "status", "event", NULL};
static const char *const mode_names[] = {"enforce", "shadow", NULL};

/* ---- forms ---- */

static bool is_place(struct bytes text)
{
    static const struct bytes roots[] = {{"header.", 7}, {"query.", 6}, {"body.", 5}, {"pair.", 5}};
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
        if (bytes_starts(text, roots[i]) && text.len > roots[i].len && text.len <= 256)
            return true;
    return false;
}

static void explain_place(struct bytes text, struct why *ret)
{
    struct bytes shown = yaml_clip(text);
    why_set(ret, INVALID, "a place is header.NAME, query.NAME or body.PATH, such as header.X-Signature, not '%.*s'",
            BYTES_ARG(shown));
}

static bool is_signs(struct bytes text)
{
    bool covers;
    return text.len > 0 && text.len <= 512 && signs_is_good(text, &covers);
}

static void explain_signs(struct bytes text, struct why *ret)
{
    (void)text;
    why_set(ret, INVALID,
            "signs is made of {id} {ts} {body} {url} {method} {sorted_params} {secret} {header:NAME} {field:PATH}; check the "
            "braces");
}

static bool is_template(struct bytes text)
{
    return text.len > 0 && text.len <= 4096 && template_is_good(text);
}

static void explain_template(struct bytes text, struct why *ret)
{
    struct bytes shown = yaml_clip(text);
    why_set(ret, INVALID, "each '{' wants a path and its '}', such as {user.email}, in '%.*s'", BYTES_ARG(shown));
}

/* "entry[].changes[].value.messages[]": ends in an array, has one to four. */
static bool is_split(struct bytes text)
{
    size_t arrays = 0;
    for (size_t i = 0; i < text.len; i++) {
        bool open = text.at[i] == '[', pair = open && i + 1 < text.len && text.at[i + 1] == ']';
        if ((open && !pair) || (text.at[i] == ']' && (i == 0 || text.at[i - 1] != '[')))
            return false;
        if (pair && i + 2 < text.len && text.at[i + 2] != '.' && text.at[i + 2] != '[')
            return false;
        arrays += pair;
    }
    return arrays >= 1 && arrays <= SOURCE_SPLIT_MAX && text.len <= 256 && text.at[text.len - 1] == ']' &&
           memmem(text.at, text.len, "..", 2) == NULL && text.at[0] != '.';
}

static void explain_split(struct bytes text, struct why *ret)
{
    struct bytes shown = yaml_clip(text);
    why_set(ret, INVALID, "split is the way to a list, such as events[] or entry[].messages[], not '%.*s'", BYTES_ARG(shown));
}

static bool is_path(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] <= 0x20 || (unsigned char)text.at[i] >= 0x7F || strchr("?#\\", text.at[i]) != NULL)
            return false;
    return text.len >= 1 && text.len <= 512 && text.at[0] == '/';
}

static void explain_path(struct bytes text, struct why *ret)
{
    struct bytes shown = yaml_clip(text);
    why_set(ret, INVALID, "path begins with '/' and has no query, such as /hooks/lead, not '%.*s'", BYTES_ARG(shown));
}

static bool is_region(struct bytes text)
{
    char region[3];
    return text.len == 2 && match_region(text, region) && memcmp(text.at, region, 2) == 0;
}

static void explain_region(struct bytes text, struct why *ret)
{
    char region[3];
    struct bytes shown = yaml_clip(text);
    if (match_region(text, region))
        why_set(ret, INVALID, "a country is written in two capital letters: %s, not '%.*s'", region, BYTES_ARG(shown));
    else
        why_set(ret, INVALID, "a country is written in two capital letters, such as FR or US, not '%.*s'", BYTES_ARG(shown));
}

static const struct setting_form place_form = {"a place", "place", is_place, explain_place},
                                 signs_form = {"a template", "template", is_signs, explain_signs},
                                 template_form = {"a template", "template", is_template, explain_template},
                                 split_form = {"a way to a list", "way", is_split, explain_split},
                                 path_form = {"a path", "path", is_path, explain_path},
                                 region_form = {"a country", "country", is_region, explain_region};

/* ---- tables of facts ---- */

enum { BOTH = FACT_FILE | FACT_POLICY };

#define ROW(row_name, row_kind, row_places, row_example, row_help, ...)                                               \
    {                                                                                                                 \
        .name = (row_name), .kind = (row_kind), .places = (row_places), .example = (row_example), .help = (row_help), \
        ##__VA_ARGS__                                                                                                 \
    }

static const struct setting verify_rows[] = {
    FACT_HEAD,
    [VERIFY_ROW_NAME] = ROW("name", SETTING_FORM, BOTH, "v1", "What the policy calls it.", .form = &header_form),
    [VERIFY_ROW_ALG] = ROW("alg", SETTING_CHOICE, BOTH, "hmac-sha256", "How it is signed.", .names = verify_alg_names),
    [VERIFY_ROW_ENCODING] =
        ROW("encoding", SETTING_CHOICE, BOTH, "hex", "How the signature is written.", .names = encoding_names),
    [VERIFY_ROW_KEY] =
        ROW("key", SETTING_CHOICE, BOTH, "raw", "What the secret is: the key, its base64, or a public key.", .names = key_names),
    [VERIFY_ROW_KEY_PREFIX] =
        ROW("key_prefix", SETTING_FORM, BOTH, "whsec_", "What stands before the key in the secret.", .form = &line_form),
    [VERIFY_ROW_SIGNS] = ROW("signs", SETTING_FORM, BOTH, "\"{ts}.{body}\"", "The bytes that are signed.", .form = &signs_form),
    [VERIFY_ROW_SIGNATURE] =
        ROW("signature", SETTING_FORM, BOTH, "header.X-Signature", "Where the signature stands.", .form = &place_form),
    [VERIFY_ROW_GRAMMAR] =
        ROW("grammar", SETTING_CHOICE, BOTH, "prefix",
            "How it stands there: alone, behind a prefix, in pairs t=1,v1=…, or in a list v1,… v1,….", .names = grammar_names),
    [VERIFY_ROW_PREFIX] =
        ROW("prefix", SETTING_FORM, BOTH, "\"sha256=\"", "The prefix, or the name of the signatures.", .form = &line_form),
    [VERIFY_ROW_TIME] =
        ROW("time", SETTING_FORM, BOTH, "header.X-Timestamp", "Where {ts} stands; pair.t for a pair.", .form = &place_form),
    [VERIFY_ROW_TOLERANCE] = ROW("tolerance", SETTING_DURATION, BOTH, "5m", "How far {ts} may be from now, both ways.",
                                 .min = WHEN_SECOND, .max = WHEN_DAY),
    [VERIFY_ROW_ID] = ROW("id", SETTING_FORM, BOTH, "header.X-Id", "Where {id} stands.", .form = &place_form),
    [VERIFY_ROW_BODY_HASH] = ROW("body_hash", SETTING_FORM, BOTH, "query.bodySHA256",
                                 "Where the SHA-256 of the body stands, when it is no form.", .form = &place_form),
    [VERIFY_ROW_NONCE] = ROW("nonce", SETTING_FORM, BOTH, "body.signature.token",
                             "Where a value used once stands; needed when the body is not signed.", .form = &place_form),
    [VERIFY_ROW_OPTIONAL] = ROW("optional", SETTING_SWITCH, FACT_FILE, "true", "true: only when the policy asks for it."),
};

static const struct setting handshake_rows[] = {
    FACT_HEAD,
    [HANDSHAKE_METHOD] = ROW("method", SETTING_FORM, BOTH, "GET", "The method.", .form = &header_form),
    [HANDSHAKE_WHEN] = ROW("when", SETTING_GROUP, BOTH, "{query.hub.mode: subscribe}", "What it must say."),
    [HANDSHAKE_TOKEN] =
        ROW("token", SETTING_FORM, BOTH, "query.hub.verify_token", "Where the verify token stands.", .form = &place_form),
    [HANDSHAKE_SIGNED] = ROW("signed", SETTING_SWITCH, BOTH, "true", "true: answered only when the signature holds."),
    [HANDSHAKE_ANSWER] =
        ROW("answer", SETTING_FORM, BOTH, "\"{query.hub.challenge}\"", "What is answered.", .form = &template_form),
    [HANDSHAKE_TYPE] = ROW("type", SETTING_FORM, BOTH, "text/plain", "The answer's Content-Type.", .form = &line_form),
    [HANDSHAKE_HEADERS] = ROW("headers", SETTING_GROUP, BOTH, "{X-Allowed: \"{header.X-Asked}\"}", "Headers of the answer."),
};

#define TEXTS(row_name, row_example, row_help) ROW(row_name, SETTING_TEXTS, BOTH, row_example, row_help, .item = "a template")

static const struct setting event_rows[] = {
    FACT_HEAD,
    [EVENT_KIND] = ROW("kind", SETTING_CHOICE, BOTH, "message", "What it is.", .names = kind_names),
    [EVENT_SPLIT] =
        ROW("split", SETTING_FORM, BOTH, "\"events[]\"", "The way to its list, when a body holds several.", .form = &split_form),
    [EVENT_WHEN] = ROW("when", SETTING_GROUP, BOTH, "{type: text}", "What it must say to be this kind."),
    [EVENT_DELIVERY] = ROW("delivery", SETTING_TEXTS, FACT_POLICY, "\"{id}\"", "The sender's id of it.", .item = "a template"),
    [EVENT_DELIVERY_FACT] =
        ROW("delivery", SETTING_GROUP, FACT_FILE, "{is: \"{id}\", evidence: D, verified: true}", "The sender's id of it."),
    [EVENT_KEY] =
        ROW("key", SETTING_TEXTS, FACT_POLICY, "\"crm:{id}\"", "The business key: what happened.", .item = "a template"),
    [EVENT_KEY_FACT] = ROW("key", SETTING_GROUP, FACT_FILE, "{is: \"crm:{id}\", evidence: D, verified: true}",
                           "The business key: what happened."),
    [EVENT_NAME] = TEXTS("name", "\"{user.name}\"", "The person's name."),
    [EVENT_COMPANY] = TEXTS("company", "\"{company}\"", "The person's company."),
    [EVENT_COUNTRY] = TEXTS("country", "\"{country}\"", "The person's country, by which phone numbers are read."),
    [EVENT_SUBJECT] = TEXTS("subject", "\"{subject}\"", "What it is about."),
    [EVENT_TEXT] = TEXTS("text", "\"{message}\"", "What the person wrote."),
    [EVENT_THREAD] = TEXTS("thread", "\"slack:{channel}:{thread_ts}\"", "The channel's id of the conversation."),
    [EVENT_TIME] = TEXTS("time", "\"{created_at}\"", "When it happened: RFC 3339, seconds or milliseconds."),
    [EVENT_REFERENCES] = TEXTS("references", "\"wa:{context.id}\"", "Keys of earlier messages of the conversation."),
    [EVENT_IDENTITIES] = ROW("identities", SETTING_GROUPS, BOTH, "[{email: \"{email}\"}]", "Who it is from."),
    [EVENT_ANSWERS] =
        ROW("answers", SETTING_GROUP, BOTH, "{of: answers, value: \"{text}\"}", "Questions and answers, for the text."),
    [EVENT_AUTOMATIC] = ROW("automatic", SETTING_GROUP, BOTH, "{bot_id: \"*\"}", "Any of these says that a program wrote it."),
};

static const struct setting who_rows[] = {
    [WHO_EMAIL] = TEXTS("email", "\"{email}\"", "An e-mail address."),
    [WHO_PHONE] = TEXTS("phone", "\"{phone}\"", "A phone number."),
    [WHO_OTHER] = TEXTS("other", "\"slack:{user}\"", "Another id, with its own prefix."),
    [WHO_MENTIONED] = ROW("mentioned", SETTING_SWITCH, BOTH, "true", "true: not the sender."),
};

static const struct setting answers_rows[] = {
    [ANSWERS_OF] = ROW("of", SETTING_TEXT, BOTH, "answers", "The list."),
    [ANSWERS_QUESTION] = TEXTS("question", "\"{question}\"", "The question of one."),
    [ANSWERS_VALUE] = TEXTS("value", "\"{answer}\"", "The answer of one."),
    [ANSWERS_PREFER] = ROW("prefer", SETTING_TEXT, BOTH, "field.type=long_text", "Only these, when there are any."),
    [ANSWERS_SKIP] = ROW("skip", SETTING_TEXT, BOTH, "type=email|phone_number", "Never these."),
};

static const struct setting id_rows[] = {FACT_HEAD, [ID_IS] = TEXTS("is", "\"{id}\"", "The template.")};

static const struct setting retry_rows[] = {
    FACT_HEAD,
    [RETRY_IS] = ROW("is", SETTING_DURATION, BOTH, "24h", "How long the sender tries again.", .min = 0, .max = 30 * WHEN_DAY),
};

static const struct setting reply_rows[] = {
    FACT_HEAD,
    [REPLY_BODY] = ROW("body", SETTING_TEXT, BOTH, "\"<Response/>\"", "What is answered."),
    [REPLY_TYPE] = ROW("type", SETTING_FORM, BOTH, "text/xml", "Its Content-Type.", .form = &line_form),
};

static const struct setting sample_rows[] = {
    [SAMPLE_METHOD] = ROW("method", SETTING_FORM, BOTH, "POST", "The method.", .form = &header_form),
    [SAMPLE_TYPE] = ROW("type", SETTING_FORM, BOTH, "application/json", "The Content-Type.", .form = &line_form),
    [SAMPLE_HEADERS] = ROW("headers", SETTING_GROUP, BOTH, "{X-Event: lead}", "More headers."),
    [SAMPLE_QUERY] = ROW("query", SETTING_FORM, BOTH, "\"token=$signature$\"", "The query.", .form = &line_form),
    [SAMPLE_BODY] = ROW("body", SETTING_TEXT, BOTH, "\"{}\"", "The body."),
};

static const struct setting preset_rows[] = {
    [PRESET_TITLE] = ROW("title", SETTING_FORM, BOTH, "Stripe", "The name that people know.", .form = &line_form),
    [PRESET_ABOUT] = ROW("about", SETTING_TEXT, BOTH, "\"Payments.\"", "One sentence."),
    [PRESET_READS] = ROW("reads", SETTING_CHOICE, BOTH, "json", "What its bodies are.", .names = source_reads_names),
    [PRESET_VERIFY] = ROW("verify", SETTING_GROUPS, BOTH, "[{alg: hmac-sha256}]", "How it signs; any of them is enough."),
    [PRESET_HANDSHAKES] = ROW("handshakes", SETTING_GROUPS, BOTH, "[{method: GET}]", "What it asks before it sends."),
    [PRESET_EVENTS] = ROW("events", SETTING_GROUPS, BOTH, "[{kind: message}]", "What it sends; the first that fits counts."),
    [PRESET_RETRY] = ROW("retry", SETTING_GROUP, BOTH, "{is: 24h, evidence: D, verified: true}", "How long it tries again."),
    [PRESET_REPLY] = ROW("reply", SETTING_GROUP, BOTH, "{body: ok, type: text/plain}", "What it wants to be answered."),
    [PRESET_SAMPLE] = ROW("sample", SETTING_GROUP, BOTH, "{type: application/json, body: \"{}\"}", "A delivery as it looks."),
};

/* ---- the settings of a source ---- */

enum { ANY = 1 };

#define SET(row_name, row_kind, row_default, row_example, row_help, ...)                                                \
    {                                                                                                                   \
        .name = (row_name), .kind = (row_kind), .places = ANY, .default_text = (row_default), .example = (row_example), \
        .help = (row_help), ##__VA_ARGS__                                                                               \
    }

const struct setting source_settings[] = {
    [SOURCE_PRESET] =
        SET("preset", SETTING_TEXT, NULL, "typeform", "The preset it begins with; without it, the one of the source's own name."),
    [SOURCE_TITLE] = SET("title", SETTING_FORM, NULL, "\"Contact form\"", "The name that people are shown.", .form = &line_form),
    [SOURCE_SECRET] = SET("secret", SETTING_FORM, NULL, "env:TYPEFORM_SECRET",
                          "Where the secret is that deliveries are signed with: env:NAME, file:/path or secret:NAME; for `basic` "
                          "it is user:password, for public-key schemes the sender's public key.",
                          .form = &secret_form),
    [SOURCE_SECRETS] = SET("secrets", SETTING_LIST, NULL, "[env:NEW, env:OLD]",
                           "Several of them, while a secret is being changed: any of them may have signed.",
                           .item = "a reference, such as env:NEW"),
    [SOURCE_VERIFY_TOKEN] = SET("verify_token", SETTING_FORM, NULL, "env:META_VERIFY_TOKEN",
                                "Where the token is that the sender's handshake must show.", .form = &secret_form),
    [SOURCE_VERIFY] = SET("verify", SETTING_TEXTS, NULL, "[v3, v2]",
                          "The preset's ways to sign that are accepted, by name; `none`: deliveries are not verified.",
                          .item = "the name of a way to sign, such as v3"),
    [SOURCE_SIGNATURE] = SET("signature", SETTING_GROUP, NULL, "{alg: hmac-sha256, signature: header.X-Sig, signs: \"{body}\"}",
                             "A way to sign of your own, in place of the preset's."),
    [SOURCE_READS] = SET("reads", SETTING_CHOICE, NULL, "auto", "What the bodies are; auto goes by Content-Type.",
                         .names = source_reads_names),
    [SOURCE_EVENTS] = SET("events", SETTING_GROUPS, NULL, "[{kind: lead, key: \"crm:{id}\"}]",
                          "Kinds of events of your own; the preset's count where none of them fits."),
    [SOURCE_ADDRESSES] =
        SET("addresses", SETTING_TEXTS, NULL, "[leads@example.com, \"*@in.example.com\"]",
            "Whose mail is for this source, by SMTP and LMTP; a source that reads mail also gets what is for NAME@ any host.",
            .item = "an address"),
    [SOURCE_REGION] =
        SET("region", SETTING_FORM, NULL, "FR",
            "The country, in two letters, whose phone numbers are understood without their country code.", .form = &region_form),
    [SOURCE_URL] = SET("url", SETTING_FORM, NULL, "https://hooks.example.com",
                       "The public base URL, when semel stands behind a proxy and the sender signs the URL.", .form = &url_form),
    [SOURCE_WINDOW] =
        SET("window", SETTING_DURATION, NULL, "24h",
            "Equal content from the same sender within it, counted from the first, is one message; without it, a day "
            "or twice as long as the sender tries again.",
            .min = WHEN_SECOND, .max = 400 * WHEN_DAY),
    [SOURCE_ACROSS] = SET("across", SETTING_DURATION, "24h", "24h",
                          "The same across sources; 0s does not compare with other sources.", .min = 0, .max = 400 * WHEN_DAY),
    [SOURCE_KEEP] =
        SET("keep", SETTING_DURATION, "30d", "30d", "How long deliveries are kept.", .min = WHEN_MINUTE, .max = 400 * WHEN_DAY),
    [SOURCE_LOOP] = SET("loop", SETTING_FORM, "20/10m", "20/10m", "The same key more often than this is a loop and is stopped.",
                        .form = &rate_form),
    [SOURCE_FORWARD] = SET("forward", SETTING_TEXT, NULL, "agent",
                           "The destination that gets what is accepted; without it, events are only kept."),
    [SOURCE_PATH] = SET("path", SETTING_FORM, NULL, "/hooks/lead", "The path there.", .form = &path_form),
    [SOURCE_AS] = SET("as", SETTING_CHOICE, "original", "event",
                      "original forwards the event's bytes as they came; event forwards what was understood, as JSON.",
                      .names = source_as_names),
    [SOURCE_MODE] = SET("mode", SETTING_CHOICE, "enforce", "shadow",
                        "enforce acts on decisions; shadow decides and logs, but lets everything through.", .names = mode_names),
    [SOURCE_OWNER] = SET("owner", SETTING_TEXT, NULL, "dana", "Who gets its exceptions; without it, the policy's owner."),
    [SOURCE_DUE] =
        SET("due", SETTING_DURATION, NULL, "8h", "How long its exceptions may stay open; without it, as the policy says.",
            .min = WHEN_MINUTE, .max = 90 * WHEN_DAY),
    [SOURCE_BODY_LIMIT] = SET("body_max", SETTING_FORM, "1MiB", "256KiB",
                              "The largest body that is taken; a source that reads mail takes 26 MiB.", .form = &size_form),
};

const size_t source_setting_count = SOURCE_COUNT;
_Static_assert(sizeof source_settings / sizeof *source_settings == SOURCE_COUNT, "one row per setting");

#define TABLE(rows)                                 \
    {                                               \
        (rows), sizeof(rows) / sizeof *(rows), NULL \
    }

const struct setting_table verify_table = TABLE(verify_rows), handshake_table = TABLE(handshake_rows),
                           event_table = TABLE(event_rows), who_table = TABLE(who_rows), answers_table = TABLE(answers_rows),
                           id_table = TABLE(id_rows), retry_table = TABLE(retry_rows), reply_table = TABLE(reply_rows),
                           sample_table = TABLE(sample_rows), preset_table = TABLE(preset_rows),
                           source_table = TABLE(source_settings);
