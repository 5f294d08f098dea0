/*
 * Folding audit rows whose detail is anything at all. What is folded without complaint was an object that named known columns
 * with values of their types, and it is in the row afterwards; everything else is refused, never believed.
 */
#include "fuzz.h"

#include "ledger/ledger.h"

static const struct query_column *column_of(struct bytes name)
{
    for (size_t i = 0; i < INTENT_ADD.param_count; i++)
        if (bytes_is(name, INTENT_ADD.params[i].name))
            return &INTENT_ADD.params[i];
    return NULL;
}

static void check_bytes_column(struct bytes got, const struct json *value)
{
    ASSERT(value->type == JSON_STRING || value->type == JSON_NULL);
    if (value->type == JSON_NULL) {
        ASSERT(got.at == NULL);
        return;
    }
    ASSERT(got.at != NULL);
    ASSERT(value->text.len == 2 * got.len);
    for (size_t i = 0; i < got.len; i++) {
        char hex[2];
        bytes_to_hex((struct bytes){got.at + i, 1}, hex);
        ASSERT(memcmp(hex, value->text.at + 2 * i, 2) == 0);
    }
}

static void check_column(const struct row_intent *row, const struct json_member *member)
{
    const struct query_column *column = column_of(member->name);
    ASSERT(column != NULL);
    const char *at = (const char *)row + column->offset;
    int64_t number = 0;
    if (column->type == COLUMN_INT) {
        ASSERT(json_to_i64(&member->value, &number));
        ASSERT(*(const int64_t *)at == number);
    } else if (column->type == COLUMN_BYTES) {
        check_bytes_column(*(const struct bytes *)at, &member->value);
    } else {
        struct bytes text = *(const struct bytes *)at;
        ASSERT(member->value.type == JSON_STRING || member->value.type == JSON_NULL);
        ASSERT((text.at == NULL) == (member->value.type == JSON_NULL));
        ASSERT(text.at == NULL || bytes_eq(text, member->value.text));
    }
}

FUZZ_TARGET(rebuild)(const uint8_t *data, size_t size)
{
    struct bytes detail = fuzz_bytes(data, size < FUZZ_SIZE_MAX ? size : FUZZ_SIZE_MAX);
    struct row_decision decision = {.intent = 7, .state = STATE_SENT, .fence = 3, .detail = detail};
    struct row_intent row = {0};
    struct json json;
    struct why why = {""};
    struct arena arena;
    arena_init(&arena, FUZZ_ARENA_MAX);
    enum status status = intent_fold(&row, &decision, &arena, &why);
    ASSERT(status == OK || status == INVALID || status == BROKEN);
    ASSERT((status == OK) == (why.text[0] == '\0'));
    if (status == OK) {
        ASSERT(json_parse(detail, NULL, &arena, &json, &why) == OK);
        ASSERT(json.type == JSON_OBJECT);
        for (uint32_t i = 0; i < json.count; i++)
            if (!bytes_eq(json.members[i].name, AUDIT_RESULT_HASH))
                check_column(&row, &json.members[i]);
    }
    arena_release(&arena);
    return 0;
}
