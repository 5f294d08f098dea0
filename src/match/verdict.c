/* From evidence to a zone: the cascade. Each way out has a name and a sentence. */
#include "match/match_own.h"

const char *const match_zone_names[] = {"new", "review", "same", NULL};

static const struct {
    const char *rule, *sentence;
} sentences[] = {
    {"same_id", "another system calls both by the same id"},
    {"identifier_and_name", "an e-mail or phone that nobody else has, and a name that agrees"},
    {"same_mailbox", "the same mailbox, which nobody else has, and no name that says otherwise"},
    {"same_line", "the same phone, which nobody else has, and nothing else is known of either"},
    {"score", "the sum of the evidence decides"},
    {"suffix_conflict", "Jr and Sr: two generations are two persons"},
    {"suffix_unknown", "one is a Jr or Sr, of the other nobody knows"},
    {"names_conflict", "much agrees, but the names do not"},
    {"mailbox_of_another", "the same mailbox under another name: shared, or passed on"},
    {"weak_identifier", "the e-mail or phone is only nearly the same"},
    {"no_identifier", "neither e-mail nor phone says so"},
    {"one_kind", "only one kind of evidence agrees"},
    {"born_differs", "the dates of birth differ"},
    {"name_alone", "only the name agrees: many persons share one"},
    {"too_little", "too little agrees"},
};

const char *match_rule_sentence(const char *rule)
{
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
        if (strcmp(sentences[i].rule, rule) == 0)
            return sentences[i].sentence;
    return "";
}

/* How many independent kinds of evidence agree. */
static int kinds_of(const struct evidence *evidence)
{
    return evidence->email + evidence->phone + evidence->names_agree + evidence->place + evidence->born +
           evidence->weak_identifier;
}

/* A name that tells one person of a household from the others. An initial does only where a mailbox is one person's, and what is not
 * written alike only where nobody else holds the identifier. */
static bool is_named_alike(const struct evidence *evidence)
{
    const struct name_match *name = &evidence->name;
    if (!evidence->names_agree || name->middle_conflict)
        return false;
    if (name->given == GIVEN_SAME && name->family == FAMILY_SAME)
        return evidence->household;
    bool vague = name->given == GIVEN_INITIAL || name->given == GIVEN_SHORT;
    bool given = name->given == GIVEN_SAME || name->given == GIVEN_NICKNAME || name->given == GIVEN_TYPO ||
                 (evidence->own_domain && vague);
    bool family = name->family == FAMILY_SAME || name->family == FAMILY_TYPO || name->family == FAMILY_PART;
    return evidence->alone && given && family;
}

/* Something that only a person may look past, or NULL. */
static const char *obstacle(const struct evidence *evidence)
{
    if (evidence->names_conflict)
        return "names_conflict";
    if (evidence->suffix_unknown && !evidence->email)
        return "suffix_unknown";
    if (evidence->born_differs)
        return "born_differs";
    return NULL;
}

/* Without looking at the score: the reason to take both for one, or NULL. */
static const char *certain(const struct evidence *evidence)
{
    bool identifier = evidence->email || evidence->phone;
    if (!identifier || obstacle(evidence) != NULL)
        return NULL;
    if (is_named_alike(evidence))
        return "identifier_and_name";
    if (evidence->email && evidence->alone && evidence->nameless)
        return "same_mailbox";
    bool bare = evidence->phone && evidence->alone && evidence->both_nameless;
    return bare && !evidence->email_differs && !evidence->company_differs ? "same_line" : NULL;
}

/* What the sum lacks for an automatic answer, or NULL. */
static const char *lack(const struct evidence *evidence)
{
    const char *found = obstacle(evidence);
    if (found != NULL)
        return found;
    bool identifier = evidence->email || evidence->phone;
    bool full = evidence->name.given == GIVEN_SAME && evidence->name.family == FAMILY_SAME;
    bool life = evidence->born && evidence->names_agree && (evidence->place || full); /* as good as an identifier */
    if (!identifier && !life)
        return evidence->weak_identifier ? "weak_identifier" : "no_identifier";
    return kinds_of(evidence) < 2 ? "one_kind" : NULL;
}

static void decide(const struct evidence *evidence, struct match_result *result)
{
    const struct rules *rules = rules_get();
    bool identifier = evidence->email || evidence->phone;
    const char *sure = certain(evidence), *lacking = lack(evidence);
    result->zone = MATCH_NEW;
    if (evidence->suffix_conflict) {
        result->rule = "suffix_conflict";
    } else if (evidence->same_id || sure != NULL) {
        result->zone = MATCH_SAME;
        result->rule = evidence->same_id ? "same_id" : sure;
    } else if (result->score_mb >= rules->same_from_mb && lacking == NULL) {
        result->zone = MATCH_SAME;
        result->rule = "score";
    } else if (evidence->email && evidence->alone && evidence->names_conflict) {
        result->zone = MATCH_REVIEW;
        result->rule = "mailbox_of_another";
    } else if (result->score_mb < rules->review_from_mb) {
        result->rule = "too_little";
    } else if (!identifier && kinds_of(evidence) < 2 &&
               (!evidence->names_agree || result->score_mb < rules->name_alone_from_mb)) {
        result->rule = evidence->names_agree ? "name_alone" : "too_little";
    } else {
        result->zone = MATCH_REVIEW;
        result->rule = lacking != NULL ? lacking : "score";
    }
}

void match_compare(const struct match_person *record, const struct match_person *lead, const struct match_world *world,
                   struct match_result *ret)
{
    struct evidence evidence = {.result = ret};
    *ret = (struct match_result){.zone = MATCH_NEW};
    evidence_gather(record, lead, world, &evidence);
    decide(&evidence, ret);
}

enum status match_explain(struct bytes packed_record, struct bytes packed_lead, const struct match_world *world,
                          struct arena *arena, struct match_result *ret, struct why *why)
{
    struct match_person *persons = arena_zalloc(arena, 2, sizeof *persons);
    if (persons == NULL)
        return why_set(why, FULL, "there is no memory left to compare two persons");
    TRY(match_unpack(packed_record, &persons[0], why));
    TRY(match_unpack(packed_lead, &persons[1], why));
    match_compare(&persons[0], &persons[1], world, ret);
    return OK;
}

void match_choose(const struct match_result *results, size_t count, struct match_choice *ret)
{
    struct match_choice choice = {.zone = MATCH_NEW};
    for (size_t i = 0; i < count; i++) {
        const struct match_result *one = &results[i], *best = &results[choice.best];
        choice.same_count += one->zone == MATCH_SAME;
        choice.review_count += one->zone == MATCH_REVIEW;
        if (i == 0 || one->zone > best->zone || (one->zone == best->zone && one->score_mb > best->score_mb))
            choice.best = i;
    }
    choice.zone = count > 0 ? results[choice.best].zone : MATCH_NEW;
    *ret = choice;
}

bool match_may_bridge(const struct match_person *a, const struct match_person *b)
{
    struct match_result result = {.zone = MATCH_NEW};
    struct evidence evidence = {.result = &result};
    const struct match_world world = {.leads = 1};
    evidence_gather(a, b, &world, &evidence);
    return !evidence.suffix_conflict && obstacle(&evidence) == NULL;
}

uint32_t match_doubt_ppm(int64_t score_mb)
{
    if (score_mb >= 20000)
        return 0;
    if (score_mb <= -20000)
        return 1000000;
    int64_t above = score_mb + 20000, whole = above / 1000, part = above % 1000;
    /* 2^(above/1000): between two powers of two the line between them is near enough. */
    uint64_t odds = ((uint64_t)1 << whole) * (1000 + (uint64_t)part); /* times 1000, and 2^20 */
    uint64_t one = (uint64_t)1000 << 20;
    return (uint32_t)(one * 1000000 / (one + odds));
}

/* ---- for people ---- */

static const struct {
    const char *field, *level, *sentence;
} line_sentences[] = {
    {"leads", "one_of_many", "before anything is compared: one lead of many"},
    {"id", "same", "the same id in another system"},
    {"id", "differs", "different ids in one system"},
    {"id", "weak", "the same thread or browser"},
    {"email", "same", "the same e-mail address"},
    {"email", "alias", "the same mailbox in another spelling"},
    {"email", "weak", "perhaps the same mailbox"},
    {"email", "role", "the same shared mailbox of a company"},
    {"email", "generic", "an e-mail address that many leads hold says nothing"},
    {"email", "differs", "different e-mail addresses"},
    {"email", "bears_name", "the mailbox bears the name"},
    {"phone", "same", "the same phone number"},
    {"phone", "equivalent", "the same line in another national spelling"},
    {"phone", "national", "the same digits; the country of one is not known"},
    {"phone", "unverified", "the same number, in no range that is known"},
    {"phone", "extension", "the same number with another extension"},
    {"phone", "digit_off", "one digit is different"},
    {"phone", "generic", "a phone number that many leads hold says nothing"},
    {"phone", "differs", "different phone numbers"},
    {"given_name", "same", "the same given name"},
    {"given_name", "nickname", "two forms of one given name"},
    {"given_name", "short", "one given name may be short for the other"},
    {"given_name", "initial", "the initial fits"},
    {"given_name", "typo", "a slip in the given name"},
    {"given_name", "conflict", "different given names"},
    {"given_name", "unknown", "no given name to compare"},
    {"family_name", "same", "the same family name"},
    {"family_name", "part", "one of two family names is the same"},
    {"family_name", "typo", "a slip in the family name"},
    {"family_name", "initial", "the initial of the family name fits"},
    {"family_name", "conflict", "different family names"},
    {"family_name", "unknown", "no family name to compare"},
    {"name_order", "swapped", "given and family name are swapped"},
    {"middle_name", "conflict", "different middle names"},
    {"suffix", "same", "the same generation"},
    {"suffix", "unknown", "the generation of one is not known"},
    {"suffix", "conflict", "different generations"},
    {"company", "same", "the same company"},
    {"company", "differs", "different companies"},
    {"domain", "same", "the same company's domain"},
    {"country", "differs", "different countries"},
    {"postcode", "same", "the same postcode"},
    {"postcode", "differs", "different postcodes"},
    {"born", "same", "the same date of birth"},
    {"born", "near", "nearly the same date of birth"},
    {"born", "differs", "different dates of birth"},
};

static const char *sentence_of(const struct match_line *line)
{
    for (size_t i = 0; i < sizeof line_sentences / sizeof *line_sentences; i++)
        if (strcmp(line_sentences[i].field, line->field) == 0 && strcmp(line_sentences[i].level, line->level) == 0)
            return line_sentences[i].sentence;
    return line->level;
}

struct bytes match_line_sentence(const struct match_line *line, struct arena *arena)
{
    if (line->holders > 1)
        return arena_printf(arena, "%s; used by %u leads", sentence_of(line), line->holders);
    return arena_dup(arena, bytes_of(sentence_of(line)));
}
