#include "leads/leads.h"

#include <stdio.h>
#include <stdlib.h>

#include "audit/columns.h"
#include "base/when.h"
#include "check.h"
#include "house.h"
#include "leads/rebuild.h"

/* ---- saying things ---- */

static struct {
    struct house *house;
    struct lead_given given[4];
    size_t count;
    bool shadow;
    struct lead_answer answers[4];
    size_t compared;
    struct lead_act act;
    enum status (*carry_out)(struct leads *leads, struct lead_act *act, struct why *why);
} now;

static struct leads *open_leads(struct store *store, struct ledger *ledger, struct why *why)
{
    struct leads *leads;
    struct leads_config config = {
        .store = store, .ledger = ledger, .arena = ledger->arena, .pepper = BYTES("pepper"), .actor = BYTES("semel")};
    CHECK_INT(leads_open(&config, &leads, why), OK);
    return leads;
}

static enum status write_records(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct leads *leads = open_leads(store, ledger, why);
    struct people people = {"dana", 0};
    struct lead_query *queries[4];
    (void)command;
    for (size_t i = 0; i < now.count; i++)
        queries[i] = leads_ask(leads, &now.given[i]);
    TRY(leads_look(leads, why));
    for (size_t i = 0; i < now.count; i++)
        TRY(leads_decide(leads, queries[i], now.shadow, &people, &now.answers[i], why));
    for (size_t i = 0; i < now.count; i++)
        now.answers[i].lead = leads_lead_of(leads, now.answers[i].record);
    return leads_save(leads, why);
}

static enum status write_act(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct leads *leads = open_leads(store, ledger, why);
    (void)command;
    TRY(now.carry_out(leads, &now.act, why));
    return now.act.end == LEAD_ACT_DONE ? leads_save(leads, why) : OK;
}

static enum status write_compare(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct leads *leads = open_leads(store, ledger, why);
    struct lead_query *query = leads_ask(leads, &now.given[0]);
    struct lead_candidate *candidates = arena_zalloc(ledger->arena, LEAD_CANDIDATES_MAX, sizeof *candidates);
    int64_t known;
    (void)command;
    TRY(leads_look(leads, why));
    return leads_compare(leads, query, candidates, LEAD_CANDIDATES_MAX, &now.compared, &known, why);
}

static void nothing(struct engine_command *command)
{
    (void)command;
}

static enum status run(struct house *house,
                       enum status (*write)(struct store *, struct ledger *, struct engine_command *, struct why *))
{
    struct engine_command command = {.write = write, .arena = &house->arena, .done = nothing};
    house_advance(house, WHEN_MS); /* on PostgreSQL it is waited for */
    engine_step(house->engine, &command);
    if (command.status != OK && command.status != NOTHING)
        check_fail(__FILE__, __LINE__, "%s: %s", status_name(command.status), command.why.text);
    return command.status;
}

static struct lead_given person(const char *source, const char *name, const char *email, const char *phone)
{
    struct lead_given given = {.space = BYTES("main"), .source = bytes_of(source), .name = bytes_of(name)};
    if (email != NULL)
        given.emails[given.email_count++] = bytes_of(email);
    if (phone != NULL)
        given.phones[given.phone_count++] = bytes_of(phone);
    return given;
}

static struct lead_answer say_given(struct house *house, struct lead_given given)
{
    now.given[0] = given;
    now.count = 1;
    run(house, write_records);
    return now.answers[0];
}

static struct lead_answer say(struct house *house, const char *source, const char *name, const char *email, const char *phone)
{
    return say_given(house, person(source, name, email, phone));
}

static struct lead_act act(struct house *house, struct lead_act asked,
                           enum status (*carry_out)(struct leads *leads, struct lead_act *act, struct why *why))
{
    now.act = asked;
    now.act.space = BYTES("main");
    now.act.actor = BYTES("dana");
    now.carry_out = carry_out;
    CHECK_INT(run(house, write_act), OK);
    return now.act;
}

static struct lead_act merge(struct house *house, int64_t a, int64_t b)
{
    return act(house, (struct lead_act){.lead = a, .other = b}, leads_merge);
}

static struct lead_act undo(struct house *house, int64_t edge)
{
    return act(house, (struct lead_act){.edge = edge}, leads_undo);
}

static enum status answer_same(struct leads *leads, struct lead_act *asked, struct why *why)
{
    return leads_answer(leads, asked, true, why);
}

static enum status answer_different(struct leads *leads, struct lead_act *asked, struct why *why)
{
    return leads_answer(leads, asked, false, why);
}

/* ---- what is stored ---- */

#define ROWS_MAX 64

struct stored {
    struct arena *arena;
    struct row_lead leads[ROWS_MAX];
    size_t lead_count;
    struct row_lead_record records[ROWS_MAX];
    size_t record_count;
    struct row_lead_edge edges[ROWS_MAX];
    size_t edge_count;
    size_t key_count;
    int64_t count; /* of lead_count */
    struct row_decision decisions[4 * ROWS_MAX];
    size_t decision_count;
};

/* Texts live on behind the row. */
static void keep(struct stored *stored, const struct query *query, void *row)
{
    for (size_t i = 0; i < query->column_count; i++) {
        struct bytes *text = (struct bytes *)((char *)row + query->columns[i].offset);
        if (query->columns[i].type != COLUMN_INT)
            *text = arena_dup(stored->arena, *text);
    }
}

static enum status take_lead(void *ctx, const void *row, struct why *why)
{
    struct stored *stored = ctx;
    (void)why;
    stored->leads[stored->lead_count] = *(const struct row_lead *)row;
    keep(stored, &LEAD_LIST, &stored->leads[stored->lead_count++]);
    return OK;
}

static enum status take_record(void *ctx, const void *row, struct why *why)
{
    struct stored *stored = ctx;
    (void)why;
    stored->records[stored->record_count] = *(const struct row_lead_record *)row;
    keep(stored, &LEAD_RECORDS, &stored->records[stored->record_count++]);
    return OK;
}

static enum status take_edge(void *ctx, const void *row, struct why *why)
{
    struct stored *stored = ctx;
    (void)why;
    for (size_t i = 0; i < stored->edge_count; i++)
        if (stored->edges[i].id == ((const struct row_lead_edge *)row)->id)
            return OK;
    stored->edges[stored->edge_count] = *(const struct row_lead_edge *)row;
    keep(stored, &LEAD_EDGE_OF, &stored->edges[stored->edge_count++]);
    return OK;
}

static enum status take_count(void *ctx, const void *row, struct why *why)
{
    (void)why;
    ((struct stored *)ctx)->count = ((const struct r_lead_count_get *)row)->leads;
    return OK;
}

static enum status take_decision(void *ctx, const void *row, struct why *why)
{
    struct stored *stored = ctx;
    (void)why;
    stored->decisions[stored->decision_count] = *(const struct row_decision *)row;
    keep(stored, &DECISION_LIST, &stored->decisions[stored->decision_count++]);
    return OK;
}

static struct stored *read_all(struct house *house)
{
    struct stored *stored = arena_zalloc(&house->arena, 1, sizeof *stored);
    struct store *store = engine_store(house->engine);
    struct why why;
    struct q_lead_list list = {BYTES("main"), INT64_MAX, ROWS_MAX};
    struct q_lead_count_get count = {BYTES("main")};
    struct q_decision_list decisions = {BYTES("main"), INT64_MAX, 4 * ROWS_MAX};
    CHECK(stored != NULL);
    stored->arena = &house->arena;
    CHECK_INT(store_run(store, &LEAD_LIST, &list, 1, take_lead, stored, NULL, &why), OK);
    for (size_t i = 0; i < stored->lead_count; i++) {
        struct q_lead_records of = {stored->leads[i].id, ROWS_MAX};
        CHECK_INT(store_run(store, &LEAD_RECORDS, &of, 1, take_record, stored, NULL, &why), OK);
    }
    for (size_t i = 0; i < stored->record_count; i++) {
        struct q_lead_edge_of of = {stored->records[i].id};
        CHECK_INT(store_run(store, &LEAD_EDGE_OF, &of, 1, take_edge, stored, NULL, &why), OK);
    }
    CHECK_INT(store_run(store, &LEAD_COUNT_GET, &count, 1, take_count, stored, NULL, &why), OK);
    CHECK_INT(store_run(store, &DECISION_LIST, &decisions, 1, take_decision, stored, NULL, &why), OK);
    return stored;
}

/* Leads and who belongs to them, as text: what is to be the same again after an undo. */
static const char *dump(struct house *house)
{
    const struct stored *stored = read_all(house);
    struct buf buf;
    buf_init(&buf, 64 << 10);
    for (size_t i = 0; i < stored->lead_count; i++) {
        const struct row_lead *lead = &stored->leads[i];
        buf_printf(&buf, "lead %lld %.*s %.*s %lld %lld %lld:", (long long)lead->id, BYTES_ARG(lead->name),
                   BYTES_ARG(lead->company), (long long)lead->records, (long long)lead->created, (long long)lead->updated);
        for (size_t k = 0; k < stored->record_count; k++)
            if (stored->records[k].lead == lead->id)
                buf_printf(&buf, " %lld %.*s", (long long)stored->records[k].id, BYTES_ARG(stored->records[k].content));
        buf_add_char(&buf, '\n');
    }
    buf_printf(&buf, "%lld leads", (long long)stored->count);
    CHECK(!buf.failed);
    const char *text = arena_dup(&house->arena, buf_bytes(&buf)).at;
    buf_release(&buf);
    return text;
}

static void check_columns(const struct query *query, const void *got, const void *want, const char *but)
{
    for (size_t i = 0; i < query->param_count; i++)
        if (strstr(but, query->params[i].name) == NULL && !column_equal(&query->params[i], got, want))
            check_fail(__FILE__, __LINE__, "column %s differs", query->params[i].name);
}

static void check_record(const struct lead_book *book, const struct row_lead_record *stored)
{
    char hex[2 * HASH_SIZE];
    struct hash hash = hash_sha256(stored->content);
    bytes_to_hex(hash_bytes(&hash), hex);
    for (size_t i = 0; i < book->record_count; i++)
        if (book->records[i].id == stored->id) {
            check_columns(&LEAD_RECORD_ADD, &book->records[i], stored, "content packed");
            CHECK(bytes_eq(book->contents[i], (struct bytes){hex, sizeof hex}));
            return;
        }
    check_fail(__FILE__, __LINE__, "a record is not in the log");
}

static void check_edge(const struct lead_book *book, const struct row_lead_edge *stored)
{
    for (size_t i = 0; i < book->edge_count; i++)
        if (book->edges[i].id == stored->id) {
            check_columns(&LEAD_EDGE_ADD, &book->edges[i], stored, "");
            return;
        }
    check_fail(__FILE__, __LINE__, "an edge is not in the log");
}

/* The lead from its records, and each record by its own values. */
static void check_lead(struct house *house, const struct stored *stored, const struct row_lead *lead)
{
    struct row_lead_record records[ROWS_MAX];
    struct row_lead made;
    struct why why;
    size_t count = 0;
    for (size_t i = 0; i < stored->record_count; i++)
        if (stored->records[i].lead == lead->id)
            records[count++] = stored->records[i];
    CHECK(count > 0);
    CHECK_INT(lead_row(records, count, &house->arena, &made, &why), OK);
    check_columns(&LEAD_PUT, &made, lead, "");
}

struct has {
    int64_t record;
    bool found;
};

static enum status take_key(void *ctx, const void *row, struct why *why)
{
    struct has *has = ctx;
    (void)why;
    has->found = has->found || ((const struct r_lead_key_find *)row)->record == has->record;
    return OK;
}

static void check_keys(struct house *house, const struct row_lead_record *record)
{
    struct lead_given given;
    struct match_person *match = arena_zalloc(&house->arena, 1, sizeof *match);
    struct match_key keys[MATCH_KEYS_MAX];
    size_t count;
    struct why why;
    CHECK_INT(lead_content_read(record->content, &house->arena, &given, &why), OK);
    given.source = record->source;
    given.external = record->external;
    CHECK_INT(lead_person(&given, &house->arena, match, &why), OK);
    CHECK_INT(lead_keys(BYTES("pepper"), record->space, match, &house->arena, keys, &count, &why), OK);
    for (size_t i = 0; i < count; i++) {
        struct has has = {.record = record->id};
        struct q_lead_key_find find = {(int64_t)keys[i].hash, ROWS_MAX};
        CHECK_INT(store_run(engine_store(house->engine), &LEAD_KEY_FIND, &find, 1, take_key, &has, NULL, &why), OK);
        CHECK(has.found);
    }
}

/* From the log and the contents alone, everything else is what is stored. */
static void check_rebuilt(struct house *house)
{
    struct stored *stored = read_all(house);
    struct lead_book book = {.arena = &house->arena};
    struct why why;
    for (size_t i = stored->decision_count; i-- > 0;)
        if (lead_fold(&book, &stored->decisions[i], &why) != OK)
            check_fail(__FILE__, __LINE__, "%s", why.text);
    lead_book_settle(&book);
    CHECK_INT(book.record_count, stored->record_count);
    CHECK_INT(book.edge_count, stored->edge_count);
    CHECK_INT(stored->count, (int64_t)stored->lead_count);
    for (size_t i = 0; i < stored->record_count; i++) {
        check_record(&book, &stored->records[i]);
        check_keys(house, &stored->records[i]);
    }
    for (size_t i = 0; i < stored->edge_count; i++)
        check_edge(&book, &stored->edges[i]);
    for (size_t i = 0; i < stored->lead_count; i++)
        check_lead(house, stored, &stored->leads[i]);
}

static enum status count_row(void *ctx, const void *row, struct why *why)
{
    (void)row;
    (void)why;
    ++*(int *)ctx;
    return OK;
}

static int open_cards(struct house *house)
{
    struct q_exception_list_open list = {BYTES("main"), 0, 0, 1000};
    struct why why;
    int count = 0;
    CHECK_INT(store_run(engine_store(house->engine), &EXCEPTION_LIST_OPEN, &list, 1, count_row, &count, NULL, &why), OK);
    return count;
}

static void check_same(const char *got, const char *want)
{
    if (strcmp(got, want) != 0)
        check_fail(__FILE__, __LINE__, "it is\n%s\nwant\n%s", got, want);
}

/* ---- the promises ---- */

TEST_BOTH(one_person_by_three_channels_is_one_lead)
{
    struct house house;
    house_open(&house, storage);
    struct lead_answer form = say(&house, "form", "Jon Smith", "jon@acme.io", "+33612345678");
    struct lead_answer chat = say(&house, "whatsapp", "Jon Smith", NULL, "+33 6 12 34 56 78");
    struct lead_answer mail = say(&house, "mail", "Jonathan Smith", "Jon@Acme.io", NULL);
    CHECK_INT(form.found, LEAD_NEW);
    CHECK_INT(form.lead, form.record);
    CHECK_INT(chat.found, LEAD_SAME);
    CHECK_INT(chat.lead, form.lead);
    CHECK_INT(mail.lead, form.lead);
    CHECK_INT(read_all(&house)->lead_count, 1);
    CHECK_INT(open_cards(&house), 0);
    check_rebuilt(&house);
    house_close(&house);
}

TEST_BOTH(the_same_words_again_are_the_same_record)
{
    struct house house;
    house_open(&house, storage);
    struct lead_answer first = say(&house, "crm", "Jon Smith", "jon@acme.io", NULL);
    struct lead_answer again = say(&house, "crm", "Jon Smith", "jon@acme.io", NULL);
    CHECK_INT(again.found, LEAD_KNOWN);
    CHECK_INT(again.record, first.record);
    CHECK_INT(read_all(&house)->record_count, 1);
    struct lead_answer other = say(&house, "shop", "Jon Smith", "jon@acme.io", NULL);
    CHECK_INT(other.found, LEAD_SAME);
    CHECK(other.record != first.record);
    house_close(&house);
}

TEST_BOTH(a_new_version_under_the_same_id_is_the_same_lead)
{
    struct house house;
    house_open(&house, storage);
    struct lead_given given = person("crm", "Jon Smith", "jon@acme.io", NULL);
    given.external = BYTES("4711");
    struct lead_answer first = say_given(&house, given);
    given = person("crm", "J. Smith-Lee", "js@schmidt.io", NULL);
    given.external = BYTES("4711");
    struct lead_answer second = say_given(&house, given);
    CHECK_INT(second.found, LEAD_SAME);
    CHECK_INT(second.lead, first.lead);
    given.source = BYTES("shop"); /* the same number there is somebody else */
    given.emails[0] = BYTES("else@nowhere.io");
    given.name = BYTES("Petra Lang");
    CHECK_INT(say_given(&house, given).found, LEAD_NEW);
    check_rebuilt(&house);
    house_close(&house);
}

TEST_BOTH(two_people_with_one_phone_are_two_leads)
{
    struct house house;
    house_open(&house, storage);
    struct lead_answer a = say(&house, "form", "Maria Lopez", "maria@lopez.es", "+33612345678");
    struct lead_answer b = say(&house, "form", "Peter Jansen", "peter@jansen.nl", "+33612345678");
    CHECK(a.lead != b.lead);
    CHECK(b.found != LEAD_SAME);
    CHECK_INT(read_all(&house)->lead_count, 2);
    house_close(&house);
}

TEST_BOTH(two_of_one_transaction_see_each_other)
{
    struct house house;
    house_open(&house, storage);
    now.given[0] = person("form", "Jon Smith", "jon@acme.io", NULL);
    now.given[1] = person("mail", "Jon Smith", "jon@acme.io", NULL);
    now.given[2] = person("form", "Jon Smith", "jon@acme.io", NULL);
    now.count = 3;
    run(&house, write_records);
    CHECK_INT(now.answers[0].found, LEAD_NEW);
    CHECK_INT(now.answers[1].found, LEAD_SAME);
    CHECK_INT(now.answers[2].found, LEAD_KNOWN);
    CHECK_INT(now.answers[1].lead, now.answers[0].lead);
    CHECK_INT(now.answers[2].lead, now.answers[0].lead);
    CHECK_INT(read_all(&house)->record_count, 2);
    check_rebuilt(&house);
    house_close(&house);
}

TEST_BOTH(a_record_that_is_the_same_as_two_makes_them_one)
{
    struct house house;
    house_open(&house, storage);
    struct lead_answer chat = say(&house, "whatsapp", "Jon Smith", NULL, "+33612345678");
    struct lead_answer mail = say(&house, "mail", "Jon Smith", "jon@acme.io", NULL);
    CHECK(chat.lead != mail.lead);
    const char *before = dump(&house);
    struct lead_answer form = say(&house, "form", "Jon Smith", "jon@acme.io", "+33612345678");
    CHECK_INT(form.found, LEAD_SAME);
    CHECK_INT(form.lead, chat.lead); /* the oldest */
    struct stored *stored = read_all(&house);
    CHECK_INT(stored->lead_count, 1);
    size_t same = 0;
    for (size_t i = 0; i < stored->edge_count; i++)
        same += stored->edges[i].kind == LEAD_EDGE_SAME;
    CHECK_INT(same, 2);
    CHECK_INT(open_cards(&house), 0); /* what was asked about the two is answered */
    check_rebuilt(&house);
    for (size_t i = 0; i < stored->edge_count; i++)
        undo(&house, stored->edges[i].id);
    CHECK_INT(read_all(&house)->lead_count, 3);
    CHECK(strncmp(strstr(dump(&house), "\n") + 1, before, strrchr(before, '\n') - before) == 0);
    check_rebuilt(&house);
    house_close(&house);
}

TEST_BOTH(what_nobody_can_tell_is_asked_and_stays_apart)
{
    struct house house;
    house_open(&house, storage);
    struct lead_answer a = say(&house, "form", "Jon Smith", "jon@acme.io", "+33612345678");
    struct lead_answer b = say(&house, "form", "Jane Smith", "jane@acme.io", "+33612345678");
    CHECK_INT(b.found, LEAD_REVIEW);
    CHECK_INT(b.other, a.lead);
    CHECK(b.lead != a.lead);
    CHECK(b.edge != 0);
    CHECK_INT(open_cards(&house), 1);
    check_rebuilt(&house);
    struct lead_act same = act(&house, (struct lead_act){.edge = b.edge, .note = BYTES("called them")}, answer_same);
    CHECK_INT(same.end, LEAD_ACT_DONE);
    CHECK_INT(same.lead, a.lead);
    CHECK_INT(open_cards(&house), 0);
    CHECK_INT(read_all(&house)->lead_count, 1);
    check_rebuilt(&house);
    CHECK_INT(act(&house, (struct lead_act){.edge = b.edge}, answer_same).end, LEAD_ACT_BEFORE);
    house_close(&house);
}

TEST_BOTH(different_is_for_good)
{
    struct house house;
    house_open(&house, storage);
    struct lead_answer a = say(&house, "form", "Jon Smith", "jon@acme.io", "+33612345678");
    struct lead_answer b = say(&house, "form", "Jane Smith", "jane@acme.io", "+33612345678");
    struct lead_act apart = act(&house, (struct lead_act){.edge = b.edge}, answer_different);
    CHECK_INT(apart.end, LEAD_ACT_DONE);
    CHECK_INT(open_cards(&house), 0);
    /* Each of them again, and one that is both by what it has. */
    CHECK_INT(say(&house, "shop", "Jane Smith", "jane@acme.io", "+33612345678").lead, b.lead);
    CHECK_INT(say(&house, "shop", "Jon Smith", "jon@acme.io", "+33612345678").lead, a.lead);
    struct lead_given both = person("crm", "Jon Smith", "jon@acme.io", "+33612345678");
    both.emails[both.email_count++] = BYTES("jane@acme.io");
    say_given(&house, both);
    CHECK_INT(read_all(&house)->lead_count, 2);
    CHECK_INT(open_cards(&house), 0);
    struct lead_act merged = merge(&house, a.lead, b.lead);
    CHECK_INT(merged.end, LEAD_ACT_APART);
    CHECK_INT(merged.edge, apart.edge);
    check_rebuilt(&house);
    CHECK_INT(undo(&house, apart.edge).end, LEAD_ACT_DONE); /* only a person takes it back */
    CHECK_INT(merge(&house, a.lead, b.lead).end, LEAD_ACT_DONE);
    CHECK_INT(read_all(&house)->lead_count, 1);
    check_rebuilt(&house);
    house_close(&house);
}

TEST_BOTH(a_merge_that_is_undone_leaves_everything_as_it_was)
{
    struct house house;
    house_open(&house, storage);
    struct lead_given acme = person("crm", "Jon Smith", "jon@acme.io", NULL);
    acme.company = BYTES("Acme");
    struct lead_answer a = say_given(&house, acme);
    struct lead_answer b = say(&house, "form", "Johannes Schmidt", "js@schmidt.io", NULL);
    const char *before = dump(&house);
    struct lead_act merged = merge(&house, b.lead, a.lead);
    CHECK_INT(merged.lead, a.lead);
    CHECK_INT(merged.other, b.lead);
    CHECK_INT(merge(&house, a.lead, b.lead).end, LEAD_ACT_BEFORE); /* the other's id is a name of the lead */
    CHECK_INT(read_all(&house)->lead_count, 1);
    check_rebuilt(&house);
    struct lead_act undone = undo(&house, merged.edge);
    CHECK_INT(undone.end, LEAD_ACT_DONE);
    check_same(dump(&house), before);
    CHECK_INT(undo(&house, merged.edge).end, LEAD_ACT_BEFORE);
    merged = merge(&house, a.lead, b.lead); /* a person may change their mind */
    CHECK_INT(merged.end, LEAD_ACT_DONE);
    act(&house, (struct lead_act){.edge = merged.edge, .different = true}, leads_undo);
    CHECK_INT(merge(&house, a.lead, b.lead).end, LEAD_ACT_APART);
    check_same(dump(&house), before);
    check_rebuilt(&house);
    house_close(&house);
}

TEST_BOTH(an_undo_after_later_merges_takes_back_only_its_own)
{
    struct house house;
    house_open(&house, storage);
    struct lead_answer a = say(&house, "form", "Anna Berg", "anna@berg.io", NULL);
    struct lead_answer b = say(&house, "form", "Boris Blau", "boris@blau.io", NULL);
    struct lead_answer c = say(&house, "form", "Carla Cruz", "carla@cruz.io", NULL);
    struct lead_answer d = say(&house, "form", "Dora Dahl", "dora@dahl.io", NULL);
    const char *apart = dump(&house);
    struct lead_act ab = merge(&house, a.lead, b.lead);
    struct lead_act cd = merge(&house, c.lead, d.lead);
    struct lead_act bc = merge(&house, b.lead, c.lead); /* the middle: a-b-c-d */
    struct lead_answer more = say(&house, "mail", "Carla Cruz", "carla@cruz.io", NULL);
    CHECK_INT(more.lead, a.lead);
    CHECK_INT(read_all(&house)->lead_count, 1);
    undo(&house, ab.edge); /* the first one; later ones stay */
    check_rebuilt(&house);
    struct stored *stored = read_all(&house);
    CHECK_INT(stored->lead_count, 2);
    for (size_t i = 0; i < stored->record_count; i++) {
        int64_t id = stored->records[i].id;
        bool first = id == a.record;
        CHECK_INT(stored->records[i].lead, first ? a.record : b.record);
    }
    undo(&house, bc.edge);
    undo(&house, cd.edge);
    stored = read_all(&house);
    CHECK_INT(stored->lead_count, 4);
    for (size_t i = 0; i < stored->record_count; i++) /* what came to Carla is hers */
        if (stored->records[i].id == more.record)
            CHECK_INT(stored->records[i].lead, c.record);
    undo(&house, more.edge);
    CHECK(strstr(dump(&house), apart) == NULL); /* there are five now */
    CHECK_INT(read_all(&house)->lead_count, 5);
    check_rebuilt(&house);
    house_close(&house);
}

/* Two leads that a later record is the same as, each by another value; they were one for a while. */
static void part_two(struct house *house)
{
    struct lead_answer chat = say(house, "whatsapp", "Jon Smith", NULL, "+33612345678");
    struct lead_answer mail = say(house, "mail", "Jon Smith", "jon@acme.io", NULL);
    struct lead_act merged = merge(house, chat.lead, mail.lead);
    CHECK_INT(read_all(house)->lead_count, 1);
    undo(house, merged.edge);
}

TEST_BOTH(what_a_person_took_apart_no_rule_joins_again)
{
    struct house house;
    house_open(&house, storage);
    part_two(&house);
    struct lead_answer both = say(&house, "form", "Jon Smith", "jon@acme.io", "+33612345678");
    CHECK_INT(both.found, LEAD_SAME);
    CHECK(both.other != 0 && both.other != both.lead);
    CHECK_INT(read_all(&house)->lead_count, 2);
    CHECK_INT(open_cards(&house), 1);
    say(&house, "shop", "Jon Smith", "jon@acme.io", "+33612345678");
    CHECK_INT(open_cards(&house), 1); /* about the same two nobody is asked again */
    check_rebuilt(&house);
    house_close(&house);
}

TEST_BOTH(what_a_person_said_is_different_no_record_bridges)
{
    struct house house;
    house_open(&house, storage);
    struct lead_given mail = person("mail", "Jon Smith", "jon@acme.io", NULL),
                      chat = person("chat", "Jon Smith", NULL, "+33612345678");
    mail.company = chat.company = BYTES("Acme");
    struct lead_answer a = say_given(&house, mail), b = say_given(&house, chat);
    CHECK_INT(b.found, LEAD_REVIEW);
    act(&house, (struct lead_act){.edge = b.edge}, answer_different);
    CHECK(a.lead != b.lead);
    struct lead_answer both = say(&house, "form", "Jon Smith", "jon@acme.io", "+33612345678");
    CHECK_INT(both.found, LEAD_SAME);
    CHECK_INT(both.other, 0);
    CHECK_INT(read_all(&house)->lead_count, 2);
    CHECK_INT(open_cards(&house), 0);
    check_rebuilt(&house);
    house_close(&house);
}

TEST_BOTH(two_that_contradict_each_other_are_not_bridged)
{
    struct house house;
    house_open(&house, storage);
    struct lead_answer a = say(&house, "whatsapp", "Jon Albert Smith", NULL, "+33612345678");
    struct lead_answer b = say(&house, "mail", "Jon Bernard Smith", "jon@acme.io", NULL);
    struct lead_answer both = say(&house, "form", "Jon Smith", "jon@acme.io", "+33612345678");
    CHECK_INT(both.found, LEAD_SAME);
    CHECK(both.lead == a.lead || both.lead == b.lead);
    CHECK(both.other == a.lead || both.other == b.lead);
    CHECK_INT(read_all(&house)->lead_count, 2);
    CHECK_INT(open_cards(&house), 1);
    check_rebuilt(&house);
    house_close(&house);
}

TEST_BOTH(in_shadow_mode_nothing_is_joined_and_all_is_told)
{
    struct house house;
    house_open(&house, storage);
    struct lead_answer a = say(&house, "form", "Jon Smith", "jon@acme.io", NULL);
    now.shadow = true;
    struct lead_answer b = say(&house, "mail", "Jon Smith", "jon@acme.io", NULL);
    now.shadow = false;
    CHECK_INT(b.found, LEAD_SAME);
    CHECK_INT(b.other, a.lead);
    CHECK(b.shadow);
    CHECK(b.lead != a.lead);
    CHECK_INT(read_all(&house)->lead_count, 2);
    CHECK_INT(read_all(&house)->edge_count, 0);
    CHECK(bytes_is(read_all(&house)->decisions[0].kind, "lead_same"));
    check_rebuilt(&house);
    house_close(&house);
}

TEST_BOTH(a_value_that_many_have_finds_nobody)
{
    struct house house;
    house_open(&house, storage);
    char email[64];
    for (int i = 0; i < 66; i++) {
        snprintf(email, sizeof email, "q%d@mail%d.io", i, i);
        now.given[0] = person("form", NULL, arena_dup(&house.arena, bytes_of(email)).at, "+33612345678");
        now.count = 1;
        run(&house, write_records);
        if (now.answers[0].edge != 0)
            act(&house, (struct lead_act){.edge = now.answers[0].edge}, answer_different);
    }
    now.given[0] = person("form", NULL, NULL, "+33612345678");
    run(&house, write_compare);
    CHECK_INT(now.compared, 0);
    now.given[0] = person("form", NULL, "q7@mail7.io", NULL);
    run(&house, write_compare);
    CHECK_INT(now.compared, 1);
    house_close(&house);
}

TEST_BOTH(spaces_are_apart)
{
    struct house house;
    house_open(&house, storage);
    struct lead_answer a = say(&house, "form", "Jon Smith", "jon@acme.io", NULL);
    struct lead_given other = person("form", "Jon Smith", "jon@acme.io", NULL);
    other.space = BYTES("other");
    struct lead_answer b = say_given(&house, other);
    CHECK_INT(b.found, LEAD_NEW);
    now.act = (struct lead_act){.space = BYTES("main"), .actor = BYTES("dana"), .lead = a.lead, .other = b.lead};
    now.carry_out = leads_merge;
    CHECK_INT(run(&house, write_act), NOTHING);
    house_close(&house);
}
