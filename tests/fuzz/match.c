/*
 * Two persons in lines: name, email, phone, company, region, website, postcode, date of birth, id; then the same again. Whatever they
 * are: values are bounded, what is packed comes back, the comparison is symmetric in its zone, sums up, is recomputed to the bit, and a
 * person that has an identifier is the same as itself. A packed person that is damaged is said to be.
 */
#include "fuzz.h"

#include "match/match.h"

static const uint8_t secret[MATCH_SECRET_SIZE] = "fuzz";

static void check_values(const struct match_person *person)
{
    for (size_t i = 0; i < person->email_count; i++) {
        const struct match_email *email = &person->emails[i];
        ASSERT(email->key.at == NULL || email->exact.at != NULL);
        ASSERT(email->key.len <= MATCH_VALUE_MAX);
        ASSERT(bytes_is_utf8(email->key));
        ASSERT(email->class != MATCH_EMAIL_INVALID || email->key.at == NULL);
    }
    for (size_t i = 0; i < person->phone_count; i++) {
        const struct match_phone *phone = &person->phones[i];
        ASSERT(!phone->junk || phone->key.at == NULL);
        for (size_t j = 0; j < phone->key.len; j++)
            ASSERT(phone->key.at[j] >= '0' && phone->key.at[j] <= '9');
    }
    for (size_t i = 0; i < person->name_count; i++)
        for (size_t j = 0; j < person->names[i].given.len; j++)
            ASSERT((person->names[i].given.at[j] >= 'a' && person->names[i].given.at[j] <= 'z') ||
                   (person->names[i].given.at[j] >= '0' && person->names[i].given.at[j] <= '9'));
}

static void read_person(struct bytes *rest, struct arena *arena, struct match_person *ret)
{
    struct bytes lines[9];
    struct why why;
    for (size_t i = 0; i < 9; i++)
        lines[i] = bytes_cut(rest, '\n');
    const struct match_id id = {BYTES("x"), lines[8], lines[8].len % 2 == 1, 0};
    const struct match_input input = {.name = lines[0],
                                      .emails = &lines[1],
                                      .email_count = 1,
                                      .phones = &lines[2],
                                      .phone_count = 1,
                                      .company = lines[3],
                                      .region = lines[4],
                                      .website = lines[5],
                                      .postcode = lines[6],
                                      .born = lines[7],
                                      .ids = &id,
                                      .id_count = 1};
    ASSERT(match_person_make(&input, arena, ret, &why) == OK);
    check_values(ret);
}

static void check_sum(const struct match_result *result)
{
    int64_t sum = 0;
    for (size_t i = 0; i < result->line_count; i++)
        sum += result->lines[i].weight_mb;
    ASSERT(sum == result->score_mb);
    ASSERT(match_rule_sentence(result->rule)[0] != '\0');
}

static void check_same(const struct match_result *a, const struct match_result *b)
{
    ASSERT(a->zone == b->zone);
    ASSERT(a->score_mb == b->score_mb);
    ASSERT(strcmp(a->rule, b->rule) == 0);
    ASSERT(a->line_count == b->line_count);
}

static void check_pair(const struct match_person *a, const struct match_person *b, struct arena *arena)
{
    const struct match_world world = {.leads = 1000000};
    struct match_result there, back, again;
    struct bytes packed[2];
    struct why why;
    match_compare(a, b, &world, &there);
    match_compare(b, a, &world, &back);
    check_sum(&there);
    check_same(&there, &back);
    ASSERT(match_pack(a, arena, &packed[0], &why) == OK);
    ASSERT(match_pack(b, arena, &packed[1], &why) == OK);
    ASSERT(match_explain(packed[0], packed[1], &world, arena, &again, &why) == OK);
    check_same(&there, &again);
}

static void check_self(const struct match_person *person, struct arena *arena)
{
    const struct match_world world = {.leads = 1};
    struct match_key keys[MATCH_KEYS_MAX];
    struct match_result result;
    struct match_person lead = {.email_count = 0};
    size_t count = 0;
    struct why why;
    match_person_add(&lead, person);
    ASSERT(match_keys(person, secret, arena, keys, &count, &why) == OK);
    ASSERT(count <= MATCH_KEYS_MAX);
    match_compare(person, &lead, &world, &result);
    if (person->email_count == 1 && person->emails[0].class == MATCH_EMAIL_PERSONAL && person->emails[0].key.at != NULL)
        ASSERT(result.zone != MATCH_NEW);
}

FUZZ_TARGET(match)(const uint8_t *data, size_t size)
{
    struct bytes whole = fuzz_exact(fuzz_bytes(data, size < FUZZ_SIZE_MAX / 4 ? size : FUZZ_SIZE_MAX / 4)), rest = whole;
    static struct match_person a, b;
    struct arena arena;
    struct why why;
    hash_setup();
    arena_init(&arena, FUZZ_ARENA_MAX);
    enum status status = match_unpack(whole, &a, &why);
    ASSERT(status == OK || status == INVALID || status == BROKEN);
    read_person(&rest, &arena, &a);
    read_person(&rest, &arena, &b);
    check_pair(&a, &b, &arena);
    check_self(&a, &arena);
    arena_release(&arena);
    free((char *)whole.at);
    return 0;
}
