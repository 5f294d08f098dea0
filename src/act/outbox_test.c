#include "act/outbox.h"

#include "audit/columns.h"
#include "base/when.h"
#include "check.h"
#include "house.h"

#define CARDS_MAX 8

/* An effect, and what is done to it next. The engine's commands have no room for more. */
static struct {
    struct row_effect effect;
    enum status (*change)(struct store *store, struct ledger *ledger, struct why *why);
    bool changed;
} at;

/* ---- reading ---- */

struct rebuilt {
    struct arena *arena;
    struct row_outbox row;
    struct row_exception cards[CARDS_MAX];
    size_t card_count, found;
};

static enum status take_effect(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct house *house = ctx;
    at.effect = *(const struct row_effect *)row;
    for (size_t i = 0; i < EFFECT_GET.column_count; i++) {
        struct bytes *text = (struct bytes *)((char *)&at.effect + EFFECT_GET.columns[i].offset);
        if (EFFECT_GET.columns[i].type != COLUMN_INT && text->at != NULL)
            *text = arena_dup(&house->arena, *text);
    }
    return OK;
}

static enum status fold(void *ctx, const void *row, struct why *why)
{
    struct rebuilt *rebuilt = ctx;
    struct row_decision decision = *(const struct row_decision *)row;
    if (decision.detail.at != NULL)
        decision.detail = arena_dup(rebuilt->arena, decision.detail);
    TRY(outbox_fold(&rebuilt->row, &decision, rebuilt->arena, why));
    if (bytes_is(decision.kind, "raise"))
        rebuilt->cards[rebuilt->card_count++].id = exception_named(&decision, rebuilt->arena);
    for (size_t i = 0; i < rebuilt->card_count; i++)
        TRY(exception_fold(&rebuilt->cards[i], &decision, rebuilt->arena, why));
    return OK;
}

static void check_columns(const struct query *query, const void *got, const void *want, const char *but)
{
    for (size_t i = 0; i < query->param_count; i++)
        if (!bytes_is(bytes_of(query->params[i].name), but) && !column_equal(&query->params[i], got, want))
            check_fail(__FILE__, __LINE__, "column %s differs", query->params[i].name);
}

static enum status check_card(void *ctx, const void *row, struct why *why)
{
    (void)why;
    struct rebuilt *rebuilt = ctx;
    for (size_t i = 0; i < rebuilt->card_count; i++)
        if (rebuilt->cards[i].id == ((const struct row_exception *)row)->id) {
            check_columns(&EXCEPTION_ADD, &rebuilt->cards[i], row, "");
            rebuilt->found++;
        }
    return OK;
}

static struct row_outbox as_stored(void)
{
    struct row_outbox row = {0};
    for (size_t i = 0; i < OUTBOX_ADD.param_count; i++) {
        const struct query_column *to = &OUTBOX_ADD.params[i],
                                  *from = column_find(EFFECT_GET.columns, EFFECT_GET.column_count, bytes_of(to->name));
        size_t size = to->type == COLUMN_INT ? sizeof(int64_t) : sizeof(struct bytes);
        memcpy((char *)&row + to->offset, (const char *)&at.effect + from->offset, size);
    }
    return row;
}

/* The row and the cards, from the log alone, are what is stored. */
static void check_rebuilt(struct house *house, size_t cards)
{
    struct rebuilt rebuilt = {.arena = &house->arena};
    struct store *store = engine_store(house->engine);
    struct why why;
    struct q_effect_get get = {BYTES("main"), at.effect.intent};
    struct q_decision_list_intent list = {BYTES("main"), at.effect.intent, 0, 1000};
    struct q_exception_list all = {BYTES("main"), INT64_MAX, CARDS_MAX};
    CHECK_INT(store_run(store, &EFFECT_GET, &get, 1, take_effect, house, NULL, &why), OK);
    CHECK_INT(store_run(store, &DECISION_LIST_INTENT, &list, 1, fold, &rebuilt, NULL, &why), OK);
    CHECK_INT(store_run(store, &EXCEPTION_LIST, &all, 1, check_card, &rebuilt, NULL, &why), OK);
    struct row_outbox stored = as_stored();
    check_columns(&OUTBOX_ADD, &rebuilt.row, &stored, "due");
    CHECK_INT(rebuilt.card_count, cards);
    CHECK_INT(rebuilt.found, cards);
}

/* ---- changing ---- */

static enum status also_born(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct effect_order order = {.row = {.space = BYTES("main"),
                                         .destination = BYTES("crm"),
                                         .priority = PRIORITY_LOW,
                                         .attended = 1,
                                         .deadline = WHEN_HOUR,
                                         .line = BYTES("a \"line\""),
                                         .owner = BYTES("dana")},
                                 .record = BYTES("{}\n")};
    struct q_outbox_taken taken = {command->answer.intent, ledger->now.wall_us + WHEN_MINUTE, 77};
    TRY(outbox_write(store, ledger, command->answer.intent, &order, why));
    return outbox_taken(store, ledger, BYTES("main"), &taken, why);
}

static enum status end(struct store *store, struct ledger *ledger, struct why *why)
{
    struct q_outbox_ended ended = {at.effect.intent, STEP_DELIVER, ledger->now.wall_us, 99, 503, BYTES("too \"busy\"")};
    return outbox_ended(store, ledger, BYTES("main"), &ended, why);
}

static enum status ask(struct store *store, struct ledger *ledger, struct why *why)
{
    struct q_outbox_ask asked = {at.effect.intent, STEP_ASK, ledger->now.wall_us};
    return outbox_ask(store, ledger, BYTES("main"), &asked, why);
}

static enum status wait(struct store *store, struct ledger *ledger, struct why *why)
{
    struct q_outbox_stand stand = {at.effect.intent, at.effect.step, at.effect.due + 5, at.effect.probes, at.effect.due};
    return outbox_stand(store, ledger, &at.effect, &stand, &at.changed, why);
}

static enum status give_to_a_person(struct store *store, struct ledger *ledger, struct why *why)
{
    struct q_outbox_stand stand = {at.effect.intent, STEP_PERSON, OUTBOX_NEVER, at.effect.probes + 1, at.effect.due};
    struct exception_order order = {
        EXCEPTION_DEAD_LETTER, BYTES("main"), BYTES("bo"), BYTES("it is over"), at.effect.intent, 0, 0, 5};
    TRY(outbox_stand(store, ledger, &at.effect, &stand, &at.changed, why));
    return at.changed ? exception_raise(store, ledger, &order, why) : OK;
}

static enum status send_again(struct store *store, struct ledger *ledger, struct why *why)
{
    TRY(exception_close(store, ledger, at.effect.intent, EXCEPTION_DEAD_LETTER, BYTES("retry"), BYTES("bo"), BYTES("why not"),
                        why));
    return outbox_again(store, ledger, &at.effect, NULL, why);
}

static enum status take_again(struct store *store, struct ledger *ledger, struct why *why)
{
    struct q_outbox_taken taken = {at.effect.intent, ledger->now.wall_us + WHEN_MINUTE, 78};
    return outbox_taken(store, ledger, BYTES("main"), &taken, why);
}

static enum status finish(struct store *store, struct ledger *ledger, struct why *why)
{
    return outbox_finish(store, ledger, &at.effect, BYTES("cancelled"), why);
}

static enum status run_change(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    (void)command;
    return at.change(store, ledger, why);
}

static void change(struct house *house, enum status (*how)(struct store *, struct ledger *, struct why *))
{
    struct engine_command command = {.write = run_change};
    at.change = how;
    house_run(house, &command);
    CHECK_INT(command.status, OK);
}

static void begin(struct house *house, enum house_storage storage)
{
    struct engine_command claim = house_claim("k");
    house_open(house, storage);
    claim.also = also_born;
    house_run(house, &claim);
    CHECK_INT(claim.answer.verdict, VERDICT_PROCEED);
    at.effect = (struct row_effect){.intent = claim.answer.intent};
}

TEST_BOTH(the_audit_alone_rebuilds_the_outbox_and_its_exceptions)
{
    static enum status (*const changes[])(struct store *, struct ledger *,
                                          struct why *) = {end, ask, give_to_a_person, send_again, end, give_to_a_person, finish};
    static const size_t cards[] = {0, 0, 1, 1, 1, 2, 2};
    struct house house;
    struct audit_verified verified;
    struct why why;
    begin(&house, storage);
    check_rebuilt(&house, 0);
    CHECK_INT(at.effect.tries, 1);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        change(&house, changes[i]);
        check_rebuilt(&house, cards[i]);
    }
    CHECK_INT(at.effect.step, STEP_FINISHED);
    CHECK_INT(audit_verify(engine_store(house.engine), &verified, &why), OK);
    CHECK_INT(verified.bad_id, 0);
    house_close(&house);
}

TEST_BOTH(what_is_taken_back_from_a_person_is_looked_at_again)
{
    struct house house;
    begin(&house, storage);
    check_rebuilt(&house, 0);
    change(&house, give_to_a_person);
    check_rebuilt(&house, 1);
    CHECK_INT(at.effect.step, STEP_PERSON);
    change(&house, take_again); /* its caller came back, and dies in the middle of it */
    check_rebuilt(&house, 1);
    CHECK_INT(at.effect.step, STEP_DELIVER);
    CHECK(at.effect.due < OUTBOX_NEVER);
    house_close(&house);
}

TEST_BOTH(a_row_that_changed_since_it_was_looked_at_is_left_alone)
{
    struct house house;
    begin(&house, storage);
    check_rebuilt(&house, 0);
    struct row_effect seen = at.effect;
    change(&house, end);
    check_rebuilt(&house, 0);
    struct row_effect ended = at.effect;
    at.effect = seen;
    change(&house, give_to_a_person);
    CHECK(!at.changed);
    at.effect = seen;
    change(&house, wait);
    check_rebuilt(&house, 0);
    CHECK_INT(at.effect.step, STEP_DELIVER);
    CHECK_INT(at.effect.due, ended.due);
    change(&house, wait);
    check_rebuilt(&house, 0);
    CHECK_INT(at.effect.due, ended.due + 5);
    house_close(&house);
}
