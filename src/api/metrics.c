/* metrics: figures in the Prometheus text format. What is in the database is asked for; when it does not answer, the rest is still told. */
#include "api/llm.h"
#include "base/version.h"
#include "smtp/server.h"

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

/* Whether each mail server is there or not, the names are the same. */
static void write_mail(struct buf *out, const struct api *api)
{
    static const char *const protocols[API_MAILS] = {"lmtp", "smtp", "smtps"};
    static const struct smtp_counts none;
    describe(out, "semel_mail_connections_total", "counter", "Connections of mail servers, by what became of them.");
    for (size_t i = 0; i < API_MAILS; i++) {
        const struct smtp_counts *counts = api->mail[i] != NULL ? smtp_server_counts(api->mail[i]) : &none;
        buf_printf(out, "semel_mail_connections_total{protocol=\"%s\",outcome=\"accepted\"} %llu\n", protocols[i],
                   (unsigned long long)counts->accepted);
        buf_printf(out, "semel_mail_connections_total{protocol=\"%s\",outcome=\"refused\"} %llu\n", protocols[i],
                   (unsigned long long)counts->refused);
    }
    describe(out, "semel_mails_total", "counter", "Mails that came whole, by whether they were kept.");
    for (size_t i = 0; i < API_MAILS; i++) {
        const struct smtp_counts *counts = api->mail[i] != NULL ? smtp_server_counts(api->mail[i]) : &none;
        buf_printf(out, "semel_mails_total{protocol=\"%s\",outcome=\"kept\"} %llu\n", protocols[i],
                   (unsigned long long)counts->mails);
        buf_printf(out, "semel_mails_total{protocol=\"%s\",outcome=\"not_kept\"} %llu\n", protocols[i],
                   (unsigned long long)counts->failed);
    }
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

/* ---- effects ---- */

static void write_outcomes(void *ctx, const struct act_figures *figures)
{
    for (size_t i = 0; i <= OUTCOME_UNKNOWN; i++)
        buf_printf(ctx, "semel_effects_total{destination=\"%.*s\",outcome=\"%s\"} %llu\n", BYTES_ARG(figures->destination),
                   outcome_names[i], (unsigned long long)figures->outcomes[i]);
}

static void write_probes(void *ctx, const struct act_figures *figures)
{
    buf_printf(ctx, "semel_effect_probes_total{destination=\"%.*s\"} %llu\n", BYTES_ARG(figures->destination),
               (unsigned long long)figures->probes);
}

static void write_running(void *ctx, const struct act_figures *figures)
{
    buf_printf(ctx, "semel_effects_running{destination=\"%.*s\"} %lld\n", BYTES_ARG(figures->destination),
               (long long)figures->running);
}

static void write_breaker(void *ctx, const struct act_figures *figures)
{
    buf_printf(ctx, "semel_destination_breaker_open{destination=\"%.*s\"} %d\n", BYTES_ARG(figures->destination),
               figures->breaker_open);
}

static void write_stranded(void *ctx, const struct act_figures *figures)
{
    buf_printf(ctx, "semel_effects_stranded{destination=\"%.*s\"} %lld\n", BYTES_ARG(figures->destination),
               (long long)figures->stranded);
}

static void write_effects(struct buf *out, struct act *act)
{
    describe(out, "semel_effects_total", "counter", "Calls to destinations, by what they say about the effect.");
    act_each(act, write_outcomes, out);
    describe(out, "semel_effect_probes_total", "counter", "Questions to destinations whether something happened.");
    act_each(act, write_probes, out);
    describe(out, "semel_effects_running", "gauge", "Calls to destinations under way.");
    act_each(act, write_running, out);
    describe(out, "semel_destination_breaker_open", "gauge", "1 while a destination that keeps failing is left alone.");
    act_each(act, write_breaker, out);
    describe(out, "semel_effects_stranded", "gauge", "Effects that wait for a destination which is not in the policy.");
    act_each(act, write_stranded, out);
}

/* ---- events ---- */

static void write_decisions(void *ctx, const struct flow_counts *counts)
{
    for (int i = EVENT_WAITING + 1; i < EVENT_VERDICT_COUNT; i++)
        buf_printf(ctx, "semel_inbound_events_total{source=\"%s\",decision=\"%s\"} %llu\n", counts->source,
                   event_verdict_names[i], (unsigned long long)counts->verdicts[i]);
}

static void write_refused(void *ctx, const struct flow_counts *counts)
{
    buf_printf(ctx, "semel_inbound_refused_total{source=\"%s\"} %llu\n", counts->source, (unsigned long long)counts->refused);
}

static void write_events(struct buf *out, struct flow *flow)
{
    describe(out, "semel_inbound_events_total", "counter", "Events that came in, by source and by what was decided.");
    flow_each_source(flow, write_decisions, out);
    describe(out, "semel_inbound_refused_total", "counter",
             "Deliveries that were refused: not signed as they should be, or unreadable.");
    flow_each_source(flow, write_refused, out);
}

/* ---- model calls ---- */

static void write_llm_results(void *ctx, const struct llm_figures *figures)
{
    const struct {
        const char *result;
        uint64_t count;
    } results[] = {{"hit", figures->hits}, {"miss", figures->misses}, {"failed", figures->failures}, {"passed", figures->passed}};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        buf_printf(ctx, "semel_llm_cache_total{provider=\"%s\",result=\"%s\"} %llu\n", figures->provider, results[i].result,
                   (unsigned long long)results[i].count);
}

static void write_llm_saved(void *ctx, const struct llm_figures *figures)
{
    buf_printf(ctx, "semel_llm_saved_tokens_total{provider=\"%s\"} %llu\n", figures->provider,
               (unsigned long long)figures->saved_tokens);
}

static void write_llm(struct buf *out, const struct llm *llm)
{
    describe(out, "semel_llm_cache_total", "counter",
             "Model calls: answered from memory (hit), made (miss), failed; and other calls to the same provider (passed).");
    llm_each(llm, write_llm_results, out);
    describe(out, "semel_llm_saved_tokens_total", "counter", "Tokens of the answers that came from memory.");
    llm_each(llm, write_llm_saved, out);
}

/* ---- what is in the database ---- */

struct stored_figures {
    struct buf depth, waiting, age;
    int64_t now_us, open, overdue, events_waiting, events_since_us;
};

static enum status take_depth(void *ctx, const void *at, struct why *why)
{
    (void)why;
    struct stored_figures *figures = ctx;
    const struct r_outbox_depth *row = at;
    buf_printf(&figures->depth, "semel_outbox_depth{destination=\"%.*s\"} %lld\n", BYTES_ARG(row->destination),
               (long long)row->open);
    buf_printf(&figures->waiting, "semel_outbox_waiting_for_person{destination=\"%.*s\"} %lld\n", BYTES_ARG(row->destination),
               (long long)row->waiting);
    int64_t age_us = row->oldest > 0 && figures->now_us > row->oldest ? figures->now_us - row->oldest : 0;
    buf_printf(&figures->age, "semel_outbox_oldest_age_seconds{destination=\"%.*s\"} %lld.%06lld\n", BYTES_ARG(row->destination),
               (long long)(age_us / 1000000), (long long)(age_us % 1000000));
    return OK;
}

static enum status take_exceptions(void *ctx, const void *at, struct why *why)
{
    (void)why;
    struct stored_figures *figures = ctx;
    const struct r_exception_count *row = at;
    figures->open = row->open;
    figures->overdue = row->overdue;
    return OK;
}

static enum status take_waiting(void *ctx, const void *at, struct why *why)
{
    (void)why;
    struct stored_figures *figures = ctx;
    const struct r_event_waiting_count *row = at;
    figures->events_waiting = row->count;
    figures->events_since_us = row->oldest;
    return OK;
}

static enum status read_stored(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct stored_figures *figures = call->state;
    struct q_outbox_depth depth = {figures->now_us};
    struct q_exception_count count = {figures->now_us};
    TRY(store_run(store, &OUTBOX_DEPTH, &depth, 1, take_depth, figures, NULL, why));
    struct q_event_waiting_count waiting = {FLOW_WAITING_MAX};
    TRY(store_run(store, &EXCEPTION_COUNT, &count, 1, take_exceptions, figures, NULL, why));
    return store_run(store, &EVENT_WAITING_COUNT, &waiting, 1, take_waiting, figures, NULL, why);
}

static void write_stored(struct buf *out, const struct stored_figures *figures)
{
    describe(out, "semel_outbox_depth", "gauge", "Effects that are not finished.");
    buf_add(out, buf_bytes(&figures->depth));
    describe(out, "semel_outbox_waiting_for_person", "gauge", "Effects that wait for a person.");
    buf_add(out, buf_bytes(&figures->waiting));
    describe(out, "semel_outbox_oldest_age_seconds", "gauge", "Age of the oldest effect that is due.");
    buf_add(out, buf_bytes(&figures->age));
    metric(out, "semel_exceptions_open", "gauge", "Exceptions that wait for a person.", (uint64_t)figures->open);
    metric(out, "semel_exceptions_overdue", "gauge", "Exceptions past their due time.", (uint64_t)figures->overdue);
    metric(out, "semel_inbound_waiting", "gauge", "Events that are not decided yet, counted up to 10000.",
           (uint64_t)figures->events_waiting);
    int64_t age_us = figures->events_since_us > 0 && figures->now_us > figures->events_since_us
                         ? figures->now_us - figures->events_since_us
                         : 0;
    describe(out, "semel_inbound_oldest_age_seconds", "gauge", "Age of the oldest event that is not decided yet.");
    buf_printf(out, "semel_inbound_oldest_age_seconds %lld.%06lld\n", (long long)(age_us / 1000000),
               (long long)(age_us % 1000000));
}

static void finish(struct call *call)
{
    struct api *api = call->api;
    struct buf *out = &call->out;
    struct stored_figures *figures = call->state;
    describe(out, "semel_build_info", "gauge", "The version that runs.");
    buf_printf(out, "semel_build_info{version=\"%s\",storage=\"%s\"} 1\n", SEMEL_VERSION, api->storage);
    metric(out, "semel_intake_open", "gauge", "1 when new claims are accepted.", engine_intake(api->engine, NULL) == INTAKE_OPEN);
    write_claims(out, engine_counts(api->engine));
    write_engine(out, engine_counts(api->engine));
    write_effects(out, api->act);
    write_events(out, api->flow);
    write_llm(out, api->llm);
    if (call->read.status == OK)
        write_stored(out, figures);
    gateway_metrics(api->gateway, out);
    write_http(out, api);
    write_mail(out, api);
    buf_release(&figures->depth);
    buf_release(&figures->waiting);
    buf_release(&figures->age);
    call_reply_as(call, 200, "text/plain; version=0.0.4; charset=utf-8", buf_bytes(out));
}

void metrics_show(struct call *call)
{
    struct env *env = engine_env(call->api->engine);
    struct stored_figures *figures = arena_zalloc(call->request->arena, 1, sizeof *figures);
    ASSERT(figures != NULL);
    buf_init(&figures->depth, 1 << 20);
    buf_init(&figures->waiting, 1 << 20);
    buf_init(&figures->age, 1 << 20);
    figures->now_us = env->wall_us(env);
    call->state = figures;
    call_submit_read(call, read_stored, finish);
}
