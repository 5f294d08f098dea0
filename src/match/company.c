/* Companies and countries. */
#include "match/match_own.h"

#include <unicode/uloc.h>
#include <unicode/ustring.h>

/* The text without a phrase at its end. */
static struct bytes without_phrase(struct bytes text)
{
    const struct rules_word *row;
    for (size_t i = 0; (row = rules_at(LIST_LEGAL_PHRASES, i)) != NULL; i++) {
        size_t len = row->word.len;
        if (text.len > len + 1 && text.at[text.len - len - 1] == ' ' && memcmp(text.at + text.len - len, row->word.at, len) == 0)
            return (struct bytes){text.at, text.len - len - 1};
    }
    return text;
}

/* Words that say something, as they come; all of them when nothing else would be left. */
static struct bytes without_forms(struct bytes text, struct arena *arena)
{
    char out[MATCH_VALUE_MAX * 8];
    size_t len = 0;
    for (struct bytes rest = text; rest.len > 0;) {
        struct bytes word = bytes_cut(&rest, ' ');
        if (word.len == 0 || rules_find(LIST_LEGAL_FORMS, word) != NULL || len + word.len + 1 > sizeof out)
            continue;
        if (len > 0)
            out[len++] = ' ';
        memcpy(out + len, word.at, word.len);
        len += word.len;
    }
    return len > 0 ? arena_dup(arena, (struct bytes){out, len}) : text;
}

enum status match_company_make(struct bytes text, struct arena *arena, struct match_company *ret, struct why *why)
{
    struct match_company company = {.raw = arena_dup(arena, text.len <= MATCH_VALUE_MAX ? text : BYTES_NONE)};
    struct bytes folded = fold_replace(fold_text(fold_trim(text), arena), '-', ' ', arena);
    struct bytes words = without_forms(without_phrase(folded), arena);
    struct bytes squeezed = fold_without(words, ' ', arena);
    if (arena->failed)
        return why_set(why, FULL, "there is no memory left for the name of a company");
    bool says_something = squeezed.len >= 2 && rules_find(LIST_NO_COMPANIES, squeezed) == NULL;
    company.key = says_something ? squeezed : BYTES_NONE;
    *ret = company;
    return OK;
}

/* ---- countries ---- */

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
}

/* The English name of a country by ICU, folded as far as ASCII goes. */
static bool has_name(const char *country, struct bytes name)
{
    UChar display[64];
    UErrorCode code = U_ZERO_ERROR;
    char locale[8] = "und_", text[128];
    int32_t len;
    memcpy(locale + 4, country, 3);
    int32_t units = uloc_getDisplayCountry(locale, "en", display, 64, &code);
    if (U_FAILURE(code) || units <= 0 || units >= 64)
        return false;
    u_strToUTF8(text, sizeof text, &len, display, units, &code);
    return U_SUCCESS(code) && bytes_eq_nocase((struct bytes){text, (size_t)len}, name);
}

bool match_region(struct bytes text, char ret[3])
{
    memset(ret, 0, 3);
    text = fold_trim(text);
    if (text.len < 2 || text.len > 60)
        return false;
    if (text.len == 2 && bytes_eq_nocase(text, BYTES("UK")))
        text = BYTES("GB");
    for (const char *const *country = uloc_getISOCountries(); *country != NULL; country++) {
        char locale[8] = "und_";
        memcpy(locale + 4, *country, 3);
        bool same = text.len == 2   ? upper(text.at[0]) == (*country)[0] && upper(text.at[1]) == (*country)[1]
                    : text.len == 3 ? bytes_eq_nocase(text, bytes_of(uloc_getISO3Country(locale)))
                                    : has_name(*country, text);
        if (!same)
            continue;
        memcpy(ret, *country, 2);
        return true;
    }
    return false;
}
