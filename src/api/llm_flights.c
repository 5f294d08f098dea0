#include "api/llm.h"

static struct llm_flight *set_of(struct llm *llm, const struct hash *hash)
{
    return llm->flights[hash->at[0] % LLM_SETS];
}
_Static_assert(LLM_SETS == 256, "the set is the first byte of the hash");

static bool is_live(const struct llm_flight *flight, int64_t boot_us)
{
    return flight->touched_us != 0 && (flight->calls > 0 || boot_us - flight->touched_us < LLM_RETRY_US);
}

struct llm_flight *llm_flight_find(struct llm *llm, const struct hash *hash, bool retry, int64_t boot_us)
{
    struct llm_flight *set = set_of(llm, hash);
    for (size_t i = 0; i < LLM_SET_SIZE; i++) {
        struct llm_flight *flight = &set[i];
        if (!is_live(flight, boot_us) || memcmp(flight->hash.at, hash->at, HASH_SIZE) != 0)
            continue;
        /* Who asks for the first time gets an answer of its own once there is one: it may want another sample. */
        return retry || (flight->calls > 0 && !flight->settled) ? flight : NULL;
    }
    return NULL;
}

/* The one with this hash, which a new leader takes over; or one that is free; or the one that was over first. */
static struct llm_flight *place_for(struct llm *llm, const struct hash *hash, int64_t boot_us)
{
    struct llm_flight *set = set_of(llm, hash), *best = NULL;
    for (size_t i = 0; i < LLM_SET_SIZE; i++) {
        struct llm_flight *flight = &set[i];
        if (flight->calls > 0)
            continue;
        if (is_live(flight, boot_us) && memcmp(flight->hash.at, hash->at, HASH_SIZE) == 0)
            return flight;
        if (best == NULL || flight->touched_us < best->touched_us)
            best = flight;
    }
    return best;
}

struct llm_flight *llm_flight_join(struct llm *llm, struct llm_flight *flight, const struct hash *hash, const char *leader,
                                   int64_t boot_us)
{
    if (flight == NULL) {
        flight = place_for(llm, hash, boot_us);
        if (flight == NULL)
            return NULL;
        *flight = (struct llm_flight){.hash = *hash};
        size_t len = strlen(leader);
        ASSERT(len <= LLM_LEADER_SIZE);
        memcpy(flight->leader, leader, len);
    }
    flight->calls++;
    flight->touched_us = boot_us;
    return flight;
}

void llm_flight_leave(struct llm_flight *flight, bool settled, int64_t boot_us)
{
    ASSERT(flight->calls > 0);
    flight->calls--;
    flight->settled |= settled;
    flight->touched_us = boot_us;
}
