#include "base/id.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "env/env.h"

#define COLLECTION "/v1/leads"

/* ---- ls ---- */

const struct cli_option leads_ls_options[] = {
    {"--q", "TEXT", CLI_TEXT, "Only those whose name or company holds this text.", NULL, NULL, NULL, false},
    {"--limit", "N", CLI_NUMBER, "At most so many.", "50", NULL, NULL, false},
    {"--after", "LEAD", CLI_TEXT, "Go on behind the last page.", NULL, NULL, NULL, false},
    {0},
};

static void print_leads(struct cli *cli, const struct json *data)
{
    static const char *const headings[] = {"LEAD", "NAME", "COMPANY", "RECORDS", "UPDATED"};
    struct table table;
    int64_t now_us = env_real_wall_us();
    table_init(&table, &cli->arena, headings, sizeof headings / sizeof *headings);
    for (uint32_t i = 0; i < data->count; i++) {
        const struct json *lead = &data->items[i];
        char updated[32] = "";
        print_when(print_time_of(lead, "updated_at"), now_us, updated);
        const struct bytes cells[] = {print_field(cli, lead, "lead"), print_field(cli, lead, "name"),
                                      print_field(cli, lead, "company"), print_field(cli, lead, "records"),
                                      arena_dup(&cli->arena, bytes_of(updated))};
        table_add(&table, cells, COLOUR_NONE);
    }
    table_print(&table);
}

int leads_ls_run(struct cli *cli)
{
    static const char *const filters[] = {"q", "limit", "after"};
    return client_list(cli, COLLECTION, filters, sizeof filters / sizeof *filters, print_leads,
                       "there is no lead. They appear when somebody writes to /in/SOURCE, or with: semel leads add");
}

/* ---- one ---- */

static int get(struct cli *cli, const char *verb, struct client_reply *ret)
{
    int64_t id;
    if (!id_parse("lead", bytes_of(cli->arguments[0]), &id))
        return cli_fail(CLI_USAGE, "\"%.60s\" is not the id of a lead (lead_…). List them with: semel leads ls",
                        cli->arguments[0]);
    return client_call(cli, &(struct client_request){.method = "GET", .path = client_path(cli, COLLECTION, verb)}, ret);
}

/* Each item of a list by these members, one line each. */
static void print_items(struct cli *cli, const struct json *object, const char *list, const char *const *names, size_t count)
{
    const struct json *items = json_get(object, bytes_of(list));
    for (uint32_t i = 0; items != NULL && items->type == JSON_ARRAY && i < items->count; i++) {
        struct buf line;
        buf_init(&line, 16 << 10);
        for (size_t k = 0; k < count; k++) {
            struct bytes value = print_field(cli, &items->items[i], names[k]);
            if (value.len > 0 && !bytes_is(value, "[]"))
                buf_printf(&line, "  %.*s", BYTES_ARG(value));
        }
        print_line("%-12s%.*s", i == 0 ? list : "", BYTES_ARG(buf_bytes(&line)));
        buf_release(&line);
    }
}

static void print_lead(struct cli *cli, const struct json *lead)
{
    static const char *const names[] = {"lead", "name", "company", "created_at", "updated_at"};
    static const char *const identities[] = {"kind", "value"};
    static const char *const versions[] = {"record", "source", "external_id", "name", "company", "emails", "phones", "ids"};
    static const char *const threads[] = {"thread"}, *const events[] = {"event", "source", "verdict"};
    static const char *const cards[] = {"exception", "due_at"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct bytes value = print_field(cli, lead, names[i]);
        if (value.len > 0)
            print_line("%-12s  %.*s", names[i], BYTES_ARG(value));
    }
    print_items(cli, lead, "identities", identities, sizeof identities / sizeof *identities);
    print_items(cli, lead, "versions", versions, sizeof versions / sizeof *versions);
    print_items(cli, lead, "threads", threads, sizeof threads / sizeof *threads);
    print_items(cli, lead, "events", events, sizeof events / sizeof *events);
    print_items(cli, lead, "exceptions", cards, sizeof cards / sizeof *cards);
}

int leads_show_run(struct cli *cli)
{
    struct client_reply reply;
    int code = get(cli, "", &reply);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    else
        print_lead(cli, &reply.json);
    return CLI_OK;
}

/* ---- why ---- */

static void tell_record(struct cli *cli, const char *at, const struct json *record)
{
    struct bytes event = print_field(cli, record, "event");
    print_line("%s  %.*s by %.*s%s%.*s: %.*s %.*s %.*s", at, BYTES_ARG(print_field(cli, record, "record")),
               BYTES_ARG(print_field(cli, record, "source")), event.len > 0 ? ", with " : "", BYTES_ARG(event),
               BYTES_ARG(print_field(cli, record, "name")), BYTES_ARG(print_field(cli, record, "emails")),
               BYTES_ARG(print_field(cli, record, "phones")));
}

static void tell_edge(struct cli *cli, const char *at, const struct json *edge)
{
    static const char *const words[][2] = {{"same", "is the same as"}, {"different", "is not"}, {"asked", "may be"}};
    struct bytes kind = print_field(cli, edge, "kind"), undone = print_field(cli, edge, "undone_by");
    const char *word = "and";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (bytes_is(kind, words[i][0]))
            word = words[i][1];
    print_line("%s  %.*s: %.*s %s %.*s (by %.*s): %.*s", at, BYTES_ARG(print_field(cli, edge, "edge")),
               BYTES_ARG(print_field(cli, edge, "record")), word, BYTES_ARG(print_field(cli, edge, "other")),
               BYTES_ARG(print_field(cli, edge, "actor")), BYTES_ARG(print_field(cli, edge, "because")));
    print_evidence(cli, json_get(edge, BYTES("explanation")));
    if (undone.len > 0)
        print_line("    %s by %.*s %.*s", bytes_is(kind, "asked") ? "answered" : "undone", BYTES_ARG(undone),
                   BYTES_ARG(print_field(cli, edge, "undone_note")));
}

int leads_why_run(struct cli *cli)
{
    struct client_reply reply;
    int code = get(cli, "/why", &reply);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json")) {
        print_json(&reply.json);
        return CLI_OK;
    }
    const struct json *steps = json_get(&reply.json, BYTES("steps"));
    print_line("%.*s  %.*s", BYTES_ARG(print_field(cli, &reply.json, "lead")), BYTES_ARG(print_field(cli, &reply.json, "name")));
    for (uint32_t i = 0; steps != NULL && steps->type == JSON_ARRAY && i < steps->count; i++) {
        const struct json *step = &steps->items[i], *record = json_get(step, BYTES("record"));
        char at[32] = "?";
        print_when(print_time_of(step, "at"), 0, at);
        if (record != NULL)
            tell_record(cli, at, record);
        else
            tell_edge(cli, at, json_get(step, BYTES("edge")));
    }
    return CLI_OK;
}
