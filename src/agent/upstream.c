#include "agent/upstream.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/when.h"

#define QUEUED_MAX 4096
#define LOOK_EVERY_US (500 * WHEN_MS)

struct upstream {
    struct transport *transport;
    pthread_t thread;
    pthread_mutex_t lock;
    struct transport_call *queued[QUEUED_MAX];
    size_t count;
    bool stop;
};

static void refuse(struct transport_call *call, const char *reason)
{
    (void)why_set(&call->why, RETRY, "%s", reason);
    call->end = TRANSPORT_NOT_SENT;
    call->done(call);
}

static bool take(struct upstream *upstream, struct transport_call **ret_calls, size_t *ret_count)
{
    pthread_mutex_lock(&upstream->lock);
    *ret_count = upstream->count;
    memcpy(ret_calls, upstream->queued, upstream->count * sizeof *ret_calls);
    upstream->count = 0;
    bool stop = upstream->stop;
    pthread_mutex_unlock(&upstream->lock);
    return !stop;
}

static void *upstream_main(void *arg)
{
    struct upstream *upstream = arg;
    static _Thread_local struct transport_call *calls[QUEUED_MAX];
    size_t count;
    while (take(upstream, calls, &count)) {
        for (size_t i = 0; i < count; i++)
            upstream->transport->start(upstream->transport, calls[i]);
        upstream->transport->run(upstream->transport, LOOK_EVERY_US);
    }
    for (size_t i = 0; i < count; i++)
        refuse(calls[i], "semel stops");
    upstream->transport->abandon(upstream->transport);
    return NULL;
}

enum status upstream_open(struct env *env, struct secrets *secrets, struct upstream **ret_upstream, struct why *why)
{
    struct upstream *upstream = calloc(1, sizeof *upstream);
    ASSERT(upstream != NULL);
    enum status status = transport_open(env, secrets, &upstream->transport, why);
    if (status == OK)
        pthread_mutex_init(&upstream->lock, NULL);
    if (status == OK && pthread_create(&upstream->thread, NULL, upstream_main, upstream) != 0) {
        upstream->transport->close(upstream->transport);
        status = why_set(why, FULL, "no thread could be started");
    }
    if (status != OK) {
        free(upstream);
        return status;
    }
    *ret_upstream = upstream;
    return OK;
}

void upstream_send(struct upstream *upstream, struct transport_call *call)
{
    pthread_mutex_lock(&upstream->lock);
    bool room = upstream->count < QUEUED_MAX && !upstream->stop;
    if (room)
        upstream->queued[upstream->count++] = call;
    pthread_mutex_unlock(&upstream->lock);
    if (room)
        upstream->transport->wake(upstream->transport);
    else
        refuse(call, "too many calls are under way");
}

void upstream_close(struct upstream *upstream)
{
    if (upstream == NULL)
        return;
    pthread_mutex_lock(&upstream->lock);
    upstream->stop = true;
    pthread_mutex_unlock(&upstream->lock);
    upstream->transport->wake(upstream->transport);
    pthread_join(upstream->thread, NULL);
    upstream->transport->close(upstream->transport);
    free(upstream);
}
