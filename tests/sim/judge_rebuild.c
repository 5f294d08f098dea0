/* judge_rebuild: INV-8 for the outbox and the exceptions, also those about events: the log alone rebuilds them. */
#include "audit/columns.h"
#include "sim.h"

#define CARDS_OF_ONE_MAX 64

struct rebuilt {
    struct sim *sim;
    const char *name;
    struct row_outbox effect;
    struct row_exception cards[CARDS_OF_ONE_MAX];
    size_t card_count, found;
};

static struct row_exception *card_of(struct rebuilt *rebuilt, int64_t id)
{
    for (size_t i = 0; i < rebuilt->card_count; i++)
        if (rebuilt->cards[i].id == id)
            return &rebuilt->cards[i];
    ASSERT(rebuilt->card_count < CARDS_OF_ONE_MAX);
    rebuilt->cards[rebuilt->card_count].id = id;
    return &rebuilt->cards[rebuilt->card_count++];
}

static enum status fold(void *ctx, const void *row, struct why *why)
{
    struct rebuilt *rebuilt = ctx;
    struct arena *arena = &rebuilt->sim->arena;
    struct row_decision decision = *(const struct row_decision *)row;
    if (decision.detail.at != NULL)
        decision.detail = arena_dup(arena, decision.detail); /* what is read of it points into it */
    int64_t card = exception_named(&decision, arena);
    TRY(outbox_fold(&rebuilt->effect, &decision, arena, why));
    return card != 0 ? exception_fold(card_of(rebuilt, card), &decision, arena, why) : OK;
}

static void compare(struct rebuilt *rebuilt, const struct query *query, const void *stored, const void *made)
{
    for (size_t i = 0; i < query->param_count; i++) {
        const struct query_column *column = &query->params[i];
        bool due = query == &OUTBOX_ADD && bytes_is(bytes_of(column->name), "due"); /* when to look is no history */
        if (!due && !column_equal(column, stored, made))
            sim_violated(rebuilt->sim, "INV-8", "the audit of %s says another %s than its row (%s)", rebuilt->name, column->name,
                         query->name);
    }
}

static enum status check_effect(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct rebuilt *rebuilt = ctx;
    struct row_outbox stored = {0};
    for (size_t i = 0; i < OUTBOX_ADD.param_count; i++) {
        const struct query_column *to = &OUTBOX_ADD.params[i],
                                  *from = column_find(EFFECT_GET.columns, EFFECT_GET.column_count, bytes_of(to->name));
        size_t size = to->type == COLUMN_INT ? sizeof(int64_t) : sizeof(struct bytes);
        memcpy((char *)&stored + to->offset, (const char *)row + from->offset, size);
    }
    compare(rebuilt, &OUTBOX_ADD, &stored, &rebuilt->effect);
    return OK;
}

static enum status check_card(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct rebuilt *rebuilt = ctx;
    const struct row_exception *stored = row;
    compare(rebuilt, &EXCEPTION_ADD, stored, card_of(rebuilt, stored->id));
    rebuilt->found++;
    return OK;
}

static void check_cards(struct rebuilt *rebuilt)
{
    struct sim *sim = rebuilt->sim;
    size_t count = rebuilt->card_count;
    struct why why = {""};
    for (size_t i = 0; i < count; i++) {
        struct q_exception_get card = {BYTES("main"), rebuilt->cards[i].id};
        if (store_run(engine_store(sim->engine), &EXCEPTION_GET, &card, 1, check_card, rebuilt, NULL, &why) != OK)
            sim_violated(sim, "INV-8", "the exceptions of %s cannot be read: %s", rebuilt->name, why.text);
    }
    if (rebuilt->found != count)
        sim_violated(sim, "INV-8", "the audit of %s has %zu exceptions, the table %zu", rebuilt->name, count, rebuilt->found);
}

void judge_rebuilt_rows(struct sim *sim, const char *name, int64_t intent)
{
    struct rebuilt rebuilt = {.sim = sim, .name = name};
    struct why why = {""};
    struct store *store = engine_store(sim->engine);
    struct q_decision_list_intent list = {BYTES("main"), intent, 0, 10000};
    struct q_effect_get effect = {BYTES("main"), intent};
    if (store_run(store, &DECISION_LIST_INTENT, &list, 1, fold, &rebuilt, NULL, &why) != OK ||
        store_run(store, &EFFECT_GET, &effect, 1, check_effect, &rebuilt, NULL, &why) != OK)
        sim_violated(sim, "INV-8", "the audit of %s cannot be read: %s", name, why.text);
    check_cards(&rebuilt);
}

/* Those that are about no intent. */
static enum status fold_card(void *ctx, const void *row, struct why *why)
{
    const struct row_decision *decision = row;
    return decision->intent == 0 ? fold(ctx, row, why) : OK;
}

void judge_rebuilt_cards(struct sim *sim)
{
    struct rebuilt rebuilt = {.sim = sim, .name = "the events"};
    struct q_decision_chain all = {0, 0, 10000};
    judge_read(sim, &DECISION_CHAIN, &all, fold_card, &rebuilt);
    check_cards(&rebuilt);
}
