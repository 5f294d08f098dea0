#include "mcp/key.h"

#define KEY_ARGUMENT "idempotency_key"
#define CANONICAL_MAX (2 * MCP_LINE_MAX)
#define TOOL_SHOWN_MAX 128
#define SCOPE_SHOWN_MAX 256

/* ---- what a call is ---- */

static enum status no_memory(struct why *why)
{
    return why_set(why, FULL, "the call needs too much memory");
}

static enum status canonical(const struct json *json, struct arena *arena, struct bytes *ret, struct why *why)
{
    struct buf out;
    buf_init(&out, CANONICAL_MAX);
    enum status status = json_canonical(json, arena, &out, why);
    if (status == OK) {
        *ret = arena_dup(arena, buf_bytes(&out));
        status = ret->at != NULL ? OK : no_memory(why);
    }
    buf_release(&out);
    return status;
}

/* The arguments of those names; what is missing is left out. */
static enum status choose(const struct json *arguments, const struct bytes *names, size_t count, struct arena *arena,
                          struct json *ret, struct why *why)
{
    struct json_member *members = arena_zalloc(arena, count, sizeof *members);
    if (members == NULL)
        return no_memory(why);
    *ret = (struct json){.type = JSON_OBJECT, .members = members};
    for (size_t i = 0; i < count; i++) {
        const struct json *value = json_find(arguments, names[i]);
        if (value != NULL)
            members[ret->count++] = (struct json_member){names[i], *value};
    }
    return OK;
}

static enum status without_key(const struct json *arguments, struct arena *arena, struct json *ret, struct why *why)
{
    struct json_member *members = arena_zalloc(arena, arguments->count + 1, sizeof *members);
    if (members == NULL)
        return no_memory(why);
    *ret = (struct json){.type = JSON_OBJECT, .members = members};
    for (uint32_t i = 0; i < arguments->count; i++)
        if (!bytes_is(arguments->members[i].name, KEY_ARGUMENT))
            members[ret->count++] = arguments->members[i];
    return OK;
}

/* The arguments that count: those of the rules, when the call has at least one of them. */
static enum status identity_arguments(const struct json *arguments, const struct mcp_treatment *treatment, struct arena *arena,
                                      struct json *ret, struct why *why)
{
    if (treatment->key_count > 0) {
        TRY(choose(arguments, treatment->key, treatment->key_count, arena, ret, why));
        if (ret->count > 0)
            return OK;
    }
    return without_key(arguments, arena, ret, why);
}

static enum status take_given(struct bytes key, struct mcp_identity *ret, struct why *why)
{
    if (key.len == 0 || key.len > MCP_GIVEN_KEY_MAX || memchr(key.at, 0, key.len) != NULL)
        return why_set(why, INVALID, "the idempotency key has to be a text of 1 to %d bytes without U+0000", MCP_GIVEN_KEY_MAX);
    ret->given = key;
    return OK;
}

enum status mcp_identify(const struct mcp_call *call, const struct mcp_treatment *treatment, struct bytes server,
                         struct arena *arena, struct mcp_identity *ret, struct why *why)
{
    static const struct json none = {.type = JSON_OBJECT};
    const struct json *arguments = call->arguments != NULL ? call->arguments : &none;
    const struct json *argument = json_get(arguments, BYTES(KEY_ARGUMENT));
    struct mcp_identity identity = {.given = BYTES_NONE, .input = BYTES_NONE};
    struct json counted;
    struct bytes text;
    if (call->key.at != NULL)
        TRY(take_given(call->key, &identity, why));
    else if (argument != NULL && argument->type == JSON_STRING)
        TRY(take_given(argument->text, &identity, why));
    TRY(identity_arguments(arguments, treatment, arena, &counted, why));
    TRY(canonical(&counted, arena, &text, why));
    const struct bytes parts[] = {server, call->tool, text};
    identity.content = hash_parts(parts, sizeof parts / sizeof *parts);
    if (identity.given.at != NULL)
        identity.input = text;
    *ret = identity;
    return OK;
}

/* Names go into keys that people read: what would not print is left out, and they do not get long. */
static struct bytes shown(struct bytes text, size_t size_max, struct arena *arena)
{
    size_t len = 0, most = text.len < size_max ? text.len : size_max;
    char *at = arena_alloc(arena, most + 1);
    if (at == NULL)
        return BYTES("");
    for (size_t i = 0; i < most; i++)
        if (text.at[i] > ' ' && text.at[i] < 0x7f)
            at[len++] = text.at[i];
    return (struct bytes){at, len};
}

struct bytes mcp_key_text(const struct mcp_identity *identity, struct bytes scope, struct bytes tool, int64_t occurrence,
                          struct arena *arena)
{
    char hex[32];
    struct bytes name = shown(tool, TOOL_SHOWN_MAX, arena), run = shown(scope, SCOPE_SHOWN_MAX, arena);
    /* The scope is hashed too: what was left out of its shown form must still make a difference. */
    const struct bytes parts[] = {scope, hash_bytes(&identity->content)};
    struct hash whole = hash_parts(parts, 2);
    if (identity->given.at != NULL)
        return arena_printf(arena, "given:%.*s:%.*s", BYTES_ARG(name), BYTES_ARG(identity->given));
    bytes_to_hex((struct bytes){(const char *)whole.at, sizeof hex / 2}, hex);
    if (occurrence <= 1)
        return arena_printf(arena, "%.*s:%.*s:%.*s", BYTES_ARG(run), BYTES_ARG(name), (int)sizeof hex, hex);
    return arena_printf(arena, "%.*s:%.*s:%.*s#%lld", BYTES_ARG(run), BYTES_ARG(name), (int)sizeof hex, hex,
                        (long long)occurrence);
}
