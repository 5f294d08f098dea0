#include "cli/client.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "env/env.h"

#define COLLECTION "/v1/exceptions"

/* ---- ls ---- */

static const char *const which[] = {"open", "all", NULL};

const struct cli_option exceptions_ls_options[] = {
    {"--state", "WHICH", CLI_CHOICE, "The open ones, by due time, or all, newest first.", "open", NULL, which, false},
    {"--limit", "N", CLI_NUMBER, "At most so many.", "50", NULL, NULL, false},
    {"--after", "CURSOR", CLI_TEXT, "Go on behind the last page.", NULL, NULL, NULL, false},
    {0},
};

static struct bytes about_of(struct cli *cli, const struct json *card)
{
    struct bytes event = print_field(cli, card, "event");
    struct bytes lead = print_field(cli, card, "lead"), edge = print_field(cli, card, "edge");
    return event.len > 0 ? event : lead.len > 0 ? lead : edge.len > 0 ? edge : print_field(cli, card, "intent");
}

static void print_cards(struct cli *cli, const struct json *data)
{
    static const char *const headings[] = {"EXCEPTION", "KIND", "OWNER", "DUE", "ABOUT", "RESOLUTION", "REASON"};
    struct table table;
    int64_t now_us = env_real_wall_us();
    table_init(&table, &cli->arena, headings, sizeof headings / sizeof *headings);
    for (uint32_t i = 0; i < data->count; i++) {
        const struct json *card = &data->items[i];
        char due[32] = "";
        int64_t due_us = print_time_of(card, "due_at");
        print_when(due_us, now_us, due);
        bool open = bytes_is(print_field(cli, card, "state"), "open");
        const struct bytes cells[] = {print_field(cli, card, "exception"),
                                      print_field(cli, card, "kind"),
                                      print_field(cli, card, "owner"),
                                      arena_dup(&cli->arena, bytes_of(due)),
                                      about_of(cli, card),
                                      print_field(cli, card, "resolution"),
                                      print_field(cli, card, "reason")};
        table_add(&table, cells, !open ? COLOUR_DIM : due_us < now_us ? COLOUR_RED : COLOUR_YELLOW);
    }
    table_print(&table);
}

int exceptions_ls_run(struct cli *cli)
{
    static const char *const filters[] = {"state", "limit", "after"};
    return client_list(cli, "/v1/exceptions", filters, sizeof filters / sizeof *filters, print_cards,
                       "nothing is waiting for a person.");
}

/* ---- one ---- */

/* The event that it is about, and the one that it looks like. */
static void print_texts(struct cli *cli, const struct json *card)
{
    static const char *const names[] = {"like", "about"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct json *event = json_get(card, bytes_of(names[i]));
        if (event == NULL || event->type != JSON_OBJECT)
            continue;
        print_line("\n%.*s  %.*s  %.*s  %.*s", BYTES_ARG(print_field(cli, event, "received_at")),
                   BYTES_ARG(print_field(cli, event, "event")), BYTES_ARG(print_field(cli, event, "source")),
                   BYTES_ARG(print_field(cli, event, "from")));
        print_line("    %.*s%s", BYTES_ARG(print_field(cli, event, "text")), i == 1 ? "\n" : "");
    }
}

/* Both sides of whether two leads are one, and what speaks for it. */
static void print_question(struct cli *cli, const struct json *card)
{
    const struct json *question = json_get(card, BYTES("question"));
    const struct json *sides = json_get(question, BYTES("sides")), *edge = json_get(question, BYTES("edge"));
    if (sides == NULL || sides->type != JSON_ARRAY)
        return;
    for (uint32_t i = 0; i < sides->count; i++) {
        const struct json *says = json_get(&sides->items[i], BYTES("says"));
        print_line("%s%.*s  %.*s: %.*s %.*s %.*s", i == 0 ? "\n" : "", BYTES_ARG(print_field(cli, &sides->items[i], "lead")),
                   BYTES_ARG(print_field(cli, says, "source")), BYTES_ARG(print_field(cli, says, "name")),
                   BYTES_ARG(print_field(cli, says, "emails")), BYTES_ARG(print_field(cli, says, "phones")));
    }
    print_line("    %.*s", BYTES_ARG(print_field(cli, edge, "because")));
    print_evidence(cli, json_get(edge, BYTES("explanation")));
    print_line("%s", "");
}

static void print_card(struct cli *cli, const struct json *card)
{
    static const char *const names[] = {"exception", "kind",       "state",       "intent",     "event",       "owner", "due_at",
                                        "reason",    "created_at", "resolved_at", "resolution", "resolved_by", "note"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct bytes value = print_field(cli, card, names[i]);
        if (value.len > 0)
            print_line("%-12s %.*s", names[i], BYTES_ARG(value));
    }
    print_texts(cli, card);
    print_question(cli, card);
    const struct json *choices = json_get(card, BYTES("choices"));
    for (uint32_t i = 0; choices != NULL && choices->type == JSON_ARRAY && i < choices->count; i++)
        print_line("  %-10.*s %.*s", BYTES_ARG(print_field(cli, &choices->items[i], "choice")),
                   BYTES_ARG(print_field(cli, &choices->items[i], "follows")));
}

int exceptions_show_run(struct cli *cli)
{
    struct client_reply reply;
    int code = client_call(cli, &(struct client_request){.method = "GET", .path = client_path(cli, COLLECTION, "")}, &reply);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    else
        print_card(cli, &reply.json);
    return CLI_OK;
}

/* ---- deciding ---- */

static const char *const choices[] = {"happened", "did_not", "retry", "drop", "release", "suppress", "same", "different", NULL};

const struct cli_option exceptions_resolve_options[] = {
    {"--choice", "CHOICE", CLI_CHOICE, "What you decide; semel exceptions show says what follows.", NULL, NULL, choices, true},
    {"--note", "TEXT", CLI_TEXT, "How you know; it is kept with the decision.", NULL, NULL, NULL, false},
    {0},
};

const struct cli_option exceptions_assign_options[] = {
    {"--owner", "NAME", CLI_TEXT, "Who has it from now on.", NULL, NULL, NULL, false},
    {"--due", "TIME", CLI_TEXT, "By when, such as 2026-11-16T17:00:00Z.", NULL, NULL, NULL, false},
    {0},
};

static void print_leads(struct cli *cli, const struct json *reply)
{
    struct bytes lead = print_field(cli, reply, "lead"), other = print_field(cli, reply, "other");
    const char *choice = cli_text(cli, "--choice");
    if (choice != NULL && strcmp(choice, "same") == 0)
        print_line("%.*s is one lead now", BYTES_ARG(lead));
    else
        print_line("%.*s and %.*s are two leads", BYTES_ARG(lead), BYTES_ARG(other));
}

static int say(struct cli *cli, const char *verb, const char *const *names, size_t count)
{
    struct client_reply reply;
    struct buf body;
    buf_init(&body, 64 << 10);
    struct json_out out = json_out_to(&body);
    json_open(&out, '{');
    client_write_options(cli, &out, names, count);
    json_close(&out, '}');
    int code = client_call(
        cli, &(struct client_request){.method = "POST", .path = client_path(cli, COLLECTION, verb), .body = buf_bytes(&body)},
        &reply);
    buf_release(&body);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    else if (json_get(&reply.json, BYTES("owner")) != NULL)
        print_card(cli, &reply.json);
    else if (json_get(&reply.json, BYTES("lead")) != NULL)
        print_leads(cli, &reply.json);
    else
        print_line(
            "%.*s is now %.*s", BYTES_ARG(about_of(cli, &reply.json)),
            BYTES_ARG(print_field(cli, &reply.json, json_get(&reply.json, BYTES("verdict")) != NULL ? "verdict" : "state")));
    return CLI_OK;
}

int exceptions_resolve_run(struct cli *cli)
{
    static const char *const names[] = {"choice", "note"};
    return say(cli, "/resolve", names, 2);
}

int exceptions_assign_run(struct cli *cli)
{
    static const char *const names[] = {"owner", "due"};
    if (cli_text(cli, "--owner") == NULL && cli_text(cli, "--due") == NULL)
        return cli_fail(CLI_USAGE, "give --owner, --due, or both.");
    return say(cli, "/assign", names, 2);
}
