/*
 * destination_settings: the rows of the tables that provider files and destinations are read by. Inside destination/ only.
 */
#ifndef SEMEL_DESTINATION_DESTINATION_SETTINGS_H
#define SEMEL_DESTINATION_DESTINATION_SETTINGS_H

#include "base/facts.h"
#include "base/forms.h"
#include "destination/destination_read.h"

enum { VALUE_IS = FACT_ROWS, VALUE_BURST, VALUE_COUNT };
enum { AUTH_IS = FACT_ROWS, AUTH_HEADER_NAME, AUTH_PREFIX, AUTH_USER, AUTH_COUNT };
enum {
    CARRIER_IN = FACT_ROWS,
    CARRIER_NAME,
    CARRIER_CODEC,
    CARRIER_SIZE,
    CARRIER_CHARS,
    CARRIER_WITH,
    CARRIER_UNLESS_GIVEN,
    CARRIER_COUNT
};
enum { RULE_STATUS = FACT_ROWS, RULE_HEADER, RULE_HEADER_IS, RULE_FIELD, RULE_VALUES, RULE_OUTCOME, RULE_BECAUSE, RULE_COUNT };
enum {
    PROBE_METHOD = FACT_ROWS,
    PROBE_PATH,
    PROBE_REQUIRES,
    PROBE_ITEMS,
    PROBE_MATCH,
    PROBE_TOTAL,
    PROBE_MORE,
    PROBE_TIME,
    PROBE_SHOW,
    PROBE_ABSENT_STATUS,
    PROBE_PROVES,
    PROBE_SETTLE,
    PROBE_TRIES,
    PROBE_COUNT
};
enum { MEMO_END_DATA, MEMO_END_FIELD, MEMO_END_VALUES, MEMO_END_COUNT };
enum { MEMO_ENDS = FACT_ROWS, MEMO_MODEL, MEMO_INPUT, MEMO_OUTPUT, MEMO_VARY, MEMO_COUNT };
enum { PRICE_INPUT, PRICE_OUTPUT, PRICE_COUNT };
enum {
    CALL_NAME = FACT_ROWS,
    CALL_METHODS,
    CALL_PATHS,
    CALL_READS,
    CALL_KEY,
    CALL_WINDOW,
    CALL_WINDOW_FACT,
    CALL_OUTCOMES,
    CALL_MARKERS,
    CALL_PROBES,
    CALL_ON_4XX,
    CALL_MEMO,
    CALL_COUNT
};
enum { FILE_TITLE, FILE_ABOUT, FILE_KIND, FILE_URL, FILE_AUTH, FILE_RATE, FILE_SETTINGS, FILE_CALLS, FILE_COUNT };

enum {
    DEST_PROVIDER,
    DEST_TITLE,
    DEST_URL,
    DEST_SECRET,
    DEST_AUTH,
    DEST_AUTH_HEADER,
    DEST_AUTH_PREFIX,
    DEST_USER,
    DEST_TIMEOUT,
    DEST_CONCURRENCY,
    DEST_RATE,
    DEST_BURST,
    DEST_ATTEMPTS,
    DEST_BACKOFF,
    DEST_BACKOFF_MAX,
    DEST_DEADLINE,
    DEST_ON_UNKNOWN,
    DEST_ON_4XX,
    DEST_RESPONSE_MAX,
    DEST_ALLOW_PRIVATE,
    DEST_TLS_VERIFY,
    DEST_ORDERED,
    DEST_KEY,
    DEST_TIME,
    DEST_REPEAT_WINDOW,
    DEST_KEEP,
    DEST_MEMO,
    DEST_IGNORE,
    DEST_PRICES,
    DEST_OWNER,
    DEST_CAPABILITY,
    DEST_KEY_HEADER,
    DEST_KEY_JSON,
    DEST_KEY_FORM,
    DEST_KEY_QUERY,
    DEST_KEY_CODEC,
    DEST_KEY_SIZE,
    DEST_KEY_CHARS,
    DEST_WINDOW,
    DEST_CALLS,
    DEST_HOST,
    DEST_PORT,
    DEST_FROM,
    DEST_TLS,
    DEST_COMMAND,
    DEST_COUNT
};

extern const struct setting_table url_table, rate_table, window_table, auth_table, carrier_table, outcome_table, probe_table,
    memo_table, memo_end_table, price_table, call_table, file_table, destination_table;

bool parse_window(struct bytes text, int64_t *ret_us); /* a duration, or "always" */

bool parse_price(struct bytes text, int64_t *ret_micro); /* "2.50": at most six decimals */

/* One call of a provider file or of the policy. `fact` is told of each fact. */
struct call_source {
    const struct destination_source *source;
    enum fact_place place;
    enum destination_kind kind;
    bool replays_refusals;     /* where the call does not say */
    struct provider *provider; /* gets the facts; NULL in the policy */
};

CHECKED enum status read_calls(const struct call_source *from, const struct yaml *list, struct call_rules *calls, size_t *count);

extern const char *const codec_kind_names[];
extern const char *const on_4xx_names[]; /* "release", "replay", NULL */

#endif
