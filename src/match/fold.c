/* Letters in one spelling, by ICU. ASCII, which is most of what comes, asks no library. */
#include "match/match_own.h"

#include <pthread.h>
#include <unicode/unorm2.h>
#include <unicode/ustring.h>
#include <unicode/utrans.h>

/* 320 bytes are at most 320 code units; a letter of another script becomes at most a syllable. */
enum { UNITS = MATCH_VALUE_MAX * 8 };

static UTransliterator *latin; /* opening it takes milliseconds; using it is safe from every thread */

static void open_latin(void)
{
    static const UChar id[] = u"NFKC; Any-Latin; Latin-ASCII; Lower";
    UErrorCode code = U_ZERO_ERROR;
    latin = utrans_openU(id, -1, UTRANS_FORWARD, NULL, 0, NULL, &code);
    ASSERT(U_SUCCESS(code));
}

static bool is_ascii(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] >= 0x80)
            return false;
    return true;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* At most MATCH_VALUE_MAX, whole characters. */
static struct bytes clip(struct bytes text)
{
    if (text.len <= MATCH_VALUE_MAX)
        return text;
    size_t len = MATCH_VALUE_MAX;
    while (len > 0 && ((unsigned char)text.at[len] & 0xC0) == 0x80)
        len--;
    return (struct bytes){text.at, len};
}

struct bytes fold_trim(struct bytes text)
{
    static const char white[] = " \t\r\n\v\f";
    for (;;) {
        if (text.len > 0 && text.at[0] != '\0' && strchr(white, text.at[0]) != NULL)
            text = bytes_from(text, 1);
        else if (text.len >= 2 && memcmp(text.at, "\xc2\xa0", 2) == 0)
            text = bytes_from(text, 2);
        else if (text.len >= 3 && (memcmp(text.at, "\xe2\x80\x8b", 3) == 0 || memcmp(text.at, "\xef\xbb\xbf", 3) == 0))
            text = bytes_from(text, 3);
        else
            break;
    }
    for (;;) {
        if (text.len == 0)
            return text;
        const char *end = text.at + text.len;
        if (end[-1] != '\0' && strchr(white, end[-1]) != NULL)
            text.len--;
        else if (text.len >= 2 && memcmp(end - 2, "\xc2\xa0", 2) == 0)
            text.len -= 2;
        else if (text.len >= 3 && memcmp(end - 3, "\xe2\x80\x8b", 3) == 0)
            text.len -= 3;
        else
            return text;
    }
}

/* Only letters and digits, one space between words, '-' and nothing else inside them. Works in place. */
static size_t tidy(char *at, size_t len)
{
    size_t to = 0;
    for (size_t i = 0; i < len; i++) {
        char c = lower(at[i]), last = to > 0 ? at[to - 1] : ' ';
        bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (word) {
            at[to++] = c;
        } else if (c == '\'' || c == '`') {
            continue; /* O'Brien is obrien */
        } else if (last == ' ') {
            continue;
        } else if (last == '-') {
            at[to - 1] = ' ';
        } else {
            at[to++] = c == '-' ? '-' : ' ';
        }
    }
    while (to > 0 && (at[to - 1] == ' ' || at[to - 1] == '-'))
        to--;
    return to;
}

/* `text` as UTF-16, broken bytes as U+FFFD; 0 when it does not fit. */
static int32_t to_units(struct bytes text, UChar ret[UNITS])
{
    UErrorCode code = U_ZERO_ERROR;
    int32_t len = 0;
    u_strFromUTF8WithSub(ret, UNITS, &len, text.at, (int32_t)text.len, 0xFFFD, NULL, &code);
    return U_SUCCESS(code) ? len : 0;
}

static struct bytes from_units(const UChar *units, int32_t len, struct arena *arena)
{
    char out[UNITS * 3];
    UErrorCode code = U_ZERO_ERROR;
    int32_t size = 0;
    u_strToUTF8(out, sizeof out, &size, units, len, &code);
    return arena_dup(arena, (struct bytes){out, U_SUCCESS(code) ? (size_t)size : 0});
}

static struct bytes fold_units(UChar units[UNITS], int32_t len, struct arena *arena)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char out[UNITS];
    UErrorCode code = U_ZERO_ERROR;
    int32_t limit = len;
    size_t size = 0;
    pthread_once(&once, open_latin);
    utrans_transUChars(latin, units, &len, UNITS, 0, &limit, &code);
    for (int32_t i = 0; U_SUCCESS(code) && i < len && i < UNITS; i++)
        out[size++] = units[i] < 0x80 ? (char)units[i] : units[i] == 0x2019 || units[i] == 0x2BC ? '\'' : ' ';
    return arena_dup(arena, (struct bytes){out, tidy(out, size)});
}

struct bytes fold_text(struct bytes text, struct arena *arena)
{
    UChar units[UNITS];
    char out[MATCH_VALUE_MAX] = "";
    text = clip(text);
    if (!is_ascii(text))
        return fold_units(units, to_units(text, units), arena);
    if (text.len > 0)
        memcpy(out, text.at, text.len);
    return arena_dup(arena, (struct bytes){out, tidy(out, text.len)});
}

static const char *written_out(UChar unit)
{
    switch (unit) {
    case 0xE4:
    case 0xC4:
        return "ae";
    case 0xF6:
    case 0xD6:
    case 0xF8:
    case 0xD8:
        return "oe";
    case 0xFC:
    case 0xDC:
        return "ue";
    case 0xE5:
    case 0xC5:
        return "aa";
    default:
        return NULL;
    }
}

static int32_t normalise(const UChar *units, int32_t len, UChar ret[UNITS])
{
    UErrorCode code = U_ZERO_ERROR;
    const UNormalizer2 *nfc = unorm2_getNFCInstance(&code);
    int32_t size = U_SUCCESS(code) ? unorm2_normalize(nfc, units, len, ret, UNITS, &code) : 0;
    return U_SUCCESS(code) ? size : 0;
}

struct bytes fold_text_too(struct bytes text, struct arena *arena)
{
    UChar given[UNITS], composed[UNITS], units[UNITS];
    text = clip(text);
    if (is_ascii(text))
        return BYTES_NONE;
    int32_t composed_len = normalise(given, to_units(text, given), composed), len = 0;
    bool differs = false;
    for (int32_t i = 0; i < composed_len && len < UNITS - 2; i++) {
        const char *letters = written_out(composed[i]);
        differs |= letters != NULL;
        units[len++] = letters != NULL ? (UChar)letters[0] : composed[i];
        if (letters != NULL)
            units[len++] = (UChar)letters[1];
    }
    return differs ? fold_units(units, len, arena) : BYTES_NONE;
}

struct bytes fold_nfc(struct bytes text, bool lower_case, struct arena *arena)
{
    UChar given[UNITS], composed[UNITS];
    char out[MATCH_VALUE_MAX];
    if (text.at == NULL || text.len > MATCH_VALUE_MAX)
        return BYTES_NONE;
    if (is_ascii(text)) {
        for (size_t i = 0; i < text.len; i++)
            out[i] = lower_case ? lower(text.at[i]) : text.at[i];
        return arena_dup(arena, (struct bytes){out, text.len});
    }
    if (!bytes_is_utf8(text))
        return BYTES_NONE;
    int32_t len = to_units(text, given);
    if (lower_case) {
        UErrorCode code = U_ZERO_ERROR;
        int32_t lowered = u_strToLower(composed, UNITS, given, len, "", &code);
        if (U_FAILURE(code))
            return BYTES_NONE;
        memcpy(given, composed, (size_t)lowered * sizeof *given);
        len = lowered;
    }
    return from_units(composed, normalise(given, len, composed), arena);
}

/* ---- words ---- */

struct bytes fold_replace(struct bytes text, char from, char to, struct arena *arena)
{
    struct bytes copy = arena_dup(arena, text);
    char *at = (char *)copy.at; /* ours */
    for (size_t i = 0; i < copy.len; i++)
        if (at[i] == from)
            at[i] = to;
    return copy;
}

struct bytes fold_without(struct bytes text, char drop, struct arena *arena)
{
    struct bytes copy = arena_dup(arena, text);
    char *at = (char *)copy.at; /* ours */
    size_t len = 0;
    for (size_t i = 0; i < copy.len; i++)
        if (at[i] != drop)
            at[len++] = at[i];
    copy.len = len;
    return copy;
}

static int compare_words(const void *a, const void *b)
{
    return bytes_cmp(*(const struct bytes *)a, *(const struct bytes *)b);
}

struct bytes fold_sorted(struct bytes text, struct arena *arena)
{
    struct bytes words[MATCH_VALUE_MAX], rest = text;
    char out[MATCH_VALUE_MAX * 4 + 1];
    size_t count = 0, len = 0;
    while (rest.len > 0 && count < MATCH_VALUE_MAX) {
        struct bytes word = bytes_cut(&rest, ' ');
        if (word.len > 0)
            words[count++] = word;
    }
    if (count > 1)
        qsort(words, count, sizeof *words, compare_words);
    for (size_t i = 0; i < count; i++) {
        if ((i > 0 && bytes_eq(words[i], words[i - 1])) || len + words[i].len + 1 > sizeof out)
            continue;
        if (len > 0)
            out[len++] = ' ';
        memcpy(out + len, words[i].at, words[i].len);
        len += words[i].len;
    }
    return arena_dup(arena, (struct bytes){out, len});
}
