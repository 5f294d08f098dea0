#include <stdio.h>

#include "base/when.h"
#include "cli/commands.h"
#include "cli/key_advice.h"
#include "cli/print.h"
#include "env/env.h"
#include "fingerprint/fingerprint.h"

const struct cli_option key_options_table[] = {
    {"--input", "JSON", CLI_TEXT, "What the key is made from; - for stdin.", NULL, NULL, NULL, false},
    {"--time", "PATH", CLI_TEXT, "The input field that holds the event's own time, for {day} and the like.", NULL, NULL, NULL,
     false},
    {"--zone", "ZONE", CLI_TEXT, "The time zone of days and weeks.", "UTC", NULL, NULL, false},
    {"--now", "TIME", CLI_TEXT, "The clock for {today}, RFC 3339; now when not given.", NULL, NULL, NULL, false},
    {"--workflow", "NAME", CLI_TEXT, "Also print the downstream key for this workflow.", NULL, NULL, NULL, false},
    {"--space", "NAME", CLI_TEXT, "The space for the downstream key.", "main", NULL, NULL, false},
    {0},
};

/* What one run of the command found out. */
struct made {
    struct json input;
    struct bytes key;
    char downstream[DOWNSTREAM_KEY_SIZE + 1]; /* "" without --workflow */
};

static int read_now(const struct cli *cli, int64_t *ret_now_us)
{
    const char *text = cli_text(cli, "--now");
    if (text == NULL)
        *ret_now_us = env_real_wall_us();
    else if (!when_parse(bytes_of(text), ret_now_us))
        return cli_fail(CLI_USAGE, "--now is not a time. Write it like 2026-11-16T09:00:00Z.");
    return CLI_OK;
}

static int compile(struct cli *cli, struct key_template **ret_template)
{
    struct why why;
    const struct key_options options = {.zone = cli_text(cli, "--zone"), .time_path = bytes_of(cli_text(cli, "--time"))};
    char near[ZONE_NAME_MAX + 1];
    if (!zone_exists(options.zone)) {
        if (zone_nearest(bytes_of(options.zone), near))
            return cli_fail(CLI_USAGE, "there is no time zone \"%.64s\". Did you mean %s?", options.zone, near);
        return cli_fail(CLI_USAGE, "there is no time zone \"%.64s\". Write it like Europe/Paris.", options.zone);
    }
    if (key_template_compile(bytes_of(cli->arguments[0]), &options, &cli->arena, ret_template, &why) != OK)
        return cli_fail(CLI_DATA, "the template is not right: %s", why.text);
    return CLI_OK;
}

static void warn(const struct key_template *template)
{
    struct buf advice;
    buf_init(&advice, 8192);
    for (size_t i = 0; key_advise(template, i, &advice); i++)
        cli_note("warning: %.*s", BYTES_ARG(buf_bytes(&advice)));
    buf_release(&advice);
}

static void explain(struct cli *cli, const struct key_template *template)
{
    static const char *const headings[] = {"PART", "MEANING"};
    struct table table;
    struct buf meaning;
    buf_init(&meaning, 8192);
    table_init(&table, &cli->arena, headings, 2);
    for (size_t i = 0; i < template->part_count; i++) {
        const struct key_part *part = &template->parts[i];
        buf_clear(&meaning);
        key_explain(part, &meaning);
        const struct bytes cells[] = {part->kind == PART_LITERAL ? part->text : part->source,
                                      arena_dup(&cli->arena, buf_bytes(&meaning))};
        table_add(&table, cells, COLOUR_NONE);
    }
    buf_release(&meaning);
    table_print(&table);
}

static void explain_json(const struct key_template *template)
{
    for (size_t i = 0; i < template->part_count; i++) {
        const struct key_part *part = &template->parts[i];
        struct buf line, meaning;
        buf_init(&line, 32 << 10);
        buf_init(&meaning, 8192);
        key_explain(part, &meaning);
        struct json_out out = json_out_to(&line);
        json_open(&out, '{');
        json_name(&out, "part");
        json_text(&out, part->kind == PART_LITERAL ? part->text : part->source);
        json_name(&out, "literal");
        json_bool(&out, part->kind == PART_LITERAL);
        json_name(&out, "meaning");
        json_text(&out, buf_bytes(&meaning));
        json_close(&out, '}');
        print_json_buf(&line);
        buf_release(&line);
        buf_release(&meaning);
    }
}

static void write_made(const struct made *made, struct bytes canonical, const struct fingerprint *fingerprint, struct buf *buf)
{
    struct json_out out = json_out_to(buf);
    char hex[2 * HASH_SIZE];
    bytes_to_hex(hash_bytes(&fingerprint->whole), hex);
    json_open(&out, '{');
    json_name(&out, "key");
    json_text(&out, made->key);
    json_name(&out, "downstream_key");
    json_cstr(&out, made->downstream[0] != '\0' ? made->downstream : NULL);
    json_name(&out, "canonical");
    json_text(&out, canonical);
    json_name(&out, "fingerprint");
    json_text(&out, (struct bytes){hex, sizeof hex});
    json_name(&out, "fields");
    if (fingerprint->fields.at != NULL)
        json_raw(&out, fingerprint->fields);
    else
        json_null(&out);
    json_close(&out, '}');
}

/* The fingerprint here has no pepper: the daemon's own adds one, so that stored hashes cannot be guessed. */
static int print_made_json(struct cli *cli, const struct made *made)
{
    struct why why;
    struct fingerprint fingerprint;
    struct buf canonical, line;
    buf_init(&canonical, 2 * CLI_INPUT_MAX);
    buf_init(&line, 8 * CLI_INPUT_MAX);
    enum status status = json_canonical(&made->input, &cli->arena, &canonical, &why);
    if (status == OK)
        status =
            fingerprint_make(&made->input, &(struct fingerprint_options){.pepper = BYTES("")}, &cli->arena, &fingerprint, &why);
    if (status == OK) {
        write_made(made, buf_bytes(&canonical), &fingerprint, &line);
        print_json_buf(&line);
    }
    buf_release(&canonical);
    buf_release(&line);
    return status == OK ? CLI_OK : cli_fail(CLI_DATA, "the input has no fingerprint: %s.", why.text);
}

static int make_key(struct cli *cli, const struct key_template *template, struct made *ret)
{
    struct why why;
    struct bytes field;
    int64_t now_us = 0;
    int code = read_now(cli, &now_us);
    if (code == CLI_OK)
        code = cli_read_json(cli, "--input", cli_text(cli, "--input"), &ret->input);
    if (code != CLI_OK)
        return code;
    if (key_template_fill(template, &ret->input, now_us, &cli->arena, &ret->key, &field, &why) != OK)
        return cli_fail(CLI_DATA, "the input makes no key: %s", why.text);
    const char *workflow = cli_text(cli, "--workflow");
    if (workflow != NULL)
        downstream_key(bytes_of(cli_text(cli, "--space")), bytes_of(workflow), ret->key, ret->downstream);
    return CLI_OK;
}

static int run_compiled(struct cli *cli, const struct key_template *template)
{
    struct made made = {.downstream = ""};
    warn(template);
    if (!cli_on(cli, "--input")) {
        if (cli_on(cli, "--json"))
            explain_json(template);
        else
            explain(cli, template);
        return CLI_OK;
    }
    int code = make_key(cli, template, &made);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json"))
        return print_made_json(cli, &made);
    print_line("%.*s", BYTES_ARG(made.key));
    if (made.downstream[0] != '\0')
        print_line("%s", made.downstream);
    return CLI_OK;
}

int key_run(struct cli *cli)
{
    struct key_template *template;
    int code = compile(cli, &template);
    if (code != CLI_OK)
        return code;
    code = run_compiled(cli, template);
    key_template_free(template);
    return code;
}
