#include "threads/threads.h"

#include <stdio.h>

struct bytes thread_key(int64_t thread, int64_t epoch, struct bytes action, struct arena *arena)
{
    char id[32];
    size_t len = id_format("thr", thread, id);
    return arena_printf(arena, "%.*s:%lld:%.*s", (int)len, id, (long long)epoch, BYTES_ARG(action));
}

static enum status take_answered(void *ctx, const void *row, struct why *why)
{
    (void)row;
    (void)why;
    *(bool *)ctx = true;
    return OK;
}

/* What the batch has decided and not written yet. */
static bool is_answered_now(const struct ledger *ledger, struct bytes space, struct bytes thread)
{
    for (size_t i = 0; i < ledger->intent_count; i++) {
        const struct intent *intent = ledger->intents[i];
        if (intent->fresh && bytes_eq(intent->row.thread, thread) && intent->row.action.at != NULL &&
            bytes_eq(intent->row.space, space))
            return true;
    }
    return false;
}

enum status thread_is_answered(struct store *store, const struct ledger *ledger, const struct row_thread *thread,
                               bool *ret_answered, struct why *why)
{
    char id[32], epoch[64];
    size_t len = id_format("thr", thread->id, id);
    int epoch_len = snprintf(epoch, sizeof epoch, "%.*s:%lld:", (int)len, id, (long long)thread->epoch);
    struct q_thread_answered find = {thread->space, {id, len}, thread->question, {epoch, (size_t)epoch_len}};
    bool answered = is_answered_now(ledger, thread->space, (struct bytes){id, len});
    if (!answered)
        TRY(store_run(store, &THREAD_ANSWERED, &find, 1, take_answered, &answered, NULL, why));
    *ret_answered = answered;
    return OK;
}

void thread_ask(struct row_thread *thread, bool answered, int64_t event, int64_t wall_us)
{
    thread->updated = wall_us;
    if (thread->epoch > 0 && !answered)
        return;
    thread->epoch++;
    thread->question = event;
}

bool thread_is_loop(struct row_thread *thread, int64_t wall_us, int64_t most, int64_t every_us)
{
    if (thread->burst == 0 || wall_us - thread->burst_at > every_us || wall_us < thread->burst_at) {
        thread->burst = 0;
        thread->burst_at = wall_us;
    }
    thread->burst++;
    return thread->burst > most;
}
