/*
 * What the files of match/ share. Nothing here is for others.
 */
#ifndef SEMEL_MATCH_MATCH_OWN_H
#define SEMEL_MATCH_MATCH_OWN_H

#include "match/match.h"

/* ---- rules.c: rules.yaml as tables ---- */

/* One row per number of `settings:`, by the same name. */
#define MATCH_SETTINGS(X)    \
    X(same_from_mb)          \
    X(review_from_mb)        \
    X(leads_floor)           \
    X(generic_from)          \
    X(household_max)         \
    X(name_alone_from_mb)    \
    X(certain_mb)            \
    X(email_same_mb)         \
    X(phone_mobile_mb)       \
    X(phone_either_mb)       \
    X(phone_fixed_mb)        \
    X(phone_other_mb)        \
    X(held_mb)               \
    X(email_alias_mb)        \
    X(email_weak_mb)         \
    X(phone_equivalent_mb)   \
    X(phone_national_mb)     \
    X(phone_unverified_mb)   \
    X(phone_extension_mb)    \
    X(phone_digit_off_mb)    \
    X(identifier_differs_mb) \
    X(email_names_mb)        \
    X(id_weak_mb)            \
    X(id_differs_mb)         \
    X(given_min_mb)          \
    X(given_max_mb)          \
    X(family_min_mb)         \
    X(family_max_mb)         \
    X(family_shared_max_mb)  \
    X(given_nickname_mb)     \
    X(given_short_mb)        \
    X(given_initial_mb)      \
    X(given_typo_mb)         \
    X(given_conflict_mb)     \
    X(family_typo_mb)        \
    X(family_typo_shared_mb) \
    X(family_part_mb)        \
    X(family_part_shared_mb) \
    X(family_initial_mb)     \
    X(family_conflict_mb)    \
    X(name_swapped_mb)       \
    X(middle_conflict_mb)    \
    X(suffix_same_mb)        \
    X(suffix_missing_mb)     \
    X(unknown_given_mb)      \
    X(unknown_family_mb)     \
    X(company_same_mb)       \
    X(company_differs_mb)    \
    X(domain_same_mb)        \
    X(country_differs_mb)    \
    X(postcode_same_mb)      \
    X(postcode_differs_mb)   \
    X(born_same_mb)          \
    X(born_near_mb)          \
    X(born_differs_mb)

struct rules {
#define MATCH_SETTING_MEMBER(name) int32_t name;
    MATCH_SETTINGS(MATCH_SETTING_MEMBER)
#undef MATCH_SETTING_MEMBER
};

/* Lists of words. `value` and `text` of a row mean what the comment says. */
enum rules_list {
    LIST_GIVEN,     /* value: -log2 of its frequency */
    LIST_FAMILY,    /* the same */
    LIST_NICKNAMES, /* text: the name it is a form of; value: 0 the name itself, 1 a form, 2 a form of another language */
    LIST_HONORIFICS,
    LIST_POST_NOMINALS,
    LIST_SUFFIXES, /* text: what it means */
    LIST_PARTICLES,
    LIST_NO_NAMES,
    LIST_LEGAL_FORMS,
    LIST_LEGAL_PHRASES,
    LIST_NO_COMPANIES,
    LIST_ROLE_MAILBOXES,
    LIST_NO_REPLY,
    LIST_PLACEHOLDER_MAILBOXES,
    LIST_PLACEHOLDER_WORDS,
    LIST_PLACEHOLDER_DOMAINS,
    LIST_PLACEHOLDER_SUFFIXES,
    LIST_PROVIDERS, /* value: index of the provider */
    LIST_FREE_MAIL,
    LIST_DISPOSABLE,
    LIST_OFTEN_MISTYPED,
    LIST_DOTS_ANYWHERE,
    LIST_COUNT,
};

struct rules_word {
    struct bytes word, text;
    enum rules_list list;
    int32_t value;
};

struct rules_provider {
    bool dots, plus, hyphen, weak_dots, weak_plus;
    struct bytes domain, weak_domain;
};

const struct rules *rules_get(void);
const struct rules_provider *rules_provider(int32_t index);

/* The row of a word, or NULL. */
const struct rules_word *rules_find(enum rules_list list, struct bytes word);

/* All rows of a word, one by one: begin with `*place` 0. NULL behind the last. */
const struct rules_word *rules_next(enum rules_list list, struct bytes word, size_t *place);

/* The words of a list in their order; NULL behind the last. */
const struct rules_word *rules_at(enum rules_list list, size_t index);

/* ---- fold.c: letters ---- */

/* Lower-case ASCII letters and digits; words by one space, '-' inside words kept, everything else gone. Other scripts are written in
 * Latin letters. At most MATCH_VALUE_MAX of the text are read. `.at == NULL` only when the arena is full. */
struct bytes fold_text(struct bytes text, struct arena *arena);

/* The same with ä ö ü å ø written as ae oe ue aa oe; BYTES_NONE when that makes no difference. */
struct bytes fold_text_too(struct bytes text, struct arena *arena);

/* NFC and, with `lower`, lower case. BYTES_NONE for what is no UTF-8, too long, or when the arena is full. */
struct bytes fold_nfc(struct bytes text, bool lower, struct arena *arena);

/* Without any `drop`, in the arena. */
struct bytes fold_without(struct bytes text, char drop, struct arena *arena);

/* With every `from` as `to`. */
struct bytes fold_replace(struct bytes text, char from, char to, struct arena *arena);

/* Words in order, each once, by one space. */
struct bytes fold_sorted(struct bytes text, struct arena *arena);

/* The text without what `bytes_trim` leaves: line ends, no-break spaces. */
struct bytes fold_trim(struct bytes text);

/* ---- similar.c: how much two words are alike ---- */

#define SIMILAR_MAX 48 /* letters; longer words are only equal or not */

/* 0 to 1000. */
int similar_jaro_winkler(struct bytes a, struct bytes b);

/* Edits: insert, delete, replace, swap neighbours. SIMILAR_MAX + 1 when a word is too long. */
int similar_edits(struct bytes a, struct bytes b);

/* A letter and three digits, of folded text; "" for none. */
void similar_sound(struct bytes text, char ret[5]);

/* One slip: what people mistype, misspell or mishear. */
bool similar_is_slip(struct bytes a, struct bytes b);

/* 1000 * log2(n), rounded down; n is at least 1. Integers only: the same everywhere. */
int32_t similar_log2_mb(uint64_t n);

/* ---- domain.c ---- */

/* The host in lower-case ASCII (IDNA); BYTES_NONE when it is none or the arena is full. */
struct bytes domain_ascii(struct bytes host, struct arena *arena);

/* The registrable domain of an ASCII host; BYTES_NONE when there is none. Refers to `host`. */
struct bytes domain_registrable(struct bytes host);

bool domain_is_free_mail(struct bytes host);

/* ---- name_compare.c ---- */

enum given_level { GIVEN_UNKNOWN, GIVEN_SAME, GIVEN_NICKNAME, GIVEN_SHORT, GIVEN_INITIAL, GIVEN_TYPO, GIVEN_CONFLICT };
enum family_level { FAMILY_UNKNOWN, FAMILY_SAME, FAMILY_PART, FAMILY_TYPO, FAMILY_INITIAL, FAMILY_CONFLICT };

struct name_match {
    const struct match_name *ours, *theirs;
    enum given_level given;
    enum family_level family;
    bool swapped, middle_conflict;
    int32_t given_mb, family_mb; /* without swapped and middle */
    int32_t total_mb;
};

/* `shared`: an identifier is equal, so that the family name says less. */
struct name_match name_compare(const struct match_name *a, const struct match_name *b, bool shared);

/* The local part of an address bears the whole name. */
bool name_in_mailbox(const struct match_name *name, const struct match_email *email);

/* ---- evidence.c: what a comparison found, beside its lines ---- */

struct evidence {
    struct match_result *result; /* lines and score */
    int32_t leads_mb;            /* log2 of how many leads there are */
    bool same_id;                /* an id of another system is equal */
    bool email, phone;           /* a strong identifier is equal */
    bool alone;                  /* … and no other lead holds it */
    bool household;              /* … or so few that full names tell them apart */
    bool own_domain;             /* the equal address is a company's, where mailboxes are one person's */
    bool weak_identifier;        /* one that may be equal: an alias, a typo, another extension, a thread */
    bool email_differs;
    bool place, company_differs; /* company, domain or postcode */
    bool born, born_differs;
    bool nameless, both_nameless;
    bool names_agree, names_conflict;
    bool suffix_conflict, suffix_unknown;
    struct name_match name;
};

void evidence_gather(const struct match_person *record, const struct match_person *lead, const struct match_world *world,
                     struct evidence *ret);

#endif
