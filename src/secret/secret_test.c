#include "secret/secret.h"

#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "house.h"

/* ---- one secret ---- */

struct sealed {
    struct house house;
    struct master_key master;
    struct secret_label label;
    struct bytes wrapped, sealed;
};

static void seal_one(struct sealed *one)
{
    struct why why = {""};
    house_open(&one->house, HOUSE_SQLITE);
    seal_setup();
    one->house.env.random(&one->house.env, one->master.key, sizeof one->master.key);
    master_key_name(&one->master);
    one->label = (struct secret_label){BYTES("main"), BYTES("smtp"), 3};
    CHECK_INT(seal_make(&one->house.env, &one->master, &one->label, BYTES("hunter2"), &one->house.arena, &one->wrapped,
                        &one->sealed, &why),
              OK);
}

static enum status open_one(struct sealed *one)
{
    struct secret_text text;
    struct why why = {""};
    enum status status = seal_open(&one->master, &one->label, one->wrapped, one->sealed, &text, &why);
    if (status == OK) {
        CHECK_TEXT(((struct bytes){text.at, text.len}), "hunter2");
        secret_text_free(&text);
    } else {
        CHECK(strstr(why.text, "hunter2") == NULL);
    }
    return status;
}

TEST(a_sealed_secret_opens_with_its_key_and_label_only)
{
    struct sealed one;
    seal_one(&one);
    CHECK_INT(open_one(&one), OK);
    const struct secret_label good = one.label;
    one.label.space = BYTES("other");
    CHECK_INT(open_one(&one), BROKEN);
    one.label = good;
    one.label.name = BYTES("smtq");
    CHECK_INT(open_one(&one), BROKEN);
    one.label = good;
    one.label.version = 2;
    CHECK_INT(open_one(&one), BROKEN);
    one.label = (struct secret_label){BYTES("mains"), BYTES("mtp"), 3}; /* the same letters, divided otherwise */
    CHECK_INT(open_one(&one), BROKEN);
    one.label = good;
    one.master.key[0] ^= 1;
    CHECK_INT(open_one(&one), BROKEN);
    one.master.key[0] ^= 1;
    one.master.id[0] ^= 1;
    CHECK_INT(open_one(&one), BROKEN);
    house_close(&one.house);
}

/* Each bit, and each shorter form. */
static void check_tampering(struct sealed *one, struct bytes *part)
{
    char copy[256];
    struct bytes good = *part;
    CHECK(good.len <= sizeof copy);
    memcpy(copy, good.at, good.len);
    *part = (struct bytes){copy, good.len};
    for (size_t bit = 0; bit < good.len * 8; bit++) {
        copy[bit / 8] ^= (char)(1 << bit % 8);
        CHECK_INT(open_one(one), BROKEN);
        copy[bit / 8] ^= (char)(1 << bit % 8);
    }
    for (size_t len = 0; len < good.len; len++) {
        part->len = len;
        CHECK_INT(open_one(one), BROKEN);
    }
    *part = good;
    CHECK_INT(open_one(one), OK);
}

TEST(no_changed_bit_of_a_sealed_secret_is_accepted)
{
    struct sealed one;
    seal_one(&one);
    check_tampering(&one, &one.sealed);
    check_tampering(&one, &one.wrapped);
    house_close(&one.house);
}

TEST(a_rewrapped_secret_opens_with_the_new_key_and_not_with_the_old_one)
{
    struct sealed one;
    struct why why = {""};
    seal_one(&one);
    struct master_key old = one.master, fresh = {.key = {1}};
    struct bytes sealed = one.sealed;
    master_key_name(&fresh);
    CHECK_INT(seal_rewrap(&one.house.env, &old, &fresh, &one.label, one.wrapped, &one.house.arena, &one.wrapped, &why), OK);
    CHECK_INT(open_one(&one), BROKEN);
    one.master = fresh;
    CHECK_INT(open_one(&one), OK);
    CHECK(one.sealed.at == sealed.at);
    CHECK_INT(seal_rewrap(&one.house.env, &old, &fresh, &one.label, one.wrapped, &one.house.arena, &one.wrapped, &why), BROKEN);
    house_close(&one.house);
}

TEST(the_same_value_is_never_sealed_to_the_same_bytes)
{
    struct sealed one;
    struct why why = {""};
    seal_one(&one);
    struct bytes wrapped = one.wrapped, sealed = one.sealed;
    CHECK_INT(
        seal_make(&one.house.env, &one.master, &one.label, BYTES("hunter2"), &one.house.arena, &one.wrapped, &one.sealed, &why),
        OK);
    CHECK(!bytes_eq(sealed, one.sealed));
    CHECK(!bytes_eq(wrapped, one.wrapped));
    house_close(&one.house);
}

/* ---- the key file ---- */

static void write_text(const char *path, const char *text, mode_t mode)
{
    unlink(path);
    FILE *file = fopen(path, "w");
    CHECK(fputs(text, file) >= 0);
    fclose(file);
    CHECK(chmod(path, mode) == 0);
}

#define KEY_A "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
#define KEY_B "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

static enum status read_keys(const char *text, mode_t mode, struct master_keys **ret_keys, struct why *why)
{
    write_text("a.key", text, mode);
    return key_file_read("a.key", ret_keys, why);
}

TEST(a_key_file_that_others_can_reach_is_refused)
{
    struct master_keys *keys = NULL;
    struct why why = {""};
    hash_setup();
    seal_setup();
    static const mode_t good[] = {0400, 0600, 0440, 0640}, bad[] = {0444, 0604, 0644, 0620, 0402, 0401, 0777};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK_INT(read_keys(KEY_A "\n", good[i], &keys, &why), OK);
        master_keys_free(keys);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_INT(read_keys(KEY_A "\n", bad[i], &keys, &why), INVALID);
        CHECK(strstr(why.text, "chmod 0400 a.key") != NULL);
    }
    CHECK_INT(key_file_read("none.key", &keys, &why), NOTHING);
    CHECK_INT(key_file_read(".", &keys, &why), INVALID);
}

TEST(a_key_file_holds_one_to_eight_keys_the_first_seals)
{
    struct master_keys *keys = NULL;
    struct why why = {""};
    hash_setup();
    seal_setup();
    CHECK_INT(read_keys("# new\n" KEY_B "  # since May\r\n\n" KEY_A "\n" KEY_B, 0400, &keys, &why), OK);
    CHECK_INT(keys->count, 2);
    CHECK_INT(keys->at[0].key[0], 1);
    CHECK(master_keys_find(keys, bytes_of(keys->at[1].id)) == &keys->at[1]);
    CHECK(master_keys_find(keys, BYTES("0000000000000000")) == NULL);
    CHECK_INT(key_file_write("b.key", keys, &why), OK);
    master_keys_free(keys);
    struct stat found;
    CHECK(stat("b.key", &found) == 0);
    CHECK_INT(found.st_mode & 07777, 0400);
    CHECK_INT(key_file_read("b.key", &keys, &why), OK);
    CHECK_INT(keys->count, 2);
    CHECK_INT(keys->at[0].key[0], 1);
    master_keys_free(keys);
    static const char *const bad[] = {"",          "\n# none\n", "AAAA\n", "not base64 at all, not even near to it, really\n",
                                      KEY_A "A\n", KEY_A KEY_A};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_INT(read_keys(bad[i], 0400, &keys, &why), INVALID);
        CHECK(strstr(why.text, "AAAA") == NULL);
    }
}

/* ---- a node ---- */

struct node {
    struct house house;
    struct secrets *secrets;
};

static void node_open(struct node *node, enum house_storage storage)
{
    house_open(&node->house, storage);
    seal_setup();
    node->secrets = NULL;
}

static enum status start_secrets(struct node *node, const char *path, bool own, struct why *why)
{
    secrets_close(node->secrets);
    node->secrets = NULL;
    TRY(secrets_open(&(struct secrets_config){&node->house.env, path, own}, &node->secrets, why));
    return secrets_refresh(node->secrets, engine_store(node->house.engine), why);
}

static void node_close(struct node *node)
{
    secrets_close(node->secrets);
    house_close(&node->house);
}

struct act {
    struct node *node;
    enum { PUT, REMOVE, REWRAP_FIRST, REWRAP_NEXT } what;
    const char *name, *value;
    int64_t version, count;
    char master[MASTER_KEY_ID_SIZE + 1];
    bool answered;
    bool no_look; /* the rows are not read again behind it */
};

static enum status act_write(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct act *act = command->user;
    struct secret_change change = {act->node->secrets, store, ledger->arena, ledger->now.wall_us};
    switch (act->what) {
    case PUT:
        return secret_put(&change, BYTES("main"), bytes_of(act->name), bytes_of(act->value), &act->version, why);
    case REMOVE:
        return secret_remove(&change, BYTES("main"), bytes_of(act->name), &act->version, why);
    case REWRAP_FIRST:
    case REWRAP_NEXT:
        break;
    }
    return secret_rewrap(&change, act->what == REWRAP_FIRST, act->master, &act->count, why);
}

static void act_done(struct engine_command *command)
{
    ((struct act *)command->user)->answered = true;
}

static enum status run_act(struct act *act, struct why *ret_why)
{
    struct house *house = &act->node->house;
    struct engine_command command = {.write = act_write, .user = act, .arena = &house->arena, .done = act_done};
    struct why why;
    engine_step(house->engine, &command);
    CHECK(act->answered);
    if (!act->no_look)
        CHECK_INT(secrets_refresh(act->node->secrets, engine_store(house->engine), &why), OK);
    if (ret_why != NULL)
        *ret_why = command.why;
    return command.status;
}

static int64_t put(struct node *node, const char *name, const char *value)
{
    struct why why = {""};
    struct act act = {.node = node, .what = PUT, .name = name, .value = value};
    if (run_act(&act, &why) != OK)
        check_fail(__FILE__, __LINE__, "%s", why.text);
    return act.version;
}

/* The value, or NULL. */
static const char *get(struct node *node, const char *reference)
{
    static char value[SECRET_VALUE_MAX + 1];
    struct secret_text text;
    struct why why = {""};
    if (secret_resolve(node->secrets, BYTES("main"), bytes_of(reference), &text, &why) != OK)
        return NULL;
    memcpy(value, text.at, text.len + 1);
    secret_text_free(&text);
    return value;
}

#define CHECK_SECRET(node, name, want) CHECK_TEXT(bytes_of(get(node, "secret:" name)), want)

static const char *key_path(enum house_storage storage)
{
    if (storage == HOUSE_POSTGRES)
        write_text("given.key", KEY_A "\n", 0400);
    return storage == HOUSE_POSTGRES ? "given.key" : "data/master.key";
}

TEST_BOTH(a_secret_is_set_used_replaced_and_removed)
{
    struct node node;
    struct why why = {""};
    node_open(&node, storage);
    CHECK_INT(start_secrets(&node, key_path(storage), storage == HOUSE_SQLITE, &why), OK);
    CHECK_INT(put(&node, "smtp", "one"), 1);
    CHECK_INT(put(&node, "crm", "other"), 1);
    CHECK_SECRET(&node, "smtp", "one");
    CHECK_INT(put(&node, "smtp", "two"), 2);
    CHECK_SECRET(&node, "smtp", "two");
    CHECK_SECRET(&node, "crm", "other");
    struct act gone = {.node = &node, .what = REMOVE, .name = "smtp"};
    CHECK_INT(run_act(&gone, NULL), OK);
    CHECK(get(&node, "secret:smtp") == NULL);
    CHECK_INT(run_act(&gone, NULL), NOTHING);
    CHECK_INT(put(&node, "smtp", "three"), 4); /* a version never means two values */
    CHECK_INT(start_secrets(&node, key_path(storage), storage == HOUSE_SQLITE, &why), OK);
    CHECK_SECRET(&node, "smtp", "three");
    node_close(&node);
}

TEST_BOTH(another_node_sees_a_change_when_it_looks_again)
{
    struct node node;
    struct secrets *other = NULL;
    struct secret_text text;
    struct why why = {""};
    node_open(&node, storage);
    CHECK_INT(start_secrets(&node, key_path(storage), storage == HOUSE_SQLITE, &why), OK);
    put(&node, "smtp", "one");
    CHECK_INT(secrets_open(&(struct secrets_config){&node.house.env, key_path(storage), false}, &other, &why), OK);
    CHECK_INT(secrets_refresh(other, engine_store(node.house.engine), &why), OK);
    put(&node, "smtp", "two");
    CHECK_INT(secrets_refresh(other, engine_store(node.house.engine), &why), OK);
    CHECK_INT(secret_resolve(other, BYTES("main"), BYTES("secret:smtp"), &text, &why), OK);
    CHECK_TEXT(((struct bytes){text.at, text.len}), "two");
    secret_text_free(&text);
    CHECK_INT(secret_resolve(other, BYTES("other"), BYTES("secret:smtp"), &text, &why), INVALID);
    secrets_close(other);
    node_close(&node);
}

TEST(without_a_key_for_postgres_nothing_is_stored)
{
    struct node node;
    struct why why = {""};
    node_open(&node, HOUSE_SQLITE);
    CHECK_INT(start_secrets(&node, NULL, false, &why), OK);
    struct act act = {.node = &node, .what = PUT, .name = "smtp", .value = "one"};
    CHECK_INT(run_act(&act, &why), INVALID);
    CHECK(strstr(why.text, "--master-key FILE") != NULL);
    CHECK_INT(start_secrets(&node, "none.key", false, &why), INVALID);
    node_close(&node);
}

TEST(a_lost_master_key_is_not_replaced_by_a_new_one)
{
    struct node node;
    struct why why = {""};
    node_open(&node, HOUSE_SQLITE);
    CHECK_INT(start_secrets(&node, "data/master.key", true, &why), OK);
    CHECK(access("data/master.key", F_OK) != 0); /* made at the first use */
    put(&node, "smtp", "one");
    CHECK(rename("data/master.key", "kept.key") == 0);
    CHECK_INT(start_secrets(&node, "data/master.key", true, &why), OK);
    CHECK_INT(secrets_without_key(node.secrets), 1);
    CHECK(get(&node, "secret:smtp") == NULL);
    struct act act = {.node = &node, .what = PUT, .name = "crm", .value = "two"};
    CHECK_INT(run_act(&act, &why), INVALID);
    CHECK(strstr(why.text, "Put it back") != NULL);
    CHECK(access("data/master.key", F_OK) != 0);
    CHECK(rename("kept.key", "data/master.key") == 0);
    CHECK_SECRET(&node, "smtp", "one"); /* found again without a restart */
    write_text("data/master.key", KEY_A "\n", 0400);
    CHECK_INT(start_secrets(&node, "data/master.key", true, &why), OK);
    CHECK(get(&node, "secret:smtp") == NULL); /* a wrong key opens nothing */
    act.what = REMOVE;
    act.name = "smtp";
    CHECK_INT(run_act(&act, &why), OK); /* what cannot be opened can still be removed */
    node_close(&node);
}

/* ---- another master key ---- */

static void rewrap_all(struct node *node, int64_t want)
{
    struct act act = {.node = node, .what = REWRAP_FIRST};
    struct why why = {""};
    int64_t total = 0;
    enum status status;
    while ((status = run_act(&act, &why)) == OK) {
        total += act.count;
        act.what = REWRAP_NEXT;
    }
    if (status != NOTHING)
        check_fail(__FILE__, __LINE__, "%s", why.text);
    CHECK_INT(total, want);
}

static size_t keys_in(const char *path)
{
    struct master_keys *keys = NULL;
    struct why why = {""};
    CHECK_INT(key_file_read(path, &keys, &why), OK);
    size_t count = keys->count;
    master_keys_free(keys);
    return count;
}

TEST(a_rewrap_changes_the_key_and_keeps_every_value)
{
    struct node node;
    struct why why = {""};
    char name[16];
    node_open(&node, HOUSE_SQLITE);
    CHECK_INT(start_secrets(&node, "data/master.key", true, &why), OK);
    for (int i = 0; i < SECRET_REWRAP_MAX + 10; i++) {
        snprintf(name, sizeof name, "s%d", i);
        put(&node, name, name);
    }
    struct bytes before = check_read_file("data/master.key");
    rewrap_all(&node, SECRET_REWRAP_MAX + 10);
    struct bytes after = check_read_file("data/master.key");
    CHECK(!bytes_eq(before, after));
    free((char *)after.at);
    CHECK_INT(keys_in("data/master.key"), 1);
    CHECK_SECRET(&node, "s7", "s7");
    CHECK_INT(start_secrets(&node, "data/master.key", true, &why), OK);
    CHECK_SECRET(&node, "s265", "s265");
    CHECK_INT(secrets_without_key(node.secrets), 0);
    write_text("data/master.key", before.at, 0400);
    free((char *)before.at);
    CHECK_INT(start_secrets(&node, "data/master.key", true, &why), OK);
    CHECK(get(&node, "secret:s7") == NULL); /* the old key opens nothing any more */
    node_close(&node);
}

TEST(a_secret_opens_at_every_moment_of_a_rewrap_and_the_old_key_is_forgotten_behind_it)
{
    struct node node;
    struct why why = {""};
    node_open(&node, HOUSE_SQLITE);
    CHECK_INT(start_secrets(&node, "data/master.key", true, &why), OK);
    put(&node, "a", "one");
    struct act act = {.node = &node, .what = REWRAP_FIRST, .no_look = true};
    CHECK_INT(run_act(&act, &why), OK);
    CHECK_SECRET(&node, "a", "one");
    act.what = REWRAP_NEXT;
    CHECK_INT(run_act(&act, &why), NOTHING); /* the file has only the new key now, the row in memory still needs the old one */
    CHECK_SECRET(&node, "a", "one");
    CHECK_INT(secrets_refresh(node.secrets, engine_store(node.house.engine), &why), OK);
    CHECK_SECRET(&node, "a", "one");
    struct bytes before = check_read_file("data/master.key");
    rewrap_all(&node, 1); /* a new rewrap, not the rest of the first */
    struct bytes after = check_read_file("data/master.key");
    CHECK(!bytes_eq(before, after));
    free((char *)before.at);
    free((char *)after.at);
    node_close(&node);
}

/* The storage fails at each of its operations in turn; afterwards everything opens, and a second rewrap ends what the first began. */
TEST_BOTH(a_rewrap_that_is_cut_off_anywhere_loses_nothing)
{
    struct node node;
    struct why why = {""};
    node_open(&node, storage);
    const char *path = key_path(storage);
    CHECK_INT(start_secrets(&node, path, storage == HOUSE_SQLITE, &why), OK);
    put(&node, "a", "one");
    put(&node, "b", "two");
    bool failed = true;
    for (int64_t at = 1; failed; at++) {
        if (storage == HOUSE_POSTGRES)
            write_text(path, at % 2 == 0 ? KEY_A "\n" KEY_B "\n" : KEY_B "\n" KEY_A "\n", 0400);
        node.house.fault = (struct store_fault){.countdown = at, .status = FULL};
        struct act act = {.node = &node, .what = REWRAP_FIRST};
        failed = run_act(&act, NULL) != OK;
        node.house.fault = (struct store_fault){0};
        house_reopen(&node.house);
        CHECK_INT(start_secrets(&node, path, storage == HOUSE_SQLITE, &why), OK);
        CHECK_SECRET(&node, "a", "one");
        CHECK_SECRET(&node, "b", "two");
        CHECK(at < 100);
    }
    struct act act = {.node = &node, .what = REWRAP_FIRST};
    while (run_act(&act, &why) == OK)
        act.what = REWRAP_NEXT;
    CHECK_SECRET(&node, "a", "one");
    if (storage == HOUSE_SQLITE)
        CHECK_INT(keys_in(path), 1);
    node_close(&node);
}

TEST(a_rewrap_without_the_old_key_is_refused_and_changes_nothing)
{
    struct node node;
    struct why why = {""};
    node_open(&node, HOUSE_SQLITE);
    write_text("given.key", KEY_A "\n", 0400);
    CHECK_INT(start_secrets(&node, "given.key", false, &why), OK);
    put(&node, "a", "one");
    write_text("given.key", KEY_B "\n", 0400);
    struct act act = {.node = &node, .what = REWRAP_FIRST};
    CHECK_INT(run_act(&act, &why), INVALID);
    CHECK(strstr(why.text, "is not in given.key") != NULL);
    write_text("given.key", KEY_B "\n" KEY_A "\n", 0400);
    rewrap_all(&node, 1);
    write_text("given.key", KEY_B "\n", 0400);
    CHECK_INT(start_secrets(&node, "given.key", false, &why), OK);
    CHECK_SECRET(&node, "a", "one");
    node_close(&node);
}

/* ---- references ---- */

TEST(a_reference_is_env_file_or_secret_and_nothing_else)
{
    static const char *const good[] = {"env:A",       "env:SMTP_PASSWORD", "env:_x1", "file:/run/secrets/x",
                                       "secret:smtp", "secret:a.b-c_9"};
    static const char *const bad[] = {
        "",        "env:",       "env:1A",   "env:A B",   "env:A=B",   "file:",    "file:x",  "file:/",
        "secret:", "secret:a/b", "secret:.", "secret:..", "secret:-a", "SECRET:a", "hunter2", "secret:\xc3\xa9"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK(secret_is_reference(bytes_of(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!secret_is_reference(bytes_of(bad[i])));
}

TEST(values_come_from_the_environment_and_from_files_too)
{
    struct node node;
    struct why why = {""};
    struct secret_text text;
    char cwd[1024], reference[1100], large[SECRET_VALUE_MAX + 3];
    node_open(&node, HOUSE_SQLITE);
    CHECK_INT(start_secrets(&node, "data/master.key", true, &why), OK);
    CHECK(setenv("SEMEL_TEST_SECRET", "from env\n", 1) == 0);
    CHECK_TEXT(bytes_of(get(&node, "env:SEMEL_TEST_SECRET")), "from env\n");
    CHECK(get(&node, "env:SEMEL_TEST_NONE") == NULL);
    CHECK(getcwd(cwd, sizeof cwd) != NULL);
    snprintf(reference, sizeof reference, "file:%s/value", cwd);
    write_text("value", "line one\nline two\n\n", 0400);
    CHECK_TEXT(bytes_of(get(&node, reference)), "line one\nline two\n"); /* one newline goes */
    write_text("value", "\n", 0400);
    CHECK(get(&node, reference) == NULL);
    memset(large, 'x', sizeof large);
    large[SECRET_VALUE_MAX] = '\n';
    large[SECRET_VALUE_MAX + 1] = '\0';
    write_text("value", large, 0400);
    CHECK_INT(strlen(get(&node, reference)), SECRET_VALUE_MAX);
    large[SECRET_VALUE_MAX] = 'x';
    write_text("value", large, 0400);
    CHECK_INT(secret_resolve(node.secrets, BYTES("main"), bytes_of(reference), &text, &why), INVALID);
    CHECK(strstr(why.text, "xx") == NULL);
    node_close(&node);
}
