#include "identity/mention.h"

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

/* Where a number may begin: not inside a word, an amount or a longer number. */
static bool may_begin(struct bytes text, size_t i)
{
    char before = i > 0 ? text.at[i - 1] : ' ';
    if (text.at[i] == '+')
        return i + 1 < text.len && (is_digit(text.at[i + 1]) || text.at[i + 1] == '(');
    return is_digit(text.at[i]) && !is_letter(before) && !is_digit(before) && !is_one_of(before, "#$@_=&%,.");
}

void mention_phones(struct bytes text, struct bytes region, struct arena *arena, struct identity *list, size_t *count, size_t max)
{
    for (size_t i = 0; i < text.len && *count < max; i++) {
        if (!may_begin(text, i))
            continue;
        struct run run = run_at(text, i);
        if (is_phone(text, &run)) {
            struct bytes value = identity_phone_of((struct bytes){text.at + run.start, run.end - run.start}, region, arena);
            identity_add(list, count, max, (struct identity){.kind = IDENTITY_PHONE, .value = value});
        }
        if (run.end > i)
            i = run.end - 1;
    }
}
