/* A semel built without PostgreSQL says so. */
#include "store/store.h"

enum status store_open_postgres(const char *url, enum store_access access, int lane, struct store **ret_store, int *ret_lane,
                                struct why *why)
{
    (void)url, (void)access, (void)lane, (void)ret_store, (void)ret_lane;
    return why_set(why, INVALID, "this semel was built without PostgreSQL: leave --db out, or build it with -Dpostgres=enabled");
}
