#include "fingerprint/key_text.h"

#include <unicode/unorm2.h>
#include <unicode/ustring.h>

/* NFC makes UTF-8 at most three times shorter, so a longer value cannot fit a key in any form. */
#define VALUE_SIZE_MAX (4 * (size_t)KEY_SIZE_MAX)

/* A canonical form is at most this; larger inputs are refused long before. */
#define CANONICAL_SIZE_MAX ((size_t)64 << 20)

size_t key_char_size(struct bytes text)
{
    unsigned char lead = (unsigned char)text.at[0];
    size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    return size < text.len ? size : text.len;
}

struct bytes key_clip(struct bytes text)
{
    enum { CLIP = 60 };
    if (text.len <= CLIP)
        return text;
    size_t len = CLIP;
    while (len > 0 && ((unsigned char)text.at[len] & 0xC0) == 0x80)
        len--;
    return (struct bytes){text.at, len};
}

/* ---- writing ---- */

void key_out_literal(struct key_out *out, struct bytes text)
{
    if (out->full || text.len > KEY_SIZE_MAX - out->len) {
        out->full = true;
        return;
    }
    if (text.len > 0)
        memcpy(out->at + out->len, text.at, text.len);
    out->len += text.len;
}

static void out_escaped(struct key_out *out, struct bytes character)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < character.len; i++) {
        unsigned char byte = (unsigned char)character.at[i];
        char escape[3] = {'%', digits[byte >> 4], digits[byte & 15]};
        key_out_literal(out, (struct bytes){escape, 3});
    }
}

/* U+0000–001F, U+007F and U+0080–009F. */
static bool is_control(struct bytes character)
{
    unsigned char lead = (unsigned char)character.at[0];
    if (character.len == 1)
        return lead < 0x20 || lead == 0x7F;
    return lead == 0xC2 && (unsigned char)character.at[1] < 0xA0;
}

void key_out_value(struct key_out *out, struct bytes value, struct bytes follow)
{
    for (size_t at = 0; at < value.len && !out->full;) {
        struct bytes rest = bytes_from(value, at);
        struct bytes character = {rest.at, key_char_size(rest)};
        if (character.at[0] == '%' || is_control(character) || bytes_eq(character, follow))
            out_escaped(out, character);
        else
            key_out_literal(out, character);
        at += character.len;
    }
}

/* ---- white space ---- */

/* Three-byte characters of Unicode White_Space: U+1680, U+2000–200A, U+2028, U+2029, U+202F, U+205F, U+3000. */
static bool is_wide_space(const unsigned char *at)
{
    unsigned code = (unsigned)(at[0] & 0x0F) << 12 | (unsigned)(at[1] & 0x3F) << 6 | (unsigned)(at[2] & 0x3F);
    return code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
           code == 0x205F || code == 0x3000;
}

/* The size of the White_Space character at the start of `text`, or 0. */
static size_t space_size(struct bytes text)
{
    const unsigned char *at = (const unsigned char *)text.at;
    if (text.len == 0)
        return 0;
    if (at[0] == ' ' || (at[0] >= '\t' && at[0] <= '\r'))
        return 1;
    if (text.len >= 2 && at[0] == 0xC2 && (at[1] == 0x85 || at[1] == 0xA0))
        return 2;
    return text.len >= 3 && at[0] >= 0xE1 && at[0] <= 0xE3 && is_wide_space(at) ? 3 : 0;
}

bool key_is_blank(struct bytes text)
{
    while (text.len > 0) {
        size_t space = space_size(text);
        if (space == 0)
            return false;
        text = bytes_from(text, space);
    }
    return true;
}

/* Into `ret`, which has room for text.len: without leading and trailing white space, each inner run as one space. */
static size_t collapse(struct bytes text, char *ret)
{
    size_t len = 0;
    bool gap = false;
    for (size_t at = 0; at < text.len;) {
        struct bytes rest = bytes_from(text, at);
        size_t space = space_size(rest);
        if (space > 0) {
            gap = len > 0;
            at += space;
            continue;
        }
        if (gap)
            ret[len++] = ' ';
        gap = false;
        size_t size = key_char_size(rest);
        memcpy(ret + len, rest.at, size);
        len += size;
        at += size;
    }
    return len;
}

/* ---- NFC ---- */

static bool is_ascii(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] >= 0x80)
            return false;
    return true;
}

static enum status unicode_failed(UErrorCode error, struct why *why)
{
    return why_set(why, BROKEN, "the Unicode library failed: %s", u_errorName(error));
}

static enum status write_utf8(const UChar *wide, int32_t wide_len, struct arena *arena, struct bytes *ret_text, struct why *why)
{
    UErrorCode error = U_ZERO_ERROR;
    int32_t cap = 3 * wide_len + 1, len = 0;
    char *text = arena_alloc(arena, (size_t)cap);
    if (text == NULL)
        return why_set(why, FULL, "no memory for a key");
    u_strToUTF8(text, cap, &len, wide, wide_len, &error);
    if (U_FAILURE(error))
        return unicode_failed(error, why);
    *ret_text = (struct bytes){text, (size_t)len};
    return OK;
}

/* `text` has at most VALUE_SIZE_MAX bytes, so that every length below fits its type. */
static enum status to_nfc(struct bytes text, struct arena *arena, struct bytes *ret_text, struct why *why)
{
    UErrorCode error = U_ZERO_ERROR;
    const UNormalizer2 *nfc = unorm2_getNFCInstance(&error);
    int32_t cap = (int32_t)text.len + 1, len = 0;
    int32_t composed_cap = 3 * cap; /* the most that NFC can grow UTF-16 */
    UChar *wide = arena_alloc(arena, (size_t)cap * sizeof *wide);
    UChar *composed = arena_alloc(arena, (size_t)composed_cap * sizeof *composed);
    if (wide == NULL || composed == NULL)
        return why_set(why, FULL, "no memory for a key");
    u_strFromUTF8(wide, cap, &len, text.at, (int32_t)text.len, &error);
    if (U_SUCCESS(error) && unorm2_quickCheck(nfc, wide, len, &error) == UNORM_YES && U_SUCCESS(error)) {
        *ret_text = text;
        return OK;
    }
    int32_t composed_len = unorm2_normalize(nfc, wide, len, composed, composed_cap, &error);
    if (U_FAILURE(error))
        return unicode_failed(error, why);
    return write_utf8(composed, composed_len, arena, ret_text, why);
}

/* ---- values ---- */

/* No character of White_Space comes out of or goes into a composition, so it does not matter which is done first. */
static enum status string_text(struct bytes text, struct arena *arena, struct bytes *ret_text, struct why *why)
{
    char *room = arena_alloc(arena, text.len + 1);
    if (room == NULL)
        return why_set(why, FULL, "no memory for a key");
    struct bytes collapsed = {room, collapse(text, room)};
    if (collapsed.len == 0)
        return why_set(why, INVALID, "is empty; a key with a hole in it would be too broad");
    if (collapsed.len > VALUE_SIZE_MAX)
        return why_set(why, INVALID, "is too long for a key of %d bytes; use {hash:…} of it", KEY_SIZE_MAX);
    if (is_ascii(collapsed)) {
        *ret_text = collapsed;
        return OK;
    }
    return to_nfc(collapsed, arena, ret_text, why);
}

enum status key_canonical(const struct json *value, struct arena *arena, struct bytes *ret_text, struct why *why)
{
    struct buf buf;
    buf_init(&buf, CANONICAL_SIZE_MAX);
    enum status status = json_canonical(value, arena, &buf, why);
    if (status == OK) {
        struct bytes text = arena_dup(arena, buf_bytes(&buf));
        if (text.at != NULL)
            *ret_text = text;
        else
            status = why_set(why, FULL, "no memory for the canonical form");
    }
    buf_release(&buf);
    return status;
}

static enum status number_text(const struct json *value, struct arena *arena, struct bytes *ret_text, struct why *why)
{
    enum status status = key_canonical(value, arena, ret_text, why);
    return status == INVALID ? why_set(why, INVALID, "is a number too large to compare") : status;
}

enum status key_value_text(const struct json *value, struct arena *arena, struct bytes *ret_text, struct why *why)
{
    switch (value->type) {
    case JSON_STRING:
        return string_text(value->text, arena, ret_text, why);
    case JSON_NUMBER:
        return number_text(value, arena, ret_text, why);
    case JSON_TRUE:
        *ret_text = BYTES("true");
        return OK;
    case JSON_FALSE:
        *ret_text = BYTES("false");
        return OK;
    case JSON_NULL:
        return why_set(why, INVALID, "is null; a key with a hole in it would be too broad");
    case JSON_ARRAY:
    case JSON_OBJECT:
        return why_set(why, INVALID, "is %s; a key takes text, a number, true or false: name a field in it, or use {hash:…}",
                       json_type_name(value->type));
    }
    return why_set(why, BROKEN, "is of no known type");
}
