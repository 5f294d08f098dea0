/*
 * budget: how many calls were made under a name in a stretch of time. Pure, in memory, bounded: at its limit it forgets everything.
 */
#ifndef SEMEL_MCP_BUDGET_H
#define SEMEL_MCP_BUDGET_H

#include "base/hash.h"

struct mcp_budget {
    struct mcp_spent *at;
    size_t cap, count;
};

/* Takes one of `most` (0: no limit) that `name` has in each `per_us` (0: ever). False when there is none left. */
bool mcp_budget_take(struct mcp_budget *budget, const struct hash *name, int64_t most, int64_t per_us, int64_t now_us);
void mcp_budget_free(struct mcp_budget *budget);

#endif
