#include <stdarg.h>
#include <stdio.h>

#include "api/api.h"

enum retry { RETRY_NO, RETRY_YES, RETRY_UNSAID };

static const struct problem_kind {
    const char *code;
    int status;
    enum retry retry; /* what the x-should-retry header tells SDKs that retry by themselves */
    const char *title, *hint;
} kinds[] = {
    {"agent_stopped", 403, RETRY_NO, "This agent was stopped", "Ask an operator. It goes on after: semel agents start NAME"},
    {"already_sent", 409, RETRY_NO, "It was already sent",
     "What was sent cannot be released. Say what became of it: confirm, or fail with effect none or unknown."},
    {"busy", 503, RETRY_YES, "Too many connections", "Try again in a moment, with fewer connections."},
    {"cut_off", 502, RETRY_NO, "The destination's answer was cut off",
     "It happened; only the answer is missing. The intent says what is known. Do not send it again under another key."},
    {"differs", 409, RETRY_NO, "It was confirmed with another result",
     "The first result stays. Read it with GET /v1/intents/{intent}."},
    {"disk_full", 503, RETRY_YES, "The disk is full", "Nothing was recorded. Make room; semel opens again by itself."},
    {"expired", 410, RETRY_NO, "It was settled long ago",
     "Only the fact is still remembered, not the result. If this is meant as something new, give it a new key."},
    {"fenced", 409, RETRY_NO, "You do not hold this claim any more",
     "The lease ran out or the intent was settled. Do not act; claim again to learn how it stands."},
    {"forbidden", 403, RETRY_NO, "Not allowed", "Use a token that has the scope."},
    {"in_progress", 409, RETRY_YES, "Someone is doing it right now",
     "Ask again after Retry-After, or send wait_ms to be kept until it is settled."},
    {"internal", 500, RETRY_YES, "semel made a mistake",
     "Please report it with the request id. The request may have been recorded; it is safe to repeat."},
    {"invalid", 400, RETRY_NO, "The request is not right", "Correct the field and send it again; nothing was recorded."},
    {"kept_apart", 409, RETRY_NO, "They were said to be different",
     "If that was wrong, undo that decision first: semel leads undo EDGE."},
    {"key_required", 400, RETRY_NO, "There is no key",
     "Send \"key\" (to /to/… the header Idempotency-Key), or give the workflow or destination a key template in the policy."},
    {"key_reused", 422, RETRY_NO, "This key was used for something else",
     "Put the field that makes this intent different into the key, or list it under `ignore` in the policy if it may differ."},
    {"malformed", 400, RETRY_NO, "The request cannot be read", "Send one well-formed HTTP/1.1 request with a JSON body."},
    {"master_key", 409, RETRY_NO, "The master key cannot be used",
     "Nothing was changed. Secrets need the master key they were sealed with: see --master-key in semel help serve."},
    {"method_not_allowed", 405, RETRY_NO, "Not with this method", "See the Allow header."},
    {"model_call_lost", 502, RETRY_YES, "The model's answer was lost",
     "Ask again: the call changes nothing. The provider may have counted it, and counts it again."},
    {"no_answer", 502, RETRY_YES, "The destination gave no answer",
     "It may have happened. Send the same request with the same key again: the destination recognises it."},
    {"not_found", 404, RETRY_NO, "There is nothing here", "Check the path and the id. The API is described at /v1/openapi.json."},
    {"not_open", 409, RETRY_NO, "There is nothing to decide",
     "Look at it with GET /v1/intents/{intent}: it is settled, or someone is at it."},
    {"outcome_unknown", 409, RETRY_NO, "Nobody can tell whether it happened",
     "Find out, then say so: semel exceptions resolve, or with its fence confirm it, or fail it with effect none. Do not act "
     "again before."},
    {"policy_invalid", 422, RETRY_NO, "The policy has problems", "Nothing was applied. Correct the lines and apply it again."},
    {"refused", 409, RETRY_NO, "It was refused for good",
     "It did not happen and will not under this key. If this is meant as something new, give it a new key."},
    {"signature", 401, RETRY_NO, "The delivery is not signed as its source says",
     "Check the secret on both sides, and the public URL (`url`) when semel stands behind a proxy. Nothing was recorded."},
    {"storage", 503, RETRY_YES, "The storage does not answer",
     "Nothing was recorded. Try again in a moment; semel status says how it stands."},
    {"storage_unknown", 503, RETRY_YES, "The storage did not say whether it was recorded",
     "Send the same request again: it is safe to repeat."},
    {"timeout", 408, RETRY_YES, "The request came too slowly", "Send it again."},
    {"too_early", 409, RETRY_YES, "An attempt may still arrive",
     "Try again after Retry-After. Sending it again earlier could make it happen twice."},
    {"too_large", 413, RETRY_NO, "The request is too large",
     "A body has at most 1 MiB (for /llm/… 16 MiB), a head 16 KiB. Keep large results elsewhere and store a reference."},
    {"unauthorized", 401, RETRY_NO, "No valid token", "Send Authorization: Bearer sml_… . Make a token with: semel token create"},
    {"unreachable", 502, RETRY_YES, "The destination could not be reached", "Nothing was sent. Try again in a moment."},
    {"unsupported", 501, RETRY_NO, "Not supported", "Use HTTP/1.1 with Content-Length or chunked."},
};

static const struct problem_kind *find(const char *code)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].code, code) == 0)
            return &kinds[i];
    return NULL;
}

static void write_head(struct json_out *out, const struct problem_kind *kind, const char *detail)
{
    char type[64];
    snprintf(type, sizeof type, "/problems/%s", kind->code);
    json_open(out, '{');
    json_name(out, "type");
    json_cstr(out, type);
    json_name(out, "title");
    json_cstr(out, kind->title);
    json_name(out, "status");
    json_i64(out, kind->status);
    if (detail != NULL && detail[0] != '\0') {
        json_name(out, "detail");
        json_cstr(out, detail);
    }
    json_name(out, "code");
    json_cstr(out, kind->code);
    json_name(out, "hint");
    json_cstr(out, kind->hint);
}

static void send(struct call *call, const struct problem_kind *kind, void (*extra)(struct call *, struct json_out *),
                 const char *detail)
{
    buf_clear(&call->out);
    struct json_out out = json_out_to(&call->out);
    write_head(&out, kind, detail);
    json_name(&out, "request_id");
    json_cstr(&out, call->request_id);
    if (extra != NULL)
        extra(call, &out);
    json_close(&out, '}');
    if (kind->retry != RETRY_UNSAID) {
        call_header(call, "x-should-retry", kind->retry == RETRY_YES ? BYTES("true") : BYTES("false"));
        call_header(call, "stripe-should-retry", kind->retry == RETRY_YES ? BYTES("true") : BYTES("false"));
    }
    if (kind->status == 503)
        call_header(call, "Retry-After", BYTES("1"));
    if (kind->status == 401)
        call_header(call, "WWW-Authenticate", BYTES("Bearer realm=\"semel\""));
    call_reply_as(call, kind->status, "application/problem+json", buf_bytes(&call->out));
}

void problem_with(struct call *call, const char *code, void (*extra)(struct call *call, struct json_out *out), const char *format,
                  ...)
{
    char detail[512];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    const struct problem_kind *kind = find(code);
    ASSERT(kind != NULL);
    send(call, kind, extra, detail);
}

void problem(struct call *call, const char *code, const char *format, ...)
{
    char detail[512];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    problem_with(call, code, NULL, "%s", detail);
}

static void extra_field(struct call *call, struct json_out *out)
{
    json_name(out, "field");
    json_text(out, *(struct bytes *)call->state);
}

void problem_field(struct call *call, struct bytes field, const char *format, ...)
{
    char detail[512];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    call->state = &field;
    problem_with(call, "invalid", extra_field, "%s", detail);
}

void problem_storage_with(struct call *call, enum status status, const struct why *why,
                          void (*extra)(struct call *call, struct json_out *out))
{
    const char *code = status == FULL ? "disk_full" : status == UNKNOWN ? "storage_unknown" : "storage";
    problem_with(call, code, extra, "%s", why->text);
}

void problem_storage(struct call *call, enum status status, const struct why *why)
{
    problem_storage_with(call, status, why, NULL);
}

void problem_show(struct call *call)
{
    char code[32];
    snprintf(code, sizeof code, "%.*s", BYTES_ARG(call->params[0]));
    const struct problem_kind *kind = find(code);
    if (kind == NULL) {
        problem(call, "not_found", "There is no problem called \"%s\".", code);
        return;
    }
    struct json_out out = json_out_to(&call->out);
    write_head(&out, kind, NULL);
    json_close(&out, '}');
    call_reply(call, 200);
}

void problem_bare(int status, const char *why, struct buf *out)
{
    static const struct {
        int status;
        const char *code;
    } codes[] = {{408, "timeout"},  {413, "too_large"},   {414, "too_large"}, {417, "unsupported"}, {431, "too_large"},
                 {500, "internal"}, {501, "unsupported"}, {503, "busy"},      {505, "unsupported"}};
    const char *code = "malformed";
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].status == status)
            code = codes[i].code;
    struct problem_kind kind = *find(code);
    kind.status = status;
    struct json_out json = json_out_to(out);
    write_head(&json, &kind, why);
    json_close(&json, '}');
}
