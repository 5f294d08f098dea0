/*
 * Token texts. Three tokens exist: one that opens, one that was revoked, one that expired. Nothing but the exact text of the first may
 * open, also when its checksum is right: the input is tried as it is, as changes to an issued text, and as such with the checksum made anew.
 */
#include "fuzz.h"

#include "access/access.h"

enum { ALIVE, REVOKED, EXPIRED, TOKENS };
enum { CHECK_DIGITS = 6, NOW_US = 1000 };

static const struct bytes pepper = {"0123456789abcdef0123456789abcdef", 32};

struct issued {
    struct access access;
    struct row_token rows[TOKENS];
    char texts[TOKENS][TOKEN_TEXT_SIZE + 1];
    char ids[TOKENS][TOKEN_ID_SIZE];
    struct hash hashes[TOKENS];
};

/* Not random: the same tokens in every run, in the order of their ids. */
static void count_up(struct env *env, void *ret_bytes, size_t size)
{
    static uint8_t next = 1;
    (void)env;
    memset(ret_bytes, next++, size);
}

static const struct issued *issue(void)
{
    static struct issued issued;
    static struct env env = {.random = count_up};
    if (issued.access.count > 0)
        return &issued;
    for (size_t i = 0; i < TOKENS; i++) {
        struct row_token *row = &issued.rows[i];
        struct bytes id;
        token_make(&env, pepper, issued.texts[i], &issued.hashes[i], &id);
        memcpy(issued.ids[i], id.at, TOKEN_ID_SIZE);
        *row = (struct row_token){.space = BYTES("main"), .name = BYTES("x"), .scopes = SCOPE_CLAIM};
        row->id = (struct bytes){issued.ids[i], TOKEN_ID_SIZE};
        row->hash = hash_bytes(&issued.hashes[i]);
    }
    issued.rows[REVOKED].revoked = 1;
    issued.rows[EXPIRED].expires = NOW_US;
    issued.access = (struct access){.tokens = issued.rows, .count = TOKENS};
    return &issued;
}

static void check(const struct issued *issued, struct bytes text)
{
    struct bytes exact = fuzz_exact(text);
    const struct row_token *row = access_check(&issued->access, pepper, exact, NOW_US);
    bool is_alive = bytes_eq(text, (struct bytes){issued->texts[ALIVE], TOKEN_TEXT_SIZE});
    ASSERT((row != NULL) == is_alive);
    ASSERT(row == NULL || row == &issued->rows[ALIVE]);
    ASSERT(access_check(&issued->access, BYTES("another pepper"), exact, NOW_US) == NULL);
    free((char *)exact.at);
}

/* The checksum as the tokens carry it: CRC-32 of what is before it, six digits of base 62. */
static void make_checksum(char *text)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    uint32_t crc = hash_crc32((struct bytes){text, TOKEN_TEXT_SIZE - CHECK_DIGITS});
    for (int i = TOKEN_TEXT_SIZE - 1; i >= TOKEN_TEXT_SIZE - CHECK_DIGITS; i--, crc /= 62)
        text[i] = digits[crc % 62];
}

FUZZ_TARGET(token)(const uint8_t *data, size_t size)
{
    hash_setup();
    const struct issued *issued = issue();
    struct bytes in = fuzz_bytes(data, size), rest = in;
    char text[TOKEN_TEXT_SIZE];
    check(issued, in);
    memcpy(text, issued->texts[fuzz_byte(&rest) % TOKENS], TOKEN_TEXT_SIZE);
    while (rest.len > 0) {
        size_t at = fuzz_byte(&rest) % TOKEN_TEXT_SIZE;
        text[at] = (char)fuzz_byte(&rest);
    }
    check(issued, (struct bytes){text, TOKEN_TEXT_SIZE});
    make_checksum(text);
    check(issued, (struct bytes){text, TOKEN_TEXT_SIZE});
    if (size < TOKEN_TEXT_SIZE)
        return 0;
    memcpy(text, data, TOKEN_TEXT_SIZE);
    make_checksum(text);
    check(issued, (struct bytes){text, TOKEN_TEXT_SIZE});
    return 0;
}
