/* rules.yaml becomes tables once, when somebody first asks. It is part of the program: a fault in it is a fault of the program. */
#include "base/yaml.h"
#include "embedded.h"
#include "match/match_own.h"

#include <pthread.h>

enum { SLOTS = 8192, PROVIDERS_MAX = 16, RULES_MEMORY = 8 << 20, WORDS_MAX = SLOTS / 2 };

static struct {
    struct rules numbers;
    struct rules_provider providers[PROVIDERS_MAX];
    int32_t provider_count;
    struct rules_word words[WORDS_MAX];
    size_t word_count;
    uint16_t slots[SLOTS]; /* index + 1 */
    struct {
        size_t first, count;
    } lists[LIST_COUNT]; /* the words of a list stand together */
} tables;

static const char *const list_names[LIST_COUNT] = {
    [LIST_GIVEN] = "given",
    [LIST_FAMILY] = "family",
    [LIST_NICKNAMES] = "nicknames",
    [LIST_HONORIFICS] = "honorifics",
    [LIST_POST_NOMINALS] = "post_nominals",
    [LIST_SUFFIXES] = "suffixes",
    [LIST_PARTICLES] = "particles",
    [LIST_NO_NAMES] = "no_names",
    [LIST_LEGAL_FORMS] = "legal_forms",
    [LIST_LEGAL_PHRASES] = "legal_phrases",
    [LIST_NO_COMPANIES] = "no_companies",
    [LIST_ROLE_MAILBOXES] = "role_mailboxes",
    [LIST_NO_REPLY] = "no_reply",
    [LIST_PLACEHOLDER_MAILBOXES] = "placeholder_mailboxes",
    [LIST_PLACEHOLDER_WORDS] = "placeholder_words",
    [LIST_PLACEHOLDER_DOMAINS] = "placeholder_domains",
    [LIST_PLACEHOLDER_SUFFIXES] = "placeholder_suffixes",
    [LIST_PROVIDERS] = "providers",
    [LIST_FREE_MAIL] = "free_mail",
    [LIST_DISPOSABLE] = "disposable",
    [LIST_OFTEN_MISTYPED] = "often_mistyped",
    [LIST_DOTS_ANYWHERE] = "dots_anywhere",
};

static size_t slot_of(enum rules_list list, struct bytes word)
{
    uint32_t hash = 2166136261u ^ (uint32_t)list;
    for (size_t i = 0; i < word.len; i++)
        hash = (hash ^ (unsigned char)word.at[i]) * 16777619u;
    return (hash ^ hash >> 15) % SLOTS;
}

static void add_word(enum rules_list list, struct bytes word, int32_t value, struct bytes text)
{
    ASSERT(tables.word_count < WORDS_MAX);
    size_t slot = slot_of(list, word);
    while (tables.slots[slot] != 0)
        slot = (slot + 1) % SLOTS;
    tables.words[tables.word_count] = (struct rules_word){word, text, list, value};
    tables.slots[slot] = (uint16_t)++tables.word_count;
}

static void add_words(enum rules_list list, struct bytes words, int32_t value, struct bytes text)
{
    while (words.len > 0) {
        struct bytes word = bytes_cut(&words, ' ');
        if (bytes_is(word, "/"))
            value++;
        else if (word.len > 0)
            add_word(list, word, value, text);
    }
}

/* ---- the document ---- */

static const struct yaml *member(const struct yaml *map, const char *name)
{
    for (const struct yaml *at = map->first; at != NULL; at = at->next->next)
        if (bytes_is(at->text, name))
            return at->next;
    return NULL;
}

static int32_t number(const struct yaml *map, const char *name)
{
    int64_t value = 0;
    const struct yaml *node = member(map, name);
    ASSERT(node != NULL);
    ASSERT(bytes_to_i64(node->text, &value));
    return (int32_t)value;
}

static bool is_true(const struct yaml *map, const char *name)
{
    const struct yaml *node = member(map, name);
    return node != NULL && bytes_is(node->text, "true");
}

static struct bytes text_of(const struct yaml *map, const char *name)
{
    const struct yaml *node = member(map, name);
    return node != NULL ? node->text : BYTES_NONE;
}

static void add_provider(const struct yaml *map)
{
    ASSERT(tables.provider_count < PROVIDERS_MAX);
    tables.providers[tables.provider_count] = (struct rules_provider){
        .dots = is_true(map, "dots"),
        .plus = is_true(map, "plus"),
        .hyphen = is_true(map, "hyphen"),
        .weak_dots = is_true(map, "weak_dots"),
        .weak_plus = is_true(map, "weak_plus"),
        .domain = text_of(map, "domain"),
        .weak_domain = text_of(map, "weak_domain"),
    };
    add_words(LIST_PROVIDERS, text_of(map, "domains"), tables.provider_count++, BYTES_NONE);
}

/* A map of a list: its names are weights, meanings or names, by the list. */
static void add_row(enum rules_list list, const struct yaml *name, const struct yaml *value)
{
    int64_t weight = 0;
    if (list == LIST_GIVEN || list == LIST_FAMILY) {
        ASSERT(bytes_to_i64(name->text, &weight));
        add_words(list, value->text, (int32_t)weight, BYTES_NONE);
    } else if (list == LIST_PROVIDERS) {
        add_provider(value);
    } else if (list == LIST_NICKNAMES) {
        add_word(list, name->text, 0, name->text);
        add_words(list, value->text, 1, name->text);
    } else {
        add_words(list, value->text, 0, name->text);
    }
}

static void add_list(enum rules_list list, const struct yaml *node)
{
    ASSERT(node != NULL);
    tables.lists[list].first = tables.word_count;
    if (node->kind == YAML_TEXT)
        add_words(list, node->text, 0, BYTES_NONE);
    for (const struct yaml *at = node->first; at != NULL && node->kind == YAML_LIST; at = at->next)
        add_word(list, at->text, 0, BYTES_NONE);
    for (const struct yaml *at = node->first; at != NULL && node->kind == YAML_MAP; at = at->next->next)
        add_row(list, at, at->next);
    tables.lists[list].count = tables.word_count - tables.lists[list].first;
}

static void read_rules(void)
{
    static struct arena memory; /* lives as long as the process: the words point into it */
    struct yaml_problems problems = {0};
    struct yaml *root = NULL;
    arena_init(&memory, RULES_MEMORY);
    ASSERT(yaml_read(embedded_match_rules[0].data, &memory, &root, &problems) == OK);
    ASSERT(problems.count == 0);
    const struct yaml *settings = member(root, "settings");
    ASSERT(settings != NULL);
#define MATCH_SETTING_READ(name) tables.numbers.name = number(settings, #name);
    MATCH_SETTINGS(MATCH_SETTING_READ)
#undef MATCH_SETTING_READ
    for (size_t i = 0; i < LIST_COUNT; i++)
        add_list((enum rules_list)i, member(root, list_names[i]));
}

static void need_rules(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_rules);
}

/* ---- asking ---- */

const struct rules *rules_get(void)
{
    need_rules();
    return &tables.numbers;
}

const struct rules_provider *rules_provider(int32_t index)
{
    ASSERT(index >= 0);
    ASSERT(index < tables.provider_count);
    return &tables.providers[index];
}

const struct rules_word *rules_next(enum rules_list list, struct bytes word, size_t *place)
{
    need_rules();
    for (;; (*place)++) {
        uint16_t index = tables.slots[(slot_of(list, word) + *place) % SLOTS];
        if (index == 0)
            return NULL;
        const struct rules_word *row = &tables.words[index - 1];
        if (row->list != list || !bytes_eq(row->word, word))
            continue;
        (*place)++;
        return row;
    }
}

const struct rules_word *rules_find(enum rules_list list, struct bytes word)
{
    size_t place = 0;
    return rules_next(list, word, &place);
}

const struct rules_word *rules_at(enum rules_list list, size_t index)
{
    need_rules();
    return index < tables.lists[list].count ? &tables.words[tables.lists[list].first + index] : NULL;
}

static struct hash rules_hash;

static void hash_rules(void)
{
    _Static_assert(MATCH_VERSION == 1, "the version below is the one of match.h");
    const struct bytes parts[2] = {BYTES("match 1"), embedded_match_rules[0].data};
    rules_hash = hash_parts(parts, 2);
}

struct hash match_rules_hash(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, hash_rules);
    return rules_hash;
}
