#include "base/json.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

static struct arena arena;

static enum status parse(struct bytes source, struct json *ret_json, struct why *why)
{
    arena_release(&arena);
    arena_init(&arena, 1 << 24);
    return json_parse(source, NULL, &arena, ret_json, why);
}

static struct json parsed(const char *source)
{
    struct json json;
    struct why why = {""};
    if (parse(bytes_of(source), &json, &why) != OK)
        check_fail(__FILE__, __LINE__, "%s is refused: %s", source, why.text);
    return json;
}

/* ---- the public suites ---- */

/* Where the suite leaves the choice to the parser, this one accepts numbers of any size and refuses the rest. */
static bool is_wanted(const char *name)
{
    return name[0] == 'y' || strncmp(name, "i_number_", 9) == 0;
}

static void check_suite_file(const char *dir, const char *name)
{
    char path[1500];
    struct json json;
    struct why why = {""};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    struct bytes file = check_read_file(path);
    /* A copy of the exact size lets the sanitizer see any look behind the end. */
    char *exact = malloc(file.len + (file.len == 0));
    memcpy(exact, file.at, file.len);
    enum status status = parse((struct bytes){exact, file.len}, &json, &why);
    bool names_duplicates = strstr(name, "duplicated_key") != NULL;
    if (status != (is_wanted(name) && !names_duplicates ? OK : INVALID))
        check_fail(__FILE__, __LINE__, "%s: %s %s", name, status_name(status), why.text);
    CHECK(status == OK || strncmp(why.text, "line ", 5) == 0);
    free(exact);
    free((char *)file.at);
}

TEST(json_reads_the_whole_public_test_suite_right)
{
    char path[1024];
    if (check_data_dir() == NULL)
        SKIP("no shared test data");
    snprintf(path, sizeof path, "%s/protocol/json-testsuite/test_parsing", check_data_dir());
    DIR *dir = opendir(path);
    CHECK(dir != NULL);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.') {
            check_suite_file(path, entry->d_name);
            count++;
        }
    closedir(dir);
    CHECK(count >= 283);
}

TEST(json_writes_and_reads_naughty_strings_back_byte_for_byte)
{
    char path[1024];
    if (check_data_dir() == NULL)
        SKIP("no shared test data");
    snprintf(path, sizeof path, "%s/protocol/naughty-strings/blns.json", check_data_dir());
    struct arena first;
    struct json json, back;
    arena_init(&first, 1 << 24);
    struct bytes file = check_read_file(path);
    CHECK_INT(json_parse(file, NULL, &first, &json, NULL), OK);
    CHECK(json.count > 500);
    for (uint32_t i = 0; i < json.count; i++) {
        struct buf buf;
        buf_init(&buf, 1 << 20);
        struct json_out out = json_out_to(&buf);
        json_text(&out, json.items[i].text);
        CHECK_INT(parse(buf_bytes(&buf), &back, NULL), OK);
        CHECK(back.type == JSON_STRING && bytes_eq(back.text, json.items[i].text));
        buf_release(&buf);
    }
    arena_release(&first);
    free((char *)file.at);
}

/* ---- values ---- */

TEST(json_gives_types_counts_and_the_exact_source_of_values)
{
    struct json json = parsed(" { \"a\" : [ 1 , -2.5e+3 , \"x\\ny\" , { } , [ ] ] ,\n\"b\":null,\"c\":true,\"d\":false } ");
    CHECK_INT(json.type, JSON_OBJECT);
    CHECK_INT(json.count, 4);
    const struct json *a = json_get(&json, BYTES("a"));
    CHECK_INT(a->type, JSON_ARRAY);
    CHECK_INT(a->count, 5);
    CHECK_TEXT(a->raw, "[ 1 , -2.5e+3 , \"x\\ny\" , { } , [ ] ]");
    CHECK_TEXT(a->items[1].text, "-2.5e+3");
    CHECK_TEXT(a->items[2].text, "x\ny");
    CHECK_TEXT(a->items[2].raw, "\"x\\ny\"");
    CHECK_INT(a->items[3].type, JSON_OBJECT);
    CHECK_INT(a->items[4].type, JSON_ARRAY);
    CHECK_INT(json_get(&json, BYTES("b"))->type, JSON_NULL);
    CHECK_INT(json_get(&json, BYTES("c"))->type, JSON_TRUE);
    CHECK_TEXT(json_get(&json, BYTES("d"))->raw, "false");
}

TEST(json_strings_without_escapes_are_slices_of_the_source)
{
    const char *source = "[\"plain text of some length\"]";
    struct json json = parsed(source);
    CHECK(json.items[0].text.at == source + 2);
}

TEST(json_decodes_every_escape)
{
    struct json json = parsed("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\ud83d\\uDE02\\u0000z\"");
    CHECK(bytes_eq(json.text, BYTES("\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x82\0z")));
}

TEST(json_finds_stops_at_every_place_of_a_string)
{
    static const char stops[] = {'\x01', '\x1f', '\n', '\xff', '\x80'};
    for (size_t len = 0; len < 40; len++)
        for (size_t place = 0; place < len; place++)
            for (size_t stop = 0; stop < sizeof stops; stop++) {
                char text[48];
                struct json json;
                memset(text, 'x', sizeof text);
                text[0] = text[len + 1] = '"';
                CHECK_INT(parse((struct bytes){text, len + 2}, &json, NULL), OK);
                CHECK_INT(json.text.len, len);
                text[place + 1] = stops[stop];
                CHECK_INT(parse((struct bytes){text, len + 2}, &json, NULL), INVALID);
            }
}

TEST(json_truncated_anywhere_is_refused)
{
    static const char source[] = "{\"a\":[1,-2.5e+3,\"x\\n\\ud83d\\ude02\xc3\xa9\",{}],\"b\":null,\"c\":[true,false]}";
    for (size_t len = 0; len < sizeof source - 1; len++) {
        char *exact = malloc(len + 1);
        struct json json;
        memcpy(exact, source, len);
        CHECK_INT(parse((struct bytes){exact, len}, &json, NULL), INVALID);
        free(exact);
    }
}

TEST(json_refusals_name_the_place)
{
    static const struct {
        const char *source, *why;
    } cases[] = {
        {"", "line 1, column 1: the text ends where a JSON value is expected"},
        {"{\n  \"a\": 1,\n  b: 2}", "line 3, column 3: a name in double quotes is expected here"},
        {"[1,]", "line 1, column 4: a JSON value is expected here"},
        {"[1 2]", "line 1, column 4: ',' or ']' is expected here"},
        {"{} {}", "line 1, column 4: nothing may follow the JSON value"},
        {"{\"a\":1,\"\\u0061\":2}", "line 1, column 17: the name of this value is already used in the same object"},
        {"\xef\xbb\xbf{}", "line 1, column 1: the text begins with a byte order mark; send it without"},
        {"\"\\ud83d\"", "line 1, column 2: this surrogate has no partner"},
        {"[01]", "line 1, column 3: a number does not begin with 0"},
        {"NaN", "line 1, column 1: a JSON value is expected here"},
        {"\"a\tb\"", "line 1, column 3: a control character in a string must be escaped"},
        {"\"\\x\"", "line 1, column 2: this escape does not exist in JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json json = {.count = 77};
        struct why why;
        CHECK_INT(parse(bytes_of(cases[i].source), &json, &why), INVALID);
        CHECK_TEXT(bytes_of(why.text), cases[i].why);
        CHECK_INT(json.count, 77);
    }
}

/* ---- duplicates ---- */

static void write_object(struct buf *buf, int count, int repeated)
{
    struct json_out out = json_out_to(buf);
    json_open(&out, '{');
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%d", i == count - 1 && repeated >= 0 ? repeated : i);
        json_name(&out, name);
        json_i64(&out, i);
    }
    json_close(&out, '}');
}

TEST(json_finds_a_duplicate_name_in_objects_of_every_size)
{
    static const int counts[] = {2, 3, 15, 16, 17, 18, 63, 64, 65, 129, 1000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int repeated = -1; repeated < counts[c] - 1; repeated += 1 + counts[c] / 20) {
            struct buf buf;
            struct json json;
            buf_init(&buf, 1 << 20);
            write_object(&buf, counts[c], repeated);
            CHECK_INT(parse(buf_bytes(&buf), &json, NULL), repeated < 0 ? OK : INVALID);
            if (repeated < 0) {
                CHECK_INT(json.count, counts[c]);
                for (int i = 0; i < counts[c]; i++)
                    CHECK_INT(atoll(json.members[i].value.text.at), i);
            }
            buf_release(&buf);
        }
}

TEST(json_same_names_in_different_objects_are_no_duplicates)
{
    parsed("{\"a\":{\"a\":{\"a\":1}},\"b\":[{\"a\":1},{\"a\":2}]}");
}

/* ---- limits ---- */

static enum status parse_limited(const char *source, struct json_limits limits)
{
    struct json json;
    arena_release(&arena);
    arena_init(&arena, 1 << 20);
    return json_parse(bytes_of(source), &limits, &arena, &json, NULL);
}

TEST(json_limits_hold_exactly)
{
    struct json_limits limits = json_limits_default;
    limits.depth_max = 3;
    CHECK_INT(parse_limited("[[{}]]", limits), OK);
    CHECK_INT(parse_limited("[[{\"a\":[]}]]", limits), INVALID);
    limits = json_limits_default;
    limits.members_max = 4;
    CHECK_INT(parse_limited("[1,{\"a\":1,\"b\":2}]", limits), OK);
    CHECK_INT(parse_limited("[1,{\"a\":1,\"b\":2},3]", limits), INVALID);
    limits = json_limits_default;
    limits.text_max = 3;
    CHECK_INT(parse_limited("[\"abc\",\"\\u20ac\",\"\\n\\n\\n\"]", limits), OK);
    CHECK_INT(parse_limited("\"abcd\"", limits), INVALID);
    CHECK_INT(parse_limited("\"\\n\\n\\n\\n\"", limits), INVALID);
    CHECK_INT(parse_limited("\"a\\u20ac\"", limits), INVALID);
    CHECK_INT(parse_limited("{\"abcd\":1}", limits), INVALID);
}

TEST(json_default_limits_are_64_levels_and_10000_members)
{
    struct json json;
    struct buf buf;
    buf_init(&buf, 1 << 20);
    for (int i = 0; i < 64; i++)
        buf_add_char(&buf, '[');
    for (int i = 0; i < 64; i++)
        buf_add_char(&buf, ']');
    CHECK_INT(parse(buf_bytes(&buf), &json, NULL), OK);
    buf_clear(&buf);
    for (int i = 0; i < 65; i++)
        buf_add_char(&buf, '[');
    for (int i = 0; i < 65; i++)
        buf_add_char(&buf, ']');
    CHECK_INT(parse(buf_bytes(&buf), &json, NULL), INVALID);
    buf_clear(&buf);
    write_object(&buf, 10000, -1);
    CHECK_INT(parse(buf_bytes(&buf), &json, NULL), OK);
    CHECK_INT(json.count, 10000);
    buf_clear(&buf);
    write_object(&buf, 10001, -1);
    CHECK_INT(parse(buf_bytes(&buf), &json, NULL), INVALID);
    buf_release(&buf);
}

TEST(json_says_full_when_the_arena_is_too_small)
{
    struct json json;
    struct arena small;
    for (size_t size = 0; size < 600; size += 16) {
        arena_init(&small, size);
        enum status status = json_parse(BYTES("{\"a\":[1,2,3],\"b\":{\"c\":\"\\n\"}}"), NULL, &small, &json, NULL);
        CHECK(status == FULL || (status == OK && size >= 300));
        arena_release(&small);
    }
}

/* ---- looking things up ---- */

TEST(json_find_follows_names_and_indexes)
{
    struct json json = parsed("{\"form\":{\"token\":\"t\",\"\":5},\"entry\":[{\"id\":7},{\"id\":8}]}");
    CHECK_TEXT(json_find(&json, BYTES("form.token"))->text, "t");
    CHECK_TEXT(json_find(&json, BYTES("entry.1.id"))->text, "8");
    CHECK_TEXT(json_find(&json, BYTES("form."))->text, "5");
    static const char *const missing[] = {"",           "x",
                                          "form.x",     "form.token.x",
                                          "entry.2.id", "entry.01.id",
                                          "entry.-1",   "entry.id",
                                          ".form",      "entry.18446744073709551616",
                                          NULL};
    for (size_t i = 0; missing[i] != NULL; i++)
        CHECK(json_find(&json, bytes_of(missing[i])) == NULL);
    CHECK(json_get(json_find(&json, BYTES("entry")), BYTES("id")) == NULL);
    CHECK(json_get(NULL, BYTES("id")) == NULL);
}

TEST(json_to_i64_takes_integers_that_fit)
{
    static const char *const bad[] = {"1.0", "1e2", "9223372036854775808", "\"1\"", "true", "1.5", NULL};
    int64_t n = 7;
    struct json json = parsed("[-9223372036854775808, -0, 10]");
    CHECK(json_to_i64(&json.items[0], &n) && n == INT64_MIN);
    CHECK(json_to_i64(&json.items[1], &n) && n == 0);
    CHECK(json_to_i64(&json.items[2], &n) && n == 10);
    for (size_t i = 0; bad[i] != NULL; i++) {
        json = parsed(bad[i]);
        CHECK(!json_to_i64(&json, &n));
    }
    CHECK_INT(n, 10);
}

/* ---- the writer ---- */

TEST(json_writer_puts_commas_and_escapes)
{
    struct buf buf;
    buf_init(&buf, 4096);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    json_name(&out, "list");
    json_open(&out, '[');
    json_i64(&out, INT64_MIN);
    json_open(&out, '{');
    json_close(&out, '}');
    json_bool(&out, true);
    json_close(&out, ']');
    json_name_bytes(&out, BYTES("q\"\x1f"));
    json_cstr(&out, NULL);
    json_name(&out, "t");
    json_text(&out, BYTES("\b\f\n\r\t\\/\x7f\0\xe2\x82\xac"));
    json_name(&out, "bad");
    json_text(&out, BYTES("a\xff\xc3(\xed\xa0\x80"));
    json_name(&out, "raw");
    json_raw(&out, BYTES("[1]"));
    json_name(&out, "at");
    json_time(&out, INT64_C(1794784952123456));
    json_name(&out, "never");
    json_time(&out, 0);
    json_close(&out, '}');
    CHECK_TEXT(
        buf_bytes(&buf),
        "{\"list\":[-9223372036854775808,{},true],\"q\\\"\\u001f\":null,\"t\":\"\\b\\f\\n\\r\\t\\\\/\x7f\\u0000\xe2\x82\xac\","
        "\"bad\":\"a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\",\"raw\":[1],"
        "\"at\":\"2026-11-15T23:22:32.123Z\",\"never\":null}");
    buf_release(&buf);
}
