#include "run/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/print.h"

enum { FILES_MAX = 100, FILE_SIZE_MAX = 4 << 20, DIR_SIZE = 3072 };

/* ---- the text of a file ---- */

static struct bytes full_path(const struct way *way, char storage[PATH_MAX])
{
    return way->data != NULL && realpath(way->data, storage) != NULL ? bytes_of(storage) : BYTES_NONE;
}

void spool_write(const struct way *way, const struct way_say *say, struct buf *buf)
{
    char storage[PATH_MAX];
    struct json_out out = json_out_to(buf);
    json_open(&out, '{');
    json_name(&out, "url");
    json_cstr(&out, cli_text(way->cli, "--url"));
    json_name(&out, "data");
    json_text(&out, full_path(way, storage));
    json_name(&out, "direct");
    json_bool(&out, say->direct);
    json_name(&out, "say");
    json_cstr(&out, ledger_op_names[say->op]);
    json_name(&out, "intent");
    json_cstr(&out, say->intent);
    json_name(&out, "fence");
    json_i64(&out, say->fence);
    json_name(&out, "effect_unknown");
    json_bool(&out, say->effect_unknown);
    json_name(&out, "error");
    json_text(&out, say->error);
    json_name(&out, "result");
    json_raw(&out, say->result.at != NULL ? say->result : BYTES("null"));
    json_close(&out, '}');
}

struct spooled {
    struct bytes url, data, say, intent, error;
    int64_t fence;
    bool direct, effect_unknown;
    const struct json *result;
};

static const struct json_field fields[] = {
    {"url", JSON_FIELD_TEXT, offsetof(struct spooled, url), true, 0, 0, NULL},
    {"data", JSON_FIELD_TEXT, offsetof(struct spooled, data), false, 0, 0, NULL},
    {"direct", JSON_FIELD_BOOL, offsetof(struct spooled, direct), true, 0, 0, NULL},
    {"say", JSON_FIELD_TEXT, offsetof(struct spooled, say), true, 0, 0, NULL},
    {"intent", JSON_FIELD_TEXT, offsetof(struct spooled, intent), true, 1, 31, NULL},
    {"fence", JSON_FIELD_INT, offsetof(struct spooled, fence), true, 0, INT64_MAX, NULL},
    {"effect_unknown", JSON_FIELD_BOOL, offsetof(struct spooled, effect_unknown), true, 0, 0, NULL},
    {"error", JSON_FIELD_TEXT, offsetof(struct spooled, error), false, 0, 0, NULL},
    {"result", JSON_FIELD_VALUE, offsetof(struct spooled, result), false, 0, 0, NULL},
};

bool spool_read(const struct way *way, struct bytes text, struct way_say *ret_say)
{
    struct json json;
    struct spooled found = {0};
    struct why why;
    char storage[PATH_MAX];
    const struct json_limits limits = {.depth_max = 128, .members_max = 100000, .text_max = FILE_SIZE_MAX};
    if (json_parse(text, &limits, &way->cli->arena, &json, &why) != OK ||
        json_read(&json, fields, sizeof fields / sizeof *fields, &found, NULL, &why) != OK)
        return false;
    struct bytes data = full_path(way, storage);
    bool same_data = data.at != NULL && found.data.at != NULL && bytes_eq(found.data, data);
    if (!bytes_is(found.url, cli_text(way->cli, "--url")) && !same_data)
        return false;
    bool confirm = bytes_is(found.say, ledger_op_names[OP_CONFIRM]);
    if (!confirm && !bytes_is(found.say, ledger_op_names[OP_FAIL]))
        return false;
    *ret_say = (struct way_say){
        .op = confirm ? OP_CONFIRM : OP_FAIL,
        .fence = found.fence,
        .direct = found.direct,
        .effect_unknown = found.effect_unknown,
        .error = found.error,
        .result = found.result != NULL ? found.result->raw : BYTES("null"),
    };
    snprintf(ret_say->intent, sizeof ret_say->intent, "%.*s", BYTES_ARG(found.intent));
    return true;
}

/* ---- files ---- */

static bool find_dir(char ret_dir[DIR_SIZE])
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state != NULL && state[0] == '/')
        return snprintf(ret_dir, DIR_SIZE, "%s/semel/spool", state) < DIR_SIZE;
    if (home == NULL || home[0] != '/') {
        const struct passwd *user = getpwuid(getuid());
        home = user != NULL ? user->pw_dir : NULL;
    }
    return home != NULL && snprintf(ret_dir, DIR_SIZE, "%s/.local/state/semel/spool", home) < DIR_SIZE;
}

static bool make_dirs(char *dir)
{
    for (char *at = dir + 1; *at != '\0'; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        bool made = mkdir(dir, 0700) == 0 || errno == EEXIST;
        *at = '/';
        if (!made)
            return false;
    }
    return mkdir(dir, 0700) == 0 || errno == EEXIST;
}

static bool sync_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return synced;
}

static bool write_file(const char *path, struct bytes text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    size_t at = 0;
    for (ssize_t put = 0; at < text.len && put >= 0; at += put > 0 ? (size_t)put : 0)
        put = write(fd, text.at + at, text.len - at);
    bool written = at == text.len && fsync(fd) == 0;
    close(fd);
    return written;
}

enum status spool_keep(const struct way *way, const struct way_say *say, char ret_path[4096], struct why *why)
{
    char dir[DIR_SIZE], making[4096];
    struct buf text;
    if (!find_dir(dir))
        return why_set(why, INVALID, "there is no home directory");
    snprintf(ret_path, 4096, "%s/%s.%lld.json", dir, say->intent, (long long)say->fence);
    snprintf(making, sizeof making, "%s/%s.%lld.new", dir, say->intent, (long long)say->fence);
    buf_init(&text, FILE_SIZE_MAX);
    spool_write(way, say, &text);
    bool kept =
        !text.failed && make_dirs(dir) && write_file(making, buf_bytes(&text)) && rename(making, ret_path) == 0 && sync_dir(dir);
    buf_release(&text);
    return kept ? OK : why_set(why, FULL, "%s cannot be written: %s", ret_path, strerror(errno));
}

/* ---- delivering ---- */

static void give_up(const char *path, const char *reason)
{
    char aside[4096];
    if (snprintf(aside, sizeof aside, "%s.refused", path) >= (int)sizeof aside || rename(path, aside) != 0)
        return;
    cli_note("the result of an earlier run was not taken: %s. It is kept in %s.", reason, aside);
}

/* False when there is no way to the ledger at this moment. */
static bool deliver(struct way *way, const char *path)
{
    struct bytes text;
    struct way_say say;
    enum ledger_verdict verdict = VERDICT_DONE;
    struct why why = {""};
    int code = CLI_OK;
    if (access(path, R_OK) != 0 || cli_read_file(way->cli, path, FILE_SIZE_MAX, &text) != CLI_OK || !spool_read(way, text, &say))
        return true;
    if (way_say(way, &say, &verdict, &code, &why) != OK)
        return code == CLI_DATA; /* this one is refused whoever answers; it stays where it is */
    if (verdict != VERDICT_DONE) {
        give_up(path, why.text);
    } else if (unlink(path) == 0) {
        cli_note("delivered the result of an earlier run (%s).", say.intent);
    }
    return true;
}

void spool_deliver(struct way *way)
{
    char dir[DIR_SIZE], path[4096];
    DIR *files = find_dir(dir) ? opendir(dir) : NULL;
    const struct dirent *file;
    if (files == NULL)
        return;
    for (int count = 0; count < FILES_MAX && (file = readdir(files)) != NULL;) {
        size_t len = strlen(file->d_name);
        if (len < 5 || strcmp(file->d_name + len - 5, ".json") != 0)
            continue;
        count++;
        if (snprintf(path, sizeof path, "%s/%s", dir, file->d_name) < (int)sizeof path && !deliver(way, path))
            break;
    }
    closedir(files);
}

void run_deliver(struct cli *cli)
{
    struct way way;
    way_init(&way, cli);
    spool_deliver(&way);
}
