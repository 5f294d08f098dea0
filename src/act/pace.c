#include "act/pace.h"

/* The time that one call costs at this rate, and the most that may be saved up. */
static int64_t cost_us(const struct rate *rate)
{
    int64_t cost = rate->per_us / rate->calls;
    return cost > 0 ? cost : 1;
}

static void save_up(struct pace *pace, const struct rate *rate, int64_t boot_us)
{
    int64_t most = cost_us(rate) * (rate->burst > 0 ? rate->burst : 1);
    int64_t passed = pace->looked_us == 0 ? most : boot_us - pace->looked_us;
    pace->tokens_us = pace->tokens_us + passed > most ? most : pace->tokens_us + passed;
    pace->looked_us = boot_us;
}

int64_t pace_free(struct pace *pace, const struct destination *destination, int64_t boot_us, int64_t *ret_at_us)
{
    const struct rate *rate = &destination->rate;
    int64_t free = destination->concurrency - pace->running;
    *ret_at_us = INT64_MAX;
    if (boot_us < pace->open_until_us) {
        *ret_at_us = pace->open_until_us;
        return 0;
    }
    if (pace->failures >= PACE_FAILURES_MAX) /* half open: one at a time */
        free = pace->running == 0 ? 1 : 0;
    if (rate->calls > 0) {
        save_up(pace, rate, boot_us);
        int64_t saved = pace->tokens_us / cost_us(rate);
        if (saved == 0 && free > 0)
            *ret_at_us = boot_us + cost_us(rate) - pace->tokens_us;
        free = free < saved ? free : saved;
    }
    return free > 0 ? free : 0;
}

void pace_begin(struct pace *pace, const struct destination *destination)
{
    pace->running++;
    if (destination->rate.calls > 0)
        pace->tokens_us -= cost_us(&destination->rate);
}

void pace_end(struct pace *pace, bool failed, int64_t boot_us)
{
    pace->running--;
    if (!failed) {
        pace->failures = 0;
        pace->open_until_us = pace->open_for_us = 0;
        return;
    }
    if (++pace->failures < PACE_FAILURES_MAX || boot_us < pace->open_until_us)
        return;
    pace->open_for_us = pace->open_for_us == 0 ? PACE_OPEN_FIRST_US : pace->open_for_us * 2;
    if (pace->open_for_us > PACE_OPEN_MAX_US)
        pace->open_for_us = PACE_OPEN_MAX_US;
    pace->open_until_us = boot_us + pace->open_for_us;
}

void pace_cancel(struct pace *pace)
{
    pace->running--;
}

bool pace_is_open(const struct pace *pace, int64_t boot_us)
{
    return boot_us < pace->open_until_us;
}
