/* Is this delivery from whom it says? On the raw bytes; every comparison takes the same time wherever it differs. */
#include <stdlib.h>

#include "base/base64.h"
#include "base/hash.h"
#include "base/when.h"
#include "receive/receive_own.h"

/* One look at one rule. */
struct look {
    const struct verify_rule *rule;
    struct scope *scope;
    struct bytes header;                             /* the whole text in which the signatures stand */
    struct bytes id, time;                           /* as they were sent; BYTES_NONE where the rule has none */
    struct bytes signatures[RECEIVE_SIGNATURES_MAX]; /* decoded */
    size_t signature_count;
    struct bytes urls[3];
    size_t url_count;
    struct bytes because; /* why it does not hold */
    bool present;         /* there was something to look at, so that `because` is worth telling */
};

static bool deny(struct look *look, const char *format, struct bytes what)
{
    look->because = arena_printf(look->scope->arena, format, BYTES_ARG(what));
    return false;
}

/* ---- where things stand ---- */

/* "the header X-Signature", for sentences. */
static struct bytes place_name(struct look *look, struct bytes path)
{
    struct bytes rest = path, root = bytes_cut(&rest, '.');
    const char *word = bytes_is(root, "header") ? "header" : bytes_is(root, "query") ? "parameter" : "field";
    struct bytes name = arena_printf(look->scope->arena, "the %s %.*s", word, BYTES_ARG(rest));
    return name.at != NULL ? name : BYTES("a value");
}

/* False when it is missing, or there twice: then nobody knows which one counts. */
static bool place_text(struct look *look, struct bytes path, struct bytes *ret)
{
    size_t count = 1;
    struct bytes text;
    if (bytes_starts(path, BYTES("header.")))
        text = scope_header(look->scope, bytes_from(path, 7), &count);
    else
        text = scope_text(look->scope, path);
    if (text.at == NULL || text.len == 0)
        return deny(look, "%.*s is missing", place_name(look, path));
    if (count > 1)
        return deny(look, "%.*s is there twice", place_name(look, path));
    *ret = text;
    return true;
}

/* ---- the header's grammar ---- */

static bool add_signature(struct look *look, struct bytes text)
{
    if (look->signature_count == RECEIVE_SIGNATURES_MAX)
        return deny(look, "%.*s has too many signatures", place_name(look, look->rule->signature));
    if (look->rule->alg == VERIFY_EQUAL) {
        look->signatures[look->signature_count++] = text;
        return true;
    }
    struct bytes decoded = look->rule->alg == VERIFY_BASIC ? base64_decode(text, look->scope->arena)
                                                           : cipher_decode(look->rule->encoding, text, look->scope->arena);
    if (decoded.len > 0) /* one that cannot be read is none; another may be good */
        look->signatures[look->signature_count++] = decoded;
    return true;
}

static bool read_pairs(struct look *look)
{
    struct bytes rest = look->header;
    while (rest.len > 0) {
        struct bytes value = bytes_cut(&rest, memchr(rest.at, ';', rest.len) != NULL ? ';' : ','),
                     name = bytes_trim(bytes_cut(&value, '='));
        if (bytes_eq(name, look->rule->prefix) && !add_signature(look, bytes_trim(value)))
            return false;
    }
    return true;
}

static bool read_list(struct look *look)
{
    struct bytes rest = look->header;
    while (rest.len > 0) {
        struct bytes value = bytes_cut(&rest, ' '), version = bytes_cut(&value, ',');
        if (bytes_eq(version, look->rule->prefix) && !add_signature(look, value))
            return false;
    }
    return true;
}

static bool read_signatures(struct look *look)
{
    const struct verify_rule *rule = look->rule;
    bool good = true;
    if (!place_text(look, rule->signature, &look->header))
        return false;
    look->present = true;
    switch (rule->grammar) {
    case GRAMMAR_PLAIN:
        good = add_signature(look, look->header);
        break;
    case GRAMMAR_PREFIX:
        good = !bytes_starts(look->header, rule->prefix) || add_signature(look, bytes_from(look->header, rule->prefix.len));
        break;
    case GRAMMAR_PAIRS:
        good = read_pairs(look);
        break;
    case GRAMMAR_LIST:
        good = read_list(look);
        break;
    }
    if (good && look->signature_count == 0)
        return deny(look, "%.*s holds no signature of the right form", place_name(look, rule->signature));
    return good;
}

/* ---- time ---- */

/* A pair of the signatures' header: once, or nobody knows which one counts. */
static bool pair_text(struct look *look, struct bytes name, struct bytes *ret)
{
    struct bytes rest = look->header, found = BYTES_NONE;
    while (rest.len > 0) {
        struct bytes value = bytes_cut(&rest, memchr(rest.at, ';', rest.len) != NULL ? ';' : ',');
        if (!bytes_eq(bytes_trim(bytes_cut(&value, '=')), name))
            continue;
        if (found.at != NULL)
            return deny(look, "%.*s has two timestamps", place_name(look, look->rule->signature));
        found = bytes_trim(value);
    }
    *ret = found;
    return found.len > 0 || deny(look, "%.*s has no timestamp", place_name(look, look->rule->signature));
}

/* Seconds, or milliseconds where there are so many digits. */
static bool time_us(struct bytes text, int64_t *ret_us)
{
    uint64_t n;
    if (text.len > 13 || !bytes_to_u64(text, &n))
        return false;
    *ret_us = (int64_t)n * (text.len > 11 ? WHEN_MS : WHEN_SECOND);
    return true;
}

static bool check_time(struct look *look)
{
    int64_t at_us, away_us, allowed_us = look->rule->tolerance_us;
    if (look->rule->time.at == NULL)
        return true;
    bool found = bytes_starts(look->rule->time, BYTES("pair.")) ? pair_text(look, bytes_from(look->rule->time, 5), &look->time)
                                                                : place_text(look, look->rule->time, &look->time);
    if (!found)
        return false;
    if (!time_us(look->time, &at_us))
        return deny(look, "%.*s is no number", BYTES("the timestamp"));
    away_us = look->scope->request->now_us - at_us;
    if (allowed_us == 0 || (away_us <= allowed_us && away_us >= -allowed_us))
        return true;
    look->because = arena_printf(look->scope->arena, "timestamp is %lld s %s, %lld s are allowed",
                                 (long long)((away_us < 0 ? -away_us : away_us) / WHEN_SECOND),
                                 away_us < 0 ? "in the future" : "old", (long long)(allowed_us / WHEN_SECOND));
    return false;
}

/* ---- the signed bytes ---- */

static int params_by_name(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    int order = bytes_cmp(x->name, y->name);
    return order != 0 ? order : bytes_cmp(x->value, y->value);
}

/* Name and value of each field, sorted; the same field twice counts once. */
static void add_params(struct scope *scope, struct buf *out)
{
    struct pair *sorted = arena_zalloc(scope->arena, scope->form_count + 1, sizeof *sorted);
    if (sorted == NULL || !scope->is_form) {
        scope->no_memory |= sorted == NULL;
        return;
    }
    memcpy(sorted, scope->form, scope->form_count * sizeof *sorted);
    if (scope->form_count > 0)
        qsort(sorted, scope->form_count, sizeof *sorted, params_by_name);
    for (size_t i = 0; i < scope->form_count; i++) {
        if (i > 0 && params_by_name(&sorted[i - 1], &sorted[i]) == 0)
            continue;
        buf_add(out, sorted[i].name);
        buf_add(out, sorted[i].value);
    }
}

struct signed_values {
    struct scope *scope;
    struct bytes url, id, time, secret;
};

static struct bytes signed_value(const struct signed_values *values, struct bytes name)
{
    struct scope *scope = values->scope;
    const struct {
        const char *name;
        struct bytes value;
    } known[] = {
        {"id", values->id},         {"ts", values->time},
        {"url", values->url},       {"method", scope->request->method},
        {"secret", values->secret}, {"body", scope->request->body.at != NULL ? scope->request->body : BYTES("")},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (bytes_is(name, known[i].name))
            return known[i].value;
    if (bytes_starts(name, BYTES("header:")))
        return scope_header(scope, bytes_from(name, 7), NULL);
    return bytes_starts(name, BYTES("field:")) ? scope_text(scope, bytes_from(name, 6)) : BYTES_NONE;
}

struct bytes verify_signed(const struct verify_rule *rule, struct scope *scope, struct bytes url, struct bytes id,
                           struct bytes time, struct bytes secret, struct bytes *ret_missing)
{
    const struct signed_values values = {scope, url, id, time, secret};
    struct bytes rest = rule->signs, made = BYTES_NONE;
    bool hashed = rule->body_hash.at != NULL && scope_text(scope, rule->body_hash).at != NULL;
    struct buf out;
    buf_init(&out, SOURCE_BODY_MAX + (64 << 10));
    out.wipe = true;
    *ret_missing = BYTES_NONE;
    while (rest.len > 0 && ret_missing->at == NULL) {
        struct bytes literal = bytes_cut(&rest, '{'), name = bytes_cut(&rest, '}');
        buf_add(&out, literal);
        if (bytes_is(name, "sorted_params")) {
            if (!hashed)
                add_params(scope, &out);
            continue;
        }
        struct bytes value = name.len > 0 ? signed_value(&values, name) : BYTES("");
        if (value.at == NULL)
            *ret_missing = name;
        else
            buf_add(&out, value);
    }
    if (ret_missing->at == NULL && !out.failed)
        made = arena_dup(scope->arena, buf_bytes(&out));
    scope->no_memory |= ret_missing->at == NULL && made.at == NULL;
    buf_release(&out);
    return made;
}

bool signs_is_good(struct bytes text, bool *ret_covers)
{
    static const char *const names[] = {"id", "ts", "body", "url", "method", "sorted_params", "secret"};
    *ret_covers = false;
    while (text.len > 0) {
        struct bytes before = text, literal = bytes_cut(&text, '{');
        if (memchr(literal.at, '}', literal.len) != NULL)
            return false;
        if (literal.len == before.len)
            return true;
        const char *close = text.len > 0 ? memchr(text.at, '}', text.len) : NULL;
        if (close == NULL)
            return false;
        struct bytes name = bytes_cut(&text, '}');
        bool known =
            (bytes_starts(name, BYTES("field:")) && name.len > 6) || (bytes_starts(name, BYTES("header:")) && name.len > 7);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            known |= bytes_is(name, names[i]);
        if (!known)
            return false;
        *ret_covers |= bytes_is(name, "body") || bytes_is(name, "sorted_params");
    }
    return true;
}

/* ---- the URL, with and without its port ---- */

/* Some senders sign the usual port, and some leave it out. */
static bool list_urls(struct look *look)
{
    struct bytes url = look->scope->url, rest = url;
    look->urls[look->url_count++] = url;
    bool tls = bytes_starts(url, BYTES("https://")), plain = bytes_starts(url, BYTES("http://"));
    if (memmem(look->rule->signs.at, look->rule->signs.len, "{url}", 5) == NULL || (!tls && !plain))
        return true;
    rest = bytes_from(url, tls ? 8 : 7);
    size_t len = 0;
    while (len < rest.len && strchr("/?", rest.at[len]) == NULL)
        len++;
    struct bytes host = {rest.at, len}, behind = bytes_from(rest, len), scheme = {url.at, tls ? 8 : 7};
    const char *bracket = host.at != NULL ? memrchr(host.at, ']', len) : NULL;
    const char *colon = host.at != NULL ? memrchr(host.at, ':', len) : NULL;
    struct bytes other;
    if (colon != NULL && colon > bracket)
        other = arena_printf(look->scope->arena, "%.*s%.*s%.*s", BYTES_ARG(scheme), (int)(colon - host.at), host.at,
                             BYTES_ARG(behind));
    else
        other = arena_printf(look->scope->arena, "%.*s%.*s:%d%.*s", BYTES_ARG(scheme), BYTES_ARG(host), tls ? 443 : 80,
                             BYTES_ARG(behind));
    look->urls[look->url_count++] = other;
    return other.at != NULL;
}

/* ---- the body, where only its hash is signed ---- */

static bool check_body(struct look *look)
{
    const struct verify_rule *rule = look->rule;
    bool params = memmem(rule->signs.at, rule->signs.len, "{sorted_params}", 15) != NULL;
    struct bytes given = rule->body_hash.at != NULL ? scope_text(look->scope, rule->body_hash) : BYTES_NONE;
    if (!params)
        return true;
    if (given.at == NULL)
        return look->scope->is_form || look->scope->request->body.len == 0 ||
               deny(look, "the body is not covered by the signature: it is no form%.*s", BYTES(""));
    struct hash hash = hash_sha256(look->scope->request->body);
    struct bytes decoded = cipher_decode(VERIFY_HEX, given, look->scope->arena);
    return (decoded.at != NULL && hash_equal(decoded, hash_bytes(&hash))) ||
           deny(look, "the body does not have the hash that %.*s says", place_name(look, rule->body_hash));
}

/* ---- the comparison ---- */

static bool is_public(enum verify_alg alg)
{
    return alg == VERIFY_ECDSA || alg == VERIFY_ED25519;
}

static bool signature_fits(struct look *look, struct bytes key, struct bytes data, struct bytes given)
{
    char made[CIPHER_SIZE_MAX];
    size_t len = 0;
    if (is_public(look->rule->alg))
        return cipher_holds(look->rule->alg, key, data, given);
    if (!cipher_make(look->rule->alg, key, data, made, &len))
        return false;
    struct hash hash = {{0}};
    if (look->rule->alg == VERIFY_EQUAL || look->rule->alg == VERIFY_BASIC) {
        hash = hash_sha256(given);
        given = hash_bytes(&hash);
    }
    return hash_equal((struct bytes){made, len}, given);
}

/* What was made of a secret does not stay in the arena. */
static void forget(struct bytes made)
{
    if (made.len > 0)
        explicit_bzero((char *)(uintptr_t)made.at, made.len);
}

static bool key_fits(struct look *look, struct bytes secret, struct bytes key)
{
    bool fits = false;
    struct bytes missing;
    for (size_t u = 0; u < look->url_count && !fits; u++) {
        struct bytes data = verify_signed(look->rule, look->scope, look->urls[u], look->id, look->time, secret, &missing);
        if (data.at == NULL)
            return missing.at != NULL && deny(look, "the signed value '%.*s' is missing", missing);
        for (size_t s = 0; s < look->signature_count && !fits; s++)
            fits = signature_fits(look, key, data, look->signatures[s]);
        if (memmem(look->rule->signs.at, look->rule->signs.len, "{secret}", 8) != NULL)
            forget(data);
    }
    return fits;
}

static bool secret_fits(struct look *look, struct bytes secret, bool *ret_usable)
{
    struct bytes key = cipher_key(look->rule, secret, look->scope->arena);
    if (key.at == NULL)
        return false;
    *ret_usable = true;
    bool fits = key_fits(look, secret, key);
    if (key.at < secret.at || key.at > secret.at + secret.len) /* it was decoded */
        forget(key);
    return fits;
}

static bool any_secret_fits(struct look *look, const struct bytes *secrets, size_t count)
{
    bool usable = false;
    for (size_t i = 0; i < count; i++)
        if (secret_fits(look, secrets[i], &usable))
            return true;
    if (!usable)
        return deny(look, "no secret can be used: each is empty, missing or not in its form%.*s", BYTES(""));
    if (look->because.at == NULL)
        return deny(look, "the signature in %.*s does not fit the secret", place_name(look, look->rule->signature));
    return false;
}

static bool check_basic(struct look *look)
{
    return look->rule->alg != VERIFY_BASIC || look->signature_count == 0 ||
           memchr(look->signatures[0].at, ':', look->signatures[0].len) != NULL ||
           deny(look, "%.*s has no ':'", BYTES("the login"));
}

static bool needs_body(const struct verify_rule *rule)
{
    return memmem(rule->signs.at, rule->signs.len, "{sorted_params}", 15) != NULL ||
           memmem(rule->signs.at, rule->signs.len, "{field:", 7) != NULL || bytes_starts(rule->signature, BYTES("body.")) ||
           (rule->nonce.at != NULL && bytes_starts(rule->nonce, BYTES("body."))) ||
           (rule->time.at != NULL && bytes_starts(rule->time, BYTES("body.")));
}

static bool try_rule(struct look *look, const struct bytes *secrets, size_t count, struct bytes *ret_nonce)
{
    const struct verify_rule *rule = look->rule;
    if (!read_signatures(look) || !check_time(look) || !check_basic(look))
        return false;
    if (rule->id.at != NULL && !place_text(look, rule->id, &look->id))
        return false;
    *ret_nonce = BYTES_NONE;
    if (!rule->covers_body && rule->nonce.at != NULL && !place_text(look, rule->nonce, ret_nonce))
        return false;
    return list_urls(look) && check_body(look) && any_secret_fits(look, secrets, count);
}

enum status verify_delivery(const struct source *source, const struct bytes *secrets, struct scope *scope, struct verified *ret,
                            struct why *why)
{
    struct bytes because = BYTES("nothing was signed");
    bool told = false;
    *ret = (struct verified){.good = source->verify_none};
    for (size_t i = 0; !source->verify_none && i < source->rule_count && !ret->good; i++) {
        struct look look = {.rule = &source->rules[i], .scope = scope};
        if (needs_body(look.rule)) {
            enum status status = body_read(source->reads, scope, NULL);
            if (status != OK &&
                status != INVALID) /* a form that cannot be read has no fields, and then the signature cannot hold */
                return why_set(why, status, "there is no memory for the body");
        }
        ret->good = try_rule(&look, secrets, source->signing_count, &ret->nonce);
        if (scope->no_memory || scope->arena->failed)
            return why_set(why, FULL, "there is no memory to check the signature");
        ret->rule = ret->good ? look.rule : NULL;
        if (!told && look.because.at != NULL) {
            because = look.because;
            told = look.present;
        }
    }
    ret->because = ret->good ? BYTES("the signature is right") : because;
    if (source->verify_none)
        ret->because = BYTES("nothing is verified, as the policy says");
    return OK;
}
