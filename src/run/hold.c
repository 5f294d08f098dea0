#include "run/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static bool path_of(const char *dir, const char *intent, int64_t fence, const char *end, char *ret_path, size_t size)
{
    int len = snprintf(ret_path, size, "%s/holds/%s.%lld%s", dir, intent, (long long)fence, end);
    return len > 0 && (size_t)len < size;
}

/* It is locked before it has its name, so that nobody ever sees it unlocked while its run lives. */
int hold_take(const char *dir, const char *intent, int64_t fence)
{
    char path[4096], making[4096];
    if (!path_of(dir, intent, fence, "", path, sizeof path) || !path_of(dir, intent, fence, ".new", making, sizeof making))
        return -1;
    char *slash = strrchr(making, '/');
    *slash = '\0';
    if (mkdir(making, 0700) != 0 && errno != EEXIST)
        return -1;
    *slash = '/';
    int fd = open(making, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && rename(making, path) == 0)
        return fd;
    close(fd);
    unlink(making);
    return -1;
}

void hold_drop(const char *dir, const char *intent, int64_t fence, int fd)
{
    char path[4096];
    if (path_of(dir, intent, fence, "", path, sizeof path))
        unlink(path);
    if (fd >= 0)
        close(fd);
}

enum hold_state hold_look(const char *dir, const char *intent, int64_t fence)
{
    char path[4096];
    if (!path_of(dir, intent, fence, "", path, sizeof path))
        return HOLD_NONE;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return HOLD_NONE;
    /* Shared: two that look at the same time must not take each other for its run. */
    bool locked = flock(fd, LOCK_SH | LOCK_NB) != 0;
    struct stat opened, named;
    bool same = fstat(fd, &opened) == 0 && stat(path, &named) == 0 && opened.st_ino == named.st_ino;
    close(fd);
    if (locked)
        return HOLD_ALIVE;
    return same ? HOLD_DEAD : HOLD_NONE;
}
