#include <stdio.h>

#include "act/outbox.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "env/env.h"

#define COLLECTION "/v1/effects"

/* ---- ls ---- */

const struct cli_option effects_ls_options[] = {
    {"--destination", "NAME", CLI_TEXT, "Only those for this destination.", NULL, NULL, NULL, false},
    {"--state", "STATE", CLI_CHOICE, "Only those in this state.", NULL, NULL, intent_state_names, false},
    {"--step", "STEP", CLI_CHOICE, "Only those at this step.", NULL, NULL, outbox_step_names, false},
    {"--limit", "N", CLI_NUMBER, "At most so many.", "50", NULL, NULL, false},
    {"--after", "CURSOR", CLI_TEXT, "Go on behind the last page.", NULL, NULL, NULL, false},
    {0},
};

static struct bytes destination_of(struct cli *cli, const struct json *effect)
{
    struct bytes name = print_field(cli, effect, "destination");
    if (!bytes_is(print_field(cli, effect, "stranded"), "true"))
        return name;
    return arena_printf(&cli->arena, "%.*s (not in the policy)", BYTES_ARG(name));
}

static void print_effects(struct cli *cli, const struct json *data)
{
    static const char *const headings[] = {"EFFECT", "STATE", "STEP", "TRIES", "CREATED", "DESTINATION", "KEY", "NOTE"};
    struct table table;
    int64_t now_us = env_real_wall_us();
    table_init(&table, &cli->arena, headings, sizeof headings / sizeof *headings);
    for (uint32_t i = 0; i < data->count; i++) {
        const struct json *effect = &data->items[i];
        char created[32] = "";
        print_when(print_time_of(effect, "created_at"), now_us, created);
        struct bytes state = print_field(cli, effect, "state");
        const struct bytes cells[] = {print_field(cli, effect, "effect"),        state,
                                      print_field(cli, effect, "step"),          print_field(cli, effect, "tries"),
                                      arena_dup(&cli->arena, bytes_of(created)), destination_of(cli, effect),
                                      print_field(cli, effect, "key"),           print_field(cli, effect, "note")};
        table_add(&table, cells, print_state_colour(state));
    }
    table_print(&table);
}

int effects_ls_run(struct cli *cli)
{
    static const char *const filters[] = {"destination", "state", "step", "limit", "after"};
    return client_list(cli, "/v1/effects", filters, sizeof filters / sizeof *filters, print_effects,
                       "no effects. They appear with the first POST /v1/effects: semel help effects add");
}

/* ---- add ---- */

const struct cli_option effects_add_options[] = {
    {"--destination", "NAME", CLI_TEXT, "Where it goes: a destination of the policy.", NULL, NULL, NULL, true},
    {"--workflow", "NAME", CLI_TEXT, "What it belongs to; the destination's name without.", NULL, NULL, NULL, false},
    {"--key", "KEY", CLI_TEXT, "What makes it one thing: the same key again is the same effect.", NULL, NULL, NULL, false},
    {"--payload", "JSON", CLI_TEXT, "The body of a POST to the destination's URL; '-' reads it from stdin.", NULL, NULL, NULL,
     false},
    {"--request", "JSON", CLI_TEXT, "The whole request: method, path, headers, json, form or body.", NULL, NULL, NULL, false},
    {"--mail", "JSON", CLI_TEXT, "A mail: to, subject, text, html.", NULL, NULL, NULL, false},
    {"--group", "NAME", CLI_TEXT, "Those of one group go one after the other.", NULL, NULL, NULL, false},
    {"--priority", "HOW", CLI_CHOICE, "Which go first.", NULL, NULL, outbox_priority_names, false},
    {"--delay", "TIME", CLI_DURATION, "Not before so long from now.", NULL, NULL, NULL, false},
    {0},
};

static int add_json(struct cli *cli, struct json_out *out, const char *name, const char *option)
{
    struct json json;
    if (cli_text(cli, option) == NULL)
        return CLI_OK;
    int code = cli_read_json(cli, option, cli_text(cli, option), &json);
    if (code != CLI_OK)
        return code;
    json_name(out, name);
    json_raw(out, json.raw);
    return CLI_OK;
}

static int make_body(struct cli *cli, struct json_out *out)
{
    static const char *const texts[] = {"destination", "workflow", "key", "group", "priority"};
    json_open(out, '{');
    client_write_options(cli, out, texts, sizeof texts / sizeof *texts);
    if (cli_text(cli, "--delay") != NULL) {
        json_name(out, "delay_ms");
        json_i64(out, cli_duration_us(cli, "--delay", 0) / 1000);
    }
    int code = add_json(cli, out, "payload", "--payload");
    if (code == CLI_OK)
        code = add_json(cli, out, "request", "--request");
    if (code == CLI_OK)
        code = add_json(cli, out, "mail", "--mail");
    json_close(out, '}');
    return code;
}

int effects_add_run(struct cli *cli)
{
    struct client_reply reply;
    struct buf body;
    buf_init(&body, CLI_INPUT_MAX);
    struct json_out out = json_out_to(&body);
    int code = make_body(cli, &out);
    if (code == CLI_OK)
        code = client_call(
            cli, &(struct client_request){.method = "POST", .path = BYTES("/v1/effects"), .body = buf_bytes(&body)}, &reply);
    buf_release(&body);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    else
        print_line("%.*s %.*s%s", BYTES_ARG(print_field(cli, &reply.json, "effect")),
                   BYTES_ARG(print_field(cli, &reply.json, "state")),
                   reply.status == 200 ? " (the same key was accepted before)" : "");
    return CLI_OK;
}

/* ---- show, retry, cancel, resolve ---- */

int effects_show_run(struct cli *cli)
{
    struct client_reply reply;
    int code = client_call(cli, &(struct client_request){.method = "GET", .path = client_path(cli, COLLECTION, "")}, &reply);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json")) {
        print_json(&reply.json);
        return CLI_OK;
    }
    for (uint32_t i = 0; i < reply.json.count; i++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", BYTES_ARG(reply.json.members[i].name));
        struct bytes value = print_field(cli, &reply.json, name);
        if (value.len > 0)
            print_line("%-14s %.*s", name, BYTES_ARG(value));
    }
    return CLI_OK;
}

const struct cli_option effects_resolve_options[] = {
    {"--happened", NULL, CLI_SWITCH, "It did happen: it counts as done.", NULL, NULL, NULL, false},
    {"--did-not", NULL, CLI_SWITCH, "It did not happen, and shall not under this key.", NULL, NULL, NULL, false},
    {"--retry", NULL, CLI_SWITCH, "It did not happen: send it again.", NULL, NULL, NULL, false},
    {"--result", "JSON", CLI_TEXT, "With --happened: what came of it.", NULL, NULL, NULL, false},
    {"--note", "TEXT", CLI_TEXT, "How you know; it is kept with the decision.", NULL, NULL, NULL, false},
    {0},
};

/* {"outcome":…,"note":…} */
static int say(struct cli *cli, const char *verb, const char *outcome)
{
    struct client_reply reply;
    struct buf body;
    int code = CLI_OK;
    buf_init(&body, CLI_INPUT_MAX);
    struct json_out out = json_out_to(&body);
    json_open(&out, '{');
    if (outcome != NULL) {
        json_name(&out, "outcome");
        json_cstr(&out, outcome);
        code = add_json(cli, &out, "result", "--result");
    }
    client_write_options(cli, &out, &(const char *){"note"}, 1);
    json_close(&out, '}');
    if (code == CLI_OK)
        code = client_call(
            cli, &(struct client_request){.method = "POST", .path = client_path(cli, COLLECTION, verb), .body = buf_bytes(&body)},
            &reply);
    buf_release(&body);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    else
        print_line("%s is now %.*s", cli->arguments[0], BYTES_ARG(print_field(cli, &reply.json, "state")));
    return CLI_OK;
}

/* ---- many at once ---- */

const struct cli_option effects_many_options[] = {
    {"--note", "TEXT", CLI_TEXT, "For one: why; it is kept with the decision.", NULL, NULL, NULL, false},
    {"--all", NULL, CLI_SWITCH, "In place of one effect: all that can be, also with --destination and --step.", NULL, NULL, NULL,
     false},
    {"--destination", "NAME", CLI_TEXT, "With --all: only those for this destination.", NULL, NULL, NULL, false},
    {"--step", "STEP", CLI_CHOICE, "With --all: only those at this step.", NULL, NULL, outbox_step_names, false},
    {"--after", "CURSOR", CLI_TEXT, "With --all: go on where an earlier one was cut off.", NULL, NULL, NULL, false},
    {"--dry-run", NULL, CLI_SWITCH, "With --all: only count them.", NULL, NULL, NULL, false},
    {0},
};

#define REASONS_MAX 8

/* What all pages came to. */
struct many {
    const char *verb, *done_word;
    int64_t done, matched, left;
    struct bytes reasons[REASONS_MAX];
    int64_t refused[REASONS_MAX];
    size_t reason_count;
    struct bytes next; /* where to go on; empty at the end */
};

static int64_t number_of(const struct json *object, struct bytes name)
{
    const struct json *number = json_get(object, name);
    int64_t n = 0;
    return number != NULL && json_to_i64(number, &n) ? n : 0;
}

static void add_refused(struct cli *cli, struct many *many, const struct json *refused)
{
    for (uint32_t i = 0; refused != NULL && i < refused->count; i++) {
        struct bytes reason = refused->members[i].name;
        size_t at = 0;
        while (at < many->reason_count && !bytes_eq(many->reasons[at], reason))
            at++;
        if (at == REASONS_MAX)
            continue;
        if (at == many->reason_count)
            many->reasons[many->reason_count++] = arena_dup(&cli->arena, reason);
        many->refused[at] += number_of(refused, reason);
    }
}

static int send_page(struct cli *cli, struct many *many)
{
    static const char *const names[] = {"destination", "step"};
    struct client_reply reply;
    struct buf body;
    buf_init(&body, CLI_INPUT_MAX);
    struct json_out out = json_out_to(&body);
    json_open(&out, '{');
    client_write_options(cli, &out, names, sizeof names / sizeof *names);
    json_name(&out, "dry_run");
    json_bool(&out, cli_on(cli, "--dry-run"));
    json_name(&out, "after");
    json_text(&out, many->next);
    json_close(&out, '}');
    struct bytes path = arena_printf(&cli->arena, COLLECTION "/%s", many->verb);
    int code = client_call(cli, &(struct client_request){.method = "POST", .path = path, .body = buf_bytes(&body)}, &reply);
    buf_release(&body);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    many->matched += number_of(&reply.json, BYTES("matched"));
    many->done += number_of(&reply.json, bytes_of(many->done_word));
    many->left = number_of(&reply.json, BYTES("left"));
    add_refused(cli, many, json_get(&reply.json, BYTES("refused")));
    many->next = print_field(cli, &reply.json, "next");
    return CLI_OK;
}

static void print_many(struct cli *cli, const struct many *many)
{
    if (cli_on(cli, "--json"))
        return;
    if (cli_on(cli, "--dry-run"))
        print_line("%lld would be %s", (long long)many->matched, many->done_word);
    else
        print_line("%lld %s, %lld left", (long long)many->done, many->done_word, (long long)many->left);
    for (size_t i = 0; i < many->reason_count; i++)
        print_line("%lld refused: %.*s", (long long)many->refused[i], BYTES_ARG(many->reasons[i]));
}

/* Page by page, until there are no more. One that is cut off says where it was. */
static int go_through(struct cli *cli, struct many *many)
{
    const char *after = cli_text(cli, "--after");
    many->next = after != NULL ? bytes_of(after) : BYTES("");
    do {
        struct bytes from = many->next;
        int code = send_page(cli, many);
        if (code != CLI_OK) {
            cli_note("%lld %s before that; go on with --after %.*s, or from the beginning.", (long long)many->done,
                     many->done_word, BYTES_ARG(from));
            return code;
        }
        if (many->next.len > 0)
            cli_note("%lld %s, %lld left", (long long)many->done, many->done_word, (long long)many->left);
    } while (many->next.len > 0);
    print_many(cli, many);
    return CLI_OK;
}

static int say_to(struct cli *cli, const char *verb, const char *done_word)
{
    bool all = cli_on(cli, "--all");
    if (all == (cli->argument_count > 0))
        return cli_fail(CLI_USAGE, "name one effect, or say --all.");
    if (all)
        return go_through(cli, &(struct many){.verb = verb, .done_word = done_word});
    if (cli_on(cli, "--dry-run") || cli_text(cli, "--destination") != NULL || cli_text(cli, "--step") != NULL)
        return cli_fail(CLI_USAGE, "--destination, --step and --dry-run go with --all.");
    return say(cli, arena_printf(&cli->arena, "/%s", verb).at, NULL);
}

int effects_retry_run(struct cli *cli)
{
    return say_to(cli, "retry", "retried");
}

int effects_cancel_run(struct cli *cli)
{
    return say_to(cli, "cancel", "cancelled");
}

/* ---- resolve ---- */

int effects_resolve_run(struct cli *cli)
{
    int said = cli_on(cli, "--happened") + cli_on(cli, "--did-not") + cli_on(cli, "--retry");
    if (said != 1)
        return cli_fail(CLI_USAGE, "say one of --happened, --did-not and --retry.");
    return say(cli, "/resolve", cli_on(cli, "--happened") ? "happened" : cli_on(cli, "--retry") ? "retry" : "did_not");
}
