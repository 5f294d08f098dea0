#include "audit/applied.h"

struct take_policy {
    struct arena *arena;
    struct row_policy *ret;
    bool found;
};

static enum status take_policy(void *ctx, const void *row, struct why *why)
{
    struct take_policy *take = ctx;
    *take->ret = *(const struct row_policy *)row;
    struct bytes *texts[] = {&take->ret->hash, &take->ret->text, &take->ret->actor};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = arena_dup(take->arena, *texts[i]);
    take->found = true;
    return take->arena->failed ? why_set(why, FULL, "no memory for the policy") : OK;
}

enum status policy_load(struct store *store, struct arena *arena, struct row_policy *ret_row, struct why *why)
{
    struct row_policy row = {0};
    struct take_policy take = {arena, &row, false};
    TRY(store_run(store, &POLICY_LATEST, NULL, 0, take_policy, &take, NULL, why));
    if (!take.found)
        return NOTHING;
    *ret_row = row;
    return OK;
}
