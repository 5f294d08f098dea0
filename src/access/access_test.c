#include "access/access.h"

#include "base/when.h"
#include "check.h"
#include "house.h"

static const struct bytes pepper = {"0123456789abcdef0123456789abcdef", 32};

TEST(a_token_opens_only_while_it_is_alive)
{
    struct house house;
    house_open(&house, HOUSE_SQLITE);
    char text[TOKEN_TEXT_SIZE + 1];
    struct hash hash;
    struct row_token row = {.space = BYTES("main"), .name = BYTES("x"), .scopes = SCOPE_READ, .expires = 100};
    token_make(&house.env, pepper, text, &hash, &row.id);
    row.hash = hash_bytes(&hash);
    struct access access = {.tokens = &row, .count = 1};
    CHECK(access_check(&access, pepper, bytes_of(text), 99) == &row);
    CHECK(access_check(&access, pepper, bytes_of(text), 100) == NULL);
    row.expires = 0;
    row.revoked = 1;
    CHECK(access_check(&access, pepper, bytes_of(text), 99) == NULL);
    row.revoked = 0;
    CHECK(access_check(&access, BYTES("another pepper"), bytes_of(text), 99) == NULL);
    house_close(&house);
}

TEST(no_changed_character_of_a_token_is_accepted)
{
    struct house house;
    house_open(&house, HOUSE_SQLITE);
    char text[TOKEN_TEXT_SIZE + 1];
    struct hash hash;
    struct row_token row = {.space = BYTES("main"), .name = BYTES("x"), .scopes = SCOPE_READ};
    token_make(&house.env, pepper, text, &hash, &row.id);
    row.hash = hash_bytes(&hash);
    char id[TOKEN_ID_SIZE];
    memcpy(id, row.id.at, TOKEN_ID_SIZE);
    row.id.at = id; /* not in the text that is being changed */
    struct access access = {.tokens = &row, .count = 1};
    CHECK(access_check(&access, pepper, bytes_of(text), 1) == &row);
    for (size_t i = 0; i < TOKEN_TEXT_SIZE; i++) {
        char kept = text[i];
        text[i] = kept == 'A' ? 'B' : 'A';
        CHECK(access_check(&access, pepper, bytes_of(text), 1) == NULL);
        text[i] = kept;
    }
    for (size_t len = 0; len < TOKEN_TEXT_SIZE; len++)
        CHECK(access_check(&access, pepper, (struct bytes){text, len}, 1) == NULL);
    house_close(&house);
}
