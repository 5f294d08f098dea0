/* memory_own: what the files of the store in memory share: the tables, and what a query is given. */
#ifndef SEMEL_TESTS_SIM_MEMORY_OWN_H
#define SEMEL_TESTS_SIM_MEMORY_OWN_H

#include "sim.h"

#define ROWS_MAX (EFFECTS_ROOM + 2 * TALKS_MAX)
#define LOG_MAX 4096
#define CARDS_MAX 512
#define EVENT_MARKS_MAX (6 * SEEN_MAX)
#define LEAD_KEYS_MAX (16 * SEEN_MAX)

struct tables {
    struct row_intent intents[ROWS_MAX];
    struct q_tombstone_add tombstones[ROWS_MAX];
    struct row_exception exceptions[CARDS_MAX];
    struct row_outbox outbox[EFFECTS_ROOM];
    struct row_delivery deliveries[SEEN_MAX];
    struct row_event events[SEEN_MAX];
    struct q_event_mark_add event_marks[EVENT_MARKS_MAX];
    struct row_event_act acts[4 * SEEN_MAX];
    struct row_source sources[CHANNELS];
    struct row_thread threads[SEEN_MAX];
    struct q_thread_mark_add thread_marks[SEEN_MAX];
    struct row_lead_record lead_records[SEEN_MAX];
    struct row_lead leads[SEEN_MAX];
    struct row_lead_edge lead_edges[SEEN_MAX];
    struct q_lead_key_add lead_keys[LEAD_KEYS_MAX];
    struct q_meta_put meta[8]; /* from here on it is small: TABLES_SMALL */
    size_t meta_count;
    size_t intent_count, tombstone_count, exception_count, outbox_count;
    size_t delivery_count, event_count, event_mark_count, act_count, source_count, thread_count, thread_mark_count;
    size_t lead_record_count, lead_count, lead_edge_count, lead_key_count;
    struct q_lane_put lane;
    bool has_lane;
    size_t decision_count, body_count; /* of the append-only arrays below */
};

#define TABLES_SMALL offsetof(struct tables, meta)

struct memory {
    struct sim *sim;
    struct tables now, committed;
    struct row_decision decisions[LOG_MAX];
    struct q_body_add bodies[LOG_MAX];
};

struct running {
    struct memory *memory;
    store_row_fn *on_row;
    void *ctx;
    int64_t changed;
    struct why *why;
};

typedef enum status run_fn(struct running *running, const void *params);

struct memory_query {
    const struct query *query;
    run_fn *run;
};

extern const struct memory_query memory_inbox[]; /* memory_inbox.c; the last has no query */
extern const struct memory_query memory_leads[]; /* memory_leads.c; so here */

enum status memory_give(struct running *running, const void *row);
void memory_keep(struct memory *memory, const struct query_column *columns, size_t count, void *row);
struct row_intent *memory_intent(struct tables *tables, struct bytes h, int64_t id);
struct row_outbox *memory_outbox(struct tables *tables, int64_t intent);

#endif
