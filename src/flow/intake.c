#include "flow/intake.h"

#include "base/log.h"

/* ---- secrets ---- */

struct opened {
    struct secret_text texts[SOURCE_SECRETS_MAX];
    bool open[SOURCE_SECRETS_MAX];
    struct bytes values[SOURCE_SECRETS_MAX];
};

/* One that cannot be had is absent: the others may still hold while secrets are being changed. */
static void open_secrets(const struct intake *intake, struct opened *opened)
{
    const struct source *source = intake->source;
    for (size_t i = 0; i < source->secret_count && i < SOURCE_SECRETS_MAX; i++) {
        struct why why;
        opened->open[i] = secret_resolve(intake->secrets, intake->space, source->secrets[i].text, &opened->texts[i], &why) == OK;
        opened->values[i] = opened->open[i] ? (struct bytes){opened->texts[i].at, opened->texts[i].len} : BYTES_NONE;
        if (!opened->open[i])
            LOG(LOG_ERROR, "a source's secret cannot be had", LOG_TEXT("source", source->name), LOG_CSTR("why", why.text));
    }
}

static void close_secrets(struct opened *opened)
{
    for (size_t i = 0; i < SOURCE_SECRETS_MAX; i++)
        if (opened->open[i])
            secret_text_free(&opened->texts[i]);
}

/* ---- what is kept of the request ---- */

/* Where the sender's own secret stands, not a signature made with it. */
static bool is_secret(const struct source *source, const char *place, struct bytes name)
{
    size_t len = strlen(place);
    for (size_t i = 0; i < source->rule_count; i++) {
        const struct verify_rule *rule = &source->rules[i];
        bool bare = rule->alg == VERIFY_EQUAL || rule->alg == VERIFY_BASIC;
        if (bare && bytes_starts(rule->signature, (struct bytes){place, len}) &&
            bytes_eq_nocase(bytes_from(rule->signature, len), name))
            return true;
    }
    return false;
}

static bool is_kept(const struct source *source, struct bytes name)
{
    static const char *const never[] = {"authorization", "proxy-authorization", "cookie", "semel-token"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (bytes_eq_nocase(name, bytes_of(never[i])))
            return false;
    return !is_secret(source, "header.", name);
}

/* The path with its query, but for parameters that are secrets. */
static struct bytes kept_path(const struct intake *intake)
{
    struct bytes rest = intake->request.url;
    struct buf buf;
    buf_init(&buf, 64 << 10);
    struct bytes path = bytes_cut(&rest, '?');
    buf_add(&buf, path);
    char mark = '?';
    while (rest.len > 0) {
        struct bytes pair = bytes_cut(&rest, '&'), value = pair, name = bytes_cut(&value, '=');
        if (is_secret(intake->source, "query.", name))
            continue;
        buf_add_char(&buf, mark);
        buf_add(&buf, pair);
        mark = '&';
    }
    struct bytes kept = arena_dup(intake->arena, buf_bytes(&buf));
    buf_release(&buf);
    return kept;
}

static enum status make_record(struct intake *intake, struct why *why)
{
    const struct receive_request *request = &intake->request;
    struct effect_request kept = {.method = request->method, .path = kept_path(intake), .body = request->body};
    kept.headers = arena_zalloc(intake->arena, request->header_count + 1, sizeof *kept.headers);
    if (kept.headers == NULL || kept.path.at == NULL)
        return why_set(why, FULL, "no memory for a delivery");
    for (size_t i = 0; i < request->header_count; i++)
        if (is_kept(intake->source, request->headers[i].name))
            kept.headers[kept.header_count++] = request->headers[i];
    return request_record(&kept, intake->arena, &intake->order.record, why);
}

/* ---- in ---- */

static enum status make_order(struct intake *intake, struct why *why)
{
    struct receive_result *result = &intake->result;
    intake->order = (struct stage_order){
        .space = intake->space,
        .source = arena_dup(intake->arena, intake->source->name),
        .contents = arena_zalloc(intake->arena, result->count, sizeof(struct bytes)),
        .events = arena_zalloc(intake->arena, result->count, sizeof(int64_t)),
        .count = result->count,
        .keep_us = intake->source->keep_us,
    };
    if (intake->arena->failed)
        return why_set(why, FULL, "no memory for a delivery");
    for (size_t i = 0; i < result->count; i++) {
        TRY(event_seal(&result->events[i], result->count == 1, intake->arena, why));
        TRY(event_record(&result->events[i], intake->arena, &intake->order.contents[i], why));
    }
    return make_record(intake, why);
}

enum status intake_read(struct intake *intake, struct why *why)
{
    struct opened opened = {0};
    open_secrets(intake, &opened);
    enum status status = receive_read(intake->source, opened.values, &intake->request, intake->arena, &intake->result, why);
    close_secrets(&opened);
    if (status == OK && intake->result.end == RECEIVE_EVENTS && intake->result.count > 0)
        status = make_order(intake, why);
    return status;
}

enum status intake_write(struct store *store, struct ledger *ledger, struct intake *intake, struct why *why)
{
    return stage_write(store, ledger, &intake->order, why);
}
