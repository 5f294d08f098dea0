#include "engine/hear.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/when.h"
#include "engine/engine_own.h"
#include "store/listener.h"

#define HEX_SIZE 16
#define NAMES_MAX ((LISTENER_MESSAGE_MAX - 1) / HEX_SIZE)
#define WANTED_SLOTS 4096
#define WANTED_PROBES 16
#define WANTED_US (30 * WHEN_SECOND) /* then it is forgotten; whoever still waits says it again before */
#define RECONNECT_US WHEN_SECOND
#define CALL_EVERY_US (50 * WHEN_MS)
#define REST_US WHEN_SECOND

struct wanted {
    int64_t intent, until_us;
};

struct hear {
    struct engine *engine;
    struct env *env;
    struct listener *listener;
    pthread_t thread;
    bool started;
    int64_t connect_us; /* when to try again */
    bool lost_said;
    atomic_bool stopping, connected, others; /* others: another node was heard at least once */
    _Atomic int64_t wanted_until_us;         /* nobody waits for anything after this; boot clock */
    _Atomic int64_t called_us;

    pthread_mutex_t lock; /* for what is below */
    struct wanted wanted[WANTED_SLOTS];
    int64_t wanted_all_us; /* until then others wait for more than can be kept */
    int64_t waits[NAMES_MAX];
    size_t wait_count;
    bool calls, greets;
    int64_t heard[HEARD_MAX];
    size_t heard_count;
    bool heard_all;
    void (*called)(void *arg);
    void *called_arg;
};

/* ---- the words ---- */

static struct bytes write_names(char kind, const int64_t *intents, size_t count, char *text)
{
    static const char digits[] = "0123456789abcdef";
    size_t len = 0;
    text[len++] = kind;
    for (size_t i = 0; i < count; i++)
        for (int shift = 60; shift >= 0; shift -= 4)
            text[len++] = digits[((uint64_t)intents[i] >> shift) & 15];
    return (struct bytes){text, len};
}

static bool read_name(struct bytes hex, int64_t *ret_intent)
{
    uint64_t n = 0;
    for (size_t i = 0; i < hex.len; i++) {
        char c = hex.at[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        n = n << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *ret_intent = (int64_t)n;
    return true;
}

/* ---- what others wait for ---- */

static struct wanted *find_wanted(struct hear *hear, int64_t intent, int64_t boot_us)
{
    size_t first = (size_t)(((uint64_t)intent * 0x9E3779B97F4A7C15u) >> 52);
    struct wanted *free = NULL;
    for (size_t i = 0; i < WANTED_PROBES; i++) {
        struct wanted *at = &hear->wanted[(first + i) % WANTED_SLOTS];
        if (at->intent == intent && at->until_us > boot_us)
            return at;
        if (free == NULL && at->until_us <= boot_us)
            free = at;
    }
    return free;
}
_Static_assert(WANTED_SLOTS == 1 << 12, "the slot is the top 12 bits");

static void note_wanted(struct hear *hear, int64_t intent, int64_t boot_us)
{
    struct wanted *at = find_wanted(hear, intent, boot_us);
    if (at != NULL)
        *at = (struct wanted){intent, boot_us + WANTED_US};
    else
        hear->wanted_all_us = boot_us + WANTED_US;
    atomic_store(&hear->wanted_until_us, boot_us + WANTED_US);
}

/* It is told once: whoever has to wait on says so again. */
static bool take_wanted(struct hear *hear, int64_t intent, int64_t boot_us)
{
    struct wanted *at = find_wanted(hear, intent, boot_us);
    bool wanted = at != NULL && at->intent == intent && at->until_us > boot_us;
    if (wanted)
        at->until_us = 0;
    return wanted || boot_us < hear->wanted_all_us;
}

static struct bytes write_moved(struct hear *hear, struct intent *const *intents, size_t count, struct arena *arena,
                                int64_t boot_us)
{
    int64_t names[NAMES_MAX];
    size_t found = 0;
    pthread_mutex_lock(&hear->lock);
    for (size_t i = 0; i < count && found <= NAMES_MAX; i++) {
        const struct row_intent *row = &intents[i]->row;
        bool held = intents[i]->exists && (row->state == STATE_CLAIMED || row->state == STATE_SENT);
        if ((!intents[i]->dirty && !intents[i]->drop) || held || !take_wanted(hear, row->id, boot_us))
            continue;
        if (found < NAMES_MAX)
            names[found] = row->id;
        found++;
    }
    pthread_mutex_unlock(&hear->lock);
    char text[LISTENER_MESSAGE_MAX];
    if (found == 0)
        return BYTES_NONE;
    return arena_dup(arena, found <= NAMES_MAX ? write_names('M', names, found, text) : BYTES("M*"));
}

struct bytes hear_moved(struct hear *hear, struct intent *const *intents, size_t count, struct arena *arena)
{
    int64_t boot_us = hear != NULL ? hear->env->boot_us(hear->env) : 0;
    if (hear == NULL || atomic_load(&hear->wanted_until_us) <= boot_us)
        return BYTES_NONE; /* the usual case costs nothing */
    return write_moved(hear, intents, count, arena, boot_us);
}

/* ---- what is waited for here ---- */

void hear_wait_for(struct hear *hear, int64_t intent)
{
    if (!hear_is_on(hear))
        return;
    pthread_mutex_lock(&hear->lock);
    bool said = hear->wait_count > 0 && hear->waits[hear->wait_count - 1] == intent, first = hear->wait_count == 0;
    if (!said && hear->wait_count < NAMES_MAX)
        hear->waits[hear->wait_count++] = intent;
    pthread_mutex_unlock(&hear->lock);
    if (first)
        listener_wake(hear->listener);
}

size_t hear_take(struct hear *hear, int64_t ret_intents[HEARD_MAX], bool *ret_all)
{
    *ret_all = false;
    if (hear == NULL)
        return 0;
    pthread_mutex_lock(&hear->lock);
    size_t count = hear->heard_count;
    memcpy(ret_intents, hear->heard, count * sizeof *ret_intents);
    *ret_all = hear->heard_all;
    hear->heard_count = 0;
    hear->heard_all = false;
    pthread_mutex_unlock(&hear->lock);
    return count;
}

bool hear_is_on(struct hear *hear)
{
    return hear != NULL && atomic_load(&hear->connected) && atomic_load(&hear->others);
}

/* ---- effects ---- */

void hear_call_others(struct hear *hear)
{
    if (!hear_is_on(hear))
        return;
    int64_t now = hear->env->boot_us(hear->env);
    if (now - atomic_load(&hear->called_us) < CALL_EVERY_US)
        return;
    atomic_store(&hear->called_us, now);
    pthread_mutex_lock(&hear->lock);
    hear->calls = true;
    pthread_mutex_unlock(&hear->lock);
    listener_wake(hear->listener);
}

void hear_on_call(struct hear *hear, void (*called)(void *arg), void *arg)
{
    if (hear == NULL)
        return;
    pthread_mutex_lock(&hear->lock);
    hear->called = called;
    hear->called_arg = arg;
    pthread_mutex_unlock(&hear->lock);
}

/* ---- hearing ---- */

/* True when the writer has to know. */
static bool take_moved(struct hear *hear, struct bytes names)
{
    atomic_fetch_add(&hear->engine->counts.heard, 1);
    if (atomic_load(&hear->engine->counts.waiting) == 0)
        return false;
    hear->heard_all |= bytes_is(names, "*");
    for (int64_t intent; names.len >= HEX_SIZE; names = bytes_from(names, HEX_SIZE)) {
        if (!read_name((struct bytes){names.at, HEX_SIZE}, &intent))
            break;
        if (hear->heard_count == HEARD_MAX)
            hear->heard_all = true;
        else
            hear->heard[hear->heard_count++] = intent;
    }
    return hear->heard_all || hear->heard_count > 0;
}

static void take_waits(struct hear *hear, struct bytes names)
{
    int64_t boot_us = hear->env->boot_us(hear->env);
    for (int64_t intent; names.len >= HEX_SIZE; names = bytes_from(names, HEX_SIZE))
        if (read_name((struct bytes){names.at, HEX_SIZE}, &intent))
            note_wanted(hear, intent, boot_us);
    atomic_fetch_add(&hear->engine->counts.asked, 1);
}

static void wake_writer(struct engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    engine->has_heard = true;
    pthread_mutex_unlock(&engine->lock);
    pthread_cond_signal(&engine->wake);
}

/* A word that a later version says is passed over. */
static void take_message(void *ctx, struct bytes message)
{
    struct hear *hear = ctx;
    bool wake = false;
    if (message.len == 0)
        return;
    struct bytes rest = bytes_from(message, 1);
    pthread_mutex_lock(&hear->lock);
    switch (message.at[0]) {
    case 'H':
        hear->greets = true;
        atomic_store(&hear->others, true);
        break;
    case 'h':
        atomic_store(&hear->others, true);
        break;
    case 'W':
        take_waits(hear, rest);
        break;
    case 'M':
        wake = take_moved(hear, rest);
        break;
    case 'O':
        if (hear->called != NULL)
            hear->called(hear->called_arg);
        break;
    }
    pthread_mutex_unlock(&hear->lock);
    if (wake)
        wake_writer(hear->engine);
}

/* ---- saying ---- */

static enum status say_all(struct hear *hear, struct why *why)
{
    int64_t waits[NAMES_MAX];
    char text[LISTENER_MESSAGE_MAX];
    pthread_mutex_lock(&hear->lock);
    size_t count = hear->wait_count;
    bool calls = hear->calls, greets = hear->greets;
    memcpy(waits, hear->waits, count * sizeof *waits);
    hear->wait_count = 0;
    hear->calls = hear->greets = false;
    pthread_mutex_unlock(&hear->lock);
    if (greets)
        TRY(listener_say(hear->listener, BYTES("h"), why));
    if (count > 0)
        TRY(listener_say(hear->listener, write_names('W', waits, count, text), why));
    return calls ? listener_say(hear->listener, BYTES("O"), why) : OK;
}

/* ---- the thread ---- */

static void connect_if_due(struct hear *hear)
{
    struct why why = {""};
    int64_t now = hear->env->boot_us(hear->env);
    if (listener_is_connected(hear->listener) || now < hear->connect_us)
        return;
    hear->connect_us = now + RECONNECT_US;
    enum status status = listener_connect(hear->listener, &why);
    if (status == OK)
        status = listener_say(hear->listener, BYTES("H"), &why);
    atomic_store(&hear->connected, status == OK);
    if (status != OK && !hear->lost_said)
        LOG(LOG_WARN, "other nodes are not heard; what waits for them looks by itself", LOG_CSTR("why", why.text));
    if (status == OK && hear->lost_said)
        LOG(LOG_INFO, "other nodes are heard again");
    hear->lost_said = status != OK;
}

static void *hear_main(void *arg)
{
    struct hear *hear = arg;
    struct why why = {""};
    while (!atomic_load(&hear->stopping)) {
        connect_if_due(hear);
        enum status status = atomic_load(&hear->connected) ? say_all(hear, &why) : OK;
        if (status == OK)
            status = listener_wait(hear->listener, REST_US, take_message, hear, &why);
        if (status == OK)
            continue;
        LOG(LOG_WARN, "other nodes are not heard; what waits for them looks by itself", LOG_CSTR("why", why.text));
        hear->lost_said = true;
        atomic_store(&hear->connected, false);
    }
    return NULL;
}

enum status hear_new(struct engine *engine, const char *url, struct hear **ret_hear, struct why *why)
{
    struct hear *hear = calloc(1, sizeof *hear);
    if (hear == NULL)
        return why_set(why, FULL, "no memory to listen to other nodes");
    hear->engine = engine;
    hear->env = engine->env;
    pthread_mutex_init(&hear->lock, NULL);
    enum status status = listener_new(url, &hear->listener, why);
    if (status != OK) {
        free(hear);
        return status;
    }
    *ret_hear = hear;
    return OK;
}

enum status hear_start(struct hear *hear, struct why *why)
{
    if (pthread_create(&hear->thread, NULL, hear_main, hear) != 0)
        return why_set(why, FULL, "no thread could be started");
    hear->started = true;
    return OK;
}

void hear_stop(struct hear *hear)
{
    if (hear == NULL || !hear->started)
        return;
    atomic_store(&hear->stopping, true);
    listener_wake(hear->listener);
    pthread_join(hear->thread, NULL);
    hear->started = false;
    atomic_store(&hear->connected, false);
}

void hear_free(struct hear *hear)
{
    if (hear == NULL)
        return;
    listener_free(hear->listener);
    free(hear);
}
