#include "destination/plant.h"

#include <stdio.h>

#include "base/percent.h"
#include "destination/header.h"

/* Attachments in base 64 make long texts; a body is bounded as a whole. */
static const struct json_limits body_limits = {64, 200000, DESTINATION_BODY_MAX};

static enum status no_memory(struct why *why)
{
    return why_set(why, FULL, "there is no memory for the request");
}

static struct bytes join(struct arena *arena, const struct bytes *parts, size_t count)
{
    size_t len = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        len += parts[i].len;
    char *text = arena_alloc(arena, len + 1);
    if (text == NULL)
        return BYTES_NONE;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].len > 0)
            memcpy(text + at, parts[i].at, parts[i].len);
        at += parts[i].len;
    }
    text[len] = '\0';
    return (struct bytes){text, len};
}

/* `whole` with the bytes from `start` to `end` replaced. */
static struct bytes splice(struct arena *arena, struct bytes whole, size_t start, size_t end, struct bytes by)
{
    struct bytes parts[] = {{whole.at, start}, by, bytes_from(whole, end)};
    return join(arena, parts, 3);
}

/* ---- reading a request ---- */

enum body_kind plant_body_kind(const struct effect_request *request)
{
    struct bytes type = header_find(request->headers, request->header_count, BYTES("Content-Type"));
    struct bytes rest = type, media = bytes_trim(bytes_cut(&rest, ';'));
    if (bytes_eq_nocase(media, BYTES("application/x-www-form-urlencoded")))
        return BODY_FORM;
    bool json = bytes_eq_nocase(media, BYTES("application/json")) ||
                (media.len > 5 && bytes_eq_nocase(bytes_from(media, media.len - 5), BYTES("+json")));
    return json || type.at == NULL ? BODY_JSON : BODY_OTHER;
}

enum status plant_json(struct bytes body, struct arena *arena, struct json *ret, struct why *why)
{
    return json_parse(body.at != NULL ? body : BYTES(""), &body_limits, arena, ret, why);
}

/* "a[0][2]" is the member "a" of an object, its item 0, and of that item 2. */
static const struct json *find_part(const struct json *json, struct bytes part)
{
    struct bytes rest = part, name = bytes_cut(&rest, '[');
    uint64_t index;
    if (name.len > 0)
        json = json_get(json, name);
    while (json != NULL && rest.len > 0) {
        struct bytes number = bytes_cut(&rest, ']');
        if (json->type != JSON_ARRAY || !bytes_to_u64(number, &index) || index >= json->count)
            return NULL;
        json = &json->items[index];
        if (rest.len > 0 && rest.at[0] == '[')
            rest = bytes_from(rest, 1);
    }
    return json;
}

const struct json *plant_find(const struct json *json, struct bytes path)
{
    while (json != NULL && path.len > 0)
        json = find_part(json, bytes_cut(&path, '.'));
    return json;
}

bool plant_any(const struct json *json, struct bytes path, const struct bytes *values, size_t value_count)
{
    const char *all = memmem(path.at, path.len, "[*]", 3);
    if (all != NULL) {
        struct bytes before = {path.at, (size_t)(all - path.at)}, behind = bytes_from(path, before.len + 3);
        const struct json *list = plant_find(json, before);
        if (behind.len > 0 && behind.at[0] == '.')
            behind = bytes_from(behind, 1);
        for (uint32_t i = 0; list != NULL && list->type == JSON_ARRAY && i < list->count; i++)
            if (plant_any(&list->items[i], behind, values, value_count))
                return true;
        return false;
    }
    const struct json *found = plant_find(json, path);
    if (value_count == 0)
        return found != NULL;
    struct bytes text = json_scalar(found);
    for (size_t i = 0; text.at != NULL && i < value_count; i++)
        if (bytes_eq(values[i], text))
            return true;
    return false;
}

/* '+' is a space and %XX a byte; what is neither stays as it is. */
static struct bytes form_decode(struct bytes text, struct arena *arena)
{
    char *out = arena_alloc(arena, text.len + 1);
    size_t len = 0;
    if (out == NULL)
        return BYTES_NONE;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i] == '+' ? ' ' : text.at[i];
        if (c == '%' && i + 2 < text.len && bytes_hex_digit(text.at[i + 1]) >= 0 && bytes_hex_digit(text.at[i + 2]) >= 0) {
            c = (char)(bytes_hex_digit(text.at[i + 1]) << 4 | bytes_hex_digit(text.at[i + 2]));
            i += 2;
        }
        out[len++] = c;
    }
    out[len] = '\0';
    return (struct bytes){out, len};
}

/* The raw value of the first field of this name, inside `form`; absent when there is none. */
static struct bytes form_value(struct bytes form, struct bytes name, struct arena *arena)
{
    while (form.len > 0) {
        struct bytes value = bytes_cut(&form, '&'), key = bytes_cut(&value, '=');
        if (bytes_eq(form_decode(key, arena), name))
            return value.at != NULL ? value : (struct bytes){key.at + key.len, 0};
    }
    return BYTES_NONE;
}

struct bytes plant_field(const struct effect_request *request, struct bytes path, struct arena *arena)
{
    struct json json;
    struct bytes value;
    switch (plant_body_kind(request)) {
    case BODY_JSON:
        if (plant_json(request->body, arena, &json, NULL) != OK)
            return BYTES_NONE;
        return json_scalar(plant_find(&json, path));
    case BODY_FORM:
        value = form_value(request->body, path, arena);
        return value.at != NULL ? form_decode(value, arena) : BYTES_NONE;
    case BODY_OTHER:
        break;
    }
    return header_find(request->headers, request->header_count, path);
}

struct bytes plant_domain(const struct destination *destination)
{
    struct bytes rest = destination->smtp_from;
    bytes_cut(&rest, '@');
    while (rest.len > 0 && (rest.at[rest.len - 1] == '>' || rest.at[rest.len - 1] == ' '))
        rest.len--;
    return rest;
}

/* ---- JSON: the caller's bytes stay, except for what is planted ---- */

/* The text of `path` nested around `value`: {"a":{"b":value}} without the outermost braces. */
static void write_member(struct json_out *out, struct bytes path, struct bytes value)
{
    struct bytes part = bytes_cut(&path, '.');
    json_name_bytes(out, part);
    if (path.len == 0) {
        json_raw(out, value);
        return;
    }
    json_open(out, '{');
    write_member(out, path, value);
    json_close(out, '}');
}

static struct bytes insert_member(struct bytes body, const struct json *object, struct bytes path, struct bytes value,
                                  struct arena *arena)
{
    struct buf text;
    buf_init(&text, 64 << 10);
    struct json_out out = json_out_to(&text);
    if (object->count > 0)
        buf_add_char(&text, ',');
    write_member(&out, path, value);
    size_t brace = (size_t)(object->raw.at - body.at) + object->raw.len - 1;
    struct bytes changed = text.failed ? BYTES_NONE : splice(arena, body, brace, brace, buf_bytes(&text));
    buf_release(&text);
    return changed;
}

static enum status put_json(struct bytes body, struct bytes path, struct bytes value, bool always, struct arena *arena,
                            struct bytes *ret, struct why *why)
{
    struct json root;
    struct bytes rest = path;
    TRY(plant_json(body, arena, &root, why));
    for (const struct json *at = &root;;) {
        if (at->type != JSON_OBJECT)
            return why_set(why, INVALID, "the body has no JSON object in which '%.*s' could stand", BYTES_ARG(path));
        struct bytes whole = rest, part = bytes_cut(&rest, '.');
        const struct json *member = json_get(at, part);
        if (member == NULL) {
            *ret = insert_member(body, at, whole, value, arena);
            break;
        }
        if (rest.len == 0) {
            size_t start = (size_t)(member->raw.at - body.at);
            *ret = always ? splice(arena, body, start, start + member->raw.len, value) : body;
            break;
        }
        at = member;
    }
    return ret->at != NULL ? OK : no_memory(why);
}

static struct bytes json_quote(struct bytes text, struct arena *arena)
{
    struct buf buf;
    buf_init(&buf, 64 << 10);
    struct json_out out = json_out_to(&buf);
    json_text(&out, text);
    struct bytes quoted = buf.failed ? BYTES_NONE : arena_dup(arena, buf_bytes(&buf));
    buf_release(&buf);
    return quoted;
}

/* The text behind a JSON scalar, for places that hold plain text. */
static struct bytes json_unquote(struct bytes value, struct arena *arena)
{
    struct json json;
    if (json_parse(value, NULL, arena, &json, NULL) != OK)
        return BYTES_NONE;
    return json_scalar(&json);
}

/* ---- forms and queries ---- */

/* `list` with the field replaced, or added behind the others. A second field of the name goes: nobody knows which one counts. */
static struct bytes put_pair(struct bytes list, struct bytes name, struct bytes value, bool always, struct arena *arena)
{
    struct bytes parts[] = {percent_encode(name, arena), BYTES("="), percent_encode(value, arena)};
    struct bytes pair = join(arena, parts, 3);
    struct buf out;
    bool put = false;
    if (!always && form_value(list, name, arena).at != NULL)
        return list;
    buf_init(&out, 2 * DESTINATION_BODY_MAX);
    while (list.len > 0) {
        struct bytes piece = bytes_cut(&list, '&'), rest = piece;
        bool ours = bytes_eq(form_decode(bytes_cut(&rest, '='), arena), name);
        if (ours && put)
            continue;
        if (out.len > 0)
            buf_add_char(&out, '&');
        buf_add(&out, ours ? pair : piece);
        put |= ours;
    }
    if (!put && out.len > 0)
        buf_add_char(&out, '&');
    if (!put)
        buf_add(&out, pair);
    struct bytes changed = out.failed || arena->failed ? BYTES_NONE : arena_dup(arena, buf_bytes(&out));
    buf_release(&out);
    return changed;
}

/* A dotted name is JSON inside the field of its first part. */
static enum status put_form(struct bytes form, struct bytes path, struct bytes value, bool always, struct arena *arena,
                            struct bytes *ret, struct why *why)
{
    struct bytes rest = path, field = bytes_cut(&rest, '.'), inside;
    if (rest.len == 0) {
        struct bytes text = json_unquote(value, arena);
        *ret = text.at != NULL ? put_pair(form, path, text, always, arena) : BYTES_NONE;
        return ret->at != NULL ? OK : no_memory(why);
    }
    struct bytes old = form_value(form, field, arena);
    inside = old.len > 0 ? form_decode(old, arena) : BYTES("{}");
    if (inside.at == NULL)
        return no_memory(why);
    TRY(put_json(inside, rest, value, always, arena, &inside, why));
    *ret = put_pair(form, field, inside, true, arena);
    return ret->at != NULL ? OK : no_memory(why);
}

static enum status put_query(struct effect_request *request, struct bytes name, struct bytes text, struct arena *arena,
                             struct why *why)
{
    struct bytes query = request->path, path = bytes_cut(&query, '?');
    query = put_pair(query, name, text, true, arena);
    struct bytes parts[] = {path, BYTES("?"), query};
    struct bytes joined = query.at != NULL ? join(arena, parts, 3) : BYTES_NONE;
    if (joined.at == NULL)
        return no_memory(why);
    request->path = joined;
    return OK;
}

static enum status put_header(struct effect_request *request, struct bytes name, struct bytes text, struct arena *arena,
                              struct why *why)
{
    if (request->header_count >= DESTINATION_HEADERS_MAX)
        return why_set(why, INVALID, "the request has more than %d headers", DESTINATION_HEADERS_MAX - 1);
    struct pair *headers = arena_zalloc(arena, request->header_count + 1, sizeof *headers);
    size_t count = 0;
    if (headers == NULL)
        return no_memory(why);
    for (size_t i = 0; i < request->header_count; i++)
        if (!bytes_eq_nocase(request->headers[i].name, name))
            headers[count++] = request->headers[i];
    headers[count++] = (struct pair){name, text};
    request->headers = headers;
    request->header_count = count;
    return OK;
}

/* ---- planting ---- */

static bool carrier_fits(const struct effect_request *request, const struct carrier *carrier)
{
    switch (carrier->place) {
    case CARRIER_JSON:
        return plant_body_kind(request) == BODY_JSON;
    case CARRIER_FORM:
        return plant_body_kind(request) == BODY_FORM;
    case CARRIER_HEADER:
    case CARRIER_QUERY:
        return true;
    case CARRIER_NOWHERE:
    case CARRIER_NATURAL:
        break;
    }
    return false;
}

static enum status put_body(struct effect_request *request, enum carrier_place place, struct bytes path, struct bytes value,
                            bool always, struct arena *arena, struct why *why)
{
    struct bytes body = request->body.at != NULL ? request->body : BYTES("");
    if (place == CARRIER_JSON)
        TRY(put_json(body, path, value, always, arena, &body, why));
    else
        TRY(put_form(body, path, value, always, arena, &body, why));
    request->body = body;
    return OK;
}

static enum status plant(struct effect_request *request, const struct carrier *carrier, struct bytes text, struct arena *arena,
                         struct why *why)
{
    if (carrier->place == CARRIER_HEADER)
        return put_header(request, carrier->name, text, arena, why);
    if (carrier->place == CARRIER_QUERY)
        return put_query(request, carrier->name, text, arena, why);
    if (!carrier_fits(request, carrier))
        return why_set(why, INVALID, "the key goes into the %s body as '%.*s', and this body is none: check the Content-Type",
                       carrier->place == CARRIER_JSON ? "JSON" : "form", BYTES_ARG(carrier->name));
    struct bytes quoted = json_quote(text, arena);
    if (quoted.at == NULL)
        return no_memory(why);
    TRY(put_body(request, carrier->place, carrier->name, quoted, true, arena, why));
    for (size_t i = 0; i < carrier->extra_count; i++)
        TRY(put_body(request, carrier->place, carrier->extras[i].path, carrier->extras[i].json, carrier->extras[i].always, arena,
                     why));
    return OK;
}

/* The first marker that fits the body. That it does not go in is no reason to refuse the call: the probe will notice. */
static enum status plant_marker(const struct destination *destination, const struct call_rules *rules, struct bytes key,
                                struct arena *arena, struct effect_request *request, struct why *why)
{
    for (size_t i = 0; i < rules->marker_count; i++) {
        struct effect_request marked = *request;
        struct bytes text;
        if (!carrier_fits(request, &rules->markers[i]))
            continue;
        TRY(key_encode(&rules->markers[i].codec, key, plant_domain(destination), arena, &text, why));
        enum status status = plant(&marked, &rules->markers[i], text, arena, why);
        if (status == INVALID)
            continue;
        TRY(status);
        *request = marked;
        return OK;
    }
    return OK;
}

enum status destination_prepare(const struct destination *destination, const struct call_rules *rules, const char *downstream_key,
                                const struct effect_request *request, struct arena *arena, struct effect_request *ret,
                                struct why *why)
{
    struct effect_request prepared = *request;
    struct bytes key = bytes_of(downstream_key), text;
    if (request->body.len > DESTINATION_BODY_MAX)
        return why_set(why, INVALID, "the body has more than %d bytes", DESTINATION_BODY_MAX);
    if (!rules->reads && rules->key.place != CARRIER_NOWHERE && rules->key.place != CARRIER_NATURAL) {
        TRY(key_encode(&rules->key.codec, key, plant_domain(destination), arena, &text, why));
        TRY(plant(&prepared, &rules->key, text, arena, why));
    }
    if (!rules->reads)
        TRY(plant_marker(destination, rules, key, arena, &prepared, why));
    *ret = prepared;
    return OK;
}

/* ---- looking whether it is there ---- */

static bool body_has(const struct effect_request *request, const struct carrier *carrier, struct bytes value, struct arena *arena)
{
    struct json json;
    struct bytes inside, rest = carrier->name, field = bytes_cut(&rest, '.');
    if (carrier->place == CARRIER_JSON || rest.len == 0)
        return bytes_eq(plant_field(request, carrier->name, arena), value);
    inside = plant_field(request, field, arena);
    if (inside.at == NULL || plant_json(inside, arena, &json, NULL) != OK)
        return false;
    return bytes_eq(json_scalar(plant_find(&json, rest)), value);
}

bool plant_is_there(const struct effect_request *request, const struct carrier *carrier, struct bytes value, struct arena *arena)
{
    struct bytes query = request->path;
    if (carrier->place == CARRIER_HEADER)
        return bytes_eq(header_find(request->headers, request->header_count, carrier->name), value);
    bytes_cut(&query, '?');
    if (carrier->place == CARRIER_QUERY)
        return bytes_eq(form_decode(form_value(query, carrier->name, arena), arena), value);
    return carrier_fits(request, carrier) && body_has(request, carrier, value, arena);
}
