/*
 * epoch: has the database forgotten what it acknowledged? A standby that was promoted before it had everything, or a restored copy, lacks the newest
 * decisions. Nobody can tell which keys they were about, so what might be one of them is held for a person: quarantine. See engine.h.
 */
#include "base/log.h"
#include "engine/engine_own.h"

#define TEXT_SIZE sizeof((struct why *)0)->text

struct epoch_facts {
    int64_t epoch, timeline, synchronous;
    char quarantine[TEXT_SIZE];
    int64_t since_us;
};

static enum status take_text(void *ctx, const void *row, struct why *why)
{
    (void)why;
    const struct r_meta_get *got = row;
    snprintf(ctx, TEXT_SIZE, "%.*s", BYTES_ARG(got->value));
    return OK;
}

static enum status take_timeline(void *ctx, const void *row, struct why *why)
{
    (void)why;
    *(struct r_timeline_get *)ctx = *(const struct r_timeline_get *)row;
    return OK;
}

static int64_t number_of(const char *text)
{
    int64_t number = 0;
    return bytes_to_i64(bytes_of(text), &number) ? number : 0;
}

/* What was written down, and how the database is now; in one round trip where it takes several at once. */
static enum status read_facts(struct store *store, struct epoch_facts *facts, struct r_timeline_get *current, struct why *why)
{
    static const char *const names[] = {"epoch", "timeline", "synchronous", "quarantine_since", "quarantine"};
    char texts[sizeof names / sizeof *names][TEXT_SIZE] = {{0}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct q_meta_get get = {bytes_of(names[i])};
        TRY(store_queue(store, &META_GET, &get, 1, take_text, texts[i], why));
    }
    TRY(store_queue(store, &TIMELINE_GET, NULL, 0, take_timeline, current, why));
    TRY(store_flush(store, why));
    *facts = (struct epoch_facts){.epoch = number_of(texts[0]),
                                  .timeline = number_of(texts[1]),
                                  .synchronous = number_of(texts[2]),
                                  .since_us = number_of(texts[3])};
    memcpy(facts->quarantine, texts[4], TEXT_SIZE);
    return OK;
}

static enum status write_text(struct store *store, const char *name, const char *text, struct why *why)
{
    struct q_meta_put put = {bytes_of(name), bytes_of(text)};
    return store_run(store, &META_PUT, &put, 1, NULL, NULL, NULL, why);
}

static enum status write_number(struct store *store, const char *name, int64_t number, struct why *why)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    return write_text(store, name, text, why);
}

static enum status write_facts(struct store *store, const struct epoch_facts *facts, struct why *why)
{
    TRY(write_number(store, "epoch", facts->epoch, why));
    TRY(write_number(store, "timeline", facts->timeline, why));
    TRY(write_number(store, "synchronous", facts->synchronous, why));
    TRY(write_number(store, "quarantine_since", facts->since_us, why));
    return write_text(store, "quarantine", facts->quarantine, why);
}

/* The row that says so in the audit, in the same transaction. */
static enum status record(struct engine *engine, const struct epoch_facts *facts, struct why *why)
{
    struct audit_batch audit;
    audit_batch_init(&audit, &engine->arena);
    struct row_decision *row = audit_add(&audit);
    if (row == NULL)
        return why_set(why, FULL, "no memory for the audit");
    row->space = BYTES("main");
    row->kind = BYTES("epoch");
    row->actor = BYTES("semel");
    row->reason = bytes_of(facts->quarantine);
    row->detail =
        arena_printf(&engine->arena, "{\"epoch\":%lld,\"timeline\":%lld}", (long long)facts->epoch, (long long)facts->timeline);
    struct audit_chain chain = engine->chain;
    struct ledger_now now = engine_now(engine);
    audit_seal(&audit, &chain, &engine->ids, now.wall_us, now.run_us);
    TRY(audit_save(engine->store, &audit, &chain, &engine->ids, why));
    engine->chain_after = chain;
    return OK;
}

void epoch_take(struct engine *engine, int64_t epoch, const char *quarantine, int64_t since_us)
{
    pthread_mutex_lock(&engine->intake_lock);
    engine->epoch = epoch;
    engine->quarantine = quarantine[0] != '\0';
    engine->quarantine_since_us = since_us;
    snprintf(engine->quarantine_why.text, sizeof engine->quarantine_why.text, "%s", quarantine);
    pthread_mutex_unlock(&engine->intake_lock);
}

static enum status check_in_transaction(struct engine *engine, bool own_loss, bool *ret_recorded, struct why *why)
{
    struct epoch_facts facts = {0};
    struct r_timeline_get current = {0, 1};
    TRY(read_facts(engine->store, &facts, &current, why));
    bool born = facts.epoch == 0, promoted = !born && facts.timeline != 0 && current.timeline != facts.timeline;
    bool known = facts.quarantine[0] != '\0' && !promoted; /* another node has begun it already */
    bool doubtful = (own_loss && !known) || (promoted && !facts.synchronous);
    bool changed = born || promoted || own_loss || facts.synchronous != current.synchronous || facts.timeline != current.timeline;
    facts.timeline = current.timeline;
    facts.synchronous = current.synchronous;
    if (born)
        facts.epoch = 1;
    if (doubtful) {
        facts.epoch++;
        facts.since_us = engine_now(engine).wall_us;
        snprintf(facts.quarantine, sizeof facts.quarantine, "%s",
                 own_loss
                     ? "the database has lost decisions that this node had acknowledged"
                     : "the database failed over to a standby that was not synchronous: it may have lost what was acknowledged");
        LOG(LOG_ERROR, "quarantine begins", LOG_INT("epoch", facts.epoch), LOG_CSTR("why", facts.quarantine));
        TRY(record(engine, &facts, why));
        *ret_recorded = true;
    }
    epoch_take(engine, facts.epoch, facts.quarantine, facts.since_us);
    return changed ? write_facts(engine->store, &facts, why) : OK;
}

enum status epoch_check(struct engine *engine, bool own_loss, struct why *why)
{
    bool recorded = false;
    arena_clear(&engine->arena);
    TRY(store_begin(engine->store, why));
    enum status status = OK;
    if (engine->postgres_url != NULL) /* one node at a time */
        status = store_script(engine->store, "SELECT pg_advisory_xact_lock(1397050444)", why);
    if (status == OK)
        status = check_in_transaction(engine, own_loss, &recorded, why);
    if (status != OK) {
        store_rollback(engine->store);
        return status;
    }
    TRY(store_commit(engine->store, why));
    if (recorded)
        engine->chain = engine->chain_after;
    return OK;
}

static enum status take_clock(void *ctx, const void *row, struct why *why)
{
    (void)why;
    *(int64_t *)ctx = ((const struct r_clock_get *)row)->us;
    return OK;
}

/* Another node, or a person, may have changed it. The server's clock is read with it: batches that are decided before they are sent go by it. */
void epoch_refresh(struct engine *engine)
{
    struct epoch_facts facts = {0};
    struct r_timeline_get current = {0, 1};
    struct why why;
    int64_t clock_us = 0;
    if (engine->store->lost)
        return;
    if (engine->postgres_url != NULL && store_queue(engine->store, &CLOCK_GET, NULL, 0, take_clock, &clock_us, &why) != OK)
        return;
    if (read_facts(engine->store, &facts, &current, &why) != OK)
        return;
    if (clock_us != 0)
        atomic_store(&engine->clock_offset_us, clock_us - engine->env->boot_us(engine->env));
    if (facts.epoch == 0)
        return;
    epoch_take(engine, facts.epoch, facts.quarantine, facts.since_us);
    if (current.synchronous != facts.synchronous && epoch_check(engine, false, &why) != OK)
        LOG(LOG_WARN, "the standby's mode could not be noted", LOG_CSTR("why", why.text));
}

bool engine_quarantine(struct engine *engine, int64_t *ret_epoch, int64_t *ret_since_us, struct why *ret_why)
{
    pthread_mutex_lock(&engine->intake_lock);
    bool quarantine = engine->quarantine;
    *ret_epoch = engine->epoch;
    *ret_since_us = engine->quarantine_since_us;
    *ret_why = engine->quarantine_why;
    pthread_mutex_unlock(&engine->intake_lock);
    return quarantine;
}

enum status quarantine_lift(struct store *store, struct why *why)
{
    char text[TEXT_SIZE] = "";
    struct q_meta_get get = {BYTES("quarantine")};
    TRY(store_run(store, &META_GET, &get, 1, take_text, text, NULL, why));
    if (text[0] == '\0')
        return why_set(why, NOTHING, "there is no quarantine");
    return write_text(store, "quarantine", "", why);
}
