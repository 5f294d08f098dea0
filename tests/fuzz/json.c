/*
 * The JSON reader against a second, simple recogniser of RFC 8259: what is accepted is grammatical UTF-8, and what is grammatical is
 * accepted unless one of the stated refusals applies. What was read is written, read and equal again; the canonical form is stable.
 */
#include "fuzz.h"

#include "base/json.h"

enum { PAIRS_MAX = 64 };

/* ---- the recogniser ---- */

struct grammar {
    const unsigned char *at, *end;
    uint32_t depth;
    bool doubtful; /* a stated refusal may apply: a limit, an escaped surrogate, a name that may come twice */
};

static bool grammar_value(struct grammar *g);

static void grammar_space(struct grammar *g)
{
    while (g->at < g->end && (*g->at == ' ' || *g->at == '\t' || *g->at == '\n' || *g->at == '\r'))
        g->at++;
}

static bool grammar_take(struct grammar *g, const char *text)
{
    size_t len = strlen(text);
    if ((size_t)(g->end - g->at) < len || memcmp(g->at, text, len) != 0)
        return false;
    g->at += len;
    return true;
}

static bool grammar_digits(struct grammar *g)
{
    const unsigned char *start = g->at;
    while (g->at < g->end && *g->at >= '0' && *g->at <= '9')
        g->at++;
    return g->at > start;
}

static bool grammar_number(struct grammar *g)
{
    grammar_take(g, "-");
    if (!grammar_take(g, "0") && !grammar_digits(g))
        return false;
    if (grammar_take(g, ".") && !grammar_digits(g))
        return false;
    if (grammar_take(g, "e") || grammar_take(g, "E")) {
        if (!grammar_take(g, "+"))
            grammar_take(g, "-");
        return grammar_digits(g);
    }
    return true;
}

static bool grammar_escape(struct grammar *g)
{
    if (g->at == g->end)
        return false;
    unsigned char c = *g->at++;
    if (c != 'u')
        return c != '\0' && strchr("\"\\/bfnrt", c) != NULL;
    for (int i = 0; i < 4; i++, g->at++)
        if (g->at == g->end || strspn((char[]){(char)*g->at, '\0'}, "0123456789abcdefABCDEF") != 1)
            return false;
    g->doubtful |= g->at[-4] == 'd' || g->at[-4] == 'D';
    return true;
}

static bool grammar_string(struct grammar *g)
{
    if (!grammar_take(g, "\""))
        return false;
    while (g->at < g->end && *g->at != '"') {
        unsigned char c = *g->at++;
        if (c < 0x20 || (c == '\\' && !grammar_escape(g)))
            return false;
    }
    return grammar_take(g, "\"");
}

static bool grammar_name(struct grammar *g, struct bytes *names, size_t count)
{
    const unsigned char *start = g->at;
    if (!grammar_string(g))
        return false;
    struct bytes name = {(const char *)start, (size_t)(g->at - start)};
    g->doubtful |= count >= PAIRS_MAX || memchr(name.at, '\\', name.len) != NULL;
    for (size_t i = 0; i < count && i < PAIRS_MAX; i++)
        g->doubtful |= bytes_eq(names[i], name);
    if (count < PAIRS_MAX)
        names[count] = name;
    grammar_space(g);
    return grammar_take(g, ":");
}

static bool grammar_items(struct grammar *g, bool object)
{
    struct bytes names[PAIRS_MAX];
    const char *close = object ? "}" : "]";
    size_t count = 0;
    grammar_space(g);
    if (grammar_take(g, close))
        return true;
    do {
        grammar_space(g);
        if (object && !grammar_name(g, names, count))
            return false;
        if (!grammar_value(g))
            return false;
        count++;
        grammar_space(g);
    } while (grammar_take(g, ","));
    return grammar_take(g, close);
}

static bool grammar_value(struct grammar *g)
{
    bool good;
    grammar_space(g);
    if (++g->depth > json_limits_default.depth_max) {
        g->doubtful = true;
        return false;
    }
    if (grammar_take(g, "{"))
        good = grammar_items(g, true);
    else if (grammar_take(g, "["))
        good = grammar_items(g, false);
    else if (g->at < g->end && *g->at == '"')
        good = grammar_string(g);
    else
        good = grammar_take(g, "null") || grammar_take(g, "true") || grammar_take(g, "false") || grammar_number(g);
    g->depth--;
    return good;
}

/* Well-formed UTF-8 by the table of the Unicode standard (3-7). */
static bool is_utf8(struct bytes text)
{
    const unsigned char *at = (const unsigned char *)text.at, *end = at + text.len;
    while (at < end) {
        unsigned char lead = *at++;
        int more = lead < 0x80                   ? 0
                   : lead >= 0xC2 && lead < 0xE0 ? 1
                   : lead >= 0xE0 && lead < 0xF0 ? 2
                   : lead >= 0xF0 && lead < 0xF5 ? 3
                                                 : -1;
        if (more < 0 || end - at < more)
            return false;
        unsigned char low = lead == 0xE0   ? 0xA0
                            : lead == 0xF0 ? 0x90
                                           : 0x80,
                      high = lead == 0xED   ? 0x9F
                             : lead == 0xF4 ? 0x8F
                                            : 0xBF;
        for (int i = 0; i < more; i++, at++) {
            if (*at < low || *at > high)
                return false;
            low = 0x80;
            high = 0xBF;
        }
    }
    return true;
}

/* ---- the tree ---- */

static void check_equal(const struct json *a, const struct json *b)
{
    ASSERT(a->type == b->type);
    ASSERT(a->type < JSON_NUMBER || a->count == b->count);
    if (a->type == JSON_NUMBER || a->type == JSON_STRING)
        ASSERT(bytes_eq(a->text, b->text));
    for (uint32_t i = 0; a->type == JSON_ARRAY && i < a->count; i++)
        check_equal(&a->items[i], &b->items[i]);
    for (uint32_t i = 0; a->type == JSON_OBJECT && i < a->count; i++) {
        ASSERT(bytes_eq(a->members[i].name, b->members[i].name));
        check_equal(&a->members[i].value, &b->members[i].value);
    }
}

/* Text is UTF-8, the raw text lies in the source, and each name leads to its own member. */
static void check_tree(const struct json *json, struct bytes source)
{
    ASSERT(json->raw.len > 0);
    ASSERT(json->raw.at >= source.at);
    ASSERT(json->raw.at + json->raw.len <= source.at + source.len);
    if (json->type == JSON_STRING)
        ASSERT(is_utf8(json->text));
    for (uint32_t i = 0; json->type == JSON_ARRAY && i < json->count; i++)
        check_tree(&json->items[i], json->raw);
    for (uint32_t i = 0; json->type == JSON_OBJECT && i < json->count; i++) {
        ASSERT(is_utf8(json->members[i].name));
        if (json->count <= PAIRS_MAX)
            ASSERT(json_get(json, json->members[i].name) == &json->members[i].value);
        check_tree(&json->members[i].value, json->raw);
    }
}

static void write(struct json_out *out, const struct json *json)
{
    switch (json->type) {
    case JSON_NULL:
        json_null(out);
        break;
    case JSON_FALSE:
    case JSON_TRUE:
        json_bool(out, json->type == JSON_TRUE);
        break;
    case JSON_NUMBER:
        json_raw(out, json->text);
        break;
    case JSON_STRING:
        json_text(out, json->text);
        break;
    case JSON_ARRAY:
        json_open(out, '[');
        for (uint32_t i = 0; i < json->count; i++)
            write(out, &json->items[i]);
        json_close(out, ']');
        break;
    case JSON_OBJECT:
        json_open(out, '{');
        for (uint32_t i = 0; i < json->count; i++) {
            json_name_bytes(out, json->members[i].name);
            write(out, &json->members[i].value);
        }
        json_close(out, '}');
        break;
    }
}

static void check_written_again(const struct json *json, struct arena *arena)
{
    struct buf buf;
    struct json again;
    struct why why;
    buf_init(&buf, 8 * FUZZ_SIZE_MAX);
    struct json_out out = json_out_to(&buf);
    write(&out, json);
    ASSERT(!buf.failed);
    ASSERT(json_parse(buf_bytes(&buf), NULL, arena, &again, &why) == OK);
    check_equal(json, &again);
    ASSERT(json_parse(json->raw, NULL, arena, &again, &why) == OK);
    check_equal(json, &again);
    buf_release(&buf);
}

static void check_canonical(const struct json *json, struct arena *arena)
{
    struct buf once, twice;
    struct json again;
    struct why why;
    buf_init(&once, 8 * FUZZ_SIZE_MAX);
    buf_init(&twice, 8 * FUZZ_SIZE_MAX);
    enum status status = json_canonical(json, arena, &once, &why);
    ASSERT(status == OK || status == INVALID);
    if (status == OK) {
        ASSERT(json_parse(buf_bytes(&once), NULL, arena, &again, &why) == OK);
        ASSERT(json_canonical(&again, arena, &twice, &why) == OK);
        ASSERT(bytes_eq(buf_bytes(&once), buf_bytes(&twice)));
    }
    buf_release(&once);
    buf_release(&twice);
}

static void check_refusal(struct bytes in, enum status status, const struct why *why)
{
    struct grammar g = {.at = (const unsigned char *)in.at, .end = (const unsigned char *)in.at + in.len};
    bool good = grammar_value(&g);
    grammar_space(&g);
    good = good && g.at == g.end && is_utf8(in);
    if (status == OK) {
        ASSERT(good);
        return;
    }
    ASSERT(status == INVALID);
    ASSERT(strncmp(why->text, "line ", 5) == 0);
    ASSERT(!good || g.doubtful || in.len > json_limits_default.members_max);
}

FUZZ_TARGET(json)(const uint8_t *data, size_t size)
{
    struct bytes in = fuzz_bytes(data, size < FUZZ_SIZE_MAX ? size : FUZZ_SIZE_MAX);
    struct arena arena;
    struct json json;
    struct why why = {""};
    arena_init(&arena, FUZZ_ARENA_MAX);
    enum status status = json_parse(in, NULL, &arena, &json, &why);
    check_refusal(in, status, &why);
    if (status == OK) {
        check_tree(&json, in);
        check_written_again(&json, &arena);
        check_canonical(&json, &arena);
    }
    arena_release(&arena);
    return 0;
}
