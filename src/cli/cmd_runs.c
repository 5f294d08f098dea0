#include "cli/client.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "env/env.h"

const struct cli_option runs_ls_options[] = {
    {"--limit", "N", CLI_NUMBER, "At most so many.", "50", NULL, NULL, false},
    {"--after", "CURSOR", CLI_TEXT, "Go on behind the last page.", NULL, NULL, NULL, false},
    {0},
};

#define CELLS_MAX 8

/* Calls made, answered from memory and failed; what was saved. `name` is what the line is about. */
static void add_line(struct cli *cli, struct table *table, const struct json *counts, const char *const *names, size_t name_count)
{
    char last[32] = "";
    struct bytes cells[CELLS_MAX];
    size_t n = 0;
    const struct json *saved = json_get(counts, BYTES("saved"));
    for (size_t i = 0; i < name_count; i++)
        cells[n++] = print_field(cli, counts, names[i]);
    print_when(print_time_of(counts, "last_at"), env_real_wall_us(), last);
    cells[n++] = print_field(cli, counts, "executed");
    cells[n++] = print_field(cli, counts, "replayed");
    cells[n++] = print_field(cli, counts, "failed");
    cells[n++] = arena_printf(&cli->arena, "%.*s+%.*s", BYTES_ARG(print_field(cli, saved, "input_tokens")),
                              BYTES_ARG(print_field(cli, saved, "output_tokens")));
    cells[n++] = print_field(cli, saved, "money");
    cells[n++] = arena_dup(&cli->arena, bytes_of(last));
    table_add(table, cells, COLOUR_NONE);
}

static void print_runs(struct cli *cli, const struct json *data)
{
    static const char *const headings[] = {"RUN", "MADE", "REPLAYED", "FAILED", "TOKENS SAVED", "MONEY SAVED", "LAST"};
    static const char *const names[] = {"run"};
    struct table table;
    table_init(&table, &cli->arena, headings, sizeof headings / sizeof *headings);
    for (uint32_t i = 0; i < data->count; i++)
        add_line(cli, &table, &data->items[i], names, 1);
    table_print(&table);
}

int runs_ls_run(struct cli *cli)
{
    static const char *const filters[] = {"limit", "after"};
    return client_list(cli, "/v1/runs", filters, sizeof filters / sizeof *filters, print_runs,
                       "no model calls. They appear with the first call to /llm/… that has a Semel-Run header.");
}

static void print_run(struct cli *cli, const struct json *run)
{
    static const char *const headings[] = {"PROVIDER", "MODEL",        "MADE",        "REPLAYED",
                                           "FAILED",   "TOKENS SAVED", "MONEY SAVED", "LAST"};
    static const char *const names[] = {"provider", "model"};
    const struct json *models = json_get(run, BYTES("models"));
    struct table table;
    table_init(&table, &cli->arena, headings, sizeof headings / sizeof *headings);
    for (uint32_t i = 0; models != NULL && models->type == JSON_ARRAY && i < models->count; i++)
        add_line(cli, &table, &models->items[i], names, 2);
    table_print(&table);
}

int runs_show_run(struct cli *cli)
{
    struct client_reply reply;
    struct buf path;
    buf_init(&path, 4096);
    buf_add_cstr(&path, "/v1/runs");
    client_path_add(&path, bytes_of(cli->arguments[0]));
    int code = client_get(cli, &path, &reply);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    else
        print_run(cli, &reply.json);
    return CLI_OK;
}
