#include "match/match_own.h"

/* The letters of `a` that have a partner in `b` within the window; marks them on both sides. */
static int partners(struct bytes a, struct bytes b, bool *used_a, bool *used_b)
{
    size_t longer = a.len > b.len ? a.len : b.len, window = longer / 2 > 0 ? longer / 2 - 1 : 0;
    int count = 0;
    for (size_t i = 0; i < a.len; i++) {
        size_t from = i > window ? i - window : 0, to = i + window + 1 < b.len ? i + window + 1 : b.len;
        for (size_t j = from; j < to; j++) {
            if (used_b[j] || a.at[i] != b.at[j])
                continue;
            used_a[i] = used_b[j] = true;
            count++;
            break;
        }
    }
    return count;
}

static int transpositions(struct bytes a, struct bytes b, const bool *used_a, const bool *used_b)
{
    int count = 0;
    for (size_t i = 0, j = 0; i < a.len; i++) {
        if (!used_a[i])
            continue;
        while (!used_b[j])
            j++;
        count += a.at[i] != b.at[j++];
    }
    return count / 2;
}

int similar_jaro_winkler(struct bytes a, struct bytes b)
{
    bool used_a[SIMILAR_MAX] = {false}, used_b[SIMILAR_MAX] = {false};
    if (bytes_eq(a, b))
        return 1000;
    if (a.len == 0 || b.len == 0 || a.len > SIMILAR_MAX || b.len > SIMILAR_MAX)
        return 0;
    int count = partners(a, b, used_a, used_b);
    if (count == 0)
        return 0;
    int swapped = transpositions(a, b, used_a, used_b), prefix = 0;
    int jaro = (1000000 * count / (int)a.len + 1000000 * count / (int)b.len + 1000000 * (count - swapped) / count) / 3;
    while (prefix < 4 && (size_t)prefix < a.len && (size_t)prefix < b.len && a.at[prefix] == b.at[prefix])
        prefix++;
    return (jaro + prefix * (1000000 - jaro) / 10 + 500) / 1000;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

int similar_edits(struct bytes a, struct bytes b)
{
    int rows[3][SIMILAR_MAX + 1];
    if (a.len > SIMILAR_MAX || b.len > SIMILAR_MAX)
        return SIMILAR_MAX + 1;
    int *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= b.len; j++)
        before[j] = last[j] = (int)j;
    for (size_t i = 1; i <= a.len; i++) {
        now[0] = (int)i;
        for (size_t j = 1; j <= b.len; j++) {
            int replaced = last[j - 1] + (a.at[i - 1] != b.at[j - 1]);
            now[j] = least(replaced, least(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a.at[i - 1] == b.at[j - 2] && a.at[i - 2] == b.at[j - 1])
                now[j] = least(now[j], before[j - 2] + 1);
        }
        int *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[b.len];
}

/* Groups of letters that sound alike; 0 for vowels and h, w, y. */
static char sound_of(char c)
{
    static const char groups[] = "01230120022455012623010202";
    return c >= 'a' && c <= 'z' ? groups[c - 'a'] : '0';
}

void similar_sound(struct bytes text, char ret[5])
{
    size_t len = 0;
    char last = '0';
    for (size_t i = 0; i < text.len && len < 4; i++) {
        char c = text.at[i], sound = sound_of(c);
        if (c < 'a' || c > 'z')
            continue;
        if (len == 0)
            ret[len++] = c;
        else if (sound != '0' && sound != last)
            ret[len++] = sound;
        if (c != 'h' && c != 'w')
            last = sound;
    }
    while (len > 0 && len < 4)
        ret[len++] = '0';
    ret[len] = '\0';
}

bool similar_is_slip(struct bytes a, struct bytes b)
{
    size_t shorter = a.len < b.len ? a.len : b.len;
    char sound_a[5], sound_b[5];
    if (shorter < 3)
        return false;
    int edits = similar_edits(a, b);
    if (edits <= 1)
        return true;
    similar_sound(a, sound_a);
    similar_sound(b, sound_b);
    bool sounds = strcmp(sound_a, sound_b) == 0;
    return shorter >= 5 && edits == 2 && (sounds || (shorter >= 7 && similar_jaro_winkler(a, b) >= 920));
}

int32_t similar_log2_mb(uint64_t n)
{
    int32_t whole = 63 - __builtin_clzll(n), mb = whole * 1000;
    /* The fraction, bit by bit: squaring doubles the logarithm. Sixteen bits are finer than a thousandth. */
    uint64_t x = whole >= 31 ? n >> (whole - 31) : n << (31 - whole); /* 1.0 is 1 << 31 */
    uint32_t fraction = 0;
    for (int i = 0; i < 16; i++) {
        x = x * x >> 31;
        fraction <<= 1;
        if (x >= (uint64_t)1 << 32) {
            x >>= 1;
            fraction |= 1;
        }
    }
    return mb + (int32_t)((uint64_t)fraction * 1000 >> 16);
}
