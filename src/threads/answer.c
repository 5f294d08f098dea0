#include "threads/answer.h"

#include "base/buf.h"
#include "threads/threads.h"

#define OWN_PREFIX BYTES("thr_") /* semel's own threads; a user's own text cannot begin so */

bool answer_is_named(const struct claim_naming *naming, const struct answer_naming *answer)
{
    return naming->key.at == NULL && naming->action.at != NULL && (naming->thread.at != NULL || answer->event.at != NULL);
}

enum status answer_check(const struct claim_naming *naming, const struct answer_naming *answer, struct bytes *ret_field,
                         struct why *why)
{
    const struct {
        const char *name;
        bool said;
    } extras[] = {
        {"event", answer->event.at != NULL}, {"question", answer->question.at != NULL}, {"epoch", answer->epoch != EPOCH_UNSAID}};
    bool named = answer_is_named(naming, answer);
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++) {
        if (!extras[i].said || named)
            continue;
        *ret_field = bytes_of(extras[i].name);
        return why_set(why, INVALID, "%s names an answer in a conversation: it goes with thread and action, and without a key.",
                       extras[i].name);
    }
    if (!named || naming->workflow.at == NULL || bytes_eq(naming->workflow, ANSWERS_WORKFLOW))
        return OK;
    *ret_field = BYTES("workflow");
    return why_set(
        why, INVALID,
        "Answers in a conversation belong to the workflow \"answers\", whoever asks: leave workflow out, or give a key.");
}

/* ---- a conversation of the user's own ---- */

/* Without ':' and control characters, so that the key's parts cannot run into each other. */
static void add_part(struct buf *buf, struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c == ':' || c == '%' || c < 0x20 || c == 0x7f)
            buf_printf(buf, "%%%02X", c);
        else
            buf_add_char(buf, (char)c);
    }
}

static enum status name_own(const struct answer_naming *answer, struct arena *arena, struct claim_naming *naming,
                            struct bytes *ret_field, struct why *why)
{
    *ret_field = answer->event.at != NULL ? BYTES("event") : BYTES("epoch");
    if (answer->event.at != NULL || answer->epoch != EPOCH_UNSAID)
        return why_set(why, INVALID,
                       "semel did not see this conversation come in, so it has no events and epochs of it; say question.");
    *ret_field = BYTES("question");
    if (answer->question.at == NULL)
        return why_set(why, INVALID,
                       "semel did not see this conversation come in: say which question is answered, such as the message's id.");
    struct buf key;
    buf_init(&key, 4 * KEY_SIZE_MAX);
    buf_add(&key, naming->thread);
    buf_add_char(&key, ':');
    add_part(&key, answer->question);
    buf_add_char(&key, ':');
    add_part(&key, naming->action);
    naming->key = key.failed ? BYTES_NONE : arena_dup(arena, buf_bytes(&key));
    buf_release(&key);
    return naming->key.at != NULL ? OK : why_set(why, FULL, "no memory for a key");
}

/* ---- a conversation that came in ---- */

static enum status take_event(void *ctx, const void *row, struct why *why)
{
    struct row_event *event = ctx;
    (void)why;
    *event = *(const struct row_event *)row;
    event->space = event->source = event->content = event->reason = event->explanation = BYTES_NONE;
    return OK;
}

static enum status take_thread(void *ctx, const void *row, struct why *why)
{
    struct row_thread *thread = ctx;
    (void)why;
    *thread = *(const struct row_thread *)row;
    thread->space = BYTES_NONE;
    return OK;
}

/* The thread and the epoch of the event that is answered. */
static enum status look_at_event(struct store *store, struct bytes space, const struct answer_naming *answer, int64_t *ret_thread,
                                 int64_t *ret_epoch, struct why *why)
{
    struct row_event event = {0};
    struct q_event_get get = {.space = space};
    if (!id_parse("evt", answer->event, &get.id))
        return why_set(why, INVALID, "event has to be an event's id, evt_….");
    TRY(store_run(store, &EVENT_GET, &get, 1, take_event, &event, NULL, why));
    if (event.id == 0)
        return why_set(why, NOTHING, "There is no such event.");
    if (event.thread == 0)
        return why_set(why, INVALID, "This event is part of no conversation, or was not decided yet.");
    if (event.epoch == 0)
        return why_set(why, INVALID, "This event is no question: nobody is to answer it.");
    *ret_thread = event.thread;
    *ret_epoch = event.epoch;
    return OK;
}

static enum status check_epoch(const struct answer_naming *answer, const struct row_thread *thread, int64_t *epoch,
                               struct why *why)
{
    if (answer->epoch == EPOCH_UNSAID) {
        *epoch = *epoch != EPOCH_UNSAID ? *epoch : thread->epoch;
        return OK;
    }
    if (answer->epoch > thread->epoch)
        return why_set(why, INVALID, "The conversation is at epoch %lld; there is no question %lld yet.",
                       (long long)thread->epoch, (long long)answer->epoch);
    if (*epoch != EPOCH_UNSAID && *epoch != answer->epoch)
        return why_set(why, INVALID, "The event belongs to epoch %lld; say one of the two.", (long long)*epoch);
    *epoch = answer->epoch;
    return OK;
}

static enum status name_received(struct store *store, struct bytes space, const struct answer_naming *answer, struct arena *arena,
                                 struct claim_naming *naming, struct bytes *ret_field, struct why *why)
{
    int64_t id = 0, event_thread = 0, epoch = EPOCH_UNSAID;
    struct row_thread thread = {0};
    *ret_field = BYTES("question");
    if (answer->question.at != NULL)
        return why_set(why, INVALID, "question is for conversations that semel did not see come in; say event or epoch.");
    if (naming->thread.at != NULL && !id_parse("thr", naming->thread, &id))
        return why_set(why, NOTHING, "There is no such conversation.");
    *ret_field = BYTES("event");
    if (answer->event.at != NULL)
        TRY(look_at_event(store, space, answer, &event_thread, &epoch, why));
    if (id != 0 && event_thread != 0 && event_thread != id)
        return why_set(why, INVALID, "This event belongs to another conversation.");
    struct q_thread_get get = {space, id != 0 ? id : event_thread};
    TRY(store_run(store, &THREAD_GET, &get, 1, take_thread, &thread, NULL, why));
    if (thread.id == 0)
        return why_set(why, NOTHING, "There is no such conversation.");
    *ret_field = BYTES("epoch");
    TRY(check_epoch(answer, &thread, &epoch, why));
    naming->thread = id_text("thr", thread.id, arena);
    naming->key = thread_key(thread.id, epoch, naming->action, arena);
    return naming->key.at != NULL && naming->thread.at != NULL ? OK : why_set(why, FULL, "no memory for a key");
}

enum status answer_name(struct store *store, struct bytes space, const struct answer_naming *answer, struct arena *arena,
                        struct claim_naming *naming, struct bytes *ret_field, struct why *why)
{
    bool received = naming->thread.at == NULL || bytes_starts(naming->thread, OWN_PREFIX);
    if (received)
        TRY(name_received(store, space, answer, arena, naming, ret_field, why));
    else
        TRY(name_own(answer, arena, naming, ret_field, why));
    naming->workflow = ANSWERS_WORKFLOW;
    return OK;
}
