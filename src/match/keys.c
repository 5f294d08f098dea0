/* Candidate keys: by which values a lead can be found again. */
#include "match/match_own.h"

#include <sodium.h>

const char *const match_key_kind_names[] = {
    "",
    [MATCH_KEY_ID] = "id",
    [MATCH_KEY_EMAIL] = "email",
    [MATCH_KEY_PHONE] = "phone",
    [MATCH_KEY_EMAIL_WEAK] = "email_weak",
    [MATCH_KEY_NATIONAL] = "national",
    [MATCH_KEY_NAME] = "name",
    [MATCH_KEY_NAME_PHONE] = "name_phone",
    [MATCH_KEY_NAME_DOMAIN] = "name_domain",
    [MATCH_KEY_NAME_POSTCODE] = "name_postcode",
    [MATCH_KEY_LOCAL] = "local",
    [MATCH_KEY_NAME_BORN] = "name_born",
    NULL,
};

enum { LAST_DIGITS = 7, NATIONAL_DIGITS = 8, LOCAL_MIN = 5 };

struct keys {
    const uint8_t *secret;
    struct arena *arena;
    struct match_key *at;
    size_t count;
};

static uint64_t hash_of(const struct keys *keys, enum match_key_kind kind, struct bytes value)
{
    unsigned char text[1 + MATCH_VALUE_MAX * 4], hash[crypto_shorthash_BYTES];
    size_t len = value.len < sizeof text - 1 ? value.len : sizeof text - 1;
    uint64_t n = 0;
    text[0] = (unsigned char)kind;
    memcpy(text + 1, value.at, len);
    crypto_shorthash(hash, text, len + 1, keys->secret);
    for (size_t i = 0; i < sizeof hash; i++)
        n = n << 8 | hash[i];
    return n;
}

static void add(struct keys *keys, enum match_key_kind kind, struct bytes value)
{
    if (value.len == 0 || keys->count == MATCH_KEYS_MAX)
        return;
    struct match_key key = {kind, hash_of(keys, kind, value), value};
    for (size_t i = 0; i < keys->count; i++)
        if (keys->at[i].hash == key.hash)
            return;
    keys->at[keys->count++] = key;
}

static struct bytes last_of(struct bytes text, size_t count)
{
    return text.len > count ? bytes_from(text, text.len - count) : text;
}

static void add_identifiers(struct keys *keys, const struct match_person *person)
{
    for (size_t i = 0; i < person->id_count; i++)
        add(keys, MATCH_KEY_ID,
            arena_printf(keys->arena, "%.*s %.*s", BYTES_ARG(person->ids[i].system), BYTES_ARG(person->ids[i].value)));
    for (size_t i = 0; i < person->email_count; i++)
        if (person->emails[i].class == MATCH_EMAIL_PERSONAL)
            add(keys, MATCH_KEY_EMAIL, person->emails[i].key);
    for (size_t i = 0; i < person->phone_count; i++)
        add(keys, MATCH_KEY_PHONE, person->phones[i].key);
    for (size_t i = 0; i < person->email_count; i++)
        if (person->emails[i].class == MATCH_EMAIL_PERSONAL)
            add(keys, MATCH_KEY_EMAIL_WEAK, person->emails[i].weak);
    for (size_t i = 0; i < person->phone_count; i++)
        if (!person->phones[i].junk && person->phones[i].national.len >= NATIONAL_DIGITS)
            add(keys, MATCH_KEY_NATIONAL, last_of(person->phones[i].national, NATIONAL_DIGITS));
}

/* Both ways to write it; words in order, so that a swapped name is found too. */
static void add_full_name(struct keys *keys, const struct match_name *name)
{
    struct bytes given = name->given_too.at != NULL ? name->given_too : name->given;
    struct bytes family = name->family_too.at != NULL ? name->family_too : name->family;
    if (name->given.len == 0 || name->family.len == 0)
        return;
    struct bytes plain = arena_printf(keys->arena, "%.*s %.*s", BYTES_ARG(name->given), BYTES_ARG(name->family));
    add(keys, MATCH_KEY_NAME, fold_sorted(plain, keys->arena));
    if (name->given_too.at == NULL && name->family_too.at == NULL)
        return;
    struct bytes too = arena_printf(keys->arena, "%.*s %.*s", BYTES_ARG(given), BYTES_ARG(family));
    add(keys, MATCH_KEY_NAME, fold_sorted(too, keys->arena));
}

static void add_name_with(struct keys *keys, const struct match_person *person, const struct match_name *name)
{
    char sound[5];
    struct bytes family = name->family.len > 0 ? name->family : name->given;
    char initial = name->given.len > 0 ? name->given.at[0] : '?';
    struct arena *arena = keys->arena;
    similar_sound(family, sound);
    for (size_t i = 0; i < person->phone_count; i++)
        if (!person->phones[i].junk && person->phones[i].national.len >= LAST_DIGITS)
            add(keys, MATCH_KEY_NAME_PHONE,
                arena_printf(arena, "%c %s %.*s", initial, sound, BYTES_ARG(last_of(person->phones[i].national, LAST_DIGITS))));
    for (size_t i = 0; i < person->website_count; i++)
        add(keys, MATCH_KEY_NAME_DOMAIN, arena_printf(arena, "%c %s %.*s", initial, sound, BYTES_ARG(person->websites[i])));
    for (size_t i = 0; i < person->company_count; i++)
        add(keys, MATCH_KEY_NAME_DOMAIN, arena_printf(arena, "%c %s %.*s", initial, sound, BYTES_ARG(person->companies[i].key)));
    for (size_t i = 0; i < person->postcode_count; i++)
        add(keys, MATCH_KEY_NAME_POSTCODE,
            arena_printf(arena, "%.*s %.*s %.*s", BYTES_ARG(name->given), BYTES_ARG(name->family),
                         BYTES_ARG(person->postcodes[i])));
    for (size_t i = 0; i < person->born_count; i++)
        add(keys, MATCH_KEY_NAME_BORN, arena_printf(arena, "%s %.*s", sound, BYTES_ARG(person->born[i])));
}

static void add_local_part(struct keys *keys, const struct match_email *email)
{
    struct bytes rest = email->weak, local = rest.len > 0 ? bytes_cut(&rest, '@') : BYTES_NONE;
    if (email->class == MATCH_EMAIL_PERSONAL && local.len >= LOCAL_MIN)
        add(keys, MATCH_KEY_LOCAL, fold_without(local, '.', keys->arena));
}

enum status match_keys(const struct match_person *person, const uint8_t secret[MATCH_SECRET_SIZE], struct arena *arena,
                       struct match_key ret[MATCH_KEYS_MAX], size_t *ret_count, struct why *why)
{
    _Static_assert(MATCH_SECRET_SIZE == crypto_shorthash_KEYBYTES, "the secret is a key of the hash");
    struct match_key found[MATCH_KEYS_MAX];
    struct keys keys = {secret, arena, found, 0};
    add_identifiers(&keys, person);
    for (size_t i = 0; i < person->name_count; i++)
        add_full_name(&keys, &person->names[i]);
    for (size_t i = 0; i < person->name_count; i++)
        add_name_with(&keys, person, &person->names[i]);
    for (size_t i = 0; i < person->email_count; i++)
        add_local_part(&keys, &person->emails[i]);
    if (arena->failed)
        return why_set(why, FULL, "there is no memory left for the keys of a person");
    memcpy(ret, found, keys.count * sizeof *found);
    *ret_count = keys.count;
    return OK;
}

void match_person_holders(struct match_person *person, const struct match_key *key, uint32_t holders)
{
    for (size_t i = 0; i < person->email_count && key->kind == MATCH_KEY_EMAIL; i++)
        if (bytes_eq(person->emails[i].key, key->value))
            person->emails[i].holders = holders;
    for (size_t i = 0; i < person->phone_count && key->kind == MATCH_KEY_PHONE; i++)
        if (bytes_eq(person->phones[i].key, key->value))
            person->phones[i].holders = holders;
    for (size_t i = 0; i < person->id_count && key->kind == MATCH_KEY_ID; i++) {
        struct bytes rest = key->value;
        if (bytes_starts(rest, person->ids[i].system) &&
            bytes_eq(bytes_from(rest, person->ids[i].system.len + 1), person->ids[i].value))
            person->ids[i].holders = holders;
    }
}
