#include "receive/mention.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

void mention_add(struct identity identity, struct identity *list, size_t *count, size_t max)
{
    if (identity.value.len == 0)
        return;
    for (size_t i = 0; i < *count; i++)
        if (list[i].kind == identity.kind && bytes_eq(list[i].value, identity.value)) {
            list[i].sender = list[i].sender || identity.sender;
            return;
        }
    if (*count < max)
        list[(*count)++] = identity;
}

/* ---- e-mail ---- */

/* What is above ASCII may be part of an address (RFC 6531). */
static bool is_local(char c)
{
    return is_letter(c) || is_digit(c) || (unsigned char)c >= 0x80 || is_one_of(c, ".!#$%&'*+/=?^_`{|}~-");
}

static bool is_domain(char c)
{
    return is_letter(c) || is_digit(c) || (unsigned char)c >= 0x80 || c == '.' || c == '-';
}

/* "com", "москва", "xn--p1ai": no digits but in the last form. */
static bool is_top(struct bytes label)
{
    for (size_t i = 0; i < label.len; i++)
        if (!is_letter(label.at[i]) && (unsigned char)label.at[i] < 0x80)
            return bytes_starts(label, BYTES("xn--"));
    return label.len >= 2;
}

/* "example.com": at least two labels that are not empty. */
static bool is_domain_name(struct bytes domain)
{
    size_t labels = 0;
    struct bytes rest = domain, label = BYTES_NONE;
    while (rest.len > 0) {
        label = bytes_cut(&rest, '.');
        if (label.len == 0 || label.len > 63 || label.at[0] == '-' || label.at[label.len - 1] == '-')
            return false;
        labels++;
    }
    return labels >= 2 && domain.at[domain.len - 1] != '.' && is_top(label);
}

static bool is_local_part(struct bytes local)
{
    if (local.len == 0 || local.len > 64 || local.at[0] == '.' || local.at[local.len - 1] == '.')
        return false;
    for (size_t i = 0; i < local.len; i++)
        if (!is_local(local.at[i]) || (i > 0 && local.at[i] == '.' && local.at[i - 1] == '.'))
            return false;
    return true;
}

struct bytes mention_email(struct bytes text, struct arena *arena)
{
    const char *at = text.at != NULL ? memrchr(text.at, '@', text.len) : NULL;
    if (at == NULL || text.len > MENTION_EMAIL_SIZE_MAX || !bytes_is_utf8(text))
        return BYTES_NONE;
    struct bytes domain = bytes_from(text, (size_t)(at - text.at) + 1);
    if (!is_local_part((struct bytes){text.at, (size_t)(at - text.at)}) || domain.len == 0 || !is_domain_name(domain))
        return BYTES_NONE;
    char *copy = arena_alloc(arena, text.len);
    if (copy == NULL)
        return BYTES_NONE;
    for (size_t i = 0; i < text.len; i++)
        copy[i] = text.at[i] >= 'A' && text.at[i] <= 'Z' ? (char)(text.at[i] + ('a' - 'A')) : text.at[i];
    return (struct bytes){copy, text.len};
}

/* In running text an address is ASCII: what stands around it is often not. */
static struct bytes email_around(struct bytes text, size_t at)
{
    size_t start = at, end = at + 1;
    while (start > 0 && at - start < 64 && is_local(text.at[start - 1]) && (unsigned char)text.at[start - 1] < 0x80)
        start--;
    while (start < at && is_one_of(text.at[start], ".'`*_/="))
        start++;
    while (end < text.len && end - at < 255 && is_domain(text.at[end]) && (unsigned char)text.at[end] < 0x80)
        end++;
    while (end > at + 1 && is_one_of(text.at[end - 1], ".-"))
        end--;
    return (struct bytes){text.at + start, end - start};
}

void mention_emails(struct bytes text, struct arena *arena, struct identity *list, size_t *count, size_t max)
{
    for (size_t i = 0; i < text.len && *count < max; i++) {
        const char *found = memchr(text.at + i, '@', text.len - i);
        if (found == NULL)
            return;
        i = (size_t)(found - text.at);
        struct bytes value = mention_email(email_around(text, i), arena);
        mention_add((struct identity){IDENTITY_EMAIL, false, value}, list, count, max);
    }
}

/* ---- phones ---- */

/* One run of digits and what may stand between them. */
struct run {
    size_t start, end;
    char digits[20];
    size_t count;
    bool plus, fits;
    size_t groups[20]; /* digits of each group */
    size_t group_count;
};

static void run_digit(struct run *run, char c, bool first_of_group)
{
    if (run->count == sizeof run->digits - 1 || (first_of_group && run->group_count == 20)) {
        run->fits = false;
        return;
    }
    if (first_of_group)
        run->groups[run->group_count++] = 0;
    run->groups[run->group_count - 1]++;
    run->digits[run->count++] = c;
}

/* A run ends at two separators that do not belong together, so that two numbers in a row stay two. */
static struct run run_at(struct bytes text, size_t start)
{
    struct run run = {.start = start, .end = start, .fits = true};
    size_t i = start;
    bool fresh = true;
    if (text.at[i] == '+') {
        run.plus = true;
        i++;
    }
    for (; i < text.len; i++) {
        char c = text.at[i];
        if (is_digit(c)) {
            run_digit(&run, c, fresh);
            fresh = false;
            run.end = i + 1;
            continue;
        }
        bool pair = i > start && is_one_of(text.at[i - 1], ") ") && is_one_of(c, "(-");
        bool bracket = c == ')' || (c == ' ' && i > start && text.at[i - 1] == ')');
        if (!is_one_of(c, " .-/()") || (fresh && i > start + 1 && !pair && !bracket && c != '(' && text.at[i - 1] != '+'))
            break;
        fresh = true;
    }
    return run;
}

/* The words that announce a phone, right in front of it. */
static bool is_announced(struct bytes text, size_t start)
{
    static const char *const words[] = {"tel",      "tél",   "téléphone", "telefon", "telephone", "teléfono", "telefono", "phone",
                                        "mobile",   "mobil", "móvil",     "movil",   "cell",      "portable", "handy",    "gsm",
                                        "whatsapp", "call",  "number",    "numéro",  "nummer",    "fon"};
    size_t end = start;
    while (end > 0 && is_one_of(text.at[end - 1], " .:#-(\t"))
        end--;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct bytes word = bytes_of(words[i]);
        if (word.len > end || !bytes_eq_nocase((struct bytes){text.at + end - word.len, word.len}, word))
            continue;
        if (word.len == end || !(is_letter(text.at[end - word.len - 1]) || (unsigned char)text.at[end - word.len - 1] >= 0x80))
            return true;
    }
    return false;
}

/* 2026-11-16 and 16.11.2026 10 are no phones. */
static bool is_date(const struct run *run)
{
    const size_t *groups = run->groups;
    struct bytes digits = {run->digits, run->count};
    if (run->plus || run->group_count < 3 || run->group_count > 4)
        return false;
    bool ymd = groups[0] == 4 && groups[1] <= 2 && groups[2] <= 2 &&
               (bytes_starts(digits, BYTES("19")) || bytes_starts(digits, BYTES("20")));
    bool dmy = groups[0] <= 2 && groups[1] <= 2 && (groups[2] == 4 || (groups[2] == 2 && run->group_count == 3));
    return ymd || dmy;
}

static bool is_american(const struct run *run)
{
    const size_t *groups = run->groups;
    return run->group_count == 3 && groups[0] == 3 && groups[1] == 3 && groups[2] == 4;
}

static bool is_phone(struct bytes text, const struct run *run)
{
    bool international = run->plus || (run->count > 2 && run->digits[0] == '0' && run->digits[1] == '0');
    if (!run->fits || run->count < (international ? 8u : 7u) || run->count > 15 || is_date(run))
        return false;
    if (international || is_american(run) || is_announced(text, run->start))
        return true;
    return run->digits[0] == '0' && run->digits[1] != '0' && run->count >= 9 && run->count <= 12;
}

/* "+" and digits when the country is known, else the digits as they were given. "+44 (0)20 …" has a zero too many. */
static struct bytes phone_value(const struct run *run, struct arena *arena)
{
    struct bytes digits = {run->digits, run->count};
    bool plus = run->plus;
    if (!plus && bytes_starts(digits, BYTES("00"))) {
        plus = true;
        digits = bytes_from(digits, 2);
    }
    bool zero = plus && run->group_count > 1 && run->groups[1] == 1 && digits.at[run->groups[0]] == '0' && run->plus;
    if (!zero)
        return arena_printf(arena, "%s%.*s", plus ? "+" : "", BYTES_ARG(digits));
    return arena_printf(arena, "+%.*s%.*s", (int)run->groups[0], digits.at, BYTES_ARG(bytes_from(digits, run->groups[0] + 1)));
}

/* Where a number may begin: not inside a word, an amount or a longer number. */
static bool may_begin(struct bytes text, size_t i)
{
    char before = i > 0 ? text.at[i - 1] : ' ';
    if (text.at[i] == '+')
        return i + 1 < text.len && (is_digit(text.at[i + 1]) || text.at[i + 1] == '(');
    return is_digit(text.at[i]) && !is_letter(before) && !is_digit(before) && !is_one_of(before, "#$@_=&%,.");
}

void mention_phones(struct bytes text, struct arena *arena, struct identity *list, size_t *count, size_t max)
{
    for (size_t i = 0; i < text.len && *count < max; i++) {
        if (!may_begin(text, i))
            continue;
        struct run run = run_at(text, i);
        if (is_phone(text, &run))
            mention_add((struct identity){IDENTITY_PHONE, false, phone_value(&run, arena)}, list, count, max);
        if (run.end > i)
            i = run.end - 1;
    }
}
