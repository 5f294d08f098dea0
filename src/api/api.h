/*
 * api: semel's HTTP face. routes.c is the table of everything that can be asked; call.c brings a request to its handler and the
 * answer back; one file per resource holds the handlers. Handlers run on the HTTP loop; what they need from the database goes to
 * the engine and comes back as `finish` on the loop.
 */
#ifndef SEMEL_API_API_H
#define SEMEL_API_API_H

#include "access/access.h"
#include "act/act.h"
#include "audit/applied.h"
#include "engine/engine.h"
#include "flow/flow.h"
#include "http/server.h"
#include "ledger/naming.h"
#include "policy/policy.h"
#include "secret/secret.h"
#include "threads/answer.h"

#define API_PARAMS_MAX 2
#define API_MAILS 3
#define API_LIST_MAX 200
#define API_LIST_DEFAULT 50

struct backtest_run;
struct call;
struct gateway;
struct smtp_server;
struct llm;
struct llm_figures;
struct row_run;
struct tally;

/* What the face needs to know; owned by the loop thread. */
struct api {
    struct engine *engine;
    struct act *act;
    struct flow *flow;
    struct http_server *server;
    struct smtp_server *mail[API_MAILS]; /* LMTP, SMTP, SMTPS; NULL where mail is not taken */
    struct policy *policy;
    int64_t policy_version;
    struct access *access;
    struct secrets *secrets;
    struct gateway *gateway; /* of MCP servers; made by the first call to one. See agent/gateway.h */
    bool open;               /* no tokens asked for: loopback only */
    const char *storage;     /* "sqlite", "postgres" */
    const char *data_dir;
    int64_t started_us;
    atomic_bool stopping;
    struct backtest_run *backtest; /* under way, or waiting for its next slice; NULL for none */
    bool refreshing;               /* a look for newer policy, tokens and secrets is under way */
    _Atomic uint64_t replies[6];   /* by hundreds of the status */
    struct llm *llm;               /* model calls: see llm.h */
    struct tally *tally;           /* what they came to and is not yet written; NULL for nothing */
};

struct route {
    enum http_method method;
    const char *path; /* "/v1/intents/{intent}" */
    int scope;        /* 0: open to everyone */
    void (*handle)(struct call *call);
};

/* Beside a route's scope: also for an agent that was stopped. It says what became of what was begun, or answers that itself. */
#define ROUTE_FINISHES 256

extern const struct route api_routes[];
extern const size_t api_route_count;

struct call {
    struct api *api;
    struct http_request *request;
    const struct route *route;
    struct bytes params[API_PARAMS_MAX]; /* what stood for {…} in the path, decoded */
    struct bytes space, actor;
    int scopes;
    bool stopped; /* an operator stopped the agent that asks */
    char request_id[32];
    struct buf out; /* the body under construction */
    struct http_header headers[12];
    size_t header_count;
    struct engine_command command;
    struct engine_read read;
    void (*finish)(struct call *call); /* on the loop, when the engine is done */
    void *state;                       /* the handler's own, in the request's arena */
};

/* The server's callbacks. */
void api_handle(struct http_request *request, void *api);
size_t api_body_size(const struct http_head *head, void *api); /* more than usual at /in/… and /llm/… */
void api_refuse(int status, const char *why, struct buf *out, void *api);

/* The rules from now on, for this face, the engine and the delivery. Takes the policy over. */
void api_take_policy(struct api *api, struct policy *policy, int64_t version);

/* Reads policy, tokens and secrets anew when they may have changed elsewhere; called every second. */
void api_refresh(void *api);

/* A backtest that nobody comes back for is forgotten; called every second. And when all is over. */
void backtest_tick(void *api);
void backtest_end(struct api *api);

/* Model calls: what they need beside the rest of the face, and their work of every second. */
CHECKED enum status llm_open(struct llm **ret_llm, struct why *why);
void llm_close(struct llm *llm);
void llm_tick(void *api);
void llm_each(const struct llm *llm, void (*each)(void *ctx, const struct llm_figures *figures), void *ctx);

/* Counts a model call of a run; what was counted is written soon, or now. */
void runs_count(struct api *api, const struct row_run *row);
void runs_flush(struct api *api);

/* ---- for handlers: call.c ---- */

void call_header(struct call *call, const char *name, struct bytes value);
void call_headerf(struct call *call, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Sends what is in `out` as JSON. The call is gone afterwards, as with every call_reply…/problem. */
void call_reply(struct call *call, int status);
void call_reply_as(struct call *call, int status, const char *content_type, struct bytes body);

/* Hands the command or the read to the engine; `finish` is called on the loop afterwards. */
void call_submit(struct call *call, void (*finish)(struct call *call));
void call_submit_read(struct call *call, enum status (*read)(struct store *, struct engine_read *, struct why *),
                      void (*finish)(struct call *call));

/* The request's JSON body into a struct; false when the problem was sent. An empty body counts as {}. */
bool call_body(struct call *call, const struct json_field *fields, size_t count, void *ret);

/* The value of a query parameter, decoded, or BYTES_NONE. */
struct bytes call_query(struct call *call, const char *name);

/* Refuses query parameters that are not in the NULL-terminated list; false when the problem was sent. */
bool call_query_known(struct call *call, const char *const *names);

/* `limit` and `after`; false when the problem was sent. `after` is an id with `prefix`; 0 when absent. */
bool call_page(struct call *call, const char *prefix, int64_t *ret_limit, int64_t *ret_after);

/* The {…} of the path as an id; false when the problem was sent. */
bool call_param_id(struct call *call, size_t param, const char *prefix, int64_t *ret_id);

/* A member that is an id, such as "intent":"int_…"; null for 0. */
void call_write_id(struct json_out *out, const char *name, const char *prefix, int64_t id);

/* A member that is a list: `take` writes an item for each row, with `ctx`. */
CHECKED enum status call_write_rows(struct json_out *out, const char *name, struct store *store, const struct query *query,
                                    const void *params, store_row_fn *take, void *ctx, struct why *why);
void call_write_effect(struct json_out *out, const struct ledger_answer *answer); /* effect, intent, state */

/* On the reader: the member `result` with these stored bytes, null when there are none. */
CHECKED enum status call_write_result(struct call *call, struct store *store, int64_t body, struct json_out *out,
                                      struct why *why);

/* A list begins; … and ends with where the next page is, `next` 0 when this is the last. */
void call_open_list(struct json_out *out);
void call_close_list(struct json_out *out, const char *prefix, int64_t next, int64_t limit);

/* Answers with what was read; NOTHING becomes not_found with this sentence. */
void call_reply_read(struct call *call, const char *nothing);

/* ---- problem.c: RFC 9457 ---- */

/* Sends the problem of that code. `detail` says what happened here; more members come from `extra` (may be NULL), which writes into the object. */
void problem(struct call *call, const char *code, const char *format, ...) __attribute__((format(printf, 3, 4)));
void problem_with(struct call *call, const char *code, void (*extra)(struct call *call, struct json_out *out), const char *format,
                  ...) __attribute__((format(printf, 4, 5)));

/* A bad field: 400 `invalid` with `field`. */
void problem_field(struct call *call, struct bytes field, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The engine could not: 503 with the reason, and more members from `extra` (may be NULL). */
void problem_storage(struct call *call, enum status status, const struct why *why);
void problem_storage_with(struct call *call, enum status status, const struct why *why,
                          void (*extra)(struct call *call, struct json_out *out));

void problem_show(struct call *call); /* GET /problems/{code} */

/* Writes a problem body for a request that never became one. */
void problem_bare(int status, const char *why, struct buf *out);

/* ---- claims.c, for every face that names an intent ---- */

/* Fills in who, which key, what it stands for, and the workflow's rules; false when the problem was sent. */
bool claims_name(struct call *call, const struct claim_naming *naming, struct ledger_command *ret);

/* An answer in a conversation: what is said beside thread and action. */
struct answer_order {
    struct answer_naming answer;
    struct claim_naming *naming; /* its workflow, thread and key are filled in */
    bool named;                  /* by thread and action */
    struct bytes field;
    void *state; /* the handler's, while it is looked up */
    void (*then)(struct call *call);
};

/* Finds out which key an answer has, and goes on with `then`; with anything else it goes on at once. Sends the problem otherwise. */
void answers_name(struct call *call, struct answer_order *order, void (*then)(struct call *call));

/* `Prefer: wait=n`, in milliseconds; 0 without. */
int64_t claims_preferred_wait_ms(struct call *call);

/* The answer to a claim, whatever it is. */
void claims_answer(struct call *call);

/* ---- handlers ---- */
void agents_start(struct call *call);
void agents_stop(struct call *call);
void claims_create(struct call *call);
void claims_sent(struct call *call);
void claims_confirm(struct call *call);
void claims_fail(struct call *call);
void claims_extend(struct call *call);
void claims_release(struct call *call);
void doctor_show(struct call *call);
void effects_create(struct call *call);
void effects_list(struct call *call);
void effects_show(struct call *call);
void effects_cancel(struct call *call);
void effects_retry(struct call *call);
void effects_resolve(struct call *call);
void effects_cancel_many(struct call *call);
void effects_retry_many(struct call *call);
void events_list(struct call *call);
void events_show(struct call *call);
void events_release(struct call *call);
void events_suppress(struct call *call);
void events_replay(struct call *call);
void events_replay_many(struct call *call);
void exceptions_list(struct call *call);
void exceptions_show(struct call *call);
void exceptions_assign(struct call *call);
void exceptions_resolve(struct call *call);
void forward_call(struct call *call);
void in_receive(struct call *call);
void llm_forward(struct call *call);
void runs_list(struct call *call);
void runs_show(struct call *call);
void intents_list(struct call *call);
void mcp_gateway(struct call *call);                                     /* agent/gateway.c */
void gateway_metrics(const struct gateway *gateway, struct buf *out);    /* agent/gateway.c; nothing for NULL */
void gateway_set_policy(struct gateway *gateway, struct policy *policy); /* agent/gateway.c; nothing for NULL */
void intents_show(struct call *call);
void decisions_list(struct call *call);
void leads_create(struct call *call);
void leads_find(struct call *call);
void leads_list(struct call *call);
void leads_merge_post(struct call *call);
void leads_show(struct call *call);
void leads_undo_post(struct call *call);
void leads_why(struct call *call);
void policy_show(struct call *call);
void policy_put(struct call *call);
void policy_backtest(struct call *call);
void policy_backtest_next(struct call *call);
void secrets_list(struct call *call);
void secrets_put(struct call *call);
void secrets_remove(struct call *call);
void secrets_rewrap(struct call *call);
void threads_list(struct call *call);
void threads_show(struct call *call);
void sources_list(struct call *call);
void sources_mute(struct call *call);
void sources_unmute(struct call *call);
void sources_limit(struct call *call);
void tokens_list(struct call *call);
void tokens_create(struct call *call);
void tokens_revoke(struct call *call);
void tool_calls_count(struct call *call);
void tool_calls_answered(struct call *call);
void health_live(struct call *call);
void health_ready(struct call *call);
void metrics_show(struct call *call);
void openapi_show(struct call *call);
void root_show(struct call *call);
void quarantine_lift_post(struct call *call);
void workflows_lint(struct call *call);
void workflows_list(struct call *call);

/* An audit row that is not about an intent. `detail` is JSON or absent. */
enum status admin_record(struct ledger *ledger, struct bytes space, struct bytes actor, const char *kind, struct bytes detail);

/* The space `main` keeps the house: its admins set the policy, give tokens to other spaces and change the master key. False when the problem was sent. */
bool admin_keeps_house(struct call *call);

/* Makes a token row in the batch's transaction: shared with the first start. */
struct token_order {
    struct bytes space, name, actor;
    int64_t scopes, expires_us;
    char text[TOKEN_TEXT_SIZE + 1];
    struct hash hash;
    struct bytes id;
    int64_t created_us;
};
enum status token_write(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why);

/* The policy that the request's body is; false when the problem was sent. */
bool policy_body(struct call *call, struct policy **ret_policy);

/* Writes a policy version when it differs from the latest; `changed` says so. Shared with the start. */
struct policy_order {
    struct bytes text, actor;
    struct hash hash;
    const struct policy *policy; /* the same, to count what it leaves stranded; may be NULL */
    int64_t version;
    bool changed;
    int64_t stranded; /* effects that wait for a destination which it lacks */
};
enum status policy_write(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why);

#endif
