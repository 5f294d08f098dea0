#include "base/reference.h"

static bool is_env_name(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
        if (!letter && !(c >= '0' && c <= '9' && i > 0))
            return false;
    }
    return name.len >= 1 && name.len <= 128;
}

static bool is_stored_name(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-'))
            return false;
    }
    return name.len >= 1 && name.len <= 64;
}

static bool is_file_path(struct bytes path)
{
    for (size_t i = 0; i < path.len; i++)
        if ((unsigned char)path.at[i] < 0x20 || path.at[i] == 0x7F)
            return false;
    return path.len >= 2 && path.len <= 1024 && path.at[0] == '/';
}

enum status secret_reference_parse(struct bytes text, struct secret_reference *ret, struct why *why)
{
    static const struct {
        struct bytes prefix;
        enum secret_kind kind;
        bool (*fits)(struct bytes name);
        const char *advice;
    } forms[] = {
        {{"env:", 4}, SECRET_ENV, is_env_name, "env: wants the name of an environment variable, such as env:STRIPE_KEY"},
        {{"file:", 5}, SECRET_FILE, is_file_path, "file: wants a path that begins with '/', such as file:/run/crm.key"},
        {{"secret:", 7}, SECRET_STORED, is_stored_name, "secret: wants the name of a stored secret, such as secret:stripe"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (!bytes_starts(text, forms[i].prefix))
            continue;
        struct bytes name = bytes_from(text, forms[i].prefix.len);
        if (!forms[i].fits(name))
            return why_set(why, INVALID, "%s", forms[i].advice);
        *ret = (struct secret_reference){forms[i].kind, text, name};
        return OK;
    }
    return why_set(why, INVALID,
                   "a policy never holds a secret itself; write where it is: env:NAME, file:/path or secret:NAME. If this was a "
                   "real one, change it now");
}
