#include "base/when.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "env/env.h"

static struct bytes count_of(struct cli *cli, const struct json *source, const char *name)
{
    return print_field(cli, json_get(source, BYTES("last_24h")), name);
}

/* What a person should know at a glance. */
static struct bytes remark(struct cli *cli, const struct json *source)
{
    struct bytes muted = print_field(cli, source, "muted_until");
    const struct json *limit = json_get(source, BYTES("limit")), *warning = json_find(source, BYTES("warnings.0"));
    if (muted.len > 0)
        return arena_printf(&cli->arena, "muted until %.*s", BYTES_ARG(muted));
    if (limit != NULL && limit->type == JSON_OBJECT)
        return arena_printf(&cli->arena, "limited until %.*s", BYTES_ARG(print_field(cli, limit, "until")));
    return warning != NULL && warning->type == JSON_STRING ? warning->text : BYTES("");
}

static struct bytes verify_of(struct cli *cli, const struct json *source)
{
    const struct json *rules = json_get(source, BYTES("verify"));
    struct buf buf;
    buf_init(&buf, 1024);
    for (uint32_t i = 0; rules != NULL && rules->type == JSON_ARRAY && i < rules->count; i++)
        buf_printf(&buf, "%s%.*s", i > 0 ? "," : "", BYTES_ARG(rules->items[i].text));
    struct bytes text = buf.len > 0 ? arena_dup(&cli->arena, buf_bytes(&buf)) : BYTES("none");
    buf_release(&buf);
    return text;
}

static void print_sources(struct cli *cli, const struct json *data)
{
    static const char *const headings[] = {"SOURCE", "PRESET", "VERIFY", "FORWARD", "LAST EVENT", "24H: NEW", "COPIES", "REMARK"};
    struct table table;
    int64_t now_us = env_real_wall_us();
    table_init(&table, &cli->arena, headings, sizeof headings / sizeof *headings);
    for (uint32_t i = 0; i < data->count; i++) {
        const struct json *source = &data->items[i];
        char last[32] = "never";
        if (print_time_of(source, "last_event_at") != 0)
            print_when(print_time_of(source, "last_event_at"), now_us, last);
        const struct bytes cells[] = {print_field(cli, source, "source"),
                                      print_field(cli, source, "preset"),
                                      verify_of(cli, source),
                                      print_field(cli, source, "forward"),
                                      arena_dup(&cli->arena, bytes_of(last)),
                                      count_of(cli, source, "accepted"),
                                      count_of(cli, source, "suppressed"),
                                      remark(cli, source)};
        table_add(&table, cells, cells[7].len > 0 ? COLOUR_YELLOW : COLOUR_NONE);
    }
    table_print(&table);
}

int sources_ls_run(struct cli *cli)
{
    return client_list(cli, "/v1/sources", NULL, 0, print_sources, "the policy has no sources. Add them under sources:.");
}
