#include <stdio.h>

#include "cli/client.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "env/env.h"
#include "ledger/ledger.h"

const struct cli_option intents_options[] = {
    {"--workflow", "NAME", CLI_TEXT, "Only this workflow's.", NULL, NULL, NULL, false},
    {"--state", "STATE", CLI_CHOICE, "Only those in this state.", NULL, NULL, intent_state_names, false},
    {"--key", "KEY", CLI_TEXT, "Only the one with this key.", NULL, NULL, NULL, false},
    {"--limit", "N", CLI_NUMBER, "At most so many.", "50", NULL, NULL, false},
    {"--after", "CURSOR", CLI_TEXT, "Go on behind the last page.", NULL, NULL, NULL, false},
    {0},
};

static void add_row(struct cli *cli, struct table *table, const struct json *intent, int64_t now_us)
{
    int64_t created_us = print_time_of(intent, "created_at");
    char created[32] = "";
    if (created_us != 0)
        print_when(created_us, now_us, created);
    struct bytes state = print_field(cli, intent, "state");
    const struct bytes cells[] = {print_field(cli, intent, "intent"),   state,
                                  print_field(cli, intent, "fence"),    arena_dup(&cli->arena, bytes_of(created)),
                                  print_field(cli, intent, "workflow"), print_field(cli, intent, "key")};
    table_add(table, cells, print_state_colour(state));
}

static void print_page(struct cli *cli, const struct json *data)
{
    static const char *const headings[] = {"INTENT", "STATE", "FENCE", "CREATED", "WORKFLOW", "KEY"};
    struct table table;
    int64_t now_us = env_real_wall_us();
    table_init(&table, &cli->arena, headings, sizeof headings / sizeof *headings);
    for (uint32_t i = 0; i < data->count; i++)
        add_row(cli, &table, &data->items[i], now_us);
    table_print(&table);
}

int intents_run(struct cli *cli)
{
    static const char *const filters[] = {"workflow", "state", "key", "limit", "after"};
    return client_list(cli, "/v1/intents", filters, sizeof filters / sizeof *filters, print_page,
                       "no intents. They appear with the first claim: semel help claim");
}
