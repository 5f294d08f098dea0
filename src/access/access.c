#include "access/access.h"

#include <stdlib.h>

#define ACCESS_ARENA_MAX (16u << 20)
#define SECRET_SIZE 32
#define SECRET_DIGITS 43
#define CHECK_DIGITS 6

const char *const scope_names[] = {"claim", "read", "admin", "resolve", NULL};

static const char digits62[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* A big-endian number in base 62, padded to `count` digits: 43 hold 256 bits, 6 hold 32. */
static void to_base62(const uint8_t *number, size_t size, char *ret_digits, size_t count)
{
    uint8_t rest[SECRET_SIZE];
    memcpy(rest, number, size);
    for (size_t digit = count; digit-- > 0;) {
        unsigned carry = 0;
        for (size_t i = 0; i < size; i++) {
            unsigned value = carry * 256 + rest[i];
            rest[i] = (uint8_t)(value / 62);
            carry = value % 62;
        }
        ret_digits[digit] = digits62[carry];
    }
}

static void add_check(char *text, size_t len)
{
    uint32_t crc = hash_crc32((struct bytes){text, len});
    const uint8_t number[4] = {(uint8_t)(crc >> 24), (uint8_t)(crc >> 16), (uint8_t)(crc >> 8), (uint8_t)crc};
    to_base62(number, sizeof number, text + len, CHECK_DIGITS);
}

static struct hash secret_hash(struct bytes pepper, struct bytes text)
{
    const struct bytes parts[] = {pepper, BYTES("semel-token-1"), text};
    return hash_parts(parts, sizeof parts / sizeof *parts);
}

void token_make(struct env *env, struct bytes pepper, char ret_text[TOKEN_TEXT_SIZE + 1], struct hash *ret_hash,
                struct bytes *ret_id)
{
    uint8_t id[9], secret[SECRET_SIZE];
    env->random(env, id, sizeof id);
    env->random(env, secret, sizeof secret);
    memcpy(ret_text, "sml_", 4);
    to_base62(id, sizeof id, ret_text + 4, TOKEN_ID_SIZE);
    ret_text[4 + TOKEN_ID_SIZE] = '_';
    to_base62(secret, sizeof secret, ret_text + 5 + TOKEN_ID_SIZE, SECRET_DIGITS);
    add_check(ret_text, TOKEN_TEXT_SIZE - CHECK_DIGITS);
    ret_text[TOKEN_TEXT_SIZE] = '\0';
    *ret_id = (struct bytes){ret_text + 4, TOKEN_ID_SIZE};
    *ret_hash = secret_hash(pepper, (struct bytes){ret_text, TOKEN_TEXT_SIZE});
}

static bool is_well_formed(struct bytes text)
{
    if (text.len != TOKEN_TEXT_SIZE || memcmp(text.at, "sml_", 4) != 0 || text.at[4 + TOKEN_ID_SIZE] != '_')
        return false;
    char again[TOKEN_TEXT_SIZE];
    memcpy(again, text.at, TOKEN_TEXT_SIZE);
    add_check(again, TOKEN_TEXT_SIZE - CHECK_DIGITS);
    return memcmp(again, text.at, TOKEN_TEXT_SIZE) == 0;
}

static int by_id(const void *a, const void *b)
{
    return bytes_cmp(((const struct row_token *)a)->id, ((const struct row_token *)b)->id);
}

const struct row_token *access_check(const struct access *access, struct bytes pepper, struct bytes text, int64_t wall_us)
{
    if (!is_well_formed(text))
        return NULL;
    struct row_token wanted = {.id = {text.at + 4, TOKEN_ID_SIZE}};
    const struct row_token *token = bsearch(&wanted, access->tokens, access->count, sizeof wanted, by_id);
    struct hash hash = secret_hash(pepper, text);
    bool genuine = token != NULL && hash_equal(token->hash, hash_bytes(&hash));
    bool alive = genuine && token->revoked == 0 && (token->expires == 0 || token->expires > wall_us);
    return alive ? token : NULL;
}

/* ---- loading ---- */

static enum status take_token(void *ctx, const void *row, struct why *why)
{
    struct access *access = ctx;
    struct row_token *tokens = arena_zalloc(&access->arena, access->count + 1, sizeof *tokens);
    if (tokens == NULL)
        return why_set(why, FULL, "there are too many tokens");
    if (access->count > 0)
        memcpy(tokens, access->tokens, access->count * sizeof *tokens);
    struct row_token *token = &tokens[access->count++];
    *token = *(const struct row_token *)row;
    struct bytes *texts[] = {&token->id, &token->space, &token->name, &token->hash};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = arena_dup(&access->arena, *texts[i]);
    access->tokens = tokens;
    return access->arena.failed ? why_set(why, FULL, "there are too many tokens") : OK;
}

enum status access_load(struct store *store, struct access **ret_access, struct why *why)
{
    struct access *access = calloc(1, sizeof *access);
    ASSERT(access != NULL);
    arena_init(&access->arena, ACCESS_ARENA_MAX);
    enum status status = store_run(store, &TOKEN_LIST, NULL, 0, take_token, access, NULL, why);
    if (status != OK) {
        access_free(access);
        return status;
    }
    if (access->count > 0)
        qsort(access->tokens, access->count, sizeof *access->tokens, by_id);
    *ret_access = access;
    return OK;
}

void access_free(struct access *access)
{
    if (access == NULL)
        return;
    arena_release(&access->arena);
    free(access);
}
