/* From a reference to a value. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "secret/secret_own.h"

static const struct bytes env_prefix = {"env:", 4}, file_prefix = {"file:", 5}, secret_prefix = {"secret:", 7};

static bool is_variable(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool digit = c >= '0' && c <= '9';
        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || (digit && i > 0)))
            return false;
    }
    return name.len >= 1 && name.len <= 255;
}

static bool is_path(struct bytes path)
{
    return path.len > 1 && path.len < PATH_MAX && path.at[0] == '/' && memchr(path.at, '\0', path.len) == NULL;
}

bool secret_is_reference(struct bytes reference)
{
    if (bytes_starts(reference, env_prefix))
        return is_variable(bytes_from(reference, env_prefix.len));
    if (bytes_starts(reference, file_prefix))
        return is_path(bytes_from(reference, file_prefix.len));
    return bytes_starts(reference, secret_prefix) && secret_is_name(bytes_from(reference, secret_prefix.len));
}

/* ---- env: ---- */

static enum status take_value(struct bytes value, struct secret_text *ret_text, struct why *why)
{
    if (!secret_text_make(value.len, ret_text))
        return why_set(why, FULL, "there is no memory for a secret");
    memcpy(ret_text->at, value.at, value.len);
    return OK;
}

static enum status resolve_env(struct bytes name, struct secret_text *ret_text, struct why *why)
{
    char variable[256];
    snprintf(variable, sizeof variable, "%.*s", BYTES_ARG(name));
    const char *value = getenv(variable);
    if (value == NULL || *value == '\0')
        return why_set(why, INVALID, "the environment variable %s is not set", variable);
    if (strlen(value) > SECRET_VALUE_MAX)
        return why_set(why, INVALID, "the environment variable %s is longer than %zu bytes", variable, SECRET_VALUE_MAX);
    return take_value(bytes_of(value), ret_text, why);
}

/* ---- file: ---- */

static enum status read_value(const char *path, int fd, struct secret_text *text, struct why *why)
{
    size_t len = 0;
    ssize_t got = 0;
    while (len < text->len && (got = read(fd, text->at + len, text->len - len)) > 0)
        len += (size_t)got;
    if (got < 0)
        return why_set(why, INVALID, "the secret in %s cannot be read: %s", path, strerror(errno));
    if (len > 0 && len < text->len && text->at[len - 1] == '\n')
        len--;
    if (len > SECRET_VALUE_MAX)
        return why_set(why, INVALID, "the secret in %s is longer than %zu bytes", path, SECRET_VALUE_MAX);
    if (len == 0)
        return why_set(why, INVALID, "the secret in %s is empty", path);
    text->at[len] = '\0';
    text->len = len;
    return OK;
}

static enum status resolve_file(struct bytes name, struct secret_text *ret_text, struct why *why)
{
    char path[PATH_MAX];
    struct secret_text text;
    snprintf(path, sizeof path, "%.*s", BYTES_ARG(name));
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return why_set(why, INVALID, "the secret in %s cannot be read: %s", path, strerror(errno));
    if (!secret_text_make(SECRET_VALUE_MAX + 2, &text)) { /* a newline at its end, and one to see that there is no more */
        close(fd);
        return why_set(why, FULL, "there is no memory for a secret");
    }
    enum status status = read_value(path, fd, &text, why);
    close(fd);
    if (status == OK)
        *ret_text = text;
    else
        secret_text_free(&text);
    return status;
}

/* ---- secret: ---- */

static int by_name(const void *a, const void *b)
{
    const struct row_secret *x = a, *y = b;
    int order = bytes_cmp(x->space, y->space);
    return order != 0 ? order : bytes_cmp(x->name, y->name);
}

/* Under the lock: the rows may be exchanged otherwise. */
static enum status open_row(struct secrets *secrets, struct bytes space, struct bytes name, struct secret_text *ret_text,
                            struct why *why)
{
    const struct row_secret wanted = {.space = space, .name = name}, *row = NULL;
    if (secrets->rows != NULL && secrets->rows->count > 0)
        row = bsearch(&wanted, secrets->rows->at, secrets->rows->count, sizeof wanted, by_name);
    if (row == NULL)
        return why_set(why, INVALID, "there is no secret \"%.*s\". Set it with: semel secret set %.*s", BYTES_ARG(name),
                       BYTES_ARG(name));
    const struct master_key *key = master_keys_find(secrets->keys, row->master);
    struct why unread = {""};
    if (key == NULL && secrets_read_keys(secrets, &unread) == OK) /* the operator may have put it there meanwhile */
        key = master_keys_find(secrets->keys, row->master);
    if (key == NULL)
        return why_set(why, INVALID, "the secret \"%.*s\" is sealed for the master key %.*s, which is not here%s%s",
                       BYTES_ARG(name), BYTES_ARG(row->master), unread.text[0] != '\0' ? ": " : "", unread.text);
    const struct secret_label label = {row->space, row->name, row->version};
    return seal_open(key, &label, row->wrapped, row->sealed, ret_text, why);
}

enum status secret_resolve(struct secrets *secrets, struct bytes space, struct bytes reference, struct secret_text *ret_text,
                           struct why *why)
{
    if (!secret_is_reference(reference))
        return why_set(why, INVALID, "a secret is named by env:NAME, file:/path or secret:NAME");
    if (bytes_starts(reference, env_prefix))
        return resolve_env(bytes_from(reference, env_prefix.len), ret_text, why);
    if (bytes_starts(reference, file_prefix))
        return resolve_file(bytes_from(reference, file_prefix.len), ret_text, why);
    pthread_mutex_lock(&secrets->lock);
    enum status status = open_row(secrets, space, bytes_from(reference, secret_prefix.len), ret_text, why);
    pthread_mutex_unlock(&secrets->lock);
    return status;
}
