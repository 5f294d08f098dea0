#include "mcp/budget.h"

#include <stdlib.h>

#define NAMES_MAX 65536

struct mcp_spent {
    struct hash name;
    int64_t spent; /* 0: the slot is free */
    int64_t since_us;
};

static struct mcp_spent *slot_of(struct mcp_budget *budget, const struct hash *name)
{
    size_t at;
    memcpy(&at, name->at, sizeof at);
    for (at &= budget->cap - 1;; at = (at + 1) & (budget->cap - 1)) {
        struct mcp_spent *slot = &budget->at[at];
        if (slot->spent == 0 || memcmp(slot->name.at, name->at, HASH_SIZE) == 0)
            return slot;
    }
}

static bool make_room(struct mcp_budget *budget)
{
    if (budget->count * 2 < budget->cap)
        return true;
    bool forget = budget->cap >= NAMES_MAX;
    size_t cap = budget->cap == 0 ? 64 : forget ? budget->cap : 2 * budget->cap;
    struct mcp_budget more = {calloc(cap, sizeof *more.at), cap, 0};
    if (more.at == NULL)
        return false;
    for (size_t i = 0; !forget && i < budget->cap; i++)
        if (budget->at[i].spent != 0) {
            *slot_of(&more, &budget->at[i].name) = budget->at[i];
            more.count++;
        }
    free(budget->at);
    *budget = more;
    return true;
}

bool mcp_budget_take(struct mcp_budget *budget, const struct hash *name, int64_t most, int64_t per_us, int64_t now_us)
{
    if (most <= 0)
        return true;
    if (!make_room(budget))
        return false;
    struct mcp_spent *slot = slot_of(budget, name);
    if (slot->spent == 0) {
        *slot = (struct mcp_spent){.name = *name, .since_us = now_us};
        budget->count++;
    } else if (per_us > 0 && now_us - slot->since_us >= per_us) {
        *slot = (struct mcp_spent){.name = *name, .since_us = now_us};
    } else if (slot->spent >= most) {
        return false;
    }
    slot->spent++;
    return true;
}

void mcp_budget_free(struct mcp_budget *budget)
{
    free(budget->at);
    *budget = (struct mcp_budget){0};
}
