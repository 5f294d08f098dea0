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
    json_name(&out, "uptime_seconds");
    json_i64(&out, (env->boot_us(env) - api->started_us) / WHEN_SECOND);
    json_close(&out, '}');
    call_reply(call, ready ? 200 : 503);
}

/* ---- metrics: the Prometheus text format ---- */

static void describe(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void metric(struct buf *out, const char *name, const char *type, const char *help, uint64_t value)
{
    describe(out, name, type, help);
    buf_printf(out, "%s %llu\n", name, (unsigned long long)value);
}

static void write_claims(struct buf *out, const struct engine_counts *counts)
{
    describe(out, "semel_claims_total", "counter", "Answers given by the ledger, by outcome.");
    for (size_t i = 0; i <= VERDICT_NOT_FOUND; i++)
        buf_printf(out, "semel_claims_total{outcome=\"%s\"} %llu\n", ledger_verdict_names[i],
                   (unsigned long long)counts->verdicts[i]);
}

static void write_http(struct buf *out, const struct api *api)
{
    const struct http_counts *http = http_server_counts(api->server);
    describe(out, "semel_http_replies_total", "counter", "HTTP replies, by class of status.");
    for (int i = 2; i < 6; i++)
        buf_printf(out, "semel_http_replies_total{class=\"%dxx\"} %llu\n", i, (unsigned long long)api->replies[i]);
    metric(out, "semel_http_connections_open", "gauge", "Open HTTP connections.", (uint64_t)http->open);
    metric(out, "semel_http_connections_total", "counter", "HTTP connections accepted.", http->accepted);
    metric(out, "semel_http_connections_refused_total", "counter", "HTTP connections refused or dropped at a limit.",
           http->refused);
}

static void write_engine(struct buf *out, const struct engine_counts *counts)
{
    metric(out, "semel_batches_total", "counter", "Batches of commands.", counts->batches);
    metric(out, "semel_commands_total", "counter", "Commands given to the writer.", counts->commands);
    metric(out, "semel_commits_total", "counter", "Durable commits.", counts->commits);
    metric(out, "semel_batch_retries_total", "counter", "Batches that were decided anew.", counts->retries);
    metric(out, "semel_batch_failures_total", "counter", "Batches that could not be written.", counts->failures);
    metric(out, "semel_leases_lapsed_total", "counter", "Leases that ran out and were swept.", counts->lapsed);
    metric(out, "semel_intents_expired_total", "counter", "Intents that became tombstones.", counts->expired);
    metric(out, "semel_suppressed_total", "counter", "Duplicates that were answered without acting.", counts->suppressed);
    metric(out, "semel_claims_waiting", "gauge", "Claims that wait for a holder.", (uint64_t)counts->waiting);
}

struct outbox_metric {
    struct buf *out;
    enum { METRIC_OUTCOMES, METRIC_PROBES, METRIC_RUNNING, METRIC_BREAKER } which;
};

static void write_destination(void *ctx, const struct act_figures *figures)
{
    static const char *const names[] = {[METRIC_PROBES] = "semel_effect_probes_total",
                                        [METRIC_RUNNING] = "semel_effect_calls_running",
                                        [METRIC_BREAKER] = "semel_destination_breaker_open"};
    const struct outbox_metric *metric = ctx;
    uint64_t value = metric->which == METRIC_PROBES    ? figures->probes
                     : metric->which == METRIC_RUNNING ? (uint64_t)figures->running
                                                       : figures->breaker_open;
    if (metric->which != METRIC_OUTCOMES) {
        buf_printf(metric->out, "%s{destination=\"%.*s\"} %llu\n", names[metric->which], BYTES_ARG(figures->destination),
                   (unsigned long long)value);
        return;
    }
    for (size_t i = 0; outcome_names[i] != NULL; i++)
        buf_printf(metric->out, "semel_effect_attempts_total{destination=\"%.*s\",outcome=\"%s\"} %llu\n",
                   BYTES_ARG(figures->destination), outcome_names[i], (unsigned long long)figures->outcomes[i]);
}

static void write_outbox(struct buf *out, struct api *api)
{
    describe(out, "semel_effect_attempts_total", "counter", "Attempts that ended, by destination and outcome.");
    act_each(api->act, write_destination, &(struct outbox_metric){out, METRIC_OUTCOMES});
    describe(out, "semel_effect_probes_total", "counter", "Questions to a destination whether something happened.");
    act_each(api->act, write_destination, &(struct outbox_metric){out, METRIC_PROBES});
    describe(out, "semel_effect_calls_running", "gauge", "Calls to a destination under way.");
    act_each(api->act, write_destination, &(struct outbox_metric){out, METRIC_RUNNING});
    describe(out, "semel_destination_breaker_open", "gauge", "1 while a destination that keeps failing is left alone.");
    act_each(api->act, write_destination, &(struct outbox_metric){out, METRIC_BREAKER});
}

void health_metrics(struct call *call)
{
    struct api *api = call->api;
    struct buf *out = &call->out;
    describe(out, "semel_build_info", "gauge", "The version that runs.");
    buf_printf(out, "semel_build_info{version=\"%s\",storage=\"%s\"} 1\n", SEMEL_VERSION, api->storage);
    metric(out, "semel_intake_open", "gauge", "1 when new claims are accepted.", engine_intake(api->engine, NULL) == INTAKE_OPEN);
    write_claims(out, engine_counts(api->engine));
    write_engine(out, engine_counts(api->engine));
    write_http(out, api);
    write_outbox(out, api);
    call_reply_as(call, 200, "text/plain; version=0.0.4; charset=utf-8", buf_bytes(out));
}
