/* leads_act: what is said of leads: a record of one, that two are one, that they are not. */
#include "api/leads.h"

/* ---- a person in a body ---- */

static bool add_text(struct call *call, const char *field, struct bytes text, struct bytes *list, size_t *count)
{
    if (text.len == 0)
        return true;
    if (text.len > LEAD_TEXT_MAX || *count == LEAD_IDENTITIES_MAX) {
        problem_field(call, bytes_of(field), "%s has at most %d values of %d bytes.", field, LEAD_IDENTITIES_MAX, LEAD_TEXT_MAX);
        return false;
    }
    list[(*count)++] = text;
    return true;
}

static bool add_list(struct call *call, const char *field, const struct json *json, struct bytes *list, size_t *count)
{
    if (json == NULL)
        return true;
    bool good = json->type == JSON_ARRAY;
    for (uint32_t i = 0; good && i < json->count; i++)
        good = json->items[i].type == JSON_STRING;
    if (!good) {
        problem_field(call, bytes_of(field), "%s has to be a list of texts.", field);
        return false;
    }
    for (uint32_t i = 0; i < json->count; i++)
        if (!add_text(call, field, json->items[i].text, list, count))
            return false;
    return true;
}

bool lead_body(struct call *call, bool source_needed, struct lead_given *ret)
{
    const struct json_field fields[] = {
        {"source", JSON_FIELD_TEXT, offsetof(struct lead_body, source), source_needed, 1, 64, NULL},
        {"external_id", JSON_FIELD_TEXT, offsetof(struct lead_body, external), false, 1, LEAD_TEXT_MAX, NULL},
        {"name", JSON_FIELD_TEXT, offsetof(struct lead_body, name), false, 0, LEAD_TEXT_MAX, NULL},
        {"company", JSON_FIELD_TEXT, offsetof(struct lead_body, company), false, 0, LEAD_TEXT_MAX, NULL},
        {"country", JSON_FIELD_TEXT, offsetof(struct lead_body, country), false, 0, LEAD_TEXT_MAX, NULL},
        {"email", JSON_FIELD_TEXT, offsetof(struct lead_body, email), false, 0, LEAD_TEXT_MAX, NULL},
        {"emails", JSON_FIELD_VALUE, offsetof(struct lead_body, emails), false, 0, 0, NULL},
        {"phone", JSON_FIELD_TEXT, offsetof(struct lead_body, phone), false, 0, LEAD_TEXT_MAX, NULL},
        {"phones", JSON_FIELD_VALUE, offsetof(struct lead_body, phones), false, 0, 0, NULL},
        {"ids", JSON_FIELD_VALUE, offsetof(struct lead_body, ids), false, 0, 0, NULL},
    };
    struct lead_body body = {.source = BYTES_NONE};
    if (!call_body(call, fields, sizeof fields / sizeof *fields, &body))
        return false;
    struct lead_given given = {.space = call->space,
                               .source = body.source.at != NULL ? body.source : BYTES("ask"),
                               .external = body.external,
                               .name = body.name,
                               .company = body.company,
                               .country = body.country};
    if (!add_text(call, "email", body.email, given.emails, &given.email_count) ||
        !add_list(call, "emails", body.emails, given.emails, &given.email_count) ||
        !add_text(call, "phone", body.phone, given.phones, &given.phone_count) ||
        !add_list(call, "phones", body.phones, given.phones, &given.phone_count) ||
        !add_list(call, "ids", body.ids, given.ids, &given.id_count))
        return false;
    if (source_needed && lead_given_is_empty(&given)) {
        problem_field(call, BYTES("email"),
                      "Give at least one of email, phone, ids and external_id: by a name alone nobody is known.");
        return false;
    }
    *ret = given;
    return true;
}

/* ---- a record ---- */

struct leads_act_state {
    struct lead_given given;
    struct lead_answer answer;
    struct lead_act asked, act; /* what is asked for; what became of it */
    enum status (*carry_out)(struct leads *leads, struct lead_act *act, struct why *why);
    struct bytes with;
};

static enum status open_leads(struct store *store, struct ledger *ledger, const struct call *call, struct leads **ret,
                              struct why *why)
{
    struct leads_config config = {
        .store = store,
        .ledger = ledger,
        .arena = ledger->arena,
        .pepper = engine_pepper(call->api->engine),
        .actor = call->actor,
        .policy = call->api->policy_version,
    };
    /* One node at a time decides who is whom. */
    TRY(store_run(store, &EVENT_LOCK, NULL, 0, NULL, NULL, NULL, why));
    return leads_open(&config, ret, why);
}

static enum status write_record(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    const struct call *call = command->user;
    struct leads_act_state *state = call->state;
    struct people people = engine_people(call->api->engine);
    struct leads *leads;
    people.due_us = LEAD_DUE_US;
    TRY(open_leads(store, ledger, call, &leads, why));
    struct lead_query *query = leads_ask(leads, &state->given);
    if (query == NULL)
        return why_set(why, FULL, "no memory for a record");
    TRY(leads_look(leads, why));
    TRY(leads_decide(leads, query, false, &people, &state->answer, why));
    return leads_save(leads, why);
}

static void finish_record(struct call *call)
{
    static const int statuses[] = {[LEAD_KNOWN] = 200, [LEAD_SAME] = 200, [LEAD_REVIEW] = 202, [LEAD_NEW] = 201};
    const struct lead_answer *answer = &((struct leads_act_state *)call->state)->answer;
    if (call->command.status != OK) {
        problem_storage(call, call->command.status, &call->command.why);
        return;
    }
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    call_write_id(&out, "lead", "lead", answer->lead);
    call_write_id(&out, "record", "rec", answer->record);
    json_text_member(&out, "found", bytes_of(lead_found_names[answer->found]));
    json_i64_member(&out, "score", answer->score_mb);
    json_text_member(&out, "rule", bytes_of(answer->rule));
    json_text_member(&out, "because", bytes_of(lead_because(bytes_of(answer->rule))));
    call_write_id(&out, "other", "lead", answer->other);
    call_write_id(&out, "edge", "edg", answer->edge);
    json_close(&out, '}');
    call_reply(call, statuses[answer->found]);
}

static struct leads_act_state *new_state(struct call *call)
{
    struct leads_act_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    state->asked = (struct lead_act){.space = call->space, .actor = call->actor};
    call->state = state;
    return state;
}

void leads_create(struct call *call)
{
    struct leads_act_state *state = new_state(call);
    if (!lead_body(call, true, &state->given))
        return;
    call->command = (struct engine_command){.write = write_record};
    call_submit(call, finish_record);
}

/* ---- merging, taking apart, answering ---- */

static void write_apart(struct call *call, struct json_out *out)
{
    const struct lead_act *act = &((struct leads_act_state *)call->state)->act;
    call_write_id(out, "edge", "edg", act->edge);
}

static void finish_act(struct call *call)
{
    const struct lead_act *act = &((struct leads_act_state *)call->state)->act;
    if (call->command.status == NOTHING) {
        problem(call, "not_found", "%s.", call->command.why.text);
        return;
    }
    if (call->command.status != OK) {
        problem_storage(call, call->command.status, &call->command.why);
        return;
    }
    if (act->end == LEAD_ACT_APART) {
        problem_with(call, "kept_apart", write_apart, "Somebody decided that these two are different.");
        return;
    }
    if (act->end == LEAD_ACT_FULL) {
        problem(call, "not_open", "Together they would have more than %d records.", LEAD_RECORDS_MAX);
        return;
    }
    struct json_out out = json_out_to(&call->out);
    json_open(&out, '{');
    call_write_id(&out, "lead", "lead", act->lead);
    call_write_id(&out, "other", "lead", act->other);
    call_write_id(&out, "edge", "edg", act->edge);
    json_name(&out, "changed");
    json_bool(&out, act->end == LEAD_ACT_DONE);
    json_close(&out, '}');
    call_reply(call, 200);
}

static enum status write_act(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    const struct call *call = command->user;
    struct leads_act_state *state = call->state;
    struct leads *leads;
    state->act = state->asked; /* it may be the second try */
    TRY(open_leads(store, ledger, call, &leads, why));
    TRY(state->carry_out(leads, &state->act, why));
    return state->act.end == LEAD_ACT_DONE ? leads_save(leads, why) : OK;
}

static void submit(struct call *call, enum status (*carry_out)(struct leads *leads, struct lead_act *act, struct why *why))
{
    struct leads_act_state *state = call->state;
    state->carry_out = carry_out;
    call->command = (struct engine_command){.write = write_act};
    call_submit(call, finish_act);
}

void leads_merge_post(struct call *call)
{
    static const struct json_field fields[] = {
        {"with", JSON_FIELD_TEXT, offsetof(struct leads_act_state, with), true, 1, 64, NULL},
        {"note", JSON_FIELD_TEXT, offsetof(struct leads_act_state, asked.note), false, 0, EXCEPTION_NOTE_MAX, NULL},
    };
    struct leads_act_state *state = new_state(call);
    if (!call_param_id(call, 0, "lead", &state->asked.lead) || !call_body(call, fields, sizeof fields / sizeof *fields, state))
        return;
    if (!id_parse("lead", state->with, &state->asked.other)) {
        problem_field(call, BYTES("with"), "with has to be the id of a lead, lead_….");
        return;
    }
    submit(call, leads_merge);
}

void leads_undo_post(struct call *call)
{
    static const struct json_field fields[] = {
        {"different", JSON_FIELD_BOOL, offsetof(struct leads_act_state, asked.different), false, 0, 0, NULL},
        {"note", JSON_FIELD_TEXT, offsetof(struct leads_act_state, asked.note), false, 0, EXCEPTION_NOTE_MAX, NULL},
    };
    struct leads_act_state *state = new_state(call);
    if (call_param_id(call, 0, "edg", &state->asked.edge) && call_body(call, fields, sizeof fields / sizeof *fields, state))
        submit(call, leads_undo);
}

static enum status answer_same(struct leads *leads, struct lead_act *act, struct why *why)
{
    return leads_answer(leads, act, true, why);
}

static enum status answer_different(struct leads *leads, struct lead_act *act, struct why *why)
{
    return leads_answer(leads, act, false, why);
}

void lead_answer_card(struct call *call, int64_t edge, bool same, struct bytes note)
{
    struct leads_act_state *state = new_state(call);
    state->asked.edge = edge;
    state->asked.note = note;
    submit(call, same ? answer_same : answer_different);
}
