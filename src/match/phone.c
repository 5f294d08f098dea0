/* Phone numbers: read by libphonenumber, then one key per line of the network, whichever of its spellings was written. */
#include "match/match_own.h"
#include "match/phone_library.h"

enum { TEXT_MAX = 120, DIGITS_MAX = 20, NATIONAL_MIN = 7 };

const char *const match_phone_kind_names[] = {"other", "mobile", "fixed", "either", "toll_free", NULL};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- spellings of one line ---- */

/* The digits behind '+' that all spellings share; 0 when the number is its own only spelling. */
static size_t equivalent(int country, struct bytes national, char *ret, size_t room)
{
    const char *n = national.at;
    int len = 0;
    if (country == 55 && national.len == 10 && n[2] >= '6') /* Brazil: mobiles got a ninth digit */
        len = snprintf(ret, room, "55%.2s9%.8s", n, n + 2);
    else if (country == 52 && national.len == 11 && n[0] == '1') /* Mexico: 1 stood before mobiles until 2019 */
        len = snprintf(ret, room, "52%.10s", n + 1);
    else if (country == 54 && national.len == 11 && n[0] == '9') /* Argentina: 9 before mobiles, from abroad only */
        len = snprintf(ret, room, "54%.10s", n + 1);
    else if (country == 229 && national.len == 8) /* Benin: 01 in front since 2024 */
        len = snprintf(ret, room, "22901%.8s", n);
    return len > 0 && (size_t)len < room ? (size_t)len : 0;
}

/* ---- placeholders ---- */

/* 1234567890, 9876543210 and parts of them. */
static bool is_counting(struct bytes digits, int step)
{
    for (size_t i = 1; i < digits.len; i++)
        if ((digits.at[i] - digits.at[i - 1] - step) % 10 != 0)
            return false;
    return digits.len > 1;
}

static bool is_junk(struct bytes digits)
{
    unsigned seen = 0;
    while (digits.len > 0 && digits.at[0] == '0' && digits.len > 9)
        digits = bytes_from(digits, 1);
    for (size_t i = 0; i < digits.len; i++)
        seen |= 1u << (digits.at[i] - '0');
    return digits.len < 5 || __builtin_popcount(seen) <= 2 || is_counting(digits, 1) || is_counting(digits, -1);
}

/* ---- reading ---- */

static struct bytes without_scheme(struct bytes text, bool *ret_international)
{
    static const struct bytes schemes[] = {{"whatsapp:", 9}, {"sms:", 4}, {"tel:", 4}, {"phone:", 6}, {"callto:", 7}};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        if (text.len <= schemes[i].len || !bytes_eq_nocase((struct bytes){text.at, schemes[i].len}, schemes[i]))
            continue;
        *ret_international = i == 0; /* WhatsApp names accounts by the international number */
        return fold_trim(bytes_from(text, schemes[i].len));
    }
    return text;
}

/* The ASCII digits, when there is nothing else than what stands between digits; 0 otherwise. */
static size_t plain_digits(struct bytes text, char ret[DIGITS_MAX])
{
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (is_digit(text.at[i]) && len < DIGITS_MAX)
            ret[len++] = text.at[i];
        else if (is_digit(text.at[i]) || text.at[i] == '\0' || strchr(" -./()+", text.at[i]) == NULL)
            return 0;
    }
    return len;
}

static bool read_valid(const char *text, size_t len, const char *region, struct phone_library_number *ret)
{
    struct phone_library_number number = {0};
    char same[DIGITS_MAX + 12] = "+";
    if (!phone_library_read(text, len, region, &number))
        return false;
    *ret = number;
    size_t size = equivalent(number.country, bytes_of(number.national), same + 1, sizeof same - 1);
    struct phone_library_number other = {0};
    return number.valid || (size > 0 && phone_library_read(same, size + 1, "ZZ", &other) && other.valid);
}

/* As it is written, by its region; or, when that makes no valid number, the digits as an international one. */
static bool read_number(struct bytes text, const char *region, bool international, struct phone_library_number *ret)
{
    char digits[DIGITS_MAX], plus[DIGITS_MAX + 1] = "+";
    size_t count = plain_digits(text, digits);
    struct phone_library_number other = {0};
    if (!international && read_valid(text.at, text.len, region, ret))
        return true;
    size_t zeros = count > 2 && digits[0] == '0' && digits[1] == '0' ? 2 : 0;
    if (count < zeros + 8 || digits[zeros] == '0' || count - zeros > 15)
        return ret->e164[0] != '\0';
    memcpy(plus + 1, digits + zeros, count - zeros);
    if (read_valid(plus, count - zeros + 1, "ZZ", &other) || (ret->e164[0] == '\0' && (zeros > 0 || international)))
        *ret = other;
    return ret->e164[0] != '\0';
}

/* The region as the library wants it: two capitals, or "ZZ". */
static void region_of(struct bytes region, char ret[3])
{
    if (!match_region(region, ret) || !phone_library_knows(ret))
        memcpy(ret, "ZZ", 3);
}

/* ---- together ---- */

static void fill_key(const struct phone_library_number *number, struct arena *arena, struct match_phone *phone)
{
    char same[DIGITS_MAX + 12], again[DIGITS_MAX + 12] = "+";
    struct phone_library_number other = {0};
    size_t len = equivalent(number->country, phone->national, same, sizeof same);
    phone->key = len > 0 ? arena_dup(arena, (struct bytes){same, len}) : bytes_from(phone->e164, 1);
    memcpy(again + 1, same, len);
    if (!phone->valid && len > 0 && phone_library_read(again, len + 1, "ZZ", &other) && other.valid) {
        phone->valid = true; /* an old spelling of a number that is in use */
        phone->kind = (enum match_phone_kind)other.kind;
    }
    if (number->country == 54)
        phone->kind = MATCH_PHONE_EITHER; /* without its 9 a mobile looks like a landline */
    if (phone->junk || !phone->possible)
        phone->key = phone->valid && !phone->junk ? phone->key : BYTES_NONE;
}

/* Numbers that are longer than the installed library believes: Benin has ten digits since 2024. */
static void fill_newer(const struct phone_library_number *number, struct match_phone *phone)
{
    char old[DIGITS_MAX] = "+229";
    struct phone_library_number before = {0};
    if (phone->valid || number->country != 229 || phone->national.len != 10 || !bytes_starts(phone->national, BYTES("01")))
        return;
    memcpy(old + 4, phone->national.at + 2, 8);
    if (!phone_library_read(old, 12, "ZZ", &before) || !before.valid)
        return;
    phone->possible = phone->valid = true;
    phone->kind = (enum match_phone_kind)before.kind;
    memcpy(phone->region, "BJ", 3);
}

static void fill(const struct phone_library_number *number, struct arena *arena, struct match_phone *phone)
{
    phone->e164 = arena_dup(arena, bytes_of(number->e164));
    phone->national = arena_dup(arena, bytes_of(number->national));
    phone->extension = number->extension[0] != '\0' ? arena_dup(arena, bytes_of(number->extension)) : BYTES_NONE;
    memcpy(phone->region, number->region, 2);
    phone->kind = (enum match_phone_kind)number->kind;
    phone->possible = number->possible;
    phone->valid = number->valid;
    phone->junk = is_junk(phone->national);
    fill_newer(number, phone);
    fill_key(number, arena, phone);
}

/* A national number of nobody knows which country: its digits can still be compared. */
static void fill_digits(struct bytes text, struct arena *arena, struct match_phone *phone)
{
    char digits[DIGITS_MAX];
    struct bytes national = {digits, plain_digits(text, digits)};
    while (national.len > 0 && national.at[0] == '0')
        national = bytes_from(national, 1);
    if (national.len < NATIONAL_MIN || national.len > 15 || memchr(text.at, '+', text.len) != NULL)
        phone->junk = national.len == 0 && text.len > 0;
    else
        phone->junk = is_junk(national);
    if (national.len >= NATIONAL_MIN && national.len <= 15 && !phone->junk)
        phone->national = arena_dup(arena, national);
}

enum status match_phone_make(struct bytes text, struct bytes region, struct arena *arena, struct match_phone *ret,
                             struct why *why)
{
    _Static_assert((int)MATCH_PHONE_TOLL_FREE == (int)PHONE_LIBRARY_TOLL_FREE, "the kinds are the library's");
    struct match_phone phone = {.raw = arena_dup(arena, text.len <= TEXT_MAX ? text : BYTES_NONE)};
    struct phone_library_number number = {0};
    char known[3];
    bool international = false;
    struct bytes written =
        text.len <= TEXT_MAX && bytes_is_utf8(text) ? without_scheme(fold_trim(text), &international) : BYTES("");
    region_of(region, known);
    if (written.len > 0 && read_number(written, known, international, &number))
        fill(&number, arena, &phone);
    else if (written.len > 0)
        fill_digits(written, arena, &phone);
    if (arena->failed)
        return why_set(why, FULL, "there is no memory left for a phone number");
    *ret = phone;
    return OK;
}
