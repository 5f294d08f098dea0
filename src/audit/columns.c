#include "audit/columns.h"

#include "base/hash.h"

void column_write(struct json_out *out, const struct query_column *column, const void *row)
{
    const char *at = (const char *)row + column->offset;
    json_name(out, column->name);
    if (column->type == COLUMN_INT) {
        json_i64(out, *(const int64_t *)at);
        return;
    }
    const struct bytes *bytes = (const struct bytes *)at;
    if (column->type == COLUMN_TEXT) {
        json_text(out, *bytes);
        return;
    }
    char hex[2 * HASH_SIZE];
    ASSERT(bytes->len <= HASH_SIZE);
    bytes_to_hex(*bytes, hex);
    json_text(out, (struct bytes){hex, 2 * bytes->len});
}

/* Hex back to bytes, in the arena. */
static struct bytes unhex(struct bytes hex, struct arena *arena)
{
    char *at = arena_alloc(arena, hex.len / 2 + 1);
    if (at == NULL || hex.len % 2 != 0)
        return BYTES_NONE;
    for (size_t i = 0; i < hex.len; i++) {
        char c = hex.at[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return BYTES_NONE;
        at[i / 2] = (char)(i % 2 == 0 ? digit << 4 : at[i / 2] | digit);
    }
    return (struct bytes){at, hex.len / 2};
}

enum status column_read(void *row, const struct query_column *column, const struct json *value, struct arena *arena,
                        struct why *why)
{
    char *at = (char *)row + column->offset;
    if (column->type == COLUMN_INT) {
        if (!json_to_i64(value, (int64_t *)at))
            return why_set(why, BROKEN, "%s in the audit is not a number", column->name);
        return OK;
    }
    struct bytes bytes = BYTES_NONE;
    if (value->type == JSON_STRING)
        bytes = column->type == COLUMN_BYTES ? unhex(value->text, arena) : arena_dup(arena, value->text);
    if (arena->failed)
        return why_set(why, FULL, "no memory for a row of the audit");
    if (bytes.at == NULL && value->type != JSON_NULL)
        return why_set(why, BROKEN, "%s in the audit is not text", column->name);
    *(struct bytes *)at = bytes;
    return OK;
}

bool column_equal(const struct query_column *column, const void *a, const void *b)
{
    const char *left = (const char *)a + column->offset, *right = (const char *)b + column->offset;
    if (column->type == COLUMN_INT)
        return *(const int64_t *)left == *(const int64_t *)right;
    const struct bytes *one = (const struct bytes *)left, *other = (const struct bytes *)right;
    return (one->at == NULL) == (other->at == NULL) && bytes_eq(*one, *other);
}

const struct query_column *column_find(const struct query_column *columns, size_t count, struct bytes name)
{
    for (size_t i = 0; i < count; i++)
        if (bytes_is(name, columns[i].name))
            return &columns[i];
    return NULL;
}
