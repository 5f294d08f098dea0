#include <stdlib.h>

#include "store/store.h"

struct fault_store {
    struct store store;
    struct store *inner;
    struct store_fault *fault;
};

static struct fault_store *of(struct store *store)
{
    return (struct fault_store *)store;
}

static bool strikes(struct store_fault *fault, bool commit)
{
    if (fault->commit_only && !commit)
        return false;
    fault->operations++;
    return fault->countdown > 0 && --fault->countdown == 0;
}

static enum status strike(struct store_fault *fault, struct why *why)
{
    return why_set(why, fault->status, "injected fault: %s", status_name(fault->status));
}

/* What was queued before has happened: its answers come while those who wait for them are still there. */
static enum status strike_behind(struct fault_store *self, struct why *why)
{
    struct why other;
    if (store_flush(self->inner, &other) != OK)
        self->store.lost = self->inner->lost;
    return strike(self->fault, why);
}

static enum status fault_begin(struct store *store, struct why *why)
{
    struct fault_store *self = of(store);
    if (strikes(self->fault, false))
        return strike(self->fault, why);
    enum status status = store_begin(self->inner, why);
    store->lost = self->inner->lost;
    return status;
}

static enum status fault_commit(struct store *store, struct why *why)
{
    struct fault_store *self = of(store);
    if (!strikes(self->fault, true)) {
        enum status status = store_commit(self->inner, why);
        store->lost = self->inner->lost;
        return status;
    }
    if (self->fault->after)
        TRY(store_commit(self->inner, why));
    return strike(self->fault, why);
}

static void fault_rollback(struct store *store)
{
    store_rollback(of(store)->inner);
}

static enum status fault_run(struct store *store, const struct query *query, const void *params, size_t count,
                             store_row_fn *on_row, void *ctx, int64_t *ret_changed, struct why *why)
{
    struct fault_store *self = of(store);
    if (strikes(self->fault, false))
        return strike_behind(self, why);
    enum status status = self->inner->ops->run(self->inner, query, params, count, on_row, ctx, ret_changed, why);
    store->clock_us = self->inner->clock_us;
    store->lost = self->inner->lost;
    return status;
}

static enum status fault_queue(struct store *store, const struct query *query, const void *params, size_t count,
                               store_row_fn *on_row, void *ctx, struct why *why)
{
    struct fault_store *self = of(store);
    if (strikes(self->fault, false))
        return strike_behind(self, why);
    enum status status = store_queue(self->inner, query, params, count, on_row, ctx, why);
    store->lost = self->inner->lost;
    return status;
}

static enum status fault_flush(struct store *store, struct why *why)
{
    struct fault_store *self = of(store);
    if (strikes(self->fault, false))
        return strike_behind(self, why);
    enum status status = store_flush(self->inner, why);
    store->clock_us = self->inner->clock_us;
    store->lost = self->inner->lost;
    return status;
}

static enum status fault_script(struct store *store, const char *text, struct why *why)
{
    return store_script(of(store)->inner, text, why);
}

static void fault_close(struct store *store)
{
    store_close(of(store)->inner);
    free(store);
}

static enum store_untidy fault_untidy(struct store *store)
{
    return store_untidy(of(store)->inner);
}

static void fault_tidy(struct store *store)
{
    store_tidy(of(store)->inner);
}

static const struct store_ops fault_ops = {
    fault_begin, fault_commit, fault_rollback, fault_run, fault_script, fault_close, fault_queue, fault_flush,
};

static const struct store_keeping fault_keeping = {fault_untidy, fault_tidy};

struct store *store_wrap_fault(struct store *inner, struct store_fault *fault)
{
    struct fault_store *self = calloc(1, sizeof *self);
    ASSERT(self != NULL);
    self->store = (struct store){.ops = &fault_ops, .keeping = &fault_keeping, .kind = inner->kind};
    self->inner = inner;
    self->fault = fault;
    return &self->store;
}
