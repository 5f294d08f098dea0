/* lead: whose event it is. Every one that goes on and has a sender becomes a record of a person, or is known to be one. */
#include "flow/flow_own.h"

#include <stdio.h>

/* What a program sends is nobody's. */
static bool has_person(const struct item *item)
{
    const struct incoming *incoming = &item->known.incoming;
    int64_t verdict = item->known.row.verdict;
    return (verdict == EVENT_ACCEPTED || verdict == EVENT_RELEASED) && item_is_question(item) && !incoming_is_machine(incoming) &&
           item->known.row.record == 0;
}

static void add(struct bytes *list, size_t *count, struct bytes text)
{
    if (*count < LEAD_IDENTITIES_MAX)
        list[(*count)++] = text;
}

static struct lead_given given_of(const struct item *item)
{
    const struct incoming *incoming = &item->known.incoming;
    struct lead_given given = {
        .space = item->known.row.space,
        .source = item->known.row.source,
        .name = incoming->name,
        .company = incoming->company,
        .country = incoming->country.len > 0 || item->source == NULL ? incoming->country : item->source->region,
        .event = item->known.row.id,
    };
    for (size_t i = 0; i < incoming->identity_count; i++) {
        const struct identity *identity = &incoming->identities[i];
        if (!identity->sender)
            continue;
        switch (identity->kind) {
        case IDENTITY_EMAIL:
            add(given.emails, &given.email_count, identity->value);
            break;
        case IDENTITY_PHONE:
            add(given.phones, &given.phone_count, identity->given.len > 0 ? identity->given : identity->value);
            break;
        case IDENTITY_OTHER:
            add(given.ids, &given.id_count, identity->value);
            break;
        }
    }
    return given;
}

static struct people asked_about(const struct source *source, struct people people)
{
    if (source != NULL && source->owner.len > 0)
        snprintf(people.owner, sizeof people.owner, "%.*s", BYTES_ARG(source->owner));
    people.due_us = source != NULL && source->due_us > 0 ? source->due_us : LEAD_DUE_US;
    return people;
}

static enum status decide(struct leads *leads, struct item *item, struct lead_query *query, const struct people *people,
                          struct why *why)
{
    struct people asked = asked_about(item->source, *people);
    bool shadow = item->source != NULL && item->source->shadow;
    TRY(leads_decide(leads, query, shadow, &asked, &item->lead, why));
    item->known.row.record = item->lead.record;
    if (item->thread != NULL)
        item->thread->row.record = item->lead.record;
    return OK;
}

enum status flow_leads(const struct leads_config *config, struct item *items, size_t count, struct leads **ret, struct why *why)
{
    struct leads *leads = NULL;
    *ret = NULL;
    struct lead_query **queries = arena_zalloc(config->arena, count + 1, sizeof *queries);
    if (queries == NULL)
        return why_set(why, FULL, "no memory for leads");
    for (size_t i = 0; i < count; i++) {
        struct lead_given given = given_of(&items[i]);
        if (!has_person(&items[i]) || lead_given_is_empty(&given))
            continue;
        if (leads == NULL)
            TRY(leads_open(config, &leads, why));
        queries[i] = leads_ask(leads, &given);
        if (queries[i] == NULL)
            return why_set(why, FULL, "no memory for leads");
    }
    if (leads == NULL)
        return OK;
    TRY(leads_look(leads, why));
    for (size_t i = 0; i < count; i++)
        if (queries[i] != NULL)
            TRY(decide(leads, &items[i], queries[i], &config->people, why));
    /* A lead that an earlier one of them joined may have become part of another since. */
    for (size_t i = 0; i < count; i++)
        if (queries[i] != NULL)
            items[i].lead.lead = leads_lead_of(leads, items[i].lead.record);
    *ret = leads;
    return OK;
}

enum status pass_leads(struct pass *pass)
{
    struct leads_config config = {
        .store = pass->store,
        .ledger = pass->ledger,
        .arena = pass->arena,
        .pepper = pass->pepper,
        .actor = BYTES("semel"),
        .policy = pass->policy_version,
        .people = engine_people(pass->flow->engine),
    };
    struct leads *leads;
    TRY(flow_leads(&config, pass->items, pass->count, &leads, pass->why));
    return leads != NULL ? leads_save(leads, pass->why) : OK;
}

static enum status take_lead(void *ctx, const void *row, struct why *why)
{
    (void)why;
    *(int64_t *)ctx = ((const struct r_lead_of *)row)->lead;
    return OK;
}

enum status flow_lead_of(struct store *store, int64_t record, int64_t *ret_lead, struct why *why)
{
    struct q_lead_of find = {record};
    *ret_lead = 0;
    return record != 0 ? store_run(store, &LEAD_OF, &find, 1, take_lead, ret_lead, NULL, why) : OK;
}
