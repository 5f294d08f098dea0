/* A delivery as the sender would make it, by the same data that reads it. For `semel trigger` and the tests. */
#include <stdio.h>

#include "base/base64.h"
#include "base/hash.h"
#include "base/percent.h"
#include "base/when.h"
#include "receive/receive_own.h"

enum { HEADERS_MAX = 32, NONCE_SIZE = 50 };

/* ---- placeholders: $id$ … ---- */

struct sample_text {
    const char *name;
    struct bytes value;
};

enum { SAMPLE_TEXTS = 17 };

/* Every value in the texts that a sample may ask for; false without memory. */
static bool list_texts(const struct sample_values *values, struct arena *arena, struct sample_text ret[SAMPLE_TEXTS])
{
    static const uint8_t space[16] = "semel-sample-id";
    char uuid[37], hex[2 * HASH_SIZE], when[32];
    int64_t signed_us = values->signed_us != 0 ? values->signed_us : values->time_us;
    struct bytes name = values->name, last = name, first = bytes_cut(&last, ' ');
    struct bytes both[] = {values->id, arena_printf(arena, "%lld", (long long)signed_us)};
    if (both[1].at == NULL)
        return false;
    struct hash hash = hash_parts(both, 1), used_once = hash_parts(both, 2);
    uint32_t number = (uint32_t)hash.at[0] << 24 | (uint32_t)hash.at[1] << 16 | (uint32_t)hash.at[2] << 8 | hash.at[3];
    hash_uuid5(space, values->id, uuid);
    bytes_to_hex(hash_bytes(&used_once), hex);
    const struct sample_text texts[SAMPLE_TEXTS] = {
        {"id", values->id},
        {"uuid", arena_dup(arena, bytes_of(uuid))},
        {"number", arena_printf(arena, "%u", 100000000U + number % 900000000U)},
        {"nonce", arena_dup(arena, (struct bytes){hex, NONCE_SIZE})},
        {"time", arena_dup(arena, (struct bytes){when, when_format(values->time_us, when)})},
        {"seconds", arena_printf(arena, "%lld", (long long)(values->time_us / WHEN_SECOND))},
        {"ms", arena_printf(arena, "%lld", (long long)(values->time_us / WHEN_MS))},
        {"text", values->text},
        {"name", name},
        {"first", first},
        {"last", last.len > 0 ? last : first},
        {"email", values->email},
        {"phone", values->phone},
        {"digits", bytes_starts(values->phone, BYTES("+")) ? bytes_from(values->phone, 1) : values->phone},
        {"signed_seconds", arena_printf(arena, "%lld", (long long)(signed_us / WHEN_SECOND))},
        {"signed_ms", arena_printf(arena, "%lld", (long long)(signed_us / WHEN_MS))},
        {"signature", BYTES("$signature$")},
    };
    memcpy(ret, texts, sizeof texts);
    return !arena->failed;
}

enum escaping { ESCAPE_NOTHING, ESCAPE_JSON, ESCAPE_PERCENT };

static void add_value(struct buf *out, struct bytes value, enum escaping escaping, struct arena *arena)
{
    if (escaping == ESCAPE_PERCENT) {
        value = percent_encode(value, arena);
        buf_add(out, value.at != NULL ? value : BYTES(""));
        return;
    }
    if (escaping == ESCAPE_NOTHING) {
        buf_add(out, value);
        return;
    }
    struct buf text;
    buf_init(&text, INCOMING_TEXT_MAX * 8);
    struct json_out json = json_out_to(&text);
    json_text(&json, value);
    if (!text.failed && text.len >= 2)
        buf_add(out, (struct bytes){text.at + 1, text.len - 2});
    out->failed |= text.failed;
    buf_release(&text);
}

static struct bytes fill(struct bytes template, const struct sample_text texts[SAMPLE_TEXTS], enum escaping escaping,
                         struct arena *arena)
{
    struct buf out;
    buf_init(&out, SOURCE_BODY_MAX);
    while (template.len > 0) {
        buf_add(&out, bytes_cut(&template, '$'));
        struct bytes rest = template, name = bytes_cut(&rest, '$');
        size_t i = 0;
        while (i < SAMPLE_TEXTS && !bytes_is(name, texts[i].name))
            i++;
        if (i == SAMPLE_TEXTS) {
            if (template.len > 0)
                buf_add_char(&out, '$');
            continue;
        }
        add_value(&out, texts[i].value, i + 1 == SAMPLE_TEXTS ? ESCAPE_NOTHING : escaping, arena);
        template = rest;
    }
    struct bytes filled = out.failed ? BYTES_NONE : arena_dup(arena, buf_bytes(&out));
    buf_release(&out);
    return filled;
}

static enum escaping escaping_of(struct bytes type)
{
    if (memmem(type.at, type.len, "json", 4) != NULL)
        return ESCAPE_JSON;
    return memmem(type.at, type.len, "urlencoded", 10) != NULL ? ESCAPE_PERCENT : ESCAPE_NOTHING;
}

enum status receive_sample(const struct source *source, const struct sample_values *values, struct bytes url, struct arena *arena,
                           struct receive_request *ret, struct why *why)
{
    const struct source_sample *sample = &source->sample;
    struct sample_text texts[SAMPLE_TEXTS];
    if (sample->body.at == NULL)
        return why_set(why, INVALID, "the preset '%.*s' has no sample", BYTES_ARG(source->preset));
    struct pair *headers = arena_zalloc(arena, HEADERS_MAX, sizeof *headers);
    if (headers == NULL || !list_texts(values, arena, texts))
        return why_set(why, FULL, "there is no memory for the sample");
    *ret = (struct receive_request){
        .method = sample->method, .headers = headers, .now_us = values->signed_us != 0 ? values->signed_us : values->time_us};
    ret->body = fill(sample->body, texts, escaping_of(sample->type), arena);
    ret->url = sample->query.at == NULL ? url
                                        : arena_printf(arena, "%.*s?%.*s", BYTES_ARG(url),
                                                       BYTES_ARG(fill(sample->query, texts, ESCAPE_PERCENT, arena)));
    headers[ret->header_count++] = (struct pair){BYTES("Content-Type"), sample->type};
    for (size_t i = 0; i < sample->header_count; i++)
        headers[ret->header_count++] =
            (struct pair){sample->headers[i].name, fill(sample->headers[i].value, texts, ESCAPE_NOTHING, arena)};
    return arena->failed ? why_set(why, FULL, "there is no memory for the sample") : OK;
}

/* ---- signing ---- */

struct signing {
    const struct verify_rule *rule;
    struct receive_request *request;
    struct scope *scope;
    struct bytes id, time;
};

static void set_header(struct receive_request *request, struct bytes name, struct bytes value)
{
    size_t i = 0;
    while (i < request->header_count && !bytes_eq_nocase(request->headers[i].name, name))
        i++;
    ASSERT(i < HEADERS_MAX);
    request->headers[i] = (struct pair){name, value};
    request->header_count += i == request->header_count;
}

/* The time that the sample gave, or else the seconds of now. */
static enum status find_time(struct signing *signing)
{
    const struct verify_rule *rule = signing->rule;
    if (rule->time.at == NULL)
        return OK;
    if (!bytes_starts(rule->time, BYTES("pair.")))
        signing->time = scope_text(signing->scope, rule->time);
    if (signing->time.at != NULL)
        return OK;
    signing->time = arena_printf(signing->scope->arena, "%lld", (long long)(signing->request->now_us / WHEN_SECOND));
    if (bytes_starts(rule->time, BYTES("header.")))
        set_header(signing->request, bytes_from(rule->time, 7), signing->time);
    return signing->time.at != NULL ? OK : FULL;
}

/* A private key stands behind a prefix of its own, such as whsk_. */
static struct bytes private_key(const struct verify_rule *rule, struct bytes secret, struct arena *arena)
{
    if ((rule->alg == VERIFY_ECDSA || rule->alg == VERIFY_ED25519) && !bytes_starts(secret, BYTES("-----BEGIN "))) {
        const char *prefix = secret.len > 0 ? memrchr(secret.at, '_', secret.len) : NULL;
        return base64_decode(prefix != NULL ? bytes_from(secret, (size_t)(prefix - secret.at) + 1) : secret, arena);
    }
    return cipher_key(rule, secret, arena);
}

static enum status make_signature(struct signing *signing, struct bytes secret, struct bytes *ret, struct why *why)
{
    const struct verify_rule *rule = signing->rule;
    struct arena *arena = signing->scope->arena;
    char made[CIPHER_SIZE_MAX];
    size_t len;
    struct bytes missing, key = private_key(rule, secret, arena);
    if (key.at == NULL)
        return why_set(why, INVALID, "the secret is empty, or not in the form that '%.*s' wants", BYTES_ARG(rule->name));
    if (rule->alg == VERIFY_EQUAL || rule->alg == VERIFY_BASIC) {
        *ret = rule->alg == VERIFY_EQUAL ? secret : base64_encode(secret, arena);
        return OK;
    }
    struct bytes data = verify_signed(rule, signing->scope, signing->scope->url, signing->id, signing->time, secret, &missing);
    if (data.at == NULL)
        return why_set(why, INVALID, "the signed value '%.*s' is missing", BYTES_ARG(missing));
    if (!cipher_make(rule->alg, key, data, made, &len))
        return why_set(why, INVALID, "the secret is no private key that '%.*s' can sign with", BYTES_ARG(rule->name));
    *ret = cipher_encode(rule->encoding, (struct bytes){made, len}, arena);
    return ret->at != NULL ? OK : FULL;
}

static struct bytes write_signature(const struct signing *signing, struct bytes signature)
{
    const struct verify_rule *rule = signing->rule;
    struct arena *arena = signing->scope->arena;
    switch (rule->grammar) {
    case GRAMMAR_PLAIN:
        return signature;
    case GRAMMAR_PREFIX:
        return arena_printf(arena, "%.*s%.*s", BYTES_ARG(rule->prefix), BYTES_ARG(signature));
    case GRAMMAR_PAIRS:
        if (rule->time.at == NULL)
            return arena_printf(arena, "%.*s=%.*s", BYTES_ARG(rule->prefix), BYTES_ARG(signature));
        return arena_printf(arena, "%.*s=%.*s,%.*s=%.*s", BYTES_ARG(bytes_from(rule->time, 5)), BYTES_ARG(signing->time),
                            BYTES_ARG(rule->prefix), BYTES_ARG(signature));
    case GRAMMAR_LIST:
        return arena_printf(arena, "%.*s,%.*s", BYTES_ARG(rule->prefix), BYTES_ARG(signature));
    }
    return BYTES_NONE;
}

/* `text` with the one "$signature$" in it replaced. */
static enum status replace(struct bytes *text, struct bytes value, struct arena *arena, struct why *why)
{
    static const struct bytes mark = {"$signature$", 11};
    const char *at = text->len > 0 ? memmem(text->at, text->len, mark.at, mark.len) : NULL;
    if (at == NULL)
        return why_set(why, INVALID, "the sample has no $signature$ where the signature should stand");
    struct bytes before = {text->at, (size_t)(at - text->at)}, behind = bytes_from(*text, before.len + mark.len);
    *text = arena_printf(arena, "%.*s%.*s%.*s", BYTES_ARG(before), BYTES_ARG(value), BYTES_ARG(behind));
    return text->at != NULL ? OK : FULL;
}

static enum status place_signature(struct signing *signing, struct bytes written, struct why *why)
{
    const struct verify_rule *rule = signing->rule;
    struct receive_request *request = signing->request;
    struct arena *arena = signing->scope->arena;
    if (bytes_starts(rule->signature, BYTES("header."))) {
        set_header(request, bytes_from(rule->signature, 7), written);
        return OK;
    }
    if (bytes_starts(rule->signature, BYTES("body.")))
        return replace(&request->body, written, arena, why);
    struct bytes name = bytes_from(rule->signature, 6), escaped = percent_encode(written, arena);
    bool first = memchr(request->url.at, '?', request->url.len) == NULL;
    request->url =
        arena_printf(arena, "%.*s%c%.*s=%.*s", BYTES_ARG(request->url), first ? '?' : '&', BYTES_ARG(name), BYTES_ARG(escaped));
    return request->url.at != NULL ? OK : FULL;
}

enum status receive_sign(const struct source *source, struct bytes secret, struct arena *arena, struct receive_request *request,
                         struct why *why)
{
    struct scope scope;
    struct bytes signature = BYTES_NONE;
    if (source->rule_count == 0)
        return OK;
    struct signing signing = {.rule = &source->rules[0], .request = request, .scope = &scope};
    TRY(scope_open(source, request, arena, &scope, why));
    if (body_read(source->reads, &scope, why) == FULL)
        return FULL;
    TRY(find_time(&signing));
    if (signing.rule->id.at != NULL)
        signing.id = scope_text(&scope, signing.rule->id);
    TRY(make_signature(&signing, secret, &signature, why));
    struct bytes written = write_signature(&signing, signature);
    return written.at != NULL ? place_signature(&signing, written, why) : why_set(why, FULL, "there is no memory to sign");
}
