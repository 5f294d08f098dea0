/*
 * destination: where effects go, as data. Pure: no I/O, no clock, no secrets kept. A destination is a row of the policy's
 * `destinations:` section laid over a provider file (providers/NAME.yaml, compiled in); both are read into one struct
 * destination. What a provider accepts, remembers and answers is data in that file, one fact at a time, each with its evidence. A
 * fact that nobody has verified is never used where safety would rest on it: not as a key, not as a window, not as a proof of "no
 * effect".
 *
 * The way of one effect (the outbox in act/ does the talking):
 *
 *     rules = destination_call(d, method, path)                which kind of call is this
 *     destination_prepare(d, rules, key, request) → sent       plants key and marker; these exact bytes are stored and always sent
 *     destination_authorize(d, secret, signing) → headers      at send time only, never stored
 *     destination_url(d, secret, path) → url                   at send time only
 *     destination_outcome(rules, reply) → outcome              what the answer says about the effect
 *     destination_probe(d, rules, key, sent) → request         when nobody knows: a question to the provider …
 *     destination_probe_read(rules, key, sent, reply)          … and what its answer proves
 *     memo_read(rules->memo, reply) → whole, tokens            a model call: is the answer whole, and what did it cost
 *
 * What the requests mean by kind:
 *     http     method, path with query, headers, body as they go over the wire; without Host, Content-Length and authorization
 *     smtp     method "SEND", path "/"; headers are the mail's own (From, To, Cc, Bcc, Subject, Content-Type …), body is its body;
 *              reply.status is the last SMTP code
 *     command  method "RUN", path "/"; body is the standard input; reply.status is the exit code (128 + n for signal n)
 *
 * Everything returned lives in the arena that was given, in the destination, or is static. Every thread may call these.
 */
#ifndef SEMEL_DESTINATION_DESTINATION_H
#define SEMEL_DESTINATION_DESTINATION_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/reference.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"

#define DESTINATION_NAME_MAX 64                       /* letters, digits, '.', '_', '-' */
#define DESTINATION_CALLS_MAX 64                      /* of one provider, and as many of the policy's own */
#define DESTINATION_HEADERS_MAX 128                   /* of one request */
#define DESTINATION_AUTH_HEADERS_MAX 4                /* room that destination_authorize() wants */
#define DESTINATION_MAILS_MAX 32                      /* under way at one mail server: each has a thread */
#define DESTINATION_BODY_MAX (64 << 20)               /* of a body that is read or changed */
#define WINDOW_ALWAYS_US (400 * INT64_C(86400000000)) /* of what is true for ever: an upsert */
#define DESTINATION_RETRY_AFTER_MAX_US (24 * INT64_C(3600000000))

enum destination_kind { DESTINATION_HTTP, DESTINATION_SMTP, DESTINATION_COMMAND };
enum capability { CAPABILITY_NONE, CAPABILITY_IDEMPOTENT, CAPABILITY_QUERY };
enum on_unknown { ON_UNKNOWN_HOLD, ON_UNKNOWN_RETRY, ON_UNKNOWN_SKIP };

extern const char *const destination_kind_names[]; /* "http", "smtp", "command", NULL */
extern const char *const capability_names[];       /* "none", "idempotent", "query", NULL */
extern const char *const on_unknown_names[];       /* "hold", "retry", "skip", NULL */

enum outcome {
    OUTCOME_DONE,    /* it happened */
    OUTCOME_REFUSED, /* no effect, and asking again is pointless */
    OUTCOME_RETRY,   /* no effect; later it may work */
    OUTCOME_UNKNOWN, /* it may have happened */
};
/* An outcome speaks of the attempt that was answered. What an earlier, unanswered attempt did is as unknown as before. */

extern const char *const outcome_names[]; /* "done", "refused", "retry", "unknown", NULL */

struct effect_request {
    struct bytes method;
    struct bytes path; /* with query, begins with '/' */
    struct bytes body; /* BYTES_NONE or empty for none */
    struct pair *headers;
    size_t header_count;
};

struct effect_reply {
    int status; /* HTTP status, SMTP code or exit code */
    struct pair *headers;
    size_t header_count;
    struct bytes body;
};

/* ---- one kind of call at a destination ---- */

enum carrier_place {
    CARRIER_NOWHERE,
    CARRIER_HEADER,  /* a header; one of that name is replaced */
    CARRIER_JSON,    /* a member of the JSON body, by dotted path */
    CARRIER_FORM,    /* a field of the form body; a dotted name puts JSON into the first part's field */
    CARRIER_QUERY,   /* a parameter of the query */
    CARRIER_NATURAL, /* nothing is planted: the call names what it changes, and repeating it changes nothing (an upsert) */
};

enum codec_kind {
    CODEC_PLAIN,      /* the downstream key as it is */
    CODEC_UUID,       /* UUIDv5 of it */
    CODEC_HEX,        /* SHA-256 of it in lower-case hex, cut to `size` */
    CODEC_BASE32,     /* SHA-256 of it in lower-case Crockford base 32, cut to `size` */
    CODEC_MESSAGE_ID, /* <key@domain>, for mail */
};

struct key_codec {
    enum codec_kind kind;
    size_t size;          /* the longest that the provider takes; 0: no limit */
    struct bytes charset; /* such as "A-Za-z0-9_-": what is not in it becomes '_'; BYTES_NONE: anything */
};

/* A constant that goes with a key or a marker. */
struct carrier_extra {
    struct bytes path; /* of a member of the JSON body, dotted */
    struct bytes json; /* its value */
    bool always;       /* also in place of what the caller gave */
};

/* Where a key or a marker is planted. */
struct carrier {
    enum carrier_place place;
    struct bytes name;
    struct key_codec codec;
    struct carrier_extra *extras;
    size_t extra_count;
};

struct outcome_rule {
    int status_min, status_max;        /* inclusive */
    struct bytes header, header_value; /* BYTES_NONE: not looked at; the value BYTES_NONE: any */
    struct bytes field;                /* of the JSON body, by path; BYTES_NONE: not looked at */
    struct bytes *values;              /* any of these texts; none: the field is there */
    size_t value_count;
    enum outcome outcome;
    struct bytes because; /* a sentence's rest, or BYTES_NONE */
};

/* How to ask whether it happened. The path and the values of `match` are templates: see docs/reference/providers.md. */
struct probe_recipe {
    struct bytes method, path;
    struct pair *requires; /* path in the answer, and the text that it must be: else the answer proves nothing */
    size_t require_count;
    struct bytes items; /* where the answer lists candidates, "messages"; BYTES_NONE: the answer is the one candidate */
    struct pair *match; /* path in a candidate, and the template that it must equal */
    size_t match_count;
    struct bytes total; /* path of how many there are in all: more than were listed, and absence proves nothing */
    struct bytes more;  /* path of what says that the list goes on (true, a text, a number): then absence proves nothing */
    struct bytes time;  /* path of a candidate's time: those from before the first send are not ours */
    struct bytes *show; /* paths in a candidate that go into the evidence */
    size_t show_count;
    int64_t absent_status; /* a status that itself says "there is no such thing", such as 404; 0: none */
    bool found_is_sure;    /* a match is ours, since it carries our marker; else it is only shown to a person */
    bool absent_is_sure;   /* no match proves that it did not happen, once `settle_us` have passed */
    int64_t settle_us;     /* how long after the last send the answer is meaningful */
    int64_t tries;
};

/* What ends a stream of events whole: an event whose data is this text, or has this field (with one of these values). */
struct memo_end {
    struct bytes data;  /* "[DONE]"; BYTES_NONE: not looked at */
    struct bytes field; /* of the event's JSON, by path */
    struct bytes *values;
    size_t value_count; /* none: the field is there */
};

/* A model call: it changes nothing, costs money, and its answer is remembered by the contents of the request (/llm/…). */
struct memo_rules {
    struct memo_end *ends; /* any of them; none: it never answers with events */
    size_t end_count;
    struct bytes model;           /* path in the request's body; BYTES_NONE: the last part of the URL's path, before a ':' */
    struct bytes *input, *output; /* paths of the counts of tokens, in the answer or in any of its events; the last one counts */
    size_t input_count, output_count;
    struct bytes *vary; /* headers of the request that change the answer */
    size_t vary_count;
};

struct call_rules {
    struct bytes name;
    struct bytes *methods; /* none: every method */
    size_t method_count;
    struct bytes *paths; /* '*' is any text without '/', a final '**' is anything; without the query; none: every path */
    size_t path_count;
    bool reads;                 /* it changes nothing: needs no ledger */
    enum capability capability; /* what may be relied on: without what nobody has verified */
    struct carrier key;
    int64_t window_us;             /* how long the provider remembers the key; 0 unless idempotent */
    struct outcome_rule *outcomes; /* first match wins; behind them the defaults of the kind */
    size_t outcome_count;
    struct carrier *markers; /* the first that fits the body is planted */
    size_t marker_count;
    struct probe_recipe *probes; /* the first whose questions the sent request answers is used */
    size_t probe_count;
    bool replays_refusals;   /* on_4xx: a refusal is final for this key (money); else a new call with the key starts anew */
    struct memo_rules *memo; /* NULL: no model call */
    enum destination_kind kind;
};

/* ---- a destination ---- */

enum auth_kind {
    AUTH_NONE,
    AUTH_BEARER,  /* Authorization: Bearer SECRET */
    AUTH_BASIC,   /* Authorization: Basic base64(user:SECRET), or of the secret itself where it holds the ':' */
    AUTH_HEADER,  /* NAME: PREFIX SECRET */
    AUTH_PATH,    /* the secret is a part of the URL (an incoming webhook): see destination_url() */
    AUTH_WEBHOOK, /* webhook-id, webhook-timestamp, webhook-signature: Standard Webhooks, made with the secret "whsec_…" */
};

extern const char *const auth_kind_names[]; /* "none", "bearer", "basic", "header", "path", "webhook", NULL */

struct auth {
    enum auth_kind kind;
    struct bytes header; /* AUTH_HEADER */
    struct bytes prefix; /* AUTH_HEADER: "Bot ", "Token " … */
    struct bytes user;   /* AUTH_BASIC */
};

struct rate {
    int64_t calls; /* 0: no limit */
    int64_t per_us;
    int64_t burst;
};

/* What a model costs, in millionths of the user's currency for a million tokens. */
struct price {
    struct bytes model;
    int64_t input, output;
};

enum smtp_tls { SMTP_TLS_STARTTLS, SMTP_TLS_IMPLICIT, SMTP_TLS_NONE };

extern const char *const smtp_tls_names[]; /* "starttls", "implicit", "none", NULL */

struct destination {
    struct bytes name, title;
    struct bytes provider; /* the provider file's name */
    enum destination_kind kind;
    struct bytes url; /* http: scheme, host, port and perhaps a path, without '/' at its end */
    struct auth auth;
    struct secret_reference secret;
    int64_t timeout_us;  /* of one attempt */
    int64_t concurrency; /* calls at the same time */
    struct rate rate;
    int64_t attempts_max;
    int64_t backoff_first_us, backoff_max_us;
    int64_t deadline_us;        /* no attempt later than this after it was accepted */
    enum on_unknown on_unknown; /* looked at where nothing can be asked */
    int64_t response_max;       /* bytes of an answer that are read and kept */
    bool allow_private;         /* addresses of this machine and private networks may be connected to */
    bool tls_verify;
    bool ordered;          /* calls of one group one after the other */
    struct bytes key_text; /* the template of the key for calls without one; BYTES_NONE: they need one */
    struct key_template *key;
    int64_t repeat_window_us; /* equal calls without a key within it are the same call; 0: off */
    int64_t keep_us;          /* how long a result is kept after it is final */
    int64_t memo_us;          /* equal model calls outside a run are the same call for so long; 0: off */
    struct bytes *ignore;     /* paths in the body of a model call that may differ */
    size_t ignore_count;
    struct price *prices;
    size_t price_count;
    struct bytes owner;       /* who gets its exceptions; BYTES_NONE: the policy's owner */
    struct call_rules *calls; /* first match wins */
    size_t call_count;
    struct bytes smtp_host;
    int64_t smtp_port;
    struct bytes smtp_from;
    enum smtp_tls smtp_tls;
    struct bytes *argv; /* command: each ends in a NUL */
    size_t argv_count;
};

/* ---- calls ---- */

/* The rules for a call; never NULL. The path may have a query. */
const struct call_rules *destination_call(const struct destination *destination, struct bytes method, struct bytes path);

/* The request as it is stored and sent at every attempt: with the provider's key, after its codec, and the marker. A JSON body
 * keeps its bytes except for what is planted. INVALID when the key cannot be planted (the body is not of the right kind): then
 * the capability does not hold and the call must not be made as it is. A marker that cannot be planted is left out; the probe
 * notices that. Parts of `ret` may refer to `request`. */
CHECKED enum status destination_prepare(const struct destination *destination, const struct call_rules *rules,
                                        const char *downstream_key, const struct effect_request *request, struct arena *arena,
                                        struct effect_request *ret, struct why *why);

/* What a signature is made over. */
struct signing {
    const struct effect_request *request; /* as it is sent */
    struct bytes id;                      /* of the effect: what the message is called when no event is forwarded */
    int64_t now_us;                       /* wall */
};

/* The headers that carry the secret or prove it, at most DESTINATION_AUTH_HEADERS_MAX; they take the place of the request's own of
 * these names. At send time only; never stored. INVALID when the secret cannot be one (control characters). Mail logs in with
 * destination_login() instead. */
CHECKED enum status destination_authorize(const struct destination *destination, struct bytes secret,
                                          const struct signing *signing, struct arena *arena, struct pair *ret_headers,
                                          size_t *ret_count, struct why *why);

/* User and password for SMTP; both BYTES_NONE without a secret. */
CHECKED enum status destination_login(const struct destination *destination, struct bytes secret, struct arena *arena,
                                      struct bytes *ret_user, struct bytes *ret_password, struct why *why);

/* http: the whole URL for `path`. With AUTH_PATH it holds the secret, so it is made at send time and never stored or logged. */
CHECKED enum status destination_url(const struct destination *destination, struct bytes secret, struct bytes path,
                                    struct arena *arena, struct bytes *ret_url, struct why *why);

/* What the answer says about the effect. `ret_because` (may be NULL) is for people and never repeats a body. */
enum outcome destination_outcome(const struct call_rules *rules, const struct effect_reply *reply, struct bytes *ret_because);

/* ---- asking afterwards ---- */

/* How `sent` can be asked about: the recipe, with its settle time and tries. NULL when it cannot: there is none, or `sent` lacks
 * the marker or a field that the question needs. */
const struct probe_recipe *destination_probe_recipe(const struct destination *destination, const struct call_rules *rules,
                                                    const char *downstream_key, const struct effect_request *sent);

/* The question whether `sent` happened. NOTHING when it cannot be asked: there is no recipe, or `sent` lacks the marker or a
 * field that the question needs. `first_sent_us` is wall time. */
CHECKED enum status destination_probe(const struct destination *destination, const struct call_rules *rules,
                                      const char *downstream_key, const struct effect_request *sent, int64_t first_sent_us,
                                      struct arena *arena, struct effect_request *ret, struct why *why);

enum probe_answer {
    PROBE_FOUND,  /* it happened */
    PROBE_ABSENT, /* it did not happen, provided that settle_us had passed since the last send when it was asked */
    PROBE_UNSURE, /* the answer proves nothing; the evidence may still help a person */
};

extern const char *const probe_answer_names[]; /* "found", "absent", "unsure", NULL */

/* `ret_evidence`: JSON text in the arena, what was found; BYTES_NONE when nothing was, or no memory was left for it. */
enum probe_answer destination_probe_read(const struct destination *destination, const struct call_rules *rules,
                                         const char *downstream_key, const struct effect_request *sent, int64_t first_sent_us,
                                         const struct effect_reply *reply, struct arena *arena, struct bytes *ret_evidence);

/* How long the destination asks us to wait: retry-after-ms, or Retry-After in seconds or as an HTTP date. -1: it does not say.
 * At most DESTINATION_RETRY_AFTER_MAX_US. */
int64_t destination_retry_after_us(const struct effect_reply *reply, int64_t now_wall_us);

/* ---- model calls ---- */

struct memo_answer {
    bool whole;            /* nothing of it is missing: it may be given to others */
    int64_t input, output; /* tokens; -1 when it does not say */
};

/* Reads the answer to a model call: JSON, or a stream of events. */
void memo_read(const struct memo_rules *memo, const struct effect_reply *reply, struct memo_answer *ret);

/* The model that the request names; BYTES_NONE when it names none. `body` may be NULL. */
struct bytes memo_model(const struct memo_rules *memo, const struct effect_request *request, const struct json *body);

/* True when the answer is a stream of events. */
bool memo_is_events(const struct effect_reply *reply);

/* What so many tokens of a model cost, in millionths of a millionth of the user's currency. False when the policy has no price. */
bool destination_cost(const struct destination *destination, struct bytes model, int64_t input, int64_t output, int64_t *ret);

/* ---- keys ---- */

/* The downstream key as the carrier's codec writes it; `domain` is for CODEC_MESSAGE_ID. A pure function of its arguments. */
CHECKED enum status key_encode(const struct key_codec *codec, struct bytes downstream_key, struct bytes domain,
                               struct arena *arena, struct bytes *ret, struct why *why);

#endif
