#include "engine/engine_own.h"

/* Another node may settle an intent without telling us: there we look again this often … */
#define LOOK_EVERY_US (25 * 1000)
/* … and so often when the others are heard and know that we wait; they are told again after a while, since they forget. */
#define LOOK_HEARING_US (200 * 1000)
#define ANNOUNCE_EVERY_US (10 * 1000 * 1000)
/* Those whose client has left are let go this soon. */
#define SCAN_EVERY_US (1000 * 1000)

static size_t bucket_of(int64_t intent)
{
    return (size_t)(((uint64_t)intent * 0x9E3779B97F4A7C15u) >> 54) % PARKED_BUCKETS;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What moved before the others knew is found by one more look. */
static int64_t look_every_us(struct engine *engine, struct engine_command *command, int64_t now)
{
    if (!hear_is_on(engine->hear))
        return LOOK_EVERY_US;
    if (command->announced_us != 0 && now - command->announced_us < ANNOUNCE_EVERY_US)
        return LOOK_HEARING_US;
    hear_wait_for(engine->hear, command->answer.intent);
    command->announced_us = now;
    return LOOK_EVERY_US;
}

void waiting_park(struct engine *engine, struct engine_command *command)
{
    int64_t now = engine->env->boot_us(engine->env);
    int64_t look = smaller(command->waited_until_us, now + command->answer.lease_left_us);
    if (engine->postgres_url != NULL)
        look = smaller(look, now + look_every_us(engine, command, now));
    command->look_again_us = look;
    size_t bucket = bucket_of(command->answer.intent);
    command->next = engine->parked[bucket];
    engine->parked[bucket] = command;
    look = smaller(look, now + SCAN_EVERY_US);
    if (engine->parked_count++ == 0 || look < engine->parked_look_us)
        engine->parked_look_us = look;
    atomic_store(&engine->counts.waiting, (int64_t)engine->parked_count);
}

static void take(struct engine *engine, struct engine_command **at, struct engine_command **list)
{
    struct engine_command *command = *at;
    *at = command->next;
    command->next = *list;
    *list = command;
    engine->parked_count--;
    atomic_store(&engine->counts.waiting, (int64_t)engine->parked_count);
}

void waiting_wake(struct engine *engine, int64_t intent, struct engine_command **list)
{
    if (engine->parked_count == 0)
        return;
    struct engine_command **at = &engine->parked[bucket_of(intent)];
    while (*at != NULL) {
        if ((*at)->answer.intent != intent) {
            at = &(*at)->next;
            continue;
        }
        (*at)->announced_us = 0; /* whoever was told that it waits has done what it asked for */
        take(engine, at, list);
    }
}

void waiting_wake_all(struct engine *engine, struct engine_command **list)
{
    for (size_t i = 0; i < PARKED_BUCKETS; i++)
        while (engine->parked[i] != NULL) {
            engine->parked[i]->announced_us = 0;
            take(engine, &engine->parked[i], list);
        }
}

static bool is_due(const struct engine_command *command, int64_t boot_us)
{
    return command->look_again_us <= boot_us || (command->gone != NULL && atomic_load(command->gone));
}

void waiting_due(struct engine *engine, int64_t boot_us, bool all, struct engine_command **list)
{
    if (engine->parked_count == 0 || (!all && engine->parked_look_us > boot_us))
        return;
    int64_t earliest = boot_us + SCAN_EVERY_US;
    for (size_t i = 0; i < PARKED_BUCKETS; i++) {
        struct engine_command **at = &engine->parked[i];
        while (*at != NULL) {
            if (all || is_due(*at, boot_us)) {
                if (all)
                    (*at)->waited_until_us = boot_us;
                take(engine, at, list);
            } else {
                earliest = smaller(earliest, (*at)->look_again_us);
                at = &(*at)->next;
            }
        }
    }
    engine->parked_look_us = earliest;
}
