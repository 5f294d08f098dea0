/* Field by field: what is equal, near or different between a record and a lead, and what that is worth. */
#include "match/match_own.h"

static void add_line(struct evidence *evidence, const char *field, const char *level, struct bytes ours, struct bytes theirs,
                     int32_t weight_mb, uint32_t holders)
{
    struct match_result *result = evidence->result;
    ASSERT(result->line_count < MATCH_LINES_MAX);
    result->lines[result->line_count++] = (struct match_line){field, level, ours, theirs, weight_mb, holders};
    result->score_mb += weight_mb;
}

/* How much an equal identifier says. The number of leads cancels: whoever holds the value is one of few, however many there are. */
static int32_t identifier_mb(const struct evidence *evidence, int32_t alone_mb, uint32_t holders)
{
    if (holders <= 1)
        return evidence->leads_mb + alone_mb;
    return evidence->leads_mb + rules_get()->held_mb - similar_log2_mb(holders - 1);
}

static uint32_t most(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void note_holders(struct evidence *evidence, bool equal, uint32_t holders)
{
    evidence->alone |= equal && holders <= 1;
    evidence->household |= equal && holders <= (uint32_t)rules_get()->household_max;
}

/* ---- ids of other systems ---- */

static void gather_ids(const struct match_person *record, const struct match_person *lead, struct evidence *evidence)
{
    const struct match_id *same = NULL, *weak = NULL, *ours = NULL, *theirs = NULL;
    for (size_t i = 0; i < record->id_count; i++) {
        for (size_t j = 0; j < lead->id_count; j++) {
            const struct match_id *a = &record->ids[i], *b = &lead->ids[j];
            bool is_weak = a->weak || b->weak;
            if (!bytes_eq(a->system, b->system))
                continue;
            if (!bytes_eq(a->value, b->value)) {
                ours = is_weak ? ours : a;
                theirs = is_weak ? theirs : b;
            } else if (is_weak) {
                weak = a;
            } else {
                same = a;
            }
        }
    }
    const struct rules *rules = rules_get();
    evidence->same_id = same != NULL;
    if (same != NULL)
        add_line(evidence, "id", "same", same->value, same->value, rules->certain_mb, same->holders);
    else if (ours != NULL)
        add_line(evidence, "id", "differs", ours->value, theirs->value, rules->id_differs_mb, 0);
    if (weak != NULL && weak->holders < (uint32_t)rules->generic_from) {
        evidence->weak_identifier = true;
        add_line(evidence, "id", "weak", weak->value, weak->value, rules->id_weak_mb, weak->holders);
    }
}

/* ---- e-mail ---- */

enum email_level { EMAIL_NONE, EMAIL_DIFFERS, EMAIL_ROLE, EMAIL_GENERIC, EMAIL_WEAK, EMAIL_ALIAS, EMAIL_SAME };
static const char *const email_level_names[] = {"none", "differs", "role", "generic", "weak", "alias", "same"};

static enum email_level email_level(const struct match_email *a, const struct match_email *b)
{
    if (a->key.at == NULL || b->key.at == NULL)
        return EMAIL_NONE;
    if (a->class == MATCH_EMAIL_ROLE || b->class == MATCH_EMAIL_ROLE)
        return bytes_eq(a->key, b->key) ? EMAIL_ROLE : EMAIL_NONE;
    bool generic = most(a->holders, b->holders) >= (uint32_t)rules_get()->generic_from;
    if (bytes_eq(a->key, b->key) && generic)
        return EMAIL_GENERIC;
    if (bytes_eq(a->exact, b->exact))
        return EMAIL_SAME;
    if (bytes_eq(a->key, b->key) && !a->uncertain && !b->uncertain)
        return EMAIL_ALIAS;
    return bytes_eq(a->weak, b->weak) || bytes_eq(a->key, b->key) ? EMAIL_WEAK : EMAIL_DIFFERS;
}

static int32_t email_mb(const struct evidence *evidence, enum email_level level, uint32_t holders)
{
    const struct rules *rules = rules_get();
    int32_t full = identifier_mb(evidence, rules->email_same_mb, holders);
    switch (level) {
    case EMAIL_SAME:
        return full;
    case EMAIL_ALIAS:
        return full + rules->email_alias_mb;
    case EMAIL_WEAK:
        return full + rules->email_weak_mb;
    case EMAIL_DIFFERS:
        return rules->identifier_differs_mb;
    case EMAIL_NONE:
    case EMAIL_ROLE:
    case EMAIL_GENERIC:
        return 0;
    }
    return 0;
}

static void gather_emails(const struct match_person *record, const struct match_person *lead, struct evidence *evidence)
{
    enum email_level best = EMAIL_NONE;
    const struct match_email *ours = NULL, *theirs = NULL;
    for (size_t i = 0; i < record->email_count; i++) {
        for (size_t j = 0; j < lead->email_count; j++) {
            enum email_level level = email_level(&record->emails[i], &lead->emails[j]);
            if (level <= best)
                continue;
            best = level;
            ours = &record->emails[i];
            theirs = &lead->emails[j];
        }
    }
    if (best == EMAIL_NONE)
        return;
    uint32_t holders = most(ours->holders, theirs->holders);
    evidence->email = best >= EMAIL_ALIAS;
    evidence->email_differs = best == EMAIL_DIFFERS;
    note_holders(evidence, evidence->email, holders);
    evidence->own_domain = evidence->email && ours->company.at != NULL;
    evidence->weak_identifier |= best == EMAIL_WEAK;
    add_line(evidence, "email", email_level_names[best], ours->exact, theirs->exact, email_mb(evidence, best, holders), holders);
}

/* ---- phone ---- */

enum phone_level {
    PHONE_NONE,
    PHONE_DIFFERS,
    PHONE_GENERIC,
    PHONE_DIGIT_OFF,
    PHONE_EXTENSION,
    PHONE_UNVERIFIED,
    PHONE_NATIONAL,
    PHONE_EQUIVALENT,
    PHONE_SAME,
};
static const char *const phone_level_names[] = {"none",       "differs",  "generic",    "digit_off", "extension",
                                                "unverified", "national", "equivalent", "same"};

enum { NATIONAL_MIN = 9 }; /* fewer digits of an unknown country are anybody's */

/* Equal digits, and nobody knows the country of one. */
static bool same_national(const struct match_phone *a, const struct match_phone *b)
{
    bool unknown = a->e164.at == NULL || b->e164.at == NULL;
    return unknown && a->national.len >= NATIONAL_MIN && bytes_eq(a->national, b->national);
}

static bool is_digit_off(const struct match_phone *a, const struct match_phone *b)
{
    return a->key.at != NULL && b->key.at != NULL && a->key.len == b->key.len && strcmp(a->region, b->region) == 0 &&
           similar_edits(a->key, b->key) == 1;
}

static enum phone_level phone_level(const struct match_phone *a, const struct match_phone *b)
{
    if (a->junk || b->junk || a->national.at == NULL || b->national.at == NULL)
        return PHONE_NONE;
    bool same = a->key.at != NULL && bytes_eq(a->key, b->key);
    bool generic = most(a->holders, b->holders) >= (uint32_t)rules_get()->generic_from;
    if (same && (generic || a->kind == MATCH_PHONE_TOLL_FREE || b->kind == MATCH_PHONE_TOLL_FREE))
        return PHONE_GENERIC;
    if (same && a->extension.len > 0 && b->extension.len > 0 && !bytes_eq(a->extension, b->extension))
        return PHONE_EXTENSION;
    if (same && !a->valid && !b->valid)
        return PHONE_UNVERIFIED;
    if (same)
        return bytes_eq(a->e164, b->e164) ? PHONE_SAME : PHONE_EQUIVALENT;
    if (same_national(a, b))
        return PHONE_NATIONAL;
    return is_digit_off(a, b) ? PHONE_DIGIT_OFF : PHONE_DIFFERS;
}

static int32_t line_mb(enum match_phone_kind kind)
{
    const struct rules *rules = rules_get();
    switch (kind) {
    case MATCH_PHONE_MOBILE:
        return rules->phone_mobile_mb;
    case MATCH_PHONE_EITHER:
        return rules->phone_either_mb;
    case MATCH_PHONE_FIXED:
        return rules->phone_fixed_mb;
    case MATCH_PHONE_OTHER:
    case MATCH_PHONE_TOLL_FREE:
        return rules->phone_other_mb;
    }
    return 0;
}

static int32_t phone_mb(const struct evidence *evidence, enum phone_level level, enum match_phone_kind kind, uint32_t holders)
{
    const struct rules *rules = rules_get();
    int32_t full = identifier_mb(evidence, line_mb(kind), holders);
    switch (level) {
    case PHONE_SAME:
        return full;
    case PHONE_EQUIVALENT:
        return full + rules->phone_equivalent_mb;
    case PHONE_NATIONAL:
        return full + rules->phone_national_mb;
    case PHONE_UNVERIFIED:
        return full + rules->phone_unverified_mb;
    case PHONE_EXTENSION:
        return full + rules->phone_extension_mb;
    case PHONE_DIGIT_OFF:
        return full + rules->phone_digit_off_mb;
    case PHONE_DIFFERS:
        return rules->identifier_differs_mb;
    case PHONE_NONE:
    case PHONE_GENERIC:
        return 0;
    }
    return 0;
}

static struct bytes shown_phone(const struct match_phone *phone)
{
    return phone->e164.at != NULL ? phone->e164 : phone->national;
}

static void gather_phones(const struct match_person *record, const struct match_person *lead, struct evidence *evidence)
{
    enum phone_level best = PHONE_NONE;
    const struct match_phone *ours = NULL, *theirs = NULL;
    for (size_t i = 0; i < record->phone_count; i++) {
        for (size_t j = 0; j < lead->phone_count; j++) {
            enum phone_level level = phone_level(&record->phones[i], &lead->phones[j]);
            if (level <= best)
                continue;
            best = level;
            ours = &record->phones[i];
            theirs = &lead->phones[j];
        }
    }
    if (best == PHONE_NONE)
        return;
    uint32_t holders = most(ours->holders, theirs->holders);
    enum match_phone_kind kind = ours->e164.at != NULL ? ours->kind : theirs->e164.at != NULL ? theirs->kind : MATCH_PHONE_EITHER;
    evidence->phone = best >= PHONE_NATIONAL;
    note_holders(evidence, evidence->phone, holders);
    evidence->weak_identifier |= best > PHONE_GENERIC && best < PHONE_NATIONAL;
    add_line(evidence, "phone", phone_level_names[best], shown_phone(ours), shown_phone(theirs),
             phone_mb(evidence, best, kind, holders), holders);
}

/* ---- names ---- */

static const char *const given_level_names[] = {"unknown", "same", "nickname", "short", "initial", "typo", "conflict"};
static const char *const family_level_names[] = {"unknown", "same", "part", "typo", "initial", "conflict"};

/* Generations: "jr" and "2" may be one person, "jr" and "sr" are two. */
static bool suffixes_agree(struct bytes a, struct bytes b)
{
    bool younger = (bytes_is(a, "jr") && bytes_is(b, "2")) || (bytes_is(a, "2") && bytes_is(b, "jr"));
    return bytes_eq(a, b) || younger;
}

static struct bytes suffix_of(const struct match_person *person)
{
    for (size_t i = 0; i < person->name_count; i++)
        if (person->names[i].suffix.at != NULL)
            return person->names[i].suffix;
    return BYTES_NONE;
}

static bool any_suffix_agrees(const struct match_person *record, const struct match_person *lead)
{
    for (size_t i = 0; i < record->name_count; i++)
        for (size_t j = 0; j < lead->name_count; j++)
            if (record->names[i].suffix.at != NULL && lead->names[j].suffix.at != NULL &&
                suffixes_agree(record->names[i].suffix, lead->names[j].suffix))
                return true;
    return false;
}

static void gather_suffixes(const struct match_person *record, const struct match_person *lead, struct evidence *evidence)
{
    const struct rules *rules = rules_get();
    struct bytes ours = suffix_of(record), theirs = suffix_of(lead);
    if (ours.at == NULL && theirs.at == NULL)
        return;
    evidence->suffix_unknown = ours.at == NULL || theirs.at == NULL;
    evidence->suffix_conflict = !evidence->suffix_unknown && !any_suffix_agrees(record, lead);
    const char *level = evidence->suffix_unknown ? "unknown" : evidence->suffix_conflict ? "conflict" : "same";
    int32_t weight = evidence->suffix_unknown ? rules->suffix_missing_mb : evidence->suffix_conflict ? 0 : rules->suffix_same_mb;
    add_line(evidence, "suffix", level, ours, theirs, weight, 0);
}

static bool is_full(struct bytes given)
{
    return given.len > 1;
}

/* An initial, or no given name, agrees with nobody where the lead has a full one that does not. */
static bool is_better(const struct name_match *one, const struct name_match *best)
{
    bool one_full = one->given == GIVEN_CONFLICT && is_full(one->ours->given) && is_full(one->theirs->given);
    bool best_full = best->given == GIVEN_CONFLICT && is_full(best->ours->given) && is_full(best->theirs->given);
    bool one_vague = one->given == GIVEN_INITIAL || one->given == GIVEN_UNKNOWN;
    bool best_vague = best->given == GIVEN_INITIAL || best->given == GIVEN_UNKNOWN;
    if (one_full && best_vague)
        return true;
    if (best_full && one_vague)
        return false;
    return one->total_mb != best->total_mb ? one->total_mb > best->total_mb : one->given_mb > best->given_mb;
}

static void gather_names(const struct match_person *record, const struct match_person *lead, struct evidence *evidence)
{
    const struct rules *rules = rules_get();
    bool shared = evidence->email || evidence->phone, found = false;
    struct name_match best = {.ours = NULL};
    evidence->nameless = record->name_count == 0 || lead->name_count == 0;
    evidence->both_nameless = record->name_count == 0 && lead->name_count == 0;
    for (size_t i = 0; i < record->name_count; i++) {
        for (size_t j = 0; j < lead->name_count; j++) {
            struct name_match match = name_compare(&record->names[i], &lead->names[j], shared);
            if (!found || is_better(&match, &best))
                best = match;
            found = true;
        }
    }
    evidence->name = best;
    if (!found)
        return;
    evidence->names_conflict = best.given == GIVEN_CONFLICT || best.family == FAMILY_CONFLICT;
    evidence->names_agree = !evidence->names_conflict && best.total_mb > 0;
    add_line(evidence, "given_name", given_level_names[best.given], best.ours->given, best.theirs->given, best.given_mb, 0);
    add_line(evidence, "family_name", family_level_names[best.family], best.ours->family, best.theirs->family, best.family_mb, 0);
    if (best.swapped)
        add_line(evidence, "name_order", "swapped", best.ours->raw, best.theirs->raw, rules->name_swapped_mb, 0);
    if (best.middle_conflict)
        add_line(evidence, "middle_name", "conflict", best.ours->middle, best.theirs->middle, rules->middle_conflict_mb, 0);
    gather_suffixes(record, lead, evidence);
}

/* The equal mailbox is named after the person that both name. */
static void gather_mailbox_name(const struct match_person *record, const struct match_person *lead, struct evidence *evidence)
{
    if (!evidence->email || !evidence->names_agree)
        return;
    for (size_t i = 0; i < record->email_count; i++) {
        const struct match_email *email = &record->emails[i];
        for (size_t j = 0; j < lead->email_count; j++) {
            if (email->key.at == NULL || !bytes_eq(email->key, lead->emails[j].key) ||
                !(name_in_mailbox(evidence->name.ours, email) || name_in_mailbox(evidence->name.theirs, email)))
                continue;
            struct bytes name =
                name_in_mailbox(evidence->name.ours, email) ? evidence->name.ours->raw : evidence->name.theirs->raw;
            add_line(evidence, "email", "bears_name", email->exact, name, rules_get()->email_names_mb, 0);
            return;
        }
    }
}

/* ---- places ---- */

static bool common_text(const struct bytes *a, size_t a_count, const struct bytes *b, size_t b_count, struct bytes *ret)
{
    for (size_t i = 0; i < a_count; i++) {
        for (size_t j = 0; j < b_count; j++) {
            if (!bytes_eq(a[i], b[j]))
                continue;
            *ret = a[i];
            return true;
        }
    }
    return false;
}

static void gather_companies(const struct match_person *record, const struct match_person *lead, struct evidence *evidence)
{
    const struct rules *rules = rules_get();
    struct bytes website;
    for (size_t i = 0; i < record->company_count; i++) {
        for (size_t j = 0; j < lead->company_count; j++) {
            if (!bytes_eq(record->companies[i].key, lead->companies[j].key))
                continue;
            evidence->place = true;
            add_line(evidence, "company", "same", record->companies[i].raw, lead->companies[j].raw, rules->company_same_mb, 0);
            return;
        }
    }
    /* An equal address has an equal domain: that is not a second reason. */
    if (!evidence->email && common_text(record->websites, record->website_count, lead->websites, lead->website_count, &website)) {
        evidence->place = true;
        add_line(evidence, "domain", "same", website, website, rules->domain_same_mb, 0);
    } else if (record->company_count > 0 && lead->company_count > 0) {
        evidence->company_differs = true;
        add_line(evidence, "company", "differs", record->companies[0].raw, lead->companies[0].raw, rules->company_differs_mb, 0);
    }
}

static void gather_country(const struct match_person *record, const struct match_person *lead, struct evidence *evidence)
{
    for (size_t i = 0; i < record->region_count; i++)
        for (size_t j = 0; j < lead->region_count; j++)
            if (memcmp(record->regions[i], lead->regions[j], 3) == 0)
                return;
    if (record->region_count > 0 && lead->region_count > 0)
        add_line(evidence, "country", "differs", bytes_of(record->regions[0]), bytes_of(lead->regions[0]),
                 rules_get()->country_differs_mb, 0);
}

static void gather_postcodes(const struct match_person *record, const struct match_person *lead, struct evidence *evidence)
{
    const struct rules *rules = rules_get();
    struct bytes same;
    if (record->postcode_count == 0 || lead->postcode_count == 0)
        return;
    bool found = common_text(record->postcodes, record->postcode_count, lead->postcodes, lead->postcode_count, &same);
    evidence->place |= found;
    add_line(evidence, "postcode", found ? "same" : "differs", found ? same : record->postcodes[0],
             found ? same : lead->postcodes[0], found ? rules->postcode_same_mb : rules->postcode_differs_mb, 0);
}

/* One digit off, or day and month swapped. */
static bool is_near_date(struct bytes a, struct bytes b)
{
    if (a.len != 8 || b.len != 8)
        return false;
    char swapped[8];
    memcpy(swapped, a.at, 4);
    memcpy(swapped + 4, a.at + 6, 2);
    memcpy(swapped + 6, a.at + 4, 2);
    return similar_edits(a, b) == 1 || memcmp(swapped, b.at, 8) == 0;
}

static void gather_born(const struct match_person *record, const struct match_person *lead, struct evidence *evidence)
{
    const struct rules *rules = rules_get();
    struct bytes same;
    if (record->born_count == 0 || lead->born_count == 0)
        return;
    evidence->born = common_text(record->born, record->born_count, lead->born, lead->born_count, &same);
    if (evidence->born) {
        add_line(evidence, "born", "same", same, same, rules->born_same_mb, 0);
        return;
    }
    for (size_t i = 0; i < record->born_count; i++) {
        for (size_t j = 0; j < lead->born_count; j++) {
            if (!is_near_date(record->born[i], lead->born[j]))
                continue;
            evidence->weak_identifier = true;
            add_line(evidence, "born", "near", record->born[i], lead->born[j], rules->born_near_mb, 0);
            return;
        }
    }
    evidence->born_differs = true;
    add_line(evidence, "born", "differs", record->born[0], lead->born[0], rules->born_differs_mb, 0);
}

/* ---- all ---- */

void evidence_gather(const struct match_person *record, const struct match_person *lead, const struct match_world *world,
                     struct evidence *ret)
{
    uint64_t floor = (uint64_t)rules_get()->leads_floor;
    ret->leads_mb = similar_log2_mb(world->leads > floor ? world->leads : floor);
    add_line(ret, "leads", "one_of_many", BYTES_NONE, BYTES_NONE, -ret->leads_mb, 0);
    gather_ids(record, lead, ret);
    gather_emails(record, lead, ret);
    gather_phones(record, lead, ret);
    gather_names(record, lead, ret);
    gather_mailbox_name(record, lead, ret);
    gather_companies(record, lead, ret);
    gather_country(record, lead, ret);
    gather_postcodes(record, lead, ret);
    gather_born(record, lead, ret);
}
