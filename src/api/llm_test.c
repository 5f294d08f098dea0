#include "api/llm.h"

#include <stdlib.h>

#include "check.h"

#define SECOND_US INT64_C(1000000)

static struct hash hash_of(uint8_t first, uint8_t second)
{
    return (struct hash){{first, second}};
}

TEST(calls_under_way_at_the_same_time_are_one)
{
    struct llm *llm = calloc(1, sizeof *llm);
    struct hash hash = hash_of(1, 1), other = hash_of(1, 2);
    CHECK(llm_flight_find(llm, &hash, false, 10 * SECOND_US) == NULL);
    struct llm_flight *flight = llm_flight_join(llm, NULL, &hash, "req_1", 10 * SECOND_US);
    CHECK(llm_flight_find(llm, &hash, false, 11 * SECOND_US) == flight);
    CHECK(llm_flight_find(llm, &other, true, 11 * SECOND_US) == NULL);
    CHECK(llm_flight_join(llm, flight, &hash, "req_2", 11 * SECOND_US) == flight);
    CHECK_TEXT(bytes_of(flight->leader), "req_1");
    /* However long it takes. */
    CHECK(llm_flight_find(llm, &hash, false, 1000 * SECOND_US) == flight);
    free(llm);
}

TEST(what_is_answered_is_for_retries_and_for_a_minute)
{
    struct llm *llm = calloc(1, sizeof *llm);
    struct hash hash = hash_of(2, 1);
    struct llm_flight *flight = llm_flight_join(llm, NULL, &hash, "req_1", 10 * SECOND_US);
    llm_flight_join(llm, flight, &hash, "req_2", 10 * SECOND_US);
    llm_flight_leave(flight, true, 20 * SECOND_US);
    /* The other one is still being answered, but who comes now for the first time is new. */
    CHECK(llm_flight_find(llm, &hash, false, 20 * SECOND_US) == NULL);
    CHECK(llm_flight_find(llm, &hash, true, 20 * SECOND_US) == flight);
    llm_flight_leave(flight, true, 21 * SECOND_US);
    CHECK(llm_flight_find(llm, &hash, true, 80 * SECOND_US) == flight);
    CHECK(llm_flight_find(llm, &hash, true, 81 * SECOND_US) == NULL);
    free(llm);
}

TEST(a_new_call_takes_the_place_of_the_answered_one)
{
    struct llm *llm = calloc(1, sizeof *llm);
    struct hash hash = hash_of(3, 1);
    llm_flight_leave(llm_flight_join(llm, NULL, &hash, "req_1", 10 * SECOND_US), true, 11 * SECOND_US);
    struct llm_flight *second = llm_flight_join(llm, NULL, &hash, "req_2", 12 * SECOND_US);
    CHECK_TEXT(bytes_of(second->leader), "req_2");
    CHECK(llm_flight_find(llm, &hash, true, 12 * SECOND_US) == second);
    free(llm);
}

TEST(what_failed_is_asked_for_again_by_whoever_comes)
{
    struct llm *llm = calloc(1, sizeof *llm);
    struct hash hash = hash_of(4, 1);
    struct llm_flight *flight = llm_flight_join(llm, NULL, &hash, "req_1", 10 * SECOND_US);
    llm_flight_leave(flight, false, 11 * SECOND_US);
    CHECK(llm_flight_find(llm, &hash, true, 12 * SECOND_US) == flight);
    CHECK(llm_flight_find(llm, &hash, false, 12 * SECOND_US) == NULL);
    free(llm);
}

TEST(when_too_many_are_under_way_a_call_is_on_its_own)
{
    struct llm *llm = calloc(1, sizeof *llm);
    struct llm_flight *flights[LLM_SET_SIZE];
    for (uint8_t i = 0; i < LLM_SET_SIZE; i++) {
        struct hash hash = hash_of(5, i);
        flights[i] = llm_flight_join(llm, NULL, &hash, "req", 10 * SECOND_US);
        CHECK(flights[i] != NULL);
    }
    struct hash more = hash_of(5, 100), elsewhere = hash_of(6, 100);
    CHECK(llm_flight_join(llm, NULL, &more, "req", 10 * SECOND_US) == NULL);
    CHECK(llm_flight_join(llm, NULL, &elsewhere, "req", 10 * SECOND_US) != NULL);
    llm_flight_leave(flights[3], true, 11 * SECOND_US);
    CHECK(llm_flight_join(llm, NULL, &more, "req", 12 * SECOND_US) == flights[3]);
    free(llm);
}
