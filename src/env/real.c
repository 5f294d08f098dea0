#include "env/env.h"

#include <sys/random.h>
#include <time.h>

#include "base/status.h"

static int64_t clock_us(clockid_t clock)
{
    struct timespec now;
    int failed = clock_gettime(clock, &now);
    ASSERT(failed == 0);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t real_wall_us(struct env *env)
{
    (void)env;
    return clock_us(CLOCK_REALTIME);
}

static int64_t real_boot_us(struct env *env)
{
    (void)env;
    return clock_us(CLOCK_BOOTTIME);
}

static void real_random(struct env *env, void *ret_bytes, size_t size)
{
    (void)env;
    char *at = ret_bytes;
    while (size > 0) {
        ssize_t got = getrandom(at, size, 0);
        ASSERT(got > 0);
        at += got;
        size -= (size_t)got;
    }
}

struct env *env_real(void)
{
    static struct env real = {real_wall_us, real_boot_us, real_random};
    return &real;
}

int64_t env_real_wall_us(void)
{
    return clock_us(CLOCK_REALTIME);
}
