#include <stdio.h>

#include "base/when.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/story.h"
#include "decide/decide.h"
#include "env/env.h"

/* ---- ls ---- */

const struct cli_option inbox_ls_options[] = {
    {"--source", "NAME", CLI_TEXT, "Only those of this source.", NULL, NULL, NULL, false},
    {"--verdict", "VERDICT", CLI_CHOICE, "Only those that were decided so.", NULL, NULL, event_verdict_names, false},
    {"--thread", "ID", CLI_TEXT, "Only those of this conversation, thr_….", NULL, NULL, NULL, false},
    {"--q", "TEXT", CLI_TEXT, "Only those that hold this text, in what was written or who wrote it.", NULL, NULL, NULL, false},
    {"--limit", "N", CLI_NUMBER, "At most so many.", "50", NULL, NULL, false},
    {"--after", "CURSOR", CLI_TEXT, "Go on behind the last page.", NULL, NULL, NULL, false},
    {0},
};

static enum print_colour colour_of(struct bytes verdict)
{
    if (bytes_is(verdict, "accepted") || bytes_is(verdict, "released"))
        return COLOUR_GREEN;
    return bytes_is(verdict, "held") ? COLOUR_YELLOW : COLOUR_DIM;
}

/* On one line, and not too long for a table. */
static struct bytes one_line(struct cli *cli, struct bytes text)
{
    enum { MOST = 48 };
    size_t len = text.len < MOST ? text.len : MOST;
    while (len < text.len && len > 0 && ((unsigned char)text.at[len] & 0xC0) == 0x80)
        len--;
    return arena_printf(&cli->arena, "%.*s%s", (int)len, text.at, len < text.len ? "…" : "");
}

static void print_events(struct cli *cli, const struct json *data)
{
    static const char *const headings[] = {"EVENT", "RECEIVED", "SOURCE", "VERDICT", "REASON", "COPIES", "FROM", "TEXT"};
    struct table table;
    int64_t now_us = env_real_wall_us();
    table_init(&table, &cli->arena, headings, sizeof headings / sizeof *headings);
    for (uint32_t i = 0; i < data->count; i++) {
        const struct json *event = &data->items[i];
        char received[32] = "";
        print_when(print_time_of(event, "received_at"), now_us, received);
        struct bytes verdict = print_field(cli, event, "verdict");
        const struct bytes cells[] = {print_field(cli, event, "event"),  arena_dup(&cli->arena, bytes_of(received)),
                                      print_field(cli, event, "source"), verdict,
                                      print_field(cli, event, "reason"), print_field(cli, event, "copies"),
                                      print_field(cli, event, "from"),   one_line(cli, print_field(cli, event, "text"))};
        table_add(&table, cells, colour_of(verdict));
    }
    table_print(&table);
}

int inbox_ls_run(struct cli *cli)
{
    static const char *const filters[] = {"source", "verdict", "thread", "q", "limit", "after"};
    return client_list(cli, "/v1/events", filters, sizeof filters / sizeof *filters, print_events,
                       "no events. They appear when something is sent to /in/SOURCE: semel sources ls");
}

/* ---- show, why ---- */

static struct bytes path_of(struct cli *cli, const char *kind, const char *verb)
{
    struct buf path;
    buf_init(&path, 1024);
    buf_add_cstr(&path, kind);
    client_path_add(&path, bytes_of(cli->arguments[0]));
    buf_add_cstr(&path, verb);
    struct bytes text = arena_dup(&cli->arena, buf_bytes(&path));
    buf_release(&path);
    return text;
}

const struct cli_option inbox_show_options[] = {
    {"--raw", NULL, CLI_SWITCH, "Also the request as it came; needs the scope admin.", NULL, NULL, NULL, false},
    {0},
};

static void print_members(struct cli *cli, const struct json *object, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct bytes value = print_field(cli, object, names[i]);
        if (value.len > 0)
            print_line("%-12s %.*s", names[i], BYTES_ARG(value));
    }
}

static void print_raw(struct cli *cli, const struct json *raw)
{
    if (raw == NULL || raw->type != JSON_OBJECT)
        return;
    print_line("\n%.*s %.*s", BYTES_ARG(print_field(cli, raw, "method")), BYTES_ARG(print_field(cli, raw, "url")));
    const struct json *headers = json_get(raw, BYTES("headers"));
    for (uint32_t i = 0; headers != NULL && headers->type == JSON_ARRAY && i < headers->count; i++) {
        const struct json *pair = &headers->items[i];
        if (pair->type == JSON_ARRAY && pair->count == 2)
            print_line("%.*s: %.*s", BYTES_ARG(pair->items[0].text), BYTES_ARG(pair->items[1].text));
    }
    print_line("\n%.*s%.*s", BYTES_ARG(print_field(cli, raw, "body")), BYTES_ARG(print_field(cli, raw, "body_base64")));
}

static void print_event(struct cli *cli, const struct json *event)
{
    static const char *const names[] = {"event",   "source", "kind",  "from",   "name",       "subject", "received_at",
                                        "mode",    "thread", "epoch", "policy", "copies",     "verdict", "reason",
                                        "because", "score",  "first", "intent", "explanation"};
    static const char *const forward_names[] = {"effect", "destination", "state", "tries", "note"};
    print_members(cli, event, names, sizeof names / sizeof *names);
    const struct json *forward = json_get(event, BYTES("forward"));
    if (forward != NULL && forward->type == JSON_OBJECT)
        print_members(cli, forward, forward_names, sizeof forward_names / sizeof *forward_names);
    const struct json *lead = json_get(event, BYTES("lead"));
    if (lead != NULL && lead->type == JSON_OBJECT)
        print_line("%-12s %.*s (%.*s): %.*s", "lead", BYTES_ARG(print_field(cli, lead, "lead")),
                   BYTES_ARG(print_field(cli, lead, "found")), BYTES_ARG(print_field(cli, lead, "because")));
    print_line("\n%.*s", BYTES_ARG(print_field(cli, event, "text")));
    const struct json *first = json_get(event, BYTES("first_event"));
    if (first != NULL && first->type == JSON_OBJECT)
        print_line("\n%.*s, which it repeats:\n%.*s", BYTES_ARG(print_field(cli, first, "event")),
                   BYTES_ARG(print_field(cli, first, "text")));
    print_raw(cli, json_get(event, BYTES("raw")));
}

int inbox_show_run(struct cli *cli)
{
    struct client_reply reply;
    struct bytes path = path_of(cli, "/v1/events", cli_on(cli, "--raw") ? "?raw=1" : "");
    int code = client_call(cli, &(struct client_request){.method = "GET", .path = path}, &reply);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    else
        print_event(cli, &reply.json);
    return CLI_OK;
}

int inbox_why_run(struct cli *cli)
{
    struct client_reply reply;
    struct buf story;
    int code = client_call(cli, &(struct client_request){.method = "GET", .path = path_of(cli, "/v1/events", "")}, &reply);
    if (code != CLI_OK)
        return code;
    if (cli_on(cli, "--json")) {
        print_json(&reply.json);
        return CLI_OK;
    }
    buf_init(&story, 1 << 20);
    story_event(&reply.json, &story);
    fwrite(story.at, 1, story.len, stdout);
    buf_release(&story);
    return CLI_OK;
}

/* ---- deciding ---- */

const struct cli_option inbox_note_options[] = {
    {"--note", "TEXT", CLI_TEXT, "Why; it is kept with the decision.", NULL, NULL, NULL, false},
    {0},
};

/* {"note":…} and what else `more` writes. */
static int post(struct cli *cli, struct bytes path, void (*more)(struct cli *cli, struct json_out *out),
                struct client_reply *ret_reply)
{
    struct buf body;
    buf_init(&body, 64 << 10);
    struct json_out out = json_out_to(&body);
    json_open(&out, '{');
    if (cli_text(cli, "--note") != NULL) {
        json_name(&out, "note");
        json_cstr(&out, cli_text(cli, "--note"));
    }
    if (more != NULL)
        more(cli, &out);
    json_close(&out, '}');
    int code = client_call(cli, &(struct client_request){.method = "POST", .path = path, .body = buf_bytes(&body)}, ret_reply);
    buf_release(&body);
    if (code == CLI_OK && cli_on(cli, "--json"))
        print_json(&ret_reply->json);
    return code;
}

static int act(struct cli *cli, const char *verb)
{
    struct client_reply reply;
    int code = post(cli, path_of(cli, "/v1/events", verb), NULL, &reply);
    if (code != CLI_OK || cli_on(cli, "--json"))
        return code;
    const struct json *changed = json_get(&reply.json, BYTES("changed"));
    struct bytes verdict = print_field(cli, &reply.json, "verdict"), effect = print_field(cli, &reply.json, "effect");
    if (changed != NULL && changed->type == JSON_FALSE)
        print_line("%s was %.*s before; nothing changed", cli->arguments[0], BYTES_ARG(verdict));
    else if (effect.len > 0)
        print_line("%s is now %.*s, forwarded as %.*s", cli->arguments[0], BYTES_ARG(verdict), BYTES_ARG(effect));
    else
        print_line("%s is now %.*s", cli->arguments[0], BYTES_ARG(verdict));
    return CLI_OK;
}

int inbox_release_run(struct cli *cli)
{
    return act(cli, "/release");
}

int inbox_suppress_run(struct cli *cli)
{
    return act(cli, "/suppress");
}

const struct cli_option inbox_replay_options[] = {
    {"--note", "TEXT", CLI_TEXT, "Why; it is kept with the decision.", NULL, NULL, NULL, false},
    {"--source", "NAME", CLI_TEXT, "In place of one event: all of this source that went on, within --since and --until.", NULL,
     NULL, NULL, false},
    {"--since", "TIME", CLI_TEXT, "With --source: since then, such as 2026-11-16T09:00:00Z.", NULL, NULL, NULL, false},
    {"--until", "TIME", CLI_TEXT, "With --source: before this.", NULL, NULL, NULL, false},
    {"--dry-run", NULL, CLI_SWITCH, "Only count them.", NULL, NULL, NULL, false},
    {0},
};

static void write_filter(struct cli *cli, struct json_out *out)
{
    static const char *const names[] = {"source", "since", "until"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char option[16];
        snprintf(option, sizeof option, "--%s", names[i]);
        if (cli_text(cli, option) == NULL)
            continue;
        json_name(out, names[i]);
        json_cstr(out, cli_text(cli, option));
    }
    json_name(out, "dry_run");
    json_bool(out, cli_on(cli, "--dry-run"));
}

int inbox_replay_run(struct cli *cli)
{
    struct client_reply reply;
    bool many = cli_text(cli, "--source") != NULL;
    if (many == (cli->argument_count > 0))
        return cli_fail(CLI_USAGE, "name one event, or give --source and --since.");
    if (!many)
        return act(cli, "/replay");
    int code = post(cli, BYTES("/v1/events/replay"), write_filter, &reply);
    if (code != CLI_OK || cli_on(cli, "--json"))
        return code;
    print_line("%.*s matched, %.*s replayed", BYTES_ARG(print_field(cli, &reply.json, "matched")),
               BYTES_ARG(print_field(cli, &reply.json, "replayed")));
    if (bytes_is(print_field(cli, &reply.json, "more"), "true"))
        cli_note("there are more; go on with a later --since.");
    struct bytes reason = print_field(cli, &reply.json, "reason");
    if (reason.len > 0)
        return cli_fail(CLI_DATA, "%.*s could not be: %.*s.", BYTES_ARG(print_field(cli, &reply.json, "failed")),
                        BYTES_ARG(reason));
    return CLI_OK;
}

/* ---- sources ---- */

const struct cli_option inbox_mute_options[] = {
    {"--for", "TIME", CLI_DURATION, "For how long, at most 30d.", NULL, NULL, NULL, true},
    {"--note", "TEXT", CLI_TEXT, "Why; it is kept with the decision.", NULL, NULL, NULL, false},
    {0},
};

const struct cli_option inbox_limit_options[] = {
    {"--most", "N", CLI_NUMBER, "So many events go on in the time of --every.", NULL, NULL, NULL, true},
    {"--every", "TIME", CLI_DURATION, "That time; the others are muted.", NULL, NULL, NULL, true},
    {"--for", "TIME", CLI_DURATION, "For how long, at most 30d.", NULL, NULL, NULL, true},
    {"--note", "TEXT", CLI_TEXT, "Why; it is kept with the decision.", NULL, NULL, NULL, false},
    {0},
};

static void write_for(struct cli *cli, struct json_out *out)
{
    json_name(out, "for_ms");
    json_i64(out, cli_duration_us(cli, "--for", 0) / WHEN_MS);
}

static void write_limit(struct cli *cli, struct json_out *out)
{
    write_for(cli, out);
    json_name(out, "most");
    json_i64(out, cli_number(cli, "--most", 0));
    json_name(out, "every_ms");
    json_i64(out, cli_duration_us(cli, "--every", 0) / WHEN_MS);
}

static int quieten(struct cli *cli, const char *verb, void (*more)(struct cli *cli, struct json_out *out))
{
    struct client_reply reply;
    int code = post(cli, path_of(cli, "/v1/sources", verb), more, &reply);
    if (code != CLI_OK || cli_on(cli, "--json"))
        return code;
    struct bytes muted = print_field(cli, &reply.json, "muted_until");
    const struct json *limit = json_get(&reply.json, BYTES("limit"));
    if (muted.len > 0)
        print_line("%s is muted until %.*s", cli->arguments[0], BYTES_ARG(muted));
    else if (limit != NULL && limit->type == JSON_OBJECT)
        print_line("%s is limited until %.*s", cli->arguments[0], BYTES_ARG(print_field(cli, limit, "until")));
    else
        print_line("%s is heard again", cli->arguments[0]);
    return CLI_OK;
}

int inbox_mute_run(struct cli *cli)
{
    return quieten(cli, "/mute", write_for);
}

int inbox_unmute_run(struct cli *cli)
{
    return quieten(cli, "/unmute", NULL);
}

int inbox_limit_run(struct cli *cli)
{
    return quieten(cli, "/limit", write_limit);
}
