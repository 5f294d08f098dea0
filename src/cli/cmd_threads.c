#include "base/id.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "env/env.h"

/* ---- ls ---- */

const struct cli_option threads_ls_options[] = {
    {"--identity", "WHO", CLI_TEXT, "Only those of this person: an address, a number.", NULL, NULL, NULL, false},
    {"--limit", "N", CLI_NUMBER, "At most so many.", "50", NULL, NULL, false},
    {"--after", "THREAD", CLI_TEXT, "Go on behind the last page.", NULL, NULL, NULL, false},
    {0},
};

static void print_threads(struct cli *cli, const struct json *data)
{
    static const char *const headings[] = {"THREAD", "EPOCH", "QUESTION", "UPDATED"};
    struct table table;
    int64_t now_us = env_real_wall_us();
    table_init(&table, &cli->arena, headings, sizeof headings / sizeof *headings);
    for (uint32_t i = 0; i < data->count; i++) {
        const struct json *thread = &data->items[i];
        char updated[32] = "";
        print_when(print_time_of(thread, "updated_at"), now_us, updated);
        const struct bytes cells[] = {print_field(cli, thread, "thread"), print_field(cli, thread, "epoch"),
                                      print_field(cli, thread, "question"), arena_dup(&cli->arena, bytes_of(updated))};
        table_add(&table, cells, COLOUR_NONE);
    }
    table_print(&table);
}

int threads_ls_run(struct cli *cli)
{
    static const char *const filters[] = {"identity", "limit", "after"};
    return client_list(cli, "/v1/threads", filters, sizeof filters / sizeof *filters, print_threads, "there is no conversation.");
}

/* ---- one ---- */

static void tell_event(struct cli *cli, const struct json *event)
{
    char at[32] = "?";
    struct bytes verdict = print_field(cli, event, "verdict"), first = print_field(cli, event, "first");
    print_when(print_time_of(event, "received_at"), 0, at);
    if (bytes_is(verdict, "accepted") || bytes_is(verdict, "released"))
        print_line("%s  %.*s came by %.*s: question %.*s", at, BYTES_ARG(print_field(cli, event, "event")),
                   BYTES_ARG(print_field(cli, event, "source")), BYTES_ARG(print_field(cli, event, "epoch")));
    else
        print_line("%s  %.*s came by %.*s and was %.*s%s%.*s", at, BYTES_ARG(print_field(cli, event, "event")),
                   BYTES_ARG(print_field(cli, event, "source")), BYTES_ARG(verdict), first.len > 0 ? ": it repeats " : "",
                   BYTES_ARG(first));
}

static void tell_answer(struct cli *cli, const struct json *answer)
{
    char at[32] = "?";
    struct bytes epoch = print_field(cli, answer, "epoch");
    print_when(print_time_of(answer, "created_at"), 0, at);
    print_line("%s  %.*s %s%s%.*s: %.*s, now %.*s", at, BYTES_ARG(print_field(cli, answer, "action")),
               epoch.len > 0 ? "to question" : "under a key of its own", epoch.len > 0 ? " " : "", BYTES_ARG(epoch),
               BYTES_ARG(print_field(cli, answer, "intent")), BYTES_ARG(print_field(cli, answer, "state")));
}

/* Both lists are newest first; together they are told from the beginning. */
static void tell_all(struct cli *cli, const struct json *events, const struct json *answers)
{
    uint32_t e = events != NULL && events->type == JSON_ARRAY ? events->count : 0;
    uint32_t a = answers != NULL && answers->type == JSON_ARRAY ? answers->count : 0;
    while (e > 0 || a > 0) {
        bool event = e > 0 && (a == 0 || print_time_of(&events->items[e - 1], "received_at") <=
                                             print_time_of(&answers->items[a - 1], "created_at"));
        if (event)
            tell_event(cli, &events->items[--e]);
        else
            tell_answer(cli, &answers->items[--a]);
    }
}

static void tell_end(struct cli *cli, const struct json *thread)
{
    const struct json *answers = json_get(thread, BYTES("answers"));
    struct bytes epoch = print_field(cli, thread, "epoch");
    bool answered = false;
    for (uint32_t i = 0; answers != NULL && answers->type == JSON_ARRAY && i < answers->count; i++)
        answered = answered || bytes_eq(print_field(cli, &answers->items[i], "epoch"), epoch);
    if (bytes_is(epoch, "0"))
        print_line("Nobody has asked anything yet.");
    else if (answered)
        print_line("Question %.*s is taken; the next message is a new question.", BYTES_ARG(epoch));
    else
        print_line("Nobody has begun to answer question %.*s; the next message joins it.", BYTES_ARG(epoch));
}

int threads_show_run(struct cli *cli)
{
    struct client_reply reply;
    struct buf path;
    int64_t id;
    if (!id_parse("thr", bytes_of(cli->arguments[0]), &id))
        return cli_fail(CLI_USAGE, "\"%.60s\" is not the id of a conversation (thr_…). List them with: semel threads ls",
                        cli->arguments[0]);
    buf_init(&path, 1024);
    buf_add_cstr(&path, "/v1/threads");
    client_path_add(&path, bytes_of(cli->arguments[0]));
    int code = client_get(cli, &path, &reply);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json")) {
        print_json(&reply.json);
        return CLI_OK;
    }
    print_line("%.*s  epoch %.*s", BYTES_ARG(print_field(cli, &reply.json, "thread")),
               BYTES_ARG(print_field(cli, &reply.json, "epoch")));
    tell_all(cli, json_get(&reply.json, BYTES("events")), json_get(&reply.json, BYTES("answers")));
    tell_end(cli, &reply.json);
    return CLI_OK;
}
