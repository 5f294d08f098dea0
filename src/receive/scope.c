/* Paths, templates and conditions over a delivery. */
#include "receive/receive_own.h"

enum { DEPTH_MAX = 4 }; /* of paths within paths */

static const char white[] = " \t\r\n";

static struct bytes trim(struct bytes text)
{
    while (text.len > 0 && strchr(white, text.at[0]) != NULL && text.at[0] != '\0')
        text = bytes_from(text, 1);
    while (text.len > 0 && strchr(white, text.at[text.len - 1]) != NULL && text.at[text.len - 1] != '\0')
        text.len--;
    return text;
}

/* Behind scheme and host. */
static struct bytes url_target(struct bytes url)
{
    const char *scheme = memmem(url.at, url.len, "://", 3);
    struct bytes rest = scheme != NULL ? bytes_from(url, (size_t)(scheme - url.at) + 3) : url;
    const char *slash = rest.len > 0 ? memchr(rest.at, '/', rest.len) : NULL;
    return slash != NULL ? bytes_from(rest, (size_t)(slash - rest.at)) : (struct bytes){rest.at + rest.len, 0};
}

enum status scope_open(const struct source *source, const struct receive_request *request, struct arena *arena, struct scope *ret,
                       struct why *why)
{
    *ret = (struct scope){
        .request = request, .arena = arena, .region = source->region, .url = request->url.at != NULL ? request->url : BYTES("")};
    if (source->url.len > 0) {
        struct bytes target = url_target(ret->url), base = source->url;
        while (base.len > 0 && base.at[base.len - 1] == '/')
            base.len--;
        ret->url = arena_printf(arena, "%.*s%.*s", BYTES_ARG(base), BYTES_ARG(target));
        if (ret->url.at == NULL)
            return FULL;
    }
    struct bytes query = ret->url, path = bytes_cut(&query, '?');
    if (path.len == ret->url.len)
        return OK;
    return params_read(query, arena, &ret->query, &ret->query_count, why);
}

struct bytes scope_header(const struct scope *scope, struct bytes name, size_t *ret_count)
{
    struct bytes found = BYTES_NONE;
    size_t count = 0;
    for (size_t i = 0; i < scope->request->header_count; i++) {
        if (!bytes_eq_nocase(scope->request->headers[i].name, name))
            continue;
        if (count++ == 0)
            found = scope->request->headers[i].value;
    }
    if (ret_count != NULL)
        *ret_count = count;
    return found;
}

static struct bytes query_text(const struct scope *scope, struct bytes name)
{
    for (size_t i = 0; i < scope->query_count; i++)
        if (bytes_eq(scope->query[i].name, name))
            return scope->query[i].value;
    return BYTES_NONE;
}

/* ---- paths into JSON ---- */

static struct bytes text_at(struct scope *scope, struct bytes path, int depth);

static bool contains_nocase(struct bytes text, struct bytes part)
{
    for (size_t i = 0; part.len > 0 && i + part.len <= text.len; i++)
        if (bytes_eq_nocase((struct bytes){text.at + i, part.len}, part))
            return true;
    return false;
}

static struct bytes scalar(const struct json *json)
{
    if (json == NULL || json->type == JSON_NULL || json->type == JSON_ARRAY || json->type == JSON_OBJECT)
        return BYTES_NONE;
    if (json->type == JSON_TRUE || json->type == JSON_FALSE)
        return json->type == JSON_TRUE ? BYTES("true") : BYTES("false");
    return json->text;
}

/* "name=value" or "name~value" of one item. */
static bool item_fits(struct scope *scope, const struct json *item, struct bytes test, int depth)
{
    size_t split = 0;
    while (split < test.len && test.at[split] != '=' && test.at[split] != '~')
        split++;
    if (split >= test.len)
        return false;
    struct bytes wanted = bytes_from(test, split + 1), got = scalar(json_find(item, (struct bytes){test.at, split}));
    if (bytes_starts(wanted, BYTES("@")))
        wanted = text_at(scope, bytes_from(wanted, 1), depth + 1);
    if (got.at == NULL || wanted.at == NULL)
        return false;
    return test.at[split] == '=' ? bytes_eq(got, wanted) : contains_nocase(got, wanted);
}

static bool item_fits_all(struct scope *scope, const struct json *item, struct bytes tests, int depth)
{
    while (tests.len > 0)
        if (!item_fits(scope, item, bytes_cut(&tests, ','), depth))
            return false;
    return true;
}

static const struct json *select_item(struct scope *scope, const struct json *list, struct bytes tests, int depth)
{
    for (uint32_t i = 0; list != NULL && list->type == JSON_ARRAY && i < list->count; i++)
        if (item_fits_all(scope, &list->items[i], tests, depth))
            return &list->items[i];
    return NULL;
}

static const struct json *find_in(struct scope *scope, const struct json *at, struct bytes path, int depth)
{
    while (at != NULL && path.len > 0) {
        size_t end = 0;
        while (end < path.len && path.at[end] != '.' && path.at[end] != '[')
            end++;
        if (end > 0)
            at = json_find(at, (struct bytes){path.at, end});
        path = bytes_from(path, end);
        if (path.len > 0 && path.at[0] == '[') {
            const char *close = memchr(path.at, ']', path.len);
            if (close == NULL)
                return NULL;
            at = select_item(scope, at, (struct bytes){path.at + 1, (size_t)(close - path.at) - 1}, depth);
            path = bytes_from(path, (size_t)(close - path.at) + 1);
        }
        if (path.len > 0 && path.at[0] == '.')
            path = bytes_from(path, 1);
    }
    return at;
}

static const struct json *find_at(struct scope *scope, struct bytes path, int depth)
{
    if (depth > DEPTH_MAX)
        return NULL;
    if (bytes_starts(path, BYTES("body.")))
        return find_in(scope, scope->body, bytes_from(path, 5), depth);
    if (bytes_starts(path, BYTES("item.")))
        path = bytes_from(path, 5);
    return find_in(scope, scope->item, path, depth);
}

const struct json *scope_find(struct scope *scope, struct bytes path)
{
    return find_at(scope, path, 0);
}

/* The scalars of a list with ", " between them. */
static struct bytes join(struct scope *scope, const struct json *list)
{
    struct buf buf;
    buf_init(&buf, INCOMING_TEXT_MAX);
    for (uint32_t i = 0; i < list->count; i++) {
        struct bytes text = scalar(&list->items[i]);
        if (text.at == NULL)
            continue;
        if (buf.len > 0)
            buf_add_cstr(&buf, ", ");
        buf_add(&buf, text);
    }
    struct bytes joined = buf.failed ? BYTES_NONE : arena_dup(scope->arena, buf_bytes(&buf));
    buf_release(&buf);
    return joined;
}

static struct bytes text_at(struct scope *scope, struct bytes path, int depth)
{
    struct bytes text;
    if (bytes_starts(path, BYTES("header.")))
        text = scope_header(scope, bytes_from(path, 7), NULL);
    else if (bytes_starts(path, BYTES("query.")))
        text = query_text(scope, bytes_from(path, 6));
    else {
        const struct json *json = find_at(scope, path, depth);
        text = json != NULL && json->type == JSON_ARRAY ? join(scope, json) : scalar(json);
    }
    text = text.at != NULL ? trim(text) : text;
    return text.len > 0 ? text : BYTES_NONE;
}

struct bytes scope_text(struct scope *scope, struct bytes path)
{
    return text_at(scope, path, 0);
}

/* ---- templates ---- */

/* The next part of a template: literal text, or the path of a placeholder. */
struct part {
    struct bytes literal, path;
    bool optional;
};

/* False at the end; a brace without its partner makes `ret_bad`. */
static bool next_part(struct bytes *rest, struct part *ret, bool *ret_bad)
{
    *ret = (struct part){BYTES_NONE, BYTES_NONE, false};
    if (rest->len == 0)
        return false;
    if (rest->at[0] != '{' || (rest->len > 1 && rest->at[1] == '{')) {
        size_t skip = rest->at[0] == '{' ? 1 : 0, end = skip > 0 ? 2 : 0;
        while (end < rest->len && rest->at[end] != '{')
            *ret_bad |= rest->at[end++] == '}';
        ret->literal = (struct bytes){rest->at + skip, end - skip};
        *rest = bytes_from(*rest, end);
        return true;
    }
    const char *close = memchr(rest->at, '}', rest->len);
    size_t len = close != NULL ? (size_t)(close - rest->at) : rest->len;
    ret->path = (struct bytes){rest->at + 1, len - 1};
    *rest = bytes_from(*rest, len + 1);
    ret->optional = ret->path.len > 0 && ret->path.at[ret->path.len - 1] == '?';
    ret->path.len -= ret->optional ? 1 : 0;
    *ret_bad |= close == NULL || ret->path.len == 0;
    return true;
}

bool template_is_good(struct bytes text)
{
    struct part part;
    bool bad = false;
    while (next_part(&text, &part, &bad))
        if (bad)
            return false;
    return !bad;
}

bool template_is_shared(struct bytes text)
{
    struct part part;
    bool bad = false;
    while (next_part(&text, &part, &bad))
        if (part.path.at != NULL && !bytes_starts(part.path, BYTES("header.")) && !bytes_starts(part.path, BYTES("query.")))
            return false;
    return true;
}

/* '%', control characters and what follows the placeholder are written as %XX. */
static void add_escaped(struct buf *out, struct bytes value, char follows)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.at[i];
        if (c == '%' || c < 0x20 || c == 0x7F || (follows != '\0' && c == (unsigned char)follows))
            buf_printf(out, "%%%02X", c);
        else
            buf_add_char(out, (char)c);
    }
}

static bool fill_one(struct scope *scope, struct bytes template, bool escape, struct buf *out)
{
    struct part part;
    bool bad = false, any = false, placed = false;
    while (next_part(&template, &part, &bad)) {
        if (part.literal.at != NULL) {
            buf_add(out, part.literal);
            continue;
        }
        struct bytes value = scope_text(scope, part.path);
        placed = true;
        if (value.at == NULL && !part.optional)
            return false;
        any |= value.at != NULL;
        if (escape && value.at != NULL)
            add_escaped(out, value, template.len > 0 ? template.at[0] : '\0');
        else if (value.at != NULL)
            buf_add(out, value);
    }
    return any || !placed;
}

struct bytes scope_fill(struct scope *scope, const struct texts *texts, bool escape)
{
    struct bytes filled = BYTES_NONE;
    struct buf out;
    buf_init(&out, SOURCE_BODY_MAX);
    for (size_t i = 0; i < texts->count && filled.at == NULL; i++) {
        buf_clear(&out);
        if (!fill_one(scope, texts->at[i], escape, &out))
            continue;
        struct bytes text = trim(buf_bytes(&out));
        if (text.len == 0)
            continue;
        filled = out.failed ? BYTES_NONE : arena_dup(scope->arena, text);
        scope->no_memory |= filled.at == NULL;
    }
    buf_release(&out);
    return filled;
}

/* ---- conditions ---- */

static bool is_there(struct scope *scope, struct bytes path)
{
    if (bytes_starts(path, BYTES("header.")) || bytes_starts(path, BYTES("query.")))
        return scope_text(scope, path).at != NULL;
    const struct json *json = scope_find(scope, path);
    return json != NULL && json->type != JSON_NULL && !(json->type == JSON_STRING && json->text.len == 0);
}

static bool fits(struct bytes got, struct bytes wanted)
{
    if (wanted.len > 0 && wanted.at[wanted.len - 1] == '*')
        return bytes_starts(got, (struct bytes){wanted.at, wanted.len - 1});
    return bytes_eq(got, wanted);
}

bool scope_holds(struct scope *scope, struct bytes path, struct bytes wanted)
{
    if (bytes_is(wanted, "*") || bytes_is(wanted, "!"))
        return is_there(scope, path) == bytes_is(wanted, "*");
    struct bytes got = scope_text(scope, path);
    if (bytes_starts(wanted, BYTES("!")))
        return got.at == NULL || !fits(got, bytes_from(wanted, 1));
    while (got.at != NULL && wanted.len > 0)
        if (fits(got, bytes_cut(&wanted, '|')))
            return true;
    return false;
}

bool scope_all(struct scope *scope, const struct pair *when, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!scope_holds(scope, when[i].name, when[i].value))
            return false;
    return true;
}

bool scope_any(struct scope *scope, const struct pair *when, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (scope_holds(scope, when[i].name, when[i].value))
            return true;
    return false;
}
