/* A name as people write it: titles, order, particles, generations. */
#include "match/match_own.h"

enum { WORDS_MAX = 24 };

struct words {
    struct bytes at[WORDS_MAX];
    size_t count;
};

static struct words split(struct bytes text)
{
    struct words words = {.count = 0};
    while (text.len > 0 && words.count < WORDS_MAX) {
        struct bytes word = bytes_cut(&text, ' ');
        if (word.len > 0)
            words.at[words.count++] = word;
    }
    return words;
}

static void drop_first(struct words *words)
{
    words->count--;
    memmove(words->at, words->at + 1, words->count * sizeof *words->at);
}

/* "ph d", "m d": letters that were written with dots. */
static bool are_letters(const struct bytes *words, size_t count)
{
    char joined[8];
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        if (words[i].len > 2 || (words[i].len == 2 && i > 0) || len + words[i].len > sizeof joined)
            return false;
        memcpy(joined + len, words[i].at, words[i].len);
        len += words[i].len;
    }
    return rules_find(LIST_POST_NOMINALS, (struct bytes){joined, len}) != NULL;
}

/* Titles in front and degrees behind; the generation goes to `ret_suffix`. One word always stays. */
static void strip(struct words *words, struct bytes *ret_suffix)
{
    while (words->count > 1 && rules_find(LIST_HONORIFICS, words->at[0]) != NULL)
        drop_first(words);
    if (words->count > 2 && bytes_is(words->at[0], "m"))
        drop_first(words); /* Monsieur; "M. Dupont" alone may be an initial */
    while (words->count > 1) {
        struct bytes last = words->at[words->count - 1];
        const struct rules_word *suffix = rules_find(LIST_SUFFIXES, last);
        if (suffix != NULL && ret_suffix->at == NULL)
            *ret_suffix = suffix->text;
        else if (words->count >= 4 && are_letters(words->at + words->count - 2, 2))
            words->count--;
        else if (words->count < 3 || rules_find(LIST_POST_NOMINALS, last) == NULL)
            return;
        words->count--;
    }
}

static struct bytes join(const struct words *words, size_t from, size_t to, struct arena *arena)
{
    char out[MATCH_VALUE_MAX * 8];
    size_t len = 0;
    for (size_t i = from; i < to; i++) {
        if (len + words->at[i].len + 1 > sizeof out)
            break;
        if (len > 0)
            out[len++] = ' ';
        memcpy(out + len, words->at[i].at, words->at[i].len);
        len += words->at[i].len;
    }
    return len > 0 ? arena_dup(arena, (struct bytes){out, len}) : BYTES_NONE;
}

static bool has_letter(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] >= 'a' && text.at[i] <= 'z')
            return true;
    return false;
}

/* Where the family name begins: at its first particle, never at the first word. */
static size_t family_start(const struct words *words)
{
    for (size_t i = 1; i + 1 < words->count; i++)
        if (rules_find(LIST_PARTICLES, words->at[i]) != NULL && words->at[i].len > 1)
            return i;
    return words->count - 1;
}

/* "Given Middle de la Family", or one word, which stands as a given name. */
static void parse_full(struct words *words, struct arena *arena, struct match_name *name)
{
    strip(words, &name->suffix);
    if (words->count == 0)
        return;
    size_t family = words->count > 1 ? family_start(words) : 1;
    name->given = join(words, 0, 1, arena);
    name->middle = join(words, 1, family, arena);
    name->family = words->count > 1 ? join(words, family, words->count, arena) : BYTES_NONE;
}

/* "Family, Given Middle". */
static void parse_ordered(struct words *family, struct words *given, struct arena *arena, struct match_name *name)
{
    strip(given, &name->suffix);
    strip(family, &name->suffix);
    name->family = join(family, 0, family->count, arena);
    name->given = given->count > 0 ? join(given, 0, 1, arena) : BYTES_NONE;
    name->middle = join(given, 1, given->count, arena);
}

/* What is behind the comma is a given name, not "Jr" or "PhD" alone. */
static bool is_given_part(struct bytes text)
{
    struct words words = split(text);
    if (words.count > 1 && are_letters(words.at, words.count))
        return false;
    for (size_t i = 0; i < words.count; i++)
        if (rules_find(LIST_SUFFIXES, words.at[i]) == NULL && rules_find(LIST_POST_NOMINALS, words.at[i]) == NULL)
            return true;
    return false;
}

typedef struct bytes folder(struct bytes text, struct arena *arena);

/* One way to write it; both ways take the same road. */
static void parse(struct bytes full, struct bytes given, struct bytes family, folder *fold, struct arena *arena,
                  struct match_name *name)
{
    struct bytes rest = full, head = full.len > 0 ? bytes_cut(&rest, ',') : full;
    struct words words = {.count = 0}, more = {.count = 0};
    if (given.len > 0 || family.len > 0) {
        words = split(fold(family, arena));
        more = split(fold(given, arena));
    } else if (rest.len > 0 && is_given_part(fold_text(rest, arena))) {
        words = split(fold(head, arena));
        more = split(fold(rest, arena));
    }
    if (words.count + more.count > 0) {
        parse_ordered(&words, &more, arena, name);
        name->ordered = given.len == 0 && family.len == 0; /* two fields of a form are filled in wrongly often enough */
        return;
    }
    words = split(fold(full, arena));
    parse_full(&words, arena, name);
}

static struct bytes fold_either(struct bytes text, struct arena *arena)
{
    struct bytes too = fold_text_too(text, arena);
    return too.at != NULL ? too : fold_text(text, arena);
}

/* Hyphens: a given name of two is one word, a family name of two is two. */
static void settle(struct match_name *name, struct arena *arena)
{
    name->given = fold_without(name->given, '-', arena);
    name->middle = fold_replace(name->middle, '-', ' ', arena);
    name->family = fold_replace(name->family, '-', ' ', arena);
    if (name->given.at != NULL && (!has_letter(name->given) || rules_find(LIST_NO_NAMES, name->given) != NULL))
        name->given = name->middle = BYTES_NONE;
    if (name->family.at != NULL && (!has_letter(name->family) || rules_find(LIST_NO_NAMES, name->family) != NULL))
        name->family = BYTES_NONE;
}

static bool looks_like_no_name(struct bytes text)
{
    return text.len > 0 && (memchr(text.at, '@', text.len) != NULL || memmem(text.at, text.len, "://", 3) != NULL);
}

enum status match_name_make(struct bytes full, struct bytes given, struct bytes family, struct arena *arena,
                            struct match_name *ret, struct why *why)
{
    struct match_name name = {.given = BYTES_NONE}, too = {.given = BYTES_NONE};
    full = looks_like_no_name(full) ? BYTES("") : fold_trim(full);
    bool parts = given.len > 0 || family.len > 0;
    parse(full, given, family, fold_text, arena, &name);
    settle(&name, arena);
    if (fold_text_too(full, arena).at != NULL || fold_text_too(given, arena).at != NULL ||
        fold_text_too(family, arena).at != NULL) {
        parse(full, given, family, fold_either, arena, &too);
        settle(&too, arena);
        name.given_too = bytes_eq(too.given, name.given) ? BYTES_NONE : too.given;
        name.family_too = bytes_eq(too.family, name.family) ? BYTES_NONE : too.family;
    }
    struct bytes raw =
        parts ? arena_printf(arena, "%.*s%s%.*s", BYTES_ARG(given), given.len > 0 && family.len > 0 ? " " : "", BYTES_ARG(family))
              : arena_dup(arena, full);
    if (arena->failed)
        return why_set(why, FULL, "there is no memory left for a name");
    name.raw = raw.len <= MATCH_VALUE_MAX ? raw : BYTES_NONE;
    *ret = name;
    return OK;
}
