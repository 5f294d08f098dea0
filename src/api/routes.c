#include "api/api.h"

/* Everything that can be asked of semel over HTTP. */
const struct route api_routes[] = {
    {HTTP_GET, "/", 0, root_show},
    {HTTP_GET, "/healthz", 0, health_live},
    {HTTP_GET, "/metrics", SCOPE_READ, health_metrics},
    {HTTP_GET, "/problems/{code}", 0, problem_show},
    {HTTP_GET, "/readyz", 0, health_ready},
    {HTTP_POST, "/v1/claims", SCOPE_CLAIM, claims_create},
    {HTTP_POST, "/v1/claims/{intent}/confirm", SCOPE_CLAIM, claims_confirm},
    {HTTP_POST, "/v1/claims/{intent}/extend", SCOPE_CLAIM, claims_extend},
    {HTTP_POST, "/v1/claims/{intent}/fail", SCOPE_CLAIM, claims_fail},
    {HTTP_POST, "/v1/claims/{intent}/release", SCOPE_CLAIM, claims_release},
    {HTTP_POST, "/v1/claims/{intent}/sent", SCOPE_CLAIM, claims_sent},
    {HTTP_GET, "/v1/decisions", SCOPE_READ, decisions_list},
    {HTTP_GET, "/v1/intents", SCOPE_READ, intents_list},
    {HTTP_GET, "/v1/intents/{intent}", SCOPE_READ, intents_show},
    {HTTP_GET, "/v1/openapi.json", 0, openapi_show},
    {HTTP_GET, "/v1/policy", SCOPE_READ, policy_show},
    {HTTP_PUT, "/v1/policy", SCOPE_ADMIN, policy_put},
    {HTTP_POST, "/v1/quarantine/lift", SCOPE_ADMIN, quarantine_lift_post},
    {HTTP_GET, "/v1/secrets", SCOPE_ADMIN, secrets_list},
    {HTTP_POST, "/v1/secrets/rewrap", SCOPE_ADMIN, secrets_rewrap},
    {HTTP_PUT, "/v1/secrets/{name}", SCOPE_ADMIN, secrets_put},
    {HTTP_DELETE, "/v1/secrets/{name}", SCOPE_ADMIN, secrets_remove},
    {HTTP_GET, "/v1/tokens", SCOPE_ADMIN, tokens_list},
    {HTTP_POST, "/v1/tokens", SCOPE_ADMIN, tokens_create},
    {HTTP_DELETE, "/v1/tokens/{token}", SCOPE_ADMIN, tokens_revoke},
};

const size_t api_route_count = sizeof api_routes / sizeof *api_routes;
