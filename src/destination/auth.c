/* What carries the secret: headers, a login, or the URL. Made at send time; nothing here keeps or repeats a secret. */
#include "base/base64.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/when.h"
#include "destination/destination.h"

enum { SECRET_SIZE_MAX = 8192 };

const char *const auth_kind_names[] = {"none", "bearer", "basic", "header", "path", "webhook", NULL};

/* ---- headers ---- */

static enum status check_secret(struct bytes secret, struct why *why)
{
    if (secret.len > SECRET_SIZE_MAX)
        return why_set(why, INVALID, "the secret has more than %d bytes", SECRET_SIZE_MAX);
    for (size_t i = 0; i < secret.len; i++)
        if ((unsigned char)secret.at[i] < 0x20 || secret.at[i] == 0x7F)
            return why_set(why, INVALID, "the secret holds a control character, perhaps a line break; it must be one line");
    return OK;
}

static void add_base64(struct buf *out, struct bytes data)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < data.len; i += 3) {
        uint32_t block = 0;
        for (size_t k = 0; k < 3; k++)
            block = block << 8 | (i + k < data.len ? (uint8_t)data.at[i + k] : 0U);
        for (size_t k = 0; k < 4; k++)
            buf_add_char(out, i + k <= data.len ? alphabet[block >> (18 - 6 * k) & 63] : '=');
    }
}

static struct bytes basic_value(const struct auth *auth, struct bytes secret, struct arena *arena)
{
    struct bytes login = secret;
    struct buf out;
    if (auth->user.len > 0)
        login = arena_printf(arena, "%.*s:%.*s", BYTES_ARG(auth->user), BYTES_ARG(secret));
    else if (memchr(secret.at, ':', secret.len) == NULL)
        login = arena_printf(arena, "%.*s:", BYTES_ARG(secret)); /* a key alone is the user, as many providers have it */
    if (login.at == NULL)
        return BYTES_NONE;
    buf_init(&out, 4 * SECRET_SIZE_MAX);
    buf_add_cstr(&out, "Basic ");
    add_base64(&out, login);
    struct bytes value = out.failed ? BYTES_NONE : arena_dup(arena, buf_bytes(&out));
    buf_release(&out);
    return value;
}

/* ---- Standard Webhooks ---- */

static struct bytes header_of(const struct effect_request *request, const char *name)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (bytes_eq_nocase(request->headers[i].name, bytes_of(name)))
            return request->headers[i].value;
    return BYTES_NONE;
}

/* The same at every attempt, so that the receiver can tell a repetition; another one when it is sent again on purpose. */
static struct bytes webhook_id(const struct signing *signing, struct arena *arena)
{
    struct bytes event = header_of(signing->request, "Semel-Event-Id"), replay = header_of(signing->request, "Semel-Replay");
    if (event.len == 0)
        return signing->id;
    return replay.len > 0 ? arena_printf(arena, "%.*s~replay-%.*s", BYTES_ARG(event), BYTES_ARG(replay)) : event;
}

/* "v1," and the HMAC in base64. A secret without the prefix is the key itself. */
static enum status add_signature(struct bytes secret, struct bytes content, struct arena *arena, struct buf *out, struct why *why)
{
    struct bytes key = secret;
    if (bytes_starts(secret, BYTES("whsec_")))
        key = base64_decode(bytes_from(secret, 6), arena);
    if (key.at == NULL || key.len == 0)
        return why_set(why, INVALID, "the secret is whsec_ and base64, as the receiver has it");
    struct hash hash = hash_hmac_sha256(key, content);
    buf_add_cstr(out, out->len > 0 ? " v1," : "v1,");
    add_base64(out, hash_bytes(&hash));
    return OK;
}

/* Several secrets with a space between them are all signed with, while the receiver changes from one to the other. */
static enum status sign_all(struct bytes secrets, struct bytes content, struct arena *arena, struct bytes *ret, struct why *why)
{
    struct buf out;
    enum status status = OK;
    buf_init(&out, 4 * SECRET_SIZE_MAX);
    while (secrets.len > 0 && status == OK) {
        struct bytes secret = bytes_cut(&secrets, ' ');
        if (secret.len > 0)
            status = add_signature(secret, content, arena, &out, why);
    }
    *ret = out.failed ? BYTES_NONE : arena_dup(arena, buf_bytes(&out));
    buf_release(&out);
    return status;
}

static enum status sign_webhook(const struct signing *signing, struct bytes secrets, struct arena *arena,
                                struct pair *ret_headers, size_t *ret_count, struct why *why)
{
    struct bytes id = webhook_id(signing, arena), body = signing->request->body, signature = BYTES_NONE;
    struct bytes at = arena_printf(arena, "%lld", (long long)(signing->now_us / WHEN_SECOND));
    char *content = arena_alloc(arena, id.len + at.len + 2 + body.len);
    if (id.at == NULL || at.at == NULL || content == NULL)
        return why_set(why, FULL, "there is no memory for the signature");
    char *end = content;
    const struct bytes parts[] = {id, BYTES("."), at, BYTES("."), body};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].len > 0)
            memcpy(end, parts[i].at, parts[i].len);
        end += parts[i].len;
    }
    TRY(sign_all(secrets, (struct bytes){content, (size_t)(end - content)}, arena, &signature, why));
    if (signature.at == NULL)
        return why_set(why, FULL, "there is no memory for the signature");
    ret_headers[0] = (struct pair){BYTES("webhook-id"), id};
    ret_headers[1] = (struct pair){BYTES("webhook-timestamp"), at};
    ret_headers[2] = (struct pair){BYTES("webhook-signature"), signature};
    *ret_count = 3;
    return OK;
}

enum status destination_authorize(const struct destination *destination, struct bytes secret, const struct signing *signing,
                                  struct arena *arena, struct pair *ret_headers, size_t *ret_count, struct why *why)
{
    const struct auth *auth = &destination->auth;
    struct pair header = {BYTES("Authorization"), BYTES_NONE};
    if (auth->kind == AUTH_NONE || auth->kind == AUTH_PATH || secret.len == 0) {
        *ret_count = 0;
        return OK;
    }
    TRY(check_secret(secret, why));
    if (auth->kind == AUTH_WEBHOOK)
        return sign_webhook(signing, secret, arena, ret_headers, ret_count, why);
    if (auth->kind == AUTH_BEARER) {
        header.value = arena_printf(arena, "Bearer %.*s", BYTES_ARG(secret));
    } else if (auth->kind == AUTH_BASIC) {
        header.value = basic_value(auth, secret, arena);
    } else {
        header.name = auth->header;
        header.value = arena_printf(arena, "%.*s%.*s", (int)auth->prefix.len, auth->prefix.len > 0 ? auth->prefix.at : "",
                                    BYTES_ARG(secret));
    }
    if (header.value.at == NULL)
        return why_set(why, FULL, "there is no memory for the authorization");
    ret_headers[0] = header;
    *ret_count = 1;
    return OK;
}

enum status destination_login(const struct destination *destination, struct bytes secret, struct arena *arena,
                              struct bytes *ret_user, struct bytes *ret_password, struct why *why)
{
    struct bytes user = destination->auth.user, password = secret;
    if (secret.len == 0) {
        *ret_user = *ret_password = BYTES_NONE;
        return OK;
    }
    TRY(check_secret(secret, why));
    if (user.len == 0) {
        if (memchr(secret.at, ':', secret.len) == NULL)
            return why_set(why, INVALID, "the secret of '%.*s' is user:password, or add user: to the destination",
                           BYTES_ARG(destination->name));
        user = bytes_cut(&password, ':');
    }
    user = arena_dup(arena, user);
    password = arena_dup(arena, password);
    if (user.at == NULL || password.at == NULL)
        return why_set(why, FULL, "there is no memory for the login");
    *ret_user = user;
    *ret_password = password;
    return OK;
}

/* ---- the URL ---- */

/* A path that stays below the base: no space, no control character, no fragment, no way up. */
static bool is_safe_path(struct bytes path)
{
    for (size_t i = 0; i < path.len; i++) {
        unsigned char c = (unsigned char)path.at[i];
        if (c <= 0x20 || c >= 0x7F || c == '#' || c == '\\')
            return false;
    }
    struct bytes rest = path, before_query = bytes_cut(&rest, '?');
    while (before_query.len > 0) {
        struct bytes part = bytes_cut(&before_query, '/');
        if (bytes_is(part, "..") || bytes_is(part, "."))
            return false;
    }
    return true;
}

/* The part of the path that is secret, without '/' around it. The whole URL may have been given, as providers show it. */
static enum status secret_path(const struct destination *destination, struct bytes secret, struct bytes *ret, struct why *why)
{
    if (bytes_starts(secret, destination->url))
        secret = bytes_from(secret, destination->url.len);
    while (secret.len > 0 && secret.at[0] == '/')
        secret = bytes_from(secret, 1);
    while (secret.len > 0 && secret.at[secret.len - 1] == '/')
        secret.len--;
    if (secret.len == 0 || secret.len > SECRET_SIZE_MAX || !is_safe_path(secret) ||
        memmem(secret.at, secret.len, "://", 3) != NULL)
        return why_set(why, INVALID, "the secret of '%.*s' is the rest of the URL behind %.*s/", BYTES_ARG(destination->name),
                       BYTES_ARG(destination->url));
    *ret = secret;
    return OK;
}

enum status destination_url(const struct destination *destination, struct bytes secret, struct bytes path, struct arena *arena,
                            struct bytes *ret_url, struct why *why)
{
    struct bytes url, hidden = BYTES(""), slash = BYTES("");
    if (path.len == 0 || path.at[0] != '/' || !is_safe_path(path))
        return why_set(why, INVALID, "a path begins with '/' and has no spaces, no '#', no '.' or '..' as a part");
    if (destination->auth.kind == AUTH_PATH) {
        TRY(secret_path(destination, secret, &hidden, why));
        slash = BYTES("/");
        if (bytes_is(path, "/"))
            path = BYTES("");
    }
    url = arena_printf(arena, "%.*s%.*s%.*s%.*s", BYTES_ARG(destination->url), BYTES_ARG(slash), BYTES_ARG(hidden),
                       BYTES_ARG(path));
    if (url.at == NULL)
        return why_set(why, FULL, "there is no memory for the URL");
    *ret_url = url;
    return OK;
}
