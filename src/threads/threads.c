#include "threads/threads.h"

#include "base/mutant.h"
#include "threads/answer.h"

#include <stdio.h>

struct bytes thread_key(int64_t thread, int64_t epoch, struct bytes action, struct arena *arena)
{
    char id[32];
    size_t len = id_format("thr", thread, id);
    return arena_printf(arena, "%.*s:%lld:%.*s", (int)len, id, (long long)epoch, BYTES_ARG(action));
}

void thread_person(struct bytes pepper, struct bytes space, struct bytes identity, uint8_t ret[KEY_HASH_SIZE])
{
    struct bytes parts[] = {pepper, BYTES("thread"), BYTES("identity"), space, identity};
    struct hash hash = hash_parts(parts, sizeof parts / sizeof *parts);
    memcpy(ret, hash.at, KEY_HASH_SIZE);
}

static enum status take_answered(void *ctx, const void *row, struct why *why)
{
    (void)row;
    (void)why;
    *(bool *)ctx = true;
    return OK;
}

/* What the batch has decided and not written yet, by the rule of THREAD_ANSWERED. */
static bool is_answered_now(const struct ledger *ledger, const struct q_thread_answered *find)
{
    for (size_t i = 0; i < ledger->intent_count; i++) {
        const struct row_intent *row = &ledger->intents[i]->row;
        bool here = bytes_eq(row->thread, find->thread) && row->action.at != NULL && bytes_eq(row->space, find->space);
        bool other = row->id > find->question && !bytes_eq(row->workflow, find->answers);
        if (ledger->intents[i]->fresh && here && (other || bytes_starts(row->key, find->epoch)))
            return true;
    }
    return false;
}

enum status thread_is_answered(struct store *store, const struct ledger *ledger, struct bytes pepper,
                               const struct row_thread *thread, bool *ret_answered, struct why *why)
{
    char id[32], epoch[64];
    size_t len = id_format("thr", thread->id, id);
    int epoch_len = snprintf(epoch, sizeof epoch, "%.*s:%lld:", (int)len, id, (long long)thread->epoch);
    struct q_thread_answered find = {thread->space, {id, len}, thread->question, {epoch, (size_t)epoch_len}, ANSWERS_WORKFLOW};
    struct q_turn_lock turn = {ledger_turn(pepper, thread->space, (struct bytes){id, len})};
    bool answered = !MUTANT(BATCH_UNSEEN) && is_answered_now(ledger, &find);
    if (!answered)
        TRY(store_run(store, &TURN_LOCK, &turn, 1, NULL, NULL, NULL, why));
    if (!answered)
        TRY(store_run(store, &THREAD_ANSWERED, &find, 1, take_answered, &answered, NULL, why));
    *ret_answered = answered;
    return OK;
}

void thread_ask(struct row_thread *thread, bool answered, int64_t event, int64_t wall_us)
{
    thread->updated = wall_us;
    if (thread->epoch > 0 && (!answered || MUTANT(EPOCH_STANDS)) && !MUTANT(EPOCH_RUNS))
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
    return thread->burst > most && !MUTANT(LOOP_UNSEEN);
}
