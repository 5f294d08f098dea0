/*
 * source_settings: the rows of the tables that presets and sources are read by. Inside receive/ only.
 */
#ifndef SEMEL_RECEIVE_SOURCE_SETTINGS_H
#define SEMEL_RECEIVE_SOURCE_SETTINGS_H

#include "base/facts.h"
#include "base/forms.h"
#include "receive/source_read.h"

enum {
    VERIFY_ROW_NAME = FACT_ROWS,
    VERIFY_ROW_ALG,
    VERIFY_ROW_ENCODING,
    VERIFY_ROW_KEY,
    VERIFY_ROW_KEY_PREFIX,
    VERIFY_ROW_SIGNS,
    VERIFY_ROW_SIGNATURE,
    VERIFY_ROW_GRAMMAR,
    VERIFY_ROW_PREFIX,
    VERIFY_ROW_TIME,
    VERIFY_ROW_TOLERANCE,
    VERIFY_ROW_ID,
    VERIFY_ROW_BODY_HASH,
    VERIFY_ROW_NONCE,
    VERIFY_ROW_OPTIONAL,
    VERIFY_ROW_COUNT
};
enum {
    HANDSHAKE_METHOD = FACT_ROWS,
    HANDSHAKE_WHEN,
    HANDSHAKE_TOKEN,
    HANDSHAKE_SIGNED,
    HANDSHAKE_ANSWER,
    HANDSHAKE_TYPE,
    HANDSHAKE_HEADERS,
    HANDSHAKE_COUNT
};
enum {
    EVENT_KIND = FACT_ROWS,
    EVENT_SPLIT,
    EVENT_WHEN,
    EVENT_DELIVERY,
    EVENT_DELIVERY_FACT,
    EVENT_KEY,
    EVENT_KEY_FACT,
    EVENT_NAME,
    EVENT_COMPANY,
    EVENT_COUNTRY,
    EVENT_SUBJECT,
    EVENT_TEXT,
    EVENT_THREAD,
    EVENT_TIME,
    EVENT_REFERENCES,
    EVENT_IDENTITIES,
    EVENT_ANSWERS,
    EVENT_AUTOMATIC,
    EVENT_COUNT
};
enum { WHO_EMAIL, WHO_PHONE, WHO_OTHER, WHO_MENTIONED, WHO_COUNT };
enum { ANSWERS_OF, ANSWERS_QUESTION, ANSWERS_VALUE, ANSWERS_PREFER, ANSWERS_SKIP, ANSWERS_COUNT };
enum { ID_IS = FACT_ROWS, ID_COUNT };
enum { RETRY_IS = FACT_ROWS, RETRY_COUNT };
enum { REPLY_BODY = FACT_ROWS, REPLY_TYPE, REPLY_COUNT };
enum { SAMPLE_METHOD, SAMPLE_TYPE, SAMPLE_HEADERS, SAMPLE_QUERY, SAMPLE_BODY, SAMPLE_COUNT };
enum {
    PRESET_TITLE,
    PRESET_ABOUT,
    PRESET_READS,
    PRESET_VERIFY,
    PRESET_HANDSHAKES,
    PRESET_EVENTS,
    PRESET_RETRY,
    PRESET_REPLY,
    PRESET_SAMPLE,
    PRESET_COUNT
};
enum {
    SOURCE_PRESET,
    SOURCE_TITLE,
    SOURCE_SECRET,
    SOURCE_SECRETS,
    SOURCE_VERIFY_TOKEN,
    SOURCE_VERIFY,
    SOURCE_SIGNATURE,
    SOURCE_READS,
    SOURCE_EVENTS,
    SOURCE_ADDRESSES,
    SOURCE_REGION,
    SOURCE_URL,
    SOURCE_WINDOW,
    SOURCE_ACROSS,
    SOURCE_KEEP,
    SOURCE_LOOP,
    SOURCE_FORWARD,
    SOURCE_PATH,
    SOURCE_AS,
    SOURCE_MODE,
    SOURCE_OWNER,
    SOURCE_DUE,
    SOURCE_BODY_LIMIT,
    SOURCE_COUNT
};

extern const struct setting_table verify_table, handshake_table, event_table, who_table, answers_table, id_table, retry_table,
    reply_table, sample_table, preset_table, source_table;

/* ---- preset.c: facts into rules; presets and the policy's own ---- */

struct rule_reader {
    const struct source_reading *reading;
    enum fact_place place;
    struct facts *facts;
};

CHECKED enum status read_verify(const struct rule_reader *reader, const struct yaml *map, struct preset_rule *ret,
                                bool *ret_good);
CHECKED enum status read_events(const struct rule_reader *reader, const struct yaml *list, struct event_map **ret,
                                size_t *ret_count);

#endif
