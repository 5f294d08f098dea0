/* A person as one blob: a version, then every list behind its count; a value is its length plus one, or 0 for absent, and its bytes. */
#include "base/buf.h"
#include "match/match_own.h"

/* ---- writing ---- */

static void put_number(struct buf *buf, uint64_t n)
{
    while (n >= 0x80) {
        buf_add_char(buf, (char)((n & 0x7F) | 0x80));
        n >>= 7;
    }
    buf_add_char(buf, (char)n);
}

static void put_bytes(struct buf *buf, struct bytes value)
{
    put_number(buf, value.at != NULL ? value.len + 1 : 0);
    if (value.at != NULL)
        buf_add(buf, value);
}

static void put_texts(struct buf *buf, const struct bytes *list, size_t count)
{
    put_number(buf, count);
    for (size_t i = 0; i < count; i++)
        put_bytes(buf, list[i]);
}

static void put_email(struct buf *buf, const struct match_email *email)
{
    const struct bytes texts[] = {email->raw,  email->send_to, email->exact,   email->key,
                                  email->weak, email->domain,  email->company, email->suggest};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        put_bytes(buf, texts[i]);
    put_number(buf, email->class);
    put_number(buf, (unsigned)email->uncertain | (unsigned)email->free_mail << 1 | (unsigned)email->disposable << 2);
    put_number(buf, email->holders);
}

static void put_phone(struct buf *buf, const struct match_phone *phone)
{
    const struct bytes texts[] = {phone->raw, phone->e164, phone->national, phone->extension, phone->key};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        put_bytes(buf, texts[i]);
    put_bytes(buf, bytes_of(phone->region));
    put_number(buf, phone->kind);
    put_number(buf, (unsigned)phone->possible | (unsigned)phone->valid << 1 | (unsigned)phone->junk << 2);
    put_number(buf, phone->holders);
}

static void put_name(struct buf *buf, const struct match_name *name)
{
    const struct bytes texts[] = {name->raw,       name->given,      name->middle, name->family,
                                  name->given_too, name->family_too, name->suffix};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        put_bytes(buf, texts[i]);
    put_number(buf, name->ordered);
}

static void put_rest(struct buf *buf, const struct match_person *person)
{
    put_number(buf, person->company_count);
    for (size_t i = 0; i < person->company_count; i++) {
        put_bytes(buf, person->companies[i].raw);
        put_bytes(buf, person->companies[i].key);
    }
    put_texts(buf, person->websites, person->website_count);
    put_texts(buf, person->postcodes, person->postcode_count);
    put_texts(buf, person->born, person->born_count);
    put_number(buf, person->region_count);
    for (size_t i = 0; i < person->region_count; i++)
        put_bytes(buf, bytes_of(person->regions[i]));
    put_number(buf, person->id_count);
    for (size_t i = 0; i < person->id_count; i++) {
        put_bytes(buf, person->ids[i].system);
        put_bytes(buf, person->ids[i].value);
        put_number(buf, person->ids[i].weak);
        put_number(buf, person->ids[i].holders);
    }
}

enum status match_pack(const struct match_person *person, struct arena *arena, struct bytes *ret, struct why *why)
{
    struct buf buf;
    buf_init(&buf, MATCH_PACK_MAX);
    put_number(&buf, MATCH_VERSION);
    put_number(&buf, person->email_count);
    for (size_t i = 0; i < person->email_count; i++)
        put_email(&buf, &person->emails[i]);
    put_number(&buf, person->phone_count);
    for (size_t i = 0; i < person->phone_count; i++)
        put_phone(&buf, &person->phones[i]);
    put_number(&buf, person->name_count);
    for (size_t i = 0; i < person->name_count; i++)
        put_name(&buf, &person->names[i]);
    put_rest(&buf, person);
    struct bytes packed = buf.failed ? BYTES_NONE : arena_dup(arena, buf_bytes(&buf));
    buf_release(&buf);
    if (packed.at == NULL)
        return why_set(why, FULL, "there is no memory left for a packed person");
    *ret = packed;
    return OK;
}

/* ---- reading ---- */

struct unpacking {
    struct bytes rest;
    bool broken;
};

static uint64_t get_number(struct unpacking *in, uint64_t max)
{
    uint64_t n = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
        if (in->rest.len == 0)
            break;
        unsigned char c = (unsigned char)in->rest.at[0];
        in->rest = bytes_from(in->rest, 1);
        n |= (uint64_t)(c & 0x7F) << shift;
        if (c >= 0x80)
            continue;
        if (n <= max)
            return n;
        break;
    }
    in->broken = true;
    return 0;
}

static struct bytes get_bytes(struct unpacking *in)
{
    uint64_t size = get_number(in, MATCH_PACK_MAX);
    if (size == 0 || in->broken)
        return BYTES_NONE;
    if (size - 1 > in->rest.len) {
        in->broken = true;
        return BYTES_NONE;
    }
    struct bytes value = {in->rest.at, (size_t)size - 1};
    in->rest = bytes_from(in->rest, value.len);
    return value;
}

static void get_texts(struct unpacking *in, struct bytes *list, size_t *ret_count, size_t max)
{
    *ret_count = (size_t)get_number(in, max);
    for (size_t i = 0; i < *ret_count; i++)
        list[i] = get_bytes(in);
}

static void get_region(struct unpacking *in, char ret[3])
{
    struct bytes region = get_bytes(in);
    in->broken |= region.len != 0 && region.len != 2;
    memset(ret, 0, 3);
    if (region.len == 2 && !in->broken)
        memcpy(ret, region.at, 2);
}

static void get_email(struct unpacking *in, struct match_email *email)
{
    struct bytes *const texts[] = {&email->raw,  &email->send_to, &email->exact,   &email->key,
                                   &email->weak, &email->domain,  &email->company, &email->suggest};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = get_bytes(in);
    email->class = (enum match_email_class)get_number(in, MATCH_EMAIL_PLACEHOLDER);
    uint64_t flags = get_number(in, 7);
    email->uncertain = flags & 1;
    email->free_mail = flags & 2;
    email->disposable = flags & 4;
    email->holders = (uint32_t)get_number(in, UINT32_MAX);
}

static void get_phone(struct unpacking *in, struct match_phone *phone)
{
    struct bytes *const texts[] = {&phone->raw, &phone->e164, &phone->national, &phone->extension, &phone->key};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = get_bytes(in);
    get_region(in, phone->region);
    phone->kind = (enum match_phone_kind)get_number(in, MATCH_PHONE_TOLL_FREE);
    uint64_t flags = get_number(in, 7);
    phone->possible = flags & 1;
    phone->valid = flags & 2;
    phone->junk = flags & 4;
    phone->holders = (uint32_t)get_number(in, UINT32_MAX);
}

static void get_name(struct unpacking *in, struct match_name *name)
{
    struct bytes *const texts[] = {&name->raw,       &name->given,      &name->middle, &name->family,
                                   &name->given_too, &name->family_too, &name->suffix};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = get_bytes(in);
    name->ordered = get_number(in, 1) != 0;
}

static void get_rest(struct unpacking *in, struct match_person *person)
{
    person->company_count = (size_t)get_number(in, MATCH_COMPANIES_MAX);
    for (size_t i = 0; i < person->company_count; i++) {
        person->companies[i].raw = get_bytes(in);
        person->companies[i].key = get_bytes(in);
    }
    get_texts(in, person->websites, &person->website_count, MATCH_COMPANIES_MAX);
    get_texts(in, person->postcodes, &person->postcode_count, MATCH_PLACES_MAX);
    get_texts(in, person->born, &person->born_count, MATCH_PLACES_MAX);
    person->region_count = (size_t)get_number(in, MATCH_PLACES_MAX);
    for (size_t i = 0; i < person->region_count; i++)
        get_region(in, person->regions[i]);
    person->id_count = (size_t)get_number(in, MATCH_IDS_MAX);
    for (size_t i = 0; i < person->id_count; i++) {
        person->ids[i].system = get_bytes(in);
        person->ids[i].value = get_bytes(in);
        person->ids[i].weak = get_number(in, 1) != 0;
        person->ids[i].holders = (uint32_t)get_number(in, UINT32_MAX);
    }
}

enum status match_unpack(struct bytes packed, struct match_person *ret, struct why *why)
{
    struct unpacking in = {packed, packed.at == NULL || packed.len > MATCH_PACK_MAX};
    struct match_person person = {.email_count = 0};
    uint64_t version = get_number(&in, UINT32_MAX);
    if (!in.broken && version != MATCH_VERSION)
        return why_set(why, INVALID, "a packed person has version %llu, this program reads %d: normalise the record again",
                       (unsigned long long)version, MATCH_VERSION);
    person.email_count = (size_t)get_number(&in, MATCH_EMAILS_MAX);
    for (size_t i = 0; i < person.email_count; i++)
        get_email(&in, &person.emails[i]);
    person.phone_count = (size_t)get_number(&in, MATCH_PHONES_MAX);
    for (size_t i = 0; i < person.phone_count; i++)
        get_phone(&in, &person.phones[i]);
    person.name_count = (size_t)get_number(&in, MATCH_NAMES_MAX);
    for (size_t i = 0; i < person.name_count; i++)
        get_name(&in, &person.names[i]);
    get_rest(&in, &person);
    if (in.broken || in.rest.len > 0)
        return why_set(why, BROKEN, "a packed person is damaged");
    *ret = person;
    return OK;
}
