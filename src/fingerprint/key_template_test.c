#include <stdlib.h>

#include "base/when.h"
#include "check.h"
#include "fingerprint/civil.h"
#include "fingerprint/fingerprint.h"

static struct arena arena;

static struct json parse(const char *text)
{
    struct json json;
    struct why why;
    if (json_parse(bytes_of(text), NULL, &arena, &json, &why) != OK)
        check_fail(__FILE__, __LINE__, "%s: %s", text, why.text);
    return json;
}

static void setup(void)
{
    hash_setup();
    arena_init(&arena, (size_t)64 << 20);
}

static struct key_template *compile(const char *text, const char *zone, const char *time_path)
{
    struct key_options options = {zone, bytes_of(time_path)};
    struct key_template *template = NULL;
    struct why why;
    if (key_template_compile(bytes_of(text), &options, &arena, &template, &why) != OK)
        check_fail(__FILE__, __LINE__, "%s: %s", text, why.text);
    return template;
}

/* ---- the shared cases ---- */

static struct bytes text_of(const struct json *object, const char *name)
{
    const struct json *value = json_get(object, bytes_of(name));
    return value != NULL ? value->text : BYTES_NONE;
}

/* The key of a case, or the word for where it was refused. */
static enum status run_case(const struct json *one, struct bytes *ret_key, const char **ret_error, struct bytes *ret_field,
                            struct why *why)
{
    struct key_options options = {text_of(one, "zone").at != NULL ? arena_dup(&arena, text_of(one, "zone")).at : NULL,
                                  text_of(one, "time")};
    struct key_template *template;
    int64_t now_us = 0;
    *ret_error = "template";
    if (text_of(one, "now").at != NULL)
        CHECK(when_parse(text_of(one, "now"), &now_us));
    TRY(key_template_compile(text_of(one, "template"), &options, &arena, &template, why));
    *ret_error = "input";
    enum status status = key_template_fill(template, json_get(one, BYTES("input")), now_us, &arena, ret_key, ret_field, why);
    key_template_free(template);
    return status;
}

static void check_case(const struct json *one)
{
    struct bytes name = text_of(one, "name"), key = BYTES_NONE, field = BYTES_NONE, want = text_of(one, "key");
    const char *error;
    struct why why = {""};
    enum status status = run_case(one, &key, &error, &field, &why);
    if (want.at != NULL && (status != OK || !bytes_eq(key, want)))
        check_fail(__FILE__, __LINE__, "%.*s: \"%.*s\" %s, want \"%.*s\"", BYTES_ARG(name), BYTES_ARG(key), why.text,
                   BYTES_ARG(want));
    if (want.at == NULL && (status != INVALID || !bytes_is(text_of(one, "error"), error) || why.text[0] == '\0'))
        check_fail(__FILE__, __LINE__, "%.*s: \"%.*s\", want a refusal of the %.*s", BYTES_ARG(name), BYTES_ARG(key),
                   BYTES_ARG(text_of(one, "error")));
    if (text_of(one, "field").at != NULL && !bytes_eq(field, text_of(one, "field")))
        check_fail(__FILE__, __LINE__, "%.*s: names field \"%.*s\"", BYTES_ARG(name), BYTES_ARG(field));
}

TEST(keys_agree_with_the_shared_conformance_cases)
{
    const char *source = getenv("SEMEL_SOURCE_DIR");
    char path[1024];
    struct json_limits limits = {64, 100000, 1 << 20};
    struct json file;
    struct why why;
    if (source == NULL)
        SKIP("SEMEL_SOURCE_DIR is not set");
    setup();
    snprintf(path, sizeof path, "%s/sdk/conformance/keys.json", source);
    CHECK_INT(json_parse(check_read_file(path), &limits, &arena, &file, &why), OK);
    const struct json *cases = json_get(&file, BYTES("cases"));
    CHECK(cases->count >= 150);
    for (uint32_t i = 0; i < cases->count; i++)
        check_case(&cases->items[i]);
}

/* ---- no two lists of values make one key ---- */

static const char *const nasty[] = {"%", ":", "a", "2", "5", "3", "A", "\x01", "→", "e", "é", "}"};
enum { NASTY_COUNT = sizeof nasty / sizeof *nasty };

/* All values of one to three nasty pieces. */
static size_t make_values(struct bytes *ret_values)
{
    size_t count = 0;
    for (size_t i = 0; i < NASTY_COUNT; i++)
        ret_values[count++] = bytes_of(nasty[i]);
    for (size_t from = 0, to = count, round = 0; round < 2; round++) {
        for (size_t v = from; v < to; v++)
            for (size_t i = 0; i < NASTY_COUNT && (round == 0 || i < 6); i++)
                ret_values[count++] = arena_printf(&arena, "%.*s%s", BYTES_ARG(ret_values[v]), nasty[i]);
        from = to;
        to = count;
    }
    return count;
}

static int by_text(const void *a, const void *b)
{
    return bytes_cmp(*(const struct bytes *)a, *(const struct bytes *)b);
}

static struct bytes fill_pair(const struct key_template *template, struct bytes a, struct bytes b)
{
    struct json_member members[2] = {{BYTES("a"), {.type = JSON_STRING, .text = a}},
                                     {BYTES("b"), {.type = JSON_STRING, .text = b}}};
    struct json input = {.type = JSON_OBJECT, .count = 2, .members = members};
    struct arena scratch;
    struct bytes key, copy;
    struct why why;
    arena_init(&scratch, 1 << 20);
    if (key_template_fill(template, &input, 0, &scratch, &key, NULL, &why) != OK)
        check_fail(__FILE__, __LINE__, "%s", why.text);
    copy = arena_dup(&arena, key);
    arena_release(&scratch);
    return copy;
}

static void check_injective(const char *text, const struct bytes *a, size_t a_count, const struct bytes *b, size_t b_count)
{
    struct key_template *template = compile(text, NULL, NULL);
    struct bytes *keys = calloc(a_count * b_count, sizeof *keys);
    CHECK(keys != NULL);
    for (size_t i = 0; i < a_count; i++)
        for (size_t j = 0; j < b_count; j++)
            keys[i * b_count + j] = fill_pair(template, a[i], b[j]);
    qsort(keys, a_count * b_count, sizeof *keys, by_text);
    for (size_t i = 1; i < a_count * b_count; i++)
        if (bytes_eq(keys[i - 1], keys[i]))
            check_fail(__FILE__, __LINE__, "%s: two pairs of values make \"%.*s\"", text, BYTES_ARG(keys[i]));
    free(keys);
}

TEST(no_two_pairs_of_short_values_make_one_key)
{
    static const char *const templates[] = {"{a}:{b}", "{a}2{b}",  "{a}A{b}",  "{a}→{b}",
                                            "{a}é{b}", "{a}}}{b}", "{a}:%{b}", "x{a}::{b}:%"};
    static struct bytes values[2048];
    setup();
    size_t count = make_values(values);
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        check_injective(templates[i], values, NASTY_COUNT * 13, values, NASTY_COUNT * 13);
        check_injective(templates[i], values, count, values, 6);
        check_injective(templates[i], values, 6, values, count);
        arena_clear(&arena);
        count = make_values(values);
    }
}

/* A fixed sequence: a failure can be repeated. */
static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static struct bytes random_value(uint32_t *state)
{
    struct buf buf;
    buf_init(&buf, 256);
    size_t pieces = 1 + next_random(state) % 12;
    for (size_t i = 0; i < pieces; i++)
        buf_add_cstr(&buf, nasty[next_random(state) % NASTY_COUNT]);
    struct bytes value = arena_dup(&arena, buf_bytes(&buf));
    buf_release(&buf);
    return value;
}

static int hex_digit(char c)
{
    return c <= '9' ? c - '0' : c - 'A' + 10;
}

/* Reads a value back: up to the literal that no value holds unescaped. */
static struct bytes unescape_until(struct bytes *rest, struct bytes literal)
{
    struct buf buf;
    buf_init(&buf, 4096);
    while (rest->len > 0 && !(literal.len > 0 && bytes_starts(*rest, literal))) {
        bool escape = rest->at[0] == '%' && rest->len >= 3;
        buf_add_char(&buf, escape ? (char)(hex_digit(rest->at[1]) * 16 + hex_digit(rest->at[2])) : rest->at[0]);
        *rest = bytes_from(*rest, escape ? 3 : 1);
    }
    *rest = bytes_from(*rest, literal.len);
    struct bytes value = arena_dup(&arena, buf_bytes(&buf));
    buf_release(&buf);
    return value;
}

TEST(the_values_can_be_read_back_from_any_key)
{
    uint32_t state = 1;
    setup();
    struct key_template *template = compile("{a}→{b}", NULL, NULL);
    for (int i = 0; i < 20000; i++) {
        struct bytes a = random_value(&state), b = random_value(&state);
        struct bytes key = fill_pair(template, a, b);
        CHECK_TEXT(unescape_until(&key, BYTES("→")), a.at);
        CHECK_TEXT(unescape_until(&key, BYTES_NONE), b.at);
        arena_clear(&arena);
        template = compile("{a}→{b}", NULL, NULL);
    }
}

/* ---- refusals ---- */

static void check_refusal(const char *text, const char *time_path, const char *fragment)
{
    struct key_options options = {NULL, bytes_of(time_path)};
    struct key_template *template = NULL;
    struct why why = {""};
    CHECK_INT(key_template_compile(bytes_of(text), &options, &arena, &template, &why), INVALID);
    CHECK(template == NULL);
    if (strstr(why.text, fragment) == NULL)
        check_fail(__FILE__, __LINE__, "%s: \"%s\" does not say \"%s\"", text, why.text, fragment);
}

TEST(a_refused_template_names_the_placeholder_its_position_and_the_fix)
{
    setup();
    check_refusal("x:{billing:40}", "at",
                  "{billing:40} at character 3 of the key: the period begins on a day of the month from 1 to 31");
    check_refusal("é:{}", NULL, "{} at character 3 of the key: name a field");
    check_refusal("x:{a", NULL, "{ at character 3 of the key: this brace is never closed");
    check_refusal("x:{a{b}", NULL, "never closed");
    check_refusal("x}y", NULL, "} at character 2 of the key: this brace closes nothing");
    check_refusal("{a}{b}", NULL, "{b} at character 4 of the key: it follows another placeholder directly");
    check_refusal("nightly", NULL, "this key never changes");
    check_refusal("", NULL, "the key is empty");
    check_refusal("{uuid}", NULL, "never repeats");
    check_refusal("{now}", NULL, "use {today} or a field");
    check_refusal("{timestamp}", NULL, "{input.timestamp}");
    check_refusal("{random}", NULL, "never repeats");
    check_refusal("{windw:5m}", "at", "did you mean {window:…}?");
    check_refusal("{window:5}", "at", "a duration such as {window:15m}");
    check_refusal("{window:367d}", "at", "from 1s to 366d");
    check_refusal("{window}", "at", "{input.window}");
    check_refusal("{window:15m}", NULL, "'time:'");
    check_refusal("{day:1}", "at", "without ':'");
    check_refusal("{ a}", NULL, "without spaces");
    check_refusal("{a..b}", NULL, "a step of the path is empty");
    check_refusal("{a}% {b}", NULL, "'%' cannot stand directly behind");
    check_refusal("{day}", "a..b", "the path of the time, 'a..b'");
    check_refusal("a\n{b}", NULL, "a control character at byte 2");
    check_refusal("{a\xff}", NULL, "not UTF-8");
}

TEST(a_template_has_limits)
{
    char text[4 * KEY_SIZE_MAX];
    setup();
    memset(text, 'x', sizeof text);
    memcpy(text, "{a}", 3);
    text[KEY_SIZE_MAX + 1] = '\0';
    check_refusal(text, NULL, "longer than 2048 bytes");
    size_t len = 0;
    for (int i = 0; i < 33; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "{a}:");
    check_refusal(text, NULL, "at most 32 placeholders");
    text[len - 4] = '\0';
    (void)compile(text, NULL, NULL);
}

TEST(a_template_that_does_not_fit_its_arena_is_full)
{
    struct key_options options = {"Europe/Paris", BYTES("at")};
    struct key_template *template = NULL;
    struct why why;
    struct arena probe;
    arena_init(&probe, 1 << 20);
    CHECK_INT(key_template_compile(BYTES("{a}:{day}"), &options, &probe, &template, &why), OK);
    key_template_free(template);
    size_t needed = probe.used_total;
    arena_release(&probe);
    for (size_t size = 0; size < needed; size += 8) {
        struct arena tight;
        arena_init(&tight, size);
        template = NULL;
        CHECK_INT(key_template_compile(BYTES("{a}:{day}"), &options, &tight, &template, &why), FULL);
        CHECK(template == NULL);
        arena_release(&tight);
    }
}

TEST(a_refusal_at_fill_never_shows_what_the_input_holds)
{
    struct bytes key = BYTES_NONE, field = BYTES_NONE;
    struct why why;
    setup();
    struct json input = parse("{\"a\":[\"secret\"],\"at\":\"secret\"}");
    CHECK_INT(key_template_fill(compile("{a}", NULL, NULL), &input, 0, &arena, &key, &field, &why), INVALID);
    CHECK(strstr(why.text, "secret") == NULL);
    CHECK(strstr(why.text, "{hash:") != NULL);
    CHECK_TEXT(field, "a");
    CHECK_INT(key_template_fill(compile("{day}", NULL, "at"), &input, 0, &arena, &key, &field, &why), INVALID);
    CHECK(strstr(why.text, "secret") == NULL);
    CHECK_TEXT(field, "at");
    CHECK(key.at == NULL);
}

TEST(only_today_depends_on_the_clock)
{
    struct bytes one, two;
    struct why why;
    setup();
    struct json input = parse("{\"a\":\"x\",\"at\":\"2026-11-15T09:00:00Z\"}");
    struct key_template *still = compile("{a}:{day}:{hash}:{window:15m}", "Europe/Paris", "at");
    CHECK_INT(key_template_fill(still, &input, 0, &arena, &one, NULL, &why), OK);
    CHECK_INT(key_template_fill(still, &input, 1000 * WHEN_DAY, &arena, &two, NULL, &why), OK);
    CHECK(bytes_eq(one, two));
    struct key_template *moving = compile("{today}", "Europe/Paris", NULL);
    CHECK_INT(key_template_fill(moving, NULL, 0, &arena, &one, NULL, &why), OK);
    CHECK_TEXT(one, "1970-01-01");
    CHECK_INT(key_template_fill(moving, NULL, 23 * WHEN_HOUR, &arena, &one, NULL, &why), OK);
    CHECK_TEXT(one, "1970-01-02");
    key_template_free(still);
    key_template_free(moving);
}

TEST(a_long_value_that_composes_to_a_short_one_fits)
{
    struct buf text;
    struct bytes key;
    struct why why;
    setup();
    buf_init(&text, 1 << 16);
    buf_add_cstr(&text, "{\"a\":\"");
    for (int i = 0; i < KEY_SIZE_MAX / 3; i++)
        buf_add_cstr(&text, "\\u1112\\u1161\\u11ab"); /* nine bytes that become three */
    buf_add_cstr(&text, "\"}");
    buf_add_char(&text, '\0');
    struct json input = parse(text.at);
    CHECK_INT(key_template_fill(compile("{a}", NULL, NULL), &input, 0, &arena, &key, NULL, &why), OK);
    CHECK_INT(key.len, KEY_SIZE_MAX / 3 * 3);
    buf_release(&text);
}

/* ---- zones and dates ---- */

TEST(zone_names_are_those_of_iana_exactly)
{
    static const char *const good[] = {"UTC", "Europe/Paris", "America/Argentina/Buenos_Aires", "Asia/Kolkata", "Etc/GMT+5",
                                       "EST", "Zulu"};
    static const char *const bad[] = {"",
                                      "Paris",
                                      "europe/paris",
                                      "GMT+5",
                                      "BST",
                                      "PST",
                                      "IST",
                                      "SystemV/AST4",
                                      "Etc/Unknown",
                                      "Europe/Paris ",
                                      "Europe/\xc3\xa9",
                                      "../../etc/passwd"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!zone_exists(good[i]))
            check_fail(__FILE__, __LINE__, "%s is not known", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (zone_exists(bad[i]))
            check_fail(__FILE__, __LINE__, "%s is taken for a zone", bad[i]);
    CHECK(!zone_exists(NULL));
}

TEST(a_zone_that_does_not_exist_gets_a_suggestion)
{
    char name[ZONE_NAME_MAX + 1];
    CHECK(zone_nearest(BYTES("europe/paris"), name));
    CHECK_TEXT(bytes_of(name), "Europe/Paris");
    CHECK(zone_nearest(BYTES("New York"), name));
    CHECK_TEXT(bytes_of(name), "America/New_York");
    CHECK(zone_nearest(BYTES("Europe/Pariss"), name));
    CHECK_TEXT(bytes_of(name), "Europe/Paris");
    CHECK(!zone_nearest(BYTES("Middle-earth/Shire"), name));
    CHECK(!zone_nearest(BYTES(""), name));
}

TEST(an_unknown_zone_is_refused_even_when_no_part_needs_it)
{
    struct key_options options = {"Europe/Pari", BYTES_NONE};
    struct key_template *template;
    struct why why;
    setup();
    CHECK_INT(key_template_compile(BYTES("{a}"), &options, &arena, &template, &why), INVALID);
    CHECK(strstr(why.text, "'Europe/Pari'") != NULL);
}

TEST(every_day_of_eight_centuries_goes_to_a_date_and_back)
{
    struct civil before = civil_from_days(-135141);
    for (int64_t days = -135140; days < 165000; days++) {
        struct civil date = civil_from_days(days);
        CHECK_INT(civil_to_days(date), days);
        bool next_day = date.day == before.day + 1 && date.month == before.month && date.year == before.year;
        bool next_month = date.day == 1 && before.day == civil_month_days(before.year, before.month);
        CHECK(next_day || next_month);
        before = date;
    }
}

TEST(iso_weeks_begin_on_monday_and_count_to_52_or_53)
{
    struct civil_week before = civil_iso_week(-135141);
    for (int64_t days = -135140; days < 165000; days++) {
        struct civil_week week = civil_iso_week(days);
        bool monday = (days % 7 + 7 + 3) % 7 == 0;
        bool same = week.year == before.year && week.week == before.week;
        CHECK(same == !monday);
        if (monday && week.week == 1)
            CHECK(week.year == before.year + 1 && before.week >= 52 && before.week <= 53);
        else if (monday)
            CHECK(week.year == before.year && week.week == before.week + 1);
        before = week;
    }
}
