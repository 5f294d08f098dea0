/* One body, several events: each gets its own piece of the body, with every array on the way cut down to one element. */
#include "receive/receive_own.h"

/* The way to one element. */
struct way {
    struct scope *scope; /* of the whole body */
    const struct json *root;
    struct bytes split;
    const struct json *arrays[SOURCE_SPLIT_MAX];
    uint32_t indexes[SOURCE_SPLIT_MAX];
    size_t depth;
    split_each *each;
    void *ctx;
};

/* "name", or "[]" which `ret_array` says. */
static struct bytes cut_step(struct bytes *rest, bool *ret_array)
{
    *ret_array = bytes_starts(*rest, BYTES("[]"));
    size_t end = *ret_array ? 2 : 0;
    while (!*ret_array && end < rest->len && rest->at[end] != '.' && rest->at[end] != '[')
        end++;
    struct bytes step = {rest->at, end};
    *rest = bytes_from(*rest, end);
    if (rest->len > 0 && rest->at[0] == '.')
        *rest = bytes_from(*rest, 1);
    return step;
}

/* ---- the piece as text ---- */

/* The body with the bytes between the brackets of each array replaced by the element. */
static struct bytes piece_text(const struct way *way)
{
    struct bytes body = way->scope->request->body;
    bool whole = true;
    for (size_t i = 0; i < way->depth; i++)
        whole &= way->arrays[i]->count == 1;
    if (whole)
        return body;
    struct buf out;
    buf_init(&out, SOURCE_BODY_MAX);
    const char *from = body.at;
    for (size_t i = 0; i < way->depth; i++) {
        const struct json *array = way->arrays[i];
        buf_add(&out, (struct bytes){from, (size_t)(array->raw.at - from) + 1});
        from = array->items[way->indexes[i]].raw.at;
    }
    const struct bytes last = way->arrays[way->depth - 1]->items[way->indexes[way->depth - 1]].raw;
    buf_add(&out, last);
    for (size_t i = way->depth; i-- > 0;) {
        const struct bytes array = way->arrays[i]->raw;
        const char *tail = array.at + array.len - 1, *end = body.at + body.len;
        if (i > 0) {
            const struct bytes around = way->arrays[i - 1]->items[way->indexes[i - 1]].raw;
            end = around.at + around.len;
        }
        buf_add(&out, (struct bytes){tail, (size_t)(end - tail)});
    }
    struct bytes piece = out.failed ? BYTES_NONE : arena_dup(way->scope->arena, buf_bytes(&out));
    buf_release(&out);
    return piece;
}

/* ---- the piece as a tree ---- */

/* `at` becomes a copy in which the way leads to one element; `ret_item` is that element. False without memory. */
static bool cut_tree(const struct way *way, struct json *at, struct bytes rest, size_t depth, const struct json **ret_item)
{
    bool array;
    *ret_item = at;
    if (rest.len == 0)
        return true;
    struct bytes step = cut_step(&rest, &array);
    if (array) {
        struct json *one = arena_zalloc(way->scope->arena, 1, sizeof *one);
        if (one == NULL)
            return false;
        *one = at->items[way->indexes[depth]];
        at->items = one;
        at->count = 1;
        return cut_tree(way, one, rest, depth + 1, ret_item);
    }
    struct json_member *members = arena_zalloc(way->scope->arena, at->count + 1, sizeof *members);
    if (members == NULL)
        return false;
    memcpy(members, at->members, at->count * sizeof *members);
    at->members = members;
    for (uint32_t i = 0; i < at->count; i++)
        if (bytes_eq(members[i].name, step))
            return cut_tree(way, &members[i].value, rest, depth, ret_item);
    return true; /* the walk found it, so this is not reached */
}

static enum status tell(struct way *way)
{
    struct scope scope = *way->scope;
    struct json *root = arena_zalloc(scope.arena, 1, sizeof *root);
    struct bytes piece = piece_text(way);
    if (root == NULL || piece.at == NULL)
        return FULL;
    *root = *way->root;
    if (!cut_tree(way, root, way->split, 0, &scope.item))
        return FULL;
    scope.body = root;
    return way->each(way->ctx, &scope, piece);
}

/* ---- the walk ---- */

static enum status walk(struct way *way, const struct json *at, struct bytes rest)
{
    bool array;
    if (rest.len == 0)
        return tell(way);
    struct bytes step = cut_step(&rest, &array);
    if (!array) {
        const struct json *next = json_get(at, step);
        return next != NULL ? walk(way, next, rest) : OK;
    }
    if (at->type != JSON_ARRAY)
        return OK;
    ASSERT(way->depth < SOURCE_SPLIT_MAX);
    for (uint32_t i = 0; i < at->count; i++) {
        way->arrays[way->depth] = at;
        way->indexes[way->depth++] = i;
        enum status status = walk(way, &at->items[i], rest);
        way->depth--;
        TRY(status);
    }
    return OK;
}

enum status split_walk(struct bytes split, struct scope *scope, split_each *each, void *ctx)
{
    if (split.len == 0)
        return each(ctx, scope, scope->request->body);
    struct way way = {.scope = scope, .root = scope->body, .split = split, .each = each, .ctx = ctx};
    return walk(&way, scope->body, split);
}
