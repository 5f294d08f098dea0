#include "http/conn.h"

#include <signal.h>

const struct http_limits http_limits_default = {
    .body_size_max = 1024 * 1024,
    .head_timeout_us = 10 * 1000 * 1000,
    .body_timeout_us = 30 * 1000 * 1000,
    .body_rate_after_us = 5 * 1000 * 1000,
    .body_rate_min = 1024,
    .idle_timeout_us = 30 * 1000 * 1000,
    .connections_max = 4096,
    .connections_per_peer = 64,
};

/* ---- stopping ---- */

static void close_all(struct conn_list *list)
{
    while (!TAILQ_EMPTY(list))
        conn_close(TAILQ_FIRST(list));
}

static void close_listener(struct http_server *server)
{
    if (server->listener_open)
        uv_close(&server->listener.handle, NULL);
    server->listener_open = false;
}

void server_conn_closed(struct http_server *server)
{
    if (server->stopping && server->open_count == 0)
        server->ended = true;
}

static void close_connections(struct http_server *server)
{
    close_all(&server->idle);
    close_all(&server->busy);
    close_all(&server->linger);
}

/* A second call can only shorten the grace of the first. */
static void begin_stop(struct http_server *server, int64_t grace_us)
{
    int64_t now_us = loop_now_us(server);
    int64_t deadline_us = grace_us < INT64_MAX - now_us ? now_us + grace_us : INT64_MAX;
    if (!server->stopping || deadline_us < server->stop_deadline_us)
        server->stop_deadline_us = deadline_us;
    server->stopping = true;
    close_listener(server);
    close_all(&server->idle);
    if (grace_us == 0)
        close_connections(server);
    server_conn_closed(server);
}

void http_server_stop(struct http_server *server, int64_t grace_us)
{
    atomic_store(&server->stop_grace_us, grace_us > 0 ? grace_us : 0);
    uv_async_send(&server->wake);
}

/* ---- time ---- */

static void sweep_front(struct conn_list *list, int64_t now_us)
{
    struct http_conn *conn;
    while ((conn = TAILQ_FIRST(list)) != NULL && conn->deadline_us <= now_us)
        conn_check_time(conn, now_us);
}

/* After the loop was held up, what clients sent meanwhile is still in the kernel: it is read before anyone is called late. */
static void on_sweep(uv_timer_t *timer)
{
    struct http_server *server = timer->data;
    int64_t now_us = loop_now_us(server), since_us = now_us - server->swept_us;
    server->swept_us = now_us;
    if (server->stopping && now_us >= server->stop_deadline_us)
        close_connections(server);
    if (since_us > 4 * SWEEP_EVERY_MS * 1000)
        return;
    sweep_front(&server->idle, now_us);
    sweep_front(&server->linger, now_us);
    struct http_conn *conn = TAILQ_FIRST(&server->busy), *next;
    for (; conn != NULL; conn = next) {
        next = TAILQ_NEXT(conn, link);
        conn_check_time(conn, now_us);
    }
}

static void on_every(uv_timer_t *timer)
{
    struct http_every *every = timer->data;
    every->fn(every->arg);
}

void http_server_every(struct http_server *server, int64_t every_us, void (*fn)(void *arg), void *arg)
{
    struct http_every *every = calloc(1, sizeof *every);
    ASSERT(every != NULL);
    *every = (struct http_every){.fn = fn, .arg = arg, .next = server->every};
    server->every = every;
    uv_timer_init(&server->loop, &every->timer);
    every->timer.data = every;
    uint64_t every_ms = every_us < 1000 ? 1 : (uint64_t)every_us / 1000;
    uv_timer_start(&every->timer, on_every, every_ms, every_ms);
}

/* ---- work from other threads ---- */

/* Work that was handed over must not get lost, so there is no way to go on without memory. */
static void add_post(struct posts *posts, struct post post)
{
    if (posts->len == posts->cap) {
        posts->cap = posts->cap > 0 ? posts->cap * 2 : 256;
        posts->at = realloc(posts->at, posts->cap * sizeof *posts->at);
        ASSERT(posts->at != NULL);
    }
    posts->at[posts->len++] = post;
}

/* Between two turns the loop's own thread looks at the posts before it waits, so it need not wake itself. */
static bool is_between(struct http_server *server)
{
    uv_thread_t self = uv_thread_self();
    return atomic_load(&server->between) && uv_thread_equal(&self, &server->thread);
}

/* Only the first one wakes the loop: until that wake-up, all others ride along. */
void http_server_post(struct http_server *server, void (*fn)(void *arg), void *arg)
{
    uv_mutex_lock(&server->posts_lock);
    add_post(&server->posts, (struct post){fn, arg});
    bool wake = !server->posts_woken && !is_between(server);
    server->posts_woken = server->posts_woken || wake;
    uv_mutex_unlock(&server->posts_lock);
    if (wake)
        uv_async_send(&server->wake);
}

/* Takes the whole queue at once; what is posted meanwhile comes with the next wake-up. */
static void run_posts(struct http_server *server)
{
    uv_mutex_lock(&server->posts_lock);
    struct posts taken = server->posts;
    server->posts = server->posts_taken;
    server->posts_woken = false;
    uv_mutex_unlock(&server->posts_lock);
    for (size_t i = 0; i < taken.len; i++)
        taken.at[i].fn(taken.at[i].arg);
    taken.len = 0;
    server->posts_taken = taken;
}

static void on_wake(uv_async_t *wake)
{
    struct http_server *server = wake->data;
    run_posts(server);
    int64_t grace_us = atomic_exchange(&server->stop_grace_us, -1);
    if (grace_us >= 0)
        begin_stop(server, grace_us);
}

/* ---- life ---- */

/* At least two buckets for each connection that may be open. */
static bool make_peers(struct http_server *server)
{
    server->peer_bucket_count = 64;
    while (server->peer_bucket_count < 2 * (size_t)server->config.limits.connections_max)
        server->peer_bucket_count *= 2;
    server->peers = calloc(server->peer_bucket_count, sizeof(struct http_conn *));
    return server->peers != NULL;
}

static enum status init_memory(struct http_server *server, struct why *why)
{
    TAILQ_INIT(&server->idle);
    TAILQ_INIT(&server->busy);
    TAILQ_INIT(&server->linger);
    TAILQ_INIT(&server->closing);
    buf_init(&server->out, REPLY_SIZE_MAX);
    atomic_init(&server->stop_grace_us, -1);
    server->scratch = malloc(SCRATCH_SIZE);
    if (server->scratch == NULL || !make_peers(server))
        return why_set(why, FULL, "there is no memory for the server");
    return OK;
}

static enum status init_loop(struct http_server *server, struct why *why)
{
    if (uv_loop_init(&server->loop) != 0)
        return why_set(why, FULL, "there are no file descriptors left for an event loop");
    if (uv_async_init(&server->loop, &server->wake, on_wake) != 0) {
        uv_loop_close(&server->loop);
        return why_set(why, FULL, "there are no file descriptors left for an event loop");
    }
    server->wake.data = server;
    uv_timer_init(&server->loop, &server->sweep);
    server->sweep.data = server;
    int failed = uv_mutex_init(&server->posts_lock) | uv_mutex_init(&server->lock);
    ASSERT(failed == 0);
    return OK;
}

static void free_memory(struct http_server *server)
{
    tls_close(server->tls);
    buf_release(&server->out);
    free(server->scratch);
    free(server->peers);
    free(server->posts.at);
    free(server->posts_taken.at);
    free(server);
}

static enum status open_tls(struct http_server *server, struct why *why)
{
    const struct http_server_config *config = &server->config;
    if ((config->tls_cert == NULL) != (config->tls_key == NULL))
        return why_set(why, INVALID, "TLS needs both a certificate and a key");
    return config->tls_cert != NULL ? tls_open(config->tls_cert, config->tls_key, "http/1.1", &server->tls, why) : OK;
}

enum status http_server_open(const struct http_server_config *config, struct http_server **ret_server, struct why *why)
{
    struct http_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return why_set(why, FULL, "there is no memory for the server");
    server->config = *config;
    enum status status = init_memory(server, why);
    if (status == OK)
        status = open_tls(server, why);
    if (status == OK)
        status = init_loop(server, why);
    if (status != OK) {
        free_memory(server);
        return status;
    }
    status = listener_open(server, why);
    if (status == OK)
        *ret_server = server;
    else
        http_server_close(server);
    return status;
}

const char *http_server_address(const struct http_server *server)
{
    return server->address;
}

bool http_server_is_tls(const struct http_server *server)
{
    return server->tls != NULL;
}

struct uv_loop_s *http_server_loop(struct http_server *server)
{
    return &server->loop;
}

const struct http_counts *http_server_counts(const struct http_server *server)
{
    return &server->counts;
}

/* libuv writes without MSG_NOSIGNAL; blocked on this thread, SIGPIPE stays a plain error, whatever the program does with it. */
static void block_sigpipe(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* The loop is free meanwhile. Who stands in is woken to give it back; what was posted here is called here. */
static void go_between(struct http_server *server)
{
    atomic_store(&server->between, true);
    uv_mutex_unlock(&server->lock);
    server->config.between(server->config.user);
    atomic_store(&server->between, false);
    if (uv_mutex_trylock(&server->lock) != 0) {
        uv_async_send(&server->wake);
        uv_mutex_lock(&server->lock);
    }
    uv_update_time(&server->loop);
    run_posts(server);
}

void http_server_run(struct http_server *server)
{
    block_sigpipe();
    uv_mutex_lock(&server->lock);
    server->thread = uv_thread_self();
    uv_update_time(&server->loop);
    server->swept_us = loop_now_us(server);
    uv_timer_start(&server->sweep, on_sweep, SWEEP_EVERY_MS, SWEEP_EVERY_MS);
    while (!server->ended) {
        uv_run(&server->loop, UV_RUN_ONCE);
        if (server->config.between != NULL)
            go_between(server);
    }
    uv_mutex_unlock(&server->lock);
}

void http_server_stand_in(struct http_server *server)
{
    block_sigpipe();
    if (uv_mutex_trylock(&server->lock) != 0)
        return;
    while (atomic_load(&server->between) && !server->ended)
        uv_run(&server->loop, UV_RUN_ONCE);
    uv_mutex_unlock(&server->lock);
}

static void on_every_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void close_handles(struct http_server *server)
{
    close_listener(server);
    close_connections(server);
    for (struct http_every *every = server->every, *next; every != NULL; every = next) {
        next = every->next;
        uv_close((uv_handle_t *)&every->timer, on_every_closed);
    }
    uv_close((uv_handle_t *)&server->sweep, NULL);
    uv_close((uv_handle_t *)&server->wake, NULL);
}

/* Replies that were posted too late for the loop are run for the sake of whoever made them; they find their clients gone. */
void http_server_close(struct http_server *server)
{
    close_connections(server);
    run_posts(server);
    close_handles(server);
    while (uv_run(&server->loop, UV_RUN_DEFAULT) != 0)
        continue;
    while (!TAILQ_EMPTY(&server->closing))
        conn_free(TAILQ_FIRST(&server->closing));
    int failed = uv_loop_close(&server->loop);
    ASSERT(failed == 0);
    uv_mutex_destroy(&server->posts_lock);
    uv_mutex_destroy(&server->lock);
    free_memory(server);
}
