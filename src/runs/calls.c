#include "runs/calls.h"

#include "base/when.h"
#include "queries.h"

#define KEPT_US (30 * WHEN_DAY)

bool calls_are_counted(const struct calls_order *order)
{
    return order->per_run > 0 || order->per_hour > 0 || order->content != NULL;
}

static enum status take_number(void *ctx, const void *row, struct why *why)
{
    (void)why;
    *(int64_t *)ctx = *(const int64_t *)row;
    return OK;
}

static enum status take_one(struct store *store, const struct hash *name, int64_t most, int64_t per_us, int64_t wall_us,
                            bool *ret_taken, struct why *why)
{
    int64_t spent = 0;
    const struct q_calls_take take = {hash_bytes(name), wall_us, per_us, most, wall_us + KEPT_US};
    if (most > 0)
        TRY(store_run(store, &CALLS_TAKE, &take, 1, take_number, &spent, NULL, why));
    *ret_taken = most <= 0 || spent > 0;
    return OK;
}

/* Both or none. */
static enum status take_budgets(struct store *store, struct calls_order *order, int64_t wall_us, struct why *why)
{
    const struct calls_name *name = &order->name;
    const struct bytes hour_parts[] = {BYTES("hour"), name->space, name->server, name->actor};
    const struct bytes run_parts[] = {BYTES("run"), name->space, name->server, name->actor, name->run};
    struct hash hour = hash_parts(hour_parts, 4), run = hash_parts(run_parts, 5);
    const struct q_calls_give_back back = {hash_bytes(&hour)};
    bool taken = false;
    TRY(take_one(store, &hour, order->per_hour, WHEN_HOUR, wall_us, &taken, why));
    order->refused = !taken;
    if (!taken)
        return OK;
    TRY(take_one(store, &run, order->per_run, INT64_MAX, wall_us, &taken, why));
    order->refused = !taken;
    return taken || order->per_hour <= 0 ? OK : store_run(store, &CALLS_GIVE_BACK, &back, 1, NULL, NULL, NULL, why);
}

static struct hash repeat_name(const struct calls_name *name, const struct hash *content)
{
    const struct bytes parts[] = {name->space, name->run, hash_bytes(content)};
    return hash_parts(parts, 3);
}

enum status calls_take(struct store *store, struct calls_order *order, int64_t wall_us, struct why *why)
{
    const struct q_calls_forget forget = {wall_us};
    const struct q_repeat_forget forget_repeats = {wall_us};
    order->number = 1;
    TRY(store_run(store, &CALLS_FORGET, &forget, 1, NULL, NULL, NULL, why));
    TRY(take_budgets(store, order, wall_us, why));
    if (order->refused || order->content == NULL)
        return OK;
    struct hash name = repeat_name(&order->name, order->content);
    const struct q_repeat_take take = {hash_bytes(&name), wall_us - order->repeat_us, wall_us + KEPT_US + order->repeat_us};
    TRY(store_run(store, &REPEAT_FORGET, &forget_repeats, 1, NULL, NULL, NULL, why));
    return store_run(store, &REPEAT_TAKE, &take, 1, take_number, &order->number, NULL, why);
}

enum status calls_answered(struct store *store, const struct calls_name *name, const struct hash *content, int64_t number,
                           int64_t wall_us, struct why *why)
{
    struct hash hash = repeat_name(name, content);
    const struct q_repeat_answered answered = {hash_bytes(&hash), number, wall_us};
    return store_run(store, &REPEAT_ANSWERED, &answered, 1, NULL, NULL, NULL, why);
}
