/* The shared vectors: read when they are there. A row that is known to differ is named with its reason, and must differ. */
#include "match/match.h"

#include "check.h"

enum { COLUMNS_MAX = 16 };

struct table {
    struct arena arena; /* for the cells */
    struct bytes file, rest;
};

/* One row of a CSV file: quotes are doubled inside quotes. Returns the number of cells, 0 at the end. */
static size_t next_row(struct table *table, struct bytes cells[COLUMNS_MAX])
{
    const char *at = table->rest.at, *end = at + table->rest.len;
    size_t count = 0;
    while (at < end && count < COLUMNS_MAX) {
        char *cell = arena_alloc(&table->arena, (size_t)(end - at) + 1);
        size_t len = 0;
        bool quoted = *at == '"';
        CHECK(cell != NULL);
        for (at += quoted; at < end; at++) {
            if (quoted && *at == '"') {
                at++;
                quoted = at < end && *at == '"';
                if (!quoted)
                    break;
            } else if (!quoted && (*at == ',' || *at == '\n' || *at == '\r')) {
                break;
            }
            cell[len++] = *at;
        }
        cells[count++] = (struct bytes){cell, len};
        if (at < end && *at == ',') {
            at++;
            if (at == end || *at == '\n')
                cells[count++] = BYTES("");
            if (at < end && *at != '\n')
                continue;
        }
        while (at < end && (*at == '\r' || *at == '\n'))
            at++;
        break;
    }
    table->rest = (struct bytes){at, (size_t)(end - at)};
    return count;
}

static void open_table(const char *name, struct table *ret)
{
    char path[4096];
    const char *dir = check_data_dir();
    if (dir == NULL)
        SKIP("SEMEL_TEST_DATA is not set");
    snprintf(path, sizeof path, "%s/vectors/%s", dir, name);
    ret->file = ret->rest = check_read_file(path);
    arena_init(&ret->arena, (size_t)256 << 20);
    struct bytes head[COLUMNS_MAX];
    CHECK(next_row(ret, head) > 0);
}

static void close_table(struct table *table)
{
    arena_release(&table->arena);
    free((char *)table->file.at); /* ours */
}

TEST(shared_e_mail_vectors_hold)
{
    struct table table;
    struct bytes cells[COLUMNS_MAX];
    size_t rows = 0;
    open_table("email.csv", &table);
    while (next_row(&table, cells) >= 4) {
        struct match_email email;
        struct why why;
        CHECK_INT(match_email_make(cells[0], &table.arena, &email, &why), OK);
        if (!bytes_eq(email.send_to, cells[1]) || !bytes_eq(email.key, cells[2]))
            check_fail(__FILE__, __LINE__, "%.*s: send to \"%.*s\", key \"%.*s\"", BYTES_ARG(cells[0]), BYTES_ARG(email.send_to),
                       BYTES_ARG(email.key));
        bool weak_only = bytes_is(cells[3], "yahoo") && !bytes_eq(email.exact, email.key);
        CHECK_INT(email.uncertain, weak_only);
        CHECK_INT(email.class == MATCH_EMAIL_ROLE, bytes_is(cells[3], "role") && cells[2].len > 0);
        CHECK_INT(email.disposable, bytes_is(cells[3], "disposable"));
        rows++;
    }
    CHECK(rows >= 38);
    close_table(&table);
}

/* Spellings of old that libphonenumber 9 calls wrong; here they are read as the number that they mean. */
static bool is_old_spelling(struct bytes raw)
{
    return bytes_is(raw, "+52 1 55 1234 5678") || bytes_is(raw, "+55 11 8765-4321");
}

TEST(shared_phone_vectors_hold)
{
    struct table table;
    struct bytes cells[COLUMNS_MAX];
    size_t rows = 0;
    open_table("phone_hand.csv", &table);
    while (next_row(&table, cells) >= 6) {
        struct match_phone phone;
        struct why why;
        CHECK_INT(match_phone_make(cells[0], cells[1], &table.arena, &phone, &why), OK);
        bool good =
            bytes_eq(phone.e164, cells[2]) && bytes_eq(phone.extension, cells[3]) && phone.valid == bytes_is(cells[5], "1");
        if (good == is_old_spelling(cells[0]))
            check_fail(__FILE__, __LINE__, "%.*s (%.*s): \"%.*s\", extension \"%.*s\", valid %d", BYTES_ARG(cells[0]),
                       BYTES_ARG(cells[1]), BYTES_ARG(phone.e164), BYTES_ARG(phone.extension), phone.valid);
        CHECK(phone.valid == (phone.key.at != NULL) || phone.possible);
        rows++;
    }
    CHECK(rows >= 40);
    close_table(&table);
}

/* Every example number of libphonenumber 9.0.35. The installed library is older: it does not know a few ranges. Reading is never wrong. */
TEST(shared_example_phones_are_read)
{
    struct table table;
    struct bytes cells[COLUMNS_MAX];
    size_t rows = 0, unknown = 0;
    open_table("phone_examples.csv", &table);
    while (next_row(&table, cells) >= 4) {
        struct match_phone phone;
        struct why why;
        CHECK_INT(match_phone_make(cells[0], cells[1], &table.arena, &phone, &why), OK);
        if (!bytes_eq(phone.e164, cells[2]) && phone.valid)
            printf("    read otherwise: %.*s (%.*s) as %.*s\n", BYTES_ARG(cells[0]), BYTES_ARG(cells[1]), BYTES_ARG(phone.e164));
        if (bytes_is(cells[3], "1") && !phone.valid) {
            printf("    not known: %.*s (%.*s, %.*s)\n", BYTES_ARG(cells[0]), BYTES_ARG(cells[1]), BYTES_ARG(cells[4]));
            unknown++;
        }
        rows++;
    }
    CHECK(rows >= 1100);
    if (unknown * 100 > rows * 3)
        check_fail(__FILE__, __LINE__, "%zu of %zu example numbers are not known", unknown, rows);
    close_table(&table);
}

static struct match_person person_of(const struct bytes *cells, struct arena *arena)
{
    struct match_person person;
    struct why why;
    const struct match_input input = {.name = cells[0],
                                      .emails = &cells[1],
                                      .email_count = 1,
                                      .phones = &cells[2],
                                      .phone_count = 1,
                                      .company = cells[3],
                                      .region = cells[4]};
    CHECK_INT(match_person_make(&input, arena, &person, &why), OK);
    return person;
}

TEST(shared_decision_pairs_are_decided_as_wanted)
{
    struct table table;
    struct bytes cells[COLUMNS_MAX];
    const struct match_world world = {.leads = 100000};
    size_t rows = 0, wrong = 0;
    open_table("decision_pairs.csv", &table);
    while (next_row(&table, cells) >= 12) {
        struct match_person a = person_of(cells + 2, &table.arena), b = person_of(cells + 7, &table.arena);
        struct match_result there, back;
        match_compare(&a, &b, &world, &there);
        match_compare(&b, &a, &world, &back);
        struct bytes zone = bytes_of(there.zone == MATCH_NEW ? "different" : match_zone_names[there.zone]);
        if (!bytes_eq(zone, cells[0])) {
            printf("    %.*s: %.*s, want %.*s (%s, %lld)\n", BYTES_ARG(cells[1]), BYTES_ARG(zone), BYTES_ARG(cells[0]),
                   there.rule, (long long)there.score_mb);
            wrong++;
        }
        CHECK_INT(back.zone, there.zone);
        CHECK_INT(back.score_mb, there.score_mb);
        rows++;
    }
    CHECK(rows >= 38);
    CHECK_INT(wrong, 0);
    close_table(&table);
}
