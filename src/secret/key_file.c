#include "secret/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINE_SIZE = sodium_base64_ENCODED_LEN(MASTER_KEY_SIZE, sodium_base64_VARIANT_ORIGINAL), /* with its NUL, or its newline */
    FILE_SIZE_MAX = 4096,
};

struct master_keys *master_keys_new(void)
{
    struct master_keys *keys = sodium_malloc(sizeof *keys);
    if (keys != NULL)
        *keys = (struct master_keys){0};
    return keys;
}

void master_keys_free(struct master_keys *keys)
{
    sodium_free(keys);
}

const struct master_key *master_keys_find(const struct master_keys *keys, struct bytes id)
{
    for (size_t i = 0; keys != NULL && i < keys->count; i++)
        if (bytes_is(id, keys->at[i].id))
            return &keys->at[i];
    return NULL;
}

bool master_keys_add(struct master_keys *keys, struct env *env)
{
    if (keys->count == MASTER_KEYS_MAX)
        return false;
    memmove(&keys->at[1], &keys->at[0], keys->count * sizeof keys->at[0]);
    keys->count++;
    env->random(env, keys->at[0].key, MASTER_KEY_SIZE);
    master_key_name(&keys->at[0]);
    return true;
}

/* ---- reading ---- */

static enum status check_owner(const char *path, const struct stat *found, struct why *why)
{
    if (!S_ISREG(found->st_mode))
        return why_set(why, INVALID, "the master key %s is not a file", path);
    if ((found->st_mode & 027) != 0)
        return why_set(why, INVALID, "the master key %s can be %s by others (mode %04o). Make it yours alone: chmod 0400 %s",
                       path, (found->st_mode & 022) != 0 ? "written" : "read", found->st_mode & 07777, path);
    if (found->st_uid != geteuid() && found->st_uid != 0)
        return why_set(
            why, INVALID,
            "the master key %s belongs to user %u, who could exchange it. Give it to the user that runs semel, or to root", path,
            (unsigned)found->st_uid);
    if (found->st_size > FILE_SIZE_MAX)
        return why_set(why, INVALID, "%s is too long to be a master key", path);
    return OK;
}

static enum status take_line(const char *path, struct bytes line, struct master_keys *keys, struct why *why)
{
    size_t len = 0;
    struct bytes text = bytes_trim(bytes_cut(&line, '#'));
    if (text.len > 0 && text.at[text.len - 1] == '\r')
        text.len--;
    if (text.len == 0)
        return OK;
    if (keys->count == MASTER_KEYS_MAX)
        return why_set(why, INVALID, "%s holds more than %d master keys", path, MASTER_KEYS_MAX);
    struct master_key *key = &keys->at[keys->count];
    if (sodium_base642bin(key->key, MASTER_KEY_SIZE, text.at, text.len, NULL, &len, NULL, sodium_base64_VARIANT_ORIGINAL) != 0 ||
        len != MASTER_KEY_SIZE)
        return why_set(why, INVALID, "line %zu of keys in %s is not base64 of 32 bytes. Make one with: openssl rand -base64 32",
                       keys->count + 1, path);
    master_key_name(key);
    if (master_keys_find(keys, bytes_of(key->id)) == NULL) /* a key that stands there twice is one key */
        keys->count++;
    return OK;
}

static enum status take_text(const char *path, struct bytes text, struct master_keys *keys, struct why *why)
{
    while (text.len > 0)
        TRY(take_line(path, bytes_cut(&text, '\n'), keys, why));
    return keys->count > 0 ? OK : why_set(why, INVALID, "%s holds no master key. Make one with: openssl rand -base64 32", path);
}

static enum status read_open(const char *path, int fd, struct secret_text *text, struct why *why)
{
    struct stat found;
    if (fstat(fd, &found) != 0)
        return why_set(why, INVALID, "the master key %s cannot be read: %s", path, strerror(errno));
    TRY(check_owner(path, &found, why));
    if (!secret_text_make(FILE_SIZE_MAX + 1, text))
        return why_set(why, FULL, "there is no memory for the master key");
    size_t len = 0;
    ssize_t got = 0;
    while (len < text->len && (got = read(fd, text->at + len, text->len - len)) > 0)
        len += (size_t)got;
    text->len = len;
    return got < 0 ? why_set(why, INVALID, "the master key %s cannot be read: %s", path, strerror(errno)) : OK;
}

enum status key_file_read(const char *path, struct master_keys **ret_keys, struct why *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT)
        return NOTHING;
    if (fd < 0)
        return why_set(why, INVALID, "the master key %s cannot be read: %s", path, strerror(errno));
    struct secret_text text = {NULL, 0};
    struct master_keys *keys = master_keys_new();
    enum status status =
        keys != NULL ? read_open(path, fd, &text, why) : why_set(why, FULL, "there is no memory for the master key");
    close(fd);
    if (status == OK)
        status = take_text(path, (struct bytes){text.at, text.len}, keys, why);
    secret_text_free(&text);
    if (status == OK)
        *ret_keys = keys;
    else
        master_keys_free(keys);
    return status;
}

/* ---- writing ---- */

static bool write_keys(int fd, const struct master_keys *keys)
{
    struct secret_text text;
    size_t size = keys->count * LINE_SIZE;
    if (!secret_text_make(size, &text))
        return false;
    for (size_t i = 0; i < keys->count; i++) {
        char *line = text.at + i * LINE_SIZE;
        sodium_bin2base64(line, LINE_SIZE, keys->at[i].key, MASTER_KEY_SIZE, sodium_base64_VARIANT_ORIGINAL);
        line[LINE_SIZE - 1] = '\n';
    }
    bool written = write(fd, text.at, size) == (ssize_t)size && fsync(fd) == 0;
    secret_text_free(&text);
    return written;
}

static bool sync_folder(const char *path)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return synced;
}

enum status key_file_write(const char *path, const struct master_keys *keys, struct why *why)
{
    char fresh[PATH_MAX];
    if ((size_t)snprintf(fresh, sizeof fresh, "%s.new", path) >= sizeof fresh)
        return why_set(why, INVALID, "the path of the master key is too long");
    unlink(fresh); /* left by a crash */
    int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
    bool written = fd >= 0 && write_keys(fd, keys);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (written && rename(fresh, path) == 0 && sync_folder(path))
        return OK;
    error = written ? errno : error;
    unlink(fresh);
    return why_set(why, INVALID, "the master key %s cannot be written: %s", path, strerror(error));
}
