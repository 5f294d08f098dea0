#include "cli/commands.h"
#include "cli/lookup.h"
#include "cli/print.h"
#include "env/env.h"

const struct cli_option show_options[] = {LOOKUP_WORKFLOW, {0}};

static void print_member(struct cli *cli, const struct json *intent, const struct json_member *member, int64_t now_us)
{
    struct bytes name = member->name, value;
    int64_t time_us = 0;
    char local[32];
    struct bytes name_text = arena_dup(&cli->arena, name);
    if (name_text.at == NULL)
        return;
    value = print_field(cli, intent, name_text.at);
    bool is_time = (name.len > 3 && memcmp(name.at + name.len - 3, "_at", 3) == 0) || bytes_is(name, "lease_until");
    if (is_time && (time_us = print_time_of(intent, name_text.at)) != 0) {
        print_when(time_us, now_us, local);
        value = bytes_of(local);
    }
    if (value.len > 0)
        print_line("%-15s %.*s", name_text.at, BYTES_ARG(value));
}

int show_run(struct cli *cli)
{
    struct json intent;
    int code = lookup_intent(cli, &intent);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json")) {
        print_json(&intent);
        return CLI_OK;
    }
    int64_t now_us = env_real_wall_us();
    for (uint32_t i = 0; intent.type == JSON_OBJECT && i < intent.count; i++)
        print_member(cli, &intent, &intent.members[i], now_us);
    return CLI_OK;
}
