#include <stdio.h>

#include "api/forward.h"
#include "base/percent.h"
#include "destination/header.h"

#define HEADER_KEY_MAX 255
#define FORM_FIELDS_MAX 1000

/* ---- forms as JSON, for key templates: a[b]=c is {"a":{"b":"c"}} ---- */

static struct json *member_of(struct json *object, struct bytes name, struct arena *arena)
{
    for (uint32_t i = 0; i < object->count; i++)
        if (bytes_eq(object->members[i].name, name))
            return &object->members[i].value;
    struct json_member *members = arena_zalloc(arena, object->count + 1, sizeof *members);
    if (members == NULL)
        return NULL;
    if (object->count > 0)
        memcpy(members, object->members, object->count * sizeof *members);
    members[object->count].name = name;
    object->members = members;
    return &object->members[object->count++].value;
}

/* "metadata[order][id]" step by step; a field that is both a value and a group stays what it was first. */
static bool put_field(struct json *object, struct bytes name, struct bytes value, struct arena *arena)
{
    struct bytes rest = name, part = bytes_cut(&rest, '[');
    for (;;) {
        struct json *member = member_of(object, part, arena);
        if (member == NULL)
            return false;
        if (rest.len == 0) {
            if (member->type == JSON_NULL)
                *member = (struct json){.type = JSON_STRING, .text = value, .raw = value};
            return true;
        }
        if (member->type == JSON_NULL)
            *member = (struct json){.type = JSON_OBJECT};
        if (member->type != JSON_OBJECT)
            return true;
        object = member;
        part = bytes_cut(&rest, ']');
        if (rest.len > 0 && rest.at[0] == '[')
            rest = bytes_from(rest, 1);
    }
}

static bool decode(struct bytes text, struct arena *arena, struct bytes *ret)
{
    char *at = arena_alloc(arena, text.len + 1);
    size_t len;
    if (at == NULL || !percent_decode(text, true, at, &len))
        return false;
    *ret = (struct bytes){at, len};
    return true;
}

static bool read_form(struct bytes body, struct arena *arena, struct json *ret)
{
    int count = 0;
    *ret = (struct json){.type = JSON_OBJECT};
    while (body.len > 0) {
        struct bytes pair = bytes_cut(&body, '&'), name = bytes_cut(&pair, '='), value;
        if (++count > FORM_FIELDS_MAX || !decode(name, arena, &name) || !decode(pair, arena, &value) ||
            !put_field(ret, name, value, arena))
            return false;
    }
    return true;
}

/* The body as something a template can look into; false when it is neither JSON nor a form. */
static bool read_body(const struct forward *forward, struct arena *arena, struct json *ret)
{
    struct bytes type = header_find(forward->request.headers, forward->request.header_count, BYTES("content-type"));
    struct why why;
    struct bytes kind = bytes_trim(bytes_cut(&type, ';'));
    if (bytes_eq_nocase(kind, BYTES("application/x-www-form-urlencoded")))
        return read_form(forward->request.body, arena, ret);
    return forward->request.body.len > 0 && json_parse(forward->request.body, NULL, arena, ret, &why) == OK;
}

/* ---- the key ---- */

/* RFC 8941 text in quotes, or bare as most clients send it: the same key either way. */
static bool read_key_header(struct call *call, const char *name, struct bytes value, struct bytes *ret_key)
{
    bool quoted = value.len >= 2 && value.at[0] == '"' && value.at[value.len - 1] == '"';
    char *at = arena_alloc(call->request->arena, value.len + 1);
    size_t len = 0, end = quoted ? value.len - 1 : value.len;
    bool good = at != NULL && value.len > 0;
    for (size_t i = quoted ? 1 : 0; good && i < end; i++) {
        if (quoted && value.at[i] == '\\' && i + 1 < end)
            i++;
        good = value.at[i] >= ' ' && value.at[i] < 0x7f;
        at[len++] = value.at[i];
    }
    if (good && len > 0 && len <= HEADER_KEY_MAX) {
        *ret_key = (struct bytes){at, len};
        return true;
    }
    struct bytes field = bytes_of(name);
    problem_field(call, field, "%s has to be 1 to %d printable ASCII characters, with or without quotes.", name, HEADER_KEY_MAX);
    return false;
}

static bool fill_template(struct forward *forward, struct bytes *ret_key)
{
    struct call *call = forward->call;
    struct env *env = engine_env(call->api->engine);
    struct json body;
    struct bytes field;
    struct why why;
    return forward->destination->key != NULL && read_body(forward, call->request->arena, &body) &&
           key_template_fill(forward->destination->key, &body, env->wall_us(env), call->request->arena, ret_key, &field, &why) ==
               OK;
}

/* The contents themselves, within something that the user has set: a run, or a stretch of time. */
static struct bytes key_of_contents(struct forward *forward, struct bytes scope)
{
    const struct effect_request *request = &forward->request;
    const struct bytes parts[] = {scope, request->method, request->path, request->body};
    struct hash hash = hash_parts(parts, sizeof parts / sizeof *parts);
    char hex[32];
    bytes_to_hex((struct bytes){(const char *)hash.at, 16}, hex);
    return arena_printf(forward->call->request->arena, "%.*s:%.*s", BYTES_ARG(scope), (int)sizeof hex, hex);
}

static bool choose_key(struct forward *forward, struct bytes run, struct bytes *ret_key, bool *ret_window)
{
    struct call *call = forward->call;
    struct bytes own = http_header(&call->request->head, "semel-key"),
                 header = http_header(&call->request->head, "idempotency-key");
    if (own.at != NULL)
        return read_key_header(call, "Semel-Key", own, ret_key);
    if (fill_template(forward, ret_key))
        return true;
    if (header.at != NULL)
        return read_key_header(call, "Idempotency-Key", header, ret_key);
    if (run.at != NULL) {
        *ret_key = key_of_contents(forward, run);
        return true;
    }
    if (forward->destination->repeat_window_us > 0) {
        *ret_key = key_of_contents(forward, BYTES("same"));
        *ret_window = true;
        return true;
    }
    problem(call, "key_required",
            "This call changes something, and nothing says whether another one like it is the same. Send Idempotency-Key or "
            "Semel-Run, or give the "
            "destination a key template or a repeat_window in the policy.");
    return false;
}

/* ---- what it stands for ---- */

static void add_contents(struct json_out *out, const struct json *body)
{
    for (uint32_t i = 0; i < body->count; i++) {
        char name[200];
        int len = snprintf(name, sizeof name, "body.%.*s",
                           (int)(body->members[i].name.len < 150 ? body->members[i].name.len : 150), body->members[i].name.at);
        json_name_bytes(out, (struct bytes){name, (size_t)len});
        json_raw(out, body->members[i].value.raw);
    }
}

/* {"method":…,"path":…,"body.amount":…}: so that a mismatch can name the field. Anything but a JSON object counts as a whole. */
static bool make_input(struct forward *forward, struct json *ret_input)
{
    struct arena *arena = forward->call->request->arena;
    const struct effect_request *request = &forward->request;
    struct json body;
    struct why why;
    struct buf buf;
    buf_init(&buf, 16u << 20);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    json_name(&out, "method");
    json_text(&out, request->method);
    json_name(&out, "path");
    json_text(&out, request->path);
    bool object = json_parse(request->body.len > 0 ? request->body : BYTES("{}"), NULL, arena, &body, &why) == OK &&
                  body.type == JSON_OBJECT && body.count <= FINGERPRINT_FIELDS_MAX - 2;
    if (object) {
        add_contents(&out, &body);
    } else {
        struct hash hash = hash_sha256(request->body);
        char hex[2 * HASH_SIZE];
        bytes_to_hex(hash_bytes(&hash), hex);
        json_name(&out, "body");
        json_text(&out, (struct bytes){hex, sizeof hex});
    }
    json_close(&out, '}');
    struct bytes text = buf.failed ? BYTES_NONE : arena_dup(arena, buf_bytes(&buf));
    buf_release(&buf);
    if (text.at != NULL && json_parse(text, NULL, arena, ret_input, &why) == OK)
        return true;
    /* Two long names may be cut to one, or the body nests too deep with ours around it: then it counts as a whole. */
    struct hash hash = hash_sha256(request->body);
    char hex[2 * HASH_SIZE + 1] = "";
    bytes_to_hex(hash_bytes(&hash), hex);
    text = arena_printf(arena, "{\"body\":\"%s\"}", hex);
    return text.at != NULL && json_parse(text, NULL, arena, ret_input, &why) == OK;
}

bool forward_name(struct forward *forward, struct ledger_command *ret_claim)
{
    struct call *call = forward->call;
    struct bytes run = http_header(&call->request->head, "semel-run"),
                 workflow = http_header(&call->request->head, "semel-workflow");
    struct json input;
    struct claim_naming naming = {
        .workflow = workflow.at != NULL ? workflow : forward->destination->name,
        .run = run,
        .thread = http_header(&call->request->head, "semel-thread"),
        .action = http_header(&call->request->head, "semel-action"),
        .input = &input,
    };
    bool window = false;
    if (!choose_key(forward, run, &naming.key, &window))
        return false;
    if (naming.key.at == NULL || !make_input(forward, &input)) {
        problem(call, "too_large", "The request needs too much memory.");
        return false;
    }
    if (!claims_name(call, &naming, ret_claim))
        return false;
    if (window) { /* equal calls are the same for so long after the first is settled, and then they are new */
        ret_claim->keep_us = forward->destination->repeat_window_us;
        ret_claim->tombstone_us = 0;
    }
    return true;
}
