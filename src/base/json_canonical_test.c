#include "base/json.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

/* The canonical form in malloc'ed memory, or the status when there is none. */
static enum status canonical(struct bytes source, struct buf *ret_out, struct why *why)
{
    struct arena arena;
    struct json json;
    arena_init(&arena, 1 << 22);
    buf_init(ret_out, 1 << 20);
    enum status status = json_parse(source, NULL, &arena, &json, why);
    if (status == OK)
        status = json_canonical(&json, &arena, ret_out, why);
    arena_release(&arena);
    return status;
}

static void check_canonical(const char *source, const char *want)
{
    struct buf out;
    CHECK_INT(canonical(bytes_of(source), &out, NULL), OK);
    CHECK_TEXT(buf_bytes(&out), want);
    buf_release(&out);
}

TEST(json_canonical_gives_the_published_bytes)
{
    static const char *const names[] = {"arrays", "french", "structures", "unicode", "values", "weird"};
    char path[1024];
    if (check_data_dir() == NULL)
        SKIP("no shared test data");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct buf out;
        snprintf(path, sizeof path, "%s/protocol/json-canonicalization/testdata/input/%s.json", check_data_dir(), names[i]);
        struct bytes input = check_read_file(path);
        CHECK_INT(canonical(input, &out, NULL), OK);
        snprintf(path, sizeof path, "%s/protocol/json-canonicalization/testdata/output/%s.json", check_data_dir(), names[i]);
        struct bytes output = check_read_file(path);
        CHECK_TEXT(buf_bytes(&out), output.at);
        buf_release(&out);
        free((char *)input.at);
        free((char *)output.at);
    }
}

TEST(json_canonical_tells_equal_from_different_payloads)
{
    char path[1024];
    if (check_data_dir() == NULL)
        SKIP("no shared test data");
    snprintf(path, sizeof path, "%s/protocol/own/fingerprint_pairs.json", check_data_dir());
    struct arena arena;
    struct json pairs;
    arena_init(&arena, 1 << 20);
    struct bytes file = check_read_file(path);
    CHECK_INT(json_parse(file, NULL, &arena, &pairs, NULL), OK);
    for (uint32_t i = 0; i < pairs.count; i++) {
        const struct json *pair = &pairs.items[i];
        struct buf x, y;
        CHECK_INT(canonical(json_get(pair, BYTES("x"))->text, &x, NULL), OK);
        CHECK_INT(canonical(json_get(pair, BYTES("y"))->text, &y, NULL), OK);
        bool same = json_get(pair, BYTES("same"))->type == JSON_TRUE;
        if (bytes_eq(buf_bytes(&x), buf_bytes(&y)) != same)
            check_fail(__FILE__, __LINE__, "pair %.*s", BYTES_ARG(json_get(pair, BYTES("id"))->text));
        buf_release(&x);
        buf_release(&y);
    }
    CHECK_INT(pairs.count, 12);
    arena_release(&arena);
    free((char *)file.at);
}

static void check_number_line(struct bytes line)
{
    struct bytes hex = bytes_cut(&line, ',');
    char text[32], bits_text[17] = "";
    double number;
    CHECK(hex.len <= 16);
    memcpy(bits_text, hex.at, hex.len);
    uint64_t bits = strtoull(bits_text, NULL, 16);
    memcpy(&number, &bits, sizeof number);
    size_t len = json_number_format(number, text);
    if (!bytes_eq((struct bytes){text, len}, line))
        check_fail(__FILE__, __LINE__, "%s gives %s, want %.*s", bits_text, text, BYTES_ARG(line));
}

TEST(json_number_writes_ten_thousand_doubles_as_ecmascript_does)
{
    char path[1024];
    if (check_data_dir() == NULL)
        SKIP("no shared test data");
    snprintf(path, sizeof path, "%s/protocol/own/es6_numbers_10k.txt", check_data_dir());
    struct bytes file = check_read_file(path), rest = file;
    int count = 0;
    for (; rest.len > 0; count++)
        check_number_line(bytes_cut(&rest, '\n'));
    CHECK(count >= 10000);
    free((char *)file.at);
}

TEST(json_number_is_the_same_in_every_locale)
{
    char text[32];
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL && setlocale(LC_ALL, "fr_FR.UTF-8") == NULL)
        SKIP("no locale with a decimal comma");
    json_number_format(0x1.5555555555555p-40, text);
    CHECK_TEXT(bytes_of(text), "1.2126596023639042e-12");
    check_canonical("[1.50,333333333.33333329]", "[1.5,333333333.3333333]");
}

/* Whatever is written must read back as the same double; the whole range of exponents and the edges of each are tried. */
TEST(json_number_reads_back_as_the_same_double)
{
    static const uint64_t fractions[] = {0, 1, 2, 0x8000000000000, 0xFFFFFFFFFFFFF, 0x123456789ABCD, 0x999999999999A};
    for (uint64_t exponent = 0; exponent < 2047; exponent++)
        for (size_t i = 0; i < sizeof fractions / sizeof *fractions; i++) {
            uint64_t bits = exponent << 52 | fractions[i];
            double number;
            char text[32];
            memcpy(&number, &bits, sizeof number);
            CHECK(json_number_format(number, text) < 32);
            CHECK(strtod(text, NULL) == number);
            CHECK(json_number_format(-number, text) < 32);
        }
}

TEST(json_number_prefers_the_shortest_form)
{
    static const struct {
        double number;
        const char *text;
    } cases[] = {{0.1, "0.1"},
                 {1e21, "1e+21"},
                 {1e20, "100000000000000000000"},
                 {123456.789, "123456.789"},
                 {1e-6, "0.000001"},
                 {1e-7, "1e-7"},
                 {-0.0, "0"},
                 {-1.5, "-1.5"},
                 {5e-324, "5e-324"},
                 {1e23, "1e+23"},
                 {0.3, "0.3"},
                 {1e15, "1000000000000000"},
                 {999999999999999.9, "999999999999999.9"},
                 {2.5e-5, "0.000025"},
                 {0x1p-1017, "7.120236347223045e-307"},
                 {0x1p53, "9007199254740992"},
                 {19.99, "19.99"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        CHECK_INT(json_number_format(cases[i].number, text), strlen(cases[i].text));
        CHECK_TEXT(bytes_of(text), cases[i].text);
    }
}

TEST(json_canonical_keeps_the_digits_of_great_integers)
{
    check_canonical("[9007199254740993,9007199254740992,-123456789012345678901234567890,0,-0,-0.0,0e5,1E2,1.0]",
                    "[9007199254740993,9007199254740992,-123456789012345678901234567890,0,0,0,0,100,1]");
    check_canonical("9007199254740993.0", "9007199254740992");
    check_canonical("1e-999", "0");
}

TEST(json_canonical_refuses_numbers_beyond_a_double)
{
    struct buf out;
    struct why why;
    char digits[400];
    memset(digits, '9', sizeof digits);
    CHECK_INT(canonical(BYTES("[1e309]"), &out, &why), INVALID);
    buf_release(&out);
    CHECK_INT(canonical((struct bytes){digits, 400}, &out, &why), INVALID);
    buf_release(&out);
    CHECK_INT(canonical((struct bytes){digits, 308}, &out, &why), OK);
    CHECK_INT(out.len, 308);
    buf_release(&out);
}

TEST(json_canonical_orders_names_by_utf16_units)
{
    check_canonical(
        "{\"\\uFFFF\":1,\"\\uD83D\\uDE02\":2,\"\\uE000\":3,\"\\uD7FF\":4,\"\\uDBFF\\uDFFF\":5,\"a\":6,\"\":7,\"aa\":8}",
        "{\"\":7,\"a\":6,\"aa\":8,\"\xed\x9f\xbf\":4,\"\xf0\x9f\x98\x82\":2,\"\xf4\x8f\xbf\xbf\":5,\"\xee\x80\x80\":3,"
        "\"\xef\xbf\xbf\":1}");
}

TEST(json_canonical_sorts_great_objects_too)
{
    struct buf source, out;
    buf_init(&source, 1 << 20);
    struct json_out writer = json_out_to(&source);
    json_open(&writer, '{');
    for (int i = 0; i < 1000; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%04d", i * 7919 % 1000);
        json_name(&writer, name);
        json_i64(&writer, i * 7919 % 1000);
    }
    json_close(&writer, '}');
    CHECK_INT(canonical(buf_bytes(&source), &out, NULL), OK);
    CHECK(bytes_starts(buf_bytes(&out), BYTES("{\"k0000\":0,\"k0001\":1,\"k0002\":2,")));
    CHECK_INT(out.len, source.len);
    struct buf again;
    CHECK_INT(canonical(buf_bytes(&out), &again, NULL), OK);
    CHECK(bytes_eq(buf_bytes(&out), buf_bytes(&again)));
    buf_release(&source);
    buf_release(&out);
    buf_release(&again);
}

TEST(json_canonical_says_full_when_the_output_or_the_scratch_is_too_small)
{
    struct arena arena, none;
    struct json json;
    struct buf out;
    arena_init(&arena, 1 << 16);
    arena_init(&none, 0);
    buf_init(&out, 10);
    CHECK_INT(json_parse(BYTES("{\"a\":\"0123456789\"}"), NULL, &arena, &json, NULL), OK);
    CHECK_INT(json_canonical(&json, &arena, &out, NULL), FULL);
    buf_clear(&out);
    CHECK_INT(json_canonical(&json, &none, &out, NULL), FULL);
    arena_release(&arena);
    buf_release(&out);
}
