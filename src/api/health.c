#include <stdio.h>
#include <sys/stat.h>

#include "api/api.h"
#include "app.h"
#include "base/when.h"
#include "embedded.h"

void root_show(struct call *call)
{
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    json_name(&out, "name");
    json_cstr(&out, "semel");
    json_name(&out, "version");
    json_cstr(&out, SEMEL_VERSION);
    json_name(&out, "api");
    json_cstr(&out, "/v1");
    json_name(&out, "openapi");
    json_cstr(&out, "/v1/openapi.json");
    json_close(&out, '}');
    call_reply(call, 200);
}

void openapi_show(struct call *call)
{
    call_reply_as(call, 200, "application/json", embedded_openapi[0].data);
}

void health_live(struct call *call)
{
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    json_name(&out, "status");
    json_cstr(&out, "alive");
    json_name(&out, "version");
    json_cstr(&out, SEMEL_VERSION);
    json_close(&out, '}');
    call_reply(call, 200);
}

static void add_stranded(void *ctx, const struct act_figures *figures)
{
    *(int64_t *)ctx += figures->stranded;
}

/* What came in and is not decided yet. It is safe where it is; somebody should know when it piles up. */
static void write_events(struct json_out *out, const struct flow *flow)
{
    bool failing;
    int64_t waiting = flow_waiting(flow, &failing);
    json_name(out, "events_waiting");
    json_i64(out, waiting);
    json_name(out, "events_failing");
    json_bool(out, failing);
}

void health_ready(struct call *call)
{
    static const char *const intakes[] = {"open", "finishing", "closed"};
    struct api *api = call->api;
    struct env *env = engine_env(api->engine);
    struct why why = {""};
    enum engine_intake intake = engine_intake(api->engine, &why);
    bool ready = intake == INTAKE_OPEN && !atomic_load(&api->stopping);
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    json_name(&out, "status");
    json_cstr(&out, ready ? "ready" : "not_ready");
    json_name(&out, "version");
    json_cstr(&out, SEMEL_VERSION);
    json_name(&out, "storage");
    json_cstr(&out, api->storage);
    json_name(&out, "schema");
    json_i64(&out, store_schema_version());
    json_name(&out, "intake");
    json_cstr(&out, intakes[intake]);
    json_name(&out, "reason");
    json_cstr(&out, intake != INTAKE_OPEN ? why.text : atomic_load(&api->stopping) ? "semel is stopping" : NULL);
    int64_t epoch, since_us;
    struct why quarantine_why;
    bool quarantine = engine_quarantine(api->engine, &epoch, &since_us, &quarantine_why);
    json_name(&out, "epoch");
    json_i64(&out, epoch);
    json_name(&out, "quarantine");
    if (quarantine) {
        json_open(&out, '{');
        json_name(&out, "since");
        json_time(&out, since_us);
        json_name(&out, "reason");
        json_cstr(&out, quarantine_why.text);
        json_close(&out, '}');
    } else {
        json_null(&out);
    }
    json_name(&out, "policy_version");
    json_i64(&out, api->policy_version);
    json_name(&out, "mode");
    json_cstr(&out, policy_mode_names[api->policy->defaults.mode]);
    json_name(&out, "intents_waiting");
    json_i64(&out, engine_counts(api->engine)->waiting);
    int64_t stranded = 0;
    act_each(api->act, add_stranded, &stranded);
    json_name(&out, "effects_stranded");
    json_i64(&out, stranded);
    write_events(&out, api->flow);
    json_name(&out, "uptime_seconds");
    json_i64(&out, (env->boot_us(env) - api->started_us) / WHEN_SECOND);
    json_close(&out, '}');
    call_reply(call, ready ? 200 : 503);
}
