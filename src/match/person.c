/* A person: what one record says, or all records of a lead together. */
#include "match/match_own.h"

/* ---- adding, each value once ---- */

static void add_text(struct bytes *list, size_t *count, size_t max, struct bytes one)
{
    if (one.len == 0 || *count == max)
        return;
    for (size_t i = 0; i < *count; i++)
        if (bytes_eq(list[i], one))
            return;
    list[(*count)++] = one;
}

static bool same_email(const struct match_email *a, const struct match_email *b)
{
    return a->exact.len > 0 || b->exact.len > 0 ? bytes_eq(a->exact, b->exact) : bytes_eq(a->raw, b->raw);
}

static void add_email(struct match_person *person, const struct match_email *one)
{
    for (size_t i = 0; i < person->email_count; i++)
        if (same_email(&person->emails[i], one))
            return;
    if (person->email_count < MATCH_EMAILS_MAX)
        person->emails[person->email_count++] = *one;
    add_text(person->websites, &person->website_count, MATCH_COMPANIES_MAX, one->company);
}

static bool same_phone(const struct match_phone *a, const struct match_phone *b)
{
    if (a->e164.len > 0 || b->e164.len > 0)
        return bytes_eq(a->e164, b->e164) && bytes_eq(a->extension, b->extension);
    if (a->national.len > 0 || b->national.len > 0)
        return bytes_eq(a->national, b->national);
    return bytes_eq(a->raw, b->raw);
}

static void add_phone(struct match_person *person, const struct match_phone *one)
{
    for (size_t i = 0; i < person->phone_count; i++)
        if (same_phone(&person->phones[i], one))
            return;
    if (person->phone_count < MATCH_PHONES_MAX)
        person->phones[person->phone_count++] = *one;
}

static bool same_name(const struct match_name *a, const struct match_name *b)
{
    return bytes_eq(a->given, b->given) && bytes_eq(a->middle, b->middle) && bytes_eq(a->family, b->family) &&
           bytes_eq(a->suffix, b->suffix) && bytes_eq(a->given_too, b->given_too) && bytes_eq(a->family_too, b->family_too) &&
           a->ordered == b->ordered;
}

static void add_name(struct match_person *person, const struct match_name *one)
{
    if (one->given.len == 0 && one->family.len == 0)
        return;
    for (size_t i = 0; i < person->name_count; i++)
        if (same_name(&person->names[i], one))
            return;
    if (person->name_count < MATCH_NAMES_MAX)
        person->names[person->name_count++] = *one;
}

static void add_company(struct match_person *person, const struct match_company *one)
{
    for (size_t i = 0; i < person->company_count; i++)
        if (bytes_eq(person->companies[i].key, one->key))
            return;
    if (one->key.len > 0 && person->company_count < MATCH_COMPANIES_MAX)
        person->companies[person->company_count++] = *one;
}

static void add_region(struct match_person *person, const char region[3])
{
    for (size_t i = 0; i < person->region_count; i++)
        if (memcmp(person->regions[i], region, 3) == 0)
            return;
    if (region[0] != '\0' && person->region_count < MATCH_PLACES_MAX)
        memcpy(person->regions[person->region_count++], region, 3);
}

static void add_id(struct match_person *person, const struct match_id *one)
{
    if (one->system.len == 0 || one->value.len == 0)
        return;
    for (size_t i = 0; i < person->id_count; i++)
        if (bytes_eq(person->ids[i].system, one->system) && bytes_eq(person->ids[i].value, one->value))
            return;
    if (person->id_count < MATCH_IDS_MAX)
        person->ids[person->id_count++] = *one;
}

void match_person_add(struct match_person *into, const struct match_person *more)
{
    for (size_t i = 0; i < more->email_count; i++)
        if (more->emails[i].key.at != NULL)
            add_email(into, &more->emails[i]);
    for (size_t i = 0; i < more->phone_count; i++)
        if (!more->phones[i].junk && more->phones[i].national.at != NULL)
            add_phone(into, &more->phones[i]);
    for (size_t i = 0; i < more->name_count; i++)
        add_name(into, &more->names[i]);
    for (size_t i = 0; i < more->company_count; i++)
        add_company(into, &more->companies[i]);
    for (size_t i = 0; i < more->website_count; i++)
        add_text(into->websites, &into->website_count, MATCH_COMPANIES_MAX, more->websites[i]);
    for (size_t i = 0; i < more->postcode_count; i++)
        add_text(into->postcodes, &into->postcode_count, MATCH_PLACES_MAX, more->postcodes[i]);
    for (size_t i = 0; i < more->born_count; i++)
        add_text(into->born, &into->born_count, MATCH_PLACES_MAX, more->born[i]);
    for (size_t i = 0; i < more->region_count; i++)
        add_region(into, more->regions[i]);
    for (size_t i = 0; i < more->id_count; i++)
        add_id(into, &more->ids[i]);
}

/* ---- making ---- */

/* "1971-06-24" → "19710624"; nothing when it is not eight digits. */
static struct bytes born_digits(struct bytes text, struct arena *arena)
{
    char digits[8];
    size_t len = 0;
    for (size_t i = 0; i < text.len && i < MATCH_VALUE_MAX; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            continue;
        if (len == sizeof digits)
            return BYTES_NONE;
        digits[len++] = text.at[i];
    }
    return len == sizeof digits ? arena_dup(arena, (struct bytes){digits, len}) : BYTES_NONE;
}

static void make_ids(const struct match_input *input, struct arena *arena, struct match_person *person)
{
    for (size_t i = 0; i < input->id_count; i++) {
        struct match_id id = input->ids[i];
        if (id.system.len > MATCH_VALUE_MAX || id.value.len > MATCH_VALUE_MAX)
            continue;
        id.system = arena_dup(arena, id.system);
        id.value = arena_dup(arena, id.value);
        add_id(person, &id);
    }
}

static enum status make_identifiers(const struct match_input *input, struct arena *arena, struct match_person *person,
                                    struct why *why)
{
    struct bytes region = input->region.len > 0 ? input->region : input->phone_region;
    for (size_t i = 0; i < input->email_count && i < MATCH_EMAILS_MAX; i++) {
        struct match_email email;
        TRY(match_email_make(input->emails[i], arena, &email, why));
        if (email.raw.len > 0)
            add_email(person, &email);
    }
    for (size_t i = 0; i < input->phone_count && i < MATCH_PHONES_MAX; i++) {
        struct match_phone phone;
        TRY(match_phone_make(input->phones[i], region, arena, &phone, why));
        if (phone.raw.len > 0)
            add_phone(person, &phone);
    }
    return OK;
}

static void make_places(const struct match_input *input, struct arena *arena, struct match_person *person)
{
    char region[3];
    struct bytes website = input->website.len > 0 ? match_domain(input->website, arena) : BYTES_NONE;
    if (website.at != NULL && !domain_is_free_mail(website))
        add_text(person->websites, &person->website_count, MATCH_COMPANIES_MAX, website);
    struct bytes postcode = fold_without(fold_replace(fold_text(input->postcode, arena), '-', ' ', arena), ' ', arena);
    add_text(person->postcodes, &person->postcode_count, MATCH_PLACES_MAX, postcode);
    add_text(person->born, &person->born_count, MATCH_PLACES_MAX, born_digits(input->born, arena));
    if (match_region(input->region, region))
        add_region(person, region);
}

enum status match_person_make(const struct match_input *input, struct arena *arena, struct match_person *ret, struct why *why)
{
    struct match_person person = {.email_count = 0};
    struct match_name name;
    struct match_company company;
    TRY(make_identifiers(input, arena, &person, why));
    TRY(match_name_make(input->name, input->given, input->family, arena, &name, why));
    add_name(&person, &name);
    TRY(match_company_make(input->company, arena, &company, why));
    add_company(&person, &company);
    make_places(input, arena, &person);
    make_ids(input, arena, &person);
    if (arena->failed)
        return why_set(why, FULL, "there is no memory left for a person");
    *ret = person;
    return OK;
}
