/*
 * What the tests of destination/ share: a destination out of a policy's text, and the rules of a call.
 */
#ifndef SEMEL_DESTINATION_FIXTURE_TEST_H
#define SEMEL_DESTINATION_FIXTURE_TEST_H

#include <stdio.h>

#include "base/hash.h"
#include "check.h"
#include "policy/policy.h"

#define TEST_KEY "sml-0123456789abcdef0123456789abcdef"
#define TEST_UUID "6c3aa935-aebe-58b0-9087-dee843e58ad8"

struct house {
    struct policy *policy;
    struct arena arena;
    const struct destination *destination;
};

/* `settings` is the text between the braces of destination `x`. */
static inline void house_open(struct house *house, const char *settings)
{
    struct yaml_problems problems;
    char text[8192];
    hash_setup();
    arena_init(&house->arena, 16 << 20);
    snprintf(text, sizeof text, "destinations: {x: {%s}}\n", settings);
    if (policy_parse(bytes_of(text), &house->policy, &problems) != OK)
        check_fail(__FILE__, __LINE__, "%s%zu:%zu: %s", text, problems.at[0].line, problems.at[0].column, problems.at[0].text);
    house->destination = policy_destination(house->policy, BYTES("x"));
    CHECK(house->destination != NULL);
}

static inline void house_close(struct house *house)
{
    policy_free(house->policy);
    arena_release(&house->arena);
}

static inline const struct call_rules *house_call(const struct house *house, const char *method, const char *path)
{
    return destination_call(house->destination, bytes_of(method), bytes_of(path));
}

#endif
