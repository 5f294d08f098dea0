#include "fingerprint/message.h"

#include <stdlib.h>
#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/uscript.h>
#include <unicode/ustring.h>

#define SHINGLE_WORDS 3
#define SHORT_WORDS 5
#define SHORT_LETTERS 25

/* ---- folding ---- */

/* UTF-16 with NFKC and case folding; NULL without memory. Text that is no UTF-8 has its bad bytes replaced. */
static UChar *fold(struct bytes text, struct arena *arena, int32_t *ret_len)
{
    UErrorCode error = U_ZERO_ERROR;
    const UNormalizer2 *nfkc = unorm2_getNFKCCasefoldInstance(&error);
    int32_t wide = 0, folded_max = (int32_t)(text.len * 4 + 64);
    UChar *source = arena_alloc(arena, (text.len + 1) * sizeof *source);
    UChar *folded = arena_alloc(arena, (size_t)folded_max * sizeof *folded);
    if (source == NULL || folded == NULL || U_FAILURE(error))
        return NULL;
    u_strFromUTF8WithSub(source, (int32_t)text.len + 1, &wide, text.at, (int32_t)text.len, 0xFFFD, NULL, &error);
    *ret_len = unorm2_normalize(nfkc, source, wide, folded, folded_max, &error);
    return U_FAILURE(error) && error != U_STRING_NOT_TERMINATED_WARNING ? NULL : folded;
}

static bool is_kept(UChar32 c)
{
    if (u_isalnum(c))
        return true;
    int8_t type = u_charType(c);
    return type == U_OTHER_SYMBOL ? c != 0xFFFD
                                  : type == U_CURRENCY_SYMBOL || type == U_NON_SPACING_MARK || type == U_COMBINING_SPACING_MARK;
}

/* Such a letter is a word of its own. */
static bool stands_alone(UChar32 c)
{
    UErrorCode error = U_ZERO_ERROR;
    UScriptCode script = uscript_getScript(c, &error);
    return u_isalpha(c) && U_SUCCESS(error) && uscript_breaksBetweenLetters(script);
}

/* ---- words ---- */

struct word_reader {
    struct message *message;
    char *out; /* room for all of the words in UTF-8 */
    size_t len, start;
};

static void end_word(struct word_reader *reader)
{
    struct message *message = reader->message;
    if (reader->len > reader->start && message->word_count < MESSAGE_WORDS_MAX)
        message->words[message->word_count++] = (struct bytes){reader->out + reader->start, reader->len - reader->start};
    reader->start = reader->len;
}

static void read_words(struct word_reader *reader, const UChar *folded, int32_t len)
{
    for (int32_t i = 0; i < len;) {
        UChar32 c;
        U16_NEXT(folded, i, len, c);
        if (!is_kept(c)) {
            end_word(reader);
            continue;
        }
        bool alone = stands_alone(c);
        if (alone)
            end_word(reader);
        U8_APPEND_UNSAFE(reader->out, reader->len, c);
        reader->message->letters++;
        if (alone)
            end_word(reader);
    }
    end_word(reader);
}

/* ---- shingles ---- */

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* FNV-1a, with a border behind each word. It is compared within one pass only, and never stored. */
static uint64_t shingle_of(const struct bytes *words, size_t count)
{
    uint64_t n = 0xCBF29CE484222325u;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < words[i].len; j++)
            n = (n ^ (unsigned char)words[i].at[j]) * 0x100000001B3u;
        n = (n ^ 0xFF) * 0x100000001B3u;
    }
    return n;
}

static void fill_shingles(struct message *message)
{
    size_t count = message->word_count, run = count < SHINGLE_WORDS ? count : SHINGLE_WORDS, kept = 0;
    if (count == 0)
        return;
    for (size_t i = 0; i + run <= count; i++)
        message->shingles[message->shingle_count++] = shingle_of(message->words + i, run);
    qsort(message->shingles, message->shingle_count, sizeof *message->shingles, compare_u64);
    for (size_t i = 0; i < message->shingle_count; i++)
        if (kept == 0 || message->shingles[i] != message->shingles[kept - 1])
            message->shingles[kept++] = message->shingles[i];
    message->shingle_count = kept;
}

enum status message_read(struct bytes text, struct arena *arena, struct message *ret, struct why *why)
{
    struct message message = {0};
    int32_t len = 0;
    text.len = text.len < MESSAGE_TEXT_MAX ? text.len : MESSAGE_TEXT_MAX;
    if (text.len > 0) {
        const UChar *folded = fold(text, arena, &len);
        struct word_reader reader = {.message = &message, .out = folded != NULL ? arena_alloc(arena, (size_t)len * 3 + 1) : NULL};
        size_t most = (size_t)len < MESSAGE_WORDS_MAX ? (size_t)len : MESSAGE_WORDS_MAX;
        message.words = arena_zalloc(arena, most + 1, sizeof *message.words);
        message.shingles = arena_zalloc(arena, most + 1, sizeof *message.shingles);
        if (reader.out == NULL || message.words == NULL || message.shingles == NULL)
            return why_set(why, FULL, "no memory for a message");
        read_words(&reader, folded, len);
    }
    message.hash = hash_parts(message.words, message.word_count);
    fill_shingles(&message);
    *ret = message;
    return OK;
}

/* ---- likeness ---- */

bool message_is_short(const struct message *message)
{
    return message->word_count < SHORT_WORDS && message->letters < SHORT_LETTERS;
}

struct likeness message_compare(const struct message *a, const struct message *b)
{
    size_t shared = 0, i = 0, j = 0;
    if (a->shingle_count == 0 || b->shingle_count == 0)
        return (struct likeness){0, 0};
    while (i < a->shingle_count && j < b->shingle_count) {
        int order = compare_u64(&a->shingles[i], &b->shingles[j]);
        shared += order == 0;
        i += order <= 0;
        j += order >= 0;
    }
    size_t smaller = a->shingle_count < b->shingle_count ? a->shingle_count : b->shingle_count;
    size_t all = a->shingle_count + b->shingle_count - shared;
    return (struct likeness){.same = (int)(shared * 1000 / all), .contained = (int)(shared * 1000 / smaller)};
}

static int compare_words(const void *a, const void *b)
{
    return bytes_cmp(*(const struct bytes *)a, *(const struct bytes *)b);
}

struct bytes message_only_in(const struct message *a, const struct message *b, size_t most, struct arena *arena)
{
    struct bytes *sorted = arena_zalloc(arena, b->word_count + 1, sizeof *sorted);
    size_t size = 0, len = 0, count = 0;
    for (size_t i = 0; i < a->word_count; i++)
        size += a->words[i].len + 1;
    char *out = arena_alloc(arena, size + 1);
    if (sorted == NULL || out == NULL)
        return BYTES_NONE;
    if (b->word_count > 0) {
        memcpy(sorted, b->words, b->word_count * sizeof *sorted);
        qsort(sorted, b->word_count, sizeof *sorted, compare_words);
    }
    for (size_t i = 0; i < a->word_count && count < most; i++) {
        if (b->word_count > 0 && bsearch(&a->words[i], sorted, b->word_count, sizeof *sorted, compare_words) != NULL)
            continue;
        if (len > 0)
            out[len++] = ' ';
        memcpy(out + len, a->words[i].at, a->words[i].len);
        len += a->words[i].len;
        count++;
    }
    return (struct bytes){out, len};
}
