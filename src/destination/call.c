/* Which rules a call has. */
#include "destination/destination.h"

const char *const destination_kind_names[] = {"http", "smtp", "command", NULL};
const char *const capability_names[] = {"none", "idempotent", "query", NULL};
const char *const on_unknown_names[] = {"hold", "retry", "skip", NULL};
const char *const smtp_tls_names[] = {"starttls", "implicit", "none", NULL};

/* '*' is any text without '/'; "**" at the end is anything. */
static bool path_fits(struct bytes pattern, struct bytes path)
{
    size_t at = 0, p = 0, star = SIZE_MAX, star_at = 0;
    if (pattern.len >= 2 && memcmp(pattern.at + pattern.len - 2, "**", 2) == 0) {
        /* Everything up to the "**" fits some beginning of the path. */
        pattern.len -= 2;
        for (size_t len = 0; len <= path.len; len++)
            if (path_fits(pattern, (struct bytes){path.at, len}))
                return true;
        return false;
    }
    while (at < path.len) {
        if (p < pattern.len && pattern.at[p] == '*') {
            star = p++;
            star_at = at;
        } else if (p < pattern.len && pattern.at[p] == path.at[at]) {
            p++;
            at++;
        } else if (star != SIZE_MAX && path.at[star_at] != '/') {
            p = star + 1;
            at = ++star_at;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.at[p] == '*')
        p++;
    return p == pattern.len;
}

/* A path that two programs could read differently fits no pattern: then only rules without one remain. */
static bool is_plain_path(struct bytes path)
{
    if (path.len == 0 || path.at[0] != '/')
        return false;
    for (size_t i = 0; i < path.len; i++)
        if ((unsigned char)path.at[i] <= 0x20 || (unsigned char)path.at[i] >= 0x7F || path.at[i] == '\\' || path.at[i] == ';')
            return false;
    struct bytes rest = bytes_from(path, 1);
    while (rest.len > 0) {
        struct bytes part = bytes_cut(&rest, '/');
        if ((part.len == 0 && rest.len > 0) || bytes_is(part, ".") || bytes_is(part, ".."))
            return false;
        const char *percent = memmem(part.at, part.len, "%2", 2);
        if (percent != NULL && percent + 2 < part.at + part.len && strchr("eEfF", percent[2]) != NULL && percent[2] != '\0')
            return false;
    }
    return true;
}

static bool has_method(const struct call_rules *rules, struct bytes method)
{
    for (size_t i = 0; i < rules->method_count; i++)
        if (bytes_eq(rules->methods[i], method))
            return true;
    return rules->method_count == 0;
}

static bool has_path(const struct call_rules *rules, struct bytes path, bool plain)
{
    for (size_t i = 0; i < rules->path_count; i++)
        if (plain && path_fits(rules->paths[i], path))
            return true;
    return rules->path_count == 0;
}

const struct call_rules *destination_call(const struct destination *destination, struct bytes method, struct bytes path)
{
    struct bytes rest = path, bare = bytes_cut(&rest, '?');
    bool plain = is_plain_path(bare);
    for (size_t i = 0; i < destination->call_count; i++)
        if (has_method(&destination->calls[i], method) && has_path(&destination->calls[i], bare, plain))
            return &destination->calls[i];
    ASSERT(destination->call_count > 0);
    return &destination->calls[destination->call_count - 1];
}
