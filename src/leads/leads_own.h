/* leads_own: what the files of leads/ share: the leads of one transaction, in memory. */
#ifndef SEMEL_LEADS_LEADS_OWN_H
#define SEMEL_LEADS_LEADS_OWN_H

#include "leads/leads.h"

#define LEAD_SLOTS 4096

struct lead_node;

struct record_node {
    struct row_lead_record row; /* row.lead is what is stored */
    struct lead_node *lead;
    struct match_person *person; /* NULL until it is needed: see record_person() */
    struct match_key *keys;      /* of a fresh one */
    size_t key_count;
    bool fresh;
    struct record_node *sibling; /* of the same lead, oldest first */
    struct record_node *next, *next_h;
};

struct lead_node {
    int64_t id;
    struct bytes space;
    struct record_node *first;
    size_t count;
    const struct match_person *person; /* of all records; NULL until it is needed */
    struct lead_node *into;            /* it was joined with this one */
    bool wanted, loaded, stored, changed;
    struct lead_node *next, *next_all;
};

struct edge_node {
    struct row_lead_edge row;
    bool fresh, taken_back; /* to be written */
    bool told, told_back;   /* a decision speaks of it */
    struct people people;   /* who is asked, of a fresh question */
    struct bytes answer;    /* to a question that is taken back */
    struct edge_node *next;
};

struct key_row {
    int64_t record, lead;
    struct key_row *next;
};

/* A value by which records are found. */
struct key_node {
    int64_t k;
    struct key_row *first;
    size_t row_count;
    bool looked;
    struct key_node *next, *next_all;
};

struct space_node {
    struct bytes space;
    int64_t leads, more; /* stored; made since */
    struct space_node *next;
};

struct lead_query {
    struct lead_given given;
    struct bytes content;
    uint8_t h[KEY_HASH_SIZE];
    struct match_person *person;
    struct match_key keys[MATCH_KEYS_MAX];
    struct key_node *at[MATCH_KEYS_MAX];
    size_t key_count;
    bool looked;
    struct lead_query *next;
};

struct leads {
    struct leads_config config;
    struct record_node *records[LEAD_SLOTS], *by_h[LEAD_SLOTS];
    struct lead_node *leads[LEAD_SLOTS];
    struct key_node *keys[LEAD_SLOTS];
    struct lead_node *all;
    struct key_node *all_keys;
    struct edge_node *edges;
    struct space_node *spaces;
    struct lead_query *queries, **last_query;
    struct lead_candidate *candidates; /* room for LEAD_CANDIDATES_MAX */
    char weights[2 * HASH_SIZE];
};

enum status leads_no_memory(struct why *why);

/* ---- set.c ---- */

struct record_node *record_at(const struct leads *leads, int64_t id); /* NULL when it is not loaded */
struct record_node *record_by_h(const struct leads *leads, const uint8_t *h);
struct lead_node *lead_at(const struct leads *leads, int64_t id); /* the one that it was joined with, as the case may be */

/* A record that was read or is new, as a part of its lead; the same again changes nothing. NULL without memory. */
struct record_node *record_add(struct leads *leads, const struct row_lead_record *row, bool fresh);

/* From now on it belongs to that lead. */
void lead_take(struct lead_node *lead, struct record_node *record);
struct lead_node *lead_new(struct leads *leads, struct bytes space, int64_t id);

CHECKED enum status record_person(struct leads *leads, struct record_node *record, struct why *why);
CHECKED enum status lead_person_of(struct leads *leads, struct lead_node *lead, struct why *why);

/* All records of the leads that are wanted, and what speaks against joining them. */
CHECKED enum status leads_load(struct leads *leads, bool all_edges, struct why *why);

/* The record of that id with the whole lead that it belongs to; NOTHING when there is none. */
CHECKED enum status leads_load_record(struct leads *leads, struct bytes space, int64_t id, struct record_node **ret,
                                      struct why *why);

CHECKED enum status leads_space(struct leads *leads, struct bytes space, struct space_node **ret, struct why *why);

/* How many leads have this value; LEAD_HOLDERS_MAX + 1 when it is more than are counted: then it says nothing. */
uint32_t key_holders(const struct leads *leads, const struct key_node *key);
struct lead_node *key_row_lead(const struct leads *leads, const struct key_row *row); /* NULL when it is not known of */

/* From now on the record is found by it. False without memory. */
bool key_note(struct leads *leads, struct key_node *key, const struct record_node *record);

/* ---- edges.c ---- */

/* What stands between two leads; NULL where nothing does. */
struct apart {
    struct edge_node *different;
    struct edge_node *asked;
    struct edge_node *parted; /* they were one, and somebody took them apart */
};
struct apart leads_apart(const struct leads *leads, const struct lead_node *a, const struct lead_node *b);

struct edge_node *edge_new(struct leads *leads, enum lead_edge_kind kind, const struct record_node *a,
                           const struct record_node *b, const char *rule);
struct edge_node *edge_add(struct leads *leads, const struct row_lead_edge *row);
void edge_take_back(struct leads *leads, struct edge_node *edge, struct bytes actor, struct bytes note);

/* The two become one, by a `same` edge between these records. Questions about them are answered by it. */
void leads_join(struct leads *leads, struct record_node *a, struct record_node *b, struct bytes note);

/* ---- tell.c ---- */

/* One decision, with the edges that no decision speaks of yet. `record`, `answer`: of a record that came. */
struct lead_told {
    const char *kind;
    struct bytes space, actor, note;
    const char *rule;
    const struct record_node *record;
    const struct lead_answer *answer;
    const struct lead_candidate *candidates;
    size_t candidate_count;
    int64_t lead, other;
};
CHECKED enum status leads_tell(struct leads *leads, const struct lead_told *told, struct why *why);

#endif
