/* A semel built without PostgreSQL says so. */
#include "store/listener.h"
#include "store/store.h"

enum status store_open_postgres(const char *url, enum store_access access, int lane, struct store **ret_store, int *ret_lane,
                                struct why *why)
{
    (void)url, (void)access, (void)lane, (void)ret_store, (void)ret_lane;
    return why_set(why, INVALID, "this semel was built without PostgreSQL: leave --db out, or build it with -Dpostgres=enabled");
}

/* ---- nobody to listen to ---- */

enum status listener_new(const char *url, struct listener **ret_listener, struct why *why)
{
    (void)url, (void)ret_listener;
    return why_set(why, INVALID, "this semel was built without PostgreSQL");
}

void listener_free(struct listener *listener)
{
    ASSERT(listener == NULL);
}

enum status listener_connect(struct listener *listener, struct why *why)
{
    (void)listener;
    return why_set(why, INVALID, "this semel was built without PostgreSQL");
}

bool listener_is_connected(const struct listener *listener)
{
    (void)listener;
    return false;
}

enum status listener_wait(struct listener *listener, int64_t wait_us, void (*heard)(void *ctx, struct bytes message), void *ctx,
                          struct why *why)
{
    (void)listener, (void)wait_us, (void)heard, (void)ctx;
    return why_set(why, INVALID, "this semel was built without PostgreSQL");
}

enum status listener_say(struct listener *listener, struct bytes message, struct why *why)
{
    (void)listener, (void)message;
    return why_set(why, INVALID, "this semel was built without PostgreSQL");
}

void listener_wake(struct listener *listener)
{
    (void)listener;
}
