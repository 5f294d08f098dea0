/*
 * leads: each person exists once. Owns the tables `lead_record`, `lead`, `lead_count`, `lead_key` and `lead_edge`.
 *
 *   record   what one source says of a person, as it said it; never changed. The same words again are the same record.
 *   edge     what was decided about two records: same, different, or asked (a card waits for a person). Never deleted; it can be
 *            undone at any time, and then counts as if it had not been made.
 *   lead     the records that are connected by `same` edges in force. Its id is that of its oldest record.
 *
 * So a merge destroys nothing: a lead follows from its records and edges, and the id of every record stays a name of the lead that
 * it belongs to now. Edges that hold never form a circle: undoing one always makes two leads of one, which are then as they would be
 * had it never been made, whatever was merged since.
 *
 *   What a rule joins, a person can take apart: two leads between which a `same` edge was undone are not joined by a rule again;
 *   a person is asked. `different` is for good, until a person undoes it: neither joined nor asked about.
 *
 * Who a record is, match/ says. A new record joins the lead that it is the same as; when it is the same as several, these are one
 * person and are joined too, unless they contradict each other. Where match/ cannot tell, the record is a lead of its own and a person
 * is asked. In shadow mode every record is a lead of its own, and what would have been done is only written down.
 *
 * Each is a decision in the audit, in the same transaction; the log and the records' contents alone rebuild the other tables
 * (rebuild.c).
 *
 * A `struct leads` is what one transaction knows of them. Runs on the writer thread; leads_compare() also on a reader. On PostgreSQL one
 * node at a time decides about leads: whoever writes them has EVENT_LOCK, as the flow has.
 */
#ifndef SEMEL_LEADS_LEADS_H
#define SEMEL_LEADS_LEADS_H

#include "exceptions/exceptions.h"
#include "match/match.h"

#define LEAD_CANDIDATES_MAX 200
#define LEAD_HOLDERS_MAX 64    /* a value that more leads than this have says nothing: it finds nobody */
#define LEAD_KEY_ROWS_MAX 128  /* records that are looked at for one value; with more of them it says nothing either */
#define LEAD_RECORDS_MAX 1000  /* of one lead; no rule joins more */
#define LEAD_IDENTITIES_MAX 16 /* of one record and kind */
#define LEAD_TEXT_MAX 1000     /* bytes of a name, a company, an id */
#define LEAD_DUE_US (INT64_C(3600) * 1000000)

enum lead_edge_kind { LEAD_EDGE_SAME, LEAD_EDGE_DIFFERENT, LEAD_EDGE_ASKED, LEAD_EDGE_KIND_COUNT };

extern const char *const lead_edge_kind_names[]; /* "same", "different", "asked", NULL */

/* What a source says of a person. */
struct lead_given {
    struct bytes space, source;
    struct bytes external; /* the source's own id of the person; BYTES_NONE without */
    struct bytes name, company, country;
    struct bytes emails[LEAD_IDENTITIES_MAX], phones[LEAD_IDENTITIES_MAX], ids[LEAD_IDENTITIES_MAX]; /* ids as "system:…" */
    size_t email_count, phone_count, id_count;
    int64_t event; /* that it came with; 0 for none */
};

/* There is nothing in it by which anybody could be recognised. */
bool lead_given_is_empty(const struct lead_given *given);

enum lead_found {
    LEAD_KNOWN,  /* this source said the same before */
    LEAD_SAME,   /* it joined a lead that was there */
    LEAD_REVIEW, /* a lead of its own for now: a person is asked */
    LEAD_NEW,
};

extern const char *const lead_found_names[]; /* "known", "same", "review", "new", NULL */

/* ---- one transaction ---- */

struct leads;

/* Everything lives in the arena. `ledger` may be NULL for reading. */
struct leads_config {
    struct store *store;
    struct ledger *ledger;
    struct arena *arena;
    struct bytes pepper, actor;
    int64_t policy;
    struct people people; /* who is asked; due_us 0 means LEAD_DUE_US */
};

CHECKED enum status leads_open(const struct leads_config *config, struct leads **ret_leads, struct why *why);

/* A person to be found. */
struct lead_query;

/* `given` is copied but for its texts. NULL without memory. */
struct lead_query *leads_ask(struct leads *leads, const struct lead_given *given);

/* Looks up all that was asked so far, together. */
CHECKED enum status leads_look(struct leads *leads, struct why *why);

struct lead_answer {
    enum lead_found found;
    int64_t record, lead;
    int64_t score_mb;
    const char *rule;
    int64_t other; /* REVIEW: the lead that it may be. Shadow, SAME: the lead that it would have joined */
    int64_t edge;
    bool shadow;
};

/* What match/ says of one candidate. */
struct lead_candidate {
    int64_t lead;
    struct match_result result;
};

/* Decides who it is, seeing what was decided before in this transaction. */
CHECKED enum status leads_decide(struct leads *leads, struct lead_query *query, bool shadow, const struct people *people,
                                 struct lead_answer *ret, struct why *why);

/* The candidates, the best first; changes nothing. `ret_known` is the record's lead when this source said the same before, else 0. */
CHECKED enum status leads_compare(struct leads *leads, struct lead_query *query, struct lead_candidate *ret, size_t most,
                                  size_t *ret_count, int64_t *ret_known, struct why *why);

/* The lead that a record of this transaction belongs to now. */
int64_t leads_lead_of(const struct leads *leads, int64_t record);

/* Writes all that was decided. */
CHECKED enum status leads_save(struct leads *leads, struct why *why);

/* ---- what a person does; leads_save() afterwards ---- */

enum lead_act_end {
    LEAD_ACT_DONE,
    LEAD_ACT_BEFORE, /* so it was already: nothing changed */
    LEAD_ACT_APART,  /* merge: somebody said that they are different; `edge` is that decision */
    LEAD_ACT_FULL,   /* merge: together they have more than LEAD_RECORDS_MAX records */
};

struct lead_act {
    struct bytes space, actor, note;
    enum lead_act_end end;
    int64_t lead, other; /* merge: two leads. Afterwards: the one lead; undo, different: the two that there are now */
    int64_t edge;        /* undo: which. Afterwards: the edge that was made or undone */
    bool different;      /* undo: and they are different */
};

/* NOTHING when there is no such lead, or no such edge. */
CHECKED enum status leads_merge(struct leads *leads, struct lead_act *act, struct why *why);
CHECKED enum status leads_undo(struct leads *leads, struct lead_act *act, struct why *why);

/* The answer to the question that `edge` is. */
CHECKED enum status leads_answer(struct leads *leads, struct lead_act *act, bool same, struct why *why);

/* ---- contents: pure ---- */

/* What is stored of a record, and what it is again. The identity of both is `h`: KEY_HASH_SIZE bytes. */
CHECKED enum status lead_content(const struct lead_given *given, struct arena *arena, struct bytes *ret, struct why *why);
CHECKED enum status lead_content_read(struct bytes content, struct arena *arena, struct lead_given *ret, struct why *why);
void lead_hash(struct bytes pepper, const struct lead_given *given, struct bytes content, uint8_t ret[KEY_HASH_SIZE]);
CHECKED enum status lead_person(const struct lead_given *given, struct arena *arena, struct match_person *ret, struct why *why);
CHECKED enum status lead_keys(struct bytes pepper, struct bytes space, const struct match_person *person, struct arena *arena,
                              struct match_key ret[MATCH_KEYS_MAX], size_t *ret_count, struct why *why);

/* The lines of a comparison as JSON, without the values: they are in the records. */
CHECKED enum status lead_explain(const struct match_result *result, struct arena *arena, struct bytes *ret, struct why *why);

#endif
