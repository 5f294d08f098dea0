/* leads: for the handlers that speak of them. */
#ifndef SEMEL_API_LEADS_H
#define SEMEL_API_LEADS_H

#include "api/api.h"
#include "leads/leads.h"

/* What a body says of a person: email or emails, phone or phones, and the rest. */
struct lead_body {
    struct bytes source, external, name, company, country, email, phone;
    const struct json *emails, *phones, *ids;
};

/* The person that the request's body is; false when the problem was sent. */
bool lead_body(struct call *call, bool source_needed, struct lead_given *ret);

/* On the reader: the member `lead` of an event: whose it is and how that was found; null when it is nobody's. */
CHECKED enum status lead_write_of_event(struct json_out *out, struct store *store, struct bytes space, int64_t event,
                                        int64_t record, struct why *why);

/* On the reader: the member `lead`, the id alone. */
CHECKED enum status lead_write_id(struct json_out *out, struct store *store, int64_t record, struct why *why);

/* On the reader: the member `question` of a card that asks whether two leads are one; null for edge 0. */
CHECKED enum status lead_write_question(struct json_out *out, struct store *store, struct bytes space, int64_t edge,
                                        struct why *why);

/* What a record says; what was decided about two. */
CHECKED enum status lead_write_record(struct json_out *out, const struct row_lead_record *record, struct arena *scratch,
                                      struct why *why);
void lead_write_edge(struct json_out *out, const struct row_lead_edge *edge);

/* The sentence of a rule; NULL when it is none of ours. */
const char *lead_because(struct bytes rule);

/* What a person says about the question of a card. */
void lead_answer_card(struct call *call, int64_t edge, bool same, struct bytes note);

#endif
