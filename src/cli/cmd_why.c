#include <stdio.h>

#include "cli/client.h"
#include "cli/commands.h"
#include "cli/lookup.h"
#include "cli/print.h"
#include "cli/story.h"
#include "env/env.h"

enum { PAGES_MAX = 200, SENTENCE_MAX = 64 << 10 };

const struct cli_option why_options[] = {LOOKUP_WORKFLOW, {0}};

static void print_decision(struct cli *cli, const struct json *decision)
{
    if (cli_on(cli, "--json")) {
        print_json(decision);
        return;
    }
    char at[32] = "?";
    int64_t at_us = print_time_of(decision, "at");
    struct buf sentence;
    buf_init(&sentence, SENTENCE_MAX);
    story_tell(decision, &sentence);
    if (at_us != 0)
        print_when(at_us, 0, at); /* the whole date: a story may span days */
    print_line("%s  %.*s", at, BYTES_ARG(buf_bytes(&sentence)));
    buf_release(&sentence);
}

static int get_page(struct cli *cli, const char *intent, const char *after, struct client_reply *ret_reply)
{
    struct buf path;
    buf_init(&path, 4096);
    buf_add_cstr(&path, "/v1/decisions");
    client_query_add(&path, "intent", intent);
    client_query_add(&path, "after", after);
    return client_get(cli, &path, ret_reply);
}

static int print_decisions(struct cli *cli, const char *intent)
{
    const char *after = NULL;
    for (int page = 0; page < PAGES_MAX; page++) {
        struct client_reply reply;
        int code = get_page(cli, intent, after, &reply);
        if (code != CLI_OK)
            return code;
        const struct json *data = json_get(&reply.json, BYTES("data")), *next = json_find(&reply.json, BYTES("page.next"));
        if (data == NULL || data->type != JSON_ARRAY)
            return client_problem(cli, &reply);
        for (uint32_t i = 0; i < data->count; i++)
            print_decision(cli, &data->items[i]);
        if (next == NULL || next->type != JSON_STRING)
            return CLI_OK;
        after = print_field(cli, json_get(&reply.json, BYTES("page")), "next").at;
    }
    cli_note("the story goes on for more than %d pages; the rest is not shown.", PAGES_MAX);
    return CLI_OK;
}

static void tell_next(const struct json *intent)
{
    struct buf sentence;
    buf_init(&sentence, SENTENCE_MAX);
    print_next(intent, env_real_wall_us(), &sentence);
    print_line("%.*s", BYTES_ARG(buf_bytes(&sentence)));
    buf_release(&sentence);
}

int why_run(struct cli *cli)
{
    if (bytes_starts(bytes_of(cli->arguments[0]), BYTES("evt_")) && cli_text(cli, "--workflow") == NULL)
        return inbox_why_run(cli);
    struct json intent;
    if (cli_text(cli, "--workflow") == NULL && bytes_starts(bytes_of(cli->arguments[0]), BYTES("thr_")))
        return threads_show_run(cli);
    if (cli_text(cli, "--workflow") == NULL && bytes_starts(bytes_of(cli->arguments[0]), BYTES("lead_")))
        return leads_why_run(cli);
    int code = lookup_intent(cli, &intent);
    if (code != CLI_OK)
        return code;
    struct bytes id = print_field(cli, &intent, "intent");
    if (!cli_on(cli, "--json"))
        print_line("%.*s  %.*s  %.*s", BYTES_ARG(id), BYTES_ARG(print_field(cli, &intent, "workflow")),
                   BYTES_ARG(print_field(cli, &intent, "key")));
    code = print_decisions(cli, id.at);
    if (code == CLI_OK && !cli_on(cli, "--json"))
        tell_next(&intent);
    return code;
}
