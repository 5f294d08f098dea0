/*
 * match: who is this? Pure: no clock, no I/O, no database; the same input gives the same answer on every machine, to the
 * milli-bit, and the answer explains itself.
 *
 *     match_input ── match_person_make() ──> match_person ── match_keys() ──> candidate keys, for the caller's look-up
 *                                                 │
 *     a lead's match_person ────── match_compare() ──> zone, score, rule, lines
 *                                                 │
 *     all candidates' results ──── match_choose() ──> same as this lead | a person must look | new
 *
 * A person is what one record says, or what all records of a lead say together (match_person_add): the same type. It refers to
 * the arena it was made in. match_pack() makes it one blob for storage; match_unpack() of that blob compares equally, so that a
 * stored decision can be recomputed (match_explain).
 *
 * The score is a sum of milli-bits: 1000 is one doubling of the odds that both are one person. It begins at -log2(leads).
 * Weights, thresholds and lists are one file, rules.yaml, compiled in; match_rules_hash() names it in every decision.
 *
 * Every thread may call these. The first call that needs a library or the rules sets it up.
 */
#ifndef SEMEL_MATCH_MATCH_H
#define SEMEL_MATCH_MATCH_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/status.h"

/* What a normaliser or the packed form changes changes this; a packed person of another version is not read. */
#define MATCH_VERSION 1

#define MATCH_VALUE_MAX 320 /* bytes of one value; what is longer is cut at a character (names) or no value (the rest) */
#define MATCH_EMAILS_MAX 16
#define MATCH_PHONES_MAX 16
#define MATCH_NAMES_MAX 16
#define MATCH_COMPANIES_MAX 8
#define MATCH_PLACES_MAX 8
#define MATCH_IDS_MAX 16
#define MATCH_KEYS_MAX 16
#define MATCH_LINES_MAX 24
#define MATCH_PACK_MAX ((size_t)64 << 10)

/* ---- values in one spelling ---- */

enum match_email_class {
    MATCH_EMAIL_INVALID,     /* no address: only `raw` is there */
    MATCH_EMAIL_PERSONAL,    /* one person's, as far as anybody can tell */
    MATCH_EMAIL_ROLE,        /* info@, sales@: identifies the company, not a person */
    MATCH_EMAIL_NO_REPLY,    /* nobody reads it: neither mailed nor a key */
    MATCH_EMAIL_PLACEHOLDER, /* test@test.com: no key */
};
extern const char *const match_email_class_names[];

struct match_email {
    struct bytes raw;     /* as given */
    struct bytes send_to; /* what may be mailed: never canonicalised beyond the domain. Absent: nothing may */
    struct bytes exact;   /* lower case, NFC, ASCII domain: the same address */
    struct bytes key;     /* by the provider's rules: the same mailbox. Absent: identifies nobody */
    struct bytes weak;    /* perhaps the same mailbox: without +tag, typo of the domain mended. Never evidence alone */
    struct bytes domain;  /* ASCII (IDNA) */
    struct bytes company; /* the registrable domain, where it can be a company's; absent for free mail */
    struct bytes suggest; /* the address that was probably meant, for a person to confirm */
    enum match_email_class class;
    bool uncertain;   /* `key` rests on a rule that does not always hold (Yahoo's hyphen) */
    bool free_mail;   /* anybody gets an address there */
    bool disposable;  /* made to be thrown away */
    uint32_t holders; /* leads that hold this key, by the caller; 0 and 1 mean nobody else */
};

/* Always OK to look at: an input that is no address has the class INVALID. FULL when the arena is. */
CHECKED enum status match_email_make(struct bytes text, struct arena *arena, struct match_email *ret, struct why *why);

enum match_phone_kind { MATCH_PHONE_OTHER, MATCH_PHONE_MOBILE, MATCH_PHONE_FIXED, MATCH_PHONE_EITHER, MATCH_PHONE_TOLL_FREE };
extern const char *const match_phone_kind_names[];

struct match_phone {
    struct bytes raw;
    struct bytes e164;      /* "+33612345678"; absent: no number, or a national one whose country nobody knows */
    struct bytes national;  /* digits without country code and leading zeros; absent: no number */
    struct bytes extension; /* digits; absent for none */
    struct bytes key; /* one per line: spellings of one number in Brazil, Mexico, Argentina, Benin … are equal. Absent: no key */
    char region[3];   /* "FR"; "" when unknown */
    enum match_phone_kind kind;
    bool possible, valid; /* by the installed libphonenumber */
    bool junk;            /* 0000000000, 555 555 5555: a placeholder, no key */
    uint32_t holders;
};

/* `region`: two letters, whose national numbers are understood; absent: only international ones are. */
CHECKED enum status match_phone_make(struct bytes text, struct bytes region, struct arena *arena, struct match_phone *ret,
                                     struct why *why);

struct match_name {
    struct bytes raw;
    struct bytes given, middle, family; /* folded: lower-case ASCII letters, words by one space. Absent when not known */
    struct bytes given_too, family_too; /* the other way to write ä ö ü å ø; absent when there is none */
    struct bytes suffix;                /* "jr", "sr", "2" … : tells generations apart */
    bool ordered;                       /* "Family, Given": which is which is said, not guessed */
};

/* `full`, or the parts; parts go before. A name without a letter has neither given nor family. */
CHECKED enum status match_name_make(struct bytes full, struct bytes given, struct bytes family, struct arena *arena,
                                    struct match_name *ret, struct why *why);

struct match_company {
    struct bytes raw;
    struct bytes key; /* folded, without legal form and spaces; absent when nothing is left */
};

CHECKED enum status match_company_make(struct bytes text, struct arena *arena, struct match_company *ret, struct why *why);

/* The registrable domain of a host, an address or a URL, in ASCII; BYTES_NONE when there is none or the arena is full. */
struct bytes match_domain(struct bytes text, struct arena *arena);

/* "gb", "UK", "GBR" or "United Kingdom" → "GB"; false and "" for what is no country. */
bool match_region(struct bytes text, char ret[3]);

/* ---- persons ---- */

/* What another system calls this person. */
struct match_id {
    struct bytes system; /* "hubspot", "whatsapp_lid", "cookie": ids of different systems are never compared */
    struct bytes value;
    bool weak;        /* a thread, a browser: evidence, not identity. The caller leaves out what is too old */
    uint32_t holders; /* for weak ones */
};

struct match_input {
    struct bytes name, given, family; /* a full name, or its parts, or both */
    const struct bytes *emails;
    size_t email_count;
    const struct bytes *phones;
    size_t phone_count;
    struct bytes company, website;
    struct bytes region; /* the country; also whose national phone numbers are understood */
    struct bytes
        phone_region;      /* whose national phone numbers are understood when there is no `region`: a setting of the source */
    struct bytes postcode; /* needs no country */
    struct bytes born;     /* a date, in any spelling of digits, year first */
    const struct match_id *ids;
    size_t id_count;
};

struct match_person {
    struct match_email emails[MATCH_EMAILS_MAX];
    struct match_phone phones[MATCH_PHONES_MAX];
    struct match_name names[MATCH_NAMES_MAX];
    struct match_company companies[MATCH_COMPANIES_MAX];
    struct bytes websites[MATCH_COMPANIES_MAX]; /* registrable domains that can be a company's, also of the e-mails */
    struct bytes postcodes[MATCH_PLACES_MAX];   /* folded */
    struct bytes born[MATCH_PLACES_MAX];        /* digits, "19710624" */
    struct match_id ids[MATCH_IDS_MAX];
    char regions[MATCH_PLACES_MAX][3];
    size_t email_count, phone_count, name_count, company_count, website_count, postcode_count, born_count, id_count, region_count;
};

/* Every value of the input in one spelling. What cannot be read is kept with its class, so that somebody can be told. More values
 * than the limits are left out. FULL when the arena is. */
CHECKED enum status match_person_make(const struct match_input *input, struct arena *arena, struct match_person *ret,
                                      struct why *why);

/* Adds what `more` says and `into` does not have yet; values that identify nobody are left out. Nothing is copied: both must
 * live. Past the limits the oldest stay. */
void match_person_add(struct match_person *into, const struct match_person *more);

CHECKED enum status match_pack(const struct match_person *person, struct arena *arena, struct bytes *ret, struct why *why);

/* Refers to `packed`. BROKEN when it is damaged, INVALID when another MATCH_VERSION made it. */
CHECKED enum status match_unpack(struct bytes packed, struct match_person *ret, struct why *why);

/* ---- candidates ---- */

enum match_key_kind {
    MATCH_KEY_ID = 1,        /* system and id */
    MATCH_KEY_EMAIL,         /* match_email.key */
    MATCH_KEY_PHONE,         /* match_phone.key */
    MATCH_KEY_EMAIL_WEAK,    /* match_email.weak */
    MATCH_KEY_NATIONAL,      /* the last 8 digits of a phone */
    MATCH_KEY_NAME,          /* folded full name, words sorted: finds swapped names too */
    MATCH_KEY_NAME_PHONE,    /* initial, sound of the family name, last 7 digits */
    MATCH_KEY_NAME_DOMAIN,   /* initial, sound of the family name, company's domain or name */
    MATCH_KEY_NAME_POSTCODE, /* given, family, postcode */
    MATCH_KEY_LOCAL,         /* the e-mail's local part */
    MATCH_KEY_NAME_BORN,     /* sound of the family name, date of birth */
};
extern const char *const match_key_kind_names[]; /* by the number above; [0] is "" */

struct match_key {
    enum match_key_kind kind;
    uint64_t hash;      /* keyed, over kind and value */
    struct bytes value; /* readable, in the arena */
};

#define MATCH_SECRET_SIZE 16

/* At most MATCH_KEYS_MAX, each once, the strongest first. `secret` keeps tenants' keys apart and unguessable. */
CHECKED enum status match_keys(const struct match_person *person, const uint8_t secret[MATCH_SECRET_SIZE], struct arena *arena,
                               struct match_key ret[MATCH_KEYS_MAX], size_t *ret_count, struct why *why);

/* The caller counted how many leads hold the value of `key`: noted where the value stands, for the comparison. */
void match_person_holders(struct match_person *person, const struct match_key *key, uint32_t holders);

/* ---- comparison ---- */

enum match_zone { MATCH_NEW, MATCH_REVIEW, MATCH_SAME };
extern const char *const match_zone_names[]; /* "new", "review", "same" */

/* What the comparison depends on beside the two. */
struct match_world {
    uint64_t leads; /* how many there are; small numbers count as the floor in the rules */
};

/* One row of the explanation. match_line_sentence() says them in words. */
struct match_line {
    const char *field; /* "leads", "id", "email", "phone", "given_name", "family_name", "suffix", "company", "country" … */
    const char *level; /* "same", "alias", "nickname", "conflict" … */
    struct bytes ours, theirs;
    int32_t weight_mb;
    uint32_t holders; /* above 1: this value is used by so many leads */
};

struct match_result {
    enum match_zone zone;
    int64_t score_mb;
    const char *rule; /* why this zone: "same_id", "identifier_and_name", "score", "veto_suffix" … */
    struct match_line lines[MATCH_LINES_MAX];
    size_t line_count;
};

/* Is the record's person the lead? The lines refer to both persons and sum up to the score. */
void match_compare(const struct match_person *record, const struct match_person *lead, const struct match_world *world,
                   struct match_result *ret);

/* The same from what was stored: unpacked and compared again. The lines refer to the arena and to what is packed. */
CHECKED enum status match_explain(struct bytes packed_record, struct bytes packed_lead, const struct match_world *world,
                                  struct arena *arena, struct match_result *ret, struct why *why);

/* The sentence of a rule, and of a line ("same e-mail address", "used by 3 leads"), for people. */
const char *match_rule_sentence(const char *rule);
struct bytes match_line_sentence(const struct match_line *line, struct arena *arena);

/* The answer over all candidates. */
struct match_choice {
    enum match_zone zone;
    size_t best;         /* index of the candidate; with MATCH_NEW and no candidates 0 */
    size_t same_count;   /* candidates in the zone MATCH_SAME: above 1, the record bridges leads that are probably one */
    size_t review_count; /* candidates in the zone MATCH_REVIEW */
};

void match_choose(const struct match_result *results, size_t count, struct match_choice *ret);

/* A record is the same as both leads: true when nothing that the leads themselves say speaks against one person (names, generations,
 * dates of birth). Otherwise a person must look before they become one. */
bool match_may_bridge(const struct match_person *a, const struct match_person *b);

/* 1 - p of an automatic answer with this score, in millionths: the running sum is the expected number of false merges. */
uint32_t match_doubt_ppm(int64_t score_mb);

/* SHA-256 over rules.yaml and MATCH_VERSION. */
struct hash match_rules_hash(void);

#endif
