#include "run/run.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/when.h"
#include "check.h"
#include "direct/direct.h"
#include "run/hold.h"
#include "run/output.h"
#include "run/spool.h"

/* ---- output ---- */

static struct json read_back(struct arena *arena, const struct buf *text)
{
    struct json json;
    struct why why;
    CHECK(!text->failed);
    if (json_parse(buf_bytes(text), NULL, arena, &json, &why) != OK) /* within the daemon's own limits */
        check_fail(__FILE__, __LINE__, "%s", why.text);
    return json;
}

/* All bytes of one stream, as a replay would write them. */
static struct bytes replayed(struct arena *arena, const struct ending *ending, int fd)
{
    struct buf all;
    buf_init(&all, 4 << 20);
    for (uint32_t i = 0; i < ending->output->count; i++) {
        int piece_fd;
        struct bytes bytes;
        CHECK(ending_piece(&ending->output->items[i], arena, &piece_fd, &bytes));
        if (piece_fd == fd)
            buf_add(&all, bytes);
    }
    struct bytes copy = arena_dup(arena, buf_bytes(&all));
    buf_release(&all);
    return copy;
}

TEST(output_comes_back_byte_for_byte_and_in_order)
{
    static const struct {
        int fd;
        struct bytes bytes;
    } pieces[] = {
        {1, BYTES("one\n")},           {1, BYTES("two \xc3")}, {1, BYTES("\xa4\n")},
        {2, BYTES("\xff\x00\x1b[2J")}, {1, BYTES("")},         {1, BYTES("\0")},
    };
    static const struct {
        int fd;
        struct bytes bytes;
        const char *kind;
    } want[] = {{1, BYTES("one\ntwo \xc3\xa4\n"), "text"}, {2, BYTES("\xff\x00\x1b[2J"), "base64"}, {1, BYTES("\0"), "text"}};
    struct arena arena;
    struct output output;
    struct buf text;
    struct ending ending = {
        .exit = 3, .signal = BYTES_NONE, .command = BYTES("./x"), .started_us = WHEN_SECOND, .ended_us = 2 * WHEN_SECOND};
    arena_init(&arena, 16 << 20);
    buf_init(&text, 2 << 20);
    output_init(&output, OUTPUT_KEPT_DEFAULT);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        output_add(&output, pieces[i].fd, pieces[i].bytes);
    ending_write(&ending, &output, &text);
    struct json json = read_back(&arena, &text);
    CHECK(ending_read(&json, &ending));
    CHECK_INT(ending.exit, 3);
    CHECK_INT(ending.started_us, WHEN_SECOND);
    CHECK_TEXT(ending.command, "./x");
    CHECK(!ending.truncated && ending.signal.at == NULL);
    CHECK_INT(ending.output->count, sizeof want / sizeof *want);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        int fd;
        struct bytes bytes;
        CHECK(json_get(&ending.output->items[i], bytes_of(want[i].kind)) != NULL);
        CHECK(ending_piece(&ending.output->items[i], &arena, &fd, &bytes));
        CHECK_INT(fd, want[i].fd);
        CHECK(bytes_eq(bytes, want[i].bytes));
    }
    output_release(&output);
    buf_release(&text);
    arena_release(&arena);
}

TEST(every_length_of_binary_output_comes_back)
{
    struct arena arena;
    char bytes[256];
    arena_init(&arena, 64 << 20);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(255 - i);
    for (size_t len = 1; len <= sizeof bytes; len++) {
        struct output output;
        struct buf text;
        struct ending ending = {0};
        buf_init(&text, 1 << 20);
        output_init(&output, OUTPUT_KEPT_DEFAULT);
        output_add(&output, 2, (struct bytes){bytes, len});
        ending_write(&ending, &output, &text);
        struct json json = read_back(&arena, &text);
        CHECK(ending_read(&json, &ending));
        CHECK(bytes_eq(replayed(&arena, &ending, 2), (struct bytes){bytes, len}));
        output_release(&output);
        buf_release(&text);
    }
    arena_release(&arena);
}

TEST(output_over_the_limit_is_cut_between_characters_and_marked)
{
    struct arena arena;
    struct output output;
    struct buf text;
    struct ending ending = {0};
    arena_init(&arena, 16 << 20);
    buf_init(&text, 1 << 20);
    output_init(&output, 10);
    output_add(&output, 1, BYTES("12345678"));
    output_add(&output, 2, BYTES("9\xe2\x82\xac")); /* the euro sign would end behind the limit */
    output_add(&output, 1, BYTES("x"));             /* would fit, but something before it is missing */
    ending_write(&ending, &output, &text);
    struct json json = read_back(&arena, &text);
    CHECK(ending_read(&json, &ending));
    CHECK(ending.truncated);
    CHECK_INT(ending.bytes, 13);
    CHECK_TEXT(replayed(&arena, &ending, 1), "12345678");
    CHECK_TEXT(replayed(&arena, &ending, 2), "9");
    output_release(&output);
    buf_release(&text);
    arena_release(&arena);
}

/* The worst that a command can write: bytes that are longest when written down, in turns on both streams. */
static void check_fits(const char *fill, size_t fill_len, bool turns)
{
    struct arena arena;
    struct output output;
    struct buf text, want[2];
    struct ending ending = {.command = BYTES("x")};
    arena_init(&arena, 64 << 20);
    buf_init(&text, 2 << 20);
    output_init(&output, OUTPUT_KEPT_MAX);
    for (int i = 0; i < 2; i++)
        buf_init(&want[i], 2 << 20);
    for (size_t at = 0; at < OUTPUT_KEPT_MAX; at += fill_len) {
        int fd = turns && at / fill_len % 2 == 1 ? 2 : 1;
        output_add(&output, fd, (struct bytes){fill, fill_len});
        buf_add(&want[fd - 1], (struct bytes){fill, fill_len});
    }
    ending_write(&ending, &output, &text);
    CHECK(text.len < (1 << 20) - 4096); /* the daemon takes bodies of 1 MiB */
    struct json json = read_back(&arena, &text);
    CHECK(ending_read(&json, &ending));
    for (int i = 0; i < 2; i++) {
        struct bytes got = replayed(&arena, &ending, i + 1);
        CHECK(got.len <= want[i].len && memcmp(got.at, want[i].at, got.len) == 0);
        CHECK(want[i].len - got.len < fill_len || ending.truncated);
        buf_release(&want[i]);
    }
    output_release(&output);
    buf_release(&text);
    arena_release(&arena);
}

TEST(the_longest_output_that_is_kept_fits_into_one_call)
{
    check_fits("\x01", 1, false);
    check_fits("\x01", 1, true);
    check_fits("\xff", 1, true);
    check_fits("\"\n", 2, true);
    check_fits("\xff\xfe\xfd\xfc\xfb", 5, true);
    check_fits("\xf0\x9f\x98\x80", 4, false);
    check_fits("a line of a log that is like any other line of that log\n", 56, true);
}

TEST(a_result_that_a_run_did_not_write_is_told_apart)
{
    static const char *const others[] = {"null",
                                         "{}",
                                         "3",
                                         "{\"exit\":0}",
                                         "{\"exit\":\"0\",\"output\":[]}",
                                         "{\"exit\":256,\"output\":[]}",
                                         "{\"exit\":0,\"output\":{}}",
                                         "{\"exit\":0,\"output\":[],\"bytes\":-1}"};
    static const char *const damaged[] = {"{}",
                                          "{\"fd\":1}",
                                          "{\"fd\":3,\"text\":\"x\"}",
                                          "{\"fd\":1,\"base64\":\"a\"}",
                                          "{\"fd\":1,\"base64\":\"a===\"}",
                                          "{\"fd\":1,\"base64\":\"====\"}",
                                          "{\"fd\":1,\"base64\":\"aa a\"}",
                                          "{\"fd\":1,\"text\":\"\",\"base64\":\"\"}"};
    struct arena arena;
    struct json json;
    struct why why;
    struct ending ending;
    int fd;
    struct bytes bytes;
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CHECK(json_parse(bytes_of(others[i]), NULL, &arena, &json, &why) == OK);
        CHECK(!ending_read(&json, &ending));
    }
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        CHECK(json_parse(bytes_of(damaged[i]), NULL, &arena, &json, &why) == OK);
        if (ending_piece(&json, &arena, &fd, &bytes))
            check_fail(__FILE__, __LINE__, "%s is taken", damaged[i]);
    }
    arena_release(&arena);
}

TEST(sizes_are_read_with_their_units)
{
    static const struct {
        const char *text;
        int64_t size; /* -1: refused */
    } rows[] = {{"0", 0},        {"100", 100},      {"64K", 65536}, {"64k", 65536}, {"64KiB", 65536},
                {"1M", 1048576}, {"1MiB", 1048576}, {"7B", 7},      {"", -1},       {"K", -1},
                {"-1", -1},      {"1.5K", -1},      {"1 K", -1},    {"1G", -1},     {"99999999999999999999", -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t size = 0;
        bool right = size_parse(bytes_of(rows[i].text), &size);
        if (right != (rows[i].size >= 0) || (right && size != (uint64_t)rows[i].size))
            check_fail(__FILE__, __LINE__, "\"%s\" is %d, %llu", rows[i].text, right, (unsigned long long)size);
    }
}

/* ---- the key ---- */

TEST(a_key_is_taken_as_it_is_or_with_its_time_parts)
{
    static const struct {
        const char *text, *zone, *key; /* NULL: refused */
    } rows[] = {
        {"digest:2026-11-16", "UTC", "digest:2026-11-16"},
        {"  spaces  and %41 \xc3\xa4", "nowhere", "  spaces  and %41 \xc3\xa4"},
        {"digest:{day}", "UTC", "digest:2026-11-15"},
        {"digest:{day}", "Europe/Paris", "digest:2026-11-16"},
        {"{today}/{hour}/{week}/{window:15m}", "UTC", "2026-11-15/2026-11-15T23/2026-W46/2026-11-15T23:15Z"},
        {"{{a}}:{day}", "UTC", "{a}:2026-11-15"},
        {"{{day}}", "UTC", NULL},
        {"digest:{date}", "UTC", NULL},
        {"digest:{now}", "UTC", NULL},
        {"digest:{hash}", "UTC", NULL},
        {"digest:{", "UTC", NULL},
        {"digest:{day}", "Europe/Pariss", NULL},
        {"", "UTC", NULL},
        {"\xff", "UTC", NULL},
    };
    int64_t now_us = 0;
    struct cli cli = {0};
    hash_setup();
    arena_init(&cli.arena, 1 << 20);
    CHECK(when_parse(BYTES("2026-11-15T23:22:32Z"), &now_us));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bytes key;
        int code = run_key(&cli, rows[i].text, rows[i].zone, now_us, &key);
        if ((code == CLI_OK) != (rows[i].key != NULL))
            check_fail(__FILE__, __LINE__, "\"%s\" gives %d", rows[i].text, code);
        CHECK(code == CLI_OK || code == CLI_USAGE);
        if (rows[i].key != NULL)
            CHECK_TEXT(key, rows[i].key);
    }
    arena_release(&cli.arena);
}

/* ---- who is alive ---- */

TEST(a_hold_says_whether_its_run_lives)
{
    CHECK_INT(mkdir("d", 0700), 0);
    CHECK_INT(hold_look("d", "int_1", 1), HOLD_NONE);
    int fd = hold_take("d", "int_1", 1);
    CHECK(fd >= 0);
    CHECK_INT(hold_look("d", "int_1", 1), HOLD_ALIVE);
    CHECK_INT(hold_look("d", "int_1", 1), HOLD_ALIVE);
    CHECK_INT(hold_look("d", "int_1", 2), HOLD_NONE);
    close(fd); /* as when its process dies */
    CHECK_INT(hold_look("d", "int_1", 1), HOLD_DEAD);
    hold_drop("d", "int_1", 1, -1);
    CHECK_INT(hold_look("d", "int_1", 1), HOLD_NONE);
    fd = hold_take("d", "int_1", 2);
    hold_drop("d", "int_1", 2, fd);
    CHECK_INT(hold_look("d", "int_1", 2), HOLD_NONE);
    CHECK_INT(hold_take("missing", "int_1", 1), -1);
}

TEST(the_directory_of_a_daemon_on_postgresql_is_no_ledger)
{
    CHECK(direct_is_ledger("d", true) && !direct_is_ledger("d", false));
    CHECK_INT(mkdir("d", 0700), 0);
    CHECK(direct_is_ledger("d", true) && !direct_is_ledger("d", false));
    fclose(fopen("d/admin.token", "w"));
    CHECK(!direct_is_ledger("d", true));
    fclose(fopen("d/semel.db", "w"));
    CHECK(direct_is_ledger("d", true) && direct_is_ledger("d", false));
}

/* ---- the spool ---- */

static void parse_run(struct cli *ret, const char *url)
{
    static char words[10][64];
    char *argv[11] = {0};
    const char *const line[] = {"run", "--key", "k", "--url", url, "--data", "d", "--", "true"};
    struct why why;
    for (size_t i = 0; i < sizeof line / sizeof *line; i++) {
        snprintf(words[i], sizeof words[i], "%s", line[i]);
        argv[i] = words[i];
    }
    if (cli_parse(9, argv, ret, &why) != OK)
        check_fail(__FILE__, __LINE__, "%s", why.text);
    arena_init(&ret->arena, 1 << 20);
}

TEST(what_is_spooled_is_delivered_to_the_same_ledger_only)
{
    struct cli cli, elsewhere;
    struct buf text;
    const struct way_say say = {.op = OP_CONFIRM,
                                .intent = "int_0c8zq4x7m2k1h",
                                .fence = 7,
                                .direct = true,
                                .result = BYTES("{\"exit\":0,\"output\":[]}")};
    struct way_say got;
    static char urls[2][32] = {"http://a:1", "http://b:2"};
    buf_init(&text, 1 << 20);
    CHECK_INT(mkdir("d", 0700), 0);
    parse_run(&cli, urls[0]);
    struct way way = {.cli = &cli, .data = "d"};
    spool_write(&way, &say, &text);
    CHECK(spool_read(&way, buf_bytes(&text), &got));
    CHECK_INT(got.op, OP_CONFIRM);
    CHECK_TEXT(bytes_of(got.intent), say.intent);
    CHECK_INT(got.fence, 7);
    CHECK(got.direct && !got.effect_unknown && got.error.at == NULL);
    CHECK_TEXT(got.result, "{\"exit\":0,\"output\":[]}");
    parse_run(&elsewhere, urls[1]);
    CHECK(!spool_read(&(struct way){.cli = &elsewhere}, buf_bytes(&text), &got));
    CHECK(spool_read(&(struct way){.cli = &elsewhere, .data = "./d/../d"}, buf_bytes(&text), &got));
    CHECK(!spool_read(&way, BYTES("{\"url\":\"http://a:1\"}"), &got));
    CHECK(!spool_read(&way, BYTES("not JSON"), &got));
    buf_release(&text);
    arena_release(&cli.arena);
    arena_release(&elsewhere.arena);
}

TEST(a_spooled_file_is_for_its_owner_only)
{
    struct cli cli;
    struct why why;
    struct stat found;
    char path[4096], home[2048];
    CHECK(getcwd(home, sizeof home) != NULL);
    setenv("XDG_STATE_HOME", home, 1);
    parse_run(&cli, "http://a:1");
    const struct way way = {.cli = &cli};
    const struct way_say say = {
        .op = OP_FAIL, .intent = "int_0c8zq4x7m2k1h", .fence = 1, .effect_unknown = true, .error = BYTES("exit 1")};
    CHECK(spool_keep(&way, &say, path, &why) == OK);
    CHECK(stat(path, &found) == 0 && (found.st_mode & 0777) == 0600);
    CHECK(stat("semel/spool", &found) == 0 && (found.st_mode & 0777) == 0700);
    arena_release(&cli.arena);
}
