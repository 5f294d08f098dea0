/*
 * env: the world as a struct. The clock and randomness are asked here and nowhere else, so that a simulator can own them.
 *
 * Three times, never mixed up:
 *   wall  what people read; may jump in both directions
 *   boot  CLOCK_BOOTTIME: grows while the machine is up, asleep or not; never jumps
 *   run   kept by the engine on top of boot: the time the ledger has been running since its birth; persisted, never goes back
 * Leases and "may I forget this?" use run; safety never depends on wall.
 */
#ifndef SEMEL_ENV_ENV_H
#define SEMEL_ENV_ENV_H

#include <stddef.h>
#include <stdint.h>

struct env {
    int64_t (*wall_us)(struct env *env);
    int64_t (*boot_us)(struct env *env);
    void (*random)(struct env *env, void *ret_bytes, size_t size);
};

/* The real world. */
struct env *env_real(void);

int64_t env_real_wall_us(void); /* for the log, which has no env */

#endif
