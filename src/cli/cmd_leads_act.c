/* cmd_leads_act: what is said of leads, and who somebody is. */
#include <stdio.h>

#include "base/id.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/print.h"

#define COLLECTION "/v1/leads"

#define PERSON_OPTIONS                                                                                               \
    {"--email", "ADDRESS", CLI_TEXT, "An e-mail address.", NULL, NULL, NULL, false},                                 \
        {"--phone", "NUMBER", CLI_TEXT, "A phone number; a national one needs --country.", NULL, NULL, NULL, false}, \
        {"--name", "NAME", CLI_TEXT, "The person's name.", NULL, NULL, NULL, false},                                 \
        {"--company", "NAME", CLI_TEXT, "Their company.", NULL, NULL, NULL, false},                                  \
        {"--country", "COUNTRY", CLI_TEXT, "Their country.", NULL, NULL, NULL, false},                               \
    {                                                                                                                \
        "--external-id", "ID", CLI_TEXT, "What the source calls this person.", NULL, NULL, NULL, false               \
    }

const struct cli_option leads_add_options[] = {
    {"--source", "NAME", CLI_TEXT, "Who says so.", NULL, NULL, NULL, true},
    PERSON_OPTIONS,
    {0},
};

const struct cli_option leads_find_options[] = {
    {"--source", "NAME", CLI_TEXT, "Whose id --external-id is.", NULL, NULL, NULL, false},
    PERSON_OPTIONS,
    {0},
};

const struct cli_option leads_merge_options[] = {
    {"--note", "TEXT", CLI_TEXT, "How you know; it is kept with the decision.", NULL, NULL, NULL, false},
    {0},
};

const struct cli_option leads_undo_options[] = {
    {"--different", NULL, CLI_SWITCH, "And they are different: no rule joins them, nobody is asked again.", NULL, NULL, NULL,
     false},
    {"--note", "TEXT", CLI_TEXT, "How you know; it is kept with the decision.", NULL, NULL, NULL, false},
    {0},
};

/* POST of a body that is released. */
static int post(struct cli *cli, struct bytes path, struct buf *body, struct client_reply *ret)
{
    int code = client_call(cli, &(struct client_request){.method = "POST", .path = path, .body = buf_bytes(body)}, ret);
    buf_release(body);
    return code;
}

static void write_person(struct cli *cli, struct buf *body)
{
    static const char *const names[] = {"source", "email", "phone", "name", "company", "country"};
    buf_init(body, 64 << 10);
    struct json_out out = json_out_to(body);
    json_open(&out, '{');
    client_write_options(cli, &out, names, sizeof names / sizeof *names);
    if (cli_text(cli, "--external-id") != NULL)
        json_text_member(&out, "external_id", bytes_of(cli_text(cli, "--external-id")));
    json_close(&out, '}');
}

int leads_add_run(struct cli *cli)
{
    struct client_reply reply;
    struct buf body;
    write_person(cli, &body);
    int code = post(cli, BYTES(COLLECTION), &body, &reply);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json")) {
        print_json(&reply.json);
        return CLI_OK;
    }
    struct bytes other = print_field(cli, &reply.json, "other");
    print_line("%.*s %.*s: %.*s%s%.*s", BYTES_ARG(print_field(cli, &reply.json, "lead")),
               BYTES_ARG(print_field(cli, &reply.json, "found")), BYTES_ARG(print_field(cli, &reply.json, "because")),
               other.len > 0 ? "; a person is asked whether it is " : "", BYTES_ARG(other));
    return CLI_OK;
}

static void print_candidates(struct cli *cli, const struct json *candidates)
{
    static const char *const headings[] = {"LEAD", "ANSWER", "BITS", "NAME", "COMPANY", "BECAUSE"};
    struct table table;
    table_init(&table, &cli->arena, headings, sizeof headings / sizeof *headings);
    for (uint32_t i = 0; i < candidates->count; i++) {
        const struct json *one = &candidates->items[i];
        char bits[32];
        snprintf(bits, sizeof bits, "%+.1f", (double)json_get_i64(one, "score") / 1000.0);
        const struct bytes cells[] = {print_field(cli, one, "lead"),          print_field(cli, one, "zone"),
                                      arena_dup(&cli->arena, bytes_of(bits)), print_field(cli, one, "name"),
                                      print_field(cli, one, "company"),       print_field(cli, one, "because")};
        struct bytes zone = print_field(cli, one, "zone");
        table_add(&table, cells, bytes_is(zone, "same") ? COLOUR_GREEN : bytes_is(zone, "review") ? COLOUR_YELLOW : COLOUR_DIM);
    }
    table_print(&table);
}

int leads_find_run(struct cli *cli)
{
    struct client_reply reply;
    struct buf body;
    write_person(cli, &body);
    int code = post(cli, BYTES(COLLECTION "/find"), &body, &reply);
    if (code != CLI_OK)
        return code;
    const struct json *candidates = json_get(&reply.json, BYTES("candidates"));
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    else if (bytes_is(print_field(cli, &reply.json, "found"), "known"))
        print_line("%.*s: this source said the same before", BYTES_ARG(print_field(cli, &reply.json, "lead")));
    else if (candidates != NULL && candidates->type == JSON_ARRAY && candidates->count > 0)
        print_candidates(cli, candidates);
    else
        print_line("nobody like this is known.");
    return CLI_OK;
}

int leads_merge_run(struct cli *cli)
{
    struct client_reply reply;
    struct buf body;
    buf_init(&body, 64 << 10);
    struct json_out out = json_out_to(&body);
    json_open(&out, '{');
    json_text_member(&out, "with", bytes_of(cli->arguments[1]));
    client_write_options(cli, &out, (const char *const[]){"note"}, 1);
    json_close(&out, '}');
    int code = post(cli, client_path(cli, COLLECTION, "/merge"), &body, &reply);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    else if (print_field(cli, &reply.json, "edge").len > 0)
        print_line("%.*s is one lead now. To take it back: semel leads undo %.*s",
                   BYTES_ARG(print_field(cli, &reply.json, "lead")), BYTES_ARG(print_field(cli, &reply.json, "edge")));
    else
        print_line("%.*s was one lead already.", BYTES_ARG(print_field(cli, &reply.json, "lead")));
    return CLI_OK;
}

int leads_undo_run(struct cli *cli)
{
    struct client_reply reply;
    struct buf body;
    buf_init(&body, 64 << 10);
    struct json_out out = json_out_to(&body);
    json_open(&out, '{');
    if (cli_on(cli, "--different")) {
        json_name(&out, "different");
        json_bool(&out, true);
    }
    client_write_options(cli, &out, (const char *const[]){"note"}, 1);
    json_close(&out, '}');
    int code = post(cli, client_path(cli, COLLECTION "/edges", "/undo"), &body, &reply);
    if (code != CLI_OK)
        return code;
    struct bytes lead = print_field(cli, &reply.json, "lead"), other = print_field(cli, &reply.json, "other");
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    else if (!bytes_is(print_field(cli, &reply.json, "changed"), "true"))
        print_line("it was undone before.");
    else if (bytes_eq(lead, other))
        print_line("%.*s: it does not count any more.", BYTES_ARG(lead));
    else
        print_line("%.*s and %.*s are two leads.", BYTES_ARG(lead), BYTES_ARG(other));
    return CLI_OK;
}
