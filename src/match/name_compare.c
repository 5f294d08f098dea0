/* Two names: what each part says, and how much. */
#include "match/match_own.h"

static int32_t between(int32_t value, int32_t min, int32_t max)
{
    return value < min ? min : value > max ? max : value;
}

/* ---- given names ---- */

/* How many names a form may stand for. */
static uint64_t parents_of(struct bytes form)
{
    size_t place = 0;
    uint64_t count = 0;
    while (rules_next(LIST_NICKNAMES, form, &place) != NULL)
        count++;
    return count > 0 ? count : 1;
}

/* One is a form of the other, or both are forms of one name in one language. */
static bool are_forms(struct bytes a, struct bytes b)
{
    const struct rules_word *ours, *theirs;
    for (size_t i = 0; (ours = rules_next(LIST_NICKNAMES, a, &i)) != NULL;)
        for (size_t j = 0; (theirs = rules_next(LIST_NICKNAMES, b, &j)) != NULL;)
            if (bytes_eq(ours->text, theirs->text) &&
                (ours->value == 0 || theirs->value == 0 || (ours->value == 1 && theirs->value == 1)))
                return true;
    return false;
}

static bool is_known_given(struct bytes name)
{
    return rules_find(LIST_GIVEN, name) != NULL || rules_find(LIST_NICKNAMES, name) != NULL;
}

static bool is_prefix(struct bytes a, struct bytes b)
{
    struct bytes shorter = a.len < b.len ? a : b, longer = a.len < b.len ? b : a;
    return shorter.len >= 3 && bytes_starts(longer, shorter);
}

static enum given_level given_level(struct bytes a, struct bytes b)
{
    if (a.len == 0 || b.len == 0)
        return GIVEN_UNKNOWN;
    if (bytes_eq(a, b))
        return a.len == 1 ? GIVEN_INITIAL : GIVEN_SAME;
    if (a.len == 1 || b.len == 1) {
        if (a.at[0] == b.at[0])
            return GIVEN_INITIAL;
        bool monsieur = (a.len == 1 && a.at[0] == 'm') || (b.len == 1 && b.at[0] == 'm');
        return monsieur ? GIVEN_UNKNOWN : GIVEN_CONFLICT;
    }
    if (are_forms(a, b))
        return GIVEN_NICKNAME;
    /* Two names that are both in use are two names, however near: Maria and Marie, Eric and Erica. */
    bool both_known = is_known_given(a) && is_known_given(b);
    if (!both_known && similar_is_slip(a, b))
        return GIVEN_TYPO;
    return !both_known && is_prefix(a, b) ? GIVEN_SHORT : GIVEN_CONFLICT;
}

static int32_t given_frequency_mb(struct bytes name)
{
    const struct rules_word *row = rules_find(LIST_GIVEN, name);
    const struct rules *rules = rules_get();
    return between(row != NULL ? row->value : rules->unknown_given_mb, rules->given_min_mb, rules->given_max_mb);
}

static int32_t given_weight(enum given_level level, struct bytes a, struct bytes b)
{
    const struct rules *rules = rules_get();
    uint64_t parents = parents_of(a) > parents_of(b) ? parents_of(a) : parents_of(b);
    switch (level) {
    case GIVEN_UNKNOWN:
        return 0;
    case GIVEN_SAME:
        return given_frequency_mb(a);
    case GIVEN_NICKNAME:
        return rules->given_nickname_mb - similar_log2_mb(parents);
    case GIVEN_SHORT:
        return rules->given_short_mb;
    case GIVEN_INITIAL:
        return rules->given_initial_mb;
    case GIVEN_TYPO:
        return rules->given_typo_mb;
    case GIVEN_CONFLICT:
        return rules->given_conflict_mb;
    }
    return 0;
}

/* ---- family names ---- */

static size_t squeeze(struct bytes text, char ret[MATCH_VALUE_MAX])
{
    size_t len = 0;
    for (size_t i = 0; i < text.len && len < MATCH_VALUE_MAX; i++)
        if (text.at[i] != ' ')
            ret[len++] = text.at[i];
    return len;
}

static bool has_word(struct bytes text, struct bytes word)
{
    while (text.len > 0)
        if (bytes_eq(bytes_cut(&text, ' '), word))
            return true;
    return false;
}

/* A word that both have, particles aside: one of two family names. */
static bool share_word(struct bytes a, struct bytes b)
{
    while (a.len > 0) {
        struct bytes word = bytes_cut(&a, ' ');
        if (word.len >= 3 && rules_find(LIST_PARTICLES, word) == NULL && has_word(b, word))
            return true;
    }
    return false;
}

static enum family_level family_level(struct bytes a, struct bytes b)
{
    char own[MATCH_VALUE_MAX], other[MATCH_VALUE_MAX];
    if (a.len == 0 || b.len == 0)
        return FAMILY_UNKNOWN;
    struct bytes x = {own, squeeze(a, own)}, y = {other, squeeze(b, other)};
    if (x.len == 1 || y.len == 1)
        return x.at[0] == y.at[0] ? FAMILY_INITIAL : FAMILY_CONFLICT;
    if (bytes_eq(x, y))
        return FAMILY_SAME;
    if (share_word(a, b))
        return FAMILY_PART;
    bool both_known = rules_find(LIST_FAMILY, x) != NULL && rules_find(LIST_FAMILY, y) != NULL;
    return !both_known && similar_is_slip(x, y) ? FAMILY_TYPO : FAMILY_CONFLICT;
}

static int32_t family_weight(enum family_level level, struct bytes name, bool shared)
{
    char letters[MATCH_VALUE_MAX];
    const struct rules *rules = rules_get();
    const struct rules_word *row = rules_find(LIST_FAMILY, (struct bytes){letters, squeeze(name, letters)});
    int32_t frequency = row != NULL ? row->value : rules->unknown_family_mb;
    switch (level) {
    case FAMILY_UNKNOWN:
        return 0;
    case FAMILY_SAME:
        return shared ? rules->family_shared_max_mb : between(frequency, rules->family_min_mb, rules->family_max_mb);
    case FAMILY_PART:
        return shared ? rules->family_part_shared_mb : rules->family_part_mb;
    case FAMILY_TYPO:
        return shared ? rules->family_typo_shared_mb : rules->family_typo_mb;
    case FAMILY_INITIAL:
        return shared ? rules->family_part_shared_mb : rules->family_initial_mb;
    case FAMILY_CONFLICT:
        return rules->family_conflict_mb;
    }
    return 0;
}

/* ---- both ---- */

/* Each part may be written in two ways; the better pair counts. */
static void compare_given(struct bytes a, struct bytes a_too, struct bytes b, struct bytes b_too, struct name_match *match)
{
    struct bytes ours[2] = {a, a_too}, theirs[2] = {b, b_too};
    bool first = true;
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) {
            if ((i > 0 && ours[i].at == NULL) || (j > 0 && theirs[j].at == NULL))
                continue;
            enum given_level level = given_level(ours[i], theirs[j]);
            int32_t weight = given_weight(level, ours[i], theirs[j]);
            if (first || weight > match->given_mb) {
                match->given = level;
                match->given_mb = weight;
            }
            first = false;
        }
    }
}

static void compare_family(struct bytes a, struct bytes a_too, struct bytes b, struct bytes b_too, bool shared,
                           struct name_match *match)
{
    struct bytes ours[2] = {a, a_too}, theirs[2] = {b, b_too};
    bool first = true;
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) {
            if ((i > 0 && ours[i].at == NULL) || (j > 0 && theirs[j].at == NULL))
                continue;
            enum family_level level = family_level(ours[i], theirs[j]);
            int32_t weight = family_weight(level, ours[i], shared);
            if (first || weight > match->family_mb) {
                match->family = level;
                match->family_mb = weight;
            }
            first = false;
        }
    }
}

/* Middle names of which one is certainly not the other. */
static bool middles_conflict(struct bytes a, struct bytes b)
{
    if (a.len == 0 || b.len == 0 || share_word(a, b))
        return false;
    return a.at[0] != b.at[0];
}

/* A double family name whose first half was taken for a middle name: "Ana Garcia Lopez" is "Ana Garcia". */
static void try_middle_as_family(const struct match_name *a, const struct match_name *b, bool shared, struct name_match *match)
{
    bool part = (a->middle.len > 0 && b->family.len > 0 && share_word(a->middle, b->family)) ||
                (b->middle.len > 0 && a->family.len > 0 && share_word(b->middle, a->family));
    if (match->family != FAMILY_CONFLICT || !part)
        return;
    match->family = FAMILY_PART;
    match->family_mb = family_weight(FAMILY_PART, a->family, shared);
}

static int32_t total_of(const struct name_match *match)
{
    const struct rules *rules = rules_get();
    return match->given_mb + match->family_mb + (match->swapped ? rules->name_swapped_mb : 0) +
           (match->middle_conflict ? rules->middle_conflict_mb : 0);
}

static struct name_match compare_as_written(const struct match_name *a, const struct match_name *b, bool shared)
{
    struct name_match match = {.ours = a, .theirs = b};
    compare_given(a->given, a->given_too, b->given, b->given_too, &match);
    compare_family(a->family, a->family_too, b->family, b->family_too, shared, &match);
    try_middle_as_family(a, b, shared, &match);
    match.middle_conflict = match.family != FAMILY_PART && middles_conflict(a->middle, b->middle);
    match.total_mb = total_of(&match);
    return match;
}

/* The given name of one against the family name of the other: one of them stands in the wrong order, `theirs_wrong` says which. */
static struct name_match compare_swapped(const struct match_name *a, const struct match_name *b, bool theirs_wrong, bool shared)
{
    struct name_match match = {.ours = a, .theirs = b, .swapped = true};
    if (theirs_wrong) {
        compare_given(a->given, a->given_too, b->family, b->family_too, &match);
        compare_family(a->family, a->family_too, b->given, b->given_too, shared, &match);
    } else {
        compare_given(a->family, a->family_too, b->given, b->given_too, &match);
        compare_family(a->given, a->given_too, b->family, b->family_too, shared, &match);
    }
    if (a->family.len == 0 || b->family.len == 0) { /* one word: it is the other's family name */
        struct bytes word = a->family.len == 0 ? a->given : b->given;
        struct bytes family = a->family.len == 0 ? b->family : a->family;
        match.given = GIVEN_UNKNOWN;
        match.given_mb = 0;
        match.family = family_level(word, family);
        match.family_mb = family_weight(match.family, word, shared);
    }
    match.total_mb = total_of(&match);
    return match;
}

static bool agrees(const struct name_match *match)
{
    return match->given != GIVEN_CONFLICT && match->family != FAMILY_CONFLICT && match->total_mb > 0;
}

/* The same answer whichever of both comes first. */
static bool is_more(const struct name_match *a, const struct name_match *b)
{
    return a->total_mb != b->total_mb ? a->total_mb > b->total_mb : a->given_mb > b->given_mb;
}

struct name_match name_compare(const struct match_name *a, const struct match_name *b, bool shared)
{
    struct name_match best = compare_as_written(a, b, shared);
    struct name_match ours = compare_swapped(a, b, false, shared), theirs = compare_swapped(a, b, true, shared);
    if (!a->ordered && agrees(&ours) && is_more(&ours, &best))
        best = ours;
    if (!b->ordered && agrees(&theirs) && is_more(&theirs, &best))
        best = theirs;
    return best;
}

/* ---- the mailbox's name ---- */

bool name_in_mailbox(const struct match_name *name, const struct match_email *email)
{
    char letters[MATCH_VALUE_MAX], own[MATCH_VALUE_MAX];
    size_t len = 0, at = 0;
    while (at < email->key.len && email->key.at[at] != '@' && len < sizeof letters) {
        if (email->key.at[at] >= 'a' && email->key.at[at] <= 'z')
            letters[len++] = email->key.at[at];
        at++;
    }
    struct bytes family = {own, squeeze(name->family, own)};
    bool has_family = family.len >= 3 && memmem(letters, len, family.at, family.len) != NULL;
    bool has_given = name->given.len >= 3 && memmem(letters, len, name->given.at, name->given.len) != NULL;
    return has_family && has_given;
}
